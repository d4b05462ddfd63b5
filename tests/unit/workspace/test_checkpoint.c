/* A checkpoint holds what a work tree holds, and nobody but us notices that it was taken. */
#include "place.h"

#include <pthread.h>

static struct checkpoint take(struct place *p, const char *cwd, int ordinal)
{
	struct checkpoint made;

	checkpoint_capture(&p->call, in(p, "%s", cwd), STR("scope-1"), ordinal, &made);
	return made;
}

static struct checkpoint take_ready(struct place *p, const char *cwd, int ordinal)
{
	struct checkpoint made = take(p, cwd, ordinal);

	if (made.status != CHECKPOINT_READY)
		fail_msg("%s: %.*s", checkpoint_status_name(made.status), STRF(made.problem));
	return made;
}

/* "added a.txt +1 -0" and so on, each with a blank behind it. */
static const char *said(struct place *p, const struct checkpoint *made)
{
	struct buf text;

	buf_init(&text, p->arena, SIZE_MAX);
	for (size_t i = 0; i < made->files.n; i++)
		buf_printf(&text, "%s %.*s +%d -%d ", made->files.rows[i].kind,
			STRF(made->files.rows[i].path), (int)made->files.rows[i].additions,
			(int)made->files.rows[i].deletions);
	return str_z(p->arena, buf_str(&text));
}

static const char *names(struct place *p, const struct checkpoint *made)
{
	return run(p, "git -C repo ls-tree -r --name-only %.*s | tr '\\n' ' '", STRF(made->ref));
}

static void the_ref_is_named_by_scope_and_ordinal(void **state)
{
	struct place *p = *state;

	/* printf scope-1 | sha256sum | cut -c 1-32 | tr -d '\n' | basenc --base64url | tr -d '=' */
	assert_string_equal(str_z(p->arena, checkpoint_ref(p->arena, STR("scope-1"), 1)),
		arena_printf(p->arena, "refs/dais/checkpoints/%s/ordinal/1",
			run(p, "printf scope-1 | sha256sum | cut -c 1-32 | tr -d '\\n' | basenc --base64url | tr -d =")));
}

static void it_lists_what_changed_since_the_checkpoint_before(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	place_repo(p);
	made = take_ready(p, "repo", 0);
	assert_int_equal(made.files.total, 0);
	run(p, "cd repo; printf 'one\\nmore\\n' > a.txt; rm sub/b.txt; echo x > new.txt; head -c 100 /dev/zero > zero.bin; echo > no.ign");
	made = take_ready(p, "repo/sub/..", 1);
	assert_string_equal(said(p, &made),
		"modified a.txt +1 -0 added new.txt +1 -0 deleted sub/b.txt +0 -1 added zero.bin +-1 --1 ");
	assert_string_equal(names(p, &made), ".gitignore a.txt new.txt zero.bin ");
	run(p, "cd repo; git add -A; git commit -qm all");
	made = take_ready(p, "repo", 2);
	assert_string_equal(said(p, &made), "");
	/* A repeated capture replaces the first. */
	run(p, "echo y > repo/y");
	made = take_ready(p, "repo/sub/../", 2);
	assert_string_equal(said(p, &made), "added y +1 -0 ");
}

static void index_head_stash_and_files_stay_as_they_were(void **state)
{
	static const char look[] =
		"cd repo; sha256sum .git/index; git rev-parse HEAD; git symbolic-ref HEAD; git stash list;"
		" GIT_OPTIONAL_LOCKS=0 git status --porcelain; cat .git/logs/HEAD; ls -A; cat a.txt";
	struct place *p = *state;
	const char *before;

	place_repo(p);
	run(p, "cd repo; echo s > a.txt; git stash -q; echo staged > a.txt; git add a.txt; echo work > a.txt; echo u > u.txt;"
	       " git add -N u.txt; git rm -q --cached sub/b.txt");
	before = run(p, look);
	take_ready(p, "repo", 0);
	run(p, "echo z >> repo/a.txt");
	take_ready(p, "repo", 1);
	run(p, "cd repo; echo work > a.txt");
	assert_string_equal(run(p, look), before);
}

static void the_work_tree_counts_and_not_the_index(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	place_repo(p);
	run(p, "cd repo; echo staged > a.txt; git add a.txt; echo work > a.txt; git rm -q --cached sub/b.txt;"
	       " git update-index --assume-unchanged a.txt; echo hidden > a.txt");
	made = take_ready(p, "repo", 0);
	assert_string_equal(run(p, "git -C repo show %.*s:a.txt", STRF(made.ref)), "hidden");
	assert_string_equal(names(p, &made), ".gitignore a.txt sub/b.txt ");
}

