/* An agent that did not hear the conversation is told of it. */
#include "stage.h"

#include "base/limits.h"

#include <stdlib.h>

struct telling {
	int64_t run;
	struct str out;
	struct arena *arena;
};

static int read_text(struct tx *tx, void *arg, struct failure *f)
{
	struct telling *telling = arg;
	struct thread_run_row run;
	struct thread_row thread;
	struct message_row message;

	if (NEED(&tx->snapshot, thread_run, telling->run, &run, f) != 0 || NEED(&tx->snapshot, thread, run.thread_n, &thread, f) != 0
		|| NEED(&tx->snapshot, message, run.message_n, &message, f) != 0)
		return -1;
	if (handoff_text(&tx->snapshot, &thread, &run, message.text, &telling->out, f) != 0)
		return -1;
	telling->out = str_dup(telling->arena, telling->out);
	return 0;
}

static const char *told(struct stage *st, int64_t run)
{
	struct telling telling = {.run = run, .arena = st->arena};

	assert_int_equal(in_tx(st, read_text, &telling), 0);
	return str_z(st->arena, telling.out);
}

/* The conversation that the next run would go on with is gone. */
static void lose_conversation(struct stage *st, int64_t thread)
{
	struct agent_out *out = hear(st);

	begin(st, say(st, thread, "what is broken?"));
	add_end(out, AGENT_FAILED, "the program lost its memory");
	out->events->is_broken = true;
	tell(st, session_of(st, thread), out);
}

static void a_conversation_that_goes_on_is_not_told_again(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);

	assert_string_equal(told(st, say(st, thread, "one")), "one");
	work(st, blocking(st, thread), "answer one");
	assert_string_equal(told(st, say(st, thread, "two")), "two");
}

static void a_new_conversation_begins_with_what_was_said(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	const char *text;

	work(st, say(st, thread, "add a parser\nfor the lexer"), "the parser is there");
	lose_conversation(st, thread);
	text = told(st, say(st, thread, "and now?"));
	assert_non_null(strstr(text, "User: add a parser for the lexer\nAgent: the parser is there\nUser: what is broken?\n"));
	assert_string_equal(text + strlen(text) - strlen("\n\nand now?"), "\n\nand now?");
}

static void long_entries_are_cut_and_old_ones_left_out(void **state)
{
	struct stage *st = *state;
	int64_t thread = make_thread(st);
	char *answer = calloc(1, 3000);
	const char *text;

	for (int i = 0; i < 1000; i++)
		memcpy(answer + strlen(answer), "\xc3\xa4", 2);
	for (int i = 0; i < 150; i++)
		work(st, say(st, thread, "go on"), answer);
	lose_conversation(st, thread);
	text = told(st, say(st, thread, "last"));
	assert_true(utf8_count(str_of(text)) < LIMIT_HANDOFF_CHARS + 400);
	assert_int_equal(utf8_check(str_of(text)), strlen(text));
	assert_non_null(strstr(text, "(older entries are left out"));
	assert_non_null(strstr(text, "\xc3\xa4\xe2\x80\xa6\n"));
	free(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_conversation_that_goes_on_is_not_told_again, stage_up, stage_down),
		cmocka_unit_test_setup_teardown(a_new_conversation_begins_with_what_was_said, stage_up, stage_down),
		cmocka_unit_test_setup_teardown(long_entries_are_cut_and_old_ones_left_out, stage_up, stage_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
