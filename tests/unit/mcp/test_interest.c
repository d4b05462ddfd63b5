#include "mcp/interest.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static void a_notice_that_comes_too_soon_waits_and_leaves_once(void **state)
{
	struct interest in = {0};
	struct interest_uri *uri;

	(void)state;
	assert_true(interest_add(&in, STR("x:a")));
	uri = interest_find(&in, STR("x:a"));
	assert_true(notice_now(&uri->clock, LIMIT_MCP_UPDATE_MS, 1000));
	assert_int_equal(interest_due(&in), INT64_MAX);
	assert_false(notice_now(&uri->clock, LIMIT_MCP_UPDATE_MS, 1001));
	assert_false(notice_now(&uri->clock, LIMIT_MCP_UPDATE_MS, 1100));
	assert_int_equal(interest_due(&in), 1000 + LIMIT_MCP_UPDATE_MS);
	assert_null(interest_take_uri(&in, 1000 + LIMIT_MCP_UPDATE_MS - 1));
	assert_ptr_equal(interest_take_uri(&in, 1000 + LIMIT_MCP_UPDATE_MS), uri);
	assert_null(interest_take_uri(&in, 1000 + LIMIT_MCP_UPDATE_MS));
	interest_finish(&in);
}

static void lists_wait_on_their_own(void **state)
{
	struct interest in = {0};

	(void)state;
	assert_true(notice_now(&in.list_clock[INTEREST_TOOLS], LIMIT_MCP_LIST_CHANGED_MS, 0));
	assert_true(notice_now(&in.list_clock[INTEREST_PROMPTS], LIMIT_MCP_LIST_CHANGED_MS, 0));
	assert_false(notice_now(&in.list_clock[INTEREST_PROMPTS], LIMIT_MCP_LIST_CHANGED_MS, 1));
	assert_int_equal(interest_take_list(&in, 2), -1);
	assert_int_equal(interest_take_list(&in, LIMIT_MCP_LIST_CHANGED_MS), INTEREST_PROMPTS);
}

static void one_uri_is_one_whatever_its_spelling(void **state)
{
	struct interest in = {0};

	(void)state;
	assert_true(interest_add(&in, STR("x:a-b")));
	assert_true(interest_add(&in, STR("x:a%2Db")));
	assert_int_equal(in.uri_count, 1);
	assert_true(interest_remove(&in, STR("x:a%2db")));
	assert_false(interest_remove(&in, STR("x:a-b")));
	interest_finish(&in);
}

static void there_is_a_limit(void **state)
{
	struct interest in = {0};
	char uri[32];

	(void)state;
	for (int i = 0; i < LIMIT_MCP_LISTEN_URIS; i++) {
		(void)snprintf(uri, sizeof(uri), "x:%d", i);
		assert_true(interest_add(&in, str_of(uri)));
	}
	assert_false(interest_add(&in, STR("x:more")));
	assert_true(interest_add(&in, STR("x:7")));
	interest_finish(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_notice_that_comes_too_soon_waits_and_leaves_once),
		cmocka_unit_test(lists_wait_on_their_own),
		cmocka_unit_test(one_uri_is_one_whatever_its_spelling),
		cmocka_unit_test(there_is_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
