/* Work trees are made whole or not at all, and never meet. */
#include "place.h"

#include <pthread.h>

#define THREAD "0f8fad5b-d9cb-469f-a165-70867728950e"

static int make(struct place *p, const char *base, const char *branch, struct worktree *out)
{
	struct worktree_order order = {.root = p->repo,
		.dir = p->trees,
		.thread_id = STR(THREAD),
		.base = str_of(base),
		.branch = str_of(branch)};

	return worktree_create(&p->call, &order, out, &p->f);
}

static const char *branches(struct place *p)
{
	return run(p,
		"git -C repo for-each-ref --format='%%(refname:short)' refs/heads | tr '\\n' ' '");
}

static const char *list(struct place *p)
{
	return run(p, "git -C repo worktree list --porcelain | grep -c ^worktree");
}

static void a_branch_name_is_cleaned(void **state)
{
	static const struct {
		const char *wanted, *right;
	} rows[] = {
		{"feature/lexer", "feature/lexer"},
		{"Feature/Lexer", "feature/lexer"},
		{"feature/\xc3\xa4", "feature"},
		{"..", "update"},
		{"-x", "x"},
		{"a//b", "a/b"},
		{"\xf0\x9f\x92\xa6", "update"},
		{"fix \xf0\x9f\x92\xa6 now", "fix-now"},
		{"HEAD", "head"},
		{"a.lock", "a-lock"},
		{"a/.b/-c-/d", "a/b/c/d"},
		{"@{-1}", "1"},
		{"", "update"},
		{"///", "update"},
		{"a b\n\tc", "a-b-c"},
		{"a__b--c", "a__b--c"},
		{"refs/heads/x", "refs/heads/x"},
		{"$(reboot);`x`", "reboot-x"},
	};
	struct place *p = *state;
	char many[301];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_str(branch_clean(p->arena, str_of(rows[i].wanted)), rows[i].right);
	memset(many, 'n', 300);
	many[300] = '\0';
	many[63] = '/';
	assert_int_equal(branch_clean(p->arena, str_of(many)).n, 63);
	many[63] = 'n';
	assert_int_equal(branch_clean(p->arena, str_of(many)).n, 64);
}

static void every_cleaned_name_is_one_that_git_takes(void **state)
{
	static const char *const wanted[] = {"feature/\xc3\xa4", "..", "-x", "a//b",
		"\xf0\x9f\x92\xa6", "HEAD", "a.lock", "@", "x.", "a/.lock/b", "~^:?*[\\",
		"\xff\xfe"};
	struct place *p = *state;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		run(p, "git check-ref-format --branch %s",
			str_z(p->arena, branch_clean(p->arena, str_of(wanted[i]))));
}

static void a_work_tree_is_named_by_branch_and_thread(void **state)
{
	struct place *p = *state;
	struct worktree tree;

	place_repo(p);
	ok(p, make(p, "main", "Feature/Lexer", &tree));
	assert_str(tree.branch, "feature/lexer");
	assert_str(tree.path, str_z(p->arena, in(p, "trees/repo/feature-lexer-7728950e")));
	assert_false(tree.is_temporary);
	assert_string_equal(run(p, "cat trees/repo/feature-lexer-7728950e/sub/b.txt"), "two");
	assert_string_equal(run(p, "git -C %.*s symbolic-ref HEAD", STRF(tree.path)),
		"refs/heads/feature/lexer");
	assert_string_equal(
		run(p, "git -C repo config branch.feature/lexer.gh-merge-base"), "main");
	assert_string_equal(run(p, "git -C repo rev-parse main"), str_z(p->arena, tree.commit));
}

