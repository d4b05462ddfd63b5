/* t3_thread_launch: a thread of its own, with a folder that is prepared in the background (prepare.c). */
#include "threads/background.h"
#include "threads/commands.h"

/* ---- what may be asked for ---- */

static int refuse_field(struct failure *f, const char *field, const char *why)
{
	return fail_field(f, str_of(field), STR_NONE, "%s", why);
}

static int check_strategy(const struct launch_args *args, struct failure *f)
{
	bool is_worktree = args->strategy == WORKSPACE_WORKTREE, is_existing = args->strategy == WORKSPACE_EXISTING;

	if (args->is_scratch && args->project_id.p != NULL)
		return refuse_field(f, "projectId", "does not go with scratch: true, which needs no project");
	if (args->is_scratch && args->has_strategy)
		return refuse_field(f, "workspaceStrategy", "does not go with scratch: true, which makes a folder of its own");
	if (is_worktree && args->base.p == NULL)
		return refuse_field(f, "workspaceStrategy.baseRef", "is needed for worktree: the ref that it starts from");
	if (!is_worktree && args->base.p != NULL)
		return refuse_field(f, "workspaceStrategy.baseRef", "goes with worktree only");
	if (!is_worktree && args->is_from_origin)
		return refuse_field(f, "workspaceStrategy.startFromOrigin", "goes with worktree only");
	if (is_existing && (args->worktree_path.p == NULL || args->worktree_path.p[0] != '/'))
		return refuse_field(f, "workspaceStrategy.worktreePath", "is needed for existing_worktree: an absolute path");
	if (!is_existing && args->worktree_path.p != NULL)
		return refuse_field(f, "workspaceStrategy.worktreePath", "goes with existing_worktree only");
	return 0;
}

static int check_caller(struct tx *tx, const struct asking *asking, struct failure *f)
{
	if (asking->thread.runtime_mode != RUNTIME_FULL_ACCESS || asking->thread.interaction_mode != INTERACTION_DEFAULT)
		return fail(f, FAIL_CAPABILITY_DENIED, "Only a thread with full-access and default may launch threads; this one has %s and %s.",
			runtime_mode_names[asking->thread.runtime_mode], interaction_mode_names[asking->thread.interaction_mode]);
	return asking_need_run(tx, asking, f);
}

/* ---- the project ---- */

SQL(SQL_SCRATCH, "SELECT n FROM project WHERE kind = 1 AND deleted_at IS NULL");

static int scratch_project(struct tx *tx, const struct threads *threads, struct project_row *out, struct failure *f)
{
	int64_t n;
	int rc = query_int(&tx->snapshot, &n, f, SQL_SCRATCH, "");

	if (rc == 1)
		return NEED(&tx->snapshot, project, n, out, f);
	*out = (struct project_row){.id = STR("project:scratch"),
		.title = STR("No project"),
		.workspace_root = str_printf(tx->snapshot.arena, "%s/scratch", threads->data),
		.kind = 1,
		.created_at = tx->snapshot.now,
		.updated_at = tx->snapshot.now};
	return rc < 0 ? -1 : PUT(tx, project, out, 0, f);
}

static int choose_project(struct tx *tx, const struct asking *asking, const struct launch_args *args, struct project_row *out,
	struct failure *f)
{
	int64_t n = asking->thread.project_n;
	int rc;

	if (args->is_scratch)
		return scratch_project(tx, asking->asker->threads, out, f);
	if (args->project_id.p == NULL)
		return NEED(&tx->snapshot, project, n, out, f);
	rc = row_find(&tx->snapshot, ROW_project, args->project_id, &n, f);
	if (rc == 1 && NEED(&tx->snapshot, project, n, out, f) != 0)
		rc = -1;
	if (rc < 0)
		return -1;
	return rc == 1 && out->deleted_at == 0 && out->kind == 0 ? 0 : refuse_field(f, "projectId", "names no project");
}

/* ---- the thread ---- */

static int add_thread(struct tx *tx, const struct asking *asking, const struct launch_args *args, const struct chosen *chosen,
	struct thread_row *thread, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	enum runtime_mode runtime;
	enum interaction_mode interaction;

	if (modes_choose(asking, args->runtime, args->interaction, &runtime, &interaction, f) != 0
		|| tx_next(tx, SEQ_thread, &thread->n, f) != 0)
		return -1;
	thread->id = ident_random(arena, "thread:launch");
	thread->kind = THREAD_AGENT;
	thread->title = args->title;
	thread->instance_id = chosen->instance->id;
	thread->model = chosen->model;
	thread->runtime_mode = runtime;
	thread->interaction_mode = interaction;
	thread->workspace = args->is_scratch ? WORKSPACE_SCRATCH : args->strategy;
	/* That of a work tree is told when it exists: it may get another name. */
	thread->branch = thread->workspace == WORKSPACE_WORKTREE ? STR_NONE : args->branch;
	thread->relationship = RELATION_NONE;
	thread->root_n = thread->n;
	thread->created_by = asking->asker->thread_n == 0 ? BY_USER : BY_AGENT;
	thread->creation_source = FROM_MCP;
	thread->namespace = ident_namespace(arena);
	thread->created_at = thread->updated_at = tx->snapshot.now;
	return PUT(tx, thread, thread, thread->n, f);
}

