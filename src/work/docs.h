/* work/docs.h - documents of a project: plans, rules and pages, by slug, with their versions.
 *
 * A slug belongs to one kind for ever; only rules begin with rule/. The newest LIMIT_DOC_VERSIONS texts are
 * kept, the current one included. Texts are served as they are: never parsed, never filled in. */
#ifndef DAIS_WORK_DOCS_H
#define DAIS_WORK_DOCS_H

#include "base/field.h"
#include "work/work.h"

enum document_kind { DOCUMENT_PLAN, DOCUMENT_RULE, DOCUMENT_PAGE };
enum document_status { DOCUMENT_PENDING, DOCUMENT_ADOPTED };
extern const struct word document_kind_words[];
extern const struct word document_status_words[];
/* ^[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*$, at most LIMIT_SLUG_CHARS */
bool document_is_slug(struct str text);

/* Which document: docId, or slug and rootId (left out when the caller's scope is one project). */
struct document_target {
	struct arg_str doc;
	struct arg_str slug;
	struct arg_str root;
};
#define DOCUMENT_TARGET_FIELDS(type, member) \
	FIELD(type, member.doc, "docId", FIELD_ID, 0, .group = "target"), \
	FIELD(type, member.slug, "slug", FIELD_STR, 0, .group = "target", .legal = document_is_slug, \
		.syntax = "a slug"), \
	FIELD(type, member.root, "rootId", FIELD_ID, 0, .help = "with slug")

/* ---- docs_read ---- */
struct doc_list_args {
	struct arg_str root;
	struct arg_ints kinds;
	struct arg_int status;
	struct arg_str prefix;
	struct arg_strs fields;
	struct arg_int limit;
	struct arg_str cursor;
};
struct doc_get_args {
	struct document_target target;
	struct arg_int version;
	struct arg_int offset;
	struct arg_int max_chars;
	struct arg_bool outline;
};
struct doc_section_args {
	struct document_target target;
	struct arg_str anchor;
	struct arg_int offset;
};
struct doc_rule_args {
	struct arg_str root;
	struct arg_str key;
	struct arg_str item;
	struct arg_str note_key;
};
struct doc_versions_args {
	struct document_target target;
	struct arg_int limit;
	struct arg_str cursor;
};
int doc_list_check(const struct doc_list_args *in, struct str path, struct failure *f);
int doc_rule_check(const struct doc_rule_args *in, struct str path, struct failure *f);
int doc_list(struct snapshot *s, struct call *call, const struct doc_list_args *in, struct json_writer *out,
	struct failure *f);
int doc_get(struct snapshot *s, struct call *call, const struct doc_get_args *in, struct json_writer *out,
	struct failure *f);
int doc_section(struct snapshot *s, struct call *call, const struct doc_section_args *in, struct json_writer *out,
	struct failure *f);
int doc_rule(struct snapshot *s, struct call *call, const struct doc_rule_args *in, struct json_writer *out,
	struct failure *f);
int doc_versions(struct snapshot *s, struct call *call, const struct doc_versions_args *in,
	struct json_writer *out, struct failure *f);

/* ---- docs_write ---- */
struct doc_put_args {
	struct arg_int kind;
	struct arg_str slug;
	struct arg_str key; /* of a rule: slug rule/<key> */
	struct arg_str root;
	struct arg_str title; /* absent: stays; null: none */
	struct arg_str body;
	struct arg_str body_from_file; /* read into `body` before the transaction */
	struct arg_int expected_version; /* 0: must not exist */
};
struct doc_restore_args {
	struct document_target target;
	struct arg_int version;
};
struct doc_delete_args {
	struct document_target target;
	struct arg_int expected_version;
};
int doc_put_check(const struct doc_put_args *in, struct str path, struct failure *f);
int doc_put_prepare(struct call *call, struct doc_put_args *in, struct failure *f);
int doc_put(struct tx *tx, struct call *call, const struct doc_put_args *in, struct json_writer *out,
	struct failure *f);
int doc_restore(struct tx *tx, struct call *call, const struct doc_restore_args *in, struct json_writer *out,
	struct failure *f);
int doc_delete(struct tx *tx, struct call *call, const struct doc_delete_args *in, struct json_writer *out,
	struct failure *f);

/* ---- for others ---- */

struct document {
	int64_t n;
	struct id id;
	int64_t root_n;
	enum document_kind kind;
	struct str slug;
	struct str title; /* absent: none */
	enum document_status status; /* of plans */
	int64_t adopted_by_n; /* 0: none */
	int64_t version, bytes;
	struct str content_hash;
	int64_t modified_at;
	int64_t actor_n;
};
/* 1 found, 0 not, -1 failure. */
int document_find(struct snapshot *s, int64_t root_n, struct str slug, struct document *out, struct failure *f);
/* Text of a kept version: 1 found, 0 not kept, -1 failure. */
int document_text(struct snapshot *s, const struct document *doc, int64_t version, struct str *out,
	struct failure *f);
/* A pending plan becomes the plan of `item`; for ever. DUPLICATE when it was adopted already. */
int document_adopt(struct tx *tx, const struct document *doc, const struct item *item, struct failure *f);
/* The project that `root` names, or, when it is not given, the only one in the caller's scope. Depth 0, else a
 * bad field. */
int project_find(struct snapshot *s, struct call *call, const struct arg_str *root, struct item *out,
	struct failure *f);
int document_target_find(struct snapshot *s, struct call *call, const struct document_target *target,
	struct document *out, struct failure *f);

#endif
