/* tools/tools.h - the door of the room: call a tool, list the tools.
 *
 * One call: shape of the whole request first (nothing runs when it is wrong), then profile and
 * capabilities, then the operations: reads on a snapshot, changes on the writer thread, each op of a batch
 * under a savepoint of its own (atomic: all under one). The answer is one envelope, the same over MCP and
 * REST. */
#ifndef DAIS_TOOLS_TOOLS_H
#define DAIS_TOOLS_TOOLS_H

#include "identity/identity.h"
#include "rules/cache.h"
#include "store/store.h"

struct tools;
struct tool;

/* `config_dir` (may be NULL) is where bodyFromFile looks; it is copied. */
struct tools *tools_create(struct store *store, struct rules *rules, const char *config_dir);
void tools_destroy(struct tools *tools);
/* The engine of agents; before it is given, its tools are refused. */
struct threads;
void tools_use_threads(struct tools *tools, struct threads *threads);

struct tool_call {
	/* given */
	struct arena *arena;	   /* of the request; everything below lives here */
	struct caller caller;	   /* who asks; actor.req_id must point at caller.req_id or live as long */
	const struct tool *tool;
	const json_t *args;	   /* object, or NULL for {}; lives until done() */
	void (*done)(struct tool_call *call); /* once, on any thread; may free the arena */
	void *context;
	int64_t max_wait_ms; /* that the caller's client endures; 0: no limit */
	void (*progress)(struct tool_call *call); /* now and then while it waits; may not block. NULL: none */
	/* the room's own */
	void *waiting;
	/* answered */
	struct str envelope; /* JSON */
	bool is_error;	     /* not ok, and nothing was committed */
	int http_status;
	int64_t retry_after_ms; /* 0: none */
	const char *error_code; /* wire name of the top error, NULL: ok */
	int batch_size, failed_count;
	bool is_replayed;
	bool ends_credentials; /* seats or their runs may have ended */
};

/* Exactly one done() follows, possibly before this returns. */
void tools_call(struct tools *tools, struct tool_call *call);
/* The caller has gone: if the call only waits, it is answered now. What it waited for goes on. */
void tools_cancel(struct tool_call *call);

/* Members of one tool for tools/list: "name":…,"inputSchema":…,"annotations":… */
void tool_write_listing(const struct tool *tool, enum profile profile, struct json_writer *w);
/* What describe:true answers, narrowed to one operation when `narrow` is given. */
int tool_describe(const struct tool *tool, enum profile profile, struct str narrow, struct json_writer *w,
	struct failure *f);
/* Short text for agents that connect with this profile. */
struct str tools_instructions(enum profile profile);

#endif
