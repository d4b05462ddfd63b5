/* Who holds an item, how holds end, and what is said about it. A lapsed claim keeps its columns until somebody
 * takes over, and is put on record once, by the first write or sweep that sees it. */
#include "work/claim.h"

#include "base/limits.h"

#define EVENTS_LOOKED_AT 8 /* newest ends of claims on one item that an explanation may come from */

SQL(SQL_CLAIM_CLEAR,
	"UPDATE item SET claim_by = NULL, claim_at = NULL, claim_first_at = NULL, claim_until = NULL,"
	" claim_ttl = NULL, claim_lapse_seen = 0 WHERE n = $1");
SQL(SQL_CLAIM_LAPSE_SEEN, "UPDATE item SET claim_lapse_seen = 1 WHERE n = $1");
SQL(SQL_CLAIMS_OF, /* by item_claim_by */
	"SELECT n FROM item WHERE claim_by = $1 AND claim_by IS NOT NULL ORDER BY n");
SQL(SQL_PRINCIPAL_ID, "SELECT id FROM principal WHERE n = $1");
SQL(SQL_CLAIM_ENDS, /* by event_claim_end */
	"SELECT at, data FROM event WHERE item_n = $1 AND type = 12 ORDER BY seq DESC LIMIT $2");

int64_t claim_cadence(int64_t ttl_seconds)
{
	return ttl_seconds < 2 ? 1 : ttl_seconds / 2;
}

