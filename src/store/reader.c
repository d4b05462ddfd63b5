/* Read snapshots: a pool of connections that any thread may borrow, and the reader threads. */
#include "store/private.h"

#include "base/clock.h"
#include "base/limits.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#define POOL_WAIT_MS 2000

static int pool_take(struct store *store, struct db **out, struct failure *f)
{
	struct timespec until;
	int rc = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += POOL_WAIT_MS / 1000;
	(void)pthread_mutex_lock(&store->pool_lock);
	while (store->pool_idle == 0 && store->pool_made == MAX_READ_CONNECTIONS && rc == 0)
		rc = pthread_cond_timedwait(&store->pool_more, &store->pool_lock, &until);
	if (store->pool_idle > 0) {
		*out = store->pool[--store->pool_idle];
		(void)pthread_mutex_unlock(&store->pool_lock);
		return 0;
	}
	if (store->pool_made == MAX_READ_CONNECTIONS) {
		(void)pthread_mutex_unlock(&store->pool_lock);
		(void)fail(f, FAIL_UNAVAILABLE, "All readers of the store are busy.");
		f->retry_after_ms = 2000;
		return -1;
	}
	store->pool_made++;
	(void)pthread_mutex_unlock(&store->pool_lock);
	if (db_open(store->path, DB_READ, out, f) == 0)
		return 0;
	(void)pthread_mutex_lock(&store->pool_lock);
	store->pool_made--;
	(void)pthread_mutex_unlock(&store->pool_lock);
	return -1;
}

static void pool_give(struct store *store, struct db *db)
{
	(void)pthread_mutex_lock(&store->pool_lock);
	store->pool[store->pool_idle++] = db;
	(void)pthread_cond_signal(&store->pool_more);
	(void)pthread_mutex_unlock(&store->pool_lock);
}

int snapshot_begin(struct store *store, struct arena *arena, struct snapshot *out, struct failure *f)
{
	struct db *db;
	enum outcome outcome;

	if (pool_take(store, &db, f) != 0)
		return -1;
	outcome = db_run(db, "BEGIN");
	if (outcome != DB_OK) {
		pool_give(store, db);
		return db_fail(db, outcome, "begin a snapshot", f);
	}
	db_deadline(db, clock_mono_ms() + LIMIT_READ_DEADLINE_MS);
	*out = (struct snapshot){.store = store, .db = db, .arena = arena, .now = clock_wall_ms()};
	return 0;
}

SQL(SQL_SEEN, "SELECT max(seq) FROM event");

static int seen(struct snapshot *s, int64_t *out, struct failure *f)
{
	*out = 0;
	if (!s->store->has_writer)
		return 0; /* another process writes, or nobody */
	return query_int(s, out, f, SQL_SEEN, "") < 0 ? -1 : 0;
}

int snapshot_is_settled(struct snapshot *s, struct failure *f)
{
	int64_t newest;

	return seen(s, &newest, f) != 0 ? -1 : newest <= atomic_load(&s->store->newest);
}

int snapshot_settle(struct snapshot *s, struct failure *f)
{
	int64_t newest;

	if (seen(s, &newest, f) != 0)
		return -1;
	return newest > atomic_load(&s->store->newest) ? durable_wait(s->store, newest, f) : 0;
}

void snapshot_end(struct snapshot *snapshot)
{
	db_deadline(snapshot->db, 0);
	(void)db_run(snapshot->db, "ROLLBACK"); /* a read transaction has nothing to lose */
	pool_give(snapshot->store, snapshot->db);
	snapshot->db = NULL;
}

void snapshot_patient(struct snapshot *s)
{
	db_deadline(s->db, 0);
}

static struct store_read *take_read(struct store *store)
{
	struct store_read *read;

	(void)pthread_mutex_lock(&store->read_lock);
	while (store->read_head == NULL && !store->read_closing)
		(void)pthread_cond_wait(&store->read_more, &store->read_lock);
	read = store->read_head;
	if (read != NULL) {
		store->read_head = read->next;
		if (store->read_head == NULL)
			store->read_tail = &store->read_head;
		store->read_length--;
	}
	(void)pthread_mutex_unlock(&store->read_lock);
	return read;
}

void *reader_main(void *context)
{
	struct store *store = context;
	struct store_read *read;

	(void)prctl(PR_SET_NAME, "reader");
	while ((read = take_read(store)) != NULL) {
		struct snapshot snapshot;
		struct failure failure;

		failure_init(&failure, read->arena);
		if (snapshot_begin(store, read->arena, &snapshot, &failure) != 0) {
			read->refuse(read->arg, &failure);
			continue;
		}
		if (snapshot_settle(&snapshot, &failure) == 0)
			read->run(&snapshot, read->arg);
		else
			read->refuse(read->arg, &failure);
		snapshot_end(&snapshot);
	}
	return NULL;
}

int store_read_submit(struct store *store, struct store_read *read, struct failure *f)
{
	bool refused;

	read->next = NULL;
	(void)pthread_mutex_lock(&store->read_lock);
	refused = store->read_closing || store->read_length >= LIMIT_READ_QUEUE || store->readers_started == 0;
	if (!refused) {
		*store->read_tail = read;
		store->read_tail = &read->next;
		store->read_length++;
		(void)pthread_cond_signal(&store->read_more);
	}
	(void)pthread_mutex_unlock(&store->read_lock);
	if (!refused)
		return 0;
	(void)fail(f, FAIL_UNAVAILABLE, "The server has more reads waiting than it admits, or is stopping.");
	f->retry_after_ms = 1000;
	return -1;
}
