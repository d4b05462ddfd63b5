/* mcp/stream.h - one server-sent event stream of a legacy session, with what a client may ask for again.
 *
 * Guarded by the lock of its session. Event ids are <stream>.<seq> in base 36. The exchange it is written
 * to comes and goes; without one, events are only kept. */
#ifndef DAIS_MCP_STREAM_H
#define DAIS_MCP_STREAM_H

#include "base/str.h"

#include <stdint.h>

struct mcp_session;
struct http_exchange;

struct event {
	uint64_t seq;
	char *text; /* heap: the whole event as it goes over the wire */
	size_t n;
};

struct stream {
	struct stream *next;
	uint64_t serial;
	bool is_general; /* of a GET: takes what belongs to no request */
	bool is_over;	 /* its response was sent */
	int64_t over_at; /* monotonic: when it was over or lost its exchange */
	uint64_t seq;
	struct http_exchange *x; /* borrowed from whoever attached it; NULL: nobody listens */
	struct event *events;	 /* ring */
	size_t first;
	size_t count;
	size_t bytes;
};

/* In the list of the session. */
struct stream *stream_create(struct mcp_session *session, bool is_general);
void stream_destroy(struct stream *stream);
/* Keep and, if somebody listens, write one message. `last`: the stream is over with it. */
void stream_send(struct stream *stream, struct str message, bool last);
/* First event, for clients that know it: an id to come back with. */
void stream_prime(struct stream *stream, int64_t retry_ms);
/* Write what came after `seq` to the exchange. */
void stream_replay(struct stream *stream, uint64_t seq, struct http_exchange *x);
/* The stream and position named by a Last-Event-ID, or NULL. */
struct stream *stream_find(struct mcp_session *session, struct str last_event_id, uint64_t *seq);
/* Drop streams that nobody can want any more. Returns when to look again. */
int64_t stream_expire(struct mcp_session *session, int64_t now);
/* `event: message` with an optional id. */
void event_write(struct buf *out, struct str id, struct str message);

#endif
