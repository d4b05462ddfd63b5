/* items_write: make items, change what they say, move and delete them. */
#include "tools/advance_fields.h"
#include "tools/item_fields.h"
#include "tools/tree_fields.h"

/* clang-format off */
static const struct field create_fields[] = {
	ITEM_FIELDS(struct create_args, item, REQUIRED, 0),
	FIELD(struct create_args, parent, "parentId", FIELD_ID, NULLABLE, .fallback = "null", .help = "null: a new root"),
	ITEM_FIELDS_END,
};

static const struct field update_fields[] = {
	FIELD(struct update_args, item, "itemId", FIELD_ID, REQUIRED),
	ITEM_FIELDS(struct update_args, set, NOT_NULL, NULLABLE),
	FIELD(struct update_args, parent, "parentId", FIELD_ID, NULLABLE, .help = "as reroot"),
	FIELD(struct update_args, expected_version, "expectedVersion", FIELD_INT, 0, .min = 1, .max = INT64_MAX),
	ITEM_FIELDS_END,
};

static const struct field delete_fields[] = {
	FIELD(struct delete_args, item, "itemId", FIELD_ID, REQUIRED),
	FIELD(struct delete_args, recursive, "recursive", FIELD_BOOL, 0, .fallback = "false", .help = "with all below it"),
	FIELD(struct delete_args, expected_version, "expectedVersion", FIELD_INT, 0, .min = 1, .max = INT64_MAX),
	FIELD(struct delete_args, confirm_title, "confirmTitle", FIELD_STR, 0, .max = LIMIT_TITLE_CHARS,
		.help = "the title, for roots of type project"),
	FIELDS_END,
};

static const struct field reroot_fields[] = {
	FIELD(struct reroot_args, item, "itemId", FIELD_ID, REQUIRED),
	FIELD(struct reroot_args, parent, "parentId", FIELD_ID, NULLABLE, .help = "required; null: a root of its own"),
	FIELD(struct reroot_args, expected_version, "expectedVersion", FIELD_INT, 0, .min = 1, .max = INT64_MAX),
	FIELDS_END,
};
/* clang-format on */

static int create(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return items_create(tx, call, args, out, f);
}

static int create_check(const void *args, struct str path, struct failure *f)
{
	const struct create_args *in = args;

	return item_fields_check(&in->item, path, f);
}

static int update(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return items_update(tx, call, args, out, f);
}

static int update_check(const void *args, struct str path, struct failure *f)
{
	const struct update_args *in = args;

	return item_fields_check(&in->set, path, f);
}

static int delete(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return items_delete(tx, call, args, out, f);
}

static int reroot(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return items_reroot(tx, call, args, out, f);
}

/* null is a value here, so its absence cannot stand for it. */
static int reroot_check(const void *args, struct str path, struct failure *f)
{
	const struct reroot_args *in = args;

	if (in->parent.set)
		return 0;
	return fail_field(f, str_printf(f->arena, "%.*sparentId", STRF(path)), STR_NONE,
		"is required; null makes the item a root");
}

static int create_tree(struct tx *tx, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return items_create_tree(tx, call, args, out, f);
}

static int complete_tree(struct tx *tx, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return items_complete_tree(tx, call, args, out, f);
}

