/* How the program is started: arguments that keep it quiet and small, an environment without secrets. */
#include "providers/codex/private.h"

/* Settings of the program, as TOML. Plugins off stops all calls outside at its start; the rest of what could call out
 * follows; its own sub-agents and goals are off, since delegation goes through our endpoint. The program hands its whole
 * environment to the commands that it runs: what looks like a credential of the instance is kept from them, and the
 * marker of the attempt, which finds strays, is not. */
static const char *const settings[] = {
	"features.plugins=false",
	"analytics.enabled=false",
	"feedback.enabled=false",
	"check_for_update_on_startup=false",
	"shell_environment_policy.exclude=[\"DAIS_MCP_*\",\"DAIS_SEAT_TOKEN\",\"*_KEY\",\"*_TOKEN\",\"*_SECRET\",\"*_PASSWORD\"]",
	"features.multi_agent=false",
	"features.goals=false",
	"features.default_mode_request_user_input=true",
	"suppress_unstable_features_warning=true",
};
enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

/* Variables of the server that would change what the program does, or that it must not see. */
static const char *const withheld[] = {"CLAUDECODE=", "CLAUDE_CODE_", "CODEX_", "NODE_OPTIONS=", "DEBUG=", "DAIS_",
	"TMPDIR="};

static bool is_withheld(struct str variable)
{
	for (size_t i = 0; i < sizeof(withheld) / sizeof(withheld[0]); i++)
		if (str_starts(variable, str_of(withheld[i])))
			return true;
	return false;
}

static const char **arguments(const struct provider_instance *instance, struct arena *arena)
{
	const char **argv = ARENA_ARRAY(arena, const char *, instance->command_count + 2 * SETTINGS + 3);
	size_t n = 0;

	for (size_t i = 0; i < instance->command_count; i++)
		argv[n++] = str_z(arena, instance->command[i]);
	if (n == 0)
		argv[n++] = codex_driver.program;
	argv[n++] = "app-server";
	for (size_t i = 0; i < SETTINGS; i++) {
		argv[n++] = "-c";
		argv[n++] = settings[i];
	}
	argv[n] = NULL;
	return argv;
}

static struct str value_of(const char *const *environment, struct str name)
{
	for (; *environment != NULL; environment++)
		if (str_starts(str_of(*environment), name))
			return str_of(*environment + name.n);
	return STR_NONE;
}

int codex_launch(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
	struct agent_launch *out, struct failure *f)
{
	size_t base_count = 0;
	size_t n = 0;
	const char **env;
	const char **writable = ARENA_ARRAY(arena, const char *, 2);
	struct str home;

	while (place->base[base_count] != NULL)
		base_count++;
	env = ARENA_ARRAY(arena, const char *, base_count + instance->env_count + 4);
	for (size_t i = 0; i < base_count; i++)
		if (!is_withheld(str_of(place->base[i])))
			env[n++] = place->base[i];
	/* Where this is not writable its database does not open, and the program does not start. */
	env[n++] = arena_printf(arena, "TMPDIR=%.*s", STRF(place->tmp));
	env[n++] = arena_printf(arena, "DAIS_ATTEMPT=%.*s", STRF(place->attempt));
	if (instance->home.p != NULL)
		env[n++] = arena_printf(arena, "CODEX_HOME=%.*s", STRF(instance->home));
	for (size_t i = 0; i < instance->env_count; i++)
		env[n++] = str_z(arena, instance->env[i]);
	env[n] = NULL;
	home = instance->home.p != NULL ? instance->home : value_of(env, STR("CODEX_HOME="));
	if (home.p == NULL) {
		struct str user = value_of(env, STR("HOME="));

		if (user.p == NULL)
			return fail_field(f, STR("home"), STR_NONE,
				"codex needs a directory for its settings: configure home, or set HOME for the server");
		home = str_printf(arena, "%.*s/.codex", STRF(user));
	}
	writable[0] = str_z(arena, home);
	*out = (struct agent_launch){
		.argv = arguments(instance, arena), .env = env, .ends_with_stdin = true, .writable = writable};
	return 0;
}
