/* mcp/mcp.h - the door of the MCP room: the server side of the Model Context Protocol, knowing
 * nothing of any tool.
 *
 * A struct mcp_server speaks every released revision at once: the modern one (2026-07-28, each
 * request describes itself) and the legacy ones (2024-11-05 to 2025-11-25, `initialize` and a
 * session). It is given a table of handlers and stores nothing itself: session and task rows go
 * through callbacks. Two transports bring messages: lines (stdio, Unix sockets) and HTTP.
 *
 * Handlers run on the thread that brought the message and must not block. They receive a struct
 * mcp_request and finish it exactly once, at once or later, from any thread; also when it was
 * cancelled meanwhile (nothing is sent then, but the memory goes). Texts given to the finishing
 * functions are JSON, written by json_writer; they are copied or sent before the call returns.
 * Handlers are called with no lock of the room held and may call anything in this header; only the
 * row callbacks (session_…, task_save, task_load, task_delete) may not call back. */
#ifndef DAIS_MCP_MCP_H
#define DAIS_MCP_MCP_H

#include "base/failure.h"
#include "base/json.h"
#include "base/str.h"

#include <stdint.h>

struct mcp_server;
struct mcp_request;

enum mcp_version {
	MCP_2024_11_05,
	MCP_2025_03_26,
	MCP_2025_06_18,
	MCP_2025_11_25,
	MCP_2026_07_28, /* the modern era begins here */
	MCP_VERSIONS,
};

/* JSON-RPC and MCP error codes. Never any other in -32768..-32000. */
enum mcp_code {
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_METHOD_NOT_FOUND = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_INTERNAL = -32603,
	MCP_HEADER_MISMATCH = -32020,
	MCP_MISSING_CAPABILITY = -32021,
	MCP_UNSUPPORTED_VERSION = -32022,
	MCP_SESSION_NOT_FOUND = -32001,  /* HTTP 404 of a legacy session, nowhere else */
	MCP_RESOURCE_NOT_FOUND = -32002, /* legacy only */
};

/* Who sends. Copied when a request begins. */
struct mcp_caller {
	struct str principal; /* sessions, tasks, cursors and request states are bound to it */
	struct str profile;   /* which of the application's tool sets this endpoint shows */
	int64_t expires_at;   /* UTC ms, 0: never; open streams of the caller end then */
	void *app;            /* the application's; see caller_keep */
};

/* What a client declared; for the request at hand (modern) or its session (legacy). */
enum mcp_client_feature {
	MCP_CAN_ELICIT_FORM = 1,
	MCP_CAN_ELICIT_URL = 2,
	MCP_CAN_SAMPLE = 4,
	MCP_CAN_LIST_ROOTS = 8,
	MCP_CAN_TASKS = 16, /* extension io.modelcontextprotocol/tasks */
};

enum mcp_list { MCP_TOOLS, MCP_RESOURCES, MCP_RESOURCE_TEMPLATES, MCP_PROMPTS };

/* A property of the input schema that clients repeat in the header Mcp-Param-`header`. */
struct mcp_header_param {
	struct str property;
	struct str header;
};

/* What the protocol needs to know of a tool before it is called. */
struct mcp_tool {
	bool may_wait;    /* answers may take long: an event stream begins at once */
	bool may_be_slow; /* can exceed one second: the same, if progress was asked for */
	unsigned needs;   /* enum mcp_client_feature bits without which the call is refused */
	const struct mcp_header_param *header_params;
	size_t header_param_count;
	struct str near_names; /* for an unknown tool: JSON array of similar names, or absent */
};

struct mcp_completion {
	bool of_prompt; /* else of a resource template */
	struct str ref; /* name of the prompt, or the template */
	struct str argument;
	struct str value;      /* typed so far */
	const json_t *context; /* object of arguments already chosen, or NULL */
};

/* One legacy HTTP session. The id itself is never stored. */
struct mcp_session_row {
	unsigned char key[32]; /* SHA-256 of the session id */
	struct str version;
	struct str principal;
	struct str client_capabilities; /* JSON object */
	struct str client_info;         /* JSON object */
	struct str subscriptions;       /* JSON array of URIs */
	struct str log_level;           /* absent: none asked for */
	int64_t created_at;
	int64_t last_seen_at;
};

enum mcp_task_status {
	MCP_TASK_WORKING,
	MCP_TASK_INPUT_REQUIRED,
	MCP_TASK_COMPLETED,
	MCP_TASK_FAILED,
	MCP_TASK_CANCELLED,
};

#define MCP_TASK_ID_SIZE 33 /* 128 random bits as text, with NUL */

