/* script/private.h - the agent, its sessions and their turns.
 *
 * The main thread reads stdin and answers what needs no waiting; each session has a thread that plays its prompts one
 * after the other, so that a step is written as one reads it and a full pipe holds up only who writes. Threads, not a
 * loop: the program is small, and a scenario that hangs, floods or sleeps must not keep the reader from hearing a
 * cancel.
 *
 * (1) agent->lock guards everything in struct script_agent and struct session that is not said to be constant or the
 *     session thread's own. A session thread never holds it while it waits for a peer, a process or stdout; the main
 *     thread does while it writes an answer, which nobody but the client can hold up.
 * (2) agent->output guards stdout: a line is written whole. It is taken last: who has it takes nothing else. */
#ifndef DAIS_SCRIPT_PRIVATE_H
#define DAIS_SCRIPT_PRIVATE_H

#include "base/id.h"
#include "base/json.h"
#include "script/scenario.h"
#include "script/script.h"

#include <pthread.h>

struct mcp_client;

/* A request of ours that the client has to answer. */
struct asked {
	int64_t id;
	json_t *answer; /* the whole response, or NULL while it is awaited; owned */
};

struct prompt {
	struct prompt *next;
	json_t *id; /* of the request; NULL: begun by a steering message, nobody waits for its end */
	struct str text; /* heap */
	bool is_cancelled;   /* by session/cancel, session/close or the end of stdin */
	bool is_withdrawn;   /* by $/cancel_request */
	bool ignores_cancel; /* a step said so */
	struct str *steers; /* messages that came while it ran; heap */
	size_t steer_count, steer_taken;
};

struct mcp_header {
	struct str name, value;
};

/* The MCP server that came with session/new, load or resume. Never printed. */
struct mcp_server {
	struct str name, url;
	const struct mcp_header *headers;
	size_t header_count;
};

struct session {
	struct session *next;
	struct script_agent *agent;
	char id[ID_TEXT_SIZE]; /* constant */
	pthread_t thread;
	pthread_cond_t changed; /* anything below, and an answer */
	int wake;		/* eventfd, for who waits in poll(); readable while the running prompt is cancelled */
	bool is_closing;
	struct prompt *prompts, **prompts_end; /* the first one runs */
	struct asked *asked;
	struct arena *place; /* of cwd and server; replaced by load and resume */
	const char *cwd;
	const struct mcp_server *server; /* NULL: none was given */
	uint64_t server_serial;		 /* counts replacements */
	size_t model, mode;		 /* index */
	int64_t turns;
	int64_t *scene_uses; /* by scene of the scenario */
	json_t *memory, *saved; /* objects */
	struct buf history;	/* updates, one a line, as session/load repeats them */
	unsigned allowed; /* kinds of tools that are allowed for the whole session, as bits */
	struct mcp_client *mcp;  /* the session thread's own */
};

struct script_agent {
	const struct scenario *scenario; /* constant */
	const char *directory;		 /* of the session files; constant */
	int in, out, stop_reading;	 /* stop_reading: eventfd, see step_hang */
	pthread_mutex_t lock, output;
	struct session *sessions;
	int64_t next_id;
	bool is_initialized, is_signed_in, has_forms; /* has_forms: the client answers elicitation/create */
};

/* ---- writing (update.c) ---- */

/* One line to stdout, whole, however long it takes. A client that is gone ends the process. */
void script_write(struct script_agent *agent, struct str line);
void script_write_bytes(struct script_agent *agent, struct str bytes); /* as they are */
void script_answer(struct script_agent *agent, const json_t *id, struct str result);
struct rpc_error {
	int64_t code;
	struct str message;
	struct str data; /* JSON; absent: none */
};
void script_refuse(struct script_agent *agent, const json_t *id, const struct rpc_error *error);
void script_refuse_text(struct script_agent *agent, const json_t *id, int64_t code, const char *message);
/* A request of ours, params as JSON. */
void script_request(struct script_agent *agent, int64_t id, const char *method, struct str params);
/* A session/update; `update` is the whole object. */
void script_session_update(struct session *session, struct str update);
/* The same with {"sessionUpdate":kind,members}. */
void script_session_update_members(struct session *session, const char *kind, struct str members);
/* Keep it for session/load. */
void script_session_keep(struct session *session, const char *kind, struct str members);

/* ---- methods (method.c), main thread ---- */

void script_take_line(struct script_agent *agent, struct str line);

/* ---- sessions (session.c) ---- */

struct session *script_session_find(struct script_agent *agent, struct str id); /* lock held */
struct session *script_session_blank(struct script_agent *agent);  /* without an id: for loading */
struct session *script_session_create(struct script_agent *agent); /* with a new one */
void script_session_start(struct session *session);	     /* its thread, and into the list; lock held */
void script_session_destroy(struct session *session); /* its thread has ended, or was never started */
void script_session_place(struct session *session, const json_t *params); /* cwd and mcpServers; lock held */
/* All with the lock held. Steering needs a running prompt. A cancel that the running prompt ignores does nothing; at
 * the end of a session at least what waits behind it is dropped. */
void script_session_queue(struct session *session, const json_t *id, struct str text);
void script_session_steer(struct session *session, struct str text);
void script_session_cancel(struct session *session, bool is_end);
void script_session_close(struct session *session);
/* The running prompt was changed: whoever waits looks again. */
void script_session_stir(struct session *session);
/* Take the running prompt, whose end the client learns next, out of the queue; the caller destroys it. */
struct prompt *script_session_detach(struct session *session);
struct str blocks_text(struct arena *arena, const json_t *blocks); /* what the prompt says */
const char *script_mode(size_t i); /* NULL behind the last one */
const char *script_mode_name(size_t i);

