/* How codex is started, and what its driver does with a damaged state. Its sessions are in codex/. */
#include "providers/provider.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

struct start {
	struct arena *arena;
	struct provider_instance instance;
	struct agent_place place;
	struct agent_launch launch;
};

static const char *const server_environment[] = {"HOME=/home/u", "PATH=/usr/bin", "LANG=C.UTF-8", "CODEX_HOME=/elsewhere",
	"CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=1", "NODE_OPTIONS=--inspect", "DEBUG=1", "DAIS_DATABASE_PASSWORD=hidden",
	"TMPDIR=/tmp", NULL};

static int begin(void **state)
{
	struct arena *arena = arena_create();
	struct start *start = ARENA_NEW(arena, struct start);

	start->arena = arena;
	start->instance.driver = driver_find(STR("codex"));
	start->place = (struct agent_place){
		.cwd = STR("/repo"), .tmp = STR("/private"), .attempt = STR("A1"), .base = server_environment};
	*state = start;
	return 0;
}

static int end(void **state)
{
	arena_destroy(((struct start *)*state)->arena);
	return 0;
}

static void launch(struct start *start)
{
	struct failure f;

	failure_init(&f, start->arena);
	assert_int_equal(start->instance.driver->launch(&start->instance, &start->place, start->arena, &start->launch, &f), 0);
}

static bool has(const char *const *list, const char *word)
{
	for (; *list != NULL; list++)
		if (str_eq(str_of(*list), str_of(word)))
			return true;
	return false;
}

static bool has_name(const char *const *environment, const char *name)
{
	for (; *environment != NULL; environment++)
		if (str_starts(str_of(*environment), str_of(name)))
			return true;
	return false;
}

static void it_gets_a_clean_environment(void **state)
{
	struct start *start = *state;

	launch(start);
	assert_true(has(start->launch.env, "HOME=/home/u"));
	assert_true(has(start->launch.env, "PATH=/usr/bin"));
	assert_true(has(start->launch.env, "TMPDIR=/private"));
	assert_false(has(start->launch.env, "TMPDIR=/tmp"));
	assert_true(has(start->launch.env, "DAIS_ATTEMPT=A1"));
	assert_false(has_name(start->launch.env, "CODEX_"));
	assert_false(has_name(start->launch.env, "CLAUDE"));
	assert_false(has_name(start->launch.env, "NODE_OPTIONS"));
	assert_false(has_name(start->launch.env, "DEBUG"));
	assert_false(has_name(start->launch.env, "DAIS_DATABASE"));
}

static void it_calls_nobody_and_keeps_credentials_from_its_commands(void **state)
{
	struct start *start = *state;

	launch(start);
	assert_string_equal(start->launch.argv[0], "codex");
	assert_string_equal(start->launch.argv[1], "app-server");
	assert_true(has(start->launch.argv, "features.plugins=false"));
	assert_true(has(start->launch.argv, "analytics.enabled=false"));
	assert_true(has(start->launch.argv, "check_for_update_on_startup=false"));
	assert_true(has_name(start->launch.argv, "shell_environment_policy.exclude="));
	for (const char *const *word = start->launch.argv; *word != NULL; word++) {
		assert_null(strstr(*word, "mcp_servers"));
		assert_null(strstr(*word, "DAIS_ATTEMPT"));
	}
	assert_true(start->launch.ends_with_stdin);
}

static void an_instance_has_its_own_program_home_and_variables(void **state)
{
	struct start *start = *state;
	const struct str command[] = {STR("/opt/codex"), STR("--profile"), STR("work")};
	const struct str variables[] = {STR("MODEL_KEY=k")};

	start->instance.command = command;
	start->instance.command_count = 3;
	start->instance.env = variables;
	start->instance.env_count = 1;
	start->instance.home = STR("/home/u/second");
	launch(start);
	assert_string_equal(start->launch.argv[0], "/opt/codex");
	assert_string_equal(start->launch.argv[2], "work");
	assert_string_equal(start->launch.argv[3], "app-server");
	assert_true(has(start->launch.env, "CODEX_HOME=/home/u/second"));
	assert_true(has(start->launch.env, "MODEL_KEY=k"));
	assert_string_equal(start->launch.writable[0], "/home/u/second");
	assert_null(start->launch.writable[1]);
}

static void held_read_only_it_can_still_write_its_home(void **state)
{
	struct start *start = *state;

	launch(start);
	assert_string_equal(start->launch.writable[0], "/home/u/.codex");
}

static void without_any_home_it_is_not_started(void **state)
{
	static const char *const nothing[] = {NULL};
	struct start *start = *state;
	struct failure f;

	start->place.base = nothing;
	failure_init(&f, start->arena);
	assert_int_equal(start->instance.driver->launch(&start->instance, &start->place, start->arena, &start->launch, &f), -1);
	assert_true(str_eq(f.fields->path, STR("home")));
}

static void a_damaged_state_is_refused(void **state)
{
	static const char *const damaged[] = {"[]", "{}", "{\"phase\":99}", "null"};
	struct start *start = *state;

	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		struct agent_config config = {.instance = &start->instance, .cwd = STR("/repo")};
		struct agent *agent = start->instance.driver->create(&config);
		struct json_error error;
		json_t *stored = json_read(str_of(damaged[i]), &error);
		struct failure f;

		failure_init(&f, start->arena);
		assert_int_equal(start->instance.driver->load(agent, stored, &f), -1);
		json_decref(stored);
		start->instance.driver->destroy(agent);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_gets_a_clean_environment, begin, end),
		cmocka_unit_test_setup_teardown(it_calls_nobody_and_keeps_credentials_from_its_commands, begin, end),
		cmocka_unit_test_setup_teardown(an_instance_has_its_own_program_home_and_variables, begin, end),
		cmocka_unit_test_setup_teardown(held_read_only_it_can_still_write_its_home, begin, end),
		cmocka_unit_test_setup_teardown(without_any_home_it_is_not_started, begin, end),
		cmocka_unit_test_setup_teardown(a_damaged_state_is_refused, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
