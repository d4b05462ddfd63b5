/* Who belongs to a process tree: by descent, by marker, and never by number alone. */
#include "agents/private.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#undef fail /* ours, not the test library's */

/* A child that sleeps, with this environment. */
static pid_t sleeper(const char *variable)
{
	static char program[] = "sleep", seconds[] = "1000";
	char *const argv[] = {program, seconds, NULL};
	char *env[] = {NULL, NULL};
	int fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	env[0] = variable == NULL ? NULL : strdup(variable);
	pid = fork();
	if (pid == 0) {
		(void)execve("/bin/sleep", argv, env);
		_exit(127);
	}
	(void)close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 0); /* it runs */
	(void)close(fds[0]);
	free(env[0]);
	return pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool is_alive(pid_t pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

static void a_marker_is_a_whole_variable(void **state)
{
	pid_t ours = sleeper("DAIS_ATTEMPT=12"), other = sleeper("DAIS_ATTEMPT=123"), inside = sleeper("X=DAIS_ATTEMPT=12");
	const struct process_set set = {.marker = STR("DAIS_ATTEMPT=12")};

	(void)state;
	assert_int_equal(processes_signal(&set, 0), 1);
	assert_int_equal(processes_signal(&set, SIGKILL), 1);
	assert_int_equal(waitpid(ours, NULL, 0), ours);
	assert_int_equal(processes_signal(&set, 0), 0);
	assert_true(is_alive(other) && is_alive(inside));
	end(other);
	end(inside);
}

static void a_number_that_was_given_again_is_somebody_else(void **state)
{
	pid_t pid = sleeper(NULL);
	struct process_set set = {.agent = {pid, process_started(pid) - 1}};

	(void)state;
	assert_true(process_started(pid) > 0);
	assert_int_equal(processes_signal(&set, SIGKILL), 0);
	assert_true(is_alive(pid));
	set.agent.started++;
	assert_int_equal(processes_signal(&set, SIGKILL), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(process_started(pid), -1);
}

static void descendants_belong_to_it_whatever_their_session(void **state)
{
	pid_t sibling = sleeper(NULL), tree = fork();
	struct process_set set = {.ancestor = tree};

	(void)state;
	if (tree == 0) {
		(void)setsid();
		if (fork() == 0) {
			(void)setsid();
			(void)fork();
		}
		for (;;)
			(void)pause();
	}
	while (processes_signal(&set, 0) < 2)
		(void)usleep(1000);
	assert_int_equal(processes_signal(&set, SIGKILL), 2);
	assert_true(is_alive(tree) && is_alive(sibling));
	end(tree);
	end(sibling);
}

static void a_dead_one_that_nobody_collected_is_not_left(void **state)
{
	pid_t pid = sleeper("DAIS_ATTEMPT=zombie");
	const struct process_set set = {.agent = {pid, process_started(pid)}};

	(void)state;
	(void)kill(pid, SIGKILL);
	while (is_alive(pid))
		(void)usleep(1000);
	assert_int_equal(processes_signal(&set, 0), 0);
	end(pid);
}

static void a_process_that_cannot_be_dumped_still_sees_the_others(void **state)
{
	pid_t ours = sleeper("DAIS_ATTEMPT=seen");
	const struct process_set set = {.marker = STR("DAIS_ATTEMPT=seen")};

	(void)state;
	(void)prctl(PR_SET_DUMPABLE, 0);
	assert_int_equal(processes_signal(&set, 0), 1);
	(void)prctl(PR_SET_DUMPABLE, 1);
	end(ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_marker_is_a_whole_variable),
		cmocka_unit_test(a_number_that_was_given_again_is_somebody_else),
		cmocka_unit_test(descendants_belong_to_it_whatever_their_session),
		cmocka_unit_test(a_dead_one_that_nobody_collected_is_not_left),
		cmocka_unit_test(a_process_that_cannot_be_dumped_still_sees_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
