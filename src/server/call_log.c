/* The call log: one row per tool call, written in batches outside the call's own transaction. Losing a row
 * is acceptable; delaying or failing a call is not. Bodies of arguments are never logged. */
#include "server/private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

/* One change of the store: calls that come after it wait for no more than these. */
#define BATCH_ROWS 32
#define FLUSH_MS 250

struct row {
	struct row *next;
	char req_id[REQ_ID_SIZE];
	char principal[128], surface[8], tool[24], operation[68];
	const char *error_code;
	int64_t at, latency_us;
	size_t bytes_in, bytes_out;
	int batch_size, failed_count;
	bool is_replayed;
};

struct call_log {
	struct server *server;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct row *head, **tail; /* guarded by lock */
	size_t length;
	int64_t dropped;
	bool closing;
};

SQL(SQL_CALL_LOG_ADD,
	"INSERT INTO call_log (req_id, at, principal, surface, tool, operation, outcome, error_code, latency_us,"
	" bytes_in, bytes_out, batch_size, failed_count, replayed)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)");

static int add_row(struct tx *tx, const struct row *row, struct failure *f)
{
	return tx_run(tx, f, SQL_CALL_LOG_ADD, "zizzzzzziiiiii", row->req_id, row->at, row->principal,
		       row->surface, row->tool, row->operation, row->error_code == NULL ? "ok" : "error",
		       row->error_code, row->latency_us, (int64_t)row->bytes_in, (int64_t)row->bytes_out,
		       (int64_t)row->batch_size, (int64_t)row->failed_count, (int64_t)row->is_replayed) < 0
		? -1
		: 0;
}

static int add_rows(struct tx *tx, void *arg, struct failure *f)
{
	for (const struct row *row = arg; row != NULL; row = row->next)
		if (add_row(tx, row, f) != 0)
			return -1;
	return 0;
}

static void free_rows(struct row *rows)
{
	while (rows != NULL) {
		struct row *next = rows->next;

		free(rows);
		rows = next;
	}
}

/* At most BATCH_ROWS from the front. */
static struct row *take(struct call_log *log)
{
	struct row *rows = log->head;
	struct row **end = &rows;

	for (int i = 0; i < BATCH_ROWS && *end != NULL; i++) {
		end = &(*end)->next;
		log->length--;
	}
	log->head = *end;
	*end = NULL;
	if (log->head == NULL)
		log->tail = &log->head;
	return rows;
}

static void *flush(void *context)
{
	struct call_log *log = context;
	bool has_more = false;

	(void)prctl(PR_SET_NAME, "call-log");
	for (;;) {
		AUTO(arena_destroyp) struct arena *arena = NULL;
		struct timespec pause = {.tv_nsec = FLUSH_MS * 1000000L};
		struct failure f;
		struct row *rows;
		bool closing;

		(void)pthread_mutex_lock(&log->lock);
		while (log->head == NULL && !log->closing)
			(void)pthread_cond_wait(&log->more, &log->lock);
		closing = log->closing;
		(void)pthread_mutex_unlock(&log->lock);
		if (!closing && !has_more)
			(void)nanosleep(&pause, NULL); /* let a batch gather */
		(void)pthread_mutex_lock(&log->lock);
		rows = take(log);
		has_more = log->head != NULL;
		(void)pthread_mutex_unlock(&log->lock);
		if (rows == NULL && closing)
			return NULL;
		arena = arena_create();
		failure_init(&f, arena);
		(void)store_write(log->server->store, add_rows, rows, &actor_system, arena, &f);
		free_rows(rows);
	}
}

struct call_log *call_log_create(struct server *server)
{
	struct call_log *log = calloc(1, sizeof(*log));

	if (log == NULL)
		abort();
	log->server = server;
	log->tail = &log->head;
	(void)pthread_mutex_init(&log->lock, NULL);
	(void)pthread_cond_init(&log->more, NULL);
	log->has_thread = pthread_create(&log->thread, NULL, flush, log) == 0;
	return log;
}

static void copy(char *to, size_t size, struct str from)
{
	size_t n = utf8_cut(from, size - 1);

	memcpy(to, from.p, n);
	to[n] = '\0';
}

void call_log_add(struct call_log *log, const struct tool_call *call, struct str operation, int64_t latency_us,
	size_t bytes_in)
{
	struct row *row = calloc(1, sizeof(*row));
	bool dropped;

	if (row == NULL)
		abort();
	copy(row->req_id, sizeof(row->req_id), str_of(call->caller.req_id));
	copy(row->principal, sizeof(row->principal), call->caller.actor.id);
	copy(row->surface, sizeof(row->surface), call->caller.surface);
	copy(row->tool, sizeof(row->tool), str_of(call->tool->name));
	copy(row->operation, sizeof(row->operation), operation);
	row->error_code = call->error_code;
	row->at = clock_wall_ms();
	row->latency_us = latency_us;
	row->bytes_in = bytes_in;
	row->bytes_out = call->envelope.n;
	row->batch_size = call->batch_size;
	row->failed_count = call->failed_count;
	row->is_replayed = call->is_replayed;
	(void)pthread_mutex_lock(&log->lock);
	dropped = log->length >= LIMIT_CALL_LOG_QUEUE || log->closing || !log->has_thread;
	if (dropped) {
		log->dropped++;
	} else {
		*log->tail = row;
		log->tail = &row->next;
		log->length++;
		(void)pthread_cond_signal(&log->more);
	}
	(void)pthread_mutex_unlock(&log->lock);
	if (dropped)
		free(row);
}

void call_log_stop(struct call_log *log)
{
	if (log == NULL)
		return;
	(void)pthread_mutex_lock(&log->lock);
	log->closing = true;
	(void)pthread_cond_signal(&log->more);
	(void)pthread_mutex_unlock(&log->lock);
	if (log->has_thread)
		(void)pthread_join(log->thread, NULL);
	if (log->dropped > 0)
		log_line(LOG_WARN, "server", "call log rows were dropped", {"rows", LOG_INT(log->dropped)});
	(void)pthread_mutex_destroy(&log->lock);
	(void)pthread_cond_destroy(&log->more);
	free(log);
}
