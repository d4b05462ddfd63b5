/* From the start of the program to an open session. */
#include "providers/acp/acp.h"

#include "providers/state.h"

void acp_open_failed(struct acp *a, struct agent_failure failure, struct agent_out *out)
{
	agent_out_event(out, EVENT_OPEN_FAILED)->failure = failure;
	acp_over(a, out);
}

/* ---- what is sent ---- */

static void write_mcp_servers(struct acp *a, struct rpc_line *line)
{
	struct json_writer *w = &line->w;

	jw_karray(w, "mcpServers"); /* required even when it is empty */
	if (a->config.mcp_url.n > 0 && a->has_http_mcp) {
		jw_object_begin(w);
		jw_ktext(w, "type", "http");
		jw_ktext(w, "name", ACP_MCP_NAME);
		jw_kstr(w, "url", a->config.mcp_url);
		jw_karray(w, "headers");
		jw_object_begin(w);
		jw_ktext(w, "name", "Authorization");
		jw_ktext(w, "value", "Bearer " AGENT_SECRET);
		jw_object_end(w);
		jw_array_end(w);
		jw_object_end(w);
		line->has_secret = true;
	}
	jw_array_end(w);
}

static void begin_session(struct acp *a, struct agent_out *out)
{
	bool is_new = a->config.resume.n == 0;
	bool has_instructions = is_new && a->config.instructions.n > 0 && a->config.mcp_url.n > 0 && a->has_http_mcp;
	struct rpc_line line;
	struct json_writer *w;

	if (!is_new && !a->can_resume && !a->can_load) {
		acp_open_failed(a, agent_failure_of(CODE_unknown_session, STR("The agent cannot go on with a conversation.")), out);
		return;
	}
	a->phase = ACP_OPENING;
	w = rpc_call(&a->rpc, &line, out, is_new ? "session/new" : a->can_resume ? "session/resume" : "session/load", CALL_OPEN, 0);
	if (!is_new)
		jw_kstr(w, "sessionId", a->config.resume);
	jw_kstr(w, "cwd", a->config.cwd);
	write_mcp_servers(a, &line);
	if (has_instructions && a->profile->has_rules) {
		jw_kobject(w, "_meta");
		jw_kstr(w, "rules", a->config.instructions);
		jw_object_end(w);
	}
	rpc_end(&line);
	a->is_replaying = !is_new && !a->can_resume;
	a->has_instructions_due = has_instructions && !a->profile->has_rules;
}

static void authenticate(struct acp *a, struct str method, struct agent_out *out)
{
	struct rpc_line line;
	struct json_writer *w = rpc_call(&a->rpc, &line, out, "authenticate", CALL_AUTHENTICATE, 0);

	jw_kstr(w, "methodId", method);
	rpc_end(&line);
	a->phase = ACP_AUTHENTICATING;
	a->was_authenticated = true;
}

/* ---- what comes back ---- */

static struct str join_methods(const json_t *initialized, struct arena *arena)
{
	struct buf names;
	const json_t *method;
	size_t i;

	buf_init(&names, arena, LIMIT_AGENT_ERROR_BYTES);
	json_array_foreach (json_object_get(initialized, "authMethods"), i, method) {
		struct str id = json_member_str(method, "id");

		if (id.n == 0 || id.n > LIMIT_AGENT_ID_BYTES)
			continue;
		if (names.n > 0)
			buf_add_str(&names, STR(", "));
		buf_add_str(&names, id);
	}
	return buf_str(&names);
}

static bool has_object(const json_t *in, const char *name)
{
	return json_is_object(json_object_get(in, name));
}

static bool advertises_steering(const json_t *result)
{
	const json_t *of_result = json_object_get(json_object_get(result, "_meta"), "steering");
	const json_t *of_agent = json_object_get(
		json_object_get(json_object_get(result, "agentCapabilities"), "_meta"), "steering");

	return json_is_true(json_object_get(of_result, "supported")) || json_is_true(json_object_get(of_agent, "supported"));
}

static void keep_version(struct acp *a, const json_t *result)
{
	struct str version = json_member_str(json_object_get(result, "agentInfo"), "version");

	if (version.n == 0)
		version = json_member_str(json_object_get(result, "_meta"), "agentVersion");
	if (version.n <= LIMIT_AGENT_ID_BYTES)
		state_text(&a->version, version);
}

void acp_initialized(struct acp *a, const json_t *result, struct agent_out *out)
{
	const json_t *can = json_object_get(result, "agentCapabilities");
	const json_t *sessions = json_object_get(can, "sessionCapabilities");

	if (a->phase != ACP_INITIALIZING)
		return;
	if (json_integer_value(json_object_get(result, "protocolVersion")) != 1) {
		acp_open_failed(a, agent_failure_of(CODE_protocol_violation,
			STR("The agent does not speak version 1 of the Agent Client Protocol.")), out);
		return;
	}
	if (strcmp(a->agent.driver->kind, "acp") == 0)
		a->profile = acp_profile_recognise(result);
	keep_version(a, result);
	a->can_load = json_is_true(json_object_get(can, "loadSession"));
	a->can_resume = has_object(sessions, "resume");
	a->can_fork = has_object(sessions, "fork");
	a->can_close = has_object(sessions, "close");
	a->has_http_mcp = json_is_true(json_object_get(json_object_get(can, "mcpCapabilities"), "http"));
	a->can_steer = a->profile->steering == STEER_INTERJECT || advertises_steering(result);
	state_text(&a->auth_methods, join_methods(result, out->arena));
	begin_session(a, out);
}

