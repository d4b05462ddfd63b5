/* Resources: the same answers as the tools, addressed by URI. Nothing is reachable only here. */
#include "server/private.h"

#include "base/clock.h"
#include "threads/view.h"

struct template {
	const char *pattern;
	const char *name;
	const char *title;
	const char *description;
	const char *tool; /* NULL: static text */
	/* Arguments of that tool, with {name} filled in as JSON strings. */
	const char *arguments;
	bool is_listed; /* no variable: an entry point of resources/list */
	const struct view *view; /* what `id` names, when it is nothing of the work graph */
};

/* Things of the thread half are shown by reading them: asking a tool how a task stands counts as having read its result. */
struct view {
	int (*find)(struct snapshot *s, struct str id, int64_t *n, int64_t *thread_n, struct failure *f);
	int (*show)(struct snapshot *s, int64_t n, struct json_writer *w, struct failure *f);
};
static const struct view thread_resource = {view_find_thread, view_thread};
static const struct view run_resource = {view_find_run, view_run};
static const struct view task_resource = {view_find_task, view_task};

static const char guide[] =
	"# dais\n\n"
	"dais keeps the work of a project as a graph of items that the server guards.\n\n"
	"- An item stands in queue, work, review, blocked or terminal. `advance` moves it; `items_read` with select\n"
	"  `gate` tells beforehand what is missing.\n"
	"- The rules of a project (`config`) say which notes a step needs. `items_read` with select `schema` serves\n"
	"  them with their guidance; `notes_write` fills them.\n"
	"- `deps_write` makes one item wait for another. Finishing an item unblocks what waited and closes its parent\n"
	"  when it was the last child.\n"
	"- `advance` with op `claim` holds an item for one caller; `heartbeat` prolongs it, `release` gives it back.\n"
	"- Every tool explains itself with `{\"describe\":true}`. An error says in `fix` what to do next.\n";

static const struct template templates[] = {
	{"dais://guide", "guide", "How to use dais", "A page for agents.", NULL, NULL, true},
	{"dais://overview", "overview", "All projects", "Projects with counts by role.", "items_read",
		"{\"select\":\"overview\"}", true},
	{"dais://context", "context", "What is going on", "Active, blocked and stalled items.", "items_read",
		"{\"select\":\"context\"}", true},
	{"dais://item/{id}", "item", "One item", "An item with its ancestors and counts.", "items_read",
		"{\"select\":\"get\",\"itemId\":{id},\"fields\":[\"ancestors\",\"description\",\"childCounts\",\"noteProgress\"]}",
		false},
	{"dais://item/{id}/tree", "item-tree", "Children of an item", "An item and its direct children.",
		"items_read", "{\"select\":\"overview\",\"itemId\":{id}}", false},
	{"dais://item/{id}/notes", "item-notes", "Notes of an item", "Keys and sizes of the notes of an item.",
		"notes_read", "{\"select\":\"list\",\"itemId\":{id}}", false},
	{"dais://item/{id}/note/{key}", "item-note", "One note", "The text of one note.", "notes_read",
		"{\"select\":\"get\",\"itemId\":{id},\"key\":{key}}", false},
	{"dais://doc/{root}/{slug}", "document", "A document", "Plan, page or rule of a project.", "docs_read",
		"{\"select\":\"get\",\"rootId\":{root},\"slug\":{slug}}", false},
	{"dais://config/{root}", "config", "Rules of a project", "The effective rules of a project.", "config",
		"{\"select\":\"effective\",\"rootId\":{root}}", false},
	{"dais://thread/{id}", "thread", "A thread", "How a thread stands, and which runs are its newest.", NULL, NULL, false,
		&thread_resource},
	{"dais://run/{id}", "run", "A run", "How a run of a thread stands.", NULL, NULL, false, &run_resource},
	{"dais://task/{id}", "task", "A task", "How a delegated task stands, and its result.", NULL, NULL, false, &task_resource},
};
#define COUNT (sizeof(templates) / sizeof(templates[0]))

