/* The search index in SQLite: FTS5, two analysers over each source. */
#include "work/search_index.h"

#include <stdlib.h>

/* Of the grams of a query as many are weighed, and as many of those looked up: more would only spare looking into
 * texts that hold these and not the rest, and a gram that is in most texts spares none. */
#define MOST_GRAMS 12
#define MOST_ASKED 3
/* A gram is weighed by where its match number WEIGHED is; what has fewer is enough alone. */
#define WEIGHED 100
/* Looking into a text costs as much as this many steps through the index. */
#define STEPS_PER_TEXT 30
/* So many texts at most are looked into oldest first, which is the cheaper walk, in the hope that few hold the parts. */
#define MOST_WHOLE 5000

static const struct {
	const char *table, *sizes, *texts[INDEX_TEXTS];
} indexes[2][ANALYSER_COUNT] = {
	[SEARCH_ITEMS] =
		{
			[ANALYSER_TRIGRAM] = {"item_fts_grams", NULL, {"title", "summary"}},
			[ANALYSER_TEXT] = {"item_fts_text", "item_fts_text_docsize", {NULL}},
		},
	[SEARCH_NOTES] =
		{
			[ANALYSER_TRIGRAM] = {"note_fts_grams", NULL, {"body"}},
			[ANALYSER_TEXT] = {"note_fts_text", "note_fts_text_docsize", {NULL}},
		},
};

/* ---- queries ---- */

static void quote(struct buf *out, struct str text)
{
	buf_add_str(out, out->n == 0 ? STR("\"") : STR(" \""));
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"')
			buf_add_char(out, '"');
		buf_add_char(out, text.p[i]);
	}
	buf_add_char(out, '"');
}

static struct str chars(struct str text, size_t from, size_t n)
{
	size_t start = utf8_offset(text, from);

	return (struct str){text.p + start, utf8_offset(text, from + n) - start};
}

struct str index_words(struct arena *arena, const struct str *terms, size_t n)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t i = 0; i < n; i++)
		quote(&out, terms[i]);
	return buf_str(&out);
}

/* ---- grams ---- */

struct gram {
	struct str query;
	double matches; /* about */
};
struct grams {
	struct gram v[MOST_GRAMS];
	size_t n;
};

static void add_gram(struct arena *arena, struct grams *grams, struct str text, bool is_prefix)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	quote(&out, text);
	if (is_prefix)
		buf_add_char(&out, '*');
	for (size_t i = 0; i < grams->n; i++)
		if (str_eq(grams->v[i].query, buf_str(&out)))
			return;
	grams->v[grams->n++] = (struct gram){.query = buf_str(&out)};
}

/* Grams side by side, and the last one; of a term that is shorter than a gram, the grams that begin with it. */
static void add_grams(struct arena *arena, struct grams *grams, struct str term)
{
	size_t length = utf8_count(term);
	bool is_short = length < GRAM_CHARS;
	size_t step = is_short ? 1 : GRAM_CHARS;
	size_t size = is_short ? TRIGRAM_CHARS : GRAM_CHARS;

	for (size_t at = 0; grams->n < MOST_GRAMS; at += step) {
		if (at + size > length)
			at = length - size;
		add_gram(arena, grams, chars(term, at, size), is_short);
		if (at + size == length)
			return;
	}
}

/* From the oldest on: to begin with the newest makes FTS5 unpack a page of each of its segments. */
static int weigh(struct snapshot *s, enum search_kind kind, int64_t newest, struct gram *gram, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;
	int rc;

	sql_init(&sql, s->arena);
	sql_add(&sql, kind == SEARCH_NOTES ? "SELECT f.rowid FROM note_fts_grams f WHERE f.note_fts_grams MATCH "
					   : "SELECT f.rowid FROM item_fts_grams f WHERE f.item_fts_grams MATCH ");
	sql_str(&sql, gram->query);
	sql_add(&sql, " ORDER BY f.rowid LIMIT 1 OFFSET ");
	sql_int(&sql, WEIGHED);
	if (query_sql(s, &q, f, &sql) != 0 || (rc = query_next(&q, f)) < 0)
		return -1;
	if (rc == 1)
		gram->matches = (double)WEIGHED * (double)newest / (double)col_int(&q, 0);
	return 0;
}

static int by_matches(const void *a, const void *b)
{
	const struct gram *x = a;
	const struct gram *y = b;

	return x->matches < y->matches ? -1 : x->matches > y->matches;
}

SQL(SQL_NEWEST_ITEM, "SELECT max(n) FROM item");
SQL(SQL_NEWEST_NOTE, "SELECT max(n) FROM note");

/* The rarest gram; and others while a walk over theirs costs less than looking into the texts that they spare. How
 * many texts will be looked into, about. */
