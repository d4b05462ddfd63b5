/* items_read context: what a session that resumes must know, found by roles, never by walking the graph. */
#include "work/advance.h"
#include "work/context.h"
#include "work/history.h"

#define ROWS_DEFAULT 50
#define RECENT 10

/* Shares of the answer, so that a long bucket leaves room for the others. */
#define ACTIVE_BYTES (20 * 1024)
#define BLOCKED_BYTES (15 * 1024)
#define STALLED_BYTES (8 * 1024)
#define READY_BYTES (8 * 1024)

int context_fields_check(const struct arg_strs *fields, struct str path, struct failure *f)
{
	static const char *const allowed[] = {"ancestors", "missing", "blockers", NULL};

	return fields_check(fields->v, fields->n, allowed, str_printf(f->arena, "%.*sfields", STRF(path)), f);
}

static bool asks(const struct context *c, const char *field)
{
	return fields_have(c->in->fields.v, c->in->fields.n, field);
}

/* ---- buckets ---- */

struct bucket {
	const char *name;
	struct rows rows;
	size_t bytes; /* share of the answer */
	bool is_open;
	int64_t count; /* all that belong to it, as far as known */
};

static bool bucket_begin(struct context *c, struct bucket *bucket, struct json_writer *out)
{
	if (!bucket->is_open) {
		jw_karray(out, bucket->name);
		rows_init(&bucket->rows, out, c->call);
		bucket->rows.end = out->out->n + bucket->bytes;
		bucket->is_open = true;
	}
	if ((int64_t)bucket->rows.n == c->limit)
		return false;
	row_begin(&bucket->rows);
	return true;
}

static void bucket_end(struct bucket *bucket, struct json_writer *out)
{
	if (bucket->is_open)
		jw_array_end(out);
}

/* ---- active, and stalled among them ---- */

struct stalled {
	struct id id;
	struct str missing; /* JSON array */
};

/* Keys of the present phase's required notes that are not filled; absent when there is none. */
static int find_missing(struct context *c, const struct item *item, struct str *out, struct failure *f)
{
	const struct rules_note **notes;
	struct schema schema;
	struct note_rows rows;
	struct json_writer w;
	struct buf text;
	size_t n;

	*out = STR_NONE;
	if (item_schema(c->s, c->call, item, &schema, f) != 0 || note_rows_load(c->s, item, &schema, &rows, f) != 0)
		return -1;
	notes = ARENA_ARRAY(c->s->arena, const struct rules_note *, schema.note_count + 1);
	n = notes_unfilled(&schema, &rows, item->role, notes);
	if (n == 0)
		return 0;
	buf_init(&text, c->s->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++)
		jw_str(&w, notes[i]->key);
	jw_array_end(&w);
	*out = buf_str(&text);
	return 0;
}

static int write_active_row(struct context *c, struct json_writer *out, const struct item *item, struct str missing,
	struct failure *f)
{
	item_write_ref(out, c->call, item);
	if (asks(c, "missing") && missing.n > 0)
		jw_kraw(out, "missing", missing);
	return asks(c, "ancestors") ? ancestors_write(out, c->s, c->call, item->parent_n, f) : 0;
}

static int write_stalled(struct context *c, const struct stalled *stalled, size_t n, struct bucket *bucket,
	struct json_writer *out)
{
	for (size_t i = 0; i < n; i++) {
		if (!bucket_begin(c, bucket, out))
			break;
		jw_id(out, c->call, "id", stalled[i].id);
		jw_kraw(out, "missing", stalled[i].missing);
		if (!row_end(&bucket->rows))
			break;
	}
	bucket_end(bucket, out);
	bucket->count = (int64_t)n;
	return 0;
}

static int write_active(struct context *c, struct bucket *bucket, struct stalled *stalled, size_t *stalled_n,
	struct json_writer *out, struct failure *f)
{
	struct found found = {0};

