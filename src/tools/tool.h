/* tools/tool.h - what an agent can ask for: one table of tools, each a table of operations.
 *
 * An operation's field table is its check, its advertised schema and its manual. A changing operation
 * runs on the writer thread inside the call's transaction and writes its result members (without ok and
 * op) to `out`; a reading one runs on a snapshot and writes the members of `data`. */
#ifndef DAIS_TOOLS_TOOL_H
#define DAIS_TOOLS_TOOL_H

#include "base/field.h"
#include "work/work.h"

struct operation {
	const char *name; /* value of op or select */
	const char *summary;
	const struct field *fields;
	size_t args_size;
	unsigned profiles;     /* PROFILE_… bits that have it */
	unsigned capability;   /* CAP_… all needed */
	/* exactly one of these */
	int (*change)(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f);
	int (*read)(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f);
	/* Further checks of shape across fields, before anything runs; faults by fail_field(). */
	int (*check)(const void *args, struct str path, struct failure *f);
	/* More capabilities that these very arguments need. */
	unsigned (*also_needs)(const void *args);
	/* On the caller's thread before a change is queued: what needs I/O of its own (reading a file). */
	int (*prepare)(struct call *call, void *args, struct failure *f);
	/* A replay of a stored result: may add members that depend on the present ("stale":true). */
	int (*replayed)(struct tx *tx, struct call *call, const json_t *stored, struct json_writer *out,
		struct failure *f);
	const char *returns; /* for the manual: {deleted,notFound} */
	const enum failure_code *errors;
	size_t error_count;
	const char *example; /* arguments of one call, JSON */
	bool is_quick;	     /* a point read: may run on the thread that asks */
	bool frees_space;    /* admitted while the disk is full */
	bool fails_clean;    /* whatever it refuses, it refuses before its first change (store_job) */
	bool ends_credentials; /* open streams are looked at again afterwards */
	bool is_whole;	     /* complete_tree: remembered (idempotency) only when everything succeeded */
};

struct tool {
	const char *name;
	const char *title;
	const char *description;
	const struct operation *selects; /* reading operations; NULL: none */
	size_t select_count;
	const struct operation *ops; /* changing operations; NULL: none */
	size_t op_count;
	bool is_destructive;
	bool is_idempotent;
	const struct plain *plain; /* one operation without an envelope, instead of the above; NULL: none */
};

#define ERRORS(...) \
	.errors = (const enum failure_code[]){__VA_ARGS__}, \
	.error_count = sizeof((const enum failure_code[]){__VA_ARGS__}) / sizeof(enum failure_code)

/* Every tool, in the order of tools/list. */
extern const struct tool *const tool_table[];
extern const size_t tool_count;

const struct tool *tool_find(struct str name);
/* The operation of this name, or NULL; *is_select tells from which table. */
const struct operation *tool_operation(const struct tool *tool, struct str name, bool *is_select);
/* At least one operation belongs to the profile. */
bool tool_in_profile(const struct tool *tool, enum profile profile);

extern const struct tool tool_items_read, tool_items_write, tool_notes_read, tool_notes_write, tool_deps_read,
	tool_deps_write, tool_advance, tool_docs_read, tool_docs_write, tool_config, tool_report;

#endif
