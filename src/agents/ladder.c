/* The end of a program: one step after the other, each with its time, until no process of its tree is left.
 *
 * (1) The number of the program is its own until we have collected it, so its group may be signalled by number until then.
 * (2) As a subreaper we inherit whatever loses its parent. When we have no child left, not even a dead one, nothing that
 *     descends from us lives. The walk over /proc finds whom to kill; this proves that it found all.
 * (3) The record is written last: who finds it knows that the spool is complete. */
#include "agents/attempt.h"

#include "base/clock.h"
#include "base/limits.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_stdin(struct attempt *a);
static void terminate(struct attempt *a);
static void kill_group(struct attempt *a);
static void terminate_left(struct attempt *a);
static void look(struct attempt *a);
static void finish(struct attempt *a);

/* What a stage does when it is entered, how long it may take, and what follows then. When the program is gone before,
 * program_gone() decides. */
static const struct {
	void (*enter)(struct attempt *a);
	int64_t ms;
	enum stage next;
} stages[STAGES] = {
	[STAGE_RUNNING] = {NULL, 0, STAGE_CLEAR /* it never ran */},
	[STAGE_STDIN] = {close_stdin, LIMIT_AGENT_STDIN_CLOSED_MS, STAGE_TERM},
	[STAGE_TERM] = {terminate, LIMIT_AGENT_TERM_MS, STAGE_KILL},
	[STAGE_KILL] = {kill_group, LIMIT_AGENT_KILL_MS, STAGE_CLEAR},
	[STAGE_LEFT] = {terminate_left, LIMIT_AGENT_LEFT_MS, STAGE_CLEAR},
	[STAGE_CLEAR] = {look, LIMIT_AGENT_CLEAR_MS, STAGE_DONE},
	[STAGE_DONE] = {finish, 0, STAGE_DONE},
};

void stage_enter(struct attempt *a, enum stage stage)
{
	a->stage = stage;
	alarm_clear(a, ALARM_LOOK);
	alarm_clear(a, ALARM_STAGE);
	if (stages[stage].ms > 0)
		alarm_set(a, ALARM_STAGE, stages[stage].ms);
	if (stages[stage].enter != NULL)
		stages[stage].enter(a);
}

void attempt_end(struct attempt *a, const char *cause)
{
	if (a->stage == STAGE_LEFT) { /* it ended by itself; only the grace of the others ends now */
		stage_enter(a, STAGE_CLEAR);
		return;
	}
	if (a->stage != STAGE_RUNNING)
		return;
	a->cause = cause;
	for (enum alarm alarm = 0; alarm <= ALARM_STDOUT; alarm++)
		alarm_clear(a, alarm);
	stage_enter(a, a->settings.ends_with_stdin ? STAGE_STDIN : STAGE_TERM);
}

static void close_stdin(struct attempt *a)
{
	pipes_close_stdin(a, true);
}

static void signal_group(struct attempt *a, int sig)
{
	if (!a->is_agent_gone)
		(void)kill(-a->agent.pid, sig); /* (1) */
}

static void terminate(struct attempt *a)
{
	pipes_close_stdin(a, true);
	signal_group(a, SIGTERM);
	signal_group(a, SIGCONT); /* a stopped one would not hear it */
}

static void kill_group(struct attempt *a)
{
	signal_group(a, SIGKILL);
}

static void program_gone(struct attempt *a)
{
	for (enum alarm alarm = 0; alarm <= ALARM_STDOUT; alarm++)
		alarm_clear(a, alarm);
	if (a->stage < STAGE_LEFT)
		stage_enter(a, a->stage == STAGE_KILL ? STAGE_CLEAR : STAGE_LEFT);
}

void attempt_reap(struct attempt *a)
{
	bool is_gone = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != a->agent.pid || a->is_agent_gone)
			continue;
		a->is_agent_gone = is_gone = true;
		a->status = status;
	}
	if (is_gone)
		program_gone(a);
	else if (a->stage == STAGE_LEFT || a->stage == STAGE_CLEAR)
		alarm_set(a, ALARM_LOOK, 0);
}

/* ---- what is left ---- */

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/* Signal what is left; is that nobody? */
static bool signal_left(struct attempt *a, int sig)
{
	const struct process_set set = {.ancestor = getpid(), .marker = a->marker};
	int left = processes_signal(&set, sig);

	return left <= 0 && !has_children() && cgroup_remove(a->cgroup); /* (2) */
}

static void terminate_left(struct attempt *a)
{
	(void)signal_left(a, SIGTERM); /* once: some take a second one as an order to hurry */
	look(a);
}

static void look(struct attempt *a)
{
	if (a->stage == STAGE_CLEAR)
		cgroup_kill(a->cgroup);
	a->is_cleared = signal_left(a, a->stage == STAGE_CLEAR ? SIGKILL : 0);
	if (a->is_cleared)
		stage_enter(a, STAGE_DONE);
	else
		alarm_set(a, ALARM_LOOK, LIMIT_AGENT_LOOK_MS);
}

/* ---- the record ---- */

static bool write_exit(struct attempt *a)
{
	bool has_status = a->agent.pid != 0 && a->is_agent_gone;
	struct host_exit exit = {
		.code = has_status && WIFEXITED(a->status) ? WEXITSTATUS(a->status) : -1,
		.signal = has_status && WIFSIGNALED(a->status) ? WTERMSIG(a->status) : 0,
		.cause = a->cause == NULL ? "exited" : a->cause,
		.is_cleared = a->is_cleared,
		.at = clock_wall_ms(),
	};

	errlog_trim(&a->errlog);
	return fdatasync(a->spool.fd) == 0 && exit_write(a->dir, &exit) == 0;
}

static void finish(struct attempt *a)
{
	bool is_told = pipes_drain(a) && (write_exit(a) || errno == ENOENT /* the directory was taken away */);

	if (!is_told) { /* The disk is full. Without the record the server would believe that we are lost. */
		alarm_set(a, ALARM_STAGE, LIMIT_AGENT_RETRY_MS);
		return;
	}
	channel_close_all(a); /* (3): the server sees the connection end, and finds the record */
}

/* ---- alarms ---- */

void attempt_alarm(struct attempt *a, enum alarm alarm)
{
	switch (alarm) {
	case ALARM_START:
		attempt_end(a, "start_timeout");
		break;
	case ALARM_DEADLINE:
		attempt_end(a, "deadline");
		break;
	case ALARM_STDOUT:
		attempt_end(a, "stdout_closed");
		break;
	case ALARM_STAGE:
		stage_enter(a, stages[a->stage].next);
		break;
	case ALARM_LOOK:
		look(a);
		break;
	case ALARM_FLUSH:
		pipes_flush(a);
		break;
	case ALARM_PROGRESS:
		channel_progress(a);
		break;
	case ALARMS:
		break;
	}
}
