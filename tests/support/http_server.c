/* A server with an application that does what its paths say, for tests of the HTTP room.
 *
 * http-server [key=value]... ADDRESS...    prints "url U" for each address and "ready"; ends on SIGTERM.
 *
 * Every route is in routes[]. Deferred work runs on one worker thread. */
#include "http/http.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BODY_BYTES (4 * 1024 * 1024)

/* An exchange that is answered later. owner: worker list, under lock */
struct task {
	struct http_exchange *x;
	int64_t due;
	int64_t left;	 /* events still to write; -1: none, stay open */
	int64_t every_ms;
	size_t size;
	bool is_stream;
	bool is_flood;	 /* write as fast as the queue takes it */
	atomic_bool hung_up;
	struct task *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct task *tasks;
static struct task *finished; /* kept until the end: a hang-up may be on its way to one */
static atomic_bool ending;
static atomic_int hangups, kept;
static struct http_server *server;

static int64_t number(const struct http_exchange *x, const char *name, int64_t otherwise)
{
	int64_t value;

	return str_to_int(http_query_value(x, name), &value) ? value : otherwise;
}

static void note_hangup(struct http_exchange *x, void *context)
{
	struct task *task = context;

	(void)x;
	atomic_fetch_add(&hangups, 1);
	atomic_store(&task->hung_up, true);
}

static struct task *defer(struct http_exchange *x, int64_t ms)
{
	struct task *task = calloc(1, sizeof(*task));

	if (task == NULL)
		abort();
	task->x = x;
	task->due = clock_mono_ms() + ms;
	task->left = -1;
	atomic_init(&task->hung_up, false);
	http_keep(x);
	atomic_fetch_add(&kept, 1);
	http_on_hangup(x, note_hangup, task);
	return task;
}

static void publish(struct task *task)
{
	(void)pthread_mutex_lock(&lock);
	task->next = tasks;
	tasks = task;
	(void)pthread_mutex_unlock(&lock);
}

/* ---- routes ---- */

static void reply_text(struct http_exchange *x, int status, struct str body)
{
	const struct http_field fields[] = {{"Content-Type", STR("text/plain")}};

	http_reply(x, status, fields, 1, body);
}

static void show_header(void *context, struct str name, struct str value)
{
	jw_key_str(context, name);
	jw_str(context, value);
}

static void route_show(struct http_exchange *x)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, http_arena(x), 1 << 20);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kstr(&w, "method", http_method(x));
	jw_kstr(&w, "path", http_path(x));
	jw_kstr(&w, "query", http_query(x));
	jw_kstr(&w, "q", http_query_value(x, "q"));
	jw_kstr(&w, "peer", http_peer(x));
	jw_kint(&w, "bodyBytes", (int64_t)http_body(x).n);
	jw_kobject(&w, "headers");
	http_each_header(x, show_header, &w);
	jw_object_end(&w);
	jw_object_end(&w);
	reply_text(x, 200, buf_str(&out));
}

static void route_echo(struct http_exchange *x)
{
	reply_text(x, 200, http_body(x));
}

static void route_later(struct http_exchange *x)
{
	publish(defer(x, number(x, "ms", 50)));
}

static void route_never(struct http_exchange *x)
{
	struct task *task = defer(x, 0);

	task->due = INT64_MAX;
	publish(task);
}

static void route_lost(struct http_exchange *x)
{
	(void)x; /* a mistake of an application */
}

static void route_big(struct http_exchange *x)
{
	size_t n = (size_t)number(x, "n", 1000000);
	char *bytes = malloc(n);

	if (bytes == NULL)
		abort();
	memset(bytes, 'b', n);
	reply_text(x, 200, (struct str){bytes, n});
	free(bytes);
}

static void route_stream(struct http_exchange *x)
{
	const struct http_field fields[] = {
		{"Content-Type", STR("text/event-stream; charset=utf-8")}, {"Cache-Control", STR("no-cache")}};
	struct task *task = defer(x, number(x, "every", 20));

	task->is_stream = true;
	task->left = number(x, "n", -1);
	task->every_ms = number(x, "every", 20);
	task->size = (size_t)number(x, "size", 10);
	task->is_flood = number(x, "flood", 0) != 0;
	http_stream_begin(x, 200, fields, 2);
	publish(task);
}

static void route_counts(struct http_exchange *x)
{
	struct http_counts counts;
	struct json_writer w;
	struct buf out;

	http_count(server, &counts);
	buf_init(&out, http_arena(x), 4096);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kint(&w, "requests", (int64_t)counts.requests);
	jw_kint(&w, "connections", (int64_t)counts.connections_open);
	jw_kint(&w, "streams", (int64_t)counts.streams_open);
	jw_kint(&w, "refused", (int64_t)counts.refused);
	jw_kint(&w, "timedOut", (int64_t)counts.timed_out);
	jw_kint(&w, "hangups", atomic_load(&hangups));
	jw_kint(&w, "kept", atomic_load(&kept));
	jw_object_end(&w);
	reply_text(x, 200, buf_str(&out));
}

static const struct route {
	const char *path;
	void (*answer)(struct http_exchange *x);
} routes[] = {
	{"/big", route_big},
	{"/counts", route_counts},
	{"/echo", route_echo},
	{"/later", route_later},
	{"/lost", route_lost},
	{"/never", route_never},
	{"/small", route_echo},
	{"/stream", route_stream},
};

