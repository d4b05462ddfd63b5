/* The writer thread: callers that share a batch, what each may cost the others, and how the log grows. */
#include "store/store.h"

#include "base/limits.h"
#include "temp_store.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#undef fail /* ours, not the test library's */

SQL(SQL_SET, "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value");
SQL(SQL_GET, "SELECT 1 FROM meta WHERE key = $1");
SQL(SQL_KNOWN, "SELECT count(*) FROM principal WHERE id = $1");

struct place {
	char dir[TEMP_DIR_SIZE], path[96], log[96];
	struct arena *arena;
	struct failure f;
	struct store *store;
	pthread_mutex_t lock; /* held while a batch gathers behind the first caller */
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	temp_dir_make(place->dir, "writer");
	(void)snprintf(place->path, sizeof(place->path), "%s/dais.db", place->dir);
	(void)snprintf(place->log, sizeof(place->log), "%s/dais.db-wal", place->dir);
	place->arena = arena_create();
	failure_init(&place->f, place->arena);
	place->store = temp_store_open(place->dir, "dais.db");
	(void)pthread_mutex_init(&place->lock, NULL);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	store_close(place->store);
	temp_dir_remove(place->dir);
	arena_destroy(place->arena);
	free(place);
	return 0;
}

/* ---- callers ---- */

enum manner { KEEPS, REFUSES_FIRST, REFUSES_LATE, REFUSES_LATE_INSIDE };

struct caller {
	struct store_job job;
	struct place *place;
	const char *key;
	enum manner manner;
	int rc;
	enum failure_code code;
	bool is_done; /* guarded by the place's lock */
};

static int change(struct tx *tx, void *arg, struct failure *f)
{
	struct caller *caller = arg;

	if (caller->manner == REFUSES_FIRST)
		return fail(f, FAIL_DUPLICATE, "as asked");
	if (tx_run(tx, f, SQL_SET, "zz", caller->key, "x") < 0)
		return -1;
	if (caller->manner == KEEPS)
		return 0;
	/* The way of the tools: undo, answer, go on as if nothing had been. */
	if (caller->manner == REFUSES_LATE_INSIDE && tx_undo(tx, f) != 0)
		return -1;
	return fail(f, FAIL_DUPLICATE, "as asked");
}

static void done(void *arg, int rc, struct failure *f)
{
	struct caller *caller = arg;

	(void)pthread_mutex_lock(&caller->place->lock);
	caller->rc = rc;
	caller->code = f->code;
	caller->is_done = true;
	(void)pthread_mutex_unlock(&caller->place->lock);
}

static int wait_for_the_others(struct tx *tx, void *arg, struct failure *f)
{
	struct place *place = arg;

	(void)tx;
	(void)f;
	(void)pthread_mutex_lock(&place->lock);
	(void)pthread_mutex_unlock(&place->lock);
	return 0;
}

static void nothing(void *arg, int rc, struct failure *f)
{
	(void)arg;
	(void)rc;
	(void)f;
}

static bool is_done(struct caller *caller)
{
	bool yes;

	(void)pthread_mutex_lock(&caller->place->lock);
	yes = caller->is_done;
	(void)pthread_mutex_unlock(&caller->place->lock);
	return yes;
}

/* All in one batch, behind a caller that waits until they are queued. */
static void run_together(struct place *place, struct caller *callers, size_t n)
{
	struct store_job first = {.run = wait_for_the_others,
		.done = nothing,
		.arg = place,
		.actor = &actor_system,
		.arena = place->arena};

	(void)pthread_mutex_lock(&place->lock);
	assert_int_equal(store_submit(place->store, &first, &place->f), 0);
	for (size_t i = 0; i < n; i++) {
		callers[i].place = place;
		callers[i].job.run = change;
		callers[i].job.done = done;
		callers[i].job.arg = &callers[i];
		callers[i].job.actor = &actor_system;
		callers[i].job.arena = arena_create();
		assert_int_equal(store_submit(place->store, &callers[i].job, &place->f), 0);
	}
	(void)pthread_mutex_unlock(&place->lock);
	for (size_t i = 0; i < n; i++) {
		while (!is_done(&callers[i]))
			(void)usleep(200);
		arena_destroy(callers[i].job.arena);
	}
}

static bool is_there(struct place *place, const char *key)
{
	struct snapshot s;
	int64_t one;
	int rc;

	assert_int_equal(snapshot_begin(place->store, place->arena, &s, &place->f), 0);
	rc = query_int(&s, &one, &place->f, SQL_GET, "z", key);
	snapshot_end(&s);
	assert_true(rc >= 0);
	return rc == 1;
}

static void test_a_caller_that_refuses_before_any_change_costs_the_others_nothing(void **state)
{
	struct place *place = *state;
	struct caller callers[] = {
		{.key = "a"},
		{.key = "b", .manner = REFUSES_FIRST, .job.fails_clean = true},
		{.key = "c", .job.fails_clean = true},
	};

	run_together(place, callers, 3);
	assert_int_equal(callers[0].rc, 0);
	assert_int_equal(callers[1].rc, -1);
	assert_int_equal(callers[1].code, FAIL_DUPLICATE);
	assert_int_equal(callers[2].rc, 0);
	assert_true(is_there(place, "a") && !is_there(place, "b") && is_there(place, "c"));
}

