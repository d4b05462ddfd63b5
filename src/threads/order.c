/* From effects to orders: what waits for a thread's agent, given when the agent can take it. */
#include "threads/loop.h"

#include "base/limits.h"

#include <string.h>

/* From 5 on they are not for the agent (background.c). */
SQL(SQL_EFFECTS, "SELECT n, run_n, type, payload FROM effect WHERE thread_n = $1 AND type < 5 ORDER BY n");
SQL(SQL_BASELINE, "SELECT n FROM effect WHERE run_n = $1 AND type = 7");

struct waiting {
	int64_t n, run_n;
	enum effect_type type;
	struct str payload;
};

struct giving {
	struct session *session;
	struct batch *batch;
	struct snapshot *s;
	struct thread_row thread;
};

static int64_t payload_number(struct str payload, const char *key)
{
	struct json_error error;
	json_auto_t *value = json_read(payload, &error);

	return json_integer_value(json_object_get(value, key));
}

static void give(struct giving *g, const struct agent_order *order)
{
	struct agent *agent = g->session->agent;

	agent->driver->order(agent, order, loop_now(g->session->threads), &g->batch->out);
}

/* ---- each kind: 1 it is in the batch, 0 not now, -1 ---- */

/* The session was opened for another program, model, mode or place than the thread has now. */
static bool is_outdated(const struct giving *g, struct str cwd)
{
	const struct provider_session_row *row = &g->session->row;

	return !str_eq(row->instance_id, g->thread.instance_id) || row->runtime_mode != g->thread.runtime_mode
		|| row->interaction_mode != g->thread.interaction_mode || !str_eq(row->cwd, cwd)
		|| (g->thread.model.p != NULL && !str_eq(row->model, g->thread.model));
}

static int start_turn(struct giving *g, const struct waiting *w, struct failure *f)
{
	struct agent_order order = {.kind = ORDER_TURN};
	struct thread_run_row run;
	struct message_row message;
	struct str cwd;
	int64_t n;
	int rc;

	if (!g->session->is_opened || g->session->has_turn || g->session->is_ending)
		return 0;
	/* What was there before is captured while the agent opens, so that a large repository delays its start by nothing;
	 * only its first prompt waits for that. */
	rc = query_int(g->s, &n, f, SQL_BASELINE, "i", w->run_n);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (thread_cwd(g->s, &g->thread, &cwd, f) != 0)
		return -1;
	if (is_outdated(g, cwd)) {
		session_end(g->session);
		return 0;
	}
	if (NEED(g->s, thread_run, w->run_n, &run, f) != 0 || NEED(g->s, message, run.message_n, &message, f) != 0)
		return -1;
	order.key = message.id;
	if (handoff_text(g->s, &g->thread, &run, message.text, &order.text, f) != 0)
		return -1;
	order.model = run.model;
	order.runtime = (enum runtime_mode)g->thread.runtime_mode;
	order.interaction = (enum interaction_mode)g->thread.interaction_mode;
	give(g, &order);
	g->batch->in.begins_attempt_n = run.attempt_n;
	return 1;
}

/* The turn ended before the message could go into it: it waits for the next one. */
static int refuse_steer(struct giving *g, struct str message_id)
{
	struct agent_event *event = agent_out_event(&g->batch->out, EVENT_ORDER_REFUSED);

	event->key = message_id;
	return 1;
}

static int steer_turn(struct giving *g, const struct waiting *w, struct failure *f)
{
	struct agent_order order = {.kind = ORDER_STEER};
	struct message_row message;

	if (NEED(g->s, message, payload_number(w->payload, "messageN"), &message, f) != 0)
		return -1;
	if (!g->session->has_turn)
		return refuse_steer(g, message.id);
	order.key = message.id;
	order.text = message.text;
	give(g, &order);
	return 1;
}

static int interrupt_turn(struct giving *g)
{
	struct agent_order order = {.kind = ORDER_INTERRUPT};

	if (!g->session->has_turn)
		return 1;
	give(g, &order);
	g->session->interrupt_due = loop_now(g->session->threads) + g->session->threads->bounds.interrupt;
	loop_due(g->session->threads, g->session->interrupt_due);
	return 1;
}

static int answer(struct giving *g, const struct waiting *w, struct failure *f)
{
	struct agent_order order = {.kind = ORDER_ANSWER};
	struct runtime_request_row request;
	struct json_error error;
	json_auto_t *answers = NULL;

	if (NEED(g->s, runtime_request, payload_number(w->payload, "requestN"), &request, f) != 0)
		return -1;
	if (!g->session->has_turn || request.session_n != g->session->n)
		return 1;
	if (request.answers.p != NULL)
		answers = json_read(request.answers, &error);
	order.request = request.native_key;
	order.decision = request.decision == 0 ? DECISION_CANCEL : (enum agent_decision)(request.decision - 1);
	order.answers = answers;
	give(g, &order);
	return 1;
}

static int close_session(struct giving *g)
{
	struct agent_order order = {.kind = ORDER_CLOSE};

	if (g->session->is_opened)
		give(g, &order);
	g->batch->out.kills = true;
	return 1;
}

static int try_one(struct giving *g, const struct waiting *w, struct failure *f)
{
	switch (w->type) {
	case EFFECT_START_TURN:
		return start_turn(g, w, f);
	case EFFECT_STEER_TURN:
		return steer_turn(g, w, f);
	case EFFECT_INTERRUPT_TURN:
		return interrupt_turn(g);
	case EFFECT_ANSWER_REQUEST:
		return answer(g, w, f);
	case EFFECT_CLOSE_SESSION:
		return close_session(g);
	case EFFECT_PREPARE:
	case EFFECT_SETUP:
	case EFFECT_BASELINE:
	case EFFECT_CAPTURE:
	case EFFECT_FORGET:
	case EFFECT_COUNT:
		break;
	}
	return 0;
}

static int next_effect(struct query *q, struct waiting *out, struct failure *f)
{
	int rc = query_next(q, f);

	if (rc == 1)
		*out = (struct waiting){col_int(q, 0), col_int(q, 1), (enum effect_type)col_int(q, 2), col_str(q, 3)};
	return rc;
}

/* The first that can be given; a start that must wait holds up nothing but later starts. */
static int try_all(struct giving *g, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	struct waiting waiting;
	int rc;

	if (query(g->s, &q, f, SQL_EFFECTS, "i", g->session->thread_n) != 0)
		return -1;
	while ((rc = next_effect(&q, &waiting, f)) == 1) {
		rc = try_one(g, &waiting, f);
		if (rc != 0) {
			g->batch->in.effect_n = waiting.n;
			return rc;
		}
	}
	return rc;
}

int order_take(struct session *session, struct batch *batch, struct failure *f)
{
	struct snapshot s;
	struct giving giving = {.session = session, .batch = batch, .s = &s};
	int rc;

	if (snapshot_begin(session->threads->store, batch->arena, &s, f) != 0)
		return -1;
	rc = NEED(&s, thread, session->thread_n, &giving.thread, f);
	if (rc == 0)
		rc = try_all(&giving, f);
	snapshot_end(&s);
	return rc;
}
