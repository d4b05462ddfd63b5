/* Prompts: what people start a conversation with, rendered from the live state; and completion of what they
 * type. */
#include "server/private.h"

struct prompt {
	const char *name;
	const char *title;
	const char *description;
	const char *argument; /* NULL: none */
	const char *argument_help;
	bool is_required;
	const char *tool, *arguments; /* what is read; {arg} is the argument as a JSON string */
	const char *text;	      /* before the state */
};

static const struct prompt prompts[] = {
	{"next_item", "Next item", "What to work on next.", "project", "id of a project or ancestor", false,
		"items_read", "{\"select\":\"next\",\"limit\":3,\"includeDetails\":true{scope}}",
		"Choose the most useful of these items, claim it with the tool advance, read its gate with items_read "
		"(select gate), and begin. State of the queue:\n\n"},
	{"resume_session", "Resume", "Pick up where the last session ended.", "project", "id of a project or ancestor",
		false, "items_read", "{\"select\":\"context\"{scope}}",
		"Go on with the work that is under way. Items that are stalled miss the notes named; items that are "
		"blocked wait for others. State:\n\n"},
	{"plan_tree", "Plan", "Turn a goal into items.", "goal", "what is to be reached", true, "items_read",
		"{\"select\":\"schema\"}",
		"Break the goal below into a tree of items, small enough that each can be finished and reviewed by "
		"itself, and create it with one items_write op create_tree; express order with deps. Types that this "
		"project knows:\n\n"},
	{"retrospective", "Retrospective", "Look back on a project.", "project", "id of the project", true, "report",
		"{\"select\":\"rollup\",\"rootId\":{arg}}",
		"Look back: what was refused, retried and learned? Propose at most three changes of the rules, each with "
		"its reason. Numbers:\n\n"},
};
#define COUNT (sizeof(prompts) / sizeof(prompts[0]))

void prompts_list(struct mcp_request *req)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, mcp_request_arena(req), SIZE_MAX);
	json_writer_init(&w, &out);
	jw_array_begin(&w);
	for (size_t i = 0; i < COUNT; i++) {
		jw_object_begin(&w);
		jw_ktext(&w, "name", prompts[i].name);
		jw_ktext(&w, "title", prompts[i].title);
		jw_ktext(&w, "description", prompts[i].description);
		jw_karray(&w, "arguments");
		if (prompts[i].argument != NULL) {
			jw_object_begin(&w);
			jw_ktext(&w, "name", prompts[i].argument);
			jw_ktext(&w, "description", prompts[i].argument_help);
			jw_kbool(&w, "required", prompts[i].is_required);
			jw_object_end(&w);
		}
		jw_array_end(&w);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	mcp_finish_list(req, buf_str(&out), STR_NONE);
}

struct rendering {
	struct tool_call call;
	struct mcp_request *req;
	const struct prompt *prompt;
	struct str value;
};

