/* The life of a run: its attempts, and its end with all that follows from it. */
#include "threads/engine.h"

static int attempt_add(struct tx *tx, struct thread_run_row *run, enum attempt_reason reason, int64_t ordinal,
	struct failure *f)
{
	struct node_row node = {.thread_n = run->thread_n,
		.run_n = run->n,
		.kind = NODE_ROOT_TURN,
		.status = WORK_PENDING,
		.counts_for_run = 1};
	struct run_attempt_row attempt = {.run_n = run->n,
		.thread_n = run->thread_n,
		.ordinal = ordinal,
		.instance_id = run->instance_id,
		.reason = reason,
		.status = WORK_PENDING};

	if (tx_next(tx, SEQ_node, &node.n, f) != 0)
		return -1;
	node.root_n = node.n;
	attempt.root_node_n = node.n;
	if (PUT(tx, node, &node, run->thread_n, f) != 0 || PUT(tx, run_attempt, &attempt, run->thread_n, f) != 0)
		return -1;
	run->root_node_n = node.n;
	run->attempt_n = attempt.n;
	return 0;
}

int run_show_message(struct tx *tx, const struct thread_run_row *run, enum input_intent intent, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct turn_item_row item = {.thread_n = run->thread_n,
		.run_n = run->n,
		.attempt_n = run->attempt_n,
		.type = TYPE_USER_MESSAGE,
		.status = WORK_COMPLETED,
		.message_n = run->message_n,
		.body = str_printf(arena, "{\"inputIntent\":\"%s\"}", input_intent_name(intent)),
		.started_at = tx->snapshot.now,
		.completed_at = tx->snapshot.now};
	struct message_row message;

	if (NEED(&tx->snapshot, message, run->message_n, &message, f) != 0)
		return -1;
	item.id = IDENT(arena, "turn-item:message", message.id);
	return item_add(tx, &item, f);
}

SQL(SQL_SHOWN, "SELECT n FROM turn_item WHERE thread_n = $1 AND message_n = $2 AND run_n = $3 LIMIT 1");

/* A run that was prepared has shown its message already. */
static int show_message_once(struct tx *tx, const struct thread_run_row *run, enum input_intent intent, struct failure *f)
{
	int64_t n;
	int rc = run->ordinal > 1 ? 0
				  : query_int(&tx->snapshot, &n, f, SQL_SHOWN, "iii", run->thread_n, run->message_n, run->n);

	return rc == 0 ? run_show_message(tx, run, intent, f) : rc < 0 ? -1 : 0;
}

int run_start(struct tx *tx, struct thread_run_row *run, struct failure *f)
{
	bool was_asked_now = run->requested_at == tx->snapshot.now;

	run->status = RUN_STARTING;
	run->queue_position = 0;
	if (attempt_add(tx, run, REASON_INITIAL, 1, f) != 0
		|| show_message_once(tx, run, was_asked_now ? INTENT_TURN_START : INTENT_QUEUED_TURN, f) != 0
		|| PUT(tx, thread_run, run, run->thread_n, f) != 0
		|| effect_add(tx, run->thread_n, run->n, EFFECT_START_TURN, STR_NONE, f) != 0)
		return -1;
	return effect_add(tx, run->thread_n, run->n, EFFECT_BASELINE, STR_NONE, f);
}

static int node_end(struct tx *tx, int64_t node_n, enum work_status status, struct failure *f)
{
	struct node_row node;

	if (node_n == 0)
		return 0;
	if (NEED(&tx->snapshot, node, node_n, &node, f) != 0)
		return -1;
	node.status = status;
	node.completed_at = tx->snapshot.now;
	return PUT(tx, node, &node, node.thread_n, f);
}

static int attempt_end(struct tx *tx, int64_t attempt_n, enum work_status attempt_status, enum work_status node_status,
	struct failure *f)
{
	struct run_attempt_row attempt;

	if (NEED(&tx->snapshot, run_attempt, attempt_n, &attempt, f) != 0)
		return -1;
	attempt.status = attempt_status;
	attempt.completed_at = tx->snapshot.now;
	return PUT(tx, run_attempt, &attempt, attempt.thread_n, f) != 0 ? -1 : node_end(tx, attempt.root_node_n, node_status, f);
}

