/* Starting the program: its own session, its pipes, its directory, its environment and nothing of ours. */
#include "agents/private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum step { STEP_RUNS, STEP_PIPES, STEP_CWD, STEP_CONFINE, STEP_EXEC };

/* What the child tells: first that it runs, then what went wrong. Its pipe just closes when it became the program. */
struct mishap {
	enum step step;
	int error;
};

struct plan {
	char **argv, **env, **files; /* files: what argv[0] may mean, in order */
	const char *cwd;
	int in, out, err, report; /* the child's ends */
	int ruleset, cgroup;	  /* -1: none */
};

/* The kernel takes pointers to what it does not change. */
static char **words_for_exec(struct arena *arena, const char *const *words)
{
	size_t n = 0;
	char **copy;

	while (words[n] != NULL)
		n++;
	copy = ARENA_ARRAY(arena, char *, n + 1);
	for (size_t i = 0; i < n; i++)
		copy[i] = arena_copy(arena, words[i], strlen(words[i]));
	return copy;
}

static const char *variable(const char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; *env != NULL; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

/* Like execvp, but by the PATH of the program's environment. */
static char **find_files(struct arena *arena, const char *name, const char *const *env)
{
	const char *path = variable(env, "PATH");
	size_t n = 1;
	char **files;

	if (path == NULL || strchr(name, '/') != NULL) {
		files = ARENA_ARRAY(arena, char *, 2);
		files[0] = arena_copy(arena, name, strlen(name));
		return files;
	}
	for (const char *p = path; *p != '\0'; p++)
		n += *p == ':';
	files = ARENA_ARRAY(arena, char *, n + 1);
	for (size_t i = 0; i < n; i++) {
		size_t part = strcspn(path, ":");

		files[i] = arena_printf(arena, "%.*s/%s", part == 0 ? 1 : (int)part, part == 0 ? "." : path, name);
		path += part + (path[part] == ':');
	}
	return files;
}

/* ---- in the child ---- */

__attribute__((noreturn)) static void give_up(const struct plan *plan, enum step step)
{
	struct mishap mishap = {step, errno};

	(void)!write(plan->report, &mishap, sizeof(mishap)); /* nobody else to tell */
	_exit(127);
}

static void default_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL); /* some cannot be changed, and need not */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

__attribute__((noreturn)) static void become_program(const struct plan *plan)
{
	const struct mishap runs = {STEP_RUNS, 0};
	int error = ENOENT;

	(void)!write(plan->report, &runs, sizeof(runs));
	(void)setsid(); /* a child of the host leads no group, so that this cannot fail */
	default_signals();
	if (dup2(plan->in, STDIN_FILENO) < 0 || dup2(plan->out, STDOUT_FILENO) < 0 || dup2(plan->err, STDERR_FILENO) < 0)
		give_up(plan, STEP_PIPES);
	(void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC); /* all of ours have it; for those of libraries */
	if (chdir(plan->cwd) != 0)
		give_up(plan, STEP_CWD);
	if (plan->ruleset >= 0 && confine_self(plan->ruleset) != 0)
		give_up(plan, STEP_CONFINE);
	for (char **file = plan->files; *file != NULL; file++) {
		(void)execve(*file, plan->argv, plan->env);
		if (errno == EACCES)
			error = EACCES;
		else if (errno != ENOENT && errno != ENOTDIR)
			give_up(plan, STEP_EXEC);
	}
	errno = error;
	give_up(plan, STEP_EXEC);
}

/* ---- in the host ---- */

struct pipe_ends {
	int read, write;
};

static bool open_pipes(struct pipe_ends *pipes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int fds[2];

		if (pipe2(fds, O_CLOEXEC) != 0)
			return false;
		pipes[i] = (struct pipe_ends){fds[0], fds[1]};
	}
	return true;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static const char *explain(struct arena *arena, const struct host_settings *s, const struct mishap *mishap)
{
	const char *error = strerror(mishap->error);

	switch (mishap->step) {
	case STEP_CWD:
		return arena_printf(arena, "cannot start %s: its directory %s: %s", s->argv[0], s->cwd, error);
	case STEP_CONFINE:
		return arena_printf(arena, "cannot start %s: it is to be held read-only, and Landlock refused: %s", s->argv[0],
			error);
	case STEP_EXEC:
		return arena_printf(arena, "cannot start %s: %s%s", s->argv[0], error,
			mishap->error == ENOENT && strchr(s->argv[0], '/') == NULL ? " (on the PATH of its environment)" : "");
	case STEP_RUNS:
	case STEP_PIPES:
		break;
	}
	return arena_printf(arena, "cannot start %s: %s", s->argv[0], error);
}

