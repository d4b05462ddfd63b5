/* Tools behind MCP: which tools a caller sees, and a call on its way to the frame and back. */
#include "server/private.h"

#include "tools/plain.h"

#include "base/clock.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- callers that outlive a request ---- */

struct kept {
	struct arena *arena;
	struct caller caller;
};

static struct actor actor_dup(struct arena *arena, const struct actor *from)
{
	struct actor actor = *from;

	actor.id = str_dup(arena, from->id);
	actor.parent = str_dup(arena, from->parent);
	actor.subject = str_dup(arena, from->subject);
	actor.seat = str_dup(arena, from->seat);
	return actor;
}

/* A copy whose texts live in `arena`, with a request id of its own. */
void server_caller_copy(struct arena *arena, const struct caller *from, struct caller *out)
{
	*out = *from;
	out->actor = actor_dup(arena, &from->actor);
	out->surface = str_dup(arena, from->surface);
	out->instance_id = str_dup(arena, from->instance_id);
	out->workspace = str_dup(arena, from->workspace);
	out->seat.seat = str_dup(arena, from->seat.seat);
	if (from->roots != NULL) {
		int64_t *roots = ARENA_ARRAY(arena, int64_t, from->root_count + 1);

		memcpy(roots, from->roots, from->root_count * sizeof(*roots));
		out->roots = roots;
	}
	req_id_generate(out->req_id);
	out->actor.req_id = out->req_id;
}

static void *caller_keep(void *app)
{
	struct arena *arena = arena_create();
	struct kept *kept = ARENA_NEW(arena, struct kept);

	kept->arena = arena;
	server_caller_copy(arena, app, &kept->caller);
	return &kept->caller;
}

static void caller_release(void *app)
{
	struct kept *kept = (struct kept *)((char *)app - offsetof(struct kept, caller));

	arena_destroy(kept->arena);
}

void server_take_workspace(struct caller *caller, struct str workspace, struct arena *arena)
{
	char *path;
	struct stat st;

	/* An agent that dais started works where its thread does. */
	if (workspace.n == 0 || workspace.p[0] != '/' || workspace.n >= PATH_MAX || caller->thread_n != 0)
		return;
	path = realpath(str_z(arena, workspace), NULL);
	if (path != NULL && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		caller->workspace = str_dup(arena, str_of(path));
	free(path);
}

struct mcp_caller mcp_caller_of(struct arena *arena, const struct caller *caller)
{
	struct caller *copy = ARENA_NEW(arena, struct caller);

	server_caller_copy(arena, caller, copy);
	return (struct mcp_caller){
		.principal = copy->actor.id,
		.profile = str_of(profile_name(copy->profile)),
		.expires_at = copy->expires_at,
		.app = copy,
	};
}

void server_caller(struct mcp_request *req, struct caller *out)
{
	server_caller_copy(mcp_request_arena(req), mcp_request_caller(req)->app, out);
	/* One id per request: the protocol's is the one that the log and the events show. */
	memcpy(out->req_id, mcp_request_id(req), REQ_ID_SIZE);
}

static const struct caller *caller_of(const struct mcp_request *req)
{
	return mcp_request_caller(req)->app;
}

/* ---- tools ---- */

static bool visible(const struct tool *tool, const struct caller *caller)
{
	unsigned needed = 0;

	if (!tool_in_profile(tool, caller->profile))
		return false;
	if (tool->plain != NULL)
		return caller_may(caller, CAP_ORCHESTRATION);
	/* A tool of which the caller may use nothing is not shown. */
	for (size_t i = 0; i < tool->select_count; i++)
		if (caller_may(caller, tool->selects[i].capability))
			return true;
	for (size_t i = 0; i < tool->op_count; i++) {
		needed = tool->ops[i].capability;
		if (caller_may(caller, needed))
			return true;
	}
	return false;
}

static void list_tools(struct mcp_request *req)
{
	const struct caller *caller = caller_of(req);
	struct buf out;
	struct json_writer w;

	buf_init(&out, mcp_request_arena(req), SIZE_MAX);
	json_writer_init(&w, &out);
	jw_array_begin(&w);
	for (size_t i = 0; i < tool_count; i++)
		if (visible(tool_table[i], caller))
			tool_write_listing(tool_table[i], caller->profile, &w);
	jw_array_end(&w);
	mcp_finish_list(req, buf_str(&out), STR_NONE);
}

static void list(struct mcp_request *req, enum mcp_list what, struct str after)
{
	switch (what) {
	case MCP_TOOLS:
		list_tools(req);
		break;
	case MCP_PROMPTS:
		prompts_list(req);
		break;
	case MCP_RESOURCES:
	case MCP_RESOURCE_TEMPLATES:
		resources_list(req, what == MCP_RESOURCE_TEMPLATES, after);
		break;
	}
}

static struct str near_names(struct arena *arena, const struct caller *caller, struct str name)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_array_begin(&w);
	for (size_t i = 0; i < tool_count; i++) {
		struct str known = str_of(tool_table[i]->name);

		if (visible(tool_table[i], caller) && str_distance(name, known, 4) <= 4)
			jw_str(&w, known);
	}
	jw_array_end(&w);
	return buf_str(&out);
}

