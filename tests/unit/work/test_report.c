/* Runs, seats, reports, the board. */
#include "toolbox.h"

#include <stdio.h>

#define RULES \
	"work_item_schemas:\n" \
	"  feature-task:\n" \
	"    seats:\n" \
	"      - { name: implementer, phase: work, enters: true }\n" \
	"      - { name: test-author, phase: work }\n" \
	"      - { name: reviewer, phase: review, reads_exclude: [implementation-notes] }\n" \
	"    notes:\n" \
	"      - { key: implementation-notes, role: work, required: true, seat: implementer }\n" \
	"      - { key: tests, role: work, required: false, seat: test-author }\n" \
	"      - { key: verdict, role: review, required: false }\n"

static const char *open_run(struct box *box, const char *rest)
{
	return text_at(result_of(ask(box, &tool_report,
			       "{'ops':[{'op':'open_run','rootId':'%s','title':'Wave 3'%s}]}", id_of(box->e, box->root),
			       rest)),
		"runId");
}

/* The caller of a fresh seat; *seat_id may be NULL. */
static struct caller issue(struct box *box, const char *run, const char *seat, const char **seat_id)
{
	struct caller caller;
	const json_t *result = result_of(
		ask(box, &tool_report, "{'ops':[{'op':'issue_seat','runId':'%s','seat':'%s'}]}", run, seat));

	assert_int_equal(seat_caller(box, text_at(result, "token"), &caller), 0);
	if (seat_id != NULL)
		*seat_id = text_at(result, "seatId");
	return caller;
}

static json_t *write_note(struct box *box, const struct caller *caller, int64_t item, const char *key)
{
	return ask_as(box, caller, &tool_notes_write, "{'ops':[{'op':'upsert','itemId':'%s','key':'%s','body':'x'}]}",
		id_of(box->e, item), key);
}

static void a_seat_token_is_shown_once_and_kept_as_a_digest(void **state)
{
	struct box *box = *state;
	const char *run = open_run(box, "");
	static const char op[] =
		"{'ops':[{'op':'issue_seat','runId':'%s','seat':'implementer','label':'one'}]%s,'idempotencyKey':'k%d'}";
	json_t *answer;

	for (int atomic = 0; atomic < 2; atomic++) {
		const char *token;
		struct caller caller;

		answer = ask(box, &tool_report, op, run, atomic ? ",'atomic':true" : "", atomic);
		token = text_at(result_of(answer), "token");
		assert_int_equal(strlen(token), 47);
		assert_memory_equal(token, "dst_", 4);
		assert_int_equal(seat_caller(box, token, &caller), 0);
		assert_string_equal(str_z(box->e->arena, caller.seat.seat), "implementer");
		answer = ask(box, &tool_report, op, run, atomic ? ",'atomic':true" : "", atomic);
		assert_true(json_is_true(at(answer, "replayed")));
		assert_true(json_is_null(at(result_of(answer), "token")));
		assert_true(json_is_true(at(result_of(answer), "tokenWithheld")));
	}
	assert_int_equal(count(box->e, "SELECT count(*) FROM idempotency WHERE result LIKE '%dst_%'"), 0);
	assert_int_equal(count(box->e, "SELECT count(*) FROM run_seat"), 2);
	/* and it is on record that it was given, without the token */
	assert_int_equal(count(box->e, "SELECT count(*) FROM event WHERE type = 28 AND data LIKE '%implementer%'"), 2);
	assert_int_equal(count(box->e, "SELECT count(*) FROM event WHERE data LIKE '%dst_%'"), 0);
	answer = ask(box, &tool_report, "{'ops':[{'op':'issue_seat','runId':'%s','seat':'nobody'}]}", run);
	assert_true(has_warning(answer, "seat_unknown"));
}

/* behaviour 6.21 */
static void only_the_entering_seat_starts(void **state)
{
	struct box *box = *state;
	static const char start[] = "{'ops':[{'op':'transition','itemId':'%s','trigger':'start'}]}";
	struct caller reviewer;
	json_t *answer;

	(void)push(box, box->root, RULES);
	reviewer = issue(box, open_run(box, ""), "reviewer", NULL);
	answer = ask_as(box, &reviewer, &tool_advance, start, id_of(box->e, box->a));
	assert_error(answer, "seat_forbidden");
	assert_string_equal(text_at(answer, "error.detail.action"), "enter:work");
	(void)result_of(ask(box, &tool_advance, start, id_of(box->e, box->a)));
}

