/* Asking the client in the modern era: the call ends with questions and a sealed state, and comes
 * again with the answers. The state is bound to who asked, for what, with which arguments. */
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "mcp/inside.h"

static struct str state_context(struct mcp_request *req)
{
	const json_t *arguments = json_object_get(req->message.params, "arguments");
	struct str text = arguments == NULL ? STR("{}") : json_canonical(req->arena, arguments);

	return str_printf(req->arena, "state\n%.*s\n%.*s\n%.*s\n%.*s", STRF(req->caller.principal),
		STRF(req->message.method), STRF(req->target), STRF(sha256_hex(req->arena, text)));
}

int retry_read(struct mcp_request *req, struct refusal *r)
{
	const json_t *state = json_object_get(req->message.params, "requestState");
	const json_t *answers = json_object_get(req->message.params, "inputResponses");

	if (!req->method->may_ask)
		return 0;
	req->is_retry = state != NULL || answers != NULL;
	if (answers != NULL && !json_is_object(answers))
		return refusal_set(
			r, MCP_INVALID_PARAMS, 200, STR("inputResponses is not an object."));
	req->answers = answers;
	if (state == NULL)
		return 0;
	if (json_str(state).p == NULL || json_str(state).n > LIMIT_MCP_STATE_BYTES ||
		!seal_open(req->arena, &req->server->keys, STATE_MAC_SIZE, state_context(req),
			clock_wall_ms() / 1000, json_str(state), &req->state))
		return refusal_set(r, MCP_INVALID_PARAMS, 200,
			STR("requestState does not belong to this call, or is too old; start again without it."));
	return 0;
}

void mcp_finish_input_required(struct mcp_request *req, struct str requests, struct str state)
{
	int64_t expires = clock_wall_ms() / 1000 + LIMIT_MCP_STATE_SECONDS;
	struct buf out;
	struct json_writer w;

	buf_init(&out, NULL, SIZE_MAX);
	json_writer_init(&w, &out);
	if (requests.n > 0)
		jw_kraw(&w, "inputRequests", requests);
	if (state.p != NULL)
		jw_kstr(&w, "requestState",
			seal_make(req->arena, &req->server->keys, STATE_MAC_SIZE,
				state_context(req), expires, state));
	request_finish(
		req, &(struct result){.kind = RESULT_INPUT_REQUIRED, .members = buf_str(&out)});
	buf_finish(&out);
}
