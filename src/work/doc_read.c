/* Reading documents. */
#include "work/docs.h"

#include "base/limits.h"
#include "work/body.h"
#include "work/section.h"
#include "work/versions.h"

#define LIST_DEFAULT 50

static const char *const list_fields[] = {"actor", NULL};

int doc_list_check(const struct doc_list_args *in, struct str path, struct failure *f)
{
	return fields_check(in->fields.v, in->fields.n, list_fields, str_printf(f->arena, "%.*sfields", STRF(path)),
		f);
}

int doc_rule_check(const struct doc_rule_args *in, struct str path, struct failure *f)
{
	if (in->item.set != in->note_key.set)
		return fail_field(f, str_printf(f->arena, "%.*s%s", STRF(path), in->item.set ? "noteKey" : "itemId"),
			STR_NONE, "itemId and noteKey belong together");
	if (in->item.set && in->root.set)
		return fail_field(f, str_printf(f->arena, "%.*srootId", STRF(path)), STR_NONE, "excludes itemId");
	return 0;
}

/* ---- list ---- */

static void list_sql(struct sql *sql, struct call *call, const struct doc_list_args *in, int64_t root_n,
	const char *select)
{
	sql_init(sql, call->arena);
	sql_add(sql, select);
	sql_add(sql, " FROM document d LEFT JOIN item a ON a.n = d.adopted_by_n WHERE d.root_n = ");
	sql_int(sql, root_n);
	for (size_t i = 0; i < in->kinds.n; i++) {
		sql_add(sql, i == 0 ? " AND d.kind IN (" : ", ");
		sql_int(sql, in->kinds.v[i]);
		sql_add(sql, i + 1 == in->kinds.n ? ")" : "");
	}
	if (in->status.set) {
		sql_add(sql, " AND d.status = ");
		sql_int(sql, in->status.v);
	}
	if (in->prefix.set) {
		/* '~' sorts behind every character that a slug may have. */
		sql_add(sql, " AND d.slug >= ");
		sql_str(sql, in->prefix.v);
		sql_add(sql, " AND d.slug < ");
		sql_str(sql, str_printf(call->arena, "%.*s~", STRF(in->prefix.v)));
	}
}

static int write_row(struct json_writer *w, struct snapshot *s, struct call *call, const struct query *q,
	bool with_actor, struct failure *f)
{
	jw_object_begin(w);
	jw_id_of(w, call, "docId", KIND_DOCUMENT, col_id(q, 0));
	jw_ktext(w, "kind", word_text(document_kind_words, col_int(q, 1)));
	jw_kstr(w, "slug", col_str(q, 2));
	jw_kstr_opt(w, "title", col_str(q, 3));
	jw_kint(w, "version", col_int(q, 4));
	jw_kint(w, "bytes", col_int(q, 5));
	jw_kstr(w, "contentHash", col_str(q, 6));
	if (!col_is_null(q, 7))
		jw_ktext(w, "status", word_text(document_status_words, col_int(q, 7)));
	if (!col_is_null(q, 8))
		jw_id(w, call, "adoptedByItemId", col_id(q, 8));
	jw_ktime(w, "modifiedAt", col_int(q, 9));
	if (with_actor && actor_write(w, s, call, "actor", col_int(q, 10), 0, STR_NONE, f) != 0)
		return -1;
	jw_object_end(w);
	return 0;
}

static int count_rows(struct snapshot *s, struct call *call, const struct doc_list_args *in, int64_t root_n,
	int64_t *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;

	list_sql(&sql, call, in, root_n, "SELECT count(*)");
	if (query_sql(s, &q, f, &sql) != 0 || query_next(&q, f) != 1)
		return -1;
	*out = col_int(&q, 0);
	return 0;
}

int doc_list(struct snapshot *s, struct call *call, const struct doc_list_args *in, struct json_writer *out,
	struct failure *f)
{
	int64_t limit = in->limit.set ? in->limit.v : LIST_DEFAULT;
	bool with_actor = fields_have(in->fields.v, in->fields.n, "actor");
	AUTO(query_endp) struct query q = {0};
	struct cursor from = {0};
	struct str last = STR_NONE;
	struct item root;
	struct sql sql;
	int64_t returned = 0;
	int64_t total;
	bool has_more = false;
	int rc;

