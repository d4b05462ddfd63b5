/* How the program is started: everything but secrets is in its arguments, and its environment is built from nothing. */
#include "providers/claude/claude.h"

#include <stdlib.h>

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

struct list {
	struct arena *arena;
	const char **at;
	size_t n, cap;
};

static void add(struct list *list, const char *text)
{
	if (list->n + 2 > list->cap) {
		size_t cap = list->cap == 0 ? 32 : list->cap * 2;

		list->at = arena_grow(list->arena, list->at, list->cap * sizeof(*list->at), cap * sizeof(*list->at));
		list->cap = cap;
	}
	list->at[list->n++] = text;
	list->at[list->n] = NULL;
}

/* In one word: a value that begins with - would be read as another flag. */
static void add_value(struct list *list, const char *flag, struct str value)
{
	if (value.p != NULL && value.n > 0)
		add(list, arena_printf(list->arena, "%s=%.*s", flag, STRF(value)));
}

static void add_setting_sources(struct list *list, const json_t *options)
{
	const json_t *sources = json_object_get(options, "settingSources");
	const json_t *source;
	struct str all = STR("");
	size_t i;

	if (sources == NULL)
		all = STR("user");
	json_array_foreach(sources, i, source)
		all = str_printf(list->arena, "%.*s%s%.*s", STRF(all), i == 0 ? "" : ",", STRF(json_str(source)));
	add(list, arena_printf(list->arena, "--setting-sources=%.*s", STRF(all)));
}

static void add_modes(struct list *list, const struct agent_config *config)
{
	bool reads_only = config->is_confined || config->runtime == RUNTIME_READ_ONLY;

	add_value(list, "--permission-mode", str_of(claude_mode(config->runtime, config->interaction, config->is_confined)));
	if (config->runtime == RUNTIME_FULL_ACCESS && !config->is_confined)
		add(list, "--allow-dangerously-skip-permissions");
	if (reads_only)
		add(list, config->interaction == INTERACTION_PLAN ? "--tools=Read,Grep,Glob,ExitPlanMode"
								  : "--tools=Read,Grep,Glob");
}

static void add_arguments(struct list *list, const struct agent_config *config)
{
	static const char *const fixed[] = {"-p", "--output-format", "stream-json", "--verbose", "--input-format",
		"stream-json", "--permission-prompt-tool=stdio", "--include-partial-messages", "--strict-mcp-config"};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		add(list, fixed[i]);
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
		add(list, "--await-initialize");
		add(list, "--allowedTools=mcp__" CLAUDE_SERVER "__*");
	}
}

static struct str base_value(const struct agent_place *place, struct str name)
{
	for (size_t i = 0; place->base != NULL && place->base[i] != NULL; i++) {
		struct str entry = str_of(place->base[i]);

		if (str_starts(entry, name) && entry.n > name.n && entry.p[name.n] == '=')
			return (struct str){entry.p + name.n + 1, entry.n - name.n - 1};
	}
	return STR_NONE;
}

/* What a parent of ours that is itself such an agent left in the environment. */
static bool is_foreign(struct str entry)
{
	return str_starts(entry, STR("CLAUDECODE=")) || str_starts(entry, STR("CLAUDE_CODE_")) ||
		str_starts(entry, STR("NODE_OPTIONS=")) || str_starts(entry, STR("DEBUG="));
}

static void add_environment(struct list *list, const struct provider_instance *instance, const struct agent_place *place)
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

	for (size_t i = 0; place->base != NULL && place->base[i] != NULL; i++)
		if (!is_foreign(str_of(place->base[i])))
			add(list, place->base[i]);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		add(list, fixed[i]);
	add_value(list, "TMPDIR", place->tmp);
	add_value(list, "DAIS_ATTEMPT", place->attempt);
	add_value(list, "CLAUDE_CONFIG_DIR", instance->home);
	for (size_t i = 0; i < instance->env_count; i++)
		add(list, str_z(list->arena, instance->env[i]));
}

int claude_launch(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
	struct agent_launch *out, struct failure *f)
{
	struct list argv = {.arena = arena}, env = {.arena = arena}, writable = {.arena = arena};
	struct str home = base_value(place, STR("HOME"));

	if (instance->home.p == NULL && home.p == NULL)
		return fail(f, FAIL_INTERNAL, "Claude needs a home: neither the instance names one, nor is HOME set.");
	if (instance->command_count == 0)
		add(&argv, driver_claude.program);
	for (size_t i = 0; i < instance->command_count; i++)
		add(&argv, str_z(arena, instance->command[i]));
	add_arguments(&argv, place->config);
	add_environment(&env, instance, place);
	add(&writable,
		instance->home.p != NULL ? str_z(arena, instance->home)
					 : arena_printf(arena, "%.*s/.claude", STRF(home)));
	*out = (struct agent_launch){.argv = argv.at, .env = env.at, .ends_with_stdin = true, .writable = writable.at};
	return 0;
}