static bool find(struct mcp_request *req, struct str name, struct mcp_tool *out)
{
	const struct caller *caller = caller_of(req);
	const struct tool *tool = tool_find(name);

	*out = (struct mcp_tool){.may_be_slow = true};
	if (tool != NULL && visible(tool, caller)) {
		out->may_wait = tool->plain != NULL && tool->plain->wait_ms != NULL;
		return true;
	}
	out->near_names = near_names(mcp_request_arena(req), caller, name);
	return false;
}

/* ---- calls ---- */

struct adapted {
	struct tool_call call;
	struct mcp_request *req;
	struct server *server;
	int64_t started_us;
	struct str operation;
	int ticks;
};

static struct tool_counts *counts_of(struct server *server, const struct tool *tool)
{
	for (size_t i = 0; i < tool_count; i++)
		if (tool_table[i] == tool)
			return &server->counts[i];
	return &server->counts[0];
}

void server_count(struct server *server, const struct tool_call *call, int64_t us)
{
	struct tool_counts *counts = counts_of(server, call->tool);
	size_t bucket = 0;

	for (int64_t bound = 250; bucket < LATENCY_BUCKETS && us > bound; bound *= 4)
		bucket++;
	atomic_fetch_add(&counts->bucket[bucket], 1);
	atomic_fetch_add(&counts->sum_us, (uint64_t)us);
	atomic_fetch_add(call->error_code == NULL ? &counts->ok : &counts->failed, 1);
	if (call->is_replayed)
		atomic_fetch_add(&counts->replayed, 1);
	if (call->ends_credentials)
		stream_hub_recheck(server->hub);
}

/* ---- calls that wait ---- */

static void tell_progress(struct tool_call *call)
{
	struct adapted *adapted = (struct adapted *)call;

	mcp_progress(adapted->req, (double)++adapted->ticks, -1, STR("still waiting"));
}

/* The client gave the request up. */
static void give_up(struct mcp_request *req, void *context)
{
	(void)req;
	tools_cancel(&((struct adapted *)context)->call);
}

static void call_done(struct tool_call *call)
{
	struct adapted *adapted = (struct adapted *)call;
	int64_t us = clock_mono_us() - adapted->started_us;

	server_count(adapted->server, call, us);
	call_log_add(adapted->server->call_log, call, adapted->operation, us, 0);
	mcp_finish_tool(adapted->req, call->envelope, call->is_error);
}

struct str server_operation(struct arena *arena, const json_t *arguments)
{
	struct str name = json_member_str(arguments, "select");
	const json_t *ops = json_object_get(arguments, "ops");

	if (name.p == NULL)
		name = json_member_str(json_is_array(ops) ? json_array_get(ops, 0) : ops, "op");
	for (size_t i = 0; i < name.n; i++)
		if (!((name.p[i] >= 'a' && name.p[i] <= 'z') || name.p[i] == '_'))
			return STR("invalid");
	return name.n == 0 || name.n > 64 ? STR("none") : str_dup(arena, name);
}

static void call_tool(struct mcp_request *req, struct str name, const json_t *arguments)
{
	struct arena *arena = mcp_request_arena(req);
	struct adapted *adapted = ARENA_NEW(arena, struct adapted);
	struct server *server = mcp_request_app(req);

	adapted->req = req;
	adapted->server = server;
	adapted->started_us = clock_mono_us();
	adapted->operation = server_operation(arena, arguments);
	adapted->call.arena = arena;
	adapted->call.tool = tool_find(name);
	adapted->call.args = arguments;
	adapted->call.done = call_done;
	adapted->call.max_wait_ms = mcp_wait_slice_ms(req);
	adapted->call.progress = tell_progress;
	server_caller(req, &adapted->call.caller);
	mcp_on_cancel(req, give_up, adapted);
	tools_call(server->tools, &adapted->call);
}

static struct str instructions(void *app, struct str profile)
{
	enum profile parsed = PROFILE_FULL;

	(void)app;
	(void)profile_parse(profile, &parsed);
	return tools_instructions(parsed);
}

const struct mcp_handlers server_mcp_handlers = {
	.list = list,
	.tool_find = find,
	.tool_call = call_tool,
	.resource_read = resource_read,
	.resource_visible = resource_visible,
	.prompt_get = prompt_get,
	.complete = complete,
	.instructions = instructions,
	.caller_keep = caller_keep,
	.caller_release = caller_release,
	.session_save = session_save,
	.session_load = session_load,
	.session_touch = session_touch,
	.session_delete = session_delete,
};
