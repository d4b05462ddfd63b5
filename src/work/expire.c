/* The hourly sweep: lapsed claims are put on record, dead leases go into history. What is left over waits for
 * the next sweep. */
#include "work/claim.h"
#include "work/lease.h"

#include "base/limits.h"

/* by item_claimed */
SQL(SQL_LAPSED,
	"SELECT n FROM item WHERE claim_by IS NOT NULL AND claim_until <= $1 AND claim_lapse_seen = 0"
	" ORDER BY claim_until LIMIT $2");

static int lapsed_items(struct tx *tx, int64_t *out, size_t *out_n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	*out_n = 0;
	if (query(&tx->snapshot, &q, f, SQL_LAPSED, "ii", tx->snapshot.now, (int64_t)LIMIT_SWEEP_ROWS) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1)
		out[(*out_n)++] = col_int(&q, 0);
	return rc;
}

int sweep_expired(struct tx *tx, void *arg, struct failure *f)
{
	int64_t *lapsed = ARENA_ARRAY(tx->snapshot.arena, int64_t, LIMIT_SWEEP_ROWS);
	size_t n;

	(void)arg;
	if (lapsed_items(tx, lapsed, &n, f) != 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct item item;
		int rc = item_load(&tx->snapshot, lapsed[i], &item, f);

		if (rc < 0 || (rc == 1 && claim_note_lapse(tx, &item, f) != 0))
			return -1;
	}
	return lease_sweep(tx, f);
}
