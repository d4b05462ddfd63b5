/* items_read history: transitions out of the one event log, newest first. */
#include "work/history.h"

#define PAGE_DEFAULT 10

/* The log is read backwards in windows of its numbers, which have no gaps: a project that did little long ago
 * costs a bounded look per page, and the page that found nothing still hands on where to go on. */
#define WINDOW 2000
#define WINDOWS 20

struct reading {
	struct snapshot *s;
	struct call *call;
	const struct history_args *in;
	struct history_scope scope;
	struct rows rows;
	int64_t limit;
	int64_t before; /* events below this number are to be read */
	bool is_ended;	/* nothing older can match */
};

/* ---- one entry ---- */

struct entry {
	int64_t seq;
	struct id id, item_id;
	int64_t at, item_n, root_n, actor_n, verification, run_n, prev_seq;
	struct str title, seat, data;
};

static bool is_wanted(const struct history_args *in, const json_t *data)
{
	struct str word = json_member_str(data, "trigger");
	enum trigger trigger;

	if (str_eq(word, STR("cascade")))
		trigger = TRIGGER_CASCADE;
	else if (!trigger_parse(word, &trigger))
		return !in->triggers.set;
	if (trigger == TRIGGER_CASCADE && in->include_cascades.set && !in->include_cascades.v)
		return false;
	for (size_t i = 0; i < in->triggers.n; i++)
		if (in->triggers.v[i] == (int64_t)trigger)
			return true;
	return !in->triggers.set;
}

static int write_entry(struct json_writer *w, struct snapshot *s, struct call *call, const struct entry *e,
	const json_t *data, struct failure *f)
{
	const json_t *credentials = json_object_get(data, "consumedCredentials");

	jw_kstr(w, "id", id_str(call->arena, e->id)); /* nothing resolves a prefix of it */
	jw_id(w, call, "itemId", e->item_id);
	jw_kstr(w, "title", e->title);
	jw_kstr(w, "from", json_member_str(data, "from"));
	jw_kstr(w, "to", json_member_str(data, "to"));
	jw_kstr(w, "trigger", json_member_str(data, "trigger"));
	jw_kstr_opt(w, "statusLabel", json_member_str(data, "toLabel"));
	jw_kstr_opt(w, "summary", json_member_str(data, "summary"));
	jw_ktime(w, "at", e->at);
	if (json_array_size(credentials) > 0) {
		jw_key(w, "consumedCredentials");
		jw_json(w, credentials);
	}
	verification_write(w, call, (enum verification)e->verification, STR_NONE, STR_NONE);
	return actor_write(w, s, call, "actor", e->actor_n, e->run_n, e->seat, f);
}

static void read_entry(const struct query *q, struct entry *out)
{
	*out = (struct entry){
		.seq = col_int(q, 0),
		.id = col_id(q, 1),
		.at = col_int(q, 2),
		.item_n = col_int(q, 3),
		.item_id = col_id(q, 4),
		.root_n = col_int(q, 5),
		.title = col_str(q, 6),
		.actor_n = col_int(q, 7),
		.verification = col_int(q, 8),
		.seat = col_str(q, 9),
		.data = col_str(q, 10),
		.run_n = col_int(q, 11),
		.prev_seq = col_int(q, 12),
	};
}

static int in_scope(struct reading *r, const struct entry *e, struct failure *f)
{
	const struct history_scope *scope = &r->scope;

	if (!caller_reads_root(r->call->caller, e->root_n) || (scope->root_n != 0 && e->root_n != scope->root_n))
		return 0;
	return scope->ancestor_n == 0 ? 1 : item_is_below(r->s, e->item_n, scope->ancestor_n, f);
}

/* 1 the entry stands or is none of ours, 0 the page is full before it, -1 failure. */
static int take(struct reading *r, const struct entry *e, struct failure *f)
{
	struct json_error error;
	json_auto_t *data = NULL;
	int rc;

	if (r->in->until.set && e->at >= r->in->until.v)
		return 1;
	if ((rc = in_scope(r, e, f)) != 1)
		return rc < 0 ? -1 : 1;
	data = json_read(e->data, &error);
	if (!is_wanted(r->in, data))
		return 1;
	if ((int64_t)r->rows.n == r->limit)
		return 0;
	row_begin(&r->rows);
	if (write_entry(r->rows.w, r->s, r->call, e, data, f) != 0)
		return -1;
	return row_end(&r->rows);
}

/* ---- the log ---- */

/* An id that a later item got again would show a stranger's past: the entity settles whose event it is. */
#define ENTRY_COLUMNS \
	"SELECT e.seq, e.id, e.at, i.n, i.id, i.root_n, t.title, e.actor_n, e.verification, e.seat, e.data," \
	" e.run_n, e.prev_seq" \
	" FROM event e JOIN item i ON i.n = e.item_n AND i.id = e.entity_id JOIN item_text t ON t.n = i.n"
#define TRANSITIONED "5"

SQL(SQL_HISTORY_WINDOW, /* by primary key */
	ENTRY_COLUMNS " WHERE e.seq >= $1 AND e.seq < $2 AND e.type = " TRANSITIONED " ORDER BY e.seq DESC");
/* 1 go on, also when `since` ends it; 0 the page ended before the entry. */
static int take_next(struct reading *r, const struct entry *e, struct failure *f)
{
	int rc;

	if (r->in->since.set && e->at <= r->in->since.v) {
		r->is_ended = true;
		return 1;
	}
	if ((rc = take(r, e, f)) == 1)
		r->before = e->seq;
	return rc;
}

/* The transitions of an item hang together: its row names the newest, each names the one before. A cursor names the
 * last that was shown. All by primary key. */
