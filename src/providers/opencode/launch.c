/* How the program is started: our bridge, which starts the server. No secret is in its arguments or environment. */
#include "providers/opencode/opencode.h"

#include "providers/launch.h"

/* Keys of an instance: none. */
int opencode_check(const struct provider_instance *instance, struct failure *f)
{
	const char *key;
	const json_t *value;
	int result = 0;

	json_object_foreach((json_t *)(uintptr_t)instance->options, key, value)
		result = fail_unknown(f, str_of(key), "an OpenCode instance has no keys of its own");
	return result;
}

/* `home` holds what the user's home would: configuration, login, conversations. */
static const char **environment(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena)
{
	static const char *const fixed[] = {"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"};
	static const struct {
		const char *name, *folder;
	} homes[] = {{"XDG_CONFIG_HOME", "config"}, {"XDG_DATA_HOME", "data"}, {"XDG_STATE_HOME", "state"}, {"XDG_CACHE_HOME", "cache"}};
	struct launch_list own;

	launch_list_init(&own, arena);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		launch_add(&own, fixed[i]);
	for (size_t i = 0; instance->home.p != NULL && i < sizeof(homes) / sizeof(homes[0]); i++)
		launch_set(&own, homes[i].name, str_printf(arena, "%.*s/%s", STRF(instance->home), homes[i].folder));
	return launch_env(instance, place, own.items, arena);
}

static void add_home(struct launch_list *list, const char *const *env, const char *name, const char *in_home)
{
	const char *own = launch_value(env, name);
	const char *user = launch_value(env, "HOME");

	if (own != NULL)
		launch_add(list, arena_printf(list->arena, "%s/opencode", own));
	else if (user != NULL)
		launch_add(list, arena_printf(list->arena, "%s/%s/opencode", user, in_home));
}

int opencode_launch(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
	struct agent_launch *out, struct failure *f)
{
	const char **env = environment(instance, place, arena);
	struct launch_list argv, writable;

	(void)f;
	launch_list_init(&argv, arena);
	launch_add(&argv, "/proc/self/exe"); /* the host that starts it is this program, too */
	launch_add(&argv, "opencode-bridge");
	if (instance->command_count == 0)
		launch_add(&argv, driver_opencode.program);
	for (size_t i = 0; i < instance->command_count; i++)
		launch_add(&argv, str_z(arena, instance->command[i]));
	launch_list_init(&writable, arena);
	add_home(&writable, (const char *const *)env, "XDG_CONFIG_HOME", ".config");
	add_home(&writable, (const char *const *)env, "XDG_DATA_HOME", ".local/share");
	add_home(&writable, (const char *const *)env, "XDG_STATE_HOME", ".local/state");
	add_home(&writable, (const char *const *)env, "XDG_CACHE_HOME", ".cache");
	*out = (struct agent_launch){.argv = argv.items, .env = env, .ends_with_stdin = true, .writable = writable.items};
	return 0;
}
