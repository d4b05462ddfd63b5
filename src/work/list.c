/* items_read list: filtered items in a total order, page by page. */
#include "work/items.h"
#include "work/parts.h"

#include <inttypes.h>

#define PAGE_DEFAULT 50

struct listing {
	struct snapshot *s;
	struct call *call;
	const struct list_args *in;
	struct filter filter;
	enum sort_key key;
	bool is_desc;
	int64_t limit;
	bool is_everywhere; /* no place is named, nor anything that has an index of its own */
	bool has_cursor;
	struct id after_id; /* last row of the page before */
	int64_t after_int;
	struct str after_text;
};

static const struct {
	const char *column;
	bool is_desc;
} sorts[] = {
	[SORT_CREATED] = {"i.created_at", true},
	[SORT_PRIORITY] = {"i.priority", false},
	[SORT_MODIFIED] = {"i.modified_at", true},
	[SORT_ROLE_CHANGED] = {"i.role_changed_at", true},
	[SORT_TITLE] = {"t.title", false},
	[SORT_COMPLEXITY] = {"i.complexity", false},
};

/* Items without complexity come last in both directions. */
static const char *key_column(const struct listing *l)
{
	if (l->key == SORT_COMPLEXITY && l->is_desc)
		return "CASE WHEN i.complexity = 11 THEN 0 ELSE i.complexity END";
	return sorts[l->key].column;
}

/* Of a key with few values the items that share one are many: an index has them in the order of their ids, so a page is
 * made of one range after the other, in either direction. Inside a place the items are few enough to be sorted. */
#define GROUPS_MAX 11

static bool is_grouped(const struct listing *l)
{
	return l->is_everywhere && (l->key == SORT_PRIORITY || l->key == SORT_COMPLEXITY);
}

static size_t groups_of(const struct listing *l, int64_t *out)
{
	int64_t first = l->key == SORT_PRIORITY ? PRIORITY_HIGH : 1;
	int64_t last = l->key == SORT_PRIORITY ? PRIORITY_LOW : COMPLEXITY_NONE - 1;
	size_t n = 0;

	for (int64_t value = first; value <= last; value++)
		out[n++] = l->is_desc ? last - (value - first) : value;
	if (l->key == SORT_COMPLEXITY)
		out[n++] = COMPLEXITY_NONE;
	return n;
}

/* ---- where the page begins ---- */

static int read_cursor(struct listing *l, struct failure *f)
{
	struct cursor cursor;
	struct id_prefix id;

	if (!l->in->cursor.set)
		return 0;
	if (cursor_read(l->call, l->in->cursor.v, &cursor, f) != 0)
		return -1;
	if (cursor.n != 2 || !id_prefix_parse(cursor.parts[0], &id) ||
		!base64url_decode(l->call->arena, cursor.parts[1], &l->after_text) ||
		(l->key != SORT_TITLE && !str_to_int(l->after_text, &l->after_int)))
		return fail(f, FAIL_INVALID_CURSOR, "The cursor does not belong to this listing.");
	l->after_id = id.low;
	l->has_cursor = true;
	return 0;
}

static struct str next_cursor(struct listing *l, struct id id, struct str key)
{
	struct str parts[2] = {id_str(l->call->arena, id), base64url(l->call->arena, key.p, key.n)};

	return cursor_text(l->call, parts, 2); /* encoded: a title may hold any character */
}

static void add_key(const struct listing *l, struct sql *sql, const char *operator)
{
	sql_add(sql, key_column(l));
	sql_add(sql, operator);
	if (l->key == SORT_TITLE)
		sql_str(sql, l->after_text);
	else
		sql_int(sql, l->after_int);
}

/* Rows behind (key, id); the first condition says nothing more, but lets an index on the key start there. */
static void add_after(const struct listing *l, struct sql *sql)
{
	if (!l->has_cursor)
		return;
	sql_add(sql, " AND ");
	add_key(l, sql, l->is_desc ? " <= " : " >= ");
	sql_add(sql, " AND (");
	add_key(l, sql, l->is_desc ? " < " : " > ");
	sql_add(sql, " OR i.id > ");
	sql_id(sql, l->after_id);
	sql_add(sql, ")");
}