/* A run of an agent that dais did not start has no attempt. */
static int work_end(struct tx *tx, const struct thread_run_row *run, enum work_status status, struct failure *f)
{
	return run->attempt_n == 0 ? node_end(tx, run->root_node_n, status, f) : attempt_end(tx, run->attempt_n, status, status, f);
}

SQL(SQL_PENDING_REQUEST, "SELECT n FROM runtime_request WHERE thread_n = $1 AND status = 0 LIMIT 1");

/* Questions of an attempt that has ended need no answer any more. */
static int requests_cancel(struct tx *tx, int64_t thread_n, struct failure *f)
{
	struct runtime_request_row request;
	int64_t n;
	int rc;

	while ((rc = query_int(&tx->snapshot, &n, f, SQL_PENDING_REQUEST, "i", thread_n)) == 1) {
		if (NEED(&tx->snapshot, runtime_request, n, &request, f) != 0)
			return -1;
		request.status = REQUEST_IS_CANCELLED;
		request.is_live = 0;
		request.resolved_at = tx->snapshot.now;
		if (PUT(tx, runtime_request, &request, thread_n, f) != 0)
			return -1;
	}
	return rc;
}

int run_restart(struct tx *tx, struct thread_run_row *run, int64_t message_n, struct failure *f)
{
	struct run_attempt_row attempt;

	if (NEED(&tx->snapshot, run_attempt, run->attempt_n, &attempt, f) != 0
		|| attempt_end(tx, run->attempt_n, WORK_SUPERSEDED, WORK_INTERRUPTED, f) != 0
		|| items_end_run(tx, run->n, WORK_INTERRUPTED, f) != 0 || requests_cancel(tx, run->thread_n, f) != 0)
		return -1;
	run->status = RUN_STARTING;
	run->message_n = message_n;
	if (effect_add(tx, run->thread_n, run->n, EFFECT_INTERRUPT_TURN, STR_NONE, f) != 0
		|| attempt_add(tx, run, REASON_STEERING_RESTART, attempt.ordinal + 1, f) != 0
		|| PUT(tx, thread_run, run, run->thread_n, f) != 0)
		return -1;
	return effect_add(tx, run->thread_n, run->n, EFFECT_START_TURN, STR_NONE, f);
}


int run_settle(struct tx *tx, struct thread_run_row *run, struct failure *f)
{
	if (run_is_terminal(run->status))
		return 0;
	run->status = RUN_WAITING;
	if (PUT(tx, thread_run, run, run->thread_n, f) != 0
		|| attempt_end(tx, run->attempt_n, WORK_COMPLETED, WORK_WAITING, f) != 0
		|| items_end_run(tx, run->n, WORK_COMPLETED, f) != 0 || requests_cancel(tx, run->thread_n, f) != 0)
		return -1;
	return effect_add(tx, run->thread_n, run->n, EFFECT_CAPTURE, STR_NONE, f);
}

static int error_item(struct tx *tx, const struct thread_run_row *run, struct str failure, struct failure *f)
{
	return item_signal(tx, run, TYPE_ERROR, "error",
		str_printf(tx->snapshot.arena, "{\"failure\":%.*s}", STRF(failure)), f);
}

SQL(SQL_STEER, "SELECT n, payload FROM effect WHERE run_n = $1 AND type = 1 ORDER BY n LIMIT 1");
SQL(SQL_STEER_DROP, "DELETE FROM effect WHERE n = $1");

