/* The life of a request: admitted, told about, cancelled, finished once. */
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "mcp/session.h"

#include <assert.h>
#include <stdlib.h>

static const struct {
	const char *client;
	int64_t wait_ms;
} patient_clients[] = {
	/* Measured: these hold a call for 300 s, with progress. */
	{"claude-code", LIMIT_MCP_PATIENT_WAIT_MS},
	{"codex", LIMIT_MCP_PATIENT_WAIT_MS},
	{"codex-mcp-client", LIMIT_MCP_PATIENT_WAIT_MS},
};

struct mcp_request *request_create(struct mcp_server *server, const struct mcp_caller *caller,
	const struct message *message, struct arena *arena, struct channel *channel)
{
	struct mcp_request *req = ARENA_NEW(arena, struct mcp_request);

	atomic_init(&req->refs, 1);
	atomic_init(&req->wake_at, NEVER);
	req->server = server;
	req->arena = arena;
	req->message = *message;
	req->owned = message->whole;
	req->channel = channel;
	req->version = MCP_2025_11_25;
	req->log_threshold = -1;
	req->stream_at = NEVER;
	req->counts = true;
	caller_copy(server, arena, &req->caller, caller);
	req_id_generate(req->req_id);
	buf_init(&req->meta, arena, LIMIT_RESULT_HARD_BYTES);
	buf_init(&req->progress.waiting, NULL, LIMIT_MESSAGE_BYTES);
	req->progress.tokens = LIMIT_MCP_PROGRESS_PER_SECOND;
	(void)pthread_mutex_init(&req->lock, NULL);
	return req;
}

struct mcp_request *request_ref(struct mcp_request *req)
{
	(void)atomic_fetch_add(&req->refs, 1);
	return req;
}

void request_unref(struct mcp_request *req)
{
	if (req == NULL || atomic_fetch_sub(&req->refs, 1) != 1)
		return;
	if (req->channel != NULL)
		req->channel->ops->release(req->channel);
	if (req->session != NULL) {
		mcp_session_busy(req->session, -1);
		mcp_session_unref(req->session);
	}
	listen_destroy(req->listen);
	caller_drop(req->server, &req->caller);
	json_decref(req->owned);
	json_decref(req->no_arguments);
	buf_finish(&req->progress.waiting);
	(void)pthread_mutex_destroy(&req->lock);
	arena_destroy(req->arena);
}

/* server->lock is held. */
static bool is_over_limit(const struct mcp_request *req)
{
	size_t of_session = 0;
	size_t of_principal = 0;

	if (req->server->in_flight >= LIMIT_MCP_REQUESTS)
		return true;
	if (req->server->in_flight < LIMIT_MCP_SESSION_REQUESTS)
		return false;
	for (const struct mcp_request *other = req->server->requests; other != NULL;
		other = other->next) {
		of_session += req->session != NULL && other->session == req->session;
		of_principal += str_eq(other->caller.principal, req->caller.principal);
	}
	return of_session >= LIMIT_MCP_SESSION_REQUESTS ||
	       of_principal >= LIMIT_MCP_PRINCIPAL_REQUESTS;
}

int request_admit(struct mcp_request *req, struct refusal *r)
{
	struct mcp_server *server = req->server;
	bool refused;

	if (atomic_load(&server->stopping)) {
		(void)refusal_set(r, MCP_INTERNAL, 503, STR("The server is shutting down."));
		r->data = STR("{\"retryAfterMs\":1000}");
		return -1;
	}
	(void)pthread_mutex_lock(&server->lock);
	refused = is_over_limit(req);
	if (!refused) {
		server_link(&server->requests, request_ref(req));
		server->in_flight++;
	}
	(void)pthread_mutex_unlock(&server->lock);
	if (!refused)
		return 0;
	(void)refusal_set(
		r, MCP_INTERNAL, 200, STR("Too many requests are in flight; repeat it later."));
	r->data = STR("{\"retryAfterMs\":1000}");
	return -1;
}

