/* Writing documents. */
#include "work/docs.h"

#include "base/limits.h"
#include "work/body.h"
#include "work/config.h"
#include "work/section.h"

const struct word document_kind_words[] = {
	{"plan", DOCUMENT_PLAN},
	{"rule", DOCUMENT_RULE},
	{"page", DOCUMENT_PAGE},
	WORDS_END,
};
const struct word document_status_words[] = {
	{"pending", DOCUMENT_PENDING},
	{"adopted", DOCUMENT_ADOPTED},
	WORDS_END,
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool document_is_slug(struct str text)
{
	bool at_start = true;

	if (text.n == 0 || text.n > LIMIT_SLUG_CHARS)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (at_start && !is_letter(c))
			return false;
		if (!at_start && !is_letter(c) && c != '.' && c != '_' && c != '-' && c != '/')
			return false;
		at_start = c == '/';
	}
	return !at_start;
}

/* ---- finding ---- */

int project_find(struct snapshot *s, struct call *call, const struct arg_str *root, struct item *out,
	struct failure *f)
{
	const struct caller *caller = call->caller;
	int rc;

	if (!root->set) {
		if (caller->roots == NULL || caller->root_count != 1)
			return fail_field(f, STR("rootId"), STR_NONE,
				"is required, as your credential is not limited to one project");
		rc = item_load(s, caller->roots[0], out, f);
		return rc == 1 ? 0 : rc < 0 ? -1 : fail_field(f, STR("rootId"), STR_NONE, "is required");
	}
	if (item_find(s, call, root->v, STR("rootId"), out, f) != 0)
		return -1;
	if (out->depth != 0)
		return fail_field(f, STR("rootId"), root->v, "must be an item of depth 0, a project");
	return 0;
}

#define DOCUMENT_COLUMNS \
	"SELECT n, id, root_n, kind, slug, title, status, adopted_by_n, version, bytes, content_hash, modified_at," \
	" actor_n FROM document"
SQL(SQL_DOCUMENT, DOCUMENT_COLUMNS " WHERE n = $1");
SQL(SQL_DOCUMENT_BY_SLUG, DOCUMENT_COLUMNS " WHERE root_n = $1 AND slug = $2");

static int load(struct query *q, struct document *out, struct failure *f)
{
	int rc = query_next(q, f);

	if (rc != 1)
		return rc;
	*out = (struct document){
		.n = col_int(q, 0),
		.id = col_id(q, 1),
		.root_n = col_int(q, 2),
		.kind = (enum document_kind)col_int(q, 3),
		.slug = col_str(q, 4),
		.title = col_str(q, 5),
		.status = (enum document_status)col_int(q, 6),
		.adopted_by_n = col_int(q, 7),
		.version = col_int(q, 8),
		.bytes = col_int(q, 9),
		.content_hash = col_str(q, 10),
		.modified_at = col_int(q, 11),
		.actor_n = col_int(q, 12),
	};
	return 1;
}

int document_find(struct snapshot *s, int64_t root_n, struct str slug, struct document *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};

	return query(s, &q, f, SQL_DOCUMENT_BY_SLUG, "is", root_n, slug) != 0 ? -1 : load(&q, out, f);
}

int document_target_find(struct snapshot *s, struct call *call, const struct document_target *target,
	struct document *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct item root;
	int64_t n;
	int rc;

	if (target->doc.set) {
		if (id_resolve(s, call, KIND_DOCUMENT, target->doc.v, STR("docId"), &n, f) != 0 ||
			query(s, &q, f, SQL_DOCUMENT, "i", n) != 0)
			return -1;
		rc = load(&q, out, f);
		return rc == 1 ? 0 : rc < 0 ? -1 : fail_not_found(f, "document", target->doc.v);
	}
	if (project_find(s, call, &target->root, &root, f) != 0)
		return -1;
	rc = document_find(s, root.n, target->slug.v, out, f);
	return rc == 1 ? 0 : rc < 0 ? -1 : fail_not_found(f, "document", target->slug.v);
}

SQL(SQL_DOCUMENT_TEXT, "SELECT body FROM document_version WHERE document_n = $1 AND version = $2");

int document_text(struct snapshot *s, const struct document *doc, int64_t version, struct str *out,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_DOCUMENT_TEXT, "ii", doc->n, version) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1)
		*out = col_str(&q, 0);
	return rc;
}

/* ---- storing ---- */

