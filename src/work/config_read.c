/* Reading rules documents. */
#include "work/config.h"

#include "base/limits.h"
#include "work/docs.h"
#include "work/versions.h"

static void unref(struct rules_doc **doc)
{
	rules_doc_unref(*doc);
}

/* The project whose document is asked for; row 0 for the global one. */
static int find_scope(struct snapshot *s, struct call *call, const struct arg_str *root, struct item *out,
	struct failure *f)
{
	*out = (struct item){.n = 0};
	return root->set ? project_find(s, call, root, out, f) : 0;
}

static void write_root(struct json_writer *w, struct call *call, const struct item *root)
{
	if (root->n != 0)
		jw_id(w, call, "rootId", root->id);
}

static int fail_no_document(struct failure *f, const struct item *root)
{
	if (root->n != 0)
		return fail_not_found(f, "root", id_str(f->arena, root->id));
	(void)fail(f, FAIL_NOT_FOUND,
		"There is no global document: no .dais/config.yaml was found where the server was started. Name a rootId for a project's.");
	fail_detail_str(f, "kind", STR("root"));
	fail_detail_str(f, "id", STR("global"));
	return -1;
}

/* ---- current ---- */

SQL(SQL_CONFIG_CURRENT, "SELECT yaml, fingerprint, version, updated_at FROM config WHERE root_n = $1");

/* What is to be said about the stored text. One that this program refuses was stored by an older one. */
static void write_notices(struct snapshot *s, struct call *call, const struct item *root, struct str yaml,
	struct json_writer *w)
{
	AUTO(unref) struct rules_doc *doc = NULL;
	struct warnings warnings;
	struct failure refused;
	const struct str *ignored;
	size_t n;

	failure_init(&refused, s->arena);
	warnings_init(&warnings, s->arena, LIMIT_CONFIG_WARNINGS + 1);
	warnings.index = -1;
	if (rules_parse(yaml, STR_NONE, root->n == 0, &warnings, &doc, &refused) != 0) {
		warn(&call->warnings, "config_degraded", STR_NONE,
			"The stored document is not valid for this version; an earlier one, or none, is in force.");
		return;
	}
	warnings_write(&warnings, "schemaWarnings", w);
	n = rules_doc_ignored(doc, &ignored);
	if (n == 0)
		return;
	jw_karray(w, "ignoredSections");
	for (size_t i = 0; i < n; i++)
		jw_str(w, ignored[i]);
	jw_array_end(w);
}

