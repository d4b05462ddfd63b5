/* delegate_task, task_status, task_cancel, orchestrator_capabilities. */
#include "tools/thread_fields.h"

const struct word runtime_words[] = {
	{"inherit", -1},
	{"approval-required", RUNTIME_APPROVAL_REQUIRED},
	{"auto-accept-edits", RUNTIME_AUTO_ACCEPT_EDITS},
	{"full-access", RUNTIME_FULL_ACCESS},
	WORDS_END,
};
const struct word interaction_words[] = {
	{"inherit", -1},
	{"plan", INTERACTION_PLAN},
	{"default", INTERACTION_DEFAULT},
	WORDS_END,
};

static bool is_slug(struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!is_letter && (i == 0 || !((c >= '0' && c <= '9') || c == '_' || c == '-')))
			return false;
	}
	return text.n > 0;
}

#define SLUG_SYNTAX "a letter, then letters, digits, _ and -"

const struct field target_fields[] = {
	FIELD(struct target_arg, instance_id, "providerInstanceId", FIELD_STR, 0, .min = 1, .max = LIMIT_PROVIDER_ID_CHARS,
		.legal = is_slug, .syntax = SLUG_SYNTAX, .help = "exactly this one"),
	FIELD(struct target_arg, driver, "driverKind", FIELD_STR, 0, .min = 1, .max = LIMIT_PROVIDER_ID_CHARS, .legal = is_slug,
		.syntax = SLUG_SYNTAX, .help = "any instance of this driver that can run"),
	FIELD(struct target_arg, model, "model", FIELD_STR, TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_MODEL_CHARS,
		.help = "one that it offers"),
	FIELDS_END,
};

struct target target_of(const struct arg_object *arg)
{
	const struct target_arg *target = arg->v;

	if (!arg->set || target == NULL)
		return (struct target){0};
	return (struct target){given(&target->instance_id), given(&target->driver), given(&target->model)};
}

int64_t timeout_of(const struct arg_int *arg)
{
	int64_t ms = arg->set && !arg->null ? arg->v : LIMIT_WAIT_DEFAULT_MS;

	return ms < 1 ? 1 : ms > LIMIT_WAIT_MS ? LIMIT_WAIT_MS : ms;
}

/* ---- orchestrator_capabilities ---- */

static int run_capabilities(struct tx *tx, struct asked *asked, const void *args, struct json_writer *w, struct failure *f)
{
	(void)args;
	return command_capabilities(tx, asked, w, f);
}

static const struct field no_fields[] = {FIELDS_END};

static const struct plain plain_capabilities = {
	.fields = no_fields,
	.output = "{\"type\":\"object\",\"properties\":{\"parentThreadId\":" TEXT_TYPE ",\"inheritedProviderInstanceId\":" TEXT_TYPE
		  ",\"inheritedModel\":" TEXT_OR_NULL ",\"runtimeMode\":" TEXT_TYPE ",\"interactionMode\":" TEXT_TYPE
		  ",\"providers\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},\"features\":{\"type\":\"object\"}},"
		  "\"required\":[\"parentThreadId\",\"providers\",\"features\"]}",
	.run = run_capabilities,
	.example = "{}",
	.is_read_only = true,
};

const struct tool tool_orchestrator_capabilities = {
	.name = "orchestrator_capabilities",
	.title = "Who can work",
	.description = "Lists the providers and models that tasks and threads can be given to, why some cannot run now, and how wide "
		       "the caller's own modes are.",
	.plain = &plain_capabilities,
};

/* ---- delegate_task ---- */

enum { MODE_ASYNC, MODE_WAIT };

static const struct word mode_words[] = {{"async", MODE_ASYNC}, {"wait", MODE_WAIT}, WORDS_END};

enum { TASK_GENERAL, TASK_IMPLEMENTATION, TASK_RESEARCH, TASK_REVIEWING, TASK_DESIGN, TASK_TEST };

