/* dais-mcp-fixture --listen HOST:PORT | --lines
 *
 * Loopback only, everything in memory. `Authorization: Bearer NAME` makes NAME the principal;
 * `refused` is refused, `soon` expires after half a second. */
#include "base/clock.h"
#include "base/log.h"
#include "fixture.h"
#include "http/guard.h"
#include "http/http.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct mcp_handlers handlers = {
	.list = fixture_list,
	.tool_find = fixture_tool_find,
	.tool_call = fixture_tool_call,
	.resource_read = fixture_resource_read,
	.resource_visible = fixture_resource_visible,
	.prompt_get = fixture_prompt_get,
	.complete = fixture_complete,
	.task_input = fixture_task_input,
	.task_cancel = fixture_task_cancel,
};

struct app {
	struct mcp_server *mcp;
	struct http_guard *guard;
};

static bool is_endpoint(struct str path)
{
	return str_eq(path, STR("/mcp")) || str_eq(path, STR("/mcp/"));
}

static struct mcp_caller caller_of(const struct http_exchange *x)
{
	struct str token = http_header(x, "Authorization", NULL);
	struct mcp_caller caller = {.principal = STR("local"), .profile = STR("full")};

	if (!str_starts(token, STR("Bearer ")))
		return caller;
	caller.principal = (struct str){token.p + 7, token.n - 7};
	if (str_eq(caller.principal, STR("soon")))
		caller.expires_at = clock_wall_ms() + 500;
	return caller;
}

static int on_head(struct http_exchange *x, void *context, size_t *max_body)
{
	const struct app *app = context;
	struct http_field fields[HTTP_GUARD_FIELDS + 1];
	size_t n;

	switch (http_guard_check(app->guard, x)) {
	case HTTP_GUARD_PASS:
		break;
	case HTTP_GUARD_PREFLIGHT:
		http_guard_preflight(app->guard, x);
		return -1;
	case HTTP_GUARD_HOST:
		mcp_http_refuse(app->guard, x, 403, STR("This Host is not served here."));
		return -1;
	case HTTP_GUARD_ORIGIN:
		mcp_http_refuse(app->guard, x, 403, STR("This Origin is not allowed."));
		return -1;
	}
	if (!is_endpoint(http_path(x))) {
		http_reply(x, 404, NULL, 0, STR("{\"error\":\"not found\"}"));
		return -1;
	}
	if (str_eq(http_header(x, "Authorization", NULL), STR("Bearer refused"))) {
		n = http_guard_fields(app->guard, x, fields);
		fields[n++] =
			(struct http_field){"WWW-Authenticate", STR("Bearer realm=\"fixture\"")};
		http_reply(x, 401, fields, n, STR("{}"));
		return -1;
	}
	return mcp_http_head(app->mcp, app->guard, x, max_body);
}

static void on_request(struct http_exchange *x, void *context)
{
	const struct app *app = context;
	struct mcp_caller caller = caller_of(x);

	mcp_http_request(app->mcp, app->guard, x, &caller);
}

static void wait_for_signal(void)
{
	sigset_t set;
	int signal;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigwait(&set, &signal);
}

static int serve(struct app *app, const char *address)
{
	static const struct http_guard_options guard = {
		.loopback_origins = true,
		.refuses_origins = true,
		.methods = "GET, POST, DELETE, OPTIONS",
		.request_headers =
			"Content-Type, Accept, Authorization, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, "
			"Mcp-Name, Last-Event-ID, traceparent, tracestate",
		.request_header_prefix = "Mcp-Param-",
		.exposed_headers = "Mcp-Session-Id, WWW-Authenticate, Retry-After",
		.max_age_s = 600,
	};
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const struct str listen = str_of(address);
	struct http_options options = {.listen = &listen,
		.listen_count = 1,
		.on_head = on_head,
		.on_request = on_request,
		.app = app};
	struct http_server *http;
	struct failure f;

	failure_init(&f, arena);
	app->guard = http_guard_create(&guard);
	if (http_open(&options, &http, &f) != 0 || http_start(http, &f) != 0) {
		(void)fprintf(stderr, "%.*s\n", STRF(f.message));
		return 1;
	}
	(void)printf("%.*s/mcp\n", STRF(http_url(http, 0)));
	(void)fflush(stdout);
	wait_for_signal();
	mcp_server_stop(app->mcp);
	http_stop(http, 1000);
	later_stop();
	http_close(http);
	http_guard_destroy(app->guard);
	return 0;
}

/* ---- stdio ---- */

static void write_line(void *context, struct str line)
{
	(void)context;
	while (line.n > 0) {
		ssize_t n = write(STDOUT_FILENO, line.p, line.n);

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0)
			line = (struct str){line.p + n, line.n - (size_t)n};
	}
}

static int lines(struct app *app)
{
	const struct mcp_line_options options = {
		.caller = {.principal = STR("local"), .profile = STR("full")}, .write = write_line};
	struct mcp_line *line = mcp_line_create(app->mcp, &options);
	char bytes[65536];
	ssize_t n;

	while ((n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0)
		mcp_line_feed(line, (struct str){bytes, (size_t)n});
	for (int i = 0; i < 50 && mcp_line_in_flight(line) > 0; i++)
		(void)usleep(10000);
	mcp_line_close(line);
	later_stop();
	return 0;
}

int main(int argc, char **argv)
{
	struct mcp_settings settings = {
		.handlers = &handlers,
		.server_info =
			STR("{\"name\":\"dais-mcp-fixture\",\"version\":\"" DAIS_VERSION "\"}"),
		.offers_tasks = true,
		.lists_are_public = true,
	};
	struct app app = {0};
	sigset_t set;
	int rc;

	/* Blocked before any thread begins, so that sigwait gets them. */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)signal(SIGPIPE, SIG_IGN);
	log_setup(LOG_WARN, LOG_FORMAT_AUTO, STDERR_FILENO);
	if (argc == 2 && strcmp(argv[1], "--lines") == 0) {
		app.mcp = mcp_server_create(&settings);
		fixture_tasks_init(app.mcp);
		rc = lines(&app);
	} else if (argc == 3 && strcmp(argv[1], "--listen") == 0 &&
		   (strncmp(argv[2], "127.0.0.1:", 10) == 0 ||
			   strncmp(argv[2], "localhost:", 10) == 0)) {
		(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
		app.mcp = mcp_server_create(&settings);
		fixture_tasks_init(app.mcp);
		rc = serve(&app, argv[2]);
	} else {
		(void)fprintf(
			stderr, "usage: dais-mcp-fixture --listen 127.0.0.1:PORT | --lines\n");
		return 64;
	}
	mcp_server_destroy(app.mcp);
	return rc;
}
