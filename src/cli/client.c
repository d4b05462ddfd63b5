/* Talking to the running server over its Unix socket. */
#include "cli/cli.h"

#include "server/admin.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_BYTES (8 * 1024 * 1024)
#define SPAWN_MS 10000

int write_all(int fd, struct str bytes)
{
	while (bytes.n > 0) {
		ssize_t n = write(fd, bytes.p, bytes.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		bytes.p += n;
		bytes.n -= (size_t)n;
	}
	return 0;
}

int read_line(int fd, struct buf *rest, size_t max, struct arena *arena, struct str *out)
{
	for (;;) {
		const char *end = rest->n == 0 ? NULL : memchr(rest->p, '\n', rest->n);
		char bytes[65536];
		ssize_t n;

		if (end != NULL) {
			*out = (struct str){arena_copy(arena, rest->p, (size_t)(end - rest->p)),
				(size_t)(end - rest->p)};
			buf_consume(rest, out->n + 1);
			return 1;
		}
		if (rest->n > max)
			return -1;
		n = read(fd, bytes, sizeof(bytes));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 ? 0 : -1;
		buf_add(rest, bytes, (size_t)n);
	}
}

int client_connect(struct cli *cli, int *out_fd, struct failure *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path;
	int fd;

	if (state_socket(cli->arena, cli->state_dir, &path, f) != 0)
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail_errno(f, "make a socket");
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
		*out_fd = fd;
		return 0;
	}
	(void)close(fd);
	if (errno == EACCES)
		return fail(f, FAIL_NOT_PERMITTED, "The server in %s belongs to somebody else.", cli->state_dir);
	return fail(f, FAIL_NOT_REACHABLE, "No server answers in %s.", cli->state_dir);
}

/* What the child said on stderr before it gave up: its last line. */
static struct str last_line(struct cli *cli, int fd)
{
	char text[4096];
	ssize_t n = read(fd, text, sizeof(text));
	struct str all = {text, n > 0 ? (size_t)n : 0};
	const char *start;

	all = str_trim(all);
	start = all.n == 0 ? NULL : memrchr(all.p, '\n', all.n);
	if (start != NULL)
		all = (struct str){start + 1, all.n - (size_t)(start + 1 - all.p)};
	return str_dup(cli->arena, all);
}

/* The server in a session of its own, with nothing of ours but its output: "ready" comes on stdout. */
static pid_t spawn(struct cli *cli, int *out_ready, int *out_errors, struct failure *f)
{
	int ready[2];
	int errors[2];
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0) {
		(void)fail_errno(f, "make a pipe");
		return -1;
	}
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		(void)setsid();
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(ready[1], STDOUT_FILENO);
		(void)dup2(errors[1], STDERR_FILENO);
		(void)execl("/proc/self/exe", "dais", "serve", "--state", cli->state_dir, "--log-level", "error",
			"--detached", cli->config == NULL ? (char *)NULL : "--config", cli->config, (char *)NULL);
		_exit(70);
	}
	(void)close(ready[1]);
	(void)close(errors[1]);
	if (pid < 0) {
		(void)close(ready[0]);
		(void)close(errors[0]);
		(void)fail_errno(f, "start the server");
		return -1;
	}
	*out_ready = ready[0];
	*out_errors = errors[0];
	return pid;
}

/* The child is ready, or says why not. */
static int await_ready(struct cli *cli, int ready, int errors, struct failure *f)
{
	struct pollfd polled = {.fd = ready, .events = POLLIN};
	struct str said;
	char byte;

	if (poll(&polled, 1, SPAWN_MS) > 0 && read(ready, &byte, 1) == 1)
		return 0;
	said = last_line(cli, errors);
	if (str_starts(said, STR("dais: ")))
		said = (struct str){said.p + strlen("dais: "), said.n - strlen("dais: ")};
	return fail(f, FAIL_NOT_REACHABLE, "The server could not be started: %.*s", STRF(said));
}

