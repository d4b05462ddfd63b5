/* providers/pi/pi.h - what the files of this driver share; nobody else includes it.
 *
 * Pi in RPC mode: one JSON object per line each way, one process per conversation. Commands of ours are answered by a
 * `response` with our id; a prompt is answered when it is accepted, and `agent_settled` ends the turn. Pi knows neither
 * MCP credentials that are no secret of a file, nor permissions: a bridge of ours in JavaScript (bridge.mjs) runs inside
 * it, and talks to us through dialogs of extensions, whose titles begin with "dais:".
 *
 * 1. What changes is in pi_fields, and nothing else is kept between two inputs: save and load are exact.
 * 2. A turn ends once: pi_end_turn() is the only place that says EVENT_TURN_ENDED, and it closes what is open.
 * 3. No session is open before the bridge has said that it is ready: without it nothing would hold a mode. */
#ifndef DAIS_PROVIDERS_PI_PI_H
#define DAIS_PROVIDERS_PI_PI_H

#include "providers/failure_code.h"
#include "providers/provider.h"
#include "providers/state.h"

enum phase { PHASE_NEW, PHASE_OPENING, PHASE_READY, PHASE_DEAD };

struct pi {
	struct agent agent;
	const struct provider_instance *instance;
	int64_t now; /* of the input that is handled */

	/* What is saved: pi_fields names each. */
	int64_t phase;
	struct str native; /* id of the conversation */
	struct str model; /* provider/id */
	struct str thinking;
	struct str workspace;
	struct str url; /* of the MCP endpoint; empty: none */
	struct str instructions; /* until the session is open */
	struct str version;
	struct str problem; /* why the bridge has no tools, until it is told */
	struct str channel; /* dialog of the bridge that takes the next change of mode */
	int64_t runtime;
	int64_t interaction;
	bool is_confined;
	bool has_resume; /* an earlier conversation was asked for */
	bool is_resumed;
	bool has_state; /* of the three that open the session: get_state, get_available_models, the bridge */
	bool has_models;
	bool is_asked; /* the bridge asked for its settings */
	bool is_bridged;
	int64_t requests; /* commands sent: number of the last id */
	int64_t notices; /* made up here: number of the next key */
	int64_t bad_lines; /* in a row */
	int64_t open_by;
	int64_t interrupt_by;
	int64_t close_by;
	bool closes; /* ORDER_CLOSE came */
	bool is_shut; /* stdin is closed */
	bool in_turn;
	bool is_started;
	bool is_unasked; /* an extension began it */
	bool is_interrupted;
	bool is_aborting; /* an abort waits for its answer */
	struct str stop; /* how the last message of the turn ended */
	struct str error; /* and why, if that was an error */
	int64_t messages; /* of the model: number of the last one, for keys */
	struct str stream_key; /* item of the block that streams; empty: none */
	int64_t stream_sent; /* bytes of it told */
	bool stream_is_thought;
	int64_t blocks; /* of the message that streams: number of the first that was not told */
	struct str retry_key;
	struct str compaction_key;
	int64_t input;
	int64_t cached;
	int64_t output;
	int64_t thought;
	int64_t cost_nano; /* 1e-9 USD */
	bool has_usage;
	int64_t context_used;
	int64_t context_size;
	json_t *items; /* open tool calls: key → {"kind", "told"?, "end"?} */
	json_t *asks; /* open dialogs: id → {"kind", "item"?} */
	json_t *controls; /* our commands: id → {"kind", "order"?, "value"?, "by"?} */
};

/* The bridge is a file of the server's: pi-HASH.mjs. */
#define PI_BRIDGE_PREFIX "pi-"
#define PI_BRIDGE_SUFFIX ".mjs"

extern const struct driver driver_pi;
extern const char pi_bridge[]; /* bridge.mjs */
extern const size_t pi_bridge_bytes;

/* ---- state.c ---- */
void pi_state_init(struct pi *p);
void pi_state_finish(struct pi *p);
void pi_save(const struct agent *agent, struct json_writer *w);
int pi_load(struct agent *agent, const json_t *state, struct failure *f);
/* Kept cut and cleaned of what is not printable ASCII: it comes from the program. */
void pi_set(struct str *field, struct str value);
#define SET(p, field, value) pi_set(&(p)->field, (value))
#define CLEAR(p, field) state_text(&(p)->field, STR_NONE)
/* An id as it is kept and told: at most LIMIT_PI_ID_BYTES printable bytes. */
struct str pi_id(struct arena *arena, struct str id);

/* ---- launch.c ---- */
int pi_check(const struct provider_instance *instance, struct failure *f);
int pi_launch(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
	struct agent_launch *out, struct failure *f);
/* What the bridge calls a pair of modes. */
const char *pi_gate(enum runtime_mode runtime, enum interaction_mode interaction, bool is_confined);

