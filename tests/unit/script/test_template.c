#include "script/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct arena *arena;

static int begin(void **state)
{
	(void)state;
	arena = arena_create();
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_destroy(arena);
	return 0;
}

static const struct str saved[] = {{"made", 4}, {"r2", 2}};

static const char *check(const char *text)
{
	return template_check(arena, str_of(text), saved, 2);
}

/* The parts in one line: text|name.path|text… */
static void reads_as(const char *text, const char *expected)
{
	struct template_part part;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t at = 0; template_next(str_of(text), &at, &part);) {
		buf_add_str(&out, part.text);
		if (part.name.p != NULL)
			buf_printf(&out, "|%.*s:%.*s|", STRF(part.name), (int)part.path.n,
				part.path.p == NULL ? "" : part.path.p);
	}
	assert_string_equal(str_z(arena, buf_str(&out)), expected);
}

static void text_and_names_take_turns(void **state)
{
	(void)state;
	reads_as("", "");
	reads_as("plain", "plain");
	reads_as("{{a}}", "|a:|");
	reads_as("x{{a}}{{ b.c.0 }}y", "x|a:||b:c.0|y");
	reads_as("one { and }} stay", "one { and }} stay");
}

static void good_ones_are_taken(void **state)
{
	(void)state;
	assert_null(check("no braces, } { }}"));
	assert_null(check("{{prompt}} {{turn}} {{session}} {{model}} {{mode}} {{answer}} {{steer}} {{open}}"));
	assert_null(check("{{made}} {{made.a}} {{ r2.results.0.item-id }}"));
}

static void says(const char *text, const char *words)
{
	const char *reason = check(text);

	assert_non_null(reason);
	if (strstr(reason, words) == NULL)
		fail_msg("%s: %s", text, reason);
}

static void bad_ones_are_told(void **state)
{
	(void)state;
	says("{{prompt", "without");
	says("a {{ b", "without");
	says("{{}}", "no name");
	says("{{1a}}", "no name");
	says("{{a b}}", "no name");
	says("{{other}}", "no step saves it");
	says("{{prompt.x}}", "no members");
	says("{{made.}}", "a path");
	says("{{made..a}}", "a path");
	says("{{made.a.}}", "a path");
	says("{{made.a b}}", "a path");
	says("fine {{made}} {{oops}}", "oops");
}

static void a_whole_one_is_known(void **state)
{
	struct template_part part;

	(void)state;
	assert_true(template_is_whole(STR("{{made.version}}"), &part));
	assert_true(str_eq(part.path, STR("version")));
	assert_false(template_is_whole(STR("v{{made.version}}"), &part));
	assert_false(template_is_whole(STR("{{made.version}} "), &part));
	assert_false(template_is_whole(STR("{{a}}{{b}}"), &part));
	assert_false(template_is_whole(STR("text"), &part));
	assert_false(template_is_whole(STR(""), &part));
}

static void names_are_words(void **state)
{
	(void)state;
	assert_true(template_is_name(STR("a_1")));
	assert_true(template_is_name(STR("_")));
	assert_false(template_is_name(STR("")));
	assert_false(template_is_name(STR("1")));
	assert_false(template_is_name(STR("a-b")));
	assert_int_equal(template_name_of(STR("prompt")), NAME_PROMPT);
	assert_int_equal(template_name_of(STR("prompts")), NAME_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_and_names_take_turns),
		cmocka_unit_test(good_ones_are_taken),
		cmocka_unit_test(bad_ones_are_told),
		cmocka_unit_test(a_whole_one_is_known),
		cmocka_unit_test(names_are_words),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
