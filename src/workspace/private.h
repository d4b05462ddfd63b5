/* Inside the workspace room: faults, programs, git. */
#ifndef DAIS_WORKSPACE_PRIVATE_H
#define DAIS_WORKSPACE_PRIVATE_H

#include "workspace/workspace.h"

/* ---- faults ---- */

/* Returns -1, as fail() does. */
int fault(struct failure *f, enum fault fault, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The fault of a system call: disk full, not writable, or the failure of base. Reads errno. */
int fault_errno(struct failure *f, const char *doing, const char *path);
bool fault_is(const struct failure *f, enum fault fault);

/* ---- programs ---- */

/* Readable once the cancel was requested; -1 for NULL. */
int cancel_fd(const struct cancel *cancel);

struct program {
	const char *const *argv; /* NULL at the end; argv[0] is looked for on PATH */
	const char *cwd;         /* NULL: ours */
	const char *const *env;  /* NAME=value, added to ours; NULL at the end, or NULL */
	int input;               /* descriptor; -1: nothing to read */
	int64_t timeout_ms;
	size_t max_out;    /* more stdout than that ends it */
	bool is_tail_only; /* stdout and stderr together, the newest max_out bytes */
};

enum program_stop { STOP_NONE, STOP_TIMED_OUT, STOP_CANCELLED, STOP_TOO_LONG };

struct program_end {
	int start_error; /* errno: it never ran */
	int exit_code;   /* -1: killed by `signal` */
	int signal;
	enum program_stop stop; /* we ended it */
	struct str out, err;    /* err: the newest LIMIT_GIT_STDERR_BYTES */
};

/* Run it, in a session of its own, to its end. When it must be stopped its whole process group
 * goes. */
void program_run(
	const struct workspace_call *call, const struct program *program, struct program_end *end);
/* A descriptor to read `text` from, or -1. */
int program_input(struct str text);

/* ---- git ---- */

struct git {
	const char *path;   /* git -C */
	const char *index;  /* GIT_INDEX_FILE, or NULL: the user's */
	struct str input;   /* absent: none */
	int64_t timeout_ms; /* 0: LIMIT_GIT_MS */
	bool is_remote;     /* talks to another host: its refusals are not ours */
};

#define GIT_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* -1: it could not be run to its end. 0: it ended, see *end. */
int git_try(const struct workspace_call *call, const struct git *git, const char *const *args,
	struct program_end *end, struct failure *f);
/* git_try() that also fails when git does; `out` (may be NULL) is its stdout. */
int git_run(const struct workspace_call *call, const struct git *git, const char *const *args,
	struct str *out, struct failure *f);
/* The failure for a git that ended with an error. */
int git_fault(const struct git *git, const struct program_end *end, struct failure *f);
/* The line of stderr that says what went wrong, fit to be shown: no control bytes, no user:password
 * of a URL. */
struct str git_complaint(struct arena *arena, struct str err);
bool says(const struct program_end *end, const char *words);

/* Valid UTF-8: other bytes become \xNN. */
struct str show_bytes(struct arena *arena, struct str text);
/* Without the newline at the end; paths may hold others. */
struct str chomp(struct str text);
/* The next of NUL-separated pieces; moves `rest` behind it. */
bool next_piece(struct str *rest, struct str *piece);
/* An id, fit for a file name; and its last eight characters. */
struct str name_part(struct arena *arena, struct str id);
struct str thread_suffix(struct arena *arena, struct str thread_id);
/* mkdir -p. */
int make_dirs(const char *path, struct failure *f);
/* Remove a folder and all in it, following no link; best effort, for undoing what we made. */
void remove_all(const char *path);

/* ---- the private index ---- */

/* The work tree, held against other captures of the same place in this process and in others. */
struct snapshot {
	const struct workspace_call *call;
	struct repository repository;
	const char *top;
	const char *index; /* path of the private index */
	int lock;          /* descriptor */
};

int snapshot_open(const struct workspace_call *call, struct str path, struct snapshot *out,
	struct failure *f);
void snapshot_close(struct snapshot *snapshot);
/* The id of the tree of all that is tracked or not ignored. */
int snapshot_tree(const struct snapshot *snapshot, struct str *out, struct failure *f);
/* The tree of a checkpoint; FAULT_CHECKPOINT_NOT_FOUND. */
int checkpoint_find(const struct workspace_call *call, const char *path, struct str ref,
	struct str *tree, struct failure *f);
int tree_compare(const struct workspace_call *call, const char *path, struct str before,
	struct str after, struct file_changes *out, struct failure *f);

#endif
