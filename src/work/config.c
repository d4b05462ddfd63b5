/* Changing rules documents. */
#include "work/config.h"

#include "base/limits.h"
#include "base/log.h"
#include "work/docs.h"

static void unref(struct rules_doc **doc)
{
	rules_doc_unref(*doc);
}

/* ---- storing ---- */

SQL(SQL_CONFIG_HEAD_LOAD, "SELECT version, fingerprint, updated_at FROM config WHERE root_n = $1");

int config_head_load(struct snapshot *s, int64_t root_n, struct config_head *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_CONFIG_HEAD_LOAD, "i", root_n) != 0)
		return -1;
	rc = query_next(&q, f);
	*out = (struct config_head){.version = 0};
	if (rc == 1)
		*out = (struct config_head){col_int(&q, 0), col_str(&q, 1), col_int(&q, 2)};
	return rc < 0 ? -1 : 0;
}

SQL(SQL_CONFIG_WAS, "SELECT 1 FROM config_version WHERE root_n = $1 AND fingerprint = $2 LIMIT 1");

int config_was(struct snapshot *s, int64_t root_n, struct str fingerprint, struct failure *f)
{
	int64_t one;

	return query_int(s, &one, f, SQL_CONFIG_WAS, "is", root_n, fingerprint);
}

SQL(SQL_CONFIG_SET,
	"INSERT INTO config (root_n, yaml, fingerprint, version, updated_at, actor_n, imported_from)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (root_n) DO UPDATE SET yaml = excluded.yaml,"
	" fingerprint = excluded.fingerprint, version = excluded.version, updated_at = excluded.updated_at,"
	" actor_n = excluded.actor_n, imported_from = excluded.imported_from");
SQL(SQL_CONFIG_KEEP,
	"INSERT INTO config_version (root_n, version, yaml, fingerprint, pushed_at, actor_n, source)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7)");
SQL(SQL_CONFIG_TRIM, "DELETE FROM config_version WHERE root_n = $1 AND version <= $2");

struct revision {
	int64_t root_n;
	struct id root_id;
	struct str yaml;
	struct str fingerprint;
	int64_t version;
	enum config_source source;
};

static const char *const source_names[] = {"push", "rollback", "import", "force"};