static int on_head(struct http_exchange *x, void *app, size_t *max_body)
{
	(void)app;
	if (str_eq(http_path(x), STR("/denied"))) {
		reply_text(x, 403, STR("denied"));
		return -1;
	}
	*max_body = str_eq(http_path(x), STR("/small")) ? 16 : BODY_BYTES;
	return 0;
}

static void on_request(struct http_exchange *x, void *app)
{
	(void)app;
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (str_eq(http_path(x), str_of(routes[i].path))) {
			routes[i].answer(x);
			return;
		}
	}
	route_show(x);
}

/* ---- the worker ---- */

static bool write_event(struct task *task)
{
	char text[70000];
	int n = snprintf(text, sizeof(text), "data: %lld %0*d\n\n", (long long)task->left,
		(int)(task->size < 65000 ? task->size : 65000), 0);

	return http_stream_write(task->x, (struct str){text, (size_t)n}) == 0;
}

/* True when the task is done. */
static bool work_on(struct task *task, int64_t now)
{
	if (atomic_load(&ending) || atomic_load(&task->hung_up)) {
		if (task->is_stream)
			http_stream_end(task->x);
		else
			reply_text(task->x, 503, STR("ending"));
		return true;
	}
	if (now < task->due)
		return false;
	if (!task->is_stream) {
		reply_text(task->x, 200, STR("later"));
		return true;
	}
	if (task->is_flood) {
		if (http_stream_pending(task->x) < 500000)
			(void)write_event(task);
		return false;
	}
	if (task->left < 0)
		return false;
	if (task->left-- == 0) {
		http_stream_end(task->x);
		return true;
	}
	task->due = now + task->every_ms;
	(void)write_event(task);
	return false;
}

static void *work(void *argument)
{
	bool last = false;

	(void)argument;
	while (!last) {
		struct task **at = &tasks;
		int64_t now = clock_mono_ms();

		last = atomic_load(&ending);
		(void)pthread_mutex_lock(&lock);
		while (*at != NULL) {
			struct task *task = *at;

			if (!work_on(task, now)) {
				at = &task->next;
				continue;
			}
			*at = task->next;
			http_on_hangup(task->x, NULL, NULL);
			http_release(task->x);
			atomic_fetch_sub(&kept, 1);
			task->next = finished;
			finished = task;
		}
		(void)pthread_mutex_unlock(&lock);
		(void)usleep(2000); /* a test's worker, not worth a condition */
	}
	return NULL;
}

static void free_finished(void)
{
	while (finished != NULL) {
		struct task *next = finished->next;

		free(finished);
		finished = next;
	}
}

/* ---- the program ---- */

static void take_option(struct http_options *options, char *argument, char *equals)
{
	int64_t n = atoll(equals + 1);

	*equals = '\0';
	if (strcmp(argument, "head_ms") == 0)
		options->head_ms = n;
	else if (strcmp(argument, "body_ms") == 0)
		options->body_ms = n;
	else if (strcmp(argument, "idle_ms") == 0)
		options->idle_ms = n;
	else if (strcmp(argument, "stall_ms") == 0)
		options->stall_ms = n;
	else if (strcmp(argument, "heartbeat_ms") == 0)
		options->heartbeat_ms = n;
	else if (strcmp(argument, "connections") == 0)
		options->max_connections = (unsigned)n;
	else if (strcmp(argument, "per_peer") == 0)
		options->max_per_peer = (unsigned)n;
	else if (strcmp(argument, "threads") == 0)
		options->threads = (unsigned)n;
	else if (strcmp(argument, "cert") == 0)
		options->tls_cert_file = equals + 1;
	else if (strcmp(argument, "key") == 0)
		options->tls_key_file = equals + 1;
	else
		exit(64);
}

static int refuse(const struct failure *f)
{
	(void)fprintf(stderr, "%s: %.*s\n", failure_info(f->code)->wire, STRF(f->message));
	return failure_info(f->code)->exit_code;
}

static int serve(const struct http_options *options, int64_t grace_ms)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct failure f;
	pthread_t worker;
	sigset_t set;
	int signal_number;

	failure_init(&f, arena);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (http_open(options, &server, &f) != 0)
		return refuse(&f);
	if (http_start(server, &f) != 0) {
		http_close(server);
		return refuse(&f);
	}
	if (pthread_create(&worker, NULL, work, NULL) != 0)
		abort();
	for (size_t i = 0; i < options->listen_count; i++)
		(void)printf("url %.*s\n", STRF(http_url(server, i)));
	(void)printf("ready\n");
	(void)fflush(stdout);
	(void)sigwait(&set, &signal_number);
	if (getenv("KEEP_SILENT") == NULL)
		atomic_store(&ending, true);
	http_stop(server, grace_ms);
	atomic_store(&ending, true);
	(void)pthread_join(worker, NULL);
	http_close(server);
	free_finished();
	(void)printf("stopped hangups=%d kept=%d\n", atomic_load(&hangups), atomic_load(&kept));
	return 0;
}

int main(int argc, char **argv)
{
	struct str addresses[16];
	struct http_options options = {.listen = addresses, .on_head = on_head, .on_request = on_request};
	const char *grace = getenv("GRACE_MS");

	log_setup(getenv("DEBUG") == NULL ? LOG_WARN : LOG_DEBUG, LOG_FORMAT_JSON, 2);
	for (int i = 1; i < argc; i++) {
		char *equals = strchr(argv[i], '=');

		if (equals != NULL)
			take_option(&options, argv[i], equals);
		else if (options.listen_count < 16)
			addresses[options.listen_count++] = str_of(argv[i]);
	}
	return serve(&options, grace == NULL ? 2000 : atoll(grace));
}
