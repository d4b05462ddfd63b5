/* Writing edges. */
#include "work/deps.h"

#include "base/limits.h"
#include "work/dependency_gate.h"

const struct word dep_type_words[] = {
	{"BLOCKS", DEP_BLOCKS},
	{"IS_BLOCKED_BY", DEP_IS_BLOCKED_BY},
	{"RELATES_TO", DEP_RELATES_TO},
	WORDS_END,
};
const struct word dep_stored_type_words[] = {
	{"BLOCKS", DEP_BLOCKS},
	{"RELATES_TO", DEP_RELATES_TO},
	WORDS_END,
};

/* ---- create ---- */

static int count_check(const struct arg_strs *list, const char *name, size_t min, size_t max, struct str path,
	struct failure *f)
{
	struct str at = str_printf(f->arena, "%.*s%s", STRF(path), name);

	if (list->n >= min && list->n <= max)
		return 0;
	if (max == 0)
		return fail_field(f, at, STR_NONE, "does not belong to this form");
	if (!list->set)
		return fail_field(f, at, STR_NONE, "is required");
	if (min == max)
		return fail_field(f, at, STR_NONE, "must have %zu id%s in this form, has %zu", min, plural((int64_t)min), list->n);
	return fail_field(f, at, STR_NONE, "must have %zu to %zu ids in this form, has %zu", min, max, list->n);
}

int dep_create_check(const struct dep_create_args *in, struct str path, struct failure *f)
{
	static const struct {
		size_t from_max, to_max, items_min, items_max;
	} forms[] = {
		[DEP_EDGE] = {1, 1, 0, 0},
		[DEP_LINEAR] = {0, 0, 2, LIMIT_OPS_PER_CALL},
		[DEP_FAN_OUT] = {1, LIMIT_OPS_PER_CALL, 0, 0},
		[DEP_FAN_IN] = {LIMIT_OPS_PER_CALL, 1, 0, 0},
	};
	size_t form = in->pattern.set ? (size_t)in->pattern.v : DEP_EDGE;
	int rc = 0;

	if (count_check(&in->from, "from", forms[form].from_max > 0, forms[form].from_max, path, f) != 0)
		rc = -1;
	if (count_check(&in->to, "to", forms[form].to_max > 0, forms[form].to_max, path, f) != 0)
		rc = -1;
	if (count_check(&in->items, "itemIds", forms[form].items_min, forms[form].items_max, path, f) != 0)
		rc = -1;
	if (in->type.v == DEP_RELATES_TO && in->unblock_at.set)
		rc = fail_field(f, str_printf(f->arena, "%.*sunblockAt", STRF(path)), STR_NONE,
			"does not belong to RELATES_TO, which never blocks");
	return rc;
}

/* The edges that one op asks for, ends resolved. */
struct plan {
	struct item *items;
	size_t item_count;
	struct dep_edge *edges;
	size_t edge_count;
	struct str *paths; /* of each edge, for messages */
};

static int add_items(struct plan *plan, struct tx *tx, struct call *call, const struct arg_strs *ids,
	const char *name, struct failure *f)
{
	for (size_t i = 0; i < ids->n; i++) {
		struct item *item = &plan->items[plan->item_count];
		struct str path = ids->n == 1 ? str_of(name) : str_printf(f->arena, "%s[%zu]", name, i);

		if (item_find(&tx->snapshot, call, ids->v[i], path, item, f) != 0 ||
			item_writable(&tx->snapshot, call, item, f) != 0)
			return -1;
		plan->item_count++;
	}
	return 0;
}

static void add_edge(struct plan *plan, const struct dep_create_args *in, const struct item *from,
	const struct item *to, struct str path)
{
	bool swaps = in->type.v == DEP_IS_BLOCKED_BY;

	plan->paths[plan->edge_count] = path;
	plan->edges[plan->edge_count++] = (struct dep_edge){
		.from = swaps ? to : from,
		.to = swaps ? from : to,
		.type = in->type.v == DEP_RELATES_TO ? DEP_RELATES_TO : DEP_BLOCKS,
		.unblock_at = in->unblock_at.set ? in->unblock_at.v : DEP_NO_THRESHOLD,
	};
}

