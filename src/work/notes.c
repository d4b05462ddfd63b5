/* Writing notes. */
#include "work/notes.h"

#include "base/limits.h"
#include "work/body.h"
#include "work/note_gate.h"

#define NOTE_COLUMNS \
	"SELECT n, item_n, id, key, role, version, chars, is_filled, created_at, modified_at, actor_n," \
	" verification, seat, run_n, verifier, verification_reason FROM note"
SQL(SQL_NOTE, NOTE_COLUMNS " WHERE n = $1");
SQL(SQL_NOTE_BY_KEY, NOTE_COLUMNS " WHERE item_n = $1 AND key = $2");
SQL(SQL_NOTE_BODY, "SELECT body FROM note_body WHERE n = $1");

static int load_one(struct query *q, struct note *out, struct failure *f)
{
	int rc = query_next(q, f);

	if (rc != 1)
		return rc;
	*out = (struct note){
		.n = col_int(q, 0),
		.item_n = col_int(q, 1),
		.id = col_id(q, 2),
		.key = col_str(q, 3),
		.role = (enum role)col_int(q, 4),
		.version = col_int(q, 5),
		.chars = col_int(q, 6),
		.is_filled = col_int(q, 7) != 0,
		.created_at = col_int(q, 8),
		.modified_at = col_int(q, 9),
		.actor_n = col_int(q, 10),
		.verification = (enum verification)col_int(q, 11),
		.seat = col_str(q, 12),
		.run_n = col_int(q, 13),
		.verifier = col_str(q, 14),
		.verification_reason = col_str(q, 15),
	};
	return 1;
}

int note_load(struct snapshot *s, int64_t n, struct note *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};

	return query(s, &q, f, SQL_NOTE, "i", n) != 0 ? -1 : load_one(&q, out, f);
}

int note_load_key(struct snapshot *s, int64_t item_n, struct str key, struct note *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};

	return query(s, &q, f, SQL_NOTE_BY_KEY, "is", item_n, key) != 0 ? -1 : load_one(&q, out, f);
}

int note_body(struct snapshot *s, int64_t n, struct str *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_NOTE_BODY, "i", n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc < 0)
		return -1;
	*out = rc == 1 ? col_str(&q, 0) : STR("");
	return 0;
}

bool note_is_hidden(const struct call *call, const struct schema *schema, struct str key)
{
	const struct seat_scope *scope = &call->caller->seat;
	const struct rules_seat *seat = scope->run_n == 0 ? NULL : schema_seat(schema, scope->seat);

	for (size_t i = 0; seat != NULL && i < seat->reads_exclude_count; i++)
		if (str_eq(seat->reads_exclude[i], key))
			return true;
	return false;
}

/* ---- what the rules say of one write ---- */

/* A write on its way: found once, asked by every check. */
struct writing {
	struct tx *tx;
	struct call *call;
	struct item item;
	struct schema schema;
	const struct rules_view *view;
	const struct rules_note *entry; /* NULL: the schema does not declare the key */
	struct str key;
	bool exists;
	struct note old;
};

static int begin(struct writing *w, struct failure *f)
{
	struct snapshot *s = &w->tx->snapshot;

	if (item_writable(s, w->call, &w->item, f) != 0 ||
		item_schema(s, w->call, &w->item, &w->schema, f) != 0)
		return -1;
	return call_view(s, w->call, w->item.root_n, &w->view, f);
}

static int look(struct writing *w, struct str key, struct failure *f)
{
	int rc = note_load_key(&w->tx->snapshot, w->item.n, key, &w->old, f);

	w->key = key;
	w->entry = schema_note(&w->schema, key);
	w->exists = rc == 1;
	return rc < 0 ? -1 : 0;
}

static int fail_owned(const struct writing *w, struct failure *f)
{
	struct str owner = w->entry == NULL ? STR_NONE : w->entry->seat;

	(void)fail(f, FAIL_NOTE_OWNED_BY_OTHER, "The note %.*s belongs to %s.", STRF(w->key),
		owner.n > 0 ? "another seat" : "another author");
	fail_detail_str(f, "itemId", id_str(f->arena, w->item.id));
	fail_detail_str(f, "key", w->key);
	if (owner.n > 0)
		fail_detail_str(f, "ownerSeat", owner);
	return -1;
}

/* Under note_ownership owner, what is filled belongs to its last writer; the holder of the item may write over
 * notes of the present phase, the owning seat over its own, an administrator over any. */
