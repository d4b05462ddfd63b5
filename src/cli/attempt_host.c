/* dais attempt-host: the process that one agent program runs under. The server starts it; people have no use for it. */
#include "cli/cli.h"

#include "agents/agents.h"

#include <sysexits.h>

int cmd_attempt_host(struct cli *cli, int argc, char **argv)
{
	if (argc == 2 && argv[1][0] != '-')
		return attempt_host_main(argv[1]);
	(void)fprintf(stderr, "Usage: %s DIRECTORY\n\nStarted by dais serve for each agent program; it reads what to start from "
			      "its standard input, a socket.\n",
		cli->program);
	return EX_USAGE;
}
