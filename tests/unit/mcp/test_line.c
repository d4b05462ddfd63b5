/* The application's side of a request: finish at once or later, from another thread, or after a
 * cancel. */
#include "mcp/mcp.h"

#include <pthread.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

struct seen {
	pthread_mutex_t lock;
	struct buf text;
	struct mcp_request *pending;
	int cancels;
};

static bool tool_find(struct mcp_request *req, struct str name, struct mcp_tool *out)
{
	(void)req;
	(void)out;
	return !str_eq(name, STR("none"));
}

static void cancelled(struct mcp_request *req, void *context)
{
	struct seen *seen = context;

	(void)req;
	seen->cancels++;
}

static void list(struct mcp_request *req, enum mcp_list what, struct str after)
{
	(void)what;
	if (after.p == NULL)
		mcp_finish_list(req, STR("[{\"name\":\"one\",\"inputSchema\":{}}]"), STR("1"));
	else
		mcp_finish_list(req, STR("[]"), STR_NONE);
}

static void tool_call(struct mcp_request *req, struct str name, const json_t *arguments)
{
	struct seen *seen = mcp_request_app(req);

	(void)arguments;
	if (str_eq(name, STR("later"))) {
		seen->pending = req;
		mcp_on_cancel(req, cancelled, seen);
	} else if (str_eq(name, STR("internal"))) {
		mcp_finish_internal(req, 500);
	} else {
		mcp_add_meta(req, "k", STR("7"));
		mcp_finish_tool(req, STR("{\"a\":\"\\\"\"}"), false);
	}
}

static const struct mcp_handlers handlers = {
	.list = list, .tool_find = tool_find, .tool_call = tool_call};

static void write_line(void *context, struct str line)
{
	struct seen *seen = context;

	(void)pthread_mutex_lock(&seen->lock);
	buf_add_str(&seen->text, line);
	(void)pthread_mutex_unlock(&seen->lock);
}

struct talk {
	struct seen seen;
	struct mcp_server *server;
	struct mcp_line *line;
};

static int setup(void **state)
{
	static struct talk talk;
	const struct mcp_settings settings = {.handlers = &handlers,
		.app = &talk.seen,
		.server_info = STR("{\"name\":\"t\",\"version\":\"1\"}")};
	const struct mcp_line_options options = {
		.caller = {.principal = STR("ada"), .profile = STR("full")},
		.write = write_line,
		.context = &talk.seen};

	talk = (struct talk){0};
	(void)pthread_mutex_init(&talk.seen.lock, NULL);
	buf_init(&talk.seen.text, NULL, SIZE_MAX);
	talk.server = mcp_server_create(&settings);
	talk.line = mcp_line_create(talk.server, &options);
	*state = &talk;
	return 0;
}

static int teardown(void **state)
{
	struct talk *talk = *state;

	mcp_line_close(talk->line);
	mcp_server_destroy(talk->server);
	buf_finish(&talk->seen.text);
	return 0;
}

#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

static void say(struct talk *talk, const char *id, const char *method, const char *params)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();

	mcp_line_feed(talk->line,
		str_printf(arena,
			"{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{%s" META
			"}}\n",
			id, method, params));
}

/* Everything said so far, as one document per call; the text is used up. */
static json_t *heard(struct talk *talk)
{
	json_t *value = NULL;
	struct str text = buf_str(&talk->seen.text);

	if (text.n > 0)
		value = json_loadb(text.p, text.n, JSON_DISABLE_EOF_CHECK, NULL);
	talk->seen.text.n = 0;
	return value;
}

static void a_result_has_text_structure_and_meta(void **state)
{
	json_t *answer;
	const json_t *result;

	say(*state, "1", "tools/call", "\"name\":\"now\",");
	answer = heard(*state);
	result = json_object_get(answer, "result");
	assert_string_equal(json_string_value(json_object_get(result, "resultType")), "complete");
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(result, "content"), 0), "text")),
		"{\"a\":\"\\\"\"}");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(result, "_meta"), "k")), 7);
	assert_int_equal(
		json_string_length(json_object_get(json_object_get(result, "_meta"), "reqId")), 8);
	json_decref(answer);
}

