/* work/config.h - the rules documents of projects, and the global one: pushed, read, rolled back, imported.
 *
 * A text is stored byte for byte. Its fingerprint says what it is: a push of the present text changes nothing,
 * a push of an earlier one needs force, so that a stale checkout cannot turn rules back. The history is linear
 * and keeps LIMIT_CONFIG_VERSIONS versions, the present one included. Root 0 is the global document. */
#ifndef DAIS_WORK_CONFIG_H
#define DAIS_WORK_CONFIG_H

#include "base/field.h"
#include "work/work.h"

enum config_source { CONFIG_PUSH, CONFIG_ROLLBACK, CONFIG_IMPORT, CONFIG_FORCE };

/* ---- config, selects ---- */
struct config_current_args {
	struct arg_str root; /* unset: the global document */
	struct arg_bool include_text; /* unset: true */
};
struct config_effective_args {
	struct arg_str root;
};
struct config_versions_args {
	struct arg_str root;
	struct arg_int limit;
	struct arg_str cursor;
};
struct config_relation_args {
	struct arg_str root;
	struct arg_str fingerprint;
};
struct config_rules_args {
	struct arg_str root;
};
int config_current(struct snapshot *s, struct call *call, const struct config_current_args *in,
	struct json_writer *out, struct failure *f);
int config_effective(struct snapshot *s, struct call *call, const struct config_effective_args *in,
	struct json_writer *out, struct failure *f);
int config_versions(struct snapshot *s, struct call *call, const struct config_versions_args *in,
	struct json_writer *out, struct failure *f);
int config_relation(struct snapshot *s, struct call *call, const struct config_relation_args *in,
	struct json_writer *out, struct failure *f);
int config_rules(struct snapshot *s, struct call *call, const struct config_rules_args *in,
	struct json_writer *out, struct failure *f);

/* ---- config, ops ---- */
struct config_push_args {
	struct arg_str root;
	struct arg_str yaml;
	struct arg_bool force;
	struct arg_str expected_fingerprint;
	struct arg_bool dry_run;
};
struct config_validate_args {
	struct arg_str yaml;
	struct arg_str root;
};
struct config_rollback_args {
	struct arg_str root;
	struct arg_int version;
};
int config_push(struct tx *tx, struct call *call, const struct config_push_args *in, struct json_writer *out,
	struct failure *f);
int config_validate(struct tx *tx, struct call *call, const struct config_validate_args *in,
	struct json_writer *out, struct failure *f);
int config_rollback(struct tx *tx, struct call *call, const struct config_rollback_args *in,
	struct json_writer *out, struct failure *f);

/* ---- for others ---- */

/* The head of a stored document. */
struct config_head {
	int64_t version; /* 0: there is none */
	struct str fingerprint;
	int64_t updated_at;
};
int config_head_load(struct snapshot *s, int64_t root_n, struct config_head *out, struct failure *f);
/* Kept versions of which the text has this fingerprint: 1 there is one, 0 none, -1 failure. */
int config_was(struct snapshot *s, int64_t root_n, struct str fingerprint, struct failure *f);
/* The project's document and its history go, and the global rules hold again. 1 gone, 0 there was none. */
int config_remove(struct tx *tx, int64_t root_n, struct failure *f);
/* A note of the present rules names this rule key as its skill. */
int config_uses_rule(struct snapshot *s, struct call *call, int64_t root_n, struct str key, bool *out,
	struct failure *f);
/* How many open items of the project would be held by missing notes that let them pass now, and the reverse.
 * Looks at the first LIMIT_IMPACT_ITEMS. */
struct config_impact {
	int64_t items, newly_gated, no_longer_gated;
	bool is_cut;
};
int config_impact(struct snapshot *s, int64_t root_n, const struct rules_view *before,
	const struct rules_view *after, struct config_impact *out, struct failure *f);

/* The mounted global document, at start: becomes the stored one when it differs. As a store_write() job.
 * CONFIG_INVALID names `path`, line and column, and leaves the stored document in force. */
struct config_import {
	struct str yaml;
	const char *path; /* for messages */
};
int config_import_global(struct tx *tx, void *config_import, struct failure *f);

#endif
