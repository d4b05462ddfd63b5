/* complete_tree. */
#include "engine.h"

static const char rules[] =
	"work_item_schemas:\n  gated:\n    notes:\n      - {key: why, role: queue, required: true, description: d}\n";

struct feature {
	struct engine *e;
	int64_t top, f, screens, api, tides;
};

static struct feature feature(void **state, const char *tides_type)
{
	struct feature x = {.e = *state};

	x.top = make_item_as(x.e, 0, "Harbour", (struct traits){.role = ROLE_WORK});
	push_rules(x.e, x.top, rules);
	x.f = make_item_as(x.e, x.top, "Berth booking", (struct traits){.role = ROLE_WORK});
	x.screens = make_item(x.e, x.f, "Booking screens");
	x.api = make_item(x.e, x.f, "Booking API");
	x.tides = make_item_as(
		x.e, x.f, "Tide table import", (struct traits){.type = tides_type, .priority = PRIORITY_MEDIUM});
	make_dep(x.e, x.tides, x.api, ROLE_TERMINAL);
	make_dep(x.e, x.api, x.screens, ROLE_TERMINAL);
	return x;
}

static json_t *complete(struct feature *x, const char *more)
{
	return run_op(x->e, LOCAL, "complete_tree", "{'itemId':'%s'%s}", id_of(x->e, x->f), more);
}

/* behaviour 4.21 */
static void blockers_come_first_and_parents_last(void **state)
{
	struct feature x = feature(state, NULL);
	json_t *answer = complete(&x, "");

	assert_ok(answer);
	assert_string_equal(text_at(answer, "items.0.title"), "Tide table import");
	assert_string_equal(text_at(answer, "items.1.title"), "Booking API");
	assert_string_equal(text_at(answer, "items.2.title"), "Booking screens");
	assert_string_equal(text_at(answer, "items.3.title"), "Berth booking");
	assert_string_equal(text_at(answer, "items.3.outcome"), "applied");
	assert_string_equal(text_at(answer, "items.3.previousRole"), "work");
	assert_string_equal(text_at(answer, "items.3.cascadeEvents.0.title"), "Harbour");
	assert_int_equal(int_at(answer, "counts.total"), 4);
	assert_int_equal(int_at(answer, "counts.completed"), 4);
}

/* behaviour 4.21 */
static void what_waits_for_a_refused_member_is_skipped(void **state)
{
	struct feature x = feature(state, "gated");
	json_t *answer = complete(&x, ",'includeRoot':false");

	assert_string_equal(text_at(answer, "items.0.outcome"), "failed");
	assert_string_equal(text_at(answer, "items.0.error.code"), "gate_blocked");
	assert_string_equal(text_at(answer, "items.1.outcome"), "skipped");
	assert_string_equal(text_at(answer, "items.1.reason"), "dependency_failed");
	assert_string_equal(text_at(answer, "items.2.reason"), "dependency_failed");
	assert_int_equal(int_at(answer, "counts.gateFailures"), 1);
	assert_int_equal(int_at(answer, "counts.skipped"), 2);
	assert_int_equal(int_at(answer, "counts.completed"), 0);
	assert_int_equal(events_of(x.e, x.tides, EVENT_TRANSITION_REJECTED), 1);
	assert_string_equal(state_of(x.e, x.api), "queue ");
}

static void what_stands_above_a_refused_member_stays_open(void **state)
{
	struct feature x = feature(state, "gated");
	json_t *answer = complete(&x, "");

	assert_string_equal(text_at(answer, "items.0.outcome"), "failed");
	assert_string_equal(text_at(answer, "items.3.title"), "Berth booking");
	assert_string_equal(text_at(answer, "items.3.outcome"), "skipped");
	assert_string_equal(text_at(answer, "items.3.reason"), "dependency_failed");
	assert_int_equal(int_at(answer, "counts.skipped"), 3);
	assert_int_equal(int_at(answer, "counts.completed"), 0);
	assert_string_not_equal(state_of(x.e, x.top), "terminal done");
}

static void what_stands_above_a_blocked_member_stays_open(void **state)
{
	struct feature x = feature(state, NULL);
	json_t *answer;

	assert_ok(move(x.e, LOCAL, x.screens, "block"));
	answer = complete(&x, "");
	assert_string_equal(text_at(answer, "items.2.error.code"), "invalid_transition");
	assert_string_equal(text_at(answer, "items.3.outcome"), "skipped");
	assert_int_equal(int_at(answer, "counts.completed"), 2);
}

static void what_the_table_refuses_skips_nobody(void **state)
{
	struct feature x = feature(state, NULL);
	json_t *answer;

	assert_ok(move(x.e, LOCAL, x.tides, "block"));
	answer = complete(&x, ",'includeRoot':false");
	assert_string_equal(text_at(answer, "items.0.error.code"), "invalid_transition");
	assert_string_equal(text_at(answer, "items.1.outcome"), "failed");
	assert_string_equal(text_at(answer, "items.1.error.code"), "dependency_unmet");
	assert_string_equal(text_at(answer, "items.2.reason"), "dependency_failed");
}

