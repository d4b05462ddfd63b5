/* What agents say, put on record: texts, items, questions, usage. */
#include "stage.h"

#include "base/limits.h"

#include <stdlib.h>

static int64_t at_work(struct stage *st)
{
	int64_t run = say(st, make_thread(st), "go");

	begin(st, run);
	return run;
}

static int64_t session_of_run(struct stage *st, int64_t run)
{
	return session_of(st, run_row(st, run).thread_n);
}

static void say_item(struct stage *st, int64_t run, enum agent_item_kind kind, const char *key, enum agent_status status,
	const char *delta, const char *body)
{
	struct agent_out *out = hear(st);

	add_item(out, kind, key, status, delta, body);
	tell(st, session_of_run(st, run), out);
}

static const char *body_of(struct stage *st, enum item_type type)
{
	return text(st, "SELECT body FROM turn_item WHERE type = %d", (int)type);
}

/* ---- texts ---- */

static void a_text_grows_in_pieces_and_is_whole_at_its_end(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);
	struct agent_out *out = hear(st);

	for (int i = 0; i < 3; i++)
		add_item(out, ITEM_TEXT, "m", AGENT_RUNNING, "la", NULL);
	tell(st, session_of_run(st, run), out);
	assert_int_equal(count(st, "SELECT count(*) FROM item_chunk"), 1);
	say_item(st, run, ITEM_TEXT, "m", AGENT_RUNNING, "li", NULL);
	assert_string_equal(text(st, "SELECT text FROM item_chunk WHERE at = 6"), "li");
	say_item(st, run, ITEM_TEXT, "m", AGENT_COMPLETED, "lu", NULL);
	assert_int_equal(count(st, "SELECT count(*) FROM item_chunk"), 0);
	assert_string_equal(text(st, "SELECT text FROM turn_item WHERE type = 1"), "lalalalilu");
	say_item(st, run, ITEM_TEXT, "m", AGENT_RUNNING, "more", NULL);
	assert_string_equal(text(st, "SELECT text FROM turn_item WHERE type = 1"), "lalalalilu");
	assert_int_equal(count(st, "SELECT status FROM turn_item WHERE type = 1"), WORK_COMPLETED);
}

static void a_piece_of_text_is_an_event_of_its_own_size(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);

	say_item(st, run, ITEM_TEXT, "m", AGENT_RUNNING, "one", NULL);
	say_item(st, run, ITEM_TEXT, "m", AGENT_RUNNING, "two", NULL);
	assert_int_equal(count(st, "SELECT count(*) FROM event WHERE type = 48 AND data LIKE '%%\"type\":1,%%'"), 1);
	assert_string_equal(text(st, "SELECT data FROM event WHERE type = 53 ORDER BY seq DESC LIMIT 1"),
		str_z(st->arena, str_printf(st->arena, "{\"itemN\":%lld,\"at\":3,\"text\":\"two\"}",
					 (long long)count(st, "SELECT n FROM turn_item WHERE type = 1"))));
}

static void a_text_of_an_interrupted_run_is_kept(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);

	say_item(st, run, ITEM_TEXT, "m", AGENT_RUNNING, "half a sen", NULL);
	finish(st, run, AGENT_INTERRUPTED, NULL);
	assert_string_equal(text(st, "SELECT text FROM turn_item WHERE type = 1"), "half a sen");
	assert_int_equal(count(st, "SELECT status FROM turn_item WHERE type = 1"), WORK_INTERRUPTED);
}

static void a_text_ends_at_its_limit_between_two_characters(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);
	char *large = arena_alloc(st->arena, LIMIT_ITEM_TEXT_BYTES);
	struct str whole;

	memset(large, 'x', LIMIT_ITEM_TEXT_BYTES - 1);
	large[LIMIT_ITEM_TEXT_BYTES - 3] = '\0';
	say_item(st, run, ITEM_TEXT, "m", AGENT_RUNNING, large + 1, NULL); /* to 4 bytes before the limit */
	say_item(st, run, ITEM_TEXT, "m", AGENT_RUNNING, "ab\xF0\x9F\x98\x80", NULL);
	say_item(st, run, ITEM_TEXT, "m", AGENT_RUNNING, "c", NULL);
	say_item(st, run, ITEM_TEXT, "m", AGENT_COMPLETED, NULL, NULL);
	whole = str_of(text(st, "SELECT text FROM turn_item WHERE type = 1"));
	assert_int_equal(whole.n, LIMIT_ITEM_TEXT_BYTES - 2);
	assert_true(str_ends(whole, STR("xab")));
}

