/* Arbitrary bytes as lines of a conversation: whatever comes, each answer is one JSON line. */
#include "mcp/mcp.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void list(struct mcp_request *req, enum mcp_list what, struct str after)
{
	(void)what;
	(void)after;
	mcp_finish_list(req, STR("[]"), STR("next"));
}

static bool tool_find(struct mcp_request *req, struct str name, struct mcp_tool *out)
{
	(void)req;
	(void)out;
	return str_eq(name, STR("a")) || str_eq(name, STR("ask"));
}

static void tool_call(struct mcp_request *req, struct str name, const json_t *arguments)
{
	mcp_progress(req, 1, -1, STR("x"));
	if (str_eq(name, STR("ask")) && mcp_request_is_modern(req) &&
		mcp_input_responses(req) == NULL)
		mcp_finish_input_required(req, STR("{}"), STR("state"));
	else
		mcp_finish_tool(req, json_canonical(mcp_request_arena(req), arguments), false);
}

static void resource_read(struct mcp_request *req, struct str uri)
{
	mcp_finish_resource_missing(req, uri);
}

static bool resource_visible(void *app, const struct mcp_caller *caller, struct str uri)
{
	(void)app;
	(void)caller;
	return uri.n < 8;
}

static void complete(struct mcp_request *req, const struct mcp_completion *what)
{
	mcp_finish_completion(req, &what->value, 1, 1);
}

static void prompt_get(struct mcp_request *req, struct str name, const json_t *arguments)
{
	(void)name;
	(void)arguments;
	mcp_finish_result(req, STR("\"messages\":[]"));
}

static void check_line(void *context, struct str line)
{
	json_t *value = json_loadb(line.p, line.n - 1, JSON_ALLOW_NUL, NULL);

	(void)context;
	if (value == NULL || line.p[line.n - 1] != '\n' || memchr(line.p, '\n', line.n - 1) != NULL)
		abort();
	json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct mcp_handlers handlers = {.list = list,
		.tool_find = tool_find,
		.tool_call = tool_call,
		.resource_read = resource_read,
		.resource_visible = resource_visible,
		.prompt_get = prompt_get,
		.complete = complete};
	static const struct mcp_settings settings = {
		.handlers = &handlers, .server_info = STR("{}"), .offers_tasks = true};
	static const struct mcp_line_options options = {
		.caller = {.principal = STR("p"), .profile = STR("f")}, .write = check_line};
	static struct mcp_server *server;
	struct mcp_line *line;

	if (server == NULL)
		server = mcp_server_create(&settings);
	line = mcp_line_create(server, &options);
	mcp_line_feed(line, (struct str){(const char *)data, size});
	mcp_line_feed(line, STR("\n"));
	mcp_notify_list_changed(server, MCP_TOOLS);
	mcp_notify_resource_updated(server, STR("x:a"));
	mcp_line_close(line);
	if (mcp_server_in_flight(server) != 0)
		abort();
	return 0;
}
