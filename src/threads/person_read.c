/* What a person is shown of threads. */
#include "threads/person.h"

/* ---- finding by a part of an id ---- */

/* $2: the first text behind all that begin with $1. */
SQL(SQL_THREAD_BEGINS, "SELECT n FROM thread WHERE id >= $1 AND id < $2 AND deleted_at IS NULL LIMIT 2");
SQL(SQL_THREAD_ENDS,
	"SELECT n FROM thread WHERE substr(id, length(id) - length($1) + 1) = $1 AND deleted_at IS NULL ORDER BY n LIMIT 2");
SQL(SQL_REQUEST_BEGINS, "SELECT n FROM runtime_request WHERE id >= $1 AND id < $2 LIMIT 2");
SQL(SQL_REQUEST_ENDS,
	"SELECT n FROM runtime_request WHERE substr(id, length(id) - length($1) + 1) = $1 ORDER BY n LIMIT 2");

#define MIN_PART 3 /* characters of a part of an id */

static int first_of_two(struct query *q, struct str part, int64_t *out, struct failure *f)
{
	int rc = query_next(q, f);

	if (rc != 1)
		return rc;
	*out = col_int(q, 0);
	rc = query_next(q, f);
	if (rc <= 0)
		return rc < 0 ? -1 : 1;
	(void)fail(f, FAIL_AMBIGUOUS_ID, "More than one id begins or ends with %.*s.", (int)utf8_cut(part, 200), part.p);
	fail_detail_str(f, "prefix", part);
	return -1;
}

/* 1, 0 none, -1. */
static int find_part(struct snapshot *s, const char *begins, const char *ends, struct str part, int64_t *out,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	AUTO(query_endp) struct query end = {0};
	struct str behind = str_join(s->arena, part, STR("\xf4\x8f\xbf\xbf"));
	int rc;

	if (part.n < MIN_PART)
		return 0;
	if (query(s, &q, f, begins, "ss", part, behind) != 0)
		return -1;
	rc = first_of_two(&q, part, out, f);
	if (rc != 0)
		return rc;
	return query(s, &end, f, ends, "s", part) != 0 ? -1 : first_of_two(&end, part, out, f);
}

int person_thread(struct snapshot *s, struct str id, struct thread_row *out, struct failure *f)
{
	int64_t n;
	int rc = row_find(s, ROW_thread, id, &n, f);

	if (rc == 0)
		rc = find_part(s, SQL_THREAD_BEGINS, SQL_THREAD_ENDS, id, &n, f);
	if (rc == 1)
		rc = thread_get(s, n, out, f);
	if (rc == 0)
		return fail(f, FAIL_THREAD_NOT_FOUND, "There is no thread %.*s.", (int)utf8_cut(id, 200), id.p);
	return rc < 0 ? -1 : 0;
}

SQL(SQL_OPEN_OF_THREAD, "SELECT n FROM runtime_request WHERE thread_n = $1 AND status = 0 ORDER BY n LIMIT 2");

static int only_open(struct snapshot *s, struct str id, int64_t thread_n, int64_t *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_OPEN_OF_THREAD, "i", thread_n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 0)
		return fail(f, FAIL_NOT_FOUND, "The thread %.*s has no open question.", (int)utf8_cut(id, 200), id.p);
	*out = rc == 1 ? col_int(&q, 0) : 0;
	if (rc == 1 && (rc = query_next(&q, f)) == 1)
		return fail(f, FAIL_AMBIGUOUS_ID, "The thread has more than one open question: name it.");
	return rc;
}

int person_request(struct snapshot *s, struct str id, struct runtime_request_row *out, struct failure *f)
{
	struct thread_row thread;
	struct failure no_thread;
	int64_t n;
	int rc = row_find(s, ROW_runtime_request, id, &n, f);

	if (rc == 0)
		rc = find_part(s, SQL_REQUEST_BEGINS, SQL_REQUEST_ENDS, id, &n, f);
	failure_init(&no_thread, s->arena);
	if (rc == 0 && person_thread(s, id, &thread, &no_thread) == 0) {
		if (only_open(s, id, thread.n, &n, f) != 0)
			return -1;
		rc = 1;
	}
	if (rc == 0)
		return fail(f, FAIL_NOT_FOUND, "There is no question %.*s.", (int)utf8_cut(id, 200), id.p);
	return rc < 0 ? -1 : NEED(s, runtime_request, n, out, f);
}

/* ---- one thread in a listing ---- */

