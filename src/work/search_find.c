/* Candidates of a search: scope and filters first, then the newest matches, then the best of those. */
#include "work/search_run.h"

#include "work/notes.h"

#include <stdlib.h>

static void add_conditions(struct search *search, enum search_kind kind, struct sql *sql)
{
	filter_sql(&search->filter, sql);
	if (search->item_n != 0) {
		sql_add(sql, " AND i.n = ");
		sql_int(sql, search->item_n);
	}
	if (search->in->exclude_terminal.v)
		sql_add(sql, " AND i.role <> 3");
	if (kind == SEARCH_ITEMS)
		return;
	filter_in_ints(sql, "x.role", &search->in->note_roles);
	filter_in_strs(sql, "x.key", &search->in->note_keys, false);
}

/* Notes that the caller's seat must not read are not there for it: 1 may be read, 0 not, -1 failure. */
static int may_read(struct search *search, int64_t item_n, struct str key, struct failure *f)
{
	const struct seat_scope *seat = &search->call->caller->seat;
	struct schema schema;
	struct item item;

	if (seat->run_n == 0 || key.n == 0)
		return 1;
	if (item_load(search->s, item_n, &item, f) < 0 || item_schema(search->s, search->call, &item, &schema, f) != 0)
		return -1;
	return !note_is_hidden(search->call, &schema, key);
}

/* What SQL cannot say. */
static int passes(struct search *search, int64_t item_n, struct str key, struct failure *f)
{
	int rc = filter_test(search->s, search->call, &search->filter, item_n, f);

	return rc != 1 ? rc : may_read(search, item_n, key, f);
}

struct match {
	int64_t n, item_n;
	struct id id;
	double score; /* lower is better */
};

static int by_rank(const void *a, const void *b)
{
	const struct match *x = a;
	const struct match *y = b;

	if (x->score != y->score)
		return x->score < y->score ? -1 : 1;
	return x->n > y->n ? -1 : x->n < y->n;
}

/* The newest matches in scope. Scoring is what costs, so it is done for LIMIT_SEARCH_RANKED of them at most. */
static int read_matches(struct search *search, const struct index *index, struct match *matches, size_t *n,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;
	int rc;

	*n = 0;
	sql_init(&sql, search->call->arena);
	index_matches(index, &sql);
	add_conditions(search, index->kind, &sql);
	index_matches_end(index, &sql);
	if (query_sql(search->s, &q, f, &sql) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if ((rc = passes(search, col_int(&q, 2), col_str(&q, 3), f)) < 0)
			return -1;
		if (rc == 0)
			continue;
		if (*n == LIMIT_SEARCH_RANKED) {
			search->is_truncated = true;
			return 0;
		}
		matches[(*n)++] = (struct match){col_int(&q, 0), col_int(&q, 2), col_id(&q, 1), col_real(&q, 4)};
	}
	return rc;
}

int search_ranked(struct search *search, enum search_kind kind, enum analyser analyser, size_t *found,
	struct failure *f)
{
	const struct index index = {.kind = kind, .analyser = analyser, .query = search->queries[analyser],
		.with_text = filter_needs_text(&search->filter)};
	struct match *matches = ARENA_ARRAY(search->call->arena, struct match, LIMIT_SEARCH_RANKED);
	size_t n;

	if (read_matches(search, &index, matches, &n, f) != 0)
		return -1;
	if (n > 1)
		qsort(matches, n, sizeof(*matches), by_rank);
	if (n > LIMIT_SEARCH_CANDIDATES) {
		n = LIMIT_SEARCH_CANDIDATES;
		search->is_truncated = true;
	}
	for (size_t i = 0; i < n; i++) {
		struct hit *hit = search_hit(search, kind, matches[i].n);

		hit->item_n = matches[i].item_n;
		hit->id = matches[i].id;
		hit->rank[analyser] = (int)i + 1;
	}
	*found += n;
	return 0;
}

/* ---- reading the texts ---- */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

size_t search_place(struct str text, struct str term)
{
	for (size_t at = 0; at + term.n <= text.n; at++) {
		size_t k = 0;

		while (k < term.n && lower(text.p[at + k]) == lower(term.p[k]))
			k++;
		if (k == term.n)
			return at;
	}
	return text.n;
}

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
	add_conditions(search, kind, sql);
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

		if ((rc = passes(search, item_n, col_str(&q, 3), f)) < 0)
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
