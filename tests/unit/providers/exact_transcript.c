/* Reads, plays and compares transcripts. */
#include "exact_transcript.h"

#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { CUT_NEVER = -1, CUT_ALWAYS = -2, START_AT = 1000 };

struct player {
	struct arena *arena;
	const struct driver *driver;
	struct str directory; /* of the transcript */
	struct provider_instance instance;
	struct agent_config config;
	struct agent *agent;
	int64_t now;
	int cut; /* input after which the state goes through its stored form */
	int inputs;
	struct buf played;
};

static struct str word(struct str *rest)
{
	const char *blank = rest->n == 0 ? NULL : memchr(rest->p, ' ', rest->n);
	struct str first = *rest;

	if (blank == NULL) {
		*rest = (struct str){rest->p + rest->n, 0};
		return first;
	}
	first.n = (size_t)(blank - rest->p);
	*rest = (struct str){blank + 1, rest->n - first.n - 1};
	return first;
}

static const char *const runtimes[] = {"read-only", "approval-required", "auto-accept-edits", "full-access"};
static const char *const interactions[] = {"plan", "default"};
static const char *const decisions[] = {"accept", "accept-for-session", "decline", "cancel"};
static const char *const statuses[] = {"pending", "running", "completed", "failed", "interrupted", "cancelled"};
static const char *const items[] = {"text", "reasoning", "command", "file-change", "file-search", "web-search", "tool",
	"todo", "plan", "subagent", "compaction", "notice"};
static const char *const requests[] = {"command", "file-read", "file-change", "tool", "user-input", "auth-refresh"};

static int index_of(const char *const *names, size_t n, struct str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(name, str_of(names[i])))
			return (int)i;
	fail_msg("the transcript says %.*s", STRF(name));
	return 0;
}
#define INDEX_OF(names, name) index_of(names, sizeof(names) / sizeof((names)[0]), name)

static const json_t *value_of(struct player *player, struct str text)
{
	struct json_error error;
	json_t *value;

	if (text.n == 0)
		return NULL;
	value = json_read(text, &error);
	if (value == NULL)
		fail_msg("no JSON: %.*s", STRF(text));
	arena_at_end(player->arena, (void (*)(void *))json_decref, value);
	return value;
}

/* ---- printing what came of an input ---- */

static void say(struct buf *to, const char *key, struct str value)
{
	struct json_writer w;

	if (value.p == NULL)
		return;
	buf_printf(to, " %s=", key);
	if (value.n > 2000) {
		buf_printf(to, "(%zu bytes)", value.n);
		return;
	}
	json_writer_init(&w, to);
	jw_str(&w, value);
}

static void say_json(struct buf *to, const char *key, struct str json)
{
	struct json_error error;
	json_t *value;

	if (json.p == NULL)
		return;
	value = json_read(json, &error);
	if (value == NULL)
		fail_msg("%s is no JSON: %.*s", key, STRF(json));
	json_decref(value);
	if (json.n > 2000)
		buf_printf(to, " %s=(%zu bytes)", key, json.n);
	else
		buf_printf(to, " %s=%.*s", key, STRF(json));
}

static void say_number(struct buf *to, const char *key, int64_t value)
{
	if (value >= 0)
		buf_printf(to, " %s=%lld", key, (long long)value);
}

static void say_failure(struct buf *to, const struct agent_failure *failure)
{
	static const char *const retryable[] = {"retryable=unknown", "final", "retryable"};

	buf_printf(to, " %s %.*s %s", failure_class_name(failure->class), STRF(failure->code),
		retryable[failure->is_retryable + 1]);
	say(to, "message", failure->message);
}

static void say_opened(struct buf *to, const struct agent_event *event)
{
	buf_printf(to, "opened %s", event->is_resumed ? "resumed" : "new");
	say(to, "native", event->native);
	say(to, "version", event->program_version);
}

