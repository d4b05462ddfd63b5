#include "providers/rpc.h"

#include "providers/state.h"

#include <assert.h>

static const struct state_field call_fields[] = {
	STATE_FIELD(rpc_call, id, STATE_INT),
	STATE_FIELD(rpc_call, method, STATE_INT),
	STATE_FIELD(rpc_call, due, STATE_INT),
	STATE_FIELD(rpc_call, note, STATE_TEXT),
	STATE_FIELDS_END,
};

static const struct state_field rpc_fields[] = {
	STATE_FIELD(rpc, last_id, STATE_INT),
	STATE_FIELD(rpc, garbage, STATE_INT),
	STATE_FIELDS_END,
};

/* Removes the call at `i`; its note moves to the arena. */
static void take(struct rpc *rpc, int64_t i, struct arena *arena, struct rpc_call *out)
{
	*out = rpc->calls[i];
	out->note = str_dup(arena, out->note);
	state_free(call_fields, &rpc->calls[i]);
	rpc->call_count--;
	memmove(&rpc->calls[i], &rpc->calls[i + 1], (size_t)(rpc->call_count - i) * sizeof(rpc->calls[0]));
	rpc->calls[rpc->call_count] = (struct rpc_call){0};
}

static void decref(void *value)
{
	json_decref(value);
}

static void read_answer(struct rpc *rpc, struct arena *arena, const json_t *whole, struct rpc_message *out)
{
	const json_t *id = json_object_get(whole, "id");
	const json_t *error = json_object_get(whole, "error");
	const json_t *result = json_object_get(whole, "result");

	if (!json_is_integer(id) || (!json_is_object(error) && result == NULL))
		return;
	for (int64_t i = 0; i < rpc->call_count; i++)
		if (rpc->calls[i].id == json_integer_value(id)) {
			take(rpc, i, arena, &out->call);
			out->kind = json_is_object(error) ? RPC_ERROR : RPC_RESULT;
			out->error = error;
			out->result = result;
			return;
		}
}

static void read_question(struct arena *arena, const json_t *whole, struct rpc_message *out)
{
	const json_t *id = json_object_get(whole, "id");

	if (id != NULL && !json_is_integer(id) && !json_is_string(id) && !json_is_null(id) && !json_is_real(id))
		return;
	out->kind = id == NULL ? RPC_NOTIFICATION : RPC_REQUEST;
	if (id != NULL)
		out->id = json_canonical(arena, id);
	out->method = json_member_str(whole, "method");
	if (out->method.n > 0 && out->method.p[0] == '_')
		out->method = (struct str){out->method.p + 1, out->method.n - 1};
	out->params = json_object_get(whole, "params");
	if (!json_is_object(out->params))
		out->params = NULL;
}

void rpc_read(struct rpc *rpc, struct arena *arena, struct str line, struct rpc_message *out)
{
	struct json_error error;
	json_t *whole = json_read(line, &error);

	*out = (struct rpc_message){.kind = RPC_NOTHING};
	if (whole != NULL)
		arena_at_end(arena, decref, whole);
	if (whole == NULL && error.problem == JSON_OVER_LIMIT) {
		out->kind = RPC_OVERSIZE;
		return;
	}
	if (!json_is_object(whole)) {
		if (++rpc->garbage >= LIMIT_AGENT_GARBAGE_LINES)
			out->kind = RPC_VIOLATION;
		return;
	}
	rpc->garbage = 0;
	if (json_is_string(json_object_get(whole, "method")))
		read_question(arena, whole, out);
	else
		read_answer(rpc, arena, whole, out);
}

static struct json_writer *begin(struct rpc_line *line, struct agent_out *out)
{
	*line = (struct rpc_line){.out = out};
	buf_init(&line->text, out->arena, SIZE_MAX);
	json_writer_init(&line->w, &line->text);
	jw_object_begin(&line->w);
	jw_ktext(&line->w, "jsonrpc", "2.0");
	return &line->w;
}

