#include "work/parts.h"

#include "base/limits.h"
#include "work/advance.h"
#include "work/note_gate.h"

/* Room for the envelope, its page and a warning or two. */
#define ENVELOPE_BYTES 2048

static const struct {
	const char *name;
	enum part part;
} names[] = {
	{"ancestors", PART_ANCESTORS},
	{"childCounts", PART_CHILD_COUNTS},
	{"claim", PART_CLAIM},
	{"createdBy", PART_CREATED_BY},
	{"dependencies", PART_DEPENDENCIES},
	{"description", PART_DESCRIPTION},
	{"metadata", PART_METADATA},
	{"noteProgress", PART_NOTE_PROGRESS},
	{"notes", PART_NOTES},
	{"properties", PART_PROPERTIES},
	{"summary", PART_SUMMARY},
	{"tags", PART_TAGS},
};
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

static unsigned part_of(struct str name)
{
	for (size_t i = 0; i < NAME_COUNT; i++)
		if (str_eq(name, str_of(names[i].name)))
			return names[i].part;
	return 0;
}

unsigned parts_of(const struct arg_strs *fields)
{
	unsigned parts = 0;

	for (size_t i = 0; i < fields->n; i++)
		parts |= part_of(fields->v[i]);
	return parts;
}

static struct str known_parts(struct arena *arena, unsigned allowed)
{
	struct buf known;

	buf_init(&known, arena, SIZE_MAX);
	for (size_t i = 0; i < NAME_COUNT; i++)
		if (names[i].part & allowed)
			buf_printf(&known, "%s%s", known.n == 0 ? "" : ", ", names[i].name);
	return buf_str(&known);
}

int parts_check(const struct arg_strs *fields, unsigned allowed, struct str path, struct failure *f)
{
	int rc = 0;

	for (size_t i = 0; i < fields->n; i++)
		if ((part_of(fields->v[i]) & allowed) == 0)
			rc = fail_field(f, str_printf(f->arena, "%.*sfields[%zu]", STRF(path), i), fields->v[i],
				"must be one of %.*s", STRF(known_parts(f->arena, allowed)));
	return rc;
}

/* ---- ancestors ---- */

SQL(SQL_ANCESTOR, "SELECT i.id, t.title, i.role, i.parent_n FROM item i JOIN item_text t ON t.n = i.n WHERE i.n = $1");

struct ancestor {
	struct id id;
	struct str title;
	enum role role;
};

int ancestors_write(struct json_writer *w, struct snapshot *s, struct call *call, int64_t parent_n,
	struct failure *f)
{
	struct ancestor *chain = NULL;
	size_t n = 0, cap = 0;

	while (parent_n != 0 && n < LIMIT_DEPTH) {
		AUTO(query_endp) struct query q = {0};
		int rc;

		if (query(s, &q, f, SQL_ANCESTOR, "i", parent_n) != 0 || (rc = query_next(&q, f)) < 0)
			return -1;
		if (rc == 0)
			break;
		if (n == cap) {
			chain = arena_grow(s->arena, chain, cap * sizeof(*chain), (cap + 16) * sizeof(*chain));
			cap += 16;
		}
		chain[n++] = (struct ancestor){col_id(&q, 0), col_str(&q, 1), (enum role)col_int(&q, 2)};
		parent_n = col_int(&q, 3);
	}
	if (n == 0)
		return 0;
	jw_karray(w, "ancestors");
	while (n-- > 0) {
		jw_object_begin(w);
		jw_id(w, call, "id", chain[n].id);
		jw_kstr(w, "title", chain[n].title);
		jw_ktext(w, "role", role_name(chain[n].role));
		jw_object_end(w);
	}
	jw_array_end(w);
	return 0;
}

/* ---- texts, counts ---- */

SQL(SQL_LONG_TEXTS, "SELECT description, properties, metadata FROM item_text WHERE n = $1");