static int config_event(struct tx *tx, const struct revision *revision, struct failure *f)
{
	struct json_writer w;
	struct buf data;

	buf_init(&data, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	jw_kint(&w, "version", revision->version);
	jw_kstr(&w, "fingerprint", revision->fingerprint);
	jw_ktext(&w, "source", source_names[revision->source]);
	jw_object_end(&w);
	return event_add(tx, EVENT_CONFIG_UPSERTED, revision->root_n, revision->root_n, revision->root_id,
		buf_str(&data), f);
}

static int store(struct tx *tx, const struct revision *r, struct failure *f)
{
	struct str from = r->source == CONFIG_IMPORT ? sha256_hex(tx->snapshot.arena, r->yaml) : STR_NONE;
	int64_t now = tx->snapshot.now;
	int64_t actor_n;

	if (tx_actor(tx, &actor_n, f) != 0 ||
		tx_run(tx, f, SQL_CONFIG_SET, "issiiis", r->root_n, r->yaml, r->fingerprint, r->version, now,
			actor_n, from) < 0 ||
		tx_run(tx, f, SQL_CONFIG_KEEP, "iissiii", r->root_n, r->version, r->yaml, r->fingerprint, now,
			actor_n, (int64_t)r->source) < 0 ||
		tx_run(tx, f, SQL_CONFIG_TRIM, "ii", r->root_n, r->version - LIMIT_CONFIG_VERSIONS) < 0)
		return -1;
	return config_event(tx, r, f);
}

SQL(SQL_CONFIG_DELETE, "DELETE FROM config WHERE root_n = $1");
SQL(SQL_CONFIG_FORGET, "DELETE FROM config_version WHERE root_n = $1");

int config_remove(struct tx *tx, int64_t root_n, struct failure *f)
{
	int64_t rows = tx_run(tx, f, SQL_CONFIG_DELETE, "i", root_n);
	struct item root;

	if (rows <= 0)
		return rows < 0 ? -1 : 0;
	if (tx_run(tx, f, SQL_CONFIG_FORGET, "i", root_n) < 0 || item_load(&tx->snapshot, root_n, &root, f) != 1 ||
		event_add(tx, EVENT_CONFIG_DELETED, root_n, root_n, root.id, STR("{}"), f) != 0)
		return -1;
	return 1;
}

/* ---- a text on its way ---- */

/* Parsed with everything that is to be said about it. */
struct draft {
	struct item root; /* n 0: for no project */
	const struct rules_view *before;
	struct str yaml;
	struct str fingerprint;
	struct rules_doc *doc;
	struct warnings warnings;
	struct config_head head;
};

static void draft_finish(struct draft *draft)
{
	rules_doc_unref(draft->doc);
}

static int draft_parse(struct draft *draft, struct snapshot *s, struct call *call, struct failure *f)
{
	warnings_init(&draft->warnings, call->arena, LIMIT_CONFIG_WARNINGS + 1);
	draft->warnings.index = -1;
	if (rules_parse(draft->yaml, STR_NONE, false, &draft->warnings, &draft->doc, f) != 0)
		return -1;
	draft->fingerprint = rules_fingerprint(call->arena, draft->yaml);
	if (call_view(s, call, draft->root.n, &draft->before, f) != 0)
		return -1;
	rules_check_layers(draft->doc, draft->before->global, &draft->warnings);
	return 0;
}

static int find_root(struct snapshot *s, struct call *call, const struct arg_str *id, struct item *out,
	struct failure *f)
{
	if (item_find(s, call, id->v, STR("rootId"), out, f) != 0 || item_writable(s, call, out, f) != 0)
		return -1;
	if (out->depth != 0)
		return fail_field(f, STR("rootId"), id->v, "must be an item of depth 0, a project");
	return 0;
}

static void write_notices(const struct draft *draft, struct json_writer *w)
{
	const struct str *ignored;
	size_t n = rules_doc_ignored(draft->doc, &ignored);

	warnings_write(&draft->warnings, "schemaWarnings", w);
	if (n == 0)
		return;
	jw_karray(w, "ignoredSections");
	for (size_t i = 0; i < n; i++)
		jw_str(w, ignored[i]);
	jw_array_end(w);
}

static int write_impact(const struct draft *draft, struct snapshot *s, struct json_writer *w, struct failure *f)
{
	struct rules_view after = *draft->before;
	struct config_impact impact;

	after.project = draft->doc;
	if (config_impact(s, draft->root.n, draft->before, &after, &impact, f) != 0)
		return -1;
	jw_kobject(w, "impact");
	jw_kint(w, "items", impact.items);
	jw_kint(w, "newlyGated", impact.newly_gated);
	jw_kint(w, "noLongerGated", impact.no_longer_gated);
	jw_kbool_opt(w, "truncated", impact.is_cut);
	jw_object_end(w);
	return 0;
}

/* ---- push ---- */

static int fail_fingerprint(const struct draft *draft, struct str expected, const char *why, struct failure *f)
{
	(void)fail(f, FAIL_VERSION_CONFLICT, "%s", why);
	fail_detail_str(f, "kind", STR("root"));
	fail_detail_str(f, "id", id_str(f->arena, draft->root.id));
	fail_detail_str(f, "expected", expected);
	fail_detail_str(f, "actual", draft->head.version == 0 ? STR("none") : draft->head.fingerprint);
	return -1;
}

/* The document says which project it was written for. */
static int embedded_check(const struct draft *draft, struct failure *f)
{
	struct str embedded = rules_doc_root_id(draft->doc);
	struct id_prefix prefix;

	if (embedded.n == 0)
		return 0;
	if (id_prefix_parse(embedded, &prefix) && id_cmp(prefix.low, draft->root.id) <= 0 &&
		id_cmp(prefix.high, draft->root.id) >= 0)
		return 0;
	return fail_field(f, STR("yaml"), embedded,
		"its project.rootId names another project; force stores it all the same");
}

/* What stands against storing it; *forced tells that force overrode something. */
static int push_checks(const struct draft *draft, struct snapshot *s, const struct config_push_args *in,
	bool *forced, struct failure *f)
{
	const struct arg_str *expected = &in->expected_fingerprint;
	bool is_current = str_eq(draft->fingerprint, draft->head.fingerprint);
	struct failure against;
	int was;

	failure_init(&against, f->arena);
	if (embedded_check(draft, &against) != 0) {
		*forced = true;
		if (!in->force.v) {
			failure_copy(f, f->arena, &against);
			return -1;
		}
	}
	if (expected->set && !str_eq_nocase(expected->v, draft->head.fingerprint))
		return fail_fingerprint(draft, expected->v, "The stored document is not the one you expect.", f);
	was = is_current ? 0 : config_was(s, draft->root.n, draft->fingerprint, f);
	if (was < 0)
		return -1;
	if (was == 0)
		return 0;
	*forced = true;
	return in->force.v ? 0
			   : fail_fingerprint(draft, expected->set ? expected->v : draft->fingerprint,
				     "The text is an earlier version of the stored document; force stores it all the"
				     " same.",
				     f);
}

static void write_result(const struct draft *draft, struct call *call, int64_t version, bool changed,
	struct json_writer *w)
{
	jw_id(w, call, "rootId", draft->root.id);
	jw_kint(w, "version", version);
	jw_kstr(w, "fingerprint", draft->fingerprint);
	jw_kbool(w, "changed", changed);
	write_notices(draft, w);
}

static void warn_root_type(const struct draft *draft, struct call *call)
{
	if (!str_eq(draft->root.type, STR("project")))
		warn(&call->warnings, "root_type_not_project", STR("rootId"),
			"The root is not of type project; its rules hold all the same.");
}

static int push_draft(struct draft *draft, struct tx *tx, struct call *call, enum config_source source,
	bool is_dry, struct json_writer *out, struct failure *f)
{
	bool changed = !str_eq(draft->fingerprint, draft->head.fingerprint);
	struct revision revision = {
		.root_n = draft->root.n,
		.root_id = draft->root.id,
		.yaml = draft->yaml,
		.fingerprint = draft->fingerprint,
		.version = draft->head.version + 1,
		.source = source,
	};

	warn_root_type(draft, call);
	if (changed && !is_dry && store(tx, &revision, f) != 0)
		return -1;
	write_result(draft, call, draft->head.version + (changed && !is_dry), changed, out);
	/* Later ops of this call shall resolve by the new text. */
	if (changed && !is_dry)
		rules_views_finish(&call->views);
	return 0;
}

static int push(struct draft *draft, struct tx *tx, struct call *call, const struct config_push_args *in,
	struct json_writer *out, struct failure *f)
{
	struct snapshot *s = &tx->snapshot;
	bool forced = false;

	if (find_root(s, call, &in->root, &draft->root, f) != 0 || draft_parse(draft, s, call, f) != 0 ||
		config_head_load(s, draft->root.n, &draft->head, f) != 0 ||
		push_checks(draft, s, in, &forced, f) != 0)
		return -1;
	if (in->dry_run.v) {
		jw_kbool(out, "dryRun", true);
		if (write_impact(draft, s, out, f) != 0)
			return -1;
	}
	return push_draft(draft, tx, call, forced ? CONFIG_FORCE : CONFIG_PUSH, in->dry_run.v, out, f);
}

int config_push(struct tx *tx, struct call *call, const struct config_push_args *in, struct json_writer *out,
	struct failure *f)
{
	AUTO(draft_finish) struct draft draft = {.yaml = in->yaml.v};

	return push(&draft, tx, call, in, out, f);
}

/* ---- validate ---- */

int config_validate(struct tx *tx, struct call *call, const struct config_validate_args *in,
	struct json_writer *out, struct failure *f)
{
	AUTO(draft_finish) struct draft draft = {.yaml = in->yaml.v};
	struct snapshot *s = &tx->snapshot;

	if (in->root.set && project_find(s, call, &in->root, &draft.root, f) != 0)
		return -1;
	if (draft_parse(&draft, s, call, f) != 0)
		return -1;
	jw_kbool(out, "valid", true);
	jw_kstr(out, "fingerprint", draft.fingerprint);
	write_notices(&draft, out);
	return draft.root.n == 0 ? 0 : write_impact(&draft, s, out, f);
}

/* ---- rollback ---- */

SQL(SQL_CONFIG_VERSION_TEXT, "SELECT yaml FROM config_version WHERE root_n = $1 AND version = $2");

static int load_version(struct draft *draft, struct snapshot *s, int64_t version, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (version == draft->head.version)
		return fail_field(f, STR("version"), STR_NONE, "is the present version");
	if (query(s, &q, f, SQL_CONFIG_VERSION_TEXT, "ii", draft->root.n, version) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 0)
		return fail_not_found(f, "root",
			str_printf(f->arena, "%.*s@%lld", STRF(id_str(f->arena, draft->root.id)),
				(long long)version));
	if (rc == 1)
		draft->yaml = col_str(&q, 0);
	return rc < 0 ? -1 : 0;
}

int config_rollback(struct tx *tx, struct call *call, const struct config_rollback_args *in,
	struct json_writer *out, struct failure *f)
{
	AUTO(draft_finish) struct draft draft = {.doc = NULL};
	struct snapshot *s = &tx->snapshot;

	if (find_root(s, call, &in->root, &draft.root, f) != 0 ||
		config_head_load(s, draft.root.n, &draft.head, f) != 0 ||
		load_version(&draft, s, in->version.v, f) != 0 || draft_parse(&draft, s, call, f) != 0 ||
		push_draft(&draft, tx, call, CONFIG_ROLLBACK, false, out, f) != 0)
		return -1;
	jw_kint(out, "rolledBackTo", in->version.v);
	return 0;
}

/* ---- import ---- */

static void log_warnings(const struct warnings *warnings, const char *path)
{
	for (const struct warning *warning = warnings->first; warning != NULL; warning = warning->next)
		log_line(LOG_WARN, "rules", "the global rules have a flaw", {"file", LOG_TEXT(path)},
			{"code", LOG_TEXT(warning->code)}, {"at", LOG_STRV(warning->path)},
			{"flaw", LOG_STRV(warning->message)});
}

int config_import_global(struct tx *tx, void *config_import, struct failure *f)
{
	const struct config_import *in = config_import;
	struct arena *arena = tx->snapshot.arena;
	AUTO(unref) struct rules_doc *doc = NULL;
	struct warnings warnings;
	struct config_head head;
	struct revision revision = {.yaml = in->yaml, .source = CONFIG_IMPORT};

	warnings_init(&warnings, arena, LIMIT_CONFIG_WARNINGS + 1);
	if (rules_parse(in->yaml, str_of(in->path), true, &warnings, &doc, f) != 0 ||
		config_head_load(&tx->snapshot, 0, &head, f) != 0)
		return -1;
	log_warnings(&warnings, in->path);
	revision.fingerprint = rules_fingerprint(arena, in->yaml);
	revision.version = head.version + 1;
	if (str_eq(head.fingerprint, revision.fingerprint))
		return 0;
	if (head.version > 0)
		log_line(LOG_WARN, "rules",
			"the global rules change; a server with another file on this database would change them back",
			{"file", LOG_TEXT(in->path)}, {"before", LOG_STRV(head.fingerprint)},
			{"now", LOG_STRV(revision.fingerprint)});
	else
		log_line(LOG_INFO, "rules", "global rules imported", {"file", LOG_TEXT(in->path)},
			{"now", LOG_STRV(revision.fingerprint)});
	return store(tx, &revision, f);
}
