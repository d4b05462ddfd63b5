/* The state of a session: what is saved, by its table. */
#include "providers/claude/claude.h"

#include "base/limits.h"

static const struct state_field claude_fields[] = {
	STATE_RANGE(claude, phase, PHASE_NEW, PHASE_DEAD),
	STATE_FIELD(claude, native, STATE_TEXT),
	STATE_FIELD(claude, seed, STATE_TEXT),
	STATE_FIELD(claude, model, STATE_TEXT),
	STATE_FIELD(claude, effort, STATE_TEXT),
	STATE_FIELD(claude, mode, STATE_TEXT),
	STATE_RANGE(claude, runtime, RUNTIME_READ_ONLY, RUNTIME_FULL_ACCESS),
	STATE_RANGE(claude, interaction, INTERACTION_PLAN, INTERACTION_DEFAULT),
	STATE_FIELD(claude, is_confined, STATE_BOOL),
	STATE_FIELD(claude, is_resumed, STATE_BOOL),
	STATE_FIELD(claude, is_confirmed, STATE_BOOL),
	STATE_FIELD(claude, messages, STATE_INT),
	STATE_FIELD(claude, requests, STATE_INT),
	STATE_FIELD(claude, notices, STATE_INT),
	STATE_FIELD(claude, bad_lines, STATE_INT),
	STATE_FIELD(claude, open_by, STATE_INT),
	STATE_FIELD(claude, interrupt_by, STATE_INT),
	STATE_FIELD(claude, close_by, STATE_INT),
	STATE_FIELD(claude, closes, STATE_BOOL),
	STATE_FIELD(claude, is_shut, STATE_BOOL),
	STATE_FIELD(claude, in_turn, STATE_BOOL),
	STATE_FIELD(claude, turn, STATE_TEXT),
	STATE_FIELD(claude, is_started, STATE_BOOL),
	STATE_FIELD(claude, is_interrupted, STATE_BOOL),
	STATE_FIELD(claude, interrupt, STATE_TEXT),
	STATE_FIELD(claude, has_result, STATE_BOOL),
	STATE_FIELD(claude, error, STATE_TEXT),
	STATE_FIELD(claude, stream_message, STATE_TEXT),
	STATE_FIELD(claude, stream_key, STATE_TEXT),
	STATE_FIELD(claude, stream_sent, STATE_INT),
	STATE_FIELD(claude, stream_is_thought, STATE_BOOL),
	STATE_FIELD(claude, todo_key, STATE_TEXT),
	STATE_FIELD(claude, retry_key, STATE_TEXT),
	STATE_FIELD(claude, limit_status, STATE_TEXT),
	STATE_FIELD(claude, input, STATE_INT),
	STATE_FIELD(claude, cached, STATE_INT),
	STATE_FIELD(claude, output, STATE_INT),
	STATE_FIELD(claude, thinking, STATE_INT),
	STATE_FIELD(claude, has_usage, STATE_BOOL),
	STATE_FIELD(claude, is_priced, STATE_BOOL),
	STATE_FIELD(claude, cost_nano, STATE_INT),
	STATE_FIELD(claude, has_total, STATE_BOOL),
	STATE_FIELD(claude, total_nano, STATE_INT),
	STATE_FIELD(claude, context_used, STATE_INT),
	STATE_FIELD(claude, context_size, STATE_INT),
	STATE_FIELD(claude, items, STATE_JSON),
	STATE_FIELD(claude, tasks, STATE_JSON),
	STATE_FIELD(claude, asks, STATE_JSON),
	STATE_FIELD(claude, allowed, STATE_JSON),
	STATE_FIELD(claude, controls, STATE_JSON),
	STATE_FIELD(claude, steers, STATE_JSON),
	STATE_FIELDS_END,
};

void claude_state_init(struct claude *c)
{
	state_make_tables(claude_fields, c);
}

void claude_state_finish(struct claude *c)
{
	state_free(claude_fields, c);
}

void claude_save(const struct agent *agent, struct json_writer *w)
{
	state_save(claude_fields, agent, w);
}

int claude_load(struct agent *agent, const json_t *state, struct failure *f)
{
	return state_reload(claude_fields, state, agent, f);
}

void claude_set(struct str *field, struct str value)
{
	char text[LIMIT_CLAUDE_TEXT_BYTES];

	state_text(field, (struct str){text, state_plain(text, sizeof(text), value)});
}

struct str claude_id(struct arena *arena, struct str id)
{
	char *text;

	if (id.p == NULL)
		return STR_NONE;
	text = arena_alloc(arena, LIMIT_CLAUDE_ID_BYTES);
	return (struct str){text, state_plain(text, LIMIT_CLAUDE_ID_BYTES, id)};
}
