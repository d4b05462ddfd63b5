/* A reader's mapping of the database: kept over commits, and right whatever becomes of the file. */
#include "store/private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>
#undef fail /* ours, not the test library's */

struct pair {
	char dir[64], path[96];
	sqlite3 *writer, *reader;
};

static void run(sqlite3 *handle, const char *sql)
{
	assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
}

static int64_t number(sqlite3 *handle, const char *sql)
{
	sqlite3_stmt *stmt;
	int64_t value;

	assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	value = sqlite3_column_int64(stmt, 0);
	(void)sqlite3_finalize(stmt);
	return value;
}

/* In whole: the bytes of every row. */
static int64_t sum(sqlite3 *handle)
{
	return number(handle, "SELECT coalesce(sum(n * length(x) + unicode(substr(x, 2000))), 0) FROM t");
}

static int up(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	(void)snprintf(pair->dir, sizeof(pair->dir), "/tmp/dais-map-XXXXXX");
	assert_non_null(mkdtemp(pair->dir));
	(void)snprintf(pair->path, sizeof(pair->path), "%s/db", pair->dir);
	map_file_register();
	assert_int_equal(sqlite3_open(pair->path, &pair->writer), SQLITE_OK);
	run(pair->writer, "PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER PRIMARY KEY, x TEXT);"
			  "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 4000)"
			  " INSERT INTO t SELECT n, printf('%.*c', 2100, 'a') FROM c; PRAGMA wal_checkpoint(TRUNCATE)");
	assert_int_equal(sqlite3_open_v2(pair->path, &pair->reader, SQLITE_OPEN_READWRITE, MAP_FILE_VFS), SQLITE_OK);
	run(pair->reader, "PRAGMA mmap_size = 2147418112");
	*state = pair;
	return 0;
}

static int down(void **state)
{
	struct pair *pair = *state;
	char command[96];

	(void)sqlite3_close(pair->reader);
	(void)sqlite3_close(pair->writer);
	(void)snprintf(command, sizeof(command), "rm -rf %s", pair->dir);
	assert_int_equal(system(command), 0);
	free(pair);
	return 0;
}

/* KB of the file that are mapped and present. */
static long present_kb(const char *path)
{
	FILE *in = fopen("/proc/self/smaps", "re");
	char line[512];
	bool is_ours = false;
	long kb = 0, n;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in) != NULL) {
		if (strchr(line, '-') != NULL && strchr(line, ':') != NULL && strstr(line, " r") != NULL)
			is_ours = strstr(line, path) != NULL && strstr(line, "-shm") == NULL;
		if (is_ours && sscanf(line, "Rss: %ld", &n) == 1)
			kb += n;
	}
	(void)fclose(in);
	return kb;
}

static void a_commit_leaves_it_mapped(void **state)
{
	struct pair *pair = *state;

	for (int i = 0; i < 5; i++) { /* the first commit tells how large the file is */
		assert_int_equal(sum(pair->reader), sum(pair->writer));
		run(pair->writer, "UPDATE t SET x = 'b' || x WHERE n = 7");
		(void)number(pair->reader, "SELECT length(x) FROM t WHERE n = 7");
	}
	assert_true(present_kb(pair->path) > 4000);
}

static void it_follows_a_file_that_grows_and_shrinks(void **state)
{
	struct pair *pair = *state;

	for (int i = 0; i < 4; i++) {
		assert_int_equal(sum(pair->reader), sum(pair->writer));
		run(pair->writer, "INSERT INTO t (x) SELECT printf('%.*c', 2050, 'c') FROM t LIMIT 4000;"
				  "UPDATE t SET x = 'd' || x WHERE n % 5 = 0");
		assert_int_equal(sum(pair->reader), sum(pair->writer));
		run(pair->writer, "PRAGMA wal_checkpoint(TRUNCATE)");
		assert_int_equal(sum(pair->reader), sum(pair->writer));
		run(pair->writer, "DELETE FROM t WHERE n > 100; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
		assert_int_equal(sum(pair->reader), sum(pair->writer));
		/* shrunk and grown again between two reads */
		run(pair->writer, "DELETE FROM t WHERE n > 10; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
		run(pair->writer, "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 4000)"
				  " INSERT INTO t (x) SELECT printf('%.*c', 2100, 'e') FROM c; PRAGMA wal_checkpoint(TRUNCATE)");
	}
	assert_int_equal(number(pair->reader, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_commit_leaves_it_mapped, up, down),
		cmocka_unit_test_setup_teardown(it_follows_a_file_that_grows_and_shrinks, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
