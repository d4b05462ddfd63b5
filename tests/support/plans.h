/* tests/support/plans.h - how statements reach their rows, asked of SQLite by EXPLAIN QUERY PLAN.
 *
 * With DAIS_DUMP_SQL=FILE every statement that was used is written there, one a line: tests/tools/test_sql.py reads them
 * as PostgreSQL does. */
#ifndef DAIS_TESTS_PLANS_H
#define DAIS_TESTS_PLANS_H

struct plan_rules {
	const char *const *large; /* tables that grow with what is kept; NULL at the end */
	const struct plan_sort {
		const char *part;  /* of a statement that may sort; NULL at the end */
		const char *bound; /* of what it sorts */
	} *sorts;
	const char *const *counts; /* beginnings of statements that count where few rows can match; NULL at the end */
};

/* Before a store is opened: remember each statement that is used. */
void plans_watch(void);
void plans_forget(void);
void plans_dump(void);
/* Statements used since plans_forget() that walk a large table or sort without a bound, each printed. */
int plans_judge(const char *database, const struct plan_rules *rules, const char *what);

#endif
