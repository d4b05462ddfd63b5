/* One live session: what the program writes goes through its driver into the store, and what the driver wants to say
 * goes out after it was stored.
 *
 * At any time one batch of a session is on its way to the store, and another one collects what was heard meanwhile, so
 * that many small pieces of text become few commits. */
#include "threads/loop.h"

#include "base/limits.h"
#include "base/log.h"
#include "threads/places.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAR_BYTES (256 * 1024) /* of one step: parsing them takes far less than 20 ms */
#define TEXT_WAIT_MS 100
#define TEXT_BYTES 2048
#define RETRY_MS 200

/* ---- the list ---- */

struct session *session_of_thread(struct threads *threads, int64_t thread_n)
{
	for (struct session *session = threads->sessions; session != NULL; session = session->next)
		if (session->thread_n == thread_n)
			return session;
	return NULL;
}

static void count_sessions(struct threads *threads, int change)
{
	pthread_mutex_lock(&threads->lock);
	threads->session_count = (size_t)((int64_t)threads->session_count + change);
	pthread_cond_broadcast(&threads->changed);
	pthread_mutex_unlock(&threads->lock);
}

struct session *session_create(struct threads *threads, const struct provider_session_row *row,
	const struct provider_instance *instance)
{
	struct session *session = calloc(1, sizeof(*session));
	struct arena *life = arena_create();

	if (session == NULL)
		abort();
	*session = (struct session){.next = threads->sessions,
		.threads = threads,
		.n = row->n,
		.thread_n = row->thread_n,
		.instance = instance,
		.row = *row,
		.life = life};
	session->row.id = str_dup(life, row->id);
	session->row.driver = str_dup(life, row->driver);
	session->row.instance_id = str_dup(life, row->instance_id);
	session->row.cwd = str_dup(life, row->cwd);
	session->row.model = str_dup(life, row->model);
	session->row.options = str_dup(life, row->options);
	session->directory = arena_printf(life, "%s/%lld", threads->directory, (long long)row->n);
	session->idle_since = session->created_at = session->heard_at = session->turn_at = loop_now(threads);
	threads->sessions = session;
	count_sessions(threads, 1);
	return session;
}

void session_destroy(struct session *session)
{
	struct threads *threads = session->threads;
	struct session **at = &threads->sessions;

	while (*at != session)
		at = &(*at)->next;
	*at = session->next;
	host_release(session->host);
	if (session->agent != NULL)
		session->agent->driver->destroy(session->agent);
	batch_destroy(session->open);
	batch_destroy(session->saving);
	arena_destroy(session->life);
	free(session);
	count_sessions(threads, -1);
}

static void leave_recovery(struct session *session)
{
	struct threads *threads = session->threads;

	if (!session->is_recovering)
		return;
	session->is_recovering = false;
	if (--threads->recovering == 0)
		loop_recovered(threads);
}

/* ---- what is heard ---- */

static struct batch *open_batch(struct session *session)
{
	if (session->open == NULL) {
		session->open = batch_create(session->threads, session);
		session->open->in.session_n = session->n;
		session->open->in.spool_offset = -1;
	}
	return session->open;
}

/* Only text that goes on may wait for more of it. */
static void look_at_events(struct batch *batch)
{
	batch->is_text_only = batch->out.lines == NULL && !batch->out.ends_stdin && !batch->out.kills;
	batch->text_bytes = 0;
	for (struct agent_event *event = batch->out.events; event != NULL; event = event->next) {
		/* Here and not on the writer's thread: an output may be long. */
		if (event->item.body.p != NULL)
			event->item.body = clip_body(batch->arena, event->item.body);
		if (event->kind == EVENT_ITEM && event->item.status == AGENT_RUNNING && event->item.delta.p != NULL
			&& event->item.body.p == NULL)
			batch->text_bytes += event->item.delta.n;
		else
			batch->is_text_only = false;
	}
}

static void hear_lines(struct session *session)
{
	struct batch *batch = NULL;
	int64_t start = session->offset;
	struct str line;
	int64_t end;

	/* What it says after we have given it up does not change why it ends. */
	if (session->starts_over || session->why != NULL) {
		while (session->host != NULL && host_next_line(session->host, &line, &end) == 1)
			host_consumed(session->host, end);
		return;
	}
	if (session->saving != NULL && session->open != NULL && session->open->heard >= HEAR_BYTES)
		return;
	while (session->offset - start < HEAR_BYTES && session->host != NULL
		&& host_next_line(session->host, &line, &end) == 1) {
		batch = open_batch(session);
		session->agent->driver->line(session->agent, line, loop_now(session->threads), &batch->out);
		session->offset = end;
	}
	if (batch == NULL)
		return;
	batch->in.spool_offset = session->offset;
	batch->heard += session->offset - start;
	session->heard_at = loop_now(session->threads);
	/* More may be there than one step takes. */
	if (session->offset - start >= HEAR_BYTES)
		threads_wake(session->threads);
}

