/* items_write create: one new item. */
#include "work/structure.h"

/* The parent that the caller names, ready to take a child; NULL for a root. */
static int find_parent(struct tx *tx, struct call *call, const struct arg_str *text, struct item *parent,
	const struct item **out, bool *reopens, struct failure *f)
{
	*out = NULL;
	*reopens = false;
	if (!text->set || text->null) {
		if (call->caller->seat.run_n == 0)
			return 0;
		(void)fail(f, FAIL_FORBIDDEN, "Your seat's run does not include new projects.");
		fail_detail_str(f, "scope", STR("root"));
		fail_detail_str(f, "required", STR("a parent inside the run's scope"));
		return -1;
	}
	if (item_find(&tx->snapshot, call, text->v, STR("parentId"), parent, f) != 0 ||
		item_writable(&tx->snapshot, call, parent, f) != 0 ||
		structure_admits(&tx->snapshot, call, parent, "create", reopens, f) != 0)
		return -1;
	*out = parent;
	return 0;
}

/* Advice goes with this answer alone; a replay gets the advice of its own time. */
static int advise(struct tx *tx, struct call *call, const struct item *item, const struct schema *schema,
	struct failure *f)
{
	struct json_writer w;
	struct buf text;

	buf_init(&text, call->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	if (structure_advice(&tx->snapshot, call, item, schema, &w, f) != 0)
		return -1;
	call->once_members = buf_str(&text);
	return 0;
}

int items_create(struct tx *tx, struct call *call, const struct create_args *in, struct json_writer *out,
	struct failure *f)
{
	const struct item *parent;
	struct item parent_row, item;
	struct schema schema;
	bool reopens;

	if (find_parent(tx, call, &in->parent, &parent_row, &parent, &reopens, f) != 0 ||
		structure_add(tx, call, &in->item, parent, &item, &schema, f) != 0)
		return -1;
	jw_id(out, call, "id", item.id);
	jw_kint(out, "version", item.version);
	jw_ktext(out, "role", role_name(item.role));
	jw_kint(out, "depth", item.depth);
	jw_id(out, call, "rootId", item.root_id);
	if (structure_follow(tx, call, 0, reopens ? parent->n : 0, out, f) != 0)
		return -1;
	if (parent != NULL && claim_touch(tx, call, parent, f) != 0)
		return -1;
	return advise(tx, call, &item, &schema, f);
}

SQL(SQL_ITEM_BY_ID, "SELECT n FROM item WHERE id = $1");

int items_create_again(struct tx *tx, struct call *call, const json_t *stored, struct json_writer *out,
	struct failure *f)
{
	struct schema schema;
	struct id_prefix id;
	struct item item;
	int64_t n;
	int rc;

	if (!id_prefix_parse(json_member_str(stored, "id"), &id))
		return 0;
	rc = query_int(&tx->snapshot, &n, f, SQL_ITEM_BY_ID, "b", id.low);
	if (rc == 1)
		rc = item_load(&tx->snapshot, n, &item, f);
	if (rc != 1)
		return rc; /* deleted meanwhile: nothing to advise */
	if (item_schema(&tx->snapshot, call, &item, &schema, f) != 0)
		return -1;
	return structure_advice(&tx->snapshot, call, &item, &schema, out, f);
}