int config_current(struct snapshot *s, struct call *call, const struct config_current_args *in,
	struct json_writer *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct item root;
	struct str yaml;
	int rc;

	if (find_scope(s, call, &in->root, &root, f) != 0 || query(s, &q, f, SQL_CONFIG_CURRENT, "i", root.n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc < 0 ? -1 : fail_no_document(f, &root);
	yaml = col_str(&q, 0);
	write_root(out, call, &root);
	jw_kint(out, "version", col_int(&q, 2));
	jw_kstr(out, "fingerprint", col_str(&q, 1));
	jw_ktime(out, "updatedAt", col_int(&q, 3));
	jw_kint(out, "bytes", (int64_t)yaml.n);
	if (!in->include_text.set || in->include_text.v)
		jw_kstr(out, "yaml", yaml);
	write_notices(s, call, &root, yaml, out);
	return 0;
}

/* ---- effective ---- */

static void write_types(const struct rules_view *view, struct arena *arena, struct json_writer *w)
{
	struct rules_type_row *rows;
	size_t n = rules_types(view, arena, &rows);

	jw_karray(w, "types");
	for (size_t i = 0; i < n; i++) {
		struct schema schema;

		rules_schema(view, rows[i].name, NULL, 0, NULL, 0, arena, &schema);
		jw_object_begin(w);
		jw_kstr(w, "type", rows[i].name);
		jw_ktext(w, "source", rules_source_name(rows[i].source));
		jw_ktext(w, "lifecycle", lifecycle_name(schema.lifecycle));
		jw_karray(w, "notes");
		for (size_t j = 0; j < schema.note_count; j++)
			jw_str(w, schema.notes[j].key);
		jw_array_end(w);
		jw_object_end(w);
	}
	jw_array_end(w);
}

static void write_traits(const struct rules_view *view, struct arena *arena, struct json_writer *w)
{
	struct rules_type_row *rows;
	size_t n = rules_traits(view, arena, &rows);

	jw_karray(w, "traits");
	for (size_t i = 0; i < n; i++) {
		jw_object_begin(w);
		jw_kstr(w, "name", rows[i].name);
		jw_ktext(w, "source", rules_source_name(rows[i].source));
		jw_object_end(w);
	}
	jw_array_end(w);
}

static void write_labels(const struct rules_view *view, struct json_writer *w)
{
	jw_kobject(w, "statusLabels");
	for (int trigger = 0; trigger < TRIGGER_COUNT; trigger++)
		jw_kstr_opt(w, trigger_name((enum trigger)trigger), rules_label(view, (enum trigger)trigger));
	jw_object_end(w);
}

static void write_registry(const struct rules_view *view, struct arena *arena, struct json_writer *w)
{
	struct rules_registry_row *rows;
	size_t n = rules_registry(view, arena, &rows);

	if (n == 0)
		return;
	jw_karray(w, "resources");
	for (size_t i = 0; i < n; i++) {
		jw_object_begin(w);
		jw_kstr(w, "key", rows[i].key);
		jw_kstr_opt(w, "description", rows[i].description);
		jw_kint(w, "defaultTtlSeconds", rows[i].default_ttl_seconds);
		jw_ktext(w, "source", rules_source_name(rows[i].source));
		jw_object_end(w);
	}
	jw_array_end(w);
}

int config_effective(struct snapshot *s, struct call *call, const struct config_effective_args *in,
	struct json_writer *out, struct failure *f)
{
	const struct rules_view *view;
	bool needs_verified;
	struct item root;

	if (find_scope(s, call, &in->root, &root, f) != 0 || call_view(s, call, root.n, &view, f) != 0)
		return -1;
	if (view->is_degraded)
		warn(&call->warnings, "config_degraded", STR_NONE,
			"The stored document cannot be used; an earlier one, or none, is in force.");
	jw_ktext(out, "resolution", resolution_name(rules_resolution(view)));
	write_types(view, s->arena, out);
	write_traits(view, s->arena, out);
	jw_ktext(out, "noteLimits", rules_mode_name(rules_note_limits(view)));
	jw_ktext(out, "noteOwnership", rules_owner_only(view) ? "owner" : "open");
	write_labels(view, out);
	jw_kobject(out, "independence");
	jw_ktext(out, "mode", rules_mode_name(rules_independence(view, &needs_verified)));
	jw_kbool_opt(out, "requireVerified", needs_verified);
	jw_object_end(out);
	write_registry(view, s->arena, out);
	return 0;
}

/* ---- versions, relation ---- */

SQL(SQL_CONFIG_VERSIONS,
	"SELECT version, fingerprint, source, pushed_at, actor_n FROM config_version"
	" WHERE root_n = $1 AND version < $2 ORDER BY version DESC");
SQL(SQL_CONFIG_VERSION_COUNT, "SELECT count(*) FROM config_version WHERE root_n = $1");

static int write_version(struct json_writer *w, struct snapshot *s, struct call *call, const struct query *q,
	struct failure *f)
{
	static const char *const sources[] = {"push", "rollback", "import", "force"};

	jw_object_begin(w);
	jw_kint(w, "version", col_int(q, 0));
	jw_kstr(w, "fingerprint", col_str(q, 1));
	jw_ktext(w, "source", sources[col_int(q, 2) & 3]);
	jw_ktime(w, "pushedAt", col_int(q, 3));
	if (actor_write(w, s, call, "actor", col_int(q, 4), 0, STR_NONE, f) != 0)
		return -1;
	jw_object_end(w);
	return 0;
}

int config_versions(struct snapshot *s, struct call *call, const struct config_versions_args *in,
	struct json_writer *out, struct failure *f)
{
	struct versions page = {.limit = in->limit.set ? in->limit.v : LIMIT_CONFIG_VERSIONS, .write = write_version};
	AUTO(query_endp) struct query q = {0};
	struct item root;

	if (find_scope(s, call, &in->root, &root, f) != 0 || versions_begin(&page, call, &in->cursor, f) != 0 ||
		query_int(s, &page.total, f, SQL_CONFIG_VERSION_COUNT, "i", root.n) < 0 ||
		query(s, &q, f, SQL_CONFIG_VERSIONS, "ii", root.n, page.below) != 0)
		return -1;
	return versions_write(&page, s, call, &q, out, f);
}

int config_relation(struct snapshot *s, struct call *call, const struct config_relation_args *in,
	struct json_writer *out, struct failure *f)
{
	struct str fingerprint = str_lower(s->arena, in->fingerprint.v);
	struct config_head head;
	struct item root;
	int was;

	if (find_scope(s, call, &in->root, &root, f) != 0 || config_head_load(s, root.n, &head, f) != 0)
		return -1;
	was = config_was(s, root.n, fingerprint, f);
	if (was < 0)
		return -1;
	jw_ktext(out, "relation",
		str_eq(head.fingerprint, fingerprint) && head.version > 0 ? "current"
		: was					   ? "superseded"
							   : "unknown");
	if (head.version > 0)
		jw_kstr(out, "currentFingerprint", head.fingerprint);
	return 0;
}

/* ---- rules ---- */

/* One note that names a rule as its skill. */
struct use {
	struct str key;
	struct str type;  /* or … */
	struct str trait; /* … when no type has the trait by default */
	struct str note;
};
struct uses {
	struct use *v;
	size_t n;
};

static void add_uses(struct uses *uses, struct arena *arena, const struct schema *schema, struct str type,
	struct str trait)
{
	for (size_t i = 0; i < schema->note_count; i++) {
		const struct rules_note *note = &schema->notes[i];

		if (note->skill.n == 0 || !rules_is_rule_key(note->skill) ||
			(trait.n > 0 && !str_eq(note->from_trait, trait)))
			continue;
		if ((uses->n & (uses->n - 1)) == 0)
			uses->v = arena_grow(arena, uses->v, uses->n * sizeof(*uses->v),
				(uses->n == 0 ? 1 : uses->n * 2) * sizeof(*uses->v));
		uses->v[uses->n++] = (struct use){note->skill, type, trait, note->key};
	}
}

static int use_cmp(const void *left, const void *right)
{
	const struct use *a = left;
	const struct use *b = right;
	int order = str_cmp(a->key, b->key);

	if (order == 0)
		order = str_cmp(a->type, b->type);
	return order != 0 ? order : str_cmp(a->note, b->note);
}

/* Every reference in the view, by rule key. Traits that no type has by default are looked at through the first
 * type: an item may name them. */
static void find_uses(const struct rules_view *view, struct arena *arena, struct uses *uses)
{
	struct rules_type_row *types;
	struct rules_type_row *traits;
	size_t type_count = rules_types(view, arena, &types);
	size_t trait_count = rules_traits(view, arena, &traits);
	struct schema schema;
	struct str *having;

	*uses = (struct uses){NULL, 0};
	for (size_t i = 0; i < type_count; i++) {
		rules_schema(view, types[i].name, NULL, 0, NULL, 0, arena, &schema);
		add_uses(uses, arena, &schema, types[i].name, STR_NONE);
	}
	for (size_t i = 0; i < trait_count && type_count > 0; i++) {
		if (rules_types_with_trait(view, traits[i].name, arena, &having) > 0)
			continue;
		rules_schema(view, types[0].name, NULL, 0, &traits[i].name, 1, arena, &schema);
		add_uses(uses, arena, &schema, STR_NONE, traits[i].name);
	}
	if (uses->n > 1)
		qsort(uses->v, uses->n, sizeof(*uses->v), use_cmp);
}

int config_uses_rule(struct snapshot *s, struct call *call, int64_t root_n, struct str key, bool *out,
	struct failure *f)
{
	const struct rules_view *view;
	struct uses uses;
	bool found = false;

	if (call_view(s, call, root_n, &view, f) != 0)
		return -1;
	find_uses(view, s->arena, &uses);
	for (size_t i = 0; i < uses.n && !found; i++)
		found = str_eq(uses.v[i].key, key);
	*out = found;
	return 0;
}

/* The uses of one key, which begin at `at`. */
static int write_rule(struct json_writer *w, struct snapshot *s, int64_t root_n, const struct uses *uses, size_t at,
	size_t end, struct failure *f)
{
	struct str key = uses->v[at].key;
	struct document doc;
	int stored = document_find(s, root_n, str_printf(s->arena, "rule/%.*s", STRF(key)), &doc, f);

	if (stored < 0)
		return -1;
	jw_object_begin(w);
	jw_kstr(w, "key", key);
	jw_karray(w, "usedBy");
	for (size_t i = at; i < end && i < at + LIMIT_RULE_USES; i++) {
		jw_object_begin(w);
		jw_kstr_opt(w, "type", uses->v[i].type);
		jw_kstr_opt(w, "trait", uses->v[i].trait);
		jw_kstr(w, "noteKey", uses->v[i].note);
		jw_object_end(w);
	}
	jw_array_end(w);
	jw_kbool(w, "stored", stored == 1);
	if (stored == 1)
		jw_kstr(w, "rulesVersion", doc.content_hash);
	jw_object_end(w);
	return 0;
}

int config_rules(struct snapshot *s, struct call *call, const struct config_rules_args *in, struct json_writer *out,
	struct failure *f)
{
	const struct rules_view *view;
	struct uses uses;
	struct item root;
	size_t end;

	if (project_find(s, call, &in->root, &root, f) != 0 || call_view(s, call, root.n, &view, f) != 0)
		return -1;
	find_uses(view, s->arena, &uses);
	jw_karray(out, "rules");
	for (size_t at = 0; at < uses.n; at = end) {
		for (end = at + 1; end < uses.n && str_eq(uses.v[end].key, uses.v[at].key); end++)
			;
		if (write_rule(out, s, root.n, &uses, at, end, f) != 0)
			return -1;
	}
	jw_array_end(out);
	return 0;
}
