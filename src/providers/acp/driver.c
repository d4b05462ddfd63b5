/* The rows of the family in the table of drivers, and what comes in: orders, lines, time, the end. */
#include "providers/acp/acp.h"

#include "providers/due.h"
#include "providers/exit.h"
#include "providers/state.h"

#include <stdlib.h>

struct agent *acp_create(const struct agent_config *config)
{
	struct acp *a = calloc(1, sizeof(*a));

	if (a == NULL)
		abort();
	a->agent.driver = config->instance->driver;
	a->arena = arena_create();
	a->config = *config;
	a->config.cwd = str_dup(a->arena, config->cwd);
	a->config.model = str_dup(a->arena, config->model);
	a->config.mcp_url = str_dup(a->arena, config->mcp_url);
	a->config.instructions = str_dup(a->arena, config->instructions);
	a->config.resume = str_dup(a->arena, config->resume);
	json_incref((json_t *)(uintptr_t)config->model_options);
	a->profile = acp_profile_of_kind(a->agent.driver->kind);
	a->runtime = config->runtime;
	a->interaction = config->interaction;
	return &a->agent;
}

void acp_destroy(struct agent *agent)
{
	struct acp *a = (struct acp *)agent;

	acp_forget(a);
	json_decref((json_t *)(uintptr_t)a->config.model_options);
	arena_destroy(a->arena);
	free(a);
}

void acp_begin(struct agent *agent, int64_t now, struct agent_out *out)
{
	struct acp *a = (struct acp *)agent;
	struct rpc_line line;
	struct json_writer *w;

	if (a->phase != ACP_IDLE)
		return;
	a->phase = ACP_INITIALIZING;
	a->heard_at = now;
	a->open_due = now + LIMIT_AGENT_OPEN_MS;
	w = rpc_call(&a->rpc, &line, out, "initialize", CALL_INITIALIZE, 0);
	jw_kint(w, "protocolVersion", 1);
	/* Files and terminals stay the agent's own: a driver does no I/O, and most agents ignore or misuse ours. */
	jw_kobject(w, "clientCapabilities");
	jw_kobject(w, "fs");
	jw_kbool(w, "readTextFile", false);
	jw_kbool(w, "writeTextFile", false);
	jw_object_end(w);
	jw_kbool(w, "terminal", false);
	jw_kobject(w, "elicitation");
	jw_kobject(w, "form");
	jw_object_end(w);
	jw_object_end(w);
	jw_object_end(w);
	jw_kobject(w, "clientInfo");
	jw_ktext(w, "name", "dais");
	jw_ktext(w, "title", "dais");
	jw_ktext(w, "version", DAIS_VERSION);
	jw_object_end(w);
	rpc_end(&line);
}

/* ---- orders ---- */

void acp_refuse_order(struct agent_out *out, struct str key, enum provider_failure_code code, const char *why)
{
	struct agent_event *event = agent_out_event(out, EVENT_ORDER_REFUSED);

	event->key = str_dup(out->arena, key);
	event->failure = agent_failure_of(code, str_of(why));
}

void acp_over(struct acp *a, struct agent_out *out)
{
	static const char why[] = "The session of the agent has ended.";
	struct rpc_call call;

	while (rpc_expire(&a->rpc, INT64_MAX, out->arena, &call))
		if (call.method == CALL_STEER)
			acp_refuse_order(out, call.note, CODE_connection_lost, why);
	if (a->select_key.p != NULL)
		acp_refuse_order(out, a->select_key, CODE_connection_lost, why);
	state_text(&a->select_key, STR_NONE);
	a->phase = ACP_OVER;
}

static void order_close(struct acp *a, struct agent_out *out)
{
	struct rpc_line line;
	struct json_writer *w;

	if (a->phase == ACP_RUNNING) {
		acp_cancel_requests(a, out);
		w = rpc_notify(&line, out, "session/cancel");
		jw_kstr(w, "sessionId", a->session);
		rpc_end(&line);
		acp_end_turn(a, AGENT_CANCELLED, NULL, !acp_can_come_back(a), out);
	}
	if (a->can_close && a->session.n > 0 && !rpc_is_full(&a->rpc)) {
		w = rpc_call(&a->rpc, &line, out, "session/close", CALL_IGNORED, 0);
		jw_kstr(w, "sessionId", a->session);
		rpc_end(&line);
	}
	acp_over(a, out);
	out->ends_stdin = true;
}