struct mcp_task_row {
	struct str id;
	struct str principal;
	enum mcp_task_status status;
	struct str message;        /* or absent */
	struct str result;         /* JSON object: CallToolResult, when completed */
	struct str error;          /* JSON object: JSON-RPC error, when failed */
	struct str input_requests; /* JSON object: questions still open */
	struct str used_keys;      /* JSON object, a member by every question key so far; never used again */
	int64_t created_at;
	int64_t updated_at;
	int64_t ttl_ms; /* from created_at */
};

/* The application. What is NULL is not offered: neither declared nor answered. `app` is the pointer
 * of struct mcp_settings. */
struct mcp_handlers {
	/* Finish with mcp_finish_list. `after` is the position that the previous page gave, or
	 * absent. */
	void (*list)(struct mcp_request *req, enum mcp_list what, struct str after);
	/* False: unknown to this caller. */
	bool (*tool_find)(struct mcp_request *req, struct str name, struct mcp_tool *out);
	/* Arguments are an object (empty when they were missing); valid until the request is
	 * finished. */
	void (*tool_call)(struct mcp_request *req, struct str name, const json_t *arguments);
	/* Finish with mcp_finish_contents or mcp_finish_resource_missing. */
	void (*resource_read)(struct mcp_request *req, struct str uri);
	/* May this caller subscribe to it? Forbidden reads as missing. */
	bool (*resource_visible)(void *app, const struct mcp_caller *caller, struct str uri);
	/* Finish with members `messages` and `description`, or MCP_INVALID_PARAMS. */
	void (*prompt_get)(struct mcp_request *req, struct str name, const json_t *arguments);
	/* Finish with mcp_finish_completion, or MCP_INVALID_PARAMS for an unknown ref. */
	void (*complete)(struct mcp_request *req, const struct mcp_completion *what);
	/* Text for this profile, or absent. Static. */
	struct str (*instructions)(void *app, struct str profile);
	/* The answer to one question of a task; `response` is the client's object. */
	void (*task_input)(void *app, struct str task_id, struct str key, const json_t *response);
	/* The client wants the work itself to end. The status is already cancelled. */
	void (*task_cancel)(void *app, struct str task_id);

	/* Called where `caller` is copied, and when the copy goes; both NULL when `caller.app`
	 * lives as long as the server. */
	void *(*caller_keep)(void *caller_app);
	void (*caller_release)(void *caller_app);

	/* Rows. Saving may be queued: a session lost in a crash costs its client one `initialize`;
	 * a task row is saved on the thread that calls mcp_finish_task, which may wait for its
	 * commit. Loading returns false for "no such row"; texts go to `arena`. NULL: memory only.
	 */
	void (*session_save)(void *app, const struct mcp_session_row *row);
	bool (*session_load)(void *app, const unsigned char key[32], struct arena *arena,
		struct mcp_session_row *out);
	void (*session_touch)(void *app, const unsigned char key[32], int64_t last_seen_at);
	void (*session_delete)(void *app, const unsigned char key[32]);
	void (*task_save)(void *app, const struct mcp_task_row *row);
	bool (*task_load)(void *app, struct str id, struct arena *arena, struct mcp_task_row *out);
	void (*task_delete)(void *app, struct str id);

	/* After each answer, for a call log; `error_code` 0: a result. May be NULL. */
	void (*answered)(struct mcp_request *req, int error_code, size_t bytes);
};

struct mcp_settings {
	const struct mcp_handlers *handlers; /* outlives the server */
	void *app;
	struct str server_info; /* JSON object {"name","version",…}; copied */
	/* Secrets behind cursors and request states, newest first; 32 bytes each. With none, random
	 * ones are made, and neither survives a restart. */
	unsigned char keys[2][32];
	size_t key_count;
	bool offers_tasks;
	bool lists_are_public; /* no caller sees other lists than another one: shared caches may
	                          keep them */
	int64_t list_ttl_ms;   /* 0: 300 000 */
	int64_t max_wait_ms;   /* 0: by client, see mcp_wait_slice_ms */
};

struct mcp_server *mcp_server_create(const struct mcp_settings *settings);
/* Refuse new requests, end subscriptions and notification streams, and give up questions to legacy
 * clients (their `answered` gets NULL); calls that run may still finish. */
void mcp_server_stop(struct mcp_server *server);
/* Every request must be finished and every transport closed. Accepts NULL. */
void mcp_server_destroy(struct mcp_server *server);
/* Requests not yet finished, over all transports. */
size_t mcp_server_in_flight(struct mcp_server *server);

