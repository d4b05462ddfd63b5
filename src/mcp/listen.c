/* subscriptions/listen: a request that stays open and tells of changes, each with its id as tag.
 * What is open is guarded by the lock of the request; `ending` makes one of several enders the one.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "mcp/inside.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const list_names[INTEREST_LISTS] = {"tools", "resources", "prompts"};
static const char *const filter_names[INTEREST_LISTS] = {
	"toolsListChanged", "resourcesListChanged", "promptsListChanged"};
static const enum mcp_list list_kinds[INTEREST_LISTS] = {MCP_TOOLS, MCP_RESOURCES, MCP_PROMPTS};

struct listen {
	atomic_bool ending;
	struct interest interest;
	struct str *tasks; /* in the arena of the request */
	size_t task_count;
};

void listen_destroy(struct listen *listen)
{
	if (listen != NULL)
		interest_finish(&listen->interest);
}

/* {"method":…,"params":{members,"_meta":{tag}}} */
static void send(struct mcp_request *req, const char *method, struct str members)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, NULL, LIMIT_MESSAGE_BYTES);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	jw_ktext(&w, "method", method);
	jw_kobject(&w, "params");
	jw_members(&w, members);
	jw_kobject(&w, "_meta");
	jw_kraw(&w, META_SUBSCRIPTION, req->message.id);
	jw_object_end(&w);
	jw_object_end(&w);
	jw_object_end(&w);
	if (!req->finished && !req->cancelled && !out.overflow)
		req->channel->ops->notify(req->channel, req, buf_str(&out));
	buf_finish(&out);
}

static void send_list(struct mcp_request *req, int list)
{
	char method[64];

	(void)snprintf(method, sizeof(method), "notifications/%s/list_changed", list_names[list]);
	send(req, method, STR(""));
}

static void send_uri(struct mcp_request *req, struct str uri)
{
	struct buf members;
	struct json_writer w;

	buf_init(&members, NULL, SIZE_MAX);
	json_writer_init(&w, &members);
	jw_kstr(&w, "uri", uri);
	send(req, "notifications/resources/updated", buf_str(&members));
	buf_finish(&members);
}

static int read_uris(
	struct mcp_request *req, const json_t *uris, struct listen *listen, struct refusal *r)
{
	const json_t *entry;
	size_t i;

	if (!json_is_array(uris))
		return refusal_set(
			r, MCP_INVALID_PARAMS, 200, STR("resourceSubscriptions is not an array."));
	json_array_foreach(uris, i, entry)
	{
		struct str uri = json_str(entry);

		if (!message_name_fits(uri, LIMIT_MCP_URI_BYTES))
			return refusal_set(r, MCP_INVALID_PARAMS, 200,
				STR("resourceSubscriptions holds what is no URI."));
		/* Unknown ones are left out silently: a forbidden URI looks like a missing one. */
		if (!offers_subscriptions(req->server) ||
			!req->server->on->resource_visible(req->server->app, &req->caller, uri))
			continue;
		if (!interest_add(&listen->interest, uri)) {
			(void)refusal_set(r, MCP_INTERNAL, 200,
				STR("Too many resource subscriptions in one stream."));
			r->data = STR("{\"retryAfterMs\":60000}");
			return -1;
		}
	}
	return 0;
}

static int read_tasks(
	struct mcp_request *req, const json_t *ids, struct listen *listen, struct refusal *r)
{
	const json_t *entry;
	size_t i;

	if (!json_is_array(ids) || json_array_size(ids) > LIMIT_MCP_LISTEN_TASKS)
		return refusal_set(r, MCP_INVALID_PARAMS, 200,
			STR("taskIds is not an array of at most 256 ids."));
	if ((req->client_can & MCP_CAN_TASKS) == 0) {
		*r = missing_capability(req->arena, MCP_CAN_TASKS);
		return -1;
	}
	listen->tasks = ARENA_ARRAY(req->arena, struct str, json_array_size(ids) + 1);
	json_array_foreach(ids, i, entry)
	{
		struct str id = json_str(entry);

		if (id.p != NULL && mcp_task_visible(req->server, req->caller.principal, id))
			listen->tasks[listen->task_count++] = id;
	}
	return 0;
}

static int read_filter(struct mcp_request *req, struct listen *listen, struct refusal *r)
{
	const json_t *filter = json_object_get(req->message.params, "notifications");
	const json_t *uris = json_object_get(filter, "resourceSubscriptions");
	const json_t *tasks = json_object_get(filter, "taskIds");

	if (!json_is_object(filter))
		return refusal_set(
			r, MCP_INVALID_PARAMS, 200, STR("notifications is not an object."));
	for (int i = 0; i < INTEREST_LISTS; i++)
		listen->interest.lists[i] =
			json_is_true(json_object_get(filter, filter_names[i])) &&
			offers_list(req->server, list_kinds[i]);
	if (uris != NULL && read_uris(req, uris, listen, r) != 0)
		return -1;
	return tasks == NULL ? 0 : read_tasks(req, tasks, listen, r);
}