	if (context_find(c, ROLE_WORK, FIND_ALL, INT64_MAX, &found, f) != 0 ||
		context_find(c, ROLE_REVIEW, FIND_ALL, INT64_MAX, &found, f) != 0)
		return -1;
	bucket->count = c->has_tally ? c->tally.by_role[tally_index(ROLE_WORK)] +
			c->tally.by_role[tally_index(ROLE_REVIEW)] : (int64_t)found.n;
	for (size_t i = 0; i < found.n; i++) {
		struct item item;
		struct str missing;

		if (!bucket_begin(c, bucket, out))
			break;
		if (item_load_ref(c->s, found.v[i], &item, f) < 0 || find_missing(c, &item, &missing, f) != 0 ||
			write_active_row(c, out, &item, missing, f) != 0)
			return -1;
		if (!row_end(&bucket->rows))
			break;
		if (missing.n > 0)
			stalled[(*stalled_n)++] = (struct stalled){item.id, missing};
	}
	bucket_end(bucket, out);
	return 0;
}

/* ---- blocked ---- */

static int write_blocked_rows(struct context *c, const struct found *found, const char *type, struct bucket *bucket,
	struct json_writer *out, struct failure *f)
{
	for (size_t i = 0; i < found->n; i++) {
		struct blockers blockers;
		struct item item;

		if (!bucket_begin(c, bucket, out))
			return 0;
		if (item_load_ref(c->s, found->v[i], &item, f) < 0 ||
			dependency_gate(c->s, c->call, item.n, &blockers, f) != 0)
			return -1;
		item_write_ref(out, c->call, &item);
		jw_ktext(out, "blockType", type);
		jw_kint_opt(out, "blockerCount", (int64_t)blockers.n);
		if (asks(c, "blockers") && blockers.n > 0)
			blockers_write(out, c->call, &blockers);
		if (asks(c, "ancestors") && ancestors_write(out, c->s, c->call, item.parent_n, f) != 0)
			return -1;
		if (!row_end(&bucket->rows))
			return 0;
	}
	return 0;
}

/* Of many queued items no count is exact: then only those are looked for that are shown. */
static int64_t gated_wanted(const struct context *c, const struct found *held)
{
	int64_t room = c->limit - (int64_t)held->n;

	if (!c->has_tally || c->tally.by_role[tally_index(ROLE_QUEUE)] <= LIMIT_CONTEXT_EXACT)
		return INT64_MAX;
	return room < 0 ? 0 : room;
}

static int write_blocked(struct context *c, struct bucket *bucket, struct json_writer *out, struct failure *f)
{
	struct found held = {0};
	struct found gated = {0};

	if (context_find(c, ROLE_BLOCKED, FIND_ALL, INT64_MAX, &held, f) != 0 ||
		context_find(c, ROLE_QUEUE, FIND_GATED, gated_wanted(c, &held), &gated, f) != 0)
		return -1;
	bucket->count = (c->has_tally ? c->tally.by_role[tally_index(ROLE_BLOCKED)] : (int64_t)held.n) +
		(int64_t)gated.n;
	if (write_blocked_rows(c, &held, "explicit", bucket, out, f) != 0 ||
		write_blocked_rows(c, &gated, "dependency", bucket, out, f) != 0)
		return -1;
	bucket_end(bucket, out);
	return 0;
}

/* ---- ready to close ---- */

/* Why a parent whose children have all ended goes on: in the order in which a cascade looks. */
static int write_reason(struct context *c, const struct item *item, struct json_writer *out, struct failure *f)
{
	struct move move;
	int rc;

	if (item->role == ROLE_REVIEW || item->role == ROLE_BLOCKED) {
		jw_ktext(out, "reason", "roleBlocked");
		return 0;
	}
	if (move_load(c->s, c->call, item, TRIGGER_CASCADE, CASCADE_COMPLETE, &move, f) != 0)
		return -1;
	move.target = ROLE_TERMINAL;
	if ((rc = gate_dependency(c->s, c->call, &move, f)) < 0)
		return -1;
	if (rc == 0) {
		jw_ktext(out, "reason", "dependencyBlocked");
		return 0;
	}
	if ((rc = gate_note(c->s, c->call, &move, f)) < 0)
		return -1;
	jw_ktext(out, "reason", rc == 0 ? "gateBlocked" : "open");
	if (rc == 0 && move.notes.missing_count > 0)
		notes_write_missing(out, "missing", move.notes.missing, move.notes.missing_count);
	return 0;
}

