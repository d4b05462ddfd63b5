/* What `dais doctor` asks of a store: facts, and the invariants that no line of code may break. */
#include "store/private.h"

#include <sys/stat.h>

int store_facts(struct store *store, struct store_facts *out, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct stat st;
	struct snapshot snapshot;

	*out = (struct store_facts){
		.free_disk_bytes = file_free_bytes(store->path),
		.commits = atomic_load(&store->commits),
		.calls = atomic_load(&store->calls),
		.wal_frames = atomic_load(&store->wal_frames),
		.busy_us = atomic_load(&store->busy_us),
		.is_full = atomic_load(&store->is_full),
	};
	if (stat(store->path, &st) == 0)
		out->database_bytes = st.st_size;
	if (stat(arena_printf(arena, "%s-wal", store->path), &st) == 0)
		out->wal_bytes = st.st_size;
	out->queue_depth = (int64_t)atomic_load(&store->queue_length);
	if (snapshot_begin(store, arena, &snapshot, f) != 0)
		return -1;
	if (query_int(&snapshot, &out->schema_version, f, "PRAGMA user_version", "") < 0 ||
		query_int(&snapshot, &out->page_bytes, f, "PRAGMA page_size", "") < 0) {
		snapshot_end(&snapshot);
		return -1;
	}
	snapshot_end(&snapshot);
	return 0;
}

/* Each returns the number of rows that break the invariant. */
SQL(SQL_CHECK_TERMINAL_CLAIM, "SELECT count(*) FROM item WHERE role = 3 AND claim_by IS NOT NULL");
SQL(SQL_CHECK_TERMINAL_LEASE,
	"SELECT count(*) FROM lease l JOIN item i ON i.n = l.holder_n WHERE i.role <> 1");
SQL(SQL_CHECK_PLACE,
	"SELECT count(*) FROM item c JOIN item p ON p.n = c.parent_n"
	" WHERE c.root_n <> p.root_n OR c.depth <> p.depth + 1");
SQL(SQL_CHECK_ROOT, "SELECT count(*) FROM item WHERE parent_n IS NULL AND (root_n <> n OR depth <> 0)");
SQL(SQL_CHECK_ONE_CLAIM,
	"SELECT count(*) FROM (SELECT claim_by FROM item WHERE claim_by IS NOT NULL AND claim_until > $1"
	" GROUP BY claim_by HAVING count(*) > 1) AS twice");
SQL(SQL_CHECK_CHILD_TALLY,
	"SELECT count(*) FROM (SELECT parent_n, count(*) AS actual FROM item WHERE parent_n IS NOT NULL"
	" GROUP BY parent_n) AS counted LEFT JOIN child_tally t ON t.item_n = counted.parent_n"
	" WHERE t.item_n IS NULL OR t.queue + t.work + t.review + t.blocked + t.terminal <> counted.actual");
SQL(SQL_CHECK_ROOT_TALLY,
	"SELECT count(*) FROM (SELECT root_n, count(*) AS actual FROM item GROUP BY root_n) AS counted"
	" LEFT JOIN root_tally t ON t.root_n = counted.root_n"
	" WHERE t.root_n IS NULL OR t.queue + t.work + t.review + t.blocked + t.terminal <> counted.actual");
SQL(SQL_CHECK_TEXT,
	"SELECT count(*) FROM item i LEFT JOIN item_text t ON t.n = i.n WHERE t.n IS NULL");
SQL(SQL_CHECK_MUTUAL,
	"SELECT count(*) FROM dep a JOIN dep b ON b.from_n = a.to_n AND b.to_n = a.from_n"
	" WHERE a.type = 0 AND b.type = 0");
/* Each transition of an item that is still there is the newest of it, or the next one leads to it. */
SQL(SQL_CHECK_CHAIN,
	"SELECT count(*) FROM event e JOIN item i ON i.n = e.item_n AND i.id = e.entity_id WHERE e.type = 5"
	" AND (i.moved_seq IS NULL OR i.moved_seq <> e.seq)"
	" AND e.seq NOT IN (SELECT prev_seq FROM event WHERE prev_seq IS NOT NULL)");

static const struct {
	const char *sql;
	const char *text;
	bool takes_now;
} checks[] = {
	{SQL_CHECK_TERMINAL_CLAIM, "terminal items with a claim", false},
	{SQL_CHECK_TERMINAL_LEASE, "resource leases of items that are not in work", false},
	{SQL_CHECK_PLACE, "items whose root or depth contradicts their parent", false},
	{SQL_CHECK_ROOT, "roots that are not their own root", false},
	{SQL_CHECK_ONE_CLAIM, "principals with more than one live claim", true},
	{SQL_CHECK_CHILD_TALLY, "parents whose child counts are wrong", false},
	{SQL_CHECK_ROOT_TALLY, "projects whose counts are wrong", false},
	{SQL_CHECK_TEXT, "items without text", false},
	{SQL_CHECK_CHAIN, "transitions that the history of their item does not reach", false},
	{SQL_CHECK_MUTUAL, "pairs of items that block each other", false},
};

int store_check(struct snapshot *s, void (*found)(void *context, struct str line), void *context,
	struct failure *f)
{
	int findings;
	int more;

	db_deadline(s->db, 0); /* every page is read, however long that takes: nobody else waits for it */
	findings = db_integrity(s->db, s->arena, found, context, f);
	if (findings < 0)
		return -1;
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		int64_t rows = 0;

		if (query_int(s, &rows, f, checks[i].sql, checks[i].takes_now ? "i" : "", s->now) < 0)
			return -1;
		if (rows == 0)
			continue;
		found(context, str_printf(s->arena, "%lld %s", (long long)rows, checks[i].text));
		findings++;
	}
	more = check_threads(s, found, context, f);
	return more < 0 ? -1 : findings + more;
}

static int check_search(const char *path, struct arena *arena, void (*found)(void *context, struct str line),
	void *context, struct failure *f)
{
	struct db *db;
	enum outcome outcome;
	int findings = -1;

	if (db_open(path, DB_READ, &db, f) != 0)
		return -1;
	outcome = db_exec(db, "PRAGMA query_only = OFF; BEGIN IMMEDIATE");
	if (outcome != DB_OK)
		(void)db_fail(db, outcome, "check the search index", f);
	else
		findings = db_check_search(db, arena, found, context, f);
	(void)db_exec(db, "ROLLBACK"); /* nothing was written */
	db_close(db);
	return findings;
}

int store_check_search(struct store *store, struct arena *arena, void (*found)(void *context, struct str line),
	void *context, struct failure *f)
{
	struct store_lock *lock = NULL;
	int findings;

	if (store->lock == NULL && file_lock(store->path, &lock, f) != 0)
		return -1;
	findings = check_search(store->path, arena, found, context, f);
	file_unlock(lock);
	return findings;
}
