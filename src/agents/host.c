/* The server's end of an attempt host: see agents.h. */
#include "agents/private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum link {
	LINK_STARTING, /* just started; it has not answered yet */
	LINK_DIALING,  /* no connection; the timer tries */
	LINK_GREETING, /* connected; it has not answered yet */
	LINK_UP,
	LINK_REPLACED, /* another server has it */
	LINK_LOST,     /* dead without a record; the timer looks for strays */
	LINK_ENDED,    /* `exit` is known */
};

/* Lives until libuv has closed it, which may be after its host. */
struct connection {
	uv_pipe_t pipe;
	struct host *host; /* NULL: nobody listens any more */
	struct framer framer;
};

/* Size of a line that is not confirmed. */
struct unconfirmed {
	struct unconfirmed *next;
	int64_t seq;
	size_t n;
};

/* owner: the loop's thread */
struct host {
	uv_timer_t timer;
	const struct host_handlers *handlers;
	void *context;
	int dir;
	enum link link;
	struct connection *connection;
	struct lines lines;
	int64_t stored;		 /* offset before which all is stored */
	int64_t told_stored;	 /* as far as the host knows it */
	int64_t agent_pid, written, confirmed; /* as the host told last */
	int64_t sent; /* highest number on this connection */
	int64_t refused; /* a line that found no room: none behind it may overtake it; 0: none */
	struct unconfirmed *oldest, **newest;
	size_t unconfirmed_bytes;
	bool wants_close, wants_end; /* asked for while there was no connection */
	bool was_ready, is_end_told, is_read_out, is_released;

	struct arena *arena; /* of what follows, once it is lost or ended */
	struct host_exit exit;
	struct host_record record;
	int64_t lost_at; /* monotonic ms */
};

static void on_timer(uv_timer_t *timer);

static void wake(struct host *host, int64_t ms)
{
	if (!host->is_released)
		(void)uv_timer_start(&host->timer, on_timer, (uint64_t)ms, 0);
}

/* ---- lines that are not confirmed ---- */

static void unconfirmed_add(struct host *host, int64_t seq, size_t n)
{
	struct unconfirmed *line = malloc(sizeof(*line));

	if (line == NULL)
		abort();
	*line = (struct unconfirmed){NULL, seq, n + sizeof(*line)};
	*host->newest = line;
	host->newest = &line->next;
	host->unconfirmed_bytes += line->n;
}

static void unconfirmed_drop(struct host *host, int64_t seq)
{
	while (host->oldest != NULL && host->oldest->seq <= seq) {
		struct unconfirmed *line = host->oldest;

		host->oldest = line->next;
		host->unconfirmed_bytes -= line->n;
		free(line);
	}
	if (host->oldest == NULL)
		host->newest = &host->oldest;
}

/* ---- the connection ---- */

static void on_connection_closed(uv_handle_t *handle)
{
	struct connection *connection = handle->data;

	framer_finish(&connection->framer);
	free(connection);
}

static void hang_up(struct host *host)
{
	struct connection *connection = host->connection;

	host->connection = NULL;
	if (connection == NULL)
		return;
	connection->host = NULL;
	uv_close((uv_handle_t *)&connection->pipe, on_connection_closed);
}

static uv_stream_t *stream_of(const struct host *host)
{
	return (uv_stream_t *)&host->connection->pipe;
}

static void send_wishes(struct host *host)
{
	if (host->wants_close)
		host_close_stdin(host);
	if (host->wants_end)
		host_end(host);
}

static void take_state(struct host *host, const struct frame *frame)
{
	size_t secret = (size_t)frame_int(frame, "secret");
	struct str body = frame->body;
	struct host_state state = {
		.agent_pid = frame_int(frame, "pid"),
		.written = frame_int(frame, "written"),
		.confirmed = frame_int(frame, "confirmed"),
		.has_exited = frame_int(frame, "exited") != 0,
	};

	if (secret > body.n)
		return;
	state.secret = (struct str){body.p, secret};
	state.note = (struct str){body.p + secret, body.n - secret};
	host->link = LINK_UP;
	host->lines.line_bytes = frame_int(frame, "lineBytes");
	host->agent_pid = state.agent_pid;
	host->confirmed = state.confirmed;
	host->was_ready = true;
	host->handlers->ready(host, host->context, &state);
	explicit_bzero((void *)(uintptr_t)body.p, body.n);
	if (host->is_released)
		return;
	send_wishes(host);
	if (state.written > host->lines.at)
		host->handlers->readable(host, host->context);
}

