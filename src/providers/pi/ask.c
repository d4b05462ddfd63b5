/* Dialogs: those of our bridge (may this tool run, a question of the model, its own business), and those of extensions that
 * we do not know, which are questions too. */
#include "providers/pi/pi.h"

#include "base/limits.h"

struct dialog {
	struct str id, method, title;
	struct str rest; /* of a title of the bridge: what follows its name */
	const json_t *line;
};

/* ---- what people see ---- */

static void write_options(struct json_writer *w, const json_t *options)
{
	const json_t *option;
	size_t i;

	jw_karray(w, "options");
	json_array_foreach(options, i, option) {
		if (!json_is_string(option))
			continue;
		jw_object_begin(w);
		jw_kstr(w, "value", json_str(option));
		jw_kstr(w, "label", json_str(option));
		jw_object_end(w);
	}
	jw_array_end(w);
}

struct question {
	struct str text, header;
	const json_t *options;
	bool multiple;
};

static struct str question_prompt(struct arena *arena, const struct question *q)
{
	struct body b;

	body_begin(&b, arena);
	jw_kstr(&b.w, "title", q->text);
	jw_karray(&b.w, "questions");
	jw_object_begin(&b.w);
	jw_ktext(&b.w, "id", "1");
	jw_kstr(&b.w, "text", q->text);
	jw_kstr_opt(&b.w, "header", q->header);
	write_options(&b.w, q->options);
	jw_kbool_opt(&b.w, "multiple", q->multiple);
	jw_object_end(&b.w);
	jw_array_end(&b.w);
	return body_end(&b);
}

/* A command as it is, else everything: a person allows what they see. */
static struct str approval_prompt(struct arena *arena, struct str tool, const json_t *input)
{
	struct str command = json_member_str(input, "command");
	struct str detail = command.p != NULL && json_object_size(input) == 1 ? command : json_compact(arena, input);
	struct body b;

	detail.n = utf8_cut(detail, LIMIT_PI_DETAIL_BYTES);
	body_begin(&b, arena);
	jw_kstr(&b.w, "title", str_printf(arena, "%.*s: %.*s", STRF(tool), STRF(pi_tool_title(arena, tool, input))));
	jw_kstr(&b.w, "detail", detail);
	return body_end(&b);
}

/* False: there is nobody to ask, or too much is open. The program is told so. */
static bool keep(struct pi *p, const struct dialog *d, const char *kind, struct str item, struct agent_out *out)
{
	json_t *row;

	if (!p->in_turn || p->is_interrupted || json_object_size(p->asks) >= LIMIT_PI_ASKS || d->id.n == 0) {
		pi_write_cancelled(out, d->id);
		return false;
	}
	row = json_object();
	state_row_text(row, "kind", str_of(kind));
	state_row_text(row, "item", item);
	json_object_setn_new(p->asks, d->id.p, d->id.n, row);
	return true;
}

static void raise(const struct dialog *d, enum agent_request_kind kind, struct str item, struct str prompt, struct agent_out *out)
{
	struct agent_request *request = &agent_out_event(out, EVENT_REQUEST)->request;

	request->key = str_dup(out->arena, d->id);
	request->kind = kind;
	request->item = item;
	request->prompt = prompt;
}

/* ---- dialogs of the bridge ---- */

static void on_settings(struct pi *p, const struct dialog *d, struct agent_out *out)
{
	p->is_asked = true;
	pi_write_value(out, d->id, pi_settings(p, out->arena), p->url.n > 0);
}

static void on_ready(struct pi *p, const struct dialog *d, struct agent_out *out)
{
	struct json_error error;
	json_auto_t *told = json_read(d->rest, &error);

	SET(p, channel, d->id);
	pi_on_ready(p, told, out);
}

static void on_approve(struct pi *p, const struct dialog *d, struct agent_out *out)
{
	struct json_error error;
	json_auto_t *asked = json_read(d->rest, &error);
	struct str item = pi_id(out->arena, json_member_str(asked, "toolCallId"));
	struct str tool = pi_id(out->arena, json_member_str(asked, "tool"));

	if (tool.n == 0) {
		pi_write_cancelled(out, d->id); /* what cannot be shown is not allowed */
		return;
	}
	if (keep(p, d, "approve", item, out))
		raise(d, pi_tool_request(tool), item, approval_prompt(out->arena, tool, json_object_get(asked, "input")), out);
}

static void on_ask(struct pi *p, const struct dialog *d, struct agent_out *out)
{
	struct json_error error;
	json_auto_t *asked = json_read(d->rest, &error);
	struct question q = {.text = json_member_str(asked, "question"),
		.header = json_member_str(asked, "header"),
		.options = json_object_get(asked, "options"),
		.multiple = json_is_true(json_object_get(asked, "multi"))};

	if (q.text.n == 0) {
		pi_write_cancelled(out, d->id);
		return;
	}
	if (keep(p, d, "text", STR_NONE, out))
		raise(d, REQUEST_USER_INPUT, STR_NONE, question_prompt(out->arena, &q), out);
}

static const struct {
	const char *title;
	void (*read)(struct pi *p, const struct dialog *d, struct agent_out *out);
} dialogs[] = {
	{"dais:approve:1:", on_approve},
	{"dais:ask:1:", on_ask},
	{"dais:ready:1:", on_ready},
	{"dais:settings:1", on_settings},
};

