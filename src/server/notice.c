/* Resource notices: which URIs an event changed, told to the MCP clients that subscribed to them.
 *
 * A notice says "read it again", nothing more, so it needs no permission of its own: subscribing checked that. It
 * may come too often, never too seldom. Runs on the hub's thread; costs a look at a counter while nobody listens. */
#include "server/private.h"

#include "base/limits.h"
#include "threads/view.h"

SQL(SQL_NOTICE_PAGE,
	"SELECT e.seq, e.type, i.id, p.id, r.id, e.entity_id, e.data, e.thread_n FROM event e LEFT JOIN item i ON i.n = e.item_n"
	" LEFT JOIN item p ON p.n = i.parent_n LEFT JOIN item r ON r.n = e.root_n"
	" WHERE e.seq > $1 AND e.seq <= $2 ORDER BY e.seq LIMIT $3");

struct noticing {
	struct mcp_server *mcp;
	struct arena *arena; /* of the page */
};

static void tell(struct noticing *n, const char *kind, struct id id, const char *rest)
{
	char text[ID_TEXT_SIZE];

	if (id_is_zero(id))
		return;
	id_format(id, text);
	mcp_notify_resource_updated(n->mcp, str_printf(n->arena, "dais://%s/%s%s", kind, text, rest));
}

/* "/part/name", where everything that is not unreserved in a URI is encoded, but for one character. */
static const char *encode(struct arena *arena, const char *part, struct str name, char kept)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	buf_add_str(&out, str_of(part));
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];
		bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			c == '-' || c == '.' || c == '_' || c == '~' || (kept != '\0' && c == (unsigned char)kept);

		if (is_plain)
			buf_add_char(&out, (char)c);
		else
			buf_printf(&out, "%%%02X", c);
	}
	return str_z(arena, buf_str(&out));
}

static const char *below(struct arena *arena, const char *part, struct str name)
{
	return encode(arena, part, name, '\0');
}

static void tell_item(struct noticing *n, struct id item, struct id parent)
{
	tell(n, "item", item, "");
	tell(n, "item", item, "/tree");
	/* It counts its children. */
	tell(n, "item", parent, "");
	tell(n, "item", parent, "/tree");
}

static void tell_note(struct noticing *n, struct id item, const json_t *data)
{
	tell(n, "item", item, "/notes");
	tell(n, "item", item, below(n->arena, "/note/", json_member_str(data, "key")));
}

/* Both ends of a move are told; the new one is the item's parent now. */
static void tell_old_parent(struct noticing *n, const json_t *data)
{
	struct str old = json_member_str(data, "fromParentId");

	if (old.n > 0)
		mcp_notify_resource_updated(n->mcp, str_printf(n->arena, "dais://item/%.*s/tree", STRF(old)));
}

static void tell_event(struct noticing *n, const struct query *q)
{
	struct id item = col_id(q, 2);
	struct id root = col_id(q, 4);
	struct json_error error;
	json_auto_t *data = json_read(col_str(q, 6), &error);

	switch ((enum event_type)col_int(q, 1)) {
	case EVENT_ITEM_DELETED:
		tell_item(n, col_id(q, 5), root); /* its row is gone, and which parent it had */
		break;
	case EVENT_ITEM_REPARENTED:
		tell_old_parent(n, data);
		tell_item(n, item, col_id(q, 3));
		break;
	case EVENT_NOTE_UPSERTED:
	case EVENT_NOTE_DELETED:
		tell_note(n, item, data);
		tell(n, "item", item, ""); /* it shows how many notes are filled */
		break;
	case EVENT_CONFIG_UPSERTED:
	case EVENT_CONFIG_DELETED:
		tell(n, "config", root, "");
		break;
	case EVENT_DOCUMENT_PUT:
	case EVENT_DOCUMENT_DELETED:
	case EVENT_PLAN_STASHED:
	case EVENT_PLAN_ADOPTED:
		tell(n, "doc", root, below(n->arena, "/", json_member_str(data, "slug")));
		break;
	default:
		tell_item(n, item, col_id(q, 3));
		break;
	}
}