static void without_a_branch_it_gets_a_temporary_one_that_can_be_renamed(void **state)
{
	struct place *p = *state;
	struct worktree tree;
	struct str name;

	place_repo(p);
	ok(p, make(p, "main", NULL, &tree));
	assert_true(tree.is_temporary && branch_is_temporary(tree.branch));
	ok(p, worktree_rename_branch(
		      &p->call, tree.path, tree.branch, STR("Write the Parser"), &name, &p->f));
	assert_str(name, "write-the-parser");
	assert_string_equal(run(p, "git -C %.*s symbolic-ref HEAD", STRF(tree.path)),
		"refs/heads/write-the-parser");
	assert_string_equal(
		run(p, "git -C repo config branch.write-the-parser.gh-merge-base"), "main");
	assert_string_equal(branches(p), "main write-the-parser ");
	/* Again: the branch has a name that somebody chose. */
	assert_int_equal(
		worktree_rename_branch(&p->call, tree.path, name, STR("other"), &name, &p->f), -1);
	assert_cause(p, "branch_taken");
}

static void a_temporary_branch_keeps_its_name_when_the_better_one_is_taken(void **state)
{
	struct place *p = *state;
	struct worktree tree;
	struct str name;

	place_repo(p);
	ok(p, make(p, "main", NULL, &tree));
	run(p, "git -C repo branch taken");
	assert_int_equal(worktree_rename_branch(
				 &p->call, tree.path, tree.branch, STR("taken"), &name, &p->f),
		-1);
	assert_cause(p, "branch_taken");
	assert_int_equal(worktree_rename_branch(&p->call, tree.path, tree.branch,
				 STR("taken/below"), &name, &p->f),
		-1);
	assert_cause(p, "branch_taken");
	assert_string_equal(run(p, "git -C %.*s symbolic-ref --short HEAD", STRF(tree.path)),
		str_z(p->arena, tree.branch));
}

static void it_starts_from_the_local_branch_with_its_unpushed_commits_and_without_edits(
	void **state)
{
	struct place *p = *state;
	struct worktree tree;

	place_repo(p);
	run(p, "cd repo; git checkout -qb feature/parser; echo new > new.txt; git add .; git commit -qm second; echo edit > a.txt");
	ok(p, make(p, "feature/parser", "next", &tree));
	assert_string_equal(run(p, "cd %.*s; cat new.txt a.txt", STRF(tree.path)), "new\none");
	/* A branch goes before a tag of that name; tags and ids will do too. */
	run(p, "cd repo; git tag main feature/parser; git tag v1 feature/parser");
	ok(p, make(p, "main", "b2", &tree));
	assert_string_equal(run(p, "ls %.*s", STRF(tree.path)), "a.txt\nsub");
	ok(p, make(p, "v1", "b3", &tree));
	assert_string_equal(run(p, "ls %.*s", STRF(tree.path)), "a.txt\nnew.txt\nsub");
}

static void from_origin_it_fetches_first(void **state)
{
	struct place *p = *state;
	struct worktree_order order = {.dir = p->trees,
		.thread_id = STR(THREAD),
		.base = STR("main"),
		.branch = STR("b"),
		.is_from_origin = true};
	struct worktree tree;

	place_repo(p);
	run(p, "git clone -q repo clone; cd repo; echo 2 > upstream; git add .; git commit -qm upstream;"
	       " cd ../clone; echo 3 > local; git add .; git commit -qm local");
	order.root = in(p, "clone");
	ok(p, worktree_create(&p->call, &order, &tree, &p->f));
	assert_str(tree.path, str_z(p->arena, in(p, "trees/clone/b-7728950e")));
	assert_string_equal(run(p, "ls %.*s", STRF(tree.path)), "a.txt\nsub\nupstream");
	order.branch = STR("c");
	order.base = STR("nowhere");
	assert_int_equal(worktree_create(&p->call, &order, &tree, &p->f), -1);
	assert_cause(p, "base_not_found");
	run(p, "mv repo away");
	order.base = STR("main");
	assert_int_equal(worktree_create(&p->call, &order, &tree, &p->f), -1);
	assert_cause(p, "fetch_failed");
	run(p, "cd clone; git remote set-url origin 'https://ada:s3cret@127.0.0.1:1/x.git'");
	assert_int_equal(worktree_create(&p->call, &order, &tree, &p->f), -1);
	assert_null(memmem(p->f.message.p, p->f.message.n, "s3cret", 6));
	assert_cause(p, "fetch_failed");
	assert_string_equal(
		run(p, "git -C clone branch --format='%%(refname:short)' | tr '\\n' ' '"),
		"b main ");
}

