/* items_write complete_tree: end a whole set of items, each by a unit of its own, blockers before what they
 * block and children before what stands above them.
 *
 * A member that a gate refuses is reported, not fatal; what it blocks inside the set is skipped with it, and so is
 * what stands above it: ending a feature over its open tasks would end its project too, by cascade. A cascade
 * never takes a member's turn away: else the root of a cancelled tree would end labelled "done". */
#include "work/claim.h"
#include "work/unit.h"

#include "base/limits.h"

enum member_state { MEMBER_WAITS, MEMBER_APPLIED, MEMBER_SKIPPED, MEMBER_FAILED };

struct edge {
	size_t to;
	bool is_dependency; /* else: `to` stands above */
	struct edge *next;
};

struct member {
	int64_t n;
	enum member_state state;
	bool is_doomed;	    /* something it depends on, or below it, was refused */
	bool is_ordered;
	size_t waits_for; /* members not ordered yet that must come first */
	struct edge *edges; /* to those that come later */
};

struct tree {
	struct tx *tx;
	struct call *call;
	const struct complete_tree_args *in;
	struct member *members;
	size_t n;
	size_t *order;
	struct json_writer *out;
	struct {
		int64_t completed, skipped, failed;
	} counts;
	struct failure *f;
};

/* ---- which items ---- */

SQL(SQL_CHILD_NUMBERS, /* by item_children */
	"SELECT n FROM item WHERE parent_n = $1 ORDER BY n LIMIT $2");

static int fail_too_many(struct failure *f, int64_t actual)
{
	(void)fail(f, FAIL_PAYLOAD_TOO_LARGE, "The set has %lld items or more; at most %d can be ended at once.",
		(long long)actual, LIMIT_COMPLETE_ITEMS);
	fail_detail_int(f, "max", LIMIT_COMPLETE_ITEMS);
	fail_detail_int(f, "actual", actual);
	return -1;
}

static int add_member(struct tree *tree, int64_t n)
{
	for (size_t i = 0; i < tree->n; i++)
		if (tree->members[i].n == n)
			return 0;
	if (tree->n == LIMIT_COMPLETE_ITEMS)
		return fail_too_many(tree->f, LIMIT_COMPLETE_ITEMS + 1);
	tree->members[tree->n++] = (struct member){.n = n};
	return 0;
}

static int add_children(struct tree *tree, int64_t parent_n)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(&tree->tx->snapshot, &q, tree->f, SQL_CHILD_NUMBERS, "ii", parent_n,
		    (int64_t)LIMIT_COMPLETE_ITEMS + 1) != 0)
		return -1;
	while ((rc = query_next(&q, tree->f)) == 1)
		if (add_member(tree, col_int(&q, 0)) != 0)
			return -1;
	return rc;
}

static int find_one(struct tree *tree, struct str id, struct str path, struct item *out)
{
	if (item_find(&tree->tx->snapshot, tree->call, id, path, out, tree->f) != 0)
		return -1;
	return item_writable(&tree->tx->snapshot, tree->call, out, tree->f);
}

static int collect_subtree(struct tree *tree)
{
	struct item top;
	size_t next = 0;

	if (find_one(tree, tree->in->item.v, STR("itemId"), &top) != 0)
		return -1;
	if (tree->in->include_root.set && !tree->in->include_root.v) {
		if (add_children(tree, top.n) != 0)
			return -1;
	} else if (add_member(tree, top.n) != 0) {
		return -1;
	}
	for (; next < tree->n; next++)
		if (add_children(tree, tree->members[next].n) != 0)
			return -1;
	return 0;
}

static int collect_listed(struct tree *tree)
{
	const struct arg_strs *ids = &tree->in->items;

	for (size_t i = 0; i < ids->n; i++) {
		struct item item;

		if (find_one(tree, ids->v[i], str_printf(tree->f->arena, "itemIds[%zu]", i), &item) != 0 ||
			add_member(tree, item.n) != 0)
			return -1;
	}
	return 0;
}

/* ---- in which order ---- */

SQL(SQL_BLOCKED_BY, /* by (from_n, to_n, type) */
	"SELECT to_n FROM dep WHERE from_n = $1 AND type = 0 ORDER BY to_n");