/* behaviour 6.22 */
static void a_note_with_a_seat_is_for_that_seat(void **state)
{
	struct box *box = *state;
	struct caller implementer;
	json_t *answer;

	(void)push(box, box->root, RULES);
	implementer = issue(box, open_run(box, ""), "implementer", NULL);
	answer = write_note(box, &implementer, box->a, "tests");
	assert_error(answer, "note_owned_by_other");
	assert_string_equal(text_at(answer, "error.detail.ownerSeat"), "test-author");
	assert_string_equal(text_at(answer, "error.detail.key"), "tests");
	(void)result_of(write_note(box, &implementer, box->a, "implementation-notes"));
	(void)result_of(write_note(box, &implementer, box->a, "verdict")); /* owned by no seat */
	(void)result_of(write_note(box, &box->e->callers[LOCAL], box->a, "tests"));
	answer = ask_as(box, &implementer, &tool_notes_write, "{'ops':[{'op':'delete','itemId':'%s','key':'tests'}]}",
		id_of(box->e, box->a));
	assert_error(answer, "note_owned_by_other");
	answer = ask(box, &tool_notes_read, "{'select':'get','itemId':'%s','key':'verdict','fields':['actor']}",
		id_of(box->e, box->a));
	assert_string_equal(text_at(data_of(answer), "note.actor.kind"), "seat");
	assert_string_equal(text_at(data_of(answer), "note.actor.parent"), "local");
	assert_string_equal(text_at(data_of(answer), "note.actor.seat"), "implementer");
	assert_int_equal(strlen(text_at(data_of(answer), "note.actor.runId")), 36);
}

SQL(SQL_AGE_RUNS, "UPDATE run SET last_activity_at = 1");
SQL(SQL_ACTIVE_RUNS, "SELECT count(*) FROM run WHERE last_activity_at > 1");

static int age_runs(struct tx *tx, void *arg, struct failure *f)
{
	(void)arg;
	return tx_run(tx, f, SQL_AGE_RUNS, "") < 0 ? -1 : 0;
}

/* Whatever a seat does keeps its run from looking forgotten; what it is refused does not. */
static void a_run_is_active_while_its_seats_write(void **state)
{
	struct box *box = *state;
	static const char *const calls[] = {
		"'op':'claim'", "'op':'heartbeat'", "'op':'transition','trigger':'start'", "'op':'release'"};
	static const char op[] = "{'ops':[{%s,'itemId':'%s'}]}";
	const char *run = open_run(box, "");
	struct caller implementer = issue(box, run, "implementer", NULL);
	struct failure f;
	json_t *answer;

	failure_init(&f, box->e->arena);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		assert_int_equal(in_tx(box->e, LOCAL, age_runs, NULL, &f), 0);
		(void)result_of(ask_as(box, &implementer, &tool_advance, op, calls[i], id_of(box->e, box->a)));
		assert_int_equal(count(box->e, SQL_ACTIVE_RUNS), 1);
	}
	assert_int_equal(in_tx(box->e, LOCAL, age_runs, NULL, &f), 0);
	assert_error(ask_as(box, &implementer, &tool_advance, op, calls[1], id_of(box->e, box->a)),
		"not_claim_holder");
	(void)result_of(ask(box, &tool_advance, op, calls[0], id_of(box->e, box->a)));
	assert_int_equal(count(box->e, SQL_ACTIVE_RUNS), 0);
	answer = ask(box, &tool_items_read, "{'select':'history','itemId':'%s'}", id_of(box->e, box->a));
	assert_string_equal(text_at(data_of(answer), "entries.0.actor.runId"), run);
	assert_string_equal(text_at(data_of(answer), "entries.0.actor.seat"), "implementer");
	assert_string_equal(text_at(data_of(answer), "entries.0.verification.status"), "unchecked");
	assert_string_equal(text_at(data_of(answer), "entries.0.verification.verifier"), "noop");
}

/* behaviour 6.23 */
static void a_blind_seat_does_not_read(void **state)
{
	struct box *box = *state;
	struct caller reviewer;
	json_t *answer;

	(void)push(box, box->root, RULES);
	(void)result_of(write_note(box, &box->e->callers[LOCAL], box->a, "implementation-notes"));
	reviewer = issue(box, open_run(box, ""), "reviewer", NULL);
	answer = ask_as(box, &reviewer, &tool_notes_read,
		"{'select':'get','itemId':'%s','key':'implementation-notes'}", id_of(box->e, box->a));
	assert_error(answer, "seat_forbidden");
	assert_string_equal(text_at(answer, "error.detail.action"), "read:implementation-notes");
	answer = ask_as(box, &reviewer, &tool_notes_read,
		"{'select':'list','itemId':'%s','fields':['body','sha256']}", id_of(box->e, box->a));
	assert_string_equal(text_at(data_of(answer), "notes.0.key"), "implementation-notes");
	assert_null(at(data_of(answer), "notes.0.body"));
	assert_null(at(data_of(answer), "notes.0.sha256"));
}

