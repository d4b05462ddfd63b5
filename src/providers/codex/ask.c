/* What the program asks: every request of it is answered, or it waits for ever. Those that a person must decide are
 * told and kept until the answer; any other is refused at once, which the program takes as a no. */
#include "providers/codex/private.h"

#include <stdlib.h>

static struct str json_text(const json_t *value, struct arena *arena)
{
	return value == NULL ? STR_NONE : json_canonical(arena, value);
}

static struct codex_ask_entry **find(struct codex *codex, struct str id)
{
	struct codex_ask_entry **at = &codex->asks;

	while (*at != NULL && !str_eq((*at)->id, id))
		at = &(*at)->next;
	return at;
}

bool codex_ask_keep(struct codex *codex, enum codex_ask ask, struct str id, struct str detail)
{
	struct codex_ask_entry **end = &codex->asks;
	size_t n = 0;

	for (; *end != NULL; end = &(*end)->next)
		n++;
	if (n >= LIMIT_AGENT_REQUESTS)
		return false;
	*end = calloc(1, sizeof(**end));
	if (*end == NULL)
		abort();
	(*end)->ask = ask;
	state_text(&(*end)->id, id);
	state_text(&(*end)->detail, detail);
	return true;
}

static void end(struct codex_ask_entry **at, enum agent_status status, struct agent_out *out)
{
	struct codex_ask_entry *entry = *at;
	struct agent_event *event = agent_out_event(out, EVENT_REQUEST_ENDED);

	event->key = str_dup(out->arena, entry->id);
	event->status = status;
	*at = entry->next;
	codex_ask_free(entry);
}

void codex_ask_resolved(struct codex *codex, const json_t *id, struct agent_out *out)
{
	struct codex_ask_entry **at = find(codex, json_text(id, out->arena));

	if (*at != NULL)
		end(at, AGENT_CANCELLED, out);
}

void codex_asks_end(struct codex *codex, struct agent_out *out)
{
	while (codex->asks != NULL)
		end(&codex->asks, AGENT_CANCELLED, out);
}

/* ---- what people are shown ---- */

/* What does not fit is cut, and says so. */
static void add_line(struct buf *text, const char *before, struct str line)
{
	static const struct str more = {" […]", sizeof(" […]") - 1};
	size_t room = text->max - text->n;
	size_t fixed = strlen(before) + more.n + 1;

	if (line.p == NULL || line.n == 0 || room < fixed)
		return;
	if (text->n > 0)
		buf_add_char(text, '\n');
	buf_add_str(text, str_of(before));
	if (line.n <= room - fixed) {
		buf_add_str(text, line);
		return;
	}
	buf_add(text, line.p, utf8_cut(line, room - fixed));
	buf_add_str(text, more);
}

static const char *title_of(enum codex_ask ask, const json_t *params)
{
	switch (ask) {
	case ASK_COMMAND:
		return str_eq(json_member_str(params, "kind"), STR("writeStdin")) ? "Write to the input of a command"
										   : "Run a command";
	case ASK_FILE_CHANGE:
		return "Change files";
	case ASK_PERMISSIONS:
		return "Grant more permissions";
	case ASK_QUESTIONS:
		return "Answer a question";
	case ASK_TOOL:
		return "Use a tool";
	case ASK_FORM:
		return "Fill in a form";
	}
	return "";
}

/* An accepted command is run without the program's sandbox when it fails inside, so the approver is told. */
static void command_detail(const struct codex *codex, const json_t *params, struct buf *text)
{
	const json_t *network = json_object_get(params, "networkApprovalContext");

	add_line(text, "", codex_script(json_member_str(params, "command")));
	add_line(text, "in ", json_member_str(params, "cwd"));
	add_line(text, "network access to ", json_member_str(network, "host"));
	add_line(text, "", json_member_str(params, "reason"));
	if (!codex->is_confined)
		add_line(text, "", STR("If accepted, it may run outside the sandbox."));
}

