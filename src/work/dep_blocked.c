/* What is blocked: whose role says so, and what waits for another item. Oldest first.
 *
 * No index has these items, so a page looks at a stretch of all items in the order of their creation, and at no more:
 * one that found few hands on where to go on. */
#include "work/deps.h"

#include "base/limits.h"
#include "work/dep_row.h"

#include <inttypes.h>

#define BLOCKED_DEFAULT 50

SQL(SQL_UNMET, /* by dep_to */
	DEP_ROW_COLUMNS " WHERE d.to_n = $1 AND d.type = 0 AND f.role < d.threshold ORDER BY d.n");

static int write_blocker(struct json_writer *w, struct snapshot *s, struct call *call, const struct dep_row *row,
	struct failure *f)
{
	struct item blocker;

	jw_object_begin(w);
	if (row->from.is_readable) {
		if (item_load_ref(s, row->from.n, &blocker, f) != 1)
			return -1;
		jw_id(w, call, "id", blocker.id);
		jw_kstr(w, "title", blocker.title);
		jw_ktext(w, "role", role_name(blocker.role));
	} else {
		jw_kraw(w, "id", STR("null"));
		jw_ktext(w, "role", "unknown");
	}
	jw_ktext(w, "unblockAt", role_name((enum role)row->threshold));
	jw_kbool(w, "satisfied", false);
	jw_object_end(w);
	return 0;
}

/* "blockedBy" of up to LIMIT_LISTED_BLOCKERS; *out_count counts all. */
static int write_blockers(struct json_writer *w, struct snapshot *s, struct call *call, int64_t item_n,
	int64_t *out_count, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int64_t count = 0;
	int rc;

	if (query(s, &q, f, SQL_UNMET, "i", item_n) != 0)
		return -1;
	jw_karray(w, "blockedBy");
	while ((rc = query_next(&q, f)) == 1) {
		struct dep_row row;

		dep_row_read(&q, call, &row);
		if (count++ < LIMIT_LISTED_BLOCKERS && write_blocker(w, s, call, &row, f) != 0)
			return -1;
	}
	jw_array_end(w);
	*out_count = count;
	return rc;
}

static int write_blocked(struct json_writer *w, struct snapshot *s, struct call *call, const struct item *item,
	bool includes_blockers, struct failure *f)
{
	struct json_writer list;
	struct buf blockers;
	int64_t count;

	buf_init(&blockers, s->arena, SIZE_MAX);
	json_writer_init(&list, &blockers);
	if (write_blockers(&list, s, call, item->n, &count, f) != 0)
		return -1;
	jw_object_begin(w);
	item_write_ref(w, call, item);
	jw_ktext(w, "blockType", item->role == ROLE_BLOCKED ? "explicit" : "dependency");
	jw_kint(w, "blockerCount", count);
	if (includes_blockers && count > 0)
		jw_members(w, buf_str(&blockers));
	jw_object_end(w);
	return 0;
}

/* ---- a page ---- */

struct page_of_blocked {
	struct snapshot *s;
	struct call *call;
	const struct dep_blocked_args *in;
	struct filter filter;
	bool has_cursor, has_end;
	int64_t after_at, end_at; /* ms; the stretch is behind (after_at, after_id), and up to end_at whole */
	struct id after_id;
	int64_t limit, returned;
	struct str next;
};

static void add_after(const struct page_of_blocked *page, struct sql *sql)
{
	if (!page->has_cursor)
		return;
	sql_add(sql, " AND i.created_at >= ");
	sql_int(sql, page->after_at);
	sql_add(sql, " AND (i.created_at > ");
	sql_int(sql, page->after_at);
	sql_add(sql, " OR i.id > ");
	sql_id(sql, page->after_id);
	sql_add(sql, ")");
}

/* by item_created or item_root_created, from the index alone */
static int find_end(struct page_of_blocked *page, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;
	int rc;

	sql_init(&sql, page->call->arena);
	sql_add(&sql, "SELECT i.created_at FROM item i WHERE 1 = 1");
	if (page->filter.root_n != 0) {
		sql_add(&sql, " AND i.root_n = ");
		sql_int(&sql, page->filter.root_n);
	}
	add_after(page, &sql);
	sql_add(&sql, " ORDER BY i.created_at, i.id LIMIT 1 OFFSET ");
	sql_int(&sql, LIMIT_BLOCKED_SCAN);
	if (query_sql(page->s, &q, f, &sql) != 0 || (rc = query_next(&q, f)) < 0)
		return -1;
	page->has_end = rc == 1;
	page->end_at = col_int(&q, 0);
	return 0;
}

