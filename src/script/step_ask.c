/* Steps that ask the person behind the client. */
#include "script/private.h"

/* ---- permission ---- */

static struct str permission_params(struct turn *turn, const struct tool_call *call)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "sessionId", turn->session->id);
	jw_kobject(&w, "toolCall");
	jw_kstr(&w, "toolCallId", call->id);
	jw_members(&w, call->head);
	jw_ktext(&w, "status", "pending");
	jw_object_end(&w);
	jw_kraw(&w, "options",
		STR("[{\"optionId\":\"allow-once\",\"name\":\"Allow\",\"kind\":\"allow_once\"},"
		    "{\"optionId\":\"allow-always\",\"name\":\"Allow for this session\",\"kind\":\"allow_always\"},"
		    "{\"optionId\":\"reject-once\",\"name\":\"Reject\",\"kind\":\"reject_once\"}]"));
	jw_object_end(&w);
	return buf_str(&out);
}

/* What it says besides the two that allow is a no: an error, an outcome "cancelled", an option that we do not know. */
static bool is_allowed(struct turn *turn, const json_t *answer, unsigned kind)
{
	const json_t *outcome = json_object_get(json_object_get(answer, "result"), "outcome");
	struct str option = json_member_str(outcome, "optionId");
	bool is_always = str_eq(option, STR("allow-always"));

	if (!str_eq(json_member_str(outcome, "outcome"), STR("selected")))
		return false;
	if (is_always)
		turn->session->allowed |= kind; /* read by this thread only */
	return is_always || str_eq(option, STR("allow-once"));
}

static enum outcome decide(struct turn *turn, const struct tool_call *call, unsigned kind, bool *is_yes)
{
	json_t *answer;

	if ((turn->session->allowed & kind) != 0 || (turn->agent->scenario->without & WITHOUT_PERMISSIONS) != 0) {
		*is_yes = true;
		return GO_ON;
	}
	if (turn_request(turn, "session/request_permission", permission_params(turn, call), &answer) == ENDED)
		return ENDED;
	*is_yes = is_allowed(turn, answer, kind);
	json_decref(answer);
	return GO_ON;
}

STEP(ask)
{
	int64_t kind = step_number(step, "kind");
	bool ends_on_no = step_number(step, "on_deny") == 0;
	bool is_yes = false;
	struct tool_call call;
	enum outcome outcome;

	tool_begin(turn, &call, "pending", tool_head(turn, step_text_of(turn, step, "title"), tool_kinds[kind]));
	outcome = decide(turn, &call, 1U << kind, &is_yes);
	tool_end(turn, &call, is_yes ? "completed" : "failed", STR(""));
	if (outcome == ENDED || is_yes)
		return outcome;
	return ends_on_no ? turn_stop(turn, "end_turn") : GO_ON;
}

/* ---- questions ---- */

static void write_choices(struct turn *turn, const struct yaml *options, struct json_writer *w)
{
	jw_karray(w, "oneOf");
	for (size_t i = 0; i < options->count; i++) {
		struct str option = turn_text(turn, options->entries[i].value->text);

		jw_object_begin(w);
		jw_kstr(w, "const", option);
		jw_kstr(w, "title", option);
		jw_object_end(w);
	}
	jw_array_end(w);
}

static struct str question_params(struct turn *turn, struct str text, const struct value *options)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "mode", "form");
	jw_ktext(&w, "sessionId", turn->session->id);
	jw_kstr(&w, "message", text);
	jw_kobject(&w, "requestedSchema");
	jw_ktext(&w, "type", "object");
	jw_kobject(&w, "properties");
	jw_kobject(&w, "answer");
	jw_ktext(&w, "type", "string");
	jw_kstr(&w, "title", text);
	if (options->is_set)
		write_choices(turn, options->node, &w);
	jw_object_end(&w);
	jw_object_end(&w);
	jw_kraw(&w, "required", STR("[\"answer\"]"));
	jw_object_end(&w);
	jw_object_end(&w);
	return buf_str(&out);
}

/* Empty when it was declined or cannot be asked. */
STEP(question)
{
	struct str text = step_text_of(turn, step, "text"), answer;
	json_t *response;
	bool can_ask;

	(void)pthread_mutex_lock(&turn->agent->lock);
	can_ask = turn->agent->has_forms && (turn->agent->scenario->without & WITHOUT_QUESTIONS) == 0;
	(void)pthread_mutex_unlock(&turn->agent->lock);
	turn->answer = STR("");
	if (!can_ask)
		return GO_ON;
	if (turn_request(turn, "elicitation/create", question_params(turn, text, step_value(step, "options")),
		    &response) == ENDED)
		return ENDED;
	answer = json_member_str(json_object_get(json_object_get(response, "result"), "content"), "answer");
	if (answer.p != NULL && str_eq(json_member_str(json_object_get(response, "result"), "action"), STR("accept")))
		turn->answer = str_dup(turn->arena, answer);
	json_decref(response);
	return GO_ON;
}
