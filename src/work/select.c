/* Selection: where candidates can be, and the tests that each must pass. */
#include "work/select.h"

#include "work/dependency_gate.h"
#include "work/stream.h"

#define RETRY_AFTER_MS 30000

/* by item_children */
SQL(SQL_CHILDREN, "SELECT " CANDIDATE_COLUMNS " FROM item WHERE parent_n = $1 ORDER BY n LIMIT $2");
/* by primary key */
SQL(SQL_CANDIDATE, "SELECT " CANDIDATE_COLUMNS " FROM item WHERE n = $1");
/* by item_ready, a hop per project */
SQL(SQL_NEXT_ROOT,
	"SELECT root_n FROM item WHERE root_n <> n AND role <> 3 AND root_n > $1 ORDER BY root_n LIMIT 1");

struct selection {
	struct snapshot *s;
	struct call *call;
	const struct wish *wish;
	struct filter filter;
	bool is_plain;	     /* nothing is left to ask SQL about a candidate */
	bool tests_ancestor; /* candidates come from the whole project */
	unsigned roles;	     /* bits, by rank + 1 */
	unsigned priorities; /* bits */
	int64_t me;
	struct streams streams;
	struct above *above;
	struct verdict *path; /* room for one walk up */
	struct sql *point; /* made when first needed */
	struct failure *f;
};

/* ---- what stands above a candidate, remembered by parent ---- */

struct verdict {
	int64_t n; /* 0: free slot */
	bool is_held;  /* it, or something above it, is claimed so that it matters */
	bool is_below; /* it is the wanted ancestor or below it */
};

struct above {
	struct verdict *slots;
	size_t room, used; /* room is a power of two */
};

static struct verdict *slot_of(const struct above *above, int64_t n)
{
	size_t at = (size_t)((uint64_t)n * UINT64_C(0x9E3779B97F4A7C15)) & (above->room - 1);

	while (above->slots[at].n != 0 && above->slots[at].n != n)
		at = (at + 1) & (above->room - 1);
	return &above->slots[at];
}

static void remember(struct selection *sel, struct verdict verdict)
{
	struct above *above = sel->above;

	if (above->used * 2 >= above->room) {
		struct above bigger = {.room = above->room == 0 ? 64 : above->room * 4};

		bigger.slots = ARENA_ARRAY(sel->s->arena, struct verdict, bigger.room);
		for (size_t i = 0; i < above->room; i++)
			if (above->slots[i].n != 0)
				*slot_of(&bigger, above->slots[i].n) = above->slots[i];
		bigger.used = above->used;
		*above = bigger;
	}
	*slot_of(above, verdict.n) = verdict;
	above->used++;
}

static int load_candidate(struct snapshot *s, int64_t n, struct candidate *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_CANDIDATE, "i", n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1)
		candidate_read(&q, out);
	return rc;
}

static bool claim_matters(const struct selection *sel, const struct candidate *item)
{
	if (item->claim_by == 0 || item->claim_until <= sel->s->now || sel->wish->include_claimed)
		return false;
	return !(sel->wish->is_claim && item->claim_by == sel->me);
}

/* Walk up from `n` to the root or to what is known, then write the verdicts down. */
static int look_above(struct selection *sel, int64_t n, struct verdict *out)
{
	struct verdict *path = sel->path;
	struct verdict known = {0};
	int depth = 0;

	while (n != 0 && depth <= LIMIT_DEPTH) {
		struct verdict *seen = sel->above->room == 0 ? NULL : slot_of(sel->above, n);
		struct candidate item;
		int rc;

		if (seen != NULL && seen->n == n) {
			known = *seen;
			break;
		}
		rc = load_candidate(sel->s, n, &item, sel->f);
		if (rc < 0)
			return -1;
		if (rc == 0)
			break;
		path[depth++] = (struct verdict){
			.n = n, .is_held = claim_matters(sel, &item), .is_below = n == sel->filter.ancestor_n};
		n = item.parent_n;
	}
	while (depth > 0) {
		depth--;
		path[depth].is_held = path[depth].is_held || known.is_held;
		path[depth].is_below = path[depth].is_below || known.is_below;
		known = path[depth];
		remember(sel, known);
	}
	*out = known;
	return 0;
}

/* ---- the tests of a candidate ---- */

/* The filters as one point read; its first parameter is the candidate. */
static struct sql *point_read(struct selection *sel)
{
	struct filter here = sel->filter;
	struct sql *sql = ARENA_NEW(sel->s->arena, struct sql);

	here.ancestor_n = 0; /* looked at already */
	sql_init(sql, sel->s->arena);
	sql_add(sql, filter_needs_text(&here) ? "SELECT 1 FROM item i JOIN item_text t ON t.n = i.n WHERE i.n = "
					      : "SELECT 1 FROM item i WHERE i.n = ");
	sql_int(sql, 0);
	filter_sql(&here, sql);
	return sql;
}

