#include "mcp/session.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "http/http.h"

#include <stdlib.h>

#define BUCKETS 1024U
#define TOUCH_MS 60000 /* how stale last_seen_at may be in the row */

struct session_table {
	struct mcp_server *server;
	pthread_mutex_t lock;
	struct mcp_session *buckets[BUCKETS];
	struct mcp_session *newest;
	struct mcp_session *oldest;
	size_t count;
	/* Deleting a row is queued: until it is done the row could be loaded again. A ring of the
	 * sessions that ended last. */
	unsigned char ended[LIMIT_MCP_ENDED_SESSIONS][32];
	size_t ended_count; /* ever */
	struct mcp_session *lines; /* conversations over lines, linked by `newer` */
};

struct session_table *mcp_session_table_create(struct mcp_server *server)
{
	struct session_table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		abort();
	table->server = server;
	(void)pthread_mutex_init(&table->lock, NULL);
	return table;
}

struct mcp_session *mcp_session_ref(struct mcp_session *session)
{
	(void)atomic_fetch_add(&session->refs, 1);
	return session;
}

void mcp_session_unref(struct mcp_session *session)
{
	if (session == NULL || atomic_fetch_sub(&session->refs, 1) != 1)
		return;
	while (session->streams != NULL) {
		struct replay *stream = session->streams;

		session->streams = stream->next;
		replay_destroy(stream);
	}
	interest_finish(&session->interest);
	(void)pthread_mutex_destroy(&session->lock);
	arena_destroy(session->arena);
	free(session);
}

struct mcp_session *mcp_session_new(struct mcp_server *server)
{
	struct mcp_session *session = calloc(1, sizeof(*session));

	if (session == NULL)
		abort();
	atomic_init(&session->refs, 1);
	session->server = server;
	session->arena = arena_create();
	session->interest.total = &server->uri_count;
	session->log_threshold = log_level_find(STR("info"));
	(void)pthread_mutex_init(&session->lock, NULL);
	return session;
}

struct mcp_session *mcp_session_create(
	struct mcp_server *server, const struct hello *hello, struct str principal)
{
	struct mcp_session *session = mcp_session_new(server);

	session->version = hello->version;
	session->client_can = client_features(hello->capabilities);
	session->capabilities = json_canonical(session->arena, hello->capabilities);
	session->client_info = json_canonical(session->arena, hello->client_info);
	session->client_name = str_dup(session->arena, json_member_str(hello->client_info, "name"));
	session->principal = str_dup(session->arena, principal);
	session->created_at = clock_wall_ms();
	session->last_seen_at = session->created_at;
	return session;
}

/* ---- the table; table->lock is held in these ---- */

static struct mcp_session **bucket_of(struct session_table *table, const unsigned char key[32])
{
	/* The key is a digest of a random id: any part of it is uniform. */
	return &table->buckets[(key[0] | (unsigned)key[1] << 8) % BUCKETS];
}

static void lru_remove(struct session_table *table, struct mcp_session *session)
{
	if (session->newer != NULL)
		session->newer->older = session->older;
	else
		table->newest = session->older;
	if (session->older != NULL)
		session->older->newer = session->newer;
	else
		table->oldest = session->newer;
	session->newer = NULL;
	session->older = NULL;
}

static void lru_add(struct session_table *table, struct mcp_session *session)
{
	session->older = table->newest;
	session->newer = NULL;
	if (table->newest != NULL)
		table->newest->newer = session;
	else
		table->oldest = session;
	table->newest = session;
}

/* Takes over the caller's reference. */
static void table_add(struct session_table *table, struct mcp_session *session)
{
	struct mcp_session **bucket = bucket_of(table, session->key);

	session->hash_next = *bucket;
	*bucket = session;
	lru_add(table, session);
	table->count++;
}

/* False: it is not there (any more). */
static bool table_remove(struct session_table *table, struct mcp_session *session)
{
	struct mcp_session **at = bucket_of(table, session->key);

	while (*at != NULL && *at != session)
		at = &(*at)->hash_next;
	if (*at == NULL)
		return false;
	*at = session->hash_next;
	lru_remove(table, session);
	table->count--;
	return true;
}

