/* One hit as the caller sees it: where it is, and what of it was found. */
#include "work/search_run.h"

/* A token can be as long as the note: snippets are cut around their first mark. */
#define SNIPPET_BYTES 1000
#define SNIPPET_BEFORE 200
#define MARK "<mark>"
#define MARK_END "</mark>"

/* ---- snippets ---- */

/* Steps back from inside a mark, so that no cut leaves half of one. */
static size_t cut_before(struct str text, size_t at)
{
	at = utf8_cut(text, at);
	for (size_t back = 1; back < sizeof(MARK_END) && back <= at; back++)
		if (text.p[at - back] == '<' && memchr(text.p + at - back, '>', back) == NULL)
			return at - back;
	return at;
}

static struct str shorten(struct arena *arena, struct str text)
{
	const char *mark = text.n == 0 ? NULL : memmem(text.p, text.n, MARK, strlen(MARK));
	size_t place = mark == NULL ? 0 : (size_t)(mark - text.p);
	size_t from, to;
	struct str inside;
	struct buf out;

	if (text.n <= SNIPPET_BYTES)
		return text;
	from = place > SNIPPET_BEFORE ? utf8_cut(text, place - SNIPPET_BEFORE) : 0;
	to = from + SNIPPET_BYTES >= text.n ? text.n : cut_before(text, from + SNIPPET_BYTES);
	inside = (struct str){text.p + from, to - from};
	buf_init(&out, arena, SIZE_MAX);
	buf_add_str(&out, from > 0 ? STR("…") : STR(""));
	buf_add_str(&out, inside);
	mark = memrchr(inside.p, '<', inside.n);
	if (mark != NULL && str_starts((struct str){mark, (size_t)(inside.p + inside.n - mark)}, STR(MARK)))
		buf_add_str(&out, STR(MARK_END));
	buf_add_str(&out, to < text.n ? STR("…") : STR(""));
	return buf_str(&out);
}

/* The first of the terms that stands in `text`, marked, with its surroundings. */
static bool mark_first(struct search *search, struct str text, struct str *out)
{
	for (size_t i = 0; i < search->term_count; i++) {
		struct str term = search->terms[i];
		size_t at = search_place(text, term);

		if (at == text.n)
			continue;
		*out = shorten(search->call->arena,
			str_printf(search->call->arena, "%.*s" MARK "%.*s" MARK_END "%.*s", (int)at, text.p, (int)term.n,
				text.p + at, (int)(text.n - at - term.n), text.p + at + term.n));
		return true;
	}
	return false;
}

SQL(SQL_SEARCH_BODY, "SELECT body FROM note_body WHERE n = $1");

static int read_body(struct search *search, int64_t n, struct str *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(search->s, &q, f, SQL_SEARCH_BODY, "i", n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1)
		*out = col_str(&q, 0);
	return rc < 0 ? -1 : 0;
}

static int scan_snippet(struct search *search, const struct item *item, struct hit *hit, struct failure *f)
{
	struct str text = STR("");

	hit->field = "title";
	hit->snippet = item->title;
	if (hit->kind == SEARCH_ITEMS) {
		if (!mark_first(search, item->title, &hit->snippet) && mark_first(search, item->summary, &hit->snippet))
			hit->field = "summary";
		return 0;
	}
	if (read_body(search, hit->n, &text, f) != 0)
		return -1;
	hit->field = "body";
	if (!mark_first(search, text, &hit->snippet))
		hit->snippet = (struct str){text.p, utf8_cut(text, SNIPPET_BYTES)};
	return 0;
}

/* What was found by its parts: the texts are looked into once more. */
static bool mark_parts(struct search *search, struct str text, struct str folded, struct str *out)
{
	return search_mark(search->call->arena, text, folded, search->parts, search->long_count, out);
}

static int parts_snippet(struct search *search, const struct item *item, struct hit *hit, struct failure *f)
{
	struct str body = STR("");
	struct str texts[INDEX_TEXTS] = {item->title, item->summary};
	struct str folded[INDEX_TEXTS];
	bool is_item = hit->kind == SEARCH_ITEMS;

	if (!is_item && read_body(search, hit->n, &body, f) != 0)
		return -1;
	if (!is_item)
		texts[0] = body;
	for (size_t i = 0; i < INDEX_TEXTS; i++) {
		folded[i] = texts[i];
		if (search->is_folded && index_fold(search->s, texts[i], &folded[i], f) != 0)
			return -1;
	}
	hit->field = is_item ? "title" : "body";
	if (mark_parts(search, texts[0], folded[0], &hit->snippet) || !is_item)
		return 0;
	hit->field = "summary";
	(void)mark_parts(search, texts[1], folded[1], &hit->snippet);
	return 0;
}

