#include "mcp/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

/* Code of the refusal, or 0. */
static int read_text(struct arena *arena, const char *text, struct message *out)
{
	struct refusal r;
	json_t *value = message_parse(str_of(text), &r);

	if (value == NULL)
		return r.code;
	return message_read(arena, value, out, &r) == 0 ? 0 : (int)r.code;
}

static void kinds_are_told_apart(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct message m;

	(void)state;
	assert_int_equal(
		read_text(arena, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", &m), 0);
	assert_int_equal(m.kind, MESSAGE_REQUEST);
	json_decref(m.whole);
	assert_int_equal(read_text(arena, "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", &m), 0);
	assert_int_equal(m.kind, MESSAGE_NOTIFICATION);
	json_decref(m.whole);
	assert_int_equal(read_text(arena, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", &m), 0);
	assert_int_equal(m.kind, MESSAGE_RESPONSE);
	json_decref(m.whole);
}

static void ids_are_kept_as_they_came(void **state)
{
	static const char *const ids[] = {
		"0", "-1", "9007199254740991", "\"\"", "\"0\"", "\"a\\\"b\""};
	AUTO(arena_destroyp) struct arena *arena = arena_create();

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct message m;
		const char *text = arena_printf(
			arena, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"m\"}", ids[i]);

		assert_int_equal(read_text(arena, text, &m), 0);
		assert_true(str_eq(m.id, str_of(ids[i])));
		json_decref(m.whole);
	}
}

static void an_error_echoes_the_id_that_was_readable(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct message m;

	(void)state;
	assert_int_equal(read_text(arena, "{\"id\":5,\"method\":\"m\"}", &m), MCP_INVALID_REQUEST);
	assert_true(str_eq(m.id, STR("5")));
	json_decref(m.whole);
	assert_int_equal(read_text(arena, "{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"m\"}", &m),
		MCP_INVALID_REQUEST);
	assert_null(m.id.p);
	json_decref(m.whole);
}

static void an_error_without_id_has_no_such_member(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const struct refusal r = {MCP_PARSE_ERROR, 400, STR("bad"), STR_NONE};
	struct buf out;

	(void)state;
	buf_init(&out, arena, 4096);
	message_error(&out, STR_NONE, &r);
	assert_true(str_eq(buf_str(&out),
		STR("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"bad\"}}")));
}

static void an_empty_elicitation_means_forms(void **state)
{
	json_t *value = json_loads("{\"elicitation\":{},\"roots\":{},\"sampling\":7}", 0, NULL);

	(void)state;
	assert_int_equal(client_features(value), MCP_CAN_ELICIT_FORM | MCP_CAN_LIST_ROOTS);
	json_decref(value);
	value = json_loads("{\"elicitation\":{\"url\":{}}}", 0, NULL);
	assert_int_equal(client_features(value), MCP_CAN_ELICIT_URL);
	json_decref(value);
	assert_int_equal(client_features(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_are_told_apart),
		cmocka_unit_test(ids_are_kept_as_they_came),
		cmocka_unit_test(an_error_echoes_the_id_that_was_readable),
		cmocka_unit_test(an_error_without_id_has_no_such_member),
		cmocka_unit_test(an_empty_elicitation_means_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