/* Is anybody subscribed to a resource? Cheap: ask before finding out what to tell. */
bool mcp_has_resource_subscribers(struct mcp_server *server);
/* Tell clients that asked. Coalesced: one per URI in 250 ms, one per kind in a second. */
void mcp_notify_resource_updated(struct mcp_server *server, struct str uri);
/* MCP_RESOURCE_TEMPLATES counts as MCP_RESOURCES. */
void mcp_notify_list_changed(struct mcp_server *server, enum mcp_list what);
/* A credential was revoked: end the open subscriptions and notification streams of every principal
 * that `may_stay` does not know any more. Calls that run may still finish. */
void mcp_end_streams(struct mcp_server *server, bool (*may_stay)(void *context, struct str principal),
	void *context);

/* ---- a request ---- */

struct mcp_server *mcp_request_server(const struct mcp_request *req);
void *mcp_request_app(const struct mcp_request *req); /* of the settings */
const struct mcp_caller *mcp_request_caller(const struct mcp_request *req);
/* The memory of a request, its arena too, goes when it is finished and nobody keeps it. For those
 * who must find out under a lock of their own whether it was finished. Each keep needs one release.
 */
struct mcp_request *mcp_request_keep(struct mcp_request *req);
void mcp_request_release(struct mcp_request *req);
/* The handler's until the request is finished. */
struct arena *mcp_request_arena(struct mcp_request *req);
enum mcp_version mcp_request_version(const struct mcp_request *req);
bool mcp_request_is_modern(const struct mcp_request *req);
/* 8 characters; also in `_meta.reqId` of the answer and in logs. */
const char *mcp_request_id(const struct mcp_request *req);
/* clientInfo.name, or absent. For waiting times and logs, never for permissions. */
struct str mcp_request_client(const struct mcp_request *req);
struct str mcp_request_traceparent(const struct mcp_request *req);
bool mcp_client_can(const struct mcp_request *req, enum mcp_client_feature feature);
/* How long one call may wait at most, by what this client is known to endure. */
int64_t mcp_wait_slice_ms(const struct mcp_request *req);
/* Tool, prompt or URI of the request; absent for others. */
struct str mcp_request_target(const struct mcp_request *req);
struct str mcp_request_method(const struct mcp_request *req);

bool mcp_is_cancelled(struct mcp_request *req);
/* `cancel` is called once, from any thread, when the client gives the request up; at once if it did
 * already. It may finish the request, so whoever set it must not touch the request afterwards
 * without a lock of its own. It can come while another thread is about to finish; the request stays
 * valid during the call. Work that was started goes on; only the waiting ends. */
void mcp_on_cancel(struct mcp_request *req, void (*cancel)(struct mcp_request *req, void *context),
	void *context);

/* Nothing happens without a progressToken, after the answer, or when `progress` does not rise.
 * `total` below 0: unknown. At most four a second leave; the newest of the others follows. */
void mcp_progress(struct mcp_request *req, double progress, double total, struct str message);
bool mcp_wants_progress(const struct mcp_request *req);
/* A notifications/message, if the client asked for this level (RFC 5424 name). `data`: any JSON. */
void mcp_log(struct mcp_request *req, struct str level, struct str logger, struct str data);

/* ---- finishing ---- */

/* Add a member to `_meta` of the coming result. */
void mcp_add_meta(struct mcp_request *req, const char *key, struct str json);
/* `members` of the result without braces. */
void mcp_finish_result(struct mcp_request *req, struct str members);
/* The usual answer of a tool: `structured` is a JSON object; content[0].text repeats it. */
void mcp_finish_tool(struct mcp_request *req, struct str structured, bool is_error);
/* `content`: JSON array of blocks. `structured`: any JSON, or absent. */
void mcp_finish_tool_content(
	struct mcp_request *req, struct str content, struct str structured, bool is_error);
/* `array` is the JSON array of entries; `next` the position of the following page, or absent. */
void mcp_finish_list(struct mcp_request *req, struct str array, struct str next);
/* `contents` of resources/read; `ttl_ms` 0 for live state. */
void mcp_finish_contents(struct mcp_request *req, struct str contents, int64_t ttl_ms);
void mcp_finish_resource_missing(struct mcp_request *req, struct str uri);
/* At most 100 values are sent. `total` below 0: unknown. */
void mcp_finish_completion(
	struct mcp_request *req, const struct str *values, size_t n, int64_t total);
/* `data`: JSON object, or absent. */
void mcp_finish_error(
	struct mcp_request *req, enum mcp_code code, struct str message, struct str data);
/* MCP_INTERNAL with a fixed text and data.reqId; retry_after_ms 0: none. */
void mcp_finish_internal(struct mcp_request *req, int64_t retry_after_ms);

