/* dais demo: the story on a scratch state with a server of its own. */
#include "cli/demo.h"

#include "base/id.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_MS 30000
#define MAX_KEPT 16

struct demo {
	struct cli *cli;
	char *place; /* the scratch directory */
	pid_t server;
	struct word kept[MAX_KEPT];
	size_t kept_count;
	int chapter;
	int wrong; /* answers that were not as told */
};

/* Somebody wants it to end: at the next step everything is cleared away first. */
static volatile sig_atomic_t ended_by;

static void on_end(int signal)
{
	ended_by = signal;
}

static void catch_ends(void)
{
	/* Without SA_RESTART, so that a wait is cut short. */
	struct sigaction action = {.sa_handler = on_end};

	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGHUP, &action, NULL);
}

/* ---- the server of the story ---- */

static void become_server(const struct demo *demo, int ready)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive the story */
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(ready, STDOUT_FILENO);
	/* What is set for the person's own server does not concern this one. */
	for (char **entry = environ; *entry != NULL; entry++)
		if (strncmp(*entry, "DAIS_", 5) == 0)
			**entry = '_';
	(void)execl("/proc/self/exe", "dais", "serve", "--state", demo->cli->state_dir, "--config", demo->cli->config,
		"--listen", "127.0.0.1:0", "--config-dir", demo->place, "--log-level", "error", "--detached", (char *)NULL);
	_exit(70);
}

static int start_server(struct demo *demo, struct failure *f)
{
	struct pollfd polled = {.events = POLLIN};
	int ready[2];
	char byte;
	int rc;

	if (pipe2(ready, O_CLOEXEC) != 0)
		return fail_errno(f, "make a pipe");
	demo->server = fork();
	if (demo->server == 0)
		become_server(demo, ready[1]);
	(void)close(ready[1]);
	if (demo->server < 0) {
		(void)close(ready[0]);
		return fail_errno(f, "start the server");
	}
	polled.fd = ready[0];
	rc = poll(&polled, 1, READY_MS) > 0 && read(ready[0], &byte, 1) == 1 ? 0 : -1;
	(void)close(ready[0]);
	return rc == 0 ? 0 : fail(f, FAIL_NOT_REACHABLE, "The server of the demo does not start.");
}

static void end_server(struct demo *demo, int signal)
{
	if (demo->server <= 0)
		return;
	(void)kill(demo->server, signal);
	while (waitpid(demo->server, NULL, 0) < 0 && errno == EINTR)
		;
	demo->server = 0;
}

/* ---- one call ---- */

static struct str filled(struct demo *demo, const char *text)
{
	return fill_words(demo->cli->arena, text, demo->kept, demo->kept_count);
}

/* The member at a path; NULL when there is none. A * has no place here. */
static json_t *member_at(const json_t *value, struct str path)
{
	while (value != NULL && path.n > 0) {
		const char *dot = memchr(path.p, '.', path.n);
		struct str step = {path.p, dot == NULL ? path.n : (size_t)(dot - path.p)};
		int64_t at;

		value = json_is_array(value) && str_to_int(step, &at) ? json_array_get(value, (size_t)at)
								      : json_object_getn(value, step.p, step.n);
		path.p += step.n + (dot != NULL);
		path.n -= step.n + (dot != NULL);
	}
	return (json_t *)(uintptr_t)value;
}

static bool holds_at(const json_t *answer, const char *path, struct str wanted)
{
	const char *star = strstr(path, ".*.");
	const json_t *list;
	json_t *element;
	size_t i;

	if (star == NULL)
		return str_eq(json_str(member_at(answer, str_of(path))), wanted);
	list = member_at(answer, (struct str){path, (size_t)(star - path)});
	json_array_foreach (list, i, element)
		if (str_eq(json_str(member_at(element, str_of(star + 3))), wanted))
			return true;
	return false;
}

