/* work/work.h - the item graph: what every operation of the work half shares.
 *
 * What changes something takes a struct tx and runs on the writer thread; what only reads takes a struct
 * snapshot (of a transaction: &tx->snapshot). Results live in the snapshot's arena. The operations
 * themselves are in items.h, advance.h, notes.h, deps.h, docs.h, config.h, report.h and search.h. */
#ifndef DAIS_WORK_WORK_H
#define DAIS_WORK_WORK_H

#include "base/failure.h"
#include "base/warning.h"
#include "identity/identity.h"
#include "rules/cache.h"
#include "rules/rules.h"
#include "store/store.h"

/* One tool call as its operations see it. */
struct call {
	struct arena *arena;
	const struct caller *caller;
	struct warnings warnings;
	struct rules *rules;	 /* the shared cache */
	struct rules_views views; /* what this call has resolved: one look per project and call */
	struct str select;	 /* name of the running operation */
	struct str filters;	 /* digest of its arguments without cursor, limit and projection */
	bool short_ids;
	struct snapshot *snapshot; /* of a read: tells how short an id may be */
	bool is_atomic; /* the first failure undoes the whole call */
	const char *config_dir; /* directory that holds .dais/; NULL: none */
	/* What the running op tells the frame beside its result; reset for each op. */
	bool is_partial;	 /* changes stand, but the element counts as partial_failure */
	struct str once_members; /* members of this answer alone: never stored (a fresh token) … */
	struct str again_members; /* … and what a replay shows in their place */
	bool has_claimed; /* a claim was made by an earlier op of this call */
	/* What must be on record although the operation is undone (transition.rejected): set before
	 * returning -1; the frame runs it after the undo, under a savepoint of its own. */
	int (*after_failure)(struct tx *tx, struct call *call, void *arg, struct failure *f);
	void *after_failure_arg;
	struct page {
		bool is_set;
		int64_t returned;
		int64_t total;		/* -1: not counted */
		struct str next_cursor; /* absent: the end */
		bool is_shrunk;		/* cut to fit the answer budget */
	} page;
};

void call_init(struct call *call, struct arena *arena, const struct caller *caller, struct rules *rules);
void call_finish(struct call *call);
/* Page members of the answer. */
void call_page(struct call *call, int64_t returned, int64_t total, struct str next_cursor);

/* ---- cursors: opaque to callers, bound to the operation and its filters ---- */
#define CURSOR_PARTS 4
struct cursor {
	struct str parts[CURSOR_PARTS];
	size_t n;
};
/* INVALID_CURSOR unless it was made by cursor_text for the same operation and filters. */
int cursor_read(struct call *call, struct str text, struct cursor *out, struct failure *f);
struct str cursor_text(struct call *call, const struct str *parts, size_t n);
int64_t cursor_int(const struct cursor *cursor, size_t part);

/* ---- items ---- */
enum priority { PRIORITY_HIGH, PRIORITY_MEDIUM, PRIORITY_LOW };
const char *priority_name(enum priority priority);
#define COMPLEXITY_NONE 11

struct item {
	int64_t n;
	struct id id;
	int64_t parent_n; /* 0: a root */
	struct id parent_id;
	enum role parent_role; /* when this item was loaded; of no meaning for a root */
	int64_t root_n;
	struct id root_id;
	int64_t depth;
	enum role role;
	enum role prev_role; /* while blocked */
	enum priority priority;
	int64_t complexity; /* COMPLEXITY_NONE: not given */
	int64_t version;
	int64_t created_at, modified_at, role_changed_at;
	int64_t moved_seq; /* event of its newest transition, 0: none */
	struct str label, prev_label; /* absent: none */
	int64_t claim_by;	      /* principal row, 0: unclaimed */
	int64_t claim_at, claim_first_at, claim_until, claim_ttl, claim_gen;
	bool claim_lapse_seen;
	struct str title;
	struct str type; /* absent: none */
	struct str tags, traits; /* JSON arrays */
	struct str summary;
	bool requires_verification;
	int64_t created_by;
};

/* 1 found, 0 no such row, -1 failure. */
int item_load(struct snapshot *s, int64_t n, struct item *out, struct failure *f);
/* The same, of n, the ids of itself and its parent, root_n, depth, role, priority, created_at, label, title, type, tags
 * and traits alone: what item_write_ref shows and what decides its schema. Nothing else of it is filled. */
int item_load_ref(struct snapshot *s, int64_t n, struct item *out, struct failure *f);
/* What a caller typed: a UUID or a prefix; scope is applied before matches are counted, so that a prefix
 * cannot probe other projects. NOT_FOUND, AMBIGUOUS_ID, or a bad field at `path`. */
int item_find(struct snapshot *s, struct call *call, struct str text, struct str path, struct item *out,
	struct failure *f);
/* The same without root_id, which no transition asks for: a row less to look up. */
int item_find_to_move(struct snapshot *s, struct call *call, struct str text, struct str path, struct item *out,
	struct failure *f);
