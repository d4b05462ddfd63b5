/* providers/opencode/opencode.h - what the files of this driver share; nobody else includes it.
 *
 * OpenCode's own server, one for each session, behind the bridge of src/bridge: requests of ours are lines with an id, its
 * answers and the events of its stream are lines back. The permissions of a session are rules that we give it; the last one
 * that matches wins.
 *
 * 1. What changes is in opencode_fields, and nothing else is kept between two inputs: save and load are exact.
 * 2. A turn ends once: opencode_end_turn() is the only place that says EVENT_TURN_ENDED, and it closes what is open.
 * 3. A turn is over when the session is idle and none of its messages is open. After an error the server says idle twice, and
 *    a message that comes between is kept but never answered: the end is told after the second one, or half a second. */
#ifndef DAIS_PROVIDERS_OPENCODE_OPENCODE_H
#define DAIS_PROVIDERS_OPENCODE_OPENCODE_H

#include "providers/failure_code.h"
#include "providers/provider.h"
#include "providers/state.h"

enum phase { PHASE_NEW, PHASE_OPENING, PHASE_READY, PHASE_DEAD };

struct opencode {
	struct agent agent;
	const struct provider_instance *instance;
	int64_t now; /* of the input that is handled */

	/* What is saved: opencode_fields names each. */
	int64_t phase;
	struct str native; /* id of the conversation */
	struct str resume; /* asked for */
	struct str model; /* provider/id; empty: the program's own */
	struct str variant;
	struct str version;
	struct str url; /* of the MCP endpoint; empty: none */
	struct str instructions; /* told with each message */
	struct str problem; /* why the tools of dais are missing, until it is told */
	int64_t runtime;
	int64_t interaction;
	bool is_confined;
	bool is_resumed;
	bool is_streaming; /* the bridge said that it is ready */
	int64_t requests; /* number of the last id */
	int64_t notices; /* made up here: number of the next key */
	int64_t bad_lines; /* in a row */
	int64_t open_by;
	int64_t start_by;
	int64_t settle_by;
	int64_t interrupt_by;
	int64_t close_by;
	bool closes; /* ORDER_CLOSE came */
	bool is_shut; /* stdin is closed */
	bool in_turn;
	bool is_started;
	bool is_unasked; /* the program began it */
	struct str title; /* as told last */
	bool is_interrupted;
	bool has_error;
	struct str error; /* name of the error of this turn */
	struct str reason; /* its message */
	int64_t status; /* of the provider's answer, when it has one */
	struct str retry_key;
	int64_t input;
	int64_t cached;
	int64_t output;
	int64_t thought;
	int64_t cost_nano; /* 1e-9 USD */
	bool has_usage;
	int64_t context_used;
	json_t *messages; /* open ones of the model: id → true */
	json_t *parts; /* that stream: id → {"thought"?, "told"} */
	json_t *items; /* open tool calls: call id → kind */
	json_t *asks; /* open questions: id → {"kind", "questions"?} */
	json_t *requested; /* our requests: id → {"kind", "order"?} */
};

extern const struct driver driver_opencode;

/* ---- state.c ---- */
void opencode_state_init(struct opencode *o);
void opencode_state_finish(struct opencode *o);
void opencode_save(const struct agent *agent, struct json_writer *w);
int opencode_load(struct agent *agent, const json_t *state, struct failure *f);
void opencode_set(struct str *field, struct str value);
#define SET(o, field, value) opencode_set(&(o)->field, (value))
#define CLEAR(o, field) state_text(&(o)->field, STR_NONE)
struct str opencode_id(struct arena *arena, struct str id);

/* ---- launch.c ---- */
int opencode_check(const struct provider_instance *instance, struct failure *f);
int opencode_launch(const struct provider_instance *instance, const struct agent_place *place, struct arena *arena,
	struct agent_launch *out, struct failure *f);

/* ---- request.c: what we ask of the server ---- */
struct request {
	struct agent_out *out;
	struct buf text;
	struct json_writer w;
	json_t *row;
};
/* A request without a body, or one whose body is written into r->w between begin and end. */
bool opencode_request(struct opencode *o, const char *kind, const char *method, struct str path, struct agent_out *out);
bool opencode_request_begin(struct opencode *o, struct request *r, const char *kind, const char *method, struct str path,
	struct agent_out *out);
void opencode_request_end(struct request *r, bool has_secret);
void opencode_write_rules(const struct opencode *o, enum interaction_mode interaction, struct json_writer *w);

/* ---- open.c ---- */
void opencode_ready(struct opencode *o, struct agent_out *out);
/* An answer of the handshake. */
void opencode_opening(struct opencode *o, struct str kind, int64_t status, const json_t *body, struct agent_out *out);
void opencode_open_failed(struct opencode *o, enum provider_failure_code code, struct str message, struct agent_out *out);

/* ---- event.c ---- */
void opencode_event(struct opencode *o, const json_t *event, struct agent_out *out);

/* ---- part.c: what messages are made of ---- */
void opencode_part(struct opencode *o, const json_t *part, struct agent_out *out);
void opencode_part_delta(struct opencode *o, const json_t *properties, struct agent_out *out);
void opencode_todo(struct opencode *o, const json_t *properties, struct agent_out *out);
void opencode_parts_close(struct opencode *o, enum agent_status status, struct agent_out *out);
struct agent_item *opencode_item(struct agent_out *out, enum agent_item_kind kind, struct str key, enum agent_status status);
void opencode_notice(struct opencode *o, struct agent_out *out, const char *severity, struct str message);

/* ---- ask.c ---- */
void opencode_permission(struct opencode *o, const json_t *properties, struct agent_out *out);
void opencode_question(struct opencode *o, const json_t *properties, struct agent_out *out);
void opencode_asked_ended(struct opencode *o, struct str id, enum agent_status status, struct agent_out *out);
void opencode_answer(struct opencode *o, const struct agent_order *order, struct agent_out *out);
void opencode_asks_close(struct opencode *o, struct agent_out *out);

/* ---- turn.c ---- */
void opencode_turn_start(struct opencode *o, struct agent_out *out);
void opencode_message(struct opencode *o, const json_t *info, struct agent_out *out);
void opencode_error(struct opencode *o, const json_t *error);
void opencode_idle(struct opencode *o, struct agent_out *out);
void opencode_retry(struct opencode *o, const json_t *status, struct agent_out *out);
void opencode_settle(struct opencode *o, struct agent_out *out);
struct agent_event *opencode_end_turn(struct opencode *o, enum agent_status status, const struct agent_failure *failure,
	struct agent_out *out);
struct agent_failure opencode_failure(struct agent_out *out, enum provider_failure_code code, struct str message);
void opencode_refuse(struct agent_out *out, struct str key, enum provider_failure_code code, struct str message);
void opencode_broken(struct opencode *o, struct agent_out *out, struct str message);

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
