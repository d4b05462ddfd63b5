#include "base/yaml.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

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

static const struct yaml *reads(struct str text)
{
	const struct yaml *root = NULL;
	struct yaml_error error = {0};

	if (yaml_read(text, arena, &root, &error) != 0)
		fail_msg("refused at %u:%u: %.*s", error.at.line, error.at.column, STRF(error.reason));
	return root;
}

static struct yaml_error refuses(struct str text)
{
	const struct yaml *root = NULL;
	struct yaml_error error = {0};

	assert_int_equal(yaml_read(text, arena, &root, &error), -1);
	assert_null(root);
	return error;
}

static void says(struct str text, unsigned line, unsigned column, const char *words)
{
	struct yaml_error error = refuses(text);

	if (error.at.line != line || error.at.column != column || strstr(error.reason.p, words) == NULL)
		fail_msg("got %u:%u %s, expected %u:%u %s", error.at.line, error.at.column, error.reason.p, line, column,
			words);
}

static void is_text(const struct yaml *node, const char *text)
{
	assert_non_null(node);
	assert_int_equal(node->kind, YAML_TEXT);
	assert_string_equal(node->text.p, text);
}

static void scalars_stay_as_written(void **state)
{
	const struct yaml *root = reads(STR("a: off\nb: no\nc: 1.10\nd: 0123\ne: 2020-01-01\nf: 0x1F\n"));
	const char *const expected[] = {"off", "no", "1.10", "0123", "2020-01-01", "0x1F"};

	(void)state;
	assert_int_equal(root->count, 6);
	for (size_t i = 0; i < 6; i++)
		is_text(root->entries[i].value, expected[i]);
}

static void places_are_told(void **state)
{
	const struct yaml *root = reads(STR("a:\n  \"\xc3\xa9\": [x,\n    y]\n"));
	const struct yaml *list = yaml_get(yaml_get(root, STR("a")), STR("\xc3\xa9"));

	(void)state;
	assert_int_equal(list->at.line, 2);
	assert_int_equal(list->at.column, 8);
	assert_int_equal(list->entries[1].value->at.line, 3);
	assert_int_equal(list->entries[1].value->at.column, 5);
}

static void nothing_reads_as_an_empty_map(void **state)
{
	const char *const texts[] = {"", "\n\n", "# only\n# comments\n", "---\n", "---\n...\n", "null\n", "~", "{}",
		"\xef\xbb\xbf"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const struct yaml *root = reads(str_of(texts[i]));

		assert_int_equal(root->kind, YAML_MAP);
		assert_int_equal(root->count, 0);
	}
}

