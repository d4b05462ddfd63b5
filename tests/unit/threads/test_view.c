/* What readers are shown, and what the comparison of log and tables finds. */
#include "stage.h"
#include "threads/rebuild.h"
#include "threads/view.h"

static struct snapshot look_at(struct stage *st, struct failure *f)
{
	struct snapshot s;

	failure_init(f, st->arena);
	assert_int_equal(snapshot_begin(st->store, st->arena, &s, f), 0);
	return s;
}

static void a_run_is_found_by_its_id_however_long_that_of_its_thread_is(void **state)
{
	struct stage *st = *state;
	static const char *const commands[] = {"command:1", "command:a b%/~", NULL};
	int64_t parent = make_thread(st);

	begin(st, say(st, parent, "go"));
	for (size_t i = 0; i < 3; i++) {
		struct delegation in = {.task = STR("work")};
		struct subagent_row task;
		struct thread_row child;
		struct failure f;
		struct snapshot s;
		int64_t n = 0, thread_n = 0;
		struct str id;

		in.command_id = commands[i] != NULL ? str_of(commands[i]) : str_printf(st->arena, "command:%0200d", 7);
		assert_int_equal(try_delegate(st, in, blocking(st, parent), &task), 0);
		child = thread_row(st, task.child_n);
		id = ident_run(st->arena, child.id, 1);
		s = look_at(st, &f);
		assert_int_equal(view_find_run(&s, id, &n, &thread_n, &f), 1);
		assert_int_equal(n, task.child_run_n);
		assert_int_equal(thread_n, task.child_n);
		assert_int_equal(view_find_run(&s, ident_run(st->arena, child.id, 2), &n, &thread_n, &f), 0);
		assert_int_equal(view_find_thread(&s, child.id, &n, &thread_n, &f), 1);
		assert_int_equal(view_find_task(&s, task.id, &n, &thread_n, &f), 1);
		assert_int_equal(thread_n, parent);
		snapshot_end(&s);
	}
}

static void nothing_of_a_deleted_thread_is_found(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	struct thread_row row = thread_row(st, thread);
	struct snapshot s;
	struct failure f;
	int64_t n, thread_n;

	work(st, say(st, thread, "go"), "done");
	set_deleted(st, thread);
	s = look_at(st, &f);
	assert_int_equal(view_find_thread(&s, row.id, &n, &thread_n, &f), 0);
	assert_int_equal(view_find_run(&s, ident_run(st->arena, row.id, 1), &n, &thread_n, &f), 0);
	snapshot_end(&s);
}

struct findings {
	struct str first;
	int count;
};

static void found(void *context, struct str line)
{
	struct findings *findings = context;

	if (findings->count++ == 0)
		findings->first = line;
}

static struct findings compare(struct stage *st)
{
	struct findings findings = {0};
	struct rebuilt rebuilt;
	struct failure f;
	struct snapshot s = look_at(st, &f);
	int told = threads_rebuild_check(&s, found, &findings, &rebuilt, &f);

	assert_int_equal(told, findings.count);
	assert_true(rebuilt.rows > 0);
	snapshot_end(&s);
	return findings;
}

static int put_run(struct tx *tx, void *arg, struct failure *f)
{
	struct thread_run_row *run = arg;

	return PUT(tx, thread_run, run, run->thread_n, f);
}

static void a_run_that_came_back_from_its_end_is_found(void **state)
{
	struct stage *st = *state;
	int64_t run = say(st, make_thread(st), "go");
	struct thread_run_row was, again;
	struct findings findings;

	work(st, run, "done");
	assert_int_equal(compare(st).count, 0);
	again = was = run_row(st, run);
	again.status = RUN_RUNNING;
	again.completed_at = 0;
	assert_int_equal(in_tx(st, put_run, &again), 0);
	findings = compare(st);
	assert_int_equal(findings.count, 1);
	assert_non_null(memmem(findings.first.p, findings.first.n, "was completed is running", 24));
	assert_int_equal(in_tx(st, put_run, &was), 0);
}

static int retitle(struct tx *tx, void *arg, struct failure *f)
{
	return tx_run(tx, f, "UPDATE thread SET title = $1 WHERE n = $2", "si", STR("Other"), *(const int64_t *)arg) < 0 ? -1 : 0;
}

static int put_title_back(struct tx *tx, void *arg, struct failure *f)
{
	return tx_run(tx, f, "UPDATE thread SET title = $1 WHERE n = $2", "si", STR("Thread"), *(const int64_t *)arg) < 0 ? -1 : 0;
}

static void a_row_that_no_event_made_so_is_found(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	struct findings findings;

	assert_int_equal(in_tx(st, retitle, &thread), 0);
	findings = compare(st);
	assert_int_equal(findings.count, 1);
	assert_non_null(memmem(findings.first.p, findings.first.n, "title", 5));
	assert_int_equal(in_tx(st, put_title_back, &thread), 0);
	assert_int_equal(compare(st).count, 0);
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, stage_up, stage_down)
	const struct CMUnitTest tests[] = {
		STORY(a_run_is_found_by_its_id_however_long_that_of_its_thread_is),
		STORY(nothing_of_a_deleted_thread_is_found),
		STORY(a_run_that_came_back_from_its_end_is_found),
		STORY(a_row_that_no_event_made_so_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
