/* items_write reroot: an item and all below it get another parent, and with it perhaps another project. */
#include "work/structure.h"
#include <inttypes.h>

/* ---- what stands against it ---- */

/* The closed path of parents that the move would make: item, …, new parent, item. */
static int fail_parent_cycle(struct snapshot *s, const struct item *item, const struct item *parent, struct failure *f)
{
	struct id ids[LIMIT_DEPTH + 2];
	struct item step = *parent;
	struct json_writer w;
	struct buf path;
	size_t n = 0;

	for (; step.n != item->n && n <= LIMIT_DEPTH; n++) {
		ids[n] = step.id;
		if (item_load(s, step.parent_n, &step, f) < 0)
			return -1;
	}
	(void)fail(f, FAIL_CYCLE_DETECTED, "The new parent stands below the item itself.");
	buf_init(&path, f->arena, SIZE_MAX);
	json_writer_init(&w, &path);
	jw_array_begin(&w);
	jw_str(&w, id_str(f->arena, item->id));
	while (n > 0)
		jw_str(&w, id_str(f->arena, ids[--n]));
	jw_str(&w, id_str(f->arena, item->id));
	jw_array_end(&w);
	fail_detail_raw(f, "path", buf_str(&path));
	return -1;
}

SQL(SQL_ROOT_DOCUMENTS, "SELECT count(*) FROM document WHERE root_n = $1");
SQL(SQL_ROOT_RUNS, "SELECT count(*) FROM run WHERE root_n = $1");
SQL(SQL_ROOT_CONFIG, "SELECT count(*) FROM config WHERE root_n = $1");

/* Documents, runs and rules belong to a root: as a part of another project nothing could reach them. */
static int check_root(struct snapshot *s, const struct item *item, struct str path, struct failure *f)
{
	int64_t documents, runs, configs;

	if (query_int(s, &documents, f, SQL_ROOT_DOCUMENTS, "i", item->n) < 0 ||
		query_int(s, &runs, f, SQL_ROOT_RUNS, "i", item->n) < 0 ||
		query_int(s, &configs, f, SQL_ROOT_CONFIG, "i", item->n) < 0)
		return -1;
	if (documents + runs + configs == 0)
		return 0;
	(void)fail_field(f, path, STR_NONE,
		"the item is a project root with %" PRId64 " document%s, %" PRId64 " run%s and %s rules of its own",
		documents, plural(documents), runs, plural(runs), configs > 0 ? "" : "no");
	f->is_shape = false;
	return -1;
}

static int check_target(struct tx *tx, struct call *call, const struct item *item, const struct item *parent,
	struct str path, bool *reopens, struct failure *f)
{
	struct snapshot *s = &tx->snapshot;
	int below;

	if (parent->n == item->n)
		return fail_field(f, path, STR_NONE, "an item cannot be its own parent");
	below = item_is_below(s, parent->n, item->n, f);
	if (below != 0)
		return below < 0 ? -1 : fail_parent_cycle(s, item, parent, f);
	if (item_writable(s, call, parent, f) != 0)
		return -1;
	if (item->depth == 0 && check_root(s, item, path, f) != 0)
		return -1;
	return structure_admits(s, call, parent, "reparent", reopens, f);
}

/* ---- the subtree ---- */

struct moved {
	int64_t n, depth;
	enum role role;
};

SQL(SQL_CHILDREN, "SELECT n, role FROM item WHERE parent_n = $1 ORDER BY n");

static int add_children(struct snapshot *s, const struct moved *of, struct moved **list, size_t *n, size_t *cap,
	struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_CHILDREN, "i", of->n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (*n >= LIMIT_MOVE_ITEMS) {
			(void)fail(f, FAIL_PAYLOAD_TOO_LARGE, "One reroot moves at most %d items.",
				LIMIT_MOVE_ITEMS);
			fail_detail_int(f, "max", LIMIT_MOVE_ITEMS);
			fail_detail_int(f, "actual", (int64_t)*n + 1);
			return -1;
		}
		if (*n == *cap) {
			*list = arena_grow(s->arena, *list, *cap * sizeof(**list), *cap * 2 * sizeof(**list));
			*cap *= 2;
		}
		(*list)[(*n)++] =
			(struct moved){.n = col_int(&q, 0), .depth = of->depth + 1, .role = (enum role)col_int(&q, 1)};
	}
	return rc;
}

SQL(SQL_MOVE_BELOW,
	"UPDATE item SET root_n = $2, depth = $3, version = version + 1, modified_at = $4 WHERE n = $1");

/* Everything below gets its depth and project; *counts is of all that moved. */
static int move_below(struct tx *tx, const struct item *item, struct tally *counts, int64_t *moved,
	struct failure *f)
{
	size_t cap = 64;
	size_t n = 1;
	struct moved *list = ARENA_ARRAY(tx->snapshot.arena, struct moved, cap);

	memset(counts, 0, sizeof(*counts));
	list[0] = (struct moved){.n = item->n, .depth = item->depth, .role = item->role};
	for (size_t i = 0; i < n; i++) {
		struct moved one = list[i];

		if (add_children(&tx->snapshot, &one, &list, &n, &cap, f) != 0)
			return -1;
		counts->by_role[tally_index(one.role)]++;
		if (i > 0 &&
			tx_run(tx, f, SQL_MOVE_BELOW, "iiii", one.n, item->root_n, one.depth,
				tx->snapshot.now) < 0)
			return -1;
	}
	*moved = (int64_t)n;
	return 0;
}

SQL(SQL_MOVE_ITEM,
	"UPDATE item SET parent_n = $2, root_n = $3, depth = $4, version = version + 1, modified_at = $5"
	" WHERE n = $1");
