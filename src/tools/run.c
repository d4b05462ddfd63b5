/* One call from the caller's thread to the reader or the writer and back. */
#include "tools/frame.h"
#include "tools/plain.h"

#include <stdlib.h>

struct tools *tools_create(struct store *store, struct rules *rules, const char *config_dir)
{
	struct tools *tools = calloc(1, sizeof(*tools));

	if (tools == NULL)
		abort();
	tools->store = store;
	tools->rules = rules;
	if (config_dir != NULL) {
		tools->config_dir = strdup(config_dir);
		if (tools->config_dir == NULL)
			abort();
	}
	return tools;
}

void tools_destroy(struct tools *tools)
{
	if (tools == NULL)
		return;
	free(tools->config_dir);
	free(tools);
}

void tools_use_threads(struct tools *tools, struct threads *threads)
{
	tools->threads = threads;
}

static void finish(struct frame *frame)
{
	struct tool_call *request = frame->request;

	request->batch_size = (int)frame->step_count;
	for (size_t i = 0; i < frame->step_count; i++) {
		const struct operation *operation = frame->steps[i].operation; /* NULL: none of that name */

		request->ends_credentials = request->ends_credentials || (operation != NULL && operation->ends_credentials);
	}
	call_finish(&frame->call);
	request->done(request); /* may free the arena, and the frame with it */
}

static void change_done(void *arg, int rc, struct failure *f)
{
	struct frame *frame = arg;

	if (rc == 0)
		frame_answer_change(frame);
	else
		frame_answer_failure(frame, f);
	finish(frame);
}

static void read_run(struct snapshot *s, void *arg)
{
	struct frame *frame = arg;
	struct step *step = &frame->steps[0];
	struct failure f;
	struct buf out;
	struct json_writer w;

	failure_init(&f, frame->call.arena);
	buf_init(&out, frame->call.arena, SIZE_MAX);
	json_writer_init(&w, &out);
	frame->call.snapshot = s;
	if (caller_still(s, frame->call.caller, &f) == 0 &&
		step->operation->read(s, &frame->call, step->args, &w, &f) == 0)
		frame_answer_read(frame, buf_str(&out));
	else
		frame_answer_failure(frame, &f);
}

static void read_on_reader(struct snapshot *s, void *arg)
{
	read_run(s, arg);
	finish(arg);
}

static void read_refuse(void *arg, struct failure *f)
{
	frame_answer_failure(arg, f);
	finish(arg);
}

static void start_read(struct frame *frame, struct failure *f)
{
	struct store *store = frame->tools->store;
	struct snapshot snapshot;
	int settled = 0;

	if (frame->steps[0].operation->is_quick) {
		if (snapshot_begin(store, frame->call.arena, &snapshot, f) != 0) {
			read_refuse(frame, f);
			return;
		}
		settled = snapshot_is_settled(&snapshot, f);
		if (settled == 1)
			read_run(&snapshot, frame);
		snapshot_end(&snapshot);
	}
	if (settled != 0) {
		if (settled < 0)
			frame_answer_failure(frame, f);
		finish(frame);
		return;
	}
	/* Slow, or to wait for the disk: not on this thread. */
	frame->read = (struct store_read){
		.run = read_on_reader, .refuse = read_refuse, .arg = frame, .arena = frame->call.arena};
	if (store_read_submit(store, &frame->read, f) != 0)
		read_refuse(frame, f);
}

static int prepare(struct frame *frame, struct failure *f)
{
	for (size_t i = 0; i < frame->step_count; i++) {
		struct step *step = &frame->steps[i];

		if (step->operation->prepare == NULL)
			continue;
		if (step->operation->prepare(&frame->call, step->args, f) != 0)
			return fail_under(f, "ops[%zu].", i);
	}
	return 0;
}

static void start_change(struct frame *frame, struct failure *f)
{
	bool frees = true;

	for (size_t i = 0; i < frame->step_count; i++)
		frees = frees && frame->steps[i].operation->frees_space;
	frame->job = (struct store_job){
		.run = frame_change,
		.done = change_done,
		.arg = frame,
		.actor = &frame->request->caller.actor,
		.arena = frame->call.arena,
		.may_use_reserve = frees,
		.fails_clean = frame->step_count == 1 && !frame->is_atomic && frame->steps[0].operation->fails_clean,
	};
	if (prepare(frame, f) != 0 || store_submit(frame->tools->store, &frame->job, f) != 0)
		change_done(frame, -1, f);
}

void tools_call(struct tools *tools, struct tool_call *request)
{
	struct frame *frame;
	struct failure *f;

	if (request->tool->plain != NULL) {
		plain_call(tools, request);
		return;
	}
	frame = ARENA_NEW(request->arena, struct frame);
	f = ARENA_NEW(request->arena, struct failure);

	failure_init(f, request->arena);
	*frame = (struct frame){
		.tools = tools, .request = request, .tool = request->tool, .atomic_failed = -1};
	call_init(&frame->call, request->arena, &request->caller, tools->rules);
	frame->call.config_dir = tools->config_dir;
	if (frame_read(frame, f) != 0) {
		frame_answer_failure(frame, f);
		finish(frame);
		return;
	}
	frame->call.is_atomic = frame->is_atomic;
	if (frame->describe != NULL) {
		if (caller_need(&request->caller, CAP_READ, f) != 0)
			frame_answer_failure(frame, f);
		else
			frame_answer_describe(frame, f);
		finish(frame);
		return;
	}
	if (frame_permit(frame, f) != 0) {
		frame_answer_failure(frame, f);
		finish(frame);
	} else if (frame->is_read) {
		start_read(frame, f);
	} else {
		start_change(frame, f);
	}
}
