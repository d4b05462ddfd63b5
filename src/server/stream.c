/* Live events: one thread reads each page of the log once and gives it to everybody who wants it.
 *
 * Invariants
 * (1) The store is the ring: a subscriber is a position in the log. Whoever lags is served from the log again
 *     once it has drained, so nothing is dropped and nothing is kept for it in memory.
 * (2) Within one stream numbers rise, and none that the filter admits is left out.
 * (3) The hub's thread never waits for a subscriber.
 * (4) Nobody waits for the hub's thread while it serves: the writer and the http thread take news_lock only,
 *     which is held for a few assignments. A fan-out to a thousand streams takes 15 ms and more. */
#include "server/stream.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "threads/view.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define LAG_BYTES (256 * 1024) /* a stream with more pending is left alone until it drains */
#define LOOK_MS 250	       /* how often those that lag are looked at */
#define AUTH_MS 30000

struct stream_hub {
	struct server *server;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	struct subscriber *subscribers; /* guarded by lock, which comes before news_lock */
	atomic_size_t count;		/* newcomers included */
	pthread_mutex_t news_lock;
	pthread_cond_t changed;
	struct subscriber *newcomers; /* this and the rest: guarded by news_lock */
	int64_t newest;
	bool has_news, must_recheck, stopping;
};

/* One event as it travels, in both shapes. */
struct frame {
	int64_t seq, root_n;
	int64_t project_n;    /* of an event of threads, else 0 */
	bool is_hidden;	      /* nobody sees it: its thread was deleted */
	struct str type;      /* wire name */
	struct str stream;    /* name on the stream, absent: audit only */
	struct str head;      /* data of the stream, open at its end for the actor */
	struct str actor;     /* ,"actor":{…} */
	struct str line;      /* for local readers: everything */
};

SQL(SQL_EVENT_PAGE,
	"SELECT e.seq, e.at, e.type, e.root_n, e.entity_id, i.id, r.id, p.id, p.kind, e.req_id, e.data, e.seat, e.thread_n"
	" FROM event e LEFT JOIN item i ON i.n = e.item_n LEFT JOIN item r ON r.n = e.root_n"
	" JOIN principal p ON p.n = e.actor_n WHERE e.seq > $1 AND e.seq <= $2 ORDER BY e.seq LIMIT $3");
SQL(SQL_EVENT_THREAD,
	"SELECT t.id, t.deleted_at, j.n, j.id, j.root_n, r.id FROM thread t JOIN project j ON j.n = t.project_n"
	" LEFT JOIN item r ON r.n = j.root_n WHERE t.n = $1");
SQL(SQL_EVENT_PROJECT, "SELECT j.id, j.root_n, r.id FROM project j LEFT JOIN item r ON r.n = j.root_n WHERE j.n = $1");

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

/* ---- events of threads ---- */

/* Whose it is; the members that go in front of every other. */
struct belonging {
	struct str members;
	struct id root;
};

/* 1 known, 0 its row is gone, -1. */
static int read_belonging(struct snapshot *s, int64_t thread_n, const json_t *data, struct frame *frame,
	struct belonging *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int64_t project_n = json_integer_value(json_object_get(data, "n"));
	struct json_writer w;
	struct buf members;
	int first = thread_n == 0 ? 0 : 3;
	int rc = thread_n == 0 ? query(s, &q, f, SQL_EVENT_PROJECT, "i", project_n)
			       : query(s, &q, f, SQL_EVENT_THREAD, "i", thread_n);

	if (rc != 0 || (rc = query_next(&q, f)) != 1)
		return rc;
	frame->project_n = thread_n == 0 ? project_n : col_int(&q, 2);
	/* That it was deleted is the last that is said of a thread. */
	frame->is_hidden = thread_n != 0 && !col_is_null(&q, 1) && json_object_get(data, "deletedAt") == NULL;
	frame->root_n = col_int(&q, first + 1);
	out->root = col_id(&q, first + 2);
	buf_init(&members, s->arena, SIZE_MAX);
	json_writer_init(&w, &members);
	write_id(&w, "rootId", out->root);
	jw_kstr(&w, "projectId", col_str(&q, first));
	if (thread_n != 0)
		jw_kstr(&w, "threadId", col_str(&q, 0));
	out->members = buf_str(&members);
	return 1;
}

