/* Messages between server and host: see private.h. What a buffer held is wiped before it is given back. */
#include "agents/private.h"

#include "base/limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_CAP ((size_t)LIMIT_AGENT_READ_BYTES)

void framer_init(struct framer *framer, size_t max_body)
{
	*framer = (struct framer){.max_body = max_body};
}

static void release(struct framer *framer)
{
	if (framer->p != NULL)
		explicit_bzero(framer->p, framer->n);
	free(framer->p);
	framer->p = NULL;
	framer->n = framer->cap = framer->from = 0;
}

void framer_finish(struct framer *framer)
{
	release(framer);
	json_decref(framer->head);
	framer->head = NULL;
}

/* What was taken goes, and there is room for `more` bytes. */
static void make_room(struct framer *framer, size_t more)
{
	size_t kept = framer->n - framer->from;
	size_t cap = framer->cap < FIRST_CAP ? FIRST_CAP : framer->cap;
	char *p;

	if (framer->cap - framer->n >= more)
		return;
	while (cap - kept < more)
		cap *= 2;
	p = malloc(cap);
	if (p == NULL)
		abort();
	if (kept > 0)
		memcpy(p, framer->p + framer->from, kept);
	release(framer);
	framer->p = p;
	framer->n = kept;
	framer->cap = cap;
}

char *framer_room(struct framer *framer, size_t *n)
{
	make_room(framer, FIRST_CAP / 2);
	*n = framer->cap - framer->n;
	return framer->p + framer->n;
}

void framer_filled(struct framer *framer, size_t n)
{
	framer->n += n;
}

int64_t frame_int(const struct frame *frame, const char *key)
{
	return json_integer_value(json_object_get(frame->head, key));
}

/* Length of the head with its end; 0: not whole yet; -1: too long. */
static int find_head(const struct framer *framer, size_t *out)
{
	size_t have = framer->n - framer->from;
	const char *start, *end;

	if (have == 0)
		return 0;
	start = framer->p + framer->from;
	end = memchr(start, '\n', have);
	if (end == NULL)
		return have > LIMIT_AGENT_HEAD_BYTES ? -1 : 0;
	*out = (size_t)(end - start) + 1;
	return *out > LIMIT_AGENT_HEAD_BYTES ? -1 : 1;
}

int framer_next(struct framer *framer, struct frame *out)
{
	struct json_error error;
	int64_t body;
	size_t n, have;
	int rc = find_head(framer, &n);

	if (rc <= 0) {
		if (framer->from == framer->n)
			release(framer); /* an idle connection costs no buffer */
		return rc;
	}
	json_decref(framer->head);
	framer->head = json_read((struct str){framer->p + framer->from, n - 1}, &error);
	if (!json_is_object(framer->head))
		return -1;
	*out = (struct frame){.head = framer->head, .what = json_member_str(framer->head, "is")};
	body = frame_int(out, "bytes");
	if (body < 0 || (uint64_t)body > framer->max_body)
		return -1;
	have = framer->n - framer->from;
	if (have < n + (size_t)body) {
		make_room(framer, n + (size_t)body - have); /* once: then there is room until it is whole */
		return 0;
	}
	out->body = (struct str){framer->p + framer->from + n, (size_t)body};
	framer->from += n + (size_t)body;
	return 1;
}

/* ---- sending ---- */

struct sending {
	uv_write_t request;
	size_t n;
	char bytes[];
};

static void sent(uv_write_t *request, int status)
{
	struct sending *sending = request->data;

	(void)status; /* the reading end of the connection tells */
	explicit_bzero(sending->bytes, sending->n);
	free(sending);
}

void frame_send(uv_stream_t *stream, const struct str *bodies, size_t count, const char *members, ...)
{
	char head[LIMIT_AGENT_HEAD_BYTES];
	struct sending *sending;
	size_t body = 0, at;
	va_list args;
	uv_buf_t buf;

	for (size_t i = 0; i < count; i++)
		body += bodies[i].n;
	va_start(args, members);
	head[0] = '{';
	at = 1 + (size_t)vsnprintf(head + 1, sizeof(head) - 1, members, args);
	va_end(args);
	at += (size_t)snprintf(head + at, sizeof(head) - at, ",\"bytes\":%zu}\n", body);
	sending = malloc(sizeof(*sending) + at + body);
	if (sending == NULL)
		abort();
	sending->request.data = sending;
	sending->n = at + body;
	memcpy(sending->bytes, head, at);
	for (size_t i = 0; i < count; i++) {
		if (bodies[i].n > 0)
			memcpy(sending->bytes + at, bodies[i].p, bodies[i].n);
		at += bodies[i].n;
	}
	buf = uv_buf_init(sending->bytes, (unsigned int)sending->n);
	if (uv_write(&sending->request, stream, &buf, 1, sent) != 0)
		sent(&sending->request, UV_EPIPE);
}
