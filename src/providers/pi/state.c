/* The state of a session: what is saved, by its table. */
#include "providers/pi/pi.h"

#include "base/limits.h"

static const struct state_field pi_fields[] = {
	STATE_RANGE(pi, phase, PHASE_NEW, PHASE_DEAD),
	STATE_FIELD(pi, native, STATE_TEXT),
	STATE_FIELD(pi, model, STATE_TEXT),
	STATE_FIELD(pi, thinking, STATE_TEXT),
	STATE_FIELD(pi, workspace, STATE_TEXT),
	STATE_FIELD(pi, url, STATE_TEXT),
	STATE_FIELD(pi, instructions, STATE_TEXT),
	STATE_FIELD(pi, version, STATE_TEXT),
	STATE_FIELD(pi, problem, STATE_TEXT),
	STATE_FIELD(pi, channel, STATE_TEXT),
	STATE_RANGE(pi, runtime, RUNTIME_READ_ONLY, RUNTIME_FULL_ACCESS),
	STATE_RANGE(pi, interaction, INTERACTION_PLAN, INTERACTION_DEFAULT),
	STATE_FIELD(pi, is_confined, STATE_BOOL),
	STATE_FIELD(pi, has_resume, STATE_BOOL),
	STATE_FIELD(pi, is_resumed, STATE_BOOL),
	STATE_FIELD(pi, has_state, STATE_BOOL),
	STATE_FIELD(pi, has_models, STATE_BOOL),
	STATE_FIELD(pi, is_asked, STATE_BOOL),
	STATE_FIELD(pi, is_bridged, STATE_BOOL),
	STATE_FIELD(pi, requests, STATE_INT),
	STATE_FIELD(pi, notices, STATE_INT),
	STATE_FIELD(pi, bad_lines, STATE_INT),
	STATE_FIELD(pi, open_by, STATE_INT),
	STATE_FIELD(pi, interrupt_by, STATE_INT),
	STATE_FIELD(pi, close_by, STATE_INT),
	STATE_FIELD(pi, closes, STATE_BOOL),
	STATE_FIELD(pi, is_shut, STATE_BOOL),
	STATE_FIELD(pi, in_turn, STATE_BOOL),
	STATE_FIELD(pi, is_started, STATE_BOOL),
	STATE_FIELD(pi, is_unasked, STATE_BOOL),
	STATE_FIELD(pi, is_interrupted, STATE_BOOL),
	STATE_FIELD(pi, is_aborting, STATE_BOOL),
	STATE_FIELD(pi, stop, STATE_TEXT),
	STATE_FIELD(pi, error, STATE_TEXT),
	STATE_FIELD(pi, messages, STATE_INT),
	STATE_FIELD(pi, stream_key, STATE_TEXT),
	STATE_FIELD(pi, stream_sent, STATE_INT),
	STATE_FIELD(pi, stream_is_thought, STATE_BOOL),
	STATE_FIELD(pi, blocks, STATE_INT),
	STATE_FIELD(pi, retry_key, STATE_TEXT),
	STATE_FIELD(pi, compaction_key, STATE_TEXT),
	STATE_FIELD(pi, input, STATE_INT),
	STATE_FIELD(pi, cached, STATE_INT),
	STATE_FIELD(pi, output, STATE_INT),
	STATE_FIELD(pi, thought, STATE_INT),
	STATE_FIELD(pi, cost_nano, STATE_INT),
	STATE_FIELD(pi, has_usage, STATE_BOOL),
	STATE_FIELD(pi, context_used, STATE_INT),
	STATE_FIELD(pi, context_size, STATE_INT),
	STATE_FIELD(pi, items, STATE_JSON),
	STATE_FIELD(pi, asks, STATE_JSON),
	STATE_FIELD(pi, controls, STATE_JSON),
	STATE_FIELDS_END,
};

void pi_state_init(struct pi *p)
{
	state_make_tables(pi_fields, p);
}

void pi_state_finish(struct pi *p)
{
	state_free(pi_fields, p);
}

void pi_save(const struct agent *agent, struct json_writer *w)
{
	state_save(pi_fields, agent, w);
}

int pi_load(struct agent *agent, const json_t *state, struct failure *f)
{
	return state_reload(pi_fields, state, agent, f);
}

void pi_set(struct str *field, struct str value)
{
	char text[LIMIT_PI_TEXT_BYTES];

	state_text(field, (struct str){text, state_plain(text, sizeof(text), value)});
}

struct str pi_id(struct arena *arena, struct str id)
{
	char *text;

	if (id.p == NULL)
		return STR_NONE;
	text = arena_alloc(arena, LIMIT_PI_ID_BYTES);
	return (struct str){text, state_plain(text, LIMIT_PI_ID_BYTES, id)};
}
