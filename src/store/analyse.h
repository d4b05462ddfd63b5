/* store/analyse.h - what a SQLite connection must know before it touches the search tables: the analyser `grams`
 * and the functions below. A program that does not bring them cannot write texts.
 *
 * grams: every place of a text gives the GRAM_CHARS characters from there, fewer at its end, case folded as FTS5
 * folds it. Three would do to find parts of words, and are what FTS5 brings; but there are few of them, each stands in
 * many texts, and to find the ten texts with a rare word took a walk over most of the index. Of a quoted query only
 * the first gram is looked up: whoever asks quotes one gram at a time. With three or four characters it asks for a
 * prefix.
 *
 * fold(text): its characters folded in the same way, one for one.
 * rank_words(table, sizes, weights): bm25, lower is better; without the walk over all matches that bm25() makes to weigh
 * one word against itself. `sizes` is `sz` of the row in the table's _docsize. NULL for weights: all words weigh the same.
 * weigh_words(table): how many rows the rarest of the query's words is in, how many rows hold all of them if each word
 * stood where it stands by chance (both about, where there are many), then weights for rank_words, by a sample of the rows
 * of each word; all in one text with blanks between.
 * snippet_words(query, text): see store/snippet.h. */
#ifndef DAIS_STORE_ANALYSE_H
#define DAIS_STORE_ANALYSE_H

struct sqlite3;

/* 0, or a code of SQLite. */
int analyse_register(struct sqlite3 *handle);

#endif
