/* create_threads: several threads at once, all or none of them. */
#include "threads/commands.h"

#include "base/id.h"
#include "base/limits.h"

struct making {
	struct tx *tx;
	const struct asking *asking;
	struct str key; /* clientRequestId, or what stands for it */
	struct str command_id;
	size_t index;
	const struct create_entry *entry;
};

/* What becomes of one entry, before anything is made. */
struct planned {
	struct chosen chosen;
	enum runtime_mode runtime;
	enum interaction_mode interaction;
};

static struct str thread_id_of(const struct making *m)
{
	struct arena *arena = m->tx->snapshot.arena;

	return IDENT(arena, "thread:mcp", m->asking->thread.namespace, m->key, ident_number(arena, (int64_t)m->index));
}

static int plan(const struct making *m, struct planned *out, struct failure *f)
{
	const struct create_entry *entry = m->entry;

	if (target_choose(m->tx, m->asking, &entry->target, &out->chosen, f) != 0
		|| modes_choose(m->asking, entry->runtime, entry->interaction, &out->runtime, &out->interaction, f) != 0)
		return fail_under(f, "threads[%zu].", m->index);
	return 0;
}

static struct str title_of(const struct making *m)
{
	struct arena *arena = m->tx->snapshot.arena;

	if (m->entry->title.n > 0 || m->entry->prompt.n > 0)
		return thread_title(arena, m->entry->title, m->entry->prompt, LIMIT_CREATED_TITLE_CHARS);
	return thread_title(arena, STR_NONE,
		str_printf(arena, "%.*s thread %zu", STRF(m->asking->thread.title), m->index + 1), LIMIT_CREATED_TITLE_CHARS);
}

static int add_thread(const struct making *m, const struct planned *planned, struct thread_row *out, struct failure *f)
{
	struct tx *tx = m->tx;
	const struct thread_row *caller = &m->asking->thread;

	*out = (struct thread_row){.id = thread_id_of(m),
		.project_n = caller->project_n,
		.kind = THREAD_AGENT,
		.title = title_of(m),
		.instance_id = planned->chosen.instance->id,
		.model = planned->chosen.model,
		.runtime_mode = planned->runtime,
		.interaction_mode = planned->interaction,
		.branch = caller->branch,
		.worktree_path = caller->worktree_path,
		.relationship = RELATION_NONE,
		.created_by = BY_AGENT,
		.creation_source = FROM_MCP,
		.namespace = ident_namespace(tx->snapshot.arena),
		.created_at = tx->snapshot.now,
		.updated_at = tx->snapshot.now};
	if (tx_next(tx, SEQ_thread, &out->n, f) != 0)
		return -1;
	out->root_n = out->n;
	return PUT(tx, thread, out, out->n, f);
}

static int send_prompt(const struct making *m, const struct thread_row *thread, struct failure *f)
{
	struct arena *arena = m->tx->snapshot.arena;
	struct dispatched dispatched;
	struct dispatch message = {.thread_n = thread->n,
		.mode = DISPATCH_START,
		.message_id = IDENT(arena, "message:mcp", m->asking->thread.namespace, STR("create-threads"), m->key,
			ident_number(arena, (int64_t)m->index)),
		.text = m->entry->prompt,
		.created_by = BY_AGENT,
		.source = FROM_MCP,
		.sender_n = m->asking->thread.n};

	return m->entry->prompt.n == 0 ? 0 : message_dispatch(m->tx, &message, &dispatched, f);
}

