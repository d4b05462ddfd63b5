/* Telling a parent that its tasks ended: one message for all that ended while it was busy, until each one is told.
 *
 * The tasks that one run has spawned are its cohort. Its message, a wake, waits in the parent's queue before all others
 * and never interrupts; while it waits, further tasks join it, and tasks whose results were read leave it. */
#include "threads/engine.h"

SQL(SQL_TASKS_IN,
	"SELECT n FROM subagent WHERE thread_n = $1 AND run_n = $2 AND delivery = $3 AND origin = 1 AND delivery < 3 ORDER BY n");
SQL(SQL_UNTOLD_TASKS,
	"SELECT n FROM subagent WHERE thread_n = $1 AND delivery = 0 AND status >= 3 AND origin = 1 AND delivery < 3 ORDER BY n");

struct numbers {
	int64_t *n;
	size_t count;
};

static int read_numbers(struct snapshot *s, struct query *q, struct numbers *out, struct failure *f)
{
	size_t room = 0;
	int rc;

	*out = (struct numbers){0};
	while ((rc = query_next(q, f)) == 1) {
		if (out->count == room) {
			out->n = arena_grow(s->arena, out->n, room * sizeof(int64_t), (room * 2 + 8) * sizeof(int64_t));
			room = room * 2 + 8;
		}
		out->n[out->count++] = col_int(q, 0);
	}
	return rc;
}

static int list_tasks(struct snapshot *s, const struct thread_run_row *cohort, enum delivery_state delivery,
	struct numbers *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};

	if (query(s, &q, f, SQL_TASKS_IN, "iii", cohort->thread_n, cohort->n, (int64_t)delivery) != 0)
		return -1;
	return read_numbers(s, &q, out, f);
}

static int set_delivery(struct tx *tx, struct subagent_row *task, enum delivery_state delivery, struct failure *f)
{
	task->delivery = delivery;
	task->updated_at = tx->snapshot.now;
	return PUT(tx, subagent, task, task->thread_n, f);
}

static int set_deliveries(struct tx *tx, const struct numbers *tasks, enum delivery_state delivery, struct failure *f)
{
	for (size_t i = 0; i < tasks->count; i++) {
		struct subagent_row task;

		if (NEED(&tx->snapshot, subagent, tasks->n[i], &task, f) != 0 || set_delivery(tx, &task, delivery, f) != 0)
			return -1;
	}
	return 0;
}

/* ---- the message ---- */

static int wake_text(struct tx *tx, const struct numbers *tasks, struct str *out, struct failure *f)
{
	struct buf text;

	buf_init(&text, tx->snapshot.arena, SIZE_MAX);
	buf_add_str(&text, tasks->count == 1 ? STR("A task that you delegated has ended.\n")
					     : STR("Tasks that you delegated have ended.\n"));
	for (size_t i = 0; i < tasks->count; i++) {
		struct subagent_row task;

		if (NEED(&tx->snapshot, subagent, tasks->n[i], &task, f) != 0)
			return -1;
		buf_printf(&text, "\n- %s: %.*s (taskId %.*s)", work_status_name(task.status), STRF(task.title), STRF(task.id));
	}
	buf_add_str(&text, STR("\n\nRead each result with task_status, then go on with your work."));
	*out = buf_str(&text);
	return 0;
}

static struct str completion_of(struct arena *arena, const struct thread_run_row *cohort, int64_t generation,
	const struct numbers *tasks)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	buf_printf(&out, "{\"parentRunN\":%lld,\"generation\":%lld,\"taskNs\":[", (long long)cohort->n, (long long)generation);
	for (size_t i = 0; i < tasks->count; i++)
		buf_printf(&out, "%s%lld", i == 0 ? "" : ",", (long long)tasks->n[i]);
	buf_add_str(&out, STR("]}"));
	return buf_str(&out);
}

static int64_t generation_of(struct str completion)
{
	struct json_error error;
	json_auto_t *value = json_read(completion, &error);

	return json_integer_value(json_object_get(value, "generation"));
}

