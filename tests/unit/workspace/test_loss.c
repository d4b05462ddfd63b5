/* No work tree goes while it holds what exists nowhere else; a force takes only what its giver saw.
 */
#include "place.h"

#include <signal.h>
#include <sys/wait.h>

static struct str tree_path(struct place *p)
{
	return in(p, "trees/repo/b-7728950e");
}

static void make_tree(struct place *p)
{
	struct worktree_order order = {.root = p->repo,
		.dir = p->trees,
		.thread_id = STR("7728950e"),
		.base = STR("main"),
		.branch = STR("b")};
	struct worktree tree;

	place_repo(p);
	ok(p, worktree_create(&p->call, &order, &tree, &p->f));
}

/* "modified a.txt, untracked x", in the order of the list. */
static const char *said(struct place *p)
{
	struct losses losses;
	struct buf text;

	ok(p, worktree_losses(&p->call, tree_path(p), &losses, &p->f));
	buf_init(&text, p->arena, SIZE_MAX);
	for (size_t i = 0; i < losses.n; i++)
		buf_printf(&text, "%s%s %.*s", i == 0 ? "" : ", ",
			loss_kind_name(losses.rows[i].kind), STRF(losses.rows[i].what));
	assert_int_equal(losses.total, losses.n);
	assert_int_equal(losses.total == 0, losses.token.p == NULL);
	return str_z(p->arena, buf_str(&text));
}

static int remove_tree(struct place *p, struct str force)
{
	return worktree_remove(&p->call, p->repo, tree_path(p), force, &p->f);
}

/* What the refusal offers as the token of the force. */
static struct str offered(struct place *p)
{
	json_t *detail;
	struct str text = str_printf(p->arena, "{%.*s}", STRF(p->f.detail)), token;

	detail = json_loadb(text.p, text.n, 0, NULL);
	token = str_dup(p->arena, json_member_str(detail, "token"));
	assert_true(json_array_size(json_object_get(detail, "losses")) > 0);
	json_decref(detail);
	return token;
}

static void a_work_tree_without_anything_of_its_own_goes(void **state)
{
	struct place *p = *state;

	make_tree(p);
	assert_string_equal(said(p), "");
	ok(p, remove_tree(p, STR_NONE));
	assert_false(exists(p, "trees/repo/b-7728950e"));
	assert_string_equal(
		run(p, "git -C repo worktree list | wc -l; git -C repo rev-parse -q --verify refs/heads/b >/dev/null"),
		"1");
}

/* Each of these alone keeps the work tree. */
static void each_thing_that_exists_nowhere_else_is_named(void **state)
{
	static const struct {
		const char *done, *said;
	} rows[] = {
		{"echo edit > a.txt", "modified a.txt"},
		{"rm a.txt", "modified a.txt"},
		{"echo s > a.txt; git add a.txt; git show HEAD:a.txt > a.txt", "modified a.txt"},
		{"git rm -q --cached a.txt", "modified a.txt, untracked a.txt"},
		{"git update-index --assume-unchanged a.txt; echo hidden > a.txt",
			"modified a.txt"},
		{"git update-index --skip-worktree a.txt; echo hidden > a.txt", "modified a.txt"},
		{"echo u > ' odd '", "untracked  odd "},
		{"mkdir new; echo u > new/u", "untracked new/"},
		{"echo i > x.ign", "ignored x.ign"},
		{"git init -q nested; echo 1 > nested/1", "untracked nested/"},
		{"git stash -q 2>/dev/null; echo edit > a.txt; git stash -q -m later",
			"stash On b: later"},
		{"git worktree lock .", "lock it is locked by git worktree lock"},
		{"git config status.showUntrackedFiles no; git config status.relativePaths true; echo u > sub/u",
			"untracked sub/u"},
	};
	struct place *p = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		make_tree(p);
		run(p, "cd %.*s; %s", STRF(tree_path(p)), rows[i].done);
		assert_string_equal(said(p), rows[i].said);
		assert_int_equal(remove_tree(p, STR_NONE), -1);
		assert_cause(p, "would_lose");
		assert_true(exists(p, "trees/repo/b-7728950e/sub"));
		run(p, "rm -rf repo trees");
	}
}

static void commits_count_until_they_are_elsewhere(void **state)
{
	struct place *p = *state;

	make_tree(p);
	run(p, "cd %.*s; echo 1 > n; git add .; git commit -qm mine", STRF(tree_path(p)));
	assert_non_null(strstr(said(p), " mine"));
	assert_int_equal(strncmp(said(p), "commit ", 7), 0);
	run(p, "git -C repo branch copy b");
	assert_string_equal(said(p), "");
	run(p, "git -C repo branch -qD copy; git init -q --bare up.git; cd repo; git remote add origin ../up.git; git push -q origin b");
	assert_string_equal(said(p), "");
	run(p, "cd %.*s; git checkout -q --detach; git commit -q --allow-empty -m loose",
		STRF(tree_path(p)));
	assert_non_null(strstr(said(p), " loose"));
}

