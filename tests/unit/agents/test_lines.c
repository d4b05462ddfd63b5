/* The spool is read line by line, while it grows and when it will not any more. */
#include "agents/private.h"

#include "base/clock.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#undef fail /* ours, not the test library's */

struct place {
	char path[64];
	int dir, spool;
};

static int up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	(void)snprintf(place->path, sizeof(place->path), "/tmp/dais-lines-XXXXXX");
	assert_non_null(mkdtemp(place->path));
	place->dir = open(place->path, O_RDONLY | O_DIRECTORY);
	place->spool = openat(place->dir, FILE_SPOOL, O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_true(place->dir >= 0 && place->spool >= 0);
	*state = place;
	return 0;
}

static int down(void **state)
{
	struct place *place = *state;

	(void)unlinkat(place->dir, FILE_SPOOL, 0);
	(void)close(place->spool);
	(void)close(place->dir);
	(void)rmdir(place->path);
	free(place);
	return 0;
}

static void append(struct place *place, const char *bytes, size_t n)
{
	assert_int_equal(write(place->spool, bytes, n), n);
}

static void assert_line(struct lines *lines, struct place *place, struct str expected, int64_t end_expected)
{
	struct str line;
	int64_t end;

	assert_int_equal(lines_next(lines, place->dir, false, &line, &end), 1);
	assert_true(str_eq(line, expected));
	assert_int_equal(end, end_expected);
}

static void a_line_is_told_when_it_is_whole(void **state)
{
	struct place *place = *state;
	struct lines lines;
	struct str line;
	int64_t end;

	lines_init(&lines, 4);
	lines.line_bytes = 100;
	append(place, "old\none\n\ntw", 11);
	assert_line(&lines, place, STR("one"), 8);
	assert_line(&lines, place, STR(""), 9);
	assert_int_equal(lines_next(&lines, place->dir, false, &line, &end), 0);
	append(place, "o\n", 2);
	assert_line(&lines, place, STR("two"), 13);
	assert_int_equal(lines_next(&lines, place->dir, true, &line, &end), 0);
	assert_null(lines.p); /* nothing unread, nothing held */
	append(place, "cut", 3);
	assert_int_equal(lines_next(&lines, place->dir, true, &line, &end), 1);
	assert_true(str_eq(line, STR("cut")));
	assert_int_equal(end, 16);
	assert_int_equal(lines_next(&lines, place->dir, true, &line, &end), 0);
	lines_finish(&lines);
}

static void a_line_over_the_limit_is_never_told_nor_held_whole(void **state)
{
	struct place *place = *state;
	struct lines lines;
	struct str line;
	int64_t end;
	char *much = malloc(4 << 20);

	memset(much, 'x', 4 << 20);
	append(place, much, 4 << 20);
	lines_init(&lines, 0);
	lines.line_bytes = 100000;
	assert_int_equal(lines_next(&lines, place->dir, true, &line, &end), 0);
	assert_true((int64_t)lines.cap <= lines.line_bytes + LIMIT_AGENT_LINE_SLACK_BYTES);
	lines_finish(&lines);
	free(much);
}

/* A quadratic reader would look at 13 GB here. */
static void a_large_line_in_small_pieces_is_looked_at_once(void **state)
{
	struct place *place = *state;
	static char piece[16384];
	const int pieces = 1280;
	struct lines lines;
	struct str line;
	int64_t end, looked_at = 0;

	memset(piece, 'x', sizeof(piece));
	lines_init(&lines, 0);
	lines.line_bytes = 32 << 20;
	for (int i = 0; i < pieces; i++) {
		size_t before = lines.scanned;

		append(place, piece, sizeof(piece));
		assert_int_equal(lines_next(&lines, place->dir, false, &line, &end), 0);
		looked_at += (int64_t)(lines.scanned - before);
	}
	append(place, "\n", 1);
	assert_int_equal(lines_next(&lines, place->dir, false, &line, &end), 1);
	assert_int_equal(line.n, pieces * sizeof(piece));
	assert_int_equal(looked_at, pieces * (int64_t)sizeof(piece));
	lines_finish(&lines);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_line_is_told_when_it_is_whole),
		STORY(a_line_over_the_limit_is_never_told_nor_held_whole),
		STORY(a_large_line_in_small_pieces_is_looked_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