static struct mcp_session *table_find(struct session_table *table, const unsigned char key[32])
{
	struct mcp_session *session = *bucket_of(table, key);

	while (session != NULL && memcmp(session->key, key, 32) != 0)
		session = session->hash_next;
	return session;
}

static bool has_ended(const struct session_table *table, const unsigned char key[32])
{
	for (size_t i = 0; i < table->ended_count && i < LIMIT_MCP_ENDED_SESSIONS; i++)
		if (memcmp(table->ended[i], key, 32) == 0)
			return true;
	return false;
}

/* The session that goes when another one needs its place; NULL: all are in use, or nobody must go.
 */
static struct mcp_session *pick_victim(
	struct session_table *table, struct str principal, bool *full)
{
	size_t of_principal = 0;
	struct mcp_session *own = NULL;
	struct mcp_session *any = NULL;

	*full = false;
	if (table->count < LIMIT_MCP_PRINCIPAL_SESSIONS)
		return NULL;
	for (struct mcp_session *s = table->oldest; s != NULL; s = s->newer) {
		bool is_own = str_eq(s->principal, principal);

		of_principal += is_own;
		if (s->busy > 0)
			continue;
		if (any == NULL)
			any = s;
		if (own == NULL && is_own)
			own = s;
	}
	if (of_principal >= LIMIT_MCP_PRINCIPAL_SESSIONS) {
		*full = own == NULL;
		return own;
	}
	if (table->count >= LIMIT_MCP_SESSIONS) {
		*full = any == NULL;
		return any;
	}
	return NULL;
}

void mcp_session_busy(struct mcp_session *session, int change)
{
	struct session_table *table = session->server->sessions;

	if (!session->is_durable)
		return;
	(void)pthread_mutex_lock(&table->lock);
	session->busy = (size_t)((int64_t)session->busy + change);
	session->last_seen_at = clock_wall_ms();
	(void)pthread_mutex_unlock(&table->lock);
}

/* ---- life ---- */

int mcp_session_publish(struct mcp_session *session, char id[SESSION_ID_SIZE])
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct session_table *table = session->server->sessions;
	struct str text = random_token(arena, 32);
	struct mcp_session *victim;
	bool full;

	memcpy(id, text.p, SESSION_ID_SIZE - 1);
	id[SESSION_ID_SIZE - 1] = '\0';
	sha256(text.p, text.n, session->key);
	session->is_durable = true;
	(void)pthread_mutex_lock(&table->lock);
	victim = pick_victim(table, session->principal, &full);
	if (victim != NULL)
		(void)mcp_session_ref(victim);
	if (!full)
		table_add(table, mcp_session_ref(session));
	(void)pthread_mutex_unlock(&table->lock);
	if (full) {
		session->is_durable = false;
		return -1;
	}
	if (victim != NULL) {
		mcp_session_end(victim);
		mcp_session_unref(victim);
	}
	mcp_session_save(session);
	return 0;
}

/* Not in memory: perhaps from before a restart, or of another process. */
static struct mcp_session *load(struct mcp_server *server, const unsigned char key[32])
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct session_table *table = server->sessions;
	struct mcp_session_row row = {0};
	struct mcp_session *session;
	struct mcp_session *other;
	bool ended;

	if (server->on->session_load == NULL ||
		!server->on->session_load(server->app, key, arena, &row))
		return NULL;
	memcpy(row.key, key, sizeof(row.key));
	session = mcp_session_from_row(server, &row);
	if (session == NULL)
		return NULL;
	(void)pthread_mutex_lock(&table->lock);
	ended = has_ended(table, key);
	other = table_find(table, key);
	if (other != NULL)
		(void)mcp_session_ref(other);
	else if (!ended)
		table_add(table, mcp_session_ref(session));
	(void)pthread_mutex_unlock(&table->lock);
	if (other == NULL && !ended)
		return session;
	mcp_session_unref(session);
	return other;
}

