/* Runs and their seats. */
#include "work/report.h"

#include "base/limits.h"
#include "work/advance.h"
#include "work/docs.h"

const struct word run_kind_words[] = {
	{"wave", RUN_WAVE},
	{"loop", RUN_LOOP},
	{"manual", RUN_MANUAL},
	WORDS_END,
};
const struct word run_outcome_words[] = {
	{"done", RUN_DONE},
	{"abandoned", RUN_ABANDONED},
	{"failed", RUN_FAILED},
	WORDS_END,
};

SQL(SQL_RUN,
	"SELECT n, id, root_n, scope_n, kind, title, is_open, pinned_version, opened_at, closed_at, outcome,"
	" retrospective, last_activity_at FROM run WHERE n = $1");

int run_load(struct snapshot *s, int64_t n, struct run *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_RUN, "i", n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	*out = (struct run){
		.n = col_int(&q, 0),
		.id = col_id(&q, 1),
		.root_n = col_int(&q, 2),
		.scope_n = col_int(&q, 3),
		.kind = (enum run_kind)col_int(&q, 4),
		.title = col_str(&q, 5),
		.is_open = col_int(&q, 6) != 0,
		.pinned_version = col_int(&q, 7),
		.opened_at = col_int(&q, 8),
		.closed_at = col_int(&q, 9),
		.outcome = (enum run_outcome)col_int(&q, 10),
		.retrospective = col_str(&q, 11),
		.last_activity_at = col_int(&q, 12),
	};
	return 1;
}

int run_find(struct snapshot *s, struct call *call, struct str text, struct run *out, struct failure *f)
{
	int64_t n;
	int rc;

	if (id_resolve(s, call, KIND_RUN, text, STR("runId"), &n, f) != 0)
		return -1;
	rc = run_load(s, n, out, f);
	return rc == 1 ? 0 : rc < 0 ? -1 : fail_not_found(f, "run", text);
}

SQL(SQL_RUN_TOUCH, "UPDATE run SET last_activity_at = $2 WHERE n = $1 AND last_activity_at < $2");

static int touch(struct tx *tx, int64_t run_n, struct failure *f)
{
	return tx_run(tx, f, SQL_RUN_TOUCH, "ii", run_n, tx->snapshot.now) < 0 ? -1 : 0;
}

int run_touch(struct tx *tx, struct call *call, struct failure *f)
{
	int64_t run_n = call->caller->seat.run_n;

	return run_n == 0 ? 0 : touch(tx, run_n, f);
}

