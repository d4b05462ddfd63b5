/* providers/acp/acp.h - a session with an agent that speaks the Agent Client Protocol, version 1: the inside of the
 * family of drivers acp, grok, gemini, cursor, antigravity and script.
 *
 *   IDLE → INITIALIZING → OPENING (→ AUTHENTICATING → OPENING) → SETTLING → READY ⇄ RUNNING
 *   any → OVER: nothing is read or written any more
 *
 * Invariants:
 * (1) every text of the agent that is kept counts against LIMIT_AGENT_KEPT_BYTES, so that the state stays under its own
 *     limit whatever the agent does; what does not fit is told as a notice or refused, not kept.
 * (2) the state between two inputs is all in the tables of state.c: nothing else survives.
 * (3) a request of the agent is answered exactly once: at once, by ORDER_ANSWER, or when its turn ends. */
#ifndef DAIS_PROVIDERS_ACP_ACP_H
#define DAIS_PROVIDERS_ACP_ACP_H

#include "providers/acp/profile.h"
#include "providers/failure_code.h"
#include "providers/rpc.h"

#include <inttypes.h>

#define ACP_MCP_NAME "dais" /* of our server in the agent's list */

enum acp_phase {
	ACP_IDLE,
	ACP_INITIALIZING,
	ACP_AUTHENTICATING,
	ACP_OPENING,  /* session/new, load or resume */
	ACP_SETTLING, /* modes and models are set, history comes */
	ACP_READY,
	ACP_RUNNING,
	ACP_OVER,
};

enum acp_call { CALL_INITIALIZE, CALL_AUTHENTICATE, CALL_OPEN, CALL_SET, CALL_PROMPT, CALL_STEER, CALL_IGNORED };

/* Kinds of tools, as in the protocol; NONE: not told yet. */
enum acp_kind {
	KIND_NONE,
	KIND_READ,
	KIND_EDIT,
	KIND_DELETE,
	KIND_MOVE,
	KIND_SEARCH,
	KIND_EXECUTE,
	KIND_THINK,
	KIND_FETCH,
	KIND_SWITCH_MODE,
	KIND_OTHER,
	ACP_KINDS,
};

/* Where a setting of the agent is written. */
enum acp_place { PLACE_NONE, PLACE_LEGACY /* set_mode, set_model */, PLACE_OPTION /* set_config_option */ };

/* How a pending request is answered. */
enum acp_form { FORM_PERMISSION, FORM_CHOICE, FORM_ELICITATION, FORM_GROK_QUESTION, FORM_GROK_PLAN, FORM_CURSOR_QUESTION,
	FORM_CURSOR_PLAN, ACP_FORMS };

/* Whoever speaks on the pipe: [0] is the session itself, others are sub-agents with a session of their own. */
struct acp_speaker {
	struct str session;
	struct str item; /* of the sub-agent; absent: the session itself */
	struct str text_key, text_id;	    /* open message and its messageId */
	struct str thought_key, thought_id;
};

struct acp_tool {
	struct str id;
	struct str key; /* of the item */
	int64_t speaker;
	int64_t kind;
	int64_t item_kind;
	int64_t status; /* enum agent_status */
	bool is_shown;	/* its item was told */
	bool is_ours;	/* a call of our own MCP server */
	bool is_mcp;
	bool is_rejected;
	bool hides_paths; /* it touches more than `paths` */
	json_t *paths;	  /* texts, at most LIMIT_AGENT_HELD_BYTES together */
	json_t *held;	  /* its first description, while it is not shown */
};

struct acp_request {
	struct str id;	/* theirs, as JSON text */
	struct str key; /* of the event */
	struct str tool; /* key of the item */
	int64_t form;
	bool leaves_plan; /* a yes ends planning */
	json_t *kept;	  /* permission: {accept,session,decline}; questions: see question.c */
};

/* owner: whoever called agent_create */
struct acp {
	struct agent agent;
	struct arena *arena; /* of what never changes */
	struct agent_config config;
	const struct acp_profile *profile;
	struct rpc rpc;

	int64_t phase;
	int64_t runtime, interaction;
	struct str profile_name; /* only while it is saved and loaded */
	struct str session, version;
	struct str model, mode; /* as the agent last told */

	/* What it can do. */
	bool can_load, can_resume, can_fork, can_close, has_http_mcp, can_steer, has_usage;
	bool has_plan_option, is_planning; /* planning is an option of its own, beside the modes */
	bool was_authenticated, is_resumed, has_instructions_due, has_refused_mode, has_mcp_trouble;
	struct str auth_methods; /* for the message that asks for a log-in */
	int64_t mode_place, model_place;
	struct str mode_option, model_option;
	json_t *modes;	 /* ids of what mode_place takes */
	json_t *options; /* ids of other options → "select" or "boolean" */

