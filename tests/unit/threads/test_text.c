/* Ids that are made from what they name, texts without secrets, the words. */
#include "stage.h"

#include "base/limits.h"

static int up(void **state)
{
	*state = arena_create();
	return 0;
}

static int down(void **state)
{
	arena_destroy(*state);
	return 0;
}

static void assert_text(struct arena *arena, struct str got, const char *wanted)
{
	assert_string_equal(str_z(arena, got), wanted);
}

static void parts_of_an_id_are_encoded_so_that_they_stay_apart(void **state)
{
	struct arena *arena = *state;

	assert_text(arena, IDENT(arena, "k", STR("a:b")), "k:a%3Ab");
	assert_text(arena, IDENT(arena, "k", STR("a%3Ab")), "k:a%253Ab");
	assert_text(arena, IDENT(arena, "k", STR("a"), STR("b")), "k:a:b");
	assert_text(arena, IDENT(arena, "k", STR("a b")), "k:a%20b");
	assert_text(arena, IDENT(arena, "k", STR("\xF0\x9F\x98\x80")), "k:%F0%9F%98%80");
	assert_text(arena, IDENT(arena, "k", STR("AZaz09-_.!*'()")), "k:AZaz09-_.!*'()");
	assert_text(arena, IDENT(arena, "k", STR(""), STR("x")), "k::x");
	assert_text(arena, IDENT(arena, "k", STR("a\0b")), "k:a%00b");
}

static void a_long_part_is_a_digest_that_no_short_part_can_be(void **state)
{
	struct arena *arena = *state;
	char part[LIMIT_ID_PART_BYTES + 1];
	struct str digest;

	memset(part, 'x', sizeof(part));
	assert_int_equal(IDENT(arena, "k", (struct str){part, LIMIT_ID_PART_BYTES}).n, 2 + LIMIT_ID_PART_BYTES);
	digest = IDENT(arena, "k", (struct str){part, sizeof(part)});
	assert_int_equal(digest.n, 2 + 33);
	assert_int_equal(digest.p[2], '~');
	assert_false(str_eq(digest, IDENT(arena, "k", (struct str){digest.p + 2, 33})));
	part[0] = 'y';
	assert_false(str_eq(digest, IDENT(arena, "k", (struct str){part, sizeof(part)})));
	/* Encoding counts: 33 colons are 99 bytes. */
	memset(part, ':', 33);
	assert_int_equal(IDENT(arena, "k", (struct str){part, 33}).p[2], '~');
}

static void a_run_is_found_by_the_ordinal_in_its_id(void **state)
{
	struct arena *arena = *state;
	struct str thread = STR("thread:mcp:ns:a%3Ab:0");

	assert_text(arena, ident_run(arena, thread, 7), "run:thread:thread%3Amcp%3Ans%3Aa%253Ab%3A0:ordinal:7");
	assert_int_equal(ident_run_ordinal(arena, thread, ident_run(arena, thread, 7)), 7);
	assert_int_equal(ident_run_ordinal(arena, STR("thread:other"), ident_run(arena, thread, 7)), 0);
	assert_int_equal(ident_run_ordinal(arena, thread, STR("run:thread:thread%3Amcp%3Ans%3Aa%253Ab%3A0:ordinal:07")), 0);
	assert_int_equal(ident_run_ordinal(arena, thread, STR("run:thread:thread%3Amcp%3Ans%3Aa%253Ab%3A0:ordinal:-1")), 0);
	assert_int_equal(ident_namespace(arena).n, 16);
	assert_false(str_eq(ident_random(arena, "m"), ident_random(arena, "m")));
}

static void secrets_are_removed_from_what_a_program_said(void **state)
{
	static const struct {
		const char *said, *kept;
	} rows[] = {
		{"plain words, 3 < 4", "plain words, 3 < 4"},
		{"https://user:pw@host.test/path?token=1#frag", "https://host.test/path"},
		{"see http://host.test/a?b=c, please", "see http://host.test/a please"},
		{"postgres://me:pw@db.test:5432/x failed", "postgres://db.test:5432/x failed"},
		{"git+ssh://me:pw@host.test/r.git", "git+ssh://host.test/r.git"},
		{"wss://host.test/s?access=1", "wss://host.test/s"},
		{"https://host.test/a@b", "https://host.test/a@b"},
		{"Bearer abc.def-ghi", "[removed]"},
		{"Authorization: Bearer abc.def", "Authorization: [removed]"},
		{"authorization: Basic dXNlcjpwdw==", "authorization: [removed]"},
		{"{\"api_key\":\"abc\",\"n\":1}", "{\"api_key\":[removed]\",\"n\":1}"},
		{"API-KEY=abc next", "API-KEY=[removed] next"},
		{"password: hunter2", "password: [removed]"},
		{"client_secret=abc&x=1", "client_secret=[removed]&x=1"},
		{"password = hunter2", "password = [removed]"},
		{"key sk-proj-0123456789abcdefgh is wrong", "key [removed] is wrong"},
		{"sk-short", "sk-short"},
		{"task-0123456789abcdefgh", "task-0123456789abcdefgh"},
		{"the token was wrong", "the token was wrong"},
		{"bell\a, escape\x1b[31m and \ttab\nline\r", "bell, escape and \ttab\nline"},
		{"\x1b[2mat\x1b[0m \x1b[1;31mERROR\x1b[0m \x1b[3mBearer abc.def\x1b[", "at ERROR [removed]"},
		{"  \n ", ""},
		{"https://", "https://"},
		{"://x", "://x"},
	};
	struct arena *arena = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_text(arena, clean_text(arena, str_of(rows[i].said), 1000), rows[i].kept);
}

static void a_long_text_is_cut_between_two_characters(void **state)
{
	struct arena *arena = *state;

	assert_text(arena, clean_text(arena, STR("üüü"), 2), "üü");
	assert_text(arena, clean_text(arena, STR("\xF0\x9F\x98\x80\xF0\x9F\x98\x80"), 1), "\xF0\x9F\x98\x80");
}

static void a_failure_has_a_class_and_a_message(void **state)
{
	struct arena *arena = *state;
	struct agent_failure failure = {
		.class = CLASS_PERMISSION, .code = STR("x"), .message = STR(" \"no\" "), .is_retryable = YES_NO};

	assert_text(arena, failure_json(arena, &failure),
		"{\"class\":\"permission_error\",\"code\":\"x\",\"message\":\"\\\"no\\\"\",\"retryable\":false}");
	failure = (struct agent_failure){.class = CLASS_UNKNOWN, .is_retryable = YES_UNKNOWN};
	assert_text(arena, failure_json(arena, &failure), "{\"class\":\"unknown\",\"message\":\"The agent gave no reason.\"}");
}

static void words_are_found_by_their_names(void **state)
{
	(void)state;
	for (int i = 0; i < RUN_COUNT; i++)
		assert_int_equal(run_status_find(str_of(run_status_name(i))), i);
	assert_int_equal(run_status_find(STR("asleep")), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(parts_of_an_id_are_encoded_so_that_they_stay_apart),
		TEST(a_long_part_is_a_digest_that_no_short_part_can_be),
		TEST(a_run_is_found_by_the_ordinal_in_its_id),
		TEST(secrets_are_removed_from_what_a_program_said),
		TEST(a_long_text_is_cut_between_two_characters),
		TEST(a_failure_has_a_class_and_a_message),
		TEST(words_are_found_by_their_names),
	};

	return cmocka_run_group_tests_name("threads text", tests, NULL, NULL);
}