void acp_order(struct agent *agent, const struct agent_order *order, int64_t now, struct agent_out *out)
{
	struct acp *a = (struct acp *)agent;

	if (a->phase == ACP_OVER || (a->phase < ACP_READY && order->kind != ORDER_CLOSE)) {
		acp_refuse_order(out, order->key, CODE_connection_lost, "The session of the agent is not open.");
		return;
	}
	switch (order->kind) {
	case ORDER_TURN:
		acp_order_turn(a, order, now, out);
		return;
	case ORDER_STEER:
		acp_order_steer(a, order, now, out);
		return;
	case ORDER_INTERRUPT:
		acp_interrupt(a, now, out);
		return;
	case ORDER_ANSWER:
		acp_order_answer(a, order, now, out);
		return;
	case ORDER_SELECT:
		acp_order_select(a, order, now, out);
		return;
	case ORDER_CLOSE:
		order_close(a, out);
		return;
	}
}

/* ---- lines ---- */

/* Nothing can come of this session any more. */
static void give_up(struct acp *a, struct agent_failure failure, struct agent_out *out)
{
	struct agent_event *event;

	if (a->phase < ACP_READY) {
		acp_open_failed(a, failure, out);
		return;
	}
	if (a->phase == ACP_RUNNING)
		acp_end_turn(a, AGENT_FAILED, &failure, !acp_can_come_back(a), out);
	acp_over(a, out);
	event = agent_out_event(out, EVENT_BROKEN);
	event->failure = failure;
}

static void answered(struct acp *a, const struct rpc_message *m, int64_t now, struct agent_out *out)
{
	bool failed = m->kind == RPC_ERROR;

	switch ((enum acp_call)m->call.method) {
	case CALL_INITIALIZE:
		if (failed)
			acp_open_failed(a, acp_failure_of_error(m->error, out->arena), out);
		else
			acp_initialized(a, m->result, out);
		return;
	case CALL_AUTHENTICATE:
		if (failed)
			acp_open_refused(a, m->error, out);
		else
			acp_authenticated(a, out);
		return;
	case CALL_OPEN:
		if (failed)
			acp_open_refused(a, m->error, out);
		else
			acp_session_opened(a, m->result, now, out);
		return;
	case CALL_SET:
		if (failed)
			acp_set_failed(a, m->call.note, acp_failure_of_error(m->error, out->arena), now, out);
		else
			acp_set_done(a, m, now, out);
		return;
	case CALL_PROMPT:
		acp_prompt_ended(a, m, out);
		return;
	case CALL_STEER:
		acp_steered(a, m, out);
		return;
	case CALL_IGNORED:
		return;
	}
}

void acp_line(struct agent *agent, struct str line, int64_t now, struct agent_out *out)
{
	struct acp *a = (struct acp *)agent;
	struct rpc_message m;

	if (a->phase == ACP_OVER || a->phase == ACP_IDLE)
		return;
	rpc_read(&a->rpc, out->arena, line, &m);
	a->heard_at = now;
	switch (m.kind) {
	case RPC_NOTHING:
		return;
	case RPC_OVERSIZE:
		if (a->phase == ACP_RUNNING && !a->has_drop_notice)
			acp_show_notice(a, "warning", STR("A message of the agent was too large to be read, and is not shown."), out);
		a->has_drop_notice = true;
		return;
	case RPC_VIOLATION:
		give_up(a, agent_failure_of(CODE_protocol_violation,
			STR("The program writes lines that are no messages of its protocol.")), out);
		return;
	case RPC_REQUEST:
		acp_question(a, &m, out);
		return;
	case RPC_NOTIFICATION:
		acp_notification(a, &m, now, out);
		return;
	case RPC_RESULT:
	case RPC_ERROR:
		answered(a, &m, now, out);
		return;
	}
}

