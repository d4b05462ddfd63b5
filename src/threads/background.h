/* threads/background.h - inside the part that acts: what the helper does for threads. */
#ifndef DAIS_THREADS_BACKGROUND_H
#define DAIS_THREADS_BACKGROUND_H

#include "threads/helper.h"
#include "threads/loop.h"

void background_start(struct threads *threads);
/* When the loop has ended: what is under way is stopped, and found again in the store at the next start. */
void background_stop(struct threads *threads);
/* Stores what was done, takes up what is to be done, stops what nobody wants any more. On the loop's thread. */
void background_look(struct threads *threads);

/* Is the folder a work tree of the repository of `root`? A ticket, 0: too many ask. Waiters of the thread are woken when it is
 * known. Any thread. */
int64_t worktree_look(struct threads *threads, int64_t thread_n, struct str root, struct str path);
/* 1 and its real path, 0 it is not known yet, -1. With an answer the ticket is gone. Any thread. */
int worktree_looked(struct threads *threads, int64_t ticket, struct arena *arena, struct str *out, struct failure *f);

#endif
