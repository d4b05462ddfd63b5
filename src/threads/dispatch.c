/* A message to a thread: it starts a run, waits in the thread's queue, or goes into the run that is active. */
#include "threads/engine.h"

SQL(SQL_LAST_ORDINAL, "SELECT max(ordinal) FROM thread_run WHERE thread_n = $1");
SQL(SQL_LAST_POSITION, "SELECT max(queue_position) FROM thread_run WHERE thread_n = $1 AND status = 1 AND status < 5");

/* {"source":{"kind":"monitor"},…} */
static bool is_monitor(struct str notification)
{
	struct json_error error;
	json_auto_t *value = notification.p == NULL ? NULL : json_read(notification, &error);

	return str_eq(json_member_str(json_object_get(value, "source"), "kind"), STR("monitor"));
}

static int message_add(struct tx *tx, const struct dispatch *in, int64_t run_n, struct message_row *out, struct failure *f)
{
	struct str id = in->message_id.p == NULL ? ident_random(tx->snapshot.arena, "message") : in->message_id;
	int64_t known;
	int rc = row_find(&tx->snapshot, ROW_message, id, &known, f);

	if (rc < 0)
		return -1;
	if (rc == 1)
		return fail(f, FAIL_ORCHESTRATION_ERROR, "A message with this id was sent already.");
	*out = (struct message_row){.id = id,
		.thread_n = in->thread_n,
		.run_n = run_n,
		.role = MESSAGE_FROM_USER,
		.text = in->text,
		.attachments = in->attachments,
		.created_by = in->created_by,
		.creation_source = in->source,
		.sender_n = in->sender_n,
		.completion = in->completion,
		.notification = in->notification,
		.is_monitor = is_monitor(in->notification),
		.created_at = tx->snapshot.now,
		.updated_at = tx->snapshot.now};
	return PUT(tx, message, out, in->thread_n, f);
}

static int run_put(struct tx *tx, const struct dispatch *in, struct thread_row *thread, struct thread_run_row *out,
	struct failure *f)
{
	struct thread_run_row run = {.thread_n = thread->n,
		.instance_id = thread->instance_id,
		.model = thread->model,
		.options = thread->options,
		.status = in->mode == DISPATCH_PREPARE ? RUN_PREPARING : RUN_QUEUED,
		.is_wake = in->completion.p != NULL,
		.requested_at = tx->snapshot.now,
		.cohort_generation = 1};
	struct message_row message;

	if (query_int(&tx->snapshot, &run.ordinal, f, SQL_LAST_ORDINAL, "i", thread->n) < 0
		|| query_int(&tx->snapshot, &run.queue_position, f, SQL_LAST_POSITION, "i", thread->n) < 0
		|| tx_next(tx, SEQ_thread_run, &run.n, f) != 0 || message_add(tx, in, run.n, &message, f) != 0)
		return -1;
	run.ordinal++;
	run.queue_position++;
	run.message_n = message.n;
	*out = run;
	return PUT(tx, thread_run, &run, thread->n, f) != 0 || thread_touch(tx, thread, f) != 0 ? -1 : 0;
}

/* The run stands in the queue until schedule() begins it, which may be at once. */
static int run_add(struct tx *tx, const struct dispatch *in, struct thread_row *thread, struct dispatched *out,
	struct failure *f)
{
	struct thread_run_row run;

	if (run_put(tx, in, thread, &run, f) != 0)
		return -1;
	*out = (struct dispatched){.run_n = run.n, .message_n = run.message_n};
	/* Whoever looks at the thread meanwhile sees what it is asked. */
	if (run.status == RUN_PREPARING)
		return run_show_message(tx, &run, INTENT_TURN_START, f);
	return schedule(tx, f);
}

int run_begin_unasked(struct tx *tx, struct thread_row *thread, struct thread_run_row *out, struct failure *f)
{
	struct dispatch in = {.thread_n = thread->n,
		.text = STR("The agent went on by itself: work in its background has ended."),
		.created_by = BY_SYSTEM,
		.source = FROM_SERVER};

	if (run_put(tx, &in, thread, out, f) != 0 || run_start(tx, out, f) != 0)
		return -1;
	return effects_drop_run(tx, out->n, f);
}

int run_is_steerable(struct snapshot *s, const struct thread_run_row *run, struct failure *f)
{
	struct run_attempt_row attempt;
	struct provider_turn_row turn;

	if (run->status != RUN_RUNNING || run->attempt_n == 0 || run->interrupt_at != 0)
		return 0;
	if (NEED(s, run_attempt, run->attempt_n, &attempt, f) != 0)
		return -1;
	if (attempt.turn_n == 0)
		return 0;
	if (NEED(s, provider_turn, attempt.turn_n, &turn, f) != 0)
		return -1;
	return turn.status == WORK_RUNNING;
}

SQL(SQL_LIVE_CAPS, "SELECT capabilities FROM provider_session WHERE thread_n = $1 AND status < 4 ORDER BY n DESC LIMIT 1");

