/* How the program is started. Its bridge is a file that the server keeps; no secret is in its arguments or environment. */
#include "providers/pi/pi.h"

#include "base/id.h"
#include "providers/launch.h"

/* What dais itself says, or what would take the conversation from it. */
static const char *const ours[] = {"--append-system-prompt", "--approve", "--continue", "--fork", "--mode", "--model", "--models",
	"--no-approve", "--no-session", "--print", "--provider", "--resume", "--session", "--session-id", "--thinking", "-a", "-c",
	"-na", "-p", "-r"};

static int check_command(const struct provider_instance *instance, struct failure *f)
{
	for (size_t i = 1; i < instance->command_count; i++)
		for (size_t k = 0; k < sizeof(ours) / sizeof(ours[0]); k++)
			if (str_eq(instance->command[i], str_of(ours[k])))
				return fail_field(f, str_printf(f->arena, "command[%zu]", i), instance->command[i],
					"expected no argument that dais gives to Pi itself");
	return 0;
}

/* Keys of an instance: trustProject, whether the extensions and settings in a repository's .pi count. */
int pi_check(const struct provider_instance *instance, struct failure *f)
{
	const json_t *trust = json_object_get(instance->options, "trustProject");
	const char *key;
	const json_t *value;
	int result = check_command(instance, f);

	json_object_foreach((json_t *)(uintptr_t)instance->options, key, value)
		if (strcmp(key, "trustProject") != 0)
			result = fail_unknown(f, str_of(key), "a Pi instance knows only trustProject");
	if (trust != NULL && !json_is_boolean(trust))
		return fail_field(f, STR("trustProject"), json_received(f->arena, trust), "expected true or false");
	return result;
}

const char *pi_gate(enum runtime_mode runtime, enum interaction_mode interaction, bool is_confined)
{
	static const char *const names[] = {"read", "ask", "edits", "full"};

	if (is_confined || runtime == RUNTIME_READ_ONLY)
		return names[RUNTIME_READ_ONLY];
	return interaction == INTERACTION_PLAN ? "plan" : names[runtime];
}

/* Pi does not know --flag=value: a value that begins with - would be another flag. */
static int add_value(struct launch_list *list, const char *flag, struct str value, struct failure *f)
{
	if (value.n == 0)
		return 0;
	if (value.p[0] == '-')
		return fail(f, FAIL_INVALID_REQUEST, "Pi takes no %s that begins with -: %.*s", flag + 2, STRF(value));
	launch_add(list, flag);
	launch_add(list, str_z(list->arena, value));
	return 0;
}

static int add_arguments(struct launch_list *list, const struct agent_config *config, const char *bridge, struct failure *f)
{
	static const char *const fixed[] = {"--mode", "rpc", "--offline"};
	bool is_trusted = json_is_true(json_object_get(config->instance->options, "trustProject"));

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		launch_add(list, fixed[i]);
	launch_add(list, is_trusted ? "--approve" : "--no-approve");
	launch_add(list, "--extension");
	launch_add(list, bridge);
	if (add_value(list, "--session-id", config->resume.p != NULL ? config->resume : config->fresh, f) != 0 ||
		add_value(list, "--model", config->model, f) != 0)
		return -1;
	return add_value(list, "--thinking", json_member_str(config->model_options, "thinking"), f);
}

static const char **environment(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena)
{
	struct launch_list own;

	launch_list_init(&own, arena);
	launch_add(&own, "PI_SKIP_VERSION_CHECK=1");
	launch_add(&own, "PI_TELEMETRY=0");
	if (instance->home.p != NULL)
		launch_set(&own, "PI_CODING_AGENT_DIR", instance->home);
	return launch_env(instance, place, own.items, arena);
}

/* Where the program keeps its settings and conversations. */
static const char *home_of(const char *const *env, struct arena *arena)
{
	const char *own = launch_value(env, "PI_CODING_AGENT_DIR");
	const char *user = launch_value(env, "HOME");

	if (own != NULL)
		return own;
	return user == NULL ? NULL : arena_printf(arena, "%s/.pi/agent", user);
}

/* Named after what is in it: an agent that outlives an update of the server keeps the one that it was started with. */
static const char *add_bridge(const struct agent_place *place, struct arena *arena, struct agent_launch *out)
{
	struct str text = {pi_bridge, pi_bridge_bytes};
	struct str hash = sha256_hex(arena, text);
	struct agent_file *file = ARENA_NEW(arena, struct agent_file);

	*file = (struct agent_file){.text = text,
		.path = arena_printf(arena, "%.*s/" PI_BRIDGE_PREFIX "%.*s" PI_BRIDGE_SUFFIX, STRF(place->files), 16, hash.p)};
	out->files = file;
	out->file_count = 1;
	return file->path;
}

int pi_launch(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
	struct agent_launch *out, struct failure *f)
{
	struct agent_launch launch = {.ends_with_stdin = true};
	struct launch_list argv, writable;
	const char *home;

	launch.env = environment(instance, place, arena);
	home = home_of((const char *const *)launch.env, arena);
	if (home == NULL)
		return fail(f, FAIL_INTERNAL, "Pi needs a home: neither the instance names one, nor is HOME set.");
	launch_list_init(&argv, arena);
	if (instance->command_count == 0)
		launch_add(&argv, driver_pi.program);
	for (size_t i = 0; i < instance->command_count; i++)
		launch_add(&argv, str_z(arena, instance->command[i]));
	if (add_arguments(&argv, place->config, add_bridge(place, arena, &launch), f) != 0)
		return -1;
	launch_list_init(&writable, arena);
	launch_add(&writable, home);
	launch.argv = argv.items;
	launch.writable = writable.items;
	*out = launch;
	return 0;
}
