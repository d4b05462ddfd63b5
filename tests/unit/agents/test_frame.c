/* Messages between server and host: whatever pieces they come in, and whatever a stranger sends. */
#include "agents/private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#undef fail /* ours, not the test library's */

static void feed(struct framer *framer, const char *bytes, size_t n)
{
	while (n > 0) {
		size_t room;
		char *to = framer_room(framer, &room);
		size_t part = n < room ? n : room;

		memcpy(to, bytes, part);
		framer_filled(framer, part);
		bytes += part;
		n -= part;
	}
}

static const char two[] = "{\"is\":\"write\",\"seq\":7,\"bytes\":5}\na\nb\0c{\"is\":\"end\"}\n";

static void frames_come_in_any_pieces(void **state)
{
	size_t n = sizeof(two) - 1;

	(void)state;
	for (size_t piece = 1; piece <= n; piece++) {
		struct framer framer;
		struct frame frame;
		int got = 0;

		framer_init(&framer, 100);
		for (size_t at = 0; at < n; at += piece) {
			feed(&framer, two + at, at + piece > n ? n - at : piece);
			while (framer_next(&framer, &frame) == 1) {
				if (got++ == 0) {
					assert_true(str_eq(frame.what, STR("write")));
					assert_int_equal(frame_int(&frame, "seq"), 7);
					assert_true(str_eq(frame.body, (struct str){"a\nb\0c", 5}));
				} else {
					assert_true(str_eq(frame.what, STR("end")));
					assert_int_equal(frame.body.n, 0);
				}
			}
		}
		assert_int_equal(got, 2);
		assert_null(framer.p); /* an idle one holds nothing */
		framer_finish(&framer);
	}
}

static int answer(const char *bytes, size_t n)
{
	struct framer framer;
	struct frame frame;
	int rc;

	framer_init(&framer, 100);
	feed(&framer, bytes, n);
	rc = framer_next(&framer, &frame);
	framer_finish(&framer);
	return rc;
}

static void a_peer_that_breaks_the_rules_is_refused(void **state)
{
	static const char *const bad[] = {"\n", "[]\n", "{\n", "{\"is\":\"x\",\"bytes\":-1}\n", "{\"is\":\"x\",\"bytes\":101}\n",
		"{\"is\":\"x\",\"bytes\":9223372036854775807}\n"};
	char *endless = malloc(LIMIT_AGENT_HEAD_BYTES + 1);

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(answer(bad[i], strlen(bad[i])), -1);
	memset(endless, 'x', LIMIT_AGENT_HEAD_BYTES + 1);
	assert_int_equal(answer(endless, LIMIT_AGENT_HEAD_BYTES), 0);
	assert_int_equal(answer(endless, LIMIT_AGENT_HEAD_BYTES + 1), -1);
	free(endless);
}

/* ---- settings ---- */

static void settings_arrive_as_they_were_sent(void **state)
{
	static const char *const argv[] = {"codex", "", "app-server \xff\n", NULL}, *const env[] = {"PATH=/bin", NULL},
			  *const writable[] = {"/a", "/b", NULL};
	const struct host_settings sent = {
		.argv = argv,
		.env = env,
		.writable = writable,
		.cwd = "/work",
		.secret = STR("s\0e"),
		.placeholder = STR("@@"),
		.note = STR_NONE,
		.start_ms = 1,
		.deadline_ms = 2,
		.line_bytes = 3,
		.is_read_only = true,
	};
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct host_settings got;
	struct framer framer;
	struct frame frame;
	struct failure f;
	uv_loop_t loop;
	uv_pipe_t pipe;
	char bytes[4096];
	int ends[2];

	(void)state;
	failure_init(&f, arena);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(uv_loop_init(&loop), 0);
	assert_int_equal(uv_pipe_init(&loop, &pipe, 0), 0);
	assert_int_equal(uv_pipe_open(&pipe, ends[0]), 0);
	assert_int_equal(settings_send((uv_stream_t *)&pipe, &sent, &f), 0);
	uv_close((uv_handle_t *)&pipe, NULL);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);

	framer_init(&framer, LIMIT_AGENT_SETTINGS_BYTES);
	feed(&framer, bytes, (size_t)read(ends[1], bytes, sizeof(bytes)));
	(void)close(ends[1]);
	assert_int_equal(framer_next(&framer, &frame), 1);
	assert_int_equal(settings_read(&frame, arena, &got), 0);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(got.argv[i], argv[i]);
	assert_null(got.argv[3]);
	assert_string_equal(got.env[0], env[0]);
	assert_null(got.env[1]);
	assert_string_equal(got.writable[1], "/b");
	assert_null(got.writable[2]);
	assert_string_equal(got.cwd, "/work");
	assert_true(str_eq(got.secret, sent.secret));
	assert_true(str_eq(got.placeholder, sent.placeholder));
	assert_int_equal(got.note.n, 0);
	assert_int_equal(got.start_ms, 1);
	assert_int_equal(got.deadline_ms, 2);
	assert_int_equal(got.line_bytes, 3);
	assert_true(got.is_read_only);
	assert_false(got.ends_with_stdin);
	frame.body.n--; /* a body that is too short is refused, not read past its end */
	assert_int_equal(settings_read(&frame, arena, &got), -1);
	framer_finish(&framer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_come_in_any_pieces),
		cmocka_unit_test(a_peer_that_breaks_the_rules_is_refused),
		cmocka_unit_test(settings_arrive_as_they_were_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
