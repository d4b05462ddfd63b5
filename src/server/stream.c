/* Live events: one thread reads each page of the log once and gives it to everybody who wants it.
 *
 * Invariants
 * (1) The store is the ring: a subscriber is a position in the log. Whoever lags is served from the log again
 *     once it has drained, so nothing is dropped and nothing is kept for it in memory.
 * (2) Within one stream numbers rise, and none that the filter admits is left out.
 * (3) The hub's thread never waits for a subscriber. */
#include "server/stream.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define LAG_BYTES (256 * 1024) /* a stream with more pending is left alone until it drains */
#define LOOK_MS 250	       /* how often those that lag are looked at */
#define AUTH_MS 30000
#define MAX_ROOTS 16
#define MAX_TYPES 32

struct subscriber {
	struct subscriber *next;
	struct http_exchange *x; /* NULL: a local one */
	void (*write)(void *context, struct str line);
	void *context;
	struct arena *arena;
	struct caller caller;
	int64_t roots[MAX_ROOTS]; /* asked for; 0 of them: all that the caller reads */
	size_t root_count;
	struct str types[MAX_TYPES];
	size_t type_count;
	int64_t sent; /* newest event that was looked at for this stream */
	struct str greeting; /* control events that go first */
	atomic_bool *is_gone; /* of a stream: in the exchange's arena, which the hang-up callback outlives never */
};

struct stream_hub {
	struct server *server;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct subscriber *subscribers; /* guarded by lock */
	size_t count;
	int64_t newest;
	bool has_news, stopping;
};

/* One event as it travels, in both shapes. */
struct frame {
	int64_t seq, root_n;
	struct str type;      /* wire name */
	struct str stream;    /* name on the stream, absent: audit only */
	struct str head;      /* data of the stream, open at its end for the actor */
	struct str actor;     /* ,"actor":{…} */
	struct str line;      /* for local readers: everything */
};

SQL(SQL_EVENT_PAGE,
	"SELECT e.seq, e.at, e.type, e.root_n, e.entity_id, i.id, r.id, p.id, p.kind, e.req_id, e.data, e.seat"
	" FROM event e LEFT JOIN item i ON i.n = e.item_n LEFT JOIN item r ON r.n = e.root_n"
	" JOIN principal p ON p.n = e.actor_n WHERE e.seq > $1 ORDER BY e.seq LIMIT $2");

static void write_id(struct json_writer *w, const char *key, struct id id)
{
	char text[ID_TEXT_SIZE];

	if (id_is_zero(id))
		return;
	id_format(id, text);
	jw_ktext(w, key, text);
}

static void write_sse(struct frame *frame, const struct query *q, struct arena *arena, const json_t *data)
{
	struct id item = col_id(q, 5);
	struct buf out;
	struct json_writer w;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kint(&w, "id", frame->seq);
	jw_kstr(&w, "event", frame->stream);
	write_id(&w, "itemId", id_is_zero(item) ? col_id(q, 4) : item);
	jw_ktime(&w, "modifiedAt", col_int(q, 1));
	if (str_eq(frame->stream, STR("item.advanced")))
		jw_kstr_opt(&w, "newRole", json_member_str(data, "to"));
	write_id(&w, "rootId", col_id(q, 6));
	frame->head = buf_str(&out);
}

static void write_line(struct frame *frame, const struct query *q, struct arena *arena)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kint(&w, "seq", frame->seq);
	jw_ktime(&w, "at", col_int(q, 1));
	jw_kstr(&w, "type", frame->type);
	write_id(&w, "rootId", col_id(q, 6));
	write_id(&w, "itemId", col_id(q, 5));
	write_id(&w, "entityId", col_id(q, 4));
	jw_kobject(&w, "actor");
	jw_kstr(&w, "id", col_str(q, 7));
	jw_ktext(&w, "kind", principal_kind_name((enum principal_kind)col_int(q, 8)));
	jw_kstr_opt(&w, "seat", col_str(q, 11));
	jw_object_end(&w);
	jw_kstr_opt(&w, "reqId", col_str(q, 9));
	jw_kraw(&w, "data", col_str(q, 10));
	jw_object_end(&w);
	buf_add_char(&out, '\n');
	frame->line = buf_str(&out);
}

