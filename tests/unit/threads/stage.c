#include "stage.h"

#include <stdio.h>
#include <stdlib.h>

int stage_up(void **state)
{
	struct stage *st = calloc(1, sizeof(*st));

	st->arena = arena_create();
	st->now = NOW;
	st->caps = (struct agent_caps){.supportsInterrupt = true, .supportsActiveSteering = true,
		.supportsSteeringByInterruptRestart = true};
	temp_dir_make(st->dir, "threads");
	(void)snprintf(st->path, sizeof(st->path), "%s/dais.db", st->dir);
	st->store = temp_store_open(st->dir, "dais.db");
	places_set(0, 0, 0);
	st->project = make_project(st);
	*state = st;
	return 0;
}

static void look(struct stage *st, struct snapshot *s)
{
	struct failure f;

	failure_init(&f, st->arena);
	if (snapshot_begin(st->store, st->arena, s, &f) != 0)
		fail_msg("%.*s", STRF(f.message));
	s->now = st->now;
}

int stage_down(void **state)
{
	struct stage *st = *state;
	struct snapshot s;
	int faults = temp_store_check(st->store, st->now);

	look(st, &s);
	faults += broken_invariants(&s);
	snapshot_end(&s);
	faults += rebuild_differences(st);
	store_close(st->store);
	temp_dir_remove(st->dir);
	arena_destroy(st->arena);
	free(st);
	return faults == 0 ? 0 : -1;
}

/* ---- changes ---- */

struct turn {
	struct stage *st;
	int (*run)(struct tx *tx, void *arg, struct failure *f);
	void *arg;
};

static int run_at_now(struct tx *tx, void *arg, struct failure *f)
{
	struct turn *turn = arg;

	tx->snapshot.now = turn->st->now;
	return turn->run(tx, turn->arg, f);
}

int in_tx(struct stage *st, int (*run)(struct tx *tx, void *arg, struct failure *f), void *arg)
{
	struct turn turn = {.st = st, .run = run, .arg = arg};

	st->now++;
	failure_init(&st->why, st->arena);
	return store_write(st->store, run_at_now, &turn, &actor_system, st->arena, &st->why);
}

static void must(struct stage *st, int (*run)(struct tx *tx, void *arg, struct failure *f), void *arg)
{
	if (in_tx(st, run, arg) != 0)
		fail_msg("%.*s", STRF(st->why.message));
}

static struct str name(struct stage *st, const char *kind)
{
	return str_printf(st->arena, "%s:%lld", kind, (long long)++st->made);
}

static int put_project(struct tx *tx, void *arg, struct failure *f)
{
	return PUT(tx, project, arg, 0, f);
}

int64_t make_project(struct stage *st)
{
	struct project_row row = {.id = name(st, "project"), .title = STR("Project"), .created_at = st->now, .updated_at = st->now};

	row.workspace_root = row.id;
	must(st, put_project, &row);
	return row.n;
}

static int put_thread(struct tx *tx, void *arg, struct failure *f)
{
	struct thread_row *row = arg;

	if (tx_next(tx, SEQ_thread, &row->n, f) != 0)
		return -1;
	row->root_n = row->n;
	return PUT(tx, thread, row, row->n, f);
}

int64_t make_thread_as(struct stage *st, struct thread_row row)
{
	row.id = name(st, "thread");
	if (row.project_n == 0)
		row.project_n = st->project;
	row.title = STR("Thread");
	row.instance_id = row.instance_id.p == NULL ? STR("one") : row.instance_id;
	row.runtime_mode = RUNTIME_FULL_ACCESS;
	row.interaction_mode = INTERACTION_DEFAULT;
	row.namespace = STR("0123456789abcdef");
	row.created_at = row.updated_at = st->now;
	must(st, put_thread, &row);
	return row.n;
}

int64_t make_thread(struct stage *st)
{
	return make_thread_as(st, (struct thread_row){0});
}

struct dispatching {
	struct dispatch in;
	struct dispatched *out;
};

static int dispatch_one(struct tx *tx, void *arg, struct failure *f)
{
	struct dispatching *d = arg;

	return message_dispatch(tx, &d->in, d->out, f);
}

int try_dispatch(struct stage *st, struct dispatch in, struct dispatched *out)
{
	struct dispatching d = {in, out};

	return in_tx(st, dispatch_one, &d);
}

int64_t say(struct stage *st, int64_t thread, const char *words)
{
	struct dispatched out;

	if (try_dispatch(st, (struct dispatch){.thread_n = thread, .mode = DISPATCH_QUEUE, .text = str_of(words)}, &out) != 0)
		fail_msg("%.*s", STRF(st->why.message));
	return out.run_n;
}

