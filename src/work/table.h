/* work/table.h - which trigger leads from which role where: the transition table, and nothing else. */
#ifndef DAIS_WORK_TABLE_H
#define DAIS_WORK_TABLE_H

#include "rules/rules.h"

/* Where `trigger` of a user leads from `from`; false when the table has no such cell. `prev` is the role
 * before blocking (any value otherwise): damaged data has no way but cancel. */
bool table_target(enum role from, enum trigger trigger, bool has_review, enum role prev, enum role *out);
/* JSON array of the triggers that are allowed from `from`, in the fixed order. */
struct str table_allowed(struct arena *arena, enum role from, enum role prev);

/* Triggers of the server itself, on record as "cascade". */
enum cascade { CASCADE_NONE, CASCADE_COMPLETE, CASCADE_START, CASCADE_REOPEN };
const char *cascade_name(enum cascade cascade); /* complete, start, reopen */

enum cascade_verdict {
	CASCADE_SILENT, /* nothing to do, and nothing to tell */
	CASCADE_HELD,	/* the role stands against it: told as roleBlocked */
	CASCADE_GOES,
};
enum cascade_verdict table_cascade(enum role from, enum cascade cascade, enum role *out_to);

#endif
