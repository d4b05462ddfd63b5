/* Delegated tasks: how they begin, what their result is, and how their parent is told. */
#include "stage.h"

#include "base/limits.h"

static struct thread_run_row wake_of(struct stage *st, int64_t thread)
{
	int64_t n = count(st, "SELECT coalesce(max(n), 0) FROM thread_run WHERE is_wake = 1 AND status < 5 AND thread_n = %lld",
		(long long)thread);

	return n == 0 ? (struct thread_run_row){0} : run_row(st, n);
}

static int64_t wakes(struct stage *st, int64_t thread)
{
	return count(st, "SELECT count(*) FROM thread_run WHERE is_wake = 1 AND thread_n = %lld", (long long)thread);
}

static const char *wake_text(struct stage *st, int64_t thread)
{
	return str_z(st->arena, message_row(st, wake_of(st, thread).message_n).text);
}

static int64_t parent_at_work(struct stage *st)
{
	int64_t parent = make_thread(st);

	begin(st, say(st, parent, "go"));
	return parent;
}

/* ---- how they begin ---- */

static void a_task_is_a_thread_of_its_own_with_only_the_prompt(void **state)
{
	struct stage *st = *state;
	int64_t parent = make_thread_as(st, (struct thread_row){.branch = STR("b"), .worktree_path = STR("/w")});
	struct subagent_row task;
	struct thread_row child;
	struct message_row message;

	(void)say(st, parent, "secret plan");
	task = delegate_task(st, parent, "  count the stars ", WAKE_SETTLED_ONLY);
	child = thread_row(st, task.child_n);
	assert_int_equal(child.parent_n, parent);
	assert_int_equal(child.root_n, parent);
	assert_int_equal(child.depth, 1);
	assert_int_equal(child.relationship, RELATION_SUBAGENT);
	assert_int_equal(child.created_by, BY_AGENT);
	assert_int_equal(child.creation_source, FROM_MCP);
	assert_str(child.worktree_path, "/w");
	assert_str(child.branch, "b");
	assert_str(child.title, "count the stars");
	assert_int_equal(count(st, "SELECT count(*) FROM message WHERE thread_n = %lld", (long long)child.n), 1);
	message = message_row(st, run_row(st, task.child_run_n).message_n);
	assert_str(message.text, "  count the stars ");
	assert_str(task.prompt, "  count the stars ");
	assert_int_equal(message.sender_n, parent);
	assert_int_equal(count(st, "SELECT count(*) FROM context_transfer WHERE type = 3 AND source_n = %lld AND target_n = %lld"
		" AND status = 4 AND target_run_n = %lld", (long long)parent, (long long)child.n, (long long)task.child_run_n), 1);
	assert_int_equal(count(st, "SELECT cohort FROM thread_run WHERE n = %lld", (long long)task.run_n), COHORT_OPEN);
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE thread_n = %lld AND type = 20 AND status = 1", (long long)parent),
		1);
}

static void the_log_of_a_child_begins_with_its_own_creation(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);

	assert_int_equal(count(st, "SELECT type FROM event WHERE thread_n = %lld ORDER BY seq LIMIT 1", (long long)task.child_n),
		EVENT_THREAD_UPDATED);
}

static void ids_of_a_task_come_from_its_command(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task;

	assert_int_equal(try_delegate(st, (struct delegation){.command_id = STR("command:mcp:ns:delegate-task:k"), .task = STR("x")},
		blocking(st, parent), &task), 0);
	assert_str(task.id, "node:delegated-task:command%3Amcp%3Ans%3Adelegate-task%3Ak");
	assert_str(thread_row(st, task.child_n).id, "thread:delegated-task:command%3Amcp%3Ans%3Adelegate-task%3Ak");
}

