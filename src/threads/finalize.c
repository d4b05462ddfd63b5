/* The result of a task: found when its child's work is done, published to its parent once, never changed afterwards. */
#include "threads/engine.h"

#include "base/limits.h"

SQL(SQL_WORK_RUNS,
	"SELECT r.n, r.status, r.ordinal, r.started_at FROM thread_run r JOIN message m ON m.n = r.message_n"
	" WHERE r.thread_n = $1 AND r.status <> 9 AND m.is_monitor = 0"
	" ORDER BY r.ordinal DESC");
SQL(SQL_ANY_RUN, "SELECT n FROM thread_run WHERE thread_n = $1 ORDER BY ordinal LIMIT 1");
/* Tasks of its own that are not over, or whose results it has not been told of. */
SQL(SQL_OPEN_CHILDREN,
	"SELECT n FROM subagent WHERE thread_n = $1 AND (status < 3 OR delivery IN (1, 2)) AND origin = 1 AND delivery < 3 LIMIT 1");
SQL(SQL_BACKGROUND,
	"SELECT n FROM provider_thread WHERE thread_n = $1 AND background <> '[]' AND status IN (1, 2) LIMIT 1");

static int newest_work(struct snapshot *s, int64_t child_n, bool *is_working, int64_t *result_n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	*is_working = false;
	*result_n = 0;
	if (query(s, &q, f, SQL_WORK_RUNS, "i", child_n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (!run_is_terminal(col_int(&q, 1)))
			*is_working = true;
		else if (*result_n == 0 && (!col_is_null(&q, 3) || col_int(&q, 2) == 1))
			*result_n = col_int(&q, 0);
	}
	return rc;
}

static int waits_for_children(struct snapshot *s, int64_t child_n, struct failure *f)
{
	int64_t n;
	int rc = query_int(s, &n, f, SQL_OPEN_CHILDREN, "i", child_n);

	return rc != 0 ? rc : query_int(s, &n, f, SQL_BACKGROUND, "i", child_n);
}

int child_progress(struct snapshot *s, int64_t child_n, enum child_state *out, struct thread_run_row *result,
	struct failure *f)
{
	bool is_working;
	int64_t result_n;
	int rc;

	*result = (struct thread_run_row){0};
	*out = CHILD_WORKING;
	if (newest_work(s, child_n, &is_working, &result_n, f) != 0)
		return -1;
	if (is_working)
		return 0;
	/* Every run was rolled back: the first one stands for them, and counts as cancelled. */
	if (result_n == 0 && query_int(s, &result_n, f, SQL_ANY_RUN, "i", child_n) < 0)
		return -1;
	if (result_n == 0)
		return 0;
	rc = waits_for_children(s, child_n, f);
	if (rc < 0)
		return -1;
	*out = rc == 1 ? CHILD_WAITS_FOR_CHILDREN : CHILD_HAS_RESULT;
	return NEED(s, thread_run, result_n, result, f);
}

/* What an attempt that was given up said last may end after all that its successor has said. */
SQL(SQL_ANSWERS,
	"SELECT n FROM turn_item WHERE run_n = $1 AND type = 1 ORDER BY attempt_n DESC, updated_at DESC, ordinal DESC");

static int newest_answer(struct snapshot *s, int64_t run_n, struct str *text, int64_t *item_n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_ANSWERS, "i", run_n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct turn_item_row item;

		if (NEED(s, turn_item, col_int(&q, 0), &item, f) != 0 || item_text(s, &item, text, f) != 0)
			return -1;
		if (!str_is_blank(*text)) {
			*item_n = item.n;
			return 1;
		}
	}
	return rc;
}

static struct str failure_message(struct arena *arena, struct str failure)
{
	struct json_error error;
	json_auto_t *value = json_read(failure, &error);

	return str_dup(arena, json_member_str(value, "message"));
}