static void acknowledge(struct mcp_request *req)
{
	const struct listen *listen = req->listen;
	struct buf members;
	struct json_writer w;

	buf_init(&members, NULL, SIZE_MAX);
	json_writer_init(&w, &members);
	jw_kobject(&w, "notifications");
	for (int i = 0; i < INTEREST_LISTS; i++)
		jw_kbool_opt(&w, filter_names[i], listen->interest.lists[i]);
	if (listen->interest.uri_count > 0) {
		jw_karray(&w, "resourceSubscriptions");
		for (size_t i = 0; i < listen->interest.uri_count; i++)
			jw_str(&w, (struct str){listen->interest.uris[i].uri,
					   listen->interest.uris[i].n});
		jw_array_end(&w);
	}
	if (listen->task_count > 0) {
		jw_karray(&w, "taskIds");
		for (size_t i = 0; i < listen->task_count; i++)
			jw_str(&w, listen->tasks[i]);
		jw_array_end(&w);
	}
	jw_object_end(&w);
	send(req, "notifications/subscriptions/acknowledged", buf_str(&members));
	buf_finish(&members);
}

/* Into the list of open subscriptions, within the limits. */
static bool enlist(struct mcp_request *req)
{
	struct mcp_server *server = req->server;
	size_t of_principal = 0;
	bool room;

	(void)pthread_mutex_lock(&server->lock);
	for (const struct mcp_request *other = server->listens; other != NULL; other = other->next)
		of_principal += str_eq(other->caller.principal, req->caller.principal);
	room = server->listen_count < LIMIT_MCP_LISTENS &&
	       of_principal < LIMIT_MCP_PRINCIPAL_LISTENS && !atomic_load(&server->stopping);
	if (room) {
		server_link(&server->listens, request_ref(req));
		server->listen_count++;
	}
	(void)pthread_mutex_unlock(&server->lock);
	return room;
}

void listen_run(struct mcp_request *req)
{
	struct listen *listen = ARENA_NEW(req->arena, struct listen);
	struct refusal r;
	bool room;

	listen->interest.total = &req->server->uri_count;
	/* Under the lock: the client may hang up on another thread. */
	(void)pthread_mutex_lock(&req->lock);
	req->listen = listen;
	(void)pthread_mutex_unlock(&req->lock);
	if (req->json_only) {
		request_fail(req, 406, MCP_INVALID_REQUEST,
			STR("A subscription needs Accept: text/event-stream."), STR_NONE);
		return;
	}
	if (read_filter(req, listen, &r) != 0) {
		request_refuse(req, &r);
		return;
	}
	(void)request_ref(req);
	/* Notices wait for the lock, so the acknowledgement is the first message. */
	(void)pthread_mutex_lock(&req->lock);
	room = !req->cancelled && enlist(req);
	if (room) {
		req->streaming = true;
		req->channel->ops->begin_stream(req->channel, req);
		acknowledge(req);
	}
	(void)pthread_mutex_unlock(&req->lock);
	if (!room)
		request_fail(req, 200, MCP_INTERNAL, STR("Too many subscriptions are open."),
			STR("{\"retryAfterMs\":60000}"));
	else if (req->caller.expires_at != 0)
		ticker_by(req->server,
			clock_mono_ms() + (req->caller.expires_at > clock_wall_ms()
							  ? req->caller.expires_at - clock_wall_ms()
							  : 0));
	request_unref(req);
}

void listen_end(struct mcp_request *req)
{
	bool linked;

	(void)pthread_mutex_lock(&req->server->lock);
	linked = req->linked;
	(void)pthread_mutex_unlock(&req->server->lock);
	if (!linked || atomic_exchange(&req->listen->ending, true))
		return;
	mcp_add_meta(req, META_SUBSCRIPTION, req->message.id);
	request_finish(req, &(struct result){.kind = RESULT_COMPLETE});
}

/* req->lock is held. */
static void arm(struct mcp_request *req)
{
	int64_t due = interest_due(&req->listen->interest);

	if (due != NEVER)
		request_wake_by(req, due);
}

void listen_wake(struct mcp_request *req, int64_t now)
{
	struct interest *in = &req->listen->interest;
	struct interest_uri *uri;
	int list;

	(void)pthread_mutex_lock(&req->lock);
	while ((list = interest_take_list(in, now)) >= 0)
		send_list(req, list);
	while ((uri = interest_take_uri(in, now)) != NULL)
		send_uri(req, (struct str){uri->uri, uri->n});
	arm(req);
	(void)pthread_mutex_unlock(&req->lock);
}

void listen_note_resource(struct mcp_request *req, struct str uri, int64_t now)
{
	struct interest_uri *slot;

	(void)pthread_mutex_lock(&req->lock);
	slot = interest_find(&req->listen->interest, uri);
	if (slot != NULL && notice_now(&slot->clock, LIMIT_MCP_UPDATE_MS, now))
		send_uri(req, uri);
	arm(req);
	(void)pthread_mutex_unlock(&req->lock);
}

void listen_note_list(struct mcp_request *req, enum mcp_list what, int64_t now)
{
	struct interest *in = &req->listen->interest;
	int list = what == MCP_TOOLS     ? INTEREST_TOOLS
	           : what == MCP_PROMPTS ? INTEREST_PROMPTS
	                                 : INTEREST_RESOURCES;

	(void)pthread_mutex_lock(&req->lock);
	if (in->lists[list] && notice_now(&in->list_clock[list], LIMIT_MCP_LIST_CHANGED_MS, now))
		send_list(req, list);
	arm(req);
	(void)pthread_mutex_unlock(&req->lock);
}

void listen_note_task(
	struct mcp_request *req, struct str principal, struct str id, struct str detail)
{
	if (!str_eq(principal, req->caller.principal))
		return;
	(void)pthread_mutex_lock(&req->lock);
	for (size_t i = 0; i < req->listen->task_count; i++)
		if (str_eq(req->listen->tasks[i], id))
			send(req, "notifications/tasks", detail);
	(void)pthread_mutex_unlock(&req->lock);
}