static double ask(const struct grams *grams, double newest, struct buf *query)
{
	double texts = grams->n == 0 ? 0 : grams->v[0].matches;

	for (size_t i = 0; i < grams->n && i < MOST_ASKED; i++) {
		double share = newest > 0 ? grams->v[i].matches / newest : 0;

		if (i > 0 && grams->v[i].matches > STEPS_PER_TEXT * texts * (1 - share))
			break;
		buf_add_str(query, i == 0 ? STR("") : STR(" "));
		buf_add_str(query, grams->v[i].query);
		texts = i == 0 ? texts : texts * share;
	}
	return texts;
}

int index_parts(struct snapshot *s, const struct str *terms, size_t n, struct index *index, struct failure *f)
{
	struct grams grams = {.n = 0};
	int64_t newest = 0;
	struct buf query;

	for (size_t i = 0; i < n && grams.n < MOST_GRAMS; i++)
		add_grams(s->arena, &grams, terms[i]);
	if (query_int(s, &newest, f, index->kind == SEARCH_NOTES ? SQL_NEWEST_NOTE : SQL_NEWEST_ITEM, "") < 0)
		return -1;
	for (size_t i = 0; grams.n > 1 && i < grams.n; i++)
		if (weigh(s, index->kind, newest, &grams.v[i], f) != 0)
			return -1;
	if (grams.n > 1)
		qsort(grams.v, grams.n, sizeof(*grams.v), by_matches);
	buf_init(&query, s->arena, SIZE_MAX);
	index->is_whole = ask(&grams, (double)newest, &query) <= MOST_WHOLE && grams.n > 1;
	index->query = buf_str(&query);
	return 0;
}

int index_fold(struct snapshot *s, struct str text, struct str *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct sql sql;
	int rc;

	sql_init(&sql, s->arena);
	sql_add(&sql, "SELECT fold(");
	sql_str(&sql, text);
	sql_add(&sql, ")");
	if (query_sql(s, &q, f, &sql) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1)
		*out = col_str(&q, 0);
	return rc < 0 ? -1 : 0;
}

/* ---- matches ---- */

static void add_texts(const struct index *index, struct sql *sql)
{
	for (size_t i = 0; i < INDEX_TEXTS; i++) {
		const char *column = indexes[index->kind][index->analyser].texts[i];

		if (column == NULL)
			continue;
		sql_add(sql, index->is_folded ? ", fold(b." : ", b.");
		sql_add(sql, column);
		sql_add(sql, index->is_folded ? ")" : "");
	}
}

/* The index leads (CROSS JOIN keeps the order): its matches are looked up, never the items in it. */
static void add_owner(const struct index *index, const struct index_scope *scope, struct sql *sql)
{
	bool is_joined = scope->way == SCOPE_JOINED;

	if (index->kind == SEARCH_NOTES && (is_joined || scope->has_owner))
		sql_add(sql, " CROSS JOIN note x ON x.n = f.rowid");
	if (is_joined)
		sql_add(sql, index->kind == SEARCH_NOTES ? " CROSS JOIN item i ON i.n = x.item_n"
							 : " CROSS JOIN item i ON i.n = f.rowid");
	if (is_joined && scope->with_text)
		sql_add(sql, " CROSS JOIN item_text t ON t.n = i.n");
}

static void add_passing(enum search_kind kind, const struct index_scope *scope, struct sql *sql)
{
	sql_add(sql, kind == SEARCH_NOTES ? "SELECT x.n AS n FROM note x JOIN item i ON i.n = x.item_n"
					  : "SELECT i.n AS n FROM item i");
	if (scope->with_text)
		sql_add(sql, " JOIN item_text t ON t.n = i.n");
	sql_add(sql, " WHERE 1 = 1");
	scope->add(scope->context, sql);
}

static void add_rows(const struct index_scope *scope, struct sql *sql)
{
	if (scope->first != 0) {
		sql_add(sql, " AND f.rowid >= ");
		sql_int(sql, scope->first);
	}
	if (scope->last != 0) {
		sql_add(sql, " AND f.rowid <= ");
		sql_int(sql, scope->last);
	}
}

static void add_match(const struct index *index, struct sql *sql)
{
	const char *table = indexes[index->kind][index->analyser].table;

	sql_add(sql, " WHERE f.");
	sql_add(sql, table);
	sql_add(sql, " MATCH ");
	sql_str(sql, index->query);
}

static void add_score(const struct index *index, struct sql *sql)
{
	if (index->analyser != ANALYSER_TEXT) {
		sql_add(sql, "0");
		return;
	}
	sql_add(sql, "rank_words(f.");
	sql_add(sql, indexes[index->kind][index->analyser].table);
	sql_add(sql, ", z.sz, ");
	if (index->weights.p == NULL)
		sql_add(sql, "NULL");
	else
		sql_str(sql, index->weights);
	sql_add(sql, ")");
}

