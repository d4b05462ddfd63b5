/* Legacy MCP sessions as rows, so that they survive a restart. A session lost in a crash costs its client
 * one `initialize`; therefore saving is queued and nobody waits for it. */
#include "server/private.h"

#include <stdlib.h>

SQL(SQL_SESSION_SAVE,
	"INSERT INTO mcp_session (id_sha256, principal, state, created_at, last_seen_at)"
	" VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id_sha256) DO UPDATE SET"
	" state = excluded.state, last_seen_at = excluded.last_seen_at");
SQL(SQL_SESSION_LOAD,
	"SELECT principal, state, created_at, last_seen_at FROM mcp_session WHERE id_sha256 = $1");
SQL(SQL_SESSION_TOUCH, "UPDATE mcp_session SET last_seen_at = $2 WHERE id_sha256 = $1");
SQL(SQL_SESSION_DELETE, "DELETE FROM mcp_session WHERE id_sha256 = $1");

enum change { SAVE, TOUCH, DELETE };

struct saving {
	struct store_job job;
	enum change change;
	unsigned char key[32];
	struct str principal, state;
	int64_t created_at, last_seen_at;
};

static int run(struct tx *tx, void *arg, struct failure *f)
{
	struct saving *saving = arg;
	struct str key = {(const char *)saving->key, sizeof(saving->key)};
	int64_t rows;

	if (saving->change == SAVE)
		rows = tx_run(tx, f, SQL_SESSION_SAVE, "xssii", key, saving->principal, saving->state,
			saving->created_at, saving->last_seen_at);
	else if (saving->change == TOUCH)
		rows = tx_run(tx, f, SQL_SESSION_TOUCH, "xi", key, saving->last_seen_at);
	else
		rows = tx_run(tx, f, SQL_SESSION_DELETE, "x", key);
	return rows < 0 ? -1 : 0;
}

static void done(void *arg, int rc, struct failure *f)
{
	struct saving *saving = arg;

	(void)rc; /* the store logged it; the client will open a new session */
	(void)f;
	arena_destroy(saving->job.arena);
}

static struct saving *begin(enum change change, const unsigned char key[32])
{
	struct arena *arena = arena_create();
	struct saving *saving = ARENA_NEW(arena, struct saving);

	saving->job = (struct store_job){
		.run = run, .done = done, .arg = saving, .actor = &actor_system, .arena = arena, .may_use_reserve = true};
	saving->change = change;
	memcpy(saving->key, key, sizeof(saving->key));
	return saving;
}

static void submit(struct server *server, struct saving *saving)
{
	struct failure f;

	failure_init(&f, saving->job.arena);
	if (store_submit(server->store, &saving->job, &f) != 0)
		arena_destroy(saving->job.arena);
}

void session_save(void *app, const struct mcp_session_row *row)
{
	struct saving *saving = begin(SAVE, row->key);
	struct arena *arena = saving->job.arena;
	struct buf state;
	struct json_writer w;

	buf_init(&state, arena, SIZE_MAX);
	json_writer_init(&w, &state);
	jw_object_begin(&w);
	jw_kstr(&w, "version", row->version);
	jw_kraw(&w, "capabilities", row->client_capabilities);
	jw_kraw(&w, "clientInfo", row->client_info);
	jw_kraw(&w, "subscriptions", row->subscriptions);
	jw_kstr_opt(&w, "logLevel", row->log_level);
	jw_object_end(&w);
	saving->principal = str_dup(arena, row->principal);
	saving->state = buf_str(&state);
	saving->created_at = row->created_at;
	saving->last_seen_at = row->last_seen_at;
	submit(app, saving);
}

void session_touch(void *app, const unsigned char key[32], int64_t last_seen_at)
{
	struct saving *saving = begin(TOUCH, key);

	saving->last_seen_at = last_seen_at;
	submit(app, saving);
}

void session_delete(void *app, const unsigned char key[32])
{
	submit(app, begin(DELETE, key));
}

static struct str member_json(struct arena *arena, const json_t *state, const char *name, struct str fallback)
{
	const json_t *value = json_object_get(state, name);

	return value == NULL ? fallback : json_canonical(arena, value);
}

static bool read_row(struct snapshot *s, const unsigned char key[32], struct mcp_session_row *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct json_error error;
	json_auto_t *state = NULL;

	if (query(s, &q, f, SQL_SESSION_LOAD, "x", ((struct str){(const char *)key, 32})) != 0 ||
		query_next(&q, f) != 1)
		return false;
	state = json_read(col_str(&q, 1), &error);
	*out = (struct mcp_session_row){
		.version = str_dup(s->arena, json_member_str(state, "version")),
		.principal = col_str(&q, 0),
		.client_capabilities = member_json(s->arena, state, "capabilities", STR("{}")),
		.client_info = member_json(s->arena, state, "clientInfo", STR("{}")),
		.subscriptions = member_json(s->arena, state, "subscriptions", STR("[]")),
		.log_level = str_dup(s->arena, json_member_str(state, "logLevel")),
		.created_at = col_int(&q, 2),
		.last_seen_at = col_int(&q, 3),
	};
	memcpy(out->key, key, sizeof(out->key));
	return true;
}

bool session_load(void *app, const unsigned char key[32], struct arena *arena, struct mcp_session_row *out)
{
	struct server *server = app;
	struct snapshot s;
	struct failure f;
	bool found;

	failure_init(&f, arena);
	if (snapshot_begin(server->store, arena, &s, &f) != 0)
		return false;
	found = read_row(&s, key, out, &f);
	snapshot_end(&s);
	return found;
}
