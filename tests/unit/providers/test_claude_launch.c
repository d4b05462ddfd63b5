/* How Claude Code is started: which arguments for which modes, and nothing secret among them. */
#include "providers/claude/claude.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const char *const server_environment[] = {"HOME=/home/ada", "PATH=/usr/bin", "CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=x",
	"NODE_OPTIONS=--inspect", "HOMEPAGE=x", NULL};

struct launched {
	struct arena *arena;
	struct provider_instance instance;
	struct agent_config config;
	struct agent_place place;
	struct agent_launch launch;
};

static int set_up(void **state)
{
	struct arena *arena = arena_create();
	struct launched *l = ARENA_NEW(arena, struct launched);

	l->arena = arena;
	l->instance.driver = &driver_claude;
	l->config = (struct agent_config){.instance = &l->instance,
		.cwd = STR("/repo"),
		.runtime = RUNTIME_APPROVAL_REQUIRED,
		.interaction = INTERACTION_DEFAULT,
		.fresh = STR("00000000-0000-4000-8000-000000000000"),
		.mcp_url = STR("http://127.0.0.1:4711/mcp")};
	l->place = (struct agent_place){.config = &l->config,
		.cwd = STR("/repo"),
		.tmp = STR("/tmp/private"),
		.attempt = STR("attempt-1"),
		.base = server_environment};
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
	struct failure f;

	failure_init(&f, l->arena);
	assert_int_equal(driver_claude.launch(&l->instance, &l->place, l->arena, &l->launch, &f), 0);
}

static bool among(const char *const *list, const char *text)
{
	for (; *list != NULL; list++)
		if (strcmp(*list, text) == 0)
			return true;
	return false;
}
#define HAS_ARGUMENT(l, text) among((const char *const *)(l)->launch.argv, text)
#define HAS_VARIABLE(l, text) among((const char *const *)(l)->launch.env, text)

static void a_new_conversation_has_the_id_that_we_chose(void **state)
{
	struct launched *l = *state;

	start(l);
	assert_string_equal(l->launch.argv[0], "claude");
	assert_true(HAS_ARGUMENT(l, "--session-id=00000000-0000-4000-8000-000000000000"));
	assert_true(HAS_ARGUMENT(l, "--permission-prompt-tool=stdio"));
	assert_true(HAS_ARGUMENT(l, "--strict-mcp-config"));
	assert_true(HAS_ARGUMENT(l, "--await-initialize"));
	assert_true(HAS_ARGUMENT(l, "--allowedTools=mcp__dais__*"));
	assert_true(HAS_ARGUMENT(l, "--setting-sources=user"));
	assert_true(l->launch.ends_with_stdin);
}

static void values_from_outside_stay_one_word(void **state)
{
	struct launched *l = *state;
	json_t *options = json_pack("{s:s}", "effort", "high");

	l->config.resume = STR("--dangerously-skip-permissions");
	l->config.model = STR("-x");
	l->config.model_options = options;
	start(l);
	assert_true(HAS_ARGUMENT(l, "--resume=--dangerously-skip-permissions"));
	assert_false(HAS_ARGUMENT(l, "--session-id=00000000-0000-4000-8000-000000000000"));
	assert_true(HAS_ARGUMENT(l, "--model=-x"));
	assert_true(HAS_ARGUMENT(l, "--effort=high"));
	json_decref(options);
}

