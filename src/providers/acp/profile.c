/* The rows, and the launch that follows from them. */
#include "providers/acp/profile.h"

#include "providers/launch.h"

#include <strings.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

#define COMMON_MODES \
	{ \
		.read_only = {"read-only", "read_only", "plan"}, .approval = {"default", "ask-permissions", "manual"}, \
		.edits = {"acceptEdits", "autoEdit", "auto_edit", "accept-edits"}, \
		.full = {"bypassPermissions", "yolo", "full-access", "agent-full-access"}, .plan = {"plan"} \
	}

static const struct acp_profile profiles[] = {
	{.name = "generic", .kind = "acp", .modes = COMMON_MODES},
	/* What it is told apart from the prompt leaves the prompt to the scenario. */
	{.name = "script", .kind = "script", .modes = COMMON_MODES, .steering = STEER_NONE, .has_rules = true},
	{
		.name = "grok",
		.kind = "grok",
		.program = "grok",
		.home_env = "GROK_HOME",
		.home_dir = ".grok",
		/* Without --no-leader a process that others share may do the work. Not --always-approve for full access: it
		 * cannot be taken back when the session goes on in another mode, and the driver answers all the same. */
		.args = LIST("agent", "--no-leader", "stdio"),
		.modes = {.read_only = {"plan"}, .approval = {"default"}, .edits = {"default"}, .full = {"default"}, .plan = {"plan"}},
		.steering = STEER_INTERJECT,
		.mcp_sign = MCP_SIGN_GROK,
		.has_hidden_modes = true,
		.has_rules = true,
		.reports_usage = true,
		.input_has_cached = true,
		.outlives_cancel = true,
	},
	{
		.name = "gemini",
		.kind = "gemini",
		.info = "gemini",
		.program = "gemini",
		.home_dir = ".gemini",
		/* In a folder that is not trusted it leaves MCP servers out without a word. */
		.args = LIST("--acp", "--skip-trust"),
		.env = LIST("GEMINI_CLI_NO_RELAUNCH=true"),
		.mode_flag = "--approval-mode",
		.modes = COMMON_MODES,
		.mcp_sign = MCP_SIGN_GEMINI,
		.reports_usage = true,
		.tells_mode_as_text = true,
	},
	{
		.name = "cursor",
		.kind = "cursor",
		.info = "cursor",
		.program = "cursor-agent",
		.home_dir = ".cursor",
		.args = LIST("acp"),
		.modes = {.read_only = {"ask", "plan"}, .approval = {"agent"}, .edits = {"agent"}, .full = {"agent"}, .plan = {"plan"}},
	},
	{
		.name = "antigravity",
		.kind = "antigravity",
		.info = "antigravity",
		.program = "agy",
		.args = LIST("acp", "--print"),
		.modes = COMMON_MODES,
		.asks_by_permission = true,
		.outlives_cancel = true,
	},
	{
		.name = "claude-acp",
		.info = "claude",
		.program = "claude-agent-acp",
		.home_env = "CLAUDE_CONFIG_DIR",
		.home_dir = ".claude",
		.modes = COMMON_MODES,
		.mcp_sign = MCP_SIGN_CLAUDE,
		.reports_usage = true,
	},
	{
		.name = "codex-acp",
		.info = "codex",
		.program = "codex-acp",
		.home_env = "CODEX_HOME",
		.home_dir = ".codex",
		/* Its default mode, agent, lets a second model decide about each call: one of the others is always set. */
		.modes = {.read_only = {"read-only"}, .approval = {"read-only"}, .edits = {"workspace-write"},
			.full = {"agent-full-access"}, .plan = {"plan"}},
		.steering = STEER_EXTENSION,
		.mcp_sign = MCP_SIGN_CODEX,
		.reports_usage = true,
		.unnamed_text_is_notice = true,
		.title_is_question = true,
	},
	{
		.name = "opencode-acp",
		.info = "opencode",
		.program = "opencode",
		.modes = {.read_only = {"plan"}, .approval = {"build"}, .edits = {"build"}, .full = {"build"}, .plan = {"plan"}},
		.mcp_sign = MCP_SIGN_OPENCODE,
		.reports_usage = true,
	},
};

static const size_t profile_count = sizeof(profiles) / sizeof(profiles[0]);

const struct acp_profile *acp_profile_of_kind(const char *kind)
{
	for (size_t i = 0; i < profile_count; i++)
		if (profiles[i].kind != NULL && strcmp(profiles[i].kind, kind) == 0)
			return &profiles[i];
	return &profiles[0];
}

const struct acp_profile *acp_profile_named(struct str name)
{
	for (size_t i = 0; i < profile_count; i++)
		if (str_eq(name, str_of(profiles[i].name)))
			return &profiles[i];
	return NULL;
}

/* Grok tells no name, but its ways to log in are its own. */
static bool is_grok(const json_t *initialized)
{
	const json_t *methods = json_object_get(initialized, "authMethods");
	const json_t *method;
	size_t i;

	json_array_foreach (methods, i, method) {
		struct str id = json_member_str(method, "id");

		if (str_eq(id, STR("grok.com")) || str_eq(id, STR("xai.api_key")))
			return true;
	}
	return false;
}

const struct acp_profile *acp_profile_recognise(const json_t *initialized)
{
	const char *name = json_string_value(json_object_get(json_object_get(initialized, "agentInfo"), "name"));

	for (size_t i = 0; i < profile_count && name != NULL; i++)
		if (profiles[i].info != NULL && strcasestr(name, profiles[i].info) != NULL)
			return &profiles[i];
	return name == NULL && is_grok(initialized) ? acp_profile_of_kind("grok") : &profiles[0];
}

