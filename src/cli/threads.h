/* cli/threads.h - what the commands about threads share. */
#ifndef DAIS_CLI_THREADS_H
#define DAIS_CLI_THREADS_H

#include "cli/cli.h"

/* A request of server/admin.h to the running server. `request` holds all but the "op" and is taken over; NULL: the
 * arguments were not UTF-8. */
int threads_ask(struct cli *cli, const char *op, json_t *request, json_t **out, struct failure *f);

/* The shortest ending of an id that people need to type: eight characters or more, after a colon or not. */
struct str short_id(struct str id);

/* ---- threads_list.c ---- */
struct listing {
	const char *project, *status;
	bool json, archived;
	int64_t limit;
};
int threads_list(struct cli *cli, const struct listing *listing, struct failure *f);
int threads_show(struct cli *cli, struct str id, bool json, struct failure *f);

/* ---- threads_follow.c ---- */
/* One item of a timeline, as threads.show gives it. */
void print_item(struct cli *cli, FILE *to, const json_t *item);
/* Text of several lines, made safe for a terminal line by line. */
void print_text(struct cli *cli, FILE *to, struct str text);
/* Prints what happens in a thread as it happens, until its run has ended. `run_id` absent: the run that is active, else
 * the newest. */
struct watching {
	struct str thread_id, run_id;
	bool answers; /* questions are asked on the terminal */
	bool json;    /* one line of JSON for each event */
	FILE *aside;  /* for all that is not text of the agent */
	struct str outcome; /* filled: the status of the run, idle: it had none */
};
int threads_follow(struct cli *cli, struct watching *watching, struct failure *f);

/* ---- threads_answer.c ---- */
void print_request(struct cli *cli, FILE *to, const json_t *request);
/* Asks a person on the terminal and sends the answer. 1 answered, 0 put off, -1. */
int answer_on_terminal(struct cli *cli, const json_t *request, struct failure *f);

struct answering {
	const char *decision; /* NULL: none */
	const char *const *answers; /* ID=TEXT, or TEXT for the only question */
	size_t answer_count;
	bool json;
};
/* Lists open questions when nothing says how to answer. */
int threads_answer(struct cli *cli, struct str id, const struct answering *answering, struct failure *f);

#endif
