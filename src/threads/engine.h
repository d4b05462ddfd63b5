/* threads/engine.h - inside the thread engine: what its files offer one another.
 *
 * Everything here runs on the writer thread, inside one transaction: a change of a run and all that follows from it (the
 * result of a task, its delivery, the next run of a queue) are one commit, so no crash can fall between them. Failures
 * come before the first change, or undo the caller's savepoint. */
#ifndef DAIS_THREADS_ENGINE_H
#define DAIS_THREADS_ENGINE_H

#include "threads/ident.h"
#include "threads/row.h"
#include "threads/status.h"

#include "providers/provider.h"
#include "workspace/workspace.h"

/* ---- thread.c ---- */

/* 1 and the row, 0 unknown or deleted, -1. */
int thread_get(struct snapshot *s, int64_t n, struct thread_row *out, struct failure *f);
/* The row is changed and its time moves on. */
int thread_touch(struct tx *tx, struct thread_row *thread, struct failure *f);
/* The run that blocks the thread: 1, 0 none, -1. */
int thread_blocking_run(struct snapshot *s, int64_t thread_n, struct thread_run_row *out, struct failure *f);
/* The newest run by ordinal: 1, 0 none, -1. */
int thread_latest_run(struct snapshot *s, int64_t thread_n, struct thread_run_row *out, struct failure *f);
/* It needs a folder of its own and has none: it is made yet, or could not be made. The root never takes its place. */
bool thread_is_homeless(const struct thread_row *thread);
/* Work on its folder is under way: 1, 0, -1. */
int thread_is_preparing(struct snapshot *s, int64_t thread_n, struct failure *f);
/* Where its agent works. */
int thread_cwd(struct snapshot *s, const struct thread_row *thread, struct str *out, struct failure *f);

/* `wanted`, or else what `text` begins with, cut to so many characters. */
struct str thread_title(struct arena *arena, struct str wanted, struct str text, size_t chars);

/* Words of the ladders of modes, as callers use them. */
extern const char *const runtime_mode_names[];
extern const char *const interaction_mode_names[];

/* ---- item.c: the timeline ---- */

/* Appends an item to its thread: the caller has set all but n, ordinal and updated_at. */
int item_add(struct tx *tx, struct turn_item_row *item, struct failure *f);
int item_change(struct tx *tx, struct turn_item_row *item, struct failure *f);
/* Streamed text of an item that is not whole. */
int item_append(struct tx *tx, const struct turn_item_row *item, struct str text, struct failure *f);
/* The text so far, from the row or its chunks. */
int item_text(struct snapshot *s, const struct turn_item_row *item, struct str *out, struct failure *f);
/* Makes streamed text whole and gives the item its end. */
int item_end(struct tx *tx, struct turn_item_row *item, enum work_status status, struct failure *f);
/* Every item of a run that has no end gets this one. */
int items_end_run(struct tx *tx, int64_t run_n, enum work_status status, struct failure *f);
/* An item about something that the server did: id turn-item:run:<run>:signal:<name>. */
int item_signal(struct tx *tx, const struct thread_run_row *run, enum item_type type, const char *name, struct str body,
	struct failure *f);

/* ---- effect.c: what is to be done outside ---- */

int effect_add(struct tx *tx, int64_t thread_n, int64_t run_n, enum effect_type type, struct str payload, struct failure *f);
/* Drop those that were not done yet. */
int effects_drop(struct tx *tx, int64_t run_n, enum effect_type type, struct failure *f);
int effects_drop_run(struct tx *tx, int64_t run_n, struct failure *f);

/* ---- dispatch.c ---- */

/* PREPARE: its run is prepared first, see prepare.c. */
enum dispatch_mode { DISPATCH_START, DISPATCH_QUEUE, DISPATCH_STEER, DISPATCH_RESTART, DISPATCH_PREPARE };

struct dispatch {
	int64_t thread_n;
	enum dispatch_mode mode;
	struct str message_id; /* absent: made up */
	struct str text;
	struct str attachments;
	enum creator created_by;
	enum creation_source source;
	int64_t sender_n;
	struct str completion;	 /* a wake */
	struct str notification;
};

