#include "story.h"

static void roles_and_triggers_fold_case(void **state)
{
	enum role role;
	enum trigger trigger;

	(void)state;
	assert_true(role_parse(STR("Review"), &role) && role == ROLE_REVIEW);
	assert_true(role_parse(STR("BLOCKED"), &role) && role == ROLE_BLOCKED);
	assert_false(role_parse(STR("done"), &role));
	assert_true(trigger_parse(STR("START"), &trigger) && trigger == TRIGGER_START);
	assert_false(trigger_parse(STR("cascade"), &trigger));
	assert_false(trigger_parse(STR(""), &trigger));
}

static void every_word_reads_back(void **state)
{
	enum role role;
	enum trigger trigger;

	(void)state;
	for (int i = ROLE_BLOCKED; i <= ROLE_TERMINAL; i++)
		assert_true(role_parse(str_of(role_name((enum role)i)), &role) && role == (enum role)i);
	for (int i = 0; i < TRIGGER_CASCADE; i++)
		assert_true(trigger_parse(str_of(trigger_name((enum trigger)i)), &trigger) && trigger == (enum trigger)i);
	assert_string_equal(trigger_name(TRIGGER_CASCADE), "cascade");
	assert_string_equal(lifecycle_name(LIFECYCLE_AUTO_REOPEN), "auto-reopen");
	assert_string_equal(rules_mode_name(RULES_OFF), "off");
	assert_string_equal(rules_source_name(RULES_PROJECT), "project");
	assert_string_equal(resolution_name(RESOLUTION_ISOLATED), "isolated");
}

static struct str filled(char *room, size_t n)
{
	memset(room, 'a', n);
	return (struct str){room, n};
}

static void keys_follow_their_grammar(void **state)
{
	char room[200];

	(void)state;
	assert_true(rules_is_rule_key(STR("a.b_c-9")));
	assert_true(rules_is_rule_key(filled(room, 100)));
	assert_false(rules_is_rule_key(filled(room, 101)));
	assert_false(rules_is_rule_key(STR("a/b")));
	assert_false(rules_is_rule_key(STR("A")));
	assert_false(rules_is_rule_key(STR("")));
	assert_false(rules_is_rule_key(STR("-a")));
	assert_false(rules_is_rule_key(STR("a\0b")));
	assert_true(rules_is_resource_key(STR("port/80.x_y-z")));
	assert_true(rules_is_resource_key(filled(room, 128)));
	assert_false(rules_is_resource_key(filled(room, 129)));
	assert_false(rules_is_resource_key(STR("/port")));
	assert_false(rules_is_resource_key(STR("a b")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(roles_and_triggers_fold_case),
		STORY(every_word_reads_back),
		STORY(keys_follow_their_grammar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
