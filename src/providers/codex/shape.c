/* The program's kinds of items, and what is kept of each. */
#include "providers/codex/private.h"

/* One line of at most LIMIT_CODEX_TITLE_BYTES without control characters. */
struct str codex_title(struct str text, struct arena *arena)
{
	char *title;
	size_t n;

	if (text.p == NULL)
		return STR_NONE;
	n = utf8_cut(text, LIMIT_CODEX_TITLE_BYTES);
	title = arena_copy(arena, text.p, n);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)title[i] < ' ' || title[i] == 0x7f)
			title[i] = ' ';
	return (struct str){title, n};
}

/* The script inside of `/bin/bash -lc '…'`; another command as it is. */
struct str codex_script(struct str command)
{
	static const char *const flags[] = {" -lc ", " -c "};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct str flag = str_of(flags[i]);
		const char *at = command.n == 0 ? NULL : memmem(command.p, command.n, flag.p, flag.n);
		struct str script;
		char quote;

		if (at == NULL || memchr(command.p, ' ', (size_t)(at - command.p)) != NULL)
			continue;
		script = (struct str){at + flag.n, command.n - (size_t)(at + flag.n - command.p)};
		if (script.n == 0)
			continue;
		quote = script.p[0];
		if (quote != '\'' && quote != '"')
			return script;
		if (script.n < 2 || script.p[script.n - 1] != quote)
			continue;
		script = (struct str){script.p + 1, script.n - 2};
		/* Quotes or escapes inside: taking the outer ones away would change what it says. */
		if (memchr(script.p, quote, script.n) == NULL && (quote == '\'' || memchr(script.p, '\\', script.n) == NULL))
			return script;
	}
	return command;
}

static struct str command_title(const json_t *item, struct arena *arena)
{
	(void)arena;
	return codex_script(json_member_str(item, "command"));
}

static void command_body(const json_t *item, struct json_writer *w, struct arena *arena)
{
	const json_t *code = json_object_get(item, "exitCode");

	(void)arena;
	jw_kstr(w, "input", codex_script(json_member_str(item, "command")));
	jw_kstr_opt(w, "output", json_member_str(item, "aggregatedOutput"));
	if (json_is_integer(code))
		jw_kint(w, "exitCode", json_integer_value(code));
}

static struct str tool_name(const json_t *item, struct arena *arena)
{
	struct str tool = json_member_str(item, "tool");
	struct str server = json_member_str(item, "server");

	if (tool.p == NULL)
		return json_member_str(item, "type");
	return server.p == NULL ? tool : str_printf(arena, "%.*s.%.*s", STRF(server), STRF(tool));
}

static void mcp_output(const json_t *item, struct json_writer *w)
{
	const json_t *error = json_object_get(item, "error");
	const json_t *result = json_object_get(item, "result");
	const json_t *structured = json_object_get(result, "structuredContent");

	if (json_is_object(error)) {
		jw_kstr(w, "output", json_member_str(error, "message"));
	} else if (structured != NULL && !json_is_null(structured)) {
		jw_key(w, "output");
		jw_json(w, structured);
	} else if (json_is_array(json_object_get(result, "content"))) {
		jw_key(w, "output");
		jw_json(w, json_object_get(result, "content"));
	}
}

static void mcp_body(const json_t *item, struct json_writer *w, struct arena *arena)
{
	const json_t *arguments = json_object_get(item, "arguments");

	jw_kstr(w, "toolName", tool_name(item, arena));
	jw_key(w, "input");
	if (arguments != NULL)
		jw_json(w, arguments);
	else
		jw_null(w);
	mcp_output(item, w);
}

/* An item that this table does not know is a tool with all that it tells. */
static void other_body(const json_t *item, struct json_writer *w, struct arena *arena)
{
	jw_kstr(w, "toolName", tool_name(item, arena));
	jw_key(w, "input");
	jw_json(w, item);
}

static struct str query(const json_t *item, struct arena *arena)
{
	(void)arena;
	return json_member_str(item, "query");
}

