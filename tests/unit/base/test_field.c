/* Arguments as tables. */
#include "base/field.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

struct inner {
	struct arg_str name;
};
struct args {
	struct arg_str title, parent;
	struct arg_int count, colour, at;
	struct arg_bool flag;
	struct arg_strs tags, ids;
	struct arg_ints colours;
	struct arg_json free_form;
	struct arg_object one;
	struct arg_objects many;
	struct arg_str left, right;
};
static const struct word colour_words[] = {{"red", 1}, {"blue", 2}, WORDS_END};
static const struct field inner_fields[] = {
	FIELD(struct inner, name, "name", FIELD_STR, REQUIRED, .max = 10),
	FIELDS_END,
};
static const struct field fields[] = {
	FIELD(struct args, title, "title", FIELD_STR, NOT_BLANK | TRIMMED, .max = 5),
	FIELD(struct args, parent, "parent", FIELD_ID, NULLABLE),
	FIELD(struct args, count, "count", FIELD_INT, 0, .min = 1, .max = 10),
	FIELD(struct args, colour, "colour", FIELD_WORD, FOLDED, .words = colour_words),
	FIELD(struct args, at, "at", FIELD_TIME, 0),
	FIELD(struct args, flag, "flag", FIELD_BOOL, 0),
	FIELD(struct args, tags, "tags", FIELD_STRS, UNIQUE_ENTRIES, .min = 1, .max = 3, .item_max = 4),
	FIELD(struct args, ids, "ids", FIELD_IDS, ID_OR_IDS, .max = 2),
	FIELD(struct args, colours, "colours", FIELD_WORDS, 0, .words = colour_words),
	FIELD(struct args, free_form, "freeForm", FIELD_JSON, NULLABLE, .max = 20),
	FIELD(struct args, one, "one", FIELD_OBJECT, 0, .fields = inner_fields, .item_size = sizeof(struct inner)),
	FIELD(struct args, many, "many", FIELD_OBJECTS, 0, .max = 2, .fields = inner_fields,
		.item_size = sizeof(struct inner)),
	FIELD(struct args, left, "left", FIELD_STR, 0, .group = "side"),
	FIELD(struct args, right, "right", FIELD_STR, 0, .group = "side"),
	FIELDS_END,
};

struct run {
	struct arena *arena;
	struct args args;
	struct warnings warnings;
	struct failure f;
	json_t *json;
	int rc;
};

/* Members beside the one of the group, which every case needs. */
static void read_args(struct run *run, const char *members)
{
	struct json_error error;

	memset(run, 0, sizeof(*run));
	run->arena = arena_create();
	warnings_init(&run->warnings, run->arena, LIMIT_WARNINGS);
	failure_init(&run->f, run->arena);
	run->json = json_read(str_printf(run->arena, "{\"left\":\"x\"%s%s}", members[0] == '\0' ? "" : ",", members),
		&error);
	assert_non_null(run->json);
	run->rc = field_read(fields, run->json, STR("ops[0]."), NULL, run->arena, &run->warnings, &run->args, &run->f);
}

static void finish(struct run *run)
{
	arena_destroy(run->arena);
	json_decref(run->json);
}

static void test_every_kind_is_read(void **state)
{
	struct run run;

	(void)state;
	read_args(&run,
		"\"title\":\" ab \",\"parent\":null,\"count\":3,\"colour\":\"BLUE\",\"at\":\"2026-03-02T08:15:30Z\",\"flag\":true,"
		"\"tags\":[\"a\",\"b\",\"a\"],\"ids\":\"9a60c7d1\",\"colours\":[\"red\"],\"freeForm\":{\"k\":1},"
		"\"one\":{\"name\":\"n\"},\"many\":[{\"name\":\"p\"},{\"name\":\"q\"}]");
	assert_int_equal(run.rc, 0);
	assert_true(str_eq(run.args.title.v, STR("ab")));
	assert_true(run.args.parent.set && run.args.parent.null);
	assert_int_equal(run.args.count.v, 3);
	assert_int_equal(run.args.colour.v, 2);
	assert_true(run.args.flag.v);
	assert_int_equal(run.args.tags.n, 2);
	assert_int_equal(run.args.ids.n, 1);
	assert_int_equal(run.args.colours.v[0], 1);
	assert_true(str_eq(((struct inner *)run.args.many.v)[1].name.v, STR("q")));
	assert_int_equal(run.warnings.count, 0);
	finish(&run);
}

