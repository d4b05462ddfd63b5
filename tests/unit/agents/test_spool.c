/* What a program says: lines are measured as they come, a full disk makes it wait, and space is given back. */
#include "agents/private.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#undef fail /* ours, not the test library's */

struct place {
	char path[64];
	int dir;
	struct spool spool;
};

static int up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	(void)snprintf(place->path, sizeof(place->path), "/tmp/dais-spool-XXXXXX");
	assert_non_null(mkdtemp(place->path));
	place->dir = open(place->path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(spool_open(&place->spool, place->dir, 10), 0);
	*state = place;
	return 0;
}

static int down(void **state)
{
	struct place *place = *state;

	(void)unlinkat(place->dir, FILE_SPOOL, 0);
	(void)unlinkat(place->dir, FILE_STDERR, 0);
	(void)close(place->spool.fd);
	(void)close(place->dir);
	(void)rmdir(place->path);
	free(place);
	return 0;
}

static void assert_holds(struct place *place, const char *name, struct str expected)
{
	char *bytes = malloc(expected.n + 1);
	int fd = openat(place->dir, name, O_RDONLY);

	assert_int_equal(read(fd, bytes, expected.n + 1), expected.n);
	assert_memory_equal(bytes, expected.p, expected.n);
	(void)close(fd);
	free(bytes);
}

static void a_line_is_measured_over_all_its_pieces(void **state)
{
	struct place *place = *state;
	struct spool *spool = &place->spool;

	spool_add(spool, "12345", 5);
	assert_false(spool->has_line);
	spool_add(spool, "67890\n1234567890\n12345", 22);
	assert_true(spool->has_line);
	assert_false(spool->is_too_long);
	spool_add(spool, "67890", 5);
	assert_false(spool->is_too_long);
	spool_add(spool, "x\nafter\n", 8);
	assert_true(spool->is_too_long);
	spool_add(spool, "nothing\n", 8);
	assert_holds(place, FILE_SPOOL, STR("1234567890\n1234567890\n1234567890"));
}

static void on_a_full_disk_the_rest_waits_in_order(void **state)
{
	struct place *place = *state;
	struct rlimit limit, before;

	(void)signal(SIGXFSZ, SIG_IGN); /* a limit on the file's size stands for the full disk */
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 6;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	spool_add(&place->spool, "abc\ndef\nghi\n", 12);
	assert_int_equal(place->spool.written, 6);
	assert_true(spool_is_full(&place->spool));
	assert_false(spool_flush(&place->spool));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(spool_flush(&place->spool));
	assert_false(spool_is_full(&place->spool));
	assert_holds(place, FILE_SPOOL, STR("abc\ndef\nghi\n"));
}

static void it_is_full_until_enough_was_stored_and_then_gives_space_back(void **state)
{
	struct place *place = *state;
	struct spool *spool = &place->spool;
	char *lines = malloc(LIMIT_AGENT_READ_BYTES);
	struct stat st;

	for (size_t i = 0; i < LIMIT_AGENT_READ_BYTES; i++)
		lines[i] = i % 8 == 7 ? '\n' : 'x';
	while (!spool_is_full(spool))
		spool_add(spool, lines, LIMIT_AGENT_READ_BYTES);
	assert_int_equal(spool->written, LIMIT_AGENT_SPOOL_BYTES);
	spool_consumed(spool, LIMIT_AGENT_SPOOL_BYTES / 2 + 8);
	assert_false(spool_is_full(spool));
	spool_consumed(spool, 8); /* an old word changes nothing */
	assert_false(spool_is_full(spool));
	assert_int_equal(fstat(spool->fd, &st), 0);
	assert_int_equal(st.st_size, LIMIT_AGENT_SPOOL_BYTES);
	assert_true(st.st_blocks * 512 <= LIMIT_AGENT_SPOOL_BYTES / 2 + 2 * LIMIT_AGENT_PUNCH_BYTES);
	free(lines);
}

static void the_longest_line_fits_whatever_the_limit(void **state)
{
	struct place *place = *state;
	struct spool spool;

	(void)unlinkat(place->dir, FILE_SPOOL, 0);
	assert_int_equal(spool_open(&spool, place->dir, 4 * (int64_t)LIMIT_AGENT_SPOOL_BYTES), 0);
	assert_true(spool.max_unread > spool.line_bytes);
	(void)close(spool.fd);
}

static void of_stderr_the_newest_part_is_kept(void **state)
{
	struct place *place = *state;
	struct errlog log;
	char *expected = malloc(LIMIT_AGENT_STDERR_BYTES);

	assert_int_equal(errlog_open(&log, place->dir), 0);
	for (int i = 0; i < 100000; i++) {
		char line[16];

		(void)snprintf(line, sizeof(line), "%07d\n", i);
		errlog_add(&log, line, 8);
		assert_true(log.n <= 2 * (int64_t)LIMIT_AGENT_STDERR_BYTES);
	}
	errlog_trim(&log);
	for (int i = 0; i < LIMIT_AGENT_STDERR_BYTES / 8; i++) {
		char line[16];

		(void)snprintf(line, sizeof(line), "%07d\n", 100000 - LIMIT_AGENT_STDERR_BYTES / 8 + i);
		memcpy(expected + 8 * i, line, 8);
	}
	assert_holds(place, FILE_STDERR, (struct str){expected, LIMIT_AGENT_STDERR_BYTES});
	(void)close(log.fd);
	free(expected);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_line_is_measured_over_all_its_pieces),
		STORY(on_a_full_disk_the_rest_waits_in_order),
		STORY(it_is_full_until_enough_was_stored_and_then_gives_space_back),
		STORY(the_longest_line_fits_whatever_the_limit),
		STORY(of_stderr_the_newest_part_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
