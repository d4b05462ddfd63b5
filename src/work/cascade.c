/* Cascades: what a move does to the items above. A cascade that its gates refuse is told and not tried again;
 * the child's own move stands either way. OWNERSHIP and SEAT never apply. */
#include "work/unit.h"

#include "base/limits.h"

void unit_push(struct unit *unit, enum cascade cascade, int64_t target_n, bool is_cancel_origin)
{
	struct follow *follow;

	if (target_n == 0)
		return;
	follow = ARENA_NEW(unit->tx->snapshot.arena, struct follow);
	*follow = (struct follow){
		.cascade = cascade, .target_n = target_n, .is_cancel_origin = is_cancel_origin};
	*unit->todo_end = follow;
	unit->todo_end = &follow->next;
}

static bool is_pending(const struct unit *unit, int64_t n)
{
	for (size_t i = 0; i < unit->pending_count; i++)
		if (unit->pending[i] == n)
			return true;
	return false;
}

/* WARRANT: 1 when there is a child and every child is terminal. */
static int is_warranted(struct unit *unit, int64_t parent_n, struct failure *f)
{
	struct tally children;

	if (tally_children(&unit->tx->snapshot, parent_n, &children, f) != 0)
		return -1;
	return children.by_role[tally_index(ROLE_TERMINAL)] > 0 &&
		tally_sum(&children) == children.by_role[tally_index(ROLE_TERMINAL)];
}

/* Rules of the parent: 1 known, 0 not readable (warned), -1 failure. */
static int load_rules(struct unit *unit, struct move *move, const struct item *item, enum cascade cascade,
	struct failure *f)
{
	struct failure own;

	failure_init(&own, f->arena);
	if (move_load(&unit->tx->snapshot, unit->call, item, TRIGGER_CASCADE, cascade, move, &own) == 0)
		return 1;
	if (own.code != FAIL_UNAVAILABLE && own.code != FAIL_NOT_FOUND) {
		failure_copy(f, f->arena, &own);
		return -1;
	}
	warn(&unit->call->warnings, "cascade_skipped", STR_NONE,
		"The rules of item %.*s cannot be read: its cascade (%s) was skipped.",
		STRF(id_str(f->arena, item->id)), cascade_name(cascade));
	return 0;
}

/* What stands against the move, in the order HOLD, DEPENDENCY, NOTE, LEASE. */
static int find_hindrance(struct unit *unit, struct move *move, enum cascade_verdict verdict,
	enum hindrance *out, struct failure *f)
{
	static const struct {
		int (*passes)(struct snapshot *, struct call *, struct move *, struct failure *);
		enum hindrance hindrance;
	} gates[] = {
		{gate_dependency, HINDERED_BY_DEPENDENCY},
		{gate_note, HINDERED_BY_NOTES},
		{gate_lease, HINDERED_BY_RESOURCE},
	};

	*out = verdict == CASCADE_HELD ? HINDERED_BY_ROLE : HINDERED_NOT;
	for (size_t i = 0; i < sizeof(gates) / sizeof(gates[0]) && *out == HINDERED_NOT; i++) {
		int rc = gates[i].passes(&unit->tx->snapshot, unit->call, move, f);

		if (rc < 0)
			return -1;
		if (rc == 0)
			*out = gates[i].hindrance;
	}
	return 0;
}

static void push_next(struct unit *unit, const struct follow *follow, const struct item *item)
{
	if (follow->cascade == CASCADE_COMPLETE || follow->cascade == CASCADE_START)
		unit_push(unit, follow->cascade, item->parent_n, follow->is_cancel_origin);
	/* a reopened parent leaves its own parent alone */
}

static void add_event(struct unit *unit, struct move *move, enum hindrance hindrance, struct str label)
{
	struct cascade_event *event = ARENA_NEW(unit->tx->snapshot.arena, struct cascade_event);

	*event = (struct cascade_event){
		.move = move, .from = move->item->role, .hindrance = hindrance, .label = label};
	*unit->events_end = event;
	unit->events_end = &event->next;
}

static bool cascades_reach(const struct schema *schema)
{
	return schema->lifecycle == LIFECYCLE_AUTO || schema->lifecycle == LIFECYCLE_AUTO_REOPEN;
}

SQL(SQL_CASCADE_ROLE, "SELECT role FROM item WHERE n = $1");

/* 1 the target's role lets the cascade through: nearly always it does not, and one column tells. */
static int is_heard(struct snapshot *s, const struct follow *follow, struct failure *f)
{
	enum role target;
	int64_t role;
	int rc = query_int(s, &role, f, SQL_CASCADE_ROLE, "i", follow->target_n);

	if (rc != 1)
		return rc;
	return table_cascade((enum role)role, follow->cascade, &target) != CASCADE_SILENT;
}

