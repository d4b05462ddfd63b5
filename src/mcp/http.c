/* Streamable HTTP: which exchange is what. Messages are in http_post.c's hands once the head
 * passed. */
#include "base/clock.h"
#include "base/limits.h"
#include "http/guard.h"
#include "mcp/accept.h"
#include "mcp/http.h"
#include "mcp/post.h"

#include <assert.h>

static int head_refuse(
	const struct http_guard *guard, struct http_exchange *x, int status, struct str message)
{
	mcp_http_refuse(guard, x, status, message);
	return -1;
}

void mcp_http_refuse(
	const struct http_guard *guard, struct http_exchange *x, int status, struct str message)
{
	const struct refusal r = {MCP_INVALID_REQUEST, status, message, STR_NONE};

	post_reply_refusal(guard, x, STR_NONE, &r);
}

static int check_post_head(const struct http_guard *guard, struct http_exchange *x)
{
	struct accepted accepted = accept_read(http_header(x, "Accept", NULL));
	struct str encoding = http_header(x, "Content-Encoding", NULL);

	if (encoding.p != NULL && !str_eq_nocase(encoding, STR("identity")))
		return head_refuse(guard, x, 415, STR("Content-Encoding is not supported."));
	if (!content_type_is_json(http_header(x, "Content-Type", NULL)))
		return head_refuse(
			guard, x, 415, STR("Content-Type must be application/json in UTF-8."));
	if (!accepted.json && !accepted.events)
		return head_refuse(guard, x, 406,
			STR("Accept must list application/json and text/event-stream."));
	return 0;
}

int mcp_http_head(struct mcp_server *server, const struct http_guard *guard,
	struct http_exchange *x, size_t *max_body)
{
	struct str method = http_method(x);

	*max_body = 0;
	if (atomic_load(&server->stopping))
		return head_refuse(guard, x, 503, STR("The server is shutting down."));
	if (str_eq(method, STR("POST"))) {
		*max_body = LIMIT_MESSAGE_BYTES;
		return check_post_head(guard, x);
	}
	if (str_eq(method, STR("DELETE")))
		return 0;
	if (!str_eq(method, STR("GET")))
		return head_refuse(
			guard, x, 405, STR("Only POST, GET and DELETE are served here."));
	if (!accept_read(http_header(x, "Accept", NULL)).events)
		return head_refuse(guard, x, 406, STR("Accept must list text/event-stream."));
	return 0;
}

bool http_speaks_modern(const struct http_exchange *x)
{
	return revision_find(http_header(x, "MCP-Protocol-Version", NULL)) >= MCP_2026_07_28;
}

struct mcp_session *http_session(struct mcp_server *server, const struct http_guard *guard,
	struct http_exchange *x, const struct mcp_caller *caller, struct str id)
{
	struct str session_id = http_header(x, "Mcp-Session-Id", NULL);
	struct mcp_session *session;
	struct refusal r;

	if (session_id.n == 0) {
		(void)refusal_set(&r, MCP_INVALID_REQUEST, 400,
			STR("Mcp-Session-Id is missing: send initialize first."));
		post_reply_refusal(guard, x, id, &r);
		return NULL;
	}
	session = mcp_session_find(server, session_id, caller->principal);
	if (session == NULL) {
		(void)refusal_set(&r, MCP_SESSION_NOT_FOUND, 404, STR("Session not found"));
		post_reply_refusal(guard, x, id, &r);
	}
	return session;
}

/* ---- GET ---- */

struct reader {
	struct mcp_server *server;
	unsigned char key[32];
};

/* By key, not by pointer: the session may be gone while its socket still closes. */
static void reader_hung_up(struct http_exchange *x, void *context)
{
	const struct reader *reader = context;
	struct mcp_session *session = mcp_session_by_key(reader->server, reader->key);

	if (session == NULL)
		return;
	(void)pthread_mutex_lock(&session->lock);
	for (struct replay *stream = session->streams; stream != NULL; stream = stream->next)
		if (stream->x == x)
			mcp_session_detach(session, stream);
	(void)pthread_mutex_unlock(&session->lock);
	mcp_session_unref(session);
}

/* session->lock is held. The oldest goes when there are too many. */
static void limit_readers(struct mcp_session *session)
{
	struct replay *oldest = NULL;
	size_t n = 0;

	for (struct replay *stream = session->streams; stream != NULL; stream = stream->next)
		if (stream->is_general && stream->x != NULL) {
			oldest = stream;
			n++;
		}
	if (n > LIMIT_MCP_SESSION_STREAMS)
		mcp_session_detach(session, oldest);
}

/* session->lock is held. */
static void read_stream(struct mcp_session *session, struct http_exchange *x, int64_t expires_at)
{
	uint64_t seq = 0;
	struct replay *stream = replay_find(session, http_header(x, "Last-Event-ID", NULL), &seq);

	if (stream == NULL) {
		stream = replay_create(session, true);
		stream->expires_at = expires_at;
		mcp_session_attach(session, stream, x);
		if (session->version >= MCP_2025_11_25)
			replay_prime(stream, 1000);
		limit_readers(session);
		return;
	}
	mcp_session_detach(session, stream);
	replay_resume(stream, seq, x);
	if (stream->is_over)
		http_stream_end(x);
	else
		mcp_session_attach(session, stream, x);
}

static void get(struct mcp_server *server, const struct http_guard *guard, struct http_exchange *x,
	const struct mcp_caller *caller)
{
	struct reader *reader = ARENA_NEW(http_arena(x), struct reader);
	struct mcp_session *session;

	if (http_speaks_modern(x)) {
		mcp_http_refuse(guard, x, 405,
			STR("This protocol version has no GET stream; use subscriptions/listen."));
		return;
	}
	session = http_session(server, guard, x, caller, STR_NONE);
	if (session == NULL)
		return;
	reader->server = server;
	memcpy(reader->key, session->key, sizeof(reader->key));
	http_keep(x);
	events_begin(guard, x);
	(void)pthread_mutex_lock(&session->lock);
	if (session->ended)
		http_stream_end(x);
	else
		read_stream(session, x, caller->expires_at);
	(void)pthread_mutex_unlock(&session->lock);
	mcp_session_unref(session);
	if (caller->expires_at != 0)
		ticker_by(server, clock_mono_ms() + caller->expires_at - clock_wall_ms());
	http_on_hangup(x, reader_hung_up, reader);
	http_release(x);
}

static void delete (struct mcp_server *server, const struct http_guard *guard,
	struct http_exchange *x, const struct mcp_caller *caller)
{
	struct mcp_session *session;

	if (http_speaks_modern(x)) {
		mcp_http_refuse(guard, x, 405, STR("This protocol version has no sessions."));
		return;
	}
	session = http_session(server, guard, x, caller, STR_NONE);
	if (session == NULL)
		return;
	mcp_session_end(session);
	mcp_session_unref(session);
	post_reply_empty(guard, x, 200);
}

void mcp_http_request(struct mcp_server *server, const struct http_guard *guard,
	struct http_exchange *x, const struct mcp_caller *caller)
{
	if (str_eq(http_method(x), STR("GET")))
		get(server, guard, x, caller);
	else if (str_eq(http_method(x), STR("DELETE")))
		delete (server, guard, x, caller);
	else
		http_post(server, guard, x, caller);
}