static void hear_exit(struct session *session)
{
	struct batch *batch;

	if (!session->has_exited || session->has_heard_exit)
		return;
	batch = open_batch(session);
	if (!session->starts_over)
		session->agent->driver->exited(session->agent, &session->exit, &batch->out);
	batch->in.is_over = true;
	batch->in.is_lost = session->is_lost;
	session->has_heard_exit = true;
}

static void begin(struct session *session)
{
	struct batch *batch;

	if (session->is_begun || !session->is_host_ready || session->has_exited || session->starts_over)
		return;
	batch = open_batch(session);
	session->agent->driver->begin(session->agent, loop_now(session->threads), &batch->out);
	session->is_begun = true;
}

/* ---- storing ---- */

static int run_ingest(struct tx *tx, void *arg, struct failure *f)
{
	return ingest(tx, arg, f);
}

static void saved(struct batch *batch);

static void save(struct session *session)
{
	struct batch *batch = session->open;
	struct json_writer w;
	struct buf state;

	session->open = NULL;
	session->saving = batch;
	buf_init(&state, batch->arena, SIZE_MAX);
	json_writer_init(&w, &state);
	session->agent->driver->save(session->agent, &w);
	batch->in.driver_state = buf_str(&state);
	batch->in.events = batch->out.events;
	batch->in.lines = batch->out.lines;
	batch->in.confirmed = session->confirmed;
	session->confirmed_stored = session->confirmed;
	batch_submit(batch, run_ingest, &batch->in, saved);
}

static bool may_wait(const struct session *session, int64_t now)
{
	const struct batch *batch = session->open;

	return batch->is_text_only && batch->text_bytes < TEXT_BYTES && now < batch->opened_at + TEXT_WAIT_MS
		&& batch->in.effect_n == 0 && !batch->in.is_over;
}

/* ---- after it was stored ---- */

static void follow_events(struct session *session, const struct batch *batch)
{
	for (const struct agent_event *event = batch->out.events; event != NULL; event = event->next) {
		switch (event->kind) {
		case EVENT_OPENED:
			session->is_opened = true;
			break;
		case EVENT_OPEN_FAILED:
		case EVENT_BROKEN:
			session_end(session);
			break;
		case EVENT_TURN_STARTED:
			/* An unasked one too: whatever is ordered waits for its end. */
			session->has_turn = true;
			break;
		case EVENT_TURN_ENDED:
			session->has_turn = false;
			session->interrupt_due = 0;
			session->idle_since = loop_now(session->threads);
			break;
		default:
			break;
		}
	}
}

static void send_lines(struct session *session, const struct batch *batch)
{
	int64_t seq = batch->in.first_line_seq;

	if (session->host == NULL || session->has_exited)
		return;
	/* What the host does not take now it gets when it answers again: the lines are stored. */
	for (const struct agent_line *line = batch->out.lines; line != NULL; line = line->next, seq++) {
		AUTO(arena_destroyp) struct arena *arena = arena_create();
		struct failure f;

		failure_init(&f, arena);
		if (host_write(session->host, seq, line->text, line->has_secret, &f) != 0)
			log_line(LOG_WARN, "threads", "an agent does not read", {"session", LOG_STRV(session->row.id)});
	}
	if (batch->in.spool_offset >= 0)
		host_consumed(session->host, batch->in.spool_offset);
	if (batch->out.ends_stdin)
		host_close_stdin(session->host);
	if (batch->out.kills)
		session_end(session);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
	(void)info;
	(void)kind;
	(void)place;
	(void)remove(path);
	return 0;
}

