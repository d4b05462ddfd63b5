/* What must hold after every change of the thread engine, as counts of the rows that break it. */
#include "stage.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *what;
	const char *sql;
} invariants[] = {
	{"ordinals of runs that are not dense",
		"SELECT count(*) FROM (SELECT count(*) AS c, max(ordinal) AS m FROM thread_run GROUP BY thread_n) AS t WHERE c <> m"},
	{"threads with more than one blocking run",
		"SELECT count(*) FROM (SELECT thread_n FROM thread_run WHERE status IN (0, 2, 3, 4) GROUP BY thread_n"
		" HAVING count(*) > 1) AS t"},
	{"ended runs with an attempt or a root node that goes on",
		"SELECT count(*) FROM thread_run r JOIN run_attempt a ON a.n = r.attempt_n JOIN node d ON d.n = r.root_node_n"
		" WHERE r.status >= 5 AND (a.status < 3 OR d.status < 3)"},
	{"working runs whose root node has ended",
		"SELECT count(*) FROM thread_run r JOIN node d ON d.n = r.root_node_n WHERE r.status < 5 AND d.status >= 3"},
	{"ended runs with open items other than tasks",
		"SELECT count(*) FROM turn_item i JOIN thread_run r ON r.n = i.run_n WHERE r.status >= 5 AND i.status < 3"
		" AND (i.type <> 20 OR i.native_key IS NOT NULL) AND i.attempt_n = r.attempt_n AND i.updated_at <= r.completed_at"},
	{"tasks whose result and transfer do not go together",
		"SELECT count(*) FROM subagent a WHERE a.origin = 1 AND (a.result IS NOT NULL) <> EXISTS (SELECT 1 FROM"
		" context_transfer t WHERE t.type = 4 AND t.source_n = a.child_n AND t.target_n = a.thread_n)"},
	{"tasks whose status and result do not go together",
		"SELECT count(*) FROM subagent WHERE origin = 1 AND (status >= 3) <> (result IS NOT NULL)"},
	{"claimed tasks of cohorts without a delivery",
		"SELECT count(*) FROM subagent a JOIN thread_run c ON c.n = a.run_n WHERE a.delivery = 2 AND c.cohort_message_n IS NULL"},
	{"deliveries that are out for a run that has ended",
		"SELECT count(*) FROM thread_run c JOIN message m ON m.n = c.cohort_message_n JOIN thread_run w ON w.n = m.run_n"
		" WHERE w.status >= 5"},
	{"pending or claimed tasks of cohorts that are not open",
		"SELECT count(*) FROM subagent a JOIN thread_run c ON c.n = a.run_n WHERE a.delivery IN (1, 2) AND c.cohort <> 1"},
	{"pending tasks that no delivery will follow for",
		"SELECT count(*) FROM subagent a JOIN thread_run c ON c.n = a.run_n JOIN thread t ON t.n = a.thread_n"
		" WHERE a.delivery = 1 AND c.cohort_message_n IS NULL AND t.kind = 0"},
	{"ended tasks of an idle parent that nobody was told of",
		"SELECT count(*) FROM subagent a WHERE a.origin = 1 AND a.status >= 3 AND a.delivery = 0 AND NOT EXISTS"
		" (SELECT 1 FROM thread_run r WHERE r.thread_n = a.thread_n AND r.status IN (0, 2, 3, 4))"},
	{"wakes that wait and name no task",
		"SELECT count(*) FROM thread_run r WHERE r.is_wake = 1 AND r.status = 1 AND NOT EXISTS (SELECT 1 FROM thread_run c"
		" JOIN subagent a ON a.run_n = c.n AND a.delivery = 2 WHERE c.cohort_message_n = r.message_n)"},
	{"children whose work is done and that have no result",
		"SELECT count(*) FROM subagent a WHERE a.origin = 1 AND a.status < 3"
		" AND NOT EXISTS (SELECT 1 FROM thread_run r WHERE r.thread_n = a.child_n AND r.status < 5)"
		" AND NOT EXISTS (SELECT 1 FROM subagent g WHERE g.thread_n = a.child_n AND (g.status < 3 OR g.delivery IN (1, 2)))"
		" AND NOT EXISTS (SELECT 1 FROM provider_thread p WHERE p.thread_n = a.child_n AND p.background <> '[]')"},
	{"effects of runs that have ended, other than interrupts",
		"SELECT count(*) FROM effect e JOIN thread_run r ON r.n = e.run_n WHERE r.status >= 5 AND e.type <> 2"},
	{"starting runs that nothing will start",
		"SELECT count(*) FROM thread_run r JOIN run_attempt a ON a.n = r.attempt_n WHERE r.status = 2 AND a.turn_n IS NULL"
		" AND NOT EXISTS (SELECT 1 FROM effect e WHERE e.run_n = r.n AND e.type = 0)"},
	{"waiting runs that nothing will end",
		"SELECT count(*) FROM thread_run r WHERE r.status = 4 AND NOT EXISTS (SELECT 1 FROM effect e WHERE e.run_n = r.n AND"
		" e.type = 8)"},
	{"preparing runs that nothing will let go",
		"SELECT count(*) FROM thread_run r WHERE r.status = 0 AND NOT EXISTS (SELECT 1 FROM effect e WHERE e.run_n = r.n AND"
		" e.type IN (5, 6))"},
	{"starting runs of threads without a folder",
		"SELECT count(*) FROM thread_run r JOIN thread t ON t.n = r.thread_n WHERE r.status IN (2, 3) AND t.workspace <> 0"
		" AND t.worktree_path IS NULL"},
	{"pending requests of a thread without a live run",
		"SELECT count(*) FROM runtime_request q JOIN thread_run r ON r.n = q.run_n WHERE q.status = 0 AND r.status >= 5"},
};

