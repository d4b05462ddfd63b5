/* What an agent said, put on record: events in the order they came, with the place up to which it was heard. */
#include "threads/engine.h"

#include "base/limits.h"

SQL(SQL_CONVERSATION, "SELECT n FROM provider_thread WHERE session_n = $1 ORDER BY n DESC LIMIT 1");
SQL(SQL_NEWEST_TURN, "SELECT n FROM provider_turn WHERE provider_thread_n = $1 ORDER BY ordinal DESC LIMIT 1");

static int read_turn(struct snapshot *s, struct hearing *h, struct failure *f)
{
	int64_t n;
	int rc = query_int(s, &n, f, SQL_NEWEST_TURN, "i", h->conversation.n);

	if (rc <= 0)
		return rc;
	if (NEED(s, provider_turn, n, &h->turn, f) != 0 || NEED(s, run_attempt, h->turn.attempt_n, &h->attempt, f) != 0
		|| NEED(s, thread_run, h->attempt.run_n, &h->run, f) != 0)
		return -1;
	h->is_current = h->run.attempt_n == h->attempt.n && !run_is_terminal(h->run.status);
	return 0;
}

int hearing_read(struct snapshot *s, int64_t session_n, struct hearing *h, struct failure *f)
{
	int64_t n;
	int rc;

	*h = (struct hearing){0};
	if (NEED(s, provider_session, session_n, &h->session, f) != 0 || NEED(s, thread, h->session.thread_n, &h->thread, f) != 0)
		return -1;
	rc = query_int(s, &n, f, SQL_CONVERSATION, "i", session_n);
	if (rc <= 0)
		return rc;
	return NEED(s, provider_thread, n, &h->conversation, f) != 0 ? -1 : read_turn(s, h, f);
}

static int put_session(struct tx *tx, struct hearing *h, enum session_status status, struct failure *f)
{
	h->session.status = status;
	h->session.updated_at = tx->snapshot.now;
	return PUT(tx, provider_session, &h->session, h->thread.n, f);
}

/* ---- the session ---- */

static struct str caps_json(struct arena *arena, const struct agent_caps *caps)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	agent_caps_write(caps, &w);
	return buf_str(&out);
}

/* The conversation goes on in this session, or a new one begins. */
static int set_conversation(struct tx *tx, struct hearing *h, const struct agent_event *event, struct failure *f)
{
	struct provider_thread_row *c = &h->conversation;

	*c = (struct provider_thread_row){0};
	if (event->is_resumed && h->thread.provider_thread_n != 0
		&& NEED(&tx->snapshot, provider_thread, h->thread.provider_thread_n, c, f) != 0)
		return -1;
	if (c->n == 0)
		*c = (struct provider_thread_row){.thread_n = h->thread.n,
			.driver = h->session.driver,
			.instance_id = h->session.instance_id,
			.cwd = h->session.cwd,
			.background = STR("[]"),
			.created_at = tx->snapshot.now};
	c->session_n = h->session.n;
	c->native_id = event->native;
	c->strength = event->caps == NULL ? QUALITY_NONE : event->caps->nativeThreadIds;
	c->status = PROVIDER_THREAD_IDLE;
	c->updated_at = tx->snapshot.now;
	if (PUT(tx, provider_thread, c, h->thread.n, f) != 0)
		return -1;
	if (h->thread.provider_thread_n == c->n)
		return 0;
	h->thread.provider_thread_n = c->n;
	return thread_touch(tx, &h->thread, f);
}

static int opened(struct tx *tx, struct hearing *h, const struct agent_event *event, struct failure *f)
{
	if (event->caps != NULL)
		h->session.capabilities = caps_json(tx->snapshot.arena, event->caps);
	h->session.program_version = event->program_version;
	if (set_conversation(tx, h, event, f) != 0)
		return -1;
	return put_session(tx, h, SESSION_READY, f);
}

/* ---- the turn ---- */

SQL(SQL_LAST_TURN, "SELECT max(ordinal) FROM provider_turn WHERE provider_thread_n = $1");

