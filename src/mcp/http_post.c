/* A POST body: one message or a batch, of either era. */
#include "base/clock.h"
#include "base/limits.h"
#include "mcp/accept.h"
#include "mcp/http.h"
#include "mcp/post.h"

#include <assert.h>

/* One exchange while it is looked at. */
struct arrival {
	struct mcp_server *server;
	const struct http_guard *guard;
	struct http_exchange *x;
	const struct mcp_caller *caller;
	bool takes_events;
	json_t **document; /* the message, until a request takes it over */
};

static void answer_refusal(const struct arrival *a, struct str id, const struct refusal *r)
{
	post_reply_refusal(a->guard, a->x, id, r);
}

/* ---- headers ---- */

struct lookup {
	struct str name;
	struct str first;
	size_t count;
	bool differ;
};

static void look(void *context, struct str name, struct str value)
{
	struct lookup *lookup = context;

	if (!str_eq_nocase(name, lookup->name))
		return;
	if (lookup->count++ == 0)
		lookup->first = value;
	else
		lookup->differ |= !str_eq(lookup->first, value);
}

static struct str get_header(const void *source, const char *name, size_t *count, bool *differ)
{
	struct lookup lookup = {.name = str_of(name)};

	http_each_header(source, look, &lookup);
	*count = lookup.count;
	*differ = lookup.differ;
	return lookup.first;
}

/* ---- requests ---- */

/* A request in its own arena, answered through `post`. */
static struct mcp_request *make_request(
	const struct arrival *a, struct post *post, const struct message *message)
{
	struct arena *arena = arena_create();
	struct message copy = *message;
	struct mcp_request *req;

	assert(post != NULL);
	copy.id = str_dup(arena, message->id);
	post_ref(post);
	req = request_create(a->server, a->caller, &copy, arena, &post->channel);
	*a->document = NULL; /* the request's now */
	req->json_only = !a->takes_events || post->is_batch;
	if (!req->json_only) {
		req->stream_at = clock_mono_ms() + LIMIT_MCP_STREAM_AFTER_MS;
		request_wake_by(req, req->stream_at);
	}
	return req;
}

static void post_modern(const struct arrival *a, const struct message *message)
{
	const struct header_view headers = {get_header, a->x};
	struct post *post = post_create(a->server, a->guard, a->x, NULL, 1);
	struct mcp_request *req;

	post->takes_events = a->takes_events;
	req = make_request(a, post, message);
	post_watch(post, req);
	modern_run(req, &headers);
	post_unref(post);
}

static void initialize(const struct arrival *a, const struct message *message)
{
	struct post *post = post_create(a->server, a->guard, a->x, NULL, 1);
	struct mcp_request *req = make_request(a, post, message);
	struct mcp_session *session = NULL;
	char id[SESSION_ID_SIZE];
	struct hello hello;
	struct refusal r;

	req->json_only = true;
	if (hello_read(message->params, &hello, &r) != 0) {
		request_refuse(req, &r);
		post_unref(post);
		return;
	}
	session = mcp_session_create(a->server, &hello, a->caller->principal);
	if (session->capabilities.n + session->client_info.n > LIMIT_MCP_SESSION_INFO_BYTES) {
		request_fail(req, 400, MCP_INVALID_PARAMS,
			STR("capabilities and clientInfo are too large."), STR_NONE);
	} else if (mcp_session_publish(session, id) != 0) {
		request_fail(req, 503, MCP_INTERNAL, STR("Too many sessions are in use."),
			STR("{\"retryAfterMs\":1000}"));
	} else {
		post->session_id = id;
		req->version = hello.version;
		hello_answer(req, &hello);
	}
	mcp_session_unref(session);
	post_unref(post);
}

static bool id_in_flight(const struct arrival *a, const struct mcp_session *session, struct str id)
{
	bool found = false;

	(void)pthread_mutex_lock(&a->server->lock);
	for (const struct mcp_request *req = a->server->requests; req != NULL && !found;
		req = req->next)
		found = req->session == session && str_eq(req->message.id, id);
	(void)pthread_mutex_unlock(&a->server->lock);
	return found;
}

static void run_legacy(const struct arrival *a, struct post *post, struct mcp_session *session,
	const struct message *message)
{
	struct mcp_request *req = make_request(a, post, message);

	if (session != NULL && id_in_flight(a, session, message->id)) {
		request_fail(req, 400, MCP_INVALID_REQUEST,
			STR("A request with this id is still in flight."), STR_NONE);
		return;
	}
	if (session != NULL) {
		req->session = mcp_session_ref(session);
		mcp_session_busy(session, 1);
	}
	legacy_run(req);
}

/* The header may differ from the session's version, but must name one we know. */
static int check_version_header(const struct arrival *a, struct refusal *r)
{
	struct str value = http_header(a->x, "MCP-Protocol-Version", NULL);

	if (value.p == NULL || revision_find(value) >= 0)
		return 0;
	(void)refusal_set(
		r, MCP_UNSUPPORTED_VERSION, 400, STR("This protocol version is not supported."));
	r->data = utf8_check(value) == value.n ? supported_data(http_arena(a->x), value) : STR_NONE;
	return -1;
}

