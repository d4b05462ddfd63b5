/* What a tool did, in the one form of the engine, out of many shapes. */
#include "providers/acp/acp.h"

/* ---- which kind of item ---- */

static struct str meta_tool_name(const json_t *update)
{
	const json_t *meta = json_object_get(update, "_meta");
	struct str name = json_member_str(json_object_get(meta, "claudeCode"), "toolName");

	return name.n > 0 ? name : json_member_str(json_object_get(meta, "x.ai/tool"), "name");
}

static bool is_codex_mcp(const json_t *update)
{
	return json_is_true(json_object_get(json_object_get(update, "_meta"), "is_mcp_tool_call"));
}

bool acp_is_mcp(const struct acp *a, const json_t *update, bool *is_ours)
{
	const json_t *input = json_object_get(update, "rawInput");
	struct str id = json_member_str(update, "toolCallId");
	struct str title = json_member_str(update, "title");
	struct str name;
	bool is_mcp = false;

	*is_ours = false;
	switch (a->profile->mcp_sign) {
	case MCP_SIGN_NONE:
		return is_codex_mcp(update);
	case MCP_SIGN_GEMINI:
		is_mcp = str_starts(id, STR("mcp_"));
		*is_ours = str_starts(id, STR("mcp_" ACP_MCP_NAME "_"));
		break;
	case MCP_SIGN_GROK:
		name = json_member_str(input, "tool_name");
		is_mcp = str_eq(json_member_str(input, "variant"), STR("UseTool"));
		*is_ours = is_mcp && str_starts(name, STR(ACP_MCP_NAME "__"));
		break;
	case MCP_SIGN_OPENCODE:
		*is_ours = is_mcp = str_eq(json_member_str(update, "kind"), STR("other")) && str_starts(title, STR(ACP_MCP_NAME "_"));
		break;
	case MCP_SIGN_CLAUDE:
		name = meta_tool_name(update);
		is_mcp = str_starts(name, STR("mcp__"));
		*is_ours = str_starts(name, STR("mcp__" ACP_MCP_NAME "__"));
		break;
	case MCP_SIGN_CODEX:
		is_mcp = is_codex_mcp(update);
		*is_ours = is_mcp && str_eq(json_member_str(input, "server"), STR(ACP_MCP_NAME));
		break;
	}
	*is_ours = *is_ours && a->config.mcp_url.n > 0 && a->has_http_mcp;
	return is_mcp;
}

struct str acp_plan_text(const json_t *update)
{
	return json_member_str(json_object_get(update, "rawInput"), "plan");
}

enum agent_item_kind acp_item_kind(const struct acp *a, const struct acp_tool *tool, const json_t *update)
{
	if (a->profile->asks_by_permission && str_starts(json_member_str(update, "title"), STR("Running start_subagent")))
		return ITEM_SUBAGENT;
	if (tool->is_mcp)
		return ITEM_TOOL;
	switch ((enum acp_kind)tool->kind) {
	case KIND_EDIT:
	case KIND_DELETE:
	case KIND_MOVE:
		return ITEM_FILE_CHANGE;
	case KIND_SEARCH:
		return ITEM_FILE_SEARCH;
	case KIND_EXECUTE:
		return ITEM_COMMAND;
	case KIND_SWITCH_MODE:
		return acp_plan_text(update).n > 0 ? ITEM_PLAN : ITEM_TOOL;
	default:
		return ITEM_TOOL;
	}
}

/* ---- its body ---- */

struct body {
	struct buf text;
	struct json_writer w;
	struct arena *arena;
};

static void put_text(struct body *body, const char *name, struct str value)
{
	if (value.p != NULL)
		jw_kstr(&body->w, name, value);
}

/* All text of the content blocks, STR_NONE without any. */
static struct str content_text(const json_t *update, struct arena *arena)
{
	struct buf text;
	const json_t *entry;
	size_t i;

	buf_init(&text, arena, SIZE_MAX);
	json_array_foreach (json_object_get(update, "content"), i, entry) {
		struct str part = acp_content_text(arena, json_object_get(entry, "content"));

		if (text.n > 0 && part.n > 0)
			buf_add_char(&text, '\n');
		buf_add_str(&text, part);
	}
	return text.n == 0 ? STR_NONE : buf_str(&text);
}

static struct str first_text(const json_t *from, const char *const *members)
{
	for (; *members != NULL; members++)
		if (json_member_str(from, *members).p != NULL)
			return json_member_str(from, *members);
	return STR_NONE;
}

static struct str output_text(const json_t *update, struct arena *arena)
{
	/* Grok's `output` is an array of byte numbers beside the text. */
	static const char *const members[] = {"output_for_prompt", "combinedOutput", "formatted_output", "output", "stdout", NULL};
	const json_t *raw = json_object_get(update, "rawOutput");
	struct str text = json_is_string(raw) ? json_str(raw) : first_text(raw, members);

	return text.p != NULL ? text : content_text(update, arena);
}

static bool exit_code_in(const json_t *from, int64_t *out)
{
	static const char *const members[] = {"exit_code", "exitCode", "exit"};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (json_is_integer(json_object_get(from, members[i]))) {
			*out = json_integer_value(json_object_get(from, members[i]));
			return true;
		}
	return false;
}

static bool exit_code(const struct acp_tool *tool, const json_t *update, struct str output, int64_t *out)
{
	const json_t *raw = json_object_get(update, "rawOutput");
	struct str line = output;
	const char *end = output.n == 0 ? NULL : memchr(output.p, '\n', output.n);

	if (exit_code_in(raw, out) || exit_code_in(json_object_get(raw, "metadata"), out) ||
		exit_code_in(json_object_get(json_object_get(update, "_meta"), "terminal_exit"), out))
		return true;
	if (end != NULL)
		line.n = (size_t)(end - line.p);
	return tool->status == AGENT_FAILED && str_starts(line, STR("Exit code ")) &&
		str_to_int((struct str){line.p + 10, line.n - 10}, out);
}

