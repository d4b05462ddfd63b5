/* What our requests say: the handshake, the conversation with its modes and our endpoint, the turns. */
#include "providers/codex/private.h"

/* Our modes in the program's words. A policy of the program that is sticky is sent with every turn. The sandbox is one
 * of two forms, by name at the start of a conversation and as an object with each turn. */
static const struct mode_row {
	const char *approval;
	const char *sandbox;
	const char *sandbox_policy;
} modes[] = {
	[RUNTIME_READ_ONLY] = {"never", "read-only", "readOnly"},
	[RUNTIME_APPROVAL_REQUIRED] = {"untrusted", "read-only", "readOnly"},
	[RUNTIME_AUTO_ACCEPT_EDITS] = {"on-request", "workspace-write", "workspaceWrite"},
	[RUNTIME_FULL_ACCESS] = {"never", "danger-full-access", "dangerFullAccess"},
};

/* What the program tells otherwise and nobody here reads. */
static const char *const unwanted[] = {"thread/readState/changed", "remoteControl/status/changed", "skills/changed",
	"fs/changed"};

static void initialize(struct json_writer *w)
{
	jw_kobject(w, "clientInfo");
	jw_ktext(w, "name", "dais");
	jw_ktext(w, "title", "dais");
	jw_ktext(w, "version", DAIS_VERSION);
	jw_object_end(w);
	jw_kobject(w, "capabilities");
	jw_kbool(w, "experimentalApi", true); /* collaborationMode and backgroundTerminals need it */
	jw_karray(w, "optOutNotificationMethods");
	for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
		jw_text(w, unwanted[i]);
	jw_array_end(w);
	jw_object_end(w);
}

static void endpoint(const struct codex *codex, struct json_writer *w)
{
	jw_kobject(w, "config");
	jw_kobject(w, "mcp_servers");
	jw_kobject(w, "dais");
	jw_kstr(w, "url", codex->mcp_url);
	jw_kobject(w, "http_headers");
	jw_ktext(w, "Authorization", "Bearer " AGENT_SECRET);
	jw_object_end(w);
	/* Without it the tools of our endpoint ask, or fail under the policy "never". */
	jw_ktext(w, "default_tools_approval_mode", "approve");
	jw_kbool(w, "required", true);
	jw_kint(w, "startup_timeout_sec", LIMIT_CODEX_MCP_START_MS / 1000);
	jw_kint(w, "tool_timeout_sec", LIMIT_CODEX_MCP_CALL_MS / 1000);
	jw_object_end(w);
	jw_object_end(w);
	jw_object_end(w);
}

/* The program's sandbox cannot work inside of ours, so a confined session uses none of its own; and a plan is made
 * without writing whatever the mode of the thread, since the program's plan mode enforces nothing. */
static const char *sandbox(const struct codex *codex)
{
	if (codex->is_confined)
		return "danger-full-access";
	if (codex->selected.interaction == INTERACTION_PLAN)
		return modes[RUNTIME_READ_ONLY].sandbox;
	return modes[codex->selected.runtime].sandbox;
}

static void sandbox_policy(const struct codex *codex, struct json_writer *w)
{
	jw_kobject(w, "sandboxPolicy");
	if (codex->is_confined) {
		jw_ktext(w, "type", "externalSandbox");
		jw_ktext(w, "networkAccess", "restricted");
	} else if (codex->selected.interaction == INTERACTION_PLAN) {
		jw_ktext(w, "type", modes[RUNTIME_READ_ONLY].sandbox_policy);
	} else {
		jw_ktext(w, "type", modes[codex->selected.runtime].sandbox_policy);
	}
	jw_object_end(w);
}

static void conversation(const struct codex *codex, struct json_writer *w)
{
	jw_kstr(w, "cwd", codex->cwd);
	jw_kstr_opt(w, "model", codex->selected.model);
	jw_ktext(w, "approvalPolicy", modes[codex->selected.runtime].approval);
	jw_ktext(w, "approvalsReviewer", "user");
	jw_ktext(w, "sandbox", sandbox(codex));
	jw_kstr_opt(w, "developerInstructions", codex->instructions);
	if (codex->mcp_url.p != NULL)
		endpoint(codex, w);
}

