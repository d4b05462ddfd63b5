/* Following a thread: its text as it is streamed, everything else on one line each, until its run has ended. */
#include "cli/threads.h"

#include "threads/status.h"

#include <stdlib.h>
#include <time.h>

/* What was printed of an item. */
struct seen {
	struct str id;
	size_t bytes; /* of its text */
	bool is_text, is_told, is_over;
};

struct follower {
	struct cli *cli; /* of the round: its arena ends with it */
	struct watching *watching;
	struct arena *life;    /* of the whole following */
	struct str run_id;
	int64_t run_n;
	struct seen *seen;
	size_t seen_count, seen_room;
	bool is_inside_line; /* the text printed last ended without a newline */
	bool is_over;
	struct failure *f; /* of take() */
	int rc;
};

static struct seen *seen_of(struct follower *fo, struct str id)
{
	for (size_t i = fo->seen_count; i-- > 0;)
		if (str_eq(fo->seen[i].id, id))
			return &fo->seen[i];
	return NULL;
}

static struct seen *see(struct follower *fo, struct str id)
{
	struct seen *seen = seen_of(fo, id);

	if (seen != NULL)
		return seen;
	if (fo->seen_count == fo->seen_room) {
		fo->seen_room = fo->seen_room * 2 + 32;
		fo->seen = realloc(fo->seen, fo->seen_room * sizeof(*fo->seen));
		if (fo->seen == NULL)
			abort();
	}
	fo->seen[fo->seen_count] = (struct seen){.id = str_dup(fo->life, id)};
	return &fo->seen[fo->seen_count++];
}

static void end_line(struct follower *fo)
{
	if (fo->is_inside_line)
		(void)fputc('\n', stdout);
	fo->is_inside_line = false;
	(void)fflush(stdout);
}

static void add_text(struct follower *fo, struct seen *seen, size_t at, struct str text)
{
	size_t known = seen->bytes > at ? seen->bytes - at : 0;

	if (known >= text.n)
		return;
	text = (struct str){text.p + known, text.n - known};
	print_text(fo->cli, stdout, text);
	seen->bytes += text.n;
	fo->is_inside_line = text.p[text.n - 1] != '\n';
	(void)fflush(stdout);
}

/* ---- items ---- */

static bool is_text_type(struct str type)
{
	return str_eq(type, STR("assistant_message"));
}

static bool is_over(struct str status)
{
	return !str_eq(status, STR("pending")) && !str_eq(status, STR("running")) && !str_eq(status, STR("waiting"));
}

/* As threads.show writes it. */
static void take_item(struct follower *fo, const json_t *item)
{
	struct str type = json_member_str(item, "type");
	struct str status = json_member_str(item, "status");
	struct seen *seen = see(fo, json_member_str(item, "id"));
	bool was_told = seen->is_told;
	bool ends = is_over(status) && !seen->is_over;

	seen->is_told = true;
	seen->is_over = is_over(status);
	seen->is_text = is_text_type(type);
	if (seen->is_text) {
		add_text(fo, seen, 0, json_member_str(item, "text"));
		if (ends)
			end_line(fo);
		return;
	}
	/* Questions are told by themselves; thoughts are for `show`. Others once when they begin, and again when they fail. */
	if (str_eq(type, STR("reasoning")) || str_eq(type, STR("approval_request")) || str_eq(type, STR("user_input_request"))
		|| (was_told && (!ends || (str_eq(status, STR("completed")) && !str_eq(type, STR("subagent"))))))
		return;
	end_line(fo);
	print_item(fo->cli, fo->watching->aside, item);
	(void)fflush(fo->watching->aside);
}

#define ASK_TRIES 100
#define ASK_PAUSE_MS 100

/* A server that starts again between an event and the question about it is waited for, as the events are. */
static int ask_patiently(struct follower *fo, const char *what, int limit, json_t **answer)
{
	for (int tries = 1;; tries++) {
		json_t *arguments = json_pack("{s:s%}", "id", fo->watching->thread_id.p, fo->watching->thread_id.n);

		if (limit > 0)
			(void)json_object_set_new(arguments, "limit", json_integer(limit));
		if (threads_ask(fo->cli, what, arguments, answer, fo->f) == 0)
			return 0;
		if (fo->f->code != FAIL_NOT_REACHABLE || tries == ASK_TRIES)
			return -1;
		failure_init(fo->f, fo->f->arena);
		(void)nanosleep(&(struct timespec){.tv_nsec = ASK_PAUSE_MS * 1000000L}, NULL);
	}
}

