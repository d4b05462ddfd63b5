/* Messages as lines: stdio and Unix sockets. Both eras share one conversation.
 *
 * line->lock guards what is written and is taken last; `session` is replaced only by the feeding
 * thread, requests hold references of their own. */
#include "mcp/line.h"

#include "base/limits.h"
#include "base/log.h"
#include "mcp/session.h"

#include <stdlib.h>

struct mcp_line {
	struct channel channel; /* first: a request's channel is its line */
	atomic_int refs;
	struct mcp_server *server;
	struct arena *arena;
	struct mcp_caller caller;
	void (*write)(void *context, struct str line);
	void *context;

	struct buf input;
	bool skipping;   /* inside a line that is too long */
	bool saw_bytes;  /* a byte order mark may only come first */
	bool saw_modern; /* a modern request other than server/discover came */
	struct mcp_session *session;

	pthread_mutex_t lock;
	bool closed;
	struct buf output;
};

/* A 2025-03-26 batch: answers are collected and leave as one array. */
struct batch {
	struct channel channel;
	atomic_int refs;
	struct mcp_line *line;
	pthread_mutex_t lock;
	struct buf answers;
	size_t pending;
};

void line_write(struct mcp_line *line, struct str message)
{
	(void)pthread_mutex_lock(&line->lock);
	if (!line->closed) {
		line->output.n = 0;
		buf_add_str(&line->output, message);
		for (size_t i = 0; i < message.n; i++)
			if (line->output.p[i] == '\n' || line->output.p[i] == '\r')
				line->output.p[i] = ' '; /* between JSON tokens: inside strings they
				                            are escaped */
		buf_add_char(&line->output, '\n');
		line->write(line->context, buf_str(&line->output));
		if (line->output.cap > 65536)
			buf_finish(&line->output);
	}
	(void)pthread_mutex_unlock(&line->lock);
}

static void line_unref(struct mcp_line *line)
{
	if (atomic_fetch_sub(&line->refs, 1) != 1)
		return;
	caller_drop(line->server, &line->caller);
	buf_finish(&line->input);
	buf_finish(&line->output);
	(void)pthread_mutex_destroy(&line->lock);
	arena_destroy(line->arena);
	free(line);
}

static void line_notify(struct channel *c, struct mcp_request *req, struct str message)
{
	(void)req;
	line_write((struct mcp_line *)(void *)c, message);
}

static void line_answer(struct channel *c, struct mcp_request *req, int status, struct str message)
{
	(void)status;
	(void)req;
	if (message.n > 0)
		line_write((struct mcp_line *)(void *)c, message);
}

static void line_begin_stream(struct channel *c, struct mcp_request *req)
{
	(void)c;
	(void)req;
}

static void line_release(struct channel *c)
{
	line_unref((struct mcp_line *)(void *)c);
}

static const struct channel_ops line_ops = {
	line_notify, line_answer, line_begin_stream, NULL, line_release};

static void batch_release(struct channel *c)
{
	struct batch *batch = (struct batch *)(void *)c;

	if (atomic_fetch_sub(&batch->refs, 1) != 1)
		return;
	buf_finish(&batch->answers);
	(void)pthread_mutex_destroy(&batch->lock);
	line_unref(batch->line);
	free(batch);
}

static void batch_notify(struct channel *c, struct mcp_request *req, struct str message)
{
	line_notify(&((struct batch *)(void *)c)->line->channel, req, message);
}

static void batch_answer(struct channel *c, struct mcp_request *req, int status, struct str message)
{
	struct batch *batch = (struct batch *)(void *)c;

	(void)req;
	(void)status;
	(void)pthread_mutex_lock(&batch->lock);
	if (message.n > 0) {
		buf_add_char(&batch->answers, batch->answers.n == 0 ? '[' : ',');
		buf_add_str(&batch->answers, message);
	}
	if (--batch->pending == 0 && batch->answers.n > 0) {
		buf_add_char(&batch->answers, ']');
		line_write(batch->line, buf_str(&batch->answers));
	}
	(void)pthread_mutex_unlock(&batch->lock);
}

static const struct channel_ops batch_ops = {
	batch_notify, batch_answer, line_begin_stream, NULL, batch_release};

struct mcp_line *mcp_line_create(struct mcp_server *server, const struct mcp_line_options *options)
{
	struct mcp_line *line = calloc(1, sizeof(*line));

