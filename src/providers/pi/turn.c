/* A turn: its begin, what happens beside its messages, how it ended, what it cost. */
#include "providers/pi/pi.h"

#include "base/limits.h"

#include <inttypes.h>

struct agent_failure pi_failure(struct agent_out *out, enum provider_failure_code code, struct str message)
{
	return agent_failure_of(code, str_dup(out->arena, message));
}

void pi_refuse(struct agent_out *out, struct str key, enum provider_failure_code code, struct str message)
{
	struct agent_event *event = agent_out_event(out, EVENT_ORDER_REFUSED);

	event->key = str_dup(out->arena, key);
	event->failure = pi_failure(out, code, message);
}

void pi_turn_start(struct pi *p, struct agent_out *out)
{
	if (p->in_turn && p->is_started)
		return;
	p->is_unasked = !p->in_turn;
	p->in_turn = p->is_started = true;
	agent_out_event(out, EVENT_TURN_STARTED)->is_unasked = p->is_unasked;
	if (p->problem.n > 0)
		pi_notice(p, out, "warning",
			str_printf(out->arena, "The tools of dais are missing in this session: %.*s", STRF(p->problem)));
	CLEAR(p, problem);
}

/* Also after each pause of a retry. What was interrupted before it ran is interrupted now. */
void pi_agent_start(struct pi *p, const json_t *line, struct agent_out *out)
{
	(void)line;
	if (p->phase != PHASE_READY)
		return;
	pi_turn_start(p, out);
	if (p->is_interrupted && !p->is_aborting)
		pi_write_abort(p, out);
}

/* ---- usage ---- */

static int64_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

void pi_count(struct pi *p, const json_t *message)
{
	const json_t *usage = json_object_get(message, "usage");
	double cost = json_number_value(json_object_get(json_object_get(usage, "cost"), "total")) * 1e9;

	SET(p, stop, json_member_str(message, "stopReason"));
	SET(p, error, json_member_str(message, "errorMessage"));
	if (!json_is_object(usage))
		return;
	p->has_usage = true;
	p->input += number(usage, "input") + number(usage, "cacheWrite");
	p->cached += number(usage, "cacheRead");
	p->output += number(usage, "output");
	p->thought += number(usage, "reasoning");
	if (cost > 0 && cost < 1e18)
		p->cost_nano += (int64_t)(cost + 0.5);
	if (number(usage, "totalTokens") > 0)
		p->context_used = number(usage, "totalTokens");
}

static void tell_usage(const struct pi *p, struct agent_out *out)
{
	struct agent_usage *usage = &agent_out_event(out, EVENT_USAGE)->usage;

	if (p->has_usage) {
		usage->input = p->input;
		usage->cached = p->cached;
		usage->output = p->output;
		usage->reasoning = p->thought;
		usage->cost_usd = (double)p->cost_nano / 1e9;
	}
	if (p->context_used > 0)
		usage->context_used = p->context_used;
	if (p->context_size > 0)
		usage->context_size = p->context_size;
}

/* ---- the end ---- */

static void close_item(struct str *key, enum agent_item_kind kind, enum agent_status status, struct agent_out *out)
{
	if (key->n > 0)
		pi_item(out, kind, str_dup(out->arena, *key), status);
	state_text(key, STR_NONE);
}

static void forget_turn(struct pi *p)
{
	p->in_turn = p->is_started = p->is_unasked = p->is_interrupted = p->is_aborting = p->has_usage = false;
	CLEAR(p, stop);
	CLEAR(p, error);
	p->interrupt_by = 0;
	p->input = p->cached = p->output = p->thought = p->cost_nano = 0;
}

struct agent_event *pi_end_turn(struct pi *p, enum agent_status status, const struct agent_failure *failure, struct agent_out *out)
{
	struct agent_event *event;

	pi_stream_close(p, status, out);
	pi_asks_close(p, p->phase == PHASE_READY, out);
	pi_tools_close(p, status, out);
	close_item(&p->retry_key, ITEM_NOTICE, status, out);
	close_item(&p->compaction_key, ITEM_COMPACTION, status, out);
	tell_usage(p, out);
	event = agent_out_event(out, EVENT_TURN_ENDED);
	event->status = status;
	if (failure != NULL) {
		event->failure = *failure;
		event->failure.message = str_dup(out->arena, failure->message);
	}
	forget_turn(p);
	if (p->closes && !p->is_shut) {
		p->is_shut = true;
		p->close_by = p->now + LIMIT_PI_CLOSE_MS;
		out->ends_stdin = true;
	}
	return event;
}

void pi_broken(struct pi *p, struct agent_out *out, enum provider_failure_code code, struct str message)
{
	struct agent_failure failure = pi_failure(out, code, message);
	bool is_opening = p->phase == PHASE_OPENING;

	p->phase = PHASE_DEAD;
	if (p->in_turn)
		pi_end_turn(p, AGENT_FAILED, &failure, out)->is_broken = true;
	agent_out_event(out, is_opening ? EVENT_OPEN_FAILED : EVENT_BROKEN)->failure = failure;
}

