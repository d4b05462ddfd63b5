/* Items by role, project by project through the index of what is ready; looks are bounded, not exact. */
#include "work/context.h"

#include "work/dependency_gate.h"
#include "work/int_map.h"

/* ---- the scope ---- */

static void add_root(struct context *c, const struct query *q)
{
	struct root_counts *root = &c->roots[c->root_count++];
	static const enum role roles[] = {ROLE_QUEUE, ROLE_WORK, ROLE_REVIEW, ROLE_BLOCKED, ROLE_TERMINAL};

	root->n = col_int(q, 0);
	for (int i = 0; i < ROLE_COUNT; i++) {
		root->tally.by_role[tally_index(roles[i])] = col_int(q, 1 + i);
		c->tally.by_role[tally_index(roles[i])] += col_int(q, 1 + i);
	}
}

/* Newest projects first. */
static int load_roots(struct context *c, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;
	int rc;

	sql_init(&sql, c->call->arena);
	sql_add(&sql, "SELECT root_n, queue, work, review, blocked, terminal FROM root_tally"
		      " WHERE queue + work + review + blocked > 0");
	filter_scope_sql(c->call->caller, "root_n", &sql);
	if (c->filter.root_n != 0) {
		sql_add(&sql, " AND root_n = ");
		sql_int(&sql, c->filter.root_n);
	}
	sql_add(&sql, " ORDER BY root_n DESC LIMIT ");
	sql_int(&sql, LIMIT_CONTEXT_ROOTS + 1);
	if (query_sql(c->s, &q, f, &sql) != 0)
		return -1;
	c->roots = ARENA_ARRAY(c->call->arena, struct root_counts, LIMIT_CONTEXT_ROOTS);
	while ((rc = query_next(&q, f)) == 1) {
		if (c->root_count == LIMIT_CONTEXT_ROOTS) {
			c->is_bounded = true;
			return 0;
		}
		add_root(c, &q);
	}
	return rc;
}

SQL(SQL_MEMBERS, /* down the index of children, no further than what is small */
	"WITH RECURSIVE sub (n) AS (SELECT r.n FROM item r WHERE r.n = $1 UNION ALL SELECT c.n FROM sub"
	" JOIN item c ON c.parent_n = sub.n) SELECT i.n, i.role FROM sub JOIN item i ON i.n = sub.n WHERE i.role <> 3"
	" ORDER BY i.priority, i.complexity, i.created_at, i.id LIMIT $2");

static int load_members(struct context *c, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(c->s, &q, f, SQL_MEMBERS, "ii", c->filter.ancestor_n, (int64_t)LIMIT_CONTEXT_SCAN) != 0)
		return -1;
	c->members = ARENA_ARRAY(c->call->arena, struct member, LIMIT_CONTEXT_SCAN);
	while ((rc = query_next(&q, f)) == 1)
		c->members[c->member_count++] = (struct member){col_int(&q, 0), (enum role)col_int(&q, 1)};
	return rc;
}

int context_open(struct snapshot *s, struct call *call, const struct context_args *in, int64_t limit_default,
	struct context *out, struct failure *f)
{
	*out = (struct context){.s = s, .call = call, .in = in,
		.limit = in->limit.set ? in->limit.v : limit_default,
		.scan_left = {INT64_MAX, LIMIT_CONTEXT_SCAN, LIMIT_CONTEXT_SCAN}};
	out->filter_in = (struct filter_args){.ancestor = in->ancestor, .root = in->root};
	if (filter_prepare(s, call, &out->filter_in, STR(""), &out->filter, f) != 0)
		return -1;
	out->filter.includes_ancestor = true;
	out->has_tally = out->filter.ancestor_depth == 0;
	return out->filter.is_small ? load_members(out, f) : load_roots(out, f);
}

/* ---- one role of one project ---- */

static void push(struct context *c, struct found *found, int64_t n)
{
	if (found->n == found->cap) {
		size_t cap = found->cap == 0 ? 64 : found->cap * 2;

		found->v = arena_grow(c->s->arena, found->v, found->cap * sizeof(*found->v), cap * sizeof(*found->v));
		found->cap = cap;
	}
	found->v[found->n++] = n;
}

enum { BELOW_ROOT, BELOW_ROLE }; /* parameters of below_sql; the last one of a bounded look is the bound */

/* What is looked for beside the item: tables to join, and on what. It gives a row for each edge. */
static const struct {
	const char *tables, *conditions;
} beside[] = {
	[FIND_ALL] = {"", ""},
	[FIND_GATED] = {" CROSS JOIN dep d CROSS JOIN item b",
		" AND d.to_n = i.n AND d.type = 0 AND b.n = d.from_n AND b.role < d.threshold"},
	[FIND_DONE] = {" CROSS JOIN child_tally t",
		" AND t.item_n = i.n AND t.terminal > 0 AND t.queue + t.work + t.review + t.blocked = 0"},
};