struct dispatched {
	int64_t run_n;
	int64_t message_n;
};

/* A message to a thread: starts a run, waits in its queue, or goes into the run that is active (spec of steering). */
int message_dispatch(struct tx *tx, const struct dispatch *in, struct dispatched *out, struct failure *f);
/* The agent works though nobody has told it to: a run for that, whose turn has begun already. */
int run_begin_unasked(struct tx *tx, struct thread_row *thread, struct thread_run_row *out, struct failure *f);
/* A steering message that no turn has taken is sent as one that waits; to a thread that takes none any more it is not. */
int message_send_again(struct tx *tx, int64_t message_n, struct failure *f);
/* The run can take a steering message now: 1, 0, -1. */
int run_is_steerable(struct snapshot *s, const struct thread_run_row *run, struct failure *f);
/* The same, and its agent knows a way. */
int run_can_steer(struct snapshot *s, const struct thread_row *thread, const struct thread_run_row *run, struct failure *f);

/* ---- run.c ---- */

/* starting: message in the timeline, attempt, effect. The caller has seen that nothing blocks. */
int run_start(struct tx *tx, struct thread_run_row *run, struct failure *f);
/* A new attempt of the same run, for a steering message. */
int run_restart(struct tx *tx, struct thread_run_row *run, int64_t message_n, struct failure *f);
/* Its message in the timeline. */
int run_show_message(struct tx *tx, const struct thread_run_row *run, enum input_intent intent, struct failure *f);
/* waiting: the agent is done, what it left is being looked at (checkpoint.c). */
int run_settle(struct tx *tx, struct thread_run_row *run, struct failure *f);
/* The end of a run and all that follows from it. `failure` is JSON, absent: none. */
int run_end(struct tx *tx, struct thread_run_row *run, enum run_status status, struct str failure, struct failure *f);
/* Ask for its end; a queued one is cancelled. INVALID when it has ended. */
int run_interrupt(struct tx *tx, struct thread_run_row *run, struct str reason, struct failure *f);

/* ---- schedule.c ---- */

/* Begin what may begin. */
int schedule(struct tx *tx, struct failure *f);

/* ---- delegate.c, finalize.c, deliver.c ---- */

struct delegation {
	const struct thread_row *parent;
	const struct thread_run_row *run;
	struct str command_id;
	struct str task; /* what the child is told */
	struct str title;
	struct str driver, instance_id, model, options;
	enum runtime_mode runtime;
	enum interaction_mode interaction;
	enum completion_wake wake;
};

int delegate(struct tx *tx, const struct delegation *in, struct subagent_row *out, struct failure *f);

enum child_state { CHILD_WORKING, CHILD_WAITS_FOR_CHILDREN, CHILD_HAS_RESULT };
/* What a child has come to; *result is the run whose result it is. */
int child_progress(struct snapshot *s, int64_t child_n, enum child_state *out, struct thread_run_row *result,
	struct failure *f);
/* The text of a run's result: *item_n is the item that is the result, 0 none. */
int run_result(struct snapshot *s, const struct thread_run_row *run, struct str *text, int64_t *item_n, struct failure *f);
/* If the child's work is done, its parent gets the result, once. */
int finalize(struct tx *tx, int64_t child_n, struct failure *f);

/* A finished task: tell its parent, by the rules of delivery. */
int delivery_plan(struct tx *tx, struct subagent_row *task, struct failure *f);
/* Tasks that ended while their parent was at work, and that it was not told of: in one message, when it works no more. */
int delivery_plan_untold(struct tx *tx, int64_t thread_n, struct failure *f);
/* A run that has ended: was it a wake, or does its end set free what waited for it? */
int delivery_settle(struct tx *tx, const struct thread_run_row *run, struct failure *f);
int delivery_acknowledge(struct tx *tx, int64_t task_n, int64_t observed_by_run_n, struct failure *f);
int delivery_dispose(struct tx *tx, int64_t task_n, struct failure *f);
int cohort_stop(struct tx *tx, struct thread_run_row *run, enum cohort_state state, struct failure *f);

