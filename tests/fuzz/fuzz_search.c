/* A search of a small store. Input: one byte of choices, then filters, each "name value" on a line, an empty line, and
 * the query. No query and no filter is an error of the store; and what `substring` finds without filters is what
 * reading all texts finds. */
#include "tools/tool.h"
#include "tools/tools.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const titles[] = {"Harbour", "Booking API", "ab", "naïve café", "日本語のテスト", "ren mor ren",
	"C++ \\\"quoted\\\" 50% off_", "ÀÉÎÕÜ straße", "aaaaaaaaaaaa", "title:x* OR -("};
static const char *const summaries[] = {"berth of the hull", "", "--error-on-warnings", "don't", "a::b 38.101", "renmor",
	"CAFÉ", "aaaab", "NOT AND OR NEAR", "💦💦💦"};
static const char *const bodies[] = {"Reject a berth shorter than the hull.", "std::vector a::b notes", "日本語",
	"naïve café", "a-b-c dash", "Walker's and Rider's Guild", "abcdefghijklmnopqrstuvwxyz", "renmormorren", "x",
	"the ab team\\nand the rest"};
#define TEXTS 10

static struct tools *tools;
static char root_id[ID_TEXT_SIZE];

/* ---- calls ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;

static void done(struct tool_call *call)
{
	(void)pthread_mutex_lock(&lock);
	*(bool *)call->context = true;
	(void)pthread_cond_signal(&told);
	(void)pthread_mutex_unlock(&lock);
}

/* NULL when the text is no JSON (U+0000, invalid UTF-8): then no client can send it either. */
static json_t *ask(struct arena *arena, const struct tool *tool, struct str text)
{
	struct json_error error;
	bool is_done = false;
	struct tool_call call = {.arena = arena, .tool = tool, .done = done, .context = &is_done};
	json_t *args = json_read(text, &error);

	if (args == NULL)
		return NULL;
	caller_local(&call.caller, STR("mcp"));
	call.caller.actor.req_id = call.caller.req_id;
	call.args = args;
	tools_call(tools, &call);
	(void)pthread_mutex_lock(&lock);
	while (!is_done)
		(void)pthread_cond_wait(&told, &lock);
	(void)pthread_mutex_unlock(&lock);
	json_decref(args);
	args = json_read(call.envelope, &error);
	if (args == NULL)
		abort();
	return args;
}

static struct str member(const json_t *json, const char *name)
{
	return json_member_str(json, name);
}

/* ---- the store ---- */

static void make(struct arena *arena, const struct tool *tool, struct str op, char out_id[ID_TEXT_SIZE])
{
	json_t *answer = ask(arena, tool, str_printf(arena, "{\"ops\":[%.*s]}", STRF(op)));
	struct str id = member(json_array_get(json_object_get(answer, "results"), 0), "id");

	if (id.n != ID_TEXT_SIZE - 1)
		abort();
	memcpy(out_id, id.p, id.n);
	out_id[id.n] = '\0';
	json_decref(answer);
}

static void fill(struct arena *arena)
{
	char item[ID_TEXT_SIZE], note[ID_TEXT_SIZE];

	for (size_t i = 0; i < TEXTS; i++) {
		struct str parent = i == 0 ? STR("") : str_printf(arena, "\"parentId\":\"%s\",", root_id);

		make(arena, &tool_items_write,
			str_printf(arena, "{\"op\":\"create\",%.*s\"title\":\"%s\",\"summary\":\"%s\",\"tags\":[\"t%zu\"]}",
				STRF(parent), titles[i], summaries[i], i % 3),
			item);
		if (i == 0)
			memcpy(root_id, item, sizeof(root_id));
		make(arena, &tool_notes_write,
			str_printf(arena, "{\"op\":\"upsert\",\"itemId\":\"%s\",\"key\":\"k%zu\",\"role\":\"work\",\"body\":\"%s\"}", item,
				i % 4, bodies[i]),
			note);
	}
}

static char dir[] = "/tmp/dais-fuzz-XXXXXX";

/* At the end: connections are opened when they are needed. */
static void remove_store(void)
{
	static const char *const names[] = {"dais.db", "dais.db-wal", "dais.db-shm", "dais.db.pid", "dais.db.reserve"};
	char path[sizeof(dir) + 32];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	(void)rmdir(dir);
}

static void open_store(void)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct store_options options = {.may_create = true, .is_exclusive = true};
	struct store *store;
	struct failure f;

	failure_init(&f, arena);
	if (mkdtemp(dir) == NULL)
		abort();
	options.path = arena_printf(arena, "%s/dais.db", dir);
	if (store_open(&options, &store, &f) != 0)
		abort();
	tools = tools_create(store, rules_create(), NULL);
	fill(arena);
	(void)atexit(remove_store);
}

/* ---- what reading finds ---- */

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool stands_in(struct str term, const char *text)
{
	size_t n = strlen(text);

	for (size_t at = 0; at + term.n <= n; at++)
		if (str_eq_nocase((struct str){text + at, term.n}, term))
			return true;
	return false;
}

