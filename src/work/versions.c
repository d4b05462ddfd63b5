#include "work/versions.h"

int versions_begin(struct versions *page, struct call *call, const struct arg_str *cursor, struct failure *f)
{
	struct cursor from = {0};

	if (cursor->set && cursor_read(call, cursor->v, &from, f) != 0)
		return -1;
	page->below = from.n > 0 ? cursor_int(&from, 0) : INT64_MAX;
	return 0;
}

int versions_write(const struct versions *page, struct snapshot *s, struct call *call, struct query *q,
	struct json_writer *w, struct failure *f)
{
	int64_t returned = 0;
	int64_t last = 0;
	struct str position;
	int rc;

	jw_karray(w, "versions");
	while ((rc = query_next(q, f)) == 1 && returned < page->limit) {
		if (page->write(w, s, call, q, f) != 0)
			return -1;
		last = col_int(q, 0);
		returned++;
	}
	if (rc < 0)
		return -1;
	jw_array_end(w);
	position = str_printf(s->arena, "%lld", (long long)last);
	call_page(call, returned, page->total, rc == 1 ? cursor_text(call, &position, 1) : STR_NONE);
	return 0;
}
