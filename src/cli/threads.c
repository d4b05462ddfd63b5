/* dais threads: what agents do, for people: see it, follow it, say something, stop it, answer it. */
#include "cli/threads.h"

#include <time.h>
#include <unistd.h>

#define REDRAW_MS 250
#define MAX_WORDS 32

enum {
	KEY_JSON = 2000,
	KEY_WATCH,
	KEY_STATUS,
	KEY_PROJECT,
	KEY_ARCHIVED,
	KEY_LIMIT,
	KEY_MODE,
	KEY_ACCEPT,
	KEY_ACCEPT_SESSION,
	KEY_DECLINE,
	KEY_CANCEL,
};

struct command_line {
	struct cli *cli;
	struct cli_words words; /* the argument is an id */
	const char *more[MAX_WORDS];
	size_t more_count;
	struct listing listing;
	const char *mode, *decision;
	bool watch, is_drawn;
};

static const struct argp_option options[] = {
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{"watch", KEY_WATCH, NULL, 0, "list: draw it again whenever something happens", 0},
	{"status", KEY_STATUS, "WORD", 0, "list: only live, asks, idle, queued, running, waiting, completed, failed, …", 0},
	{"project", KEY_PROJECT, "NAME", 0, "list: only of this project, by its title or folder", 0},
	{"archived", KEY_ARCHIVED, NULL, 0, "list: archived ones too", 0},
	{"limit", KEY_LIMIT, "N", 0, "list: at most N, the newest (default: 200)", 0},
	{"mode", KEY_MODE, "WORD", 0, "send: auto (default), queue, steer or restart", 0},
	{"accept", KEY_ACCEPT, NULL, 0, "answer: allow it once", 0},
	{"accept-session", KEY_ACCEPT_SESSION, NULL, 0, "answer: allow it as long as this agent runs", 0},
	{"decline", KEY_DECLINE, NULL, 0, "answer: do not allow it", 0},
	{"cancel", KEY_CANCEL, NULL, 0, "answer: do not allow it, and stop the turn", 0},
	{0},
};

static const char *decision_of(int key)
{
	return key == KEY_ACCEPT ? "accept" : key == KEY_ACCEPT_SESSION ? "accept-session" : key == KEY_DECLINE ? "decline" : "cancel";
}

