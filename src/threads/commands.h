/* threads/commands.h - the commands behind the tools: each resolves who asks, checks, changes and answers in one
 * transaction. They give 0 and the members of the answer, 1 when the caller has to wait (nothing was written then), -1. */
#ifndef DAIS_THREADS_COMMANDS_H
#define DAIS_THREADS_COMMANDS_H

#include "threads/command.h"

/* A call that may run several times, while it waits. */
struct asked {
	const struct asker *asker;
	struct str key;		/* clientRequestId */
	struct str fingerprint; /* canonical arguments */
	bool may_wait;		/* false: time is up, or the caller does not wait */
	int64_t watched[2];	/* with 1: threads to look at */
	int64_t handle;		/* what the first run made: the next ones go on with it */
};

struct delegate_args {
	struct str task, title, role;
	struct target target;
	int64_t runtime, interaction; /* -1: inherit */
	bool waits;
};

int command_delegate(struct tx *tx, struct asked *asked, const struct delegate_args *args, struct json_writer *w,
	struct failure *f);
int command_task_status(struct tx *tx, struct asked *asked, struct str task_id, struct json_writer *w, struct failure *f);
int command_task_cancel(struct tx *tx, struct asked *asked, struct str task_id, struct str reason, struct json_writer *w,
	struct failure *f);

enum send_mode { SEND_AUTO, SEND_QUEUE, SEND_STEER, SEND_RESTART };
int command_send(struct tx *tx, struct asked *asked, struct str thread_id, struct str message, enum send_mode mode,
	struct json_writer *w, struct failure *f);
/* `run_id` absent: the latest run at the first look. */
int command_wait(struct tx *tx, struct asked *asked, struct str thread_id, struct str run_id, struct json_writer *w,
	struct failure *f);
int command_interrupt(struct tx *tx, struct asked *asked, struct str thread_id, struct str run_id, struct str reason,
	struct json_writer *w, struct failure *f);

struct launch_args {
	struct str title, message, project_id; /* message absent: a thread without a run */
	bool is_scratch, has_strategy;
	enum workspace_kind strategy;
	struct str base, branch, worktree_path;
	bool is_from_origin;
	struct target target;
	int64_t runtime, interaction; /* -1: the caller's */
};
/* Waits only as long as it takes to look at a worktreePath. */
int command_launch(struct tx *tx, struct asked *asked, const struct launch_args *args, struct json_writer *w, struct failure *f);
int command_capabilities(struct tx *tx, struct asked *asked, struct json_writer *w, struct failure *f);

#endif
