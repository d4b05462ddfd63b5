/* threads/command.h - what callers may ask of threads, as functions of a transaction: who asks, with which key, and what
 * they are told. The rules of delegation for agents and for people are the same; only who they are differs. */
#ifndef DAIS_THREADS_COMMAND_H
#define DAIS_THREADS_COMMAND_H

#include "threads/engine.h"
#include "threads/threads.h"

/* Who asks, as the transport knows it. */
struct asker {
	struct threads *threads;
	int64_t thread_n;	/* the thread of an agent that dais started; 0: somebody else's agent, or a person */
	struct str instance_id; /* of that agent's credential */
	struct str principal;	/* of all others … */
	struct str workspace;	/* … and where they work: an absolute path, absent: not known */
};

/* The same, with what stands on record. */
struct asking {
	const struct asker *asker;
	struct thread_row thread;
	struct thread_run_row run; /* the active one; n 0: none */
};

/* An agent that dais did not start gets a thread of its own the first time. */
int asking_resolve(struct tx *tx, const struct asker *asker, struct asking *out, struct failure *f);
/* The same without making anything: out->thread.n 0 when the caller has no thread yet, and its project_n 0 when the
 * place where it works is no project yet. */
int asking_look(struct snapshot *s, const struct asker *asker, struct asking *out, struct failure *f);
/* Ends the runs of those that have not been heard of: store_write. */
int externals_end(struct tx *tx, void *arg, struct failure *f);
/* The project that holds a folder, a new one when none does; absent: the only one there is. */
int project_of(struct tx *tx, struct str workspace, int64_t *out, struct failure *f);
/* PARENT_NOT_ACTIVE unless the caller's thread has an active run on the credential's instance. */
int asking_need_run(struct tx *tx, const struct asking *asking, struct failure *f);
/* A thread of the caller's project: THREAD_NOT_FOUND for every other. */
int asking_thread(struct snapshot *s, const struct asking *asking, struct str thread_id, struct thread_row *out,
	struct failure *f);

/* ---- targets and modes ---- */

struct target {
	struct str instance_id, driver, model; /* absent: not given */
};

struct chosen {
	const struct provider_instance *instance;
	struct str model; /* absent: the program's default */
};

/* Sentences that say why an instance cannot run anything now; count 0: it can. */
size_t instance_constraints(const struct threads *threads, const struct provider_instance *instance, struct arena *arena,
	struct str *out, size_t room);
int target_choose(struct tx *tx, const struct asking *asking, const struct target *target, struct chosen *out,
	struct failure *f);
/* -1 inherits; a wider mode than the caller's is refused. */
int modes_choose(const struct asking *asking, int64_t runtime, int64_t interaction, enum runtime_mode *out_runtime,
	enum interaction_mode *out_interaction, struct failure *f);
/* The other thread may not do more than the caller. */
int modes_cover(const struct asking *asking, const struct thread_row *other, struct failure *f);

/* ---- receipts ---- */

struct command {
	struct str id;
	int64_t thread_n;
	struct str fingerprint;
	struct str result; /* of a replay: JSON that command_accept was given */
};

/* `key` absent: a new command each time. `args`: what a repetition must not change. */
void command_name(struct command *command, struct arena *arena, const struct asking *asking, const char *operation,
	struct str key, struct str args);
/* Of a command on one thread: the same key means another one for another thread, or another thing to do. */
void command_narrow(struct command *command, struct arena *arena, struct str thread_id, const char *action);
/* 1: done before, see result; 0: new; -1: INVALID_REQUEST when the arguments were others. */
int command_seen(struct tx *tx, struct command *command, struct failure *f);
int command_accept(struct tx *tx, const struct command *command, struct str result, struct failure *f);

/* ---- what callers are told ---- */

/* Absent is null. */
void text_or_null(struct json_writer *w, const char *key, struct str text);

/* Members of the answer of delegate_task and task_status; *is_over: the status is a terminal one. */
int task_write(struct snapshot *s, const struct subagent_row *task, bool wait_timed_out, struct json_writer *w,
	bool *is_over, struct failure *f);
/* A task of the caller's own thread: TASK_NOT_FOUND for every other. */
int asking_task(struct snapshot *s, const struct asking *asking, struct str task_id, struct subagent_row *out,
	struct failure *f);
struct str run_id_of(struct snapshot *s, const struct thread_run_row *run, struct failure *f);
/* Of a thread: a run_status, or THREAD_IS_IDLE. */
#define THREAD_IS_IDLE (-1)
const char *thread_status_name(int64_t status);
/* Members that t3_thread_list and t3_thread_read show of a thread. */
int thread_write(struct snapshot *s, const struct thread_row *thread, int64_t status, struct json_writer *w,
	struct failure *f);
/* Absent when project_n is 0. */
int project_id_of(struct snapshot *s, int64_t project_n, struct str *out, struct failure *f);
/* The caller has been told the result of this task: it need not be delivered. */
int task_acknowledge(struct tx *tx, const struct asking *asking, int64_t task_n, struct failure *f);
/* What an item says, as text; absent: nothing. */
int item_words(struct snapshot *s, const struct turn_item_row *item, struct str *out, struct failure *f);

#endif
