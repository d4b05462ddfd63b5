/* Run one program to its end: bounded output, a deadline, a way to stop it from another thread.
 *
 * It gets a session of its own, so that it has no terminal to ask on and can be stopped with all
 * that it started, and none of our descriptors. */
#include "workspace/private.h"

#include "base/clock.h"
#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct cancel {
	int fd; /* eventfd: counts up once and is never read, so it stays readable */
};

struct cancel *cancel_create(void)
{
	struct cancel *cancel = malloc(sizeof(*cancel));

	if (cancel == NULL)
		abort();
	cancel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cancel->fd < 0)
		abort(); /* out of descriptors: as out of memory */
	return cancel;
}

void cancel_destroy(struct cancel *cancel)
{
	if (cancel == NULL)
		return;
	close(cancel->fd);
	free(cancel);
}

void cancel_request(struct cancel *cancel)
{
	(void)eventfd_write(cancel->fd, 1); /* fails only when it is full of requests already */
}

bool cancel_is_requested(const struct cancel *cancel)
{
	struct pollfd ready = {.fd = cancel_fd(cancel), .events = POLLIN};

	return cancel != NULL && poll(&ready, 1, 0) == 1;
}

int cancel_fd(const struct cancel *cancel)
{
	return cancel == NULL ? -1 : cancel->fd;
}

int program_input(struct str text)
{
	int fd = memfd_create("dais-input", MFD_CLOEXEC);

	for (size_t done = 0; fd >= 0 && done < text.n;) {
		ssize_t n = write(fd, text.p + done, text.n - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			close(fd);
			return -1;
		}
		done += (size_t)n;
	}
	if (fd >= 0)
		(void)lseek(fd, 0, SEEK_SET); /* a memory file can always be rewound */
	return fd;
}

/* ---- environment ---- */

/* What belongs to another repository, would change what git prints, or is ours and may be secret.
 */
