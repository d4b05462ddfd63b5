/* Whether a credential that was good when it was read still is: open streams and kept connections ask again. */
#include "identity/identity.h"

SQL(SQL_TOKEN_LIVES, "SELECT 1 FROM token WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)");
/* The eight digits of a seat's principal begin its id, and no other's. */
SQL(SQL_SEAT_PRINCIPAL_LIVES,
	"SELECT 1 FROM run_seat x JOIN run r ON r.n = x.run_n WHERE x.id >= $1 AND x.id <= $2 AND x.revoked_at IS NULL"
	" AND x.expires_at > $3 AND r.is_open = 1");
SQL(SQL_SEAT_LIVES,
	"SELECT 1 FROM run_seat x JOIN run r ON r.n = x.run_n WHERE x.n = $1 AND x.revoked_at IS NULL AND x.expires_at > $2"
	" AND r.is_open = 1");

static struct str after(struct str text, struct str prefix)
{
	return str_starts(text, prefix) ? (struct str){text.p + prefix.n, text.n - prefix.n} : STR_NONE;
}

int principal_is_live(struct snapshot *s, struct str principal, struct failure *f)
{
	struct str token = after(principal, STR("api:"));
	struct str seat = after(principal, STR("seat:"));
	struct id_prefix prefix;
	int64_t one;

	if (token.p != NULL)
		return query_int(s, &one, f, SQL_TOKEN_LIVES, "si", token, s->now);
	if (seat.p != NULL && id_prefix_parse(seat, &prefix))
		return query_int(s, &one, f, SQL_SEAT_PRINCIPAL_LIVES, "bbi", prefix.low, prefix.high, s->now);
	return 1;
}

int caller_still(struct snapshot *s, const struct caller *caller, struct failure *f)
{
	int64_t one;
	int rc;

	if (caller->seat.run_n == 0)
		return 0;
	rc = query_int(s, &one, f, SQL_SEAT_LIVES, "ii", caller->seat.seat_n, s->now);
	if (rc < 0)
		return -1;
	return rc == 1 ? 0 : fail(f, FAIL_UNAUTHENTICATED, "The seat's token is not valid any more.");
}
