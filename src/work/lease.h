/* work/lease.h - exclusive holds of items on named things, for as long as the items are in work. */
#ifndef DAIS_WORK_LEASE_H
#define DAIS_WORK_LEASE_H

#include "work/advance.h"

struct contention {
	const struct rules_resource **v; /* every contended one, sorted by key */
	size_t n;
	int64_t retry_after_ms; /* until the soonest of them expires; at least 1 */
};

/* Exclusive resources of the schema that another item holds now. */
int lease_contention(struct snapshot *s, const struct item *item, const struct schema *schema,
	struct contention *out, struct failure *f);
/* All exclusive resources of the schema, for an item that enters work; contention was looked at before, in the
 * same transaction. Dead rows of others are moved to history. */
int lease_acquire(struct tx *tx, const struct item *item, const struct schema *schema, struct failure *f);
/* The holder's heartbeat: its leases last for their whole ttl again. */
int lease_extend(struct tx *tx, const struct item *item, struct failure *f);
/* Dead rows into history, at most LIMIT_SWEEP_ROWS. */
int lease_sweep(struct tx *tx, struct failure *f);

/* "resources":[{name,mode}] */
void contention_write(struct json_writer *w, const struct contention *contention);
/* "lease":[{key,expiresAt}] of the item; nothing when it holds none. */
int lease_write(struct json_writer *w, struct snapshot *s, const struct item *item, struct failure *f);

#endif
