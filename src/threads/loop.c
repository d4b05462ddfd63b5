/* The loop of the engine: it wakes, looks for orders, and lets sessions go on. */
#include "threads/background.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "threads/places.h"
#include "threads/wait.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define LOOK_EVERY_MS 1000

int64_t loop_now(const struct threads *threads)
{
	(void)threads;
	return clock_mono_ms();
}

/* ---- batches ---- */

struct batch *batch_create(struct threads *threads, struct session *session)
{
	struct arena *arena = arena_create();
	struct batch *batch = ARENA_NEW(arena, struct batch);

	batch->threads = threads;
	batch->session = session;
	batch->arena = arena;
	batch->is_text_only = true;
	batch->opened_at = loop_now(threads);
	failure_init(&batch->f, arena);
	agent_out_init(&batch->out, arena);
	return batch;
}

void batch_destroy(struct batch *batch)
{
	if (batch != NULL)
		arena_destroy(batch->arena);
}

static void hand_back(struct batch *batch, int rc)
{
	struct threads *threads = batch->threads;

	batch->rc = rc;
	pthread_mutex_lock(&threads->lock);
	batch->next = threads->done;
	threads->done = batch;
	pthread_mutex_unlock(&threads->lock);
	(void)uv_async_send(&threads->wake);
}

static void stored(void *arg, int rc, struct failure *f)
{
	struct batch *batch = arg;

	if (rc != 0)
		failure_copy(&batch->f, batch->arena, f);
	hand_back(batch, rc);
}

static int run_change(struct tx *tx, void *arg, struct failure *f)
{
	struct batch *batch = arg;

	return batch->run(tx, batch->arg, f);
}

void batch_submit(struct batch *batch, int (*run)(struct tx *tx, void *arg, struct failure *f), void *arg,
	void (*then)(struct batch *batch))
{
	batch->threads->in_flight++;
	batch->run = run;
	batch->arg = arg;
	batch->then = then;
	batch->job = (struct store_job){.run = run_change,
		.done = stored,
		.arg = batch,
		.actor = &actor_system,
		.arena = batch->arena,
		.may_use_reserve = true};
	failure_init(&batch->f, batch->arena);
	if (store_submit(batch->threads->store, &batch->job, &batch->f) != 0)
		hand_back(batch, -1);
}

