/* work/parts.h - what `fields` adds to an item in an answer, and how many rows an answer holds. */
#ifndef DAIS_WORK_PARTS_H
#define DAIS_WORK_PARTS_H

#include "base/field.h"
#include "work/work.h"

enum part {
	PART_ANCESTORS = 1 << 0,
	PART_DESCRIPTION = 1 << 1,
	PART_PROPERTIES = 1 << 2,
	PART_METADATA = 1 << 3,
	PART_CHILD_COUNTS = 1 << 4,
	PART_NOTES = 1 << 5,
	PART_NOTE_PROGRESS = 1 << 6,
	PART_DEPENDENCIES = 1 << 7,
	PART_CLAIM = 1 << 8,
	PART_CREATED_BY = 1 << 9,
	PART_SUMMARY = 1 << 10,
	PART_TAGS = 1 << 11,
	PART_ALL = (1 << 12) - 1,
};

/* Names of `fields` that select no part of `allowed` are faults at <path>fields[i]. */
int parts_check(const struct arg_strs *fields, unsigned allowed, struct str path, struct failure *f);
unsigned parts_of(const struct arg_strs *fields);
/* Members of the parts. `is_full`: the item was written with summary and tags already. In listings the holder of a
 * claim is shown to nobody. */
int parts_write(struct json_writer *w, struct snapshot *s, struct call *call, const struct item *item,
	unsigned parts, bool is_full, struct failure *f);
/* "ancestors":[{id,title,role}], root first; nothing for a root. */
int ancestors_write(struct json_writer *w, struct snapshot *s, struct call *call, int64_t parent_n,
	struct failure *f);
/* "claim":{state} */
void claim_state_write(struct json_writer *w, const struct item *item, int64_t now);

/* ---- rows of an answer that has a budget ---- */

/* A row is written between row_begin and row_end. row_end is false when the answer got too long with it: the row is
 * taken back, call->page.is_shrunk is set, and the page ends before it. The first row always stays. */
struct rows {
	struct json_writer *w;
	struct call *call;
	size_t n;   /* rows that stand */
	size_t end; /* bytes of the answer at which it is full */
	size_t mark;
};
void rows_init(struct rows *rows, struct json_writer *w, struct call *call);
void row_begin(struct rows *rows);
bool row_end(struct rows *rows);

#endif