static void each_mode_has_its_permission_mode_and_tools(void **state)
{
	static const struct {
		enum runtime_mode runtime;
		enum interaction_mode interaction;
		bool is_confined;
		const char *mode;
		const char *tools; /* NULL: all */
		bool may_bypass;
	} rows[] = {
		{RUNTIME_READ_ONLY, INTERACTION_DEFAULT, false, "dontAsk", "--tools=Read,Grep,Glob", false},
		{RUNTIME_FULL_ACCESS, INTERACTION_DEFAULT, true, "dontAsk", "--tools=Read,Grep,Glob", false},
		{RUNTIME_READ_ONLY, INTERACTION_PLAN, true, "plan", "--tools=Read,Grep,Glob,ExitPlanMode", false},
		{RUNTIME_APPROVAL_REQUIRED, INTERACTION_DEFAULT, false, "default", NULL, false},
		{RUNTIME_APPROVAL_REQUIRED, INTERACTION_PLAN, false, "plan", NULL, false},
		{RUNTIME_AUTO_ACCEPT_EDITS, INTERACTION_DEFAULT, false, "acceptEdits", NULL, false},
		{RUNTIME_FULL_ACCESS, INTERACTION_DEFAULT, false, "bypassPermissions", NULL, true},
		{RUNTIME_FULL_ACCESS, INTERACTION_PLAN, false, "plan", NULL, true},
	};
	struct launched *l = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		l->config.runtime = rows[i].runtime;
		l->config.interaction = rows[i].interaction;
		l->config.is_confined = rows[i].is_confined;
		start(l);
		assert_true(HAS_ARGUMENT(l, arena_printf(l->arena, "--permission-mode=%s", rows[i].mode)));
		assert_int_equal(HAS_ARGUMENT(l, "--allow-dangerously-skip-permissions"), rows[i].may_bypass);
		if (rows[i].tools != NULL)
			assert_true(HAS_ARGUMENT(l, rows[i].tools));
		else
			assert_false(HAS_ARGUMENT(l, "--tools=Read,Grep,Glob"));
	}
}

