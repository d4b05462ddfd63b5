/* Items that an agent tells of: found again by their native key, which is unique in a session. */
#include "threads/engine.h"

#include "base/limits.h"

SQL(SQL_ITEM_BY_KEY, "SELECT n FROM turn_item WHERE thread_n = $1 AND native_key = $2 ORDER BY n DESC LIMIT 1");

static const enum item_type types[] = {
	[ITEM_TEXT] = TYPE_ASSISTANT_MESSAGE,
	[ITEM_REASONING] = TYPE_REASONING,
	[ITEM_COMMAND] = TYPE_COMMAND_EXECUTION,
	[ITEM_FILE_CHANGE] = TYPE_FILE_CHANGE,
	[ITEM_FILE_SEARCH] = TYPE_FILE_SEARCH,
	[ITEM_WEB_SEARCH] = TYPE_WEB_SEARCH,
	[ITEM_TOOL] = TYPE_DYNAMIC_TOOL,
	[ITEM_TODO] = TYPE_TODO_LIST,
	[ITEM_PLAN] = TYPE_PROPOSED_PLAN,
	[ITEM_SUBAGENT] = TYPE_SUBAGENT,
	[ITEM_COMPACTION] = TYPE_COMPACTION,
	[ITEM_NOTICE] = TYPE_NOTICE,
};

static const enum work_status statuses[] = {
	[AGENT_PENDING] = WORK_PENDING,
	[AGENT_RUNNING] = WORK_RUNNING,
	[AGENT_COMPLETED] = WORK_COMPLETED,
	[AGENT_FAILED] = WORK_FAILED,
	[AGENT_INTERRUPTED] = WORK_INTERRUPTED,
	[AGENT_CANCELLED] = WORK_CANCELLED,
};

static struct str key_of(struct arena *arena, const struct hearing *h, struct str key)
{
	return str_printf(arena, "%lld:%.*s", (long long)h->session.n, STRF(key));
}

static int find_item(struct tx *tx, const struct hearing *h, struct str key, struct turn_item_row *out, struct failure *f)
{
	int64_t n;
	int rc = query_int(&tx->snapshot, &n, f, SQL_ITEM_BY_KEY, "is", h->thread.n, key_of(tx->snapshot.arena, h, key));

	return rc == 1 ? GET(&tx->snapshot, turn_item, n, out, f) : rc;
}

static int new_item(struct tx *tx, const struct hearing *h, const struct agent_item *item, struct turn_item_row *out,
	struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct turn_item_row parent;
	int rc = 0;

	*out = (struct turn_item_row){.thread_n = h->thread.n,
		.run_n = h->run.n,
		.attempt_n = h->attempt.n,
		.native_key = key_of(arena, h, item->key),
		.type = types[item->kind],
		.started_at = tx->snapshot.now};
	out->id = IDENT(arena, "turn-item:provider", h->session.id, item->key);
	if (item->parent.p != NULL)
		rc = find_item(tx, h, item->parent, &parent, f);
	if (rc == 1)
		out->parent_n = parent.n;
	return rc < 0 ? -1 : 0;
}

/* Deltas of one text that came together become one piece. */
static struct str join_deltas(struct arena *arena, const struct agent_event *event, const struct agent_event **next)
{
	struct buf text;

	buf_init(&text, arena, SIZE_MAX);
	buf_add_str(&text, event->item.delta);
	while (event->item.status == AGENT_RUNNING && *next != NULL && (*next)->kind == EVENT_ITEM
		&& (*next)->item.kind == event->item.kind && str_eq((*next)->item.key, event->item.key)
		&& (*next)->item.status == AGENT_RUNNING && (*next)->item.title.p == NULL && (*next)->item.body.p == NULL) {
		buf_add_str(&text, (*next)->item.delta);
		*next = (*next)->next;
	}
	return buf_str(&text);
}

/* Members that are told replace those of the same name; a list of things to do is told whole. */
static struct str merge_bodies(struct arena *arena, const struct agent_item *item, struct str old)
{
	struct json_error error;
	json_auto_t *whole = old.p == NULL ? NULL : json_read(old, &error);
	json_auto_t *part = json_read(item->body, &error);

	if (item->kind == ITEM_TODO || whole == NULL || part == NULL || json_object_update(whole, part) != 0)
		return item->body;
	return json_compact(arena, whole);
}

static bool changes(const struct turn_item_row *row, const struct agent_item *item)
{
	return (item->title.p != NULL && !str_eq(item->title, row->title))
		|| (item->body.p != NULL && !str_eq(item->body, row->body)) || row->status != (int64_t)statuses[item->status];
}

static void take(struct tx *tx, struct turn_item_row *row, const struct agent_item *item)
{
	if (item->title.p != NULL)
		row->title = clean_text(tx->snapshot.arena, item->title, LIMIT_ITEM_TITLE_CHARS);
	if (item->body.p != NULL)
		row->body = merge_bodies(tx->snapshot.arena, item, row->body);
}

/* What has ended may be told again while its run goes on (a list of things to do); it does not open again, its text
 * stays, and what was ended by the end of its run stays as it is. */
static int tell_again(struct tx *tx, const struct hearing *h, struct turn_item_row *row, const struct agent_item *item,
	struct failure *f)
{
	enum work_status status = statuses[item->status];

	if (!h->is_current || row->attempt_n != h->attempt.n)
		return 0;
	take(tx, row, item);
	if (work_is_terminal(status))
		row->status = status;
	return item_change(tx, row, f);
}

int ingest_item(struct tx *tx, struct hearing *h, const struct agent_event *event, const struct agent_event **next,
	struct failure *f)
{
	const struct agent_item *item = &event->item;
	enum work_status status = statuses[item->status];
	struct str text = join_deltas(tx->snapshot.arena, event, next);
	struct turn_item_row row;
	int rc = find_item(tx, h, item->key, &row, f);

	if (rc < 0)
		return -1;
	if (rc == 1 && work_is_terminal(row.status))
		return tell_again(tx, h, &row, item, f);
	if (rc == 0 && new_item(tx, h, item, &row, f) != 0)
		return -1;
	if (rc == 1 && !changes(&row, item) && !work_is_terminal(status))
		return item_append(tx, &row, text, f);
	take(tx, &row, item);
	row.status = work_is_terminal(status) ? WORK_RUNNING : status;
	if ((rc == 0 ? item_add(tx, &row, f) : work_is_terminal(status) ? 0 : item_change(tx, &row, f)) != 0
		|| item_append(tx, &row, text, f) != 0)
		return -1;
	return work_is_terminal(status) ? item_end(tx, &row, status, f) : 0;
}
