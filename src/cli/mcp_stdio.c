/* dais mcp-stdio: MCP on stdin and stdout, relayed to the server's Unix socket.
 *
 * The relay starts a server when none runs, and survives the server's restart: it opens the session again,
 * repeats what may be repeated, and answers the rest with an error that says so. stdout belongs to the
 * protocol: descriptor 1 is pointed at stderr, so that nothing else can write there.
 *
 * Invariants
 * (1) Every request of the client is answered once: by the server, or by the relay when the server died.
 * (2) A call that may have changed something is never sent twice, unless it carries an idempotency key.
 * (3) A client that does not read stops being served; memory is bounded. */
#include "cli/relay.h"

#include "identity/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define PARENT_LOOK_MS 2000
#define EOF_GRACE_MS 500
#define RECONNECT_MS 30000
#define WELCOME_MS 1000
#define HELLO_BYTES 65536

enum { KEY_NO_SPAWN = 2000 };

static const struct argp_option options[] = {
	{"no-spawn", KEY_NO_SPAWN, NULL, 0, "Refuse instead of starting a server when none runs", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != KEY_NO_SPAWN)
		return ARGP_ERR_UNKNOWN;
	*(bool *)state->input = true;
	return 0;
}

/* What the server says to the greeting. Without it a refused seat token would look like a server that died, and be
 * tried again at once, for ever. */
static int await_welcome(struct relay *relay, struct arena *arena, struct failure *f)
{
	struct pollfd polled = {.fd = relay->socket, .events = POLLIN};
	struct json_error error;
	json_auto_t *answer = NULL;
	struct buf rest;
	struct str line;
	int rc;

	buf_init(&rest, arena, HELLO_BYTES);
	rc = poll(&polled, 1, WELCOME_MS);
	if (rc == 0)
		return 0; /* it is slow; its answer has an id that is ours */
	if (rc < 0 || read_line(relay->socket, &rest, HELLO_BYTES, arena, &line) != 1)
		return fail(f, FAIL_NOT_REACHABLE, "The server went away again.");
	answer = json_read(line, &error);
	return json_object_get(answer, "error") == NULL ? 0 : fail_from_envelope(relay->cli, answer, f);
}

/* The greeting: what a line transport cannot say. */
static int greet(struct relay *relay, struct failure *f)
{
	const char *profile = getenv("MCP_TOOL_PROFILE");
	const char *seat = getenv("DAIS_SEAT_TOKEN");
	bool has_profile = profile != NULL && profile[0] != '\0';
	bool has_seat = seat != NULL && seat[0] != '\0';
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct buf out;
	struct json_writer w;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	if (has_profile || has_seat) /* else there is nothing that could be refused */
		jw_ktext(&w, "id", "dais-relay-hello");
	jw_ktext(&w, "method", LOCAL_HELLO);
	jw_kobject(&w, "params");
	if (has_profile)
		jw_ktext(&w, "profile", profile);
	if (has_seat)
		jw_ktext(&w, "seatToken", seat);
	jw_object_end(&w);
	jw_object_end(&w);
	buf_add_char(&out, '\n');
	if (write_all(relay->socket, buf_str(&out)) != 0)
		return fail(f, FAIL_NOT_REACHABLE, "The server went away again.");
	if (!has_profile && !has_seat)
		return 0;
	if (await_welcome(relay, arena, f) == 0)
		return 0;
	if (f->code != FAIL_UNAUTHENTICATED)
		return -1;
	failure_init(f, f->arena);
	return fail(f, FAIL_UNAUTHENTICATED,
		"The token in DAIS_SEAT_TOKEN is not valid: it ended, was revoked, or its run is closed. Issue a new seat with report.");
}

static int connect_once(struct relay *relay, struct failure *f)
{
	int rc = relay->no_spawn ? client_connect(relay->cli, &relay->socket, f)
				 : client_connect_or_spawn(relay->cli, &relay->socket, f);

	if (rc != 0) {
		relay->socket = -1;
		return -1;
	}
	rc = greet(relay, f);
	if (rc == 0 && relay_replay(relay) == 0) {
		relay->was_connected = true;
		relay_step_back(relay);
		return 0;
	}
	(void)close(relay->socket);
	relay->socket = -1;
	return rc != 0 ? -1 : fail(f, FAIL_NOT_REACHABLE, "The server went away again.");
}

/* The server is gone, or never was: come with it, or say why that is impossible. */
static void reconnect(struct relay *relay)
{
	int64_t until = clock_mono_ms() + (relay->was_connected ? RECONNECT_MS : 0);
	const struct timespec pause = {.tv_nsec = 50000000};

	if (relay->socket >= 0)
		(void)close(relay->socket);
	relay->socket = -1;
	relay->from_server.n = 0;
	relay->to_server.n = 0;
	relay_drop_unrepeatable(relay);
	for (;;) {
		AUTO(arena_destroyp) struct arena *arena = arena_create();
		struct failure f;

		failure_init(&f, arena);
		if (connect_once(relay, &f) == 0)
			return;
		/* With --no-spawn somebody else restarts the server: wait for it a while. */
		if (f.code != FAIL_NOT_REACHABLE || !relay->no_spawn || clock_mono_ms() >= until) {
			relay->was_connected = false;
			relay_stand_in(relay, &f);
			return;
		}
		(void)nanosleep(&pause, NULL);
	}
}