static void say_models(struct buf *to, const struct agent_event *event)
{
	buf_add_str(to, STR("models"));
	for (size_t i = 0; i < event->model_count; i++) {
		const struct agent_model *model = &event->models[i];

		buf_printf(to, " model=%.*s%s", STRF(model->id), model->is_default ? "(default)" : "");
		say(to, "label", model->label);
		say_json(to, "options", model->options);
	}
}

static void say_usage(struct buf *to, const struct agent_usage *usage)
{
	buf_add_str(to, STR("usage"));
	say_number(to, "input", usage->input);
	say_number(to, "cached", usage->cached);
	say_number(to, "output", usage->output);
	say_number(to, "reasoning", usage->reasoning);
	if (usage->cost_usd >= 0)
		buf_printf(to, " cost=%.6g", usage->cost_usd);
	say_number(to, "contextUsed", usage->context_used);
	say_number(to, "contextSize", usage->context_size);
}

static void say_item(struct buf *to, const struct agent_item *item)
{
	buf_printf(to, "item %s %.*s %s", items[item->kind], STRF(item->key), statuses[item->status]);
	say(to, "parent", item->parent);
	say(to, "title", item->title);
	say(to, "delta", item->delta);
	say_json(to, "body", item->body);
}

static void say_ended(struct buf *to, const struct agent_event *event)
{
	buf_printf(to, "turn-ended %s%s", statuses[event->status], event->is_broken ? " broken" : "");
	say(to, "text", event->text);
	if (event->status == AGENT_FAILED)
		say_failure(to, &event->failure);
}

static void say_event(struct buf *to, const struct agent_event *event)
{
	switch (event->kind) {
	case EVENT_OPENED:
		say_opened(to, event);
		break;
	case EVENT_MODELS:
		say_models(to, event);
		break;
	case EVENT_SELECTED:
		buf_printf(to, "selected %.*s", STRF(event->key));
		break;
	case EVENT_OPEN_FAILED:
	case EVENT_BROKEN:
		buf_add_str(to, event->kind == EVENT_BROKEN ? STR("broken") : STR("open-failed"));
		say_failure(to, &event->failure);
		break;
	case EVENT_TURN_STARTED:
		buf_printf(to, "turn-started%s", event->is_unasked ? " unasked" : "");
		say(to, "native", event->native);
		break;
	case EVENT_ITEM:
		say_item(to, &event->item);
		break;
	case EVENT_REQUEST:
		buf_printf(to, "request %.*s %s", STRF(event->request.key), requests[event->request.kind]);
		say(to, "item", event->request.item);
		say_json(to, "prompt", event->request.prompt);
		break;
	case EVENT_REQUEST_ENDED:
		buf_printf(to, "request-ended %.*s %s", STRF(event->key), statuses[event->status]);
		break;
	case EVENT_USAGE:
		say_usage(to, &event->usage);
		break;
	case EVENT_TITLE:
		buf_add_str(to, STR("title"));
		say(to, "text", event->text);
		break;
	case EVENT_BACKGROUND:
	case EVENT_MODE:
		buf_add_str(to, event->kind == EVENT_MODE ? STR("mode") : STR("background"));
		say_json(to, "body", event->body);
		break;
	case EVENT_STEERED:
		buf_printf(to, "steered %.*s", STRF(event->key));
		break;
	case EVENT_ORDER_REFUSED:
		buf_printf(to, "order-refused %.*s", STRF(event->key));
		say_failure(to, &event->failure);
		break;
	case EVENT_TURN_ENDED:
		say_ended(to, event);
		break;
	}
}

static void say_out(struct buf *to, const struct agent_out *out)
{
	for (const struct agent_line *line = out->lines; line != NULL; line = line->next) {
		struct json_error error;
		json_t *value = json_read(line->text, &error);

		if (value == NULL)
			fail_msg("the driver wrote no JSON: %.*s", STRF(line->text));
		json_decref(value);
		assert_null(memchr(line->text.p, '\n', line->text.n));
		buf_printf(to, ">%s %.*s\n", line->has_secret ? "$" : "", STRF(line->text));
	}
	for (const struct agent_event *event = out->events; event != NULL; event = event->next) {
		buf_add_str(to, STR("* "));
		say_event(to, event);
		buf_add_char(to, '\n');
	}
	if (out->ends_stdin)
		buf_add_str(to, STR("- stdin closed\n"));
	if (out->kills)
		buf_add_str(to, STR("- kill\n"));
}