static void take_word(struct command_line *line, char *arg, struct argp_state *state)
{
	if (line->words.argument == NULL)
		words_take(&line->words, arg, state);
	else if (line->more_count == MAX_WORDS)
		argp_error(state, "too many arguments");
	else
		line->more[line->more_count++] = arg;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command_line *line = state->input;

	switch (key) {
	case KEY_JSON:
		line->listing.json = true;
		return 0;
	case KEY_WATCH:
		line->watch = true;
		return 0;
	case KEY_STATUS:
		line->listing.status = arg;
		return 0;
	case KEY_PROJECT:
		line->listing.project = arg;
		return 0;
	case KEY_ARCHIVED:
		line->listing.archived = true;
		return 0;
	case KEY_LIMIT:
		if (!str_to_int(str_of(arg), &line->listing.limit) || line->listing.limit < 1 || line->listing.limit > 10000)
			argp_error(state, "--limit must be 1 to 10000, got %s", arg);
		return 0;
	case KEY_MODE:
		line->mode = arg;
		return 0;
	case KEY_ACCEPT:
	case KEY_ACCEPT_SESSION:
	case KEY_DECLINE:
	case KEY_CANCEL:
		if (line->decision != NULL)
			argp_error(state, "one decision, please");
		line->decision = decision_of(key);
		return 0;
	case ARGP_KEY_ARG:
		take_word(line, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (line->words.verb == NULL)
			line->words.verb = "list";
		words_check(&line->words, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- list, again and again ---- */

static int draw(struct command_line *line, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct cli round = *line->cli;
	struct failure inner;
	int rc;

	round.arena = arena; /* --watch may draw for days */
	failure_init(&inner, arena);
	if (line->watch && !line->listing.json && isatty(STDOUT_FILENO) != 0)
		(void)fputs("\033[H\033[2J", stdout);
	else if (line->is_drawn && !line->listing.json)
		(void)putchar('\n');
	line->is_drawn = true;
	rc = threads_list(&round, &line->listing, &inner);
	(void)fflush(stdout);
	if (rc != 0)
		failure_copy(f, line->cli->arena, &inner);
	return rc;
}

static void take(void *context, struct str event)
{
	(void)context; /* that something happened is enough: what is drawn is read anew */
	(void)event;
}

static int settle(void *context, struct failure *f)
{
	const struct timespec pause = {.tv_nsec = REDRAW_MS * 1000000L};
	struct command_line *line = context;

	if (line->is_drawn)
		(void)nanosleep(&pause, NULL);
	if (draw(line, f) == 0)
		return ferror(stdout) != 0 ? 1 : 0;
	/* The server left between the event and the read: the follower waits for it. */
	return f->code == FAIL_NOT_REACHABLE || f->code == FAIL_UNAVAILABLE ? 0 : -1;
}

static int run_list(struct cli *cli, void *input, struct failure *f)
{
	struct command_line *line = input;
	struct following following = {.take = take, .settle = settle, .context = line};

	(void)cli;
	return line->watch ? follow_events(line->cli, &following, f) : draw(line, f);
}

/* ---- one thread ---- */

static struct str id_of(const struct command_line *line)
{
	return line->words.argument == NULL ? STR("") : str_of(line->words.argument);
}

static int run_show(struct cli *cli, void *input, struct failure *f)
{
	const struct command_line *line = input;

	return threads_show(cli, id_of(line), line->listing.json, f);
}

static int run_follow(struct cli *cli, void *input, struct failure *f)
{
	const struct command_line *line = input;
	struct watching watching = {.thread_id = id_of(line), .json = line->listing.json, .aside = stdout};

	if (threads_follow(cli, &watching, f) != 0)
		return -1;
	if (str_eq(watching.outcome, STR("idle")))
		(void)fprintf(stderr, "dais: the thread has not run yet.\n");
	return 0;
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

/* All words after the id are the message; "-" is what stands on stdin. */
static struct str message_of(const struct command_line *line)
{
	struct buf text;

	if (line->more_count == 1 && strcmp(line->more[0], "-") == 0)
		return read_stdin(line->cli->arena);
	buf_init(&text, line->cli->arena, SIZE_MAX);
	for (size_t i = 0; i < line->more_count; i++)
		buf_printf(&text, "%s%s", i == 0 ? "" : " ", line->more[i]);
	return buf_str(&text);
}

/* A request whose answer is one line. */
static int do_one(const struct command_line *line, const char *op, json_t *request, const char *said, struct failure *f)
{
	json_auto_t *answer = NULL;

	if (threads_ask(line->cli, op, request, &answer, f) != 0)
		return -1;
	if (line->listing.json)
		print_json(answer);
	else
		(void)printf("%.*s\n", STRF(json_member_str(answer, said)));
	return 0;
}

static int send_as(const struct command_line *line, const char *mode, struct failure *f)
{
	struct str text = message_of(line);
	struct str id = id_of(line);

	if (text.n == 0)
		return fail(f, FAIL_USAGE, "What is it to be told?");
	return do_one(line, "send", json_pack("{s:s%, s:s%, s:s*}", "id", id.p, id.n, "text", text.p, text.n, "mode", mode),
		"delivery", f);
}

static int run_send(struct cli *cli, void *input, struct failure *f)
{
	const struct command_line *line = input;

	(void)cli;
	return send_as(line, line->mode, f);
}

static int run_steer(struct cli *cli, void *input, struct failure *f)
{
	(void)cli;
	return send_as(input, "steer", f);
}

static int with_id(const struct command_line *line, const char *op, struct failure *f)
{
	struct str id = id_of(line);

	return do_one(line, op, json_pack("{s:s%}", "id", id.p, id.n), "status", f);
}

static int run_interrupt(struct cli *cli, void *input, struct failure *f)
{
	(void)cli;
	return with_id(input, "interrupt", f);
}

static int run_archive(struct cli *cli, void *input, struct failure *f)
{
	(void)cli;
	return with_id(input, "archive", f);
}

static int run_delete(struct cli *cli, void *input, struct failure *f)
{
	(void)cli;
	return with_id(input, "delete", f);
}

static int run_answer(struct cli *cli, void *input, struct failure *f)
{
	const struct command_line *line = input;
	struct answering answering = {.decision = line->decision,
		.answers = line->more,
		.answer_count = line->more_count,
		.json = line->listing.json};

	return threads_answer(cli, id_of(line), &answering, f);
}

#define WHICH "which thread? Its id, or a beginning or an ending of it, as dais threads list shows it"

static const struct cli_verb verbs[] = {
	{"list", NULL, run_list},
	{"show", WHICH, run_show},
	{"follow", WHICH, run_follow},
	{"send", WHICH, run_send},
	{"steer", WHICH, run_steer},
	{"interrupt", WHICH, run_interrupt},
	{"answer", NULL, run_answer},
	{"archive", WHICH, run_archive},
	{"delete", WHICH, run_delete},
	{NULL, NULL, NULL},
};

int cmd_threads(struct cli *cli, int argc, char **argv)
{
	struct command_line line = {.cli = cli, .words = {.verbs = verbs}, .listing = {.limit = 200}};

	if (cli_parse(cli, argc, argv, options, parse,
		    "[list|show ID|follow ID|send ID TEXT|steer ID TEXT|interrupt ID|answer [ID [TEXT…]]|archive ID|delete ID]",
		    "Conversations with agents, of every project. An ID may be cut to a beginning or an ending that no other "
		    "has. A TEXT of - is read from stdin. answer lists what agents ask, or answers it: with a decision for a "
		    "permission, with TEXT or QUESTION=TEXT for questions. archive and delete end the thread's agent."
		    "\vExamples:\n  dais threads list --status live --watch\n  dais threads follow 3f9a07c1\n"
		    "  dais threads send 3f9a07c1 \"use the other parser\"\n  dais threads answer 77b0e2d4 --accept",
		    &line) != 0)
		return 64;
	return words_run(cli, &line.words, &line);
}
