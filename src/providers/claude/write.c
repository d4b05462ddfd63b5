/* Lines to the program. */
#include "providers/claude/claude.h"

#include "base/limits.h"

#include <inttypes.h>
#include <stdlib.h>

static void request_begin(struct claude *c, struct body *b, struct arena *arena, struct str *id, const char *subtype)
{
	*id = str_printf(arena, "dais-%" PRId64, ++c->requests);
	body_begin(b, arena);
	jw_ktext(&b->w, "type", "control_request");
	jw_kstr(&b->w, "request_id", *id);
	jw_kobject(&b->w, "request");
	jw_ktext(&b->w, "subtype", subtype);
}

static void request_end(struct body *b, struct agent_out *out, bool has_secret)
{
	jw_object_end(&b->w);
	agent_out_line(out, body_end(b), has_secret);
}

static void write_server(struct json_writer *w, const char *url)
{
	jw_kobject(w, "mcpServers");
	jw_kobject(w, CLAUDE_SERVER);
	jw_ktext(w, "type", "http");
	jw_ktext(w, "url", url);
	jw_kobject(w, "headers");
	jw_ktext(w, "Authorization", "Bearer " AGENT_SECRET);
	jw_object_end(w);
	jw_kbool(w, "alwaysLoad", true); /* else the model may never see our tools */
	jw_kint(w, "timeout", LIMIT_CLAUDE_TOOL_MS);
	jw_object_end(w);
	jw_object_end(w);
}

void claude_write_initialize(struct claude *c, struct agent_out *out)
{
	struct body b;
	struct str id;

	request_begin(c, &b, out->arena, &id, "initialize");
	if (c->instructions != NULL)
		jw_ktext(&b.w, "appendSystemPrompt", c->instructions);
	if (c->mcp_url != NULL)
		write_server(&b.w, c->mcp_url);
	request_end(&b, out, c->mcp_url != NULL);
}

struct str claude_write_request(struct claude *c, struct agent_out *out, const char *subtype, const char *member,
	struct str value)
{
	struct body b;
	struct str id;

	request_begin(c, &b, out->arena, &id, subtype);
	jw_kstr(&b.w, member, value);
	request_end(&b, out, false);
	return id;
}

/* With it go the messages that were not read yet: they are refused, not answered later. */
void claude_write_interrupt(struct claude *c, struct agent_out *out)
{
	struct body b;
	struct str id;

	request_begin(c, &b, out->arena, &id, "interrupt");
	jw_kbool(&b.w, "cancel_queued", true);
	request_end(&b, out, false);
	SET(c, interrupt, id);
}

/* Ids of messages are the session's UUID with its last 12 digits moved on by their number: unique in the conversation,
 * and the same whenever the session is replayed. */
static struct str message_id(struct claude *c, struct arena *arena)
{
	struct str seed = c->seed;
	uint64_t node = seed.n >= 12 ? strtoull(seed.p + seed.n - 12, NULL, 16) : 0;
	struct str head = {seed.p, seed.n >= 12 ? seed.n - 12 : 0};

	node = (node + (uint64_t)++c->messages) & 0xffffffffffff;
	return str_printf(arena, "%.*s%012" PRIx64, STRF(head), node);
}

struct str claude_write_message(struct claude *c, struct agent_out *out, const struct agent_order *order)
{
	struct str id = message_id(c, out->arena);
	struct str text = order->text;
	struct body b;

	for (size_t i = 0; i < order->attachment_count; i++)
		text = str_printf(out->arena, "%.*s%s@%.*s", STRF(text), i == 0 ? "\n\n" : "\n",
			STRF(order->attachments[i].path));
	body_begin(&b, out->arena);
	jw_ktext(&b.w, "type", "user");
	jw_kobject(&b.w, "message");
	jw_ktext(&b.w, "role", "user");
	jw_kstr(&b.w, "content", text);
	jw_object_end(&b.w);
	jw_key(&b.w, "parent_tool_use_id");
	jw_null(&b.w);
	jw_ktext(&b.w, "session_id", "");
	jw_kstr(&b.w, "uuid", id);
	agent_out_line(out, body_end(&b), false);
	return id;
}

static void response_begin(struct body *b, struct arena *arena, struct str request, const char *subtype)
{
	body_begin(b, arena);
	jw_ktext(&b->w, "type", "control_response");
	jw_kobject(&b->w, "response");
	jw_ktext(&b->w, "subtype", subtype);
	jw_kstr(&b->w, "request_id", request);
}

void claude_write_answer(struct agent_out *out, struct str request, struct str response)
{
	struct body b;

	response_begin(&b, out->arena, request, "success");
	jw_kraw(&b.w, "response", response);
	request_end(&b, out, false);
}

void claude_write_refusal(struct agent_out *out, struct str request, const char *error)
{
	struct body b;

	response_begin(&b, out->arena, request, "error");
	jw_ktext(&b.w, "error", error);
	request_end(&b, out, false);
}
