#include "plans.h"

#include "store/store.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

/* ---- what was used ---- */

#define SEEN_MAX 2000

static struct {
	pthread_mutex_t lock;
	char *texts[SEEN_MAX];
	size_t n;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void see(void *context, const char *sql)
{
	size_t i = 0;

	(void)context;
	(void)pthread_mutex_lock(&seen.lock);
	while (i < seen.n && strcmp(seen.texts[i], sql) != 0)
		i++;
	if (i == seen.n) {
		assert_true(seen.n < SEEN_MAX);
		seen.texts[seen.n++] = strdup(sql);
	}
	(void)pthread_mutex_unlock(&seen.lock);
}

void plans_watch(void)
{
	store_watch(see, NULL);
}

void plans_forget(void)
{
	while (seen.n > 0)
		free(seen.texts[--seen.n]);
}

void plans_dump(void)
{
	const char *path = getenv("DAIS_DUMP_SQL");
	FILE *out = path == NULL ? NULL : fopen(path, "ae");

	for (size_t i = 0; out != NULL && i < seen.n; i++)
		(void)fprintf(out, "%s\n", seen.texts[i]);
	if (out != NULL)
		assert_int_equal(fclose(out), 0);
}

static bool is_word(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
}

/* Does the statement say "TABLE ALIAS" or, where they are the same, TABLE? */
static bool names(const char *sql, const char *table, const char *alias, size_t alias_n)
{
	size_t n = strlen(table);

	if (n == alias_n && strncmp(table, alias, n) == 0)
		return true;
	for (const char *at = strstr(sql, table); at != NULL; at = strstr(at + 1, table))
		if (!is_word(at[-1]) && at[n] == ' ' && strncmp(at + n + 1, alias, alias_n) == 0 &&
			!is_word(at[n + 1 + alias_n]))
			return true;
	return false;
}

static bool is_large(const struct plan_rules *rules, const char *sql, const char *alias, size_t alias_n)
{
	for (size_t i = 0; rules->large[i] != NULL; i++)
		if (names(sql, rules->large[i], alias, alias_n))
			return true;
	return false;
}

/* Along an index, up to a limit, is how a page is read. */
static bool is_walk(const struct plan_rules *rules, const char *sql, const char *step)
{
	const char *alias = step + strlen("SCAN ");
	bool is_bounded = strstr(step, " INDEX ") != NULL && strstr(sql, " LIMIT ") != NULL;

	if (strncmp(step, "SCAN ", 5) != 0 || strstr(step, "VIRTUAL TABLE") != NULL)
		return false;
	for (size_t i = 0; rules->counts[i] != NULL; i++)
		if (strncmp(sql, rules->counts[i], strlen(rules->counts[i])) == 0)
			return false;
	return is_large(rules, sql, alias, strcspn(alias, " ")) && !is_bounded;
}

/* Rows of equal first keys alone are sorted where the plan says so. */
static bool is_sort(const struct plan_rules *rules, const char *sql, const char *step)
{
	if (strstr(step, "TEMP B-TREE") == NULL || strstr(step, "RIGHT PART") != NULL || strstr(step, "LAST TERM") != NULL)
		return false;
	for (size_t i = 0; rules->sorts[i].part != NULL; i++)
		if (strstr(sql, rules->sorts[i].part) != NULL)
			return false;
	return true;
}

static int judge(sqlite3 *db, const struct plan_rules *rules, const char *what, const char *sql)
{
	char *text = NULL;
	sqlite3_stmt *stmt;
	int faults = 0;

	assert_true(asprintf(&text, "EXPLAIN QUERY PLAN %s", sql) > 0);
	for (char *p = text; *p != '\0'; p++)
		*p = *p == '$' ? '?' : *p;
	if (sqlite3_prepare_v2(db, text, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sqlite3_errmsg(db), text);
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		const char *step = (const char *)sqlite3_column_text(stmt, 3);

		if (!is_walk(rules, sql, step) && !is_sort(rules, sql, step) && strstr(step, "AUTOMATIC") == NULL)
			continue;
		print_error("%s\n  %s\n  %s\n", what, step, sql);
		faults++;
	}
	(void)sqlite3_finalize(stmt);
	free(text);
	return faults;
}

int plans_judge(const char *database, const struct plan_rules *rules, const char *what)
{
	int faults = 0;
	sqlite3 *db;

	assert_int_equal(sqlite3_open_v2(database, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_true(seen.n > 0);
	for (size_t i = 0; i < seen.n; i++)
		faults += judge(db, rules, what, seen.texts[i]);
	(void)sqlite3_close(db);
	return faults;
}
