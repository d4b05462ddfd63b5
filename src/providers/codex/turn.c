/* A turn: its beginning, what is told in between, its one end.
 *
 * (1) Everything is routed by the conversation first: sub-agents of the program speak in the same stream.
 * (2) A turn ends once: with the end that the program tells for exactly this turn, or with the session.
 * (3) What belongs to a turn that is over changes nothing but the commands that went on in the background. */
#include "providers/codex/private.h"

void codex_turn_started(struct codex *codex, struct str turn, int64_t now, struct agent_out *out)
{
	if (codex->turn_phase != TURN_SENT)
		return;
	if (turn.p == NULL || turn.n == 0 || turn.n > LIMIT_CODEX_ID_BYTES) {
		codex_break(codex, agent_failure_of(CODE_protocol_violation, STR("codex began a turn without an id")), out);
		return;
	}
	state_text(&codex->turn, turn);
	codex->turn_phase = TURN_RUNNING;
	agent_out_event(out, EVENT_TURN_STARTED)->native = str_dup(out->arena, turn);
	if (codex->is_interrupt_wanted)
		codex_interrupt(codex, now, out);
}

void codex_interrupt(struct codex *codex, int64_t now, struct agent_out *out)
{
	if (codex->turn_phase == TURN_NONE || codex->is_interrupt_sent)
		return;
	codex->is_interrupt_wanted = true;
	if (codex->turn_phase != TURN_RUNNING)
		return;
	codex->is_interrupt_sent = true;
	codex->terminal_due_at = now + LIMIT_CODEX_INTERRUPT_MS;
	codex_call_send(codex, CALL_INTERRUPT, STR_NONE, NULL, now, out);
}

/* ---- usage ---- */

static int64_t spent(int64_t total, int64_t base)
{
	return total < 0 || base < 0 || total < base ? -1 : total - base;
}

/* What the turn took is the difference of the totals: the numbers of one call are repeated now and then. */
static void tell_usage(struct codex *codex, struct agent_out *out)
{
	struct agent_usage *usage;

	if (!codex->has_turn_usage)
		return;
	usage = &agent_out_event(out, EVENT_USAGE)->usage;
	usage->input = spent(codex->total.input, codex->turn_base.input);
	usage->cached = spent(codex->total.cached, codex->turn_base.cached);
	usage->output = spent(codex->total.output, codex->turn_base.output);
	usage->reasoning = spent(codex->total.reasoning, codex->turn_base.reasoning);
	usage->context_used = codex->context_used;
	usage->context_size = codex->context_size;
}

static int64_t count_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value) : -1;
}

static struct codex_tokens tokens_of(const json_t *object)
{
	struct codex_tokens tokens = {.input = count_of(object, "inputTokens"),
		.cached = count_of(object, "cachedInputTokens"),
		.output = count_of(object, "outputTokens"),
		.reasoning = count_of(object, "reasoningOutputTokens")};

	/* The program counts what was cached as input too. */
	if (tokens.cached > 0 && tokens.input >= tokens.cached)
		tokens.input -= tokens.cached;
	return tokens;
}

static void token_usage(struct codex *codex, const json_t *params, struct agent_out *out)
{
	const json_t *usage = json_object_get(params, "tokenUsage");
	const json_t *last = json_object_get(usage, "last");
	struct agent_event *event;

	codex->total = tokens_of(json_object_get(usage, "total"));
	codex->context_used = count_of(last, "totalTokens");
	codex->context_size = count_of(usage, "modelContextWindow");
	if (codex->turn_phase == TURN_RUNNING) {
		struct codex_tokens call = tokens_of(last);

		/* Nobody told where a resumed conversation stood: it stood before this call. */
		if (!codex->has_turn_usage && codex->turn_base.input < 0)
			codex->turn_base = (struct codex_tokens){spent(codex->total.input, call.input),
				spent(codex->total.cached, call.cached), spent(codex->total.output, call.output),
				spent(codex->total.reasoning, call.reasoning)};
		codex->has_turn_usage = true;
	}
	event = agent_out_event(out, EVENT_USAGE);
	event->usage.context_used = codex->context_used;
	event->usage.context_size = codex->context_size;
}

/* ---- the end ---- */

void codex_turn_ended(struct codex *codex, enum agent_status status, const struct agent_failure *failure,
	struct str text, bool is_program_alive, struct agent_out *out)
{
	struct agent_event *event;

