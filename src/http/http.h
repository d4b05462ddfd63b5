/* http/http.h - the door of the HTTP room: a listener that knows nothing of MCP or of our tools.
 *
 * One libmicrohttpd epoll thread (settable) parses; the application answers at once or later, from
 * any thread. An exchange is one request and its answer. Order for each request: framing filter and
 * head limits (400, 414, 431, 413), then `on_head` (the application checks Host, Origin, credential,
 * route, method, and says how large a body may be), then the body (413, 408), then `on_request`.
 * Absolute deadlines end slow heads and bodies; a client that hangs up while its answer is pending is
 * noticed at once.
 *
 * The room answers by itself, with {"ok":false,"error":{"code","message"}} and a close: doubtful framing,
 * heads and bodies over their limit, a body that comes too slowly (408), too many connections and a server
 * that stops (503). What the parser below refuses before we see it (bytes that are no HTTP at all) gets
 * the parser's own small HTML text. Over TLS, 408, a chunked 413 and the 503 of a full server are a plain
 * close. See http/framing.h for what the parser hides from the filter.
 *
 * A client that shuts down its sending side while an answer is pending counts as gone: the kernel
 * shows the same for a client that died, and none we know of does it. */
#ifndef DAIS_HTTP_HTTP_H
#define DAIS_HTTP_HTTP_H

#include "base/failure.h"
#include "base/str.h"

#include <stdint.h>

struct http_server;
struct http_exchange;

struct http_options {
	const struct str *listen; /* HOST:PORT or [v6]:PORT each; port 0 picks one */
	size_t listen_count;
	const char *tls_cert_file; /* PEM; NULL: plain HTTP */
	const char *tls_key_file;
	unsigned threads;	   /* 0: 1 */
	unsigned max_connections;  /* 0: 2048; lowered to what the limit of open files allows */
	unsigned max_per_peer;	   /* 0: 64; loopback is exempt */
	int64_t head_ms;	   /* 0: 10 000, until the head is complete */
	int64_t body_ms;	   /* 0: 30 000, for the body after the head; also 1 KiB/s after 5 s */
	int64_t idle_ms;	   /* 0: 75 000, between requests of one connection */
	int64_t stall_ms;	   /* 0: 30 000, a peer that takes no byte of its answer or stream */
	int64_t heartbeat_ms;	   /* 0: 15 000, comment line on a silent event stream */
	size_t stream_queue_bytes; /* 0: 1 MiB per stream */

	/* Head is complete, body is not read. Return 0 and set *max_body, or answer (http_reply) at once
	 * and return -1; then the body is not read and the connection closes when one was announced. */
	int (*on_head)(struct http_exchange *x, void *app, size_t *max_body);
	/* Request is complete. Must answer, or keep the exchange (http_keep) and answer later; a request
	 * that is neither answered nor kept is answered 500. Waiting for an answer has no deadline here. */
	void (*on_request)(struct http_exchange *x, void *app);
	/* May be NULL. The room refuses this request (400, 413, 414, 431, 500, 503): answer it in the
	 * application's own words and return true, or return false. The head may be doubtful. */
	bool (*on_refuse)(struct http_exchange *x, void *app, int status, const char *reason);
	void *app;
};

/* Whether this may be a listen address, HOST:PORT or [IPv6]:PORT; nothing is opened. BAD_CONFIGURATION says why not. */
int http_check_listen(struct str address, struct failure *f);
/* Binds every address before it returns; FAIL_CANNOT_CREATE names the one that failed, why, and the
 * pid of the holder where /proc tells. Accepts only after http_start. */
int http_open(const struct http_options *options, struct http_server **out, struct failure *f);
int http_start(struct http_server *server, struct failure *f);
/* "http://127.0.0.1:3001" of address i, with the real port. */
struct str http_url(const struct http_server *server, size_t i);
/* Stop accepting; then wait until exchanges are answered, at most grace_ms; then cut. Streams must be
 * ended by the application first (they get at most grace_ms to flush). Accepts NULL. */
void http_stop(struct http_server *server, int64_t grace_ms);
void http_close(struct http_server *server);
struct http_counts {
	uint64_t requests, connections_open, streams_open, refused, timed_out;
};
void http_count(struct http_server *server, struct http_counts *out);

/* ---- the request; valid while the exchange is kept ---- */
struct arena *http_arena(struct http_exchange *x); /* freed with the exchange; one thread at a time */
struct str http_method(const struct http_exchange *x);
struct str http_path(const struct http_exchange *x);  /* as sent, without query; not decoded */
struct str http_query(const struct http_exchange *x); /* raw, without '?' */
/* First value, or absent. `count` (may be NULL) gets how often it was sent. */
struct str http_header(const struct http_exchange *x, const char *name, size_t *count);
/* Value of a query parameter, percent-decoded, or absent. */
struct str http_query_value(const struct http_exchange *x, const char *name);
void http_each_header(const struct http_exchange *x,
	void (*each)(void *context, struct str name, struct str value), void *context);
struct str http_body(const struct http_exchange *x);
struct str http_peer(const struct http_exchange *x); /* address text without port */
bool http_peer_is_loopback(const struct http_exchange *x);
/* One pointer of the application. */
void http_set_data(struct http_exchange *x, void *data);
void *http_data(const struct http_exchange *x);

/* ---- the answer; exactly one of reply or stream, from any thread ---- */
struct http_field {
	const char *name;
	struct str value;
};

/* Take a reference so that the exchange outlives on_request; each keep needs one release. */
void http_keep(struct http_exchange *x);
void http_release(struct http_exchange *x);
/* `body` is copied. Content-Length is set; Date and the like too. A field whose value is not legal (line
 * ends) is left out and logged. Nothing happens when the peer is gone. */
void http_reply(struct http_exchange *x, int status, const struct http_field *fields, size_t n,
	struct str body);

/* An open-ended body (server-sent events). Head leaves at once. */
void http_stream_begin(struct http_exchange *x, int status, const struct http_field *fields, size_t n);
/* Queue bytes. 0, or -1 when the peer is gone or the queue is over its limit (the stream is then cut). */
int http_stream_write(struct http_exchange *x, struct str bytes);
/* Bytes not yet taken by the connection. */
size_t http_stream_pending(struct http_exchange *x);
/* Flush what is queued and end the body. */
void http_stream_end(struct http_exchange *x);

/* Called once, on a thread of the HTTP room, when the peer hangs up before the answer is complete, or
 * the stream is cut, also by http_stop. The callback may not block. Set it while the exchange is kept;
 * when the peer is gone already it is called at once, on the caller's thread. NULL takes it back, but
 * does not wait for one that is running: what `context` points to must outlive that. A kept exchange must
 * be answered or ended, and released, after it too. */
void http_on_hangup(struct http_exchange *x, void (*hangup)(struct http_exchange *x, void *context),
	void *context);

#endif
