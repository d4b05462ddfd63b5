/* Steps that really do something: programs and files. */
#include "script/private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_BYTES (1024 * 1024) /* what is kept of a program's output */
#define TERM_MS 2000               /* between SIGTERM and SIGKILL after a cancel */
#define READ_BYTES 16384
#define PIPE_READS 4 /* READ_BYTES of each empty a pipe */

/* ---- starting ---- */

static char **argv_of(struct turn *turn, const struct yaml *list)
{
	char **argv = ARENA_ARRAY(turn->arena, char *, list->count + 1);

	for (size_t i = 0; i < list->count; i++)
		argv[i] = str_z(turn->arena, turn_text(turn, list->entries[i].value->text));
	return argv;
}

static struct str command_line(struct turn *turn, char **argv)
{
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	for (size_t i = 0; argv[i] != NULL; i++)
		buf_printf(&out, "%s%s", i == 0 ? "" : " ", argv[i]);
	return buf_str(&out);
}

/* With a process group or a session of its own, nothing of our descriptors, and signals as a shell would have them.
 * `out` (-1: nowhere) becomes its stdout and stderr. 0, or errno. */
static int start(struct turn *turn, char **argv, int out, bool is_detached, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	int rc;

	(void)sigemptyset(&none);
	(void)sigemptyset(&defaults);
	(void)sigaddset(&defaults, SIGPIPE);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (out >= 0)
		(void)posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	else
		(void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
	(void)posix_spawn_file_actions_addchdir_np(&actions, turn_cwd(turn));
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawnattr_setflags(
		&attributes, (short)(flags | (is_detached ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP)));
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setsigdefault(&attributes, &defaults);
	rc = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&actions);
	return rc;
}

static void begin_command(struct turn *turn, struct tool_call *call, char **argv)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	buf_add_str(&out, tool_head(turn, command_line(turn, argv), "execute"));
	json_writer_init(&w, &out);
	w.comma = true;
	jw_kobject(&w, "rawInput");
	jw_kstr(&w, "command", command_line(turn, argv));
	jw_karray(&w, "argv");
	for (size_t i = 0; argv[i] != NULL; i++)
		jw_text(&w, argv[i]);
	jw_array_end(&w);
	jw_object_end(&w);
	tool_begin(turn, call, "in_progress", buf_str(&out));
}

static void end_command(
	struct turn *turn, struct tool_call *call, bool is_fine, struct str text, const char *key, int64_t value)
{
	struct str tail = str_printf(
		turn->arena, "%.*s,\"rawOutput\":{\"%s\":%lld}", STRF(tool_content(turn, text)), key, (long long)value);

	tool_end(turn, call, is_fine ? "completed" : "failed", tail);
}

static enum outcome not_started(struct turn *turn, struct tool_call *call, char **argv, int error)
{
	end_command(turn, call, false, str_printf(turn->arena, "%s: %s", argv[0], strerror(error)), "exit_code", 127);
	return GO_ON;
}

/* ---- waiting for it ---- */

struct running {
	struct turn *turn;
	pid_t pid;
	int pidfd, pipe;
	struct buf output;
};

