/* The store by itself: savepoints, group commit, events, locks, foreign and newer files. */
#include "store/store.h"

#include "temp_store.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#undef fail /* ours, not the test library's */

SQL(SQL_SET, "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value");
SQL(SQL_GET, "SELECT value FROM meta WHERE key = $1");
SQL(SQL_COUNT, "SELECT count(*) FROM meta");
SQL(SQL_SECOND_FIRST, "SELECT $2, $1");

struct place {
	char dir[TEMP_DIR_SIZE];
	char path[96];
	struct arena *arena;
	struct failure f;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	temp_dir_make(place->dir, "store");
	(void)snprintf(place->path, sizeof(place->path), "%s/dais.db", place->dir);
	place->arena = arena_create();
	failure_init(&place->f, place->arena);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	temp_dir_remove(place->dir);
	arena_destroy(place->arena);
	free(place);
	return 0;
}

static int open_store(struct place *place, struct store **out)
{
	struct store_options options = {.path = place->path, .may_create = true, .is_exclusive = true};

	return store_open(&options, out, &place->f);
}

static struct store *opened(struct place *place)
{
	struct store *store;

	assert_int_equal(open_store(place, &store), 0);
	return store;
}

struct pair {
	const char *key, *value;
	int rc; /* what the mutation returns */
};

static int put(struct tx *tx, void *arg, struct failure *f)
{
	struct pair *pair = arg;

	if (tx_run(tx, f, SQL_SET, "zz", pair->key, pair->value) < 0)
		return -1;
	if (event_add(tx, EVENT_ITEM_CREATED, 0, 0, (struct id){{0}}, STR("{}"), f) != 0)
		return -1;
	return pair->rc == 0 ? 0 : fail(f, FAIL_DUPLICATE, "as asked");
}

static int write_pair(struct place *place, struct store *store, const char *key, const char *value, int rc)
{
	struct pair pair = {key, value, rc};

	return store_write(store, put, &pair, &actor_system, place->arena, &place->f);
}

static struct str value_of(struct place *place, struct store *store, const char *key)
{
	struct query q;
	struct snapshot s;
	struct str value = STR_NONE;

	assert_int_equal(snapshot_begin(store, place->arena, &s, &place->f), 0);
	assert_int_equal(query(&s, &q, &place->f, SQL_GET, "z", key), 0);
	if (query_next(&q, &place->f) == 1)
		value = col_str(&q, 0);
	query_end(&q);
	snapshot_end(&s);
	return value;
}

static void test_what_was_written_is_there_after_opening_again(void **state)
{
	struct place *place = *state;
	struct store *store = opened(place);
	int64_t newest;

	assert_int_equal(write_pair(place, store, "a", "1", 0), 0);
	newest = store_newest(store);
	assert_true(newest == EVENT_FIRST_SEQ + 1);
	store_close(store);
	store = opened(place);
	assert_true(str_eq(value_of(place, store, "a"), STR("1")));
	assert_true(store_newest(store) == newest);
	assert_int_equal(write_pair(place, store, "a", "2", 0), 0);
	assert_true(store_newest(store) == newest + 1);
	store_close(store);
}

static void test_a_failing_mutation_leaves_neither_row_nor_event(void **state)
{
	struct place *place = *state;
	struct store *store = opened(place);

	assert_int_equal(write_pair(place, store, "a", "1", -1), -1);
	assert_int_equal(place->f.code, FAIL_DUPLICATE);
	assert_null(value_of(place, store, "a").p);
	assert_true(store_newest(store) == EVENT_FIRST_SEQ);
	assert_int_equal(write_pair(place, store, "b", "1", 0), 0);
	assert_true(store_newest(store) == EVENT_FIRST_SEQ + 1);
	store_close(store);
}