/* behaviour 6.24 */
static void closing_a_run_ends_tokens_and_claims(void **state)
{
	struct box *box = *state;
	const char *run = open_run(box, ",'kind':'loop'");
	const json_t *result;
	const char *token;
	struct caller caller;
	json_t *answer;

	result = result_of(
		ask(box, &tool_report, "{'ops':[{'op':'issue_seat','runId':'%s','seat':'implementer'}]}", run));
	token = text_at(result, "token");
	assert_int_equal(seat_caller(box, token, &caller), 0);
	(void)result_of(ask_as(box, &caller, &tool_advance, "{'ops':[{'op':'claim','itemId':'%s'}]}",
		id_of(box->e, box->a)));
	(void)result_of(ask(box, &tool_advance, "{'ops':[{'op':'transition','itemId':'%s','trigger':'cancel'}]}",
		id_of(box->e, box->b)));
	result = result_of(ask(box, &tool_report,
		"{'ops':[{'op':'close_run','runId':'%s','outcome':'failed','summary':'late'}]}", run));
	assert_string_equal(text_at(result, "state"), "closed");
	assert_int_equal(int_at(result, "revokedSeats"), 1);
	assert_int_equal(int_at(result, "releasedClaims"), 1);
	assert_int_equal(int_at(result, "retrospective.itemsTerminal"), 1);
	assert_non_null(at(result, "retrospective.prompt"));
	assert_int_equal(load(box->e, box->a).claim_by, 0);
	assert_int_equal(seat_caller(box, token, &caller), -1);
	assert_error(ask(box, &tool_report, "{'ops':[{'op':'close_run','runId':'%s'}]}", run), "duplicate");
	assert_error(ask(box, &tool_report, "{'ops':[{'op':'post','runId':'%s','body':'x'}]}", run),
		"invalid_request");
	(void)result_of(
		ask(box, &tool_report, "{'ops':[{'op':'post','runId':'%s','kind':'retrospective','body':'x'}]}", run));
	answer = ask(box, &tool_report, "{'select':'run','runId':'%s'}", run);
	assert_string_equal(text_at(data_of(answer), "run.state"), "closed");
	assert_string_equal(text_at(data_of(answer), "run.outcome"), "failed");
	assert_string_equal(text_at(data_of(answer), "run.retrospective"), "x");
	answer = ask(box, &tool_report, "{'select':'board'}");
	assert_int_equal(json_array_size(at(data_of(answer), "runs")), 0);
}

static void revoking_a_seat_ends_it(void **state)
{
	struct box *box = *state;
	const char *run = open_run(box, "");
	const char *seat_id;
	struct caller caller = issue(box, run, "implementer", &seat_id);
	json_t *answer;

	(void)result_of(ask_as(box, &caller, &tool_advance, "{'ops':[{'op':'claim','itemId':'%s'}]}",
		id_of(box->e, box->a)));
	answer = ask(box, &tool_report, "{'ops':[{'op':'revoke_seat','seatId':'%s'}]}", seat_id);
	assert_true(json_is_true(at(result_of(answer), "revoked")));
	assert_int_equal(load(box->e, box->a).claim_by, 0);
	answer = ask(box, &tool_report, "{'select':'run','runId':'%s'}", run);
	assert_non_null(at(data_of(answer), "seats.0.revokedAt"));
}

static void a_seat_writes_inside_its_scope_only(void **state)
{
	struct box *box = *state;
	int64_t outside = make_item(box->e, box->root, "Outside");
	struct caller caller;
	json_t *answer;
	const char *run = open_run(box,
		arena_printf(box->e->arena, ",'scopeItemId':'%s'", id_of(box->e, box->feature)));

	caller = issue(box, run, "implementer", NULL);
	answer = ask_as(box, &caller, &tool_notes_write,
		"{'ops':[{'op':'upsert','itemId':'%s','key':'k','role':'queue','body':'x'}]}", id_of(box->e, outside));
	assert_error(answer, "forbidden");
	assert_string_equal(text_at(answer, "error.detail.scope"), "root");
	(void)result_of(ask_as(box, &caller, &tool_notes_write,
		"{'ops':[{'op':'upsert','itemId':'%s','key':'k','role':'queue','body':'x'}]}", id_of(box->e, box->a)));
	assert_error(ask(box, &tool_report,
			     "{'ops':[{'op':'open_run','rootId':'%s','title':'x','scopeItemId':'%s'}]}",
			     id_of(box->e, box->root), id_of(box->e, make_item(box->e, 0, "Other"))),
		"invalid_request");
}