/* by item_ready, from the index alone */
static void add_ready(struct context *c, const char *tables, const char *conditions, struct sql *sql)
{
	sql_add(sql, "SELECT i.n FROM item i");
	sql_add(sql, tables);
	sql_add(sql, " WHERE i.root_n = ");
	sql_int(sql, 0);
	sql_add(sql, " AND i.role = ");
	sql_int(sql, 0);
	sql_add(sql, " AND i.root_n <> i.n AND i.role <> 3");
	sql_add(sql, conditions);
	if (!c->has_tally)
		filter_sql(&c->filter, sql);
	sql_add(sql, " ORDER BY i.priority, i.complexity, i.created_at, i.id");
}

/* Where not all may be looked at, an inner part bounds that and the outer one looks; else one join does both, for two
 * thirds of the steps. (A subquery for each row would open its tables anew each time.) */
static struct sql *below_sql(struct context *c, enum find what, bool is_bounded)
{
	struct sql *sql = ARENA_NEW(c->call->arena, struct sql);

	sql_init(sql, c->call->arena);
	if (!is_bounded || what == FIND_ALL) {
		add_ready(c, beside[what].tables, beside[what].conditions, sql);
	} else {
		sql_add(sql, "SELECT i.n FROM (");
		add_ready(c, "", "", sql);
	}
	if (is_bounded) {
		sql_add(sql, " LIMIT ");
		sql_int(sql, 0);
	}
	if (is_bounded && what != FIND_ALL) {
		sql_add(sql, ") i");
		sql_add(sql, beside[what].tables);
		sql_add(sql, " WHERE 0 = 0");
		sql_add(sql, beside[what].conditions);
	}
	return sql;
}

static int find_below(struct context *c, int64_t root_n, enum role role, enum find what, int64_t most, bool is_bounded,
	int64_t wanted, struct found *found, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql *sql = c->below[what][is_bounded];
	struct int_map seen;
	int rc;

	if (sql == NULL)
		sql = c->below[what][is_bounded] = below_sql(c, what, is_bounded);
	sql->params[BELOW_ROOT].number = root_n;
	sql->params[BELOW_ROLE].number = (int64_t)role;
	if (is_bounded)
		sql->params[sql->count - 1].number = most;
	if (query_sql(c->s, &q, f, sql) != 0)
		return -1;
	int_map_init(&seen, c->s->arena);
	while (wanted > 0 && (rc = query_next(&q, f)) == 1) {
		int64_t n = col_int(&q, 0);

		if (what == FIND_GATED && int_map_find(&seen, n) != NULL)
			continue;
		if (what == FIND_GATED)
			int_map_add(&seen, n, 1);
		push(c, found, n);
		wanted--;
	}
	return wanted > 0 ? rc : 0;
}

SQL(SQL_ITEM_ROLE, "SELECT role FROM item WHERE n = $1");
SQL(SQL_ITEM_DONE,
	"SELECT 1 FROM child_tally c WHERE c.item_n = $1 AND c.terminal > 0"
	" AND c.queue + c.work + c.review + c.blocked = 0");

/* 1 it is what is looked for, 0 it is not. */
static int is_such(struct context *c, int64_t n, enum find what, struct failure *f)
{
	int64_t one;

	switch (what) {
	case FIND_GATED:
		return dependency_is_blocked(c->s, n, f);
	case FIND_DONE:
		return query_int(c->s, &one, f, SQL_ITEM_DONE, "i", n);
	default:
		return 1;
	}
}

static int find_members(struct context *c, enum role role, enum find what, struct found *found, struct failure *f)
{
	for (size_t i = 0; i < c->member_count; i++) {
		int rc = c->members[i].role == role ? is_such(c, c->members[i].n, what, f) : 0;

		if (rc < 0)
			return -1;
		if (rc == 1)
			push(c, found, c->members[i].n);
	}
	return 0;
}

static int load_role(struct context *c, struct root_counts *root, struct failure *f)
{
	int64_t role;
	int rc = 1;

	if (!root->is_known && (rc = query_int(c->s, &role, f, SQL_ITEM_ROLE, "i", root->n)) == 1) {
		root->role = (enum role)role;
		root->is_known = true;
	}
	return rc;
}

/* The root itself is in no index of what is ready inside a project. */
static int find_root(struct context *c, struct root_counts *root, enum role role, enum find what, struct found *found,
	struct failure *f)
{
	int rc = load_role(c, root, f);

	if (rc != 1 || root->role != role)
		return rc < 0 ? -1 : 0;
	rc = is_such(c, root->n, what, f);
	if (rc == 1)
		push(c, found, root->n);
	return rc < 0 ? -1 : 0;
}

/* How many rows of this project may be looked at. Of a part of a project nothing is counted, so they are all
 * taken, up to the limit of a scan. */
static int64_t most_of(const struct context *c, enum find what, const struct found *found)
{
	int64_t left;

	if (what != FIND_ALL)
		return c->scan_left[what];
	left = c->has_tally ? c->limit + 1 : LIMIT_CONTEXT_SCAN;
	return left - (int64_t)found->n;
}

