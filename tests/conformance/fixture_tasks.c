/* Tools that may become tasks. */
#include "base/clock.h"
#include "fixture.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct mcp_server *server;

void fixture_tasks_init(struct mcp_server *of)
{
	server = of;
}

struct job {
	char id[MCP_TASK_ID_SIZE];
	char text[256];
	bool fails; /* with a protocol error */
	bool is_error;
};

static void complete_task(struct str id, const char *text, bool is_error)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	buf_add_str(&out, STR("\"content\":[{\"type\":\"text\",\"text\":\""));
	json_escape(&out, str_of(text));
	buf_add_str(&out, STR("\"}]"));
	if (is_error)
		buf_add_str(&out, STR(",\"isError\":true"));
	mcp_task_complete(server, id, buf_str(&out));
}

static void job_over(void *context)
{
	struct job *job = context;

	if (job->fails)
		mcp_task_fail(server, str_of(job->id), MCP_INTERNAL, STR("The job broke down."));
	else
		complete_task(str_of(job->id), job->text, job->is_error);
	free(job);
}

static void begin_job(struct mcp_request *req, int64_t ms, struct job job)
{
	struct job *copy = malloc(sizeof(*copy));

	if (copy == NULL)
		abort();
	*copy = job;
	mcp_finish_task(req, 0, STR("begun"), copy->id);
	later(ms, job_over, copy);
}

/* ---- the same work within the call ---- */

struct wait {
	struct mcp_request *req; /* kept, once for each timer */
	int64_t begun_at;
	atomic_bool over;
};

/* Elapsed seconds, as a wait without a known end tells them. */
static void wait_tick(void *context)
{
	struct wait *wait = context;

	if (atomic_load(&wait->over)) {
		mcp_request_release(wait->req);
		return;
	}
	mcp_progress(wait->req, (double)(clock_mono_ms() - wait->begun_at) / 1000, -1, STR("waiting"));
	later(50, wait_tick, wait);
}

static void wait_cancelled(struct mcp_request *req, void *context)
{
	struct wait *wait = context;

	if (!atomic_exchange(&wait->over, true))
		finish_text(req, true, "cancelled");
}

static void wait_over(void *context)
{
	struct wait *wait = context;
	struct mcp_request *req = wait->req;

	if (!atomic_exchange(&wait->over, true))
		finish_text(req, false, "Computed.");
	mcp_request_release(req);
}

static void slow_compute(struct mcp_request *req, const json_t *arguments)
{
	const json_t *seconds = json_object_get(arguments, "seconds");
	int64_t ms = (int64_t)(json_number_value(seconds) * 1000);
	struct wait *wait;

	if (ms <= 0) {
		finish_text(req, false, "Computed.");
	} else if (mcp_client_can(req, MCP_CAN_TASKS)) {
		begin_job(req, ms, (struct job){.text = "Computed."});
	} else {
		wait = ARENA_NEW(mcp_request_arena(req), struct wait);
		wait->req = mcp_request_keep(req);
		wait->begun_at = clock_mono_ms();
		later(ms, wait_over, wait);
		if (mcp_wants_progress(req)) {
			(void)mcp_request_keep(req);
			wait_tick(wait);
		}
		mcp_on_cancel(req, wait_cancelled, wait);
	}
}

static void greet(struct mcp_request *req, const json_t *arguments)
{
	finish_text(req, false, "Hello, %.*s!", STRF(json_member_str(arguments, "name")));
}

static void failing_job(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	begin_job(req, 1000, (struct job){.text = "The job failed.", .is_error = true});
}

static void protocol_error_job(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	begin_job(req, 200, (struct job){.fails = true});
}

#define CONFIRM(key, text)                                                                              \
	"\"" key                                                                                        \
	"\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"" text       \
	"\","                                                                                           \
	"\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"confirm\":{\"type\":\"boolean\"}}," \
	"\"required\":[\"confirm\"]}}}"

static void ask_in_task(struct mcp_request *req, struct str questions)
{
	char id[MCP_TASK_ID_SIZE];

	mcp_finish_task(req, 0, STR("asking"), id);
	mcp_task_ask(server, str_of(id), questions);
}

static void confirm_delete(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	ask_in_task(req, STR("{" CONFIRM("confirm_1", "Delete the file?") "}"));
}

static void multi_input(struct mcp_request *req, const json_t *arguments)
{
	(void)arguments;
	ask_in_task(req, STR("{" CONFIRM("first", "The first question") "," CONFIRM(
				 "second", "The second question") "}"));
}

/* Two questions: the job is over with the last one. The fixture keeps no more than that. */
void fixture_task_input(void *app, struct str task_id, struct str key, const json_t *response)
{
	static atomic_int answered;
	bool yes = json_is_true(json_object_get(json_object_get(response, "content"), "confirm"));

	(void)app;
	if (str_eq(key, STR("confirm_1")))
		complete_task(task_id, yes ? "The file was deleted." : "The file was kept.", false);
	else if (atomic_fetch_add(&answered, 1) % 2 == 1)
		complete_task(task_id, "Both questions were answered.", false);
}

void fixture_task_cancel(void *app, struct str task_id)
{
	(void)app;
	(void)task_id; /* the job's end finds the task over */
}

static void tool_with_task(struct mcp_request *req, const json_t *arguments)
{
	struct str name = given_name(req);
	struct job job = {.is_error = false};

	(void)arguments;
	if (name.p == NULL) {
		mcp_finish_input_required(req, STR(ASK_NAME), STR("task"));
		return;
	}
	(void)snprintf(job.text, sizeof(job.text), "Done for %.*s", STRF(name));
	begin_job(req, 100, job);
}

#define ONE_STRING(name) "{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"string\"}}}"
#define SECONDS                                                                                    \
	"{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"number\"},\"label\":{\"type\":\"string\"}}}"

/* clang-format off */
const struct fixture_tool task_tools[] = {
	{"greet", "Says hello.", ONE_STRING("name"), greet, false, 0, NULL, 0},
	{"slow_compute", "Takes its time.", SECONDS, slow_compute, true, 0, NULL, 0},
	{"failing_job", "Fails after a second.", NO_ARGUMENTS, failing_job, false, MCP_CAN_TASKS, NULL, 0},
	{"protocol_error_job", "Breaks down.", NO_ARGUMENTS, protocol_error_job, false, MCP_CAN_TASKS, NULL, 0},
	{"confirm_delete", "Asks before it deletes.", ONE_STRING("filename"), confirm_delete, false, MCP_CAN_TASKS, NULL, 0},
	{"multi_input", "Asks two things.", NO_ARGUMENTS, multi_input, false, MCP_CAN_TASKS, NULL, 0},
	{"test_tool_with_task", "Asks, then works.", NO_ARGUMENTS, tool_with_task, false, MCP_CAN_TASKS, NULL, 0},
};
/* clang-format on */
const size_t task_tool_count = sizeof(task_tools) / sizeof(task_tools[0]);
