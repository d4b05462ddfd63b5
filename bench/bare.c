/* The bare writer: the least that a server can do which makes one small change per call durable.
 *
 *   bare write FILE ROWS    HTTP, token hash, JSON, one writer thread, group commit, one table and its events
 *   bare disk FILE SECONDS  4 KB overwrite + fdatasync
 *   bare loop               HTTP answers from a loop of our own
 *
 * `write` has the product's listener, way of queueing and disk settings (WAL, synchronous=FULL, a passive
 * checkpointer; but 4 KB pages, where the product has 2 KB), and none of its rules: a call names a row, which is read, updated under its version, and
 * recorded in an event table with one index. Budgets of the product are shares of what this one reaches. */
#include "bench/bare.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/json.h"
#include "http/http.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BATCH 256
#define CHECKPOINT_FRAMES 1000
#define LOG_FRAMES 16384 /* 64 MB: the writer restarts a log that is longer */

struct work {
	struct http_exchange *x;
	struct work *next;
	int64_t row, version;
	bool ok;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, checkpoint = PTHREAD_COND_INITIALIZER;
static struct work *head, **tail = &head;
static bool checkpoint_due;
static const char *file;
static sqlite3 *db;
static sqlite3_stmt *begin, *commit, *mark, *keep, *undo, *read_row, *update_row, *add_event;
static int64_t next_seq = 1;
static int wal_frames, asked_at;

static void check(int code, sqlite3 *handle)
{
	if (code == SQLITE_OK)
		return;
	(void)fprintf(stderr, "bare: %s\n", sqlite3_errmsg(handle));
	exit(1);
}

static void exec(sqlite3 *handle, const char *sql)
{
	check(sqlite3_exec(handle, sql, NULL, NULL, NULL), handle);
}

static sqlite3 *open_database(void)
{
	sqlite3 *handle = NULL;

	check(sqlite3_open(file, &handle), handle);
	(void)sqlite3_busy_timeout(handle, 5000);
	exec(handle, "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
		     "PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -8192");
	return handle;
}

static int on_wal(void *context, sqlite3 *handle, const char *name, int frames)
{
	(void)context;
	(void)handle;
	(void)name;
	wal_frames = frames;
	return SQLITE_OK;
}

static sqlite3_stmt *statement(const char *sql)
{
	sqlite3_stmt *stmt;

	check(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), db);
	return stmt;
}

static void prepare(int64_t rows)
{
	char fill[300];

	db = open_database();
	(void)sqlite3_wal_hook(db, on_wal, NULL);
	exec(db, "CREATE TABLE item (n INTEGER PRIMARY KEY, version INTEGER NOT NULL, role INTEGER NOT NULL,"
		 " at INTEGER NOT NULL);"
		 "CREATE TABLE event (seq INTEGER PRIMARY KEY, item INTEGER NOT NULL, at INTEGER NOT NULL,"
		 " type INTEGER NOT NULL, data TEXT NOT NULL);"
		 "CREATE INDEX event_item ON event (item, seq)");
	(void)snprintf(fill, sizeof(fill),
		"INSERT INTO item SELECT value, 1, 0, 1700000000000 FROM"
		" (WITH RECURSIVE c(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM c WHERE value < %lld)"
		" SELECT value FROM c)",
		(long long)rows);
	exec(db, fill);
	begin = statement("BEGIN IMMEDIATE");
	commit = statement("COMMIT");
	mark = statement("SAVEPOINT one");
	keep = statement("RELEASE one");
	undo = statement("ROLLBACK TO one");
	read_row = statement("SELECT version, role FROM item WHERE n = ?1");
	update_row = statement("UPDATE item SET version = version + 1, role = ?2, at = ?3 WHERE n = ?1 AND version = ?4");
	add_event = statement("INSERT INTO event VALUES (?1, ?2, ?3, 7, ?4)");
}

static bool step_done(sqlite3_stmt *stmt)
{
	bool done = sqlite3_step(stmt) == SQLITE_DONE;

	(void)sqlite3_reset(stmt);
	return done;
}

static void must(sqlite3_stmt *stmt)
{
	if (!step_done(stmt))
		check(SQLITE_ERROR, db);
}

static bool change(struct work *work)
{
	static const char data[] = "{\"trigger\":\"start\",\"from\":\"queue\",\"to\":\"work\",\"origin\":\"user\"}";
	int role;

	(void)sqlite3_bind_int64(read_row, 1, work->row);
	if (sqlite3_step(read_row) != SQLITE_ROW) {
		(void)sqlite3_reset(read_row);
		return false;
	}
	work->version = sqlite3_column_int64(read_row, 0);
	role = sqlite3_column_int(read_row, 1);
	(void)sqlite3_reset(read_row);
	(void)sqlite3_bind_int64(update_row, 1, work->row);
	(void)sqlite3_bind_int(update_row, 2, (role + 1) % 3);
	(void)sqlite3_bind_int64(update_row, 3, 1700000000000 + next_seq);
	(void)sqlite3_bind_int64(update_row, 4, work->version);
	(void)sqlite3_bind_int64(add_event, 1, next_seq++);
	(void)sqlite3_bind_int64(add_event, 2, work->row);
	(void)sqlite3_bind_int64(add_event, 3, 1700000000000 + next_seq);
	(void)sqlite3_bind_text(add_event, 4, data, -1, SQLITE_STATIC);
	return step_done(update_row) && step_done(add_event);
}

