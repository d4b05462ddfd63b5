/* Calls of tools and their results, as items. */
#include "providers/claude/claude.h"

#include "base/limits.h"

#include <inttypes.h>

/* Sorted by name; what is not here is a plain tool. */
static const struct tool_row tools[] = {
	{"agent", ITEM_SUBAGENT, REQUEST_TOOL},
	{"askuserquestion", ITEM_NOTICE, REQUEST_USER_INPUT}, /* no item: a question is a request */
	{"bash", ITEM_COMMAND, REQUEST_COMMAND},
	{"edit", ITEM_FILE_CHANGE, REQUEST_FILE_CHANGE},
	{"exitplanmode", ITEM_PLAN, REQUEST_USER_INPUT},
	{"glob", ITEM_FILE_SEARCH, REQUEST_FILE_READ},
	{"grep", ITEM_FILE_SEARCH, REQUEST_FILE_READ},
	{"ls", ITEM_FILE_SEARCH, REQUEST_FILE_READ},
	{"multiedit", ITEM_FILE_CHANGE, REQUEST_FILE_CHANGE},
	{"notebookedit", ITEM_FILE_CHANGE, REQUEST_FILE_CHANGE},
	{"powershell", ITEM_COMMAND, REQUEST_COMMAND},
	{"read", ITEM_TOOL, REQUEST_FILE_READ},
	{"task", ITEM_SUBAGENT, REQUEST_TOOL},
	{"todowrite", ITEM_TODO, REQUEST_TOOL},
	{"webfetch", ITEM_WEB_SEARCH, REQUEST_TOOL},
	{"websearch", ITEM_WEB_SEARCH, REQUEST_TOOL},
	{"write", ITEM_FILE_CHANGE, REQUEST_FILE_CHANGE},
};
static const struct tool_row plain_tool = {"", ITEM_TOOL, REQUEST_TOOL};

static bool named(const char *row, struct str name)
{
	for (size_t i = 0; i < name.n; i++) {
		char letter = name.p[i] >= 'A' && name.p[i] <= 'Z' ? (char)(name.p[i] - 'A' + 'a') : name.p[i];

		if (letter == '_' || letter == '-')
			continue;
		if (*row++ != letter)
			return false;
	}
	return *row == '\0';
}

const struct tool_row *claude_tool(struct str name)
{
	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
		if (named(tools[i].name, name))
			return &tools[i];
	return &plain_tool;
}

struct agent_item *claude_item(struct agent_out *out, enum agent_item_kind kind, struct str key, struct str parent,
	enum agent_status status)
{
	struct agent_item *item = &agent_out_event(out, EVENT_ITEM)->item;

	item->kind = kind;
	item->key = key;
	item->parent = parent;
	item->status = status;
	return item;
}

void claude_notice(struct claude *c, struct agent_out *out, const char *severity, struct str message)
{
	struct str key = str_printf(out->arena, "notice-%" PRId64, ++c->notices);
	struct agent_item *item = claude_item(out, ITEM_NOTICE, key, STR_NONE, AGENT_COMPLETED);
	struct body b;

	body_begin(&b, out->arena);
	jw_ktext(&b.w, "severity", severity);
	jw_kstr(&b.w, "message", message);
	item->body = body_end(&b);
}

void claude_plan(struct agent_out *out, struct str key, struct str markdown)
{
	struct body b;

	if (markdown.n == 0)
		return;
	body_begin(&b, out->arena);
	jw_kstr(&b.w, "markdown", markdown);
	claude_item(out, ITEM_PLAN, key, STR_NONE, AGENT_COMPLETED)->body = body_end(&b);
}

/* First line, cut. */
static struct str one_line(struct str text)
{
	const char *end = text.n > 0 ? memchr(text.p, '\n', text.n) : NULL;

	if (end != NULL)
		text.n = (size_t)(end - text.p);
	text.n = utf8_cut(text, LIMIT_CLAUDE_TITLE_BYTES);
	return text;
}

