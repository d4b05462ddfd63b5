/* One thread that wakes what waits: slow answers that must begin a stream, progress and notices
 * that came too fast, questions nobody answers, things that expire. It sleeps while nothing is due.
 */
#include "base/clock.h"
#include "mcp/session.h"

#include <stdlib.h>

#define LOOK_AGAIN_MS 60000 /* for what expires without an appointment */

void ticker_by(struct mcp_server *server, int64_t at)
{
	struct ticker *t = &server->ticker;

	if (at == NEVER)
		return;
	(void)pthread_mutex_lock(&t->lock);
	if (at < t->due) {
		t->due = at;
		(void)pthread_cond_signal(&t->wake);
	}
	(void)pthread_mutex_unlock(&t->lock);
}

static void tick_request(struct mcp_request *req, int64_t now)
{
	int64_t at = atomic_load(&req->wake_at);

	/* A subscription ends with its credential; a call may finish. Asked again until the wall clock
	 * agrees: it is not the clock we sleep by. */
	if (req->caller.expires_at != 0 && req->listen != NULL) {
		int64_t left = req->caller.expires_at - clock_wall_ms();

		if (left <= 0) {
			listen_end(req);
			return;
		}
		ticker_by(req->server, now + left);
	}
	if (at <= now)
		request_wake(req, now);
	else
		ticker_by(req->server, at);
}

static void tick_requests(struct mcp_server *server, struct mcp_request **which, int64_t now)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct mcp_request **all;
	size_t n;

	all = server_snapshot(server, which, arena, &n);
	for (size_t i = 0; i < n; i++) {
		tick_request(all[i], now);
		request_unref(all[i]);
	}
}

static void tick(struct mcp_server *server)
{
	int64_t now = clock_mono_ms();

	tick_requests(server, &server->requests, now);
	tick_requests(server, &server->listens, now);
	ticker_by(server, mcp_session_table_tick(server, now));
	mcp_task_table_tick(server);
	ticker_by(server, now + LOOK_AGAIN_MS);
}

static void *ticker_main(void *arg)
{
	struct mcp_server *server = arg;
	struct ticker *t = &server->ticker;

	(void)pthread_mutex_lock(&t->lock);
	while (!t->stopping) {
		struct timespec until = {t->due / 1000, (t->due % 1000) * 1000000};

		if (clock_mono_ms() < t->due) {
			(void)pthread_cond_timedwait(&t->wake, &t->lock, &until);
			continue;
		}
		t->due = NEVER;
		(void)pthread_mutex_unlock(&t->lock);
		tick(server);
		(void)pthread_mutex_lock(&t->lock);
	}
	(void)pthread_mutex_unlock(&t->lock);
	return NULL;
}

void ticker_start(struct mcp_server *server)
{
	struct ticker *t = &server->ticker;
	pthread_condattr_t attr;

	(void)pthread_mutex_init(&t->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&t->wake, &attr);
	(void)pthread_condattr_destroy(&attr);
	t->due = clock_mono_ms() + LOOK_AGAIN_MS;
	if (pthread_create(&t->thread, NULL, ticker_main, server) != 0)
		abort();
	(void)pthread_setname_np(t->thread, "mcp-ticker");
}

void ticker_stop(struct mcp_server *server)
{
	struct ticker *t = &server->ticker;

	(void)pthread_mutex_lock(&t->lock);
	t->stopping = true;
	(void)pthread_cond_signal(&t->wake);
	(void)pthread_mutex_unlock(&t->lock);
	(void)pthread_join(t->thread, NULL);
	(void)pthread_cond_destroy(&t->wake);
	(void)pthread_mutex_destroy(&t->lock);
}
