/* Runs of one thread: dispatch, order, places, steering, interrupts, and their end. */
#include "stage.h"

#define COUNT_RUNS "SELECT count(*) FROM thread_run WHERE thread_n = %lld AND status = %d"

static int64_t runs_in(struct stage *st, int64_t thread, enum run_status status)
{
	return count(st, COUNT_RUNS, (long long)thread, (int)status);
}

static void one_run_blocks_and_the_others_wait_with_dense_ordinals(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);

	for (int i = 0; i < 50; i++) {
		(void)say(st, thread, "go");
		assert_int_equal(runs_in(st, thread, RUN_STARTING), 1);
	}
	assert_int_equal(runs_in(st, thread, RUN_QUEUED), 49);
	for (int i = 1; i <= 50; i++) {
		int64_t run = blocking(st, thread);

		assert_int_equal(run_row(st, run).ordinal, i);
		work(st, run, "done");
		assert_run(st, run, RUN_COMPLETED);
	}
	assert_int_equal(blocking(st, thread), 0);
	assert_int_equal(count(st, "SELECT max(ordinal) FROM thread_run"), 50);
}

static void a_message_shows_in_the_timeline_when_its_run_begins(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t first = say(st, thread, "one");
	int64_t second = say(st, thread, "two");

	assert_string_equal(text(st, "SELECT body FROM turn_item WHERE run_n = %lld", (long long)first),
		"{\"inputIntent\":\"turn_start\"}");
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE run_n = %lld", (long long)second), 0);
	work(st, first, "done");
	assert_string_equal(text(st, "SELECT body FROM turn_item WHERE run_n = %lld", (long long)second),
		"{\"inputIntent\":\"queued_turn\"}");
}

static void a_message_id_is_sent_once(void **state)
{
	struct stage *st = *state;
	struct dispatch in = {.thread_n = make_thread(st), .message_id = STR("message:mine"), .text = STR("x")};
	struct dispatched out;

	assert_int_equal(try_dispatch(st, in, &out), 0);
	assert_int_equal(try_dispatch(st, in, &out), -1);
	assert_int_equal(count(st, "SELECT count(*) FROM thread_run"), 1);
}

static void archived_deleted_and_external_threads_take_no_message(void **state)
{
	struct stage *st = *state;
	int64_t archived = make_thread(st), deleted = make_thread(st);
	int64_t external = make_thread_as(st, (struct thread_row){.kind = THREAD_EXTERNAL});
	struct dispatched out;

	set_archived(st, archived);
	set_deleted(st, deleted);
	assert_int_equal(try_dispatch(st, (struct dispatch){.thread_n = archived, .text = STR("x")}, &out), -1);
	assert_int_equal(st->why.code, FAIL_THREAD_NOT_SENDABLE);
	assert_int_equal(try_dispatch(st, (struct dispatch){.thread_n = external, .text = STR("x")}, &out), -1);
	assert_int_equal(st->why.code, FAIL_THREAD_NOT_SENDABLE);
	assert_int_equal(try_dispatch(st, (struct dispatch){.thread_n = deleted, .text = STR("x")}, &out), -1);
	assert_int_equal(st->why.code, FAIL_THREAD_NOT_FOUND);
}

/* ---- places ---- */

static void runs_wait_for_a_place_and_get_it_when_one_is_free(void **state)
{
	struct stage *st = *state;
	int64_t runs[3];

	places_set(2, 0, 0);
	for (int i = 0; i < 3; i++)
		runs[i] = say(st, make_thread(st), "go");
	assert_run(st, runs[1], RUN_STARTING);
	assert_run(st, runs[2], RUN_QUEUED);
	work(st, runs[0], "done");
	assert_run(st, runs[2], RUN_STARTING);
}

static void instances_projects_and_trees_have_limits_of_their_own(void **state)
{
	struct stage *st = *state;
	int64_t other = make_project(st);
	int64_t a, b, c;

	places_set(0, 1, 0);
	a = say(st, make_thread(st), "x");
	b = say(st, make_thread(st), "x");
	c = say(st, make_thread_as(st, (struct thread_row){.project_n = other}), "x");
	assert_run(st, a, RUN_STARTING);
	assert_run(st, b, RUN_QUEUED);
	assert_run(st, c, RUN_STARTING);
	places_set(0, 0, 0);
	places_set_instance(STR("one"), 2);
	schedule_now(st);
	assert_run(st, b, RUN_QUEUED);
	assert_run(st, say(st, make_thread_as(st, (struct thread_row){.instance_id = STR("two")}), "x"), RUN_STARTING);
	work(st, a, "done");
	assert_run(st, b, RUN_STARTING);
}

