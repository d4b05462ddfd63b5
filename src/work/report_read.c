/* The board: open runs, their reports, decisions that wait. */
#include "work/report.h"

#include "base/limits.h"
#include "work/filter.h"
#include "work/note_gate.h"

#define BOARD_DEFAULT 20

/* A seat sees its own run; the rest is for those who manage runs. */
static int seat_check(struct call *call, int64_t run_n, struct failure *f)
{
	int64_t own = call->caller->seat.run_n;

	return own == 0 || own == run_n ? 0 : caller_need(call->caller, CAP_MANAGE_RUNS, f);
}

static int root_filter(struct snapshot *s, struct call *call, const struct arg_str *root, struct sql *sql,
	struct failure *f)
{
	struct item item;

	filter_scope_sql(call->caller, "r.root_n", sql);
	if (!root->set)
		return 0;
	if (item_find(s, call, root->v, STR("rootId"), &item, f) != 0)
		return -1;
	sql_add(sql, " AND r.root_n = ");
	sql_int(sql, item.n);
	return 0;
}

/* ---- what a run's scope looks like ---- */

SQL(SQL_SCOPE_CHILDREN, "SELECT n, role FROM item WHERE parent_n = $1"); /* by item_children */

int scope_tally(struct snapshot *s, int64_t root_n, int64_t scope_n, struct tally *out, bool *out_is_cut,
	struct failure *f)
{
	int64_t *queue;
	size_t count = 1;

	*out_is_cut = false;
	if (scope_n == 0)
		return tally_root(s, root_n, out, f);
	*out = (struct tally){{0}};
	queue = ARENA_ARRAY(s->arena, int64_t, LIMIT_SCOPE_ITEMS + 1);
	queue[0] = scope_n;
	for (size_t at = 0; at < count; at++) {
		AUTO(query_endp) struct query q = {0};
		int rc;

		if (query(s, &q, f, SQL_SCOPE_CHILDREN, "i", queue[at]) != 0)
			return -1;
		while ((rc = query_next(&q, f)) == 1) {
			if (count > LIMIT_SCOPE_ITEMS) {
				*out_is_cut = true;
				return 0;
			}
			queue[count++] = col_int(&q, 0);
			out->by_role[tally_index((enum role)col_int(&q, 1))]++;
		}
		if (rc < 0)
			return -1;
	}
	return 0;
}

SQL(SQL_ACTIVE_ITEMS, /* by item_ready */
	"SELECT n FROM item WHERE root_n = $1 AND role = $2 AND root_n <> n AND role <> 3 LIMIT $3");

/* 1 when a required note of the item's phase is not filled. */
static int is_stalled(struct snapshot *s, struct call *call, const struct item *item, struct failure *f)
{
	const struct rules_note **unfilled;
	struct note_rows rows;
	struct schema schema;

	if (item_schema(s, call, item, &schema, f) != 0 || note_rows_load(s, item, &schema, &rows, f) != 0)
		return -1;
	unfilled = ARENA_ARRAY(s->arena, const struct rules_note *, schema.note_count + 1);
	return notes_unfilled(&schema, &rows, item->role, unfilled) > 0;
}

