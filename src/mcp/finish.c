/* The ways an application ends a request. */
#include "base/clock.h"
#include "base/limits.h"
#include "mcp/inside.h"

#define LIST_TTL_MS 300000

static const char *const list_members[] = {"tools", "resources", "resourceTemplates", "prompts"};

void mcp_add_meta(struct mcp_request *req, const char *key, struct str json)
{
	struct json_writer w;

	json_writer_init(&w, &req->meta);
	w.comma = req->meta.n > 0;
	jw_kraw(&w, key, json);
}

void mcp_finish_result(struct mcp_request *req, struct str members)
{
	request_finish(req, &(struct result){.kind = RESULT_COMPLETE, .members = members});
}

static void finish_tool(struct mcp_request *req, struct buf *members, bool is_error)
{
	struct str shaped;

	if (is_error)
		buf_add_str(members, STR(",\"isError\":true"));
	shaped = shape_tool_result(req, buf_str(members));
	request_finish(req, &(struct result){.kind = RESULT_COMPLETE, .members = shaped});
}

void mcp_finish_tool(struct mcp_request *req, struct str structured, bool is_error)
{
	struct buf out;

	buf_init(&out, NULL, SIZE_MAX);
	buf_add_str(&out, STR("\"content\":[{\"type\":\"text\",\"text\":\""));
	json_escape(&out, structured);
	buf_add_str(&out, STR("\"}]"));
	/* Older clients check results against a closed list of members. */
	if (req->version >= MCP_2025_06_18) {
		buf_add_str(&out, STR(",\"structuredContent\":"));
		buf_add_str(&out, structured);
	}
	finish_tool(req, &out, is_error);
	buf_finish(&out);
}

void mcp_finish_tool_content(
	struct mcp_request *req, struct str content, struct str structured, bool is_error)
{
	struct buf out;

	buf_init(&out, NULL, SIZE_MAX);
	buf_add_str(&out, STR("\"content\":"));
	buf_add_str(&out, content);
	if (structured.n > 0 && req->version >= MCP_2025_06_18) {
		buf_add_str(&out, STR(",\"structuredContent\":"));
		buf_add_str(&out, structured);
	}
	finish_tool(req, &out, is_error);
	buf_finish(&out);
}

static struct str cursor_context(struct mcp_request *req, enum mcp_list what)
{
	return str_printf(req->arena, "list %d\n%.*s\n%.*s", (int)what, STRF(req->caller.principal),
		STRF(req->caller.profile));
}

static enum mcp_list list_of(const struct mcp_request *req)
{
	return str_eq(req->message.method, STR("tools/list"))       ? MCP_TOOLS
	       : str_eq(req->message.method, STR("prompts/list"))   ? MCP_PROMPTS
	       : str_eq(req->message.method, STR("resources/list")) ? MCP_RESOURCES
	                                                            : MCP_RESOURCE_TEMPLATES;
}

void list_run(struct mcp_request *req)
{
	const json_t *cursor = json_object_get(req->message.params, "cursor");
	enum mcp_list what = list_of(req);
	struct str after = STR_NONE;

	if (cursor != NULL &&
		(json_str(cursor).n > LIMIT_MCP_CURSOR_BYTES ||
			!seal_open(req->arena, &req->server->keys, CURSOR_MAC_SIZE,
				cursor_context(req, what), 0, json_str(cursor), &after))) {
		request_fail(req, 200, MCP_INVALID_PARAMS,
			STR("The cursor is not one of this list."), STR_NONE);
		return;
	}
	req->server->on->list(req, what, after);
}

void mcp_finish_list(struct mcp_request *req, struct str array, struct str next)
{
	const struct mcp_settings *settings = &req->server->settings;
	enum mcp_list what = list_of(req);
	struct buf out;
	struct json_writer w;

	buf_init(&out, NULL, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_kraw(&w, list_members[what], what == MCP_TOOLS ? shape_tool_list(req, array) : array);
	if (next.p != NULL)
		jw_kstr(&w, "nextCursor",
			seal_make(req->arena, &req->server->keys, CURSOR_MAC_SIZE,
				cursor_context(req, what), 0, next));
	request_finish(req,
		&(struct result){.kind = RESULT_COMPLETE,
			.members = buf_str(&out),
			.has_ttl = true,
			.ttl_ms = settings->list_ttl_ms > 0 ? settings->list_ttl_ms : LIST_TTL_MS,
			.is_private = !settings->lists_are_public});
	buf_finish(&out);
}

void mcp_finish_contents(struct mcp_request *req, struct str contents, int64_t ttl_ms)
{
	struct str members = str_printf(req->arena, "\"contents\":%.*s", STRF(contents));

	request_finish(req, &(struct result){.kind = RESULT_COMPLETE,
				    .members = members,
				    .has_ttl = true,
				    .ttl_ms = ttl_ms,
				    .is_private = true});
}

void mcp_finish_resource_missing(struct mcp_request *req, struct str uri)
{
	struct buf data;
	struct json_writer w;

	buf_init(&data, req->arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	jw_kstr(&w, "uri", uri);
	jw_object_end(&w);
	request_fail(req, 200, is_modern(req) ? MCP_INVALID_PARAMS : MCP_RESOURCE_NOT_FOUND,
		STR("There is no such resource."), buf_str(&data));
}

void mcp_finish_completion(
	struct mcp_request *req, const struct str *values, size_t n, int64_t total)
{
	size_t shown = n > LIMIT_MCP_COMPLETIONS ? LIMIT_MCP_COMPLETIONS : n;
	struct buf out;
	struct json_writer w;

	buf_init(&out, NULL, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_kobject(&w, "completion");
	jw_karray(&w, "values");
	for (size_t i = 0; i < shown; i++)
		jw_str(&w, values[i]);
	jw_array_end(&w);
	if (total >= 0)
		jw_kint(&w, "total", total);
	jw_kbool(&w, "hasMore", shown < n || (total >= 0 && (size_t)total > shown));
	jw_object_end(&w);
	mcp_finish_result(req, buf_str(&out));
	buf_finish(&out);
}

void mcp_finish_error(
	struct mcp_request *req, enum mcp_code code, struct str message, struct str data)
{
	request_fail(req, code == MCP_MISSING_CAPABILITY ? 400 : 200, code, message, data);
}

void mcp_finish_internal(struct mcp_request *req, int64_t retry_after_ms)
{
	struct str data =
		retry_after_ms > 0
			? str_printf(req->arena, "{\"reqId\":\"%s\",\"retryAfterMs\":%lld}",
				  req->req_id, (long long)retry_after_ms)
			: str_printf(req->arena, "{\"reqId\":\"%s\"}", req->req_id);

	request_fail(req, 200, MCP_INTERNAL,
		retry_after_ms > 0 ? STR("The server is busy; repeat the call later.")
				   : STR("The server failed; the cause is in its log."),
		data);
}
