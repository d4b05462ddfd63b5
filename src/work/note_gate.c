/* The NOTE gate: which required notes are missing, and what may be said about it. */
#include "work/note_gate.h"

#include "work/independence.h"

SQL(SQL_NOTE_ROWS, /* by item_n and key */
	"SELECT n, key, created_at, is_filled, is_temporal, verification FROM note WHERE item_n = $1");

int note_rows_load(struct snapshot *s, const struct item *item, const struct schema *schema,
	struct note_rows *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct note_rows rows = {0};
	size_t room = 0;
	int rc;

	if (schema->note_count == 0) {
		*out = rows;
		return 0;
	}
	if (query(s, &q, f, SQL_NOTE_ROWS, "i", item->n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (rows.n == room) {
			rows.v = arena_grow(s->arena, rows.v, room * sizeof(*rows.v),
				(room + 16) * sizeof(*rows.v));
			room += 16;
		}
		rows.v[rows.n++] = (struct note_row){
			.n = col_int(&q, 0),
			.key = col_str(&q, 1),
			.created_at = col_int(&q, 2),
			.is_filled = col_int(&q, 3) != 0,
			.is_temporal = col_int(&q, 4) != 0,
			.verification = (enum verification)col_int(&q, 5),
		};
	}
	if (rc == 0)
		*out = rows;
	return rc;
}

/* Matching is by key alone: a note written under another role before its key was declared still counts. */
struct note_row *note_row_filled(const struct note_rows *rows, struct str key)
{
	for (size_t i = 0; i < rows->n; i++)
		if (rows->v[i].is_filled && str_eq(rows->v[i].key, key))
			return &rows->v[i];
	return NULL;
}

int note_gate(struct snapshot *s, struct call *call, const struct item *item, const struct schema *schema,
	const struct note_rows *rows, enum note_scope scope, struct note_findings *out, struct failure *f)
{
	struct note_findings findings = {0};

	if (scope != NOTES_NONE && schema->note_count > 0)
		findings.missing = ARENA_ARRAY(s->arena, const struct rules_note *, schema->note_count);
	for (size_t i = 0; i < schema->note_count && scope != NOTES_NONE; i++) {
		const struct rules_note *note = &schema->notes[i];

		if (note->is_required && (scope == NOTES_OF_ALL || note->role == item->role) &&
			note_row_filled(rows, note->key) == NULL)
			findings.missing[findings.missing_count++] = note;
	}
	findings.is_refused = findings.missing_count > 0;
	if (scope != NOTES_NONE &&
		independence_check(s, call, item, schema, rows, scope, &findings, f) != 0)
		return -1;
	*out = findings;
	return 0;
}

void note_progress(const struct schema *schema, const struct note_rows *rows, enum role role,
	struct note_progress *out)
{
	*out = (struct note_progress){0};
	for (size_t i = 0; i < schema->note_count; i++) {
		const struct rules_note *note = &schema->notes[i];

		if (!note->is_required || note->role != role)
			continue;
		out->total++;
		if (note_row_filled(rows, note->key) != NULL)
			out->filled++;
		else if (out->guiding == NULL && note->guidance.p != NULL)
			out->guiding = note;
	}
}

size_t notes_unfilled(const struct schema *schema, const struct note_rows *rows, enum role role,
	const struct rules_note **out)
{
	size_t n = 0;

	for (size_t i = 0; i < schema->note_count; i++) {
		const struct rules_note *note = &schema->notes[i];

		if (note->is_required && note->role == role && note_row_filled(rows, note->key) == NULL)
			out[n++] = note;
	}
	return n;
}

void notes_write_missing(struct json_writer *w, const char *key, const struct rules_note *const *notes, size_t n)
{
	jw_karray(w, key);
	for (size_t i = 0; i < n; i++) {
		jw_object_begin(w);
		jw_kstr(w, "key", notes[i]->key);
		jw_ktext(w, "role", role_name(notes[i]->role));
		jw_kstr_opt(w, "seat", notes[i]->seat);
		jw_object_end(w);
	}
	jw_array_end(w);
}

/* One bucket: the missing notes of this seat (absent: of none). Opens the object at the first. */
static void write_bucket(struct json_writer *w, struct str name, struct str seat,
	const struct rules_note *const *notes, size_t n)
{
	bool is_open = false;

	for (size_t i = 0; i < n; i++) {
		if (!str_eq(notes[i]->seat, seat))
			continue;
		if (!is_open) {
			jw_key_str(w, name);
			jw_array_begin(w);
			is_open = true;
		}
		jw_str(w, notes[i]->key);
	}
	if (is_open)
		jw_array_end(w);
}

void notes_write_by_seat(struct json_writer *w, const struct schema *schema, const struct rules_note *const *notes,
	size_t n)
{
	if (schema->seat_count == 0 || n == 0)
		return;
	jw_kobject(w, "missingBySeat");
	for (size_t i = 0; i < schema->seat_count; i++)
		write_bucket(w, schema->seats[i].name, schema->seats[i].name, notes, n);
	write_bucket(w, STR("unowned"), STR_NONE, notes, n);
	jw_object_end(w);
}

void notes_write_violations(struct json_writer *w, const struct note_findings *findings, bool even_empty)
{
	static const char *const names[] = {"same_actor", "missing_actor", "unverified"};

	if (findings->violation_count == 0 && !even_empty)
		return;
	jw_karray(w, "violations");
	for (size_t i = 0; i < findings->violation_count; i++) {
		const struct violation *violation = &findings->violations[i];

		jw_object_begin(w);
		jw_kstr(w, "key", violation->key);
		jw_kstr_opt(w, "seat", violation->seat);
		jw_ktext(w, "constraint", names[violation->constraint]);
		jw_kstr_opt(w, "conflictingSeat", violation->conflicting_seat);
		jw_kbool_opt(w, "waived", violation->is_waived);
		jw_object_end(w);
	}
	jw_array_end(w);
}

void notes_write_progress(struct json_writer *w, const struct note_progress *progress)
{
	jw_kobject(w, "noteProgress");
	jw_kint(w, "filled", progress->filled);
	jw_kint(w, "remaining", progress->total - progress->filled);
	jw_kint(w, "total", progress->total);
	jw_object_end(w);
}

void notes_write_guidance(struct json_writer *w, const struct note_progress *progress)
{
	if (progress->guiding == NULL)
		return;
	jw_kstr(w, "guidanceKey", progress->guiding->key);
	jw_kstr_opt(w, "skillPointer", progress->guiding->skill);
}
