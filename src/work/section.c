#include "work/section.h"

/* One line without its end; *at moves behind it. */
static struct str next_line(struct str text, size_t *at)
{
	const char *start = text.p + *at;
	const char *end = memchr(start, '\n', text.n - *at);
	struct str line = {start, end == NULL ? text.n - *at : (size_t)(end - start)};

	*at += line.n + (end != NULL);
	return line;
}

static size_t indent_of(struct str line)
{
	size_t n = 0;

	while (n < line.n && line.p[n] == ' ')
		n++;
	return n;
}

static size_t run_of(struct str line, size_t from, char c)
{
	size_t n = from;

	while (n < line.n && line.p[n] == c)
		n++;
	return n - from;
}

struct fence {
	char mark; /* 0: outside of fenced code */
	size_t length;
};

/* Whether the line opens or closes fenced code; the state follows. */
static bool is_fence(struct fence *fence, struct str line)
{
	size_t indent = indent_of(line);
	char mark;
	size_t length;
	struct str rest;

	if (indent > 3 || indent == line.n)
		return false;
	mark = line.p[indent];
	if (mark != '`' && mark != '~')
		return false;
	length = run_of(line, indent, mark);
	rest = (struct str){line.p + indent + length, line.n - indent - length};
	if (fence->mark == 0) {
		/* `` ```x``` `` on one line is a span of code, not a fence. */
		if (length < 3 || (mark == '`' && memchr(rest.p, '`', rest.n) != NULL))
			return false;
		*fence = (struct fence){mark, length};
		return true;
	}
	if (mark != fence->mark || length < fence->length || str_trim(rest).n > 0)
		return false;
	fence->mark = 0;
	return true;
}

/* A closing run of # belongs to the marking when a blank stands before it. */
static struct str without_closing(struct str title)
{
	size_t n = title.n;

	while (n > 0 && title.p[n - 1] == '#')
		n--;
	if (n == title.n || (n > 0 && title.p[n - 1] != ' ' && title.p[n - 1] != '\t'))
		return title;
	return str_trim((struct str){title.p, n});
}

static bool is_heading(struct str line, int *level, struct str *title)
{
	size_t indent = indent_of(line);
	size_t marks = indent > 3 ? 0 : run_of(line, indent, '#');
	size_t after = indent + marks;

	if (marks < 1 || marks > 6)
		return false;
	if (after < line.n && line.p[after] != ' ' && line.p[after] != '\t')
		return false;
	*level = (int)marks;
	*title = without_closing(str_trim((struct str){line.p + after, line.n - after}));
	return true;
}

static struct str anchor_base(struct arena *arena, struct str title)
{
	char *out = arena_alloc(arena, title.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < title.n; i++) {
		char c = title.p[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			out[n++] = c;
		else if (n > 0 && out[n - 1] != '-')
			out[n++] = '-';
	}
	if (n > 0 && out[n - 1] == '-')
		n--;
	return n == 0 ? STR("section") : (struct str){out, n};
}

/* Anchors taken so far, with the number the next repeat of each starts from. Thousands of equal headings fit
 * in one text, so looking one up is a hash. */
struct anchors {
	struct taken {
		struct str anchor;
		size_t next;
	} *slots;
	size_t mask;
};

static struct taken *slot_of(const struct anchors *anchors, struct str anchor)
{
	uint64_t hash = 14695981039346656037ULL;
	size_t at;

	for (size_t i = 0; i < anchor.n; i++)
		hash = (hash ^ (unsigned char)anchor.p[i]) * 1099511628211ULL;
	for (at = hash & anchors->mask; anchors->slots[at].anchor.p != NULL; at = (at + 1) & anchors->mask)
		if (str_eq(anchors->slots[at].anchor, anchor))
			break;
	return &anchors->slots[at];
}

static struct str anchor_unique(struct arena *arena, const struct anchors *anchors, struct str base)
{
	struct taken *first = slot_of(anchors, base);
	struct str anchor = base;

	if (first->anchor.p == NULL) {
		*first = (struct taken){base, 2};
		return base;
	}
	for (;;) {
		struct taken *slot;

		anchor = str_printf(arena, "%.*s-%zu", STRF(base), first->next++);
		slot = slot_of(anchors, anchor);
		if (slot->anchor.p == NULL) {
			*slot = (struct taken){anchor, 2};
			return anchor;
		}
	}
}

static void name_all(struct arena *arena, struct section *list, size_t n)
{
	struct anchors anchors;
	size_t size = 16;

	while (size < n * 2)
		size *= 2;
	anchors.mask = size - 1;
	anchors.slots = ARENA_ARRAY(arena, struct taken, size);
	for (size_t i = 0; i < n; i++)
		list[i].anchor = anchor_unique(arena, &anchors, anchor_base(arena, list[i].title));
}

/* A heading ends every open section of its level and below; each section is closed once. */
static void close_all(struct arena *arena, struct section *list, size_t n, size_t end)
{
	size_t *open = ARENA_ARRAY(arena, size_t, n + 1);
	size_t depth = 0;

	for (size_t i = 0; i < n; i++) {
		while (depth > 0 && list[open[depth - 1]].level >= list[i].level)
			list[open[--depth]].end = list[i].start;
		open[depth++] = i;
	}
	while (depth > 0)
		list[open[--depth]].end = end;
}

size_t sections_of(struct arena *arena, struct str text, struct section **out)
{
	struct section *list = NULL;
	struct fence fence = {0, 0};
	size_t n = 0;
	size_t room = 0;

	for (size_t at = 0; at < text.n;) {
		struct section one = {.start = at};
		struct str line = next_line(text, &at);

		if (is_fence(&fence, line) || fence.mark != 0 || !is_heading(line, &one.level, &one.title))
			continue;
		if (n == room) {
			size_t more = room == 0 ? 16 : room * 2;

			list = arena_grow(arena, list, room * sizeof(*list), more * sizeof(*list));
			room = more;
		}
		list[n++] = one;
	}
	name_all(arena, list, n);
	close_all(arena, list, n, text.n);
	*out = list;
	return n;
}

const struct section *section_find(const struct section *sections, size_t n, struct str anchor)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(sections[i].anchor, anchor))
			return &sections[i];
	return NULL;
}