/* ---- threads ---- */

/* Ids of threads hold colons, which clients may encode or not. */
static void tell_named(struct noticing *n, const char *kind, struct str id)
{
	mcp_notify_resource_updated(n->mcp, str_printf(n->arena, "dais:/%s", encode(n->arena, kind, id, '\0')));
	if (memchr(id.p, ':', id.n) != NULL)
		mcp_notify_resource_updated(n->mcp, str_printf(n->arena, "dais:/%s", encode(n->arena, kind, id, ':')));
}

SQL(SQL_NOTICE_THREAD, "SELECT t.id, a.id FROM thread t LEFT JOIN subagent a ON a.child_n = t.n WHERE t.n = $1");

/* The thread of an event, the run or the task that it is about, and the task that is worked on in that thread. Text that
 * goes on changes none of them. */
static int tell_thread_event(struct noticing *n, struct snapshot *s, const struct query *event, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct json_error error;
	json_auto_t *data = json_read(col_str(event, 6), &error);
	json_auto_t *view = NULL;
	struct json_writer w;
	struct buf out;
	int rc;

	if (col_int(event, 1) == EVENT_TEXT_APPENDED)
		return 0;
	buf_init(&out, n->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	if (event_view(s, col_int(event, 1), data, &w, f) != 0
		|| query(s, &q, f, SQL_NOTICE_THREAD, "i", col_int(event, 7)) != 0)
		return -1;
	jw_object_end(&w);
	view = json_read(buf_str(&out), &error);
	rc = query_next(&q, f);
	if (rc == 1) {
		tell_named(n, "/thread/", col_str(&q, 0));
		if (!col_is_null(&q, 1))
			tell_named(n, "/task/", col_str(&q, 1));
	}
	if (json_member_str(view, "runId").n > 0)
		tell_named(n, "/run/", json_member_str(view, "runId"));
	if (json_member_str(view, "taskId").n > 0)
		tell_named(n, "/task/", json_member_str(view, "taskId"));
	return rc < 0 ? -1 : 0;
}

/* 1 when a whole page was told and there may be more, 0 at the end, -1 when the store cannot be read. */
static int tell_page(struct server *server, int64_t newest, int64_t *done)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	AUTO(query_endp) struct query q = {0};
	struct noticing n = {.mcp = server->mcp, .arena = arena};
	struct snapshot s;
	struct failure f;
	size_t count = 0, of_work = 0;
	int rc;

	failure_init(&f, arena);
	if (snapshot_begin(server->store, arena, &s, &f) != 0)
		return -1;
	rc = query(&s, &q, &f, SQL_NOTICE_PAGE, "iii", *done, newest, (int64_t)LIMIT_EVENT_PAGE);
	while (rc == 0 && (rc = query_next(&q, &f)) == 1) {
		if (event_is_of_threads(col_int(&q, 1))) {
			rc = tell_thread_event(&n, &s, &q, &f);
		} else {
			tell_event(&n, &q);
			of_work++;
			rc = 0;
		}
		*done = rc == 0 ? col_int(&q, 0) : *done;
		count++;
	}
	query_end(&q);
	snapshot_end(&s);
	if (rc < 0)
		return -1;
	if (of_work > 0) {
		mcp_notify_resource_updated(server->mcp, STR("dais://overview"));
		mcp_notify_resource_updated(server->mcp, STR("dais://context"));
	}
	return count == LIMIT_EVENT_PAGE;
}

int64_t notice_resources(struct server *server, int64_t since, int64_t newest)
{
	int rc = 1;

	if (!mcp_has_resource_subscribers(server->mcp))
		return newest;
	while (since < newest && rc == 1)
		rc = tell_page(server, newest, &since);
	return rc == 0 ? newest : since;
}
