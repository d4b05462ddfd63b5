/* Transitions behind their gates. */
#include "engine.h"

static const char rules[] =
	"work_item_schemas:\n"
	"  feature-task:\n"
	"    notes:\n"
	"      - {key: requirements, role: queue, required: true, description: What, guidance: List it., skill: spec}\n"
	"      - {key: implementation-notes, role: work, required: true, description: How}\n";

struct world {
	struct engine *e;
	int64_t root, task;
};

static struct world harbour(void **state)
{
	struct world w = {.e = *state};

	w.root = make_item(w.e, 0, "Harbour");
	push_rules(w.e, w.root, rules);
	w.task = make_item_as(
		w.e, w.root, "Booking API", (struct traits){.type = "feature-task", .priority = PRIORITY_MEDIUM});
	return w;
}

static void fill(struct world *w, const char *key, enum role role)
{
	make_note(w->e, LOCAL, w->task, key, role, "Something.");
}

/* behaviour 3.1 */
static void a_refused_trigger_lists_the_allowed_ones(void **state)
{
	struct world w = harbour(state);
	json_t *answer = move(w.e, LOCAL, w.root, "reopen");

	assert_refused(answer, "invalid_transition");
	assert_string_equal(text_at(answer, "error.detail.fromRole"), "queue");
	assert_string_equal(text_at(answer, "error.detail.allowed.0"), "start");
	assert_int_equal(json_array_size(at(answer, "error.detail.allowed")), 5);
	answer = move(w.e, LOCAL, w.root, "sideways");
	assert_refused(answer, "invalid_transition");
	assert_string_equal(text_at(answer, "error.detail.trigger"), "sideways");
	assert_ok(move(w.e, LOCAL, w.root, "START"));
}

/* behaviour 3.2 */
static void start_needs_the_notes_of_its_phase(void **state)
{
	struct world w = harbour(state);
	json_t *answer = move(w.e, LOCAL, w.task, "start");

	assert_refused(answer, "gate_blocked");
	assert_string_equal(text_at(answer, "error.detail.missing.0.key"), "requirements");
	assert_int_equal(json_array_size(at(answer, "error.detail.missing")), 1);
	assert_non_null(strstr(text_at(answer, "error.message"), "is missing 1 required note. Refused: start (queue → work)."));
	assert_string_equal(state_of(w.e, w.task), "queue ");
	assert_int_equal(events_of(w.e, w.task, EVENT_TRANSITION_REJECTED), 1);
	assert_int_equal(events_of(w.e, w.task, EVENT_ITEM_TRANSITIONED), 0);
}

/* behaviour 3.3 */
static void a_blank_note_is_not_filled(void **state)
{
	struct world w = harbour(state);

	make_note(w.e, LOCAL, w.task, "requirements", ROLE_QUEUE, "  \n");
	assert_refused(move(w.e, LOCAL, w.task, "start"), "gate_blocked");
}

/* behaviour 3.4 */
static void start_looks_at_the_current_phase_only(void **state)
{
	struct world w = harbour(state);
	json_t *answer;

	fill(&w, "requirements", ROLE_QUEUE);
	answer = move(w.e, LOCAL, w.task, "start");
	assert_ok(answer);
	assert_string_equal(text_at(answer, "newRole"), "work");
	assert_string_equal(text_at(answer, "statusLabel"), "in-progress");
	assert_string_equal(text_at(answer, "expectedNotes.0"), "implementation-notes");
	assert_int_equal(int_at(answer, "version"), 2);
	assert_int_equal(int_at(answer, "noteProgress.remaining"), 1);
}

/* behaviour 3.5 */
static void complete_looks_at_all_phases(void **state)
{
	struct world w = harbour(state);
	json_t *answer;

	fill(&w, "requirements", ROLE_QUEUE);
	answer = move(w.e, LOCAL, w.task, "complete");
	assert_refused(answer, "gate_blocked");
	assert_string_equal(text_at(answer, "error.detail.missing.0.key"), "implementation-notes");
}

