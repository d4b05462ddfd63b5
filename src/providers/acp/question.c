/* Structured questions and proposed plans, in five shapes; inside they are one list:
 *
 *   [{"id", "name"?, "type", "free"?, "options"?: [{"value","label"}]}]
 *
 * `id` is what people and models answer to, `name` the key the agent wants where that is another one, `type` text,
 * list, integer, number or boolean, `free` where a text goes that is none of the options. */
#include "providers/acp/acp.h"

#include "providers/state.h"

/* ---- the list ---- */

static json_t *text_of(struct str text)
{
	return json_stringn_nocheck(text.p == NULL ? "" : text.p, text.n);
}

static void set_text(json_t *object, const char *name, struct str text)
{
	if (text.n > 0)
		json_object_set_new(object, name, text_of(text));
}

static json_t *add_question(json_t *list, struct str id, struct str text, const char *type)
{
	json_t *question = json_object();

	json_object_set_new(question, "id", text_of(id));
	set_text(question, "text", text);
	json_object_set_new(question, "type", json_string(type));
	json_array_append_new(list, question);
	return question;
}

static void add_option(json_t *question, struct str value, struct str label, struct str description)
{
	json_t *options = json_object_get(question, "options");
	json_t *option = json_object();

	if (options == NULL) {
		options = json_array();
		json_object_set_new(question, "options", options);
	}
	json_object_set_new(option, "value", text_of(value));
	set_text(option, "label", label.n > 0 ? label : value);
	set_text(option, "description", description);
	json_array_append_new(options, option);
}

static bool is_type(const json_t *question, const char *type)
{
	return str_eq(json_member_str(question, "type"), str_of(type));
}

static struct str prompt_of(struct str title, const json_t *list, struct arena *arena)
{
	struct buf text;
	struct json_writer w;
	const json_t *question;
	size_t i;

	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_kstr(&w, "title", title);
	jw_karray(&w, "questions");
	json_array_foreach (list, i, question) {
		jw_object_begin(&w);
		jw_kstr(&w, "id", json_member_str(question, "id"));
		jw_kstr(&w, "text", json_member_str(question, "text"));
		jw_kstr_opt(&w, "header", json_member_str(question, "header"));
		if (json_object_get(question, "options") != NULL) {
			jw_key(&w, "options");
			jw_json(&w, json_object_get(question, "options"));
		}
		jw_kbool_opt(&w, "multiple", is_type(question, "list"));
		jw_object_end(&w);
	}
	jw_array_end(&w);
	jw_object_end(&w);
	return buf_str(&text);
}

/* What only people read is told, not kept. */
static void strip(json_t *list)
{
	json_t *question;
	json_t *option;
	size_t i, k;

	json_array_foreach (list, i, question) {
		json_object_del(question, "text");
		json_object_del(question, "header");
		json_array_foreach (json_object_get(question, "options"), k, option)
			json_object_del(option, "description");
	}
}

/* `list` is stolen. */
static void ask(struct acp *a, struct str id, enum acp_form form, struct str title, json_t *list, struct agent_out *out)
{
	struct str prompt = prompt_of(title, list, out->arena);
	struct acp_request *request;

	strip(list);
	request = acp_request_add(a, id, form, STR_NONE, list, out);
	if (request != NULL)
		acp_request_tell(request, REQUEST_USER_INPUT, prompt, out);
}

/* ---- elicitation/create ---- */

static void add_choices(json_t *question, const json_t *choices)
{
	const json_t *choice;
	size_t i;

	json_array_foreach (choices, i, choice) {
		if (json_is_string(choice))
			add_option(question, json_str(choice), STR_NONE, STR_NONE);
		else if (json_is_string(json_object_get(choice, "const")))
			add_option(question, json_member_str(choice, "const"), json_member_str(choice, "title"),
				json_member_str(choice, "description"));
	}
}

static const char *form_type(const json_t *property)
{
	struct str type = json_member_str(property, "type");

	return str_eq(type, STR("array"))      ? "list"
		: str_eq(type, STR("integer")) ? "integer"
		: str_eq(type, STR("number"))  ? "number"
		: str_eq(type, STR("boolean")) ? "boolean"
					       : "text";
}

/* "question_0_custom" beside "question_0", "db_note" beside "db": room for a text that is none of the options. */
static bool is_free_text_of(const char *name, const char *other)
{
	size_t n = strlen(other);

	return strncmp(name, other, n) == 0 && (strcmp(name + n, "_custom") == 0 || strcmp(name + n, "_note") == 0);
}

static const char *free_text_of(const json_t *properties, const char *name)
{
	const char *other;
	json_t *property;

	json_object_foreach ((json_t *)(uintptr_t)properties, other, property)
		if (is_free_text_of(other, name))
			return other;
	return NULL;
}

