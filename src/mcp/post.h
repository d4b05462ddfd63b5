/* mcp/post.h - one POST exchange and the requests that came in it: one, or those of a batch.
 *
 * The struct lives in the exchange's arena, so that the hang-up callback always finds it; what it
 * refers to goes when the last request has let go of it. post->lock is taken under a request's lock
 * and before a session's. */
#ifndef DAIS_MCP_POST_H
#define DAIS_MCP_POST_H

#include "http/guard.h"
#include "mcp/session.h"

enum post_state { POST_WAITING, POST_STREAMING, POST_OVER };

struct post {
	struct channel channel; /* first */
	atomic_int refs;
	struct mcp_server *server;
	const struct http_guard *guard;
	struct http_exchange *x;     /* kept */
	struct mcp_session *session; /* legacy; referenced */
	const char *session_id;      /* of a session made by this exchange */
	bool is_batch;
	bool takes_events;

	pthread_mutex_t lock;
	enum post_state state;
	size_t pending; /* answers to come */
	uint64_t stream_serial;
	struct buf collected;    /* answers of a batch for a client without event streams */
	struct mcp_request *req; /* modern: cancelled when the client hangs up; referenced */
};

struct post *post_create(struct mcp_server *server, const struct http_guard *guard,
	struct http_exchange *x, struct mcp_session *session, size_t pending);
void post_ref(struct post *post);
void post_unref(struct post *post);
/* Watch for the client hanging up; `req` (may be NULL) is then cancelled. */
void post_watch(struct post *post, struct mcp_request *req);
/* One answer that no request makes. */
void post_put(struct post *post, int status, struct str message);

/* Answers outside of any request. `id` may be absent. */
void post_reply_json(const struct http_guard *guard, struct http_exchange *x, int status,
	const char *session_id, struct str body);
void post_reply_refusal(const struct http_guard *guard, struct http_exchange *x, struct str id,
	const struct refusal *r);
void post_reply_empty(const struct http_guard *guard, struct http_exchange *x, int status);
/* Begin an event stream; the exchange is kept by the caller. */
void events_begin(const struct http_guard *guard, struct http_exchange *x);

#endif
