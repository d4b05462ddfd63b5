/* Rows as threads/row.def describes them, against the database and the log. */
#include "stage.h"

static void rows_have_the_columns_of_their_tables(void **state)
{
	struct stage *st = *state;

	for (int table = 0; table < ROW_TABLES; table++) {
		const char *const *names = row_columns((enum row_table)table, st->arena);
		const char *name = row_table_name((enum row_table)table);
		int n = 0;

		assert_string_equal(text(st, "SELECT name FROM pragma_table_info('%s') WHERE cid = 0", name), "n");
		for (; names[n] != NULL; n++)
			assert_string_equal(text(st, "SELECT name FROM pragma_table_info('%s') WHERE cid = %d", name, n + 1), names[n]);
		assert_int_equal(count(st, "SELECT count(*) FROM pragma_table_info('%s')", name), n + 1);
	}
}

#define ROW(table, event) static const char kinds_##table[] = ""
#define INT(column) "i"
#define REF(column) "r"
#define TEXT(column) "t"
#define OPT(column) "o"
#define JSON(column) "o"
#define END(table) ;
#include "threads/row.def"

static const char *const kinds[] = {
#define ROW(table, event) kinds_##table,
#include "threads/row.def"
};

static void columns_have_the_types_that_the_rows_say(void **state)
{
	struct stage *st = *state;

	for (int table = 0; table < ROW_TABLES; table++) {
		const char *name = row_table_name((enum row_table)table);

		for (int i = 0; kinds[table][i] != '\0'; i++) {
			char kind = kinds[table][i];

			assert_string_equal(text(st, "SELECT type FROM pragma_table_info('%s') WHERE cid = %d", name, i + 1),
				kind == 'i' || kind == 'r' ? "INTEGER" : "TEXT");
			if (count(st, "SELECT \"notnull\" FROM pragma_table_info('%s') WHERE cid = %d", name, i + 1) == 1)
				assert_int_not_equal(kind, 'r');
			else
				assert_true(kind == 'r' || kind == 'o');
		}
	}
}

static int put(struct tx *tx, void *arg, struct failure *f)
{
	return PUT(tx, thread, arg, 0, f);
}

static void a_row_comes_back_as_it_was_put(void **state)
{
	struct stage *st = *state;
	struct thread_row row = {.id = STR("t"), .project_n = st->project, .title = STR("\"ü\"\n"), .instance_id = STR("i"),
		.options = STR("{\"a\":[1,\"\\n\"]}"), .model = STR(""), .namespace = STR("n"), .branch = STR_NONE, .archived_at = 5};
	struct thread_row back;

	assert_int_equal(in_tx(st, put, &row), 0);
	back = thread_row(st, row.n);
	assert_str(back.title, "\"ü\"\n");
	assert_str(back.options, "{\"a\":[1,\"\\n\"]}");
	assert_non_null(back.model.p);
	assert_null(back.branch.p);
	assert_int_equal(back.archived_at, 5);
	assert_int_equal(count(st, "SELECT count(*) FROM thread WHERE parent_n IS NULL AND branch IS NULL"), 1);
}

static int meddle(struct tx *tx, void *arg, struct failure *f)
{
	return tx_run(tx, f, arg, "") < 0 ? -1 : 0;
}

/* Every test ends with a comparison of the tables with what the log says: it would see this. */
static void what_did_not_go_through_the_log_is_seen(void **state)
{
	struct stage *st = *state;
	int64_t run = say(st, make_thread(st), "x");
	struct agent_out *out = hear(st);
	static char title[] = "UPDATE thread SET title = 'other'";
	static char chunk[] = "UPDATE item_chunk SET text = 'other'";

	begin(st, run);
	add_item(out, ITEM_TEXT, "m", AGENT_RUNNING, "half", NULL);
	tell(st, session_of(st, run_row(st, run).thread_n), out);
	assert_int_equal(rebuild_differences(st), 0);
	assert_int_equal(in_tx(st, meddle, title), 0);
	assert_int_not_equal(rebuild_differences(st), 0);
	assert_int_equal(in_tx(st, meddle, chunk), 0);
	assert_int_not_equal(rebuild_differences(st), 0);
	assert_string_equal(text(st, "SELECT title FROM thread"), "Thread");
}

static void json_of_any_look_survives_a_rebuild(void **state)
{
	struct stage *st = *state;
	int64_t run = say(st, make_thread(st), "x");
	struct agent_out *out = hear(st);

	begin(st, run);
	add_item(out, ITEM_TOOL, "t", AGENT_COMPLETED, NULL, "{ \"a\": \"caf\\u00e9\\/\", \"b\":1.50, \"c\":1e3, \"b2\":0.1}");
	tell(st, session_of(st, run_row(st, run).thread_n), out);
	assert_int_equal(rebuild_differences(st), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_up, stage_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rows_have_the_columns_of_their_tables),
		TEST(columns_have_the_types_that_the_rows_say),
		TEST(a_row_comes_back_as_it_was_put),
		TEST(what_did_not_go_through_the_log_is_seen),
		TEST(json_of_any_look_survives_a_rebuild),
	};

	return cmocka_run_group_tests_name("threads rows", tests, NULL, NULL);
}
