/* mcp/session.h - legacy sessions: made by `initialize`, kept over restarts, at most
 * LIMIT_MCP_SESSIONS.
 *
 * A session of the line transport is the conversation itself: it has no key and is not in the
 * table. session->lock guards everything but the table's own links; what is only set before a
 * session is published is read without it. */
#ifndef DAIS_MCP_SESSION_H
#define DAIS_MCP_SESSION_H

#include "mcp/inside.h"
#include "mcp/replay.h"

/* A request of ours that waits for the client's answer. */
struct ask {
	struct ask *next;
	uint64_t serial;
	struct mcp_request *req; /* referenced */
	int64_t deadline;        /* monotonic */
	void (*answered)(struct mcp_request *req, void *context, const json_t *result);
	void *context;
};

struct mcp_session {
	atomic_int refs;
	struct mcp_server *server;
	struct arena *arena; /* of the texts below, set before publishing */
	unsigned char key[32];
	bool is_durable; /* in the table, with a row */
	enum mcp_version version;
	unsigned client_can;
	struct str client_name;
	struct str capabilities;
	struct str client_info;
	struct str principal;
	int64_t created_at;
	struct mcp_line *line; /* where notices go; NULL: streams */

	pthread_mutex_t lock;
	bool ended;
	int log_threshold;
	struct interest interest;
	struct ask *asks;
	struct replay *streams; /* newest first */
	uint64_t stream_serial;

	/* table->lock */
	int64_t last_seen_at; /* UTC ms */
	int64_t touched_at;   /* when last_seen_at was last stored */
	size_t busy;          /* requests and streams open now */
	struct mcp_session *hash_next;
	struct mcp_session *newer;
	struct mcp_session *older;
};

struct session_table *mcp_session_table_create(struct mcp_server *server);
void mcp_session_table_destroy(struct session_table *table);

#define SESSION_IDLE_MS (LIMIT_MCP_SESSION_HOURS * 3600000LL)

/* Empty, with one reference. */
struct mcp_session *mcp_session_new(struct mcp_server *server);
/* NULL: too old, or of a version that is not known. */
struct mcp_session *mcp_session_from_row(struct mcp_server *server, const struct mcp_session_row *row);
struct mcp_session *mcp_session_create(
	struct mcp_server *server, const struct hello *hello, struct str principal);
struct mcp_session *mcp_session_ref(struct mcp_session *session);
void mcp_session_unref(struct mcp_session *session);

#define SESSION_ID_SIZE 44 /* base64url of 32 bytes, and NUL */
/* Publish under a new id. -1: no room, every session is in use. */
int mcp_session_publish(struct mcp_session *session, char id[SESSION_ID_SIZE]);
/* The live session of this id and principal, with a reference, or NULL. Counts as use. */
struct mcp_session *mcp_session_find(
	struct mcp_server *server, struct str id, struct str principal);
/* The live session of this key, with a reference, or NULL. No use of it. */
struct mcp_session *mcp_session_by_key(struct mcp_server *server, const unsigned char key[32]);
/* A request or stream begins (+1) or ends (-1): such sessions are not dropped for room. */
void mcp_session_busy(struct mcp_session *session, int change);
/* Gone for good: streams end, requests are cancelled, the row goes. */
void mcp_session_end(struct mcp_session *session);
/* Does anybody read a notification stream of it? */
bool mcp_session_is_followed(struct mcp_session *session);
/* Close its notification streams; clients open new ones. */
void mcp_session_end_streams(struct mcp_session *session);
/* Store level and subscriptions. */
void mcp_session_save(struct mcp_session *session);

/* Lock held: take the exchange from a stream, ending its body. */
void mcp_session_detach(struct mcp_session *session, struct replay *stream);
/* Lock held: give a stream an exchange that reads it from now on. */
void mcp_session_attach(
	struct mcp_session *session, struct replay *stream, struct http_exchange *x);
/* A conversation over a line gets notices too, from the first to the second call. */
void mcp_session_enlist_line(struct mcp_session *session, struct mcp_line *line);
void mcp_session_delist_line(struct mcp_session *session);

void mcp_session_note_resource(struct mcp_session *session, struct str uri, int64_t now);
void mcp_session_note_list(struct mcp_session *session, int list, int64_t now);
/* Each live session, with a reference held during the call. */
void mcp_session_each(struct mcp_server *server,
	void (*each)(struct mcp_session *session, void *context), void *context);
/* Notices that waited, streams and sessions that expired. When to come again. */
int64_t mcp_session_table_tick(struct mcp_server *server, int64_t now);
void mcp_session_flush_notices(struct mcp_session *session, int64_t now);
int64_t mcp_session_notices_due(struct mcp_session *session);

/* A client's response to our request `id` (JSON). */
void mcp_session_answer(struct mcp_session *session, const struct message *message);
/* Asks of this request whose deadline is over (`now` NEVER: all of them) get NULL. Returns the next
 * deadline. */
int64_t mcp_session_expire_asks(struct mcp_session *session, struct mcp_request *req, int64_t now);

#endif