/* behaviour 3.6 */
static void without_review_start_from_work_completes(void **state)
{
	struct world w = harbour(state);

	fill(&w, "requirements", ROLE_QUEUE);
	fill(&w, "implementation-notes", ROLE_WORK);
	assert_ok(move(w.e, LOCAL, w.task, "start"));
	assert_ok(move(w.e, LOCAL, w.task, "start"));
	assert_string_equal(state_of(w.e, w.task), "terminal done");
}

/* behaviour 3.7 */
static void an_optional_review_note_makes_the_phase(void **state)
{
	struct world w = harbour(state);
	int64_t item;

	push_rules(w.e, w.root, "work_item_schemas:\n  t:\n    notes:\n      - {key: r, role: review, required: false, description: d}\n");
	item = make_item_as(w.e, w.root, "x", (struct traits){.type = "t", .role = ROLE_WORK});
	assert_ok(move(w.e, LOCAL, item, "start"));
	assert_string_equal(state_of(w.e, item), "review in-progress");
}

/* behaviour 3.8 */
static void cancel_ignores_notes_and_blockers(void **state)
{
	struct world w = harbour(state);
	int64_t other = make_item(w.e, w.root, "other");

	make_dep(w.e, other, w.task, ROLE_TERMINAL);
	assert_ok(move(w.e, LOCAL, w.task, "cancel"));
	assert_string_equal(state_of(w.e, w.task), "terminal cancelled");
}

/* behaviour 3.9 */
static void gates_answer_in_their_order(void **state)
{
	struct world w = harbour(state);
	int64_t other = make_item(w.e, w.root, "other");

	make_dep(w.e, other, w.task, ROLE_TERMINAL);
	assert_ok(claim(w.e, P2, w.task, 60));
	assert_refused(move(w.e, P1, w.task, "start"), "not_claim_holder");
	assert_ok(run_op(w.e, P2, "release", "{'itemId':'%s'}", id_of(w.e, w.task)));
	assert_refused(move(w.e, P1, w.task, "start"), "dependency_unmet");
	assert_ok(move(w.e, P1, other, "complete"));
	assert_refused(move(w.e, P1, w.task, "start"), "gate_blocked");
}

/* behaviour 3.10 */
static void resume_gives_back_the_role_and_the_label(void **state)
{
	struct world w = harbour(state);
	int64_t item = make_item(w.e, w.root, "x");

	assert_ok(move(w.e, LOCAL, item, "start"));
	assert_ok(move(w.e, LOCAL, item, "block"));
	assert_string_equal(state_of(w.e, item), "blocked blocked");
	assert_ok(move(w.e, LOCAL, item, "resume"));
	assert_string_equal(state_of(w.e, item), "work in-progress");
	assert_ok(move(w.e, LOCAL, item, "hold"));
	assert_string_equal(state_of(w.e, item), "blocked in-progress");
}

/* behaviour 3.11 */
static void resume_waits_for_blockers(void **state)
{
	struct world w = harbour(state);
	int64_t a = make_item(w.e, w.root, "A");
	int64_t b = make_item(w.e, w.root, "B");
	json_t *answer;

	assert_ok(move(w.e, LOCAL, b, "start"));
	make_dep(w.e, a, b, ROLE_TERMINAL);
	assert_ok(move(w.e, LOCAL, b, "block"));
	answer = move(w.e, LOCAL, b, "resume");
	assert_refused(answer, "dependency_unmet");
	assert_string_equal(text_at(answer, "error.detail.blockers.0.id"), id_of(w.e, a));
	assert_string_equal(state_of(w.e, b), "blocked blocked");
	assert_ok(move(w.e, LOCAL, a, "complete"));
	assert_ok(move(w.e, LOCAL, b, "resume"));
}

