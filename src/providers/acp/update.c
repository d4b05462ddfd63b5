/* session/update: who speaks, and what about. */
#include "providers/acp/acp.h"

#include "providers/state.h"

/* ---- items ---- */

void acp_show_item(struct agent_out *out, enum agent_item_kind kind, struct str key, struct str parent,
	enum agent_status status, struct str title, struct str body)
{
	struct agent_event *event = agent_out_event(out, EVENT_ITEM);

	event->item = (struct agent_item){.kind = kind,
		.key = str_dup(out->arena, key),
		.parent = str_dup(out->arena, parent),
		.status = status,
		.title = str_dup(out->arena, title),
		.body = str_dup(out->arena, body)};
}

void acp_show_notice(struct acp *a, const char *severity, struct str message, struct agent_out *out)
{
	struct buf body;
	struct json_writer w;

	buf_init(&body, out->arena, SIZE_MAX);
	json_writer_init(&w, &body);
	jw_object_begin(&w);
	jw_ktext(&w, "severity", severity);
	jw_kstr(&w, "message", message);
	jw_object_end(&w);
	acp_show_item(out, ITEM_NOTICE, str_printf(out->arena, "notice:%" PRId64, ++a->made), STR_NONE, AGENT_COMPLETED, STR_NONE,
		buf_str(&body));
}

void acp_show_plan(struct acp *a, struct str key, struct str markdown, struct agent_out *out)
{
	struct buf body;
	struct json_writer w;

	a->has_content = true;
	buf_init(&body, out->arena, SIZE_MAX);
	json_writer_init(&w, &body);
	jw_object_begin(&w);
	jw_kstr(&w, "markdown", markdown);
	jw_object_end(&w);
	acp_show_item(out, ITEM_PLAN, key, STR_NONE, AGENT_COMPLETED, STR_NONE, buf_str(&body));
}

void acp_show_todo(struct acp *a, int64_t speaker, const json_t *steps, struct agent_out *out)
{
	struct buf body;
	struct json_writer w;
	const json_t *step;
	size_t i;

	a->has_content = true;
	buf_init(&body, out->arena, SIZE_MAX);
	json_writer_init(&w, &body);
	jw_object_begin(&w);
	jw_karray(&w, "steps");
	json_array_foreach (steps, i, step) {
		struct str id = json_member_str(step, "id");
		struct str text = json_member_str(step, "content");
		struct str status = json_member_str(step, "status");

		jw_object_begin(&w);
		jw_kstr(&w, "id", id.n > 0 ? id : str_printf(out->arena, "%zu", i + 1));
		jw_kstr(&w, "text", text.n > 0 ? text : json_member_str(step, "title"));
		jw_kstr(&w, "status", status.n > 0 ? status : STR("pending"));
		jw_object_end(&w);
	}
	jw_array_end(&w);
	jw_object_end(&w);
	acp_show_item(out, ITEM_TODO, str_printf(out->arena, "todo:%" PRId64 ":%" PRId64, a->turn, speaker),
		a->speakers[speaker].item, AGENT_RUNNING, STR_NONE, buf_str(&body));
}

/* ---- who ---- */

static void tell_drop(struct acp *a, struct agent_out *out)
{
	if (!a->has_drop_notice)
		acp_show_notice(a, "warning", STR("The agent does more at once than can be followed; some of it is not shown."), out);
	a->has_drop_notice = true;
}