/* Whole ids say nothing to a reader: their first 8 digits do. */
static struct str with_short_ids(struct arena *arena, struct str text)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t at = 0; at < text.n;) {
		struct str id = {text.p + at, text.n - at < 36 ? text.n - at : 36};
		struct id_prefix prefix;

		if (id.n == 36 && id.p[8] == '-' && id.p[13] == '-' && id_prefix_parse(id, &prefix) && prefix.digits == 32) {
			buf_add(&out, id.p, 8);
			at += 36;
			continue;
		}
		buf_add_char(&out, text.p[at++]);
	}
	return buf_str(&out);
}

static void print_line(struct demo *demo, const char *mark, struct str text)
{
	struct cli *cli = demo->cli;

	/* A reader wants the gist; a file takes it all. */
	text = term_text(cli->arena, with_short_ids(cli->arena, text), isatty(STDOUT_FILENO) != 0 ? 2 * term_width() - 14 : 0);
	(void)printf("   %s%s%s %.*s\n", term_dim(cli), mark, term_off(cli), STRF(text));
}

static void print_answer(struct demo *demo, const struct demo_step *step, const json_t *answer)
{
	struct buf out;

	buf_init(&out, demo->cli->arena, SIZE_MAX);
	for (size_t i = 0; i < 4 && step->shows[i] != NULL; i++) {
		const char *name = strrchr(step->shows[i], '.');
		const json_t *value = member_at(answer, str_of(step->shows[i]));
		struct str text = json_is_string(value) ? json_str(value) : json_canonical(demo->cli->arena, value);

		if (value != NULL)
			buf_printf(&out, "%s%s %.*s", i == 0 ? "" : ", ", name == NULL ? step->shows[i] : name + 1,
				STRF(text));
	}
	print_line(demo, json_is_true(json_object_get(answer, "ok")) ? "← ok     " : "← refused", buf_str(&out));
}

/* An answer of which nothing is expected has to be a success. */
static void judge(struct demo *demo, const struct demo_step *step, const json_t *answer)
{
	bool is_right = step->expects[0].path != NULL || json_is_true(json_object_get(answer, "ok"));

	for (size_t i = 0; i < 4 && step->expects[i].path != NULL; i++) {
		struct str wanted = filled(demo, step->expects[i].value);

		if (holds_at(answer, step->expects[i].path, wanted))
			continue;
		is_right = false;
		print_line(demo, "!        ", str_printf(demo->cli->arena, "%s should be %.*s", step->expects[i].path, STRF(wanted)));
	}
	if (!is_right) {
		(void)printf("   NOT AS TOLD:\n");
		print_json(answer);
	}
	demo->wrong += !is_right;
}

static void keep(struct demo *demo, const struct demo_step *step, const json_t *answer)
{
	for (size_t i = 0; i < 3 && step->keeps[i].name != NULL && demo->kept_count < MAX_KEPT; i++)
		demo->kept[demo->kept_count++] = (struct word){step->keeps[i].name,
			str_dup(demo->cli->arena, json_str(member_at(answer, str_of(step->keeps[i].path))))};
}

/* Each call comes from a client of its own. */
static int call(struct demo *demo, const struct demo_step *step, struct failure *f)
{
	json_auto_t *answer = NULL;
	struct str arguments = filled(demo, step->arguments);
	int fd;
	int rc;

	print_line(demo, "→", str_printf(demo->cli->arena, "%s %.*s", step->tool, STRF(arguments)));
	if (client_connect(demo->cli, &fd, f) != 0)
		return -1;
	rc = client_call(demo->cli, fd, step->tool, arguments, &answer, NULL, f);
	(void)close(fd);
	if (rc != 0)
		return -1;
	print_answer(demo, step, answer);
	judge(demo, step, answer);
	keep(demo, step, answer);
	return 0;
}

/* ---- the crash ---- */