/* The caller may write here: FORBIDDEN outside a seat's run. */
int item_writable(struct snapshot *s, struct call *call, const struct item *item, struct failure *f);
int fail_not_found(struct failure *f, const char *kind, struct str id);
/* VERSION_CONFLICT unless `expected` is unset or equals item->version. */
int item_expect(const struct item *item, bool is_set, int64_t expected, struct failure *f);
/* Strings of a stored JSON array. */
size_t strings_of(struct arena *arena, struct str json, struct str **out);
/* 1 when `n` stands at or below `ancestor_n` (at most LIMIT_DEPTH levels up), 0 when not. */
int item_is_below(struct snapshot *s, int64_t n, int64_t ancestor_n, struct failure *f);

/* Ids of other kinds, the same way: `table` is one of these. */
enum id_kind { KIND_ITEM, KIND_NOTE, KIND_DEPENDENCY, KIND_DOCUMENT, KIND_RUN, KIND_SEAT, KIND_REPORT };
/* Row number of the only readable match. */
int id_resolve(struct snapshot *s, struct call *call, enum id_kind kind, struct str text, struct str path,
	int64_t *out_n, struct failure *f);

/* ---- rules of an item ---- */
/* Both layers for a project; kept for the call. UNAVAILABLE when they cannot be read: never "no gates". */
int call_view(struct snapshot *s, struct call *call, int64_t root_n, const struct rules_view **out,
	struct failure *f);
int item_schema(struct snapshot *s, struct call *call, const struct item *item, struct schema *out,
	struct failure *f);

/* ---- claims ---- */
static inline bool claim_is_live(const struct item *item, int64_t now)
{
	return item->claim_by != 0 && item->claim_until > now; /* equal is expired */
}
/* Row of the caller, 0 when it never wrote anything. */
int caller_row(struct snapshot *s, struct call *call, int64_t *out, struct failure *f);
/* A successful write of the holder on its claimed item keeps the claim alive for at least its ttl. */
int claim_touch(struct tx *tx, struct call *call, const struct item *item, struct failure *f);

/* ---- writing items as JSON ---- */
/* An id as the caller asked for it: whole, or (ids: "short") its shortest prefix of at least eight digits that
 * no other readable row of its kind begins with at this moment. Short ids are hints for typing. */
struct str id_shown(struct call *call, enum id_kind kind, struct id id);
void jw_id_of(struct json_writer *w, struct call *call, const char *key, enum id_kind kind, struct id id);
/* … of an item */
void jw_id(struct json_writer *w, struct call *call, const char *key, struct id id);
/* id, title, role, priority, type?, parentId?, statusLabel? */
void item_write_ref(struct json_writer *w, struct call *call, const struct item *item);
/* ref + rootId, depth, summary?, tags?, … version, createdAt, modifiedAt, roleChangedAt */
void item_write_full(struct json_writer *w, struct call *call, const struct item *item);
/* "actor":{id,kind,parent?,seat?,runId?}; nothing for callers without attribution. */
int actor_write(struct json_writer *w, struct snapshot *s, struct call *call, const char *key, int64_t actor_n,
	int64_t run_n, struct str seat, struct failure *f);
/* "verification":{status,verifier?,reason?}: how far the credential of that writer was checked, by whom, and why
 * it did not pass; nothing for callers without attribution. */
void verification_write(struct json_writer *w, struct call *call, enum verification verification, struct str verifier,
	struct str reason);

/* Extra members asked for by `fields` on reads; names outside `allowed` (NULL-terminated) are faults. */
int fields_check(const struct str *fields, size_t n, const char *const *allowed, struct str path,
	struct failure *f);
bool fields_have(const struct str *fields, size_t n, const char *name);

/* ---- counts by role, kept by every change ---- */
struct tally {
	int64_t by_role[ROLE_COUNT]; /* index: tally_index(role) */
};
size_t tally_index(enum role role); /* queue, work, review, blocked, terminal */
int tally_children(struct snapshot *s, int64_t item_n, struct tally *out, struct failure *f);
int tally_root(struct snapshot *s, int64_t root_n, struct tally *out, struct failure *f);
int64_t tally_sum(const struct tally *tally);
/* {"queue":1,…} without zeros. */
void tally_write(struct json_writer *w, const char *key, const struct tally *tally);
/* An item of this parent (0: none) and root appears (+1) or disappears (-1) in `role`. */
int tally_add(struct tx *tx, int64_t parent_n, int64_t root_n, enum role role, int delta, struct failure *f);
/* Many appear in a project (sign 1) or leave it (-1). */
int tally_shift(struct tx *tx, int64_t root_n, const struct tally *counts, int sign, struct failure *f);
/* One of them changes its role. */
int tally_move(struct tx *tx, int64_t parent_n, int64_t root_n, enum role from, enum role to,
	struct failure *f);

#endif
