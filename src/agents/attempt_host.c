/* `dais attempt-host`: one program from its start to the record of its end. See agents.h, and attempt.h for the parts. */
#include "agents/attempt.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

/* To err.log, where the server looks when a host is lost. */
__attribute__((format(printf, 2, 3))) static int complain(int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)dprintf(STDERR_FILENO, "dais attempt-host: ");
	(void)vdprintf(STDERR_FILENO, fmt, args);
	va_end(args);
	(void)dprintf(STDERR_FILENO, ": %s\n", strerror(errno));
	return code;
}

/* ---- before the loop ---- */

/* Nobody's session, nobody's descriptors, no core dump; what loses its parent below us becomes ours. */
static int detach(void)
{
	int channel, null;

	(void)setsid(); /* fails when we lead one already */
	(void)prctl(PR_SET_NAME, "dais-host");
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || close_range(HOST_LOCK_FD + 1, ~0U, 0) != 0)
		return -1;
	channel = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, HOST_LOCK_FD + 1);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (channel < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0)
		return -1;
	(void)close(null);
	return channel;
}

/* The server took it for us, so that there is no moment without; by hand we take it ourselves. */
static int take_lock(struct attempt *a)
{
	struct stat file, inherited;

	a->lock = open(FILE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (a->lock < 0 || fstat(a->lock, &file) != 0)
		return -1;
	if (fstat(HOST_LOCK_FD, &inherited) == 0 && inherited.st_dev == file.st_dev && inherited.st_ino == file.st_ino) {
		a->lock = HOST_LOCK_FD; /* the other descriptor is closed with us */
		(void)fcntl(HOST_LOCK_FD, F_SETFD, FD_CLOEXEC);
	}
	return flock(a->lock, LOCK_EX | LOCK_NB);
}

/* The directory becomes ours, and err.log our stderr. */
static int enter_directory(struct attempt *a, const char *directory)
{
	int log;

	if (chdir(directory) != 0 || (a->dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return complain(EX_CANTCREAT, "directory %s", directory);
	log = open(FILE_STDERR, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log < 0)
		return complain(EX_CANTCREAT, FILE_STDERR);
	(void)dup2(log, STDERR_FILENO);
	(void)close(log);
	if (take_lock(a) != 0)
		return complain(EX_TEMPFAIL, FILE_LOCK);
	return 0;
}

/* The first message, whole; nothing else can be done before. */
static int read_settings(struct attempt *a, int fd, struct framer *framer)
{
	struct frame frame;
	int rc;

	while ((rc = framer_next(framer, &frame)) == 0) {
		size_t room;
		char *to = framer_room(framer, &room);
		ssize_t n = read(fd, to, room);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1; /* the server ended before it said what to start */
		framer_filled(framer, (size_t)n);
	}
	if (rc < 0 || !str_eq(frame.what, STR("settings")))
		return -1;
	a->kept_n = frame.body.n;
	a->kept = malloc(a->kept_n + 1);
	if (a->kept == NULL)
		abort();
	memcpy(a->kept, frame.body.p, a->kept_n);
	explicit_bzero((void *)(uintptr_t)frame.body.p, frame.body.n);
	frame.body.p = a->kept;
	return settings_read(&frame, a->arena, &a->settings);
}

static void find_marker(struct attempt *a)
{
	for (const char *const *env = a->settings.env; *env != NULL; env++)
		if (str_starts(str_of(*env), STR(MARKER)))
			a->marker = str_of(*env);
}

static int write_record(struct attempt *a)
{
	const struct host_record record = {
		.host = {getpid(), process_started(getpid())},
		.agent = a->agent,
		.line_bytes = a->settings.line_bytes,
		.marker = a->marker,
		.cgroup = a->cgroup,
	};

	return record_write(a->dir, &record);
}

/* ---- the loop ---- */

static void on_child(uv_signal_t *handle, int sig)
{
	(void)sig;
	attempt_reap(handle->data);
}

static void on_term(uv_signal_t *handle, int sig)
{
	(void)sig;
	attempt_end(handle->data, "ended");
}

static void open_loop(struct attempt *a)
{
	if (uv_loop_init(&a->loop) != 0)
		abort();
	clock_open(a);
	(void)uv_signal_init(&a->loop, &a->on_child);
	(void)uv_signal_init(&a->loop, &a->on_term);
	a->on_child.data = a->on_term.data = a;
	(void)uv_signal_start(&a->on_child, on_child, SIGCHLD);
	(void)uv_signal_start(&a->on_term, on_term, SIGTERM);
}

/* Start the program, or say why not: that is an end like any other. */
static void start_program(struct attempt *a)
{
	struct agent_pipes pipes;
	const char *why;
	pid_t pid;

	if (agent_spawn(&a->settings, a->cgroup, a->arena, &pid, &pipes, &why) != 0) {
		errlog_add(&a->errlog, why, strlen(why));
		errlog_add(&a->errlog, "\n", 1);
		a->cause = "spawn_failed";
		a->is_agent_gone = true;
		alarm_set(a, ALARM_STAGE, 0); /* from the loop, when the server is connected */
		return;
	}
	a->agent = (struct process_id){pid, process_started(pid)};
	if (write_record(a) != 0)
		(void)complain(0, FILE_RECORD); /* the one before names the marker and the cgroup */
	pipes_open(a, &pipes);
	if (a->settings.start_ms > 0)
		alarm_set(a, ALARM_START, a->settings.start_ms);
	if (a->settings.deadline_ms > 0)
		alarm_set(a, ALARM_DEADLINE, a->settings.deadline_ms);
}

static int host(struct attempt *a, const char *directory)
{
	struct framer framer;
	int fd = detach(), rc;

	if (fd < 0)
		return complain(EX_OSERR, "cannot detach");
	rc = enter_directory(a, directory);
	if (rc != 0)
		return rc;
	framer_init(&framer, LIMIT_AGENT_SETTINGS_BYTES);
	if (read_settings(a, fd, &framer) != 0) {
		framer_finish(&framer);
		errno = EPROTO;
		return complain(EX_PROTOCOL, "no settings");
	}
	find_marker(a);
	open_loop(a);
	a->cgroup = cgroup_create(a->arena);
	if (errlog_open(&a->errlog, a->dir) != 0 || spool_open(&a->spool, a->dir, a->settings.line_bytes) != 0 ||
		channel_listen(a) != 0 || write_record(a) != 0) {
		rc = complain(EX_CANTCREAT, "its files");
		(void)cgroup_remove(a->cgroup);
		channel_close_all(a);
		framer_finish(&framer);
	} else {
		start_program(a);
		channel_adopt(a, fd, &framer);
	}
	(void)uv_run(&a->loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&a->loop);
	return rc;
}

int attempt_host_main(const char *directory)
{
	struct attempt *a = calloc(1, sizeof(*a));
	int rc;

	if (a == NULL)
		abort();
	a->arena = arena_create();
	rc = host(a, directory);
	if (a->kept != NULL)
		explicit_bzero(a->kept, a->kept_n);
	free(a->kept);
	arena_destroy(a->arena);
	free(a);
	(void)prctl(PR_SET_DUMPABLE, 1); /* nothing secret is left, and a leak checker has to look at us */
	return rc;
}
