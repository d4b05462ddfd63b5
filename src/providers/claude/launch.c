/* How the program is started: everything but secrets is in its arguments, and its environment is built from nothing. */
#include "providers/claude/claude.h"
#include "providers/launch.h"

static bool setting_source(struct str name)
{
	return str_eq(name, STR("user")) || str_eq(name, STR("project")) || str_eq(name, STR("local"));
}

/* Keys of an instance: settingSources, whose settings of the program count (user, project, local). */
int claude_check(const struct provider_instance *instance, struct failure *f)
{
	const json_t *sources = json_object_get(instance->options, "settingSources");
	const json_t *source;
	const char *key;
	const json_t *value;
	size_t i;
	int result = 0;

	json_object_foreach((json_t *)(uintptr_t)instance->options, key, value)
		if (strcmp(key, "settingSources") != 0)
			result = fail_unknown(f, str_of(key), "a Claude instance knows only settingSources");
	if (sources != NULL && !json_is_array(sources))
		return fail_field(f, STR("settingSources"), json_received(f->arena, sources),
			"expected a list of user, project, local");
	json_array_foreach(sources, i, source)
		if (!setting_source(json_str(source)))
			result = fail_field(f, str_printf(f->arena, "settingSources[%zu]", i),
				json_received(f->arena, source), "expected user, project or local");
	return result;
}

/* Held read-only, the program may not ask either: what its list of tools does not hold is denied. Planning keeps its own
 * mode, as only there the program proposes a plan. */
const char *claude_mode(enum runtime_mode runtime, enum interaction_mode interaction, bool is_confined)
{
	static const char *const names[] = {"dontAsk", "default", "acceptEdits", "bypassPermissions"};

	if (interaction == INTERACTION_PLAN)
		return "plan";
	return is_confined ? names[RUNTIME_READ_ONLY] : names[runtime];
}

struct str claude_effort(const json_t *model_options)
{
	return json_member_str(model_options, "effort");
}

/* In one word: a value that begins with - would be read as another flag. */
static void add_value(struct launch_list *list, const char *flag, struct str value)
{
	if (value.p != NULL && value.n > 0)
		launch_add(list, arena_printf(list->arena, "%s=%.*s", flag, STRF(value)));
}

static void add_setting_sources(struct launch_list *list, const json_t *options)
{
	const json_t *sources = json_object_get(options, "settingSources");
	const json_t *source;
	struct str all = STR("");
	size_t i;

	if (sources == NULL)
		all = STR("user");
	json_array_foreach(sources, i, source)
		all = str_printf(list->arena, "%.*s%s%.*s", STRF(all), i == 0 ? "" : ",", STRF(json_str(source)));
	launch_add(list, arena_printf(list->arena, "--setting-sources=%.*s", STRF(all)));
}

static void add_modes(struct launch_list *list, const struct agent_config *config)
{
	bool reads_only = config->is_confined || config->runtime == RUNTIME_READ_ONLY;

	add_value(list, "--permission-mode", str_of(claude_mode(config->runtime, config->interaction, config->is_confined)));
	if (config->runtime == RUNTIME_FULL_ACCESS && !config->is_confined)
		launch_add(list, "--allow-dangerously-skip-permissions");
	if (reads_only)
		launch_add(list, config->interaction == INTERACTION_PLAN ? "--tools=Read,Grep,Glob,ExitPlanMode"
								  : "--tools=Read,Grep,Glob");
}

static void add_arguments(struct launch_list *list, const struct agent_config *config)
{
	static const char *const fixed[] = {"-p", "--output-format", "stream-json", "--verbose", "--input-format",
		"stream-json", "--permission-prompt-tool=stdio", "--include-partial-messages", "--strict-mcp-config"};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		launch_add(list, fixed[i]);
	add_setting_sources(list, config->instance->options);
	if (config->resume.p != NULL)
		add_value(list, "--resume", config->resume);
	else
		add_value(list, "--session-id", config->fresh);
	add_value(list, "--model", config->model);
	add_value(list, "--effort", claude_effort(config->model_options));
	add_modes(list, config);
	if (config->mcp_url.p != NULL) {
		/* Its servers come in the first line, where the credential is in no argument, file or environment. */
		launch_add(list, "--await-initialize");
		launch_add(list, "--allowedTools=mcp__" CLAUDE_SERVER "__*");
	}
}

static const char **environment(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena)
{
	static const char *const fixed[] = {
		"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1", /* the one reliable sign of rest */
		"CLAUDE_CODE_STARTUP_FAILURE_RESULTS=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1",
		"DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1",
		"CLAUDE_CODE_ENABLE_TODO_TOOLS=1", /* plans as whole lists: TodoWrite instead of TaskCreate and TaskUpdate */
		"CLAUDE_CODE_ENABLE_TASKS=0",
		"MCP_TOOL_TIMEOUT=3600000",
	};
	struct launch_list own;

	launch_list_init(&own, arena);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		launch_add(&own, fixed[i]);
	if (instance->home.p != NULL)
		launch_set(&own, "CLAUDE_CONFIG_DIR", instance->home);
	return launch_env(instance, place, own.items, arena);
}

/* Where the program keeps its settings and conversations. */
static const char *home_of(const char *const *env, struct arena *arena)
{
	const char *own = launch_value(env, "CLAUDE_CONFIG_DIR");
	const char *user = launch_value(env, "HOME");

	if (own != NULL)
		return own;
	return user == NULL ? NULL : arena_printf(arena, "%s/.claude", user);
}

int claude_launch(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
	struct agent_launch *out, struct failure *f)
{
	struct launch_list argv, writable;
	const char **env = environment(instance, place, arena);
	const char *home = home_of((const char *const *)env, arena);

	if (home == NULL)
		return fail(f, FAIL_INTERNAL, "Claude needs a home: neither the instance names one, nor is HOME set.");
	launch_list_init(&argv, arena);
	if (instance->command_count == 0)
		launch_add(&argv, driver_claude.program);
	for (size_t i = 0; i < instance->command_count; i++)
		launch_add(&argv, str_z(arena, instance->command[i]));
	add_arguments(&argv, place->config);
	launch_list_init(&writable, arena);
	launch_add(&writable, home);
	*out = (struct agent_launch){.argv = argv.items, .env = env, .ends_with_stdin = true, .writable = writable.items};
	return 0;
}
