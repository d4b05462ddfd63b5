#include "temp_store.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

void temp_dir_make(char dir[TEMP_DIR_SIZE], const char *name)
{
	(void)snprintf(dir, TEMP_DIR_SIZE, "/tmp/dais-%s-XXXXXX", name);
	assert_non_null(mkdtemp(dir));
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	return remove(path);
}

void temp_dir_remove(const char *dir)
{
	assert_int_equal(nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

struct store *temp_store_open(const char *dir, const char *file)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct store_options options = {
		.path = arena_printf(arena, "%s/%s", dir, file), .may_create = true, .is_exclusive = true};
	struct store *store = NULL;
	struct failure f;

	failure_init(&f, arena);
	if (store_open(&options, &store, &f) != 0)
		fail_msg("%.*s", STRF(f.message));
	return store;
}

static void found(void *context, struct str line)
{
	(void)context;
	(void)fprintf(stderr, "invariant: %.*s\n", STRF(line));
}

int temp_store_check(struct store *store, int64_t now)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct snapshot s;
	struct failure f;
	int findings;

	failure_init(&f, arena);
	assert_int_equal(snapshot_begin(store, arena, &s, &f), 0);
	if (now != 0)
		s.now = now;
	findings = store_check(&s, found, NULL, &f);
	snapshot_end(&s);
	return findings;
}