static void a_tree_of_threads_has_a_limit(void **state)
{
	struct stage *st = *state;
	int64_t parent = make_thread(st);
	struct subagent_row first, second;

	places_set(0, 0, 2);
	(void)say(st, parent, "x");
	first = delegate_task(st, parent, "a", WAKE_ALWAYS);
	second = delegate_task(st, parent, "b", WAKE_ALWAYS);
	assert_run(st, first.child_run_n, RUN_STARTING);
	assert_run(st, second.child_run_n, RUN_QUEUED);
	work(st, first.child_run_n, "done");
	assert_run(st, second.child_run_n, RUN_STARTING);
}

static void a_lent_place_lets_a_child_begin(void **state)
{
	struct stage *st = *state;
	int64_t parent = make_thread(st);
	struct subagent_row task;

	places_set(1, 0, 0);
	(void)say(st, parent, "x");
	task = delegate_task(st, parent, "a", WAKE_SETTLED_ONLY);
	assert_run(st, task.child_run_n, RUN_QUEUED);
	places_lend(parent);
	schedule_now(st);
	places_take_back(parent);
	assert_run(st, task.child_run_n, RUN_STARTING);
}

static void a_small_tree_goes_before_a_large_one(void **state)
{
	struct stage *st = *state;
	int64_t large = make_thread(st), small = make_thread(st);
	struct subagent_row tasks[4];
	int64_t run;

	places_set(3, 0, 0);
	(void)say(st, large, "x");
	for (int i = 0; i < 4; i++)
		tasks[i] = delegate_task(st, large, "a", WAKE_SETTLED_ONLY);
	run = say(st, small, "me too");
	assert_run(st, run, RUN_QUEUED);
	work(st, tasks[0].child_run_n, "done");
	assert_run(st, run, RUN_STARTING);
	assert_run(st, tasks[2].child_run_n, RUN_QUEUED);
}

/* ---- steering ---- */

static int steer(struct stage *st, int64_t thread, enum dispatch_mode mode, struct dispatched *out)
{
	return try_dispatch(st, (struct dispatch){.thread_n = thread, .mode = mode, .text = STR("left")}, out);
}

static void steering_needs_a_turn_that_runs(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	struct dispatched out;

	assert_int_equal(steer(st, thread, DISPATCH_STEER, &out), -1);
	(void)say(st, thread, "x");
	assert_int_equal(steer(st, thread, DISPATCH_STEER, &out), -1);
	assert_int_equal(st->why.code, FAIL_THREAD_NOT_SENDABLE);
	assert_int_equal(steer(st, thread, DISPATCH_RESTART, &out), -1);
	assert_int_equal(count(st, "SELECT count(*) FROM message"), 1);
}

static void a_steering_message_goes_into_the_run(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t run = say(st, thread, "x");
	struct dispatched out;

	begin(st, run);
	assert_int_equal(steer(st, thread, DISPATCH_STEER, &out), 0);
	assert_int_equal(out.run_n, run);
	assert_int_not_equal(effect_of(st, run, EFFECT_STEER_TURN), 0);
	assert_run(st, run, RUN_RUNNING);
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE type = 0 AND body LIKE '%%\"steer\"%%'"), 1);
}

static void steering_falls_back_to_a_new_attempt_or_is_refused(void **state)
{
	struct stage *st = *state;
	int64_t able, unable;
	struct dispatched out;

	st->caps.supportsActiveSteering = false;
	able = say(st, make_thread(st), "x");
	begin(st, able);
	assert_int_equal(steer(st, run_row(st, able).thread_n, DISPATCH_STEER, &out), 0);
	assert_run(st, able, RUN_STARTING);
	st->caps.supportsSteeringByInterruptRestart = false;
	unable = say(st, make_thread(st), "x");
	begin(st, unable);
	assert_int_equal(steer(st, run_row(st, unable).thread_n, DISPATCH_STEER, &out), -1);
	assert_int_equal(st->why.code, FAIL_THREAD_NOT_SENDABLE);
	assert_run(st, unable, RUN_RUNNING);
}