/* Select run (own) and op post are all a seat may */
static void a_seat_reports_to_its_own_run(void **state)
{
	struct box *box = *state;
	const char *run = open_run(box, "");
	const char *other = open_run(box, "");
	struct caller caller = issue(box, run, "implementer", NULL);
	static const char post[] = "{'ops':[{'op':'post','runId':'%s','kind':'risk','body':'x'}]}";

	(void)result_of(ask_as(box, &caller, &tool_report, post, run));
	assert_error(ask_as(box, &caller, &tool_report, post, other), "forbidden");
	(void)data_of(ask_as(box, &caller, &tool_report, "{'select':'run','runId':'%s'}", run));
	assert_error(ask_as(box, &caller, &tool_report, "{'select':'run','runId':'%s'}", other), "forbidden");
	assert_error(ask_as(box, &caller, &tool_report, "{'select':'board'}"), "forbidden");
	assert_error(ask_as(box, &caller, &tool_report, "{'select':'decisions'}"), "forbidden");
	assert_error(ask_as(box, &caller, &tool_report, "{'select':'rollup','runId':'%s'}", run), "forbidden");
	assert_error(ask_as(box, &caller, &tool_report, "{'ops':[{'op':'close_run','runId':'%s'}]}", run),
		"forbidden");
}

static void decisions_wait_until_decided_once(void **state)
{
	struct box *box = *state;
	const char *run = open_run(box, "");
	const char *report = text_at(result_of(ask(box, &tool_report,
					     "{'ops':[{'op':'post','runId':'%s','kind':'decision','needsDecision':true,"
					     "'body':'Keep the old import?'}]}",
					     run)),
		"reportId");
	static const char decide[] = "{'ops':[{'op':'decide','reportId':'%s','decision':'Drop it.'}]}";
	json_t *answer = ask(box, &tool_report, "{'select':'decisions','rootId':'%s'}", id_of(box->e, box->root));

	assert_string_equal(text_at(data_of(answer), "decisions.0.body"), "Keep the old import?");
	assert_string_equal(text_at(data_of(answer), "decisions.0.runId"), run);
	(void)result_of(ask(box, &tool_report, decide, report));
	assert_error(ask(box, &tool_report, decide, report), "duplicate");
	answer = ask(box, &tool_report, "{'select':'decisions','runId':'%s'}", run);
	assert_int_equal(json_array_size(at(data_of(answer), "decisions")), 0);
	answer = ask(box, &tool_report, "{'select':'decisions','open':false}");
	assert_string_equal(text_at(data_of(answer), "decisions.0.decision"), "Drop it.");
}

static void the_board_shows_what_waits(void **state)
{
	struct box *box = *state;
	json_t *answer;
	const json_t *row;
	const char *run;

	(void)push(box, box->root, RULES);
	run = open_run(box, arena_printf(box->e->arena, ",'scopeItemId':'%s'", id_of(box->e, box->feature)));
	(void)issue(box, run, "implementer", NULL);
	(void)result_of(ask(box, &tool_advance, "{'ops':[{'op':'transition','itemId':'%s','trigger':'start'}]}",
		id_of(box->e, box->a)));
	(void)result_of(ask(box, &tool_report,
		"{'ops':[{'op':'post','runId':'%s','needsDecision':true,'body':'?'}]}", run));
	answer = ask(box, &tool_report, "{'select':'board','rootId':'%s'}", id_of(box->e, box->root));
	row = at(data_of(answer), "runs.0");
	assert_string_equal(text_at(row, "runId"), run);
	assert_string_equal(text_at(row, "scopeItemId"), id_of(box->e, box->feature));
	assert_int_equal(int_at(row, "seats"), 1);
	assert_int_equal(int_at(row, "childCounts.work"), 1);
	assert_int_equal(int_at(row, "childCounts.queue"), 1);
	assert_int_equal(int_at(row, "stalled"), 1);
	assert_int_equal(int_at(row, "openDecisions"), 1);
	(void)open_run(box, "");
	answer = ask(box, &tool_report, "{'select':'board','limit':1}");
	assert_int_equal(int_at(answer, "page.total"), 2);
	assert_string_equal(text_at(data_of(answer), "runs.0.runId"), run);
	answer = ask(box, &tool_report, "{'select':'board','limit':1,'cursor':'%s'}", text_at(answer, "page.nextCursor"));
	assert_string_not_equal(text_at(data_of(answer), "runs.0.runId"), run);
}

