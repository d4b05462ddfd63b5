/* threads/row.h - rows of the thread half: read whole, written whole, each write with its event.
 *
 * One table (threads/row.def) makes the structs, the SQL and the JSON of the events, so that no column can be forgotten
 * in one of them: a row is what its newest event says. Numbers ending in _n are row numbers (0: none); texts live in the
 * arena of the snapshot or transaction. */
#ifndef DAIS_THREADS_ROW_H
#define DAIS_THREADS_ROW_H

#include "store/store.h"

#define ROW(table, event) struct table##_row { int64_t n;
#define INT(column) int64_t column;
#define REF(column) int64_t column;
#define TEXT(column) struct str column;
#define OPT(column) struct str column;
#define JSON(column) struct str column;
#define END(table) };
#include "threads/row.def"

enum row_table {
#define ROW(table, event) ROW_##table,
#include "threads/row.def"
	ROW_TABLES,
};

const char *row_table_name(enum row_table table);
/* Names of the columns after n, NULL at the end: for tests. */
const char *const *row_columns(enum row_table table, struct arena *arena);

/* 1 found, 0 no such row, -1 failure. */
int row_get(struct snapshot *s, enum row_table table, int64_t n, void *row, struct failure *f);
/* The same for a row that must be there. */
int row_need(struct snapshot *s, enum row_table table, int64_t n, void *row, struct failure *f);
/* Number of the row with this id; tables with a column id only. 1, 0, -1. */
int row_find(struct snapshot *s, enum row_table table, struct str id, int64_t *out, struct failure *f);
/* Insert (n = 0: a new number is put into the row) or replace, and append the event to the log of `thread_n`. */
int row_put(struct tx *tx, enum row_table table, void *row, int64_t thread_n, struct failure *f);
/* Only for rebuilding: what an event says, without another event. */
int row_replay(struct tx *tx, enum row_table table, const json_t *data, struct failure *f);

#define GET(s, table, n, row, f) row_get((s), ROW_##table, (n), (row), (f))
#define NEED(s, table, n, row, f) row_need((s), ROW_##table, (n), (row), (f))
#define PUT(tx, table, row, thread_n, f) row_put((tx), ROW_##table, (row), (thread_n), (f))

#endif