/* What there is to read; false at the end. */
static bool read_some(struct running *run)
{
	char bytes[READ_BYTES];
	ssize_t n = read(run->pipe, bytes, sizeof(bytes));

	if (n > 0)
		buf_add(&run->output, bytes, (size_t)n);
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Until the program has ended; its grandchildren may keep the pipe. True when a cancel came first. */
static bool listen_to(struct running *run)
{
	struct pollfd fds[] = {{.fd = run->pidfd, .events = POLLIN}, {.fd = run->turn->session->wake, .events = POLLIN},
		{.fd = run->pipe, .events = POLLIN}};

	for (;;) {
		if (poll(fds, 3, -1) < 0)
			continue; /* a signal */
		if (fds[2].revents != 0 && !read_some(run))
			fds[2].fd = -1;
		if (fds[1].revents != 0 && turn_is_cancelled(run->turn))
			return true;
		if (fds[0].revents != 0)
			return false;
	}
}

/* The whole group, first politely. */
static void end_group(struct running *run)
{
	struct pollfd ended = {.fd = run->pidfd, .events = POLLIN};

	(void)kill(-run->pid, SIGTERM);
	if (poll(&ended, 1, TERM_MS) <= 0)
		(void)kill(-run->pid, SIGKILL);
}

/* What is not UTF-8 becomes U+FFFD. */
static struct str clean_output(struct running *run)
{
	struct str rest = buf_str(&run->output);
	struct buf out;

	buf_init(&out, run->turn->arena, SIZE_MAX);
	while (rest.n > 0) {
		size_t good = utf8_check(rest), n = good < rest.n ? good + 1 : good;

		buf_add(&out, rest.p, good);
		if (good < rest.n)
			buf_add_str(&out, STR("\xef\xbf\xbd"));
		rest = (struct str){rest.p + n, rest.n - n};
	}
	return buf_str(&out);
}

static enum outcome report_end(struct running *run, struct tool_call *call, bool is_cancelled)
{
	struct turn *turn = run->turn;
	struct str output;
	int status = 0;

	while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
		;
	(void)fcntl(run->pipe, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < PIPE_READS && read_some(run); i++)
		;
	output = clean_output(run);
	if (WIFSIGNALED(status))
		end_command(turn, call, false, output, "signal", WTERMSIG(status));
	else
		end_command(turn, call, !is_cancelled && WEXITSTATUS(status) == 0, output, "exit_code",
			WEXITSTATUS(status));
	return is_cancelled ? turn_stop(turn, "cancelled") : GO_ON;
}

STEP(run)
{
	char **argv = argv_of(turn, step_value(step, "run")->node);
	struct running run = {.turn = turn};
	struct tool_call call;
	enum outcome outcome;
	bool is_cancelled;
	int ends[2], rc;

	begin_command(turn, &call, argv);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return not_started(turn, &call, argv, errno);
	rc = start(turn, argv, ends[1], false, &run.pid);
	(void)close(ends[1]);
	run.pipe = ends[0];
	if (rc != 0) {
		(void)close(run.pipe);
		return not_started(turn, &call, argv, rc);
	}
	run.pidfd = pidfd_open(run.pid, 0);
	if (run.pidfd < 0)
		abort(); /* out of descriptors: a program that cannot be waited for is worse than none */
	buf_init(&run.output, turn->arena, OUTPUT_BYTES);
	is_cancelled = listen_to(&run);
	if (is_cancelled)
		end_group(&run);
	outcome = report_end(&run, &call, is_cancelled);
	(void)close(run.pidfd);
	(void)close(run.pipe);
	return outcome;
}

/* It is our child until we end: somebody has to take its exit, or it would look alive. */
static void *reap(void *arg)
{
	pid_t pid = (pid_t)(intptr_t)arg;

	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return NULL;
}

STEP(spawn)
{
	char **argv = argv_of(turn, step_value(step, "spawn")->node);
	struct tool_call call;
	pthread_t reaper;
	pid_t pid;
	int rc;

	begin_command(turn, &call, argv);
	rc = start(turn, argv, -1, true, &pid);
	if (rc != 0)
		return not_started(turn, &call, argv, rc);
	if (pthread_create(&reaper, NULL, reap, (void *)(intptr_t)pid) == 0)
		(void)pthread_detach(reaper);
	end_command(turn, &call, true, str_printf(turn->arena, "started as process %ld", (long)pid), "pid", pid);
	return GO_ON;
}

/* ---- files ---- */

static const char *absolute(struct turn *turn, struct str path)
{
	if (path.n > 0 && path.p[0] == '/')
		return str_z(turn->arena, path);
	return arena_printf(turn->arena, "%s/%.*s", turn_cwd(turn), STRF(path));
}

/* The text that stood there, for the report; absent when it is new, or nothing to show. */
static struct str old_text(struct turn *turn, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *bytes = arena_alloc(turn->arena, OUTPUT_BYTES);
	struct stat st;
	ssize_t n = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, bytes, OUTPUT_BYTES) : -1;

	if (fd >= 0)
		(void)close(fd);
	if (n < 0 || n == OUTPUT_BYTES || utf8_check((struct str){bytes, (size_t)n}) != (size_t)n)
		return STR_NONE;
	return (struct str){bytes, (size_t)n};
}

static int write_whole(const char *path, struct str text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int error = 0;

	if (fd < 0)
		return errno;
	for (size_t at = 0; at < text.n && error == 0;) {
		ssize_t n = write(fd, text.p + at, text.n - at);

		if (n >= 0)
			at += (size_t)n;
		else if (errno != EINTR)
			error = errno;
	}
	return close(fd) != 0 && error == 0 ? errno : error;
}

static int make_folders(struct turn *turn, const char *path)
{
	char *copy = arena_copy(turn->arena, path, strlen(path));

	for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0755) != 0 && errno != EEXIST)
			return errno;
		*slash = '/';
	}
	return 0;
}

static struct str file_head(struct turn *turn, const char *verb, const char *path, const char *kind)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	buf_add_str(&out, tool_head(turn, str_printf(turn->arena, "%s %s", verb, path), kind));
	json_writer_init(&w, &out);
	w.comma = true;
	jw_karray(&w, "locations");
	jw_object_begin(&w);
	jw_ktext(&w, "path", path);
	jw_object_end(&w);
	jw_array_end(&w);
	return buf_str(&out);
}

static struct str diff(struct turn *turn, const char *path, struct str before, struct str after)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_karray(&w, "content");
	jw_object_begin(&w);
	jw_ktext(&w, "type", "diff");
	jw_ktext(&w, "path", path);
	jw_key(&w, "oldText");
	if (before.p == NULL)
		jw_null(&w);
	else
		jw_str(&w, before);
	jw_kstr(&w, "newText", after);
	jw_object_end(&w);
	jw_array_end(&w);
	return buf_str(&out);
}

static enum outcome end_file(struct turn *turn, struct tool_call *call, int error, struct str change)
{
	tool_end(turn, call, error == 0 ? "completed" : "failed",
		error == 0 ? change : tool_content(turn, str_of(strerror(error))));
	return GO_ON;
}

STEP(write_file)
{
	const char *path = absolute(turn, step_text_of(turn, step, "path"));
	struct str text = step_text_of(turn, step, "text"), before = old_text(turn, path);
	struct tool_call call;
	int error;

	tool_begin(turn, &call, "in_progress", file_head(turn, "Write", path, "edit"));
	error = make_folders(turn, path);
	if (error == 0)
		error = write_whole(path, text);
	return end_file(turn, &call, error, diff(turn, path, before, text));
}

STEP(delete_file)
{
	const char *path = absolute(turn, step_text_of(turn, step, "delete_file"));
	struct str before = old_text(turn, path);
	struct tool_call call;
	int error;

	tool_begin(turn, &call, "in_progress", file_head(turn, "Delete", path, "delete"));
	error = unlink(path) == 0 ? 0 : errno;
	return end_file(turn, &call, error, diff(turn, path, before, STR("")));
}
