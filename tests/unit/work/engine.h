/* The workflow engine on a real temporary store, its time an argument. Items, notes, edges and rules are put
 * into the store directly; operations run as the frame of the tools runs them, each under a savepoint. */
#ifndef DAIS_TESTS_WORK_ENGINE_H
#define DAIS_TESTS_WORK_ENGINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* after base/failure.h: cmocka has a macro of the same name as fail() */
#include "temp_store.h"
#include "work/unit.h"

#include <cmocka.h>

#define NOW INT64_C(1800000000000)

enum who { LOCAL, P1, P2, WHO_COUNT };

struct engine {
	char dir[TEMP_DIR_SIZE];
	struct store *store;
	struct rules *rules;
	struct arena *arena;
	int64_t now;
	struct caller callers[WHO_COUNT];
	int64_t config_version;
};

/* cmocka setup and teardown; teardown asks store_check() for broken invariants. */
int engine_up(void **state);
int engine_down(void **state);

struct traits {
	const char *type;     /* NULL: none */
	const char *traits;   /* JSON array, NULL: none */
	enum priority priority;
	int64_t complexity;   /* 0: not given */
	enum role role;	      /* as if it had got there */
};
/* An item below `parent` (0: a root), in queue and of medium priority unless said otherwise. */
int64_t make_item(struct engine *e, int64_t parent, const char *title);
int64_t make_item_as(struct engine *e, int64_t parent, const char *title, struct traits traits);
void make_dep(struct engine *e, int64_t from, int64_t to, int threshold);
/* Many at once, in one transaction each; edges are BLOCKS from pairs[i][0] to pairs[i][1]. */
void make_items(struct engine *e, int64_t parent, const char *title, int64_t *out, size_t n);
void make_deps(struct engine *e, const int64_t (*pairs)[2], size_t n);
void make_relation(struct engine *e, int64_t from, int64_t to);
void make_note(struct engine *e, enum who who, int64_t item, const char *key, enum role role, const char *body);
/* The rules of the project of `root` (0: global). */
void push_rules(struct engine *e, int64_t root, const char *yaml);

/* Run an op or a select with JSON arguments, ' for ". The answer: result members, or {"error":…}. The test
 * owns nothing: values live until teardown. */
json_t *run_op(struct engine *e, enum who who, const char *op, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
json_t *run_atomic(struct engine *e, enum who who, const char *op, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
json_t *move(struct engine *e, enum who who, int64_t item, const char *trigger);
json_t *claim(struct engine *e, enum who who, int64_t item, int ttl);

const char *id_of(struct engine *e, int64_t n);
struct item load(struct engine *e, int64_t n);
int64_t count(struct engine *e, const char *sql); /* a fixed SELECT count(*) */
int64_t events_of(struct engine *e, int64_t item, enum event_type type);
/* "role label" */
const char *state_of(struct engine *e, int64_t n);

/* Text of a member, "" when absent; of a path like "error.detail.missing.0.key". */
const char *text_at(const json_t *value, const char *path);
const json_t *at(const json_t *value, const char *path);
int64_t int_at(const json_t *value, const char *path);

void assert_ok(const json_t *answer);
void assert_refused(const json_t *answer, const char *code);

/* Any function in one transaction at e->now. */
int in_tx(struct engine *e, enum who who, int (*run)(struct tx *tx, void *arg, struct failure *f), void *arg,
	struct failure *f);

#endif
