/* The program: a table of subcommands. */
#include "cli/cli.h"

#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

const struct command command_table[] = {
	{"serve", "run the server in the foreground", cmd_serve, false},
	{"mcp-stdio", "an MCP server on stdin and stdout", cmd_mcp_stdio, false},
	{"call", "call one tool", cmd_call, false},
	{"status", "what the server is doing", cmd_status, false},
	{"items", "show work items", cmd_items, false},
	{"events", "follow what happens", cmd_events, false},
	{"project", "add, list and remove projects", cmd_project, false},
	{"token", "create, list and revoke API tokens", cmd_token, false},
	{"init", "write a commented configuration and show client set-up", cmd_init, false},
	{"open", "open the status page, signed in", cmd_open, false},
	{"demo", "play a story on a scratch state", cmd_demo, false},
	{"backup", "copy the database while it is in use", cmd_backup, false},
	{"export", "write everything as JSON lines", cmd_export, false},
	{"import", "read what export wrote into an empty database", cmd_import, false},
	{"doctor", "check the database and this machine", cmd_doctor, false},
};
const size_t command_count = sizeof(command_table) / sizeof(command_table[0]);

static void print_help(FILE *to)
{
	(void)fprintf(to, "Usage: dais COMMAND [OPTION...]\n\nA server that keeps the work of several coding agents "
			  "honest.\n\nCommands:\n");
	for (size_t i = 0; i < command_count; i++)
		if (!command_table[i].is_hidden)
			(void)fprintf(to, "  %-10s %s\n", command_table[i].name, command_table[i].summary);
	(void)fprintf(to,
		"\nOptions of every command:\n"
		"  --state DIR      where the server keeps everything (DAIS_STATE_DIR)\n"
		"  --config FILE    settings, see dais.yaml(5) (DAIS_CONFIG)\n"
		"  --log-level WORD trace, debug, info, warn, error or off\n"
		"  --help, --version\n"
		"\nExamples:\n"
		"  dais serve\n"
		"  dais call items_read '{\"select\":\"context\"}'\n"
		"  dais items --watch\n");
}

static const char *nearest(const char *name)
{
	const char *best = NULL;
	size_t distance = 4;

	for (size_t i = 0; i < command_count; i++) {
		size_t d = str_distance(str_of(name), str_of(command_table[i].name), distance);

		if (d < distance) {
			distance = d;
			best = command_table[i].name;
		}
	}
	return best;
}

static int run_command(const struct command *command, int argc, char **argv)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct cli cli = {
		.arena = arena,
		.program = arena_printf(arena, "dais %s", command->name),
		.is_colour = isatty(STDOUT_FILENO) != 0 && getenv("NO_COLOR") == NULL,
	};
	char **args = ARENA_ARRAY(arena, char *, (size_t)argc + 1);

	for (int i = 0; i < argc; i++)
		args[i] = argv[i];
	args[0] = arena_copy(arena, cli.program, strlen(cli.program));
	return command->run(&cli, argc, args);
}

int main(int argc, char **argv)
{
	const char *near;

	(void)setlocale(LC_CTYPE, "C.UTF-8"); /* data never depends on the locale */
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
		(void)printf("dais %s\n", DAIS_VERSION);
		return 0;
	}
	if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
		print_help(stdout);
		return 0;
	}
	if (argc < 2) {
		print_help(stderr);
		return EX_USAGE;
	}
	for (size_t i = 0; i < command_count; i++)
		if (strcmp(argv[1], command_table[i].name) == 0)
			return run_command(&command_table[i], argc - 1, argv + 1);
	near = nearest(argv[1]);
	(void)fprintf(stderr, "dais: unknown command %s%s%s. See dais --help.\n", argv[1],
		near == NULL ? "" : "; did you mean ", near == NULL ? "" : near);
	return EX_USAGE;
}