static void the_environment_is_the_servers_without_that_of_another_agent(void **state)
{
	struct launched *l = *state;
	const struct str own[] = {STR("ANTHROPIC_BASE_URL=http://127.0.0.1:9")};

	l->instance.home = STR("/srv/claude");
	l->instance.env = own;
	l->instance.env_count = 1;
	start(l);
	assert_true(HAS_VARIABLE(l, "HOME=/home/ada"));
	assert_true(HAS_VARIABLE(l, "TMPDIR=/tmp/private"));
	assert_true(HAS_VARIABLE(l, "DAIS_ATTEMPT=attempt-1"));
	assert_true(HAS_VARIABLE(l, "CLAUDE_CONFIG_DIR=/srv/claude"));
	assert_true(HAS_VARIABLE(l, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1"));
	assert_true(HAS_VARIABLE(l, "ANTHROPIC_BASE_URL=http://127.0.0.1:9"));
	assert_false(HAS_VARIABLE(l, "CLAUDECODE=1"));
	assert_false(HAS_VARIABLE(l, "CLAUDE_CODE_SESSION_ID=x"));
	assert_false(HAS_VARIABLE(l, "NODE_OPTIONS=--inspect"));
	assert_string_equal(l->launch.writable[0], "/srv/claude");
	assert_null(l->launch.writable[1]);
}

static void nothing_secret_is_in_arguments_or_environment(void **state)
{
	struct launched *l = *state;

	start(l);
	for (const char **at = l->launch.argv; *at != NULL; at++) {
		assert_null(strstr(*at, AGENT_SECRET));
		assert_null(strstr(*at, "127.0.0.1:4711"));
	}
	for (const char **at = l->launch.env; *at != NULL; at++)
		assert_null(strstr(*at, AGENT_SECRET));
}

static void without_our_endpoint_nothing_waits_for_it(void **state)
{
	struct launched *l = *state;

	l->config.mcp_url = STR_NONE;
	start(l);
	assert_false(HAS_ARGUMENT(l, "--await-initialize"));
	assert_true(HAS_ARGUMENT(l, "--strict-mcp-config"));
	assert_string_equal(l->launch.writable[0], "/home/ada/.claude");
}

static void a_configured_command_comes_first(void **state)
{
	struct launched *l = *state;
	const struct str command[] = {STR("/opt/claude"), STR("--debug")};

	l->instance.command = command;
	l->instance.command_count = 2;
	start(l);
	assert_string_equal(l->launch.argv[0], "/opt/claude");
	assert_string_equal(l->launch.argv[1], "--debug");
	assert_string_equal(l->launch.argv[2], "-p");
}

static void without_a_home_there_is_no_start(void **state)
{
	static const char *const nothing[] = {"PATH=/usr/bin", NULL};
	struct launched *l = *state;
	struct failure f;

	failure_init(&f, l->arena);
	l->place.base = nothing;
	assert_int_equal(driver_claude.launch(&l->instance, &l->place, l->arena, &l->launch, &f), -1);
}

static int check(struct launched *l, const char *options, struct failure *f)
{
	struct json_error error;
	json_t *value = json_read(str_of(options), &error);
	int result;

	failure_init(f, l->arena);
	l->instance.options = value;
	result = driver_claude.check(&l->instance, f);
	json_decref(value);
	l->instance.options = NULL;
	return result;
}

static void keys_of_the_configuration_are_checked(void **state)
{
	struct launched *l = *state;
	struct failure f;

	assert_int_equal(check(l, "{}", &f), 0);
	assert_int_equal(check(l, "{\"settingSources\":[]}", &f), 0);
	assert_int_equal(check(l, "{\"settingSources\":[\"user\",\"project\",\"local\"]}", &f), 0);
	assert_int_equal(check(l, "{\"settingSources\":\"user\"}", &f), -1);
	assert_true(str_eq(f.fields->path, STR("settingSources")));
	assert_int_equal(check(l, "{\"settingSources\":[\"user\",\"--x\"]}", &f), -1);
	assert_true(str_eq(f.fields->path, STR("settingSources[1]")));
	assert_int_equal(check(l, "{\"sandbox\":true}", &f), -1);
	assert_true(str_eq(f.fields->path, STR("sandbox")));
}

static void chosen_setting_sources_are_passed_on(void **state)
{
	struct launched *l = *state;
	json_t *options = json_pack("{s:[s,s]}", "settingSources", "user", "project");

	l->instance.options = options;
	start(l);
	assert_true(HAS_ARGUMENT(l, "--setting-sources=user,project"));
	json_decref(options);
}

static const char *code_of_end(struct launched *l, const char *cause)
{
	struct agent_exit end = {.code = -1, .cause = str_of(cause)};
	struct agent *agent = driver_claude.create(&l->config);
	struct agent_out out;

	agent_out_init(&out, l->arena);
	driver_claude.begin(agent, 1, &out);
	agent_out_init(&out, l->arena);
	driver_claude.exited(agent, &end, &out);
	driver_claude.destroy(agent);
	assert_int_equal(out.events->kind, EVENT_OPEN_FAILED);
	return str_z(l->arena, out.events->failure.code);
}

static void an_end_that_is_not_the_programs_own_says_whose(void **state)
{
	assert_string_equal(code_of_end(*state, "spawn_failed"), "spawn_failed");
	assert_string_equal(code_of_end(*state, "start_timeout"), "start_timeout");
	assert_string_equal(code_of_end(*state, "line_too_long"), "protocol_violation");
	assert_string_equal(code_of_end(*state, "deadline"), "timeout");
	assert_string_equal(code_of_end(*state, "lost"), "connection_lost");
	assert_string_equal(code_of_end(*state, "exited"), "process_exit");
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_new_conversation_has_the_id_that_we_chose),
		STORY(values_from_outside_stay_one_word),
		STORY(each_mode_has_its_permission_mode_and_tools),
		STORY(the_environment_is_the_servers_without_that_of_another_agent),
		STORY(nothing_secret_is_in_arguments_or_environment),
		STORY(without_our_endpoint_nothing_waits_for_it),
		STORY(a_configured_command_comes_first),
		STORY(without_a_home_there_is_no_start),
		STORY(keys_of_the_configuration_are_checked),
		STORY(chosen_setting_sources_are_passed_on),
		STORY(an_end_that_is_not_the_programs_own_says_whose),
	};

	return cmocka_run_group_tests_name("claude launch", tests, NULL, NULL);
}
