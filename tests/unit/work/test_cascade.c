/* Cascades: what a move does to the items above. */
#include "engine.h"

struct family {
	struct engine *e;
	int64_t top, f, a, b; /* top > f > a, b */
};

static struct family family(void **state, enum role f_role, const char *type)
{
	struct family x = {.e = *state};

	x.top = make_item_as(x.e, 0, "top", (struct traits){.role = ROLE_WORK});
	x.f = make_item_as(x.e, x.top, "F", (struct traits){.role = f_role, .type = type});
	x.a = make_item(x.e, x.f, "A");
	x.b = make_item(x.e, x.f, "B");
	return x;
}

static const char gated[] =
	"work_item_schemas:\n  gated:\n    notes:\n      - {key: why, role: queue, required: true, description: d}\n"
	"  manual:\n    lifecycle: manual\n    notes: []\n"
	"  permanent:\n    lifecycle: permanent\n    notes: []\n";

/* behaviours 4.1, 4.2 */
static void the_last_child_completes_all_above(void **state)
{
	struct family x = family(state, ROLE_WORK, NULL);
	json_t *answer;

	assert_ok(move(x.e, LOCAL, x.a, "complete"));
	answer = move(x.e, LOCAL, x.b, "complete");
	assert_ok(answer);
	assert_string_equal(text_at(answer, "cascadeEvents.0.itemId"), id_of(x.e, x.f));
	assert_string_equal(text_at(answer, "cascadeEvents.0.from"), "work");
	assert_string_equal(text_at(answer, "cascadeEvents.0.to"), "terminal");
	assert_string_equal(text_at(answer, "cascadeEvents.0.trigger"), "complete");
	assert_true(json_is_true(at(answer, "cascadeEvents.0.applied")));
	assert_string_equal(text_at(answer, "cascadeEvents.0.statusLabel"), "done");
	assert_int_equal(json_array_size(at(answer, "cascadeEvents")), 2);
	assert_string_equal(state_of(x.e, x.f), "terminal done");
	assert_string_equal(state_of(x.e, x.top), "terminal done");
	assert_int_equal(count(x.e, "SELECT count(*) FROM event WHERE type = 5 AND data LIKE '%\"origin\":\"cascade\"%'"), 2);
}

/* behaviour 4.3 */
static void an_open_sibling_keeps_the_parent_silent(void **state)
{
	struct family x = family(state, ROLE_WORK, NULL);
	json_t *answer = move(x.e, LOCAL, x.b, "complete");

	assert_ok(answer);
	assert_null(at(answer, "cascadeEvents"));
	assert_string_equal(state_of(x.e, x.f), "work ");
}

/* behaviours 4.4, 4.5 */
static void a_parent_in_review_or_blocked_stays(void **state)
{
	static const enum role roles[] = {ROLE_REVIEW, ROLE_BLOCKED};

	for (size_t i = 0; i < 2; i++) {
		struct family x = family(state, roles[i], NULL);
		json_t *answer;

		assert_ok(move(x.e, LOCAL, x.a, "complete"));
		answer = move(x.e, LOCAL, x.b, "complete");
		assert_true(json_is_false(at(answer, "cascadeEvents.0.applied")));
		assert_true(json_is_true(at(answer, "cascadeEvents.0.roleBlocked")));
		assert_int_equal(load(x.e, x.f).role, roles[i]);
	}
}

/* behaviours 4.6, 4.7 */
static void the_gate_of_the_parent_holds_it_unless_the_child_was_cancelled(void **state)
{
	struct family x = family(state, ROLE_WORK, "gated");
	json_t *answer;

	push_rules(x.e, x.top, gated);
	assert_ok(move(x.e, LOCAL, x.a, "complete"));
	answer = move(x.e, LOCAL, x.b, "complete");
	assert_ok(answer);
	assert_true(json_is_true(at(answer, "cascadeEvents.0.gateBlocked")));
	assert_string_equal(text_at(answer, "cascadeEvents.0.missingNotes.0.key"), "why");
	assert_string_equal(state_of(x.e, x.b), "terminal done");
	assert_string_equal(state_of(x.e, x.f), "work ");
	x = family(state, ROLE_WORK, "gated");
	push_rules(x.e, x.top, gated);
	assert_ok(move(x.e, LOCAL, x.a, "cancel"));
	assert_ok(move(x.e, LOCAL, x.b, "cancel"));
	assert_string_equal(state_of(x.e, x.f), "terminal done");
}