/* A fork whose child is in the cgroup from the start: moving it there later made it wait 12 ms. */
static pid_t fork_into(int cgroup)
{
	struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)cgroup};
	pid_t pid = cgroup < 0 ? -1 : (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	return pid >= 0 ? pid : fork(); /* without a cgroup the walk over /proc has to do */
}

static pid_t fork_quietly(struct plan *plan)
{
	sigset_t all, before;
	pid_t pid;

	/* Until the child has its own handlers, a signal to it would be heard by our loop. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork_into(plan->cgroup);
	if (pid == 0)
		become_program(plan);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* How many reports came until the child became the program or gave up. */
static size_t hear(int fd, struct mishap reports[2])
{
	size_t n = 0;
	ssize_t got;

	while (n < 2 * sizeof(*reports)) {
		got = read(fd, (char *)reports + n, 2 * sizeof(*reports) - n);
		if (got == 0 || (got < 0 && errno != EINTR))
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	return n / sizeof(*reports);
}

/* Fork, and hear whether it became the program; a child that did not is reaped with all others. */
static pid_t start(struct plan *plan, struct mishap *mishap)
{
	struct pipe_ends pipe;
	struct mishap reports[2];
	size_t heard;
	pid_t pid;

	if (!open_pipes(&pipe, 1)) {
		*mishap = (struct mishap){STEP_PIPES, errno};
		return -1;
	}
	plan->report = pipe.write;
	pid = fork_quietly(plan);
	*mishap = (struct mishap){STEP_PIPES, errno};
	(void)close(pipe.write);
	heard = pid < 0 ? 0 : hear(pipe.read, reports);
	(void)close(pipe.read);
	if (pid > 0 && heard == 0 && plan->cgroup >= 0) {
		/* Killed before its first step: Linux does that when somebody once used the cgroup.kill of our own cgroup. */
		plan->cgroup = -1;
		return start(plan, mishap);
	}
	if (heard == 1)
		return pid;
	if (heard == 2)
		*mishap = reports[1];
	return -1;
}

static int prepare_confinement(const struct host_settings *s, struct arena *arena, int *ruleset, const char **why)
{
	const char *where;

	if (!s->is_read_only)
		return 0;
	*ruleset = confine_prepare(s->writable, &where);
	if (*ruleset >= 0)
		return 0;
	*why = agents_can_confine() == 0
		? arena_printf(arena,
			  "cannot start %s: it is to be held read-only, and this kernel has no Landlock (Linux 5.13 or newer with "
			  "CONFIG_SECURITY_LANDLOCK, and landlock in its lsm= list)",
			  s->argv[0])
		: arena_printf(arena, "cannot start %s: it is to be held read-only but for %s: %s", s->argv[0], where,
			  strerror(errno));
	return -1;
}

int agent_spawn(const struct host_settings *s, struct str cgroup, struct arena *arena, pid_t *pid,
	struct agent_pipes *pipes, const char **why)
{
	enum { IN, OUT, ERR, PIPES };
	struct pipe_ends ends[PIPES] = {{-1, -1}, {-1, -1}, {-1, -1}};
	struct mishap mishap = {STEP_PIPES, 0};
	int group = cgroup_open(cgroup);
	struct plan plan = {.cwd = s->cwd, .ruleset = -1, .cgroup = group};
	pid_t started = -1;

	if (prepare_confinement(s, arena, &plan.ruleset, why) != 0)
		goto out;
	if (open_pipes(ends, PIPES)) {
		plan.argv = words_for_exec(arena, s->argv);
		plan.env = words_for_exec(arena, s->env);
		plan.files = find_files(arena, s->argv[0], s->env);
		plan.in = ends[IN].read;
		plan.out = ends[OUT].write;
		plan.err = ends[ERR].write;
		started = start(&plan, &mishap);
	} else
		mishap.error = errno;
	if (started < 0) {
		*why = explain(arena, s, &mishap);
		goto out;
	}
	*pid = started;
	*pipes = (struct agent_pipes){ends[IN].write, ends[OUT].read, ends[ERR].read};
	ends[IN].write = ends[OUT].read = ends[ERR].read = -1;
out:
	for (size_t i = 0; i < PIPES; i++) {
		close_fd(&ends[i].read);
		close_fd(&ends[i].write);
	}
	close_fd(&plan.ruleset);
	close_fd(&group);
	return started < 0 ? -1 : 0;
}
