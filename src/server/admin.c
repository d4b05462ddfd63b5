#include "server/admin.h"

#include "base/clock.h"
#include "base/field.h"
#include "identity/identity.h"

struct create_args {
	struct arg_str op, id, description, capabilities;
	struct arg_strs roots;
	struct arg_int ttl;
};
static const struct field create_fields[] = {
	FIELD(struct create_args, op, "op", FIELD_STR, REQUIRED),
	FIELD(struct create_args, id, "id", FIELD_STR, 0, .max = 64),
	FIELD(struct create_args, description, "description", FIELD_STR, 0, .max = 1024),
	FIELD(struct create_args, capabilities, "capabilities", FIELD_STR, REQUIRED, .max = 200),
	FIELD(struct create_args, roots, "roots", FIELD_STRS, 0, .max = 100, .item_max = 36),
	FIELD(struct create_args, ttl, "ttlSeconds", FIELD_INT, 0, .min = 1, .max = INT64_C(315360000)),
	FIELDS_END,
};

struct creating {
	struct token_info wanted;
	int64_t ttl;
	struct str id, token;
};

static int create(struct tx *tx, void *arg, struct failure *f)
{
	struct creating *creating = arg;

	if (creating->ttl != 0)
		creating->wanted.expires_at = tx->snapshot.now + creating->ttl * 1000;
	return token_create(tx, &creating->wanted, &creating->id, &creating->token, f);
}

static int run_create(struct store *store, const json_t *request, struct arena *arena, struct json_writer *out,
	struct failure *f)
{
	struct create_args args = {.ttl = {.v = 0}};
	struct creating creating = {.ttl = 0};

	if (field_read(create_fields, request, STR(""), NULL, arena, NULL, &args, f) != 0 ||
		capabilities_parse(args.capabilities.v, &creating.wanted.capabilities, f) != 0)
		return -1;
	creating.wanted.id = args.id.v;
	creating.wanted.description = args.description.v;
	creating.wanted.root_ids = args.roots.v;
	creating.wanted.root_count = args.roots.n;
	creating.ttl = args.ttl.v;
	if (store_write(store, create, &creating, &actor_system, arena, f) != 0)
		return -1;
	jw_kstr(out, "id", creating.id);
	jw_kstr(out, "token", creating.token);
	return 0;
}

static int revoke(struct tx *tx, void *arg, struct failure *f)
{
	return token_revoke(tx, *(const struct str *)arg, f);
}

static int run_revoke(struct store *store, const json_t *request, struct arena *arena, struct json_writer *out,
	struct failure *f)
{
	struct str id = json_member_str(request, "id");

	if (store_write(store, revoke, &id, &actor_system, arena, f) != 0)
		return -1;
	jw_kstr(out, "revoked", id);
	return 0;
}

static void write_token(const struct token_info *token, struct arena *arena, struct json_writer *out)
{
	jw_object_begin(out);
	jw_kstr(out, "id", token->id);
	jw_kstr_opt(out, "description", token->description);
	jw_kstr(out, "capabilities", capabilities_text(arena, token->capabilities));
	if (token->root_count > 0) {
		jw_karray(out, "roots");
		for (size_t i = 0; i < token->root_count; i++)
			jw_str(out, token->root_ids[i]);
		jw_array_end(out);
	}
	jw_ktime(out, "createdAt", token->created_at);
	if (token->expires_at != 0)
		jw_ktime(out, "expiresAt", token->expires_at);
	if (token->revoked_at != 0)
		jw_ktime(out, "revokedAt", token->revoked_at);
	jw_object_end(out);
}

static int run_list(struct store *store, struct arena *arena, struct json_writer *out, struct failure *f)
{
	struct token_info *tokens;
	struct snapshot s;
	size_t n;
	int rc;

	if (snapshot_begin(store, arena, &s, f) != 0)
		return -1;
	rc = token_list(&s, &tokens, &n, f);
	snapshot_end(&s);
	if (rc != 0)
		return -1;
	jw_karray(out, "tokens");
	for (size_t i = 0; i < n; i++)
		write_token(&tokens[i], arena, out);
	jw_array_end(out);
	return 0;
}

static int make_code(struct tx *tx, void *arg, struct failure *f)
{
	return sign_in_create(tx, arg, f);
}