static void ignored_files_are_left_out_unless_they_are_tracked(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	place_repo(p);
	run(p, "cd repo; echo 1 > forced.ign; git add -f forced.ign; echo 2 > not.ign; mkdir later; echo 3 > later/x");
	made = take_ready(p, "repo", 0);
	assert_string_equal(names(p, &made), ".gitignore a.txt forced.ign later/x sub/b.txt ");
	run(p, "cd repo; echo later/ >> .gitignore; echo 9 > forced.ign; git rm -q --cached a.txt; echo a.txt >> .gitignore");
	made = take_ready(p, "repo", 1);
	assert_string_equal(names(p, &made), ".gitignore forced.ign sub/b.txt ");
	assert_string_equal(run(p, "git -C repo show %.*s:forced.ign", STRF(made.ref)), "9");
	run(p, "cd repo; git add -f a.txt; git rm -qf --cached forced.ign");
	made = take_ready(p, "repo", 2);
	assert_string_equal(names(p, &made), ".gitignore a.txt sub/b.txt ");
}

static void odd_names_are_names(void **state)
{
	struct place *p = *state;
	struct checkpoint made;
	struct buf text;
	struct json_writer w;

	place_repo(p);
	take_ready(p, "repo", 0);
	run(p, "cd repo; for n in ' a b ' '-x' ':c' ':(top)d' '\"q\"' \"it's\" 'back\\slash' '*' '#h' 'tab\there' '\xc3\xa4' '\xff' '!n'; do"
	       " echo 1 > ./\"$n\"; done; touch \"$(printf 'new\\nline')\"; mkdir -- '-d'; echo 1 > ./-d/--all");
	made = take_ready(p, "repo", 1);
	assert_int_equal(made.files.total, 15);
	buf_init(&text, p->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	file_changes_write(&made.files, &w);
	assert_non_null(strstr(str_z(p->arena, buf_str(&text)),
		"{\"path\":\"\\\\xff\",\"kind\":\"added\",\"additions\":1,\"deletions\":0}"));
	assert_non_null(strstr(str_z(p->arena, buf_str(&text)), "\"new\\nline\""));
	run(p, "cd repo; rm -rf -- * ./-d ./-x");
	made = take_ready(p, "repo", 2);
	assert_string_equal(names(p, &made), ".gitignore ");
}

static void links_modes_and_changes_of_kind_are_kept(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	place_repo(p);
	take_ready(p, "repo", 0);
	run(p, "cd repo; chmod +x a.txt; rm -r sub; ln -s /etc/passwd sub; mkfifo pipe; ln -s gone dangling");
	made = take_ready(p, "repo", 1);
	assert_string_equal(run(p, "git -C repo ls-tree -r %.*s | cut -c 1-6,53- | tr '\\n' ' '",
				    STRF(made.ref)),
		"100644\t.gitignore 100755\ta.txt 120000\tdangling 120000\tsub ");
	run(p, "cd repo; rm sub a.txt; mkdir sub a.txt; echo 1 > sub/b.txt; echo 2 > a.txt/inner");
	made = take_ready(p, "repo", 2);
	assert_string_equal(names(p, &made), ".gitignore a.txt/inner dangling sub/b.txt ");
}

static void a_repository_without_a_commit_works(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	run(p, "git init -q -b main repo");
	made = take_ready(p, "repo", 0);
	assert_string_equal(names(p, &made), "");
	run(p, "echo 1 > repo/x");
	made = take_ready(p, "repo", 1);
	assert_string_equal(said(p, &made), "added x +1 -0 ");
}

static void submodules_are_their_commit_and_other_repositories_inside_are_left_out(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	place_repo(p);
	run(p, "git init -q -b main lib; cd lib; echo l > l; git add .; git commit -qm l; cd ../repo;"
	       " git -c protocol.file.allow=always submodule --quiet add ../lib mod; git init -q nested; echo n > nested/n;"
	       " git init -q -b main nested2; cd nested2; echo n > n; git add .; git commit -qm n");
	made = take_ready(p, "repo", 0);
	assert_string_equal(names(p, &made), ".gitignore .gitmodules a.txt mod sub/b.txt ");
	run(p, "cd repo/mod; echo more > more; git add .; git commit -qm more");
	made = take_ready(p, "repo", 1);
	assert_string_equal(said(p, &made), "modified mod +1 -1 ");
	/* The submodule is a work tree too. */
	made = take_ready(p, "repo/mod", 5);
	assert_string_equal(run(p, "git -C repo/mod ls-tree -r --name-only %.*s | tr '\\n' ' '",
				    STRF(made.ref)),
		"l more ");
}

static void what_is_no_work_tree_is_missing(void **state)
{
	struct place *p = *state;

	place_repo(p);
	run(p, "mkdir plain; git init -q --bare bare.git");
	assert_int_equal(take(p, "plain", 0).status, CHECKPOINT_MISSING);
	assert_int_equal(take(p, "nothing", 0).status, CHECKPOINT_MISSING);
	assert_int_equal(take(p, "bare.git", 0).status, CHECKPOINT_MISSING);
	assert_int_equal(take(p, "repo/.git", 0).status, CHECKPOINT_MISSING);
}

static void a_capture_that_fails_says_why(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	place_repo(p);
	run(p, "echo '[broken' > repo/.git/config");
	made = take(p, "repo", 0);
	assert_int_equal(made.status, CHECKPOINT_ERROR);
	assert_non_null(strstr(str_z(p->arena, made.problem), "config"));
}

static void a_damaged_private_index_is_made_anew(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	place_repo(p);
	take_ready(p, "repo", 0);
	run(p, "echo damage > repo/.git/dais/index; touch repo/.git/dais/index.lock; echo 1 > repo/n");
	made = take_ready(p, "repo", 1);
	assert_string_equal(said(p, &made), "added n +1 -0 ");
}

static void objects_that_were_pruned_are_written_again(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	place_repo(p);
	run(p, "echo untracked > repo/n");
	take_ready(p, "repo", 0);
	ok(p, checkpoint_forget(&p->call, p->repo, STR("scope-1"), &p->f));
	run(p, "git -C repo prune --expire=now");
	made = take_ready(p, "repo", 0);
	assert_string_equal(run(p, "git -C repo show %.*s:n", STRF(made.ref)), "untracked");
}

static void a_linked_work_tree_has_its_own_index_and_takes_it_along(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	place_repo(p);
	run(p, "git -C repo worktree add -q ../linked -b other; echo 1 > linked/n");
	made = take_ready(p, "linked", 0);
	assert_string_equal(names(p, &made), ".gitignore a.txt n sub/b.txt ");
	assert_true(exists(p, "repo/.git/worktrees/linked/dais/index"));
	run(p, "git -C repo worktree remove --force ../linked");
	assert_false(exists(p, "repo/.git/worktrees"));
	assert_string_equal(names(p, &made), ".gitignore a.txt n sub/b.txt ");
}

static void configuration_of_the_user_does_not_bend_it(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	place_repo(p);
	run(p, "cd repo; git config core.fsmonitor ./mon; git config core.splitIndex true; git config core.ignoreStat true;"
	       " git config core.safecrlf true; git config core.autocrlf true; git config commit.gpgSign true;"
	       " git config diff.external false; git config diff.renames copies; git config core.sparseCheckout true;"
	       " git config core.untrackedCache true; git config status.showUntrackedFiles no; git config color.ui always;"
	       " mkdir -p .git/info; echo /sub/ > .git/info/sparse-checkout; git config core.quotePath true;"
	       " printf '#!/bin/sh\\ntouch ran\\n' | tee mon > .git/hooks/reference-transaction; chmod +x mon .git/hooks/*");
	take_ready(p, "repo", 0);
	run(p, "cd repo; cp a.txt copy.txt; printf 'x\\r\\ny\\n' > mixed; echo 2 > a.txt");
	made = take_ready(p, "repo", 1);
	assert_string_equal(
		said(p, &made), "modified a.txt +1 -1 added copy.txt +1 -0 added mixed +2 -0 ");
	assert_false(exists(p, "repo/ran"));
	assert_string_equal(run(p, "find repo/.git -name 'sharedindex*' | wc -l"), "0");
}

static void variables_of_another_repository_do_not_lead_it_astray(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	place_repo(p);
	run(p, "git init -q other");
	setenv("GIT_DIR", str_z(p->arena, in(p, "other/.git")), 1);
	setenv("GIT_INDEX_FILE", str_z(p->arena, in(p, "other/index")), 1);
	made = take(p, "repo", 0);
	unsetenv("GIT_DIR");
	unsetenv("GIT_INDEX_FILE");
	assert_int_equal(made.status, CHECKPOINT_READY);
	assert_string_equal(names(p, &made), ".gitignore a.txt sub/b.txt ");
}

static void forgetting_a_scope_leaves_the_others(void **state)
{
	struct place *p = *state;
	struct checkpoint other;

	place_repo(p);
	take_ready(p, "repo", 0);
	take_ready(p, "repo", 1);
	checkpoint_capture(&p->call, p->repo, STR("scope-2"), 0, &other);
	ok(p, checkpoint_forget(&p->call, p->repo, STR("scope-1"), &p->f));
	assert_string_equal(run(p, "git -C repo for-each-ref --format='%%(refname)' refs/dais"),
		str_z(p->arena, other.ref));
	ok(p, checkpoint_forget(&p->call, p->repo, STR("scope-1"), &p->f));
}

static void *capture_one(void *arg)
{
	struct place *p = arg;
	struct arena *arena = arena_create();
	struct workspace_call call = {.arena = arena};
	int failed = 0;

	for (int i = 0; i < 5; i++) {
		struct checkpoint made;
		struct str scope = str_printf(arena, "%p", (void *)arena);

		checkpoint_capture(&call, p->repo, scope, i, &made);
		failed += made.status != CHECKPOINT_READY;
	}
	arena_destroy(arena);
	return (void *)(intptr_t)failed;
}

static void threads_may_share_a_checkout(void **state)
{
	struct place *p = *state;
	pthread_t threads[3];

	place_repo(p);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, capture_one, p), 0);
	for (int i = 0; i < 3; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_string_equal(run(p, "git -C repo for-each-ref refs/dais | wc -l"), "15");
	assert_string_equal(
		run(p, "git -C repo for-each-ref --format='%%(tree)' refs/dais | sort -u | wc -l"),
		"1");
}

