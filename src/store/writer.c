/* The writer thread: many callers per commit, each under a savepoint of its own. durable.c answers them.
 *
 * Invariants
 * (1) A caller's failure undoes that caller alone; a failed COMMIT fails every caller of the batch.
 * (2) `now` of a transaction never runs backwards, so stored times never do. */
#include "store/private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

int write_begin(struct store *store, struct write *write, struct failure *f)
{
	enum outcome outcome = db_run(store->writer_db, "BEGIN IMMEDIATE");
	int64_t now = clock_wall_ms();

	if (outcome != DB_OK)
		return db_fail(store->writer_db, outcome, "begin", f);
	if (now > store->last_now)
		store->last_now = now;
	*write = (struct write){.store = store};
	write->tx.snapshot = (struct snapshot){.store = store, .db = store->writer_db, .now = store->last_now};
	return 0;
}

int write_commit(struct store *store, struct write *write, bool *owes_sync, struct failure *f)
{
	enum outcome outcome = owes_sync == NULL ? db_run(store->writer_db, "COMMIT")
						 : db_commit_unsynced(store->writer_db, owes_sync);

	if (outcome != DB_OK) {
		(void)db_fail(store->writer_db, outcome, "commit", f);
		write_rollback(store, write);
		return -1;
	}
	store->has_new_principals = false;
	store->committed = store->next_seq - 1;
	atomic_fetch_add(&store->commits, 1);
	atomic_store(&store->wal_frames, db_frames_written(store->writer_db));
	return 0;
}

void write_rollback(struct store *store, struct write *write)
{
	if (!db_transaction_lost(store->writer_db))
		(void)db_exec(store->writer_db, "ROLLBACK"); /* nothing is left to do about a failure */
	store->next_seq = store->committed + 1;
	forget_new_principals(store);
	/* Sequences are asked again: rows that they stood for may be gone. */
	memset(store->sequences, 0, sizeof(store->sequences));
	write->depth = 0;
}

/* One caller inside the batch. -1 when the whole transaction is lost. */
static int run_job(struct write *write, struct store_job *job)
{
	struct tx *tx = &write->tx;
	struct failure broken;

	tx->snapshot.arena = job->arena;
	tx->actor = job->actor;
	tx->actor_n = 0;
	failure_init(&job->failure, job->arena);
	failure_init(&broken, job->arena);
	if (job->fails_clean)
		tx_mark_bare(tx);
	else if (tx_mark(tx, &job->failure) != 0)
		return -1;
	job->rc = job->run(tx, job->arg, &job->failure);
	if (db_transaction_lost(write->store->writer_db))
		return -1;
	assert(job->rc != 0 || write->depth == 1); /* marks of the job are all closed */
	if (job->rc == 0 && tx_keep(tx, &job->failure) == 0)
		return 0;
	/* A job may fail between marks of its own. */
	job->rc = -1;
	while (write->depth > 0)
		if (tx_undo(tx, &broken) != 0)
			return -1;
	return write->is_broken ? -1 : 0;
}

/* The whole queue at once: one lock for many calls. */
static void take_queue(struct store *store)
{
	store->taken = store->queue_head;
	store->queue_head = NULL;
	store->queue_tail = &store->queue_head;
}

static struct store_job *next_taken(struct store *store)
{
	struct store_job *job = store->taken;

	if (job != NULL) {
		store->taken = job->next;
		job->next = NULL;
		atomic_fetch_sub(&store->queue_length, 1);
	}
	return job;
}

/* With the lock held; false after a while in which nothing came. */
static bool wait_for_call(struct store *store)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LIMIT_WRITER_IDLE_MS / 1000;
	while (store->queue_head == NULL && !store->is_closing)
		if (pthread_cond_timedwait(&store->queue_more, &store->queue_lock, &until) == ETIMEDOUT)
			return false;
	return true;
}

static void give_back(struct store *store)
{
	(void)pthread_mutex_unlock(&store->queue_lock);
	db_give_back(store->writer_db);
	(void)pthread_mutex_lock(&store->queue_lock);
}

/* The first of a batch; NULL when the store closes. */
static struct store_job *take_first(struct store *store)
{
	if (store->taken == NULL) {
		(void)pthread_mutex_lock(&store->queue_lock);
		if (!wait_for_call(store))
			give_back(store);
		while (store->queue_head == NULL && !store->is_closing)
			(void)pthread_cond_wait(&store->queue_more, &store->queue_lock);
		take_queue(store);
		(void)pthread_mutex_unlock(&store->queue_lock);
	}
	return next_taken(store);
}

/* One more for the batch. While the disk is busy with an earlier batch nothing is gained by a commit: calls that come
 * meanwhile join this one. NULL: commit; *is_idle says whether nobody else is to be answered either. */