static int passes_sql(struct selection *sel, int64_t n)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (sel->point == NULL)
		sel->point = point_read(sel);
	sel->point->params[0].number = n;
	if (query_sql(sel->s, &q, sel->f, sel->point) != 0)
		return -1;
	rc = query_next(&q, sel->f);
	if (rc == 1 && filter_needs_test(&sel->filter))
		rc = filter_test(sel->s, sel->call, &sel->filter, n, sel->f);
	return rc;
}

/* The filters: 1 matches. */
static int matches(struct selection *sel, const struct candidate *item, const struct verdict *above)
{
	const struct filter *filter = &sel->filter;

	if ((sel->roles & 1u << (item->role + 1)) == 0 || (sel->priorities & 1u << item->priority) == 0 ||
		(filter->parent_n != 0 && item->parent_n != filter->parent_n) ||
		(sel->tests_ancestor && !above->is_below) ||
		!caller_reads_root(sel->call->caller, item->root_n))
		return 0;
	return sel->is_plain ? 1 : passes_sql(sel, item->n);
}

static int is_writable(struct selection *sel, int64_t n)
{
	const struct seat_scope *seat = &sel->call->caller->seat;

	if (!sel->wish->is_claim || seat->run_n == 0)
		return 1;
	return item_is_below(sel->s, n, seat->scope_n != 0 ? seat->scope_n : seat->root_n, sel->f);
}

/* 1 eligible, 0 excluded and counted, -1 failure. */
static int is_eligible(struct selection *sel, const struct candidate *item, const struct verdict *above,
	struct selected *out)
{
	bool is_live = item->claim_by != 0 && item->claim_until > sel->s->now;
	int rc = 0;

	if (is_live && !sel->wish->include_claimed) {
		out->claimed++;
		return 0;
	}
	if (above->is_held) {
		out->ancestor_claimed++;
		return 0;
	}
	if (item->role != ROLE_BLOCKED)
		rc = dependency_is_blocked(sel->s, item->n, sel->f);
	if (rc == 1)
		out->dependency_blocked++;
	return rc < 0 ? -1 : rc == 0;
}

static int test(struct selection *sel, const struct candidate *item, struct selected *out)
{
	struct verdict above = {0};
	int rc;

	if (item->parent_n != 0 && look_above(sel, item->parent_n, &above) != 0)
		return -1;
	if ((rc = matches(sel, item, &above)) != 1 || (rc = is_writable(sel, item->n)) != 1)
		return rc;
	out->matched++;
	if ((rc = is_eligible(sel, item, &above, out)) != 1)
		return rc;
	out->v[out->n++] = item->n;
	return 0;
}

/* ---- where candidates can be ---- */

struct list {
	struct candidate *v;
	size_t n, room;
};

static void list_add(struct selection *sel, struct list *list, const struct candidate *item)
{
	if (list->n == list->room) {
		size_t room = list->room == 0 ? 32 : list->room * 2;

		list->v = arena_grow(sel->s->arena, list->v, list->room * sizeof(*item), room * sizeof(*item));
		list->room = room;
	}
	list->v[list->n++] = *item;
}

/* Children of `parent_n`, behind what the list has: 1 all of them, 0 the list would grow too long. */
static int add_children(struct selection *sel, int64_t parent_n, struct list *list)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(sel->s, &q, sel->f, SQL_CHILDREN, "ii", parent_n, (int64_t)LIMIT_SELECT_WALK + 1) != 0)
		return -1;
	while ((rc = query_next(&q, sel->f)) == 1) {
		struct candidate item;

		candidate_read(&q, &item);
		if (list->n >= LIMIT_SELECT_WALK)
			return 0;
		list_add(sel, list, &item);
	}
	return rc < 0 ? -1 : 1;
}

/* 1 the whole subtree is in the list, 0 it is too large. */
static int collect_subtree(struct selection *sel, int64_t top_n, struct list *list)
{
	int rc = add_children(sel, top_n, list);

	for (size_t i = 0; rc == 1 && i < list->n; i++)
		rc = add_children(sel, list->v[i].n, list);
	return rc;
}

static int add_ranges(struct selection *sel, enum stream_of of, int64_t root_n, unsigned roles)
{
	for (int role = ROLE_BLOCKED; role < ROLE_TERMINAL; role++)
		if ((roles & 1u << (role + 1)) &&
			streams_add(&sel->streams, of, root_n, (enum role)role, sel->priorities, sel->f) != 0)
			return -1;
	return 0;
}

