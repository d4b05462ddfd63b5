/* work/search_index.h - inside search: the index of the store at hand. Its SQL is the dialect's own, so each store
 * has its file: search_sqlite.c.
 *
 * The text analyser finds words and ranks them. The other one finds parts of words (ANALYSER_TRIGRAM, its name
 * towards callers): its index says which rows may hold them, and what it gives is their texts, to be looked into. */
#ifndef DAIS_WORK_SEARCH_INDEX_H
#define DAIS_WORK_SEARCH_INDEX_H

#include "work/search.h"

enum analyser { ANALYSER_TRIGRAM, ANALYSER_TEXT, ANALYSER_COUNT };
/* Terms of fewer code points are in no index of parts. */
#define TRIGRAM_CHARS 3
#define INDEX_TEXTS 2 /* title and summary, or body */

struct index {
	enum search_kind kind;
	enum analyser analyser;
	struct str query; /* of index_words or index_parts */
	struct str weights; /* of index_weights; absent: there is one word */
	bool is_whole; /* all matches are expected to be taken: then oldest first, which is the cheaper walk */
	bool is_folded;	  /* parts: texts as index_fold gives them */
};

/* Every term as a phrase, all of them wanted. */
struct str index_words(struct arena *arena, const struct str *terms, size_t n);
/* Makes of `index`, whose kind is given, what finds every row that holds all these parts of words, and some that do
 * not. */
int index_parts(struct snapshot *s, const struct str *terms, size_t n, struct index *index, struct failure *f);
/* Characters of `text` without their case, one for one. */
int index_fold(struct snapshot *s, struct str text, struct str *out, struct failure *f);

/* How the conditions on item i, for notes note x, and item_text t when they name it, meet the matches. */
enum scope_way {
	SCOPE_ALL,    /* there are none */
	SCOPE_JOINED, /* each match is looked up: good while most of them pass */
	SCOPE_LISTED, /* the rows that pass are listed once: good while they are few, and never worse than that */
};
struct index_scope {
	enum scope_way way;
	bool has_owner; /* columns 2, 3 are wanted */
	bool with_text; /* conditions name t */
	int64_t first, last; /* rows outside are not looked at */
	void (*add)(void *context, struct sql *sql); /* appends the conditions */
	void *context;
};
/* Columns: row, score (text analyser; lower is better), item row, note key or '', then INDEX_TEXTS texts (parts);
 * newest row first, so that only those are scored which are taken; unless index->is_whole. */
void index_matches(const struct index *index, const struct index_scope *scope, struct sql *sql);
/* The same columns of these rows, whether they match or not (parts). */
#define INDEX_ROWS 64
void index_texts(const struct index *index, const int64_t *rows, size_t n, struct sql *sql);
/* Columns: what the words of the query weigh, and the newest row; none when nothing matches (text analyser). The first
 * is a text that begins with the number of rows that the rarest word is in, and of those that may match. */
void index_weights(const struct index *index, struct sql *sql);
/* The row of the match that `skip` newer ones precede. */
void index_nth(const struct index *index, int64_t skip, struct sql *sql);
/* First and last row that pass, and how many there are, counted up to `most`. */
void index_extent(enum search_kind kind, const struct index_scope *scope, int64_t most, struct sql *sql);

/* What of these rows the text analyser matched. Columns: row, then of each text the part with the matches and <mark>
 * around them; NULL: there is none. */
void index_snippets(const struct index *index, const int64_t *rows, size_t n, struct sql *sql);

#endif