SQL(SQL_PARENT, "SELECT parent_n FROM item WHERE n = $1");

static size_t index_of(const struct tree *tree, int64_t n)
{
	size_t i = 0;

	while (i < tree->n && tree->members[i].n != n)
		i++;
	return i;
}

static void add_edge(struct tree *tree, size_t from, size_t to, bool is_dependency)
{
	struct edge *edge = ARENA_NEW(tree->call->arena, struct edge);

	*edge = (struct edge){.to = to, .is_dependency = is_dependency, .next = tree->members[from].edges};
	tree->members[from].edges = edge;
	tree->members[to].waits_for++;
}

static int add_dependencies(struct tree *tree, size_t from)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(&tree->tx->snapshot, &q, tree->f, SQL_BLOCKED_BY, "i", tree->members[from].n) != 0)
		return -1;
	while ((rc = query_next(&q, tree->f)) == 1) {
		size_t to = index_of(tree, col_int(&q, 0));

		if (to < tree->n)
			add_edge(tree, from, to, true);
	}
	return rc;
}

/* The nearest member above: it waits for this one, and so does all that it waits in. */
static int add_ancestor(struct tree *tree, size_t from)
{
	int64_t n = tree->members[from].n;

	for (int level = 0; level <= LIMIT_DEPTH; level++) {
		int rc = query_int(&tree->tx->snapshot, &n, tree->f, SQL_PARENT, "i", n);
		size_t above;

		if (rc != 1)
			return rc;
		above = index_of(tree, n);
		if (above == tree->n)
			continue;
		add_edge(tree, from, above, false);
		return 0;
	}
	return 0;
}

/* Kahn: of those that wait for nobody the first by input; members of a cycle last, by input. */
static void sort(struct tree *tree)
{
	size_t done = 0;

	while (done < tree->n) {
		size_t pick = 0;

		while (pick < tree->n && (tree->members[pick].is_ordered || tree->members[pick].waits_for > 0))
			pick++;
		if (pick == tree->n)
			break;
		tree->members[pick].is_ordered = true;
		tree->order[done++] = pick;
		for (const struct edge *edge = tree->members[pick].edges; edge != NULL; edge = edge->next)
			tree->members[edge->to].waits_for--;
	}
	for (size_t i = 0; i < tree->n; i++)
		if (!tree->members[i].is_ordered)
			tree->order[done++] = i;
}

static int find_order(struct tree *tree)
{
	tree->order = ARENA_ARRAY(tree->call->arena, size_t, tree->n + 1);
	for (size_t i = 0; i < tree->n; i++)
		if (add_dependencies(tree, i) != 0 || add_ancestor(tree, i) != 0)
			return -1;
	sort(tree);
	return 0;
}

/* ---- the turns ---- */

/* What stands above a member that stays open, and with `dependants` also what waits for it. */
static void doom(struct tree *tree, const struct member *member, bool dependants)
{
	for (const struct edge *edge = member->edges; edge != NULL; edge = edge->next)
		if (dependants || !edge->is_dependency)
			tree->members[edge->to].is_doomed = true;
}

static void write_head(struct tree *tree, const struct item *item, const char *outcome)
{
	jw_object_begin(tree->out);
	jw_id(tree->out, tree->call, "itemId", item->id);
	jw_kstr(tree->out, "title", item->title);
	jw_ktext(tree->out, "outcome", outcome);
}

static void skip(struct tree *tree, struct member *member, const struct item *item, const char *reason)
{
	member->state = MEMBER_SKIPPED;
	tree->counts.skipped++;
	write_head(tree, item, "skipped");
	jw_ktext(tree->out, "reason", reason);
	jw_object_end(tree->out);
}

static int refuse(struct tree *tree, struct member *member, const struct item *item, struct str word,
	const struct failure *why)
{
	member->state = MEMBER_FAILED;
	tree->counts.failed++;
	/* What the table refuses is met by the dependants at their own gate. */
	doom(tree, member, why->code != FAIL_INVALID_TRANSITION);
	write_head(tree, item, "failed");
	jw_key(tree->out, "error");
	failure_write(why, tree->out);
	jw_object_end(tree->out);
	return rejected_record(tree->tx, item, word, why, tree->f);
}

