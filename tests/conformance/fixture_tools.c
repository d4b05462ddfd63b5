/* The plain tools, and the table of all. */
#include "base/limits.h"
#include "fixture.h"

#include <stdio.h>

#define WAV_BASE64 "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

void finish_text(struct mcp_request *req, bool is_error, const char *fmt, ...)
{
	struct arena *arena = mcp_request_arena(req);
	struct buf out;
	struct json_writer w;
	va_list args;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_array_begin(&w);
	jw_object_begin(&w);
	jw_ktext(&w, "type", "text");
	va_start(args, fmt);
	jw_ktext(&w, "text", arena_vprintf(arena, fmt, args));
	va_end(args);
	jw_object_end(&w);
	jw_array_end(&w);
	mcp_finish_tool_content(req, buf_str(&out), STR_NONE, is_error);
}

static void simple_text(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	finish_text(req, false, "This is a simple text response for testing.");
}

static void image_content(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	mcp_finish_tool_content(req,
		STR("[{\"type\":\"image\",\"data\":\"" PNG_BASE64
		    "\",\"mimeType\":\"image/png\"}]"),
		STR_NONE, false);
}

static void audio_content(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	mcp_finish_tool_content(req,
		STR("[{\"type\":\"audio\",\"data\":\"" WAV_BASE64
		    "\",\"mimeType\":\"audio/wav\"}]"),
		STR_NONE, false);
}

static void embedded_resource(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	mcp_finish_tool_content(req,
		STR("[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\",\"mimeType\":\"text/plain\","
		    "\"text\":\"This is an embedded resource content.\"}}]"),
		STR_NONE, false);
}

static void multiple_content(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	mcp_finish_tool_content(req,
		STR("[{\"type\":\"text\",\"text\":\"Multiple content types test:\"},"
		    "{\"type\":\"image\",\"data\":\"" PNG_BASE64 "\",\"mimeType\":\"image/png\"},"
		    "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\","
		    "\"mimeType\":\"application/json\",\"text\":\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\"}}]"),
		STR_NONE, false);
}

static void error_handling(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	finish_text(req, true, "This tool intentionally returns an error for testing");
}

static void links(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	mcp_finish_tool_content(req,
		STR("[{\"type\":\"resource_link\",\"uri\":\"test://static-text\",\"name\":\"static-text\"}]"),
		STR("{\"linked\":true}"), false);
}

/* ---- in steps of 50 ms ---- */

static void progress_end(void *context)
{
	struct mcp_request *req = context;

	mcp_progress(req, 100, 100, STR("done"));
	finish_text(req, false, "progress was sent");
}

static void progress_half(void *context)
{
	mcp_progress(context, 50, 100, STR("half"));
	later(50, progress_end, context);
}

static void with_progress(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	mcp_progress(req, 0, 100, STR("begun"));
	later(50, progress_half, req);
}

static void progress_flood(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	for (int i = 1; i <= 10000; i++)
		mcp_progress(req, i, 10000, STR_NONE);
	later(600, progress_end, req);
}

static void logging_end(void *context)
{
	mcp_log(context, STR("info"), STR("fixture"), STR("\"Tool execution completed\""));
	finish_text(context, false, "Tool with logging executed successfully");
}

static void logging_middle(void *context)
{
	mcp_log(context, STR("info"), STR("fixture"), STR("\"Tool processing data\""));
	later(50, logging_end, context);
}

static void with_logging(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	mcp_log(req, STR("info"), STR("fixture"), STR("\"Tool execution started\""));
	later(50, logging_middle, req);
}

static void x_mcp_header(struct mcp_request *req, const json_t *arguments)
{
	const char *region = json_string_value(json_object_get(arguments, "region"));

	finish_text(req, false, "region=%s", region == NULL ? "" : region);
}

static void trigger_tools(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	mcp_notify_list_changed(mcp_request_server(req), MCP_TOOLS);
	finish_text(req, false, "tools changed");
}

static void trigger_prompts(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	mcp_notify_list_changed(mcp_request_server(req), MCP_PROMPTS);
	finish_text(req, false, "prompts changed");
}

static void trigger_resource(struct mcp_request *req, const json_t *arguments)
{
	struct str uri = json_member_str(arguments, "uri");

	mcp_notify_resource_updated(mcp_request_server(req), uri);
	finish_text(req, false, "resource changed");
}

static void in_flight(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	finish_text(req, false, "%zu", mcp_server_in_flight(mcp_request_server(req)));
}

static void wait_slice(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	finish_text(req, false, "%lld", (long long)mcp_wait_slice_ms(req));
}

static void big(struct mcp_request *req, const json_t *arguments)
{
	int64_t n = json_integer_value(json_object_get(arguments, "bytes"));
	char *text = arena_alloc(mcp_request_arena(req), (size_t)n + 1);

	memset(text, 'x', (size_t)n);
	finish_text(req, false, "%s", text);
}

static void echo(struct mcp_request *req, const json_t *arguments)
{
	mcp_finish_tool(req, json_canonical(mcp_request_arena(req), arguments), false);
}

static const struct mcp_header_param region_header[] = {
	{STR("region"), STR("Region")}, {STR("level"), STR("Level")}};

