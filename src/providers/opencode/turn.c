/* A turn: its begin, its messages, how it ended, what it cost. */
#include "providers/opencode/opencode.h"

#include "base/limits.h"

#include <inttypes.h>

struct agent_failure opencode_failure(struct agent_out *out, enum provider_failure_code code, struct str message)
{
	return agent_failure_of(code, str_dup(out->arena, message));
}

void opencode_refuse(struct agent_out *out, struct str key, enum provider_failure_code code, struct str message)
{
	struct agent_event *event = agent_out_event(out, EVENT_ORDER_REFUSED);

	event->key = str_dup(out->arena, key);
	event->failure = opencode_failure(out, code, message);
}

void opencode_turn_start(struct opencode *o, struct agent_out *out)
{
	if (o->in_turn && o->is_started)
		return;
	o->is_unasked = !o->in_turn;
	agent_out_event(out, EVENT_TURN_STARTED)->is_unasked = o->is_unasked;
	o->in_turn = o->is_started = true;
	o->start_by = 0;
	if (o->problem.n > 0)
		opencode_notice(o, out, "warning",
			str_printf(out->arena, "The tools of dais are missing in this session: %.*s", STRF(o->problem)));
	CLEAR(o, problem);
}

/* ---- what happens in it ---- */

/* An abort that is told late belongs to the turn before. */
void opencode_error(struct opencode *o, const json_t *error)
{
	const json_t *data = json_object_get(error, "data");

	if (!o->is_interrupted && str_eq(json_member_str(error, "name"), STR("MessageAbortedError")))
		return;
	o->has_error = true;
	SET(o, error, json_member_str(error, "name"));
	SET(o, reason, json_member_str(data, "message"));
	o->status = json_integer_value(json_object_get(data, "statusCode"));
}

/* A message of the model is open until its time says that it is complete. */
void opencode_message(struct opencode *o, const json_t *info, struct agent_out *out)
{
	struct str id = opencode_id(out->arena, json_member_str(info, "id"));
	bool is_whole = json_object_get(json_object_get(info, "time"), "completed") != NULL;

	if (id.n == 0 || !o->in_turn || !str_eq(json_member_str(info, "role"), STR("assistant")))
		return;
	if (json_object_get(info, "error") != NULL && json_object_getn(o->messages, id.p, id.n) != NULL)
		opencode_error(o, json_object_get(info, "error"));
	if (is_whole)
		json_object_deln(o->messages, id.p, id.n);
	else if (json_object_size(o->messages) < LIMIT_OPENCODE_OPEN_ITEMS)
		json_object_setn_new(o->messages, id.p, id.n, json_true());
}

void opencode_retry(struct opencode *o, const json_t *status, struct agent_out *out)
{
	struct agent_item *item;
	struct body b;

	if (!o->in_turn)
		return;
	if (o->retry_key.n == 0)
		SET(o, retry_key, str_printf(out->arena, "notice-%" PRId64, ++o->notices));
	item = opencode_item(out, ITEM_NOTICE, str_dup(out->arena, o->retry_key), AGENT_RUNNING);
	body_begin(&b, out->arena);
	jw_ktext(&b.w, "severity", "warning");
	jw_kstr_opt(&b.w, "message", json_member_str(status, "message"));
	jw_kobject(&b.w, "retry");
	jw_kint(&b.w, "attempt", json_integer_value(json_object_get(status, "attempt")));
	jw_object_end(&b.w);
	item->body = body_end(&b);
}

/* ---- the end ---- */

static void tell_usage(const struct opencode *o, struct agent_out *out)
{
	struct agent_usage *usage = &agent_out_event(out, EVENT_USAGE)->usage;

	if (o->has_usage) {
		usage->input = o->input;
		usage->cached = o->cached;
		usage->output = o->output;
		usage->reasoning = o->thought;
		usage->cost_usd = (double)o->cost_nano / 1e9;
	}
	if (o->context_used > 0)
		usage->context_used = o->context_used;
}

static void forget_turn(struct opencode *o)
{
	o->in_turn = o->is_started = o->is_unasked = o->is_interrupted = o->has_error = o->has_usage = false;
	CLEAR(o, error);
	CLEAR(o, reason);
	CLEAR(o, retry_key);
	o->status = o->start_by = o->settle_by = o->interrupt_by = 0;
	o->input = o->cached = o->output = o->thought = o->cost_nano = 0;
	json_object_clear(o->messages);
}

struct agent_event *opencode_end_turn(struct opencode *o, enum agent_status status, const struct agent_failure *failure,
	struct agent_out *out)
{
	struct agent_event *event;

	opencode_parts_close(o, status, out);
	opencode_asks_close(o, out);
	if (o->retry_key.n > 0)
		opencode_item(out, ITEM_NOTICE, str_dup(out->arena, o->retry_key), status);
	tell_usage(o, out);
	event = agent_out_event(out, EVENT_TURN_ENDED);
	event->status = status;
	if (failure != NULL)
		event->failure = *failure;
	forget_turn(o);
	if (o->closes && !o->is_shut) {
		o->is_shut = true;
		o->close_by = o->now + LIMIT_OPENCODE_CLOSE_MS;
		out->ends_stdin = true;
	}
	return event;
}

void opencode_broken(struct opencode *o, struct agent_out *out, struct str message)
{
	struct agent_failure failure = opencode_failure(out, CODE_protocol_violation, message);

	if (o->in_turn)
		opencode_end_turn(o, AGENT_FAILED, &failure, out)->is_broken = true;
	agent_out_event(out, o->phase == PHASE_OPENING ? EVENT_OPEN_FAILED : EVENT_BROKEN)->failure = failure;
	o->phase = PHASE_DEAD;
}

static const struct {
	const char *name;
	enum provider_failure_code code;
} errors[] = {
	{"ContextOverflowError", CODE_context_overflow},
	{"MessageOutputLengthError", CODE_max_tokens},
	{"ProviderAuthError", CODE_auth_required},
	{"ProviderModelNotFoundError", CODE_unknown_model},
};

static enum provider_failure_code code_of(const struct opencode *o)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (str_eq(o->error, str_of(errors[i].name)))
			return errors[i].code;
	switch (o->status) {
	case 0:
		return str_eq(o->error, STR("APIError")) ? CODE_connection_lost : CODE_model_error;
	case 401:
	case 403:
		return CODE_auth_invalid;
	case 402:
		return CODE_billing;
	case 404:
		return CODE_unknown_model;
	case 429:
		return CODE_rate_limited;
	default:
		return o->status >= 500 ? CODE_overloaded : CODE_invalid_request;
	}
}

/* Idle, and stays so. */
void opencode_settle(struct opencode *o, struct agent_out *out)
{
	struct agent_failure failure;

	if (o->is_interrupted) {
		opencode_end_turn(o, AGENT_INTERRUPTED, NULL, out);
	} else if (o->has_error) {
		failure = opencode_failure(out, code_of(o), o->reason.n > 0 ? o->reason : o->error);
		opencode_end_turn(o, AGENT_FAILED, &failure, out);
	} else {
		opencode_end_turn(o, AGENT_COMPLETED, NULL, out);
	}
}

/* A declined call ends in idle, too, and so does every message of a turn. */
void opencode_idle(struct opencode *o, struct agent_out *out)
{
	if (!o->in_turn || !o->is_started)
		return;
	if (o->settle_by == 0 && (o->has_error || o->is_interrupted || json_object_size(o->messages) > 0))
		o->settle_by = o->now + LIMIT_OPENCODE_SETTLE_MS; /* (3) */
	else
		opencode_settle(o, out);
}