	/* Times, 0: none. */
	int64_t heard_at, open_due, quiet_due, cancel_due;
	bool is_replaying;

	/* ORDER_SELECT that waits. */
	struct str select_key;
	int64_t runtime_before, interaction_before;

	/* The turn. */
	int64_t turn, made; /* ordinals of turns, and of keys that are ours */
	bool is_cancelled, is_stalled, was_denied, has_content, saw_system_error, has_silence_notice, has_drop_notice;
	bool has_cost;
	int64_t cost, cost_before; /* millionths of a dollar, of the whole session */
	struct str error_text;
	json_t *todos; /* cursor: they are changed one by one */

	int64_t speaker_count, tool_count, request_count;
	struct acp_speaker speakers[LIMIT_AGENT_CHILDREN + 1];
	struct acp_tool tools[LIMIT_AGENT_TOOLS];
	struct acp_request requests[LIMIT_AGENT_REQUESTS];
};

/* ---- driver.c ---- */
struct agent *acp_create(const struct agent_config *config);
void acp_destroy(struct agent *agent);
void acp_begin(struct agent *agent, int64_t now, struct agent_out *out);
void acp_order(struct agent *agent, const struct agent_order *order, int64_t now, struct agent_out *out);
void acp_line(struct agent *agent, struct str line, int64_t now, struct agent_out *out);
void acp_exited(struct agent *agent, const struct agent_exit *exit, struct agent_out *out);
int64_t acp_due(const struct agent *agent);
void acp_tick(struct agent *agent, int64_t now, struct agent_out *out);
/* The session is of no use from here on: orders that wait for the agent are refused. */
void acp_over(struct acp *a, struct agent_out *out);
void acp_refuse_order(struct agent_out *out, struct str key, enum provider_failure_code code, const char *why);

/* ---- state.c ---- */
void acp_save(const struct agent *agent, struct json_writer *w);
int acp_load(struct agent *agent, const json_t *state, struct failure *f);
void acp_forget(struct acp *a);
void acp_speaker_drop(struct acp *a, int64_t i);
void acp_tool_drop(struct acp *a, int64_t i);
void acp_request_drop(struct acp *a, int64_t i);
/* Whether `more` bytes of the agent's texts can be kept (1). */
bool acp_has_room(const struct acp *a, size_t more);

/* ---- open.c ---- */
void acp_initialized(struct acp *a, const json_t *result, struct agent_out *out);
void acp_authenticated(struct acp *a, struct agent_out *out);
void acp_session_opened(struct acp *a, const json_t *result, int64_t now, struct agent_out *out);
void acp_open_refused(struct acp *a, const json_t *error, struct agent_out *out);
void acp_open_failed(struct acp *a, struct agent_failure failure, struct agent_out *out);
/* Tells that the session is open once its settings are made and its history has been told. */
void acp_settle(struct acp *a, int64_t now, struct agent_out *out);
void acp_capabilities(const struct acp *a, struct agent_caps *caps);

/* ---- option.c ---- */
/* What an answer or update says about modes, models and options; models are told. */
void acp_read_options(struct acp *a, const json_t *from, struct agent_out *out);
/* Calls that make the session what is wanted. 0, or -1 when nothing of the agent can be that. */
int acp_set_modes(struct acp *a, int64_t now, struct agent_out *out);
int acp_set_model(struct acp *a, struct str model, const json_t *options, int64_t now, struct agent_out *out);
/* Ends of these calls. */
void acp_set_done(struct acp *a, const struct rpc_message *m, int64_t now, struct agent_out *out);
void acp_set_failed(struct acp *a, struct str what, struct agent_failure failure, int64_t now, struct agent_out *out);
void acp_order_select(struct acp *a, const struct agent_order *order, int64_t now, struct agent_out *out);
/* The native mode of the thread's own runtime mode, STR_NONE: not known. */
struct str acp_own_mode(const struct acp *a);

/* ---- turn.c ---- */
void acp_order_turn(struct acp *a, const struct agent_order *order, int64_t now, struct agent_out *out);
void acp_order_steer(struct acp *a, const struct agent_order *order, int64_t now, struct agent_out *out);
void acp_steered(struct acp *a, const struct rpc_message *m, struct agent_out *out);
void acp_interrupt(struct acp *a, int64_t now, struct agent_out *out);
void acp_prompt_ended(struct acp *a, const struct rpc_message *m, struct agent_out *out);
void acp_end_turn(struct acp *a, enum agent_status status, const struct agent_failure *failure, bool is_broken,
	struct agent_out *out);
bool acp_can_come_back(const struct acp *a);

/* ---- usage.c ---- */
struct agent_usage acp_usage_of(const struct acp *a, const json_t *result, bool *is_told);
void acp_gauge(struct acp *a, const json_t *update, struct agent_out *out);

