/* The state of a session: what is saved, by its table. */
#include "providers/opencode/opencode.h"

#include "base/limits.h"

static const struct state_field opencode_fields[] = {
	STATE_RANGE(opencode, phase, PHASE_NEW, PHASE_DEAD),
	STATE_FIELD(opencode, native, STATE_TEXT),
	STATE_FIELD(opencode, resume, STATE_TEXT),
	STATE_FIELD(opencode, model, STATE_TEXT),
	STATE_FIELD(opencode, variant, STATE_TEXT),
	STATE_FIELD(opencode, version, STATE_TEXT),
	STATE_FIELD(opencode, url, STATE_TEXT),
	STATE_FIELD(opencode, instructions, STATE_TEXT),
	STATE_FIELD(opencode, problem, STATE_TEXT),
	STATE_RANGE(opencode, runtime, RUNTIME_READ_ONLY, RUNTIME_FULL_ACCESS),
	STATE_RANGE(opencode, interaction, INTERACTION_PLAN, INTERACTION_DEFAULT),
	STATE_FIELD(opencode, is_confined, STATE_BOOL),
	STATE_FIELD(opencode, is_resumed, STATE_BOOL),
	STATE_FIELD(opencode, is_streaming, STATE_BOOL),
	STATE_FIELD(opencode, requests, STATE_INT),
	STATE_FIELD(opencode, notices, STATE_INT),
	STATE_FIELD(opencode, bad_lines, STATE_INT),
	STATE_FIELD(opencode, open_by, STATE_INT),
	STATE_FIELD(opencode, start_by, STATE_INT),
	STATE_FIELD(opencode, settle_by, STATE_INT),
	STATE_FIELD(opencode, interrupt_by, STATE_INT),
	STATE_FIELD(opencode, close_by, STATE_INT),
	STATE_FIELD(opencode, closes, STATE_BOOL),
	STATE_FIELD(opencode, is_shut, STATE_BOOL),
	STATE_FIELD(opencode, in_turn, STATE_BOOL),
	STATE_FIELD(opencode, is_started, STATE_BOOL),
	STATE_FIELD(opencode, is_unasked, STATE_BOOL),
	STATE_FIELD(opencode, title, STATE_TEXT),
	STATE_FIELD(opencode, is_interrupted, STATE_BOOL),
	STATE_FIELD(opencode, has_error, STATE_BOOL),
	STATE_FIELD(opencode, error, STATE_TEXT),
	STATE_FIELD(opencode, reason, STATE_TEXT),
	STATE_FIELD(opencode, status, STATE_INT),
	STATE_FIELD(opencode, retry_key, STATE_TEXT),
	STATE_FIELD(opencode, input, STATE_INT),
	STATE_FIELD(opencode, cached, STATE_INT),
	STATE_FIELD(opencode, output, STATE_INT),
	STATE_FIELD(opencode, thought, STATE_INT),
	STATE_FIELD(opencode, cost_nano, STATE_INT),
	STATE_FIELD(opencode, has_usage, STATE_BOOL),
	STATE_FIELD(opencode, context_used, STATE_INT),
	STATE_FIELD(opencode, messages, STATE_JSON),
	STATE_FIELD(opencode, parts, STATE_JSON),
	STATE_FIELD(opencode, items, STATE_JSON),
	STATE_FIELD(opencode, asks, STATE_JSON),
	STATE_FIELD(opencode, requested, STATE_JSON),
	STATE_FIELDS_END,
};

void opencode_state_init(struct opencode *o)
{
	state_make_tables(opencode_fields, o);
}

void opencode_state_finish(struct opencode *o)
{
	state_free(opencode_fields, o);
}

void opencode_save(const struct agent *agent, struct json_writer *w)
{
	state_save(opencode_fields, agent, w);
}

int opencode_load(struct agent *agent, const json_t *state, struct failure *f)
{
	return state_reload(opencode_fields, state, agent, f);
}

void opencode_set(struct str *field, struct str value)
{
	char text[LIMIT_OPENCODE_TEXT_BYTES];

	state_text(field, (struct str){text, state_plain(text, sizeof(text), value)});
}

struct str opencode_id(struct arena *arena, struct str id)
{
	char *text;

	if (id.p == NULL)
		return STR_NONE;
	text = arena_alloc(arena, LIMIT_OPENCODE_ID_BYTES);
	return (struct str){text, state_plain(text, LIMIT_OPENCODE_ID_BYTES, id)};
}
