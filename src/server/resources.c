/* Resources: the same answers as the tools, addressed by URI. Nothing is reachable only here. */
#include "server/private.h"

#include "base/clock.h"

struct template {
	const char *pattern;
	const char *name;
	const char *title;
	const char *description;
	const char *tool; /* NULL: static text */
	/* Arguments of that tool, with {name} filled in as JSON strings. */
	const char *arguments;
	bool is_listed; /* no variable: an entry point of resources/list */
};

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
		jw_ktext(&w, "mimeType", templates[i].tool == NULL ? "text/markdown" : "application/json");
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
	bool visible = template != NULL && (template->tool == NULL || caller_may(caller->app, CAP_READ));
	int64_t n;

	/* What names an item or a project is visible when that is. */
	for (size_t i = 0; visible && i < found.n; i++) {
		if (!str_eq(found.name[i], STR("id")) && !str_eq(found.name[i], STR("root")))
			continue;
		failure_init(&f, arena);
		if (snapshot_begin(server->store, arena, &s, &f) != 0)
			return false;
		call_init(&call, arena, caller->app, server->rules);
		visible = id_resolve(&s, &call, KIND_ITEM, found.value[i], STR("uri"), &n, &f) == 0;
		call_finish(&call);
		snapshot_end(&s);
	}
	return visible;
}
