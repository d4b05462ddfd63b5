/* Delegation: a child thread with the task as its first message, and the task as its parent sees it. */
#include "threads/engine.h"

#include "base/limits.h"

SQL(SQL_OPEN_TASKS, "SELECT count(*) FROM subagent WHERE thread_n = $1 AND origin = 1 AND delivery < 3 AND status < 3");

static int add_child(struct tx *tx, const struct delegation *in, struct thread_row *out, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	const struct thread_row *parent = in->parent;
	struct str node_id = IDENT(arena, "node:delegated-task", in->command_id);

	*out = (struct thread_row){.id = IDENT(arena, "thread:delegated-task", in->command_id),
		.project_n = parent->project_n,
		.kind = THREAD_AGENT,
		.title = thread_title(arena, in->title, in->task, LIMIT_TASK_TITLE_CHARS),
		.instance_id = in->instance_id,
		.model = in->model,
		.options = in->options,
		.runtime_mode = in->runtime,
		.interaction_mode = in->interaction,
		.branch = parent->branch,
		.worktree_path = parent->worktree_path,
		.parent_n = parent->n,
		.relationship = RELATION_SUBAGENT,
		.root_n = parent->root_n,
		.depth = parent->depth + 1,
		.created_by = BY_AGENT,
		.creation_source = FROM_MCP,
		.namespace = ident_namespace(arena),
		.created_at = tx->snapshot.now,
		.updated_at = tx->snapshot.now};
	if (tx_next(tx, SEQ_thread, &out->n, f) != 0)
		return -1;
	out->forked_from = str_printf(arena, "{\"type\":\"node\",\"nodeId\":\"%.*s\"}", STRF(node_id));
	return PUT(tx, thread, out, out->n, f);
}

static struct str subagent_body(struct arena *arena, const struct subagent_row *task, const struct thread_row *child)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kstr(&w, "subagentId", task->id);
	jw_ktext(&w, "origin", subagent_origin_name(task->origin));
	jw_kstr(&w, "driver", task->driver);
	jw_kstr(&w, "providerInstanceId", task->instance_id);
	jw_kstr(&w, "childThreadId", child->id);
	jw_object_end(&w);
	return buf_str(&out);
}

/* The task in the parent's timeline and tree. */
static int add_task(struct tx *tx, const struct delegation *in, const struct thread_row *child, struct subagent_row *out,
	struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	const struct thread_row *parent = in->parent;
	struct node_row node = {.id = IDENT(arena, "node:delegated-task", in->command_id),
		.thread_n = parent->n,
		.run_n = in->run->n,
		.parent_n = in->run->root_node_n,
		.root_n = in->run->root_node_n,
		.kind = NODE_SUBAGENT,
		.status = WORK_RUNNING,
		.started_at = tx->snapshot.now};
	struct turn_item_row item = {.id = IDENT(arena, "turn-item:delegated-task", in->command_id),
		.thread_n = parent->n,
		.run_n = in->run->n,
		.attempt_n = in->run->attempt_n,
		.type = TYPE_SUBAGENT,
		.status = WORK_RUNNING,
		.title = child->title,
		.started_at = tx->snapshot.now};

	if (PUT(tx, node, &node, parent->n, f) != 0)
		return -1;
	*out = (struct subagent_row){.n = node.n,
		.id = node.id,
		.thread_n = parent->n,
		.run_n = in->run->n,
		.parent_node_n = in->run->root_node_n,
		.origin = ORIGIN_APP_OWNED,
		.created_by = BY_AGENT,
		.driver = in->driver,
		.instance_id = in->instance_id,
		.child_n = child->n,
		.prompt = in->task,
		.title = child->title,
		.model = in->model,
		.options = in->options,
		.completion_wake = in->wake,
		.status = WORK_RUNNING,
		.started_at = tx->snapshot.now,
		.updated_at = tx->snapshot.now};
	item.body = subagent_body(arena, out, child);
	if (item_add(tx, &item, f) != 0)
		return -1;
	out->item_n = item.n;
	return 0;
}

static int add_spawn(struct tx *tx, const struct delegation *in, const struct thread_row *child, int64_t run_n,
	struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct context_transfer_row transfer = {
		.id = IDENT(arena, "context-transfer:subagent_spawn", in->command_id),
		.type = TRANSFER_SUBAGENT_SPAWN,
		.source_n = in->parent->n,
		.target_n = child->n,
		.source_point = str_printf(arena, "{\"threadN\":%lld,\"runN\":%lld}", (long long)in->parent->n, (long long)in->run->n),
		.target_run_n = run_n,
		.status = TRANSFER_IS_CONSUMED,
		.created_by = BY_AGENT,
		.created_at = tx->snapshot.now,
		.updated_at = tx->snapshot.now,
		.consumed_at = tx->snapshot.now};

	return PUT(tx, context_transfer, &transfer, in->parent->n, f);
}

static int check_limits(struct tx *tx, const struct thread_row *parent, struct failure *f)
{
	int64_t open = 0;

	if (parent->depth + 1 > LIMIT_THREAD_DEPTH)
		return fail(f, FAIL_INVALID_REQUEST, "Tasks may be delegated %d levels deep (maxDepth); this thread is at level %lld.",
			LIMIT_THREAD_DEPTH, (long long)parent->depth);
	if (query_int(&tx->snapshot, &open, f, SQL_OPEN_TASKS, "i", parent->n) < 0)
		return -1;
	if (open >= LIMIT_ACTIVE_TASKS)
		return fail(f, FAIL_INVALID_REQUEST,
			"A thread may have %d tasks that are not finished (maxActiveTasksPerThread), and this one has them.",
			LIMIT_ACTIVE_TASKS);
	return 0;
}

int delegate(struct tx *tx, const struct delegation *in, struct subagent_row *out, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct thread_row child;
	struct thread_run_row run = *in->run;
	struct dispatched dispatched;
	struct dispatch message = {.mode = DISPATCH_START,
		.message_id = IDENT(arena, "message:delegated-task", in->command_id),
		.text = in->task,
		.created_by = BY_AGENT,
		.source = FROM_MCP,
		.sender_n = in->parent->n};

	if (check_limits(tx, in->parent, f) != 0 || add_child(tx, in, &child, f) != 0 || add_task(tx, in, &child, out, f) != 0)
		return -1;
	if (run.cohort == COHORT_NONE) {
		run.cohort = COHORT_OPEN;
		if (PUT(tx, thread_run, &run, in->parent->n, f) != 0)
			return -1;
	}
	message.thread_n = child.n;
	if (message_dispatch(tx, &message, &dispatched, f) != 0)
		return -1;
	out->child_run_n = dispatched.run_n;
	if (PUT(tx, subagent, out, in->parent->n, f) != 0)
		return -1;
	return add_spawn(tx, in, &child, dispatched.run_n, f);
}
