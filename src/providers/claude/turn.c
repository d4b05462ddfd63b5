/* A turn: its begin, what goes into it, how it ended, what it cost. */
#include "providers/claude/claude.h"

#include "base/limits.h"

struct agent_failure claude_failure(struct agent_out *out, enum provider_failure_code code, struct str message)
{
	return agent_failure_of(code, str_dup(out->arena, message));
}

void claude_refuse(struct agent_out *out, struct str key, enum provider_failure_code code, struct str message)
{
	struct agent_event *event = agent_out_event(out, EVENT_ORDER_REFUSED);

	event->key = str_dup(out->arena, key);
	event->failure = claude_failure(out, code, message);
}

/* A first line of a turn; where no message of ours waits, the program began it by itself. */
void claude_turn_start(struct claude *c, struct agent_out *out)
{
	struct agent_event *event;

	if (c->in_turn && c->is_started)
		return; /* the same turn goes on with a steering message */
	c->in_turn = true;
	c->is_started = true;
	event = agent_out_event(out, EVENT_TURN_STARTED);
	event->is_unasked = c->turn.n == 0;
	if (!event->is_unasked)
		event->native = str_dup(out->arena, c->turn);
}

/* ---- steering ---- */

void claude_steered(struct claude *c, struct str message, struct agent_out *out)
{
	const json_t *key = message.p == NULL ? NULL : json_object_getn(c->steers, message.p, message.n);

	if (key == NULL)
		return;
	agent_out_event(out, EVENT_STEERED)->key = str_dup(out->arena, json_str(key));
	json_object_deln(c->steers, message.p, message.n);
}

void claude_steers_refuse(struct claude *c, struct agent_out *out)
{
	const char *message;
	json_t *key;

	json_object_foreach(c->steers, message, key)
		claude_refuse(out, json_str(key), CODE_invalid_request, STR("the turn ended before the message was read"));
	json_object_clear(c->steers);
}

/* ---- usage ---- */

static int64_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* How full the context is: what the last call of the model was given, and what it said. */
void claude_context_given(struct claude *c, const json_t *usage)
{
	c->context_used = number(usage, "input_tokens") + number(usage, "cache_creation_input_tokens") +
		number(usage, "cache_read_input_tokens");
}

void claude_context_said(struct claude *c, const json_t *usage, struct agent_out *out)
{
	struct agent_usage *told;

	c->context_used += number(usage, "output_tokens");
	told = &agent_out_event(out, EVENT_USAGE)->usage;
	told->context_used = c->context_used;
	told->context_size = c->context_size > 0 ? c->context_size : -1;
}

static int64_t nano(const json_t *usd)
{
	double value = json_number_value(usd) * 1e9;

	return value > 0 && value < 1e18 ? (int64_t)(value + 0.5) : 0;
}

/* The program tells the cost of the whole conversation, also after a resume; newer ones the difference as well. */
static void add_cost(struct claude *c, const json_t *line)
{
	const json_t *total = json_object_get(line, "total_cost_usd");
	const json_t *since = json_object_get(line, "model_usage_since_last_result");
	const char *name;
	const json_t *model;

	if (json_is_object(since)) {
		json_object_foreach((json_t *)(uintptr_t)since, name, model)
			c->cost_nano += nano(json_object_get(model, "costUSD"));
		c->is_priced = true;
	} else if (json_is_number(total) && c->has_total) {
		c->cost_nano += nano(total) - c->total_nano;
		c->is_priced = true;
	}
	if (json_is_number(total)) {
		c->total_nano = nano(total);
		c->has_total = true;
	}
}

static void add_usage(struct claude *c, const json_t *line)
{
	const json_t *usage = json_object_get(line, "usage");
	const char *name;
	const json_t *model;

	c->has_usage = c->has_usage || json_is_object(usage);
	c->input += number(usage, "input_tokens") + number(usage, "cache_creation_input_tokens");
	c->cached += number(usage, "cache_read_input_tokens");
	c->output += number(usage, "output_tokens");
	c->thinking += number(json_object_get(usage, "output_tokens_details"), "thinking_tokens");
	json_object_foreach(json_object_get(line, "modelUsage"), name, model)
		if (number(model, "contextWindow") > 0)
			c->context_size = number(model, "contextWindow");
	add_cost(c, line);
}