static void answer(struct work *work)
{
	static const struct http_field fields[] = {{"Content-Type", {"application/json", 16}}};
	struct str body = str_printf(http_arena(work->x),
		"{\"ok\":%s,\"results\":[{\"ok\":true,\"op\":\"transition\",\"itemId\":%lld,\"previousRole\":\"queue\","
		"\"newRole\":\"work\",\"version\":%lld}],\"summary\":{\"ok\":1,\"failed\":0},\"meta\":{\"reqId\":\"7k2m9qxd\"}}",
		work->ok ? "true" : "false", (long long)work->row, (long long)work->version + 1);

	http_reply(work->x, 200, fields, 1, body);
	http_release(work->x);
}

static struct work *take(void)
{
	struct work *work;

	(void)pthread_mutex_lock(&lock);
	work = head;
	if (work != NULL && (head = work->next) == NULL)
		tail = &head;
	(void)pthread_mutex_unlock(&lock);
	return work;
}

static void run_batch(struct work *work)
{
	struct work *batch[BATCH];
	size_t n = 0;

	must(begin);
	for (; work != NULL; work = n < BATCH ? take() : NULL) {
		must(mark);
		work->ok = change(work);
		if (!work->ok)
			must(undo);
		must(keep);
		batch[n++] = work;
	}
	must(commit);
	for (size_t i = 0; i < n; i++)
		answer(batch[i]);
	if (wal_frames > LOG_FRAMES)
		(void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
	if (wal_frames < asked_at)
		asked_at = 0; /* the log has started over */
	if (wal_frames - asked_at >= CHECKPOINT_FRAMES) {
		asked_at = wal_frames;
		(void)pthread_mutex_lock(&lock);
		checkpoint_due = true;
		(void)pthread_cond_signal(&checkpoint);
		(void)pthread_mutex_unlock(&lock);
	}
}

static void *__attribute__((noreturn)) writer(void *context)
{
	(void)context;
	for (;;) {
		struct work *first;

		(void)pthread_mutex_lock(&lock);
		while (head == NULL)
			(void)pthread_cond_wait(&more, &lock);
		(void)pthread_mutex_unlock(&lock);
		first = take();
		if (first != NULL)
			run_batch(first);
	}
}

static void *__attribute__((noreturn)) checkpointer(void *context)
{
	sqlite3 *own = open_database();

	(void)context;
	for (;;) {
		(void)pthread_mutex_lock(&lock);
		while (!checkpoint_due)
			(void)pthread_cond_wait(&checkpoint, &lock);
		checkpoint_due = false;
		(void)pthread_mutex_unlock(&lock);
		(void)sqlite3_wal_checkpoint_v2(own, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	}
}

static int on_head(struct http_exchange *x, void *app, size_t *max_body)
{
	struct str token = http_header(x, "Authorization", NULL);
	unsigned char digest[32];

	(void)app;
	sha256(token.p == NULL ? "" : token.p, token.n, digest);
	*max_body = 65536;
	return 0;
}

static void on_request(struct http_exchange *x, void *app)
{
	struct json_error error;
	json_auto_t *body = json_read(http_body(x), &error);
	struct work *work = ARENA_NEW(http_arena(x), struct work);

	(void)app;
	work->x = x;
	work->row = json_integer_value(json_object_get(json_array_get(json_object_get(body, "ops"), 0), "itemId"));
	http_keep(x);
	(void)pthread_mutex_lock(&lock);
	*tail = work;
	tail = &work->next;
	(void)pthread_cond_signal(&more);
	(void)pthread_mutex_unlock(&lock);
}

static int serve(void)
{
	static const struct str address = {"127.0.0.1:0", 11};
	struct http_options options = {.listen = &address, .listen_count = 1, .on_head = on_head, .on_request = on_request};
	struct arena *arena = arena_create();
	struct http_server *http;
	struct failure f;
	pthread_t thread;

	failure_init(&f, arena);
	if (http_open(&options, &http, &f) != 0 || http_start(http, &f) != 0) {
		(void)fprintf(stderr, "bare: %.*s\n", STRF(f.message));
		return 1;
	}
	if (pthread_create(&thread, NULL, writer, NULL) != 0 || pthread_create(&thread, NULL, checkpointer, NULL) != 0)
		return 1;
	(void)printf("bare: ready %.*s\n", STRF(http_url(http, 0)));
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "write") == 0) {
		file = argv[2];
		prepare(strtoll(argv[3], NULL, 10));
		return serve();
	}
	if (argc == 4 && strcmp(argv[1], "disk") == 0)
		return bare_disk(argv[2], strtod(argv[3], NULL));
	if (argc == 2 && strcmp(argv[1], "loop") == 0)
		return bare_loop();
	(void)fprintf(stderr, "usage: bare write FILE ROWS | disk FILE SECONDS | loop\n");
	return 64;
}