static void show(struct search *search, struct hit *hit, const struct query *q)
{
	bool is_second = hit->kind == SEARCH_ITEMS && col_is_null(q, 1);
	struct str snippet = col_str(q, is_second ? 2 : 1);

	hit->field = hit->kind == SEARCH_NOTES ? "body" : is_second ? "summary" : "title";
	if (snippet.p != NULL)
		hit->snippet = shorten(search->call->arena, snippet);
}

static int read_snippets(struct search *search, enum search_kind kind, struct hit *hits, size_t n, struct failure *f)
{
	const struct index index = {.kind = kind, .analyser = ANALYSER_TEXT, .query = search->words};
	AUTO(query_endp) struct query q = {0};
	int64_t rows[LIMIT_SEARCH_HITS];
	size_t count = 0;
	struct sql sql;
	int rc;

	for (size_t i = 0; i < n; i++)
		if (hits[i].kind == kind && hits[i].rank[LOOK_TEXT] > 0)
			rows[count++] = hits[i].n;
	if (count == 0)
		return 0;
	sql_init(&sql, search->call->arena);
	index_snippets(&index, rows, count, &sql);
	if (query_sql(search->s, &q, f, &sql) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1)
		for (size_t i = 0; i < n; i++)
			if (hits[i].kind == kind && hits[i].n == col_int(&q, 0))
				show(search, &hits[i], &q);
	return rc;
}

int search_snippets(struct search *search, struct hit *hits, size_t n, struct failure *f)
{
	for (enum search_kind kind = SEARCH_ITEMS; kind <= SEARCH_NOTES; kind++)
		if (read_snippets(search, kind, hits, n, f) != 0)
			return -1;
	return 0;
}

static int find_snippet(struct search *search, const struct item *item, struct hit *hit, struct failure *f)
{
	if (hit->rank[LOOK_TEXT] > 0)
		return 0;
	return hit->rank[LOOK_TRIGRAM] > 0 ? parts_snippet(search, item, hit, f) : scan_snippet(search, item, hit, f);
}

/* ---- members ---- */

SQL(SQL_HIT_NOTE, "SELECT key, role FROM note WHERE n = $1");

static int write_note(struct search *search, const struct hit *hit, const struct item *item, struct json_writer *out,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(search->s, &q, f, SQL_HIT_NOTE, "i", hit->n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	jw_id(out, search->call, "itemId", item->id);
	jw_kstr(out, "key", col_str(&q, 0));
	jw_ktext(out, "noteRole", role_name((enum role)col_int(&q, 1)));
	return 0;
}

static void write_ranks(struct search *search, const struct hit *hit, struct json_writer *out)
{
	static const char *const names[LOOK_COUNT] = {"trigram", "text", "scan"};
	static const char *const ranks[LOOK_COUNT] = {"trigramRank", "textRank", "scanRank"};

	jw_key(out, "score");
	jw_raw(out, str_printf(search->call->arena, "%.6f", hit->score));
	jw_karray(out, "matchedIn");
	for (int i = 0; i < LOOK_COUNT; i++)
		if (hit->rank[i] > 0)
			jw_text(out, names[i]);
	jw_array_end(out);
	if (!search->in->explain.v)
		return;
	for (int i = 0; i < LOOK_COUNT; i++)
		jw_kint_opt(out, ranks[i], hit->rank[i]);
	jw_kint(out, "rrfK", RRF_K);
}

int search_write_hit(struct search *search, struct hit *hit, struct json_writer *out, struct failure *f)
{
	struct item item;

	if (item_load(search->s, hit->item_n, &item, f) < 0 || find_snippet(search, &item, hit, f) != 0)
		return -1;
	jw_ktext(out, "kind", hit->kind == SEARCH_ITEMS ? "item" : "note");
	jw_id_of(out, search->call, "id", hit->kind == SEARCH_ITEMS ? KIND_ITEM : KIND_NOTE, hit->id);
	if (hit->kind == SEARCH_NOTES && write_note(search, hit, &item, out, f) != 0)
		return -1;
	jw_kstr(out, "title", item.title);
	jw_ktext(out, "role", role_name(item.role));
	if (hit->kind == SEARCH_ITEMS) {
		jw_ktext(out, "priority", priority_name(item.priority));
		if (item.parent_n != 0)
			jw_id(out, search->call, "parentId", item.parent_id);
	}
	jw_ktext(out, "field", hit->field);
	jw_kstr(out, "snippet", hit->snippet);
	write_ranks(search, hit, out);
	if (fields_have(search->in->fields.v, search->in->fields.n, "ancestors"))
		return ancestors_write(out, search->s, search->call, item.parent_n, f);
	return 0;
}