static struct json_writer *begin_params(struct rpc_line *line, const char *method)
{
	jw_ktext(&line->w, "method", method);
	jw_kobject(&line->w, "params");
	line->has_params = true;
	return &line->w;
}

struct json_writer *rpc_call(struct rpc *rpc, struct rpc_line *line, struct agent_out *out, const char *method,
	int64_t number, int64_t due)
{
	assert(!rpc_is_full(rpc));
	rpc->calls[rpc->call_count++] = (struct rpc_call){.id = ++rpc->last_id, .method = number, .due = due};
	begin(line, out);
	jw_kint(&line->w, "id", rpc->last_id);
	return begin_params(line, method);
}

struct json_writer *rpc_notify(struct rpc_line *line, struct agent_out *out, const char *method)
{
	begin(line, out);
	return begin_params(line, method);
}

struct json_writer *rpc_answer(struct rpc_line *line, struct agent_out *out, struct str id)
{
	begin(line, out);
	jw_kraw(&line->w, "id", id);
	jw_key(&line->w, "result");
	return &line->w;
}

void rpc_end(struct rpc_line *line)
{
	if (line->has_params)
		jw_object_end(&line->w);
	jw_object_end(&line->w);
	agent_out_line(line->out, buf_str(&line->text), line->has_secret);
}

void rpc_refuse(struct agent_out *out, struct str id, enum rpc_code code, const char *message)
{
	struct rpc_line line;
	struct json_writer *w = begin(&line, out);

	jw_kraw(w, "id", id);
	jw_kobject(w, "error");
	jw_kint(w, "code", code);
	jw_ktext(w, "message", message);
	jw_object_end(w);
	rpc_end(&line);
}

void rpc_note(struct rpc *rpc, struct str note)
{
	state_text(&rpc->calls[rpc->call_count - 1].note, note);
}

bool rpc_is_full(const struct rpc *rpc)
{
	return rpc->call_count >= LIMIT_AGENT_CALLS;
}

int64_t rpc_waiting(const struct rpc *rpc, int64_t number)
{
	int64_t waiting = 0;

	for (int64_t i = 0; i < rpc->call_count; i++)
		waiting += rpc->calls[i].method == number;
	return waiting;
}

int64_t rpc_due(const struct rpc *rpc)
{
	int64_t due = 0;

	for (int64_t i = 0; i < rpc->call_count; i++)
		if (rpc->calls[i].due != 0 && (due == 0 || rpc->calls[i].due < due))
			due = rpc->calls[i].due;
	return due;
}

bool rpc_expire(struct rpc *rpc, int64_t now, struct arena *arena, struct rpc_call *out)
{
	for (int64_t i = 0; i < rpc->call_count; i++)
		if (now == INT64_MAX || (rpc->calls[i].due != 0 && rpc->calls[i].due <= now)) {
			take(rpc, i, arena, out);
			return true;
		}
	return false;
}

void rpc_save(const struct rpc *rpc, struct json_writer *w)
{
	jw_object_begin(w);
	jw_key(w, "counters");
	state_save(rpc_fields, rpc, w);
	jw_karray(w, "calls");
	for (int64_t i = 0; i < rpc->call_count; i++)
		state_save(call_fields, &rpc->calls[i], w);
	jw_array_end(w);
	jw_object_end(w);
}

int rpc_load(struct rpc *rpc, const json_t *state, struct failure *f)
{
	const json_t *calls = json_object_get(state, "calls");
	size_t count = json_array_size(calls);

	if (count > LIMIT_AGENT_CALLS)
		return fail(f, FAIL_INTERNAL, "The stored state of a driver has %zu calls.", count);
	if (state_load(rpc_fields, json_object_get(state, "counters"), rpc, f) != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (state_load(call_fields, json_array_get(calls, i), &rpc->calls[i], f) != 0)
			return -1;
		rpc->call_count++;
	}
	return 0;
}

void rpc_finish(struct rpc *rpc)
{
	for (int64_t i = 0; i < rpc->call_count; i++)
		state_free(call_fields, &rpc->calls[i]);
	*rpc = (struct rpc){0};
}
