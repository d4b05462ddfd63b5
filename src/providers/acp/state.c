/* What survives between two inputs (2), and how much of it (1). */
#include "providers/acp/acp.h"

#include "providers/state.h"

static const struct state_field speaker_fields[] = {
	STATE_FIELD(acp_speaker, session, STATE_TEXT),
	STATE_FIELD(acp_speaker, item, STATE_TEXT),
	STATE_FIELD(acp_speaker, text_key, STATE_TEXT),
	STATE_FIELD(acp_speaker, text_id, STATE_TEXT),
	STATE_FIELD(acp_speaker, thought_key, STATE_TEXT),
	STATE_FIELD(acp_speaker, thought_id, STATE_TEXT),
	STATE_FIELDS_END,
};

static const struct state_field tool_fields[] = {
	STATE_FIELD(acp_tool, id, STATE_TEXT),
	STATE_FIELD(acp_tool, key, STATE_TEXT),
	STATE_RANGE(acp_tool, speaker, 0, LIMIT_AGENT_CHILDREN),
	STATE_RANGE(acp_tool, kind, 0, ACP_KINDS - 1),
	STATE_RANGE(acp_tool, item_kind, 0, ITEM_NOTICE),
	STATE_RANGE(acp_tool, status, 0, AGENT_CANCELLED),
	STATE_FIELD(acp_tool, is_shown, STATE_BOOL),
	STATE_FIELD(acp_tool, is_ours, STATE_BOOL),
	STATE_FIELD(acp_tool, is_mcp, STATE_BOOL),
	STATE_FIELD(acp_tool, is_rejected, STATE_BOOL),
	STATE_FIELD(acp_tool, hides_paths, STATE_BOOL),
	STATE_FIELD(acp_tool, paths, STATE_JSON),
	STATE_FIELD(acp_tool, held, STATE_JSON),
	STATE_FIELDS_END,
};

static const struct state_field request_fields[] = {
	STATE_FIELD(acp_request, id, STATE_TEXT),
	STATE_FIELD(acp_request, key, STATE_TEXT),
	STATE_FIELD(acp_request, tool, STATE_TEXT),
	STATE_RANGE(acp_request, form, 0, ACP_FORMS - 1),
	STATE_FIELD(acp_request, leaves_plan, STATE_BOOL),
	STATE_FIELD(acp_request, kept, STATE_JSON),
	STATE_FIELDS_END,
};