static int document_event(struct tx *tx, enum event_type type, const struct document *doc, struct id item,
	struct failure *f)
{
	struct json_writer w;
	struct buf data;
	char text[ID_TEXT_SIZE];

	buf_init(&data, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	if (type == EVENT_DOCUMENT_PUT || type == EVENT_DOCUMENT_DELETED)
		jw_ktext(&w, "kind", word_text(document_kind_words, doc->kind));
	jw_kstr(&w, "slug", doc->slug);
	if (type == EVENT_DOCUMENT_PUT || type == EVENT_PLAN_STASHED)
		jw_kint(&w, "version", doc->version);
	if (type == EVENT_PLAN_ADOPTED) {
		id_format(item, text);
		jw_ktext(&w, "itemId", text);
	}
	jw_object_end(&w);
	return event_add(tx, type, doc->root_n, 0, doc->id, buf_str(&data), f);
}

SQL(SQL_DOCUMENT_ADD,
	"INSERT INTO document (n, id, root_n, kind, slug, title, status, version, bytes, content_hash, created_at,"
	" modified_at, actor_n) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12)");
SQL(SQL_DOCUMENT_SET,
	"UPDATE document SET title = $2, version = $3, bytes = $4, content_hash = $5, modified_at = $6,"
	" actor_n = $7 WHERE n = $1");
SQL(SQL_VERSION_ADD,
	"INSERT INTO document_version (document_n, version, title, body, content_hash, actor_n, written_at)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7)");
SQL(SQL_VERSION_TRIM, "DELETE FROM document_version WHERE document_n = $1 AND version <= $2");

/* `doc` says what it shall be: version 1 is a new row, any other the next version of an old one. */
static int store(struct tx *tx, struct document *doc, struct str body, struct failure *f)
{
	static const int64_t pending = DOCUMENT_PENDING;
	int64_t now = tx->snapshot.now;
	int64_t actor_n;

	doc->bytes = (int64_t)body.n;
	doc->content_hash = sha256_hex(tx->snapshot.arena, body);
	if (tx_actor(tx, &actor_n, f) != 0)
		return -1;
	if (doc->version == 1) {
		id_generate(&doc->id);
		if (tx_next(tx, SEQ_document, &doc->n, f) != 0 ||
			tx_run(tx, f, SQL_DOCUMENT_ADD, "ibiissoiisii", doc->n, doc->id, doc->root_n,
				(int64_t)doc->kind, doc->slug, doc->title,
				doc->kind == DOCUMENT_PLAN ? &pending : NULL, doc->version, doc->bytes,
				doc->content_hash, now, actor_n) < 0)
			return -1;
	} else if (tx_run(tx, f, SQL_DOCUMENT_SET, "isiisii", doc->n, doc->title, doc->version, doc->bytes,
			   doc->content_hash, now, actor_n) < 0) {
		return -1;
	}
	if (tx_run(tx, f, SQL_VERSION_ADD, "iisssii", doc->n, doc->version, doc->title, body, doc->content_hash,
		    actor_n, now) < 0 ||
		tx_run(tx, f, SQL_VERSION_TRIM, "ii", doc->n, doc->version - LIMIT_DOC_VERSIONS) < 0)
		return -1;
	return document_event(tx, doc->kind == DOCUMENT_PLAN ? EVENT_PLAN_STASHED : EVENT_DOCUMENT_PUT, doc,
		(struct id){{0}}, f);
}

static int root_writable(struct tx *tx, struct call *call, int64_t root_n, struct failure *f)
{
	struct item root;

	if (item_load(&tx->snapshot, root_n, &root, f) != 1)
		return -1;
	return item_writable(&tx->snapshot, call, &root, f);
}

static int version_check(const struct document *doc, struct str name, const struct arg_int *expected, int64_t actual,
	struct failure *f)
{
	if (!expected->set || expected->v == actual)
		return 0;
	(void)fail(f, FAIL_VERSION_CONFLICT, "Expected version %lld of the document, it is %lld.",
		(long long)expected->v, (long long)actual);
	fail_detail_str(f, "kind", STR("document"));
	fail_detail_str(f, "id", doc == NULL ? name : id_str(f->arena, doc->id));
	fail_detail_int(f, "expected", expected->v);
	fail_detail_int(f, "actual", actual);
	return -1;
}

/* ---- put ---- */

int doc_put_check(const struct doc_put_args *in, struct str path, struct failure *f)
{
	bool is_rule = in->kind.set && in->kind.v == DOCUMENT_RULE;
	struct str slug = str_printf(f->arena, "%.*sslug", STRF(path));
	bool is_rule_slug = str_starts(in->slug.v, STR("rule/"));
	int rc = 0;

	if (in->key.set && !is_rule)
		rc = fail_field(f, str_printf(f->arena, "%.*skey", STRF(path)), STR_NONE, "belongs to kind rule only");
	if (in->slug.set && in->kind.set && is_rule != is_rule_slug)
		rc = fail_field(f, slug, in->slug.v, "kind rule, and only kind rule, begins with rule/");
	if (in->slug.set && is_rule && is_rule_slug &&
		!rules_is_rule_key((struct str){in->slug.v.p + 5, in->slug.v.n - 5}))
		rc = fail_field(f, slug, in->slug.v, "must be rule/ and a rule key");
	return rc;
}

static int64_t max_bytes(const struct doc_put_args *in)
{
	return in->kind.v == DOCUMENT_RULE ? LIMIT_RULE_BYTES : LIMIT_NOTE_BYTES;
}

int doc_put_prepare(struct call *call, struct doc_put_args *in, struct failure *f)
{
	if (!in->body_from_file.set)
		return 0;
	if (body_from_file(call, in->body_from_file.v, max_bytes(in), &in->body.v, f) != 0)
		return -1;
	in->body.set = true;
	return 0;
}

static int size_check(const struct doc_put_args *in, struct failure *f)
{
	if ((int64_t)in->body.v.n <= max_bytes(in))
		return 0;
	(void)fail(f, FAIL_PAYLOAD_TOO_LARGE, "A %s may have %lld bytes, this has %zu.",
		word_text(document_kind_words, in->kind.v), (long long)max_bytes(in), in->body.v.n);
	fail_detail_int(f, "max", max_bytes(in));
	fail_detail_int(f, "actual", (int64_t)in->body.v.n);
	return -1;
}

/* Anchors that a tree may copy from; as many as an answer should carry. */
static void write_anchors(struct json_writer *w, struct arena *arena, struct str body)
{
	struct section *sections;
	size_t n = sections_of(arena, body, &sections);

	if (n == 0)
		return;
	jw_karray(w, "anchors");
	for (size_t i = 0; i < n && i < LIMIT_ANCHORS; i++)
		jw_str(w, sections[i].anchor);
	jw_array_end(w);
}

static bool same_title(struct str a, struct str b)
{
	return (a.p == NULL) == (b.p == NULL) && str_eq(a, b);
}

/* Finds what is there and says what shall be: 1 it exists, 0 it does not. */
static int plan_put(struct tx *tx, struct call *call, const struct doc_put_args *in, struct document *old,
	struct document *new, struct failure *f)
{
	struct snapshot *s = &tx->snapshot;
	struct str slug = in->key.set ? str_printf(call->arena, "rule/%.*s", STRF(in->key.v)) : in->slug.v;
	struct item root;
	int rc;