/* The program has read all that we had for it: what found no room may come now. */
static void ask_again(struct host *host)
{
	const struct host_state state = {
		.agent_pid = host->agent_pid, .written = host->written, .confirmed = host->confirmed};

	host->refused = 0;
	host->handlers->ready(host, host->context, &state);
}

static void take_progress(struct host *host, const struct frame *frame)
{
	int64_t confirmed = frame_int(frame, "confirmed");

	host->written = frame_int(frame, "written");
	if (confirmed > host->confirmed) {
		host->confirmed = confirmed;
		unconfirmed_drop(host, confirmed);
		host->handlers->confirmed(host, host->context, confirmed);
	}
	if (!host->is_released && host->refused != 0 && host->oldest == NULL)
		ask_again(host);
	if (!host->is_released && host->written > host->lines.at)
		host->handlers->readable(host, host->context);
}

static void take_frame(struct host *host, const struct frame *frame)
{
	if (str_eq(frame->what, STR("state")))
		take_state(host, frame);
	else if (str_eq(frame->what, STR("progress")) && host->link == LINK_UP)
		take_progress(host, frame);
	else if (str_eq(frame->what, STR("replaced"))) {
		log_line(LOG_WARN, "agents", "another server took over an attempt host");
		host->link = LINK_REPLACED;
		hang_up(host);
	}
}

static void lose_connection(struct host *host)
{
	hang_up(host);
	if (host->link == LINK_REPLACED)
		return;
	host->link = LINK_DIALING;
	wake(host, 0);
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	struct connection *connection = handle->data;
	size_t n;

	(void)wanted;
	buf->base = framer_room(&connection->framer, &n);
	buf->len = n;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct connection *connection = stream->data;
	struct frame frame;
	int rc = -1;

	(void)buf;
	if (n >= 0) {
		framer_filled(&connection->framer, (size_t)n);
		/* A handler may release the host, which hangs up. */
		while (connection->host != NULL && (rc = framer_next(&connection->framer, &frame)) > 0)
			take_frame(connection->host, &frame);
	}
	if (rc < 0 && connection->host != NULL)
		lose_connection(connection->host);
}

static void attach(struct host *host, int fd)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	if (connection == NULL)
		abort();
	connection->host = host;
	framer_init(&connection->framer, LIMIT_AGENT_SETTINGS_BYTES);
	(void)uv_pipe_init(host->timer.loop, &connection->pipe, 0);
	connection->pipe.data = connection;
	if (uv_pipe_open(&connection->pipe, fd) != 0)
		abort(); /* it is a socket that we have just made */
	(void)uv_read_start((uv_stream_t *)&connection->pipe, give_room, on_read);
	host->connection = connection;
}

/* ---- alive, ended or lost ---- */

