/* Our requests: each has a time in which it must be answered, and what follows from its answer. */
#include "providers/codex/private.h"

static void initialized(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
	struct agent_out *out);
static void account_read(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
	struct agent_out *out);
static void thread_opened(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
	struct agent_out *out);
static void models_listed(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
	struct agent_out *out);
static void turn_accepted(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
	struct agent_out *out);
static void steered(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
	struct agent_out *out);

/* `answered` NULL: nothing follows. */
static const struct method_row {
	const char *name;
	int64_t within_ms;
	void (*answered)(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
		struct agent_out *out);
} methods[CODEX_METHODS] = {
	[CALL_INITIALIZE] = {"initialize", LIMIT_CODEX_INITIALIZE_MS, initialized},
	[CALL_ACCOUNT] = {"account/read", LIMIT_CODEX_ANSWER_MS, account_read},
	[CALL_THREAD_START] = {"thread/start", LIMIT_CODEX_OPEN_MS, thread_opened},
	[CALL_THREAD_RESUME] = {"thread/resume", LIMIT_CODEX_OPEN_MS, thread_opened},
	[CALL_MODELS] = {"model/list", LIMIT_CODEX_ANSWER_MS, models_listed},
	[CALL_TURN] = {"turn/start", LIMIT_CODEX_ANSWER_MS, turn_accepted},
	[CALL_STEER] = {"turn/steer", LIMIT_CODEX_ANSWER_MS, steered},
	[CALL_INTERRUPT] = {"turn/interrupt", LIMIT_CODEX_ANSWER_MS, NULL},
	[CALL_CLEAN] = {"thread/backgroundTerminals/clean", LIMIT_CODEX_ANSWER_MS, NULL},
};

void codex_call_send(struct codex *codex, enum codex_method method, struct str key, const struct agent_order *order,
	int64_t now, struct agent_out *out)
{
	struct rpc_line line;
	struct json_writer *w;

	if (rpc_is_full(&codex->rpc)) {
		codex_break(codex, agent_failure_of(CODE_protocol_violation, STR("codex answers no requests")), out);
		return;
	}
	w = rpc_call(&codex->rpc, &line, out, methods[method].name, method, now + methods[method].within_ms);
	rpc_note(&codex->rpc, key);
	if (method == CALL_TURN)
		codex->turn_call = codex->rpc.last_id;
	codex_params_write(codex, method, key, order, w);
	line.has_secret = codex_params_have_secret(codex, method);
	rpc_end(&line);
}

/* ---- answers ---- */

/* The version is what follows the first slash of "dais/0.171.0 (…)". */
static struct str version_in(struct str user_agent)
{
	const char *slash = user_agent.p == NULL ? NULL : memchr(user_agent.p, '/', user_agent.n);
	struct str version;
	size_t n = 0;

	if (slash == NULL)
		return STR_NONE;
	version = (struct str){slash + 1, user_agent.n - (size_t)(slash + 1 - user_agent.p)};
	while (n < version.n && n < LIMIT_CODEX_NAME_BYTES && version.p[n] > ' ' && version.p[n] < 0x7f)
		n++;
	return n == 0 ? STR_NONE : (struct str){version.p, n};
}

/* The first one with the requests and answers that this driver knows is 0.100.0. */
static bool is_too_old(struct str version)
{
	struct str minor;
	const char *dot;
	int64_t number;

	if (!str_starts(version, STR("0.")))
		return false;
	minor = (struct str){version.p + 2, version.n - 2};
	dot = memchr(minor.p, '.', minor.n);
	if (dot != NULL)
		minor.n = (size_t)(dot - minor.p);
	return str_to_int(minor, &number) && number < 100;
}

static void initialized(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
	struct agent_out *out)
{
	struct str version = version_in(json_member_str(result, "userAgent"));
	struct rpc_line line;

	(void)call;
	state_text(&codex->program_version, version);
	if (is_too_old(version)) {
		codex_break(codex,
			agent_failure_of(CODE_unsupported_method,
				str_printf(out->arena, "codex %.*s is too old: 0.100.0 or newer is needed", STRF(version))),
			out);
		return;
	}
	(void)rpc_notify(&line, out, "initialized");
	rpc_end(&line);
	codex_call_send(codex, CALL_ACCOUNT, STR_NONE, NULL, now, out);
}

