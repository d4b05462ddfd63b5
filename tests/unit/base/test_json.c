/* JSON in and out, and the failure that tells what was wrong with it. */
#include "base/failure.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>
#undef fail /* ours, not the test library's */

static enum json_problem problem_of(struct str text)
{
	struct json_error error;
	json_t *value = json_read(text, &error);

	json_decref(value);
	assert_true((value == NULL) == (error.problem != JSON_FINE));
	return error.problem;
}

static void test_what_is_not_json_is_told_apart(void **state)
{
	static const struct {
		const char *text;
		enum json_problem problem;
	} cases[] = {
		{"{\"a\":1}", JSON_FINE}, {"[1,2", JSON_SYNTAX}, {"{\"a\":1,\"a\":2}", JSON_DUPLICATE_KEY},
		{"\"\xff\"", JSON_NOT_UTF8}, {"{'a':1}", JSON_SYNTAX}, {"[NaN]", JSON_SYNTAX},
		{"[01]", JSON_SYNTAX}, {"", JSON_SYNTAX}, {"[1] x", JSON_SYNTAX}, {"\"a", JSON_SYNTAX},
		{"[9223372036854775807]", JSON_FINE}, 	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(problem_of(str_of(cases[i].text)), cases[i].problem);
}

static struct str repeated(struct arena *arena, const char *text, size_t times)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t i = 0; i < times; i++)
		buf_add_str(&out, str_of(text));
	return buf_str(&out);
}

static void test_depth_is_limited_at_64(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str good = str_printf(arena, "%.*s%.*s", STRF(repeated(arena, "[", 64)), STRF(repeated(arena, "]", 64)));

	(void)state;
	assert_int_equal(problem_of(good), JSON_FINE);
	assert_int_equal(problem_of(repeated(arena, "[", 65)), JSON_OVER_LIMIT);
	assert_int_equal(problem_of(repeated(arena, "[", 100000)), JSON_OVER_LIMIT);
	assert_int_equal(problem_of(repeated(arena, "{\"a\":", 100000)), JSON_OVER_LIMIT);
}

static void test_values_strings_and_numbers_are_limited(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str many = repeated(arena, "1,", LIMIT_JSON_NODES + 1);
	struct str digits = repeated(arena, "1", LIMIT_JSON_NUMBER_CHARS + 1);
	struct str text = repeated(arena, "0123456789abcdef", LIMIT_JSON_STRING_BYTES / 16 + 1);

	(void)state;
	assert_int_equal(problem_of(str_printf(arena, "[%.*s1]", STRF(many))), JSON_OVER_LIMIT);
	assert_int_equal(problem_of(digits), JSON_OVER_LIMIT);
	assert_int_equal(problem_of(str_printf(arena, "\"%.*s\"", STRF(text))), JSON_OVER_LIMIT);
}

static void test_half_of_a_surrogate_pair_reads_as_nul(void **state)
{
	struct json_error error;
	json_auto_t *lone = json_read(STR("[\"a\\ud83dz\",\"\\udca6\",\"\\ud83d\\udca6\",\"\\\\ud83d\"]"), &error);

	(void)state;
	assert_non_null(lone);
	assert_true(str_eq(json_str(json_array_get(lone, 0)), (struct str){"a\0z", 3}));
	assert_true(str_eq(json_str(json_array_get(lone, 1)), (struct str){"\0", 1}));
	assert_true(str_eq(json_str(json_array_get(lone, 2)), STR("💦")));
	assert_true(str_eq(json_str(json_array_get(lone, 3)), STR("\\ud83d")));
}

static void test_a_number_out_of_range_reads_as_text_that_no_field_takes(void **state)
{
	struct json_error error;
	json_auto_t *list = json_read(STR("[9223372036854775807,9223372036854775808,-9223372036854775809,1e400,1e300]"), &error);

	(void)state;
	assert_int_equal(json_array_size(list), 5);
	assert_true(json_is_integer(json_array_get(list, 0)));
	for (size_t i = 1; i < 4; i++)
		assert_int_equal(json_str(json_array_get(list, i)).p[0], 0);
	assert_true(json_is_real(json_array_get(list, 4)));
}

static void test_equal_values_have_equal_canonical_text(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct json_error error;
	json_auto_t *a = json_read(STR("{\"b\": [1, 2.5], \"a\": \"x\"}"), &error);
	json_auto_t *b = json_read(STR("{\"a\":\"x\",\"b\":[1,2.5]}"), &error);

	(void)state;
	assert_true(str_eq(json_canonical(arena, a), json_canonical(arena, b)));
	assert_true(str_eq(json_canonical(arena, a), STR("{\"a\":\"x\",\"b\":[1,2.5]}")));
}

