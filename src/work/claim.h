/* work/claim.h - inside the work room: what the gates and units ask of a claim. */
#ifndef DAIS_WORK_CLAIM_H
#define DAIS_WORK_CLAIM_H

#include "work/advance.h"

/* NOT_CLAIM_HOLDER unless the caller has the live claim of this generation; a caller whose claim the server
 * ended is told why. */
int claim_expect_gen(struct snapshot *s, struct call *call, const struct item *item, int64_t gen,
	struct failure *f);
/* A claim that lapsed is on record from now on (event claim.expired); columns stay. Nothing when it is live,
 * absent or recorded already. */
int claim_note_lapse(struct tx *tx, const struct item *item, struct failure *f);
/* The event claim.released of the present holder. */
int claim_released_event(struct tx *tx, const struct item *item, const char *reason, const char *cause,
	struct str summary, struct failure *f);
/* Pieces of ending a claim, for work/claim.c. */
bool claim_has_new_lapse(struct tx *tx, const struct item *item);
int claim_expired_event(struct tx *tx, const struct item *item, struct failure *f);
int claim_end_with(struct tx *tx, const struct item *item, const char *reason, const char *cause,
	struct str summary, struct failure *f);
/* Items that the principal claims, lapsed ones included. */
int claims_of(struct snapshot *s, int64_t principal_n, int64_t **out, size_t *out_n, struct failure *f);
/* NOT_CLAIM_HOLDER that says what became of the caller's claim `gen`. */
int fail_former_holder(struct snapshot *s, struct call *call, const struct item *item, int64_t me, int64_t gen,
	struct failure *f);
/* Seconds between heartbeats of a claim with this ttl. */
int64_t claim_cadence(int64_t ttl_seconds);

#endif
