/* What messages are made of: text and thoughts, calls of tools, steps that are counted. */
#include "providers/opencode/opencode.h"

#include "base/limits.h"

#include <inttypes.h>

struct tool_row {
	const char *name;
	enum agent_item_kind item;
};

/* Sorted by name; what is not here is a plain tool. ITEM_NOTICE: no item, it is told in another way. */
static const struct tool_row tools[] = {
	{"bash", ITEM_COMMAND},
	{"edit", ITEM_FILE_CHANGE},
	{"glob", ITEM_FILE_SEARCH},
	{"grep", ITEM_FILE_SEARCH},
	{"list", ITEM_FILE_SEARCH},
	{"question", ITEM_NOTICE},
	{"task", ITEM_SUBAGENT},
	{"todowrite", ITEM_NOTICE},
	{"webfetch", ITEM_WEB_SEARCH},
	{"websearch", ITEM_WEB_SEARCH},
	{"write", ITEM_FILE_CHANGE},
};

static enum agent_item_kind kind_of(struct str tool)
{
	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
		if (str_eq(tool, str_of(tools[i].name)))
			return tools[i].item;
	return ITEM_TOOL;
}

struct agent_item *opencode_item(struct agent_out *out, enum agent_item_kind kind, struct str key, enum agent_status status)
{
	struct agent_item *item = &agent_out_event(out, EVENT_ITEM)->item;

	item->kind = kind;
	item->key = key;
	item->status = status;
	return item;
}

void opencode_notice(struct opencode *o, struct agent_out *out, const char *severity, struct str message)
{
	struct str key = str_printf(out->arena, "notice-%" PRId64, ++o->notices);
	struct agent_item *item = opencode_item(out, ITEM_NOTICE, key, AGENT_COMPLETED);
	struct body b;

	body_begin(&b, out->arena);
	jw_ktext(&b.w, "severity", severity);
	jw_kstr(&b.w, "message", message);
	item->body = body_end(&b);
}

/* ---- text ---- */

static struct agent_item *text_item(const json_t *row, struct str key, enum agent_status status, struct agent_out *out)
{
	return opencode_item(out, json_is_true(json_object_get(row, "thought")) ? ITEM_REASONING : ITEM_TEXT, key, status);
}

/* The whole text so far; what was told is not told again. */
static void text_part(struct opencode *o, const json_t *part, struct str key, bool is_thought, struct agent_out *out)
{
	struct str text = json_member_str(part, "text");
	bool has_ended = json_object_get(json_object_get(part, "time"), "end") != NULL;
	json_t *row = json_object_getn(o->parts, key.p, key.n);
	size_t told;
	struct agent_item *item;

	if (row == NULL) {
		if (json_object_size(o->parts) >= LIMIT_OPENCODE_OPEN_ITEMS)
			return;
		row = json_object();
		json_object_set_new(row, "thought", json_boolean(is_thought));
		json_object_set_new(row, "told", json_integer(0));
		json_object_setn_new(o->parts, key.p, key.n, row);
	}
	told = (size_t)json_integer_value(json_object_get(row, "told"));
	if (told == 0 && text.n == 0) {
		if (has_ended)
			json_object_deln(o->parts, key.p, key.n);
		return;
	}
	told = told < text.n ? told : text.n;
	if (text.n == told && !has_ended)
		return;
	item = text_item(row, key, has_ended ? AGENT_COMPLETED : AGENT_RUNNING, out);
	if (text.n > told)
		item->delta = str_dup(out->arena, (struct str){text.p + told, text.n - told});
	json_object_set_new(row, "told", json_integer((json_int_t)text.n));
	if (has_ended)
		json_object_deln(o->parts, key.p, key.n);
}

void opencode_part_delta(struct opencode *o, const json_t *properties, struct agent_out *out)
{
	struct str key = opencode_id(out->arena, json_member_str(properties, "partID"));
	json_t *row = key.n == 0 ? NULL : json_object_getn(o->parts, key.p, key.n);
	struct str delta = json_member_str(properties, "delta");

	if (row == NULL || delta.n == 0 || !str_eq(json_member_str(properties, "field"), STR("text")))
		return;
	text_item(row, key, AGENT_RUNNING, out)->delta = str_dup(out->arena, delta);
	json_object_set_new(row, "told", json_integer(json_integer_value(json_object_get(row, "told")) + (json_int_t)delta.n));
}

/* ---- tools ---- */