static void on_server(struct relay *relay)
{
	char bytes[65536];
	ssize_t n = read(relay->socket, bytes, sizeof(bytes));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		if (!relay->is_ending)
			reconnect(relay);
		else
			relay->pending_count = 0;
		return;
	}
	relay_from_server(relay, (struct str){bytes, (size_t)n});
}

static void on_client(struct relay *relay)
{
	char bytes[65536];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		relay->is_ending = true;
		relay->end_at = clock_mono_ms() + EOF_GRACE_MS;
		return;
	}
	relay_from_client(relay, (struct str){bytes, (size_t)n});
	if (relay->socket < 0 && relay->pending_count > 0)
		reconnect(relay);
}

/* A pipe that polls writable takes PIPE_BUF bytes without blocking; the descriptor is shared with the client's
 * side and must not be switched to non-blocking. */
static int on_writable(struct relay *relay)
{
	size_t n = relay_unread(relay) < PIPE_BUF ? relay_unread(relay) : PIPE_BUF;
	ssize_t done = write(relay->out_fd, relay->to_client.p + relay->written, n);

	if (done < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -1;
	relay->written += (size_t)done;
	/* Not for each portion: moving megabytes for four kilobytes takes longer than writing them. */
	if (relay->written == relay->to_client.n || relay->written >= RELAY_STALL_BYTES / 8) {
		buf_consume(&relay->to_client, relay->written);
		relay->written = 0;
	}
	return 0;
}

static int timeout_of(const struct relay *relay)
{
	int64_t left = relay->end_at - clock_mono_ms();

	if (!relay->is_ending)
		return PARENT_LOOK_MS;
	return left < 0 ? 0 : (int)left;
}

static bool is_over(struct relay *relay, pid_t parent)
{
	if (relay->is_ending &&
		((relay->pending_count == 0 && relay_unread(relay) == 0 && relay->to_server.n == 0) || clock_mono_ms() >= relay->end_at))
		return true;
	/* An inherited pipe can stay open although the client is gone. */
	return getppid() != parent;
}

static void loop(struct relay *relay, int signal_fd, pid_t parent)
{
	while (!is_over(relay, parent)) {
		/* (3) on both sides; either may wait for the other to read. */
		bool is_stalled = relay_unread(relay) > RELAY_STALL_BYTES;
		bool is_full = relay->to_server.n > RELAY_STALL_BYTES;
		bool has_more = relay->to_server.n > 0;
		struct pollfd polled[4] = {
			{.fd = relay->is_ending || is_stalled || is_full ? -1 : STDIN_FILENO, .events = POLLIN},
			{.fd = is_stalled && !has_more ? -1 : relay->socket,
				.events = (short)((is_stalled ? 0 : POLLIN) | (has_more ? POLLOUT : 0))},
			{.fd = relay_unread(relay) > 0 ? relay->out_fd : -1, .events = POLLOUT},
			{.fd = signal_fd, .events = POLLIN},
		};

		if (poll(polled, 4, timeout_of(relay)) < 0 && errno != EINTR)
			return;
		if ((polled[2].revents & (POLLOUT | POLLERR)) != 0 && on_writable(relay) != 0)
			return;
		if ((polled[1].revents & POLLOUT) != 0)
			relay_flush(relay);
		if ((polled[1].revents & ~POLLOUT) != 0)
			on_server(relay);
		if (polled[0].revents != 0)
			on_client(relay);
		if (polled[3].revents != 0) {
			struct signalfd_siginfo info;

			if (read(signal_fd, &info, sizeof(info)) > 0 && relay->is_ending)
				return; /* the second one does not wait */
			relay->is_ending = true;
			relay->end_at = clock_mono_ms() + 50;
		}
	}
}

static int take_signals(void)
{
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

int cmd_mcp_stdio(struct cli *cli, int argc, char **argv)
{
	struct relay relay = {.cli = cli, .socket = -1};
	const char *profile = getenv("MCP_TOOL_PROFILE");
	pid_t parent = getppid();
	enum profile parsed;
	struct failure f;

	failure_init(&f, cli->arena);
	if (cli_parse(cli, argc, argv, options, parse, NULL,
		    "An MCP server on stdin and stdout: a relay to the server of this state directory, which is started "
		    "when none runs. The environment may hold MCP_TOOL_PROFILE (full, knowledge, director) and "
		    "DAIS_SEAT_TOKEN."
		    "\vExample, in a client's configuration:\n  {\"command\": \"dais\", \"args\": [\"mcp-stdio\"]}",
		    &relay.no_spawn) != 0)
		return 64;
	if (profile != NULL && profile[0] != '\0' && !profile_parse(str_of(profile), &parsed)) {
		(void)fail(&f, FAIL_USAGE, "MCP_TOOL_PROFILE must be full, work, threads, knowledge or director, got \"%s\".", profile);
		return cli_fail(cli, &f);
	}
	relay.out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (relay.out_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return 70;
	relay_init(&relay);
	if (connect_once(&relay, &f) != 0) {
		(void)cli_fail(cli, &f);
		relay_stand_in(&relay, &f); /* each request tries again */
	}
	loop(&relay, take_signals(), parent);
	relay_finish(&relay);
	return 0;
}