struct delegating {
	struct delegation in;
	int64_t run;
	struct subagent_row *out;
};

static int delegate_one(struct tx *tx, void *arg, struct failure *f)
{
	struct delegating *d = arg;
	struct thread_run_row run;
	struct thread_row parent;

	if (NEED(&tx->snapshot, thread_run, d->run, &run, f) != 0 || NEED(&tx->snapshot, thread, run.thread_n, &parent, f) != 0)
		return -1;
	d->in.run = &run;
	d->in.parent = &parent;
	return delegate(tx, &d->in, d->out, f);
}

int try_delegate(struct stage *st, struct delegation in, int64_t run, struct subagent_row *out)
{
	struct delegating d = {in, run, out};

	if (d.in.command_id.p == NULL)
		d.in.command_id = name(st, "command");
	d.in.driver = STR("codex");
	if (d.in.instance_id.p == NULL)
		d.in.instance_id = STR("one");
	d.in.runtime = RUNTIME_FULL_ACCESS;
	d.in.interaction = INTERACTION_DEFAULT;
	return in_tx(st, delegate_one, &d);
}

struct subagent_row delegate_task(struct stage *st, int64_t thread, const char *task, enum completion_wake wake)
{
	struct subagent_row out;

	if (try_delegate(st, (struct delegation){.task = str_of(task), .wake = wake}, blocking(st, thread), &out) != 0)
		fail_msg("%.*s", STRF(st->why.message));
	return out;
}

static int interrupt_one(struct tx *tx, void *arg, struct failure *f)
{
	struct thread_run_row run;

	return NEED(&tx->snapshot, thread_run, *(int64_t *)arg, &run, f) != 0 ? -1 : run_interrupt(tx, &run, STR("stop"), f);
}

int try_interrupt(struct stage *st, int64_t run)
{
	return in_tx(st, interrupt_one, &run);
}

static int end_one(struct tx *tx, void *arg, struct failure *f)
{
	int64_t *wanted = arg;
	struct thread_run_row run;

	return NEED(&tx->snapshot, thread_run, wanted[0], &run, f) != 0
		? -1
		: run_end(tx, &run, (enum run_status)wanted[1], STR_NONE, f);
}

void end_run(struct stage *st, int64_t run, enum run_status status)
{
	int64_t wanted[] = {run, status};

	must(st, end_one, wanted);
}

static int acknowledge_one(struct tx *tx, void *arg, struct failure *f)
{
	int64_t *who = arg;

	return delivery_acknowledge(tx, who[0], who[1], f);
}

void acknowledge(struct stage *st, int64_t task, int64_t run)
{
	int64_t who[] = {task, run};

	must(st, acknowledge_one, who);
}

static int dispose_one(struct tx *tx, void *arg, struct failure *f)
{
	return delivery_dispose(tx, *(int64_t *)arg, f);
}

void dispose(struct stage *st, int64_t task)
{
	must(st, dispose_one, &task);
}

static int archive_one(struct tx *tx, void *arg, struct failure *f)
{
	struct thread_row row;

	if (NEED(&tx->snapshot, thread, *(int64_t *)arg, &row, f) != 0)
		return -1;
	row.archived_at = tx->snapshot.now;
	return PUT(tx, thread, &row, row.n, f);
}

void set_archived(struct stage *st, int64_t thread)
{
	must(st, archive_one, &thread);
}

static int external_one(struct tx *tx, void *arg, struct failure *f)
{
	struct thread_row row;

	if (NEED(&tx->snapshot, thread, *(int64_t *)arg, &row, f) != 0)
		return -1;
	row.kind = THREAD_EXTERNAL;
	return PUT(tx, thread, &row, row.n, f);
}

void set_external(struct stage *st, int64_t thread)
{
	must(st, external_one, &thread);
}

static int delete_one(struct tx *tx, void *arg, struct failure *f)
{
	struct thread_row row;

	if (NEED(&tx->snapshot, thread, *(int64_t *)arg, &row, f) != 0)
		return -1;
	row.deleted_at = tx->snapshot.now;
	return PUT(tx, thread, &row, row.n, f);
}

void set_deleted(struct stage *st, int64_t thread)
{
	must(st, delete_one, &thread);
}

static int finalize_one(struct tx *tx, void *arg, struct failure *f)
{
	return finalize(tx, *(int64_t *)arg, f);
}

void finalize_again(struct stage *st, int64_t thread)
{
	must(st, finalize_one, &thread);
}

