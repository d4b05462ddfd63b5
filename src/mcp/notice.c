/* Change notices to legacy sessions: over the line, or on the newest notification stream. */
#include "base/clock.h"
#include "base/limits.h"
#include "mcp/line.h"
#include "mcp/session.h"

#include <stdio.h>

static const char *const list_names[INTEREST_LISTS] = {"tools", "resources", "prompts"};

/* session->lock is held. Exactly one stream gets it: the newest that is read, else the newest that
 * may be resumed. */
static void send(struct mcp_session *session, struct str message)
{
	struct replay *best = NULL;

	if (session->line != NULL) {
		line_write(session->line, message);
		return;
	}
	for (struct replay *stream = session->streams; stream != NULL; stream = stream->next)
		if (stream->is_general && (best == NULL || (best->x == NULL && stream->x != NULL)))
			best = stream;
	if (best != NULL)
		replay_send(best, message, false);
}

static void send_list(struct mcp_session *session, int list)
{
	char text[128];

	(void)snprintf(text, sizeof(text),
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s/list_changed\"}",
		list_names[list]);
	send(session, str_of(text));
}

static void send_uri(struct mcp_session *session, struct str uri)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, NULL, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "jsonrpc", "2.0");
	jw_ktext(&w, "method", "notifications/resources/updated");
	jw_kobject(&w, "params");
	jw_kstr(&w, "uri", uri);
	jw_object_end(&w);
	jw_object_end(&w);
	send(session, buf_str(&out));
	buf_finish(&out);
}

void mcp_session_note_resource(struct mcp_session *session, struct str uri, int64_t now)
{
	struct interest_uri *slot;

	(void)pthread_mutex_lock(&session->lock);
	slot = interest_find(&session->interest, uri);
	if (slot != NULL && !session->ended && notice_now(&slot->clock, LIMIT_MCP_UPDATE_MS, now))
		send_uri(session, uri);
	ticker_by(session->server, interest_due(&session->interest));
	(void)pthread_mutex_unlock(&session->lock);
}

void mcp_session_note_list(struct mcp_session *session, int list, int64_t now)
{
	(void)pthread_mutex_lock(&session->lock);
	if (!session->ended &&
		notice_now(&session->interest.list_clock[list], LIMIT_MCP_LIST_CHANGED_MS, now))
		send_list(session, list);
	ticker_by(session->server, interest_due(&session->interest));
	(void)pthread_mutex_unlock(&session->lock);
}

bool mcp_session_is_followed(struct mcp_session *session)
{
	bool found = false;

	(void)pthread_mutex_lock(&session->lock);
	for (const struct replay *stream = session->streams; stream != NULL; stream = stream->next)
		found = found || (stream->is_general && stream->x != NULL);
	(void)pthread_mutex_unlock(&session->lock);
	return found;
}

void mcp_session_flush_notices(struct mcp_session *session, int64_t now)
{
	struct interest_uri *uri;
	int list;

	(void)pthread_mutex_lock(&session->lock);
	while ((list = interest_take_list(&session->interest, now)) >= 0)
		send_list(session, list);
	while ((uri = interest_take_uri(&session->interest, now)) != NULL)
		send_uri(session, (struct str){uri->uri, uri->n});
	(void)pthread_mutex_unlock(&session->lock);
}

int64_t mcp_session_notices_due(struct mcp_session *session)
{
	int64_t due;

	(void)pthread_mutex_lock(&session->lock);
	due = interest_due(&session->interest);
	(void)pthread_mutex_unlock(&session->lock);
	return due;
}