static void test_what_is_written_can_be_read(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct json_error error;
	struct json_writer w;
	struct buf out;
	json_auto_t *back = NULL;

	(void)state;
	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kstr(&w, "text", (struct str){"\"\\\n\x01\x7f💦\0", 10});
	jw_kint(&w, "least", INT64_MIN);
	jw_karray(&w, "list");
	jw_bool(&w, true);
	jw_null(&w);
	jw_real(&w, 0.5);
	jw_array_end(&w);
	jw_kstr_opt(&w, "absent", STR(""));
	jw_kobject(&w, "empty");
	jw_object_end(&w);
	jw_object_end(&w);
	back = json_read(buf_str(&out), &error);
	assert_non_null(back);
	assert_true(str_eq(json_member_str(back, "text"), (struct str){"\"\\\n\x01\x7f💦\0", 10}));
	assert_true(json_integer_value(json_object_get(back, "least")) == INT64_MIN);
	assert_null(json_object_get(back, "absent"));
}

static const char *written(struct failure *f)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, f->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	failure_write(f, &w);
	return str_z(f->arena, buf_str(&out));
}

static void test_all_bad_fields_are_listed_with_their_paths(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct failure f;

	(void)state;
	failure_init(&f, arena);
	assert_int_equal(fail_field(&f, STR("title"), STR_NONE, "must not be %s", "blank"), -1);
	(void)fail_field(&f, STR("complexity"), STR("11"), "must be from 1 to 10");
	(void)fail_under(&f, "ops[%d].", 3);
	assert_string_equal(written(&f),
		"{\"code\":\"invalid_request\",\"kind\":\"permanent\",\"message\":\"2 fields are wrong; the first: "
		"ops[3].title: must not be blank.\",\"fix\":\"Correct the fields in detail.fields.\",\"detail\":{\"fields\":["
		"{\"field\":\"ops[3].title\",\"reason\":\"must not be blank\"},{\"field\":\"ops[3].complexity\",\"reason\":"
		"\"must be from 1 to 10\",\"received\":\"11\"}]}}");
}

static void test_an_unknown_name_beats_every_other_fault(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct failure f;

	(void)state;
	failure_init(&f, arena);
	(void)fail_field(&f, STR("title"), STR_NONE, "is required");
	(void)fail_unknown(&f, STR("actor"), "no such parameter");
	(void)fail_field(&f, STR("other"), STR_NONE, "is required");
	assert_int_equal(f.code, FAIL_UNKNOWN_PARAMETER);
	assert_int_equal(f.field_count, 1);
	assert_true(str_eq(f.fields->path, STR("actor")));
}

static void test_the_fix_names_what_the_detail_knows(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct failure f;

	(void)state;
	failure_init(&f, arena);
	(void)fail(&f, FAIL_NOTE_TOO_LONG, "The note is too long.");
	fail_detail_str(&f, "key", STR("a\"b"));
	fail_detail_int(&f, "max", 5000);
	assert_non_null(strstr(written(&f), "\"fix\":\"Shorten to 5000.\""));
	assert_non_null(strstr(written(&f), "\"detail\":{\"key\":\"a\\\"b\",\"max\":5000}"));
}

static void test_every_code_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < FAILURE_CODES; i++) {
		const struct failure_info *info = failure_info((enum failure_code)i);

		assert_int_equal(info->code, i);
		assert_ptr_equal(failure_find(str_of(info->wire)), info);
		assert_true(info->http_status >= 200 && info->http_status < 600);
		assert_true(info->meaning[0] != '\0');
		/* A permanent failure says what to do; a partial one points into its elements. */
		assert_true(info->fix[0] != '\0' || info->code == FAIL_PARTIAL_FAILURE);
	}
}

static void test_every_limit_is_positive_and_explained(void **state)
{
	(void)state;
	assert_true(limit_count > 40);
	for (size_t i = 0; i < limit_count; i++) {
		assert_true(limits[i].value > 0);
		assert_true(strlen(limits[i].why) > 5);
		assert_true(strlen(limits[i].unit) > 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_not_json_is_told_apart),
		cmocka_unit_test(test_depth_is_limited_at_64),
		cmocka_unit_test(test_values_strings_and_numbers_are_limited),
		cmocka_unit_test(test_half_of_a_surrogate_pair_reads_as_nul),
		cmocka_unit_test(test_a_number_out_of_range_reads_as_text_that_no_field_takes),
		cmocka_unit_test(test_equal_values_have_equal_canonical_text),
		cmocka_unit_test(test_what_is_written_can_be_read),
		cmocka_unit_test(test_all_bad_fields_are_listed_with_their_paths),
		cmocka_unit_test(test_an_unknown_name_beats_every_other_fault),
		cmocka_unit_test(test_the_fix_names_what_the_detail_knows),
		cmocka_unit_test(test_every_code_has_a_name_of_its_own),
		cmocka_unit_test(test_every_limit_is_positive_and_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
