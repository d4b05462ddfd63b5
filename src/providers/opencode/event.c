/* Lines from the bridge: answers, and events of the server by their type. */
#include "providers/opencode/opencode.h"

#include "base/limits.h"

#include <inttypes.h>

static void on_delta(struct opencode *o, const json_t *properties, struct agent_out *out)
{
	if (o->in_turn)
		opencode_part_delta(o, properties, out);
}

static void on_part(struct opencode *o, const json_t *properties, struct agent_out *out)
{
	opencode_part(o, json_object_get(properties, "part"), out);
}

static void on_message(struct opencode *o, const json_t *properties, struct agent_out *out)
{
	opencode_message(o, json_object_get(properties, "info"), out);
}

static void on_error(struct opencode *o, const json_t *properties, struct agent_out *out)
{
	(void)out;
	if (o->in_turn)
		opencode_error(o, json_object_get(properties, "error"));
}

static void on_idle(struct opencode *o, const json_t *properties, struct agent_out *out)
{
	(void)properties;
	opencode_idle(o, out);
}

/* What was interrupted before it ran is interrupted now. */
static void on_status(struct opencode *o, const json_t *properties, struct agent_out *out)
{
	const json_t *status = json_object_get(properties, "status");
	struct str type = json_member_str(status, "type");

	if (str_eq(type, STR("busy"))) {
		bool is_new = !o->is_started;

		o->settle_by = 0;
		opencode_turn_start(o, out);
		if (is_new && o->is_interrupted)
			(void)opencode_request(o, "abort", "POST", str_printf(out->arena, "/session/%.*s/abort", STRF(o->native)), out);
	} else if (str_eq(type, STR("retry"))) {
		opencode_retry(o, status, out);
	}
}

static void on_replied(struct opencode *o, const json_t *properties, struct agent_out *out)
{
	opencode_asked_ended(o, opencode_id(out->arena, json_member_str(properties, "requestID")), AGENT_COMPLETED, out);
}

static void on_session(struct opencode *o, const json_t *properties, struct agent_out *out)
{
	struct str title = json_member_str(json_object_get(properties, "info"), "title");

	title.n = utf8_cut(title, LIMIT_OPENCODE_TITLE_BYTES);
	if (!o->in_turn || title.n == 0 || str_starts(title, STR("New session - ")) || str_eq(title, o->title))
		return;
	state_text(&o->title, title);
	agent_out_event(out, EVENT_TITLE)->text = str_dup(out->arena, title);
}

static const struct {
	const char *type;
	bool is_ours; /* only of our own conversation, not of its sub-agents */
	void (*read)(struct opencode *o, const json_t *properties, struct agent_out *out);
} events[] = {
	{"message.part.delta", true, on_delta},
	{"message.part.updated", true, on_part},
	{"message.updated", true, on_message},
	{"permission.asked", false, opencode_permission},
	{"permission.replied", false, on_replied},
	{"question.asked", false, opencode_question},
	{"question.rejected", false, on_replied},
	{"question.replied", false, on_replied},
	{"session.error", true, on_error},
	{"session.idle", true, on_idle},
	{"session.status", true, on_status},
	{"session.updated", true, on_session},
	{"todo.updated", true, opencode_todo},
};

void opencode_event(struct opencode *o, const json_t *event, struct agent_out *out)
{
	struct str type = json_member_str(event, "type");
	const json_t *properties = json_object_get(event, "properties");
	bool is_ours = str_eq(json_member_str(properties, "sessionID"), o->native);

	if (o->phase != PHASE_READY)
		return;
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (str_eq(type, str_of(events[i].type)) && (is_ours || !events[i].is_ours))
			events[i].read(o, properties, out);
}