static struct str first_member(const json_t *input, const char *const *keys)
{
	for (; *keys != NULL; keys++) {
		struct str value = json_member_str(input, *keys);

		if (value.n > 0)
			return value;
	}
	return STR_NONE;
}

struct str claude_tool_title(struct arena *arena, struct str name, const json_t *input)
{
	static const char *const keys[] = {"description", "command", "file_path", "notebook_path", "pattern", "query", "url",
		"path", NULL};
	struct str title = first_member(input, keys);

	return str_dup(arena, one_line(title.p == NULL ? name : title));
}

static void copy_text(struct json_writer *w, const char *as, const json_t *input, const char *key)
{
	struct str value = json_member_str(input, key);

	if (value.p != NULL)
		jw_kstr(w, as, value);
}

static void file_body(struct json_writer *w, const json_t *input)
{
	static const char *const paths[] = {"file_path", "notebook_path", NULL};
	struct str path = first_member(input, paths);

	jw_kstr(w, "fileName", path.p == NULL ? STR("") : path);
	copy_text(w, "oldStr", input, "old_string");
	copy_text(w, "newStr", input, "new_string");
	copy_text(w, "newStr", input, json_object_get(input, "content") != NULL ? "content" : "new_source");
}

static void todo_body(struct json_writer *w, const json_t *input)
{
	const json_t *todo;
	size_t i;

	jw_karray(w, "steps");
	json_array_foreach(json_object_get(input, "todos"), i, todo) {
		char id[24];

		(void)snprintf(id, sizeof(id), "%zu", i + 1);
		jw_object_begin(w);
		jw_ktext(w, "id", id);
		jw_kstr(w, "text", json_member_str(todo, "content"));
		jw_kstr(w, "status", json_member_str(todo, "status"));
		jw_object_end(w);
	}
	jw_array_end(w);
}

static void tool_body(struct json_writer *w, enum agent_item_kind kind, struct str name, const json_t *input)
{
	switch (kind) {
	case ITEM_COMMAND:
		jw_kstr(w, "input", json_member_str(input, "command"));
		break;
	case ITEM_FILE_CHANGE:
		file_body(w, input);
		break;
	case ITEM_FILE_SEARCH:
		copy_text(w, "pattern", input, json_object_get(input, "pattern") != NULL ? "pattern" : "path");
		break;
	case ITEM_WEB_SEARCH:
		jw_karray(w, "patterns");
		jw_str(w, json_member_str(input, json_object_get(input, "query") != NULL ? "query" : "url"));
		jw_array_end(w);
		break;
	case ITEM_SUBAGENT:
		copy_text(w, "title", input, "description");
		copy_text(w, "prompt", input, "prompt");
		copy_text(w, "model", input, "model");
		break;
	case ITEM_TODO:
		todo_body(w, input);
		break;
	default:
		jw_kstr(w, "toolName", name);
		if (input != NULL) {
			jw_key(w, "input");
			jw_json(w, input);
		}
	}
}

/* One list for a turn: each call replaces the whole of it. */
static struct str todo_key(struct claude *c, struct arena *arena, struct str key)
{
	if (c->todo_key.n == 0)
		SET(c, todo_key, key);
	return str_dup(arena, c->todo_key);
}

/* What cannot be remembered is told as done at once: nothing would end it. */
static enum agent_status remember(struct claude *c, struct str key, struct str name, struct str parent)
{
	json_t *row;

	if (json_object_size(c->items) >= LIMIT_CLAUDE_OPEN_ITEMS)
		return AGENT_COMPLETED;
	row = json_object();
	state_row_text(row, "name", name);
	state_row_text(row, "parent", parent);
	json_object_setn_new(c->items, key.p, key.n, row);
	return AGENT_RUNNING;
}