static bool is_dropped(const char *entry)
{
	static const char *const names[] = {"DAIS_", "GIT_ALTERNATE_OBJECT_DIRECTORIES=",
		"GIT_COMMON_DIR=", "GIT_CONFIG=", "GIT_CONFIG_COUNT=", "GIT_CONFIG_PARAMETERS=",
		"GIT_DIR=", "GIT_DISCOVERY_ACROSS_FILESYSTEM=", "GIT_GLOB_PATHSPECS=",
		"GIT_GRAFT_FILE=", "GIT_ICASE_PATHSPECS=", "GIT_IMPLICIT_WORK_TREE=",
		"GIT_INDEX_FILE=", "GIT_INTERNAL_", "GIT_LITERAL_PATHSPECS=", "GIT_NAMESPACE=",
		"GIT_NOGLOB_PATHSPECS=", "GIT_NO_REPLACE_OBJECTS=", "GIT_OBJECT_DIRECTORY=",
		"GIT_PREFIX=", "GIT_REPLACE_REF_BASE=", "GIT_SHALLOW_FILE=", "GIT_TRACE",
		"GIT_WORK_TREE="};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(entry, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static bool is_set_again(const char *entry, const char *const *added)
{
	const char *equals = strchr(entry, '=');

	for (size_t i = 0; equals != NULL && added != NULL && added[i] != NULL; i++)
		if (strncmp(entry, added[i], (size_t)(equals - entry) + 1) == 0)
			return true;
	return false;
}

static char **make_env(struct arena *arena, const char *const *added)
{
	size_t n = 0;
	char **env;

	for (size_t i = 0; environ[i] != NULL; i++)
		n++;
	for (size_t i = 0; added != NULL && added[i] != NULL; i++)
		n++;
	env = ARENA_ARRAY(arena, char *, n + 1);
	n = 0;
	for (size_t i = 0; environ[i] != NULL; i++)
		if (!is_dropped(environ[i]) && !is_set_again(environ[i], added))
			env[n++] = environ[i];
	for (size_t i = 0; added != NULL && added[i] != NULL; i++)
		env[n++] = arena_copy(arena, added[i], strlen(added[i]));
	return env;
}

/* ---- output ---- */

/* Collects up to max bytes: the first ones, or the newest. */
struct sink {
	struct arena *arena;
	int fd; /* -1: at its end */
	char *p;
	size_t n, cap, max;
	bool is_tail;
	bool is_full;
};

static void sink_add(struct sink *sink, const char *bytes, size_t n)
{
	size_t room = sink->is_tail ? 2 * sink->max : sink->max;

	if (sink->n + n > room && !sink->is_tail) {
		sink->is_full = true;
		return;
	}
	if (sink->n + n > room) {
		size_t kept = sink->n < sink->max ? sink->n : sink->max;

		memmove(sink->p, sink->p + sink->n - kept, kept);
		sink->n = kept;
	}
	if (sink->n + n > sink->cap) {
		size_t cap = sink->cap == 0 ? 4096 : sink->cap;

		while (cap < sink->n + n)
			cap *= 2;
		sink->p = arena_grow(sink->arena, sink->p, sink->cap, cap);
		sink->cap = cap;
	}
	memcpy(sink->p + sink->n, bytes, n);
	sink->n += n;
}

/* All that is there now: a whole pipe, but no more, as there may be one who never stops writing. */
static void sink_read(struct sink *sink)
{
	char bytes[8192];

	for (int turn = 0; sink->fd >= 0 && turn < 64; turn++) {
		ssize_t n = read(sink->fd, bytes, sizeof(bytes));

		if (n > 0) {
			sink_add(sink, bytes, (size_t)n < sink->max ? (size_t)n : sink->max);
			if (sink->is_full)
				return;
		} else if (n < 0 && errno == EINTR) {
			continue;
		} else if (n < 0 && errno == EAGAIN) {
			return;
		} else {
			close(sink->fd);
			sink->fd = -1;
		}
	}
}

static struct str sink_text(const struct sink *sink)
{
	size_t n = sink->n < sink->max ? sink->n : sink->max;

	return n == 0 ? STR("") : (struct str){sink->p + sink->n - n, n};
}

/* ---- starting ---- */

static void add_files(
	posix_spawn_file_actions_t *files, const struct program *program, int out, int err)
{
	if (program->input >= 0)
		posix_spawn_file_actions_adddup2(files, program->input, 0);
	else
		posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(files, out, 1);
	posix_spawn_file_actions_adddup2(files, err, 2);
	posix_spawn_file_actions_addclosefrom_np(files, 3);
	if (program->cwd != NULL)
		posix_spawn_file_actions_addchdir_np(files, program->cwd);
}

static int start(struct arena *arena, const struct program *program, int out, int err, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	char **argv;
	size_t argc = 0;
	int error;

	while (program->argv[argc] != NULL)
		argc++;
	argv = ARENA_ARRAY(arena, char *, argc + 1);
	for (size_t i = 0; i < argc; i++)
		argv[i] = arena_copy(arena, program->argv[i], strlen(program->argv[i]));
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(
		&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	add_files(&files, program, out, err);
	error = posix_spawnp(pid, argv[0], &files, &attr, argv, make_env(arena, program->env));
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return error;
}

/* ---- waiting ---- */

struct watch {
	pid_t pid;
	int fd; /* pidfd */
	struct sink out, err;
	int64_t stop_at; /* monotonic */
	int64_t kill_at; /* once it was asked to stop */
	enum program_stop stop;
};

/* Ask first: git then takes its lock files away. */
static void ask_to_stop(struct watch *watch, enum program_stop why)
{
	if (watch->stop != STOP_NONE)
		return;
	watch->stop = why;
	watch->kill_at = clock_mono_ms() + LIMIT_STOP_GRACE_MS;
	kill(-watch->pid, SIGTERM);
}

static int patience(const struct watch *watch)
{
	int64_t left =
		(watch->stop == STOP_NONE ? watch->stop_at : watch->kill_at) - clock_mono_ms();

	if (left < 0)
		return 0;
	return left > 60000 ? 60000 : (int)left;
}

static void wait_for_end(struct watch *watch, int cancelled)
{
	for (;;) {
		struct pollfd ready[] = {
			{.fd = watch->fd, .events = POLLIN},
			{.fd = watch->out.is_full ? -1 : watch->out.fd, .events = POLLIN},
			{.fd = watch->err.fd, .events = POLLIN},
			{.fd = watch->stop == STOP_NONE ? cancelled : -1, .events = POLLIN},
		};

		(void)poll(ready, 4, patience(watch)); /* an interruption is a turn of the loop */
		sink_read(&watch->err);
		if (!watch->out.is_full)
			sink_read(&watch->out);
		if (ready[0].revents != 0)
			return;
		if (watch->out.is_full)
			ask_to_stop(watch, STOP_TOO_LONG);
		if (ready[3].revents != 0)
			ask_to_stop(watch, STOP_CANCELLED);
		if (watch->stop == STOP_NONE && clock_mono_ms() >= watch->stop_at)
			ask_to_stop(watch, STOP_TIMED_OUT);
		else if (watch->stop != STOP_NONE && clock_mono_ms() >= watch->kill_at) {
			kill(-watch->pid, SIGKILL);
			watch->kill_at = INT64_MAX / 2;
		}
	}
}

static void reap(struct watch *watch, struct program_end *end)
{
	int status = 0;

	if (watch->stop != STOP_NONE)
		kill(-watch->pid, SIGKILL); /* what it started and left behind; the id is ours until
		                               it is reaped */
	while (waitpid(watch->pid, &status, 0) < 0 && errno == EINTR)
		;
	end->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Both ends do not survive an exec; ours does not block. */
static int open_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK); /* cannot fail on a pipe */
	return 0;
}

static void close_both(int ends[2])
{
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

static void watch_until_end(const struct workspace_call *call, const struct program *program,
	struct watch *watch, struct program_end *end)
{
	watch->stop_at = clock_mono_ms() + program->timeout_ms;
	wait_for_end(watch, cancel_fd(call->cancel));
	reap(watch, end);
	close(watch->fd);
	end->stop = watch->stop;
	end->out = sink_text(&watch->out);
	end->err = sink_text(&watch->err);
}

void program_run(
	const struct workspace_call *call, const struct program *program, struct program_end *end)
{
	struct watch watch = {.fd = -1};
	int out[2] = {-1, -1}, err[2] = {-1, -1};

	*end = (struct program_end){.out = STR(""), .err = STR("")};
	if (cancel_is_requested(call->cancel)) {
		end->stop = STOP_CANCELLED;
		return;
	}
	if (open_pipe(out) != 0 || open_pipe(err) != 0) {
		end->start_error = errno;
		close_both(out);
		close_both(err);
		return;
	}
	end->start_error = start(
		call->arena, program, out[1], program->is_tail_only ? out[1] : err[1], &watch.pid);
	close(out[1]);
	close(err[1]);
	watch.out = (struct sink){
		call->arena, out[0], .max = program->max_out, .is_tail = program->is_tail_only};
	watch.err =
		(struct sink){call->arena, err[0], .max = LIMIT_GIT_STDERR_BYTES, .is_tail = true};
	if (end->start_error == 0) {
		watch.fd = pidfd_open(watch.pid, 0);
		if (watch.fd >= 0) {
			watch_until_end(call, program, &watch, end);
		} else {
			end->start_error = errno;
			watch.stop = STOP_CANCELLED;
			reap(&watch, end);
		}
	}
	if (watch.out.fd >= 0)
		close(watch.out.fd);
	if (watch.err.fd >= 0)
		close(watch.err.fd);
}
