/* Our requests: each has a time in which it must be answered, and what follows from its answer. */
#include "providers/codex/private.h"

#include <stdlib.h>

static void initialized(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
	struct agent_out *out);
static void account_read(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
	struct agent_out *out);
static void thread_opened(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
	struct agent_out *out);
static void models_listed(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
	struct agent_out *out);
static void turn_accepted(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
	struct agent_out *out);
static void steered(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
	struct agent_out *out);

/* `answered` NULL: nothing follows. */
static const struct method_row {
	const char *name;
	int64_t within_ms;
	void (*answered)(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
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

void codex_call_free(struct codex_call *call)
{
	codex_keep(&call->key, STR_NONE);
	free(call);
}

size_t codex_call_count(const struct codex *codex)
{
	size_t n = 0;

	for (const struct codex_call *call = codex->calls; call != NULL; call = call->next)
		n++;
	return n;
}

static void notify(const char *method, struct agent_out *out)
{
	agent_out_line(out, str_printf(out->arena, "{\"method\":\"%s\"}", method), false);
}

void codex_call_send(struct codex *codex, enum codex_method method, struct str key, const struct agent_order *order,
	int64_t now, struct agent_out *out)
{
	struct codex_call *call = calloc(1, sizeof(*call));
	struct codex_call **end = &codex->calls;
	struct buf line;
	struct json_writer w;

	if (call == NULL)
		abort();
	call->id = ++codex->next_id;
	call->method = method;
	call->due_at = now + methods[method].within_ms;
	codex_keep(&call->key, key);
	while (*end != NULL)
		end = &(*end)->next;
	*end = call;
	if (method == CALL_TURN)
		codex->turn_call = call->id;
	buf_init(&line, out->arena, SIZE_MAX);
	json_writer_init(&w, &line);
	jw_object_begin(&w);
	jw_kint(&w, "id", call->id);
	jw_ktext(&w, "method", methods[method].name);
	jw_key(&w, "params");
	codex_params_write(codex, method, key, order, &w);
	jw_object_end(&w);
	agent_out_line(out, buf_str(&line), codex_params_have_secret(codex, method));
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

static void initialized(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
	struct agent_out *out)
{
	struct str version = version_in(json_member_str(result, "userAgent"));

	(void)call;
	codex_keep(&codex->program_version, version);
	if (is_too_old(version)) {
		codex_break(codex,
			agent_failure_of(CODE_unsupported_method,
				str_printf(out->arena, "codex %.*s is too old: 0.100.0 or newer is needed", STRF(version))),
			out);
		return;
	}
	notify("initialized", out);
	codex_call_send(codex, CALL_ACCOUNT, STR_NONE, NULL, now, out);
}

static void open_thread(struct codex *codex, int64_t now, struct agent_out *out)
{
	codex_call_send(codex, codex->resume.p != NULL ? CALL_THREAD_RESUME : CALL_THREAD_START, STR_NONE, NULL, now,
		out);
}

static void account_read(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
	struct agent_out *out)
{
	(void)call;
	if (json_is_null(json_object_get(result, "account")) && json_is_true(json_object_get(result, "requiresOpenaiAuth")))
		codex_break(codex,
			agent_failure_of(CODE_auth_required, STR("codex is not logged in: run `codex login` in a terminal")), out);
	else
		open_thread(codex, now, out);
}

static void thread_opened(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
	struct agent_out *out)
{
	struct str id = json_member_str(json_object_get(result, "thread"), "id");
	struct str model = json_member_str(result, "model");

	if (id.p == NULL || id.n == 0 || id.n > LIMIT_CODEX_ID_BYTES) {
		codex_break(codex, agent_failure_of(CODE_protocol_violation, STR("codex opened a thread without an id")), out);
		return;
	}
	codex_keep(&codex->thread, id);
	codex_keep(&codex->effective_model, model.n <= LIMIT_CODEX_NAME_BYTES ? model : STR_NONE);
	codex->is_resumed = call->method == CALL_THREAD_RESUME;
	/* A new conversation has used nothing; of a resumed one the program tells the numbers in a moment. */
	if (!codex->is_resumed)
		codex->total = (struct codex_tokens){0};
	if (codex->instance->model_count > 0)
		codex_opened(codex, NULL, out);
	else
		codex_call_send(codex, CALL_MODELS, STR_NONE, NULL, now, out);
}

static void models_listed(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
	struct agent_out *out)
{
	(void)call;
	(void)now;
	codex_opened(codex, json_object_get(result, "data"), out);
}

static void turn_accepted(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
	struct agent_out *out)
{
	if (call->id == codex->turn_call)
		codex_turn_started(codex, json_member_str(json_object_get(result, "turn"), "id"), now, out);
}

static void steered(struct codex *codex, const struct codex_call *call, const json_t *result, int64_t now,
	struct agent_out *out)
{
	(void)codex;
	(void)result;
	(void)now;
	agent_out_event(out, EVENT_STEERED)->key = str_dup(out->arena, call->key);
}

/* A conversation that is not there any more is begun anew; whatever else stands against it is told. */
static void open_refused(struct codex *codex, const struct codex_call *call, const json_t *error, int64_t now,
	struct agent_out *out)
{
	struct agent_failure failure = codex_call_failure(error);

	if (call->method == CALL_THREAD_RESUME && failure.class == CLASS_VALIDATION)
		codex_call_send(codex, CALL_THREAD_START, STR_NONE, NULL, now, out);
	else
		codex_break(codex, failure, out);
}

static void refused(struct codex *codex, const struct codex_call *call, const json_t *error, int64_t now,
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
		codex_refuse(call->key, codex_call_failure(error), out);
		if (codex->phase == CODEX_CLOSING)
			codex_close_stdin(codex, now, out);
		break;
	case CALL_STEER:
		codex_refuse(call->key, codex_call_failure(error), out);
		break;
	case CALL_INTERRUPT: /* no turn to interrupt: it has ended, and says so itself */
	case CALL_CLEAN:
	case CODEX_METHODS:
		break;
	}
}

void codex_call_answered(struct codex *codex, int64_t id, const json_t *result, const json_t *error, int64_t now,
	struct agent_out *out)
{
	struct codex_call **at = &codex->calls;
	struct codex_call *call;

	while (*at != NULL && (*at)->id != id)
		at = &(*at)->next;
	call = *at;
	if (call == NULL)
		return;
	*at = call->next;
	if (error != NULL)
		refused(codex, call, error, now, out);
	else if (methods[call->method].answered != NULL)
		methods[call->method].answered(codex, call, result, now, out);
	codex_call_free(call);
}
