/* Threads, and which of their runs counts. */
#include "threads/engine.h"

const char *const runtime_mode_names[] = {"read-only", "approval-required", "auto-accept-edits", "full-access"};
const char *const interaction_mode_names[] = {"plan", "default"};

int thread_get(struct snapshot *s, int64_t n, struct thread_row *out, struct failure *f)
{
	int rc = GET(s, thread, n, out, f);

	return rc == 1 && out->deleted_at != 0 ? 0 : rc;
}

int thread_touch(struct tx *tx, struct thread_row *thread, struct failure *f)
{
	thread->updated_at = tx->snapshot.now;
	return PUT(tx, thread, thread, thread->n, f);
}

/* "status < 5" is the condition of an index. */
SQL(SQL_BLOCKING_RUN, "SELECT n FROM thread_run WHERE thread_n = $1 AND status IN (0, 2, 3, 4) AND status < 5 LIMIT 1");
SQL(SQL_LATEST_RUN, "SELECT n FROM thread_run WHERE thread_n = $1 ORDER BY ordinal DESC LIMIT 1");

static int run_by(struct snapshot *s, const char *sql, int64_t thread_n, struct thread_run_row *out, struct failure *f)
{
	int64_t n;
	int rc = query_int(s, &n, f, sql, "i", thread_n);

	return rc == 1 ? GET(s, thread_run, n, out, f) : rc;
}

int thread_blocking_run(struct snapshot *s, int64_t thread_n, struct thread_run_row *out, struct failure *f)
{
	return run_by(s, SQL_BLOCKING_RUN, thread_n, out, f);
}

int thread_latest_run(struct snapshot *s, int64_t thread_n, struct thread_run_row *out, struct failure *f)
{
	return run_by(s, SQL_LATEST_RUN, thread_n, out, f);
}

bool thread_is_homeless(const struct thread_row *thread)
{
	return thread->workspace != WORKSPACE_ROOT && thread->worktree_path.p == NULL;
}

SQL(SQL_PREPARING, "SELECT n FROM effect WHERE thread_n = $1 AND type IN (5, 6) LIMIT 1");

int thread_is_preparing(struct snapshot *s, int64_t thread_n, struct failure *f)
{
	int64_t n;

	return query_int(s, &n, f, SQL_PREPARING, "i", thread_n);
}

int thread_cwd(struct snapshot *s, const struct thread_row *thread, struct str *out, struct failure *f)
{
	struct project_row project;

	*out = thread->worktree_path;
	if (out->p != NULL)
		return 0;
	if (thread_is_homeless(thread))
		return fail(f, FAIL_INVALID_REQUEST, "The thread's folder was not made.");
	if (NEED(s, project, thread->project_n, &project, f) != 0)
		return -1;
	*out = project.workspace_root;
	return 0;
}

struct str thread_title(struct arena *arena, struct str wanted, struct str text, size_t chars)
{
	struct str title = str_trim(wanted.n > 0 ? wanted : text);

	if (wanted.n > 0 || utf8_count(title) <= chars)
		return title;
	title.n = utf8_offset(title, chars - 3);
	return str_printf(arena, "%.*s...", STRF(title));
}