	if (size_check(in, f) != 0 || project_find(s, call, &in->root, &root, f) != 0 ||
		item_writable(s, call, &root, f) != 0)
		return -1;
	rc = document_find(s, root.n, slug, old, f);
	if (rc < 0 || version_check(rc == 1 ? old : NULL, slug, &in->expected_version, rc == 1 ? old->version : 0, f) != 0)
		return -1;
	if (rc == 1 && (int64_t)old->kind != in->kind.v)
		return fail_field(f, STR("kind"), STR_NONE, "the slug belongs to a %s",
			word_text(document_kind_words, old->kind));
	*new = rc == 1 ? *old : (struct document){.root_n = root.n, .kind = (enum document_kind)in->kind.v, .slug = slug};
	new->version++;
	if (in->title.set)
		new->title = in->title.null ? STR_NONE : in->title.v;
	return rc;
}

int doc_put(struct tx *tx, struct call *call, const struct doc_put_args *in, struct json_writer *out,
	struct failure *f)
{
	struct document old;
	struct document doc;
	int exists = plan_put(tx, call, in, &old, &doc, f);
	struct str body;
	bool unchanged;

	if (exists < 0)
		return -1;
	body = body_normalise(call, in->body.v);
	unchanged = exists && same_title(old.title, doc.title) &&
		str_eq(old.content_hash, sha256_hex(call->arena, body));
	if (unchanged)
		doc = old;
	else if (store(tx, &doc, body, f) != 0)
		return -1;
	jw_id_of(out, call, "docId", KIND_DOCUMENT, doc.id);
	jw_kstr(out, "slug", doc.slug);
	jw_kint(out, "version", doc.version);
	jw_kbool(out, "created", exists == 0);
	jw_kbool_opt(out, "unchanged", unchanged);
	jw_kstr(out, "contentHash", doc.content_hash);
	if (doc.kind == DOCUMENT_PLAN)
		write_anchors(out, call->arena, body);
	return 0;
}

/* ---- restore, delete, adopt ---- */

SQL(SQL_VERSION_TITLE, "SELECT title FROM document_version WHERE document_n = $1 AND version = $2");

static int old_title(struct snapshot *s, const struct document *doc, int64_t version, struct str *out,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};

