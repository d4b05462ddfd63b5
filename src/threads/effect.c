/* What is to be done outside the database: rows that the sessions' loop takes, in order, and that go when it is done. */
#include "threads/engine.h"

SQL(SQL_EFFECT_ADD,
	"INSERT INTO effect (n, thread_n, run_n, type, status, attempts, available_at, payload)"
	" VALUES ($1, $2, $3, $4, 0, 0, $5, $6)");
SQL(SQL_EFFECTS_DROP, "DELETE FROM effect WHERE run_n = $1 AND type = $2");
/* An interrupt stays as long as a turn of the run goes on: that of an attempt that was given up, it may be. */
SQL(SQL_EFFECTS_DROP_RUN,
	"DELETE FROM effect WHERE run_n = $1 AND NOT (type = 2 AND EXISTS (SELECT 1 FROM run_attempt a JOIN provider_turn t"
	" ON t.n = a.turn_n WHERE a.run_n = $1 AND t.status < 3))");

int effect_add(struct tx *tx, int64_t thread_n, int64_t run_n, enum effect_type type, struct str payload, struct failure *f)
{
	int64_t n;

	if (tx_next(tx, SEQ_effect, &n, f) != 0)
		return -1;
	return tx_run(tx, f, SQL_EFFECT_ADD, "iioiis", n, thread_n, run_n == 0 ? NULL : &run_n, (int64_t)type,
		       tx->snapshot.now, payload) < 0
		? -1
		: 0;
}

int effects_drop(struct tx *tx, int64_t run_n, enum effect_type type, struct failure *f)
{
	return tx_run(tx, f, SQL_EFFECTS_DROP, "ii", run_n, (int64_t)type) < 0 ? -1 : 0;
}

int effects_drop_run(struct tx *tx, int64_t run_n, struct failure *f)
{
	return tx_run(tx, f, SQL_EFFECTS_DROP_RUN, "i", run_n) < 0 ? -1 : 0;
}
