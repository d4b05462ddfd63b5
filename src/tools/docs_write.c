/* docs_write: plans, rules and pages of a project. */
#include "tools/tool.h"

#include "base/limits.h"
#include "work/docs.h"

static const struct field put_fields[] = {
	FIELD(struct doc_put_args, kind, "kind", FIELD_WORD, REQUIRED | FOLDED, .words = document_kind_words),
	FIELD(struct doc_put_args, slug, "slug", FIELD_STR, 0, .group = "name", .legal = document_is_slug,
		.syntax = "lower-case words of a-z, 0-9, '.', '_' and '-', parted by '/', 120 characters at most"),
	FIELD(struct doc_put_args, key, "key", FIELD_STR, 0, .group = "name", .legal = rules_is_rule_key,
		.syntax = "a rule key", .help = "of a rule; its slug is rule/<key>"),
	FIELD(struct doc_put_args, root, "rootId", FIELD_ID, 0),
	FIELD(struct doc_put_args, title, "title", FIELD_STR, NULLABLE, .max = LIMIT_DOC_TITLE_CHARS),
	FIELD(struct doc_put_args, body, "body", FIELD_STR, IN_BYTES, .max = LIMIT_NOTE_BYTES, .group = "body"),
	FIELD(struct doc_put_args, body_from_file, "bodyFromFile", FIELD_STR, 0, .max = 4096, .group = "body",
		.help = "relative to the configuration directory; local callers only"),
	FIELD(struct doc_put_args, expected_version, "expectedVersion", FIELD_INT, 0, .min = 0, .max = INT64_MAX,
		.help = "0: must not exist"),
	FIELDS_END,
};

static const struct field restore_fields[] = {
	DOCUMENT_TARGET_FIELDS(struct doc_restore_args, target),
	FIELD(struct doc_restore_args, version, "version", FIELD_INT, REQUIRED, .min = 1, .max = INT64_MAX),
	FIELDS_END,
};

static const struct field delete_fields[] = {
	DOCUMENT_TARGET_FIELDS(struct doc_delete_args, target),
	FIELD(struct doc_delete_args, expected_version, "expectedVersion", FIELD_INT, 0, .min = 1,
		.max = INT64_MAX),
	FIELDS_END,
};

static int put_check(const void *args, struct str path, struct failure *f)
{
	return doc_put_check(args, path, f);
}

static int put_prepare(struct call *call, void *args, struct failure *f)
{
	return doc_put_prepare(call, args, f);
}

static int put(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return doc_put(tx, call, args, out, f);
}

static int restore(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return doc_restore(tx, call, args, out, f);
}

static int erase(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return doc_delete(tx, call, args, out, f);
}

#define WRITERS (PROFILE_WORK | PROFILE_KNOWLEDGE)

static const struct operation ops[] = {
	{
		.name = "put",
		.summary = "Write a document: create it, or its next version.",
		.fields = put_fields,
		.args_size = sizeof(struct doc_put_args),
		.profiles = WRITERS,
		.capability = CAP_WRITE_CONFIG,
		.change = put,
		.check = put_check,
		.prepare = put_prepare,
		.returns = "{docId,slug,version,created,unchanged?,contentHash,anchors?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_VERSION_CONFLICT, FAIL_PAYLOAD_TOO_LARGE,
			FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"put\",\"kind\":\"page\",\"rootId\":\"5b7d20c4\",\"slug\":\"glossary\","
			   "\"title\":\"Glossary\",\"body\":\"# Glossary\",\"expectedVersion\":0}]}",
	},
	{
		.name = "delete",
		.summary = "Delete a document with all its versions.",
		.fields = delete_fields,
		.args_size = sizeof(struct doc_delete_args),
		.profiles = WRITERS,
		.capability = CAP_WRITE_CONFIG,
		.change = erase,
		.returns = "{docId,deleted}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_VERSION_CONFLICT, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"delete\",\"rootId\":\"5b7d20c4\",\"slug\":\"glossary\"}]}",
		.frees_space = true,
	},
	{
		.name = "restore",
		.summary = "Write a kept version's text as a new version.",
		.fields = restore_fields,
		.args_size = sizeof(struct doc_restore_args),
		.profiles = WRITERS,
		.capability = CAP_WRITE_CONFIG,
		.change = restore,
		.returns = "{docId,version,restoredFrom}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"restore\",\"docId\":\"d8a1340f\",\"version\":1}]}",
	},
};

const struct tool tool_docs_write = {
	.name = "docs_write",
	.title = "Write documents",
	.description = "Write a project's plans, rules and pages: put, delete, restore.",
	.ops = ops,
	.op_count = sizeof(ops) / sizeof(ops[0]),
	.is_destructive = true,
};
