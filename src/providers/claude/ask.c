/* What the program asks: may a tool run, which answer does a person give, is this plan good. */
#include "providers/claude/claude.h"

#include "base/id.h"
#include "base/limits.h"

struct ask {
	struct str id;	 /* of the request, as the program wrote it */
	struct str key;	 /* the same, as we keep it */
	struct str item; /* call it is about */
	struct str tool;
	const json_t *request, *input;
	const struct tool_row *row;
};

/* Without updatedInput the program runs what it asked about: nothing of it has to be kept. */
static void allow(struct agent_out *out, struct str request)
{
	claude_write_answer(out, request, STR("{\"behavior\":\"allow\"}"));
}

static void deny(struct agent_out *out, struct str request, const char *message, bool ends_turn)
{
	struct body b;

	body_begin(&b, out->arena);
	jw_ktext(&b.w, "behavior", "deny");
	jw_ktext(&b.w, "message", message);
	jw_kbool_opt(&b.w, "interrupt", ends_turn);
	claude_write_answer(out, request, body_end(&b));
}

/* Denied without asking: NULL when it is not. */
static const char *forbidden(const struct claude *c, const struct ask *ask)
{
	if (c->is_confined || c->runtime == RUNTIME_READ_ONLY)
		return "This session is read-only.";
	if (c->interaction != INTERACTION_PLAN)
		return NULL;
	if (ask->row->request == REQUEST_FILE_CHANGE)
		return "This is a planning session: nothing is changed. Put the change into the plan.";
	/* With full access there is nobody to ask, and a command that only reads is not asked about. */
	if (ask->row->request == REQUEST_COMMAND && c->runtime == RUNTIME_FULL_ACCESS)
		return "This is a planning session: only commands that read may run.";
	return NULL;
}

/* The call, whatever the model says it is for. */
static struct str call_hash(struct arena *arena, const struct ask *ask)
{
	json_t *input = json_copy((json_t *)(uintptr_t)ask->input);
	struct str hash;

	json_object_del(input, "description");
	hash = sha256_hex(arena, str_printf(arena, "%.*s %.*s", STRF(ask->tool), STRF(json_canonical(arena, input))));
	json_decref(input);
	return (struct str){hash.p, 32};
}

/* What "for the session" means: the rules that the program proposes for this very call, or, where it proposes none (edits),
 * its proposal to accept edits. The other proposals beside rules would open more than was asked. Their destination would be
 * a settings file of the project: only the session is meant. The program asks about some calls again all the same (a line
 * of several commands that writes): these we answer. */
static json_t *session_rules(const json_t *suggestions)
{
	json_t *rules = json_array();
	const json_t *suggestion;
	size_t i;

	for (int pass = 0; pass < 2 && json_array_size(rules) == 0; pass++)
		json_array_foreach(suggestions, i, suggestion) {
			struct str type = json_member_str(suggestion, "type");
			json_t *rule;

			if (!str_eq(type, pass == 0 ? STR("addRules") : STR("setMode")))
				continue;
			rule = json_copy((json_t *)(uintptr_t)suggestion);
			json_object_set_new(rule, "destination", json_string("session"));
			json_array_append_new(rules, rule);
		}
	return rules;
}

/* As much of the questions as the program wants back with the answers. */
static json_t *kept_questions(const json_t *input)
{
	json_t *questions = json_deep_copy(json_object_get(input, "questions"));
	const json_t *question, *option;
	size_t i, j;

	json_array_foreach(questions, i, question)
		json_array_foreach(json_object_get(question, "options"), j, option)
			json_object_del((json_t *)(uintptr_t)option, "preview");
	return questions;
}

static bool was_allowed(const struct claude *c, const struct ask *ask, struct arena *arena)
{
	struct str hash = call_hash(arena, ask);

	if (c->interaction == INTERACTION_PLAN)
		return false; /* it was allowed for work */
	return json_object_getn(c->allowed, hash.p, hash.n) != NULL;
}

static void remember_allowed(struct claude *c, const json_t *row)
{
	struct str hash = json_member_str(row, "call");

	if (hash.p != NULL && json_object_size(c->allowed) < LIMIT_CLAUDE_ALLOWED)
		json_object_setn_new(c->allowed, hash.p, hash.n, json_true());
}

static bool fits(const struct claude *c, struct arena *arena, const json_t *row)
{
	return json_canonical(arena, c->asks).n + json_canonical(arena, row).n <= LIMIT_CLAUDE_ASK_BYTES;
}

static bool keep(struct claude *c, const struct ask *ask, struct arena *arena)
{
	json_t *row = json_object();

	state_row_text(row, "id", ask->id);
	state_row_text(row, "item", ask->item);
	if (ask->row->request == REQUEST_USER_INPUT)
		json_object_set_new(row, "questions", kept_questions(ask->input));
	else
		json_object_set_new(row, "rules", session_rules(json_object_get(ask->request, "permission_suggestions")));
	if (ask->row->request != REQUEST_USER_INPUT)
		state_row_text(row, "call", call_hash(arena, ask));
	if (!fits(c, arena, row))
		json_object_del(row, "rules"); /* then "for the session" is for this very call */
	if (!fits(c, arena, row)) {
		json_decref(row);
		return false;
	}
	json_object_setn_new(c->asks, ask->key.p, ask->key.n, row);
	return true;
}