static int write_ready_row(struct context *c, const struct item *item, struct bucket *bucket,
	struct json_writer *out, struct failure *f)
{
	item_write_ref(out, c->call, item);
	if (write_reason(c, item, out, f) != 0)
		return -1;
	if (asks(c, "ancestors") && ancestors_write(out, c->s, c->call, item->parent_n, f) != 0)
		return -1;
	return row_end(&bucket->rows);
}

/* Rows behind a full bucket are counted unseen: a manual container among them counts as one that could be closed. */
static int write_ready(struct context *c, struct bucket *bucket, struct json_writer *out, struct failure *f)
{
	struct found found = {0};
	int rc = 1;

	if (context_find_done(c, &found, f) != 0)
		return -1;
	bucket->count = (int64_t)found.n;
	for (size_t i = 0; i < found.n && rc == 1; i++) {
		struct schema schema;
		struct item item;

		if (item_load(c->s, found.v[i], &item, f) < 0 || item_schema(c->s, c->call, &item, &schema, f) != 0)
			return -1;
		if (schema.lifecycle == LIFECYCLE_MANUAL || schema.lifecycle == LIFECYCLE_PERMANENT) {
			bucket->count--;
			continue;
		}
		if (!bucket_begin(c, bucket, out))
			break;
		if ((rc = write_ready_row(c, &item, bucket, out, f)) < 0)
			return -1;
	}
	bucket_end(bucket, out);
	return 0;
}

/* ---- the whole ---- */

static void write_counts(struct json_writer *out, const struct bucket *buckets, size_t n)
{
	bool is_open = false;

	jw_kobject(out, "counts");
	for (size_t i = 0; i < n; i++)
		if (buckets[i].count > 0 || i < 3)
			jw_kint(out, buckets[i].name, buckets[i].count);
	jw_object_end(out);
	for (size_t i = 0; i < n; i++) {
		int64_t more = buckets[i].count - (int64_t)buckets[i].rows.n;

		if (more <= 0)
			continue;
		if (!is_open)
			jw_kobject(out, "truncated");
		is_open = true;
		jw_kint(out, buckets[i].name, more);
	}
	if (is_open)
		jw_object_end(out);
}

static int write_recent(struct context *c, struct json_writer *out, struct failure *f)
{
	struct history_scope scope = {.root_n = c->filter.root_n};

	if (c->filter.ancestor_depth > 0)
		scope.ancestor_n = c->filter.ancestor_n;
	return history_recent(c->s, c->call, &scope, c->in->since.v, RECENT, out, f);
}

int items_context(struct snapshot *s, struct call *call, const struct context_args *in, struct json_writer *out,
	struct failure *f)
{
	struct bucket buckets[] = {
		{.name = "active", .bytes = ACTIVE_BYTES},
		{.name = "blocked", .bytes = BLOCKED_BYTES},
		{.name = "stalled", .bytes = STALLED_BYTES},
		{.name = "ready_to_close", .bytes = READY_BYTES},
	};
	struct stalled stalled[LIMIT_LONG_PAGE];
	size_t stalled_n = 0;
	struct context c;

	if (context_open(s, call, in, ROWS_DEFAULT, &c, f) != 0 ||
		write_active(&c, &buckets[0], stalled, &stalled_n, out, f) != 0 ||
		write_blocked(&c, &buckets[1], out, f) != 0 ||
		write_stalled(&c, stalled, stalled_n, &buckets[2], out) != 0 ||
		write_ready(&c, &buckets[3], out, f) != 0 || context_write_claims(&c, out, f) != 0)
		return -1;
	call->page.is_shrunk = false; /* what a bucket lacks is under truncated; there is no next page */
	write_counts(out, buckets, sizeof(buckets) / sizeof(buckets[0]));
	if (c.is_bounded)
		warn(&call->warnings, "scan_bounded", STR_NONE,
			"There are too many items to look at each for blockers and finished children: counts of blocked"
			" and ready_to_close are of those seen. Narrow the scope to see the rest.");
	return in->since.set ? write_recent(&c, out, f) : 0;
}
