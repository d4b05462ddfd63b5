/* dais init: rules for a directory, and how clients reach the server. */
#include "cli/cli.h"

#include "cli/init_text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **dir = state->input;

	if (key == ARGP_KEY_ARG) {
		if (*dir != NULL)
			argp_error(state, "too many arguments");
		*dir = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static int write_rules(struct cli *cli, const char *dir, struct failure *f)
{
	char *folder = arena_printf(cli->arena, "%s/.dais", dir);
	char *file = arena_printf(cli->arena, "%s/config.yaml", folder);
	struct stat st;
	int fd;
	int rc;

	if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode))
		return fail(f, FAIL_CANNOT_CREATE, "%s is no directory.", dir);
	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		return fail(f, FAIL_CANNOT_CREATE, "%s cannot be made: %s.", folder, strerror(errno));
	fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0 && errno == EEXIST) {
		(void)printf("%s exists already; it was left as it is.\n", file);
		return 0;
	}
	if (fd < 0)
		return fail(f, FAIL_CANNOT_CREATE, "%s cannot be made: %s.", file, strerror(errno));
	rc = write_all(fd, str_of(init_rules));
	if (close(fd) != 0 || rc != 0) {
		(void)unlink(file);
		return fail(f, FAIL_CANNOT_CREATE, "%s cannot be written.", file);
	}
	(void)printf("%s is written. Read it, change it, then: dais project add %s\n", file, dir);
	return 0;
}

static struct str json_quoted(struct arena *arena, const char *text)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	buf_add_char(&out, '"');
	json_escape(&out, str_of(text));
	buf_add_char(&out, '"');
	return buf_str(&out);
}

static struct str shell_quoted(struct arena *arena, const char *text)
{
	struct buf out;

	if (text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@%:=,")] == '\0')
		return str_of(text);
	buf_init(&out, arena, SIZE_MAX);
	buf_add_char(&out, '\'');
	for (; *text != '\0'; text++)
		buf_add_str(&out, *text == '\'' ? STR("'\\''") : (struct str){text, 1});
	buf_add_char(&out, '\'');
	return buf_str(&out);
}

/* By its name where a shell would find this very program, else by its path. */
static const char *program(struct cli *cli)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *search = getenv("PATH");
	char *all = arena_copy(cli->arena, search == NULL ? "" : search, search == NULL ? 0 : strlen(search));
	char *rest = NULL;

	if (n <= 0)
		return "dais";
	path[n] = '\0';
	for (char *dir = strtok_r(all, ":", &rest); dir != NULL; dir = strtok_r(NULL, ":", &rest)) {
		struct stat here;
		struct stat there;

		if (stat(arena_printf(cli->arena, "%s/dais", dir), &there) == 0 && stat(path, &here) == 0)
			return here.st_ino == there.st_ino && here.st_dev == there.st_dev ? "dais" : path;
	}
	return path;
}

/* Where the running server listens, else where it would. */
static struct str url_of(struct cli *cli, const struct settings *settings)
{
	json_auto_t *status = NULL;
	const struct str *listen;
	size_t n = settings_list(settings, SETTING_LISTEN, &listen);
	struct failure f;

	failure_init(&f, cli->arena);
	if (client_admin_running(cli, STR("{\"op\":\"status\"}"), &status, &f) == 0 &&
		json_member_str(status, "url").n > 0)
		return str_printf(cli->arena, "%.*s/mcp", STRF(json_member_str(status, "url")));
	return str_printf(cli->arena, "%s://%.*s/mcp", settings_text(settings, SETTING_TLS_CERT).n > 0 ? "https" : "http",
		STRF(n > 0 ? listen[0] : STR("127.0.0.1:3001")));
}

static int print_clients(struct cli *cli, struct failure *f)
{
	const char *path = program(cli);
	struct cli fresh = {.arena = cli->arena};
	struct settings *settings;
	bool is_default;
	char *argv[] = {arena_copy(cli->arena, "dais", 4), NULL};
	struct str state = STR("");
	struct str shell;

	if (cli_settings(cli, &settings, f) != 0)
		return -1;
	/* Where the state would be without --state: only another place has to be said. */
	is_default = cli_parse(&fresh, 1, argv, NULL, NULL, NULL, "", NULL) == 0 &&
		strcmp(fresh.state_dir, cli->state_dir) == 0 && getenv("DAIS_STATE_DIR") == NULL;
	shell = str_printf(cli->arena, "%.*s mcp-stdio", STRF(shell_quoted(cli->arena, path)));
	if (!is_default) {
		state = str_printf(cli->arena, ", \"--state\", %.*s", STRF(json_quoted(cli->arena, cli->state_dir)));
		shell = str_printf(cli->arena, "%.*s --state %.*s", STRF(shell),
			STRF(shell_quoted(cli->arena, cli->state_dir)));
	}
	{
		const struct word words[] = {
			{"{command}", json_quoted(cli->arena, path)},
			{"{shell}", shell},
			{"{args}", state},
			{"{token_file}", STR("~/.config/dais-agent.token")},
			{"{url}", url_of(cli, settings)},
		};

		(void)printf("\n%.*s",
			STRF(fill_words(cli->arena, init_clients, words, sizeof(words) / sizeof(words[0]))));
	}
	return 0;
}

int cmd_init(struct cli *cli, int argc, char **argv)
{
	const char *dir = NULL;
	struct failure f;

	failure_init(&f, cli->arena);
	if (cli_parse(cli, argc, argv, NULL, parse, "[DIR]",
		    "Write a commented .dais/config.yaml into DIR (default: here) unless there is one, and show how Claude "
		    "Code, Codex, Cursor and VS Code are told of the server. Nothing else is changed."
		    "\vExample:\n  dais init ~/src/harbour",
		    &dir) != 0)
		return 64;
	if (write_rules(cli, dir == NULL ? "." : dir, &f) != 0 || print_clients(cli, &f) != 0)
		return cli_fail(cli, &f);
	return 0;
}
