/* The server: settings, the lists of what is open, and change notices to all of it. */
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "mcp/session.h"

#include <assert.h>
#include <stdlib.h>

struct mcp_server *mcp_server_create(const struct mcp_settings *settings)
{
	struct mcp_server *server = calloc(1, sizeof(*server));

	if (server == NULL)
		abort();
	server->arena = arena_create();
	server->settings = *settings;
	server->settings.server_info = str_dup(server->arena, settings->server_info);
	server->on = settings->handlers;
	server->app = settings->app;
	server->keys.n = settings->key_count;
	memcpy(server->keys.key, settings->keys, sizeof(server->keys.key));
	if (server->keys.n == 0) {
		random_bytes(server->keys.key[0], sizeof(server->keys.key[0]));
		server->keys.n = 1;
	}
	(void)pthread_mutex_init(&server->lock, NULL);
	server->sessions = mcp_session_table_create(server);
	server->tasks = mcp_task_table_create();
	ticker_start(server);
	return server;
}

void mcp_server_destroy(struct mcp_server *server)
{
	if (server == NULL)
		return;
	ticker_stop(server);
	mcp_session_table_destroy(server->sessions);
	mcp_task_table_destroy(server->tasks);
	assert(server->requests == NULL && server->listens == NULL);
	(void)pthread_mutex_destroy(&server->lock);
	explicit_bzero(&server->keys, sizeof(server->keys));
	arena_destroy(server->arena);
	free(server);
}

size_t mcp_server_in_flight(struct mcp_server *server)
{
	size_t n;

	(void)pthread_mutex_lock(&server->lock);
	n = server->in_flight;
	(void)pthread_mutex_unlock(&server->lock);
	return n;
}

void server_link(struct mcp_request **head, struct mcp_request *req)
{
	req->next = *head;
	req->prev = NULL;
	if (*head != NULL)
		(*head)->prev = req;
	*head = req;
	req->linked = true;
}

void server_unlink(struct mcp_request **head, struct mcp_request *req)
{
	if (req->prev != NULL)
		req->prev->next = req->next;
	else
		*head = req->next;
	if (req->next != NULL)
		req->next->prev = req->prev;
	req->linked = false;
}

struct mcp_request **server_snapshot(
	struct mcp_server *server, struct mcp_request **which, struct arena *arena, size_t *n)
{
	struct mcp_request **all;
	size_t count = 0;

	(void)pthread_mutex_lock(&server->lock);
	for (const struct mcp_request *req = *which; req != NULL; req = req->next)
		count++;
	all = ARENA_ARRAY(arena, struct mcp_request *, count + 1);
	count = 0;
	for (struct mcp_request *req = *which; req != NULL; req = req->next)
		all[count++] = request_ref(req);
	(void)pthread_mutex_unlock(&server->lock);
	*n = count;
	return all;
}

void caller_copy(struct mcp_server *server, struct arena *arena, struct mcp_caller *to,
	const struct mcp_caller *from)
{
	to->principal = str_dup(arena, from->principal);
	to->profile = str_dup(arena, from->profile);
	to->expires_at = from->expires_at;
	to->app = server->on->caller_keep == NULL ? from->app : server->on->caller_keep(from->app);
}

void caller_drop(struct mcp_server *server, const struct mcp_caller *caller)
{
	if (server->on->caller_release != NULL)
		server->on->caller_release(caller->app);
}

bool offers_list(const struct mcp_server *server, enum mcp_list what)
{
	const struct mcp_handlers *on = server->on;

	if (on->list == NULL)
		return false;
	return what == MCP_TOOLS     ? on->tool_call != NULL
	       : what == MCP_PROMPTS ? on->prompt_get != NULL
	                             : on->resource_read != NULL;
}

bool offers_subscriptions(const struct mcp_server *server)
{
	return server->on->resource_read != NULL && server->on->resource_visible != NULL;
}

