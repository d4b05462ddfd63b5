/* dais script-agent: an agent program for tests and demonstrations, see docs/scripted-agent.md. */
#include "cli/cli.h"

#include "script/script.h"

struct script_agent {
	const char *scenario;
	bool only_checks;
};

static const struct argp_option options[] = {
	{"check", 'c', NULL, 0, "read the scenario, say what is wrong with it, and end", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct script_agent *script = state->input;

	switch (key) {
	case 'c':
		script->only_checks = true;
		return 0;
	case ARGP_KEY_ARG:
		if (script->scenario != NULL)
			argp_error(state, "one scenario, not two");
		script->scenario = arg;
		return 0;
	case ARGP_KEY_END:
		if (script->scenario == NULL)
			argp_error(state, "which scenario?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char before[] =
	"An agent program without a model: it speaks the Agent Client Protocol (version 1) on stdin and stdout and does "
	"what the scenario, a YAML file, says. For tests, demonstrations and benchmarks of what starts, feeds, watches and "
	"stops agents."
	"\vThe file has `turns`, a list. A prompt plays the first turn whose `when` (an extended regular expression; none: "
	"any prompt) it matches and whose `times` are not used up, and nothing else of it; a prompt that matches none is "
	"echoed. Beside it there may be `models` (a list; the first is the default), `without` (capabilities to hide), "
	"`auth: required` and `init_delay_ms`.\n\nSteps of a turn:\n";

static const char after[] =
	"\nTexts may hold {{prompt}}, {{turn}}, {{session}}, {{model}}, {{mode}}, {{answer}}, {{steer}} and {{NAME.field}} "
	"of a result that an mcp step saved; {{open}} is two braces.\n"
	"\nA session is kept in $XDG_STATE_HOME/dais-script, or ~/.dais-script, so that another process can load it.\n"
	"\nA scenario that cannot be used ends the program at once with exit code 78 and FILE:LINE:COLUMN.\n"
	"\nExample:\n"
	"  turns:\n"
	"    - when: parser\n"
	"      steps:\n"
	"        - run: [make, check]\n"
	"        - text: \"done, {{prompt}}\"\n";

static const char *manual(struct cli *cli)
{
	struct buf out;

	buf_init(&out, cli->arena, SIZE_MAX);
	buf_add_str(&out, STR(before));
	script_write_steps(&out);
	buf_add_str(&out, STR(after));
	return str_z(cli->arena, buf_str(&out));
}

int cmd_script_agent(struct cli *cli, int argc, char **argv)
{
	struct script_agent script = {0};
	struct failure f;
	int rc;

	failure_init(&f, cli->arena);
	if (cli_parse(cli, argc, argv, options, parse, "SCENARIO", manual(cli), &script) != 0)
		return 64;
	rc = script.only_checks ? scenario_check(script.scenario, &f) : script_agent_main(script.scenario, &f);
	return rc == 0 ? 0 : cli_fail(cli, &f);
}