static const struct operation ops[] = {
	{
		.name = "create",
		.summary = "Make one item, in queue.",
		.fields = create_fields,
		.args_size = sizeof(struct create_args),
		.profiles = PROFILE_WORK | PROFILE_KNOWLEDGE,
		.capability = CAP_WRITE_ITEMS,
		.change = create,
		.check = create_check,
		.replayed = items_create_again,
		.returns = "{id,version,role,depth,rootId,schemaMatch,expectedNotes?,availableTraits?,cascadeEvents?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN, FAIL_INVALID_TRANSITION, FAIL_UNAVAILABLE),
		.example = "{\"ops\":[{\"op\":\"create\",\"title\":\"Booking screens\",\"parentId\":\"c41f9e02\"}]}",
	},
	{
		.name = "update",
		.summary = "Change what an item says of itself; roles change by advance.",
		.fields = update_fields,
		.args_size = sizeof(struct update_args),
		.profiles = PROFILE_WORK | PROFILE_KNOWLEDGE,
		.capability = CAP_WRITE_ITEMS,
		.change = update,
		.check = update_check,
		.returns = "{id,version,changed?,expectedNotes?,cascadeEvents?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN, FAIL_VERSION_CONFLICT, FAIL_CYCLE_DETECTED,
			FAIL_INVALID_TRANSITION),
		.example = "{\"ops\":[{\"op\":\"update\",\"itemId\":\"9a60c7d1\",\"priority\":\"high\",\"expectedVersion\":3}]}",
	},
	{
		.name = "delete",
		.summary = "Delete an item; with recursive, all below it.",
		.fields = delete_fields,
		.args_size = sizeof(struct delete_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_WRITE_ITEMS,
		.change = delete,
		.returns = "{id,deleted,notes,dependencies,cascadeEvents?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN, FAIL_VERSION_CONFLICT, FAIL_NOT_CLAIM_HOLDER,
			FAIL_PAYLOAD_TOO_LARGE),
		.example = "{\"ops\":[{\"op\":\"delete\",\"itemId\":\"71c8f3e6\",\"recursive\":true}]}",
		.frees_space = true,
	},
	{
		.name = "create_tree",
		.summary = "Make a tree of items with their dependencies and notes: all of it or nothing.",
		.fields = create_tree_fields,
		.args_size = sizeof(struct create_tree_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_WRITE_ITEMS,
		.change = create_tree,
		.check = create_tree_check,
		.also_needs = create_tree_needs,
		.returns = "{root,children?,deps?,notes?,adopted?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN, FAIL_INVALID_TRANSITION, FAIL_DUPLICATE,
			FAIL_CYCLE_DETECTED, FAIL_SCHEMA_VIOLATION, FAIL_NOTE_TOO_LONG, FAIL_UNAVAILABLE),
		.example = "{\"ops\":[{\"op\":\"create_tree\",\"root\":{\"title\":\"Berth booking\"},\"children\":"
			   "[{\"ref\":\"tides\",\"title\":\"Tide table import\"},{\"ref\":\"api\",\"title\":\"Booking API\"}],"
			   "\"deps\":[{\"from\":\"tides\",\"to\":\"api\"}]}]}",
	},
	{
		.name = "complete_tree",
		.summary = "Complete or cancel a subtree or a set of items, in the order of their dependencies. What waits for a refused "
			   "one, or stands above it, is skipped.",
		.fields = complete_tree_fields,
		.args_size = sizeof(struct complete_tree_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_WRITE_ITEMS | CAP_ADVANCE,
		.change = complete_tree,
		.check = complete_tree_check,
		.returns = "{items,counts}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN, FAIL_PAYLOAD_TOO_LARGE, FAIL_PARTIAL_FAILURE),
		.example = "{\"ops\":[{\"op\":\"complete_tree\",\"itemId\":\"c41f9e02\",\"trigger\":\"cancel\"}]}",
		.is_whole = true,
	},
	{
		.name = "reroot",
		.summary = "Give an item another parent; all below it moves along.",
		.fields = reroot_fields,
		.args_size = sizeof(struct reroot_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_WRITE_ITEMS,
		.change = reroot,
		.check = reroot_check,
		.returns = "{id,version,parentId?,rootId,depth,moved,cascadeEvents?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN, FAIL_VERSION_CONFLICT, FAIL_CYCLE_DETECTED,
			FAIL_INVALID_TRANSITION, FAIL_PAYLOAD_TOO_LARGE),
		.example = "{\"ops\":[{\"op\":\"reroot\",\"itemId\":\"71c8f3e6\",\"parentId\":null}]}",
	},
};

const struct tool tool_items_write = {
	.name = "items_write",
	.title = "Write items",
	.description = "Make, change, move, complete and delete work items, alone or as a tree.",
	.ops = ops,
	.op_count = sizeof(ops) / sizeof(ops[0]),
	.is_destructive = true,
};