static void test_certain_meanings_are_accepted_and_warned_about(void **state)
{
	struct run run;

	(void)state;
	read_args(&run, "\"count\":\"3\",\"flag\":\"true\",\"tags\":\"[\\\"a\\\"]\",\"freeForm\":\"{\\\"k\\\":1}\",\"title\":7");
	assert_int_equal(run.rc, 0);
	assert_int_equal(run.args.count.v, 3);
	assert_true(run.args.flag.v);
	assert_int_equal(run.args.tags.n, 1);
	assert_true(str_eq(run.args.title.v, STR("7")));
	assert_int_equal(run.warnings.count, 5);
	assert_string_equal(run.warnings.first->code, "json_string_coerced");
	finish(&run);
}

/* A list of 100,000 numbers where text is due: each is read as text, and telling so must stay cheap and short. */
static void test_warnings_are_kept_up_to_a_limit_and_counted_beyond_it(void **state)
{
	struct arena *arena = arena_create();
	struct warnings warnings;
	struct json_writer w;
	struct buf out;

	(void)state;
	warnings_init(&warnings, arena, LIMIT_WARNINGS);
	for (int i = 0; i < 100000; i++)
		warn(&warnings, "json_string_coerced", STR("ops[0].tags"), "number %d", i);
	assert_int_equal(warnings.count, LIMIT_WARNINGS);
	assert_int_equal(warnings.omitted, 100000 - LIMIT_WARNINGS);
	assert_true(str_eq(warnings.first->message, STR("number 0")));
	assert_true(str_eq(warnings.last->message, str_printf(arena, "number %d", LIMIT_WARNINGS - 1)));
	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	warnings_write(&warnings, "warnings", &w);
	jw_object_end(&w);
	assert_non_null(strstr(str_z(arena, buf_str(&out)),
		arena_printf(arena, "{\"code\":\"more\",\"message\":\"There are %d more warnings; correct these first.\"}]}",
			100000 - LIMIT_WARNINGS)));
	arena_destroy(arena);
}

static void test_one_warning_beyond_the_limit_is_spoken_of_as_one(void **state)
{
	struct arena *arena = arena_create();
	struct warnings warnings;
	struct json_writer w;
	struct buf out;

	(void)state;
	warnings_init(&warnings, arena, LIMIT_WARNINGS);
	for (int i = 0; i <= LIMIT_WARNINGS; i++)
		warn(&warnings, "json_string_coerced", STR_NONE, "number %d", i);
	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	warnings_write(&warnings, "warnings", &w);
	jw_object_end(&w);
	assert_non_null(strstr(str_z(arena, buf_str(&out)), "\"There is 1 more warning; correct these first.\""));
	arena_destroy(arena);
}

static void test_text_that_looks_like_json_stays_text(void **state)
{
	struct run run;

	(void)state;
	read_args(&run, "\"title\":\"[1,2]\"");
	assert_int_equal(run.rc, 0);
	assert_true(str_eq(run.args.title.v, STR("[1,2]")));
	finish(&run);
}