/* The files of the host, and what the agent left in its temporary folder. */
static void remove_directory(const char *directory)
{
	(void)nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* The driver's memory has gone ahead of the store: back to what is stored. */
SQL(SQL_STATE_GET, "SELECT driver_state FROM session_state WHERE session_n = $1");

static int load_state(struct session *session, struct failure *f)
{
	struct snapshot s;
	struct str text = STR_NONE;
	struct query q;
	int rc;

	if (snapshot_begin(session->threads->store, f->arena, &s, f) != 0)
		return -1;
	rc = query(&s, &q, f, SQL_STATE_GET, "i", session->n);
	if (rc == 0) {
		rc = query_next(&q, f) == 1 ? 0 : -1;
		if (rc == 0)
			text = col_str(&q, 0);
		query_end(&q);
	}
	snapshot_end(&s);
	if (rc == 0) {
		struct json_error error;
		json_auto_t *state = json_read(text, &error);

		rc = session->agent->driver->load(session->agent, state, f);
	}
	return rc;
}

static void called_off(struct session *session, struct batch *batch)
{
	session->saving = NULL;
	if (load_state(session, &batch->f) != 0) {
		log_line(LOG_ERROR, "threads", "a session cannot go on", {"session", LOG_STRV(session->row.id)});
		session_end(session);
	}
	batch_destroy(batch);
	session_advance(session);
}

static void not_saved(struct session *session, struct batch *batch)
{
	if (batch->f.code == FAIL_DUPLICATE && batch->in.effect_n != 0) {
		called_off(session, batch);
		return;
	}
	log_line(LOG_WARN, "threads", "what an agent said cannot be stored", {"session", LOG_STRV(session->row.id)},
		{"reason", LOG_STRV(batch->f.message)});
	/* The agent waits meanwhile: its output stays in the spool. */
	batch->opened_at = loop_now(session->threads) + RETRY_MS;
	batch->tries++;
	loop_due(session->threads, batch->opened_at);
}

static void session_over(struct session *session)
{
	credential_revoke(session->threads->credentials, session->n);
	remove_directory(session->directory);
	leave_recovery(session);
	session_destroy(session);
}

static void saved(struct batch *batch)
{
	struct session *session = batch->session;
	bool is_over = batch->in.is_over;

	if (batch->rc != 0) {
		not_saved(session, batch);
		return;
	}
	session->saving = NULL;
	if (batch->in.begins_attempt_n != 0) {
		session->has_turn = true;
		session->turn_at = session->heard_at = loop_now(session->threads);
	}
	send_lines(session, batch);
	follow_events(session, batch);
	batch_destroy(batch);
	if (is_over) {
		struct threads *threads = session->threads;

		session_over(session);
		threads_wake(threads);
		return;
	}
	session_advance(session);
}

/* ---- going on ---- */

static void take_order(struct session *session)
{
	struct batch *batch = open_batch(session);
	int rc = order_take(session, batch, &batch->f);

	if (rc < 0)
		log_line(LOG_WARN, "threads", "an order could not be read", {"reason", LOG_STRV(batch->f.message)});
	if (rc <= 0) {
		batch_destroy(batch);
		session->open = NULL;
	}
}

static bool gives_order(const struct session *session)
{
	return session->saving != NULL && session->saving->in.effect_n != 0;
}

void session_advance(struct session *session)
{
	int64_t now = loop_now(session->threads);

	/* What is heard while an order is stored could not be unheard, should the order turn out to be called off. */
	if (session->agent == NULL || gives_order(session))
		return;
	begin(session);
	hear_lines(session);
	hear_exit(session);
	if (session->saving != NULL)
		return;
	if (session->open == NULL && !session->has_exited && !session->starts_over)
		take_order(session);
	if (session->open == NULL)
		return;
	look_at_events(session->open);
	if (may_wait(session, now))
		loop_due(session->threads, session->open->opened_at + TEXT_WAIT_MS);
	else
		save(session);
}

static void tick_driver(struct session *session, int64_t now)
{
	int64_t due = session->agent->driver->due(session->agent);

	if (due == 0 || session->has_heard_exit || session->starts_over || gives_order(session))
		return;
	if (due > now)
		loop_due(session->threads, due);
	else
		session->agent->driver->tick(session->agent, now, &open_batch(session)->out);
}

SQL(SQL_ASKED, "SELECT n FROM runtime_request WHERE thread_n = $1 AND status = 0 LIMIT 1");

/* Silent, and not because it waits for a person, or for what it has delegated. */
static bool has_stalled(struct session *session, int64_t now)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct snapshot s;
	struct failure f;
	int64_t n;
	int rc;

	if (now < session->heard_at + session->threads->bounds.stall)
		return false;
	if (places_is_lent(session->thread_n)) {
		session->heard_at = now;
		return false;
	}
	failure_init(&f, arena);
	if (snapshot_begin(session->threads->store, arena, &s, &f) != 0)
		return false;
	rc = query_int(&s, &n, &f, SQL_ASKED, "i", session->thread_n);
	snapshot_end(&s);
	if (rc == 1)
		session->heard_at = now;
	return rc == 0;
}

/* A bound of the whole turn, 0: none. */
static bool is_past(int64_t since, int64_t bound, int64_t now)
{
	return bound != 0 && now >= since + bound;
}