/* $1 and $2: places in all and of a tree, 0 no limit. */
SQL(SQL_STUCK,
	"SELECT count(*) FROM thread_run r JOIN thread t ON t.n = r.thread_n WHERE r.status = 1 AND r.is_held = 0"
	" AND t.archived_at IS NULL AND t.deleted_at IS NULL"
	" AND NOT EXISTS (SELECT 1 FROM thread_run b WHERE b.thread_n = r.thread_n AND b.status IN (0, 2, 3, 4))"
	" AND NOT EXISTS (SELECT 1 FROM effect e WHERE e.thread_n = r.thread_n AND e.type IN (5, 6))"
	" AND ($1 = 0 OR $1 > (SELECT count(*) FROM thread_run b WHERE b.status IN (2, 3, 4)))"
	" AND ($2 = 0 OR $2 > (SELECT count(*) FROM thread_run b JOIN thread o ON o.n = b.thread_n"
	" WHERE b.status IN (2, 3, 4) AND o.root_n = t.root_n))");

static int64_t stuck_runs(struct snapshot *s, struct failure *f)
{
	int64_t rows = 0;

	if (places_of_project() != 0 || places_of_instance(STR("one")) != 0)
		return 0;
	return query_int(s, &rows, f, SQL_STUCK, "ii", places_runs(), places_of_batch()) < 0 ? -1 : rows;
}

int broken_invariants(struct snapshot *s)
{
	size_t n = sizeof(invariants) / sizeof(invariants[0]);
	struct failure f;
	int faults = 0;

	failure_init(&f, s->arena);
	for (size_t i = 0; i < n; i++) {
		int64_t rows = 0;

		if (query_int(s, &rows, &f, invariants[i].sql, "") < 0)
			rows = -1;
		if (rows == 0)
			continue;
		(void)fprintf(stderr, "%lld %s %.*s\n", (long long)rows, invariants[i].what, rows < 0 ? (int)f.message.n : 0, f.message.p);
		faults++;
	}
	if (stuck_runs(s, &f) != 0) {
		(void)fprintf(stderr, "runs that wait beside a free place\n");
		faults++;
	}
	return faults;
}

/* ---- what the events say ---- */

#define ROW(table, event) static const char json_of_##table[] = ""
#define INT(column) "-"
#define REF(column) "-"
#define TEXT(column) "-"
#define OPT(column) "-"
#define JSON(column) "j"
#define END(table) ;
#include "threads/row.def"

/* By table and column: j where JSON stands. */
static const char *const json_columns[] = {
#define ROW(table, event) json_of_##table,
#include "threads/row.def"
};

/* JSON as a value: blanks, and how a number is written, are not kept. */
static struct str normal(struct arena *arena, struct str text)
{
	struct json_error error;
	json_auto_t *value = json_read(text, &error);

	return value == NULL ? STR("not JSON") : json_compact(arena, value);
}

static void dump_value(struct snapshot *s, const struct query *q, int column, bool is_json, struct buf *out)
{
	if (col_is_null(q, column))
		buf_add_str(out, STR("null"));
	else
		buf_add_str(out, is_json ? normal(s->arena, col_view(q, column)) : col_view(q, column));
}

/* Rows as text, in order, one a line. */
static int dump_table(struct snapshot *s, enum row_table table, struct buf *out, struct failure *f)
{
	const char *const *names = row_columns(table, s->arena);
	AUTO(query_endp) struct query q = {0};
	struct buf sql;
	int columns = 0;
	int rc;

	buf_init(&sql, s->arena, SIZE_MAX);
	buf_add_str(&sql, STR("SELECT n"));
	for (; names[columns] != NULL; columns++)
		buf_printf(&sql, ", %s", names[columns]);
	buf_printf(&sql, " FROM %s ORDER BY n", row_table_name(table));
	if (query(s, &q, f, str_z(s->arena, buf_str(&sql)), "") != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		buf_printf(out, "%s", row_table_name(table));
		for (int i = 0; i <= columns; i++) {
			buf_printf(out, "|%s=", i == 0 ? "n" : names[i - 1]);
			dump_value(s, &q, i, i > 0 && json_columns[table][i - 1] == 'j', out);
		}
		buf_add_char(out, '\n');
	}
	return rc;
}