/* behaviour 4.8 */
static void a_cancelled_child_does_not_excuse_a_blocker(void **state)
{
	struct family x = family(state, ROLE_WORK, NULL);
	int64_t blocker = make_item(x.e, x.top, "blocker");
	json_t *answer;

	make_dep(x.e, blocker, x.f, ROLE_TERMINAL);
	assert_ok(move(x.e, LOCAL, x.a, "cancel"));
	answer = move(x.e, LOCAL, x.b, "cancel");
	assert_true(json_is_true(at(answer, "cascadeEvents.0.dependencyBlocked")));
	assert_string_equal(text_at(answer, "cascadeEvents.0.blockers.0.id"), id_of(x.e, blocker));
	assert_true(json_is_false(at(answer, "cascadeEvents.0.applied")));
	assert_string_equal(state_of(x.e, x.f), "work ");
}

/* behaviour 4.9 */
static void manual_and_permanent_parents_are_left_alone(void **state)
{
	static const char *const types[] = {"manual", "permanent"};

	for (size_t i = 0; i < 2; i++) {
		struct family x = family(state, ROLE_WORK, types[i]);
		json_t *answer;

		push_rules(x.e, x.top, gated);
		assert_ok(move(x.e, LOCAL, x.a, "complete"));
		answer = move(x.e, LOCAL, x.b, "complete");
		assert_null(at(answer, "cascadeEvents"));
		assert_string_equal(state_of(x.e, x.f), "work ");
	}
}

static void a_permanent_container_closes_when_asked_with_a_warning(void **state)
{
	struct family x = family(state, ROLE_WORK, "permanent");
	json_t *answer;

	push_rules(x.e, x.top, gated);
	answer = move(x.e, LOCAL, x.f, "complete");
	assert_ok(answer);
	assert_string_equal(text_at(answer, "warnings.1.code"), "permanent_closed");
}

/* behaviour 4.10 */
static void starting_a_child_starts_all_above(void **state)
{
	struct engine *e = *state;
	int64_t top = make_item(e, 0, "top");
	int64_t f = make_item(e, top, "F");
	int64_t a = make_item(e, f, "A");
	json_t *answer = move(e, LOCAL, a, "start");

	assert_string_equal(text_at(answer, "cascadeEvents.0.trigger"), "start");
	assert_string_equal(state_of(e, f), "work in-progress");
	assert_string_equal(state_of(e, top), "work in-progress");
}

/* behaviour 4.11 */
static void a_gated_parent_does_not_keep_the_child_from_starting(void **state)
{
	struct family x = family(state, ROLE_QUEUE, "gated");
	json_t *answer;

	push_rules(x.e, x.top, gated);
	answer = move(x.e, LOCAL, x.a, "start");
	assert_ok(answer);
	assert_true(json_is_true(at(answer, "cascadeEvents.0.gateBlocked")));
	assert_string_equal(state_of(x.e, x.a), "work in-progress");
	assert_string_equal(state_of(x.e, x.f), "queue ");
}

/* behaviour 4.12 */
static void reopening_a_child_reopens_its_parent_only(void **state)
{
	struct family x = family(state, ROLE_WORK, NULL);
	json_t *answer;

	assert_ok(move(x.e, LOCAL, x.a, "complete"));
	assert_ok(move(x.e, LOCAL, x.b, "complete"));
	answer = move(x.e, LOCAL, x.a, "reopen");
	assert_ok(answer);
	assert_string_equal(text_at(answer, "cascadeEvents.0.trigger"), "reopen");
	assert_string_equal(state_of(x.e, x.a), "queue ");
	assert_string_equal(state_of(x.e, x.f), "work ");
	assert_string_equal(state_of(x.e, x.top), "terminal done");
}