static void a_rollup_counts_the_log(void **state)
{
	struct box *box = *state;
	static const char move_to[] = "{'ops':[{'op':'transition','itemId':'%s','trigger':'%s'}]}";
	json_t *answer;
	const json_t *data;
	const char *run = open_run(box,
		arena_printf(box->e->arena, ",'scopeItemId':'%s'", id_of(box->e, box->feature)));
	int64_t outside = make_item(box->e, box->root, "Outside");

	(void)result_of(ask(box, &tool_advance, "{'ops':[{'op':'claim','itemId':'%s'}]}", id_of(box->e, box->a)));
	(void)result_of(ask(box, &tool_advance, move_to, id_of(box->e, box->a), "start"));
	(void)result_of(ask(box, &tool_advance, move_to, id_of(box->e, box->a), "complete"));
	(void)push(box, box->root, RULES);
	assert_error(ask(box, &tool_advance, move_to, id_of(box->e, box->b), "complete"), "gate_blocked");
	(void)result_of(ask(box, &tool_advance, move_to, id_of(box->e, box->b), "cancel"));
	(void)result_of(ask(box, &tool_advance, move_to, id_of(box->e, outside), "cancel"));
	data = data_of(ask(box, &tool_report, "{'select':'rollup','runId':'%s'}", run));
	assert_int_equal(int_at(data, "totals.terminal"), 2);
	assert_int_equal(int_at(data, "cancelled"), 1);
	assert_true(int_at(data, "completed") >= 1);
	assert_int_equal(int_at(data, "gateRefusals"), 1);
	assert_int_equal(int_at(data, "claims"), 1);
	assert_non_null(at(data, "medianWorkMs"));
	data = data_of(ask(box, &tool_report, "{'select':'rollup','rootId':'%s'}", id_of(box->e, box->root)));
	assert_int_equal(int_at(data, "cancelled"), 2);
	answer = ask(box, &tool_report, "{'select':'rollup','rootId':'%s','since':'2999-01-01T00:00:00Z'}",
		id_of(box->e, box->root));
	assert_int_equal(int_at(data_of(answer), "claims"), 0);
	assert_error(ask(box, &tool_report, "{'select':'rollup'}"), "invalid_request");
}

static void a_pinned_run_keeps_its_rules(void **state)
{
	struct box *box = *state;
	const char *run;
	struct caller caller;

	(void)push(box, box->root, RULES);
	run = text_at(result_of(ask(box, &tool_report,
			      "{'ops':[{'op':'open_run','rootId':'%s','title':'x','pinConfig':true}]}",
			      id_of(box->e, box->root))),
		"runId");
	caller = issue(box, run, "implementer", NULL);
	(void)push(box, box->root, "work_item_schemas:\n  feature-task:\n    notes: []\n");
	assert_error(write_note(box, &caller, box->a, "tests"), "note_owned_by_other");
	assert_error(write_note(box, &box->e->callers[LOCAL], box->a, "tests"), "invalid_request");
}

static void the_director_has_the_report_and_nothing_else_to_write(void **state)
{
	struct box *box = *state;
	struct caller director = box->e->callers[LOCAL];

	director.profile = PROFILE_DIRECTOR;
	(void)result_of(ask_as(box, &director, &tool_report, "{'ops':[{'op':'open_run','rootId':'%s','title':'x'}]}",
		id_of(box->e, box->root)));
	(void)data_of(ask_as(box, &director, &tool_deps_read, "{'select':'blocked'}"));
	assert_error(ask_as(box, &director, &tool_notes_write, "{'ops':[{'op':'delete','noteId':'00000000'}]}"),
		"forbidden");
	assert_error(ask_as(box, &director, &tool_notes_read, "{'select':'get','noteId':'00000000'}"), "forbidden");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, box_up, box_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_seat_token_is_shown_once_and_kept_as_a_digest),
		TEST(only_the_entering_seat_starts),
		TEST(a_note_with_a_seat_is_for_that_seat),
		TEST(a_run_is_active_while_its_seats_write),
		TEST(a_blind_seat_does_not_read),
		TEST(closing_a_run_ends_tokens_and_claims),
		TEST(revoking_a_seat_ends_it),
		TEST(a_seat_writes_inside_its_scope_only),
		TEST(a_seat_reports_to_its_own_run),
		TEST(decisions_wait_until_decided_once),
		TEST(the_board_shows_what_waits),
		TEST(a_rollup_counts_the_log),
		TEST(a_pinned_run_keeps_its_rules),
		TEST(the_director_has_the_report_and_nothing_else_to_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
