/* Calls of tools, as items. */
#include "providers/pi/pi.h"

#include "base/limits.h"

#include <inttypes.h>

struct tool_row {
	const char *name;
	enum agent_item_kind item;
	enum agent_request_kind request;
};

/* Sorted by name; what is not here is a plain tool. */
static const struct tool_row tools[] = {
	{"ask_user", ITEM_NOTICE, REQUEST_USER_INPUT}, /* no item: a question is a request */
	{"bash", ITEM_COMMAND, REQUEST_COMMAND},
	{"edit", ITEM_FILE_CHANGE, REQUEST_FILE_CHANGE},
	{"find", ITEM_FILE_SEARCH, REQUEST_FILE_READ},
	{"grep", ITEM_FILE_SEARCH, REQUEST_FILE_READ},
	{"ls", ITEM_FILE_SEARCH, REQUEST_FILE_READ},
	{"read", ITEM_TOOL, REQUEST_FILE_READ},
	{"subagent", ITEM_SUBAGENT, REQUEST_TOOL}, /* the extension that comes with Pi as an example */
	{"write", ITEM_FILE_CHANGE, REQUEST_FILE_CHANGE},
};
static const struct tool_row plain_tool = {"", ITEM_TOOL, REQUEST_TOOL};

static const struct tool_row *tool_of(struct str name)
{
	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
		if (str_eq(name, str_of(tools[i].name)))
			return &tools[i];
	return &plain_tool;
}

enum agent_request_kind pi_tool_request(struct str name)
{
	return tool_of(name)->request;
}

struct agent_item *pi_item(struct agent_out *out, enum agent_item_kind kind, struct str key, enum agent_status status)
{
	struct agent_item *item = &agent_out_event(out, EVENT_ITEM)->item;

	item->kind = kind;
	item->key = key;
	item->status = status;
	return item;
}

void pi_notice(struct pi *p, struct agent_out *out, const char *severity, struct str message)
{
	struct str key = str_printf(out->arena, "notice-%" PRId64, ++p->notices);
	struct agent_item *item = pi_item(out, ITEM_NOTICE, key, AGENT_COMPLETED);
	struct body b;

	body_begin(&b, out->arena);
	jw_ktext(&b.w, "severity", severity);
	jw_kstr(&b.w, "message", message);
	item->body = body_end(&b);
}

/* One line that says what a call does. */
struct str pi_tool_title(struct arena *arena, struct str name, const json_t *args)
{
	static const char *const keys[] = {"command", "path", "pattern", "task", "query", "url"};
	struct str title = name;
	const char *end;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct str value = json_member_str(args, keys[i]);

		if (value.n > 0) {
			title = value;
			break;
		}
	}
	end = title.n > 0 ? memchr(title.p, '\n', title.n) : NULL;
	if (end != NULL)
		title.n = (size_t)(end - title.p);
	title.n = utf8_cut(title, LIMIT_PI_TITLE_BYTES);
	return str_dup(arena, title);
}

static void copy_text(struct json_writer *w, const char *as, const json_t *from, const char *key)
{
	struct str value = json_member_str(from, key);

	if (value.p != NULL)
		jw_kstr(w, as, value);
}

/* A single edit is shown before it is made; of several the patch tells in the end. */
static void file_body(struct json_writer *w, const json_t *args)
{
	const json_t *edits = json_object_get(args, "edits");
	struct str path = json_member_str(args, "path");

	jw_kstr(w, "fileName", path.p == NULL ? STR("") : path);
	copy_text(w, "newStr", args, "content");
	if (json_array_size(edits) == 1) {
		copy_text(w, "oldStr", json_array_get(edits, 0), "oldText");
		copy_text(w, "newStr", json_array_get(edits, 0), "newText");
	}
}

static void call_body(struct json_writer *w, enum agent_item_kind kind, struct str name, const json_t *args)
{
	switch (kind) {
	case ITEM_COMMAND: {
		struct str command = json_member_str(args, "command");

		jw_kstr(w, "input", command.p == NULL ? STR("") : command);
		break;
	}
	case ITEM_FILE_CHANGE:
		file_body(w, args);
		break;
	case ITEM_FILE_SEARCH:
		copy_text(w, "pattern", args, json_object_get(args, "pattern") != NULL ? "pattern" : "path");
		break;
	case ITEM_SUBAGENT:
		copy_text(w, "title", args, "agent");
		copy_text(w, "prompt", args, "task");
		break;
	default:
		jw_kstr(w, "toolName", name);
		if (args != NULL) {
			jw_key(w, "input");
			jw_json(w, args);
		}
	}
}

/* What cannot be remembered is told as done at once: nothing would end it. */
static enum agent_status remember(struct pi *p, struct str key, enum agent_item_kind kind)
{
	json_t *row;

	if (json_object_size(p->items) >= LIMIT_PI_OPEN_ITEMS)
		return AGENT_COMPLETED;
	row = json_object();
	json_object_set_new(row, "kind", json_integer(kind));
	json_object_setn_new(p->items, key.p, key.n, row);
	return AGENT_RUNNING;
}

void pi_tool_start(struct pi *p, const json_t *line, struct agent_out *out)
{
	struct str key = pi_id(out->arena, json_member_str(line, "toolCallId"));
	struct str name = pi_id(out->arena, json_member_str(line, "toolName"));
	const json_t *args = json_object_get(line, "args");
	enum agent_item_kind kind;
	struct agent_item *item;
	struct body b;

	if (!p->in_turn || key.n == 0 || name.n == 0 || tool_of(name)->item == ITEM_NOTICE)
		return;
	kind = tool_of(name)->item;
	if (kind == ITEM_SUBAGENT && json_member_str(args, "task").p == NULL)
		kind = ITEM_TOOL; /* another extension, or several agents: as it is */
	body_begin(&b, out->arena);
	call_body(&b.w, kind, name, args);
	item = pi_item(out, kind, key, remember(p, key, kind));
	item->title = pi_tool_title(out->arena, name, args);
	item->body = body_end(&b);
}

