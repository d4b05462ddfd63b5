/* providers/state.h - the state of a driver between two inputs: structs whose members a table names, so that saving,
 * loading and freeing are one loop each and nothing can be forgotten in one of them. */
#ifndef DAIS_PROVIDERS_STATE_H
#define DAIS_PROVIDERS_STATE_H

#include "base/failure.h"
#include "base/json.h"

enum state_type {
	STATE_BOOL, /* bool */
	STATE_INT,  /* int64_t */
	STATE_TEXT, /* struct str, owned: set with state_text */
	STATE_JSON, /* json_t *, owned: set with state_json */
};

struct state_field {
	const char *name;
	enum state_type type;
	size_t at;
	int64_t least, most; /* of an int that is an index or an enumerator; both 0: any */
};

#define STATE_FIELD(type, member, kind) {#member, kind, offsetof(struct type, member), 0, 0}
#define STATE_RANGE(type, member, least, most) {#member, STATE_INT, offsetof(struct type, member), least, most}
#define STATE_FIELDS_END {NULL, STATE_BOOL, 0, 0, 0}

/* An object with the members that are not zero. */
void state_save(const struct state_field *fields, const void *from, struct json_writer *w);
/* `to` is zeroed. What is missing stays zero; what has the wrong type or range is a failure. */
int state_load(const struct state_field *fields, const json_t *from, void *to, struct failure *f);
/* Frees what is owned and zeroes all members. */
void state_free(const struct state_field *fields, void *of);

/* Every STATE_JSON member that is missing becomes an empty object, so that nobody has to ask. */
void state_make_tables(const struct state_field *fields, void *of);
/* state_free, state_load, state_make_tables: whatever was there is gone, also after a failure. */
int state_reload(const struct state_field *fields, const json_t *from, void *to, struct failure *f);

/* At most `most` bytes of a text that only identifies: what is not printable ASCII becomes _. The bytes written. */
size_t state_plain(char *to, size_t most, struct str text);
/* Replace what is owned. Absent text stays absent; `json` is stolen. */
void state_text(struct str *owned, struct str text);
void state_json(json_t **owned, json_t *json);
/* A member of a table's row, left out when absent. */
void state_row_text(json_t *row, const char *key, struct str value);
/* Bytes that `text` takes in the saved state: what others choose is counted before it is kept. */
size_t state_cost(struct str text);

#endif
