/* providers/provider.h - start a turn, hear what happened: the door of the room.
 *
 * A driver translates between the engine and one kind of agent program. It does no I/O and has no clock: it is given
 * orders, the lines that the program wrote and the time, and it gives back lines to write and events in one normal
 * form. So all of it can be tested with text; its state can be stored together with what was heard (agent_save), and a
 * session goes on after a crash of the server at the very byte where it stood (agent_load).
 *
 * One session = one process = one conversation of one thread. Its life:
 *
 *   agent_create → agent_begin (handshake, new or resumed conversation) → EVENT_OPENED | EVENT_OPEN_FAILED
 *   → order turn → EVENT_TURN_STARTED … EVENT_TURN_ENDED, one turn at a time, with steer, interrupt, answer between
 *   → order close, or agent_exited
 *
 * Nothing that a program writes is trusted: what cannot be understood is a notice or a failed session, never an
 * assertion. */
#ifndef DAIS_PROVIDERS_PROVIDER_H
#define DAIS_PROVIDERS_PROVIDER_H

#include "base/failure.h"
#include "base/json.h"
#include "base/str.h"

#include <stdint.h>

/* Where the credential of the session's MCP endpoint stands in a line that is written to the program. The attempt host
 * puts the real one in its place, so that no line with a secret is ever stored. Only lines that say so (struct
 * agent_line) are looked into: a prompt may contain the same words. */
#define AGENT_SECRET "${DAIS_MCP_BEARER_TOKEN}"

/* The ladders of modes; a higher one may do more. */
enum runtime_mode { RUNTIME_READ_ONLY, RUNTIME_APPROVAL_REQUIRED, RUNTIME_AUTO_ACCEPT_EDITS, RUNTIME_FULL_ACCESS };
enum interaction_mode { INTERACTION_PLAN, INTERACTION_DEFAULT };

enum agent_quality { QUALITY_NONE, QUALITY_WEAK, QUALITY_STRONG };

/* What a session can do (AGENT_CAP(group, name) in providers/capability.def are the flags). */
struct agent_caps {
#define CAP_FLAG(group, name) bool name;
#define CAP_QUALITY(group, name) enum agent_quality name;
#include "providers/capability.def"
#undef CAP_FLAG
#undef CAP_QUALITY
	int64_t max_handoff_chars; /* 0: not known */
};
/* {"sessions":{…},"threads":{…},…}, as stored with the session. */
void agent_caps_write(const struct agent_caps *caps, struct json_writer *w);
int agent_caps_read(struct agent_caps *out, const json_t *stored, struct failure *f);

/* ---- an instance of a driver, as configured ---- */

struct driver;

struct provider_instance {
	struct str id;
	const struct driver *driver;
	struct str display_name;   /* absent: none */
	const struct str *command; /* program and fixed arguments; 0: the driver looks for its own on PATH */
	size_t command_count;
	struct str home;	   /* of the program's settings; absent: the user's */
	const struct str *env;	   /* NAME=value, added last */
	size_t env_count;
	const struct str *models;  /* as configured: replaces what the program advertises */
	size_t model_count;
	const json_t *options;	   /* the driver's own keys of its configuration, checked by driver->check */
};

struct agent_model {
	struct str id;
	struct str label; /* absent: none */
	bool is_default;
	struct str options; /* JSON array [{"id","type":"boolean"|"select","choices"?}], or absent */
};

/* ---- starting the program ---- */

struct agent_launch {
	const char **argv; /* NULL at the end */
	const char **env;  /* the whole environment, NAME=value, NULL at the end; no secret */
	bool ends_with_stdin; /* closing stdin asks the program to end */
	/* What it must be able to write when it is held read-only, besides its TMPDIR: its home. */
	const char **writable;
};

/* What a launch is told. All in the arena of the call. */
struct agent_config;

struct agent_place {
	const struct agent_config *config; /* as agent_create is told: some programs take a conversation, a model, … as arguments */
	struct str cwd;
	struct str tmp;		 /* private temporary directory, for TMPDIR */
	struct str attempt;	 /* value of DAIS_ATTEMPT: finds strays */
	const char *const *base; /* environment of the server that may be passed on: HOME, PATH, LANG, … */
	enum runtime_mode runtime;
	enum interaction_mode interaction;
	bool is_confined;	 /* held read-only by the operating system */
};

/* ---- a session ---- */

struct agent;

struct agent_config {
	const struct provider_instance *instance; /* outlives the session */
	struct str cwd;
	enum runtime_mode runtime;
	enum interaction_mode interaction;
	bool is_confined;
	struct str model;	/* absent: the program's default */
	const json_t *model_options; /* object id → value, or NULL */
	struct str mcp_url;	/* of this server's endpoint for the session; absent: none */
	struct str instructions; /* how to use that endpoint: goes before the first turn, where the program has no better place */
	struct str resume;	/* native id of the conversation to go on with; absent: a new one */
	struct str fresh;	/* a new UUID, made by the engine for this session: a driver has no chance of its own. The id of
				 * a new conversation where the program lets us choose it, and the root of ids of messages */
};