static int nested(struct tx *tx, void *arg, struct failure *f)
{
	(void)arg;
	if (tx_run(tx, f, SQL_SET, "zz", "outer", "kept") < 0 || tx_mark(tx, f) != 0 ||
		tx_run(tx, f, SQL_SET, "zz", "inner", "undone") < 0 ||
		event_add(tx, EVENT_ITEM_CREATED, 0, 0, (struct id){{0}}, STR("{}"), f) != 0 || tx_undo(tx, f) != 0)
		return -1;
	if (tx_mark(tx, f) != 0 || tx_run(tx, f, SQL_SET, "zz", "third", "kept") < 0 || tx_keep(tx, f) != 0)
		return -1;
	return 0;
}

static void test_a_mark_undoes_only_what_came_after_it(void **state)
{
	struct place *place = *state;
	struct store *store = opened(place);

	assert_int_equal(store_write(store, nested, NULL, &actor_system, place->arena, &place->f), 0);
	assert_non_null(value_of(place, store, "outer").p);
	assert_null(value_of(place, store, "inner").p);
	assert_non_null(value_of(place, store, "third").p);
	assert_true(store_newest(store) == EVENT_FIRST_SEQ);
	store_close(store);
}

static void test_parameters_are_positions_not_names(void **state)
{
	struct place *place = *state;
	struct store *store = opened(place);
	struct query q;
	struct snapshot s;

	assert_int_equal(snapshot_begin(store, place->arena, &s, &place->f), 0);
	assert_int_equal(query(&s, &q, &place->f, SQL_SECOND_FIRST, "ii", INT64_C(1), INT64_C(2)), 0);
	assert_int_equal(query_next(&q, &place->f), 1);
	assert_int_equal(col_int(&q, 0), 2);
	assert_int_equal(col_int(&q, 1), 1);
	query_end(&q);
	snapshot_end(&s);
	store_close(store);
}

#define CALLERS 16
#define ROUNDS 50

struct crowd {
	struct place *place;
	struct store *store;
	int number;
	atomic_int *failures;
};

static void *one_of_many(void *arg)
{
	struct crowd *crowd = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct arena *arena = arena_create();
		struct pair pair = {arena_printf(arena, "%d-%d", crowd->number, i), "x", i % 5 == 4 ? -1 : 0};
		struct failure f;
		int rc;

		failure_init(&f, arena);
		rc = store_write(crowd->store, put, &pair, &actor_system, arena, &f);
		if (rc != pair.rc)
			atomic_fetch_add(crowd->failures, 1);
		arena_destroy(arena);
	}
	return NULL;
}

static void test_callers_that_share_a_commit_do_not_share_a_failure(void **state)
{
	struct place *place = *state;
	struct store *store = opened(place);
	pthread_t threads[CALLERS];
	struct crowd crowd[CALLERS];
	atomic_int failures = 0;
	struct snapshot s;
	int64_t rows;

	for (int i = 0; i < CALLERS; i++) {
		crowd[i] = (struct crowd){place, store, i, &failures};
		assert_int_equal(pthread_create(&threads[i], NULL, one_of_many, &crowd[i]), 0);
	}
	for (int i = 0; i < CALLERS; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&failures), 0);
	assert_int_equal(snapshot_begin(store, place->arena, &s, &place->f), 0);
	assert_int_equal(query_int(&s, &rows, &place->f, SQL_COUNT, ""), 1);
	snapshot_end(&s);
	assert_int_equal(rows, CALLERS * ROUNDS * 4 / 5);
	assert_true(store_newest(store) == EVENT_FIRST_SEQ + rows);
	store_close(store);
}

static void count_wake(void *context, int64_t newest)
{
	atomic_store((_Atomic int64_t *)context, newest);
}

static void test_followers_hear_of_a_commit_before_its_caller(void **state)
{
	struct place *place = *state;
	struct store *store = opened(place);
	_Atomic int64_t heard = 0;

	store_follow(store, count_wake, &heard);
	assert_int_equal(write_pair(place, store, "a", "1", 0), 0);
	assert_true(atomic_load(&heard) == store_newest(store));
	store_close(store);
}

