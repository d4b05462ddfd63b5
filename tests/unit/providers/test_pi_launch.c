/* How Pi is started: which arguments, which file of ours, and nothing secret among them. */
#include "providers/pi/pi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const char *const server_environment[] = {"HOME=/home/ada", "PATH=/usr/bin", "DAIS_SECRET=x", NULL};

struct launched {
	struct arena *arena;
	struct provider_instance instance;
	struct agent_config config;
	struct agent_place place;
	struct agent_launch launch;
	struct failure f;
};

static int set_up(void **state)
{
	struct arena *arena = arena_create();
	struct launched *l = ARENA_NEW(arena, struct launched);

	l->arena = arena;
	l->instance.driver = &driver_pi;
	l->config = (struct agent_config){.instance = &l->instance,
		.cwd = STR("/repo"),
		.fresh = STR("00000000-0000-4000-8000-000000000000"),
		.mcp_url = STR("http://127.0.0.1:4711/mcp")};
	l->place = (struct agent_place){.config = &l->config,
		.cwd = STR("/repo"),
		.tmp = STR("/tmp/private"),
		.files = STR("/state/agents/files"),
		.attempt = STR("attempt-1"),
		.base = server_environment};
	failure_init(&l->f, arena);
	*state = l;
	return 0;
}

static int tear_down(void **state)
{
	struct launched *l = *state;

	arena_destroy(l->arena);
	return 0;
}

static void start(struct launched *l)
{
	assert_int_equal(driver_pi.launch(&l->instance, &l->place, l->arena, &l->launch, &l->f), 0);
}

/* What follows `flag`; NULL: it is not there. */
static const char *value_of(const struct launched *l, const char *flag)
{
	for (const char *const *argument = l->launch.argv; *argument != NULL; argument++)
		if (strcmp(*argument, flag) == 0)
			return argument[1] == NULL ? "" : argument[1];
	return NULL;
}

static bool has_variable(const struct launched *l, const char *text)
{
	for (const char *const *variable = l->launch.env; *variable != NULL; variable++)
		if (strcmp(*variable, text) == 0)
			return true;
	return false;
}

static void a_new_conversation_has_the_id_that_we_chose(void **state)
{
	struct launched *l = *state;

	start(l);
	assert_string_equal(l->launch.argv[0], "pi");
	assert_string_equal(value_of(l, "--mode"), "rpc");
	assert_string_equal(value_of(l, "--session-id"), "00000000-0000-4000-8000-000000000000");
	assert_non_null(value_of(l, "--offline"));
	assert_null(value_of(l, "--model"));
	assert_true(l->launch.ends_with_stdin);
}

static void an_earlier_conversation_is_named_with_model_and_thinking(void **state)
{
	struct launched *l = *state;
	json_t *options = json_pack("{s:s}", "thinking", "high");

	l->config.resume = STR("S1");
	l->config.model = STR("fake/fake-1");
	l->config.model_options = options;
	start(l);
	assert_string_equal(value_of(l, "--session-id"), "S1");
	assert_string_equal(value_of(l, "--model"), "fake/fake-1");
	assert_string_equal(value_of(l, "--thinking"), "high");
	json_decref(options);
}

static void a_value_that_would_be_a_flag_is_refused(void **state)
{
	struct launched *l = *state;

	l->config.model = STR("--approve");
	assert_int_equal(driver_pi.launch(&l->instance, &l->place, l->arena, &l->launch, &l->f), -1);
}

static void the_bridge_is_brought_along_under_a_name_of_its_content(void **state)
{
	struct launched *l = *state;

	start(l);
	assert_int_equal(l->launch.file_count, 1);
	assert_string_equal(value_of(l, "--extension"), l->launch.files[0].path);
	assert_true(str_starts(str_of(l->launch.files[0].path), STR("/state/agents/files/" PI_BRIDGE_PREFIX)));
	assert_true(str_ends(str_of(l->launch.files[0].path), STR(PI_BRIDGE_SUFFIX)));
	assert_int_equal(l->launch.files[0].text.n, pi_bridge_bytes);
	assert_non_null(memmem(pi_bridge, pi_bridge_bytes, "export default", 14));
}

