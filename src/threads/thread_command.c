/* t3_thread_send, t3_thread_wait, t3_thread_interrupt. */
#include "threads/commands.h"

#include "base/id.h"

/* ---- sending ---- */

static int dispatch_mode_of(struct tx *tx, const struct thread_row *thread, enum send_mode mode, enum dispatch_mode *out,
	struct failure *f)
{
	struct thread_run_row run;
	int rc;

	switch (mode) {
	case SEND_QUEUE:
		*out = DISPATCH_QUEUE;
		return 0;
	case SEND_STEER:
		*out = DISPATCH_STEER;
		return 0;
	case SEND_RESTART:
		*out = DISPATCH_RESTART;
		return 0;
	case SEND_AUTO:
		break;
	}
	rc = thread_blocking_run(&tx->snapshot, thread->n, &run, f);
	if (rc == 1)
		rc = run_can_steer(&tx->snapshot, thread, &run, f);
	*out = rc == 1 ? DISPATCH_STEER : DISPATCH_QUEUE;
	return rc < 0 ? -1 : 0;
}

SQL(SQL_ITEM_OF_MESSAGE, "SELECT body FROM turn_item WHERE id = $1");

/* As the durable timeline has it: a message without an item still waits. */
static int delivery_of(struct snapshot *s, struct str message_id, enum send_mode mode, const char **out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct json_error error;
	int rc;

	*out = "queued";
	if (query(s, &q, f, SQL_ITEM_OF_MESSAGE, "s", IDENT(s->arena, "turn-item:message", message_id)) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1) {
		json_auto_t *body = json_read(col_str(&q, 0), &error);
		struct str intent = json_member_str(body, "inputIntent");

		if (str_eq(intent, STR("turn_start")))
			*out = "started";
		else if (!str_eq(intent, STR("queued_turn")))
			*out = mode == SEND_RESTART ? "restarted" : "steered";
	}
	return rc < 0 ? -1 : 0;
}

static int answer_sent(struct tx *tx, const struct thread_row *thread, struct str message_id, enum send_mode mode,
	struct json_writer *w, struct failure *f)
{
	struct message_row message;
	struct thread_run_row run;
	const char *delivery;
	int64_t n;
	int rc = row_find(&tx->snapshot, ROW_message, message_id, &n, f);

	if (rc <= 0)
		return rc < 0 ? -1 : fail(f, FAIL_ORCHESTRATION_ERROR, "The message was accepted, but is not there.");
	if (NEED(&tx->snapshot, message, n, &message, f) != 0 || NEED(&tx->snapshot, thread_run, message.run_n, &run, f) != 0
		|| delivery_of(&tx->snapshot, message_id, mode, &delivery, f) != 0)
		return -1;
	jw_kstr(w, "threadId", thread->id);
	jw_kstr(w, "messageId", message_id);
	jw_kstr(w, "runId", ident_run(tx->snapshot.arena, thread->id, run.ordinal));
	jw_ktext(w, "status", run_status_name(run.status));
	jw_ktext(w, "delivery", delivery);
	return 0;
}

int command_send(struct tx *tx, struct asked *asked, struct str thread_id, struct str text, enum send_mode mode,
	struct json_writer *w, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct str key = asked->key.p == NULL ? random_token(arena, 16) : asked->key;
	struct asking asking;
	struct thread_row thread;
	struct command command;
	struct dispatched dispatched;
	struct dispatch message = {.text = text, .created_by = BY_AGENT, .source = FROM_MCP};
	int rc;

	if (asking_resolve(tx, asked->asker, &asking, f) != 0
		|| asking_thread(&tx->snapshot, &asking, thread_id, &thread, f) != 0)
		return -1;
	message.message_id = IDENT(arena, "message:mcp", asking.thread.namespace, STR("thread-send"), key);
	command_name(&command, arena, &asking, "thread-send", key, asked->fingerprint);
	rc = command_seen(tx, &command, f);
	if (rc < 0)
		return -1;
	if (rc == 1)
		return answer_sent(tx, &thread, message.message_id, mode, w, f);
	message.thread_n = thread.n;
	message.sender_n = asking.thread.n;
	if (modes_cover(&asking, &thread, f) != 0 || dispatch_mode_of(tx, &thread, mode, &message.mode, f) != 0
		|| message_dispatch(tx, &message, &dispatched, f) != 0 || command_accept(tx, &command, STR("{}"), f) != 0)
		return -1;
	return answer_sent(tx, &thread, message.message_id, mode, w, f);
}

/* ---- waiting ---- */