static void read_frame(const struct query *q, struct arena *arena, struct frame *frame)
{
	const struct event_info *info = event_info((int)col_int(q, 2));
	struct json_error error;
	json_auto_t *data = json_read(col_str(q, 10), &error);

	*frame = (struct frame){.seq = col_int(q, 0), .root_n = col_int(q, 3)};
	if (info == NULL)
		return;
	frame->type = str_of(info->wire);
	frame->stream = str_of(info->stream);
	if (frame->stream.p != NULL)
		write_sse(frame, q, arena, data);
	frame->actor = str_printf(arena, ",\"actor\":{\"id\":\"%.*s\",\"kind\":\"%s\"}", STRF(col_str(q, 7)),
		principal_kind_name((enum principal_kind)col_int(q, 8)));
	write_line(frame, q, arena);
}

/* Frames after `since`, at most a page. -1: the store cannot be read now. */
static int read_page(struct stream_hub *hub, struct arena *arena, int64_t since, struct frame *frames, size_t *n)
{
	AUTO(query_endp) struct query q = {0};
	struct snapshot s;
	struct failure f;
	int rc;

	*n = 0;
	failure_init(&f, arena);
	if (snapshot_begin(hub->server->store, arena, &s, &f) != 0)
		return -1;
	rc = query(&s, &q, &f, SQL_EVENT_PAGE, "ii", since, (int64_t)LIMIT_EVENT_PAGE);
	while (rc == 0 && *n < LIMIT_EVENT_PAGE && (rc = query_next(&q, &f)) == 1) {
		read_frame(&q, arena, &frames[(*n)++]);
		rc = 0;
	}
	query_end(&q);
	snapshot_end(&s);
	return rc < 0 ? -1 : 0;
}

static bool admits(const struct subscriber *sub, const struct frame *frame)
{
	bool root_fits = sub->root_count == 0;
	bool type_fits = sub->type_count == 0;

	if (!caller_reads_root(&sub->caller, frame->root_n))
		return false;
	if (sub->x != NULL && frame->stream.p == NULL)
		return false;
	for (size_t i = 0; i < sub->root_count; i++)
		root_fits = root_fits || sub->roots[i] == frame->root_n;
	for (size_t i = 0; i < sub->type_count; i++)
		type_fits = type_fits || str_eq(sub->types[i], sub->x != NULL ? frame->stream : frame->type);
	return root_fits && type_fits;
}

static void deliver(struct subscriber *sub, const struct frame *frame, struct arena *arena)
{
	if (frame->seq <= sub->sent)
		return;
	sub->sent = frame->seq;
	if (frame->type.p == NULL || !admits(sub, frame))
		return;
	if (sub->x == NULL) {
		sub->write(sub->context, frame->line);
		return;
	}
	if (http_stream_write(sub->x,
		    str_printf(arena, "id: %lld\nevent: %.*s\ndata: %.*s%.*s}\n\n", (long long)frame->seq,
			    STRF(frame->stream), STRF(frame->head),
			    STRF(sub->caller.sees_actors ? frame->actor : STR("")))) != 0)
		atomic_store(sub->is_gone, true);
}

static bool lags(struct subscriber *sub)
{
	return sub->x != NULL && http_stream_pending(sub->x) > LAG_BYTES;
}

/* With the lock held: bring one subscriber up to `newest`, unless it lags. True when it is there. */
static bool catch_up(struct stream_hub *hub, struct subscriber *sub, int64_t newest, struct frame *frames)
{
	while (sub->sent < newest && !atomic_load(sub->is_gone) && !lags(sub)) {
		AUTO(arena_destroyp) struct arena *arena = arena_create();
		size_t n;

		if (read_page(hub, arena, sub->sent, frames, &n) != 0)
			return false;
		if (n == 0)
			sub->sent = newest;
		for (size_t i = 0; i < n; i++)
			deliver(sub, &frames[i], arena);
	}
	return sub->sent >= newest;
}

/* With the lock held: one page for all that stand at the same place, which is nearly everybody. */
static void share_page(struct stream_hub *hub, int64_t since, struct frame *frames)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	size_t n;

	if (read_page(hub, arena, since, frames, &n) != 0)
		return;
	for (struct subscriber *sub = hub->subscribers; sub != NULL; sub = sub->next) {
		if (sub->sent != since || atomic_load(sub->is_gone) || lags(sub))
			continue;
		for (size_t i = 0; i < n; i++)
			deliver(sub, &frames[i], arena);
	}
}

