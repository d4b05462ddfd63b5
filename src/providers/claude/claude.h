/* providers/claude/claude.h - what the files of this driver share; nobody else includes it.
 *
 * Claude Code in stream-json mode: one JSON object per line each way, one process per conversation. A turn is a `user`
 * line with an id of ours; `result` ends it. Beside that runs a control protocol in both directions, requests with ids
 * that the asking side chooses: initialize, interrupt, set_model from us, can_use_tool from the program. A line on stdin
 * that the program cannot read ends it, so every line is written by json_writer.
 *
 * 1. What changes is in claude_fields, and nothing else is kept between two inputs: save and load are exact.
 * 2. A turn ends once: end_turn() is the only place that says EVENT_TURN_ENDED, and it closes what is open.
 * 3. A result is matched by the ids of the messages it answers, never counted: the program also begins turns itself. */
#ifndef DAIS_PROVIDERS_CLAUDE_CLAUDE_H
#define DAIS_PROVIDERS_CLAUDE_CLAUDE_H

#include "providers/failure_code.h"
#include "providers/provider.h"
#include "providers/state.h"

enum phase { PHASE_NEW, PHASE_OPENING, PHASE_READY, PHASE_DEAD };

struct claude {
	struct agent agent;
	const struct provider_instance *instance;
	char *mcp_url;	    /* owner: this struct; NULL: none */
	char *instructions; /* the same */
	int64_t now;	    /* of the input that is handled */

	/* What is saved: claude_fields names each. Texts and tables are owned here; tables are small JSON objects, each
	 * bounded where it grows. */
	int64_t phase;
	struct str native; /* id of the conversation */
	struct str seed; /* fresh UUID that the ids of our messages come from */
	struct str model;
	struct str effort;
	struct str mode; /* permission mode that the program is in */
	int64_t runtime;
	int64_t interaction;
	bool is_confined;
	bool is_resumed;
	bool is_confirmed; /* system/init named the conversation */
	int64_t messages; /* sent: number of the next id */
	int64_t requests; /* control requests sent */
	int64_t notices; /* made up here: number of the next key */
	int64_t bad_lines; /* in a row */
	int64_t open_by;
	int64_t interrupt_by;
	int64_t close_by;
	bool closes; /* ORDER_CLOSE came */
	bool is_shut; /* stdin is closed */
	bool in_turn;
	struct str turn; /* our message that began it; empty: the program began it */
	bool is_started;
	bool is_interrupted;
	struct str interrupt; /* control request that waits for its answer */
	bool has_result; /* a result came, but a steering message waits to be read */
	struct str error; /* of the last top-level message of this turn */
	struct str stream_message;
	struct str stream_key; /* item of the block that streams; empty: none */
	int64_t stream_sent; /* bytes of it told */
	bool stream_is_thought;
	struct str todo_key;
	struct str retry_key;
	struct str limit_status;
	int64_t input;
	int64_t cached;
	int64_t output;
	int64_t thinking;
	bool has_usage; /* the numbers above were told */
	bool is_priced; /* cost_nano is that of the turn */
	int64_t cost_nano;
	bool has_total;
	int64_t total_nano; /* cost of the whole conversation, as told last: 1e-9 USD */
	int64_t context_used;
	int64_t context_size;
	json_t *items; /* open tool calls: key → {"name", "parent"?} */
	json_t *tasks; /* sub-agents of the program: its task id → key of the item */
	json_t *asks; /* questions to people: request id → {"id", "item", "call", "rules"?} or {"id", "item", "questions"} */
	json_t *allowed; /* calls allowed for the session, by hash */
	json_t *controls; /* our requests: id → {"order", "field", "value", "by"} */
	json_t *steers; /* id of a message that is not in the turn yet → key of its order */
};

#define CLAUDE_SERVER "dais" /* name of our MCP server inside the program */

extern const struct driver driver_claude;

/* ---- state.c ---- */
void claude_state_init(struct claude *c);
void claude_state_finish(struct claude *c);
void claude_save(const struct agent *agent, struct json_writer *w);
int claude_load(struct agent *agent, const json_t *state, struct failure *f);
/* Kept cut and cleaned of what is not printable ASCII: it comes from the program. */
void claude_set(struct str *field, struct str value);
#define SET(c, field, value) claude_set(&(c)->field, (value))
#define CLEAR(c, field) state_text(&(c)->field, STR_NONE)
/* An id as it is kept and told: at most LIMIT_CLAUDE_ID_BYTES printable bytes. */
struct str claude_id(struct arena *arena, struct str id);

/* ---- launch.c ---- */
int claude_check(const struct provider_instance *instance, struct failure *f);
int claude_launch(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
	struct agent_launch *out, struct failure *f);
/* Name of the permission mode for a pair of modes. */
const char *claude_mode(enum runtime_mode runtime, enum interaction_mode interaction, bool is_confined);
struct str claude_effort(const json_t *model_options);