static int schedule_one(struct tx *tx, void *arg, struct failure *f)
{
	(void)arg;
	return schedule(tx, f);
}

void schedule_now(struct stage *st)
{
	must(st, schedule_one, NULL);
}

/* ---- agents ---- */

SQL(SQL_ADD_STATE, "INSERT INTO session_state (session_n, spool_offset, line_seq, driver_state) VALUES ($1, 0, 0, '{}')");

int put_session_state(struct tx *tx, int64_t session, struct failure *f)
{
	return tx_run(tx, f, SQL_ADD_STATE, "i", session) < 0 ? -1 : 0;
}

static int open_one(struct tx *tx, void *arg, struct failure *f)
{
	struct provider_session_row *row = arg;

	if (PUT(tx, provider_session, row, row->thread_n, f) != 0)
		return -1;
	return put_session_state(tx, row->n, f);
}

static int64_t open_session(struct stage *st, int64_t thread)
{
	struct provider_session_row row = {.id = name(st, "session"), .thread_n = thread, .driver = STR("codex"),
		.instance_id = STR("one"), .status = SESSION_STARTING, .cwd = STR("/tmp"), .capabilities = STR("{}"),
		.created_at = st->now, .updated_at = st->now};
	struct agent_out *out = hear(st);
	struct agent_event *event = agent_out_event(out, EVENT_OPENED);

	must(st, open_one, &row);
	event->native = name(st, "native");
	event->caps = &st->caps;
	tell(st, row.n, out);
	return row.n;
}

int64_t session_of(struct stage *st, int64_t thread)
{
	int64_t n = count(st, "SELECT coalesce(max(n), 0) FROM provider_session WHERE status < 4 AND thread_n = %lld",
		(long long)thread);

	return n != 0 ? n : open_session(st, thread);
}

int64_t effect_of(struct stage *st, int64_t run, enum effect_type type)
{
	return count(st, "SELECT coalesce(max(n), 0) FROM effect WHERE run_n = %lld AND type = %d", (long long)run, (int)type);
}

struct agent_out *hear(struct stage *st)
{
	struct agent_out *out = ARENA_ARRAY(st->arena, struct agent_out, 1);

	agent_out_init(out, st->arena);
	return out;
}

void add_item(struct agent_out *out, enum agent_item_kind kind, const char *key, enum agent_status status, const char *delta,
	const char *body)
{
	agent_out_event(out, EVENT_ITEM)->item = (struct agent_item){.kind = kind, .key = str_of(key), .status = status,
		.delta = str_of(delta), .body = str_of(body)};
}

void add_text(struct agent_out *out, const char *key, const char *words)
{
	add_item(out, ITEM_TEXT, key, AGENT_RUNNING, words, NULL);
	add_item(out, ITEM_TEXT, key, AGENT_COMPLETED, NULL, NULL);
}

void add_end(struct agent_out *out, enum agent_status status, const char *failure)
{
	struct agent_event *event = agent_out_event(out, EVENT_TURN_ENDED);

	event->status = status;
	event->failure = (struct agent_failure){.class = CLASS_PROVIDER, .message = str_of(failure), .is_retryable = YES_UNKNOWN};
}

static int ingest_one(struct tx *tx, void *arg, struct failure *f)
{
	return ingest(tx, arg, f);
}

static int capture_one(struct tx *tx, void *arg, struct failure *f)
{
	return checkpoint_put(tx, arg, f);
}

int try_capture(struct stage *st, int64_t run, struct captured in)
{
	enum effect_type type = in.ordinal == 0 ? EFFECT_BASELINE : EFFECT_CAPTURE;

	in.run_n = run;
	in.effect_n = effect_of(st, run, type);
	if (in.cwd.p == NULL)
		in.cwd = STR("/tmp");
	if (in.checkpoint.ref.p == NULL)
		in.checkpoint.ref = STR("refs/dais/checkpoints/x/ordinal/0");
	return in_tx(st, capture_one, &in);
}

static void capture_nothing(struct stage *st, int64_t run, int64_t ordinal)
{
	struct captured in = {.ordinal = ordinal, .checkpoint = {.status = CHECKPOINT_MISSING}};

	if (try_capture(st, run, in) != 0)
		fail_msg("%.*s", STRF(st->why.message));
}

void capture_all(struct stage *st)
{
	int64_t run;

	while ((run = count(st, "SELECT coalesce(min(run_n), 0) FROM effect WHERE type = 8")) != 0)
		capture_nothing(st, run, 1);
}