int context_find(struct context *c, enum role role, enum find what, int64_t wanted, struct found *found,
	struct failure *f)
{
	if (c->members != NULL)
		return find_members(c, role, what, found, f);
	for (size_t i = 0; i < c->root_count; i++) {
		struct root_counts *root = &c->roots[i];
		int64_t there = root->tally.by_role[tally_index(role)];
		int64_t most = most_of(c, what, found);
		int64_t lacking = wanted - (int64_t)found->n;

		if (there == 0)
			continue;
		if (most <= 0 || lacking <= 0) {
			c->is_bounded = c->is_bounded || what != FIND_ALL;
			return 0;
		}
		if (c->has_tally && find_root(c, root, role, what, found, f) != 0)
			return -1;
		if (find_below(c, root->n, role, what, most, !c->has_tally || there > most, lacking, found, f) != 0)
			return -1;
		if (what == FIND_ALL)
			continue;
		c->is_bounded = c->is_bounded || there > most || (int64_t)found->n >= wanted;
		c->scan_left[what] -= there < most ? there : most;
	}
	return 0;
}

/* ---- parents whose children have all ended ---- */

SQL(SQL_PARENT_LAST, "SELECT item_n FROM child_tally ORDER BY item_n DESC LIMIT 1 OFFSET $1");
SQL(SQL_PARENTS_DONE, /* by primary key of both */
	"SELECT i.n FROM child_tally c CROSS JOIN item i WHERE i.n = c.item_n AND c.item_n > $1 AND c.terminal > 0"
	" AND c.queue + c.work + c.review + c.blocked = 0 AND i.role <> 3 ORDER BY c.item_n DESC");

/* Few items have children: looking at these, newest first, goes further than looking at items. */
static int find_parents(struct context *c, struct found *found, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int64_t last = 0;
	int rc = query_int(c->s, &last, f, SQL_PARENT_LAST, "i", (int64_t)LIMIT_CONTEXT_SCAN);

	if (rc < 0 || query(c->s, &q, f, SQL_PARENTS_DONE, "i", last) != 0)
		return -1;
	c->is_bounded = c->is_bounded || rc == 1;
	while ((rc = query_next(&q, f)) == 1)
		push(c, found, col_int(&q, 0));
	return rc;
}

int context_find_done(struct context *c, struct found *found, struct failure *f)
{
	static const enum role roles[] = {ROLE_WORK, ROLE_REVIEW, ROLE_BLOCKED, ROLE_QUEUE};

	if (c->has_tally && c->filter.root_n == 0 && c->call->caller->roots == NULL)
		return find_parents(c, found, f);
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (context_find(c, roles[i], FIND_DONE, INT64_MAX, found, f) != 0)
			return -1;
	return 0;
}

/* ---- claims ---- */

static int write_mine(struct context *c, struct json_writer *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	bool is_open = false;
	struct sql sql;
	int64_t me;
	int rc;

	if (caller_row(c->s, c->call, &me, f) != 0)
		return -1;
	if (me == 0)
		return 0;
	sql_init(&sql, c->call->arena); /* by item_claim_by */
	sql_add(&sql, "SELECT i.id, i.claim_until FROM item i WHERE i.claim_by = ");
	sql_int(&sql, me);
	sql_add(&sql, " AND i.claim_until > ");
	sql_int(&sql, c->s->now);
	filter_sql(&c->filter, &sql);
	sql_add(&sql, " ORDER BY i.claim_until LIMIT 100");
	if (query_sql(c->s, &q, f, &sql) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (!is_open)
			jw_karray(out, "mine");
		is_open = true;
		jw_object_begin(out);
		jw_id(out, c->call, "itemId", col_id(&q, 0));
		jw_ktime(out, "expiresAt", col_int(&q, 1));
		jw_object_end(out);
	}
	if (is_open)
		jw_array_end(out);
	return rc;
}

static int count_claims(struct context *c, bool is_live, int64_t *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;

	/* by item_claimed: claims are few, and the filter could lead a planner to all items of the project */
	sql_init(&sql, c->call->arena);
	sql_add(&sql, "SELECT count(*) FROM (SELECT i.n FROM (SELECT n FROM item WHERE claim_by IS NOT NULL AND claim_until");
	sql_add(&sql, is_live ? " > " : " <= ");
	sql_int(&sql, c->s->now);
	sql_add(&sql, ") h CROSS JOIN item i WHERE i.n = h.n");
	filter_sql(&c->filter, &sql);
	sql_add(&sql, " LIMIT ");
	sql_int(&sql, LIMIT_CONTEXT_CLAIMS);
	sql_add(&sql, ") x");
	if (query_sql(c->s, &q, f, &sql) != 0 || query_next(&q, f) < 0)
		return -1;
	*out = col_int(&q, 0);
	return 0;
}

int context_write_claims(struct context *c, struct json_writer *out, struct failure *f)
{
	int64_t live, lapsed;

	if (count_claims(c, true, &live, f) != 0 || count_claims(c, false, &lapsed, f) != 0)
		return -1;
	if (live + lapsed == 0)
		return 0;
	jw_kobject(out, "claims");
	if (live > 0 && write_mine(c, out, f) != 0)
		return -1;
	jw_kint_opt(out, "active", live);
	jw_kint_opt(out, "expired", lapsed);
	jw_object_end(out);
	return 0;
}
