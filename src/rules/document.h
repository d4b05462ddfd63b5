/* rules/document.h - inside the room: a parsed document, and what its sections are read with. */
#ifndef DAIS_RULES_DOCUMENT_H
#define DAIS_RULES_DOCUMENT_H

#include "base/yaml.h"
#include "rules/rules.h"

#include <stdatomic.h>

/* ---- what a document holds; written while it is parsed, never afterwards ---- */

struct note_list {
	const struct rules_note *notes; /* seat is as written; from_trait is set */
	size_t count;
};

struct seat_list {
	const struct rules_seat *seats;
	size_t count;
};

struct name_list {
	const struct str *names;
	size_t count;
};

/* Everything that is looked up by name begins with it. */
struct schema_entry {
	struct str name;
	enum lifecycle lifecycle;
	struct name_list default_traits;
	struct seat_list seats;
	struct note_list notes;
};

struct requirement {
	struct str key;
	bool is_exclusive;
	int64_t ttl_seconds; /* 0: not given */
};

/* A field of a seat override: not given, cleared (value absent), or set. */
struct override {
	bool is_given;
	struct str value;
};

struct seat_override {
	struct str seat;
	struct override agent, model, effort;
};

struct phase_dispatch {
	struct rules_dispatch profile;
	bool has_profile; /* at least one field */
	const struct seat_override *overrides;
	size_t override_count;
};

struct trait_entry {
	struct str name;
	struct note_list notes;
	struct seat_list seats;
	const struct requirement *resources;
	size_t resource_count;
	struct phase_dispatch dispatch[3];
	bool has_dispatch;
};

struct registry_entry {
	struct str name;
	struct str description;
	int64_t ttl_seconds;
};

/* A section of named entries: in document order, and an index sorted by name. An index element points
 * to the name that the entry begins with. */
struct index {
	const struct str **sorted;
	size_t count;
};

struct label {
	bool is_given;
	struct str text; /* absent: explicitly none */
};

struct rules_doc {
	atomic_int references;
	struct arena *arena;
	struct str fingerprint;
	bool is_global;

	struct schema_entry *types;
	struct index type_index;
	struct schema_entry *tags; /* note_schemas */
	struct index tag_index;
	struct trait_entry *traits;
	struct index trait_index;
	struct registry_entry *registry;
	struct index registry_index;

	bool has_labels;
	struct label labels[TRIGGER_COUNT];
	bool has_resolution;
	enum resolution resolution;
	bool has_note_limits;
	enum rules_mode note_limits;
	bool has_independence;
	enum rules_mode independence;
	bool require_verified;
	bool has_ownership;
	bool is_owner_only;
	struct str root_id;
	struct str project_name;
	struct name_list ignored;
};

/* Of `count` entries of `stride` bytes that begin with their name. */
void index_build(struct index *index, struct arena *arena, const void *first, size_t stride, size_t count);
/* The entry (one of them, where a name occurs twice), or NULL. */
const void *index_find(const struct index *index, struct str name);

/* NULL when there is none. */
const struct schema_entry *find_type(const struct rules_doc *doc, struct str name);
const struct schema_entry *find_tag(const struct rules_doc *doc, struct str name);
const struct trait_entry *find_trait(const struct rules_doc *doc, struct str name);
const struct registry_entry *find_registry(const struct rules_doc *doc, struct str name);
bool name_list_has(const struct name_list *list, struct str name);

/* ---- reading ---- */

struct reading {
	struct rules_doc *doc;
	struct arena *scratch; /* of the call: the tree, paths */
	struct warnings *warnings;
	struct failure *f;
	struct str file; /* absent: a pushed text */
	size_t errors;
	size_t warning_count;
	struct yaml_place first_at; /* of the first error */
};

/* Where we are, linked upwards on the C stack and rendered only for a message. */
struct path {
	const struct path *up;
	struct str key; /* absent: an element */
	size_t index;
};

#define PATH_KEY(up_, key_) (&(struct path){.up = (up_), .key = (key_)})
#define PATH_ITEM(up_, index_) (&(struct path){.up = (up_), .index = (index_)})

struct str path_text(struct arena *arena, const struct path *path);

/* An error: the document will be refused, reading goes on to find the others. */
void refuse(struct reading *r, const struct path *path, struct yaml_place at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Call before the field of an error is added to r->f by other means. */
void count_error(struct reading *r, struct yaml_place at);
void remark(struct reading *r, const char *code, const struct path *path, struct yaml_place at,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* "; did you mean \"required\"?" or "". */
const char *near_name(struct reading *r, struct str word, const char *const *names);
bool is_one_of(struct str word, const char *const *names); /* names ends with NULL */

/* A section or entry that must have this shape; NULL when it is null (nothing written) or refused. */
const struct yaml *want_map(struct reading *r, const struct path *path, const struct yaml *node);
const struct yaml *want_list(struct reading *r, const struct path *path, const struct yaml *node, size_t max);
/* The text of an optional field, copied to the document; absent, with a remark, when it is no text. */
struct str read_text(struct reading *r, const struct path *up, const struct yaml *map, const char *key);
/* A boolean field: what is neither true nor false is refused. */
bool read_bool(struct reading *r, const struct path *up, const struct yaml *map, const char *key, bool otherwise);
/* A whole number, clamped to low..high with a remark; `otherwise` when absent or no number (remark). */
int64_t read_int(struct reading *r, const struct path *up, const struct yaml *map, const char *key,
	int64_t low, int64_t high, int64_t otherwise);
/* Texts of a list; what is no text is left out with a remark of this code. */
struct name_list read_names(struct reading *r, const struct path *path, const struct yaml *list, const char *code);

/* ---- sections ---- */

struct note_list read_notes(struct reading *r, const struct path *path, const struct yaml *node, struct str trait);
struct seat_list read_seats(struct reading *r, const struct path *path, const struct yaml *node);
void read_traits(struct reading *r, const struct path *path, const struct yaml *node);
void read_registry(struct reading *r, const struct path *path, const struct yaml *node);
void read_dispatch(struct reading *r, const struct path *path, const struct yaml *node, struct trait_entry *trait);
void read_labels(struct reading *r, const struct path *path, const struct yaml *node);
void read_resolution(struct reading *r, const struct path *path, const struct yaml *node);
void read_note_limits(struct reading *r, const struct path *path, const struct yaml *node);
void read_independence(struct reading *r, const struct path *path, const struct yaml *node);
void read_ownership(struct reading *r, const struct path *path, const struct yaml *node);
void check_authentication(struct reading *r, const struct path *path, const struct yaml *node);

/* Seat errors F1-F4 of every scope, then, if there are none, the warnings W5. */
void check_seats(struct reading *r, const struct yaml *root);
/* One resource in many traits. */
void check_fanout(struct reading *r);
/* What only shows when both layers are known: default traits that are defined nowhere, resources
 * without an entry. `global` may be NULL. r->doc is not used. */
void check_layers(struct reading *r, const struct rules_doc *doc, const struct rules_doc *global);

bool phase_parse(struct str text, enum role *out); /* exactly queue, work, review */
extern const char *const phase_words[];

#endif
