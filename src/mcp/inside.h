/* mcp/inside.h - what the files of this room share; not for others.
 *
 * Locks, outermost first: request->lock, then a channel's own (post, line, session). server->lock
 * and ticker->lock are leaves that nothing is called under. Invariants: (1) A request is answered
 * at most once: `finished` changes under its lock, and with it the last message. (2) Whatever a
 * handler may call is called with no lock held, since it may finish the request inline. (3) A
 * request lives while somebody holds a reference: the list of the server holds one until it is
 *     finished, its channel another until the answer went through. */
#ifndef DAIS_MCP_INSIDE_H
#define DAIS_MCP_INSIDE_H

#include "mcp/cursor.h"
#include "mcp/interest.h"
#include "mcp/mcp.h"
#include "mcp/message.h"

#include <pthread.h>
#include <stdatomic.h>

#define NEVER INT64_MAX

struct mcp_session;
struct listen;
struct task_table;

/* ---- where the messages of a request leave: one of line.c, post.c ---- */
struct channel;
struct channel_ops {
	/* The three are called with the request's lock held. */
	void (*notify)(struct channel *c, struct mcp_request *req, struct str message);
	/* `message` empty: the request was cancelled, nothing is sent. */
	void (*answer)(struct channel *c, struct mcp_request *req, int status, struct str message);
	void (*begin_stream)(struct channel *c, struct mcp_request *req);
	/* End the stream, keep the request: legacy polling. NULL: not possible. */
	void (*close_stream)(struct channel *c, struct mcp_request *req);
	void (*release)(struct channel *c);
};
struct channel {
	const struct channel_ops *ops;
};

/* ---- methods ---- */
enum era { ERA_LEGACY = 1, ERA_MODERN = 2, ERA_BOTH = 3 };

struct method {
	const char *name;
	unsigned eras;
	const char *target; /* member of params that Mcp-Name repeats, or NULL */
	size_t target_max;
	bool may_ask;      /* input_required is allowed */
	bool is_cacheable; /* ttlMs and cacheScope belong to its result */
	void (*run)(struct mcp_request *req);
};
const struct method *method_find(struct str name);
/* Fills req->method and req->target; false: unknown in this era, or not offered. */
bool method_resolve(struct mcp_request *req, unsigned era);
void list_run(struct mcp_request *req);
void discover_run(struct mcp_request *req);
void set_level_run(struct mcp_request *req);
void subscribe_run(struct mcp_request *req);

/* ---- requests ---- */
struct progress {
	double last;
	bool begun;
	int tokens; /* notices that may leave now */
	int64_t refill_at;
	struct buf waiting; /* newest message that had to wait; empty: none */
};

struct mcp_request {
	atomic_int refs;
	struct mcp_server *server;
	struct arena *arena;
	struct message message;
	enum mcp_version version;
	struct mcp_caller caller;
	struct mcp_session *session; /* legacy; referenced */
	struct channel *channel;     /* NULL once it has answered */
	const struct method *method;
	unsigned client_can;
	struct str client_name;
	struct str token;  /* progressToken as JSON text, or absent */
	int log_threshold; /* index of the lowest level wanted; -1: none */
	char req_id[9];
	struct str target;
	const json_t *arguments;
	const json_t *answers;
	struct str state;
	bool is_retry;
	bool json_only;       /* the client takes no event stream */
	bool counts;          /* against the limits on requests in flight */
	json_t *owned;        /* a reference dropped with the request */
	json_t *no_arguments; /* the empty object, when there were none */
	struct listen *listen;

	_Atomic int64_t wake_at; /* monotonic */
	pthread_mutex_t lock;
	bool finished;
	bool cancelled;
	bool streaming;
	int64_t stream_at;
	void (*cancel)(struct mcp_request *req, void *context);
	void *cancel_context;
	struct buf meta;
	struct progress progress;

	/* server->lock */
	struct mcp_request *next;
	struct mcp_request *prev;
	bool linked;
};

/* With one reference. Takes over `whole`, which nobody else may hold: the request may end on another thread,
 * and jansson's counts do not order the last reader before the free. Copies the caller. */
struct mcp_request *request_create(struct mcp_server *server, const struct mcp_caller *caller,
	const struct message *message, struct arena *arena, struct channel *channel);
struct mcp_request *request_ref(struct mcp_request *req);
void request_unref(struct mcp_request *req);
/* Into the list of the server, within the limits. */
int request_admit(struct mcp_request *req, struct refusal *r);
void request_refuse(struct mcp_request *req, const struct refusal *r);
/* The client gives it up: nothing more is sent. */
void request_cancel(struct mcp_request *req);
/* The ticker found wake_at in the past. */
void request_wake(struct mcp_request *req, int64_t now);
void request_wake_by(struct mcp_request *req, int64_t at);
void request_begin_stream(struct mcp_request *req);
/* Send one message that is not the answer. False: over already. */
bool request_notify(struct mcp_request *req, struct str message);
/* Result members end here, whatever the kind. */
enum result_kind { RESULT_COMPLETE, RESULT_INPUT_REQUIRED, RESULT_TASK, RESULT_BARE };
struct result {
	enum result_kind kind;
	struct str members;
	bool has_ttl; /* cacheable result: ttlMs and scope are written */
	int64_t ttl_ms;
	bool is_private;
};
void request_finish(struct mcp_request *req, const struct result *result);
void request_fail(struct mcp_request *req, int status, enum mcp_code code, struct str message,
	struct str data);