/* What is changed stands in the item, which was told just before. */
static void file_detail(const struct codex *codex, const json_t *params, struct buf *text)
{
	struct str key = json_member_str(params, "itemId");

	for (const struct codex_item *item = codex->items; item != NULL && key.p != NULL; item = item->next)
		if (item->kind == ITEM_FILE_CHANGE && str_starts(item->key, key) &&
			(item->key.n == key.n || item->key.p[key.n] == '#'))
			add_line(text, "", item->title);
	add_line(text, "", json_member_str(params, "reason"));
	add_line(text, "and everything below ", json_member_str(params, "grantRoot"));
}

static struct str detail_of(const struct codex *codex, enum codex_ask ask, const json_t *params, struct arena *arena)
{
	struct buf text;

	buf_init(&text, arena, LIMIT_CODEX_PROMPT_BYTES);
	switch (ask) {
	case ASK_COMMAND:
		command_detail(codex, params, &text);
		break;
	case ASK_FILE_CHANGE:
		file_detail(codex, params, &text);
		break;
	case ASK_PERMISSIONS:
		add_line(&text, "", json_member_str(params, "reason"));
		add_line(&text, "", json_text(json_object_get(params, "permissions"), arena));
		break;
	case ASK_TOOL:
		add_line(&text, "", json_member_str(params, "message"));
		add_line(&text, "", json_member_str(params, "url"));
		if (json_object_get(json_object_get(params, "_meta"), "tool_params") != NULL)
			add_line(&text, "with ",
				json_text(json_object_get(json_object_get(params, "_meta"), "tool_params"), arena));
		break;
	case ASK_FORM:
		add_line(&text, "", json_member_str(params, "message"));
		break;
	case ASK_QUESTIONS:
		break;
	}
	return buf_str(&text);
}

/* The choices of a question, as objects with a label or as plain words. */
static void write_options(struct json_writer *w, const json_t *options)
{
	size_t i;
	const json_t *option;

	if (json_array_size(options) == 0)
		return;
	jw_karray(w, "options");
	json_array_foreach (options, i, option) {
		struct str label = json_is_string(option) ? json_str(option) : json_member_str(option, "label");

		if (label.p == NULL)
			continue;
		jw_object_begin(w);
		jw_kstr(w, "value", label);
		jw_kstr(w, "label", label);
		jw_kstr_opt(w, "description", json_member_str(option, "description"));
		jw_object_end(w);
	}
	jw_array_end(w);
}

static void write_questions(struct json_writer *w, const json_t *questions)
{
	size_t i;
	const json_t *question;

	jw_karray(w, "questions");
	json_array_foreach (questions, i, question) {
		jw_object_begin(w);
		jw_kstr(w, "id", json_member_str(question, "id"));
		jw_kstr(w, "text", json_member_str(question, "question"));
		jw_kstr_opt(w, "header", json_member_str(question, "header"));
		write_options(w, json_object_get(question, "options"));
		jw_object_end(w);
	}
	jw_array_end(w);
}

/* The properties of the form of an MCP server, one question each. */
static void write_form(struct json_writer *w, const json_t *schema)
{
	const char *name;
	json_t *property;

	jw_karray(w, "questions");
	json_object_foreach ((json_t *)(uintptr_t)json_object_get(schema, "properties"), name, property) {
		struct str text = json_member_str(property, "title");
		const json_t *list = json_object_get(property, "items");

		if (text.p == NULL)
			text = json_member_str(property, "description");
		jw_object_begin(w);
		jw_ktext(w, "id", name);
		jw_kstr(w, "text", text.p != NULL ? text : str_of(name));
		write_options(w, json_object_get(list != NULL ? list : property, "enum"));
		jw_kbool_opt(w, "multiple", list != NULL);
		jw_object_end(w);
	}
	jw_array_end(w);
}

static struct str prompt_of(const struct codex *codex, enum codex_ask ask, const json_t *params, struct arena *arena)
{
	struct str detail = detail_of(codex, ask, params, arena);
	struct buf text;
	struct json_writer w;

	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_ktext(&w, "title", title_of(ask, params));
	if (detail.n > 0)
		jw_kstr(&w, "detail", detail);
	if (ask == ASK_QUESTIONS)
		write_questions(&w, json_object_get(params, "questions"));
	else if (ask == ASK_FORM)
		write_form(&w, json_object_get(params, "requestedSchema"));
	jw_object_end(&w);
	return buf_str(&text);
}