/* An event says that there is something, not what: the item is asked for. */
static void ask_item(struct follower *fo, struct str id)
{
	json_auto_t *answer = NULL;
	const json_t *items;

	fo->rc = ask_patiently(fo, "show", 100, &answer);
	items = json_object_get(answer, "items");
	for (size_t i = 0; i < json_array_size(items); i++)
		if (str_eq(json_member_str(json_array_get(items, i), "id"), id))
			take_item(fo, json_array_get(items, i));
}

static void take_item_event(struct follower *fo, const json_t *data)
{
	struct str id = json_member_str(data, "turnItemId");
	const struct seen *seen = seen_of(fo, id);
	json_auto_t *item = NULL;

	if (!str_eq(json_member_str(data, "runId"), fo->run_id))
		return;
	if (!is_text_type(json_member_str(data, "type"))) {
		if (seen == NULL || (is_over(json_member_str(data, "status")) && !seen->is_over))
			ask_item(fo, id);
		return;
	}
	/* Its text comes by itself. */
	item = json_copy((json_t *)(uintptr_t)data);
	(void)json_object_set_new(item, "id", json_stringn(id.p, id.n));
	take_item(fo, item);
}

static void take_text(struct follower *fo, const json_t *data)
{
	struct seen *seen = seen_of(fo, json_member_str(data, "turnItemId"));

	if (seen != NULL && seen->is_text)
		add_text(fo, seen, (size_t)json_integer_value(json_object_get(data, "at")), json_member_str(data, "text"));
}

/* ---- questions ---- */

static void take_request(struct follower *fo, const json_t *request)
{
	end_line(fo);
	print_request(fo->cli, fo->watching->aside, request);
	(void)fflush(fo->watching->aside);
	if (!fo->watching->answers)
		return;
	fo->rc = answer_on_terminal(fo->cli, request, fo->f);
	if (fo->rc < 0 && fo->f->code == FAIL_INVALID_REQUEST) { /* somebody else was faster */
		(void)fprintf(stderr, "dais: %.*s\n", STRF(fo->f->message));
		failure_init(fo->f, fo->f->arena);
		fo->rc = 0;
	}
	fo->rc = fo->rc < 0 ? -1 : 0;
}

static void take_request_event(struct follower *fo, const json_t *data)
{
	json_auto_t *answer = NULL;
	struct str id = json_member_str(data, "requestId");
	const json_t *requests;

	if (!str_eq(json_member_str(data, "status"), STR("pending")))
		return;
	fo->rc = ask_patiently(fo, "requests", 0, &answer);
	requests = json_object_get(answer, "requests");
	for (size_t i = 0; i < json_array_size(requests); i++)
		if (str_eq(json_member_str(json_array_get(requests, i), "id"), id))
			take_request(fo, json_array_get(requests, i));
}

/* ---- the run ---- */

static void take_run(struct follower *fo, struct str status, struct str failure)
{
	int64_t number = run_status_find(status);

	if (fo->is_over || number < 0 || !run_is_terminal(number))
		return;
	fo->is_over = true;
	fo->watching->outcome = str_of(run_status_name(number));
	end_line(fo);
	if (number == RUN_COMPLETED)
		return;
	(void)fprintf(fo->watching->aside, "%.*s%s%.*s\n", STRF(status), failure.n > 0 ? ": " : "",
		STRF(term_text(fo->cli->arena, failure, 0)));
	(void)fflush(fo->watching->aside);
}

static void take_run_event(struct follower *fo, const json_t *data)
{
	if (str_eq(json_member_str(data, "runId"), fo->run_id))
		take_run(fo, json_member_str(data, "status"), json_member_str(json_object_get(data, "failure"), "message"));
}

/* ---- events ---- */

static void take_event(struct follower *fo, struct str type, const json_t *data)
{
	if (str_eq(type, STR("turn-item.text-appended")))
		take_text(fo, data);
	else if (str_eq(type, STR("turn-item.updated")))
		take_item_event(fo, data);
	else if (str_eq(type, STR("runtime-request.updated")))
		take_request_event(fo, data);
	else if (str_eq(type, STR("thread-run.updated")))
		take_run_event(fo, data);
	else if (str_eq(type, STR("thread.updated")) && json_object_get(data, "deletedAt") != NULL)
		take_run(fo, str_of(run_status_name(RUN_CANCELLED)), STR("the thread was deleted"));
}

