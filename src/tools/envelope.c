/* The answer: one envelope for MCP and REST. */
#include "tools/frame.h"

#include "base/limits.h"

static void begin(struct frame *frame, struct buf *out, struct json_writer *w, bool ok)
{
	buf_init(out, frame->call.arena, LIMIT_RESULT_HARD_BYTES);
	json_writer_init(w, out);
	jw_object_begin(w);
	jw_kbool(w, "ok", ok);
}

static void end(struct frame *frame, struct buf *out, struct json_writer *w)
{
	struct failure f;

	warnings_write(&frame->call.warnings, "warnings", w);
	jw_kobject(w, "meta");
	jw_ktext(w, "reqId", frame->call.caller->req_id);
	jw_object_end(w);
	jw_object_end(w);
	if (out->overflow) {
		failure_init(&f, frame->call.arena);
		(void)fail(&f, FAIL_PAYLOAD_TOO_LARGE, "The answer is larger than one result may be.");
		fail_detail_int(&f, "max", LIMIT_RESULT_HARD_BYTES);
		frame_answer_failure(frame, &f);
		return;
	}
	frame->request->envelope = buf_str(out);
}

static void set_error(struct tool_call *request, enum failure_code code, int64_t retry_after_ms)
{
	request->http_status = failure_info(code)->http_status;
	request->error_code = failure_info(code)->wire;
	request->retry_after_ms = retry_after_ms;
}

void frame_answer_failure(struct frame *frame, struct failure *f)
{
	struct buf out;
	struct json_writer w;

	begin(frame, &out, &w, false);
	jw_key(&w, "error");
	failure_write(f, &w);
	frame->request->is_error = true;
	set_error(frame->request, f->code, f->retry_after_ms);
	end(frame, &out, &w);
}

static void write_page(const struct page *page, struct json_writer *w)
{
	jw_kobject(w, "page");
	jw_kint(w, "returned", page->returned);
	if (page->total >= 0)
		jw_kint(w, "total", page->total);
	jw_kstr_opt(w, "nextCursor", page->next_cursor);
	jw_object_end(w);
}

void frame_answer_read(struct frame *frame, struct str data)
{
	struct buf out;
	struct json_writer w;

	begin(frame, &out, &w, true);
	jw_kobject(&w, "data");
	jw_members(&w, data);
	jw_object_end(&w);
	if (frame->call.page.is_set)
		write_page(&frame->call.page, &w);
	if (frame->call.page.is_shrunk)
		warn(&frame->call.warnings, "page_shrunk", STR_NONE,
			"The page was cut to fit the answer; go on with nextCursor.");
	frame->request->http_status = 200;
	end(frame, &out, &w);
}

void frame_answer_describe(struct frame *frame, struct failure *f)
{
	struct buf out;
	struct json_writer w;

	begin(frame, &out, &w, true);
	jw_key(&w, "data");
	if (tool_describe(frame->tool, frame->call.caller->profile, str_of(frame->describe), &w, f) != 0) {
		frame_answer_failure(frame, f);
		return;
	}
	frame->request->http_status = 200;
	end(frame, &out, &w);
}

static void partial(struct failure *f, struct arena *arena, int failed, int all)
{
	failure_init(f, arena);
	(void)fail(f, FAIL_PARTIAL_FAILURE, "%d of %d elements failed.", failed, all);
}

static void write_step(struct step *step, size_t index, struct arena *arena, struct json_writer *w)
{
	struct failure f;

	jw_object_begin(w);
	jw_kbool(w, "ok", step->is_ok);
	if (!step->is_ok)
		jw_kint(w, "index", (int64_t)index);
	if (step->is_ok || step->is_committed)
		jw_ktext(w, "op", step->operation->name);
	if (!step->is_ok) {
		jw_key(w, "error");
		if (step->is_committed) {
			partial(&f, arena, 1, 1);
			(void)fail(&f, FAIL_PARTIAL_FAILURE, "Some items were refused; look into items.");
			failure_write(&f, w);
		} else {
			failure_write(&step->failure, w);
		}
	}
	if (step->is_ok || step->is_committed)
		jw_members(w, step->result);
	if (step->is_replayed)
		jw_kbool(w, "replayed", true);
	jw_object_end(w);
}

/* The call's own error: of the only op, or that some failed. */
static void write_error(struct frame *frame, int failed, struct json_writer *w)
{
	struct step *first = &frame->steps[0];
	struct failure f;

	jw_key(w, "error");
	if (frame->step_count == 1 && !first->is_committed) {
		failure_write(&first->failure, w);
		set_error(frame->request, first->failure.code, first->failure.retry_after_ms);
		return;
	}
	partial(&f, frame->call.arena, failed, (int)frame->step_count);
	failure_write(&f, w);
	set_error(frame->request, FAIL_PARTIAL_FAILURE, 0);
}

static void answer_atomic_replay(struct frame *frame)
{
	struct buf out;
	struct json_writer w;

	begin(frame, &out, &w, true);
	jw_karray(&w, "results");
	jw_members(&w, frame->steps[0].result);
	jw_array_end(&w);
	jw_kobject(&w, "summary");
	jw_kint(&w, "ok", (int64_t)frame->step_count);
	jw_kint(&w, "failed", 0);
	jw_object_end(&w);
	jw_kbool(&w, "replayed", true);
	frame->request->http_status = 200;
	frame->request->is_replayed = true;
	end(frame, &out, &w);
}

void frame_answer_change(struct frame *frame)
{
	struct tool_call *request = frame->request;
	bool all_replayed = true;
	bool any_committed = false;
	int failed = 0;
	struct buf out;
	struct json_writer w;

	if (frame->atomic_replayed) {
		answer_atomic_replay(frame);
		return;
	}
	if (frame->atomic_failed >= 0) {
		struct failure *f = &frame->steps[frame->atomic_failed].failure;

		f->index = frame->atomic_failed;
		request->failed_count = (int)frame->step_count;
		frame_answer_failure(frame, f);
		return;
	}
	for (size_t i = 0; i < frame->step_count; i++) {
		failed += !frame->steps[i].is_ok;
		all_replayed = all_replayed && frame->steps[i].is_replayed;
		any_committed = any_committed || frame->steps[i].is_committed || frame->steps[i].is_ok;
	}
	request->http_status = 200;
	request->failed_count = failed;
	request->is_replayed = all_replayed;
	request->is_error = failed > 0 && !any_committed;
	begin(frame, &out, &w, failed == 0);
	jw_karray(&w, "results");
	for (size_t i = 0; i < frame->step_count; i++)
		write_step(&frame->steps[i], i, frame->call.arena, &w);
	jw_array_end(&w);
	jw_kobject(&w, "summary");
	jw_kint(&w, "ok", (int64_t)frame->step_count - failed);
	jw_kint(&w, "failed", failed);
	jw_object_end(&w);
	if (failed > 0)
		write_error(frame, failed, &w);
	if (all_replayed)
		jw_kbool(&w, "replayed", true);
	end(frame, &out, &w);
}