/* Pictures are shown to the model; of other files it is told where they are, behind the text of the message. */
static void input(const struct agent_order *order, struct json_writer *w)
{
	jw_karray(w, "input");
	jw_object_begin(w);
	jw_ktext(w, "type", "text");
	jw_kstr(w, "text", order->text);
	jw_object_end(w);
	for (size_t i = 0; i < order->attachment_count; i++) {
		const struct agent_attachment *file = &order->attachments[i];

		jw_object_begin(w);
		if (str_starts(file->mime, STR("image/"))) {
			jw_ktext(w, "type", "localImage");
			jw_kstr(w, "path", file->path);
		} else {
			jw_ktext(w, "type", "text");
			jw_key(w, "text");
			{
				AUTO(arena_destroyp) struct arena *scratch = arena_create();

				jw_str(w, str_printf(scratch, "Attached file %.*s: %.*s", STRF(file->name), STRF(file->path)));
			}
		}
		jw_object_end(w);
	}
	jw_array_end(w);
}

static void collaboration(const struct codex *codex, struct json_writer *w)
{
	bool is_plan = codex->selected.interaction == INTERACTION_PLAN;

	jw_kobject(w, "collaborationMode"); /* sticky: the default is said too */
	jw_ktext(w, "mode", is_plan ? "plan" : "default");
	jw_kobject(w, "settings"); /* goes before model and effort of the turn, so it repeats them */
	jw_kstr(w, "model", codex->selected.model.p != NULL ? codex->selected.model : codex->effective_model);
	jw_key(w, "reasoning_effort");
	if (codex->selected.effort.p != NULL)
		jw_str(w, codex->selected.effort);
	else
		jw_null(w);
	jw_key(w, "developer_instructions");
	jw_null(w); /* those of the mode */
	jw_object_end(w);
	jw_object_end(w);
}

static void turn(const struct codex *codex, struct str key, const struct agent_order *order, struct json_writer *w)
{
	jw_kstr_opt(w, "clientUserMessageId", key);
	input(order, w);
	jw_ktext(w, "approvalPolicy", modes[codex->selected.runtime].approval);
	jw_ktext(w, "approvalsReviewer", "user");
	sandbox_policy(codex, w);
	jw_kstr_opt(w, "model", codex->selected.model);
	jw_kstr_opt(w, "effort", codex->selected.effort);
	jw_kstr_opt(w, "serviceTier", codex->selected.tier);
	if (codex->selected.model.p != NULL || codex->effective_model.p != NULL)
		collaboration(codex, w);
}

bool codex_params_have_secret(const struct codex *codex, enum codex_method method)
{
	return (method == CALL_THREAD_START || method == CALL_THREAD_RESUME) && codex->mcp_url.p != NULL;
}

void codex_params_write(const struct codex *codex, enum codex_method method, struct str key,
	const struct agent_order *order, struct json_writer *w)
{
	if (method == CALL_THREAD_RESUME)
		jw_kstr(w, "threadId", codex->resume);
	else if (method >= CALL_TURN)
		jw_kstr(w, "threadId", codex->thread);
	switch (method) {
	case CALL_INITIALIZE:
		initialize(w);
		break;
	case CALL_THREAD_RESUME:
		jw_kbool(w, "excludeTurns", true);
		conversation(codex, w);
		break;
	case CALL_THREAD_START:
		conversation(codex, w);
		break;
	case CALL_MODELS:
		jw_kint(w, "limit", LIMIT_CODEX_MODELS);
		break;
	case CALL_TURN:
		turn(codex, key, order, w);
		break;
	case CALL_STEER:
		jw_kstr(w, "expectedTurnId", codex->turn);
		jw_kstr_opt(w, "clientUserMessageId", key);
		input(order, w);
		break;
	case CALL_INTERRUPT:
		jw_kstr(w, "turnId", codex->turn);
		break;
	case CALL_ACCOUNT:
	case CALL_CLEAN:
	case CODEX_METHODS:
		break;
	}
}
