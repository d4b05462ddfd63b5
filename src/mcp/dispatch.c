/* Which method is which, and the ones that both eras have. */
#include "base/limits.h"
#include "mcp/inside.h"

static void fail_params(struct mcp_request *req, struct str message)
{
	request_fail(req, 200, MCP_INVALID_PARAMS, message, STR_NONE);
}

/* params.arguments as an object; NULL: it is something else. */
static const json_t *arguments_of(struct mcp_request *req)
{
	const json_t *arguments = json_object_get(req->message.params, "arguments");

	if (arguments != NULL)
		return json_is_object(arguments) ? arguments : NULL;
	if (req->no_arguments == NULL)
		req->no_arguments = json_object();
	return req->no_arguments;
}

/* Many clients show the message alone. */
static struct str unknown_tool_text(struct mcp_request *req, const struct mcp_tool *tool)
{
	struct json_error error;
	json_auto_t *near = json_read(tool->near_names, &error);
	json_auto_t *name = json_stringn(req->target.p, req->target.n);
	struct str first = json_str(json_array_get(near, 0));

	return str_printf(req->arena, "There is no tool %.*s%s%.*s%s", STRF(json_received(req->arena, name)),
		first.n > 0 ? "; did you mean " : ".", STRF(first), first.n > 0 ? "?" : "");
}

