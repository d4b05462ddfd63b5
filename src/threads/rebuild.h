/* threads/rebuild.h - for `dais doctor`: would the tables of the thread half come out of the log as they stand, and does every
 * directory of an agent belong to one? */
#ifndef DAIS_THREADS_REBUILD_H
#define DAIS_THREADS_REBUILD_H

#include "store/store.h"

struct rebuilt {
	int64_t events; /* that were read */
	int64_t rows;	/* that they make */
	int64_t older;	/* rows whose events were pruned with their age */
};

/* Reads the whole log of threads, on one snapshot, and compares what it makes with each row: every event holds a row whole, so
 * its newest one is what a rebuild would leave. Also: no run leaves a terminal status but to be rolled back, and streamed
 * text that is not whole yet is what was appended. Findings as store_check gives them. */
int threads_rebuild_check(struct snapshot *s, void (*found)(void *context, struct str line), void *context,
	struct rebuilt *out, struct failure *f);

/* Directories of attempt hosts in `directory` (STATE/agents) that no live session owns: what a crash, or a database from
 * another day, left behind. Their number, or -1. */
int threads_leftovers(struct snapshot *s, const char *directory, void (*found)(void *context, struct str line), void *context,
	struct failure *f);

#endif
