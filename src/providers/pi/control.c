/* Our commands and their answers: prompts, steering, aborts, and model and modes of the next turn. */
#include "providers/pi/pi.h"

#include "base/limits.h"

/* A change of mode goes to the bridge, which answers by opening its dialog anew: it waits here among the commands. */
#define MODE "mode"

static bool order_waits(const struct pi *p, struct str order)
{
	const char *id;
	const json_t *row;

	json_object_foreach(p->controls, id, row)
		if (str_eq(json_member_str(row, "order"), order))
			return true;
	return false;
}

static void wait_for(struct pi *p, json_t *row, const struct agent_order *order, struct str value)
{
	state_row_text(row, "order", order->key);
	state_row_text(row, "value", value);
	json_object_set_new(row, "by", json_integer(p->now + LIMIT_PI_COMMAND_MS));
}

static bool select_model(struct pi *p, const struct agent_order *order, struct agent_out *out)
{
	const char *slash = memchr(order->model.p, '/', order->model.n);
	size_t provider = slash == NULL ? 0 : (size_t)(slash - order->model.p);
	struct command c;

	if (slash == NULL || !pi_command(p, &c, "set_model", out))
		return false;
	jw_kstr(&c.w, "provider", (struct str){order->model.p, provider});
	jw_kstr(&c.w, "modelId", (struct str){slash + 1, order->model.n - provider - 1});
	wait_for(p, c.row, order, order->model);
	pi_command_end(&c);
	return true;
}

static bool select_thinking(struct pi *p, const struct agent_order *order, struct str level, struct agent_out *out)
{
	struct command c;

	if (!pi_command(p, &c, "set_thinking_level", out))
		return false;
	jw_kstr(&c.w, "level", level);
	wait_for(p, c.row, order, level);
	pi_command_end(&c);
	return true;
}

static bool select_mode(struct pi *p, const struct agent_order *order, struct agent_out *out)
{
	struct body b;
	json_t *row;

	if (p->channel.n == 0)
		return false; /* an earlier change is on its way */
	body_begin(&b, out->arena);
	jw_ktext(&b.w, "gate", pi_gate((enum runtime_mode)p->runtime, order->interaction, p->is_confined));
	pi_write_value(out, p->channel, body_end(&b), false);
	CLEAR(p, channel);
	row = json_object();
	state_row_text(row, "kind", STR(MODE));
	wait_for(p, row, order, order->interaction == INTERACTION_PLAN ? STR("plan") : STR("default"));
	json_object_set_new(p->controls, MODE, row);
	return true;
}

/* What was sent of an order that is refused in the middle still holds; the next selection replaces it. */
static void forget_order(struct pi *p, struct str order)
{
	const char *id;
	json_t *row;

	json_object_foreach(p->controls, id, row)
		if (str_eq(json_member_str(row, "order"), order))
			json_object_del(row, "order");
}

void pi_select(struct pi *p, const struct agent_order *order, struct agent_out *out)
{
	struct str level = json_member_str(order->model_options, "thinking");
	bool is_sent = true;

	if (order->runtime != (enum runtime_mode)p->runtime) {
		pi_refuse(out, order->key, CODE_unsupported_method, STR("another runtime mode is for a new process"));
		return;
	}
	if (p->phase != PHASE_READY || p->in_turn) {
		pi_refuse(out, order->key, CODE_invalid_request, STR("a selection is for the time between two turns"));
		return;
	}
	if (order->model.n > 0 && !str_eq(order->model, p->model))
		is_sent = select_model(p, order, out);
	if (is_sent && level.n > 0 && !str_eq(level, p->thinking))
		is_sent = select_thinking(p, order, level, out);
	if (is_sent && order->interaction != (enum interaction_mode)p->interaction)
		is_sent = select_mode(p, order, out);
	if (!is_sent) {
		forget_order(p, order->key);
		pi_refuse(out, order->key, CODE_unsupported_method, STR("the program cannot take this selection now"));
	} else if (!order_waits(p, order->key)) {
		agent_out_event(out, EVENT_SELECTED)->key = str_dup(out->arena, order->key);
	}
}

/* ---- answers ---- */

struct answer {
	struct str id, kind, order, value;
	const json_t *data;
	struct str error; /* absent: it worked */
};

static void settle_selection(struct pi *p, const struct answer *a, enum provider_failure_code code, struct agent_out *out)
{
	if (a->order.n == 0)
		return;
	if (a->error.p != NULL) {
		forget_order(p, a->order);
		pi_refuse(out, a->order, code, a->error);
	} else if (!order_waits(p, a->order)) {
		agent_out_event(out, EVENT_SELECTED)->key = a->order;
	}
}

static void on_model(struct pi *p, const struct answer *a, struct agent_out *out)
{
	if (a->error.p == NULL) {
		SET(p, model, a->value);
		p->context_size = json_integer_value(json_object_get(a->data, "contextWindow"));
	}
	settle_selection(p, a, CODE_unknown_model, out);
}

static void on_thinking(struct pi *p, const struct answer *a, struct agent_out *out)
{
	if (a->error.p == NULL)
		SET(p, thinking, a->value);
	settle_selection(p, a, CODE_invalid_request, out);
}