static int owner_check(const struct writing *w, struct failure *f)
{
	const struct caller *caller = w->call->caller;
	int64_t me;

	if (!w->exists || !w->old.is_filled || !rules_owner_only(w->view) || caller_may(caller, CAP_ADMIN))
		return 0;
	if (caller_row(&w->tx->snapshot, w->call, &me, f) != 0)
		return -1;
	if (me != 0 && me == w->old.actor_n)
		return 0;
	if (me != 0 && claim_is_live(&w->item, w->tx->snapshot.now) && w->item.claim_by == me &&
		w->old.role == w->item.role)
		return 0;
	if (caller->seat.run_n != 0 && w->entry != NULL && w->entry->seat.n > 0 &&
		str_eq(w->entry->seat, caller->seat.seat))
		return 0;
	return fail_owned(w, f);
}

static int may_change(const struct writing *w, struct failure *f)
{
	const struct seat_scope *seat = &w->call->caller->seat;

	if (seat->run_n != 0 && w->entry != NULL && w->entry->seat.n > 0 && !str_eq(w->entry->seat, seat->seat))
		return fail_owned(w, f);
	return owner_check(w, f);
}

static int fail_schema(const struct writing *w, struct failure *f, struct str reason)
{
	(void)fail(f, FAIL_SCHEMA_VIOLATION, "%.*s", STRF(reason));
	if (w->schema.type.n > 0)
		fail_detail_str(f, "type", w->schema.type);
	fail_detail_str(f, "reason", reason);
	return -1;
}

static int role_of(const struct writing *w, const struct arg_int *given, enum role *out, struct failure *f)
{
	if (w->entry == NULL) {
		if (!given->set)
			return fail_field(f, STR("role"), STR_NONE,
				"is required for a key that the schema does not declare");
		*out = (enum role)given->v;
		return 0;
	}
	if (given->set && (enum role)given->v != w->entry->role)
		return fail_schema(w, f,
			str_printf(f->arena, "The schema has the note %.*s in phase %s, not %s.", STRF(w->key),
				role_name(w->entry->role), role_name((enum role)given->v)));
	*out = w->entry->role;
	return 0;
}

static int length_check(const struct writing *w, int64_t chars, struct failure *f)
{
	int64_t max = w->entry == NULL ? 0 : w->entry->max_chars;

	if (max == 0 || chars <= max)
		return 0;
	if (rules_note_limits(w->view) != RULES_REJECT) {
		warn(&w->call->warnings, "note_over_limit", STR("body"),
			"The note %.*s has %lld characters; its schema asks for at most %lld.", STRF(w->key),
			(long long)chars, (long long)max);
		return 0;
	}
	(void)fail(f, FAIL_NOTE_TOO_LONG, "The note %.*s has %lld characters; its schema allows %lld.",
		STRF(w->key), (long long)chars, (long long)max);
	fail_detail_str(f, "key", w->key);
	fail_detail_int(f, "max", max);
	fail_detail_int(f, "actual", chars);
	return -1;
}

static int fail_version(const struct writing *w, int64_t expected, struct failure *f)
{
	int64_t actual = w->exists ? w->old.version : 0;

	(void)fail(f, FAIL_VERSION_CONFLICT, "Expected version %lld of the note, it is %lld.",
		(long long)expected, (long long)actual);
	fail_detail_str(f, "kind", STR("note"));
	fail_detail_str(f, "id", w->exists ? id_str(f->arena, w->old.id) : w->key);
	fail_detail_int(f, "expected", expected);
	fail_detail_int(f, "actual", actual);
	return -1;
}

static int presence_check(const struct writing *w, const struct note_upsert_args *in, struct failure *f)
{
	if (in->create_only.v && w->exists) {
		(void)fail(f, FAIL_DUPLICATE, "The item has a note %.*s already.", STRF(w->key));
		fail_detail_str(f, "kind", STR("note"));
		fail_detail_str(f, "existingId", id_str(f->arena, w->old.id));
		return -1;
	}
	if (in->expected_version.set && in->expected_version.v != (w->exists ? w->old.version : 0))
		return fail_version(w, in->expected_version.v, f);
	return 0;
}

/* ---- storing ---- */

/* The first line, trimmed, is exactly the waiver. */
static bool is_temporal(struct str body)
{
	const char *end = body.n == 0 ? NULL : memchr(body.p, '\n', body.n);
	struct str line = {body.p, end == NULL ? body.n : (size_t)(end - body.p)};

	return str_eq(str_trim(line), STR("independence: temporal-only"));
}

static struct str subject_of(const struct actor *actor)
{
	return actor->verification == VERIFICATION_VERIFIED ? actor->subject : STR_NONE;
}