	if (project_find(s, call, &in->root, &root, f) != 0 ||
		(in->cursor.set && cursor_read(call, in->cursor.v, &from, f) != 0) ||
		count_rows(s, call, in, root.n, &total, f) != 0)
		return -1;
	list_sql(&sql, call, in, root.n,
		"SELECT d.id, d.kind, d.slug, d.title, d.version, d.bytes, d.content_hash, d.status, a.id,"
		" d.modified_at, d.actor_n");
	if (from.n > 0) {
		sql_add(&sql, " AND d.slug > ");
		sql_str(&sql, from.parts[0]);
	}
	sql_add(&sql, " ORDER BY d.slug LIMIT ");
	sql_int(&sql, limit + 1);
	if (query_sql(s, &q, f, &sql) != 0)
		return -1;
	jw_karray(out, "documents");
	while ((rc = query_next(&q, f)) == 1) {
		if (returned == limit || (returned > 0 && out->out->n > LIMIT_ANSWER_BYTES - 8192)) {
			call->page.is_shrunk = returned < limit;
			has_more = true;
			break;
		}
		if (write_row(out, s, call, &q, with_actor, f) != 0)
			return -1;
		last = col_str(&q, 2);
		returned++;
	}
	if (rc < 0)
		return -1;
	jw_array_end(out);
	call_page(call, returned, total, has_more ? cursor_text(call, &last, 1) : STR_NONE);
	return 0;
}

/* ---- get, section ---- */

static void write_head(struct json_writer *w, struct call *call, const struct document *doc, int64_t version,
	struct str body)
{
	jw_id_of(w, call, "docId", KIND_DOCUMENT, doc->id);
	jw_ktext(w, "kind", word_text(document_kind_words, doc->kind));
	jw_kstr(w, "slug", doc->slug);
	jw_kstr_opt(w, "title", doc->title);
	jw_kint(w, "version", version);
	jw_kint(w, "bytes", (int64_t)body.n);
	if (doc->kind == DOCUMENT_PLAN)
		jw_ktext(w, "status", word_text(document_status_words, doc->status));
}

static int text_of(struct snapshot *s, const struct document *doc, int64_t version, struct str *out, struct failure *f)
{
	int rc = document_text(s, doc, version, out, f);

	if (rc != 0)
		return rc == 1 ? 0 : -1;
	return fail_not_found(f, "document",
		str_printf(f->arena, "%.*s@%lld", STRF(doc->slug), (long long)version));
}

int doc_get(struct snapshot *s, struct call *call, const struct doc_get_args *in, struct json_writer *out,
	struct failure *f)
{
	struct excerpt excerpt;
	struct document doc;
	struct str body;
	int64_t version;

	if (document_target_find(s, call, &in->target, &doc, f) != 0)
		return -1;
	version = in->version.set ? in->version.v : doc.version;
	if (text_of(s, &doc, version, &body, f) != 0)
		return -1;
	jw_kobject(out, "document");
	write_head(out, call, &doc, version, body);
	if (in->outline.v) {
		outline_write(out, s->arena, body, in->offset.v, EXCERPT_BYTES - out->out->n);
	} else {
		excerpt_of(body, in->offset.v, in->max_chars.v, EXCERPT_BYTES - out->out->n, &excerpt);
		excerpt_write(out, &excerpt);
	}
	jw_object_end(out);
	return 0;
}

int doc_section(struct snapshot *s, struct call *call, const struct doc_section_args *in, struct json_writer *out,
	struct failure *f)
{
	const struct section *section;
	struct section *sections;
	struct excerpt excerpt;
	struct document doc;
	struct str body;
	size_t n;

	if (document_target_find(s, call, &in->target, &doc, f) != 0 ||
		text_of(s, &doc, doc.version, &body, f) != 0)
		return -1;
	n = sections_of(s->arena, body, &sections);
	section = section_find(sections, n, in->anchor.v);
	if (section == NULL)
		return fail_not_found(f, "document",
			str_printf(f->arena, "%.*s#%.*s", STRF(doc.slug), STRF(in->anchor.v)));
	jw_kobject(out, "section");
	jw_id_of(out, call, "docId", KIND_DOCUMENT, doc.id);
	jw_kstr(out, "slug", doc.slug);
	jw_kstr(out, "anchor", section->anchor);
	jw_kint(out, "version", doc.version);
	excerpt_of(section_text(section, body), in->offset.v, 0, EXCERPT_BYTES - out->out->n, &excerpt);
	excerpt_write(out, &excerpt);
	jw_object_end(out);
	return 0;
}

