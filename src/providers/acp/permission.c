/* session/request_permission: who decides, and which of the agent's options says so.
 *
 * Options are chosen by their kind, never by place or id. The answers to all decisions are worked out when the question
 * comes, so that no list of options has to be kept. */
#include "providers/acp/acp.h"

#include "providers/state.h"

/* ---- what may be done without asking ---- */

/* Whether `path` stands below `cwd` by its letters alone: a driver does no I/O. The engine guarantees that `cwd` is
 * canonical. A symlink below it that leads out is not seen here: to make one takes a command, which is not accepted by
 * itself, and the links that a checkout brings along are the operator's trust in the repository; read-only sessions
 * are held by the operating system. What stands in .git can run as a program later: a person is asked. */
bool acp_is_inside(struct str cwd, struct str path)
{
	if (path.n == 0 || memchr(path.p, '\0', path.n) != NULL)
		return false;
	if (path.p[0] == '/') {
		while (cwd.n > 1 && cwd.p[cwd.n - 1] == '/')
			cwd.n--;
		if (cwd.n <= 1 || path.n <= cwd.n || memcmp(path.p, cwd.p, cwd.n) != 0 || path.p[cwd.n] != '/')
			return false;
		path = (struct str){path.p + cwd.n + 1, path.n - cwd.n - 1};
	}
	while (path.n > 0) {
		const char *slash = memchr(path.p, '/', path.n);
		struct str part = {path.p, slash == NULL ? path.n : (size_t)(slash - path.p)};

		if (str_eq(part, STR("..")) || str_eq_nocase(part, STR(".git")))
			return false;
		path = slash == NULL ? STR_NONE : (struct str){slash + 1, path.n - part.n - 1};
	}
	return true;
}

static bool is_edit(int64_t kind)
{
	return kind == KIND_EDIT || kind == KIND_DELETE || kind == KIND_MOVE;
}

static bool is_all_inside(const struct acp *a, const struct acp_tool *tool)
{
	const json_t *path;
	size_t i;

	if (tool->hides_paths || json_array_size(tool->paths) == 0)
		return false;
	json_array_foreach (tool->paths, i, path)
		if (!acp_is_inside(a->config.cwd, json_str(path)))
			return false;
	return true;
}

enum acp_verdict acp_judge_plan_exit(const struct acp *a)
{
	if (a->runtime == RUNTIME_READ_ONLY)
		return VERDICT_DENY;
	return a->interaction == INTERACTION_DEFAULT && a->runtime == RUNTIME_FULL_ACCESS ? VERDICT_ALLOW : VERDICT_ASK;
}

static enum acp_verdict judge(const struct acp *a, const struct acp_tool *tool)
{
	/* Our own server decides about its calls by the credential of the session. */
	if (tool->is_ours)
		return VERDICT_ALLOW;
	if (tool->kind == KIND_SWITCH_MODE)
		return acp_judge_plan_exit(a);
	if (a->runtime == RUNTIME_READ_ONLY)
		return tool->kind == KIND_READ || tool->kind == KIND_SEARCH ? VERDICT_ALLOW : VERDICT_DENY;
	if (a->interaction == INTERACTION_PLAN && (is_edit(tool->kind) || tool->kind == KIND_EXECUTE))
		return VERDICT_DENY;
	if (a->runtime == RUNTIME_FULL_ACCESS)
		return VERDICT_ALLOW;
	if (a->runtime == RUNTIME_AUTO_ACCEPT_EDITS && is_edit(tool->kind) && !tool->is_mcp && is_all_inside(a, tool))
		return VERDICT_ALLOW;
	return VERDICT_ASK;
}

/* ---- options ---- */

/* Ids of the options that mean yes, yes for the session, and no; absent: there is none. */
struct choices {
	struct str accept, session, decline;
};

static struct str option_of(const json_t *options, const char *kind)
{
	const json_t *option;
	size_t i;

	json_array_foreach (options, i, option) {
		struct str id = json_member_str(option, "optionId");

		if (id.n > 0 && id.n <= LIMIT_AGENT_ID_BYTES && str_eq(json_member_str(option, "kind"), str_of(kind)))
			return id;
	}
	return STR_NONE;
}

static struct str either(struct str one, struct str other)
{
	return one.p != NULL ? one : other;
}

/* The options of a change of mode are names of modes, and "always" would raise the mode of the session: a yes is the
 * thread's own mode, or else what is allowed once. */
static struct choices choices_of_modes(const struct acp *a, const json_t *options)
{
	struct choices choices = {.accept = option_of(options, "allow_once")};
	struct str own = acp_own_mode(a);
	const json_t *option;
	size_t i;

	json_array_foreach (options, i, option)
		if (own.n > 0 && str_eq(json_member_str(option, "optionId"), own))
			choices.accept = own;
	choices.session = choices.accept;
	choices.decline = option_of(options, "reject_once");
	return choices;
}

static struct choices choices_of(const json_t *options)
{
	struct str once = option_of(options, "allow_once");
	struct str always = option_of(options, "allow_always");

	return (struct choices){.accept = either(once, always),
		.session = either(always, once),
		.decline = either(option_of(options, "reject_once"), option_of(options, "reject_always"))};
}

static void select_option(struct str id, struct str option, struct agent_out *out)
{
	struct rpc_line line;
	struct json_writer *w;

	if (option.p == NULL) {
		acp_answer_cancelled(id, FORM_PERMISSION, out);
		return;
	}
	w = rpc_answer(&line, out, id);
	jw_object_begin(w);
	jw_kobject(w, "outcome");
	jw_ktext(w, "outcome", "selected");
	jw_kstr(w, "optionId", option);
	jw_object_end(w);
	jw_object_end(w);
	rpc_end(&line);
}

