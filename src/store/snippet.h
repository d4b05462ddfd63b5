/* store/snippet.h - the function snippet_words(query, text) of a SQLite connection: the part of `text` that shows most
 * of the query's words, with <mark> around them and … where it was cut; NULL when none stands there.
 *
 * It gives what snippet() of FTS5 gives for one column, from the text alone. That one needs the row as a match, and to
 * come to one match of several common words the index is walked over most of them. */
#ifndef DAIS_STORE_SNIPPET_H
#define DAIS_STORE_SNIPPET_H

struct fts5_api;
struct sqlite3;

/* 0, or a code of SQLite. The text is cut into words as the tables *_fts_text do it. */
int snippet_register(struct sqlite3 *handle, struct fts5_api *api);

#endif