static void no_secret_and_no_address_is_in_arguments_or_environment(void **state)
{
	struct launched *l = *state;

	start(l);
	for (const char *const *argument = l->launch.argv; *argument != NULL; argument++)
		assert_true(strstr(*argument, "4711") == NULL && strstr(*argument, AGENT_SECRET) == NULL);
	for (const char *const *variable = l->launch.env; *variable != NULL; variable++)
		assert_true(strstr(*variable, "4711") == NULL && strstr(*variable, "SECRET") == NULL);
}

static void the_home_is_named_and_writable(void **state)
{
	struct launched *l = *state;

	start(l);
	assert_string_equal(l->launch.writable[0], "/home/ada/.pi/agent");
	l->instance.home = STR("/srv/pi");
	start(l);
	assert_string_equal(l->launch.writable[0], "/srv/pi");
	assert_true(has_variable(l, "PI_CODING_AGENT_DIR=/srv/pi"));
	l->instance.home = STR_NONE;
	l->place.base = server_environment + 1;
	assert_int_equal(driver_pi.launch(&l->instance, &l->place, l->arena, &l->launch, &l->f), -1);
}

static void a_project_is_trusted_only_when_the_configuration_says_so(void **state)
{
	struct launched *l = *state;
	json_t *options = json_pack("{s:b}", "trustProject", 1);

	start(l);
	assert_non_null(value_of(l, "--no-approve"));
	l->instance.options = options;
	assert_int_equal(driver_pi.check(&l->instance, &l->f), 0);
	start(l);
	assert_non_null(value_of(l, "--approve"));
	assert_null(value_of(l, "--no-approve"));
	json_object_set_new(options, "trustProject", json_string("yes"));
	assert_int_equal(driver_pi.check(&l->instance, &l->f), -1);
	json_object_clear(options);
	json_object_set_new(options, "trust", json_true());
	assert_int_equal(driver_pi.check(&l->instance, &l->f), -1);
	json_decref(options);
}

static void arguments_that_are_ours_are_refused_in_a_command(void **state)
{
	struct launched *l = *state;
	const struct str good[] = {STR("/opt/pi"), STR("--no-extensions")};
	const struct str bad[] = {STR("/opt/pi"), STR("--no-extensions"), STR("--approve")};

	l->instance.command = good;
	l->instance.command_count = 2;
	assert_int_equal(driver_pi.check(&l->instance, &l->f), 0);
	start(l);
	assert_string_equal(l->launch.argv[0], "/opt/pi");
	assert_string_equal(l->launch.argv[1], "--no-extensions");
	l->instance.command = bad;
	l->instance.command_count = 3;
	assert_int_equal(driver_pi.check(&l->instance, &l->f), -1);
}

static void each_mode_has_its_gate(void **state)
{
	(void)state;
	assert_string_equal(pi_gate(RUNTIME_READ_ONLY, INTERACTION_PLAN, false), "read");
	assert_string_equal(pi_gate(RUNTIME_FULL_ACCESS, INTERACTION_DEFAULT, true), "read");
	assert_string_equal(pi_gate(RUNTIME_APPROVAL_REQUIRED, INTERACTION_DEFAULT, false), "ask");
	assert_string_equal(pi_gate(RUNTIME_AUTO_ACCEPT_EDITS, INTERACTION_DEFAULT, false), "edits");
	assert_string_equal(pi_gate(RUNTIME_FULL_ACCESS, INTERACTION_DEFAULT, false), "full");
	assert_string_equal(pi_gate(RUNTIME_FULL_ACCESS, INTERACTION_PLAN, false), "plan");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_conversation_has_the_id_that_we_chose),
		TEST(an_earlier_conversation_is_named_with_model_and_thinking),
		TEST(a_value_that_would_be_a_flag_is_refused),
		TEST(the_bridge_is_brought_along_under_a_name_of_its_content),
		TEST(no_secret_and_no_address_is_in_arguments_or_environment),
		TEST(the_home_is_named_and_writable),
		TEST(a_project_is_trusted_only_when_the_configuration_says_so),
		TEST(arguments_that_are_ours_are_refused_in_a_command),
		TEST(each_mode_has_its_gate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