static int run_event(struct tx *tx, enum event_type type, const struct run *run, struct failure *f)
{
	struct json_writer w;
	struct buf data;

	buf_init(&data, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	if (type == EVENT_RUN_OPENED) {
		jw_kstr(&w, "title", run->title);
		jw_ktext(&w, "kind", word_text(run_kind_words, run->kind));
	} else {
		jw_ktext(&w, "outcome", word_text(run_outcome_words, run->outcome));
	}
	jw_object_end(&w);
	return event_add(tx, type, run->root_n, run->scope_n, run->id, buf_str(&data), f);
}

/* ---- open ---- */

SQL(SQL_RUN_ADD,
	"INSERT INTO run (n, id, root_n, scope_n, kind, title, is_open, pinned_version, opened_at, opened_by,"
	" last_activity_at) VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9, $8)");

/* The subtree that seats may write: below the root, and not the root again. */
static int find_scope(struct snapshot *s, struct call *call, const struct run_open_args *in,
	const struct item *root, struct run *run, struct failure *f)
{
	struct item scope;

	if (!in->scope.set)
		return 0;
	if (item_find(s, call, in->scope.v, STR("scopeItemId"), &scope, f) != 0)
		return -1;
	if (scope.root_n != root->n)
		return fail_field(f, STR("scopeItemId"), in->scope.v, "must be an item of the run's project");
	if (scope.n != root->n)
		run->scope_n = scope.n;
	return 0;
}

static int pin(struct snapshot *s, struct call *call, struct run *run, struct failure *f)
{
	const struct rules_view *view;

	if (call_view(s, call, run->root_n, &view, f) != 0)
		return -1;
	if (view->version == 0)
		return fail_field(f, STR("pinConfig"), STR_NONE, "there are no rules to pin");
	run->pinned_version = view->version;
	return 0;
}

int run_open(struct tx *tx, struct call *call, const struct run_open_args *in, struct json_writer *out,
	struct failure *f)
{
	struct snapshot *s = &tx->snapshot;
	struct run run = {.kind = (enum run_kind)in->kind.v, .title = in->title.v};
	struct item root;
	int64_t actor_n;

	if (project_find(s, call, &in->root, &root, f) != 0)
		return -1;
	run.root_n = root.n;
	if (find_scope(s, call, in, &root, &run, f) != 0 || (in->pin.v && pin(s, call, &run, f) != 0))
		return -1;
	id_generate(&run.id);
	if (tx_next(tx, SEQ_run, &run.n, f) != 0 || tx_actor(tx, &actor_n, f) != 0 ||
		tx_run(tx, f, SQL_RUN_ADD, "ibioisoii", run.n, run.id, run.root_n,
			run.scope_n == 0 ? NULL : &run.scope_n, (int64_t)run.kind, run.title,
			run.pinned_version == 0 ? NULL : &run.pinned_version, s->now, actor_n) < 0 ||
		run_event(tx, EVENT_RUN_OPENED, &run, f) != 0)
		return -1;
	jw_id_of(out, call, "runId", KIND_RUN, run.id);
	jw_ktext(out, "state", "open");
	jw_kint_opt(out, "pinnedConfigVersion", run.pinned_version);
	return 0;
}

/* ---- seats ---- */

static int open_check(const struct run *run, struct failure *f)
{
	return run->is_open ? 0 : fail_field(f, STR("runId"), STR_NONE, "the run is closed");
}

static bool has_seat(const struct schema *schema, struct str seat)
{
	return schema_seat(schema, seat) != NULL;
}

/* Free names are legal; a name that no schema of the project knows is mostly a slip. */
static int warn_unknown_seat(struct snapshot *s, struct call *call, int64_t root_n, struct str seat,
	struct failure *f)
{
	const struct rules_view *view;
	struct rules_type_row *types;
	struct rules_type_row *traits;
	struct schema schema;
	size_t type_count;
	size_t trait_count;

	if (call_view(s, call, root_n, &view, f) != 0)
		return -1;
	type_count = rules_types(view, s->arena, &types);
	trait_count = rules_traits(view, s->arena, &traits);
	for (size_t i = 0; i < type_count; i++) {
		rules_schema(view, types[i].name, NULL, 0, NULL, 0, s->arena, &schema);
		if (has_seat(&schema, seat))
			return 0;
	}
	for (size_t i = 0; i < trait_count && type_count > 0; i++) {
		rules_schema(view, types[0].name, NULL, 0, &traits[i].name, 1, s->arena, &schema);
		if (has_seat(&schema, seat))
			return 0;
	}
	warn(&call->warnings, "seat_unknown", STR("seat"), "No schema of the project has a seat %.*s.", STRF(seat));
	return 0;
}

SQL(SQL_SEAT_COUNT, "SELECT count(*) FROM run_seat WHERE run_n = $1");
SQL(SQL_SEAT_ADD,
	"INSERT INTO run_seat (n, id, run_n, seat, label, token_sha256, principal_n, issued_at, expires_at)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)");

static int count_check(struct snapshot *s, const struct run *run, struct failure *f)
{
	int64_t count;

	if (query_int(s, &count, f, SQL_SEAT_COUNT, "i", run->n) < 0)
		return -1;
	if (count < LIMIT_RUN_SEATS)
		return 0;
	(void)fail(f, FAIL_PAYLOAD_TOO_LARGE, "A run may issue %d seats.", LIMIT_RUN_SEATS);
	fail_detail_int(f, "max", LIMIT_RUN_SEATS);
	fail_detail_int(f, "actual", count);
	return -1;
}

/* An id whose first eight digits name no principal yet: claims and notes are told apart by that name. */
static int new_principal(struct tx *tx, struct id *out_id, int64_t *out_n, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct actor actor = {
		.kind = PRINCIPAL_SEAT, .parent = tx->actor->id, .verification = VERIFICATION_UNCHECKED};
	int64_t taken;

	do {
		id_generate(out_id);
		actor.id = str_printf(arena, "seat:%.*s", STRF(hex(arena, out_id->b, 4)));
		if (principal_find(&tx->snapshot, actor.id, &taken, f) != 0)
			return -1;
	} while (taken != 0);
	return tx_principal(tx, &actor, out_n, f);
}

/* What the log may keep of a new seat: everything but its token. */
static int minted_event(struct tx *tx, const struct run *run, struct id id, struct str seat, int64_t until,
	struct failure *f)
{
	struct json_writer w;
	struct buf data;

	buf_init(&data, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	jw_kstr(&w, "seatId", id_str(tx->snapshot.arena, id));
	jw_kstr(&w, "seat", seat);
	jw_ktime(&w, "expiresAt", until);
	jw_object_end(&w);
	return event_add(tx, EVENT_RUN_SEAT_MINTED, run->root_n, run->scope_n, run->id, buf_str(&data), f);
}

int seat_issue(struct tx *tx, struct call *call, const struct seat_issue_args *in, struct json_writer *out,
	struct failure *f)
{
	struct snapshot *s = &tx->snapshot;
	int64_t until = s->now + (in->ttl.set ? in->ttl.v : SEAT_TTL_DEFAULT) * 1000;
	struct str token = str_printf(call->arena, "dst_%.*s", STRF(random_token(call->arena, 32)));
	unsigned char digest[32];
	int64_t principal_n;
	struct run run;
	struct id id;
	int64_t n;

	if (run_find(s, call, in->run.v, &run, f) != 0 || open_check(&run, f) != 0 ||
		count_check(s, &run, f) != 0 || warn_unknown_seat(s, call, run.root_n, in->seat.v, f) != 0)
		return -1;
	sha256(token.p, token.n, digest);
	if (new_principal(tx, &id, &principal_n, f) != 0 || tx_next(tx, SEQ_run_seat, &n, f) != 0 ||
		tx_run(tx, f, SQL_SEAT_ADD, "ibissxiii", n, id, run.n, in->seat.v, in->label.v,
			((struct str){(const char *)digest, sizeof(digest)}), principal_n, s->now, until) < 0 ||
		minted_event(tx, &run, id, in->seat.v, until, f) != 0 || touch(tx, run.n, f) != 0)
		return -1;
	jw_id_of(out, call, "seatId", KIND_SEAT, id);
	jw_kstr(out, "seat", in->seat.v);
	jw_ktime(out, "expiresAt", until);
	call->once_members = str_printf(call->arena, "\"token\":\"%.*s\"", STRF(token));
	call->again_members = STR("\"token\":null,\"tokenWithheld\":true");
	return 0;
}

SQL(SQL_SEAT_ROW, "SELECT run_n, principal_n, revoked_at FROM run_seat WHERE n = $1");
SQL(SQL_SEAT_REVOKE, "UPDATE run_seat SET revoked_at = $2 WHERE n = $1 AND revoked_at IS NULL");

int seat_revoke(struct tx *tx, struct call *call, const struct seat_revoke_args *in, struct json_writer *out,
	struct failure *f)
{
	struct snapshot *s = &tx->snapshot;
	AUTO(query_endp) struct query q = {0};
	int64_t released = 0;
	int64_t run_n;
	int64_t principal_n;
	int64_t n;

	if (id_resolve(s, call, KIND_SEAT, in->seat.v, STR("seatId"), &n, f) != 0 ||
		query(s, &q, f, SQL_SEAT_ROW, "i", n) != 0 || query_next(&q, f) != 1)
		return -1;
	run_n = col_int(&q, 0);
	principal_n = col_int(&q, 1);
	query_end(&q);
	if (tx_run(tx, f, SQL_SEAT_REVOKE, "ii", n, s->now) < 0 ||
		claim_end_all(tx, principal_n, "released", "seat_revoked", &released, f) != 0 ||
		touch(tx, run_n, f) != 0)
		return -1;
	jw_kbool(out, "revoked", true);
	jw_kint_opt(out, "releasedClaims", released);
	return 0;
}

/* ---- close ---- */

SQL(SQL_RUN_PRINCIPALS, "SELECT principal_n FROM run_seat WHERE run_n = $1");
SQL(SQL_RUN_REVOKE, "UPDATE run_seat SET revoked_at = $2 WHERE run_n = $1 AND revoked_at IS NULL");
SQL(SQL_RUN_CLOSE,
	"UPDATE run SET is_open = 0, closed_at = $2, closed_by = $3, outcome = $4, retrospective = $5,"
	" last_activity_at = $2 WHERE n = $1");

static int release_claims(struct tx *tx, const struct run *run, int64_t *released, struct failure *f)
{
	int64_t principals[LIMIT_RUN_SEATS];
	AUTO(query_endp) struct query q = {0};
	size_t n = 0;
	int rc = 0;

	if (query(&tx->snapshot, &q, f, SQL_RUN_PRINCIPALS, "i", run->n) != 0)
		return -1;
	while (n < LIMIT_RUN_SEATS && (rc = query_next(&q, f)) == 1)
		principals[n++] = col_int(&q, 0);
	query_end(&q);
	for (size_t i = 0; rc >= 0 && i < n; i++)
		rc = claim_end_all(tx, principals[i], "released", "run_closed", released, f);
	return rc < 0 ? -1 : 0;
}

static int fail_closed(const struct run *run, struct failure *f)
{
	(void)fail(f, FAIL_DUPLICATE, "The run was closed already.");
	fail_detail_str(f, "kind", STR("run"));
	fail_detail_str(f, "existingId", id_str(f->arena, run->id));
	return -1;
}

/* What the director is asked to look back on. */
static int write_retrospective(struct snapshot *s, struct call *call, const struct run *run,
	struct json_writer *out, struct failure *f)
{
	struct tally tally;
	struct item scope;
	bool is_cut;

	if (scope_tally(s, run->root_n, run->scope_n, &tally, &is_cut, f) != 0 ||
		(run->scope_n != 0 && item_load(s, run->scope_n, &scope, f) < 0))
		return -1;
	jw_kobject(out, "retrospective");
	jw_id_of(out, call, "runId", KIND_RUN, run->id);
	if (run->scope_n != 0)
		jw_id(out, call, "scopeItemId", scope.id);
	jw_kint(out, "itemsTerminal", tally.by_role[tally_index(ROLE_TERMINAL)]);
	jw_kbool_opt(out, "truncated", is_cut);
	jw_ktext(out, "prompt",
		"Review what this run refused, retried and learned; post kind retrospective.");
	jw_object_end(out);
	return 0;
}

int run_close(struct tx *tx, struct call *call, const struct run_close_args *in, struct json_writer *out,
	struct failure *f)
{
	struct snapshot *s = &tx->snapshot;
	int64_t released = 0;
	int64_t revoked;
	int64_t actor_n;
	struct run run;

	if (run_find(s, call, in->run.v, &run, f) != 0)
		return -1;
	if (!run.is_open)
		return fail_closed(&run, f);
	run.outcome = (enum run_outcome)in->outcome.v;
	if (release_claims(tx, &run, &released, f) != 0 || tx_actor(tx, &actor_n, f) != 0)
		return -1;
	revoked = tx_run(tx, f, SQL_RUN_REVOKE, "ii", run.n, s->now);
	if (revoked < 0 ||
		tx_run(tx, f, SQL_RUN_CLOSE, "iiiis", run.n, s->now, actor_n, (int64_t)run.outcome,
			in->summary.v) < 0 ||
		run_event(tx, EVENT_RUN_CLOSED, &run, f) != 0)
		return -1;
	jw_id_of(out, call, "runId", KIND_RUN, run.id);
	jw_ktext(out, "state", "closed");
	jw_kint(out, "revokedSeats", revoked);
	jw_kint(out, "releasedClaims", released);
	return write_retrospective(s, call, &run, out, f);
}
