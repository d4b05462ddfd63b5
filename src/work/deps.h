/* work/deps.h - edges between items: what blocks what, what relates to what.
 *
 * A BLOCKS edge runs from the blocker to the blocked item and is satisfied once the blocker has reached the
 * edge's threshold. IS_BLOCKED_BY exists as input only. The BLOCKS edges never close a cycle. */
#ifndef DAIS_WORK_DEPS_H
#define DAIS_WORK_DEPS_H

#include "base/field.h"
#include "work/filter.h"
#include "work/work.h"

enum dep_type { DEP_BLOCKS, DEP_RELATES_TO, DEP_IS_BLOCKED_BY };
enum dep_pattern { DEP_EDGE, DEP_LINEAR, DEP_FAN_OUT, DEP_FAN_IN };
enum dep_direction { DEP_ALL, DEP_INCOMING, DEP_OUTGOING };
extern const struct word dep_type_words[];	  /* with the alias */
extern const struct word dep_stored_type_words[]; /* without it */

/* ---- deps_write ---- */
struct dep_create_args {
	struct arg_int pattern; /* unset: one edge */
	struct arg_strs from, to;
	struct arg_strs items;
	struct arg_int type;	   /* unset: BLOCKS */
	struct arg_int unblock_at; /* enum role; unset: terminal */
};
int dep_create_check(const struct dep_create_args *in, struct str path, struct failure *f);
int dep_create(struct tx *tx, struct call *call, const struct dep_create_args *in, struct json_writer *out,
	struct failure *f);

struct dep_delete_args {
	struct arg_str dep;
	struct arg_str from, to;
	struct arg_int type;
	struct arg_str item;
	struct arg_bool all;
};
int dep_delete_check(const struct dep_delete_args *in, struct str path, struct failure *f);
int dep_delete(struct tx *tx, struct call *call, const struct dep_delete_args *in, struct json_writer *out,
	struct failure *f);

/* ---- deps_read ---- */
struct dep_edges_args {
	struct arg_str item;
	struct arg_int direction; /* unset: DEP_ALL */
	struct arg_int type;
	struct arg_bool include_items;
	struct arg_int limit;
	struct arg_str cursor;
};
int dep_edges(struct snapshot *s, struct call *call, const struct dep_edges_args *in, struct json_writer *out,
	struct failure *f);

enum graph_direction { GRAPH_UPSTREAM = 1, GRAPH_DOWNSTREAM = 2, GRAPH_BOTH = 3 };
struct dep_graph_args {
	struct arg_str item;
	struct arg_int direction; /* unset: GRAPH_DOWNSTREAM */
	struct arg_ints types;	  /* unset: BLOCKS */
	struct arg_int max_nodes;
};
int dep_graph(struct snapshot *s, struct call *call, const struct dep_graph_args *in, struct json_writer *out,
	struct failure *f);

struct dep_backlinks_args {
	struct arg_str item;
	struct arg_int limit;
	struct arg_str cursor;
};
int dep_backlinks(struct snapshot *s, struct call *call, const struct dep_backlinks_args *in,
	struct json_writer *out, struct failure *f);

struct dep_blocked_args {
	struct filter_args filter;
	struct arg_bool include_blockers; /* unset: true */
	struct arg_int limit;
	struct arg_str cursor;
};
int dep_blocked(struct snapshot *s, struct call *call, const struct dep_blocked_args *in, struct json_writer *out,
	struct failure *f);

/* ---- for others ---- */

/* One edge between two items, as stored (no alias): self edge, duplicate, cycle, then the row and its event.
 * `unblock_at` is a role, or -1 for none given. */
struct dep_edge {
	const struct item *from, *to;
	enum dep_type type;
	int64_t unblock_at;
};
#define DEP_NO_THRESHOLD (-1)
int dep_insert(struct tx *tx, struct call *call, const struct dep_edge *edge, struct id *out_id, struct failure *f);

/* Would a BLOCKS edge from -> to close a cycle? 1 with the closed path (from, to, …, from), shortest, ties by
 * ascending id; 0 no; -1 failure. Each item is visited at most twice, whatever the number of paths. */
int dep_cycle(struct snapshot *s, int64_t from_n, int64_t to_n, int64_t **out_path, size_t *out_count,
	struct failure *f);
/* CYCLE_DETECTED; a path that would not fit an answer keeps both ends and says how long it is. */
int fail_cycle(struct snapshot *s, struct call *call, const int64_t *path, size_t n, struct failure *f);

#endif
