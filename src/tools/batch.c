/* The ops of a call on the writer thread. Each op runs under a savepoint of its own; an atomic call has one
 * more around all of them. */
#include "tools/frame.h"

#include "work/report.h"

static void reset(struct call *call, const struct frame *frame, size_t index)
{
	call->is_partial = false;
	call->once_members = STR_NONE;
	call->again_members = STR_NONE;
	call->after_failure = NULL;
	call->after_failure_arg = NULL;
	call->warnings.index = frame->step_count > 1 ? (int)index : -1;
}

/* What must be on record although the op was undone. Its own failure changes nothing for the caller. */
static int record_refusal(struct tx *tx, struct call *call, struct failure *f)
{
	struct failure ignored;

	if (call->after_failure == NULL)
		return 0;
	failure_init(&ignored, call->arena);
	if (tx_mark(tx, f) != 0)
		return -1;
	if (call->after_failure(tx, call, call->after_failure_arg, &ignored) == 0)
		return tx_keep(tx, f);
	return tx_undo(tx, f);
}

static int give_again(struct tx *tx, struct frame *frame, struct step *step, struct failure *f)
{
	struct json_error error;
	struct json_writer w;
	struct buf out;
	json_auto_t *stored = NULL;

	if (step->operation->replayed == NULL)
		return 0;
	stored = json_read(str_printf(frame->call.arena, "{%.*s}", STRF(step->result)), &error);
	buf_init(&out, frame->call.arena, SIZE_MAX);
	buf_add_str(&out, step->result);
	json_writer_init(&w, &out);
	w.comma = out.n > 0;
	if (step->operation->replayed(tx, &frame->call, stored, &w, f) != 0)
		return -1;
	step->result = buf_str(&out);
	return 0;
}

static int execute(struct tx *tx, struct frame *frame, struct step *step, size_t index, struct failure *f)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, frame->call.arena, SIZE_MAX);
	json_writer_init(&w, &out);
	/* Whatever a seat gets done shows that its run is alive. */
	if (step->operation->change(tx, &frame->call, step->args, &w, f) != 0 ||
		run_touch(tx, &frame->call, f) != 0)
		return -1;
	step->result = buf_str(&out);
	if (frame->call.is_partial || frame->is_atomic)
		return 0;
	return remember(tx, frame, step, index, f);
}

static struct str with_members(struct call *call, struct str members, struct str more)
{
	if (more.n == 0)
		return members;
	return str_printf(call->arena, "%.*s%s%.*s", STRF(members), members.n > 0 ? "," : "", STRF(more));
}

/* The only op of a call needs no savepoint besides the call's own. */
static bool is_alone(const struct frame *frame)
{
	return frame->step_count == 1 && !frame->is_atomic;
}

static int undo_step(struct tx *tx, const struct frame *frame, struct failure *f)
{
	if (tx_undo(tx, f) != 0)
		return -1;
	return is_alone(frame) ? tx_mark(tx, f) : 0; /* the call's, which the store closes */
}

/* 0 the op is done, kept or undone; -1 the transaction itself is broken. */
static int run_step(struct tx *tx, struct frame *frame, size_t index, struct failure *f)
{
	struct step *step = &frame->steps[index];
	struct call *call = &frame->call;
	int rc;

	reset(call, frame, index);
	failure_init(&step->failure, call->arena);
	if (!is_alone(frame) && tx_mark(tx, f) != 0)
		return -1;
	rc = frame->is_atomic ? 0 : remembered(tx, frame, step, index, &step->failure);
	if (rc == 1)
		rc = give_again(tx, frame, step, &step->failure);
	else if (rc == 0)
		rc = execute(tx, frame, step, index, &step->failure);
	if (rc != 0) {
		step->is_ok = false;
		if (undo_step(tx, frame, f) != 0)
			return -1;
		/* The paths of a document's faults are paths inside the document. */
		if (step->failure.code != FAIL_CONFIG_INVALID)
			(void)fail_under(&step->failure, "ops[%zu].", index);
		return frame->is_atomic ? 0 : record_refusal(tx, call, f);
	}
	step->is_ok = !call->is_partial;
	step->is_committed = !step->is_replayed;
	if (!step->is_replayed) {
		step->once = call->once_members;
		step->again = call->again_members;
	}
	/* An atomic call is remembered as a whole first: what is shown once must not get into that. */
	if (!frame->is_atomic)
		step->result = with_members(call, step->result, step->once);
	return is_alone(frame) ? 0 : tx_keep(tx, f);
}

/* All or nothing; the whole call is one entry of the idempotency table. */
static int run_atomic(struct tx *tx, struct frame *frame, struct failure *f)
{
	struct step *first = &frame->steps[0];
	struct buf all;
	int rc;

	failure_init(&first->failure, frame->call.arena);
	rc = remembered(tx, frame, first, 0, &first->failure);
	if (rc < 0) {
		frame->atomic_failed = 0;
		return 0;
	}
	if (rc == 1) {
		frame->atomic_replayed = true;
		return 0;
	}
	if (tx_mark(tx, f) != 0)
		return -1;
	for (size_t i = 0; i < frame->step_count; i++) {
		if (run_step(tx, frame, i, f) != 0)
			return -1;
		if (frame->steps[i].is_ok)
			continue;
		frame->atomic_failed = (int)i;
		if (tx_undo(tx, f) != 0)
			return -1;
		return record_refusal(tx, &frame->call, f);
	}
	if (frame->key.n > 0) {
		struct str own = first->result;

		buf_init(&all, frame->call.arena, SIZE_MAX);
		for (size_t i = 0; i < frame->step_count; i++)
			buf_printf(&all, "%s{\"ok\":true,\"op\":\"%s\"%s%.*s}", i == 0 ? "" : ",",
				frame->steps[i].operation->name, frame->steps[i].result.n > 0 ? "," : "",
				STRF(with_members(&frame->call, frame->steps[i].result, frame->steps[i].again)));
		first->result = buf_str(&all);
		frame->call.again_members = STR_NONE;
		rc = remember(tx, frame, first, 0, f);
		first->result = own;
		if (rc != 0)
			return -1;
	}
	for (size_t i = 0; i < frame->step_count; i++)
		frame->steps[i].result = with_members(&frame->call, frame->steps[i].result, frame->steps[i].once);
	return tx_keep(tx, f);
}

int frame_change(struct tx *tx, void *arg, struct failure *f)
{
	struct frame *frame = arg;

	frame->atomic_failed = -1;
	if (caller_still(&tx->snapshot, frame->call.caller, f) != 0)
		return -1;
	if (frame->is_atomic)
		return run_atomic(tx, frame, f);
	for (size_t i = 0; i < frame->step_count; i++)
		if (run_step(tx, frame, i, f) != 0)
			return -1;
	return 0;
}
