#include "work/body.h"

#include "work/section.h"

struct str body_normalise(struct call *call, struct str text)
{
	char *out;
	size_t n = 0;

	if (text.n == 0 || memchr(text.p, '\r', text.n) == NULL)
		return text;
	out = arena_alloc(call->arena, text.n);
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] != '\r')
			out[n++] = text.p[i];
		else if (i + 1 == text.n || text.p[i + 1] != '\n')
			out[n++] = '\n';
	}
	warn(&call->warnings, "body_normalised", STR("body"), "Line ends were stored as LF.");
	return (struct str){out, n};
}

/* Bytes of one byte inside a JSON string, as json_escape writes it. */
static size_t escaped_size(unsigned char c)
{
	if (c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t')
		return 2;
	return c < 0x20 || c == 0x7f ? 6 : 1;
}

/* Largest prefix that takes at most `max` bytes as JSON, between characters. */
static size_t fitting(struct str text, size_t max)
{
	size_t used = 0;

	for (size_t i = 0; i < text.n; i++) {
		used += escaped_size((unsigned char)text.p[i]);
		if (used > max)
			return utf8_cut(text, i);
	}
	return text.n;
}

void excerpt_of(struct str body, int64_t offset, int64_t max_chars, size_t max_bytes, struct excerpt *out)
{
	size_t start = utf8_offset(body, offset < 0 ? 0 : (size_t)offset);
	struct str rest = {body.p + start, body.n - start};
	struct str text = rest;
	size_t fits;

	if (max_chars > 0)
		text.n = utf8_offset(rest, (size_t)max_chars);
	fits = fitting(text, max_bytes);
	if (fits < text.n) {
		const char *line = fits == 0 ? NULL : memrchr(text.p, '\n', fits);

		text.n = line == NULL ? fits : (size_t)(line - text.p) + 1;
	}
	out->text = text;
	out->is_cut = text.n < rest.n;
	out->next_offset = out->is_cut ? offset + (int64_t)utf8_count(text) : 0;
}

void excerpt_write(struct json_writer *w, const struct excerpt *excerpt)
{
	jw_kstr(w, "body", excerpt->text);
	if (!excerpt->is_cut)
		return;
	jw_kbool(w, "truncated", true);
	jw_kint(w, "nextOffset", excerpt->next_offset);
}

void outline_write(struct json_writer *w, struct arena *arena, struct str body, int64_t offset, size_t max_bytes)
{
	struct section *list;
	size_t n = sections_of(arena, body, &list);
	size_t from = utf8_offset(body, offset < 0 ? 0 : (size_t)offset);
	size_t begin = w->out->n;
	size_t i = 0;

	while (i < n && list[i].start < from)
		i++;
	jw_karray(w, "outline");
	for (; i < n && w->out->n - begin < max_bytes; i++) {
		jw_object_begin(w);
		jw_kstr(w, "anchor", list[i].anchor);
		jw_kint(w, "level", list[i].level);
		/* A line of 60 KB can be a heading: an outline shows its beginning. */
		jw_kstr(w, "title", (struct str){list[i].title.p, utf8_cut(list[i].title, LIMIT_DOC_TITLE_CHARS)});
		jw_kint(w, "bytes", (int64_t)(list[i].end - list[i].start));
		jw_object_end(w);
	}
	jw_array_end(w);
	if (i == n)
		return;
	jw_kbool(w, "truncated", true);
	jw_kint(w, "nextOffset", (int64_t)utf8_count((struct str){body.p, list[i].start}));
}
