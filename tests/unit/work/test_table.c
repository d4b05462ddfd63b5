/* The transition table, every state and every trigger. */
#include "engine.h"

#include "work/table.h"

/* behaviour 3.1 */
static void every_cell_of_the_table_is_as_written(void **state)
{
	static const enum role roles[] = {ROLE_QUEUE, ROLE_WORK, ROLE_REVIEW, ROLE_BLOCKED, ROLE_TERMINAL};
	/* start, complete, block, hold, resume, cancel, reopen; b the blocked role, p the previous one */
	static const char *const expected[] = {"wtbb-t-", "ttbb-t-", "ttbb-t-", "----pt-", "------q"};

	(void)state;
	for (size_t from = 0; from < 5; from++) {
		for (int trigger = TRIGGER_START; trigger < TRIGGER_CASCADE; trigger++) {
			enum role to = ROLE_BLOCKED;
			bool is_allowed =
				table_target(roles[from], (enum trigger)trigger, false, ROLE_REVIEW, &to);
			char cell = expected[from][trigger];

			assert_int_equal(is_allowed, cell != '-');
			if (cell != '-')
				assert_int_equal(to, cell == 'w' ? ROLE_WORK
						: cell == 't' ? ROLE_TERMINAL
						: cell == 'b' ? ROLE_BLOCKED
						: cell == 'p' ? ROLE_REVIEW
							      : ROLE_QUEUE);
		}
	}
}

static void a_review_phase_comes_between_work_and_the_end(void **state)
{
	enum role to;

	(void)state;
	assert_true(table_target(ROLE_WORK, TRIGGER_START, true, ROLE_QUEUE, &to));
	assert_int_equal(to, ROLE_REVIEW);
}

static void damaged_data_leaves_cancel_only(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	enum role to;

	(void)state;
	assert_false(table_target(ROLE_BLOCKED, TRIGGER_RESUME, false, ROLE_TERMINAL, &to));
	assert_true(str_eq(table_allowed(arena, ROLE_BLOCKED, ROLE_TERMINAL), STR("[\"cancel\"]")));
	assert_true(str_eq(table_allowed(arena, ROLE_BLOCKED, ROLE_WORK), STR("[\"resume\",\"cancel\"]")));
	assert_true(str_eq(table_allowed(arena, ROLE_QUEUE, ROLE_QUEUE),
		STR("[\"start\",\"complete\",\"block\",\"hold\",\"cancel\"]")));
	assert_true(str_eq(table_allowed(arena, ROLE_TERMINAL, ROLE_QUEUE), STR("[\"reopen\"]")));
}

static void cascades_move_what_they_may_and_no_more(void **state)
{
	static const enum role roles[] = {ROLE_QUEUE, ROLE_WORK, ROLE_REVIEW, ROLE_BLOCKED, ROLE_TERMINAL};
	/* t, w: goes there; h: held by its role; -: nothing to tell */
	static const char *const expected[] = {"tthh-", "w----", "----w"};

	(void)state;
	for (int cascade = CASCADE_COMPLETE; cascade <= CASCADE_REOPEN; cascade++) {
		for (size_t from = 0; from < 5; from++) {
			enum role to = ROLE_BLOCKED;
			char cell = expected[cascade - CASCADE_COMPLETE][from];
			enum cascade_verdict verdict = table_cascade(roles[from], (enum cascade)cascade, &to);

			assert_int_equal(verdict,
				cell == '-' ? CASCADE_SILENT : cell == 'h' ? CASCADE_HELD : CASCADE_GOES);
			if (cell == 't' || cell == 'w')
				assert_int_equal(to, cell == 't' ? ROLE_TERMINAL : ROLE_WORK);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cell_of_the_table_is_as_written),
		cmocka_unit_test(a_review_phase_comes_between_work_and_the_end),
		cmocka_unit_test(damaged_data_leaves_cancel_only),
		cmocka_unit_test(cascades_move_what_they_may_and_no_more),
	};

	return cmocka_run_group_tests_name("work table", tests, NULL, NULL);
}
