/* The watcher thread: accepts, notices hang-ups of suspended connections (libmicrohttpd takes those out
 * of its epoll), drains refused connections, and sweeps the deadlines. */
#include "http/server.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LINGER_MS 2000
#define ACCEPTS_AT_ONCE 64
#define EVENTS_AT_ONCE 64

/* What an epoll event is about: kind, generation (24 bits), descriptor or index. */
enum tag { TAG_WAKE, TAG_LISTEN, TAG_CONN, TAG_LINGER };

#define TAG(kind, generation, number) \
	((uint64_t)(kind) << 56 | ((uint64_t)(generation) & 0xffffff) << 32 | (uint32_t)(number))

uint64_t watcher_tag(const struct conn *conn)
{
	return TAG(TAG_CONN, conn->generation, conn->fd);
}

void watcher_wake(struct http_server *server)
{
	uint64_t one = 1;

	(void)!write(server->wake_fd, &one, sizeof(one)); /* full means that it is awake anyway */
}

/* ---- draining what was refused ---- */

static void linger_end(struct http_server *server, struct lingering *slot)
{
	(void)close(slot->fd); /* what it still holds is not wanted */
	slot->fd = -1;
	server->lingering_count--;
}

/* Owns fd from here on. The peer learns at once that nothing more comes. */
static void linger_begin(struct http_server *server, int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP};
	size_t i = 0;

	while (i < LIMIT_HTTP_LINGERING && server->lingering[i].fd >= 0)
		i++;
	event.data.u64 = TAG(TAG_LINGER, 0, i);
	(void)shutdown(fd, SHUT_WR); /* may be down already */
	if (i == LIMIT_HTTP_LINGERING || epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		(void)close(fd); /* too many at once: a reset is the lesser evil */
		return;
	}
	server->lingering[i] =
		(struct lingering){.fd = fd, .until = clock_mono_ms() + LINGER_MS, .left_bytes = LIMIT_HTTP_LINGER_BYTES};
	server->lingering_count++;
}

static void linger_drain(struct http_server *server, struct lingering *slot)
{
	char scratch[16384];
	ssize_t n;

	if (slot->fd < 0)
		return;
	for (int i = 0; i < 16; i++) {
		n = recv(slot->fd, scratch, sizeof(scratch), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0 || (size_t)n >= slot->left_bytes) {
			linger_end(server, slot);
			return;
		}
		slot->left_bytes -= (size_t)n;
	}
}

static void linger_sweep(struct http_server *server, int64_t now)
{
	for (size_t i = 0; i < LIMIT_HTTP_LINGERING && server->lingering_count > 0; i++)
		if (server->lingering[i].fd >= 0 && now >= server->lingering[i].until)
			linger_end(server, &server->lingering[i]);
}

static void take_lingering(struct http_server *server)
{
	int fds[LIMIT_HTTP_LINGERING];
	size_t n;

	(void)pthread_mutex_lock(&server->lock);
	n = server->linger_queued;
	memcpy(fds, server->linger_queue, n * sizeof(fds[0]));
	server->linger_queued = 0;
	(void)pthread_mutex_unlock(&server->lock);
	for (size_t i = 0; i < n; i++)
		linger_begin(server, fds[i]);
}

/* ---- accepting ---- */

static void refuse_connection(struct http_server *server, int fd)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str message = answer_raw(arena, 503);

	atomic_fetch_add(&server->refused, 1);
	if (server->cert == NULL)
		(void)send(fd, message.p, message.n, MSG_NOSIGNAL | MSG_DONTWAIT); /* best effort */
	linger_begin(server, fd);
}

