/* work/note_gate.h - required notes, and authors that must be independent of each other. */
#ifndef DAIS_WORK_NOTE_GATE_H
#define DAIS_WORK_NOTE_GATE_H

#include "work/work.h"

/* Notes of one item as gates see them: loaded once per unit. */
struct note_row {
	int64_t n;
	struct str key;
	int64_t created_at;
	bool is_filled;
	bool is_temporal; /* its first line waives independence */
	enum verification verification;
};
struct note_rows {
	struct note_row *v;
	size_t n;
};
/* Nothing is read for a schema without notes. */
int note_rows_load(struct snapshot *s, const struct item *item, const struct schema *schema,
	struct note_rows *out, struct failure *f);

enum note_scope {
	NOTES_NONE,
	NOTES_OF_ROLE, /* the phase the item is in */
	NOTES_OF_ALL,
};

enum constraint { SAME_ACTOR, MISSING_ACTOR, UNVERIFIED };

struct violation {
	struct str key;
	struct str seat; /* of the declaring entry; absent: none */
	enum constraint constraint;
	struct str conflicting_seat; /* absent: none */
	bool is_waived;
};

struct note_findings {
	const struct rules_note **missing; /* in schema order */
	size_t missing_count;
	bool checks_independence; /* the check applies: mode is not off and the schema declares it */
	struct violation *violations;
	size_t violation_count;
	bool is_refused; /* a note is missing, or mode reject met a finding that is not waived */
};
int note_gate(struct snapshot *s, struct call *call, const struct item *item, const struct schema *schema,
	const struct note_rows *rows, enum note_scope scope, struct note_findings *out, struct failure *f);

/* Required notes of `role`: how many, how many filled; the first unfilled one that has guidance (NULL). */
struct note_progress {
	int64_t total, filled;
	const struct rules_note *guiding;
};
void note_progress(const struct schema *schema, const struct note_rows *rows, enum role role,
	struct note_progress *out);
/* Required notes of `role` that are not filled, in schema order; `out` has room for schema->note_count. */
size_t notes_unfilled(const struct schema *schema, const struct note_rows *rows, enum role role,
	const struct rules_note **out);

/* "missing":[{key,role,seat?}] under the given key */
void notes_write_missing(struct json_writer *w, const char *key, const struct rules_note *const *notes, size_t n);
/* "missingBySeat":{seat:[key]}; nothing for a schema without seats or when nothing is missing. */
void notes_write_by_seat(struct json_writer *w, const struct schema *schema, const struct rules_note *const *notes,
	size_t n);
/* "violations":[…]; an empty list only when `even_empty`. */
void notes_write_violations(struct json_writer *w, const struct note_findings *findings, bool even_empty);
/* "noteProgress":{filled,remaining,total} */
void notes_write_progress(struct json_writer *w, const struct note_progress *progress);
/* "guidanceKey", "skillPointer" of the note that guides next */
void notes_write_guidance(struct json_writer *w, const struct note_progress *progress);

#endif
