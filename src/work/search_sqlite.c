/* The search index in SQLite: FTS5, two analysers over each source. */
#include "work/search_index.h"

/* The index leads (CROSS JOIN keeps the order): its matches are looked up, never the items in it. */
#define ITEM_FROM(table) " FROM " table " CROSS JOIN item i ON i.n = " table ".rowid"
#define NOTE_FROM(table) \
	" FROM " table " CROSS JOIN note x ON x.n = " table ".rowid CROSS JOIN item i ON i.n = x.item_n"

static const struct {
	const char *matches, *match, *matches_end;
} texts[2][ANALYSER_COUNT] = {
#define TEXTS(table, from, id, key) \
	{ \
		"SELECT " table ".rowid, " id ", i.n, " key ", bm25(" table ")" from(table), \
			" WHERE " table " MATCH ", " ORDER BY " table ".rowid DESC", \
	}
	[SEARCH_ITEMS] =
		{
			[ANALYSER_TRIGRAM] = TEXTS("item_fts_trigram", ITEM_FROM, "i.id", "''"),
			[ANALYSER_TEXT] = TEXTS("item_fts_text", ITEM_FROM, "i.id", "''"),
		},
	[SEARCH_NOTES] =
		{
			[ANALYSER_TRIGRAM] = TEXTS("note_fts_trigram", NOTE_FROM, "x.id", "x.key"),
			[ANALYSER_TEXT] = TEXTS("note_fts_text", NOTE_FROM, "x.id", "x.key"),
		},
#undef TEXTS
};

struct str index_query(struct arena *arena, const struct str *terms, size_t n)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t i = 0; i < n; i++) {
		buf_add_str(&out, i == 0 ? STR("\"") : STR(" \""));
		for (size_t k = 0; k < terms[i].n; k++) {
			if (terms[i].p[k] == '"')
				buf_add_char(&out, '"');
			buf_add_char(&out, terms[i].p[k]);
		}
		buf_add_char(&out, '"');
	}
	return buf_str(&out);
}

void index_matches(const struct index *index, struct sql *sql)
{
	sql_add(sql, texts[index->kind][index->analyser].matches);
	if (index->with_text)
		sql_add(sql, " CROSS JOIN item_text t ON t.n = i.n");
	sql_add(sql, texts[index->kind][index->analyser].match);
	sql_str(sql, index->query);
}

void index_matches_end(const struct index *index, struct sql *sql)
{
	sql_add(sql, texts[index->kind][index->analyser].matches_end);
}

/* ---- snippets ---- */

/* A token of the trigram index is one step of a character: 64 is the most that FTS5 takes. */
#define SNIPPET(table, column, tokens) "snippet(" table ", " column ", '<mark>', '</mark>', '…', " tokens ")"
#define ITEM_SNIPPET(table, tokens) \
	"SELECT " SNIPPET(table, "0", tokens) ", " SNIPPET(table, "1", tokens) ", title FROM " table \
	" WHERE " table " MATCH $1 AND rowid = $2"
#define NOTE_SNIPPET(table, tokens) \
	"SELECT " SNIPPET(table, "0", tokens) " FROM " table " WHERE " table " MATCH $1 AND rowid = $2"

SQL(SQL_SNIPPET_ITEM_TEXT, ITEM_SNIPPET("item_fts_text", "32"));
SQL(SQL_SNIPPET_ITEM_TRIGRAM, ITEM_SNIPPET("item_fts_trigram", "64"));
SQL(SQL_SNIPPET_NOTE_TEXT, NOTE_SNIPPET("note_fts_text", "32"));
SQL(SQL_SNIPPET_NOTE_TRIGRAM, NOTE_SNIPPET("note_fts_trigram", "64"));

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
	static const char *const sql[2][ANALYSER_COUNT] = {
		[SEARCH_ITEMS] = {[ANALYSER_TRIGRAM] = SQL_SNIPPET_ITEM_TRIGRAM, [ANALYSER_TEXT] = SQL_SNIPPET_ITEM_TEXT},
		[SEARCH_NOTES] = {[ANALYSER_TRIGRAM] = SQL_SNIPPET_NOTE_TRIGRAM, [ANALYSER_TEXT] = SQL_SNIPPET_NOTE_TEXT},
	};
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, sql[index->kind][index->analyser], "si", index->query, n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	out->text = col_str(&q, 0);
	out->field = "body";
	if (index->kind == SEARCH_NOTES)
		return 1;
	out->field = "title";
	if (count_marks(out->text) > count_marks(col_str(&q, 2)))
		return 1; /* more than the title itself spells */
	out->text = col_str(&q, 1);
	out->field = "summary";
	return 1;
}
