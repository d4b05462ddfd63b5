/* http/server.h - inside of the HTTP room: the server, its connections, one exchange.
 *
 * Threads: the *http* threads (loop.c) run libmicrohttpd, which parses and sends; the *watcher* accepts, keeps the
 * deadlines, notices hang-ups of suspended connections and drains refused ones; the application
 * answers from any thread.
 *
 * Invariants
 * (1) Locks are taken in this order: exchange, server, loop, libmicrohttpd's own. libmicrohttpd calls us
 *     with none of its locks but the response's, which nobody takes while holding one of ours.
 * (2) A connection is in the table from accept until its CLOSED notification, which removes it under
 *     the server lock; so whoever holds that lock may shut down a descriptor found in the table.
 * (3) An exchange is suspended and marked `suspended` under its lock, in that order, and whoever
 *     clears the mark resumes it, once. A suspended connection cannot be freed.
 * (4) `connection` and `conn` of an exchange are NULL from its completion on. Nothing below touches the
 *     server of such an exchange, so the application may hold it longer than the server lives. */
#ifndef DAIS_HTTP_SERVER_H
#define DAIS_HTTP_SERVER_H

#include "base/limits.h"
#include "http/framing.h"
#include "http/http.h"
#include "http/listen.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum conn_phase {
	CONN_TRANSIT, /* accepted, not yet libmicrohttpd's: its descriptor may be gone, never touch it */
	CONN_HEAD,
	CONN_BODY,
	CONN_WAITING, /* for the application; no deadline here */
	CONN_SENDING, /* the peer must drain */
	CONN_IDLE,    /* between requests */
};

struct loop;

struct conn {
	/* owner: the table, under the server lock */
	struct conn *next, *previous;
	int fd;
	uint32_t generation; /* tells this use of the descriptor number from the next */
	enum conn_phase phase;
	int64_t since;	  /* when the phase began, monotonic ms */
	size_t body_got;  /* bytes of the body so far */
	uint64_t acked;	  /* bytes the peer's kernel took, when last looked at */
	int64_t acked_at; /* when that last grew */
	bool watched;	  /* known to the watcher's epoll */
	bool armed;	  /* … which will report its next hang-up */
	bool cut;	  /* shut down by us */
	bool linger;	  /* refused with bytes outstanding: drain before closing */
	struct http_exchange *exchange;
	struct conn *next_accepted; /* owner: the loop */
	/* constant */
	struct loop *loop; /* that serves it */
	struct sockaddr_storage peer;
	char peer_text[INET6_ADDRSTRLEN];
	bool is_loopback;
};

struct lingering {
	int fd; /* -1: free */
	int64_t until;
	size_t left_bytes;
};

struct http_server {
	struct http_options options; /* defaults filled in */
	struct arena *arena;
	struct listen_sockets *listeners;
	size_t listener_count;
	struct str *urls;
	const char *cert, *key; /* PEM text, or NULL */
	struct loop **loops; /* http.threads of them, NULL before http_start */
	unsigned next_loop;  /* owner: watcher thread */

	/* owner: watcher thread */
	pthread_t watcher;
	bool has_watcher;
	int epoll_fd;
	int wake_fd;
	int spare_fd; /* given up for the one accept that tells a client there is no descriptor left */
	bool accepting;
	bool accept_paused;
	struct lingering lingering[LIMIT_HTTP_LINGERING];
	size_t lingering_count;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* an exchange ended, or the watcher stopped accepting */
	struct conn *conns;
	struct conn **by_fd;
	size_t by_fd_size;
	unsigned conn_count;
	unsigned exchange_count;
	uint32_t next_generation;
	int linger_queue[LIMIT_HTTP_LINGERING]; /* from the http thread to the watcher */
	size_t linger_queued;
	bool stopped_accepting;

	atomic_bool stopping; /* new requests are refused */
	atomic_bool cutting;  /* nothing may be suspended any more */
	atomic_bool quit;     /* watcher: end */
	atomic_uint_fast64_t requests, refused, timed_out, streams_open;
};

struct stream {
	struct buf queue;
	size_t taken;	  /* bytes of queue already given to the connection */
	bool is_open;
	bool is_ended;	  /* flush, then end the body */
	bool is_events;	  /* gets heartbeats */
	bool is_lean;	  /* the connection's buffer was given back */
};

struct http_exchange {
	pthread_mutex_t lock;
	atomic_uint refs;