struct mcp_session *mcp_session_find(struct mcp_server *server, struct str id, struct str principal)
{
	struct session_table *table = server->sessions;
	struct mcp_session *session;
	unsigned char key[32];
	int64_t now = clock_wall_ms();
	bool touch;

	sha256(id.p, id.n, key);
	session = mcp_session_by_key(server, key);
	if (session == NULL)
		session = load(server, key);
	if (session == NULL)
		return NULL;
	if (!str_eq(session->principal, principal)) {
		mcp_session_unref(session);
		return NULL;
	}
	(void)pthread_mutex_lock(&table->lock);
	session->last_seen_at = now;
	touch = now - session->touched_at > TOUCH_MS;
	if (touch)
		session->touched_at = now;
	if (table_find(table, key) == session) {
		lru_remove(table, session);
		lru_add(table, session);
	}
	(void)pthread_mutex_unlock(&table->lock);
	if (touch && server->on->session_touch != NULL)
		server->on->session_touch(server->app, key, now);
	return session;
}

/* session->lock is held. */
static void detach(struct mcp_session *session, struct replay *stream)
{
	struct http_exchange *x = stream->x;

	if (x == NULL)
		return;
	stream->x = NULL;
	stream->over_at = clock_mono_ms();
	http_stream_end(x);
	http_release(x);
	mcp_session_busy(session, -1);
}

void mcp_session_detach(struct mcp_session *session, struct replay *stream)
{
	detach(session, stream);
}

void mcp_session_attach(struct mcp_session *session, struct replay *stream, struct http_exchange *x)
{
	http_keep(x);
	stream->x = x;
	mcp_session_busy(session, 1);
}

struct mcp_session *mcp_session_by_key(struct mcp_server *server, const unsigned char key[32])
{
	struct session_table *table = server->sessions;
	struct mcp_session *session;

	(void)pthread_mutex_lock(&table->lock);
	session = table_find(table, key);
	if (session != NULL)
		(void)mcp_session_ref(session);
	(void)pthread_mutex_unlock(&table->lock);
	return session;
}

void mcp_session_end_streams(struct mcp_session *session)
{
	(void)pthread_mutex_lock(&session->lock);
	for (struct replay *stream = session->streams; stream != NULL; stream = stream->next)
		if (stream->is_general)
			detach(session, stream);
	(void)pthread_mutex_unlock(&session->lock);
}

static void cancel_requests(struct mcp_session *session)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct mcp_server *server = session->server;
	struct mcp_request **all;
	size_t n;

	all = server_snapshot(server, &server->requests, arena, &n);
	for (size_t i = 0; i < n; i++) {
		if (all[i]->session == session)
			request_cancel(all[i]);
		request_unref(all[i]);
	}
}

/* Out of the table, without touching the row. False: it was not in it. */
static bool withdraw(struct mcp_session *session)
{
	struct session_table *table = session->server->sessions;
	bool was_there;

	(void)pthread_mutex_lock(&table->lock);
	was_there = table_remove(table, session);
	(void)pthread_mutex_unlock(&table->lock);
	if (!was_there)
		return false;
	(void)pthread_mutex_lock(&session->lock);
	session->ended = true;
	for (struct replay *stream = session->streams; stream != NULL; stream = stream->next)
		detach(session, stream);
	(void)pthread_mutex_unlock(&session->lock);
	return true;
}

void mcp_session_end(struct mcp_session *session)
{
	const struct mcp_handlers *on = session->server->on;
	struct session_table *table = session->server->sessions;

	(void)pthread_mutex_lock(&table->lock);
	memcpy(table->ended[table->ended_count++ % LIMIT_MCP_ENDED_SESSIONS], session->key, 32);
	(void)pthread_mutex_unlock(&table->lock);
	if (!withdraw(session))
		return;
	cancel_requests(session);
	if (on->session_delete != NULL)
		on->session_delete(session->server->app, session->key);
	mcp_session_unref(session);
}