static int principal_id(struct snapshot *s, int64_t n, struct str *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	*out = STR_NONE;
	if (query(s, &q, f, SQL_PRINCIPAL_ID, "i", n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1)
		*out = col_str(&q, 0);
	return rc < 0 ? -1 : 0;
}

/* ---- events ---- */

int claim_released_event(struct tx *tx, const struct item *item, const char *reason, const char *cause,
	struct str summary, struct failure *f)
{
	struct json_writer w;
	struct str holder;
	struct buf text;

	if (principal_id(&tx->snapshot, item->claim_by, &holder, f) != 0)
		return -1;
	buf_init(&text, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_ktext(&w, "reason", reason);
	if (cause != NULL)
		jw_ktext(&w, "cause", cause);
	jw_kstr(&w, "holder", holder);
	jw_kint(&w, "claimGen", item->claim_gen);
	jw_kstr_opt(&w, "summary", summary);
	jw_object_end(&w);
	return event_add(tx, EVENT_CLAIM_RELEASED, item->root_n, item->n, item->id, buf_str(&text), f);
}

int claim_expired_event(struct tx *tx, const struct item *item, struct failure *f)
{
	struct json_writer w;
	struct buf text;

	buf_init(&text, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_ktime(&w, "expiresAt", item->claim_until);
	jw_kint(&w, "claimGen", item->claim_gen);
	jw_object_end(&w);
	return event_add(tx, EVENT_CLAIM_EXPIRED, item->root_n, item->n, item->id, buf_str(&text), f);
}

bool claim_has_new_lapse(struct tx *tx, const struct item *item)
{
	return item->claim_by != 0 && !claim_is_live(item, tx->snapshot.now) && !item->claim_lapse_seen;
}

int claim_note_lapse(struct tx *tx, const struct item *item, struct failure *f)
{
	if (!claim_has_new_lapse(tx, item))
		return 0;
	if (claim_expired_event(tx, item, f) != 0)
		return -1;
	return tx_run(tx, f, SQL_CLAIM_LAPSE_SEEN, "i", item->n) < 0 ? -1 : 0;
}

int claim_end_with(struct tx *tx, const struct item *item, const char *reason, const char *cause,
	struct str summary, struct failure *f)
{
	if (item->claim_by == 0)
		return 0;
	if (claim_is_live(item, tx->snapshot.now)) {
		if (claim_released_event(tx, item, reason, cause, summary, f) != 0)
			return -1;
	} else if (claim_has_new_lapse(tx, item) && claim_expired_event(tx, item, f) != 0) {
		return -1;
	}
	return tx_run(tx, f, SQL_CLAIM_CLEAR, "i", item->n) < 0 ? -1 : 0;
}

int claim_end(struct tx *tx, const struct item *item, const char *reason, const char *cause, struct failure *f)
{
	return claim_end_with(tx, item, reason, cause, STR_NONE, f);
}

/* Items that the principal claims, lapsed ones included. */
int claims_of(struct snapshot *s, int64_t principal_n, int64_t **out, size_t *out_n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	*out = NULL;
	*out_n = 0;
	if (query(s, &q, f, SQL_CLAIMS_OF, "i", principal_n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		*out = arena_grow(s->arena, *out, *out_n * sizeof(**out), (*out_n + 1) * sizeof(**out));
		(*out)[(*out_n)++] = col_int(&q, 0);
	}
	return rc;
}

int claim_end_all(struct tx *tx, int64_t principal_n, const char *reason, const char *cause, int64_t *out_count,
	struct failure *f)
{
	int64_t *held;
	size_t n;

	if (claims_of(&tx->snapshot, principal_n, &held, &n, f) != 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct item item;
		int rc = item_load(&tx->snapshot, held[i], &item, f);

		if (rc < 0 || (rc == 1 && claim_end(tx, &item, reason, cause, f) != 0))
			return -1;
		if (rc == 1 && claim_is_live(&item, tx->snapshot.now))
			++*out_count;
	}
	return 0;
}

/* ---- ownership ---- */

static int fail_holder(struct failure *f, const struct item *item, const char *why)
{
	(void)fail(f, FAIL_NOT_CLAIM_HOLDER, "Item %.*s: %s", STRF(id_str(f->arena, item->id)), why);
	fail_detail_str(f, "itemId", id_str(f->arena, item->id));
	return -1;
}

int claim_allows(struct snapshot *s, struct call *call, const struct item *item, struct failure *f)
{
	int64_t me;

	if (!claim_is_live(item, s->now))
		return 0;
	if (caller_row(s, call, &me, f) != 0)
		return -1;
	return me == item->claim_by ? 0 : fail_holder(f, item, "it is claimed by somebody else.");
}

/* The record of how the claim `gen` of `holder` ended, if the server ended it. */
struct ending {
	bool is_known;
	struct str reason, cause;
	int64_t at;
};

static int find_ending(struct snapshot *s, const struct item *item, struct str holder, int64_t gen,
	struct ending *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	*out = (struct ending){0};
	if (query(s, &q, f, SQL_CLAIM_ENDS, "ii", item->n, (int64_t)EVENTS_LOOKED_AT) != 0)
		return -1;
	while (!out->is_known && (rc = query_next(&q, f)) == 1) {
		struct json_error error;
		json_auto_t *data = json_read(col_str(&q, 1), &error);

		if (!str_eq(json_member_str(data, "holder"), holder) ||
			json_integer_value(json_object_get(data, "claimGen")) != gen)
			continue;
		*out = (struct ending){.is_known = true,
			.reason = str_dup(s->arena, json_member_str(data, "reason")),
			.cause = str_dup(s->arena, json_member_str(data, "cause")),
			.at = col_int(&q, 0)};
	}
	return out->is_known ? 0 : rc;
}

static void write_ending(struct failure *f, const struct ending *ending)
{
	struct json_writer w;
	struct buf text;

	buf_init(&text, f->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_kstr(&w, "reason", ending->reason);
	jw_kstr_opt(&w, "cause", ending->cause);
	jw_ktime(&w, "at", ending->at);
	jw_object_end(&w);
	fail_detail_raw(f, "ended", buf_str(&text));
}

/* The caller has no live claim of generation `gen`: say what became of it. */
int fail_former_holder(struct snapshot *s, struct call *call, const struct item *item, int64_t me,
	int64_t gen, struct failure *f)
{
	struct ending ending;

	if (item->claim_by != 0 && item->claim_by == me && item->claim_gen == gen &&
		!claim_is_live(item, s->now))
		return fail_holder(f, item, "your claim has lapsed; claim it again.");
	if (find_ending(s, item, call->caller->actor.id, gen, &ending, f) != 0)
		return -1;
	if (!ending.is_known)
		return fail_holder(f, item, claim_is_live(item, s->now) && item->claim_by != me
				? "it is claimed by somebody else."
				: "you have no live claim of this generation.");
	(void)fail_holder(f, item,
		arena_printf(f->arena, "your claim (generation %lld) was ended by the server: %.*s%s%.*s.",
			(long long)gen, STRF(ending.reason), ending.cause.n > 0 ? ", " : "",
			STRF(ending.cause)));
	write_ending(f, &ending);
	return -1;
}

int claim_expect_gen(struct snapshot *s, struct call *call, const struct item *item, int64_t gen,
	struct failure *f)
{
	int64_t me;

	if (caller_row(s, call, &me, f) != 0)
		return -1;
	if (claim_is_live(item, s->now) && me == item->claim_by && gen == item->claim_gen)
		return 0;
	return fail_former_holder(s, call, item, me, gen, f);
}

/* ---- what callers see ---- */

int claim_write(struct json_writer *w, struct snapshot *s, struct call *call, const struct item *item,
	struct failure *f)
{
	bool is_live = claim_is_live(item, s->now);
	struct str holder = STR_NONE;
	int64_t me;

	if (caller_row(s, call, &me, f) != 0 ||
		(call->caller->sees_actors && item->claim_by != 0 &&
			principal_id(s, item->claim_by, &holder, f) != 0))
		return -1;
	jw_kobject(w, "claim");
	jw_ktext(w, "state", item->claim_by == 0 ? "unclaimed" : is_live ? "claimed" : "expired");
	if (is_live && me == item->claim_by) {
		jw_kbool(w, "mine", true);
		jw_ktime(w, "expiresAt", item->claim_until);
		jw_ktime(w, "claimedAt", item->claim_at);
		jw_ktime(w, "originalClaimedAt", item->claim_first_at);
		jw_kint(w, "claimGen", item->claim_gen);
	}
	jw_kstr_opt(w, "claimedBy", holder);
	jw_object_end(w);
	return 0;
}