static void a_long_task_has_a_short_title(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct buf words;
	struct subagent_row task;

	buf_init(&words, st->arena, SIZE_MAX);
	for (int i = 0; i < 73; i++)
		buf_add_str(&words, STR("ü"));
	task = delegate_task(st, parent, str_z(st->arena, buf_str(&words)), WAKE_SETTLED_ONLY);
	assert_int_equal(utf8_count(task.title), 72);
	assert_true(str_ends(task.title, STR("ü...")));
}

static void tasks_are_limited_in_depth_and_number(void **state)
{
	struct stage *st = *state;
	int64_t deep = make_thread_as(st, (struct thread_row){.depth = LIMIT_THREAD_DEPTH});
	int64_t parent = parent_at_work(st);
	struct subagent_row task;

	(void)say(st, deep, "x");
	assert_int_equal(try_delegate(st, (struct delegation){.task = STR("x")}, blocking(st, deep), &task), -1);
	assert_non_null(strstr(str_z(st->arena, st->why.message), "maxDepth"));
	for (int i = 0; i < LIMIT_ACTIVE_TASKS; i++)
		task = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);
	assert_int_equal(try_delegate(st, (struct delegation){.task = STR("x")}, blocking(st, parent), &task), -1);
	assert_non_null(strstr(str_z(st->arena, st->why.message), "maxActiveTasksPerThread"));
	assert_int_equal(st->why.code, FAIL_INVALID_REQUEST);
	assert_int_equal(count(st, "SELECT count(*) FROM thread WHERE relationship = 2"), LIMIT_ACTIVE_TASKS);
}

/* ---- results ---- */

static void a_finished_child_gives_its_parent_its_last_words_once(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);
	struct agent_out *out = hear(st);

	begin(st, task.child_run_n);
	add_text(out, "1", "thinking aloud");
	tell(st, session_of(st, task.child_n), out);
	finish(st, task.child_run_n, AGENT_COMPLETED, "42");
	finalize_again(st, task.child_n);
	task = task_row(st, task.n);
	assert_str(task.result, "42");
	assert_int_equal(task.status, WORK_COMPLETED);
	assert_int_equal(count(st, "SELECT count(*) FROM context_transfer WHERE type = 4"), 1);
	assert_string_equal(text(st, "SELECT text FROM turn_item WHERE n = %lld", (long long)task.item_n), "42");
	assert_int_equal(count(st, "SELECT status FROM node WHERE n = %lld", (long long)task.n), WORK_COMPLETED);
	assert_int_equal(task.result_item_n,
		count(st, "SELECT n FROM turn_item WHERE text = '42' AND thread_n = %lld", (long long)task.child_n));
}

static void a_published_result_stays_while_the_child_goes_on_and_fails(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);
	int64_t again;

	work(st, task.child_run_n, "good");
	again = say(st, task.child_n, "more");
	begin(st, again);
	finish(st, again, AGENT_FAILED, "bad");
	task = task_row(st, task.n);
	assert_str(task.result, "good");
	assert_int_equal(task.status, WORK_COMPLETED);
	assert_int_equal(count(st, "SELECT count(*) FROM context_transfer WHERE type = 4"), 1);
}

static void an_error_comes_before_what_was_said(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);

	begin(st, task.child_run_n);
	finish(st, task.child_run_n, AGENT_FAILED, "nearly there");
	assert_str(task_row(st, task.n).result, "The model is on fire.");
	assert_int_equal(task_row(st, task.n).status, WORK_FAILED);
}

static void a_child_without_words_has_a_stock_sentence(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row blank = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);
	struct subagent_row stopped = delegate_task(st, parent, "y", WAKE_SETTLED_ONLY);

	work(st, blank.child_run_n, " \n\t ");
	assert_str(task_row(st, blank.n).result, "The task finished without an assistant message.");
	assert_int_equal(try_interrupt(st, stopped.child_run_n), 0);
	assert_str(task_row(st, stopped.n).result, "The task ended with status interrupted, without an assistant message.");
}