/* ---- asking the client (modern): the call ends, and the client repeats it with the answers ----
 */

/* Object of answers by key that came with this repetition, or NULL. */
const json_t *mcp_input_responses(const struct mcp_request *req);
/* What was sealed by mcp_finish_input_required; absent in a first call. It comes from this
 * principal, for this method, target and arguments, at most ten minutes ago: anything else was
 * refused before. */
struct str mcp_sealed_state(const struct mcp_request *req);
/* `requests`: JSON object of {"method","params"} by key, or absent. `state`: the application's
 * bytes, signed but readable by the client, or absent. At least one; at most LIMIT_MCP_STATE_BYTES
 * sealed. */
void mcp_finish_input_required(struct mcp_request *req, struct str requests, struct str state);

/* ---- asking the client (legacy): a request on the stream of the call ---- */

/* `answered` gets the result object, or NULL (error, no answer in deadline_ms, stream gone,
 * cancelled). False when the client cannot be asked on this request; `answered` is not called then.
 */
bool mcp_ask(struct mcp_request *req, struct str method, struct str params, int64_t deadline_ms,
	void (*answered)(struct mcp_request *req, void *context, const json_t *result),
	void *context);
/* End the event stream of a legacy call now; the client fetches the rest by GET with Last-Event-ID.
 */
void mcp_close_stream(struct mcp_request *req);

/* ---- tasks ---- */

/* Answer that the work became a task. Only when mcp_client_can(MCP_CAN_TASKS). `ttl_ms` 0: 7 days.
 * The task is working; the functions below may be called as soon as this returns. */
void mcp_finish_task(
	struct mcp_request *req, int64_t ttl_ms, struct str message, char id[MCP_TASK_ID_SIZE]);
/* All do nothing when the task is over, gone or unknown. */
void mcp_task_message(struct mcp_server *server, struct str id, struct str message);
/* Ask; `requests` as in mcp_finish_input_required. Keys used before are dropped. */
void mcp_task_ask(struct mcp_server *server, struct str id, struct str requests);
/* `members` of the CallToolResult without braces; isError results are completed too. */
void mcp_task_complete(struct mcp_server *server, struct str id, struct str members);
void mcp_task_fail(
	struct mcp_server *server, struct str id, enum mcp_code code, struct str message);

/* ---- lines: stdio, and streams between processes ---- */

struct mcp_line;

struct mcp_line_options {
	struct mcp_caller caller;
	/* One complete message with its newline; called from any thread, one at a time, in order.
	 * It must not block for long and must not call mcp_line_feed. */
	void (*write)(void *context, struct str line);
	void *context;
};

struct mcp_line *mcp_line_create(struct mcp_server *server, const struct mcp_line_options *options);
/* Bytes as they arrive, in any portions; from one thread at a time. */
void mcp_line_feed(struct mcp_line *line, struct str bytes);
size_t mcp_line_in_flight(struct mcp_line *line);
/* The peer is gone: cancel what runs, write nothing more, and free when the last request is
 * finished. `write` is not called once this has returned. Accepts NULL. */
void mcp_line_close(struct mcp_line *line);

/* ---- HTTP ---- */

struct http_exchange;
struct http_guard;

/* Second half of on_head, after Host, Origin, preflight and credential: method, media types,
 * Accept. As on_head of http/http.h: 0 with *max_body, or -1 and answered. `guard` adds the CORS
 * fields. */
int mcp_http_head(struct mcp_server *server, const struct http_guard *guard,
	struct http_exchange *x, size_t *max_body);
/* on_request for an exchange that passed mcp_http_head. */
void mcp_http_request(struct mcp_server *server, const struct http_guard *guard,
	struct http_exchange *x, const struct mcp_caller *caller);
/* Answer with a bare status and a JSON-RPC error without id, as the endpoint's other refusals look.
 */
void mcp_http_refuse(
	const struct http_guard *guard, struct http_exchange *x, int status, struct str message);

/* ---- URIs, for the application's resource table ---- */

/* Same after decoding what need not be encoded. */
bool mcp_uri_eq(struct str a, struct str b);
#define MCP_URI_VARS 8
struct mcp_uri_match {
	size_t n;
	struct str name[MCP_URI_VARS];
	struct str value[MCP_URI_VARS]; /* decoded; absent when a query variable was not given */
};
/* `pattern` like dais://item/{id}/note/{key} or dais://thread/{id}/messages{?after,limit}. A
 * variable matches one path segment, not empty. Linear time. Refuses bad percent signs, "..", NUL
 * and bad UTF-8. */
bool mcp_uri_match(
	struct arena *arena, struct str pattern, struct str uri, struct mcp_uri_match *out);

#endif