static int add_root_itself(struct selection *sel, int64_t root_n)
{
	struct candidate *item = ARENA_NEW(sel->s->arena, struct candidate);
	int rc = load_candidate(sel->s, root_n, item, sel->f);

	return rc != 1 ? rc : streams_add_list(&sel->streams, item, 1, sel->f);
}

static int add_project(struct selection *sel, int64_t root_n)
{
	if (add_root_itself(sel, root_n) != 0)
		return -1;
	return sel->filter.is_roots_only ? 0 : add_ranges(sel, STREAM_PROJECT, root_n, sel->roles);
}

/* Every project: what is queued comes from one range. Of the other roles, which few ask for, there is one range for
 * each project. Projects without open items below their root cost nothing: the hop passes over them. */
static int add_everything(struct selection *sel)
{
	const unsigned queue = 1u << (ROLE_QUEUE + 1);
	unsigned others = sel->roles & ~queue;
	int64_t root_n = 0;
	int rc;

	if (sel->filter.is_roots_only)
		return add_ranges(sel, STREAM_ROOTS, 0, sel->roles);
	if (add_ranges(sel, STREAM_QUEUE, 0, sel->roles & queue) != 0)
		return -1;
	if (others == 0)
		return 0;
	if (add_ranges(sel, STREAM_ROOTS, 0, others) != 0)
		return -1;
	while ((rc = query_int(sel->s, &root_n, sel->f, SQL_NEXT_ROOT, "i", root_n)) == 1)
		if (add_ranges(sel, STREAM_PROJECT, root_n, others) != 0)
			return -1;
	return rc;
}

static int add_readable(struct selection *sel)
{
	const struct caller *caller = sel->call->caller;

	if (caller->roots == NULL)
		return add_everything(sel);
	for (size_t i = 0; i < caller->root_count; i++)
		if (add_project(sel, caller->roots[i]) != 0)
			return -1;
	return 0;
}

/* Below an item: its subtree when that is small, else the project, each candidate looked up from below. */
static int add_below(struct selection *sel)
{
	const struct filter *filter = &sel->filter;
	int64_t top_n = filter->parent_n != 0 ? filter->parent_n : filter->ancestor_n;
	struct list list = {0};
	struct candidate top;
	int rc;

	rc = load_candidate(sel->s, top_n, &top, sel->f);
	if (rc != 1)
		return rc;
	sel->tests_ancestor = filter->ancestor_n != 0 && (filter->parent_n != 0 || top.parent_n != 0);
	if (top.parent_n == 0 && filter->parent_n == 0) /* a whole project */
		return add_ranges(sel, STREAM_PROJECT, top.root_n, sel->roles);
	rc = filter->parent_n != 0 ? add_children(sel, top_n, &list) : collect_subtree(sel, top_n, &list);
	if (rc < 0)
		return -1;
	if (rc == 1)
		return streams_add_list(&sel->streams, list.v, list.n, sel->f);
	return add_ranges(sel, STREAM_PROJECT, top.root_n, sel->roles);
}

/* by item_text_type, and by (tag, item_n) */
SQL(SQL_OF_TYPE, "SELECT n FROM item_text WHERE type = $1 ORDER BY n LIMIT $2");
SQL(SQL_OF_TAG, "SELECT item_n FROM item_tag WHERE tag = $1 ORDER BY item_n LIMIT $2");

static bool list_holds(const struct list *list, int64_t n)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i].n == n)
			return true;
	return false;
}

/* Items with this type or tag: 1 all of them, 0 the list would grow too long. */
static int add_having(struct selection *sel, const char *sql, struct str value, struct list *list)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(sel->s, &q, sel->f, sql, "si", value, (int64_t)LIMIT_SELECT_WALK + 1) != 0)
		return -1;
	while ((rc = query_next(&q, sel->f)) == 1) {
		struct candidate item;
		int64_t n = col_int(&q, 0);

		if (list->n >= LIMIT_SELECT_WALK)
			return 0;
		if (list_holds(list, n))
			continue;
		rc = load_candidate(sel->s, n, &item, sel->f);
		if (rc < 0)
			return -1;
		if (rc == 1)
			list_add(sel, list, &item);
	}
	return rc < 0 ? -1 : 1;
}

/* A rare type or tag names the candidates itself: 1 they were added, 0 it is not rare. */
static int add_rare(struct selection *sel)
{
	const struct filter_args *in = sel->wish->filter;
	bool is_by_type = in->types.set;
	const struct arg_strs *values = is_by_type ? &in->types : &in->tags;
	struct list list = {0};
	int rc = values->set;

	for (size_t i = 0; i < values->n && rc == 1; i++)
		rc = add_having(sel, is_by_type ? SQL_OF_TYPE : SQL_OF_TAG,
			is_by_type ? values->v[i] : str_lower(sel->s->arena, values->v[i]), &list);
	if (rc != 1)
		return rc;
	sel->tests_ancestor = sel->filter.ancestor_n != 0;
	return streams_add_list(&sel->streams, list.v, list.n, sel->f) != 0 ? -1 : 1;
}