void capabilities_write(const struct mcp_server *server, struct json_writer *w, bool modern)
{
	jw_kobject(w, "capabilities");
	if (offers_list(server, MCP_TOOLS))
		jw_kraw(w, "tools", STR("{\"listChanged\":true}"));
	if (offers_list(server, MCP_RESOURCES))
		jw_kraw(w, "resources",
			offers_subscriptions(server)
				? STR("{\"subscribe\":true,\"listChanged\":true}")
				: STR("{\"listChanged\":true}"));
	if (offers_list(server, MCP_PROMPTS))
		jw_kraw(w, "prompts", STR("{\"listChanged\":true}"));
	if (server->on->complete != NULL)
		jw_kraw(w, "completions", STR("{}"));
	if (!modern)
		jw_kraw(w, "logging", STR("{}"));
	else if (server->settings.offers_tasks)
		jw_kraw(w, "extensions", STR("{\"" EXTENSION_TASKS "\":{}}"));
	jw_object_end(w);
}

struct str server_instructions(struct mcp_server *server, struct str profile)
{
	struct str text = STR_NONE;

	if (server->on->instructions != NULL)
		text = server->on->instructions(server->app, profile);
	return (struct str){text.p, utf8_offset(text, LIMIT_MCP_INSTRUCTIONS_CHARS)};
}

static void each_listen(struct mcp_server *server,
	void (*each)(struct mcp_request *req, const void *what, int64_t now), const void *what)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct mcp_request **all;
	size_t n;

	all = server_snapshot(server, &server->listens, arena, &n);
	for (size_t i = 0; i < n; i++) {
		each(all[i], what, clock_mono_ms());
		request_unref(all[i]);
	}
}

static void note_resource(struct mcp_request *req, const void *what, int64_t now)
{
	listen_note_resource(req, *(const struct str *)what, now);
}

static void note_list(struct mcp_request *req, const void *what, int64_t now)
{
	listen_note_list(req, *(const enum mcp_list *)what, now);
}

static void session_resource(struct mcp_session *session, void *context)
{
	mcp_session_note_resource(session, *(struct str *)context, clock_mono_ms());
}

static void session_list(struct mcp_session *session, void *context)
{
	mcp_session_note_list(session, *(int *)context, clock_mono_ms());
}

bool mcp_has_resource_subscribers(struct mcp_server *server)
{
	return atomic_load(&server->uri_count) > 0;
}

void mcp_notify_resource_updated(struct mcp_server *server, struct str uri)
{
	each_listen(server, note_resource, &uri);
	mcp_session_each(server, session_resource, &uri);
}

void mcp_notify_list_changed(struct mcp_server *server, enum mcp_list what)
{
	int list = what == MCP_TOOLS     ? INTEREST_TOOLS
	           : what == MCP_PROMPTS ? INTEREST_PROMPTS
	                                 : INTEREST_RESOURCES;

	each_listen(server, note_list, &what);
	mcp_session_each(server, session_list, &list);
}

struct ending {
	bool (*may_stay)(void *context, struct str principal);
	void *context;
};

static bool must_end(const struct ending *ending, struct str principal)
{
	return ending == NULL || !ending->may_stay(ending->context, principal);
}

static void end_one(struct mcp_request *req, const void *what, int64_t now)
{
	(void)now;
	if (must_end(what, req->caller.principal))
		listen_end(req);
}

static void end_streams(struct mcp_session *session, void *context)
{
	if (mcp_session_is_followed(session) && must_end(context, session->principal))
		mcp_session_end_streams(session);
}

void mcp_end_streams(struct mcp_server *server, bool (*may_stay)(void *context, struct str principal),
	void *context)
{
	struct ending ending = {may_stay, context};

	each_listen(server, end_one, &ending);
	mcp_session_each(server, end_streams, &ending);
}

/* An answer of the client would be refused from now on, so nothing may wait for one. */
static void give_up_asks(struct mcp_server *server)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct mcp_request **all;
	size_t n;

	all = server_snapshot(server, &server->requests, arena, &n);
	for (size_t i = 0; i < n; i++) {
		if (all[i]->session != NULL)
			(void)mcp_session_expire_asks(all[i]->session, all[i], NEVER);
		request_unref(all[i]);
	}
}

void mcp_server_stop(struct mcp_server *server)
{
	atomic_store(&server->stopping, true);
	give_up_asks(server);
	each_listen(server, end_one, NULL);
	mcp_session_each(server, end_streams, NULL);
}