/* ---- the conditions ---- */

static void add_from(const struct listing *l, bool needs_key, struct sql *sql)
{
	bool needs_title = needs_key && l->key == SORT_TITLE;

	if (needs_title && l->is_everywhere)
		sql_add(sql, " FROM item_text t CROSS JOIN item i WHERE i.n = t.n"); /* by item_text_title */
	else if (filter_needs_text(&l->filter) || needs_title)
		sql_add(sql, " FROM item i JOIN item_text t ON t.n = i.n WHERE 1 = 1");
	else
		sql_add(sql, " FROM item i WHERE 1 = 1");
	filter_sql(&l->filter, sql);
	if (l->in->exclude_terminal.v)
		sql_add(sql, " AND i.role <> 3");
	if (!l->in->claim_status.set)
		return;
	if (l->in->claim_status.v == CLAIM_STATUS_UNCLAIMED) {
		sql_add(sql, " AND i.claim_by IS NULL");
		return;
	}
	sql_add(sql, " AND i.claim_by IS NOT NULL AND i.claim_until");
	sql_add(sql, l->in->claim_status.v == CLAIM_STATUS_CLAIMED ? " > " : " <= ");
	sql_int(sql, l->s->now);
}

/* ---- how many ---- */

/* -1 in *total when counting is not cheap. */
static int count(struct listing *l, int64_t *total, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;
	int64_t most;

	*total = -1;
	if (filter_needs_test(&l->filter))
		return 0;
	if (filter_most(l->s, &l->filter, &most, f) != 0)
		return -1;
	if (most > LIMIT_COUNTED_ROWS)
		return 0;
	sql_init(&sql, l->call->arena);
	sql_add(&sql, "SELECT count(*)");
	add_from(l, false, &sql);
	if (query_sql(l->s, &q, f, &sql) != 0 || query_next(&q, f) < 0)
		return -1;
	*total = col_int(&q, 0);
	return 0;
}

/* ---- the rows ---- */

struct list_page {
	struct rows rows;
	struct id last_id;
	struct str last_key, next; /* next: absent while the page is not full */
};

static void add_select(const struct listing *l, struct sql *sql)
{
	sql_init(sql, l->call->arena);
	sql_add(sql, "SELECT i.n, i.id, ");
	sql_add(sql, key_column(l));
	add_from(l, true, sql);
}

static void add_limit(const struct listing *l, const struct list_page *page, struct sql *sql)
{
	if (filter_needs_test(&l->filter))
		return; /* rows that fail the test do not count */
	sql_add(sql, " LIMIT ");
	sql_int(sql, l->limit + 1 - (int64_t)page->rows.n);
}

static int write_row(struct rows *rows, struct listing *l, int64_t n, struct failure *f)
{
	bool is_plain = l->in->fields.n == 0 && !l->in->claim_status.set;
	struct item item;

	if ((is_plain ? item_load_ref : item_load)(l->s, n, &item, f) < 0)
		return -1;
	row_begin(rows);
	item_write_ref(rows->w, l->call, &item);
	if (l->in->claim_status.set && !fields_have(l->in->fields.v, l->in->fields.n, "claim"))
		claim_state_write(rows->w, &item, l->s->now);
	if (parts_write(rows->w, l->s, l->call, &item, parts_of(&l->in->fields), false, f) != 0)
		return -1;
	return row_end(rows);
}

