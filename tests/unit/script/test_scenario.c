#include "script/scenario.h"

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

static const struct scenario *reads(const char *text)
{
	const struct scenario *scenario = NULL;
	struct yaml_error error = {0};

	if (scenario_read(str_of(text), arena, &scenario, &error) != 0)
		fail_msg("refused at %u:%u: %.*s", error.at.line, error.at.column, STRF(error.reason));
	return scenario;
}

static void says(const char *text, unsigned line, unsigned column, const char *words)
{
	const struct scenario *scenario = NULL;
	struct yaml_error error = {0};

	assert_int_equal(scenario_read(str_of(text), arena, &scenario, &error), -1);
	assert_null(scenario);
	if (error.at.line != line || error.at.column != column || strstr(str_z(arena, error.reason), words) == NULL)
		fail_msg("%s\ngot %u:%u %.*s, expected %u:%u %s", text, error.at.line, error.at.column,
			STRF(error.reason), line, column, words);
}

/* The only step of the only turn. */
static const struct step *reads_step(const char *step)
{
	const struct scenario *scenario = reads(arena_printf(arena, "turns:\n- steps:\n  - %s\n", step));

	assert_int_equal(scenario->scene_count, 1);
	assert_int_equal(scenario->scenes[0].step_count, 1);
	return &scenario->scenes[0].steps[0];
}

static void says_of_step(const char *step, unsigned column, const char *words)
{
	says(arena_printf(arena, "turns:\n- steps:\n  - %s\n", step), 3, column, words);
}

static void an_empty_file_echoes(void **state)
{
	const struct scenario *scenario = reads("");

	(void)state;
	assert_int_equal(scenario->scene_count, 0);
	assert_int_equal(scenario->model_count, 1);
	assert_int_equal(scenario->without, 0);
	assert_false(scenario->needs_auth);
}

static void the_head_is_read(void **state)
{
	const struct scenario *scenario =
		reads("models: [small, 1.10]\nwithout: [steering, loadSession]\ninit_delay_ms: 5\nauth: required\n");

	(void)state;
	assert_int_equal(scenario->model_count, 2);
	assert_true(str_eq(scenario->models[1], STR("1.10")));
	assert_int_equal(scenario->without, WITHOUT_STEERING | WITHOUT_LOAD);
	assert_int_equal(scenario->init_delay_ms, 5);
	assert_true(scenario->needs_auth);
}

static void the_words_of_without_are_its_bits(void **state)
{
	(void)state;
	for (size_t i = 0; without_words[i] != NULL; i++)
		assert_int_equal(reads(arena_printf(arena, "without: [%s]", without_words[i]))->without, 1U << i);
	assert_int_equal(reads("without: [cancel]")->without, WITHOUT_CANCEL);
}

static void turns_have_patterns_and_times(void **state)
{
	const struct scenario *scenario = reads("turns:\n- {when: '^a+$', times: 2, steps: []}\n- steps: []\n");

	(void)state;
	assert_int_equal(scenario->scene_count, 2);
	assert_true(scenario->scenes[0].has_pattern);
	assert_int_equal(regexec(&scenario->scenes[0].pattern, "aaa", 0, NULL, 0), 0);
	assert_int_equal(scenario->scenes[0].times, 2);
	assert_false(scenario->scenes[1].has_pattern);
	assert_int_equal(scenario->scenes[1].times, 0);
}

static void options_stand_beside_a_scalar(void **state)
{
	const struct step *step = reads_step("{delay_ms: 7, text: hello}");

	(void)state;
	assert_string_equal(step->kind->name, "text");
	assert_true(str_eq(step_value(step, "text")->text, STR("hello")));
	assert_int_equal(step_value(step, "delay_ms")->number, 7);
	assert_int_equal(step_value(step, "chunk")->number, 16);
	assert_false(step_value(step, "chunk")->is_set);
}

static void text_is_text_whatever_it_looks_like(void **state)
{
	(void)state;
	assert_true(str_eq(step_value(reads_step("text: off"), "text")->text, STR("off")));
	assert_true(str_eq(step_value(reads_step("text: 0123"), "text")->text, STR("0123")));
	assert_true(str_eq(step_value(reads_step("text: ''"), "text")->text, STR("")));
	says_of_step("text:", 10, "not nothing");
	says_of_step("sleep_ms: '5'", 15, "whole number");
	says_of_step("hang: 'true'", 11, "must be true");
	says_of_step("hang: false", 11, "leave the step out");
}

static void bytes_are_bytes(void **state)
{
	(void)state;
	assert_true(str_eq(step_value(reads_step("raw: \"\\xff\\xe9\\n\""), "raw")->text, STR("\xff\xe9\n")));
	assert_true(str_eq(step_value(reads_step("raw: \"\\u20ac\""), "raw")->text, STR("\xe2\x82\xac")));
	assert_true(str_eq(step_value(reads_step("raw: '\\xff'"), "raw")->text, STR("\\xff")));
}

static void codes_are_numbers_or_words(void **state)
{
	const struct value *code = step_value(reads_step("fail: {code: -32099}"), "code");

	(void)state;
	assert_null(code->text.p);
	assert_int_equal(code->number, -32099);
	code = step_value(reads_step("fail: {code: rate_limited}"), "code");
	assert_true(str_eq(code->text, STR("rate_limited")));
	says_of_step("fail: {code: rate_limits}", 18, "auth_required");
	says_of_step("fail: {message: x}", 11, "fail needs code");
}

