/* What the stories of this room are told with. Everything ends with the test. */
#ifndef TESTS_RULES_STORY_H
#define TESTS_RULES_STORY_H

#include "rules/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct story {
	struct arena *arena;
	struct warnings warnings; /* of the last text read */
	struct failure f;
	struct rules_doc *project;
	struct rules_doc *global;
	struct rules_view view;
	struct schema schema; /* of the last item asked for */
};

int story_begin(void **state);
int story_end(void **state);
#define STORY(name) cmocka_unit_test_setup_teardown(name, story_begin, story_end)

/* Read a text into a layer of the view. */
void project(struct story *s, const char *yaml);
void global(struct story *s, const char *yaml);
/* The text is refused with this path, this place and these words among its errors. */
void refused(struct story *s, const char *yaml, const char *path, const char *words);
void refused_global(struct story *s, const char *yaml, const char *path, const char *words);
size_t error_count(const struct story *s);
/* The last text gave this warning there (path NULL: anywhere); message holds words (NULL: any). */
void warned(const struct story *s, const char *code, const char *path, const char *words);
void not_warned(const struct story *s, const char *code);
/* Resolve for an item: type (NULL: none), one tag (NULL: none), traits separated by blanks. */
void item(struct story *s, const char *type, const char *tag, const char *traits);
/* Names of what the item's schema has, separated by blanks. */
void has_notes(const struct story *s, const char *keys);
void has_seats(const struct story *s, const char *names);
void has_traits(const struct story *s, const char *names);
const struct rules_note *note(const struct story *s, const char *key);
void is(struct str text, const char *expected); /* NULL: absent */

#endif