static void write_question(struct json_writer *w, size_t number, const json_t *question)
{
	const json_t *option;
	char id[24];
	size_t i;

	(void)snprintf(id, sizeof(id), "%zu", number);
	jw_object_begin(w);
	jw_ktext(w, "id", id);
	jw_kstr(w, "text", json_member_str(question, "question"));
	jw_kstr_opt(w, "header", json_member_str(question, "header"));
	jw_karray(w, "options");
	json_array_foreach(json_object_get(question, "options"), i, option) {
		jw_object_begin(w);
		jw_kstr(w, "value", json_member_str(option, "label"));
		jw_kstr(w, "label", json_member_str(option, "label"));
		jw_kstr_opt(w, "description", json_member_str(option, "description"));
		jw_object_end(w);
	}
	jw_array_end(w);
	jw_kbool_opt(w, "multiple", json_is_true(json_object_get(question, "multiSelect")));
	jw_object_end(w);
}

static struct str question_prompt(struct arena *arena, const json_t *input)
{
	const json_t *questions = json_object_get(input, "questions");
	const json_t *question;
	struct body b;
	size_t i;

	body_begin(&b, arena);
	jw_kstr(&b.w, "title", json_member_str(json_array_get(questions, 0), "question"));
	jw_karray(&b.w, "questions");
	json_array_foreach(questions, i, question)
		write_question(&b.w, i + 1, question);
	jw_array_end(&b.w);
	return body_end(&b);
}

/* A command as it is, where that is all there is to say; else everything: a person allows what they see. */
static struct str whole_call(struct arena *arena, const json_t *input)
{
	static const char *const plain[] = {"command", "description", "timeout"};
	struct str command = json_member_str(input, "command");
	size_t known = 0;

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		known += json_object_get(input, plain[i]) != NULL;
	return command.p != NULL && known == json_object_size(input) ? command : json_canonical(arena, input);
}

static struct str permission_prompt(struct arena *arena, const struct ask *ask)
{
	struct str title = claude_tool_title(arena, ask->tool, ask->input);
	struct str detail = whole_call(arena, ask->input);
	struct body b;

	detail.n = utf8_cut(detail, LIMIT_CLAUDE_DETAIL_BYTES);
	body_begin(&b, arena);
	jw_kstr(&b.w, "title", str_printf(arena, "%.*s: %.*s", STRF(ask->tool), STRF(title)));
	jw_kstr(&b.w, "detail", detail);
	return body_end(&b);
}

static void ask_person(struct claude *c, const struct ask *ask, struct agent_out *out)
{
	bool is_question = ask->row->request == REQUEST_USER_INPUT;
	struct agent_request *request;

	if (!keep(c, ask, out->arena)) {
		deny(out, ask->id, "This is too long to be shown to a person.", false);
		return;
	}
	request = &agent_out_event(out, EVENT_REQUEST)->request;
	request->key = ask->key;
	request->kind = ask->row->request;
	request->item = is_question ? STR_NONE : ask->item;
	request->prompt = is_question ? question_prompt(out->arena, ask->input) : permission_prompt(out->arena, ask);
}

/* Where planning is all that was asked for, the plan ends it; elsewhere the model planned on its own and goes on. */
static void on_plan(struct claude *c, const struct ask *ask, struct agent_out *out)
{
	claude_plan(out, ask->item, json_member_str(ask->input, "plan"));
	if (c->interaction == INTERACTION_PLAN)
		deny(out, ask->id, "The plan was captured by the host. Stop here.", false);
	else
		allow(out, ask->id);
}

static void can_use_tool(struct claude *c, const struct ask *ask, struct agent_out *out)
{
	const char *why;

	if (ask->row->item == ITEM_PLAN) {
		on_plan(c, ask, out);
		return;
	}
	if (ask->row->request == REQUEST_USER_INPUT) {
		ask_person(c, ask, out);
		return;
	}
	if (str_starts(ask->tool, STR("mcp__" CLAUDE_SERVER "__"))) {
		allow(out, ask->id);
		return;
	}
	why = forbidden(c, ask);
	if (why != NULL)
		deny(out, ask->id, why, false);
	else if (c->runtime == RUNTIME_FULL_ACCESS || was_allowed(c, ask, out->arena))
		allow(out, ask->id);
	else
		ask_person(c, ask, out);
}

static bool asks_nothing(const struct ask *ask)
{
	return ask->row->request == REQUEST_USER_INPUT && ask->row->item != ITEM_PLAN &&
		json_array_size(json_object_get(ask->input, "questions")) == 0;
}