static int texts_write(struct json_writer *w, struct snapshot *s, const struct item *item, unsigned parts,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct str properties;

	if ((parts & (PART_DESCRIPTION | PART_PROPERTIES | PART_METADATA)) == 0)
		return 0;
	if (query(s, &q, f, SQL_LONG_TEXTS, "i", item->n) != 0 || query_next(&q, f) < 0)
		return -1;
	if (parts & PART_DESCRIPTION)
		jw_kstr_opt(w, "description", col_str(&q, 0));
	properties = col_str(&q, 1);
	if ((parts & PART_PROPERTIES) && properties.n > 0)
		jw_kraw(w, "properties", properties);
	if (parts & PART_METADATA)
		jw_kstr_opt(w, "metadata", col_str(&q, 2));
	return 0;
}

static int counts_write(struct json_writer *w, struct snapshot *s, const struct item *item, struct failure *f)
{
	struct tally children;

	if (tally_children(s, item->n, &children, f) != 0)
		return -1;
	if (tally_sum(&children) > 0)
		tally_write(w, "childCounts", &children);
	return 0;
}

/* ---- notes ---- */

struct note_meta {
	struct id id;
	struct str key;
	enum role role;
	int64_t version, chars;
	bool is_filled, is_written;
};

SQL(SQL_NOTE_METAS, "SELECT id, key, role, version, chars, is_filled FROM note WHERE item_n = $1 ORDER BY key");

static void note_write(struct json_writer *w, struct call *call, struct note_meta *note)
{
	jw_object_begin(w);
	jw_id_of(w, call, "id", KIND_NOTE, note->id);
	jw_kstr(w, "key", note->key);
	jw_ktext(w, "role", role_name(note->role));
	jw_kint(w, "version", note->version);
	jw_kint(w, "bodyLength", note->chars);
	if (!note->is_filled)
		jw_kbool(w, "filled", false);
	jw_object_end(w);
	note->is_written = true;
}