static int64_t restarted(struct stage *st)
{
	int64_t run = say(st, make_thread(st), "x");
	struct dispatched out;

	begin(st, run);
	assert_int_equal(steer(st, run_row(st, run).thread_n, DISPATCH_RESTART, &out), 0);
	assert_int_equal(out.run_n, run);
	assert_int_equal(run_row(st, run).message_n, out.message_n);
	return run;
}

static void a_restart_is_a_new_attempt_of_the_same_run(void **state)
{
	struct stage *st = *state;
	int64_t run = restarted(st);
	int64_t first = count(st, "SELECT n FROM run_attempt WHERE run_n = %lld AND ordinal = 1", (long long)run);

	assert_run(st, run, RUN_STARTING);
	assert_true(effect_of(st, run, EFFECT_INTERRUPT_TURN) < effect_of(st, run, EFFECT_START_TURN));
	assert_int_equal(count(st, "SELECT status FROM run_attempt WHERE n = %lld", (long long)first), WORK_SUPERSEDED);
	assert_int_equal(
		count(st, "SELECT status FROM node WHERE n = (SELECT root_node_n FROM run_attempt WHERE n = %lld)", (long long)first),
		WORK_INTERRUPTED);
	assert_int_equal(count(st, "SELECT reason FROM run_attempt WHERE n = %lld", (long long)run_row(st, run).attempt_n),
		REASON_STEERING_RESTART);
	assert_int_equal(count(st, "SELECT ordinal FROM run_attempt WHERE n = %lld", (long long)run_row(st, run).attempt_n), 2);
}

static void late_output_of_a_superseded_attempt_does_not_touch_the_run(void **state)
{
	struct stage *st = *state;
	int64_t run = restarted(st);
	int64_t old = count(st, "SELECT n FROM run_attempt WHERE run_n = %lld AND ordinal = 1", (long long)run);
	struct agent_out *out = hear(st);
	struct agent_event *usage;

	add_text(out, "late", "I was still talking");
	usage = agent_out_event(out, EVENT_USAGE);
	usage->usage = (struct agent_usage){1, 1, 1, 1, -1, -1, -1};
	add_end(out, AGENT_FAILED, "killed");
	tell(st, session_of(st, run_row(st, run).thread_n), out);
	assert_run(st, run, RUN_STARTING);
	assert_null(run_row(st, run).usage.p);
	assert_int_equal(count(st, "SELECT attempt_n FROM turn_item WHERE text = 'I was still talking'"), old);
	work(st, run, "turned left");
	assert_run(st, run, RUN_COMPLETED);
}

/* ---- interrupts ---- */

static void a_run_without_a_turn_is_interrupted_at_once_and_never_starts(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t run = say(st, thread, "x");
	int64_t effect = effect_of(st, run, EFFECT_START_TURN);
	int64_t next = say(st, thread, "y");
	int64_t attempt = run_row(st, run).attempt_n;
	int64_t session = session_of(st, thread);
	int64_t events;

	assert_int_equal(try_interrupt(st, run), 0);
	assert_run(st, run, RUN_INTERRUPTED);
	assert_run(st, next, RUN_STARTING);
	assert_int_equal(effect_of(st, run, EFFECT_START_TURN), 0);
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE type IN (13, 14) AND run_n = %lld", (long long)run), 2);
	/* The order was on its way to the agent. */
	events = count(st, "SELECT count(*) FROM event");
	assert_int_equal(try_tell(st, (struct ingest){.session_n = session, .effect_n = effect, .begins_attempt_n = attempt}, NULL),
		-1);
	assert_int_equal(st->why.code, FAIL_DUPLICATE);
	assert_int_equal(count(st, "SELECT count(*) FROM event"), events);
}

static void a_run_with_a_turn_goes_on_until_its_agent_has_stopped(void **state)
{
	struct stage *st = *state;
	int64_t run = say(st, make_thread(st), "x");

	begin(st, run);
	assert_int_equal(try_interrupt(st, run), 0);
	assert_int_equal(try_interrupt(st, run), 0);
	assert_run(st, run, RUN_RUNNING);
	assert_int_equal(count(st, "SELECT count(*) FROM effect WHERE type = 2"), 1);
	finish(st, run, AGENT_INTERRUPTED, "half");
	assert_run(st, run, RUN_INTERRUPTED);
	assert_int_equal(count(st, "SELECT count(*) FROM effect"), 0);
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE type IN (13, 14)"), 2);
}