static void leave_list(struct mcp_request *req)
{
	struct mcp_server *server = req->server;
	bool linked;

	(void)pthread_mutex_lock(&server->lock);
	linked = req->linked;
	if (linked && req->listen != NULL) {
		server_unlink(&server->listens, req);
		server->listen_count--;
	} else if (linked) {
		server_unlink(&server->requests, req);
		server->in_flight--;
	}
	(void)pthread_mutex_unlock(&server->lock);
	if (linked)
		request_unref(req);
}

/* `message` goes out as the last one, unless the client gave the request up. */
static void answer(struct mcp_request *req, int status, int error_code, struct str message)
{
	(void)pthread_mutex_lock(&req->lock);
	assert(!req->finished);
	req->finished = true;
	req->channel->ops->answer(req->channel, req, status, req->cancelled ? STR("") : message);
	(void)pthread_mutex_unlock(&req->lock);
	if (req->session != NULL)
		(void)mcp_session_expire_asks(req->session, req, NEVER);
	if (req->server->on->answered != NULL)
		req->server->on->answered(req, error_code, message.n);
	leave_list(req);
	request_unref(req);
}

void request_fail(struct mcp_request *req, int status, enum mcp_code code, struct str message,
	struct str data)
{
	const struct refusal r = {code, status, message, data};
	struct buf out;

	buf_init(&out, NULL, LIMIT_MESSAGE_BYTES);
	message_error(&out, req->message.id, &r);
	answer(req, status, code, buf_str(&out));
	buf_finish(&out);
}

void request_refuse(struct mcp_request *req, const struct refusal *r)
{
	request_fail(req, r->status, r->code, r->message, r->data);
}

static void write_meta(struct mcp_request *req, struct json_writer *w)
{
	jw_kobject(w, "_meta");
	if (is_modern(req))
		jw_kraw(w, META_SERVER_INFO, req->server->settings.server_info);
	jw_ktext(w, "reqId", req->req_id);
	jw_members(w, buf_str(&req->meta));
	jw_object_end(w);
}

static void write_result(
	struct mcp_request *req, const struct result *result, struct json_writer *w)
{
	static const char *const types[] = {"complete", "input_required", "task", "complete"};

	jw_object_begin(w);
	if (is_modern(req))
		jw_ktext(w, "resultType", types[result->kind]);
	jw_members(w, result->members);
	if (is_modern(req) && result->has_ttl) {
		/* What came out of a question to one client is no answer for anybody else. */
		jw_kint(w, "ttlMs", req->is_retry ? 0 : result->ttl_ms);
		jw_ktext(w, "cacheScope", result->is_private ? "private" : "public");
	}
	if (result->kind != RESULT_BARE)
		write_meta(req, w);
	jw_object_end(w);
}

void request_finish(struct mcp_request *req, const struct result *result)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, NULL, LIMIT_RESULT_HARD_BYTES + LIMIT_MCP_REQUEST_ID_BYTES * 8);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	jw_kraw(&w, "id", req->message.id);
	jw_key(&w, "result");
	write_result(req, result, &w);
	jw_object_end(&w);
	if (!out.overflow) {
		answer(req, 200, 0, buf_str(&out));
	} else if (str_eq(req->message.method, STR("tools/call")) &&
		   result->kind == RESULT_COMPLETE) {
		const struct result too_large = {.kind = RESULT_COMPLETE,
			.members = STR(
				"\"content\":[{\"type\":\"text\",\"text\":\"{\\\"code\\\":\\\"payload_too_large\\\"}\"}],"
				"\"structuredContent\":{\"code\":\"payload_too_large\"},\"isError\":true")};

		req->meta.n = 0;
		request_finish(req, &too_large);
	} else {
		request_fail(req, 200, MCP_INTERNAL,
			STR("The answer is larger than one message may be."), STR_NONE);
	}
	buf_finish(&out);
}

bool request_notify(struct mcp_request *req, struct str message)
{
	bool open;

	(void)pthread_mutex_lock(&req->lock);
	open = !req->finished && !req->cancelled;
	if (open && !req->json_only)
		req->channel->ops->notify(req->channel, req, message);
	(void)pthread_mutex_unlock(&req->lock);
	return open;
}

