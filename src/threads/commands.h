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
/* Into the run that is active or the queue, and what the sender is told. */
int message_send(struct tx *tx, const struct thread_row *thread, struct dispatch *message, enum send_mode mode,
	struct json_writer *w, struct failure *f);
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

struct create_entry {
	struct str prompt, title; /* absent: none */
	struct target target;
	int64_t runtime, interaction; /* -1: inherit */
};

/* All of them or none. */
int command_create(struct tx *tx, struct asked *asked, const struct create_entry *entries, size_t count,
	struct json_writer *w, struct failure *f);

enum update_action { UPDATE_RENAME, UPDATE_REGENERATE_TITLE, UPDATE_LINK_PULL_REQUEST, UPDATE_UNLINK_PULL_REQUEST };
extern const char *const update_action_names[];

struct update_args {
	struct str thread_id; /* absent: the caller's own */
	enum update_action action;
	struct str title;	   /* absent: not given */
	struct str repository, url; /* of the pull request, the same */
	int64_t number;
};

int command_update(struct tx *tx, struct asked *asked, const struct update_args *args, struct json_writer *w,
	struct failure *f);
int command_capabilities(struct tx *tx, struct asked *asked, struct json_writer *w, struct failure *f);

/* ---- on a snapshot of a reader: they make no thread for a caller that has none ---- */

struct list_args {
	const int64_t *statuses; /* run_status, or THREAD_IS_IDLE */
	size_t status_count;	 /* 0: all */
	struct str title_part;
	bool with_subagents;
	int64_t cursor, limit;
};

int command_list(struct snapshot *s, struct asked *asked, const struct list_args *args, struct json_writer *w,
	struct failure *f);

struct read_args {
	struct str thread_id;
	bool is_activity; /* all items, not messages alone */
	int64_t after, limit, run_limit, max_chars;
};

/* asked->handle: a task whose result was shown whole, and that is to be put on record as read. */
int command_read(struct snapshot *s, struct asked *asked, const struct read_args *args, struct json_writer *w,
	struct failure *f);
int command_has_read(struct tx *tx, struct asked *asked, struct failure *f);

#endif