static struct str order_of(struct arena *arena, const struct launch_args *args)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kstr_opt(&w, "baseRef", args->base);
	jw_kstr_opt(&w, "branch", args->branch);
	jw_kbool(&w, "startFromOrigin", args->is_from_origin);
	jw_object_end(&w);
	return buf_str(&out);
}

static int launch(struct tx *tx, const struct asking *asking, const struct launch_args *args, const struct command *command,
	struct str folder, struct thread_row *thread, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct dispatch message = {.mode = DISPATCH_PREPARE,
		.message_id = IDENT(arena, "message:launch", command->id),
		.text = args->message,
		.created_by = asking->asker->thread_n == 0 ? BY_USER : BY_AGENT,
		.source = FROM_MCP,
		.sender_n = asking->thread.n};
	struct dispatched dispatched = {0};
	struct project_row project;
	struct chosen chosen;

	*thread = (struct thread_row){.worktree_path = folder};
	if (choose_project(tx, asking, args, &project, f) != 0 || target_choose(tx, asking, &args->target, &chosen, f) != 0)
		return -1;
	thread->project_n = project.n;
	if (add_thread(tx, asking, args, &chosen, thread, f) != 0)
		return -1;
	message.thread_n = thread->n;
	if (args->message.p != NULL && message_dispatch(tx, &message, &dispatched, f) != 0)
		return -1;
	if (preparation_begin(tx, thread, dispatched.run_n, order_of(arena, args), f) != 0)
		return -1;
	return command_accept(tx, command, str_printf(arena, "{\"threadN\":%lld}", (long long)thread->n), f);
}

/* ---- the answer ---- */

static int answer(struct snapshot *s, const struct thread_row *thread, struct json_writer *w, struct failure *f)
{
	struct project_row project;
	struct thread_run_row run;
	int rc = NEED(s, project, thread->project_n, &project, f) != 0 ? -1 : thread_latest_run(s, thread->n, &run, f);

	if (rc < 0)
		return -1;
	jw_kstr(w, "threadId", thread->id);
	jw_kstr(w, "projectId", project.id);
	jw_kobject(w, "modelSelection");
	jw_kstr(w, "instanceId", thread->instance_id);
	jw_key(w, "model");
	if (thread->model.p == NULL)
		jw_null(w);
	else
		jw_str(w, thread->model);
	jw_object_end(w);
	jw_key(w, "runId");
	if (rc == 0) {
		jw_null(w);
		jw_key(w, "status");
		jw_null(w);
		return 0;
	}
	jw_str(w, ident_run(s->arena, thread->id, run.ordinal));
	jw_ktext(w, "status", run_status_name(run.status));
	return 0;
}

static int answer_again(struct snapshot *s, const struct command *command, struct json_writer *w, struct failure *f)
{
	struct json_error error;
	json_auto_t *result = json_read(command->result, &error);
	struct thread_row thread;
	int rc = thread_get(s, json_integer_value(json_object_get(result, "threadN")), &thread, f);

	if (rc == 1)
		return answer(s, &thread, w, f);
	return rc < 0 ? -1 : fail(f, FAIL_THREAD_NOT_FOUND, "The thread that was launched has been deleted.");
}

/* ---- */

/* What the caller names is looked at before anything is made. 1: it is being looked at. */
static int look_at_path(struct tx *tx, struct asked *asked, const struct asking *asking, const struct launch_args *args,
	struct str *out, struct failure *f)
{
	struct threads *threads = asked->asker->threads;
	struct project_row project;
	int rc = 0;

	if (asked->handle == 0) {
		if (choose_project(tx, asking, args, &project, f) != 0)
			return -1;
		asked->handle = worktree_look(threads, asking->thread.n, project.workspace_root, args->worktree_path);
		if (asked->handle == 0)
			return fail(f, FAIL_UNAVAILABLE, "Too many folders are being looked at: try again.");
	} else {
		rc = worktree_looked(threads, asked->handle, tx->snapshot.arena, out, f);
	}
	if (rc < 0)
		return fail_field(f, STR("workspaceStrategy.worktreePath"), args->worktree_path, "is no work tree of the project's repository: %.*s", STRF(f->message));
	if (rc == 1)
		return 0;
	if (!asked->may_wait)
		return fail(f, FAIL_UNAVAILABLE, "Looking at worktreePath takes too long: try again.");
	asked->watched[0] = asking->thread.n;
	asked->watched[1] = 0;
	return 1;
}

int command_launch(struct tx *tx, struct asked *asked, const struct launch_args *args, struct json_writer *w, struct failure *f)
{
	struct asking asking;
	struct command command;
	struct thread_row thread;
	struct str folder = STR_NONE;
	int rc;

	if (check_strategy(args, f) != 0 || asking_resolve(tx, asked->asker, &asking, f) != 0)
		return -1;
	command_name(&command, tx->snapshot.arena, &asking, "launch", asked->key, asked->fingerprint);
	rc = command_seen(tx, &command, f);
	if (rc != 0)
		return rc < 0 ? -1 : answer_again(&tx->snapshot, &command, w, f);
	if (check_caller(tx, &asking, f) != 0)
		return -1;
	if (args->strategy == WORKSPACE_EXISTING) {
		rc = look_at_path(tx, asked, &asking, args, &folder, f);
		if (rc != 0)
			return rc;
	}
	if (launch(tx, &asking, args, &command, folder, &thread, f) != 0)
		return -1;
	return answer(&tx->snapshot, &thread, w, f);
}