static void write_thread_sse(struct frame *frame, const struct query *q, struct arena *arena, struct str belongs,
	struct str members)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kint(&w, "id", frame->seq);
	jw_kstr(&w, "event", frame->stream);
	jw_ktime(&w, "modifiedAt", col_int(q, 1));
	jw_members(&w, belongs);
	jw_members(&w, members);
	frame->head = buf_str(&out);
}

static void write_thread_line(struct frame *frame, const struct query *q, struct arena *arena, struct str belongs,
	struct str members)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_kint(&w, "seq", frame->seq);
	jw_ktime(&w, "at", col_int(q, 1));
	jw_kstr(&w, "type", frame->type);
	jw_members(&w, belongs);
	jw_kobject(&w, "actor");
	jw_kstr(&w, "id", col_str(q, 7));
	jw_ktext(&w, "kind", principal_kind_name((enum principal_kind)col_int(q, 8)));
	jw_object_end(&w);
	jw_kstr_opt(&w, "reqId", col_str(q, 9));
	jw_kobject(&w, "data");
	jw_members(&w, members);
	jw_object_end(&w);
	jw_object_end(&w);
	buf_add_char(&out, '\n');
	frame->line = buf_str(&out);
}

static int read_thread_frame(struct snapshot *s, const struct query *q, const json_t *data, struct frame *frame,
	struct failure *f)
{
	struct belonging belongs;
	struct json_writer w;
	struct buf members;
	int rc = read_belonging(s, col_int(q, 12), data, frame, &belongs, f);

	if (rc != 1) {
		frame->is_hidden = true;
		return rc;
	}
	if (frame->is_hidden)
		return 0;
	buf_init(&members, s->arena, SIZE_MAX);
	json_writer_init(&w, &members);
	if (event_view(s, col_int(q, 2), data, &w, f) != 0)
		return -1;
	write_thread_sse(frame, q, s->arena, belongs.members, buf_str(&members));
	write_thread_line(frame, q, s->arena, belongs.members, buf_str(&members));
	return 0;
}

static int read_frame(struct snapshot *s, const struct query *q, struct frame *frame, struct failure *f)
{
	const struct event_info *info = event_info((int)col_int(q, 2));
	struct arena *arena = s->arena;
	struct json_error error;
	json_auto_t *data = json_read(col_str(q, 10), &error);

	*frame = (struct frame){.seq = col_int(q, 0), .root_n = col_int(q, 3)};
	if (info == NULL)
		return 0;
	frame->type = str_of(info->wire);
	frame->stream = str_of(info->stream);
	frame->actor = str_printf(arena, ",\"actor\":{\"id\":\"%.*s\",\"kind\":\"%s\"}", STRF(col_str(q, 7)),
		principal_kind_name((enum principal_kind)col_int(q, 8)));
	if (event_is_of_threads(info->type))
		return read_thread_frame(s, q, data, frame, f);
	if (frame->stream.p != NULL)
		write_sse(frame, q, arena, data);
	write_line(frame, q, arena);
	return 0;
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
	rc = query(&s, &q, &f, SQL_EVENT_PAGE, "iii", since, store_newest(hub->server->store),
		(int64_t)LIMIT_EVENT_PAGE);
	while (rc == 0 && *n < LIMIT_EVENT_PAGE && (rc = query_next(&q, &f)) == 1) {
		rc = read_frame(&s, &q, &frames[*n], &f);
		*n += rc == 0;
	}
	query_end(&q);
	snapshot_end(&s);
	return rc < 0 ? -1 : 0;
}

/* An agent that dais started sees the threads of its own project. */
static bool may_read(const struct subscriber *sub, const struct frame *frame)
{
	if (sub->caller.thread_n != 0 && frame->project_n != 0)
		return sub->project_n == frame->project_n;
	return caller_reads_root(&sub->caller, frame->root_n);
}