	if (line == NULL)
		abort();
	line->channel.ops = &line_ops;
	atomic_init(&line->refs, 1);
	line->server = server;
	line->arena = arena_create();
	caller_copy(server, line->arena, &line->caller, &options->caller);
	line->write = options->write;
	line->context = options->context;
	buf_init(&line->input, NULL, LIMIT_MESSAGE_BYTES);
	buf_init(&line->output, NULL, SIZE_MAX);
	(void)pthread_mutex_init(&line->lock, NULL);
	return line;
}

static void drop_session(struct mcp_line *line)
{
	if (line->session == NULL)
		return;
	mcp_session_delist_line(line->session);
	mcp_session_unref(line->session);
	line->session = NULL;
}

/* Requests of this line, whatever their era. */
static struct mcp_request **requests_of(
	struct mcp_line *line, struct mcp_request **which, struct arena *arena, size_t *n)
{
	struct mcp_request **all = server_snapshot(line->server, which, arena, n);
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++) {
		const struct channel *c = all[i]->channel;
		bool ours = c == &line->channel ||
		            (c->ops == &batch_ops &&
				    ((const struct batch *)(const void *)c)->line == line);

		if (ours)
			all[kept++] = all[i];
		else
			request_unref(all[i]);
	}
	*n = kept;
	return all;
}

/* Cancel the request with this id, or all. */
static void cancel(struct mcp_line *line, struct str id)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct mcp_request **lists[] = {&line->server->requests, &line->server->listens};

	for (size_t k = 0; k < 2; k++) {
		size_t n;
		struct mcp_request **all = requests_of(line, lists[k], arena, &n);

		for (size_t i = 0; i < n; i++) {
			if (id.p == NULL || str_eq(id, all[i]->message.id))
				request_cancel(all[i]);
			request_unref(all[i]);
		}
	}
}

static size_t count(struct mcp_line *line, struct str id)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct mcp_request **lists[] = {&line->server->requests, &line->server->listens};
	size_t found = 0;

	for (size_t k = 0; k < (id.p == NULL ? 1 : 2); k++) {
		size_t n;
		struct mcp_request **all = requests_of(line, lists[k], arena, &n);

		for (size_t i = 0; i < n; i++) {
			found += id.p == NULL || str_eq(id, all[i]->message.id);
			request_unref(all[i]);
		}
	}
	return found;
}

size_t mcp_line_in_flight(struct mcp_line *line)
{
	return count(line, STR_NONE);
}

void mcp_line_close(struct mcp_line *line)
{
	if (line == NULL)
		return;
	(void)pthread_mutex_lock(&line->lock);
	line->closed = true;
	(void)pthread_mutex_unlock(&line->lock);
	cancel(line, STR_NONE);
	drop_session(line);
	line_unref(line);
}

static void write_error(struct mcp_line *line, struct str id, const struct refusal *r)
{
	struct buf out;

	buf_init(&out, NULL, SIZE_MAX);
	message_error(&out, id, r);
	line_write(line, buf_str(&out));
	buf_finish(&out);
}

static void initialize(struct mcp_line *line, struct mcp_request *req)
{
	struct refusal r;
	struct hello hello;

	if (line->saw_modern) {
		request_fail(req, 400, MCP_UNSUPPORTED_VERSION,
			STR("This conversation speaks a revision without initialize."),
			supported_data(req->arena, json_member_str(req->message.params, "protocolVersion")));
		return;
	}
	if (hello_read(req->message.params, &hello, &r) != 0) {
		request_refuse(req, &r);
		return;
	}
	drop_session(line);
	line->session = mcp_session_create(line->server, &hello, line->caller.principal);
	mcp_session_enlist_line(line->session, line);
	hello_answer(req, &hello);
}

static void run(struct mcp_line *line, struct mcp_request *req)
{
	bool is_ping = str_eq(req->message.method, STR("ping"));

	if (count(line, req->message.id) > 0) {
		request_fail(req, 400, MCP_INVALID_REQUEST,
			STR("A request with this id is still in flight."), STR_NONE);
		return;
	}
	if (req->message.claim != NULL) {
		line->saw_modern |= !str_eq(req->message.method, STR("server/discover"));
		modern_run(req, NULL);
		return;
	}
	if (str_eq(req->message.method, STR("initialize"))) {
		initialize(line, req);
		return;
	}
	if (line->session == NULL && !is_ping) {
		request_fail(req, 400, MCP_INVALID_REQUEST,
			STR("Not initialized: send initialize first."), STR_NONE);
		return;
	}
	if (line->session != NULL)
		req->session = mcp_session_ref(line->session);
	legacy_run(req);
}

