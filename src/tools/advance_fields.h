/* tools/advance_fields.h - argument tables of the workflow engine's operations. The ones of items_read and
 * items_write are used by the rows of those tools. */
#ifndef DAIS_TOOLS_ADVANCE_FIELDS_H
#define DAIS_TOOLS_ADVANCE_FIELDS_H

#include "tools/tool.h"
#include "work/advance.h"

extern const struct field gate_fields[];	  /* struct gate_args */
extern const struct field next_fields[];	  /* struct next_args */
extern const struct field complete_tree_fields[]; /* struct complete_tree_args */
extern const struct field transition_fields[];	  /* struct transition_args */
extern const struct field claim_fields[];	  /* struct claim_args */
extern const struct field release_fields[];	  /* struct release_args */
extern const struct field heartbeat_fields[];	  /* struct heartbeat_args */

/* .check of complete_tree */
int complete_tree_check(const void *args, struct str path, struct failure *f);

#endif
