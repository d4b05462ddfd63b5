/* cli/cli.h - what the subcommands share: flags, places, and talking to the server. */
#ifndef DAIS_CLI_CLI_H
#define DAIS_CLI_CLI_H

#include "base/failure.h"
#include "base/settings.h"
#include "server/server.h"

#include <argp.h>
#include <stdio.h>

/* One run of the program; `arena` lives until it ends. */
struct cli {
	struct arena *arena;
	const char *program; /* "dais items" */
	char *state_dir;
	const char *config; /* file; NULL: the default place */
	struct settings_flag flags[128];
	size_t flag_count;
	bool is_colour; /* stdout is a terminal that may be coloured */
};

struct command {
	const char *name;
	const char *summary; /* one line of `dais --help` */
	int (*run)(struct cli *cli, int argc, char **argv);
	bool is_hidden;
};
extern const struct command command_table[];
extern const size_t command_count;

int cmd_attempt_host(struct cli *cli, int argc, char **argv);
int cmd_serve(struct cli *cli, int argc, char **argv);
int cmd_mcp_stdio(struct cli *cli, int argc, char **argv);
int cmd_call(struct cli *cli, int argc, char **argv);
int cmd_status(struct cli *cli, int argc, char **argv);
int cmd_items(struct cli *cli, int argc, char **argv);
int cmd_run(struct cli *cli, int argc, char **argv);
int cmd_threads(struct cli *cli, int argc, char **argv);
int cmd_providers(struct cli *cli, int argc, char **argv);
int cmd_events(struct cli *cli, int argc, char **argv);
int cmd_token(struct cli *cli, int argc, char **argv);
int cmd_project(struct cli *cli, int argc, char **argv);
int cmd_backup(struct cli *cli, int argc, char **argv);
int cmd_doctor(struct cli *cli, int argc, char **argv);
int cmd_init(struct cli *cli, int argc, char **argv);
int cmd_open(struct cli *cli, int argc, char **argv);
int cmd_demo(struct cli *cli, int argc, char **argv);
int cmd_export(struct cli *cli, int argc, char **argv);
int cmd_import(struct cli *cli, int argc, char **argv);
int cmd_opencode_bridge(struct cli *cli, int argc, char **argv);
int cmd_script_agent(struct cli *cli, int argc, char **argv);

/* Flags that every subcommand has (--state, --config, --log-level); put it into .children. After
 * argp_parse the state directory and the configuration file are settled. `input` of the child is the cli:
 * set state->child_inputs[0] = cli in ARGP_KEY_INIT, or use cli_parse. */
extern const struct argp cli_shared_argp;
/* argp_parse with the shared flags added. `parser` sees the command's own keys; `options` and `doc` as in argp.
 * Wrong usage exits with 64. */
int cli_parse(struct cli *cli, int argc, char **argv, const struct argp_option *options, argp_parser_t parser,
	const char *args_doc, const char *doc, void *input);
/* The same for a command that has nothing but one switch. */
int cli_parse_switch(struct cli *cli, int argc, char **argv, const char *name, const char *help, const char *doc,
	bool *out);

/* A command with verbs: its first word, and the argument of that. */
struct cli_verb {
	const char *name;    /* NULL: end of the table */
	const char *missing; /* said when there is no argument; NULL: it needs none */
	int (*run)(struct cli *cli, void *input, struct failure *f);
};
struct cli_words {
	const struct cli_verb *verbs; /* to choose from */
	const char *verb, *argument;
};
/* For ARGP_KEY_ARG and ARGP_KEY_END; wrong usage ends the program. */
void words_take(struct cli_words *words, char *arg, struct argp_state *state);
void words_check(const struct cli_words *words, struct argp_state *state);
/* Run the verb; a failure is said. The exit code. */
int words_run(struct cli *cli, const struct cli_words *words, void *input);

/* Effective settings: file, environment, flags. */
int cli_settings(struct cli *cli, struct settings **out, struct failure *f);
/* `text` with each name replaced by its value. */
struct word {
	const char *name; /* "{url}" */
	struct str value;
};
struct str fill_words(struct arena *arena, const char *text, const struct word *words, size_t n);
/* "dais: message. fix" on stderr; the exit code of the failure. */
int cli_fail(struct cli *cli, const struct failure *f);

/* ---- the server ---- */

/* Connected socket of the running server. NOT_REACHABLE when none answers. */
int client_connect(struct cli *cli, int *out_fd, struct failure *f);
/* The same, after starting a server that outlives us when none runs. */
int client_connect_or_spawn(struct cli *cli, int *out_fd, struct failure *f);
/* Where this program works, NULL when that is gone or no UTF-8. */
const char *working_directory(struct arena *arena);
/* Say where we work; calls of thread tools on this connection are made from there. */
int client_say_workspace(struct cli *cli, int fd, struct failure *f);
/* One tool call. *out is the envelope (owned by the caller, json_decref). -1 only when there was no answer at
 * all; a tool's error is an envelope with ok false. `raw` (may be NULL) gets the whole JSON-RPC answer. */
int client_call(struct cli *cli, int fd, const char *tool, struct str arguments, json_t **out, struct str *raw,
	struct failure *f);
/* An administrative request; on the store itself when no server runs. The caller owns *out. */
int client_admin(struct cli *cli, struct str request, json_t **out, struct failure *f);
/* The same, of a running server only; its answer also has "pid", "url" and "uptimeMs". */
int client_admin_running(struct cli *cli, struct str request, json_t **out, struct failure *f);
/* One tool call on a connection of its own whose refusal is a failure. *out is "data" or "results". */
int client_tool(struct cli *cli, const char *tool, struct str arguments, json_t **out, struct failure *f);
/* Read one line (without its end) of at most `max` bytes; `rest` keeps what came after it. 0 at the end. */
int read_line(int fd, struct buf *rest, size_t max, struct arena *arena, struct str *out);
int write_all(int fd, struct str bytes);
/* The failure that an envelope's error describes. */
int fail_from_envelope(struct cli *cli, const json_t *envelope, struct failure *f);

/* Follow the event log until `settle` says so. While the server is away it is waited for, and nothing in
 * between is missed. The views given to `take` are valid during the call. */
struct following {
	int64_t since; /* newest event known; 0: begin now */
	void (*take)(void *context, struct str line);
	/* After every event that was there, and after each connection: 0 goes on, 1 ends, -1 with *f. */
	int (*settle)(void *context, struct failure *f);
	void *context;
};
int follow_events(struct cli *cli, struct following *following, struct failure *f);

/* ---- printing for people ---- */

/* Text made safe for a terminal: control and direction characters are replaced; cut to `columns` (0: not). */
struct str term_text(struct arena *arena, struct str text, size_t columns);
size_t term_width(void);
/* Colour codes, or "" when stdout is no terminal. */
const char *term_dim(const struct cli *cli);
const char *term_bold(const struct cli *cli);
const char *term_role(const struct cli *cli, struct str role);
const char *term_off(const struct cli *cli);
/* Columns that text takes which term_text() made safe. */
size_t term_columns(struct str text);
/* Print it made safe, cut and padded to `columns`. */
void term_cell(struct cli *cli, struct str text, size_t columns);
/* "1.5 MB", "3 h 12 min": one unit or two, for people. */
const char *term_bytes(struct arena *arena, int64_t bytes);
const char *term_duration(struct arena *arena, int64_t ms);
/* Compact JSON to stdout, with a newline; control and direction characters are escaped. */
void print_json(const json_t *value);
void print_json_text(struct str text);

#endif