static void each_failure_has_its_cause_and_leaves_nothing(void **state)
{
	static const char *const bases[] = {"nowhere", "-x", "", "a b", "HEAD:a.txt", "main\nmain",
		"\xff", "main^{tree}", "--all"};
	struct place *p = *state;
	struct worktree tree;
	struct worktree_order order = {
		.dir = p->trees, .thread_id = STR(THREAD), .base = STR("main")};

	place_repo(p);
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		assert_int_equal(make(p, bases[i], "b", &tree), -1);
		assert_cause(p, "base_not_found");
	}
	assert_int_equal(make(p, "main", "main", &tree), -1);
	assert_cause(p, "branch_taken");
	assert_int_equal(make(p, "main", "main/below", &tree), -1);
	assert_cause(p, "branch_taken");
	run(p, "rm -rf trees; mkdir -p trees/repo/b-7728950e; echo mine > trees/repo/b-7728950e/file");
	assert_int_equal(make(p, "main", "b", &tree), -1);
	assert_cause(p, "path_taken");
	assert_string_equal(run(p, "cat trees/repo/b-7728950e/file"), "mine");
	run(p, "mkdir plain");
	order.root = in(p, "plain");
	assert_int_equal(worktree_create(&p->call, &order, &tree, &p->f), -1);
	assert_cause(p, "repository_missing");
	order.root = in(p, "nothing");
	assert_int_equal(worktree_create(&p->call, &order, &tree, &p->f), -1);
	assert_cause(p, "repository_missing");
	order.root = in(p, "repo/.git");
	assert_int_equal(worktree_create(&p->call, &order, &tree, &p->f), -1);
	assert_cause(p, "repository_missing");
	run(p, "git init -q -b main unborn");
	order.root = in(p, "unborn");
	assert_int_equal(worktree_create(&p->call, &order, &tree, &p->f), -1);
	assert_cause(p, "base_not_found");
	assert_string_equal(branches(p), "main ");
	assert_string_equal(list(p), "1");
	assert_string_equal(run(p, "find trees -mindepth 1 | sort | tr '\\n' ' '"),
		"trees/repo trees/repo/b-7728950e trees/repo/b-7728950e/file ");
}

/* A git of ours before the real one on the PATH, that spoils `git worktree add`. */
static void spoil(struct place *p, const char *body)
{
	const char *path = getenv("PATH");

	run(p,
		"mkdir bin; real=$(command -v git); { echo '#!/bin/sh'; echo \"real=$real\";"
		" echo 'case \" $* \" in *\" worktree add \"*) %s;; esac; exec $real \"$@\"'; } > bin/git; chmod +x bin/git",
		body);
	setenv("OLD_PATH", path, 1);
	setenv("PATH", arena_printf(p->arena, "%s/bin:%s", p->dir, path), 1);
}

static void unspoil(void)
{
	setenv("PATH", getenv("OLD_PATH"), 1);
}

static void a_full_disk_is_told_and_undone(void **state)
{
	struct place *p = *state;
	struct worktree tree;

	place_repo(p);
	spoil(p,
		"$real \"$@\"; echo \"fatal: write error: No space left on device\" >&2; exit 128");
	assert_int_equal(make(p, "main", "b", &tree), -1);
	unspoil();
	assert_int_equal(p->f.code, FAIL_STORAGE_FULL);
	assert_cause(p, "disk_full");
	assert_string_equal(branches(p), "main ");
	assert_string_equal(list(p), "1");
	assert_string_equal(run(p, "ls trees/repo"), "");
}

static void a_git_that_dies_in_the_middle_leaves_nothing(void **state)
{
	struct place *p = *state;
	struct worktree tree;

	place_repo(p);
	/* The folder has lost its link, the entry is there: what git itself does not remove any
	 * more. */
	spoil(p, "$real \"$@\"; rm -f %s/trees/repo/*/.git; kill -9 $$");
	run(p, "sed -i 's#%%s#%s#' bin/git", p->dir);
	assert_int_equal(make(p, "main", "b", &tree), -1);
	unspoil();
	assert_cause(p, "git_failed");
	assert_string_equal(branches(p), "main ");
	assert_string_equal(run(p, "ls repo/.git/worktrees 2>/dev/null || true"), "");
	assert_string_equal(run(p, "ls trees/repo"), "");
}

