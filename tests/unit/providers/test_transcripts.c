/* Every conversation in transcripts/: it goes as written, and goes on the same when the server dies at any line. */
#include "transcript.h"

#include <dirent.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static void goes_as_written(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct transcript *t = transcript_read(*state);
	struct buf said, problem;

	buf_init(&said, arena, SIZE_MAX);
	buf_init(&problem, arena, SIZE_MAX);
	if (transcript_run(t, CUT_NEVER, 0, true, &said, &problem) != 0)
		fail_msg("%.*s", STRF(buf_str(&problem)));
	transcript_free(t);
}

static void same(const struct transcript *t, enum transcript_cut cut, size_t at, struct str whole, struct arena *arena)
{
	struct buf said, problem;

	buf_init(&said, arena, SIZE_MAX);
	buf_init(&problem, arena, SIZE_MAX);
	if (transcript_run(t, cut, at, false, &said, &problem) != 0)
		fail_msg("cut after input %zu: %.*s", at, STRF(buf_str(&problem)));
	if (!str_eq(buf_str(&said), whole))
		fail_msg("cut after input %zu it says:\n%.*s\ninstead of:\n%.*s", at, STRF(buf_str(&said)), STRF(whole));
}

static void goes_on_the_same_from_every_line(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct transcript *t = transcript_read(*state);
	struct buf whole, problem;

	buf_init(&whole, arena, SIZE_MAX);
	buf_init(&problem, arena, SIZE_MAX);
	transcript_run(t, CUT_NEVER, 0, false, &whole, &problem);
	for (size_t at = 0; at < transcript_inputs(t); at++)
		same(t, CUT_ONCE, at, buf_str(&whole), arena);
	same(t, CUT_ALWAYS, 0, buf_str(&whole), arena);
	transcript_free(t);
}

static int is_transcript(const struct dirent *entry)
{
	return str_ends(str_of(entry->d_name), STR(".jsonl"));
}

int main(int argc, char **argv)
{
	struct dirent **entries;
	int count = argc == 2 ? scandir(argv[1], &entries, is_transcript, alphasort) : -1;
	struct CMUnitTest *tests;
	int failed;

	if (count <= 0) {
		fprintf(stderr, "usage: %s DIRECTORY with transcripts\n", argv[0]);
		return 2;
	}
	tests = calloc((size_t)count * 2, sizeof(*tests));
	for (int i = 0; i < count; i++) {
		char *path = NULL, *name = NULL;

		if (asprintf(&path, "%s/%s", argv[1], entries[i]->d_name) < 0 ||
			asprintf(&name, "%s from every line", entries[i]->d_name) < 0)
			abort();
		tests[2 * i] = (struct CMUnitTest){entries[i]->d_name, goes_as_written, NULL, NULL, path};
		tests[2 * i + 1] = (struct CMUnitTest){name, goes_on_the_same_from_every_line, NULL, NULL, path};
	}
	failed = _cmocka_run_group_tests("transcripts", tests, (size_t)count * 2, NULL, NULL);
	for (int i = 0; i < count; i++) {
		free(tests[2 * i].initial_state);
		free((char *)(uintptr_t)tests[2 * i + 1].name);
		free(entries[i]);
	}
	free(entries);
	free(tests);
	return failed;
}
