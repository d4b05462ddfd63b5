#include "place.h"

#include <limits.h>

int place_open(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	char template[] = "/tmp/dais-workspace-XXXXXX", real[PATH_MAX];

	assert_non_null(place);
	place->arena = arena_create();
	place->call.arena = place->arena;
	failure_init(&place->f, place->arena);
	assert_non_null(mkdtemp(template));
	assert_non_null(realpath(template, real));
	place->dir = arena_copy(place->arena, real, strlen(real));
	place->repo = in(place, "repo");
	place->trees = in(place, "trees");
	setenv("HOME", str_z(place->arena, in(place, "home")), 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	unsetenv("XDG_CONFIG_HOME");
	run(place, "mkdir home");
	*state = place;
	return 0;
}

int place_close(void **state)
{
	struct place *place = *state;

	run(place, "chmod -R u+rwX . && rm -rf %s", place->dir);
	arena_destroy(place->arena);
	free(place);
	return 0;
}

const char *run(struct place *place, const char *fmt, ...)
{
	static const char identity[] =
		"export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t;";
	char output[65536];
	va_list args;
	const char *script;
	FILE *pipe;
	size_t n;

	va_start(args, fmt);
	script = arena_vprintf(place->arena, fmt, args);
	va_end(args);
	pipe = popen(arena_printf(place->arena, "set -e; cd %s; %s { %s\n}", place->dir, identity,
			     script),
		"re");
	assert_non_null(pipe);
	n = fread(output, 1, sizeof(output) - 1, pipe);
	if (pclose(pipe) != 0)
		fail_msg("failed: %s", script);
	while (n > 0 && output[n - 1] == '\n')
		n--;
	return arena_copy(place->arena, output, n);
}

void place_repo(struct place *place)
{
	run(place,
		"git init -q -b main repo; cd repo; echo one > a.txt; mkdir sub; echo two > sub/b.txt;"
		" echo '*.ign' > .gitignore; git add .; git commit -qm first");
}

struct str in(struct place *place, const char *fmt, ...)
{
	va_list args;
	const char *name;

	va_start(args, fmt);
	name = arena_vprintf(place->arena, fmt, args);
	va_end(args);
	return str_printf(place->arena, "%s/%s", place->dir, name);
}

bool exists(struct place *place, const char *name)
{
	return access(str_z(place->arena, in(place, "%s", name)), F_OK) == 0;
}

const char *cause(struct place *place)
{
	struct str text = fault_cause(&place->f, place->arena);
	const char *result = text.p == NULL ? "(none)" : str_z(place->arena, text);

	failure_init(&place->f, place->arena);
	return result;
}