/* ---- ingest.c ---- */

/* What an agent said, put on record. */
struct ingest {
	int64_t session_n;
	const struct agent_event *events;
	const struct agent_line *lines; /* numbered and kept until the host has confirmed them */
	struct str driver_state;	/* after all of it */
	int64_t spool_offset;		/* -1: unchanged */
	int64_t effect_n;		/* the order that it comes of; 0: none. DUPLICATE when that was called off meanwhile */
	int64_t begins_attempt_n;	/* the order begins this attempt's turn; 0: none */
	int64_t confirmed;		/* lines up to this number are forgotten */
	bool is_over;			/* the process has ended */
	bool is_lost;			/* it was gone when the server came back: its run counts as cancelled */
	/* answered */
	int64_t first_line_seq;
};

int ingest(struct tx *tx, struct ingest *in, struct failure *f);

/* Where the events of a session belong at the moment. */
struct hearing {
	struct provider_session_row session;
	struct thread_row thread;
	struct provider_thread_row conversation; /* n 0: none yet */
	struct provider_turn_row turn;		 /* the newest of it; n 0: none */
	struct run_attempt_row attempt;		 /* of the turn */
	struct thread_run_row run;		 /* of the attempt */
	bool is_lost;
	bool is_current; /* the attempt is the run's active one, and the run has not ended */
};

int hearing_read(struct snapshot *s, int64_t session_n, struct hearing *out, struct failure *f);
/* An item that the agent told of: made or changed. *next: events that went along with it are passed over. */
int ingest_item(struct tx *tx, struct hearing *h, const struct agent_event *event, const struct agent_event **next,
	struct failure *f);

/* ---- prepare.c: the folder of a launched thread ---- */

/* The thread has no folder yet: an item tells of it, an effect gets it made. `order`: {"baseRef","branch","startFromOrigin"}. */
int preparation_begin(struct tx *tx, const struct thread_row *thread, int64_t run_n, struct str order, struct failure *f);

/* What came of one step. */
struct prepared {
	int64_t effect_n, thread_n, run_n; /* run_n 0: it has none yet */
	bool was_setup;			   /* the step was the setup script */
	struct str path, branch;	   /* of the folder that was made; absent: none */
	struct str failure;		   /* JSON, absent: none */
};

int preparation_step(struct tx *tx, const struct prepared *in, struct failure *f);
/* What waits for a folder that there will not be. */
int preparation_refuse_queue(struct tx *tx, const struct thread_row *thread, struct failure *f);
/* At the start: what the last server was preparing is given up. */
int preparations_cut(struct tx *tx, struct failure *f);

/* ---- checkpoint.c ---- */

struct captured {
	int64_t effect_n, run_n;
	int64_t ordinal; /* 0 before the run, 1 after it */
	struct str cwd;
	struct checkpoint checkpoint;
	struct str digest; /* absent: not taken */
};

/* Names the refs of a run. Absent: *f says why. */
struct str checkpoint_scope_id(struct snapshot *s, const struct thread_run_row *run, struct failure *f);
/* Keeps it; after the run that ends it, too. */
int checkpoint_put(struct tx *tx, const struct captured *in, struct failure *f);

/* ---- handoff.c ---- */

/* What the agent is told for a run: the message, after a summary of the thread when its conversation is a new one. */
int handoff_text(struct snapshot *s, const struct thread_row *thread, const struct thread_run_row *run, struct str message,
	struct str *out, struct failure *f);

/* ---- clean.c ---- */

/* What a program said, fit to be stored and shown: no credentials, no control characters, at most so many. */
struct str clean_text(struct arena *arena, struct str text, size_t max_chars);
/* The body of an item with its long texts cut to head and tail. */
struct str clip_body(struct arena *arena, struct str body);
/* {"class","code","message","retryable"} */
struct str failure_json(struct arena *arena, const struct agent_failure *failure);

#endif
