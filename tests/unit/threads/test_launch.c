/* Threads with a folder of their own, from the launch to the first run; and what a run leaves in its folder. */
#include "stage.h"

#include "threads/worktrees.h"

#include <stdlib.h>

struct launching {
	int64_t thread, run;
	const char *text;
};

static int launch_one(struct tx *tx, void *arg, struct failure *f)
{
	struct launching *l = arg;
	struct dispatch message = {.thread_n = l->thread, .mode = DISPATCH_PREPARE, .text = str_of(l->text)};
	struct dispatched out = {0};
	struct thread_row thread;

	if (NEED(&tx->snapshot, thread, l->thread, &thread, f) != 0
		|| (l->text != NULL && message_dispatch(tx, &message, &out, f) != 0))
		return -1;
	l->run = out.run_n;
	return preparation_begin(tx, &thread, out.run_n, STR("{}"), f);
}

/* A thread that needs a work tree; its run, 0 without a text. */
static int64_t launch(struct stage *st, const char *text, int64_t *run)
{
	struct launching l = {.thread = make_thread_as(st, (struct thread_row){.workspace = WORKSPACE_WORKTREE}), .text = text};

	assert_int_equal(in_tx(st, launch_one, &l), 0);
	if (run != NULL)
		*run = l.run;
	return l.thread;
}

static int step_one(struct tx *tx, void *arg, struct failure *f)
{
	return preparation_step(tx, arg, f);
}

static void step(struct stage *st, int64_t thread, int64_t run, int64_t effect, struct prepared in)
{
	in.thread_n = thread;
	in.run_n = run;
	in.effect_n = effect;
	assert_int_equal(in_tx(st, step_one, &in), 0);
}

static int64_t work_of(struct stage *st, int64_t thread)
{
	return count(st, "SELECT coalesce(max(n), 0) FROM effect WHERE thread_n = %lld AND type IN (5, 6)", (long long)thread);
}

static int cut_one(struct tx *tx, void *arg, struct failure *f)
{
	(void)arg;
	return preparations_cut(tx, f);
}

static const struct prepared made = {.path = {"/made", 5}, .branch = {"b", 1}};
static const struct prepared lost = {.failure = {"{\"class\":\"validation_error\",\"message\":\"no\"}", 43}};

static void a_run_starts_when_its_folder_is_there_and_before_what_was_said_meanwhile(void **state)
{
	struct stage *st = *state;
	int64_t run, next, thread = launch(st, "first", &run);

	next = say(st, thread, "second");
	assert_run(st, run, RUN_PREPARING);
	assert_run(st, next, RUN_QUEUED);
	step(st, thread, run, work_of(st, thread), made);
	assert_run(st, run, RUN_STARTING);
	assert_run(st, next, RUN_QUEUED);
	assert_str(thread_row(st, thread).worktree_path, "/made");
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE type = 0 AND run_n = %lld", (long long)run), 1);
	work(st, run, "done");
	work(st, next, "done");
}

static void a_run_that_is_prepared_holds_no_place_and_waits_for_one_afterwards(void **state)
{
	struct stage *st = *state;
	int64_t other, run, thread;

	places_set(1, 0, 0);
	thread = launch(st, "x", &run);
	other = say(st, make_thread(st), "y");
	assert_run(st, other, RUN_STARTING);
	step(st, thread, run, work_of(st, thread), made);
	assert_run(st, run, RUN_QUEUED);
	work(st, other, "done");
	assert_run(st, run, RUN_STARTING);
	work(st, run, "done");
}

static void without_its_folder_a_thread_never_works_elsewhere(void **state)
{
	struct stage *st = *state;
	struct dispatched out;
	int64_t run, next, thread = launch(st, "first", &run);

	next = say(st, thread, "second");
	step(st, thread, run, work_of(st, thread), lost);
	assert_run(st, run, RUN_FAILED);
	assert_run(st, next, RUN_FAILED);
	assert_int_equal(try_dispatch(st, (struct dispatch){.thread_n = thread, .mode = DISPATCH_QUEUE, .text = STR("third")}, &out), -1);
	assert_int_equal(st->why.code, FAIL_THREAD_NOT_SENDABLE);
	assert_int_equal(count(st, "SELECT count(*) FROM effect"), 0);
}

static void a_folder_that_came_too_late_is_bound_and_nothing_starts(void **state)
{
	struct stage *st = *state;
	int64_t run, effect, thread = launch(st, "first", &run);

	effect = work_of(st, thread);
	assert_int_equal(try_interrupt(st, run), 0);
	assert_run(st, run, RUN_INTERRUPTED);
	step(st, thread, run, effect, made);
	assert_run(st, run, RUN_INTERRUPTED);
	assert_str(thread_row(st, thread).worktree_path, "/made");
	assert_int_equal(count(st, "SELECT count(*) FROM effect"), 0);
}

