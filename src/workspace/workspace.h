/* workspace/workspace.h - what is done with a folder for a thread: work trees, scratch folders,
 * setup scripts, checkpoints, digests. The door of this room.
 *
 * Everything is synchronous and may take long: it belongs on a helper thread. Nothing here knows
 * the store: plain values come in, plain values in the arena of the call go out. git is called as a
 * program, by argument list, with a deadline, without the user's hooks, and never asks anybody
 * anything.
 *
 * A failure carries a cause of workspace/fault.def, which is what a failed run records. */
#ifndef DAIS_WORKSPACE_WORKSPACE_H
#define DAIS_WORKSPACE_WORKSPACE_H

#include "base/failure.h"
#include "base/json.h"
#include "base/str.h"

/* ---- calls ---- */

/* Asked for on any thread, heard by the call that it was given to. Outlives that call. */
struct cancel;
struct cancel *cancel_create(void);
void cancel_destroy(struct cancel *cancel);
void cancel_request(struct cancel *cancel);
bool cancel_is_requested(const struct cancel *cancel);

struct workspace_call {
	struct arena *arena;
	const struct cancel *cancel; /* NULL: nobody stops it */
};

enum fault {
#define FAULT(name, wire, code, meaning) FAULT_##name,
#include "workspace/fault.def"
#undef FAULT
	FAULTS,
};
/* The wire name of the cause of a failure of this room; absent for a failure from elsewhere. */
struct str fault_cause(const struct failure *f, struct arena *arena);
const char *fault_name(enum fault fault);

/* ---- repositories ---- */

struct repository {
	struct str top;        /* real path of the work tree */
	struct str git_dir;    /* of this work tree */
	struct str common_dir; /* of the repository: the same for all its work trees */
	struct str name;       /* last part of the path of the main work tree */
};

/* FAULT_REPOSITORY_MISSING when `path` is not inside a work tree. */
int repository_find(const struct workspace_call *call, struct str path, struct repository *out,
	struct failure *f);
/* Is `path` the top of a work tree of the repository of `root`? FAULT_NOT_A_WORKTREE if not. `out`:
 * its real path. */
int worktree_check(const struct workspace_call *call, struct str root, struct str path,
	struct str *out, struct failure *f);

/* ---- branches ---- */

/* Lower case, [a-z0-9/_-], other runs become -, no separator at an end of a part, at most
 * LIMIT_BRANCH_CHARS; "update" if nothing stays. */
struct str branch_clean(struct arena *arena, struct str wanted);
/* One that worktree_create() made up. */
bool branch_is_temporary(struct str branch);

/* ---- work trees ---- */

struct worktree_order {
	struct str root; /* a path in the project's repository */
	struct str dir;  /* where work trees go; made if missing */
	struct str thread_id;
	struct str base;     /* baseRef */
	struct str branch;   /* absent: a temporary one */
	bool is_from_origin; /* fetch, then origin/<base> */
};

struct worktree {
	struct str path;
	struct str branch;
	struct str commit;
	bool is_temporary; /* the branch wants a better name */
};

/* Whatever fails is undone: no folder, no branch, no entry stays. */
int worktree_create(const struct workspace_call *call, const struct worktree_order *order,
	struct worktree *out, struct failure *f);
/* Give the temporary branch of the work tree at `path` another name. `out`: the name as cleaned. */
int worktree_rename_branch(const struct workspace_call *call, struct str path, struct str branch,
	struct str wanted, struct str *out, struct failure *f);

enum loss_kind {
	LOSS_MODIFIED, /* tracked, changed or staged */
	LOSS_UNTRACKED,
	LOSS_IGNORED,
	LOSS_COMMIT,    /* on no remote and on no other branch or tag */
	LOSS_STASH,     /* made on this branch */
	LOSS_OPERATION, /* a merge, rebase, … in the middle */
	LOSS_LOCK,      /* git worktree lock */
	LOSS_PROCESS,   /* works in the folder */
};
const char *loss_kind_name(enum loss_kind kind);

struct loss {
	enum loss_kind kind;
	struct str what; /* path, commit with subject, pid with name, …; any bytes */
};

struct losses {
	const struct loss *rows; /* the first LIMIT_LOSSES */
	size_t n;
	size_t total;     /* of all */
	struct str token; /* names exactly these; absent when there are none */
};