static void an_operation_in_the_middle_is_named(void **state)
{
	struct place *p = *state;

	make_tree(p);
	run(p,
		"cd repo; echo m > a.txt; git commit -qam main; cd %.*s; echo b > a.txt; git commit -qam b; git branch -q copy;"
		" git merge -q main >/dev/null || true; git checkout -q --ours a.txt; git add a.txt",
		STRF(tree_path(p)));
	assert_string_equal(said(p), "operation a merge that is not finished");
}

static void a_process_that_works_there_is_named(void **state)
{
	struct place *p = *state;
	pid_t child;
	int ready[2];
	char byte;

	make_tree(p);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		if (chdir(str_z(p->arena, in(p, "trees/repo/b-7728950e/sub"))) != 0 ||
			write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_non_null(strstr(said(p), arena_printf(p->arena, "process %d (", (int)child)));
	assert_int_equal(remove_tree(p, STR_NONE), -1);
	assert_cause(p, "would_lose");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	assert_string_equal(said(p), "");
}

static void submodules_are_looked_into(void **state)
{
	struct place *p = *state;

	make_tree(p);
	run(p,
		"git init -q -b main lib; cd lib; echo l > l; git add .; git commit -qm l; cd %.*s;"
		" git -c protocol.file.allow=always submodule --quiet add ../../../lib mod; git commit -qm mod; git branch -q copy",
		STRF(tree_path(p)));
	assert_string_equal(said(p), "");
	run(p, "cd %.*s/mod; git checkout -qb side; git commit -q --allow-empty -m inner; git checkout -q main",
		STRF(tree_path(p)));
	assert_int_equal(strncmp(said(p), "commit mod/", 11), 0);
	run(p, "cd %.*s/mod; git branch -qD side; echo i > i; echo i > .git-x; git config core.excludesFile x",
		STRF(tree_path(p)));
	assert_non_null(strstr(said(p), "untracked mod/i"));
	run(p, "cd %.*s/mod; rm i .git-x", STRF(tree_path(p)));
	ok(p, remove_tree(p, STR_NONE));
	assert_false(exists(p, "trees/repo/b-7728950e"));
}

static void a_force_takes_what_it_names_and_no_more(void **state)
{
	struct place *p = *state;
	struct str token;

	make_tree(p);
	run(p, "echo u > %.*s/u", STRF(tree_path(p)));
	assert_int_equal(remove_tree(p, STR("yes")), -1);
	token = offered(p);
	assert_cause(p, "would_lose");
	run(p, "echo v > %.*s/v", STRF(tree_path(p)));
	assert_int_equal(remove_tree(p, token), -1);
	token = offered(p);
	assert_cause(p, "would_lose");
	ok(p, remove_tree(p, token));
	assert_false(exists(p, "trees/repo/b-7728950e"));
}

static void a_long_list_is_cut_and_counted(void **state)
{
	struct place *p = *state;
	struct losses losses, others;

	make_tree(p);
	run(p, "cd %.*s; for i in $(seq 130); do echo > n$i; done", STRF(tree_path(p)));
	ok(p, worktree_losses(&p->call, tree_path(p), &losses, &p->f));
	assert_int_equal(losses.n, 100);
	assert_int_equal(losses.total, 130);
	run(p, "cd %.*s; mv n99 n999", STRF(tree_path(p)));
	ok(p, worktree_losses(&p->call, tree_path(p), &others, &p->f));
	assert_false(str_eq(losses.token, others.token));
}

static void only_linked_work_trees_of_the_repository_are_removed(void **state)
{
	struct place *p = *state;

	make_tree(p);
	assert_int_equal(worktree_remove(&p->call, p->repo, p->repo, STR_NONE, &p->f), -1);
	assert_cause(p, "main_worktree");
	assert_int_equal(worktree_remove(&p->call, tree_path(p), p->repo, STR_NONE, &p->f), -1);
	assert_cause(p, "main_worktree");
	run(p, "mkdir plain; git init -q other");
	assert_int_equal(worktree_remove(&p->call, p->repo, in(p, "plain"), STR_NONE, &p->f), -1);
	assert_cause(p, "not_a_worktree");
	assert_int_equal(worktree_remove(&p->call, p->repo, in(p, "other"), STR_NONE, &p->f), -1);
	assert_cause(p, "not_a_worktree");
	assert_true(exists(p, "repo/a.txt") && exists(p, "plain") && exists(p, "other/.git"));
}

static void what_cannot_be_looked_at_is_not_removed(void **state)
{
	struct place *p = *state;

	make_tree(p);
	run(p, "echo damage > repo/.git/worktrees/b-7728950e/index");
	assert_int_equal(remove_tree(p, STR_NONE), -1);
	assert_cause(p, "git_failed");
	assert_true(exists(p, "trees/repo/b-7728950e/a.txt"));
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_work_tree_without_anything_of_its_own_goes),
		STORY(each_thing_that_exists_nowhere_else_is_named),
		STORY(commits_count_until_they_are_elsewhere),
		STORY(an_operation_in_the_middle_is_named),
		STORY(a_process_that_works_there_is_named),
		STORY(submodules_are_looked_into),
		STORY(a_force_takes_what_it_names_and_no_more),
		STORY(a_long_list_is_cut_and_counted),
		STORY(only_linked_work_trees_of_the_repository_are_removed),
		STORY(what_cannot_be_looked_at_is_not_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
