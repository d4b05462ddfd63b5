/* The search index in SQLite: FTS5, two analysers over each source. */
#include "work/search_index.h"

#include "store/analyse.h"

/* As many grams of a query are looked up: more would only spare looking into texts that hold these and not the
 * rest. */
#define MOST_GRAMS 12

static const struct {
	const char *table, *texts[INDEX_TEXTS];
} indexes[2][ANALYSER_COUNT] = {
	[SEARCH_ITEMS] =
		{
			[ANALYSER_TRIGRAM] = {"item_fts_grams", {"title", "summary"}},
			[ANALYSER_TEXT] = {"item_fts_text"},
		},
	[SEARCH_NOTES] =
		{
			[ANALYSER_TRIGRAM] = {"note_fts_grams", {"body"}},
			[ANALYSER_TEXT] = {"note_fts_text"},
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

/* Grams side by side, and the last one; of a term that is shorter than a gram, the grams that begin with it. */
static void add_grams(struct buf *out, struct str term, size_t *left)
{
	size_t length = utf8_count(term);
	bool is_short = length < GRAM_CHARS;
	size_t step = is_short ? 1 : GRAM_CHARS;
	size_t size = is_short ? TRIGRAM_CHARS : GRAM_CHARS;

	for (size_t at = 0; *left > 0; at += step) {
		if (at + size > length)
			at = length - size;
		quote(out, chars(term, at, size));
		if (is_short)
			buf_add_char(out, '*');
		(*left)--;
		if (at + size == length)
			return;
	}
}

struct str index_query(struct arena *arena, enum analyser analyser, const struct str *terms, size_t n)
{
	size_t grams_left = MOST_GRAMS;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t i = 0; i < n; i++) {
		if (analyser == ANALYSER_TEXT)
			quote(&out, terms[i]);
		else
			add_grams(&out, terms[i], &grams_left);
	}
	return buf_str(&out);
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
		sql_add(sql, index->is_folded ? ", fold(f." : ", f.");
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

void index_matches(const struct index *index, const struct index_scope *scope, struct sql *sql)
{
	const char *table = indexes[index->kind][index->analyser].table;
	bool is_note = index->kind == SEARCH_NOTES;

	sql_add(sql, "SELECT f.rowid, ");
	if (index->analyser == ANALYSER_TEXT) {
		sql_add(sql, "rank_words(f.");
		sql_add(sql, table);
		sql_add(sql, ")");
	} else {
		sql_add(sql, "0");
	}
	if (scope->has_owner)
		sql_add(sql, is_note ? ", x.item_n, x.key" : ", f.rowid, ''");
	else
		sql_add(sql, ", 0, ''");
	add_texts(index, sql);
	sql_add(sql, " FROM ");
	sql_add(sql, table);
	sql_add(sql, " f");
	add_owner(index, scope, sql);
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
	sql_add(sql, " ORDER BY f.rowid DESC");
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

#define SNIPPET(table, column) "snippet(" table ", " column ", '<mark>', '</mark>', '…', 32)"
SQL(SQL_SNIPPET_ITEM, "SELECT " SNIPPET("item_fts_text", "0") ", " SNIPPET("item_fts_text", "1") ", title"
	" FROM item_fts_text WHERE item_fts_text MATCH $1 AND rowid = $2");
SQL(SQL_SNIPPET_NOTE,
	"SELECT " SNIPPET("note_fts_text", "0") " FROM note_fts_text WHERE note_fts_text MATCH $1 AND rowid = $2");

static size_t count_marks(struct str text)
{
	size_t n = 0;

	for (const char *at = text.p, *end = text.p + text.n; at != NULL && at < end; n++) {
		at = memmem(at, (size_t)(end - at), "<mark>", 6);
		if (at == NULL)
			return n;
		at += 6;
	}
	return n;
}

int index_snippet(struct snapshot *s, const struct index *index, int64_t n, struct snippet *out, struct failure *f)
{
	bool is_note = index->kind == SEARCH_NOTES;
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, is_note ? SQL_SNIPPET_NOTE : SQL_SNIPPET_ITEM, "si", index->query, n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	out->text = col_str(&q, 0);
	out->field = "body";
	if (is_note)
		return 1;
	out->field = "title";
	if (count_marks(out->text) > count_marks(col_str(&q, 2)))
		return 1; /* more than the title itself spells */
	out->text = col_str(&q, 1);
	out->field = "summary";
	return 1;
}
