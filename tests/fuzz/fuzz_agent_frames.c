/* Arbitrary lines of an agent program, in several states of a session: whatever comes, what is written is JSON, no
 * question is answered twice, the state stays within its limit, and a driver that loads it goes on alike.
 *
 * The first byte chooses kind, modes and how far the session has come, the rest are lines. A line that begins with
 * '!' is an order or time instead: t turn, s steer, i interrupt, c close, a answer, o select, m time, x exit. */
#include "base/limits.h"
#include "providers/provider.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_LINES 400

static const char *const kinds[] = {"acp", "grok", "gemini", "cursor", "antigravity", "script"};

struct session {
	struct provider_instance instance;
	struct agent_config config;
	struct agent *agent;
	int64_t now;
	int questions, answers, requests;
};

static void check_line(struct session *s, struct str text)
{
	json_t *value = json_loadb(text.p, text.n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);

	if (!json_is_object(value) || memchr(text.p, '\n', text.n) != NULL)
		abort();
	if (json_object_get(value, "method") == NULL)
		s->answers++;
	if (s->answers > s->questions)
		abort();
	json_decref(value);
}

static void check_json(struct str text)
{
	json_t *value;

	if (text.p == NULL)
		return;
	value = json_loadb(text.p, text.n, JSON_ALLOW_NUL, NULL);
	if (!json_is_object(value))
		abort();
	json_decref(value);
}

static void check(struct session *s, const struct agent_out *out)
{
	for (const struct agent_line *line = out->lines; line != NULL; line = line->next)
		check_line(s, line->text);
	for (const struct agent_event *event = out->events; event != NULL; event = event->next) {
		check_json(event->item.body);
		check_json(event->request.prompt);
		check_json(event->body);
		if (event->kind == EVENT_REQUEST)
			s->requests++;
		if (event->kind == EVENT_REQUEST_ENDED && --s->requests < 0)
			abort();
	}
}

static struct str save(const struct agent *agent, struct arena *arena)
{
	struct buf text;
	struct json_writer w;

	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	agent->driver->save(agent, &w);
	return buf_str(&text);
}

static void reload(struct session *s)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str state = save(s->agent, arena);
	struct json_error error;
	json_t *json = json_read(state, &error);
	struct agent *fresh = s->instance.driver->create(&s->config);
	struct failure f;

	failure_init(&f, arena);
	if (json == NULL || state.n > LIMIT_AGENT_STATE_BYTES || fresh->driver->load(fresh, json, &f) != 0 ||
		!str_eq(save(fresh, arena), state))
		abort();
	json_decref(json);
	s->agent->driver->destroy(s->agent);
	s->agent = fresh;
}

/* "!a3y": answer request 3 with yes; other letters: no, cancel, answers. */
static void answer(struct agent_order *order, struct str line, struct arena *arena)
{
	char what = line.n > 3 ? line.p[3] : 'y';

	order->request = str_printf(arena, "request:%d", line.n > 2 ? line.p[2] - '0' : 1);
	order->decision = what == 'n' ? DECISION_DECLINE
		: what == 'c'	      ? DECISION_CANCEL
		: what == 's'	      ? DECISION_ACCEPT_FOR_SESSION
				      : DECISION_ACCEPT;
}

static void give_order(struct session *s, struct str line, struct agent_out *out)
{
	struct agent_order order = {.key = STR("k"), .text = STR("do it"), .runtime = s->config.runtime,
		.interaction = s->config.interaction};
	struct agent_exit exit = {.code = 1, .stderr_tail = line};
	char what = line.n > 1 ? line.p[1] : 't';
	json_t *answers = NULL;

	order.kind = what == 's' ? ORDER_STEER
		: what == 'i'	 ? ORDER_INTERRUPT
		: what == 'c'	 ? ORDER_CLOSE
		: what == 'a'	 ? ORDER_ANSWER
		: what == 'o'	 ? ORDER_SELECT
				 : ORDER_TURN;
	if (what == 'm') {
		s->now += 100000;
		s->agent->driver->tick(s->agent, s->now, out);
		return;
	}
	if (what == 'x') {
		s->agent->driver->exited(s->agent, &exit, out);
		return;
	}
	if (what == 'a')
		answer(&order, line, out->arena);
	if (line.n > 4 && line.p[3] == 'q')
		answers = json_loadb(line.p + 4, line.n - 4, JSON_ALLOW_NUL, NULL);
	order.answers = answers;
	s->agent->driver->order(s->agent, &order, s->now, out);
	json_decref(answers);
}

static bool is_question(struct str line)
{
	struct json_error error;
	json_t *json = json_read(line, &error);
	bool is = json_is_object(json) && json_object_get(json, "id") != NULL && json_is_string(json_object_get(json, "method"));

	json_decref(json);
	return is;
}

static void give(struct session *s, struct str line)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct agent_out out;

	agent_out_init(&out, arena);
	s->now++;
	if (line.n > 0 && line.p[0] == '!') {
		give_order(s, line, &out);
	} else {
		s->questions += is_question(line);
		s->agent->driver->line(s->agent, line, s->now, &out);
	}
	check(s, &out);
	(void)s->agent->driver->due(s->agent);
}

static const char initialized[] =
	"{\"id\":1,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true,\"mcpCapabilities\":{\"http\":true},"
	"\"sessionCapabilities\":{\"close\":{}}},\"_meta\":{\"steering\":{\"supported\":true}}}}";

static void begin(struct session *s, uint8_t choice)
{
	static const char *const prologue[] = {initialized, "{\"id\":2,\"result\":{\"sessionId\":\"S1\"}}", "!t"};
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct agent_out out;
	int steps = choice / 6 % 4;

	s->instance = (struct provider_instance){.id = STR("it"), .driver = driver_find(str_of(kinds[choice % 6]))};
	s->config = (struct agent_config){.instance = &s->instance, .cwd = STR("/repo"), .mcp_url = STR("http://h/mcp")};
	s->config.runtime = (enum runtime_mode)(choice / 24 % 4);
	s->config.interaction = choice >= 192 ? INTERACTION_PLAN : INTERACTION_DEFAULT;
	s->agent = s->instance.driver->create(&s->config);
	agent_out_init(&out, arena);
	s->agent->driver->begin(s->agent, s->now, &out);
	for (int i = 0; i < steps; i++)
		give(s, str_of(prologue[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session s = {.now = 1000};
	struct str rest;

	if (size == 0)
		return 0;
	begin(&s, data[0]);
	rest = (struct str){(const char *)data + 1, size - 1};
	for (int i = 0; i < MOST_LINES && rest.n > 0; i++) {
		const char *end = memchr(rest.p, '\n', rest.n);
		struct str line = {rest.p, end == NULL ? rest.n : (size_t)(end - rest.p)};

		give(&s, line);
		reload(&s);
		rest = end == NULL ? STR_NONE : (struct str){end + 1, rest.n - line.n - 1};
	}
	s.agent->driver->destroy(s.agent);
	return 0;
}
