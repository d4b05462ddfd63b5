/* dais call: one tool call over the Unix socket. */
#include "cli/cli.h"

#include <unistd.h>

enum { KEY_RAW = 2000 };

struct calling {
	const char *tool, *arguments;
	bool raw;
};

static const struct argp_option options[] = {
	{"raw", KEY_RAW, NULL, 0, "Print the whole JSON-RPC answer", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct calling *calling = state->input;

	switch (key) {
	case KEY_RAW:
		calling->raw = true;
		return 0;
	case ARGP_KEY_ARG:
		if (calling->tool == NULL)
			calling->tool = arg;
		else if (calling->arguments == NULL)
			calling->arguments = arg;
		else
			argp_error(state, "too many arguments");
		return 0;
	case ARGP_KEY_END:
		if (calling->tool == NULL)
			argp_error(state, "which tool? For example: dais call items_read '{\"select\":\"context\"}'");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static struct str read_stdin(struct arena *arena)
{
	struct buf text;
	char bytes[65536];
	ssize_t n;

	buf_init(&text, arena, 8 * 1024 * 1024);
	while ((n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0)
		buf_add(&text, bytes, (size_t)n);
	return buf_str(&text);
}

/* An envelope says so itself; answers of thread tools have none, and their result is an error or not. */
static bool is_fine(const json_t *envelope, struct str raw)
{
	const json_t *ok = json_object_get(envelope, "ok");
	struct json_error error;
	json_auto_t *answer = ok == NULL ? json_read(raw, &error) : NULL;

	return ok != NULL ? json_is_true(ok) : !json_is_true(json_object_get(json_object_get(answer, "result"), "isError"));
}

int cmd_call(struct cli *cli, int argc, char **argv)
{
	struct calling calling = {.tool = NULL};
	struct json_error error;
	json_auto_t *arguments = NULL;
	json_auto_t *envelope = NULL;
	struct failure f;
	struct str text;
	struct str raw = STR_NONE;
	int fd;
	int rc;

	failure_init(&f, cli->arena);
	if (cli_parse(cli, argc, argv, options, parse, "TOOL [JSON|-]",
		    "Call one tool of the running server and print its structured result as JSON."
		    "\vExamples:\n  dais call items_read '{\"select\":\"context\"}'\n  dais call items_write - < ops.json",
		    &calling) != 0)
		return 64;
	text = calling.arguments == NULL ? STR("{}")
		: strcmp(calling.arguments, "-") == 0 ? read_stdin(cli->arena)
						      : str_of(calling.arguments);
	/* A line may hold no raw newline; and what is not JSON is better refused here, with its place. */
	arguments = json_read(text, &error);
	if (arguments == NULL) {
		(void)fail(&f, FAIL_USAGE, "The arguments are not JSON: %s.", error.text);
		return cli_fail(cli, &f);
	}
	if (client_connect(cli, &fd, &f) != 0)
		return cli_fail(cli, &f);
	rc = client_say_workspace(cli, fd, &f);
	if (rc == 0)
		rc = client_call(cli, fd, calling.tool, json_canonical(cli->arena, arguments), &envelope, &raw, &f);
	(void)close(fd);
	if (calling.raw && raw.n > 0)
		(void)printf("%.*s\n", STRF(raw));
	if (rc != 0)
		return cli_fail(cli, &f) == 69 ? 69 : 1;
	if (!calling.raw)
		print_json(envelope);
	return is_fine(envelope, raw) ? 0 : 1;
}