static void line_ends_and_a_bom_do_not_matter(void **state)
{
	const char *const texts[] = {"a:\n  b: c\n", ("\xef\xbb\xbf" "a:\n  b: c\n"), "a:\r\n  b: c\r\n", "a:\r  b: c\r",
		"a:\n# at the margin\n  b: c\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		is_text(yaml_get(yaml_get(reads(str_of(texts[i])), STR("a")), STR("b")), "c");
}

static void only_true_and_false_are_booleans(void **state)
{
	const struct yaml *root = reads(STR("[true, false, yes, True, 'true', on, 1]"));
	bool value = false;

	(void)state;
	assert_true(yaml_bool(root->entries[0].value, &value) && value);
	assert_true(yaml_bool(root->entries[1].value, &value) && !value);
	for (size_t i = 2; i < 7; i++)
		assert_false(yaml_bool(root->entries[i].value, &value));
	assert_true(yaml_looks_boolean(root->entries[2].value));
	assert_true(yaml_looks_boolean(root->entries[3].value));
	assert_true(yaml_looks_boolean(root->entries[5].value));
	assert_false(yaml_looks_boolean(root->entries[6].value));
}

static void numbers_are_plain_decimals(void **state)
{
	const struct yaml *root = reads(STR("[12, -3, 0x10, '5', 1.0, 99999999999999999999]"));
	int64_t value = 0;

	(void)state;
	assert_true(yaml_int(root->entries[0].value, &value) && value == 12);
	assert_true(yaml_int(root->entries[1].value, &value) && value == -3);
	for (size_t i = 2; i < 6; i++)
		assert_false(yaml_int(root->entries[i].value, &value));
}

static void quoted_null_is_text(void **state)
{
	const struct yaml *root = reads(STR("[null, ~, '', 'null', NULL, ]"));

	(void)state;
	assert_true(yaml_is_null(root->entries[0].value));
	assert_true(yaml_is_null(root->entries[1].value));
	assert_false(yaml_is_null(root->entries[2].value));
	assert_false(yaml_is_null(root->entries[3].value));
	assert_false(yaml_is_null(root->entries[4].value));
}

static void tabs_as_indentation_are_refused(void **state)
{
	(void)state;
	says(STR("a:\n  b:\n\tc: d\n"), 3, 1, "tab");
	says(STR("a:\n  - b\n\t- c\n"), 3, 1, "tab");
	says(STR("a: |\n\ttext\n"), 2, 1, "tab");
	says(STR("a:\n  b: c\n     \td: e\n"), 3, 8, "tab");
	is_text(yaml_get(reads(STR("a:\tb\n")), STR("a")), "b");
}

static void other_encodings_are_refused(void **state)
{
	(void)state;
	says(((struct str){"\xff\xfe" "a\0:\0 \0b\0", 10}), 1, 1, "not UTF-8");
	says(((struct str){"\xfe\xff" "\0a\0:\0 \0b", 10}), 1, 1, "not UTF-8");
	says(((struct str){"a\0:\0 \0b\0", 8}), 1, 2, "not UTF-8");
	says(STR("a: b\nc: caf\xe9\n"), 2, 7, "not UTF-8");
	says(STR("a: \xed\xa0\x80\n"), 1, 4, "not UTF-8");
	says(STR("a: \xc0\x80\n"), 1, 4, "not UTF-8");
	says(STR("\xc3\xa9: b\x01\n"), 1, 5, "control character U+0001");
}

static void a_NUL_in_a_text_is_refused(void **state)
{
	(void)state;
	says(STR("x: 1\n\"a\\0b\": 1\n"), 2, 1, "NUL");
	says(STR("x: \"a\\0\"\n"), 1, 4, "NUL");
}

static void bad_escapes_are_refused(void **state)
{
	(void)state;
	says(STR("a: \"\\uD83D\"\n"), 1, 7, "bad escape");
	says(STR("a: \"\\q\"\n"), 1, 5, "bad escape");
	says(STR("a: \"\\xZZ\"\n"), 1, 7, "bad escape");
}

static void duplicate_keys_name_both_lines(void **state)
{
	struct yaml_error error;

	(void)state;
	says(STR("a: 1\nb: 2\na: 3\n"), 3, 1, "first on line 1 and again on line 3");
	error = refuses(STR("x:\n  - y: {k: 1, \"k\": 2}\n"));
	assert_string_equal(error.path.p, "x[0].y.k");
}

static void tags_merge_keys_and_odd_keys_are_refused(void **state)
{
	(void)state;
	says(STR("a: !!str 1\n"), 1, 4, "tags");
	says(STR("a: ! 1\n"), 1, 4, "tags");
	says(STR("a: !x {}\n"), 1, 4, "tags");
	says(STR("a: !x []\n"), 1, 4, "tags");
	says(STR("a: !e!x 1\n"), 1, 4, "tags");
	says(STR("b: &b {c: 1}\na:\n  <<: *b\n"), 3, 3, "merge");
	says(STR("[a]: b\n"), 1, 1, "a key must be text, not a list");
	says(STR("? {a: b}\n: c\n"), 1, 3, "a key must be text, not a mapping");
	is_text(yaml_get(reads(STR("'<<': a\n")), STR("<<")), "a");
}

static void a_second_document_is_refused(void **state)
{
	(void)state;
	says(STR("a: 1\n---\nb: 2\n"), 2, 1, "more than one document");
	says(STR("a: 1\n...\n---\n"), 3, 1, "more than one document");
	is_text(yaml_get(reads(STR("---\na: 1\n...\n")), STR("a")), "1");
}

static struct str nested(char open, char close, size_t n)
{
	char *p = arena_alloc(arena, 2 * n + 1);

	memset(p, open, n);
	memset(p + n, close, n);
	return (struct str){p, 2 * n};
}

static void depth_ends_at_the_limit(void **state)
{
	(void)state;
	assert_int_equal(reads(nested('[', ']', LIMIT_YAML_DEPTH))->height, LIMIT_YAML_DEPTH);
	says(nested('[', ']', LIMIT_YAML_DEPTH + 1), 1, LIMIT_YAML_DEPTH + 1, "more than 64 levels");
	says(nested('{', '}', 100000), 1, 2, "a key must be text");
}

static void deep_nesting_is_refused_fast(void **state)
{
	struct timespec from, to;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &from);
	(void)refuses(nested('[', ']', 500000));
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_true((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 < 500);
}

static void aliases_share_nodes(void **state)
{
	const struct yaml *root = reads(STR("a: &a [x, y]\nb: *a\nc: *a\n"));

	(void)state;
	assert_ptr_equal(yaml_get(root, STR("a")), yaml_get(root, STR("b")));
	assert_ptr_equal(yaml_get(root, STR("a")), yaml_get(root, STR("c")));
}

static struct str with_aliases(int n)
{
	struct buf text;

	buf_init(&text, arena, SIZE_MAX);
	buf_add_str(&text, STR("a: &a [x]\nb:\n"));
	for (int i = 0; i < n; i++)
		buf_add_str(&text, STR("- *a\n"));
	return buf_str(&text);
}

static void the_51st_alias_is_refused(void **state)
{
	(void)state;
	assert_int_equal(yaml_get(reads(with_aliases(50)), STR("b"))->count, 50);
	says(with_aliases(51), 53, 3, "more than 50 aliases");
}

static void an_alias_bomb_costs_nothing(void **state)
{
	struct buf text;

	(void)state;
	buf_init(&text, arena, SIZE_MAX);
	buf_add_str(&text, STR("a0: &a0 [x,x]\n"));
	for (int i = 1; i <= 25; i++)
		buf_printf(&text, "a%d: &a%d [*a%d,*a%d]\n", i, i, i - 1, i - 1);
	assert_int_equal(yaml_get(reads(buf_str(&text)), STR("a25"))->height, 26);
	assert_true(arena_used(arena) < 64 * 1024);
}

static void wrong_aliases_are_refused(void **state)
{
	(void)state;
	says(STR("a: &a [b, *a]\n"), 1, 11, "inside what it names");
	says(STR("a: &a {b: {c: *a}}\n"), 1, 15, "inside what it names");
	says(STR("a: *b\n"), 1, 4, "no anchor");
	says(STR("a: &a x\n*a : y\nz: *a\nk: *q\n"), 4, 4, "no anchor");
}

static void aliases_do_not_get_around_the_depth(void **state)
{
	struct buf text;

	(void)state;
	buf_init(&text, arena, SIZE_MAX);
	buf_add_str(&text, STR("a: &a "));
	for (int i = 0; i < 40; i++)
		buf_add_char(&text, '[');
	for (int i = 0; i < 40; i++)
		buf_add_char(&text, ']');
	buf_add_str(&text, STR("\nb: "));
	for (int i = 0; i < 30; i++)
		buf_add_char(&text, '[');
	buf_add_str(&text, STR("*a"));
	for (int i = 0; i < 30; i++)
		buf_add_char(&text, ']');
	says(buf_str(&text), 2, 34, "more than 64 levels");
}

static void many_keys_are_checked_fast(void **state)
{
	struct buf text;
	struct timespec from, to;

	(void)state;
	buf_init(&text, arena, SIZE_MAX);
	for (int i = 0; i < 60000; i++)
		buf_printf(&text, "k%d:\n", i);
	clock_gettime(CLOCK_MONOTONIC, &from);
	assert_int_equal(reads(buf_str(&text))->count, 60000);
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_true(to.tv_sec - from.tv_sec < 3);
}

static void a_text_over_the_limit_is_refused(void **state)
{
	char *p = arena_alloc(arena, LIMIT_YAML_BYTES + 1);

	(void)state;
	memset(p, '#', LIMIT_YAML_BYTES + 1);
	assert_int_equal(reads((struct str){p, LIMIT_YAML_BYTES})->count, 0);
	says(((struct str){p, LIMIT_YAML_BYTES + 1}), 1, 1, "limit");
}

static void syntax_errors_have_a_place_and_plain_words(void **state)
{
	(void)state;
	says(STR("a: [b\nc: d\n"), 2, 2, "',' or ']'");
	says(STR("a: \"b\n"), 2, 1, "not closed");
	says(STR("a: b: c\n"), 1, 5, "':'");
	says(STR("a: @b\n"), 1, 4, "quote");
	says(STR("a: b\n c\n - d: e\n"), 3, 5, "indentation");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(scalars_stay_as_written, begin, end),
		cmocka_unit_test_setup_teardown(places_are_told, begin, end),
		cmocka_unit_test_setup_teardown(nothing_reads_as_an_empty_map, begin, end),
		cmocka_unit_test_setup_teardown(line_ends_and_a_bom_do_not_matter, begin, end),
		cmocka_unit_test_setup_teardown(only_true_and_false_are_booleans, begin, end),
		cmocka_unit_test_setup_teardown(numbers_are_plain_decimals, begin, end),
		cmocka_unit_test_setup_teardown(quoted_null_is_text, begin, end),
		cmocka_unit_test_setup_teardown(tabs_as_indentation_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(other_encodings_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(a_NUL_in_a_text_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(bad_escapes_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(duplicate_keys_name_both_lines, begin, end),
		cmocka_unit_test_setup_teardown(tags_merge_keys_and_odd_keys_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(a_second_document_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(depth_ends_at_the_limit, begin, end),
		cmocka_unit_test_setup_teardown(deep_nesting_is_refused_fast, begin, end),
		cmocka_unit_test_setup_teardown(aliases_share_nodes, begin, end),
		cmocka_unit_test_setup_teardown(the_51st_alias_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(an_alias_bomb_costs_nothing, begin, end),
		cmocka_unit_test_setup_teardown(wrong_aliases_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(aliases_do_not_get_around_the_depth, begin, end),
		cmocka_unit_test_setup_teardown(many_keys_are_checked_fast, begin, end),
		cmocka_unit_test_setup_teardown(a_text_over_the_limit_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(syntax_errors_have_a_place_and_plain_words, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
