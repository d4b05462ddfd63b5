/* base/field.h - arguments as tables: one table is the check, the advertised schema and the manual.
 *
 * field_read() turns a JSON object into a struct of arg_… members. It reports every fault at once, with
 * paths; unknown names beat every other fault. What a model encoded as text is accepted where the
 * meaning is certain ("[1,2]" for a list, "5" for 5) and warned about. null for an optional member
 * equals absence unless the field says that null is a value. */
#ifndef DAIS_BASE_FIELD_H
#define DAIS_BASE_FIELD_H

#include "base/failure.h"
#include "base/warning.h"

struct arg_str {
	struct str v;
	bool set, null;
};
struct arg_int {
	int64_t v;
	bool set, null;
};
struct arg_bool {
	bool v, set;
};
struct arg_strs {
	struct str *v;
	size_t n;
	bool set;
};
struct arg_ints { /* list of words */
	int64_t *v;
	size_t n;
	bool set;
};
struct arg_json {
	const json_t *v; /* lives as long as the call's JSON */
	bool set, null;
};
struct arg_object {
	void *v; /* struct of the nested table */
	bool set;
};
struct arg_objects {
	void *v; /* array of them */
	size_t n;
	bool set;
};

struct word {
	const char *text;
	int64_t value;
};
#define WORDS_END {NULL, 0}

enum field_kind {
	FIELD_STR,     /* arg_str; min, max in characters, or bytes with FIELD_BYTES */
	FIELD_INT,     /* arg_int; min, max */
	FIELD_BOOL,    /* arg_bool */
	FIELD_WORD,    /* arg_int; one of words */
	FIELD_ID,      /* arg_str; a UUID or a prefix of 8 to 31 digits: syntax checked here, resolved later */
	FIELD_TIME,    /* arg_int; RFC 3339 */
	FIELD_STRS,    /* arg_strs; min, max entries; item_max characters each */
	FIELD_WORDS,   /* arg_ints */
	FIELD_IDS,     /* arg_strs */
	FIELD_JSON,    /* arg_json; an object of at most `max` bytes of compact text */
	FIELD_OBJECT,  /* arg_object; fields, item_size */
	FIELD_OBJECTS, /* arg_objects; fields, item_size; min, max entries */
};

enum field_flag {
	REQUIRED = 1,	     /* must be there */
	NULLABLE = 2,	     /* null is a value, not absence */
	NOT_BLANK = 4,	     /* more than white space */
	TRIMMED = 8,	     /* outer white space is removed */
	IN_BYTES = 16,	     /* max counts bytes, and is answered by payload_too_large */
	FOLDED = 32,	     /* words in any case */
	UNIQUE_ENTRIES = 64, /* repeated entries of a list are dropped */
	ID_OR_IDS = 128,     /* FIELD_IDS: one id alone is a list of one */
	NOT_NULL = 256,	     /* null is refused, for updates where it would be taken as "clear it" */
};

struct field {
	const char *name;
	enum field_kind kind;
	unsigned flags;
	size_t offset;
	int64_t min, max; /* 0, 0: no bound but the general ones */
	int64_t item_max; /* characters of one entry of a list */
	const struct word *words;
	const struct field *fields;
	size_t item_size;
	const char *group;	 /* exactly one field of a group must be given */
	bool (*legal)(struct str text); /* further syntax of a string or of each entry */
	const char *syntax;	 /* … in words */
	const char *fallback;	 /* the default, for the manual */
	const char *help;	 /* one short line */
};

#define FIELD(type, member, name_, kind_, flags_, ...) \
	{.name = (name_), .kind = (kind_), .flags = (flags_), .offset = offsetof(type, member), __VA_ARGS__}
#define FIELDS_END {.name = NULL}
/* The same for a table whose callers are used to names that it must not have: `elsewhere` is a table of them that
 * ends with FIELDS_END, whose .help says where the thing is done. */
#define FIELDS_END_BUT(elsewhere) {.name = NULL, .fields = (elsewhere)}

/* Read `object` into the zeroed struct `out`. `path` precedes every name in faults ("ops[0]." or ""). -1
 * with all faults in *f. `skip` names members that the caller has read itself (NULL-terminated). */
int field_read(const struct field *fields, const json_t *object, struct str path, const char *const *skip,
	struct arena *arena, struct warnings *warnings, void *out, struct failure *f);
/* The nearest known name, for "did you mean", or NULL. */
const char *field_nearest(const struct field *fields, struct str name);
/* Text that holds a JSON array or object, read; NULL when it is not exactly that. Warns. */
json_t *json_from_text(const json_t *text, bool want_array, struct str path, struct warnings *warnings);

/* One parameter as the manual (describe) shows it. */
void field_describe(const struct field *field, struct json_writer *w);
/* The same as a JSON Schema property: "name":{…}. */
void field_schema(const struct field *field, struct json_writer *w);
/* The text of a word with this value, or "". */
const char *word_text(const struct word *words, int64_t value);

#endif
