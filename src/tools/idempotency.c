/* Idempotency: the result of an op is kept in the op's own transaction and given again for 24 hours.
 *
 * Only successes are kept: whatever depends on the state (a gate, a claim) may have changed, and a wrong
 * shape is refused the same way each time without a record. */
#include "tools/frame.h"

#include "base/limits.h"

SQL(SQL_IDEMPOTENCY_FIND,
	"SELECT fingerprint, result FROM idempotency WHERE principal_n = $1 AND operation = $2 AND key = $3"
	" AND created_at > $4");
SQL(SQL_IDEMPOTENCY_ADD,
	"INSERT INTO idempotency (principal_n, operation, key, fingerprint, result, created_at)"
	" VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (principal_n, operation, key) DO UPDATE SET"
	" fingerprint = excluded.fingerprint, result = excluded.result, created_at = excluded.created_at");

#define LIFE_MS (LIMIT_IDEMPOTENCY_HOURS * INT64_C(3600000))

static struct str operation_of(struct frame *frame, const struct step *step)
{
	return str_printf(frame->call.arena, "mcp.%s.%s", frame->tool->name,
		frame->is_atomic ? "atomic" : step->operation->name);
}

static struct str key_of(struct frame *frame, size_t index)
{
	return str_printf(frame->call.arena, "%.*s:%zu", STRF(frame->key), index);
}

/* SHA-256 of the canonical text of what was asked; of an atomic call, all of it. */
static void fingerprint(struct frame *frame, const struct step *step, unsigned char out[32])
{
	struct buf text;

	buf_init(&text, frame->call.arena, SIZE_MAX);
	buf_printf(&text, "%d", frame->is_atomic);
	if (frame->is_atomic) {
		for (size_t i = 0; i < frame->step_count; i++)
			buf_add_str(&text, json_canonical(frame->call.arena, frame->steps[i].element));
	} else {
		buf_add_str(&text, json_canonical(frame->call.arena, step->element));
	}
	sha256(text.p, text.n, out);
}

static int mismatch(struct frame *frame, struct failure *f)
{
	(void)fail(f, FAIL_IDEMPOTENCY_MISMATCH, "The key was used with another payload.");
	fail_detail_str(f, "idempotencyKey", frame->key);
	return -1;
}

int remembered(struct tx *tx, struct frame *frame, struct step *step, size_t index, struct failure *f)
{
	unsigned char digest[32];
	AUTO(query_endp) struct query q = {0};
	int64_t actor_n;
	int rc;

	if (frame->key.n == 0)
		return 0;
	/* Looked up and not made: a call that is refused afterwards must have changed nothing. */
	if (principal_find(&tx->snapshot, tx->actor->id, &actor_n, f) != 0)
		return -1;
	if (actor_n == 0)
		return 0;
	if (query(&tx->snapshot, &q, f, SQL_IDEMPOTENCY_FIND, "issi", actor_n, operation_of(frame, step),
		    key_of(frame, index), tx->snapshot.now - LIFE_MS) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	fingerprint(frame, step, digest);
	if (!col_equals(&q, 0, (struct str){(const char *)digest, sizeof(digest)}))
		return mismatch(frame, f);
	step->result = col_str(&q, 1);
	step->is_ok = step->is_replayed = true;
	return 1;
}

int remember(struct tx *tx, struct frame *frame, struct step *step, size_t index, struct failure *f)
{
	unsigned char digest[32];
	struct str stored = step->result;
	int64_t actor_n;

	if (frame->key.n == 0)
		return 0;
	if (frame->call.again_members.n > 0)
		stored = str_printf(frame->call.arena, "%.*s%s%.*s", STRF(stored), stored.n > 0 ? "," : "",
			STRF(frame->call.again_members));
	fingerprint(frame, step, digest);
	if (tx_actor(tx, &actor_n, f) != 0)
		return -1;
	return tx_run(tx, f, SQL_IDEMPOTENCY_ADD, "issxsi", actor_n, operation_of(frame, step),
		       key_of(frame, index), ((struct str){(const char *)digest, sizeof(digest)}), stored,
		       tx->snapshot.now) < 0
		? -1
		: 0;
}
