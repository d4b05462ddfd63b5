#include "story.h"

#include "base/limits.h"

#include <stdlib.h>

int story_begin(void **state)
{
	struct story *s = calloc(1, sizeof(*s));

	s->arena = arena_create();
	warnings_init(&s->warnings, s->arena, LIMIT_CONFIG_WARNINGS + 1);
	failure_init(&s->f, s->arena);
	*state = s;
	return 0;
}

int story_end(void **state)
{
	struct story *s = *state;

	rules_doc_unref(s->project);
	rules_doc_unref(s->global);
	arena_destroy(s->arena);
	free(s);
	return 0;
}

static struct rules_doc *parse(struct story *s, const char *yaml, bool is_global)
{
	struct rules_doc *doc = NULL;

	warnings_init(&s->warnings, s->arena, LIMIT_CONFIG_WARNINGS + 1);
	failure_init(&s->f, s->arena);
	if (rules_parse(str_of(yaml), STR_NONE, is_global, &s->warnings, &doc, &s->f) != 0)
		return NULL;
	return doc;
}

static void must(const struct story *s, const struct rules_doc *doc)
{
	const struct failure_field *field = s->f.fields;

	if (doc == NULL)
		fail_msg("refused: %s: %s", field == NULL ? "" : field->path.p, field == NULL ? "" : field->reason.p);
}

void project(struct story *s, const char *yaml)
{
	rules_doc_unref(s->project);
	s->project = parse(s, yaml, false);
	must(s, s->project);
	s->view.project = s->project;
}

void global(struct story *s, const char *yaml)
{
	rules_doc_unref(s->global);
	s->global = parse(s, yaml, true);
	must(s, s->global);
	s->view.global = s->global;
}

static void refused_as(struct story *s, const char *yaml, bool is_global, const char *path, const char *words)
{
	struct rules_doc *doc = parse(s, yaml, is_global);

	rules_doc_unref(doc);
	assert_null(doc);
	assert_int_equal(s->f.code, FAIL_CONFIG_INVALID);
	for (const struct failure_field *field = s->f.fields; field != NULL; field = field->next)
		if (str_eq(field->path, str_of(path)) && strstr(field->reason.p, words) != NULL) {
			assert_non_null(strstr(field->reason.p, " at line "));
			assert_non_null(strstr(field->reason.p, ", column "));
			return;
		}
	fail_msg("first error is %s: %s", s->f.fields->path.p, s->f.fields->reason.p);
}

void refused(struct story *s, const char *yaml, const char *path, const char *words)
{
	refused_as(s, yaml, false, path, words);
}

void refused_global(struct story *s, const char *yaml, const char *path, const char *words)
{
	refused_as(s, yaml, true, path, words);
}

size_t error_count(const struct story *s)
{
	return s->f.field_count;
}

void warned(const struct story *s, const char *code, const char *path, const char *words)
{
	for (const struct warning *one = s->warnings.first; one != NULL; one = one->next)
		if (strcmp(one->code, code) == 0 && (path == NULL || str_eq(one->path, str_of(path))) &&
			(words == NULL || strstr(one->message.p, words) != NULL))
			return;
	for (const struct warning *one = s->warnings.first; one != NULL; one = one->next)
		print_error("%s %.*s: %.*s\n", one->code, STRF(one->path), STRF(one->message));
	fail_msg("no warning %s at %s", code, path == NULL ? "any place" : path);
}

void not_warned(const struct story *s, const char *code)
{
	for (const struct warning *one = s->warnings.first; one != NULL; one = one->next)
		if (strcmp(one->code, code) == 0)
			fail_msg("warning %s: %s", code, one->message.p);
}

static size_t split(struct story *s, const char *words, struct str *out)
{
	char *text = words == NULL ? NULL : arena_copy(s->arena, words, strlen(words));
	char *save = NULL;
	size_t n = 0;

	for (char *word = text == NULL ? NULL : strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
		out[n++] = str_of(word);
	return n;
}

void item(struct story *s, const char *type, const char *tag, const char *traits)
{
	struct str tag_text = str_of(tag);
	struct str names[16];
	size_t n = split(s, traits, names);

	rules_schema(&s->view, str_of(type), &tag_text, tag == NULL ? 0 : 1, names, n, s->arena, &s->schema);
}

static void same(const struct story *s, const char *expected, const void *items, size_t stride, size_t count)
{
	struct buf out;

	buf_init(&out, s->arena, SIZE_MAX);
	for (size_t i = 0; i < count; i++)
		buf_printf(&out, "%s%.*s", i == 0 ? "" : " ",
			STRF(*(const struct str *)(const void *)((const char *)items + i * stride)));
	buf_add_char(&out, '\0');
	assert_string_equal(out.p, expected);
}

void has_notes(const struct story *s, const char *keys)
{
	same(s, keys, s->schema.notes, sizeof(s->schema.notes[0]), s->schema.note_count);
}

void has_seats(const struct story *s, const char *names)
{
	same(s, names, s->schema.seats, sizeof(s->schema.seats[0]), s->schema.seat_count);
}

void has_traits(const struct story *s, const char *names)
{
	same(s, names, s->schema.traits, sizeof(s->schema.traits[0]), s->schema.trait_count);
}

const struct rules_note *note(const struct story *s, const char *key)
{
	const struct rules_note *found = schema_note(&s->schema, str_of(key));

	assert_non_null(found);
	return found;
}

void is(struct str text, const char *expected)
{
	if (expected == NULL) {
		assert_null(text.p);
		return;
	}
	if (!str_eq(text, str_of(expected)))
		fail_msg("\"%.*s\" is not \"%s\"", STRF(text), expected);
}
