/* The server as a whole: open, start, count, stop, close. */
#include "http/server.h"

#include "base/clock.h"
#include "base/log.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors left to the rest of the program when the limit of the process is what bounds us. */
#define SPARE_DESCRIPTORS 32

/* ---- opening ---- */

#define DEFAULT(field, value) \
	do { \
		if (options->field == 0) \
			options->field = (value); \
	} while (0)

static void fill_defaults(struct http_options *options)
{
	DEFAULT(threads, 1);
	DEFAULT(max_connections, LIMIT_HTTP_CONNECTIONS);
	DEFAULT(max_per_peer, LIMIT_HTTP_PEER_CONNECTIONS);
	DEFAULT(head_ms, 10000);
	DEFAULT(body_ms, 30000);
	DEFAULT(idle_ms, 75000);
	DEFAULT(stall_ms, 30000);
	DEFAULT(heartbeat_ms, 15000);
	DEFAULT(stream_queue_bytes, LIMIT_HTTP_STREAM_QUEUE_BYTES);
}

static struct str make_url(struct http_server *server, const struct listen_address *address, uint16_t port)
{
	return str_printf(server->arena, address->is_v6 ? "%s://[%s]:%u" : "%s://%s:%u",
		server->cert == NULL ? "http" : "https", address->host, port);
}

static int open_listeners(struct http_server *server, struct failure *f)
{
	const struct http_options *options = &server->options;

	server->urls = ARENA_ARRAY(server->arena, struct str, options->listen_count);
	server->listeners = ARENA_ARRAY(server->arena, struct listen_sockets, options->listen_count);
	for (size_t i = 0; i < options->listen_count; i++) {
		struct listen_address address;

		if (listen_parse(options->listen[i], &address, f) != 0
			|| listen_open(&address, &server->listeners[i], f) != 0)
			return -1;
		server->listener_count++;
		server->urls[i] = make_url(server, &address, server->listeners[i].port);
	}
	return 0;
}

static struct http_server *server_create(const struct http_options *options)
{
	struct http_server *server = calloc(1, sizeof(*server));
	pthread_condattr_t attributes;

	if (server == NULL)
		abort();
	server->options = *options;
	fill_defaults(&server->options);
	server->arena = arena_create();
	server->epoll_fd = server->wake_fd = server->spare_fd = -1;
	(void)pthread_mutex_init(&server->lock, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&server->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	return server;
}

static void server_destroyp(struct http_server **server)
{
	http_close(*server);
}

int http_open(const struct http_options *options, struct http_server **out, struct failure *f)
{
	AUTO(server_destroyp) struct http_server *server = server_create(options);

	assert(options->on_head != NULL && options->on_request != NULL);
	if (tls_load(server, f) != 0 || open_listeners(server, f) != 0)
		return -1;
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (server->epoll_fd < 0 || server->wake_fd < 0 || server->spare_fd < 0)
		return fail_errno(f, "make the descriptors of the listener");
	*out = STEAL(server);
	return 0;
}

/* ---- starting ---- */

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	if (dir == NULL)
		return 0;
	while (readdir(dir) != NULL)
		n++;
	(void)closedir(dir); /* read only */
	return n;
}

/* Better a 503 than an accept that fails: never allow more connections than descriptors are left. */
static void fit_descriptors(struct http_server *server)
{
	unsigned taken = count_descriptors() + SPARE_DESCRIPTORS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return;
	if (limit.rlim_cur >= (rlim_t)taken + server->options.max_connections)
		return;
	server->options.max_connections = limit.rlim_cur > taken ? (unsigned)limit.rlim_cur - taken : 1;
	log_line(LOG_WARN, "http", "the limit of open files lowers the limit of connections",
		{"connections", LOG_INT(server->options.max_connections)});
}

static void notice_connection(void *closure, struct MHD_Connection *connection, void **socket_context,
	enum MHD_ConnectionNotificationCode code)
{
	struct http_server *server = closure;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		conn_is_closing(server, *socket_context);
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	*socket_context = conn_find(server, info->connect_fd);
	assert(*socket_context != NULL); /* (2) */
	conn_enter(server, *socket_context, CONN_HEAD);
}

static void log_library(void *closure, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));

/* Mostly "client closed": of use when looking for something, noise otherwise. */
static void log_library(void *closure, const char *fmt, va_list args)
{
	char text[512];

	(void)closure;
	if (!log_enabled(LOG_DEBUG))
		return;
	(void)vsnprintf(text, sizeof(text), fmt, args);
	log_line(LOG_DEBUG, "http", "libmicrohttpd", {"text", LOG_STRV(str_trim(str_of(text)))});
}

/* http_path() is the path as sent; decoding is the application's. */
static size_t leave_escaped(void *closure, struct MHD_Connection *connection, char *text)
{
	(void)closure;
	(void)connection;
	return strlen(text);
}

