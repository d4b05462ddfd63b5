/* threads/status.h - the words of the thread half and their numbers (threads/status.def). */
#ifndef DAIS_THREADS_STATUS_H
#define DAIS_THREADS_STATUS_H

#include "base/str.h"

#define WORDS(name) enum name {
#define WORD(prefix, name, wire) prefix##_##name,
#define END_WORDS(prefix) prefix##_COUNT };
#include "threads/status.def"
#undef WORDS
#undef WORD
#undef END_WORDS

#define WORDS(name) const char *name##_name(int64_t value);
#define WORD(prefix, name, wire)
#define END_WORDS(prefix)
#include "threads/status.def"
#undef WORDS
#undef WORD
#undef END_WORDS

/* The number of a word, or -1. */
int run_status_find(struct str word);

/* Blocking: at most one such run of a thread, and no other starts beside it. */
static inline bool run_is_blocking(int64_t status)
{
	return status == RUN_PREPARING || status == RUN_STARTING || status == RUN_RUNNING || status == RUN_WAITING;
}

/* Its agent may still say something. */
static inline bool run_is_live(int64_t status)
{
	return status == RUN_PREPARING || status == RUN_STARTING || status == RUN_RUNNING;
}

static inline bool run_is_terminal(int64_t status)
{
	return status >= RUN_COMPLETED;
}

static inline bool work_is_terminal(int64_t status)
{
	return status >= WORK_COMPLETED;
}

/* Of an attempt, a node, an item, a task: what a run of this terminal status leaves. */
enum work_status work_status_of(int64_t run_status);

#endif