static void the_last_attempt_of_a_restarted_run_is_its_result(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "a", WAKE_ALWAYS);
	struct agent_out *late = hear(st), *answer = hear(st);
	struct dispatched sent;

	begin(st, task.child_run_n);
	assert_int_equal(try_dispatch(st, (struct dispatch){.thread_n = task.child_n, .mode = DISPATCH_RESTART, .text = STR("no")}, &sent),
		0);
	add_item(late, ITEM_TEXT, "late", AGENT_RUNNING, "still in the old way", NULL);
	add_end(late, AGENT_INTERRUPTED, NULL);
	tell(st, session_of(st, task.child_n), late);
	begin(st, task.child_run_n);
	add_text(answer, "new", "the new way");
	tell(st, session_of(st, task.child_n), answer);
	finish(st, task.child_run_n, AGENT_COMPLETED, NULL);
	assert_str(task_row(st, task.n).result, "the new way");
}

static struct agent_out *roster(struct stage *st, const char *tasks)
{
	struct agent_out *out = hear(st);

	agent_out_event(out, EVENT_BACKGROUND)->body = str_of(tasks);
	return out;
}

static void background_work_holds_the_result_back(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);

	begin(st, task.child_run_n);
	tell(st, session_of(st, task.child_n), roster(st, "[{\"taskId\":\"t\"}]"));
	finish(st, task.child_run_n, AGENT_COMPLETED, "soon");
	assert_int_equal(progress(st, task.child_n), CHILD_WAITS_FOR_CHILDREN);
	assert_null(task_row(st, task.n).result.p);
	tell(st, session_of(st, task.child_n), roster(st, "[]"));
	assert_int_equal(progress(st, task.child_n), CHILD_HAS_RESULT);
	assert_str(task_row(st, task.n).result, "soon");
}

static void background_work_ends_with_its_process(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);

	begin(st, task.child_run_n);
	tell(st, session_of(st, task.child_n), roster(st, "[{\"taskId\":\"t\"}]"));
	finish(st, task.child_run_n, AGENT_COMPLETED, "soon");
	assert_int_equal(try_tell(st, (struct ingest){.session_n = session_of(st, task.child_n), .is_over = true}, NULL), 0);
	assert_str(task_row(st, task.n).result, "soon");
}

static void a_report_of_a_monitor_does_not_hold_the_result_back(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);
	struct dispatched report;

	begin(st, task.child_run_n);
	assert_int_equal(try_dispatch(st, (struct dispatch){.thread_n = task.child_n, .mode = DISPATCH_QUEUE, .text = STR("it moved"),
		.notification = STR("{\"source\":{\"kind\":\"monitor\"}}")}, &report), 0);
	finish(st, task.child_run_n, AGENT_COMPLETED, "done");
	assert_str(task_row(st, task.n).result, "done");
	assert_run(st, report.run_n, RUN_STARTING);
}

static void a_child_with_a_message_in_its_queue_is_still_at_work(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);
	int64_t next;

	begin(st, task.child_run_n);
	next = say(st, task.child_n, "and this");
	finish(st, task.child_run_n, AGENT_COMPLETED, "one");
	assert_int_equal(progress(st, task.child_n), CHILD_WORKING);
	work(st, next, "two");
	assert_str(task_row(st, task.n).result, "two");
}

static void a_child_waits_for_its_own_children_and_goes_on_with_their_results(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row child = delegate_task(st, parent, "c", WAKE_SETTLED_ONLY);
	struct subagent_row grandchild;

	begin(st, child.child_run_n);
	grandchild = delegate_task(st, child.child_n, "g", WAKE_SETTLED_ONLY);
	finish(st, child.child_run_n, AGENT_COMPLETED, "waiting");
	assert_int_equal(progress(st, child.child_n), CHILD_WAITS_FOR_CHILDREN);
	work(st, grandchild.child_run_n, "found it");
	assert_int_equal(progress(st, child.child_n), CHILD_WORKING);
	assert_null(task_row(st, child.n).result.p);
	work(st, wake_of(st, child.child_n).n, "we found it");
	assert_str(task_row(st, child.n).result, "we found it");
}

