/* What an agent can do to the driver by telling much, long and strange things: the state stays small, and every
 * question is answered. */
#include "providers/acp/acp.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

struct desk {
	struct provider_instance instance;
	struct agent *agent;
	struct arena *arena;
	size_t lines, events, largest;
	struct str last_event;
	int64_t now;
};

static size_t state_bytes(const struct agent *agent)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct buf text;
	struct json_writer w;

	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	agent->driver->save(agent, &w);
	return text.n;
}

static void count(struct desk *d, const struct agent_out *out)
{
	for (const struct agent_line *line = out->lines; line != NULL; line = line->next)
		d->lines++;
	for (const struct agent_event *event = out->events; event != NULL; event = event->next) {
		d->events++;
		if (event->kind == EVENT_ITEM)
			d->last_event = str_dup(d->arena, event->item.delta.p != NULL ? event->item.delta : event->item.body);
	}
}

static void hear(struct desk *d, const char *line)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct agent_out out;
	size_t bytes;

	agent_out_init(&out, arena);
	d->agent->driver->line(d->agent, str_of(line), ++d->now, &out);
	count(d, &out);
	bytes = state_bytes(d->agent);
	if (bytes > d->largest)
		d->largest = bytes;
}

static void open_turn(struct desk *d, enum runtime_mode runtime)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct agent_config config = {.instance = &d->instance, .cwd = STR("/repo"), .runtime = runtime,
		.interaction = INTERACTION_DEFAULT};
	struct agent_order order = {.kind = ORDER_TURN, .key = STR("k"), .text = STR("go")};
	struct agent_out out;

	*d = (struct desk){.instance = {.id = STR("it"), .driver = driver_find(STR("acp"))}, .arena = arena_create()};
	d->agent = d->instance.driver->create(&config);
	agent_out_init(&out, arena);
	d->agent->driver->begin(d->agent, 0, &out);
	hear(d, "{\"id\":1,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{}}}");
	hear(d, "{\"id\":2,\"result\":{\"sessionId\":\"S\"}}");
	d->agent->driver->order(d->agent, &order, 0, &out);
	d->lines = d->events = 0;
}

static void finish(struct desk *d)
{
	d->agent->driver->destroy(d->agent);
	arena_destroy(d->arena);
}

/* An id of control characters: each takes six bytes in the state. */
static const char *long_id(char *to, int i)
{
	(void)snprintf(to, 2000, "%d", i);
	for (int k = 0; k < 250; k++)
		strcat(to, "\\u0001");
	return to;
}

static void thousands_of_tools_leave_the_state_small(void **state)
{
	char id[2000], line[6000];
	struct desk d;

	(void)state;
	open_turn(&d, RUNTIME_APPROVAL_REQUIRED);
	for (int i = 0; i < 2000; i++) {
		(void)snprintf(line, sizeof(line),
			"{\"method\":\"session/update\",\"params\":{\"sessionId\":\"S\",\"update\":{\"sessionUpdate\":\"tool_call\","
			"\"toolCallId\":\"%s\",\"kind\":\"edit\",\"locations\":[{\"path\":\"%s\"}]%s}}}",
			i % 3 == 0 ? arena_printf(d.arena, "%d", i) : long_id(id, i), i % 2 == 0 ? id : "/repo/x",
			i > 1000 ? ",\"status\":\"completed\"" : "");
		hear(&d, line);
	}
	assert_in_range(d.largest, 20000, LIMIT_AGENT_STATE_BYTES);
	finish(&d);
}

static void a_tool_that_touches_too_much_is_asked_about(void **state)
{
	struct desk d;

	(void)state;
	open_turn(&d, RUNTIME_AUTO_ACCEPT_EDITS);
	for (int i = 0; i < 1000; i++)
		hear(&d, arena_printf(d.arena,
			"{\"method\":\"session/update\",\"params\":{\"sessionId\":\"S\",\"update\":{\"sessionUpdate\":\"tool_call_update\","
			"\"toolCallId\":\"c\",\"kind\":\"edit\",\"locations\":[{\"path\":\"/repo/%d\"}]}}}",
			i));
	hear(&d, "{\"id\":0,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"S\",\"toolCall\":{\"toolCallId\":"
		 "\"c\"},\"options\":[{\"optionId\":\"y\",\"kind\":\"allow_once\"}]}}");
	assert_int_equal(d.lines, 0);
	assert_in_range(d.largest, 1000, LIMIT_AGENT_STATE_BYTES);
	finish(&d);
}

static void every_question_of_a_flood_is_answered_or_waits(void **state)
{
	char id[2000];
	struct desk d;

	(void)state;
	open_turn(&d, RUNTIME_APPROVAL_REQUIRED);
	for (int i = 0; i < 300; i++)
		hear(&d, arena_printf(d.arena,
			"{\"id\":%d,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"S\",\"toolCall\":{\"toolCallId\":"
			"\"%s\"},\"options\":[{\"optionId\":\"%s\",\"kind\":\"allow_once\"}]}}",
			i, long_id(id, i), id));
	assert_int_equal(d.lines + (size_t)((struct acp *)d.agent)->request_count, 300);
	assert_in_range(((struct acp *)d.agent)->request_count, 1, LIMIT_AGENT_REQUESTS);
	assert_in_range(d.largest, 10000, LIMIT_AGENT_STATE_BYTES);
	hear(&d, "{\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}");
	assert_int_equal(d.lines, 300);
	finish(&d);
}