void claude_control_request(struct claude *c, const json_t *line, struct agent_out *out)
{
	const json_t *request = json_object_get(line, "request");
	struct str subtype = json_member_str(request, "subtype");
	struct ask ask = {.id = json_member_str(line, "request_id"), .request = request};

	if (ask.id.n == 0)
		return;
	if (str_eq(subtype, STR("elicitation"))) {
		claude_write_answer(out, ask.id, STR("{\"action\":\"decline\"}"));
		return;
	}
	if (!str_eq(subtype, STR("can_use_tool"))) {
		claude_write_refusal(out, ask.id, "Unsupported control request.");
		return;
	}
	ask.key = claude_id(out->arena, ask.id);
	ask.item = claude_id(out->arena, json_member_str(request, "tool_use_id"));
	ask.tool = claude_id(out->arena, json_member_str(request, "tool_name"));
	ask.input = json_object_get(request, "input");
	ask.row = claude_tool(ask.tool);
	if (ask.tool.n == 0 || !json_is_object(ask.input) || asks_nothing(&ask)) {
		claude_write_refusal(out, ask.id, "A question about nothing.");
		return;
	}
	can_use_tool(c, &ask, out);
}

/* ---- answers ---- */

static void ended(struct claude *c, struct str key, enum agent_status status, struct agent_out *out)
{
	struct agent_event *event = agent_out_event(out, EVENT_REQUEST_ENDED);

	event->key = str_dup(out->arena, key);
	event->status = status;
	json_object_deln(c->asks, key.p, key.n);
}

void claude_control_cancel(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct str key = claude_id(out->arena, json_member_str(line, "request_id"));

	if (key.p != NULL && json_object_getn(c->asks, key.p, key.n) != NULL)
		ended(c, key, AGENT_CANCELLED, out);
}

void claude_asks_close(struct claude *c, struct agent_out *out)
{
	const char *key;
	json_t *row;
	void *next;

	json_object_foreach_safe(c->asks, next, key, row)
		if (!claude_in_background(c, json_member_str(row, "item")))
			ended(c, str_dup(out->arena, str_of(key)), AGENT_CANCELLED, out);
}

static void allow_for_session(struct agent_out *out, struct str request, const json_t *rules)
{
	struct body b;

	if (json_array_size(rules) == 0) {
		allow(out, request);
		return;
	}
	body_begin(&b, out->arena);
	jw_ktext(&b.w, "behavior", "allow");
	jw_key(&b.w, "updatedPermissions");
	jw_json(&b.w, rules);
	claude_write_answer(out, request, body_end(&b));
}

/* Several choices are one text for the program. */
static struct str answer_text(struct arena *arena, const json_t *answer)
{
	struct str text = json_str(answer);
	const json_t *choice;
	size_t i;

	json_array_foreach(answer, i, choice)
		text = str_printf(arena, "%.*s%s%.*s", STRF(text), i == 0 ? "" : ", ", STRF(json_str(choice)));
	return text;
}

/* By the text of the question, which is the program's key. */
static json_t *answers_by_text(struct arena *arena, const json_t *questions, const json_t *answers)
{
	json_t *by_text = json_object();
	const json_t *question;
	char id[24];
	size_t i;

	json_array_foreach(questions, i, question) {
		struct str key = json_member_str(question, "question");
		struct str text;

		(void)snprintf(id, sizeof(id), "%zu", i + 1);
		text = answer_text(arena, json_object_get(answers, id));
		if (key.p != NULL && text.p != NULL)
			json_object_setn_new(by_text, key.p, key.n, json_stringn(text.p, text.n));
	}
	return by_text;
}

static void answer_questions(struct agent_out *out, struct str request, const json_t *questions, const json_t *answers)
{
	json_t *by_text = answers_by_text(out->arena, questions, answers);
	struct body b;

	body_begin(&b, out->arena);
	jw_ktext(&b.w, "behavior", "allow");
	jw_kobject(&b.w, "updatedInput");
	jw_key(&b.w, "questions");
	jw_json(&b.w, questions);
	jw_key(&b.w, "answers");
	jw_json(&b.w, by_text);
	jw_object_end(&b.w);
	claude_write_answer(out, request, body_end(&b));
	json_decref(by_text);
}

static void decide(struct claude *c, struct agent_out *out, const json_t *row, enum agent_decision decision)
{
	struct str id = json_member_str(row, "id");
	bool is_question = json_object_get(row, "questions") != NULL;

	if (decision == DECISION_CANCEL) {
		deny(out, id, "The user stopped this.", true);
	} else if (decision == DECISION_DECLINE || is_question) {
		deny(out, id, is_question ? "The user did not answer." : "The user declined this.", false);
	} else if (decision == DECISION_ACCEPT) {
		allow(out, id);
	} else {
		remember_allowed(c, row);
		allow_for_session(out, id, json_object_get(row, "rules"));
	}
}

void claude_answer(struct claude *c, const struct agent_order *order, struct agent_out *out)
{
	const json_t *row = json_object_getn(c->asks, order->request.p, order->request.n);
	const json_t *questions = json_object_get(row, "questions");

	if (row == NULL) {
		claude_refuse(out, order->key, CODE_invalid_request, STR("the program does not wait for this answer"));
		return;
	}
	if (questions != NULL && order->answers != NULL)
		answer_questions(out, json_member_str(row, "id"), questions, order->answers);
	else
		decide(c, out, row, order->decision);
	ended(c, order->request, AGENT_COMPLETED, out);
}
