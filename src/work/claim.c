/* advance claim, release, heartbeat: time-limited exclusive holds of one principal on one item. Live while
 * claim_until > now. claim_gen fences: it grows with every fresh acquisition and never comes back. */
#include "work/claim.h"

#include "base/clock.h"
#include "work/gate.h"
#include "work/select.h"

SQL(SQL_CLAIM_TAKE,
	"UPDATE item SET claim_by = $2, claim_at = $3, claim_first_at = $4, claim_until = $5, claim_ttl = $6,"
	" claim_gen = $7, claim_lapse_seen = 0 WHERE n = $1");
SQL(SQL_CLAIM_EXTEND, "UPDATE item SET claim_until = $2, claim_ttl = $3 WHERE n = $1");

/* ---- claim ---- */

static int record_on_item(struct tx *tx, const struct item *item, enum event_type type, struct failure *f)
{
	return event_add(tx, type, item->root_n, item->n, item->id, STR_NONE, f);
}

static int record_refused_claim(struct tx *tx, struct call *call, void *arg, struct failure *f)
{
	(void)call;
	return record_on_item(tx, arg, EVENT_CLAIM_REJECTED, f);
}

static int refuse_held(struct tx *tx, struct call *call, const struct item *item, struct failure *f)
{
	int64_t left = item->claim_until - tx->snapshot.now;
	struct item *copy = ARENA_NEW(tx->snapshot.arena, struct item);
	char until[TIME_TEXT_SIZE];

	*copy = *item;
	call->after_failure = record_refused_claim;
	call->after_failure_arg = copy;
	time_format(item->claim_until, until);
	(void)fail(f, FAIL_CLAIM_HELD, "Item %.*s is claimed until %s.", STRF(id_str(f->arena, item->id)), until);
	fail_detail_str(f, "itemId", id_str(f->arena, item->id));
	fail_detail_str(f, "expiresAt", str_of(until));
	f->retry_after_ms = left;
	return -1;
}

static int acquired_event(struct tx *tx, const struct item *item, int64_t ttl, int64_t gen, bool is_refresh,
	struct failure *f)
{
	struct json_writer w;
	struct buf text;

	buf_init(&text, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_kint(&w, "ttlSeconds", ttl);
	jw_kint(&w, "claimGen", gen);
	jw_kbool_opt(&w, "refreshed", is_refresh);
	jw_object_end(&w);
	return event_add(tx, EVENT_CLAIM_ACQUIRED, item->root_n, item->n, item->id, buf_str(&text), f);
}

/* Every other claim of the caller ends; the live ones are named. */
static int supersede(struct tx *tx, struct call *call, int64_t me, int64_t keep_n, struct json_writer *out,
	struct failure *f)
{
	bool is_open = false;
	int64_t *held;
	size_t n;

	if (claims_of(&tx->snapshot, me, &held, &n, f) != 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct item item;
		int rc;

		if (held[i] == keep_n)
			continue;
		rc = item_load(&tx->snapshot, held[i], &item, f);
		if (rc < 0 || (rc == 1 && claim_end(tx, &item, "superseded", NULL, f) != 0))
			return -1;
		if (rc == 0 || !claim_is_live(&item, tx->snapshot.now))
			continue;
		if (!is_open)
			jw_karray(out, "superseded");
		is_open = true;
		jw_str(out, id_str(call->arena, item.id));
	}
	if (is_open)
		jw_array_end(out);
	return 0;
}

static int take(struct tx *tx, struct call *call, const struct item *item, const struct claim_args *in,
	struct json_writer *out, struct failure *f)
{
	int64_t ttl = in->ttl.set ? in->ttl.v : CLAIM_TTL_DEFAULT;
	int64_t now = tx->snapshot.now;
	int64_t gen, first_at, me;
	bool is_refresh;

	if (tx_actor(tx, &me, f) != 0)
		return -1;
	is_refresh = claim_is_live(item, now) && item->claim_by == me;
	gen = item->claim_gen + (is_refresh ? 0 : 1);
	first_at = is_refresh ? item->claim_first_at : now;
	if ((claim_has_new_lapse(tx, item) && claim_expired_event(tx, item, f) != 0) ||
		tx_run(tx, f, SQL_CLAIM_TAKE, "iiiiiii", item->n, me, now, first_at, now + ttl * 1000, ttl,
			gen) < 0 ||
		acquired_event(tx, item, ttl, gen, is_refresh, f) != 0)
		return -1;
	call->has_claimed = true;
	jw_kbool(out, "claimed", true);
	jw_id(out, call, "itemId", item->id);
	jw_ktime(out, "claimedAt", now);
	jw_ktime(out, "expiresAt", now + ttl * 1000);
	jw_kint(out, "ttlSeconds", ttl);
	jw_kint(out, "claimGen", gen);
	jw_kstr_opt(out, "claimRef", in->claim_ref.v);
	jw_kbool_opt(out, "refreshed", is_refresh);
	if (is_refresh)
		jw_ktime(out, "originalClaimedAt", first_at);
	jw_kint(out, "heartbeatEverySeconds", claim_cadence(ttl));
	if (supersede(tx, call, me, item->n, out, f) != 0)
		return -1;
	jw_key(out, "item");
	jw_object_begin(out);
	item_write_ref(out, call, item);
	jw_object_end(out);
	return 0;
}

static int claim_by_id(struct tx *tx, struct call *call, const struct claim_args *in, struct json_writer *out,
	struct failure *f)
{
	struct item item;
	int64_t me;

