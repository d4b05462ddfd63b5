/* The tasks extension: work that outlives the call that began it. table->lock guards every task. */
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "mcp/inside.h"

#include <stdlib.h>

#define BUCKETS 256U
#define DAY_MS 86400000LL
#define YOUNG_MS 30000 /* such tasks are asked for more often */

struct task {
	struct task *next;
	struct arena *arena; /* whole texts only; a task changes a few times in its life */
	struct mcp_task_row row;
	char *message; /* heap: it may change often */
	json_t *open;  /* questions without an answer, by key */
	json_t *known; /* every key so far */
};

struct task_table {
	pthread_mutex_t lock;
	struct task *buckets[BUCKETS];
	size_t count;
};

static const char *const status_names[] = {
	"working", "input_required", "completed", "failed", "cancelled"};

struct task_table *mcp_task_table_create(void)
{
	struct task_table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		abort();
	(void)pthread_mutex_init(&table->lock, NULL);
	return table;
}

static void task_destroy(struct task *task)
{
	free(task->message);
	json_decref(task->open);
	json_decref(task->known);
	arena_destroy(task->arena);
	free(task);
}

void mcp_task_table_destroy(struct task_table *table)
{
	for (size_t i = 0; i < BUCKETS; i++)
		while (table->buckets[i] != NULL) {
			struct task *task = table->buckets[i];

			table->buckets[i] = task->next;
			task_destroy(task);
		}
	(void)pthread_mutex_destroy(&table->lock);
	free(table);
}

static size_t bucket_of(struct str id)
{
	size_t hash = 5381;

	for (size_t i = 0; i < id.n; i++)
		hash = hash * 33 + (unsigned char)id.p[i];
	return hash % BUCKETS;
}

static bool is_terminal(const struct task *task)
{
	return task->row.status >= MCP_TASK_COMPLETED;
}

static bool is_expired(const struct task *task, int64_t now)
{
	return now > task->row.created_at + task->row.ttl_ms;
}

static void table_add(struct task_table *table, struct task *task)
{
	size_t at = bucket_of(task->row.id);

	task->next = table->buckets[at];
	table->buckets[at] = task;
	table->count++;
}

static struct task *task_from_row(const struct mcp_task_row *row)
{
	struct task *task = calloc(1, sizeof(*task));

	if (task == NULL)
		abort();
	task->arena = arena_create();
	task->row = *row;
	task->row.id = str_dup(task->arena, row->id);
	task->row.principal = str_dup(task->arena, row->principal);
	task->row.message = str_dup(task->arena, row->message);
	task->row.result = str_dup(task->arena, row->result);
	task->row.error = str_dup(task->arena, row->error);
	if (row->input_requests.n > 0)
		task->open = json_loadb(
			row->input_requests.p, row->input_requests.n, JSON_ALLOW_NUL, NULL);
	if (row->used_keys.n > 0)
		task->known = json_loadb(row->used_keys.p, row->used_keys.n, JSON_ALLOW_NUL, NULL);
	if (!json_is_object(task->open))
		task->open = json_object();
	if (!json_is_object(task->known))
		task->known = json_object();
	return task;
}

/* Lock held. The live task of this principal (any, when absent), or NULL. */
static struct task *find(struct mcp_server *server, struct str principal, struct str id)
{
	struct task_table *table = server->tasks;
	struct task *task = table->buckets[bucket_of(id)];

	while (task != NULL && !str_eq(task->row.id, id))
		task = task->next;
	if (task == NULL && server->on->task_load != NULL) {
		AUTO(arena_destroyp) struct arena *arena = arena_create();
		struct mcp_task_row row = {0};

		if (server->on->task_load(server->app, id, arena, &row)) {
			task = task_from_row(&row);
			table_add(table, task);
		}
	}
	if (task == NULL || is_expired(task, clock_wall_ms()) ||
		(principal.p != NULL && !str_eq(task->row.principal, principal)))
		return NULL;
	return task;
}

bool mcp_task_visible(struct mcp_server *server, struct str principal, struct str id)
{
	bool visible;

	(void)pthread_mutex_lock(&server->tasks->lock);
	visible = find(server, principal, id) != NULL;
	(void)pthread_mutex_unlock(&server->tasks->lock);
	return visible;
}

static void write_fields(const struct task *task, struct json_writer *w)
{
	const struct mcp_task_row *row = &task->row;

	jw_kstr(w, "taskId", row->id);
	jw_ktext(w, "status", status_names[row->status]);
	jw_kstr_opt(w, "statusMessage", row->message);
	jw_ktime(w, "createdAt", row->created_at);
	jw_ktime(w, "lastUpdatedAt", row->updated_at);
	jw_kint(w, "ttlMs", row->ttl_ms);
	jw_kint(w, "pollIntervalMs", clock_wall_ms() - row->created_at < YOUNG_MS ? 2000 : 5000);
}