/* behaviour 4.13, and what the former holder is told */
static void a_cascade_takes_the_claim_of_the_parent_and_says_so(void **state)
{
	struct family x = family(state, ROLE_WORK, NULL);
	json_t *answer;

	assert_ok(claim(x.e, P2, x.f, 600));
	assert_ok(move(x.e, P1, x.a, "complete"));
	assert_ok(move(x.e, P1, x.b, "complete"));
	assert_string_equal(state_of(x.e, x.f), "terminal done");
	assert_int_equal(count(x.e,
				 "SELECT count(*) FROM event WHERE type = 12 AND data = '{\"reason\":\"cleared\","
				 "\"cause\":\"cascade\",\"holder\":\"api:p2\",\"claimGen\":1}'"),
		1);
	answer = run_op(x.e, P2, "transition", "{'itemId':'%s','trigger':'start','claimGen':1}", id_of(x.e, x.f));
	assert_refused(answer, "not_claim_holder");
	assert_string_equal(text_at(answer, "error.detail.ended.cause"), "cascade");
	assert_non_null(strstr(text_at(answer, "error.message"), "cascade"));
	answer = run_op(x.e, P2, "heartbeat", "{'itemId':'%s','claimGen':1}", id_of(x.e, x.f));
	assert_string_equal(text_at(answer, "error.detail.ended.cause"), "cascade");
	/* somebody else is told nothing */
	answer = run_op(x.e, P1, "heartbeat", "{'itemId':'%s','claimGen':1}", id_of(x.e, x.f));
	assert_refused(answer, "not_claim_holder");
	assert_null(at(answer, "error.detail.ended"));
}

static void what_a_cascade_unblocks_is_listed(void **state)
{
	struct family x = family(state, ROLE_WORK, NULL);
	int64_t waiting = make_item(x.e, 0, "waiting");
	json_t *answer;

	make_dep(x.e, x.f, waiting, ROLE_TERMINAL);
	assert_ok(move(x.e, LOCAL, x.a, "complete"));
	answer = move(x.e, LOCAL, x.b, "complete");
	assert_string_equal(text_at(answer, "unblockedItems.0.itemId"), id_of(x.e, waiting));
	assert_int_equal(json_array_size(at(answer, "unblockedItems")), 1);
}

static void a_pin_on_rules_that_are_gone_is_a_conflict(void **state)
{
	struct family x = family(state, ROLE_WORK, NULL);
	json_t *answer;

	push_rules(x.e, x.top, gated);
	x.e->callers[P1].seat = (struct seat_scope){
		.run_n = 1, .root_n = x.top, .seat = STR("s"), .pinned_version = 77};
	answer = move(x.e, P1, x.a, "complete");
	assert_refused(answer, "schema_pinned_conflict");
	assert_int_equal(int_at(answer, "error.detail.pinnedVersion"), 77);
}

struct structural {
	struct call call;
	int64_t parent;
	struct buf text;
	int (*run)(struct tx *, struct call *, int64_t, struct json_writer *, struct failure *);
};

static int run_structural(struct tx *tx, void *arg, struct failure *f)
{
	struct structural *x = arg;
	struct json_writer w;

	json_writer_init(&w, &x->text);
	return x->run(tx, &x->call, x->parent, &w, f);
}

static void structural(struct engine *e, int64_t parent,
	int (*run)(struct tx *, struct call *, int64_t, struct json_writer *, struct failure *), struct str expected)
{
	struct structural x = {.parent = parent, .run = run};
	struct failure f;

	call_init(&x.call, e->arena, &e->callers[LOCAL], e->rules);
	buf_init(&x.text, e->arena, SIZE_MAX);
	assert_int_equal(in_tx(e, LOCAL, run_structural, &x, &f), 0);
	assert_true(str_starts(buf_str(&x.text), expected));
	if (expected.n == 0)
		assert_int_equal(x.text.n, 0);
	call_finish(&x.call);
}

/* the engine's part of behaviours 4.14, 4.15, 4.16 */
static void structural_operations_have_their_cascades(void **state)
{
	struct family x = family(state, ROLE_WORK, NULL);

	structural(x.e, x.f, cascade_after_structure, STR(""));
	structural(x.e, 0, cascade_after_structure, STR(""));
	assert_ok(move(x.e, LOCAL, x.a, "complete"));
	assert_ok(move(x.e, LOCAL, x.b, "complete"));
	structural(x.e, x.f, cascade_reopen_parent, STR("\"cascadeEvents\":[{"));
	assert_string_equal(state_of(x.e, x.f), "work ");
	structural(x.e, x.f, cascade_after_structure, STR("\"cascadeEvents\":[{"));
	assert_string_equal(state_of(x.e, x.f), "terminal done");
}