static void a_start_of_the_server_cancels_what_was_prepared(void **state)
{
	struct stage *st = *state;
	int64_t run, thread = launch(st, "x", &run), silent = launch(st, NULL, NULL);

	assert_int_equal(in_tx(st, cut_one, NULL), 0);
	assert_run(st, run, RUN_CANCELLED);
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE type = 15 AND thread_n IN (%lld, %lld)", (long long)thread,
			(long long)silent), 2);
	assert_int_equal(count(st, "SELECT count(*) FROM turn_item WHERE type = 21 AND status < 3"), 0);
}

/* ---- checkpoints ---- */

static void a_run_waits_for_its_checkpoint_and_takes_no_interrupt_then(void **state)
{
	struct stage *st = *state;
	int64_t run = say(st, make_thread(st), "x");

	st->waits = true;
	work(st, run, "done");
	assert_run(st, run, RUN_WAITING);
	assert_int_equal(try_interrupt(st, run), -1);
	assert_int_equal(st->why.code, FAIL_THREAD_NOT_INTERRUPTIBLE);
	capture_all(st);
	assert_run(st, run, RUN_COMPLETED);
	assert_int_not_equal(run_row(st, run).checkpoint_n, 0);
}

static int read_only_one(struct tx *tx, void *arg, struct failure *f)
{
	struct thread_row thread;

	if (NEED(&tx->snapshot, thread, *(int64_t *)arg, &thread, f) != 0)
		return -1;
	thread.runtime_mode = RUNTIME_READ_ONLY;
	return PUT(tx, thread, &thread, thread.n, f);
}

static int64_t run_between(struct stage *st, int mode, const char *before, const char *after)
{
	static const struct file_change changed = {.path = {"a.c", 3}, .kind = "modified", .additions = 1};
	int64_t thread = make_thread(st), run;
	struct captured in = {.digest = str_of(before)};

	if (mode == RUNTIME_READ_ONLY)
		assert_int_equal(in_tx(st, read_only_one, &thread), 0);
	run = say(st, thread, "look");
	assert_int_equal(try_capture(st, run, in), 0);
	st->waits = true;
	work(st, run, "looked");
	in.ordinal = 1;
	in.digest = str_of(after);
	in.checkpoint.files = (struct file_changes){&changed, 1, 1};
	assert_int_equal(try_capture(st, run, in), 0);
	return run;
}

static void a_run_that_may_only_read_fails_when_its_folder_was_changed(void **state)
{
	struct stage *st = *state;
	int64_t run = run_between(st, RUNTIME_READ_ONLY, "one", "two");

	assert_run(st, run, RUN_FAILED);
	assert_non_null(strstr(str_z(st->arena, run_row(st, run).failure), "modified a.c"));
	assert_run(st, run_between(st, RUNTIME_READ_ONLY, "one", "one"), RUN_COMPLETED);
	assert_run(st, run_between(st, RUNTIME_FULL_ACCESS, "one", "two"), RUN_COMPLETED);
}

/* ---- cleaning up ---- */

static int root_one(struct tx *tx, void *arg, struct failure *f)
{
	struct stage *st = arg;
	struct project_row project;

	if (NEED(&tx->snapshot, project, st->project, &project, f) != 0)
		return -1;
	project.workspace_root = str_printf(tx->snapshot.arena, "%s/repository", st->dir);
	return PUT(tx, project, &project, 0, f);
}

static void make_repository(struct stage *st)
{
	const char *script = arena_printf(st->arena,
		"git init -q -b main %s/repository && cd %s/repository && git -c user.name=t -c user.email=t@example.invalid commit -q"
		" --allow-empty -m first", st->dir, st->dir);

	assert_int_equal(system(script), 0);
	assert_int_equal(in_tx(st, root_one, st), 0);
}

static struct kept_worktree only_worktree(struct stage *st)
{
	struct kept_worktree *trees;
	struct snapshot s;
	struct failure f;
	size_t n;

	failure_init(&f, st->arena);
	assert_int_equal(snapshot_begin(st->store, st->arena, &s, &f), 0);
	assert_int_equal(worktrees_list(&s, &trees, &n, &f), 0);
	snapshot_end(&s);
	assert_true(n <= 1);
	return n == 1 ? trees[0] : (struct kept_worktree){0};
}