void request_begin_stream(struct mcp_request *req)
{
	(void)pthread_mutex_lock(&req->lock);
	if (!req->finished && !req->cancelled && !req->streaming && !req->json_only) {
		req->streaming = true;
		req->channel->ops->begin_stream(req->channel, req);
	}
	(void)pthread_mutex_unlock(&req->lock);
}

void request_cancel(struct mcp_request *req)
{
	void (*cancel)(struct mcp_request *, void *) = NULL;
	bool ours = false;

	(void)pthread_mutex_lock(&req->lock);
	if (!req->finished && !req->cancelled) {
		req->cancelled = true;
		cancel = req->cancel;
		req->cancel = NULL;
		ours = req->listen != NULL;
	}
	(void)pthread_mutex_unlock(&req->lock);
	if (req->session != NULL)
		(void)mcp_session_expire_asks(req->session, req, NEVER);
	if (cancel != NULL)
		cancel(req, req->cancel_context);
	if (ours)
		listen_end(req);
}

void request_wake_by(struct mcp_request *req, int64_t at)
{
	int64_t old = atomic_load(&req->wake_at);

	while (at < old && !atomic_compare_exchange_weak(&req->wake_at, &old, at))
		;
	ticker_by(req->server, at);
}

/* req->lock is held: the notice that waited, if its time has come. */
static void flush_progress(struct mcp_request *req, int64_t now)
{
	struct progress *p = &req->progress;

	if (now >= p->refill_at) {
		p->tokens = LIMIT_MCP_PROGRESS_PER_SECOND;
		p->refill_at = now + 1000;
	}
	if (p->waiting.n == 0 || p->tokens == 0)
		return;
	p->tokens--;
	req->channel->ops->notify(req->channel, req, buf_str(&p->waiting));
	p->waiting.n = 0;
}

void request_wake(struct mcp_request *req, int64_t now)
{
	int64_t again = NEVER;
	bool listens;

	atomic_store(&req->wake_at, NEVER);
	(void)pthread_mutex_lock(&req->lock);
	listens = req->listen != NULL;
	if (!req->finished && !req->cancelled) {
		flush_progress(req, now);
		if (req->progress.waiting.n > 0)
			again = req->progress.refill_at;
		if (!req->streaming && req->stream_at < again && req->stream_at > now)
			again = req->stream_at;
	}
	(void)pthread_mutex_unlock(&req->lock);
	if (req->stream_at <= now)
		request_begin_stream(req);
	if (req->session != NULL) {
		int64_t deadline = mcp_session_expire_asks(req->session, req, now);

		again = deadline < again ? deadline : again;
	}
	if (again != NEVER)
		request_wake_by(req, again);
	if (listens)
		listen_wake(req, now);
}

struct mcp_request *mcp_request_keep(struct mcp_request *req)
{
	return request_ref(req);
}

void mcp_request_release(struct mcp_request *req)
{
	request_unref(req);
}

struct mcp_server *mcp_request_server(const struct mcp_request *req)
{
	return req->server;
}

void *mcp_request_app(const struct mcp_request *req)
{
	return req->server->app;
}

const struct mcp_caller *mcp_request_caller(const struct mcp_request *req)
{
	return &req->caller;
}

struct arena *mcp_request_arena(struct mcp_request *req)
{
	return req->arena;
}

enum mcp_version mcp_request_version(const struct mcp_request *req)
{
	return req->version;
}

bool mcp_request_is_modern(const struct mcp_request *req)
{
	return is_modern(req);
}

const char *mcp_request_id(const struct mcp_request *req)
{
	return req->req_id;
}

struct str mcp_request_client(const struct mcp_request *req)
{
	return req->client_name;
}

struct str mcp_request_traceparent(const struct mcp_request *req)
{
	return json_member_str(req->message.meta, "traceparent");
}

struct str mcp_request_target(const struct mcp_request *req)
{
	return req->target;
}

struct str mcp_request_method(const struct mcp_request *req)
{
	return req->message.method;
}

bool mcp_client_can(const struct mcp_request *req, enum mcp_client_feature feature)
{
	return (req->client_can & feature) != 0;
}