static int begin_turn(struct tx *tx, struct hearing *h, int64_t attempt_n, struct failure *f)
{
	h->turn = (struct provider_turn_row){.provider_thread_n = h->conversation.n,
		.thread_n = h->thread.n,
		.attempt_n = attempt_n,
		.status = WORK_PENDING};
	if (NEED(&tx->snapshot, run_attempt, attempt_n, &h->attempt, f) != 0
		|| NEED(&tx->snapshot, thread_run, h->attempt.run_n, &h->run, f) != 0
		|| query_int(&tx->snapshot, &h->turn.ordinal, f, SQL_LAST_TURN, "i", h->conversation.n) < 0)
		return -1;
	h->turn.ordinal++;
	if (PUT(tx, provider_turn, &h->turn, h->thread.n, f) != 0)
		return -1;
	h->attempt.turn_n = h->turn.n;
	h->run.provider_thread_n = h->conversation.n;
	h->is_current = true;
	if (PUT(tx, run_attempt, &h->attempt, h->thread.n, f) != 0 || PUT(tx, thread_run, &h->run, h->thread.n, f) != 0)
		return -1;
	return put_session(tx, h, SESSION_RUNNING, f);
}

/* A turn that no order began becomes a run of its own, so that what it does and says is seen, waited for and can be
 * interrupted. When another run waits for its own turn, it stays part of the last one: a thread has one run at a time. */
static int begin_unasked(struct tx *tx, struct hearing *h, struct failure *f)
{
	struct thread_run_row run;
	int rc;

	if (h->conversation.n == 0 || (h->turn.n != 0 && !work_is_terminal(h->turn.status)))
		return 0;
	rc = thread_blocking_run(&tx->snapshot, h->thread.n, &run, f);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	return run_begin_unasked(tx, &h->thread, &run, f) != 0 ? -1 : begin_turn(tx, h, run.attempt_n, f);
}

static int turn_started(struct tx *tx, struct hearing *h, const struct agent_event *event, struct failure *f)
{
	struct node_row node;

	if (event->is_unasked && begin_unasked(tx, h, f) != 0)
		return -1;
	if (h->turn.n == 0 || h->turn.status != WORK_PENDING)
		return 0;
	h->turn.status = WORK_RUNNING;
	h->turn.native_id = event->native;
	h->turn.started_at = tx->snapshot.now;
	if (PUT(tx, provider_turn, &h->turn, h->thread.n, f) != 0)
		return -1;
	if (!h->is_current)
		return 0;
	h->attempt.status = WORK_RUNNING;
	h->attempt.started_at = tx->snapshot.now;
	h->run.status = RUN_RUNNING;
	if (h->run.started_at == 0)
		h->run.started_at = tx->snapshot.now;
	if (NEED(&tx->snapshot, node, h->attempt.root_node_n, &node, f) != 0)
		return -1;
	node.status = WORK_RUNNING;
	node.started_at = tx->snapshot.now;
	if (PUT(tx, node, &node, h->thread.n, f) != 0 || PUT(tx, run_attempt, &h->attempt, h->thread.n, f) != 0
		|| PUT(tx, thread_run, &h->run, h->thread.n, f) != 0)
		return -1;
	return thread_touch(tx, &h->thread, f);
}

static enum run_status run_status_of(enum agent_status status)
{
	switch (status) {
	case AGENT_COMPLETED:
		return RUN_COMPLETED;
	case AGENT_INTERRUPTED:
		return RUN_INTERRUPTED;
	case AGENT_CANCELLED:
		return RUN_CANCELLED;
	default:
		return RUN_FAILED;
	}
}

static int end_run(struct tx *tx, struct hearing *h, enum run_status status, struct str failure, struct failure *f)
{
	if (!h->is_current)
		return 0;
	h->is_current = false;
	if (h->run.interrupt_at != 0 && status == RUN_INTERRUPTED
		&& item_signal(tx, &h->run, TYPE_RUN_INTERRUPT_RESULT, "interrupt-result", STR("{\"message\":\"The agent stopped.\"}"), f)
			!= 0)
		return -1;
	return status == RUN_COMPLETED ? run_settle(tx, &h->run, f) : run_end(tx, &h->run, status, failure, f);
}

static int turn_ended(struct tx *tx, struct hearing *h, const struct agent_event *event, struct failure *f)
{
	enum run_status status = h->is_lost ? RUN_CANCELLED : run_status_of(event->status);
	/* What is lost is nobody's failure, but why it is must be told all the same. */
	struct str failure = status == RUN_FAILED || (h->is_lost && event->failure.message.n > 0) ? failure_json(tx->snapshot.arena, &event->failure) : STR_NONE;

	if (h->turn.n == 0 || work_is_terminal(h->turn.status))
		return 0;
	h->turn.status = work_status_of(status);
	h->turn.completed_at = tx->snapshot.now;
	h->conversation.status = event->is_broken ? PROVIDER_THREAD_ERROR : PROVIDER_THREAD_IDLE;
	h->conversation.updated_at = tx->snapshot.now;
	if (h->conversation.first_run == 0)
		h->conversation.first_run = h->run.ordinal;
	h->conversation.last_run = h->run.ordinal;
	if (event->is_broken) {
		h->thread.provider_thread_n = 0;
		if (effect_add(tx, h->thread.n, 0, EFFECT_CLOSE_SESSION, STR_NONE, f) != 0)
			return -1;
	}
	if (PUT(tx, provider_turn, &h->turn, h->thread.n, f) != 0
		|| PUT(tx, provider_thread, &h->conversation, h->thread.n, f) != 0
		|| (event->is_broken && thread_touch(tx, &h->thread, f) != 0)
		|| (h->session.status < SESSION_STOPPED && put_session(tx, h, SESSION_READY, f) != 0))
		return -1;
	return end_run(tx, h, status, failure, f);
}

