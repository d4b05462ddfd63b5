/* Asking a legacy client: a request of ours goes out on the stream of its call, and the answer
 * comes by itself, matched within the session. */
#include "base/clock.h"
#include "base/limits.h"
#include "mcp/session.h"

#include <stdlib.h>

static unsigned needed_feature(struct str method, struct str params)
{
	json_auto_t *value = NULL;

	if (str_eq(method, STR("sampling/createMessage")))
		return MCP_CAN_SAMPLE;
	if (str_eq(method, STR("roots/list")))
		return MCP_CAN_LIST_ROOTS;
	value = json_loadb(params.p, params.n, JSON_ALLOW_NUL, NULL);
	return str_eq(json_member_str(value, "mode"), STR("url")) ? MCP_CAN_ELICIT_URL : MCP_CAN_ELICIT_FORM;
}

/* Takes it out of the list; NULL: somebody else did. */
static struct ask *take(struct mcp_session *session, uint64_t serial)
{
	struct ask *found = NULL;

	(void)pthread_mutex_lock(&session->lock);
	for (struct ask **at = &session->asks; *at != NULL; at = &(*at)->next)
		if ((*at)->serial == serial) {
			found = *at;
			*at = found->next;
			break;
		}
	(void)pthread_mutex_unlock(&session->lock);
	return found;
}

static void conclude(struct ask *ask, const json_t *result)
{
	ask->answered(ask->req, ask->context, result);
	request_unref(ask->req);
	free(ask);
}

static void write_ask(uint64_t serial, struct str method, struct str params, struct buf *out)
{
	struct json_writer w;

	json_writer_init(&w, out);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	jw_key(&w, "id");
	buf_printf(out, "\"srv-%llu\"", (unsigned long long)serial);
	w.comma = true;
	jw_kstr(&w, "method", method);
	jw_kraw(&w, "params", params);
	jw_object_end(&w);
}

bool mcp_ask(struct mcp_request *req, struct str method, struct str params, int64_t deadline_ms,
	void (*answered)(struct mcp_request *req, void *context, const json_t *result),
	void *context)
{
	struct mcp_session *session = req->session;
	uint64_t serial = atomic_fetch_add(&req->server->ask_serial, 1) + 1;
	int64_t deadline = clock_mono_ms() + (deadline_ms > 0 ? deadline_ms : LIMIT_MCP_ASK_MS);
	struct ask *ask;
	struct buf out;
	bool open;

	if (is_modern(req) || session == NULL || req->json_only ||
		(req->client_can & needed_feature(method, params)) == 0)
		return false;
	ask = calloc(1, sizeof(*ask));
	if (ask == NULL)
		abort();
	*ask = (struct ask){NULL, serial, request_ref(req), deadline, answered, context};
	(void)pthread_mutex_lock(&session->lock);
	ask->next = session->asks;
	session->asks = ask;
	(void)pthread_mutex_unlock(&session->lock);
	buf_init(&out, NULL, LIMIT_MESSAGE_BYTES);
	write_ask(serial, method, params, &out);
	/* Looked at with the question in its list: whoever stops the server later finds it there. */
	open = !out.overflow && !atomic_load(&req->server->stopping) && request_notify(req, buf_str(&out));
	buf_finish(&out);
	if (!open) {
		ask = take(session, serial);
		if (ask == NULL)
			return true; /* the canceller has called `answered` */
		request_unref(ask->req);
		free(ask);
		return false;
	}
	request_wake_by(req, deadline);
	return true;
}

void mcp_session_answer(struct mcp_session *session, const struct message *message)
{
	struct str id = message->id;
	const json_t *result = json_object_get(message->whole, "result");
	bool is_error = json_object_get(message->whole, "error") != NULL;
	struct ask *ask;
	int64_t serial;

	/* "srv-12", as JSON */
	if (!str_starts(id, STR("\"srv-")) ||
		!str_to_int((struct str){id.p + 5, id.n - 6}, &serial))
		return;
	ask = take(session, (uint64_t)serial);
	if (ask != NULL)
		conclude(ask, json_is_object(result) && !is_error ? result : NULL);
}

int64_t mcp_session_expire_asks(struct mcp_session *session, struct mcp_request *req, int64_t now)
{
	int64_t next = NEVER;
	struct ask *over = NULL;

	(void)pthread_mutex_lock(&session->lock);
	for (struct ask **at = &session->asks; *at != NULL;) {
		struct ask *ask = *at;

		if (ask->req == req && ask->deadline <= now) {
			*at = ask->next;
			ask->next = over;
			over = ask;
			continue;
		}
		if (ask->req == req && ask->deadline < next)
			next = ask->deadline;
		at = &ask->next;
	}
	(void)pthread_mutex_unlock(&session->lock);
	while (over != NULL) {
		struct ask *ask = over;

		over = ask->next;
		conclude(ask, NULL);
	}
	return next;
}
