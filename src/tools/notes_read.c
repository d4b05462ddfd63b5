/* notes_read: the texts of items; lists are metadata, bodies come when asked for. */
#include "tools/tool.h"

#include "base/limits.h"
#include "work/notes.h"

static const struct word phase_words[] = {
	{"queue", ROLE_QUEUE},
	{"work", ROLE_WORK},
	{"review", ROLE_REVIEW},
	WORDS_END,
};

#define EXTRA_HELP "body, actor, verification, createdAt, modifiedAt, sha256, headings"

static const struct field list_fields[] = {
	FIELD(struct note_list_args, item, "itemId", FIELD_ID, 0, .group = "items"),
	FIELD(struct note_list_args, items, "itemIds", FIELD_IDS, 0, .group = "items", .min = 1,
		.max = LIMIT_GET_ITEMS),
	FIELD(struct note_list_args, role, "role", FIELD_WORD, FOLDED, .words = phase_words),
	FIELD(struct note_list_args, keys, "keys", FIELD_STRS, UNIQUE_ENTRIES, .min = 1, .max = LIMIT_LONG_PAGE,
		.item_max = LIMIT_NOTE_KEY_CHARS),
	FIELD(struct note_list_args, fields, "fields", FIELD_STRS, UNIQUE_ENTRIES, .help = EXTRA_HELP),
	FIELD(struct note_list_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LONG_PAGE,
		.fallback = "100"),
	FIELD(struct note_list_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_END,
};

static const struct field get_fields[] = {
	FIELD(struct note_get_args, note, "noteId", FIELD_ID, 0, .group = "target"),
	FIELD(struct note_get_args, item, "itemId", FIELD_ID, 0, .group = "target", .help = "with key"),
	FIELD(struct note_get_args, key, "key", FIELD_STR, 0, .min = 1, .max = LIMIT_NOTE_KEY_CHARS),
	FIELD(struct note_get_args, section, "section", FIELD_STR, 0, .max = LIMIT_NOTE_BYTES,
		.help = "anchor of a heading"),
	FIELD(struct note_get_args, offset, "offset", FIELD_INT, 0, .min = 0, .max = LIMIT_NOTE_BYTES,
		.fallback = "0", .help = "in characters"),
	FIELD(struct note_get_args, max_chars, "maxChars", FIELD_INT, 0, .min = 1, .max = LIMIT_NOTE_BYTES),
	FIELD(struct note_get_args, version, "version", FIELD_INT, 0, .min = 1, .max = INT64_MAX,
		.help = "a kept revision"),
	FIELD(struct note_get_args, fields, "fields", FIELD_STRS, UNIQUE_ENTRIES, .help = EXTRA_HELP),
	FIELDS_END,
};

static const struct field revisions_fields[] = {
	FIELD(struct note_revisions_args, note, "noteId", FIELD_ID, 0, .group = "target"),
	FIELD(struct note_revisions_args, item, "itemId", FIELD_ID, 0, .group = "target", .help = "with key"),
	FIELD(struct note_revisions_args, key, "key", FIELD_STR, 0, .min = 1, .max = LIMIT_NOTE_KEY_CHARS),
	FIELD(struct note_revisions_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_NOTE_REVISIONS,
		.fallback = "20"),
	FIELD(struct note_revisions_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_END,
};

static int list_check(const void *args, struct str path, struct failure *f)
{
	return note_list_check(args, path, f);
}

static int get_check(const void *args, struct str path, struct failure *f)
{
	return note_get_check(args, path, f);
}

static int revisions_check(const void *args, struct str path, struct failure *f)
{
	return note_revisions_check(args, path, f);
}

static int list(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return note_list(s, call, args, out, f);
}

static int get(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return note_get(s, call, args, out, f);
}

static int revisions(struct snapshot *s, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return note_revisions(s, call, args, out, f);
}

static const struct operation selects[] = {
	{
		.name = "list",
		.summary = "Notes of an item: metadata, in schema order.",
		.fields = list_fields,
		.args_size = sizeof(struct note_list_args),
		.profiles = PROFILE_WORK | PROFILE_KNOWLEDGE,
		.capability = CAP_READ,
		.read = list,
		.check = list_check,
		.returns = "{notes:[{id,key,role,version,bodyLength,itemId?,seat?,filled?,body?}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR),
		.example = "{\"select\":\"list\",\"itemId\":\"9a60c7d1\",\"role\":\"queue\"}",
	},
	{
		.name = "get",
		.summary = "One note with its text, or a part or an earlier version of it.",
		.fields = get_fields,
		.args_size = sizeof(struct note_get_args),
		.profiles = PROFILE_WORK | PROFILE_KNOWLEDGE,
		.capability = CAP_READ,
		.read = get,
		.check = get_check,
		.returns = "{note:{id,itemId,key,role,version,bodyLength,body,truncated?,nextOffset?}}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_SEAT_FORBIDDEN),
		.example = "{\"select\":\"get\",\"itemId\":\"9a60c7d1\",\"key\":\"requirements\"}",
		.is_quick = true,
	},
	{
		.name = "revisions",
		.summary = "Kept versions of a note, newest first.",
		.fields = revisions_fields,
		.args_size = sizeof(struct note_revisions_args),
		.profiles = PROFILE_WORK | PROFILE_KNOWLEDGE,
		.capability = CAP_READ,
		.read = revisions,
		.check = revisions_check,
		.returns = "{revisions:[{version,role,bodyLength,writtenAt,actor?}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID),
		.example = "{\"select\":\"revisions\",\"noteId\":\"e2b4068f\"}",
	},
};

const struct tool tool_notes_read = {
	.name = "notes_read",
	.title = "Read notes",
	.description = "Read notes of work items: list (metadata), get (text), revisions.",
	.selects = selects,
	.select_count = sizeof(selects) / sizeof(selects[0]),
};
