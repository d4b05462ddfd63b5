/* One tool call: its rules, its cursors, its page. */
#include "work/work.h"

#include "base/limits.h"

void call_init(struct call *call, struct arena *arena, const struct caller *caller, struct rules *rules)
{
	*call = (struct call){.arena = arena, .caller = caller, .rules = rules};
	warnings_init(&call->warnings, arena, LIMIT_WARNINGS);
}

void call_finish(struct call *call)
{
	rules_views_finish(&call->views);
}

void call_page(struct call *call, int64_t returned, int64_t total, struct str next_cursor)
{
	call->page.is_set = true;
	call->page.returned = returned;
	call->page.total = total;
	call->page.next_cursor = next_cursor;
}

/* Text of a cursor before encoding: version, operation, filters, then the parts, by unit separators. */
#define SEPARATOR '\x1f'

struct str cursor_text(struct call *call, const struct str *parts, size_t n)
{
	struct buf out;

	buf_init(&out, call->arena, SIZE_MAX);
	buf_printf(&out, "1%c%.*s%c%.*s", SEPARATOR, STRF(call->select), SEPARATOR, STRF(call->filters));
	for (size_t i = 0; i < n; i++) {
		buf_add_char(&out, SEPARATOR);
		buf_add_str(&out, parts[i]);
	}
	return base64url(call->arena, out.p, out.n);
}

static struct str next_part(struct str *rest)
{
	const char *end = rest->n == 0 ? NULL : memchr(rest->p, SEPARATOR, rest->n);
	struct str part = {rest->p, end == NULL ? rest->n : (size_t)(end - rest->p)};
	size_t used = end == NULL ? rest->n : part.n + 1;

	rest->p += used;
	rest->n -= used;
	return part;
}

int cursor_read(struct call *call, struct str text, struct cursor *out, struct failure *f)
{
	struct cursor cursor = {.n = 0};
	struct str rest;

	if (!base64url_decode(call->arena, text, &rest) || utf8_check(rest) < rest.n ||
		!str_eq(next_part(&rest), STR("1")) || !str_eq(next_part(&rest), call->select) ||
		!str_eq(next_part(&rest), call->filters))
		return fail(f, FAIL_INVALID_CURSOR, "The cursor does not belong to this listing.");
	while (cursor.n < CURSOR_PARTS && (rest.n > 0 || cursor.n == 0))
		cursor.parts[cursor.n++] = next_part(&rest);
	if (rest.n > 0)
		return fail(f, FAIL_INVALID_CURSOR, "The cursor does not belong to this listing.");
	*out = cursor;
	return 0;
}

int64_t cursor_int(const struct cursor *cursor, size_t part)
{
	int64_t value = 0;

	if (part < cursor->n)
		(void)str_to_int(cursor->parts[part], &value); /* a forged one only moves the page */
	return value;
}

int fields_check(const struct str *fields, size_t n, const char *const *allowed, struct str path,
	struct failure *f)
{
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		const char *const *word = allowed;

		while (*word != NULL && !str_eq(fields[i], str_of(*word)))
			word++;
		if (*word == NULL)
			rc = fail_field(f, str_printf(f->arena, "%.*s[%zu]", STRF(path), i), fields[i],
				"is not a field of this select");
	}
	return rc;
}

bool fields_have(const struct str *fields, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(fields[i], str_of(name)))
			return true;
	return false;
}

int call_view(struct snapshot *s, struct call *call, int64_t root_n, const struct rules_view **out,
	struct failure *f)
{
	const struct seat_scope *seat = &call->caller->seat;
	int64_t pinned = seat->run_n != 0 && seat->root_n == root_n ? seat->pinned_version : 0;

	return rules_view(call->rules, s, &call->views, root_n, pinned, out, f);
}

int item_schema(struct snapshot *s, struct call *call, const struct item *item, struct schema *out,
	struct failure *f)
{
	const struct rules_view *view;
	struct str *tags;
	struct str *traits;
	size_t tag_count;
	size_t trait_count;

	if (call_view(s, call, item->root_n, &view, f) != 0)
		return -1;
	tag_count = strings_of(s->arena, item->tags, &tags);
	trait_count = strings_of(s->arena, item->traits, &traits);
	rules_schema(view, item->type, tags, tag_count, traits, trait_count, s->arena, out);
	return 0;
}

size_t strings_of(struct arena *arena, struct str json, struct str **out)
{
	struct json_error error;
	json_auto_t *array = NULL;
	size_t n;

	*out = NULL;
	if (json.n <= 2) /* [] */
		return 0;
	array = json_read(json, &error);
	n = json_array_size(array);
	*out = ARENA_ARRAY(arena, struct str, n);
	for (size_t i = 0; i < n; i++)
		(*out)[i] = str_dup(arena, json_str(json_array_get(array, i)));
	return n;
}