int client_connect_or_spawn(struct cli *cli, int *out_fd, struct failure *f)
{
	int ready;
	int errors;
	int rc;

	/* Two clients that start within a moment both spawn; the lock on the database lets one live. */
	if (client_connect(cli, out_fd, f) == 0)
		return 0;
	if (f->code != FAIL_NOT_REACHABLE || spawn(cli, &ready, &errors, f) < 0)
		return -1;
	rc = await_ready(cli, ready, errors, f);
	(void)close(ready);
	(void)close(errors);
	for (int i = 0; i < 50; i++) {
		const struct timespec pause = {.tv_nsec = 20000000};
		struct failure again;

		failure_init(&again, cli->arena);
		if (client_connect(cli, out_fd, &again) == 0)
			return 0;
		if (rc != 0 && i > 10)
			return -1;
		(void)nanosleep(&pause, NULL);
	}
	return rc != 0 ? -1 : fail(f, FAIL_NOT_REACHABLE, "The server started but does not answer.");
}

const char *working_directory(struct arena *arena)
{
	char path[PATH_MAX];

	if (getcwd(path, sizeof(path)) == NULL || path[0] != '/' || utf8_check(str_of(path)) < strlen(path))
		return NULL;
	return arena_copy(arena, path, strlen(path));
}

int client_say_workspace(struct cli *cli, int fd, struct failure *f)
{
	const char *cwd = working_directory(cli->arena);
	struct buf out;

	if (cwd == NULL)
		return 0;
	buf_init(&out, cli->arena, SIZE_MAX);
	buf_add_str(&out, STR("{\"jsonrpc\":\"2.0\",\"method\":\"" LOCAL_HELLO "\",\"params\":{\"workspace\":\""));
	json_escape(&out, str_of(cwd));
	buf_add_str(&out, STR("\"}}\n"));
	return write_all(fd, buf_str(&out)) == 0 ? 0 : fail(f, FAIL_NOT_REACHABLE, "The server went away.");
}

static struct str request_text(struct cli *cli, const char *tool, struct str arguments)
{
	static int64_t last_id; /* an id may not come again on a connection before the server forgot it */
	struct buf out;
	struct json_writer w;

	buf_init(&out, cli->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	jw_kint(&w, "id", ++last_id);
	jw_ktext(&w, "method", "tools/call");
	jw_kobject(&w, "params");
	jw_ktext(&w, "name", tool);
	jw_kraw(&w, "arguments", arguments);
	jw_kobject(&w, "_meta");
	jw_ktext(&w, "io.modelcontextprotocol/protocolVersion", "2026-07-28");
	jw_kraw(&w, "io.modelcontextprotocol/clientCapabilities", STR("{}"));
	jw_kraw(&w, "io.modelcontextprotocol/clientInfo",
		STR("{\"name\":\"dais-cli\",\"version\":\"" DAIS_VERSION "\"}"));
	jw_object_end(&w);
	jw_object_end(&w);
	jw_object_end(&w);
	buf_add_char(&out, '\n');
	return buf_str(&out);
}

static int fail_rpc(struct cli *cli, const json_t *error, struct failure *f)
{
	struct str message = json_member_str(error, "message");

	(void)cli;
	return fail(f, json_integer_value(json_object_get(error, "code")) == -32602 ? FAIL_INVALID_REQUEST
									    : FAIL_INTERNAL,
		"%.*s", STRF(message));
}

int client_call(struct cli *cli, int fd, const char *tool, struct str arguments, json_t **out, struct str *raw,
	struct failure *f)
{
	struct buf rest;
	struct json_error error;
	json_auto_t *answer = NULL;
	struct str line;
	int rc;