/* Every step of the table can be written with nothing but what it needs. */
static const char *least(const struct value_field *field)
{
	switch (field->kind) {
	case VALUE_TRUE:
	case VALUE_BOOL:
		return "true";
	case VALUE_INT:
		return arena_printf(arena, "%lld", (long long)field->max);
	case VALUE_WORD:
	case VALUE_CODE:
		return field->words[0];
	case VALUE_TEXTS:
		return "[x]";
	case VALUE_PAIRS:
		return "{k: v}";
	case VALUE_PLAN:
		return "[{content: x, status: pending}]";
	default:
		return "x";
	}
}

static const char *least_step(const struct step_kind *kind, bool with_options)
{
	struct buf out;
	size_t n = 0;

	buf_init(&out, arena, SIZE_MAX);
	buf_printf(&out, kind->is_mapping ? "%s: {" : "{", kind->name);
	for (size_t i = 0; kind->fields[i].kind != VALUE_END; i++)
		if (kind->fields[i].is_required || with_options)
			buf_printf(
				&out, "%s%s: %s", n++ == 0 ? "" : ", ", kind->fields[i].name, least(&kind->fields[i]));
	buf_add_char(&out, '}');
	return str_z(arena, buf_str(&out));
}

static void every_step_can_be_written(void **state)
{
	(void)state;
	for (size_t i = 0; i < step_kind_count; i++) {
		assert_ptr_equal(reads_step(least_step(&step_kinds[i], false))->kind, &step_kinds[i]);
		assert_ptr_equal(reads_step(least_step(&step_kinds[i], true))->kind, &step_kinds[i]);
	}
}

static void steps_are_refused_with_their_place(void **state)
{
	(void)state;
	says_of_step("txt: hello", 5, "did you mean text?");
	says_of_step("nothing_like_it: 1", 5, "there is no step");
	says_of_step("{text: a, chnk: 4}", 15, "did you mean chunk?");
	says_of_step("{tool: {title: x}, kind: read}", 24, "inside its {}");
	says_of_step("tool: {title: x, kind: dig}", 28, "\"dig\"");
	says_of_step("run: []", 10, "must not be empty");
	says_of_step("run: ls", 10, "must be a list");
	says_of_step("hello", 5, "a step must be a mapping");
	says_of_step("{}", 5, "without a name");
	says_of_step("plan: [{content: x}]", 12, "content and status");
	says_of_step("plan: [{content: x, status: done}]", 33, "pending");
	says_of_step("mcp: {tool: x, save: prompt}", 26, "not taken");
	says_of_step("mcp: {tool: x, save: a-b}", 26, "not taken");
	says_of_step("text: '{{x.y}}'", 11, "no step saves it");
	says_of_step("signal: 65", 13, "from 1 to 64");
}

static void the_rest_is_refused_with_its_place(void **state)
{
	(void)state;
	says("a: 1\n", 1, 1, "a scenario has no");
	says("- a\n", 1, 1, "a scenario must be a mapping");
	says("models: []\n", 1, 9, "must not be empty");
	says("models: [a, ~]\n", 1, 13, "a model is text");
	says("auth: maybe\n", 1, 7, "ok or required");
	says("turns:\n- when: x\n", 2, 3, "needs steps");
	says("turns:\n- steps: []\n  tmes: 1\n", 3, 3, "did you mean times?");
	says("turns:\n- steps: []\n  times: 0\n", 3, 10, "from 1");
	says("turns:\n- steps: []\n  when: '('\n", 3, 9, "regular expression");
	says("turns: {\n", 2, 1, "");
}

static void a_saved_name_may_be_used_anywhere(void **state)
{
	(void)state;
	(void)reads("turns:\n- steps: [{text: '{{later.id}}'}]\n- steps: [{mcp: {tool: t, save: later}}]\n");
}

/* Ten levels of ten aliases each: a few lines that describe ten thousand million values. */
static void aliases_do_not_make_a_short_file_long(void **state)
{
	struct buf text;

	(void)state;
	buf_init(&text, arena, SIZE_MAX);
	buf_printf(&text, "turns:\n- steps:\n  - result:\n      a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 5; i++)
		buf_printf(&text, "      a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i,
			i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	says(str_z(arena, buf_str(&text)), 4, 43, "more than 10000 values");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_file_echoes),
		cmocka_unit_test(the_head_is_read),
		cmocka_unit_test(the_words_of_without_are_its_bits),
		cmocka_unit_test(turns_have_patterns_and_times),
		cmocka_unit_test(options_stand_beside_a_scalar),
		cmocka_unit_test(text_is_text_whatever_it_looks_like),
		cmocka_unit_test(bytes_are_bytes),
		cmocka_unit_test(codes_are_numbers_or_words),
		cmocka_unit_test(every_step_can_be_written),
		cmocka_unit_test(steps_are_refused_with_their_place),
		cmocka_unit_test(the_rest_is_refused_with_its_place),
		cmocka_unit_test(a_saved_name_may_be_used_anywhere),
		cmocka_unit_test(aliases_do_not_make_a_short_file_long),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