/* behaviour 3.12 */
static void blocking_twice_is_refused(void **state)
{
	struct world w = harbour(state);
	json_t *answer;

	assert_ok(move(w.e, LOCAL, w.root, "block"));
	answer = move(w.e, LOCAL, w.root, "block");
	assert_refused(answer, "invalid_transition");
	assert_string_equal(text_at(answer, "error.detail.allowed.0"), "resume");
	assert_string_equal(text_at(answer, "error.detail.allowed.1"), "cancel");
}

/* behaviour 3.13 */
static void reopen_clears_label_and_claim_and_keeps_notes(void **state)
{
	struct world w = harbour(state);
	int64_t item = make_item(w.e, w.root, "x");

	make_note(w.e, P1, item, "anything", ROLE_QUEUE, "text");
	assert_ok(claim(w.e, P1, item, 60));
	assert_ok(move(w.e, P1, item, "complete"));
	assert_int_equal(load(w.e, item).claim_by, 0);
	assert_ok(move(w.e, P2, item, "reopen"));
	assert_string_equal(state_of(w.e, item), "queue ");
	assert_int_equal(count(w.e, "SELECT count(*) FROM note"), 1);
}

/* behaviour 3.14 */
static void a_threshold_lets_pass_what_got_far_enough(void **state)
{
	struct world w = harbour(state);
	int64_t a = make_item_as(w.e, w.root, "A", (struct traits){.role = ROLE_WORK});
	int64_t b = make_item(w.e, w.root, "B");
	int64_t c = make_item_as(w.e, w.root, "C", (struct traits){.role = ROLE_REVIEW});
	int64_t d = make_item(w.e, w.root, "D");

	make_dep(w.e, a, b, ROLE_REVIEW);
	make_dep(w.e, c, d, ROLE_REVIEW);
	assert_refused(move(w.e, LOCAL, b, "start"), "dependency_unmet");
	assert_ok(move(w.e, LOCAL, d, "start"));
}

/* behaviour 3.15 */
static void a_blocked_blocker_satisfies_nothing(void **state)
{
	struct world w = harbour(state);
	int64_t a = make_item_as(w.e, w.root, "A", (struct traits){.role = ROLE_BLOCKED});
	int64_t b = make_item(w.e, w.root, "B");
	json_t *answer;

	make_dep(w.e, a, b, ROLE_QUEUE);
	answer = move(w.e, LOCAL, b, "start");
	assert_refused(answer, "dependency_unmet");
	assert_string_equal(text_at(answer, "error.detail.blockers.0.id"), id_of(w.e, a));
	assert_string_equal(text_at(answer, "error.detail.blockers.0.role"), "blocked");
}

/* behaviour 3.16 */
static void a_cancelled_blocker_unblocks(void **state)
{
	struct world w = harbour(state);
	int64_t a = make_item(w.e, w.root, "A");
	int64_t b = make_item(w.e, w.root, "B");
	json_t *answer;

	make_dep(w.e, a, b, ROLE_TERMINAL);
	answer = move(w.e, LOCAL, a, "cancel");
	assert_ok(answer);
	assert_string_equal(text_at(answer, "unblockedItems.0.itemId"), id_of(w.e, b));
	assert_ok(move(w.e, LOCAL, b, "start"));
}

/* behaviour 3.17 */
static void a_relation_never_gates(void **state)
{
	struct world w = harbour(state);
	int64_t a = make_item(w.e, w.root, "A");
	int64_t b = make_item(w.e, w.root, "B");

	make_relation(w.e, a, b);
	assert_ok(move(w.e, LOCAL, b, "start"));
}

/* behaviour 3.18 */
static void without_rules_items_go_queue_work_terminal(void **state)
{
	struct engine *e = *state;
	int64_t item = make_item(e, 0, "x");

	assert_string_equal(text_at(move(e, LOCAL, item, "start"), "newRole"), "work");
	assert_string_equal(text_at(move(e, LOCAL, item, "start"), "newRole"), "terminal");
	assert_refused(move(e, LOCAL, item, "start"), "invalid_transition");
}

