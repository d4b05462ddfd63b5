/* How threads, runs and tasks stand, for readers that ask by id. */
#include "threads/view.h"

#include "threads/command.h"

/* ---- finding ---- */

SQL(SQL_FIND_THREAD, "SELECT n FROM thread WHERE id = $1 AND deleted_at IS NULL");
SQL(SQL_FIND_RUN,
	"SELECT r.n FROM thread_run r JOIN thread t ON t.n = r.thread_n WHERE r.thread_n = $1 AND r.ordinal = $2"
	" AND t.deleted_at IS NULL");
SQL(SQL_FIND_TASK,
	"SELECT a.n, a.thread_n FROM subagent a JOIN thread t ON t.n = a.thread_n WHERE a.id = $1 AND a.origin = 1"
	" AND t.deleted_at IS NULL");
SQL(SQL_THREADS, "SELECT n, id FROM thread WHERE deleted_at IS NULL");

int view_find_thread(struct snapshot *s, struct str id, int64_t *n, int64_t *thread_n, struct failure *f)
{
	int rc = query_int(s, n, f, SQL_FIND_THREAD, "s", id);

	if (rc == 1)
		*thread_n = *n;
	return rc;
}

/* "run:thread:PART:ordinal:N": PART, still encoded. */
static bool part_of_run(struct str id, struct str *part)
{
	static const char head[] = "run:thread:";
	const char *end;

	if (!str_starts(id, STR(head)))
		return false;
	*part = (struct str){id.p + strlen(head), id.n - strlen(head)};
	end = memchr(part->p, ':', part->n);
	if (end == NULL)
		return false;
	part->n = (size_t)(end - part->p);
	return part->n > 0;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static struct str decode(struct arena *arena, struct str part)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t i = 0; i < part.n; i++) {
		if (part.p[i] == '%' && part.n - i > 2 && hex_digit(part.p[i + 1]) >= 0 && hex_digit(part.p[i + 2]) >= 0) {
			buf_add_char(&out, (char)(hex_digit(part.p[i + 1]) * 16 + hex_digit(part.p[i + 2])));
			i += 2;
		} else {
			buf_add_char(&out, part.p[i]);
		}
	}
	return buf_str(&out);
}

/* A digest stands for a long id: it is looked for among all of them. */
static int thread_by_digest(struct snapshot *s, struct str run_id, int64_t *thread_n, int64_t *ordinal, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_THREADS, "") != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		*ordinal = ident_run_ordinal(s->arena, col_view(&q, 1), run_id);
		if (*ordinal > 0) {
			*thread_n = col_int(&q, 0);
			return 1;
		}
	}
	return rc;
}

int view_find_run(struct snapshot *s, struct str id, int64_t *n, int64_t *thread_n, struct failure *f)
{
	struct str part;
	int64_t ordinal = 0;
	int rc;

	if (!part_of_run(id, &part))
		return 0;
	if (part.p[0] == '~') {
		rc = thread_by_digest(s, id, thread_n, &ordinal, f);
	} else {
		struct str thread_id = decode(s->arena, part);

		ordinal = ident_run_ordinal(s->arena, thread_id, id);
		rc = ordinal == 0 ? 0 : query_int(s, thread_n, f, SQL_FIND_THREAD, "s", thread_id);
	}
	return rc == 1 ? query_int(s, n, f, SQL_FIND_RUN, "ii", *thread_n, ordinal) : rc;
}

int view_find_task(struct snapshot *s, struct str id, int64_t *n, int64_t *thread_n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_FIND_TASK, "s", id) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1) {
		*n = col_int(&q, 0);
		*thread_n = col_int(&q, 1);
	}
	return rc;
}

/* ---- showing ---- */

static void time_opt(struct json_writer *w, const char *key, int64_t at)
{
	if (at != 0)
		jw_ktime(w, key, at);
}

static void json_opt(struct json_writer *w, const char *key, struct str json)
{
	if (json.p != NULL)
		jw_kraw(w, key, json);
}

static int write_parent(struct snapshot *s, const struct thread_row *thread, struct json_writer *w, struct failure *f)
{
	struct thread_row parent;
	struct project_row project;

	if (NEED(s, project, thread->project_n, &project, f) != 0)
		return -1;
	jw_kstr(w, "projectId", project.id);
	if (thread->parent_n == 0)
		return 0;
	if (NEED(s, thread, thread->parent_n, &parent, f) != 0)
		return -1;
	jw_kstr(w, "parentThreadId", parent.id);
	jw_ktext(w, "relationshipToParent", relationship_name(thread->relationship));
	return 0;
}

SQL(SQL_ITEM_COUNT, "SELECT max(ordinal) + 1 FROM turn_item WHERE thread_n = $1");
SQL(SQL_ASKS, "SELECT n FROM runtime_request WHERE thread_n = $1 AND status = 0 LIMIT 1");

