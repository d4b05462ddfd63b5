/* items_read search: what to look for, in which analysers, and the fused answer. */
#include "work/search_run.h"

#include <stdlib.h>

#define PAGE_DEFAULT 20

/* ---- terms ---- */

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A letter, a digit, or anything beyond ASCII: what a person may look for though it is short. */
static bool has_word(struct str term)
{
	for (size_t i = 0; i < term.n; i++) {
		unsigned char c = (unsigned char)term.p[i];

		if (c >= 0x80 || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
			return true;
	}
	return false;
}

static void split(struct search *search)
{
	struct str query = search->in->query.v;
	size_t at = 0;

	search->terms = ARENA_ARRAY(search->call->arena, struct str, query.n / 2 + 1);
	search->long_terms = ARENA_ARRAY(search->call->arena, struct str, query.n / 2 + 1);
	while (at < query.n) {
		struct str term;
		size_t end;

		while (at < query.n && is_space(query.p[at]))
			at++;
		for (end = at; end < query.n && !is_space(query.p[end]);)
			end++;
		if (end == at)
			return;
		term = (struct str){query.p + at, end - at};
		at = end;
		search->terms[search->term_count++] = term;
		if (utf8_count(term) >= TRIGRAM_CHARS)
			search->long_terms[search->long_count++] = term;
		else if (has_word(term))
			search->has_short_word = true;
	}
}

/* ---- hits ---- */

struct hit *search_hit(struct search *search, enum search_kind kind, int64_t n)
{
	int64_t key = 2 * n + (int64_t)kind;
	const int64_t *place = int_map_find(&search->places, key);

	if (place != NULL)
		return &search->hits[*place];
	if (search->hit_count == search->hit_cap) {
		size_t cap = search->hit_cap == 0 ? 256 : search->hit_cap * 2;

		search->hits = arena_grow(search->call->arena, search->hits, search->hit_cap * sizeof(*search->hits),
			cap * sizeof(*search->hits));
		search->hit_cap = cap;
	}
	int_map_add(&search->places, key, (int64_t)search->hit_count);
	search->hits[search->hit_count] = (struct hit){.kind = kind, .n = n, .field = "title", .snippet = STR("")};
	return &search->hits[search->hit_count++];
}

/* Reciprocal rank: what stands high in any list stands high in all. */
static void score(struct hit *hit)
{
	hit->score = 0;
	for (int i = 0; i < LOOK_COUNT; i++)
		if (hit->rank[i] > 0)
			hit->score += 1.0 / (double)(RRF_K + hit->rank[i]);
}

static int by_score(const void *a, const void *b)
{
	const struct hit *x = a;
	const struct hit *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return id_cmp(x->id, y->id);
}

SQL(SQL_SEARCH_ITEM, "SELECT id, n FROM item WHERE n = $1");
SQL(SQL_SEARCH_NOTE, "SELECT id, item_n FROM note WHERE n = $1");

static int identify(struct search *search, struct hit *hit, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(search->s, &q, f, hit->kind == SEARCH_ITEMS ? SQL_SEARCH_ITEM : SQL_SEARCH_NOTE, "i", hit->n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1) {
		hit->id = col_id(&q, 0);
		hit->item_n = col_int(&q, 1);
	}
	return rc < 0 ? -1 : 0;
}

/* Ids break ties, but are looked up only for hits that may be kept: the best, and those level with the last of
 * them. */
static int fuse(struct search *search, struct failure *f)
{
	size_t n = search->hit_count;

	for (size_t i = 0; i < n; i++)
		score(&search->hits[i]);
	if (n > 1)
		qsort(search->hits, n, sizeof(*search->hits), by_score);
	if (n > LIMIT_SEARCH_HITS) {
		double last = search->hits[LIMIT_SEARCH_HITS - 1].score;

		for (n = LIMIT_SEARCH_HITS; n < search->hit_count && search->hits[n].score >= last;)
			n++;
		search->hit_count = LIMIT_SEARCH_HITS;
		search->is_truncated = true;
	}
	for (size_t i = 0; i < n; i++)
		if (identify(search, &search->hits[i], f) != 0)
			return -1;
	if (n > 1)
		qsort(search->hits, n, sizeof(*search->hits), by_score);
	return 0;
}

/* ---- looking ---- */

static bool wants(const struct search *search, enum search_kind kind)
{
	for (size_t i = 0; i < search->in->kinds.n; i++)
		if (search->in->kinds.v[i] == (int64_t)kind)
			return true;
	return !search->in->kinds.set;
}

static int look(struct search *search, enum analyser analyser, size_t *found, struct failure *f)
{
	for (enum search_kind kind = SEARCH_ITEMS; kind <= SEARCH_NOTES; kind++)
		if (wants(search, kind) && search_ranked(search, kind, analyser, found, f) != 0)
			return -1;
	return 0;
}

/* Short words are in no trigram, and the words of a text without blanks are no tokens: then look at the texts. */
static int scan(struct search *search, struct failure *f)
{
	for (enum search_kind kind = SEARCH_ITEMS; kind <= SEARCH_NOTES; kind++)
		if (wants(search, kind) && search_scan(search, kind, f) != 0)
			return -1;
	warn(&search->call->warnings, "search_fallback", STR_NONE,
		"A term is shorter than %d characters: %s were read for it, titles, summaries and note bodies.",
		TRIGRAM_CHARS,
		search->is_scan_bounded
			? str_z(search->call->arena,
				  str_printf(search->call->arena, "only the newest %d items and notes in scope",
					  LIMIT_SEARCH_SCAN))
			: "all items and notes in scope");
	return 0;
}

/* ASCII is compared as it stands; for other letters the store folds texts and terms. */
static int fold_parts(struct search *search, struct failure *f)
{
	search->parts = search->long_terms;
	for (size_t i = 0; i < search->long_count; i++)
		for (size_t k = 0; k < search->long_terms[i].n; k++)
			search->is_folded = search->is_folded || (unsigned char)search->long_terms[i].p[k] >= 0x80;
	if (!search->is_folded)
		return 0;
	search->parts = ARENA_ARRAY(search->call->arena, struct str, search->long_count);
	for (size_t i = 0; i < search->long_count; i++)
		if (index_fold(search->s, search->long_terms[i], &search->parts[i], f) != 0)
			return -1;
	return 0;
}

static int find_all(struct search *search, struct failure *f)
{
	enum match_mode mode = (enum match_mode)search->in->mode.v; /* unset: auto */
	size_t by_trigram = 0, by_text = 0;

	if (mode == MATCH_SUBSTRING && search->long_count == 0)
		return fail_field(f, STR("query"), STR_NONE,
			"matchMode substring needs a term of at least %d characters; auto looks for shorter ones",
			TRIGRAM_CHARS);
	if (mode != MATCH_SUBSTRING && look(search, ANALYSER_TEXT, &by_text, f) != 0)
		return -1;
	if (mode != MATCH_TEXT && search->long_count > 0 &&
		(fold_parts(search, f) != 0 || look(search, ANALYSER_TRIGRAM, &by_trigram, f) != 0))
		return -1;
	if (mode == MATCH_AUTO && by_text == 0 && search->has_short_word && scan(search, f) != 0)
		return -1;
	return fuse(search, f);
}

/* ---- the answer ---- */

static int write_page(struct search *search, int64_t offset, struct json_writer *out, struct failure *f)
{
	int64_t limit = search->in->limit.set ? search->in->limit.v : PAGE_DEFAULT;
	int64_t at = offset;
	struct str next = STR_NONE;
	struct rows rows;

	if (at < (int64_t)search->hit_count) {
		size_t left = search->hit_count - (size_t)at;

		if (search_snippets(search, search->hits + at, left < (size_t)limit ? left : (size_t)limit, f) != 0)
			return -1;
	}
	rows_init(&rows, out, search->call);
	jw_karray(out, "hits");
	for (; at < (int64_t)search->hit_count && (int64_t)rows.n < limit; at++) {
		row_begin(&rows);
		if (search_write_hit(search, &search->hits[at], out, f) != 0)
			return -1;
		if (!row_end(&rows))
			break;
	}
	jw_array_end(out);
	jw_kbool_opt(out, "truncated", search->is_truncated);
	if (at < (int64_t)search->hit_count) {
		struct str part = str_printf(search->call->arena, "%lld", (long long)at);

		next = cursor_text(search->call, &part, 1);
	}
	call_page(search->call, (int64_t)rows.n, (int64_t)search->hit_count, next);
	return 0;
}

static int open_search(struct search *search, struct failure *f)
{
	struct item item;

	if (filter_prepare(search->s, search->call, &search->in->filter, STR(""), &search->filter, f) != 0)
		return -1;
	search->filter.includes_ancestor = true;
	if (!search->in->item.set)
		return 0;
	if (item_find(search->s, search->call, search->in->item.v, STR("itemId"), &item, f) != 0)
		return -1;
	search->item_n = item.n;
	return 0;
}

int items_search(struct snapshot *s, struct call *call, const struct search_args *in, struct json_writer *out,
	struct failure *f)
{
	struct search search = {.s = s, .call = call, .in = in};
	struct cursor cursor = {.n = 0};
	int64_t offset = 0;

	if (in->cursor.set) {
		if (cursor_read(call, in->cursor.v, &cursor, f) != 0)
			return -1;
		offset = cursor_int(&cursor, 0);
		if (offset < 0 || offset > LIMIT_SEARCH_HITS)
			return fail(f, FAIL_INVALID_CURSOR, "The cursor does not belong to this listing.");
	}
	int_map_init(&search.places, call->arena);
	split(&search);
	search.words = index_words(call->arena, search.terms, search.term_count);
	if (open_search(&search, f) != 0 || find_all(&search, f) != 0)
		return -1;
	return write_page(&search, offset, out, f);
}