/* behaviour 3.20 */
static void the_version_is_compared_before_any_gate(void **state)
{
	struct world w = harbour(state);

	assert_refused(run_op(w.e, LOCAL, "transition", "{'itemId':'%s','trigger':'start','expectedVersion':9}",
			       id_of(w.e, w.task)),
		"version_conflict");
	assert_refused(run_op(w.e, LOCAL, "transition", "{'itemId':'%s','trigger':'start','expectedRole':'work'}",
			       id_of(w.e, w.task)),
		"invalid_transition");
	assert_refused(run_op(w.e, LOCAL, "transition", "{'itemId':'%s','trigger':'start','assertConfig':99}",
			       id_of(w.e, w.task)),
		"schema_pinned_conflict");
}

/* behaviour 3.21 */
static void a_trait_adds_a_gate(void **state)
{
	struct engine *e = *state;
	int64_t root = make_item(e, 0, "r");
	int64_t item;

	push_rules(e, root,
		"work_item_schemas:\n  t:\n    notes:\n      - {key: a, role: queue, required: false, description: d}\n"
		"traits:\n  needs-a11y:\n    notes:\n      - {key: a11y, role: review, required: true, description: d}\n");
	item = make_item_as(e, root, "x",
		(struct traits){.type = "t", .traits = "[\"needs-a11y\"]", .role = ROLE_WORK});
	assert_string_equal(text_at(move(e, LOCAL, item, "start"), "newRole"), "review");
	assert_refused(move(e, LOCAL, item, "start"), "gate_blocked");
}

/* behaviour 3.22 */
static void a_trait_cannot_relax_the_schema(void **state)
{
	struct engine *e = *state;
	int64_t root = make_item(e, 0, "r");
	json_t *answer;
	int64_t item;

	push_rules(e, root,
		"work_item_schemas:\n  t:\n    notes:\n      - {key: requirements, role: queue, required: true, description: d}\n"
		"traits:\n  lax:\n    notes:\n      - {key: requirements, role: queue, required: false, description: d}\n");
	item = make_item_as(e, root, "x", (struct traits){.type = "t", .traits = "[\"lax\"]"});
	answer = move(e, LOCAL, item, "start");
	assert_refused(answer, "gate_blocked");
	assert_string_equal(text_at(answer, "error.detail.missing.0.key"), "requirements");
	assert_int_equal(json_array_size(at(answer, "error.detail.missing")), 1);
}

/* behaviour 3.23 */
static void the_preview_lists_everything_in_the_way(void **state)
{
	struct world w = harbour(state);
	int64_t other = make_item(w.e, w.root, "other");
	json_t *answer;

	make_dep(w.e, other, w.task, ROLE_TERMINAL);
	answer = run_op(w.e, LOCAL, "gate", "{'itemId':'%s'}", id_of(w.e, w.task));
	assert_ok(answer);
	assert_true(json_is_false(at(answer, "canAdvance")));
	assert_string_equal(text_at(answer, "blockedBy.0"), "dependency");
	assert_string_equal(text_at(answer, "blockedBy.1"), "note");
	assert_string_equal(text_at(answer, "targetRole"), "work");
	assert_string_equal(text_at(answer, "missing.0.key"), "requirements");
	assert_string_equal(text_at(answer, "guidanceKey"), "requirements");
	assert_string_equal(text_at(answer, "skillPointer"), "spec");
	assert_string_equal(text_at(answer, "schema.type"), "feature-task");
	assert_int_equal(int_at(answer, "noteProgress.total"), 1);
	assert_null(at(answer, "missingBySeat"));
	assert_null(at(answer, "violations"));
}

