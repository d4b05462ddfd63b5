/* The gate pipeline of a user's trigger; cascades use the single gates. */
#include "work/gate.h"

#include "work/claim.h"

int move_load(struct snapshot *s, struct call *call, const struct item *item, enum trigger trigger,
	enum cascade cascade, struct move *out, struct failure *f)
{
	*out = (struct move){.item = item, .trigger = trigger, .cascade = cascade};
	if (item_schema(s, call, item, &out->schema, f) != 0)
		return -1;
	return note_rows_load(s, item, &out->schema, &out->rows, f);
}

/* ---- TABLE ---- */

int fail_transition(struct failure *f, const struct item *item, struct str trigger, struct str allowed)
{
	(void)fail(f, FAIL_INVALID_TRANSITION, "Item %.*s is in %s: %.*s is not possible there.",
		STRF(id_str(f->arena, item->id)), role_name(item->role), STRF(trigger));
	fail_detail_str(f, "itemId", id_str(f->arena, item->id));
	fail_detail_str(f, "fromRole", str_of(role_name(item->role)));
	fail_detail_str(f, "trigger", trigger);
	fail_detail_raw(f, "allowed", allowed);
	return -1;
}

static int refuse_table(struct failure *f, const struct item *item, struct str word)
{
	return fail_transition(f, item, word, table_allowed(f->arena, item->role, item->prev_role));
}

/* ---- DEPENDENCY ---- */

int gate_dependency(struct snapshot *s, struct call *call, struct move *move, struct failure *f)
{
	bool applies = move->target == ROLE_WORK || move->target == ROLE_REVIEW || move->target == ROLE_TERMINAL;

	if (!applies || move->trigger == TRIGGER_CANCEL)
		return 1;
	if (dependency_gate(s, call, move->item->n, &move->blockers, f) != 0)
		return -1;
	return move->blockers.n == 0;
}

/* "Refused: start (queue → work)." names which of several moves it was: people fill the wrong phase otherwise. */
static struct str refused(struct failure *f, const struct move *move)
{
	return str_printf(f->arena, "Refused: %s (%s → %s).", trigger_name(move->trigger),
		role_name(move->item->role), role_name(move->target));
}

/* Members written by `w` become the value of a detail. */
static struct str array_of(struct buf *text, const char *key)
{
	struct str all = buf_str(text);
	size_t skip = strlen(key) + 3; /* "key": */

	return (struct str){all.p + skip, all.n - skip};
}

