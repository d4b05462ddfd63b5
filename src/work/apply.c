/* Applying a move whose gates have passed: the one place that writes a role. */
#include "work/claim.h"
#include "work/unit.h"

/* The claim columns stay out of the first form: naming them would touch their indexes. */
SQL(SQL_APPLY,
	"UPDATE item SET role = $2, prev_role = $3, label = $4, prev_label = $5, role_changed_at = $6,"
	" modified_at = $6, moved_seq = $7, version = version + 1 WHERE n = $1");
SQL(SQL_APPLY_UNCLAIMED,
	"UPDATE item SET role = $2, prev_role = $3, label = $4, prev_label = $5, role_changed_at = $6,"
	" modified_at = $6, moved_seq = $7, version = version + 1, claim_by = NULL, claim_at = NULL, claim_first_at = NULL,"
	" claim_until = NULL, claim_ttl = NULL, claim_lapse_seen = 0 WHERE n = $1");

void unit_init(struct unit *unit, struct tx *tx, struct call *call)
{
	*unit = (struct unit){.tx = tx, .call = call};
	unit->events_end = &unit->events;
	unit->todo_end = &unit->todo;
}

/* ---- labels ---- */

static enum trigger label_key(const struct move *move)
{
	switch (move->cascade) {
	case CASCADE_COMPLETE:
		return TRIGGER_CASCADE;
	case CASCADE_START:
		return TRIGGER_START;
	case CASCADE_REOPEN:
		return TRIGGER_REOPEN;
	default:
		return move->trigger == TRIGGER_START && move->target == ROLE_TERMINAL ? TRIGGER_COMPLETE
										       : move->trigger;
	}
}

static int label_after(struct unit *unit, const struct move *move, struct str *out, struct failure *f)
{
	const struct rules_view *view;
	struct str label = STR_NONE;

	if (call_view(&unit->tx->snapshot, unit->call, move->item->root_n, &view, f) != 0)
		return -1;
	if (move->cascade != CASCADE_REOPEN)
		label = rules_label(view, label_key(move));
	if (label.p == NULL && move->target == ROLE_BLOCKED)
		label = move->item->label;
	else if (label.p == NULL && move->trigger == TRIGGER_RESUME)
		label = move->item->prev_label;
	*out = label;
	return 0;
}

/* ---- columns ---- */

static int write_columns(struct unit *unit, const struct move *move, struct str label, int64_t moved_seq,
	struct failure *f)
{
	const struct item *item = move->item;
	bool is_blocking = move->target == ROLE_BLOCKED;
	bool drops_claim = move->target == ROLE_TERMINAL && item->claim_by != 0;
	int64_t prev_role = item->role;

	return tx_run(unit->tx, f, drops_claim ? SQL_APPLY_UNCLAIMED : SQL_APPLY, "iiossii", item->n,
		       (int64_t)move->target, is_blocking ? &prev_role : NULL, label,
		       is_blocking ? item->label : STR_NONE, unit->tx->snapshot.now, moved_seq) < 0
		? -1
		: 0;
}

/* ---- claim ---- */

static int settle_claim(struct unit *unit, const struct move *move, struct failure *f)
{
	const struct item *item = move->item;
	bool is_cascade = move->cascade != CASCADE_NONE;

	if (item->claim_by == 0)
		return 0;
	if (!claim_is_live(item, unit->tx->snapshot.now) && move->target != ROLE_TERMINAL)
		return claim_note_lapse(unit->tx, item, f);
	if (!claim_is_live(item, unit->tx->snapshot.now)) /* its columns are gone already */
		return claim_has_new_lapse(unit->tx, item) ? claim_expired_event(unit->tx, item, f) : 0;
	if (move->target == ROLE_TERMINAL)
		return claim_released_event(unit->tx, item, "cleared",
			is_cascade ? "cascade" : trigger_name(move->trigger), STR_NONE, f);
	return is_cascade ? 0 : claim_touch(unit->tx, unit->call, item, f);
}

/* ---- resources and credentials ---- */

static bool names_resource(const struct schema *schema, struct str key)
{
	for (size_t i = 0; i < schema->resource_count; i++)
		if (str_eq(schema->resources[i].key, key))
			return true;
	return false;
}

/* What the transition used: the caller's own words, and on entering work every resource of the schema. */
static struct str credentials_of(struct arena *arena, const struct move *move, const struct manner *manner)
{
	bool is_entering = move->target == ROLE_WORK;
	struct json_writer w;
	struct buf text;

	if (manner->credential_count == 0 && !(is_entering && move->schema.resource_count > 0))
		return STR_NONE;
	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	for (size_t i = 0; i < move->schema.resource_count && is_entering; i++)
		jw_str(&w, move->schema.resources[i].key);
	for (size_t i = 0; i < manner->credential_count; i++)
		if (!is_entering || !names_resource(&move->schema, manner->credentials[i]))
			jw_str(&w, manner->credentials[i]);
	jw_array_end(&w);
	return buf_str(&text);
}

static int settle_leases(struct unit *unit, const struct move *move, struct failure *f)
{
	if (move->item->role == ROLE_WORK)
		return lease_release_all(unit->tx, move->item, LEASE_RELEASED, f);
	if (move->target == ROLE_WORK)
		return lease_acquire(unit->tx, move->item, &move->schema, f);
	return 0;
}

/* ---- history ---- */

static int record(struct unit *unit, const struct move *move, const struct manner *manner,
	const struct applied *applied, int64_t *moved_seq, struct failure *f)
{
	const struct item *item = move->item;
	bool is_cascade = move->cascade != CASCADE_NONE;
	struct json_writer w;
	struct buf text;

	buf_init(&text, unit->tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_ktext(&w, "trigger", is_cascade ? "cascade" : trigger_name(move->trigger));
	jw_ktext(&w, "from", role_name(applied->from));
	jw_ktext(&w, "to", role_name(applied->to));
	jw_kstr_opt(&w, "fromLabel", item->label);
	jw_kstr_opt(&w, "toLabel", applied->label);
	jw_ktext(&w, "origin", is_cascade ? "cascade" : "user");
	jw_kstr_opt(&w, "summary", manner->summary);
	if (applied->credentials.p != NULL)
		jw_kraw(&w, "consumedCredentials", applied->credentials);
	jw_object_end(&w);
	return event_add_transition(unit->tx, item->root_n, item->n, item->id, moved_seq, buf_str(&text), f);
}

int unit_apply(struct unit *unit, struct move *move, const struct manner *manner, struct applied *out,
	struct failure *f)
{
	const struct item *item = move->item;
	struct applied applied = {.from = item->role, .to = move->target, .version = item->version + 1};
	int64_t moved_seq = item->moved_seq;

	if (label_after(unit, move, &applied.label, f) != 0)
		return -1;
	applied.credentials = credentials_of(unit->tx->snapshot.arena, move, manner);
	if (record(unit, move, manner, &applied, &moved_seq, f) != 0 ||
		write_columns(unit, move, applied.label, moved_seq, f) != 0 ||
		tally_move(unit->tx, item->parent_n, item->root_n, applied.from, applied.to, f) != 0 ||
		settle_leases(unit, move, f) != 0 ||
		settle_claim(unit, move, f) != 0 ||
		dependency_unblocked(&unit->tx->snapshot, item->n, applied.from, applied.to,
			&unit->unblocked, f) != 0)
		return -1;
	*out = applied;
	return 0;
}
