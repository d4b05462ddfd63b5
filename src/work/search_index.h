/* work/search_index.h - inside search: the index of the store at hand. Its SQL is the dialect's own, so each store
 * has its file: search_sqlite.c.
 *
 * A query is begun by index_matches, which names item i, for notes note x, and item_text t when asked for, and ends
 * in a WHERE with the match; conditions follow; then index_matches_end. */
#ifndef DAIS_WORK_SEARCH_INDEX_H
#define DAIS_WORK_SEARCH_INDEX_H

#include "work/search.h"

enum analyser { ANALYSER_TRIGRAM, ANALYSER_TEXT, ANALYSER_COUNT };
/* Terms of fewer code points are in no trigram. */
#define TRIGRAM_CHARS 3

struct index {
	enum search_kind kind;
	enum analyser analyser;
	struct str query; /* of index_query */
	bool with_text;	  /* conditions name t */
};

/* Every term as a phrase, all of them wanted. */
struct str index_query(struct arena *arena, const struct str *terms, size_t n);

/* Columns row, id (of the item or note), item row, note key or '', score (lower is better); newest row first, so that
 * only those are scored which are taken. */
void index_matches(const struct index *index, struct sql *sql);
void index_matches_end(const struct index *index, struct sql *sql);

/* What was matched of row `n`, with <mark> around it; 1 found, 0 the row does not match, -1 failure. */
struct snippet {
	const char *field; /* title, summary or body */
	struct str text;
};
int index_snippet(struct snapshot *s, const struct index *index, int64_t n, struct snippet *out,
	struct failure *f);

#endif
