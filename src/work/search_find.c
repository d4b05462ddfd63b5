/* Candidates of a search: scope and filters first, then the newest matches, then the best of those. */
#include "work/search_run.h"

#include "work/notes.h"

#include <stdlib.h>

/* ---- scope ---- */

void search_conditions(struct search *search, enum search_kind kind, struct sql *sql)
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

static void add_item_conditions(void *search, struct sql *sql)
{
	search_conditions(search, SEARCH_ITEMS, sql);
}

static void add_note_conditions(void *search, struct sql *sql)
{
	search_conditions(search, SEARCH_NOTES, sql);
}

bool search_has_conditions(struct search *search, enum search_kind kind)
{
	struct sql sql;

	sql_init(&sql, search->call->arena);
	search_conditions(search, kind, &sql);
	return sql.text.n > 0;
}

/* Notes that the caller's seat must not read are not there for it: 1 may be read, 0 not, -1 failure. */
static int may_read(struct search *search, int64_t item_n, struct str key, struct failure *f)
{
	struct schema schema;
	struct item item;

	if (search->call->caller->seat.run_n == 0 || key.n == 0)
		return 1;
	if (item_load(search->s, item_n, &item, f) < 0 || item_schema(search->s, search->call, &item, &schema, f) != 0)
		return -1;
	return !note_is_hidden(search->call, &schema, key);
}

static bool needs_test(const struct search *search)
{
	return filter_needs_test(&search->filter) || search->call->caller->seat.run_n != 0;
}

int search_passes(struct search *search, int64_t item_n, struct str key, struct failure *f)
{
	int rc = filter_test(search->s, search->call, &search->filter, item_n, f);

	return rc != 1 ? rc : may_read(search, item_n, key, f);
}

/* A scope that an index of items leads to can be counted cheaply: once per kind. */
static int measure(struct search *search, const struct index_scope *scope, enum search_kind kind, struct failure *f)
{
	const struct filter *filter = &search->filter;
	struct extent *extent = &search->extents[kind];
	AUTO(query_endp) struct query q = {0};
	struct sql sql;
	int rc;

	if (extent->is_known)
		return 0;
	*extent = (struct extent){.is_known = true, .count = INT64_MAX};
	if (filter->root_n == 0 && filter->parent_n == 0 && search->item_n == 0 && filter->caller->roots == NULL)
		return 0;
	sql_init(&sql, search->call->arena);
	index_extent(kind, scope, LIMIT_SEARCH_SMALL + 1, &sql);
	if (query_sql(search->s, &q, f, &sql) != 0 || (rc = query_next(&q, f)) < 0)
		return -1;
	*extent = (struct extent){true, col_int(&q, 0), col_int(&q, 1), rc == 0 ? 0 : col_int(&q, 2)};
	return 0;
}

/* ---- matches ---- */

struct match {
	int64_t n;
	size_t bytes;
	double score; /* lower is better */
};

/* A window that was guessed may hold twice as many as will be ranked. */
#define MOST_MATCHES (2 * LIMIT_SEARCH_RANKED)
#define WINDOW 1.2 /* so much larger than what is expected to do: six deviations of a thousand matches */
/* Of more rows than one in so many a walk newest first is as cheap. */
#define DENSE 8

struct matches {
	struct match v[MOST_MATCHES];
	size_t n;
	bool has_more;
	size_t bytes;
	uint16_t *counts; /* parts: how often each term stands in each text */
};

/* Whether the texts of this row hold every term; then how often. */
static bool count_parts(const struct search *search, const struct index *index, const struct query *q,
	struct matches *matches)
{
	uint16_t *counts = matches->counts + matches->n * search->long_count;
	struct str texts[INDEX_TEXTS] = {col_view(q, 4)};
	size_t bytes = texts[0].n;

	if (index->kind == SEARCH_ITEMS) {
		texts[1] = col_view(q, 5);
		bytes += texts[1].n;
	}
	for (size_t i = 0; i < search->long_count; i++) {
		size_t n = search_count(texts[0], search->parts[i]) + search_count(texts[1], search->parts[i]);

		if (n == 0)
			return false;
		counts[i] = n > UINT16_MAX ? UINT16_MAX : (uint16_t)n;
	}
	matches->v[matches->n].bytes = bytes;
	return true;
}

/* bm25, all terms alike: each of these texts holds every one of them. */
static void score_parts(const struct search *search, struct matches *matches)
{
	const double k1 = 1.2, b = 0.75;
	double mean = matches->n == 0 ? 1 : (double)matches->bytes / (double)matches->n;

	for (size_t i = 0; i < matches->n; i++) {
		struct match *match = &matches->v[i];
		double length = k1 * (1 - b + b * (double)match->bytes / mean);

		for (size_t k = 0; k < search->long_count; k++) {
			double n = matches->counts[i * search->long_count + k];

			match->score -= n * (k1 + 1) / (n + length);
		}
	}
}