/* ---- their files (session_file.c); lock held ---- */

int script_session_save(const struct session *session, struct failure *f);
/* Fill a blank session. 1: there is no such file; -1 with *f. */
int script_session_restore(struct session *session, struct str id, struct failure *f);
const char *script_session_directory(struct arena *arena); /* NULL: no home */

/* ---- a turn (turn.c), session thread ---- */

struct turn_usage {
	bool is_told; /* by a step; otherwise counted from the texts */
	int64_t input, cached, output, reasoning;
};

struct turn {
	struct script_agent *agent;
	struct session *session;
	struct prompt *prompt;
	struct arena *arena;
	int64_t ordinal; /* in the session, from 1 */
	int64_t parts;	 /* messages and tool calls so far: ids */
	int64_t output_bytes;
	struct turn_usage usage;
	struct str answer, steer;
	struct {
		const char *stop;	/* stop reason, or NULL */
		struct rpc_error error; /* when there is no stop reason */
	} end;
};

/* Play the first prompt of the queue, take it out and answer it. */
void turn_play(struct session *session, struct prompt *prompt);
/* Ends with `stop` or with `error`, for step functions: return turn_stop(…). */
enum outcome turn_stop(struct turn *turn, const char *stop);
enum outcome turn_fail(struct turn *turn, struct rpc_error error);
/* {{…}} filled in; JSON of a value with {{…}} in its texts, in the turn's arena. */
struct str turn_text(struct turn *turn, struct str text);
struct str turn_json(struct turn *turn, const struct yaml *node);
/* The text of a field; absent when it is not set. */
struct str step_text_of(struct turn *turn, const struct step *step, const char *field);
int64_t step_number(const struct step *step, const char *field);
bool turn_is_cancelled(struct turn *turn);
/* Wait for `ms` (-1: for ever), until `is_done` (may be NULL, lock held) or a cancel, which ends the turn. */
enum outcome turn_wait(struct turn *turn, int64_t ms, bool (*is_done)(struct turn *turn));
/* Ask the client. *answer (owned by the caller) is its response. */
enum outcome turn_request(struct turn *turn, const char *method, struct str params, json_t **answer);
const char *turn_cwd(struct turn *turn);
struct str turn_new_id(struct turn *turn, const char *prefix);

/* A tool call: one report at its begin, one at its end, one line of history. Members are JSON without braces. */
struct tool_call {
	struct str id;
	struct str head; /* title, kind, rawInput, locations */
	const char *status; /* of the end */
	struct str tail; /* content, rawOutput */
};
void tool_begin(struct turn *turn, struct tool_call *call, const char *status, struct str head);
void tool_end(struct turn *turn, struct tool_call *call, const char *status, struct str tail);
/* "title":…,"kind":… */
struct str tool_head(struct turn *turn, struct str title, const char *kind);
/* "content":[{text}] */
struct str tool_content(struct turn *turn, struct str text);
/* A message of the assistant in one piece. */
void turn_say(struct turn *turn, struct str text);

/* ---- words of the protocol (words.c) ---- */

enum tool_kind { TOOL_READ, TOOL_EDIT, TOOL_DELETE, TOOL_MOVE, TOOL_SEARCH, TOOL_EXECUTE, TOOL_THINK, TOOL_FETCH,
	TOOL_SWITCH_MODE, TOOL_OTHER };
extern const char *const tool_kinds[];
extern const char *const plan_statuses[];
extern const char *const stop_reasons[];
extern const char *const fail_words[];
struct fail_word {
	int64_t code;
	int64_t http; /* 0: none */
	const char *message;
};
extern const struct fail_word fail_meanings[]; /* in the order of fail_words */

#define RPC_PARSE (-32700)
#define RPC_INVALID_REQUEST (-32600)
#define RPC_METHOD_NOT_FOUND (-32601)
#define RPC_INVALID_PARAMS (-32602)
#define RPC_INTERNAL (-32603)
#define RPC_AUTH_REQUIRED (-32000)
#define RPC_NOT_FOUND (-32002)
#define RPC_CANCELLED (-32800)

/* ---- MCP over HTTP (mcp_client.c), session thread ---- */

struct mcp_call {
	const struct mcp_server *server;
	struct str tool, arguments; /* arguments: a JSON object */
	enum { RETRY_AS_SAFE, RETRY_NO, RETRY_YES } retry;
	bool has_request_id; /* clientRequestId: repeating it does nothing twice */
};
/* The connection of a session; kept from one call to the next. */
struct mcp_client *mcp_client_create(int wake, uint64_t server_serial);
void mcp_client_destroy(struct mcp_client *mcp);
uint64_t mcp_client_serial(const struct mcp_client *mcp);
/* 0: *out is the JSON-RPC response (owned by the caller). 1: cancelled. -1: *why is a word, *text the reason. */
int mcp_client_call(struct mcp_client *mcp, const struct mcp_call *call, struct arena *arena, json_t **out, const char **why,
	const char **text);

/* ---- the steps ---- */

#define STEP(name) enum outcome step_##name(struct turn *turn, const struct step *step)
STEP(text);
STEP(reasoning);
STEP(plan);
STEP(tool);
STEP(run);
STEP(spawn);
STEP(write_file);
STEP(delete_file);
STEP(ask);
STEP(question);
STEP(mcp);
STEP(sleep);
STEP(until_cancelled);
STEP(ignore_cancel);
STEP(until_steered);
STEP(usage);
STEP(result);
STEP(result_text);
STEP(fail);
STEP(stop);
STEP(exit);
STEP(signal);
STEP(hang);
STEP(raw);
STEP(flood);
STEP(raw_flood);
STEP(env);
STEP(cwd);
STEP(remember);
STEP(recall);

#endif
