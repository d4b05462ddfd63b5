/* dais run: give an agent something to do in this folder, and watch it. */
#include "cli/threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEY_PROVIDER = 2000, KEY_MODEL, KEY_MODE, KEY_PLAN, KEY_CWD, KEY_TITLE, KEY_JSON };

struct running {
	struct cli *cli;
	const char *task, *provider, *model, *mode, *cwd, *title;
	bool plan, json;
	struct str thread_id;
	sigset_t signals;
};

static const struct argp_option options[] = {
	{"provider", KEY_PROVIDER, "ID", 0, "Who does it (default: the first that can; see dais providers)", 0},
	{"model", KEY_MODEL, "NAME", 0, "With this model", 0},
	{"mode", KEY_MODE, "WORD", 0, "read-only, approval-required, auto-accept-edits or full-access (default)", 0},
	{"plan", KEY_PLAN, NULL, 0, "Plan only", 0},
	{"cwd", KEY_CWD, "DIR", 0, "Folder whose project it is (default: this one)", 0},
	{"title", KEY_TITLE, "TEXT", 0, "Title of the thread (default: the first line of the task)", 0},
	{"json", KEY_JSON, NULL, 0, "Print each event of the thread as one line of JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct running *running = state->input;

	switch (key) {
	case KEY_PROVIDER:
		running->provider = arg;
		return 0;
	case KEY_MODEL:
		running->model = arg;
		return 0;
	case KEY_MODE:
		running->mode = arg;
		return 0;
	case KEY_PLAN:
		running->plan = true;
		return 0;
	case KEY_CWD:
		running->cwd = arg;
		return 0;
	case KEY_TITLE:
		running->title = arg;
		return 0;
	case KEY_JSON:
		running->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (running->task != NULL)
			argp_error(state, "one task, please: put it in quotes");
		running->task = arg;
		return 0;
	case ARGP_KEY_END:
		if (running->task == NULL)
			argp_error(state, "what is to be done? For example: dais run \"explain the build\"");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int start(struct running *running, struct str *run_id, struct failure *f)
{
	struct cli *cli = running->cli;
	const char *given = running->cwd == NULL ? "." : running->cwd;
	char *place = realpath(given, NULL);
	json_auto_t *answer = NULL;
	json_t *request;

	if (place == NULL)
		return fail_errno(f, "find the folder %s", given);
	request = json_pack("{s:s, s:s, s:s*, s:s*, s:s*, s:s*, s:s*}", "place", place, "text", running->task, "provider",
		running->provider, "model", running->model, "runtimeMode", running->mode, "interactionMode",
		running->plan ? "plan" : NULL, "title", running->title);
	free(place);
	if (threads_ask(cli, "start", request, &answer, f) != 0)
		return -1;
	running->thread_id = str_dup(cli->arena, json_member_str(answer, "threadId"));
	*run_id = str_dup(cli->arena, json_member_str(answer, "runId"));
	if (!running->json)
		(void)fprintf(stderr, "%sthread %.*s, %.*s%s\n", isatty(STDERR_FILENO) != 0 ? term_dim(cli) : "",
			STRF(short_id(running->thread_id)), STRF(json_member_str(answer, "providerInstanceId")),
			isatty(STDERR_FILENO) != 0 ? term_off(cli) : "");
	return 0;
}

/* Ctrl-C: the first asks the run to stop, and its end is waited for; the second leaves it alone. */
static void *await_signal(void *context)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct running *running = context;
	struct cli own = *running->cli;
	json_auto_t *answer = NULL;
	struct failure f;
	int signal = 0;

	own.arena = arena;
	failure_init(&f, arena);
	(void)sigwait(&running->signals, &signal);
	(void)fprintf(stderr, "dais: stopping it; once more leaves it running.\n");
	if (threads_ask(&own, "interrupt", json_pack("{s:s%}", "id", running->thread_id.p, running->thread_id.n), &answer, &f) != 0)
		(void)cli_fail(&own, &f);
	(void)sigwait(&running->signals, &signal);
	_exit(130);
}

static int watch_signals(struct running *running, struct failure *f)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, await_signal, running) != 0)
		return fail(f, FAIL_INTERNAL, "A thread could not be started.");
	(void)pthread_detach(thread); /* it ends with the program */
	return 0;
}

static int run(struct running *running, struct str *outcome, struct failure *f)
{
	struct watching watching = {.json = running->json,
		.aside = stderr,
		.answers = !running->json && isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0};
	int fd;

	if (client_connect_or_spawn(running->cli, &fd, f) != 0)
		return -1;
	(void)close(fd);
	if (start(running, &watching.run_id, f) != 0 || watch_signals(running, f) != 0)
		return -1;
	watching.thread_id = running->thread_id;
	if (threads_follow(running->cli, &watching, f) != 0)
		return -1;
	*outcome = watching.outcome;
	return 0;
}

int cmd_run(struct cli *cli, int argc, char **argv)
{
	struct running running = {.cli = cli};
	struct str outcome;
	struct failure f;

	failure_init(&f, cli->arena);
	if (cli_parse(cli, argc, argv, options, parse, "TASK",
		    "Start a thread in the project of this folder and show what its agent does: its text on stdout, all else "
		    "on stderr. What it asks is asked here when this is a terminal, and can be answered with dais threads "
		    "answer everywhere. A server is started when none runs. Exit code 0 when the run completed, else 1; Ctrl-C "
		    "stops it."
		    "\vExample:\n  dais run \"explain the build\" --mode read-only",
		    &running) != 0)
		return 64;
	(void)sigemptyset(&running.signals);
	(void)sigaddset(&running.signals, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, &running.signals, NULL);
	if (run(&running, &outcome, &f) != 0)
		return cli_fail(cli, &f);
	return str_eq(outcome, STR("completed")) ? 0 : 1;
}
