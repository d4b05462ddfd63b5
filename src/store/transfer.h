/* store/transfer.h - everything that people and agents made, as lines of JSON, and back.
 *
 * The first line is a header, the last one counts the rows; between them each line is one row, its table
 * named by "in". Rows keep their numbers, times and versions, so what comes out of an imported database is
 * byte for byte what went in. Left out: credentials and sessions of callers, claims that run, idempotency records, the
 * call log, and counts, which are made again. Threads travel as they stand, their live sessions and orders too: where
 * the file goes no process belongs to them, and the first server there finds them lost and ends them, as after a crash.
 * The tables and columns are data: transfer_table.c. */
#ifndef DAIS_STORE_TRANSFER_H
#define DAIS_STORE_TRANSFER_H

#include "store/store.h"

/* Writes lines to `write`, which fails with -1 and *f. One snapshot, without a deadline. */
int transfer_export(struct snapshot *s, int (*write)(void *context, struct str line, struct failure *f),
	void *context, struct failure *f);

struct transfer_source {
	/* 1: *line is set, valid until the next call; 0: the end; -1 with *f */
	int (*next)(void *context, struct str *line, struct failure *f);
	void *context;
	int64_t rows; /* read so far; out */
};

/* For store_write(): all lines of a struct transfer_source (`source`), or nothing. The database must hold no
 * item and no history. SCHEMA_NEWER for an export of a newer dais; INVALID_REQUEST names the line. */
int transfer_import(struct tx *tx, void *source, struct failure *f);

#endif
