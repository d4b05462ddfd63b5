/* The legacy eras: `initialize`, and what belongs to a session. */
#include "base/clock.h"
#include "base/limits.h"
#include "mcp/session.h"

static const struct str levels[] = {
	{"debug", 5},
	{"info", 4},
	{"notice", 6},
	{"warning", 7},
	{"error", 5},
	{"critical", 8},
	{"alert", 5},
	{"emergency", 9},
};

int log_level_find(struct str name)
{
	for (int i = 0; i < (int)(sizeof(levels) / sizeof(levels[0])); i++)
		if (str_eq(levels[i], name))
			return i;
	return -1;
}

int hello_read(const json_t *params, struct hello *out, struct refusal *r)
{
	struct str version = json_member_str(params, "protocolVersion");
	int known = revision_find(version);

	out->capabilities = json_object_get(params, "capabilities");
	out->client_info = json_object_get(params, "clientInfo");
	if (version.p == NULL)
		return refusal_set(
			r, MCP_INVALID_PARAMS, 400, STR("protocolVersion is not a string."));
	if (!json_is_object(out->capabilities))
		return refusal_set(
			r, MCP_INVALID_PARAMS, 400, STR("capabilities is not an object."));
	if (!json_is_object(out->client_info))
		return refusal_set(r, MCP_INVALID_PARAMS, 400, STR("clientInfo is not an object."));
	/* A modern or unknown revision is answered with our newest legacy one; the client decides.
	 */
	out->version =
		known < 0 || known >= MCP_2026_07_28 ? MCP_2025_11_25 : (enum mcp_version)known;
	return 0;
}

void hello_answer(struct mcp_request *req, const struct hello *hello)
{
	struct str instructions = server_instructions(req->server, req->caller.profile);
	struct buf out;
	struct json_writer w;

	buf_init(&out, NULL, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_kstr(&w, "protocolVersion", revision_text(hello->version));
	capabilities_write(req->server, &w, false);
	jw_kraw(&w, "serverInfo", req->server->settings.server_info);
	jw_kstr_opt(&w, "instructions", instructions);
	request_finish(req, &(struct result){.kind = RESULT_BARE, .members = buf_str(&out)});
	buf_finish(&out);
}

static void read_token(struct mcp_request *req)
{
	const json_t *token = json_object_get(req->message.meta, "progressToken");

	if (json_is_integer(token) ||
		(json_is_string(token) && json_string_length(token) <= LIMIT_MCP_TOKEN_BYTES))
		req->token = json_canonical(req->arena, token);
}

void legacy_run(struct mcp_request *req)
{
	struct mcp_session *session = req->session;
	struct refusal r;

	if (session != NULL) {
		req->version = session->version;
		req->client_can = session->client_can & ~(unsigned)MCP_CAN_TASKS;
		req->client_name = session->client_name;
		(void)pthread_mutex_lock(&session->lock);
		req->log_threshold = session->log_threshold;
		(void)pthread_mutex_unlock(&session->lock);
	}
	read_token(req);
	if (request_admit(req, &r) != 0)
		request_refuse(req, &r);
	else if (!method_resolve(req, ERA_LEGACY))
		request_fail(
			req, 200, MCP_METHOD_NOT_FOUND, STR("There is no such method."), STR_NONE);
	else
		req->method->run(req);
}

void set_level_run(struct mcp_request *req)
{
	int level = log_level_find(json_member_str(req->message.params, "level"));

	if (level < 0) {
		request_fail(req, 200, MCP_INVALID_PARAMS,
			STR("level is not one of the eight log levels."), STR_NONE);
		return;
	}
	(void)pthread_mutex_lock(&req->session->lock);
	req->session->log_threshold = level;
	(void)pthread_mutex_unlock(&req->session->lock);
	mcp_session_save(req->session);
	request_finish(req, &(struct result){.kind = RESULT_BARE});
}

void subscribe_run(struct mcp_request *req)
{
	struct mcp_session *session = req->session;
	bool subscribe = str_eq(req->message.method, STR("resources/subscribe"));
	bool room = true;

	if (req->target.p == NULL) {
		request_fail(req, 200, MCP_INVALID_PARAMS, STR("uri is not a string, or too long."),
			STR_NONE);
		return;
	}
	if (subscribe &&
		!req->server->on->resource_visible(req->server->app, &req->caller, req->target)) {
		mcp_finish_resource_missing(req, req->target);
		return;
	}
	(void)pthread_mutex_lock(&session->lock);
	if (subscribe)
		room = interest_add(&session->interest, req->target);
	else
		(void)interest_remove(&session->interest, req->target);
	(void)pthread_mutex_unlock(&session->lock);
	if (!room) {
		request_fail(req, 200, MCP_INTERNAL, STR("The session has too many subscriptions."),
			STR_NONE);
		return;
	}
	mcp_session_save(session);
	request_finish(req, &(struct result){.kind = RESULT_BARE});
}

static bool same_id(struct arena *arena, const json_t *id, struct str text)
{
	return id != NULL && str_eq(json_canonical(arena, id), text);
}

void legacy_notification(
	struct mcp_server *server, struct mcp_session *session, const struct message *message)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const json_t *id = json_object_get(message->params, "requestId");
	struct mcp_request **all;
	size_t n;

	if (!str_eq(message->method, STR("notifications/cancelled")))
		return;
	all = server_snapshot(server, &server->requests, arena, &n);
	for (size_t i = 0; i < n; i++) {
		if (all[i]->session == session && same_id(arena, id, all[i]->message.id))
			request_cancel(all[i]);
		request_unref(all[i]);
	}
}