/* In the order in which they were stored. */
static void finish_batches(struct threads *threads)
{
	struct batch *newest, *oldest = NULL;

	pthread_mutex_lock(&threads->lock);
	newest = threads->done;
	threads->done = NULL;
	pthread_mutex_unlock(&threads->lock);
	while (newest != NULL) {
		struct batch *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	while (oldest != NULL) {
		struct batch *next = oldest->next;

		threads->in_flight--;
		oldest->then(oldest);
		oldest = next;
	}
}

/* ---- the loop ---- */

static void tick_all(struct threads *threads)
{
	int64_t now = loop_now(threads);
	struct session *next;

	for (struct session *session = threads->sessions; session != NULL; session = next) {
		next = session->next;
		session_tick(session, now);
	}
}

static void serve_waiters(struct threads *threads)
{
	int64_t next = waiters_serve(loop_now(threads));

	if (next != 0)
		loop_due(threads, next);
}

static void on_timer(uv_timer_t *timer)
{
	struct threads *threads = timer->data;

	(void)uv_timer_start(&threads->timer, on_timer, LOOK_EVERY_MS, 0);
	tick_all(threads);
	serve_waiters(threads);
	orders_look(threads);
	background_look(threads);
}

void loop_due(struct threads *threads, int64_t at)
{
	int64_t in = at - loop_now(threads);
	uint64_t left = uv_timer_get_due_in(&threads->timer);

	if (in < 0)
		in = 0;
	if (!uv_is_active((uv_handle_t *)&threads->timer) || (uint64_t)in < left)
		(void)uv_timer_start(&threads->timer, on_timer, (uint64_t)in, 0);
}

static void release_all(struct threads *threads)
{
	while (threads->sessions != NULL)
		session_destroy(threads->sessions);
}

static void on_wake(uv_async_t *wake)
{
	struct threads *threads = wake->data;
	bool is_stopping, is_draining;

	finish_batches(threads);
	serve_waiters(threads);
	pthread_mutex_lock(&threads->lock);
	is_stopping = threads->is_stopping;
	is_draining = threads->is_draining;
	pthread_mutex_unlock(&threads->lock);
	if (is_draining)
		for (struct session *session = threads->sessions; session != NULL; session = session->next)
			session_end(session);
	if (is_stopping && threads->in_flight == 0) {
		release_all(threads);
		uv_stop(&threads->loop);
		return;
	}
	if (is_stopping)
		return;
	/* First what starts agents. What runs have left is looked at to the last. */
	if (!is_draining)
		orders_look(threads);
	background_look(threads);
}

void loop_recovered(struct threads *threads)
{
	pthread_mutex_lock(&threads->lock);
	threads->is_recovered = true;
	pthread_cond_broadcast(&threads->changed);
	pthread_mutex_unlock(&threads->lock);
}

static void *run_loop(void *arg)
{
	struct threads *threads = arg;
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct failure f;

	failure_init(&f, arena);
	if (sessions_recover(threads, &f) != 0)
		log_line(LOG_ERROR, "threads", "live sessions could not be read", {"reason", LOG_STRV(f.message)});
	else if (strays_end(threads, &f) != 0)
		log_line(LOG_ERROR, "threads", "agents of no session could not be looked for", {"reason", LOG_STRV(f.message)});
	if (threads->recovering == 0)
		loop_recovered(threads);
	(void)uv_timer_start(&threads->timer, on_timer, 0, 0);
	(void)uv_run(&threads->loop, UV_RUN_DEFAULT);
	return NULL;
}

/* On the thread that has synced a commit. */
static void on_commit(void *context, int64_t newest)
{
	(void)newest;
	if (waiters_are_due())
		threads_wake(context);
}

static int make_private(const char *path, struct failure *f)
{
	return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : fail_errno(f, "cannot make %s", path);
}

static int set_up(struct threads *threads, struct failure *f)
{
	if (make_private(threads->directory, f) != 0 || make_private(arena_printf(f->arena, "%s/worktrees", threads->data), f) != 0
		|| make_private(arena_printf(f->arena, "%s/scratch", threads->data), f) != 0)
		return -1;
	if (uv_loop_init(&threads->loop) != 0)
		return fail(f, FAIL_INTERNAL, "The loop of the agents could not be made.");
	(void)uv_async_init(&threads->loop, &threads->wake, on_wake);
	(void)uv_timer_init(&threads->loop, &threads->timer);
	threads->wake.data = threads->timer.data = threads;
	return 0;
}

/* Before anything of this server begins. */
static int give_up_cut(struct tx *tx, void *arg, struct failure *f)
{
	(void)arg;
	return preparations_cut(tx, f);
}

/* What the engine may have left undone, as it began runs only when something else happened. */
static int begin_waiting(struct tx *tx, void *arg, struct failure *f)
{
	(void)arg;
	return schedule(tx, f);
}

static void threads_free(struct threads *threads)
{
	credentials_destroy(threads->credentials);
	pthread_mutex_destroy(&threads->lock);
	pthread_cond_destroy(&threads->changed);
	free(threads->directory);
	free(threads->data);
	free(threads->mcp_url);
	free(threads);
}

int threads_start(const struct threads_options *options, struct threads **out, struct failure *f)
{
	struct threads *threads = calloc(1, sizeof(*threads));

	if (threads == NULL)
		abort();
	threads->store = options->store;
	threads->directory = strdup(options->directory);
	threads->data = strdup(options->data);
	threads->instances = options->instances;
	threads->instance_count = options->instance_count;
	threads->environment = options->environment;
	threads->bounds = options->bounds;
	threads->credentials = credentials_create();
	pthread_mutex_init(&threads->lock, NULL);
	pthread_cond_init(&threads->changed, NULL);
	store_follow(options->store, on_commit, threads);
	places_set(options->runs, options->runs_per_project, options->runs_per_batch);
	if (set_up(threads, f) != 0
		|| store_write(options->store, give_up_cut, NULL, &actor_system, f->arena, f) != 0) {
		threads_free(threads);
		return -1;
	}
	background_start(threads);
	if (pthread_create(&threads->thread, NULL, run_loop, threads) != 0) {
		background_stop(threads);
		threads_free(threads);
		return fail(f, FAIL_INTERNAL, "The thread of the agents could not be started.");
	}
	pthread_mutex_lock(&threads->lock);
	while (!threads->is_recovered)
		pthread_cond_wait(&threads->changed, &threads->lock);
	pthread_mutex_unlock(&threads->lock);
	if (store_write(options->store, begin_waiting, NULL, &actor_system, f->arena, f) != 0) {
		threads_stop(threads);
		return -1;
	}
	*out = threads;
	return 0;
}

void threads_serve(struct threads *threads, struct str mcp_url)
{
	pthread_mutex_lock(&threads->lock);
	free(threads->mcp_url);
	threads->mcp_url = strndup(mcp_url.p, mcp_url.n);
	pthread_mutex_unlock(&threads->lock);
	threads_wake(threads);
}

void threads_wake(struct threads *threads)
{
	(void)uv_async_send(&threads->wake);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void threads_stop(struct threads *threads)
{
	if (threads == NULL)
		return;
	pthread_mutex_lock(&threads->lock);
	threads->is_stopping = true;
	pthread_mutex_unlock(&threads->lock);
	threads_wake(threads);
	pthread_join(threads->thread, NULL);
	background_stop(threads);
	uv_walk(&threads->loop, close_handle, NULL);
	(void)uv_run(&threads->loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&threads->loop);
	threads_free(threads);
}

void threads_drain(struct threads *threads)
{
	int64_t until;
	bool is_empty = false;

	if (threads == NULL || threads->bounds.drain == 0)
		return;
	until = clock_mono_ms() + threads->bounds.drain;
	pthread_mutex_lock(&threads->lock);
	threads->is_draining = true;
	free(threads->mcp_url); /* no agent is started any more */
	threads->mcp_url = NULL;
	pthread_mutex_unlock(&threads->lock);
	while (!is_empty && clock_mono_ms() < until) {
		struct timespec at;

		threads_wake(threads);
		(void)clock_gettime(CLOCK_REALTIME, &at);
		at.tv_nsec += 100000000;
		at.tv_sec += at.tv_nsec / 1000000000;
		at.tv_nsec %= 1000000000;
		pthread_mutex_lock(&threads->lock);
		(void)pthread_cond_timedwait(&threads->changed, &threads->lock, &at);
		is_empty = threads->session_count == 0;
		pthread_mutex_unlock(&threads->lock);
	}
}

const struct provider_instance *threads_instance(const struct threads *threads, struct str id)
{
	for (size_t i = 0; i < threads->instance_count; i++)
		if (str_eq(threads->instances[i].id, id))
			return &threads->instances[i];
	return NULL;
}

const struct provider_instance *threads_instances(const struct threads *threads, size_t *out_count)
{
	*out_count = threads->instance_count;
	return threads->instances;
}

bool threads_scope(struct threads *threads, struct str token, struct thread_scope *out)
{
	return credential_find(threads->credentials, token, out);
}
