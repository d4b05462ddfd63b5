/* work/independence.h - inside the NOTE gate: whether one identity wrote what two seats should have. */
#ifndef DAIS_WORK_INDEPENDENCE_H
#define DAIS_WORK_INDEPENDENCE_H

#include "work/note_gate.h"

/* The filled note with this key, or NULL. */
struct note_row *note_row_filled(const struct note_rows *rows, struct str key);

/* Adds violations to `findings`, and refuses in mode reject. Findings never hold an identity. */
int independence_check(struct snapshot *s, struct call *call, const struct item *item,
	const struct schema *schema, const struct note_rows *rows, enum note_scope scope,
	struct note_findings *findings, struct failure *f);

#endif
