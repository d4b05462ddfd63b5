/* Batches: an array of messages, which only 2025-03-26 has. */
#include "base/limits.h"
#include "mcp/inside.h"

static bool is_modern_element(const json_t *element)
{
	const json_t *meta = json_object_get(json_object_get(element, "params"), "_meta");

	return json_object_get(meta, META_VERSION) != NULL;
}

int batch_check(const json_t *array, int version, struct refusal *r)
{
	const json_t *element;
	size_t i;

	if (json_array_size(array) == 0)
		return refusal_set(r, MCP_INVALID_REQUEST, 400, STR("The batch is empty."));
	json_array_foreach(array, i, element) if (is_modern_element(element)) return refusal_set(
		r, MCP_INVALID_REQUEST, 400, STR("Batching was removed from the protocol."));
	if (version != MCP_2025_03_26)
		return refusal_set(r, MCP_INVALID_REQUEST, 400,
			STR("Batching is not part of this protocol version."));
	if (json_array_size(array) > LIMIT_MCP_BATCH_MESSAGES)
		return refusal_set(
			r, MCP_INVALID_REQUEST, 400, STR("The batch holds more than 50 messages."));
	json_array_foreach(array, i, element) if (str_eq(json_member_str(element, "method"),
							  STR("initialize"))) return refusal_set(r,
		MCP_INVALID_REQUEST, 400, STR("initialize cannot be part of a batch."));
	return 0;
}

size_t batch_answers(const json_t *array)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	json_t *element;
	size_t n = 0;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)array, i, element)
	{
		struct message message;
		struct refusal r;

		n += message_read(arena, element, &message, &r) != 0 ||
		     message.kind == MESSAGE_REQUEST;
	}
	return n;
}
