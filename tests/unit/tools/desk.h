/* A desk where tools are called as any client calls them: JSON in, the whole envelope out, on a real temporary
 * store with its writer and readers. */
#ifndef DAIS_TESTS_TOOLS_DESK_H
#define DAIS_TESTS_TOOLS_DESK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* before cmocka, which has a macro of the same name as fail() */
#include "temp_store.h"
#include "tools/tool.h"
#include "tools/tools.h"

#include <cmocka.h>

enum who { LOCAL, P1, P2, WHO_COUNT };

struct desk {
	char dir[TEMP_DIR_SIZE];
	char path[96];
	struct store *store;
	struct rules *rules;
	struct tools *tools;
	struct arena *arena;
	struct caller callers[WHO_COUNT]; /* local sees actors, the others do not */
};

/* cmocka setup and teardown; teardown asks store_check() for broken invariants. */
int desk_up(void **state);
int desk_down(void **state);

/* One call; ' stands for ". The envelope lives until teardown. */
json_t *ask(struct desk *d, enum who who, const struct tool *tool, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same, with the JSON as it is. */
json_t *ask_text(struct desk *d, enum who who, const struct tool *tool, struct str json);
/* The only result of a call with one op, given without its list. */
const json_t *do_op(struct desk *d, enum who who, const struct tool *tool, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* A new item; its id. `more` are further members (", 'type':'x'") or "". */
const char *new_item(struct desk *d, const char *parent, const char *title, const char *more);
const char *note(struct desk *d, const char *item, const char *key, const char *body);
json_t *trigger(struct desk *d, const char *item, const char *word);
void push_rules(struct desk *d, const char *root, const char *yaml);
/* The principal may read this project only. */
void limit_to(struct desk *d, enum who who, const char *root);

/* A value by a path like "results.0.error.detail.path"; NULL when it is not there. */
const json_t *at(const json_t *value, const char *path);
const char *text_at(const json_t *value, const char *path);
int64_t int_at(const json_t *value, const char *path);
size_t count_at(const json_t *value, const char *path);
void assert_ok(const json_t *envelope);
void assert_error(const json_t *envelope, const char *code);
bool warned(const json_t *envelope, const char *code);
/* A fixed SELECT of one integer. */
int64_t number(struct desk *d, const char *sql);

#endif
