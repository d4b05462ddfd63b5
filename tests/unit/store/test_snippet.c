/* snippet_words() shows what snippet() of FTS5 would show. */
#include "store/analyse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

static int up(void **state)
{
	sqlite3 *handle;

	assert_int_equal(sqlite3_open(":memory:", &handle), SQLITE_OK);
	assert_int_equal(analyse_register(handle), SQLITE_OK);
	assert_int_equal(sqlite3_exec(handle,
				 "CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'porter unicode61 remove_diacritics 2')", NULL,
				 NULL, NULL),
		SQLITE_OK);
	*state = handle;
	return 0;
}

static int down(void **state)
{
	return sqlite3_close(*state);
}

static sqlite3_stmt *prepare(sqlite3 *handle, const char *sql, const char *text)
{
	sqlite3_stmt *stmt;

	assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_bind_text(stmt, 1, text, -1, SQLITE_TRANSIENT), SQLITE_OK);
	return stmt;
}

static void add(sqlite3 *handle, const char *text)
{
	sqlite3_stmt *stmt = prepare(handle, "INSERT INTO t (x) VALUES (?1)", text);

	assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
	(void)sqlite3_finalize(stmt);
}

/* How many rows match; all of them are compared. */
static int compare(sqlite3 *handle, const char *query)
{
	sqlite3_stmt *stmt = prepare(handle,
		"SELECT snippet(t, 0, '<mark>', '</mark>', '…', 32), snippet_words(?1, x) FROM t WHERE t MATCH ?1", query);
	int n = 0;

	for (; sqlite3_step(stmt) == SQLITE_ROW; n++)
		assert_string_equal(sqlite3_column_text(stmt, 1), sqlite3_column_text(stmt, 0));
	(void)sqlite3_finalize(stmt);
	return n;
}

static void words_of_every_kind(void **state)
{
	sqlite3 *handle = *state;
	char text[6000] = "";

	add(handle, "Reject a berth shorter than the hull.");
	add(handle, "naïve café, (don't) \"quote\" 38.101; the berths were rejected: CAFÉ");
	add(handle, "  a b a b a b a  ");
	for (int i = 0; i < 800; i++)
		(void)strcat(text, i == 700 ? "berth. " : i % 90 == 0 ? "a b. " : "hay ");
	add(handle, text);
	assert_int_equal(compare(handle, "\"berth\""), 3);
	assert_int_equal(compare(handle, "\"hull\" \"rejecting\""), 1);
	assert_int_equal(compare(handle, "\"cafe\""), 1);
	assert_int_equal(compare(handle, "\"don't\""), 1);
	assert_int_equal(compare(handle, "\"quote\"\"d\" \"38.101\""), 0);
	assert_int_equal(compare(handle, "\"quote\"\"38\""), 1);
	assert_int_equal(compare(handle, "\"\"\"quote\"\"\" \"38.101\" \"((\""), 1);
	assert_int_equal(compare(handle, "\"a b a\" \"b a b\""), 1);
	assert_int_equal(compare(handle, "\"a b\" \"berth\""), 1);
	assert_int_equal(compare(handle, "\"hay hay\""), 1);
}

static void texts_by_chance(void **state)
{
	static const char *const words[] = {"ka", "re", "mo", "ti", "lu", "sa", "ne", "bo", "di", "fe"};
	static const char *const ends[] = {" ", " ", " ", " ", " ", ". ", ": ", ".", "\n\n", ", "};
	sqlite3 *handle = *state;
	unsigned seed = 7;
	int found = 0;

	for (int i = 0; i < 200; i++) {
		char text[2000] = "";
		int length = rand_r(&seed) % 150;

		for (int k = 0; k < length; k++) {
			(void)strcat(text, rand_r(&seed) % 3 == 0 ? words[rand_r(&seed) % 10] : "hay");
			(void)strcat(text, ends[rand_r(&seed) % 10]);
		}
		add(handle, text);
	}
	for (int i = 0; i < 300; i++) {
		char query[100];
		const char *a = words[rand_r(&seed) % 10], *b = words[rand_r(&seed) % 10], *c = words[rand_r(&seed) % 10];

		(void)snprintf(query, sizeof(query), i % 3 == 0 ? "\"%s\"" : i % 3 == 1 ? "\"%s\" \"%s\"" : "\"%s hay\" \"%s\" \"%s\"",
			a, b, c);
		found += compare(handle, query);
	}
	assert_true(found > 10000);
}

static void a_text_without_the_words_has_none(void **state)
{
	sqlite3_stmt *stmt = prepare(*state, "SELECT snippet_words(?1, 'some hay'), snippet_words(?1, ''), snippet_words(?1, NULL),"
					     " snippet_words('', 'hay'), snippet_words('\"(\"', 'hay')",
		"\"needle\"");

	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	for (int i = 0; i < 5; i++)
		assert_int_equal(sqlite3_column_type(stmt, i), SQLITE_NULL);
	(void)sqlite3_finalize(stmt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(words_of_every_kind, up, down),
		cmocka_unit_test_setup_teardown(texts_by_chance, up, down),
		cmocka_unit_test_setup_teardown(a_text_without_the_words_has_none, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