static struct MHD_Daemon *start_daemon(struct http_server *server)
{
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC
		| MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG;
	/* The watcher counts; this one must never be the lower limit. */
	unsigned limit = server->options.max_connections + SPARE_DESCRIPTORS;
	struct MHD_OptionItem extra[3];
	size_t n = 0;

	if (server->cert != NULL) {
		flags |= MHD_USE_TLS;
		extra[n++] = (struct MHD_OptionItem){
			MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)server->cert};
		extra[n++] = (struct MHD_OptionItem){
			MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)server->key};
	}
	extra[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
	return MHD_start_daemon(flags, 0, NULL, NULL, exchange_step, server, MHD_OPTION_EXTERNAL_LOGGER,
		log_library, NULL, MHD_OPTION_NOTIFY_CONNECTION, notice_connection, server,
		MHD_OPTION_NOTIFY_COMPLETED, exchange_completed, server, MHD_OPTION_URI_LOG_CALLBACK,
		exchange_begin, server, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)LIMIT_HTTP_POOL_BYTES, MHD_OPTION_CONNECTION_LIMIT, limit,
		MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY, extra, MHD_OPTION_END);
}

int http_start(struct http_server *server, struct failure *f)
{
	fit_descriptors(server);
	server->loops = ARENA_ARRAY(server->arena, struct loop *, server->options.threads);
	for (unsigned i = 0; i < server->options.threads; i++) {
		server->loops[i] = loop_create(server);
		if (loop_start(server->loops[i], start_daemon(server), f) != 0)
			return -1;
	}
	return watcher_start(server, f);
}

struct str http_url(const struct http_server *server, size_t i)
{
	return server->urls[i];
}

void http_count(struct http_server *server, struct http_counts *out)
{
	(void)pthread_mutex_lock(&server->lock);
	out->connections_open = server->conn_count;
	(void)pthread_mutex_unlock(&server->lock);
	out->requests = atomic_load(&server->requests);
	out->streams_open = atomic_load(&server->streams_open);
	out->refused = atomic_load(&server->refused);
	out->timed_out = atomic_load(&server->timed_out);
}

/* ---- stopping ---- */

static void wait_until_answered(struct http_server *server, int64_t grace_ms)
{
	int64_t until = clock_mono_ms() + grace_ms;
	struct timespec at = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};
	int error = 0;

	(void)pthread_mutex_lock(&server->lock);
	while (!server->stopped_accepting)
		(void)pthread_cond_wait(&server->changed, &server->lock);
	while (server->exchange_count > 0 && error == 0)
		error = pthread_cond_timedwait(&server->changed, &server->lock, &at);
	(void)pthread_mutex_unlock(&server->lock);
}

/* From here on nothing is suspended: what decides to sleep looks at `cutting` under its own lock, and
 * what slept before that is woken below. libmicrohttpd aborts when it is stopped with a sleeper. */
static void cut_all(struct http_server *server)
{
	struct http_exchange **list;
	size_t n = 0;

	atomic_store(&server->cutting, true);
	(void)pthread_mutex_lock(&server->lock);
	list = calloc(server->conn_count + 1, sizeof(struct http_exchange *));
	if (list == NULL)
		abort();
	for (struct conn *at = server->conns; at != NULL; at = at->next) {
		if (at->exchange == NULL)
			continue;
		http_keep(at->exchange);
		list[n++] = at->exchange;
	}
	(void)pthread_mutex_unlock(&server->lock);
	for (size_t i = 0; i < n; i++) {
		exchange_give_up(list[i]);
		http_release(list[i]);
	}
	free(list);
}

void http_stop(struct http_server *server, int64_t grace_ms)
{
	if (server == NULL || server->loops == NULL)
		return;
	atomic_store(&server->stopping, true);
	if (server->has_watcher) {
		watcher_wake(server);
		wait_until_answered(server, grace_ms);
	}
	cut_all(server);
	watcher_stop(server);
	for (unsigned i = 0; i < server->options.threads; i++)
		loop_destroy(server->loops[i]);
	server->loops = NULL;
}

void http_close(struct http_server *server)
{
	if (server == NULL)
		return;
	http_stop(server, 0);
	for (size_t i = 0; i < server->listener_count; i++)
		listen_close(&server->listeners[i]);
	conn_destroy_all(server);
	if (server->epoll_fd >= 0)
		(void)close(server->epoll_fd); /* holds no data */
	if (server->wake_fd >= 0)
		(void)close(server->wake_fd); /* holds no data */
	if (server->spare_fd >= 0)
		(void)close(server->spare_fd); /* /dev/null */
	(void)pthread_cond_destroy(&server->changed);
	(void)pthread_mutex_destroy(&server->lock);
	arena_destroy(server->arena);
	free(server);
}
