/* providers/codex/private.h - a session with `codex app-server`, for the files of this folder.
 *
 * JSON-RPC, one object a line; the program writes no member "jsonrpc", and does not mind ours. What a session knows between two inputs is in struct codex and nowhere else, and all of it is
 * in the saved state (state.c), so each list has a limit (base/limits.def). */
#ifndef DAIS_PROVIDERS_CODEX_PRIVATE_H
#define DAIS_PROVIDERS_CODEX_PRIVATE_H

#include "base/limits.h"
#include "providers/failure_code.h"
#include "providers/provider.h"
#include "providers/rpc.h"
#include "providers/state.h"

extern const struct driver driver_codex;

enum codex_phase {
	CODEX_NEW,     /* nothing was sent */
	CODEX_OPENING, /* handshake */
	CODEX_OPEN,
	CODEX_CLOSING, /* the close was ordered; a turn may still be ending */
	CODEX_DEAD,    /* nothing comes any more */
};

enum codex_turn_phase {
	TURN_NONE,
	TURN_SENT,   /* turn/start is written; the program has not said that it runs */
	TURN_RUNNING,
};

/* Our requests; the row of each is in call.c. */
enum codex_method {
	CALL_INITIALIZE, CALL_ACCOUNT, CALL_THREAD_START, CALL_THREAD_RESUME, CALL_MODELS, CALL_TURN, CALL_STEER,
	CALL_INTERRUPT, CALL_CLEAN,
	CODEX_METHODS,
};

#define CODEX_HASH_START 2166136261u /* FNV-1a */

/* An item that has begun and not ended. */
struct codex_item {
	struct codex_item *next;
	int64_t kind; /* enum agent_item_kind */
	struct str key;
	struct str title;   /* cut: what an approval and the list of background work say about it */
	int64_t sent;	    /* bytes of its text that were told as deltas … */
	int64_t sent_hash; /* … and their hash: only what continues them may be added */
	bool is_background; /* its turn is over, it goes on */
};

enum codex_ask { ASK_COMMAND, ASK_FILE_CHANGE, ASK_PERMISSIONS, ASK_QUESTIONS, ASK_TOOL, ASK_FORM };

/* A request of the program without an answer. */
struct codex_ask_entry {
	struct codex_ask_entry *next;
	struct str id; /* JSON text of the program's id: also the key towards the engine */
	int64_t ask;   /* enum codex_ask */
	struct str detail; /* JSON text that the answer needs: asked permissions, types of a form; or absent */
};

/* Tokens of the whole conversation, as the program counts them; -1: never told. */
struct codex_tokens {
	int64_t input, cached, output, reasoning;
};

/* What the next turn is told; sticky in the program, so sent with each. */
struct codex_selection {
	int64_t runtime;     /* enum runtime_mode */
	int64_t interaction; /* enum interaction_mode */
	struct str model;  /* absent: the program's */
	struct str effort; /* the same */
	struct str tier;   /* the same */
};

struct codex {
	struct agent agent; /* first */
	const struct provider_instance *instance;
	/* The configuration of the session, in memory of its own. */
	struct arena *arena; /* owner */
	struct str cwd, mcp_url, instructions, resume;
	bool is_confined;

	/* From here on: the state, in the words of providers/state.h. */
	int64_t phase; /* enum codex_phase */
	struct codex_selection selected;
	struct str program_version;
	struct str thread;	    /* the program's id of the conversation */
	struct str effective_model; /* as it was told at the start: the mode of a turn must name one */
	bool is_resumed;
	int64_t turn_phase; /* enum codex_turn_phase */
	struct str turn; /* the program's id */
	int64_t turn_call; /* id of the request that began it: a late answer to an older one binds nothing */
	bool is_interrupt_wanted; /* as soon as the turn has an id */
	bool is_interrupt_sent;
	bool has_passed_over; /* something of the turn was not read */
	int64_t terminal_due_at;  /* an interrupted turn must have ended; 0: none */
	int64_t close_due_at;	  /* the next step of closing; 0: none */
	bool has_closed_stdin;
	int64_t notices;	  /* counted for their keys */
	struct codex_tokens total, turn_base;
	bool has_turn_usage;
	int64_t context_used, context_size;
	struct rpc rpc; /* our requests; the note of each is the key of its order */
	struct codex_item *items;
	struct codex_ask_entry *asks;
};

static inline struct codex *codex_of(struct agent *agent)
{
	return (struct codex *)agent;
}

