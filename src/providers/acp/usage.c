/* Tokens: every agent counts its own way. */
#include "providers/acp/acp.h"

static int64_t number(const json_t *from, const char *name)
{
	const json_t *value = json_object_get(from, name);

	return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value) : -1;
}

static const json_t *find_usage(const json_t *result, bool *is_gemini)
{
	const json_t *meta = json_object_get(result, "_meta");
	const json_t *quota = json_object_get(json_object_get(meta, "quota"), "token_count");

	*is_gemini = false;
	if (json_is_object(json_object_get(result, "usage")))
		return json_object_get(result, "usage");
	if (json_is_object(json_object_get(meta, "usage"))) /* Grok: its top level counts the last call only */
		return json_object_get(meta, "usage");
	*is_gemini = json_is_object(quota);
	return quota;
}

static int64_t thoughts(const json_t *from)
{
	int64_t tokens = number(from, "thoughtTokens");

	return tokens >= 0 ? tokens : number(from, "reasoningTokens");
}

struct agent_usage acp_usage_of(const struct acp *a, const json_t *result, bool *is_told)
{
	struct agent_usage usage = {.input = -1, .cached = -1, .output = -1, .reasoning = -1, .cost_usd = -1,
		.context_used = -1, .context_size = -1};
	bool is_gemini;
	const json_t *from = find_usage(result, &is_gemini);
	int64_t written = number(from, "cachedWriteTokens");

	usage.input = number(from, is_gemini ? "input_tokens" : "inputTokens");
	usage.output = number(from, is_gemini ? "output_tokens" : "outputTokens");
	usage.cached = number(from, "cachedReadTokens");
	usage.reasoning = thoughts(from);
	*is_told = usage.input > 0 || usage.output > 0 || usage.cached > 0 || usage.reasoning > 0;
	if (a->profile->input_has_cached && usage.cached > 0 && usage.input >= usage.cached)
		usage.input -= usage.cached;
	if (written > 0 && usage.input >= 0 && written < INT64_MAX - usage.input)
		usage.input += written; /* not read from the cache: paid as input */
	if (a->has_cost && a->cost >= a->cost_before)
		usage.cost_usd = (double)(a->cost - a->cost_before) / 1e6;
	return usage;
}

void acp_gauge(struct acp *a, const json_t *update, struct agent_out *out)
{
	const json_t *cost = json_object_get(update, "cost");
	double amount = json_number_value(json_object_get(cost, "amount"));
	struct agent_event *event;

	if (str_eq(json_member_str(cost, "currency"), STR("USD")) && amount >= 0 && amount < 1e9) {
		a->cost = (int64_t)(amount * 1e6 + 0.5); /* of the whole session so far */
		a->has_cost = true;
	}
	if (number(update, "used") < 0 && number(update, "size") < 0)
		return;
	event = agent_out_event(out, EVENT_USAGE);
	event->usage.context_used = number(update, "used");
	event->usage.context_size = number(update, "size");
}
