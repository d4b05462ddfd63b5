/* Reports of runs: what seats post, and what a director decides. */
#include "work/report.h"

#include "base/limits.h"
#include "work/body.h"

const struct word report_kind_words[] = {
	{"note", REPORT_NOTE},
	{"decision", REPORT_DECISION},
	{"risk", REPORT_RISK},
	{"retrospective", REPORT_RETROSPECTIVE},
	WORDS_END,
};

/* A seat posts to its own run; anybody else needs to manage runs. */
static int may_post(struct call *call, const struct run *run, struct failure *f)
{
	const struct seat_scope *seat = &call->caller->seat;

	if (seat->run_n == 0 || seat->run_n != run->n)
		return caller_need(call->caller, CAP_MANAGE_RUNS, f);
	return 0;
}

SQL(SQL_REPORT_ADD,
	"INSERT INTO run_report (n, id, run_n, kind, body, needs_decision, created_at, actor_n, seat)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)");
SQL(SQL_RUN_ACTIVE, "UPDATE run SET last_activity_at = $2 WHERE n = $1");
SQL(SQL_RUN_LOOK_BACK, "UPDATE run SET retrospective = $2 WHERE n = $1");

static int post_event(struct tx *tx, const struct run *run, struct id id, const struct report_post_args *in,
	struct failure *f)
{
	return event_add(tx, EVENT_REPORT_POSTED, run->root_n, run->scope_n, id,
		str_printf(tx->snapshot.arena, "{\"kind\":\"%s\"%s}", word_text(report_kind_words, in->kind.v),
			in->needs_decision.v ? ",\"needsDecision\":true" : ""),
		f);
}

int report_post(struct tx *tx, struct call *call, const struct report_post_args *in, struct json_writer *out,
	struct failure *f)
{
	struct snapshot *s = &tx->snapshot;
	struct run run;
	struct str body;
	struct id id;
	int64_t n;
	int64_t actor_n;

	if (run_find(s, call, in->run.v, &run, f) != 0 || may_post(call, &run, f) != 0)
		return -1;
	if (!run.is_open && in->kind.v != REPORT_RETROSPECTIVE)
		return fail_field(f, STR("runId"), STR_NONE, "the run is closed; only kind retrospective is taken");
	body = body_normalise(call, in->body.v);
	id_generate(&id);
	if (tx_next(tx, SEQ_run_report, &n, f) != 0 || tx_actor(tx, &actor_n, f) != 0 ||
		tx_run(tx, f, SQL_REPORT_ADD, "ibiisiiis", n, id, run.n, in->kind.v, body,
			(int64_t)in->needs_decision.v, s->now, actor_n, call->caller->seat.seat) < 0 ||
		tx_run(tx, f, SQL_RUN_ACTIVE, "ii", run.n, s->now) < 0 ||
		(in->kind.v == REPORT_RETROSPECTIVE && tx_run(tx, f, SQL_RUN_LOOK_BACK, "is", run.n, body) < 0))
		return -1;
	jw_id_of(out, call, "reportId", KIND_REPORT, id);
	return post_event(tx, &run, id, in, f);
}

SQL(SQL_REPORT, "SELECT x.id, x.decided_at, x.run_n, r.root_n, r.scope_n FROM run_report x"
		" JOIN run r ON r.n = x.run_n WHERE x.n = $1");
SQL(SQL_REPORT_DECIDE,
	"UPDATE run_report SET decided_at = $2, decided_by = $3, decision = $4 WHERE n = $1 AND decided_at IS NULL");

int report_decide(struct tx *tx, struct call *call, const struct report_decide_args *in, struct json_writer *out,
	struct failure *f)
{
	struct snapshot *s = &tx->snapshot;
	AUTO(query_endp) struct query q = {0};
	int64_t actor_n;
	int64_t n;
	struct id id;
	struct run run;

	if (id_resolve(s, call, KIND_REPORT, in->report.v, STR("reportId"), &n, f) != 0 ||
		query(s, &q, f, SQL_REPORT, "i", n) != 0 || query_next(&q, f) != 1)
		return -1;
	id = col_id(&q, 0);
	if (!col_is_null(&q, 1)) {
		(void)fail(f, FAIL_DUPLICATE, "The report was decided already.");
		fail_detail_str(f, "kind", STR("run"));
		fail_detail_str(f, "existingId", id_str(f->arena, id));
		return -1;
	}
	run = (struct run){.n = col_int(&q, 2), .root_n = col_int(&q, 3), .scope_n = col_int(&q, 4)};
	query_end(&q);
	if (tx_actor(tx, &actor_n, f) != 0 ||
		tx_run(tx, f, SQL_REPORT_DECIDE, "iiis", n, s->now, actor_n, in->decision.v) < 0 ||
		tx_run(tx, f, SQL_RUN_ACTIVE, "ii", run.n, s->now) < 0 ||
		event_add(tx, EVENT_REPORT_DECIDED, run.root_n, run.scope_n, id,
			str_printf(s->arena, "{\"reportId\":\"%.*s\"}", STRF(id_str(s->arena, id))), f) != 0)
		return -1;
	jw_id_of(out, call, "reportId", KIND_REPORT, id);
	jw_ktime(out, "decidedAt", s->now);
	return 0;
}
