/* A server of one attempt host, for the stories: commands come on stdin, one a line; what is heard goes to stdout as JSON.
 *
 *   arg WORD, env NAME=VALUE, writable PATH, cwd, secret, placeholder, note TEXT, start_ms, deadline_ms, line_bytes N,
 *   read_only, ends_with_stdin                                       what to start
 *   start DIR, connect DIR OFFSET
 *   write SEQ TEXT, secret_write SEQ TEXT, fill SEQ BYTES            lines for the program
 *   read on|off, take N                                              read lines or let them wait; N of them
 *   close_stdin, end, release
 *
 * Lines are told by size, hash of their bytes, and their start in hexadecimal. What was read is consumed. Started as
 * `host-client attempt-host DIR` it is that host; with NO_LANDLOCK or NO_CGROUP set it and its hosts run as on a
 * machine without. */
#include "agents/agents.h"
#include "base/json.h"
#include "base/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN_BYTES 60
#define WORDS 64

static struct client {
	uv_loop_t loop;
	uv_pipe_t commands;
	uv_idle_t reading; /* goes on with what readable() did not finish */
	struct arena *arena;
	struct host *host;
	struct buf input;
	char room[65536];
	const char *argv[WORDS], *env[WORDS], *writable[WORDS];
	size_t argc, envc, dirs;
	struct host_settings settings;
	int64_t may_take; /* lines; negative: as many as come */
} client;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vprintf(fmt, args);
	va_end(args);
	(void)putchar('\n');
	(void)fflush(stdout);
}

static const char *quoted(struct str text)
{
	struct buf buf;

	buf_init(&buf, client.arena, 1 << 20);
	buf_add_char(&buf, '"');
	json_escape(&buf, text);
	buf_add(&buf, "\"", 2);
	return buf.p;
}

static void say_failure(const struct failure *f)
{
	say("{\"event\":\"failure\",\"code\":\"%s\",\"message\":%s}", failure_info(f->code)->wire, quoted(f->message));
}

/* ---- what the host tells ---- */

static void say_line(struct str line, int64_t end)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
	char hex[2 * SHOWN_BYTES + 1] = "";

	for (size_t i = 0; i < line.n; i++)
		hash = (hash ^ (unsigned char)line.p[i]) * UINT64_C(1099511628211);
	for (size_t i = 0; i < line.n && i < SHOWN_BYTES; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)line.p[i]);
	say("{\"event\":\"line\",\"bytes\":%zu,\"end\":%" PRId64 ",\"hash\":\"%016" PRIx64 "\",\"start\":\"%s\"}", line.n, end,
		hash, hex);
}

static void read_some(uv_idle_t *idle)
{
	struct str line;
	int64_t end;

	(void)idle;
	/* A server of many would stop by the clock; a hundred lines do as well. */
	for (int i = 0; i < 100 && client.host != NULL; i++) {
		if (client.may_take == 0 || host_next_line(client.host, &line, &end) == 0) {
			(void)uv_idle_stop(&client.reading);
			return;
		}
		client.may_take -= client.may_take > 0;
		say_line(line, end);
		host_consumed(client.host, end);
	}
}

static void on_ready(struct host *host, void *context, const struct host_state *state)
{
	(void)host;
	(void)context;
	say("{\"event\":\"ready\",\"pid\":%" PRId64 ",\"written\":%" PRId64 ",\"confirmed\":%" PRId64
	    ",\"secret\":%s,\"note\":%s,\"exited\":%s}",
		state->agent_pid, state->written, state->confirmed, quoted(state->secret), quoted(state->note),
		state->has_exited ? "true" : "false");
}

static void on_readable(struct host *host, void *context)
{
	(void)host;
	(void)context;
	(void)uv_idle_start(&client.reading, read_some);
}

static void on_confirmed(struct host *host, void *context, int64_t seq)
{
	(void)host;
	(void)context;
	say("{\"event\":\"confirmed\",\"seq\":%" PRId64 "}", seq);
}

static void on_exited(struct host *host, void *context, const struct host_exit *exit)
{
	(void)host;
	(void)context;
	say("{\"event\":\"exited\",\"code\":%d,\"signal\":%d,\"cause\":\"%s\",\"cleared\":%s,\"at\":%" PRId64 ",\"stderr\":%s}",
		exit->code, exit->signal, exit->cause, exit->is_cleared ? "true" : "false", exit->at,
		quoted(exit->stderr_tail));
	host_release(client.host);
	client.host = NULL;
	uv_close((uv_handle_t *)&client.reading, NULL);
	uv_close((uv_handle_t *)&client.commands, NULL);
}

static const struct host_handlers handlers = {on_ready, on_readable, on_confirmed, on_exited};

/* ---- commands ---- */

static struct str word(struct str *rest)
{
	const char *blank = rest->n == 0 ? NULL : memchr(rest->p, ' ', rest->n);
	struct str first = {rest->p, blank == NULL ? rest->n : (size_t)(blank - rest->p)};
	size_t taken = first.n + (blank != NULL);

	rest->p += taken;
	rest->n -= taken;
	return first;
}

static int64_t number(struct str *rest)
{
	int64_t n = 0;

	if (!str_to_int(word(rest), &n))
		abort();
	return n;
}

