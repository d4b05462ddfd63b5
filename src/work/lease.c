/* Resource leases. A row whose expires_at has come is dead: it stays until somebody wants the resource, or
 * the sweep. The item, not the principal, is the holder, so that a hand-over of the claim keeps it. */
#include "work/lease.h"

#include "base/limits.h"

#include <stdatomic.h>

static atomic_bool is_switched_off;

void lease_set_enforced(bool is_enforced)
{
	atomic_store(&is_switched_off, !is_enforced);
}

/* by (resource_key, holder_n) */
SQL(SQL_LEASE_OTHERS,
	"SELECT max(expires_at) FROM lease WHERE resource_key = $1 AND holder_n <> $2 AND expires_at > $3");
SQL(SQL_LEASE_OF_KEY,
	"SELECT l.n, l.resource_key, l.holder_n, l.acquired_at, l.expires_at, i.id, t.title, i.root_n FROM lease l"
	" JOIN item i ON i.n = l.holder_n JOIN item_text t ON t.n = l.holder_n WHERE l.resource_key = $1");
/* by lease_holder */
SQL(SQL_LEASE_OF_HOLDER,
	"SELECT l.n, l.resource_key, l.holder_n, l.acquired_at, l.expires_at, i.id, t.title, i.root_n FROM lease l"
	" JOIN item i ON i.n = l.holder_n JOIN item_text t ON t.n = l.holder_n WHERE l.holder_n = $1"
	" ORDER BY l.resource_key");
SQL(SQL_LEASE_ANY, "SELECT n FROM lease WHERE holder_n = $1 LIMIT 1"); /* by lease_holder */
SQL(SQL_LEASE_DEAD, /* a scan of a table that holds only items in work */
	"SELECT l.n, l.resource_key, l.holder_n, l.acquired_at, l.expires_at, i.id, t.title, i.root_n FROM lease l"
	" JOIN item i ON i.n = l.holder_n JOIN item_text t ON t.n = l.holder_n WHERE l.expires_at <= $1"
	" ORDER BY l.n LIMIT $2");