static void unknown_tool(struct mcp_request *req, const struct mcp_tool *tool)
{
	struct buf data;
	struct json_writer w;

	buf_init(&data, req->arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	jw_kstr(&w, "name", req->target);
	if (tool->near_names.n > 0)
		jw_kraw(&w, "near", tool->near_names);
	jw_object_end(&w);
	request_fail(req, 200, MCP_INVALID_PARAMS, unknown_tool_text(req, tool), buf_str(&data));
}

/* Legacy has no error code for it. */
static void lacks_capability(struct mcp_request *req, unsigned missing)
{
	struct refusal r = missing_capability(req->arena, missing);
	struct buf out;
	struct json_writer w;

	if (is_modern(req)) {
		request_refuse(req, &r);
		return;
	}
	buf_init(&out, req->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "code", "missing_capability");
	jw_kstr(&w, "message", r.message);
	jw_kraw(&w, "detail", r.data);
	jw_object_end(&w);
	mcp_finish_tool(req, buf_str(&out), true);
}

static void tools_call(struct mcp_request *req)
{
	struct mcp_tool tool = {0};
	const json_t *arguments = arguments_of(req);

	if (req->target.p == NULL) {
		fail_params(req, STR("name is not a string, or too long."));
	} else if (arguments == NULL) {
		fail_params(req, STR("arguments is not an object."));
	} else if (!req->server->on->tool_find(req, req->target, &tool)) {
		unknown_tool(req, &tool);
	} else if ((tool.needs & ~req->client_can) != 0) {
		lacks_capability(req, tool.needs & ~req->client_can);
	} else {
		req->arguments = arguments;
		if (tool.may_wait || (tool.may_be_slow && req->token.p != NULL))
			request_begin_stream(req);
		req->server->on->tool_call(req, req->target, arguments);
	}
}

static void prompts_get(struct mcp_request *req)
{
	const json_t *arguments = arguments_of(req);

	if (req->target.p == NULL)
		fail_params(req, STR("name is not a string, or too long."));
	else if (arguments == NULL)
		fail_params(req, STR("arguments is not an object."));
	else
		req->server->on->prompt_get(req, req->target, arguments);
}

static void resources_read(struct mcp_request *req)
{
	if (req->target.p == NULL)
		fail_params(req, STR("uri is not a string, or too long."));
	else
		req->server->on->resource_read(req, req->target);
}

static void complete(struct mcp_request *req)
{
	const json_t *params = req->message.params;
	const json_t *ref = json_object_get(params, "ref");
	const json_t *argument = json_object_get(params, "argument");
	struct str type = json_member_str(ref, "type");
	struct mcp_completion what = {
		.of_prompt = str_eq(type, STR("ref/prompt")),
		.argument = json_member_str(argument, "name"),
		.value = json_member_str(argument, "value"),
		.context = json_object_get(json_object_get(params, "context"), "arguments"),
	};

	what.ref = json_member_str(ref, what.of_prompt ? "name" : "uri");
	if ((!what.of_prompt && !str_eq(type, STR("ref/resource"))) ||
		!message_name_fits(what.ref, LIMIT_MCP_URI_BYTES))
		fail_params(req, STR("ref is neither a prompt nor a resource template."));
	else if (what.argument.p == NULL || what.value.p == NULL)
		fail_params(req, STR("argument has no name or no value."));
	else
		req->server->on->complete(req, &what);
}

static void ping(struct mcp_request *req)
{
	request_finish(req, &(struct result){.kind = RESULT_BARE});
}

/* clang-format off */
static const struct method methods[] = {
	/* name                       eras        target    its limit              may ask cacheable run */
	{"completion/complete",       ERA_BOTH,   NULL,     0,                     false,  false, complete},
	{"logging/setLevel",          ERA_LEGACY, NULL,     0,                     false,  false, set_level_run},
	{"ping",                      ERA_LEGACY, NULL,     0,                     false,  false, ping},
	{"prompts/get",               ERA_BOTH,   "name",   LIMIT_MCP_NAME_BYTES,  true,   false, prompts_get},
	{"prompts/list",              ERA_BOTH,   NULL,     0,                     false,  true,  list_run},
	{"resources/list",            ERA_BOTH,   NULL,     0,                     false,  true,  list_run},
	{"resources/read",            ERA_BOTH,   "uri",    LIMIT_MCP_URI_BYTES,   true,   true,  resources_read},
	{"resources/subscribe",       ERA_LEGACY, "uri",    LIMIT_MCP_URI_BYTES,   false,  false, subscribe_run},
	{"resources/templates/list",  ERA_BOTH,   NULL,     0,                     false,  true,  list_run},
	{"resources/unsubscribe",     ERA_LEGACY, "uri",    LIMIT_MCP_URI_BYTES,   false,  false, subscribe_run},
	{"server/discover",           ERA_MODERN, NULL,     0,                     false,  true,  discover_run},
	{"subscriptions/listen",      ERA_MODERN, NULL,     0,                     false,  false, listen_run},
	{"tasks/cancel",              ERA_MODERN, "taskId", LIMIT_MCP_NAME_BYTES,  false,  false, mcp_task_run_cancel},
	{"tasks/get",                 ERA_MODERN, "taskId", LIMIT_MCP_NAME_BYTES,  false,  false, mcp_task_run_get},
	{"tasks/update",              ERA_MODERN, "taskId", LIMIT_MCP_NAME_BYTES,  false,  false, mcp_task_run_update},
	{"tools/call",                ERA_BOTH,   "name",   LIMIT_MCP_NAME_BYTES,  true,   false, tools_call},
	{"tools/list",                ERA_BOTH,   NULL,     0,                     false,  true,  list_run},
};
/* clang-format on */

const struct method *method_find(struct str name)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (str_eq(name, str_of(methods[i].name)))
			return &methods[i];
	return NULL;
}

static bool is_offered(const struct mcp_server *server, const struct method *method)
{
	struct str name = str_of(method->name);

	if (str_starts(name, STR("tools/")))
		return offers_list(server, MCP_TOOLS);
	if (str_starts(name, STR("prompts/")))
		return offers_list(server, MCP_PROMPTS);
	if (str_ends(name, STR("subscribe")))
		return offers_subscriptions(server);
	if (str_starts(name, STR("resources/")))
		return offers_list(server, MCP_RESOURCES);
	if (str_starts(name, STR("completion/")))
		return server->on->complete != NULL;
	if (str_starts(name, STR("tasks/")))
		return server->settings.offers_tasks;
	return true;
}

bool method_resolve(struct mcp_request *req, unsigned era)
{
	const struct method *method = method_find(req->message.method);
	struct str target;

	if (method == NULL || (method->eras & era) == 0 || !is_offered(req->server, method))
		return false;
	req->method = method;
	if (method->target == NULL)
		return true;
	target = json_member_str(req->message.params, method->target);
	if (message_name_fits(target, method->target_max))
		req->target = target;
	return true;
}
