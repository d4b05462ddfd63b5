/* docs_read: plans, rules and pages of a project. */
#include "tools/tool.h"

#include "base/limits.h"
#include "work/docs.h"

static const struct field list_fields[] = {
	FIELD(struct doc_list_args, root, "rootId", FIELD_ID, 0),
	FIELD(struct doc_list_args, kinds, "kinds", FIELD_WORDS, FOLDED | UNIQUE_ENTRIES,
		.words = document_kind_words, .min = 1, .max = 3),
	FIELD(struct doc_list_args, status, "status", FIELD_WORD, FOLDED, .words = document_status_words),
	FIELD(struct doc_list_args, prefix, "slugPrefix", FIELD_STR, 0, .min = 1, .max = LIMIT_SLUG_CHARS),
	FIELD(struct doc_list_args, fields, "fields", FIELD_STRS, UNIQUE_ENTRIES, .help = "actor"),
	FIELD(struct doc_list_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LONG_PAGE,
		.fallback = "50"),
	FIELD(struct doc_list_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_END,
};

static const struct field get_fields[] = {
	DOCUMENT_TARGET_FIELDS(struct doc_get_args, target),
	FIELD(struct doc_get_args, version, "version", FIELD_INT, 0, .min = 1, .max = INT64_MAX),
	FIELD(struct doc_get_args, offset, "offset", FIELD_INT, 0, .min = 0, .max = LIMIT_NOTE_BYTES,
		.fallback = "0", .help = "in characters"),
	FIELD(struct doc_get_args, max_chars, "maxChars", FIELD_INT, 0, .min = 1, .max = LIMIT_NOTE_BYTES),
	FIELD(struct doc_get_args, outline, "outline", FIELD_BOOL, 0, .fallback = "false",
		.help = "headings instead of the text"),
	FIELDS_END,
};

static const struct field section_fields[] = {
	DOCUMENT_TARGET_FIELDS(struct doc_section_args, target),
	FIELD(struct doc_section_args, anchor, "anchor", FIELD_STR, REQUIRED, .min = 1, .max = LIMIT_NOTE_BYTES),
	FIELD(struct doc_section_args, offset, "offset", FIELD_INT, 0, .min = 0, .max = LIMIT_NOTE_BYTES,
		.fallback = "0", .help = "in characters of the section"),
	FIELDS_END,
};

static const struct field rule_fields[] = {
	FIELD(struct doc_rule_args, root, "rootId", FIELD_ID, 0, .help = "with key"),
	FIELD(struct doc_rule_args, key, "key", FIELD_STR, 0, .group = "target", .legal = rules_is_rule_key,
		.syntax = "a rule key"),
	FIELD(struct doc_rule_args, item, "itemId", FIELD_ID, 0, .group = "target", .help = "with noteKey"),
	FIELD(struct doc_rule_args, note_key, "noteKey", FIELD_STR, 0, .min = 1, .max = LIMIT_NOTE_KEY_CHARS),
	FIELDS_END,
};

static const struct field versions_fields[] = {
	DOCUMENT_TARGET_FIELDS(struct doc_versions_args, target),
	FIELD(struct doc_versions_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_DOC_VERSIONS,
		.fallback = "50"),
	FIELD(struct doc_versions_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_END,
};

static int list_check(const void *args, struct str path, struct failure *f)
{
	return doc_list_check(args, path, f);
}

static int list(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return doc_list(s, call, args, out, f);
}

static int get(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return doc_get(s, call, args, out, f);
}

static int section(struct snapshot *s, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return doc_section(s, call, args, out, f);
}

static int rule_check(const void *args, struct str path, struct failure *f)
{
	return doc_rule_check(args, path, f);
}

static int rule(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return doc_rule(s, call, args, out, f);
}

static int versions(struct snapshot *s, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return doc_versions(s, call, args, out, f);
}

#define READERS (PROFILE_WORK | PROFILE_KNOWLEDGE)

static const struct operation selects[] = {
	{
		.name = "list",
		.summary = "Documents of a project, by slug.",
		.fields = list_fields,
		.args_size = sizeof(struct doc_list_args),
		.profiles = READERS,
		.capability = CAP_READ,
		.read = list,
		.check = list_check,
		.returns = "{documents:[{docId,kind,slug,title?,version,bytes,contentHash,status?,adoptedByItemId?,"
			   "modifiedAt}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR),
		.example = "{\"select\":\"list\",\"rootId\":\"5b7d20c4\",\"kinds\":[\"plan\"],\"status\":\"pending\"}",
	},
	{
		.name = "get",
		.summary = "One document, a part of it, or its outline.",
		.fields = get_fields,
		.args_size = sizeof(struct doc_get_args),
		.profiles = READERS,
		.capability = CAP_READ,
		.read = get,
		.returns = "{document:{docId,kind,slug,title?,version,bytes,body|outline,truncated?,nextOffset?}}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID),
		.example = "{\"select\":\"get\",\"rootId\":\"5b7d20c4\",\"slug\":\"berth-booking\",\"outline\":true}",
		.is_quick = true,
	},
	{
		.name = "section",
		.summary = "One section of a document, by the anchor of its heading.",
		.fields = section_fields,
		.args_size = sizeof(struct doc_section_args),
		.profiles = READERS,
		.capability = CAP_READ,
		.read = section,
		.returns = "{section:{docId,slug,anchor,version,body,truncated?,nextOffset?}}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID),
		.example = "{\"select\":\"section\",\"rootId\":\"5b7d20c4\",\"slug\":\"berth-booking\","
			   "\"anchor\":\"tide-tables\"}",
		.is_quick = true,
	},
	{
		.name = "rule",
		.summary = "The rule a note's skill names, or a rule by key.",
		.fields = rule_fields,
		.args_size = sizeof(struct doc_rule_args),
		.profiles = READERS,
		.capability = CAP_READ,
		.read = rule,
		.check = rule_check,
		.returns = "{rule:{key,body,rulesVersion,bytes}}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID),
		.example = "{\"select\":\"rule\",\"itemId\":\"9a60c7d1\",\"noteKey\":\"requirements\"}",
		.is_quick = true,
	},
	{
		.name = "versions",
		.summary = "Kept versions of a document, newest first.",
		.fields = versions_fields,
		.args_size = sizeof(struct doc_versions_args),
		.profiles = READERS,
		.capability = CAP_READ,
		.read = versions,
		.returns = "{versions:[{version,bytes,contentHash,writtenAt,actor?}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR),
		.example = "{\"select\":\"versions\",\"docId\":\"d8a1340f\"}",
	},
};

const struct tool tool_docs_read = {
	.name = "docs_read",
	.title = "Read documents",
	.description = "Read a project's plans, rules and pages: list, get, section, rule, versions.",
	.selects = selects,
	.select_count = sizeof(selects) / sizeof(selects[0]),
};
