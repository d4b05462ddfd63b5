/* work/gate.h - what stands between a trigger and its effect: eight gates in a fixed order.
 *
 *   1 OWNERSHIP  user triggers: no live claim, or the caller's own, of the generation it names
 *   2 TABLE      the table has the cell
 *   3 WARRANT    complete-cascade: a child, and all children terminal (work/cascade.c)
 *   4 HOLD       cascades: the role does not stand against it (work/cascade.c)
 *   5 DEPENDENCY blockers, unless the user cancels
 *   6 NOTE       required notes, independence
 *   7 LEASE      targets in work: every exclusive resource is free
 *   8 SEAT       callers with a seat token
 *
 * The first failure wins. LEASE only looks; resources are taken when the move is applied, in the same
 * transaction, so that a move which fails never takes one. */
#ifndef DAIS_WORK_GATE_H
#define DAIS_WORK_GATE_H

#include "work/dependency_gate.h"
#include "work/lease.h"
#include "work/note_gate.h"
#include "work/table.h"

/* What is asked of an item, and what is known about it: filled once, read by every gate. */
struct move {
	const struct item *item;
	enum trigger trigger;	/* TRIGGER_CASCADE for cascades */
	enum cascade cascade;	/* CASCADE_NONE: a user's trigger */
	bool is_cancel_origin;	/* a cascade that a cancel caused */
	enum role target;
	struct schema schema;
	struct note_rows rows;
	struct note_findings notes;
	struct blockers blockers;
	struct contention contention;
};

/* Schema and notes of the item; target unset. UNAVAILABLE when the rules cannot be read. */
int move_load(struct snapshot *s, struct call *call, const struct item *item, enum trigger trigger,
	enum cascade cascade, struct move *out, struct failure *f);

/* Each looks at one gate and fills its part of `move`: 1 passes, 0 does not, -1 failure. */
int gate_dependency(struct snapshot *s, struct call *call, struct move *move, struct failure *f);
int gate_note(struct snapshot *s, struct call *call, struct move *move, struct failure *f);
int gate_lease(struct snapshot *s, struct call *call, struct move *move, struct failure *f);

struct seat_verdict {
	struct str action; /* enter:work, cancel:queue, complete:queue */
	const struct str *allowed;
	size_t allowed_count;
};
/* 1 when the caller holds no seat, or one that may. */
int gate_seat(struct call *call, const struct move *move, struct seat_verdict *out);

/* The whole pipeline for a user's trigger: `word` is what the caller sent (unknown words fail at TABLE). On
 * success `out` is ready to be applied. */
struct ask {
	struct str word;
	bool has_gen;
	int64_t claim_gen;
	bool has_role;
	enum role expected_role;
};
int gates_user(struct snapshot *s, struct call *call, const struct item *item, const struct ask *ask,
	struct move *out, struct failure *f);

/* INVALID_TRANSITION with its detail: also for structural operations and claims. `trigger` as the caller
 * knows it; `allowed` is a JSON array. */
int fail_transition(struct failure *f, const struct item *item, struct str trigger, struct str allowed);

#endif