/* Notes in the order of the schema, then the others by key. */
static int notes_write(struct json_writer *w, struct snapshot *s, struct call *call, const struct item *item,
	const struct schema *schema, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct note_meta *notes = NULL;
	size_t n = 0, cap = 0;
	int rc;

	if (query(s, &q, f, SQL_NOTE_METAS, "i", item->n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (n == cap) {
			notes = arena_grow(s->arena, notes, cap * sizeof(*notes), (cap + 16) * sizeof(*notes));
			cap += 16;
		}
		notes[n++] = (struct note_meta){.id = col_id(&q, 0), .key = col_str(&q, 1),
			.role = (enum role)col_int(&q, 2), .version = col_int(&q, 3), .chars = col_int(&q, 4),
			.is_filled = col_int(&q, 5) != 0};
	}
	if (rc < 0 || n == 0)
		return rc;
	jw_karray(w, "notes");
	for (size_t k = 0; k < schema->note_count; k++)
		for (size_t i = 0; i < n; i++)
			if (!notes[i].is_written && str_eq(notes[i].key, schema->notes[k].key))
				note_write(w, call, &notes[i]);
	for (size_t i = 0; i < n; i++)
		if (!notes[i].is_written)
			note_write(w, call, &notes[i]);
	jw_array_end(w);
	return 0;
}

static int progress_write(struct json_writer *w, struct snapshot *s, const struct item *item,
	const struct schema *schema, struct failure *f)
{
	struct note_progress progress;
	struct note_rows rows;

	if (note_rows_load(s, item, schema, &rows, f) != 0)
		return -1;
	note_progress(schema, &rows, item->role, &progress);
	notes_write_progress(w, &progress);
	return 0;
}

static int note_parts(struct json_writer *w, struct snapshot *s, struct call *call, const struct item *item,
	unsigned parts, struct failure *f)
{
	struct schema schema;

	if ((parts & (PART_NOTES | PART_NOTE_PROGRESS)) == 0)
		return 0;
	if (item_schema(s, call, item, &schema, f) != 0)
		return -1;
	if ((parts & PART_NOTES) && notes_write(w, s, call, item, &schema, f) != 0)
		return -1;
	return (parts & PART_NOTE_PROGRESS) ? progress_write(w, s, item, &schema, f) : 0;
}

/* ---- dependencies ---- */

SQL(SQL_INCOMING, /* by dep_to */
	"SELECT d.id, i.id, i.root_n, i.role, d.type, d.threshold FROM dep d JOIN item i ON i.n = d.from_n"
	" WHERE d.to_n = $1 ORDER BY d.n LIMIT 200");
SQL(SQL_OUTGOING, /* by the unique key */
	"SELECT d.id, i.id, i.root_n, m.role, d.type, d.threshold FROM dep d JOIN item i ON i.n = d.to_n"
	" JOIN item m ON m.n = d.from_n WHERE d.from_n = $1 ORDER BY d.n LIMIT 200");

static int edges_write(struct json_writer *w, struct snapshot *s, struct call *call, const char *key,
	const char *sql, int64_t item_n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	bool any = false;
	int rc;

	if (query(s, &q, f, sql, "i", item_n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (!any)
			jw_karray(w, key);
		any = true;
		jw_object_begin(w);
		jw_id_of(w, call, "depId", KIND_DEPENDENCY, col_id(&q, 0));
		if (caller_reads_root(call->caller, col_int(&q, 2)))
			jw_id(w, call, "id", col_id(&q, 1));
		else
			jw_kraw(w, "id", STR("null")); /* it gates all the same */
		jw_ktext(w, "type", col_int(&q, 4) == 0 ? "BLOCKS" : "RELATES_TO");
		if (col_int(&q, 4) == 0)
			jw_kbool(w, "satisfied", col_int(&q, 3) >= col_int(&q, 5));
		jw_object_end(w);
	}
	if (any)
		jw_array_end(w);
	return rc;
}

static int dependencies_write(struct json_writer *w, struct snapshot *s, struct call *call, const struct item *item,
	struct failure *f)
{
	jw_kobject(w, "dependencies");
	if (edges_write(w, s, call, "incoming", SQL_INCOMING, item->n, f) != 0 ||
		edges_write(w, s, call, "outgoing", SQL_OUTGOING, item->n, f) != 0)
		return -1;
	jw_object_end(w);
	return 0;
}

/* ---- claims ---- */

void claim_state_write(struct json_writer *w, const struct item *item, int64_t now)
{
	jw_kobject(w, "claim");
	jw_ktext(w, "state", item->claim_by == 0 ? "unclaimed" : claim_is_live(item, now) ? "claimed" : "expired");
	jw_object_end(w);
}

int parts_write(struct json_writer *w, struct snapshot *s, struct call *call, const struct item *item,
	unsigned parts, bool is_full, struct failure *f)
{
	if (!is_full && (parts & PART_SUMMARY))
		jw_kstr_opt(w, "summary", item->summary);
	if (!is_full && (parts & PART_TAGS) && item->tags.n > 2)
		jw_kraw(w, "tags", item->tags);
	if ((parts & PART_ANCESTORS) && ancestors_write(w, s, call, item->parent_n, f) != 0)
		return -1;
	if (texts_write(w, s, item, parts, f) != 0)
		return -1;
	if ((parts & PART_CHILD_COUNTS) && counts_write(w, s, item, f) != 0)
		return -1;
	if (note_parts(w, s, call, item, parts, f) != 0)
		return -1;
	if ((parts & PART_DEPENDENCIES) && dependencies_write(w, s, call, item, f) != 0)
		return -1;
	if ((parts & PART_CLAIM) && !is_full)
		claim_state_write(w, item, s->now);
	else if ((parts & PART_CLAIM) && claim_write(w, s, call, item, f) != 0)
		return -1;
	return (parts & PART_CREATED_BY) ? actor_write(w, s, call, "createdBy", item->created_by, 0, STR_NONE, f) : 0;
}

/* ---- rows ---- */

void rows_init(struct rows *rows, struct json_writer *w, struct call *call)
{
	*rows = (struct rows){.w = w, .call = call, .end = LIMIT_ANSWER_BYTES - ENVELOPE_BYTES};
}

void row_begin(struct rows *rows)
{
	rows->mark = rows->w->out->n;
	jw_object_begin(rows->w);
}

bool row_end(struct rows *rows)
{
	struct buf *out = rows->w->out;

	jw_object_end(rows->w);
	if (rows->n > 0 && out->n > rows->end) {
		out->n = rows->mark;
		rows->call->page.is_shrunk = true;
		return false;
	}
	rows->n++;
	return true;
}
