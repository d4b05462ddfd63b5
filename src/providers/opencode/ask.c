/* What the program asks: may a tool run, and questions of the model. Sub-agents ask too: whoever asks is answered. */
#include "providers/opencode/opencode.h"

#include "base/limits.h"

static const struct {
	const char *permission;
	enum agent_request_kind kind;
} kinds[] = {
	{"bash", REQUEST_COMMAND},
	{"edit", REQUEST_FILE_CHANGE},
	{"external_directory", REQUEST_FILE_READ},
	{"read", REQUEST_FILE_READ},
};

static enum agent_request_kind kind_of(struct str permission)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (str_eq(permission, str_of(kinds[i].permission)))
			return kinds[i].kind;
	return REQUEST_TOOL;
}

static bool keep(struct opencode *o, struct str id, const char *kind, int64_t questions)
{
	json_t *row;

	if (!o->in_turn || o->is_interrupted || id.n == 0 || json_object_size(o->asks) >= LIMIT_OPENCODE_ASKS)
		return false;
	row = json_object();
	json_object_set_new(row, "kind", json_string(kind));
	json_object_set_new(row, "questions", json_integer(questions));
	json_object_setn_new(o->asks, id.p, id.n, row);
	return true;
}

static void reply_permission(struct opencode *o, struct str id, const char *reply, const char *message, struct agent_out *out)
{
	struct request r;

	if (!opencode_request_begin(o, &r, "reply", "POST", str_printf(out->arena, "/permission/%.*s/reply", STRF(id)), out))
		return;
	jw_ktext(&r.w, "reply", reply);
	if (message != NULL)
		jw_ktext(&r.w, "message", message);
	opencode_request_end(&r, false);
}

static struct str permission_prompt(struct arena *arena, const json_t *properties, struct str permission)
{
	const json_t *metadata = json_object_get(properties, "metadata");
	struct str command = json_member_str(metadata, "command");
	struct str diff = json_member_str(metadata, "diff");
	struct str first = json_str(json_array_get(json_object_get(properties, "patterns"), 0));
	struct str detail = command.n > 0 ? command : diff.n > 0 ? diff : json_compact(arena, metadata);
	struct body b;

	if (command.n > 0)
		first = command;
	first.n = utf8_cut(first, LIMIT_OPENCODE_TITLE_BYTES);
	detail.n = utf8_cut(detail, LIMIT_OPENCODE_DETAIL_BYTES);
	body_begin(&b, arena);
	jw_kstr(&b.w, "title", str_printf(arena, "%.*s: %.*s", STRF(permission), STRF(first)));
	jw_kstr(&b.w, "detail", detail);
	return body_end(&b);
}

void opencode_permission(struct opencode *o, const json_t *properties, struct agent_out *out)
{
	struct str id = opencode_id(out->arena, json_member_str(properties, "id"));
	struct str permission = opencode_id(out->arena, json_member_str(properties, "permission"));
	struct agent_request *request;

	if (!keep(o, id, "permission", 0)) {
		reply_permission(o, id, "reject", NULL, out);
		return;
	}
	request = &agent_out_event(out, EVENT_REQUEST)->request;
	request->key = id;
	request->kind = kind_of(permission);
	request->item = opencode_id(out->arena, json_member_str(json_object_get(properties, "tool"), "callID"));
	request->prompt = permission_prompt(out->arena, properties, permission.p == NULL ? STR("tool") : permission);
}

/* ---- questions ---- */

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
	jw_kbool_opt(w, "multiple", json_is_true(json_object_get(question, "multiple")));
	jw_object_end(w);
}