static void start(struct str rest, bool is_new)
{
	struct failure f;
	const char *directory = str_z(client.arena, word(&rest));
	int rc;

	failure_init(&f, client.arena);
	client.settings.directory = directory;
	client.settings.argv = client.argv;
	client.settings.env = client.env;
	client.settings.writable = client.writable;
	rc = is_new ? host_start(&client.loop, &client.settings, &handlers, NULL, &client.host, &f)
		    : host_connect(&client.loop, directory, number(&rest), &handlers, NULL, &client.host, &f);
	if (rc != 0)
		say_failure(&f);
}

static void write_line(int64_t seq, struct str line, bool has_secret)
{
	struct failure f;

	failure_init(&f, client.arena);
	if (host_write(client.host, seq, line, has_secret, &f) != 0)
		say_failure(&f);
}

static void fill(struct str rest)
{
	int64_t seq = number(&rest);
	size_t n = (size_t)number(&rest);
	char *bytes = malloc(n);

	if (bytes == NULL)
		abort();
	memset(bytes, 'f', n);
	write_line(seq, (struct str){bytes, n}, false);
	free(bytes);
}

static void set(struct str name, struct str rest)
{
	const char *text = str_z(client.arena, rest);
	struct host_settings *s = &client.settings;

	if (str_eq(name, STR("arg")))
		client.argv[client.argc++] = text;
	else if (str_eq(name, STR("env")))
		client.env[client.envc++] = text;
	else if (str_eq(name, STR("writable")))
		client.writable[client.dirs++] = text;
	else if (str_eq(name, STR("cwd")))
		s->cwd = text;
	else if (str_eq(name, STR("secret")))
		s->secret = str_of(text);
	else if (str_eq(name, STR("placeholder")))
		s->placeholder = str_of(text);
	else if (str_eq(name, STR("note")))
		s->note = str_of(text);
	else if (str_eq(name, STR("start_ms")))
		s->start_ms = number(&rest);
	else if (str_eq(name, STR("deadline_ms")))
		s->deadline_ms = number(&rest);
	else if (str_eq(name, STR("line_bytes")))
		s->line_bytes = number(&rest);
	else if (str_eq(name, STR("read_only")))
		s->is_read_only = true;
	else if (str_eq(name, STR("ends_with_stdin")))
		s->ends_with_stdin = true;
	else
		abort();
}

static void read_or_wait(int64_t lines)
{
	client.may_take = lines;
	if (lines != 0)
		(void)uv_idle_start(&client.reading, read_some);
}

static void obey(struct str line)
{
	struct str name = word(&line);

	if (str_eq(name, STR("start")) || str_eq(name, STR("connect")))
		start(line, str_eq(name, STR("start")));
	else if (str_eq(name, STR("write")) || str_eq(name, STR("secret_write"))) {
		int64_t seq = number(&line);

		write_line(seq, line, str_eq(name, STR("secret_write")));
	} else if (str_eq(name, STR("fill")))
		fill(line);
	else if (str_eq(name, STR("read")))
		read_or_wait(str_eq(line, STR("on")) ? -1 : 0);
	else if (str_eq(name, STR("take")))
		read_or_wait(number(&line));
	else if (str_eq(name, STR("close_stdin")))
		host_close_stdin(client.host);
	else if (str_eq(name, STR("end")))
		host_end(client.host);
	else
		set(name, line);
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	(void)handle;
	(void)wanted;
	*buf = uv_buf_init(client.room, sizeof(client.room));
}

static void on_commands(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	const char *end;

	if (n < 0) { /* leave everything running */
		host_release(client.host);
		client.host = NULL;
		uv_close((uv_handle_t *)stream, NULL);
		uv_close((uv_handle_t *)&client.reading, NULL);
		return;
	}
	buf_add(&client.input, buf->base, (size_t)n);
	while (client.input.n > 0 && (end = memchr(client.input.p, '\n', client.input.n)) != NULL) {
		size_t line = (size_t)(end - client.input.p);

		obey((struct str){client.input.p, line});
		buf_consume(&client.input, line + 1);
	}
}

/* A system call that fails from now on, here and in all that we start. */
static void refuse_call(uint32_t call, uint32_t error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
		abort();
}

int main(int argc, char **argv)
{
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && strcmp(argv[1], "attempt-host") == 0)
		return attempt_host_main(argv[2]);
	if (getenv("NO_LANDLOCK") != NULL)
		refuse_call(SYS_landlock_create_ruleset, ENOSYS);
	if (getenv("NO_CGROUP") != NULL)
		refuse_call(SYS_mkdir, EACCES);
	client.arena = arena_create();
	client.settings.line_bytes = 1 << 20;
	client.settings.cwd = "/";
	client.may_take = -1;
	buf_init(&client.input, NULL, SIZE_MAX);
	(void)uv_loop_init(&client.loop);
	(void)uv_idle_init(&client.loop, &client.reading);
	(void)uv_pipe_init(&client.loop, &client.commands, 0);
	if (uv_pipe_open(&client.commands, STDIN_FILENO) != 0)
		return 1;
	(void)uv_read_start((uv_stream_t *)&client.commands, give_room, on_commands);
	(void)uv_run(&client.loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&client.loop);
	buf_finish(&client.input);
	arena_destroy(client.arena);
	return 0;
}