/* ---- playing ---- */

static void start(struct player *player)
{
	player->config.instance = &player->instance;
	player->agent = player->driver->create(&player->config);
}

/* Through the stored form into a new agent. */
static void revive(struct player *player)
{
	struct buf stored;
	struct buf again;
	struct json_writer w;
	struct failure f;
	json_t *state;
	struct json_error error;

	buf_init(&stored, player->arena, SIZE_MAX);
	json_writer_init(&w, &stored);
	player->driver->save(player->agent, &w);
	assert_true(stored.n <= LIMIT_AGENT_STATE_BYTES);
	player->driver->destroy(player->agent);
	start(player);
	failure_init(&f, player->arena);
	state = json_read(buf_str(&stored), &error);
	assert_non_null(state);
	if (player->driver->load(player->agent, state, &f) != 0)
		fail_msg("%.*s", STRF(f.message));
	json_decref(state);
	buf_init(&again, player->arena, SIZE_MAX);
	json_writer_init(&w, &again);
	player->driver->save(player->agent, &w);
	assert_true(str_eq(buf_str(&stored), buf_str(&again)));
}

static void configure(struct player *player, struct str rest)
{
	struct str name = word(&rest);
	struct agent_config *config = &player->config;

	if (str_eq(name, STR("runtime"))) {
		config->runtime = (enum runtime_mode)INDEX_OF(runtimes, rest);
	} else if (str_eq(name, STR("interaction"))) {
		config->interaction = (enum interaction_mode)INDEX_OF(interactions, rest);
	} else if (str_eq(name, STR("model"))) {
		config->model = rest;
	} else if (str_eq(name, STR("options"))) {
		config->model_options = value_of(player, rest);
	} else if (str_eq(name, STR("resume"))) {
		config->resume = rest;
	} else if (str_eq(name, STR("mcp"))) {
		config->mcp_url = rest;
	} else if (str_eq(name, STR("instructions"))) {
		config->instructions = rest;
	} else if (str_eq(name, STR("confined"))) {
		config->is_confined = true;
	} else if (str_eq(name, STR("models"))) {
		struct str *models = ARENA_ARRAY(player->arena, struct str, rest.n);

		while (rest.n > 0)
			models[player->instance.model_count++] = word(&rest);
		player->instance.models = models;
	} else {
		fail_msg("with %.*s", STRF(name));
	}
}

static void give_order(struct player *player, struct str rest, struct agent_out *out)
{
	struct str kind = word(&rest);
	struct agent_order order = {.key = STR("order")};
	struct agent_attachment file = {.name = STR("file")};

	if (str_eq(kind, STR("turn")) || str_eq(kind, STR("steer"))) {
		order.kind = str_eq(kind, STR("turn")) ? ORDER_TURN : ORDER_STEER;
		order.key = word(&rest);
		order.text = rest;
	} else if (str_eq(kind, STR("attach"))) {
		order.kind = ORDER_TURN;
		order.key = word(&rest);
		file.mime = word(&rest);
		file.path = word(&rest);
		order.text = rest;
		order.attachments = &file;
		order.attachment_count = 1;
	} else if (str_eq(kind, STR("interrupt"))) {
		order.kind = ORDER_INTERRUPT;
	} else if (str_eq(kind, STR("answer"))) {
		order.kind = ORDER_ANSWER;
		order.request = word(&rest);
		order.decision = (enum agent_decision)INDEX_OF(decisions, rest);
	} else if (str_eq(kind, STR("answers"))) {
		order.kind = ORDER_ANSWER;
		order.request = word(&rest);
		order.answers = value_of(player, rest);
	} else if (str_eq(kind, STR("select"))) {
		order.kind = ORDER_SELECT;
		order.runtime = (enum runtime_mode)INDEX_OF(runtimes, word(&rest));
		order.interaction = (enum interaction_mode)INDEX_OF(interactions, word(&rest));
		if (rest.n > 0)
			order.model = word(&rest);
		order.model_options = value_of(player, rest);
	} else if (str_eq(kind, STR("close"))) {
		order.kind = ORDER_CLOSE;
	} else {
		fail_msg("order %.*s", STRF(kind));
	}
	player->driver->order(player->agent, &order, player->now, out);
}