static bool admits(const struct subscriber *sub, const struct frame *frame)
{
	bool root_fits = sub->root_count == 0;
	bool type_fits = sub->type_count == 0;

	if (frame->is_hidden || !may_read(sub, frame))
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

void subscriber_destroy(struct subscriber *sub)
{
	if (sub->x != NULL)
		http_release(sub->x);
	arena_destroy(sub->arena);
	free(sub);
}

/* With the lock held: the caller may no longer read. */
static void expel(struct subscriber *sub)
{
	(void)http_stream_write(sub->x, STR("event: auth.expired\ndata: {\"event\":\"auth.expired\"}\n\n"));
	http_stream_end(sub->x);
	atomic_store(sub->is_gone, true);
}

/* What cannot be read now stays open until the next look. */
static bool may_stay(void *context, struct str principal)
{
	struct snapshot *s = context;
	struct failure f;

	failure_init(&f, s->arena);
	return principal_is_live(s, principal, &f) != 0;
}

static void check_credentials(struct stream_hub *hub)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct snapshot s;
	struct failure f;

	failure_init(&f, arena);
	if (snapshot_begin(hub->server->store, arena, &s, &f) != 0)
		return;
	(void)pthread_mutex_lock(&hub->lock);
	for (struct subscriber *sub = hub->subscribers; sub != NULL; sub = sub->next)
		if (sub->x != NULL && !atomic_load(sub->is_gone) &&
			((sub->caller.expires_at != 0 && sub->caller.expires_at <= s.now) ||
				!may_stay(&s, sub->caller.actor.id)))
			expel(sub);
	(void)pthread_mutex_unlock(&hub->lock);
	/* Without the lock: MCP takes locks of its own. */
	mcp_end_streams(hub->server->mcp, may_stay, &s);
	snapshot_end(&s);
}

static void sweep(struct stream_hub *hub)
{
	for (struct subscriber **at = &hub->subscribers; *at != NULL;) {
		struct subscriber *sub = *at;

		if (sub->x != NULL && atomic_load(sub->is_gone)) {
			*at = sub->next;
			(void)atomic_fetch_sub(&hub->count, 1);
			subscriber_destroy(sub);
		} else {
			at = &sub->next;
		}
	}
}

static void serve(struct stream_hub *hub, int64_t newest, struct frame *frames, bool *someone_lags)
{
	int64_t common = 0;

	for (struct subscriber *sub = hub->subscribers; sub != NULL; sub = sub->next) {
		if (sub->greeting.n > 0) {
			if (http_stream_write(sub->x, sub->greeting) != 0)
				atomic_store(sub->is_gone, true);
			sub->greeting = STR_NONE;
		}
		common = sub->sent > common ? sub->sent : common;
	}
	if (common < newest && atomic_load(&hub->count) > 1)
		share_page(hub, common, frames);
	*someone_lags = false;
	for (struct subscriber *sub = hub->subscribers; sub != NULL; sub = sub->next)
		if (!catch_up(hub, sub, newest, frames))
			*someone_lags = true;
}

/* With the lock held, so that at any time each subscriber is in one of the lists. */
static void admit_newcomers(struct stream_hub *hub)
{
	(void)pthread_mutex_lock(&hub->news_lock);
	while (hub->newcomers != NULL) {
		struct subscriber *sub = hub->newcomers;

		hub->newcomers = sub->next;
		sub->next = hub->subscribers;
		hub->subscribers = sub;
	}
	(void)pthread_mutex_unlock(&hub->news_lock);
}

/* False: the hub stops. */
static bool wait_for_news(struct stream_hub *hub, bool look_soon, int64_t *newest, bool *recheck)
{
	struct timespec until;
	int64_t ms = look_soon ? LOOK_MS : AUTH_MS;
	bool goes_on;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	(void)pthread_mutex_lock(&hub->news_lock);
	while (!hub->has_news && !hub->must_recheck && !hub->stopping)
		if (pthread_cond_timedwait(&hub->changed, &hub->news_lock, &until) != 0)
			break;
	hub->has_news = false;
	*recheck = hub->must_recheck;
	hub->must_recheck = false;
	goes_on = !hub->stopping;
	*newest = hub->newest;
	(void)pthread_mutex_unlock(&hub->news_lock);
	return goes_on;
}

