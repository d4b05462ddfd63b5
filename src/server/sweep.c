/* Hourly work: what has expired is put on record, what nobody may ask for any more is deleted. In portions of
 * 1,000 rows, so that no caller waits behind it. */
#include "server/private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "threads/command.h"
#include "work/advance.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)

struct sweeper {
	struct server *server;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stopping;
	int64_t pruned_to; /* owner: the helper thread */
};

SQL(SQL_PRUNE_IDEMPOTENCY,
	"DELETE FROM idempotency WHERE created_at <= $1 AND key IN"
	" (SELECT key FROM idempotency WHERE created_at <= $1 ORDER BY created_at LIMIT 1000)");
/* Rows are appended in the order of time, so the oldest are the first: no index on the time is needed. */
SQL(SQL_PRUNE_CALL_LOG,
	"DELETE FROM call_log WHERE at <= $1 AND n IN (SELECT n FROM call_log ORDER BY n LIMIT 1000)");
SQL(SQL_PRUNE_LEASE_HISTORY,
	"DELETE FROM lease_history WHERE n IN (SELECT n FROM lease_history WHERE released_at <= $1 LIMIT 1000)");
SQL(SQL_PRUNE_SESSION,
	"DELETE FROM mcp_session WHERE id_sha256 IN"
	" (SELECT id_sha256 FROM mcp_session WHERE last_seen_at <= $1 LIMIT 1000)");
SQL(SQL_PRUNE_SIGN_IN, "DELETE FROM sign_in WHERE expires_at <= $1");

/* Transitions are history and stay; of the rest, 90 days. Numbers rise with time, so a page of the log says by
 * its last row whether it is old enough; the sweeper remembers how far it got. */
SQL(SQL_EVENT_PAGE_END,
	"SELECT seq, at FROM event WHERE seq > $1 ORDER BY seq LIMIT 1 OFFSET 999"); /* by primary key */
SQL(SQL_PRUNE_EVENT, "DELETE FROM event WHERE seq > $1 AND seq <= $2 AND type <> 5");

struct pruning {
	const char *sql;
	int64_t age_ms;
};

static const struct pruning prunings[] = {
	{SQL_PRUNE_IDEMPOTENCY, LIMIT_IDEMPOTENCY_HOURS * HOUR_MS},
	{SQL_PRUNE_CALL_LOG, 14 * DAY_MS},
	{SQL_PRUNE_LEASE_HISTORY, 180 * DAY_MS},
	{SQL_PRUNE_SESSION, DAY_MS},
	{SQL_PRUNE_SIGN_IN, 0},
};

struct portion {
	const char *sql;
	int64_t before;
	int64_t rows;
};

struct event_page {
	int64_t after, end, end_at;
};

static int delete_portion(struct tx *tx, void *arg, struct failure *f)
{
	struct portion *portion = arg;

	portion->rows = tx_run(tx, f, portion->sql, "i", portion->before);
	return portion->rows < 0 ? -1 : 0;
}

static void run_all(struct sweeper *sweeper, const char *sql, int64_t before)
{
	struct portion portion = {.sql = sql, .before = before};
	int rc;

	do {
		AUTO(arena_destroyp) struct arena *arena = arena_create();
		struct failure f;

		failure_init(&f, arena);
		rc = store_write(sweeper->server->store, delete_portion, &portion, &actor_system, arena, &f);
	} while (rc == 0 && portion.rows >= 1000);
}

static int delete_events(struct tx *tx, void *arg, struct failure *f)
{
	const struct event_page *page = arg;

	return tx_run(tx, f, SQL_PRUNE_EVENT, "ii", page->after, page->end) < 0 ? -1 : 0;
}

