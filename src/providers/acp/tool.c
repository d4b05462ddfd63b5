/* Tools: tool_call and tool_call_update are one upsert by toolCallId, and either may be the first. */
#include "providers/acp/acp.h"

#include "providers/state.h"

static const char *const kind_names[ACP_KINDS] = {"", "read", "edit", "delete", "move", "search", "execute", "think", "fetch",
	"switch_mode", "other"};

const char *acp_kind_name(int64_t kind)
{
	return kind_names[kind];
}

static int64_t kind_of(struct str name)
{
	for (int64_t kind = KIND_READ; kind < ACP_KINDS; kind++)
		if (str_eq(name, str_of(kind_names[kind])))
			return kind;
	return name.n == 0 ? KIND_NONE : KIND_OTHER;
}

static bool has_ended(const struct acp_tool *tool)
{
	return tool->status != AGENT_PENDING && tool->status != AGENT_RUNNING;
}

bool acp_has_open_tool(const struct acp *a)
{
	for (int64_t i = 0; i < a->tool_count; i++)
		if (!has_ended(&a->tools[i]))
			return true;
	return false;
}

struct acp_tool *acp_tool_find(struct acp *a, int64_t speaker, struct str id)
{
	for (int64_t i = 0; i < a->tool_count; i++)
		if (a->tools[i].speaker == speaker && str_eq(a->tools[i].id, id))
			return &a->tools[i];
	return NULL;
}

static bool evict_one(struct acp *a)
{
	for (int64_t i = 0; i < a->tool_count; i++)
		if (has_ended(&a->tools[i])) {
			acp_tool_drop(a, i);
			return true;
		}
	return false;
}

static struct acp_tool *add(struct acp *a, int64_t speaker, struct str id, struct agent_out *out)
{
	struct str key = str_printf(out->arena, "%" PRId64 ":%.*s", a->turn, STRF(id));
	size_t cost = state_cost(id) + state_cost(key);
	struct acp_tool *tool;

	if (speaker > 0)
		key = str_printf(out->arena, "%" PRId64 ".%" PRId64 ":%.*s", a->turn, speaker, STRF(id));
	while (a->tool_count == LIMIT_AGENT_TOOLS || !acp_has_room(a, cost))
		if (!evict_one(a))
			return NULL;
	tool = &a->tools[a->tool_count++];
	tool->speaker = speaker;
	tool->status = AGENT_PENDING;
	state_text(&tool->id, id);
	state_text(&tool->key, key);
	a->has_content = true;
	return tool;
}

/* ---- paths: what a permission to edit is judged by ---- */

static void add_path(struct acp *a, struct acp_tool *tool, const json_t *path)
{
	struct str text = json_str(path);
	size_t kept = 0;
	const json_t *other;
	size_t i;

	if (text.p == NULL)
		return;
	json_array_foreach (tool->paths, i, other) {
		if (str_eq(json_str(other), text))
			return;
		kept += json_str(other).n;
	}
	if (kept + text.n > LIMIT_AGENT_HELD_BYTES || !acp_has_room(a, state_cost(text) + 2)) {
		tool->hides_paths = true;
		return;
	}
	if (tool->paths == NULL)
		tool->paths = json_array();
	json_array_append_new(tool->paths, json_stringn_nocheck(text.p, text.n));
}

/* All that an agent ever says a tool touches counts, whether a later update replaces it or not. */
static void add_paths(struct acp *a, struct acp_tool *tool, const json_t *update)
{
	static const char *const members[] = {"file_path", "filePath", "path", "abs_path", "notebook_path", "new_path", "newPath",
		"destination", "target_file"};
	const json_t *input = json_object_get(update, "rawInput");
	const json_t *element;
	size_t i;

	json_array_foreach (json_object_get(update, "locations"), i, element)
		add_path(a, tool, json_object_get(element, "path"));
	json_array_foreach (json_object_get(update, "content"), i, element)
		add_path(a, tool, json_object_get(element, "path"));
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		add_path(a, tool, json_object_get(input, members[i]));
}

/* ---- first descriptions ---- */

static void decref(void *value)
{
	json_decref(value);
}