static int note_event(struct tx *tx, enum event_type type, const struct item *item, struct id id, struct str key,
	enum role role, int64_t version, int64_t chars, struct failure *f)
{
	struct json_writer w;
	struct buf data;

	buf_init(&data, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	jw_kstr(&w, "key", key);
	jw_ktext(&w, "role", role_name(role));
	if (type == EVENT_NOTE_UPSERTED) {
		jw_kint(&w, "version", version);
		jw_kint(&w, "bodyLength", chars);
	} else {
		jw_ktext(&w, "cause", "explicit");
	}
	jw_object_end(&w);
	return event_add(tx, type, item->root_n, item->n, id, buf_str(&data), f);
}

SQL(SQL_NOTE_ADD,
	"INSERT INTO note (n, id, item_n, key, role, version, chars, is_filled, is_temporal, created_at,"
	" modified_at, actor_n, verification, subject, run_n, seat)"
	" VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $9, $10, $11, $12, $13, $14)");
SQL(SQL_BODY_ADD, "INSERT INTO note_body (n, body) VALUES ($1, $2)");

int note_insert(struct tx *tx, struct call *call, const struct item *item, struct str key, enum role role,
	struct str body, struct id *out_id, struct failure *f)
{
	const struct actor *actor = tx->actor;
	int64_t chars = (int64_t)utf8_count(body);
	int64_t n;
	int64_t actor_n;
	struct id id;

	(void)call;
	id_generate(&id);
	if (tx_next(tx, SEQ_note, &n, f) != 0 || tx_actor(tx, &actor_n, f) != 0)
		return -1;
	if (tx_run(tx, f, SQL_NOTE_ADD, "ibisiiiiiiisos", n, id, item->n, key, (int64_t)role, chars,
		    (int64_t)!str_is_blank(body), (int64_t)is_temporal(body), tx->snapshot.now, actor_n,
		    (int64_t)actor->verification, subject_of(actor),
		    actor->run_n == 0 ? NULL : &actor->run_n, actor->seat) < 0 ||
		tx_run(tx, f, SQL_BODY_ADD, "is", n, body) < 0 ||
		note_event(tx, EVENT_NOTE_UPSERTED, item, id, key, role, 1, chars, f) != 0)
		return -1;
	*out_id = id;
	return 0;
}

SQL(SQL_REVISION_KEEP,
	"INSERT INTO note_revision (note_n, version, role, body, is_filled, actor_n, verification, subject, run_n,"
	" seat, written_at) SELECT x.n, x.version, x.role, b.body, x.is_filled, x.actor_n, x.verification,"
	" x.subject, x.run_n, x.seat, x.modified_at FROM note x JOIN note_body b ON b.n = x.n WHERE x.n = $1");
SQL(SQL_REVISION_TRIM, "DELETE FROM note_revision WHERE note_n = $1 AND version <= $2");
SQL(SQL_NOTE_SET,
	"UPDATE note SET role = $2, version = $3, chars = $4, is_filled = $5, is_temporal = $6,"
	" modified_at = $7, actor_n = $8, verification = $9, subject = $10, run_n = $11, seat = $12,"
	" verifier = NULL, verification_reason = NULL, proof_sha256 = NULL, proof_claims = NULL WHERE n = $1");
SQL(SQL_BODY_SET, "UPDATE note_body SET body = $2 WHERE n = $1");

static int overwrite(const struct writing *w, enum role role, struct str body, struct failure *f)
{
	struct tx *tx = w->tx;
	const struct actor *actor = tx->actor;
	int64_t version = w->old.version + 1;
	int64_t chars = (int64_t)utf8_count(body);
	int64_t actor_n;

	if (tx_actor(tx, &actor_n, f) != 0 || tx_run(tx, f, SQL_REVISION_KEEP, "i", w->old.n) < 0 ||
		tx_run(tx, f, SQL_REVISION_TRIM, "ii", w->old.n, version - LIMIT_NOTE_REVISIONS) < 0 ||
		tx_run(tx, f, SQL_NOTE_SET, "iiiiiiiiisos", w->old.n, (int64_t)role, version, chars,
			(int64_t)!str_is_blank(body), (int64_t)is_temporal(body), tx->snapshot.now, actor_n,
			(int64_t)actor->verification, subject_of(actor),
			actor->run_n == 0 ? NULL : &actor->run_n, actor->seat) < 0 ||
		tx_run(tx, f, SQL_BODY_SET, "is", w->old.n, body) < 0)
		return -1;
	return note_event(tx, EVENT_NOTE_UPSERTED, &w->item, w->old.id, w->key, role, version, chars, f);
}

/* 1 when writing would change nothing: same text, role and author. */
static int is_unchanged(const struct writing *w, enum role role, struct str body, struct failure *f)
{
	struct str old;
	int64_t me;

	if (!w->exists || w->old.role != role)
		return 0;
	if (caller_row(&w->tx->snapshot, w->call, &me, f) != 0 ||
		note_body(&w->tx->snapshot, w->old.n, &old, f) != 0)
		return -1;
	return me == w->old.actor_n && str_eq(old, body);
}

/* ---- upsert ---- */

int note_upsert_prepare(struct call *call, struct note_upsert_args *in, struct failure *f)
{
	if (!in->body_from_file.set)
		return 0;
	if (body_from_file(call, in->body_from_file.v, LIMIT_NOTE_BYTES, &in->body.v, f) != 0)
		return -1;
	in->body.set = true;
	return 0;
}

/* "itemContext": the next required note of the phase that is not filled. */
static int write_context(struct json_writer *w, struct snapshot *s, const struct item *item,
	const struct schema *schema, struct failure *f)
{
	struct note_progress progress;
	struct note_rows rows;

	if (note_rows_load(s, item, schema, &rows, f) != 0)
		return -1;
	note_progress(schema, &rows, item->role, &progress);
	jw_kobject(w, "itemContext");
	notes_write_guidance(w, &progress);
	notes_write_progress(w, &progress);
	jw_object_end(w);
	return 0;
}

static int set_context(const struct writing *w, struct failure *f)
{
	struct json_writer json;
	struct buf text;

	buf_init(&text, w->call->arena, SIZE_MAX);
	json_writer_init(&json, &text);
	if (write_context(&json, &w->tx->snapshot, &w->item, &w->schema, f) != 0)
		return -1;
	w->call->once_members = buf_str(&text);
	return 0;
}

int note_upsert_replayed(struct tx *tx, struct call *call, const json_t *stored, struct json_writer *out,
	struct failure *f)
{
	struct snapshot *s = &tx->snapshot;
	struct schema schema;
	struct note note;
	struct item item;
	struct failure gone;
	int64_t n;
	int rc;

