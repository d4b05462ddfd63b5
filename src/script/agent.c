/* The program: stdin to its end, then the sessions to theirs. */
#include "script/private.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define READ_BYTES 65536
/* A prompt may carry files, but what is longer than this is no message. */
#define LINE_BYTES (64 * 1024 * 1024)

/* ---- the scenario ---- */

static int read_scenario(const char *path, struct arena *arena, struct str *out, struct failure *f)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *bytes = ARENA_ARRAY(arena, char, READ_BYTES);
	struct buf text;
	ssize_t n;

	if (fd < 0)
		return fail(f, FAIL_BAD_CONFIGURATION, "The scenario %s cannot be opened: %s.", path, strerror(errno));
	buf_init(&text, arena, 2 * 1024 * 1024); /* more than a YAML text may have, so that its reader says so */
	while ((n = read(fd, bytes, READ_BYTES)) > 0 && !text.overflow)
		buf_add(&text, bytes, (size_t)n);
	(void)close(fd);
	if (n < 0)
		return fail(f, FAIL_BAD_CONFIGURATION, "The scenario %s cannot be read: %s.", path, strerror(errno));
	*out = buf_str(&text);
	return 0;
}

static int load_scenario(const char *path, struct arena *arena, const struct scenario **out, struct failure *f)
{
	struct yaml_error error;
	struct str text;

	if (read_scenario(path, arena, &text, f) != 0)
		return -1;
	if (scenario_read(text, arena, out, &error) == 0)
		return 0;
	return fail(
		f, FAIL_BAD_CONFIGURATION, "%s:%u:%u: %.*s.", path, error.at.line, error.at.column, STRF(error.reason));
}

int scenario_check(const char *path, struct failure *f)
{
	const struct scenario *scenario;
	AUTO(arena_destroyp) struct arena *arena = arena_create();

	return load_scenario(path, arena, &scenario, f);
}

/* ---- reading ---- */

/* Take the whole lines out of `rest`, whose new bytes begin at `from`; false: one is longer than any message. */
static bool take_lines(struct script_agent *agent, struct buf *rest, size_t from)
{
	size_t start = 0;
	const char *end;

	while ((end = memchr(rest->p + from, '\n', rest->n - from)) != NULL) {
		struct str line = {rest->p + start, (size_t)(end - rest->p) - start};

		if (!str_is_blank(line))
			script_take_line(agent, line);
		start = from = (size_t)(end - rest->p) + 1;
	}
	buf_consume(rest, start);
	return rest->n <= LINE_BYTES;
}

/* A step that hangs has it in its hand whether anything is read: then this waits for ever, as does who writes. */
static bool may_read(struct script_agent *agent)
{
	struct pollfd fds[] = {{.fd = agent->in, .events = POLLIN}, {.fd = agent->stop_reading, .events = POLLIN}};

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	return fds[1].revents == 0;
}

static void read_all(struct script_agent *agent)
{
	char *bytes = malloc(READ_BYTES);
	struct buf rest;
	ssize_t n;

	if (bytes == NULL)
		abort();
	buf_init(&rest, NULL, SIZE_MAX);
	for (;;) {
		size_t known = rest.n;

		while (!may_read(agent))
			(void)pause();
		n = read(agent->in, bytes, READ_BYTES);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			break;
		buf_add(&rest, bytes, (size_t)n);
		if (!take_lines(agent, &rest, known))
			break;
	}
	buf_finish(&rest);
	free(bytes);
}

/* Nobody waits for an answer any more: turns end as if they were cancelled, but for those that ignore it. */
static void end_sessions(struct script_agent *agent)
{
	struct session *next;

	(void)pthread_mutex_lock(&agent->lock);
	for (struct session *session = agent->sessions; session != NULL; session = session->next)
		script_session_close(session);
	(void)pthread_mutex_unlock(&agent->lock);
	for (struct session *session = agent->sessions; session != NULL; session = next) {
		next = session->next;
		(void)pthread_join(session->thread, NULL);
		script_session_destroy(session);
	}
}

/* stdout belongs to the protocol: what a library or a child prints goes to stderr. */
static int take_stdout(void)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	return fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? -1 : fd;
}

int script_agent_main(const char *path, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct script_agent agent = {
		.directory = script_session_directory(arena),
		.in = STDIN_FILENO,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.output = PTHREAD_MUTEX_INITIALIZER,
	};

	if (load_scenario(path, arena, &agent.scenario, f) != 0)
		return -1;
	agent.out = take_stdout();
	agent.stop_reading = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (agent.out < 0 || agent.stop_reading < 0)
		return fail_errno(f, "set up stdin and stdout of the scripted agent");
	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
	read_all(&agent);
	end_sessions(&agent);
	curl_global_cleanup();
	(void)close(agent.stop_reading);
	(void)close(agent.out);
	return 0;
}
