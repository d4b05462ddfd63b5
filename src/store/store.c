/* Opening and closing: the order in which a store comes up and goes down. */
#include "store/private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

#include <stdlib.h>
#include <sys/stat.h>

SQL(SQL_NEWEST, "SELECT max(seq) FROM event");
SQL(SQL_NEWEST_AT, "SELECT at FROM event WHERE seq = $1");

static struct store *store_create(const struct store_options *options)
{
	struct store *store = calloc(1, sizeof(*store));
	pthread_condattr_t monotonic;

	if (store == NULL)
		abort();
	store->path = strdup(options->path);
	if (store->path == NULL)
		abort();
	store->reader_count = options->readers == 0 ? 2 : options->readers > 8 ? 8 : options->readers;
	store->queue_tail = &store->queue_head;
	store->read_tail = &store->read_head;
	store->batches_tail = &store->batches;
	store->log_fd = -1;
	store->next_seq = EVENT_FIRST_SEQ + 1;
	store->committed = EVENT_FIRST_SEQ;
	atomic_store(&store->newest, EVENT_FIRST_SEQ);
	(void)pthread_mutex_init(&store->queue_lock, NULL);
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&store->queue_more, &monotonic);
	(void)pthread_cond_init(&store->settled, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
	(void)pthread_cond_init(&store->batch_more, NULL);
	(void)pthread_mutex_init(&store->read_lock, NULL);
	(void)pthread_cond_init(&store->read_more, NULL);
	(void)pthread_mutex_init(&store->pool_lock, NULL);
	(void)pthread_cond_init(&store->pool_more, NULL);
	(void)pthread_mutex_init(&store->checkpoint_lock, NULL);
	(void)pthread_cond_init(&store->checkpoint_more, NULL);
	return store;
}

static int load_newest(struct store *store, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct snapshot snapshot;
	int64_t newest = 0;
	int64_t at = 0;
	int rc;

	if (snapshot_begin(store, arena, &snapshot, f) != 0)
		return -1;
	rc = query_int(&snapshot, &newest, f, SQL_NEWEST, "");
	if (rc > 0)
		rc = query_int(&snapshot, &at, f, SQL_NEWEST_AT, "i", newest);
	snapshot_end(&snapshot);
	if (rc < 0)
		return -1;
	if (newest != 0) {
		store->next_seq = newest + 1;
		store->committed = newest;
		atomic_store(&store->newest, newest);
		store->last_now = at;
	}
	return 0;
}

static int start_threads(struct store *store, struct failure *f)
{
	if (durable_open(store, f) != 0)
		return -1;
	if (pthread_create(&store->durable, NULL, durable_main, store) != 0)
		return fail_errno(f, "start the thread that syncs");
	store->has_durable = true;
	if (pthread_create(&store->writer, NULL, writer_main, store) != 0)
		return fail_errno(f, "start the writer");
	store->has_writer = true;
	if (pthread_create(&store->checkpointer, NULL, checkpointer_main, store) != 0)
		return fail_errno(f, "start the checkpointer");
	store->has_checkpointer = true;
	for (; store->readers_started < store->reader_count; store->readers_started++)
		if (pthread_create(&store->readers[store->readers_started], NULL, reader_main, store) != 0)
			return fail_errno(f, "start a reader");
	return 0;
}

static int open_exclusive(struct store *store, const struct store_options *options, bool is_new,
	struct failure *f)
{
	mode_t mask;
	int rc;

	if (file_lock(store->path, &store->lock, f) != 0)
		return -1;
	mask = umask(0077);
	rc = db_open(store->path, options->may_create ? DB_CREATE : DB_WRITE, &store->writer_db, f);
	(void)umask(mask);
	if (rc != 0 || migrate(store->writer_db, store->path, is_new, f) != 0)
		return -1;
	if (reserve_make(store->path, f) != 0) {
		/* Start all the same: reading and deleting must work on a full disk. */
		log_line(LOG_WARN, "store", "no reserve file: the disk is nearly full");
		atomic_store(&store->is_full, true);
	}
	if (load_newest(store, f) != 0)
		return -1;
	return start_threads(store, f);
}

int store_open(const struct store_options *options, struct store **out, struct failure *f)
{
	struct store *store;
	bool is_new;

	if (file_check(options->path, options->may_create, &is_new, f) != 0)
		return -1;
	store = store_create(options);
	if ((options->is_exclusive ? open_exclusive(store, options, is_new, f) : load_newest(store, f)) != 0) {
		store_close(store);
		return -1;
	}
	*out = store;
	return 0;
}

static void stop_threads(struct store *store)
{
	(void)pthread_mutex_lock(&store->read_lock);
	store->read_closing = true;
	(void)pthread_cond_broadcast(&store->read_more);
	(void)pthread_mutex_unlock(&store->read_lock);
	for (unsigned i = 0; i < store->readers_started; i++)
		(void)pthread_join(store->readers[i], NULL);
	(void)pthread_mutex_lock(&store->queue_lock);
	store->is_closing = true;
	(void)pthread_cond_broadcast(&store->queue_more);
	(void)pthread_mutex_unlock(&store->queue_lock);
	if (store->has_writer)
		(void)pthread_join(store->writer, NULL);
	(void)pthread_mutex_lock(&store->queue_lock);
	store->durable_closing = true;
	(void)pthread_cond_broadcast(&store->batch_more);
	(void)pthread_mutex_unlock(&store->queue_lock);
	if (store->has_durable)
		(void)pthread_join(store->durable, NULL);
	(void)pthread_mutex_lock(&store->checkpoint_lock);
	store->checkpoint_closing = true;
	(void)pthread_cond_broadcast(&store->checkpoint_more);
	(void)pthread_mutex_unlock(&store->checkpoint_lock);
	if (store->has_checkpointer)
		(void)pthread_join(store->checkpointer, NULL);
}

void store_close(struct store *store)
{
	if (store == NULL)
		return;
	stop_threads(store);
	while (store->pool_idle > 0)
		db_close(store->pool[--store->pool_idle]);
	durable_close(store);
	db_close(store->writer_db); /* the last connection checkpoints and removes the log */
	file_unlock(store->lock);
	(void)pthread_mutex_destroy(&store->queue_lock);
	(void)pthread_cond_destroy(&store->queue_more);
	(void)pthread_cond_destroy(&store->batch_more);
	(void)pthread_cond_destroy(&store->settled);
	(void)pthread_mutex_destroy(&store->read_lock);
	(void)pthread_cond_destroy(&store->read_more);
	(void)pthread_mutex_destroy(&store->pool_lock);
	(void)pthread_cond_destroy(&store->pool_more);
	(void)pthread_mutex_destroy(&store->checkpoint_lock);
	(void)pthread_cond_destroy(&store->checkpoint_more);
	free(store->path);
	free(store);
}

void store_follow(struct store *store, void (*wake)(void *context, int64_t newest), void *context)
{
	if (store->follower_count == MAX_FOLLOWERS)
		abort();
	store->followers[store->follower_count++] = (struct follower){wake, context};
}

int64_t store_newest(const struct store *store)
{
	return atomic_load(&store->newest);
}