/* ---- what the answer needs ---- */

/* {"name":"type",…} of a form */
static struct str form_types(const json_t *schema, struct arena *arena)
{
	struct buf text;
	struct json_writer w;
	const char *name;
	json_t *property;

	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	json_object_foreach ((json_t *)(uintptr_t)json_object_get(schema, "properties"), name, property)
		jw_kstr(&w, name, json_member_str(property, "type"));
	jw_object_end(&w);
	return buf_str(&text);
}

static bool has_word(const json_t *words, struct str word)
{
	size_t i;
	const json_t *one;

	json_array_foreach (words, i, one)
		if (str_eq(json_str(one), word))
			return true;
	return false;
}

static struct str needed_for(enum codex_ask ask, const json_t *params, struct arena *arena)
{
	const json_t *permissions = json_object_get(params, "permissions");

	switch (ask) {
	case ASK_PERMISSIONS:
		return permissions == NULL ? STR("{}") : json_text(permissions, arena);
	case ASK_FORM:
		return form_types(json_object_get(params, "requestedSchema"), arena);
	case ASK_TOOL:
		return has_word(json_object_get(json_object_get(params, "_meta"), "persist"), STR("session"))
			? STR("{\"persist\":\"session\"}")
			: STR_NONE;
	case ASK_COMMAND:
	case ASK_FILE_CHANGE:
	case ASK_QUESTIONS:
		break;
	}
	return STR_NONE;
}

/* ---- asked ---- */

static const struct ask_row {
	const char *method;
	enum codex_ask ask;
	enum agent_request_kind kind;
} rows[] = {
	{"item/commandExecution/requestApproval", ASK_COMMAND, REQUEST_COMMAND},
	{"item/fileChange/requestApproval", ASK_FILE_CHANGE, REQUEST_FILE_CHANGE},
	{"item/permissions/requestApproval", ASK_PERMISSIONS, REQUEST_TOOL},
	{"item/tool/requestUserInput", ASK_QUESTIONS, REQUEST_USER_INPUT},
	{"mcpServer/elicitation/request", ASK_FORM, REQUEST_USER_INPUT},
};
static const struct ask_row tool_row = {NULL, ASK_TOOL, REQUEST_TOOL};

/* An MCP server asks in several ways with one method; most of it is the program itself, asking whether a tool may be
 * used. What no person can answer here has no row. */
static const struct ask_row *row_of(struct str method, const json_t *params)
{
	struct str mode = json_member_str(params, "mode");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!str_eq(method, str_of(rows[i].method)))
			continue;
		if (rows[i].ask != ASK_FORM)
			return &rows[i];
		if (str_eq(json_member_str(json_object_get(params, "_meta"), "codex_approval_kind"), STR("mcp_tool_call")) ||
			str_eq(mode, STR("url")))
			return &tool_row;
		return json_is_object(json_object_get(params, "requestedSchema")) ? &rows[i] : NULL;
	}
	return NULL;
}

void codex_asked(struct codex *codex, const struct rpc_message *asked, struct agent_out *out)
{
	const json_t *params = asked->params;
	const struct ask_row *row = row_of(asked->method, params);
	struct str needed = row == NULL ? STR_NONE : needed_for(row->ask, params, out->arena);
	struct agent_request *request;

	if (row == NULL || asked->id.n > LIMIT_CODEX_ID_BYTES || needed.n > LIMIT_CODEX_REQUEST_BYTES) {
		rpc_refuse(out, asked->id, RPC_METHOD_NOT_FOUND, "not supported");
		return;
	}
	if (*find(codex, asked->id) != NULL || !codex_ask_keep(codex, row->ask, asked->id, needed)) {
		rpc_refuse(out, asked->id, RPC_METHOD_NOT_FOUND, "too many requests");
		return;
	}
	request = &agent_out_event(out, EVENT_REQUEST)->request;
	request->key = asked->id;
	request->kind = row->kind;
	request->item = str_dup(out->arena, json_member_str(params, "itemId"));
	request->prompt = prompt_of(codex, row->ask, params, out->arena);
}

/* ---- answered ---- */

