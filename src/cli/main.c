/* The program: a table of subcommands. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
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
	{"run", "give an agent something to do, and watch it", cmd_run, false},
	{"threads", "what agents do: see it, follow it, answer it", cmd_threads, false},
	{"providers", "who can be given work, and why some cannot", cmd_providers, false},
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
	{"attempt-host", "run one agent program for the server", cmd_attempt_host, true},
	{"opencode-bridge", "OpenCode's server as a program that speaks lines", cmd_opencode_bridge, true},
	{"script-agent", "an agent that does what a file says, for tests", cmd_script_agent, true},
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
		"\nThey may stand before the command too. dais help COMMAND tells the rest.\n"
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

/* A server's files and sockets must not become somebody's standard output. */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR); /* without CLOEXEC: children need them as much */
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
}

/* What was printed last may still be refused. A reader that has seen enough is no failure. */
static int finish_output(int rc)
{
	int error;

	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return rc;
	error = errno;
	if (error == EPIPE)
		return rc;
	(void)fprintf(stderr, "dais: the output could not be written: %s.\n", strerror(error));
	return rc == 0 ? 1 : rc;
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
	return finish_output(command->run(&cli, argc, args));
}

/* How many words of argv belong to the shared flag argv[at], or 0 when it is none. */
static int shared_flag_words(int argc, char **argv, int at)
{
	static const char *const names[] = {"--state", "--config", "--log-level"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		if (strncmp(argv[at], names[i], n) != 0)
			continue;
		if (argv[at][n] == '=')
			return 1;
		if (argv[at][n] == '\0' && at + 1 < argc)
			return 2;
	}
	return 0;
}

/* `dais --state DIR items` is `dais items --state DIR`: the command goes to the front, the rest keeps its order. */
static void put_command_first(int argc, char **argv)
{
	int at = 1;
	int words;
	char *command;

	while (at < argc && (words = shared_flag_words(argc, argv, at)) > 0)
		at += words;
	if (at == 1 || at >= argc || argv[at][0] == '-')
		return;
	command = argv[at];
	memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
	argv[1] = command;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < command_count; i++)
		if (strcmp(name, command_table[i].name) == 0)
			return &command_table[i];
	return NULL;
}

static bool is_any(const char *word, const char *a, const char *b, const char *c)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0 || (c != NULL && strcmp(word, c) == 0);
}

static int unknown_command(const char *name)
{
	const char *near = name[0] == '-' ? NULL : nearest(name);

	(void)fprintf(stderr, "dais: unknown %s %s%s%s. See dais --help.\n", name[0] == '-' ? "option" : "command", name,
		near == NULL ? "" : "; did you mean ", near == NULL ? "" : near);
	return EX_USAGE;
}

int main(int argc, char **argv)
{
	static char help_flag[] = "--help";
	const struct command *command;

	(void)setlocale(LC_CTYPE, "C.UTF-8"); /* data never depends on the locale */
	(void)signal(SIGPIPE, SIG_IGN);
	fill_standard_descriptors();
	if (argc < 2) {
		print_help(stderr);
		return EX_USAGE;
	}
	put_command_first(argc, argv);
	if (is_any(argv[1], "--version", "-V", NULL)) {
		(void)printf("dais %s\n", DAIS_VERSION);
		return finish_output(0);
	}
	command = find_command(argv[1]);
	if (strcmp(argv[1], "help") == 0 && argc == 3) {
		command = find_command(argv[2]);
		if (command == NULL)
			return unknown_command(argv[2]);
		argv[2] = help_flag;
		return run_command(command, argc - 1, argv + 1);
	}
	if (is_any(argv[1], "--help", "-h", "-?") || strcmp(argv[1], "help") == 0) {
		print_help(stdout);
		return finish_output(0);
	}
	return command == NULL ? unknown_command(argv[1]) : run_command(command, argc - 1, argv + 1);
}