static void an_agent_that_completes_in_spite_of_an_interrupt_has_completed(void **state)
{
	struct stage *st = *state;
	int64_t run = say(st, make_thread(st), "x");

	begin(st, run);
	assert_int_equal(try_interrupt(st, run), 0);
	finish(st, run, AGENT_COMPLETED, "done already");
	assert_run(st, run, RUN_COMPLETED);
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE type = 13"), 1);
}

static void steering_is_refused_while_an_interrupt_is_on_its_way_and_a_message_waits(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t run = say(st, thread, "x");
	struct dispatched out;

	begin(st, run);
	assert_int_equal(try_interrupt(st, run), 0);
	assert_int_equal(steer(st, thread, DISPATCH_STEER, &out), -1);
	assert_run(st, say(st, thread, "later"), RUN_QUEUED);
}

static void a_queued_run_is_cancelled_and_an_ended_one_is_left_alone(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t run = say(st, thread, "x");
	int64_t queued = say(st, thread, "y");

	assert_int_equal(try_interrupt(st, queued), 0);
	assert_run(st, queued, RUN_CANCELLED);
	work(st, run, "done");
	assert_int_equal(try_interrupt(st, run), -1);
	assert_int_equal(st->why.code, FAIL_THREAD_NOT_INTERRUPTIBLE);
	assert_run(st, run, RUN_COMPLETED);
}

static void the_old_turn_is_stopped_also_when_the_new_attempt_is_interrupted(void **state)
{
	struct stage *st = *state;
	int64_t run = restarted(st);

	assert_int_equal(try_interrupt(st, run), 0);
	assert_run(st, run, RUN_INTERRUPTED);
	assert_int_not_equal(effect_of(st, run, EFFECT_INTERRUPT_TURN), 0);
	assert_int_equal(effect_of(st, run, EFFECT_START_TURN), 0);
}

static void the_end_of_a_run_is_on_record_once(void **state)
{
	struct stage *st = *state;
	int64_t run = say(st, make_thread(st), "x");
	struct agent_out *out = hear(st);

	begin(st, run);
	agent_out_event(out, EVENT_BROKEN)->failure =
		(struct agent_failure){.class = CLASS_TRANSPORT, .message = STR("a line too long")};
	add_end(out, AGENT_COMPLETED, NULL);
	tell(st, session_of(st, run_row(st, run).thread_n), out);
	assert_run(st, run, RUN_FAILED);
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE type = 15"), 1);
	assert_int_equal(count(st, "SELECT count(*) FROM provider_turn WHERE status < 3"), 0);
	assert_int_equal(count(st, "SELECT status FROM provider_session"), SESSION_ERROR);
}

static void a_session_that_does_not_open_fails_the_run_that_waits_for_it(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t session = session_of(st, thread);
	int64_t run = say(st, thread, "x");
	struct agent_out *out = hear(st);

	agent_out_event(out, EVENT_OPEN_FAILED)->failure = (struct agent_failure){.message = STR("not signed in")};
	tell(st, session, out);
	assert_run(st, run, RUN_FAILED);
	assert_non_null(strstr(text(st, "SELECT failure FROM thread_run"), "not signed in"));
	assert_int_equal(count(st, "SELECT count(*) FROM effect"), 0);
}

static void a_turn_that_the_agent_refuses_fails_its_run(void **state)
{
	struct stage *st = *state;
	int64_t run = say(st, make_thread(st), "x");
	struct thread_run_row row = run_row(st, run);
	struct agent_out *out = hear(st);
	struct agent_event *event = agent_out_event(out, EVENT_ORDER_REFUSED);

	event->key = message_row(st, row.message_n).id;
	event->failure = (struct agent_failure){.message = STR("busy")};
	assert_int_equal(try_tell(st, (struct ingest){.session_n = session_of(st, row.thread_n),
		.effect_n = effect_of(st, run, EFFECT_START_TURN), .begins_attempt_n = row.attempt_n}, out), 0);
	assert_run(st, run, RUN_FAILED);
	assert_int_equal(count(st, "SELECT count(*) FROM thread_run"), 1);
}

static void a_steering_message_that_is_refused_waits_for_the_next_turn(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t run = say(st, thread, "x");
	struct agent_out *out = hear(st);
	struct dispatched sent;

	begin(st, run);
	assert_int_equal(steer(st, thread, DISPATCH_STEER, &sent), 0);
	agent_out_event(out, EVENT_ORDER_REFUSED)->key = message_row(st, sent.message_n).id;
	tell(st, session_of(st, thread), out);
	assert_int_equal(runs_in(st, thread, RUN_QUEUED), 1);
	assert_str(message_row(st, run_row(st, latest(st, thread)).message_n).text, "left");
	set_archived(st, thread);
	tell(st, session_of(st, thread), out);
	assert_int_equal(runs_in(st, thread, RUN_QUEUED), 1);
}

