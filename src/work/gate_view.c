/* items_read gate: every gate but OWNERSHIP looked at, read-only, and all that stand in the way are named. */
#include "work/claim.h"
#include "work/unit.h"

struct view {
	bool table, dependency, note, lease, seat; /* in the way */
	bool has_target;
};

static int look(struct snapshot *s, struct call *call, struct move *move, struct view *out, struct failure *f)
{
	const struct item *item = move->item;
	struct seat_verdict verdict;
	int rc;

	out->has_target = table_target(
		item->role, move->trigger, move->schema.has_review, item->prev_role, &move->target);
	out->table = !out->has_target;
	if (!out->has_target) {
		/* Nowhere to go, so no gate: but independence is reported for every item that has not ended. */
		move->target = ROLE_BLOCKED;
		rc = item->role == ROLE_TERMINAL ? 1 : gate_note(s, call, move, f);
		return rc < 0 ? -1 : 0;
	}
	if ((rc = gate_dependency(s, call, move, f)) < 0)
		return -1;
	out->dependency = rc == 0;
	if ((rc = gate_note(s, call, move, f)) < 0)
		return -1;
	out->note = rc == 0;
	if ((rc = gate_lease(s, call, move, f)) < 0)
		return -1;
	out->lease = rc == 0;
	out->seat = !gate_seat(call, move, &verdict);
	return 0;
}

static void write_reasons(struct json_writer *out, const struct view *view)
{
	const struct {
		bool stands;
		const char *name;
	} gates[] = {{view->table, "table"}, {view->dependency, "dependency"}, {view->note, "note"},
		{view->lease, "lease"}, {view->seat, "seat"}};
	bool is_open = false;

	for (size_t i = 0; i < sizeof(gates) / sizeof(gates[0]); i++) {
		if (!gates[i].stands)
			continue;
		if (!is_open)
			jw_karray(out, "blockedBy");
		is_open = true;
		jw_text(out, gates[i].name);
	}
	if (is_open)
		jw_array_end(out);

}

static void write_findings(struct json_writer *out, struct call *call, const struct move *move,
	const struct view *view)
{
	const struct note_findings *notes = &move->notes;

	if (view->note && notes->missing_count > 0) {
		notes_write_missing(out, "missing", notes->missing, notes->missing_count);
		notes_write_by_seat(out, &move->schema, notes->missing, notes->missing_count);
	}
	notes_write_violations(
		out, notes, notes->checks_independence && move->item->role != ROLE_TERMINAL);
	if (view->dependency)
		blockers_write(out, call, &move->blockers);
	if (view->lease)
		contention_write(out, &move->contention);
}

static void write_phase(struct json_writer *out, struct call *call, const struct move *move)
{
	enum role role = move->item->role;
	struct note_progress progress;

	note_progress(&move->schema, &move->rows, role, &progress);
	notes_write_progress(out, &progress);
	notes_write_guidance(out, &progress);
	dispatch_write(out, call, &move->schema, role);
	jw_ktext(out, "lifecycle", lifecycle_name(move->schema.lifecycle));
	if (move->schema.source == RULES_NONE)
		return;
	jw_kobject(out, "schema");
	jw_kstr_opt(out, "type", move->schema.type);
	jw_ktext(out, "source", rules_source_name(move->schema.source));
	jw_object_end(out);
}

int items_gate(struct snapshot *s, struct call *call, const struct gate_args *in, struct json_writer *out,
	struct failure *f)
{
	enum trigger trigger = in->trigger.set ? (enum trigger)in->trigger.v : TRIGGER_START;
	struct view view = {0};
	struct item item;
	struct move move;

	if (item_find(s, call, in->item.v, STR("itemId"), &item, f) != 0 ||
		move_load(s, call, &item, trigger, CASCADE_NONE, &move, f) != 0 ||
		look(s, call, &move, &view, f) != 0)
		return -1;
	jw_id(out, call, "itemId", item.id);
	jw_ktext(out, "role", role_name(item.role));
	jw_ktext(out, "trigger", trigger_name(trigger));
	jw_kbool(out, "canAdvance", !(view.table || view.dependency || view.note || view.lease || view.seat));
	if (view.has_target)
		jw_ktext(out, "targetRole", role_name(move.target));
	write_reasons(out, &view);
	write_findings(out, call, &move, &view);
	write_phase(out, call, &move);
	if (item.claim_by != 0 && claim_write(out, s, call, &item, f) != 0)
		return -1;
	return lease_write(out, s, &item, f);
}