static void test_each_fault_is_named_with_its_path(void **state)
{
	static const struct {
		const char *members, *path;
	} cases[] = {
		{"\"title\":\"   \"", "ops[0].title"}, {"\"title\":\"abcdef\"", "ops[0].title"}, {"\"title\":[]", "ops[0].title"},
		{"\"title\":\"a\\u0000\"", "ops[0].title"}, {"\"title\":\"\\ud800\"", "ops[0].title"}, {"\"parent\":\"9a60c7d\"", "ops[0].parent"},
		{"\"count\":11", "ops[0].count"}, {"\"count\":1.5", "ops[0].count"}, {"\"count\":\"x\"", "ops[0].count"},
		{"\"colour\":\"green\"", "ops[0].colour"}, {"\"at\":\"2026-03-02\"", "ops[0].at"}, {"\"flag\":1", "ops[0].flag"},
		{"\"tags\":[]", "ops[0].tags"}, {"\"tags\":\"ui,db\"", "ops[0].tags"}, {"\"tags\":[\"a\",\"abcde\"]", "ops[0].tags[1]"},
		{"\"tags\":[\"a\",\"b\",\"c\",\"d\"]", "ops[0].tags"}, {"\"tags\":[{}]", "ops[0].tags[0]"}, {"\"ids\":[\"zz\"]", "ops[0].ids[0]"},
		{"\"colours\":[\"red\",3]", "ops[0].colours[1]"}, {"\"freeForm\":[]", "ops[0].freeForm"}, {"\"one\":{}", "ops[0].one.name"},
		{"\"many\":[{\"name\":\"p\"},{}]", "ops[0].many[1].name"}, {"\"many\":[3]", "ops[0].many[0]"}, {"\"right\":\"y\"", "ops[0].left"},
		{"\"tags\":\"[\\\"a\\\"\"", "ops[0].tags"}, {"\"tags\":\"\\\"[1]\\\"\"", "ops[0].tags"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run run;

		read_args(&run, cases[i].members);
		assert_int_equal(run.rc, -1);
		assert_int_equal(run.f.code, FAIL_INVALID_REQUEST);
		assert_int_equal(run.f.field_count, 1);
		assert_string_equal(str_z(run.arena, run.f.fields->path), cases[i].path);
		finish(&run);
	}
}

static void test_a_json_value_over_its_byte_limit_is_too_large(void **state)
{
	struct run run;

	(void)state;
	read_args(&run, "\"freeForm\":{\"k\":\"01234567890123456789\"}");
	assert_int_equal(run.rc, -1);
	assert_int_equal(run.f.code, FAIL_PAYLOAD_TOO_LARGE);
	finish(&run);
}

static void test_unknown_names_propose_the_near_one_at_any_depth(void **state)
{
	struct run run;

	(void)state;
	read_args(&run, "\"titel\":\"a\",\"count\":99,\"one\":{\"nmae\":\"x\"}");
	assert_int_equal(run.f.code, FAIL_UNKNOWN_PARAMETER);
	assert_int_equal(run.f.field_count, 2);
	assert_string_equal(str_z(run.arena, run.f.fields->path), "ops[0].titel");
	assert_string_equal(str_z(run.arena, run.f.fields->reason), "did you mean title?");
	assert_string_equal(str_z(run.arena, run.f.fields->next->path), "ops[0].one.nmae");
	finish(&run);
}

static void test_null_of_an_optional_member_is_absence(void **state)
{
	struct run run;

	(void)state;
	read_args(&run, "\"count\":null,\"tags\":null,\"one\":null");
	assert_int_equal(run.rc, 0);
	assert_false(run.args.count.set);
	assert_false(run.args.tags.set);
	assert_false(run.args.one.set);
	finish(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_is_read),
		cmocka_unit_test(test_certain_meanings_are_accepted_and_warned_about),
		cmocka_unit_test(test_warnings_are_kept_up_to_a_limit_and_counted_beyond_it),
		cmocka_unit_test(test_one_warning_beyond_the_limit_is_spoken_of_as_one),
		cmocka_unit_test(test_text_that_looks_like_json_stays_text),
		cmocka_unit_test(test_each_fault_is_named_with_its_path),
		cmocka_unit_test(test_a_json_value_over_its_byte_limit_is_too_large),
		cmocka_unit_test(test_unknown_names_propose_the_near_one_at_any_depth),
		cmocka_unit_test(test_null_of_an_optional_member_is_absence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
