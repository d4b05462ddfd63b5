/* items_write create: one new item. */
#include "work/structure.h"

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

	if (structure_parent(tx, call, &in->parent, STR("parentId"), &parent_row, &parent, &reopens, f) != 0 ||
		structure_add(tx, call, &in->item, parent, &item, &schema, f) != 0)
		return -1;
	jw_id(out, call, "id", item.id);
	jw_kint(out, "version", item.version);
	jw_ktext(out, "role", role_name(item.role));
	jw_kint(out, "depth", item.depth);
	jw_id(out, call, "rootId", item.root_id);
	if (structure_follow(tx, call, 0, reopens ? parent->n : 0, out, f) != 0)
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