/* How long each text is, or the text. FTS5 knows both, but asks these tables in a way three times as dear. */
static void add_joined(const struct index *index, struct sql *sql)
{
	if (index->analyser == ANALYSER_TRIGRAM) {
		sql_add(sql, index->kind == SEARCH_NOTES ? " CROSS JOIN note_body b ON b.n = f.rowid"
							 : " CROSS JOIN item_text b ON b.n = f.rowid");
		return;
	}
	sql_add(sql, " LEFT JOIN ");
	sql_add(sql, indexes[index->kind][index->analyser].sizes);
	sql_add(sql, " z ON z.id = f.rowid");
}

void index_matches(const struct index *index, const struct index_scope *scope, struct sql *sql)
{
	const char *table = indexes[index->kind][index->analyser].table;
	bool is_note = index->kind == SEARCH_NOTES;

	sql_add(sql, "SELECT f.rowid, ");
	add_score(index, sql);
	if (scope->has_owner)
		sql_add(sql, is_note ? ", x.item_n, x.key" : ", f.rowid, ''");
	else
		sql_add(sql, ", 0, ''");
	add_texts(index, sql);
	sql_add(sql, " FROM ");
	sql_add(sql, table);
	sql_add(sql, " f");
	add_owner(index, scope, sql);
	add_joined(index, sql);
	add_match(index, sql);
	add_rows(scope, sql);
	if (scope->way == SCOPE_JOINED)
		scope->add(scope->context, sql);
	if (scope->way == SCOPE_LISTED) {
		/* The plus keeps it a test of each match; else the index would be asked anew for every row. */
		sql_add(sql, " AND +f.rowid IN (");
		add_passing(index->kind, scope, sql);
		sql_add(sql, ")");
	}
	sql_add(sql, index->is_whole ? " ORDER BY f.rowid" : " ORDER BY f.rowid DESC");
}

/* Few lengths of the list, so few statements that are kept. */
static void add_list(const int64_t *rows, size_t n, struct sql *sql)
{
	size_t padded = 1;

	while (padded < n)
		padded *= 2;
	for (size_t i = 0; i < padded; i++) {
		sql_add(sql, i == 0 ? "(" : ", ");
		sql_int(sql, rows[i < n ? i : n - 1]);
	}
	sql_add(sql, ")");
}

void index_texts(const struct index *index, const int64_t *rows, size_t n, struct sql *sql)
{
	sql_add(sql, "SELECT b.n, 0, 0, ''");
	add_texts(index, sql);
	sql_add(sql, index->kind == SEARCH_NOTES ? " FROM note_body b WHERE b.n IN " : " FROM item_text b WHERE b.n IN ");
	add_list(rows, n, sql);
}

void index_weights(const struct index *index, struct sql *sql)
{
	const char *table = indexes[index->kind][index->analyser].table;

	sql_add(sql, "SELECT weigh_words(f.");
	sql_add(sql, table);
	sql_add(sql, index->kind == SEARCH_NOTES ? "), (SELECT max(n) FROM note) FROM " : "), (SELECT max(n) FROM item) FROM ");
	sql_add(sql, table);
	sql_add(sql, " f");
	add_match(index, sql);
	sql_add(sql, " LIMIT 1");
}

void index_nth(const struct index *index, int64_t skip, struct sql *sql)
{
	sql_add(sql, "SELECT f.rowid FROM ");
	sql_add(sql, indexes[index->kind][index->analyser].table);
	sql_add(sql, " f");
	add_match(index, sql);
	sql_add(sql, " ORDER BY f.rowid DESC LIMIT 1 OFFSET ");
	sql_int(sql, skip);
}

void index_extent(enum search_kind kind, const struct index_scope *scope, int64_t most, struct sql *sql)
{
	sql_add(sql, "SELECT min(n), max(n), count(*) FROM (");
	add_passing(kind, scope, sql);
	sql_add(sql, " LIMIT ");
	sql_int(sql, most);
	sql_add(sql, ") AS passing");
}

/* ---- snippets ---- */

/* From the texts alone: to come to one match in the index, others are walked over. */
void index_snippets(const struct index *index, const int64_t *rows, size_t n, struct sql *sql)
{
	bool is_note = index->kind == SEARCH_NOTES;

	sql_add(sql, "SELECT f.n, snippet_words(");
	sql_str(sql, index->query);
	sql_add(sql, is_note ? ", f.body)" : ", f.title), snippet_words(");
	if (!is_note) {
		sql_str(sql, index->query);
		sql_add(sql, ", f.summary)");
	}
	sql_add(sql, is_note ? " FROM note_body f WHERE f.n IN " : " FROM item_text f WHERE f.n IN ");
	add_list(rows, n, sql);
}
