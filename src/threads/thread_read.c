/* t3_thread_read: a page of the timeline of a thread, on a reader's snapshot. That a parent has read the result of a task
 * is put on record afterwards. */
#include "threads/commands.h"

#include "base/limits.h"

/* An answer goes out twice, as structure and as text in which each quote is escaped once more. */
#define PAGE_BYTES (LIMIT_RESULT_HARD_BYTES / 4)

struct reading {
	const struct read_args *args;
	struct asking asking;
	struct thread_row thread;
	struct subagent_row task; /* the caller's own, whose child this is, with a result; n 0: none */
	struct asked *asked;
	struct json_writer *w;
	int64_t last_position; /* -1: nothing was shown */
};

/* ---- the thread and its runs ---- */

SQL(SQL_PENDING_COUNT, "SELECT count(*) FROM runtime_request WHERE thread_n = $1 AND status = 0");
SQL(SQL_RUNS, "SELECT n FROM thread_run WHERE thread_n = $1 ORDER BY ordinal DESC LIMIT $2");

static int write_thread(struct snapshot *s, struct reading *r, struct failure *f)
{
	struct thread_run_row active, latest;
	struct str project;
	int64_t pending = 0;
	int is_active = thread_blocking_run(s, r->thread.n, &active, f);
	int has_run = thread_latest_run(s, r->thread.n, &latest, f);
	int64_t status = is_active == 1 ? active.status : has_run == 1 ? latest.status : THREAD_IS_IDLE;

	if (is_active < 0 || has_run < 0 || query_int(s, &pending, f, SQL_PENDING_COUNT, "i", r->thread.n) < 0
		|| project_id_of(s, r->thread.project_n, &project, f) != 0)
		return -1;
	jw_kobject(r->w, "thread");
	if (thread_write(s, &r->thread, status, r->w, f) != 0)
		return -1;
	jw_kstr(r->w, "projectId", project);
	text_or_null(r->w, "activeRunId", is_active == 1 ? ident_run(s->arena, r->thread.id, active.ordinal) : STR_NONE);
	jw_kraw(r->w, "titleRegeneration", r->thread.title_request.n == 0 ? STR("null") : r->thread.title_request);
	text_or_null(r->w, "branch", r->thread.branch);
	text_or_null(r->w, "worktreePath", r->thread.worktree_path);
	jw_kint(r->w, "runCount", has_run == 1 ? latest.ordinal : 0);
	jw_kint(r->w, "pendingRequestCount", pending);
	jw_kbool(r->w, "archived", r->thread.archived_at != 0);
	jw_object_end(r->w);
	return 0;
}

static void time_or_null(struct json_writer *w, const char *key, int64_t at)
{
	if (at == 0) {
		jw_key(w, key);
		jw_null(w);
	} else {
		jw_ktime(w, key, at);
	}
}

static int write_run(struct snapshot *s, struct reading *r, int64_t n, struct failure *f)
{
	struct thread_run_row run;

	if (NEED(s, thread_run, n, &run, f) != 0)
		return -1;
	jw_object_begin(r->w);
	jw_kstr(r->w, "runId", ident_run(s->arena, r->thread.id, run.ordinal));
	jw_kint(r->w, "ordinal", run.ordinal);
	jw_ktext(r->w, "status", run_status_name(run.status));
	jw_kstr(r->w, "providerInstanceId", run.instance_id);
	text_or_null(r->w, "model", run.model);
	jw_ktime(r->w, "requestedAt", run.requested_at);
	time_or_null(r->w, "startedAt", run.started_at);
	time_or_null(r->w, "completedAt", run.completed_at);
	jw_object_end(r->w);
	return 0;
}

static int write_runs(struct snapshot *s, struct reading *r, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_RUNS, "ii", r->thread.n, r->args->run_limit) != 0)
		return -1;
	jw_karray(r->w, "recentRuns");
	while ((rc = query_next(&q, f)) == 1)
		if (write_run(s, r, col_int(&q, 0), f) != 0)
			return -1;
	jw_array_end(r->w);
	return rc;
}

/* ---- items ---- */

SQL(SQL_ITEMS, "SELECT n FROM turn_item WHERE thread_n = $1 AND ordinal > $2 ORDER BY ordinal LIMIT $3");
SQL(SQL_MESSAGES,
	"SELECT n FROM turn_item WHERE thread_n = $1 AND ordinal > $2 AND type IN (0, 1, 3) ORDER BY ordinal LIMIT $3");

/* Who wrote it: of a message of a user, or of another agent, that stands with the message. */
static int write_author(struct snapshot *s, struct reading *r, const struct turn_item_row *item, struct failure *f)
{
	struct message_row message;
	struct str id = STR_NONE, by = STR_NONE, source = STR_NONE;

	if (item->message_n != 0) {
		if (NEED(s, message, item->message_n, &message, f) != 0)
			return -1;
		id = message.id;
		by = str_of(creator_name(message.created_by));
		source = str_of(creation_source_name(message.creation_source));
	} else if (item->native_key.p != NULL) {
		by = str_of(creator_name(BY_AGENT));
		source = str_of(creation_source_name(FROM_PROVIDER));
	}
	text_or_null(r->w, "messageId", id);
	text_or_null(r->w, "createdBy", by);
	text_or_null(r->w, "creationSource", source);
	return 0;
}

