/* One turn: the prompt, steering, the ladder of a cancel, and what its end means. */
#include "providers/acp/acp.h"

#include "providers/state.h"

bool acp_can_come_back(const struct acp *a)
{
	return a->can_load || a->can_resume;
}

/* ---- the prompt ---- */

static void write_text_block(struct json_writer *w, struct str text)
{
	jw_object_begin(w);
	jw_ktext(w, "type", "text");
	jw_kstr(w, "text", text);
	jw_object_end(w);
}

/* file:// with everything escaped that does not stand for itself. */
static struct str file_uri(struct arena *arena, struct str path)
{
	struct buf uri;

	buf_init(&uri, arena, SIZE_MAX);
	buf_add_str(&uri, STR("file://"));
	for (size_t i = 0; i < path.n; i++) {
		unsigned char c = (unsigned char)path.p[i];
		bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			strchr("/-._~", c) != NULL;

		if (is_plain && c != '\0')
			buf_add_char(&uri, (char)c);
		else
			buf_printf(&uri, "%%%02X", c);
	}
	return buf_str(&uri);
}

/* A driver reads no file, so an image is linked too; not every agent follows a link, so the text names it. */
static void write_attachment(struct json_writer *w, const struct agent_attachment *attachment, struct arena *arena)
{
	jw_object_begin(w);
	jw_ktext(w, "type", "resource_link");
	jw_kstr(w, "uri", file_uri(arena, attachment->path));
	jw_kstr(w, "name", attachment->name);
	jw_kstr_opt(w, "mimeType", attachment->mime);
	jw_object_end(w);
	write_text_block(w, str_printf(arena, "Attached file: %.*s", STRF(attachment->path)));
}

static void write_prompt(struct acp *a, struct json_writer *w, const struct agent_order *order, struct arena *arena)
{
	jw_karray(w, "prompt");
	if (a->has_instructions_due)
		write_text_block(w, a->config.instructions);
	a->has_instructions_due = false;
	for (size_t i = 0; i < order->attachment_count; i++)
		write_attachment(w, &order->attachments[i], arena);
	write_text_block(w, order->text);
	jw_array_end(w);
}

static void forget_last_turn(struct acp *a)
{
	while (a->tool_count > 0)
		acp_tool_drop(a, a->tool_count - 1);
	while (a->speaker_count > 1)
		acp_speaker_drop(a, a->speaker_count - 1);
	a->is_cancelled = a->is_stalled = a->was_denied = a->has_content = a->saw_system_error = false;
	a->has_silence_notice = a->has_drop_notice = false;
	a->cost_before = a->cost;
	state_text(&a->error_text, STR_NONE);
}

void acp_order_turn(struct acp *a, const struct agent_order *order, int64_t now, struct agent_out *out)
{
	struct rpc_line line;
	struct json_writer *w;

	if (a->phase != ACP_READY || a->select_key.p != NULL || rpc_is_full(&a->rpc)) {
		acp_refuse_order(out, order->key, CODE_invalid_request, "The agent is not ready for a turn.");
		return;
	}
	forget_last_turn(a);
	w = rpc_call(&a->rpc, &line, out, "session/prompt", CALL_PROMPT, 0);
	jw_kstr(w, "sessionId", a->session);
	write_prompt(a, w, order, out->arena);
	rpc_end(&line);
	a->phase = ACP_RUNNING;
	a->heard_at = now;
	a->turn++;
	agent_out_event(out, EVENT_TURN_STARTED)->key = str_dup(out->arena, order->key);
}

/* ---- steering ---- */

void acp_order_steer(struct acp *a, const struct agent_order *order, int64_t now, struct agent_out *out)
{
	bool interjects = a->profile->steering == STEER_INTERJECT;
	struct rpc_line line;
	struct json_writer *w;

	if (!a->can_steer || (interjects && order->attachment_count > 0)) {
		acp_refuse_order(out, order->key, CODE_unsupported_method, "This agent takes no message into a running turn.");
		return;
	}
	if (a->phase != ACP_RUNNING || a->is_cancelled || rpc_is_full(&a->rpc) || order->key.n > LIMIT_AGENT_ID_BYTES ||
		!acp_has_room(a, state_cost(order->key))) {
		acp_refuse_order(out, order->key, CODE_invalid_request, "No turn runs that could take the message.");
		return;
	}
	w = rpc_call(&a->rpc, &line, out, interjects ? "_x.ai/interject" : "_session/steering", CALL_STEER,
		now + LIMIT_AGENT_CALL_MS);
	jw_kstr(w, "sessionId", a->session);
	if (interjects)
		jw_kstr(w, "text", order->text);
	else
		write_prompt(a, w, order, out->arena);
	rpc_end(&line);
	rpc_note(&a->rpc, order->key);
}

static void cancel_session(struct acp *a, struct agent_out *out)
{
	struct rpc_line line;
	struct json_writer *w = rpc_notify(&line, out, "session/cancel");

	jw_kstr(w, "sessionId", a->session);
	rpc_end(&line);
}

void acp_steered(struct acp *a, const struct rpc_message *m, struct agent_out *out)
{
	struct agent_event *event;

	if (m->kind == RPC_ERROR) {
		event = agent_out_event(out, EVENT_ORDER_REFUSED);
		event->key = m->call.note;
		event->failure = acp_failure_of_error(m->error, out->arena);
		return;
	}
	if (str_eq(json_member_str(m->result, "outcome"), STR("startedNewTurn"))) {
		/* The turn ended while the message was on its way, and now one runs that nobody ordered. */
		if (a->phase == ACP_READY)
			cancel_session(a, out);
		acp_refuse_order(out, m->call.note, CODE_invalid_request, "The turn ended before the message reached it.");
		return;
	}
	agent_out_event(out, EVENT_STEERED)->key = m->call.note;
}