/* 1 a whole page follows, 0 there is none, -1 it cannot be read. */
static int read_event_page(struct sweeper *sweeper, struct arena *arena, struct event_page *page, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct snapshot s;
	int rc;

	page->after = sweeper->pruned_to;
	if (snapshot_begin(sweeper->server->store, arena, &s, f) != 0)
		return -1;
	rc = query(&s, &q, f, SQL_EVENT_PAGE_END, "i", page->after);
	if (rc == 0)
		rc = query_next(&q, f);
	if (rc == 1) {
		page->end = col_int(&q, 0);
		page->end_at = col_int(&q, 1);
	}
	query_end(&q);
	snapshot_end(&s);
	return rc;
}

static void prune_events(struct sweeper *sweeper, int64_t before, int64_t below_seq)
{
	for (;;) {
		AUTO(arena_destroyp) struct arena *arena = arena_create();
		struct event_page page;
		struct failure f;

		failure_init(&f, arena);
		if (read_event_page(sweeper, arena, &page, &f) != 1 || page.end_at > before || page.end >= below_seq ||
			store_write(sweeper->server->store, delete_events, &page, &actor_system, arena, &f) != 0)
			return;
		sweeper->pruned_to = page.end;
	}
}

static void sweep_once(struct sweeper *sweeper)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	int64_t now = clock_wall_ms();
	int64_t window = settings_int(sweeper->server->settings, SETTING_SSE_WINDOW);
	struct failure f;

	failure_init(&f, arena);
	if (store_write(sweeper->server->store, sweep_expired, NULL, &actor_system, arena, &f) != 0)
		log_line(LOG_WARN, "server", "the hourly sweep failed",
			{"code", LOG_TEXT(failure_info(f.code)->wire)});
	if (store_write(sweeper->server->store, externals_end, NULL, &actor_system, arena, &f) != 0)
		log_line(LOG_WARN, "server", "runs of agents that are gone could not be ended",
			{"code", LOG_TEXT(failure_info(f.code)->wire)});
	for (size_t i = 0; i < sizeof(prunings) / sizeof(prunings[0]); i++)
		run_all(sweeper, prunings[i].sql, now - prunings[i].age_ms);
	prune_events(sweeper, now - 90 * DAY_MS, store_newest(sweeper->server->store) - window);
}

static void *sweeper_main(void *context)
{
	struct sweeper *sweeper = context;
	struct timespec until;

	(void)prctl(PR_SET_NAME, "helper");
	for (;;) {
		bool stopping;

		(void)clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += HOUR_MS / 1000;
		(void)pthread_mutex_lock(&sweeper->lock);
		while (!sweeper->stopping)
			if (pthread_cond_timedwait(&sweeper->changed, &sweeper->lock, &until) != 0)
				break;
		stopping = sweeper->stopping;
		(void)pthread_mutex_unlock(&sweeper->lock);
		if (stopping)
			return NULL;
		sweep_once(sweeper);
	}
}

int sweeper_start(struct server *server, struct sweeper **out, struct failure *f)
{
	struct sweeper *sweeper = calloc(1, sizeof(*sweeper));
	pthread_condattr_t monotonic;

	if (sweeper == NULL)
		abort();
	sweeper->server = server;
	(void)pthread_mutex_init(&sweeper->lock, NULL);
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&sweeper->changed, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
	if (pthread_create(&sweeper->thread, NULL, sweeper_main, sweeper) != 0) {
		free(sweeper);
		return fail_errno(f, "start the helper thread");
	}
	*out = sweeper;
	return 0;
}

void sweeper_stop(struct sweeper *sweeper)
{
	if (sweeper == NULL)
		return;
	(void)pthread_mutex_lock(&sweeper->lock);
	sweeper->stopping = true;
	(void)pthread_cond_signal(&sweeper->changed);
	(void)pthread_mutex_unlock(&sweeper->lock);
	(void)pthread_join(sweeper->thread, NULL);
	(void)pthread_mutex_destroy(&sweeper->lock);
	(void)pthread_cond_destroy(&sweeper->changed);
	free(sweeper);
}