/* Whether every term of three characters and more stands in one of the two; -1: there is no such term. */
static int holds(struct str query, const char *a, const char *b)
{
	int result = -1;

	for (size_t at = 0, end; at < query.n; at = end) {
		while (at < query.n && is_space(query.p[at]))
			at++;
		for (end = at; end < query.n && !is_space(query.p[end]);)
			end++;
		if (end - at < 3)
			continue;
		if (!stands_in((struct str){query.p + at, end - at}, a) && !stands_in((struct str){query.p + at, end - at}, b))
			return 0;
		result = 1;
	}
	return result;
}

/* The texts above as they were stored: two escapes. */
static const char *plain(struct arena *arena, const char *text)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (; *text != '\0'; text++) {
		if (*text == '\\')
			text++;
		buf_add_char(&out, text[0] == 'n' && text[-1] == '\\' ? '\n' : *text);
	}
	return str_z(arena, buf_str(&out));
}

static void check_substring(struct arena *arena, struct str query, const json_t *answer)
{
	int64_t expected = 0;

	for (size_t i = 0; i < query.n; i++)
		if ((unsigned char)query.p[i] >= 0x80)
			return; /* case of other letters is the store's to fold */
	for (size_t i = 0; i < TEXTS; i++) {
		expected += holds(query, plain(arena, titles[i]), plain(arena, summaries[i])) == 1;
		expected += holds(query, plain(arena, bodies[i]), "") == 1;
	}
	if (json_integer_value(json_object_get(json_object_get(answer, "page"), "total")) != expected)
		abort();
}

/* ---- one search ---- */

static void add_filter(struct json_writer *w, struct str name, struct str value)
{
	static const char *const lists[] = {"roles", "priorities", "types", "tags", "tagsAll", "traits", "statusLabels", "kinds",
		"noteRoles", "noteKeys", "fields"};
	static const char *const ids[] = {"itemId", "ancestorId", "rootId", "parentId", "cursor", "modifiedAfter"};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if (!str_eq(name, str_of(lists[i])))
			continue;
		jw_karray(w, lists[i]);
		jw_str(w, value);
		jw_array_end(w);
		return;
	}
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (str_eq(name, str_of(ids[i])))
			jw_kstr(w, ids[i], str_eq(value, STR("root")) ? str_of(root_id) : value);
}

/* Lines up to an empty one; the rest is the query. */
static struct str add_filters(struct json_writer *w, struct str input, size_t *filters)
{
	for (;;) {
		const char *end = input.n == 0 ? NULL : memchr(input.p, '\n', input.n);
		const char *blank;
		struct str line;

		if (end == NULL || *filters == 8)
			return input;
		line = (struct str){input.p, (size_t)(end - input.p)};
		input = (struct str){end + 1, input.n - line.n - 1};
		if (line.n == 0)
			return input;
		blank = memchr(line.p, ' ', line.n);
		(*filters)++;
		if (blank != NULL)
			add_filter(w, (struct str){line.p, (size_t)(blank - line.p)},
				(struct str){blank + 1, line.n - (size_t)(blank - line.p) - 1});
	}
}

static void check_hit(const json_t *hit)
{
	struct id_prefix prefix;

	if (json_array_size(json_object_get(hit, "matchedIn")) == 0 || !id_prefix_parse(member(hit, "id"), &prefix))
		abort();
}

static void check_answer(const json_t *answer)
{
	struct str code = member(json_object_get(answer, "error"), "code");
	const json_t *hits = json_object_get(json_object_get(answer, "data"), "hits");

	if (!json_is_true(json_object_get(answer, "ok")) && !str_eq(code, STR("invalid_request")) &&
		!str_eq(code, STR("invalid_cursor")) && !str_eq(code, STR("not_found")))
		abort();
	for (size_t i = 0; i < json_array_size(hits); i++)
		check_hit(json_array_get(hits, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const modes[] = {"auto", "substring", "text", "substring"};
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const char *mode = modes[size == 0 ? 0 : data[0] & 3];
	struct json_writer w;
	struct str query;
	struct buf text;
	size_t filters = 0;
	json_t *answer;

	if (size == 0)
		return 0;
	if (tools == NULL)
		open_store();
	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_ktext(&w, "select", "search");
	jw_ktext(&w, "matchMode", mode);
	jw_kbool(&w, "explain", (data[0] & 4) != 0);
	jw_kint(&w, "limit", (data[0] & 8) != 0 ? 1 : 100);
	if ((data[0] & 16) != 0)
		jw_ktext(&w, "ids", "short");
	query = add_filters(&w, (struct str){(const char *)data + 1, size - 1}, &filters);
	if (utf8_check(query) != query.n)
		return 0;
	jw_kstr(&w, "query", query);
	jw_object_end(&w);
	answer = ask(arena, &tool_items_read, buf_str(&text));
	if (answer == NULL)
		return 0;
	check_answer(answer);
	if (filters == 0 && str_eq(str_of(mode), STR("substring")) && json_is_true(json_object_get(answer, "ok")))
		check_substring(arena, query, answer);
	json_decref(answer);
	return 0;
}
