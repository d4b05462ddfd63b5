/* work/tree.h - create_tree: items, edges between them, notes and the adoption of a plan, all or nothing. */
#ifndef DAIS_WORK_TREE_H
#define DAIS_WORK_TREE_H

#include "work/items.h"

struct tree_root_args {
	struct arg_str id; /* below this item, which stands alone in the object */
	struct item_fields item;
	struct arg_str parent;
};
struct tree_anchor_args {
	struct arg_str note_key;
	struct arg_int role; /* enum role */
	struct arg_str anchor;
};
struct tree_child_args {
	struct item_fields item;
	struct arg_str ref, parent_ref; /* unset: root */
	struct arg_objects anchors;	/* struct tree_anchor_args */
};
struct tree_dep_args {
	struct arg_str from, to; /* refs */
	struct arg_int type;	 /* enum dep_type; unset: BLOCKS */
	struct arg_int unblock_at;
};
struct tree_note_args {
	struct arg_str item_ref, key;
	struct arg_int role;
	struct arg_str body;
};
struct tree_doc_args {
	struct arg_str slug, root;
};
struct create_tree_args {
	struct arg_object root;	     /* struct tree_root_args */
	struct arg_objects children; /* struct tree_child_args */
	struct arg_objects deps;     /* struct tree_dep_args */
	struct arg_objects notes;    /* struct tree_note_args */
	struct arg_bool create_notes;
	struct arg_object doc; /* struct tree_doc_args */
};

/* Everything that can be wrong without looking into the store, but parents that close a ring. */
int items_create_tree_check(const struct create_tree_args *in, struct str path, struct failure *f);
int items_create_tree(struct tx *tx, struct call *call, const struct create_tree_args *in, struct json_writer *out,
	struct failure *f);

/* Number of the item that `ref` names: 0 the root, i + 1 child i; -1 none. */
int tree_find(const struct create_tree_args *in, struct str ref);

#endif