static void a_stopped_capture_waits_for_nobody(void **state)
{
	struct place *p = *state;
	struct cancel *cancel = cancel_create();
	struct checkpoint made;

	place_repo(p);
	cancel_request(cancel);
	p->call.cancel = cancel;
	made = take(p, "repo", 0);
	p->call.cancel = NULL;
	assert_int_equal(made.status, CHECKPOINT_ERROR);
	cancel_destroy(cancel);
}

/* A filter of the user runs for each file that git reads to hash it. */
static void the_second_capture_reads_only_what_changed(void **state)
{
	struct place *p = *state;
	struct checkpoint made;

	run(p,
		"git init -q -b main repo; cd repo; for n in $(seq 40); do echo $n > $n; done; echo '* filter=count' > .gitattributes;"
		" git config filter.count.clean 'echo read >> %s/reads; cat'; touch -d '2001-01-01' * .gitattributes",
		p->dir);
	take_ready(p, "repo", 0);
	assert_true(atoi(run(p, "wc -l < reads")) >= 40);
	run(p, "rm reads; echo new > repo/7");
	made = take_ready(p, "repo", 1);
	assert_string_equal(said(p, &made), "modified 7 +1 -1 ");
	assert_true(atoi(run(p, "wc -l < reads")) <= 2);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(the_ref_is_named_by_scope_and_ordinal),
		STORY(it_lists_what_changed_since_the_checkpoint_before),
		STORY(index_head_stash_and_files_stay_as_they_were),
		STORY(the_work_tree_counts_and_not_the_index),
		STORY(ignored_files_are_left_out_unless_they_are_tracked),
		STORY(odd_names_are_names),
		STORY(links_modes_and_changes_of_kind_are_kept),
		STORY(a_repository_without_a_commit_works),
		STORY(submodules_are_their_commit_and_other_repositories_inside_are_left_out),
		STORY(what_is_no_work_tree_is_missing),
		STORY(a_capture_that_fails_says_why),
		STORY(a_damaged_private_index_is_made_anew),
		STORY(objects_that_were_pruned_are_written_again),
		STORY(a_linked_work_tree_has_its_own_index_and_takes_it_along),
		STORY(configuration_of_the_user_does_not_bend_it),
		STORY(variables_of_another_repository_do_not_lead_it_astray),
		STORY(forgetting_a_scope_leaves_the_others),
		STORY(threads_may_share_a_checkout),
		STORY(a_stopped_capture_waits_for_nobody),
		STORY(the_second_capture_reads_only_what_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
