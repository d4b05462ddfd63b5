#include "work/filter.h"

#include <inttypes.h>

/* Subtrees up to this size are listed from their top; above it every row is walked up to the ancestor. */
#define SMALL_SUBTREE 500
/* More readable projects than this are written as digits, to stay under the parameters of one statement. */
#define MANY_ROOTS 20
#define MAX_BASES 64

const struct word role_words[] = {
	{"queue", ROLE_QUEUE},
	{"work", ROLE_WORK},
	{"review", ROLE_REVIEW},
	{"blocked", ROLE_BLOCKED},
	{"terminal", ROLE_TERMINAL},
	WORDS_END,
};

const struct word open_role_words[] = {
	{"queue", ROLE_QUEUE},
	{"work", ROLE_WORK},
	{"review", ROLE_REVIEW},
	{"blocked", ROLE_BLOCKED},
	WORDS_END,
};

const struct word priority_words[] = {
	{"high", PRIORITY_HIGH},
	{"medium", PRIORITY_MEDIUM},
	{"low", PRIORITY_LOW},
	WORDS_END,
};

SQL(SQL_SUBTREE_PROBE, /* stops after SMALL_SUBTREE + 1 rows of the index of children */
	"SELECT count(*) FROM (WITH RECURSIVE sub (n) AS (SELECT c.n FROM item c WHERE c.parent_n = $1"
	" UNION ALL SELECT c.n FROM sub JOIN item c ON c.parent_n = sub.n LIMIT $2) SELECT n FROM sub) x");

static struct str at(struct call *call, struct str path, const char *name)
{
	return str_printf(call->arena, "%.*s%s", STRF(path), name);
}

static int prepare_ancestor(struct snapshot *s, struct call *call, struct str path, struct filter *filter,
	struct failure *f)
{
	struct item ancestor;
	int64_t size;

	if (item_find(s, call, filter->in->ancestor.v, at(call, path, "ancestorId"), &ancestor, f) != 0)
		return -1;
	filter->ancestor_n = ancestor.n;
	filter->ancestor_depth = ancestor.depth;
	if (filter->root_n == 0)
		filter->root_n = ancestor.root_n;
	if (ancestor.parent_n == 0)
		return 0; /* its project says it all */
	if (query_int(s, &size, f, SQL_SUBTREE_PROBE, "ii", ancestor.n, (int64_t)SMALL_SUBTREE + 1) < 0)
		return -1;
	filter->is_small = size <= SMALL_SUBTREE;
	return 0;
}

static int prepare_root(struct snapshot *s, struct call *call, struct str path, struct filter *filter,
	struct failure *f)
{
	struct item root;

	if (item_find(s, call, filter->in->root.v, at(call, path, "rootId"), &root, f) != 0)
		return -1;
	if (root.parent_n != 0)
		return fail_field(f, at(call, path, "rootId"), filter->in->root.v, "is not a project root");
	filter->root_n = root.n;
	return 0;
}

int filter_prepare(struct snapshot *s, struct call *call, const struct filter_args *in, struct str path,
	struct filter *out, struct failure *f)
{
	struct filter filter = {.in = in, .caller = call->caller};
	struct item parent;

	if (in->root.set && prepare_root(s, call, path, &filter, f) != 0)
		return -1;
	if (in->parent.set && !in->parent.null) {
		if (item_find(s, call, in->parent.v, at(call, path, "parentId"), &parent, f) != 0)
			return -1;
		filter.parent_n = parent.n;
	}
	filter.is_roots_only = in->parent.null;
	if (in->ancestor.set && prepare_ancestor(s, call, path, &filter, f) != 0)
		return -1;
	*out = filter;
	return 0;
}

void filter_in_ints(struct sql *sql, const char *column, const struct arg_ints *values)
{
	if (!values->set)
		return;
	sql_add(sql, " AND ");
	sql_add(sql, column);
	for (size_t i = 0; i < values->n; i++) {
		sql_add(sql, i == 0 ? " IN (" : ", ");
		sql_int(sql, values->v[i]);
	}
	sql_add(sql, ")");
}

static void in_list(struct sql *sql, const struct arg_strs *values, bool is_lower)
{
	for (size_t i = 0; i < values->n; i++) {
		sql_add(sql, i == 0 ? " IN (" : ", ");
		sql_str(sql, is_lower ? str_lower(sql->arena, values->v[i]) : values->v[i]);
	}
	sql_add(sql, ")");
}