/* Does anybody hear what is said to the thread: 1, 0, -1. */
static int has_listener(struct snapshot *s, int64_t thread_n, struct failure *f)
{
	struct thread_row thread;
	int rc = thread_get(s, thread_n, &thread, f);

	return rc == 1 ? thread.archived_at == 0 : rc;
}

/* A new delivery of all that is pending. */
static int offer(struct tx *tx, struct thread_run_row *cohort, struct failure *f)
{
	struct dispatch message = {
		.thread_n = cohort->thread_n, .mode = DISPATCH_QUEUE, .created_by = BY_AGENT, .source = FROM_SERVER};
	struct dispatched dispatched;
	struct numbers tasks;
	int rc = has_listener(&tx->snapshot, cohort->thread_n, f);

	if (rc < 0 || list_tasks(&tx->snapshot, cohort, DELIVERY_PENDING, &tasks, f) != 0)
		return -1;
	if (tasks.count == 0)
		return 0;
	if (rc == 0)
		return set_deliveries(tx, &tasks, DELIVERY_DISPOSED, f);
	if (set_deliveries(tx, &tasks, DELIVERY_CLAIMED, f) != 0 || wake_text(tx, &tasks, &message.text, f) != 0)
		return -1;
	message.completion = completion_of(tx->snapshot.arena, cohort, cohort->cohort_generation, &tasks);
	if (message_dispatch(tx, &message, &dispatched, f) != 0)
		return -1;
	cohort->cohort_message_n = dispatched.message_n;
	cohort->cohort_generation++;
	return PUT(tx, thread_run, cohort, cohort->thread_n, f);
}

SQL(SQL_RUN_OF_MESSAGE, "SELECT run_n FROM message WHERE n = $1");

/* The run of the delivery that is out: 1, 0 none, -1. */
static int delivery_run(struct snapshot *s, const struct thread_run_row *cohort, struct thread_run_row *out, struct failure *f)
{
	int64_t run_n;
	int rc;

	if (cohort->cohort_message_n == 0)
		return 0;
	rc = query_int(s, &run_n, f, SQL_RUN_OF_MESSAGE, "i", cohort->cohort_message_n);
	return rc == 1 ? GET(s, thread_run, run_n, out, f) : rc;
}

/* A wake that still waits says what its tasks are now; without any it goes. */
static int rewrite(struct tx *tx, const struct thread_run_row *cohort, struct thread_run_row *wake, struct failure *f)
{
	struct message_row message;
	struct numbers tasks;

	if (list_tasks(&tx->snapshot, cohort, DELIVERY_CLAIMED, &tasks, f) != 0)
		return -1;
	if (tasks.count == 0)
		return run_end(tx, wake, RUN_CANCELLED, STR_NONE, f);
	if (NEED(&tx->snapshot, message, wake->message_n, &message, f) != 0 || wake_text(tx, &tasks, &message.text, f) != 0)
		return -1;
	message.completion = completion_of(tx->snapshot.arena, cohort, generation_of(message.completion), &tasks);
	message.updated_at = tx->snapshot.now;
	return PUT(tx, message, &message, message.thread_n, f);
}

/* ---- planning ---- */

static bool is_settled(const struct subagent_row *task)
{
	return task->delivery >= DELIVERY_ACKNOWLEDGED;
}

/* Another run than a wake of the cohort's own; one that the child's parent is busy with. */
static int has_live_run(struct snapshot *s, int64_t thread_n, struct failure *f)
{
	struct thread_run_row run;
	int rc = thread_blocking_run(s, thread_n, &run, f);

	return rc == 1 ? run_is_live(run.status) : rc;
}

/* What is pending joins the delivery that waits, or is offered in a new one; while one is at work it waits for its end. */
static int join_or_offer(struct tx *tx, int64_t cohort_n, struct failure *f)
{
	struct thread_run_row cohort, wake;
	struct numbers pending;
	int rc;

	if (NEED(&tx->snapshot, thread_run, cohort_n, &cohort, f) != 0)
		return -1;
	rc = delivery_run(&tx->snapshot, &cohort, &wake, f);
	if (rc < 0)
		return -1;
	if (rc == 0 || run_is_terminal(wake.status))
		return offer(tx, &cohort, f);
	if (wake.status != RUN_QUEUED)
		return 0;
	if (list_tasks(&tx->snapshot, &cohort, DELIVERY_PENDING, &pending, f) != 0
		|| set_deliveries(tx, &pending, DELIVERY_CLAIMED, f) != 0)
		return -1;
	return rewrite(tx, &cohort, &wake, f);
}

