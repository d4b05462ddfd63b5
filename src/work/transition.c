/* advance transition: one user trigger, its gates, its effects, and what the caller should do next. */
#include "work/claim.h"
#include "work/unit.h"

/* ---- before the gates ---- */

SQL(SQL_CONFIG_VERSION, "SELECT version FROM config WHERE root_n = $1");

static int fail_pinned(struct snapshot *s, const struct item *item, int64_t pinned, int64_t current,
	struct failure *f)
{
	if (current < 0 && query_int(s, &current, f, SQL_CONFIG_VERSION, "i", item->root_n) < 0)
		return -1;
	(void)fail(f, FAIL_SCHEMA_PINNED_CONFLICT, "Planned with rules of version %lld; version %lld is current.",
		(long long)pinned, (long long)current);
	fail_detail_str(f, "itemId", id_str(f->arena, item->id));
	fail_detail_int(f, "pinnedVersion", pinned);
	fail_detail_int(f, "currentVersion", current);
	return -1;
}

/* The rules that this caller goes by exist, and are those it planned with. */
static int check_rules(struct snapshot *s, struct call *call, const struct item *item,
	const struct arg_int *expected, struct failure *f)
{
	int64_t pinned = call->caller->seat.run_n == 0 ? 0 : call->caller->seat.pinned_version;
	const struct rules_view *view;

	if (call_view(s, call, item->root_n, &view, f) != 0)
		return f->code == FAIL_NOT_FOUND && pinned > 0 ? fail_pinned(s, item, pinned, -1, f) : -1;
	if (expected->set && expected->v != view->version)
		return fail_pinned(s, item, expected->v, view->version, f);
	return 0;
}

/* For an item that declares resources the caller's credentials are a closed set. */
static int check_credentials(const struct move *move, const struct manner *manner, struct failure *f)
{
	for (size_t i = 0; i < manner->credential_count && move->schema.resource_count > 0; i++) {
		size_t k = 0;

		while (k < move->schema.resource_count &&
			!str_eq(move->schema.resources[k].key, manner->credentials[i]))
			k++;
		if (k == move->schema.resource_count)
			(void)fail_field(f, str_printf(f->arena, "consumedCredentials[%zu]", i),
				manner->credentials[i], "is not a resource that the item's rules declare");
	}
	if (f->field_count == 0)
		return 0;
	f->is_shape = false; /* the rules may declare it tomorrow */
	return -1;
}

/* ---- the unit ---- */

/* The parent's role mostly lets nothing through: then nothing is asked of it. */
static void push_followups(struct unit *unit, const struct move *move)
{
	const struct item *item = move->item;
	enum cascade cascade = move->target == ROLE_TERMINAL ? CASCADE_COMPLETE
		: move->trigger == TRIGGER_REOPEN	     ? CASCADE_REOPEN
		: move->target == ROLE_WORK		     ? CASCADE_START
							     : CASCADE_NONE;
	enum role target;

	if (cascade != CASCADE_NONE && item->parent_n != 0 &&
		table_cascade(item->parent_role, cascade, &target) != CASCADE_SILENT)
		unit_push(unit, cascade, item->parent_n, move->trigger == TRIGGER_CANCEL);
}

int unit_transition(struct unit *unit, const struct item *item, const struct ask *ask, const struct manner *manner,
	struct move *out_move, struct applied *out, struct failure *f)
{
	if (gates_user(&unit->tx->snapshot, unit->call, item, ask, out_move, f) != 0 ||
		check_credentials(out_move, manner, f) != 0 ||
		unit_apply(unit, out_move, manner, out, f) != 0)
		return -1;
	push_followups(unit, out_move);
	return unit_cascade(unit, f);
}

/* ---- refusals on record ---- */

int rejected_record(struct tx *tx, const struct item *item, struct str word, const struct failure *why,
	struct failure *f)
{
	struct json_writer w;
	struct buf text;

