/* items_read overview: the shape of the hierarchy, from kept counts. */
#include "work/items.h"
#include "work/parts.h"

#define PAGE_DEFAULT 50
#define CHILDREN_SHOWN 20

struct overview {
	struct snapshot *s;
	struct call *call;
	const struct overview_args *in;
	int64_t parent_n;    /* whose children are listed; 0: roots */
	bool counts_subtree; /* of whole subtrees, not of children */
	int64_t limit;
	unsigned parts;
};

/* ---- counts of what lies below ---- */

SQL(SQL_SUBTREE_TALLY, /* down the index of children */
	"WITH RECURSIVE sub (n, role) AS (SELECT c.n, c.role FROM item c WHERE c.parent_n = $1"
	" UNION ALL SELECT c.n, c.role FROM sub JOIN item c ON c.parent_n = sub.n)"
	" SELECT role, count(*) FROM sub GROUP BY role");

/* Everything below the item, itself excluded. A root's is kept; others are walked. */
static int tally_below(struct snapshot *s, int64_t n, bool is_root, enum role role, struct tally *out,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (is_root) {
		if (tally_root(s, n, out, f) != 0)
			return -1;
		out->by_role[tally_index(role)]--;
		return 0;
	}
	if (tally_children(s, n, out, f) != 0)
		return -1;
	if (tally_sum(out) == 0)
		return 0;
	memset(out, 0, sizeof(*out));
	if (query(s, &q, f, SQL_SUBTREE_TALLY, "i", n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1)
		out->by_role[tally_index((enum role)col_int(&q, 0))] = col_int(&q, 1);
	return rc;
}

static int64_t active_of(const struct tally *tally)
{
	return tally_sum(tally) - tally->by_role[tally_index(ROLE_TERMINAL)];
}

/* An ended item is dropped unless something below it goes on: 1 shown, 0 dropped. */
static int is_shown(const struct overview *o, const struct item *item, int64_t *active, struct failure *f)
{
	struct tally below;

	*active = 0;
	if (!o->in->exclude_terminal.v || item->role != ROLE_TERMINAL)
		return 1;
	if (tally_below(o->s, item->n, item->parent_n == 0, item->role, &below, f) != 0)
		return -1;
	*active = active_of(&below);
	return *active > 0;
}

/* ---- rows ---- */

SQL(SQL_CHILDREN_NEWEST, "SELECT n FROM item WHERE parent_n = $1 AND n < $2 ORDER BY n DESC");
SQL(SQL_ROOTS_NEWEST, "SELECT n, root_n FROM item WHERE parent_n IS NULL AND n < $1 ORDER BY n DESC");

static int write_counts(struct json_writer *out, const struct overview *o, const struct item *item,
	struct failure *f)
{
	struct tally counts;
	int rc = o->counts_subtree
		? tally_below(o->s, item->n, item->parent_n == 0, item->role, &counts, f)
		: tally_children(o->s, item->n, &counts, f);

	if (rc != 0)
		return -1;
	if (tally_sum(&counts) > 0)
		tally_write(out, o->counts_subtree ? "subtreeCounts" : "childCounts", &counts);
	return 0;
}

static int write_children(struct json_writer *out, const struct overview *o, int64_t parent_n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	bool is_open = false;
	int shown = 0;
	int rc;

	if (query(o->s, &q, f, SQL_CHILDREN_NEWEST, "ii", parent_n, INT64_MAX) != 0)
		return -1;
	while (shown < CHILDREN_SHOWN && (rc = query_next(&q, f)) == 1) {
		struct item child;
		int64_t active;

		if (item_load_ref(o->s, col_int(&q, 0), &child, f) < 0 || (rc = is_shown(o, &child, &active, f)) < 0)
			return -1;
		if (rc == 0)
			continue;
		if (!is_open)
			jw_karray(out, "children");
		is_open = true;
		shown++;
		jw_object_begin(out);
		item_write_ref(out, o->call, &child);
		jw_kint_opt(out, "activeDescendants", active);
		jw_object_end(out);
	}
	if (is_open)
		jw_array_end(out);
	return 0;
}

static int write_members(struct json_writer *out, const struct overview *o, const struct item *item, int64_t active,
	struct failure *f)
{
	item_write_ref(out, o->call, item);
	if (write_counts(out, o, item, f) != 0)
		return -1;
	jw_kint_opt(out, "activeDescendants", active);
	if (parts_write(out, o->s, o->call, item, o->parts & ~(unsigned)PART_CHILD_COUNTS, false, f) != 0)
		return -1;
	return o->in->include_children.v && !o->in->item.set ? write_children(out, o, item->n, f) : 0;
}

/* 1 the row stands or is dropped, 0 the page is full before it. */
static int write_row(struct rows *rows, const struct overview *o, int64_t n, struct failure *f)
{
	struct item item;
	int64_t active;
	int rc;

	if (item_load(o->s, n, &item, f) < 0 || (rc = is_shown(o, &item, &active, f)) < 0)
		return -1;
	if (rc == 0)
		return 1;
	if ((int64_t)rows->n == o->limit)
		return 0;
	row_begin(rows);
	if (write_members(rows->w, o, &item, active, f) != 0)
		return -1;
	return row_end(rows);
}

static int open_rows(const struct overview *o, int64_t before, struct query *q, struct failure *f)
{
	if (o->parent_n == 0)
		return query(o->s, q, f, SQL_ROOTS_NEWEST, "i", before);
	return query(o->s, q, f, SQL_CHILDREN_NEWEST, "ii", o->parent_n, before);
}

static int write_rows(const struct overview *o, const char *key, int64_t total, struct json_writer *out,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct cursor cursor = {.n = 0};
	int64_t before = INT64_MAX;
	struct str next = STR_NONE;
	struct rows rows;
	int rc;

	if (o->in->cursor.set) {
		if (cursor_read(o->call, o->in->cursor.v, &cursor, f) != 0)
			return -1;
		before = cursor_int(&cursor, 0);
	}
	if (open_rows(o, before, &q, f) != 0)
		return -1;
	rows_init(&rows, out, o->call);
	jw_karray(out, key);
	while ((rc = query_next(&q, f)) == 1) {
		if (o->parent_n == 0 && !caller_reads_root(o->call->caller, col_int(&q, 1)))
			continue;
		if ((rc = write_row(&rows, o, col_int(&q, 0), f)) < 0)
			return -1;
		if (rc == 0) {
			struct str part = str_printf(o->call->arena, "%lld", (long long)before);

			next = cursor_text(o->call, &part, 1);
			break;
		}
		before = col_int(&q, 0);
	}
	if (rc < 0)
		return -1;
	jw_array_end(out);
	if (next.n == 0 && !o->in->cursor.set)
		total = (int64_t)rows.n;
	call_page(o->call, (int64_t)rows.n, total, next);
	return 0;
}

/* ---- the three forms ---- */

static int find_top(const struct overview *o, struct str text, const char *name, struct item *out,
	struct failure *f)
{
	return item_find(o->s, o->call, text, str_of(name), out, f);
}

static int scoped(struct overview *o, struct json_writer *out, struct failure *f)
{
	struct tally children;
	struct item item;

	if (find_top(o, o->in->item.v, "itemId", &item, f) != 0 || tally_children(o->s, item.n, &children, f) != 0)
		return -1;
	jw_kobject(out, "item");
	if (write_members(out, o, &item, 0, f) != 0)
		return -1;
	jw_object_end(out);
	o->parent_n = item.n;
	return write_rows(o, "children", o->in->exclude_terminal.v ? -1 : tally_sum(&children), out, f);
}

static int anchored(struct overview *o, struct json_writer *out, struct failure *f)
{
	struct tally children, below;
	struct item anchor;

	if (find_top(o, o->in->anchor.v, "anchorId", &anchor, f) != 0 ||
		tally_children(o->s, anchor.n, &children, f) != 0 ||
		tally_below(o->s, anchor.n, anchor.parent_n == 0, anchor.role, &below, f) != 0)
		return -1;
	jw_kobject(out, "anchor");
	item_write_ref(out, o->call, &anchor);
	jw_object_end(out);
	o->parent_n = anchor.n;
	o->counts_subtree = true;
	if (write_rows(o, "roots", o->in->exclude_terminal.v ? -1 : tally_sum(&children), out, f) != 0)
		return -1;
	tally_write(out, "totals", &below);
	return 0;
}

static int write_totals(const struct overview *o, struct json_writer *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct tally totals = {0};
	struct sql sql;

	sql_init(&sql, o->call->arena);
	sql_add(&sql, "SELECT sum(queue), sum(work), sum(review), sum(blocked), sum(terminal) FROM root_tally"
		      " WHERE 1 = 1");
	filter_scope_sql(o->call->caller, "root_n", &sql);
	if (query_sql(o->s, &q, f, &sql) != 0 || query_next(&q, f) < 0)
		return -1;
	for (int i = 0; i < ROLE_COUNT; i++)
		totals.by_role[i] = col_int(&q, i);
	tally_write(out, "totals", &totals);
	return 0;
}

static int write_claims(const struct overview *o, struct json_writer *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;
	int64_t live, lapsed;

	sql_init(&sql, o->call->arena); /* by item_claimed */
	sql_add(&sql, "SELECT count(*), sum(CASE WHEN i.claim_until > ");
	sql_int(&sql, o->s->now);
	sql_add(&sql, " THEN 1 ELSE 0 END) FROM item i WHERE i.claim_by IS NOT NULL");
	filter_scope_sql(o->call->caller, "i.root_n", &sql);
	if (query_sql(o->s, &q, f, &sql) != 0 || query_next(&q, f) < 0)
		return -1;
	live = col_int(&q, 1);
	lapsed = col_int(&q, 0) - live;
	if (live + lapsed == 0)
		return 0;
	jw_kobject(out, "claims");
	jw_kint_opt(out, "active", live);
	jw_kint_opt(out, "expired", lapsed);
	jw_object_end(out);
	return 0;
}

static int count_roots(const struct overview *o, int64_t *total, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;

	*total = -1;
	if (o->in->exclude_terminal.v)
		return 0;
	sql_init(&sql, o->call->arena);
	sql_add(&sql, "SELECT count(*) FROM root_tally WHERE 1 = 1");
	filter_scope_sql(o->call->caller, "root_n", &sql);
	if (query_sql(o->s, &q, f, &sql) != 0 || query_next(&q, f) < 0)
		return -1;
	*total = col_int(&q, 0);
	return 0;
}

int items_overview(struct snapshot *s, struct call *call, const struct overview_args *in, struct json_writer *out,
	struct failure *f)
{
	struct overview o = {.s = s, .call = call, .in = in,
		.limit = in->limit.set ? in->limit.v : PAGE_DEFAULT, .parts = parts_of(&in->fields)};
	int64_t total;

	if (in->item.set)
		return scoped(&o, out, f);
	if (in->anchor.set)
		return anchored(&o, out, f);
	if (count_roots(&o, &total, f) != 0 || write_rows(&o, "roots", total, out, f) != 0 ||
		write_totals(&o, out, f) != 0)
		return -1;
	return write_claims(&o, out, f);
}
