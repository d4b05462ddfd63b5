/* A restore makes the work tree what it was, and destroys nothing that no checkpoint has. */
#include "place.h"

static struct str take(struct place *p, int ordinal)
{
	struct checkpoint made;

	checkpoint_capture(&p->call, p->repo, STR("scope"), ordinal, &made);
	if (made.status != CHECKPOINT_READY)
		fail_msg("%.*s", STRF(made.problem));
	return made.ref;
}

static const char *files(struct place *p)
{
	return run(p,
		"cd repo; find . -path ./.git -prune -o ! -type d -print | LC_ALL=C sort | tr '\\n' ' '");
}

static void files_added_since_go_and_changed_ones_come_back(void **state)
{
	struct place *p = *state;
	struct restored done;
	struct str ref;

	place_repo(p);
	run(p, "cd repo; echo keep > untracked; echo staged > a.txt; git add a.txt; echo edit > a.txt");
	ref = take(p, 0);
	run(p, "cd repo; git commit -qam agent; echo agent > a.txt; rm -r sub; echo sub > sub; mkdir deep; echo 1 > deep/x; chmod +x untracked;"
	       " git add deep; echo i > mine.ign");
	ok(p, checkpoint_restore(&p->call, p->repo, ref, &done, &p->f));
	assert_string_equal(files(p), "./.gitignore ./a.txt ./mine.ign ./sub/b.txt ./untracked ");
	assert_string_equal(run(p, "cd repo; cat a.txt untracked sub/b.txt"), "edit\nkeep\ntwo");
	assert_string_equal(
		run(p, "cd repo; test ! -x untracked; test ! -d deep; git log --format=%%s | tr '\\n' ' '"),
		"agent first ");
	assert_int_equal(done.files.total, 5);
	assert_int_equal(done.kept_count, 0);
}

static void it_can_go_forward_again_by_a_later_checkpoint(void **state)
{
	struct place *p = *state;
	struct restored done;
	struct str first, second;

	place_repo(p);
	first = take(p, 0);
	run(p, "cd repo; printf 'odd' > \"$(printf -- '-a\\nb')\"; rm a.txt; ln -s sub link");
	second = take(p, 1);
	ok(p, checkpoint_restore(&p->call, p->repo, first, &done, &p->f));
	assert_string_equal(files(p), "./.gitignore ./a.txt ./sub/b.txt ");
	ok(p, checkpoint_restore(&p->call, p->repo, second, &done, &p->f));
	assert_string_equal(files(p), "./-a ./.gitignore ./link ./sub/b.txt b ");
	assert_string_equal(run(p, "readlink repo/link"), "sub");
}

static void an_ignored_file_in_the_way_is_kept_and_told(void **state)
{
	struct place *p = *state;
	struct restored done;
	struct str ref;

	place_repo(p);
	run(p, "cd repo; echo old > .env; mkdir conf; echo c > conf/x; mkdir -p d/e; echo d > d/e/f");
	ref = take(p, 0);
	run(p, "cd repo; printf '.env\\nconf\\nd\\n' >> .gitignore; echo secret > .env; rm -r conf; echo file > conf;"
	       " rm -r d; mkdir d; echo f > d/e");
	ok(p, checkpoint_restore(&p->call, p->repo, ref, &done, &p->f));
	assert_string_equal(
		run(p, "cd repo; cat .env conf d/e .gitignore"), "secret\nfile\nf\n*.ign");
	assert_int_equal(done.kept_count, 3);
	assert_str(done.kept[0], ".env");
	assert_str(done.kept[1], "conf/x");
	assert_str(done.kept[2], "d/e/f");
}

static void a_folder_gives_way_to_a_file_and_back(void **state)
{
	struct place *p = *state;
	struct restored done;
	struct str ref;

	place_repo(p);
	run(p, "cd repo; mkdir x-y; echo 1 > x-y/z; echo file > x");
	ref = take(p, 0);
	run(p, "cd repo; rm x; mkdir x; echo in > x/in; rm -r x-y; echo f > x-y");
	ok(p, checkpoint_restore(&p->call, p->repo, ref, &done, &p->f));
	assert_string_equal(files(p), "./.gitignore ./a.txt ./sub/b.txt ./x ./x-y/z ");
	assert_int_equal(done.kept_count, 0);
}

