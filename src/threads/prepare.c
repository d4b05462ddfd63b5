/* The folder of a thread that was launched: made in the background while its first run is preparing. The run is let go when
 * the folder is there, or fails; the agent never starts elsewhere. */
#include "threads/engine.h"

#include "base/limits.h"

/* ---- what is shown of it ---- */

static struct str item_id(struct arena *arena, const struct thread_row *thread)
{
	return IDENT(arena, "turn-item:preparation", thread->id);
}

static struct str step_body(struct arena *arena, const char *step)
{
	return str_printf(arena, "{\"progress\":\"%s\"}", step);
}

int preparation_begin(struct tx *tx, const struct thread_row *thread, int64_t run_n, struct str order, struct failure *f)
{
	struct turn_item_row item = {.id = item_id(tx->snapshot.arena, thread),
		.thread_n = thread->n,
		.run_n = run_n,
		.type = TYPE_NOTICE,
		.status = WORK_RUNNING,
		.title = STR("Preparing workspace"),
		.body = step_body(tx->snapshot.arena, workspace_kind_name(thread->workspace)),
		.started_at = tx->snapshot.now};

	if (item_add(tx, &item, f) != 0)
		return -1;
	return effect_add(tx, thread->n, run_n, EFFECT_PREPARE, order, f);
}

static int read_item(struct tx *tx, const struct thread_row *thread, struct turn_item_row *out, struct failure *f)
{
	int64_t n;
	int rc = row_find(&tx->snapshot, ROW_turn_item, item_id(tx->snapshot.arena, thread), &n, f);

	if (rc <= 0)
		return rc < 0 ? -1 : fail(f, FAIL_INTERNAL, "The preparation of a thread has no item.");
	return NEED(&tx->snapshot, turn_item, n, out, f);
}

static int end_item(struct tx *tx, const struct thread_row *thread, enum work_status status, struct failure *f)
{
	struct turn_item_row item;

	if (read_item(tx, thread, &item, f) != 0)
		return -1;
	return work_is_terminal(item.status) ? 0 : item_end(tx, &item, status, f);
}

static int show_setup(struct tx *tx, const struct thread_row *thread, struct failure *f)
{
	struct turn_item_row item;

	if (read_item(tx, thread, &item, f) != 0)
		return -1;
	item.body = step_body(tx->snapshot.arena, "setup");
	return item_change(tx, &item, f);
}

/* Without a run there is nothing else that could say so. */
static int error_item(struct tx *tx, const struct thread_row *thread, struct str failure, struct failure *f)
{
	struct turn_item_row item = {.id = IDENT(tx->snapshot.arena, "turn-item:preparation-error", thread->id),
		.thread_n = thread->n,
		.type = TYPE_ERROR,
		.status = WORK_COMPLETED,
		.body = str_printf(tx->snapshot.arena, "{\"failure\":%.*s}", STRF(failure)),
		.started_at = tx->snapshot.now,
		.completed_at = tx->snapshot.now};

	return item_add(tx, &item, f);
}

/* ---- its end ---- */

SQL(SQL_QUEUED, "SELECT n FROM thread_run WHERE thread_n = $1 AND status = 1 AND status < 5 ORDER BY n DESC LIMIT 1");

int preparation_refuse_queue(struct tx *tx, const struct thread_row *thread, struct failure *f)
{
	struct agent_failure why = {.class = CLASS_VALIDATION,
		.code = STR("workspace_missing"),
		.message = STR("The thread's folder was not made."),
		.is_retryable = YES_NO};
	struct thread_run_row run;
	int64_t n;
	int rc = 0;

	while (thread_is_homeless(thread)
		&& (rc = query_int(&tx->snapshot, &n, f, SQL_QUEUED, "i", thread->n)) == 1)
		if (NEED(&tx->snapshot, thread_run, n, &run, f) != 0
			|| run_end(tx, &run, RUN_FAILED, failure_json(tx->snapshot.arena, &why), f) != 0)
			return -1;
	return rc;
}