	if (write_all(fd, request_text(cli, tool, arguments)) != 0)
		return fail(f, FAIL_NOT_REACHABLE, "The server went away.");
	buf_init(&rest, cli->arena, ANSWER_BYTES);
	do {
		json_decref(answer);
		answer = NULL;
		rc = read_line(fd, &rest, ANSWER_BYTES, cli->arena, &line);
		if (rc != 1)
			return fail(f, FAIL_NOT_REACHABLE,
				"The server went away before it answered; look whether the change was made.");
		answer = json_read(line, &error);
	} while (json_object_get(answer, "id") == NULL && json_object_get(answer, "error") == NULL);
	if (raw != NULL)
		*raw = line;
	if (json_object_get(answer, "error") != NULL)
		return fail_rpc(cli, json_object_get(answer, "error"), f);
	*out = json_incref(json_object_get(json_object_get(answer, "result"), "structuredContent"));
	return *out == NULL ? fail(f, FAIL_INTERNAL, "The server's answer cannot be read.") : 0;
}

int fail_from_envelope(struct cli *cli, const json_t *envelope, struct failure *f)
{
	const json_t *error = json_object_get(envelope, "error");
	const struct failure_info *info = failure_find(json_member_str(error, "code"));
	struct str message = str_dup(cli->arena, json_member_str(error, "message"));

	return fail(f, info == NULL ? FAIL_INTERNAL : info->code, "%.*s", STRF(message));
}

static int admin_by_socket(struct cli *cli, int fd, struct str request, json_t **out, struct failure *f)
{
	struct json_error error;
	struct buf rest;
	struct str line;
	struct str text = str_printf(cli->arena,
		"{\"jsonrpc\":\"2.0\",\"method\":\"" LOCAL_ADMIN "\",\"params\":%.*s}\n", STRF(request));
	json_t *answer;

	buf_init(&rest, cli->arena, ANSWER_BYTES);
	if (write_all(fd, text) != 0 || read_line(fd, &rest, ANSWER_BYTES, cli->arena, &line) != 1)
		return fail(f, FAIL_NOT_REACHABLE, "The server went away.");
	answer = json_read(line, &error);
	if (answer == NULL)
		return fail(f, FAIL_INTERNAL, "The server's answer cannot be read.");
	if (!json_is_true(json_object_get(answer, "ok"))) {
		(void)fail_from_envelope(cli, answer, f);
		json_decref(answer);
		return -1;
	}
	*out = answer;
	return 0;
}

static int admin_by_store(struct cli *cli, struct str request, json_t **out, struct failure *f)
{
	struct settings *settings;
	struct store_options options = {.may_create = false, .is_exclusive = true};
	struct json_error error;
	json_auto_t *read = json_read(request, &error);
	struct store *store;
	struct buf members;
	struct json_writer w;
	int rc;

	if (cli_settings(cli, &settings, f) != 0)
		return -1;
	options.path = state_database(cli->arena, cli->state_dir, settings_text(settings, SETTING_STORE));
	if (store_open(&options, &store, f) != 0)
		return -1;
	buf_init(&members, cli->arena, SIZE_MAX);
	json_writer_init(&w, &members);
	rc = admin_run(store, read, cli->arena, &w, f);
	store_close(store);
	if (rc != 0)
		return -1;
	*out = json_read(str_printf(cli->arena, "{%.*s}", STRF(buf_str(&members))), &error);
	return 0;
}

int client_admin_running(struct cli *cli, struct str request, json_t **out, struct failure *f)
{
	int fd;
	int rc;

	if (client_connect(cli, &fd, f) != 0)
		return -1;
	rc = admin_by_socket(cli, fd, request, out, f);
	(void)close(fd);
	return rc;
}

int client_admin(struct cli *cli, struct str request, json_t **out, struct failure *f)
{
	int fd = -1;
	int rc;

	if (client_connect(cli, &fd, f) == 0) {
		rc = admin_by_socket(cli, fd, request, out, f);
		(void)close(fd);
		return rc;
	}
	return f->code == FAIL_NOT_REACHABLE ? admin_by_store(cli, request, out, f) : -1;
}

int client_tool(struct cli *cli, const char *tool, struct str arguments, json_t **out, struct failure *f)
{
	json_auto_t *envelope = NULL;
	json_t *data;
	int fd;
	int rc;

	if (client_connect(cli, &fd, f) != 0)
		return -1;
	rc = client_call(cli, fd, tool, arguments, &envelope, NULL, f);
	(void)close(fd);
	if (rc != 0)
		return -1;
	if (!json_is_true(json_object_get(envelope, "ok")))
		return fail_from_envelope(cli, envelope, f);
	data = json_object_get(envelope, "data");
	*out = json_incref(data == NULL ? json_object_get(envelope, "results") : data);
	return *out == NULL ? fail(f, FAIL_INTERNAL, "The server's answer cannot be read.") : 0;
}