SQL(SQL_RUN_BY_ORDINAL, "SELECT n FROM thread_run WHERE thread_n = $1 AND ordinal = $2");

static int run_by_id(struct snapshot *s, const struct thread_row *thread, struct str run_id, struct thread_run_row *out,
	struct failure *f)
{
	int64_t ordinal = ident_run_ordinal(s->arena, thread->id, run_id);
	int64_t n;
	int rc = ordinal == 0 ? 0 : query_int(s, &n, f, SQL_RUN_BY_ORDINAL, "ii", thread->n, ordinal);

	if (rc == 1)
		return NEED(s, thread_run, n, out, f);
	return rc < 0 ? -1 : fail(f, FAIL_RUN_NOT_FOUND, "The thread has no run %.*s.", (int)utf8_cut(run_id, 200), run_id.p);
}

/* *out n 0: the thread has no run. */
static int waited_run(struct tx *tx, struct asked *asked, const struct thread_row *thread, struct str run_id,
	struct thread_run_row *out, struct failure *f)
{
	int rc;

	*out = (struct thread_run_row){0};
	if (asked->handle != 0)
		return NEED(&tx->snapshot, thread_run, asked->handle, out, f);
	if (run_id.p != NULL)
		return run_by_id(&tx->snapshot, thread, run_id, out, f);
	rc = thread_latest_run(&tx->snapshot, thread->n, out, f);
	if (rc == 0)
		out->n = 0;
	return rc < 0 ? -1 : 0;
}

int command_wait(struct tx *tx, struct asked *asked, struct str thread_id, struct str run_id, struct json_writer *w,
	struct failure *f)
{
	struct asking asking;
	struct thread_row thread;
	struct thread_run_row run;

	if (asking_resolve(tx, asked->asker, &asking, f) != 0
		|| asking_thread(&tx->snapshot, &asking, thread_id, &thread, f) != 0)
		return -1;
	if (thread.n == asking.thread.n)
		return fail_field(f, STR("threadId"), STR_NONE, "is the calling thread itself: it could only wait in vain");
	if (waited_run(tx, asked, &thread, run_id, &run, f) != 0)
		return -1;
	if (run.n != 0 && !run_is_terminal(run.status) && asked->may_wait) {
		asked->handle = run.n;
		asked->watched[0] = thread.n;
		asked->watched[1] = 0;
		return 1;
	}
	jw_kstr(w, "threadId", thread.id);
	text_or_null(w, "runId", run.n == 0 ? STR_NONE : ident_run(tx->snapshot.arena, thread.id, run.ordinal));
	jw_ktext(w, "status", run.n == 0 ? "idle" : run_status_name(run.status));
	jw_kbool(w, "timedOut", run.n != 0 && !run_is_terminal(run.status));
	return 0;
}

/* ---- interrupting ---- */

static int answer_interrupt(struct tx *tx, const struct thread_row *thread, const struct thread_run_row *run,
	const char *status, struct json_writer *w)
{
	jw_kstr(w, "threadId", thread->id);
	text_or_null(w, "runId", run->n == 0 ? STR_NONE : ident_run(tx->snapshot.arena, thread->id, run->ordinal));
	jw_ktext(w, "status", status);
	return 0;
}

int command_interrupt(struct tx *tx, struct asked *asked, struct str thread_id, struct str run_id, struct str reason,
	struct json_writer *w, struct failure *f)
{
	struct asking asking;
	struct thread_row thread;
	struct thread_run_row active, run = {0};
	int has_active;

	if (asking_resolve(tx, asked->asker, &asking, f) != 0
		|| asking_thread(&tx->snapshot, &asking, thread_id, &thread, f) != 0)
		return -1;
	has_active = thread_blocking_run(&tx->snapshot, thread.n, &active, f);
	if (has_active < 0 || (run_id.p != NULL && run_by_id(&tx->snapshot, &thread, run_id, &run, f) != 0))
		return -1;
	if (run.n != 0 && run_is_terminal(run.status))
		return answer_interrupt(tx, &thread, &run, run_status_name(run.status), w);
	if (run.n != 0 && (has_active == 0 || active.n != run.n))
		return fail(f, FAIL_THREAD_NOT_INTERRUPTIBLE, "The run is not the thread's active one.");
	if (has_active == 0)
		return answer_interrupt(tx, &thread, &run, "no_active_run", w);
	if (run_interrupt(tx, &active, reason, f) != 0)
		return -1;
	return answer_interrupt(tx, &thread, &active, "interrupt_requested", w);
}
