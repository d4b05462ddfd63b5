#include "mcp/post.h"

#include "base/limits.h"

#include <assert.h>

#define MAX_FIELDS (HTTP_GUARD_FIELDS + 4)

void post_reply_json(const struct http_guard *guard, struct http_exchange *x, int status,
	const char *session_id, struct str body)
{
	struct http_field fields[MAX_FIELDS];
	size_t n = http_guard_fields(guard, x, fields);

	fields[n++] = (struct http_field){"Content-Type", STR("application/json")};
	if (session_id != NULL)
		fields[n++] = (struct http_field){"Mcp-Session-Id", str_of(session_id)};
	if (status == 405)
		fields[n++] = (struct http_field){"Allow", STR("POST, GET, DELETE, OPTIONS")};
	if (status == 503)
		fields[n++] = (struct http_field){"Retry-After", STR("1")};
	http_reply(x, status, fields, n, body);
}

void post_reply_refusal(const struct http_guard *guard, struct http_exchange *x, struct str id,
	const struct refusal *r)
{
	struct buf out;

	buf_init(&out, NULL, SIZE_MAX);
	message_error(&out, id, r);
	post_reply_json(guard, x, r->status, NULL, buf_str(&out));
	buf_finish(&out);
}

void post_reply_empty(const struct http_guard *guard, struct http_exchange *x, int status)
{
	struct http_field fields[MAX_FIELDS];

	http_reply(x, status, fields, http_guard_fields(guard, x, fields), STR(""));
}

void events_begin(const struct http_guard *guard, struct http_exchange *x)
{
	struct http_field fields[MAX_FIELDS];
	size_t n = http_guard_fields(guard, x, fields);

	fields[n++] = (struct http_field){"Content-Type", STR("text/event-stream; charset=utf-8")};
	fields[n++] = (struct http_field){"Cache-Control", STR("no-cache, no-transform")};
	fields[n++] = (struct http_field){"X-Accel-Buffering", STR("no")};
	http_stream_begin(x, 200, fields, n);
}

static struct post *post_of(struct channel *c)
{
	return (struct post *)(void *)c;
}

/* session->lock is held. NULL: the session has ended. */
static struct replay *stream_of(const struct post *post)
{
	for (struct replay *stream = post->session->streams; stream != NULL; stream = stream->next)
		if (stream->serial == post->stream_serial)
			return stream;
	return NULL;
}

/* post->lock is held in the following. */

static void begin_legacy(struct post *post)
{
	struct mcp_session *session = post->session;
	struct replay *stream;

	(void)pthread_mutex_lock(&session->lock);
	stream = replay_create(session, false);
	post->stream_serial = stream->serial;
	mcp_session_attach(session, stream, post->x);
	/* Older clients try to parse the empty event. */
	if (session->version >= MCP_2025_11_25)
		replay_prime(stream, 1000);
	(void)pthread_mutex_unlock(&session->lock);
}

static void begin(struct post *post)
{
	if (post->state != POST_WAITING || !post->takes_events)
		return;
	post->state = POST_STREAMING;
	events_begin(post->guard, post->x);
	if (post->session != NULL)
		begin_legacy(post);
}

static void send_event(struct post *post, struct str message, bool last)
{
	struct replay *stream;
	struct buf out;

	if (post->session == NULL) {
		buf_init(&out, NULL, SIZE_MAX);
		sse_write(&out, STR_NONE, message);
		(void)http_stream_write(post->x, buf_str(&out));
		buf_finish(&out);
		return;
	}
	(void)pthread_mutex_lock(&post->session->lock);
	stream = stream_of(post);
	if (stream != NULL)
		replay_send(stream, message, last);
	(void)pthread_mutex_unlock(&post->session->lock);
}

static void end_stream(struct post *post)
{
	struct replay *stream;

	post->state = POST_OVER;
	if (post->session == NULL) {
		http_stream_end(post->x);
		return;
	}
	(void)pthread_mutex_lock(&post->session->lock);
	stream = stream_of(post);
	if (stream != NULL) {
		stream->is_over = true;
		mcp_session_detach(post->session, stream);
	}
	(void)pthread_mutex_unlock(&post->session->lock);
}

static void collect(struct post *post, struct str message)
{
	if (message.n > 0) {
		buf_add_char(&post->collected, post->collected.n == 0 ? '[' : ',');
		buf_add_str(&post->collected, message);
	}
	if (post->pending > 0)
		return;
	post->state = POST_OVER;
	if (post->collected.n == 0) {
		post_reply_empty(post->guard, post->x, 202);
		return;
	}
	buf_add_char(&post->collected, ']');
	post_reply_json(post->guard, post->x, 200, NULL, buf_str(&post->collected));
}

