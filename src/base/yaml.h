/* base/yaml.h - YAML read into a small tree, with the place of everything.
 *
 * A scalar is text: what it means is decided by whoever reads it, never by what it looks like (`off`,
 * `1.10` and `0123` stay as written). The dialect is what people need in a file of settings; the rest
 * is refused with line and column: tags, merge keys, duplicate keys, keys that are no text, tabs as
 * indentation, several documents, other encodings than UTF-8 (a BOM is skipped), U+0000, more than
 * LIMIT_YAML_DEPTH levels or LIMIT_YAML_BYTES.
 *
 * Aliases share nodes: a text of a few lines may describe a tree whose full walk never ends. Read
 * what a grammar asks for; do not walk a tree blindly. */
#ifndef DAIS_BASE_YAML_H
#define DAIS_BASE_YAML_H

#include "base/str.h"

#include <stdint.h>

enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP };

/* Lines and columns count from 1; a column is a code point. */
struct yaml_place {
	uint32_t line;
	uint32_t column;
};

struct yaml {
	enum yaml_kind kind;
	bool is_plain;	     /* text without quotes and not a block: `null` and `true` mean more than text */
	uint8_t height;	     /* levels below and with this node; text: 0 */
	struct yaml_place at;
	struct str text;     /* YAML_TEXT: never absent */
	struct yaml_entry *entries; /* YAML_LIST (no keys) and YAML_MAP, in the order written */
	size_t count;
};

struct yaml_entry {
	struct str key; /* absent in a list */
	struct yaml_place at; /* of the key */
	const struct yaml *value;
};

struct yaml_error {
	struct yaml_place at;
	struct str path;   /* traits.a.notes[0] for what is wrong inside a tree, "" for bad syntax */
	struct str reason; /* without the place */
};

/* Read one document. Everything of the tree and of the error lives in `arena`; nothing points into
 * `text`. An empty document, and one that is just `null`, reads as an empty map. -1 with *error. */
int yaml_read(struct str text, struct arena *arena, const struct yaml **out, struct yaml_error *error);

/* The value of a key of a map, or NULL (also when `node` is NULL or no map). */
const struct yaml *yaml_get(const struct yaml *node, struct str key);
/* Nothing written, `~` or `null`, without quotes. */
bool yaml_is_null(const struct yaml *node);
/* `true` or `false` without quotes, nothing else. */
bool yaml_bool(const struct yaml *node, bool *out);
/* Text that other readers of YAML take for a boolean: yes, no, on, off, y, n, True, FALSE … */
bool yaml_looks_boolean(const struct yaml *node);
/* A whole decimal number without quotes. */
bool yaml_int(const struct yaml *node, int64_t *out);
/* "a mapping", "a list", "nothing", "text": for messages. */
const char *yaml_kind_name(const struct yaml *node);
/* Line and column of a byte offset; LF, CRLF and CR end a line. */
struct yaml_place yaml_place_of(struct str text, size_t offset);

#endif