static struct store_job *take_more(struct store *store, bool *is_idle)
{
	if (store->taken == NULL) {
		(void)pthread_mutex_lock(&store->queue_lock);
		while (store->queue_head == NULL && atomic_load(&store->is_disk_busy))
			(void)pthread_cond_wait(&store->queue_more, &store->queue_lock);
		*is_idle = store->queue_head == NULL && !store->is_answering && store->batches == NULL;
		take_queue(store);
		(void)pthread_mutex_unlock(&store->queue_lock);
	}
	return next_taken(store);
}

/* The disk is full or read-only: say so for a while, give the reserve away, look again later. */
static void note_full(struct store *store)
{
	if (db_worst(store->writer_db) != DB_FULL && db_worst(store->writer_db) != DB_READONLY)
		return;
	db_clear_worst(store->writer_db);
	atomic_store(&store->full_checked_at, clock_mono_ms());
	if (!atomic_exchange(&store->is_full, true))
		reserve_release(store->path);
}

struct running {
	struct write write;
	struct batch *batch;
	struct store_job **end;
	int64_t started;
	int count;
	bool is_idle; /* no other call waits, and none is to be answered */
};

static struct batch *batch_create(void)
{
	struct arena *arena = arena_create();
	struct batch *batch = ARENA_NEW(arena, struct batch);

	batch->arena = arena;
	return batch;
}

static void batch_fail(struct batch *batch, const struct failure *why)
{
	batch->failure = ARENA_NEW(batch->arena, struct failure);
	failure_copy(batch->failure, batch->arena, why);
}

static void lose(struct store *store, struct running *run, const struct failure *why)
{
	batch_fail(run->batch, why);
	if (why->code != FAIL_STORAGE_FULL)
		(void)fail(run->batch->failure, FAIL_UNAVAILABLE, "The store had to undo this batch; repeat the call.");
	run->batch->failure->retry_after_ms = 100;
	write_rollback(store, &run->write);
}

/* Until there are no more, or the batch is large or late enough, or lost. With a few calls it is large enough as soon as
 * the disk has nothing to do: a writer that went on as long as calls come would gather all callers in one batch, and
 * then it and the disk would wait for each other in turn. */
static void run_jobs(struct store *store, struct running *run, struct store_job *job)
{
	for (;;) {
		*run->end = job;
		run->end = &job->next;
		run->count++;
		if (run->batch->failure == NULL && run_job(&run->write, job) != 0)
			lose(store, run, &job->failure);
		if (run->batch->failure != NULL || run->count >= LIMIT_BATCH_OPS ||
			clock_mono_us() - run->started > LIMIT_BATCH_MS * 1000)
			return;
		if (run->count >= LIMIT_BATCH_FEW_OPS && !atomic_load(&store->is_disk_busy))
			return;
		job = take_more(store, &run->is_idle);
		if (job == NULL)
			return;
	}
}

/* One caller alone is answered by this thread: handing over would only take longer. */
static void commit(struct store *store, struct running *run)
{
	bool is_alone = run->is_idle && run->count == 1;
	struct batch *batch = run->batch;
	struct failure failure;
	int64_t before = store->committed;

	failure_init(&failure, batch->arena);
	durable_begin(store);
	if (batch->failure == NULL &&
		write_commit(store, &run->write, is_alone ? NULL : &batch->owes_sync, &failure) != 0)
		batch_fail(batch, &failure);
	batch->newest = store->committed > before ? store->committed : 0;
	atomic_fetch_add(&store->calls, run->count);
	atomic_fetch_add(&store->busy_us, clock_mono_us() - run->started);
	if (is_alone)
		durable_settle(store, batch);
	else
		durable_hand_over(store, batch);
}

static void run_batch(struct store *store, struct store_job *job)
{
	struct running run = {.write = {.store = store}, .batch = batch_create(), .started = clock_mono_us()};
	struct failure failure;

	run.end = &run.batch->first;
	failure_init(&failure, run.batch->arena);
	if (write_begin(store, &run.write, &failure) != 0)
		batch_fail(run.batch, &failure);
	run_jobs(store, &run, job);
	commit(store, &run);
	note_full(store);
}

static void wake_checkpointer(struct store *store)
{
	(void)pthread_mutex_lock(&store->checkpoint_lock);
	store->checkpoint_due = true;
	(void)pthread_cond_signal(&store->checkpoint_more);
	(void)pthread_mutex_unlock(&store->checkpoint_lock);
}

/* Pages that the log grows by between two passive checkpoints. Each one sorts all of the log and syncs the
 * database, so that one for every commit, once the log is long, costs more than the commits. With a quarter of
 * this the slowest of a hundred calls took half as long again: the disk serves the log and the database in turn. */
#define CHECKPOINT_FRAMES 8000

static void tend_log(struct store *store)
{
	int64_t frames = db_wal_frames(store->writer_db);
	int all;
	int moved;

	if (frames < store->checkpoint_asked_at)
		store->checkpoint_asked_at = 0; /* the log has started over */
	if (frames > LIMIT_WAL_BYTES / PAGE_BYTES) {
		/* Under unbroken load a passive checkpoint may never reset the log. */
		if (db_checkpoint(store->writer_db, true, &all, &moved) == DB_OK)
			log_line(LOG_DEBUG, "store", "log restarted", {"frames", LOG_INT(all)});
	} else if (frames - store->checkpoint_asked_at >= CHECKPOINT_FRAMES) {
		store->checkpoint_asked_at = frames;
		wake_checkpointer(store);
	}
}