static void open_thread(struct codex *codex, int64_t now, struct agent_out *out)
{
	codex_call_send(codex, codex->resume.p != NULL ? CALL_THREAD_RESUME : CALL_THREAD_START, STR_NONE, NULL, now,
		out);
}

static void account_read(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
	struct agent_out *out)
{
	(void)call;
	if (json_is_null(json_object_get(result, "account")) && json_is_true(json_object_get(result, "requiresOpenaiAuth")))
		codex_break(codex,
			agent_failure_of(CODE_auth_required, STR("codex is not logged in: run `codex login` in a terminal")), out);
	else
		open_thread(codex, now, out);
}

static void thread_opened(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
	struct agent_out *out)
{
	struct str id = json_member_str(json_object_get(result, "thread"), "id");
	struct str model = json_member_str(result, "model");

	if (id.p == NULL || id.n == 0 || id.n > LIMIT_CODEX_ID_BYTES) {
		codex_break(codex, agent_failure_of(CODE_protocol_violation, STR("codex opened a thread without an id")), out);
		return;
	}
	state_text(&codex->thread, id);
	state_text(&codex->effective_model, model.n <= LIMIT_CODEX_NAME_BYTES ? model : STR_NONE);
	codex->is_resumed = call->method == CALL_THREAD_RESUME;
	/* A new conversation has used nothing; of a resumed one the program tells the numbers in a moment. */
	if (!codex->is_resumed)
		codex->total = (struct codex_tokens){0};
	if (codex->instance->model_count > 0)
		codex_opened(codex, NULL, out);
	else
		codex_call_send(codex, CALL_MODELS, STR_NONE, NULL, now, out);
}

static void models_listed(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
	struct agent_out *out)
{
	(void)call;
	(void)now;
	codex_opened(codex, json_object_get(result, "data"), out);
}

static void turn_accepted(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
	struct agent_out *out)
{
	if (call->id == codex->turn_call)
		codex_turn_started(codex, json_member_str(json_object_get(result, "turn"), "id"), now, out);
}

static void steered(struct codex *codex, const struct rpc_call *call, const json_t *result, int64_t now,
	struct agent_out *out)
{
	(void)codex;
	(void)result;
	(void)now;
	agent_out_event(out, EVENT_STEERED)->key = call->note;
}

/* A conversation that is not there any more is begun anew; whatever else stands against it is told. */
static void open_refused(struct codex *codex, const struct rpc_call *call, const json_t *error, int64_t now,
	struct agent_out *out)
{
	struct agent_failure failure = codex_call_failure(error);

	if (call->method == CALL_THREAD_RESUME && failure.class == CLASS_VALIDATION)
		codex_call_send(codex, CALL_THREAD_START, STR_NONE, NULL, now, out);
	else
		codex_break(codex, failure, out);
}

static void refused(struct codex *codex, const struct rpc_call *call, const json_t *error, int64_t now,
	struct agent_out *out)
{
	switch (call->method) {
	case CALL_INITIALIZE:
		codex_break(codex, codex_call_failure(error), out);
		break;
	case CALL_ACCOUNT: /* not a reason to stop: a turn will tell */
		open_thread(codex, now, out);
		break;
	case CALL_THREAD_START:
	case CALL_THREAD_RESUME:
		open_refused(codex, call, error, now, out);
		break;
	case CALL_MODELS:
		codex_opened(codex, NULL, out);
		break;
	case CALL_TURN:
		if (call->id != codex->turn_call || codex->turn_phase != TURN_SENT)
			break;
		codex->turn_phase = TURN_NONE;
		codex_refuse(call->note, codex_call_failure(error), out);
		if (codex->phase == CODEX_CLOSING)
			codex_close_stdin(codex, now, out);
		break;
	case CALL_STEER:
		codex_refuse(call->note, codex_call_failure(error), out);
		break;
	case CALL_INTERRUPT: /* no turn to interrupt: it has ended, and says so itself */
	case CALL_CLEAN:
	case CODEX_METHODS:
		break;
	}
}

void codex_call_answered(struct codex *codex, const struct rpc_message *answer, int64_t now, struct agent_out *out)
{
	const struct method_row *row = &methods[answer->call.method];

	if (answer->kind == RPC_ERROR)
		refused(codex, &answer->call, answer->error, now, out);
	else if (row->answered != NULL)
		row->answered(codex, &answer->call, answer->result, now, out);
}
