/* Reading edges: of one item, and those that point at it. */
#include "work/deps.h"

#include "base/limits.h"
#include "work/dep_row.h"

#define EDGES_DEFAULT 100

SQL(SQL_EDGES, /* by index of from_n, then of to_n */
	DEP_ROW_COLUMNS " WHERE (d.from_n = $1 OR d.to_n = $1) AND d.n > $2 AND ($3 = 0 OR ($3 = 1 AND d.to_n = $1)"
	" OR ($3 = 2 AND d.from_n = $1)) AND ($4 < 0 OR d.type = $4) ORDER BY d.n");
SQL(SQL_EDGE_COUNT,
	"SELECT count(*) FROM dep d WHERE (d.from_n = $1 OR d.to_n = $1) AND ($2 = 0 OR ($2 = 1 AND d.to_n = $1)"
	" OR ($2 = 2 AND d.from_n = $1)) AND ($3 < 0 OR d.type = $3)");

void dep_row_read(const struct query *q, const struct call *call, struct dep_row *out)
{
	*out = (struct dep_row){
		.n = col_int(q, 0),
		.id = col_id(q, 1),
		.type = (enum dep_type)col_int(q, 2),
		.unblock_at = col_is_null(q, 3) ? DEP_NO_THRESHOLD : col_int(q, 3),
		.threshold = col_int(q, 4),
		.from = {col_int(q, 5), col_id(q, 6), (enum role)col_int(q, 7),
			caller_reads_root(call->caller, col_int(q, 8))},
		.to = {col_int(q, 9), col_id(q, 10), (enum role)col_int(q, 11),
			caller_reads_root(call->caller, col_int(q, 12))},
	};
}

/* null: an item of a project that the caller may not read. */
static void write_end(struct json_writer *w, struct call *call, const char *key, const struct dep_end *end)
{
	if (end->is_readable)
		jw_id(w, call, key, end->id);
	else
		jw_kraw(w, key, STR("null"));
}

void dep_row_write(struct json_writer *w, struct call *call, const struct dep_row *row)
{
	write_end(w, call, "from", &row->from);
	write_end(w, call, "to", &row->to);
	jw_ktext(w, "type", word_text(dep_stored_type_words, row->type));
	if (row->unblock_at != DEP_NO_THRESHOLD)
		jw_ktext(w, "unblockAt", role_name((enum role)row->unblock_at));
	if (row->type == DEP_BLOCKS)
		jw_kbool(w, "satisfied", row->from.role >= row->threshold);
}

static struct str number_text(struct call *call, int64_t number)
{
	return str_printf(call->arena, "%lld", (long long)number);
}

static int read_start(struct call *call, const struct arg_str *cursor, int64_t *out, struct failure *f)
{
	struct cursor from;

	*out = 0;
	if (!cursor->set)
		return 0;
	if (cursor_read(call, cursor->v, &from, f) != 0)
		return -1;
	*out = cursor_int(&from, 0);
	return 0;
}

static int write_edge(struct json_writer *w, struct snapshot *s, struct call *call, const struct dep_row *row,
	const struct item *item, bool includes_items, struct failure *f)
{
	const struct dep_end *other = row->from.n == item->n ? &row->to : &row->from;
	struct item end;

	jw_object_begin(w);
	jw_id_of(w, call, "id", KIND_DEPENDENCY, row->id);
	dep_row_write(w, call, row);
	if (includes_items && other->is_readable) {
		if (item_load_ref(s, other->n, &end, f) != 1)
			return -1;
		jw_kobject(w, "item");
		item_write_ref(w, call, &end);
		jw_object_end(w);
	}
	jw_object_end(w);
	return 0;
}

int dep_edges(struct snapshot *s, struct call *call, const struct dep_edges_args *in, struct json_writer *out,
	struct failure *f)
{
	int64_t limit = in->limit.set ? in->limit.v : EDGES_DEFAULT;
	int64_t type = in->type.set ? in->type.v : -1;
	AUTO(query_endp) struct query q = {0};
	struct item item;
	int64_t start;
	int64_t total;
	int64_t returned = 0;
	struct str next = STR_NONE;
	int rc;

	if (item_find(s, call, in->item.v, STR("itemId"), &item, f) != 0 ||
		read_start(call, &in->cursor, &start, f) != 0 ||
		query_int(s, &total, f, SQL_EDGE_COUNT, "iii", item.n, in->direction.v, type) < 0 ||
		query(s, &q, f, SQL_EDGES, "iiii", item.n, start, in->direction.v, type) != 0)
		return -1;
	jw_karray(out, "edges");
	while ((rc = query_next(&q, f)) == 1) {
		struct dep_row row;

		dep_row_read(&q, call, &row);
		if (returned == limit || (returned > 0 && out->out->n > LIMIT_ANSWER_BYTES - 8192)) {
			call->page.is_shrunk = returned < limit;
			next = number_text(call, start);
			break;
		}
		if (write_edge(out, s, call, &row, &item, in->include_items.v, f) != 0)
			return -1;
		start = row.n;
		returned++;
	}
	if (rc < 0)
		return -1;
	jw_array_end(out);
	call_page(call, returned, total, next.n == 0 ? STR_NONE : cursor_text(call, &next, 1));
	return 0;
}

/* ---- backlinks ---- */

SQL(SQL_BACKLINKS, /* by dep_to */
	"SELECT d.n, i.id, d.type, t.title, i.root_n FROM dep d JOIN item i ON i.n = d.from_n"
	" JOIN item_text t ON t.n = i.n WHERE d.to_n = $1 AND d.n > $2 ORDER BY d.n");

int dep_backlinks(struct snapshot *s, struct call *call, const struct dep_backlinks_args *in,
	struct json_writer *out, struct failure *f)
{
	int64_t limit = in->limit.set ? in->limit.v : LIMIT_LONG_PAGE;
	AUTO(query_endp) struct query q = {0};
	struct str next = STR_NONE;
	int64_t start;
	int64_t returned = 0;
	struct item item;
	int rc;

	if (item_find(s, call, in->item.v, STR("itemId"), &item, f) != 0 ||
		read_start(call, &in->cursor, &start, f) != 0 ||
		query(s, &q, f, SQL_BACKLINKS, "ii", item.n, start) != 0)
		return -1;
	jw_karray(out, "backlinks");
	while ((rc = query_next(&q, f)) == 1) {
		if (!caller_reads_root(call->caller, col_int(&q, 4)))
			continue;
		if (returned == limit || (returned > 0 && out->out->n > LIMIT_ANSWER_BYTES - 8192)) {
			call->page.is_shrunk = returned < limit;
			next = number_text(call, start);
			break;
		}
		jw_object_begin(out);
		jw_id(out, call, "fromItemId", col_id(&q, 1));
		jw_ktext(out, "type", word_text(dep_stored_type_words, col_int(&q, 2)));
		jw_kstr(out, "fromTitle", col_str(&q, 3));
		jw_object_end(out);
		start = col_int(&q, 0);
		returned++;
	}
	if (rc < 0)
		return -1;
	jw_array_end(out);
	if (in->limit.set || in->cursor.set || next.n > 0)
		call_page(call, returned, -1, next.n == 0 ? STR_NONE : cursor_text(call, &next, 1));
	return 0;
}
