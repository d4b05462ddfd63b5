/* Messages of the model: text and thoughts, streamed and whole. Only the conversation itself is streamed; what sub-agents
 * say comes in whole blocks, and belongs to the item of their call. */
#include "providers/claude/claude.h"

#include <inttypes.h>

static struct agent_item *text_item(struct agent_out *out, bool is_thought, struct str key, struct str parent,
	enum agent_status status, struct str delta)
{
	struct agent_item *item = claude_item(out, is_thought ? ITEM_REASONING : ITEM_TEXT, key, parent, status);

	if (delta.n > 0)
		item->delta = str_dup(out->arena, delta);
	return item;
}

void claude_stream_close(struct claude *c, enum agent_status status, struct agent_out *out)
{
	if (c->stream_key.n > 0 && c->stream_sent > 0)
		text_item(out, c->stream_is_thought, str_dup(out->arena, c->stream_key), STR_NONE, status, STR_NONE);
	CLEAR(c, stream_key);
	c->stream_sent = 0;
}

static void block_start(struct claude *c, const json_t *event, struct agent_out *out)
{
	struct str type = json_member_str(json_object_get(event, "content_block"), "type");
	int64_t index = json_integer_value(json_object_get(event, "index"));

	claude_stream_close(c, AGENT_COMPLETED, out);
	c->stream_is_thought = str_eq(type, STR("thinking"));
	if (c->stream_is_thought || str_eq(type, STR("text")))
		SET(c, stream_key, str_printf(out->arena, "%.*s:%" PRId64, STRF(c->stream_message), index));
}

static void block_delta(struct claude *c, const json_t *event, struct agent_out *out)
{
	const json_t *delta = json_object_get(event, "delta");
	struct str text = json_member_str(delta, c->stream_is_thought ? "thinking" : "text");

	if (c->stream_key.n == 0 || text.n == 0)
		return;
	c->stream_sent += (int64_t)text.n;
	text_item(out, c->stream_is_thought, str_dup(out->arena, c->stream_key), STR_NONE, AGENT_RUNNING, text);
}

/* A message that begins while a block of another is open: the program asks the model again, the part is void. */
static void message_start(struct claude *c, const json_t *event, struct agent_out *out)
{
	const json_t *message = json_object_get(event, "message");

	claude_stream_close(c, AGENT_INTERRUPTED, out);
	CLEAR(c, retry_key); /* the model answers again */
	SET(c, stream_message, json_member_str(message, "id"));
	claude_context_given(c, json_object_get(message, "usage"));
}

void claude_stream(struct claude *c, const json_t *line, struct agent_out *out)
{
	const json_t *event = json_object_get(line, "event");
	struct str type = json_member_str(event, "type");

	if (json_member_str(line, "parent_tool_use_id").p != NULL)
		return;
	if (str_eq(type, STR("message_start")))
		message_start(c, event, out);
	else if (str_eq(type, STR("content_block_start")))
		block_start(c, event, out);
	else if (str_eq(type, STR("content_block_delta")))
		block_delta(c, event, out);
	else if (str_eq(type, STR("content_block_stop")))
		claude_stream_close(c, AGENT_COMPLETED, out);
	else if (str_eq(type, STR("message_delta")))
		claude_context_said(c, json_object_get(event, "usage"), out);
}

struct message {
	const json_t *line;
	struct str id, parent;
	bool is_aborted;
	size_t block;
};

/* The whole block comes before the end of its stream: what was told already is not told again. */
static void text_block(struct claude *c, const struct message *m, bool is_thought, struct str text, struct agent_out *out)
{
	enum agent_status status = m->is_aborted ? AGENT_INTERRUPTED : AGENT_COMPLETED;
	struct str uuid = claude_id(out->arena, json_member_str(m->line, "uuid"));
	struct str key = uuid;
	size_t told = 0;

	if (m->parent.p == NULL && c->stream_key.n > 0 && c->stream_is_thought == is_thought &&
		str_eq(m->id, c->stream_message)) {
		key = str_dup(out->arena, c->stream_key);
		told = (size_t)c->stream_sent < text.n ? (size_t)c->stream_sent : text.n;
		CLEAR(c, stream_key);
		c->stream_sent = 0;
	} else if (uuid.p == NULL) {
		key = str_printf(out->arena, "text-%" PRId64, ++c->notices);
	} else if (m->block > 0) {
		key = str_printf(out->arena, "%.*s:%zu", STRF(uuid), m->block);
	}
	if (text.n == 0)
		return; /* a thought of which only the signature is told */
	text_item(out, is_thought, key, m->parent, status, (struct str){text.p + told, text.n - told});
}

static void content_block(struct claude *c, const struct message *m, const json_t *block, struct agent_out *out)
{
	struct str type = json_member_str(block, "type");

	if (str_eq(type, STR("text")))
		text_block(c, m, false, json_member_str(block, "text"), out);
	else if (str_eq(type, STR("thinking")))
		text_block(c, m, true, json_member_str(block, "thinking"), out);
	else if (str_eq(type, STR("tool_use")))
		claude_tool_use(c, block, m->parent, out);
}

void claude_assistant(struct claude *c, const json_t *line, struct agent_out *out)
{
	const json_t *message = json_object_get(line, "message");
	struct message m = {.line = line,
		.id = claude_id(out->arena, json_member_str(message, "id")),
		.parent = claude_id(out->arena, json_member_str(line, "parent_tool_use_id")),
		.is_aborted = json_is_true(json_object_get(line, "aborted"))};
	struct str error = json_member_str(line, "error");
	const json_t *block;

	if (error.p != NULL) {
		/* A message of the program, not of the model: why the turn is about to fail. The result repeats its text. */
		if (m.parent.p == NULL)
			SET(c, error, error);
		return;
	}
	json_array_foreach(json_object_get(message, "content"), m.block, block)
		content_block(c, &m, block, out);
}
