/* items_write delete: an item and, when asked, all below it leave the graph, deepest first. */
#include "work/advance.h"
#include "work/structure.h"

#include <inttypes.h>

struct removal {
	struct tx *tx;
	struct call *call;
	int64_t items, notes, edges;
};

/* ---- what goes ---- */

SQL(SQL_CHILDREN, "SELECT n FROM item WHERE parent_n = $1 ORDER BY n");

static int fail_too_large(struct failure *f, const char *what, int64_t max)
{
	(void)fail(f, FAIL_PAYLOAD_TOO_LARGE, "One delete takes at most %" PRId64 " %s.", max, what);
	fail_detail_int(f, "max", max);
	fail_detail_int(f, "actual", max + 1);
	return -1;
}

static int add_children(struct snapshot *s, int64_t of, int64_t *list, size_t *n, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_CHILDREN, "i", of) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (*n == LIMIT_DELETE_ITEMS)
			return fail_too_large(f, "items", LIMIT_DELETE_ITEMS);
		list[(*n)++] = col_int(&q, 0);
	}
	return rc;
}

/* The item and everything below it, parents before children. */
static int collect(struct snapshot *s, int64_t top, int64_t *list, size_t *n, struct failure *f)
{
	size_t level_end = 1;
	int level = 0;

	list[0] = top;
	*n = 1;
	for (size_t i = 0; i < *n; i++) {
		if (i == level_end) {
			level_end = *n;
			if (++level > LIMIT_DEPTH)
				return fail_too_large(f, "levels", LIMIT_DEPTH);
		}
		if (add_children(s, list[i], list, n, f) != 0)
			return -1;
	}
	return 0;
}

/* ---- one item ---- */

SQL(SQL_NOTES_OF, "SELECT id, key, role FROM note WHERE item_n = $1 ORDER BY n");

static int notes_gone(struct removal *r, const struct item *item, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(&r->tx->snapshot, &q, f, SQL_NOTES_OF, "i", item->n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct json_writer w;
		struct buf data;

		buf_init(&data, r->call->arena, SIZE_MAX);
		json_writer_init(&w, &data);
		jw_object_begin(&w);
		jw_kstr(&w, "key", col_str(&q, 1));
		jw_ktext(&w, "role", role_name((enum role)col_int(&q, 2)));
		jw_ktext(&w, "cause", "cascade");
		jw_object_end(&w);
		if (event_add(r->tx, EVENT_NOTE_DELETED, item->root_n, item->n, col_id(&q, 0), buf_str(&data), f) != 0)
			return -1;
		r->notes++;
	}
	return rc;
}

SQL(SQL_EDGES_OF, /* by the unique key of from_n, and by dep_to */
	"SELECT d.id, a.id, b.id, d.type, d.n FROM dep d JOIN item a ON a.n = d.from_n JOIN item b ON b.n = d.to_n"
	" WHERE d.from_n = $1 UNION ALL SELECT d.id, a.id, b.id, d.type, d.n FROM dep d"
	" JOIN item a ON a.n = d.from_n JOIN item b ON b.n = d.to_n WHERE d.to_n = $1 ORDER BY 5");

static int edges_gone(struct removal *r, const struct item *item, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(&r->tx->snapshot, &q, f, SQL_EDGES_OF, "i", item->n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct json_writer w;
		struct buf data;

		buf_init(&data, r->call->arena, SIZE_MAX);
		json_writer_init(&w, &data);
		jw_object_begin(&w);
		jw_kstr(&w, "from", id_str(r->call->arena, col_id(&q, 1)));
		jw_kstr(&w, "to", id_str(r->call->arena, col_id(&q, 2)));
		jw_ktext(&w, "type", col_int(&q, 3) == 0 ? "BLOCKS" : "RELATES_TO");
		jw_ktext(&w, "cause", "cascade");
		jw_object_end(&w);
		if (event_add(r->tx, EVENT_DEPENDENCY_REMOVED, item->root_n, item->n, col_id(&q, 0), buf_str(&data),
			    f) != 0)
			return -1;
		r->edges++;
	}
	return rc;
}

SQL(SQL_ITEM_DROP, "DELETE FROM item WHERE n = $1"); /* notes, edges, texts and counts go with it */
SQL(SQL_DEP_DROP, "DELETE FROM dep WHERE from_n = $1 OR to_n = $1");