static int make_plan(struct plan *plan, struct tx *tx, struct call *call, const struct dep_create_args *in,
	struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	size_t most = in->from.n + in->to.n + in->items.n;
	const struct item *to;

	*plan = (struct plan){
		.items = ARENA_ARRAY(arena, struct item, most),
		.edges = ARENA_ARRAY(arena, struct dep_edge, most),
		.paths = ARENA_ARRAY(arena, struct str, most),
	};
	if (add_items(plan, tx, call, &in->items, "itemIds", f) != 0 ||
		add_items(plan, tx, call, &in->from, "from", f) != 0 ||
		add_items(plan, tx, call, &in->to, "to", f) != 0)
		return -1;
	for (size_t i = 0; i + 1 < in->items.n; i++)
		add_edge(plan, in, &plan->items[i], &plan->items[i + 1],
			str_printf(arena, "itemIds[%zu]", i + 1));
	to = plan->items + in->from.n;
	for (size_t i = 0; i < in->from.n; i++)
		for (size_t j = 0; j < in->to.n; j++)
			add_edge(plan, in, &plan->items[i], &to[j],
				in->from.n > 1 ? str_printf(arena, "from[%zu]", i)
				: in->to.n > 1 ? str_printf(arena, "to[%zu]", j)
					       : STR("to"));
	return 0;
}

static int fail_self(struct failure *f, struct str path)
{
	return fail_field(f, path, STR_NONE, "an item cannot depend on itself");
}

static int fail_repeated(struct failure *f, const struct id *existing)
{
	(void)fail(f, FAIL_DUPLICATE,
		existing == NULL ? "The op names the same edge twice." : "There is such an edge already.");
	fail_detail_str(f, "kind", STR("dependency"));
	if (existing != NULL)
		fail_detail_str(f, "existingId", id_str(f->arena, *existing));
	return -1;
}

SQL(SQL_DEP_STORED, "SELECT id FROM dep WHERE from_n = $1 AND to_n = $2 AND type = $3");

static int stored_check(struct snapshot *s, const struct dep_edge *edge, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct id id;
	int rc;

	if (query(s, &q, f, SQL_DEP_STORED, "iii", edge->from->n, edge->to->n, (int64_t)edge->type) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc != 1)
		return rc;
	id = col_id(&q, 0);
	return fail_repeated(f, &id);
}