static int refuse_dependency(struct failure *f, struct call *call, const struct move *move)
{
	struct json_writer w;
	struct buf text;

	(void)fail(f, FAIL_DEPENDENCY_UNMET, "Item %.*s waits for %zu other item%s. %.*s",
		STRF(id_str(f->arena, move->item->id)), move->blockers.n, plural((int64_t)move->blockers.n),
		STRF(refused(f, move)));
	fail_detail_str(f, "itemId", id_str(f->arena, move->item->id));
	buf_init(&text, f->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	blockers_write(&w, call, &move->blockers);
	fail_detail_raw(f, "blockers", array_of(&text, "blockers"));
	return -1;
}

/* ---- NOTE ---- */

static enum note_scope note_scope(const struct move *move)
{
	if (move->trigger == TRIGGER_START || move->cascade == CASCADE_START)
		return NOTES_OF_ROLE;
	if (move->trigger == TRIGGER_COMPLETE || (move->cascade == CASCADE_COMPLETE && !move->is_cancel_origin))
		return NOTES_OF_ALL;
	return NOTES_NONE;
}

int gate_note(struct snapshot *s, struct call *call, struct move *move, struct failure *f)
{
	if (note_gate(s, call, move->item, &move->schema, &move->rows, note_scope(move), &move->notes, f) != 0)
		return -1;
	return !move->notes.is_refused;
}

static int refuse_note(struct failure *f, const struct move *move)
{
	const struct note_findings *notes = &move->notes;
	struct str id = id_str(f->arena, move->item->id);
	struct json_writer w;
	struct buf text;

	if (notes->missing_count > 0)
		(void)fail(f, FAIL_GATE_BLOCKED, "Item %.*s is missing %zu required note%s. %.*s", STRF(id),
			notes->missing_count, plural((int64_t)notes->missing_count), STRF(refused(f, move)));
	else
		(void)fail(f, FAIL_GATE_BLOCKED, "Notes of item %.*s need independent authors. %.*s", STRF(id),
			STRF(refused(f, move)));
	fail_detail_str(f, "itemId", id);
	fail_detail_str(f, "role", str_of(role_name(move->item->role)));
	buf_init(&text, f->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	notes_write_missing(&w, "missing", notes->missing, notes->missing_count);
	fail_detail_raw(f, "missing", array_of(&text, "missing"));
	if (notes->violation_count > 0) {
		buf_init(&text, f->arena, SIZE_MAX);
		json_writer_init(&w, &text);
		notes_write_violations(&w, notes, false);
		fail_detail_raw(f, "violations", array_of(&text, "violations"));
	}
	return -1;
}

/* ---- LEASE ---- */

int gate_lease(struct snapshot *s, struct call *call, struct move *move, struct failure *f)
{
	(void)call;
	if (move->target != ROLE_WORK)
		return 1;
	if (lease_contention(s, move->item, &move->schema, &move->contention, f) != 0)
		return -1;
	return move->contention.n == 0;
}

static int refuse_lease(struct failure *f, const struct move *move)
{
	struct json_writer w;
	struct buf text;

	(void)fail(f, FAIL_RESOURCE_UNAVAILABLE, "Item %.*s needs a resource that is in use. %.*s",
		STRF(id_str(f->arena, move->item->id)), STRF(refused(f, move)));
	fail_detail_str(f, "itemId", id_str(f->arena, move->item->id));
	buf_init(&text, f->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	contention_write(&w, &move->contention);
	fail_detail_raw(f, "resources", array_of(&text, "resources"));
	f->retry_after_ms = move->contention.retry_after_ms;
	return -1;
}

/* ---- SEAT ---- */

static size_t seats_where(const struct schema *schema, enum role phase, bool entering, struct arena *arena,
	const struct str **out)
{
	struct str *names = ARENA_ARRAY(arena, struct str, schema->seat_count + 1);
	size_t n = 0;

	for (size_t i = 0; i < schema->seat_count; i++)
		if (schema->seats[i].phase == phase && (!entering || schema->seats[i].enters))
			names[n++] = schema->seats[i].name;
	*out = names;
	return n;
}

static bool skips_phase(const struct move *move)
{
	return move->item->role == ROLE_QUEUE || (move->item->role == ROLE_WORK && move->schema.has_review);
}

/* Which seats a move is reserved for; none listed: every seat of the run. */
static void seat_rule(struct call *call, const struct move *move, struct seat_verdict *out)
{
	enum role phase = move->item->role == ROLE_BLOCKED ? move->item->prev_role : move->item->role;
	bool enters = move->trigger == TRIGGER_START || move->trigger == TRIGGER_RESUME;

	*out = (struct seat_verdict){0};
	if (enters && move->target != ROLE_TERMINAL) {
		out->action = str_printf(call->arena, "enter:%s", role_name(move->target));
		out->allowed_count =
			seats_where(&move->schema, move->target, true, call->arena, &out->allowed);
	} else if (move->trigger == TRIGGER_CANCEL || (move->trigger == TRIGGER_COMPLETE && skips_phase(move))) {
		out->action = str_printf(call->arena, "%s:%s", trigger_name(move->trigger), role_name(phase));
		out->allowed_count = seats_where(&move->schema, phase, false, call->arena, &out->allowed);
	}
}

int gate_seat(struct call *call, const struct move *move, struct seat_verdict *out)
{
	*out = (struct seat_verdict){0};
	if (call->caller->seat.run_n == 0)
		return 1;
	seat_rule(call, move, out);
	for (size_t i = 0; i < out->allowed_count; i++)
		if (str_eq(out->allowed[i], call->caller->seat.seat))
			return 1;
	return out->allowed_count == 0;
}

static int refuse_seat(struct failure *f, struct call *call, const struct move *move,
	const struct seat_verdict *verdict)
{
	struct json_writer w;
	struct buf text;

	(void)fail(f, FAIL_SEAT_FORBIDDEN, "Seat %.*s may not do this. %.*s", STRF(call->caller->seat.seat),
		STRF(refused(f, move)));
	fail_detail_str(f, "itemId", id_str(f->arena, move->item->id));
	fail_detail_str(f, "seat", call->caller->seat.seat);
	fail_detail_str(f, "action", verdict->action);
	buf_init(&text, f->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	for (size_t i = 0; i < verdict->allowed_count; i++)
		jw_str(&w, verdict->allowed[i]);
	jw_array_end(&w);
	fail_detail_raw(f, "allowedSeats", buf_str(&text));
	return -1;
}

/* ---- the pipeline ---- */

int gates_user(struct snapshot *s, struct call *call, const struct item *item, const struct ask *ask,
	struct move *out, struct failure *f)
{
	struct seat_verdict verdict;
	enum trigger trigger;
	int rc;

	if (claim_allows(s, call, item, f) != 0 ||
		(ask->has_gen && claim_expect_gen(s, call, item, ask->claim_gen, f) != 0))
		return -1;
	if (ask->has_role && ask->expected_role != item->role) {
		(void)refuse_table(f, item, ask->word);
		f->message = str_printf(f->arena, "Item %.*s: expected role %s, it is %s.",
			STRF(id_str(f->arena, item->id)), role_name(ask->expected_role),
			role_name(item->role));
		return -1;
	}
	if (!trigger_parse(ask->word, &trigger))
		return refuse_table(f, item, ask->word);
	if (move_load(s, call, item, trigger, CASCADE_NONE, out, f) != 0)
		return -1;
	if (!table_target(item->role, trigger, out->schema.has_review, item->prev_role, &out->target))
		return refuse_table(f, item, ask->word);
	rc = gate_dependency(s, call, out, f);
	if (rc != 1)
		return rc < 0 ? -1 : refuse_dependency(f, call, out);
	rc = gate_note(s, call, out, f);
	if (rc != 1)
		return rc < 0 ? -1 : refuse_note(f, out);
	rc = gate_lease(s, call, out, f);
	if (rc != 1)
		return rc < 0 ? -1 : refuse_lease(f, out);
	return gate_seat(call, out, &verdict) ? 0 : refuse_seat(f, call, out, &verdict);
}