int try_tell(struct stage *st, struct ingest in, const struct agent_out *out)
{
	int rc;

	in.events = out == NULL ? NULL : out->events;
	in.driver_state = STR("{}");
	in.spool_offset = -1;
	rc = in_tx(st, ingest_one, &in);
	if (rc == 0 && !st->waits)
		capture_all(st);
	return rc;
}

void tell(struct stage *st, int64_t session, const struct agent_out *out)
{
	if (try_tell(st, (struct ingest){.session_n = session}, out) != 0)
		fail_msg("%.*s", STRF(st->why.message));
}

void begin(struct stage *st, int64_t run)
{
	struct thread_run_row row = run_row(st, run);
	struct agent_out *out = hear(st);
	int64_t effect = effect_of(st, run, EFFECT_START_TURN);

	assert_int_not_equal(effect, 0);
	if (effect_of(st, run, EFFECT_BASELINE) != 0)
		capture_nothing(st, run, 0);
	(void)agent_out_event(out, EVENT_TURN_STARTED);
	if (try_tell(st, (struct ingest){.session_n = session_of(st, row.thread_n), .effect_n = effect,
			     .begins_attempt_n = row.attempt_n}, out) != 0)
		fail_msg("%.*s", STRF(st->why.message));
}

void finish(struct stage *st, int64_t run, enum agent_status status, const char *words)
{
	struct agent_out *out = hear(st);

	if (words != NULL)
		add_text(out, name(st, "key").p, words);
	add_end(out, status, status == AGENT_FAILED ? "The model is on fire." : NULL);
	tell(st, session_of(st, run_row(st, run).thread_n), out);
}

void work(struct stage *st, int64_t run, const char *words)
{
	begin(st, run);
	finish(st, run, AGENT_COMPLETED, words);
}

/* ---- looking ---- */

#define LOOK(name, table) \
	struct table##_row name(struct stage *st, int64_t n) \
	{ \
		struct table##_row row; \
		struct failure f; \
		struct snapshot s; \
		failure_init(&f, st->arena); \
		look(st, &s); \
		if (NEED(&s, table, n, &row, &f) != 0) \
			fail_msg("%.*s", STRF(f.message)); \
		snapshot_end(&s); \
		return row; \
	}

LOOK(run_row, thread_run)
LOOK(thread_row, thread)
LOOK(task_row, subagent)
LOOK(message_row, message)

int64_t blocking(struct stage *st, int64_t thread)
{
	struct thread_run_row run = {0};
	struct snapshot s;
	struct failure f;

	failure_init(&f, st->arena);
	look(st, &s);
	assert_true(thread_blocking_run(&s, thread, &run, &f) >= 0);
	snapshot_end(&s);
	return run.n;
}

int64_t latest(struct stage *st, int64_t thread)
{
	struct thread_run_row run = {0};
	struct snapshot s;
	struct failure f;

	failure_init(&f, st->arena);
	look(st, &s);
	assert_true(thread_latest_run(&s, thread, &run, &f) >= 0);
	snapshot_end(&s);
	return run.n;
}

enum child_state progress(struct stage *st, int64_t thread)
{
	struct thread_run_row result;
	enum child_state state;
	struct snapshot s;
	struct failure f;

	failure_init(&f, st->arena);
	look(st, &s);
	assert_int_equal(child_progress(&s, thread, &state, &result, &f), 0);
	snapshot_end(&s);
	return state;
}

const char *text(struct stage *st, const char *format, ...)
{
	const char *found = "";
	struct snapshot s;
	struct failure f;
	struct query q;
	va_list args;
	int rc;

	failure_init(&f, st->arena);
	va_start(args, format);
	look(st, &s);
	if (query(&s, &q, &f, arena_vprintf(st->arena, format, args), "") != 0)
		fail_msg("%.*s", STRF(f.message));
	va_end(args);
	rc = query_next(&q, &f);
	if (rc == 1 && !col_is_null(&q, 0))
		found = str_z(st->arena, col_str(&q, 0));
	query_end(&q);
	snapshot_end(&s);
	assert_true(rc >= 0);
	return found;
}

int64_t count(struct stage *st, const char *format, ...)
{
	int64_t found = -1;
	struct snapshot s;
	struct failure f;
	va_list args;

	failure_init(&f, st->arena);
	va_start(args, format);
	look(st, &s);
	if (query_int(&s, &found, &f, arena_vprintf(st->arena, format, args), "") < 0)
		fail_msg("%.*s", STRF(f.message));
	va_end(args);
	snapshot_end(&s);
	return found;
}