static int take_more(struct search *search, const struct index *index, const struct index_scope *scope, size_t most,
	struct matches *matches, struct failure *f)
{
	bool is_parts = index->analyser == ANALYSER_TRIGRAM;
	AUTO(query_endp) struct query q = {0};
	struct sql sql;
	int rc;

	sql_init(&sql, search->call->arena);
	index_matches(index, scope, &sql);
	if (query_sql(search->s, &q, f, &sql) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (scope->has_owner && (rc = search_passes(search, col_int(&q, 2), col_str(&q, 3), f)) != 1) {
			if (rc < 0)
				return -1;
			continue;
		}
		if (is_parts && !count_parts(search, index, &q, matches))
			continue;
		if ((matches->has_more = matches->n == most || matches->bytes > LIMIT_SEARCH_TEXT))
			return 0;
		matches->v[matches->n].n = col_int(&q, 0);
		matches->v[matches->n].score = col_real(&q, 1);
		matches->bytes += matches->v[matches->n++].bytes;
	}
	return rc;
}

static int take(struct search *search, const struct index *index, const struct index_scope *scope,
	struct matches *matches, struct failure *f)
{
	size_t most = index->analyser == ANALYSER_TRIGRAM ? LIMIT_SEARCH_RANKED_PARTS : LIMIT_SEARCH_RANKED;

	matches->n = matches->bytes = 0;
	return take_more(search, index, scope, most, matches, f);
}

/* From where the newest matches are expected to begin, oldest first, which is the cheaper walk. What is missing then is
 * older. Where they stand much closer than by chance, newest first is cheap too. */
static int take_window(struct search *search, const struct index *index, struct index_scope *scope, int64_t first,
	struct matches *matches, struct failure *f)
{
	struct index window = *index;
	size_t most = LIMIT_SEARCH_RANKED;

	window.is_whole = true;
	scope->first = first;
	if (take_more(search, &window, scope, MOST_MATCHES, matches, f) != 0)
		return -1;
	scope->first = 0;
	if (matches->has_more)
		return take(search, index, scope, matches, f);
	if ((matches->has_more = matches->n > most)) {
		memmove(matches->v, matches->v + matches->n - most, most * sizeof(*matches->v));
		matches->n = most;
	}
	if (matches->has_more || first == 1)
		return 0;
	scope->last = first - 1;
	return take_more(search, index, scope, most, matches, f);
}

/* Where most matches pass, the newest of them are soon found by looking each up. Where few do, that would look up
 * every match there is: after LIMIT_SEARCH_LOOKUPS of them it is given up for a list of what passes. */
static int take_joined(struct search *search, const struct index *index, struct index_scope *scope,
	struct matches *matches, struct failure *f)
{
	struct sql sql;
	AUTO(query_endp) struct query q = {0};
	int rc;

	scope->way = SCOPE_JOINED;
	if (index->is_whole)
		return take(search, index, scope, matches, f);
	sql_init(&sql, search->call->arena);
	index_nth(index, LIMIT_SEARCH_LOOKUPS, &sql);
	if (query_sql(search->s, &q, f, &sql) != 0 || (rc = query_next(&q, f)) < 0)
		return -1;
	if (rc == 1)
		scope->first = col_int(&q, 0);
	if (take(search, index, scope, matches, f) != 0)
		return -1;
	if (rc == 0 || matches->has_more)
		return 0;
	scope->way = SCOPE_LISTED;
	scope->first = 0;
	return take(search, index, scope, matches, f);
}

/* What several words weigh against each other, and how far to go for matches. 1 there is a match, 0 there is none. */
static int weigh(struct search *search, struct index *index, int64_t *window, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	double rarest, matches, newest;
	struct sql sql;
	char *end;
	int rc;

	sql_init(&sql, search->call->arena);
	index_weights(index, &sql);
	if (query_sql(search->s, &q, f, &sql) != 0 || (rc = query_next(&q, f)) < 0)
		return -1;
	if (rc == 0)
		return 0;
	index->weights = col_str(&q, 0);
	rarest = strtod(str_z(search->call->arena, index->weights), &end);
	matches = strtod(end, NULL);
	newest = (double)col_int(&q, 1);
	index->is_whole = rarest <= LIMIT_SEARCH_RANKED;
	if (matches > WINDOW * LIMIT_SEARCH_RANKED)
		*window = (int64_t)(newest * (1 - WINDOW * LIMIT_SEARCH_RANKED / matches)) + 1;
	else
		*window = 1;
	if (matches * DENSE > newest)
		*window = 0;
	return 1;
}