static void write_detail(const struct task *task, struct json_writer *w)
{
	write_fields(task, w);
	if (task->row.status == MCP_TASK_INPUT_REQUIRED) {
		jw_key(w, "inputRequests");
		jw_json(w, task->open);
	} else if (task->row.status == MCP_TASK_COMPLETED) {
		jw_kraw(w, "result", task->row.result);
	} else if (task->row.status == MCP_TASK_FAILED) {
		jw_kraw(w, "error", task->row.error);
	}
}

/* Lock held. Store it, and write what listeners are told. */
static void changed(
	struct mcp_server *server, struct task *task, struct arena *arena, struct str *detail)
{
	struct buf out;
	struct json_writer w;

	task->row.updated_at = clock_wall_ms();
	task->row.input_requests = json_canonical(arena, task->open);
	task->row.used_keys = json_canonical(arena, task->known);
	if (server->on->task_save != NULL)
		server->on->task_save(server->app, &task->row);
	task->row.input_requests = STR_NONE;
	task->row.used_keys = STR_NONE;
	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	write_detail(task, &w);
	*detail = buf_str(&out);
}

static void tell(struct mcp_server *server, struct str principal, struct str id, struct str detail,
	struct arena *arena)
{
	struct mcp_request **all;
	size_t n;

	all = server_snapshot(server, &server->listens, arena, &n);
	for (size_t i = 0; i < n; i++) {
		listen_note_task(all[i], principal, id, detail);
		request_unref(all[i]);
	}
}

/* Apply `change` to a task that is not over; save and tell. */
static void alter(struct mcp_server *server, struct str id,
	bool (*change)(struct task *task, const void *what), const void *what)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str detail = STR_NONE;
	struct str principal = STR_NONE;
	struct task *task;

	(void)pthread_mutex_lock(&server->tasks->lock);
	task = find(server, STR_NONE, id);
	if (task != NULL && !is_terminal(task) && change(task, what)) {
		changed(server, task, arena, &detail);
		principal = str_dup(arena, task->row.principal);
	}
	(void)pthread_mutex_unlock(&server->tasks->lock);
	if (detail.p != NULL)
		tell(server, principal, id, detail, arena);
}

static bool set_message(struct task *task, const void *what)
{
	const struct str *text = what;

	free(task->message);
	task->message = strndup(text->p, text->n);
	task->row.message = str_of(task->message);
	return true;
}

void mcp_task_message(struct mcp_server *server, struct str id, struct str message)
{
	alter(server, id, set_message, &message);
}

static bool add_questions(struct task *task, const void *what)
{
	json_t *requests = (json_t *)(uintptr_t)what;
	const char *key;
	json_t *value;

	json_object_foreach(requests, key, value)
	{
		if (json_object_get(task->known, key) != NULL)
			continue;
		(void)json_object_set(task->open, key, value);
		(void)json_object_set_new(task->known, key, json_true());
	}
	if (json_object_size(task->open) > 0)
		task->row.status = MCP_TASK_INPUT_REQUIRED;
	return true;
}

void mcp_task_ask(struct mcp_server *server, struct str id, struct str requests)
{
	json_t *value = json_loadb(requests.p, requests.n, JSON_ALLOW_NUL, NULL);

	alter(server, id, add_questions, value);
	json_decref(value);
}

static bool set_result(struct task *task, const void *what)
{
	task->row.status = MCP_TASK_COMPLETED;
	task->row.result = str_printf(task->arena, "{%.*s}", STRF(*(const struct str *)what));
	return true;
}

void mcp_task_complete(struct mcp_server *server, struct str id, struct str members)
{
	alter(server, id, set_result, &members);
}

static bool set_error(struct task *task, const void *what)
{
	task->row.status = MCP_TASK_FAILED;
	task->row.error = str_dup(task->arena, *(const struct str *)what);
	return true;
}

void mcp_task_fail(struct mcp_server *server, struct str id, enum mcp_code code, struct str message)
{
	struct buf out;
	struct json_writer w;
	struct str error;

	buf_init(&out, NULL, SIZE_MAX);
	json_writer_init(&w, &out);
	message_error_object(&w, code, message, STR_NONE);
	error = buf_str(&out);
	alter(server, id, set_error, &error);
	buf_finish(&out);
}

/* Lock held: a full table loses what is over and stored. */
static void make_room(struct mcp_server *server)
{
	struct task_table *table = server->tasks;
	int64_t now = clock_wall_ms();

	for (size_t i = 0; i < BUCKETS; i++)
		for (struct task **at = &table->buckets[i]; *at != NULL;) {
			struct task *task = *at;
			bool expired = is_expired(task, now);

			if (!expired && (table->count < LIMIT_MCP_TASKS || !is_terminal(task))) {
				at = &task->next;
				continue;
			}
			if (expired && server->on->task_delete != NULL)
				server->on->task_delete(server->app, task->row.id);
			*at = task->next;
			table->count--;
			task_destroy(task);
		}
}

