/* work/search_run.h - inside search: one search on its way. */
#ifndef DAIS_WORK_SEARCH_RUN_H
#define DAIS_WORK_SEARCH_RUN_H

#include "work/int_map.h"
#include "work/parts.h"
#include "work/search_index.h"

/* Constant of the reciprocal rank fusion. */
#define RRF_K 60

enum look { LOOK_TRIGRAM = ANALYSER_TRIGRAM, LOOK_TEXT = ANALYSER_TEXT, LOOK_SCAN, LOOK_COUNT };

struct hit {
	enum search_kind kind;
	int64_t n; /* row of the item or note */
	int64_t item_n;
	struct id id;
	int rank[LOOK_COUNT]; /* from 1; 0: not in that list */
	double score;
	const char *field; /* title, summary or body; */
	struct str snippet;
};

/* Rows that pass scope and filters, as far as they were counted. */
struct extent {
	bool is_known;
	int64_t first, last, count;
};

struct search {
	struct snapshot *s;
	struct call *call;
	const struct search_args *in;
	struct filter filter;
	int64_t item_n; /* 0: any */
	struct str *terms, *long_terms; /* all; those that the index of parts can find */
	struct str *parts;		/* these, as they stand in the texts that it gives */
	bool is_folded;			/* there is more than ASCII in them: case is folded by the store */
	size_t term_count, long_count;
	bool has_short_word;
	struct str words; /* query of the text analyser */
	struct extent extents[2];
	struct hit *hits;
	size_t hit_count, hit_cap;
	struct int_map places; /* of hits: 2 * row + kind */
	bool is_full[2];   /* words were found in more items, notes than there are candidates */
	bool is_truncated; /* more existed than was looked at or kept */
	bool is_scan_bounded;
};

/* The hit of this row, made on first sight. */
struct hit *search_hit(struct search *search, enum search_kind kind, int64_t n);
/* search_find.c: the best matches of one kind in one analyser; adds their number to *found. */
int search_ranked(struct search *search, enum search_kind kind, enum analyser analyser, size_t *found,
	struct failure *f);
/* search_scan.c: the newest rows whose texts hold every term, by reading them. */
int search_scan(struct search *search, enum search_kind kind, struct failure *f);
/* search_find.c: conditions of scope and filters on item i, and note x. */
void search_conditions(struct search *search, enum search_kind kind, struct sql *sql);
/* What SQL cannot say: 1 passes, 0 does not, -1 failure. */
int search_passes(struct search *search, int64_t item_n, struct str key, struct failure *f);
bool search_has_conditions(struct search *search, enum search_kind kind);
/* search_hit.c: fills the snippets of these hits, and writes the members of one. */
int search_snippets(struct search *search, struct hit *hits, size_t n, struct failure *f);
int search_write_hit(struct search *search, struct hit *hit, struct json_writer *out, struct failure *f);

/* ---- search_text.c: looking into texts ---- */

/* Bytes of the first place in `text` that equals `term` but for ASCII case; text.n when there is none. */
size_t search_place(struct str text, struct str term);
/* How often `term` stands in `text`. */
size_t search_count(struct str text, struct str term);
/* The surroundings of the first of `terms` that stands in `text`, with <mark> around each that stands there; false
 * when none does. `folded` is the same text, character by character, in which they are looked for. */
bool search_mark(struct arena *arena, struct str text, struct str folded, const struct str *terms, size_t n,
	struct str *out);

#endif
