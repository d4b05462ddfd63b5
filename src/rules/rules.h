/* rules/rules.h - what a project demands: YAML documents, layers, and the effective schema of an item.
 *
 * A document is parsed once into an immutable struct rules_doc (reference counted, shared between
 * threads). Resolution is a pure function of the project's document, the global document and what
 * the item says of itself. Grammar and merge rules: docs/rules.md. */
#ifndef DAIS_RULES_RULES_H
#define DAIS_RULES_RULES_H

#include "base/failure.h"
#include "base/warning.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* The phases a note can belong to, and the roles of an item. The numbers are the ranks of the
 * dependency gate and are stored: blocked satisfies nothing. */
enum role { ROLE_BLOCKED = -1, ROLE_QUEUE = 0, ROLE_WORK = 1, ROLE_REVIEW = 2, ROLE_TERMINAL = 3 };
#define ROLE_COUNT 5
const char *role_name(enum role role);
bool role_parse(struct str text, enum role *out); /* ASCII case folded */

/* User triggers in the order of every `allowed` list, then the cascade label key. */
enum trigger {
	TRIGGER_START,
	TRIGGER_COMPLETE,
	TRIGGER_BLOCK,
	TRIGGER_HOLD,
	TRIGGER_RESUME,
	TRIGGER_CANCEL,
	TRIGGER_REOPEN,
	TRIGGER_CASCADE,
	TRIGGER_COUNT,
};
const char *trigger_name(enum trigger trigger);
bool trigger_parse(struct str text, enum trigger *out); /* ASCII case folded; never TRIGGER_CASCADE */

enum lifecycle { LIFECYCLE_AUTO, LIFECYCLE_MANUAL, LIFECYCLE_PERMANENT, LIFECYCLE_AUTO_REOPEN };
const char *lifecycle_name(enum lifecycle lifecycle);
enum resolution { RESOLUTION_LEGACY, RESOLUTION_LAYERED, RESOLUTION_ISOLATED };
enum rules_mode { RULES_OFF, RULES_WARN, RULES_REJECT };
enum rules_source { RULES_NONE, RULES_PROJECT, RULES_GLOBAL };
const char *rules_source_name(enum rules_source source);

struct rules_note {
	struct str key;
	enum role role;
	bool is_required;
	struct str description;
	struct str guidance;	/* absent: none */
	struct str skill;	/* absent: none */
	int64_t max_chars;	/* 0: none */
	struct str seat;	/* valid owner or absent */
	const struct str *independent_of; /* seat names */
	size_t independent_count;
	struct str from_trait; /* absent: of the base schema */
};

struct rules_seat {
	struct str name;
	enum role phase;
	bool enters;
	const struct str *after;
	size_t after_count;
	const struct str *reads_exclude; /* note keys */
	size_t reads_exclude_count;
};

struct rules_resource {
	struct str key;
	bool is_exclusive;
	int64_t ttl_seconds; /* resolved: requirement, else registry, else 3600; clamped to 1..86400 */
	bool is_declared;    /* has a registry entry */
};

struct rules_dispatch {
	struct str agent, model, effort; /* absent: not set */
};
struct rules_seat_dispatch {
	struct str seat;
	struct rules_dispatch profile;
};
struct rules_phase_dispatch {
	bool is_set;
	struct rules_dispatch profile;
	const struct rules_seat_dispatch *seats;
	size_t seat_count;
};

/* The effective schema: base + default traits + item traits, both layers merged. */
struct schema {
	enum rules_source source; /* RULES_NONE: schema-free */
	struct str type;	  /* the schema's name: a type, a tag or "default"; absent when none */
	enum lifecycle lifecycle;
	const struct rules_note *notes; /* base notes, then trait notes, in order */
	size_t note_count;
	const struct str *traits; /* applied, default traits first */
	size_t trait_count;
	const struct rules_seat *seats;
	size_t seat_count;
	const struct rules_resource *resources; /* sorted by key */
	size_t resource_count;
	struct rules_phase_dispatch dispatch[3]; /* by ROLE_QUEUE, ROLE_WORK, ROLE_REVIEW */
	bool has_review; /* at least one note of role review */
	const struct str *unknown_traits; /* named by the item, defined nowhere */
	size_t unknown_trait_count;
	const struct str *demoted_seats; /* second seat with `enters` of a phase, arrived by merging: hint only */
	size_t demoted_seat_count;
};

struct rules_doc; /* one parsed document */

