/* Text and reasoning: chunks become open messages, and an end that the protocol does not tell. */
#include "providers/acp/acp.h"

#include "providers/state.h"

static void end_one(struct acp *a, int64_t speaker, bool is_thought, struct agent_out *out)
{
	struct acp_speaker *s = &a->speakers[speaker];
	struct str *key = is_thought ? &s->thought_key : &s->text_key;
	struct str *id = is_thought ? &s->thought_id : &s->text_id;

	if (key->p == NULL)
		return;
	acp_show_item(out, is_thought ? ITEM_REASONING : ITEM_TEXT, *key, s->item, AGENT_COMPLETED, STR_NONE, STR_NONE);
	state_text(key, STR_NONE);
	state_text(id, STR_NONE);
}

void acp_end_messages(struct acp *a, int64_t speaker, bool all, struct agent_out *out)
{
	if (all || a->speakers[speaker].thought_id.p == NULL)
		end_one(a, speaker, true, out);
	if (all || a->speakers[speaker].text_id.p == NULL)
		end_one(a, speaker, false, out);
}

static void open_one(struct acp *a, struct str *key, struct str *id, struct str message, bool is_thought,
	struct arena *arena)
{
	state_text(key, str_printf(arena, "%s:%" PRId64, is_thought ? "reasoning" : "text", ++a->made));
	if (message.n > 0 && message.n <= LIMIT_AGENT_ID_BYTES && acp_has_room(a, state_cost(message)))
		state_text(id, message);
}

void acp_say(struct acp *a, int64_t speaker, bool is_thought, struct str text, struct str id, struct agent_out *out)
{
	struct acp_speaker *s = &a->speakers[speaker];
	struct str *key = is_thought ? &s->thought_key : &s->text_key;
	struct str *open_id = is_thought ? &s->thought_id : &s->text_id;
	struct agent_event *event;

	if (text.n == 0)
		return;
	if ((is_thought ? s->text_id : s->thought_id).p == NULL)
		end_one(a, speaker, !is_thought, out);
	if (key->p != NULL && !str_eq(*open_id, id))
		end_one(a, speaker, is_thought, out);
	if (key->p == NULL)
		open_one(a, key, open_id, id, is_thought, out->arena);
	a->has_content = true;
	event = agent_out_event(out, EVENT_ITEM);
	event->item = (struct agent_item){.kind = is_thought ? ITEM_REASONING : ITEM_TEXT,
		.key = str_dup(out->arena, *key),
		.parent = str_dup(out->arena, s->item),
		.status = AGENT_RUNNING,
		.delta = str_dup(out->arena, text)};
}

struct str acp_content_text(struct arena *arena, const json_t *block)
{
	struct str type = json_member_str(block, "type");
	struct str name = json_member_str(block, "name");

	if (str_eq(type, STR("text")))
		return json_member_str(block, "text");
	if (str_eq(type, STR("resource_link")))
		return str_printf(arena, "[%.*s](%.*s)", STRF(name), STRF(json_member_str(block, "uri")));
	if (str_eq(type, STR("resource")))
		return json_member_str(json_object_get(block, "resource"), "text");
	if (str_eq(type, STR("image")) || str_eq(type, STR("audio")))
		return str_printf(arena, "[%.*s]", STRF(type));
	return STR_NONE;
}
