/* The Unix socket: MCP lines between processes of one user. One thread, one epoll; answers come from any
 * thread and are queued per connection.
 *
 * Invariants
 * (1) A connection is freed only by the loop thread, after mcp_line_close(), after which `write` is not
 *     called any more.
 * (2) A peer that does not read stops being read from; memory per connection is bounded. */
#include "server/admin.h"
#include "server/stream.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define OUT_SOFT_BYTES (8 * 1024 * 1024)
#define OUT_HARD_BYTES (64 * 1024 * 1024)
#define HELLO_BYTES 4096

struct connection {
	struct local *local;
	struct connection *next;
	int fd;
	struct mcp_line *line; /* made after the first line is seen */
	struct subscriber *events; /* instead: a follower of the event log */
	struct arena *arena;   /* of the caller */
	struct buf first;      /* until the first newline */
	struct caller caller;

	pthread_mutex_t lock;
	struct buf out; /* guarded by lock */
	size_t sent;
	bool is_armed;	/* the loop knows that there is something to send */
	bool is_broken; /* over the hard limit, or the socket failed */
	bool is_ended;	/* the peer will send no more; gone once everything is answered */
	bool is_paused;
};

struct local {
	struct server *server;
	char *path;
	int listen_fd, epoll_fd, wake_fd;
	pthread_t thread;
	bool has_thread;
	atomic_bool stopping;
	struct connection *connections; /* owner: loop thread */
	size_t count;
};

/* Addresses of the two descriptors that are no connections. */
static int listen_tag, wake_tag;