static void without_git_it_says_so(void **state)
{
	struct place *p = *state;
	struct worktree tree;
	const char *path = arena_printf(p->arena, "%s", getenv("PATH"));

	place_repo(p);
	setenv("PATH", p->dir, 1);
	assert_int_equal(make(p, "main", "b", &tree), -1);
	setenv("PATH", path, 1);
	assert_cause(p, "git_missing");
}

static void a_read_only_folder_is_told(void **state)
{
	struct place *p = *state;
	struct worktree tree;

	/* Root may write anywhere. This is the last story, so nobody has to become root again. */
	place_close(state);
	if (geteuid() == 0)
		assert_int_equal(setuid(65534), 0);
	place_open(state);
	p = *state;
	place_repo(p);
	run(p, "mkdir trees; chmod 555 trees");
	assert_int_equal(make(p, "main", "b", &tree), -1);
	assert_cause(p, "not_permitted");
	run(p, "chmod 755 trees; chmod -R a-w repo/.git");
	assert_int_equal(make(p, "main", "b", &tree), -1);
	assert_cause(p, "not_permitted");
	assert_string_equal(run(p, "ls trees/repo"), "");
	run(p, "chmod -R u+w repo/.git");
}

struct racer {
	struct place *place;
	const char *thread_id, *branch;
	int result;
	const char *cause;
	struct str branch_got;
};

static void *race(void *arg)
{
	struct racer *racer = arg;
	struct arena *arena = arena_create();
	struct workspace_call call = {.arena = arena};
	struct worktree_order order = {.root = racer->place->repo,
		.dir = racer->place->trees,
		.thread_id = str_of(racer->thread_id),
		.base = STR("main"),
		.branch = str_of(racer->branch)};
	struct worktree tree;
	struct failure f;

	failure_init(&f, arena);
	racer->result = worktree_create(&call, &order, &tree, &f);
	if (racer->result != 0)
		racer->cause = strdup(str_z(arena, fault_cause(&f, arena)));
	arena_destroy(arena);
	return NULL;
}

static void run_both(struct racer racers[2])
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void of_two_launches_with_one_branch_one_wins_and_keeps_all(void **state)
{
	struct place *p = *state;

	place_repo(p);
	for (int round = 0; round < 8; round++) {
		const char *branch = arena_printf(p->arena, "b%d", round);
		struct racer racers[2] = {{.place = p, .thread_id = "11111111", .branch = branch},
			{.place = p, .thread_id = "22222222", .branch = branch}};
		int loser;

		run_both(racers);
		assert_int_equal(racers[0].result + racers[1].result, -1);
		loser = racers[0].result == 0 ? 1 : 0;
		assert_string_equal(racers[loser].cause, "branch_taken");
		assert_true(exists(p, arena_printf(p->arena, "trees/repo/%s-%s/a.txt", branch,
					      racers[1 - loser].thread_id)));
		assert_false(exists(p, arena_printf(p->arena, "trees/repo/%s-%s", branch,
					       racers[loser].thread_id)));
		free((char *)(uintptr_t)racers[loser].cause);
	}
}

static void two_launches_with_other_branches_both_succeed(void **state)
{
	struct place *p = *state;

	place_repo(p);
	for (int round = 0; round < 8; round++) {
		struct racer racers[2] = {{.place = p,
						  .thread_id = "11111111",
						  .branch = arena_printf(p->arena, "a%d", round)},
			{.place = p, .thread_id = "22222222"}};

		run_both(racers);
		assert_int_equal(racers[0].result, 0);
		assert_int_equal(racers[1].result, 0);
	}
	assert_string_equal(list(p), "17");
	assert_string_equal(run(p, "grep -c gh-merge-base repo/.git/config"), "16");
}