static int run_one(struct unit *unit, const struct follow *follow, struct failure *f)
{
	static const struct manner plain = {0};
	struct snapshot *s = &unit->tx->snapshot;
	struct item *item = ARENA_NEW(s->arena, struct item);
	struct move *move = ARENA_NEW(s->arena, struct move);
	enum cascade_verdict verdict;
	enum hindrance hindrance;
	struct applied applied;
	enum role target;
	int rc;

	rc = is_heard(s, follow, f);
	if (rc == 1 && follow->cascade == CASCADE_COMPLETE)
		rc = is_warranted(unit, follow->target_n, f);
	if (rc == 1)
		rc = item_load(s, follow->target_n, item, f);
	if (rc != 1)
		return rc;
	verdict = table_cascade(item->role, follow->cascade, &target);
	if ((rc = load_rules(unit, move, item, follow->cascade, f)) != 1)
		return rc;
	if (!cascades_reach(&move->schema))
		return 0;
	move->is_cancel_origin = follow->is_cancel_origin;
	move->target = target;
	if (find_hindrance(unit, move, verdict, &hindrance, f) != 0)
		return -1;
	applied.label = STR_NONE;
	if (hindrance == HINDERED_NOT) {
		if (unit_apply(unit, move, &plain, &applied, f) != 0)
			return -1;
		push_next(unit, follow, item);
	}
	add_event(unit, move, hindrance, applied.label);
	return 0;
}

int unit_cascade(struct unit *unit, struct failure *f)
{
	for (int steps = 0; unit->todo != NULL && steps < LIMIT_CASCADE_STEPS; steps++) {
		struct follow *follow = unit->todo;

		unit->todo = follow->next;
		if (unit->todo == NULL)
			unit->todo_end = &unit->todo;
		if (!is_pending(unit, follow->target_n) && run_one(unit, follow, f) != 0)
			return -1;
	}
	return 0;
}

static void write_hindrance(struct unit *unit, struct json_writer *w, const struct cascade_event *event)
{
	const struct move *move = event->move;

	switch (event->hindrance) {
	case HINDERED_BY_ROLE:
		jw_kbool(w, "roleBlocked", true);
		break;
	case HINDERED_BY_DEPENDENCY:
		jw_kbool(w, "dependencyBlocked", true);
		blockers_write(w, unit->call, &move->blockers);
		break;
	case HINDERED_BY_NOTES:
		jw_kbool(w, "gateBlocked", true);
		notes_write_missing(w, "missingNotes", move->notes.missing, move->notes.missing_count);
		break;
	case HINDERED_BY_RESOURCE:
		jw_kbool(w, "resourceBlocked", true);
		contention_write(w, &move->contention);
		break;
	case HINDERED_NOT:
		break;
	}
}

void unit_write_cascades(struct unit *unit, struct json_writer *w)
{
	if (unit->events == NULL)
		return;
	jw_karray(w, "cascadeEvents");
	for (const struct cascade_event *event = unit->events; event != NULL; event = event->next) {
		jw_object_begin(w);
		jw_id(w, unit->call, "itemId", event->move->item->id);
		jw_kstr(w, "title", event->move->item->title);
		jw_ktext(w, "from", role_name(event->from));
		jw_ktext(w, "to", role_name(event->move->target));
		jw_ktext(w, "trigger", cascade_name(event->move->cascade));
		jw_kbool(w, "applied", event->hindrance == HINDERED_NOT);
		jw_kstr_opt(w, "statusLabel", event->label);
		notes_write_violations(w, &event->move->notes, false);
		write_hindrance(unit, w, event);
		jw_object_end(w);
	}
	jw_array_end(w);
}

/* ---- for structural operations ---- */

static int run_alone(struct tx *tx, struct call *call, enum cascade cascade, int64_t target_n,
	struct json_writer *out, struct failure *f)
{
	struct unit unit;

	unit_init(&unit, tx, call);
	unit_push(&unit, cascade, target_n, false);
	if (unit_cascade(&unit, f) != 0)
		return -1;
	unit_write_cascades(&unit, out);
	return 0;
}

int cascade_after_structure(struct tx *tx, struct call *call, int64_t old_parent_n, struct json_writer *out,
	struct failure *f)
{
	return run_alone(tx, call, CASCADE_COMPLETE, old_parent_n, out, f);
}

int cascade_reopen_parent(struct tx *tx, struct call *call, int64_t parent_n, struct json_writer *out,
	struct failure *f)
{
	return run_alone(tx, call, CASCADE_REOPEN, parent_n, out, f);
}
