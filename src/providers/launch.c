#include "providers/launch.h"

/* Where a program finds its user, its settings and the way out. No credential of the server, nothing of DAIS_*. */
static const char *const passed_on[] = {"HOME", "PATH", "LANG", "LANGUAGE", "TZ", "TERM", "USER", "LOGNAME", "SHELL",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"};
static const char *const passed_on_prefixes[] = {"XDG_", "LC_"};

void launch_list_init(struct launch_list *list, struct arena *arena)
{
	*list = (struct launch_list){.arena = arena, .cap = 16};
	list->items = ARENA_ARRAY(arena, const char *, list->cap);
}

void launch_add(struct launch_list *list, const char *item)
{
	if (list->count + 1 == list->cap) {
		list->items = arena_grow(list->arena, list->items, list->cap * sizeof(char *), list->cap * 2 * sizeof(char *));
		list->cap *= 2;
	}
	list->items[list->count++] = item;
	list->items[list->count] = NULL;
}

static size_t name_length(const char *variable)
{
	return strcspn(variable, "=");
}

static void put(struct launch_list *env, const char *variable)
{
	size_t n = name_length(variable);

	for (size_t i = 0; i < env->count; i++)
		if (name_length(env->items[i]) == n && memcmp(env->items[i], variable, n) == 0) {
			env->items[i] = variable;
			return;
		}
	launch_add(env, variable);
}

void launch_set(struct launch_list *env, const char *name, struct str value)
{
	put(env, arena_printf(env->arena, "%s=%.*s", name, STRF(value)));
}

static bool may_pass(const char *variable)
{
	struct str name = {variable, name_length(variable)};

	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		if (str_eq(name, str_of(passed_on[i])))
			return true;
	for (size_t i = 0; i < sizeof(passed_on_prefixes) / sizeof(passed_on_prefixes[0]); i++)
		if (str_starts(name, str_of(passed_on_prefixes[i])))
			return true;
	return false;
}

const char **launch_env(const struct provider_instance *instance, const struct agent_place *place, const char *const *extra,
	struct arena *arena)
{
	struct launch_list env;

	launch_list_init(&env, arena);
	for (const char *const *variable = place->base; variable != NULL && *variable != NULL; variable++)
		if (may_pass(*variable))
			put(&env, *variable);
	launch_set(&env, "TMPDIR", place->tmp);
	for (const char *const *variable = extra; variable != NULL && *variable != NULL; variable++)
		put(&env, *variable);
	for (size_t i = 0; i < instance->env_count; i++)
		put(&env, str_z(arena, instance->env[i]));
	launch_set(&env, "DAIS_ATTEMPT", place->attempt);
	return env.items;
}

const char *launch_value(const char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (const char *const *variable = env; variable != NULL && *variable != NULL; variable++)
		if (name_length(*variable) == n && memcmp(*variable, name, n) == 0 && (*variable)[n] == '=')
			return *variable + n + 1;
	return NULL;
}
