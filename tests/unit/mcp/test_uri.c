#include "mcp/mcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static bool match(const char *pattern, const char *uri, struct mcp_uri_match *out)
{
	static struct arena *arena;

	arena_destroy(arena);
	arena = arena_create();
	return mcp_uri_match(arena, str_of(pattern), str_of(uri), out);
}

static void escapes_that_need_not_be_are_the_same(void **state)
{
	(void)state;
	assert_true(mcp_uri_eq(STR("x:a-b"), STR("x:a%2Db")));
	assert_true(mcp_uri_eq(STR("x:%2f"), STR("x:%2F")));
	assert_false(mcp_uri_eq(STR("x:/"), STR("x:%2F")));
	assert_false(mcp_uri_eq(STR("x:a"), STR("x:a/")));
	assert_false(mcp_uri_eq(STR("x:A"), STR("x:a")));
}

static void a_variable_is_one_segment_and_decoded(void **state)
{
	struct mcp_uri_match got;

	(void)state;
	assert_true(match("dais://item/{id}/note/{key}", "dais://item/7/note/a%2Fb%20c", &got));
	assert_int_equal(got.n, 2);
	assert_true(str_eq(got.name[0], STR("id")) && str_eq(got.value[0], STR("7")));
	assert_true(str_eq(got.name[1], STR("key")) && str_eq(got.value[1], STR("a/b c")));
	assert_false(match("dais://item/{id}", "dais://item/7/note", &got));
	assert_false(match("dais://item/{id}", "dais://item/", &got));
	assert_false(match("dais://item/{id}/x", "dais://item//x", &got));
}

static void what_could_lead_elsewhere_is_refused(void **state)
{
	static const char *const wrong[] = {"x://..", "x://%2e%2e", "x://.", "x://a%00b", "x://%ff",
		"x://%c0%af", "x://%", "x://%2", "x://%zz", "x://a?b=1"};
	struct mcp_uri_match got;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (match("x://{id}", wrong[i], &got))
			fail_msg("%s was accepted", wrong[i]);
}

static void query_variables_may_be_missing(void **state)
{
	struct mcp_uri_match got;

	(void)state;
	assert_true(match("x://t/{id}/m{?after,limit}", "x://t/1/m?limit=5&other=6", &got));
	assert_int_equal(got.n, 3);
	assert_null(got.value[1].p);
	assert_true(str_eq(got.value[2], STR("5")));
	assert_true(match("x://t/{id}/m{?after,limit}", "x://t/1/m", &got));
	assert_null(got.value[2].p);
}

static void a_long_uri_is_refused_at_once(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	char *uri = arena_alloc(arena, 1000001);
	struct mcp_uri_match got;

	(void)state;
	memset(uri, 'a', 1000000);
	assert_false(mcp_uri_match(arena, STR("{a}{b}{c}"), (struct str){uri, 1000000}, &got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes_that_need_not_be_are_the_same),
		cmocka_unit_test(a_variable_is_one_segment_and_decoded),
		cmocka_unit_test(what_could_lead_elsewhere_is_refused),
		cmocka_unit_test(query_variables_may_be_missing),
		cmocka_unit_test(a_long_uri_is_refused_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
