/* The status page's door: a code good once, which buys a session cookie. */
#include "identity/identity.h"

#define CODE_MS (10 * 60 * 1000)
#define SESSION_MS (12 * 60 * 60 * 1000)

SQL(SQL_SIGN_IN_ADD, "INSERT INTO sign_in (sha256, is_session, created_at, expires_at) VALUES ($1, $2, $3, $4)");
SQL(SQL_SIGN_IN_SWEEP, "DELETE FROM sign_in WHERE expires_at <= $1");
SQL(SQL_SIGN_IN_TAKE, "DELETE FROM sign_in WHERE sha256 = $1 AND is_session = 0 AND expires_at > $2");
SQL(SQL_SESSION_FIND, "SELECT expires_at FROM sign_in WHERE sha256 = $1 AND is_session = 1 AND expires_at > $2");

static int add(struct tx *tx, int64_t is_session, int64_t life_ms, struct str *out, struct failure *f)
{
	struct str text = random_token(tx->snapshot.arena, 32);
	unsigned char digest[32];

	sha256(text.p, text.n, digest);
	if (tx_run(tx, f, SQL_SIGN_IN_SWEEP, "i", tx->snapshot.now) < 0 ||
		tx_run(tx, f, SQL_SIGN_IN_ADD, "xiii", ((struct str){(const char *)digest, sizeof(digest)}),
			is_session, tx->snapshot.now, tx->snapshot.now + life_ms) < 0)
		return -1;
	*out = text;
	return 0;
}

int sign_in_create(struct tx *tx, struct str *out_code, struct failure *f)
{
	return add(tx, 0, CODE_MS, out_code, f);
}

int sign_in_redeem(struct tx *tx, struct str code, struct str *out_session, struct failure *f)
{
	unsigned char digest[32];
	int64_t rows;

	sha256(code.p, code.n, digest);
	rows = tx_run(tx, f, SQL_SIGN_IN_TAKE, "xi", ((struct str){(const char *)digest, sizeof(digest)}),
		tx->snapshot.now);
	if (rows < 0)
		return -1;
	if (rows == 0)
		return fail(f, FAIL_UNAUTHENTICATED, "The sign-in link was used already, or has expired; dais open makes another.");
	return add(tx, 1, SESSION_MS, out_session, f);
}

int caller_from_session(struct snapshot *s, struct str session, struct caller *out, struct failure *f)
{
	unsigned char digest[32];
	int64_t expires_at;
	int rc;

	sha256(session.p, session.n, digest);
	rc = query_int(s, &expires_at, f, SQL_SESSION_FIND, "xi",
		((struct str){(const char *)digest, sizeof(digest)}), s->now);
	if (rc != 1)
		return rc < 0 ? -1 : fail(f, FAIL_UNAUTHENTICATED, "Sign in again: dais open");
	caller_local(out, STR("rest"));
	out->is_local = false;
	out->expires_at = expires_at;
	return 0;
}
