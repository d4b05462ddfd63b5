/* tests/support/temp_store.h - a directory of a test's own, and a database in it. What fails fails the test. */
#ifndef DAIS_TESTS_TEMP_STORE_H
#define DAIS_TESTS_TEMP_STORE_H

#include "store/store.h"

#define TEMP_DIR_SIZE 64

/* /tmp/dais-NAME-XXXXXX, private. */
void temp_dir_make(char dir[TEMP_DIR_SIZE], const char *name);
/* With everything in it. */
void temp_dir_remove(const char *dir);
/* DIR/FILE as a server opens it; made when it is not there. */
struct store *temp_store_open(const char *dir, const char *file);
/* 0: the invariants hold, looked at as of `now` (0: of the clock). What is broken is printed. */
int temp_store_check(struct store *store, int64_t now);

#endif