/* Parse `yaml` (bytes as stored; a BOM is skipped). `name` is for messages: a file name, or absent for
 * a pushed text. Failures are FAIL_CONFIG_INVALID with one field per error: path is the YAML path
 * (traits.needs-a11y.notes[0].role, or "" for syntax) and reason ends with "at line L, column C"
 * (":L:C" after the file name in message). PAYLOAD_TOO_LARGE over LIMIT_CONFIG_BYTES. Warnings (codes of
 * the manual: W1…, note_skipped, …) go to `warnings`, each with its path.
 * `is_global` admits actor_authentication and treats isolated resolution as layered. */
int rules_parse(struct str yaml, struct str name, bool is_global, struct warnings *warnings,
	struct rules_doc **out, struct failure *f);
struct rules_doc *rules_doc_ref(struct rules_doc *doc);
void rules_doc_unref(struct rules_doc *doc); /* accepts NULL */
/* SHA-256 hex of the text without a leading BOM and with CRLF as LF. */
struct str rules_fingerprint(struct arena *arena, struct str yaml);
struct str rules_doc_fingerprint(const struct rules_doc *doc);
/* Warnings that need both layers, for a project's document when it is pushed or validated: default traits
 * that neither layer defines, resources that neither describes. rules_parse gives them for a global
 * document itself. Either may be NULL. */
void rules_check_layers(const struct rules_doc *project, const struct rules_doc *global, struct warnings *warnings);
/* Sections that are not honoured: unknown ones and, in a project's document, those that only the global
 * one may have. Sections that only clients read are not listed. */
size_t rules_doc_ignored(const struct rules_doc *doc, const struct str **out);
/* project.rootId and project.name of the document, absent when not given. */
struct str rules_doc_root_id(const struct rules_doc *doc);
struct str rules_doc_project_name(const struct rules_doc *doc);

/* Both layers as one call sees them. Either may be NULL. `version` is the project's document version
 * (the global one's when there is none), 0 when no document exists. */
struct rules_view {
	const struct rules_doc *project;
	const struct rules_doc *global;
	int64_t version;
	struct str fingerprint; /* of the layer that `version` speaks of */
	bool is_degraded;	/* the stored text could not be read; an earlier good parse is served */
};

/* Resolve; results live in `arena` or in the documents (which the view keeps alive). Without a base
 * schema (source RULES_NONE) there are no notes and no seats; resources and dispatch of the item's traits
 * hold all the same. In isolated mode traits, like schemas, come from the project's document only; the
 * registry of resources is shared in every mode. Thread-safe. */
void rules_schema(const struct rules_view *view, struct str type, const struct str *tags, size_t tag_count,
	const struct str *traits, size_t trait_count, struct arena *arena, struct schema *out);
enum resolution rules_resolution(const struct rules_view *view);
const char *resolution_name(enum resolution resolution);

/* true and *label (absent text = explicitly none) for the label of a trigger; the built-in default is
 * included, so every trigger has an answer. */
struct str rules_label(const struct rules_view *view, enum trigger trigger);
enum rules_mode rules_note_limits(const struct rules_view *view); /* RULES_WARN or RULES_REJECT */
enum rules_mode rules_independence(const struct rules_view *view, bool *require_verified);
bool rules_owner_only(const struct rules_view *view); /* note_ownership: owner */
const char *rules_mode_name(enum rules_mode mode);

/* The note entry with this key in a schema, or NULL. */
const struct rules_note *schema_note(const struct schema *schema, struct str key);
const struct rules_seat *schema_seat(const struct schema *schema, struct str name);

/* Legal key of a rule document: ^[a-z0-9][a-z0-9._-]{0,99}$ */
bool rules_is_rule_key(struct str key);
/* Legal resource key: ^[a-z0-9][a-z0-9\-_./]*$, at most 128 characters. */
bool rules_is_resource_key(struct str key);

/* ---- listings for tools: names in document order ---- */
struct rules_type_row {
	struct str name;
	enum rules_source source;
};
/* Types visible through the view (work_item_schemas of both layers by the resolution mode; project wins). */
size_t rules_types(const struct rules_view *view, struct arena *arena, struct rules_type_row **out);
size_t rules_traits(const struct rules_view *view, struct arena *arena, struct rules_type_row **out);
/* Types (exact) whose default_traits name `trait`, through the view. For filters by trait. */
size_t rules_types_with_trait(const struct rules_view *view, struct str trait, struct arena *arena,
	struct str **out);
struct rules_registry_row {
	struct str key;
	struct str description;
	int64_t default_ttl_seconds;
	enum rules_source source;
};
size_t rules_registry(const struct rules_view *view, struct arena *arena, struct rules_registry_row **out);

#endif