/* behaviour 3.24 */
static void the_preview_does_not_mind_a_claim(void **state)
{
	struct world w = harbour(state);
	json_t *answer;

	fill(&w, "requirements", ROLE_QUEUE);
	assert_ok(claim(w.e, P2, w.task, 60));
	answer = run_op(w.e, P1, "gate", "{'itemId':'%s'}", id_of(w.e, w.task));
	assert_true(json_is_true(at(answer, "canAdvance")));
	assert_string_equal(text_at(answer, "claim.state"), "claimed");
	assert_int_equal(json_object_size(at(answer, "claim")), 1);
	answer = run_op(w.e, LOCAL, "gate", "{'itemId':'%s'}", id_of(w.e, w.task));
	assert_string_equal(text_at(answer, "claim.claimedBy"), "api:p2");
}

/* ---- independence ---- */

static const char seats[] =
	"work_item_schemas:\n"
	"  t:\n"
	"    notes:\n"
	"      - {key: built, role: work, required: true, description: d, seat: implementer}\n"
	"      - {key: verdict, role: review, required: true, description: d, seat: reviewer, independent_of: [implementer]}\n"
	"    seats:\n"
	"      - {name: implementer, phase: work}\n"
	"      - {name: reviewer, phase: review}\n";

static int64_t reviewed(struct engine *e, const char *mode)
{
	int64_t root = make_item(e, 0, "r");

	push_rules(e, root, arena_printf(e->arena, "%sindependence: {mode: %s}\n", seats, mode));
	return make_item_as(e, root, "x", (struct traits){.type = "t", .role = ROLE_REVIEW});
}

/* behaviour 3.25 */
static void one_author_for_two_seats_is_reported(void **state)
{
	struct engine *e = *state;
	int64_t item = reviewed(e, "warn");
	json_t *answer;

	make_note(e, P1, item, "built", ROLE_WORK, "done");
	make_note(e, P1, item, "verdict", ROLE_REVIEW, "good");
	answer = move(e, P1, item, "start");
	assert_ok(answer);
	assert_string_equal(text_at(answer, "violations.0.constraint"), "same_actor");
	assert_string_equal(text_at(answer, "violations.0.key"), "verdict");
	assert_string_equal(text_at(answer, "violations.0.seat"), "reviewer");
	assert_string_equal(text_at(answer, "violations.0.conflictingSeat"), "implementer");
	assert_null(at(answer, "violations.0.waived"));
}

/* behaviour 3.26 */
static void reject_blocks_unless_a_later_note_waives(void **state)
{
	struct engine *e = *state;
	int64_t item = reviewed(e, "reject");
	json_t *answer;

	make_note(e, P1, item, "built", ROLE_WORK, "done");
	e->now += 1000;
	make_note(e, P1, item, "verdict", ROLE_REVIEW, "good");
	answer = move(e, P1, item, "start");
	assert_refused(answer, "gate_blocked");
	assert_int_equal(json_array_size(at(answer, "error.detail.missing")), 0);
	assert_int_equal(json_array_size(at(answer, "error.detail.violations")), 1);
	make_note(e, P1, item, "verdict", ROLE_REVIEW, "independence: temporal-only\ngood");
	answer = move(e, P1, item, "start");
	assert_ok(answer);
	assert_true(json_is_true(at(answer, "violations.0.waived")));
}

/* behaviour 3.27 */
static void writing_again_under_another_name_launders_nothing(void **state)
{
	struct engine *e = *state;
	int64_t item = reviewed(e, "reject");

	make_note(e, P1, item, "built", ROLE_WORK, "done");
	make_note(e, P2, item, "built", ROLE_WORK, "done again");
	make_note(e, P1, item, "verdict", ROLE_REVIEW, "good");
	assert_refused(move(e, P1, item, "start"), "gate_blocked");
}

