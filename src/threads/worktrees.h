/* threads/worktrees.h - work trees that were made for threads, and what is kept of them beside the store: for cleaning up,
 * when somebody asks for it. Never of its own accord, and never what exists nowhere else unless that was seen and named. */
#ifndef DAIS_THREADS_WORKTREES_H
#define DAIS_THREADS_WORKTREES_H

#include "store/store.h"
#include "workspace/workspace.h"

struct kept_worktree {
	int64_t thread_n;
	struct str thread_id, title, path, branch;
	struct str root; /* of its project */
	bool is_busy;	 /* a thread that works there has a run that has not ended */
};

/* Oldest first; those that were removed are not told of. Looks at the disk: not on the writer. */
int worktrees_list(struct snapshot *s, struct kept_worktree **out, size_t *count, struct failure *f);
/* As worktree_remove: with losses (worktree_losses) only if `force` is their token. Its thread stays and can be read; what is
 * sent to it fails, as its folder is missing. */
int kept_worktree_remove(const struct workspace_call *call, const struct kept_worktree *tree, struct str force, struct failure *f);

/* Where the refs of a thread's checkpoints stand. */
struct kept_scope {
	struct str id, cwd;
};

int kept_scopes_list(struct snapshot *s, int64_t thread_n, struct kept_scope **out, size_t *count, struct failure *f);
/* They go, for a thread that was deleted. Where its repository is gone there is nothing to do. */
int kept_scopes_forget(const struct workspace_call *call, const struct kept_scope *scopes, size_t count, struct failure *f);

#endif