static void hooks_of_the_user_do_not_run(void **state)
{
	struct place *p = *state;
	struct worktree tree;

	place_repo(p);
	run(p,
		"for h in post-checkout reference-transaction post-index-change; do"
		" printf '#!/bin/sh\\ntouch %s/ran\\n' > repo/.git/hooks/$h; chmod +x repo/.git/hooks/$h; done",
		p->dir);
	ok(p, make(p, "main", "b", &tree));
	assert_false(exists(p, "ran"));
}

static void a_path_is_a_work_tree_of_the_repository_or_not(void **state)
{
	struct place *p = *state;
	struct worktree tree;
	struct str real;
	static const char *const wrong[] = {
		"repo/sub", "other", "plain", "copy", "nothing", "repo/.git", "repo-evil"};

	place_repo(p);
	ok(p, make(p, "main", "b", &tree));
	run(p, "ln -s trees alias; git init -q other; mkdir plain; cp -r %.*s copy; git init -q repo-evil",
		STRF(tree.path));
	ok(p, worktree_check(&p->call, p->repo, tree.path, &real, &p->f));
	ok(p, worktree_check(&p->call, p->repo, in(p, "alias/./repo/b-7728950e/"), &real, &p->f));
	assert_str(real, str_z(p->arena, tree.path));
	ok(p, worktree_check(&p->call, tree.path, p->repo, &real, &p->f));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(
			worktree_check(&p->call, p->repo, in(p, "%s", wrong[i]), &real, &p->f), -1);
		assert_int_equal(p->f.code, FAIL_INVALID_REQUEST);
		assert_cause(p, "not_a_worktree");
	}
	assert_int_equal(worktree_check(&p->call, p->repo, STR("repo"), &real, &p->f), -1);
	assert_cause(p, "not_a_worktree");
}

struct stopper {
	const char *fifo;
	struct cancel *cancel;
};

/* Stops the work as soon as the other end of the fifo is opened. */
static void *stop_when_told(void *arg)
{
	struct stopper *stopper = arg;
	FILE *fifo = fopen(stopper->fifo, "re");

	fclose(fifo);
	cancel_request(stopper->cancel);
	return NULL;
}

static void a_cancelled_creation_is_undone(void **state)
{
	struct place *p = *state;
	struct worktree tree;
	struct stopper stopper = {str_z(p->arena, in(p, "fifo")), cancel_create()};
	pthread_t thread;

	place_repo(p);
	run(p, "mkfifo fifo");
	spoil(p, "$real \"$@\"; echo now > %s/fifo; sleep 60");
	run(p, "sed -i 's#%%s#%s#' bin/git", p->dir);
	assert_int_equal(pthread_create(&thread, NULL, stop_when_told, &stopper), 0);
	p->call.cancel = stopper.cancel;
	assert_int_equal(make(p, "main", "b", &tree), -1);
	unspoil();
	pthread_join(thread, NULL);
	assert_cause(p, "cancelled");
	assert_string_equal(branches(p), "main ");
	assert_string_equal(list(p), "1");
	/* A call that begins after that does nothing at all. */
	assert_int_equal(make(p, "main", "b", &tree), -1);
	assert_cause(p, "cancelled");
	p->call.cancel = NULL;
	cancel_destroy(stopper.cancel);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_branch_name_is_cleaned),
		STORY(every_cleaned_name_is_one_that_git_takes),
		STORY(a_work_tree_is_named_by_branch_and_thread),
		STORY(without_a_branch_it_gets_a_temporary_one_that_can_be_renamed),
		STORY(a_temporary_branch_keeps_its_name_when_the_better_one_is_taken),
		STORY(it_starts_from_the_local_branch_with_its_unpushed_commits_and_without_edits),
		STORY(from_origin_it_fetches_first),
		STORY(each_failure_has_its_cause_and_leaves_nothing),
		STORY(a_full_disk_is_told_and_undone),
		STORY(a_git_that_dies_in_the_middle_leaves_nothing),
		STORY(without_git_it_says_so),
		STORY(of_two_launches_with_one_branch_one_wins_and_keeps_all),
		STORY(two_launches_with_other_branches_both_succeed),
		STORY(hooks_of_the_user_do_not_run),
		STORY(a_path_is_a_work_tree_of_the_repository_or_not),
		STORY(a_cancelled_creation_is_undone),
		STORY(a_read_only_folder_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