static void tell_usage(const struct claude *c, struct agent_out *out)
{
	struct agent_usage *usage = &agent_out_event(out, EVENT_USAGE)->usage;

	if (c->has_usage) {
		usage->input = c->input;
		usage->cached = c->cached;
		usage->output = c->output;
		usage->reasoning = c->thinking;
	}
	if (c->is_priced)
		usage->cost_usd = (double)c->cost_nano / 1e9;
	if (c->context_used > 0)
		usage->context_used = c->context_used;
	if (c->context_size > 0)
		usage->context_size = c->context_size;
}

/* ---- the end ---- */

static void forget_turn(struct claude *c)
{
	c->in_turn = c->is_started = c->is_interrupted = c->has_result = false;
	CLEAR(c, turn);
	CLEAR(c, interrupt);
	CLEAR(c, error);
	CLEAR(c, todo_key);
	CLEAR(c, retry_key);
	c->interrupt_by = 0;
	c->input = c->cached = c->output = c->thinking = 0;
	c->cost_nano = 0;
	c->is_priced = c->has_usage = false;
}

struct agent_event *claude_end_turn(struct claude *c, enum agent_status status, const struct agent_failure *failure,
	struct str text, struct agent_out *out)
{
	struct agent_event *event;

	claude_stream_close(c, status, out);
	claude_asks_close(c, out);
	claude_tools_close(c, status, out);
	claude_steers_refuse(c, out);
	tell_usage(c, out);
	event = agent_out_event(out, EVENT_TURN_ENDED);
	event->status = status;
	if (failure != NULL) {
		event->failure = *failure;
		event->failure.message = str_dup(out->arena, failure->message);
	}
	if (text.p != NULL)
		event->text = str_dup(out->arena, text);
	forget_turn(c);
	if (c->closes && !c->is_shut) {
		c->is_shut = true;
		c->close_by = c->now + LIMIT_CLAUDE_CLOSE_MS;
		out->ends_stdin = true;
	}
	return event;
}

void claude_broken(struct claude *c, struct agent_out *out, struct str message)
{
	struct agent_failure failure = agent_failure_of(CODE_protocol_violation, message);

	if (c->in_turn)
		claude_end_turn(c, AGENT_FAILED, &failure, STR_NONE, out)->is_broken = true;
	agent_out_event(out, EVENT_BROKEN)->failure = failure;
	c->phase = PHASE_DEAD;
}

/* ---- what went wrong ---- */

struct reason {
	const char *name;
	enum provider_failure_code code;
};

static const struct reason subtypes[] = {
	{"error_max_budget_usd", CODE_max_budget},
	{"error_max_structured_output_retries", CODE_protocol_violation},
	{"error_max_turns", CODE_max_turns},
};

/* `error` of the message that stands in place of an answer; what depends on the status too is not here. */
static const struct reason errors[] = {
	{"account_on_hold", CODE_auth_required},
	{"billing_error", CODE_billing},
	{"cloud_credential_error", CODE_auth_invalid},
	{"max_output_tokens", CODE_max_tokens},
	{"model_not_found", CODE_unknown_model},
	{"oauth_org_not_allowed", CODE_org_not_allowed},
	{"overloaded", CODE_overloaded},
	{"rate_limit", CODE_rate_limited},
	{"server_error", CODE_overloaded},
	{"verification_required", CODE_auth_required},
};

static const struct reason starts[] = {
	{"No conversation found", CODE_unknown_session},
	{"is already in use", CODE_invalid_request},
	{"unknown option", CODE_spawn_failed},
	{"cannot be used with root", CODE_spawn_failed},
};

static bool reason_find(const struct reason *rows, size_t n, struct str name, enum provider_failure_code *code)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(name, str_of(rows[i].name))) {
			*code = rows[i].code;
			return true;
		}
	return false;
}
#define REASON(rows, name, code) reason_find(rows, sizeof(rows) / sizeof((rows)[0]), name, code)

struct agent_failure claude_start_failure(struct str text)
{
	struct agent_failure failure = agent_failure_of(CODE_process_exit, text);

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (text.n > 0 && memmem(text.p, text.n, starts[i].name, strlen(starts[i].name)) != NULL) {
			failure = agent_failure_of(starts[i].code, text);
			failure.is_retryable = YES_NO; /* the same arguments fail again */
		}
	return failure;
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

/* An answer that is an error, whatever the subtype says: every failure of the API comes as "success". */
static enum provider_failure_code code_of_error(const struct claude *c, const json_t *line)
{
	int64_t status = number(line, "api_error_status");
	struct str error = c->error;
	enum provider_failure_code code;

