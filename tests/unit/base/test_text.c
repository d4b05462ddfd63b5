/* Strings, ids, times, arenas: what every other test takes for granted. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_memory_of_an_arena_is_zeroed_and_aligned_at_any_size(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();

	(void)state;
	for (size_t n = 1; n < 200000; n = n * 3 + 1) {
		char *p = arena_alloc(arena, n);

		assert_int_equal((uintptr_t)p % 16, 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, n);
	}
}

static void test_growing_keeps_the_bytes(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	char *p = arena_copy(arena, "abc", 3);

	(void)state;
	(void)arena_alloc(arena, 8);
	p = arena_grow(arena, p, 4, 100000);
	assert_string_equal(p, "abc");
}

static void mark(void *value)
{
	*(int *)value += 1;
}

static void test_endings_run_once_when_the_arena_goes(void **state)
{
	struct arena *arena = arena_create();
	int count = 0;

	(void)state;
	arena_at_end(arena, mark, &count);
	assert_int_equal(count, 0);
	arena_destroy(arena);
	assert_int_equal(count, 1);
}

static void test_utf8_is_checked_strictly(void **state)
{
	static const struct {
		const char *text;
		size_t bad_at; /* SIZE_MAX: none */
	} cases[] = {
		{"plain", SIZE_MAX}, {"é€😀", SIZE_MAX}, {"\xc0\x80", 0}, {"a\xed\xa0\x80", 1}, {"\xf4\x90\x80\x80", 0},
		{"ab\xe2\x82", 2}, {"\xff", 0}, {"\xe0\x9f\xbf", 0}, {"\xf0\x8f\xbf\xbf", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct str s = str_of(cases[i].text);

		assert_int_equal(utf8_check(s), cases[i].bad_at == SIZE_MAX ? s.n : cases[i].bad_at);
	}
}

static void test_text_is_cut_between_characters(void **state)
{
	struct str s = STR("a💦b");

	(void)state;
	assert_int_equal(utf8_cut(s, 3), 1);
	assert_int_equal(utf8_cut(s, 5), 5);
	assert_int_equal(utf8_cut(s, 99), 6);
	assert_int_equal(utf8_count(s), 3);
	assert_int_equal(utf8_offset(s, 2), 5);
}

static void test_blank_is_what_holds_only_unicode_white_space(void **state)
{
	(void)state;
	assert_true(str_is_blank(STR(" \t\n\u2003\u3000")));
	assert_true(str_is_blank(STR("")));
	assert_false(str_is_blank(STR(" \u200b")));
	assert_false(str_is_blank(STR(" x ")));
}

static void test_integers_are_read_exactly_or_not_at_all(void **state)
{
	int64_t n;

	(void)state;
	assert_true(str_to_int(STR("9223372036854775807"), &n));
	assert_true(n == INT64_MAX);
	assert_true(str_to_int(STR("-9223372036854775808"), &n));
	assert_true(n == INT64_MIN);
	assert_false(str_to_int(STR("9223372036854775808"), &n));
	assert_false(str_to_int(STR(""), &n));
	assert_false(str_to_int(STR("-"), &n));
	assert_false(str_to_int(STR("1 "), &n));
	assert_false(str_to_int(STR("0x1"), &n));
}

static void test_a_buffer_over_its_limit_says_so_and_keeps_what_it_has(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, NULL, 8);
	buf_add_str(&buf, STR("12345678"));
	assert_false(buf.overflow);
	buf_add_char(&buf, '9');
	assert_true(buf.overflow);
	assert_int_equal(buf.n, 8);
	buf_finish(&buf);
}

static void test_ids_are_random_version_4(void **state)
{
	struct id a;
	struct id b;
	char text[ID_TEXT_SIZE];

	(void)state;
	id_generate(&a);
	id_generate(&b);
	assert_false(id_eq(a, b));
	id_format(a, text);
	assert_int_equal(strlen(text), 36);
	assert_int_equal(text[14], '4');
	assert_non_null(strchr("89ab", text[19]));
}

static void test_an_id_prefix_covers_exactly_what_begins_with_it(void **state)
{
	static const struct {
		const char *text;
		bool ok;
	} cases[] = {
		{"9a60c7d1", true}, {" 9A60C7D1 ", true}, {"9a60c7d1-3", true}, {"9a60c7d", false}, {"9a60c7dg", false},
		{"9a60c7d1-3f58-4e2b-b174-c8e20f95a643", true}, {"9a60c7d13f584e2bb174c8e20f95a6430", false}, {"", false},
	};
	struct id_prefix prefix;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(id_prefix_parse(str_of(cases[i].text), &prefix), cases[i].ok);
	assert_true(id_prefix_parse(STR("9a60c7d1-3"), &prefix));
	assert_int_equal(prefix.low.b[4], 0x30);
	assert_int_equal(prefix.high.b[4], 0x3f);
	assert_int_equal(prefix.low.b[5], 0x00);
	assert_int_equal(prefix.high.b[5], 0xff);
}

static void test_base64url_is_strict(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str back;

	(void)state;
	for (size_t n = 0; n < 20; n++) {
		char bytes[20];

		memset(bytes, (int)(0xa5 + n), sizeof(bytes));
		assert_true(base64url_decode(arena, base64url(arena, bytes, n), &back));
		assert_int_equal(back.n, n);
		assert_memory_equal(back.p, bytes, n);
	}
	assert_false(base64url_decode(arena, STR("A"), &back));
	assert_false(base64url_decode(arena, STR("QQ=="), &back));
	assert_false(base64url_decode(arena, STR("QR"), &back));
	assert_false(base64url_decode(arena, STR("a+b"), &back));
}

static void test_times_need_a_time_and_an_offset(void **state)
{
	char text[TIME_TEXT_SIZE];
	int64_t ms;

	(void)state;
	assert_true(time_parse(STR("2026-03-02T08:15:30.120Z"), &ms));
	time_format(ms, text);
	assert_string_equal(text, "2026-03-02T08:15:30.120Z");
	assert_true(time_parse(STR("2026-03-02T09:15:30.12+01:00"), &ms));
	time_format(ms, text);
	assert_string_equal(text, "2026-03-02T08:15:30.120Z");
	assert_false(time_parse(STR("2026-03-02"), &ms));
	assert_false(time_parse(STR("2026-03-02T08:15:30"), &ms));
	assert_false(time_parse(STR("2026-02-30T08:15:30Z"), &ms));
	assert_false(time_parse(STR("2026-03-02T08:15:30.Z"), &ms));
	assert_false(time_parse(STR("2026-03-02T08:15:30Zx"), &ms));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_of_an_arena_is_zeroed_and_aligned_at_any_size),
		cmocka_unit_test(test_growing_keeps_the_bytes),
		cmocka_unit_test(test_endings_run_once_when_the_arena_goes),
		cmocka_unit_test(test_utf8_is_checked_strictly),
		cmocka_unit_test(test_text_is_cut_between_characters),
		cmocka_unit_test(test_blank_is_what_holds_only_unicode_white_space),
		cmocka_unit_test(test_integers_are_read_exactly_or_not_at_all),
		cmocka_unit_test(test_a_buffer_over_its_limit_says_so_and_keeps_what_it_has),
		cmocka_unit_test(test_ids_are_random_version_4),
		cmocka_unit_test(test_an_id_prefix_covers_exactly_what_begins_with_it),
		cmocka_unit_test(test_base64url_is_strict),
		cmocka_unit_test(test_times_need_a_time_and_an_offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