static void print_event(struct follower *fo, struct str type, const json_t *data, struct str line)
{
	int status = run_status_find(json_member_str(data, "status"));

	print_json_text(line);
	(void)fflush(stdout);
	if (str_eq(type, STR("thread-run.updated")) && str_eq(json_member_str(data, "runId"), fo->run_id) && status >= 0
		&& run_is_terminal(status)) {
		fo->is_over = true;
		fo->watching->outcome = str_of(run_status_name(status));
	}
}

static void take(void *context, struct str line)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct follower *fo = context;
	struct cli *cli = fo->cli;
	struct cli round = *cli; /* it may be followed for days */
	struct json_error error;
	json_auto_t *event = json_read(line, &error);
	const json_t *data = json_object_get(event, "data");
	struct str type = json_member_str(event, "type");

	if (fo->rc != 0 || fo->is_over || !str_eq(json_member_str(event, "threadId"), fo->watching->thread_id))
		return;
	round.arena = arena;
	fo->cli = &round;
	if (fo->watching->json)
		print_event(fo, type, data, line);
	else
		take_event(fo, type, data);
	fo->cli = cli;
}

static int settle(void *context, struct failure *f)
{
	struct follower *fo = context;

	(void)f; /* take() filled the same one */
	return fo->rc != 0 ? -1 : fo->is_over || ferror(stdout) != 0 ? 1 : 0;
}

/* ---- beginning ---- */

static const json_t *choose_run(const json_t *runs, struct str run_id)
{
	const json_t *chosen = NULL;

	/* Newest first: the oldest that is not at its end is the active one, or the first of the queue. */
	for (size_t i = 0; i < json_array_size(runs); i++) {
		const json_t *run = json_array_get(runs, i);
		struct str status = json_member_str(run, "status");

		if (run_id.n > 0) {
			if (str_eq(json_member_str(run, "id"), run_id))
				return run;
		} else if (chosen == NULL || !run_is_terminal(run_status_find(status))) {
			chosen = run;
		}
	}
	return chosen;
}

static void take_snapshot(struct follower *fo, const json_t *answer, const json_t *run)
{
	const json_t *items = json_object_get(answer, "items");
	const json_t *requests = json_object_get(answer, "requests");

	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *item = json_array_get(items, i);

		if (json_integer_value(json_object_get(item, "runN")) != fo->run_n)
			continue;
		if (!fo->watching->json)
			take_item(fo, item);
	}
	if (fo->watching->json) {
		fo->is_over = run_is_terminal(run_status_find(json_member_str(run, "status")));
		return;
	}
	for (size_t i = 0; i < json_array_size(requests) && fo->rc == 0; i++)
		take_request(fo, json_array_get(requests, i));
	take_run(fo, json_member_str(run, "status"), json_member_str(json_object_get(run, "failure"), "message"));
}

static int follow(struct follower *fo, struct failure *f)
{
	json_auto_t *answer = NULL;
	struct following following = {.take = take, .settle = settle, .context = fo};
	const json_t *run;

	if (threads_ask(fo->cli, "show",
		    json_pack("{s:s%, s:i}", "id", fo->watching->thread_id.p, fo->watching->thread_id.n, "limit", 1000), &answer, f)
		!= 0)
		return -1;
	run = choose_run(json_object_get(answer, "runs"), fo->watching->run_id);
	if (run == NULL) {
		fo->watching->outcome = STR("idle");
		return 0;
	}
	fo->watching->thread_id = str_dup(fo->cli->arena, json_member_str(json_object_get(answer, "thread"), "id"));
	fo->run_id = str_dup(fo->cli->arena, json_member_str(run, "id"));
	fo->run_n = json_integer_value(json_object_get(run, "n"));
	following.since = json_integer_value(json_object_get(answer, "seq"));
	fo->watching->outcome = str_of(run_status_name(run_status_find(json_member_str(run, "status"))));
	take_snapshot(fo, answer, run);
	if (fo->rc != 0 || fo->is_over)
		return fo->rc;
	return follow_events(fo->cli, &following, f);
}

int threads_follow(struct cli *cli, struct watching *watching, struct failure *f)
{
	struct follower fo = {.cli = cli, .life = cli->arena, .watching = watching, .f = f};
	int rc;

	rc = follow(&fo, f);
	end_line(&fo);
	free(fo.seen);
	return rc;
}