static void a_child_whose_children_ended_while_it_worked_goes_on_before_its_result(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row child = delegate_task(st, parent, "c", WAKE_SETTLED_ONLY);
	struct subagent_row grandchild;

	begin(st, child.child_run_n);
	grandchild = delegate_task(st, child.child_n, "g", WAKE_SETTLED_ONLY);
	work(st, grandchild.child_run_n, "found it");
	finish(st, child.child_run_n, AGENT_COMPLETED, "waiting");
	assert_null(task_row(st, child.n).result.p);
	work(st, wake_of(st, child.child_n).n, "we found it");
	assert_str(task_row(st, child.n).result, "we found it");
}

static void a_child_that_was_stopped_ends_with_its_last_child(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row child = delegate_task(st, parent, "c", WAKE_SETTLED_ONLY);
	struct subagent_row grandchild;

	begin(st, child.child_run_n);
	grandchild = delegate_task(st, child.child_n, "g", WAKE_SETTLED_ONLY);
	assert_int_equal(try_interrupt(st, child.child_run_n), 0);
	finish(st, child.child_run_n, AGENT_INTERRUPTED, NULL);
	assert_int_equal(progress(st, child.child_n), CHILD_WAITS_FOR_CHILDREN);
	work(st, grandchild.child_run_n, "too late");
	assert_int_equal(task_row(st, child.n).status, WORK_INTERRUPTED);
	assert_delivery(st, grandchild.n, DELIVERY_DISPOSED);
}

/* ---- telling the parent ---- */

static void five_children_that_end_one_after_another_all_reach_their_parent(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row tasks[5];

	for (int i = 0; i < 5; i++)
		tasks[i] = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);
	finish(st, blocking(st, parent), AGENT_COMPLETED, "waiting");
	for (int i = 0; i < 5; i++) {
		work(st, tasks[i].child_run_n, "done");
		work(st, wake_of(st, parent).n, "I see");
		assert_delivery(st, tasks[i].n, DELIVERY_DELIVERED);
	}
	assert_int_equal(wakes(st, parent), 5);
	assert_int_equal(blocking(st, parent), 0);
}

static void what_ends_while_a_wake_is_at_work_is_told_in_the_next(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row tasks[3];
	int64_t first;

	for (int i = 0; i < 3; i++)
		tasks[i] = delegate_task(st, parent, "x", WAKE_ALWAYS);
	finish(st, blocking(st, parent), AGENT_COMPLETED, NULL);
	work(st, tasks[0].child_run_n, "1");
	first = wake_of(st, parent).n;
	begin(st, first);
	work(st, tasks[1].child_run_n, "2");
	work(st, tasks[2].child_run_n, "3");
	assert_delivery(st, tasks[1].n, DELIVERY_PENDING);
	finish(st, first, AGENT_COMPLETED, NULL);
	assert_delivery(st, tasks[0].n, DELIVERY_DELIVERED);
	assert_delivery(st, tasks[1].n, DELIVERY_CLAIMED);
	assert_delivery(st, tasks[2].n, DELIVERY_CLAIMED);
	work(st, wake_of(st, parent).n, "ok");
	assert_int_equal(wakes(st, parent), 2);
}

static void three_that_end_while_the_parent_works_are_one_wake(void **state)
{
	struct stage *st = *state;

	for (int wake = WAKE_SETTLED_ONLY; wake <= WAKE_ALWAYS; wake++) {
		int64_t parent = parent_at_work(st);
		struct subagent_row tasks[3];
		const char *said;

		for (int i = 0; i < 3; i++)
			tasks[i] = delegate_task(st, parent, "x", (enum completion_wake)wake);
		for (int i = 0; i < 3; i++)
			work(st, tasks[i].child_run_n, "done");
		assert_run(st, blocking(st, parent), RUN_RUNNING);
		assert_int_equal(wakes(st, parent), wake == WAKE_ALWAYS ? 1 : 0);
		finish(st, blocking(st, parent), AGENT_COMPLETED, NULL);
		said = wake_text(st, parent);
		for (int i = 0; i < 3; i++)
			assert_non_null(strstr(said, str_z(st->arena, tasks[i].id)));
		work(st, wake_of(st, parent).n, "ok");
		assert_int_equal(wakes(st, parent), 1);
	}
}

