/* Requests and the stream of events, all by one curl. */
#include "bridge/private.h"

#include "base/limits.h"

#include <stdlib.h>

struct transfer {
	struct transfers *all;
	CURL *easy;
	struct arena *arena;
	struct str id;
	struct str body;
	struct buf answer; /* of the stream: what of a line came */
	bool is_stream, is_open;
	struct transfer *next, **at; /* in transfers.first */
};

struct transfers {
	struct transfer *first;
	CURLM *multi;
	const struct child *child;
	struct curl_slist *headers;
};

static struct curl_slist *add_line(struct curl_slist *list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(list, line);

	if (longer == NULL)
		abort();
	return longer;
}

struct transfers *transfers_create(const struct child *child)
{
	struct transfers *all = calloc(1, sizeof(*all));

	if (all == NULL || (all->multi = curl_multi_init()) == NULL)
		abort();
	all->child = child;
	all->headers = add_line(add_line(NULL, "Content-Type: application/json"), "Expect:");
	return all;
}

CURLM *transfers_multi(struct transfers *all)
{
	return all->multi;
}

static void destroy(struct transfer *t)
{
	*t->at = t->next;
	if (t->next != NULL)
		t->next->at = t->at;
	(void)curl_multi_remove_handle(t->all->multi, t->easy);
	curl_easy_cleanup(t->easy);
	buf_finish(&t->answer);
	arena_destroy(t->arena);
}

void transfers_destroy(struct transfers *all)
{
	while (all->first != NULL)
		destroy(all->first);
	curl_slist_free_all(all->headers);
	(void)curl_multi_cleanup(all->multi);
	free(all);
}

static size_t take_answer(char *bytes, size_t size, size_t n, void *context)
{
	struct transfer *t = context;

	buf_add(&t->answer, bytes, size * n);
	return t->answer.overflow ? 0 : n;
}

/* ---- the stream ---- */

static void say_event(struct str data)
{
	struct buf line;

	buf_init(&line, NULL, SIZE_MAX);
	buf_add_str(&line, STR("{\"event\":"));
	buf_add_str(&line, data);
	buf_add_char(&line, '}');
	bridge_say(&line);
	buf_finish(&line);
}

static void say_ready(void)
{
	struct buf line;

	buf_init(&line, NULL, SIZE_MAX);
	buf_add_str(&line, STR("{\"ready\":true}"));
	bridge_say(&line);
	buf_finish(&line);
}

static void take_line(struct transfer *t, struct str line)
{
	struct str data = STR("data:");

	if (!str_starts(line, data))
		return;
	if (!t->is_open)
		say_ready();
	t->is_open = true;
	say_event(str_trim((struct str){line.p + data.n, line.n - data.n}));
}

static size_t take_stream(char *bytes, size_t size, size_t n, void *context)
{
	struct transfer *t = context;
	const char *end;

	buf_add(&t->answer, bytes, size * n);
	if (t->answer.overflow)
		return 0;
	while (t->answer.n > 0 && (end = memchr(t->answer.p, '\n', t->answer.n)) != NULL) {
		size_t length = (size_t)(end - t->answer.p);

		take_line(t, (struct str){t->answer.p, length});
		buf_consume(&t->answer, length + 1);
	}
	return n;
}

/* ---- one transfer ---- */

static struct transfer *begin(struct transfers *all, struct arena *arena, const char *path,
	size_t (*take)(char *bytes, size_t size, size_t n, void *context))
{
	struct transfer *t = ARENA_NEW(arena, struct transfer);
	const char *url = arena_printf(arena, "%s%s", all->child->url, path);

	*t = (struct transfer){.all = all, .arena = arena, .easy = curl_easy_init()};
	if (t->easy == NULL)
		abort();
	t->next = all->first;
	t->at = &all->first;
	if (t->next != NULL)
		t->next->at = &t->next;
	all->first = t;
	buf_init(&t->answer, NULL, LIMIT_AGENT_LINE_BYTES / 2);
	(void)curl_easy_setopt(t->easy, CURLOPT_URL, url);
	(void)curl_easy_setopt(t->easy, CURLOPT_NOPROXY, "*");
	(void)curl_easy_setopt(t->easy, CURLOPT_USERNAME, "opencode");
	(void)curl_easy_setopt(t->easy, CURLOPT_PASSWORD, all->child->password);
	(void)curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, all->headers);
	(void)curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, take);
	(void)curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	(void)curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
	return t;
}

void transfers_open_stream(struct transfers *all)
{
	struct transfer *t = begin(all, arena_create(), "/event", take_stream);

	t->is_stream = true;
	/* A beat comes every 10 s: silence is a broken stream. */
	(void)curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	(void)curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_TIME, (long)LIMIT_BRIDGE_SILENCE_S);
	(void)curl_multi_add_handle(all->multi, t->easy);
}

void transfers_ask(struct transfers *all, struct str line)
{
	struct arena *arena;
	struct transfer *t;
	struct json_error error;
	json_auto_t *request = json_read(line, &error);
	const json_t *body = json_object_get(request, "body");
	struct str path = json_member_str(request, "path");
	struct str method = json_member_str(request, "method");

	if (path.n == 0 || path.p[0] != '/' || method.n == 0)
		return;
	arena = arena_create();
	t = begin(all, arena, str_z(arena, path), take_answer);
	t->id = str_dup(arena, json_member_str(request, "id"));
	if (body != NULL) {
		t->body = json_compact(arena, body);
		(void)curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE, (long)t->body.n);
		(void)curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, t->body.p);
	}
	(void)curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, str_z(arena, method));
	(void)curl_multi_add_handle(all->multi, t->easy);
}

/* What we write is stored: keys of providers and what else is an option stay here. */
static void drop_secrets(json_t *body)
{
	json_t *provider;
	size_t i;

	json_array_foreach(json_object_get(body, "providers"), i, provider) {
		json_object_del(provider, "options");
		json_object_del(provider, "key");
	}
}

/* An answer that is larger than we read is told without its body. */
static void answer(const struct transfer *t, long status)
{
	struct json_error error;
	json_auto_t *body = t->answer.n == 0 ? NULL : json_read(buf_str(&t->answer), &error);
	struct json_writer w;
	struct buf line;

	buf_init(&line, NULL, SIZE_MAX);
	json_writer_init(&w, &line);
	jw_object_begin(&w);
	jw_kstr(&w, "id", t->id);
	jw_kint(&w, "status", status);
	drop_secrets(body);
	if (body != NULL) {
		jw_key(&w, "body");
		jw_json(&w, body);
	}
	jw_object_end(&w);
	bridge_say(&line);
	buf_finish(&line);
}

static void lost(const char *reason)
{
	struct json_writer w;
	struct buf line;

	buf_init(&line, NULL, SIZE_MAX);
	json_writer_init(&w, &line);
	jw_object_begin(&w);
	jw_ktext(&w, "lost", reason);
	jw_object_end(&w);
	bridge_say(&line);
	buf_finish(&line);
}

static void settle(struct transfers *all, CURL *easy, CURLcode code)
{
	struct transfer *t;
	long status = 0;

	(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
	(void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (t->is_stream) {
		lost(curl_easy_strerror(code));
		transfers_open_stream(all);
	} else {
		answer(t, code == CURLE_OK ? status : 0);
	}
	destroy(t);
}

void transfers_settle(struct transfers *all)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(all->multi, &left)) != NULL)
		if (message->msg == CURLMSG_DONE)
			settle(all, message->easy_handle, message->data.result);
}