static void an_ignored_file_in_a_folder_that_should_be_a_file_is_kept(void **state)
{
	struct place *p = *state;
	struct restored done;
	struct str ref;

	place_repo(p);
	run(p, "cd repo; echo file > x; echo file > y");
	ref = take(p, 0);
	run(p, "cd repo; rm x y; mkdir x; echo in > x/in; echo precious > x/mine.ign; git init -q y/nested; echo in > y/in; echo new > a.txt");
	ok(p, checkpoint_restore(&p->call, p->repo, ref, &done, &p->f));
	assert_string_equal(run(p, "cd repo; cat x/mine.ign a.txt; ls x y"),
		"precious\none\nx:\nmine.ign\n\ny:\nnested");
	assert_int_equal(done.kept_count, 2);
}

static void submodules_are_not_touched(void **state)
{
	struct place *p = *state;
	struct restored done;
	struct str ref;

	place_repo(p);
	run(p, "git init -q -b main lib; cd lib; echo l > l; git add .; git commit -qm l; cd ../repo; git config submodule.recurse true;"
	       " git -c protocol.file.allow=always submodule --quiet add ../lib mod");
	ref = take(p, 0);
	run(p, "cd repo/mod; echo work > l; echo more > more; git add .; git commit -qm more; echo uncommitted > l; echo 1 > ../n");
	ok(p, checkpoint_restore(&p->call, p->repo, ref, &done, &p->f));
	assert_string_equal(run(p, "cd repo/mod; cat l more; ls ../n 2>/dev/null || true"),
		"uncommitted\nmore");
}

static void a_repository_without_a_commit_can_be_restored(void **state)
{
	struct place *p = *state;
	struct restored done;
	struct str ref;

	run(p, "git init -q -b main repo; echo 1 > repo/x");
	ref = take(p, 0);
	run(p, "cd repo; rm x; echo 2 > y");
	ok(p, checkpoint_restore(&p->call, p->repo, ref, &done, &p->f));
	assert_string_equal(files(p), "./x ");
}

static void a_restore_follows_no_link_out_of_the_work_tree(void **state)
{
	struct place *p = *state;
	struct restored done;
	struct str ref;

	place_repo(p);
	ref = take(p, 0);
	run(p, "mkdir outside; echo mine > outside/b.txt; cd repo; rm -r sub; ln -s ../outside sub");
	ok(p, checkpoint_restore(&p->call, p->repo, ref, &done, &p->f));
	assert_string_equal(run(p, "cat outside/b.txt repo/sub/b.txt"), "mine\ntwo");
}

static void an_unknown_checkpoint_is_refused(void **state)
{
	static const char *const refs[] = {"refs/dais/checkpoints/x/ordinal/0", "main", "HEAD", "",
		"--help", "refs/heads/main"};
	struct place *p = *state;
	struct restored done;

	place_repo(p);
	run(p, "echo edit > repo/a.txt");
	for (size_t i = 0; i < sizeof(refs) / sizeof(refs[0]); i++) {
		assert_int_equal(
			checkpoint_restore(&p->call, p->repo, str_of(refs[i]), &done, &p->f), -1);
		assert_cause(p, "checkpoint_not_found");
	}
	assert_string_equal(run(p, "cat repo/a.txt"), "edit");
	run(p, "mkdir plain");
	assert_int_equal(
		checkpoint_restore(&p->call, in(p, "plain"), str_of(refs[0]), &done, &p->f), -1);
	assert_cause(p, "repository_missing");
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(files_added_since_go_and_changed_ones_come_back),
		STORY(it_can_go_forward_again_by_a_later_checkpoint),
		STORY(an_ignored_file_in_the_way_is_kept_and_told),
		STORY(a_folder_gives_way_to_a_file_and_back),
		STORY(an_ignored_file_in_a_folder_that_should_be_a_file_is_kept),
		STORY(submodules_are_not_touched),
		STORY(a_repository_without_a_commit_can_be_restored),
		STORY(a_restore_follows_no_link_out_of_the_work_tree),
		STORY(an_unknown_checkpoint_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