static int add_sources(struct selection *sel)
{
	const struct filter *filter = &sel->filter;
	int rc = add_rare(sel);

	if (rc != 0)
		return rc < 0 ? -1 : 0;

	if (filter->parent_n != 0 || filter->ancestor_n != 0)
		return filter->is_roots_only ? 0 : add_below(sel);
	if (filter->root_n != 0)
		return add_project(sel, filter->root_n);
	if (sel->wish->is_claim && sel->call->caller->seat.run_n != 0) /* it may write nowhere else */
		return add_project(sel, sel->call->caller->seat.root_n);
	return add_readable(sel);
}

/* ---- selection ---- */

static bool is_plain(const struct filter_args *in)
{
	int places = in->parent.set + in->ancestor.set + in->root.set;

	return places <= 1 && !in->types.set && !in->tags.set && !in->tags_all.set && !in->traits.set &&
		!in->labels.set && !in->complexity_min.set && !in->complexity_max.set &&
		!in->created_after.set && !in->created_before.set && !in->modified_after.set &&
		!in->modified_before.set && !in->role_changed_after.set && !in->role_changed_before.set;
}

static unsigned bits_of(const struct arg_ints *values, int shift, unsigned otherwise)
{
	unsigned bits = 0;

	for (size_t i = 0; i < values->n; i++)
		bits |= 1u << (values->v[i] + shift);
	return values->set ? bits : otherwise;
}

/* The filter without its ancestor, which is looked at here: the general form probes the size of the subtree. */
static int prepare(struct selection *sel, struct filter_args *room)
{
	const struct filter_args *in = sel->wish->filter;
	struct item top;

	*room = *in;
	room->ancestor = (struct arg_str){.set = false};
	if (filter_prepare(sel->s, sel->call, room, sel->wish->path, &sel->filter, sel->f) != 0 ||
		caller_row(sel->s, sel->call, &sel->me, sel->f) != 0)
		return -1;
	if (!in->ancestor.set)
		return 0;
	if (item_find(sel->s, sel->call, in->ancestor.v,
		    str_printf(sel->f->arena, "%.*sancestorId", STRF(sel->wish->path)), &top, sel->f) != 0)
		return -1;
	sel->filter.ancestor_n = top.n;
	return 0;
}

static int look_at_all(struct selection *sel, struct selected *out)
{
	for (int64_t looked_at = 0; out->n < sel->wish->limit; looked_at++) {
		struct candidate item;
		int rc = streams_next(&sel->streams, &item, sel->f);

		if (rc != 1)
			return rc;
		out->is_cut = looked_at == LIMIT_SELECT_SCAN;
		if (out->is_cut)
			return 0;
		if (test(sel, &item, out) != 0)
			return -1;
	}
	return 0;
}

int select_items(struct snapshot *s, struct call *call, const struct wish *wish, struct selected *out,
	struct failure *f)
{
	struct above above = {0};
	struct selection sel = {.s = s, .call = call, .wish = wish, .above = &above, .f = f};
	struct selected found = {.v = ARENA_ARRAY(s->arena, int64_t, wish->limit + 1)};
	struct filter_args filter;
	int rc;

	sel.path = ARENA_ARRAY(s->arena, struct verdict, LIMIT_DEPTH + 1);
	if (prepare(&sel, &filter) != 0)
		return -1;
	sel.roles = bits_of(&wish->filter->roles, 1, 1u << (ROLE_QUEUE + 1));
	sel.priorities = bits_of(&wish->filter->priorities, 0, 7);
	sel.is_plain = is_plain(wish->filter);
	sel.streams = (struct streams){.s = s, .order = wish->order};
	rc = add_sources(&sel);
	if (rc == 0)
		rc = look_at_all(&sel, &found);
	streams_finish(&sel.streams);
	if (rc == 0)
		*out = found;
	return rc;
}

void selected_write_none(struct json_writer *w, const struct selected *selected)
{
	if (selected->matched == 0 && !selected->is_cut) {
		jw_ktext(w, "reason", "queue_empty");
		return;
	}
	jw_ktext(w, "reason", "none_eligible");
	jw_kobject(w, "excluded");
	jw_kint_opt(w, "claimed", selected->claimed);
	jw_kint_opt(w, "ancestorClaimed", selected->ancestor_claimed);
	jw_kint_opt(w, "dependencyBlocked", selected->dependency_blocked);
	/* The search ended early: the counts are what it saw, and there may be something behind. */
	jw_kbool_opt(w, "isPartial", selected->is_cut);
	jw_object_end(w);
	jw_kint(w, "retryAfterMs", RETRY_AFTER_MS);
}