static int end_in(struct tx *tx, const struct thread_row *thread, int64_t run_n, enum run_status status, struct str failure,
	struct failure *f)
{
	struct thread_run_row run;

	if (end_item(tx, thread, work_status_of(status), f) != 0 || preparation_refuse_queue(tx, thread, f) != 0)
		return -1;
	if (run_n == 0)
		return error_item(tx, thread, failure, f) != 0 ? -1 : schedule(tx, f);
	return NEED(&tx->snapshot, thread_run, run_n, &run, f) != 0 ? -1 : run_end(tx, &run, status, failure, f);
}

/* Into the queue, from where it starts at once if there is a place; before whatever was said to the thread meanwhile. */
static int let_go(struct tx *tx, const struct thread_row *thread, int64_t run_n, struct failure *f)
{
	struct thread_run_row run;

	if (end_item(tx, thread, WORK_COMPLETED, f) != 0)
		return -1;
	if (run_n != 0) {
		if (NEED(&tx->snapshot, thread_run, run_n, &run, f) != 0)
			return -1;
		run.status = RUN_QUEUED;
		run.queue_position = 1;
		if (PUT(tx, thread_run, &run, thread->n, f) != 0)
			return -1;
	}
	return schedule(tx, f);
}

static int bind(struct tx *tx, struct thread_row *thread, const struct prepared *in, struct failure *f)
{
	if (in->path.p == NULL)
		return 0;
	thread->worktree_path = in->path;
	if (in->branch.p != NULL)
		thread->branch = in->branch;
	return thread_touch(tx, thread, f);
}

static int next_step(struct tx *tx, const struct thread_row *thread, const struct prepared *in, struct failure *f)
{
	struct project_row project;

	if (NEED(&tx->snapshot, project, thread->project_n, &project, f) != 0)
		return -1;
	if (in->was_setup || thread->workspace != WORKSPACE_WORKTREE || project.setup_script.n == 0)
		return let_go(tx, thread, in->run_n, f);
	return show_setup(tx, thread, f) != 0 ? -1 : effect_add(tx, thread->n, in->run_n, EFFECT_SETUP, STR_NONE, f);
}

SQL(SQL_DONE, "DELETE FROM effect WHERE n = $1");

int preparation_step(struct tx *tx, const struct prepared *in, struct failure *f)
{
	struct thread_row thread;
	int64_t done = tx_run(tx, f, SQL_DONE, "i", in->effect_n);

	if (done < 0 || NEED(&tx->snapshot, thread, in->thread_n, &thread, f) != 0)
		return -1;
	/* A folder that is there by now stays with its thread, also when nobody waits for it any more. */
	if (in->failure.p == NULL && bind(tx, &thread, in, f) != 0)
		return -1;
	if (done == 0)
		return 0;
	return in->failure.p != NULL ? end_in(tx, &thread, in->run_n, RUN_FAILED, in->failure, f)
				     : next_step(tx, &thread, in, f);
}

SQL(SQL_CUT, "SELECT n, thread_n, run_n FROM effect WHERE type IN (5, 6) ORDER BY n LIMIT 1");

static int read_cut(struct snapshot *s, int64_t out[3], struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_CUT, "") != 0)
		return -1;
	rc = query_next(&q, f);
	for (int i = 0; rc == 1 && i < 3; i++)
		out[i] = col_int(&q, i);
	return rc;
}

int preparations_cut(struct tx *tx, struct failure *f)
{
	struct agent_failure why = {.class = CLASS_VALIDATION,
		.code = STR("cancelled"),
		.message = STR("The server was restarted while the thread's folder was prepared."),
		.is_retryable = YES_YES};
	struct str failure = failure_json(tx->snapshot.arena, &why);
	struct thread_row thread;
	int64_t cut[3];
	int rc;

	while ((rc = read_cut(&tx->snapshot, cut, f)) == 1)
		if (tx_run(tx, f, SQL_DONE, "i", cut[0]) < 0 || NEED(&tx->snapshot, thread, cut[1], &thread, f) != 0
			|| end_in(tx, &thread, cut[2], RUN_CANCELLED, failure, f) != 0)
			return -1;
	return rc;
}