/* ---- cancel ---- */

void acp_interrupt(struct acp *a, int64_t now, struct agent_out *out)
{
	if (a->phase != ACP_RUNNING || a->is_cancelled)
		return;
	a->is_cancelled = true;
	a->cancel_due = now + LIMIT_AGENT_CANCEL_MS;
	/* First, since Gemini does not hear a cancel before its question is answered. */
	acp_cancel_requests(a, out);
	cancel_session(a, out);
}

/* ---- the end ---- */

static void end_speakers(struct acp *a, enum agent_status status, struct agent_out *out)
{
	for (int64_t i = 0; i < a->speaker_count; i++) {
		acp_end_messages(a, i, true, out);
		if (i > 0)
			acp_show_item(out, ITEM_SUBAGENT, a->speakers[i].item, STR_NONE,
				status, STR_NONE, STR_NONE);
	}
}

void acp_end_turn(struct acp *a, enum agent_status status, const struct agent_failure *failure, bool is_broken,
	struct agent_out *out)
{
	struct agent_event *event;

	acp_cancel_requests(a, out);
	acp_end_tools(a, status != AGENT_COMPLETED, out);
	end_speakers(a, status, out);
	event = agent_out_event(out, EVENT_TURN_ENDED);
	event->status = status;
	event->is_broken = is_broken;
	if (failure != NULL)
		event->failure = *failure;
	a->phase = ACP_READY;
	a->cancel_due = 0;
}

static void tell_usage(const struct agent_usage *usage, struct agent_out *out)
{
	if (usage->input < 0 && usage->output < 0 && usage->cached < 0 && usage->cost_usd < 0)
		return;
	agent_out_event(out, EVENT_USAGE)->usage = *usage;
}

struct stop {
	const char *reason;
	enum provider_failure_code code;
	const char *message;
};

static const struct stop stops[] = {
	{"max_tokens", CODE_max_tokens, "The model reached the most tokens of one answer."},
	{"max_turn_requests", CODE_max_turn_requests, "The turn reached the most model calls the agent allows."},
	{"refusal", CODE_refused, "The model refused to go on."},
};

/* An end that says success and is none. */
static bool is_hidden_failure(const struct acp *a, bool is_told, struct agent_failure *failure, struct arena *arena)
{
	if (a->saw_system_error) {
		*failure = a->error_text.n > 0 ? acp_failure_of_text(a->error_text, arena)
					       : agent_failure_of(CODE_model_error, STR("The agent reported a system error."));
		return true;
	}
	if ((a->profile->reports_usage || a->has_usage) && !is_told) {
		*failure = a->error_text.n > 0
			? acp_failure_of_text(a->error_text, arena)
			: agent_failure_of(CODE_connection_lost,
				  STR("The turn ended and no tokens were counted. The connection to the model was lost."));
		return true;
	}
	if (!a->has_content) {
		*failure = agent_failure_of(CODE_empty_turn, STR("The turn ended with no text, no reasoning and no tool."));
		return true;
	}
	return false;
}

static void end_cancelled(struct acp *a, struct agent_out *out)
{
	if (a->was_denied) {
		acp_show_notice(a, "info", STR("The agent stopped after a denied approval."), out);
		acp_end_turn(a, AGENT_COMPLETED, NULL, false, out);
	} else {
		acp_show_notice(a, "warning", STR("The agent cancelled the turn by itself."), out);
		acp_end_turn(a, AGENT_CANCELLED, NULL, false, out);
	}
}

static void end_well(struct acp *a, struct str reason, bool is_told, struct agent_out *out)
{
	struct agent_failure failure;

	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
		if (str_eq(reason, str_of(stops[i].reason))) {
			failure = agent_failure_of(stops[i].code, str_of(stops[i].message));
			acp_end_turn(a, AGENT_FAILED, &failure, false, out);
			return;
		}
	if (str_eq(reason, STR("cancelled"))) {
		end_cancelled(a, out);
		return;
	}
	if (is_hidden_failure(a, is_told, &failure, out->arena)) {
		acp_end_turn(a, AGENT_FAILED, &failure, false, out);
		return;
	}
	if (!str_eq(reason, STR("end_turn")))
		acp_show_notice(a, "warning", STR("The agent ended its turn for a reason that is not known."), out);
	acp_end_turn(a, AGENT_COMPLETED, NULL, false, out);
}

static void end_interrupted(struct acp *a, struct agent_out *out)
{
	struct agent_failure failure = agent_failure_of(CODE_stalled,
		STR("The agent was silent for too long in the middle of its turn."));

	acp_end_turn(a, a->is_stalled ? AGENT_FAILED : AGENT_INTERRUPTED, a->is_stalled ? &failure : NULL, false, out);
	if (a->profile->outlives_cancel) {
		/* What it started may still run; the session is resumed in a new process. */
		out->kills = true;
		acp_over(a, out);
	}
}

void acp_prompt_ended(struct acp *a, const struct rpc_message *m, struct agent_out *out)
{
	bool is_told = false;
	struct agent_failure failure;
	struct agent_usage usage;

	if (a->phase != ACP_RUNNING)
		return;
	if (m->kind == RPC_RESULT) {
		usage = acp_usage_of(a, m->result, &is_told);
		tell_usage(&usage, out);
		a->has_usage |= is_told;
	}
	/* Whatever it says: what was asked for has been done. */
	if (a->is_cancelled) {
		end_interrupted(a, out);
	} else if (m->kind == RPC_RESULT) {
		end_well(a, json_member_str(m->result, "stopReason"), is_told, out);
	} else {
		failure = acp_failure_of_error(m->error, out->arena);
		acp_end_turn(a, AGENT_FAILED, &failure, false, out);
	}
}