static void search_body(const json_t *item, struct json_writer *w, struct arena *arena)
{
	const json_t *results = json_object_get(item, "results");

	jw_karray(w, "patterns");
	jw_str(w, query(item, arena));
	jw_array_end(w);
	if (json_is_array(results)) {
		jw_key(w, "results");
		jw_json(w, results);
	}
}

static void plan_body(const json_t *item, struct json_writer *w, struct arena *arena)
{
	(void)arena;
	jw_kstr(w, "markdown", json_member_str(item, "text"));
}

static void compaction_body(const json_t *item, struct json_writer *w, struct arena *arena)
{
	(void)item;
	(void)w;
	(void)arena;
}

static struct str subagent_title(const json_t *item, struct arena *arena)
{
	struct str path = json_member_str(item, "agentPath");

	return path.p != NULL ? path : tool_name(item, arena);
}

static void subagent_body(const json_t *item, struct json_writer *w, struct arena *arena)
{
	struct str thread = json_str(json_array_get(json_object_get(item, "receiverThreadIds"), 0));

	jw_kstr(w, "title", subagent_title(item, arena));
	jw_kstr_opt(w, "prompt", json_member_str(item, "prompt"));
	jw_kstr_opt(w, "model", json_member_str(item, "model"));
	jw_kstr_opt(w, "nativeThreadId", thread.p != NULL ? thread : json_member_str(item, "agentThreadId"));
}

static struct str file_title(const json_t *change, struct arena *arena)
{
	(void)arena;
	return json_member_str(change, "path");
}

static int64_t lines_with(struct str diff, char mark)
{
	int64_t n = 0;
	bool is_start = true;

	for (size_t i = 0; i < diff.n; i++) {
		/* The names of the two files stand behind three marks. */
		if (is_start && diff.p[i] == mark && !(i + 2 < diff.n && diff.p[i + 1] == mark && diff.p[i + 2] == mark))
			n++;
		is_start = diff.p[i] == '\n';
	}
	return n;
}

static int64_t lines_of(struct str text)
{
	int64_t n = text.n > 0 && text.p[text.n - 1] != '\n';

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '\n';
	return n;
}

/* Of an added or deleted file the program tells the content, of a changed one a unified diff. */
static void file_body(const json_t *change, struct json_writer *w, struct arena *arena)
{
	struct str kind = json_member_str(json_object_get(change, "kind"), "type");
	struct str moved = json_member_str(json_object_get(change, "kind"), "move_path");
	struct str diff = json_member_str(change, "diff");

	(void)arena;
	jw_kstr(w, "fileName", moved.p != NULL ? moved : json_member_str(change, "path"));
	if (diff.p == NULL)
		return;
	if (str_eq(kind, STR("add"))) {
		jw_kint(w, "additions", lines_of(diff));
		jw_kint(w, "deletions", 0);
		jw_kstr(w, "newStr", diff);
	} else if (str_eq(kind, STR("delete"))) {
		jw_kint(w, "additions", 0);
		jw_kint(w, "deletions", lines_of(diff));
		jw_kstr(w, "oldStr", diff);
	} else {
		jw_kint(w, "additions", lines_with(diff, '+'));
		jw_kint(w, "deletions", lines_with(diff, '-'));
		jw_kstr(w, "diffStr", diff);
	}
}

const struct codex_shape codex_file_shape = {"fileChange", ITEM_FILE_CHANGE, file_title, file_body};

static const struct codex_shape shapes[] = {
	{"collabAgentToolCall", ITEM_SUBAGENT, subagent_title, subagent_body},
	{"commandExecution", ITEM_COMMAND, command_title, command_body},
	{"contextCompaction", ITEM_COMPACTION, NULL, compaction_body},
	{"mcpToolCall", ITEM_TOOL, tool_name, mcp_body},
	{"plan", ITEM_PLAN, NULL, plan_body},
	{"subAgentActivity", ITEM_SUBAGENT, subagent_title, subagent_body},
	{"webSearch", ITEM_WEB_SEARCH, query, search_body},
};
static const struct codex_shape other_shape = {NULL, ITEM_TOOL, tool_name, other_body};

const struct codex_shape *codex_shape_of(struct str type)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (str_eq(type, str_of(shapes[i].type)))
			return &shapes[i];
	return &other_shape;
}