/* ---- update.c ---- */
void acp_update(struct acp *a, const json_t *params, int64_t now, struct agent_out *out);
/* Who speaks under this session id; a new one is told as a sub-agent. -1: too many. */
int64_t acp_speaker_of(struct acp *a, struct str session, struct agent_out *out);
void acp_show_notice(struct acp *a, const char *severity, struct str message, struct agent_out *out);
void acp_show_item(struct agent_out *out, enum agent_item_kind kind, struct str key, struct str parent,
	enum agent_status status, struct str title, struct str body);
void acp_show_todo(struct acp *a, int64_t speaker, const json_t *steps, struct agent_out *out);
void acp_show_plan(struct acp *a, struct str key, struct str markdown, struct agent_out *out);

/* ---- message.c ---- */
void acp_say(struct acp *a, int64_t speaker, bool is_thought, struct str text, struct str id, struct agent_out *out);
/* Ends what is open; of those with a messageId only when `all`. */
void acp_end_messages(struct acp *a, int64_t speaker, bool all, struct agent_out *out);
struct str acp_content_text(struct arena *arena, const json_t *block);

/* ---- tool.c ---- */
void acp_tool_update(struct acp *a, int64_t speaker, const json_t *update, struct agent_out *out);
struct acp_tool *acp_tool_find(struct acp *a, int64_t speaker, struct str id);
/* As above, and its item is shown whatever is known of its kind: somebody is asked about it. */
struct acp_tool *acp_tool_show(struct acp *a, int64_t speaker, const json_t *update, struct agent_out *out);
void acp_end_tools(struct acp *a, bool was_cancelled, struct agent_out *out);
bool acp_has_open_tool(const struct acp *a);
const char *acp_kind_name(int64_t kind);

/* ---- tool_body.c ---- */
enum agent_item_kind acp_item_kind(const struct acp *a, const struct acp_tool *tool, const json_t *update);
struct str acp_tool_body(const struct acp_tool *tool, const json_t *update, struct arena *arena);
bool acp_is_mcp(const struct acp *a, const json_t *update, bool *is_ours);
struct str acp_plan_text(const json_t *update);

/* ---- request.c ---- */
void acp_question(struct acp *a, const struct rpc_message *m, struct agent_out *out);
void acp_order_answer(struct acp *a, const struct agent_order *order, int64_t now, struct agent_out *out);
/* As if nobody had been there to ask. */
void acp_answer_cancelled(struct str id, enum acp_form form, struct agent_out *out);
/* Everything that waits is answered as cancelled. */
void acp_cancel_requests(struct acp *a, struct agent_out *out);
void acp_request_withdrawn(struct acp *a, const json_t *params, struct agent_out *out);
/* A new pending request about an item, or none; `kept` is stolen. NULL: no room, and the agent was told so. */
struct acp_request *acp_request_add(struct acp *a, struct str id, enum acp_form form, struct str tool, json_t *kept,
	struct agent_out *out);
void acp_request_tell(const struct acp_request *request, enum agent_request_kind kind, struct str prompt,
	struct agent_out *out);

/* ---- permission.c ---- */
void acp_ask_permission(struct acp *a, const struct rpc_message *m, struct agent_out *out);
void acp_answer_permission(struct acp *a, const struct acp_request *request, enum agent_decision decision,
	struct agent_out *out);
enum acp_verdict { VERDICT_ASK, VERDICT_ALLOW, VERDICT_DENY };
/* Of a question whether planning may end. */
enum acp_verdict acp_judge_plan_exit(const struct acp *a);
void acp_leave_plan(struct acp *a, struct agent_out *out);
bool acp_is_inside(struct str cwd, struct str path);

/* ---- question.c ---- */
void acp_ask_form(struct acp *a, const struct rpc_message *m, struct agent_out *out);
void acp_ask_choice(struct acp *a, const struct rpc_message *m, struct agent_out *out);
void acp_ask_grok(struct acp *a, const struct rpc_message *m, struct agent_out *out);
void acp_ask_cursor(struct acp *a, const struct rpc_message *m, struct agent_out *out);
/* -1: the order does not answer it, and was refused; it goes on waiting. */
int acp_answer_question(const struct acp_request *request, const struct agent_order *order,
	struct agent_out *out);
/* A proposed plan of Grok or Cursor. */
void acp_answer_plan(struct acp *a, const struct acp_request *request, bool is_accepted, struct agent_out *out);


/* ---- extension.c ---- */
/* Notifications beside session/update. */
void acp_notification(struct acp *a, const struct rpc_message *m, int64_t now, struct agent_out *out);
void acp_cursor_tell(struct acp *a, const struct rpc_message *m, struct agent_out *out);

/* ---- failure.c ---- */
struct agent_failure acp_failure_of_error(const json_t *error, struct arena *arena);
struct agent_failure acp_failure_of_text(struct str text, struct arena *arena);

#endif