static void render(struct tool_call *call)
{
	struct rendering *rendering = (struct rendering *)call;
	struct mcp_request *req = rendering->req;
	struct json_error error;
	json_auto_t *envelope = json_read(call->envelope, &error);
	struct str state;
	struct buf text;
	struct buf out;
	struct json_writer w;

	if (call->error_code != NULL) {
		if (call->http_status >= 500)
			mcp_finish_internal(req, call->retry_after_ms);
		else
			mcp_finish_error(req, MCP_INVALID_PARAMS,
				json_member_str(json_object_get(envelope, "error"), "message"), STR_NONE);
		return;
	}
	state = json_canonical(call->arena, json_object_get(envelope, "data"));
	buf_init(&text, call->arena, SIZE_MAX);
	buf_add_str(&text, str_of(rendering->prompt->text));
	/* A prompt stays below 16 KB: a context this long is read by tool anyway. */
	buf_add(&text, state.p, utf8_cut(state, 15000));
	if (strcmp(rendering->prompt->name, "plan_tree") == 0) {
		buf_add_str(&text, STR("\n\nGoal: "));
		buf_add(&text, rendering->value.p, utf8_cut(rendering->value, 8000));
	}
	buf_init(&out, call->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_ktext(&w, "description", rendering->prompt->description);
	jw_karray(&w, "messages");
	jw_object_begin(&w);
	jw_ktext(&w, "role", "user");
	jw_kobject(&w, "content");
	jw_ktext(&w, "type", "text");
	jw_kstr(&w, "text", buf_str(&text));
	jw_object_end(&w);
	jw_object_end(&w);
	jw_array_end(&w);
	mcp_finish_result(req, buf_str(&out));
}

static void replace(struct buf *out, const char *text, const char *what, struct str with)
{
	const char *at = strstr(text, what);

	if (at == NULL) {
		buf_add_str(out, str_of(text));
		return;
	}
	buf_add(out, text, (size_t)(at - text));
	buf_add_str(out, with);
	buf_add_str(out, str_of(at + strlen(what)));
}

static json_t *arguments_of(struct arena *arena, const struct prompt *prompt, struct str value)
{
	struct json_error error;
	struct buf quoted;
	struct buf scope;
	struct buf one;
	struct buf out;

	buf_init(&quoted, arena, SIZE_MAX);
	buf_add_char(&quoted, '"');
	json_escape(&quoted, value);
	buf_add_char(&quoted, '"');
	buf_init(&scope, arena, SIZE_MAX);
	if (value.n > 0)
		buf_printf(&scope, ",\"ancestorId\":%.*s", STRF(buf_str(&quoted)));
	buf_init(&one, arena, SIZE_MAX);
	replace(&one, prompt->arguments, "{scope}", buf_str(&scope));
	buf_init(&out, arena, SIZE_MAX);
	replace(&out, str_z(arena, buf_str(&one)), "{arg}", buf_str(&quoted));
	return json_read(buf_str(&out), &error);
}

void prompt_get(struct mcp_request *req, struct str name, const json_t *arguments)
{
	struct arena *arena = mcp_request_arena(req);
	struct server *server = mcp_request_app(req);
	struct rendering *rendering = ARENA_NEW(arena, struct rendering);
	json_t *args;
	size_t i = 0;

	while (i < COUNT && !str_eq(name, str_of(prompts[i].name)))
		i++;
	if (i == COUNT) {
		mcp_finish_error(req, MCP_INVALID_PARAMS, STR("Unknown prompt."), STR_NONE);
		return;
	}
	rendering->req = req;
	rendering->prompt = &prompts[i];
	rendering->value = json_member_str(arguments, prompts[i].argument);
	if (prompts[i].is_required && rendering->value.n == 0) {
		mcp_finish_error(req, MCP_INVALID_PARAMS,
			str_printf(arena, "The argument %s is required.", prompts[i].argument), STR_NONE);
		return;
	}
	args = arguments_of(arena, &prompts[i], rendering->value);
	if (args == NULL) {
		mcp_finish_error(req, MCP_INVALID_PARAMS, STR("The argument cannot be read."), STR_NONE);
		return;
	}
	arena_at_end(arena, (void (*)(void *))json_decref, args);
	rendering->call.arena = arena;
	rendering->call.tool = tool_find(str_of(prompts[i].tool));
	rendering->call.args = args;
	rendering->call.done = render;
	server_caller(req, &rendering->call.caller);
	tools_call(server->tools, &rendering->call);
}

/* ---- completion: prefix scans on indexes ---- */

SQL(SQL_COMPLETE_ID, "SELECT id, root_n FROM item WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT 400");
SQL(SQL_COMPLETE_ROOT,
	"SELECT id, root_n FROM item WHERE parent_n IS NULL AND id >= $1 AND id <= $2 ORDER BY id LIMIT 400");
SQL(SQL_COMPLETE_SLUG, "SELECT DISTINCT slug, root_n FROM document WHERE slug >= $1 AND slug < $2 ORDER BY slug LIMIT 400");
SQL(SQL_COMPLETE_SLUG_OF,
	"SELECT slug, root_n FROM document WHERE root_n = $1 AND slug >= $2 AND slug < $3 ORDER BY slug LIMIT 400");
SQL(SQL_COMPLETE_KEY,
	"SELECT DISTINCT x.key, i.root_n FROM note x JOIN item i ON i.n = x.item_n WHERE x.item_n = $1"
	" AND x.key >= $2 AND x.key < $3 ORDER BY x.key LIMIT 400");
SQL(SQL_ITEM_BY_ID, "SELECT n FROM item WHERE id = $1");

/* Ids that begin with what was typed; fewer than eight digits count here. */
static bool id_range(struct str typed, struct id *low, struct id *high)
{
	size_t digits = 0;

	memset(low, 0, sizeof(*low));
	memset(high, 0xff, sizeof(*high));
	for (size_t i = 0; i < typed.n && digits < 32; i++) {
		const char *all = "0123456789abcdef0123456789ABCDEF";
		const char *at = typed.p[i] == '\0' ? NULL : strchr(all, typed.p[i]);
		unsigned digit;

		if (typed.p[i] == '-')
			continue;
		if (at == NULL)
			return false;
		digit = (unsigned)(at - all) & 15;
		if (digits % 2 == 0) {
			low->b[digits / 2] = (unsigned char)(digit << 4);
			high->b[digits / 2] = (unsigned char)(digit << 4 | 15);
		} else {
			low->b[digits / 2] = (unsigned char)(low->b[digits / 2] | digit);
			high->b[digits / 2] = low->b[digits / 2];
		}
		digits++;
	}
	return true;
}

/* Text just behind everything that begins with `typed`. */
static struct str behind(struct arena *arena, struct str typed)
{
	return str_printf(arena, "%.*s\xf4\x8f\xbf\xbf", STRF(typed));
}

/* The item that an argument chosen before names by its whole id. */
static bool item_of(struct snapshot *s, const json_t *context, const char *name, int64_t *out_n, struct failure *f)
{
	struct id_prefix id;

	return id_prefix_parse(json_member_str(context, name), &id) && id.digits == 32 &&
		query_int(s, out_n, f, SQL_ITEM_BY_ID, "b", id.low) == 1;
}

static int start_query(struct snapshot *s, const struct mcp_completion *what, struct query *q, struct failure *f)
{
	struct id low;
	struct id high;
	int64_t item_n;

	if (str_eq(what->argument, STR("id")) || str_eq(what->argument, STR("root")) ||
		str_eq(what->argument, STR("project"))) {
		if (!id_range(what->value, &low, &high))
			return 1;
		return query(s, q, f, str_eq(what->argument, STR("id")) ? SQL_COMPLETE_ID : SQL_COMPLETE_ROOT, "bb", low,
			high);
	}
	if (str_eq(what->argument, STR("slug")) && json_object_get(what->context, "root") != NULL) {
		if (!item_of(s, what->context, "root", &item_n, f))
			return 1;
		return query(s, q, f, SQL_COMPLETE_SLUG_OF, "iss", item_n, what->value, behind(s->arena, what->value));
	}
	if (str_eq(what->argument, STR("slug")))
		return query(s, q, f, SQL_COMPLETE_SLUG, "ss", what->value, behind(s->arena, what->value));
	if (str_eq(what->argument, STR("key"))) {
		if (!item_of(s, what->context, "id", &item_n, f))
			return 1;
		return query(s, q, f, SQL_COMPLETE_KEY, "iss", item_n, what->value, behind(s->arena, what->value));
	}
	return 1; /* an argument without suggestions */
}

static bool known_ref(const struct mcp_completion *what)
{
	if (!what->of_prompt)
		return resource_is_template(what->ref);
	for (size_t i = 0; i < COUNT; i++)
		if (str_eq(what->ref, str_of(prompts[i].name)))
			return true;
	return false;
}

void complete(struct mcp_request *req, const struct mcp_completion *what)
{
	struct arena *arena = mcp_request_arena(req);
	struct server *server = mcp_request_app(req);
	const struct caller *caller = mcp_request_caller(req)->app;
	struct str values[101];
	struct query q = {0};
	struct snapshot s;
	struct failure f;
	size_t n = 0;

	if (!known_ref(what)) {
		mcp_finish_error(req, MCP_INVALID_PARAMS, STR("Unknown ref."), STR_NONE);
		return;
	}
	if (!caller_may(caller, CAP_READ)) {
		mcp_finish_completion(req, values, 0, 0);
		return;
	}
	failure_init(&f, arena);
	if (snapshot_begin(server->store, arena, &s, &f) != 0) {
		mcp_finish_internal(req, f.retry_after_ms);
		return;
	}
	if (start_query(&s, what, &q, &f) == 0) {
		bool is_id = !str_eq(what->argument, STR("slug")) && !str_eq(what->argument, STR("key"));

		while (n < 101 && query_next(&q, &f) == 1)
			if (caller_reads_root(caller, col_int(&q, 1)))
				values[n++] = is_id ? id_str(arena, col_id(&q, 0)) : col_str(&q, 0);
	}
	query_end(&q);
	snapshot_end(&s);
	mcp_finish_completion(req, values, n, n > 100 ? -1 : (int64_t)n);
}
