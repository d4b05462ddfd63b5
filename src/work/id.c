/* Ids and prefixes: scope is applied before matches are counted, so that a prefix cannot probe projects
 * that the caller may not read. */
#include "work/work.h"

#define MAX_CANDIDATES 10

SQL(SQL_ITEM_RANGE, "SELECT n, id, root_n FROM item WHERE id >= $1 AND id <= $2 ORDER BY id");
SQL(SQL_NOTE_RANGE,
	"SELECT x.n, x.id, i.root_n FROM note x JOIN item i ON i.n = x.item_n"
	" WHERE x.id >= $1 AND x.id <= $2 ORDER BY x.id");
SQL(SQL_DEP_RANGE,
	"SELECT x.n, x.id, i.root_n FROM dep x JOIN item i ON i.n = x.to_n"
	" WHERE x.id >= $1 AND x.id <= $2 ORDER BY x.id");
SQL(SQL_DOCUMENT_RANGE, "SELECT n, id, root_n FROM document WHERE id >= $1 AND id <= $2 ORDER BY id");
SQL(SQL_RUN_RANGE, "SELECT n, id, root_n FROM run WHERE id >= $1 AND id <= $2 ORDER BY id");
SQL(SQL_SEAT_RANGE,
	"SELECT x.n, x.id, r.root_n FROM run_seat x JOIN run r ON r.n = x.run_n"
	" WHERE x.id >= $1 AND x.id <= $2 ORDER BY x.id");
SQL(SQL_REPORT_RANGE,
	"SELECT x.n, x.id, r.root_n FROM run_report x JOIN run r ON r.n = x.run_n"
	" WHERE x.id >= $1 AND x.id <= $2 ORDER BY x.id");

static const struct {
	const char *name;
	const char *sql;
} kinds[] = {
	[KIND_ITEM] = {"item", SQL_ITEM_RANGE},
	[KIND_NOTE] = {"note", SQL_NOTE_RANGE},
	[KIND_DEPENDENCY] = {"dependency", SQL_DEP_RANGE},
	[KIND_DOCUMENT] = {"document", SQL_DOCUMENT_RANGE},
	[KIND_RUN] = {"run", SQL_RUN_RANGE},
	[KIND_SEAT] = {"run", SQL_SEAT_RANGE},
	[KIND_REPORT] = {"run", SQL_REPORT_RANGE},
};

int fail_not_found(struct failure *f, const char *kind, struct str id)
{
	(void)fail(f, FAIL_NOT_FOUND, "There is no %s %.*s, or you may not read it.", kind, STRF(id));
	fail_detail_str(f, "kind", str_of(kind));
	fail_detail_str(f, "id", id);
	return -1;
}

static int fail_ambiguous(struct failure *f, struct str text, const struct id *ids, size_t n)
{
	struct buf list;
	struct json_writer w;
	char one[ID_TEXT_SIZE];

	(void)fail(f, FAIL_AMBIGUOUS_ID, "The prefix %.*s matches more than one id.", STRF(text));
	fail_detail_str(f, "prefix", text);
	buf_init(&list, f->arena, SIZE_MAX);
	json_writer_init(&w, &list);
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++) {
		id_format(ids[i], one);
		jw_text(&w, one);
	}
	jw_array_end(&w);
	fail_detail_raw(f, "candidates", buf_str(&list));
	return -1;
}

/* How many leading hex digits two ids share. */
static size_t shared_digits(struct id a, struct id b)
{
	size_t i = 0;

	while (i < sizeof(a.b) && a.b[i] == b.b[i])
		i++;
	return i == sizeof(a.b) ? 2 * i : 2 * i + ((a.b[i] ^ b.b[i]) < 0x10);
}

#define LEAST_DIGITS 8

/* Only rows that share the first eight digits can make the prefix longer, and of those there are few. */
static int digits_needed(struct call *call, enum id_kind kind, struct id id, size_t *out, struct failure *f)
{
	struct id low = {{0}};
	struct id high;
	AUTO(query_endp) struct query q = {0};
	int rc;

	memset(high.b, 0xff, sizeof(high.b));
	memcpy(low.b, id.b, LEAST_DIGITS / 2);
	memcpy(high.b, id.b, LEAST_DIGITS / 2);
	if (query(call->snapshot, &q, f, kinds[kind].sql, "bb", low, high) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		size_t shared = shared_digits(id, col_id(&q, 1));

		if (shared < 2 * sizeof(id.b) && shared >= *out && caller_reads_root(call->caller, col_int(&q, 2)))
			*out = shared + 1;
	}
	return rc;
}

struct str id_shown(struct call *call, enum id_kind kind, struct id id)
{
	struct str text = id_str(call->arena, id);
	size_t digits = LEAST_DIGITS;
	struct failure f;

	if (!call->short_ids || call->snapshot == NULL)
		return text;
	failure_init(&f, call->arena);
	/* What cannot be found out makes the id longer, not the answer a failure. */
	if (digits_needed(call, kind, id, &digits, &f) != 0)
		return text;
	text.n = 0;
	for (size_t seen = 0; seen < digits; text.n++)
		seen += text.p[text.n] != '-';
	return text;
}

int id_resolve(struct snapshot *s, struct call *call, enum id_kind kind, struct str text, struct str path,
	int64_t *out_n, struct failure *f)
{
	struct id candidates[MAX_CANDIDATES];
	struct id_prefix prefix;
	size_t found = 0;
	AUTO(query_endp) struct query q = {0};
	int rc;

	if (!id_prefix_parse(text, &prefix))
		return fail_field(f, path, text, "not a UUID or an 8–32 digit hex prefix");
	if (query(s, &q, f, kinds[kind].sql, "bb", prefix.low, prefix.high) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1 && found < MAX_CANDIDATES) {
		if (!caller_reads_root(call->caller, col_int(&q, 2)))
			continue;
		if (found == 0)
			*out_n = col_int(&q, 0);
		candidates[found++] = col_id(&q, 1);
	}
	if (rc < 0)
		return -1;
	if (found == 0)
		return fail_not_found(f, kinds[kind].name, text);
	return found == 1 ? 0 : fail_ambiguous(f, text, candidates, found);
}
