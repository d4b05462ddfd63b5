/* What the model says: text and thoughts, streamed block by block. */
#include "providers/pi/pi.h"

#include <inttypes.h>

static struct str key_of(const struct pi *p, struct arena *arena, int64_t block)
{
	return str_printf(arena, "message-%" PRId64 ":%" PRId64, p->messages, block);
}

static void tell(struct agent_out *out, bool is_thought, struct str key, enum agent_status status, struct str delta)
{
	struct agent_item *item = pi_item(out, is_thought ? ITEM_REASONING : ITEM_TEXT, str_dup(out->arena, key), status);

	if (delta.n > 0)
		item->delta = str_dup(out->arena, delta);
}

void pi_stream_close(struct pi *p, enum agent_status status, struct agent_out *out)
{
	if (p->stream_key.n > 0 && p->stream_sent > 0)
		tell(out, p->stream_is_thought, p->stream_key, status, STR_NONE);
	CLEAR(p, stream_key);
	p->stream_sent = 0;
}

static bool is_assistant(const json_t *line)
{
	return str_eq(json_member_str(json_object_get(line, "message"), "role"), STR("assistant"));
}

void pi_message_start(struct pi *p, const json_t *line, struct agent_out *out)
{
	if (!p->in_turn || !is_assistant(line))
		return;
	pi_stream_close(p, AGENT_INTERRUPTED, out);
	p->messages++;
	p->blocks = 0;
}

static void block_delta(struct pi *p, bool is_thought, int64_t index, struct str text, struct agent_out *out)
{
	struct str key = key_of(p, out->arena, index);

	if (text.n == 0 || index < p->blocks)
		return;
	if (!str_eq(key, p->stream_key)) {
		pi_stream_close(p, AGENT_COMPLETED, out);
		SET(p, stream_key, key);
		p->stream_is_thought = is_thought;
	}
	p->stream_sent += (int64_t)text.n;
	tell(out, is_thought, key, AGENT_RUNNING, text);
}

/* The whole text of a block: what was streamed of it is not told again. */
static void block_whole(struct pi *p, bool is_thought, int64_t index, struct str text, enum agent_status status,
	struct agent_out *out)
{
	struct str key = key_of(p, out->arena, index);
	size_t told = str_eq(key, p->stream_key) ? (size_t)p->stream_sent : 0;

	if (index < p->blocks)
		return;
	p->blocks = index + 1;
	if (told == 0 && text.n == 0)
		return;
	if (told == 0)
		pi_stream_close(p, AGENT_COMPLETED, out);
	told = told < text.n ? told : text.n;
	tell(out, is_thought, key, status, (struct str){text.p + told, text.n - told});
	CLEAR(p, stream_key);
	p->stream_sent = 0;
}

void pi_message_update(struct pi *p, const json_t *line, struct agent_out *out)
{
	const json_t *event = json_object_get(line, "assistantMessageEvent");
	struct str type = json_member_str(event, "type");
	int64_t index = json_integer_value(json_object_get(event, "contentIndex"));
	bool is_thought = str_starts(type, STR("thinking_"));

	if (!p->in_turn || index < 0 || index > INT32_MAX)
		return;
	if (str_eq(type, STR("text_delta")) || str_eq(type, STR("thinking_delta")))
		block_delta(p, is_thought, index, json_member_str(event, "delta"), out);
	else if (str_eq(type, STR("text_end")) || str_eq(type, STR("thinking_end")))
		block_whole(p, is_thought, index, json_member_str(event, "content"), AGENT_COMPLETED, out);
}

/* A message that broke off leaves its last block as it is. */
void pi_message_end(struct pi *p, const json_t *line, struct agent_out *out)
{
	const json_t *message = json_object_get(line, "message");
	struct str stop = json_member_str(message, "stopReason");
	bool is_cut = str_eq(stop, STR("error")) || str_eq(stop, STR("aborted"));
	const json_t *block;
	size_t i;

	if (!p->in_turn || !is_assistant(line))
		return;
	json_array_foreach(json_object_get(message, "content"), i, block) {
		struct str type = json_member_str(block, "type");

		if (str_eq(type, STR("text")))
			block_whole(p, false, (int64_t)i, json_member_str(block, "text"), is_cut ? AGENT_INTERRUPTED : AGENT_COMPLETED, out);
		else if (str_eq(type, STR("thinking")))
			block_whole(p, true, (int64_t)i, json_member_str(block, "thinking"), is_cut ? AGENT_INTERRUPTED : AGENT_COMPLETED,
				out);
	}
	pi_stream_close(p, is_cut ? AGENT_INTERRUPTED : AGENT_COMPLETED, out);
	pi_count(p, message);
}