	failure_init(&gone, call->arena);
	if (id_resolve(s, call, KIND_NOTE, json_member_str(stored, "id"), STR("id"), &n, &gone) != 0)
		return 0; /* deleted meanwhile: there is nothing to advise */
	rc = note_load(s, n, &note, f);
	if (rc == 1)
		rc = item_load(s, note.item_n, &item, f);
	if (rc != 1)
		return rc;
	return item_schema(s, call, &item, &schema, f) != 0 ? -1 : write_context(out, s, &item, &schema, f);
}

static int store(const struct writing *w, enum role role, struct str body, struct json_writer *out,
	struct failure *f)
{
	int unchanged = is_unchanged(w, role, body, f);
	struct id id = w->old.id;
	int rc = 0;

	if (unchanged < 0)
		return -1;
	if (!unchanged)
		rc = w->exists ? overwrite(w, role, body, f)
			       : note_insert(w->tx, w->call, &w->item, w->key, role, body, &id, f);
	if (rc != 0 || claim_touch(w->tx, w->call, &w->item, f) != 0)
		return -1;
	jw_id_of(out, w->call, "id", KIND_NOTE, id);
	jw_kint(out, "version", !w->exists ? 1 : unchanged ? w->old.version : w->old.version + 1);
	jw_kbool(out, "created", !w->exists);
	jw_kbool_opt(out, "unchanged", unchanged == 1);
	return set_context(w, f);
}

int note_upsert(struct tx *tx, struct call *call, const struct note_upsert_args *in, struct json_writer *out,
	struct failure *f)
{
	struct writing w = {.tx = tx, .call = call};
	struct str body = in->body.v;
	enum role role;

