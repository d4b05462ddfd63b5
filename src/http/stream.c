/* Open-ended bodies: a bounded queue between any thread and the connection. */
#include "http/server.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* Memory that an idle stream may keep for its next event. */
#define IDLE_QUEUE_BYTES 4096

/* An event up to this size dirties only the page that is kept. */
#define LEAN_BYTES 4096

/* Used for HTTP/1.0 only; chunks are built in the connection's pool. */
#define PLAIN_BLOCK_BYTES 256

static size_t pending(const struct stream *stream)
{
	return stream->queue.n - stream->taken;
}

void stream_finish(struct stream *stream)
{
	buf_finish(&stream->queue);
}

static size_t take(struct stream *stream, char *out, size_t max)
{
	size_t n = pending(stream) < max ? pending(stream) : max;

	memcpy(out, stream->queue.p + stream->taken, n);
	stream->taken += n;
	if (pending(stream) > 0)
		return n;
	stream->taken = 0;
	stream->queue.n = 0;
	if (stream->queue.cap > IDLE_QUEUE_BYTES)
		buf_finish(&stream->queue);
	return n;
}

/* An idle stream gives back the buffer it was offered, but for the first page, which the next small
 * event needs. `out` is ours to fill with anything, zeros too, and that is what the pages turn into.
 * libmicrohttpd has cleared half of its pool by then: without this an idle stream costs 24 KB more. */
static void give_back(struct stream *stream, char *out, size_t max)
{
	const uintptr_t page = 4096;
	uintptr_t begin = ((uintptr_t)out + 2 * page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)out + max) & ~(page - 1);

	if (stream->is_lean || end <= begin)
		return;
	(void)madvise((void *)begin, end - begin, MADV_DONTNEED); /* costs memory only when it fails */
	stream->is_lean = true;
}

/* libmicrohttpd wants bytes. http thread; the connection is not suspended. */
static ssize_t read_stream(void *context, uint64_t position, char *out, size_t max)
{
	struct http_exchange *x = context;
	ssize_t result = MHD_CONTENT_READER_END_WITH_ERROR;

	(void)position;
	(void)pthread_mutex_lock(&x->lock);
	if (x->gone || x->connection == NULL) {
		/* keep the error */
	} else if (pending(&x->stream) > 0) {
		result = (ssize_t)take(&x->stream, out, max);
		x->stream.is_lean = x->stream.is_lean && result <= LEAN_BYTES;
		conn_enter(x->server, x->conn, CONN_SENDING);
	} else if (x->stream.is_ended) {
		result = MHD_CONTENT_READER_END_OF_STREAM;
	} else if (!atomic_load(&x->server->cutting)) {
		/* Empty: sleep under the lock, so that a writer finds it asleep or its bytes are found
		 * here. Returning 0 without sleeping would spin. */
		give_back(&x->stream, out, max);
		MHD_suspend_connection(x->connection); /* (3) */
		x->suspended = true;
		conn_enter(x->server, x->conn, CONN_WAITING);
		conn_watch(x->server, x->conn);
		result = 0;
	}
	(void)pthread_mutex_unlock(&x->lock);
	return result;
}

static void release_reader(void *context)
{
	http_release(context);
}

static bool is_event_stream(const struct http_field *fields, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq_nocase(str_of(fields[i].name), STR("content-type")))
			return str_starts(fields[i].value, STR("text/event-stream"));
	return false;
}

/* Under the exchange's lock. */
static void open_stream(struct http_exchange *x, bool is_events)
{
	int size = LIMIT_HTTP_STREAM_SOCKET_BYTES;

	buf_init(&x->stream.queue, NULL, SIZE_MAX / 2); /* bounded by http_stream_write */
	x->stream.is_events = is_events;
	if (x->connection == NULL)
		return;
	x->stream.is_open = true;
	atomic_fetch_add(&x->server->streams_open, 1);
	(void)setsockopt(x->conn->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)); /* a refinement */
}

void http_stream_begin(struct http_exchange *x, int status, const struct http_field *fields, size_t n)
{
	struct MHD_Response *response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, PLAIN_BLOCK_BYTES, read_stream, x, release_reader);

	if (response == NULL)
		abort();
	http_keep(x); /* the response's */
	answer_add_fields(response, fields, n);
	(void)pthread_mutex_lock(&x->lock);
	open_stream(x, is_event_stream(fields, n));
	answer_publish(x, status, response);
	(void)pthread_mutex_unlock(&x->lock);
}

static void wake(struct http_exchange *x)
{
	/* Before the head is out, response is not NULL and the sleep is the request's, not ours. */
	if (!x->suspended)
		return;
	x->suspended = false;
	loop_resume(x); /* (3) */
}

/* Under the exchange's lock. */
static void cut(struct http_exchange *x)
{
	x->gone = true;
	conn_cut(x->server, x->conn);
	wake(x);
}

int http_stream_write(struct http_exchange *x, struct str bytes)
{
	struct stream *stream = &x->stream;
	int result = -1;

	(void)pthread_mutex_lock(&x->lock);
	if (x->connection == NULL || x->gone || stream->is_ended) {
		/* nobody will read it */
	} else if (pending(stream) + bytes.n > x->server->options.stream_queue_bytes) {
		cut(x);
	} else {
		/* Seldom, so that a long queue is not moved for every event. */
		if (stream->taken > stream->queue.n / 2) {
			buf_consume(&stream->queue, stream->taken);
			stream->taken = 0;
		}
		buf_add_str(&stream->queue, bytes);
		wake(x);
		result = 0;
	}
	(void)pthread_mutex_unlock(&x->lock);
	return result;
}

size_t http_stream_pending(struct http_exchange *x)
{
	size_t n;

	(void)pthread_mutex_lock(&x->lock);
	n = pending(&x->stream);
	(void)pthread_mutex_unlock(&x->lock);
	return n;
}

void http_stream_end(struct http_exchange *x)
{
	(void)pthread_mutex_lock(&x->lock);
	x->stream.is_ended = true;
	if (x->connection != NULL)
		wake(x);
	(void)pthread_mutex_unlock(&x->lock);
}

/* Asleep means that the peer has taken everything, so a heartbeat cannot pile up. */
void stream_heartbeat(struct http_exchange *x)
{
	(void)pthread_mutex_lock(&x->lock);
	if (x->suspended && x->stream.is_open && x->stream.is_events) {
		buf_add_str(&x->stream.queue, STR(": hb\n\n"));
		wake(x);
	}
	(void)pthread_mutex_unlock(&x->lock);
}
