/* The DEPENDENCY gate. A threshold is the rank that a blocker must have reached; blocked has rank -1 and so
 * satisfies nothing. */
#include "work/dependency_gate.h"

#include "base/limits.h"

/* by dep_to, then by primary key */
SQL(SQL_BLOCKERS,
	"SELECT b.id, b.role, b.root_n FROM dep d LEFT JOIN item b ON b.n = d.from_n"
	" WHERE d.to_n = $1 AND d.type = 0 AND (b.n IS NULL OR b.role < d.threshold) ORDER BY d.n");
SQL(SQL_IS_BLOCKED,
	"SELECT 1 FROM dep d LEFT JOIN item b ON b.n = d.from_n"
	" WHERE d.to_n = $1 AND d.type = 0 AND (b.n IS NULL OR b.role < d.threshold) LIMIT 1");
/* by (from_n, to_n, type): edges that the new rank satisfies and the old one did not */
SQL(SQL_SATISFIED,
	"SELECT d.to_n FROM dep d WHERE d.from_n = $1 AND d.type = 0 AND d.threshold > $2 AND d.threshold <= $3"
	" ORDER BY d.to_n");

int dependency_gate(struct snapshot *s, struct call *call, int64_t item_n, struct blockers *out,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct blockers blockers = {0};
	int rc;

	if (query(s, &q, f, SQL_BLOCKERS, "i", item_n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct blocker blocker = {.role = (enum role)col_int(&q, 1)};

		blocker.is_known = !col_is_null(&q, 1) && caller_reads_root(call->caller, col_int(&q, 2));
		if (blocker.is_known)
			blocker.id = col_id(&q, 0);
		blockers.v = arena_grow(s->arena, blockers.v, blockers.n * sizeof(blocker),
			(blockers.n + 1) * sizeof(blocker));
		blockers.v[blockers.n++] = blocker;
	}
	if (rc == 0)
		*out = blockers;
	return rc;
}

int dependency_is_blocked(struct snapshot *s, int64_t item_n, struct failure *f)
{
	int64_t one;

	return query_int(s, &one, f, SQL_IS_BLOCKED, "i", item_n);
}

void blockers_write(struct json_writer *w, struct call *call, const struct blockers *blockers)
{
	jw_karray(w, "blockers");
	for (size_t i = 0; i < blockers->n; i++) {
		const struct blocker *blocker = &blockers->v[i];

		jw_object_begin(w);
		if (blocker->is_known)
			jw_id(w, call, "id", blocker->id);
		else
			jw_kraw(w, "id", STR("null"));
		jw_ktext(w, "role", blocker->is_known ? role_name(blocker->role) : "unknown");
		jw_object_end(w);
	}
	jw_array_end(w);
}

static bool holds(const struct unblocked *list, int64_t n)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i] == n)
			return true;
	return false;
}

int dependency_unblocked(struct snapshot *s, int64_t item_n, enum role from, enum role to,
	struct unblocked *add_to, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (to <= from)
		return 0;
	if (query(s, &q, f, SQL_SATISFIED, "iii", item_n, (int64_t)from, (int64_t)to) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		int64_t target = col_int(&q, 0);
		int blocked = dependency_is_blocked(s, target, f);

		if (blocked < 0)
			return -1;
		if (blocked || holds(add_to, target))
			continue;
		if (add_to->n == LIMIT_UNBLOCKED_ITEMS) {
			add_to->is_cut = true;
			return 0;
		}
		add_to->v = arena_grow(s->arena, add_to->v, add_to->n * sizeof(target),
			(add_to->n + 1) * sizeof(target));
		add_to->v[add_to->n++] = target;
	}
	return rc;
}

int unblocked_write(struct json_writer *w, struct snapshot *s, struct call *call,
	const struct unblocked *unblocked, struct failure *f)
{
	bool is_open = false;

	for (size_t i = 0; i < unblocked->n; i++) {
		struct item item;
		int rc = item_load_ref(s, unblocked->v[i], &item, f);

		if (rc < 0)
			return -1;
		if (rc == 0 || item.role == ROLE_TERMINAL || !caller_reads_root(call->caller, item.root_n))
			continue;
		if (!is_open)
			jw_karray(w, "unblockedItems");
		is_open = true;
		jw_object_begin(w);
		jw_id(w, call, "itemId", item.id);
		jw_kstr(w, "title", item.title);
		jw_ktext(w, "role", role_name(item.role));
		jw_object_end(w);
	}
	if (is_open)
		jw_array_end(w);
	if (unblocked->is_cut)
		warn(&call->warnings, "unblocked_cut", STR_NONE,
			"unblockedItems lists the first %d; more items may be ready now.",
			LIMIT_UNBLOCKED_ITEMS);
	return 0;
}