/* ---- items ---- */

static void joined_pieces_lose_no_change_of_the_item(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);
	struct agent_out *out = hear(st);

	add_item(out, ITEM_COMMAND, "c", AGENT_RUNNING, NULL, "{\"input\":\"ls\"}");
	add_item(out, ITEM_COMMAND, "c", AGENT_RUNNING, NULL, "{\"input\":\"ls\",\"output\":\"a\"}");
	tell(st, session_of_run(st, run), out);
	assert_string_equal(body_of(st, TYPE_COMMAND_EXECUTION), "{\"input\":\"ls\",\"output\":\"a\"}");
}

static void a_body_is_told_in_parts(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);

	say_item(st, run, ITEM_COMMAND, "c", AGENT_RUNNING, NULL, "{\"input\":\"ls\",\"output\":\"\"}");
	say_item(st, run, ITEM_COMMAND, "c", AGENT_RUNNING, NULL, "{\"output\":\"a\"}");
	say_item(st, run, ITEM_COMMAND, "c", AGENT_COMPLETED, NULL, "{\"exitCode\":0}");
	assert_string_equal(body_of(st, TYPE_COMMAND_EXECUTION), "{\"input\":\"ls\",\"output\":\"a\",\"exitCode\":0}");
}

static void a_list_of_things_to_do_is_replaced_as_a_whole(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);
	int64_t ordinal;

	say_item(st, run, ITEM_TODO, "t", AGENT_COMPLETED, NULL, "{\"steps\":[]}");
	ordinal = count(st, "SELECT ordinal FROM turn_item WHERE type = 4");
	say_item(st, run, ITEM_TEXT, "m", AGENT_COMPLETED, "x", NULL);
	say_item(st, run, ITEM_TODO, "t", AGENT_COMPLETED, NULL, "{\"steps\":[1]}");
	say_item(st, run, ITEM_TODO, "t", AGENT_RUNNING, NULL, "{\"steps\":[2]}");
	assert_string_equal(body_of(st, TYPE_TODO_LIST), "{\"steps\":[2]}");
	assert_int_equal(count(st, "SELECT ordinal FROM turn_item WHERE type = 4"), ordinal);
	assert_int_equal(count(st, "SELECT status FROM turn_item WHERE type = 4"), WORK_COMPLETED);
	finish(st, run, AGENT_COMPLETED, NULL);
	say_item(st, run, ITEM_TODO, "t", AGENT_COMPLETED, NULL, "{\"steps\":[3]}");
	assert_string_equal(body_of(st, TYPE_TODO_LIST), "{\"steps\":[2]}");
}

static void an_item_knows_what_it_belongs_to(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);
	struct agent_out *out = hear(st);

	add_item(out, ITEM_SUBAGENT, "s", AGENT_RUNNING, NULL, "{}");
	add_item(out, ITEM_COMMAND, "c", AGENT_RUNNING, NULL, "{}");
	out->events->next->item.parent = STR("s");
	tell(st, session_of_run(st, run), out);
	assert_int_equal(count(st, "SELECT parent_n FROM turn_item WHERE type = 7"),
		count(st, "SELECT n FROM turn_item WHERE type = 20"));
}

static void sub_agents_of_the_program_end_with_its_run_and_tasks_of_ours_do_not(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);
	struct subagent_row task = delegate_task(st, run_row(st, run).thread_n, "x", WAKE_ALWAYS);

	say_item(st, run, ITEM_SUBAGENT, "s", AGENT_RUNNING, NULL, "{}");
	assert_run(st, run, RUN_RUNNING);
	finish(st, run, AGENT_INTERRUPTED, NULL);
	assert_int_equal(count(st, "SELECT status FROM turn_item WHERE type = 20 AND native_key IS NOT NULL"), WORK_INTERRUPTED);
	assert_int_equal(count(st, "SELECT status FROM turn_item WHERE n = %lld", (long long)task.item_n), WORK_RUNNING);
	assert_int_equal(task_row(st, task.n).status, WORK_RUNNING);
}

