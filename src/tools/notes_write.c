/* notes_write: write and delete the texts of items. */
#include "tools/tool.h"

#include "base/limits.h"
#include "work/notes.h"

static const struct word phase_words[] = {
	{"queue", ROLE_QUEUE},
	{"work", ROLE_WORK},
	{"review", ROLE_REVIEW},
	WORDS_END,
};

static const struct field upsert_fields[] = {
	FIELD(struct note_upsert_args, item, "itemId", FIELD_ID, REQUIRED),
	FIELD(struct note_upsert_args, key, "key", FIELD_STR, REQUIRED | NOT_BLANK, .min = 1,
		.max = LIMIT_NOTE_KEY_CHARS),
	FIELD(struct note_upsert_args, role, "role", FIELD_WORD, FOLDED, .words = phase_words,
		.help = "required for a key that the schema does not declare"),
	FIELD(struct note_upsert_args, body, "body", FIELD_STR, IN_BYTES, .max = LIMIT_NOTE_BYTES, .group = "body"),
	FIELD(struct note_upsert_args, body_from_file, "bodyFromFile", FIELD_STR, 0, .max = 4096, .group = "body",
		.help = "relative to the configuration directory; local callers only"),
	FIELD(struct note_upsert_args, expected_version, "expectedVersion", FIELD_INT, 0, .min = 0, .max = INT64_MAX,
		.help = "0: must not exist"),
	FIELD(struct note_upsert_args, create_only, "createOnly", FIELD_BOOL, 0, .fallback = "false"),
	FIELDS_END,
};

static const struct field delete_fields[] = {
	FIELD(struct note_delete_args, note, "noteId", FIELD_ID, 0, .group = "target"),
	FIELD(struct note_delete_args, notes, "noteIds", FIELD_IDS, 0, .group = "target", .min = 1,
		.max = LIMIT_OPS_PER_CALL),
	FIELD(struct note_delete_args, item, "itemId", FIELD_ID, 0, .group = "target", .help = "with key or all"),
	FIELD(struct note_delete_args, key, "key", FIELD_STR, 0, .min = 1, .max = LIMIT_NOTE_KEY_CHARS),
	FIELD(struct note_delete_args, all, "all", FIELD_BOOL, 0, .fallback = "false"),
	FIELDS_END,
};

static int upsert_prepare(struct call *call, void *args, struct failure *f)
{
	return note_upsert_prepare(call, args, f);
}

static int upsert(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return note_upsert(tx, call, args, out, f);
}

static int upsert_replayed(struct tx *tx, struct call *call, const json_t *stored, struct json_writer *out,
	struct failure *f)
{
	return note_upsert_replayed(tx, call, stored, out, f);
}

static int delete_check(const void *args, struct str path, struct failure *f)
{
	return note_delete_check(args, path, f);
}

static int erase(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return note_delete(tx, call, args, out, f);
}

static const struct operation ops[] = {
	{
		.name = "upsert",
		.summary = "Write a note: create it, or replace its text.",
		.fields = upsert_fields,
		.args_size = sizeof(struct note_upsert_args),
		.profiles = PROFILE_WORK | PROFILE_KNOWLEDGE,
		.capability = CAP_WRITE_NOTES,
		.change = upsert,
		.prepare = upsert_prepare,
		.replayed = upsert_replayed,
		.returns = "{id,version,created,unchanged?,itemContext:{guidanceKey?,skillPointer?,noteProgress}}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_VERSION_CONFLICT, FAIL_DUPLICATE, FAIL_SCHEMA_VIOLATION,
			FAIL_NOTE_TOO_LONG, FAIL_NOTE_OWNED_BY_OTHER, FAIL_PAYLOAD_TOO_LARGE, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"upsert\",\"itemId\":\"9a60c7d1\",\"key\":\"requirements\","
			   "\"body\":\"Reject a berth shorter than the hull.\"}]}",
	},
	{
		.name = "delete",
		.summary = "Delete notes; what is not there is counted, not an error.",
		.fields = delete_fields,
		.args_size = sizeof(struct note_delete_args),
		.profiles = PROFILE_WORK | PROFILE_KNOWLEDGE,
		.capability = CAP_WRITE_NOTES,
		.change = erase,
		.check = delete_check,
		.returns = "{deleted,notFound}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_NOTE_OWNED_BY_OTHER, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"delete\",\"itemId\":\"9a60c7d1\",\"key\":\"draft\"}]}",
		.frees_space = true,
	},
};

const struct tool tool_notes_write = {
	.name = "notes_write",
	.title = "Write notes",
	.description = "Write notes of work items: upsert, delete.",
	.ops = ops,
	.op_count = sizeof(ops) / sizeof(ops[0]),
	.is_destructive = true,
};