	/* owner: http thread, until on_request; constant afterwards */
	struct arena *arena;
	struct http_server *server;
	enum { STEP_HEAD, STEP_BODY, STEP_ANSWER } step;
	struct str method, target, path, query, peer;
	bool is_loopback;
	struct framing_field *fields;
	size_t field_count;
	struct framing framing;
	size_t max_body;
	struct buf body;
	void *data;

	/* under lock */
	struct MHD_Connection *connection;
	struct conn *conn;
	bool suspended;
	bool answered;
	bool gone; /* the peer, or we gave up on it */
	struct MHD_Response *response; /* waits to be queued */
	struct http_exchange *next_woken; /* owner: the loop */
	unsigned status;
	struct stream stream;
	void (*hangup)(struct http_exchange *x, void *context);
	void *hangup_context;
};

/* ---- loop.c: one http thread ---- */
struct loop *loop_create(struct http_server *server);
/* The loop owns the daemon from here on, also when it fails. */
int loop_start(struct loop *loop, struct MHD_Daemon *daemon, struct failure *f);
/* Ends the thread, and all that is still connected. Accepts NULL. */
void loop_destroy(struct loop *loop);
/* A connection that was accepted, in transit. Any thread. */
void loop_add(struct loop *loop, struct conn *conn);
/* An exchange that was suspended and whose mark was cleared: under its lock. */
void loop_resume(struct http_exchange *x);

/* ---- conn.c: the table of connections, any thread ---- */
struct conn *conn_add(struct http_server *server, int fd, const struct sockaddr_storage *peer);
void conn_remove(struct http_server *server, struct conn *conn);
struct conn *conn_find(struct http_server *server, int fd);
bool conn_is_over_limit(struct http_server *server, const struct sockaddr_storage *peer);
void conn_enter(struct http_server *server, struct conn *conn, enum conn_phase phase);
void conn_attach(struct http_server *server, struct conn *conn, struct http_exchange *x);
void conn_detach(struct http_server *server, struct conn *conn);
/* Shut the descriptor down; libmicrohttpd then sees the end and closes. */
void conn_cut(struct http_server *server, struct conn *conn);
/* Answer past libmicrohttpd, which cannot answer in the middle of a body; plain connections only. Then
 * cut for good (`linger` false) or let the peer read it while we drain what it still sends. */
void conn_refuse_raw(struct http_server *server, struct conn *conn, int status, bool linger);
/* Tell the watcher to report a hang-up of this connection. */
void conn_watch(struct http_server *server, struct conn *conn);
void conn_is_closing(struct http_server *server, struct conn *conn);
void conn_destroy_all(struct http_server *server);

/* ---- deadline.c: watcher thread ---- */
void deadline_sweep(struct http_server *server, int64_t now);

/* ---- watcher.c ---- */
int watcher_start(struct http_server *server, struct failure *f);
void watcher_wake(struct http_server *server);
void watcher_stop(struct http_server *server);
uint64_t watcher_tag(const struct conn *conn);

/* ---- exchange.c: the callbacks of libmicrohttpd ---- */
void *exchange_begin(void *server, const char *target, struct MHD_Connection *connection);
enum MHD_Result exchange_step(void *server, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_size, void **context);
void exchange_completed(void *server, struct MHD_Connection *connection, void **context,
	enum MHD_RequestTerminationCode code);
/* The peer of a suspended exchange hung up: let libmicrohttpd find out. */
void exchange_hung_up(struct http_exchange *x);
/* Give up on the exchange whatever its state. */
void exchange_give_up(struct http_exchange *x);

/* ---- answer.c ---- */
/* {"ok":false,"error":{…}} for an answer that the application does not make. */
struct str answer_error_body(struct arena *arena, int status, const char *reason);
/* The whole HTTP/1.1 message of such an answer. */
struct str answer_raw(struct arena *arena, int status);
void answer_refuse(struct http_exchange *x, int status, const char *reason);
void answer_add_fields(struct MHD_Response *response, const struct http_field *fields, size_t n);
/* Under the exchange's lock: take `response`, wake the connection when it sleeps. */
void answer_publish(struct http_exchange *x, int status, struct MHD_Response *response);

/* ---- stream.c ---- */
void stream_heartbeat(struct http_exchange *x);
void stream_finish(struct stream *stream);

/* ---- tls.c ---- */
/* Read and check certificate and key; FAIL_BAD_CONFIGURATION names the file. */
int tls_load(struct http_server *server, struct failure *f);

#endif