static void a_wake_goes_before_messages_that_wait_longer(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_ALWAYS);
	int64_t first = say(st, parent, "first"), second = say(st, parent, "second");
	int64_t wake;

	work(st, task.child_run_n, "done");
	wake = wake_of(st, parent).n;
	assert_run(st, wake, RUN_QUEUED);
	assert_int_equal(try_interrupt(st, wake), -1);
	finish(st, blocking(st, parent), AGENT_COMPLETED, NULL);
	assert_int_equal(blocking(st, parent), wake);
	work(st, wake, "ok");
	assert_int_equal(blocking(st, parent), first);
	work(st, first, "ok");
	assert_int_equal(blocking(st, parent), second);
}

static void a_wake_says_where_it_comes_from(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_ALWAYS);
	struct message_row message;

	work(st, task.child_run_n, "done");
	message = message_row(st, wake_of(st, parent).message_n);
	assert_int_equal(message.created_by, BY_AGENT);
	assert_int_equal(message.creation_source, FROM_SERVER);
	assert_non_null(message.completion.p);
	assert_non_null(strstr(str_z(st->arena, message.text), "completed: x"));
}

static void a_result_that_was_read_leaves_the_wake(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row first = delegate_task(st, parent, "x", WAKE_ALWAYS);
	struct subagent_row second = delegate_task(st, parent, "y", WAKE_ALWAYS);
	int64_t wake;

	work(st, first.child_run_n, "1");
	work(st, second.child_run_n, "2");
	wake = wake_of(st, parent).n;
	acknowledge(st, first.n, blocking(st, parent));
	assert_int_equal(task_row(st, first.n).observed_by_run_n, blocking(st, parent));
	assert_run(st, wake, RUN_QUEUED);
	assert_null(strstr(wake_text(st, parent), str_z(st->arena, first.id)));
	assert_non_null(strstr(wake_text(st, parent), str_z(st->arena, second.id)));
	acknowledge(st, second.n, blocking(st, parent));
	assert_run(st, wake, RUN_CANCELLED);
	finish(st, blocking(st, parent), AGENT_COMPLETED, NULL);
	assert_int_equal(blocking(st, parent), 0);
	assert_delivery(st, second.n, DELIVERY_ACKNOWLEDGED);
}

static void a_result_that_was_read_in_time_wakes_nobody(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);

	acknowledge(st, task.n, blocking(st, parent));
	assert_delivery(st, task.n, DELIVERY_NONE);
	work(st, task.child_run_n, "1");
	acknowledge(st, task.n, blocking(st, parent));
	finish(st, blocking(st, parent), AGENT_COMPLETED, NULL);
	assert_int_equal(wakes(st, parent), 0);
	assert_delivery(st, task.n, DELIVERY_ACKNOWLEDGED);
}

static void settled_only_is_told_when_the_last_live_run_of_the_parent_ends(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_SETTLED_ONLY);
	int64_t next = say(st, parent, "next");

	work(st, task.child_run_n, "1");
	assert_delivery(st, task.n, DELIVERY_NONE);
	finish(st, blocking(st, parent), AGENT_FAILED, NULL);
	assert_delivery(st, task.n, DELIVERY_CLAIMED);
	assert_int_equal(blocking(st, parent), wake_of(st, parent).n);
	assert_run(st, next, RUN_QUEUED);
}