static void subscriber_destroy(struct subscriber *sub)
{
	if (sub->x != NULL)
		http_release(sub->x);
	arena_destroy(sub->arena);
	free(sub);
}

static void sweep(struct stream_hub *hub, bool check_credentials)
{
	int64_t now = clock_wall_ms();

	for (struct subscriber **at = &hub->subscribers; *at != NULL;) {
		struct subscriber *sub = *at;

		if (check_credentials && sub->x != NULL && sub->caller.expires_at != 0 &&
			sub->caller.expires_at <= now && !atomic_load(sub->is_gone)) {
			(void)http_stream_write(sub->x, STR("event: auth.expired\ndata: {\"event\":\"auth.expired\"}\n\n"));
			http_stream_end(sub->x);
			atomic_store(sub->is_gone, true);
		}
		if (sub->x != NULL && atomic_load(sub->is_gone)) {
			*at = sub->next;
			hub->count--;
			subscriber_destroy(sub);
		} else {
			at = &sub->next;
		}
	}
}

static void serve(struct stream_hub *hub, struct frame *frames, bool *someone_lags)
{
	int64_t newest = hub->newest;
	int64_t common = 0;

	for (struct subscriber *sub = hub->subscribers; sub != NULL; sub = sub->next) {
		if (sub->greeting.n > 0) {
			if (http_stream_write(sub->x, sub->greeting) != 0)
				atomic_store(sub->is_gone, true);
			sub->greeting = STR_NONE;
		}
		common = sub->sent > common ? sub->sent : common;
	}
	if (common < newest && hub->count > 1)
		share_page(hub, common, frames);
	*someone_lags = false;
	for (struct subscriber *sub = hub->subscribers; sub != NULL; sub = sub->next)
		if (!catch_up(hub, sub, newest, frames))
			*someone_lags = true;
}

static void wait_for_news(struct stream_hub *hub, bool look_soon)
{
	struct timespec until;
	int64_t ms = look_soon ? LOOK_MS : AUTH_MS;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	while (!hub->has_news && !hub->stopping)
		if (pthread_cond_timedwait(&hub->changed, &hub->lock, &until) != 0)
			break;
}

static void *hub_main(void *context)
{
	struct stream_hub *hub = context;
	struct frame *frames = calloc(LIMIT_EVENT_PAGE, sizeof(*frames));
	int64_t checked_at = clock_mono_ms();
	bool someone_lags = false;

	if (frames == NULL)
		abort();
	(void)prctl(PR_SET_NAME, "events");
	(void)pthread_mutex_lock(&hub->lock);
	while (!hub->stopping) {
		bool check = clock_mono_ms() - checked_at >= AUTH_MS;

		wait_for_news(hub, someone_lags);
		hub->has_news = false;
		serve(hub, frames, &someone_lags);
		if (check)
			checked_at = clock_mono_ms();
		sweep(hub, check);
	}
	(void)pthread_mutex_unlock(&hub->lock);
	free(frames);
	return NULL;
}

static void wake(void *context, int64_t newest)
{
	struct stream_hub *hub = context;

	(void)pthread_mutex_lock(&hub->lock);
	if (newest > hub->newest)
		hub->newest = newest;
	hub->has_news = true;
	(void)pthread_cond_signal(&hub->changed);
	(void)pthread_mutex_unlock(&hub->lock);
}

struct stream_hub *stream_hub_create(struct server *server, struct failure *f)
{
	struct stream_hub *hub = calloc(1, sizeof(*hub));
	pthread_condattr_t monotonic;

	if (hub == NULL)
		abort();
	hub->server = server;
	hub->newest = store_newest(server->store);
	(void)pthread_mutex_init(&hub->lock, NULL);
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&hub->changed, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
	store_follow(server->store, wake, hub);
	if (pthread_create(&hub->thread, NULL, hub_main, hub) != 0) {
		(void)fail_errno(f, "start the events thread");
		stream_hub_destroy(hub);
		return NULL;
	}
	hub->has_thread = true;
	return hub;
}

