/* Flags and places that every subcommand shares. */
#include "cli/cli.h"

#include "base/log.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum { KEY_STATE = 1000, KEY_CONFIG, KEY_LOG_LEVEL, KEY_SWITCH, KEY_HELP = 'h' };

static const struct argp_option shared_options[] = {
	{"state", KEY_STATE, "DIR", 0, "Where the server keeps its state (DAIS_STATE_DIR)", 90},
	{"config", KEY_CONFIG, "FILE", 0, "Settings, see dais.yaml(5) (DAIS_CONFIG)", 90},
	{"log-level", KEY_LOG_LEVEL, "WORD", 0, "trace, debug, info, warn, error or off", 90},
	{NULL, KEY_HELP, NULL, OPTION_HIDDEN, NULL, 90}, /* argp's own is -? */
	{0},
};

static char *absolute(struct arena *arena, const char *path)
{
	char cwd[4096];

	if (path[0] == '/' || getcwd(cwd, sizeof(cwd)) == NULL)
		return arena_copy(arena, path, strlen(path));
	return arena_printf(arena, "%s/%s", cwd, path);
}

static error_t parse_shared(int key, char *arg, struct argp_state *state)
{
	struct cli *cli = state->input;
	enum log_level level;

	switch (key) {
	case KEY_STATE:
		cli->state_dir = absolute(cli->arena, arg);
		return 0;
	case KEY_CONFIG:
		cli->config = absolute(cli->arena, arg);
		return 0;
	case KEY_HELP:
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	case KEY_LOG_LEVEL:
		if (!log_level_parse(str_of(arg), &level))
			argp_error(state, "--log-level must be trace, debug, info, warn, error or off, got %s", arg);
		if (cli->flag_count < sizeof(cli->flags) / sizeof(cli->flags[0]))
			cli->flags[cli->flag_count++] =
				(struct settings_flag){SETTING_LOG_LEVEL, str_of(arg)};
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cli_shared_argp = {.options = shared_options, .parser = parse_shared};

/* NULL when there is none. Nothing stands in for it: in a place like /tmp another user could come first. */
static const char *home_dir(void)
{
	const char *given = getenv("HOME");
	const struct passwd *entry;

	if (given != NULL && given[0] == '/')
		return given;
	entry = getpwuid(getuid()); /* at the start of the program: no other thread yet */
	return entry != NULL && entry->pw_dir[0] == '/' ? entry->pw_dir : NULL;
}

static int settle_state(struct cli *cli)
{
	const char *home = home_dir();
	const char *xdg = getenv("XDG_STATE_HOME");
	const char *given = getenv("DAIS_STATE_DIR");

	if (cli->state_dir != NULL)
		return 0;
	if (given != NULL && given[0] != '\0')
		cli->state_dir = absolute(cli->arena, given);
	else if (xdg != NULL && xdg[0] == '/')
		cli->state_dir = arena_printf(cli->arena, "%s/dais", xdg);
	else if (home != NULL)
		cli->state_dir = arena_printf(cli->arena, "%s/.local/state/dais", home);
	else {
		(void)fprintf(stderr, "dais: There is no home directory to keep the state in; say where with --state DIR.\n");
		return EX_USAGE;
	}
	return 0;
}

struct parsing {
	struct cli *cli;
	argp_parser_t parser;
	void *input;
};

static error_t parse_both(int key, char *arg, struct argp_state *state)
{
	struct parsing *parsing = state->input;
	error_t rc;

	if (key == ARGP_KEY_INIT)
		state->child_inputs[0] = parsing->cli;
	if (parsing->parser == NULL)
		return key == ARGP_KEY_ARG ? ARGP_ERR_UNKNOWN : key == ARGP_KEY_INIT ? 0 : ARGP_ERR_UNKNOWN;
	state->input = parsing->input;
	rc = parsing->parser(key, arg, state);
	state->input = parsing;
	return key == ARGP_KEY_INIT ? 0 : rc;
}

int cli_parse(struct cli *cli, int argc, char **argv, const struct argp_option *options, argp_parser_t parser,
	const char *args_doc, const char *doc, void *input)
{
	const struct argp_child children[] = {{&cli_shared_argp, 0, "Options of every command:", 90}, {0}};
	struct parsing parsing = {cli, parser, input};
	const struct argp argp = {
		.options = options,
		.parser = parse_both,
		.args_doc = args_doc,
		.doc = doc,
		.children = children,
	};
	error_t rc;

	argp_program_version = "dais " DAIS_VERSION;
	argp_err_exit_status = EX_USAGE;
	rc = argp_parse(&argp, argc, argv, 0, NULL, &parsing);
	return rc == 0 ? settle_state(cli) : EX_USAGE;
}

static error_t parse_switch(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != KEY_SWITCH)
		return ARGP_ERR_UNKNOWN;
	*(bool *)state->input = true;
	return 0;
}

int cli_parse_switch(struct cli *cli, int argc, char **argv, const char *name, const char *help, const char *doc,
	bool *out)
{
	const struct argp_option options[] = {{name, KEY_SWITCH, NULL, 0, help, 0}, {0}};

	*out = false;
	return cli_parse(cli, argc, argv, options, parse_switch, NULL, doc, out);
}

static bool default_config(struct cli *cli)
{
	const char *given = getenv("DAIS_CONFIG");
	const char *xdg = getenv("XDG_CONFIG_HOME");
	const char *home = home_dir();

	if (given != NULL && given[0] != '\0') {
		cli->config = absolute(cli->arena, given);
		return true;
	}
	if (xdg != NULL && xdg[0] == '/')
		cli->config = arena_printf(cli->arena, "%s/dais/config.yaml", xdg);
	else if (home != NULL)
		cli->config = arena_printf(cli->arena, "%s/.config/dais/config.yaml", home);
	return false;
}

int cli_settings(struct cli *cli, struct settings **out, struct failure *f)
{
	bool is_required = cli->config != NULL || default_config(cli);
	enum log_level level = LOG_INFO;
	enum log_format format = LOG_FORMAT_AUTO;
	struct str word;

	if (settings_load(cli->arena, cli->config, is_required, cli->flags, cli->flag_count, out, f) != 0)
		return -1;
	(void)log_level_parse(settings_text(*out, SETTING_LOG_LEVEL), &level);
	/* Commands for people say themselves what they did; the log is the server's, unless it was asked for. */
	if (str_eq(settings_origin(*out, SETTING_LOG_LEVEL), STR("default")) && strcmp(cli->program, "dais serve") != 0)
		level = LOG_ERROR;
	word = settings_text(*out, SETTING_LOG_FORMAT);
	if (str_eq(word, STR("json")))
		format = LOG_FORMAT_JSON;
	else if (str_eq(word, STR("human")))
		format = LOG_FORMAT_HUMAN;
	log_setup(level, format, STDERR_FILENO);
	return 0;
}

struct str fill_words(struct arena *arena, const char *text, const struct word *words, size_t n)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	while (*text != '\0') {
		size_t i = 0;

		while (i < n && !str_starts(str_of(text), str_of(words[i].name)))
			i++;
		if (i < n) {
			buf_add_str(&out, words[i].value);
			text += strlen(words[i].name);
		} else {
			buf_add_char(&out, *text++);
		}
	}
	return buf_str(&out);
}

int cli_fail(struct cli *cli, const struct failure *f)
{
	const struct failure_info *info = failure_info(f->code);
	struct buf out;
	struct json_writer w;
	struct json_error error;
	json_auto_t *written = NULL;
	struct str message;
	struct str fix;

	buf_init(&out, cli->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	failure_write(f, &w);
	written = json_read(buf_str(&out), &error);
	message = json_member_str(written, "message");
	fix = json_member_str(written, "fix");
	message = term_text(cli->arena, message, 0);
	if (memmem(fix.p, fix.n, "detail.", strlen("detail.")) != NULL || str_eq(fix, STR("Use existingId.")))
		fix = STR_NONE; /* of an answer's members, which a terminal does not show */
	(void)fprintf(stderr, "dais: %.*s%s%.*s\n", STRF(message), fix.n > 0 ? " " : "", STRF(fix));
	return info->exit_code;
}