void claude_tool_use(struct claude *c, const json_t *block, struct str parent, struct agent_out *out)
{
	struct str key = claude_id(out->arena, json_member_str(block, "id"));
	struct str name = claude_id(out->arena, json_member_str(block, "name"));
	const json_t *input = json_object_get(block, "input");
	enum agent_item_kind kind = claude_tool(name)->item;
	struct agent_item *item;
	struct body b;

	if (key.n == 0 || name.n == 0 || kind == ITEM_NOTICE)
		return;
	if (kind == ITEM_PLAN) {
		claude_plan(out, key, json_member_str(input, "plan"));
		return;
	}
	body_begin(&b, out->arena);
	tool_body(&b.w, kind, name, input);
	if (kind == ITEM_TODO) {
		if (parent.p == NULL)
			key = todo_key(c, out->arena, key);
		claude_item(out, kind, key, parent, AGENT_COMPLETED)->body = body_end(&b);
		return;
	}
	item = claude_item(out, kind, key, parent, remember(c, key, name, parent));
	item->title = claude_tool_title(out->arena, name, input);
	item->body = body_end(&b);
}

/* ---- results ---- */

/* Text of a result: a string, or blocks of which the text counts. */
static struct str result_text(struct arena *arena, const json_t *content)
{
	struct buf text;
	const json_t *block;
	size_t i;

	if (json_is_string(content))
		return json_str(content);
	buf_init(&text, arena, SIZE_MAX);
	json_array_foreach(content, i, block) {
		struct str part = json_member_str(block, "text");

		if (part.p == NULL)
			continue;
		if (text.n > 0)
			buf_add_char(&text, '\n');
		buf_add_str(&text, part);
	}
	return buf_str(&text);
}

struct finished {
	struct str key, text;
	bool is_error;
	const json_t *detail; /* what the program says for itself */
};

/* "Exit code 3\n…" is how a command that failed is told; what else is an error never ran. */
static bool split_exit_code(struct str *text, int64_t *code)
{
	struct str head = STR("Exit code ");
	const char *end;

	if (!str_starts(*text, head))
		return false;
	end = memchr(text->p, '\n', text->n);
	if (!str_to_int((struct str){text->p + head.n, (end == NULL ? text->n : (size_t)(end - text->p)) - head.n}, code))
		return false;
	*text = end == NULL ? STR("") : (struct str){end + 1, text->n - (size_t)(end + 1 - text->p)};
	return true;
}

static void command_result(struct json_writer *w, struct finished *done)
{
	int64_t code = 0;
	bool has_code = done->is_error ? split_exit_code(&done->text, &code)
				       : json_object_get(done->detail, "backgroundTaskId") == NULL;

	jw_kstr(w, "output", done->text);
	if (has_code)
		jw_kint(w, "exitCode", code);
}

static void add_hunk(struct buf *diff, const json_t *hunk, int64_t *added, int64_t *deleted)
{
	const json_t *line;
	size_t i;

	buf_printf(diff, "@@ -%lld,%lld +%lld,%lld @@\n", json_integer_value(json_object_get(hunk, "oldStart")),
		json_integer_value(json_object_get(hunk, "oldLines")), json_integer_value(json_object_get(hunk, "newStart")),
		json_integer_value(json_object_get(hunk, "newLines")));
	json_array_foreach(json_object_get(hunk, "lines"), i, line) {
		struct str text = json_str(line);

		*added += text.n > 0 && text.p[0] == '+';
		*deleted += text.n > 0 && text.p[0] == '-';
		if (text.p != NULL)
			buf_add_str(diff, text);
		buf_add_char(diff, '\n');
	}
}

static int64_t count_lines(struct str text)
{
	int64_t lines = text.n > 0 && text.p[text.n - 1] != '\n';

	for (size_t i = 0; i < text.n; i++)
		lines += text.p[i] == '\n';
	return lines;
}

/* A patch where there was a file before. The file as it was, which the program repeats, is not kept. */
static void file_result(struct json_writer *w, const struct finished *done, struct arena *arena)
{
	const json_t *hunk;
	struct buf diff;
	int64_t added = 0, deleted = 0;
	size_t i;

	if (done->is_error || !json_is_object(done->detail))
		return;
	buf_init(&diff, arena, SIZE_MAX);
	json_array_foreach(json_object_get(done->detail, "structuredPatch"), i, hunk)
		add_hunk(&diff, hunk, &added, &deleted);
	if (str_eq(json_member_str(done->detail, "type"), STR("create")))
		added = count_lines(json_member_str(done->detail, "content"));
	copy_text(w, "fileName", done->detail, "filePath");
	jw_kint(w, "additions", added);
	jw_kint(w, "deletions", deleted);
	if (diff.n > 0)
		jw_kstr(w, "diffStr", buf_str(&diff));
}