static void post_legacy(const struct arrival *a, const struct message *message)
{
	bool is_ping = message->kind == MESSAGE_REQUEST && str_eq(message->method, STR("ping"));
	struct mcp_session *session = NULL;
	struct post *post;
	struct refusal r;

	if (!is_ping || http_header(a->x, "Mcp-Session-Id", NULL).p != NULL) {
		session = http_session(a->server, a->guard, a->x, a->caller, message->id);
		if (session == NULL)
			return;
	}
	if (check_version_header(a, &r) != 0) {
		answer_refusal(a, message->id, &r);
	} else if (message->kind == MESSAGE_REQUEST) {
		post = post_create(a->server, a->guard, a->x, session, 1);
		post->takes_events = a->takes_events && session != NULL;
		post_watch(post, NULL);
		run_legacy(a, post, session, message);
		post_unref(post);
	} else {
		if (message->kind == MESSAGE_RESPONSE)
			mcp_session_answer(session, message);
		else
			legacy_notification(a->server, session, message);
		post_reply_empty(a->guard, a->x, 202);
	}
	mcp_session_unref(session);
}

/* The header names a modern revision, the body claims none. */
static void post_unclaimed(const struct arrival *a, const struct message *message)
{
	struct refusal r;

	if (message->kind == MESSAGE_NOTIFICATION) {
		post_reply_empty(a->guard, a->x, 202);
		return;
	}
	if (message->kind == MESSAGE_RESPONSE)
		(void)refusal_set(&r, MCP_INVALID_REQUEST, 400,
			STR("This protocol version has no responses of clients."));
	else if (str_eq(message->method, STR("initialize")))
		(void)refusal_set(&r, MCP_HEADER_MISMATCH, 400,
			STR("MCP-Protocol-Version names a revision without initialize."));
	else
		(void)refusal_set(&r, MCP_INVALID_PARAMS, 400,
			STR("_meta lacks " META_VERSION " and " META_CAPABILITIES "."));
	answer_refusal(a, message->id, &r);
}

static void post_message(const struct arrival *a)
{
	struct message message;
	struct refusal r;

	if (message_read(http_arena(a->x), *a->document, &message, &r) != 0)
		answer_refusal(a, message.id, &r);
	else if (message.claim != NULL && message.kind == MESSAGE_REQUEST)
		post_modern(a, &message);
	else if (message.claim != NULL)
		post_reply_empty(a->guard, a->x, 202);
	else if (http_speaks_modern(a->x))
		post_unclaimed(a, &message);
	else if (message.kind == MESSAGE_REQUEST && str_eq(message.method, STR("initialize")))
		initialize(a, &message);
	else
		post_legacy(a, &message);
}

/* ---- batches ---- */

static bool is_repeated(const json_t *array, size_t at)
{
	json_t *id = json_object_get(json_array_get(array, at), "id");

	for (size_t i = 0; i < at; i++)
		if (id != NULL && json_equal(id, json_object_get(json_array_get(array, i), "id")))
			return true;
	return false;
}

static void put_error(struct post *post, struct str id, const struct refusal *r)
{
	struct buf out;

	buf_init(&out, NULL, SIZE_MAX);
	message_error(&out, id, r);
	post_put(post, 200, buf_str(&out));
	buf_finish(&out);
}

/* One element; `post` NULL: nothing in the batch will be answered. */
static void batch_element(const struct arrival *batch, struct post *post, struct mcp_session *session,
	json_t *array, size_t i)
{
	json_t *own = json_deep_copy(json_array_get(array, i)); /* a request owns its message alone */
	struct arrival element = *batch;
	const struct arrival *a = &element;
	struct message message;
	struct refusal r;

	element.document = &own;
	if (message_read(http_arena(a->x), own, &message, &r) != 0) {
		put_error(post, message.id, &r);
	} else if (message.kind == MESSAGE_RESPONSE) {
		mcp_session_answer(session, &message);
	} else if (message.kind == MESSAGE_NOTIFICATION) {
		legacy_notification(a->server, session, &message);
	} else if (is_repeated(array, i)) {
		(void)refusal_set(&r, MCP_INVALID_REQUEST, 400,
			STR("Another message of the batch has this id."));
		put_error(post, message.id, &r);
	} else {
		run_legacy(a, post, session, &message);
	}
	json_decref(own);
}

static void post_batch(const struct arrival *a, json_t *array)
{
	struct mcp_session *session = NULL;
	struct post *post = NULL;
	struct refusal r;
	size_t answers;
	bool modern = http_speaks_modern(a->x);

	if (!modern && http_header(a->x, "Mcp-Session-Id", NULL).n > 0) {
		session = http_session(a->server, a->guard, a->x, a->caller, STR_NONE);
		if (session == NULL)
			return;
	}
	if (batch_check(array, session == NULL ? -1 : (int)session->version, &r) != 0) {
		answer_refusal(a, STR_NONE, &r);
		mcp_session_unref(session);
		return;
	}
	answers = batch_answers(array);
	if (answers > 0) {
		post = post_create(a->server, a->guard, a->x, session, answers);
		post->is_batch = true;
		post->takes_events = a->takes_events;
		post_watch(post, NULL);
	}
	for (size_t i = 0; i < json_array_size(array); i++)
		batch_element(a, post, session, array, i);
	if (post != NULL)
		post_unref(post);
	else
		post_reply_empty(a->guard, a->x, 202);
	mcp_session_unref(session);
}

void http_post(struct mcp_server *server, const struct http_guard *guard, struct http_exchange *x,
	const struct mcp_caller *caller)
{
	struct refusal r;
	json_t *value = message_parse(http_body(x), &r);
	const struct arrival a = {server, guard, x, caller,
		accept_read(http_header(x, "Accept", NULL)).events, &value};

	if (value == NULL)
		answer_refusal(&a, STR_NONE, &r);
	else if (json_is_array(value))
		post_batch(&a, value);
	else
		post_message(&a);
	json_decref(value);
}
