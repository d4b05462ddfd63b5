/* The thread engine on a real temporary store, its time an argument, its agents pretended: what a driver would have heard
 * is given to ingest() as a list of events, and what an agent is to be told is read back from the effects. */
#ifndef DAIS_TESTS_THREADS_STAGE_H
#define DAIS_TESTS_THREADS_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* after base/failure.h: cmocka has a macro of the same name as fail() */
#include "temp_store.h"
#include "threads/engine.h"
#include "threads/places.h"

#include <cmocka.h>

#define NOW INT64_C(1800000000000)

struct stage {
	char dir[TEMP_DIR_SIZE];
	char path[TEMP_DIR_SIZE + 16];
	struct store *store;
	struct arena *arena;
	int64_t now; /* moves on with every change */
	int64_t project;
	int64_t made; /* names that were given */
	bool waits;	/* runs whose agent is done stay at waiting until capture_all() */
	struct agent_caps caps; /* of the agents that open */
	struct failure why;	/* of the last refusal */
};

int stage_up(void **state);
int stage_down(void **state); /* asks for broken invariants */

int in_tx(struct stage *st, int (*run)(struct tx *tx, void *arg, struct failure *f), void *arg);

/* ---- one change each; the try_ ones answer 0 or -1 with st->why ---- */

int64_t make_thread(struct stage *st); /* of the stage's project and the instance "one" */
int64_t make_thread_as(struct stage *st, struct thread_row row);
int64_t make_project(struct stage *st);
int64_t say(struct stage *st, int64_t thread, const char *text); /* the run */
int try_dispatch(struct stage *st, struct dispatch in, struct dispatched *out);
/* A task of the thread's blocking run: its row. */
struct subagent_row delegate_task(struct stage *st, int64_t thread, const char *task, enum completion_wake wake);
int try_delegate(struct stage *st, struct delegation in, int64_t run, struct subagent_row *out);
int try_interrupt(struct stage *st, int64_t run);
void end_run(struct stage *st, int64_t run, enum run_status status);
void acknowledge(struct stage *st, int64_t task, int64_t run);
void dispose(struct stage *st, int64_t task);
void set_archived(struct stage *st, int64_t thread);
void set_external(struct stage *st, int64_t thread);
void set_deleted(struct stage *st, int64_t thread);
void finalize_again(struct stage *st, int64_t thread);
void schedule_now(struct stage *st);

/* ---- an agent: its session, what it is told, what it says ---- */

/* Where a new session stands; for those that the stage does not open. */
int put_session_state(struct tx *tx, int64_t session, struct failure *f);
/* The live session of a thread, opened when there is none. */
int64_t session_of(struct stage *st, int64_t thread);
int64_t effect_of(struct stage *st, int64_t run, enum effect_type type); /* 0: none */
struct agent_out *hear(struct stage *st);
void add_item(struct agent_out *out, enum agent_item_kind kind, const char *key, enum agent_status status, const char *delta,
	const char *body);
void add_text(struct agent_out *out, const char *key, const char *text); /* whole */
void add_end(struct agent_out *out, enum agent_status status, const char *failure);
int try_tell(struct stage *st, struct ingest in, const struct agent_out *out);
void tell(struct stage *st, int64_t session, const struct agent_out *out);
/* The agent begins the turn of a run that is starting. */
void begin(struct stage *st, int64_t run);
void finish(struct stage *st, int64_t run, enum agent_status status, const char *text);
/* What the helper found before (ordinal 0) or after the run; where nothing is said, no repository. */
int try_capture(struct stage *st, int64_t run, struct captured in);
/* After every run that waits for it: no repository. */
void capture_all(struct stage *st);
/* begin, text, end. */
void work(struct stage *st, int64_t run, const char *text);

/* ---- looking ---- */

struct thread_run_row run_row(struct stage *st, int64_t n);
struct thread_row thread_row(struct stage *st, int64_t n);
struct subagent_row task_row(struct stage *st, int64_t n);
struct message_row message_row(struct stage *st, int64_t n);
int64_t blocking(struct stage *st, int64_t thread); /* 0: none */
int64_t latest(struct stage *st, int64_t thread);
enum child_state progress(struct stage *st, int64_t thread);
int64_t count(struct stage *st, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *text(struct stage *st, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define assert_run(st, n, wanted) assert_string_equal(run_status_name(run_row((st), (n)).status), run_status_name(wanted))
#define assert_delivery(st, n, wanted) \
	assert_string_equal(delivery_state_name(task_row((st), (n)).delivery), delivery_state_name(wanted))
#define assert_str(view, wanted) assert_string_equal(str_z(st->arena, (view)), (wanted))

/* Breaks of the invariants of runs, tasks, deliveries and the log, each printed; inside a transaction or outside. */
int broken_invariants(struct snapshot *s);

/* How the rows are what the events say: 0, or the number of differences, each printed. */
int rebuild_differences(struct stage *st);

#endif
