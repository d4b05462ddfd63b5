/* GET /api/v1/events: what the caller asks for, checked, and the stream opened. */
#include "server/stream.h"

#include "base/limits.h"

SQL(SQL_STREAM_PROJECT, "SELECT project_n FROM thread WHERE n = $1");
SQL(SQL_STREAM_ROOT, "SELECT n FROM item WHERE id >= $1 AND id <= $2 AND parent_n IS NULL");

/* Values of a parameter that may repeat, and may hold a comma list. */
static size_t values_of(struct str query, struct str name, struct str *out, size_t max)
{
	size_t n = 0;

	while (query.n > 0) {
		const char *end = memchr(query.p, '&', query.n);
		struct str pair = {query.p, end == NULL ? query.n : (size_t)(end - query.p)};

		query.p += pair.n + (end != NULL);
		query.n -= pair.n + (end != NULL);
		if (!str_starts(pair, name) || pair.n <= name.n || pair.p[name.n] != '=')
			continue;
		pair.p += name.n + 1;
		pair.n -= name.n + 1;
		while (pair.n > 0 && n < max) {
			const char *comma = memchr(pair.p, ',', pair.n);

			out[n] = (struct str){pair.p, comma == NULL ? pair.n : (size_t)(comma - pair.p)};
			pair.p += out[n].n + (comma != NULL);
			pair.n -= out[n].n + (comma != NULL);
			n += out[n].n > 0;
		}
	}
	return n;
}

/* Roots asked for that exist and are readable; what is no id only narrows. */
static int read_roots(struct server *server, struct http_exchange *x, struct subscriber *sub, struct failure *f)
{
	struct str texts[MAX_ROOTS] = {{NULL, 0}};
	size_t n = values_of(http_query(x), STR("root"), texts, MAX_ROOTS);
	struct snapshot s;
	bool any_id = false;
	int rc = 0;

	if (n == 0)
		return 0;
	if (snapshot_begin(server->store, http_arena(x), &s, f) != 0)
		return -1;
	for (size_t i = 0; i < n && rc >= 0; i++) {
		struct id_prefix prefix;
		int64_t root;

		if (!id_prefix_parse(texts[i], &prefix))
			continue;
		any_id = true;
		rc = query_int(&s, &root, f, SQL_STREAM_ROOT, "bb", prefix.low, prefix.high);
		if (rc == 1 && caller_reads_root(&sub->caller, root))
			sub->roots[sub->root_count++] = root;
	}
	snapshot_end(&s);
	if (rc < 0)
		return -1;
	if (!any_id)
		return fail_field(f, STR("root"), STR_NONE, "must be the id of a project");
	if (sub->root_count == 0) {
		(void)fail(f, FAIL_FORBIDDEN, "You may read none of these projects.");
		fail_detail_str(f, "scope", STR("root"));
		return -1;
	}
	return 0;
}

static int read_project(struct server *server, struct http_exchange *x, struct subscriber *sub, struct failure *f)
{
	struct snapshot s;
	int rc;

	if (sub->caller.thread_n == 0)
		return 0;
	if (snapshot_begin(server->store, http_arena(x), &s, f) != 0)
		return -1;
	rc = query_int(&s, &sub->project_n, f, SQL_STREAM_PROJECT, "i", sub->caller.thread_n);
	snapshot_end(&s);
	return rc < 0 ? -1 : 0;
}

/* Where the stream starts, and the marker that goes first when something is lost. */
static void read_position(struct server *server, struct http_exchange *x, struct subscriber *sub)
{
	struct str text = http_header(x, "Last-Event-ID", NULL);
	int64_t newest = store_newest(server->store);
	int64_t window = settings_int(server->settings, SETTING_SSE_WINDOW);
	int64_t oldest = newest - window < EVENT_FIRST_SEQ ? EVENT_FIRST_SEQ : newest - window;
	const char *reason = NULL;
	int64_t asked;

	if (text.n == 0)
		text = http_query_value(x, "lastEventId");
	text = str_trim(text);
	sub->sent = newest;
	if (text.n == 0)
		return;
	if (!str_to_int(text, &asked) || asked > newest || asked < EVENT_FIRST_SEQ)
		reason = "unknown_event_id";
	else if (asked < oldest)
		reason = "buffer_evicted";
	sub->sent = reason == NULL ? asked : oldest;
	if (reason != NULL)
		sub->greeting = str_printf(sub->arena,
			"id: %lld\nevent: sync.lost\ndata: {\"event\":\"sync.lost\",\"reason\":\"%s\"}\n\n",
			(long long)oldest, reason);
}

static void hung_up(struct http_exchange *x, void *context)
{
	(void)x;
	/* The hub sweeps it away at its next round; nothing is freed on this thread. */
	atomic_store((atomic_bool *)context, true);
}

void stream_open(struct server *server, struct http_exchange *x, const struct caller *caller)
{
	struct http_field fields[4 + HTTP_GUARD_FIELDS] = {
		{"Content-Type", STR("text/event-stream; charset=utf-8")},
		{"Cache-Control", STR("no-store")},
		{"X-Accel-Buffering", STR("no")},
	};
	struct subscriber *sub = subscriber_create(caller);
	size_t n = 3;
	struct failure f;

	failure_init(&f, http_arena(x));
	if (caller_need(caller, CAP_READ, &f) != 0 || read_roots(server, x, sub, &f) != 0
		|| read_project(server, x, sub, &f) != 0) {
		reply_failure(server, x, &f, caller->req_id);
		subscriber_destroy(sub);
		return;
	}
	if (stream_count(server->hub) >= LIMIT_STREAMS) {
		(void)fail(&f, FAIL_UNAVAILABLE, "There are too many event streams.");
		f.retry_after_ms = 30000;
		reply_failure(server, x, &f, caller->req_id);
		subscriber_destroy(sub);
		return;
	}
	sub->type_count = values_of(http_query(x), STR("types"), sub->types, MAX_TYPES);
	for (size_t i = 0; i < sub->type_count; i++)
		sub->types[i] = str_dup(sub->arena, sub->types[i]);
	read_position(server, x, sub);
	n += http_guard_fields(server->guard, x, fields + n);
	http_keep(x);
	sub->x = x;
	sub->is_gone = ARENA_NEW(http_arena(x), atomic_bool);
	http_on_hangup(x, hung_up, sub->is_gone);
	http_stream_begin(x, 200, fields, n);
	(void)http_stream_write(x, STR("retry: 3000\n: dais\n\n"));
	stream_hub_add(server->hub, sub);
}
