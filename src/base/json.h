/* base/json.h - JSON in and out.
 *
 * Reading is jansson's, behind limits that are checked before it sees the text: bytes, depth,
 * number of values, lengths; duplicate keys are refused; integers are exact to 64 bits; text is
 * strict UTF-8. A lone surrogate escape reads as U+0000, and a number that no int64 or double holds as a
 * string that begins with it, so that the field check can refuse them with their path. Writing is append-only text: no tree is built for an answer. */
#ifndef DAIS_BASE_JSON_H
#define DAIS_BASE_JSON_H

#include "base/arena.h"
#include "base/str.h"

#include <jansson.h>

#define JSON_OUT_OF_RANGE "number out of range" /* after the U+0000 */

enum json_problem {
	JSON_FINE,
	JSON_NOT_UTF8,
	JSON_SYNTAX,
	JSON_OVER_LIMIT,  /* well-formed as far as it goes, but too deep, too many, too long */
	JSON_DUPLICATE_KEY,
};

struct json_error {
	enum json_problem problem;
	size_t at; /* byte offset */
	char text[160];
};

/* NULL and *error filled when it cannot be read. The caller owns a reference (json_auto_t or json_decref). */
json_t *json_read(struct str text, struct json_error *error);

/* Views into a jansson value; absent (p == NULL) when it is not there or not a string. */
struct str json_str(const json_t *string);
struct str json_member_str(const json_t *object, const char *key);
/* "string", "integer", … for messages. */
const char *json_type_name(const json_t *value);
/* A short, printable rendering for `received`: at most 80 bytes, never a whole body. */
struct str json_received(struct arena *arena, const json_t *value);
/* Sorted keys, no blanks: equal values have equal text. Used for fingerprints. */
struct str json_canonical(struct arena *arena, const json_t *value);
/* The same with keys in their order: a text that json_writer wrote comes out as it was. */
struct str json_compact(struct arena *arena, const json_t *value);
/* For reading by people and models: two blanks a level. */
struct str json_indented(struct arena *arena, const json_t *value);

/* ---- writing ---- */

struct json_writer {
	struct buf *out;
	bool comma; /* a value was written at this level */
};

void json_writer_init(struct json_writer *w, struct buf *out);
void jw_object_begin(struct json_writer *w);
void jw_object_end(struct json_writer *w);
void jw_array_begin(struct json_writer *w);
void jw_array_end(struct json_writer *w);
void jw_key(struct json_writer *w, const char *key); /* one of our words: written as it is */
void jw_key_str(struct json_writer *w, struct str key);
void jw_str(struct json_writer *w, struct str value);
void jw_text(struct json_writer *w, const char *value);
void jw_int(struct json_writer *w, int64_t value);
void jw_real(struct json_writer *w, double value);
void jw_bool(struct json_writer *w, bool value);
void jw_null(struct json_writer *w);
/* `json` is one complete value, or, for jw_members, the members of an object without braces. */
void jw_raw(struct json_writer *w, struct str json);
void jw_members(struct json_writer *w, struct str members);
void jw_json(struct json_writer *w, const json_t *value);

/* key + value; the _opt forms write nothing for absent text, zero or false. */
void jw_kstr(struct json_writer *w, const char *key, struct str value);
void jw_ktext(struct json_writer *w, const char *key, const char *value);
void jw_kint(struct json_writer *w, const char *key, int64_t value);
void jw_kbool(struct json_writer *w, const char *key, bool value);
void jw_kraw(struct json_writer *w, const char *key, struct str json);
void jw_kstr_opt(struct json_writer *w, const char *key, struct str value);
void jw_kint_opt(struct json_writer *w, const char *key, int64_t value);
void jw_kbool_opt(struct json_writer *w, const char *key, bool value);
void jw_kobject(struct json_writer *w, const char *key);
void jw_karray(struct json_writer *w, const char *key);
/* UTC milliseconds as 2026-03-02T08:15:30.120Z. */
void jw_ktime(struct json_writer *w, const char *key, int64_t at);

/* `text` escaped as the inside of a JSON string, without quotes. */
void json_escape(struct buf *out, struct str text);

#endif