int64_t acp_speaker_of(struct acp *a, struct str session, struct agent_out *out)
{
	struct acp_speaker *s;
	struct buf body;
	struct json_writer w;

	for (int64_t i = 0; i < a->speaker_count; i++)
		if (str_eq(a->speakers[i].session, session))
			return i;
	/* One room for its id, one for the key, which holds it too, one for an open message. */
	if (a->speaker_count == LIMIT_AGENT_CHILDREN + 1 || session.n == 0 || session.n > LIMIT_AGENT_ID_BYTES ||
		!acp_has_room(a, 3 * state_cost(session))) {
		tell_drop(a, out);
		return -1;
	}
	s = &a->speakers[a->speaker_count];
	state_text(&s->session, session);
	state_text(&s->item, str_printf(out->arena, "agent:%" PRId64 ":%.*s", a->turn, STRF(session)));
	buf_init(&body, out->arena, SIZE_MAX);
	json_writer_init(&w, &body);
	jw_object_begin(&w);
	jw_kstr(&w, "nativeThreadId", session);
	jw_object_end(&w);
	acp_show_item(out, ITEM_SUBAGENT, s->item, STR_NONE, AGENT_RUNNING, STR_NONE, buf_str(&body));
	a->has_content = true;
	return a->speaker_count++;
}

/* ---- of the whole session ---- */

static void told_info(struct acp *a, const json_t *update, struct agent_out *out)
{
	const json_t *status = json_object_get(json_object_get(json_object_get(update, "_meta"), "codex"), "threadStatus");
	struct str title = json_member_str(update, "title");

	if (str_eq(json_member_str(status, "type"), STR("systemError")))
		a->saw_system_error = true;
	if (title.n > 0)
		agent_out_event(out, EVENT_TITLE)->text = str_dup(out->arena, title);
}

static void told_mode(struct acp *a, const json_t *update, struct agent_out *out)
{
	struct str mode = json_member_str(update, "currentModeId");
	struct buf body;
	struct json_writer w;

	if (mode.n == 0 || mode.n > LIMIT_AGENT_ID_BYTES || str_eq(mode, a->mode) || !acp_has_room(a, state_cost(mode)))
		return;
	state_text(&a->mode, mode);
	if (a->phase < ACP_READY) /* history, or what was just asked for */
		return;
	buf_init(&body, out->arena, SIZE_MAX);
	json_writer_init(&w, &body);
	jw_object_begin(&w);
	jw_kstr(&w, "mode", mode);
	jw_object_end(&w);
	agent_out_event(out, EVENT_MODE)->body = buf_str(&body);
}

/* True when the update was one of these. */
static bool told_session(struct acp *a, struct str kind, const json_t *update, struct agent_out *out)
{
	if (str_eq(kind, STR("config_option_update")))
		acp_read_options(a, update, out);
	else if (str_eq(kind, STR("current_mode_update")))
		told_mode(a, update, out);
	else if (a->is_replaying)
		return false;
	else if (str_eq(kind, STR("session_info_update")))
		told_info(a, update, out);
	else if (str_eq(kind, STR("usage_update")))
		acp_gauge(a, update, out);
	else
		return false;
	return true;
}

/* ---- in a turn ---- */

static void remember_error(struct acp *a, struct str text)
{
	if (text.n > LIMIT_AGENT_ERROR_BYTES)
		text.n = utf8_cut(text, LIMIT_AGENT_ERROR_BYTES);
	if (acp_has_room(a, state_cost(text)))
		state_text(&a->error_text, text);
}

static void told_text(struct acp *a, int64_t speaker, const json_t *update, bool is_thought, struct agent_out *out)
{
	struct str text = acp_content_text(out->arena, json_object_get(update, "content"));
	struct str id = json_member_str(update, "messageId");

	if (!is_thought && a->profile->tells_mode_as_text && str_starts(text, STR("[MODE_UPDATE]")))
		return;
	if (!is_thought && a->profile->unnamed_text_is_notice && id.n == 0) {
		if (text.n == 0)
			return;
		remember_error(a, text);
		acp_show_notice(a, "warning", text, out);
		return;
	}
	acp_say(a, speaker, is_thought, text, id, out);
}

static void told_notice(struct acp *a, const json_t *update, struct agent_out *out)
{
	struct str severity = json_member_str(update, "severity");
	struct str title = json_member_str(update, "title");
	struct str description = json_member_str(update, "description");
	bool is_known = str_eq(severity, STR("warning")) || str_eq(severity, STR("error"));

	if (description.n > 0)
		title = str_printf(out->arena, "%.*s: %.*s", STRF(title), STRF(description));
	acp_show_notice(a, is_known ? severity.p : "info", title, out);
}