static void test_a_second_server_is_refused_and_told_the_pid(void **state)
{
	struct place *place = *state;
	struct store *store = opened(place);
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct store *second;
		char pid[32];

		(void)snprintf(pid, sizeof(pid), "(pid %d)", (int)getppid());
		_exit(open_store(place, &second) == -1 && place->f.code == FAIL_STATE_OWNED &&
					strstr(str_z(place->arena, place->f.message), pid) != NULL
				? 0
				: 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	store_close(store);
}

static void write_file(struct place *place, const void *bytes, size_t n)
{
	int fd = open(place->path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	(void)close(fd);
}

static void test_a_file_of_noise_is_refused_untouched(void **state)
{
	struct place *place = *state;
	char bytes[4096];
	struct store *store;
	struct stat before;
	struct stat after;

	memset(bytes, 'x', sizeof(bytes));
	write_file(place, bytes, sizeof(bytes));
	(void)stat(place->path, &before);
	assert_int_equal(open_store(place, &store), -1);
	assert_int_equal(place->f.code, FAIL_SCHEMA_NEWER);
	(void)stat(place->path, &after);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
}

static void test_an_empty_file_becomes_a_database(void **state)
{
	struct place *place = *state;
	struct store *store;

	write_file(place, "", 0);
	store = opened(place);
	store_close(store);
}

static void test_a_newer_schema_is_refused_untouched(void **state)
{
	struct place *place = *state;
	struct store *store = opened(place);
	unsigned char version[4] = {0, 0, 1, 0};
	int fd;

	store_close(store);
	fd = open(place->path, O_WRONLY);
	assert_int_equal(pwrite(fd, version, 4, 60), 4);
	(void)close(fd);
	assert_int_equal(open_store(place, &store), -1);
	assert_int_equal(place->f.code, FAIL_SCHEMA_NEWER);
	assert_non_null(strstr(str_z(place->arena, place->f.message), "256"));
}

static void test_a_database_with_two_names_is_refused(void **state)
{
	struct place *place = *state;
	struct store *store = opened(place);
	char other[128];

	store_close(store);
	(void)snprintf(other, sizeof(other), "%s/other.db", place->dir);
	assert_int_equal(link(place->path, other), 0);
	assert_int_equal(open_store(place, &store), -1);
	assert_int_equal(place->f.code, FAIL_CANNOT_CREATE);
}

static void keep_line(void *context, struct str line)
{
	(void)line;
	(*(int *)context)++;
}

static void test_a_backup_made_while_writing_is_whole(void **state)
{
	struct place *place = *state;
	struct store *store = opened(place);
	struct place copy = {.arena = place->arena};
	struct store *restored;
	struct snapshot s;
	int findings = 0;

	failure_init(&copy.f, place->arena);
	assert_int_equal(write_pair(place, store, "a", "1", 0), 0);
	(void)snprintf(copy.path, sizeof(copy.path), "%s/copy.db", place->dir);
	assert_int_equal(store_backup(place->path, copy.path, &place->f), 0);
	restored = opened(&copy);
	assert_true(str_eq(value_of(&copy, restored, "a"), STR("1")));
	assert_int_equal(snapshot_begin(restored, place->arena, &s, &place->f), 0);
	assert_int_equal(store_check(&s, keep_line, &findings, &place->f), 0);
	snapshot_end(&s);
	assert_int_equal(findings, 0);
	store_close(restored);
	store_close(store);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_what_was_written_is_there_after_opening_again),
		CASE(test_a_failing_mutation_leaves_neither_row_nor_event),
		CASE(test_a_mark_undoes_only_what_came_after_it),
		CASE(test_parameters_are_positions_not_names),
		CASE(test_callers_that_share_a_commit_do_not_share_a_failure),
		CASE(test_followers_hear_of_a_commit_before_its_caller),
		CASE(test_a_second_server_is_refused_and_told_the_pid),
		CASE(test_a_file_of_noise_is_refused_untouched),
		CASE(test_an_empty_file_becomes_a_database),
		CASE(test_a_newer_schema_is_refused_untouched),
		CASE(test_a_database_with_two_names_is_refused),
		CASE(test_a_backup_made_while_writing_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
