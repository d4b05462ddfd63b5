#include "desk.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int desk_up(void **state)
{
	static const char *const names[WHO_COUNT] = {"local", "api:p1", "api:p2"};
	struct desk *d = calloc(1, sizeof(*d));

	d->arena = arena_create();
	temp_dir_make(d->dir, "desk");
	(void)snprintf(d->path, sizeof(d->path), "%s/dais.db", d->dir);
	d->store = temp_store_open(d->dir, "dais.db");
	d->rules = rules_create();
	d->tools = tools_create(d->store, d->rules, NULL);
	for (int i = 0; i < WHO_COUNT; i++) {
		caller_local(&d->callers[i], STR("mcp"));
		d->callers[i].actor.id = str_of(names[i]);
		d->callers[i].sees_actors = i == LOCAL;
		if (i != LOCAL)
			d->callers[i].actor.kind = PRINCIPAL_AGENT;
	}
	*state = d;
	return 0;
}

static void found(void *context, struct str line)
{
	(void)context;
	(void)fprintf(stderr, "invariant: %.*s\n", STRF(line));
}

int desk_down(void **state)
{
	struct desk *d = *state;
	int findings = temp_store_check(d->store, 0);
	struct failure f;

	failure_init(&f, d->arena);
	if (findings == 0)
		findings = store_check_search(d->store, d->arena, found, NULL, &f);
	tools_destroy(d->tools);
	rules_destroy(d->rules);
	store_close(d->store);
	temp_dir_remove(d->dir);
	arena_destroy(d->arena);
	free(d);
	return findings == 0 ? 0 : -1;
}

/* ---- calls ---- */

struct waiting {
	pthread_mutex_t lock;
	pthread_cond_t told;
	bool is_done;
};

static void done(struct tool_call *call)
{
	struct waiting *waiting = call->context;

	(void)pthread_mutex_lock(&waiting->lock);
	waiting->is_done = true;
	(void)pthread_cond_signal(&waiting->told);
	(void)pthread_mutex_unlock(&waiting->lock);
}

static void drop(void *json)
{
	json_decref(json);
}

static json_t *read_kept(struct desk *d, struct str text)
{
	struct json_error error;
	json_t *json = json_read(text, &error);

	if (json == NULL)
		fail_msg("%s in %.*s", error.text, STRF(text));
	arena_at_end(d->arena, drop, json);
	return json;
}

json_t *ask_text(struct desk *d, enum who who, const struct tool *tool, struct str json)
{
	struct waiting waiting = {.lock = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};
	struct tool_call call = {.arena = d->arena, .caller = d->callers[who], .tool = tool,
		.args = read_kept(d, json), .done = done, .context = &waiting};

	call.caller.actor.req_id = call.caller.req_id;
	tools_call(d->tools, &call);
	(void)pthread_mutex_lock(&waiting.lock);
	while (!waiting.is_done)
		(void)pthread_cond_wait(&waiting.told, &waiting.lock);
	(void)pthread_mutex_unlock(&waiting.lock);
	return read_kept(d, call.envelope);
}

