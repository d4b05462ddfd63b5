/* threads/helper.h - inside the part that acts: threads for work that takes long (git, setup scripts), so that neither the
 * loop nor the writer ever waits for a program or a disk.
 *
 * Two lanes, because a setup script may run for minutes while a capture, which the end of a run waits for, takes less than a
 * second. Within a lane jobs begin in the order in which they were given. */
#ifndef DAIS_THREADS_HELPER_H
#define DAIS_THREADS_HELPER_H

#include <stdbool.h>
#include <stddef.h>

enum helper_lane { LANE_CAPTURE, LANE_PREPARE, HELPER_LANES };

/* Part of what it works on. From helper_give to helper_take it is the helper's. */
struct job {
	struct job *next;
	void (*work)(struct job *job); /* on a thread of the helper */
};

struct helper;

/* `done`: a job was finished. On the thread that did it; may not block. */
struct helper *helper_start(void (*done)(void *context), void *context);
/* False: LIMIT_HELPER_QUEUE jobs wait in the lane already. Any thread. */
bool helper_give(struct helper *helper, enum helper_lane lane, struct job *job);
/* Finished jobs, oldest first; NULL: none. Any thread. */
struct job *helper_take(struct helper *helper);
/* Nothing new begins; returns when what was begun has ended, which its owner has asked it to. Accepts NULL. */
void helper_stop(struct helper *helper);

#endif
