#include "transcript.h"

#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

enum record_kind { RECORD_BEGIN, RECORD_LINE, RECORD_ORDER, RECORD_TIME, RECORD_EXIT, RECORD_WRITES, RECORD_TELLS };

struct record {
	enum record_kind kind;
	struct str text;
	json_t *json;
	int row;
};

struct transcript {
	struct arena *arena;
	const char *path;
	struct provider_instance instance;
	struct agent_config config;
	json_t *settings;
	struct record *records;
	size_t count;
};

static void broken(const struct transcript *t, int row, const char *why)
{
	fprintf(stderr, "%s:%d: %s\n", t->path, row, why);
	abort();
}

static int64_t choice(const struct transcript *t, struct str name, const char *const *names, int64_t otherwise)
{
	if (name.p == NULL)
		return otherwise;
	for (int64_t i = 0; names[i] != NULL; i++)
		if (str_eq(name, str_of(names[i])))
			return i;
	broken(t, 0, "no such choice");
	return 0;
}

static const char *const runtimes[] = {"read-only", "approval-required", "auto-accept-edits", "full-access", NULL};
static const char *const interactions[] = {"plan", "default", NULL};
static const char *const orders[] = {"turn", "steer", "interrupt", "answer", "select", "close", NULL};
static const char *const decisions[] = {"accept", "accept-for-session", "decline", "cancel", NULL};
static const char *const event_names[] = {"opened", "open-failed", "models", "turn-started", "item", "request", "request-ended",
	"usage", "title", "background", "mode", "steered", "selected", "refused", "turn-ended", "broken"};
static const char *const item_names[] = {"text", "reasoning", "command", "file-change", "file-search", "web-search", "tool",
	"todo", "plan", "subagent", "compaction", "notice"};
static const char *const statuses[] = {"pending", "running", "completed", "failed", "interrupted", "cancelled"};
static const char *const request_names[] = {"command", "file-read", "file-change", "tool", "user-input", "auth-refresh"};

static void configure(struct transcript *t, json_t *json, int row)
{
	struct agent_config *c = &t->config;

	t->settings = json;
	t->instance = (struct provider_instance){
		.id = STR("test"), .driver = driver_find(json_member_str(json, "kind")), .options = json_object_get(json, "options")};
	if (t->instance.driver == NULL)
		broken(t, row, "no such driver");
	*c = (struct agent_config){.instance = &t->instance, .cwd = STR("/repo")};
	c->runtime = (enum runtime_mode)choice(t, json_member_str(json, "runtime"), runtimes, RUNTIME_APPROVAL_REQUIRED);
	c->interaction = (enum interaction_mode)choice(t, json_member_str(json, "interaction"), interactions, INTERACTION_DEFAULT);
	c->model = json_member_str(json, "model");
	c->model_options = json_object_get(json, "modelOptions");
	c->mcp_url = json_member_str(json, "mcp");
	c->instructions = json_member_str(json, "instructions");
	c->resume = json_member_str(json, "resume");
}

static json_t *parse(const struct transcript *t, struct str text, int row)
{
	struct json_error error;
	json_t *json = json_read(text, &error);

	if (json == NULL)
		broken(t, row, error.text);
	return json;
}

static void read_row(struct transcript *t, struct str row, int number)
{
	struct record record = {.row = number};

	if (row.n == 0 || row.p[0] == '#')
		return;
	if (str_starts(row, STR("config "))) {
		configure(t, parse(t, (struct str){row.p + 7, row.n - 7}, number), number);
		return;
	}
	if (str_eq(row, STR("begin"))) {
		record.kind = RECORD_BEGIN;
	} else if (str_starts(row, STR("exit "))) {
		record.kind = RECORD_EXIT;
		record.json = parse(t, (struct str){row.p + 5, row.n - 5}, number);
	} else if (row.n >= 2 && row.p[1] == ' ' && strchr("<!@>=", row.p[0]) != NULL) {
		record.kind = row.p[0] == '<' ? RECORD_LINE
			: row.p[0] == '!'     ? RECORD_ORDER
			: row.p[0] == '@'     ? RECORD_TIME
			: row.p[0] == '>'     ? RECORD_WRITES
					      : RECORD_TELLS;
		record.text = (struct str){row.p + 2, row.n - 2};
		if (row.p[0] != '<' && row.p[0] != '@')
			record.json = parse(t, record.text, number);
	} else {
		broken(t, number, "neither an input nor an expectation");
	}
	t->records[t->count++] = record;
}