static void result_body(struct json_writer *w, enum agent_item_kind kind, struct finished *done, struct arena *arena)
{
	switch (kind) {
	case ITEM_COMMAND:
		command_result(w, done);
		break;
	case ITEM_FILE_CHANGE:
		file_result(w, done, arena);
		break;
	case ITEM_FILE_SEARCH:
	case ITEM_WEB_SEARCH:
		jw_kstr(w, "results", done->text);
		break;
	case ITEM_SUBAGENT:
		jw_kstr(w, "result", done->text);
		break;
	default:
		jw_kstr(w, "output", done->text);
	}
}

/* A call that was not carried out has neither failed nor done anything. */
static enum agent_status status_of(const json_t *line, const struct finished *done)
{
	const json_t *meta = json_array_get(json_object_get(line, "tool_result_meta"), 0);
	struct str not_run = json_member_str(meta, "non_execution_kind");

	if (!done->is_error)
		return AGENT_COMPLETED;
	if (str_eq(not_run, STR("user-rejected")))
		return AGENT_INTERRUPTED;
	return not_run.p != NULL ? AGENT_CANCELLED : AGENT_FAILED;
}

static void finish(struct claude *c, const json_t *line, struct finished *done, struct agent_out *out)
{
	const json_t *row = json_object_getn(c->items, done->key.p, done->key.n);
	enum agent_item_kind kind;
	struct agent_item *item;
	struct body b;

	if (row == NULL)
		return;
	kind = claude_tool(json_member_str(row, "name"))->item;
	if (kind == ITEM_SUBAGENT && json_is_true(json_object_get(done->detail, "isAsync")))
		return; /* it was only launched: system/task_notification ends it */
	item = claude_item(out, kind, done->key, str_dup(out->arena, json_member_str(row, "parent")), status_of(line, done));
	if (item->status == AGENT_COMPLETED || item->status == AGENT_FAILED) {
		/* Else the text is for the model: why the call was not carried out. */
		body_begin(&b, out->arena);
		result_body(&b.w, kind, done, out->arena);
		item->body = body_end(&b);
	}
	json_object_deln(c->items, done->key.p, done->key.n);
}

void claude_user(struct claude *c, const json_t *line, struct agent_out *out)
{
	const json_t *block;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(line, "message"), "content"), i, block) {
		struct finished done = {.key = claude_id(out->arena, json_member_str(block, "tool_use_id")),
			.text = result_text(out->arena, json_object_get(block, "content")),
			.is_error = json_is_true(json_object_get(block, "is_error")),
			.detail = json_object_get(line, "tool_use_result")};

		if (str_eq(json_member_str(block, "type"), STR("tool_result")) && done.key.p != NULL)
			finish(c, line, &done, out);
	}
}

static bool is_task(const struct claude *c, struct str key)
{
	const char *task;
	const json_t *item;

	json_object_foreach(c->tasks, task, item)
		if (str_eq(json_str(item), key))
			return true;
	return false;
}

bool claude_in_background(const struct claude *c, struct str key)
{
	struct str parent = json_member_str(json_object_getn(c->items, key.p, key.n), "parent");

	return is_task(c, key) || (parent.p != NULL && is_task(c, parent));
}

void claude_tools_close(struct claude *c, enum agent_status status, struct agent_out *out)
{
	const char *key;
	json_t *row;
	void *next;

	json_object_foreach_safe(c->items, next, key, row) {
		struct str parent = str_dup(out->arena, json_member_str(row, "parent"));
		struct str name = json_member_str(row, "name");

		if (claude_in_background(c, str_of(key)))
			continue;
		claude_item(out, claude_tool(name)->item, str_dup(out->arena, str_of(key)), parent, status);
		json_object_del(c->items, key);
	}
}
