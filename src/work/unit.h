/* work/unit.h - one commit unit: a move, applied, with everything that follows from it. */
#ifndef DAIS_WORK_UNIT_H
#define DAIS_WORK_UNIT_H

#include "work/gate.h"

enum hindrance { HINDERED_NOT, HINDERED_BY_ROLE, HINDERED_BY_DEPENDENCY, HINDERED_BY_NOTES, HINDERED_BY_RESOURCE };

struct cascade_event {
	struct move *move;
	enum role from;
	enum hindrance hindrance;
	struct str label; /* when applied */
	struct cascade_event *next;
};

struct follow {
	enum cascade cascade;
	int64_t target_n;
	bool is_cancel_origin;
	struct follow *next;
};

struct unit {
	struct tx *tx;
	struct call *call;
	/* Items that take their own turn later: no cascade is run on them. */
	const int64_t *pending;
	size_t pending_count;
	/* found on the way */
	struct cascade_event *events, **events_end;
	struct follow *todo, **todo_end;
	struct unblocked unblocked;
};

void unit_init(struct unit *unit, struct tx *tx, struct call *call);

/* What a move left behind. */
struct applied {
	enum role from, to;
	struct str label;
	int64_t version;
	struct str credentials; /* JSON array, absent: none */
};

struct manner {
	struct str summary;
	const struct str *credentials;
	size_t credential_count;
};

/* apply.c: columns, counts, leases, claim, history; then what the new role unblocks. The gates have passed. */
int unit_apply(struct unit *unit, struct move *move, const struct manner *manner, struct applied *out,
	struct failure *f);

/* cascade.c */
void unit_push(struct unit *unit, enum cascade cascade, int64_t target_n, bool is_cancel_origin);
/* Every cascade that is due, and those that follow from them. */
int unit_cascade(struct unit *unit, struct failure *f);
/* "cascadeEvents":[…], nothing when there is none */
void unit_write_cascades(struct unit *unit, struct json_writer *w);

/* transition.c: gates, move, cascades of one user trigger. FAIL_INVALID_REQUEST for credentials that the
 * item's rules do not name. */
int unit_transition(struct unit *unit, const struct item *item, const struct ask *ask, const struct manner *manner,
	struct move *out_move, struct applied *out, struct failure *f);
/* "dispatch":{agent?,model?,effort?} of a phase, for the caller's seat where it has one; nothing when not set. */
void dispatch_write(struct json_writer *w, struct call *call, const struct schema *schema, enum role role);
/* transition.rejected, for gate_blocked and dependency_unmet; other failures leave no event. */
int rejected_record(struct tx *tx, const struct item *item, struct str word, const struct failure *why,
	struct failure *f);

#endif