struct transcript *transcript_read(const char *path)
{
	struct transcript *t = calloc(1, sizeof(*t));
	FILE *file = fopen(path, "r");
	char *row = NULL;
	size_t size = 0;
	int number = 0;

	t->arena = arena_create();
	t->path = arena_copy(t->arena, path, strlen(path));
	t->records = calloc(1000, sizeof(struct record));
	if (file == NULL)
		broken(t, 0, "cannot be read");
	while (getline(&row, &size, file) >= 0)
		read_row(t, str_dup(t->arena, (struct str){row, strcspn(row, "\n")}), ++number);
	free(row);
	fclose(file);
	if (t->settings == NULL || t->count == 0)
		broken(t, number, "needs a config and a begin");
	return t;
}

void transcript_free(struct transcript *t)
{
	for (size_t i = 0; i < t->count; i++)
		json_decref(t->records[i].json);
	json_decref(t->settings);
	free(t->records);
	arena_destroy(t->arena);
	free(t);
}

static bool is_input(const struct record *record)
{
	return record->kind < RECORD_WRITES;
}

size_t transcript_inputs(const struct transcript *t)
{
	size_t count = 0;

	for (size_t i = 0; i < t->count; i++)
		count += is_input(&t->records[i]);
	return count;
}

/* ---- an event as JSON ---- */

static void put(json_t *to, const char *name, struct str text)
{
	if (text.p != NULL)
		json_object_set_new(to, name, json_stringn_nocheck(text.p, text.n));
}

static void put_json(json_t *to, const char *name, struct str text)
{
	struct json_error error;

	if (text.p != NULL) {
		json_t *value = json_read(text, &error);

		if (value == NULL)
			abort(); /* a driver writes JSON */
		json_object_set_new(to, name, value);
	}
}

static void put_usage(json_t *to, const struct agent_usage *usage)
{
	json_object_set_new(to, "input", json_integer(usage->input));
	json_object_set_new(to, "cached", json_integer(usage->cached));
	json_object_set_new(to, "output", json_integer(usage->output));
	json_object_set_new(to, "reasoning", json_integer(usage->reasoning));
	json_object_set_new(to, "cost", json_integer((int64_t)(usage->cost_usd * 1e6)));
	json_object_set_new(to, "used", json_integer(usage->context_used));
	json_object_set_new(to, "size", json_integer(usage->context_size));
}

static void put_failure(json_t *to, const struct agent_failure *failure)
{
	put(to, "code", failure->code);
	put(to, "message", failure->message);
	put(to, "class", str_of(failure_class_name(failure->class)));
	json_object_set_new(to, "retryable", json_integer(failure->is_retryable));
}

static void put_item(json_t *to, const struct agent_item *item)
{
	put(to, "kind", str_of(item_names[item->kind]));
	put(to, "key", item->key);
	put(to, "parent", item->parent);
	put(to, "status", str_of(statuses[item->status]));
	put(to, "title", item->title);
	put(to, "delta", item->delta);
	put_json(to, "body", item->body);
}

static void put_caps(json_t *to, const struct agent_caps *caps)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct buf text;
	struct json_writer w;

	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	agent_caps_write(caps, &w);
	put_json(to, "caps", buf_str(&text));
}

static void put_models(json_t *to, const struct agent_event *event)
{
	json_t *models = json_array();

	for (size_t i = 0; i < event->model_count; i++) {
		json_t *model = json_object();

		put(model, "id", event->models[i].id);
		put(model, "label", event->models[i].label);
		json_object_set_new(model, "default", json_boolean(event->models[i].is_default));
		put_json(model, "options", event->models[i].options);
		json_array_append_new(models, model);
	}
	json_object_set_new(to, "models", models);
}

static json_t *event_json(const struct agent_event *event)
{
	json_t *json = json_object();

	put(json, "event", str_of(event_names[event->kind]));
	put(json, "key", event->key);
	put(json, "native", event->native);
	put(json, "text", event->text);
	put(json, "version", event->program_version);
	put_json(json, "body", event->body);
	if (event->is_resumed)
		json_object_set_new(json, "resumed", json_true());
	if (event->kind == EVENT_ITEM)
		put_item(json, &event->item);
	if (event->kind == EVENT_USAGE)
		put_usage(json, &event->usage);
	if (event->kind == EVENT_MODELS)
		put_models(json, event);
	if (event->failure.message.p != NULL)
		put_failure(json, &event->failure);
	if (event->caps != NULL)
		put_caps(json, event->caps);
	if (event->kind == EVENT_TURN_ENDED || event->kind == EVENT_REQUEST_ENDED)
		put(json, "status", str_of(statuses[event->status]));
	if (event->kind == EVENT_TURN_ENDED)
		json_object_set_new(json, "broken", json_boolean(event->is_broken));
	if (event->kind == EVENT_REQUEST) {
		put(json, "key", event->request.key);
		put(json, "kind", str_of(request_names[event->request.kind]));
		put(json, "item", event->request.item);
		put_json(json, "prompt", event->request.prompt);
	}
	return json;
}