	if (why->code != FAIL_GATE_BLOCKED && why->code != FAIL_DEPENDENCY_UNMET)
		return 0;
	buf_init(&text, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_kstr(&w, "trigger", str_lower(tx->snapshot.arena, word));
	jw_ktext(&w, "code", failure_info(why->code)->wire);
	jw_kobject(&w, "detail");
	jw_members(&w, why->detail);
	jw_object_end(&w);
	jw_object_end(&w);
	return event_add(tx, EVENT_TRANSITION_REJECTED, item->root_n, item->n, item->id, buf_str(&text), f);
}

struct refusal {
	struct item item;
	struct str word;
	struct failure why;
};

static int record_refusal(struct tx *tx, struct call *call, void *arg, struct failure *f)
{
	const struct refusal *refusal = arg;

	(void)call;
	if (claim_note_lapse(tx, &refusal->item, f) != 0)
		return -1;
	return rejected_record(tx, &refusal->item, refusal->word, &refusal->why, f);
}

static void keep_refusal(struct tx *tx, struct call *call, const struct item *item, struct str word,
	const struct failure *why)
{
	struct refusal *refusal = ARENA_NEW(tx->snapshot.arena, struct refusal);

	refusal->item = *item;
	refusal->word = word;
	failure_copy(&refusal->why, tx->snapshot.arena, why);
	call->after_failure = record_refusal;
	call->after_failure_arg = refusal;
}

/* ---- the answer ---- */

static int warn_active_children(struct unit *unit, const struct move *move, struct failure *f)
{
	struct tally children;
	int64_t active;

	if (move->target != ROLE_TERMINAL)
		return 0;
	if (tally_children(&unit->tx->snapshot, move->item->n, &children, f) != 0)
		return -1;
	active = tally_sum(&children) - children.by_role[tally_index(ROLE_TERMINAL)];
	if (active > 0)
		warn(&unit->call->warnings, "active_children", STR_NONE,
			"Item %.*s ended with %lld %s still active; complete_tree ends them too.",
			STRF(id_str(f->arena, move->item->id)), (long long)active,
			active == 1 ? "child that is" : "children that are");
	if (move->schema.lifecycle == LIFECYCLE_PERMANENT && move->trigger != TRIGGER_CANCEL)
		warn(&unit->call->warnings, "permanent_closed", STR_NONE,
			"Item %.*s is a permanent container; it was completed because you asked.",
			STRF(id_str(f->arena, move->item->id)));
	return 0;
}

static void write_profile(struct json_writer *w, const struct rules_dispatch *profile)
{
	jw_kobject(w, "dispatch");
	jw_kstr_opt(w, "agent", profile->agent);
	jw_kstr_opt(w, "model", profile->model);
	jw_kstr_opt(w, "effort", profile->effort);
	jw_object_end(w);
}

void dispatch_write(struct json_writer *w, struct call *call, const struct schema *schema, enum role role)
{
	const struct rules_phase_dispatch *phase;

	if (role < ROLE_QUEUE || role > ROLE_REVIEW || !schema->dispatch[role].is_set)
		return;
	phase = &schema->dispatch[role];
	for (size_t i = 0; i < phase->seat_count && call->caller->seat.run_n != 0; i++)
		if (str_eq(phase->seats[i].seat, call->caller->seat.seat)) {
			write_profile(w, &phase->seats[i].profile);
			return;
		}
	write_profile(w, &phase->profile);
}

/* What the new phase asks for. */
static void write_next_phase(struct unit *unit, const struct move *move, struct json_writer *out)
{
	const struct schema *schema = &move->schema;
	const struct rules_note **unfilled =
		ARENA_ARRAY(unit->tx->snapshot.arena, const struct rules_note *, schema->note_count + 1);
	size_t n = notes_unfilled(schema, &move->rows, move->target, unfilled);
	struct note_progress progress;

	note_progress(schema, &move->rows, move->target, &progress);
	if (n > 0) {
		jw_karray(out, "expectedNotes");
		for (size_t i = 0; i < n; i++)
			jw_str(out, unfilled[i]->key);
		jw_array_end(out);
	}
	notes_write_guidance(out, &progress);
	dispatch_write(out, unit->call, schema, move->target);
	notes_write_by_seat(out, schema, unfilled, n);
	notes_write_violations(out, &move->notes, false);
	if (progress.total > 0)
		notes_write_progress(out, &progress);
}

static int write_answer(struct unit *unit, const struct move *move, const struct applied *applied,
	struct json_writer *out, struct failure *f)
{
	jw_id(out, unit->call, "itemId", move->item->id);
	jw_ktext(out, "previousRole", role_name(applied->from));
	jw_ktext(out, "newRole", role_name(applied->to));
	jw_kstr_opt(out, "statusLabel", applied->label);
	jw_kint(out, "version", applied->version);
	unit_write_cascades(unit, out);
	if (unblocked_write(out, &unit->tx->snapshot, unit->call, &unit->unblocked, f) != 0)
		return -1;
	write_next_phase(unit, move, out);
	if (applied->credentials.p != NULL)
		jw_kraw(out, "consumedCredentials", applied->credentials);
	return 0;
}

int advance_transition(struct tx *tx, struct call *call, const struct transition_args *in,
	struct json_writer *out, struct failure *f)
{
	struct ask ask = {.word = in->trigger.v,
		.has_gen = in->claim_gen.set,
		.claim_gen = in->claim_gen.v,
		.has_role = in->expected_role.set,
		.expected_role = (enum role)in->expected_role.v};
	struct manner manner = {
		.summary = in->summary.v, .credentials = in->credentials.v, .credential_count = in->credentials.n};
	struct applied applied;
	struct move move;
	struct item item;
	struct unit unit;

	if (item_find_to_move(&tx->snapshot, call, in->item.v, STR("itemId"), &item, f) != 0 ||
		item_writable(&tx->snapshot, call, &item, f) != 0 ||
		item_expect(&item, in->expected_version.set, in->expected_version.v, f) != 0 ||
		check_rules(&tx->snapshot, call, &item, &in->assert_config, f) != 0)
		return -1;
	unit_init(&unit, tx, call);
	if (unit_transition(&unit, &item, &ask, &manner, &move, &applied, f) != 0) {
		keep_refusal(tx, call, &item, ask.word, f);
		return -1;
	}
	if (warn_active_children(&unit, &move, f) != 0)
		return -1;
	return write_answer(&unit, &move, &applied, out, f);
}
