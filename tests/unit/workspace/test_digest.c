/* Equal digests mean equal content; there is no digest of what was not read whole. */
#include "place.h"

static const char *take(struct place *p, const char *name)
{
	struct str digest;

	ok(p, digest_take(&p->call, in(p, "%s", name), &digest, &p->f));
	return str_z(p->arena, digest);
}

static void in_a_work_tree_it_is_the_tree_of_a_checkpoint(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	place_repo(p);
	assert_string_equal(take(p, "repo"), run(p, "git -C repo rev-parse 'HEAD^{tree}'"));
	run(p, "echo 1 > repo/n");
	checkpoint_capture(&p->call, p->repo, STR("s"), 0, &made);
	assert_str(made.tree, take(p, "repo"));
}

static void every_change_of_a_work_tree_shows_and_nothing_else(void **state)
{
	static const char *const changes[] = {"echo 2 > a.txt", "rm a.txt", "echo u > u",
		"chmod +x a.txt", "mv a.txt b.txt", "rm a.txt; ln -s sub a.txt",
		"git rm -q --cached a.txt; echo x >> a.txt"};
	static const char *const others[] = {"echo i > x.ign", "touch a.txt", "git add -A",
		"mkdir empty", "git commit -q --allow-empty -m e", "git checkout -qb other"};
	struct place *p = *state;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const char *before;

		place_repo(p);
		before = take(p, "repo");
		run(p, "cd repo; %s", changes[i]);
		assert_string_not_equal(take(p, "repo"), before);
		run(p, "rm -rf repo");
	}
	place_repo(p);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const char *before = take(p, "repo");

		run(p, "cd repo; %s", others[i]);
		assert_string_equal(take(p, "repo"), before);
	}
}

static void two_digests_of_a_work_tree_tell_the_files(void **state)
{
	struct place *p = *state;
	struct file_changes files;
	const char *before, *after;

	place_repo(p);
	before = take(p, "repo");
	run(p, "cd repo; echo 2 >> a.txt; echo u > u");
	after = take(p, "repo");
	ok(p, digest_compare(&p->call, p->repo, str_of(before), str_of(after), &files, &p->f));
	assert_int_equal(files.total, 2);
	assert_str(files.rows[0].path, "a.txt");
	assert_string_equal(files.rows[1].kind, "added");
	assert_int_equal(
		digest_compare(&p->call, p->repo, STR("folder:00"), str_of(after), &files, &p->f),
		-1);
	assert_cause(p, "not_a_worktree");
	assert_int_equal(
		digest_compare(&p->call, p->repo, STR("--help"), str_of(after), &files, &p->f), -1);
	assert_cause(p, "not_a_worktree");
}

static void every_change_of_a_plain_folder_shows(void **state)
{
	static const char *const changes[] = {"echo 2 > a", "rm a", "echo u > u", "chmod 700 a",
		"mv a b", "rm a; ln -s sub a", "mkdir e", "ln -sf other link",
		"rm -r sub; mkdir -p sub; echo x > c", "truncate -s 3 a", "mkfifo f",
		"mv sub/c sub/d"};
	struct place *p = *state;
	const char *first = NULL;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const char *before;

		run(p, "mkdir -p f/sub; cd f; echo 1 > a; echo x > sub/c; ln -s a link; mkdir .git; chmod 644 a");
		before = take(p, "f");
		assert_string_equal(first == NULL ? before : first, before);
		first = before;
		run(p, "cd f; echo 1 > .git/x; touch a");
		assert_string_equal(take(p, "f"), before);
		run(p, "cd f; %s", changes[i]);
		assert_string_not_equal(take(p, "f"), before);
		run(p, "rm -rf f");
	}
	assert_int_equal(strncmp(first, "folder:", 7), 0);
}

static void what_was_not_read_whole_has_no_digest(void **state)
{
	struct place *p = *state;
	struct str digest;
	struct cancel *cancel = cancel_create();

	run(p, "mkdir f; truncate -s 3G f/sparse");
	assert_int_equal(digest_take(&p->call, in(p, "f"), &digest, &p->f), -1);
	assert_cause(p, "too_large");
	run(p, "rm f/sparse; d=f; for i in $(seq 140); do d=$d/d; done; mkdir -p $d");
	assert_int_equal(digest_take(&p->call, in(p, "f"), &digest, &p->f), -1);
	assert_cause(p, "too_large");
	assert_int_equal(digest_take(&p->call, in(p, "gone"), &digest, &p->f), -1);
	assert_cause(p, "folder_missing");
	run(p, "rm -r f; mkdir f; echo 1 > f/a");
	cancel_request(cancel);
	p->call.cancel = cancel;
	assert_int_equal(digest_take(&p->call, in(p, "f"), &digest, &p->f), -1);
	p->call.cancel = NULL;
	assert_cause(p, "cancelled");
	cancel_destroy(cancel);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(in_a_work_tree_it_is_the_tree_of_a_checkpoint),
		STORY(every_change_of_a_work_tree_shows_and_nothing_else),
		STORY(two_digests_of_a_work_tree_tell_the_files),
		STORY(every_change_of_a_plain_folder_shows),
		STORY(what_was_not_read_whole_has_no_digest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