/* ---- write.c: lines to the program ---- */
struct command {
	struct agent_out *out;
	struct buf text;
	struct json_writer w;
	struct str id;
	json_t *row; /* in controls; NULL: nobody waits for the answer */
};
/* A command; its members follow in c->w, then pi_command_end. False, and nothing is written: too many wait for answers. */
bool pi_command(struct pi *p, struct command *c, const char *type, struct agent_out *out);
void pi_command_end(struct command *c);
void pi_write_abort(struct pi *p, struct agent_out *out);
/* Answers to dialogs. */
void pi_write_value(struct agent_out *out, struct str id, struct str value, bool has_secret);
void pi_write_confirmed(struct agent_out *out, struct str id, bool confirmed);
void pi_write_cancelled(struct agent_out *out, struct str id);
struct str pi_settings(const struct pi *p, struct arena *arena);

/* ---- read.c: lines from the program ---- */
void pi_line(struct agent *agent, struct str line, int64_t now, struct agent_out *out);

/* ---- open.c: the handshake ---- */
void pi_write_begin(struct pi *p, struct agent_out *out);
void pi_on_state(struct pi *p, const json_t *data, struct agent_out *out);
void pi_on_models(struct pi *p, const json_t *data, struct agent_out *out);
/* The bridge says what it has; and that it takes changes of mode. */
void pi_on_ready(struct pi *p, const json_t *told, struct agent_out *out);
void pi_open_failed(struct pi *p, enum provider_failure_code code, struct str message, struct agent_out *out);

/* ---- message.c: what the model says ---- */
void pi_message_start(struct pi *p, const json_t *line, struct agent_out *out);
void pi_message_update(struct pi *p, const json_t *line, struct agent_out *out);
void pi_message_end(struct pi *p, const json_t *line, struct agent_out *out);
/* The block that streams will not go on. */
void pi_stream_close(struct pi *p, enum agent_status status, struct agent_out *out);

/* ---- tool.c ---- */
void pi_tool_start(struct pi *p, const json_t *line, struct agent_out *out);
void pi_tool_update(struct pi *p, const json_t *line, struct agent_out *out);
void pi_tool_end(struct pi *p, const json_t *line, struct agent_out *out);
/* The call was not carried out: how its item shall end. */
void pi_tool_not_run(struct pi *p, struct str key, enum agent_status status);
void pi_tools_close(struct pi *p, enum agent_status status, struct agent_out *out);
struct str pi_tool_title(struct arena *arena, struct str name, const json_t *args);
enum agent_request_kind pi_tool_request(struct str name);
struct agent_item *pi_item(struct agent_out *out, enum agent_item_kind kind, struct str key, enum agent_status status);
void pi_notice(struct pi *p, struct agent_out *out, const char *severity, struct str message);

/* ---- ask.c: dialogs ---- */
void pi_dialog(struct pi *p, const json_t *line, struct agent_out *out);
void pi_answer(struct pi *p, const struct agent_order *order, struct agent_out *out);
/* Nobody answers any more: the program is told so, when it can still read, and people are. */
void pi_asks_close(struct pi *p, bool tells_program, struct agent_out *out);

/* ---- turn.c ---- */
void pi_turn_start(struct pi *p, struct agent_out *out);
void pi_agent_start(struct pi *p, const json_t *line, struct agent_out *out);
void pi_settled(struct pi *p, const json_t *line, struct agent_out *out);
void pi_retry_start(struct pi *p, const json_t *line, struct agent_out *out);
void pi_retry_end(struct pi *p, const json_t *line, struct agent_out *out);
void pi_compaction_start(struct pi *p, const json_t *line, struct agent_out *out);
void pi_compaction_end(struct pi *p, const json_t *line, struct agent_out *out);
/* A finished message: what it cost, how it ended. */
void pi_count(struct pi *p, const json_t *message);
struct agent_event *pi_end_turn(struct pi *p, enum agent_status status, const struct agent_failure *failure,
	struct agent_out *out);
/* What a text of the program means that says why a turn failed. */
enum provider_failure_code pi_error_code(struct str error);
struct agent_failure pi_failure(struct agent_out *out, enum provider_failure_code code, struct str message);
void pi_refuse(struct agent_out *out, struct str key, enum provider_failure_code code, struct str message);
void pi_broken(struct pi *p, struct agent_out *out, enum provider_failure_code code, struct str message);

/* ---- control.c: model and modes of the next turn, answers to commands ---- */
void pi_select(struct pi *p, const struct agent_order *order, struct agent_out *out);
void pi_response(struct pi *p, const json_t *line, struct agent_out *out);
/* The bridge took a change of mode. */
void pi_mode_taken(struct pi *p, struct agent_out *out);
void pi_controls_expire(struct pi *p, struct agent_out *out);
void pi_controls_refuse(struct pi *p, struct agent_out *out);
int64_t pi_controls_due(const struct pi *p);

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
