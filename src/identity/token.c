/* API tokens: made, listed, revoked; only their digest is kept. */
#include "identity/identity.h"

#include "base/limits.h"

static bool is_token_id(struct str id)
{
	if (id.n == 0 || id.n > 64)
		return false;
	for (size_t i = 0; i < id.n; i++) {
		char c = id.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'))
			return false;
	}
	return true;
}

SQL(SQL_TOKEN_EXISTS, "SELECT 1 FROM token WHERE id = $1");
SQL(SQL_TOKEN_COUNT, "SELECT count(*) FROM token WHERE revoked_at IS NULL");
SQL(SQL_TOKEN_ADD,
	"INSERT INTO token (id, sha256, description, capabilities, roots, created_at, expires_at)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7)");
SQL(SQL_ROOTS_BETWEEN, /* by id */
	"SELECT id FROM item WHERE id >= $1 AND id <= $2 AND parent_n IS NULL LIMIT 2");

/* The project whose id begins like this; `path` is where the caller wrote it. */
static int find_root(struct tx *tx, struct str text, struct str path, struct id *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct id_prefix prefix;
	int found = 0;
	int rc;

	if (!id_prefix_parse(text, &prefix))
		return fail_field(f, path, text, "must be the id of a project, or its first 8 digits or more");
	if (query(&tx->snapshot, &q, f, SQL_ROOTS_BETWEEN, "bb", prefix.low, prefix.high) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		*out = col_id(&q, 0);
		found++;
	}
	if (rc < 0)
		return -1;
	if (found != 1)
		return fail_field(f, path, text, found == 0 ? "is not a project" : "stands for several projects; use a longer id");
	return 0;
}

/* Canonical JSON list of the projects, absent for "every one". */
static int write_roots(struct tx *tx, const struct token_info *wanted, struct str *out, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct buf text;
	struct json_writer w;

	*out = STR_NONE;
	if (wanted->root_count == 0)
		return 0;
	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	for (size_t i = 0; i < wanted->root_count; i++) {
		struct id root;

		if (find_root(tx, wanted->root_ids[i], str_printf(arena, "roots[%zu]", i), &root, f) != 0)
			return -1;
		jw_str(&w, id_str(arena, root));
	}
	jw_array_end(&w);
	*out = buf_str(&text);
	return 0;
}

int token_create(struct tx *tx, const struct token_info *wanted, struct str *out_id, struct str *out_token,
	struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct str id = wanted->id;
	struct str token = str_printf(arena, "dais_%.*s", STRF(random_token(arena, 32)));
	unsigned char digest[32];
	struct str roots;
	int64_t number;
	int rc;

	if (id.n == 0) {
		unsigned char random[5];

		random_bytes(random, sizeof(random));
		id = str_printf(arena, "t%.*s", STRF(hex(arena, random, sizeof(random))));
	}
	if (!is_token_id(id))
		return fail_field(f, STR("id"), id, "must be 1 to 64 of a-z, 0-9, '.', '_' and '-'");
	rc = query_int(&tx->snapshot, &number, f, SQL_TOKEN_EXISTS, "s", id);
	if (rc < 0)
		return -1;
	if (rc == 1) {
		(void)fail(f, FAIL_DUPLICATE, "There is a token %.*s already.", STRF(id));
		fail_detail_str(f, "kind", STR("token"));
		fail_detail_str(f, "existingId", id);
		return -1;
	}
	if (query_int(&tx->snapshot, &number, f, SQL_TOKEN_COUNT, "") < 0)
		return -1;
	if (number >= LIMIT_TOKENS) {
		(void)fail(f, FAIL_PAYLOAD_TOO_LARGE, "There are %d tokens already; revoke some.", LIMIT_TOKENS);
		fail_detail_int(f, "max", LIMIT_TOKENS);
		return -1;
	}
	if (write_roots(tx, wanted, &roots, f) != 0)
		return -1;
	sha256(token.p, token.n, digest);
	if (tx_run(tx, f, SQL_TOKEN_ADD, "sxsssio", id, ((struct str){(const char *)digest, sizeof(digest)}),
		    wanted->description.p == NULL ? STR("") : wanted->description,
		    capabilities_text(arena, wanted->capabilities), roots, tx->snapshot.now,
		    wanted->expires_at == 0 ? NULL : &wanted->expires_at) < 0)
		return -1;
	*out_id = id;
	*out_token = token;
	return 0;
}

SQL(SQL_TOKEN_REVOKE, "UPDATE token SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL");

int token_revoke(struct tx *tx, struct str id, struct failure *f)
{
	int64_t rows = tx_run(tx, f, SQL_TOKEN_REVOKE, "si", id, tx->snapshot.now);

	if (rows < 0)
		return -1;
	return rows > 0 ? 0 : fail(f, FAIL_NOT_FOUND, "There is no valid token %.*s.", STRF(id));
}

SQL(SQL_TOKEN_LIST,
	"SELECT id, description, capabilities, roots, created_at, expires_at, revoked_at FROM token"
	" ORDER BY created_at, id");

int token_list(struct snapshot *s, struct token_info **out, size_t *out_count, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct token_info *list = NULL;
	size_t n = 0;
	int rc;

	if (query(s, &q, f, SQL_TOKEN_LIST, "") != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct json_error error;
		struct str roots = col_str(&q, 3);
		json_auto_t *array = roots.p == NULL ? NULL : json_read(roots, &error);
		struct str *ids = ARENA_ARRAY(s->arena, struct str, json_array_size(array) + 1);

		list = arena_grow(s->arena, list, n * sizeof(*list), (n + 1) * sizeof(*list));
		list[n] = (struct token_info){
			.id = col_str(&q, 0),
			.description = col_str(&q, 1),
			.root_ids = ids,
			.root_count = json_array_size(array),
			.created_at = col_int(&q, 4),
			.expires_at = col_int(&q, 5),
			.revoked_at = col_int(&q, 6),
		};
		for (size_t i = 0; i < json_array_size(array); i++)
			ids[i] = str_dup(s->arena, json_str(json_array_get(array, i)));
		if (capabilities_parse(col_str(&q, 2), &list[n].capabilities, f) != 0)
			return -1;
		n++;
	}
	*out = list;
	*out_count = n;
	return rc;
}
