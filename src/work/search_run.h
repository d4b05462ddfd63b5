/* work/search_run.h - inside search: one search on its way. */
#ifndef DAIS_WORK_SEARCH_RUN_H
#define DAIS_WORK_SEARCH_RUN_H

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
};

struct search {
	struct snapshot *s;
	struct call *call;
	const struct search_args *in;
	struct filter filter;
	int64_t item_n; /* 0: any */
	struct str *terms, *long_terms; /* all; those that trigrams can find */
	size_t term_count, long_count;
	bool has_short_word;
	struct str queries[ANALYSER_COUNT];
	struct hit *hits;
	size_t hit_count, hit_cap;
	bool is_truncated; /* more existed than was looked at or kept */
	bool is_scan_bounded;
};

/* The hit of this row, made on first sight. */
struct hit *search_hit(struct search *search, enum search_kind kind, int64_t n);
/* search_find.c: the best matches of one kind in one analyser; adds their number to *found. */
int search_ranked(struct search *search, enum search_kind kind, enum analyser analyser, size_t *found,
	struct failure *f);
/* The newest rows whose texts hold every term, by reading them. */
int search_scan(struct search *search, enum search_kind kind, struct failure *f);
/* search_hit.c: members of one hit. */
int search_write_hit(struct search *search, const struct hit *hit, struct json_writer *out, struct failure *f);
/* Bytes of the first place in `text` that equals `term` but for ASCII case; text.n when there is none. */
size_t search_place(struct str text, struct str term);

#endif