/* The members of `update` over those that were held back. */
static const json_t *with_held(struct acp_tool *tool, const json_t *update, struct arena *arena)
{
	json_t *merged;
	const char *key;
	json_t *value;

	if (tool->held == NULL)
		return update;
	merged = json_copy(tool->held);
	arena_at_end(arena, decref, merged);
	json_object_foreach ((json_t *)(uintptr_t)update, key, value) {
		if (!json_is_null(value))
			json_object_set(merged, key, value);
	}
	state_json(&tool->held, NULL);
	return merged;
}

/* Its kind is not known yet, and an item keeps its kind: wait for the next word about it. */
static void hold(struct acp *a, struct acp_tool *tool, const json_t *description)
{
	size_t cost = json_dumpb(description, NULL, 0, JSON_COMPACT);

	if (cost <= LIMIT_AGENT_HELD_BYTES && acp_has_room(a, cost))
		state_json(&tool->held, json_incref((json_t *)(uintptr_t)description));
}

/* ---- the upsert ---- */

static void take_status(struct acp_tool *tool, struct str status)
{
	if (str_eq(status, STR("completed")))
		tool->status = AGENT_COMPLETED;
	else if (str_eq(status, STR("failed")))
		tool->status = AGENT_FAILED;
	else if (str_eq(status, STR("in_progress")) && !has_ended(tool))
		tool->status = AGENT_RUNNING;
}

static void tell(struct acp *a, struct acp_tool *tool, const json_t *update, bool has_changed, struct agent_out *out)
{
	struct str title = json_member_str(update, "title");
	struct str body;

	if (!tool->is_shown)
		tool->item_kind = acp_item_kind(a, tool, update);
	body = acp_tool_body(tool, update, out->arena);
	if (tool->is_shown && !has_changed && body.p == NULL && title.n == 0)
		return;
	tool->is_shown = true;
	acp_show_item(out, (enum agent_item_kind)tool->item_kind, tool->key, a->speakers[tool->speaker].item,
		(enum agent_status)tool->status, title, body);
}

static struct acp_tool *upsert(struct acp *a, int64_t speaker, const json_t *update, bool must_show, struct agent_out *out)
{
	struct str id = json_member_str(update, "toolCallId");
	struct acp_tool *tool = acp_tool_find(a, speaker, id);
	int64_t kind = kind_of(json_member_str(update, "kind"));
	int64_t before;
	bool is_ours = false;

	if (tool == NULL && (id.n == 0 || id.n > LIMIT_AGENT_ID_BYTES || (tool = add(a, speaker, id, out)) == NULL)) {
		if (!a->has_drop_notice)
			acp_show_notice(a, "warning", STR("The agent uses more tools at once than can be followed."), out);
		a->has_drop_notice = true;
		return NULL;
	}
	before = tool->status;
	update = with_held(tool, update, out->arena);
	take_status(tool, json_member_str(update, "status"));
	/* What once was a command is judged as one, whatever it is called later. */
	if (kind != KIND_NONE && tool->kind != KIND_EXECUTE)
		tool->kind = kind;
	tool->is_mcp |= acp_is_mcp(a, update, &is_ours);
	tool->is_ours |= is_ours;
	add_paths(a, tool, update);
	if (tool->is_shown || must_show || tool->kind != KIND_NONE || tool->is_mcp || tool->status != AGENT_PENDING)
		tell(a, tool, update, tool->status != before, out);
	else
		hold(a, tool, update);
	return tool;
}

void acp_tool_update(struct acp *a, int64_t speaker, const json_t *update, struct agent_out *out)
{
	(void)upsert(a, speaker, update, false, out);
}

struct acp_tool *acp_tool_show(struct acp *a, int64_t speaker, const json_t *update, struct agent_out *out)
{
	return upsert(a, speaker, update, true, out);
}

void acp_end_tools(struct acp *a, bool was_cancelled, struct agent_out *out)
{
	for (int64_t i = 0; i < a->tool_count; i++) {
		struct acp_tool *tool = &a->tools[i];
		bool is_silent = !has_ended(tool);

		if (!is_silent)
			continue;
		if (!tool->is_shown)
			tell(a, tool, with_held(tool, NULL, out->arena), true, out);
		tool->status = was_cancelled || tool->is_rejected ? AGENT_FAILED : AGENT_COMPLETED;
		acp_show_item(out, (enum agent_item_kind)tool->item_kind, tool->key, a->speakers[tool->speaker].item,
			(enum agent_status)tool->status, STR_NONE, STR("{\"note\":\"no end reported\"}"));
	}
}