SQL(SQL_LEASE_ADD,
	"INSERT INTO lease (n, id, resource_key, holder_n, acquired_at, expires_at, ttl, acquired_by)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
SQL(SQL_LEASE_DELETE, "DELETE FROM lease WHERE n = $1");
SQL(SQL_LEASE_EXTEND,
	"UPDATE lease SET expires_at = $2 + ttl * 1000, version = version + 1"
	" WHERE holder_n = $1 AND expires_at < $2 + ttl * 1000");
SQL(SQL_LEASE_HISTORY_ADD,
	"INSERT INTO lease_history (n, id, resource_key, holder_id, holder_title, acquired_at, expires_at,"
	" released_at, reason, released_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");

int lease_contention(struct snapshot *s, const struct item *item, const struct schema *schema,
	struct contention *out, struct failure *f)
{
	struct contention found = {0};
	int64_t soonest = INT64_MAX;

	for (size_t i = 0; i < schema->resource_count && !atomic_load(&is_switched_off); i++) {
		int64_t until;
		int rc;

		if (!schema->resources[i].is_exclusive)
			continue;
		rc = query_int(s, &until, f, SQL_LEASE_OTHERS, "sii", schema->resources[i].key, item->n,
			s->now);
		if (rc < 0)
			return -1;
		if (rc == 0)
			continue;
		if (found.v == NULL)
			found.v = ARENA_ARRAY(s->arena, const struct rules_resource *, schema->resource_count);
		found.v[found.n++] = &schema->resources[i];
		soonest = until < soonest ? until : soonest;
	}
	found.retry_after_ms = found.n == 0 ? 0 : soonest - s->now;
	*out = found;
	return 0;
}

struct lease_row {
	int64_t n;
	struct str key;
	int64_t holder_n, acquired_at, expires_at;
	struct id holder_id;
	struct str holder_title;
	int64_t root_n;
	struct lease_row *next;
};

/* The rows of a query, read to its end before anything is changed. */
static int collect(struct query *q, struct lease_row **out, struct failure *f)
{
	struct lease_row **end = out;
	int rc;

	*out = NULL;
	while ((rc = query_next(q, f)) == 1) {
		struct lease_row *row = ARENA_NEW(q->snapshot->arena, struct lease_row);

		*row = (struct lease_row){
			.n = col_int(q, 0),
			.key = col_str(q, 1),
			.holder_n = col_int(q, 2),
			.acquired_at = col_int(q, 3),
			.expires_at = col_int(q, 4),
			.holder_id = col_id(q, 5),
			.holder_title = col_str(q, 6),
			.root_n = col_int(q, 7),
		};
		*end = row;
		end = &row->next;
	}
	return rc;
}

static struct str event_data(struct tx *tx, const struct lease_row *row, const char *reason)
{
	struct json_writer w;
	struct buf text;

	buf_init(&text, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_kstr(&w, "key", row->key);
	if (reason == NULL)
		jw_ktime(&w, "expiresAt", row->expires_at);
	else
		jw_ktext(&w, "reason", reason);
	jw_object_end(&w);
	return buf_str(&text);
}

/* One interval ends: row deleted, history written, event appended. */
static int end_row(struct tx *tx, const struct lease_row *row, enum lease_reason reason, struct failure *f)
{
	static const char *const names[] = {"released", "expired", "forced", "item_deleted"};
	enum event_type type = reason == LEASE_EXPIRED ? EVENT_LEASE_EXPIRED : EVENT_LEASE_RELEASED;
	int64_t history_n;
	int64_t actor_n;
	struct id id;

	id_generate(&id);
	if (tx_actor(tx, &actor_n, f) != 0 || tx_next(tx, SEQ_lease_history, &history_n, f) != 0 ||
		tx_run(tx, f, SQL_LEASE_DELETE, "i", row->n) < 0 ||
		tx_run(tx, f, SQL_LEASE_HISTORY_ADD, "ibsbsiiiii", history_n, id, row->key,
			row->holder_id, row->holder_title, row->acquired_at, row->expires_at,
			tx->snapshot.now, (int64_t)reason, actor_n) < 0)
		return -1;
	return event_add(tx, type, row->root_n, row->holder_n, row->holder_id,
		event_data(tx, row, names[reason]), f);
}

static int end_rows(struct tx *tx, const struct lease_row *row, enum lease_reason reason, struct failure *f)
{
	for (; row != NULL; row = row->next)
		if (end_row(tx, row, reason, f) != 0)
			return -1;
	return 0;
}

/* What stands in the way of a key: dead rows of others, and our own orphan. */
static int clear_key(struct tx *tx, struct str key, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct lease_row *rows;

	if (query(&tx->snapshot, &q, f, SQL_LEASE_OF_KEY, "s", key) != 0 || collect(&q, &rows, f) != 0)
		return -1;
	for (; rows != NULL; rows = rows->next) {
		bool is_dead = rows->expires_at <= tx->snapshot.now;

		if (end_row(tx, rows, is_dead ? LEASE_EXPIRED : LEASE_RELEASED, f) != 0)
			return -1;
	}
	return 0;
}

static int acquire_one(struct tx *tx, const struct item *item, const struct rules_resource *resource,
	struct failure *f)
{
	struct lease_row row = {.key = resource->key,
		.expires_at = tx->snapshot.now + resource->ttl_seconds * 1000};
	int64_t actor_n;
	struct id id;

	id_generate(&id);
	if (clear_key(tx, resource->key, f) != 0 || tx_actor(tx, &actor_n, f) != 0 ||
		tx_next(tx, SEQ_lease, &row.n, f) != 0 ||
		tx_run(tx, f, SQL_LEASE_ADD, "ibsiiiii", row.n, id, row.key, item->n, tx->snapshot.now,
			row.expires_at, resource->ttl_seconds, actor_n) < 0)
		return -1;
	return event_add(tx, EVENT_LEASE_ACQUIRED, item->root_n, item->n, item->id, event_data(tx, &row, NULL), f);
}

int lease_acquire(struct tx *tx, const struct item *item, const struct schema *schema, struct failure *f)
{
	if (atomic_load(&is_switched_off))
		return 0;
	for (size_t i = 0; i < schema->resource_count; i++)
		if (schema->resources[i].is_exclusive &&
			acquire_one(tx, item, &schema->resources[i], f) != 0)
			return -1;
	return 0;
}

int lease_release_all(struct tx *tx, const struct item *item, enum lease_reason reason, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct lease_row *rows;
	int64_t any;
	int rc = query_int(&tx->snapshot, &any, f, SQL_LEASE_ANY, "i", item->n);

	if (rc != 1) /* most items that leave work hold none */
		return rc;
	if (query(&tx->snapshot, &q, f, SQL_LEASE_OF_HOLDER, "i", item->n) != 0 || collect(&q, &rows, f) != 0)
		return -1;
	return end_rows(tx, rows, reason, f);
}

int lease_extend(struct tx *tx, const struct item *item, struct failure *f)
{
	return tx_run(tx, f, SQL_LEASE_EXTEND, "ii", item->n, tx->snapshot.now) < 0 ? -1 : 0;
}

int lease_sweep(struct tx *tx, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct lease_row *rows;

	if (query(&tx->snapshot, &q, f, SQL_LEASE_DEAD, "ii", tx->snapshot.now, (int64_t)LIMIT_SWEEP_ROWS) !=
			0 ||
		collect(&q, &rows, f) != 0)
		return -1;
	return end_rows(tx, rows, LEASE_EXPIRED, f);
}

void contention_write(struct json_writer *w, const struct contention *contention)
{
	jw_karray(w, "resources");
	for (size_t i = 0; i < contention->n; i++) {
		jw_object_begin(w);
		jw_kstr(w, "name", contention->v[i]->key);
		jw_ktext(w, "mode", "exclusive");
		jw_object_end(w);
	}
	jw_array_end(w);
}

int lease_write(struct json_writer *w, struct snapshot *s, const struct item *item, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct lease_row *rows;

	if (item->role != ROLE_WORK)
		return 0;
	if (query(s, &q, f, SQL_LEASE_OF_HOLDER, "i", item->n) != 0 || collect(&q, &rows, f) != 0)
		return -1;
	if (rows == NULL)
		return 0;
	jw_karray(w, "lease");
	for (; rows != NULL; rows = rows->next) {
		jw_object_begin(w);
		jw_kstr(w, "key", rows->key);
		jw_ktime(w, "expiresAt", rows->expires_at);
		jw_object_end(w);
	}
	jw_array_end(w);
	return 0;
}