static void tick_bounds(struct session *session, int64_t now)
{
	const struct agent_bounds *bounds = &session->threads->bounds;

	if (session->is_ending || session->has_exited)
		return;
	if (session->interrupt_due != 0 && now >= session->interrupt_due)
		session_end(session);
	else if (!session->is_opened && is_past(session->created_at, bounds->start, now))
		session_end_for(session, "start_timeout");
	else if (session->has_turn && is_past(session->turn_at, bounds->turn, now))
		session_end_for(session, "deadline");
	else if (session->has_turn && bounds->stall != 0 && has_stalled(session, now))
		session_end_for(session, "stalled");
	else if (session->is_opened && !session->has_turn && session->saving == NULL && session->open == NULL
		&& now >= session->idle_since + bounds->idle)
		session_end(session);
}

void session_tick(struct session *session, int64_t now)
{
	struct batch *saving = session->saving;

	if (session->agent == NULL)
		return;
	if (saving != NULL && saving->tries > 0 && now >= saving->opened_at) {
		saving->opened_at = INT64_MAX;
		batch_submit(saving, run_ingest, &saving->in, saved);
		return;
	}
	tick_bounds(session, now);
	tick_driver(session, now);
	session_advance(session);
}

void session_end(struct session *session)
{
	if (session->is_ending || session->host == NULL || session->has_exited)
		return;
	session->is_ending = true;
	host_end(session->host);
}

void session_end_for(struct session *session, const char *why)
{
	if (session->is_ending || session->host == NULL || session->has_exited)
		return;
	log_line(LOG_WARN, "threads", "an agent takes too long", {"session", LOG_STRV(session->row.id)},
		{"cause", LOG_TEXT(why)});
	session->why = why;
	session_end(session);
}

/* ---- its host ---- */

SQL(SQL_LINES, "SELECT seq, has_secret, text FROM session_line WHERE session_n = $1 AND seq > $2 ORDER BY seq");

static int repeat_lines(struct session *session, int64_t confirmed, struct failure *f)
{
	struct snapshot s;
	struct query q;
	int rc;

	if (snapshot_begin(session->threads->store, f->arena, &s, f) != 0)
		return -1;
	rc = query(&s, &q, f, SQL_LINES, "ii", session->n, confirmed);
	while (rc == 0 && query_next(&q, f) == 1)
		rc = host_write(session->host, col_int(&q, 0), col_view(&q, 2), col_int(&q, 1) != 0, f);
	query_end(&q);
	snapshot_end(&s);
	return rc;
}

static void on_ready(struct host *host, void *context, const struct host_state *state)
{
	struct session *session = context;
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct failure f;

	(void)host;
	session->is_host_ready = true;
	session->confirmed = state->confirmed;
	if (state->secret.n > 0 && session->is_recovering) {
		struct thread_scope scope = {.thread_n = session->thread_n, .session_n = session->n};

		(void)snprintf(scope.instance_id, sizeof(scope.instance_id), "%.*s", STRF(session->instance->id));
		credential_grant(session->threads->credentials, state->secret, &scope);
	}
	failure_init(&f, arena);
	if (session->starts_over)
		session_end(session);
	else if (!state->has_exited && repeat_lines(session, state->confirmed, &f) != 0)
		log_line(LOG_WARN, "threads", "an agent could not be told again", {"session", LOG_STRV(session->row.id)});
	leave_recovery(session);
	session_advance(session);
}

static void on_readable(struct host *host, void *context)
{
	(void)host;
	session_advance(context);
}

static void on_confirmed(struct host *host, void *context, int64_t seq)
{
	struct session *session = context;

	(void)host;
	session->confirmed = seq;
}

static void on_exited(struct host *host, void *context, const struct host_exit *exit)
{
	struct session *session = context;
	bool is_ours = session->why != NULL && strcmp(exit->cause, "ended") == 0;

	(void)host;
	log_line(LOG_INFO, "threads", "an agent has ended", {"session", LOG_STRV(session->row.id)},
		{"cause", LOG_TEXT(exit->cause)}, {"code", LOG_INT(exit->code)}, {"signal", LOG_INT(exit->signal)});
	session->has_exited = true;
	session->is_lost = strcmp(exit->cause, "lost") == 0;
	session->exit = (struct agent_exit){.code = exit->code,
		.signal = exit->signal,
		.is_stdout_only = strcmp(exit->cause, "stdout_closed") == 0,
		.cause = str_dup(session->life, str_of(is_ours ? session->why : exit->cause)),
		.stderr_tail = str_dup(session->life, exit->stderr_tail)};
	session_advance(session);
}

const struct host_handlers session_handlers = {
	.ready = on_ready,
	.readable = on_readable,
	.confirmed = on_confirmed,
	.exited = on_exited,
};
