/* dais project: directories whose work the server keeps. A project is a root item of type "project" that
 * remembers its directory; the rules of the directory are pushed as the project's own. */
#include "cli/cli.h"

#include "base/limits.h"
#include "base/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_NAME = 2000, KEY_CONFIRM, KEY_JSON };

struct asking {
	struct cli_words words;
	const char *name, *confirm;
	bool json;
};

static const struct argp_option options[] = {
	{"name", KEY_NAME, "NAME", 0, "Title of the project (default: the directory's name)", 0},
	{"confirm", KEY_CONFIRM, "TITLE", 0, "The project's title: remove deletes everything in it", 0},
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{0},
};

static void check(const struct asking *asking, struct argp_state *state)
{
	words_check(&asking->words, state);
	if (strcmp(asking->words.verb, "remove") == 0 && asking->confirm == NULL)
		argp_error(state, "remove deletes the project with all its items and notes; say --confirm TITLE");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct asking *asking = state->input;

	switch (key) {
	case KEY_NAME:
		asking->name = arg;
		return 0;
	case KEY_CONFIRM:
		asking->confirm = arg;
		return 0;
	case KEY_JSON:
		asking->json = true;
		return 0;
	case ARGP_KEY_ARG:
		words_take(&asking->words, arg, state);
		return 0;
	case ARGP_KEY_END:
		check(asking, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* One call whose arguments are given away; refusals are failures. *out is its "data" or "results". */
static int call(struct cli *cli, const char *tool, json_t *arguments, json_t **out, struct failure *f)
{
	json_auto_t *owned = arguments;

	if (owned == NULL)
		return fail(f, FAIL_USAGE, "The arguments are not UTF-8 text.");
	return client_tool(cli, tool, json_canonical(cli->arena, owned), out, f);
}

/* Every project, oldest first, with its properties. */
static int read_projects(struct cli *cli, json_t *all, struct failure *f)
{
	struct str cursor = STR_NONE;
	int fd;
	int rc = 0;

	if (client_connect(cli, &fd, f) != 0)
		return -1;
	do {
		json_auto_t *envelope = NULL;
		json_auto_t *arguments = json_pack("{s:s, s:n, s:[s], s:[s,s], s:s, s:s, s:i}", "select", "list",
			"parentId", "types", "project", "fields", "properties", "childCounts", "sortBy", "createdAt",
			"sortDir", "asc", "limit", LIMIT_LIST_PAGE);

		if (cursor.n > 0)
			(void)json_object_set_new(arguments, "cursor", json_stringn(cursor.p, cursor.n));
		rc = client_call(cli, fd, "items_read", json_canonical(cli->arena, arguments), &envelope, NULL, f);
		if (rc == 0 && !json_is_true(json_object_get(envelope, "ok")))
			rc = fail_from_envelope(cli, envelope, f);
		(void)json_array_extend(all, json_object_get(json_object_get(envelope, "data"), "items"));
		cursor = str_dup(cli->arena, json_member_str(json_object_get(envelope, "page"), "nextCursor"));
	} while (rc == 0 && cursor.n > 0);
	(void)close(fd);
	return rc;
}

static struct str path_of(const json_t *project)
{
	return json_member_str(json_object_get(project, "properties"), "path");
}

/* ---- add ---- */

struct adding {
	const char *path; /* real */
	struct str rules; /* absent: the directory has none */
	const char *rules_file;
	struct str id;
};

static int read_rules(struct cli *cli, struct adding *adding, struct failure *f)
{
	static const char *const places[] = {".dais/config.yaml", ".taskorchestrator/config.yaml"};
	const struct yaml *tree;
	struct yaml_error error;
	struct buf text;
	char bytes[16384];
	ssize_t n;
	int fd = -1;

	for (size_t i = 0; i < 2 && fd < 0; i++) {
		adding->rules_file = arena_printf(cli->arena, "%s/%s", adding->path, places[i]);
		fd = open(adding->rules_file, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
			return fail(f, FAIL_CONFIG_INVALID, "%s cannot be read.", adding->rules_file);
	}
	if (fd < 0)
		return 0;
	buf_init(&text, cli->arena, LIMIT_CONFIG_BYTES + 1);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0 && !text.overflow)
		buf_add(&text, bytes, (size_t)n);
	(void)close(fd);
	if (n < 0 || text.overflow || text.n > LIMIT_CONFIG_BYTES)
		return fail(f, FAIL_CONFIG_INVALID, "%s cannot be read, or is longer than %d bytes.", adding->rules_file,
			LIMIT_CONFIG_BYTES);
	adding->rules = buf_str(&text);
	/* JSON cannot carry every file, so what is no YAML is told here, with its place. */
	if (yaml_read(adding->rules, cli->arena, &tree, &error) != 0)
		return fail(f, FAIL_CONFIG_INVALID, "%s:%u:%u: %.*s.", adding->rules_file, error.at.line, error.at.column,
			STRF(error.reason));
	return 0;
}

/* Before anything is made: bad rules are reported with their places, all of them. */
static int check_rules(struct cli *cli, const struct adding *adding, struct failure *f)
{
	json_auto_t *envelope = NULL;
	json_auto_t *arguments = json_pack("{s:[{s:s, s:s%}]}", "ops", "op", "validate", "yaml", adding->rules.p,
		adding->rules.n);
	const json_t *errors;
	json_t *error;
	size_t i;
	int fd;
	int rc;

	if (adding->rules.p == NULL)
		return 0;
	if (client_connect(cli, &fd, f) != 0)
		return -1;
	rc = client_call(cli, fd, "config", json_canonical(cli->arena, arguments), &envelope, NULL, f);
	(void)close(fd);
	if (rc != 0 || json_is_true(json_object_get(envelope, "ok")))
		return rc;
	errors = json_object_get(json_object_get(json_object_get(envelope, "error"), "detail"), "errors");
	json_array_foreach (errors, i, error)
		(void)fprintf(stderr, "%s: %.*s%s%.*s\n", adding->rules_file,
			STRF(term_text(cli->arena, json_member_str(error, "path"), 0)),
			json_member_str(error, "path").n > 0 ? ": " : "",
			STRF(term_text(cli->arena, json_member_str(error, "reason"), 0)));
	return fail_from_envelope(cli, envelope, f);
}

static int find_or_create(struct cli *cli, const struct asking *asking, struct adding *adding, struct failure *f)
{
	json_auto_t *all = json_array();
	json_auto_t *results = NULL;
	const char *base = strrchr(adding->path, '/');
	const char *title = asking->name != NULL ? asking->name
		: base != NULL && base[1] != '\0'     ? base + 1
						      : adding->path;
	json_t *project;
	size_t i;

	if (read_projects(cli, all, f) != 0)
		return -1;
	json_array_foreach (all, i, project) {
		if (str_eq(path_of(project), str_of(adding->path))) {
			adding->id = str_dup(cli->arena, json_member_str(project, "id"));
			return 0;
		}
	}
	if (call(cli, "items_write",
		    json_pack("{s:[{s:s, s:s, s:s, s:{s:s}}]}", "ops", "op", "create", "title", title, "type", "project",
			    "properties", "path", adding->path),
		    &results, f) != 0)
		return -1;
	adding->id = str_dup(cli->arena, json_member_str(json_array_get(results, 0), "id"));
	(void)fprintf(stderr, "dais: project %.*s made.\n", STRF(term_text(cli->arena, str_of(title), 0)));
	return 0;
}

static int push_rules(struct cli *cli, const struct adding *adding, struct failure *f)
{
	json_auto_t *results = NULL;
	const json_t *pushed;
	json_t *warning;
	size_t i;

	if (adding->rules.p == NULL) {
		(void)fprintf(stderr, "dais: %s has no rules of its own (dais init writes some).\n", adding->path);
		return 0;
	}
	if (call(cli, "config",
		    json_pack("{s:[{s:s, s:s%, s:s%}]}", "ops", "op", "push", "rootId", adding->id.p, adding->id.n, "yaml",
			    adding->rules.p, adding->rules.n),
		    &results, f) != 0)
		return -1;
	pushed = json_array_get(results, 0);
	json_array_foreach (json_object_get(pushed, "schemaWarnings"), i, warning)
		(void)fprintf(stderr, "%s: warning: %.*s\n", adding->rules_file,
			STRF(term_text(cli->arena,
				json_is_string(warning) ? json_str(warning) : json_member_str(warning, "message"), 0)));
	(void)fprintf(stderr, "dais: rules version %lld %s\n",
		(long long)json_integer_value(json_object_get(pushed, "version")),
		json_is_true(json_object_get(pushed, "changed")) ? "hold from now on." : "hold already.");
	return 0;
}

static int run_add(struct cli *cli, void *input, struct failure *f)
{
	const struct asking *asking = input;
	struct adding adding = {.path = realpath(asking->words.argument, NULL)};
	struct stat st;

	if (adding.path == NULL || stat(adding.path, &st) != 0 || !S_ISDIR(st.st_mode))
		return fail(f, FAIL_USAGE, "%s is no directory.", asking->words.argument);
	arena_at_end(cli->arena, free, (void *)(uintptr_t)adding.path);
	if (read_rules(cli, &adding, f) != 0 || check_rules(cli, &adding, f) != 0 ||
		find_or_create(cli, asking, &adding, f) != 0 || push_rules(cli, &adding, f) != 0)
		return -1;
	if (asking->json) {
		json_auto_t *answer = json_pack("{s:s%, s:s}", "id", adding.id.p, adding.id.n, "path", adding.path);

		print_json(answer);
		return 0;
	}
	(void)printf("%.*s\n", STRF(adding.id));
	return 0;
}

/* ---- list, remove ---- */

static int run_list(struct cli *cli, void *input, struct failure *f)
{
	const struct asking *asking = input;
	json_auto_t *all = json_array();
	json_t *project;
	size_t i;

	if (read_projects(cli, all, f) != 0)
		return -1;
	if (asking->json) {
		print_json(all);
		return 0;
	}
	json_array_foreach (all, i, project) {
		struct str role = json_member_str(project, "role");

		(void)printf("%s%.*s%s  %s", term_dim(cli), STRF(json_member_str(project, "id")), term_off(cli),
			term_role(cli, role));
		term_cell(cli, role, 8);
		(void)printf("%s  ", term_off(cli));
		term_cell(cli, json_member_str(project, "title"), 24);
		(void)printf("  %.*s\n", STRF(term_text(cli->arena, path_of(project), 0)));
	}
	if (json_array_size(all) == 0)
		(void)fprintf(stderr, "dais: no project yet. Add one: dais project add DIR\n");
	return 0;
}

static int run_remove(struct cli *cli, void *input, struct failure *f)
{
	const struct asking *asking = input;
	json_auto_t *results = NULL;
	int64_t deleted;

	if (call(cli, "items_write",
		    json_pack("{s:[{s:s, s:s, s:s, s:b}]}", "ops", "op", "delete", "itemId", asking->words.argument,
			    "confirmTitle", asking->confirm, "recursive", 1),
		    &results, f) != 0)
		return -1;
	deleted = json_integer_value(json_object_get(json_array_get(results, 0), "deleted"));
	if (asking->json)
		print_json(json_array_get(results, 0));
	else
		(void)fprintf(stderr, "dais: %lld item%s deleted; nothing in the directory was touched.\n",
			(long long)deleted, plural(deleted));
	return 0;
}

static const struct cli_verb verbs[] = {
	{"add", "which directory? For example: dais project add .", run_add},
	{"list", NULL, run_list},
	{"remove", "which project? See dais project list", run_remove},
	{0},
};

int cmd_project(struct cli *cli, int argc, char **argv)
{
	struct asking asking = {.words = {.verbs = verbs}};

	if (cli_parse(cli, argc, argv, options, parse, "add DIR|list|remove ID",
		    "Projects of the running server. add makes one for a directory, or finds the one made before, pushes "
		    "DIR/.dais/config.yaml as its rules, and prints its id."
		    "\vExamples:\n"
		    "  dais project add ~/src/harbour --name Harbour\n"
		    "  dais project list\n"
		    "  dais project remove 5b7d20c4 --confirm Harbour",
		    &asking) != 0)
		return 64;
	return words_run(cli, &asking.words, &asking);
}