/* The first steering message that has not gone to the agent: 1, 0 none, -1. It is taken. */
static int take_steer(struct tx *tx, int64_t run_n, int64_t *message_n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct json_error error;
	json_auto_t *payload = NULL;
	int rc;

	if (query(&tx->snapshot, &q, f, SQL_STEER, "i", run_n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	payload = json_read(col_str(&q, 1), &error);
	*message_n = json_integer_value(json_object_get(payload, "messageN"));
	return tx_run(tx, f, SQL_STEER_DROP, "i", col_int(&q, 0)) < 0 ? -1 : 1;
}

/* Messages that came too late for the run are the next ones. */
static int send_steers_again(struct tx *tx, int64_t run_n, struct failure *f)
{
	int64_t message_n;
	int rc;

	while ((rc = take_steer(tx, run_n, &message_n, f)) == 1)
		if (message_send_again(tx, message_n, f) != 0)
			return -1;
	return rc;
}

/* What the end of a run means for others: deliveries, tasks nobody was told of, its own task, queues. Its own task comes after
 * the others: a child that is told of its children's results goes on. */
static int run_follow(struct tx *tx, struct thread_run_row *run, struct thread_row *thread, struct failure *f)
{
	if (thread_touch(tx, thread, f) != 0 || delivery_settle(tx, run, f) != 0 || delivery_plan_untold(tx, thread->n, f) != 0
		|| send_steers_again(tx, run->n, f) != 0 || effects_drop_run(tx, run->n, f) != 0)
		return -1;
	if (thread->relationship == RELATION_SUBAGENT && finalize(tx, thread->n, f) != 0)
		return -1;
	return schedule(tx, f);
}

int run_end(struct tx *tx, struct thread_run_row *run, enum run_status status, struct str failure, struct failure *f)
{
	bool was_queued = run->status == RUN_QUEUED;
	struct thread_row thread;

	if (run_is_terminal(run->status))
		return 0;
	run->status = status;
	run->queue_position = 0;
	run->completed_at = tx->snapshot.now;
	run->failure = failure;
	if (NEED(&tx->snapshot, thread, run->thread_n, &thread, f) != 0 || PUT(tx, thread_run, run, thread.n, f) != 0)
		return -1;
	if (!was_queued) {
		enum work_status end = work_status_of(status);

		if (work_end(tx, run, end, f) != 0 || items_end_run(tx, run->n, end, f) != 0
			|| requests_cancel(tx, thread.n, f) != 0)
			return -1;
	}
	if (failure.p != NULL && error_item(tx, run, failure, f) != 0)
		return -1;
	/* Who stops a run stops what was said into it. */
	if (status == RUN_INTERRUPTED
		&& (cohort_stop(tx, run, COHORT_STOPPED, f) != 0 || effects_drop(tx, run->n, EFFECT_STEER_TURN, f) != 0))
		return -1;
	return run_follow(tx, run, &thread, f);
}

static struct str message_body(struct arena *arena, struct str text)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kstr(&w, "message", text);
	jw_object_end(&w);
	return buf_str(&out);
}

static int preparation_refuse(struct tx *tx, int64_t thread_n, struct failure *f)
{
	struct thread_row thread;

	return NEED(&tx->snapshot, thread, thread_n, &thread, f) != 0 ? -1 : preparation_refuse_queue(tx, &thread, f);
}

int run_interrupt(struct tx *tx, struct thread_run_row *run, struct str reason, struct failure *f)
{
	struct str body = message_body(tx->snapshot.arena, reason.n == 0 ? STR("The run was interrupted.") : reason);
	struct run_attempt_row attempt = {0};

	if (run_is_terminal(run->status) || run->status == RUN_WAITING || (run->attempt_n == 0 && run->status != RUN_QUEUED && run->status != RUN_PREPARING))
		return fail(f, FAIL_THREAD_NOT_INTERRUPTIBLE, "The run is %s.", run_status_name(run->status));
	/* It would be sent again at once. */
	if (run->status == RUN_QUEUED && run->is_wake)
		return fail(f, FAIL_THREAD_NOT_INTERRUPTIBLE, "The run will tell of tasks that have ended; read their results instead.");
	if (run->status == RUN_QUEUED)
		return run_end(tx, run, RUN_CANCELLED, STR_NONE, f);
	if (run->interrupt_at != 0)
		return 0;
	run->interrupt_at = tx->snapshot.now;
	if (item_signal(tx, run, TYPE_RUN_INTERRUPT_REQUEST, "interrupt-request", body, f) != 0)
		return -1;
	/* While it is prepared there is none, and the work on its folder stops with it. */
	if (run->attempt_n != 0 && NEED(&tx->snapshot, run_attempt, run->attempt_n, &attempt, f) != 0)
		return -1;
	if (run->status == RUN_PREPARING && preparation_refuse(tx, run->thread_n, f) != 0)
		return -1;
	if (attempt.turn_n == 0) {
		if (item_signal(tx, run, TYPE_RUN_INTERRUPT_RESULT, "interrupt-result", body, f) != 0)
			return -1;
		return run_end(tx, run, RUN_INTERRUPTED, STR_NONE, f);
	}
	if (PUT(tx, thread_run, run, run->thread_n, f) != 0)
		return -1;
	return effect_add(tx, run->thread_n, run->n, EFFECT_INTERRUPT_TURN, STR_NONE, f);
}