void acp_authenticated(struct acp *a, struct agent_out *out)
{
	if (a->phase == ACP_AUTHENTICATING)
		begin_session(a, out);
}

static struct agent_failure log_in_first(const struct acp *a, struct str message, struct arena *arena)
{
	if (a->auth_methods.n > 0)
		message = str_printf(arena, "%.*s (log in with the program itself, or set authMethod to one of: %.*s)", STRF(message),
			STRF(a->auth_methods));
	return agent_failure_of(CODE_auth_required, message);
}

void acp_open_refused(struct acp *a, const json_t *error, struct agent_out *out)
{
	struct agent_failure failure = acp_failure_of_error(error, out->arena);
	struct str method = json_member_str(a->config.instance->options, "authMethod");
	bool needs_auth = str_eq(failure.code, STR("auth_required"));

	if (a->phase == ACP_AUTHENTICATING) {
		if (failure.class != CLASS_PERMISSION)
			failure = agent_failure_of(CODE_auth_invalid, failure.message);
		acp_open_failed(a, failure, out);
		return;
	}
	if (a->phase != ACP_OPENING)
		return;
	/* A method may open a browser: none is started that the operator has not named. */
	if (needs_auth && method.n > 0 && !a->was_authenticated) {
		authenticate(a, method, out);
		return;
	}
	if (needs_auth)
		failure = log_in_first(a, failure.message, out->arena);
	else if (a->config.resume.n > 0 && failure.class != CLASS_PERMISSION)
		failure = agent_failure_of(CODE_unknown_session, failure.message);
	acp_open_failed(a, failure, out);
}

void acp_session_opened(struct acp *a, const json_t *result, int64_t now, struct agent_out *out)
{
	struct str session = json_member_str(result, "sessionId");

	if (a->phase != ACP_OPENING)
		return;
	if (session.n == 0)
		session = a->config.resume;
	if (session.n == 0 || session.n > LIMIT_AGENT_ID_BYTES) {
		acp_open_failed(a, agent_failure_of(CODE_protocol_violation, STR("The agent named no session.")), out);
		return;
	}
	state_text(&a->session, session);
	state_text(&a->speakers[0].session, session);
	a->speaker_count = 1;
	a->is_resumed = a->config.resume.n > 0;
	a->phase = ACP_SETTLING;
	if (a->is_replaying)
		a->quiet_due = now + LIMIT_AGENT_REPLAY_MS;
	acp_read_options(a, result, out);
	if (acp_set_modes(a, now, out) != 0 || acp_set_model(a, a->config.model, a->config.model_options, now, out) != 0) {
		acp_open_failed(a, agent_failure_of(CODE_unknown_model, STR("The agent has no such model, or lets nobody choose one.")),
			out);
		return;
	}
	acp_settle(a, now, out);
}

/* ---- open ---- */

void acp_capabilities(const struct acp *a, struct agent_caps *caps)
{
	*caps = a->agent.driver->caps;
	caps->canResumeThread = acp_can_come_back(a);
	caps->canForkThread = a->can_fork;
	caps->supportsMcpTools = a->has_http_mcp;
	caps->supportsActiveSteering = a->can_steer;
	caps->supportsModelSwitchInSession = a->model_place != PLACE_NONE;
}

static void say_opened(struct acp *a, struct agent_out *out)
{
	struct agent_event *event = agent_out_event(out, EVENT_OPENED);
	struct agent_caps *caps = ARENA_NEW(out->arena, struct agent_caps);

	acp_capabilities(a, caps);
	event->native = str_dup(out->arena, a->session);
	event->program_version = str_dup(out->arena, a->version);
	event->is_resumed = a->is_resumed;
	event->caps = caps;
	if (a->config.mcp_url.n > 0 && !a->has_http_mcp)
		acp_show_notice(a, "warning",
			STR("This agent takes no MCP server over HTTP: the tools of dais are not available to it."), out);
	if (a->has_mcp_trouble)
		acp_show_notice(a, "warning", STR("The agent cannot reach the MCP server of dais."), out);
	if (a->has_refused_mode)
		acp_show_notice(a, "warning",
			STR("The agent refused its native mode for this runtime mode; dais answers its permission requests all the same."),
			out);
}

void acp_settle(struct acp *a, int64_t now, struct agent_out *out)
{
	if (a->phase != ACP_SETTLING || rpc_waiting(&a->rpc, CALL_SET) > 0 || (a->is_replaying && now < a->quiet_due))
		return;
	a->phase = ACP_READY;
	a->is_replaying = false;
	a->quiet_due = 0;
	a->open_due = 0;
	state_text(&a->auth_methods, STR_NONE);
	say_opened(a, out);
}
