/* work/notes.h - notes of items: keyed texts that belong to a phase.
 *
 * A note's revisions are kept (the newest LIMIT_NOTE_REVISIONS, the current text included), so that writing
 * over a note does not erase who wrote it before. Line ends are stored as LF. */
#ifndef DAIS_WORK_NOTES_H
#define DAIS_WORK_NOTES_H

#include "base/field.h"
#include "work/work.h"

/* ---- notes_write ---- */
struct note_upsert_args {
	struct arg_str item;
	struct arg_str key;
	struct arg_int role;
	struct arg_str body;
	struct arg_str body_from_file; /* read into `body` before the transaction */
	struct arg_int expected_version; /* 0: must not exist */
	struct arg_bool create_only;
};
int note_upsert_prepare(struct call *call, struct note_upsert_args *in, struct failure *f);
int note_upsert(struct tx *tx, struct call *call, const struct note_upsert_args *in, struct json_writer *out,
	struct failure *f);
/* Advice depends on the present: a replay gets it anew. */
int note_upsert_replayed(struct tx *tx, struct call *call, const json_t *stored, struct json_writer *out,
	struct failure *f);

struct note_delete_args {
	struct arg_str note;
	struct arg_strs notes;
	struct arg_str item;
	struct arg_str key;
	struct arg_bool all;
};
int note_delete_check(const struct note_delete_args *in, struct str path, struct failure *f);
int note_delete(struct tx *tx, struct call *call, const struct note_delete_args *in, struct json_writer *out,
	struct failure *f);

/* ---- notes_read ---- */
struct note_list_args {
	struct arg_str item;
	struct arg_strs items;
	struct arg_int role;
	struct arg_strs keys;
	struct arg_strs fields;
	struct arg_int limit;
	struct arg_str cursor;
};
struct note_get_args {
	struct arg_str note;
	struct arg_str item;
	struct arg_str key;
	struct arg_str section;
	struct arg_int offset;
	struct arg_int max_chars;
	struct arg_int version;
	struct arg_strs fields;
};
struct note_revisions_args {
	struct arg_str note;
	struct arg_str item;
	struct arg_str key;
	struct arg_int limit;
	struct arg_str cursor;
};
int note_list_check(const struct note_list_args *in, struct str path, struct failure *f);
int note_get_check(const struct note_get_args *in, struct str path, struct failure *f);
int note_revisions_check(const struct note_revisions_args *in, struct str path, struct failure *f);
int note_list(struct snapshot *s, struct call *call, const struct note_list_args *in, struct json_writer *out,
	struct failure *f);
int note_get(struct snapshot *s, struct call *call, const struct note_get_args *in, struct json_writer *out,
	struct failure *f);
int note_revisions(struct snapshot *s, struct call *call, const struct note_revisions_args *in,
	struct json_writer *out, struct failure *f);

/* ---- for others ---- */

/* A new note of `item`, which has none under this key (create_tree): body normalised and within its limits,
 * role as the schema wants it. Writes the row, its text and the event. */
int note_insert(struct tx *tx, struct call *call, const struct item *item, struct str key, enum role role,
	struct str body, struct id *out_id, struct failure *f);

/* One row, without its text. */
struct note {
	int64_t n, item_n;
	struct id id;
	struct str key;
	enum role role;
	int64_t version, chars;
	bool is_filled;
	int64_t created_at, modified_at;
	int64_t actor_n;
	enum verification verification;
	struct str verifier, verification_reason; /* absent: none */
	int64_t run_n;				  /* 0: none */
	struct str seat;			  /* absent: none */
};
/* 1 found, 0 not, -1 failure. */
int note_load(struct snapshot *s, int64_t n, struct note *out, struct failure *f);
int note_load_key(struct snapshot *s, int64_t item_n, struct str key, struct note *out, struct failure *f);
int note_body(struct snapshot *s, int64_t n, struct str *out, struct failure *f);
/* The caller's seat must not read notes with this key (reads_exclude). */
bool note_is_hidden(const struct call *call, const struct schema *schema, struct str key);

#endif
