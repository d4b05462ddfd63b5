/* providers/launch.h - the command line and the environment of an agent program, built from nothing. */
#ifndef DAIS_PROVIDERS_LAUNCH_H
#define DAIS_PROVIDERS_LAUNCH_H

#include "providers/provider.h"

/* A list of NUL-terminated texts in an arena. */
struct launch_list {
	struct arena *arena;
	const char **items; /* NULL at the end */
	size_t count, cap;
};

void launch_list_init(struct launch_list *list, struct arena *arena);
void launch_add(struct launch_list *list, const char *item);
/* NAME=value; takes the place of an earlier one of that name. */
void launch_set(struct launch_list *env, const char *name, struct str value);

/* What of the server's environment any program may know, TMPDIR, then the instance's own, then DAIS_ATTEMPT, which
 * nothing replaces. The driver's own variables go between: `extra`, NAME=value, NULL at the end, or NULL. */
const char **launch_env(const struct provider_instance *instance, const struct agent_place *place, const char *const *extra,
	struct arena *arena);
/* Value of NAME in a list of NAME=value, NULL: it is not there. */
const char *launch_value(const char *const *env, const char *name);

#endif
