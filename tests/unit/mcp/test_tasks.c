/* Tasks outlive the server that made them, through the rows of the application (mcp 6.4 task-durable). */
#include "mcp/mcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define ROWS 8

/* One application with a store, whose server comes and goes. */
struct desk {
	struct arena *arena;
	struct mcp_task_row rows[ROWS];
	size_t row_count;
	size_t saves;
	struct mcp_server *server;
	struct mcp_line *line;
	struct buf said;
	char made[MCP_TASK_ID_SIZE];
	struct str answered; /* the key of the last answer to a question */
};

static struct mcp_task_row copy_row(struct arena *arena, const struct mcp_task_row *from)
{
	struct mcp_task_row to = *from;

	to.id = str_dup(arena, from->id);
	to.principal = str_dup(arena, from->principal);
	to.message = str_dup(arena, from->message);
	to.result = str_dup(arena, from->result);
	to.error = str_dup(arena, from->error);
	to.input_requests = str_dup(arena, from->input_requests);
	to.used_keys = str_dup(arena, from->used_keys);
	return to;
}

static struct mcp_task_row *row_find(struct desk *desk, struct str id)
{
	for (size_t i = 0; i < desk->row_count; i++)
		if (str_eq(desk->rows[i].id, id))
			return &desk->rows[i];
	return NULL;
}

static void save(void *app, const struct mcp_task_row *row)
{
	struct desk *desk = app;
	struct mcp_task_row *slot = row_find(desk, row->id);

	if (slot == NULL) {
		assert_true(desk->row_count < ROWS);
		slot = &desk->rows[desk->row_count++];
	}
	*slot = copy_row(desk->arena, row);
	desk->saves++;
}

static bool load(void *app, struct str id, struct arena *arena, struct mcp_task_row *out)
{
	const struct mcp_task_row *row = row_find(app, id);

	if (row != NULL)
		*out = copy_row(arena, row);
	return row != NULL;
}

static void list(struct mcp_request *req, enum mcp_list what, struct str after)
{
	(void)what;
	(void)after;
	mcp_finish_list(req, STR("[]"), STR_NONE);
}

static bool tool_find(struct mcp_request *req, struct str name, struct mcp_tool *out)
{
	(void)req;
	(void)name;
	(void)out;
	return true;
}

static void tool_call(struct mcp_request *req, struct str name, const json_t *arguments)
{
	struct desk *desk = mcp_request_app(req);

	(void)name;
	(void)arguments;
	mcp_finish_task(req, 0, STR("begun"), desk->made);
}

static void task_input(void *app, struct str id, struct str key, const json_t *response)
{
	struct desk *desk = app;

	(void)id;
	(void)response;
	desk->answered = str_dup(desk->arena, key);
}

static const struct mcp_handlers handlers = {
	.list = list, /* without one there are no tools */
	.tool_find = tool_find,
	.tool_call = tool_call,
	.task_input = task_input,
	.task_save = save,
	.task_load = load,
};

static void write_line(void *context, struct str line)
{
	struct desk *desk = context;

	desk->said.n = 0;
	buf_add_str(&desk->said, line);
}

static void open_server(struct desk *desk, struct str principal)
{
	const struct mcp_settings settings = {
		.handlers = &handlers, .app = desk, .server_info = STR("{}"), .offers_tasks = true};
	const struct mcp_line_options options = {
		.caller = {.principal = principal, .profile = STR("full")}, .write = write_line, .context = desk};

	desk->server = mcp_server_create(&settings);
	desk->line = mcp_line_create(desk->server, &options);
}

static void close_server(struct desk *desk)
{
	mcp_line_close(desk->line);
	mcp_server_destroy(desk->server);
}

static void restart(struct desk *desk, struct str principal)
{
	close_server(desk);
	open_server(desk, principal);
}

static int setup(void **state)
{
	static struct desk desk;

	desk = (struct desk){.arena = arena_create()};
	buf_init(&desk.said, NULL, SIZE_MAX);
	open_server(&desk, STR("ada"));
	*state = &desk;
	return 0;
}

static int teardown(void **state)
{
	struct desk *desk = *state;

	close_server(desk);
	buf_finish(&desk->said);
	arena_destroy(desk->arena);
	return 0;
}

#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}"

/* The answer; the caller drops the reference. */
static json_t *ask(struct desk *desk, const char *method, const char *params)
{
	json_t *answer;

	mcp_line_feed(desk->line,
		str_printf(desk->arena, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s," META "}}\n", method,
			params));
	answer = json_loadb(desk->said.p, desk->said.n, 0, NULL);
	assert_non_null(answer);
	return answer;
}

static json_t *get(struct desk *desk, json_t **answer)
{
	*answer = ask(desk, "tasks/get", str_z(desk->arena, str_printf(desk->arena, "\"taskId\":\"%s\"", desk->made)));
	return json_object_get(*answer, "result");
}