/* What exists in the work tree at `path` and nowhere else. */
int worktree_losses(
	const struct workspace_call *call, struct str path, struct losses *out, struct failure *f);
/* Remove the linked work tree at `path` of the repository of `root`; its branch stays. With losses
 * only if `force` is their token, so that a force never takes what its giver did not see;
 * FAULT_WOULD_LOSE lists them. */
int worktree_remove(const struct workspace_call *call, struct str root, struct str path,
	struct str force, struct failure *f);

/* ---- setup script ---- */

struct setup_order {
	struct str path;
	const struct str *argv; /* 0: the script */
	size_t argc;
	struct str script;     /* for sh -c */
	const struct str *env; /* NAME=value, added to ours */
	size_t env_count;
	int64_t timeout_ms; /* 0: LIMIT_SETUP_MS */
};

struct setup_result {
	int exit_code; /* -1: ended by `signal` */
	int signal;
	struct str tail; /* newest output, stdout and stderr as they came */
};

/* `out` is filled too when it fails with FAULT_SETUP_FAILED, _TIMED_OUT or _CANCELLED. */
int setup_run(const struct workspace_call *call, const struct setup_order *order,
	struct setup_result *out, struct failure *f);

/* ---- scratch folders ---- */

/* <data>/scratch/<day>-<slug of title>-<end of thread id>; FAULT_INSIDE_REPOSITORY. */
int scratch_create(const struct workspace_call *call, struct str data, struct str title,
	struct str thread_id, int64_t now, struct str *out, struct failure *f);

/* ---- checkpoints (docs/internals/checkpoints.md) ---- */

enum checkpoint_status { CHECKPOINT_READY, CHECKPOINT_MISSING, CHECKPOINT_ERROR };
const char *checkpoint_status_name(enum checkpoint_status status);

struct file_change {
	struct str path;              /* any bytes but NUL */
	const char *kind;             /* added, modified, deleted */
	int64_t additions, deletions; /* lines; -1: binary */
};

struct file_changes {
	const struct file_change *rows; /* the first LIMIT_CHECKPOINT_FILES */
	size_t n;
	size_t total;
};
/* [{path,kind,additions,deletions}]; bytes that are not UTF-8 become \xNN. */
void file_changes_write(const struct file_changes *files, struct json_writer *w);

struct checkpoint {
	enum checkpoint_status status;
	struct str ref;
	struct str tree;
	struct file_changes files; /* against the checkpoint before it in the scope */
	struct str problem;        /* CHECKPOINT_ERROR: why */
};

struct str checkpoint_ref(struct arena *arena, struct str scope_id, int64_t ordinal);
/* Always leaves a checkpoint with a status; again for the same ordinal replaces it. */
void checkpoint_capture(const struct workspace_call *call, struct str cwd, struct str scope_id,
	int64_t ordinal, struct checkpoint *out);

struct restored {
	struct file_changes files; /* what was done to the work tree */
	struct str before;         /* tree as it was before */
	const struct str
		*kept; /* paths of the checkpoint where an ignored file lies now: untouched */
	size_t kept_count;
};
/* The work tree becomes what it was: files added since go, changed ones come back, ignored ones
 * stay. */
int checkpoint_restore(const struct workspace_call *call, struct str cwd, struct str ref,
	struct restored *out, struct failure *f);
/* Delete all refs of a scope; `root` may be any path in the repository. */
int checkpoint_forget(
	const struct workspace_call *call, struct str root, struct str scope_id, struct failure *f);

/* ---- digests ---- */

/* Equal digests: equal content. In a work tree the id of the tree that a checkpoint would have,
 * elsewhere a hash over all names, kinds, modes and contents. Beyond LIMIT_DIGEST_… it fails with
 * FAULT_TOO_LARGE: never a guess. */
int digest_take(
	const struct workspace_call *call, struct str path, struct str *out, struct failure *f);
/* Files that differ between two digests of a work tree. FAULT_NOT_A_WORKTREE where they are of
 * other folders. */
int digest_compare(const struct workspace_call *call, struct str path, struct str before,
	struct str after, struct file_changes *out, struct failure *f);

#endif
