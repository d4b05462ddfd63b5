/* What the program says when something fails, as codes of the closed list.
 *
 * The newest program names the cause (`codexErrorInfo`): a word, or an object with the status of HTTP. Older ones say
 * "other" for much of it, and the status stands in the text only. A word that nobody knows is unclassified. */
#include "providers/codex/private.h"

static const struct cause {
	const char *word;
	enum provider_failure_code code;
} causes[] = {
	{"badRequest", CODE_invalid_request},
	{"bioPolicy", CODE_refused},
	{"contextWindowExceeded", CODE_context_overflow},
	{"cyberPolicy", CODE_refused},
	{"flexUnavailable", CODE_rate_limited},
	{"inferenceHookDenied", CODE_refused},
	{"internalServerError", CODE_overloaded},
	{"misalignmentPolicyViolation", CODE_refused},
	{"modelNotFound", CODE_unknown_model},
	{"policyCapacityUnavailable", CODE_overloaded},
	{"rateLimitExceeded", CODE_rate_limited},
	{"sandboxError", CODE_model_error},
	{"serverOverloaded", CODE_overloaded},
	{"sessionBudgetExceeded", CODE_billing},
	{"tooManyDenials", CODE_refused},
	{"unauthorized", CODE_auth_required},
	{"usageLimitExceeded", CODE_billing},
};

static enum provider_failure_code of_status(int64_t status)
{
	switch (status) {
	case 400:
		return CODE_invalid_request;
	case 401:
	case 403:
		return CODE_auth_invalid;
	case 402:
		return CODE_billing;
	case 404:
		return CODE_unknown_model;
	case 429:
		return CODE_rate_limited;
	case 408:
	case 500 ... 599:
		return CODE_overloaded;
	default:
		return CODE_unclassified;
	}
}

static bool holds(struct str text, struct str part)
{
	return text.n >= part.n && memmem(text.p, text.n, part.p, part.n) != NULL;
}

/* "unexpected status 401 Unauthorized", "last status: 429 Too Many Requests" */
static int64_t status_in(struct str text)
{
	static const struct str word = {"status", 6};

	while (text.n > word.n) {
		const char *at = memmem(text.p, text.n, word.p, word.n);
		struct str rest;

		if (at == NULL)
			return 0;
		rest = (struct str){at + word.n, text.n - (size_t)(at + word.n - text.p)};
		text = rest;
		if (rest.n > 0 && rest.p[0] == ':')
			rest = (struct str){rest.p + 1, rest.n - 1};
		rest = str_trim(rest);
		if (rest.n >= 3) {
			int64_t status;

			if (str_to_int((struct str){rest.p, 3}, &status) && status >= 100)
				return status;
		}
	}
	return 0;
}

static enum provider_failure_code of_text(struct str text)
{
	int64_t status = status_in(text);

	if (status != 0)
		return of_status(status);
	if (holds(text, STR("stream disconnected")))
		return CODE_connection_lost;
	/* Of a status 400 the program passes on the raw body. */
	if (text.n > 0 && text.p[0] == '{' && holds(text, STR("\"error\"")))
		return CODE_invalid_request;
	return CODE_unclassified;
}

static enum provider_failure_code of_object(const json_t *info, struct str text)
{
	const json_t *variant = json_object_iter_value(json_object_iter((json_t *)(uintptr_t)info));
	const json_t *status = json_object_get(variant, "httpStatusCode");

	if (json_is_integer(status))
		return of_status(json_integer_value(status));
	return json_is_object(variant) && status != NULL ? CODE_connection_lost : of_text(text);
}

struct agent_failure codex_turn_failure(const json_t *error)
{
	const json_t *info = json_object_get(error, "codexErrorInfo");
	struct str text = json_member_str(error, "message");
	struct str word = json_str(info);

	if (text.p == NULL)
		text = STR("codex told no reason");
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (word.p != NULL && str_eq(word, str_of(causes[i].word)))
			return agent_failure_of(causes[i].code, text);
	if (json_is_object(info))
		return agent_failure_of(of_object(info, text), text);
	return agent_failure_of(of_text(text), text);
}

/* Nearly every error of a request is -32600, so the text decides. */
static const struct cause refusals[] = {
	{"required MCP servers failed", CODE_connection_lost},
	{"already has an active writer", CODE_spawn_failed},
	{"no rollout found", CODE_unknown_session},
	{"thread not found", CODE_unknown_session},
	{"invalid session id", CODE_unknown_session},
};

struct agent_failure codex_call_failure(const json_t *error)
{
	struct str text = json_member_str(error, "message");

	if (text.p == NULL)
		text = STR("codex refused a request and told no reason");
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (holds(text, str_of(refusals[i].word)))
			return agent_failure_of(refusals[i].code, text);
	return agent_failure_of(CODE_invalid_request, text);
}
