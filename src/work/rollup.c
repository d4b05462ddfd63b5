/* Roll-ups: what a project or a run has come to, counted from the event log. */
#include "work/report.h"

#include "base/limits.h"
#include "work/int_map.h"

#define MAX_TYPES 100

/* Newest first, so that the newest LIMIT_ROLLUP_EVENTS are what is read of a longer log; by primary key. */
SQL(SQL_ROLLUP_EVENTS,
	"SELECT e.at, e.type, e.item_n, e.data, t.type FROM event e LEFT JOIN item_text t ON t.n = e.item_n"
	" WHERE e.seq > $1 AND e.root_n = $2 AND e.type IN (5, 6, 11) ORDER BY e.seq DESC");

struct type_row {
	struct str type;
	int64_t completed, cancelled;
};

struct rollup {
	struct snapshot *s;
	int64_t root_n, scope_n;
	int64_t since, until; /* UTC ms; until 0: now */
	int64_t completed, cancelled, refusals, claims;
	struct type_row types[MAX_TYPES];
	size_t type_count;
	struct int_map left_work; /* item to when it left work, as events come newest first */
	struct int_map in_scope;  /* item to 1 or 0 */
	int64_t *durations;
	size_t duration_count;
	bool is_cut;
};

/* 1 when the item stands in the scope of the run; an item that is gone does not. */
static int is_inside(struct rollup *r, int64_t item_n, struct failure *f)
{
	int64_t *known = int_map_find(&r->in_scope, item_n);
	int inside;

	if (r->scope_n == 0)
		return 1;
	if (known != NULL)
		return (int)*known;
	inside = item_is_below(r->s, item_n, r->scope_n, f);
	if (inside >= 0)
		int_map_add(&r->in_scope, item_n, inside);
	return inside;
}

static struct type_row *row_of(struct rollup *r, struct str type)
{
	for (size_t i = 0; i < r->type_count; i++)
		if (str_eq(r->types[i].type, type))
			return &r->types[i];
	if (r->type_count == MAX_TYPES) {
		r->is_cut = true;
		return NULL;
	}
	r->types[r->type_count] = (struct type_row){.type = type};
	return &r->types[r->type_count++];
}

static void add_duration(struct rollup *r, int64_t ms)
{
	size_t n = r->duration_count;

	if ((n & (n - 1)) == 0)
		r->durations = arena_grow(r->s->arena, r->durations, n * sizeof(ms),
			(n == 0 ? 1 : n * 2) * sizeof(ms));
	r->durations[r->duration_count++] = ms;
}

/* A stay in work is known once both its ends were seen. */
static void follow_work(struct rollup *r, int64_t item_n, int64_t at, struct str from, struct str to)
{
	int64_t *left = int_map_find(&r->left_work, item_n);

	if (str_eq(to, STR("work")) && left != NULL && *left != 0) {
		add_duration(r, *left - at);
		*left = 0;
	}
	if (!str_eq(from, STR("work")))
		return;
	if (left != NULL)
		*left = at;
	else
		int_map_add(&r->left_work, item_n, at);
}

static void take_transition(struct rollup *r, const struct query *q)
{
	struct json_error error;
	json_auto_t *data = json_read(col_str(q, 3), &error);
	bool is_cancel = str_eq(json_member_str(data, "trigger"), STR("cancel"));
	struct type_row *row;

	follow_work(r, col_int(q, 2), col_int(q, 0), json_member_str(data, "from"), json_member_str(data, "to"));
	if (!str_eq(json_member_str(data, "to"), STR("terminal")))
		return;
	r->completed += !is_cancel;
	r->cancelled += is_cancel;
	row = row_of(r, col_is_null(q, 4) ? STR("") : col_str(q, 4));
	if (row != NULL) {
		row->completed += !is_cancel;
		row->cancelled += is_cancel;
	}
}