static int write_activity(struct snapshot *s, const struct thread_row *thread, struct json_writer *w, struct failure *f)
{
	struct thread_run_row active, latest;
	int64_t items = 0, request;
	int has_active = thread_blocking_run(s, thread->n, &active, f);
	int has_latest = has_active < 0 ? -1 : thread_latest_run(s, thread->n, &latest, f);
	int asks = has_latest < 0 ? -1 : query_int(s, &request, f, SQL_ASKS, "i", thread->n);

	if (asks < 0 || query_int(s, &items, f, SQL_ITEM_COUNT, "i", thread->n) < 0)
		return -1;
	jw_ktext(w, "status", has_active == 1 ? run_status_name(active.status)
			: has_latest == 1     ? run_status_name(latest.status)
					      : "idle");
	if (has_active == 1)
		jw_kstr(w, "activeRunId", ident_run(s->arena, thread->id, active.ordinal));
	if (has_latest == 1)
		jw_kstr(w, "latestRunId", ident_run(s->arena, thread->id, latest.ordinal));
	jw_kbool(w, "hasPendingRequest", asks == 1);
	jw_kint(w, "itemCount", items);
	return 0;
}

int view_thread(struct snapshot *s, int64_t n, struct json_writer *w, struct failure *f)
{
	struct thread_row thread;

	if (NEED(s, thread, n, &thread, f) != 0)
		return -1;
	jw_kstr(w, "threadId", thread.id);
	jw_kstr(w, "title", thread.title);
	if (write_parent(s, &thread, w, f) != 0 || write_activity(s, &thread, w, f) != 0)
		return -1;
	jw_kstr(w, "providerInstanceId", thread.instance_id);
	jw_kstr_opt(w, "model", thread.model);
	jw_ktext(w, "runtimeMode", runtime_mode_names[thread.runtime_mode]);
	jw_ktext(w, "interactionMode", interaction_mode_names[thread.interaction_mode]);
	jw_kstr_opt(w, "branch", thread.branch);
	jw_kstr_opt(w, "worktreePath", thread.worktree_path);
	jw_ktime(w, "createdAt", thread.created_at);
	jw_ktime(w, "updatedAt", thread.updated_at);
	time_opt(w, "archivedAt", thread.archived_at);
	return 0;
}

int view_run(struct snapshot *s, int64_t n, struct json_writer *w, struct failure *f)
{
	struct thread_run_row run;
	struct thread_row thread;

	if (NEED(s, thread_run, n, &run, f) != 0 || NEED(s, thread, run.thread_n, &thread, f) != 0)
		return -1;
	jw_kstr(w, "runId", ident_run(s->arena, thread.id, run.ordinal));
	jw_kstr(w, "threadId", thread.id);
	jw_kint(w, "ordinal", run.ordinal);
	jw_ktext(w, "status", run_status_name(run.status));
	jw_kstr(w, "providerInstanceId", run.instance_id);
	jw_kstr_opt(w, "model", run.model);
	jw_ktime(w, "requestedAt", run.requested_at);
	time_opt(w, "startedAt", run.started_at);
	time_opt(w, "completedAt", run.completed_at);
	json_opt(w, "failure", run.failure);
	json_opt(w, "usage", run.usage);
	return 0;
}

int view_task(struct snapshot *s, int64_t n, struct json_writer *w, struct failure *f)
{
	struct subagent_row task;
	bool is_over;

	return NEED(s, subagent, n, &task, f) != 0 ? -1 : task_write(s, &task, false, w, &is_over, f);
}

/* ---- counting ---- */

/* by thread_run_live; that of somebody else's agent always goes on */
SQL(SQL_COUNT_RUNS,
	"SELECT r.status, count(*) FROM thread_run r JOIN thread t ON t.n = r.thread_n WHERE r.status < 5 AND t.kind = 0"
	" GROUP BY r.status");
SQL(SQL_COUNT_ORDERS, "SELECT count(*) FROM effect");
SQL(SQL_COUNT_SESSIONS, "SELECT count(*) FROM provider_session WHERE status < 4"); /* by provider_session_live */
SQL(SQL_COUNT_REQUESTS, "SELECT count(*) FROM runtime_request WHERE status = 0"); /* by runtime_request_pending */
/* by subagent_open */
SQL(SQL_COUNT_TASKS, "SELECT count(*) FROM subagent WHERE origin = 1 AND delivery < 3 AND status < 3");

static int count_runs(struct snapshot *s, struct thread_counts *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_COUNT_RUNS, "") != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1)
		out->runs[col_int(&q, 0)] = col_int(&q, 1);
	return rc;
}

int view_counts(struct snapshot *s, struct thread_counts *out, struct failure *f)
{
	*out = (struct thread_counts){0};
	return count_runs(s, out, f) < 0 || query_int(s, &out->orders, f, SQL_COUNT_ORDERS, "") < 0
			|| query_int(s, &out->sessions, f, SQL_COUNT_SESSIONS, "") < 0
			|| query_int(s, &out->requests, f, SQL_COUNT_REQUESTS, "") < 0
			|| query_int(s, &out->tasks, f, SQL_COUNT_TASKS, "") < 0
		? -1
		: 0;
}
