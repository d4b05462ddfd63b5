#include "mcp/replay.h"

#include "base/clock.h"
#include "base/limits.h"
#include "http/http.h"
#include "mcp/session.h"

#include <stdio.h>
#include <stdlib.h>

#define ID_SIZE 32

static void base36(uint64_t value, char out[14])
{
	char digits[14];
	size_t n = 0;
	size_t at = 0;

	do {
		digits[n++] = "0123456789abcdefghijklmnopqrstuvwxyz"[value % 36];
		value /= 36;
	} while (value > 0);
	while (n > 0)
		out[at++] = digits[--n];
	out[at] = '\0';
}

static bool parse36(struct str text, uint64_t *out)
{
	uint64_t value = 0;

	if (text.n == 0 || text.n > 12)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c >= '0' && c <= '9')
			value = value * 36 + (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'z')
			value = value * 36 + 10 + (uint64_t)(c - 'a');
		else
			return false;
	}
	*out = value;
	return true;
}

static void write_id(const struct replay *stream, uint64_t seq, char out[ID_SIZE])
{
	char serial[14];
	char number[14];

	base36(stream->serial, serial);
	base36(seq, number);
	(void)snprintf(out, ID_SIZE, "%s.%s", serial, number);
}

void sse_write(struct buf *out, struct str id, struct str message)
{
	buf_add_str(out, STR("event: message\n"));
	if (id.n > 0)
		buf_printf(out, "id: %.*s\n", STRF(id));
	buf_add_str(out, STR("data: "));
	/* Outside of strings JSON may hold line ends, and inside they are escaped: a blank is the
	 * same. */
	for (size_t from = 0; from < message.n;) {
		size_t at = from;

		while (at < message.n && message.p[at] != '\n' && message.p[at] != '\r')
			at++;
		buf_add(out, message.p + from, at - from);
		if (at < message.n)
			buf_add_char(out, ' ');
		from = at + 1;
	}
	buf_add_str(out, STR("\n\n"));
}

struct replay *replay_create(struct mcp_session *session, bool is_general)
{
	struct replay *stream = calloc(1, sizeof(*stream));

	if (stream == NULL)
		abort();
	stream->serial = ++session->stream_serial;
	stream->is_general = is_general;
	stream->next = session->streams;
	session->streams = stream;
	return stream;
}

static void forget_first(struct replay *stream)
{
	struct event *event = &stream->events[stream->first];

	stream->bytes -= event->n;
	free(event->text);
	stream->first = (stream->first + 1) % LIMIT_MCP_REPLAY_EVENTS;
	stream->count--;
}

void replay_destroy(struct replay *stream)
{
	while (stream->count > 0)
		forget_first(stream);
	free(stream->events);
	free(stream);
}

static void keep(struct replay *stream, struct str text)
{
	struct event *event;

	if (stream->events == NULL)
		stream->events = calloc(LIMIT_MCP_REPLAY_EVENTS, sizeof(*stream->events));
	if (stream->events == NULL)
		abort();
	while (stream->count > 0 && (stream->count == LIMIT_MCP_REPLAY_EVENTS ||
					    stream->bytes + text.n > LIMIT_MCP_REPLAY_BYTES))
		forget_first(stream);
	event = &stream->events[(stream->first + stream->count) % LIMIT_MCP_REPLAY_EVENTS];
	*event = (struct event){stream->seq, malloc(text.n + 1), text.n};
	if (event->text == NULL)
		abort();
	memcpy(event->text, text.p, text.n);
	stream->bytes += text.n;
	stream->count++;
}

void replay_send(struct replay *stream, struct str message, bool last)
{
	char id[ID_SIZE];
	struct buf out;

	stream->seq++;
	write_id(stream, stream->seq, id);
	buf_init(&out, NULL, SIZE_MAX);
	sse_write(&out, str_of(id), message);
	keep(stream, buf_str(&out));
	if (stream->x != NULL)
		(void)http_stream_write(stream->x, buf_str(&out));
	buf_finish(&out);
	if (last) {
		stream->is_over = true;
		stream->over_at = clock_mono_ms();
	}
}

void replay_prime(struct replay *stream, int64_t retry_ms)
{
	char id[ID_SIZE];
	char text[ID_SIZE + 64];
	int n;

	stream->seq++;
	write_id(stream, stream->seq, id);
	n = snprintf(
		text, sizeof(text), "id: %s\nretry: %lld\ndata: \n\n", id, (long long)retry_ms);
	if (stream->x != NULL)
		(void)http_stream_write(stream->x, (struct str){text, (size_t)n});
}

void replay_resume(struct replay *stream, uint64_t seq, struct http_exchange *x)
{
	for (size_t i = 0; i < stream->count; i++) {
		const struct event *event =
			&stream->events[(stream->first + i) % LIMIT_MCP_REPLAY_EVENTS];

		if (event->seq > seq)
			(void)http_stream_write(x, (struct str){event->text, event->n});
	}
}

struct replay *replay_find(struct mcp_session *session, struct str last_event_id, uint64_t *seq)
{
	const char *dot =
		last_event_id.n == 0 ? NULL : memchr(last_event_id.p, '.', last_event_id.n);
	uint64_t serial;

	if (dot == NULL)
		return NULL;
	if (!parse36((struct str){last_event_id.p, (size_t)(dot - last_event_id.p)}, &serial) ||
		!parse36((struct str){dot + 1,
				 last_event_id.n - (size_t)(dot - last_event_id.p) - 1},
			seq))
		return NULL;
	for (struct replay *stream = session->streams; stream != NULL; stream = stream->next)
		if (stream->serial == serial)
			return stream;
	return NULL;
}

int64_t replay_expire(struct mcp_session *session, int64_t now)
{
	int64_t again = INT64_MAX;

	for (struct replay **at = &session->streams; *at != NULL;) {
		struct replay *stream = *at;
		bool idle = stream->x == NULL && (stream->is_over || stream->is_general);
		int64_t end = stream->over_at + LIMIT_MCP_REPLAY_SECONDS * 1000LL;

		if (idle && now >= end) {
			*at = stream->next;
			replay_destroy(stream);
			continue;
		}
		if (idle && end < again)
			again = end;
		at = &stream->next;
	}
	return again;
}