void filter_in_strs(struct sql *sql, const char *column, const struct arg_strs *values, bool is_lower)
{
	if (!values->set)
		return;
	sql_add(sql, " AND ");
	sql_add(sql, column);
	in_list(sql, values, is_lower);
}

void filter_scope_sql(const struct caller *caller, const char *column, struct sql *sql)
{
	if (caller->roots == NULL)
		return;
	sql_add(sql, " AND ");
	sql_add(sql, column);
	if (caller->root_count == 1) { /* said so, an index on the project also gives the order */
		sql_add(sql, " = ");
		sql_int(sql, caller->roots[0]);
		return;
	}
	sql_add(sql, " IN (0"); /* no item: keeps the list legal when nothing is readable */
	for (size_t i = 0; i < caller->root_count; i++) {
		sql_add(sql, ", ");
		if (caller->root_count <= MANY_ROOTS)
			sql_int(sql, caller->roots[i]);
		else
			buf_printf(&sql->text, "%" PRId64, caller->roots[i]);
	}
	sql_add(sql, ")");
}

static void add_tags(const struct filter_args *in, struct sql *sql)
{
	if (in->tags.set) {
		sql_add(sql, " AND EXISTS (SELECT 1 FROM item_tag g WHERE g.item_n = i.n AND g.tag");
		in_list(sql, &in->tags, true);
		sql_add(sql, ")");
	}
	for (size_t i = 0; i < in->tags_all.n; i++) {
		sql_add(sql, " AND EXISTS (SELECT 1 FROM item_tag g WHERE g.item_n = i.n AND g.tag = ");
		sql_str(sql, str_lower(sql->arena, in->tags_all.v[i]));
		sql_add(sql, ")");
	}
}

static void bound(struct sql *sql, const struct arg_int *value, const char *condition)
{
	if (!value->set)
		return;
	sql_add(sql, " AND ");
	sql_add(sql, condition);
	sql_int(sql, value->v);
}

static void add_bounds(const struct filter_args *in, struct sql *sql)
{
	if (in->complexity_min.set || in->complexity_max.set)
		sql_add(sql, " AND i.complexity <> 11"); /* COMPLEXITY_NONE is in no range */
	bound(sql, &in->complexity_min, "i.complexity >= ");
	bound(sql, &in->complexity_max, "i.complexity <= ");
	bound(sql, &in->created_after, "i.created_at > ");
	bound(sql, &in->created_before, "i.created_at < ");
	bound(sql, &in->modified_after, "i.modified_at > ");
	bound(sql, &in->modified_before, "i.modified_at < ");
	bound(sql, &in->role_changed_after, "i.role_changed_at > ");
	bound(sql, &in->role_changed_before, "i.role_changed_at < ");
}

/* The subtree. Of a root it is the project; a small one is listed downwards through the index of children, and
 * of a large one each candidate is walked up by point reads, so that an ordered scan can stop early. */
static void add_subtree(const struct filter *filter, struct sql *sql)
{
	sql_add(sql, filter->includes_ancestor ? " AND (i.n = " : " AND (i.n <> ");
	sql_int(sql, filter->ancestor_n);
	sql_add(sql, filter->includes_ancestor ? " OR " : " AND ");
	if (filter->ancestor_depth == 0) {
		sql_add(sql, "i.root_n = ");
		sql_int(sql, filter->ancestor_n);
	} else if (filter->is_small) {
		sql_add(sql, "i.n IN (WITH RECURSIVE sub (n) AS (SELECT c.n FROM item c WHERE c.parent_n = ");
		sql_int(sql, filter->ancestor_n);
		sql_add(sql, " UNION ALL SELECT c.n FROM sub JOIN item c ON c.parent_n = sub.n) SELECT n FROM sub)");
	} else {
		sql_add(sql, "i.depth > ");
		sql_int(sql, filter->ancestor_depth);
		sql_add(sql, " AND EXISTS (WITH RECURSIVE up (n, level) AS (SELECT i.parent_n, 0 UNION ALL"
			     " SELECT (SELECT p.parent_n FROM item p WHERE p.n = up.n), up.level + 1 FROM up"
			     " WHERE up.n IS NOT NULL AND up.level < 1000 AND up.n <> ");
		sql_int(sql, filter->ancestor_n);
		sql_add(sql, ") SELECT 1 FROM up WHERE up.n = ");
		sql_int(sql, filter->ancestor_n);
		sql_add(sql, ")");
	}
	sql_add(sql, ")");
}