static int dep_event(struct tx *tx, enum event_type type, struct id id, const struct dep_edge *edge, struct failure *f)
{
	struct json_writer w;
	struct buf data;
	char text[ID_TEXT_SIZE];

	buf_init(&data, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	id_format(edge->from->id, text);
	jw_ktext(&w, "from", text);
	id_format(edge->to->id, text);
	jw_ktext(&w, "to", text);
	jw_ktext(&w, "type", word_text(dep_stored_type_words, edge->type));
	if (type == EVENT_DEPENDENCY_REMOVED)
		jw_ktext(&w, "cause", "user");
	else if (edge->unblock_at != DEP_NO_THRESHOLD)
		jw_ktext(&w, "unblockAt", role_name((enum role)edge->unblock_at));
	jw_object_end(&w);
	return event_add(tx, type, edge->from->root_n, edge->from->n, id, buf_str(&data), f);
}

SQL(SQL_DEP_ADD,
	"INSERT INTO dep (n, id, from_n, to_n, type, unblock_at, threshold, created_at, created_by)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)");

static int add_row(struct tx *tx, const struct dep_edge *edge, struct id *out_id, struct failure *f)
{
	const int64_t *unblock_at = edge->unblock_at == DEP_NO_THRESHOLD ? NULL : &edge->unblock_at;
	struct id id;
	int64_t n;
	int64_t actor_n;

	id_generate(&id);
	if (tx_next(tx, SEQ_dep, &n, f) != 0 || tx_actor(tx, &actor_n, f) != 0 ||
		tx_run(tx, f, SQL_DEP_ADD, "ibiiioiii", n, id, edge->from->n, edge->to->n, (int64_t)edge->type,
			unblock_at, unblock_at == NULL ? (int64_t)ROLE_TERMINAL : *unblock_at, tx->snapshot.now,
			actor_n) < 0)
		return -1;
	*out_id = id;
	return dep_event(tx, EVENT_DEPENDENCY_ADDED, id, edge, f);
}

static int cycle_check(struct tx *tx, struct call *call, const struct dep_edge *edge, struct failure *f)
{
	int64_t *path;
	size_t n;
	int rc;

	if (edge->type != DEP_BLOCKS)
		return 0;
	rc = dep_cycle(&tx->snapshot, edge->from->n, edge->to->n, &path, &n, f);
	return rc == 1 ? fail_cycle(&tx->snapshot, call, path, n, f) : rc;
}

int dep_insert(struct tx *tx, struct call *call, const struct dep_edge *edge, struct id *out_id, struct failure *f)
{
	if (edge->from->n == edge->to->n)
		return fail_self(f, STR("to"));
	if (stored_check(&tx->snapshot, edge, f) != 0 || cycle_check(tx, call, edge, f) != 0)
		return -1;
	return add_row(tx, edge, out_id, f);
}

/* Order of checks: self edges, repeats inside the op, stored ones, cycles; the first class that has a fault
 * is the answer. */
static int check_plan(struct plan *plan, struct tx *tx, struct failure *f)
{
	for (size_t i = 0; i < plan->edge_count; i++)
		if (plan->edges[i].from->n == plan->edges[i].to->n)
			return fail_self(f, plan->paths[i]);
	for (size_t i = 0; i < plan->edge_count; i++)
		for (size_t j = 0; j < i; j++)
			if (plan->edges[i].from->n == plan->edges[j].from->n &&
				plan->edges[i].to->n == plan->edges[j].to->n)
				return fail_repeated(f, NULL);
	for (size_t i = 0; i < plan->edge_count; i++)
		if (stored_check(&tx->snapshot, &plan->edges[i], f) != 0)
			return -1;
	return 0;
}

int dep_create(struct tx *tx, struct call *call, const struct dep_create_args *in, struct json_writer *out,
	struct failure *f)
{
	struct plan plan;
	struct id *ids;

	if (make_plan(&plan, tx, call, in, f) != 0 || check_plan(&plan, tx, f) != 0)
		return -1;
	ids = ARENA_ARRAY(call->arena, struct id, plan.edge_count);
	for (size_t i = 0; i < plan.edge_count; i++)
		if (cycle_check(tx, call, &plan.edges[i], f) != 0 ||
			add_row(tx, &plan.edges[i], &ids[i], f) != 0)
			return -1;
	if (!in->pattern.set) {
		jw_id(out, call, "id", ids[0]);
	} else {
		jw_karray(out, "ids");
		for (size_t i = 0; i < plan.edge_count; i++)
			jw_str(out, id_str(call->arena, ids[i]));
		jw_array_end(out);
	}
	jw_kint(out, "created", (int64_t)plan.edge_count);
	return 0;
}

/* ---- delete ---- */

int dep_delete_check(const struct dep_delete_args *in, struct str path, struct failure *f)
{
	int rc = 0;

	if (in->from.set != in->to.set)
		rc = fail_field(f, str_printf(f->arena, "%.*s%s", STRF(path), in->from.set ? "to" : "from"), STR_NONE,
			"from and to belong together");
	if (in->type.set && !in->from.set)
		rc = fail_field(f, str_printf(f->arena, "%.*stype", STRF(path)), STR_NONE,
			"belongs to from and to only");
	if (in->item.set != in->all.v)
		rc = fail_field(f, str_printf(f->arena, "%.*s%s", STRF(path), in->item.set ? "all" : "itemId"),
			STR_NONE, "itemId and all:true belong together");
	return rc;
}

struct removal {
	struct tx *tx;
	struct call *call;
	int64_t deleted;
	struct int_list {
		int64_t *v;
		size_t n;
	} freed; /* items that lost an unsatisfied edge */
};

SQL(SQL_DEP_ROW, "SELECT id, from_n, to_n, type, unblock_at, threshold FROM dep WHERE n = $1");
SQL(SQL_DEP_DELETE, "DELETE FROM dep WHERE n = $1");

static int remove_row(struct removal *r, int64_t n, struct failure *f)
{
	struct snapshot *s = &r->tx->snapshot;
	AUTO(query_endp) struct query q = {0};
	struct item from;
	struct item to;
	struct dep_edge edge = {.from = &from, .to = &to};
	bool was_unmet;
	struct id id;

	if (query(s, &q, f, SQL_DEP_ROW, "i", n) != 0 || query_next(&q, f) != 1 ||
		item_load(s, col_int(&q, 1), &from, f) != 1 || item_load(s, col_int(&q, 2), &to, f) != 1)
		return -1;
	id = col_id(&q, 0);
	edge.type = (enum dep_type)col_int(&q, 3);
	edge.unblock_at = DEP_NO_THRESHOLD;
	was_unmet = edge.type == DEP_BLOCKS && from.role < col_int(&q, 5);
	query_end(&q);
	if (!caller_reads_root(r->call->caller, from.root_n) || !caller_reads_root(r->call->caller, to.root_n)) {
		(void)fail(f, FAIL_FORBIDDEN, "The other end of the edge is in a project that you may not write.");
		fail_detail_str(f, "scope", STR("root"));
		return -1;
	}
	if (item_writable(s, r->call, &from, f) != 0 || item_writable(s, r->call, &to, f) != 0 ||
		tx_run(r->tx, f, SQL_DEP_DELETE, "i", n) < 0)
		return -1;
	r->deleted++;
	if (was_unmet) {
		r->freed.v = arena_grow(s->arena, r->freed.v, r->freed.n * sizeof(int64_t),
			(r->freed.n + 1) * sizeof(int64_t));
		r->freed.v[r->freed.n++] = to.n;
	}
	return dep_event(r->tx, EVENT_DEPENDENCY_REMOVED, id, &edge, f);
}

SQL(SQL_DEPS_BETWEEN, "SELECT n FROM dep WHERE from_n = $1 AND to_n = $2 AND ($3 < 0 OR type = $3) ORDER BY n");
SQL(SQL_DEPS_OF, "SELECT n FROM dep WHERE from_n = $1 OR to_n = $1 ORDER BY n");

/* The rows are read before the first one goes. */
static int remove_rows(struct removal *r, struct query *q, struct failure *f)
{
	struct int_list rows = {NULL, 0};
	int rc;

	while ((rc = query_next(q, f)) == 1) {
		rows.v = arena_grow(r->call->arena, rows.v, rows.n * sizeof(int64_t), (rows.n + 1) * sizeof(int64_t));
		rows.v[rows.n++] = col_int(q, 0);
	}
	query_end(q);
	for (size_t i = 0; rc == 0 && i < rows.n; i++)
		rc = remove_row(r, rows.v[i], f);
	return rc;
}

static int remove_between(struct removal *r, const struct dep_delete_args *in, struct failure *f)
{
	struct snapshot *s = &r->tx->snapshot;
	bool swaps = in->type.set && in->type.v == DEP_IS_BLOCKED_BY;
	int64_t type = !in->type.set ? -1 : swaps ? DEP_BLOCKS : in->type.v;
	AUTO(query_endp) struct query q = {0};
	struct item from;
	struct item to;

	if (item_find(s, r->call, in->from.v, STR("from"), &from, f) != 0 ||
		item_find(s, r->call, in->to.v, STR("to"), &to, f) != 0 ||
		query(s, &q, f, SQL_DEPS_BETWEEN, "iii", swaps ? to.n : from.n, swaps ? from.n : to.n, type) != 0)
		return -1;
	return remove_rows(r, &q, f);
}

static int remove_all(struct removal *r, const struct dep_delete_args *in, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct item item;

	if (item_find(&r->tx->snapshot, r->call, in->item.v, STR("itemId"), &item, f) != 0 ||
		item_writable(&r->tx->snapshot, r->call, &item, f) != 0 ||
		query(&r->tx->snapshot, &q, f, SQL_DEPS_OF, "i", item.n) != 0)
		return -1;
	return remove_rows(r, &q, f);
}

static int write_unblocked(struct removal *r, struct json_writer *out, struct failure *f)
{
	struct snapshot *s = &r->tx->snapshot;
	struct unblocked free_now = {.v = ARENA_ARRAY(s->arena, int64_t, r->freed.n + 1)};

	for (size_t i = 0; i < r->freed.n; i++) {
		int blocked = dependency_is_blocked(s, r->freed.v[i], f);
		bool is_known = false;

		if (blocked < 0)
			return -1;
		for (size_t j = 0; j < free_now.n; j++)
			is_known = is_known || free_now.v[j] == r->freed.v[i];
		if (!blocked && !is_known)
			free_now.v[free_now.n++] = r->freed.v[i];
	}
	return unblocked_write(out, s, r->call, &free_now, f);
}

int dep_delete(struct tx *tx, struct call *call, const struct dep_delete_args *in, struct json_writer *out,
	struct failure *f)
{
	struct removal r = {.tx = tx, .call = call};
	int64_t n;
	int rc;

	if (in->dep.set)
		rc = id_resolve(&tx->snapshot, call, KIND_DEPENDENCY, in->dep.v, STR("depId"), &n, f) != 0
			? -1
			: remove_row(&r, n, f);
	else
		rc = in->item.set ? remove_all(&r, in, f) : remove_between(&r, in, f);
	if (rc != 0)
		return -1;
	jw_kint(out, "deleted", r.deleted);
	return write_unblocked(&r, out, f);
}
