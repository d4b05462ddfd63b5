/* deps_write: make and remove edges between items. */
#include "tools/tool.h"

#include "base/limits.h"
#include "work/deps.h"

static const struct word pattern_words[] = {
	{"linear", DEP_LINEAR},
	{"fan-out", DEP_FAN_OUT},
	{"fan-in", DEP_FAN_IN},
	WORDS_END,
};
static const struct word threshold_words[] = {
	{"queue", ROLE_QUEUE},
	{"work", ROLE_WORK},
	{"review", ROLE_REVIEW},
	{"terminal", ROLE_TERMINAL},
	WORDS_END,
};

static const struct field create_fields[] = {
	FIELD(struct dep_create_args, pattern, "pattern", FIELD_WORD, FOLDED, .words = pattern_words,
		.help = "without it: one edge from -> to"),
	FIELD(struct dep_create_args, from, "from", FIELD_IDS, ID_OR_IDS, .min = 1, .max = LIMIT_OPS_PER_CALL,
		.help = "one id; several for fan-in"),
	FIELD(struct dep_create_args, to, "to", FIELD_IDS, ID_OR_IDS, .min = 1, .max = LIMIT_OPS_PER_CALL,
		.help = "one id; several for fan-out"),
	FIELD(struct dep_create_args, items, "itemIds", FIELD_IDS, 0, .min = 2, .max = LIMIT_OPS_PER_CALL,
		.help = "linear: each blocks the next"),
	FIELD(struct dep_create_args, type, "type", FIELD_WORD, FOLDED, .words = dep_type_words, .fallback = "BLOCKS"),
	FIELD(struct dep_create_args, unblock_at, "unblockAt", FIELD_WORD, FOLDED, .words = threshold_words,
		.fallback = "terminal"),
	FIELDS_END,
};

static const struct field delete_fields[] = {
	FIELD(struct dep_delete_args, dep, "depId", FIELD_ID, 0, .group = "target"),
	FIELD(struct dep_delete_args, from, "from", FIELD_ID, 0, .group = "target", .help = "with to"),
	FIELD(struct dep_delete_args, to, "to", FIELD_ID, 0),
	FIELD(struct dep_delete_args, type, "type", FIELD_WORD, FOLDED, .words = dep_type_words,
		.help = "with from and to; without it any type"),
	FIELD(struct dep_delete_args, item, "itemId", FIELD_ID, 0, .group = "target", .help = "with all:true"),
	FIELD(struct dep_delete_args, all, "all", FIELD_BOOL, 0, .fallback = "false"),
	FIELDS_END,
};

static int create_check(const void *args, struct str path, struct failure *f)
{
	return dep_create_check(args, path, f);
}

static int create(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return dep_create(tx, call, args, out, f);
}

static int erase_check(const void *args, struct str path, struct failure *f)
{
	return dep_delete_check(args, path, f);
}

static int erase(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return dep_delete(tx, call, args, out, f);
}

static const struct operation ops[] = {
	{
		.name = "create",
		.summary = "Make one edge, or a pattern of edges, all or none.",
		.fields = create_fields,
		.args_size = sizeof(struct dep_create_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_MANAGE_DEPENDENCIES,
		.change = create,
		.check = create_check,
		.returns = "{id,created} or {ids,created}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_DUPLICATE, FAIL_CYCLE_DETECTED, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"create\",\"pattern\":\"linear\",\"itemIds\":[\"9a60c7d1\",\"71c8f3e6\"],"
			   "\"unblockAt\":\"review\"}]}",
	},
	{
		.name = "delete",
		.summary = "Remove edges by id, by their ends, or all of an item.",
		.fields = delete_fields,
		.args_size = sizeof(struct dep_delete_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_MANAGE_DEPENDENCIES,
		.change = erase,
		.check = erase_check,
		.returns = "{deleted,unblockedItems?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"delete\",\"from\":\"0e93ab57\",\"to\":\"9a60c7d1\"}]}",
		.frees_space = true,
	},
};

const struct tool tool_deps_write = {
	.name = "deps_write",
	.title = "Write dependencies",
	.description = "Make and remove dependencies between work items: create, delete.",
	.ops = ops,
	.op_count = sizeof(ops) / sizeof(ops[0]),
	.is_destructive = true,
};
