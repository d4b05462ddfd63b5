/* work/advance.h - the workflow engine: transitions behind their gates, cascades, claims, leases, selection.
 *
 * A transition runs the gates of work/gate.h in their fixed order, is applied with everything that follows
 * from it (cascades, leases, claim, counts, events), and names what it unblocked; all of it is one unit of the
 * transaction. Arguments are filled from the field tables in tools/advance_fields.h. */
#ifndef DAIS_WORK_ADVANCE_H
#define DAIS_WORK_ADVANCE_H

#include "base/field.h"
#include "work/filter.h"
#include "work/work.h"

struct transition_args {
	struct arg_str item;
	struct arg_str trigger; /* any word: an unknown one is answered with the allowed list */
	struct arg_str summary;
	struct arg_strs credentials;
	struct arg_int expected_version;
	struct arg_int expected_role;
	struct arg_int assert_config;
	struct arg_int claim_gen;
};

enum select_order { SELECT_BY_PRIORITY, SELECT_OLDEST, SELECT_NEWEST };

struct selector_args {
	struct filter_args filter;
	struct arg_int order; /* enum select_order */
};

#define CLAIM_TTL_DEFAULT 900 /* seconds */

struct claim_args {
	struct arg_str item;
	struct arg_object selector; /* struct selector_args */
	struct arg_int ttl;	    /* seconds */
	struct arg_str claim_ref;
};

struct release_args {
	struct arg_str item;
	struct arg_str claim_ref;
	struct arg_str summary;
};

struct heartbeat_args {
	struct arg_str item;
	struct arg_int ttl; /* seconds */
	struct arg_int claim_gen;
};

/* advance */
int advance_transition(struct tx *tx, struct call *call, const struct transition_args *in,
	struct json_writer *out, struct failure *f);
int advance_claim(struct tx *tx, struct call *call, const struct claim_args *in, struct json_writer *out,
	struct failure *f);
/* A stored claim is answered again: adds "stale":true when that hold has ended. */
int advance_claim_replayed(struct tx *tx, struct call *call, const json_t *stored, struct json_writer *out,
	struct failure *f);
int advance_release(struct tx *tx, struct call *call, const struct release_args *in, struct json_writer *out,
	struct failure *f);
int advance_heartbeat(struct tx *tx, struct call *call, const struct heartbeat_args *in,
	struct json_writer *out, struct failure *f);

/* items_read gate, next */
struct gate_args {
	struct arg_str item;
	struct arg_int trigger; /* enum trigger; unset: start */
};
int items_gate(struct snapshot *s, struct call *call, const struct gate_args *in, struct json_writer *out,
	struct failure *f);

struct next_args {
	struct filter_args filter;
	struct arg_int order; /* enum select_order */
	struct arg_int limit;
	struct arg_bool include_claimed;
	struct arg_bool include_details;
	struct arg_strs fields;
};
int items_next(struct snapshot *s, struct call *call, const struct next_args *in, struct json_writer *out,
	struct failure *f);

/* items_write complete_tree */
struct complete_tree_args {
	struct arg_str item;
	struct arg_strs items;
	struct arg_bool include_root; /* unset: true */
	struct arg_int trigger;	      /* TRIGGER_COMPLETE (unset) or TRIGGER_CANCEL */
	struct arg_str summary;
};
int items_complete_tree(struct tx *tx, struct call *call, const struct complete_tree_args *in,
	struct json_writer *out, struct failure *f);

/* ---- for structural operations ---- */

/* A child of `old_parent_n` was deleted or moved away: evaluate the parent as if a child had completed.
 * 0 as parent is fine. Writes the member "cascadeEvents" when there is any. */
int cascade_after_structure(struct tx *tx, struct call *call, int64_t old_parent_n, struct json_writer *out,
	struct failure *f);
/* A child that is not terminal is to stand below `parent_n`, which is terminal and of lifecycle auto-reopen:
 * the reopen-cascade. Writes "cascadeEvents" when there is any; afterwards the parent is in work, or the
 * event says why not. */
int cascade_reopen_parent(struct tx *tx, struct call *call, int64_t parent_n, struct json_writer *out,
	struct failure *f);

/* ---- claims, for others ---- */

/* End the claim of `item`, if it has one, for `reason` (released, cleared, superseded) and, unless it is the
 * holder's own doing, `cause` (cascade, run_closed, seat_revoked, …; NULL: none): columns cleared, event
 * claim.released with the holder. The holder's next call with its claimGen is told the cause. A claim that had
 * lapsed is recorded as expired instead. */
int claim_end(struct tx *tx, const struct item *item, const char *reason, const char *cause, struct failure *f);
/* End every live claim of the principal with this row; adds to *out_count. */
int claim_end_all(struct tx *tx, int64_t principal_n, const char *reason, const char *cause, int64_t *out_count,
	struct failure *f);
/* NOT_CLAIM_HOLDER when another principal has a live claim on the item. */
int claim_allows(struct snapshot *s, struct call *call, const struct item *item, struct failure *f);
/* "claim":{state,mine?,expiresAt?,…}: what this caller may see of it. */
int claim_write(struct json_writer *w, struct snapshot *s, struct call *call, const struct item *item,
	struct failure *f);

/* ---- resource leases, for others ---- */

enum lease_reason { LEASE_RELEASED, LEASE_EXPIRED, LEASE_FORCED, LEASE_ITEM_DELETED };
/* Every lease of the item goes into history. */
int lease_release_all(struct tx *tx, const struct item *item, enum lease_reason reason, struct failure *f);
/* The kill switch: false records requirements without locking anything. Set once at start. */
void lease_set_enforced(bool is_enforced);

/* The server's hourly job: claims that lapsed are put on record once; dead leases go into history. */
int sweep_expired(struct tx *tx, void *arg, struct failure *f);

#endif
