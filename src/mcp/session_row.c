/* A legacy session as a row and back. */
#include "base/clock.h"
#include "base/limits.h"
#include "mcp/session.h"

void mcp_session_save(struct mcp_session *session)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const struct mcp_handlers *on = session->server->on;
	struct mcp_session_row row = {
		.version = revision_text(session->version),
		.principal = session->principal,
		.client_capabilities = session->capabilities,
		.client_info = session->client_info,
		.created_at = session->created_at,
		.last_seen_at = clock_wall_ms(),
	};
	static const char *const levels[] = {
		"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};
	struct buf uris;
	struct json_writer w;

	if (!session->is_durable || on->session_save == NULL)
		return;
	memcpy(row.key, session->key, sizeof(row.key));
	buf_init(&uris, arena, SIZE_MAX);
	json_writer_init(&w, &uris);
	(void)pthread_mutex_lock(&session->lock);
	jw_array_begin(&w);
	for (size_t i = 0; i < session->interest.uri_count; i++)
		jw_str(&w,
			(struct str){session->interest.uris[i].uri, session->interest.uris[i].n});
	jw_array_end(&w);
	row.log_level = str_of(levels[session->log_threshold]);
	(void)pthread_mutex_unlock(&session->lock);
	row.subscriptions = buf_str(&uris);
	on->session_save(session->server->app, &row);
}

struct mcp_session *mcp_session_from_row(struct mcp_server *server, const struct mcp_session_row *row)
{
	int version = revision_find(row->version);
	struct mcp_session *session;
	json_t *info;
	json_t *value;
	json_t *uri;
	size_t i;

	if (version < 0 || version >= MCP_2026_07_28 ||
		clock_wall_ms() - row->last_seen_at > SESSION_IDLE_MS)
		return NULL;
	session = mcp_session_new(server);
	memcpy(session->key, row->key, sizeof(session->key));
	session->is_durable = true;
	session->version = (enum mcp_version)version;
	session->principal = str_dup(session->arena, row->principal);
	session->capabilities = str_dup(session->arena, row->client_capabilities);
	session->client_info = str_dup(session->arena, row->client_info);
	session->created_at = row->created_at;
	session->last_seen_at = row->last_seen_at;
	if (log_level_find(row->log_level) >= 0)
		session->log_threshold = log_level_find(row->log_level);
	info = json_loadb(row->client_info.p, row->client_info.n, JSON_ALLOW_NUL, NULL);
	session->client_name = str_dup(session->arena, json_member_str(info, "name"));
	json_decref(info);
	value = json_loadb(
		row->client_capabilities.p, row->client_capabilities.n, JSON_ALLOW_NUL, NULL);
	session->client_can = client_features(value);
	json_decref(value);
	value = json_loadb(row->subscriptions.p, row->subscriptions.n, JSON_ALLOW_NUL, NULL);
	json_array_foreach(value, i, uri)(void) interest_add(&session->interest, json_str(uri));
	json_decref(value);
	return session;
}