SQL(SQL_OPEN_REQUESTS, "SELECT count(*) FROM runtime_request WHERE thread_n = $1 AND status = 0");
SQL(SQL_QUEUED, "SELECT count(*) FROM thread_run WHERE thread_n = $1 AND status = 1 AND status < 5");
SQL(SQL_THREAD_ID, "SELECT id FROM thread WHERE n = $1");

struct shell {
	struct thread_row thread;
	struct project_row project;
	struct thread_run_row run; /* the active one, else the newest; n 0: none */
	struct str cwd, parent;
	int64_t requests, queued;
};

static int read_shell(struct snapshot *s, int64_t n, struct shell *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	*out = (struct shell){.requests = 0};
	if (NEED(s, thread, n, &out->thread, f) != 0 || NEED(s, project, out->thread.project_n, &out->project, f) != 0
		|| thread_cwd(s, &out->thread, &out->cwd, f) != 0
		|| query_int(s, &out->requests, f, SQL_OPEN_REQUESTS, "i", n) < 0
		|| query_int(s, &out->queued, f, SQL_QUEUED, "i", n) < 0)
		return -1;
	rc = thread_blocking_run(s, n, &out->run, f);
	if (rc == 0)
		rc = thread_latest_run(s, n, &out->run, f);
	if (rc == 0)
		out->run.n = 0;
	if (rc < 0 || out->thread.parent_n == 0)
		return rc < 0 ? -1 : 0;
	if (query(s, &q, f, SQL_THREAD_ID, "i", out->thread.parent_n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1)
		out->parent = col_str(&q, 0);
	return rc < 0 ? -1 : 0;
}

static const char *status_of(const struct shell *shell)
{
	if (shell->requests > 0)
		return "asks";
	return shell->run.n == 0 ? "idle" : run_status_name(shell->run.status);
}

static void write_shell(const struct shell *shell, struct json_writer *w)
{
	const struct thread_row *thread = &shell->thread;

	jw_kint(w, "n", thread->n);
	jw_kstr(w, "id", thread->id);
	jw_kstr(w, "title", thread->title);
	jw_ktext(w, "kind", thread_kind_name(thread->kind));
	jw_ktext(w, "status", status_of(shell));
	jw_ktext(w, "runStatus", shell->run.n == 0 ? "idle" : run_status_name(shell->run.status));
	jw_kint(w, "queuedRuns", shell->queued);
	jw_kint(w, "openRequests", shell->requests);
	jw_kstr(w, "project", shell->project.title);
	jw_kstr(w, "projectRoot", shell->project.workspace_root);
	jw_kstr(w, "cwd", shell->cwd);
	jw_kstr_opt(w, "branch", thread->branch);
	jw_kstr(w, "providerInstanceId", thread->instance_id);
	jw_kstr_opt(w, "model", thread->model);
	jw_ktext(w, "runtimeMode", runtime_mode_names[thread->runtime_mode]);
	jw_ktext(w, "interactionMode", interaction_mode_names[thread->interaction_mode]);
	jw_kstr_opt(w, "parentThreadId", shell->parent);
	jw_ktext(w, "relationship", relationship_name(thread->relationship));
	jw_kint(w, "depth", thread->depth);
	jw_ktime(w, "createdAt", thread->created_at);
	jw_ktime(w, "updatedAt", thread->updated_at);
	if (thread->archived_at != 0)
		jw_ktime(w, "archivedAt", thread->archived_at);
}

/* ---- the listing ---- */

SQL(SQL_THREADS, "SELECT n, archived_at FROM thread WHERE deleted_at IS NULL ORDER BY n DESC");

static bool fits(const struct person_filter *filter, const struct shell *shell)
{
	bool is_live = shell->run.n != 0 && !run_is_terminal(shell->run.status);

	if (filter->project.n > 0 && !str_eq(filter->project, shell->project.title)
		&& !str_eq(filter->project, shell->project.workspace_root))
		return false;
	if (filter->status.n == 0)
		return true;
	if (str_eq(filter->status, STR("live")))
		return is_live;
	return str_eq(filter->status, str_of(status_of(shell)))
		|| str_eq(filter->status, str_of(shell->run.n == 0 ? "idle" : run_status_name(shell->run.status)));
}

static int check_status(struct str word, struct failure *f)
{
	if (word.n == 0 || run_status_find(word) >= 0 || str_eq(word, STR("live")) || str_eq(word, STR("idle"))
		|| str_eq(word, STR("asks")))
		return 0;
	return fail_field(f, STR("status"), word, "must be live, asks, idle or the status of a run, like running or completed");
}

int person_list(struct snapshot *s, const struct person_filter *filter, struct json_writer *w, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int64_t written = 0;
	struct shell shell;
	int rc;

	if (check_status(filter->status, f) != 0 || query(s, &q, f, SQL_THREADS, "") != 0)
		return -1;
	jw_karray(w, "threads");
	while (written < filter->limit && (rc = query_next(&q, f)) == 1) {
		if (!filter->has_archived && !col_is_null(&q, 1))
			continue;
		if (read_shell(s, col_int(&q, 0), &shell, f) != 0)
			return -1;
		if (!fits(filter, &shell))
			continue;
		jw_object_begin(w);
		write_shell(&shell, w);
		jw_object_end(w);
		written++;
	}
	jw_array_end(w);
	jw_kbool(w, "more", written == filter->limit && (rc = query_next(&q, f)) == 1);
	return rc < 0 ? -1 : 0;
}

/* ---- questions ---- */

SQL(SQL_ALL_OPEN, "SELECT n FROM runtime_request WHERE status = 0 ORDER BY n");
SQL(SQL_THREAD_OPEN, "SELECT n FROM runtime_request WHERE thread_n = $1 AND status = 0 ORDER BY n");

static const char *kind_word(int64_t kind)
{
	static const char *const words[] = {"command", "file-read", "file-change", "tool", "user-input", "auth-refresh"};

	return words[kind];
}

static int write_request(struct snapshot *s, int64_t n, struct json_writer *w, struct failure *f)
{
	struct runtime_request_row request;
	struct thread_row thread;

	if (NEED(s, runtime_request, n, &request, f) != 0 || NEED(s, thread, request.thread_n, &thread, f) != 0)
		return -1;
	jw_object_begin(w);
	jw_kstr(w, "id", request.id);
	jw_kstr(w, "threadId", thread.id);
	jw_kstr(w, "threadTitle", thread.title);
	jw_kstr(w, "providerInstanceId", thread.instance_id);
	jw_ktext(w, "kind", kind_word(request.kind));
	jw_kbool(w, "live", request.is_live != 0);
	if (request.prompt.p != NULL)
		jw_kraw(w, "prompt", request.prompt);
	jw_ktime(w, "createdAt", request.created_at);
	jw_object_end(w);
	return 0;
}

static int write_requests(struct snapshot *s, int64_t thread_n, struct json_writer *w, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc = thread_n == 0 ? query(s, &q, f, SQL_ALL_OPEN, "") : query(s, &q, f, SQL_THREAD_OPEN, "i", thread_n);

	if (rc != 0)
		return -1;
	jw_karray(w, "requests");
	while ((rc = query_next(&q, f)) == 1)
		if (write_request(s, col_int(&q, 0), w, f) != 0)
			return -1;
	jw_array_end(w);
	return rc;
}

int person_requests(struct snapshot *s, struct str id, struct json_writer *w, struct failure *f)
{
	struct thread_row thread = {.n = 0};

	if (id.n > 0 && person_thread(s, id, &thread, f) != 0)
		return -1;
	return write_requests(s, thread.n, w, f);
}

/* ---- one thread whole ---- */

SQL(SQL_RUNS, "SELECT n FROM thread_run WHERE thread_n = $1 ORDER BY ordinal DESC LIMIT 20");
SQL(SQL_TASKS, "SELECT n FROM subagent WHERE thread_n = $1 ORDER BY n");
SQL(SQL_ITEMS, "SELECT n FROM turn_item WHERE thread_n = $1 ORDER BY ordinal DESC LIMIT $2");

static int write_runs(struct snapshot *s, const struct thread_row *thread, struct json_writer *w, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct thread_run_row run;
	int rc;

	if (query(s, &q, f, SQL_RUNS, "i", thread->n) != 0)
		return -1;
	jw_karray(w, "runs");
	while ((rc = query_next(&q, f)) == 1) {
		if (NEED(s, thread_run, col_int(&q, 0), &run, f) != 0)
			return -1;
		jw_object_begin(w);
		jw_kint(w, "n", run.n);
		jw_kstr(w, "id", ident_run(s->arena, thread->id, run.ordinal));
		jw_kint(w, "ordinal", run.ordinal);
		jw_ktext(w, "status", run_status_name(run.status));
		jw_ktime(w, "requestedAt", run.requested_at);
		if (run.started_at != 0)
			jw_ktime(w, "startedAt", run.started_at);
		if (run.completed_at != 0)
			jw_ktime(w, "completedAt", run.completed_at);
		if (run.failure.p != NULL)
			jw_kraw(w, "failure", run.failure);
		if (run.usage.p != NULL)
			jw_kraw(w, "usage", run.usage);
		jw_object_end(w);
	}
	jw_array_end(w);
	return rc;
}

static int write_tasks(struct snapshot *s, const struct thread_row *thread, struct json_writer *w, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct subagent_row task;
	struct thread_row child;
	int rc;

	if (query(s, &q, f, SQL_TASKS, "i", thread->n) != 0)
		return -1;
	jw_karray(w, "tasks");
	while ((rc = query_next(&q, f)) == 1) {
		if (NEED(s, subagent, col_int(&q, 0), &task, f) != 0
			|| (task.child_n != 0 && NEED(s, thread, task.child_n, &child, f) != 0))
			return -1;
		jw_object_begin(w);
		jw_kstr(w, "id", task.id);
		jw_kstr_opt(w, "title", task.title);
		jw_ktext(w, "status", work_status_name(task.status));
		jw_kstr(w, "providerInstanceId", task.instance_id);
		if (task.child_n != 0)
			jw_kstr(w, "threadId", child.id);
		jw_kstr_opt(w, "result", task.result);
		jw_object_end(w);
	}
	jw_array_end(w);
	return rc;
}

static int write_item(struct snapshot *s, int64_t n, struct json_writer *w, struct failure *f)
{
	struct turn_item_row item;
	struct message_row message;
	struct str text;

	if (NEED(s, turn_item, n, &item, f) != 0 || item_text(s, &item, &text, f) != 0)
		return -1;
	if (item.message_n != 0) {
		if (NEED(s, message, item.message_n, &message, f) != 0)
			return -1;
		text = message.text;
	}
	jw_object_begin(w);
	jw_kint(w, "n", item.n);
	jw_kstr(w, "id", item.id);
	jw_kint(w, "ordinal", item.ordinal);
	jw_kint_opt(w, "runN", item.run_n);
	jw_ktext(w, "type", item_type_name(item.type));
	jw_ktext(w, "status", work_status_name(item.status));
	jw_kstr_opt(w, "title", item.title);
	if (item.body.p != NULL)
		jw_kraw(w, "body", item.body);
	jw_kstr_opt(w, "text", text);
	jw_object_end(w);
	return 0;
}

static int read_items(struct snapshot *s, int64_t thread_n, int64_t *items, int64_t room, int64_t *count, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	*count = 0;
	if (query(s, &q, f, SQL_ITEMS, "ii", thread_n, room) != 0)
		return -1;
	while (*count < room && (rc = query_next(&q, f)) == 1)
		items[(*count)++] = col_int(&q, 0);
	return rc < 0 ? -1 : 0;
}

static int write_items(struct snapshot *s, int64_t thread_n, int64_t room, struct json_writer *w, struct failure *f)
{
	int64_t *items = ARENA_ARRAY(s->arena, int64_t, (size_t)room + 1);
	int64_t count;

	if (read_items(s, thread_n, items, room, &count, f) != 0)
		return -1;
	jw_karray(w, "items");
	while (count > 0)
		if (write_item(s, items[--count], w, f) != 0)
			return -1;
	jw_array_end(w);
	return 0;
}

int person_show(struct snapshot *s, struct str id, int64_t items, struct json_writer *w, struct failure *f)
{
	struct thread_row thread;
	struct shell shell;

	if (person_thread(s, id, &thread, f) != 0 || read_shell(s, thread.n, &shell, f) != 0)
		return -1;
	jw_kobject(w, "thread");
	write_shell(&shell, w);
	jw_object_end(w);
	if (write_runs(s, &thread, w, f) != 0 || write_tasks(s, &thread, w, f) != 0 || write_requests(s, thread.n, w, f) != 0)
		return -1;
	return write_items(s, thread.n, items, w, f);
}

/* ---- providers ---- */

#define MAX_CONSTRAINTS 4

void person_providers(const struct threads *threads, struct arena *arena, struct json_writer *w)
{
	size_t count;
	const struct provider_instance *all = threads_instances(threads, &count);

	jw_karray(w, "providers");
	for (size_t i = 0; i < count; i++) {
		struct str constraints[MAX_CONSTRAINTS];
		size_t n = instance_constraints(threads, &all[i], arena, constraints, MAX_CONSTRAINTS);

		jw_object_begin(w);
		jw_kstr(w, "id", all[i].id);
		jw_ktext(w, "driver", all[i].driver->kind);
		jw_kstr_opt(w, "displayName", all[i].display_name);
		jw_kbool(w, "canRun", n == 0);
		jw_karray(w, "constraints");
		for (size_t k = 0; k < n; k++)
			jw_str(w, constraints[k]);
		jw_array_end(w);
		jw_karray(w, "models");
		for (size_t k = 0; k < all[i].model_count; k++)
			jw_str(w, all[i].models[k]);
		jw_array_end(w);
		jw_object_end(w);
	}
	jw_array_end(w);
}
