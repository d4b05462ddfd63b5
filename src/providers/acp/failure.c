/* What went wrong, out of the errors of many agents: numbers, then words, then nothing. */
#include "providers/acp/acp.h"

#include <strings.h>

static enum provider_failure_code code_of_status(int64_t status, bool is_long)
{
	switch (status) {
	case 401:
	case 403:
		return CODE_auth_invalid;
	case 402:
		return CODE_billing;
	case 404:
		return CODE_unknown_model;
	case 413:
		return CODE_context_overflow;
	case 429:
		return CODE_rate_limited;
	case 503:
	case 529:
		return CODE_overloaded;
	default:
		if (is_long)
			return CODE_context_overflow;
		return status >= 500 ? CODE_model_error : CODE_invalid_request;
	}
}

static bool says(struct str text, const char *words)
{
	size_t n = strlen(words);

	for (size_t i = 0; i + n <= text.n; i++)
		if (strncasecmp(text.p + i, words, n) == 0)
			return true;
	return false;
}

static bool is_context(struct str text)
{
	return says(text, "context length") || says(text, "context_length") || says(text, "context window") ||
		says(text, "prompt is too long") || says(text, "maximum context");
}

/* A number from 400 to 599 that stands alone. */
static int64_t status_in(struct str text)
{
	for (size_t i = 0; i + 3 <= text.n; i++) {
		const char *p = text.p + i;
		bool begins = i == 0 || (!(p[-1] >= '0' && p[-1] <= '9') && p[-1] != '.');
		bool ends = i + 3 == text.n || !((p[3] >= '0' && p[3] <= '9') || p[3] == '.');

		if (i + 4 < text.n && p[3] == '.' && !(p[4] >= '0' && p[4] <= '9'))
			ends = true; /* end of a sentence */
		if (begins && ends && (p[0] == '4' || p[0] == '5') && p[1] >= '0' && p[1] <= '9' && p[2] >= '0' && p[2] <= '9')
			return (p[0] - '0') * 100 + (p[1] - '0') * 10 + (p[2] - '0');
	}
	return 0;
}

struct words {
	const char *words;
	enum provider_failure_code code;
};

static const struct words known[] = {
	{"rate limit", CODE_rate_limited},
	{"too many requests", CODE_rate_limited},
	{"overloaded", CODE_overloaded},
	{"unauthorized", CODE_auth_invalid},
	{"invalid api key", CODE_auth_invalid},
	{"authentication required", CODE_auth_required},
	{"quota", CODE_billing},
	{"billing", CODE_billing},
	{"connection", CODE_connection_lost},
	{"stream ended", CODE_connection_lost},
	{"disconnected", CODE_connection_lost},
	{"decoding response body", CODE_connection_lost}, /* Grok, of a stream that was cut */
	{"timed out", CODE_timeout},
	{"timeout", CODE_timeout},
};

static enum provider_failure_code code_of_text(struct str text)
{
	int64_t status = status_in(text);

	if (is_context(text))
		return CODE_context_overflow;
	if (status != 0)
		return code_of_status(status, false);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (says(text, known[i].words))
			return known[i].code;
	return CODE_unclassified;
}

struct agent_failure acp_failure_of_text(struct str text, struct arena *arena)
{
	return agent_failure_of(code_of_text(text), str_dup(arena, text));
}

/* Gemini hands on the body of the answer as its message. */
static struct str inner_message(struct str message, struct arena *arena)
{
	struct json_error error;
	json_auto_t *body = NULL;
	struct str inner;

	if (message.n == 0 || (message.p[0] != '{' && message.p[0] != '['))
		return message;
	body = json_read(message, &error);
	inner = json_member_str(json_object_get(json_is_array(body) ? json_array_get(body, 0) : body, "error"), "message");
	return inner.p == NULL ? message : str_dup(arena, inner);
}

static struct str data_text(const json_t *data)
{
	static const char *const members[] = {"message", "details", "detail", "error", "errorName"};

	if (json_is_string(data))
		return json_str(data);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (json_member_str(data, members[i]).n > 0)
			return json_member_str(data, members[i]);
	return STR_NONE;
}

static int64_t data_status(const json_t *data)
{
	static const char *const members[] = {"http_status", "httpStatus", "status", "statusCode", "http"};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		int64_t status = json_integer_value(json_object_get(data, members[i]));

		if (status >= 400 && status <= 599)
			return status;
	}
	return 0;
}

static enum provider_failure_code code_of_error(int64_t code, int64_t status, struct str message)
{
	bool is_long = is_context(message);

	/* Gemini, of a stream that was cut: the number is its own invention. */
	if (code == 500 && str_eq(message, STR("terminated")))
		return CODE_connection_lost;
	if (code >= 400 && code <= 599)
		return code_of_status(code, is_long);
	if (status != 0)
		return code_of_status(status, is_long);
	switch (code) {
	case -32000:
		return CODE_auth_required;
	case -32002:
		return CODE_unknown_session;
	case -32003:
		return CODE_rate_limited;
	case -32600:
	case -32602:
	case -32700:
		return CODE_invalid_request;
	case -32601:
		return CODE_unsupported_method;
	default:
		return code_of_text(message);
	}
}

struct agent_failure acp_failure_of_error(const json_t *error, struct arena *arena)
{
	const json_t *data = json_object_get(error, "data");
	struct str message = inner_message(json_member_str(error, "message"), arena);
	struct str more = data_text(data);

	if (message.n == 0)
		message = STR("The agent told an error without a message.");
	message = more.n == 0 || says(message, str_z(arena, more)) ? str_dup(arena, message)
								   : str_printf(arena, "%.*s: %.*s", STRF(message), STRF(more));
	return agent_failure_of(
		code_of_error(json_integer_value(json_object_get(error, "code")), data_status(data), message), message);
}
