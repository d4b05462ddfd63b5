/* Every transcript of a driver: `test_exact_transcripts KIND DIRECTORY`, a test each. */
#include "exact_transcript.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { MOST = 200 };

static const struct driver *driver;
static const char *directory;

static void check(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();

	transcript_check(driver, arena_printf(arena, "%s/%s", directory, (const char *)*state));
}

static int is_transcript(const struct dirent *entry)
{
	return str_ends(str_of(entry->d_name), STR(".txt"));
}

int main(int argc, char **argv)
{
	struct dirent **entries;
	struct CMUnitTest tests[MOST] = {0};
	int n;
	int failed;

	if (argc != 3)
		return 2;
	driver = driver_find(str_of(argv[1]));
	directory = argv[2];
	n = scandir(directory, &entries, is_transcript, alphasort);
	if (driver == NULL || n <= 0 || n > MOST)
		return 2;
	for (int i = 0; i < n; i++)
		tests[i] = (struct CMUnitTest){entries[i]->d_name, check, NULL, NULL, entries[i]->d_name};
	failed = _cmocka_run_group_tests(argv[1], tests, (size_t)n, NULL, NULL);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return failed;
}
