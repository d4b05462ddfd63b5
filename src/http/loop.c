/* The http threads: each runs one daemon of libmicrohttpd and sleeps for it.
 *
 * libmicrohttpd 0.9.75 can run threads of its own, and one of those can sleep for ever over connections that are
 * ready: it asks the system for 128 events at a time until it gets fewer, waits without end each time, and after
 * exactly 128 or 256 there are none left to come. So it is only asked what is ready now, and the sleeping is done here.
 *
 * In this mode it must hear of everything on its own thread. Connections that the watcher accepted and exchanges that
 * somebody answered are handed over in lists; that also spares one wake-up for every answer of a batch. */
#include "http/server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct loop {
	struct http_server *server;
	struct MHD_Daemon *daemon;
	pthread_t thread;
	bool has_thread;
	int ready_fd; /* readable when libmicrohttpd has something to do; its own */
	int wake_fd;
	pthread_mutex_t lock; /* taken last */
	/* under lock */
	struct conn *accepted, **accepted_end;
	struct http_exchange *woken, **woken_end;
	bool is_asleep;
	bool quit;
};

/* ---- handing over ---- */

/* With the lock held, which it gives back. */
static void hand_over(struct loop *loop)
{
	bool was_asleep = loop->is_asleep;
	uint64_t one = 1;

	loop->is_asleep = false;
	(void)pthread_mutex_unlock(&loop->lock);
	if (was_asleep)
		(void)!write(loop->wake_fd, &one, sizeof(one)); /* fails only when it is due already */
}

void loop_add(struct loop *loop, struct conn *conn)
{
	(void)pthread_mutex_lock(&loop->lock);
	conn->next_accepted = NULL;
	*loop->accepted_end = conn;
	loop->accepted_end = &conn->next_accepted;
	hand_over(loop);
}

void loop_resume(struct http_exchange *x)
{
	struct loop *loop = x->conn->loop;

	(void)pthread_mutex_lock(&loop->lock);
	x->next_woken = NULL;
	*loop->woken_end = x;
	loop->woken_end = &x->next_woken;
	hand_over(loop);
}

/* ---- the thread ---- */

static void adopt(struct loop *loop, struct conn *conn)
{
	while (conn != NULL) {
		struct conn *next = conn->next_accepted; /* conn may be gone afterwards */
		socklen_t size = conn->peer.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
		struct sockaddr_storage peer = conn->peer;

		/* libmicrohttpd closes the descriptor when it fails. */
		if (MHD_add_connection(loop->daemon, conn->fd, (const struct sockaddr *)&peer, size) != MHD_YES)
			conn_remove(loop->server, conn);
		conn = next;
	}
}

static void resume(struct http_exchange *x)
{
	while (x != NULL) {
		struct http_exchange *next = x->next_woken; /* it may sleep and be woken again afterwards */

		MHD_resume_connection(x->connection); /* (3) */
		x = next;
	}
}

/* What was handed over; false when the thread is to end and nothing is left. */
static bool take(struct loop *loop)
{
	struct conn *accepted;
	struct http_exchange *woken;
	bool quit;

	(void)pthread_mutex_lock(&loop->lock);
	accepted = STEAL(loop->accepted);
	loop->accepted_end = &loop->accepted;
	woken = STEAL(loop->woken);
	loop->woken_end = &loop->woken;
	quit = loop->quit;
	(void)pthread_mutex_unlock(&loop->lock);
	adopt(loop, accepted);
	resume(woken);
	return !quit || accepted != NULL || woken != NULL;
}

static void sleep_until_ready(struct loop *loop, int ms)
{
	struct pollfd fds[] = {{.fd = loop->ready_fd, .events = POLLIN}, {.fd = loop->wake_fd, .events = POLLIN}};
	uint64_t count;
	bool is_asleep;

	(void)pthread_mutex_lock(&loop->lock);
	is_asleep = loop->accepted == NULL && loop->woken == NULL && !loop->quit;
	loop->is_asleep = is_asleep;
	(void)pthread_mutex_unlock(&loop->lock);
	if (!is_asleep)
		return;
	(void)poll(fds, 2, ms);
	(void)pthread_mutex_lock(&loop->lock);
	loop->is_asleep = false;
	(void)pthread_mutex_unlock(&loop->lock);
	if (fds[1].revents != 0)
		(void)!read(loop->wake_fd, &count, sizeof(count)); /* a wake-up, not data */
}

/* Milliseconds until a connection's own timeout, -1: none, 0: there is work now. */
static int patience(struct loop *loop)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(loop->daemon, &ms) != MHD_YES)
		return -1;
	return ms > 60000 ? 60000 : (int)ms;
}

static void *run(void *argument)
{
	struct loop *loop = argument;

	while (take(loop)) {
		int ms;

		(void)MHD_run(loop->daemon);
		ms = patience(loop);
		if (ms != 0)
			sleep_until_ready(loop, ms);
	}
	return NULL;
}

/* ---- life ---- */

struct loop *loop_create(struct http_server *server)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL)
		abort();
	loop->server = server;
	loop->accepted_end = &loop->accepted;
	loop->woken_end = &loop->woken;
	(void)pthread_mutex_init(&loop->lock, NULL);
	loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return loop;
}

int loop_start(struct loop *loop, struct MHD_Daemon *daemon, struct failure *f)
{
	const union MHD_DaemonInfo *info;
	sigset_t all, before;

	loop->daemon = daemon;
	if (loop->wake_fd < 0)
		return fail_errno(f, "make a wake descriptor");
	if (daemon == NULL || (info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)) == NULL)
		return fail_errno(f, "start libmicrohttpd");
	loop->ready_fd = info->epoll_fd;
	/* Signals belong to the main program. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	errno = pthread_create(&loop->thread, NULL, run, loop);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errno != 0)
		return fail_errno(f, "start the HTTP thread");
	(void)pthread_setname_np(loop->thread, "http"); /* for people who look at threads */
	loop->has_thread = true;
	return 0;
}

void loop_destroy(struct loop *loop)
{
	if (loop == NULL)
		return;
	if (loop->has_thread) {
		(void)pthread_mutex_lock(&loop->lock);
		loop->quit = true;
		hand_over(loop);
		(void)pthread_join(loop->thread, NULL);
	}
	if (loop->daemon != NULL)
		MHD_stop_daemon(loop->daemon);
	if (loop->wake_fd >= 0)
		(void)close(loop->wake_fd); /* holds no data */
	(void)pthread_mutex_destroy(&loop->lock);
	free(loop);
}
