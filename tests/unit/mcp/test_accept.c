#include "mcp/accept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static void expect(const char *header, bool json, bool events)
{
	struct accepted got = accept_read(str_of(header));

	if (got.json != json || got.events != events)
		fail_msg("%s: json %d, events %d", header, got.json, got.events);
}

static void an_absent_header_takes_everything(void **state)
{
	(void)state;
	expect(NULL, true, true);
	expect(" ", true, true);
	expect("*/*", true, true);
}

static void order_case_and_blanks_do_not_matter(void **state)
{
	(void)state;
	expect("text/event-stream,application/json", true, true);
	expect(" Application/JSON ;q=1 , TEXT/event-stream", true, true);
	expect("application/json;profile=\"a,b;c\", text/event-stream", true, true);
}

static void zero_means_not_wanted(void **state)
{
	(void)state;
	expect("application/json, text/event-stream;q=0", true, false);
	expect("application/json;q=0.0, */*", false, true);
	expect("text/*;q=0, */*", true, false);
	expect("application/json;q=0.001", true, false);
}

static void the_most_exact_range_decides(void **state)
{
	(void)state;
	expect("*/*;q=0, application/json", true, false);
	expect("text/*, text/event-stream;q=0", false, false);
	expect("text/html", false, false);
}

static void a_body_is_json_in_utf8_only(void **state)
{
	(void)state;
	assert_true(content_type_is_json(STR("application/json")));
	assert_true(content_type_is_json(STR("Application/Json; Charset=\"UTF-8\"; x=y")));
	assert_false(content_type_is_json(STR("application/json; charset=utf-16")));
	assert_false(content_type_is_json(STR("application/jsonp")));
	assert_false(content_type_is_json(STR("")));
	assert_false(content_type_is_json(STR_NONE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_absent_header_takes_everything),
		cmocka_unit_test(order_case_and_blanks_do_not_matter),
		cmocka_unit_test(zero_means_not_wanted),
		cmocka_unit_test(the_most_exact_range_decides),
		cmocka_unit_test(a_body_is_json_in_utf8_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