int run_result(struct snapshot *s, const struct thread_run_row *run, struct str *text, int64_t *item_n, struct failure *f)
{
	int rc;

	*item_n = 0;
	*text = STR_NONE;
	if (run->status == RUN_FAILED && run->failure.p != NULL)
		*text = failure_message(s->arena, run->failure);
	if (text->n > 0)
		return 0;
	rc = newest_answer(s, run->n, text, item_n, f);
	if (rc < 0)
		return -1;
	if (rc == 0)
		*text = run->status == RUN_COMPLETED
			? STR("The task finished without an assistant message.")
			: str_printf(s->arena, "The task ended with status %s, without an assistant message.",
				  run_status_name(run->status));
	if (utf8_count(*text) > LIMIT_RESULT_CHARS) {
		text->n = utf8_offset(*text, LIMIT_RESULT_CHARS);
		*item_n = 0;
	}
	return 0;
}

static int add_result_transfer(struct tx *tx, const struct subagent_row *task, const struct thread_run_row *result,
	int64_t item_n, int64_t *out, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct context_transfer_row transfer = {.id = IDENT(arena, "context-transfer:subagent_result", task->id),
		.type = TRANSFER_SUBAGENT_RESULT,
		.source_n = task->child_n,
		.target_n = task->thread_n,
		.source_point = str_printf(arena, "{\"threadN\":%lld,\"runN\":%lld,\"itemN\":%lld}", (long long)task->child_n,
			(long long)result->n, (long long)item_n),
		.target_run_n = task->run_n,
		.status = TRANSFER_IS_CONSUMED,
		.created_by = BY_SYSTEM,
		.created_at = tx->snapshot.now,
		.updated_at = tx->snapshot.now,
		.consumed_at = tx->snapshot.now};

	if (PUT(tx, context_transfer, &transfer, task->thread_n, f) != 0)
		return -1;
	*out = transfer.n;
	return 0;
}

static int end_node_and_item(struct tx *tx, const struct subagent_row *task, struct failure *f)
{
	struct node_row node;
	struct turn_item_row item;

	if (NEED(&tx->snapshot, node, task->n, &node, f) != 0 || NEED(&tx->snapshot, turn_item, task->item_n, &item, f) != 0)
		return -1;
	node.status = task->status;
	node.completed_at = tx->snapshot.now;
	item.text = task->result;
	return PUT(tx, node, &node, task->thread_n, f) != 0 ? -1 : item_end(tx, &item, (enum work_status)task->status, f);
}

SQL(SQL_TASK_OF_CHILD, "SELECT n FROM subagent WHERE child_n = $1");

int finalize(struct tx *tx, int64_t child_n, struct failure *f)
{
	struct subagent_row task;
	struct thread_run_row result;
	enum child_state state;
	int64_t n;
	int rc = query_int(&tx->snapshot, &n, f, SQL_TASK_OF_CHILD, "i", child_n);

	if (rc <= 0)
		return rc;
	if (NEED(&tx->snapshot, subagent, n, &task, f) != 0)
		return -1;
	if (task.result_transfer_n != 0)
		return 0;
	if (child_progress(&tx->snapshot, child_n, &state, &result, f) != 0)
		return -1;
	if (state != CHILD_HAS_RESULT)
		return 0;
	if (run_result(&tx->snapshot, &result, &task.result, &task.result_item_n, f) != 0
		|| add_result_transfer(tx, &task, &result, task.result_item_n, &task.result_transfer_n, f) != 0)
		return -1;
	task.status = work_status_of(result.status);
	task.result_run_n = result.n;
	task.completed_at = task.updated_at = tx->snapshot.now;
	if (PUT(tx, subagent, &task, task.thread_n, f) != 0 || end_node_and_item(tx, &task, f) != 0)
		return -1;
	if (delivery_plan(tx, &task, f) != 0)
		return -1;
	/* Nobody is to be told: the parent, a task itself, waited only for this. */
	return finalize(tx, task.thread_n, f);
}
