/* Who a credential stands for. */
#include "identity/identity.h"

bool caller_may(const struct caller *caller, unsigned capability)
{
	return (caller->capabilities & CAP_ADMIN) != 0 ||
		(caller->capabilities & capability) == capability;
}

int caller_need(const struct caller *caller, unsigned capability, struct failure *f)
{
	unsigned missing = capability & ~caller->capabilities;

	if (caller_may(caller, capability))
		return 0;
	missing &= 0U - missing; /* the first one is named */
	(void)fail(f, FAIL_FORBIDDEN, "This needs the capability %s.",
		capability_name((enum capability)missing));
	fail_detail_str(f, "scope", STR("capability"));
	fail_detail_str(f, "required", str_of(capability_name((enum capability)missing)));
	return -1;
}

bool caller_reads_root(const struct caller *caller, int64_t root_n)
{
	if (caller->roots == NULL)
		return true;
	for (size_t i = 0; i < caller->root_count; i++)
		if (caller->roots[i] == root_n)
			return true;
	return false;
}

void caller_local(struct caller *caller, struct str surface)
{
	*caller = (struct caller){
		.actor = {.id = STR("local"), .kind = PRINCIPAL_LOCAL, .verification = VERIFICATION_ABSENT},
		.capabilities = CAP_ALL,
		.profile = PROFILE_FULL,
		.surface = surface,
		.is_local = true,
		.sees_actors = true,
	};
	req_id_generate(caller->req_id);
	caller->actor.req_id = caller->req_id;
}

static int refuse(struct failure *f)
{
	return fail(f, FAIL_UNAUTHENTICATED, "The credential is not valid.");
}

SQL(SQL_TOKEN_BY_HASH,
	"SELECT sha256, id, capabilities, roots, expires_at, revoked_at FROM token WHERE sha256 = $1");
SQL(SQL_ROOT_BY_ID, "SELECT n FROM item WHERE id = $1 AND parent_n IS NULL");

/* Rows of the projects that a token names; projects that are gone grant nothing. */
static int read_roots(struct snapshot *s, struct str json, struct caller *out, struct failure *f)
{
	struct json_error error;
	json_auto_t *list = json.p == NULL ? NULL : json_read(json, &error);
	int64_t *rows;

	if (json.p == NULL)
		return 0;
	rows = ARENA_ARRAY(s->arena, int64_t, json_array_size(list) + 1);
	out->roots = rows;
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct id_prefix prefix;
		int rc;

		if (!id_prefix_parse(json_str(json_array_get(list, i)), &prefix))
			continue;
		rc = query_int(s, &rows[out->root_count], f, SQL_ROOT_BY_ID, "b", prefix.low);
		if (rc < 0)
			return -1;
		out->root_count += rc == 1;
	}
	return 0;
}

static int from_api_token(struct snapshot *s, struct str digest, struct caller *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_TOKEN_BY_HASH, "x", digest) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc < 0 ? -1 : refuse(f);
	/* Found by the digest of 256 random bits: what the search of the index leaks in time says nothing
	 * about the token. The row is compared again in constant time all the same. */
	if (!col_equals(&q, 0, digest) || !col_is_null(&q, 5) || (!col_is_null(&q, 4) && col_int(&q, 4) <= s->now))
		return refuse(f);
	out->actor.id = str_printf(s->arena, "api:%.*s", STRF(col_str(&q, 1)));
	out->actor.kind = PRINCIPAL_AGENT;
	out->actor.verification = VERIFICATION_UNCHECKED;
	out->expires_at = col_int(&q, 4);
	if (capabilities_parse(col_str(&q, 2), &out->capabilities, f) != 0)
		return -1;
	out->sees_actors = caller_may(out, CAP_ADMIN);
	return read_roots(s, col_str(&q, 3), out, f);
}

SQL(SQL_SEAT_BY_HASH,
	"SELECT x.n, x.seat, x.expires_at, x.revoked_at, r.n, r.is_open, r.root_n, r.scope_n, r.pinned_version,"
	" p.id, o.id FROM run_seat x JOIN run r ON r.n = x.run_n JOIN principal p ON p.n = x.principal_n"
	" JOIN principal o ON o.n = r.opened_by WHERE x.token_sha256 = $1");

static int from_seat_token(struct snapshot *s, struct str digest, struct caller *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int64_t *root;
	int rc;

	if (query(s, &q, f, SQL_SEAT_BY_HASH, "x", digest) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc < 0 ? -1 : refuse(f);
	if (!col_is_null(&q, 3) || col_int(&q, 2) <= s->now || col_int(&q, 5) == 0)
		return refuse(f);
	root = ARENA_NEW(s->arena, int64_t);
	*root = col_int(&q, 6);
	out->seat = (struct seat_scope){
		.seat_n = col_int(&q, 0),
		.seat = col_str(&q, 1),
		.run_n = col_int(&q, 4),
		.root_n = *root,
		.scope_n = col_int(&q, 7),
		.pinned_version = col_int(&q, 8),
	};
	out->actor.id = col_str(&q, 9);
	out->actor.kind = PRINCIPAL_SEAT;
	out->actor.parent = col_str(&q, 10);
	out->actor.verification = VERIFICATION_UNCHECKED;
	out->actor.run_n = out->seat.run_n;
	out->actor.seat = out->seat.seat;
	out->roots = root;
	out->root_count = 1;
	out->expires_at = col_int(&q, 2);
	/* Work tools with full scope inside the run; rules and runs stay with whoever opened it. */
	out->capabilities = CAP_READ | CAP_WRITE_ITEMS | CAP_WRITE_NOTES | CAP_ADVANCE | CAP_MANAGE_DEPENDENCIES;
	return 0;
}

int caller_from_token(struct snapshot *s, struct str token, struct str surface, struct caller *out,
	struct failure *f)
{
	unsigned char digest[32];
	struct str view = {(const char *)digest, sizeof(digest)};
	struct caller caller = {.profile = PROFILE_FULL, .surface = surface};
	int rc;

	sha256(token.p, token.n, digest);
	rc = str_starts(token, STR("dst_")) ? from_seat_token(s, view, &caller, f)
					    : from_api_token(s, view, &caller, f);
	if (rc != 0)
		return -1;
	req_id_generate(caller.req_id);
	*out = caller;
	out->actor.req_id = out->req_id;
	return 0;
}
