/* The caller as a claimant: what every part that writes on a claimed item must know. */
#include "work/work.h"

int caller_row(struct snapshot *s, struct call *call, int64_t *out, struct failure *f)
{
	return principal_find(s, call->caller->actor.id, out, f);
}

SQL(SQL_CLAIM_TOUCH, "UPDATE item SET claim_until = $2 WHERE n = $1 AND claim_until < $2");

int claim_touch(struct tx *tx, struct call *call, const struct item *item, struct failure *f)
{
	int64_t now = tx->snapshot.now;
	int64_t me;

	if (!claim_is_live(item, now))
		return 0;
	if (caller_row(&tx->snapshot, call, &me, f) != 0)
		return -1;
	if (me != item->claim_by)
		return 0;
	return tx_run(tx, f, SQL_CLAIM_TOUCH, "ii", item->n, now + item->claim_ttl * 1000) < 0 ? -1 : 0;
}