static void copy_text(struct json_writer *w, const char *as, const json_t *from, const char *key)
{
	struct str value = json_member_str(from, key);

	if (value.p != NULL)
		jw_kstr(w, as, value);
}

static struct str or_empty(struct str text)
{
	return text.p == NULL ? STR("") : text;
}

static void call_body(struct json_writer *w, enum agent_item_kind kind, struct str tool, const json_t *input)
{
	switch (kind) {
	case ITEM_COMMAND:
		jw_kstr(w, "input", or_empty(json_member_str(input, "command")));
		break;
	case ITEM_FILE_CHANGE:
		jw_kstr(w, "fileName", or_empty(json_member_str(input, "filePath")));
		copy_text(w, "oldStr", input, "oldString");
		copy_text(w, "newStr", input, json_object_get(input, "content") != NULL ? "content" : "newString");
		break;
	case ITEM_FILE_SEARCH:
		copy_text(w, "pattern", input, json_object_get(input, "pattern") != NULL ? "pattern" : "path");
		break;
	case ITEM_WEB_SEARCH:
		jw_karray(w, "patterns");
		jw_str(w, or_empty(json_member_str(input, json_object_get(input, "query") != NULL ? "query" : "url")));
		jw_array_end(w);
		break;
	case ITEM_SUBAGENT:
		copy_text(w, "title", input, "description");
		copy_text(w, "prompt", input, "prompt");
		break;
	default:
		jw_kstr(w, "toolName", tool);
		if (json_object_size(input) > 0) {
			jw_key(w, "input");
			jw_json(w, input);
		}
	}
}

static void result_body(struct json_writer *w, enum agent_item_kind kind, const json_t *state)
{
	const json_t *metadata = json_object_get(state, "metadata");
	struct str output = json_member_str(state, json_object_get(state, "error") != NULL ? "error" : "output");

	switch (kind) {
	case ITEM_COMMAND:
		jw_kstr(w, "output", or_empty(output));
		if (json_is_integer(json_object_get(metadata, "exit")))
			jw_kint(w, "exitCode", json_integer_value(json_object_get(metadata, "exit")));
		break;
	case ITEM_FILE_CHANGE:
		copy_text(w, "diffStr", metadata, "diff");
		break;
	case ITEM_FILE_SEARCH:
	case ITEM_WEB_SEARCH:
		jw_kstr(w, "results", or_empty(output));
		break;
	case ITEM_SUBAGENT:
		jw_kstr(w, "result", or_empty(output));
		break;
	default:
		jw_kstr(w, "output", or_empty(output));
	}
}

static struct str title_of(struct arena *arena, struct str tool, const json_t *state)
{
	static const char *const keys[] = {"command", "filePath", "pattern", "description", "query", "url", "path"};
	struct str title = tool;
	const char *end;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct str value = json_member_str(json_object_get(state, "input"), keys[i]);

		if (value.n > 0) {
			title = value;
			break;
		}
	}
	end = title.n > 0 ? memchr(title.p, '\n', title.n) : NULL;
	if (end != NULL)
		title.n = (size_t)(end - title.p);
	title.n = utf8_cut(title, LIMIT_OPENCODE_TITLE_BYTES);
	return str_dup(arena, title);
}

/* Begun when its arguments are whole. */
static void tool_running(struct opencode *o, const json_t *state, struct str tool, struct str key, struct agent_out *out)
{
	enum agent_item_kind kind = kind_of(tool);
	struct agent_item *item;
	struct body b;

	if (json_object_getn(o->items, key.p, key.n) != NULL || json_object_size(o->items) >= LIMIT_OPENCODE_OPEN_ITEMS)
		return;
	json_object_setn_new(o->items, key.p, key.n, json_integer(kind));
	item = opencode_item(out, kind, key, AGENT_RUNNING);
	item->title = title_of(out->arena, tool, state);
	body_begin(&b, out->arena);
	call_body(&b.w, kind, tool, json_object_get(state, "input"));
	item->body = body_end(&b);
}

/* A call that a person declined was not carried out: it has not failed. */
static enum agent_status end_of(const struct opencode *o, const json_t *state)
{
	struct str error = json_member_str(state, "error");
	bool is_cut = o->is_interrupted && json_is_null(json_object_get(json_object_get(state, "metadata"), "exit"));