static int report(struct tree *tree, struct member *member, struct unit *unit, const struct move *move,
	const struct applied *applied)
{
	struct json_writer *out = tree->out;

	member->state = MEMBER_APPLIED;
	tree->counts.completed++;
	write_head(tree, move->item, "applied");
	jw_ktext(out, "previousRole", role_name(applied->from));
	jw_ktext(out, "newRole", role_name(applied->to));
	jw_kstr_opt(out, "statusLabel", applied->label);
	unit_write_cascades(unit, out);
	if (unblocked_write(out, &tree->tx->snapshot, tree->call, &unit->unblocked, tree->f) != 0)
		return -1;
	jw_object_end(out);
	return 0;
}

/* Numbers of the members whose turn is still to come. */
static size_t pending(const struct tree *tree, size_t turn, int64_t *out)
{
	size_t n = 0;

	for (size_t i = turn + 1; i < tree->n; i++)
		out[n++] = tree->members[tree->order[i]].n;
	return n;
}

/* One unit under a savepoint of its own. */
static int run_unit(struct tree *tree, struct member *member, const struct item *item, size_t turn,
	int64_t *pending_room)
{
	enum trigger trigger = tree->in->trigger.set ? (enum trigger)tree->in->trigger.v : TRIGGER_COMPLETE;
	struct manner manner = {.summary = tree->in->summary.v};
	struct ask ask = {.word = str_of(trigger_name(trigger))};
	struct applied applied;
	struct failure why;
	struct move move;
	struct unit unit;

	unit_init(&unit, tree->tx, tree->call);
	unit.pending = pending_room;
	unit.pending_count = pending(tree, turn, pending_room);
	failure_init(&why, tree->f->arena);
	if (tx_mark(tree->tx, tree->f) != 0)
		return -1;
	if (unit_transition(&unit, item, &ask, &manner, &move, &applied, &why) == 0) {
		if (tx_keep(tree->tx, tree->f) != 0)
			return -1;
		return report(tree, member, &unit, &move, &applied);
	}
	if (tx_undo(tree->tx, tree->f) != 0)
		return -1;
	if (tree->call->is_atomic || why.code == FAIL_INTERNAL || why.code == FAIL_STORAGE_FULL) {
		failure_copy(tree->f, tree->f->arena, &why);
		return -1;
	}
	return refuse(tree, member, item, ask.word, &why);
}

static int take_turn(struct tree *tree, size_t turn, int64_t *pending_room)
{
	struct member *member = &tree->members[tree->order[turn]];
	struct item item;
	int rc = item_load(&tree->tx->snapshot, member->n, &item, tree->f);

	if (rc != 1)
		return rc;
	if (item.role == ROLE_TERMINAL) {
		skip(tree, member, &item, "already_terminal");
		return 0;
	}
	if (member->is_doomed) {
		doom(tree, member, true);
		skip(tree, member, &item, "dependency_failed");
		return 0;
	}
	return run_unit(tree, member, &item, turn, pending_room);
}

int items_complete_tree(struct tx *tx, struct call *call, const struct complete_tree_args *in,
	struct json_writer *out, struct failure *f)
{
	struct tree tree = {.tx = tx, .call = call, .in = in, .out = out, .f = f};
	int64_t *pending_room = ARENA_ARRAY(call->arena, int64_t, LIMIT_COMPLETE_ITEMS);

	tree.members = ARENA_ARRAY(call->arena, struct member, LIMIT_COMPLETE_ITEMS);
	if ((in->item.set ? collect_subtree(&tree) : collect_listed(&tree)) != 0 || find_order(&tree) != 0)
		return -1;
	jw_karray(out, "items");
	for (size_t turn = 0; turn < tree.n; turn++)
		if (take_turn(&tree, turn, pending_room) != 0)
			return -1;
	jw_array_end(out);
	jw_kobject(out, "counts");
	jw_kint(out, "total", (int64_t)tree.n);
	jw_kint(out, "completed", tree.counts.completed);
	jw_kint(out, "skipped", tree.counts.skipped);
	jw_kint(out, "gateFailures", tree.counts.failed);
	jw_object_end(out);
	call->is_partial = tree.counts.failed > 0;
	return 0;
}
