#include "mcp/cursor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static const struct seal_keys keys = {{{1, 2, 3}, {9}}, 1};
static const struct seal_keys rotated = {{{7}, {1, 2, 3}}, 2};

static void what_was_sealed_opens_in_its_context_only(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str text = seal_make(arena, &keys, CURSOR_MAC_SIZE, STR("list 1"), 0, STR("a\0b"));
	struct str got;

	(void)state;
	assert_true(seal_open(arena, &keys, CURSOR_MAC_SIZE, STR("list 1"), 5, text, &got));
	assert_true(str_eq(got, STR("a\0b")));
	assert_false(seal_open(arena, &keys, CURSOR_MAC_SIZE, STR("list 2"), 5, text, &got));
	assert_false(seal_open(arena, &keys, STATE_MAC_SIZE, STR("list 1"), 5, text, &got));
}

static void a_changed_byte_is_refused(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str text = seal_make(arena, &keys, STATE_MAC_SIZE, STR("c"), 100, STR("payload"));
	struct str got;

	(void)state;
	for (size_t i = 0; i < text.n; i++) {
		char *copy = str_z(arena, text);

		copy[i] = copy[i] == 'A' ? 'B' : 'A';
		if (memcmp(copy, text.p, text.n) != 0)
			assert_false(seal_open(arena, &keys, STATE_MAC_SIZE, STR("c"), 5,
				(struct str){copy, text.n}, &got));
		assert_false(seal_open(
			arena, &keys, STATE_MAC_SIZE, STR("c"), 5, (struct str){text.p, i}, &got));
	}
}

static void it_ends_at_its_time(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str text = seal_make(arena, &keys, STATE_MAC_SIZE, STR("c"), 100, STR(""));
	struct str got;

	(void)state;
	assert_true(seal_open(arena, &keys, STATE_MAC_SIZE, STR("c"), 100, text, &got));
	assert_int_equal(got.n, 0);
	assert_false(seal_open(arena, &keys, STATE_MAC_SIZE, STR("c"), 101, text, &got));
}

static void the_previous_key_is_still_accepted(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str old = seal_make(arena, &keys, STATE_MAC_SIZE, STR("c"), 100, STR("x"));
	struct str new = seal_make(arena, &rotated, STATE_MAC_SIZE, STR("c"), 100, STR("x"));
	struct str got;

	(void)state;
	assert_true(seal_open(arena, &rotated, STATE_MAC_SIZE, STR("c"), 1, old, &got));
	assert_false(seal_open(arena, &keys, STATE_MAC_SIZE, STR("c"), 1, new, &got));
}

static void what_is_no_seal_is_refused(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	static const struct str wrong[] = {
		STR(""), STR("A"), STR("AAAA"), STR("=?"), STR("AQAAAAAAAAAA")};
	struct str got;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(seal_open(arena, &keys, CURSOR_MAC_SIZE, STR("c"), 0, wrong[i], &got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_sealed_opens_in_its_context_only),
		cmocka_unit_test(a_changed_byte_is_refused),
		cmocka_unit_test(it_ends_at_its_time),
		cmocka_unit_test(the_previous_key_is_still_accepted),
		cmocka_unit_test(what_is_no_seal_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
