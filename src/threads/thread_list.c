/* t3_thread_list, and what is told of one thread. */
#include "threads/commands.h"

const char *thread_status_name(int64_t status)
{
	return status == THREAD_IS_IDLE ? "idle" : run_status_name(status);
}

/* ---- one thread ---- */

/* Ordinals of items begin at 0 and have no gaps: the last one counts them. */
SQL(SQL_ITEM_COUNT, "SELECT ordinal + 1 FROM turn_item WHERE thread_n = $1 ORDER BY ordinal DESC LIMIT 1");
SQL(SQL_THREAD_ID, "SELECT id FROM thread WHERE n = $1");

static int parent_id(struct snapshot *s, const struct thread_row *thread, struct str *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	*out = STR_NONE;
	if (thread->parent_n == 0)
		return 0;
	if (query(s, &q, f, SQL_THREAD_ID, "i", thread->parent_n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1)
		*out = col_str(&q, 0);
	return rc < 0 ? -1 : 0;
}

static void json_or_null(struct json_writer *w, const char *key, struct str json)
{
	jw_kraw(w, key, json.n == 0 ? STR("null") : json);
}

int thread_write(struct snapshot *s, const struct thread_row *thread, int64_t status, struct json_writer *w,
	struct failure *f)
{
	struct thread_run_row latest;
	struct str parent;
	int64_t items = 0;
	int has_run = thread_latest_run(s, thread->n, &latest, f);

	if (has_run < 0 || query_int(s, &items, f, SQL_ITEM_COUNT, "i", thread->n) < 0 || parent_id(s, thread, &parent, f) != 0)
		return -1;
	jw_kstr(w, "threadId", thread->id);
	jw_kstr(w, "title", thread->title);
	jw_ktext(w, "createdBy", creator_name(thread->created_by));
	jw_ktext(w, "creationSource", creation_source_name(thread->creation_source));
	jw_ktext(w, "status", thread_status_name(status));
	text_or_null(w, "latestRunId", has_run == 1 ? ident_run(s->arena, thread->id, latest.ordinal) : STR_NONE);
	jw_kstr(w, "providerInstanceId", thread->instance_id);
	text_or_null(w, "model", thread->model);
	jw_ktext(w, "runtimeMode", runtime_mode_names[thread->runtime_mode]);
	jw_ktext(w, "interactionMode", interaction_mode_names[thread->interaction_mode]);
	json_or_null(w, "linkedPullRequest", thread->pull_request);
	text_or_null(w, "parentThreadId", parent);
	text_or_null(w, "relationshipToParent",
		thread->relationship == RELATION_NONE ? STR_NONE : str_of(relationship_name(thread->relationship)));
	jw_kint(w, "itemCount", items);
	jw_ktime(w, "createdAt", thread->created_at);
	jw_ktime(w, "updatedAt", thread->updated_at);
	return 0;
}

/* ---- all of a project ---- */

/* fold() gives nothing for less than three characters, so two blanks stand behind each text. */
#define FOLD_PADDING 2
/* The status is that of the run that blocks the thread, or else of the latest one. No item is looked at. */
SQL(SQL_THREADS,
	"SELECT t.n, t.relationship, COALESCE((SELECT max(r.status) FROM thread_run r WHERE r.thread_n = t.n AND"
	" r.status IN (0, 2, 3, 4) AND r.status < 5),"
	" (SELECT r.status FROM thread_run r WHERE r.thread_n = t.n ORDER BY r.ordinal DESC LIMIT 1 ), -1),"
	" CASE WHEN $2 = 1 THEN fold(t.title || '  ') ELSE '' END FROM thread t"
	" WHERE t.project_n = $1 AND t.deleted_at IS NULL AND t.archived_at IS NULL ORDER BY t.updated_at DESC, t.id DESC");
SQL(SQL_FOLDED, "SELECT fold($1 || '  ')");
SQL(SQL_PROJECT_ID, "SELECT id FROM project WHERE n = $1");

struct listed {
	int64_t n, status;
};

struct listing {
	const struct list_args *args;
	struct str part; /* of titles, its case folded */
	struct listed *page;
	int64_t count, total;
};

static int first_text(struct query *q, struct str *out, struct failure *f)
{
	int rc = query_next(q, f);

	*out = rc == 1 ? col_str(q, 0) : STR_NONE;
	return rc < 0 ? -1 : 0;
}

static int fold_part(struct snapshot *s, struct listing *l, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};

	if (l->args->title_part.n == 0)
		return 0;
	if (query(s, &q, f, SQL_FOLDED, "s", l->args->title_part) != 0 || first_text(&q, &l->part, f) != 0)
		return -1;
	l->part.n -= FOLD_PADDING;
	return 0;
}

static bool is_wanted(const struct listing *l, const struct query *q)
{
	struct str title = col_view(q, 3);

	if (!l->args->with_subagents && col_int(q, 1) == RELATION_SUBAGENT)
		return false;
	if (l->part.p != NULL && (title.p == NULL || memmem(title.p, title.n, l->part.p, l->part.n) == NULL))
		return false;
	for (size_t i = 0; i < l->args->status_count; i++)
		if (l->args->statuses[i] == col_int(q, 2))
			return true;
	return l->args->status_count == 0;
}

static int find_page(struct snapshot *s, int64_t project_n, struct listing *l, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_THREADS, "ii", project_n, (int64_t)(l->part.n > 0)) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (!is_wanted(l, &q))
			continue;
		if (l->total++ >= l->args->cursor && l->count < l->args->limit)
			l->page[l->count++] = (struct listed){col_int(&q, 0), col_int(&q, 2)};
	}
	return rc;
}

static int write_page(struct snapshot *s, const struct listing *l, struct json_writer *w, struct failure *f)
{
	jw_karray(w, "threads");
	for (int64_t i = 0; i < l->count; i++) {
		struct thread_row thread;

		if (NEED(s, thread, l->page[i].n, &thread, f) != 0)
			return -1;
		jw_object_begin(w);
		if (thread_write(s, &thread, l->page[i].status, w, f) != 0)
			return -1;
		jw_object_end(w);
	}
	jw_array_end(w);
	if (l->args->cursor + l->count < l->total && l->count > 0) {
		jw_kint(w, "nextCursor", l->args->cursor + l->count);
	} else {
		jw_key(w, "nextCursor");
		jw_null(w);
	}
	jw_kint(w, "total", l->total);
	return 0;
}

int project_id_of(struct snapshot *s, int64_t project_n, struct str *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};

	*out = STR_NONE;
	if (project_n == 0)
		return 0;
	return query(s, &q, f, SQL_PROJECT_ID, "i", project_n) != 0 ? -1 : first_text(&q, out, f);
}

int command_list(struct snapshot *s, struct asked *asked, const struct list_args *args, struct json_writer *w,
	struct failure *f)
{
	struct listing l = {.args = args, .page = arena_alloc(s->arena, (size_t)args->limit * sizeof(*l.page))};
	struct asking asking;
	struct str project;

	if (asking_look(s, asked->asker, &asking, f) != 0 || project_id_of(s, asking.thread.project_n, &project, f) != 0
		|| fold_part(s, &l, f) != 0 || find_page(s, asking.thread.project_n, &l, f) != 0)
		return -1;
	text_or_null(w, "projectId", project);
	text_or_null(w, "currentThreadId", asking.thread.n == 0 ? STR_NONE : asking.thread.id);
	return write_page(s, &l, w, f);
}
