/* The host's side of its socket: the server of the moment, and whoever else connects. */
#include "agents/attempt.h"

#include "base/limits.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct channel {
	uv_pipe_t pipe;
	struct attempt *attempt;
	struct framer framer;
	bool is_greeted;
};

static void on_closed(uv_handle_t *handle)
{
	struct channel *channel = handle->data;

	framer_finish(&channel->framer);
	channel->attempt->channels--;
	free(channel);
}

static void channel_close(struct channel *channel)
{
	if (channel->attempt->server == channel)
		channel->attempt->server = NULL;
	if (!uv_is_closing((uv_handle_t *)&channel->pipe))
		uv_close((uv_handle_t *)&channel->pipe, on_closed);
}

static uv_stream_t *stream_of(struct channel *channel)
{
	return (uv_stream_t *)&channel->pipe;
}

/* ---- what we say ---- */

void channel_progress(struct attempt *a)
{
	if (a->server == NULL)
		return;
	if (uv_stream_get_write_queue_size(stream_of(a->server)) > LIMIT_AGENT_HEAD_BYTES) {
		/* It does not read. It will hear of the newest state only. */
		if (a->due[ALARM_PROGRESS] == 0)
			alarm_set(a, ALARM_PROGRESS, LIMIT_AGENT_RETRY_MS);
		return;
	}
	frame_send(stream_of(a->server), NULL, 0, "\"is\":\"progress\",\"written\":%lld,\"confirmed\":%lld",
		(long long)a->spool.written, (long long)a->confirmed);
}

static void send_state(struct channel *channel)
{
	struct attempt *a = channel->attempt;
	const struct str bodies[] = {a->settings.secret, a->settings.note};

	frame_send(stream_of(channel), bodies, 2,
		"\"is\":\"state\",\"pid\":%d,\"written\":%lld,\"confirmed\":%lld,\"lineBytes\":%lld,\"secret\":%zu,\"note\":%zu,"
		"\"exited\":%d",
		(int)a->agent.pid, (long long)a->spool.written, (long long)a->confirmed, (long long)a->settings.line_bytes,
		a->settings.secret.n, a->settings.note.n, a->is_agent_gone);
}

static void become_server(struct channel *channel)
{
	struct channel *old = channel->attempt->server;

	if (old != NULL && old != channel) {
		/* Sent at once or not at all; it is a courtesy, so that it does not come back. */
		frame_send(stream_of(old), NULL, 0, "\"is\":\"replaced\",\"pid\":%d", (int)getpid());
		channel_close(old);
	}
	channel->is_greeted = true;
	channel->attempt->server = channel;
	send_state(channel);
}

/* ---- what we hear ---- */

static bool obey(struct channel *channel, const struct frame *frame)
{
	struct attempt *a = channel->attempt;

	if (!channel->is_greeted && !str_eq(frame->what, STR("hello")))
		return false;
	if (str_eq(frame->what, STR("hello"))) {
		pipes_consumed(a, frame_int(frame, "offset"));
		become_server(channel);
	} else if (str_eq(frame->what, STR("write"))) {
		/* The server counts what is not confirmed. Twice its bound, as secrets may be longer than what stands for them. */
		if (a->queued + frame->body.n > 2 * (size_t)LIMIT_AGENT_STDIN_BYTES)
			return false;
		pipes_write(a, frame_int(frame, "seq"), frame->body, frame_int(frame, "hasSecret") != 0);
	} else if (str_eq(frame->what, STR("consumed")))
		pipes_consumed(a, frame_int(frame, "offset"));
	else if (str_eq(frame->what, STR("close_stdin")))
		pipes_close_stdin(a, false);
	else if (str_eq(frame->what, STR("end")))
		attempt_end(a, "ended");
	return true; /* what a newer server says besides is not for us */
}

static void take_frames(struct channel *channel)
{
	struct frame frame;
	int rc;

	while ((rc = framer_next(&channel->framer, &frame)) > 0)
		if (uv_is_closing((uv_handle_t *)&channel->pipe) || !obey(channel, &frame)) {
			rc = -1;
			break;
		}
	if (rc < 0)
		channel_close(channel);
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	struct channel *channel = handle->data;
	size_t n;

	(void)wanted;
	buf->base = framer_room(&channel->framer, &n);
	buf->len = n;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct channel *channel = stream->data;

	(void)buf;
	if (n < 0) {
		channel_close(channel); /* the server is gone; the next one says where to go on */
		return;
	}
	framer_filled(&channel->framer, (size_t)n);
	take_frames(channel);
}

static struct channel *channel_create(struct attempt *a)
{
	struct channel *channel = calloc(1, sizeof(*channel));

	if (channel == NULL)
		abort();
	channel->attempt = a;
	framer_init(&channel->framer, LIMIT_AGENT_STDIN_BYTES);
	(void)uv_pipe_init(&a->loop, &channel->pipe, 0);
	channel->pipe.data = channel;
	a->channels++;
	return channel;
}

void channel_adopt(struct attempt *a, int fd, struct framer *framer)
{
	struct channel *channel = channel_create(a);

	framer_finish(&channel->framer);
	channel->framer = *framer;
	channel->framer.max_body = LIMIT_AGENT_STDIN_BYTES;
	*framer = (struct framer){0};
	if (uv_pipe_open(&channel->pipe, fd) != 0) {
		(void)close(fd); /* a file or the like, by hand: nobody to talk to */
		channel_close(channel);
		return;
	}
	(void)uv_read_start(stream_of(channel), give_room, on_read);
	become_server(channel);
	take_frames(channel); /* what came with the settings */
}

/* ---- the socket ---- */

static bool is_ours(const struct channel *channel)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	uv_os_fd_t fd;

	return uv_fileno((const uv_handle_t *)&channel->pipe, &fd) == 0 &&
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct attempt *a = listener->data;
	struct channel *channel;

	if (status != 0)
		return;
	channel = channel_create(a);
	if (uv_accept(listener, stream_of(channel)) != 0 || !is_ours(channel) || a->channels > LIMIT_AGENT_HOST_CONNECTIONS)
		channel_close(channel);
	else
		(void)uv_read_start(stream_of(channel), give_room, on_read);
}

int channel_listen(struct attempt *a)
{
	mode_t mask = umask(0177); /* for the socket only: the program gets the one of the server */
	int rc;

	(void)uv_pipe_init(&a->loop, &a->listener, 0);
	a->listener.data = a;
	rc = uv_pipe_bind(&a->listener, FILE_SOCKET); /* relative: a path may be longer than an address of a socket */
	(void)umask(mask);
	if (rc == 0)
		rc = uv_listen((uv_stream_t *)&a->listener, LIMIT_AGENT_HOST_CONNECTIONS, on_connection);
	return rc == 0 ? 0 : -1;
}

static void close_handle(uv_handle_t *handle, void *context)
{
	if (uv_is_closing(handle))
		return;
	if (handle->data == context)
		uv_close(handle, NULL);
	else
		channel_close(handle->data);
}

void channel_close_all(struct attempt *a)
{
	uv_walk(&a->loop, close_handle, a);
}