static void an_interrupted_parent_is_not_woken_and_its_tasks_go_on(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	int64_t run = blocking(st, parent);
	struct subagent_row ended = delegate_task(st, parent, "x", WAKE_ALWAYS);
	struct subagent_row goes_on = delegate_task(st, parent, "y", WAKE_ALWAYS);

	work(st, ended.child_run_n, "1");
	assert_int_equal(try_interrupt(st, run), 0);
	finish(st, run, AGENT_INTERRUPTED, NULL);
	assert_delivery(st, ended.n, DELIVERY_DISPOSED);
	assert_run(st, goes_on.child_run_n, RUN_STARTING);
	assert_int_equal(task_row(st, goes_on.n).status, WORK_RUNNING);
	work(st, goes_on.child_run_n, "2");
	assert_str(task_row(st, goes_on.n).result, "2");
	assert_delivery(st, goes_on.n, DELIVERY_DISPOSED);
	assert_int_equal(blocking(st, parent), 0);
	assert_int_equal(count(st, "SELECT cohort FROM thread_run WHERE n = %lld", (long long)run), COHORT_STOPPED);
}

static void an_interrupted_wake_stops_the_cohort_that_it_told_of(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	int64_t run = blocking(st, parent);
	struct subagent_row first = delegate_task(st, parent, "x", WAKE_ALWAYS);
	struct subagent_row second = delegate_task(st, parent, "y", WAKE_ALWAYS);
	int64_t wake;

	finish(st, run, AGENT_COMPLETED, NULL);
	work(st, first.child_run_n, "1");
	wake = wake_of(st, parent).n;
	begin(st, wake);
	assert_int_equal(try_interrupt(st, wake), 0);
	finish(st, wake, AGENT_INTERRUPTED, NULL);
	work(st, second.child_run_n, "2");
	assert_delivery(st, second.n, DELIVERY_DISPOSED);
	assert_int_equal(wakes(st, parent), 1);
}

static void a_steered_wake_is_still_the_delivery(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_ALWAYS);
	struct dispatched sent;
	int64_t wake;

	finish(st, blocking(st, parent), AGENT_COMPLETED, NULL);
	work(st, task.child_run_n, "1");
	wake = wake_of(st, parent).n;
	begin(st, wake);
	assert_int_equal(try_dispatch(st, (struct dispatch){.thread_n = parent, .mode = DISPATCH_RESTART, .text = STR("left")}, &sent),
		0);
	finish(st, wake, AGENT_INTERRUPTED, NULL);
	work(st, wake, "ok");
	assert_delivery(st, task.n, DELIVERY_DELIVERED);
}

static void a_wake_that_was_cancelled_before_it_began_is_sent_again(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_ALWAYS);

	finish(st, blocking(st, parent), AGENT_COMPLETED, NULL);
	work(st, task.child_run_n, "1");
	end_run(st, wake_of(st, parent).n, RUN_CANCELLED);
	assert_delivery(st, task.n, DELIVERY_CLAIMED);
	work(st, wake_of(st, parent).n, "ok");
	assert_delivery(st, task.n, DELIVERY_DELIVERED);
	assert_int_equal(wakes(st, parent), 2);
}

static void nobody_is_told_where_the_parent_is_gone(void **state)
{
	struct stage *st = *state;
	int64_t archived = parent_at_work(st), deleted = parent_at_work(st);
	struct subagent_row first = delegate_task(st, archived, "x", WAKE_ALWAYS);
	struct subagent_row second = delegate_task(st, deleted, "y", WAKE_ALWAYS);

	set_archived(st, archived);
	set_deleted(st, deleted);
	work(st, first.child_run_n, "1");
	work(st, second.child_run_n, "2");
	assert_delivery(st, first.n, DELIVERY_DISPOSED);
	assert_delivery(st, second.n, DELIVERY_DISPOSED);
	assert_str(task_row(st, second.n).result, "2");
}

static void a_parent_that_goes_while_a_wake_is_at_work_ends_in_peace(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row first = delegate_task(st, parent, "x", WAKE_ALWAYS);
	struct subagent_row second = delegate_task(st, parent, "y", WAKE_ALWAYS);
	int64_t wake;

	finish(st, blocking(st, parent), AGENT_COMPLETED, NULL);
	work(st, first.child_run_n, "1");
	wake = wake_of(st, parent).n;
	begin(st, wake);
	work(st, second.child_run_n, "2");
	set_archived(st, parent);
	finish(st, wake, AGENT_COMPLETED, NULL);
	assert_run(st, wake, RUN_COMPLETED);
	assert_delivery(st, second.n, DELIVERY_DISPOSED);
}