static void set_options(const struct http_server *server, int fd)
{
	unsigned stall_ms = (unsigned)server->options.stall_ms;
	int on = 1;

	/* Both are refinements: a socket without them still works. The second ends connections whose
	 * peer vanished without a word, suspended ones too. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &stall_ms, sizeof(stall_ms));
}

static void admit_connection(struct http_server *server, int fd, const struct sockaddr_storage *peer)
{
	struct conn *conn;

	if (conn_is_over_limit(server, peer)) {
		refuse_connection(server, fd);
		return;
	}
	set_options(server, fd);
	conn = conn_add(server, fd, peer);
	conn->loop = server->loops[server->next_loop++ % server->options.threads];
	loop_add(conn->loop, conn);
}

static void listen_all(struct http_server *server, int operation, uint32_t events)
{
	for (size_t i = 0; i < server->listener_count; i++) {
		for (size_t k = 0; k < server->listeners[i].n; k++) {
			struct epoll_event event = {.events = events};

			event.data.u64 = TAG(TAG_LISTEN, 0, server->listeners[i].fds[k]);
			if (epoll_ctl(server->epoll_fd, operation, server->listeners[i].fds[k], &event) != 0)
				log_line(LOG_ERROR, "http", "cannot watch a listener", {"errno", LOG_INT(errno)});
		}
	}
}

/* No descriptor is left: give up the spare one to tell one client, then pause until the next sweep,
 * since a listener that cannot be accepted from would keep us spinning. */
static void refuse_without_descriptor(struct http_server *server, int listener)
{
	int fd;

	if (server->spare_fd >= 0) {
		(void)close(server->spare_fd); /* /dev/null */
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			refuse_connection(server, fd);
		server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	server->accept_paused = true;
	listen_all(server, EPOLL_CTL_MOD, 0);
}

static void accept_some(struct http_server *server, int listener)
{
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		struct sockaddr_storage peer = {0};
		socklen_t size = sizeof(peer);
		int fd = accept4(listener, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			admit_connection(server, fd, &peer);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			refuse_without_descriptor(server, listener);
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

static void stop_accepting(struct http_server *server)
{
	for (size_t i = 0; i < server->listener_count; i++)
		listen_close(&server->listeners[i]);
	server->accepting = false;
	(void)pthread_mutex_lock(&server->lock);
	server->stopped_accepting = true;
	(void)pthread_cond_broadcast(&server->changed);
	(void)pthread_mutex_unlock(&server->lock);
}

/* ---- the loop ---- */

static void hang_up(struct http_server *server, uint64_t tag)
{
	size_t fd = (uint32_t)tag;
	struct http_exchange *x = NULL;
	struct conn *conn = NULL;

	(void)pthread_mutex_lock(&server->lock);
	if (fd < server->by_fd_size)
		conn = server->by_fd[fd];
	if (conn != NULL && watcher_tag(conn) == tag) {
		conn->armed = false;
		x = conn->exchange;
	}
	if (x != NULL)
		http_keep(x);
	(void)pthread_mutex_unlock(&server->lock);
	if (x == NULL)
		return;
	exchange_hung_up(x);
	http_release(x);
}

static void handle(struct http_server *server, uint64_t tag)
{
	uint64_t count;

	switch ((enum tag)(tag >> 56)) {
	case TAG_WAKE:
		(void)!read(server->wake_fd, &count, sizeof(count)); /* only empties it */
		take_lingering(server);
		break;
	case TAG_LISTEN:
		if (server->accepting)
			accept_some(server, (int)(uint32_t)tag);
		break;
	case TAG_CONN:
		hang_up(server, tag);
		break;
	case TAG_LINGER:
		linger_drain(server, &server->lingering[(uint32_t)tag]);
		break;
	}
}

static bool has_work(struct http_server *server)
{
	bool has;

	(void)pthread_mutex_lock(&server->lock);
	has = server->conns != NULL || server->lingering_count > 0 || server->accept_paused;
	(void)pthread_mutex_unlock(&server->lock);
	return has;
}

/* A tenth of the shortest deadline, within 10 to 250 ms: late by little, and cheap. */
static int tick_ms(const struct http_options *options)
{
	const int64_t all[] = {
		options->head_ms, options->body_ms, options->idle_ms, options->stall_ms, options->heartbeat_ms};
	int64_t least = 2500;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] < least)
			least = all[i];
	return least < 100 ? 10 : (int)(least / 10);
}

static void *watch(void *argument)
{
	struct http_server *server = argument;
	int tick = tick_ms(&server->options);
	struct epoll_event events[EVENTS_AT_ONCE];
	int64_t swept_at = 0;

	while (!atomic_load(&server->quit)) {
		int n = epoll_wait(server->epoll_fd, events, EVENTS_AT_ONCE, has_work(server) ? tick : -1);
		int64_t now;

		for (int i = 0; i < n; i++)
			handle(server, events[i].data.u64);
		if (server->accepting && atomic_load(&server->stopping))
			stop_accepting(server);
		now = clock_mono_ms();
		if (now - swept_at < tick)
			continue;
		swept_at = now;
		deadline_sweep(server, now);
		linger_sweep(server, now);
		if (server->accept_paused && server->accepting)
			listen_all(server, EPOLL_CTL_MOD, EPOLLIN);
		server->accept_paused = false;
	}
	return NULL;
}

/* Signals belong to the main program. */
static int start_thread(struct http_server *server)
{
	sigset_t all, before;
	int error;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&server->watcher, NULL, watch, server);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

int watcher_start(struct http_server *server, struct failure *f)
{
	struct epoll_event event = {.events = EPOLLIN};

	for (size_t i = 0; i < LIMIT_HTTP_LINGERING; i++)
		server->lingering[i].fd = -1;
	event.data.u64 = TAG(TAG_WAKE, 0, 0);
	if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, server->wake_fd, &event) != 0)
		return fail_errno(f, "watch the wake descriptor");
	listen_all(server, EPOLL_CTL_ADD, EPOLLIN);
	server->accepting = true;
	errno = start_thread(server);
	if (errno != 0)
		return fail_errno(f, "start the watcher thread");
	(void)pthread_setname_np(server->watcher, "http-watch"); /* for people who look at threads */
	server->has_watcher = true;
	return 0;
}

void watcher_stop(struct http_server *server)
{
	if (!server->has_watcher)
		return;
	atomic_store(&server->quit, true);
	watcher_wake(server);
	(void)pthread_join(server->watcher, NULL);
	server->has_watcher = false;
	for (size_t i = 0; i < LIMIT_HTTP_LINGERING; i++)
		if (server->lingering[i].fd >= 0)
			linger_end(server, &server->lingering[i]);
}