static const struct state_field fields[] = {
	STATE_RANGE(acp, phase, 0, ACP_OVER),
	STATE_RANGE(acp, runtime, 0, RUNTIME_FULL_ACCESS),
	STATE_RANGE(acp, interaction, 0, INTERACTION_DEFAULT),
	STATE_FIELD(acp, profile_name, STATE_TEXT),
	STATE_FIELD(acp, session, STATE_TEXT),
	STATE_FIELD(acp, version, STATE_TEXT),
	STATE_FIELD(acp, model, STATE_TEXT),
	STATE_FIELD(acp, mode, STATE_TEXT),
	STATE_FIELD(acp, can_load, STATE_BOOL),
	STATE_FIELD(acp, can_resume, STATE_BOOL),
	STATE_FIELD(acp, can_fork, STATE_BOOL),
	STATE_FIELD(acp, can_close, STATE_BOOL),
	STATE_FIELD(acp, has_http_mcp, STATE_BOOL),
	STATE_FIELD(acp, can_steer, STATE_BOOL),
	STATE_FIELD(acp, has_plan_option, STATE_BOOL),
	STATE_FIELD(acp, is_planning, STATE_BOOL),
	STATE_FIELD(acp, has_usage, STATE_BOOL),
	STATE_FIELD(acp, was_authenticated, STATE_BOOL),
	STATE_FIELD(acp, is_resumed, STATE_BOOL),
	STATE_FIELD(acp, has_instructions_due, STATE_BOOL),
	STATE_FIELD(acp, has_refused_mode, STATE_BOOL),
	STATE_FIELD(acp, has_mcp_trouble, STATE_BOOL),
	STATE_FIELD(acp, auth_methods, STATE_TEXT),
	STATE_RANGE(acp, mode_place, 0, PLACE_OPTION),
	STATE_RANGE(acp, model_place, 0, PLACE_OPTION),
	STATE_FIELD(acp, mode_option, STATE_TEXT),
	STATE_FIELD(acp, model_option, STATE_TEXT),
	STATE_FIELD(acp, modes, STATE_JSON),
	STATE_FIELD(acp, options, STATE_JSON),
	STATE_FIELD(acp, heard_at, STATE_INT),
	STATE_FIELD(acp, open_due, STATE_INT),
	STATE_FIELD(acp, quiet_due, STATE_INT),
	STATE_FIELD(acp, cancel_due, STATE_INT),
	STATE_FIELD(acp, is_replaying, STATE_BOOL),
	STATE_FIELD(acp, select_key, STATE_TEXT),
	STATE_RANGE(acp, runtime_before, 0, RUNTIME_FULL_ACCESS),
	STATE_RANGE(acp, interaction_before, 0, INTERACTION_DEFAULT),
	STATE_FIELD(acp, turn, STATE_INT),
	STATE_FIELD(acp, made, STATE_INT),
	STATE_FIELD(acp, is_cancelled, STATE_BOOL),
	STATE_FIELD(acp, is_stalled, STATE_BOOL),
	STATE_FIELD(acp, was_denied, STATE_BOOL),
	STATE_FIELD(acp, has_content, STATE_BOOL),
	STATE_FIELD(acp, saw_system_error, STATE_BOOL),
	STATE_FIELD(acp, has_silence_notice, STATE_BOOL),
	STATE_FIELD(acp, has_drop_notice, STATE_BOOL),
	STATE_FIELD(acp, has_cost, STATE_BOOL),
	STATE_FIELD(acp, cost, STATE_INT),
	STATE_FIELD(acp, cost_before, STATE_INT),
	STATE_FIELD(acp, error_text, STATE_TEXT),
	STATE_FIELD(acp, todos, STATE_JSON),
	STATE_FIELDS_END,
};

/* The lists: their rows, and where they and their counts are. */
struct list {
	const char *name;
	const struct state_field *fields;
	size_t row_size, rows_at, count_at;
	size_t most;
};

static const struct list lists[] = {
	{"speakers", speaker_fields, sizeof(struct acp_speaker), offsetof(struct acp, speakers),
		offsetof(struct acp, speaker_count), LIMIT_AGENT_CHILDREN + 1},
	{"tools", tool_fields, sizeof(struct acp_tool), offsetof(struct acp, tools), offsetof(struct acp, tool_count),
		LIMIT_AGENT_TOOLS},
	{"requests", request_fields, sizeof(struct acp_request), offsetof(struct acp, requests),
		offsetof(struct acp, request_count), LIMIT_AGENT_REQUESTS},
};

#define LIST_COUNT (sizeof(lists) / sizeof(lists[0]))

static int64_t *count_of(const struct acp *a, const struct list *list)
{
	return (int64_t *)(void *)((char *)(uintptr_t)a + list->count_at);
}

static void *row_of(const struct acp *a, const struct list *list, int64_t i)
{
	return (char *)(uintptr_t)a + list->rows_at + (size_t)i * list->row_size;
}

static void drop(struct acp *a, const struct list *list, int64_t i)
{
	int64_t *count = count_of(a, list);

	state_free(list->fields, row_of(a, list, i));
	(*count)--;
	memmove(row_of(a, list, i), row_of(a, list, i + 1), (size_t)(*count - i) * list->row_size);
	memset(row_of(a, list, *count), 0, list->row_size);
}

void acp_speaker_drop(struct acp *a, int64_t i)
{
	drop(a, &lists[0], i);
}