void *writer_main(void *context)
{
	struct store *store = context;
	struct store_job *job;

	(void)prctl(PR_SET_NAME, "writer");
	while ((job = take_first(store)) != NULL) {
		run_batch(store, job);
		tend_log(store);
	}
	return NULL;
}

void *checkpointer_main(void *context)
{
	struct store *store = context;
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct failure failure;
	struct db *db;

	(void)prctl(PR_SET_NAME, "checkpointer");
	failure_init(&failure, arena);
	if (db_open(store->path, DB_WRITE, &db, &failure) != 0)
		return NULL; /* the writer's own limit still bounds the log */
	for (;;) {
		bool closing;
		int frames;
		int moved;

		(void)pthread_mutex_lock(&store->checkpoint_lock);
		while (!store->checkpoint_due && !store->checkpoint_closing)
			(void)pthread_cond_wait(&store->checkpoint_more, &store->checkpoint_lock);
		store->checkpoint_due = false;
		closing = store->checkpoint_closing;
		(void)pthread_mutex_unlock(&store->checkpoint_lock);
		if (closing)
			break;
		(void)db_checkpoint(db, false, &frames, &moved); /* tried again at the next wake-up */
	}
	db_close(db);
	return NULL;
}

/* While the disk is full, one look at the free space per second decides. */
static bool still_full(struct store *store)
{
	int64_t now = clock_mono_ms();
	AUTO(arena_destroyp) struct arena *arena = NULL;
	struct failure failure;

	if (!atomic_load(&store->is_full))
		return false;
	if (now - atomic_load(&store->full_checked_at) < 1000)
		return true;
	atomic_store(&store->full_checked_at, now);
	arena = arena_create();
	failure_init(&failure, arena);
	if (file_free_bytes(store->path) < 2 * (int64_t)LIMIT_RESERVE_BYTES ||
		reserve_make(store->path, &failure) != 0)
		return true;
	atomic_store(&store->is_full, false);
	log_line(LOG_INFO, "store", "there is space again");
	return false;
}

int store_submit(struct store *store, struct store_job *job, struct failure *f)
{
	bool refused;

	if (still_full(store) && !job->may_use_reserve) {
		(void)fail(f, FAIL_STORAGE_FULL, "The disk that holds the store is full; nothing was changed.");
		f->retry_after_ms = 1000;
		return -1;
	}
	job->next = NULL;
	(void)pthread_mutex_lock(&store->queue_lock);
	refused = store->is_closing || atomic_load(&store->queue_length) >= LIMIT_WRITE_QUEUE || !store->has_writer;
	if (!refused) {
		*store->queue_tail = job;
		store->queue_tail = &job->next;
		atomic_fetch_add(&store->queue_length, 1);
		(void)pthread_cond_signal(&store->queue_more);
	}
	(void)pthread_mutex_unlock(&store->queue_lock);
	if (!refused)
		return 0;
	(void)fail(f, FAIL_UNAVAILABLE, "The server has more writes waiting than it admits, or is stopping.");
	f->retry_after_ms = 1000;
	return -1;
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_done;
	int rc;
	struct failure *f;
	int (*run)(struct tx *tx, void *arg, struct failure *f);
	void *arg;
};

static int run_waiter(struct tx *tx, void *arg, struct failure *f)
{
	struct waiter *waiter = arg;

	return waiter->run(tx, waiter->arg, f);
}

static void waiter_done(void *arg, int rc, struct failure *f)
{
	struct waiter *waiter = arg;

	(void)pthread_mutex_lock(&waiter->lock);
	waiter->rc = rc;
	if (rc != 0)
		failure_copy(waiter->f, waiter->f->arena, f);
	waiter->is_done = true;
	(void)pthread_cond_signal(&waiter->changed);
	(void)pthread_mutex_unlock(&waiter->lock);
}

int store_write(struct store *store, int (*run)(struct tx *tx, void *arg, struct failure *f), void *arg,
	const struct actor *actor, struct arena *arena, struct failure *f)
{
	struct waiter waiter = {.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
		.f = f,
		.run = run,
		.arg = arg};
	struct store_job job = {
		.run = run_waiter, .done = waiter_done, .arg = &waiter, .actor = actor, .arena = arena};

	if (store_submit(store, &job, f) != 0)
		return -1;
	(void)pthread_mutex_lock(&waiter.lock);
	while (!waiter.is_done)
		(void)pthread_cond_wait(&waiter.changed, &waiter.lock);
	(void)pthread_mutex_unlock(&waiter.lock);
	(void)pthread_mutex_destroy(&waiter.lock);
	(void)pthread_cond_destroy(&waiter.changed);
	return waiter.rc;
}
