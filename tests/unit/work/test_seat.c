/* Seats of a run: what a caller with a seat token may move. */
#include "engine.h"

static const char rules[] =
	"work_item_schemas:\n"
	"  t:\n"
	"    notes:\n"
	"      - {key: n, role: review, required: false, description: d}\n"
	"    seats:\n"
	"      - {name: planner, phase: queue}\n"
	"      - {name: implementer, phase: work, enters: true}\n"
	"      - {name: reviewer, phase: review, enters: true}\n";

struct run {
	struct engine *e;
	int64_t root, item;
};

static struct run run(void **state)
{
	struct run r = {.e = *state};

	r.root = make_item_as(r.e, 0, "root", (struct traits){.role = ROLE_WORK});
	push_rules(r.e, r.root, rules);
	r.item = make_item_as(r.e, r.root, "x", (struct traits){.type = "t"});
	return r;
}

static void sit(struct run *r, enum who who, const char *seat, int64_t scope)
{
	r->e->callers[who].actor.kind = PRINCIPAL_SEAT;
	r->e->callers[who].seat =
		(struct seat_scope){.run_n = 1, .root_n = r->root, .scope_n = scope, .seat = str_of(seat)};
}

/* behaviour 6.21 */
static void only_the_entering_seat_starts_a_phase(void **state)
{
	struct run r = run(state);
	json_t *answer;

	sit(&r, P1, "reviewer", 0);
	sit(&r, P2, "implementer", 0);
	answer = move(r.e, P1, r.item, "start");
	assert_refused(answer, "seat_forbidden");
	assert_string_equal(text_at(answer, "error.detail.seat"), "reviewer");
	assert_string_equal(text_at(answer, "error.detail.action"), "enter:work");
	assert_string_equal(text_at(answer, "error.detail.allowedSeats.0"), "implementer");
	answer = run_op(r.e, P1, "gate", "{'itemId':'%s'}", id_of(r.e, r.item));
	assert_string_equal(text_at(answer, "blockedBy.0"), "seat");
	assert_ok(move(r.e, P2, r.item, "start"));
	assert_refused(move(r.e, P2, r.item, "start"), "seat_forbidden");
	assert_ok(move(r.e, P1, r.item, "start"));
}

static void callers_without_a_seat_are_not_held_to_seats(void **state)
{
	struct run r = run(state);

	assert_ok(move(r.e, P1, r.item, "start"));
}

static void any_seat_blocks_but_only_seats_of_the_phase_cancel(void **state)
{
	struct run r = run(state);
	json_t *answer;

	sit(&r, P1, "reviewer", 0);
	sit(&r, P2, "planner", 0);
	assert_ok(move(r.e, P1, r.item, "block"));
	answer = move(r.e, P1, r.item, "cancel");
	assert_refused(answer, "seat_forbidden");
	assert_string_equal(text_at(answer, "error.detail.action"), "cancel:queue");
	assert_ok(move(r.e, P1, r.item, "resume"));
	answer = move(r.e, P1, r.item, "complete");
	assert_refused(answer, "seat_forbidden");
	assert_string_equal(text_at(answer, "error.detail.action"), "complete:queue");
	assert_ok(move(r.e, P2, r.item, "cancel"));
	assert_ok(move(r.e, P1, r.item, "reopen"));
}

static void a_seat_stays_inside_its_run(void **state)
{
	struct run r = run(state);
	int64_t other = make_item(r.e, r.root, "other");
	json_t *answer;

	sit(&r, P1, "implementer", r.item);
	assert_refused(move(r.e, P1, other, "start"), "forbidden");
	assert_refused(claim(r.e, P1, other, 60), "forbidden");
	answer = run_op(r.e, P1, "claim", "{'selector':{}}");
	assert_string_equal(text_at(answer, "itemId"), id_of(r.e, r.item));
	assert_ok(move(r.e, P1, r.item, "start"));
}

static int end_all(struct tx *tx, void *arg, struct failure *f)
{
	int64_t n;

	if (principal_find(&tx->snapshot, STR("api:p1"), &n, f) != 0)
		return -1;
	return claim_end_all(tx, n, "released", "run_closed", arg, f);
}

/* the engine's part of behaviour 6.24: the claims of a closed run's seats end, and the holder is told why */
static void closing_a_run_ends_claims_with_the_cause(void **state)
{
	struct run r = run(state);
	int64_t ended = 0;
	struct failure f;
	json_t *answer;

	assert_ok(claim(r.e, P1, r.item, 60));
	assert_int_equal(in_tx(r.e, LOCAL, end_all, &ended, &f), 0);
	assert_int_equal(ended, 1);
	answer = run_op(r.e, P1, "heartbeat", "{'itemId':'%s','claimGen':1}", id_of(r.e, r.item));
	assert_refused(answer, "not_claim_holder");
	assert_string_equal(text_at(answer, "error.detail.ended.cause"), "run_closed");
}

#define T(name) cmocka_unit_test_setup_teardown(name, engine_up, engine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(only_the_entering_seat_starts_a_phase),
		T(callers_without_a_seat_are_not_held_to_seats),
		T(any_seat_blocks_but_only_seats_of_the_phase_cancel),
		T(a_seat_stays_inside_its_run),
		T(closing_a_run_ends_claims_with_the_cause),
	};

	return cmocka_run_group_tests_name("work seat", tests, NULL, NULL);
}