void acp_tool_drop(struct acp *a, int64_t i)
{
	drop(a, &lists[1], i);
}

void acp_request_drop(struct acp *a, int64_t i)
{
	drop(a, &lists[2], i);
}

void acp_save(const struct agent *agent, struct json_writer *w)
{
	struct acp *a = (struct acp *)(uintptr_t)agent;

	state_text(&a->profile_name, str_of(a->profile->name));
	jw_object_begin(w);
	jw_key(w, "rpc");
	rpc_save(&a->rpc, w);
	jw_key(w, "session");
	state_save(fields, a, w);
	for (size_t i = 0; i < LIST_COUNT; i++) {
		jw_karray(w, lists[i].name);
		for (int64_t row = 0; row < *count_of(a, &lists[i]); row++)
			state_save(lists[i].fields, row_of(a, &lists[i], row), w);
		jw_array_end(w);
	}
	jw_object_end(w);
}

static int load_list(struct acp *a, const struct list *list, const json_t *state, struct failure *f)
{
	const json_t *rows = json_object_get(state, list->name);
	size_t count = json_array_size(rows);

	if (count > list->most)
		return fail(f, FAIL_INTERNAL, "The stored state of a driver has %zu %s.", count, list->name);
	for (size_t i = 0; i < count; i++) {
		if (state_load(list->fields, json_array_get(rows, i), row_of(a, list, (int64_t)i), f) != 0)
			return -1;
		(*count_of(a, list))++;
	}
	return 0;
}

int acp_load(struct agent *agent, const json_t *state, struct failure *f)
{
	struct acp *a = (struct acp *)agent;

	acp_forget(a);
	if (rpc_load(&a->rpc, json_object_get(state, "rpc"), f) != 0 ||
		state_load(fields, json_object_get(state, "session"), a, f) != 0)
		return -1;
	a->profile = acp_profile_named(a->profile_name);
	if (a->profile == NULL) {
		a->profile = acp_profile_of_kind(a->agent.driver->kind);
		return fail(f, FAIL_INTERNAL, "The stored state of a driver names no known agent.");
	}
	for (size_t i = 0; i < LIST_COUNT; i++)
		if (load_list(a, &lists[i], state, f) != 0)
			return -1;
	for (int64_t i = 0; i < a->tool_count; i++)
		if (a->tools[i].speaker >= a->speaker_count)
			return fail(f, FAIL_INTERNAL, "The stored state of a driver has a tool of nobody.");
	return 0;
}

void acp_forget(struct acp *a)
{
	rpc_finish(&a->rpc);
	for (size_t i = 0; i < LIST_COUNT; i++)
		while (*count_of(a, &lists[i]) > 0)
			drop(a, &lists[i], *count_of(a, &lists[i]) - 1);
	state_free(fields, a);
}

/* ---- how much is kept ---- */

static size_t cost_of(const struct state_field *of, const void *row)
{
	size_t cost = 0;

	for (const struct state_field *field = of; field->name != NULL; field++) {
		const void *at = (const char *)row + field->at;

		if (field->type == STATE_TEXT)
			cost += state_cost(*(const struct str *)at);
		else if (field->type == STATE_JSON && *(json_t *const *)at != NULL)
			cost += json_dumpb(*(json_t *const *)at, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
	}
	return cost;
}

bool acp_has_room(const struct acp *a, size_t more)
{
	size_t cost = more + cost_of(fields, a);

	for (int64_t i = 0; i < a->rpc.call_count; i++)
		cost += state_cost(a->rpc.calls[i].note);
	for (size_t i = 0; i < LIST_COUNT; i++)
		for (int64_t row = 0; row < *count_of(a, &lists[i]); row++)
			cost += cost_of(lists[i].fields, row_of(a, &lists[i], row));
	return cost <= LIMIT_AGENT_KEPT_BYTES;
}