static int write_run_id(struct snapshot *s, struct reading *r, int64_t run_n, struct failure *f)
{
	struct thread_run_row run;

	if (run_n != 0 && NEED(s, thread_run, run_n, &run, f) != 0)
		return -1;
	text_or_null(r->w, "runId", run_n == 0 ? STR_NONE : ident_run(s->arena, r->thread.id, run.ordinal));
	return 0;
}

static int write_item(struct snapshot *s, struct reading *r, const struct turn_item_row *item, struct str text,
	struct failure *f)
{
	size_t end = utf8_offset(text, (size_t)r->args->max_chars);
	bool is_cut = end < text.n;

	text.n = end;
	jw_object_begin(r->w);
	jw_kint(r->w, "position", item->ordinal);
	jw_ktext(r->w, "visibility", "local");
	jw_kstr(r->w, "sourceThreadId", r->thread.id);
	jw_kstr(r->w, "itemId", item->id);
	if (write_run_id(s, r, item->run_n, f) != 0 || write_author(s, r, item, f) != 0)
		return -1;
	jw_ktext(r->w, "type", item_type_name(item->type));
	jw_ktext(r->w, "status", work_status_name(item->status));
	text_or_null(r->w, "title", item->title);
	text_or_null(r->w, "text", text);
	jw_kbool(r->w, "textTruncated", is_cut);
	jw_ktime(r->w, "updatedAt", item->updated_at);
	jw_object_end(r->w);
	r->last_position = item->ordinal;
	if (r->task.n != 0 && item->n == r->task.result_item_n && !is_cut)
		r->asked->handle = r->task.n;
	return 0;
}

/* 1 shown, 0 the answer is full, -1. */
static int show(struct snapshot *s, struct reading *r, int64_t n, struct failure *f)
{
	struct turn_item_row item;
	struct str text;

	if (NEED(s, turn_item, n, &item, f) != 0 || item_words(s, &item, &text, f) != 0)
		return -1;
	if (r->last_position >= 0 && r->w->out->n + utf8_offset(text, (size_t)r->args->max_chars) > PAGE_BYTES)
		return 0;
	return write_item(s, r, &item, text, f) != 0 ? -1 : 1;
}

static int write_items(struct snapshot *s, struct reading *r, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int64_t left = r->args->limit;
	bool has_more = false;
	int rc, shown;

	if (query(s, &q, f, r->args->is_activity ? SQL_ITEMS : SQL_MESSAGES, "iii", r->thread.n, r->args->after, left + 1) != 0)
		return -1;
	jw_karray(r->w, "items");
	while ((rc = query_next(&q, f)) == 1 && !has_more) {
		shown = left-- > 0 ? show(s, r, col_int(&q, 0), f) : 0;
		if (shown < 0)
			return -1;
		has_more = shown == 0;
	}
	jw_array_end(r->w);
	if (r->last_position < 0) {
		jw_key(r->w, "nextPosition");
		jw_null(r->w);
	} else {
		jw_kint(r->w, "nextPosition", r->last_position);
	}
	jw_kbool(r->w, "hasMore", has_more);
	return rc < 0 ? -1 : 0;
}

/* ---- */

SQL(SQL_TASK_OF_CHILD, "SELECT n FROM subagent WHERE child_n = $1");

static int find_task(struct snapshot *s, struct reading *r, struct failure *f)
{
	int64_t n;
	int rc = query_int(s, &n, f, SQL_TASK_OF_CHILD, "i", r->thread.n);

	if (rc == 1)
		rc = GET(s, subagent, n, &r->task, f);
	if (rc < 0)
		return -1;
	if (rc == 0 || r->task.thread_n != r->asking.thread.n || r->task.origin != ORIGIN_APP_OWNED
		|| r->task.result_transfer_n == 0 || r->task.delivery >= DELIVERY_ACKNOWLEDGED)
		r->task.n = 0;
	return 0;
}

int command_read(struct snapshot *s, struct asked *asked, const struct read_args *args, struct json_writer *w,
	struct failure *f)
{
	struct reading r = {.args = args, .asked = asked, .w = w, .last_position = -1};

	if (asking_look(s, asked->asker, &r.asking, f) != 0
		|| asking_thread(s, &r.asking, args->thread_id, &r.thread, f) != 0 || find_task(s, &r, f) != 0
		|| write_thread(s, &r, f) != 0 || write_runs(s, &r, f) != 0)
		return -1;
	return write_items(s, &r, f);
}

int command_has_read(struct tx *tx, struct asked *asked, struct failure *f)
{
	struct asking asking;

	if (asking_look(&tx->snapshot, asked->asker, &asking, f) != 0)
		return -1;
	return task_acknowledge(tx, &asking, asked->handle, f);
}
