/* work/filter.h - the filters that list, search, next, the claim selector and blocked share.
 *
 * The rows of FILTER_FIELDS read them from JSON, filter_prepare resolves what names something (once, with the
 * scope of the caller), filter_sql turns them into conditions. Only `traits` cannot be said in SQL, as a
 * default trait belongs to the schema that an item resolves to: where filter_needs_test, every row that the
 * query gives still has to pass filter_test. */
#ifndef DAIS_WORK_FILTER_H
#define DAIS_WORK_FILTER_H

#include "base/field.h"
#include "base/limits.h"
#include "work/work.h"

struct filter_args {
	struct arg_ints roles, priorities;
	struct arg_strs types, tags, tags_all, traits, labels;
	struct arg_str parent; /* null: roots only */
	struct arg_str ancestor, root;
	struct arg_int complexity_min, complexity_max;
	struct arg_int created_after, created_before;
	struct arg_int modified_after, modified_before;
	struct arg_int role_changed_after, role_changed_before;
};

extern const struct word role_words[];
extern const struct word open_role_words[]; /* of what can still be worked on */
extern const struct word priority_words[];

/* An empty list would match nothing in silence: it is refused. */
#define FILTER_LIST .min = 1, .max = LIMIT_FILTER_VALUES
#define FILTER_FIELDS(type, member, role_table) \
	FIELD(type, member.roles, "roles", FIELD_WORDS, FOLDED | UNIQUE_ENTRIES, .words = role_table, FILTER_LIST), \
	FIELD(type, member.priorities, "priorities", FIELD_WORDS, FOLDED | UNIQUE_ENTRIES, .words = priority_words, \
		FILTER_LIST), \
	FIELD(type, member.types, "types", FIELD_STRS, UNIQUE_ENTRIES, FILTER_LIST, .item_max = LIMIT_TYPE_CHARS), \
	FIELD(type, member.tags, "tags", FIELD_STRS, UNIQUE_ENTRIES, FILTER_LIST, .item_max = LIMIT_TYPE_CHARS, \
		.help = "any of them; case does not matter"), \
	FIELD(type, member.tags_all, "tagsAll", FIELD_STRS, UNIQUE_ENTRIES, FILTER_LIST, .item_max = LIMIT_TYPE_CHARS, \
		.help = "all of them"), \
	FIELD(type, member.traits, "traits", FIELD_STRS, UNIQUE_ENTRIES, FILTER_LIST, .item_max = LIMIT_TYPE_CHARS, \
		.help = "any of them, the item's own or its schema's"), \
	FIELD(type, member.labels, "statusLabels", FIELD_STRS, UNIQUE_ENTRIES, FILTER_LIST, \
		.item_max = LIMIT_TYPE_CHARS), \
	FIELD(type, member.parent, "parentId", FIELD_ID, NULLABLE, .help = "null: roots only"), \
	FIELD(type, member.ancestor, "ancestorId", FIELD_ID, 0, .help = "anywhere below it"), \
	FIELD(type, member.root, "rootId", FIELD_ID, 0), \
	FIELD(type, member.complexity_min, "complexityMin", FIELD_INT, 0, .min = 1, .max = 10), \
	FIELD(type, member.complexity_max, "complexityMax", FIELD_INT, 0, .min = 1, .max = 10), \
	FIELD(type, member.created_after, "createdAfter", FIELD_TIME, 0), \
	FIELD(type, member.created_before, "createdBefore", FIELD_TIME, 0), \
	FIELD(type, member.modified_after, "modifiedAfter", FIELD_TIME, 0), \
	FIELD(type, member.modified_before, "modifiedBefore", FIELD_TIME, 0), \
	FIELD(type, member.role_changed_after, "roleChangedAfter", FIELD_TIME, 0), \
	FIELD(type, member.role_changed_before, "roleChangedBefore", FIELD_TIME, 0)

struct filter {
	const struct filter_args *in;
	const struct caller *caller;
	bool is_roots_only;	/* parentId: null */
	int64_t parent_n;	/* 0: any */
	int64_t root_n;		/* the one project that can match, 0: any readable one */
	int64_t ancestor_n;	/* 0: any */
	int64_t ancestor_depth;
	bool includes_ancestor; /* search: the ancestor itself matches too; set it after filter_prepare */
	bool is_small;		/* the ancestor's subtree is small: listed from its top, else walked up to it */
	struct filter_bases *bases; /* which schemas bring a wanted trait; found as rows are tested */
};

/* Resolve the ids of `in`, which must outlive `out`. `path` precedes names in faults ("" or "selector."). */
int filter_prepare(struct snapshot *s, struct call *call, const struct filter_args *in, struct str path,
	struct filter *out, struct failure *f);
/* Append " AND …" for every condition, the caller's readable projects included. The query must name item i;
 * and item_text t where filter_needs_text. */
void filter_sql(const struct filter *filter, struct sql *sql);
/* The readable projects alone. `column` is like "i.root_n". */
void filter_scope_sql(const struct caller *caller, const char *column, struct sql *sql);
/* At most so many items can match: an upper bound that costs a point read. */
int filter_most(struct snapshot *s, const struct filter *filter, int64_t *out, struct failure *f);
bool filter_needs_text(const struct filter *filter);
bool filter_needs_test(const struct filter *filter);
/* The part that SQL does not check: 1 passes, 0 does not, -1 failure. */
int filter_test(struct snapshot *s, struct call *call, struct filter *filter, int64_t item_n, struct failure *f);
/* " IN ($1, $2)" over texts, in lower case where asked. */
void filter_in_strs(struct sql *sql, const char *column, const struct arg_strs *values, bool is_lower);
void filter_in_ints(struct sql *sql, const char *column, const struct arg_ints *values);

#endif