void resources_list(struct mcp_request *req, bool wants_templates, struct str after)
{
	struct buf out;
	struct json_writer w;

	(void)after; /* both lists fit one page */
	buf_init(&out, mcp_request_arena(req), SIZE_MAX);
	json_writer_init(&w, &out);
	jw_array_begin(&w);
	for (size_t i = 0; i < COUNT; i++) {
		if (templates[i].is_listed == wants_templates)
			continue;
		jw_object_begin(&w);
		jw_ktext(&w, wants_templates ? "uriTemplate" : "uri", templates[i].pattern);
		jw_ktext(&w, "name", templates[i].name);
		jw_ktext(&w, "title", templates[i].title);
		jw_ktext(&w, "description", templates[i].description);
		jw_ktext(&w, "mimeType", templates[i].tool == NULL && templates[i].view == NULL ? "text/markdown" : "application/json");
		jw_object_end(&w);
	}
	jw_array_end(&w);
	mcp_finish_list(req, buf_str(&out), STR_NONE);
}

static const struct template *match(struct arena *arena, struct str uri, struct mcp_uri_match *found)
{
	for (size_t i = 0; i < COUNT; i++)
		if (mcp_uri_match(arena, str_of(templates[i].pattern), uri, found))
			return &templates[i];
	return NULL;
}

/* The arguments with each {name} replaced by the value as a JSON string. */
static json_t *arguments_of(struct arena *arena, const struct template *template, const struct mcp_uri_match *found)
{
	struct json_error error;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (const char *p = template->arguments; *p != '\0';) {
		bool replaced = false;

		for (size_t i = 0; i < found->n && *p == '{'; i++) {
			size_t n = found->name[i].n;

			if (strncmp(p + 1, found->name[i].p, n) != 0 || p[1 + n] != '}')
				continue;
			buf_add_char(&out, '"');
			json_escape(&out, found->value[i]);
			buf_add_char(&out, '"');
			p += n + 2;
			replaced = true;
			break;
		}
		if (!replaced)
			buf_add_char(&out, *p++);
	}
	return json_read(buf_str(&out), &error);
}

bool resource_is_template(struct str pattern)
{
	for (size_t i = 0; i < COUNT; i++)
		if (str_eq(pattern, str_of(templates[i].pattern)))
			return true;
	return false;
}

struct reading {
	struct tool_call call;
	struct mcp_request *req;
	struct str uri;
	const struct template *template;
};

static void finish_text(struct mcp_request *req, struct str uri, const char *type, struct str text, int64_t ttl_ms)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, mcp_request_arena(req), SIZE_MAX);
	json_writer_init(&w, &out);
	jw_array_begin(&w);
	jw_object_begin(&w);
	jw_kstr(&w, "uri", uri);
	jw_ktext(&w, "mimeType", type);
	jw_kstr(&w, "text", text);
	jw_object_end(&w);
	jw_array_end(&w);
	mcp_finish_contents(req, buf_str(&out), ttl_ms);
}

static void read_done(struct tool_call *call)
{
	struct reading *reading = (struct reading *)call;
	struct json_error error;
	json_auto_t *envelope = NULL;

	if (call->error_code != NULL) {
		if (call->http_status >= 500)
			mcp_finish_internal(reading->req, call->retry_after_ms);
		else
			/* Forbidden and malformed read as missing. */
			mcp_finish_resource_missing(reading->req, reading->uri);
		return;
	}
	envelope = json_read(call->envelope, &error);
	finish_text(reading->req, reading->uri, "application/json",
		json_canonical(call->arena, json_object_get(envelope, "data")), 0);
}

/* ---- threads ---- */

SQL(SQL_PROJECT_OF, "SELECT project_n FROM thread WHERE n = $1");
SQL(SQL_THREAD_PLACE,
	"SELECT t.project_n, p.root_n FROM thread t JOIN project p ON p.n = t.project_n WHERE t.n = $1 AND t.deleted_at IS NULL");