/* Pending, when there is somebody who is to be woken: 1, 0 nobody, or not now, -1. */
static int mark(struct tx *tx, struct subagent_row *task, struct failure *f)
{
	struct thread_row parent;
	struct thread_run_row cohort;
	int rc;

	if (is_settled(task))
		return 0;
	rc = thread_get(&tx->snapshot, task->thread_n, &parent, f);
	if (rc < 0)
		return -1;
	if (rc == 0 || parent.archived_at != 0 || task->run_n == 0)
		return set_delivery(tx, task, DELIVERY_DISPOSED, f);
	if (NEED(&tx->snapshot, thread_run, task->run_n, &cohort, f) != 0)
		return -1;
	if (cohort.cohort != COHORT_OPEN)
		return set_delivery(tx, task, DELIVERY_DISPOSED, f);
	/* Nobody can wake an agent that dais did not start: it asks. */
	if (parent.kind == THREAD_EXTERNAL)
		return set_delivery(tx, task, DELIVERY_PENDING, f);
	if (task->completion_wake == WAKE_SETTLED_ONLY) {
		rc = has_live_run(&tx->snapshot, parent.n, f);
		if (rc != 0)
			return rc < 0 ? -1 : 0;
	}
	return set_delivery(tx, task, DELIVERY_PENDING, f) != 0 ? -1 : 1;
}

int delivery_plan(struct tx *tx, struct subagent_row *task, struct failure *f)
{
	int rc = mark(tx, task, f);

	return rc == 1 ? join_or_offer(tx, task->run_n, f) : rc;
}

/* Those that are to be told of, and their cohorts in the same place; the others become 0. */
static int mark_all(struct tx *tx, struct numbers *tasks, struct failure *f)
{
	for (size_t i = 0; i < tasks->count; i++) {
		struct subagent_row task;
		int rc;

		if (NEED(&tx->snapshot, subagent, tasks->n[i], &task, f) != 0)
			return -1;
		rc = mark(tx, &task, f);
		if (rc < 0)
			return -1;
		tasks->n[i] = rc == 1 ? task.run_n : 0;
	}
	return 0;
}

static int list_untold(struct snapshot *s, int64_t thread_n, struct numbers *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};

	return query(s, &q, f, SQL_UNTOLD_TASKS, "i", thread_n) != 0 ? -1 : read_numbers(s, &q, out, f);
}

int delivery_plan_untold(struct tx *tx, int64_t thread_n, struct failure *f)
{
	struct numbers cohorts;

	if (list_untold(&tx->snapshot, thread_n, &cohorts, f) != 0 || mark_all(tx, &cohorts, f) != 0)
		return -1;
	for (size_t i = 0; i < cohorts.count; i++)
		if (cohorts.n[i] != 0 && join_or_offer(tx, cohorts.n[i], f) != 0)
			return -1;
	return 0;
}

/* Not by the message of the run: steering has given it another one, it may be. */
SQL(SQL_COHORT_OF_WAKE,
	"SELECT c.n FROM thread_run c JOIN message m ON m.n = c.cohort_message_n"
	" WHERE c.thread_n = $1 AND c.cohort_message_n IS NOT NULL AND m.run_n = $2");

/* The cohort that this run tells of: 1, 0 it is no wake, -1. */
static int cohort_of_wake(struct snapshot *s, const struct thread_run_row *run, struct thread_run_row *out, struct failure *f)
{
	int64_t n;
	int rc;

	if (!run->is_wake)
		return 0;
	rc = query_int(s, &n, f, SQL_COHORT_OF_WAKE, "ii", run->thread_n, run->n);
	return rc == 1 ? GET(s, thread_run, n, out, f) : rc;
}