static void the_end_of_a_sub_agent_of_the_program_is_not_the_end_of_the_run(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);

	say_item(st, run, ITEM_SUBAGENT, "s", AGENT_RUNNING, NULL, "{}");
	say_item(st, run, ITEM_SUBAGENT, "s", AGENT_COMPLETED, NULL, "{\"result\":\"r\"}");
	assert_run(st, run, RUN_RUNNING);
	assert_string_equal(body_of(st, TYPE_SUBAGENT), "{\"result\":\"r\"}");
}

static void two_sessions_may_use_the_same_key(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t first = say(st, thread, "x"), second;

	begin(st, first);
	say_item(st, first, ITEM_TEXT, "1", AGENT_COMPLETED, "old", NULL);
	finish(st, first, AGENT_COMPLETED, NULL);
	assert_int_equal(try_tell(st, (struct ingest){.session_n = session_of(st, thread), .is_over = true}, NULL), 0);
	second = say(st, thread, "y");
	begin(st, second);
	say_item(st, second, ITEM_TEXT, "1", AGENT_COMPLETED, "new", NULL);
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE type = 1 AND text IN ('old', 'new')"), 2);
}

/* ---- questions ---- */

static void ask(struct stage *st, int64_t run, const char *key)
{
	struct agent_out *out = hear(st);

	agent_out_event(out, EVENT_REQUEST)->request =
		(struct agent_request){.key = str_of(key), .kind = REQUEST_COMMAND, .prompt = STR("{\"title\":\"rm\"}")};
	tell(st, session_of_run(st, run), out);
}

static void answer(struct stage *st, int64_t run, const char *key, enum agent_status status)
{
	struct agent_out *out = hear(st);
	struct agent_event *event = agent_out_event(out, EVENT_REQUEST_ENDED);

	event->key = str_of(key);
	event->status = status;
	tell(st, session_of_run(st, run), out);
}

static int64_t session_status(struct stage *st)
{
	return count(st, "SELECT status FROM provider_session ORDER BY n DESC LIMIT 1");
}

static void a_question_waits_until_it_is_answered(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);

	ask(st, run, "q");
	assert_run(st, run, RUN_RUNNING);
	assert_int_equal(session_status(st), SESSION_WAITING);
	assert_int_equal(count(st, "SELECT count(*) FROM runtime_request WHERE status = 0 AND is_live = 1"), 1);
	assert_int_equal(count(st, "SELECT status FROM turn_item WHERE type = 6"), WORK_WAITING);
	answer(st, run, "q", AGENT_COMPLETED);
	assert_int_equal(count(st, "SELECT status FROM runtime_request"), REQUEST_IS_RESOLVED);
	assert_int_equal(count(st, "SELECT status FROM turn_item WHERE type = 6"), WORK_COMPLETED);
	assert_int_equal(session_status(st), SESSION_RUNNING);
	answer(st, run, "nobody asked", AGENT_COMPLETED);
}

static void one_of_two_answers_leaves_the_session_waiting(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);

	ask(st, run, "q");
	ask(st, run, "r");
	answer(st, run, "q", AGENT_COMPLETED);
	assert_int_equal(session_status(st), SESSION_WAITING);
	answer(st, run, "r", AGENT_CANCELLED);
	assert_int_equal(session_status(st), SESSION_RUNNING);
	assert_int_equal(count(st, "SELECT status FROM runtime_request WHERE native_key = 'r'"), REQUEST_IS_CANCELLED);
}

static void questions_of_a_run_that_has_ended_are_closed_however_many_there_are(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);
	struct agent_out *out = hear(st);

	for (int i = 0; i < 100; i++)
		agent_out_event(out, EVENT_REQUEST)->request = (struct agent_request){
			.key = str_printf(st->arena, "q%d", i), .kind = REQUEST_USER_INPUT, .prompt = STR("{}")};
	tell(st, session_of_run(st, run), out);
	finish(st, run, AGENT_COMPLETED, "never mind");
	assert_int_equal(count(st, "SELECT count(*) FROM runtime_request WHERE status = 3 AND is_live = 0"), 100);
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE status < 3"), 0);
	answer(st, run, "q1", AGENT_CANCELLED);
	assert_int_equal(session_status(st), SESSION_READY);
	ask(st, run, "too late");
	assert_int_equal(count(st, "SELECT count(*) FROM runtime_request"), 100);
}