void stream_hub_stop(struct stream_hub *hub)
{
	if (hub == NULL)
		return;
	(void)pthread_mutex_lock(&hub->lock);
	hub->stopping = true;
	(void)pthread_cond_signal(&hub->changed);
	(void)pthread_mutex_unlock(&hub->lock);
	if (hub->has_thread)
		(void)pthread_join(hub->thread, NULL);
	hub->has_thread = false;
	(void)pthread_mutex_lock(&hub->lock);
	for (struct subscriber *sub = hub->subscribers; sub != NULL; sub = sub->next) {
		if (sub->x != NULL && !atomic_load(sub->is_gone)) {
			http_stream_end(sub->x);
			atomic_store(sub->is_gone, true);
		}
	}
	sweep(hub, false);
	(void)pthread_mutex_unlock(&hub->lock);
}

void stream_hub_destroy(struct stream_hub *hub)
{
	if (hub == NULL)
		return;
	(void)pthread_mutex_destroy(&hub->lock);
	(void)pthread_cond_destroy(&hub->changed);
	free(hub);
}

size_t stream_count(struct stream_hub *hub)
{
	size_t count;

	(void)pthread_mutex_lock(&hub->lock);
	count = hub->count;
	(void)pthread_mutex_unlock(&hub->lock);
	return count;
}

static struct subscriber *subscriber_create(const struct caller *caller)
{
	struct subscriber *sub = calloc(1, sizeof(*sub));

	if (sub == NULL)
		abort();
	sub->arena = arena_create();
	sub->is_gone = ARENA_NEW(sub->arena, atomic_bool);
	/* The copy has an arena of its own: a stream outlives the request's. */
	sub->caller = *(const struct caller *)mcp_caller_of(sub->arena, caller).app;
	return sub;
}

static void add(struct stream_hub *hub, struct subscriber *sub)
{
	(void)pthread_mutex_lock(&hub->lock);
	sub->next = hub->subscribers;
	hub->subscribers = sub;
	hub->count++;
	hub->has_news = true;
	(void)pthread_cond_signal(&hub->changed);
	(void)pthread_mutex_unlock(&hub->lock);
}

struct subscriber *local_subscribe(struct stream_hub *hub, const struct caller *caller, int64_t since,
	void (*write)(void *context, struct str line), void *context)
{
	struct subscriber *sub = subscriber_create(caller);

	sub->write = write;
	sub->context = context;
	sub->sent = since == 0 ? store_newest(hub->server->store) : since;
	add(hub, sub);
	return sub;
}

void local_unsubscribe(struct stream_hub *hub, struct subscriber *subscriber)
{
	(void)pthread_mutex_lock(&hub->lock);
	for (struct subscriber **at = &hub->subscribers; *at != NULL; at = &(*at)->next) {
		if (*at == subscriber) {
			*at = subscriber->next;
			hub->count--;
			break;
		}
	}
	(void)pthread_mutex_unlock(&hub->lock);
	subscriber_destroy(subscriber);
}

/* ---- GET /api/v1/events ---- */

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

void stream_open(struct stream_hub *hub, struct http_exchange *x, const struct caller *caller)
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
	if (caller_need(caller, CAP_READ, &f) != 0 || read_roots(hub->server, x, sub, &f) != 0) {
		reply_failure(hub->server, x, &f, caller->req_id);
		subscriber_destroy(sub);
		return;
	}
	if (stream_count(hub) >= LIMIT_STREAMS) {
		(void)fail(&f, FAIL_UNAVAILABLE, "There are too many event streams.");
		f.retry_after_ms = 30000;
		reply_failure(hub->server, x, &f, caller->req_id);
		subscriber_destroy(sub);
		return;
	}
	sub->type_count = values_of(http_query(x), STR("types"), sub->types, MAX_TYPES);
	for (size_t i = 0; i < sub->type_count; i++)
		sub->types[i] = str_dup(sub->arena, sub->types[i]);
	read_position(hub->server, x, sub);
	n += http_guard_fields(hub->server->guard, x, fields + n);
	http_keep(x);
	sub->x = x;
	sub->is_gone = ARENA_NEW(http_arena(x), atomic_bool);
	http_on_hangup(x, hung_up, sub->is_gone);
	http_stream_begin(x, 200, fields, n);
	(void)http_stream_write(x, STR("retry: 3000\n: dais\n\n"));
	add(hub, sub);
}