/* Active items of the scope that wait for a note; of the first LIMIT_BOARD_ACTIVE. */
static int count_stalled(struct snapshot *s, struct call *call, const struct run *run, int64_t *out, struct failure *f)
{
	for (enum role role = ROLE_WORK; role <= ROLE_REVIEW; role++) {
		AUTO(query_endp) struct query q = {0};
		int rc;

		if (query(s, &q, f, SQL_ACTIVE_ITEMS, "iii", run->root_n, (int64_t)role,
			    (int64_t)LIMIT_BOARD_ACTIVE) != 0)
			return -1;
		while ((rc = query_next(&q, f)) == 1) {
			struct item item;
			int stalled = 1;

			if (run->scope_n != 0)
				stalled = item_is_below(s, col_int(&q, 0), run->scope_n, f);
			if (stalled == 1)
				stalled = item_load_ref(s, col_int(&q, 0), &item, f);
			if (stalled == 1)
				stalled = is_stalled(s, call, &item, f);
			if (stalled < 0)
				return -1;
			*out += stalled;
		}
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* ---- board ---- */

SQL(SQL_LIVE_SEATS,
	"SELECT count(*) FROM run_seat WHERE run_n = $1 AND revoked_at IS NULL AND expires_at > $2");
SQL(SQL_OPEN_DECISIONS,
	"SELECT count(*) FROM run_report WHERE run_n = $1 AND needs_decision = 1 AND decided_at IS NULL");

static int write_scope(struct json_writer *w, struct snapshot *s, struct call *call, const struct run *run,
	struct failure *f)
{
	struct item scope;

	if (run->scope_n == 0)
		return 0;
	if (item_load(s, run->scope_n, &scope, f) < 0)
		return -1;
	jw_id(w, call, "scopeItemId", scope.id);
	return 0;
}

static int write_board_row(struct json_writer *w, struct snapshot *s, struct call *call, const struct run *run,
	struct failure *f)
{
	struct tally children;
	int64_t seats;
	int64_t decisions;
	int64_t stalled = 0;

	if (query_int(s, &seats, f, SQL_LIVE_SEATS, "ii", run->n, s->now) < 0 ||
		query_int(s, &decisions, f, SQL_OPEN_DECISIONS, "i", run->n) < 0 ||
		tally_children(s, run->scope_n != 0 ? run->scope_n : run->root_n, &children, f) != 0 ||
		count_stalled(s, call, run, &stalled, f) != 0)
		return -1;
	jw_object_begin(w);
	jw_id_of(w, call, "runId", KIND_RUN, run->id);
	jw_kstr(w, "title", run->title);
	jw_ktext(w, "kind", word_text(run_kind_words, run->kind));
	if (write_scope(w, s, call, run, f) != 0)
		return -1;
	jw_ktext(w, "state", "open");
	jw_ktime(w, "openedAt", run->opened_at);
	jw_kint(w, "seats", seats);
	tally_write(w, "childCounts", &children);
	jw_kint(w, "stalled", stalled);
	jw_kint(w, "openDecisions", decisions);
	jw_ktime(w, "lastActivityAt", run->last_activity_at);
	jw_object_end(w);
	return 0;
}

static int count_of(struct snapshot *s, const struct sql *sql, int64_t *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};

	if (query_sql(s, &q, f, sql) != 0 || query_next(&q, f) != 1)
		return -1;
	*out = col_int(&q, 0);
	return 0;
}

static struct str text_of(struct call *call, int64_t number)
{
	return str_printf(call->arena, "%lld", (long long)number);
}

int report_board(struct snapshot *s, struct call *call, const struct report_board_args *in,
	struct json_writer *out, struct failure *f)
{
	int64_t limit = in->limit.set ? in->limit.v : BOARD_DEFAULT;
	AUTO(query_endp) struct query q = {0};
	struct cursor from = {0};
	struct str last[2] = {STR_NONE, STR_NONE};
	struct sql count;
	struct sql sql;
	int64_t returned = 0;
	int64_t total;
	int rc;

	if (seat_check(call, 0, f) != 0 || (in->cursor.set && cursor_read(call, in->cursor.v, &from, f) != 0))
		return -1;
	sql_init(&count, call->arena);
	sql_add(&count, "SELECT count(*) FROM run r WHERE r.is_open = 1");
	sql_init(&sql, call->arena);
	sql_add(&sql, "SELECT r.n FROM run r WHERE r.is_open = 1");
	if (root_filter(s, call, &in->root, &count, f) != 0 || root_filter(s, call, &in->root, &sql, f) != 0 ||
		count_of(s, &count, &total, f) != 0)
		return -1;
	if (from.n == 2) {
		sql_add(&sql, " AND (r.last_activity_at > ");
		sql_int(&sql, cursor_int(&from, 0));
		sql_add(&sql, " OR (r.last_activity_at = ");
		sql_int(&sql, cursor_int(&from, 0));
		sql_add(&sql, " AND r.n > ");
		sql_int(&sql, cursor_int(&from, 1));
		sql_add(&sql, "))");
	}
	sql_add(&sql, " ORDER BY r.last_activity_at, r.n LIMIT ");
	sql_int(&sql, limit + 1);
	if (query_sql(s, &q, f, &sql) != 0)
		return -1;
	jw_karray(out, "runs");
	while ((rc = query_next(&q, f)) == 1 && returned < limit) {
		struct run run;

		if (run_load(s, col_int(&q, 0), &run, f) != 1 || write_board_row(out, s, call, &run, f) != 0)
			return -1;
		last[0] = text_of(call, run.last_activity_at);
		last[1] = text_of(call, run.n);
		returned++;
	}
	if (rc < 0)
		return -1;
	jw_array_end(out);
	call_page(call, returned, total, rc == 1 ? cursor_text(call, last, 2) : STR_NONE);
	return 0;
}

/* ---- run ---- */

SQL(SQL_RUN_SEATS,
	"SELECT id, seat, label, expires_at, revoked_at FROM run_seat WHERE run_n = $1 ORDER BY n DESC");

static int write_seats(struct json_writer *w, struct snapshot *s, struct call *call, const struct run *run,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_RUN_SEATS, "i", run->n) != 0)
		return -1;
	jw_karray(w, "seats");
	while ((rc = query_next(&q, f)) == 1) {
		jw_object_begin(w);
		jw_id_of(w, call, "seatId", KIND_SEAT, col_id(&q, 0));
		jw_kstr(w, "seat", col_str(&q, 1));
		jw_kstr_opt(w, "label", col_str(&q, 2));
		jw_ktime(w, "expiresAt", col_int(&q, 3));
		if (!col_is_null(&q, 4))
			jw_ktime(w, "revokedAt", col_int(&q, 4));
		jw_object_end(w);
	}
	jw_array_end(w);
	return rc;
}