	if (item_find(&tx->snapshot, call, in->item.v, STR("itemId"), &item, f) != 0 ||
		item_writable(&tx->snapshot, call, &item, f) != 0)
		return -1;
	if (item.role == ROLE_TERMINAL)
		return fail_transition(f, &item, STR("claim"), STR("[\"reopen\"]"));
	if (caller_row(&tx->snapshot, call, &me, f) != 0)
		return -1;
	if (claim_is_live(&item, tx->snapshot.now) && item.claim_by != me)
		return refuse_held(tx, call, &item, f);
	return take(tx, call, &item, in, out, f);
}

static int claim_by_selector(struct tx *tx, struct call *call, const struct claim_args *in,
	struct json_writer *out, struct failure *f)
{
	const struct selector_args *selector = in->selector.v;
	struct wish wish = {.filter = &selector->filter,
		.path = STR("selector."),
		.order = (enum select_order)(selector->order.set ? selector->order.v : SELECT_BY_PRIORITY),
		.limit = 1,
		.is_claim = true};
	struct selected selected;
	struct item item;
	int rc;

	if (select_items(&tx->snapshot, call, &wish, &selected, f) != 0)
		return -1;
	if (selected.n == 0) {
		jw_kbool(out, "claimed", false);
		selected_write_none(out, &selected);
		jw_kstr_opt(out, "claimRef", in->claim_ref.v);
		return 0;
	}
	rc = item_load(&tx->snapshot, selected.v[0], &item, f);
	if (rc != 1)
		return rc < 0 ? -1 : fail(f, FAIL_INTERNAL, "a selected item is gone");
	return take(tx, call, &item, in, out, f);
}

int advance_claim(struct tx *tx, struct call *call, const struct claim_args *in, struct json_writer *out,
	struct failure *f)
{
	if (call->has_claimed)
		return fail_field(f, STR("op"), STR("claim"),
			"one claim per call: a claim ends the caller's other claims");
	return in->item.set ? claim_by_id(tx, call, in, out, f) : claim_by_selector(tx, call, in, out, f);
}

int advance_claim_replayed(struct tx *tx, struct call *call, const json_t *stored, struct json_writer *out,
	struct failure *f)
{
	struct str id = json_member_str(stored, "itemId");
	int64_t gen = json_integer_value(json_object_get(stored, "claimGen"));
	struct failure gone;
	struct item item;

	if (id.p == NULL)
		return 0;
	failure_init(&gone, f->arena);
	if (item_find(&tx->snapshot, call, id, STR("itemId"), &item, &gone) != 0 ||
		!claim_is_live(&item, tx->snapshot.now) || item.claim_gen != gen)
		jw_kbool(out, "stale", true);
	return 0;
}

/* ---- release, heartbeat ---- */

static int note_lapse_after_failure(struct tx *tx, struct call *call, void *arg, struct failure *f)
{
	(void)call;
	return claim_note_lapse(tx, arg, f);
}

/* The item, and the caller's row; `is_live` tells whether the caller holds it now. */
static int find_held(struct tx *tx, struct call *call, struct str id, struct item *out, int64_t *out_me,
	bool *is_live, struct failure *f)
{
	if (item_find(&tx->snapshot, call, id, STR("itemId"), out, f) != 0 ||
		item_writable(&tx->snapshot, call, out, f) != 0 ||
		caller_row(&tx->snapshot, call, out_me, f) != 0)
		return -1;
	*is_live = claim_is_live(out, tx->snapshot.now) && out->claim_by == *out_me;
	return 0;
}

int advance_release(struct tx *tx, struct call *call, const struct release_args *in, struct json_writer *out,
	struct failure *f)
{
	struct item item;
	bool is_live;
	int64_t me;

	if (find_held(tx, call, in->item.v, &item, &me, &is_live, f) != 0)
		return -1;
	if (!is_live && (item.claim_by == 0 || item.claim_by != me))
		return fail_former_holder(&tx->snapshot, call, &item, me, item.claim_gen, f);
	if (claim_end_with(tx, &item, "released", NULL, in->summary.v, f) != 0)
		return -1;
	jw_id(out, call, "itemId", item.id);
	jw_kbool(out, "released", is_live);
	if (!is_live)
		jw_ktext(out, "reason", "expired");
	jw_kstr_opt(out, "claimRef", in->claim_ref.v);
	return 0;
}

int advance_heartbeat(struct tx *tx, struct call *call, const struct heartbeat_args *in,
	struct json_writer *out, struct failure *f)
{
	struct item item;
	int64_t me, ttl, until;
	bool is_live;

	if (find_held(tx, call, in->item.v, &item, &me, &is_live, f) != 0)
		return -1;
	if (!is_live || (in->claim_gen.set && in->claim_gen.v != item.claim_gen)) {
		struct item *copy = ARENA_NEW(tx->snapshot.arena, struct item);

		*copy = item;
		call->after_failure = note_lapse_after_failure;
		call->after_failure_arg = copy;
		return fail_former_holder(&tx->snapshot, call, &item, me,
			in->claim_gen.set ? in->claim_gen.v : item.claim_gen, f);
	}
	ttl = in->ttl.set ? in->ttl.v : item.claim_ttl > 0 ? item.claim_ttl : CLAIM_TTL_DEFAULT;
	until = tx->snapshot.now + ttl * 1000;
	if (tx_run(tx, f, SQL_CLAIM_EXTEND, "iii", item.n, until, ttl) < 0 || lease_extend(tx, &item, f) != 0)
		return -1;
	jw_id(out, call, "itemId", item.id);
	jw_ktime(out, "expiresAt", until);
	jw_kint(out, "heartbeatEverySeconds", claim_cadence(ttl));
	return 0;
}
