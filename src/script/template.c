#include "script/template.h"

static const struct {
	const char *word;
	enum template_name name;
} names[] = {
	{"answer", NAME_ANSWER},
	{"mode", NAME_MODE},
	{"model", NAME_MODEL},
	{"open", NAME_OPEN},
	{"prompt", NAME_PROMPT},
	{"session", NAME_SESSION},
	{"steer", NAME_STEER},
	{"turn", NAME_TURN},
};

enum template_name template_name_of(struct str name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq(name, str_of(names[i].word)))
			return names[i].name;
	return NAME_OTHER;
}

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool template_is_name(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (!is_word_char(text.p[i]))
			return false;
	return text.n > 0 && !(text.p[0] >= '0' && text.p[0] <= '9');
}

/* Offset of `mark` at or behind `from`, or text.n. */
static size_t find(struct str text, size_t from, const char *mark)
{
	const char *hit = memmem(text.p + from, text.n - from, mark, 2);

	return hit == NULL ? text.n : (size_t)(hit - text.p);
}

bool template_next(struct str text, size_t *at, struct template_part *out)
{
	size_t open = find(text, *at, "{{");
	size_t close = open < text.n ? find(text, open + 2, "}}") : text.n;
	struct str inner;
	const char *dot;

	if (*at >= text.n)
		return false;
	out->text = (struct str){text.p + *at, open - *at};
	out->name = STR_NONE;
	out->path = STR_NONE;
	*at = text.n;
	if (close == text.n)
		return true;
	inner = str_trim((struct str){text.p + open + 2, close - open - 2});
	dot = memchr(inner.p, '.', inner.n);
	out->name = (struct str){inner.p, dot == NULL ? inner.n : (size_t)(dot - inner.p)};
	if (dot != NULL)
		out->path = (struct str){dot + 1, inner.n - out->name.n - 1};
	*at = close + 2;
	return true;
}

static bool is_path(struct str path)
{
	for (size_t i = 0; i < path.n; i++)
		if (!is_word_char(path.p[i]) && path.p[i] != '-' &&
			(path.p[i] != '.' || i == 0 || path.p[i - 1] == '.'))
			return false;
	return path.n > 0 && path.p[path.n - 1] != '.';
}

static const char *check_part(
	struct arena *arena, const struct template_part *part, const struct str *saved, size_t saved_count)
{
	bool is_known = template_name_of(part->name) != NAME_OTHER;
	bool has_path = part->path.p != NULL;

	if (!template_is_name(part->name))
		return arena_printf(arena, "\"{{%.*s}}\" is no name; {{open}} stands for {{ itself",
			(int)utf8_cut(part->name, 40), part->name.p);
	if (is_known)
		return has_path ? arena_printf(arena, "{{%.*s}} has no members", STRF(part->name)) : NULL;
	for (size_t i = 0; i < saved_count; i++)
		is_known = is_known || str_eq(saved[i], part->name);
	if (!is_known)
		return arena_printf(arena, "nothing is called {{%.*s}}: no step saves it",
			(int)utf8_cut(part->name, 40), part->name.p);
	return has_path && !is_path(part->path) ? "a path is names and numbers with dots between them" : NULL;
}

const char *template_check(struct arena *arena, struct str text, const struct str *saved, size_t saved_count)
{
	struct template_part part;
	const char *wrong;

	for (size_t at = 0; template_next(text, &at, &part);) {
		if (part.name.p == NULL) {
			size_t open = (size_t)(part.text.p - text.p) + part.text.n;

			return open < text.n ? "a \"{{\" without \"}}\"; {{open}} stands for {{ itself" : NULL;
		}
		wrong = check_part(arena, &part, saved, saved_count);
		if (wrong != NULL)
			return wrong;
	}
	return NULL;
}

bool template_is_whole(struct str text, struct template_part *out)
{
	size_t at = 0;

	return template_next(text, &at, out) && at == text.n && out->name.p != NULL && out->text.n == 0;
}
