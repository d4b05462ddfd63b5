/* Reading the texts: for terms that are too short for any index. */
#include "work/search_run.h"

static struct str pattern(struct arena *arena, struct str term)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	buf_add_char(&out, '%');
	for (size_t i = 0; i < term.n; i++) {
		if (term.p[i] == '%' || term.p[i] == '_' || term.p[i] == '\\')
			buf_add_char(&out, '\\');
		buf_add_char(&out, term.p[i]);
	}
	buf_add_char(&out, '%');
	return buf_str(&out);
}

static void like(struct sql *sql, const char *column, struct str term)
{
	sql_add(sql, "lower(");
	sql_add(sql, column);
	sql_add(sql, ") LIKE lower(");
	sql_str(sql, pattern(sql->arena, term));
	sql_add(sql, ") ESCAPE '\\'");
}

static void add_terms(struct search *search, enum search_kind kind, struct sql *sql)
{
	for (size_t i = 0; i < search->term_count && i < 20; i++) {
		sql_add(sql, i == 0 ? " WHERE (" : " AND (");
		like(sql, kind == SEARCH_NOTES ? "w.body" : "w.title", search->terms[i]);
		if (kind == SEARCH_ITEMS) {
			sql_add(sql, " OR ");
			like(sql, "w.summary", search->terms[i]);
		}
		sql_add(sql, ")");
	}
}

/* The window of newest rows in scope, that is all the scan ever reads. */
static void add_window(struct search *search, enum search_kind kind, const char *columns, int64_t limit, int64_t skip,
	struct sql *sql)
{
	sql_add(sql, "SELECT ");
	sql_add(sql, columns);
	if (kind == SEARCH_ITEMS)
		sql_add(sql, " FROM item i JOIN item_text t ON t.n = i.n WHERE 1 = 1");
	else
		sql_add(sql, " FROM note x JOIN item i ON i.n = x.item_n JOIN item_text t ON t.n = i.n WHERE 1 = 1");
	search_conditions(search, kind, sql);
	sql_add(sql, kind == SEARCH_ITEMS ? " ORDER BY i.n DESC LIMIT " : " ORDER BY x.n DESC LIMIT ");
	sql_int(sql, limit);
	sql_add(sql, " OFFSET ");
	sql_int(sql, skip);
}

static int is_bounded(struct search *search, enum search_kind kind, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;

	sql_init(&sql, search->call->arena);
	add_window(search, kind, "1", 1, LIMIT_SEARCH_SCAN, &sql);
	return query_sql(search->s, &q, f, &sql) != 0 ? -1 : query_next(&q, f);
}

static int open_scan(struct search *search, enum search_kind kind, struct query *q, struct failure *f)
{
	struct sql sql;

	sql_init(&sql, search->call->arena);
	if (kind == SEARCH_ITEMS) {
		sql_add(&sql, "SELECT w.n, w.id, w.n, '' FROM (");
		add_window(search, kind, "i.n AS n, i.id AS id, t.title AS title, t.summary AS summary",
			LIMIT_SEARCH_SCAN, 0, &sql);
		sql_add(&sql, ") w");
	} else {
		sql_add(&sql, "SELECT w.n, w.id, w.item_n, w.key FROM (SELECT v.n AS n, v.id AS id, v.item_n AS item_n,"
			      " v.key AS key, b.body AS body FROM (");
		add_window(search, kind, "x.n AS n, x.id AS id, x.item_n AS item_n, x.key AS key", LIMIT_SEARCH_SCAN, 0,
			&sql);
		sql_add(&sql, ") v JOIN note_body b ON b.n = v.n) w");
	}
	add_terms(search, kind, &sql);
	sql_add(&sql, " ORDER BY w.n DESC");
	return query_sql(search->s, q, f, &sql);
}

int search_scan(struct search *search, enum search_kind kind, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rank = 0;
	int rc = is_bounded(search, kind, f);

	if (rc < 0 || open_scan(search, kind, &q, f) != 0)
		return -1;
	search->is_scan_bounded = search->is_scan_bounded || rc == 1;
	while ((rc = query_next(&q, f)) == 1) {
		int64_t item_n = col_int(&q, 2);
		struct hit *hit;

		if ((rc = search_passes(search, item_n, col_str(&q, 3), f)) < 0)
			return -1;
		if (rc == 0)
			continue;
		if (rank == LIMIT_SEARCH_CANDIDATES) {
			search->is_truncated = true;
			break;
		}
		hit = search_hit(search, kind, col_int(&q, 0));
		hit->item_n = item_n;
		hit->id = col_id(&q, 1);
		hit->rank[LOOK_SCAN] = ++rank;
	}
	return rc < 0 ? -1 : 0;
}
