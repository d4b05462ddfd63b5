#include "story.h"

static enum rules_mode independence(const struct story *s, bool *verified)
{
	return rules_independence(&s->view, verified);
}

static void unquoted_off_does_not_switch_independence_off(void **state)
{
	struct story *s = *state;
	bool verified;

	project(s, "independence: {mode: off}\n");
	warned(s, "independence_unknown", "independence.mode", "unquoted off is a boolean in YAML 1.1 (write \"off\"");
	assert_int_equal(independence(s, &verified), RULES_WARN);
	project(s, "independence: {mode: \"off\"}\n");
	assert_int_equal(s->warnings.count, 0);
	assert_int_equal(independence(s, &verified), RULES_OFF);
	project(s, "independence: {mode: 'off', require_verified: true}\n");
	assert_int_equal(independence(s, &verified), RULES_OFF);
	assert_true(verified);
}

static void unknown_modes_are_warn(void **state)
{
	struct story *s = *state;
	const char *const modes[] = {"strict", "no", "false", "[]", "", "Reject", "'OFF'"};
	bool verified;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		project(s, arena_printf(s->arena, "independence: {mode: %s}\nnote_limits: {mode: %s}\n", modes[i], modes[i]));
		warned(s, "independence_unknown", "independence.mode", "warn");
		warned(s, "note_limits_unknown", "note_limits.mode", "warn");
		assert_int_equal(independence(s, &verified), RULES_WARN);
		assert_int_equal(rules_note_limits(&s->view), RULES_WARN);
	}
	project(s, "note_limits: {mode: \"off\"}\n");
	warned(s, "note_limits_unknown", "note_limits.mode", NULL);
}

static void require_verified_must_be_a_boolean(void **state)
{
	refused(*state, "independence: {require_verified: yes}\n", "independence.require_verified", "true or false");
}

static void without_any_text_the_defaults_hold(void **state)
{
	struct story *s = *state;
	bool verified = true;

	assert_int_equal(independence(s, &verified), RULES_WARN);
	assert_false(verified);
	assert_int_equal(rules_note_limits(&s->view), RULES_WARN);
	assert_false(rules_owner_only(&s->view));
	assert_int_equal(rules_resolution(&s->view), RESOLUTION_LEGACY);
	project(s, "{}");
	global(s, "{}");
	assert_int_equal(independence(s, &verified), RULES_WARN);
	assert_int_equal(rules_note_limits(&s->view), RULES_WARN);
}

static void the_projects_independence_replaces_the_block_whole(void **state)
{
	struct story *s = *state;
	bool verified;

	global(s, "independence: {mode: reject, require_verified: true}\n");
	assert_int_equal(independence(s, &verified), RULES_REJECT);
	assert_true(verified);
	project(s, "independence: {}\n");
	assert_int_equal(independence(s, &verified), RULES_WARN);
	assert_false(verified);
	project(s, "{}\n");
	assert_int_equal(independence(s, &verified), RULES_REJECT);
}

static void the_projects_note_limit_wins_if_the_key_is_there(void **state)
{
	struct story *s = *state;

	global(s, "note_limits: {mode: reject}\n");
	project(s, "note_limits: {}\n");
	assert_int_equal(rules_note_limits(&s->view), RULES_REJECT);
	project(s, "note_limits: {mode: warn}\n");
	assert_int_equal(rules_note_limits(&s->view), RULES_WARN);
	project(s, "note_limits: {mode: typo}\n");
	assert_int_equal(rules_note_limits(&s->view), RULES_WARN);
}

static void ownership_is_the_projects_if_given(void **state)
{
	struct story *s = *state;

	global(s, "note_ownership: owner\n");
	assert_true(rules_owner_only(&s->view));
	project(s, "note_ownership: open\n");
	assert_false(rules_owner_only(&s->view));
	project(s, "note_ownership: everybody\n");
	warned(s, "ownership_unknown", "note_ownership", NULL);
	assert_true(rules_owner_only(&s->view));
}

static void the_projects_resolution_wins(void **state)
{
	struct story *s = *state;

	global(s, "schema_resolution: layered\n");
	assert_int_equal(rules_resolution(&s->view), RESOLUTION_LAYERED);
	project(s, "schema_resolution: isolated\n");
	assert_int_equal(rules_resolution(&s->view), RESOLUTION_ISOLATED);
	project(s, "schema_resolution: layred\n");
	warned(s, "resolution_unknown", "schema_resolution", "did you mean \"layered\"?");
	assert_int_equal(rules_resolution(&s->view), RESOLUTION_LAYERED);
	global(s, "schema_resolution: isolated\n");
	warned(s, "resolution_global_isolated", "schema_resolution", NULL);
	assert_int_equal(rules_resolution(&s->view), RESOLUTION_LAYERED);
}

/* ---- labels ---- */

static void labels(const struct story *s, const char *start, const char *complete, const char *block)
{
	is(rules_label(&s->view, TRIGGER_START), start);
	is(rules_label(&s->view, TRIGGER_COMPLETE), complete);
	is(rules_label(&s->view, TRIGGER_BLOCK), block);
}

static void every_trigger_has_a_built_in_answer(void **state)
{
	struct story *s = *state;
	const char *const expected[TRIGGER_COUNT] = {"in-progress", "done", "blocked", NULL, NULL, "cancelled", NULL, "done"};

	for (int i = 0; i < TRIGGER_COUNT; i++)
		is(rules_label(&s->view, (enum trigger)i), expected[i]);
}

static void labels_are_layered_by_trigger(void **state)
{
	struct story *s = *state;

	global(s, "status_labels: {start: doing, complete: finished}\n");
	labels(s, "doing", "finished", NULL);
	project(s, "status_labels: {start: null}\n");
	labels(s, NULL, "finished", NULL);
	project(s, "status_labels: {block: on}\n");
	labels(s, "doing", "finished", "on");
	global(s, "{}");
	labels(s, "in-progress", "done", "on");
}

static void malformed_labels_are_ignored_never_fatal(void **state)
{
	struct story *s = *state;

	global(s, "status_labels: [a]\n");
	warned(s, "labels_malformed", "status_labels", NULL);
	labels(s, "in-progress", "done", "blocked");
	global(s, "status_labels: {start: [a], complete: x}\n");
	warned(s, "labels_malformed", "status_labels", NULL);
	labels(s, "in-progress", "done", "blocked");
	global(s, "status_labels: {begin: x, start: y}\n");
	warned(s, "W3", "status_labels.begin", NULL);
	labels(s, "y", NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(unquoted_off_does_not_switch_independence_off),
		STORY(unknown_modes_are_warn),
		STORY(require_verified_must_be_a_boolean),
		STORY(without_any_text_the_defaults_hold),
		STORY(the_projects_independence_replaces_the_block_whole),
		STORY(the_projects_note_limit_wins_if_the_key_is_there),
		STORY(ownership_is_the_projects_if_given),
		STORY(the_projects_resolution_wins),
		STORY(every_trigger_has_a_built_in_answer),
		STORY(labels_are_layered_by_trigger),
		STORY(malformed_labels_are_ignored_never_fatal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