/* ---- orders ---- */

enum agent_decision { DECISION_ACCEPT, DECISION_ACCEPT_FOR_SESSION, DECISION_DECLINE, DECISION_CANCEL };

enum agent_order_kind {
	ORDER_TURN,	 /* text; only between turns */
	ORDER_STEER,	 /* text, into the turn that runs */
	ORDER_INTERRUPT, /* the turn that runs; again: nothing happens */
	ORDER_ANSWER,	 /* request, decision or answers */
	/* Model, options, modes for the next turn; only between turns, only if the caps allow. Answered by EVENT_SELECTED or
	 * EVENT_ORDER_REFUSED, and no turn is ordered before that: a driver keeps no prompt back. */
	ORDER_SELECT,
	ORDER_CLOSE,	 /* end in an orderly way: the last one */
};

struct agent_attachment {
	struct str name, mime, path; /* path: absolute, readable by the agent */
};

struct agent_order {
	enum agent_order_kind kind;
	struct str key;	 /* the engine's; comes back in EVENT_ORDER_REFUSED */
	struct str text; /* byte for byte what the agent is told */
	const struct agent_attachment *attachments;
	size_t attachment_count;
	struct str request; /* key of EVENT_REQUEST */
	enum agent_decision decision;
	const json_t *answers; /* object question id → text or array of texts; NULL: a decision */
	struct str model;
	const json_t *model_options;
	enum runtime_mode runtime;
	enum interaction_mode interaction;
};

/* ---- events ---- */

enum failure_class { CLASS_PROVIDER, CLASS_TRANSPORT, CLASS_PERMISSION, CLASS_VALIDATION, CLASS_UNKNOWN };
const char *failure_class_name(enum failure_class class); /* provider_error, … */

enum agent_yes { YES_UNKNOWN = -1, YES_NO, YES_YES };

struct agent_failure {
	enum failure_class class;
	struct str code;    /* closed list: providers/failure_code.def; absent: none */
	struct str message; /* as the program said it; the engine cleans it before it is stored */
	enum agent_yes is_retryable;
};

enum agent_item_kind {
	ITEM_TEXT,	  /* assistant text: `delta` is appended */
	ITEM_REASONING,	  /* the same */
	ITEM_COMMAND,	  /* body: input, output?, exitCode? */
	ITEM_FILE_CHANGE, /* body: fileName, additions?, deletions?, diffStr?, oldStr?, newStr?; files? [{fileName,oldStr?,newStr?}] of several */
	ITEM_FILE_SEARCH, /* body: pattern?, results? */
	ITEM_WEB_SEARCH,  /* body: patterns?, results? */
	ITEM_TOOL,	  /* body: toolName, input, output? */
	ITEM_TODO,	  /* body: steps[{id,text,status}], explanation?; a whole replacement each time */
	ITEM_PLAN,	  /* proposed plan: body: markdown */
	ITEM_SUBAGENT,	  /* the program's own: body: title?, prompt?, model?, progress?, result?, nativeThreadId? */
	ITEM_COMPACTION,  /* body: summary?, beforeTokenCount?, afterTokenCount? */
	ITEM_NOTICE,	  /* body: severity (info, warning, error), message, retry? {attempt,maxAttempts?,retryDelayMs?} */
};

enum agent_status { AGENT_PENDING, AGENT_RUNNING, AGENT_COMPLETED, AGENT_FAILED, AGENT_INTERRUPTED, AGENT_CANCELLED };

enum agent_request_kind {
	REQUEST_COMMAND, REQUEST_FILE_READ, REQUEST_FILE_CHANGE, REQUEST_TOOL, REQUEST_USER_INPUT, REQUEST_AUTH_REFRESH,
};

struct agent_usage {
	int64_t input, cached, output, reasoning; /* tokens of this turn, cached ones not in input; -1: not told */
	double cost_usd;			  /* below 0: not told */
	int64_t context_used, context_size;	  /* -1: not told */
};

enum agent_event_kind {
	EVENT_OPENED,	     /* native, is_resumed, caps, program_version */
	EVENT_OPEN_FAILED,   /* failure; the session is of no use */
	EVENT_MODELS,	     /* models: what can be selected now; before EVENT_OPENED, and whenever the list changes */
	EVENT_TURN_STARTED,  /* native: id of the turn, absent where the program has none; is_unasked: no order began it */
	EVENT_ITEM,	     /* item: created or changed; key is the program's own id where it has one, and unique in the session */
	EVENT_REQUEST,	     /* request: the program waits for a person. One of a sub-agent in the background may stand open
				  * between two turns */
	EVENT_REQUEST_ENDED, /* key: answered, or not needed any more (status COMPLETED or CANCELLED) */
	EVENT_USAGE,	     /* usage, once for each turn before its end, and whenever the gauge of the context moves */
	EVENT_TITLE,	     /* text: the program's own title of the conversation */
	EVENT_BACKGROUND,    /* body: JSON array [{taskId,description?,taskType?}]: work that goes on between turns */
	EVENT_MODE,	     /* body {"mode"?,"interaction"?}: the program's own mode changed; "interaction":"default": planning ended */
	EVENT_STEERED,	     /* key of the order: the message is in the turn */
	EVENT_SELECTED,	     /* key of ORDER_SELECT: it holds; a turn may be ordered again */
	EVENT_ORDER_REFUSED, /* key, failure: nothing came of it */
	EVENT_TURN_ENDED,    /* status COMPLETED, FAILED (failure), INTERRUPTED or CANCELLED; is_broken; text: final answer if the program names one */
	EVENT_BROKEN,	     /* failure: the session must be ended now (a line too long, no protocol) */
};