/* agent.c: the life of the session. */
/* The session is over: what is open ends with this failure. Exactly one of OPEN_FAILED, TURN_ENDED (with a turn), and
 * BROKEN when the program is still there. */
void codex_break(struct codex *codex, struct agent_failure failure, struct agent_out *out);
void codex_opened(struct codex *codex, const json_t *models, struct agent_out *out);
/* Nothing came of the order with this key. */
void codex_refuse(struct str key, struct agent_failure failure, struct agent_out *out);
void codex_close_stdin(struct codex *codex, int64_t now, struct agent_out *out);

/* call.c: our requests. */
void codex_call_send(struct codex *codex, enum codex_method method, struct str key, const struct agent_order *order,
	int64_t now, struct agent_out *out);
/* A call of ours is answered: RPC_RESULT or RPC_ERROR. */
void codex_call_answered(struct codex *codex, const struct rpc_message *answer, int64_t now, struct agent_out *out);

/* params.c: what our requests say: the members of their params. */
void codex_params_write(const struct codex *codex, enum codex_method method, struct str key,
	const struct agent_order *order, struct json_writer *w);
/* Whether the line of this request has the place of the secret in it. */
bool codex_params_have_secret(const struct codex *codex, enum codex_method method);

/* turn.c: a turn and what is heard in it. */
void codex_notified(struct codex *codex, struct str method, const json_t *params, int64_t now, struct agent_out *out);
void codex_turn_started(struct codex *codex, struct str turn, int64_t now, struct agent_out *out);
/* Close what is open and tell the end; `failure` with AGENT_FAILED only. */
void codex_turn_ended(struct codex *codex, enum agent_status status, const struct agent_failure *failure,
	struct str text, bool is_program_alive, struct agent_out *out);
void codex_interrupt(struct codex *codex, int64_t now, struct agent_out *out);

/* item.c: items. */
void codex_item_started(struct codex *codex, const json_t *item, struct agent_out *out);
void codex_item_completed(struct codex *codex, const json_t *item, struct agent_out *out);
void codex_item_delta(struct codex *codex, enum agent_item_kind kind, struct str key, struct str delta,
	struct agent_out *out);
void codex_todo(struct codex *codex, const json_t *params, struct agent_out *out);
void codex_notice(struct codex *codex, const char *severity, struct str message, struct str retry,
	struct agent_out *out);
/* The turn ends like this: what is open ends too, but for commands that go on in the background. */
void codex_items_end(struct codex *codex, enum agent_status turn_status, bool is_program_alive, struct agent_out *out);
/* NULL when too many are open. */
struct codex_item *codex_item_open(struct codex *codex, enum agent_item_kind kind, struct str key, struct str title);
struct codex_item *codex_item_find(const struct codex *codex, struct str key);
void codex_item_free(struct codex_item *item);

/* shape.c: the program's kinds of items. */
struct codex_shape {
	const char *type;
	enum agent_item_kind kind;
	struct str (*title)(const json_t *item, struct arena *arena);
	void (*body)(const json_t *item, struct json_writer *w, struct arena *arena); /* members only */
};
extern const struct codex_shape codex_file_shape; /* of one change */
const struct codex_shape *codex_shape_of(struct str type); /* never NULL */
struct str codex_title(struct str text, struct arena *arena);
struct str codex_script(struct str command);

/* ask.c: requests of the program. */
void codex_asked(struct codex *codex, const struct rpc_message *asked, struct agent_out *out);
/* -1: there is no such request. */
int codex_answer(struct codex *codex, const struct agent_order *order, struct agent_out *out);
/* false when too many wait. */
bool codex_ask_keep(struct codex *codex, enum codex_ask ask, struct str id, struct str detail);
/* The program needs no answer any more. */
void codex_ask_resolved(struct codex *codex, const json_t *id, struct agent_out *out);
void codex_asks_end(struct codex *codex, struct agent_out *out);
void codex_ask_free(struct codex_ask_entry *entry);

/* error.c: the words of the program's errors. */
struct agent_failure codex_turn_failure(const json_t *error);
struct agent_failure codex_call_failure(const json_t *error);

/* launch.c */
int codex_launch(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
	struct agent_launch *out, struct failure *f);

/* state.c */
void codex_save(const struct agent *agent, struct json_writer *w);
int codex_load(struct agent *agent, const json_t *state, struct failure *f);
void codex_forget(struct codex *codex); /* frees the state */

#endif
