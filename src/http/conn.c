/* The table of connections: who is connected, in which phase, since when. */
#include "http/server.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <fcntl.h>
#include <sys/ioctl.h>

static bool is_loopback(const struct sockaddr_storage *peer)
{
	const struct sockaddr_in6 *v6 = (const void *)peer;
	const struct sockaddr_in *v4 = (const void *)peer;

	if (peer->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)
			|| (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
	return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
}

static bool same_peer(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr);
	return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

static void write_peer(struct conn *conn)
{
	const struct sockaddr_in6 *v6 = (const void *)&conn->peer;
	const struct sockaddr_in *v4 = (const void *)&conn->peer;
	const void *address = &v4->sin_addr;

	if (conn->peer.ss_family == AF_INET6)
		address = &v6->sin6_addr;
	if (inet_ntop(conn->peer.ss_family, address, conn->peer_text, sizeof(conn->peer_text)) == NULL)
		conn->peer_text[0] = '\0';
	conn->is_loopback = is_loopback(&conn->peer);
}

bool conn_is_over_limit(struct http_server *server, const struct sockaddr_storage *peer)
{
	unsigned same = 0;
	bool over;

	(void)pthread_mutex_lock(&server->lock);
	over = server->conn_count >= server->options.max_connections;
	if (!over && !is_loopback(peer))
		for (const struct conn *at = server->conns; at != NULL; at = at->next)
			same += same_peer(&at->peer, peer);
	(void)pthread_mutex_unlock(&server->lock);
	return over || same >= server->options.max_per_peer;
}

static void unlink_conn(struct http_server *server, struct conn *conn)
{
	if (conn->previous != NULL)
		conn->previous->next = conn->next;
	else
		server->conns = conn->next;
	if (conn->next != NULL)
		conn->next->previous = conn->previous;
	server->by_fd[conn->fd] = NULL;
	server->conn_count--;
	free(conn);
}

static void make_room(struct http_server *server, int fd)
{
	size_t size = server->by_fd_size == 0 ? 256 : server->by_fd_size;

	if ((size_t)fd < server->by_fd_size)
		return;
	while (size <= (size_t)fd)
		size *= 2;
	server->by_fd = realloc(server->by_fd, size * sizeof(struct conn *));
	if (server->by_fd == NULL)
		abort();
	memset(server->by_fd + server->by_fd_size, 0,
		(size - server->by_fd_size) * sizeof(struct conn *));
	server->by_fd_size = size;
}

struct conn *conn_add(struct http_server *server, int fd, const struct sockaddr_storage *peer)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL)
		abort();
	conn->fd = fd;
	conn->peer = *peer;
	conn->phase = CONN_TRANSIT;
	conn->since = clock_mono_ms();
	write_peer(conn);
	(void)pthread_mutex_lock(&server->lock);
	make_room(server, fd);
	/* Was dropped by libmicrohttpd before its STARTED notification: the number is in use again. */
	if (server->by_fd[fd] != NULL)
		unlink_conn(server, server->by_fd[fd]);
	conn->generation = ++server->next_generation;
	conn->next = server->conns;
	if (conn->next != NULL)
		conn->next->previous = conn;
	server->conns = conn;
	server->by_fd[fd] = conn;
	server->conn_count++;
	(void)pthread_mutex_unlock(&server->lock);
	return conn;
}

void conn_remove(struct http_server *server, struct conn *conn)
{
	(void)pthread_mutex_lock(&server->lock);
	unlink_conn(server, conn);
	(void)pthread_mutex_unlock(&server->lock);
}

struct conn *conn_find(struct http_server *server, int fd)
{
	struct conn *conn = NULL;

	(void)pthread_mutex_lock(&server->lock);
	if (fd >= 0 && (size_t)fd < server->by_fd_size)
		conn = server->by_fd[fd];
	(void)pthread_mutex_unlock(&server->lock);
	return conn;
}

void conn_enter(struct http_server *server, struct conn *conn, enum conn_phase phase)
{
	int64_t now = clock_mono_ms();

	(void)pthread_mutex_lock(&server->lock);
	conn->phase = phase;
	conn->since = now;
	conn->acked_at = now;
	if (phase == CONN_BODY)
		conn->body_got = 0;
	(void)pthread_mutex_unlock(&server->lock);
}

void conn_attach(struct http_server *server, struct conn *conn, struct http_exchange *x)
{
	int64_t now = clock_mono_ms();

	(void)pthread_mutex_lock(&server->lock);
	conn->exchange = x;
	/* The first head of a connection has its time since accept. */
	if (conn->phase != CONN_HEAD) {
		conn->phase = CONN_HEAD;
		conn->since = now;
	}
	server->exchange_count++;
	(void)pthread_mutex_unlock(&server->lock);
}

void conn_detach(struct http_server *server, struct conn *conn)
{
	int64_t now = clock_mono_ms();

	(void)pthread_mutex_lock(&server->lock);
	conn->exchange = NULL;
	conn->phase = CONN_IDLE;
	conn->since = now;
	server->exchange_count--;
	(void)pthread_cond_broadcast(&server->changed);
	(void)pthread_mutex_unlock(&server->lock);
}

void conn_cut(struct http_server *server, struct conn *conn)
{
	(void)pthread_mutex_lock(&server->lock);
	conn->cut = true;
	(void)shutdown(conn->fd, SHUT_RDWR); /* may be down already */
	(void)pthread_mutex_unlock(&server->lock);
}

void conn_refuse_raw(struct http_server *server, struct conn *conn, int status, bool linger)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str message = answer_raw(arena, status);

	/* Best effort: a peer whose window is full does not get to read it. */
	if (server->cert == NULL)
		(void)send(conn->fd, message.p, message.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (linger) {
		conn->linger = true;
		return;
	}
	conn->cut = true;
	(void)shutdown(conn->fd, SHUT_RDWR); /* may be down already */
}

void conn_watch(struct http_server *server, struct conn *conn)
{
	struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT};

	int operation;

	(void)pthread_mutex_lock(&server->lock);
	operation = conn->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	event.data.u64 = watcher_tag(conn);
	if (!conn->armed && epoll_ctl(server->epoll_fd, operation, conn->fd, &event) == 0)
		conn->watched = conn->armed = true;
	(void)pthread_mutex_unlock(&server->lock);
}

/* Bytes nobody read turn close into a reset, which may overtake our answer; then the watcher gets a
 * duplicate of the descriptor and drains it. */
static void queue_linger(struct http_server *server, const struct conn *conn)
{
	int unread = 0;
	int fd;

	if (conn->cut || server->linger_queued == LIMIT_HTTP_LINGERING)
		return;
	if (!conn->linger && (ioctl(conn->fd, FIONREAD, &unread) != 0 || unread == 0))
		return;
	fd = fcntl(conn->fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		server->linger_queue[server->linger_queued++] = fd;
}

void conn_is_closing(struct http_server *server, struct conn *conn)
{
	(void)pthread_mutex_lock(&server->lock);
	if (conn->watched)
		(void)epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL); /* or close does it */
	queue_linger(server, conn);
	unlink_conn(server, conn);
	if (server->linger_queued > 0)
		watcher_wake(server);
	(void)pthread_mutex_unlock(&server->lock);
}

void conn_destroy_all(struct http_server *server)
{
	while (server->conns != NULL)
		unlink_conn(server, server->conns);
	for (size_t i = 0; i < server->linger_queued; i++)
		(void)close(server->linger_queue[i]); /* nothing to flush */
	server->linger_queued = 0;
	free(server->by_fd);
	server->by_fd = NULL;
}
