/* The server that we start: its port, its password, its end. */
#include "bridge/private.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PASSWORD "OPENCODE_SERVER_PASSWORD"

/* Free when we look; should somebody take it before the server does, the server ends and says so. */
static int free_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int port = -1;

	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, size) == 0 && getsockname(fd, (struct sockaddr *)&at, &size) == 0)
		port = ntohs(at.sin_port);
	if (fd >= 0)
		(void)close(fd);
	return port;
}

static void __attribute__((noreturn)) be_server(const char *const *argv, const struct child *child, pid_t parent, int out)
{
	int nothing = open("/dev/null", O_RDONLY);

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	(void)dup2(nothing, STDIN_FILENO);
	(void)dup2(out, STDOUT_FILENO);
	if (setenv(PASSWORD, child->password, 1) == 0)
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	(void)fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* argv and: serve --hostname 127.0.0.1 --port N */
static const char **command_of(const char *const *argv, int port, struct arena *arena)
{
	const char **all;
	size_t n = 0;

	while (argv[n] != NULL)
		n++;
	all = ARENA_ARRAY(arena, const char *, n + 6);
	memcpy(all, argv, n * sizeof(*all));
	all[n++] = "serve";
	all[n++] = "--hostname";
	all[n++] = "127.0.0.1";
	all[n++] = "--port";
	all[n++] = arena_printf(arena, "%d", port);
	all[n] = NULL;
	return all;
}

int child_start(struct child *child, const char *const *argv, struct failure *f)
{
	int port = free_port();
	int pipes[2];
	pid_t parent = getpid();

	*child = (struct child){.pid = -1, .out = -1};
	if (port < 0 || pipe2(pipes, O_CLOEXEC) != 0)
		return fail_errno(f, "no free port, or no pipe");
	(void)snprintf(child->url, sizeof(child->url), "http://127.0.0.1:%d", port);
	(void)snprintf(child->password, sizeof(child->password), "%.*s", STRF(random_token(f->arena, 32)));
	buf_init(&child->line, NULL, LIMIT_BRIDGE_NOISE_BYTES);
	argv = command_of(argv, port, f->arena);
	child->pid = fork();
	if (child->pid == 0)
		be_server(argv, child, parent, pipes[1]);
	(void)close(pipes[1]);
	if (child->pid < 0) {
		(void)close(pipes[0]);
		return fail_errno(f, "cannot start %s", argv[0]);
	}
	child->out = pipes[0];
	return 0;
}

static void heed(struct child *child, struct str line)
{
	if (str_starts(line, STR("opencode server listening")))
		child->is_listening = true;
	else
		(void)fprintf(stderr, "%.*s\n", STRF(line));
}

bool child_hear(struct child *child)
{
	char bytes[4096];
	ssize_t n = read(child->out, bytes, sizeof(bytes));

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0)
		return false;
	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] != '\n') {
			buf_add_char(&child->line, bytes[i]);
			continue;
		}
		heed(child, buf_str(&child->line));
		buf_consume(&child->line, child->line.n);
		child->line.overflow = false;
	}
	return true;
}

void child_end(struct child *child)
{
	int64_t until = clock_mono_ms() + LIMIT_BRIDGE_END_MS;

	if (child->pid > 0) {
		(void)kill(child->pid, SIGTERM);
		while (waitpid(child->pid, NULL, WNOHANG) == 0) {
			if (clock_mono_ms() > until)
				(void)kill(child->pid, SIGKILL);
			(void)poll(NULL, 0, 10);
		}
	}
	if (child->out >= 0)
		(void)close(child->out);
	buf_finish(&child->line);
	explicit_bzero(child->password, sizeof(child->password));
}