static void a_disposed_delivery_wakes_nobody(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_ALWAYS);
	struct subagent_row other = delegate_task(st, parent, "y", WAKE_ALWAYS);

	dispose(st, task.n);
	work(st, task.child_run_n, "1");
	assert_delivery(st, task.n, DELIVERY_DISPOSED);
	assert_str(task_row(st, task.n).result, "1");
	work(st, other.child_run_n, "2");
	dispose(st, other.n);
	finish(st, blocking(st, parent), AGENT_COMPLETED, NULL);
	assert_int_equal(blocking(st, parent), 0);
}

static void an_agent_that_dais_did_not_start_is_never_woken(void **state)
{
	struct stage *st = *state;
	int64_t parent = parent_at_work(st);
	struct subagent_row task = delegate_task(st, parent, "x", WAKE_ALWAYS);

	set_external(st, parent);
	work(st, task.child_run_n, "1");
	assert_delivery(st, task.n, DELIVERY_PENDING);
	assert_int_equal(wakes(st, parent), 0);
	acknowledge(st, task.n, 0);
	assert_delivery(st, task.n, DELIVERY_ACKNOWLEDGED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_up, stage_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_task_is_a_thread_of_its_own_with_only_the_prompt),
		TEST(the_log_of_a_child_begins_with_its_own_creation),
		TEST(ids_of_a_task_come_from_its_command),
		TEST(a_long_task_has_a_short_title),
		TEST(tasks_are_limited_in_depth_and_number),
		TEST(a_finished_child_gives_its_parent_its_last_words_once),
		TEST(a_published_result_stays_while_the_child_goes_on_and_fails),
		TEST(an_error_comes_before_what_was_said),
		TEST(a_child_without_words_has_a_stock_sentence),
		TEST(the_last_attempt_of_a_restarted_run_is_its_result),
		TEST(background_work_holds_the_result_back),
		TEST(background_work_ends_with_its_process),
		TEST(a_report_of_a_monitor_does_not_hold_the_result_back),
		TEST(a_child_with_a_message_in_its_queue_is_still_at_work),
		TEST(a_child_waits_for_its_own_children_and_goes_on_with_their_results),
		TEST(a_child_whose_children_ended_while_it_worked_goes_on_before_its_result),
		TEST(a_child_that_was_stopped_ends_with_its_last_child),
		TEST(five_children_that_end_one_after_another_all_reach_their_parent),
		TEST(what_ends_while_a_wake_is_at_work_is_told_in_the_next),
		TEST(three_that_end_while_the_parent_works_are_one_wake),
		TEST(a_wake_goes_before_messages_that_wait_longer),
		TEST(a_wake_says_where_it_comes_from),
		TEST(a_result_that_was_read_leaves_the_wake),
		TEST(a_result_that_was_read_in_time_wakes_nobody),
		TEST(settled_only_is_told_when_the_last_live_run_of_the_parent_ends),
		TEST(an_interrupted_parent_is_not_woken_and_its_tasks_go_on),
		TEST(an_interrupted_wake_stops_the_cohort_that_it_told_of),
		TEST(a_steered_wake_is_still_the_delivery),
		TEST(a_wake_that_was_cancelled_before_it_began_is_sent_again),
		TEST(nobody_is_told_where_the_parent_is_gone),
		TEST(a_parent_that_goes_while_a_wake_is_at_work_ends_in_peace),
		TEST(a_disposed_delivery_wakes_nobody),
		TEST(an_agent_that_dais_did_not_start_is_never_woken),
	};

	return cmocka_run_group_tests_name("threads tasks", tests, NULL, NULL);
}