/* ---- what needs no answer ---- */

static void on_notify(struct pi *p, const json_t *line, struct agent_out *out)
{
	struct str message = json_member_str(line, "message");
	struct str type = json_member_str(line, "notifyType");
	struct str blocked = STR("dais:blocked:1:");
	struct str failed = STR("dais:failed:1:");

	if (str_starts(message, blocked))
		pi_tool_not_run(p, pi_id(out->arena, (struct str){message.p + blocked.n, message.n - blocked.n}), AGENT_CANCELLED);
	else if (str_starts(message, failed))
		pi_broken(p, out, CODE_protocol_violation,
			str_printf(out->arena, "the bridge inside Pi failed: %.*s", (int)(message.n - failed.n), message.p + failed.n));
	else if (p->in_turn && message.n > 0)
		pi_notice(p, out, str_eq(type, STR("error")) ? "error" : str_eq(type, STR("warning")) ? "warning" : "info", message);
}

static bool needs_answer(struct str method)
{
	return str_eq(method, STR("select")) || str_eq(method, STR("confirm")) || str_eq(method, STR("input")) ||
		str_eq(method, STR("editor"));
}

/* Of an extension of the user. */
static void on_foreign(struct pi *p, const struct dialog *d, struct agent_out *out)
{
	bool is_confirm = str_eq(d->method, STR("confirm"));
	struct str message = json_member_str(d->line, "message");
	json_auto_t *yes_or_no = json_pack("[s,s]", "yes", "no");
	struct question q = {.text = d->title, .options = is_confirm ? yes_or_no : json_object_get(d->line, "options")};

	if (message.n > 0)
		q.text = str_printf(out->arena, "%.*s\n%.*s", STRF(d->title), STRF(message));
	if (keep(p, d, is_confirm ? "confirm" : "text", STR_NONE, out))
		raise(d, REQUEST_USER_INPUT, STR_NONE, question_prompt(out->arena, &q), out);
}

void pi_dialog(struct pi *p, const json_t *line, struct agent_out *out)
{
	struct dialog d = {.id = pi_id(out->arena, json_member_str(line, "id")),
		.method = json_member_str(line, "method"),
		.title = json_member_str(line, "title"),
		.line = line};

	if (str_eq(d.method, STR("notify"))) {
		on_notify(p, line, out);
		return;
	}
	if (!needs_answer(d.method) || d.id.n == 0)
		return;
	for (size_t i = 0; i < sizeof(dialogs) / sizeof(dialogs[0]); i++) {
		struct str title = str_of(dialogs[i].title);

		if (!str_starts(d.title, title))
			continue;
		d.rest = (struct str){d.title.p + title.n, d.title.n - title.n};
		dialogs[i].read(p, &d, out);
		return;
	}
	on_foreign(p, &d, out);
}

/* ---- answers ---- */

static void ended(struct pi *p, struct str key, enum agent_status status, struct agent_out *out)
{
	struct agent_event *event = agent_out_event(out, EVENT_REQUEST_ENDED);

	event->key = str_dup(out->arena, key);
	event->status = status;
	json_object_deln(p->asks, key.p, key.n);
}

void pi_asks_close(struct pi *p, bool tells_program, struct agent_out *out)
{
	const char *key;
	json_t *row;
	void *next;

	json_object_foreach_safe(p->asks, next, key, row) {
		struct str id = str_dup(out->arena, str_of(key));

		if (tells_program)
			pi_write_cancelled(out, id);
		pi_tool_not_run(p, str_dup(out->arena, json_member_str(row, "item")), AGENT_INTERRUPTED);
		ended(p, id, AGENT_CANCELLED, out);
	}
}

static void approve(struct pi *p, struct str id, const json_t *row, enum agent_decision decision, struct agent_out *out)
{
	static const char *const words[] = {"allow_once", "allow_session", "deny", "cancel"};

	if (decision == DECISION_DECLINE || decision == DECISION_CANCEL)
		pi_tool_not_run(p, str_dup(out->arena, json_member_str(row, "item")), AGENT_INTERRUPTED);
	if (decision == DECISION_CANCEL) { /* the bridge ends the turn */
		p->is_interrupted = true;
		p->interrupt_by = p->now + LIMIT_PI_INTERRUPT_MS;
	}
	pi_write_value(out, id, str_of(words[decision]), false);
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

void pi_answer(struct pi *p, const struct agent_order *order, struct agent_out *out)
{
	const json_t *row = order->request.n == 0 ? NULL : json_object_getn(p->asks, order->request.p, order->request.n);
	struct str kind = json_member_str(row, "kind");
	struct str text = answer_text(out->arena, json_object_get(order->answers, "1"));

	if (row == NULL) {
		pi_refuse(out, order->key, CODE_invalid_request, STR("the program does not wait for this answer"));
		return;
	}
	if (str_eq(kind, STR("approve")))
		approve(p, order->request, row, order->answers != NULL ? DECISION_DECLINE : order->decision, out);
	else if (text.p == NULL)
		pi_write_cancelled(out, order->request);
	else if (str_eq(kind, STR("confirm")))
		pi_write_confirmed(out, order->request, str_eq(text, STR("yes")));
	else
		pi_write_value(out, order->request, text, false);
	ended(p, order->request, AGENT_COMPLETED, out);
}
