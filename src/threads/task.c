/* A task as its parent sees it. */
#include "threads/command.h"

struct str run_id_of(struct snapshot *s, const struct thread_run_row *run, struct failure *f)
{
	struct thread_row thread;

	return NEED(s, thread, run->thread_n, &thread, f) != 0 ? STR_NONE : ident_run(s->arena, thread.id, run->ordinal);
}

SQL(SQL_PENDING_REQUEST, "SELECT n FROM runtime_request WHERE thread_n = $1 AND status = 0 LIMIT 1");
SQL(SQL_LATER_RUNS, "SELECT n FROM thread_run WHERE thread_n = $1 AND ordinal > $2 AND status < 5 LIMIT 1");
/* Newest ended run that is the original one or began, and is no report of a monitor. */
SQL(SQL_LATEST_ENDED,
	"SELECT r.n FROM thread_run r JOIN message m ON m.n = r.message_n WHERE r.thread_n = $1 AND r.status BETWEEN 5 AND 8"
	" AND (r.n = $2 OR r.started_at IS NOT NULL)"
	" AND m.is_monitor = 0 ORDER BY r.ordinal DESC LIMIT 1");

struct looking {
	struct snapshot *s;
	const struct subagent_row *task;
	struct thread_run_row original;
	enum child_state state;
	struct thread_run_row result; /* of the child's work, when it has one */
};

static int look(struct looking *l, struct failure *f)
{
	if (NEED(l->s, thread_run, l->task->child_run_n, &l->original, f) != 0)
		return -1;
	return child_progress(l->s, l->task->child_n, &l->state, &l->result, f);
}

static const char *word_of_run(int64_t status)
{
	if (run_is_terminal(status))
		return work_status_name(work_status_of(status));
	return status == RUN_QUEUED ? "queued" : status == RUN_WAITING ? "waiting" : "running";
}

static int word(struct looking *l, const char **out, struct failure *f)
{
	int64_t n;
	int rc;

	if (l->task->result_transfer_n != 0) {
		*out = work_status_name(l->task->status);
		return 0;
	}
	if (l->state == CHILD_HAS_RESULT) {
		*out = word_of_run(l->result.status);
		return 0;
	}
	/* A person is needed: the parent should know. */
	rc = query_int(l->s, &n, f, SQL_PENDING_REQUEST, "i", l->task->child_n);
	if (rc < 0)
		return -1;
	*out = l->original.status == RUN_QUEUED ? "queued" : rc == 1 ? "waiting" : "running";
	return 0;
}

void text_or_null(struct json_writer *w, const char *key, struct str text)
{
	if (text.p == NULL) {
		jw_key(w, key);
		jw_null(w);
	} else {
		jw_kstr(w, key, text);
	}
}

static int transfer_id(struct snapshot *s, int64_t n, struct str *out, struct failure *f)
{
	struct context_transfer_row transfer;

	*out = STR_NONE;
	if (n == 0)
		return 0;
	if (NEED(s, context_transfer, n, &transfer, f) != 0)
		return -1;
	*out = transfer.id;
	return 0;
}

static int write_latest(struct looking *l, struct json_writer *w, struct failure *f)
{
	struct str id = STR_NONE, summary = STR_NONE, transfer = STR_NONE;
	struct thread_run_row run;
	int64_t n, item_n;
	int rc = query_int(l->s, &n, f, SQL_LATEST_ENDED, "ii", l->task->child_n, l->task->child_run_n);

	if (rc < 0)
		return -1;
	if (rc == 1) {
		if (NEED(l->s, thread_run, n, &run, f) != 0 || run_result(l->s, &run, &summary, &item_n, f) != 0)
			return -1;
		id = run_id_of(l->s, &run, f);
		if (n == l->task->result_run_n && transfer_id(l->s, l->task->result_transfer_n, &transfer, f) != 0)
			return -1;
	}
	text_or_null(w, "latestTerminalRunId", id);
	text_or_null(w, "latestTerminalStatus", rc == 1 ? str_of(run_status_name(run.status)) : STR_NONE);
	text_or_null(w, "latestTerminalSummary", summary);
	text_or_null(w, "latestTerminalResultContextTransferId", transfer);
	return 0;
}

static const char *work_state(const struct looking *l)
{
	if (l->task->result_transfer_n != 0 || l->state == CHILD_HAS_RESULT)
		return "result_available";
	return l->state == CHILD_WAITS_FOR_CHILDREN ? "waiting_for_children" : "working";
}

static int summary_of(struct looking *l, struct str *out, struct failure *f)
{
	int64_t item_n;

	*out = l->task->result;
	if (out->p != NULL || l->state != CHILD_HAS_RESULT)
		return 0;
	return run_result(l->s, &l->result, out, &item_n, f);
}

int task_write(struct snapshot *s, const struct subagent_row *task, bool wait_timed_out, struct json_writer *w,
	bool *is_over, struct failure *f)
{
	struct looking l = {.s = s, .task = task};
	struct thread_row child;
	struct str summary, transfer;
	const char *status;
	int64_t n;
	int later;

	if (look(&l, f) != 0 || word(&l, &status, f) != 0 || NEED(s, thread, task->child_n, &child, f) != 0
		|| summary_of(&l, &summary, f) != 0 || transfer_id(s, task->result_transfer_n, &transfer, f) != 0)
		return -1;
	later = query_int(s, &n, f, SQL_LATER_RUNS, "ii", task->child_n, l.original.ordinal);
	if (later < 0)
		return -1;
	*is_over = task->result_transfer_n != 0 || l.state == CHILD_HAS_RESULT;
	jw_kstr(w, "taskId", task->id);
	jw_kstr(w, "childThreadId", child.id);
	jw_kstr(w, "childRunId", ident_run(s->arena, child.id, l.original.ordinal));
	jw_kstr(w, "childNodeId", task->id);
	jw_ktext(w, "status", status);
	jw_ktext(w, "workState", work_state(&l));
	jw_kbool(w, "hasPendingChildRuns", later == 1);
	jw_kstr(w, "providerInstanceId", task->instance_id);
	text_or_null(w, "model", task->model);
	text_or_null(w, "summary", summary);
	text_or_null(w, "resultContextTransferId", transfer);
	if (write_latest(&l, w, f) != 0)
		return -1;
	jw_kbool(w, "waitTimedOut", wait_timed_out);
	return 0;
}
