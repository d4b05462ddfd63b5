/* Absolute deadlines. libmicrohttpd's own timeout is of inactivity only: one byte a second keeps a
 * connection for ever. Nor does it time a suspended connection; that wait is the application's. */
#include "http/server.h"

#include "base/clock.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>

/* A body may start slowly; after this the rate counts. */
#define BODY_GRACE_MS 5000
/* Heads this young do not count as a flood: a burst of honest clients looks the same. */
#define HEADLESS_MIN_MS 1000

/* <linux/tcp.h> has bytes_acked, but may not be included beside <netinet/tcp.h>; this is the layout of
 * struct tcp_info up to that member, which is kernel ABI. */
struct tcp_progress {
	struct tcp_info info;
	uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
};

/* Did the peer's kernel take bytes since we last looked? */
static bool peer_drains(struct conn *conn, int64_t now)
{
	struct tcp_progress progress = {0};
	socklen_t size = sizeof(progress);

	if (getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &progress, &size) != 0)
		return false;
	if (progress.bytes_acked == conn->acked)
		return false;
	conn->acked = progress.bytes_acked;
	conn->acked_at = now;
	return true;
}

static bool is_stalled(const struct http_options *options, struct conn *conn, int64_t now)
{
	if (now - conn->acked_at < options->stall_ms / 4)
		return false;
	return !peer_drains(conn, now) && now - conn->acked_at >= options->stall_ms;
}

static bool is_dripping(const struct conn *conn, int64_t age)
{
	if (age <= BODY_GRACE_MS)
		return false;
	return (int64_t)conn->body_got * 1000 < (age - BODY_GRACE_MS) * LIMIT_HTTP_BODY_RATE;
}

static bool is_due(struct http_server *server, struct conn *conn, int64_t now)
{
	const struct http_options *options = &server->options;
	int64_t age = now - conn->since;

	switch (conn->phase) {
	case CONN_HEAD:
		return age >= options->head_ms || atomic_load(&server->stopping);
	case CONN_BODY:
		return age >= options->body_ms || is_dripping(conn, age);
	case CONN_IDLE:
		return age >= options->idle_ms || atomic_load(&server->stopping);
	case CONN_SENDING:
		return is_stalled(options, conn, now);
	case CONN_TRANSIT:
	case CONN_WAITING:
		break;
	}
	return false;
}

/* The http thread enters the next phase under the server lock before it sends, so in CONN_BODY it has
 * not begun to answer and a 408 of ours cannot fall into its text. Slow heads get none: browsers open
 * connections on suspicion and would show it for the next request. */
static void expire(struct http_server *server, struct conn *conn)
{
	if (conn->phase != CONN_IDLE && !atomic_load(&server->stopping))
		atomic_fetch_add(&server->timed_out, 1);
	if (conn->phase == CONN_BODY) {
		conn_refuse_raw(server, conn, 408, false);
		return;
	}
	conn->cut = true;
	(void)shutdown(conn->fd, SHUT_RDWR); /* may be down already */
}

/* Its bytes lie in the kernel: we are late, not the peer. */
static bool is_unread(const struct conn *conn)
{
	int bytes = 0;

	return ioctl(conn->fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

static bool is_headless(const struct conn *conn, int64_t now)
{
	return conn->phase == CONN_HEAD && !conn->cut && now - conn->since >= HEADLESS_MIN_MS && !is_unread(conn);
}

static int by_age(const void *a, const void *b)
{
	const struct conn *const *first = a;
	const struct conn *const *second = b;

	return ((*first)->since > (*second)->since) - ((*first)->since < (*second)->since);
}

/* Oldest first, so that a flood of silent connections cannot keep honest ones out. Each is asked once: the
 * lock is held, and looking for the oldest anew for each that goes took seconds at 2,000 connections. */
static void thin_headless(struct http_server *server, int64_t now)
{
	struct conn **headless = NULL;
	size_t n = 0;

	for (struct conn *at = server->conns; at != NULL; at = at->next) {
		if (!is_headless(at, now))
			continue;
		if (headless == NULL)
			headless = calloc(server->conn_count, sizeof(struct conn *));
		if (headless == NULL)
			abort();
		headless[n++] = at;
	}
	if (n > LIMIT_HTTP_HEADLESS)
		qsort(headless, n, sizeof(struct conn *), by_age);
	for (size_t i = 0; i + LIMIT_HTTP_HEADLESS < n; i++)
		expire(server, headless[i]);
	free(headless);
}

static bool is_silent(struct http_server *server, const struct conn *conn, int64_t now)
{
	return conn->exchange != NULL && conn->phase == CONN_WAITING
		&& now - conn->since >= server->options.heartbeat_ms;
}

/* References to the streams that have been silent for too long; `*out` is the caller's to free. */
static size_t collect_silent(struct http_server *server, int64_t now, struct http_exchange ***out)
{
	struct http_exchange **list = NULL;
	size_t n = 0;

	for (struct conn *at = server->conns; at != NULL; at = at->next) {
		if (!is_silent(server, at, now))
			continue;
		if (list == NULL)
			list = calloc(server->conn_count, sizeof(struct http_exchange *));
		if (list == NULL)
			abort();
		http_keep(at->exchange);
		list[n++] = at->exchange;
	}
	*out = list;
	return n;
}

void deadline_sweep(struct http_server *server, int64_t now)
{
	struct http_exchange **silent;
	struct conn *next;
	size_t n;

	(void)pthread_mutex_lock(&server->lock);
	for (struct conn *at = server->conns; at != NULL; at = next) {
		next = at->next;
		if (!at->cut && is_due(server, at, now))
			expire(server, at);
	}
	thin_headless(server, now);
	n = collect_silent(server, now, &silent);
	(void)pthread_mutex_unlock(&server->lock);
	for (size_t i = 0; i < n; i++) {
		stream_heartbeat(silent[i]);
		http_release(silent[i]);
	}
	free(silent);
}