static void a_steering_message_that_came_too_late_is_the_next_one(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t run = say(st, thread, "x"), stopped;
	struct dispatched sent;

	begin(st, run);
	assert_int_equal(steer(st, thread, DISPATCH_STEER, &sent), 0);
	finish(st, run, AGENT_COMPLETED, "done");
	stopped = blocking(st, thread);
	assert_str(message_row(st, run_row(st, stopped).message_n).text, "left");
	begin(st, stopped);
	assert_int_equal(steer(st, thread, DISPATCH_STEER, &sent), 0);
	assert_int_equal(try_interrupt(st, stopped), 0);
	finish(st, stopped, AGENT_INTERRUPTED, NULL);
	assert_int_equal(blocking(st, thread), 0);
	assert_int_equal(count(st, "SELECT count(*) FROM effect"), 0);
}

static void a_broken_turn_closes_its_session_and_forgets_its_conversation(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t run = say(st, thread, "x");
	struct agent_out *out = hear(st);

	begin(st, run);
	add_end(out, AGENT_FAILED, "gone");
	out->events->is_broken = true;
	tell(st, session_of(st, thread), out);
	assert_run(st, run, RUN_FAILED);
	assert_int_equal(thread_row(st, thread).provider_thread_n, 0);
	assert_int_equal(count(st, "SELECT count(*) FROM effect WHERE type = 4"), 1);
}

static void a_session_that_is_over_leaves_nothing_open(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t run = say(st, thread, "x");
	int64_t session;

	begin(st, run);
	session = session_of(st, thread);
	assert_int_equal(try_tell(st, (struct ingest){.session_n = session, .is_over = true}, NULL), 0);
	assert_run(st, run, RUN_FAILED);
	assert_int_equal(count(st, "SELECT count(*) FROM provider_turn WHERE status < 3"), 0);
	assert_int_equal(count(st, "SELECT count(*) FROM session_state"), 0);
	assert_int_equal(count(st, "SELECT status FROM provider_session"), SESSION_STOPPED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_up, stage_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_run_blocks_and_the_others_wait_with_dense_ordinals),
		TEST(a_message_shows_in_the_timeline_when_its_run_begins),
		TEST(a_message_id_is_sent_once),
		TEST(archived_deleted_and_external_threads_take_no_message),
		TEST(runs_wait_for_a_place_and_get_it_when_one_is_free),
		TEST(instances_projects_and_trees_have_limits_of_their_own),
		TEST(a_tree_of_threads_has_a_limit),
		TEST(a_lent_place_lets_a_child_begin),
		TEST(a_small_tree_goes_before_a_large_one),
		TEST(steering_needs_a_turn_that_runs),
		TEST(a_steering_message_goes_into_the_run),
		TEST(steering_falls_back_to_a_new_attempt_or_is_refused),
		TEST(a_restart_is_a_new_attempt_of_the_same_run),
		TEST(late_output_of_a_superseded_attempt_does_not_touch_the_run),
		TEST(a_run_without_a_turn_is_interrupted_at_once_and_never_starts),
		TEST(a_run_with_a_turn_goes_on_until_its_agent_has_stopped),
		TEST(an_agent_that_completes_in_spite_of_an_interrupt_has_completed),
		TEST(steering_is_refused_while_an_interrupt_is_on_its_way_and_a_message_waits),
		TEST(a_queued_run_is_cancelled_and_an_ended_one_is_left_alone),
		TEST(the_old_turn_is_stopped_also_when_the_new_attempt_is_interrupted),
		TEST(the_end_of_a_run_is_on_record_once),
		TEST(a_session_that_does_not_open_fails_the_run_that_waits_for_it),
		TEST(a_turn_that_the_agent_refuses_fails_its_run),
		TEST(a_steering_message_that_is_refused_waits_for_the_next_turn),
		TEST(a_steering_message_that_came_too_late_is_the_next_one),
		TEST(a_broken_turn_closes_its_session_and_forgets_its_conversation),
		TEST(a_session_that_is_over_leaves_nothing_open),
	};

	return cmocka_run_group_tests_name("threads runs", tests, NULL, NULL);
}