static int take(struct rollup *r, const struct query *q, struct failure *f)
{
	int inside = is_inside(r, col_int(q, 2), f);

	if (inside <= 0 || (r->until != 0 && col_int(q, 0) > r->until))
		return inside < 0 ? -1 : 0;
	switch (col_int(q, 1)) {
	case EVENT_ITEM_TRANSITIONED:
		take_transition(r, q);
		break;
	case EVENT_TRANSITION_REJECTED:
		r->refusals++;
		break;
	default:
		r->claims++;
	}
	return 0;
}

static int read_events(struct rollup *r, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int64_t after = store_newest(r->s->store) - LIMIT_ROLLUP_EVENTS;
	int rc;

	if (query(r->s, &q, f, SQL_ROLLUP_EVENTS, "ii", after, r->root_n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (col_int(&q, 0) < r->since)
			return 0;
		if (take(r, &q, f) != 0)
			return -1;
	}
	r->is_cut = r->is_cut || after > EVENT_FIRST_SEQ;
	return rc;
}

static int int_cmp(const void *left, const void *right)
{
	const int64_t *a = left;
	const int64_t *b = right;

	return (*a > *b) - (*a < *b);
}

static int type_cmp(const void *left, const void *right)
{
	const struct type_row *a = left;
	const struct type_row *b = right;

	return str_cmp(a->type, b->type);
}

static void write_types(struct rollup *r, struct json_writer *w)
{
	if (r->type_count == 0)
		return;
	qsort(r->types, r->type_count, sizeof(r->types[0]), type_cmp);
	jw_karray(w, "byType");
	for (size_t i = 0; i < r->type_count; i++) {
		jw_object_begin(w);
		jw_kstr_opt(w, "type", r->types[i].type);
		jw_kint(w, "completed", r->types[i].completed);
		jw_kint(w, "cancelled", r->types[i].cancelled);
		jw_object_end(w);
	}
	jw_array_end(w);
}

static int write_rollup(struct rollup *r, struct json_writer *w, struct failure *f)
{
	struct tally totals;
	bool is_cut;

	if (scope_tally(r->s, r->root_n, r->scope_n, &totals, &is_cut, f) != 0)
		return -1;
	tally_write(w, "totals", &totals);
	jw_kint(w, "completed", r->completed);
	jw_kint(w, "cancelled", r->cancelled);
	jw_kint(w, "gateRefusals", r->refusals);
	jw_kint(w, "claims", r->claims);
	if (r->duration_count > 0) {
		qsort(r->durations, r->duration_count, sizeof(int64_t), int_cmp);
		jw_kint(w, "medianWorkMs", r->durations[r->duration_count / 2]);
	}
	write_types(r, w);
	jw_kbool_opt(w, "truncated", is_cut || r->is_cut);
	return 0;
}

static int of_run(struct rollup *r, struct call *call, struct str id, struct failure *f)
{
	struct run run;

	if (run_find(r->s, call, id, &run, f) != 0)
		return -1;
	r->root_n = run.root_n;
	r->scope_n = run.scope_n;
	r->since = run.opened_at;
	r->until = run.is_open ? 0 : run.closed_at;
	return 0;
}

static int of_root(struct rollup *r, struct call *call, struct str id, struct failure *f)
{
	struct item root;

	if (item_find(r->s, call, id, STR("rootId"), &root, f) != 0)
		return -1;
	if (root.depth != 0)
		return fail_field(f, STR("rootId"), id, "must be an item of depth 0, a project");
	r->root_n = root.n;
	return 0;
}

int report_rollup(struct snapshot *s, struct call *call, const struct report_rollup_args *in,
	struct json_writer *out, struct failure *f)
{
	struct rollup *r = ARENA_NEW(s->arena, struct rollup);

	r->s = s;
	int_map_init(&r->left_work, s->arena);
	int_map_init(&r->in_scope, s->arena);
	if (call->caller->seat.run_n != 0 && caller_need(call->caller, CAP_MANAGE_RUNS, f) != 0)
		return -1;
	if ((in->run.set ? of_run(r, call, in->run.v, f) : of_root(r, call, in->root.v, f)) != 0)
		return -1;
	if (in->since.set && in->since.v > r->since)
		r->since = in->since.v;
	return read_events(r, f) != 0 ? -1 : write_rollup(r, out, f);
}