SQL(SQL_HIDE_RULES, "ALTER TABLE config RENAME TO hidden");

static int hide_rules(struct tx *tx, void *arg, struct failure *f)
{
	(void)arg;
	return tx_run(tx, f, SQL_HIDE_RULES, "") < 0 ? -1 : 0;
}

/* behaviour 3.19 */
static void rules_that_cannot_be_read_are_not_no_gates(void **state)
{
	struct engine *e = *state;
	int64_t item = make_item(e, 0, "x");
	struct failure f;
	json_t *answer;

	assert_int_equal(in_tx(e, LOCAL, hide_rules, NULL, &f), 0);
	answer = move(e, LOCAL, item, "start");
	assert_refused(answer, "unavailable");
	assert_true(int_at(answer, "error.detail.retryAfterMs") > 0);
	assert_string_equal(state_of(e, item), "queue ");
}

static void a_cascade_without_rules_is_skipped_with_a_warning(void **state)
{
	struct family x = family(state, ROLE_WORK, NULL);
	struct structural run = {.parent = x.f, .run = cascade_after_structure};
	struct failure f;

	assert_ok(move(x.e, LOCAL, x.a, "complete"));
	assert_ok(move(x.e, LOCAL, x.b, "complete"));
	structural(x.e, x.f, cascade_reopen_parent, STR("\"cascadeEvents\":[{"));
	assert_int_equal(in_tx(x.e, LOCAL, hide_rules, NULL, &f), 0);
	call_init(&run.call, x.e->arena, &x.e->callers[LOCAL], x.e->rules);
	buf_init(&run.text, x.e->arena, SIZE_MAX);
	assert_int_equal(in_tx(x.e, LOCAL, run_structural, &run, &f), 0);
	assert_string_equal(run.call.warnings.first->code, "cascade_skipped");
	assert_int_equal(run.text.n, 0);
	assert_string_equal(state_of(x.e, x.f), "work ");
	call_finish(&run.call);
}

/* ---- behaviour 4.24: a fault while the cascade is written undoes the child too ---- */

SQL(SQL_BREAK, "CREATE TEMP TRIGGER no_cascade BEFORE UPDATE OF role ON item WHEN new.depth = 1 BEGIN"
	" SELECT RAISE(ABORT, 'injected'); END");

static int break_cascades(struct tx *tx, void *arg, struct failure *f)
{
	(void)arg;
	return tx_run(tx, f, SQL_BREAK, "") < 0 ? -1 : 0;
}

static void a_fault_in_the_cascade_undoes_the_child(void **state)
{
	struct family x = family(state, ROLE_WORK, NULL);
	struct failure f;

	assert_ok(move(x.e, LOCAL, x.a, "complete"));
	assert_int_equal(in_tx(x.e, LOCAL, break_cascades, NULL, &f), 0);
	assert_refused(move(x.e, LOCAL, x.b, "complete"), "internal");
	assert_string_equal(state_of(x.e, x.b), "queue ");
	assert_int_equal(events_of(x.e, x.b, EVENT_ITEM_TRANSITIONED), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, engine_up, engine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_last_child_completes_all_above),
		T(an_open_sibling_keeps_the_parent_silent),
		T(a_parent_in_review_or_blocked_stays),
		T(the_gate_of_the_parent_holds_it_unless_the_child_was_cancelled),
		T(a_cancelled_child_does_not_excuse_a_blocker),
		T(manual_and_permanent_parents_are_left_alone),
		T(a_permanent_container_closes_when_asked_with_a_warning),
		T(starting_a_child_starts_all_above),
		T(a_gated_parent_does_not_keep_the_child_from_starting),
		T(reopening_a_child_reopens_its_parent_only),
		T(a_cascade_takes_the_claim_of_the_parent_and_says_so),
		T(what_a_cascade_unblocks_is_listed),
		T(a_pin_on_rules_that_are_gone_is_a_conflict),
		T(rules_that_cannot_be_read_are_not_no_gates),
		T(a_cascade_without_rules_is_skipped_with_a_warning),
		T(structural_operations_have_their_cascades),
		T(a_fault_in_the_cascade_undoes_the_child),
	};

	return cmocka_run_group_tests_name("work cascade", tests, NULL, NULL);
}