/* ---- inputs ---- */

static void order(struct agent *agent, const struct transcript *t, const struct record *record, int64_t now,
	struct agent_out *out)
{
	const json_t *json = record->json;
	const json_t *files = json_object_get(json, "files");
	struct agent_attachment *attachments = ARENA_ARRAY(out->arena, struct agent_attachment, json_array_size(files) + 1);
	struct agent_order o = {.key = json_member_str(json, "key"), .text = json_member_str(json, "text")};

	o.kind = (enum agent_order_kind)choice(t, json_member_str(json, "order"), orders, -1);
	o.request = json_member_str(json, "request");
	o.decision = (enum agent_decision)choice(t, json_member_str(json, "decision"), decisions, 0);
	o.answers = json_object_get(json, "answers");
	o.model = json_member_str(json, "model");
	o.model_options = json_object_get(json, "modelOptions");
	o.runtime = (enum runtime_mode)choice(t, json_member_str(json, "runtime"), runtimes, t->config.runtime);
	o.interaction = (enum interaction_mode)choice(t, json_member_str(json, "interaction"), interactions, t->config.interaction);
	for (size_t i = 0; i < json_array_size(files); i++)
		attachments[i] = (struct agent_attachment){
			.name = STR("file"), .mime = STR("image/png"), .path = json_str(json_array_get(files, i))};
	o.attachments = attachments;
	o.attachment_count = json_array_size(files);
	agent->driver->order(agent, &o, now, out);
}

static void ended(struct agent *agent, const struct record *record, struct agent_out *out)
{
	struct agent_exit exit = {.code = (int)json_integer_value(json_object_get(record->json, "code")),
		.signal = (int)json_integer_value(json_object_get(record->json, "signal")),
		.is_stdout_only = json_is_true(json_object_get(record->json, "stdoutOnly")),
		.cause = json_member_str(record->json, "cause"),
		.stderr_tail = json_member_str(record->json, "stderr")};

	agent->driver->exited(agent, &exit, out);
}

static void pass_time(struct agent *agent, const struct record *record, int64_t *now, struct agent_out *out)
{
	int64_t ms = 0;

	(void)str_to_int(record->text, &ms);
	*now += ms;
	if (agent->driver->due(agent) != 0 && agent->driver->due(agent) <= *now)
		agent->driver->tick(agent, *now, out);
}

static void give(struct agent *agent, const struct transcript *t, const struct record *record, int64_t *now,
	struct agent_out *out)
{
	switch (record->kind) {
	case RECORD_BEGIN:
		agent->driver->begin(agent, *now, out);
		break;
	case RECORD_LINE:
		agent->driver->line(agent, record->text, *now, out);
		break;
	case RECORD_ORDER:
		order(agent, t, record, *now, out);
		break;
	case RECORD_TIME:
		pass_time(agent, record, now, out);
		break;
	case RECORD_EXIT:
		ended(agent, record, out);
		break;
	default:
		break;
	}
}

/* ---- saving and loading ---- */

static struct str save(const struct agent *agent, struct arena *arena)
{
	struct buf text;
	struct json_writer w;

	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	agent->driver->save(agent, &w);
	return buf_str(&text);
}

static struct agent *reload(const struct transcript *t, struct agent *agent, struct buf *problem)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str state = save(agent, arena);
	json_t *json = parse(t, state, 0);
	struct agent *fresh = agent->driver->create(&t->config);
	struct failure f;

	failure_init(&f, arena);
	if (state.n > LIMIT_AGENT_STATE_BYTES)
		buf_printf(problem, "the state has %zu bytes\n", state.n);
	if (fresh->driver->load(fresh, json, &f) != 0)
		buf_printf(problem, "the state cannot be loaded: %.*s\n", STRF(f.message));
	else if (!str_eq(save(fresh, arena), state))
		buf_printf(problem, "the state changes when it is loaded: %.*s\n", STRF(state));
	json_decref(json);
	agent->driver->destroy(agent);
	return fresh;
}

