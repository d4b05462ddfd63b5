/* One request and its answer, driven by the callbacks of libmicrohttpd on the http thread. */
#include "http/server.h"

#include "base/log.h"

#include <stdlib.h>

/* ---- life ---- */

void http_keep(struct http_exchange *x)
{
	atomic_fetch_add(&x->refs, 1);
}

void http_release(struct http_exchange *x)
{
	if (atomic_fetch_sub(&x->refs, 1) != 1)
		return;
	if (x->response != NULL)
		MHD_destroy_response(x->response);
	buf_finish(&x->body);
	stream_finish(&x->stream);
	arena_destroy(x->arena);
	(void)pthread_mutex_destroy(&x->lock);
	free(x);
}

/* The request line is complete. This is the only place where libmicrohttpd shows the target as it was
 * sent, before it cuts and decodes it. What is returned becomes the context of the request, and the
 * completion callback is sure to get it. */
void *exchange_begin(void *closure, const char *target, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct http_exchange *x = calloc(1, sizeof(*x));
	size_t path_bytes = strcspn(target, "?");

	if (x == NULL)
		abort();
	(void)pthread_mutex_init(&x->lock, NULL);
	atomic_init(&x->refs, 1);
	x->arena = arena_create();
	x->server = closure;
	x->connection = connection;
	x->conn = info->socket_context;
	x->target = str_dup(x->arena, str_of(target));
	x->path = (struct str){x->target.p, path_bytes};
	if (path_bytes < x->target.n)
		x->query = (struct str){x->target.p + path_bytes + 1, x->target.n - path_bytes - 1};
	x->peer = str_dup(x->arena, str_of(x->conn->peer_text));
	x->is_loopback = x->conn->is_loopback;
	atomic_fetch_add(&x->server->requests, 1);
	conn_attach(x->server, x->conn, x);
	return x;
}

void exchange_completed(void *closure, struct MHD_Connection *connection, void **context,
	enum MHD_RequestTerminationCode code)
{
	struct http_exchange *x = *context;
	struct http_server *server = closure;
	void (*hangup)(struct http_exchange *, void *);
	void *hangup_context;
	struct conn *conn;

	if (x == NULL)
		return;
	*context = NULL;
	/* What libmicrohttpd closes in the middle of a request it frees only when it next looks at it, which it
	 * does for the connection that was quiet for longest: behind a client that keeps its connection and
	 * says nothing, closed ones pile up. With a timeout of its own a connection is always looked at. */
	if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK)
		(void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 1U);
	(void)pthread_mutex_lock(&x->lock);
	conn = x->conn;
	hangup = code == MHD_REQUEST_TERMINATED_COMPLETED_OK ? NULL : x->hangup;
	hangup_context = x->hangup_context;
	x->hangup = NULL;
	x->gone = code != MHD_REQUEST_TERMINATED_COMPLETED_OK;
	x->connection = NULL;
	x->conn = NULL;
	if (x->stream.is_open) {
		x->stream.is_open = false;
		atomic_fetch_sub(&server->streams_open, 1);
	}
	(void)pthread_mutex_unlock(&x->lock);
	if (hangup != NULL)
		hangup(x, hangup_context);
	conn_detach(server, conn);
	http_release(x);
}

/* ---- the head ---- */

static enum MHD_Result add_field(void *context, enum MHD_ValueKind kind, const char *name, size_t name_size,
	const char *value, size_t value_size)
{
	struct http_exchange *x = context;

	(void)kind;
	x->fields[x->field_count++] = (struct framing_field){
		{arena_copy(x->arena, name, name_size), name_size},
		{arena_copy(x->arena, value == NULL ? "" : value, value_size), value_size}};
	return MHD_YES;
}

/* Copied, since an exchange may be kept longer than its connection. */
static void copy_head(struct http_exchange *x, const char *method)
{
	int n = MHD_get_connection_values_n(x->connection, MHD_HEADER_KIND, NULL, NULL);

	x->method = str_dup(x->arena, str_of(method));
	x->fields = ARENA_ARRAY(x->arena, struct framing_field, (size_t)(n < 1 ? 1 : n));
	(void)MHD_get_connection_values_n(x->connection, MHD_HEADER_KIND, add_field, x); /* n again */
}

static void check_head(struct http_exchange *x, const char *version)
{
	struct framing_head head = {x->method, x->target, str_of(version), x->fields, x->field_count};
	int status = framing_check(&head, &x->framing);

	if (status != 0) {
		atomic_fetch_add(&x->server->refused, 1);
		answer_refuse(x, status, x->framing.reason);
		return;
	}
	for (size_t i = 0; i < x->field_count; i++)
		x->fields[i].value = str_trim(x->fields[i].value);
	if (atomic_load(&x->server->stopping)) {
		answer_refuse(x, 503, "the server is stopping");
		return;
	}
	if (x->server->options.on_head(x, x->server->options.app, &x->max_body) != 0)
		return;
	if (x->framing.length > x->max_body) {
		atomic_fetch_add(&x->server->refused, 1);
		answer_refuse(x, 413, "the body is larger than this route takes");
	}
}

