/* delegate_task, task_status, task_cancel. */
#include "threads/commands.h"

#include "threads/places.h"

/* ---- delegating ---- */

static struct str told(struct arena *arena, const struct delegate_args *args)
{
	if (args->role.n == 0 || str_eq(args->role, STR("general")))
		return args->task;
	return str_printf(arena, "Your role for this task: %.*s.\n\n%.*s", STRF(args->role), STRF(args->task));
}

static int delegate_new(struct tx *tx, const struct asking *asking, const struct command *command,
	const struct delegate_args *args, struct subagent_row *task, struct failure *f)
{
	struct chosen chosen;
	struct delegation in = {.parent = &asking->thread,
		.run = &asking->run,
		.command_id = command->id,
		.task = told(tx->snapshot.arena, args),
		.title = args->title,
		.wake = args->waits ? WAKE_SETTLED_ONLY : WAKE_ALWAYS};

	if (asking_need_run(tx, asking, f) != 0 || target_choose(tx, asking, &args->target, &chosen, f) != 0
		|| modes_choose(asking, args->runtime, args->interaction, &in.runtime, &in.interaction, f) != 0)
		return -1;
	in.driver = str_of(chosen.instance->driver->kind);
	in.instance_id = chosen.instance->id;
	in.model = chosen.model;
	if (args->title.n == 0)
		in.title = STR_NONE;
	if (delegate(tx, &in, task, f) != 0)
		return -1;
	return command_accept(tx, command, str_printf(tx->snapshot.arena, "{\"taskN\":%lld}", (long long)task->n), f);
}

static int64_t number_in(struct str json, const char *key)
{
	struct json_error error;
	json_auto_t *value = json_read(json, &error);

	return json_integer_value(json_object_get(value, key));
}

static int find_or_delegate(struct tx *tx, struct asked *asked, const struct asking *asking,
	const struct delegate_args *args, struct subagent_row *task, struct failure *f)
{
	struct command command;
	int rc;

	if (asked->handle != 0)
		return NEED(&tx->snapshot, subagent, asked->handle, task, f);
	command_name(&command, tx->snapshot.arena, asking, "delegate-task", asked->key, asked->fingerprint);
	rc = command_seen(tx, &command, f);
	if (rc < 0)
		return -1;
	rc = rc == 1 ? NEED(&tx->snapshot, subagent, number_in(command.result, "taskN"), task, f)
		     : delegate_new(tx, asking, &command, args, task, f);
	asked->handle = rc == 0 ? task->n : 0;
	return rc;
}

int task_acknowledge(struct tx *tx, const struct asking *asking, int64_t task_n, struct failure *f)
{
	bool is_own = asking->asker->thread_n == 0 || str_eq(asking->run.instance_id, asking->asker->instance_id);

	return delivery_acknowledge(tx, task_n, is_own ? asking->run.n : 0, f);
}

/* Whoever waited no longer is to be told when it ends. */
static int wake_always(struct tx *tx, struct subagent_row *task, struct failure *f)
{
	if (task->completion_wake == WAKE_ALWAYS)
		return 0;
	task->completion_wake = WAKE_ALWAYS;
	task->updated_at = tx->snapshot.now;
	return PUT(tx, subagent, task, task->thread_n, f);
}

static int answer_task(struct tx *tx, const struct asking *asking, const struct subagent_row *task, bool timed_out,
	struct json_writer *w, struct failure *f)
{
	bool is_over;

	if (task_write(&tx->snapshot, task, timed_out, w, &is_over, f) != 0)
		return -1;
	return is_over ? task_acknowledge(tx, asking, task->n, f) : 0;
}

int command_delegate(struct tx *tx, struct asked *asked, const struct delegate_args *args, struct json_writer *w,
	struct failure *f)
{
	struct asking asking;
	struct subagent_row task;
	bool is_new = asked->handle == 0;

