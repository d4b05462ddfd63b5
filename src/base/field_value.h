/* base/field_value.h - what field.c and field_value.c share: stays inside of this room. */
#ifndef DAIS_BASE_FIELD_VALUE_H
#define DAIS_BASE_FIELD_VALUE_H

#include "base/field.h"

/* One call of field_read(): faults go to *f, and reading goes on. */
struct reading {
	struct arena *arena;
	struct warnings *warnings;
	struct failure *f;
};

/* Read `value` into the arg_… struct that belongs to the field's kind: every kind but the two of objects. */
void value_read(struct reading *r, const struct field *field, struct str path, const json_t *value, void *member);

/* The array that `value` is, or spells; NULL after a report. The caller drops the reference. */
json_t *value_array(struct reading *r, const struct field *field, struct str path, const json_t *value);
/* The object that `value` is, or spells, which lives as long as the call; NULL after a report. */
const json_t *value_object(struct reading *r, struct str path, const json_t *value);
/* Give the reference to `value` to the call. */
void value_keep(struct reading *r, json_t *value);

#endif