int delivery_settle(struct tx *tx, const struct thread_run_row *run, struct failure *f)
{
	bool was_told = run->started_at != 0 || run->status != RUN_CANCELLED;
	struct thread_run_row cohort;
	struct numbers tasks;
	int rc = cohort_of_wake(&tx->snapshot, run, &cohort, f);

	if (rc <= 0)
		return rc;
	if (list_tasks(&tx->snapshot, &cohort, DELIVERY_CLAIMED, &tasks, f) != 0
		|| set_deliveries(tx, &tasks, was_told ? DELIVERY_DELIVERED : DELIVERY_PENDING, f) != 0)
		return -1;
	cohort.cohort_message_n = 0;
	if (PUT(tx, thread_run, &cohort, cohort.thread_n, f) != 0)
		return -1;
	return cohort.cohort == COHORT_OPEN ? offer(tx, &cohort, f) : 0;
}

/* ---- leaving a delivery ---- */

static int leave(struct tx *tx, int64_t task_n, enum delivery_state state, int64_t observed_by_run_n, struct failure *f)
{
	struct subagent_row task;
	struct thread_run_row cohort, wake;
	bool was_claimed;
	int rc;

	if (NEED(&tx->snapshot, subagent, task_n, &task, f) != 0)
		return -1;
	if (is_settled(&task) || (state == DELIVERY_ACKNOWLEDGED && !work_is_terminal(task.status)))
		return 0;
	was_claimed = task.delivery == DELIVERY_CLAIMED;
	task.observed_by_run_n = observed_by_run_n;
	if (set_delivery(tx, &task, state, f) != 0)
		return -1;
	if (was_claimed) {
		if (NEED(&tx->snapshot, thread_run, task.run_n, &cohort, f) != 0)
			return -1;
		rc = delivery_run(&tx->snapshot, &cohort, &wake, f);
		if (rc < 0 || (rc == 1 && wake.status == RUN_QUEUED && rewrite(tx, &cohort, &wake, f) != 0))
			return -1;
	}
	/* The parent may be a task itself, which waited only for this. */
	return finalize(tx, task.thread_n, f);
}

int delivery_acknowledge(struct tx *tx, int64_t task_n, int64_t observed_by_run_n, struct failure *f)
{
	return leave(tx, task_n, DELIVERY_ACKNOWLEDGED, observed_by_run_n, f);
}

int delivery_dispose(struct tx *tx, int64_t task_n, struct failure *f)
{
	return leave(tx, task_n, DELIVERY_DISPOSED, 0, f);
}

static int stop_one(struct tx *tx, struct thread_run_row *cohort, enum cohort_state state, struct failure *f)
{
	struct thread_run_row wake;
	struct numbers pending, claimed;
	int rc;

	if (cohort->cohort != COHORT_OPEN)
		return 0;
	cohort->cohort = state;
	if (PUT(tx, thread_run, cohort, cohort->thread_n, f) != 0
		|| list_tasks(&tx->snapshot, cohort, DELIVERY_PENDING, &pending, f) != 0
		|| list_tasks(&tx->snapshot, cohort, DELIVERY_CLAIMED, &claimed, f) != 0
		|| set_deliveries(tx, &pending, DELIVERY_DISPOSED, f) != 0
		|| set_deliveries(tx, &claimed, DELIVERY_DISPOSED, f) != 0)
		return -1;
	rc = delivery_run(&tx->snapshot, cohort, &wake, f);
	return rc == 1 && wake.status == RUN_QUEUED ? run_end(tx, &wake, RUN_CANCELLED, STR_NONE, f) : (rc < 0 ? -1 : 0);
}

int cohort_stop(struct tx *tx, struct thread_run_row *run, enum cohort_state state, struct failure *f)
{
	struct thread_run_row told;
	int rc = cohort_of_wake(&tx->snapshot, run, &told, f);

	if (rc < 0 || (rc == 1 && stop_one(tx, &told, state, f) != 0))
		return -1;
	return stop_one(tx, run, state, f);
}
