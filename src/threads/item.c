/* The timeline of a thread: items in a fixed order, texts that grow while they are streamed. */
#include "threads/engine.h"

#include "base/limits.h"

SQL(SQL_LAST_ITEM, "SELECT ordinal FROM turn_item WHERE thread_n = $1 ORDER BY ordinal DESC LIMIT 1");
SQL(SQL_CHUNK_ADD, "INSERT INTO item_chunk (item_n, at, bytes, text) VALUES ($1, $2, $3, $4)");
SQL(SQL_CHUNK_END, "SELECT at + bytes FROM item_chunk WHERE item_n = $1 ORDER BY at DESC LIMIT 1");
SQL(SQL_CHUNKS, "SELECT text FROM item_chunk WHERE item_n = $1 ORDER BY at");
SQL(SQL_CHUNKS_DROP, "DELETE FROM item_chunk WHERE item_n = $1");
SQL(SQL_OPEN_ITEMS, "SELECT n FROM turn_item WHERE run_n = $1 AND status < 3 ORDER BY n");

int item_add(struct tx *tx, struct turn_item_row *item, struct failure *f)
{
	int64_t last = -1;

	if (query_int(&tx->snapshot, &last, f, SQL_LAST_ITEM, "i", item->thread_n) < 0)
		return -1;
	item->ordinal = last + 1;
	return item_change(tx, item, f);
}

int item_change(struct tx *tx, struct turn_item_row *item, struct failure *f)
{
	item->updated_at = tx->snapshot.now;
	return PUT(tx, turn_item, item, item->thread_n, f);
}

static bool is_streamed(const struct turn_item_row *item)
{
	return item->text.p == NULL && (item->type == TYPE_ASSISTANT_MESSAGE || item->type == TYPE_REASONING);
}

static int chunk_end(struct snapshot *s, int64_t item_n, int64_t *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	*out = 0;
	if (query(s, &q, f, SQL_CHUNK_END, "i", item_n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1)
		*out = col_int(&q, 0);
	return rc < 0 ? -1 : 0;
}

int item_append(struct tx *tx, const struct turn_item_row *item, struct str text, struct failure *f)
{
	struct json_writer w;
	struct buf data;
	int64_t at;

	if (text.n == 0 || !is_streamed(item))
		return 0;
	if (chunk_end(&tx->snapshot, item->n, &at, f) != 0)
		return -1;
	/* A cut falls before a character of at most four bytes: whatever ends so near the limit is full. */
	if (at > LIMIT_ITEM_TEXT_BYTES - 4)
		return 0;
	if (at + (int64_t)text.n > LIMIT_ITEM_TEXT_BYTES)
		text.n = utf8_cut(text, (size_t)(LIMIT_ITEM_TEXT_BYTES - at));
	if (tx_run(tx, f, SQL_CHUNK_ADD, "iiis", item->n, at, (int64_t)text.n, text) < 0)
		return -1;
	buf_init(&data, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &data);
	jw_object_begin(&w);
	jw_kint(&w, "itemN", item->n);
	jw_kint(&w, "at", at);
	jw_kstr(&w, "text", text);
	jw_object_end(&w);
	return event_add_thread(tx, EVENT_TEXT_APPENDED, item->thread_n, buf_str(&data), f);
}

static int chunks_text(struct snapshot *s, int64_t item_n, struct str *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct buf text;
	int rc;

	buf_init(&text, s->arena, SIZE_MAX);
	if (query(s, &q, f, SQL_CHUNKS, "i", item_n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1)
		buf_add_str(&text, col_view(&q, 0));
	*out = buf_str(&text);
	return rc;
}

int item_text(struct snapshot *s, const struct turn_item_row *item, struct str *out, struct failure *f)
{
	*out = item->text;
	return is_streamed(item) ? chunks_text(s, item->n, out, f) : 0;
}

int item_end(struct tx *tx, struct turn_item_row *item, enum work_status status, struct failure *f)
{
	if (is_streamed(item)) {
		if (chunks_text(&tx->snapshot, item->n, &item->text, f) != 0
			|| tx_run(tx, f, SQL_CHUNKS_DROP, "i", item->n) < 0)
			return -1;
	}
	item->status = status;
	item->completed_at = tx->snapshot.now;
	return item_change(tx, item, f);
}

/* Numbers first: a walk over rows that change under it may meet one twice. */
static int list_open(struct snapshot *s, int64_t run_n, int64_t **out, size_t *count, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	size_t room = 0;
	int rc;

	*out = NULL;
	*count = 0;
	if (query(s, &q, f, SQL_OPEN_ITEMS, "i", run_n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (*count == room) {
			*out = arena_grow(s->arena, *out, room * sizeof(**out), (room * 2 + 8) * sizeof(**out));
			room = room * 2 + 8;
		}
		(*out)[(*count)++] = col_int(&q, 0);
	}
	return rc;
}

int items_end_run(struct tx *tx, int64_t run_n, enum work_status status, struct failure *f)
{
	int64_t *open;
	size_t count;

	if (list_open(&tx->snapshot, run_n, &open, &count, f) != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		struct turn_item_row item;

		if (NEED(&tx->snapshot, turn_item, open[i], &item, f) != 0)
			return -1;
		/* A task of ours is an independent thread: it ends by its own result. The program's own end with it. */
		if ((item.type != TYPE_SUBAGENT || item.native_key.p != NULL) && item_end(tx, &item, status, f) != 0)
			return -1;
	}
	return 0;
}

int item_signal(struct tx *tx, const struct thread_run_row *run, enum item_type type, const char *name, struct str body,
	struct failure *f)
{
	struct turn_item_row item = {.thread_n = run->thread_n, .run_n = run->n, .type = type, .status = WORK_COMPLETED,
		.body = body, .started_at = tx->snapshot.now, .completed_at = tx->snapshot.now};
	struct thread_row thread;
	struct str run_id;

	if (NEED(&tx->snapshot, thread, run->thread_n, &thread, f) != 0)
		return -1;
	run_id = ident_run(tx->snapshot.arena, thread.id, run->ordinal);
	item.id = str_printf(tx->snapshot.arena, "%.*s:signal:%s:%lld", STRF(run_id), name, (long long)run->attempt_n);
	item.id = IDENT(tx->snapshot.arena, "turn-item:signal", item.id);
	return item_add(tx, &item, f);
}