int64_t mcp_wait_slice_ms(const struct mcp_request *req)
{
	if (req->json_only)
		return LIMIT_MCP_JSON_WAIT_MS;
	if (req->server->settings.max_wait_ms > 0)
		return req->server->settings.max_wait_ms;
	for (size_t i = 0; i < sizeof(patient_clients) / sizeof(patient_clients[0]); i++)
		if (str_eq(req->client_name, str_of(patient_clients[i].client)))
			return patient_clients[i].wait_ms;
	return LIMIT_MCP_WAIT_MS;
}

const json_t *mcp_input_responses(const struct mcp_request *req)
{
	return req->answers;
}

struct str mcp_sealed_state(const struct mcp_request *req)
{
	return req->state;
}

bool mcp_is_cancelled(struct mcp_request *req)
{
	bool cancelled;

	(void)pthread_mutex_lock(&req->lock);
	cancelled = req->cancelled;
	(void)pthread_mutex_unlock(&req->lock);
	return cancelled;
}

void mcp_on_cancel(struct mcp_request *req, void (*cancel)(struct mcp_request *req, void *context),
	void *context)
{
	bool cancelled;

	(void)pthread_mutex_lock(&req->lock);
	cancelled = req->cancelled;
	if (!cancelled) {
		req->cancel = cancel;
		req->cancel_context = context;
	}
	(void)pthread_mutex_unlock(&req->lock);
	if (cancelled && cancel != NULL)
		cancel(req, context);
}

bool mcp_wants_progress(const struct mcp_request *req)
{
	return req->token.p != NULL && !req->json_only;
}

static void write_progress(
	struct mcp_request *req, double progress, double total, struct str message, struct buf *out)
{
	struct json_writer w;

	json_writer_init(&w, out);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	jw_ktext(&w, "method", "notifications/progress");
	jw_kobject(&w, "params");
	jw_kraw(&w, "progressToken", req->token);
	jw_key(&w, "progress");
	jw_real(&w, progress);
	if (total >= 0) {
		jw_key(&w, "total");
		jw_real(&w, total);
	}
	if (message.n > 0)
		jw_kstr(&w, "message",
			(struct str){message.p, utf8_offset(message, LIMIT_MCP_PROGRESS_CHARS)});
	jw_object_end(&w);
	jw_object_end(&w);
}

void mcp_progress(struct mcp_request *req, double progress, double total, struct str message)
{
	struct progress *p = &req->progress;
	int64_t wake = NEVER;

	if (!mcp_wants_progress(req))
		return;
	(void)pthread_mutex_lock(&req->lock);
	if (!req->finished && !req->cancelled && (!p->begun || progress > p->last)) {
		p->begun = true;
		p->last = progress;
		p->waiting.n = 0;
		write_progress(req, progress, total, message, &p->waiting);
		flush_progress(req, clock_mono_ms());
		if (p->waiting.n > 0)
			wake = p->refill_at;
	}
	(void)pthread_mutex_unlock(&req->lock);
	if (wake != NEVER)
		request_wake_by(req, wake);
}

void mcp_log(struct mcp_request *req, struct str level, struct str logger, struct str data)
{
	int rank = log_level_find(level);
	struct buf out;
	struct json_writer w;

	if (req->log_threshold < 0 || rank < req->log_threshold)
		return;
	buf_init(&out, NULL, LIMIT_RESULT_HARD_BYTES);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	jw_ktext(&w, "method", "notifications/message");
	jw_kobject(&w, "params");
	jw_kstr(&w, "level", level);
	jw_kstr_opt(&w, "logger", logger);
	jw_kraw(&w, "data", data);
	jw_object_end(&w);
	jw_object_end(&w);
	if (!out.overflow)
		(void)request_notify(req, buf_str(&out));
	buf_finish(&out);
}

void mcp_close_stream(struct mcp_request *req)
{
	(void)pthread_mutex_lock(&req->lock);
	if (!req->finished && !req->cancelled && req->streaming &&
		req->channel->ops->close_stream != NULL)
		req->channel->ops->close_stream(req->channel, req);
	(void)pthread_mutex_unlock(&req->lock);
}
