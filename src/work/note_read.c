/* Reading notes: lists hold no text unless asked for, and never more than an answer may. */
#include "work/notes.h"

#include "base/limits.h"
#include "work/body.h"
#include "work/section.h"

static const char *const note_fields[] = {"body", "actor", "verification", "createdAt", "modifiedAt", "sha256",
	"headings", NULL};

#define LIST_DEFAULT 100

/* One note, or one item and a key. */
static int target_check(const struct arg_str *note, const struct arg_str *item, const struct arg_str *key,
	struct str path, struct failure *f)
{
	(void)note;
	if (item->set != key->set)
		return fail_field(f, str_printf(f->arena, "%.*s%s", STRF(path), item->set ? "key" : "itemId"),
			STR_NONE, "itemId and key belong together");
	return 0;
}

int note_list_check(const struct note_list_args *in, struct str path, struct failure *f)
{
	return fields_check(in->fields.v, in->fields.n, note_fields,
		str_printf(f->arena, "%.*sfields", STRF(path)), f);
}

int note_get_check(const struct note_get_args *in, struct str path, struct failure *f)
{
	int rc = target_check(&in->note, &in->item, &in->key, path, f);

	if (fields_check(in->fields.v, in->fields.n, note_fields, str_printf(f->arena, "%.*sfields", STRF(path)),
		    f) != 0)
		rc = -1;
	return rc;
}

int note_revisions_check(const struct note_revisions_args *in, struct str path, struct failure *f)
{
	return target_check(&in->note, &in->item, &in->key, path, f);
}

static bool wants(const struct arg_strs *fields, const char *name)
{
	return fields_have(fields->v, fields->n, name);
}

/* Members asked for that are not the text itself. */
static int write_extras(struct json_writer *w, struct snapshot *s, struct call *call, const struct note *note,
	const struct arg_strs *fields, struct failure *f)
{
	if (wants(fields, "createdAt"))
		jw_ktime(w, "createdAt", note->created_at);
	if (wants(fields, "modifiedAt"))
		jw_ktime(w, "modifiedAt", note->modified_at);
	if (wants(fields, "verification"))
		verification_write(w, call, note->verification, note->verifier, note->verification_reason);
	return wants(fields, "actor") ? actor_write(w, s, call, "actor", note->actor_n, note->run_n, note->seat, f)
				      : 0;
}

/* sha256 and headings, which come from the text but are not it. */
static void write_digests(struct json_writer *w, struct snapshot *s, const struct arg_strs *fields, struct str body)
{
	if (wants(fields, "sha256"))
		jw_kstr(w, "sha256", sha256_hex(s->arena, body));
	if (wants(fields, "headings"))
		outline_write(w, s->arena, body, 0, EXCERPT_BYTES / 4);
}

static void write_meta(struct json_writer *w, struct call *call, const struct note *note, const struct item *item)
{
	jw_id_of(w, call, "id", KIND_NOTE, note->id);
	if (item != NULL)
		jw_id(w, call, "itemId", item->id);
	jw_kstr(w, "key", note->key);
	jw_ktext(w, "role", role_name(note->role));
	jw_kint(w, "version", note->version);
	jw_kint(w, "bodyLength", note->chars);
}

/* ---- list ---- */

struct row {
	struct note note;
	int64_t position; /* in the schema; INT64_MAX: not declared */
};

struct listing {
	struct snapshot *s;
	struct call *call;
	const struct note_list_args *in;
	struct json_writer *out;
	int64_t returned, total, limit;
	struct cursor from; /* item index, position, key in hexadecimal: a key may hold any character */
	struct str next;
	struct row *last;
	int64_t item_index;
	bool is_full;
};

static int row_cmp(const void *left, const void *right)
{
	const struct row *a = left;
	const struct row *b = right;

	if (a->position != b->position)
		return a->position < b->position ? -1 : 1;
	return str_cmp(a->note.key, b->note.key);
}

static int64_t position_of(const struct schema *schema, struct str key)
{
	const struct rules_note *entry = schema_note(schema, key);

	return entry == NULL ? INT64_MAX : entry - schema->notes;
}

SQL(SQL_NOTES_OF_ITEM, "SELECT n FROM note WHERE item_n = $1 ORDER BY key");

static bool is_wanted(const struct note_list_args *in, const struct note *note)
{
	bool found = in->keys.n == 0;

	for (size_t i = 0; i < in->keys.n && !found; i++)
		found = str_eq(in->keys.v[i], note->key);
	return found && (!in->role.set || (enum role)in->role.v == note->role);
}