/* ---- write.c: lines to the program ---- */
void claude_write_initialize(struct claude *c, struct agent_out *out);
/* A control request with at most one member; its id. */
struct str claude_write_request(struct claude *c, struct agent_out *out, const char *subtype, const char *member,
	struct str value);
void claude_write_interrupt(struct claude *c, struct agent_out *out);
/* A message of the user; its id. */
struct str claude_write_message(struct claude *c, struct agent_out *out, const struct agent_order *order);
/* `response` is a JSON object. */
void claude_write_answer(struct agent_out *out, struct str request, struct str response);
void claude_write_refusal(struct agent_out *out, struct str request, const char *error);

/* ---- read.c: lines from the program ---- */
void claude_line(struct agent *agent, struct str line, int64_t now, struct agent_out *out);

/* ---- system.c ---- */
void claude_system(struct claude *c, const json_t *line, struct agent_out *out);
void claude_rate_limit(struct claude *c, const json_t *line, struct agent_out *out);

/* ---- text.c: messages of the model ---- */
void claude_stream(struct claude *c, const json_t *line, struct agent_out *out);
void claude_assistant(struct claude *c, const json_t *line, struct agent_out *out);
/* The block that streams will not go on. */
void claude_stream_close(struct claude *c, enum agent_status status, struct agent_out *out);

/* ---- tool.c ---- */
struct tool_row {
	const char *name; /* lower case, without _ and - */
	enum agent_item_kind item;
	enum agent_request_kind request;
};
const struct tool_row *claude_tool(struct str name);
/* One line that says what a call does. */
struct str claude_tool_title(struct arena *arena, struct str name, const json_t *input);
void claude_tool_use(struct claude *c, const json_t *block, struct str parent, struct agent_out *out);
/* A `user` line: results of tools. */
void claude_user(struct claude *c, const json_t *line, struct agent_out *out);
/* A sub-agent that outlives its call, or a call of one: it goes on when the turn ends. */
bool claude_in_background(const struct claude *c, struct str key);
/* Close what is open and does not go on in the background. */
void claude_tools_close(struct claude *c, enum agent_status status, struct agent_out *out);
struct agent_item *claude_item(struct agent_out *out, enum agent_item_kind kind, struct str key, struct str parent,
	enum agent_status status);
void claude_notice(struct claude *c, struct agent_out *out, const char *severity, struct str message);
void claude_plan(struct agent_out *out, struct str key, struct str markdown);

/* ---- ask.c: what the program asks ---- */
void claude_control_request(struct claude *c, const json_t *line, struct agent_out *out);
void claude_control_cancel(struct claude *c, const json_t *line, struct agent_out *out);
void claude_answer(struct claude *c, const struct agent_order *order, struct agent_out *out);
void claude_asks_close(struct claude *c, struct agent_out *out);

/* ---- turn.c ---- */
void claude_turn_start(struct claude *c, struct agent_out *out);
void claude_result(struct claude *c, const json_t *line, struct agent_out *out);
struct agent_event *claude_end_turn(struct claude *c, enum agent_status status, const struct agent_failure *failure,
	struct str text, struct agent_out *out);
/* The message is in the turn; or it never got there. */
void claude_steered(struct claude *c, struct str message, struct agent_out *out);
void claude_steers_refuse(struct claude *c, struct agent_out *out);
void claude_context_given(struct claude *c, const json_t *usage);
void claude_context_said(struct claude *c, const json_t *usage, struct agent_out *out);
/* What a text of the program means that says why it does not start. */
struct agent_failure claude_start_failure(struct str text);
/* The message is copied: it may stand in the line that is read. */
struct agent_failure claude_failure(struct agent_out *out, enum provider_failure_code code, struct str message);
void claude_refuse(struct agent_out *out, struct str key, enum provider_failure_code code, struct str message);
void claude_broken(struct claude *c, struct agent_out *out, struct str message);

/* ---- select.c: model and modes of the next turn; answers to our requests ---- */
void claude_select(struct claude *c, const struct agent_order *order, struct agent_out *out);
void claude_control_response(struct claude *c, const json_t *line, struct agent_out *out);
void claude_controls_expire(struct claude *c, struct agent_out *out);
/* The turn of the program is over before it began, or it is gone: nothing of these will be answered. */
void claude_controls_refuse(struct claude *c, struct agent_out *out);
int64_t claude_controls_due(const struct claude *c);
/* The answer to our first line. */
void claude_opened(struct claude *c, const json_t *response, struct agent_out *out);

/* A JSON object under construction, in the arena of the answer. */
struct body {
	struct buf buf;
	struct json_writer w;
};
static inline void body_begin(struct body *b, struct arena *arena)
{
	buf_init(&b->buf, arena, SIZE_MAX);
	json_writer_init(&b->w, &b->buf);
	jw_object_begin(&b->w);
}
static inline struct str body_end(struct body *b)
{
	jw_object_end(&b->w);
	return buf_str(&b->buf);
}

#endif
