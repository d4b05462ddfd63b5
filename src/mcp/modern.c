/* The modern era: every request says who sends it, what it speaks and what it can. */
#include "base/limits.h"
#include "mcp/inside.h"

#include <stdio.h>

static int refuse_version(struct mcp_request *req, struct str asked, struct refusal *r)
{
	(void)refusal_set(
		r, MCP_UNSUPPORTED_VERSION, 400, STR("This protocol version is not supported."));
	r->data = supported_data(req->arena, asked);
	return -1;
}

struct str supported_data(struct arena *arena, struct str requested)
{
	struct buf data;
	struct json_writer w;

	buf_init(&data, arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	jw_karray(&w, "supported");
	jw_str(&w, revision_text(MCP_2026_07_28));
	jw_array_end(&w);
	jw_kstr(&w, "requested", (struct str){requested.p, utf8_cut(requested, 64)});
	jw_object_end(&w);
	return buf_str(&data);
}

static int read_envelope(struct mcp_request *req, struct refusal *r)
{
	const json_t *meta = req->message.meta;
	const json_t *capabilities = json_object_get(meta, META_CAPABILITIES);
	const json_t *token = json_object_get(meta, "progressToken");
	struct str claim = json_str(req->message.claim);
	int version = revision_find(claim);

	if (claim.p == NULL)
		return refusal_set(r, MCP_INVALID_PARAMS, 400,
			STR("_meta." META_VERSION " is missing or not a string."));
	if (!json_is_object(capabilities))
		return refusal_set(r, MCP_INVALID_PARAMS, 400,
			STR("_meta." META_CAPABILITIES " is missing or not an object."));
	if (version < MCP_2026_07_28)
		return refuse_version(req, claim, r);
	if (token != NULL && !json_is_integer(token) &&
		!message_name_fits(json_str(token), LIMIT_MCP_TOKEN_BYTES))
		return refusal_set(r, MCP_INVALID_PARAMS, 400,
			STR("progressToken is neither an integer nor a string of at most 256 bytes."));
	req->version = (enum mcp_version)version;
	req->client_can = client_features(capabilities);
	req->client_name = json_member_str(json_object_get(meta, META_CLIENT_INFO), "name");
	req->log_threshold = log_level_find(json_member_str(meta, META_LOG_LEVEL));
	if (token != NULL)
		req->token = json_canonical(req->arena, token);
	return 0;
}

struct refusal missing_capability(struct arena *arena, unsigned needs)
{
	static const struct {
		unsigned bit;
		const char *json;
	} names[] = {
		{MCP_CAN_ELICIT_FORM, "\"elicitation\":{\"form\":{}}"},
		{MCP_CAN_ELICIT_URL, "\"elicitation\":{\"url\":{}}"},
		{MCP_CAN_SAMPLE, "\"sampling\":{}"},
		{MCP_CAN_LIST_ROOTS, "\"roots\":{}"},
		{MCP_CAN_TASKS, "\"extensions\":{\"" EXTENSION_TASKS "\":{}}"},
	};
	struct refusal r;
	struct buf data;

	buf_init(&data, arena, SIZE_MAX);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if ((needs & names[i].bit) != 0)
			buf_printf(&data, "%s%s", data.n > 0 ? "," : "{\"requiredCapabilities\":{",
				names[i].json);
	buf_add_str(&data, STR("}}"));
	(void)refusal_set(&r, MCP_MISSING_CAPABILITY, 400,
		STR("The client does not declare a capability that this needs."));
	r.data = buf_str(&data);
	return r;
}

/* Capability and parameter headers of the tool that is called, if it is one. */
static int check_tool(struct mcp_request *req, const struct header_view *headers, struct refusal *r)
{
	struct mcp_tool tool = {0};

	if (req->method == NULL || !str_eq(req->message.method, STR("tools/call")) ||
		req->target.p == NULL || !req->server->on->tool_find(req, req->target, &tool))
		return 0;
	if ((tool.needs & ~req->client_can) != 0) {
		*r = missing_capability(req->arena, tool.needs & ~req->client_can);
		return -1;
	}
	return headers == NULL ? 0 : header_check_params(req, &tool, headers, r);
}

static int check(struct mcp_request *req, const struct header_view *headers, struct refusal *r)
{
	bool known;

	if (headers != NULL && header_check_version(req, headers, r) != 0)
		return -1;
	if (read_envelope(req, r) != 0)
		return -1;
	known = method_resolve(req, ERA_MODERN);
	if (headers != NULL && header_check(req, headers, r) != 0)
		return -1;
	if (!known)
		return refusal_set(r, MCP_METHOD_NOT_FOUND, 404, STR("There is no such method."));
	if (str_starts(req->message.method, STR("tasks/")) &&
		(req->client_can & MCP_CAN_TASKS) == 0) {
		*r = missing_capability(req->arena, MCP_CAN_TASKS);
		return -1;
	}
	if (check_tool(req, headers, r) != 0)
		return -1;
	return retry_read(req, r);
}

void modern_run(struct mcp_request *req, const struct header_view *headers)
{
	struct refusal r;

	/* Errors are shaped as the newest revision until the request says better. */
	req->version = MCP_2026_07_28;
	if (check(req, headers, &r) != 0 ||
		(req->method->run != listen_run && request_admit(req, &r) != 0))
		request_refuse(req, &r);
	else
		req->method->run(req);
}

void discover_run(struct mcp_request *req)
{
	const struct mcp_settings *settings = &req->server->settings;
	struct buf out;
	struct json_writer w;

	buf_init(&out, NULL, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_karray(&w, "supportedVersions");
	jw_str(&w, revision_text(MCP_2026_07_28));
	jw_array_end(&w);
	capabilities_write(req->server, &w, true);
	jw_kstr_opt(&w, "instructions", server_instructions(req->server, req->caller.profile));
	request_finish(
		req, &(struct result){.kind = RESULT_COMPLETE,
			     .members = buf_str(&out),
			     .has_ttl = true,
			     .ttl_ms = settings->list_ttl_ms > 0 ? settings->list_ttl_ms : 300000,
			     .is_private = !settings->lists_are_public});
	buf_finish(&out);
}
