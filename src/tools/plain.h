/* tools/plain.h - tools that are one operation: their arguments and their answer are flat objects, without an envelope.
 *
 * Each runs as a change on the writer thread, or as a reading on a snapshot; one that has to wait is put up as a waiter by
 * that very change and runs again when something happened, or when its time is up. A refusal is {"_tag":"OrchestratorMcpFailure","code","message"}. */
#ifndef DAIS_TOOLS_PLAIN_H
#define DAIS_TOOLS_PLAIN_H

#include "tools/tool.h"
#include "tools/tools.h"

#include "threads/commands.h"

struct plain {
	const struct field *fields;
	size_t args_size;
	const char *output; /* JSON Schema of the answer */
	/* 0 and the members of the answer, 1 wait, -1. */
	int (*run)(struct tx *tx, struct asked *asked, const void *args, struct json_writer *w, struct failure *f);
	/* Instead, for what may be long: on a reader's snapshot. */
	int (*read)(struct snapshot *s, struct asked *asked, const void *args, struct json_writer *w, struct failure *f);
	/* What follows from a reading that set asked->handle, before it is answered. */
	int (*has_read)(struct tx *tx, struct asked *asked, struct failure *f);
	/* How long this call would wait, in ms; 0: not at all. NULL: never. */
	int64_t (*wait_ms)(const void *args);
	const enum failure_code *errors; /* besides those that every one of them has */
	size_t error_count;
	const char *example; /* arguments of one call, JSON */
	bool is_read_only, is_destructive, is_idempotent, is_open_world;
};

/* What a schema of an answer says of an optional text. */
#define TEXT_OR_NULL "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}"
#define TEXT_TYPE "{\"type\":\"string\"}"
#define BOOL_TYPE "{\"type\":\"boolean\"}"
#define INT_TYPE "{\"type\":\"integer\"}"
#define INT_OR_NULL "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}"
#define OBJECT_OR_NULL "{\"anyOf\":[{\"type\":\"object\"},{\"type\":\"null\"}]}"

/* Refused to every caller alike. */
#define PLAIN_ERRORS_COUNT 3
extern const enum failure_code plain_errors[PLAIN_ERRORS_COUNT];

void plain_call(struct tools *tools, struct tool_call *request);
void plain_write_listing(const struct tool *tool, struct json_writer *w);

extern const struct tool tool_orchestrator_capabilities, tool_delegate_task, tool_task_status, tool_task_cancel,
	tool_create_threads, tool_thread_list, tool_thread_read, tool_thread_update, tool_thread_send, tool_thread_wait,
	tool_thread_interrupt, tool_thread_launch;

#endif