#define SCHEMA_2020                                                                                               \
	"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","                      \
	"\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{\"street\":"      \
	"{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"                                                \
	"\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"              \
	"\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},\"phone\":{\"type\":\"string\"}," \
	"\"email\":{\"type\":\"string\"}},"                                                                       \
	"\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"                        \
	"\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},\"required\":[\"contactMethod\"]},"     \
	"\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}"

#define SCHEMA_HEADER                                                                                        \
	"{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"}," \
	"\"level\":{\"type\":\"integer\",\"x-mcp-header\":\"Level\"}},\"required\":[\"region\"]}"

#define SCHEMA_URI                                                                                 \
	"{\"type\":\"object\",\"properties\":{\"uri\":{\"type\":\"string\"}},\"required\":[\"uri\"]}"
#define SCHEMA_BYTES                                                                               \
	"{\"type\":\"object\",\"properties\":{\"bytes\":{\"type\":\"integer\"}},\"required\":[\"bytes\"]}"

/* clang-format off */
const struct fixture_tool plain_tools[] = {
	{"test_simple_text", "Returns one text.", NO_ARGUMENTS, simple_text, false, 0, NULL, 0},
	{"test_image_content", "Returns an image.", NO_ARGUMENTS, image_content, false, 0, NULL, 0},
	{"test_audio_content", "Returns a sound.", NO_ARGUMENTS, audio_content, false, 0, NULL, 0},
	{"test_embedded_resource", "Returns a resource.", NO_ARGUMENTS, embedded_resource, false, 0, NULL, 0},
	{"test_multiple_content_types", "Returns text, image and resource.", NO_ARGUMENTS, multiple_content, false, 0, NULL, 0},
	{"test_error_handling", "Always fails.", NO_ARGUMENTS, error_handling, false, 0, NULL, 0},
	{"test_tool_with_progress", "Tells of its progress.", NO_ARGUMENTS, with_progress, false, 0, NULL, 0},
	{"test_tool_with_logging", "Writes log messages.", NO_ARGUMENTS, with_logging, false, 0, NULL, 0},
	{"test_logging_tool", "Writes log messages.", NO_ARGUMENTS, with_logging, false, 0, NULL, 0},
	{"json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", SCHEMA_2020, echo, false, 0, NULL, 0},
	{"test_x_mcp_header", "Has an argument that headers repeat.", SCHEMA_HEADER, x_mcp_header, false, 0, region_header, 2},
	{"test_missing_capability", "Needs a client with sampling.", NO_ARGUMENTS, simple_text, false, MCP_CAN_SAMPLE, NULL, 0},
	{"test_trigger_tool_change", "Pretends that the tools changed.", NO_ARGUMENTS, trigger_tools, false, 0, NULL, 0},
	{"test_trigger_prompt_change", "Pretends that the prompts changed.", NO_ARGUMENTS, trigger_prompts, false, 0, NULL, 0},
	/* What our own scenarios need besides. */
	{"test_trigger_resource_change", "Pretends that a resource changed.", SCHEMA_URI, trigger_resource, false, 0, NULL, 0},
	{"test_links", "Returns a link to a resource.", NO_ARGUMENTS, links, false, 0, NULL, 0},
	{"test_progress_flood", "Tells of its progress too often.", NO_ARGUMENTS, progress_flood, false, 0, NULL, 0},
	{"test_in_flight", "Counts requests in flight.", NO_ARGUMENTS, in_flight, false, 0, NULL, 0},
	{"test_wait_slice", "Tells how long a call of this client may wait.", NO_ARGUMENTS, wait_slice, false, 0, NULL, 0},
	{"test_big", "Returns many bytes.", SCHEMA_BYTES, big, false, 0, NULL, 0},
	{"test_echo", "Returns its arguments.", "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":true}", echo, false, 0, NULL, 0},
};
/* clang-format on */
const size_t plain_tool_count = sizeof(plain_tools) / sizeof(plain_tools[0]);

static const struct fixture_tool *find(struct str name)
{
	const struct {
		const struct fixture_tool *tools;
		size_t n;
	} tables[] = {{plain_tools, plain_tool_count}, {ask_tools, ask_tool_count},
		{task_tools, task_tool_count}};

	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; i < tables[k].n; i++)
			if (str_eq(name, str_of(tables[k].tools[i].name)))
				return &tables[k].tools[i];
	return NULL;
}

bool fixture_tool_find(struct mcp_request *req, struct str name, struct mcp_tool *out)
{
	const struct fixture_tool *tool = find(name);

	(void)req;
	if (tool == NULL) {
		out->near_names = STR("[\"test_simple_text\"]");
		return false;
	}
	*out = (struct mcp_tool){.may_wait = tool->may_wait,
		.needs = tool->needs,
		.header_params = tool->header_params,
		.header_param_count = tool->header_param_count};
	return true;
}

void fixture_tool_call(struct mcp_request *req, struct str name, const json_t *arguments)
{
	find(name)->call(req, arguments);
}

static void write_tools(struct json_writer *w, const struct fixture_tool *tools, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		jw_object_begin(w);
		jw_ktext(w, "name", tools[i].name);
		jw_ktext(w, "description", tools[i].description);
		jw_kraw(w, "inputSchema", str_of(tools[i].schema));
		jw_object_end(w);
	}
}

struct str fixture_tool_list(struct arena *arena)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_array_begin(&w);
	write_tools(&w, plain_tools, plain_tool_count);
	write_tools(&w, ask_tools, ask_tool_count);
	write_tools(&w, task_tools, task_tool_count);
	jw_array_end(&w);
	return buf_str(&out);
}