SQL(SQL_MOVED, "SELECT moved_seq FROM item WHERE n = $1");
SQL(SQL_BEFORE, "SELECT prev_seq FROM event WHERE seq = $1 AND item_n = $2 AND type = " TRANSITIONED);
SQL(SQL_HISTORY_ENTRY, ENTRY_COLUMNS " WHERE e.seq = $1 AND e.item_n = $2 AND e.type = " TRANSITIONED);

/* The newest transition that was not shown yet, or 0. */
static int first_of_item(struct reading *r, bool is_continued, int64_t *out, struct failure *f)
{
	int rc;

	*out = 0;
	if (is_continued)
		rc = query_int(r->s, out, f, SQL_BEFORE, "ii", r->before, r->scope.item_n);
	else
		rc = query_int(r->s, out, f, SQL_MOVED, "i", r->scope.item_n);
	return rc < 0 ? -1 : 0;
}

static int read_item(struct reading *r, bool is_continued, struct failure *f)
{
	int64_t seq;

	if (first_of_item(r, is_continued, &seq, f) != 0)
		return -1;
	while (seq != 0 && !r->is_ended) {
		AUTO(query_endp) struct query q = {0};
		struct entry e;
		int rc;

		if (query(r->s, &q, f, SQL_HISTORY_ENTRY, "ii", seq, r->scope.item_n) != 0)
			return -1;
		if ((rc = query_next(&q, f)) < 0)
			return -1;
		if (rc == 0)
			break;
		read_entry(&q, &e);
		if ((rc = take_next(r, &e, f)) != 1)
			return rc;
		seq = e.prev_seq;
	}
	r->is_ended = true;
	return 0;
}

/* 1 all rows were taken, 0 the page ended among them. */
static int take_rows(struct reading *r, struct query *q, struct failure *f)
{
	struct entry e;
	int rc;

	while ((rc = query_next(q, f)) == 1) {
		read_entry(q, &e);
		if ((rc = take_next(r, &e, f)) != 1 || r->is_ended)
			return rc;
	}
	return rc < 0 ? -1 : 1;
}

static int read_log(struct reading *r, struct failure *f)
{
	for (int i = 0; i < WINDOWS && !r->is_ended; i++) {
		AUTO(query_endp) struct query q = {0};
		int64_t from = r->before - WINDOW;
		int rc;

		if (query(r->s, &q, f, SQL_HISTORY_WINDOW, "ii", from, r->before) != 0)
			return -1;
		rc = take_rows(r, &q, f);
		if (rc != 1)
			return rc;
		r->before = from;
		r->is_ended = r->is_ended || from <= EVENT_FIRST_SEQ;
	}
	return 0;
}

SQL(SQL_NEWEST_EVENT, "SELECT max(seq) FROM event");

static int begin(struct reading *r, struct str cursor_given, struct failure *f)
{
	struct cursor cursor;
	int64_t newest = EVENT_FIRST_SEQ;

	if (cursor_given.p != NULL) {
		if (cursor_read(r->call, cursor_given, &cursor, f) != 0)
			return -1;
		r->before = cursor_int(&cursor, 0);
		return 0;
	}
	if (query_int(r->s, &newest, f, SQL_NEWEST_EVENT, "") < 0)
		return -1;
	r->before = newest + 1;
	return 0;
}

static int run(struct reading *r, struct str cursor, struct failure *f)
{
	if (begin(r, cursor, f) != 0)
		return -1;
	return r->scope.item_n != 0 ? read_item(r, cursor.p != NULL, f) : read_log(r, f);
}

int history_recent(struct snapshot *s, struct call *call, const struct history_scope *scope, int64_t since,
	int64_t limit, struct json_writer *out, struct failure *f)
{
	const struct history_args in = {.since = {.v = since, .set = true}};
	struct reading r = {.s = s, .call = call, .in = &in, .scope = *scope, .limit = limit};

	rows_init(&r.rows, out, call);
	jw_karray(out, "recent");
	if (run(&r, STR_NONE, f) != 0)
		return -1;
	jw_array_end(out);
	return 0;
}

/* ---- the operation ---- */

static int find_scope(struct reading *r, struct failure *f)
{
	const struct history_args *in = r->in;
	struct item item;

	if (in->item.set) {
		if (item_find(r->s, r->call, in->item.v, STR("itemId"), &item, f) != 0)
			return -1;
		r->scope.item_n = item.n;
	} else if (in->ancestor.set) {
		if (item_find(r->s, r->call, in->ancestor.v, STR("ancestorId"), &item, f) != 0)
			return -1;
		r->scope.root_n = item.root_n;
		r->scope.ancestor_n = item.parent_n == 0 ? 0 : item.n;
	} else if (in->root.set) {
		if (item_find(r->s, r->call, in->root.v, STR("rootId"), &item, f) != 0)
			return -1;
		if (item.parent_n != 0)
			return fail_field(f, STR("rootId"), in->root.v, "is not a project root");
		r->scope.root_n = item.n;
	}
	return 0;
}

int items_history(struct snapshot *s, struct call *call, const struct history_args *in, struct json_writer *out,
	struct failure *f)
{
	struct reading r = {.s = s, .call = call, .in = in, .limit = in->limit.set ? in->limit.v : PAGE_DEFAULT};
	struct str next = STR_NONE;
	struct str part;

	if (find_scope(&r, f) != 0)
		return -1;
	rows_init(&r.rows, out, call);
	jw_karray(out, "entries");
	if (run(&r, in->cursor.v, f) != 0)
		return -1;
	jw_array_end(out);
	if (!r.is_ended) {
		part = str_printf(call->arena, "%lld", (long long)r.before);
		next = cursor_text(call, &part, 1);
	}
	call_page(call, (int64_t)r.rows.n, -1, next);
	return 0;
}
