/* Invariants of the thread half (threads/), as numbers of rows that break them. What the log says about each row is
 * compared by `dais doctor --rebuild` (threads/rebuild.h); this costs no walk through it.
 * Run status below 5 and status of work below 3: not at its end (threads/status.def). */
#include "store/private.h"

SQL(SQL_CHECK_ORDINALS,
	"SELECT count(*) FROM (SELECT count(*) AS c, max(ordinal) AS m FROM thread_run GROUP BY thread_n) AS t WHERE c <> m");
SQL(SQL_CHECK_RUN_END, "SELECT count(*) FROM thread_run WHERE (status >= 5) <> (completed_at IS NOT NULL)");
SQL(SQL_CHECK_BLOCKING,
	"SELECT count(*) FROM (SELECT thread_n FROM thread_run WHERE status IN (0, 2, 3, 4) AND status < 5 GROUP BY thread_n"
	" HAVING count(*) > 1) AS t");
SQL(SQL_CHECK_ROOT_NODE,
	"SELECT count(*) FROM thread_run r JOIN node d ON d.n = r.root_node_n"
	" WHERE d.kind <> 0 OR d.counts_for_run <> 1 OR (r.status >= 5) <> (d.status >= 3)");
SQL(SQL_CHECK_RESULT,
	"SELECT count(*) FROM subagent a WHERE a.origin = 1 AND (a.result IS NOT NULL) <> EXISTS (SELECT 1 FROM"
	" context_transfer t WHERE t.type = 4 AND t.source_n = a.child_n AND t.target_n = a.thread_n)");
SQL(SQL_CHECK_TASK_END, "SELECT count(*) FROM subagent WHERE origin = 1 AND (status >= 3) <> (result IS NOT NULL)");
SQL(SQL_CHECK_MESSAGE_RUN,
	"SELECT count(*) FROM message m LEFT JOIN thread_run r ON r.n = m.run_n"
	" WHERE m.run_n IS NOT NULL AND (r.n IS NULL OR r.thread_n <> m.thread_n)");
SQL(SQL_CHECK_TREE,
	"SELECT count(*) FROM thread c JOIN thread p ON p.n = c.parent_n WHERE c.root_n <> p.root_n OR c.depth <> p.depth + 1");
SQL(SQL_CHECK_TIMELINE,
	"SELECT count(*) FROM (SELECT count(*) AS c, max(ordinal) AS m FROM turn_item GROUP BY thread_n) AS t WHERE c <> m + 1");
SQL(SQL_CHECK_CHUNKS, "SELECT count(*) FROM item_chunk c JOIN turn_item i ON i.n = c.item_n WHERE i.text IS NOT NULL");
SQL(SQL_CHECK_START,
	"SELECT count(*) FROM thread_run r JOIN run_attempt a ON a.n = r.attempt_n WHERE r.status = 2 AND a.turn_n IS NULL"
	" AND NOT EXISTS (SELECT 1 FROM effect e WHERE e.run_n = r.n AND e.type = 0)");

static const struct {
	const char *sql;
	const char *text;
} checks[] = {
	{SQL_CHECK_ORDINALS, "threads whose runs are not numbered without gaps"},
	{SQL_CHECK_RUN_END, "runs whose status and time of end contradict each other"},
	{SQL_CHECK_BLOCKING, "threads with more than one active run"},
	{SQL_CHECK_ROOT_NODE, "runs whose root node is none, or does not end with them"},
	{SQL_CHECK_RESULT, "tasks whose result and its transfer do not go together"},
	{SQL_CHECK_TASK_END, "tasks whose status and result do not go together"},
	{SQL_CHECK_MESSAGE_RUN, "messages of a run of another thread, or of none that is there"},
	{SQL_CHECK_TREE, "threads whose root or depth contradicts their parent"},
	{SQL_CHECK_TIMELINE, "timelines with gaps"},
	{SQL_CHECK_CHUNKS, "pieces of text of items that are whole"},
	{SQL_CHECK_START, "starting runs that nothing will start"},
};

int check_threads(struct snapshot *s, void (*found)(void *context, struct str line), void *context, struct failure *f)
{
	int findings = 0;

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		int64_t rows = 0;

		if (query_int(s, &rows, f, checks[i].sql, "") < 0)
			return -1;
		if (rows == 0)
			continue;
		found(context, str_printf(s->arena, "%lld %s", (long long)rows, checks[i].text));
		findings++;
	}
	return findings;
}
