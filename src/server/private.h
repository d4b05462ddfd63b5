/* server/private.h - inside the server: what its parts share. */
#ifndef DAIS_SERVER_PRIVATE_H
#define DAIS_SERVER_PRIVATE_H

#include "http/guard.h"
#include "http/http.h"
#include "mcp/mcp.h"
#include "server/server.h"
#include "tools/tool.h"
#include "tools/tools.h"

#include <pthread.h>
#include <stdatomic.h>

struct local;	/* local.c: the Unix socket */
struct stream_hub; /* stream.c: live events */
struct sweeper; /* sweep.c: hourly work */
struct call_log; /* call_log.c */

/* Latency buckets of the metrics, in microseconds: 250 µs … 4 s. */
#define LATENCY_BUCKETS 8
struct tool_counts {
	_Atomic uint64_t ok, failed, replayed;
	_Atomic uint64_t bucket[LATENCY_BUCKETS + 1]; /* the last one: slower */
	_Atomic uint64_t sum_us;
};

struct server {
	const struct settings *settings;
	bool may_move; /* as in server_options */
	char *state_dir;
	char *config_file; /* the global rules, or NULL */
	struct store *store;
	struct rules *rules;
	struct tools *tools;
	struct mcp_server *mcp;
	struct http_server *http;
	struct http_guard *guard;
	struct local *local;
	struct stream_hub *hub;
	struct sweeper *sweeper;
	struct call_log *call_log;
	struct threads *threads;
	struct arena *arena; /* of what lives as long as the server */
	bool is_open_mode; /* auth mode none */
	size_t listen_count;
	atomic_bool is_ready;
	int64_t started_at;
	_Atomic uint64_t auth_failures;
	struct tool_counts counts[32]; /* by index in tool_table */
};

#define SERVER_INFO "{\"name\":\"dais\",\"title\":\"dais\",\"version\":\"" DAIS_VERSION "\"}"

/* ---- adapter.c: tools behind MCP ---- */
extern const struct mcp_handlers server_mcp_handlers;
/* mcp_caller.app of this server: a caller kept alive with its own memory. */
struct mcp_caller mcp_caller_of(struct arena *arena, const struct caller *caller);

/* A copy whose texts live in `arena`, with a request id of its own; `out` may not move afterwards. */
void server_caller_copy(struct arena *arena, const struct caller *from, struct caller *out);
/* The request's caller with the request's id; `out` may not move afterwards. */
void server_caller(struct mcp_request *req, struct caller *out);
/* Where somebody else's agent says that it works; what is no folder of this machine is not taken. */
void server_take_workspace(struct caller *caller, struct str workspace, struct arena *arena);
/* After a call over any surface: metrics, and streams whose credential it may have ended. */
void server_count(struct server *server, const struct tool_call *call, int64_t us);
struct str server_operation(struct arena *arena, const json_t *arguments);

/* ---- auth.c ---- */
/* The caller behind an HTTP exchange: bearer token, sign-in cookie, or mode none. UNAUTHENTICATED. */
int authenticate(struct server *server, struct http_exchange *x, struct caller *out, struct failure *f);
/* A token was made or revoked: what was read before counts no more. */
void auth_forget(void);
void auth_finish(void);
/* Too many failures from this peer lately. */
bool auth_is_throttled(struct server *server, struct http_exchange *x);

/* ---- app.c: HTTP ---- */
int app_head(struct http_exchange *x, void *server, size_t *max_body);
void app_request(struct http_exchange *x, void *server);
bool app_refuse(struct http_exchange *x, void *server, int status, const char *reason);
void reply_json(struct server *server, struct http_exchange *x, int status, struct str body, const char *req_id);
void reply_failure(struct server *server, struct http_exchange *x, struct failure *f, const char *req_id);

/* ---- meta.c: health, ready, info, metrics; page.c: the status page ---- */
void meta_health(struct server *server, struct http_exchange *x);
void meta_ready(struct server *server, struct http_exchange *x);
void meta_info(struct server *server, struct http_exchange *x, const struct caller *caller);
void meta_metrics(struct server *server, struct http_exchange *x);
void page_status(struct server *server, struct http_exchange *x, bool is_signed_in);
/* In place of the failure in JSON, for a person in a browser. */
void page_link_ended(struct http_exchange *x, int status);

/* ---- stream.c ---- */
struct stream_hub *stream_hub_create(struct server *server, struct failure *f);
void stream_hub_stop(struct stream_hub *hub);
void stream_hub_destroy(struct stream_hub *hub);
/* GET /api/v1/events; takes over the exchange. */
void stream_open(struct server *server, struct http_exchange *x, const struct caller *caller);
size_t stream_count(struct stream_hub *hub);
/* A credential may have ended: soon, every open stream whose caller is no longer known ends, MCP's too. */
void stream_hub_recheck(struct stream_hub *hub);

/* ---- resources.c, prompts.c ---- */
void resources_list(struct mcp_request *req, bool templates, struct str after);
/* Is this one of the templates, or a listed URI, to the letter? */
bool resource_is_template(struct str pattern);
void resource_read(struct mcp_request *req, struct str uri);
bool resource_visible(void *app, const struct mcp_caller *caller, struct str uri);
void prompts_list(struct mcp_request *req);
void prompt_get(struct mcp_request *req, struct str name, const json_t *arguments);
void complete(struct mcp_request *req, const struct mcp_completion *what);

/* ---- notice.c: resource notices to MCP clients ---- */
/* Tell subscribers which resources the events after `since`, up to `newest`, changed. Returns the number up to
 * which that is done: less than `newest` when the store cannot be read now. On the hub's thread. */
int64_t notice_resources(struct server *server, int64_t since, int64_t newest);

/* ---- session_row.c ---- */
void session_save(void *app, const struct mcp_session_row *row);
bool session_load(void *app, const unsigned char key[32], struct arena *arena, struct mcp_session_row *out);
void session_touch(void *app, const unsigned char key[32], int64_t last_seen_at);
void session_delete(void *app, const unsigned char key[32]);

/* ---- local.c ---- */
int local_open(struct server *server, const char *path, struct local **out, struct failure *f);
int local_start(struct local *local, struct failure *f);
void local_stop(struct local *local);

/* ---- sweep.c ---- */
int sweeper_start(struct server *server, struct sweeper **out, struct failure *f);
void sweeper_stop(struct sweeper *sweeper);

/* ---- call_log.c ---- */
struct call_log *call_log_create(struct server *server);
void call_log_add(struct call_log *log, const struct tool_call *call, struct str operation, int64_t latency_us,
	size_t bytes_in);
void call_log_stop(struct call_log *log);

#endif