	if (item_find(&tx->snapshot, call, in->item.v, STR("itemId"), &w.item, f) != 0 || begin(&w, f) != 0 ||
		look(&w, in->key.v, f) != 0)
		return -1;
	body = body_normalise(call, body);
	if (role_of(&w, &in->role, &role, f) != 0 || length_check(&w, (int64_t)utf8_count(body), f) != 0 ||
		may_change(&w, f) != 0 || presence_check(&w, in, f) != 0)
		return -1;
	return store(&w, role, body, out, f);
}

/* ---- delete ---- */

int note_delete_check(const struct note_delete_args *in, struct str path, struct failure *f)
{
	struct str at = str_printf(f->arena, "%.*s%s", STRF(path), in->item.set ? "key" : "itemId");

	if (!in->item.set && (in->key.set || in->all.set))
		return fail_field(f, at, STR_NONE, "is required with key or all");
	if (in->item.set && in->key.set == in->all.v)
		return fail_field(f, at, STR_NONE, "exactly one of key, all is required with itemId");
	return 0;
}

SQL(SQL_NOTE_DELETE, "DELETE FROM note WHERE n = $1");
SQL(SQL_BODY_DELETE, "DELETE FROM note_body WHERE n = $1"); /* first: its trigger feeds the search index */
SQL(SQL_NOTE_KEYS, "SELECT key FROM note WHERE item_n = $1 ORDER BY key");

static int delete_one(struct writing *w, struct str key, int64_t *deleted, int64_t *not_found, struct failure *f)
{
	if (look(w, key, f) != 0)
		return -1;
	if (!w->exists) {
		++*not_found;
		return 0;
	}
	if (may_change(w, f) != 0 || tx_run(w->tx, f, SQL_BODY_DELETE, "i", w->old.n) < 0 ||
		tx_run(w->tx, f, SQL_NOTE_DELETE, "i", w->old.n) < 0)
		return -1;
	++*deleted;
	return note_event(w->tx, EVENT_NOTE_DELETED, &w->item, w->old.id, key, w->old.role, 0, 0, f);
}

static int delete_by_id(struct writing *w, struct str text, struct str path, int64_t *deleted, int64_t *not_found,
	struct failure *f)
{
	struct snapshot *s = &w->tx->snapshot;
	struct failure absent;
	struct note note;
	int64_t n;
	int rc;

	failure_init(&absent, f->arena);
	if (id_resolve(s, w->call, KIND_NOTE, text, path, &n, &absent) != 0) {
		if (absent.code != FAIL_NOT_FOUND) {
			failure_copy(f, f->arena, &absent);
			return -1;
		}
		++*not_found;
		return 0;
	}
	rc = note_load(s, n, &note, f);
	if (rc == 1)
		rc = item_load(s, note.item_n, &w->item, f);
	if (rc != 1 || begin(w, f) != 0)
		return -1;
	return delete_one(w, note.key, deleted, not_found, f);
}

/* All notes of the item; the keys are read before the first row goes. */
static int delete_all(struct writing *w, int64_t *deleted, int64_t *not_found, struct failure *f)
{
	struct arena *arena = w->tx->snapshot.arena;
	AUTO(query_endp) struct query q = {0};
	struct str *keys = NULL;
	size_t n = 0;
	int rc;

	if (query(&w->tx->snapshot, &q, f, SQL_NOTE_KEYS, "i", w->item.n) != 0)
		return -1;
	for (; (rc = query_next(&q, f)) == 1; n++) {
		if ((n & (n - 1)) == 0)
			keys = arena_grow(arena, keys, n * sizeof(*keys), (n == 0 ? 1 : n * 2) * sizeof(*keys));
		keys[n] = col_str(&q, 0);
	}
	query_end(&q);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = delete_one(w, keys[i], deleted, not_found, f);
	return rc;
}

static int delete_of_item(struct writing *w, const struct note_delete_args *in, int64_t *deleted,
	int64_t *not_found, struct failure *f)
{
	int rc;

	if (item_find(&w->tx->snapshot, w->call, in->item.v, STR("itemId"), &w->item, f) != 0 || begin(w, f) != 0)
		return -1;
	rc = in->all.v ? delete_all(w, deleted, not_found, f)
		       : delete_one(w, in->key.v, deleted, not_found, f);
	if (rc == 0 && *deleted > 0)
		rc = claim_touch(w->tx, w->call, &w->item, f);
	return rc;
}

int note_delete(struct tx *tx, struct call *call, const struct note_delete_args *in, struct json_writer *out,
	struct failure *f)
{
	struct writing w = {.tx = tx, .call = call};
	int64_t deleted = 0;
	int64_t not_found = 0;
	int rc = 0;

	if (in->item.set)
		rc = delete_of_item(&w, in, &deleted, &not_found, f);
	else if (in->note.set)
		rc = delete_by_id(&w, in->note.v, STR("noteId"), &deleted, &not_found, f);
	for (size_t i = 0; rc == 0 && i < in->notes.n; i++)
		rc = delete_by_id(&w, in->notes.v[i], str_printf(f->arena, "noteIds[%zu]", i), &deleted, &not_found,
			f);
	if (rc != 0)
		return -1;
	jw_kint(out, "deleted", deleted);
	jw_kint(out, "notFound", not_found);
	return 0;
}
