/* threads/view.h - what outside readers are shown of threads: ids where rows have numbers, words where they have codes.
 * Nothing here changes anything, or counts as having been read. */
#ifndef DAIS_THREADS_VIEW_H
#define DAIS_THREADS_VIEW_H

#include "store/store.h"
#include "threads/status.h"

/* Is it an event of the thread half? */
bool event_is_of_threads(int64_t type);
/* Members that stand for the data of such an event (store/event.def says which). Texts of messages and items are not
 * among them, but for text that is appended: who wants them reads the item. */
int event_view(struct snapshot *s, int64_t type, const json_t *data, struct json_writer *w, struct failure *f);

/* By their ids: 1 and *n, 0 unknown or deleted, -1. A run is shown as its thread is, a task as that of its parent. */
int view_find_thread(struct snapshot *s, struct str id, int64_t *n, int64_t *thread_n, struct failure *f);
int view_find_run(struct snapshot *s, struct str id, int64_t *n, int64_t *thread_n, struct failure *f);
int view_find_task(struct snapshot *s, struct str id, int64_t *n, int64_t *thread_n, struct failure *f);

/* Members: how a thread, a run, a task stands. */
int view_thread(struct snapshot *s, int64_t n, struct json_writer *w, struct failure *f);
int view_run(struct snapshot *s, int64_t n, struct json_writer *w, struct failure *f);
int view_task(struct snapshot *s, int64_t n, struct json_writer *w, struct failure *f);

/* For the page of metrics: what is going on, counted by narrow indexes. */
struct thread_counts {
	int64_t runs[RUN_COMPLETED]; /* by status; those that have ended are history */
	int64_t sessions;	/* agents that are alive */
	int64_t requests;	/* questions that wait for a person */
	int64_t tasks;		/* delegated, and without a result */
	int64_t orders;		/* of the engine to its agents */
};
int view_counts(struct snapshot *s, struct thread_counts *out, struct failure *f);

#endif
