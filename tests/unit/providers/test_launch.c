/* What each kind of agent is started with. */
#include "providers/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static const char *const base[] = {"HOME=/home/ada", "PATH=/bin", "DAIS_STATE_DIR=/secret", "AWS_SECRET=x", "LC_ALL=C",
	"XDG_CONFIG_HOME=/x", "TMPDIR=/old", "https_proxy=http://p", NULL};

struct desk {
	struct arena *arena;
	struct provider_instance instance;
	struct agent_place place;
	struct agent_launch launch;
	struct failure failure;
};

static void desk_init(struct desk *d, const char *kind)
{
	*d = (struct desk){.arena = arena_create()};
	d->instance = (struct provider_instance){.id = STR("it"), .driver = driver_find(str_of(kind))};
	d->place = (struct agent_place){.cwd = STR("/repo"), .tmp = STR("/tmp/a"), .attempt = STR("A1"), .base = base,
		.runtime = RUNTIME_APPROVAL_REQUIRED, .interaction = INTERACTION_DEFAULT};
	failure_init(&d->failure, d->arena);
}

static void launch(struct desk *d)
{
	assert_int_equal(d->instance.driver->launch(&d->instance, &d->place, d->arena, &d->launch, &d->failure), 0);
}

static void assert_argv(const struct desk *d, const char *expected)
{
	struct buf text;

	buf_init(&text, d->arena, SIZE_MAX);
	for (const char **arg = d->launch.argv; *arg != NULL; arg++)
		buf_printf(&text, "%s%s", arg == d->launch.argv ? "" : " ", *arg);
	buf_add_char(&text, '\0');
	assert_string_equal(text.p, expected);
}

static void assert_env(const struct desk *d, const char *name, const char *value)
{
	const char *found = launch_value(d->launch.env, name);

	if (value == NULL)
		assert_null(found);
	else
		assert_string_equal(found, value);
}

static void the_environment_is_built_from_nothing(void **state)
{
	static const struct str own[] = {{"TERM=dumb", 9}, {"DAIS_ATTEMPT=forged", 19}, {"PATH=/opt", 9}};
	struct desk d;

	(void)state;
	desk_init(&d, "grok");
	d.instance.env = own;
	d.instance.env_count = 3;
	launch(&d);
	assert_env(&d, "HOME", "/home/ada");
	assert_env(&d, "PATH", "/opt");
	assert_env(&d, "LC_ALL", "C");
	assert_env(&d, "XDG_CONFIG_HOME", "/x");
	assert_env(&d, "https_proxy", "http://p");
	assert_env(&d, "TMPDIR", "/tmp/a");
	assert_env(&d, "TERM", "dumb");
	assert_env(&d, "DAIS_ATTEMPT", "A1");
	assert_env(&d, "DAIS_STATE_DIR", NULL);
	assert_env(&d, "AWS_SECRET", NULL);
	arena_destroy(d.arena);
}

static void grok_has_no_option_that_cannot_be_taken_back(void **state)
{
	static const struct str command[] = {{"npx", 3}, {"grok", 4}};
	struct desk d;

	(void)state;
	desk_init(&d, "grok");
	launch(&d);
	assert_argv(&d, "grok agent --no-leader stdio");
	assert_string_equal(d.launch.writable[0], "/home/ada/.grok");
	assert_true(d.launch.ends_with_stdin);
	d.place.runtime = RUNTIME_FULL_ACCESS;
	d.instance.command = command;
	d.instance.command_count = 2;
	d.instance.home = STR("/srv/grok");
	launch(&d);
	assert_argv(&d, "npx grok agent --no-leader stdio");
	assert_env(&d, "GROK_HOME", "/srv/grok");
	assert_env(&d, "HOME", "/home/ada");
	assert_string_equal(d.launch.writable[0], "/srv/grok");
	arena_destroy(d.arena);
}

static void gemini_begins_in_its_mode_and_trusts_the_folder(void **state)
{
	static const char *const modes[] = {"plan", "default", "auto_edit", "yolo"};
	struct desk d;

	(void)state;
	desk_init(&d, "gemini");
	for (int runtime = RUNTIME_READ_ONLY; runtime <= RUNTIME_FULL_ACCESS; runtime++) {
		d.place.runtime = (enum runtime_mode)runtime;
		launch(&d);
		assert_argv(&d, arena_printf(d.arena, "gemini --acp --skip-trust --approval-mode %s", modes[runtime]));
	}
	assert_env(&d, "GEMINI_CLI_NO_RELAUNCH", "true");
	arena_destroy(d.arena);
}

static void an_acp_command_is_complete(void **state)
{
	static const struct str command[] = {{"/opt/bin/codex-acp", 18}};
	struct desk d;

	(void)state;
	desk_init(&d, "acp");
	assert_int_equal(d.instance.driver->check(&d.instance, &d.failure), -1);
	assert_true(str_eq(d.failure.fields->path, STR("command")));
	assert_int_equal(d.instance.driver->launch(&d.instance, &d.place, d.arena, &d.launch, &d.failure), -1);
	d.instance.command = command;
	d.instance.command_count = 1;
	d.instance.home = STR("/srv/codex");
	assert_int_equal(d.instance.driver->check(&d.instance, &d.failure), 0);
	launch(&d);
	assert_argv(&d, "/opt/bin/codex-acp");
	assert_env(&d, "CODEX_HOME", "/srv/codex");
	arena_destroy(d.arena);
}

static void the_scripted_agent_is_the_server_itself(void **state)
{
	struct json_error error;
	struct desk d;
	json_t *options = json_read(STR("{\"scenario\":\"/tmp/s.yaml\"}"), &error);
	json_t *wrong = json_read(STR("{\"scenario\":\"s.yaml\",\"speed\":1}"), &error);

	(void)state;
	desk_init(&d, "script");
	d.instance.options = wrong;
	assert_int_equal(d.instance.driver->check(&d.instance, &d.failure), -1);
	assert_int_equal(d.failure.field_count, 2);
	d.instance.options = options;
	assert_int_equal(d.instance.driver->check(&d.instance, &d.failure), 0);
	launch(&d);
	assert_argv(&d, "/proc/self/exe script-agent /tmp/s.yaml");
	json_decref(options);
	json_decref(wrong);
	arena_destroy(d.arena);
}

static void what_cannot_run_says_why(void **state)
{
	(void)state;
	assert_non_null(driver_find(STR("antigravity"))->constraint);
	assert_null(driver_find(STR("grok"))->constraint);
	assert_null(driver_find(STR("nothing")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_environment_is_built_from_nothing),
		cmocka_unit_test(grok_has_no_option_that_cannot_be_taken_back),
		cmocka_unit_test(gemini_begins_in_its_mode_and_trusts_the_folder),
		cmocka_unit_test(an_acp_command_is_complete),
		cmocka_unit_test(the_scripted_agent_is_the_server_itself),
		cmocka_unit_test(what_cannot_run_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