static int live_caps(struct snapshot *s, int64_t thread_n, struct agent_caps *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct json_error error;
	int rc;

	*out = (struct agent_caps){0};
	if (query(s, &q, f, SQL_LIVE_CAPS, "i", thread_n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1) {
		json_auto_t *stored = json_read(col_str(&q, 0), &error);

		rc = agent_caps_read(out, stored, f);
	}
	return rc < 0 ? -1 : 0;
}

int run_can_steer(struct snapshot *s, const struct thread_row *thread, const struct thread_run_row *run, struct failure *f)
{
	struct agent_caps caps;
	int rc = run_is_steerable(s, run, f);

	if (rc <= 0)
		return rc;
	if (live_caps(s, thread->n, &caps, f) != 0)
		return -1;
	return caps.supportsActiveSteering || (caps.supportsInterrupt && caps.supportsSteeringByInterruptRestart);
}

static int steer_item(struct tx *tx, const struct thread_run_row *run, const struct message_row *message, struct failure *f)
{
	struct turn_item_row item = {.id = IDENT(tx->snapshot.arena, "turn-item:message", message->id),
		.thread_n = run->thread_n,
		.run_n = run->n,
		.attempt_n = run->attempt_n,
		.type = TYPE_USER_MESSAGE,
		.status = WORK_COMPLETED,
		.message_n = message->n,
		.body = STR("{\"inputIntent\":\"steer\"}"),
		.started_at = tx->snapshot.now,
		.completed_at = tx->snapshot.now};

	return item_add(tx, &item, f);
}

static int steer(struct tx *tx, const struct dispatch *in, struct thread_row *thread, struct thread_run_row *run,
	struct dispatched *out, struct failure *f)
{
	struct message_row message;
	struct agent_caps caps;
	bool restarts = in->mode == DISPATCH_RESTART;
	int rc = run_is_steerable(&tx->snapshot, run, f);

	if (rc < 0 || live_caps(&tx->snapshot, thread->n, &caps, f) != 0)
		return -1;
	if (rc == 0)
		return fail(f, FAIL_THREAD_NOT_SENDABLE, "The thread has no run that takes a message now.");
	if (!restarts && !caps.supportsActiveSteering)
		restarts = true;
	if (restarts && !(caps.supportsInterrupt && caps.supportsSteeringByInterruptRestart))
		return fail(f, FAIL_THREAD_NOT_SENDABLE, "The thread's agent cannot take a message while it works.");
	if (message_add(tx, in, run->n, &message, f) != 0 || steer_item(tx, run, &message, f) != 0)
		return -1;
	*out = (struct dispatched){.run_n = run->n, .message_n = message.n};
	if (restarts)
		return run_restart(tx, run, message.n, f);
	if (effect_add(tx, thread->n, run->n, EFFECT_STEER_TURN,
		    str_printf(tx->snapshot.arena, "{\"messageN\":%lld}", (long long)message.n), f)
		!= 0)
		return -1;
	return thread_touch(tx, thread, f);
}

int message_dispatch(struct tx *tx, const struct dispatch *in, struct dispatched *out, struct failure *f)
{
	struct thread_row thread;
	struct thread_run_row run;
	int rc = thread_get(&tx->snapshot, in->thread_n, &thread, f);

	if (rc <= 0)
		return rc < 0 ? -1 : fail(f, FAIL_THREAD_NOT_FOUND, "There is no such thread.");
	if (thread.archived_at != 0)
		return fail(f, FAIL_THREAD_NOT_SENDABLE, "The thread is archived.");
	if (thread.kind == THREAD_EXTERNAL)
		return fail(f, FAIL_THREAD_NOT_SENDABLE, "The thread belongs to an agent that dais did not start.");
	if (in->mode != DISPATCH_PREPARE && thread_is_homeless(&thread)) {
		rc = thread_is_preparing(&tx->snapshot, thread.n, f);
		if (rc <= 0)
			return rc < 0 ? -1 : fail(f, FAIL_THREAD_NOT_SENDABLE, "The thread's folder could not be made: launch another one.");
	}
	if (in->mode == DISPATCH_START || in->mode == DISPATCH_QUEUE || in->mode == DISPATCH_PREPARE)
		return run_add(tx, in, &thread, out, f);
	rc = thread_blocking_run(&tx->snapshot, thread.n, &run, f);
	if (rc <= 0)
		return rc < 0 ? -1 : fail(f, FAIL_THREAD_NOT_SENDABLE, "The thread has no active run.");
	return steer(tx, in, &thread, &run, out, f);
}

int message_send_again(struct tx *tx, int64_t message_n, struct failure *f)
{
	struct dispatch again = {.mode = DISPATCH_QUEUE};
	struct dispatched dispatched;
	struct message_row message;
	struct thread_row thread;
	int rc;

	if (NEED(&tx->snapshot, message, message_n, &message, f) != 0)
		return -1;
	rc = thread_get(&tx->snapshot, message.thread_n, &thread, f);
	if (rc <= 0 || thread.archived_at != 0)
		return rc < 0 ? -1 : 0;
	again.thread_n = message.thread_n;
	again.text = message.text;
	again.attachments = message.attachments;
	again.created_by = (enum creator)message.created_by;
	again.source = (enum creation_source)message.creation_source;
	again.sender_n = message.sender_n;
	again.notification = message.notification;
	return message_dispatch(tx, &again, &dispatched, f);
}
