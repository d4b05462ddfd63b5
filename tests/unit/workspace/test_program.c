/* A setup script ends, in time or by force, with all that it started; what it said last is kept. */
#include "place.h"

#include <pthread.h>
#include <signal.h>

static int script(struct place *p, const char *text, int64_t timeout_ms, struct setup_result *out)
{
	struct setup_order order = {
		.path = in(p, "work"), .script = str_of(text), .timeout_ms = timeout_ms};

	return setup_run(&p->call, &order, out, &p->f);
}

static int up(void **state)
{
	place_open(state);
	run(*state, "mkdir work; mkfifo fifo");
	return 0;
}

static void it_runs_in_the_work_tree_and_keeps_what_was_said(void **state)
{
	struct place *p = *state;
	struct setup_result result;
	const struct str env[] = {STR("COLOUR=blue"), STR("HOME=/nowhere")};
	struct setup_order order = {.path = in(p, "work"),
		.env = env,
		.env_count = 2,
		.script = STR(
			"pwd; echo err >&2; echo $COLOUR $HOME; cat; test ! -t 0; echo done > made")};

	ok(p, setup_run(&p->call, &order, &result, &p->f));
	assert_str(result.tail, arena_printf(p->arena, "%s/work\nerr\nblue /nowhere\n", p->dir));
	assert_true(exists(p, "work/made"));
	assert_int_equal(result.exit_code, 0);
}

static void an_argument_list_meets_no_shell(void **state)
{
	struct place *p = *state;
	struct setup_result result;
	const struct str argv[] = {
		STR("printf"), STR("%s|"), STR("$HOME; exit 3"), STR(""), STR("a b")};
	struct setup_order order = {.path = in(p, "work"), .argv = argv, .argc = 5};

	ok(p, setup_run(&p->call, &order, &result, &p->f));
	assert_str(result.tail, "$HOME; exit 3||a b|");
}

static void secrets_of_the_server_are_not_passed_on(void **state)
{
	struct place *p = *state;
	struct setup_result result;

	setenv("DAIS_TOKEN", "s3cret", 1);
	ok(p, script(p, "env", 0, &result));
	unsetenv("DAIS_TOKEN");
	assert_null(memmem(result.tail.p, result.tail.n, "s3cret", 6));
}

static void a_script_that_fails_says_how(void **state)
{
	struct place *p = *state;
	struct setup_result result;
	const struct str absent[] = {STR("no-such-program")};
	struct setup_order order = {.path = in(p, "work"), .argv = absent, .argc = 1};

	assert_int_equal(script(p, "echo reason; exit 3", 0, &result), -1);
	assert_cause(p, "setup_failed");
	assert_int_equal(result.exit_code, 3);
	assert_str(result.tail, "reason\n");
	assert_int_equal(script(p, "kill -9 $$", 0, &result), -1);
	assert_cause(p, "setup_failed");
	assert_int_equal(result.signal, SIGKILL);
	assert_int_equal(setup_run(&p->call, &order, &result, &p->f), -1);
	assert_cause(p, "setup_failed");
	order.path = in(p, "gone");
	assert_int_equal(setup_run(&p->call, &order, &result, &p->f), -1);
	assert_cause(p, "setup_failed");
}

static void of_much_output_the_end_is_kept(void **state)
{
	struct place *p = *state;
	struct setup_result result;

	ok(p, script(p, "seq 200000; echo TAIL-7", 0, &result));
	assert_int_equal(result.tail.n, 16384);
	assert_true(str_ends(result.tail, STR("199999\n200000\nTAIL-7\n")));
}

static void at_its_deadline_all_that_it_started_goes(void **state)
{
	struct place *p = *state;
	struct setup_result result;
	FILE *fifo = fopen(str_z(p->arena, in(p, "fifo")), "r+e"), *reader;

	assert_non_null(fifo);
	reader = fopen(str_z(p->arena, in(p, "fifo")), "re");
	assert_int_equal(
		script(p,
			"exec 9> ../fifo; trap '' TERM; sleep 600 & (sleep 600; echo) & echo begun; wait; wait; sleep 600",
			200, &result),
		-1);
	fclose(fifo);
	assert_cause(p, "timed_out");
	assert_str(result.tail, "begun\n");
	assert_int_equal(fgetc(reader), EOF); /* all of them held the other end open */
	fclose(reader);
}

static void what_ignores_the_request_goes_when_the_script_has_gone(void **state)
{
	struct place *p = *state;
	struct setup_result result;
	FILE *fifo = fopen(str_z(p->arena, in(p, "fifo")), "r+e"), *reader;

	assert_non_null(fifo);
	reader = fopen(str_z(p->arena, in(p, "fifo")), "re");
	assert_int_equal(
		script(p, "exec 9> ../fifo; (trap '' TERM; sleep 600) & wait", 500, &result), -1);
	fclose(fifo);
	assert_cause(p, "timed_out");
	assert_int_equal(fgetc(reader), EOF);
	fclose(reader);
}

struct stopper {
	const char *fifo;
	struct cancel *cancel;
};

static void *stop_when_told(void *arg)
{
	struct stopper *stopper = arg;
	FILE *fifo = fopen(stopper->fifo, "re");

	fclose(fifo);
	cancel_request(stopper->cancel);
	return NULL;
}

static void another_thread_can_stop_it(void **state)
{
	struct place *p = *state;
	struct setup_result result;
	struct stopper stopper = {str_z(p->arena, in(p, "fifo")), cancel_create()};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, stop_when_told, &stopper), 0);
	p->call.cancel = stopper.cancel;
	assert_int_equal(script(p, "echo begun; echo > ../fifo; sleep 600", 0, &result), -1);
	pthread_join(thread, NULL);
	assert_cause(p, "cancelled");
	assert_str(result.tail, "begun\n");
	assert_true(cancel_is_requested(stopper.cancel));
	assert_int_equal(script(p, "echo again > made", 0, &result), -1);
	assert_cause(p, "cancelled");
	assert_false(exists(p, "work/made"));
	p->call.cancel = NULL;
	cancel_destroy(stopper.cancel);
	cancel_destroy(NULL);
}

static void a_script_may_leave_a_service_behind_and_is_not_waited_for(void **state)
{
	struct place *p = *state;
	struct setup_result result;
	pid_t left;

	ok(p, script(p, "sleep 600 & echo $!", 60000, &result));
	left = atoi(str_z(p->arena, result.tail));
	assert_int_equal(kill(left, 0), 0);
	kill(left, SIGKILL);
}

static void no_descriptor_of_ours_is_passed_on_or_left(void **state)
{
	struct place *p = *state;
	struct setup_result result;
	int before = dup(0), after;
	int leaky = dup(0); /* without close-on-exec */

	ok(p, script(p, "ls /proc/self/fd | wc -l", 0, &result));
	assert_true(atoi(str_z(p->arena, result.tail)) <= 4); /* 0, 1, 2, and that of ls */
	close(leaky);
	close(before);
	after = dup(0);
	assert_int_equal(after, before);
	close(after);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, up, place_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(it_runs_in_the_work_tree_and_keeps_what_was_said),
		STORY(an_argument_list_meets_no_shell),
		STORY(secrets_of_the_server_are_not_passed_on),
		STORY(a_script_that_fails_says_how),
		STORY(of_much_output_the_end_is_kept),
		STORY(at_its_deadline_all_that_it_started_goes),
		STORY(what_ignores_the_request_goes_when_the_script_has_gone),
		STORY(another_thread_can_stop_it),
		STORY(a_script_may_leave_a_service_behind_and_is_not_waited_for),
		STORY(no_descriptor_of_ours_is_passed_on_or_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