/* ---- results ---- */

static struct str result_text(struct arena *arena, const json_t *result)
{
	struct buf text;
	const json_t *block;
	size_t i;

	buf_init(&text, arena, SIZE_MAX);
	json_array_foreach(json_object_get(result, "content"), i, block) {
		struct str part = json_member_str(block, "text");

		if (part.p == NULL)
			continue;
		if (text.n > 0)
			buf_add_char(&text, '\n');
		buf_add_str(&text, part);
	}
	return buf_str(&text);
}

static bool is_truncated(const json_t *result)
{
	const json_t *truncation = json_object_get(json_object_get(result, "details"), "truncation");

	return json_is_true(json_object_get(truncation, "truncated"));
}

/* Partial results tell everything so far. Once Pi cuts them they lose their begin: then the end tells. */
void pi_tool_update(struct pi *p, const json_t *line, struct agent_out *out)
{
	struct str key = pi_id(out->arena, json_member_str(line, "toolCallId"));
	json_t *row = key.n == 0 ? NULL : json_object_getn(p->items, key.p, key.n);
	const json_t *partial = json_object_get(line, "partialResult");
	int64_t told = json_integer_value(json_object_get(row, "told"));
	struct str text;

	if (row == NULL || json_integer_value(json_object_get(row, "kind")) != ITEM_COMMAND || told < 0)
		return;
	text = result_text(out->arena, partial);
	if (is_truncated(partial)) {
		json_object_set_new(row, "told", json_integer(-1));
		return;
	}
	if (text.n <= (size_t)told)
		return;
	pi_item(out, ITEM_COMMAND, key, AGENT_RUNNING)->delta = (struct str){text.p + told, text.n - (size_t)told};
	json_object_set_new(row, "told", json_integer((json_int_t)text.n));
}

/* "Command exited with code 3" stands at the end of the text for the model; new programs tell the number apart. */
static void command_result(struct json_writer *w, const json_t *result, struct str text)
{
	const json_t *detail = json_object_get(result, "structuredContent");
	struct str output = json_member_str(detail, "output");

	jw_kstr(w, "output", output.p == NULL ? text : output);
	if (json_is_integer(json_object_get(detail, "exit_code")))
		jw_kint(w, "exitCode", json_integer_value(json_object_get(detail, "exit_code")));
}

static void file_result(struct json_writer *w, const json_t *result)
{
	copy_text(w, "diffStr", json_object_get(result, "details"), "patch");
}

static void result_body(struct json_writer *w, enum agent_item_kind kind, const json_t *result, struct str text)
{
	switch (kind) {
	case ITEM_COMMAND:
		command_result(w, result, text);
		break;
	case ITEM_FILE_CHANGE:
		file_result(w, result);
		break;
	case ITEM_FILE_SEARCH:
		jw_kstr(w, "results", text);
		break;
	case ITEM_SUBAGENT:
		jw_kstr(w, "result", text);
		break;
	default:
		jw_kstr(w, "output", text);
	}
}

static enum agent_item_kind kind_of(const json_t *row)
{
	json_int_t kind = json_integer_value(json_object_get(row, "kind"));

	return kind >= ITEM_TEXT && kind <= ITEM_NOTICE ? (enum agent_item_kind)kind : ITEM_TOOL;
}

/* A call that was not carried out, or broken off, has not failed; its text is for the model. */
void pi_tool_end(struct pi *p, const json_t *line, struct agent_out *out)
{
	struct str key = pi_id(out->arena, json_member_str(line, "toolCallId"));
	const json_t *row = key.n == 0 ? NULL : json_object_getn(p->items, key.p, key.n);
	const json_t *result = json_object_get(line, "result");
	const json_t *not_run = json_object_get(row, "end");
	bool is_error = json_is_true(json_object_get(line, "isError"));
	struct agent_item *item;
	struct body b;

	if (row == NULL)
		return;
	item = pi_item(out, kind_of(row), key, is_error ? AGENT_FAILED : AGENT_COMPLETED);
	if (not_run != NULL) {
		item->status = json_integer_value(not_run) == AGENT_INTERRUPTED ? AGENT_INTERRUPTED : AGENT_CANCELLED;
	} else if (is_error && p->is_interrupted) {
		item->status = AGENT_INTERRUPTED;
	} else {
		body_begin(&b, out->arena);
		result_body(&b.w, item->kind, result, result_text(out->arena, result));
		item->body = body_end(&b);
	}
	json_object_deln(p->items, key.p, key.n);
}

void pi_tool_not_run(struct pi *p, struct str key, enum agent_status status)
{
	json_t *row = key.n == 0 ? NULL : json_object_getn(p->items, key.p, key.n);

	if (row != NULL && json_object_get(row, "end") == NULL)
		json_object_set_new(row, "end", json_integer(status));
}

void pi_tools_close(struct pi *p, enum agent_status status, struct agent_out *out)
{
	const char *key;
	json_t *row;

	json_object_foreach(p->items, key, row)
		pi_item(out, kind_of(row), str_dup(out->arena, str_of(key)), status);
	json_object_clear(p->items);
}