static struct str last_words(const struct agent_exit *exit, struct arena *arena)
{
	struct str tail = str_trim(exit->stderr_tail);
	const char *before = exit->is_stdout_only ? "The agent closed its output" : "The agent ended";
	struct str how = STR("");

	if (!exit->is_stdout_only)
		how = exit->code < 0 ? str_printf(arena, " by signal %d", exit->signal)
				     : str_printf(arena, " with exit code %d", exit->code);
	if (tail.n > 4096)
		tail = (struct str){tail.p + tail.n - 4096, 4096};
	while (tail.n > 0 && ((unsigned char)tail.p[0] & 0xc0) == 0x80) /* cut within a character */
		tail = (struct str){tail.p + 1, tail.n - 1};
	if (tail.n == 0)
		return str_printf(arena, "%s%.*s.", before, STRF(how));
	return str_printf(arena, "%s%.*s. Its last words: %.*s", before, STRF(how), STRF(tail));
}

void acp_exited(struct agent *agent, const struct agent_exit *exit, struct agent_out *out)
{
	struct acp *a = (struct acp *)agent;
	struct agent_failure failure = agent_failure_of(exit_code_of(exit), last_words(exit, out->arena));

	if (a->phase == ACP_OVER)
		return;
	if (a->phase == ACP_RUNNING && a->is_cancelled && !a->is_stalled)
		acp_end_turn(a, AGENT_INTERRUPTED, NULL, !acp_can_come_back(a), out);
	give_up(a, failure, out);
	out->lines = NULL; /* nobody reads them */
	out->lines_end = &out->lines;
}

/* ---- time ---- */

/* When the silence of a running turn is worth a word. A person may take as long as it likes. */
static int64_t silence_due(const struct acp *a)
{
	bool has_tool = acp_has_open_tool(a);

	if (a->phase != ACP_RUNNING || a->is_cancelled || a->request_count > 0)
		return 0;
	if (!a->has_silence_notice)
		return a->heard_at + (has_tool ? LIMIT_AGENT_STALLED_MS : LIMIT_AGENT_SILENT_MS);
	return has_tool ? 0 : a->heard_at + LIMIT_AGENT_STALLED_MS;
}

int64_t acp_due(const struct agent *agent)
{
	const struct acp *a = (const struct acp *)agent;
	int64_t due = 0;

	if (a->phase == ACP_OVER || a->phase == ACP_IDLE)
		return 0;
	due = due_earlier(due, a->open_due);
	due = due_earlier(due, a->quiet_due);
	due = due_earlier(due, a->cancel_due);
	due = due_earlier(due, rpc_due(&a->rpc));
	return due_earlier(due, silence_due(a));
}

static void expire_calls(struct acp *a, int64_t now, struct agent_out *out)
{
	struct agent_failure failure = agent_failure_of(CODE_timeout, STR("The agent did not answer in time."));
	struct rpc_call call;

	while (rpc_expire(&a->rpc, now, out->arena, &call)) {
		if (call.method == CALL_SET)
			acp_set_failed(a, call.note, failure, now, out);
		else if (call.method == CALL_STEER)
			acp_refuse_order(out, call.note, CODE_timeout, "The agent did not take the message in time.");
	}
}

static void tick_silence(struct acp *a, int64_t now, struct agent_out *out)
{
	int64_t due = silence_due(a);

	if (due == 0 || due > now)
		return;
	if (!a->has_silence_notice) {
		a->has_silence_notice = true;
		acp_show_notice(a, "warning", STR("The agent has not been heard for a long time; its turn is still open."), out);
		return;
	}
	acp_interrupt(a, now, out);
	a->is_stalled = true;
}

static const struct agent_failure *stalled(struct agent_failure *failure)
{
	*failure = agent_failure_of(CODE_stalled, STR("The agent was silent for too long in the middle of its turn."));
	return failure;
}