static struct str quoted(struct desk *d, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
static struct str quoted(struct desk *d, const char *format, va_list args)
{
	char *text = arena_vprintf(d->arena, format, args);

	for (char *c = text; *c != '\0'; c++)
		if (*c == '\'')
			*c = '"';
	return str_of(text);
}

json_t *ask(struct desk *d, enum who who, const struct tool *tool, const char *format, ...)
{
	struct str text;
	va_list args;

	va_start(args, format);
	text = quoted(d, format, args);
	va_end(args);
	return ask_text(d, who, tool, text);
}

const json_t *do_op(struct desk *d, enum who who, const struct tool *tool, const char *format, ...)
{
	struct str text;
	json_t *envelope;
	va_list args;

	va_start(args, format);
	text = quoted(d, format, args);
	va_end(args);
	envelope = ask_text(d, who, tool, str_printf(d->arena, "{\"ops\":[%.*s]}", STRF(text)));
	if (!json_is_true(json_object_get(envelope, "ok")))
		fail_msg("%.*s: %s", STRF(text), json_dumps(envelope, 0));
	return at(envelope, "results.0");
}

const char *new_item(struct desk *d, const char *parent, const char *title, const char *more)
{
	const json_t *result;

	if (parent == NULL)
		result = do_op(d, LOCAL, &tool_items_write, "{'op':'create','title':'%s'%s}", title, more);
	else
		result = do_op(d, LOCAL, &tool_items_write, "{'op':'create','parentId':'%s','title':'%s'%s}", parent,
			title, more);
	return text_at(result, "id");
}

const char *note(struct desk *d, const char *item, const char *key, const char *body)
{
	json_t *op = json_pack("{s:[{s:s,s:s,s:s,s:s,s:s}]}", "ops", "op", "upsert", "itemId", item, "key", key, "role",
		"work", "body", body);
	json_t *envelope = ask_text(d, LOCAL, &tool_notes_write, json_canonical(d->arena, op));

	json_decref(op);
	assert_ok(envelope);
	return text_at(envelope, "results.0.id");
}

json_t *trigger(struct desk *d, const char *item, const char *word)
{
	return ask(d, LOCAL, &tool_advance, "{'ops':[{'op':'transition','itemId':'%s','trigger':'%s'}]}", item, word);
}

void push_rules(struct desk *d, const char *root, const char *yaml)
{
	json_t *op = json_pack("{s:[{s:s,s:s,s:s}]}", "ops", "op", "push", "rootId", root, "yaml", yaml);
	json_t *envelope = ask_text(d, LOCAL, &tool_config, json_canonical(d->arena, op));

	json_decref(op);
	assert_ok(envelope);
}

/* ---- looking at answers ---- */

const json_t *at(const json_t *value, const char *path)
{
	while (value != NULL && *path != '\0') {
		size_t n = strcspn(path, ".");
		struct str step = {path, n};
		int64_t index;

		if (json_is_array(value))
			value = str_to_int(step, &index) ? json_array_get(value, (size_t)index) : NULL;
		else
			value = json_object_getn(value, path, n);
		path += n + (path[n] == '.');
	}
	return value;
}

const char *text_at(const json_t *value, const char *path)
{
	const json_t *found_value = at(value, path);

	return json_is_string(found_value) ? json_string_value(found_value) : "";
}

int64_t int_at(const json_t *value, const char *path)
{
	return json_integer_value(at(value, path));
}

size_t count_at(const json_t *value, const char *path)
{
	return json_array_size(at(value, path));
}

void assert_ok(const json_t *envelope)
{
	if (!json_is_true(json_object_get(envelope, "ok")))
		fail_msg("%s", json_dumps(envelope, 0));
}

void assert_error(const json_t *envelope, const char *code)
{
	if (strcmp(text_at(envelope, "error.code"), code) != 0)
		fail_msg("expected %s: %s", code, json_dumps(envelope, 0));
}

bool warned(const json_t *envelope, const char *code)
{
	const json_t *list = at(envelope, "warnings");

	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(text_at(json_array_get(list, i), "code"), code) == 0)
			return true;
	return false;
}

SQL(SQL_ROW_OF, "SELECT n FROM item WHERE id = $1");

void limit_to(struct desk *d, enum who who, const char *root)
{
	int64_t *roots = ARENA_ARRAY(d->arena, int64_t, 1);
	struct id_prefix id;
	struct snapshot s;
	struct failure f;

	failure_init(&f, d->arena);
	assert_true(id_prefix_parse(str_of(root), &id));
	assert_int_equal(snapshot_begin(d->store, d->arena, &s, &f), 0);
	assert_int_equal(query_int(&s, roots, &f, SQL_ROW_OF, "b", id.low), 1);
	snapshot_end(&s);
	d->callers[who].roots = roots;
	d->callers[who].root_count = 1;
}

int64_t number(struct desk *d, const char *sql)
{
	struct snapshot s;
	struct failure f;
	int64_t value = 0;

	failure_init(&f, d->arena);
	assert_int_equal(snapshot_begin(d->store, d->arena, &s, &f), 0);
	assert_true(query_int(&s, &value, &f, sql, "") >= 0);
	snapshot_end(&s);
	return value;
}
