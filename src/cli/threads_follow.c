/* Following a thread: its text as it is streamed, everything else on one line each, until its run has ended. */
#include "cli/threads.h"

#include "threads/status.h"

#include <stdlib.h>

/* What was printed of an item. */
struct seen {
	int64_t n;
	size_t bytes; /* of its text */
	bool is_text, is_told, is_over;
};

struct follower {
	struct cli *cli; /* of the round: its arena ends with it */
	struct watching *watching;
	int64_t thread_n, run_n;
	struct seen *seen;
	size_t seen_count, seen_room;
	int64_t message_n; /* the newest message, whose item follows */
	struct buf message;
	bool is_inside_line; /* the text printed last ended without a newline */
	bool is_over;
	struct failure *f; /* of take() */
	int rc;
};

static struct seen *seen_of(struct follower *fo, int64_t n)
{
	for (size_t i = fo->seen_count; i-- > 0;)
		if (fo->seen[i].n == n)
			return &fo->seen[i];
	return NULL;
}

static struct seen *see(struct follower *fo, int64_t n)
{
	struct seen *seen = seen_of(fo, n);

	if (seen != NULL)
		return seen;
	if (fo->seen_count == fo->seen_room) {
		fo->seen_room = fo->seen_room * 2 + 32;
		fo->seen = realloc(fo->seen, fo->seen_room * sizeof(*fo->seen));
		if (fo->seen == NULL)
			abort();
	}
	fo->seen[fo->seen_count] = (struct seen){.n = n};
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
	struct seen *seen = see(fo, json_integer_value(json_object_get(item, "n")));
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

/* From the row that an event carries to what threads.show writes. */
static void take_item_row(struct follower *fo, const json_t *row)
{
	json_auto_t *item = json_copy((json_t *)(uintptr_t)row);
	int64_t message_n = json_integer_value(json_object_get(row, "messageN"));
	int64_t type = json_integer_value(json_object_get(row, "type"));
	int64_t status = json_integer_value(json_object_get(row, "status"));

	if (json_integer_value(json_object_get(row, "runN")) != fo->run_n || type < 0 || type >= TYPE_COUNT || status < 0
		|| status >= WORK_COUNT)
		return;
	(void)json_object_set_new(item, "type", json_string(item_type_name(type)));
	(void)json_object_set_new(item, "status", json_string(work_status_name(status)));
	if (message_n != 0 && message_n == fo->message_n)
		(void)json_object_set_new(item, "text", json_stringn(fo->message.p, fo->message.n));
	take_item(fo, item);
}

static void take_text(struct follower *fo, const json_t *data)
{
	struct seen *seen = seen_of(fo, json_integer_value(json_object_get(data, "itemN")));

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

static void take_request_row(struct follower *fo, const json_t *row)
{
	json_auto_t *answer = NULL;
	struct str id = json_member_str(row, "id");
	const json_t *requests;

	if (json_integer_value(json_object_get(row, "status")) != REQUEST_IS_PENDING)
		return;
	fo->rc = threads_ask(fo->cli, "requests",
		json_pack("{s:s%}", "id", fo->watching->thread_id.p, fo->watching->thread_id.n), &answer, fo->f);
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

static void take_run_row(struct follower *fo, const json_t *row)
{
	int64_t status = json_integer_value(json_object_get(row, "status"));

	if (json_integer_value(json_object_get(row, "n")) == fo->run_n && status >= 0 && status < RUN_COUNT)
		take_run(fo, str_of(run_status_name(status)), json_member_str(json_object_get(row, "failure"), "message"));
}

/* ---- events ---- */

static bool is_ours(const struct follower *fo, struct str type, const json_t *data)
{
	if (str_eq(type, STR("turn-item.text-appended")))
		return seen_of((struct follower *)(uintptr_t)fo, json_integer_value(json_object_get(data, "itemN"))) != NULL;
	return json_integer_value(json_object_get(data, "threadN")) == fo->thread_n;
}

static void take_event(struct follower *fo, struct str type, const json_t *data)
{
	if (str_eq(type, STR("turn-item.text-appended"))) {
		take_text(fo, data);
	} else if (str_eq(type, STR("turn-item.updated"))) {
		take_item_row(fo, data);
	} else if (str_eq(type, STR("message.updated"))) {
		fo->message_n = json_integer_value(json_object_get(data, "n"));
		fo->message.n = 0;
		buf_add_str(&fo->message, json_member_str(data, "text"));
	} else if (str_eq(type, STR("runtime-request.updated"))) {
		take_request_row(fo, data);
	} else if (str_eq(type, STR("thread-run.updated"))) {
		take_run_row(fo, data);
	}
}

/* For --json: the items are remembered, so that their text is known to be ours. */
static void print_event(struct follower *fo, struct str type, const json_t *data, struct str line)
{
	print_json_text(line);
	(void)fflush(stdout);
	if (str_eq(type, STR("turn-item.updated")))
		(void)see(fo, json_integer_value(json_object_get(data, "n")));
	if (str_eq(type, STR("thread-run.updated"))
		&& json_integer_value(json_object_get(data, "n")) == fo->run_n
		&& run_is_terminal(json_integer_value(json_object_get(data, "status")))) {
		fo->is_over = true;
		fo->watching->outcome = str_of(run_status_name(json_integer_value(json_object_get(data, "status"))));
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

	if (fo->rc != 0 || fo->is_over || !is_ours(fo, type, data))
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
		if (fo->watching->json)
			(void)see(fo, json_integer_value(json_object_get(item, "n")));
		else
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
	fo->thread_n = json_integer_value(json_object_get(json_object_get(answer, "thread"), "n"));
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
	struct follower fo = {.cli = cli, .watching = watching, .f = f};
	int rc;

	buf_init(&fo.message, NULL, SIZE_MAX);
	rc = follow(&fo, f);
	end_line(&fo);
	buf_finish(&fo.message);
	free(fo.seen);
	return rc;
}