static int fail_turn(struct tx *tx, struct hearing *h, const struct agent_failure *failure, struct failure *f)
{
	struct agent_event event = {.kind = EVENT_TURN_ENDED, .status = AGENT_FAILED, .failure = *failure};

	return turn_ended(tx, h, &event, f);
}

/* It has done a turn already: its end says nothing about whether the program can work. */
static bool has_worked(const struct hearing *h)
{
	return h->turn.n != 0 && work_is_terminal(h->turn.status) && h->turn.completed_at >= h->session.created_at;
}

/* The session is of no use: neither for the turn that it has, nor for the run that waits for it, unless another session can
 * be hoped to do better. */
static int broken(struct tx *tx, struct hearing *h, const struct agent_event *event, struct failure *f)
{
	struct thread_run_row run;
	int rc;

	h->session.last_error = failure_json(tx->snapshot.arena, &event->failure);
	if (put_session(tx, h, SESSION_ERROR, f) != 0)
		return -1;
	if (h->turn.n != 0 && !work_is_terminal(h->turn.status))
		return fail_turn(tx, h, &event->failure, f);
	if (has_worked(h))
		return 0;
	rc = thread_blocking_run(&tx->snapshot, h->thread.n, &run, f);
	if (rc != 1)
		return rc;
	return h->is_lost ? run_end(tx, &run, RUN_CANCELLED, STR_NONE, f)
			  : run_end(tx, &run, RUN_FAILED, h->session.last_error, f);
}