static struct str command_text(const json_t *input, struct arena *arena)
{
	static const char *const members[] = {"command", "CommandLine", "cmd", NULL};
	const json_t *words = json_object_get(input, "command");
	struct buf text;
	const json_t *word;
	size_t i;

	if (!json_is_array(words))
		return first_text(input, members);
	buf_init(&text, arena, SIZE_MAX);
	json_array_foreach (words, i, word) {
		if (i > 0)
			buf_add_char(&text, ' ');
		buf_add_str(&text, json_str(word));
	}
	return buf_str(&text);
}

static void put_command(struct body *body, const struct acp_tool *tool, const json_t *update)
{
	struct str command = command_text(json_object_get(update, "rawInput"), body->arena);
	struct str output = output_text(update, body->arena);
	int64_t code;

	if (command.p == NULL && !tool->is_shown)
		command = json_member_str(update, "title");
	put_text(body, "input", command);
	put_text(body, "output", output);
	if (exit_code(tool, update, output, &code))
		jw_kint(&body->w, "exitCode", code);
}

static void put_diff(struct json_writer *w, const json_t *diff)
{
	struct str before = json_member_str(diff, "oldText");

	jw_kstr(w, "fileName", json_member_str(diff, "path"));
	if (before.p != NULL) /* null: a new file */
		jw_kstr(w, "oldStr", before);
	if (json_member_str(diff, "newText").p != NULL)
		jw_kstr(w, "newStr", json_member_str(diff, "newText"));
}

static void put_file_change(struct body *body, const json_t *update)
{
	static const char *const members[] = {"file_path", "filePath", "path", "abs_path", NULL};
	const json_t *content = json_object_get(update, "content");
	const json_t *first = NULL;
	const json_t *entry;
	size_t i, count = 0;
	struct str path;

	json_array_foreach (content, i, entry)
		if (str_eq(json_member_str(entry, "type"), STR("diff")) && count++ == 0)
			first = entry;
	if (first != NULL) {
		put_diff(&body->w, first);
	} else {
		path = json_member_str(json_array_get(json_object_get(update, "locations"), 0), "path");
		put_text(body, "fileName", path.p != NULL ? path : first_text(json_object_get(update, "rawInput"), members));
	}
	if (count < 2)
		return;
	jw_karray(&body->w, "files");
	json_array_foreach (content, i, entry) {
		if (!str_eq(json_member_str(entry, "type"), STR("diff")))
			continue;
		jw_object_begin(&body->w);
		put_diff(&body->w, entry);
		jw_object_end(&body->w);
	}
	jw_array_end(&body->w);
}

static void put_search(struct body *body, const json_t *update)
{
	static const char *const members[] = {"pattern", "query", "regex", "glob", NULL};

	put_text(body, "pattern", first_text(json_object_get(update, "rawInput"), members));
	put_text(body, "results", output_text(update, body->arena));
}

static struct str tool_name(const json_t *update, struct arena *arena)
{
	const json_t *input = json_object_get(update, "rawInput");
	struct str name = meta_tool_name(update);

	if (is_codex_mcp(update) && json_member_str(input, "tool").n > 0)
		return str_printf(arena, "%.*s.%.*s", STRF(json_member_str(input, "server")), STRF(json_member_str(input, "tool")));
	if (str_eq(json_member_str(input, "variant"), STR("UseTool")))
		return json_member_str(input, "tool_name");
	if (name.n == 0)
		name = json_member_str(update, "name");
	return name.n > 0 ? name : json_member_str(update, "title");
}

static void put_tool(struct body *body, const struct acp_tool *tool, const json_t *update)
{
	const json_t *input = json_object_get(update, "rawInput");
	const json_t *raw = json_object_get(update, "rawOutput");
	struct str output = content_text(update, body->arena);

	if (!tool->is_shown)
		put_text(body, "toolName", tool_name(update, body->arena));
	if (json_is_object(input) && json_object_size(input) > 0) {
		jw_key(&body->w, "input");
		jw_json(&body->w, input);
	}
	if (output.p != NULL) {
		put_text(body, "output", output);
	} else if (raw != NULL && !json_is_null(raw)) {
		jw_key(&body->w, "output");
		jw_json(&body->w, raw);
	}
}

struct str acp_tool_body(const struct acp_tool *tool, const json_t *update, struct arena *arena)
{
	struct body body = {.arena = arena};

	buf_init(&body.text, arena, SIZE_MAX);
	json_writer_init(&body.w, &body.text);
	jw_object_begin(&body.w);
	switch ((enum agent_item_kind)tool->item_kind) {
	case ITEM_COMMAND:
		put_command(&body, tool, update);
		break;
	case ITEM_FILE_CHANGE:
		put_file_change(&body, update);
		break;
	case ITEM_FILE_SEARCH:
		put_search(&body, update);
		break;
	case ITEM_PLAN:
		put_text(&body, "markdown", acp_plan_text(update));
		break;
	case ITEM_SUBAGENT:
		put_text(&body, "title", json_member_str(update, "title"));
		put_text(&body, "result", content_text(update, arena));
		break;
	default:
		put_tool(&body, tool, update);
		break;
	}
	jw_object_end(&body.w);
	return body.text.n <= 2 ? STR_NONE : buf_str(&body.text);
}