	codex_items_end(codex, status, is_program_alive, out);
	codex_asks_end(codex, out);
	tell_usage(codex, out);
	event = agent_out_event(out, EVENT_TURN_ENDED);
	event->native = str_dup(out->arena, codex->turn);
	event->status = status;
	event->text = str_dup(out->arena, text);
	if (status == AGENT_FAILED) {
		event->failure = *failure;
		event->failure.message = str_dup(out->arena, failure->message);
	}
	codex->turn_phase = TURN_NONE;
	state_text(&codex->turn, STR_NONE);
	codex->is_interrupt_wanted = codex->is_interrupt_sent = codex->has_passed_over = false;
	codex->terminal_due_at = 0;
	codex->has_turn_usage = false;
}

/* The final answer, where the program repeats it at the end. */
static struct str final_text(const json_t *turn)
{
	const json_t *items = json_object_get(turn, "items");

	for (size_t i = json_array_size(items); i-- > 0;) {
		const json_t *item = json_array_get(items, i);

		if (str_eq(json_member_str(item, "type"), STR("agentMessage")))
			return json_member_str(item, "text");
	}
	return STR_NONE;
}

static void turn_completed(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	const json_t *turn = json_object_get(params, "turn");
	struct str id = json_member_str(turn, "id");
	struct str status = json_member_str(turn, "status");
	bool was_interrupted = str_eq(status, STR("interrupted"));

	codex_turn_started(codex, id, now, out); /* when nothing else told of it */
	if (codex->turn_phase != TURN_RUNNING || !str_eq(id, codex->turn)) /* (2) */
		return;
	if (str_eq(status, STR("completed"))) {
		codex_turn_ended(codex, AGENT_COMPLETED, NULL, final_text(turn), true, out);
	} else if (was_interrupted) {
		codex_turn_ended(codex, AGENT_INTERRUPTED, NULL, STR_NONE, true, out);
	} else {
		struct agent_failure failure = codex_turn_failure(json_object_get(turn, "error"));

		codex_turn_ended(codex, AGENT_FAILED, &failure, STR_NONE, true, out);
	}
	/* The commands of an interrupted turn run on until they are cleaned away; the end of the program ends them too. */
	if (codex->phase == CODEX_CLOSING)
		codex_close_stdin(codex, now, out);
	else if (was_interrupted)
		codex_call_send(codex, CALL_CLEAN, STR_NONE, NULL, now, out);
}

/* ---- what is told in between ---- */

static void turn_started(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	codex_turn_started(codex, json_member_str(json_object_get(params, "turn"), "id"), now, out);
}

static void item_started(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	(void)now;
	codex_item_started(codex, json_object_get(params, "item"), out);
}

static void item_completed(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	(void)now;
	codex_item_completed(codex, json_object_get(params, "item"), out);
}

static void text_delta(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	(void)now;
	codex_item_delta(codex, ITEM_TEXT, json_member_str(params, "itemId"), json_member_str(params, "delta"), out);
}

static void reasoning_delta(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	(void)now;
	codex_item_delta(codex, ITEM_REASONING, json_member_str(params, "itemId"), json_member_str(params, "delta"), out);
}

static void reasoning_part(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	(void)now;
	if (json_integer_value(json_object_get(params, "summaryIndex")) > 0)
		codex_item_delta(codex, ITEM_REASONING, json_member_str(params, "itemId"), STR("\n\n"), out);
}

static void output_delta(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	(void)now;
	codex_item_delta(codex, ITEM_COMMAND, json_member_str(params, "itemId"), json_member_str(params, "delta"), out);
}

static void plan_updated(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	(void)now;
	codex_todo(codex, params, out);
}

/* "Reconnecting... 1/5" */
static struct str retry_of(struct str message, struct arena *arena)
{
	const char *slash = message.n == 0 ? NULL : memrchr(message.p, '/', message.n);
	size_t from;
	int64_t attempt;
	int64_t most;

	if (slash == NULL)
		return STR_NONE;
	from = (size_t)(slash - message.p);
	while (from > 0 && message.p[from - 1] >= '0' && message.p[from - 1] <= '9')
		from--;
	if (!str_to_int((struct str){message.p + from, (size_t)(slash - message.p) - from}, &attempt) ||
		!str_to_int((struct str){slash + 1, message.n - (size_t)(slash + 1 - message.p)}, &most))
		return STR_NONE;
	return str_printf(arena, "{\"attempt\":%lld,\"maxAttempts\":%lld}", (long long)attempt, (long long)most);
}

/* An error that ends the turn stands in the end of the turn again. */
static void error_told(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	struct str message = json_member_str(json_object_get(params, "error"), "message");

	(void)now;
	if (json_is_true(json_object_get(params, "willRetry")))
		codex_notice(codex, "warning", message, retry_of(message, out->arena), out);
}