/* An agent that dais started sees the threads of its project, others those of the projects that they may read. */
static int may_read_thread(struct snapshot *s, const struct caller *caller, int64_t thread_n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int64_t own = 0;
	int rc;

	if (!caller_may(caller, CAP_READ))
		return 0;
	if (caller->thread_n != 0 && query_int(s, &own, f, SQL_PROJECT_OF, "i", caller->thread_n) < 0)
		return -1;
	if (query(s, &q, f, SQL_THREAD_PLACE, "i", thread_n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	return caller->thread_n != 0 ? own == col_int(&q, 0) : caller_reads_root(caller, col_int(&q, 1));
}

/* 1 and what it is, 0 not there or not for this caller, -1. */
static int view_find(struct snapshot *s, const struct view *view, const struct caller *caller, struct str id, int64_t *n,
	struct failure *f)
{
	int64_t thread_n;
	int rc = view->find(s, id, n, &thread_n, f);

	return rc == 1 ? may_read_thread(s, caller, thread_n, f) : rc;
}

struct view_reading {
	struct store_read job;
	struct reading *reading;
	struct str id;
};

static void view_refused(void *arg, struct failure *f)
{
	const struct view_reading *v = arg;

	mcp_finish_internal(v->reading->req, f->retry_after_ms);
}

static void view_run_read(struct snapshot *s, void *arg)
{
	const struct view_reading *v = arg;
	struct reading *reading = v->reading;
	const struct view *view = reading->template->view;
	struct json_writer w;
	struct failure f;
	struct buf out;
	int64_t n;
	int rc;

	failure_init(&f, s->arena);
	buf_init(&out, s->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	rc = view_find(s, view, &reading->call.caller, v->id, &n, &f);
	jw_object_begin(&w);
	if (rc == 1 && view->show(s, n, &w, &f) != 0)
		rc = -1;
	jw_object_end(&w);
	if (rc < 0)
		view_refused(arg, &f);
	else if (rc == 0)
		mcp_finish_resource_missing(reading->req, reading->uri);
	else
		finish_text(reading->req, reading->uri, "application/json", buf_str(&out), 0);
}

static void view_read(struct reading *reading, struct str id)
{
	struct server *server = mcp_request_app(reading->req);
	struct arena *arena = mcp_request_arena(reading->req);
	struct view_reading *v = ARENA_NEW(arena, struct view_reading);
	struct failure f;

	failure_init(&f, arena);
	server_caller(reading->req, &reading->call.caller);
	*v = (struct view_reading){.job = {.run = view_run_read, .refuse = view_refused, .arg = v, .arena = arena},
		.reading = reading, .id = str_dup(arena, id)};
	if (store_read_submit(server->store, &v->job, &f) != 0)
		view_refused(v, &f);
}

void resource_read(struct mcp_request *req, struct str uri)
{
	struct arena *arena = mcp_request_arena(req);
	struct server *server = mcp_request_app(req);
	struct reading *reading = ARENA_NEW(arena, struct reading);
	struct mcp_uri_match found = {.n = 0};
	json_t *arguments;

	reading->req = req;
	reading->uri = str_dup(arena, uri);
	reading->template = match(arena, uri, &found);
	if (reading->template == NULL) {
		mcp_finish_resource_missing(req, uri);
		return;
	}
	if (reading->template->view != NULL) {
		view_read(reading, found.value[0]);
		return;
	}
	if (reading->template->tool == NULL) {
		finish_text(req, uri, "text/markdown", str_of(guide), 60000);
		return;
	}
	arguments = arguments_of(arena, reading->template, &found);
	if (arguments == NULL) {
		mcp_finish_resource_missing(req, uri);
		return;
	}
	arena_at_end(arena, (void (*)(void *))json_decref, arguments);
	reading->call.arena = arena;
	reading->call.tool = tool_find(str_of(reading->template->tool));
	reading->call.args = arguments;
	reading->call.done = read_done;
	server_caller(req, &reading->call.caller);
	tools_call(server->tools, &reading->call);
}

bool resource_visible(void *app, const struct mcp_caller *caller, struct str uri)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct server *server = app;
	struct mcp_uri_match found = {.n = 0};
	const struct template *template = match(arena, uri, &found);
	struct call call;
	struct snapshot s;
	struct failure f;
	bool is_open = template != NULL && template->tool == NULL && template->view == NULL;
	bool visible = template != NULL && (is_open || caller_may(caller->app, CAP_READ));
	int64_t n;

	/* What names an item or a project is visible when that is. */
	for (size_t i = 0; visible && i < found.n; i++) {
		if (!str_eq(found.name[i], STR("id")) && !str_eq(found.name[i], STR("root")))
			continue;
		failure_init(&f, arena);
		if (snapshot_begin(server->store, arena, &s, &f) != 0)
			return false;
		if (template->view != NULL) {
			visible = view_find(&s, template->view, caller->app, found.value[i], &n, &f) == 1;
		} else {
			call_init(&call, arena, caller->app, server->rules);
			visible = id_resolve(&s, &call, KIND_ITEM, found.value[i], STR("uri"), &n, &f) == 0;
			call_finish(&call);
		}
		snapshot_end(&s);
	}
	return visible;
}
