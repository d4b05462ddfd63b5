/* The small files of a host say again what was written, or nothing. */
#include "agents/private.h"

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
	int dir;
	struct arena *arena;
};

static int up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	(void)snprintf(place->path, sizeof(place->path), "/tmp/dais-record-XXXXXX");
	assert_non_null(mkdtemp(place->path));
	place->dir = open(place->path, O_RDONLY | O_DIRECTORY);
	place->arena = arena_create();
	*state = place;
	return 0;
}

static int down(void **state)
{
	static const char *const names[] = {FILE_RECORD, FILE_EXIT, FILE_STDERR};
	struct place *place = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlinkat(place->dir, names[i], 0);
	(void)close(place->dir);
	assert_int_equal(rmdir(place->path), 0); /* nothing else was left there */
	arena_destroy(place->arena);
	free(place);
	return 0;
}

static void put(struct place *place, const char *name, const char *bytes, size_t n)
{
	int fd = openat(place->dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, bytes, n), n);
	(void)close(fd);
}

static void a_record_is_read_back(void **state)
{
	struct place *place = *state;
	const struct host_record written = {
		.host = {11, 12}, .agent = {13, INT64_MAX}, .line_bytes = 14, .marker = STR("DAIS_ATTEMPT=\"x\""), .cgroup = STR_NONE};
	struct host_record got;

	assert_int_equal(record_read(place->dir, place->arena, &got), -1);
	assert_int_equal(record_write(place->dir, &written), 0);
	assert_int_equal(record_read(place->dir, place->arena, &got), 0);
	assert_true(got.host.pid == 11 && got.host.started == 12 && got.agent.pid == 13 && got.agent.started == INT64_MAX);
	assert_int_equal(got.line_bytes, 14);
	assert_true(str_eq(got.marker, written.marker));
	assert_int_equal(got.cgroup.n, 0);
	assert_true(got.is_same_boot);
}

static void an_exit_is_read_back_or_refused(void **state)
{
	struct place *place = *state;
	const struct host_exit written = {.code = -1, .signal = 9, .cause = "deadline", .is_cleared = true, .at = 1700000000000};
	struct host_exit got;

	assert_int_equal(exit_read(place->dir, &got), -1);
	assert_int_equal(exit_write(place->dir, &written), 0);
	assert_int_equal(exit_read(place->dir, &got), 0);
	assert_true(got.code == -1 && got.signal == 9 && got.is_cleared && got.at == written.at);
	assert_string_equal(got.cause, "deadline");
	put(place, FILE_EXIT, "{\"code\":0,\"cause\":\"bored\"}\n", 27);
	assert_int_equal(exit_read(place->dir, &got), -1);
	put(place, FILE_EXIT, "{\"code\":0,\"ca", 13);
	assert_int_equal(exit_read(place->dir, &got), -1);
}

static void the_tail_of_stderr_is_valid_text(void **state)
{
	struct place *place = *state;
	size_t n = 3 * (size_t)LIMIT_AGENT_STDERR_TAIL_BYTES;
	char *bytes = malloc(n);
	struct str tail;

	assert_int_equal(stderr_tail(place->dir, place->arena).n, 0);
	put(place, FILE_STDERR, "fine\xff\xc3", 6);
	assert_true(str_eq(stderr_tail(place->dir, place->arena), STR("fine\xef\xbf\xbd\xef\xbf\xbd")));
	for (size_t i = 0; i < n; i++) /* three bytes each, so that the cut falls into one */
		bytes[i] = "\xe2\x82\xac"[i % 3];
	put(place, FILE_STDERR, bytes, n - 1);
	tail = stderr_tail(place->dir, place->arena);
	assert_true(tail.n > LIMIT_AGENT_STDERR_TAIL_BYTES - 8 && tail.n <= LIMIT_AGENT_STDERR_TAIL_BYTES);
	assert_int_equal(utf8_check(tail), tail.n);
	memset(bytes, 0xff, n); /* each becomes three */
	put(place, FILE_STDERR, bytes, n);
	tail = stderr_tail(place->dir, place->arena);
	assert_true(tail.n > LIMIT_AGENT_STDERR_TAIL_BYTES - 8 && tail.n <= LIMIT_AGENT_STDERR_TAIL_BYTES);
	assert_int_equal(utf8_check(tail), tail.n);
	free(bytes);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_record_is_read_back),
		STORY(an_exit_is_read_back_or_refused),
		STORY(the_tail_of_stderr_is_valid_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