static void questions_of_a_superseded_attempt_are_closed(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);
	struct dispatched sent;

	ask(st, run, "q");
	assert_int_equal(try_dispatch(st, (struct dispatch){.thread_n = run_row(st, run).thread_n, .mode = DISPATCH_RESTART,
		.text = STR("no")}, &sent), 0);
	assert_int_equal(count(st, "SELECT count(*) FROM runtime_request WHERE status = 0"), 0);
}

/* ---- the rest ---- */

static void usage_is_kept_with_its_run(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);
	struct agent_out *out = hear(st);

	agent_out_event(out, EVENT_USAGE)->usage = (struct agent_usage){10, -1, 20, 0, 0.1, 7, -1};
	tell(st, session_of_run(st, run), out);
	assert_str(run_row(st, run).usage,
		"{\"inputTokens\":10,\"outputTokens\":20,\"reasoningTokens\":0,\"costUsd\":0.1,\"contextUsed\":7}");
}

/* Its row has moved on: the delivery of a task is out. */
static void usage_that_comes_after_the_end_changes_nothing(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);
	struct subagent_row task = delegate_task(st, run_row(st, run).thread_n, "x", WAKE_SETTLED_ONLY);
	struct agent_out *out = hear(st);

	work(st, task.child_run_n, "done");
	add_end(out, AGENT_COMPLETED, NULL);
	agent_out_event(out, EVENT_USAGE)->usage = (struct agent_usage){1, 1, 1, 1, -1, -1, -1};
	tell(st, session_of_run(st, run), out);
	assert_null(run_row(st, run).usage.p);
	assert_delivery(st, task.n, DELIVERY_CLAIMED);
}

static void a_failure_is_stored_without_its_secrets(void **state)
{
	struct stage *st = *state;
	int64_t run = at_work(st);
	struct agent_out *out = hear(st);

	add_end(out, AGENT_FAILED, "GET https://me:pw1@api.test/v1?key=k1: 401, Authorization: Bearer zyxwvu");
	tell(st, session_of_run(st, run), out);
	assert_non_null(strstr(text(st, "SELECT failure FROM thread_run"), "GET https://api.test/v1"));
	for (const char *const *secret = (const char *const[]){"pw1", "k1", "zyxwvu", NULL}; *secret != NULL; secret++)
		assert_int_equal(count(st, "SELECT count(*) FROM event WHERE data LIKE '%%%s%%'", *secret), 0);
}

static void a_resumed_conversation_is_the_same_and_a_new_one_is_not(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t first = session_of(st, thread);
	int64_t conversation = thread_row(st, thread).provider_thread_n;
	struct agent_out *out = hear(st);

	agent_out_event(out, EVENT_OPENED)->is_resumed = true;
	tell(st, first, out);
	assert_int_equal(thread_row(st, thread).provider_thread_n, conversation);
	assert_int_equal(try_tell(st, (struct ingest){.session_n = first, .is_over = true}, NULL), 0);
	(void)session_of(st, thread);
	assert_int_not_equal(thread_row(st, thread).provider_thread_n, conversation);
}

static void lines_wait_until_the_host_has_them(void **state)
{
	struct stage *st = *state;
	int64_t session = session_of(st, make_thread(st));
	struct agent_line second = {.text = STR("two")}, first = {.next = &second, .text = STR("one"), .has_secret = true};

	assert_int_equal(try_tell(st, (struct ingest){.session_n = session, .lines = &first}, NULL), 0);
	assert_int_equal(count(st, "SELECT count(*) FROM session_line"), 2);
	assert_int_equal(count(st, "SELECT has_secret FROM session_line WHERE seq = 1"), 1);
	assert_int_equal(try_tell(st, (struct ingest){.session_n = session, .confirmed = 1}, NULL), 0);
	assert_string_equal(text(st, "SELECT text FROM session_line"), "two");
	second.next = NULL;
	assert_int_equal(try_tell(st, (struct ingest){.session_n = session, .lines = &second}, NULL), 0);
	assert_int_equal(count(st, "SELECT max(seq) FROM session_line"), 3);
}