static void *hub_main(void *context)
{
	struct stream_hub *hub = context;
	struct frame *frames = calloc(LIMIT_EVENT_PAGE, sizeof(*frames));
	int64_t checked_at = clock_mono_ms();
	bool someone_lags = false;
	int64_t noticed = store_newest(hub->server->store);
	int64_t newest;
	bool recheck;

	if (frames == NULL)
		abort();
	(void)prctl(PR_SET_NAME, "events");
	while (wait_for_news(hub, someone_lags, &newest, &recheck)) {
		(void)pthread_mutex_lock(&hub->lock);
		admit_newcomers(hub);
		serve(hub, newest, frames, &someone_lags);
		(void)pthread_mutex_unlock(&hub->lock);
		if (recheck || clock_mono_ms() - checked_at >= AUTH_MS) {
			checked_at = clock_mono_ms();
			check_credentials(hub);
		}
		(void)pthread_mutex_lock(&hub->lock);
		sweep(hub);
		(void)pthread_mutex_unlock(&hub->lock);
		/* Without the lock: MCP takes locks of its own. */
		noticed = notice_resources(hub->server, noticed, newest);
	}
	free(frames);
	return NULL;
}

static void wake(void *context, int64_t newest)
{
	struct stream_hub *hub = context;

	(void)pthread_mutex_lock(&hub->news_lock);
	if (newest > hub->newest)
		hub->newest = newest;
	hub->has_news = true;
	(void)pthread_cond_signal(&hub->changed);
	(void)pthread_mutex_unlock(&hub->news_lock);
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
	(void)pthread_mutex_init(&hub->news_lock, NULL);
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
	(void)pthread_mutex_lock(&hub->news_lock);
	hub->stopping = true;
	(void)pthread_cond_signal(&hub->changed);
	(void)pthread_mutex_unlock(&hub->news_lock);
	if (hub->has_thread)
		(void)pthread_join(hub->thread, NULL);
	hub->has_thread = false;
	(void)pthread_mutex_lock(&hub->lock);
	admit_newcomers(hub);
	for (struct subscriber *sub = hub->subscribers; sub != NULL; sub = sub->next) {
		if (sub->x != NULL && !atomic_load(sub->is_gone)) {
			http_stream_end(sub->x);
			atomic_store(sub->is_gone, true);
		}
	}
	sweep(hub);
	(void)pthread_mutex_unlock(&hub->lock);
}

void stream_hub_destroy(struct stream_hub *hub)
{
	if (hub == NULL)
		return;
	(void)pthread_mutex_destroy(&hub->lock);
	(void)pthread_mutex_destroy(&hub->news_lock);
	(void)pthread_cond_destroy(&hub->changed);
	free(hub);
}

void stream_hub_recheck(struct stream_hub *hub)
{
	(void)pthread_mutex_lock(&hub->news_lock);
	hub->must_recheck = true;
	(void)pthread_cond_signal(&hub->changed);
	(void)pthread_mutex_unlock(&hub->news_lock);
}

size_t stream_count(struct stream_hub *hub)
{
	return atomic_load(&hub->count);
}

struct subscriber *subscriber_create(const struct caller *caller)
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

void stream_hub_add(struct stream_hub *hub, struct subscriber *sub)
{
	(void)pthread_mutex_lock(&hub->news_lock);
	sub->next = hub->newcomers;
	hub->newcomers = sub;
	(void)atomic_fetch_add(&hub->count, 1);
	hub->has_news = true;
	(void)pthread_cond_signal(&hub->changed);
	(void)pthread_mutex_unlock(&hub->news_lock);
}

static bool unlink_from(struct subscriber **list, struct subscriber *sub)
{
	for (struct subscriber **at = list; *at != NULL; at = &(*at)->next) {
		if (*at == sub) {
			*at = sub->next;
			return true;
		}
	}
	return false;
}

struct subscriber *local_subscribe(struct stream_hub *hub, const struct caller *caller, int64_t since,
	void (*write)(void *context, struct str line), void *context)
{
	struct subscriber *sub = subscriber_create(caller);

	sub->write = write;
	sub->context = context;
	sub->sent = since;
	stream_hub_add(hub, sub);
	return sub;
}

void local_unsubscribe(struct stream_hub *hub, struct subscriber *subscriber)
{
	bool found;

	/* The lock is held through a round, so nothing is being written to it afterwards. */
	(void)pthread_mutex_lock(&hub->lock);
	(void)pthread_mutex_lock(&hub->news_lock);
	found = unlink_from(&hub->newcomers, subscriber) || unlink_from(&hub->subscribers, subscriber);
	(void)pthread_mutex_unlock(&hub->news_lock);
	(void)pthread_mutex_unlock(&hub->lock);
	if (found)
		(void)atomic_fetch_sub(&hub->count, 1);
	subscriber_destroy(subscriber);
}