static void assert_status(struct desk *desk, const char *status)
{
	json_auto_t *answer = NULL;

	assert_string_equal(json_string_value(json_object_get(get(desk, &answer), "status")), status);
}

static void make(struct desk *desk)
{
	json_auto_t *answer = ask(desk, "tools/call", "\"name\":\"work\"");

	assert_string_equal(json_string_value(json_object_get(json_object_get(answer, "result"), "taskId")), desk->made);
}

static void the_row_is_there_before_the_answer(void **state)
{
	struct desk *desk = *state;

	make(desk);
	assert_int_equal(desk->saves, 1);
	assert_true(str_eq(desk->rows[0].id, str_of(desk->made)));
	assert_true(str_eq(desk->rows[0].principal, STR("ada")));
}

static void work_goes_on_after_a_restart(void **state)
{
	struct desk *desk = *state;
	json_auto_t *answer = NULL;
	const json_t *result;

	make(desk);
	restart(desk, STR("ada"));
	assert_status(desk, "working");
	restart(desk, STR("ada"));
	/* Nobody has asked this server for the task yet. */
	mcp_task_complete(desk->server, str_of(desk->made), STR("\"content\":[]"));
	restart(desk, STR("ada"));
	result = get(desk, &answer);
	assert_string_equal(json_string_value(json_object_get(result, "status")), "completed");
	assert_true(json_is_array(json_object_get(json_object_get(result, "result"), "content")));
	assert_string_equal(json_string_value(json_object_get(result, "statusMessage")), "begun");
}

static void what_is_over_stays_over(void **state)
{
	struct desk *desk = *state;

	make(desk);
	mcp_task_fail(desk->server, str_of(desk->made), MCP_INTERNAL, STR("broken"));
	restart(desk, STR("ada"));
	mcp_task_complete(desk->server, str_of(desk->made), STR("\"content\":[]"));
	mcp_task_message(desk->server, str_of(desk->made), STR("late"));
	assert_status(desk, "failed");
	restart(desk, STR("ada"));
	assert_status(desk, "failed");
}

static void a_question_stays_open_and_its_key_is_used_once(void **state)
{
	struct desk *desk = *state;
	json_auto_t *before = NULL;
	json_auto_t *after = NULL;
	json_auto_t *ignored = NULL;
	char *answer;

	make(desk);
	mcp_task_ask(desk->server, str_of(desk->made), STR("{\"a\":{\"method\":\"x\"},\"b\":{\"method\":\"y\"}}"));
	restart(desk, STR("ada"));
	assert_int_equal(json_object_size(json_object_get(get(desk, &before), "inputRequests")), 2);
	answer = str_z(desk->arena,
		str_printf(desk->arena, "\"taskId\":\"%s\",\"inputResponses\":{\"a\":{}}", desk->made));
	ignored = ask(desk, "tasks/update", answer);
	assert_true(str_eq(desk->answered, STR("a")));
	restart(desk, STR("ada"));
	mcp_task_ask(desk->server, str_of(desk->made), STR("{\"a\":{\"method\":\"again\"}}"));
	assert_int_equal(json_object_size(json_object_get(get(desk, &after), "inputRequests")), 1);
	assert_non_null(json_object_get(json_object_get(json_object_get(after, "result"), "inputRequests"), "b"));
}

static void another_principal_does_not_find_it(void **state)
{
	struct desk *desk = *state;
	json_auto_t *answer = NULL;

	make(desk);
	restart(desk, STR("bob"));
	assert_null(get(desk, &answer));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "error"), "code")), MCP_INVALID_PARAMS);
}

static void it_is_gone_after_its_time(void **state)
{
	struct desk *desk = *state;
	json_auto_t *answer = NULL;

	make(desk);
	desk->rows[0].created_at -= desk->rows[0].ttl_ms + 1;
	restart(desk, STR("ada"));
	assert_null(get(desk, &answer));
}

static void an_old_task_is_looked_at_less_often(void **state)
{
	struct desk *desk = *state;
	json_auto_t *young = NULL;
	json_auto_t *old = NULL;

	make(desk);
	assert_int_equal(json_integer_value(json_object_get(get(desk, &young), "pollIntervalMs")), 2000);
	desk->rows[0].created_at -= 31000;
	restart(desk, STR("ada"));
	assert_int_equal(json_integer_value(json_object_get(get(desk, &old), "pollIntervalMs")), 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_row_is_there_before_the_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(work_goes_on_after_a_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_over_stays_over, setup, teardown),
		cmocka_unit_test_setup_teardown(a_question_stays_open_and_its_key_is_used_once, setup, teardown),
		cmocka_unit_test_setup_teardown(another_principal_does_not_find_it, setup, teardown),
		cmocka_unit_test_setup_teardown(it_is_gone_after_its_time, setup, teardown),
		cmocka_unit_test_setup_teardown(an_old_task_is_looked_at_less_often, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