/* ---- comparing ---- */

static bool has(const json_t *what, const json_t *in)
{
	const char *key;
	json_t *value;

	if (json_is_object(what) && json_is_object(in)) {
		json_object_foreach ((json_t *)(uintptr_t)what, key, value) {
			/* {"absent":null}: the member is not there */
			const json_t *other = json_object_get(in, key);

			if (json_is_null(value) ? other != NULL && !json_is_null(other) : !has(value, other))
				return false;
		}
		return true;
	}
	if (json_is_array(what) && json_is_array(in)) {
		for (size_t i = 0; i < json_array_size(what); i++)
			if (!has(json_array_get(what, i), json_array_get(in, i)))
				return false;
		return json_array_size(what) == json_array_size(in);
	}
	return json_equal(what, in) == 1;
}

/* The expectations behind an input, one kind of them at a time. */
struct expectations {
	const struct transcript *t;
	size_t at;
	enum record_kind kind;
};

static const struct record *next_expected(struct expectations *e)
{
	for (; e->at < e->t->count && !is_input(&e->t->records[e->at]); e->at++)
		if (e->t->records[e->at].kind == e->kind)
			return &e->t->records[e->at++];
	return NULL;
}

static void compare(struct expectations *e, json_t *got, int row, struct buf *problem)
{
	const struct record *expected = next_expected(e);
	char *text = json_dumps(got, JSON_COMPACT);

	if (expected == NULL)
		buf_printf(problem, "%s:%d: not expected: %c %s\n", e->t->path, row, e->kind == RECORD_WRITES ? '>' : '=', text);
	else if (!has(expected->json, got))
		buf_printf(problem, "%s:%d: instead came: %s\n", e->t->path, expected->row, text);
	free(text);
}

static void check(const struct transcript *t, size_t at, const struct agent_out *out, struct buf *problem)
{
	struct expectations lines = {t, at + 1, RECORD_WRITES};
	struct expectations events = {t, at + 1, RECORD_TELLS};
	const struct record *missing;

	for (const struct agent_line *line = out->lines; line != NULL; line = line->next) {
		json_t *json = parse(t, line->text, t->records[at].row);

		if (line->has_secret)
			json_object_set_new(json, "secret", json_true());
		compare(&lines, json, t->records[at].row, problem);
		json_decref(json);
	}
	for (const struct agent_event *event = out->events; event != NULL; event = event->next) {
		json_t *json = event_json(event);

		compare(&events, json, t->records[at].row, problem);
		json_decref(json);
	}
	if (out->kills || out->ends_stdin) {
		json_t *json = json_object();

		put(json, "event", out->kills ? STR("kills") : STR("ends-stdin"));
		compare(&events, json, t->records[at].row, problem);
		json_decref(json);
	}
	while ((missing = next_expected(&lines)) != NULL || (missing = next_expected(&events)) != NULL)
		buf_printf(problem, "%s:%d: did not come\n", t->path, missing->row);
}

static void note(const struct agent_out *out, struct buf *said)
{
	for (const struct agent_line *line = out->lines; line != NULL; line = line->next)
		buf_printf(said, "> %.*s%s\n", STRF(line->text), line->has_secret ? " (secret)" : "");
	for (const struct agent_event *event = out->events; event != NULL; event = event->next) {
		json_t *json = event_json(event);
		char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);

		buf_printf(said, "= %s\n", text);
		free(text);
		json_decref(json);
	}
	if (out->ends_stdin || out->kills)
		buf_printf(said, "%s\n", out->kills ? "kills" : "ends stdin");
}

int transcript_run(const struct transcript *t, enum transcript_cut cut, size_t at, bool checks, struct buf *said,
	struct buf *problem)
{
	struct agent *agent = t->instance.driver->create(&t->config);
	int64_t now = 1000000;
	size_t input = 0;

	for (size_t i = 0; i < t->count; i++) {
		AUTO(arena_destroyp) struct arena *arena = arena_create();
		struct agent_out out;

		if (!is_input(&t->records[i]))
			continue;
		agent_out_init(&out, arena);
		give(agent, t, &t->records[i], &now, &out);
		note(&out, said);
		if (checks)
			check(t, i, &out, problem);
		if (cut == CUT_ALWAYS || (cut == CUT_ONCE && input == at))
			agent = reload(t, agent, problem);
		input++;
	}
	agent->driver->destroy(agent);
	return problem->n == 0 ? 0 : -1;
}
