/* providers/acp/profile.h - what is known of single agents that speak the Agent Client Protocol: one row each. */
#ifndef DAIS_PROVIDERS_ACP_PROFILE_H
#define DAIS_PROVIDERS_ACP_PROFILE_H

#include "providers/provider.h"

enum acp_steering {
	STEER_NONE,	 /* the engine interrupts and prompts again */
	STEER_INTERJECT, /* _x.ai/interject */
	STEER_EXTENSION, /* _session/steering; also of every agent that advertises it */
};

/* How a call of our own MCP server is recognised: nobody is asked about those. */
enum acp_mcp_sign {
	MCP_SIGN_NONE,
	MCP_SIGN_GEMINI,   /* id mcp_dais_…, title "… (dais MCP Server)" */
	MCP_SIGN_GROK,	   /* rawInput {variant:"UseTool", tool_name:"dais__…"} */
	MCP_SIGN_OPENCODE, /* kind other, title dais_… */
	MCP_SIGN_CLAUDE,   /* _meta.claudeCode.toolName mcp__dais__… */
	MCP_SIGN_CODEX,	   /* _meta.is_mcp_tool_call, rawInput.server */
};

/* Ids of native modes, first match wins; NULL at the end. */
struct acp_mode_names {
	const char *read_only[4];
	const char *approval[4];
	const char *edits[5];
	const char *full[5];
	const char *plan[3];
};

struct acp_profile {
	const char *name;      /* as stored with the session */
	const char *kind;      /* kind of the driver; NULL: of kind acp, recognised when it has started */
	const char *info;      /* part of agentInfo.name */
	const char *program;   /* last part of the path of the program, for its home before it has started */
	const char *home_env;  /* variable that names the home of its settings; NULL: HOME */
	const char *home_dir;  /* that home below HOME; NULL: not known */
	const char *const *args; /* behind the command, NULL at the end */
	const char *const *env;
	const char *mode_flag; /* option for the mode at the start, behind `args`; NULL: none */
	struct acp_mode_names modes;
	enum acp_steering steering;
	enum acp_mcp_sign mcp_sign;
	bool has_hidden_modes;	    /* knows modes that it does not list */
	bool has_rules;		    /* session/new takes instructions in _meta.rules */
	bool reports_usage;	    /* always: a turn without has failed behind the scenes */
	bool input_has_cached;	    /* inputTokens counts the cached ones too */
	bool tells_mode_as_text;    /* "[MODE_UPDATE] …" */
	bool unnamed_text_is_notice; /* text without a messageId is a warning or an error, not the answer */
	bool asks_by_permission;    /* toolCallId "interaction_…": the options are the answers */
	bool title_is_question;	    /* in a form: title is the question, description its header */
	bool outlives_cancel;	    /* its tools may run on after a cancel: the process is ended */
};

const struct acp_profile *acp_profile_of_kind(const char *kind);
const struct acp_profile *acp_profile_named(struct str name);
/* Of an agent of kind acp, by what it says of itself; `generic` when nobody knows it. */
const struct acp_profile *acp_profile_recognise(const json_t *initialized);

int acp_launch(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
	struct agent_launch *out, struct failure *f);
int acp_check(const struct provider_instance *instance, struct failure *f);

#endif