static int dump_chunks(struct snapshot *s, struct buf *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, "SELECT item_n, at, text FROM item_chunk ORDER BY item_n, at", "") != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		buf_printf(out, "item_chunk|%lld|%lld|", (long long)col_int(&q, 0), (long long)col_int(&q, 1));
		buf_add_str(out, col_view(&q, 2));
		buf_add_char(out, '\n');
	}
	return rc;
}

static int dump_all(struct snapshot *s, struct buf *out, struct failure *f)
{
	buf_init(out, s->arena, SIZE_MAX);
	for (int table = 0; table < ROW_TABLES; table++)
		if (dump_table(s, (enum row_table)table, out, f) != 0)
			return -1;
	return dump_chunks(s, out, f);
}

static enum row_table table_of_event(int64_t type)
{
	switch (type) {
#define ROW(table, event) \
	case EVENT_##event: \
		return ROW_##table;
#include "threads/row.def"
	default:
		return ROW_TABLES;
	}
}

static int replay_text(struct tx *tx, const json_t *data, struct failure *f)
{
	return tx_run(tx, f, "INSERT INTO item_chunk (item_n, at, bytes, text) VALUES ($1, $2, $3, $4)", "iiis",
		       json_integer_value(json_object_get(data, "itemN")), json_integer_value(json_object_get(data, "at")),
		       (int64_t)json_member_str(data, "text").n, json_member_str(data, "text")) < 0
		? -1
		: 0;
}

static int replay_one(struct tx *tx, int64_t type, struct str text, struct failure *f)
{
	json_auto_t *data = json_loadb(text.p, text.n, JSON_ALLOW_NUL, NULL); /* our own: no limits */
	enum row_table table = table_of_event(type);

	if (type == EVENT_TEXT_APPENDED)
		return replay_text(tx, data, f);
	if (table == ROW_TABLES)
		return 0;
	if (row_replay(tx, table, data, f) != 0)
		return -1;
	if (table == ROW_turn_item && json_object_get(data, "text") != NULL
		&& tx_run(tx, f, "DELETE FROM item_chunk WHERE item_n = $1", "i", json_integer_value(json_object_get(data, "n"))) < 0)
		return -1;
	return 0;
}

static int replay_all(struct tx *tx, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(&tx->snapshot, &q, f, "SELECT type, data FROM event WHERE type >= 40 ORDER BY seq", "") != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1)
		if (replay_one(tx, col_int(&q, 0), col_str(&q, 1), f) != 0)
			return -1;
	return rc;
}

static const char *const emptied[] = {"DELETE FROM item_chunk", "DELETE FROM session_line", "DELETE FROM session_state"};

struct rebuilding {
	struct buf before, after;
};

static int rebuild(struct tx *tx, void *arg, struct failure *f)
{
	struct rebuilding *r = arg;

	if (dump_all(&tx->snapshot, &r->before, f) != 0)
		return -1;
	(void)tx_run(tx, f, "PRAGMA defer_foreign_keys = ON", "");
	for (size_t i = 0; i < sizeof(emptied) / sizeof(emptied[0]); i++)
		if (tx_run(tx, f, emptied[i], "") < 0)
			return -1;
	for (int table = ROW_TABLES - 1; table >= 0; table--)
		if (tx_run(tx, f, str_z(tx->snapshot.arena,
				   str_printf(tx->snapshot.arena, "DELETE FROM %s", row_table_name((enum row_table)table))), "") < 0)
			return -1;
	return replay_all(tx, f) != 0 || dump_all(&tx->snapshot, &r->after, f) != 0 ? -1 : 0;
}

int rebuild_differences(struct stage *st)
{
	struct rebuilding r = {0};
	const char *was, *is;

	if (in_tx(st, rebuild, &r) != 0) {
		(void)fprintf(stderr, "rebuild: %.*s\n", STRF(st->why.message));
		return 1;
	}
	was = str_z(st->arena, buf_str(&r.before));
	is = str_z(st->arena, buf_str(&r.after));
	while (*was != '\0' && *is != '\0') {
		size_t n = strcspn(was, "\n");

		if (strncmp(was, is, n + 1) != 0) {
			(void)fprintf(stderr, "rebuilt otherwise:\n %.*s\n %.*s\n", (int)n, was, (int)strcspn(is, "\n"), is);
			return 1;
		}
		was += n + 1;
		is += n + 1;
	}
	return *was == *is ? 0 : 1;
}
