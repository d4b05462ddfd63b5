/* JSON-RPC over lines: two counts of ids, garbage, and calls that run out of time. */
#include "providers/rpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

struct desk {
	struct arena *arena;
	struct rpc rpc;
	struct agent_out out;
	struct rpc_message m;
};

static int set_up(void **state)
{
	struct arena *arena = arena_create();
	struct desk *d = ARENA_NEW(arena, struct desk);

	d->arena = arena;
	agent_out_init(&d->out, arena);
	*state = d;
	return 0;
}

static int tear_down(void **state)
{
	struct desk *d = *state;

	rpc_finish(&d->rpc);
	arena_destroy(d->arena);
	return 0;
}

static void hear(struct desk *d, const char *line)
{
	rpc_read(&d->rpc, d->arena, str_of(line), &d->m);
}

static void call(struct desk *d, int64_t number, int64_t due)
{
	struct rpc_line line;

	rpc_call(&d->rpc, &line, &d->out, "x", number, due);
	rpc_end(&line);
}

static void ids_of_the_agent_are_echoed_with_their_type(void **state)
{
	static const char *const ids[] = {"0", "\"0\"", "null", "-7", "1.5"};
	struct desk *d = *state;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		hear(d, arena_printf(d->arena, "{\"id\":%s,\"method\":\"_x\",\"params\":{}}", ids[i]));
		assert_int_equal(d->m.kind, RPC_REQUEST);
		assert_true(str_eq(d->m.id, str_of(ids[i])));
		assert_true(str_eq(d->m.method, STR("x")));
	}
	rpc_refuse(&d->out, d->m.id, RPC_METHOD_NOT_FOUND, "no");
	assert_true(str_eq(d->out.lines->text,
		STR("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"error\":{\"code\":-32601,\"message\":\"no\"}}")));
	hear(d, "{\"id\":[1],\"method\":\"x\"}");
	assert_int_equal(d->m.kind, RPC_NOTHING);
}

static void an_answer_finds_its_call_once(void **state)
{
	struct desk *d = *state;

	call(d, 5, 0);
	call(d, 6, 0);
	rpc_note(&d->rpc, STR("mine"));
	hear(d, "{\"id\":2,\"result\":null}");
	assert_int_equal(d->m.kind, RPC_RESULT);
	assert_int_equal(d->m.call.method, 6);
	assert_true(str_eq(d->m.call.note, STR("mine")));
	hear(d, "{\"id\":2,\"result\":null}");
	assert_int_equal(d->m.kind, RPC_NOTHING);
	hear(d, "{\"id\":\"1\",\"result\":null}");
	assert_int_equal(d->m.kind, RPC_NOTHING);
	hear(d, "{\"id\":1,\"error\":{\"code\":-1}}");
	assert_int_equal(d->m.kind, RPC_ERROR);
	assert_int_equal(rpc_waiting(&d->rpc, 5), 0);
}

static void their_request_0_is_not_our_call(void **state)
{
	struct desk *d = *state;

	call(d, 5, 0);
	hear(d, "{\"id\":1,\"method\":\"ask\"}");
	assert_int_equal(d->m.kind, RPC_REQUEST);
	assert_int_equal(rpc_waiting(&d->rpc, 5), 1);
}

static void garbage_is_too_much_when_nothing_comes_between(void **state)
{
	struct desk *d = *state;

	for (int round = 0; round < 2; round++) {
		for (int i = 1; i < LIMIT_AGENT_GARBAGE_LINES; i++) {
			hear(d, i % 2 == 0 ? "[]" : "\xff");
			assert_int_equal(d->m.kind, RPC_NOTHING);
		}
		hear(d, "{}");
		assert_int_equal(d->m.kind, RPC_NOTHING);
	}
	for (int i = 0; i < LIMIT_AGENT_GARBAGE_LINES; i++)
		hear(d, "x");
	assert_int_equal(d->m.kind, RPC_VIOLATION);
}

static void calls_run_out_of_time_one_by_one(void **state)
{
	struct desk *d = *state;
	struct rpc_call expired;

	call(d, 1, 300);
	call(d, 2, 0);
	call(d, 3, 200);
	assert_int_equal(rpc_due(&d->rpc), 200);
	assert_false(rpc_expire(&d->rpc, 199, d->arena, &expired));
	assert_true(rpc_expire(&d->rpc, 200, d->arena, &expired));
	assert_int_equal(expired.method, 3);
	assert_int_equal(rpc_due(&d->rpc), 300);
	hear(d, "{\"id\":3,\"result\":{}}");
	assert_int_equal(d->m.kind, RPC_NOTHING);
}

static void the_state_comes_back(void **state)
{
	struct desk *d = *state;
	struct rpc other = {0};
	struct buf text, again;
	struct json_writer w;
	struct json_error error;
	struct failure f;
	json_t *json;

	call(d, 1, 300);
	rpc_note(&d->rpc, STR("a \"note\""));
	hear(d, "garbage");
	buf_init(&text, d->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	rpc_save(&d->rpc, &w);
	failure_init(&f, d->arena);
	json = json_read(buf_str(&text), &error);
	assert_int_equal(rpc_load(&other, json, &f), 0);
	json_decref(json);
	buf_init(&again, d->arena, SIZE_MAX);
	json_writer_init(&w, &again);
	rpc_save(&other, &w);
	assert_true(str_eq(buf_str(&text), buf_str(&again)));
	rpc_finish(&other);
}

#define STORY(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(ids_of_the_agent_are_echoed_with_their_type),
		STORY(an_answer_finds_its_call_once),
		STORY(their_request_0_is_not_our_call),
		STORY(garbage_is_too_much_when_nothing_comes_between),
		STORY(calls_run_out_of_time_one_by_one),
		STORY(the_state_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
