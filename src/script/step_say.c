/* Steps that only tell the client something. */
#include "script/private.h"

#include <stdlib.h>

/* ---- text ---- */

static struct str chunk_members(struct arena *arena, struct str message, struct str text)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_kstr(&w, "messageId", message);
	jw_kobject(&w, "content");
	jw_ktext(&w, "type", "text");
	jw_kstr(&w, "text", text);
	jw_object_end(&w);
	return buf_str(&out);
}

static void send_chunk(struct turn *turn, const char *kind, struct str message, struct str text)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create(); /* a long text has many chunks */

	script_session_update_members(turn->session, kind, chunk_members(arena, message, text));
}

static void keep_text(struct turn *turn, const char *kind, struct str message, struct str text)
{
	turn->output_bytes += (int64_t)text.n;
	script_session_keep(turn->session, kind, chunk_members(turn->arena, message, text));
}

/* What was said is kept even when it was not said to the end. */
static enum outcome stream(struct turn *turn, const struct step *step, const char *field, const char *kind)
{
	struct str text = step_text_of(turn, step, field), message = turn_new_id(turn, "message");
	size_t characters = (size_t)step_number(step, "chunk"), said = 0;
	int64_t delay_ms = step_number(step, "delay_ms");
	enum outcome outcome = GO_ON;

	do {
		struct str rest = {text.p + said, text.n - said};
		size_t n = utf8_offset(rest, characters);

		if (said > 0)
			outcome = turn_wait(turn, delay_ms, NULL);
		if (outcome == GO_ON) {
			send_chunk(turn, kind, message, (struct str){rest.p, n});
			said += n;
		}
	} while (said < text.n && outcome == GO_ON);
	keep_text(turn, kind, message, (struct str){text.p, said});
	return outcome;
}

STEP(text)
{
	return stream(turn, step, "text", "agent_message_chunk");
}

STEP(reasoning)
{
	return stream(turn, step, "reasoning", "agent_thought_chunk");
}

void turn_say(struct turn *turn, struct str text)
{
	struct str message = turn_new_id(turn, "message");

	send_chunk(turn, "agent_message_chunk", message, text);
	keep_text(turn, "agent_message_chunk", message, text);
}

STEP(result)
{
	turn_say(turn, turn_json(turn, step_value(step, "result")->node));
	return GO_ON;
}

STEP(result_text)
{
	turn_say(turn, step_text_of(turn, step, "result_text"));
	return GO_ON;
}

/* ---- plan, tool, usage ---- */

STEP(plan)
{
	const struct yaml *list = step_value(step, "plan")->node;
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_karray(&w, "entries");
	for (size_t i = 0; i < list->count; i++) {
		const struct yaml *entry = list->entries[i].value;

		jw_object_begin(&w);
		jw_kstr(&w, "content", turn_text(turn, yaml_get(entry, STR("content"))->text));
		jw_ktext(&w, "priority", "medium");
		jw_kstr(&w, "status", yaml_get(entry, STR("status"))->text);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	script_session_update_members(turn->session, "plan", buf_str(&out));
	script_session_keep(turn->session, "plan", buf_str(&out));
	return GO_ON;
}

/* The text, repeated and cut to `bytes` at a whole character; bytes 0: as it is. */
static struct str padded(struct turn *turn, struct str text, size_t bytes)
{
	struct buf out;

	if (bytes == 0)
		return text;
	if (text.n == 0)
		text = STR("output ");
	buf_init(&out, turn->arena, SIZE_MAX);
	while (out.n < bytes)
		buf_add(&out, text.p, text.n);
	return (struct str){out.p, utf8_cut(buf_str(&out), bytes)};
}

STEP(tool)
{
	static const char *const statuses[] = {"completed", "failed"};
	struct str output = padded(turn, step_text_of(turn, step, "output"), (size_t)step_number(step, "output_bytes"));
	struct tool_call call;
	enum outcome outcome;

	tool_begin(turn, &call, "in_progress",
		tool_head(turn, step_text_of(turn, step, "title"), tool_kinds[step_number(step, "kind")]));
	outcome = turn_wait(turn, step_number(step, "duration_ms"), NULL);
	tool_end(turn, &call, outcome == ENDED ? "failed" : statuses[step_number(step, "status")],
		output.p == NULL || outcome == ENDED ? STR("") : tool_content(turn, output));
	return outcome;
}

/* The gauge shows what a model's context of this size would hold. */
#define CONTEXT_TOKENS 200000

STEP(usage)
{
	struct turn_usage *usage = &turn->usage;
	struct str members;
	int64_t used;

	usage->is_told = true;
	usage->input += step_number(step, "input");
	usage->cached += step_number(step, "cached");
	usage->output += step_number(step, "output");
	usage->reasoning += step_number(step, "reasoning");
	if ((turn->agent->scenario->without & WITHOUT_USAGE) != 0)
		return GO_ON;
	used = usage->input + usage->cached + usage->output + usage->reasoning;
	members = str_printf(turn->arena, "\"used\":%lld,\"size\":%d", (long long)used, CONTEXT_TOKENS);
	script_session_update_members(turn->session, "usage_update", members);
	return GO_ON;
}

/* ---- what the agent knows ---- */

STEP(env)
{
	struct str name = step_text_of(turn, step, "env");
	bool is_set = getenv(str_z(turn->arena, name)) != NULL;

	turn_say(turn, str_printf(turn->arena, "%.*s is %s", STRF(name), is_set ? "set" : "not set"));
	return GO_ON;
}

STEP(cwd)
{
	(void)step;
	turn_say(turn, str_of(turn_cwd(turn)));
	return GO_ON;
}

STEP(remember)
{
	const struct yaml *pairs = step_value(step, "remember")->node;
	struct failure f;
	int rc;

	for (size_t i = 0; i < pairs->count; i++) {
		struct str key = pairs->entries[i].key, value = turn_text(turn, pairs->entries[i].value->text);

		(void)pthread_mutex_lock(&turn->agent->lock);
		(void)json_object_setn_new(turn->session->memory, key.p, key.n, json_stringn(value.p, value.n));
		(void)pthread_mutex_unlock(&turn->agent->lock);
	}
	failure_init(&f, turn->arena);
	(void)pthread_mutex_lock(&turn->agent->lock);
	rc = script_session_save(turn->session, &f);
	(void)pthread_mutex_unlock(&turn->agent->lock);
	return rc == 0 ? GO_ON : turn_fail(turn, (struct rpc_error){RPC_INTERNAL, f.message, STR_NONE});
}

STEP(recall)
{
	struct str key = step_text_of(turn, step, "recall"), value;

	(void)pthread_mutex_lock(&turn->agent->lock);
	value = json_str(json_object_getn(turn->session->memory, key.p, key.n));
	if (value.p != NULL)
		value = str_dup(turn->arena, value);
	(void)pthread_mutex_unlock(&turn->agent->lock);
	turn_say(turn, value.p != NULL ? value : str_printf(turn->arena, "nothing is remembered as %.*s", STRF(key)));
	return GO_ON;
}