static void on_state(struct pi *p, const struct answer *a, struct agent_out *out)
{
	if (a->error.p != NULL && p->phase == PHASE_OPENING)
		pi_open_failed(p, CODE_protocol_violation, a->error, out);
	else
		pi_on_state(p, a->data, out);
}

static void on_models(struct pi *p, const struct answer *a, struct agent_out *out)
{
	pi_on_models(p, a->data, out);
}

/* A command of an extension, which began no run. */
static void handled(struct pi *p, struct agent_out *out)
{
	pi_turn_start(p, out);
	pi_end_turn(p, p->is_interrupted ? AGENT_INTERRUPTED : AGENT_COMPLETED, NULL, out);
}

static void on_prompt(struct pi *p, const struct answer *a, struct agent_out *out)
{
	struct str disposition = json_member_str(a->data, "disposition");

	if (!p->in_turn || p->phase != PHASE_READY)
		return;
	if (a->error.p != NULL) {
		pi_turn_start(p, out);
		pi_end_turn(p, AGENT_FAILED, &(struct agent_failure){0}, out)->failure =
			pi_failure(out, pi_error_code(a->error), a->error);
	} else if (disposition.p == NULL) {
		pi_broken(p, out, CODE_protocol_violation, STR("this Pi is older than 1.0: it does not tell the end of a turn"));
	} else if (str_eq(disposition, STR("handled"))) {
		handled(p, out);
	} else {
		pi_turn_start(p, out);
	}
}

static void on_steer(struct pi *p, const struct answer *a, struct agent_out *out)
{
	(void)p;
	if (a->error.p != NULL)
		pi_refuse(out, a->order, CODE_invalid_request, a->error);
	else
		agent_out_event(out, EVENT_STEERED)->key = a->order;
}

/* An abort that found nothing to end: the run had not begun yet. */
static void on_abort(struct pi *p, const struct answer *a, struct agent_out *out)
{
	(void)a;
	(void)out;
	p->is_aborting = false;
}

static const struct {
	const char *kind;
	void (*read)(struct pi *p, const struct answer *a, struct agent_out *out);
} rows[] = {
	{"abort", on_abort},
	{"get_available_models", on_models},
	{"get_state", on_state},
	{"prompt", on_prompt},
	{"set_model", on_model},
	{"set_thinking_level", on_thinking},
	{"steer", on_steer},
};

/* Takes the row: whoever waits is told once. */
static bool take(struct pi *p, struct str id, struct answer *a, struct arena *arena)
{
	const json_t *row = id.n == 0 ? NULL : json_object_getn(p->controls, id.p, id.n);

	if (row == NULL)
		return false;
	a->id = str_dup(arena, id);
	a->kind = str_dup(arena, json_member_str(row, "kind"));
	a->order = str_dup(arena, json_member_str(row, "order"));
	a->value = str_dup(arena, json_member_str(row, "value"));
	json_object_deln(p->controls, a->id.p, a->id.n);
	return true;
}

static void dispatch(struct pi *p, const struct answer *a, struct agent_out *out)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (str_eq(a->kind, str_of(rows[i].kind)))
			rows[i].read(p, a, out);
}

void pi_response(struct pi *p, const json_t *line, struct agent_out *out)
{
	struct answer a = {.data = json_object_get(line, "data")};

	if (!take(p, json_member_str(line, "id"), &a, out->arena))
		return;
	if (!json_is_true(json_object_get(line, "success"))) {
		struct str error = json_member_str(line, "error");

		a.error = error.p == NULL ? STR("the program refused a command") : str_dup(out->arena, error);
	}
	dispatch(p, &a, out);
}

void pi_mode_taken(struct pi *p, struct agent_out *out)
{
	struct answer a = {0};

	if (!take(p, STR(MODE), &a, out->arena))
		return;
	p->interaction = str_eq(a.value, STR("plan")) ? INTERACTION_PLAN : INTERACTION_DEFAULT;
	settle_selection(p, &a, CODE_invalid_request, out);
}

/* The order is answered; what the program still takes of it holds all the same. */
static void give_up(struct pi *p, json_t *row, enum provider_failure_code code, struct str why, struct agent_out *out)
{
	struct str order = str_dup(out->arena, json_member_str(row, "order"));

	json_object_del(row, "by");
	if (order.n == 0)
		return;
	forget_order(p, order);
	pi_refuse(out, order, code, why);
}

void pi_controls_expire(struct pi *p, struct agent_out *out)
{
	const char *id;
	json_t *row;

	json_object_foreach(p->controls, id, row) {
		int64_t by = json_integer_value(json_object_get(row, "by"));

		if (by != 0 && by <= p->now)
			give_up(p, row, CODE_timeout, STR("the program did not answer"), out);
	}
}

void pi_controls_refuse(struct pi *p, struct agent_out *out)
{
	const char *id;
	json_t *row;

	json_object_foreach(p->controls, id, row)
		give_up(p, row, CODE_process_exit, STR("the program ended"), out);
	json_object_clear(p->controls);
}

int64_t pi_controls_due(const struct pi *p)
{
	const char *id;
	const json_t *row;
	int64_t due = 0;

	json_object_foreach(p->controls, id, row) {
		int64_t by = json_integer_value(json_object_get(row, "by"));

		if (by != 0 && (due == 0 || by < due))
			due = by;
	}
	return due;
}