static void warned(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	struct str message = json_member_str(params, "message");

	(void)now;
	if (message.p == NULL)
		message = json_member_str(params, "summary");
	codex_notice(codex, "warning", message, STR_NONE, out);
}

static void rerouted(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	struct str to = json_member_str(params, "toModel");
	struct str from = json_member_str(params, "fromModel");

	(void)now;
	if (to.p != NULL && from.p != NULL)
		codex_notice(codex, "info",
			str_printf(out->arena, "The model is %.*s now instead of %.*s", STRF(to), STRF(from)), STR_NONE, out);
}

static void endpoint_status(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	struct str name = json_member_str(params, "name");

	(void)now;
	if (str_eq(json_member_str(params, "status"), STR("failed")))
		codex_notice(codex, str_eq(name, STR("dais")) ? "error" : "warning",
			str_printf(out->arena, "MCP server %.*s failed: %.*s", STRF(name),
				STRF(json_member_str(params, "error"))),
			STR_NONE, out);
}

static void request_resolved(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	(void)now;
	codex_ask_resolved(codex, json_object_get(params, "requestId"), out);
}

static void usage_updated(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	(void)now;
	token_usage(codex, params, out);
}

static void named(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out)
{
	struct str name = json_member_str(params, "threadName");

	(void)codex;
	(void)now;
	if (name.p != NULL && name.n > 0)
		agent_out_event(out, EVENT_TITLE)->text = str_dup(out->arena, name);
}

enum scope {
	OF_SESSION, /* whatever conversation it names */
	OF_THREAD,  /* ours */
	OF_TURN,    /* ours, in the turn that runs */
	OF_ITEM,    /* the same, or an item in the background */
};

/* Every notification that means something here; others are nothing. */
static const struct notification_row {
	const char *method;
	enum scope scope;
	void (*heard)(struct codex *codex, const json_t *params, int64_t now, struct agent_out *out);
} notifications[] = {
	{"configWarning", OF_SESSION, warned},
	{"deprecationNotice", OF_SESSION, warned},
	{"error", OF_TURN, error_told},
	{"guardianWarning", OF_THREAD, warned},
	{"item/agentMessage/delta", OF_TURN, text_delta},
	{"item/commandExecution/outputDelta", OF_ITEM, output_delta},
	{"item/completed", OF_ITEM, item_completed},
	{"item/reasoning/summaryPartAdded", OF_TURN, reasoning_part},
	{"item/reasoning/summaryTextDelta", OF_TURN, reasoning_delta},
	{"item/reasoning/textDelta", OF_TURN, reasoning_delta},
	{"item/started", OF_TURN, item_started},
	{"mcpServer/startupStatus/updated", OF_SESSION, endpoint_status},
	{"model/rerouted", OF_TURN, rerouted},
	{"serverRequest/resolved", OF_SESSION, request_resolved},
	{"thread/name/updated", OF_THREAD, named},
	{"thread/tokenUsage/updated", OF_THREAD, usage_updated},
	{"turn/completed", OF_THREAD, turn_completed},
	{"turn/plan/updated", OF_TURN, plan_updated},
	{"turn/started", OF_THREAD, turn_started},
	{"warning", OF_THREAD, warned},
};

static bool is_ours(const struct codex *codex, const json_t *params)
{
	return codex->thread.p != NULL && str_eq(json_member_str(params, "threadId"), codex->thread);
}

static bool is_of_turn(const struct codex *codex, const json_t *params)
{
	return codex->turn_phase == TURN_RUNNING && str_eq(json_member_str(params, "turnId"), codex->turn);
}

static bool is_of_background(const struct codex *codex, const json_t *params)
{
	struct str key = json_member_str(params, "itemId");
	const struct codex_item *item;

	if (key.p == NULL)
		key = json_member_str(json_object_get(params, "item"), "id");
	item = codex_item_find(codex, key);
	return item != NULL && item->is_background;
}

void codex_notified(struct codex *codex, struct str method, const json_t *params, int64_t now, struct agent_out *out)
{
	for (size_t i = 0; i < sizeof(notifications) / sizeof(notifications[0]); i++) {
		const struct notification_row *row = &notifications[i];

		if (!str_eq(method, str_of(row->method)))
			continue;
		if (row->scope >= OF_THREAD && !is_ours(codex, params)) /* (1) */
			return;
		if (row->scope >= OF_TURN && !is_of_turn(codex, params) &&
			!(row->scope == OF_ITEM && is_of_background(codex, params))) /* (3) */
			return;
		row->heard(codex, params, now, out);
		return;
	}
}