static const struct word role_of_task_words[] = {
	{"implementation", TASK_IMPLEMENTATION},
	{"research", TASK_RESEARCH},
	{"review", TASK_REVIEWING},
	{"design", TASK_DESIGN},
	{"test", TASK_TEST},
	{"general", TASK_GENERAL},
	WORDS_END,
};

struct delegate_arg {
	struct arg_str task, title, client_request_id;
	struct arg_object target;
	struct arg_int role, mode, timeout, runtime, interaction;
};

static const struct field delegate_fields[] = {
	FIELD(struct delegate_arg, task, "task", FIELD_STR, REQUIRED | TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_PROMPT_CHARS,
		.help = "all that the child needs to know: it sees nothing of this conversation"),
	TARGET_FIELD(struct delegate_arg, target),
	FIELD(struct delegate_arg, title, "title", FIELD_STR, TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_THREAD_TITLE_CHARS,
		.help = "a few words; default: the beginning of the task"),
	FIELD(struct delegate_arg, role, "role", FIELD_WORD, 0, .words = role_of_task_words, .fallback = "general",
		.help = "said to the child in one line"),
	FIELD(struct delegate_arg, mode, "mode", FIELD_WORD, 0, .words = mode_words, .fallback = "async",
		.help = "async: answer at once, read with task_status; wait: answer when it is done or timeoutMs is over"),
	TIMEOUT_FIELD(struct delegate_arg, timeout),
	REQUEST_ID_FIELD(struct delegate_arg, client_request_id),
	RUNTIME_FIELD(struct delegate_arg, runtime),
	INTERACTION_FIELD(struct delegate_arg, interaction),
	FIELDS_END,
};

static bool waits(const struct delegate_arg *args)
{
	return args->mode.set && args->mode.v == MODE_WAIT;
}

static int run_delegate(struct tx *tx, struct asked *asked, const void *given_args, struct json_writer *w, struct failure *f)
{
	const struct delegate_arg *args = given_args;
	struct delegate_args in = {.task = args->task.v,
		.title = given(&args->title),
		.role = args->role.set ? str_of(word_text(role_of_task_words, args->role.v)) : STR_NONE,
		.target = target_of(&args->target),
		.runtime = mode_of(&args->runtime),
		.interaction = mode_of(&args->interaction),
		.waits = waits(args)};

	return command_delegate(tx, asked, &in, w, f);
}

static int64_t delegate_wait_ms(const void *args)
{
	const struct delegate_arg *delegate = args;

	return waits(delegate) ? timeout_of(&delegate->timeout) : 0;
}

#define TASK_SCHEMA \
	"{\"type\":\"object\",\"properties\":{\"taskId\":" TEXT_TYPE ",\"childThreadId\":" TEXT_TYPE ",\"childRunId\":" TEXT_OR_NULL \
	",\"childNodeId\":" TEXT_TYPE ",\"status\":{\"type\":\"string\",\"enum\":[\"queued\",\"running\",\"waiting\",\"completed\"," \
	"\"failed\",\"cancelled\",\"interrupted\"]},\"workState\":{\"type\":\"string\",\"enum\":[\"working\",\"waiting_for_children\"," \
	"\"result_available\"]},\"hasPendingChildRuns\":" BOOL_TYPE ",\"providerInstanceId\":" TEXT_TYPE ",\"model\":" TEXT_OR_NULL \
	",\"summary\":" TEXT_OR_NULL ",\"resultContextTransferId\":" TEXT_OR_NULL ",\"latestTerminalRunId\":" TEXT_OR_NULL \
	",\"latestTerminalStatus\":" TEXT_OR_NULL ",\"latestTerminalSummary\":" TEXT_OR_NULL \
	",\"latestTerminalResultContextTransferId\":" TEXT_OR_NULL ",\"waitTimedOut\":" BOOL_TYPE "}," \
	"\"required\":[\"taskId\",\"childThreadId\",\"status\",\"workState\",\"waitTimedOut\"]}"