	if (error.p == NULL)
		return is_cut ? AGENT_INTERRUPTED : AGENT_COMPLETED;
	if (o->is_interrupted || str_starts(error, STR("The user rejected")))
		return AGENT_INTERRUPTED;
	return str_starts(error, STR("The user has specified a rule")) ? AGENT_CANCELLED : AGENT_FAILED;
}

static void tool_part(struct opencode *o, const json_t *part, struct agent_out *out)
{
	const json_t *state = json_object_get(part, "state");
	struct str status = json_member_str(state, "status");
	struct str key = opencode_id(out->arena, json_member_str(part, "callID"));
	struct str tool = opencode_id(out->arena, json_member_str(part, "tool"));
	struct agent_item *item;
	struct body b;

	if (key.n == 0 || tool.n == 0 || kind_of(tool) == ITEM_NOTICE || str_eq(status, STR("pending")))
		return;
	tool_running(o, state, tool, key, out);
	if (str_eq(status, STR("running")) || json_object_getn(o->items, key.p, key.n) == NULL)
		return;
	json_object_deln(o->items, key.p, key.n);
	item = opencode_item(out, kind_of(tool), key, end_of(o, state));
	if (item->status != AGENT_COMPLETED && item->status != AGENT_FAILED)
		return;
	body_begin(&b, out->arena);
	result_body(&b.w, item->kind, state);
	item->body = body_end(&b);
}

static void step_finish(struct opencode *o, const json_t *part)
{
	const json_t *tokens = json_object_get(part, "tokens");
	const json_t *cache = json_object_get(tokens, "cache");
	double cost = json_number_value(json_object_get(part, "cost")) * 1e9;

	if (!json_is_object(tokens))
		return;
	o->has_usage = true;
	o->input += json_integer_value(json_object_get(tokens, "input")) + json_integer_value(json_object_get(cache, "write"));
	o->cached += json_integer_value(json_object_get(cache, "read"));
	o->output += json_integer_value(json_object_get(tokens, "output")) + json_integer_value(json_object_get(tokens, "reasoning"));
	o->thought += json_integer_value(json_object_get(tokens, "reasoning"));
	o->context_used = json_integer_value(json_object_get(tokens, "total"));
	if (cost > 0 && cost < 1e18)
		o->cost_nano += (int64_t)(cost + 0.5);
}

void opencode_part(struct opencode *o, const json_t *part, struct agent_out *out)
{
	struct str type = json_member_str(part, "type");
	struct str message = opencode_id(out->arena, json_member_str(part, "messageID"));
	struct str key = opencode_id(out->arena, json_member_str(part, "id"));

	if (!o->in_turn || key.n == 0 || message.n == 0)
		return;
	if (str_eq(type, STR("tool")))
		tool_part(o, part, out);
	else if (json_object_getn(o->messages, message.p, message.n) == NULL)
		return; /* what the user said */
	else if (str_eq(type, STR("text")) || str_eq(type, STR("reasoning")))
		text_part(o, part, key, str_eq(type, STR("reasoning")), out);
	else if (str_eq(type, STR("step-finish")))
		step_finish(o, part);
}

void opencode_todo(struct opencode *o, const json_t *properties, struct agent_out *out)
{
	const json_t *todo;
	struct body b;
	size_t i;

	if (!o->in_turn)
		return;
	body_begin(&b, out->arena);
	jw_karray(&b.w, "steps");
	json_array_foreach(json_object_get(properties, "todos"), i, todo) {
		char id[24];

		(void)snprintf(id, sizeof(id), "%zu", i + 1);
		jw_object_begin(&b.w);
		jw_ktext(&b.w, "id", id);
		jw_kstr(&b.w, "text", or_empty(json_member_str(todo, "content")));
		jw_kstr(&b.w, "status", or_empty(json_member_str(todo, "status")));
		jw_object_end(&b.w);
	}
	jw_array_end(&b.w);
	opencode_item(out, ITEM_TODO, STR("todo"), AGENT_COMPLETED)->body = body_end(&b);
}

void opencode_parts_close(struct opencode *o, enum agent_status status, struct agent_out *out)
{
	const char *key;
	const json_t *row;

	json_object_foreach(o->parts, key, row)
		if (json_integer_value(json_object_get(row, "told")) > 0)
			text_item(row, str_dup(out->arena, str_of(key)), status, out);
	json_object_clear(o->parts);
	json_object_foreach(o->items, key, row)
		opencode_item(out, (enum agent_item_kind)json_integer_value(row), str_dup(out->arena, str_of(key)), status);
	json_object_clear(o->items);
}