static int load_rows(struct listing *l, const struct item *item, const struct schema *schema, struct row **out,
	size_t *out_count, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct row *rows = NULL;
	size_t n = 0;
	int rc;

	if (query(l->s, &q, f, SQL_NOTES_OF_ITEM, "i", item->n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct row row;
		int found = note_load(l->s, col_int(&q, 0), &row.note, f);

		if (found < 0)
			return -1;
		if (found == 0 || !is_wanted(l->in, &row.note))
			continue;
		row.position = position_of(schema, row.note.key);
		if ((n & (n - 1)) == 0)
			rows = arena_grow(l->s->arena, rows, n * sizeof(row), (n == 0 ? 1 : n * 2) * sizeof(row));
		rows[n++] = row;
	}
	if (n > 1)
		qsort(rows, n, sizeof(*rows), row_cmp);
	*out = rows;
	*out_count = n;
	return rc;
}

static struct str hex_key(struct listing *l, const struct row *row)
{
	return hex(l->s->arena, row->note.key.p, row->note.key.n);
}

/* Shown on an earlier page. */
static bool is_before(struct listing *l, const struct row *row)
{
	int64_t position;

	if (l->from.n == 0 || l->item_index != cursor_int(&l->from, 0))
		return l->from.n > 0 && l->item_index < cursor_int(&l->from, 0);
	position = cursor_int(&l->from, 1);
	if (row->position != position)
		return row->position < position;
	return str_cmp(hex_key(l, row), l->from.parts[2]) <= 0;
}

static void set_cursor(struct listing *l, int64_t item_index, const struct row *row)
{
	struct str parts[3] = {
		str_printf(l->s->arena, "%lld", (long long)item_index),
		str_printf(l->s->arena, "%lld", (long long)row->position),
		hex_key(l, row),
	};

	l->next = cursor_text(l->call, parts, 3);
}

static int write_row(struct listing *l, const struct item *item, const struct schema *schema, const struct row *row,
	size_t budget, struct json_writer *w, struct failure *f)
{
	const struct arg_strs *fields = &l->in->fields;
	const struct rules_note *entry = schema_note(schema, row->note.key);
	bool hidden = note_is_hidden(l->call, schema, row->note.key);
	struct excerpt excerpt;
	struct str body;

	jw_object_begin(w);
	write_meta(w, l->call, &row->note, l->in->items.set ? item : NULL);
	if (entry != NULL)
		jw_kstr_opt(w, "seat", entry->seat);
	if (!row->note.is_filled)
		jw_kbool(w, "filled", false);
	if (write_extras(w, l->s, l->call, &row->note, fields, f) != 0)
		return -1;
	if (!hidden && (wants(fields, "body") || wants(fields, "sha256") || wants(fields, "headings"))) {
		if (note_body(l->s, row->note.n, &body, f) != 0)
			return -1;
		write_digests(w, l->s, fields, body);
		if (wants(fields, "body")) {
			excerpt_of(body, 0, 0, budget, &excerpt);
			excerpt_write(w, &excerpt);
		}
	}
	jw_object_end(w);
	return 0;
}

/* Appends the row unless it would take the answer over its budget; the first row of a page is cut instead. */
static int add_row(struct listing *l, const struct item *item, const struct schema *schema, const struct row *row,
	struct failure *f)
{
	struct json_writer w;
	struct buf text;

	buf_init(&text, l->s->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	if (write_row(l, item, schema, row, EXCERPT_BYTES - 1024, &w, f) != 0)
		return -1;
	if (l->returned > 0 && l->out->out->n + text.n > EXCERPT_BYTES) {
		l->is_full = true;
		l->call->page.is_shrunk = true;
		return 0;
	}
	jw_raw(l->out, buf_str(&text));
	l->returned++;
	return 0;
}

static int list_item(struct listing *l, struct str id, struct str path, struct failure *f)
{
	struct schema schema;
	struct item item;
	struct row *rows;
	struct row shown = {.position = -1};
	size_t n;

	if (item_find(l->s, l->call, id, path, &item, f) != 0 ||
		item_schema(l->s, l->call, &item, &schema, f) != 0 || load_rows(l, &item, &schema, &rows, &n, f) != 0)
		return -1;
	l->total += (int64_t)n;
	for (size_t i = 0; i < n && !l->is_full; i++) {
		if (is_before(l, &rows[i]))
			continue;
		if (l->returned == l->limit)
			l->is_full = true;
		else if (add_row(l, &item, &schema, &rows[i], f) != 0)
			return -1;
		if (!l->is_full) {
			shown = rows[i];
			set_cursor(l, l->item_index, &shown);
		}
	}
	return 0;
}

int note_list(struct snapshot *s, struct call *call, const struct note_list_args *in, struct json_writer *out,
	struct failure *f)
{
	struct listing l = {.s = s, .call = call, .in = in, .out = out, .limit = in->limit.set ? in->limit.v : LIST_DEFAULT};

	if (in->cursor.set && cursor_read(call, in->cursor.v, &l.from, f) != 0)
		return -1;
	if (in->cursor.set && l.from.n != 3)
		return fail(f, FAIL_INVALID_CURSOR, "The cursor does not belong to this listing.");
	jw_karray(out, "notes");
	if (in->item.set && list_item(&l, in->item.v, STR("itemId"), f) != 0)
		return -1;
	for (size_t i = 0; i < in->items.n; i++) {
		l.item_index = (int64_t)i;
		if (list_item(&l, in->items.v[i], str_printf(f->arena, "itemIds[%zu]", i), f) != 0)
			return -1;
	}
	jw_array_end(out);
	call_page(call, l.returned, l.total, l.is_full ? l.next : STR_NONE);
	return 0;
}

/* ---- get ---- */

/* The note, its item and the schema over it. */
static int find_note(struct snapshot *s, struct call *call, const struct arg_str *id, const struct arg_str *item_id,
	const struct arg_str *key, struct note *note, struct item *item, struct failure *f)
{
	int64_t n;
	int rc;

	if (!id->set) {
		if (item_find(s, call, item_id->v, STR("itemId"), item, f) != 0)
			return -1;
		rc = note_load_key(s, item->n, key->v, note, f);
		return rc == 1 ? 0 : rc < 0 ? -1 : fail_not_found(f, "note", key->v);
	}
	if (id_resolve(s, call, KIND_NOTE, id->v, STR("noteId"), &n, f) != 0)
		return -1;
	rc = note_load(s, n, note, f);
	if (rc == 1)
		rc = item_load(s, note->item_n, item, f);
	return rc == 1 ? 0 : rc < 0 ? -1 : fail_not_found(f, "note", id->v);
}

static int fail_hidden(struct call *call, const struct item *item, const struct schema *schema, struct str key,
	struct failure *f)
{
	struct json_writer w;
	struct buf allowed;

	(void)fail(f, FAIL_SEAT_FORBIDDEN, "The seat %.*s does not read the note %.*s.",
		STRF(call->caller->seat.seat), STRF(key));
	fail_detail_str(f, "itemId", id_str(f->arena, item->id));
	fail_detail_str(f, "seat", call->caller->seat.seat);
	fail_detail_str(f, "action", str_printf(f->arena, "read:%.*s", STRF(key)));
	buf_init(&allowed, f->arena, SIZE_MAX);
	json_writer_init(&w, &allowed);
	jw_array_begin(&w);
	for (size_t i = 0; i < schema->seat_count; i++) {
		const struct rules_seat *seat = &schema->seats[i];
		bool excludes = false;

		for (size_t j = 0; j < seat->reads_exclude_count; j++)
			excludes = excludes || str_eq(seat->reads_exclude[j], key);
		if (!excludes)
			jw_str(&w, seat->name);
	}
	jw_array_end(&w);
	fail_detail_raw(f, "allowedSeats", buf_str(&allowed));
	return -1;
}

SQL(SQL_REVISION,
	"SELECT version, role, body, is_filled, actor_n, verification, seat, written_at, run_n FROM note_revision"
	" WHERE note_n = $1 AND version = $2");

/* `note` becomes what it was in that version. */
static int load_revision(struct snapshot *s, int64_t version, struct note *note, struct str *body, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (version == note->version)
		return note_body(s, note->n, body, f);
	if (query(s, &q, f, SQL_REVISION, "ii", note->n, version) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return fail_not_found(f, "note",
			str_printf(f->arena, "%.*s@%lld", STRF(id_str(f->arena, note->id)), (long long)version));
	note->version = version;
	note->role = (enum role)col_int(&q, 1);
	*body = col_str(&q, 2);
	note->chars = (int64_t)utf8_count(*body);
	note->is_filled = col_int(&q, 3) != 0;
	note->actor_n = col_int(&q, 4);
	note->verification = (enum verification)col_int(&q, 5);
	note->verifier = note->verification_reason = STR_NONE; /* not kept of earlier versions */
	note->seat = col_str(&q, 6);
	note->modified_at = col_int(&q, 7);
	note->run_n = col_int(&q, 8);
	return 0;
}

static int cut_section(struct snapshot *s, const struct note *note, struct str anchor, struct str *body,
	struct failure *f)
{
	struct section *sections;
	size_t n = sections_of(s->arena, *body, &sections);
	const struct section *section = section_find(sections, n, anchor);

	if (section == NULL)
		return fail_not_found(f, "note", str_printf(f->arena, "%.*s#%.*s", STRF(note->key), STRF(anchor)));
	*body = section_text(section, *body);
	return 0;
}

int note_get(struct snapshot *s, struct call *call, const struct note_get_args *in, struct json_writer *out,
	struct failure *f)
{
	struct excerpt excerpt;
	struct schema schema;
	struct note note;
	struct item item;
	struct str whole;
	struct str body;

	if (find_note(s, call, &in->note, &in->item, &in->key, &note, &item, f) != 0 ||
		item_schema(s, call, &item, &schema, f) != 0)
		return -1;
	if (note_is_hidden(call, &schema, note.key))
		return fail_hidden(call, &item, &schema, note.key, f);
	if (load_revision(s, in->version.set ? in->version.v : note.version, &note, &whole, f) != 0)
		return -1;
	body = whole;
	if (in->section.set && cut_section(s, &note, in->section.v, &body, f) != 0)
		return -1;
	jw_kobject(out, "note");
	write_meta(out, call, &note, &item);
	if (write_extras(out, s, call, &note, &in->fields, f) != 0)
		return -1;
	write_digests(out, s, &in->fields, whole);
	if (out->out->n < EXCERPT_BYTES / 2)
		excerpt_of(body, in->offset.v, in->max_chars.v, EXCERPT_BYTES - out->out->n, &excerpt);
	else
		excerpt_of(body, in->offset.v, in->max_chars.v, EXCERPT_BYTES / 2, &excerpt);
	excerpt_write(out, &excerpt);
	jw_object_end(out);
	return 0;
}

/* ---- revisions ---- */

SQL(SQL_REVISIONS,
	"SELECT version, role, body, actor_n, seat, written_at, run_n FROM note_revision"
	" WHERE note_n = $1 AND version < $2 ORDER BY version DESC");

static int write_revision(struct json_writer *w, struct snapshot *s, struct call *call, int64_t version,
	enum role role, int64_t chars, int64_t at, int64_t actor_n, int64_t run_n, struct str seat, struct failure *f)
{
	jw_object_begin(w);
	jw_kint(w, "version", version);
	jw_ktext(w, "role", role_name(role));
	jw_kint(w, "bodyLength", chars);
	jw_ktime(w, "writtenAt", at);
	if (actor_write(w, s, call, "actor", actor_n, run_n, seat, f) != 0)
		return -1;
	jw_object_end(w);
	return 0;
}

SQL(SQL_REVISION_COUNT, "SELECT count(*) FROM note_revision WHERE note_n = $1");

int note_revisions(struct snapshot *s, struct call *call, const struct note_revisions_args *in,
	struct json_writer *out, struct failure *f)
{
	int64_t limit = in->limit.set ? in->limit.v : LIMIT_NOTE_REVISIONS;
	AUTO(query_endp) struct query q = {0};
	struct cursor from = {0};
	struct note note;
	struct item item;
	int64_t before;
	int64_t last = 0;
	int64_t total;
	int64_t returned = 0;
	int rc = 1;

	if (find_note(s, call, &in->note, &in->item, &in->key, &note, &item, f) != 0 ||
		(in->cursor.set && cursor_read(call, in->cursor.v, &from, f) != 0) ||
		query_int(s, &total, f, SQL_REVISION_COUNT, "i", note.n) < 0)
		return -1;
	before = from.n > 0 ? cursor_int(&from, 0) : note.version + 1;
	jw_karray(out, "revisions");
	if (before > note.version) {
		if (write_revision(out, s, call, note.version, note.role, note.chars, note.modified_at, note.actor_n,
			    note.run_n,
			    note.seat, f) != 0)
			return -1;
		returned = 1;
		last = before = note.version;
	}
	if (query(s, &q, f, SQL_REVISIONS, "ii", note.n, before) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1 && returned < limit) {
		last = col_int(&q, 0);
		if (write_revision(out, s, call, last, (enum role)col_int(&q, 1),
			    (int64_t)utf8_count(col_str(&q, 2)), col_int(&q, 5), col_int(&q, 3), col_int(&q, 6),
			    col_str(&q, 4),
			    f) != 0)
			return -1;
		returned++;
	}
	if (rc < 0)
		return -1;
	jw_array_end(out);
	if (rc == 1) {
		struct str part = str_printf(s->arena, "%lld", (long long)last);

		call_page(call, returned, total + 1, cursor_text(call, &part, 1));
	} else {
		call_page(call, returned, total + 1, STR_NONE);
	}
	return 0;
}