/* "429: {"message":…}": the status of the provider, when it answered. */
static bool status_of(struct str error, int64_t *status)
{
	const char *colon = error.n == 0 ? NULL : memchr(error.p, ':', error.n < 4 ? error.n : 4);

	return colon != NULL && str_to_int((struct str){error.p, (size_t)(colon - error.p)}, status);
}

static enum provider_failure_code code_of_status(int64_t status)
{
	switch (status) {
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
		return status >= 500 ? CODE_overloaded : status >= 400 ? CODE_invalid_request : CODE_model_error;
	}
}

static const struct {
	const char *words;
	enum provider_failure_code code;
} errors[] = {
	{"API key", CODE_auth_required},
	{"/login", CODE_auth_required},
	{"No model", CODE_auth_required},
	{"context window", CODE_context_overflow},
	{"context length", CODE_context_overflow},
	{"ended without", CODE_connection_lost},
	{"terminated", CODE_connection_lost},
	{"fetch failed", CODE_connection_lost},
	{"onnection error", CODE_connection_lost},
	{"overloaded", CODE_overloaded},
};

enum provider_failure_code pi_error_code(struct str error)
{
	int64_t status;

	if (status_of(error, &status))
		return code_of_status(status);
	for (size_t i = 0; error.n > 0 && i < sizeof(errors) / sizeof(errors[0]); i++)
		if (memmem(error.p, error.n, errors[i].words, strlen(errors[i].words)) != NULL)
			return errors[i].code;
	return CODE_model_error;
}

void pi_settled(struct pi *p, const json_t *line, struct agent_out *out)
{
	struct agent_failure failure;

	if (!p->in_turn || p->phase != PHASE_READY)
		return;
	pi_turn_start(p, out);
	if (json_is_true(json_object_get(line, "aborted")) || str_eq(p->stop, STR("aborted"))) {
		pi_end_turn(p, AGENT_INTERRUPTED, NULL, out);
		return;
	}
	if (str_eq(p->stop, STR("error")))
		failure = pi_failure(out, pi_error_code(p->error), p->error);
	else if (str_eq(p->stop, STR("length")))
		failure = pi_failure(out, CODE_max_tokens, STR("the answer reached the model's limit"));
	else if (p->stop.n == 0)
		failure = pi_failure(out, CODE_empty_turn, STR("the turn ended without an answer"));
	else {
		pi_end_turn(p, AGENT_COMPLETED, NULL, out);
		return;
	}
	pi_end_turn(p, AGENT_FAILED, &failure, out);
}

/* ---- retries and compaction ---- */

void pi_retry_start(struct pi *p, const json_t *line, struct agent_out *out)
{
	struct agent_item *item;
	struct body b;

	if (!p->in_turn)
		return;
	if (p->retry_key.n == 0)
		SET(p, retry_key, str_printf(out->arena, "notice-%" PRId64, ++p->notices));
	item = pi_item(out, ITEM_NOTICE, str_dup(out->arena, p->retry_key), AGENT_RUNNING);
	body_begin(&b, out->arena);
	jw_ktext(&b.w, "severity", "warning");
	jw_kstr_opt(&b.w, "message", json_member_str(line, "errorMessage"));
	jw_kobject(&b.w, "retry");
	jw_kint(&b.w, "attempt", number(line, "attempt"));
	jw_kint_opt(&b.w, "maxAttempts", number(line, "maxAttempts"));
	jw_kint_opt(&b.w, "retryDelayMs", number(line, "delayMs"));
	jw_object_end(&b.w);
	item->body = body_end(&b);
}

void pi_retry_end(struct pi *p, const json_t *line, struct agent_out *out)
{
	close_item(&p->retry_key, ITEM_NOTICE, json_is_true(json_object_get(line, "success")) ? AGENT_COMPLETED : AGENT_FAILED, out);
}

void pi_compaction_start(struct pi *p, const json_t *line, struct agent_out *out)
{
	(void)line;
	if (!p->in_turn)
		return;
	SET(p, compaction_key, str_printf(out->arena, "compaction-%" PRId64, ++p->notices));
	pi_item(out, ITEM_COMPACTION, str_dup(out->arena, p->compaction_key), AGENT_RUNNING);
}

void pi_compaction_end(struct pi *p, const json_t *line, struct agent_out *out)
{
	const json_t *result = json_object_get(line, "result");
	struct agent_item *item;
	struct body b;

	if (p->compaction_key.n == 0)
		return;
	item = pi_item(out, ITEM_COMPACTION, str_dup(out->arena, p->compaction_key), AGENT_COMPLETED);
	if (json_is_true(json_object_get(line, "aborted")))
		item->status = AGENT_CANCELLED;
	else if (!json_is_object(result))
		item->status = AGENT_FAILED;
	body_begin(&b, out->arena);
	jw_kstr_opt(&b.w, "summary", json_member_str(result, "summary"));
	jw_kint_opt(&b.w, "beforeTokenCount", number(result, "tokensBefore"));
	item->body = body_end(&b);
	CLEAR(p, compaction_key);
}