	if (query(s, &q, f, SQL_VERSION_TITLE, "ii", doc->n, version) != 0 || query_next(&q, f) != 1)
		return -1;
	*out = col_str(&q, 0);
	return 0;
}

int doc_restore(struct tx *tx, struct call *call, const struct doc_restore_args *in, struct json_writer *out,
	struct failure *f)
{
	struct document doc;
	struct str body;
	int rc;

	if (document_target_find(&tx->snapshot, call, &in->target, &doc, f) != 0 ||
		root_writable(tx, call, doc.root_n, f) != 0)
		return -1;
	rc = document_text(&tx->snapshot, &doc, in->version.v, &body, f);
	if (rc == 0)
		return fail_not_found(f, "document",
			str_printf(f->arena, "%.*s@%lld", STRF(doc.slug), (long long)in->version.v));
	if (rc < 0 || old_title(&tx->snapshot, &doc, in->version.v, &doc.title, f) != 0)
		return -1;
	doc.version++;
	if (store(tx, &doc, body, f) != 0)
		return -1;
	jw_id_of(out, call, "docId", KIND_DOCUMENT, doc.id);
	jw_kint(out, "version", doc.version);
	jw_kint(out, "restoredFrom", in->version.v);
	return 0;
}

SQL(SQL_DOCUMENT_DELETE, "DELETE FROM document WHERE n = $1");

static int warn_if_used(struct tx *tx, struct call *call, const struct document *doc, struct failure *f)
{
	struct str key = {doc->slug.p + 5, doc->slug.n - 5};
	bool used;

	if (doc->kind != DOCUMENT_RULE)
		return 0;
	if (config_uses_rule(&tx->snapshot, call, doc->root_n, key, &used, f) != 0)
		return -1;
	if (used)
		warn(&call->warnings, "rule_in_use", STR_NONE, "The configuration still names the rule %.*s.",
			STRF(key));
	return 0;
}

int doc_delete(struct tx *tx, struct call *call, const struct doc_delete_args *in, struct json_writer *out,
	struct failure *f)
{
	struct document doc;

	if (document_target_find(&tx->snapshot, call, &in->target, &doc, f) != 0 ||
		root_writable(tx, call, doc.root_n, f) != 0 ||
		version_check(&doc, doc.slug, &in->expected_version, doc.version, f) != 0 ||
		warn_if_used(tx, call, &doc, f) != 0 || tx_run(tx, f, SQL_DOCUMENT_DELETE, "i", doc.n) < 0 ||
		document_event(tx, EVENT_DOCUMENT_DELETED, &doc, (struct id){{0}}, f) != 0)
		return -1;
	jw_id_of(out, call, "docId", KIND_DOCUMENT, doc.id);
	jw_kbool(out, "deleted", true);
	return 0;
}

SQL(SQL_DOCUMENT_ADOPT, "UPDATE document SET status = 1, adopted_by_n = $2 WHERE n = $1 AND status = 0");

int document_adopt(struct tx *tx, const struct document *doc, const struct item *item, struct failure *f)
{
	int64_t rows = tx_run(tx, f, SQL_DOCUMENT_ADOPT, "ii", doc->n, item->n);

	if (rows < 0)
		return -1;
	if (rows == 0) {
		(void)fail(f, FAIL_DUPLICATE, "The plan %.*s was adopted already.", STRF(doc->slug));
		fail_detail_str(f, "kind", STR("document"));
		fail_detail_str(f, "existingId", id_str(f->arena, doc->id));
		return -1;
	}
	return document_event(tx, EVENT_PLAN_ADOPTED, doc, item->id, f);
}
