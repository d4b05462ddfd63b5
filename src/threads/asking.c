/* Who asks: agents that dais started, by their credential; everybody else by a thread that stands for them. */
#include "threads/command.h"

#include <string.h>

/* ---- the project of somebody else's agent ---- */

SQL(SQL_PROJECTS, "SELECT n, workspace_root FROM project WHERE deleted_at IS NULL AND kind = 0");
SQL(SQL_ROOTS, "SELECT i.n, t.title, t.properties FROM item i JOIN item_text t ON t.n = i.n WHERE i.parent_n IS NULL AND t.type = 'project' ORDER BY i.n");
SQL(SQL_PROJECT_BY_ROOT, "SELECT n FROM project WHERE root_n = $1");
SQL(SQL_PROJECT_BY_PLACE, "SELECT n FROM project WHERE workspace_root = $1 AND deleted_at IS NULL");

static int add_project(struct tx *tx, struct str title, struct str place, int64_t root_n, int64_t *out, struct failure *f)
{
	struct project_row project = {.id = ident_random(tx->snapshot.arena, "project"),
		.title = title,
		.root_n = root_n,
		.workspace_root = place,
		.created_at = tx->snapshot.now,
		.updated_at = tx->snapshot.now};

	if (PUT(tx, project, &project, 0, f) != 0)
		return -1;
	*out = project.n;
	return 0;
}

static struct str directory_of(struct arena *arena, struct str properties)
{
	struct json_error error;
	json_auto_t *value = json_read(properties, &error);

	return str_dup(arena, json_member_str(value, "path"));
}

struct root {
	int64_t n;
	struct str title, directory;
};

static int read_roots(struct snapshot *s, struct root **out, size_t *count, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	size_t room = 0;
	int rc;

	*out = NULL;
	*count = 0;
	if (query(s, &q, f, SQL_ROOTS, "") != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct str directory = directory_of(s->arena, col_str(&q, 2));

		if (directory.n == 0)
			continue;
		if (*count == room) {
			*out = arena_grow(s->arena, *out, room * sizeof(**out), (room * 2 + 8) * sizeof(**out));
			room = room * 2 + 8;
		}
		(*out)[(*count)++] = (struct root){col_int(&q, 0), col_str(&q, 1), directory};
	}
	return rc;
}

/* Projects of the work graph that have a directory are projects for threads, too. */
static int adopt_roots(struct tx *tx, struct failure *f)
{
	struct root *roots;
	size_t count;

	if (read_roots(&tx->snapshot, &roots, &count, f) != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		int64_t n;
		int rc = query_int(&tx->snapshot, &n, f, SQL_PROJECT_BY_ROOT, "i", roots[i].n);

		if (rc == 0)
			rc = query_int(&tx->snapshot, &n, f, SQL_PROJECT_BY_PLACE, "s", roots[i].directory);
		if (rc < 0 || (rc == 0 && add_project(tx, roots[i].title, roots[i].directory, roots[i].n, &n, f) != 0))
			return -1;
	}
	return 0;
}

static bool holds(struct str root, struct str place)
{
	return str_eq(root, place) || (str_starts(place, root) && place.p[root.n] == '/');
}

/* The innermost project that holds the place; without a place, the only one. */
static int find_project(struct snapshot *s, struct str workspace, int64_t *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int64_t only = 0, count = 0;
	size_t longest = 0;
	int rc;

	*out = 0;
	if (query(s, &q, f, SQL_PROJECTS, "") != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct str root = col_view(&q, 1);

		if (workspace.p != NULL && root.n > longest && holds(root, workspace)) {
			*out = col_int(&q, 0);
			longest = root.n;
		}
		only = col_int(&q, 0);
		count++;
	}
	if (workspace.p == NULL && count == 1)
		*out = only;
	return rc;
}

static struct str last_name(struct str path)
{
	const char *slash = memrchr(path.p, '/', path.n);

	return slash == NULL || slash + 1 == path.p + path.n ? path : (struct str){slash + 1, (size_t)(path.p + path.n - slash - 1)};
}

static int place_of(struct tx *tx, const struct asker *asker, int64_t *out, struct failure *f)
{
	if (adopt_roots(tx, f) != 0 || find_project(&tx->snapshot, asker->workspace, out, f) != 0)
		return -1;
	if (*out != 0)
		return 0;
	if (asker->workspace.p == NULL)
		return fail(f, FAIL_INVALID_REQUEST,
			"It is not known where you work: there is no project, or more than one. Add the folder with `dais project add`.");
	return add_project(tx, last_name(asker->workspace), asker->workspace, 0, out, f);
}

/* ---- the thread of somebody else's agent ---- */

static int add_run(struct tx *tx, struct thread_row *thread, struct thread_run_row *run, struct failure *f)
{
	struct node_row node = {.thread_n = thread->n, .kind = NODE_ROOT_TURN, .status = WORK_RUNNING, .counts_for_run = 1,
		.started_at = tx->snapshot.now};
	struct message_row message = {.id = ident_random(tx->snapshot.arena, "message"),
		.thread_n = thread->n,
		.role = MESSAGE_FROM_SYSTEM,
		.text = STR("An agent that dais did not start."),
		.created_by = BY_SYSTEM,
		.creation_source = FROM_SERVER,
		.created_at = tx->snapshot.now,
		.updated_at = tx->snapshot.now};

	*run = (struct thread_run_row){.thread_n = thread->n,
		.ordinal = 1,
		.instance_id = thread->instance_id,
		.status = RUN_RUNNING,
		.requested_at = tx->snapshot.now,
		.started_at = tx->snapshot.now,
		.cohort_generation = 1};
	if (tx_next(tx, SEQ_thread_run, &run->n, f) != 0 || tx_next(tx, SEQ_node, &node.n, f) != 0)
		return -1;
	node.run_n = message.run_n = run->n;
	node.root_n = run->root_node_n = node.n;
	if (PUT(tx, message, &message, thread->n, f) != 0 || PUT(tx, node, &node, thread->n, f) != 0)
		return -1;
	run->message_n = message.n;
	return PUT(tx, thread_run, run, thread->n, f);
}