void acp_leave_plan(struct acp *a, struct agent_out *out)
{
	if (a->interaction != INTERACTION_PLAN)
		return;
	a->interaction = INTERACTION_DEFAULT;
	agent_out_event(out, EVENT_MODE)->body = STR("{\"interaction\":\"default\"}");
}

/* ---- asking ---- */

static json_t *keep_choices(const struct choices *choices)
{
	json_t *kept = json_object();

	if (choices->accept.p != NULL)
		json_object_set_new(kept, "accept", json_stringn_nocheck(choices->accept.p, choices->accept.n));
	if (choices->session.p != NULL)
		json_object_set_new(kept, "session", json_stringn_nocheck(choices->session.p, choices->session.n));
	if (choices->decline.p != NULL)
		json_object_set_new(kept, "decline", json_stringn_nocheck(choices->decline.p, choices->decline.n));
	return kept;
}

static enum agent_request_kind request_kind(const struct acp_tool *tool)
{
	if (tool->is_mcp)
		return REQUEST_TOOL;
	switch ((enum acp_kind)tool->kind) {
	case KIND_EXECUTE:
		return REQUEST_COMMAND;
	case KIND_READ:
	case KIND_SEARCH:
		return REQUEST_FILE_READ;
	case KIND_EDIT:
	case KIND_DELETE:
	case KIND_MOVE:
		return REQUEST_FILE_CHANGE;
	default:
		return REQUEST_TOOL;
	}
}

static struct str prompt_of(const struct acp_tool *tool, const json_t *params, struct arena *arena)
{
	const json_t *call = json_object_get(params, "toolCall");
	struct str title = json_member_str(call, "title");
	struct str plan = acp_plan_text(call);
	struct buf text;
	struct json_writer w;
	const json_t *option;
	size_t i;

	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_kstr(&w, "title", title.n > 0 ? title : tool->kind == KIND_NONE ? STR("tool") : str_of(acp_kind_name(tool->kind)));
	jw_kstr_opt(&w, "detail", plan);
	jw_karray(&w, "options");
	json_array_foreach (json_object_get(params, "options"), i, option) {
		jw_object_begin(&w);
		jw_kstr(&w, "name", json_member_str(option, "name"));
		jw_kstr(&w, "kind", json_member_str(option, "kind"));
		jw_object_end(&w);
	}
	jw_array_end(&w);
	jw_object_end(&w);
	return buf_str(&text);
}

static void ask_person(struct acp *a, const struct rpc_message *m, const struct acp_tool *tool, const struct choices *choices,
	struct agent_out *out)
{
	struct acp_request *request = acp_request_add(a, m->id, FORM_PERMISSION, tool->key, keep_choices(choices), out);

	if (request == NULL)
		return;
	request->leaves_plan = tool->kind == KIND_SWITCH_MODE;
	acp_request_tell(request, request_kind(tool), prompt_of(tool, m->params, out->arena), out);
}

static void decide(struct acp *a, const struct rpc_message *m, struct acp_tool *tool, struct agent_out *out)
{
	const json_t *options = json_object_get(m->params, "options");
	bool is_mode = tool->kind == KIND_SWITCH_MODE;
	struct choices choices = is_mode ? choices_of_modes(a, options) : choices_of(options);
	enum acp_verdict verdict = judge(a, tool);

	if (verdict == VERDICT_ASK) {
		ask_person(a, m, tool, &choices, out);
		return;
	}
	if (verdict == VERDICT_ALLOW && choices.accept.p != NULL) {
		/* An edit inside is allowed as such, each time; the rest may be remembered. */
		select_option(m->id, is_edit(tool->kind) && a->runtime != RUNTIME_FULL_ACCESS ? choices.accept : choices.session, out);
		if (is_mode)
			acp_leave_plan(a, out);
		return;
	}
	tool->is_rejected = true;
	a->was_denied = true;
	select_option(m->id, choices.decline, out);
}

void acp_ask_permission(struct acp *a, const struct rpc_message *m, struct agent_out *out)
{
	const json_t *call = json_object_get(m->params, "toolCall");
	int64_t speaker = acp_speaker_of(a, json_member_str(m->params, "sessionId"), out);
	struct acp_tool *tool;

	if (a->profile->asks_by_permission && str_starts(json_member_str(call, "toolCallId"), STR("interaction_"))) {
		acp_ask_choice(a, m, out);
		return;
	}
	if (speaker >= 0)
		acp_end_messages(a, speaker, false, out);
	tool = speaker < 0 ? NULL : acp_tool_show(a, speaker, call, out);
	if (tool == NULL) { /* nothing is known of what it would do */
		a->was_denied = true;
		select_option(m->id, choices_of(json_object_get(m->params, "options")).decline, out);
		return;
	}
	decide(a, m, tool, out);
}

/* ---- the answer ---- */

static void mark_rejected(struct acp *a, struct str key)
{
	a->was_denied = true;
	for (int64_t i = 0; i < a->tool_count; i++)
		if (str_eq(a->tools[i].key, key))
			a->tools[i].is_rejected = true;
}

void acp_answer_permission(struct acp *a, const struct acp_request *request, enum agent_decision decision,
	struct agent_out *out)
{
	bool is_yes = decision == DECISION_ACCEPT || decision == DECISION_ACCEPT_FOR_SESSION;
	const char *member = decision == DECISION_ACCEPT ? "accept" : is_yes ? "session" : "decline";
	struct str option = json_member_str(request->kept, member);

	if (!is_yes || option.p == NULL)
		mark_rejected(a, request->tool);
	select_option(request->id, option, out);
	if (is_yes && option.p != NULL && request->leaves_plan)
		acp_leave_plan(a, out);
}