static int usage(struct tx *tx, struct hearing *h, const struct agent_event *event, struct failure *f)
{
	const struct agent_usage *u = &event->usage;
	struct json_writer w;
	struct buf out;

	if (!h->is_current)
		return 0;
	buf_init(&out, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	if (u->input >= 0)
		jw_kint(&w, "inputTokens", u->input);
	if (u->cached >= 0)
		jw_kint(&w, "cachedTokens", u->cached);
	if (u->output >= 0)
		jw_kint(&w, "outputTokens", u->output);
	if (u->reasoning >= 0)
		jw_kint(&w, "reasoningTokens", u->reasoning);
	if (u->cost_usd >= 0) {
		jw_key(&w, "costUsd");
		jw_real(&w, u->cost_usd);
	}
	if (u->context_used >= 0)
		jw_kint(&w, "contextUsed", u->context_used);
	if (u->context_size >= 0)
		jw_kint(&w, "contextSize", u->context_size);
	jw_object_end(&w);
	h->run.usage = buf_str(&out);
	return PUT(tx, thread_run, &h->run, h->thread.n, f);
}

/* ---- questions ---- */

SQL(SQL_OPEN_REQUEST, "SELECT n FROM runtime_request WHERE thread_n = $1 AND status = 0 LIMIT 1");

/* Waiting as long as one question is open. */
static int put_session_at_work(struct tx *tx, struct hearing *h, struct failure *f)
{
	int64_t n;
	int rc;

	if (h->session.status >= SESSION_STOPPED)
		return 0;
	rc = query_int(&tx->snapshot, &n, f, SQL_OPEN_REQUEST, "i", h->thread.n);
	if (rc < 0)
		return -1;
	if (rc == 1)
		return put_session(tx, h, SESSION_WAITING, f);
	return put_session(tx, h, h->turn.n != 0 && !work_is_terminal(h->turn.status) ? SESSION_RUNNING : SESSION_READY, f);
}

SQL(SQL_REQUEST_BY_KEY, "SELECT n FROM runtime_request WHERE session_n = $1 AND native_key = $2 ORDER BY n DESC LIMIT 1");

static int request_item(struct tx *tx, struct hearing *h, const struct runtime_request_row *request, int64_t *out,
	struct failure *f)
{
	struct turn_item_row item = {.id = IDENT(tx->snapshot.arena, "turn-item:runtime-request", request->id),
		.thread_n = h->thread.n,
		.run_n = h->run.n,
		.attempt_n = h->attempt.n,
		.type = request->kind == REQUEST_USER_INPUT ? TYPE_USER_INPUT_REQUEST : TYPE_APPROVAL_REQUEST,
		.status = WORK_WAITING,
		.body = request->prompt,
		.started_at = tx->snapshot.now};

	if (item_add(tx, &item, f) != 0)
		return -1;
	*out = item.n;
	return 0;
}

static int requested(struct tx *tx, struct hearing *h, const struct agent_event *event, struct failure *f)
{
	struct runtime_request_row request = {.id = ident_random(tx->snapshot.arena, "runtime-request"),
		.thread_n = h->thread.n,
		.run_n = h->run.n,
		.session_n = h->session.n,
		.native_key = event->request.key,
		.kind = event->request.kind,
		.status = REQUEST_IS_PENDING,
		.is_live = 1,
		.prompt = event->request.prompt,
		.created_at = tx->snapshot.now};

	/* Of a run that has ended, or of an attempt that was given up: nobody would answer. */
	if (!h->is_current)
		return 0;
	if (request_item(tx, h, &request, &request.item_n, f) != 0
		|| PUT(tx, runtime_request, &request, h->thread.n, f) != 0)
		return -1;
	return put_session_at_work(tx, h, f);
}

static int request_ended(struct tx *tx, struct hearing *h, const struct agent_event *event, struct failure *f)
{
	struct runtime_request_row request;
	struct turn_item_row item;
	int64_t n;
	int rc = query_int(&tx->snapshot, &n, f, SQL_REQUEST_BY_KEY, "is", h->session.n, event->key);

	if (rc <= 0)
		return rc;
	if (NEED(&tx->snapshot, runtime_request, n, &request, f) != 0)
		return -1;
	if (request.status == REQUEST_IS_PENDING) {
		request.status = event->status == AGENT_COMPLETED ? REQUEST_IS_RESOLVED : REQUEST_IS_CANCELLED;
		request.is_live = 0;
		request.resolved_at = tx->snapshot.now;
		if (PUT(tx, runtime_request, &request, h->thread.n, f) != 0)
			return -1;
	}
	if (NEED(&tx->snapshot, turn_item, request.item_n, &item, f) != 0)
		return -1;
	if (!work_is_terminal(item.status)
		&& item_end(tx, &item, request.status == REQUEST_IS_RESOLVED ? WORK_COMPLETED : WORK_CANCELLED, f) != 0)
		return -1;
	return put_session_at_work(tx, h, f);
}

/* ---- the rest ---- */

static int background(struct tx *tx, struct hearing *h, const struct agent_event *event, struct failure *f)
{
	if (h->conversation.n == 0)
		return 0;
	h->conversation.background = event->body;
	h->conversation.updated_at = tx->snapshot.now;
	if (PUT(tx, provider_thread, &h->conversation, h->thread.n, f) != 0)
		return -1;
	return h->thread.relationship == RELATION_SUBAGENT ? finalize(tx, h->thread.n, f) : 0;
}

/* The message of a turn: there is no turn then. A steering message waits for the next one. */
static int refused(struct tx *tx, struct hearing *h, const struct agent_event *event, struct failure *f)
{
	int64_t n;
	int rc = row_find(&tx->snapshot, ROW_message, event->key, &n, f);

	if (rc <= 0)
		return rc;
	if (h->is_current && n == h->run.message_n && h->turn.status == WORK_PENDING)
		return fail_turn(tx, h, &event->failure, f);
	return message_send_again(tx, n, f);
}

static int ingest_event(struct tx *tx, struct hearing *h, const struct agent_event *event, const struct agent_event **next,
	struct failure *f)
{
	switch (event->kind) {
	case EVENT_OPENED:
		return opened(tx, h, event, f);
	case EVENT_OPEN_FAILED:
	case EVENT_BROKEN:
		return broken(tx, h, event, f);
	case EVENT_TURN_STARTED:
		return turn_started(tx, h, event, f);
	case EVENT_ITEM:
		return ingest_item(tx, h, event, next, f);
	case EVENT_REQUEST:
		return requested(tx, h, event, f);
	case EVENT_REQUEST_ENDED:
		return request_ended(tx, h, event, f);
	case EVENT_USAGE:
		return usage(tx, h, event, f);
	case EVENT_BACKGROUND:
		return background(tx, h, event, f);
	case EVENT_ORDER_REFUSED:
		return refused(tx, h, event, f);
	case EVENT_TURN_ENDED:
		return turn_ended(tx, h, event, f);
	case EVENT_TITLE:
	case EVENT_MODE:
	case EVENT_STEERED:
	case EVENT_MODELS:
	case EVENT_SELECTED:
		return 0;
	}
	return 0;
}

/* ---- the place up to which it was heard ---- */

SQL(SQL_EFFECT_DONE, "DELETE FROM effect WHERE n = $1");
SQL(SQL_STATE, "SELECT line_seq FROM session_state WHERE session_n = $1");
SQL(SQL_STATE_PUT,
	"UPDATE session_state SET spool_offset = CASE WHEN $1 < 0 THEN spool_offset ELSE $1 END, line_seq = $2,"
	" driver_state = $3 WHERE session_n = $4");
SQL(SQL_LINE_ADD, "INSERT INTO session_line (session_n, seq, has_secret, text) VALUES ($1, $2, $3, $4)");
SQL(SQL_LINES_CONFIRMED, "DELETE FROM session_line WHERE session_n = $1 AND seq <= $2");
SQL(SQL_LINES_DROP, "DELETE FROM session_line WHERE session_n = $1");
SQL(SQL_STATE_DROP, "DELETE FROM session_state WHERE session_n = $1");

static int keep_place(struct tx *tx, struct ingest *in, struct failure *f)
{
	int64_t seq = 0;

	if (in->is_over)
		return tx_run(tx, f, SQL_LINES_DROP, "i", in->session_n) < 0
				|| tx_run(tx, f, SQL_STATE_DROP, "i", in->session_n) < 0
			? -1
			: 0;
	if (query_int(&tx->snapshot, &seq, f, SQL_STATE, "i", in->session_n) < 0)
		return -1;
	in->first_line_seq = seq + 1;
	for (const struct agent_line *line = in->lines; line != NULL; line = line->next)
		if (tx_run(tx, f, SQL_LINE_ADD, "iiis", in->session_n, ++seq, (int64_t)line->has_secret, line->text) < 0)
			return -1;
	if (tx_run(tx, f, SQL_STATE_PUT, "iisi", in->spool_offset, seq, in->driver_state, in->session_n) < 0)
		return -1;
	return in->confirmed > 0 && tx_run(tx, f, SQL_LINES_CONFIRMED, "ii", in->session_n, in->confirmed) < 0 ? -1 : 0;
}

/* The process is gone. Its driver has said what that meant for the turn; if it has not, the turn does not go on either. */
static int session_over(struct tx *tx, struct hearing *h, struct failure *f)
{
	static const struct agent_failure gone = {
		.class = CLASS_TRANSPORT, .message = {"The agent's process ended.", 26}, .is_retryable = YES_UNKNOWN};

	if (h->turn.n != 0 && !work_is_terminal(h->turn.status) && fail_turn(tx, h, &gone, f) != 0)
		return -1;
	if (h->session.status < SESSION_STOPPED && put_session(tx, h, SESSION_STOPPED, f) != 0)
		return -1;
	if (h->conversation.n == 0 || h->conversation.status > PROVIDER_THREAD_ACTIVE)
		return 0;
	h->conversation.status = PROVIDER_THREAD_NOT_LOADED;
	h->conversation.background = STR("[]");
	h->conversation.updated_at = tx->snapshot.now;
	if (PUT(tx, provider_thread, &h->conversation, h->thread.n, f) != 0)
		return -1;
	return h->thread.relationship == RELATION_SUBAGENT ? finalize(tx, h->thread.n, f) : 0;
}

int ingest(struct tx *tx, struct ingest *in, struct failure *f)
{
	const struct agent_event *next;
	struct hearing h;

	if (in->effect_n != 0) {
		int64_t done = tx_run(tx, f, SQL_EFFECT_DONE, "i", in->effect_n);

		if (done <= 0)
			return done < 0 ? -1 : fail(f, FAIL_DUPLICATE, "The order was called off.");
	}
	if (hearing_read(&tx->snapshot, in->session_n, &h, f) != 0)
		return -1;
	h.is_lost = in->is_lost;
	if (in->begins_attempt_n != 0 && begin_turn(tx, &h, in->begins_attempt_n, f) != 0)
		return -1;
	for (const struct agent_event *event = in->events; event != NULL; event = next) {
		next = event->next;
		if (ingest_event(tx, &h, event, &next, f) != 0)
			return -1;
	}
	if (in->is_over && session_over(tx, &h, f) != 0)
		return -1;
	return keep_place(tx, in, f);
}