static const struct plain plain_delegate = {
	.fields = delegate_fields,
	.args_size = sizeof(struct delegate_arg),
	.output = TASK_SCHEMA,
	.run = run_delegate,
	ERRORS(FAIL_PARENT_NOT_ACTIVE, FAIL_PROVIDER_UNAVAILABLE, FAIL_MODEL_UNAVAILABLE, FAIL_RUNTIME_MODE_ESCALATION_DENIED,
		FAIL_INTERACTION_MODE_ESCALATION_DENIED),
	.example = "{\"task\":\"Check src/ring.c for lost wake-ups; list each with file and line.\",\"role\":\"review\","
		   "\"mode\":\"wait\",\"timeoutMs\":50000,\"clientRequestId\":\"ring-review-1\"}",
	.wait_ms = delegate_wait_ms,
	.is_open_world = true,
};

const struct tool tool_delegate_task = {
	.name = "delegate_task",
	.title = "Delegate a task",
	.description = "Gives a task to another agent, which works on it in a thread of its own; its answer comes back as summary. "
		       "One task is one round of work: a further round is a new task that says what came before. You are told when "
		       "tasks end that you did not wait for. Keep taskId.",
	.plain = &plain_delegate,
};

/* ---- task_status ---- */

struct task_arg {
	struct arg_str task, reason, client_request_id;
};

#define TASK_ID_FIELD \
	FIELD(struct task_arg, task, "taskId", FIELD_STR, REQUIRED, .min = 1, .max = LIMIT_THREAD_ID_CHARS, \
		.help = "as delegate_task gave it")

static const struct field status_fields[] = {TASK_ID_FIELD, FIELDS_END};

static int run_status(struct tx *tx, struct asked *asked, const void *args, struct json_writer *w, struct failure *f)
{
	return command_task_status(tx, asked, ((const struct task_arg *)args)->task.v, w, f);
}

static const struct plain plain_status = {
	.fields = status_fields,
	.args_size = sizeof(struct task_arg),
	.output = TASK_SCHEMA,
	.run = run_status,
	ERRORS(FAIL_TASK_NOT_FOUND),
	.example = "{\"taskId\":\"node:delegated-task:command%3Amcp%3A9be04d12aa70c3f1%3Adelegate-task%3Aring-review-1\"}",
	.is_idempotent = true,
};

const struct tool tool_task_status = {
	.name = "task_status",
	.title = "How a task stands",
	.description = "Reads a task of this thread. A result that was read here is not announced again. waiting: a person has to "
		       "answer a question of the child.",
	.plain = &plain_status,
};

/* ---- task_cancel ---- */

static const struct field cancel_fields[] = {
	TASK_ID_FIELD,
	FIELD(struct task_arg, reason, "reason", FIELD_STR, TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_REASON_CHARS,
		.help = "said in the child's timeline"),
	REQUEST_ID_FIELD(struct task_arg, client_request_id),
	FIELDS_END,
};

static int run_cancel(struct tx *tx, struct asked *asked, const void *args, struct json_writer *w, struct failure *f)
{
	const struct task_arg *task = args;

	return command_task_cancel(tx, asked, task->task.v, given(&task->reason), w, f);
}

static const struct plain plain_cancel = {
	.fields = cancel_fields,
	.args_size = sizeof(struct task_arg),
	.output = "{\"type\":\"object\",\"properties\":{\"taskId\":" TEXT_TYPE ",\"status\":" TEXT_TYPE "},\"required\":[\"taskId\",\"status\"]}",
	.run = run_cancel,
	ERRORS(FAIL_TASK_NOT_FOUND, FAIL_TASK_NOT_CANCELLABLE),
	.example = "{\"taskId\":\"node:delegated-task:command%3Amcp%3A9be04d12aa70c3f1%3Adelegate-task%3Aport\",\"reason\":\"Superseded\"}",
	.is_destructive = true,
};

const struct tool tool_task_cancel = {
	.name = "task_cancel",
	.title = "Cancel a task",
	.description = "Stops a task of this thread and what it has delegated. cancel_requested: it will end soon. A task that ended "
		       "keeps its result.",
	.plain = &plain_cancel,
};