static void put(struct post *post, int status, struct str message)
{
	assert(post->pending > 0);
	post->pending--;
	if (post->is_batch && post->takes_events)
		begin(post);
	if (post->state == POST_STREAMING) {
		if (message.n > 0)
			send_event(post, message, post->pending == 0);
		if (post->pending == 0)
			end_stream(post);
	} else if (post->is_batch) {
		collect(post, message);
	} else {
		post->state = POST_OVER;
		if (message.n > 0)
			post_reply_json(post->guard, post->x, status, post->session_id, message);
		else
			post_reply_empty(
				post->guard, post->x, 202); /* cancelled: there is nothing to say */
	}
}

/* ---- the channel ---- */

static void post_notify(struct channel *c, struct mcp_request *req, struct str message)
{
	struct post *post = post_of(c);

	(void)pthread_mutex_lock(&post->lock);
	begin(post);
	if (post->state == POST_STREAMING) {
		req->streaming = true;
		send_event(post, message, false);
	}
	(void)pthread_mutex_unlock(&post->lock);
}

static void post_answer(struct channel *c, struct mcp_request *req, int status, struct str message)
{
	struct post *post = post_of(c);
	bool held;

	(void)pthread_mutex_lock(&post->lock);
	held = post->req == req;
	if (held)
		post->req = NULL;
	put(post, status, message);
	(void)pthread_mutex_unlock(&post->lock);
	if (held)
		request_unref(req); /* never the last one: the finisher holds another */
}

static void post_begin_stream(struct channel *c, struct mcp_request *req)
{
	struct post *post = post_of(c);

	(void)req;
	(void)pthread_mutex_lock(&post->lock);
	begin(post);
	(void)pthread_mutex_unlock(&post->lock);
}

static void post_close_stream(struct channel *c, struct mcp_request *req)
{
	struct post *post = post_of(c);
	struct replay *stream;

	(void)req;
	if (post->session == NULL)
		return;
	(void)pthread_mutex_lock(&post->lock);
	(void)pthread_mutex_lock(&post->session->lock);
	stream = stream_of(post);
	if (stream != NULL && post->state == POST_STREAMING)
		mcp_session_detach(post->session, stream);
	(void)pthread_mutex_unlock(&post->session->lock);
	(void)pthread_mutex_unlock(&post->lock);
}

static void post_release(struct channel *c)
{
	post_unref(post_of(c));
}

static const struct channel_ops post_ops = {
	post_notify, post_answer, post_begin_stream, post_close_stream, post_release};

/* ---- life ---- */

struct post *post_create(struct mcp_server *server, const struct http_guard *guard,
	struct http_exchange *x, struct mcp_session *session, size_t pending)
{
	struct post *post = ARENA_NEW(http_arena(x), struct post);

	http_keep(x);
	post->channel.ops = &post_ops;
	atomic_init(&post->refs, 1);
	post->server = server;
	post->guard = guard;
	post->x = x;
	post->session = session == NULL ? NULL : mcp_session_ref(session);
	post->pending = pending;
	buf_init(&post->collected, NULL, LIMIT_MESSAGE_BYTES);
	(void)pthread_mutex_init(&post->lock, NULL);
	return post;
}

void post_ref(struct post *post)
{
	(void)atomic_fetch_add(&post->refs, 1);
}

void post_unref(struct post *post)
{
	if (atomic_fetch_sub(&post->refs, 1) != 1)
		return;
	buf_finish(&post->collected);
	mcp_session_unref(post->session);
	/* The mutex stays: a hang-up may still come while the exchange lives, and finds state
	 * POST_OVER. */
	http_release(post->x);
}

static void hung_up(struct http_exchange *x, void *context)
{
	struct post *post = context;
	struct mcp_request *req = NULL;
	struct mcp_session *session = NULL;

	(void)pthread_mutex_lock(&post->lock);
	if (post->state != POST_OVER && post->req != NULL)
		req = request_ref(post->req);
	if (post->state == POST_STREAMING && post->session != NULL)
		session = mcp_session_ref(post->session);
	(void)pthread_mutex_unlock(&post->lock);
	if (session != NULL) {
		(void)pthread_mutex_lock(&session->lock);
		for (struct replay *stream = session->streams; stream != NULL;
			stream = stream->next)
			if (stream->x == x)
				mcp_session_detach(session, stream);
		(void)pthread_mutex_unlock(&session->lock);
		mcp_session_unref(session);
	}
	if (req != NULL) {
		request_cancel(req);
		request_unref(req);
	}
}

void post_watch(struct post *post, struct mcp_request *req)
{
	if (req != NULL) {
		(void)pthread_mutex_lock(&post->lock);
		post->req = request_ref(req);
		(void)pthread_mutex_unlock(&post->lock);
	}
	http_on_hangup(post->x, hung_up, post);
}

void post_put(struct post *post, int status, struct str message)
{
	(void)pthread_mutex_lock(&post->lock);
	put(post, status, message);
	(void)pthread_mutex_unlock(&post->lock);
}
