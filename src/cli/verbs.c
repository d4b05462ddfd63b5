/* Commands whose first word says what to do: `dais token create`, `dais project add`. */
#include "cli/cli.h"

#include <assert.h>

static const struct cli_verb *find(const struct cli_verb *verbs, const char *name)
{
	for (; verbs->name != NULL; verbs++)
		if (strcmp(verbs->name, name) == 0)
			return verbs;
	return NULL;
}

/* "create, list or revoke" */
static const char *names_of(struct arena *arena, const struct cli_verb *verbs)
{
	const char *all = verbs->name;

	while ((++verbs)->name != NULL)
		all = arena_printf(arena, "%s%s%s", all, verbs[1].name == NULL ? " or " : ", ", verbs->name);
	return all;
}

void words_take(struct cli_words *words, char *arg, struct argp_state *state)
{
	if (words->verb == NULL)
		words->verb = arg;
	else if (words->argument == NULL)
		words->argument = arg;
	else
		argp_error(state, "too many arguments");
}

void words_check(const struct cli_words *words, struct argp_state *state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const struct cli_verb *verb;

	if (words->verb == NULL) {
		argp_error(state, "%s?", names_of(arena, words->verbs));
		return;
	}
	verb = find(words->verbs, words->verb);
	if (verb == NULL)
		argp_error(state, "unknown word %s; %s", words->verb, names_of(arena, words->verbs));
	else if (verb->missing != NULL && words->argument == NULL)
		argp_error(state, "%s", verb->missing);
}

int words_run(struct cli *cli, const struct cli_words *words, void *input)
{
	const struct cli_verb *verb = find(words->verbs, words->verb);
	struct failure f;

	assert(verb != NULL); /* words_check() let it pass */
	failure_init(&f, cli->arena);
	return verb->run(cli, input, &f) == 0 ? 0 : cli_fail(cli, &f);
}
