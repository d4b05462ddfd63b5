/* Looking into texts, once an index said which. */
#include "work/search_run.h"

/* Characters of a text around what was found in it. */
#define SHOWN_CHARS 64
#define SHOWN_BEFORE 16

static unsigned char lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

static bool same_rest(const char *p, struct str term)
{
	for (size_t k = 1; k < term.n; k++)
		if (lower(p[k]) != lower(term.p[k]))
			return false;
	return true;
}

/* The first byte is looked for in both cases, each by the C library, which looks at many bytes at once. */
size_t search_place(struct str text, struct str term)
{
	unsigned char small, great;
	const char *end, *a, *b;

	if (term.n == 0 || term.n > text.n)
		return term.n == 0 ? 0 : text.n;
	small = lower(term.p[0]);
	great = small >= 'a' && small <= 'z' ? small & 0xDF : small;
	end = text.p + text.n - term.n + 1;
	a = memchr(text.p, small, (size_t)(end - text.p));
	b = great == small ? NULL : memchr(text.p, great, (size_t)(end - text.p));
	while (a != NULL || b != NULL) {
		bool is_a = b == NULL || (a != NULL && a < b);
		const char *at = is_a ? a : b;

		if (same_rest(at, term))
			return (size_t)(at - text.p);
		at = memchr(at + 1, is_a ? small : great, (size_t)(end - at - 1));
		a = is_a ? at : a;
		b = is_a ? b : at;
	}
	return text.n;
}

size_t search_count(struct str text, struct str term)
{
	size_t n = 0;

	for (;;) {
		size_t at = search_place(text, term);

		if (at == text.n)
			return n;
		n++;
		text = (struct str){text.p + at + term.n, text.n - at - term.n};
		if (text.n == 0)
			return n;
	}
}

/* ---- marks ---- */

/* The longest of the terms that stands right at the start of `text`; 0: none. */
static size_t term_at(struct str text, const struct str *terms, size_t n)
{
	size_t longest = 0;

	for (size_t i = 0; i < n; i++)
		if (terms[i].n > longest && terms[i].n <= text.n &&
			search_place((struct str){text.p, terms[i].n}, terms[i]) == 0)
			longest = terms[i].n;
	return longest;
}

static struct str from(struct str text, size_t at)
{
	return (struct str){text.p + at, text.n - at};
}

/* `text` from character `at` on, `count` of them and the rest of a term that begins among them. */
static void add_marked(struct buf *out, struct str text, struct str folded, size_t at, size_t count,
	const struct str *terms, size_t n)
{
	size_t in_text = utf8_offset(text, at), in_folded = utf8_offset(folded, at);

	for (size_t shown = 0; shown < count && in_text < text.n && in_folded < folded.n;) {
		size_t bytes = term_at(from(folded, in_folded), terms, n);
		size_t chars = bytes == 0 ? 1 : utf8_count((struct str){folded.p + in_folded, bytes});
		size_t end = in_text + utf8_offset(from(text, in_text), chars);

		buf_add_str(out, bytes == 0 ? STR("") : STR("<mark>"));
		buf_add_str(out, (struct str){text.p + in_text, end - in_text});
		buf_add_str(out, bytes == 0 ? STR("") : STR("</mark>"));
		in_folded += utf8_offset(from(folded, in_folded), chars);
		in_text = end;
		shown += chars;
	}
	if (in_text < text.n)
		buf_add_str(out, STR("…"));
}

bool search_mark(struct arena *arena, struct str text, struct str folded, const struct str *terms, size_t n,
	struct str *out)
{
	size_t place = folded.n, before;
	struct buf marked;

	for (size_t i = 0; i < n && place == folded.n; i++)
		place = search_place(folded, terms[i]);
	if (place == folded.n)
		return false;
	before = utf8_count((struct str){folded.p, place});
	before = before > SHOWN_BEFORE ? before - SHOWN_BEFORE : 0;
	buf_init(&marked, arena, SIZE_MAX);
	buf_add_str(&marked, before > 0 ? STR("…") : STR(""));
	add_marked(&marked, text, folded, before, SHOWN_CHARS, terms, n);
	*out = buf_str(&marked);
	return true;
}
