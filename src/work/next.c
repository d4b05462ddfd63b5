/* items_read next: what to work on, without claiming it. */
#include "work/select.h"

#include "work/note_gate.h"
#include "work/parts.h"

static const char *const known_fields[] = {"ancestors", "noteProgress", NULL};

static int write_note_progress(struct json_writer *out, struct snapshot *s, struct call *call,
	const struct item *item, struct failure *f)
{
	struct note_progress progress;
	struct note_rows rows;
	struct schema schema;

	if (item_schema(s, call, item, &schema, f) != 0 || note_rows_load(s, item, &schema, &rows, f) != 0)
		return -1;
	note_progress(&schema, &rows, item->role, &progress);
	notes_write_progress(out, &progress);
	return 0;
}

static int write_item(struct json_writer *out, struct snapshot *s, struct call *call, const struct next_args *in,
	int64_t n, struct failure *f)
{
	struct item item;
	int rc = (in->include_details.v ? item_load : item_load_ref)(s, n, &item, f);

	if (rc != 1)
		return rc;
	jw_object_begin(out);
	item_write_ref(out, call, &item);
	if (in->include_details.v) {
		jw_kstr_opt(out, "summary", item.summary);
		if (item.tags.n > 2)
			jw_kraw(out, "tags", item.tags);
	}
	if (fields_have(in->fields.v, in->fields.n, "ancestors") &&
		ancestors_write(out, s, call, item.parent_n, f) != 0)
		return -1;
	if (fields_have(in->fields.v, in->fields.n, "noteProgress") &&
		write_note_progress(out, s, call, &item, f) != 0)
		return -1;
	jw_object_end(out);
	return 0;
}

int items_next(struct snapshot *s, struct call *call, const struct next_args *in, struct json_writer *out,
	struct failure *f)
{
	struct wish wish = {.filter = &in->filter,
		.path = STR(""),
		.order = (enum select_order)(in->order.set ? in->order.v : SELECT_BY_PRIORITY),
		.limit = in->limit.set ? (size_t)in->limit.v : 1,
		.include_claimed = in->include_claimed.v};
	struct selected selected;

	if (fields_check(in->fields.v, in->fields.n, known_fields, STR("fields"), f) != 0 ||
		select_items(s, call, &wish, &selected, f) != 0)
		return -1;
	jw_karray(out, "items");
	for (size_t i = 0; i < selected.n; i++)
		if (write_item(out, s, call, in, selected.v[i], f) != 0)
			return -1;
	jw_array_end(out);
	if (selected.n > 0)
		return 0;
	jw_kobject(out, "none");
	selected_write_none(out, &selected);
	jw_object_end(out);
	return 0;
}
