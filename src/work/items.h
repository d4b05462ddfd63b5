/* work/items.h - the operations of items_read and items_write that are about the graph itself.
 *
 * Arguments are filled from the field tables of tools/items_read.c and tools/items_write.c. What advances items
 * (gate, next, complete_tree) is in work/advance.h, search in work/search.h. */
#ifndef DAIS_WORK_ITEMS_H
#define DAIS_WORK_ITEMS_H

#include "base/field.h"
#include "work/filter.h"
#include "work/work.h"

/* ---- writing ---- */

/* What an item says of itself. */
struct item_fields {
	struct arg_str title, summary, description;
	struct arg_int priority, complexity;
	struct arg_str type;
	struct arg_strs tags, traits;
	struct arg_bool requires_verification;
	struct arg_json properties;
	struct arg_str metadata;
};

/* Legal tag: ^[a-z0-9][a-z0-9-]*$ */
bool item_is_tag(struct str text);
/* A "traits" member inside properties is a mistake worth telling: fault at `path`. */
int item_fields_check(const struct item_fields *fields, struct str path, struct failure *f);

struct create_args {
	struct item_fields item;
	struct arg_str parent; /* null or unset: a new root */
};
int items_create(struct tx *tx, struct call *call, const struct create_args *in, struct json_writer *out,
	struct failure *f);
/* The advice of an answer that is given again, as of now. */
int items_create_again(struct tx *tx, struct call *call, const json_t *stored, struct json_writer *out,
	struct failure *f);

struct update_args {
	struct arg_str item;
	struct item_fields set; /* null clears where the column may be empty */
	struct arg_str parent;	/* set: also a reroot */
	struct arg_int expected_version;
};
int items_update(struct tx *tx, struct call *call, const struct update_args *in, struct json_writer *out,
	struct failure *f);

struct delete_args {
	struct arg_str item;
	struct arg_bool recursive;
	struct arg_int expected_version;
	struct arg_str confirm_title;
};
int items_delete(struct tx *tx, struct call *call, const struct delete_args *in, struct json_writer *out,
	struct failure *f);

struct reroot_args {
	struct arg_str item, parent; /* null: a root of its own */
	struct arg_int expected_version;
};
int items_reroot(struct tx *tx, struct call *call, const struct reroot_args *in, struct json_writer *out,
	struct failure *f);

/* ---- reading ---- */

struct get_args {
	struct arg_str item;
	struct arg_strs items;
	struct arg_strs fields;
};
int items_get(struct snapshot *s, struct call *call, const struct get_args *in, struct json_writer *out,
	struct failure *f);

enum claim_status { CLAIM_STATUS_CLAIMED, CLAIM_STATUS_UNCLAIMED, CLAIM_STATUS_EXPIRED };
enum sort_key { SORT_CREATED, SORT_PRIORITY, SORT_MODIFIED, SORT_ROLE_CHANGED, SORT_TITLE, SORT_COMPLEXITY };
enum sort_dir { SORT_ASC, SORT_DESC };
struct list_args {
	struct filter_args filter;
	struct arg_bool exclude_terminal;
	struct arg_int claim_status; /* enum claim_status */
	struct arg_int sort_by, sort_dir;
	struct arg_int limit;
	struct arg_str cursor;
	struct arg_strs fields;
};
int items_list(struct snapshot *s, struct call *call, const struct list_args *in, struct json_writer *out,
	struct failure *f);

struct overview_args {
	struct arg_str item, anchor;
	struct arg_bool include_children, exclude_terminal;
	struct arg_int limit;
	struct arg_str cursor;
	struct arg_strs fields;
};
int items_overview(struct snapshot *s, struct call *call, const struct overview_args *in, struct json_writer *out,
	struct failure *f);

struct context_args {
	struct arg_str ancestor, root;
	struct arg_int since;
	struct arg_int limit;
	struct arg_strs fields;
};
/* Faults for names other than ancestors, missing and blockers. */
int context_fields_check(const struct arg_strs *fields, struct str path, struct failure *f);
int items_context(struct snapshot *s, struct call *call, const struct context_args *in, struct json_writer *out,
	struct failure *f);

struct schema_args {
	struct arg_str item, type, root;
};
int items_schema(struct snapshot *s, struct call *call, const struct schema_args *in, struct json_writer *out,
	struct failure *f);

struct history_args {
	struct arg_str item, ancestor, root;
	struct arg_int since, until;
	struct arg_ints triggers; /* enum trigger */
	struct arg_bool include_cascades; /* unset: true */
	struct arg_int limit;
	struct arg_str cursor;
};
int items_history(struct snapshot *s, struct call *call, const struct history_args *in, struct json_writer *out,
	struct failure *f);

#endif