static void test_a_savepoint_undoes_a_late_refusal_alone(void **state)
{
	struct place *place = *state;
	struct caller callers[] = {{.key = "a"}, {.key = "b", .manner = REFUSES_LATE}, {.key = "c"}};

	run_together(place, callers, 3);
	assert_int_equal(callers[1].code, FAIL_DUPLICATE);
	assert_true(is_there(place, "a") && !is_there(place, "b") && is_there(place, "c"));
}

static void check_unclean(struct place *place, enum manner manner)
{
	struct caller callers[] = {
		{.key = "a"}, {.key = "b", .manner = manner, .job.fails_clean = true}, {.key = "c"}};

	run_together(place, callers, 3);
	/* Nobody is told that something stands which does not, and everybody may try again. */
	assert_int_equal(callers[0].rc, -1);
	assert_int_equal(callers[0].code, FAIL_UNAVAILABLE);
	assert_int_equal(callers[1].rc, -1);
	assert_int_equal(callers[1].code, FAIL_UNAVAILABLE);
	assert_false(is_there(place, "a"));
	assert_false(is_there(place, "b"));
	assert_true(callers[2].rc == 0 ? is_there(place, "c") : !is_there(place, "c"));
}

static void test_a_broken_promise_to_refuse_early_undoes_the_whole_batch(void **state)
{
	check_unclean(*state, REFUSES_LATE);
}

static void test_a_broken_promise_is_not_hidden_by_the_callers_own_undo(void **state)
{
	check_unclean(*state, REFUSES_LATE_INSIDE);
}

/* ---- who wrote ---- */

static int write_as(struct tx *tx, void *arg, struct failure *f)
{
	if (event_add(tx, EVENT_ITEM_CREATED, 0, 0, (struct id){{0}}, STR("{}"), f) != 0)
		return -1;
	return *(const bool *)arg ? 0 : fail(f, FAIL_DUPLICATE, "as asked");
}

static void test_an_author_whose_first_change_was_undone_is_made_with_the_next(void **state)
{
	struct place *place = *state;
	struct actor actor = {.id = STR("user:new"), .kind = PRINCIPAL_USER, .req_id = ""};
	bool keeps = false;
	struct snapshot s;
	int64_t known;

	assert_int_equal(store_write(place->store, write_as, &keeps, &actor, place->arena, &place->f), -1);
	keeps = true;
	for (int i = 0; i < 2; i++)
		assert_int_equal(store_write(place->store, write_as, &keeps, &actor, place->arena, &place->f), 0);
	assert_int_equal(snapshot_begin(place->store, place->arena, &s, &place->f), 0);
	assert_int_equal(query_int(&s, &known, &place->f, SQL_KNOWN, "s", actor.id), 1);
	snapshot_end(&s);
	assert_int_equal(known, 1);
}

/* ---- the log ---- */

static int write_much(struct tx *tx, void *arg, struct failure *f)
{
	static char letter = 'a'; /* another each time: SQLite does not write what is the same */
	char *text = arena_alloc(tx->snapshot.arena, 1501);
	char key[16];

	letter = letter == 'z' ? 'a' : (char)(letter + 1);
	memset(text, letter, 1500);
	for (int i = 0; i < *(const int *)arg; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		if (tx_run(tx, f, SQL_SET, "zz", key, text) < 0)
			return -1;
	}
	return 0;
}

static void commit_rows(struct place *place, int rows)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();

	assert_int_equal(store_write(place->store, write_much, &rows, &actor_system, arena, &place->f), 0);
}

/* Write calls that this process has made. */
static int64_t writes_made(void)
{
	FILE *io = fopen("/proc/self/io", "r");
	char line[100];
	int64_t calls = -1;

	while (io != NULL && fgets(line, sizeof(line), io) != NULL)
		(void)sscanf(line, "syscw: %" SCNd64, &calls);
	if (io != NULL)
		(void)fclose(io);
	return calls;
}

static void test_a_commit_of_many_pages_is_written_in_few_pieces(void **state)
{
	struct place *place = *state;
	int64_t before;

	commit_rows(place, 200); /* makes the pages */
	before = writes_made();
	if (before < 0)
		skip(); /* a kernel without task accounting */
	commit_rows(place, 200);
	/* 300 KB: SQLite by itself would make two calls for each of 200 pages */
	assert_in_range(writes_made() - before, 1, 20);
}

static void test_the_log_starts_over_under_unbroken_load(void **state)
{
	struct place *place = *state;
	struct stat log;

	for (int i = 0; i < 220; i++)
		commit_rows(place, 200);
	assert_int_equal(stat(place->log, &log), 0);
	/* 90 MB went through it */
	assert_in_range(log.st_size, 1, LIMIT_WAL_BYTES + 4 * 1024 * 1024);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_a_caller_that_refuses_before_any_change_costs_the_others_nothing),
		CASE(test_a_savepoint_undoes_a_late_refusal_alone),
		CASE(test_a_broken_promise_to_refuse_early_undoes_the_whole_batch),
		CASE(test_a_broken_promise_is_not_hidden_by_the_callers_own_undo),
		CASE(test_an_author_whose_first_change_was_undone_is_made_with_the_next),
		CASE(test_a_commit_of_many_pages_is_written_in_few_pieces),
		CASE(test_the_log_starts_over_under_unbroken_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