static int add_external(struct tx *tx, const struct asker *asker, struct str key, struct asking *out, struct failure *f)
{
	struct thread_row *thread = &out->thread;

	*thread = (struct thread_row){.id = ident_random(tx->snapshot.arena, "thread:external"),
		.kind = THREAD_EXTERNAL,
		.title = str_printf(tx->snapshot.arena, "Agent of %.*s", STRF(asker->principal)),
		.instance_id = STR("external"),
		.runtime_mode = RUNTIME_FULL_ACCESS,
		.interaction_mode = INTERACTION_DEFAULT,
		.relationship = RELATION_NONE,
		.created_by = BY_USER,
		.creation_source = FROM_MCP,
		.namespace = ident_namespace(tx->snapshot.arena),
		.external_key = key,
		.created_at = tx->snapshot.now,
		.updated_at = tx->snapshot.now};
	if (place_of(tx, asker, &thread->project_n, f) != 0 || tx_next(tx, SEQ_thread, &thread->n, f) != 0)
		return -1;
	thread->root_n = thread->n;
	if (PUT(tx, thread, thread, thread->n, f) != 0)
		return -1;
	return add_run(tx, thread, &out->run, f);
}

SQL(SQL_EXTERNAL, "SELECT n FROM thread WHERE external_key = $1");

static struct str external_key(struct arena *arena, const struct asker *asker)
{
	return IDENT(arena, "external", asker->principal, asker->workspace.p == NULL ? STR("") : asker->workspace);
}

/* 1 found, 0 it has none yet, -1. */
static int find_external(struct snapshot *s, const struct asker *asker, struct thread_row *out, struct failure *f)
{
	int64_t n;
	int rc = query_int(s, &n, f, SQL_EXTERNAL, "s", external_key(s->arena, asker));

	return rc == 1 ? row_get(s, ROW_thread, n, out, f) : rc;
}

/* ---- */

int asking_look(struct snapshot *s, const struct asker *asker, struct asking *out, struct failure *f)
{
	int rc;

	*out = (struct asking){.asker = asker};
	rc = asker->thread_n != 0 ? thread_get(s, asker->thread_n, &out->thread, f) : find_external(s, asker, &out->thread, f);
	if (rc < 0)
		return -1;
	if (rc == 0 && asker->thread_n != 0)
		return fail(f, FAIL_THREAD_NOT_FOUND, "The calling thread was deleted.");
	if (rc == 0)
		return find_project(s, asker->workspace, &out->thread.project_n, f);
	rc = thread_blocking_run(s, out->thread.n, &out->run, f);
	if (rc == 0)
		out->run.n = 0;
	return rc < 0 ? -1 : 0;
}

int asking_resolve(struct tx *tx, const struct asker *asker, struct asking *out, struct failure *f)
{
	if (asking_look(&tx->snapshot, asker, out, f) != 0)
		return -1;
	return out->thread.n != 0 ? 0 : add_external(tx, asker, external_key(tx->snapshot.arena, asker), out, f);
}

int asking_need_run(struct tx *tx, const struct asking *asking, struct failure *f)
{
	(void)tx;
	if (asking->thread.archived_at != 0)
		return fail(f, FAIL_PARENT_NOT_ACTIVE, "The calling thread is archived.");
	if (asking->run.n == 0 || asking->run.root_node_n == 0)
		return fail(f, FAIL_PARENT_NOT_ACTIVE, "The calling thread has no active run.");
	if (asking->asker->thread_n != 0 && !str_eq(asking->run.instance_id, asking->asker->instance_id))
		return fail(f, FAIL_PARENT_NOT_ACTIVE, "The active run of the calling thread is on another provider instance.");
	return 0;
}

int asking_thread(struct snapshot *s, const struct asking *asking, struct str thread_id, struct thread_row *out,
	struct failure *f)
{
	int64_t n;
	int rc = row_find(s, ROW_thread, thread_id, &n, f);

	if (rc == 1)
		rc = thread_get(s, n, out, f);
	if (rc < 0)
		return -1;
	if (rc == 0 || out->project_n != asking->thread.project_n)
		return fail(f, FAIL_THREAD_NOT_FOUND, "There is no thread %.*s in this project.", (int)utf8_cut(thread_id, 200), thread_id.p);
	return 0;
}

int asking_task(struct snapshot *s, const struct asking *asking, struct str task_id, struct subagent_row *out,
	struct failure *f)
{
	int64_t n;
	int rc = row_find(s, ROW_subagent, task_id, &n, f);

	if (rc == 1)
		rc = GET(s, subagent, n, out, f);
	if (rc < 0)
		return -1;
	if (rc == 0 || out->thread_n != asking->thread.n || out->origin != ORIGIN_APP_OWNED)
		return fail(f, FAIL_TASK_NOT_FOUND, "This thread has no task %.*s.", (int)utf8_cut(task_id, 200), task_id.p);
	return 0;
}