void opencode_question(struct opencode *o, const json_t *properties, struct agent_out *out)
{
	const json_t *questions = json_object_get(properties, "questions");
	struct str id = opencode_id(out->arena, json_member_str(properties, "id"));
	const json_t *question;
	struct agent_request *request;
	struct body b;
	size_t i;

	if (!keep(o, id, "question", (int64_t)json_array_size(questions))) {
		(void)opencode_request(o, "reply", "POST", str_printf(out->arena, "/question/%.*s/reject", STRF(id)), out);
		return;
	}
	body_begin(&b, out->arena);
	jw_kstr(&b.w, "title", json_member_str(json_array_get(questions, 0), "question"));
	jw_karray(&b.w, "questions");
	json_array_foreach(questions, i, question)
		write_question(&b.w, i + 1, question);
	jw_array_end(&b.w);
	request = &agent_out_event(out, EVENT_REQUEST)->request;
	request->key = id;
	request->kind = REQUEST_USER_INPUT;
	request->prompt = body_end(&b);
}

/* ---- answers ---- */

void opencode_asked_ended(struct opencode *o, struct str id, enum agent_status status, struct agent_out *out)
{
	struct agent_event *event;

	if (id.n == 0 || json_object_getn(o->asks, id.p, id.n) == NULL)
		return;
	event = agent_out_event(out, EVENT_REQUEST_ENDED);
	event->key = str_dup(out->arena, id);
	event->status = status;
	json_object_deln(o->asks, id.p, id.n);
}

void opencode_asks_close(struct opencode *o, struct agent_out *out)
{
	const char *id;
	json_t *row;
	void *next;

	json_object_foreach_safe(o->asks, next, id, row)
		opencode_asked_ended(o, str_dup(out->arena, str_of(id)), AGENT_CANCELLED, out);
}

static void write_answer(struct json_writer *w, const json_t *answer)
{
	const json_t *choice;
	size_t i;

	jw_array_begin(w);
	if (json_is_string(answer))
		jw_str(w, json_str(answer));
	json_array_foreach(answer, i, choice)
		if (json_is_string(choice))
			jw_str(w, json_str(choice));
	jw_array_end(w);
}

static void answer_question(struct opencode *o, struct str id, int64_t count, const json_t *answers, struct agent_out *out)
{
	struct request r;

	if (!opencode_request_begin(o, &r, "reply", "POST", str_printf(out->arena, "/question/%.*s/reply", STRF(id)), out))
		return;
	jw_karray(&r.w, "answers");
	for (int64_t i = 1; i <= count; i++) {
		char number[24];

		(void)snprintf(number, sizeof(number), "%lld", (long long)i);
		write_answer(&r.w, json_object_get(answers, number));
	}
	jw_array_end(&r.w);
	opencode_request_end(&r, false);
}

/* A refusal without a message would end the turn. */
static void decide(struct opencode *o, const struct agent_order *order, struct agent_out *out)
{
	switch (order->answers != NULL ? DECISION_DECLINE : order->decision) {
	case DECISION_ACCEPT:
		reply_permission(o, order->request, "once", NULL, out);
		break;
	case DECISION_ACCEPT_FOR_SESSION:
		reply_permission(o, order->request, "always", NULL, out);
		break;
	case DECISION_DECLINE:
		reply_permission(o, order->request, "reject", "The user declined this.", out);
		break;
	case DECISION_CANCEL:
		o->is_interrupted = true;
		o->interrupt_by = o->now + LIMIT_OPENCODE_INTERRUPT_MS;
		reply_permission(o, order->request, "reject", NULL, out);
		(void)opencode_request(o, "abort", "POST", str_printf(out->arena, "/session/%.*s/abort", STRF(o->native)), out);
		break;
	}
}

void opencode_answer(struct opencode *o, const struct agent_order *order, struct agent_out *out)
{
	const json_t *row = order->request.n == 0 ? NULL : json_object_getn(o->asks, order->request.p, order->request.n);

	if (row == NULL) {
		opencode_refuse(out, order->key, CODE_invalid_request, STR("the program does not wait for this answer"));
		return;
	}
	if (str_eq(json_member_str(row, "kind"), STR("permission")))
		decide(o, order, out);
	else if (order->answers == NULL)
		(void)opencode_request(o, "reply", "POST", str_printf(out->arena, "/question/%.*s/reject", STRF(order->request)), out);
	else
		answer_question(o, order->request, json_integer_value(json_object_get(row, "questions")), order->answers, out);
	opencode_asked_ended(o, order->request, AGENT_COMPLETED, out);
}
