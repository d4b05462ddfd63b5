/* providers/rpc.h - JSON-RPC 2.0, one message a line, with a program that asks us things too.
 *
 * The two sides count their ids apart: theirs begin at 0 and may be texts or null, and are echoed as they came; ours are
 * integers from 1. What the program writes is judged here as far as JSON-RPC goes: garbage is counted and passed over
 * until it is too much, answers nobody waits for are dropped. */
#ifndef DAIS_PROVIDERS_RPC_H
#define DAIS_PROVIDERS_RPC_H

#include "base/limits.h"
#include "providers/provider.h"

enum rpc_code {
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_CANCELLED = -32800,
};

/* A call of ours that waits for its answer. */
struct rpc_call {
	int64_t id;
	int64_t method; /* the driver's own number for it */
	int64_t due;	/* 0: never */
	struct str note; /* owned; the driver's */
};

/* owner: the agent */
struct rpc {
	int64_t last_id;
	int64_t garbage; /* lines in a row that were no JSON object */
	int64_t call_count;
	struct rpc_call calls[LIMIT_AGENT_CALLS]; /* in the order made */
};

enum rpc_kind {
	RPC_NOTHING,   /* nothing to do: garbage, or an answer that nobody waits for */
	RPC_OVERSIZE,  /* more values, or longer ones, than we read; what it was is not known */
	RPC_VIOLATION, /* LIMIT_AGENT_GARBAGE_LINES in a row: this is no JSON-RPC */
	RPC_REQUEST,
	RPC_NOTIFICATION,
	RPC_RESULT,
	RPC_ERROR,
};

/* Lives in the arena of the input. */
struct rpc_message {
	enum rpc_kind kind;
	struct str id;	       /* of their request, as JSON text */
	struct str method;     /* without the underscore of extensions */
	const json_t *params;  /* object, or NULL */
	const json_t *result;  /* RPC_RESULT: any value */
	const json_t *error;   /* RPC_ERROR: object */
	struct rpc_call call;  /* ours that is answered: it waits no more */
};

void rpc_read(struct rpc *rpc, struct arena *arena, struct str line, struct rpc_message *out);

/* A line that is being written. */
struct rpc_line {
	struct agent_out *out;
	struct buf text;
	struct json_writer w;
	bool has_params;
	bool has_secret;
};

/* Begin one; the members of the params follow, or the result as one value, then rpc_end. */
struct json_writer *rpc_call(struct rpc *rpc, struct rpc_line *line, struct agent_out *out, const char *method,
	int64_t number, int64_t due);
struct json_writer *rpc_notify(struct rpc_line *line, struct agent_out *out, const char *method);
struct json_writer *rpc_answer(struct rpc_line *line, struct agent_out *out, struct str id);
void rpc_end(struct rpc_line *line);
/* A whole answer. */
void rpc_refuse(struct agent_out *out, struct str id, enum rpc_code code, const char *message);

/* Keep a text with the call made last. */
void rpc_note(struct rpc *rpc, struct str note);
bool rpc_is_full(const struct rpc *rpc); /* no call can be made now */
int64_t rpc_waiting(const struct rpc *rpc, int64_t number); /* calls with this number of the driver */
int64_t rpc_due(const struct rpc *rpc);			    /* of the next call to run out of time; 0: none */
/* Take a call that is out of time, or, with now == INT64_MAX, any; its note is in the arena then. */
bool rpc_expire(struct rpc *rpc, int64_t now, struct arena *arena, struct rpc_call *out);

void rpc_save(const struct rpc *rpc, struct json_writer *w);
int rpc_load(struct rpc *rpc, const json_t *state, struct failure *f);
void rpc_finish(struct rpc *rpc);

#endif