static void a_finished_work_tree_goes_when_nobody_works_there_and_nothing_is_lost_unseen(void **state)
{
	struct stage *st = *state;
	struct workspace_call call = {.arena = st->arena};
	struct worktree_order order = {.dir = str_printf(st->arena, "%s/trees", st->dir), .thread_id = STR("thread:x"),
		.base = STR("main"), .branch = STR("work")};
	struct worktree tree;
	struct kept_worktree kept;
	struct losses losses;
	struct failure f;
	int64_t run, thread;

	failure_init(&f, st->arena);
	make_repository(st);
	order.root = str_printf(st->arena, "%s/repository", st->dir);
	assert_int_equal(worktree_create(&call, &order, &tree, &f), 0);
	thread = launch(st, "x", &run);
	step(st, thread, run, work_of(st, thread), (struct prepared){.path = tree.path, .branch = tree.branch});
	kept = only_worktree(st);
	assert_true(kept.is_busy && str_eq(kept.path, tree.path));
	assert_int_equal(kept_worktree_remove(&call, &kept, STR_NONE, &f), -1);
	work(st, run, "done");
	assert_int_equal(system(arena_printf(st->arena, "echo precious > %.*s/notes", STRF(tree.path))), 0);
	kept = only_worktree(st);
	assert_false(kept.is_busy);
	assert_int_equal(kept_worktree_remove(&call, &kept, STR_NONE, &f), -1);
	assert_int_equal(worktree_losses(&call, kept.path, &losses, &f), 0);
	assert_int_equal(losses.total, 1);
	assert_int_equal(kept_worktree_remove(&call, &kept, losses.token, &f), 0);
	assert_int_equal(only_worktree(st).thread_n, 0);
}

static void the_refs_of_a_thread_go_with_it(void **state)
{
	struct stage *st = *state;
	struct workspace_call call = {.arena = st->arena};
	struct captured in = {.ordinal = 0};
	struct thread_run_row row;
	struct kept_scope *scopes;
	size_t scope_count;
	struct snapshot s;
	struct failure f;
	int64_t thread = make_thread(st), run;
	const char *refs = arena_printf(st->arena, "test $(git -C %s/repository for-each-ref refs/dais | wc -l) = ", st->dir);

	failure_init(&f, st->arena);
	make_repository(st);
	run = say(st, thread, "x");
	row = run_row(st, run);
	in.cwd = str_printf(st->arena, "%s/repository", st->dir);
	assert_int_equal(snapshot_begin(st->store, st->arena, &s, &f), 0);
	checkpoint_capture(&call, in.cwd, checkpoint_scope_id(&s, &row, &f), 0, &in.checkpoint);
	snapshot_end(&s);
	assert_int_equal(in.checkpoint.status, CHECKPOINT_READY);
	assert_int_equal(try_capture(st, run, in), 0);
	assert_int_equal(system(arena_printf(st->arena, "%s1", refs)), 0);
	assert_int_equal(snapshot_begin(st->store, st->arena, &s, &f), 0);
	assert_int_equal(kept_scopes_list(&s, thread, &scopes, &scope_count, &f), 0);
	assert_int_equal(kept_scopes_forget(&call, scopes, scope_count, &f), 0);
	snapshot_end(&s);
	assert_int_equal(system(arena_printf(st->arena, "%s0", refs)), 0);
	work(st, run, "done");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_run_starts_when_its_folder_is_there_and_before_what_was_said_meanwhile, stage_up, stage_down),
		cmocka_unit_test_setup_teardown(a_run_that_is_prepared_holds_no_place_and_waits_for_one_afterwards, stage_up, stage_down),
		cmocka_unit_test_setup_teardown(without_its_folder_a_thread_never_works_elsewhere, stage_up, stage_down),
		cmocka_unit_test_setup_teardown(a_folder_that_came_too_late_is_bound_and_nothing_starts, stage_up, stage_down),
		cmocka_unit_test_setup_teardown(a_start_of_the_server_cancels_what_was_prepared, stage_up, stage_down),
		cmocka_unit_test_setup_teardown(a_run_waits_for_its_checkpoint_and_takes_no_interrupt_then, stage_up, stage_down),
		cmocka_unit_test_setup_teardown(a_run_that_may_only_read_fails_when_its_folder_was_changed, stage_up, stage_down),
		cmocka_unit_test_setup_teardown(a_finished_work_tree_goes_when_nobody_works_there_and_nothing_is_lost_unseen, stage_up, stage_down),
		cmocka_unit_test_setup_teardown(the_refs_of_a_thread_go_with_it, stage_up, stage_down),
	};

	return cmocka_run_group_tests_name("threads launch", tests, NULL, NULL);
}