/* Its row in the caller's timeline. */
static int record(const struct making *m, const struct thread_row *thread, struct failure *f)
{
	struct arena *arena = m->tx->snapshot.arena;
	struct turn_item_row item = {
		.id = IDENT(arena, "turn-item:thread-created", m->command_id, ident_number(arena, (int64_t)m->index)),
		.thread_n = m->asking->thread.n,
		.run_n = m->asking->run.n,
		.attempt_n = m->asking->run.attempt_n,
		.type = TYPE_THREAD_CREATED,
		.status = WORK_COMPLETED,
		.title = thread->title,
		.started_at = m->tx->snapshot.now,
		.completed_at = m->tx->snapshot.now};
	struct json_writer w;
	struct buf body;

	buf_init(&body, arena, SIZE_MAX);
	json_writer_init(&w, &body);
	jw_object_begin(&w);
	jw_kstr(&w, "targetThreadId", thread->id);
	text_or_null(&w, "targetRunId", m->entry->prompt.n == 0 ? STR_NONE : ident_run(arena, thread->id, 1));
	jw_kstr(&w, "targetProviderInstanceId", thread->instance_id);
	text_or_null(&w, "targetModel", thread->model);
	jw_object_end(&w);
	item.body = buf_str(&body);
	return item_add(m->tx, &item, f);
}

static int make(const struct making *m, const struct planned *planned, struct failure *f)
{
	struct thread_row thread;

	return add_thread(m, planned, &thread, f) != 0 || send_prompt(m, &thread, f) != 0 ? -1 : record(m, &thread, f);
}

SQL(SQL_FIRST_RUN, "SELECT status FROM thread_run WHERE thread_n = $1 AND ordinal = 1");

static int answer_one(const struct making *m, struct json_writer *w, struct failure *f)
{
	struct snapshot *s = &m->tx->snapshot;
	struct thread_row thread;
	int64_t n, status = THREAD_IS_IDLE;
	bool has_run = m->entry->prompt.n > 0;

	if (row_find(s, ROW_thread, thread_id_of(m), &n, f) < 0 || NEED(s, thread, n, &thread, f) != 0
		|| (has_run && query_int(s, &status, f, SQL_FIRST_RUN, "i", n) < 0))
		return -1;
	jw_object_begin(w);
	jw_kstr(w, "threadId", thread.id);
	text_or_null(w, "runId", has_run ? ident_run(s->arena, thread.id, 1) : STR_NONE);
	jw_ktext(w, "status", thread_status_name(status));
	jw_kstr(w, "title", thread.title);
	jw_ktext(w, "createdBy", creator_name(thread.created_by));
	jw_ktext(w, "creationSource", creation_source_name(thread.creation_source));
	jw_kstr(w, "providerInstanceId", thread.instance_id);
	text_or_null(w, "model", thread.model);
	jw_object_end(w);
	return 0;
}

static int make_all(struct making *m, const struct create_entry *entries, size_t count, struct failure *f)
{
	struct planned *planned = arena_alloc(m->tx->snapshot.arena, count * sizeof(*planned));

	if (asking_need_run(m->tx, m->asking, f) != 0)
		return -1;
	for (m->index = 0; m->index < count; m->index++) {
		m->entry = &entries[m->index];
		if (plan(m, &planned[m->index], f) != 0)
			return -1;
	}
	for (m->index = 0; m->index < count; m->index++) {
		m->entry = &entries[m->index];
		if (make(m, &planned[m->index], f) != 0)
			return -1;
	}
	return 0;
}

int command_create(struct tx *tx, struct asked *asked, const struct create_entry *entries, size_t count,
	struct json_writer *w, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct asking asking;
	struct command command;
	struct making m = {.tx = tx, .asking = &asking, .key = asked->key.p == NULL ? random_token(arena, 16) : asked->key};
	int rc;

	if (asking_resolve(tx, asked->asker, &asking, f) != 0)
		return -1;
	command_name(&command, arena, &asking, "create-threads", m.key, asked->fingerprint);
	m.command_id = command.id;
	rc = command_seen(tx, &command, f);
	if (rc < 0 || (rc == 0 && (make_all(&m, entries, count, f) != 0 || command_accept(tx, &command, STR("{}"), f) != 0)))
		return -1;
	jw_karray(w, "threads");
	for (m.index = 0; m.index < count; m.index++) {
		m.entry = &entries[m.index];
		if (answer_one(&m, w, f) != 0)
			return -1;
	}
	jw_array_end(w);
	return 0;
}