static inline bool is_modern(const struct mcp_request *req)
{
	return req->version >= MCP_2026_07_28;
}

/* Rewrites for old revisions: `members` in, members out. */
struct str shape_tool_result(struct mcp_request *req, struct str members);
struct str shape_tool_list(struct mcp_request *req, struct str array);

/* ---- the server ---- */
struct ticker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int64_t due;
	bool stopping;
};

struct mcp_server {
	const struct mcp_handlers *on;
	void *app;
	struct mcp_settings settings;
	struct arena *arena;
	struct seal_keys keys;
	struct ticker ticker;
	struct session_table *sessions;
	struct task_table *tasks;
	atomic_bool stopping;

	pthread_mutex_t lock;
	struct mcp_request *requests; /* in flight */
	size_t in_flight;             /* of those that count */
	struct mcp_request *listens;  /* open subscriptions */
	size_t listen_count;
	atomic_size_t uri_count; /* resource subscriptions of all sessions and listens */
	atomic_uint_fast64_t ask_serial;
};

void ticker_start(struct mcp_server *server);
void ticker_stop(struct mcp_server *server);
/* Look for due work at `at` (monotonic ms) or before. */
void ticker_by(struct mcp_server *server, int64_t at);

bool offers_list(const struct mcp_server *server, enum mcp_list what);
bool offers_subscriptions(const struct mcp_server *server);
void capabilities_write(const struct mcp_server *server, struct json_writer *w, bool modern);
struct str server_instructions(struct mcp_server *server, struct str profile);
void server_link(struct mcp_request **head, struct mcp_request *req);
void server_unlink(struct mcp_request **head, struct mcp_request *req);
/* References to all requests of a list, in the arena. `which` is &server->requests or
 * &server->listens. */
struct mcp_request **server_snapshot(
	struct mcp_server *server, struct mcp_request **which, struct arena *arena, size_t *n);
void caller_copy(struct mcp_server *server, struct arena *arena, struct mcp_caller *to,
	const struct mcp_caller *from);
void caller_drop(struct mcp_server *server, const struct mcp_caller *caller);

/* ---- eras ---- */

/* Headers of one HTTP request that must repeat the body; NULL on lines. */
struct header_view {
	/* All values of a header; `count` tells how often it came, the answer is absent when it did
	 * not. */
	struct str (*get)(const void *source, const char *name, size_t *count, bool *differ);
	const void *source;
};
/* Run a request that claims a modern revision. */
void modern_run(struct mcp_request *req, const struct header_view *headers);
/* Run one of a legacy session (never `initialize`). */
void legacy_run(struct mcp_request *req);
/* `data` of a refused version, of which no more than its beginning is said back. */
struct str supported_data(struct arena *arena, struct str requested);
/* Answer for `initialize`: fills `row` texts of the new session from params. */
struct hello {
	enum mcp_version version;
	const json_t *capabilities;
	const json_t *client_info;
};
int hello_read(const json_t *params, struct hello *out, struct refusal *r);
void hello_answer(struct mcp_request *req, const struct hello *hello);
void legacy_notification(
	struct mcp_server *server, struct mcp_session *session, const struct message *message);
int log_level_find(struct str name);

/* May this array be a batch in a session of this version (-1: none)? */
int batch_check(const json_t *array, int version, struct refusal *r);
/* How many of its elements will be answered: requests, and what is no message. */
size_t batch_answers(const json_t *array);

/* Check requestState and inputResponses of a modern request. */
int retry_read(struct mcp_request *req, struct refusal *r);
int header_check_version(
	struct mcp_request *req, const struct header_view *headers, struct refusal *r);
int header_check(struct mcp_request *req, const struct header_view *headers, struct refusal *r);
int header_check_params(struct mcp_request *req, const struct mcp_tool *tool,
	const struct header_view *headers, struct refusal *r);
/* Decoded value of an Mcp-… header; false: malformed. */
bool header_decode(struct arena *arena, struct str value, struct str *out);
struct refusal missing_capability(struct arena *arena, unsigned needs);

/* ---- subscriptions/listen ---- */
void listen_run(struct mcp_request *req);
void listen_wake(struct mcp_request *req, int64_t now);
void listen_note_resource(struct mcp_request *req, struct str uri, int64_t now);
void listen_note_list(struct mcp_request *req, enum mcp_list what, int64_t now);
/* `detail`: the task as an object's members. */
void listen_note_task(
	struct mcp_request *req, struct str principal, struct str id, struct str detail);
/* Graceful end: the result goes out. */
void listen_end(struct mcp_request *req);
void listen_destroy(struct listen *listen);

/* ---- tasks ---- */
struct task_table *mcp_task_table_create(void);
void mcp_task_table_destroy(struct task_table *tasks);
void mcp_task_run_get(struct mcp_request *req);
void mcp_task_run_update(struct mcp_request *req);
void mcp_task_run_cancel(struct mcp_request *req);
/* Forget what expired. */
void mcp_task_table_tick(struct mcp_server *server);
bool mcp_task_visible(struct mcp_server *server, struct str principal, struct str id);

#endif