static int write_run(struct json_writer *w, struct snapshot *s, struct call *call, const struct run *run,
	struct failure *f)
{
	struct item root;

	if (item_load(s, run->root_n, &root, f) != 1)
		return -1;
	jw_kobject(w, "run");
	jw_id_of(w, call, "runId", KIND_RUN, run->id);
	jw_id(w, call, "rootId", root.id);
	jw_kstr(w, "title", run->title);
	jw_ktext(w, "kind", word_text(run_kind_words, run->kind));
	if (write_scope(w, s, call, run, f) != 0)
		return -1;
	jw_ktext(w, "state", run->is_open ? "open" : "closed");
	jw_kint_opt(w, "pinnedConfigVersion", run->pinned_version);
	jw_ktime(w, "openedAt", run->opened_at);
	if (!run->is_open) {
		jw_ktime(w, "closedAt", run->closed_at);
		jw_ktext(w, "outcome", word_text(run_outcome_words, run->outcome));
	}
	jw_kstr_opt(w, "retrospective", run->retrospective);
	jw_ktime(w, "lastActivityAt", run->last_activity_at);
	jw_object_end(w);
	return 0;
}

#define REPORT_COLUMNS \
	"SELECT x.n, x.id, r.id, x.kind, x.body, x.needs_decision, x.created_at, x.decided_at, x.decision, x.seat," \
	" x.actor_n, x.run_n FROM run_report x JOIN run r ON r.n = x.run_n"
SQL(SQL_REPORTS, REPORT_COLUMNS " WHERE x.run_n = $1 AND x.n < $2 ORDER BY x.n DESC LIMIT $3");

static int write_report(struct json_writer *w, struct snapshot *s, struct call *call, const struct query *q,
	bool with_run, struct failure *f)
{
	jw_object_begin(w);
	jw_id_of(w, call, "reportId", KIND_REPORT, col_id(q, 1));
	if (with_run)
		jw_id_of(w, call, "runId", KIND_RUN, col_id(q, 2));
	jw_ktext(w, "kind", word_text(report_kind_words, col_int(q, 3)));
	jw_kstr(w, "body", col_str(q, 4));
	jw_kbool_opt(w, "needsDecision", !with_run && col_int(q, 5) != 0);
	jw_ktime(w, "createdAt", col_int(q, 6));
	if (!col_is_null(q, 7))
		jw_ktime(w, "decidedAt", col_int(q, 7));
	jw_kstr_opt(w, "decision", col_str(q, 8));
	jw_kstr_opt(w, "seat", col_str(q, 9));
	if (actor_write(w, s, call, "actor", col_int(q, 10), col_is_null(q, 9) ? 0 : col_int(q, 11), col_str(q, 9), f) !=
		0)
		return -1;
	jw_object_end(w);
	return 0;
}

