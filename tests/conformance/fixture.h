/* tests/conformance/fixture.h - a server with the tools, resources and prompts that the official
 * conformance program calls by name. It is the protocol library and nothing of the product. */
#ifndef DAIS_TESTS_FIXTURE_H
#define DAIS_TESTS_FIXTURE_H

#include "mcp/mcp.h"

struct fixture_tool {
	const char *name;
	const char *description;
	const char *schema; /* JSON */
	void (*call)(struct mcp_request *req, const json_t *arguments);
	bool may_wait;
	unsigned needs;
	const struct mcp_header_param *header_params;
	size_t header_param_count;
};

#define NO_ARGUMENTS "{\"type\":\"object\",\"properties\":{}}"

extern const struct fixture_tool plain_tools[], ask_tools[], task_tools[];
extern const size_t plain_tool_count, ask_tool_count, task_tool_count;

/* Call `run` after `ms`, on the fixture's clock thread. */
void later(int64_t ms, void (*run)(void *context), void *context);
void later_stop(void);

/* Finish with one text block. */
void finish_text(struct mcp_request *req, bool is_error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* tools.c */
bool fixture_tool_find(struct mcp_request *req, struct str name, struct mcp_tool *out);
void fixture_tool_call(struct mcp_request *req, struct str name, const json_t *arguments);
struct str fixture_tool_list(struct arena *arena);

/* content.c */
void fixture_list(struct mcp_request *req, enum mcp_list what, struct str after);
void fixture_resource_read(struct mcp_request *req, struct str uri);
bool fixture_resource_visible(void *app, const struct mcp_caller *caller, struct str uri);
void fixture_prompt_get(struct mcp_request *req, struct str name, const json_t *arguments);
void fixture_complete(struct mcp_request *req, const struct mcp_completion *what);

/* ask.c */
void ask_prompt(struct mcp_request *req);
/* Name given by inputResponses.user_name, or absent. */
struct str given_name(const struct mcp_request *req);
#define ASK_NAME                                                                                                              \
	"{\"user_name\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"What is your name?\"," \
	"\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}}}}"

/* tasks.c */
void fixture_task_input(void *app, struct str task_id, struct str key, const json_t *response);
void fixture_task_cancel(void *app, struct str task_id);
void fixture_tasks_init(struct mcp_server *server);

#define PNG_BASE64                                                                                 \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

#endif
