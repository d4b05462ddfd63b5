/* t3_thread_send, t3_thread_wait, t3_thread_interrupt. */
#include "tools/thread_fields.h"

struct thread_arg {
	struct arg_str thread, run, message, reason, client_request_id;
	struct arg_int mode, timeout;
};

#define RUN_ID_FIELD(help_) \
	FIELD(struct thread_arg, run, "runId", FIELD_STR, 0, .min = 1, .max = LIMIT_THREAD_ID_CHARS, .help = (help_))

/* ---- send ---- */

static const struct word send_words[] = {
	{"auto", SEND_AUTO},
	{"queue", SEND_QUEUE},
	{"steer", SEND_STEER},
	{"restart", SEND_RESTART},
	WORDS_END,
};

static const struct field send_fields[] = {
	THREAD_ID_FIELD(struct thread_arg, thread),
	FIELD(struct thread_arg, message, "message", FIELD_STR, REQUIRED | TRIMMED | NOT_BLANK, .min = 1,
		.max = LIMIT_PROMPT_CHARS, .help = "what its agent is told"),
	FIELD(struct thread_arg, mode, "mode", FIELD_WORD, 0, .words = send_words, .fallback = "auto",
		.help = "auto: into the turn that runs where that works, else the next one; queue: the next one; steer: only into the "
			"turn that runs; restart: stop that turn and begin again with this"),
	REQUEST_ID_FIELD(struct thread_arg, client_request_id),
	FIELDS_END,
};

static int run_send(struct tx *tx, struct asked *asked, const void *args, struct json_writer *w, struct failure *f)
{
	const struct thread_arg *send = args;

	return command_send(tx, asked, send->thread.v, send->message.v,
		send->mode.set ? (enum send_mode)send->mode.v : SEND_AUTO, w, f);
}

static const struct plain plain_send = {
	.fields = send_fields,
	.args_size = sizeof(struct thread_arg),
	.output = "{\"type\":\"object\",\"properties\":{\"threadId\":" TEXT_TYPE ",\"messageId\":" TEXT_TYPE ",\"runId\":" TEXT_TYPE
		  ",\"status\":" TEXT_TYPE ",\"delivery\":{\"type\":\"string\",\"enum\":[\"started\",\"queued\",\"steered\","
		  "\"restarted\"]}},\"required\":[\"threadId\",\"messageId\",\"runId\",\"status\",\"delivery\"]}",
	.run = run_send,
	ERRORS(FAIL_THREAD_NOT_FOUND, FAIL_THREAD_NOT_SENDABLE, FAIL_RUNTIME_MODE_ESCALATION_DENIED,
		FAIL_INTERACTION_MODE_ESCALATION_DENIED),
	.example = "{\"threadId\":\"thread:mcp:9be04d12aa70c3f1:wave-1:1\",\"message\":\"Start with chapter 3.\","
		   "\"clientRequestId\":\"go-3\"}",
	.is_open_world = true,
};

const struct tool tool_thread_send = {
	.name = "t3_thread_send",
	.title = "Send to a thread",
	.description = "Sends a message to a thread of this project. It does not reopen a task that has ended: its summary stays.",
	.plain = &plain_send,
};

/* ---- wait ---- */

static const struct field wait_fields[] = {
	THREAD_ID_FIELD(struct thread_arg, thread),
	RUN_ID_FIELD("default: its latest run when the call begins"),
	TIMEOUT_FIELD(struct thread_arg, timeout),
	FIELDS_END,
};

static int run_wait(struct tx *tx, struct asked *asked, const void *args, struct json_writer *w, struct failure *f)
{
	const struct thread_arg *wait = args;

	return command_wait(tx, asked, wait->thread.v, given(&wait->run), w, f);
}

static int64_t wait_wait_ms(const void *args)
{
	return timeout_of(&((const struct thread_arg *)args)->timeout);
}

static const struct plain plain_wait = {
	.fields = wait_fields,
	.args_size = sizeof(struct thread_arg),
	.output = "{\"type\":\"object\",\"properties\":{\"threadId\":" TEXT_TYPE ",\"runId\":" TEXT_OR_NULL ",\"status\":" TEXT_TYPE
		  ",\"timedOut\":" BOOL_TYPE "},\"required\":[\"threadId\",\"status\",\"timedOut\"]}",
	.run = run_wait,
	ERRORS(FAIL_THREAD_NOT_FOUND, FAIL_RUN_NOT_FOUND),
	.example = "{\"threadId\":\"thread:mcp:9be04d12aa70c3f1:wave-1:0\",\"timeoutMs\":45000}",
	.wait_ms = wait_wait_ms,
	.is_read_only = true,
};

const struct tool tool_thread_wait = {
	.name = "t3_thread_wait",
	.title = "Wait for a thread",
	.description = "Waits until a run of a thread has ended. timedOut: it goes on; call again. Nothing is cancelled, and nothing "
		       "counts as read.",
	.plain = &plain_wait,
};

/* ---- interrupt ---- */

static const struct field interrupt_fields[] = {
	THREAD_ID_FIELD(struct thread_arg, thread),
	RUN_ID_FIELD("default: its active run"),
	FIELD(struct thread_arg, reason, "reason", FIELD_STR, TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_REASON_CHARS,
		.help = "said in the thread's timeline"),
	REQUEST_ID_FIELD(struct thread_arg, client_request_id),
	FIELDS_END,
};

static int run_interrupting(struct tx *tx, struct asked *asked, const void *args, struct json_writer *w, struct failure *f)
{
	const struct thread_arg *interrupt = args;

	return command_interrupt(tx, asked, interrupt->thread.v, given(&interrupt->run), given(&interrupt->reason), w, f);
}

static const struct plain plain_interrupt = {
	.fields = interrupt_fields,
	.args_size = sizeof(struct thread_arg),
	.output = "{\"type\":\"object\",\"properties\":{\"threadId\":" TEXT_TYPE ",\"runId\":" TEXT_OR_NULL ",\"status\":" TEXT_TYPE
		  "},\"required\":[\"threadId\",\"status\"]}",
	.run = run_interrupting,
	ERRORS(FAIL_THREAD_NOT_FOUND, FAIL_RUN_NOT_FOUND, FAIL_THREAD_NOT_INTERRUPTIBLE),
	.example = "{\"threadId\":\"thread:mcp:9be04d12aa70c3f1:wave-1:0\",\"reason\":\"Wrong branch\"}",
	.is_destructive = true,
};

const struct tool tool_thread_interrupt = {
	.name = "t3_thread_interrupt",
	.title = "Interrupt a thread",
	.description = "Asks the active run of a thread to stop. interrupt_requested: use t3_thread_wait to see it end. What it has "
		       "delegated goes on.",
	.plain = &plain_interrupt,
};
