/* Words of the Agent Client Protocol, and what `fail` may say. */
#include "script/private.h"

const char *const tool_kinds[] = {"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode",
	"other", NULL};

const char *const plan_statuses[] = {"pending", "in_progress", "completed", NULL};

const char *const stop_reasons[] = {"end_turn", "max_tokens", "max_turn_requests", "refusal", NULL};

/* Failures of agents by what they mean for a client, each in the form in which agents report it: what is about the
 * protocol has a code of its own, what a model server answered has its HTTP status, what it did not answer has words. */
#define FAIL_WORDS(WORD) \
	WORD(auth_required, RPC_AUTH_REQUIRED, 0, "Authentication required") \
	WORD(auth_invalid, RPC_INTERNAL, 401, "The credential was refused") \
	WORD(billing, RPC_INTERNAL, 402, "Payment is required") \
	WORD(rate_limited, -32003, 429, "Rate limited") \
	WORD(overloaded, RPC_INTERNAL, 529, "The model server is overloaded") \
	WORD(model_error, RPC_INTERNAL, 500, "The model server failed") \
	WORD(context_overflow, RPC_INTERNAL, 413, "The prompt is too long for the model's context") \
	WORD(invalid_request, RPC_INVALID_PARAMS, 400, "Invalid params") \
	WORD(unknown_model, RPC_INVALID_PARAMS, 404, "No such model") \
	WORD(unknown_mode, RPC_INVALID_PARAMS, 0, "No such mode") \
	WORD(unknown_session, RPC_NOT_FOUND, 0, "Session not found") \
	WORD(unsupported_method, RPC_METHOD_NOT_FOUND, 0, "Method not found") \
	WORD(connection_lost, RPC_INTERNAL, 0, "The connection to the model server was lost") \
	WORD(timeout, RPC_INTERNAL, 0, "The request to the model server timed out") \
	WORD(internal, RPC_INTERNAL, 0, "Internal error")

const char *const fail_words[] = {
#define WORD(word, code, http, message) #word,
	FAIL_WORDS(WORD)
#undef WORD
	NULL};

const struct fail_word fail_meanings[] = {
#define WORD(word, code, http, message) {code, http, message},
	FAIL_WORDS(WORD)
#undef WORD
};
