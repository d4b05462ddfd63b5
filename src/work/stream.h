/* work/stream.h - inside selection: candidates in order, from an index range or from a collected list. */
#ifndef DAIS_WORK_STREAM_H
#define DAIS_WORK_STREAM_H

#include "work/select.h"

struct candidate {
	int64_t n, parent_n, root_n; /* parent_n 0: a root */
	struct id id;		     /* decides between equal keys */
	enum role role;
	int64_t priority, complexity, created_at;
	int64_t claim_by, claim_until;
};

#define STREAM_BATCH 64
/* Statements that stay open while their range is read on. Others begin again behind their last row, which the
 * index cannot do exactly among rows of one moment. */
#define STREAMS_OPEN 16

enum stream_of {
	STREAM_PROJECT, /* items below one root, by item_ready */
	STREAM_ROOTS,	/* roots, by item_root_ready */
	STREAM_QUEUE,	/* whatever is queued in any project, roots included, by item_queue */
};

/* One range of one role; oldest and newest also fix priority and complexity, because the indexes have them before
 * the time. */
struct stream {
	enum stream_of of;
	int64_t root_n; /* of STREAM_PROJECT */
	enum role role;
	int64_t priority;   /* -1: any; fixed for oldest and newest */
	int64_t complexity; /* fixed for oldest and newest */
	struct candidate *rows;
	size_t count, at;
	size_t batch; /* rows asked for next time */
	bool is_ended;
	bool is_open;
	struct query query; /* while is_open */
};

struct streams {
	struct snapshot *s;
	enum select_order order;
	struct stream **heap; /* the one with the first candidate on top */
	size_t n, room;
	size_t open_count;
};

/* Close what is open; whatever was added, this must follow. */
void streams_finish(struct streams *streams);
/* Negative when `a` comes first. */
int candidate_cmp(enum select_order order, const struct candidate *a, const struct candidate *b);

/* Add the ranges of one role, root_n for STREAM_PROJECT; STREAM_QUEUE has the role queue alone. `priorities`: bits by
 * enum priority. */
int streams_add(struct streams *streams, enum stream_of of, int64_t root_n, enum role role, unsigned priorities,
	struct failure *f);
/* Add a list, in any order; it is sorted in place. */
int streams_add_list(struct streams *streams, struct candidate *list, size_t n, struct failure *f);
/* 1 and the next candidate of all, 0 at the end, -1 failure. */
int streams_next(struct streams *streams, struct candidate *out, struct failure *f);

/* Columns that candidate_read expects, of item. */
#define CANDIDATE_COLUMNS "n, id, parent_n, root_n, role, priority, complexity, created_at, claim_by, claim_until"
void candidate_read(const struct query *q, struct candidate *out);

#endif