static bool is_free_text(const json_t *properties, const char *name)
{
	const char *other;
	json_t *property;

	json_object_foreach ((json_t *)(uintptr_t)properties, other, property)
		if (is_free_text_of(name, other))
			return true;
	return false;
}

static void add_property(const struct acp *a, json_t *list, const json_t *properties, const char *name, const json_t *property,
	struct str message)
{
	struct str title = json_member_str(property, "title");
	struct str description = json_member_str(property, "description");
	bool is_title = a->profile->title_is_question;
	struct str text = is_title ? title : description;
	struct str header = is_title ? description : title;
	const char *free_name = free_text_of(properties, name);
	json_t *question;

	question = add_question(list, str_of(name), text.n > 0 ? text : message, form_type(property));
	set_text(question, "header", header);
	if (free_name != NULL)
		json_object_set_new(question, "free", json_string(free_name));
	add_choices(question, json_object_get(property, "oneOf"));
	add_choices(question, json_object_get(property, "enum"));
	add_choices(question, json_object_get(json_object_get(property, "items"), "anyOf"));
	add_choices(question, json_object_get(json_object_get(property, "items"), "enum"));
}

void acp_ask_form(struct acp *a, const struct rpc_message *m, struct agent_out *out)
{
	struct str message = json_member_str(m->params, "message");
	const json_t *properties = json_object_get(json_object_get(m->params, "requestedSchema"), "properties");
	struct str mode = json_member_str(m->params, "mode");
	json_t *list;
	const char *name;
	json_t *property;

	/* A URL to open was not offered, and no server opens one unseen. */
	if (mode.n > 0 && !str_eq(mode, STR("form"))) {
		acp_answer_cancelled(m->id, FORM_ELICITATION, out);
		return;
	}
	list = json_array();
	json_object_foreach ((json_t *)(uintptr_t)properties, name, property)
		if (!is_free_text(properties, name))
			add_property(a, list, properties, name, property, message);
	ask(a, m->id, FORM_ELICITATION, message, list, out);
}

/* ---- the others ---- */

/* Antigravity: the options of a permission are the answers. */
void acp_ask_choice(struct acp *a, const struct rpc_message *m, struct agent_out *out)
{
	struct str title = json_member_str(json_object_get(m->params, "toolCall"), "title");
	json_t *list = json_array();
	json_t *question = add_question(list, STR("answer"), title, "text");
	const json_t *option;
	size_t i;

	json_array_foreach (json_object_get(m->params, "options"), i, option)
		add_option(question, json_member_str(option, "optionId"), json_member_str(option, "name"), STR_NONE);
	ask(a, m->id, FORM_CHOICE, title, list, out);
}

