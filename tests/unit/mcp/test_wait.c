/* How long one call may wait: by what its client is known to endure (mcp 6.4, wait-slice). */
#include "base/limits.h"
#include "mcp/mcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static int64_t slice;

static bool tool_find(struct mcp_request *req, struct str name, struct mcp_tool *out)
{
	(void)req;
	(void)name;
	(void)out;
	return true;
}

static void tool_call(struct mcp_request *req, struct str name, const json_t *arguments)
{
	(void)name;
	(void)arguments;
	slice = mcp_wait_slice_ms(req);
	mcp_finish_tool(req, STR("{}"), false);
}

static void list(struct mcp_request *req, enum mcp_list what, struct str after)
{
	(void)what;
	(void)after;
	mcp_finish_list(req, STR("[]"), STR_NONE);
}

static const struct mcp_handlers handlers = {.list = list, .tool_find = tool_find, .tool_call = tool_call};

static void ignore(void *context, struct str line)
{
	(void)context;
	(void)line;
}

/* The slice of a call by a client of this name, in the old era and in the new. */
static void ask(const char *name, int64_t max_wait_ms, int64_t expected)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const struct mcp_settings settings = {.handlers = &handlers,
		.server_info = STR("{\"name\":\"t\",\"version\":\"1\"}"),
		.max_wait_ms = max_wait_ms};
	const struct mcp_line_options options = {
		.caller = {.principal = STR("ada"), .profile = STR("full")}, .write = ignore};
	struct mcp_server *server = mcp_server_create(&settings);
	struct mcp_line *line = mcp_line_create(server, &options);

	slice = -1;
	mcp_line_feed(line,
		str_printf(arena,
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\","
			"\"capabilities\":{},\"clientInfo\":{\"name\":\"%s\",\"version\":\"1\"}}}\n"
			"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"w\"}}\n",
			name));
	assert_int_equal(slice, expected);
	slice = -1;
	mcp_line_feed(line,
		str_printf(arena,
			"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"w\",\"_meta\":{"
			"\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
			"\"io.modelcontextprotocol/clientCapabilities\":{},"
			"\"io.modelcontextprotocol/clientInfo\":{\"name\":\"%s\",\"version\":\"1\"}}}}\n",
			name));
	assert_int_equal(slice, expected);
	mcp_line_close(line);
	mcp_server_destroy(server);
}

static void an_unknown_client_waits_less_than_a_minute(void **state)
{
	(void)state;
	ask("somebody", 0, 50000);
	ask("", 0, 50000);
	ask("Codex", 0, 50000); /* names are exact: a wrong guess costs a call */
}

static void clients_known_to_endure_five_minutes_wait_four(void **state)
{
	(void)state;
	ask("claude-code", 0, 240000);
	ask("codex-mcp-client", 0, 240000);
}

static void the_setting_decides_for_everybody(void **state)
{
	(void)state;
	ask("somebody", 7200000, 7200000);
	ask("claude-code", 1000, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_client_waits_less_than_a_minute),
		cmocka_unit_test(clients_known_to_endure_five_minutes_wait_four),
		cmocka_unit_test(the_setting_decides_for_everybody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