void mcp_task_table_tick(struct mcp_server *server)
{
	(void)pthread_mutex_lock(&server->tasks->lock);
	make_room(server);
	(void)pthread_mutex_unlock(&server->tasks->lock);
}

void mcp_finish_task(
	struct mcp_request *req, int64_t ttl_ms, struct str message, char id[MCP_TASK_ID_SIZE])
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct mcp_server *server = req->server;
	unsigned char random[16];
	struct mcp_task_row row = {
		.principal = req->caller.principal,
		.message = message,
		.created_at = clock_wall_ms(),
		.ttl_ms = ttl_ms > 0 ? ttl_ms : LIMIT_MCP_TASK_DAYS * DAY_MS,
	};
	struct task *task;
	struct str detail;
	struct buf out;
	struct json_writer w;

	random_bytes(random, sizeof(random));
	row.id = hex(arena, random, sizeof(random));
	memcpy(id, row.id.p, MCP_TASK_ID_SIZE - 1);
	id[MCP_TASK_ID_SIZE - 1] = '\0';
	task = task_from_row(&row);
	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	(void)pthread_mutex_lock(&server->tasks->lock);
	if (server->tasks->count >= LIMIT_MCP_TASKS)
		make_room(server);
	table_add(server->tasks, task);
	/* The row is stored before the client hears the id. */
	changed(server, task, arena, &detail);
	write_fields(task, &w);
	(void)pthread_mutex_unlock(&server->tasks->lock);
	request_finish(req, &(struct result){.kind = RESULT_TASK, .members = buf_str(&out)});
}

static void unknown(struct mcp_request *req)
{
	request_fail(req, 200, MCP_INVALID_PARAMS, STR("There is no such task."), STR_NONE);
}

void mcp_task_run_get(struct mcp_request *req)
{
	const struct task *task;
	struct buf out;
	struct json_writer w;

	buf_init(&out, NULL, SIZE_MAX);
	json_writer_init(&w, &out);
	(void)pthread_mutex_lock(&req->server->tasks->lock);
	task = find(req->server, req->caller.principal, req->target);
	if (task != NULL)
		write_detail(task, &w);
	(void)pthread_mutex_unlock(&req->server->tasks->lock);
	if (task != NULL)
		request_finish(
			req, &(struct result){.kind = RESULT_COMPLETE, .members = buf_str(&out)});
	else
		unknown(req);
	buf_finish(&out);
}

/* Lock held: keys of `answers` that are open leave the questions and stay in `taken`. */
static void take_answers(struct task *task, const json_t *answers, json_t *taken)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)answers, key,
		value) if (json_object_get(task->open, key) != NULL)
	{
		(void)json_object_del(task->open, key);
		(void)json_object_set(taken, key, value);
	}
	if (json_object_size(task->open) == 0 && task->row.status == MCP_TASK_INPUT_REQUIRED)
		task->row.status = MCP_TASK_WORKING;
}

void mcp_task_run_update(struct mcp_request *req)
{
	struct mcp_server *server = req->server;
	const json_t *answers = json_object_get(req->message.params, "inputResponses");
	struct str id = req->target;
	json_t *taken;
	struct str detail = STR_NONE;
	struct task *task;
	const char *key;
	json_t *value;

	if (!json_is_object(answers)) {
		request_fail(req, 200, MCP_INVALID_PARAMS, STR("inputResponses is not an object."),
			STR_NONE);
		return;
	}
	taken = json_object();
	(void)pthread_mutex_lock(&server->tasks->lock);
	task = find(server, req->caller.principal, id);
	if (task != NULL && !is_terminal(task)) {
		take_answers(task, answers, taken);
		changed(server, task, req->arena, &detail);
	}
	(void)pthread_mutex_unlock(&server->tasks->lock);
	if (task == NULL) {
		json_decref(taken);
		unknown(req);
		return;
	}
	if (detail.p != NULL)
		tell(server, req->caller.principal, id, detail, req->arena);
	if (server->on->task_input != NULL)
		json_object_foreach(taken, key, value)
			server->on->task_input(server->app, id, str_of(key), value);
	json_decref(taken);
	request_finish(req, &(struct result){.kind = RESULT_COMPLETE});
}

void mcp_task_run_cancel(struct mcp_request *req)
{
	struct mcp_server *server = req->server;
	struct str detail = STR_NONE;
	struct task *task;

	(void)pthread_mutex_lock(&server->tasks->lock);
	task = find(server, req->caller.principal, req->target);
	if (task != NULL && !is_terminal(task)) {
		task->row.status = MCP_TASK_CANCELLED;
		changed(server, task, req->arena, &detail);
	}
	(void)pthread_mutex_unlock(&server->tasks->lock);
	if (task == NULL) {
		unknown(req);
		return;
	}
	if (detail.p != NULL) {
		tell(server, req->caller.principal, req->target, detail, req->arena);
		if (server->on->task_cancel != NULL)
			server->on->task_cancel(server->app, req->target);
	}
	request_finish(req, &(struct result){.kind = RESULT_COMPLETE});
}