/* behaviour 4.22 */
static void a_blocker_outside_the_set_is_a_gate_failure(void **state)
{
	struct feature x = feature(state, NULL);
	json_t *answer = run_op(x.e, LOCAL, "complete_tree", "{'itemIds':['%s']}", id_of(x.e, x.api));

	assert_string_equal(text_at(answer, "items.0.error.code"), "dependency_unmet");
	assert_int_equal(int_at(answer, "counts.gateFailures"), 1);
}

/* behaviour 4.23 */
static void a_cancelled_tree_has_a_cancelled_root(void **state)
{
	struct feature x = feature(state, "gated");
	json_t *answer = complete(&x, ",'trigger':'cancel','summary':'Scope dropped'");

	assert_ok(answer);
	assert_string_equal(state_of(x.e, x.f), "terminal cancelled");
	assert_string_equal(text_at(answer, "items.3.statusLabel"), "cancelled");
	assert_int_equal(int_at(answer, "counts.completed"), 4);
	assert_null(at(answer, "warnings"));
	assert_int_equal(count(x.e, "SELECT count(*) FROM event WHERE data LIKE '%Scope dropped%'"), 4);
}

static void what_has_ended_is_skipped_without_consequence(void **state)
{
	struct feature x = feature(state, NULL);
	json_t *answer;

	assert_ok(move(x.e, LOCAL, x.tides, "complete"));
	answer = complete(&x, "");
	assert_string_equal(text_at(answer, "items.0.reason"), "already_terminal");
	assert_int_equal(int_at(answer, "counts.completed"), 3);
	assert_int_equal(int_at(answer, "counts.skipped"), 1);
}

static void ownership_is_not_bypassed(void **state)
{
	struct feature x = feature(state, NULL);
	json_t *answer;

	assert_ok(claim(x.e, P2, x.tides, 60));
	answer = run_op(x.e, P1, "complete_tree", "{'itemId':'%s','trigger':'cancel'}", id_of(x.e, x.f));
	assert_string_equal(text_at(answer, "items.0.error.code"), "not_claim_holder");
	assert_string_equal(text_at(answer, "items.1.reason"), "dependency_failed");
}

static void an_atomic_tree_is_all_or_nothing(void **state)
{
	struct feature x = feature(state, NULL);

	assert_ok(move(x.e, LOCAL, x.api, "block"));
	assert_refused(run_atomic(x.e, LOCAL, "complete_tree", "{'itemId':'%s'}", id_of(x.e, x.f)),
		"invalid_transition");
	assert_string_equal(state_of(x.e, x.tides), "queue ");
	assert_int_equal(events_of(x.e, x.tides, EVENT_ITEM_TRANSITIONED), 0);
}

static void members_of_a_cycle_come_last_and_the_set_is_bounded(void **state)
{
	struct feature x = feature(state, NULL);
	json_t *answer;

	/* the feature blocks its own child, which must come before it */
	make_dep(x.e, x.f, x.tides, ROLE_TERMINAL);
	answer = complete(&x, ",'trigger':'cancel'");
	assert_ok(answer);
	assert_int_equal(int_at(answer, "counts.completed"), 4);
	assert_string_equal(text_at(answer, "items.0.title"), "Berth booking");
	for (int i = 0; i < LIMIT_COMPLETE_ITEMS; i++)
		make_item(x.e, x.top, "x");
	answer = run_op(x.e, LOCAL, "complete_tree", "{'itemId':'%s'}", id_of(x.e, x.top));
	assert_refused(answer, "payload_too_large");
	assert_int_equal(int_at(answer, "error.detail.max"), LIMIT_COMPLETE_ITEMS);
	assert_refused(run_op(x.e, LOCAL, "complete_tree", "{'trigger':'cancel'}"), "invalid_request");
}

#define T(name) cmocka_unit_test_setup_teardown(name, engine_up, engine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(blockers_come_first_and_parents_last),
		T(what_waits_for_a_refused_member_is_skipped),
		T(what_stands_above_a_refused_member_stays_open),
		T(what_stands_above_a_blocked_member_stays_open),
		T(what_the_table_refuses_skips_nobody),
		T(a_blocker_outside_the_set_is_a_gate_failure),
		T(a_cancelled_tree_has_a_cancelled_root),
		T(what_has_ended_is_skipped_without_consequence),
		T(ownership_is_not_bypassed),
		T(an_atomic_tree_is_all_or_nothing),
		T(members_of_a_cycle_come_last_and_the_set_is_bounded),
	};

	return cmocka_run_group_tests_name("work complete_tree", tests, NULL, NULL);
}