	if (str_eq(json_member_str(line, "terminal_reason"), STR("prompt_too_long")))
		return CODE_context_overflow;
	if (str_eq(json_member_str(line, "stop_reason"), STR("refusal")))
		return CODE_refused;
	if (REASON(errors, error, &code))
		return code;
	if (str_eq(error, STR("authentication_failed")))
		return status == 0 ? CODE_auth_required : CODE_auth_invalid;
	if (str_eq(error, STR("invalid_request")) && status == 0)
		return CODE_invalid_request;
	return code_of_status(status);
}

struct outcome {
	enum agent_status status;
	struct agent_failure failure;
	struct str text;
};

static struct outcome failed(enum provider_failure_code code, struct str message)
{
	return (struct outcome){.status = AGENT_FAILED, .failure = agent_failure_of(code, message)};
}

/* First hit decides; the subtype alone means nothing. */
static struct outcome outcome_of(const struct claude *c, const json_t *line)
{
	struct str subtype = json_member_str(line, "subtype");
	struct str text = json_member_str(line, "result");
	struct str message = json_str(json_array_get(json_object_get(line, "errors"), 0));
	enum provider_failure_code code;

	if (message.p == NULL)
		message = text.p == NULL ? subtype : text;
	if (str_starts(json_member_str(line, "terminal_reason"), STR("aborted_")))
		return (struct outcome){.status = AGENT_INTERRUPTED};
	if (json_object_get(line, "startup_failure_reason") != NULL)
		return failed(CODE_spawn_failed, message);
	if (REASON(subtypes, subtype, &code))
		return failed(code, message);
	if (str_starts(subtype, STR("error_")))
		return failed(CODE_unclassified, message);
	if (json_is_true(json_object_get(line, "is_error")))
		return failed(code_of_error(c, line), message);
	return (struct outcome){.status = AGENT_COMPLETED, .text = text};
}

/* ---- results ---- */

/* Does this result answer the message that began our turn? A program that names no messages answers it with any result
 * but those of turns that it began itself. */
static bool answers_turn(const struct claude *c, const json_t *line)
{
	const json_t *ids = json_object_get(line, "user_message_uuids");
	const json_t *id;
	size_t i;

	json_array_foreach(ids, i, id)
		if (str_eq(json_str(id), c->turn))
			return true;
	if (json_object_get(line, "user_message_uuid") != NULL)
		return str_eq(json_member_str(line, "user_message_uuid"), c->turn);
	return ids == NULL && json_object_get(line, "origin") == NULL;
}

static void steers_read(struct claude *c, const json_t *line, struct agent_out *out)
{
	const json_t *id;
	size_t i;

	json_array_foreach(json_object_get(line, "user_message_uuids"), i, id)
		claude_steered(c, json_str(id), out);
	claude_steered(c, json_member_str(line, "user_message_uuid"), out);
}

static void open_failed(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct outcome outcome = outcome_of(c, line);
	struct agent_failure failure = claude_start_failure(str_dup(out->arena, outcome.failure.message));

	agent_out_event(out, EVENT_OPEN_FAILED)->failure =
		str_eq(failure.code, STR("process_exit")) ? agent_failure_of(CODE_spawn_failed, failure.message) : failure;
	c->phase = PHASE_DEAD;
}

void claude_result(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct outcome outcome;

	if (c->phase == PHASE_OPENING) {
		if (json_is_true(json_object_get(line, "is_error")))
			open_failed(c, line, out);
		return;
	}
	if (!c->in_turn)
		return;
	add_usage(c, line);
	if (c->turn.n > 0 && !c->has_result && !answers_turn(c, line))
		return; /* of a turn that the program began itself, just before ours */
	claude_turn_start(c, out);
	steers_read(c, line, out);
	outcome = outcome_of(c, line);
	if (outcome.status != AGENT_INTERRUPTED && json_object_size(c->steers) > 0) {
		c->has_result = true; /* the next message is read now: the turn goes on with it */
		claude_stream_close(c, AGENT_COMPLETED, out);
		return;
	}
	claude_end_turn(c, outcome.status, outcome.status == AGENT_FAILED ? &outcome.failure : NULL, outcome.text, out);
}