SQL(SQL_ROOT_TALLY_DROP, "DELETE FROM root_tally WHERE root_n = $1");

/* The counts of parents hold the item alone, those of projects all that moved with it. */
static int move_counts(struct tx *tx, const struct item *from, const struct item *to, const struct tally *counts,
	struct failure *f)
{
	struct tally one = {0};

	one.by_role[tally_index(to->role)] = 1;
	if (tally_add(tx, from->parent_n, from->root_n, from->role, -1, f) != 0 ||
		tally_shift(tx, from->root_n, &one, 1, f) != 0 ||
		tally_shift(tx, from->root_n, counts, -1, f) != 0 ||
		tally_add(tx, to->parent_n, to->root_n, to->role, 1, f) != 0 ||
		tally_shift(tx, to->root_n, &one, -1, f) != 0 ||
		tally_shift(tx, to->root_n, counts, 1, f) != 0)
		return -1;
	if (from->root_n == from->n && to->root_n != to->n)
		return tx_run(tx, f, SQL_ROOT_TALLY_DROP, "i", from->n) < 0 ? -1 : 0;
	return 0;
}

/* ---- on record ---- */

static int moved_event(struct tx *tx, const struct item *from, const struct item *to, const char *direction,
	int64_t root_n, struct failure *f)
{
	struct json_writer w;
	struct buf data;

	buf_init(&data, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	jw_ktext(&w, "direction", direction);
	if (from->parent_n != 0)
		jw_kstr(&w, "fromParentId", id_str(tx->snapshot.arena, from->parent_id));
	if (to->parent_n != 0)
		jw_kstr(&w, "toParentId", id_str(tx->snapshot.arena, to->parent_id));
	jw_object_end(&w);
	return event_add(tx, EVENT_ITEM_REPARENTED, root_n, to->n, to->id, buf_str(&data), f);
}

/* Followers of the old project hear that it left, those of the new one that it came. */
static int moved_events(struct tx *tx, const struct item *from, const struct item *to, struct failure *f)
{
	if (from->root_n != to->root_n && moved_event(tx, from, to, "left", from->root_n, f) != 0)
		return -1;
	return moved_event(tx, from, to, "entered", to->root_n, f);
}

static void set_place(struct item *item, const struct item *parent)
{
	item->parent_n = parent == NULL ? 0 : parent->n;
	item->parent_id = parent == NULL ? (struct id){0} : parent->id;
	item->root_n = parent == NULL ? item->n : parent->root_n;
	item->root_id = parent == NULL ? item->id : parent->root_id;
	item->depth = parent == NULL ? 0 : parent->depth + 1;
}

static int fail_leaving_scope(struct failure *f, const struct item *item)
{
	(void)fail(f, FAIL_FORBIDDEN, "Your seat's run does not include new projects.");
	fail_detail_str(f, "scope", STR("root"));
	fail_detail_str(f, "required", id_str(f->arena, item->root_id));
	return -1;
}

int structure_move(struct tx *tx, struct call *call, struct item *item, const struct arg_str *parent_text,
	struct str path, int64_t *moved, int64_t *reopened_parent_n, struct failure *f)
{
	const struct item from = *item;
	const struct item *parent = NULL;
	struct item parent_row;
	struct tally counts;
	bool reopens = false;

	*moved = 0;
	*reopened_parent_n = 0;
	if (!parent_text->null) {
		if (item_find(&tx->snapshot, call, parent_text->v, path, &parent_row, f) != 0)
			return -1;
		parent = &parent_row;
	}
	if (from.parent_n == (parent == NULL ? 0 : parent->n))
		return 0;
	if (parent == NULL && call->caller->seat.run_n != 0)
		return fail_leaving_scope(f, item);
	if (parent != NULL && check_target(tx, call, item, parent, path, &reopens, f) != 0)
		return -1;
	set_place(item, parent);
	item->version++;
	item->modified_at = tx->snapshot.now;
	if (tx_run(tx, f, SQL_MOVE_ITEM, "ioiii", item->n, item->parent_n == 0 ? NULL : &item->parent_n,
		    item->root_n, item->depth, item->modified_at) < 0 ||
		move_below(tx, item, &counts, moved, f) != 0 || move_counts(tx, &from, item, &counts, f) != 0 ||
		moved_events(tx, &from, item, f) != 0)
		return -1;
	if (reopens && item->role != ROLE_TERMINAL)
		*reopened_parent_n = item->parent_n;
	return 0;
}

int items_reroot(struct tx *tx, struct call *call, const struct reroot_args *in, struct json_writer *out,
	struct failure *f)
{
	int64_t old_parent_n, moved, reopened;
	struct item item;

	if (item_find(&tx->snapshot, call, in->item.v, STR("itemId"), &item, f) != 0 ||
		item_expect(&item, in->expected_version.set, in->expected_version.v, f) != 0 ||
		item_writable(&tx->snapshot, call, &item, f) != 0)
		return -1;
	old_parent_n = item.parent_n;
	if (structure_move(tx, call, &item, &in->parent, STR("parentId"), &moved, &reopened, f) != 0 ||
		claim_touch(tx, call, &item, f) != 0)
		return -1;
	jw_id(out, call, "id", item.id);
	jw_kint(out, "version", item.version);
	if (item.parent_n != 0)
		jw_id(out, call, "parentId", item.parent_id);
	jw_id(out, call, "rootId", item.root_id);
	jw_kint(out, "depth", item.depth);
	jw_kint(out, "moved", moved);
	return structure_follow(tx, call, moved > 0 ? old_parent_n : 0, reopened, out, f);
}