static void many_sub_agents_are_followed_up_to_a_limit(void **state)
{
	char id[2000];
	struct desk d;

	(void)state;
	open_turn(&d, RUNTIME_APPROVAL_REQUIRED);
	for (int i = 0; i < 100; i++)
		hear(&d, arena_printf(d.arena,
			"{\"method\":\"session/update\",\"params\":{\"sessionId\":\"%s\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\","
			"\"messageId\":\"%s\",\"content\":{\"type\":\"text\",\"text\":\"x\"}}}}",
			long_id(id, i), id));
	assert_in_range(((struct acp *)d.agent)->speaker_count, 2, LIMIT_AGENT_CHILDREN + 1);
	assert_in_range(d.largest, 1000, LIMIT_AGENT_STATE_BYTES);
	finish(&d);
}

static void a_line_of_a_mebibyte_is_read_whole(void **state)
{
	size_t n = 1024 * 1024;
	struct desk d;
	char *text;

	(void)state;
	open_turn(&d, RUNTIME_APPROVAL_REQUIRED);
	text = malloc(n + 1);
	assert_non_null(text);
	memset(text, 'x', n);
	text[n] = '\0';
	hear(&d, arena_printf(d.arena,
		"{\"method\":\"session/update\",\"params\":{\"sessionId\":\"S\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\","
		"\"content\":{\"type\":\"text\",\"text\":\"%s\"}}}}",
		text));
	assert_int_equal(d.events, 1);
	assert_int_equal(d.last_event.n, n);
	free(text);
	finish(&d);
}

static void a_line_that_is_too_large_to_be_read_is_told_once(void **state)
{
	struct buf line;
	struct desk d;

	(void)state;
	open_turn(&d, RUNTIME_APPROVAL_REQUIRED);
	buf_init(&line, d.arena, SIZE_MAX);
	buf_add_str(&line, STR("{\"method\":\"session/update\",\"params\":["));
	for (int i = 0; i <= LIMIT_JSON_NODES; i++)
		buf_add_str(&line, STR("1,"));
	buf_add_str(&line, STR("1]}"));
	buf_add_char(&line, '\0');
	hear(&d, line.p);
	hear(&d, line.p);
	assert_int_equal(d.events, 1);
	assert_non_null(strstr(str_z(d.arena, d.last_event), "too large"));
	finish(&d);
}

static void inside_is_judged_by_letters(void **state)
{
	static const char *const inside[] = {"/repo/a", "/repo/a/b.c", "a", "./a", "/repo//a", "/repo/..a", "/repo/.gitignore"};
	static const char *const outside[] = {"", "/repo", "/", "/repository/a", "/repo/../a", "/repo/a/../../b", "../a", "a/..",
		"/etc/passwd", "/repo/.git/config", "/repo/sub/.git/hooks/x", "/repo/.GIT/config"};

	(void)state;
	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++)
		assert_true(acp_is_inside(STR("/repo"), str_of(inside[i])));
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
		assert_false(acp_is_inside(STR("/repo"), str_of(outside[i])));
	assert_true(acp_is_inside(STR("/repo/"), STR("/repo/a")));
	assert_false(acp_is_inside(STR("/"), STR("/a")));
	assert_false(acp_is_inside(STR("/repo"), (struct str){"/repo/a\0b", 9}));
}

static void a_bad_state_is_a_failure(void **state)
{
	static const char *const bad[] = {"{}", "[]", "{\"rpc\":{\"counters\":{}},\"session\":{\"phase\":99}}",
		"{\"rpc\":{\"counters\":{}},\"session\":{\"profile_name\":\"nobody\"}}",
		"{\"rpc\":{\"counters\":{}},\"session\":{\"profile_name\":\"generic\"},\"tools\":[{\"speaker\":3}]}",
		"{\"rpc\":{\"counters\":{}},\"session\":{\"profile_name\":7}}"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct json_error error;
		json_auto_t *json = json_read(str_of(bad[i]), &error);
		struct failure f;
		struct desk d;

		open_turn(&d, RUNTIME_READ_ONLY);
		failure_init(&f, d.arena);
		assert_int_equal(d.agent->driver->load(d.agent, json, &f), -1);
		assert_true(f.message.n > 0);
		finish(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thousands_of_tools_leave_the_state_small),
		cmocka_unit_test(a_tool_that_touches_too_much_is_asked_about),
		cmocka_unit_test(every_question_of_a_flood_is_answered_or_waits),
		cmocka_unit_test(many_sub_agents_are_followed_up_to_a_limit),
		cmocka_unit_test(a_line_of_a_mebibyte_is_read_whole),
		cmocka_unit_test(a_line_that_is_too_large_to_be_read_is_told_once),
		cmocka_unit_test(inside_is_judged_by_letters),
		cmocka_unit_test(a_bad_state_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
