/* work/structure.h - inside the work room: how items come into the graph, move in it and leave it. */
#ifndef DAIS_WORK_STRUCTURE_H
#define DAIS_WORK_STRUCTURE_H

#include "work/items.h"

/* A child may stand below `parent`: INVALID_TRANSITION on a terminal one of lifecycle auto. *reopens: it is
 * terminal and of lifecycle auto-reopen, so a child that is not terminal wakes it. `trigger` is the word of the
 * refusal ("create", "reparent"). */
int structure_admits(struct snapshot *s, struct call *call, const struct item *parent, const char *trigger,
	bool *reopens, struct failure *f);

/* The parent that the caller names for a new item, ready to take it, in `row`; *out is NULL for a root. */
int structure_parent(struct tx *tx, struct call *call, const struct arg_str *text, struct str path, struct item *row,
	const struct item **out, bool *reopens, struct failure *f);

/* A new item in queue below `parent` (NULL: a root), with its texts, tags, counts and event; warnings for a type
 * that no schema knows and traits that nobody defines. `out` is complete, `schema` resolved. */
int structure_add(struct tx *tx, struct call *call, const struct item_fields *fields, const struct item *parent,
	struct item *out, struct schema *schema, struct failure *f);

/* Tags and traits of an item in the tables that filters use. */
int structure_add_tags(struct tx *tx, int64_t item_n, const struct arg_strs *tags, struct failure *f);
int structure_add_traits(struct tx *tx, int64_t item_n, const struct arg_strs *traits, struct failure *f);
/* JSON array of texts. */
struct str structure_list(struct arena *arena, const struct arg_strs *values);
void structure_warn(struct call *call, const struct item *item, const struct schema *schema);

/* schemaMatch, expectedNotes, availableTraits: advice that is never stored. */
int structure_advice(struct snapshot *s, struct call *call, const struct item *item, const struct schema *schema,
	struct json_writer *out, struct failure *f);
/* "expectedNotes":[{key,role,required}] */
void structure_expected_notes(struct json_writer *out, const struct schema *schema);

/* Move `item` and all below it under the item that `parent` names (null: it becomes a root). `item` is as it is
 * afterwards. *moved counts items, 0 when it is there already; *reopened_parent_n is a new parent that this wakes
 * (0: none). The caller goes on with structure_follow. */
int structure_move(struct tx *tx, struct call *call, struct item *item, const struct arg_str *parent,
	struct str path, int64_t *moved, int64_t *reopened_parent_n, struct failure *f);

/* What follows from a child's arrival below `reopened_parent_n` and another's departure from `left_parent_n` (each
 * may be 0): the cascades of both, as one "cascadeEvents". */
int structure_follow(struct tx *tx, struct call *call, int64_t left_parent_n, int64_t reopened_parent_n,
	struct json_writer *out, struct failure *f);

#endif