static void propose_plan(struct acp *a, struct str id, enum acp_form form, struct str markdown, struct agent_out *out)
{
	struct acp_request *request;
	struct str key = str_printf(out->arena, "plan:%" PRId64, ++a->made);
	struct buf text;
	struct json_writer w;

	acp_show_plan(a, key, markdown, out);
	if (acp_judge_plan_exit(a) == VERDICT_DENY) {
		a->was_denied = true;
		acp_answer_cancelled(id, form, out);
		return;
	}
	request = acp_request_add(a, id, form, key, json_object(), out);
	if (request == NULL)
		return;
	if (acp_judge_plan_exit(a) == VERDICT_ALLOW) {
		acp_answer_plan(a, request, true, out);
		acp_request_drop(a, a->request_count - 1);
		return;
	}
	buf_init(&text, out->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_ktext(&w, "title", "Carry out this plan?");
	jw_kstr_opt(&w, "detail", markdown);
	jw_object_end(&w);
	acp_request_tell(request, REQUEST_TOOL, buf_str(&text), out);
}

/* Answers are keyed by the text of the question, which may be long: the list keeps it as `name`. */
static void add_grok_question(json_t *list, const json_t *from, size_t i, struct arena *arena)
{
	struct str text = json_member_str(from, "question");
	struct str id = json_member_str(from, "id");
	bool is_list = json_is_true(json_object_get(from, "multiSelect"));
	json_t *question;
	const json_t *option;
	size_t k;

	if (id.n == 0)
		id = str_printf(arena, "%zu", i + 1);
	question = add_question(list, id, text, is_list ? "list" : "text");
	set_text(question, "name", text);
	json_array_foreach (json_object_get(from, "options"), k, option)
		add_option(question, json_member_str(option, "label"), STR_NONE, json_member_str(option, "description"));
}

void acp_ask_grok(struct acp *a, const struct rpc_message *m, struct agent_out *out)
{
	json_t *list;
	const json_t *question;
	size_t i;

	if (str_eq(m->method, STR("x.ai/exit_plan_mode"))) {
		propose_plan(a, m->id, FORM_GROK_PLAN, json_member_str(m->params, "planContent"), out);
		return;
	}
	list = json_array();
	json_array_foreach (json_object_get(m->params, "questions"), i, question)
		add_grok_question(list, question, i, out->arena);
	ask(a, m->id, FORM_GROK_QUESTION, STR("The agent asks."), list, out);
}

static void add_cursor_question(json_t *list, const json_t *from)
{
	bool is_list = json_is_true(json_object_get(from, "allowMultiple"));
	json_t *question = add_question(list, json_member_str(from, "id"), json_member_str(from, "prompt"), is_list ? "list" : "text");
	const json_t *option;
	size_t i;

	json_array_foreach (json_object_get(from, "options"), i, option)
		add_option(question, json_member_str(option, "id"), json_member_str(option, "label"), STR_NONE);
}

void acp_ask_cursor(struct acp *a, const struct rpc_message *m, struct agent_out *out)
{
	struct str title = json_member_str(m->params, "title");
	json_t *list;
	const json_t *question;
	size_t i;

	if (str_eq(m->method, STR("cursor/create_plan"))) {
		acp_cursor_tell(a, m, out);
		propose_plan(a, m->id, FORM_CURSOR_PLAN, json_member_str(m->params, "plan"), out);
		return;
	}
	list = json_array();
	json_array_foreach (json_object_get(m->params, "questions"), i, question)
		add_cursor_question(list, question);
	ask(a, m->id, FORM_CURSOR_QUESTION, title.n > 0 ? title : STR("The agent asks."), list, out);
}

/* ---- answers ---- */

void acp_answer_plan(struct acp *a, const struct acp_request *request, bool is_accepted, struct agent_out *out)
{
	bool is_grok = request->form == FORM_GROK_PLAN;
	struct rpc_line line;
	struct json_writer *w = rpc_answer(&line, out, request->id);

	if (is_grok)
		jw_raw(w, is_accepted ? STR("{\"outcome\":\"approved\"}") : STR("{\"outcome\":\"cancelled\"}"));
	else
		jw_raw(w, is_accepted ? STR("{\"outcome\":{\"outcome\":\"accepted\"}}") : STR("{\"outcome\":{\"outcome\":\"rejected\"}}"));
	rpc_end(&line);
	if (is_accepted)
		acp_leave_plan(a, out);
	else
		a->was_denied = true;
}

/* The texts that answer a question: one, or several. */
static size_t answer_count(const json_t *answer)
{
	return json_is_array(answer) ? json_array_size(answer) : json_is_string(answer) ? 1 : 0;
}

static struct str answer_at(const json_t *answer, size_t i)
{
	return json_str(json_is_array(answer) ? json_array_get(answer, i) : answer);
}

/* The value of the option with this value or label; STR_NONE: it is none of them. */
static struct str value_of(const json_t *question, struct str text)
{
	const json_t *option;
	size_t i;

	json_array_foreach (json_object_get(question, "options"), i, option)
		if (str_eq(json_member_str(option, "value"), text) || str_eq(json_member_str(option, "label"), text))
			return json_member_str(option, "value");
	return STR_NONE;
}

static struct str value_or_text(const json_t *question, struct str text)
{
	struct str value = value_of(question, text);

	return value.p != NULL ? value : text;
}

static const json_t *answer_to(const json_t *answers, const json_t *question)
{
	struct str id = json_member_str(question, "id");

	return id.p == NULL || strlen(id.p) != id.n ? NULL : json_object_get(answers, id.p);
}

/* A number or truth value, written as in JSON. */
static bool is_scalar(const json_t *question, struct str text)
{
	struct json_error error;
	json_auto_t *value = json_read(text, &error);

	if (is_type(question, "integer"))
		return json_is_integer(value);
	if (is_type(question, "number"))
		return json_is_number(value);
	return json_is_boolean(value);
}

static int check_scalars(const json_t *list, const json_t *answers)
{
	const json_t *question;
	size_t i;

	json_array_foreach (list, i, question) {
		const json_t *answer = answer_to(answers, question);

		if (!is_type(question, "text") && !is_type(question, "list") && answer_count(answer) > 0 &&
			!is_scalar(question, str_trim(answer_at(answer, 0))))
			return -1;
	}
	return 0;
}

static void write_list(struct json_writer *w, const json_t *question, const json_t *answer)
{
	jw_array_begin(w);
	for (size_t i = 0; i < answer_count(answer); i++)
		jw_str(w, value_or_text(question, answer_at(answer, i)));
	jw_array_end(w);
}

static void write_property(struct json_writer *w, const json_t *question, const json_t *answer)
{
	struct str text = answer_at(answer, 0);
	struct str other = json_member_str(question, "free");
	bool has_options = json_object_get(question, "options") != NULL;

	/* One text that is none of the options goes where the agent wants such. */
	if (has_options && other.p != NULL && answer_count(answer) == 1 && value_of(question, text).p == NULL) {
		jw_kstr(w, other.p, text);
		return;
	}
	jw_key_str(w, json_member_str(question, "id"));
	if (is_type(question, "list"))
		write_list(w, question, answer);
	else if (is_type(question, "text"))
		jw_str(w, value_or_text(question, text));
	else
		jw_raw(w, str_trim(text));
}

static void write_form(struct json_writer *w, const json_t *list, const json_t *answers)
{
	const json_t *question;
	size_t i;

	jw_object_begin(w);
	jw_ktext(w, "action", "accept");
	jw_kobject(w, "content");
	json_array_foreach (list, i, question)
		if (answer_count(answer_to(answers, question)) > 0)
			write_property(w, question, answer_to(answers, question));
	jw_object_end(w);
	jw_object_end(w);
}

static void write_grok(struct json_writer *w, const json_t *list, const json_t *answers)
{
	const json_t *question;
	size_t i;

	jw_object_begin(w);
	jw_ktext(w, "outcome", "accepted");
	jw_kobject(w, "answers");
	json_array_foreach (list, i, question) {
		if (answer_count(answer_to(answers, question)) == 0)
			continue;
		jw_key_str(w, json_member_str(question, "name"));
		write_list(w, question, answer_to(answers, question));
	}
	jw_object_end(w);
	jw_object_end(w);
}

static void write_selected(struct json_writer *w, const json_t *question, const json_t *answer)
{
	jw_object_begin(w);
	jw_kstr(w, "questionId", json_member_str(question, "id"));
	jw_karray(w, "selectedOptionIds");
	for (size_t i = 0; i < answer_count(answer); i++)
		if (value_of(question, answer_at(answer, i)).p != NULL)
			jw_str(w, value_of(question, answer_at(answer, i)));
	jw_array_end(w);
	jw_object_end(w);
}

static void write_cursor(struct json_writer *w, const json_t *list, const json_t *answers)
{
	const json_t *question;
	size_t i;

	jw_object_begin(w);
	jw_kobject(w, "outcome");
	jw_ktext(w, "outcome", "answered");
	jw_karray(w, "answers");
	json_array_foreach (list, i, question)
		if (answer_count(answer_to(answers, question)) > 0)
			write_selected(w, question, answer_to(answers, question));
	jw_array_end(w);
	jw_object_end(w);
	jw_object_end(w);
}

static void write_choice(struct json_writer *w, const json_t *list, const json_t *answers)
{
	const json_t *question = json_array_get(list, 0);
	struct str option = value_of(question, answer_at(answer_to(answers, question), 0));

	jw_object_begin(w);
	jw_kobject(w, "outcome");
	jw_ktext(w, "outcome", option.p == NULL ? "cancelled" : "selected");
	if (option.p != NULL)
		jw_kstr(w, "optionId", option);
	jw_object_end(w);
	jw_object_end(w);
}

static void decline(const struct acp_request *request, struct agent_out *out)
{
	struct rpc_line line;
	struct json_writer *w;

	if (request->form != FORM_ELICITATION && request->form != FORM_CURSOR_QUESTION) {
		acp_answer_cancelled(request->id, (enum acp_form)request->form, out);
		return;
	}
	w = rpc_answer(&line, out, request->id);
	jw_raw(w, request->form == FORM_ELICITATION ? STR("{\"action\":\"decline\"}") : STR("{\"outcome\":{\"outcome\":\"skipped\"}}"));
	rpc_end(&line);
}

int acp_answer_question(const struct acp_request *request, const struct agent_order *order,
	struct agent_out *out)
{
	struct rpc_line line;
	struct json_writer *w;

	if (order->answers == NULL && order->decision == DECISION_DECLINE) {
		decline(request, out);
		return 0;
	}
	if (!json_is_object(order->answers) || check_scalars(request->kept, order->answers) != 0) {
		acp_refuse_order(out, order->key, CODE_invalid_request,
			"The question wants an answer of its own type for each id, numbers and true or false as in JSON.");
		return -1;
	}
	w = rpc_answer(&line, out, request->id);
	if (request->form == FORM_ELICITATION)
		write_form(w, request->kept, order->answers);
	else if (request->form == FORM_GROK_QUESTION)
		write_grok(w, request->kept, order->answers);
	else if (request->form == FORM_CURSOR_QUESTION)
		write_cursor(w, request->kept, order->answers);
	else
		write_choice(w, request->kept, order->answers);
	rpc_end(&line);
	return 0;
}
