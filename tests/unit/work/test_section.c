/* Headings and anchors of Markdown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "work/section.h"

#include <cmocka.h>

static const char *anchors_of(struct arena *arena, const char *text)
{
	struct section *list;
	size_t n = sections_of(arena, str_of(text), &list);
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t i = 0; i < n; i++)
		buf_printf(&out, "%s%d:%.*s", i == 0 ? "" : " ", list[i].level, STRF(list[i].anchor));
	return str_z(arena, buf_str(&out));
}

static void anchors_are_lower_case_words_made_unique(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();

	(void)state;
	assert_string_equal(anchors_of(arena, "# Tide tables\n## Tide tables\n### tide--Tables!\n"),
		"1:tide-tables 2:tide-tables-2 3:tide-tables-3");
	assert_string_equal(anchors_of(arena, "# 数据库\n# ???\n#\n"), "1:section 1:section-2 1:section-3");
	assert_string_equal(anchors_of(arena, "# a\n# a 2\n# a\n# a\n"), "1:a 1:a-2 1:a-3 1:a-4");
	assert_string_equal(anchors_of(arena, "## Scope ##\n# C# sharp\n"), "2:scope 1:c-sharp");
}

static void only_real_headings_count(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();

	(void)state;
	assert_string_equal(anchors_of(arena, "#no\n####### seven\n    # code\n   # three blanks\n"), "1:three-blanks");
	assert_string_equal(anchors_of(arena, "```sh\n# comment\n```\n# real\n"), "1:real");
	assert_string_equal(anchors_of(arena, "~~~~\n# a\n~~~\n# b\n~~~~~\n# real\n"), "1:real");
	assert_string_equal(anchors_of(arena, "``` not `a` fence\n# real\n"), "1:real");
	assert_string_equal(anchors_of(arena, "```\n# never closed\n"), "");
	assert_string_equal(anchors_of(arena, ""), "");
}

static void a_section_ends_at_the_next_heading_of_its_level(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str text = STR("intro\n# A\na\n## B\nb\n# C\nc");
	struct section *list;
	size_t n = sections_of(arena, text, &list);
	struct str a;

	(void)state;
	assert_int_equal(n, 3);
	a = section_text(section_find(list, n, STR("a")), text);
	assert_true(str_eq(a, STR("# A\na\n## B\nb\n")));
	assert_true(str_eq(section_text(section_find(list, n, STR("b")), text), STR("## B\nb\n")));
	assert_true(str_eq(section_text(section_find(list, n, STR("c")), text), STR("# C\nc")));
	assert_null(section_find(list, n, STR("d")));
}

static void thousands_of_equal_headings_are_no_burden(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct section *list;
	struct buf text;

	(void)state;
	buf_init(&text, arena, SIZE_MAX);
	for (int i = 0; i < 32768; i++)
		buf_add(&text, "#\n", 2);
	assert_int_equal(sections_of(arena, buf_str(&text), &list), 32768);
	assert_true(str_eq(list[32767].anchor, STR("section-32768")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(anchors_are_lower_case_words_made_unique),
		cmocka_unit_test(only_real_headings_count),
		cmocka_unit_test(a_section_ends_at_the_next_heading_of_its_level),
		cmocka_unit_test(thousands_of_equal_headings_are_no_burden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