	if (asking_resolve(tx, asked->asker, &asking, f) != 0 || find_or_delegate(tx, asked, &asking, args, &task, f) != 0)
		return -1;
	/* It may have begun, or ended, in this very transaction. */
	if (is_new && NEED(&tx->snapshot, subagent, task.n, &task, f) != 0)
		return -1;
	if (!args->waits || task.result_transfer_n != 0)
		return answer_task(tx, &asking, &task, false, w, f);
	if (!asked->may_wait) {
		if (wake_always(tx, &task, f) != 0)
			return -1;
		return answer_task(tx, &asking, &task, true, w, f);
	}
	asked->watched[0] = asking.thread.n;
	asked->watched[1] = task.child_n;
	return 1;
}

/* ---- reading ---- */

int command_task_status(struct tx *tx, struct asked *asked, struct str task_id, struct json_writer *w, struct failure *f)
{
	struct asking asking;
	struct subagent_row task;

	if (asking_resolve(tx, asked->asker, &asking, f) != 0 || asking_task(&tx->snapshot, &asking, task_id, &task, f) != 0)
		return -1;
	return answer_task(tx, &asking, &task, false, w, f);
}

/* ---- cancelling ---- */

SQL(SQL_OPEN_TASKS_OF, "SELECT n FROM subagent WHERE thread_n = $1 AND origin = 1 AND status < 3 ORDER BY n DESC LIMIT 1 OFFSET $2");

/* Stops what a thread has delegated, deepest first, then its own run. *stopped counts the runs. */
static int stop_thread(struct tx *tx, int64_t thread_n, struct str reason, int depth, int64_t *stopped, struct failure *f)
{
	struct thread_run_row run;
	int rc;

	for (int64_t i = 0; depth > 0; i++) {
		struct subagent_row task;
		int64_t n;

		rc = query_int(&tx->snapshot, &n, f, SQL_OPEN_TASKS_OF, "ii", thread_n, i);
		if (rc < 0)
			return -1;
		if (rc == 0)
			break;
		if (NEED(&tx->snapshot, subagent, n, &task, f) != 0
			|| stop_thread(tx, task.child_n, reason, depth - 1, stopped, f) != 0)
			return -1;
		if (NEED(&tx->snapshot, subagent, n, &task, f) == 0 && work_is_terminal(task.status))
			i--;
	}
	rc = thread_blocking_run(&tx->snapshot, thread_n, &run, f);
	if (rc == 0)
		rc = thread_latest_run(&tx->snapshot, thread_n, &run, f);
	if (rc < 0)
		return -1;
	if (rc == 0 || run_is_terminal(run.status) || run.status == RUN_WAITING)
		return 0;
	++*stopped;
	return run_interrupt(tx, &run, reason, f);
}

#define MAX_DEPTH 16

static int cancel_open(struct tx *tx, const struct subagent_row *task, struct str reason, struct failure *f)
{
	int64_t stopped = 0;

	if (stop_thread(tx, task->child_n, reason, MAX_DEPTH, &stopped, f) != 0)
		return fail(f, FAIL_TASK_NOT_CANCELLABLE, "The task's run could not be interrupted.");
	if (stopped == 0)
		return fail(f, FAIL_TASK_NOT_CANCELLABLE, "The task has no run that could be interrupted.");
	return delivery_dispose(tx, task->n, f);
}

int command_task_cancel(struct tx *tx, struct asked *asked, struct str task_id, struct str reason, struct json_writer *w,
	struct failure *f)
{
	struct asking asking;
	struct subagent_row task;
	struct command command;
	int rc;

	if (asking_resolve(tx, asked->asker, &asking, f) != 0 || asking_task(&tx->snapshot, &asking, task_id, &task, f) != 0)
		return -1;
	jw_kstr(w, "taskId", task.id);
	if (work_is_terminal(task.status)) {
		jw_ktext(w, "status", work_status_name(task.status));
		return delivery_dispose(tx, task.n, f);
	}
	jw_ktext(w, "status", "cancel_requested");
	command_name(&command, tx->snapshot.arena, &asking, "cancel-task", asked->key, asked->fingerprint);
	rc = command_seen(tx, &command, f);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (cancel_open(tx, &task, reason, f) != 0)
		return -1;
	return command_accept(tx, &command, STR("{}"), f);
}