static void different_authors_pass_and_the_preview_says_it_looked(void **state)
{
	struct engine *e = *state;
	int64_t item = reviewed(e, "reject");
	json_t *answer;

	make_note(e, P1, item, "built", ROLE_WORK, "done");
	answer = run_op(e, P1, "gate", "{'itemId':'%s'}", id_of(e, item));
	assert_string_equal(text_at(answer, "missingBySeat.reviewer.0"), "verdict");
	make_note(e, P2, item, "verdict", ROLE_REVIEW, "good");
	answer = run_op(e, P1, "gate", "{'itemId':'%s'}", id_of(e, item));
	assert_true(json_is_array(at(answer, "violations")));
	assert_true(json_is_true(at(answer, "canAdvance")));
	assert_ok(move(e, P1, item, "start"));
}

static void active_children_are_warned_about(void **state)
{
	struct world w = harbour(state);
	json_t *answer = move(w.e, LOCAL, w.root, "cancel");

	assert_ok(answer);
	assert_string_equal(text_at(answer, "warnings.0.code"), "active_children");
	assert_string_equal(state_of(w.e, w.task), "queue ");
}

static void history_tells_trigger_roles_labels_and_summary(void **state)
{
	struct world w = harbour(state);

	assert_ok(run_op(w.e, P1, "transition", "{'itemId':'%s','trigger':'start','summary':'now'}", id_of(w.e, w.root)));
	assert_int_equal(count(w.e,
				 "SELECT count(*) FROM event WHERE type = 5 AND data = '{\"trigger\":\"start\",\"from\":"
				 "\"queue\",\"to\":\"work\",\"toLabel\":\"in-progress\",\"origin\":\"user\",\"summary\":\"now\"}'"),
		1);
}

static void configured_labels_win_and_null_clears(void **state)
{
	struct engine *e = *state;
	int64_t root = make_item(e, 0, "r");

	push_rules(e, root, "status_labels: {start: going, complete: null, block: null}\n");
	assert_ok(move(e, LOCAL, root, "start"));
	assert_string_equal(state_of(e, root), "work going");
	assert_ok(move(e, LOCAL, root, "block"));
	assert_string_equal(state_of(e, root), "blocked going");
	assert_ok(move(e, LOCAL, root, "resume"));
	assert_ok(move(e, LOCAL, root, "start"));
	assert_string_equal(state_of(e, root), "terminal ");
}

#define T(name) cmocka_unit_test_setup_teardown(name, engine_up, engine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_refused_trigger_lists_the_allowed_ones),
		T(start_needs_the_notes_of_its_phase),
		T(a_blank_note_is_not_filled),
		T(start_looks_at_the_current_phase_only),
		T(complete_looks_at_all_phases),
		T(without_review_start_from_work_completes),
		T(an_optional_review_note_makes_the_phase),
		T(cancel_ignores_notes_and_blockers),
		T(gates_answer_in_their_order),
		T(resume_gives_back_the_role_and_the_label),
		T(resume_waits_for_blockers),
		T(blocking_twice_is_refused),
		T(reopen_clears_label_and_claim_and_keeps_notes),
		T(a_threshold_lets_pass_what_got_far_enough),
		T(a_blocked_blocker_satisfies_nothing),
		T(a_cancelled_blocker_unblocks),
		T(a_relation_never_gates),
		T(without_rules_items_go_queue_work_terminal),
		T(the_version_is_compared_before_any_gate),
		T(a_trait_adds_a_gate),
		T(a_trait_cannot_relax_the_schema),
		T(the_preview_lists_everything_in_the_way),
		T(the_preview_does_not_mind_a_claim),
		T(one_author_for_two_seats_is_reported),
		T(reject_blocks_unless_a_later_note_waives),
		T(writing_again_under_another_name_launders_nothing),
		T(different_authors_pass_and_the_preview_says_it_looked),
		T(active_children_are_warned_about),
		T(history_tells_trigger_roles_labels_and_summary),
		T(configured_labels_win_and_null_clears),
	};

	return cmocka_run_group_tests_name("work transition", tests, NULL, NULL);
}