/* Queue the answer. http thread, not suspended. */
static enum MHD_Result queue_answer(struct http_exchange *x)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	(void)pthread_mutex_lock(&x->lock);
	response = STEAL(x->response);
	(void)pthread_mutex_unlock(&x->lock);
	/* The response is still ours alone, so a header may be added. */
	if (atomic_load(&x->server->stopping))
		(void)MHD_add_response_header(response, "Connection", "close"); /* or it is there */
	conn_enter(x->server, x->conn, CONN_SENDING);
	result = MHD_queue_response(x->connection, x->status, response);
	MHD_destroy_response(response);
	return result;
}

static bool is_answered(struct http_exchange *x)
{
	bool answered;

	(void)pthread_mutex_lock(&x->lock);
	answered = x->answered;
	(void)pthread_mutex_unlock(&x->lock);
	return answered;
}

static enum MHD_Result take_head(struct http_exchange *x, const char *method, const char *version)
{
	x->step = STEP_BODY;
	copy_head(x, method);
	check_head(x, version);
	if (!is_answered(x)) {
		buf_init(&x->body, NULL, x->max_body);
		conn_enter(x->server, x->conn, CONN_BODY);
		return MHD_YES;
	}
	/* An answer that is queued now makes libmicrohttpd close the connection. Right when a body is
	 * on its way or the framing is in doubt; else it waits for the call that ends the request. */
	if (!framing_has_body(&x->framing) && x->framing.reason == NULL) {
		x->step = STEP_ANSWER;
		return MHD_YES;
	}
	if (framing_has_body(&x->framing))
		x->conn->linger = true;
	return queue_answer(x);
}

/* ---- the body ---- */

static enum MHD_Result take_body(struct http_exchange *x, const char *bytes, size_t *size)
{
	size_t n = *size;

	(void)pthread_mutex_lock(&x->server->lock);
	x->conn->body_got += n;
	(void)pthread_mutex_unlock(&x->server->lock);
	*size = 0;
	buf_add(&x->body, bytes, n);
	if (!x->body.overflow)
		return MHD_YES;
	/* Only a chunked body gets here; libmicrohttpd takes no answer in the middle of one. */
	atomic_fetch_add(&x->server->refused, 1);
	(void)pthread_mutex_lock(&x->server->lock);
	conn_refuse_raw(x->server, x->conn, 413, true);
	(void)pthread_mutex_unlock(&x->server->lock);
	return MHD_NO;
}

/* ---- the answer ---- */

/* Queue the answer when there is one, else sleep until there is. */
static enum MHD_Result answer_or_suspend(struct http_exchange *x)
{
	(void)pthread_mutex_lock(&x->lock);
	if (x->response != NULL) {
		(void)pthread_mutex_unlock(&x->lock);
		return queue_answer(x);
	}
	if (x->gone || atomic_load(&x->server->cutting)) {
		(void)pthread_mutex_unlock(&x->lock);
		return MHD_NO;
	}
	MHD_suspend_connection(x->connection); /* (3) */
	x->suspended = true;
	conn_watch(x->server, x->conn);
	(void)pthread_mutex_unlock(&x->lock);
	return MHD_YES;
}

static enum MHD_Result take_request(struct http_exchange *x)
{
	x->step = STEP_ANSWER;
	conn_enter(x->server, x->conn, CONN_WAITING);
	x->server->options.on_request(x, x->server->options.app);
	if (!is_answered(x) && atomic_load(&x->refs) == 1) {
		log_line(LOG_ERROR, "http", "a request was neither answered nor kept",
			{"method", LOG_STRV(x->method)}, {"path", LOG_STRV(x->path)});
		answer_refuse(x, 500, "nothing answered this request");
	}
	return answer_or_suspend(x);
}

enum MHD_Result exchange_step(void *closure, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_size, void **context)
{
	struct http_exchange *x = *context;

	(void)closure;
	(void)connection;
	(void)url;
	if (x->step == STEP_HEAD)
		return take_head(x, method, version);
	if (*upload_size > 0)
		return take_body(x, upload, upload_size);
	if (x->step == STEP_BODY)
		return take_request(x);
	return answer_or_suspend(x);
}

/* ---- the peer is gone ---- */

static void wake_gone(struct http_exchange *x)
{
	x->gone = true;
	if (!x->suspended)
		return;
	x->suspended = false;
	loop_resume(x); /* (3) */
}

void exchange_hung_up(struct http_exchange *x)
{
	(void)pthread_mutex_lock(&x->lock);
	/* Not suspended: libmicrohttpd is at work on it and sees for itself. */
	if (x->suspended)
		wake_gone(x);
	(void)pthread_mutex_unlock(&x->lock);
}

void exchange_give_up(struct http_exchange *x)
{
	(void)pthread_mutex_lock(&x->lock);
	if (x->connection != NULL) {
		wake_gone(x);
		conn_cut(x->server, x->conn);
	}
	(void)pthread_mutex_unlock(&x->lock);
}

void http_on_hangup(struct http_exchange *x, void (*hangup)(struct http_exchange *x, void *context),
	void *context)
{
	bool too_late;

	(void)pthread_mutex_lock(&x->lock);
	too_late = hangup != NULL && x->connection == NULL && x->gone;
	x->hangup = too_late ? NULL : hangup;
	x->hangup_context = context;
	(void)pthread_mutex_unlock(&x->lock);
	if (too_late)
		hangup(x, context);
}
