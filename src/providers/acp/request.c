/* Questions of the agent: each is answered once (3). */
#include "providers/acp/acp.h"

#include "providers/state.h"

struct question_kind {
	const char *method;
	enum acp_form form;
	void (*ask)(struct acp *a, const struct rpc_message *m, struct agent_out *out);
};

static const struct question_kind questions[] = {
	{"cursor/ask_question", FORM_CURSOR_QUESTION, acp_ask_cursor},
	{"cursor/create_plan", FORM_CURSOR_PLAN, acp_ask_cursor},
	{"elicitation/create", FORM_ELICITATION, acp_ask_form},
	{"session/request_permission", FORM_PERMISSION, acp_ask_permission},
	{"x.ai/ask_user_question", FORM_GROK_QUESTION, acp_ask_grok},
	{"x.ai/exit_plan_mode", FORM_GROK_PLAN, acp_ask_grok},
};

static bool answers_by_itself(struct acp *a, const struct rpc_message *m, struct agent_out *out)
{
	struct rpc_line line;
	struct json_writer *w;
	const char *result;

	if (str_eq(m->method, STR("cursor/update_todos")))
		result = "{}";
	else if (str_eq(m->method, STR("cursor/task")))
		result = "{\"outcome\":{\"outcome\":\"completed\"}}";
	else if (str_eq(m->method, STR("cursor/generate_image")))
		result = "{\"outcome\":{\"outcome\":\"rejected\",\"reason\":\"This client makes no images.\"}}";
	else
		return false;
	acp_cursor_tell(a, m, out);
	w = rpc_answer(&line, out, m->id);
	jw_raw(w, str_of(result));
	rpc_end(&line);
	return true;
}

void acp_question(struct acp *a, const struct rpc_message *m, struct agent_out *out)
{
	if (m->id.n > LIMIT_AGENT_ID_BYTES) {
		rpc_refuse(out, m->id, RPC_INVALID_PARAMS, "the id is too long");
		return;
	}
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		if (!str_eq(m->method, str_of(questions[i].method)))
			continue;
		if (a->phase != ACP_RUNNING || a->is_cancelled) /* no turn that anybody would answer for */
			acp_answer_cancelled(m->id, questions[i].form, out);
		else
			questions[i].ask(a, m, out);
		return;
	}
	if (!answers_by_itself(a, m, out))
		rpc_refuse(out, m->id, RPC_METHOD_NOT_FOUND, "method not found");
}

/* ---- pending ones ---- */

struct acp_request *acp_request_add(struct acp *a, struct str id, enum acp_form form, struct str tool, json_t *kept,
	struct agent_out *out)
{
	size_t cost = state_cost(id) + json_dumpb(kept, NULL, 0, JSON_COMPACT) + state_cost(tool) + 32;
	struct acp_request *request;

	if (a->request_count == LIMIT_AGENT_REQUESTS || !acp_has_room(a, cost)) {
		json_decref(kept);
		acp_answer_cancelled(id, form, out);
		acp_show_notice(a, "warning", STR("The agent asked more than can wait at once; one question was answered with no."), out);
		a->was_denied = true;
		return NULL;
	}
	request = &a->requests[a->request_count++];
	request->form = form;
	request->kept = kept;
	state_text(&request->id, id);
	state_text(&request->tool, tool);
	state_text(&request->key, str_printf(out->arena, "request:%" PRId64, ++a->made));
	a->has_content = true;
	return request;
}

void acp_request_tell(const struct acp_request *request, enum agent_request_kind kind, struct str prompt,
	struct agent_out *out)
{
	struct agent_event *event = agent_out_event(out, EVENT_REQUEST);

	event->request = (struct agent_request){.key = str_dup(out->arena, request->key),
		.kind = kind,
		.item = str_dup(out->arena, request->tool),
		.prompt = str_dup(out->arena, prompt)};
}

static void say_ended(struct acp *a, int64_t i, enum agent_status status, struct agent_out *out)
{
	struct agent_event *event = agent_out_event(out, EVENT_REQUEST_ENDED);

	event->key = str_dup(out->arena, a->requests[i].key);
	event->status = status;
	acp_request_drop(a, i);
}

void acp_answer_cancelled(struct str id, enum acp_form form, struct agent_out *out)
{
	static const char *const answers[ACP_FORMS] = {
		[FORM_PERMISSION] = "{\"outcome\":{\"outcome\":\"cancelled\"}}",
		[FORM_CHOICE] = "{\"outcome\":{\"outcome\":\"cancelled\"}}",
		[FORM_ELICITATION] = "{\"action\":\"cancel\"}",
		[FORM_GROK_QUESTION] = "{\"outcome\":\"cancelled\"}",
		[FORM_GROK_PLAN] = "{\"outcome\":\"cancelled\"}",
		[FORM_CURSOR_QUESTION] = "{\"outcome\":{\"outcome\":\"cancelled\"}}",
		[FORM_CURSOR_PLAN] = "{\"outcome\":{\"outcome\":\"cancelled\"}}",
	};
	struct rpc_line line;
	struct json_writer *w = rpc_answer(&line, out, id);

	jw_raw(w, str_of(answers[form]));
	rpc_end(&line);
}

void acp_cancel_requests(struct acp *a, struct agent_out *out)
{
	while (a->request_count > 0) {
		acp_answer_cancelled(a->requests[0].id, (enum acp_form)a->requests[0].form, out);
		say_ended(a, 0, AGENT_CANCELLED, out);
	}
}

void acp_request_withdrawn(struct acp *a, const json_t *params, struct agent_out *out)
{
	const json_t *id = json_object_get(params, "requestId");
	struct str text = id == NULL ? STR_NONE : json_canonical(out->arena, id);

	for (int64_t i = 0; i < a->request_count; i++)
		if (str_eq(a->requests[i].id, text)) {
			rpc_refuse(out, a->requests[i].id, RPC_CANCELLED, "cancelled");
			say_ended(a, i, AGENT_CANCELLED, out);
			return;
		}
}

/* ---- the answer of a person ---- */

static int answer(struct acp *a, const struct acp_request *request, const struct agent_order *order, struct agent_out *out)
{
	bool decides = request->form == FORM_PERMISSION || request->form == FORM_GROK_PLAN || request->form == FORM_CURSOR_PLAN;

	if (decides && order->answers != NULL) {
		acp_refuse_order(out, order->key, CODE_invalid_request, "The question wants a decision, not answers.");
		return -1;
	}
	switch ((enum acp_form)request->form) {
	case FORM_PERMISSION:
		acp_answer_permission(a, request, order->decision, out);
		return 0;
	case FORM_GROK_PLAN:
	case FORM_CURSOR_PLAN:
		acp_answer_plan(a, request, order->decision != DECISION_DECLINE, out);
		return 0;
	default:
		return acp_answer_question(request, order, out);
	}
}

void acp_order_answer(struct acp *a, const struct agent_order *order, int64_t now, struct agent_out *out)
{
	for (int64_t i = 0; i < a->request_count; i++) {
		if (!str_eq(a->requests[i].key, order->request))
			continue;
		if (order->answers == NULL && order->decision == DECISION_CANCEL)
			acp_interrupt(a, now, out);
		else if (answer(a, &a->requests[i], order, out) == 0)
			say_ended(a, i, AGENT_COMPLETED, out);
		return;
	}
	acp_refuse_order(out, order->key, CODE_invalid_request, "The agent does not wait for this answer any more.");
}