/* By the descriptor of the directory, as its path may be longer than an address of a socket. */
static int connect_socket(int dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" FILE_SOCKET, dir);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static bool is_lock_free(int dir)
{
	int fd = openat(dir, FILE_LOCK, O_RDWR | O_CLOEXEC);
	bool is_free;

	if (fd < 0)
		return errno == ENOENT;
	is_free = flock(fd, LOCK_EX | LOCK_NB) == 0;
	(void)close(fd);
	return is_free;
}

static void know_end(struct host *host)
{
	host->exit.stderr_tail = stderr_tail(host->dir, host->arena);
	if (host->record.line_bytes > 0)
		host->lines.line_bytes = host->record.line_bytes;
	host->link = LINK_ENDED;
	unconfirmed_drop(host, INT64_MAX);
	wake(host, 0);
}

static void dial(struct host *host)
{
	int fd = connect_socket(host->dir);
	bool is_free;

	if (fd >= 0) {
		unconfirmed_drop(host, INT64_MAX); /* ready() asks for them again */
		host->sent = host->refused = 0;
		attach(host, fd);
		host->link = LINK_GREETING;
		host->told_stored = host->stored;
		frame_send(stream_of(host), NULL, 0, "\"is\":\"hello\",\"offset\":%lld", (long long)host->stored);
		return;
	}
	is_free = is_lock_free(host->dir); /* before the record is looked for: it is written before the lock is given up */
	(void)record_read(host->dir, host->arena, &host->record); /* without one nothing was started */
	if (exit_read(host->dir, &host->exit) == 0)
		know_end(host);
	else if (!is_free)
		wake(host, LIMIT_AGENT_RETRY_MS);
	else {
		host->link = LINK_LOST;
		host->lost_at = clock_mono_ms();
		wake(host, 0);
	}
}

static void look_for_strays(struct host *host)
{
	struct process_set set = {.agent = host->record.agent, .marker = host->record.marker};
	bool is_cleared = true;

	if (host->record.is_same_boot) {
		cgroup_kill(host->record.cgroup);
		is_cleared = processes_signal(&set, SIGKILL) == 0 && cgroup_remove(host->record.cgroup);
	}
	if (!is_cleared && clock_mono_ms() - host->lost_at < LIMIT_AGENT_CLEAR_MS) {
		wake(host, LIMIT_AGENT_LOOK_MS);
		return;
	}
	host->exit = (struct host_exit){.code = -1, .cause = "lost", .is_cleared = is_cleared, .at = clock_wall_ms()};
	know_end(host);
}

static void tell_end(struct host *host)
{
	struct stat st;

	if (host->is_read_out) {
		host->handlers->exited(host, host->context, &host->exit);
		return;
	}
	if (!host->was_ready) {
		const struct host_state state = {
			.agent_pid = host->record.agent.pid,
			.written = fstatat(host->dir, FILE_SPOOL, &st, 0) == 0 ? st.st_size : 0,
			.has_exited = true,
		};

		host->was_ready = true;
		host->handlers->ready(host, host->context, &state);
	}
	host->is_end_told = true;
	if (!host->is_released)
		host->handlers->readable(host, host->context);
}

static void on_timer(uv_timer_t *timer)
{
	struct host *host = timer->data;

	switch (host->link) {
	case LINK_DIALING:
		dial(host);
		break;
	case LINK_LOST:
		look_for_strays(host);
		break;
	case LINK_ENDED:
		tell_end(host);
		break;
	case LINK_STARTING:
	case LINK_GREETING:
	case LINK_UP:
	case LINK_REPLACED:
		break;
	}
}

/* ---- the door ---- */

static struct host *host_create(uv_loop_t *loop, int dir, int64_t offset, const struct host_handlers *handlers,
	void *context)
{
	struct host *host = calloc(1, sizeof(*host));

	if (host == NULL)
		abort();
	host->handlers = handlers;
	host->context = context;
	host->dir = dir;
	host->stored = offset;
	host->newest = &host->oldest;
	host->arena = arena_create();
	lines_init(&host->lines, offset);
	(void)uv_timer_init(loop, &host->timer);
	host->timer.data = host;
	return host;
}

static int open_directory(const char *directory, struct failure *f)
{
	int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir >= 0 ? dir : fail_errno(f, "open the directory of an attempt host");
}

/* Held from before the host runs: whoever looks in between must not take it for dead. */
static int take_lock(int dir, struct failure *f)
{
	int fd = openat(dir, FILE_LOCK, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return fail_errno(f, "lock the directory of an attempt host");
}

int host_start(uv_loop_t *loop, const struct host_settings *settings, const struct host_handlers *handlers, void *context,
	struct host **out, struct failure *f)
{
	int dir = open_directory(settings->directory, f), lock, fd;
	struct host *host;

	if (dir < 0)
		return -1;
	lock = take_lock(dir, f);
	if (lock < 0)
		goto out_dir;
	fd = launch_host(settings->directory, lock);
	(void)close(lock);
	if (fd < 0) {
		(void)fail_errno(f, "start an attempt host");
		goto out_dir;
	}
	host = host_create(loop, dir, 0, handlers, context);
	attach(host, fd);
	host->link = LINK_STARTING;
	host->lines.line_bytes = settings->line_bytes;
	if (settings_send(stream_of(host), settings, f) != 0) {
		host_release(host); /* a host without settings ends */
		return -1;
	}
	*out = host;
	return 0;
out_dir:
	(void)close(dir);
	return -1;
}

static int64_t spool_size(int dir)
{
	struct stat info;

	return fstatat(dir, FILE_SPOOL, &info, AT_SYMLINK_NOFOLLOW) == 0 ? (int64_t)info.st_size : 0;
}

int host_connect(uv_loop_t *loop, const char *directory, int64_t spool_offset, const struct host_handlers *handlers,
	void *context, struct host **out, struct failure *f)
{
	int dir = open_directory(directory, f);

	if (dir < 0)
		return -1;
	if (spool_offset < 0)
		spool_offset = spool_size(dir);
	*out = host_create(loop, dir, spool_offset, handlers, context);
	(*out)->link = LINK_DIALING;
	wake(*out, 0);
	return 0;
}

static bool is_talking(const struct host *host)
{
	return host->link == LINK_STARTING || host->link == LINK_UP;
}

int host_write(struct host *host, int64_t seq, struct str line, bool has_secret, struct failure *f)
{
	if (seq <= host->confirmed || seq <= host->sent)
		return 0;
	if (!is_talking(host))
		return fail(f, FAIL_UNAVAILABLE, "the agent's host does not answer");
	if (line.n > LIMIT_AGENT_STDIN_BYTES)
		return fail(f, FAIL_PAYLOAD_TOO_LARGE, "a line for an agent may have %d bytes, this has %zu",
			LIMIT_AGENT_STDIN_BYTES, line.n);
	if (host->refused != 0 && seq > host->refused)
		return fail(f, FAIL_UNAVAILABLE, "the agent does not read, and an earlier line waits for it");
	if (host->unconfirmed_bytes + line.n > LIMIT_AGENT_STDIN_BYTES) {
		host->refused = seq;
		return fail(f, FAIL_UNAVAILABLE, "the agent does not read: %zu bytes wait for it already",
			host->unconfirmed_bytes);
	}
	host->refused = 0;
	host->sent = seq;
	unconfirmed_add(host, seq, line.n);
	frame_send(stream_of(host), &line, 1, "\"is\":\"write\",\"seq\":%lld,\"hasSecret\":%d", (long long)seq, has_secret);
	return 0;
}

int host_next_line(struct host *host, struct str *line, int64_t *end)
{
	bool is_ended = host->link == LINK_ENDED && host->is_end_told;
	/* After these the last line was cut by force. */
	bool is_final = is_ended && strcmp(host->exit.cause, "line_too_long") != 0 && strcmp(host->exit.cause, "lost") != 0;
	int rc = lines_next(&host->lines, host->dir, is_final, line, end);

	if (rc == 0 && is_ended && !host->is_read_out) {
		host->is_read_out = true;
		wake(host, 0);
	}
	return rc;
}

void host_consumed(struct host *host, int64_t offset)
{
	if (offset > host->stored)
		host->stored = offset;
	/* One read of the host more or less does not matter to it. */
	if (!is_talking(host) || host->stored - host->told_stored < LIMIT_AGENT_READ_BYTES)
		return;
	host->told_stored = host->stored;
	frame_send(stream_of(host), NULL, 0, "\"is\":\"consumed\",\"offset\":%lld", (long long)host->stored);
}

static void ask(struct host *host, const char *what, bool *wish)
{
	*wish = !is_talking(host);
	if (!*wish)
		frame_send(stream_of(host), NULL, 0, "\"is\":\"%s\"", what);
}

void host_close_stdin(struct host *host)
{
	ask(host, "close_stdin", &host->wants_close);
}

void host_end(struct host *host)
{
	ask(host, "end", &host->wants_end);
}

static void on_host_closed(uv_handle_t *handle)
{
	struct host *host = handle->data;

	unconfirmed_drop(host, INT64_MAX);
	lines_finish(&host->lines);
	arena_destroy(host->arena);
	(void)close(host->dir);
	free(host);
}

void host_release(struct host *host)
{
	if (host == NULL || host->is_released)
		return;
	host->is_released = true;
	hang_up(host);
	uv_close((uv_handle_t *)&host->timer, on_host_closed);
}
