/* Answers to our requests: the interrupt, and model and mode of the next turn. */
#include "providers/claude/claude.h"

#include "base/limits.h"

static bool order_waits(const struct claude *c, struct str order)
{
	const char *id;
	const json_t *row;

	json_object_foreach(c->controls, id, row)
		if (str_eq(json_member_str(row, "order"), order))
			return true;
	return false;
}

static void ask(struct claude *c, const struct agent_order *order, const char *subtype, const char *member, struct str value,
	struct agent_out *out)
{
	struct str id = claude_write_request(c, out, subtype, member, value);
	json_t *row = json_object();

	state_row_text(row, "order", order->key);
	state_row_text(row, "member", str_of(member));
	state_row_text(row, "value", value);
	json_object_set_new(row, "by", json_integer(c->now + LIMIT_CLAUDE_CONTROL_MS));
	json_object_setn_new(c->controls, id.p, id.n, row);
}

/* What the program can only be started with is refused: then a new session resumes the conversation. */
static const char *needs_restart(const struct claude *c, const struct agent_order *order)
{
	struct str effort = claude_effort(order->model_options);

	if (order->runtime != (enum runtime_mode)c->runtime)
		return "the program takes another runtime mode only when it starts";
	if (effort.p != NULL && !str_eq(effort, c->effort))
		return "the program takes another effort only when it starts";
	return NULL;
}

void claude_select(struct claude *c, const struct agent_order *order, struct agent_out *out)
{
	const char *why = needs_restart(c, order);

	if (why != NULL || c->phase != PHASE_READY || c->in_turn) {
		claude_refuse(out, order->key, why != NULL ? CODE_unsupported_method : CODE_invalid_request,
			str_of(why != NULL ? why : "a selection is for the time between two turns"));
		return;
	}
	if (order->model.n > 0 && !str_eq(order->model, c->model))
		ask(c, order, "set_model", "model", order->model, out);
	if (order->interaction != (enum interaction_mode)c->interaction)
		ask(c, order, "set_permission_mode", "mode",
			str_of(claude_mode((enum runtime_mode)c->runtime, order->interaction, c->is_confined)), out);
	if (!order_waits(c, order->key))
		agent_out_event(out, EVENT_SELECTED)->key = str_dup(out->arena, order->key);
}

/* The order is answered; what the program still takes of it holds all the same. */
static void forget_order(struct claude *c, struct str order)
{
	const char *id;
	json_t *row;

	json_object_foreach(c->controls, id, row)
		if (str_eq(json_member_str(row, "order"), order))
			json_object_del(row, "order");
}

static void selected(struct claude *c, struct str id, const json_t *row, struct agent_out *out)
{
	struct str order = str_dup(out->arena, json_member_str(row, "order"));
	struct str value = json_member_str(row, "value");

	if (str_eq(json_member_str(row, "member"), STR("model")))
		SET(c, model, value);
	else
		c->interaction = str_eq(value, STR("plan")) ? INTERACTION_PLAN : INTERACTION_DEFAULT;
	json_object_deln(c->controls, id.p, id.n);
	if (order.n > 0 && !order_waits(c, order))
		agent_out_event(out, EVENT_SELECTED)->key = order;
}

static void not_selected(struct claude *c, struct str id, enum provider_failure_code code, struct str message,
	struct agent_out *out)
{
	const json_t *row = json_object_getn(c->controls, id.p, id.n);
	struct str order = str_dup(out->arena, json_member_str(row, "order"));

	json_object_deln(c->controls, id.p, id.n);
	if (order.n == 0)
		return;
	claude_refuse(out, order, code, message);
	forget_order(c, order);
}

/* A message that was taken back before the program read it is answered by nothing else. */
static void interrupted(struct claude *c, const json_t *response, struct agent_out *out)
{
	const json_t *id;
	bool is_gone = false;
	size_t i;

	CLEAR(c, interrupt);
	json_array_foreach(json_object_get(response, "cancelled"), i, id) {
		struct str message = json_str(id);
		const json_t *steer = json_object_getn(c->steers, message.p, message.n);

		is_gone = is_gone || (c->turn.n > 0 && str_eq(message, c->turn));
		if (steer == NULL)
			continue;
		claude_refuse(out, json_str(steer), CODE_invalid_request, STR("taken back by the interrupt"));
		json_object_deln(c->steers, message.p, message.n);
	}
	if (is_gone && c->in_turn)
		claude_end_turn(c, AGENT_INTERRUPTED, NULL, STR_NONE, out);
}

void claude_control_response(struct claude *c, const json_t *line, struct agent_out *out)
{
	const json_t *response = json_object_get(line, "response");
	struct str id = json_member_str(response, "request_id");
	const json_t *answer = json_object_get(response, "response");
	bool is_error = str_eq(json_member_str(response, "subtype"), STR("error"));
	const json_t *row;

	if (c->phase == PHASE_OPENING) {
		if (is_error) {
			agent_out_event(out, EVENT_OPEN_FAILED)->failure =
				claude_failure(out, CODE_protocol_violation, json_member_str(response, "error"));
			c->phase = PHASE_DEAD;
			return;
		}
		claude_opened(c, answer, out);
		return;
	}
	if (id.n == 0)
		return;
	if (str_eq(id, c->interrupt)) {
		interrupted(c, answer, out);
		return;
	}
	row = json_object_getn(c->controls, id.p, id.n);
	if (row == NULL)
		return;
	if (is_error)
		not_selected(c, id, CODE_invalid_request, json_member_str(response, "error"), out);
	else
		selected(c, id, row, out);
}

void claude_controls_expire(struct claude *c, struct agent_out *out)
{
	const char *id;
	json_t *row;
	void *next;

	json_object_foreach_safe(c->controls, next, id, row)
		if (json_integer_value(json_object_get(row, "by")) <= c->now)
			not_selected(c, str_dup(out->arena, str_of(id)), CODE_timeout, STR("the program did not answer"), out);
}

void claude_controls_refuse(struct claude *c, struct agent_out *out)
{
	const char *id;
	json_t *row;
	void *next;

	json_object_foreach_safe(c->controls, next, id, row)
		not_selected(c, str_dup(out->arena, str_of(id)), CODE_process_exit, STR("the program ended"), out);
}

int64_t claude_controls_due(const struct claude *c)
{
	const char *id;
	const json_t *row;
	int64_t due = 0;

	json_object_foreach(c->controls, id, row) {
		int64_t by = json_integer_value(json_object_get(row, "by"));

		if (due == 0 || by < due)
			due = by;
	}
	return due;
}