/* Every item with its version and times, as the server tells it. */
static int read_everything(struct demo *demo, struct str *out, struct failure *f)
{
	json_auto_t *data = NULL;

	if (client_tool(demo->cli, "items_read",
		    STR("{\"select\":\"list\",\"sortBy\":\"createdAt\",\"limit\":100,\"fields\":[\"notes\",\"childCounts\"]}"), &data,
		    f) != 0)
		return -1;
	*out = json_canonical(demo->cli->arena, data);
	return 0;
}

static int crash(struct demo *demo, struct failure *f)
{
	struct str before;
	struct str after;

	if (read_everything(demo, &before, f) != 0)
		return -1;
	print_line(demo, "→", str_printf(demo->cli->arena, "kill -9 %d", (int)demo->server));
	end_server(demo, SIGKILL);
	if (start_server(demo, f) != 0 || read_everything(demo, &after, f) != 0)
		return -1;
	print_line(demo, "←", str_printf(demo->cli->arena, "pid %d; what it knows is %s", (int)demo->server,
		str_eq(before, after) ? "the same to the byte" : "NOT THE SAME"));
	demo->wrong += !str_eq(before, after);
	return 0;
}

/* ---- the whole ---- */

static int play(struct demo *demo, struct failure *f)
{
	struct cli *cli = demo->cli;

	for (const struct demo_step *step = demo_steps; step->tells != NULL || step->tool != NULL; step++) {
		if (ended_by != 0)
			return -1;
		if (step->tells != NULL)
			(void)printf("\n%s%d. %s%s\n", term_bold(cli), ++demo->chapter, step->tells, term_off(cli));
		if ((step->tool == NULL ? crash(demo, f) : call(demo, step, f)) != 0)
			return -1;
		(void)fflush(stdout);
	}
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int prepare(struct demo *demo, struct failure *f)
{
	const char *tmp = getenv("TMPDIR");
	int fd;

	demo->place = arena_printf(demo->cli->arena, "%s/dais-demo-XXXXXX", tmp == NULL || tmp[0] != '/' ? "/tmp" : tmp);
	if (mkdtemp(demo->place) == NULL) {
		demo->place = NULL;
		return fail(f, FAIL_CANNOT_CREATE, "There is no place for the demo; set TMPDIR.");
	}
	demo->cli->state_dir = arena_printf(demo->cli->arena, "%s/state", demo->place);
	/* An empty file of settings: those of the person stay out. */
	demo->cli->config = arena_printf(demo->cli->arena, "%s/settings.yaml", demo->place);
	fd = open(demo->cli->config, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(f, FAIL_CANNOT_CREATE, "%s cannot be made.", demo->cli->config);
	(void)close(fd);
	return 0;
}

int cmd_demo(struct cli *cli, int argc, char **argv)
{
	struct demo demo = {.cli = cli};
	struct failure f;
	int rc;

	failure_init(&f, cli->arena);
	if (cli_parse(cli, argc, argv, NULL, NULL, NULL,
		    "Play the story that this server is for: a gate that refuses, a dependency that waits, a parent that closes, "
		    "a newcomer, a crash. It runs on a scratch state with a server of its own and leaves nothing behind. Exit "
		    "code 0 when everything came out as told.\vExample:\n  dais demo",
		    NULL) != 0)
		return 64;
	catch_ends();
	rc = prepare(&demo, &f);
	if (rc == 0)
		rc = start_server(&demo, &f);
	if (rc == 0)
		rc = play(&demo, &f);
	end_server(&demo, SIGTERM);
	if (demo.place != NULL)
		(void)nftw(demo.place, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (ended_by != 0) {
		(void)signal(ended_by, SIG_DFL);
		(void)raise(ended_by); /* the shell sees what ended it */
	}
	if (rc != 0)
		return cli_fail(cli, &f);
	(void)printf("\n%s\n", demo.wrong == 0 ? "Everything came out as told." : "NOT everything came out as told.");
	return demo.wrong == 0 ? 0 : 1;
}
