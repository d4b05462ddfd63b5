/* mcp/replay.h - one server-sent event stream of a legacy session, with what a client may ask for
 * again.
 *
 * Guarded by the lock of its session. Event ids are <stream>.<seq> in base 36. The exchange it is
 * written to comes and goes; without one, events are only kept. */
#ifndef DAIS_MCP_REPLAY_H
#define DAIS_MCP_REPLAY_H

#include "base/str.h"

#include <stdint.h>

struct mcp_session;
struct http_exchange;

struct event {
	uint64_t seq;
	char *text; /* heap: the whole event as it goes over the wire */
	size_t n;
};

struct replay {
	struct replay *next;
	uint64_t serial;
	bool is_general;    /* of a GET: takes what belongs to no request */
	bool is_over;       /* its response was sent */
	int64_t expires_at; /* UTC ms, 0: never; the credential of its reader */
	int64_t over_at;    /* monotonic: when it was over or lost its exchange */
	uint64_t seq;
	struct http_exchange *x; /* borrowed from whoever attached it; NULL: nobody listens */
	struct event *events;    /* ring */
	size_t first;
	size_t count;
	size_t bytes;
};

/* In the list of the session. */
struct replay *replay_create(struct mcp_session *session, bool is_general);
void replay_destroy(struct replay *stream);
/* Keep and, if somebody listens, write one message. `last`: the stream is over with it. */
void replay_send(struct replay *stream, struct str message, bool last);
/* First event, for clients that know it: an id to come back with. */
void replay_prime(struct replay *stream, int64_t retry_ms);
/* Write what came after `seq` to the exchange. */
void replay_resume(struct replay *stream, uint64_t seq, struct http_exchange *x);
/* The stream and position named by a Last-Event-ID, or NULL. */
struct replay *replay_find(struct mcp_session *session, struct str last_event_id, uint64_t *seq);
/* Drop streams that nobody can want any more. Returns when to look again. */
int64_t replay_expire(struct mcp_session *session, int64_t now);
/* `event: message` with an optional id. */
void sse_write(struct buf *out, struct str id, struct str message);

#endif