/* ---- rule ---- */

static int fail_no_rule(struct failure *f, struct str id)
{
	return fail_not_found(f, "document", id);
}

/* The rule that the schema of an item names for one of its notes. */
static int rule_of_note(struct snapshot *s, struct call *call, const struct doc_rule_args *in, int64_t *root_n,
	struct str *key, struct failure *f)
{
	const struct rules_note *note;
	struct schema schema;
	struct item item;

	if (item_find(s, call, in->item.v, STR("itemId"), &item, f) != 0 ||
		item_schema(s, call, &item, &schema, f) != 0)
		return -1;
	note = schema_note(&schema, in->note_key.v);
	if (note == NULL || note->skill.n == 0 || !rules_is_rule_key(note->skill))
		return fail_no_rule(f, in->note_key.v);
	*root_n = item.root_n;
	*key = note->skill;
	return 0;
}

int doc_rule(struct snapshot *s, struct call *call, const struct doc_rule_args *in, struct json_writer *out,
	struct failure *f)
{
	struct str key = in->key.v;
	struct document doc;
	struct item root;
	struct str body;
	int64_t root_n;
	int rc;

	if (in->item.set) {
		if (rule_of_note(s, call, in, &root_n, &key, f) != 0)
			return -1;
	} else {
		if (project_find(s, call, &in->root, &root, f) != 0)
			return -1;
		root_n = root.n;
	}
	rc = document_find(s, root_n, str_printf(s->arena, "rule/%.*s", STRF(key)), &doc, f);
	if (rc == 0)
		return fail_no_rule(f, str_printf(f->arena, "rule/%.*s", STRF(key)));
	if (rc < 0 || text_of(s, &doc, doc.version, &body, f) != 0)
		return -1;
	jw_kobject(out, "rule");
	jw_kstr(out, "key", key);
	jw_kstr(out, "body", body);
	jw_kstr(out, "rulesVersion", doc.content_hash);
	jw_kint(out, "bytes", doc.bytes);
	jw_object_end(out);
	return 0;
}

/* ---- versions ---- */

SQL(SQL_VERSIONS,
	"SELECT version, body, content_hash, written_at, actor_n FROM document_version"
	" WHERE document_n = $1 AND version < $2 ORDER BY version DESC LIMIT $3");
SQL(SQL_VERSION_COUNT, "SELECT count(*) FROM document_version WHERE document_n = $1");

static int write_version(struct json_writer *w, struct snapshot *s, struct call *call, const struct query *q,
	struct failure *f)
{
	jw_object_begin(w);
	jw_kint(w, "version", col_int(q, 0));
	jw_kint(w, "bytes", (int64_t)col_str(q, 1).n);
	jw_kstr(w, "contentHash", col_str(q, 2));
	jw_ktime(w, "writtenAt", col_int(q, 3));
	if (actor_write(w, s, call, "actor", col_int(q, 4), 0, STR_NONE, f) != 0)
		return -1;
	jw_object_end(w);
	return 0;
}

int doc_versions(struct snapshot *s, struct call *call, const struct doc_versions_args *in,
	struct json_writer *out, struct failure *f)
{
	struct versions page = {.limit = in->limit.set ? in->limit.v : LIMIT_DOC_VERSIONS, .write = write_version};
	AUTO(query_endp) struct query q = {0};
	struct document doc;

	if (document_target_find(s, call, &in->target, &doc, f) != 0 || versions_begin(&page, call, &in->cursor, f) != 0 ||
		query_int(s, &page.total, f, SQL_VERSION_COUNT, "i", doc.n) < 0 ||
		query(s, &q, f, SQL_VERSIONS, "iii", doc.n, page.below, page.limit + 1) != 0)
		return -1;
	return versions_write(&page, s, call, &q, out, f);
}