static const char *const decisions[] = {
	[DECISION_ACCEPT] = "accept",
	[DECISION_ACCEPT_FOR_SESSION] = "acceptForSession",
	[DECISION_DECLINE] = "decline", /* the turn goes on */
	[DECISION_CANCEL] = "cancel",	/* the turn ends */
};

static bool is_yes(enum agent_decision decision)
{
	return decision == DECISION_ACCEPT || decision == DECISION_ACCEPT_FOR_SESSION;
}

static void write_permissions(const struct codex_ask_entry *entry, enum agent_decision decision, struct json_writer *w)
{
	jw_kraw(w, "permissions", is_yes(decision) ? entry->detail : STR("{}"));
	jw_ktext(w, "scope", decision == DECISION_ACCEPT_FOR_SESSION ? "session" : "turn");
}

static void write_answers(const json_t *answers, struct json_writer *w)
{
	const char *id;
	json_t *value;

	jw_kobject(w, "answers");
	json_object_foreach ((json_t *)(uintptr_t)answers, id, value) {
		jw_kobject(w, id);
		jw_key(w, "answers");
		if (json_is_array(value)) {
			jw_json(w, value);
		} else {
			jw_array_begin(w);
			jw_json(w, value);
			jw_array_end(w);
		}
		jw_object_end(w);
	}
	jw_object_end(w);
}

/* A form wants numbers and booleans as such; people answer in text. */
static void write_value(const json_t *value, struct str type, struct json_writer *w)
{
	struct str text = json_str(value);
	struct json_error error;
	json_auto_t *read = NULL;

	if (text.p != NULL && (str_eq(type, STR("integer")) || str_eq(type, STR("number")) || str_eq(type, STR("boolean"))))
		read = json_read(text, &error);
	if (json_is_number(read) || json_is_boolean(read))
		jw_json(w, read);
	else
		jw_json(w, value);
}

static void write_elicited(const struct codex_ask_entry *entry, const struct agent_order *order, struct json_writer *w)
{
	bool is_accepted = order->answers != NULL || is_yes(order->decision);
	const char *name;
	json_t *value;

	jw_ktext(w, "action", is_accepted ? "accept" : order->decision == DECISION_CANCEL ? "cancel" : "decline");
	jw_key(w, "content");
	if (is_accepted) {
		struct json_error error;
		json_auto_t *types = entry->ask == ASK_FORM ? json_read(entry->detail, &error) : NULL;

		jw_object_begin(w);
		json_object_foreach ((json_t *)(uintptr_t)order->answers, name, value) {
			jw_key_str(w, str_of(name));
			write_value(value, json_member_str(types, name), w);
		}
		jw_object_end(w);
	} else {
		jw_null(w);
	}
	jw_key(w, "_meta");
	if (entry->ask == ASK_TOOL && entry->detail.p != NULL && order->answers == NULL &&
		order->decision == DECISION_ACCEPT_FOR_SESSION)
		jw_raw(w, entry->detail);
	else
		jw_null(w);
}

static bool is_for_people(int64_t ask)
{
	return ask == ASK_QUESTIONS || ask == ASK_FORM;
}

int codex_answer(struct codex *codex, const struct agent_order *order, struct agent_out *out)
{
	struct codex_ask_entry **at = find(codex, order->request);
	struct codex_ask_entry *entry = *at;
	struct rpc_line line;
	struct json_writer *w;

	if (entry == NULL || (order->answers != NULL && !is_for_people(entry->ask)))
		return -1;
	w = rpc_answer(&line, out, entry->id);
	jw_object_begin(w);
	switch ((enum codex_ask)entry->ask) {
	case ASK_COMMAND:
	case ASK_FILE_CHANGE:
		jw_ktext(w, "decision", decisions[order->decision]);
		break;
	case ASK_PERMISSIONS:
		write_permissions(entry, order->decision, w);
		break;
	case ASK_QUESTIONS:
		write_answers(order->answers, w);
		break;
	case ASK_TOOL:
	case ASK_FORM:
		write_elicited(entry, order, w);
		break;
	}
	jw_object_end(w);
	rpc_end(&line);
	end(at, AGENT_COMPLETED, out);
	return 0;
}
