/* Scratch folders have names that people can read, and one owner. */
#include "place.h"

#define NOW 1772439330120 /* 2026-03-02T08:15:30.120Z */
#define THREAD "0f8fad5b-d9cb-469f-a165-70867728950e"

static const char *make(struct place *p, const char *title, const char *thread_id)
{
	struct str path;

	ok(p, scratch_create(&p->call, in(p, "data"), str_of(title), str_of(thread_id), NOW, &path,
		      &p->f));
	assert_int_equal(access(path.p, W_OK), 0);
	return path.p + strlen(p->dir) + strlen("/data/scratch/");
}

static void the_name_is_day_title_and_thread(void **state)
{
	static const struct {
		const char *title, *right;
	} rows[] = {
		{"Why is the build slow?", "2026-03-02-why-is-the-build-slow-7728950e"},
		{"one two three four five six", "2026-03-02-one-two-three-four-five-7728950e"},
		{"../../etc/passwd", "2026-03-02-etc-passwd-7728950e"},
		{"\xe6\x95\xb0\xe6\x8d\xae\xe5\xba\x93", "2026-03-02-thread-7728950e"},
		{"", "2026-03-02-thread-7728950e"},
		{"-x\n\ty", "2026-03-02-x-y-7728950e"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			"2026-03-02-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-7728950e"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbb",
			"2026-03-02-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-7728950e"},
	};
	struct place *p = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(make(p, rows[i].title, THREAD), rows[i].right);
		run(p, "rm -r data");
		run(p, "mkdir data");
	}
}

static void two_of_one_title_and_day_are_two_folders(void **state)
{
	struct place *p = *state;
	const char *third;

	assert_string_equal(make(p, "notes", THREAD), "2026-03-02-notes-7728950e");
	assert_string_equal(make(p, "notes", THREAD), "2026-03-02-notes-" THREAD);
	third = make(p, "notes", THREAD);
	assert_int_equal(strncmp(third, "2026-03-02-notes-" THREAD "-", 54), 0);
	assert_string_not_equal(make(p, "notes", THREAD), third);
	assert_string_equal(make(p, "notes", "a/../../b"), "2026-03-02-notes-_______b");
}

static void inside_a_repository_there_are_none(void **state)
{
	struct place *p = *state;
	struct str path;

	run(p, "git init -q .; mkdir -p deep/data");
	assert_int_equal(scratch_create(&p->call, in(p, "deep/data"), STR("t"), STR(THREAD), NOW,
				 &path, &p->f),
		-1);
	assert_int_equal(p->f.code, FAIL_INVALID_REQUEST);
	assert_cause(p, "inside_repository");
	assert_false(exists(p, "deep/data/scratch"));
	run(p, "rm -rf .git; git init -q --bare bare.git");
	assert_int_equal(scratch_create(&p->call, in(p, "bare.git"), STR("t"), STR(THREAD), NOW,
				 &path, &p->f),
		-1);
	assert_cause(p, "inside_repository");
}

static void what_is_in_the_way_is_told(void **state)
{
	struct place *p = *state;
	struct str path;

	run(p, "echo file > data/scratch");
	assert_int_equal(
		scratch_create(&p->call, in(p, "data"), STR("t"), STR(THREAD), NOW, &path, &p->f),
		-1);
	assert_cause(p, "path_taken");
	assert_string_equal(run(p, "cat data/scratch"), "file");
}

static void without_git_there_is_no_repository_to_disturb(void **state)
{
	struct place *p = *state;
	const char *path = arena_printf(p->arena, "%s", getenv("PATH"));
	const char *name;

	setenv("PATH", p->dir, 1);
	name = make(p, "t", THREAD);
	setenv("PATH", path, 1);
	assert_string_equal(name, "2026-03-02-t-7728950e");
}

static int up(void **state)
{
	place_open(state);
	run(*state, "mkdir data");
	return 0;
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, up, place_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(the_name_is_day_title_and_thread),
		STORY(two_of_one_title_and_day_are_two_folders),
		STORY(inside_a_repository_there_are_none),
		STORY(what_is_in_the_way_is_told),
		STORY(without_git_there_is_no_repository_to_disturb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
