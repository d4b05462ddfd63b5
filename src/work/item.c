/* Loading items, and what stands above them. */
#include "work/work.h"

#include "base/limits.h"

const char *priority_name(enum priority priority)
{
	static const char *const names[] = {"high", "medium", "low"};

	return names[priority];
}

#define ITEM_COLUMNS(root_id) \
	"SELECT i.id, i.parent_n, p.id, i.root_n, " root_id ", i.depth, i.role, i.prev_role, i.priority, i.complexity," \
	" i.version, i.created_at, i.modified_at, i.role_changed_at, i.label, i.prev_label, i.claim_by," \
	" i.claim_at, i.claim_first_at, i.claim_until, i.claim_ttl, i.claim_gen, i.claim_lapse_seen," \
	" t.title, t.type, t.tags, t.traits, t.summary, t.requires_verification, t.created_by, i.n," \
	" p.role, i.moved_seq FROM item i JOIN item_text t ON t.n = i.n"
#define ROOT_ROW " JOIN item r ON r.n = i.root_n"
#define PARENT_ROW " LEFT JOIN item p ON p.n = i.parent_n WHERE "
/* by primary key, four point reads; by id one more; to be moved one less */
SQL(SQL_ITEM_LOAD, ITEM_COLUMNS("r.id") ROOT_ROW PARENT_ROW "i.n = $1");
SQL(SQL_ITEM_LOAD_BY_ID, ITEM_COLUMNS("r.id") ROOT_ROW PARENT_ROW "i.id = $1");
SQL(SQL_ITEM_LOAD_TO_MOVE, ITEM_COLUMNS("NULL") PARENT_ROW "i.id = $1");

static void read_row(const struct query *q, struct item *out)
{
	out->id = col_id(q, 0);
	out->parent_n = col_int(q, 1);
	out->parent_id = col_id(q, 2);
	out->root_n = col_int(q, 3);
	out->root_id = col_id(q, 4);
	out->depth = col_int(q, 5);
	out->role = (enum role)col_int(q, 6);
	out->prev_role = (enum role)col_int(q, 7);
	out->priority = (enum priority)col_int(q, 8);
	out->complexity = col_int(q, 9);
	out->version = col_int(q, 10);
	out->created_at = col_int(q, 11);
	out->modified_at = col_int(q, 12);
	out->role_changed_at = col_int(q, 13);
	out->label = col_str(q, 14);
	out->prev_label = col_str(q, 15);
	out->claim_by = col_int(q, 16);
	out->claim_at = col_int(q, 17);
	out->claim_first_at = col_int(q, 18);
	out->claim_until = col_int(q, 19);
	out->claim_ttl = col_int(q, 20);
	out->claim_gen = col_int(q, 21);
	out->claim_lapse_seen = col_int(q, 22) != 0;
	out->title = col_str(q, 23);
	out->type = col_str(q, 24);
	out->tags = col_str(q, 25);
	out->traits = col_str(q, 26);
	out->summary = col_str(q, 27);
	out->requires_verification = col_int(q, 28) != 0;
	out->created_by = col_int(q, 29);
	out->n = col_int(q, 30);
	out->parent_role = (enum role)col_int(q, 31);
	out->moved_seq = col_int(q, 32);
}

static int load(struct query *q, struct item *out, struct failure *f)
{
	int rc = query_next(q, f);

	if (rc == 1)
		read_row(q, out);
	return rc;
}

int item_load(struct snapshot *s, int64_t n, struct item *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};

	return query(s, &q, f, SQL_ITEM_LOAD, "i", n) != 0 ? -1 : load(&q, out, f);
}

/* by primary key, three point reads: half of what a whole item costs, and what a page of fifty is made of */
SQL(SQL_ITEM_LOAD_REF,
	"SELECT i.id, i.parent_n, p.id, i.root_n, i.depth, i.role, i.priority, i.created_at, i.label, t.title, t.type,"
	" t.tags, t.traits FROM item i JOIN item_text t ON t.n = i.n LEFT JOIN item p ON p.n = i.parent_n WHERE i.n = $1");