static struct str repeated(struct player *player, struct str rest)
{
	int64_t n;
	struct buf text;

	if (!str_to_int(word(&rest), &n))
		fail_msg("@repeat without a number");
	buf_init(&text, player->arena, SIZE_MAX);
	for (size_t i = 0; i < rest.n; i++) {
		if (i + 1 < rest.n && rest.p[i] == '@' && rest.p[i + 1] == '@') {
			for (int64_t k = 0; k < n; k++)
				buf_add_char(&text, 'x');
			i++;
		} else {
			buf_add_char(&text, rest.p[i]);
		}
	}
	return buf_str(&text);
}

static void pass_time(struct player *player, struct str rest, struct agent_out *out)
{
	int64_t ms;
	int64_t due;

	if (!str_to_int(rest, &ms))
		fail_msg("after %.*s", STRF(rest));
	player->now += ms;
	due = player->driver->due(player->agent);
	if (due != 0 && due <= player->now)
		player->driver->tick(player->agent, player->now, out);
}

static void end_program(struct player *player, struct str how, struct str rest, struct agent_out *out)
{
	struct agent_exit end = {.code = -1};
	int64_t number = 0;

	if (str_eq(how, STR("stdout-closed")))
		end.is_stdout_only = true;
	else if (!str_to_int(word(&rest), &number))
		fail_msg("an end without a number");
	if (str_eq(how, STR("exit")))
		end.code = (int)number;
	else
		end.signal = (int)number;
	end.stderr_tail = rest;
	player->driver->exited(player->agent, &end, out);
}

static void play_input(struct player *player, struct str line)
{
	struct agent_out out;
	struct str rest = line;
	struct str first = word(&rest);

	agent_out_init(&out, player->arena);
	if (str_eq(first, STR("with"))) {
		configure(player, rest);
		return;
	}
	if (player->agent == NULL)
		start(player);
	if (str_eq(first, STR("begin"))) {
		player->driver->begin(player->agent, player->now, &out);
	} else if (str_eq(first, STR("<"))) {
		struct str text = rest;

		if (str_eq(word(&rest), STR("@repeat")))
			text = repeated(player, rest);
		player->driver->line(player->agent, text, player->now, &out);
	} else if (str_eq(first, STR("order"))) {
		give_order(player, rest, &out);
	} else if (str_eq(first, STR("after"))) {
		pass_time(player, rest, &out);
	} else if (str_eq(first, STR("exit")) || str_eq(first, STR("signal")) || str_eq(first, STR("stdout-closed"))) {
		end_program(player, first, rest, &out);
	} else {
		fail_msg("the transcript says %.*s", STRF(line));
	}
	say_out(&player->played, &out);
	if (player->cut == CUT_ALWAYS || player->cut == player->inputs)
		revive(player);
	player->inputs++;
}

static bool is_output(struct str line)
{
	return str_starts(line, STR("> ")) || str_starts(line, STR(">$ ")) || str_starts(line, STR("* ")) ||
		str_starts(line, STR("- "));
}

static struct str file_text(const char *path, struct arena *arena)
{
	FILE *file = fopen(path, "rb");
	struct buf text;
	char part[4096];
	size_t n;