static int remove_one(struct removal *r, int64_t n, struct failure *f)
{
	struct tx *tx = r->tx;
	struct json_writer w;
	struct item item;
	struct buf data;

	if (item_load(&tx->snapshot, n, &item, f) < 0 || claim_allows(&tx->snapshot, r->call, &item, f) != 0)
		return -1;
	if (item.claim_by != 0 && claim_end(tx, &item, "cleared", NULL, f) != 0)
		return -1;
	if (lease_release_all(tx, &item, LEASE_ITEM_DELETED, f) != 0 || notes_gone(r, &item, f) != 0 ||
		edges_gone(r, &item, f) != 0 || tx_run(tx, f, SQL_DEP_DROP, "i", n) < 0)
		return -1;
	buf_init(&data, r->call->arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	jw_kstr(&w, "title", item.title);
	jw_object_end(&w);
	if (event_add(tx, EVENT_ITEM_DELETED, item.root_n, item.n, item.id, buf_str(&data), f) != 0 ||
		tally_add(tx, item.parent_n, item.root_n, item.role, -1, f) != 0)
		return -1;
	r->items++;
	return tx_run(tx, f, SQL_ITEM_DROP, "i", n) < 0 ? -1 : 0;
}

/* ---- a project ---- */

SQL(SQL_DOCUMENTS_OF, "SELECT id, kind, slug FROM document WHERE root_n = $1 ORDER BY slug");
SQL(SQL_RUNS_OF, "SELECT id FROM run WHERE root_n = $1 AND is_open = 1 ORDER BY n");
SQL(SQL_CONFIG_DROP, "DELETE FROM config WHERE root_n = $1");
SQL(SQL_CONFIG_VERSIONS_DROP, "DELETE FROM config_version WHERE root_n = $1");

static int documents_gone(struct removal *r, const struct item *root, struct failure *f)
{
	static const char *const kinds[] = {"plan", "rule", "page"};
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(&r->tx->snapshot, &q, f, SQL_DOCUMENTS_OF, "i", root->n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct str data = str_printf(r->call->arena, "{\"kind\":\"%s\",\"slug\":\"%.*s\"}",
			kinds[col_int(&q, 1)], STRF(col_str(&q, 2))); /* a slug needs no escaping */

		if (event_add(r->tx, EVENT_DOCUMENT_DELETED, root->n, 0, col_id(&q, 0), data, f) != 0)
			return -1;
	}
	return rc;
}

static int runs_gone(struct removal *r, const struct item *root, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(&r->tx->snapshot, &q, f, SQL_RUNS_OF, "i", root->n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1)
		if (event_add(r->tx, EVENT_RUN_CLOSED, root->n, 0, col_id(&q, 0), STR("{\"outcome\":\"abandoned\"}"),
			    f) != 0)
			return -1;
	return rc;
}

/* Rules, documents and runs of a root go before it. */
static int remove_project(struct removal *r, const struct item *root, struct failure *f)
{
	int64_t dropped;

	if (documents_gone(r, root, f) != 0 || runs_gone(r, root, f) != 0)
		return -1;
	dropped = tx_run(r->tx, f, SQL_CONFIG_DROP, "i", root->n);
	if (dropped < 0 || tx_run(r->tx, f, SQL_CONFIG_VERSIONS_DROP, "i", root->n) < 0)
		return -1;
	return dropped == 0 ? 0 : event_add(r->tx, EVENT_CONFIG_DELETED, root->n, 0, root->id, STR_NONE, f);
}

/* ---- the operation ---- */

static int check_children(struct tx *tx, const struct delete_args *in, const struct item *item, struct failure *f)
{
	struct tally children;
	int64_t n;

	if (in->recursive.v)
		return 0;
	if (tally_children(&tx->snapshot, item->n, &children, f) != 0)
		return -1;
	n = tally_sum(&children);
	if (n == 0)
		return 0;
	(void)fail_field(f, STR("recursive"), STR_NONE, "item has %" PRId64 " %s", n, n == 1 ? "child" : "children");
	f->is_shape = false;
	return -1;
}

/* A whole project takes its title as a second key. */
static int check_title(const struct delete_args *in, const struct item *item, struct failure *f)
{
	if (item->parent_n != 0 || !str_eq(item->type, STR("project")) || str_eq(in->confirm_title.v, item->title))
		return 0;
	(void)fail_field(f, STR("confirmTitle"), STR_NONE, "must be the title of the project that is to be deleted");
	f->is_shape = false;
	return -1;
}

int items_delete(struct tx *tx, struct call *call, const struct delete_args *in, struct json_writer *out,
	struct failure *f)
{
	struct removal r = {.tx = tx, .call = call};
	struct item item;
	int64_t *list;
	size_t n;

	if (item_find(&tx->snapshot, call, in->item.v, STR("itemId"), &item, f) != 0 ||
		item_expect(&item, in->expected_version.set, in->expected_version.v, f) != 0 ||
		item_writable(&tx->snapshot, call, &item, f) != 0 || check_children(tx, in, &item, f) != 0 ||
		check_title(in, &item, f) != 0)
		return -1;
	list = ARENA_ARRAY(call->arena, int64_t, LIMIT_DELETE_ITEMS);
	if (collect(&tx->snapshot, item.n, list, &n, f) != 0)
		return -1;
	if (tx_retire_items(tx, f) != 0 || (item.parent_n == 0 && remove_project(&r, &item, f) != 0))
		return -1;
	while (n > 0)
		if (remove_one(&r, list[--n], f) != 0)
			return -1;
	jw_id(out, call, "id", item.id);
	jw_kint(out, "deleted", r.items);
	jw_kint(out, "notes", r.notes);
	jw_kint(out, "dependencies", r.edges);
	return structure_follow(tx, call, item.parent_n, 0, out, f);
}
