/* threads/wait.h - calls that wait for something to happen in a thread.
 *
 * A waiter is put up on the writer thread, by the very change that found that it has to wait, so nothing that is
 * committed afterwards can be missed. Whoever changes a row of a watched thread marks it; after the commit it is woken, on
 * the thread of the engine's loop, and looks again with a change of its own. */
#ifndef DAIS_THREADS_WAIT_H
#define DAIS_THREADS_WAIT_H

#include "threads/threads.h"

enum wait_reason { WAIT_CHANGED, WAIT_TIMED_OUT };

struct waiter {
	int64_t watched[2]; /* thread.n, 0: none */
	int64_t deadline;   /* monotonic ms */
	/* Once for each waiter_add: it is not put up any more. May not block. */
	void (*wake)(struct waiter *waiter, enum wait_reason reason);
	/* Every WAIT_TICK_MS meanwhile; NULL: none. */
	void (*tick)(struct waiter *waiter);
	/* the room's own */
	struct waiter *next;
	int64_t tick_at;
	bool is_armed, is_dirty;
};

#define WAIT_TICK_MS 15000

/* On the writer thread. It is not woken before waiter_arm. */
void waiter_add(struct waiter *waiter);
/* After the commit: from now on it may be woken, at once when something happened meanwhile. Any thread. */
void waiter_arm(struct threads *threads, struct waiter *waiter);
/* The caller has gone: true when it was still up, and is not any more. Any thread. */
bool waiter_remove(struct waiter *waiter);
/* The caller has given up: true as above, if it could have been woken. Otherwise its change is being made, and the wait that
 * follows it is over at once. Any thread. */
bool waiter_cancel(struct waiter *waiter);
/* The server stops: everybody is woken as if the time were up. Any thread. */
void waiters_expire(void);
/* A row of this thread is being changed: on the writer thread. */
void waiters_mark(int64_t thread_n);

/* ---- for the loop ---- */

/* After a commit: is anybody to be woken? */
bool waiters_are_due(void);
/* Wakes and ticks; the time of the next one, 0: none. */
int64_t waiters_serve(int64_t now);

#endif