static void *finish(void *arg)
{
	mcp_finish_tool(arg, STR("{}"), false);
	return NULL;
}

static void another_thread_may_finish(void **state)
{
	struct talk *talk = *state;
	pthread_t thread;
	json_t *answer;

	say(talk, "\"x\"", "tools/call", "\"name\":\"later\",");
	assert_null(heard(talk));
	assert_int_equal(mcp_line_in_flight(talk->line), 1);
	assert_int_equal(pthread_create(&thread, NULL, finish, talk->seen.pending), 0);
	(void)pthread_join(thread, NULL);
	answer = heard(talk);
	assert_string_equal(json_string_value(json_object_get(answer, "id")), "x");
	assert_int_equal(mcp_server_in_flight(talk->server), 0);
	json_decref(answer);
}

static void a_cancelled_request_is_finished_in_silence(void **state)
{
	struct talk *talk = *state;

	say(talk, "3", "tools/call", "\"name\":\"later\",");
	mcp_line_feed(talk->line,
		STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":3}}\n"));
	assert_int_equal(talk->seen.cancels, 1);
	assert_true(mcp_is_cancelled(talk->seen.pending));
	mcp_finish_tool(talk->seen.pending, STR("{}"), false);
	assert_null(heard(talk));
	assert_int_equal(mcp_server_in_flight(talk->server), 0);
}

static void closing_cancels_and_the_rest_may_finish_afterwards(void **state)
{
	struct talk *talk = *state;

	say(talk, "4", "tools/call", "\"name\":\"later\",");
	mcp_line_close(talk->line);
	talk->line = NULL;
	assert_int_equal(talk->seen.cancels, 1);
	mcp_finish_tool(talk->seen.pending, STR("{}"), false);
	assert_null(heard(talk));
}

static void pages_follow_by_a_signed_cursor(void **state)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	json_t *answer;
	const char *cursor;

	say(*state, "1", "tools/list", "");
	answer = heard(*state);
	cursor = arena_printf(arena, "\"cursor\":\"%s\",",
		json_string_value(
			json_object_get(json_object_get(answer, "result"), "nextCursor")));
	json_decref(answer);
	say(*state, "2", "tools/list", cursor);
	answer = heard(*state);
	assert_int_equal(
		json_array_size(json_object_get(json_object_get(answer, "result"), "tools")), 0);
	assert_null(json_object_get(json_object_get(answer, "result"), "nextCursor"));
	json_decref(answer);
}

static void what_is_not_offered_is_unknown(void **state)
{
	static const char *const methods[] = {
		"prompts/list", "resources/read", "completion/complete", "tasks/get", "ping"};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		json_t *answer;

		say(*state, "1", methods[i], "");
		answer = heard(*state);
		assert_int_equal(json_integer_value(
					 json_object_get(json_object_get(answer, "error"), "code")),
			MCP_METHOD_NOT_FOUND);
		json_decref(answer);
	}
}

static void a_fault_says_when_to_come_again(void **state)
{
	json_t *answer;
	const json_t *error;

	say(*state, "1", "tools/call", "\"name\":\"internal\",");
	answer = heard(*state);
	error = json_object_get(answer, "error");
	assert_int_equal(json_integer_value(json_object_get(error, "code")), MCP_INTERNAL);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(error, "data"), "retryAfterMs")),
		500);
	json_decref(answer);
}

static void a_stopping_server_refuses(void **state)
{
	struct talk *talk = *state;
	json_t *answer;

	mcp_server_stop(talk->server);
	say(talk, "1", "tools/list", "");
	answer = heard(talk);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(answer, "error"), "code")),
		MCP_INTERNAL);
	json_decref(answer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_result_has_text_structure_and_meta),
		TEST(another_thread_may_finish),
		TEST(a_cancelled_request_is_finished_in_silence),
		TEST(closing_cancels_and_the_rest_may_finish_afterwards),
		TEST(pages_follow_by_a_signed_cursor),
		TEST(what_is_not_offered_is_unknown),
		TEST(a_fault_says_when_to_come_again),
		TEST(a_stopping_server_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