struct agent_item {
	enum agent_item_kind kind;
	struct str key;
	struct str parent; /* key of the item it belongs to (a sub-agent's), or absent */
	enum agent_status status;
	struct str title; /* absent: unchanged */
	/* ITEM_TEXT, ITEM_REASONING: what is new; ITEM_COMMAND: new output, until a body tells the whole; absent: nothing */
	struct str delta;
	/* JSON object: its members replace those of the same name, the others stay (ITEM_TODO: whole). So a driver keeps no
	 * output of the program in its state. Absent: unchanged. */
	struct str body;
};

struct agent_request {
	struct str key; /* unique in the session */
	enum agent_request_kind kind;
	struct str item;   /* key of the item it is about, or absent */
	/* JSON object for people: {"title","detail"?,"options"?[{"name","kind"}],"questions"?[{"id","text","header"?,
	 * "options"?[{"value","label","description"?}],"multiple"?}]}. An answer holds values, or labels, or free text. */
	struct str prompt;
};

struct agent_event {
	enum agent_event_kind kind;
	struct agent_event *next;
	struct str key, native, text, body, program_version;
	bool is_resumed, is_broken;
	bool is_unasked; /* EVENT_TURN_STARTED: the program went on by itself, as when work in the background ended */
	enum agent_status status;
	struct agent_failure failure;
	struct agent_item item;
	struct agent_request request;
	struct agent_usage usage;
	const struct agent_caps *caps;
	const struct agent_model *models;
	size_t model_count;
};

struct agent_line {
	struct agent_line *next;
	struct str text; /* without line end */
	bool has_secret; /* AGENT_SECRET stands in it */
};

/* What comes of one input. Everything lives in `arena`. */
struct agent_out {
	struct arena *arena;
	struct agent_line *lines, **lines_end;
	struct agent_event *events, **events_end;
	bool ends_stdin; /* nothing more will be written */
	bool kills;	 /* the program does not listen: use the ladder */
};

void agent_out_init(struct agent_out *out, struct arena *arena);
/* For drivers. A line is a JSON value written by json_writer. */
void agent_out_line(struct agent_out *out, struct str json, bool has_secret);
struct agent_event *agent_out_event(struct agent_out *out, enum agent_event_kind kind);

struct agent_exit {
	int code;	/* -1: killed by `signal` */
	int signal;
	bool is_stdout_only; /* the process lives, but its stdout is closed */
	/* exited, stdout_closed, line_too_long, start_timeout, deadline, ended, spawn_failed, lost; stalled: silent for too long */
	struct str cause;
	struct str stderr_tail;
};

/* ---- the table of a driver ---- */

struct driver {
	const char *kind; /* codex, claudeAgent, acp, … */
	const char *title;
	const char *program; /* looked for on PATH when no command is configured; NULL: must be configured */
	struct agent_caps caps; /* before the program is known better */
	const char *constraint; /* why it can run nothing, for people and models; NULL: it can */
	/* The configuration of an instance: fail_field() with paths like "scenario". NULL: no keys of its own. */
	int (*check)(const struct provider_instance *instance, struct failure *f);
	int (*launch)(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
		struct agent_launch *out, struct failure *f);
	struct agent *(*create)(const struct agent_config *config);
	void (*destroy)(struct agent *agent);
	/* The state between two inputs, a JSON object of at most LIMIT_AGENT_STATE_BYTES; and back. */
	void (*save)(const struct agent *agent, struct json_writer *w);
	int (*load)(struct agent *agent, const json_t *state, struct failure *f);
	/* Inputs. `now`: milliseconds, never going back. */
	void (*begin)(struct agent *agent, int64_t now, struct agent_out *out);
	void (*order)(struct agent *agent, const struct agent_order *order, int64_t now, struct agent_out *out);
	void (*line)(struct agent *agent, struct str line, int64_t now, struct agent_out *out);
	void (*exited)(struct agent *agent, const struct agent_exit *exit, struct agent_out *out);
	/* When tick is due, 0: never; and the tick. */
	int64_t (*due)(const struct agent *agent);
	void (*tick)(struct agent *agent, int64_t now, struct agent_out *out);
};

/* Every driver there is, in the order of listings. */
extern const struct driver *const driver_table[];
extern const size_t driver_count;
const struct driver *driver_find(struct str kind);

/* The members of every agent begin with this. */
struct agent {
	const struct driver *driver;
};

#endif