void acp_tick(struct agent *agent, int64_t now, struct agent_out *out)
{
	struct acp *a = (struct acp *)agent;
	struct agent_failure failure;

	if (a->phase == ACP_OVER || a->phase == ACP_IDLE)
		return;
	if (a->open_due != 0 && a->open_due <= now) {
		acp_open_failed(a,
			agent_failure_of(CODE_start_timeout, STR("The agent did not open its session in time.")), out);
		out->kills = true;
		return;
	}
	expire_calls(a, now, out);
	if (a->phase == ACP_SETTLING)
		acp_settle(a, now, out);
	if (a->cancel_due != 0 && a->cancel_due <= now) {
		out->kills = true;
		acp_end_turn(a, a->is_stalled ? AGENT_FAILED : AGENT_INTERRUPTED, a->is_stalled ? stalled(&failure) : NULL,
			!acp_can_come_back(a), out);
		acp_over(a, out);
		return;
	}
	tick_silence(a, now, out);
}

/* ---- the rows ---- */

#define ACP_CAPS \
	.supportsProviderSwitchingViaHandoff = true, .supportsRuntimeModeSwitchInSession = true, \
	.canCreateEmptyThread = true, .exposesNativeThreadId = true, .emitsTurnCompleted = true, \
	.supportsInterrupt = true, .supportsSteeringByInterruptRestart = true, .supportsQueuedMessages = true, \
	.terminalStatusQuality = QUALITY_WEAK, .streamsAssistantText = true, .streamsReasoning = true, \
	.exposesToolItemIds = true, .emitsToolStarted = true, .emitsToolCompleted = true, .emitsToolOutput = true, \
	.supportsCommandApproval = true, .supportsFileReadApproval = true, .supportsFileChangeApproval = true, \
	.supportsApplyPatchApproval = true, .approvalsHaveNativeRequestIds = true, .approvalCallbacksAreLiveOnly = true, \
	.approvalsCanOriginateFromSubagents = true, .emitsPlanUpdated = true, .emitsTodoList = true, \
	.supportsStructuredQuestions = true, .acceptsSyntheticUserContext = true, \
	.canConsumeHandoffSummaries = true, .supportsDeltaHandoff = true, .supportsFullThreadHandoff = true, \
	.appCanCheckpointFilesystem = true, .nativeThreadIds = QUALITY_STRONG, .nativeItemIds = QUALITY_WEAK, \
	.nativeRequestIds = QUALITY_WEAK

#define ACP_ROW \
	.check = acp_check, .launch = acp_launch, .create = acp_create, .destroy = acp_destroy, .save = acp_save, \
	.load = acp_load, .begin = acp_begin, .order = acp_order, .line = acp_line, .exited = acp_exited, .due = acp_due, \
	.tick = acp_tick

const struct driver driver_acp = {.kind = "acp", .title = "Agent Client Protocol", .caps = {ACP_CAPS}, ACP_ROW};

const struct driver driver_grok = {
	.kind = "grok",
	.title = "Grok",
	.program = "grok",
	.caps = {ACP_CAPS, .emitsProposedPlan = true, .supportsActiveSteering = true, .supportsMcpTools = true,
		.canResumeThread = true, .supportsModelSwitchInSession = true},
	ACP_ROW,
};

const struct driver driver_gemini = {
	.kind = "gemini",
	.title = "Gemini CLI",
	.program = "gemini",
	.caps = {ACP_CAPS, .supportsMcpTools = true, .canResumeThread = true, .supportsModelSwitchInSession = true},
	ACP_ROW,
};

const struct driver driver_cursor = {
	.kind = "cursor",
	.title = "Cursor CLI",
	.program = "cursor-agent",
	.caps = {ACP_CAPS, .emitsProposedPlan = true, .supportsMcpTools = true, .canResumeThread = true},
	ACP_ROW,
};

const struct driver driver_antigravity = {
	.kind = "antigravity",
	.title = "Antigravity CLI",
	.program = "agy",
	.caps = {ACP_CAPS},
	/* Its edits become permission requests only for a client that offers it files; ours does not, and nobody has run
	 * the program against this driver. */
	.constraint = "The Antigravity CLI has not been verified: known from documents only, and it edits files without asking "
		      "a client that offers no file access.",
	ACP_ROW,
};

const struct driver driver_script = {
	.kind = "script",
	.title = "Scripted agent",
	.caps = {ACP_CAPS, .supportsActiveSteering = true, .supportsMcpTools = true, .canResumeThread = true,
		.supportsModelSwitchInSession = true},
	ACP_ROW,
};
