/* dais serve: the server in the foreground. */
#include "cli/cli.h"

#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

enum { KEY_PRINT_CONFIG = 2000, KEY_DETACHED, KEY_SETTING = 3000 };

struct serving {
	struct cli *cli;
	bool print_config;
	bool is_detached; /* started by mcp-stdio: nobody reads stdout after the first line */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct serving *serving = state->input;

	if (key == KEY_PRINT_CONFIG) {
		serving->print_config = true;
		return 0;
	}
	if (key == KEY_DETACHED) {
		serving->is_detached = true;
		return 0;
	}
	if (key >= KEY_SETTING && key < KEY_SETTING + SETTING_COUNT) {
		struct cli *cli = serving->cli;

		if (cli->flag_count < sizeof(cli->flags) / sizeof(cli->flags[0]))
			cli->flags[cli->flag_count++] =
				(struct settings_flag){(enum setting)(key - KEY_SETTING), str_of(arg)};
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* One flag for each setting that has one; --log-level is shared by every command. */
static struct argp_option *options_of(struct cli *cli)
{
	struct argp_option *options = ARENA_ARRAY(cli->arena, struct argp_option, SETTING_COUNT + 3);
	size_t n = 0;

	for (int i = 0; i < SETTING_COUNT; i++) {
		if (setting_table[i].flag == NULL || i == SETTING_LOG_LEVEL)
			continue;
		options[n++] = (struct argp_option){
			.name = setting_table[i].flag,
			.key = KEY_SETTING + i,
			.arg = setting_table[i].type == SETTING_PATH ? "FILE"
				: setting_table[i].type == SETTING_WORD ? "WORD"
				: i == SETTING_LISTEN			? "HOST:PORT"
									: "VALUE",
			.doc = arena_printf(cli->arena, "%s (%s)", setting_table[i].help, setting_table[i].env),
		};
	}
	options[n++] = (struct argp_option){
		.name = "print-config", .key = KEY_PRINT_CONFIG, .doc = "Show every setting, its value and where it came from"};
	options[n++] = (struct argp_option){.name = "detached", .key = KEY_DETACHED, .flags = OPTION_HIDDEN};
	return options;
}

static void warn_unknown(void *context, const char *name, const char *nearest)
{
	(void)context;
	log_line(LOG_WARN, "server", "an environment variable is not known and was ignored", {"variable", LOG_TEXT(name)},
		{"nearest", LOG_TEXT(nearest)});
}

static int print_config(struct cli *cli, const struct settings *settings)
{
	struct buf out;

	buf_init(&out, cli->arena, SIZE_MAX);
	settings_print(settings, &out);
	(void)fwrite(out.p, 1, out.n, stdout);
	return 0;
}

/* Tokens must not end up in a core file, and many clients need many descriptors. */
static void set_limits(void)
{
	struct rlimit files;

	(void)prctl(PR_SET_DUMPABLE, 0);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* the connection limits still hold */
	}
}

static void say_ready(struct server *server, struct cli *cli, bool is_detached)
{
	struct str link = is_detached ? STR_NONE : server_sign_in_link(server, cli->arena);

	(void)printf("dais: ready %.*s\n", STRF(server_url(server, 0)));
	(void)fflush(stdout);
	if (link.n > 0)
		(void)fprintf(stderr, "dais: sign in to the status page, once, within 10 minutes: %.*s\n", STRF(link));
}

/* Until SIGTERM or SIGINT; SIGHUP reloads; a second signal to end does not wait. */
static void wait_for_end(struct server *server, const sigset_t *signals)
{
	for (;;) {
		int signal = 0;

		if (sigwait(signals, &signal) != 0)
			continue;
		if (signal != SIGHUP) {
			log_line(LOG_INFO, "server", "stopping", {"signal", LOG_INT(signal)});
			return;
		}
		server_reload(server);
	}
}

int cmd_serve(struct cli *cli, int argc, char **argv)
{
	struct serving serving = {.cli = cli};
	struct server_options options;
	struct settings *settings;
	struct server *server;
	struct failure f;
	sigset_t signals;
	int rc;

	failure_init(&f, cli->arena);
	if (cli_parse(cli, argc, argv, options_of(cli), parse, NULL,
		    "Run the server in the foreground. Logs go to stderr; when it accepts calls it prints one line, "
		    "\"dais: ready URL\", to stdout. SIGTERM ends it in order, SIGHUP reads the rules again."
		    "\vExample:\n  dais serve --listen 127.0.0.1:3001",
		    &serving) != 0)
		return 64;
	if (cli_settings(cli, &settings, &f) != 0)
		return cli_fail(cli, &f);
	settings_unknown_env(cli->arena, warn_unknown, NULL);
	if (serving.print_config)
		return print_config(cli, settings);
	set_limits();
	/* Blocked before any thread starts, so that only sigwait sees them. */
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
	options = (struct server_options){
		.settings = settings,
		.state_dir = cli->state_dir,
		/* A client that started us speaks over the socket, and somebody else's server must not keep it from that. */
		.may_move = serving.is_detached && str_eq(settings_origin(settings, SETTING_LISTEN), STR("default")),
	};
	if (server_start(&options, &server, &f) != 0) {
		rc = cli_fail(cli, &f);
		/* To a call a full disk is a failed operation; a server that finds one cannot make its files. */
		return f.code == FAIL_STORAGE_FULL ? EX_CANTCREAT : rc;
	}
	say_ready(server, cli, serving.is_detached);
	wait_for_end(server, &signals);
	/* A second signal ends at once: everything acknowledged is on disk already. */
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	server_stop(server);
	return 0;
}