/* The rows of `q` until the page or the answer is full; *last is the last one shown. 1 when there are more. */
static int write_reports(struct json_writer *w, struct snapshot *s, struct call *call, struct query *q, bool with_run,
	int64_t limit, int64_t *returned, int64_t *last, struct failure *f)
{
	int rc;

	while ((rc = query_next(q, f)) == 1) {
		struct json_writer one;
		struct buf text;

		if (*returned == limit)
			return 1;
		buf_init(&text, s->arena, SIZE_MAX);
		json_writer_init(&one, &text);
		if (write_report(&one, s, call, q, with_run, f) != 0)
			return -1;
		if (*returned > 0 && w->out->n + text.n > LIMIT_ANSWER_BYTES - 4096) {
			call->page.is_shrunk = true;
			return 1;
		}
		jw_raw(w, buf_str(&text));
		*last = col_int(q, 0);
		++*returned;
	}
	return rc;
}

int report_run(struct snapshot *s, struct call *call, const struct report_run_args *in, struct json_writer *out,
	struct failure *f)
{
	int64_t limit = in->limit.set ? in->limit.v : BOARD_DEFAULT;
	AUTO(query_endp) struct query q = {0};
	struct cursor from = {0};
	struct run run;
	int64_t returned = 0;
	int64_t last = 0;
	struct str part;
	int more;

	if (run_find(s, call, in->run.v, &run, f) != 0 || seat_check(call, run.n, f) != 0 ||
		(in->cursor.set && cursor_read(call, in->cursor.v, &from, f) != 0) ||
		write_run(out, s, call, &run, f) != 0 || write_seats(out, s, call, &run, f) != 0 ||
		query(s, &q, f, SQL_REPORTS, "iii", run.n, from.n > 0 ? cursor_int(&from, 0) : INT64_MAX,
			limit + 1) != 0)
		return -1;
	jw_karray(out, "reports");
	more = write_reports(out, s, call, &q, false, limit, &returned, &last, f);
	if (more < 0)
		return -1;
	jw_array_end(out);
	part = text_of(call, last);
	if (more == 1 || in->cursor.set)
		call_page(call, returned, -1, more == 1 ? cursor_text(call, &part, 1) : STR_NONE);
	return 0;
}

/* ---- decisions ---- */

int report_decisions(struct snapshot *s, struct call *call, const struct report_decisions_args *in,
	struct json_writer *out, struct failure *f)
{
	int64_t limit = in->limit.set ? in->limit.v : BOARD_DEFAULT;
	AUTO(query_endp) struct query q = {0};
	struct cursor from = {0};
	int64_t returned = 0;
	int64_t last = 0;
	struct str part;
	struct run run;
	struct sql sql;
	int more;

	if (seat_check(call, 0, f) != 0 || (in->cursor.set && cursor_read(call, in->cursor.v, &from, f) != 0))
		return -1;
	sql_init(&sql, call->arena);
	sql_add(&sql, REPORT_COLUMNS " WHERE x.needs_decision = 1");
	if (root_filter(s, call, &in->root, &sql, f) != 0)
		return -1;
	if (in->run.set) {
		if (run_find(s, call, in->run.v, &run, f) != 0)
			return -1;
		sql_add(&sql, " AND x.run_n = ");
		sql_int(&sql, run.n);
	}
	if (!in->open.set || in->open.v)
		sql_add(&sql, " AND x.decided_at IS NULL");
	if (from.n > 0) {
		sql_add(&sql, " AND x.n > ");
		sql_int(&sql, cursor_int(&from, 0));
	}
	sql_add(&sql, " ORDER BY x.n LIMIT ");
	sql_int(&sql, limit + 1);
	if (query_sql(s, &q, f, &sql) != 0)
		return -1;
	jw_karray(out, "decisions");
	more = write_reports(out, s, call, &q, true, limit, &returned, &last, f);
	if (more < 0)
		return -1;
	jw_array_end(out);
	part = text_of(call, last);
	call_page(call, returned, -1, more == 1 ? cursor_text(call, &part, 1) : STR_NONE);
	return 0;
}