static void add_from(const struct page_of_blocked *page, struct sql *sql)
{
	sql_add(sql, " FROM item i");
	if (filter_needs_text(&page->filter))
		sql_add(sql, " JOIN item_text t ON t.n = i.n");
	sql_add(sql, " WHERE i.role <> 3 AND (i.role = -1 OR EXISTS (SELECT 1 FROM dep d JOIN item b ON b.n = d.from_n"
		     " WHERE d.to_n = i.n AND d.type = 0 AND b.role < d.threshold))");
	filter_sql(&page->filter, sql);
}

/* -1: not counted, as too many items would have to be looked at or a part of the filter is not in SQL. */
static int count_blocked(struct page_of_blocked *page, int64_t *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;
	int64_t most;

	*out = -1;
	if (filter_needs_test(&page->filter))
		return 0;
	if (filter_most(page->s, &page->filter, &most, f) != 0)
		return -1;
	if (most > LIMIT_COUNTED_ROWS)
		return 0;
	sql_init(&sql, page->call->arena);
	sql_add(&sql, "SELECT count(*)");
	add_from(page, &sql);
	if (query_sql(page->s, &q, f, &sql) != 0 || query_next(&q, f) < 0)
		return -1;
	*out = col_int(&q, 0);
	return 0;
}

static int read_cursor(struct page_of_blocked *page, struct failure *f)
{
	struct cursor cursor;
	struct id_prefix id;

	if (!page->in->cursor.set)
		return 0;
	if (cursor_read(page->call, page->in->cursor.v, &cursor, f) != 0)
		return -1;
	if (cursor.n != 2 || !id_prefix_parse(cursor.parts[1], &id))
		return fail(f, FAIL_INVALID_CURSOR, "The cursor does not belong to this listing.");
	page->has_cursor = true;
	page->after_at = cursor_int(&cursor, 0);
	page->after_id = id.low;
	return 0;
}

static struct str cursor_behind(struct page_of_blocked *page, int64_t created_at, struct id id)
{
	struct str parts[2] = {
		str_printf(page->call->arena, "%" PRId64, created_at), id_str(page->call->arena, id)};

	return cursor_text(page->call, parts, 2);
}

/* 1 the row stands or does not pass, 0 the page is full before it. */
static int write_row(struct page_of_blocked *page, struct json_writer *out, int64_t n, struct failure *f)
{
	bool is_long = page->returned > 0 && out->out->n > LIMIT_ANSWER_BYTES - 16384;
	struct item item;
	int rc = filter_test(page->s, page->call, &page->filter, n, f);

	if (rc != 1)
		return rc < 0 ? -1 : 1;
	if (page->returned == page->limit || is_long) {
		page->call->page.is_shrunk = page->returned < page->limit;
		return 0;
	}
	if (item_load_ref(page->s, n, &item, f) != 1 ||
		write_blocked(out, page->s, page->call, &item,
			!page->in->include_blockers.set || page->in->include_blockers.v, f) != 0)
		return -1;
	page->returned++;
	return 1;
}

static int write_page(struct page_of_blocked *page, struct json_writer *out, struct failure *f)
{
	static const struct id highest = {.b = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}};
	AUTO(query_endp) struct query q = {0};
	int64_t last_at = 0;
	struct id last_id = {0};
	struct sql sql;
	int rc;

	sql_init(&sql, page->call->arena);
	sql_add(&sql, "SELECT i.n, i.created_at, i.id");
	add_from(page, &sql);
	add_after(page, &sql);
	if (page->has_end) {
		sql_add(&sql, " AND i.created_at <= ");
		sql_int(&sql, page->end_at);
	}
	sql_add(&sql, " ORDER BY i.created_at, i.id");
	if (!filter_needs_test(&page->filter)) {
		sql_add(&sql, " LIMIT ");
		sql_int(&sql, page->limit + 1);
	}
	if (query_sql(page->s, &q, f, &sql) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		rc = write_row(page, out, col_int(&q, 0), f);
		if (rc == 0)
			page->next = cursor_behind(page, last_at, last_id);
		if (rc != 1)
			return rc;
		last_at = col_int(&q, 1);
		last_id = col_id(&q, 2);
	}
	if (page->has_end)
		page->next = cursor_behind(page, page->end_at, highest);
	return rc;
}

int dep_blocked(struct snapshot *s, struct call *call, const struct dep_blocked_args *in, struct json_writer *out,
	struct failure *f)
{
	struct page_of_blocked page = {.s = s, .call = call, .in = in, .next = STR_NONE,
		.limit = in->limit.set ? in->limit.v : BLOCKED_DEFAULT};
	int64_t total;

	if (filter_prepare(s, call, &in->filter, STR(""), &page.filter, f) != 0 || read_cursor(&page, f) != 0 ||
		find_end(&page, f) != 0 || count_blocked(&page, &total, f) != 0)
		return -1;
	jw_karray(out, "items");
	if (write_page(&page, out, f) != 0)
		return -1;
	jw_array_end(out);
	call_page(call, page.returned, total, page.next);
	return 0;
}