void mcp_session_table_destroy(struct session_table *table)
{
	while (table->newest != NULL) {
		struct mcp_session *session = table->newest;

		(void)withdraw(session);
		mcp_session_unref(session);
	}
	(void)pthread_mutex_destroy(&table->lock);
	free(table);
}

void mcp_session_each(struct mcp_server *server,
	void (*each)(struct mcp_session *session, void *context), void *context)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct session_table *table = server->sessions;
	struct mcp_session **all;
	size_t n = 0;

	(void)pthread_mutex_lock(&table->lock);
	for (struct mcp_session *s = table->lines; s != NULL; s = s->newer)
		n++;
	all = ARENA_ARRAY(arena, struct mcp_session *, table->count + n + 1);
	n = 0;
	for (struct mcp_session *s = table->newest; s != NULL; s = s->older)
		all[n++] = mcp_session_ref(s);
	for (struct mcp_session *s = table->lines; s != NULL; s = s->newer)
		all[n++] = mcp_session_ref(s);
	(void)pthread_mutex_unlock(&table->lock);
	for (size_t i = 0; i < n; i++) {
		each(all[i], context);
		mcp_session_unref(all[i]);
	}
}

void mcp_session_enlist_line(struct mcp_session *session, struct mcp_line *line)
{
	struct session_table *table = session->server->sessions;

	(void)pthread_mutex_lock(&table->lock);
	session->line = line;
	session->newer = table->lines;
	table->lines = mcp_session_ref(session);
	(void)pthread_mutex_unlock(&table->lock);
}

void mcp_session_delist_line(struct mcp_session *session)
{
	struct session_table *table = session->server->sessions;

	(void)pthread_mutex_lock(&table->lock);
	for (struct mcp_session **at = &table->lines; *at != NULL; at = &(*at)->newer)
		if (*at == session) {
			*at = session->newer;
			break;
		}
	(void)pthread_mutex_unlock(&table->lock);
	(void)pthread_mutex_lock(&session->lock);
	session->ended = true;
	session->line = NULL;
	(void)pthread_mutex_unlock(&session->lock);
	mcp_session_unref(session);
}

struct tick {
	int64_t now;
	int64_t again;
};

/* session->lock is held. */
static void expire_readers(struct mcp_session *session, struct tick *tick)
{
	for (struct replay *stream = session->streams; stream != NULL; stream = stream->next) {
		int64_t left = stream->expires_at - clock_wall_ms();

		if (!stream->is_general || stream->expires_at == 0 || stream->x == NULL)
			continue;
		if (left <= 0)
			detach(session, stream);
		else if (tick->now + left < tick->again)
			tick->again = tick->now + left; /* the two clocks need not agree to the ms */
	}
}

static void tick_one(struct mcp_session *session, void *context)
{
	struct tick *tick = context;
	int64_t due;

	mcp_session_flush_notices(session, tick->now);
	due = mcp_session_notices_due(session);
	if (due < tick->again)
		tick->again = due;
	(void)pthread_mutex_lock(&session->lock);
	expire_readers(session, tick);
	due = replay_expire(session, tick->now);
	(void)pthread_mutex_unlock(&session->lock);
	if (due < tick->again)
		tick->again = due;
}

static struct mcp_session *expired(struct session_table *table)
{
	struct mcp_session *session;

	(void)pthread_mutex_lock(&table->lock);
	session = table->oldest;
	while (session != NULL && session->busy > 0)
		session = session->newer;
	if (session != NULL && clock_wall_ms() - session->last_seen_at > SESSION_IDLE_MS)
		(void)mcp_session_ref(session);
	else
		session = NULL;
	(void)pthread_mutex_unlock(&table->lock);
	return session;
}

int64_t mcp_session_table_tick(struct mcp_server *server, int64_t now)
{
	struct tick tick = {now, NEVER};
	struct mcp_session *session;

	mcp_session_each(server, tick_one, &tick);
	while ((session = expired(server->sessions)) != NULL) {
		mcp_session_end(session);
		mcp_session_unref(session);
	}
	return tick.again;
}