	if (file == NULL)
		fail_msg("cannot read %s", path);
	buf_init(&text, arena, SIZE_MAX);
	while ((n = fread(part, 1, sizeof(part), file)) > 0)
		buf_add(&text, part, n);
	(void)fclose(file);
	return (struct str){str_z(arena, buf_str(&text)), text.n};
}

static void play_text(struct player *player, struct str text);

/* What comes of the inputs of the other file is judged there. */
static void include(struct player *player, struct str name)
{
	size_t played = player->played.n;

	play_text(player, file_text(arena_printf(player->arena, "%.*s/%.*s", STRF(player->directory), STRF(name)), player->arena));
	player->played.n = played;
}

static void play_text(struct player *player, struct str text)
{
	while (text.n > 0) {
		const char *end = memchr(text.p, '\n', text.n);
		struct str line = {text.p, end == NULL ? text.n : (size_t)(end - text.p)};
		size_t taken = line.n + (end != NULL);

		text = (struct str){text.p + taken, text.n - taken};
		if (is_output(line))
			continue;
		buf_add_str(&player->played, line);
		buf_add_char(&player->played, '\n');
		if (str_starts(line, STR("include ")))
			include(player, (struct str){line.p + 8, line.n - 8});
		else if (line.n > 0 && line.p[0] != '#')
			play_input(player, line);
	}
}

/* The transcript with what really came of it; how many inputs it has. */
static struct str play(const struct driver *driver, struct str directory, struct str text, int cut, struct arena *arena,
	int *inputs)
{
	struct player player = {.arena = arena, .driver = driver, .directory = directory, .now = START_AT, .cut = cut};

	player.config.cwd = STR("/repo");
	player.config.fresh = STR("00000000-0000-4000-8000-000000000000");
	player.config.runtime = RUNTIME_FULL_ACCESS;
	player.config.interaction = INTERACTION_DEFAULT;
	player.instance.driver = driver;
	player.instance.id = STR("instance");
	buf_init(&player.played, arena, SIZE_MAX);
	play_text(&player, text);
	if (player.agent != NULL)
		driver->destroy(player.agent);
	*inputs = player.inputs;
	return (struct str){str_z(arena, buf_str(&player.played)), player.played.n};
}

/* The first line in which they differ tells more than the two texts. */
static void same(const char *path, int cut, struct str expected, struct str got)
{
	size_t at = 0;
	int number = 1;
	size_t from = 0;

	while (at < expected.n && at < got.n && expected.p[at] == got.p[at]) {
		if (expected.p[at] == '\n') {
			number++;
			from = at + 1;
		}
		at++;
	}
	if (at == expected.n && at == got.n)
		return;
	fail_msg("%s line %d, cut after input %d:\nexpected %.300s\n     got %.300s", path, number, cut,
		from < expected.n ? expected.p + from : "(the end)", from < got.n ? got.p + from : "(the end)");
}

void transcript_check(const struct driver *driver, const char *path)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const char *slash = strrchr(path, '/');
	struct str directory = slash == NULL ? STR(".") : (struct str){path, (size_t)(slash - path)};
	struct str text = file_text(path, arena);
	int inputs;
	int ignored;
	struct str played = play(driver, directory, text, CUT_NEVER, arena, &inputs);

	assert_true(inputs > 0);
	if (getenv("DAIS_WRITE_TRANSCRIPTS") != NULL) {
		FILE *file = fopen(path, "wb");

		assert_non_null(file);
		assert_int_equal(fwrite(played.p, 1, played.n, file), played.n);
		assert_int_equal(fclose(file), 0);
		return;
	}
	same(path, CUT_NEVER, text, played);
	same(path, CUT_ALWAYS, text, play(driver, directory, text, CUT_ALWAYS, arena, &ignored));
	for (int cut = 0; cut < inputs; cut++) {
		AUTO(arena_destroyp) struct arena *once = arena_create();

		same(path, cut, text, play(driver, directory, text, cut, once, &ignored));
	}
}
