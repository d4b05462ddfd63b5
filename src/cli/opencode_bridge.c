/* dais opencode-bridge: what runs in the place of OpenCode under an attempt host. For the server, not for people. */
#include "cli/cli.h"

#include "bridge/bridge.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != ARGP_KEY_END)
		return ARGP_ERR_UNKNOWN;
	argp_error(state, "which program?");
	return 0;
}

static const char manual[] =
	"Starts PROGRAM ARG... serve on a free port of the loopback, and passes requests (lines of JSON on stdin) to it, and "
	"its answers and events (lines of JSON) to stdout. Ends with its input. The server starts it for instances of the "
	"driver opencode.";

int cmd_opencode_bridge(struct cli *cli, int argc, char **argv)
{
	static const struct argp_option options[] = {{0}};
	struct failure f;
	int rc;

	/* What stands behind the program belongs to it. */
	if (argc < 2 || argv[1][0] == '-')
		return cli_parse(cli, argc, argv, options, parse, "PROGRAM [ARG...]", manual, NULL) != 0 ? 64 : 0;
	failure_init(&f, cli->arena);
	rc = bridge_opencode((const char *const *)(uintptr_t)(argv + 1), &f);
	return rc >= 0 ? rc : cli_fail(cli, &f);
}