/* ---- turns that nobody ordered ---- */

static struct agent_out *unasked(struct stage *st)
{
	struct agent_out *out = hear(st);

	agent_out_event(out, EVENT_TURN_STARTED)->is_unasked = true;
	return out;
}

static void a_turn_that_nobody_ordered_is_a_run_of_its_own(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t run = say(st, thread, "go");
	struct agent_out *out;

	work(st, run, "it runs in the background");
	out = unasked(st);
	add_text(out, "later", "it is done");
	tell(st, session_of(st, thread), out);
	assert_int_not_equal(blocking(st, thread), 0);
	assert_int_not_equal(blocking(st, thread), run);
	assert_int_equal(effect_of(st, blocking(st, thread), EFFECT_START_TURN), 0);
	assert_int_equal(message_row(st, run_row(st, blocking(st, thread)).message_n).created_by, BY_SYSTEM);
	finish(st, blocking(st, thread), AGENT_COMPLETED, NULL);
	assert_run(st, latest(st, thread), RUN_COMPLETED);
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE type = 1 AND run_n = %d", (int)latest(st, thread)), 1);
}

static void it_makes_no_second_run_beside_one_that_waits(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	int64_t next;

	work(st, say(st, thread, "go"), "it runs in the background");
	next = say(st, thread, "and now");
	tell(st, session_of(st, thread), unasked(st));
	assert_int_equal(blocking(st, thread), next);
	finish(st, next, AGENT_COMPLETED, NULL);
	assert_run(st, next, RUN_STARTING);
	work(st, next, "well");
	assert_run(st, next, RUN_COMPLETED);
}

static void a_run_that_waits_does_not_fail_with_a_session_that_worked(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	struct agent_out *out = hear(st);
	int64_t next;

	work(st, say(st, thread, "go"), "done");
	next = say(st, thread, "and now");
	agent_out_event(out, EVENT_BROKEN)->failure = (struct agent_failure){.message = STR("gone"), .is_retryable = YES_YES};
	tell(st, session_of(st, thread), out);
	assert_run(st, next, RUN_STARTING);
	assert_int_not_equal(effect_of(st, next, EFFECT_START_TURN), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_up, stage_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_turn_that_nobody_ordered_is_a_run_of_its_own),
		TEST(it_makes_no_second_run_beside_one_that_waits),
		TEST(a_run_that_waits_does_not_fail_with_a_session_that_worked),
		TEST(a_text_grows_in_pieces_and_is_whole_at_its_end),
		TEST(a_piece_of_text_is_an_event_of_its_own_size),
		TEST(a_text_of_an_interrupted_run_is_kept),
		TEST(a_text_ends_at_its_limit_between_two_characters),
		TEST(joined_pieces_lose_no_change_of_the_item),
		TEST(a_body_is_told_in_parts),
		TEST(a_list_of_things_to_do_is_replaced_as_a_whole),
		TEST(an_item_knows_what_it_belongs_to),
		TEST(sub_agents_of_the_program_end_with_its_run_and_tasks_of_ours_do_not),
		TEST(the_end_of_a_sub_agent_of_the_program_is_not_the_end_of_the_run),
		TEST(two_sessions_may_use_the_same_key),
		TEST(a_question_waits_until_it_is_answered),
		TEST(one_of_two_answers_leaves_the_session_waiting),
		TEST(questions_of_a_run_that_has_ended_are_closed_however_many_there_are),
		TEST(questions_of_a_superseded_attempt_are_closed),
		TEST(usage_is_kept_with_its_run),
		TEST(usage_that_comes_after_the_end_changes_nothing),
		TEST(a_failure_is_stored_without_its_secrets),
		TEST(a_resumed_conversation_is_the_same_and_a_new_one_is_not),
		TEST(lines_wait_until_the_host_has_them),
	};

	return cmocka_run_group_tests_name("threads ingest", tests, NULL, NULL);
}