int item_load_ref(struct snapshot *s, int64_t n, struct item *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (query(s, &q, f, SQL_ITEM_LOAD_REF, "i", n) != 0 || (rc = query_next(&q, f)) < 0)
		return -1;
	if (rc == 0)
		return 0;
	*out = (struct item){
		.n = n,
		.id = col_id(&q, 0),
		.parent_n = col_int(&q, 1),
		.parent_id = col_id(&q, 2),
		.root_n = col_int(&q, 3),
		.depth = col_int(&q, 4),
		.role = (enum role)col_int(&q, 5),
		.priority = (enum priority)col_int(&q, 6),
		.created_at = col_int(&q, 7),
		.label = col_str(&q, 8),
		.title = col_str(&q, 9),
		.type = col_str(&q, 10),
		.tags = col_str(&q, 11),
		.traits = col_str(&q, 12),
	};
	return 1;
}

/* One statement for a whole id, which is what nearly every call names. */
static int load_by_id(struct snapshot *s, const struct caller *caller, const char *sql, struct id id,
	struct item *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc = query(s, &q, f, sql, "b", id) != 0 ? -1 : load(&q, out, f);

	return rc == 1 && !caller_reads_root(caller, out->root_n) ? 0 : rc;
}

static int find(struct snapshot *s, struct call *call, const char *sql, struct str text, struct str path,
	struct item *out, struct failure *f)
{
	struct id_prefix prefix;
	int64_t n;
	int rc;

	if (id_prefix_parse(text, &prefix) && prefix.digits == 32)
		rc = load_by_id(s, call->caller, sql, prefix.low, out, f);
	else if (id_resolve(s, call, KIND_ITEM, text, path, &n, f) != 0)
		return -1;
	else
		rc = item_load(s, n, out, f);
	return rc == 1 ? 0 : rc == 0 ? fail_not_found(f, "item", text) : -1;
}

int item_find(struct snapshot *s, struct call *call, struct str text, struct str path, struct item *out,
	struct failure *f)
{
	return find(s, call, SQL_ITEM_LOAD_BY_ID, text, path, out, f);
}

int item_find_to_move(struct snapshot *s, struct call *call, struct str text, struct str path, struct item *out,
	struct failure *f)
{
	return find(s, call, SQL_ITEM_LOAD_TO_MOVE, text, path, out, f);
}

int item_writable(struct snapshot *s, struct call *call, const struct item *item, struct failure *f)
{
	const struct seat_scope *seat = &call->caller->seat;
	int64_t scope = seat->scope_n != 0 ? seat->scope_n : seat->root_n;
	struct item whole;
	int rc;

	if (seat->run_n == 0)
		return 0;
	rc = item_is_below(s, item->n, scope, f);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (item_load(s, item->n, &whole, f) < 0)
		return -1;
	(void)fail(f, FAIL_FORBIDDEN, "Your seat's run does not include this item.");
	fail_detail_str(f, "scope", STR("root"));
	fail_detail_str(f, "required", id_str(f->arena, whole.root_id));
	return -1;
}

int item_expect(const struct item *item, bool is_set, int64_t expected, struct failure *f)
{
	if (!is_set || expected == item->version)
		return 0;
	(void)fail(f, FAIL_VERSION_CONFLICT, "Expected version %lld, it is %lld.", (long long)expected,
		(long long)item->version);
	fail_detail_str(f, "kind", STR("item"));
	fail_detail_str(f, "id", id_str(f->arena, item->id));
	fail_detail_int(f, "expected", expected);
	fail_detail_int(f, "actual", item->version);
	return -1;
}

/* by primary key, once per level: a recursive CTE scans the table after ANALYZE */
SQL(SQL_ITEM_PARENT, "SELECT parent_n FROM item WHERE n = $1");

int item_is_below(struct snapshot *s, int64_t n, int64_t ancestor_n, struct failure *f)
{
	for (int level = 0; level <= LIMIT_DEPTH; level++) {
		int64_t parent;
		int rc;

		if (n == ancestor_n)
			return 1;
		rc = query_int(s, &parent, f, SQL_ITEM_PARENT, "i", n);
		if (rc != 1)
			return rc;
		n = parent;
	}
	return 0;
}