void filter_sql(const struct filter *filter, struct sql *sql)
{
	const struct filter_args *in = filter->in;

	/* What names a place was found with the caller's scope already. */
	if (filter->root_n == 0 && filter->parent_n == 0)
		filter_scope_sql(filter->caller, "i.root_n", sql);
	if (filter->root_n != 0) {
		sql_add(sql, " AND i.root_n = ");
		sql_int(sql, filter->root_n);
	}
	if (filter->is_roots_only) {
		sql_add(sql, " AND i.parent_n IS NULL");
	} else if (filter->parent_n != 0) {
		sql_add(sql, " AND i.parent_n = ");
		sql_int(sql, filter->parent_n);
	}
	if (filter->ancestor_n != 0)
		add_subtree(filter, sql);
	filter_in_ints(sql, "i.role", &in->roles);
	filter_in_ints(sql, "i.priority", &in->priorities);
	filter_in_strs(sql, "i.label", &in->labels, false);
	filter_in_strs(sql, "t.type", &in->types, false);
	add_tags(in, sql);
	add_bounds(in, sql);
}

bool filter_needs_text(const struct filter *filter)
{
	return filter->in->types.set;
}

bool filter_needs_test(const struct filter *filter)
{
	return filter->in->traits.set;
}

/* ---- how many ---- */

SQL(SQL_NEWEST_ITEM, "SELECT max(n) FROM item");

int filter_most(struct snapshot *s, const struct filter *filter, int64_t *out, struct failure *f)
{
	struct tally tally;

	*out = 0;
	if (filter->is_small)
		return 0;
	if (filter->parent_n == 0 && filter->root_n == 0)
		return query_int(s, out, f, SQL_NEWEST_ITEM, "") < 0 ? -1 : 0;
	if (filter->parent_n != 0 ? tally_children(s, filter->parent_n, &tally, f) != 0
				  : tally_root(s, filter->root_n, &tally, f) != 0)
		return -1;
	*out = tally_sum(&tally);
	return 0;
}

/* ---- traits ---- */

/* What decides which schema an item resolves to, and whether its default traits hold a wanted one. */
struct filter_base {
	int64_t root_n;
	struct str type, tags;
	bool brings;
};
struct filter_bases {
	struct filter_base v[MAX_BASES];
	size_t n, next; /* full: the oldest is replaced */
};

static bool wants_any(const struct arg_strs *wanted, const struct str *traits, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < wanted->n; j++)
			if (str_eq(traits[i], wanted->v[j]))
				return true;
	return false;
}

static int brings(struct snapshot *s, struct call *call, struct filter *filter, int64_t root_n, struct str type,
	struct str tags, struct failure *f)
{
	struct filter_bases *bases = filter->bases;
	const struct rules_view *view;
	struct schema schema;
	struct filter_base *base;
	struct str *tag_list;
	size_t tag_count;

	if (bases == NULL)
		bases = filter->bases = ARENA_NEW(call->arena, struct filter_bases);
	for (size_t i = 0; i < bases->n; i++) {
		base = &bases->v[i];
		if (base->root_n == root_n && str_eq(base->type, type) && str_eq(base->tags, tags))
			return base->brings;
	}
	if (call_view(s, call, root_n, &view, f) != 0)
		return -1;
	tag_count = strings_of(s->arena, tags, &tag_list);
	rules_schema(view, type, tag_list, tag_count, NULL, 0, s->arena, &schema);
	base = &bases->v[bases->next];
	bases->next = (bases->next + 1) % MAX_BASES;
	if (bases->n < MAX_BASES)
		bases->n++;
	*base = (struct filter_base){.root_n = root_n, .type = type, .tags = tags,
		.brings = wants_any(&filter->in->traits, schema.traits, schema.trait_count)};
	return base->brings;
}

SQL(SQL_FILTER_TRAITS, /* by primary key */
	"SELECT i.root_n, t.type, t.tags, t.traits FROM item i JOIN item_text t ON t.n = i.n WHERE i.n = $1");

int filter_test(struct snapshot *s, struct call *call, struct filter *filter, int64_t item_n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct str *own;
	size_t own_count;
	int rc;

	if (!filter->in->traits.set)
		return 1;
	if (query(s, &q, f, SQL_FILTER_TRAITS, "i", item_n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	own_count = strings_of(s->arena, col_str(&q, 3), &own);
	if (wants_any(&filter->in->traits, own, own_count))
		return 1;
	return brings(s, call, filter, col_int(&q, 0), col_str(&q, 1), col_str(&q, 2), f);
}
