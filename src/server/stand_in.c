#include "server/stand_in.h"

#include "server/private.h"

#include <stdlib.h>

struct stand_in {
	struct arena *arena;
	struct mcp_handlers handlers;
	struct mcp_server *mcp;
	struct mcp_line *line;
	const struct failure *why; /* during a feed */
};

static struct str reason(const struct mcp_request *req)
{
	return ((const struct stand_in *)mcp_request_app(req))->why->message;
}

/* The envelope of a failed call. */
static void call_tool(struct mcp_request *req, struct str name, const json_t *arguments)
{
	const struct stand_in *stand_in = mcp_request_app(req);
	struct buf out;
	struct json_writer w;

	(void)name;
	(void)arguments;
	buf_init(&out, mcp_request_arena(req), SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kbool(&w, "ok", false);
	jw_key(&w, "error");
	failure_write(stand_in->why, &w);
	jw_kobject(&w, "meta");
	jw_ktext(&w, "reqId", mcp_request_id(req));
	jw_object_end(&w);
	jw_object_end(&w);
	mcp_finish_tool(req, buf_str(&out), true);
}

static void read_resource(struct mcp_request *req, struct str uri)
{
	(void)uri;
	mcp_finish_error(req, MCP_INTERNAL, reason(req), STR_NONE);
}

static void get_prompt(struct mcp_request *req, struct str name, const json_t *arguments)
{
	(void)name;
	(void)arguments;
	mcp_finish_error(req, MCP_INTERNAL, reason(req), STR_NONE);
}

static void complete_nothing(struct mcp_request *req, const struct mcp_completion *what)
{
	(void)what;
	mcp_finish_completion(req, NULL, 0, 0);
}

static bool sees_no_resource(void *app, const struct mcp_caller *caller, struct str uri)
{
	(void)app;
	(void)caller;
	(void)uri;
	return false;
}

struct stand_in *stand_in_create(struct str profile, void (*write)(void *context, struct str line), void *context)
{
	struct arena *arena = arena_create();
	struct stand_in *stand_in = ARENA_NEW(arena, struct stand_in);
	struct mcp_settings settings = {
		.handlers = &stand_in->handlers, .app = stand_in, .server_info = STR(SERVER_INFO), .offers_tasks = true};
	struct mcp_line_options options = {.write = write, .context = context};
	struct caller caller;

	stand_in->arena = arena;
	/* It declares what the server declares: a client asks only once. */
	stand_in->handlers = (struct mcp_handlers){
		.list = server_mcp_handlers.list,
		.tool_find = server_mcp_handlers.tool_find,
		.tool_call = call_tool,
		.resource_read = read_resource,
		.resource_visible = sees_no_resource,
		.prompt_get = get_prompt,
		.complete = complete_nothing,
		.instructions = server_mcp_handlers.instructions,
		.caller_keep = server_mcp_handlers.caller_keep,
		.caller_release = server_mcp_handlers.caller_release,
	};
	caller_local(&caller, STR("stdio"));
	(void)profile_parse(profile, &caller.profile);
	options.caller = mcp_caller_of(arena, &caller);
	stand_in->mcp = mcp_server_create(&settings);
	stand_in->line = mcp_line_create(stand_in->mcp, &options);
	return stand_in;
}

void stand_in_feed(struct stand_in *stand_in, struct str line, const struct failure *why)
{
	stand_in->why = why;
	mcp_line_feed(stand_in->line, line);
	stand_in->why = NULL;
}

void stand_in_destroy(struct stand_in *stand_in)
{
	if (stand_in == NULL)
		return;
	mcp_server_stop(stand_in->mcp);
	mcp_line_close(stand_in->line);
	mcp_server_destroy(stand_in->mcp);
	arena_destroy(stand_in->arena);
}