/* ---- launch ---- */

static bool is_program(const struct provider_instance *instance, const char *program)
{
	for (size_t i = 0; i < instance->command_count; i++) {
		struct str word = instance->command[i];
		const char *slash = word.n == 0 ? NULL : memrchr(word.p, '/', word.n);
		struct str base = slash == NULL ? word : (struct str){slash + 1, (size_t)(word.p + word.n - slash - 1)};

		if (str_eq(base, str_of(program)))
			return true;
	}
	return false;
}

/* The row by the kind of the driver or, for kind acp, by the words of the command. */
static const struct acp_profile *profile_of_instance(const struct provider_instance *instance)
{
	const struct acp_profile *profile = acp_profile_of_kind(instance->driver->kind);

	if (profile != &profiles[0])
		return profile;
	for (size_t i = 1; i < profile_count; i++)
		if (profiles[i].program != NULL && is_program(instance, profiles[i].program))
			return &profiles[i];
	return profile;
}

static void add_command(const struct provider_instance *instance, struct launch_list *argv)
{
	if (strcmp(instance->driver->kind, "script") == 0) {
		/* The host that starts it is this program too. */
		launch_add(argv, "/proc/self/exe");
		launch_add(argv, "script-agent");
		launch_add(argv, str_z(argv->arena, json_member_str(instance->options, "scenario")));
		return;
	}
	for (size_t i = 0; i < instance->command_count; i++)
		launch_add(argv, str_z(argv->arena, instance->command[i]));
	if (instance->command_count == 0)
		launch_add(argv, instance->driver->program);
}

static const char *start_mode(const struct agent_place *place)
{
	static const char *const names[] = {[RUNTIME_READ_ONLY] = "plan", [RUNTIME_APPROVAL_REQUIRED] = "default",
		[RUNTIME_AUTO_ACCEPT_EDITS] = "auto_edit", [RUNTIME_FULL_ACCESS] = "yolo"};

	return place->interaction == INTERACTION_PLAN ? "plan" : names[place->runtime];
}

static void add_arguments(const struct acp_profile *profile, const struct provider_instance *instance,
	const struct agent_place *place, struct launch_list *argv)
{
	/* The command of an instance of kind acp is complete. */
	if (profile->kind == NULL || strcmp(profile->kind, instance->driver->kind) != 0)
		return;
	for (const char *const *arg = profile->args; arg != NULL && *arg != NULL; arg++)
		launch_add(argv, *arg);
	if (profile->mode_flag != NULL) {
		launch_add(argv, profile->mode_flag);
		launch_add(argv, start_mode(place));
	}
}

static const char **writable(const struct acp_profile *profile, const struct provider_instance *instance,
	const char *const *env, struct arena *arena)
{
	struct launch_list list;
	const char *home = launch_value(env, "HOME");

	launch_list_init(&list, arena);
	if (instance->home.p != NULL)
		launch_add(&list, str_z(arena, instance->home));
	else if (profile->home_env != NULL && launch_value(env, profile->home_env) != NULL)
		launch_add(&list, launch_value(env, profile->home_env));
	else if (profile->home_dir != NULL && home != NULL)
		launch_add(&list, arena_printf(arena, "%s/%s", home, profile->home_dir));
	return list.items;
}

int acp_launch(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
	struct agent_launch *out, struct failure *f)
{
	const struct acp_profile *profile = profile_of_instance(instance);
	struct launch_list argv, extra;

	if (instance->command_count == 0 && instance->driver->program == NULL && strcmp(instance->driver->kind, "script") != 0)
		return fail(f, FAIL_BAD_CONFIGURATION, "The provider %.*s names no command to start.", STRF(instance->id));
	launch_list_init(&argv, arena);
	add_command(instance, &argv);
	add_arguments(profile, instance, place, &argv);
	launch_list_init(&extra, arena);
	for (const char *const *variable = profile->env; variable != NULL && *variable != NULL; variable++)
		launch_add(&extra, *variable);
	if (instance->home.p != NULL)
		launch_set(&extra, profile->home_env == NULL ? "HOME" : profile->home_env, instance->home);
	*out = (struct agent_launch){.argv = argv.items,
		.env = launch_env(instance, place, extra.items, arena),
		.ends_with_stdin = true};
	out->writable = writable(profile, instance, out->env, arena);
	return 0;
}

/* ---- configuration ---- */

static void check_scenario(const json_t *options, struct failure *f, int *rc)
{
	struct str scenario = json_member_str(options, "scenario");

	if (scenario.n == 0 || scenario.p[0] != '/' || memchr(scenario.p, '\0', scenario.n) != NULL)
		*rc = fail_field(f, STR("scenario"), scenario, "must be the absolute path of a scenario file");
}

int acp_check(const struct provider_instance *instance, struct failure *f)
{
	bool is_script = strcmp(instance->driver->kind, "script") == 0;
	const char *key;
	json_t *value;
	int rc = 0;

	if (is_script)
		check_scenario(instance->options, f, &rc);
	else if (instance->command_count == 0 && instance->driver->program == NULL)
		rc = fail_field(f, STR("command"), STR_NONE, "must be the program to start, with its arguments");
	json_object_foreach ((json_t *)(uintptr_t)instance->options, key, value) {
		if (strcmp(key, is_script ? "scenario" : "authMethod") != 0)
			rc = fail_field(f, str_of(key), STR_NONE, "is no key of the driver %s", instance->driver->kind);
		else if (json_str(value).n == 0 && !is_script)
			rc = fail_field(f, STR("authMethod"), STR_NONE, "must be the id of a method that the agent offers");
	}
	return rc;
}