static void notification(struct mcp_line *line, const struct message *message)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const json_t *id = json_object_get(message->params, "requestId");

	if (str_eq(message->method, STR("notifications/cancelled")) && id != NULL)
		cancel(line, json_canonical(arena, id));
}

/* Takes over `value`, which nobody else may hold. `channel` is what an answer goes to; the request takes over
 * a reference. */
static void handle(struct mcp_line *line, json_t *value, struct channel *channel, atomic_int *refs)
{
	struct arena *arena = arena_create();
	struct message message;
	struct refusal r;

	if (message_read(arena, value, &message, &r) != 0) {
		struct buf out;

		buf_init(&out, arena, SIZE_MAX);
		message_error(&out, message.id, &r);
		channel->ops->answer(channel, NULL, r.status, buf_str(&out));
	} else if (message.kind == MESSAGE_RESPONSE) {
		if (line->session != NULL)
			mcp_session_answer(line->session, &message);
		else
			log_line(LOG_DEBUG, "mcp", "a response to nothing was ignored");
	} else if (message.kind == MESSAGE_NOTIFICATION) {
		notification(line, &message);
	} else {
		(void)atomic_fetch_add(refs, 1);
		run(line, request_create(line->server, &line->caller, &message, arena, channel));
		return;
	}
	arena_destroy(arena);
	json_decref(value);
}

static void handle_batch(struct mcp_line *line, json_t *array)
{
	struct batch *batch;
	struct refusal r;
	json_t *value;
	size_t i;

	if (batch_check(array, line->session == NULL ? -1 : (int)line->session->version, &r) != 0) {
		write_error(line, STR_NONE, &r);
		return;
	}
	batch = calloc(1, sizeof(*batch));
	if (batch == NULL)
		abort();
	batch->channel.ops = &batch_ops;
	atomic_init(&batch->refs, 1);
	(void)atomic_fetch_add(&line->refs, 1);
	batch->line = line;
	(void)pthread_mutex_init(&batch->lock, NULL);
	buf_init(&batch->answers, NULL, SIZE_MAX);
	batch->pending = batch_answers(array);
	json_array_foreach(array, i, value)
		handle(line, json_deep_copy(value), &batch->channel, &batch->refs);
	batch_release(&batch->channel);
}

static void handle_line(struct mcp_line *line, struct str text)
{
	struct refusal r;
	json_t *value;

	if (!line->saw_bytes && str_starts(text, STR("\xef\xbb\xbf")))
		text = (struct str){text.p + 3, text.n - 3};
	line->saw_bytes = true;
	text = str_trim(text);
	if (text.n == 0)
		return;
	value = message_parse(text, &r);
	if (value == NULL) {
		write_error(line, STR_NONE, &r);
	} else if (json_is_array(value)) {
		handle_batch(line, value);
		json_decref(value);
	} else {
		handle(line, value, &line->channel, &line->refs);
	}
}

/* The part of a line that is not complete yet. */
static void keep(struct mcp_line *line, struct str part)
{
	static const struct refusal too_large = {
		MCP_INVALID_REQUEST, 413, {"The message is too large.", 25}, {NULL, 0}};

	if (line->skipping)
		return;
	buf_add_str(&line->input, part);
	if (!line->input.overflow)
		return;
	line->skipping = true;
	buf_finish(&line->input);
	write_error(line, STR_NONE, &too_large);
}

void mcp_line_feed(struct mcp_line *line, struct str bytes)
{
	(void)atomic_fetch_add(&line->refs, 1);
	while (bytes.n > 0) {
		const char *end = memchr(bytes.p, '\n', bytes.n);
		struct str part = {bytes.p, end == NULL ? bytes.n : (size_t)(end - bytes.p)};
		size_t skip = part.n + (end != NULL);

		keep(line, part);
		if (end != NULL && !line->skipping)
			handle_line(line, buf_str(&line->input));
		if (end != NULL) {
			line->skipping = false;
			line->input.n = 0;
		}
		if (line->input.n == 0 && line->input.cap > 65536)
			buf_finish(&line->input);
		bytes = (struct str){bytes.p + skip, bytes.n - skip};
	}
	line_unref(line);
}