/* The newest matches in scope. Ranking is what costs, so it is done for so many of them at most. They are expected to
 * be no older than row `window`; 0: nothing is. */
static int read_matches(struct search *search, const struct index *index, int64_t window, struct matches *matches,
	struct failure *f)
{
	const struct extent *extent = &search->extents[index->kind];
	struct index_scope scope = {
		.has_owner = needs_test(search),
		.with_text = filter_needs_text(&search->filter),
		.add = index->kind == SEARCH_NOTES ? add_note_conditions : add_item_conditions,
		.context = search,
	};

	if (!search_has_conditions(search, index->kind))
		return window == 0 || index->is_whole ? take(search, index, &scope, matches, f)
						      : take_window(search, index, &scope, window, matches, f);
	if (measure(search, &scope, index->kind, f) != 0)
		return -1;
	if (extent->count == 0)
		return 0;
	if (extent->count > LIMIT_SEARCH_SMALL)
		return take_joined(search, index, &scope, matches, f);
	scope.way = SCOPE_LISTED;
	scope.first = extent->first;
	scope.last = extent->last;
	return take(search, index, &scope, matches, f);
}

static int take_texts(struct search *search, const struct index *index, const int64_t *rows, size_t n,
	struct matches *matches, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;
	int rc;

	sql_init(&sql, search->call->arena);
	index_texts(index, rows, n, &sql);
	if (query_sql(search->s, &q, f, &sql) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (!count_parts(search, index, &q, matches))
			continue;
		matches->v[matches->n].n = col_int(&q, 0);
		matches->bytes += matches->v[matches->n++].bytes;
	}
	return rc;
}

/* Words that fill the list of candidates leave parts of words no place that they do not have: those are looked for in
 * the texts of the candidates alone. */
static int take_found(struct search *search, const struct index *index, struct matches *matches, struct failure *f)
{
	int64_t rows[INDEX_ROWS];
	size_t n = 0;

	for (size_t i = 0; i < search->hit_count; i++) {
		const struct hit *hit = &search->hits[i];

		if (hit->kind == index->kind && hit->rank[LOOK_TEXT] != 0)
			rows[n++] = hit->n;
		if (n < INDEX_ROWS && i + 1 < search->hit_count)
			continue;
		if (n > 0 && take_texts(search, index, rows, n, matches, f) != 0)
			return -1;
		n = 0;
	}
	return 0;
}

static int take_parts(struct search *search, struct index *index, struct matches *matches, struct failure *f)
{
	matches->counts =
		ARENA_ARRAY(search->call->arena, uint16_t, (LIMIT_SEARCH_RANKED_PARTS + 1) * search->long_count);
	if (search->is_full[index->kind])
		return take_found(search, index, matches, f);
	if (index_parts(search->s, search->long_terms, search->long_count, index, f) != 0 ||
		read_matches(search, index, 0, matches, f) != 0)
		return -1;
	if (!index->is_whole || !matches->has_more)
		return 0;
	index->is_whole = false; /* there are more than can be ranked: the newest then */
	return read_matches(search, index, 0, matches, f);
}

/* ---- ranks ---- */

static int by_rank(const void *a, const void *b)
{
	const struct match *x = a;
	const struct match *y = b;

	if (x->score != y->score)
		return x->score < y->score ? -1 : 1;
	return x->n > y->n ? -1 : x->n < y->n;
}

int search_ranked(struct search *search, enum search_kind kind, enum analyser analyser, size_t *found,
	struct failure *f)
{
	struct index index = {
		.kind = kind, .analyser = analyser, .query = search->words, .is_folded = search->is_folded};
	struct matches *matches = ARENA_NEW(search->call->arena, struct matches);
	int64_t window = 0;
	size_t n;
	int rc = analyser == ANALYSER_TEXT;

	if (rc == 1 && search->term_count > 1)
		rc = weigh(search, &index, &window, f);
	if (rc < 0 || (rc == 1 && read_matches(search, &index, window, matches, f) != 0))
		return -1;
	if (analyser == ANALYSER_TRIGRAM) {
		if (take_parts(search, &index, matches, f) != 0)
			return -1;
		score_parts(search, matches);
	}
	if (matches->n > 1)
		qsort(matches->v, matches->n, sizeof(*matches->v), by_rank);
	n = matches->n < LIMIT_SEARCH_CANDIDATES ? matches->n : LIMIT_SEARCH_CANDIDATES;
	if (analyser == ANALYSER_TEXT)
		search->is_full[kind] = n < matches->n;
	search->is_truncated = search->is_truncated || matches->has_more || n < matches->n;
	for (size_t i = 0; i < n; i++)
		search_hit(search, kind, matches->v[i].n)->rank[analyser] = (int)i + 1;
	*found += n;
	return 0;
}
