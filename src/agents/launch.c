/* Starting an attempt host as nobody's child: it is its own session from the start and outlives us, our group, and our
 * place in the process tree; and we have nothing to reap. */
#include "agents/private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* From here to exec only what is safe in the copy of a process with many threads. */
__attribute__((noreturn)) static void become_host(int channel, int lock, char *const argv[])
{
	/* None: ours may hold what no agent is to see. */
	char *const env[] = {NULL};
	int null = open("/dev/null", O_RDWR);
	sigset_t all;

	/* 0 to 2 are open in every process of ours, so that none of these is one of them. */
	if (null < 0 || setsid() < 0 || dup2(channel, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
		dup2(null, STDERR_FILENO) < 0)
		_exit(127);
	if (lock == HOST_LOCK_FD)
		(void)fcntl(lock, F_SETFD, 0);
	else if (dup2(lock, HOST_LOCK_FD) < 0)
		_exit(127);
	/* A lock lives on in whoever has its descriptor: that of the host is to, those of the server must not. */
	(void)close_range(HOST_LOCK_FD + 1, ~0U, 0);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_UNBLOCK, &all, NULL);
	/* The file that runs, even when another version was installed in its place. */
	(void)execve("/proc/self/exe", argv, env);
	_exit(127);
}

int launch_host(const char *directory, int lock)
{
	static char program[] = "dais", command[] = "attempt-host";
	char *path = realpath(directory, NULL); /* it is also what a person sees in ps */
	char *const argv[] = {program, command, path, NULL};
	int ends[2];
	pid_t between;

	if (path == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		free(path);
		return -1;
	}
	between = fork();
	if (between == 0) {
		pid_t host = _Fork();

		if (host == 0)
			become_host(ends[1], lock, argv);
		_exit(host < 0 ? 1 : 0);
	}
	(void)close(ends[1]);
	free(path);
	if (between > 0) {
		int status = 0;

		while (waitpid(between, &status, 0) < 0 && errno == EINTR)
			;
		if (status == 0)
			return ends[0];
		errno = EAGAIN; /* the second fork failed */
	}
	(void)close(ends[0]);
	return -1;
}