static void wake(struct local *local)
{
	uint64_t one = 1;

	if (write(local->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: the loop is awake anyway */
}

/* From any thread. The first try goes straight to the socket: one hand-over less for each answer. */
static void connection_write(void *context, struct str text)
{
	struct connection *c = context;
	size_t done = 0;
	bool arm = false;

	(void)pthread_mutex_lock(&c->lock);
	if (!c->is_broken && c->out.n == c->sent) {
		ssize_t n = send(c->fd, text.p, text.n, MSG_NOSIGNAL | MSG_DONTWAIT);

		done = n > 0 ? (size_t)n : 0;
		c->is_broken = n < 0 && errno != EAGAIN && errno != EINTR;
	}
	if (!c->is_broken && done < text.n) {
		buf_add(&c->out, text.p + done, text.n - done);
		c->is_broken = c->out.overflow;
	}
	if ((c->is_broken || done < text.n) && !c->is_armed) {
		c->is_armed = true;
		arm = true;
	}
	/* After the last answer of a peer that closed its side, the loop has to end the connection. */
	arm = arm || c->is_ended;
	(void)pthread_mutex_unlock(&c->lock);
	if (arm)
		wake(c->local);
}

static void set_interest(struct connection *c)
{
	struct epoll_event event = {.data.ptr = c};

	event.events = (c->is_paused || c->is_ended ? 0U : (uint32_t)EPOLLIN) |
		(c->out.n > c->sent ? (uint32_t)EPOLLOUT : 0U);
	(void)epoll_ctl(c->local->epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

static void connection_destroy(struct connection *c)
{
	struct local *local = c->local;

	for (struct connection **at = &local->connections; *at != NULL; at = &(*at)->next) {
		if (*at == c) {
			*at = c->next;
			break;
		}
	}
	local->count--;
	mcp_line_close(c->line); /* (1) */
	if (c->events != NULL)
		local_unsubscribe(local->server->hub, c->events);
	(void)epoll_ctl(local->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
	(void)close(c->fd);
	buf_finish(&c->out);
	buf_finish(&c->first);
	arena_destroy(c->arena);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}

/* The greeting of our own programs says what a line transport cannot: the profile, and a seat token. */
static int apply_hello(struct connection *c, const json_t *hello, struct failure *f)
{
	const json_t *params = json_object_get(hello, "params");
	struct str profile = json_member_str(params, "profile");
	struct str token = json_member_str(params, "seatToken");
	struct snapshot s;
	int rc;

	if (token.n > 0) {
		if (snapshot_begin(c->local->server->store, c->arena, &s, f) != 0)
			return -1;
		rc = caller_from_token(&s, token, STR("stdio"), &c->caller, f);
		snapshot_end(&s);
		if (rc != 0)
			return -1;
	}
	if (profile.n > 0 && !profile_parse(profile, &c->caller.profile))
		return fail_field(f, STR("profile"), profile, "must be full, work, threads, knowledge or director");
	return 0;
}

/* To a greeting with an id; `refused` is NULL when it was taken. */
static void answer_hello(struct connection *c, const json_t *id, const struct failure *refused)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, c->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	jw_kraw(&w, "id", json_canonical(c->arena, id));
	if (refused == NULL) {
		jw_kobject(&w, "result");
		jw_object_end(&w);
	} else {
		jw_key(&w, "error");
		failure_write(refused, &w);
	}
	jw_object_end(&w);
	buf_add_char(&out, '\n');
	connection_write(c, buf_str(&out));
}

static void start_line(struct connection *c)
{
	struct mcp_line_options options = {
		.caller = mcp_caller_of(c->arena, &c->caller),
		.write = connection_write,
		.context = c,
	};

	c->line = mcp_line_create(c->local->server->mcp, &options);
}

/* One administrative request, one answer, and the connection ends. */
static void answer_admin(struct connection *c, const json_t *request)
{
	struct server *server = c->local->server;
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct failure f;
	struct buf members;
	struct buf out;
	struct json_writer w;
	int rc;

	failure_init(&f, arena);
	buf_init(&members, arena, SIZE_MAX);
	json_writer_init(&w, &members);
	rc = admin_run(server->store, request, arena, &w, &f);
	/* Whatever it was: administration is rare. */
	auth_forget();
	stream_hub_recheck(server->hub);
	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kbool(&w, "ok", rc == 0);
	jw_kint(&w, "pid", getpid());
	jw_kint(&w, "uptimeMs", clock_mono_ms() - server->started_at);
	if (server_url_count(server) > 0)
		jw_kstr(&w, "url", server_url(server, 0));
	if (rc == 0) {
		jw_members(&w, buf_str(&members));
	} else {
		jw_key(&w, "error");
		failure_write(&f, &w);
	}
	jw_object_end(&w);
	buf_add_char(&out, '\n');
	connection_write(c, buf_str(&out));
	c->is_ended = true;
}

/* What a program of ours says first. -1 ends the connection. */
static int greet(struct connection *c, const json_t *hello)
{
	struct str method = json_member_str(hello, "method");
	const json_t *wanted;
	struct failure f;
	int64_t since;
	int rc;

	failure_init(&f, c->arena);
	if (str_eq(method, STR(LOCAL_ADMIN))) {
		answer_admin(c, json_object_get(hello, "params"));
		return 0;
	}
	if (str_eq(method, STR(LOCAL_EVENTS))) {
		wanted = json_object_get(json_object_get(hello, "params"), "since");
		since = wanted == NULL ? store_newest(c->local->server->store) : json_integer_value(wanted);
		c->events = local_subscribe(c->local->server->hub, &c->caller, since, connection_write, c);
		return 0;
	}
	rc = apply_hello(c, hello, &f);
	if (json_object_get(hello, "id") != NULL)
		answer_hello(c, json_object_get(hello, "id"), rc == 0 ? NULL : &f);
	if (rc == 0)
		return 1;
	log_line(LOG_WARN, "server", "a local connection was refused",
		{"code", LOG_TEXT(failure_info(f.code)->wire)});
	return -1;
}

/* -1 ends the connection. */
static int take_first_line(struct connection *c)
{
	const char *end = memchr(c->first.p, '\n', c->first.n);
	struct str line = {c->first.p, end == NULL ? 0 : (size_t)(end - c->first.p)};
	struct json_error error;
	json_auto_t *hello = NULL;
	int rc = 1;

	if (end == NULL && c->first.n < HELLO_BYTES)
		return 0;
	if (line.n > 0 && memmem(line.p, line.n, LOCAL_METHODS, strlen(LOCAL_METHODS)) != NULL)
		hello = json_read(line, &error);
	if (str_starts(json_member_str(hello, "method"), STR(LOCAL_METHODS))) {
		rc = greet(c, hello);
		buf_consume(&c->first, line.n + 1);
	}
	if (rc != 1)
		return rc;
	start_line(c);
	mcp_line_feed(c->line, buf_str(&c->first));
	buf_finish(&c->first);
	return 0;
}

/* -1 ends the connection. */
static int on_readable(struct connection *c)
{
	char bytes[65536];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0) {
		(void)pthread_mutex_lock(&c->lock);
		c->is_ended = true;
		(void)pthread_mutex_unlock(&c->lock);
		return c->line == NULL && c->out.n == 0 ? -1 : 0;
	}
	if (c->line != NULL) {
		mcp_line_feed(c->line, (struct str){bytes, (size_t)n});
		return 0;
	}
	if (c->events != NULL)
		return 0; /* a follower has nothing to say */
	buf_add(&c->first, bytes, (size_t)n);
	return take_first_line(c);
}

/* Send what is queued, pause or resume reading. False when the connection is over. */
static bool tend(struct connection *c)
{
	bool is_over;

	(void)pthread_mutex_lock(&c->lock);
	if (!c->is_broken && c->out.n > c->sent) {
		ssize_t n = send(c->fd, c->out.p + c->sent, c->out.n - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0)
			c->sent += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			c->is_broken = true;
	}
	if (c->sent == c->out.n) {
		c->out.n = c->sent = 0;
		c->is_armed = false;
	} else if (c->sent > OUT_SOFT_BYTES) {
		buf_consume(&c->out, c->sent);
		c->sent = 0;
	}
	c->is_paused = c->out.n - c->sent > OUT_SOFT_BYTES; /* (2) */
	is_over = c->is_broken ||
		(c->is_ended && c->out.n == 0 && (c->line == NULL || mcp_line_in_flight(c->line) == 0));
	(void)pthread_mutex_unlock(&c->lock);
	if (!is_over)
		set_interest(c);
	return !is_over;
}

static bool peer_may(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
		(peer.uid == 0 || peer.uid == geteuid());
}

static void on_connect(struct local *local)
{
	int fd = accept4(local->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct epoll_event event = {.events = EPOLLIN};
	struct connection *c;

	if (fd < 0)
		return;
	if (!peer_may(fd) || local->count >= LIMIT_LOCAL_CONNECTIONS) {
		(void)close(fd);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		abort();
	c->local = local;
	c->fd = fd;
	c->arena = arena_create();
	caller_local(&c->caller, STR("stdio"));
	buf_init(&c->first, NULL, 2 * 65536 + HELLO_BYTES);
	buf_init(&c->out, NULL, OUT_HARD_BYTES);
	(void)pthread_mutex_init(&c->lock, NULL);
	event.data.ptr = c;
	if (epoll_ctl(local->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
		c->is_ended = true; /* cannot be watched: let go at the next look */
	c->next = local->connections;
	local->connections = c;
	local->count++;
}

static void tend_all(struct local *local)
{
	struct connection *next;

	for (struct connection *c = local->connections; c != NULL; c = next) {
		next = c->next;
		if (!tend(c))
			connection_destroy(c);
	}
}

/* A request counts as in flight a moment longer than its answer is written: look again soon while a peer
 * that closed its side still waits for the end. */
static int linger_ms(const struct local *local)
{
	for (const struct connection *c = local->connections; c != NULL; c = c->next)
		if (c->is_ended)
			return 50;
	return -1;
}

static void *loop(void *context)
{
	struct local *local = context;

	(void)prctl(PR_SET_NAME, "local");
	while (!atomic_load(&local->stopping)) {
		struct epoll_event events[64];
		int n = epoll_wait(local->epoll_fd, events, 64, linger_ms(local));
		bool woken = n == 0;

		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;

			if (events[i].data.ptr == &listen_tag) {
				on_connect(local);
			} else if (events[i].data.ptr == &wake_tag) {
				uint64_t count;

				woken = read(local->wake_fd, &count, sizeof(count)) > 0 || woken;
			} else if (((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !c->is_ended &&
					   on_readable(c) != 0) ||
				(events[i].events & EPOLLERR) != 0 || !tend(c)) {
				/* Ours alone: each descriptor appears once in a round. */
				connection_destroy(c);
			}
		}
		if (woken)
			tend_all(local);
	}
	while (local->connections != NULL)
		connection_destroy(local->connections);
	return NULL;
}

/* A socket file without a server behind it is swept away; anything else in its place is refused. */
static int clear_place(const char *path, struct failure *f)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return fail(f, FAIL_CANNOT_CREATE, "%s is in the way: it is not a socket.", path);
	return unlink(path) == 0 ? 0 : fail(f, FAIL_CANNOT_CREATE, "%s cannot be replaced.", path);
}

static int bind_socket(const char *path, int *out, struct failure *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t mask;
	int rc;
	int fd;

	if (clear_place(path, f) != 0)
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1); /* state_socket() checked the length */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail_errno(f, "make the local socket");
	mask = umask(0177);
	rc = bind(fd, (struct sockaddr *)&address, sizeof(address));
	(void)umask(mask);
	if (rc != 0 || listen(fd, 128) != 0) {
		(void)close(fd);
		return fail(f, FAIL_CANNOT_CREATE, "The socket %s cannot be made.", path);
	}
	*out = fd;
	return 0;
}

int local_open(struct server *server, const char *path, struct local **out, struct failure *f)
{
	struct epoll_event listening = {.events = EPOLLIN, .data.ptr = &listen_tag};
	struct epoll_event waking = {.events = EPOLLIN, .data.ptr = &wake_tag};
	struct local *local;
	int fd = -1;

	if (bind_socket(path, &fd, f) != 0)
		return -1;
	local = calloc(1, sizeof(*local));
	if (local == NULL)
		abort();
	local->server = server;
	local->path = strdup(path);
	local->listen_fd = fd;
	local->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	local->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (local->path == NULL || local->epoll_fd < 0 || local->wake_fd < 0 ||
		epoll_ctl(local->epoll_fd, EPOLL_CTL_ADD, fd, &listening) != 0 ||
		epoll_ctl(local->epoll_fd, EPOLL_CTL_ADD, local->wake_fd, &waking) != 0) {
		local_stop(local);
		return fail_errno(f, "watch the local socket");
	}
	*out = local;
	return 0;
}

int local_start(struct local *local, struct failure *f)
{
	if (pthread_create(&local->thread, NULL, loop, local) != 0)
		return fail_errno(f, "start the local thread");
	local->has_thread = true;
	return 0;
}

void local_stop(struct local *local)
{
	if (local == NULL)
		return;
	atomic_store(&local->stopping, true);
	wake(local);
	if (local->has_thread)
		(void)pthread_join(local->thread, NULL);
	(void)unlink(local->path);
	if (local->listen_fd >= 0)
		(void)close(local->listen_fd);
	if (local->epoll_fd >= 0)
		(void)close(local->epoll_fd);
	if (local->wake_fd >= 0)
		(void)close(local->wake_fd);
	free(local->path);
	free(local);
}
