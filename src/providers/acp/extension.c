/* Notifications beside session/update, and what Cursor tells by requests. */
#include "providers/acp/acp.h"

#include "providers/state.h"

/* ---- Grok ---- */

static void told_retry(struct acp *a, const json_t *update, struct agent_out *out)
{
	struct str reason = json_member_str(update, "reason");
	int64_t most = json_integer_value(json_object_get(update, "max_retries"));
	struct buf body;
	struct json_writer w;

	if (reason.n == 0)
		reason = json_member_str(update, "message");
	buf_init(&body, out->arena, SIZE_MAX);
	json_writer_init(&w, &body);
	jw_object_begin(&w);
	jw_ktext(&w, "severity", "warning");
	jw_kstr(&w, "message", reason.n > 0 ? reason : STR("The agent calls its model again."));
	jw_kobject(&w, "retry");
	jw_kint(&w, "attempt", json_integer_value(json_object_get(update, "attempt")));
	jw_kint_opt(&w, "maxAttempts", most);
	jw_object_end(&w);
	jw_object_end(&w);
	acp_show_item(out, ITEM_NOTICE, str_printf(out->arena, "retry:%" PRId64, a->turn), STR_NONE,
		str_eq(json_member_str(update, "type"), STR("retrying")) ? AGENT_RUNNING : AGENT_COMPLETED, STR_NONE, buf_str(&body));
}

static void told_grok(struct acp *a, const json_t *params, struct agent_out *out)
{
	const json_t *update = json_object_get(params, "update");
	struct str kind = json_member_str(update, "sessionUpdate");
	struct str result = json_member_str(update, "agent_result");

	if (a->phase != ACP_RUNNING)
		return;
	if (str_eq(kind, STR("retry_state")))
		told_retry(a, update, out);
	else if (str_eq(kind, STR("subagent_spawned")))
		(void)acp_speaker_of(a, json_member_str(update, "child_session_id"), out);
	else if (str_eq(kind, STR("turn_completed")) && str_eq(json_member_str(update, "stop_reason"), STR("error")) &&
		result.n <= LIMIT_AGENT_ERROR_BYTES && acp_has_room(a, state_cost(result)))
		state_text(&a->error_text, result);
}

static void told_mcp(struct acp *a, const json_t *params, struct agent_out *out)
{
	if (!str_eq(json_member_str(params, "name"), STR(ACP_MCP_NAME)) ||
		!str_eq(json_member_str(params, "status"), STR("unavailable")))
		return;
	if (a->phase < ACP_READY)
		a->has_mcp_trouble = true; /* told when the session is open */
	else
		acp_show_notice(a, "warning", STR("The agent cannot reach the MCP server of dais."), out);
}

/* ---- Cursor ---- */

static json_t *todo_with_id(json_t *todos, struct str id)
{
	json_t *todo;
	size_t i;

	json_array_foreach (todos, i, todo)
		if (id.n > 0 && str_eq(json_member_str(todo, "id"), id))
			return todo;
	return NULL;
}

/* Todos are changed one by one, so the list is kept, as long as it is short enough. */
static void told_todos(struct acp *a, const json_t *params, struct agent_out *out)
{
	bool merges = json_is_true(json_object_get(params, "merge")) && json_is_array(a->todos);
	json_t *todos = merges ? json_deep_copy(a->todos) : json_array();
	json_t *todo;
	size_t i;

	json_array_foreach (json_object_get(params, "todos"), i, todo) {
		json_t *known = todo_with_id(todos, json_member_str(todo, "id"));

		if (!json_is_object(todo))
			continue;
		if (known != NULL)
			json_object_update(known, todo);
		else
			json_array_append_new(todos, json_deep_copy(todo));
	}
	acp_show_todo(a, 0, todos, out);
	if (json_dumpb(todos, NULL, 0, JSON_COMPACT) <= LIMIT_AGENT_HELD_BYTES &&
		acp_has_room(a, json_dumpb(todos, NULL, 0, JSON_COMPACT)))
		state_json(&a->todos, todos);
	else
		json_decref(todos);
}

static void told_task(struct acp *a, const json_t *params, struct agent_out *out)
{
	struct str title = json_member_str(params, "description");
	struct str id = json_member_str(params, "toolCallId");
	struct buf body;
	struct json_writer w;

	buf_init(&body, out->arena, SIZE_MAX);
	json_writer_init(&w, &body);
	jw_object_begin(&w);
	jw_kstr_opt(&w, "prompt", json_member_str(params, "prompt"));
	jw_kstr_opt(&w, "model", json_member_str(params, "model"));
	jw_object_end(&w);
	a->has_content = true;
	acp_show_item(out, ITEM_SUBAGENT, str_printf(out->arena, "task:%" PRId64 ":%.*s", a->turn, STRF(id)), STR_NONE,
		AGENT_COMPLETED, title, buf_str(&body));
}

void acp_cursor_tell(struct acp *a, const struct rpc_message *m, struct agent_out *out)
{
	if (a->phase != ACP_RUNNING)
		return;
	if (str_eq(m->method, STR("cursor/update_todos")) ||
		(str_eq(m->method, STR("cursor/create_plan")) && json_array_size(json_object_get(m->params, "todos")) > 0))
		told_todos(a, m->params, out);
	else if (str_eq(m->method, STR("cursor/task")))
		told_task(a, m->params, out);
}

/* ---- all ---- */

void acp_notification(struct acp *a, const struct rpc_message *m, int64_t now, struct agent_out *out)
{
	if (str_eq(m->method, STR("session/update")))
		acp_update(a, m->params, now, out);
	else if (str_eq(m->method, STR("x.ai/session_notification")))
		told_grok(a, m->params, out);
	else if (str_eq(m->method, STR("x.ai/mcp/server_status")))
		told_mcp(a, m->params, out);
	else if (str_eq(m->method, STR("$/cancel_request")))
		acp_request_withdrawn(a, m->params, out);
	else
		acp_cursor_tell(a, m, out);
}