static int run_sign_in(struct store *store, struct arena *arena, struct json_writer *out, struct failure *f)
{
	struct str code;

	if (store_write(store, make_code, &code, &actor_system, arena, f) != 0)
		return -1;
	jw_kstr(out, "code", code);
	return 0;
}

/* ---- status ---- */

SQL(SQL_STATUS_ROOTS, "SELECT count(*) FROM root_tally");
SQL(SQL_STATUS_CLAIMS, "SELECT count(*) FROM item WHERE claim_by IS NOT NULL AND claim_until > $1");
SQL(SQL_STATUS_PROJECTS,
	"SELECT i.id, x.title, x.type, t.queue, t.work, t.review, t.blocked, t.terminal FROM root_tally t"
	" JOIN item i ON i.n = t.root_n JOIN item_text x ON x.n = t.root_n ORDER BY t.root_n DESC LIMIT $1");

#define STATUS_PROJECTS 100 /* newest first; a person reads no longer list */

static int write_projects(struct snapshot *s, struct json_writer *out, struct failure *f)
{
	static const char *const roles[] = {"queue", "work", "review", "blocked", "terminal"};
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_STATUS_PROJECTS, "i", (int64_t)STATUS_PROJECTS) != 0)
		return -1;
	jw_karray(out, "projects");
	while ((rc = query_next(&q, f)) == 1) {
		jw_object_begin(out);
		jw_kstr(out, "id", id_str(s->arena, col_id(&q, 0)));
		jw_kstr(out, "title", col_str(&q, 1));
		jw_kstr_opt(out, "type", col_str(&q, 2));
		jw_kobject(out, "counts");
		for (int i = 0; i < 5; i++)
			jw_kint(out, roles[i], col_int(&q, 3 + i));
		jw_object_end(out);
		jw_object_end(out);
	}
	jw_array_end(out);
	return rc;
}

static int write_work(struct snapshot *s, struct json_writer *out, struct failure *f)
{
	int64_t roots;
	int64_t claims;

	if (query_int(s, &roots, f, SQL_STATUS_ROOTS, "") < 0 ||
		query_int(s, &claims, f, SQL_STATUS_CLAIMS, "i", s->now) < 0)
		return -1;
	jw_kint(out, "projectCount", roots);
	jw_kint(out, "activeClaims", claims);
	return write_projects(s, out, f);
}

static int run_status(struct store *store, struct arena *arena, struct json_writer *out, struct failure *f)
{
	struct store_facts facts;
	struct snapshot s;
	int rc;

	if (store_facts(store, &facts, f) != 0)
		return -1;
	jw_ktext(out, "version", DAIS_VERSION);
	jw_kint(out, "schemaVersion", facts.schema_version);
	jw_kint(out, "databaseBytes", facts.database_bytes);
	jw_kint(out, "walBytes", facts.wal_bytes);
	jw_kint(out, "freeDiskBytes", facts.free_disk_bytes);
	jw_kint(out, "commits", facts.commits);
	jw_kint(out, "writes", facts.calls);
	jw_kint(out, "walFrames", facts.wal_frames);
	jw_kint(out, "pageBytes", facts.page_bytes);
	jw_kint(out, "newestEvent", store_newest(store));
	jw_kbool_opt(out, "storageFull", facts.is_full);
	if (snapshot_begin(store, arena, &s, f) != 0)
		return -1;
	rc = write_work(&s, out, f);
	snapshot_end(&s);
	return rc;
}

int admin_run(struct store *store, const json_t *request, struct arena *arena, struct json_writer *out,
	struct failure *f)
{
	struct str op = json_member_str(request, "op");

	if (str_eq(op, STR("token.create")))
		return run_create(store, request, arena, out, f);
	if (str_eq(op, STR("token.revoke")))
		return run_revoke(store, request, arena, out, f);
	if (str_eq(op, STR("token.list")))
		return run_list(store, arena, out, f);
	if (str_eq(op, STR("sign_in")))
		return run_sign_in(store, arena, out, f);
	if (str_eq(op, STR("status")))
		return run_status(store, arena, out, f);
	return fail_field(f, STR("op"), op, "is no administrative operation");
}