/* The rows of one query. */
static int write_found(struct listing *l, const struct sql *sql, struct list_page *page, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query_sql(l->s, &q, f, sql) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		rc = filter_test(l->s, l->call, &l->filter, col_int(&q, 0), f);
		if (rc == 0)
			continue;
		if (rc > 0)
			rc = (int64_t)page->rows.n == l->limit ? 0 : write_row(&page->rows, l, col_int(&q, 0), f);
		if (rc < 0)
			return -1;
		if (rc == 0) { /* one more row than the page holds */
			page->next = next_cursor(l, page->last_id, page->last_key);
			return 0;
		}
		page->last_id = col_id(&q, 1);
		page->last_key = col_str(&q, 2);
	}
	return rc;
}

static int write_sorted(struct listing *l, struct list_page *page, struct failure *f)
{
	struct sql sql;

	add_select(l, &sql);
	add_after(l, &sql);
	sql_add(&sql, " ORDER BY 3");
	sql_add(&sql, l->is_desc ? " DESC, i.id" : ", i.id");
	add_limit(l, page, &sql);
	return write_found(l, &sql, page, f);
}

/* The key of a group as the cursor has it. */
static int64_t group_key(const struct listing *l, int64_t value)
{
	return l->is_desc && l->key == SORT_COMPLEXITY && value == COMPLEXITY_NONE ? 0 : value;
}

/* by item_priority or item_complexity */
static int write_group(struct listing *l, int64_t value, struct list_page *page, struct failure *f)
{
	struct sql sql;

	add_select(l, &sql);
	sql_add(&sql, " AND ");
	sql_add(&sql, sorts[l->key].column);
	sql_add(&sql, " = ");
	sql_int(&sql, value);
	if (l->has_cursor && group_key(l, value) == l->after_int) {
		sql_add(&sql, " AND i.id > ");
		sql_id(&sql, l->after_id);
	}
	sql_add(&sql, " ORDER BY i.id");
	add_limit(l, page, &sql);
	return write_found(l, &sql, page, f);
}

static int write_groups(struct listing *l, struct list_page *page, struct failure *f)
{
	int64_t values[GROUPS_MAX];
	size_t n = groups_of(l, values);
	size_t i = 0;

	while (l->has_cursor && i < n && group_key(l, values[i]) != l->after_int)
		i++;
	for (; i < n && page->next.n == 0; i++)
		if (write_group(l, values[i], page, f) != 0)
			return -1;
	return 0;
}

static int write_rows(struct listing *l, struct json_writer *out, struct failure *f)
{
	struct list_page page = {.next = STR_NONE};
	int64_t total;

	rows_init(&page.rows, out, l->call);
	jw_karray(out, "items");
	if ((is_grouped(l) ? write_groups : write_sorted)(l, &page, f) != 0)
		return -1;
	jw_array_end(out);
	total = (int64_t)page.rows.n;
	if ((page.next.n > 0 || l->has_cursor) && count(l, &total, f) != 0)
		return -1;
	call_page(l->call, (int64_t)page.rows.n, total, page.next);
	return 0;
}

static bool is_everywhere(const struct listing *l)
{
	const struct filter *filter = &l->filter;
	bool is_by_claim = l->in->claim_status.set && l->in->claim_status.v != CLAIM_STATUS_UNCLAIMED;

	return l->call->caller->roots == NULL && filter->root_n == 0 && filter->parent_n == 0 && filter->ancestor_n == 0 &&
		!filter->is_roots_only && !l->in->filter.types.set && !is_by_claim;
}

int items_list(struct snapshot *s, struct call *call, const struct list_args *in, struct json_writer *out,
	struct failure *f)
{
	struct listing l = {.s = s, .call = call, .in = in, .limit = in->limit.set ? in->limit.v : PAGE_DEFAULT};

	l.key = in->sort_by.set ? (enum sort_key)in->sort_by.v : SORT_CREATED;
	l.is_desc = in->sort_dir.set ? in->sort_dir.v == SORT_DESC : sorts[l.key].is_desc;
	if (read_cursor(&l, f) != 0 || filter_prepare(s, call, &in->filter, STR(""), &l.filter, f) != 0)
		return -1;
	l.is_everywhere = is_everywhere(&l);
	return write_rows(&l, out, f);
}