static enum agent_status status_of(struct str text)
{
	if (str_eq(text, STR("completed")))
		return AGENT_COMPLETED;
	if (str_eq(text, STR("failed")))
		return AGENT_FAILED;
	return str_eq(text, STR("cancelled")) ? AGENT_CANCELLED : AGENT_RUNNING;
}

static void told_compaction(struct acp *a, const json_t *update, struct agent_out *out)
{
	struct str id = json_member_str(update, "compactionId");
	struct str summary = json_member_str(update, "summary");
	struct buf body;
	struct json_writer w;

	buf_init(&body, out->arena, SIZE_MAX);
	json_writer_init(&w, &body);
	jw_object_begin(&w);
	jw_kstr_opt(&w, "summary", summary);
	jw_object_end(&w);
	acp_show_item(out, ITEM_COMPACTION, str_printf(out->arena, "compaction:%" PRId64 ":%.*s", a->turn, STRF(id)), STR_NONE,
		status_of(json_member_str(update, "status")), STR_NONE, buf_str(&body));
}

static void told_turn(struct acp *a, int64_t speaker, struct str kind, const json_t *update, struct agent_out *out)
{
	if (str_eq(kind, STR("agent_message_chunk"))) {
		told_text(a, speaker, update, false, out);
	} else if (str_eq(kind, STR("agent_thought_chunk"))) {
		told_text(a, speaker, update, true, out);
	} else if (str_eq(kind, STR("tool_call")) || str_eq(kind, STR("tool_call_update"))) {
		acp_end_messages(a, speaker, false, out);
		acp_tool_update(a, speaker, update, out);
	} else if (str_eq(kind, STR("plan"))) {
		acp_end_messages(a, speaker, false, out);
		acp_show_todo(a, speaker, json_object_get(update, "entries"), out);
	} else if (str_eq(kind, STR("notice"))) {
		told_notice(a, update, out);
	} else if (str_eq(kind, STR("compaction_update"))) {
		told_compaction(a, update, out);
	}
}

/* Whether it makes a sub-agent of whoever says it. */
static bool is_of_turn(struct str kind)
{
	static const char *const kinds[] = {"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan",
		"notice", "compaction_update"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (str_eq(kind, str_of(kinds[i])))
			return true;
	return false;
}

/* After a turn only the late end of one of its tools counts. */
static void told_late(struct acp *a, struct str session, struct str kind, const json_t *update, struct agent_out *out)
{
	struct str status = json_member_str(update, "status");

	if (!str_eq(kind, STR("tool_call_update")) || !(str_eq(status, STR("completed")) || str_eq(status, STR("failed"))))
		return;
	for (int64_t i = 0; i < a->speaker_count; i++)
		if (str_eq(a->speakers[i].session, session) && acp_tool_find(a, i, json_member_str(update, "toolCallId")) != NULL)
			acp_tool_update(a, i, update, out);
}

void acp_update(struct acp *a, const json_t *params, int64_t now, struct agent_out *out)
{
	const json_t *update = json_object_get(params, "update");
	struct str kind = json_member_str(update, "sessionUpdate");
	struct str session = json_member_str(params, "sessionId");
	int64_t speaker;

	if (a->phase < ACP_SETTLING)
		return;
	if (a->is_replaying && a->phase == ACP_SETTLING)
		a->quiet_due = now + LIMIT_AGENT_REPLAY_MS;
	if (str_eq(session, a->session) && told_session(a, kind, update, out))
		return;
	if (a->phase == ACP_READY)
		told_late(a, session, kind, update, out);
	if (a->phase != ACP_RUNNING)
		return;
	if (!is_of_turn(kind))
		return;
	speaker = acp_speaker_of(a, session, out);
	if (speaker >= 0)
		told_turn(a, speaker, kind, update, out);
}
