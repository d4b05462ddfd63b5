/* Following the event log over the Unix socket, across restarts of the server. */
#include "cli/cli.h"

#include "store/store.h"

#include <errno.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES (4 * 1024 * 1024)
#define RETRY_MS 100

static int64_t sequence_of(struct str line)
{
	struct json_error error;
	json_auto_t *event = json_read(line, &error);

	return json_integer_value(json_object_get(event, "seq"));
}

/* Where "now" is, so that a restart before the first event loses nothing. */
static int find_start(struct cli *cli, struct following *following, struct failure *f)
{
	json_auto_t *status = NULL;

	if (following->since != 0)
		return 0;
	if (client_admin_running(cli, STR("{\"op\":\"status\"}"), &status, f) != 0)
		return -1;
	following->since = json_integer_value(json_object_get(status, "newestEvent"));
	return 0;
}

static int subscribe(struct cli *cli, const struct following *following, int *out_fd, struct failure *f)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"method\":\"" LOCAL_EVENTS "\",\"params\":{\"since\":%lld}}\n",
		(long long)following->since);

	if (client_connect(cli, out_fd, f) != 0)
		return -1;
	if (write_all(*out_fd, (struct str){text, (size_t)n}) == 0)
		return 0;
	(void)close(*out_fd);
	return fail(f, FAIL_NOT_REACHABLE, "The server went away.");
}

/* Hand over the whole lines of `pending`. */
static void take_lines(struct following *following, struct buf *pending)
{
	size_t at = 0;

	while (at < pending->n) {
		const char *end = memchr(pending->p + at, '\n', pending->n - at);
		struct str line;
		int64_t seq;

		if (end == NULL)
			break;
		line = (struct str){pending->p + at, (size_t)(end - pending->p) - at};
		seq = sequence_of(line);
		if (seq > following->since) {
			following->since = seq;
			following->take(following->context, line);
		}
		at += line.n + 1;
	}
	buf_consume(pending, at);
}

/* 1 when there is something to read, 0 when nobody reads what we print any more: on a quiet server no failing
 * write would tell. A file or a terminal never reports this. */
static int await_line(int fd)
{
	struct pollfd polled[] = {{.fd = fd, .events = POLLIN}, {.fd = STDOUT_FILENO}};

	while (poll(polled, 2, -1) < 0)
		if (errno != EINTR)
			return 1; /* read tells why */
	return (polled[1].revents & (POLLERR | POLLHUP)) != 0 ? 0 : 1;
}

/* Until the server is gone (0), or as settle says. */
static int read_events(struct following *following, int fd, struct failure *f)
{
	struct buf pending;
	char bytes[65536];
	ssize_t n = 1;
	int rc = following->settle(following->context, f);

	buf_init(&pending, NULL, LINE_BYTES);
	while (rc == 0) {
		if (await_line(fd) == 0) {
			rc = 1;
			break;
		}
		n = read(fd, bytes, sizeof(bytes));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		buf_add(&pending, bytes, (size_t)n);
		take_lines(following, &pending);
		rc = following->settle(following->context, f);
	}
	buf_finish(&pending);
	return rc;
}

int follow_events(struct cli *cli, struct following *following, struct failure *f)
{
	const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
	bool was_there = false;
	bool was_told = false;

	if (find_start(cli, following, f) != 0)
		return -1;
	for (;;) {
		/* Each attempt has its own memory: a server may be away for days. */
		AUTO(arena_destroyp) struct arena *arena = arena_create();
		struct cli attempt = *cli;
		struct failure away;
		int fd;
		int rc;

		attempt.arena = arena;
		failure_init(&away, arena);
		if (subscribe(&attempt, following, &fd, &away) != 0) {
			if (!was_there || away.code != FAIL_NOT_REACHABLE) {
				failure_copy(f, cli->arena, &away);
				return -1;
			}
			if (!was_told)
				(void)fprintf(stderr, "dais: the server is away; waiting for it.\n");
			was_told = true;
			(void)nanosleep(&pause, NULL); /* nothing else tells when a server comes back */
			continue;
		}
		was_there = true;
		was_told = false;
		rc = read_events(following, fd, f);
		(void)close(fd);
		if (rc != 0)
			return rc < 0 ? -1 : 0;
	}
}
