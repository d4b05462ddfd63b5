/* The three pipes of the program. Its output goes to the disk before anybody hears of it; while the server is behind by the
 * limit nobody reads it, and the program waits. */
#include "agents/attempt.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void on_out(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	struct attempt *a = handle->data;

	(void)wanted;
	*buf = uv_buf_init(a->room, sizeof(a->room));
}

static void close_pipe(uv_pipe_t *pipe, bool *is_open)
{
	if (*is_open)
		uv_close((uv_handle_t *)pipe, NULL);
	*is_open = false;
}

/* ---- stdout ---- */

static void pause_or_go_on(struct attempt *a)
{
	bool is_full = spool_is_full(&a->spool) || a->spool.is_too_long;

	if (a->spool.waiting_n > 0 && a->due[ALARM_FLUSH] == 0)
		alarm_set(a, ALARM_FLUSH, LIMIT_AGENT_RETRY_MS);
	if (!a->is_out_open || is_full == a->is_out_paused)
		return;
	a->is_out_paused = is_full;
	if (is_full)
		(void)uv_read_stop((uv_stream_t *)&a->out);
	else
		(void)uv_read_start((uv_stream_t *)&a->out, give_room, on_out);
}

static void take_output(struct attempt *a, const char *bytes, size_t n)
{
	spool_add(&a->spool, bytes, n);
	if (a->spool.has_line)
		alarm_clear(a, ALARM_START);
	if (a->spool.is_too_long)
		attempt_end(a, "line_too_long");
	channel_progress(a);
}

static void on_out(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct attempt *a = stream->data;

	if (n > 0)
		take_output(a, buf->base, (size_t)n);
	if (n >= 0) {
		pause_or_go_on(a);
		return;
	}
	close_pipe(&a->out, &a->is_out_open);
	if (!a->is_agent_gone && a->stage == STAGE_RUNNING)
		alarm_set(a, ALARM_STDOUT, LIMIT_AGENT_STDOUT_CLOSED_MS);
}

void pipes_consumed(struct attempt *a, int64_t offset)
{
	spool_consumed(&a->spool, offset);
	pause_or_go_on(a);
}

void pipes_flush(struct attempt *a)
{
	(void)spool_flush(&a->spool); /* what still waits sets the alarm again */
	channel_progress(a);
	pause_or_go_on(a);
}

/* ---- stderr ---- */

static void on_err(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct attempt *a = stream->data;

	if (n > 0)
		errlog_add(&a->errlog, buf->base, (size_t)n);
	else if (n < 0)
		close_pipe(&a->err, &a->is_err_open);
}

/* ---- stdin ---- */

struct stdin_line {
	uv_write_t request;
	struct attempt *attempt;
	int64_t seq;
	size_t n;
	char bytes[];
};

static void on_written(uv_write_t *request, int status)
{
	struct stdin_line *line = request->data;
	struct attempt *a = line->attempt;

	a->queued -= line->n;
	if (status == 0)
		a->confirmed = line->seq;
	explicit_bzero(line->bytes, line->n);
	free(line);
	if (status == 0)
		channel_progress(a);
	/* A program that reads no more is no end of it: its exit status tells why. */
	if (status == UV_EPIPE || (a->closes_in && a->queued == 0))
		close_pipe(&a->in, &a->is_in_open);
}

static size_t count(struct str line, struct str word)
{
	size_t n = 0;
	const char *end = line.p + line.n;

	for (const char *p = line.p; (p = memmem(p, (size_t)(end - p), word.p, word.n)) != NULL; p += word.n)
		n++;
	return n;
}

/* The line with `word` replaced by `by`, and its end. */
static struct stdin_line *build_line(struct str line, struct str word, struct str by)
{
	size_t times = word.n == 0 ? 0 : count(line, word);
	size_t n = line.n - times * word.n + times * by.n + 1;
	struct stdin_line *built = malloc(sizeof(*built) + n);
	char *to;

	if (built == NULL)
		abort();
	to = built->bytes;
	for (; times > 0; times--) {
		const char *found = memmem(line.p, line.n, word.p, word.n);
		size_t before = (size_t)(found - line.p);

		to = mempcpy(to, line.p, before);
		if (by.n > 0)
			to = mempcpy(to, by.p, by.n);
		line = (struct str){found + word.n, line.n - before - word.n};
	}
	to = mempcpy(to, line.p, line.n);
	*to = '\n';
	built->n = n;
	return built;
}

void pipes_write(struct attempt *a, int64_t seq, struct str line, bool has_secret)
{
	struct stdin_line *built;
	uv_buf_t buf;

	if (seq <= a->accepted)
		return; /* a new server repeats what it does not know to be written */
	a->accepted = seq;
	if (!a->is_in_open || a->closes_in)
		return;
	built = build_line(line, has_secret ? a->settings.placeholder : STR_NONE, a->settings.secret);
	built->request.data = built;
	built->attempt = a;
	built->seq = seq;
	a->queued += built->n;
	buf = uv_buf_init(built->bytes, (unsigned int)built->n);
	if (uv_write(&built->request, (uv_stream_t *)&a->in, &buf, 1, on_written) != 0)
		on_written(&built->request, UV_EPIPE);
}

void pipes_close_stdin(struct attempt *a, bool at_once)
{
	a->closes_in = true;
	if (at_once || a->queued == 0)
		close_pipe(&a->in, &a->is_in_open);
}

/* ---- all of them ---- */

static void open_pipe(struct attempt *a, uv_pipe_t *pipe, int fd, bool *is_open)
{
	(void)uv_pipe_init(&a->loop, pipe, 0);
	pipe->data = a;
	*is_open = true;
	if (uv_pipe_open(pipe, fd) != 0)
		abort(); /* it is a pipe that we have just made */
}

void pipes_open(struct attempt *a, const struct agent_pipes *pipes)
{
	open_pipe(a, &a->in, pipes->to_stdin, &a->is_in_open);
	open_pipe(a, &a->out, pipes->from_stdout, &a->is_out_open);
	open_pipe(a, &a->err, pipes->from_stderr, &a->is_err_open);
	(void)uv_read_start((uv_stream_t *)&a->out, give_room, on_out);
	(void)uv_read_start((uv_stream_t *)&a->err, give_room, on_err);
}

/* At most what a pipe holds: something that could not be killed may write for ever. */
static bool drain(struct attempt *a, uv_pipe_t *pipe, bool *is_open, bool is_stdout)
{
	uv_os_fd_t fd;
	int64_t left;

	if (!*is_open || uv_fileno((const uv_handle_t *)pipe, &fd) != 0)
		return true;
	left = fcntl(fd, F_GETPIPE_SZ);
	while (left > 0) {
		ssize_t n;

		if (is_stdout && a->spool.waiting_n > 0)
			return false;
		n = read(fd, a->room, sizeof(a->room));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		left -= n;
		if (is_stdout)
			spool_add(&a->spool, a->room, (size_t)n);
		else
			errlog_add(&a->errlog, a->room, (size_t)n);
	}
	close_pipe(pipe, is_open);
	return true;
}

bool pipes_drain(struct attempt *a)
{
	bool is_done;

	(void)drain(a, &a->err, &a->is_err_open, false);
	is_done = spool_flush(&a->spool) && drain(a, &a->out, &a->is_out_open, true) && spool_flush(&a->spool);
	pipes_close_stdin(a, true);
	return is_done;
}
