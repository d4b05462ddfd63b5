/* From committed to durable: while the disk writes the log of one batch, the writer runs the next.
 *
 * A COMMIT hands the frames of the log to the system; this thread syncs the log once for every batch that was
 * committed meanwhile, and only then answers their callers and wakes followers. The order of batches is kept, so a
 * batch that changed nothing is answered after those that it may have read from.
 *
 * Invariants
 * (1) done(rc 0) is called only after the log that holds the change is on the disk.
 * (2) Followers are woken after (1), with a number that is on the disk.
 * (3) What a caller is told from a snapshot is on the disk: the snapshot waits first (durable_wait).
 * (4) A sync that fails ends the process. What reached the disk is unknown then, the changes can be seen already, and
 *     a system that was told of a failed sync once may report success the next time. A new start reads what is there. */
#include "store/private.h"

#include "base/limits.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

int durable_open(struct store *store, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();

	/* Made when the database was opened, and the same file until the last connection closes. */
	store->log_fd = open(arena_printf(arena, "%s-wal", store->path), O_RDONLY | O_CLOEXEC);
	return store->log_fd < 0 ? fail_errno(f, "open the log") : 0;
}

void durable_close(struct store *store)
{
	if (store->log_fd >= 0)
		(void)close(store->log_fd);
}

static void fail_jobs(const struct batch *batch)
{
	for (struct store_job *job = batch->first; job != NULL; job = job->next) {
		/* What this caller did alone does not matter any more. */
		failure_copy(&job->failure, job->arena, batch->failure);
		job->rc = -1;
	}
}

static void finish(struct store *store, const struct batch *batch)
{
	struct store_job *job = batch->first;

	if (batch->failure != NULL)
		fail_jobs(batch);
	for (size_t i = 0; i < store->follower_count && batch->newest != 0; i++)
		store->followers[i].wake(store->followers[i].context, batch->newest); /* (2) */
	while (job != NULL) {
		struct store_job *next = job->next; /* done() may free the job */

		job->done(job->arg, job->rc, &job->failure);
		job = next;
	}
}

static void sync_log(struct store *store)
{
	if (fdatasync(store->log_fd) == 0)
		return;
	log_line(LOG_ERROR, "store", "the log cannot be synced: the server ends, and starts from what is on the disk");
	_exit(failure_info(FAIL_INTERNAL)->exit_code); /* (4) */
}

static void free_batches(struct batch *batch)
{
	while (batch != NULL) {
		struct batch *next = batch->next;

		arena_destroy(batch->arena);
		batch = next;
	}
}

void durable_settle(struct store *store, struct batch *batches)
{
	bool owes = false;
	int64_t newest = 0;
	int count = 0;

	for (struct batch *batch = batches; batch != NULL; batch = batch->next) {
		owes = owes || batch->owes_sync;
		newest = batch->newest > newest ? batch->newest : newest;
		count++;
	}
	if (owes)
		sync_log(store);
	if (newest != 0)
		atomic_store(&store->newest, newest);
	/* Who waits for the disk, to read or to commit, does not wait for the answers. */
	(void)pthread_mutex_lock(&store->queue_lock);
	store->unsettled -= count;
	atomic_store(&store->is_disk_busy, store->batches != NULL);
	(void)pthread_cond_broadcast(&store->settled);
	(void)pthread_cond_signal(&store->queue_more);
	(void)pthread_mutex_unlock(&store->queue_lock);
	for (struct batch *batch = batches; batch != NULL; batch = batch->next)
		finish(store, batch);
	free_batches(batches);
}

void *durable_main(void *context)
{
	struct store *store = context;

	(void)prctl(PR_SET_NAME, "durable");
	(void)pthread_mutex_lock(&store->queue_lock);
	for (;;) {
		struct batch *batches;

		while (store->batches == NULL && !store->durable_closing)
			(void)pthread_cond_wait(&store->batch_more, &store->queue_lock);
		if (store->batches == NULL)
			break;
		batches = store->batches;
		store->batches = NULL;
		store->batches_tail = &store->batches;
		store->batch_count = 0;
		store->is_answering = true;
		(void)pthread_cond_signal(&store->queue_more); /* the writer may wait for room */
		(void)pthread_mutex_unlock(&store->queue_lock);
		durable_settle(store, batches);
		(void)pthread_mutex_lock(&store->queue_lock);
		store->is_answering = false;
	}
	(void)pthread_mutex_unlock(&store->queue_lock);
	return NULL;
}

void durable_begin(struct store *store)
{
	(void)pthread_mutex_lock(&store->queue_lock);
	store->unsettled++;
	(void)pthread_mutex_unlock(&store->queue_lock);
}

void durable_hand_over(struct store *store, struct batch *batch)
{
	(void)pthread_mutex_lock(&store->queue_lock);
	while (store->batch_count >= LIMIT_BATCHES_WAITING)
		(void)pthread_cond_wait(&store->queue_more, &store->queue_lock);
	*store->batches_tail = batch;
	store->batches_tail = &batch->next;
	store->batch_count++;
	atomic_store(&store->is_disk_busy, true);
	(void)pthread_cond_signal(&store->batch_more);
	(void)pthread_mutex_unlock(&store->queue_lock);
}

int durable_wait(struct store *store, int64_t seen, struct failure *f)
{
	struct timespec until;
	int error = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LIMIT_READ_DEADLINE_MS / 1000;
	(void)pthread_mutex_lock(&store->queue_lock);
	while (store->unsettled > 0 && atomic_load(&store->newest) < seen && error == 0)
		error = pthread_cond_timedwait(&store->settled, &store->queue_lock, &until);
	(void)pthread_mutex_unlock(&store->queue_lock);
	if (error == 0)
		return 0;
	(void)fail(f, FAIL_UNAVAILABLE, "The disk has not answered for a while; what was changed last is not on it yet.");
	f->retry_after_ms = 1000;
	return -1;
}
