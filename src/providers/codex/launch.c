/* How the program is started: arguments that keep it quiet and small, an environment without secrets. */
#include "providers/launch.h"

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

static const char **arguments(const struct provider_instance *instance, struct arena *arena)
{
	struct launch_list argv;

	launch_list_init(&argv, arena);
	for (size_t i = 0; i < instance->command_count; i++)
		launch_add(&argv, str_z(arena, instance->command[i]));
	if (instance->command_count == 0)
		launch_add(&argv, instance->driver->program);
	launch_add(&argv, "app-server");
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		launch_add(&argv, "-c");
		launch_add(&argv, settings[i]);
	}
	return argv.items;
}

int codex_launch(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
	struct agent_launch *out, struct failure *f)
{
	const char *extra[2] = {NULL, NULL};
	const char **writable = ARENA_ARRAY(arena, const char *, 2);
	const char **env;
	const char *user;

	if (instance->home.p != NULL)
		extra[0] = arena_printf(arena, "CODEX_HOME=%.*s", STRF(instance->home));
	env = launch_env(instance, place, extra, arena);
	writable[0] = launch_value(env, "CODEX_HOME");
	if (writable[0] == NULL) {
		user = launch_value(env, "HOME");
		if (user == NULL)
			return fail_field(f, STR("home"), STR_NONE,
				"codex needs a directory for its settings: configure home, or set HOME for the server");
		writable[0] = arena_printf(arena, "%s/.codex", user);
	}
	*out = (struct agent_launch){
		.argv = arguments(instance, arena), .env = env, .ends_with_stdin = true, .writable = writable};
	return 0;
}
