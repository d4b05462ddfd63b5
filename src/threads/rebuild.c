/* The log of threads against their tables. */
#include "threads/rebuild.h"

#include "threads/row.h"
#include "threads/status.h"

#include <stdlib.h>

#define MAX_FINDINGS 100 /* more of them say nothing more */

/* One event of a row. */
struct trace {
	int64_t n, seq;
	int32_t table, status; /* status: of runs */
};

struct rebuilding {
	struct snapshot *s;
	void (*found)(void *context, struct str line);
	void *context;
	struct rebuilt *out;
	struct trace *traces; /* owned */
	size_t count, room;
	int findings;
};

static void find(struct rebuilding *r, struct str line)
{
	if (r->findings++ < MAX_FINDINGS)
		r->found(r->context, line);
}

static void keep(struct rebuilding *r, enum row_table table, int64_t seq, const json_t *data)
{
	if (r->count == r->room) {
		r->room = r->room * 2 + 1024;
		r->traces = realloc(r->traces, r->room * sizeof(*r->traces));
		if (r->traces == NULL)
			abort();
	}
	r->traces[r->count++] = (struct trace){.n = json_integer_value(json_object_get(data, "n")),
		.seq = seq,
		.table = (int32_t)table,
		.status = (int32_t)json_integer_value(json_object_get(data, "status"))};
}

SQL(SQL_STREAMED,
	"SELECT c.text FROM turn_item i LEFT JOIN item_chunk c ON c.item_n = i.n AND c.at = $1 WHERE i.n = $2 AND i.text IS NULL");

/* Text of an item that is whole stands in its row. */
static int check_text(struct rebuilding *r, const json_t *data, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int64_t item_n = json_integer_value(json_object_get(data, "itemN"));
	int64_t at = json_integer_value(json_object_get(data, "at"));
	int rc;

	if (query(r->s, &q, f, SQL_STREAMED, "ii", at, item_n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1 && !str_eq(col_view(&q, 0), json_member_str(data, "text")))
		find(r, str_printf(r->s->arena, "the text of turn_item %lld at %lld is not what was appended", (long long)item_n,
				(long long)at));
	return rc < 0 ? -1 : 0;
}

SQL(SQL_LOG, "SELECT seq, type, data FROM event WHERE type BETWEEN $1 AND $2 ORDER BY seq");

static int read_log(struct rebuilding *r, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(r->s, &q, f, SQL_LOG, "ii", (int64_t)EVENT_PROJECT_UPDATED, (int64_t)EVENT_CHECKPOINT_UPDATED) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct json_error error;
		json_auto_t *data = json_read(col_view(&q, 2), &error);
		enum row_table table = row_table_of(col_int(&q, 1));

		r->out->events++;
		if (table != ROW_TABLES)
			keep(r, table, col_int(&q, 0), data);
		else if (check_text(r, data, f) != 0)
			return -1;
	}
	return rc;
}

static int cmp_int(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int cmp_trace(const void *one, const void *two)
{
	const struct trace *a = one, *b = two;

	if (a->table != b->table)
		return cmp_int(a->table, b->table);
	return a->n != b->n ? cmp_int(a->n, b->n) : cmp_int(a->seq, b->seq);
}

static bool is_same_row(const struct trace *a, const struct trace *b)
{
	return a->table == b->table && a->n == b->n;
}

static void check_order(struct rebuilding *r, const struct trace *before, const struct trace *after)
{
	bool is_rolled_back = after->status == RUN_ROLLED_BACK
		&& (before->status == RUN_COMPLETED || before->status == RUN_INTERRUPTED || before->status == RUN_FAILED);

	if (after->table == ROW_thread_run && run_is_terminal(before->status) && after->status != before->status && !is_rolled_back)
		find(r, str_printf(r->s->arena, "event %lld: a run that was %s is %s", (long long)after->seq,
				run_status_name(before->status), run_status_name(after->status)));
}

SQL(SQL_EVENT_DATA, "SELECT data FROM event WHERE seq = $1");

static int check_row(struct rebuilding *r, const struct trace *newest, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	const char *name = row_table_name((enum row_table)newest->table);
	struct json_error error;
	json_auto_t *data = NULL;
	const char *column;
	int rc;

	r->out->rows++;
	if (query(r->s, &q, f, SQL_EVENT_DATA, "i", newest->seq) != 0 || query_next(&q, f) != 1)
		return -1;
	data = json_read(col_view(&q, 0), &error);
	rc = row_differs(r->s, (enum row_table)newest->table, data, &column, f);
	if (rc == 1)
		find(r, column == NULL ? str_printf(r->s->arena, "%s %lld is in the log only", name, (long long)newest->n)
				       : str_printf(r->s->arena, "%s %lld: %s is not what event %lld says", name,
						 (long long)newest->n, column, (long long)newest->seq));
	return rc < 0 ? -1 : 0;
}

static int check_rows(struct rebuilding *r, struct failure *f)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct trace *at = &r->traces[i];

		if (i > 0 && is_same_row(at, at - 1))
			check_order(r, at - 1, at);
		if ((i + 1 == r->count || !is_same_row(at, at + 1)) && check_row(r, at, f) != 0)
			return -1;
	}
	return 0;
}

static int count_rows(struct rebuilding *r, struct failure *f)
{
	int64_t all = 0;

	for (int table = 0; table < ROW_TABLES; table++) {
		const char *sql = arena_printf(r->s->arena, "SELECT count(*) FROM %s", row_table_name((enum row_table)table));
		int64_t rows = 0;

		if (query_int(r->s, &rows, f, sql, "") < 0)
			return -1;
		all += rows;
	}
	r->out->older = all > r->out->rows ? all - r->out->rows : 0;
	return 0;
}

SQL(SQL_FIRST_EVENT, "SELECT min(seq) FROM event");

int threads_rebuild_check(struct snapshot *s, void (*found)(void *context, struct str line), void *context,
	struct rebuilt *out, struct failure *f)
{
	struct rebuilding r = {.s = s, .found = found, .context = context, .out = out};
	int64_t first = 0;
	int rc;

	*out = (struct rebuilt){0};
	snapshot_patient(s);
	rc = read_log(&r, f);
	if (rc == 0 && r.count > 0)
		qsort(r.traces, r.count, sizeof(*r.traces), cmp_trace);
	if (rc == 0)
		rc = check_rows(&r, f);
	free(r.traces);
	if (rc != 0 || count_rows(&r, f) != 0 || query_int(s, &first, f, SQL_FIRST_EVENT, "") < 0)
		return -1;
	if (out->older > 0 && first == EVENT_FIRST_SEQ + 1)
		find(&r, str_printf(s->arena, "%lld rows are not in the log", (long long)out->older));
	return r.findings;
}
