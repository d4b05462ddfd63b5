/* items_read get: one item, or several in the order asked for. */
#include "work/items.h"
#include "work/parts.h"

static int write_item(struct json_writer *out, struct snapshot *s, struct call *call, const struct item *item,
	unsigned parts, struct failure *f)
{
	item_write_full(out, call, item);
	return parts_write(out, s, call, item, parts, true, f);
}

static int get_one(struct snapshot *s, struct call *call, const struct get_args *in, struct json_writer *out,
	struct failure *f)
{
	struct item item;

	if (item_find(s, call, in->item.v, STR("itemId"), &item, f) != 0)
		return -1;
	jw_kobject(out, "item");
	if (write_item(out, s, call, &item, parts_of(&in->fields), f) != 0)
		return -1;
	jw_object_end(out);
	return 0;
}

static void add_missing(struct json_writer *missing, struct str id, enum failure_code code)
{
	jw_object_begin(missing);
	jw_kstr(missing, "id", id);
	jw_ktext(missing, "code", failure_info(code)->wire);
	jw_object_end(missing);
}

/* What does not fit the answer is to be asked for alone. */
static int get_row(struct rows *rows, struct snapshot *s, struct str id, unsigned parts,
	struct json_writer *missing, struct failure *f)
{
	struct failure why;
	struct item item;

	failure_init(&why, f->arena);
	if (item_find(s, rows->call, id, STR("itemIds"), &item, &why) != 0) {
		if (why.code != FAIL_NOT_FOUND && why.code != FAIL_AMBIGUOUS_ID) {
			*f = why;
			return -1;
		}
		add_missing(missing, id, why.code);
		return 0;
	}
	row_begin(rows);
	if (write_item(rows->w, s, rows->call, &item, parts, f) != 0)
		return -1;
	if (!row_end(rows))
		add_missing(missing, id, FAIL_PAYLOAD_TOO_LARGE);
	return 0;
}

int items_get(struct snapshot *s, struct call *call, const struct get_args *in, struct json_writer *out,
	struct failure *f)
{
	struct json_writer missing;
	struct buf text;
	struct rows rows;

	if (in->item.set)
		return get_one(s, call, in, out, f);
	buf_init(&text, call->arena, SIZE_MAX);
	json_writer_init(&missing, &text);
	rows_init(&rows, out, call);
	jw_karray(out, "items");
	for (size_t i = 0; i < in->items.n; i++)
		if (get_row(&rows, s, in->items.v[i], parts_of(&in->fields), &missing, f) != 0)
			return -1;
	jw_array_end(out);
	if (call->page.is_shrunk) {
		call->page.is_shrunk = false; /* there is no next page: the ids are under missing */
		warn(&call->warnings, "page_shrunk", STR_NONE,
			"Not every item fits one answer; ask for those with code payload_too_large apart.");
	}
	if (text.n > 0)
		jw_kraw(out, "missing", str_printf(call->arena, "[%.*s]", STRF(buf_str(&text))));
	return 0;
}
