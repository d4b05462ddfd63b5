/* The step that calls the MCP server of the session: dais itself, with the credential that was injected. */
#include "script/private.h"

static struct str call_head(struct turn *turn, const struct mcp_call *call, struct str server)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	buf_add_str(&out,
		tool_head(turn, str_printf(turn->arena, "mcp.%.*s.%.*s", STRF(server), STRF(call->tool)), "other"));
	json_writer_init(&w, &out);
	w.comma = true;
	jw_kobject(&w, "rawInput");
	jw_kstr(&w, "server", server);
	jw_kstr(&w, "tool", call->tool);
	jw_kraw(&w, "arguments", call->arguments);
	jw_object_end(&w);
	jw_kraw(&w, "_meta", STR("{\"is_mcp_tool_call\":true}"));
	return buf_str(&out);
}

/* ---- what is saved ---- */

static json_t *first_text(const json_t *result)
{
	struct str text = json_member_str(json_array_get(json_object_get(result, "content"), 0), "text");
	struct json_error error;
	json_t *value;

	if (text.p == NULL)
		return json_object();
	value = json_read(text, &error);
	if (json_is_object(value))
		return value;
	json_decref(value);
	return json_pack("{s:s%}", "text", text.p, text.n);
}

/* The structured result, or the text. The members of an error stand on top: {{NAME.code}}. */
static json_t *saved_of(const json_t *response, bool *is_error)
{
	const json_t *result = json_object_get(response, "result");
	json_t *structured = json_object_get(result, "structuredContent");
	json_t *value;

	*is_error = result == NULL || json_is_true(json_object_get(result, "isError"));
	if (result == NULL)
		return json_incref(json_object_get(response, "error"));
	value = json_is_object(structured) ? json_copy(structured) : first_text(result);
	if (*is_error)
		(void)json_object_update_missing(value, json_object_get(value, "error"));
	return value;
}

static json_t *failure_of(const char *why, const char *text)
{
	return json_pack("{s:s, s:s}", "code", why, "message", text);
}

static void keep_result(struct turn *turn, const struct step *step, json_t *value)
{
	const struct value *name = step_value(step, "save");

	if (!name->is_set)
		return;
	(void)pthread_mutex_lock(&turn->agent->lock);
	(void)json_object_setn(turn->session->saved, name->text.p, name->text.n, value);
	(void)pthread_mutex_unlock(&turn->agent->lock);
}

static void report(struct turn *turn, struct tool_call *call, json_t *value, bool is_error)
{
	struct str text = json_canonical(turn->arena, value);
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	buf_add_str(&out, tool_content(turn, text));
	json_writer_init(&w, &out);
	w.comma = true;
	jw_kobject(&w, "rawOutput");
	jw_kraw(&w, is_error ? "error" : "result", text);
	jw_object_end(&w);
	tool_end(turn, call, is_error ? "failed" : "completed", buf_str(&out));
}

/* ---- the call ---- */

/* A copy, since load may put another one in its place while a call runs. */
static const struct mcp_server *server_of(struct turn *turn, uint64_t *serial)
{
	struct session *session = turn->session;
	struct mcp_server *copy = NULL;

	(void)pthread_mutex_lock(&turn->agent->lock);
	*serial = session->server_serial;
	if (session->server != NULL) {
		struct mcp_header *headers = ARENA_ARRAY(turn->arena, struct mcp_header, session->server->header_count);

		copy = ARENA_NEW(turn->arena, struct mcp_server);
		*copy = *session->server;
		copy->name = str_dup(turn->arena, copy->name);
		copy->url = str_dup(turn->arena, copy->url);
		for (size_t i = 0; i < copy->header_count; i++) {
			headers[i].name = str_dup(turn->arena, copy->headers[i].name);
			headers[i].value = str_dup(turn->arena, copy->headers[i].value);
		}
		copy->headers = headers;
	}
	(void)pthread_mutex_unlock(&turn->agent->lock);
	return copy;
}

static struct mcp_client *connection_of(struct session *session, uint64_t serial)
{
	if (session->mcp != NULL && mcp_client_serial(session->mcp) != serial) {
		mcp_client_destroy(session->mcp);
		session->mcp = NULL;
	}
	if (session->mcp == NULL)
		session->mcp = mcp_client_create(session->wake, serial);
	return session->mcp;
}

static void read_call(struct turn *turn, const struct step *step, struct mcp_call *out)
{
	const struct value *arguments = step_value(step, "arguments"), *retry = step_value(step, "retry");
	bool is_mapping = arguments->is_set && arguments->node->kind == YAML_MAP;

	out->tool = step_text_of(turn, step, "tool");
	out->arguments = is_mapping ? turn_json(turn, arguments->node) : STR("{}");
	out->has_request_id = is_mapping && yaml_get(arguments->node, STR("clientRequestId")) != NULL;
	out->retry = !retry->is_set ? RETRY_AS_SAFE : retry->number == 0 ? RETRY_NO : RETRY_YES;
}

STEP(mcp)
{
	struct mcp_call call = {0};
	struct tool_call tool;
	bool is_error = true;
	json_t *response = NULL, *value;
	const char *why = "no_server", *text = "the session was given no HTTP MCP server";
	uint64_t serial;
	int rc = -1;

	read_call(turn, step, &call);
	call.server = server_of(turn, &serial);
	tool_begin(
		turn, &tool, "in_progress", call_head(turn, &call, call.server == NULL ? STR("") : call.server->name));
	if (call.server != NULL)
		rc = mcp_client_call(connection_of(turn->session, serial), &call, turn->arena, &response, &why, &text);
	if (rc == 1) {
		tool_end(turn, &tool, "failed", STR(""));
		return turn_stop(turn, "cancelled");
	}
	value = rc == 0 ? saved_of(response, &is_error) : failure_of(why, text);
	keep_result(turn, step, value);
	report(turn, &tool, value, is_error);
	json_decref(value);
	json_decref(response);
	return GO_ON;
}
