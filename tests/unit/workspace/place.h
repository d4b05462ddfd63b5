/* A folder of its own for each test, with an empty HOME and git repositories. */
#ifndef DAIS_TESTS_PLACE_H
#define DAIS_TESTS_PLACE_H

#include "workspace/workspace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
	struct arena *arena;
	struct workspace_call call;
	struct failure f;
	const char *dir; /* real path */
	struct str repo; /* <dir>/repo: one commit on main, after place_repo() */
	struct str trees;
};

int place_open(void **state);
int place_close(void **state);

/* Run in the folder with sh, -e; it must succeed. Its output without the newline at the end. */
const char *run(struct place *place, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void place_repo(struct place *place);
struct str in(struct place *place, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool exists(struct place *place, const char *name);
/* The cause of the failure of the last call; the failure is then forgotten. */
const char *cause(struct place *place);

#define assert_cause(place, expected) assert_string_equal(cause(place), (expected))
#define assert_str(text, expected) assert_string_equal(str_z(p->arena, (text)), (expected))
/* A call that must succeed; says why when it does not. */
#define ok(place, result)                                                                          \
	do {                                                                                       \
		if ((result) != 0)                                                                 \
			fail_msg("%.*s", STRF((place)->f.message));                                \
	} while (0)

#endif
