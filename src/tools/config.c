/* config: the rules of projects. */
#include "tools/tool.h"

#include "base/limits.h"
#include "work/config.h"

#define FINGERPRINT .min = 1, .max = 64

static const struct field current_fields[] = {
	FIELD(struct config_current_args, root, "rootId", FIELD_ID, 0, .help = "without it: the global document"),
	FIELD(struct config_current_args, include_text, "includeText", FIELD_BOOL, 0, .fallback = "true"),
	FIELDS_END,
};
static const struct field effective_fields[] = {
	FIELD(struct config_effective_args, root, "rootId", FIELD_ID, 0),
	FIELDS_END,
};
static const struct field versions_fields[] = {
	FIELD(struct config_versions_args, root, "rootId", FIELD_ID, 0),
	FIELD(struct config_versions_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_CONFIG_VERSIONS,
		.fallback = "20"),
	FIELD(struct config_versions_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_END,
};
static const struct field relation_fields[] = {
	FIELD(struct config_relation_args, root, "rootId", FIELD_ID, 0),
	FIELD(struct config_relation_args, fingerprint, "fingerprint", FIELD_STR, REQUIRED, FINGERPRINT),
	FIELDS_END,
};
static const struct field rules_fields[] = {
	FIELD(struct config_rules_args, root, "rootId", FIELD_ID, REQUIRED),
	FIELDS_END,
};

static const struct field push_fields[] = {
	FIELD(struct config_push_args, root, "rootId", FIELD_ID, REQUIRED),
	FIELD(struct config_push_args, yaml, "yaml", FIELD_STR, REQUIRED | IN_BYTES, .max = LIMIT_CONFIG_BYTES),
	FIELD(struct config_push_args, force, "force", FIELD_BOOL, 0, .fallback = "false",
		.help = "store an earlier text, or another project's"),
	FIELD(struct config_push_args, expected_fingerprint, "expectedFingerprint", FIELD_STR, 0, FINGERPRINT),
	FIELD(struct config_push_args, dry_run, "dryRun", FIELD_BOOL, 0, .fallback = "false"),
	FIELDS_END,
};
static const struct field validate_fields[] = {
	FIELD(struct config_validate_args, yaml, "yaml", FIELD_STR, REQUIRED | IN_BYTES, .max = LIMIT_CONFIG_BYTES),
	FIELD(struct config_validate_args, root, "rootId", FIELD_ID, 0, .help = "adds impact"),
	FIELDS_END,
};
static const struct field rollback_fields[] = {
	FIELD(struct config_rollback_args, root, "rootId", FIELD_ID, REQUIRED),
	FIELD(struct config_rollback_args, version, "version", FIELD_INT, REQUIRED, .min = 1, .max = INT64_MAX,
		.help = "a kept version, not the present one"),
	FIELDS_END,
};

static int current(struct snapshot *s, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return config_current(s, call, args, out, f);
}

static int effective(struct snapshot *s, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return config_effective(s, call, args, out, f);
}

static int versions(struct snapshot *s, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return config_versions(s, call, args, out, f);
}

static int relation(struct snapshot *s, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return config_relation(s, call, args, out, f);
}

static int rules(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return config_rules(s, call, args, out, f);
}

static int push(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return config_push(tx, call, args, out, f);
}

static int validate(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return config_validate(tx, call, args, out, f);
}

static int rollback(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return config_rollback(tx, call, args, out, f);
}

static const struct operation selects[] = {
	{
		.name = "current",
		.summary = "The stored document of a project, or the global one.",
		.fields = current_fields,
		.args_size = sizeof(struct config_current_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_READ,
		.read = current,
		.returns = "{rootId?,version,fingerprint,updatedAt,bytes,yaml?,schemaWarnings?,ignoredSections?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID),
		.example = "{\"select\":\"current\",\"rootId\":\"5b7d20c4\",\"includeText\":false}",
	},
	{
		.name = "effective",
		.summary = "What holds for a project: both layers merged.",
		.fields = effective_fields,
		.args_size = sizeof(struct config_effective_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_READ,
		.read = effective,
		.returns = "{resolution,types,traits,noteLimits,noteOwnership,statusLabels,independence,resources?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_UNAVAILABLE),
		.example = "{\"select\":\"effective\",\"rootId\":\"5b7d20c4\"}",
	},
	{
		.name = "versions",
		.summary = "Kept versions, newest first.",
		.fields = versions_fields,
		.args_size = sizeof(struct config_versions_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_READ,
		.read = versions,
		.returns = "{versions:[{version,fingerprint,source,pushedAt,actor?}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR),
		.example = "{\"select\":\"versions\",\"rootId\":\"5b7d20c4\",\"limit\":1}",
	},
	{
		.name = "relation",
		.summary = "How a text, by its fingerprint, stands to the stored one.",
		.fields = relation_fields,
		.args_size = sizeof(struct config_relation_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_READ,
		.read = relation,
		.returns = "{relation:current|superseded|unknown,currentFingerprint?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID),
		.example = "{\"select\":\"relation\",\"rootId\":\"5b7d20c4\",\"fingerprint\":"
			   "\"220749d3c1d8c6c1a0b5f2f9f3a3f2e5b1d4c7a8e9f0a1b2c3d4e5f6a7b8c9d0\"}",
	},
	{
		.name = "rules",
		.summary = "Rule keys that the document refers to.",
		.fields = rules_fields,
		.args_size = sizeof(struct config_rules_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_READ,
		.read = rules,
		.returns = "{rules:[{key,usedBy:[{type,noteKey}],stored,rulesVersion?}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_UNAVAILABLE),
		.example = "{\"select\":\"rules\",\"rootId\":\"5b7d20c4\"}",
	},
};

static const struct operation ops[] = {
	{
		.name = "push",
		.summary = "Store a project's document; it holds from the next call on.",
		.fields = push_fields,
		.args_size = sizeof(struct config_push_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_WRITE_CONFIG,
		.change = push,
		.returns = "{rootId,version,fingerprint,changed,schemaWarnings?,ignoredSections?}",
		ERRORS(FAIL_CONFIG_INVALID, FAIL_VERSION_CONFLICT, FAIL_PAYLOAD_TOO_LARGE, FAIL_NOT_FOUND,
			FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"push\",\"rootId\":\"5b7d20c4\",\"yaml\":\"work_item_schemas: {}\\n\"}]}",
	},
	{
		.name = "validate",
		.summary = "Check a document without storing it.",
		.fields = validate_fields,
		.args_size = sizeof(struct config_validate_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_READ,
		.change = validate,
		.returns = "{valid,fingerprint,schemaWarnings?,ignoredSections?,impact?:{items,newlyGated,noLongerGated}}",
		ERRORS(FAIL_CONFIG_INVALID, FAIL_PAYLOAD_TOO_LARGE, FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID),
		.example = "{\"ops\":[{\"op\":\"validate\",\"yaml\":\"traits: {}\\n\"}]}",
	},
	{
		.name = "rollback",
		.summary = "Store a kept version again, as a new one.",
		.fields = rollback_fields,
		.args_size = sizeof(struct config_rollback_args),
		.profiles = PROFILE_WORK,
		.capability = CAP_WRITE_CONFIG,
		.change = rollback,
		.returns = "{rootId,version,fingerprint,changed,rolledBackTo}",
		ERRORS(FAIL_CONFIG_INVALID, FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"rollback\",\"rootId\":\"5b7d20c4\",\"version\":6}]}",
	},
};

const struct tool tool_config = {
	.name = "config",
	.title = "Project rules",
	.description = "Rules of a project: read (select) or push, validate, rollback (ops).",
	.selects = selects,
	.select_count = sizeof(selects) / sizeof(selects[0]),
	.ops = ops,
	.op_count = sizeof(ops) / sizeof(ops[0]),
	.is_destructive = true,
};
