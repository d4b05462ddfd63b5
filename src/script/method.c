/* What the client asks for, and what answers at once. */
#include "script/private.h"

#include <unistd.h>
#include <time.h>

struct request {
	struct script_agent *agent;
	struct arena *arena;
	const json_t *id; /* NULL: a notification */
	const json_t *params;
};

static void refuse(const struct request *r, int64_t code, const char *message)
{
	if (r->id != NULL)
		script_refuse_text(r->agent, r->id, code, message);
}

static void answer(const struct request *r, struct str result)
{
	if (r->id != NULL)
		script_answer(r->agent, r->id, result);
}

static void answer_nothing(const struct request *r)
{
	answer(r, STR("{}"));
}

static void begin_result(const struct request *r, struct buf *out, struct json_writer *w)
{
	buf_init(out, r->arena, SIZE_MAX);
	json_writer_init(w, out);
	jw_object_begin(w);
}

static void end_result(const struct request *r, struct buf *out, struct json_writer *w)
{
	jw_object_end(w);
	answer(r, buf_str(out));
}

static bool has(const struct script_agent *agent, enum without what)
{
	return (agent->scenario->without & (unsigned)what) == 0;
}

struct str blocks_text(struct arena *arena, const json_t *blocks)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t i = 0; i < json_array_size(blocks); i++) {
		const json_t *block = json_array_get(blocks, i);
		struct str text = json_member_str(block, "text");

		if (text.p == NULL)
			text = json_member_str(block, "uri"); /* a link: what it points to */
		if (text.p == NULL)
			continue;
		if (out.n > 0)
			buf_add_char(&out, '\n');
		buf_add_str(&out, text);
	}
	return buf_str(&out);
}

/* ---- before sessions ---- */

static void write_auth_methods(const struct script_agent *agent, struct json_writer *w)
{
	jw_karray(w, "authMethods");
	if (agent->scenario->needs_auth)
		jw_raw(w,
			STR("{\"id\":\"script-login\",\"name\":\"Log in\",\"description\":\"Any call of authenticate will do.\"}"));
	jw_array_end(w);
}

static void write_steering(const struct script_agent *agent, struct json_writer *w)
{
	if (has(agent, WITHOUT_STEERING))
		jw_kraw(w, "_meta", STR("{\"steering\":{\"supported\":true}}"));
}

static void write_capabilities(const struct script_agent *agent, struct json_writer *w)
{
	jw_kobject(w, "agentCapabilities");
	jw_kbool(w, "loadSession", has(agent, WITHOUT_LOAD));
	jw_kraw(w, "promptCapabilities", STR("{\"image\":false,\"audio\":false,\"embeddedContext\":false}"));
	jw_kobject(w, "mcpCapabilities");
	jw_kbool(w, "http", has(agent, WITHOUT_MCP));
	jw_kbool(w, "sse", false);
	jw_object_end(w);
	jw_kobject(w, "sessionCapabilities");
	if (has(agent, WITHOUT_RESUME))
		jw_kraw(w, "resume", STR("{}"));
	if (has(agent, WITHOUT_CLOSE))
		jw_kraw(w, "close", STR("{}"));
	jw_object_end(w);
	jw_object_end(w);
}

static void initialize(const struct request *r)
{
	struct script_agent *agent = r->agent;
	const json_t *capabilities = json_object_get(r->params, "clientCapabilities");
	int64_t ms = agent->scenario->init_delay_ms;
	const struct timespec delay = {ms / 1000, ms % 1000 * 1000000};
	struct json_writer w;
	struct buf out;

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &delay, NULL);
	(void)pthread_mutex_lock(&agent->lock);
	agent->is_initialized = true;
	agent->has_forms = json_is_object(json_object_get(json_object_get(capabilities, "elicitation"), "form"));
	(void)pthread_mutex_unlock(&agent->lock);
	begin_result(r, &out, &w);
	jw_kint(&w, "protocolVersion", 1);
	write_capabilities(agent, &w);
	write_auth_methods(agent, &w);
	jw_kraw(&w, "agentInfo",
		STR("{\"name\":\"dais-script\",\"title\":\"Scripted agent\",\"version\":\"" DAIS_VERSION "\"}"));
	write_steering(agent, &w);
	end_result(r, &out, &w);
}

static void authenticate(const struct request *r)
{
	if (!r->agent->scenario->needs_auth || !str_eq(json_member_str(r->params, "methodId"), STR("script-login"))) {
		refuse(r, RPC_INVALID_PARAMS, "There is no such method of authentication");
		return;
	}
	r->agent->is_signed_in = true; /* read by this thread only */
	answer_nothing(r);
}

/* ---- sessions ---- */

static void write_choice(struct json_writer *w, const char *id_key, struct str id, struct str name)
{
	jw_object_begin(w);
	jw_kstr(w, id_key, id);
	jw_kstr(w, "name", name);
	jw_object_end(w);
}

static void write_models(const struct session *session, struct json_writer *w, const char *list, const char *id_key)
{
	const struct scenario *scenario = session->agent->scenario;

	jw_karray(w, list);
	for (size_t i = 0; i < scenario->model_count; i++)
		write_choice(w, id_key, scenario->models[i], scenario->models[i]);
	jw_array_end(w);
}

static void write_modes(struct json_writer *w, const char *list, const char *id_key)
{
	jw_karray(w, list);
	for (size_t i = 0; script_mode(i) != NULL; i++)
		write_choice(w, id_key, str_of(script_mode(i)), str_of(script_mode_name(i)));
	jw_array_end(w);
}

static void write_option(struct json_writer *w, const char *id, const char *name, struct str current)
{
	jw_object_begin(w);
	jw_ktext(w, "id", id);
	jw_ktext(w, "name", name);
	jw_ktext(w, "category", id);
	jw_ktext(w, "type", "select");
	jw_kstr(w, "currentValue", current);
}

static void write_options(const struct session *session, struct json_writer *w)
{
	jw_karray(w, "configOptions");
	if (has(session->agent, WITHOUT_MODES)) {
		write_option(w, "mode", "Mode", str_of(script_mode(session->mode)));
		write_modes(w, "options", "value");
		jw_object_end(w);
	}
	if (has(session->agent, WITHOUT_MODELS)) {
		write_option(w, "model", "Model", session->agent->scenario->models[session->model]);
		write_models(session, w, "options", "value");
		jw_object_end(w);
	}
	jw_array_end(w);
}

/* All three mechanisms that clients know: modes, models, options. */
static void write_settings(const struct session *session, struct json_writer *w)
{
	if (has(session->agent, WITHOUT_MODES)) {
		jw_kobject(w, "modes");
		jw_ktext(w, "currentModeId", script_mode(session->mode));
		write_modes(w, "availableModes", "id");
		jw_object_end(w);
	}
	if (has(session->agent, WITHOUT_MODELS)) {
		jw_kobject(w, "models");
		jw_kstr(w, "currentModelId", session->agent->scenario->models[session->model]);
		write_models(session, w, "availableModels", "modelId");
		jw_object_end(w);
	}
	write_options(session, w);
}

/* True when the client may have a session there; otherwise it was told why not. */
static bool may_begin(const struct request *r)
{
	if (r->agent->scenario->needs_auth && !r->agent->is_signed_in) {
		refuse(r, RPC_AUTH_REQUIRED, "Authentication required");
		return false;
	}
	if (str_starts(json_member_str(r->params, "cwd"), STR("/")) &&
		json_is_array(json_object_get(r->params, "mcpServers")))
		return true;
	refuse(r, RPC_INVALID_PARAMS, "cwd (an absolute path) and mcpServers (an array) are needed");
	return false;
}

static void script_session_new(const struct request *r)
{
	struct session *session;
	struct json_writer w;
	struct failure f;
	struct buf out;

	if (!may_begin(r))
		return;
	failure_init(&f, r->arena);
	session = script_session_create(r->agent);
	script_session_place(session, r->params);
	if (script_session_save(session, &f) != 0) {
		script_session_destroy(session);
		refuse(r, RPC_INTERNAL, str_z(r->arena, f.message));
		return;
	}
	begin_result(r, &out, &w);
	jw_ktext(&w, "sessionId", session->id);
	write_settings(session, &w);
	(void)pthread_mutex_lock(&r->agent->lock);
	script_session_start(session);
	(void)pthread_mutex_unlock(&r->agent->lock);
	end_result(r, &out, &w);
}

/* The living session, or the one from the file; NULL: the client was told. Lock held. */
static struct session *find_or_restore(const struct request *r)
{
	struct str id = json_member_str(r->params, "sessionId");
	struct session *session = script_session_find(r->agent, id);
	struct failure f;
	int rc;

	if (session != NULL)
		return session;
	failure_init(&f, r->arena);
	session = script_session_blank(r->agent);
	rc = script_session_restore(session, id, &f);
	if (rc == 0) {
		script_session_start(session);
		return session;
	}
	script_session_destroy(session);
	if (rc > 0)
		refuse(r, RPC_NOT_FOUND, "Session not found");
	else
		refuse(r, RPC_INTERNAL, str_z(r->arena, f.message));
	return NULL;
}

static void repeat_history(struct session *session)
{
	struct str rest = buf_str(&session->history);
	const char *end;

	while (rest.n > 0 && (end = memchr(rest.p, '\n', rest.n)) != NULL) {
		size_t n = (size_t)(end - rest.p);

		script_session_update(session, (struct str){rest.p, n});
		rest = (struct str){end + 1, rest.n - n - 1};
	}
}

static void open_again(const struct request *r, bool is_load)
{
	struct session *session;
	struct json_writer w;
	struct buf out;

	if (!may_begin(r))
		return;
	(void)pthread_mutex_lock(&r->agent->lock);
	session = find_or_restore(r);
	if (session == NULL) {
		(void)pthread_mutex_unlock(&r->agent->lock);
		return;
	}
	script_session_place(session, r->params);
	if (is_load)
		repeat_history(session);
	begin_result(r, &out, &w);
	write_settings(session, &w);
	(void)pthread_mutex_unlock(&r->agent->lock);
	end_result(r, &out, &w);
}

static void script_session_load(const struct request *r)
{
	open_again(r, true);
}

static void script_session_resume(const struct request *r)
{
	open_again(r, false);
}

/* ---- in a session; all with the lock held ---- */

static void close_session(const struct request *r, struct session *session)
{
	script_session_close(session);
	answer_nothing(r);
}

static void prompt(const struct request *r, struct session *session)
{
	const json_t *blocks = json_object_get(r->params, "prompt");

	if (!json_is_array(blocks))
		refuse(r, RPC_INVALID_PARAMS, "prompt must be an array of content blocks");
	else
		script_session_queue(session, r->id, blocks_text(r->arena, blocks));
}

static void cancel(const struct request *r, struct session *session)
{
	if (has(r->agent, WITHOUT_CANCEL))
		script_session_cancel(session, false);
	if (r->id != NULL)
		refuse(r, RPC_INVALID_REQUEST, "session/cancel is a notification");
}

static void steer(const struct request *r, struct session *session)
{
	const json_t *blocks = json_object_get(r->params, "prompt");
	struct str text;

	if (!json_is_array(blocks)) {
		refuse(r, RPC_INVALID_PARAMS, "prompt must be an array of content blocks");
		return;
	}
	text = blocks_text(r->arena, blocks);
	if (session->prompts != NULL) {
		script_session_steer(session, text);
		answer(r, STR("{\"outcome\":\"injected\"}"));
		return;
	}
	script_session_queue(session, NULL, text);
	answer(r, STR("{\"outcome\":\"startedNewTurn\"}"));
}

static bool choose_model(struct session *session, struct str name)
{
	for (size_t i = 0; i < session->agent->scenario->model_count; i++)
		if (str_eq(name, session->agent->scenario->models[i])) {
			session->model = i;
			return true;
		}
	return false;
}

static bool choose_mode(struct session *session, struct str name)
{
	for (size_t i = 0; script_mode(i) != NULL; i++)
		if (str_eq(name, str_of(script_mode(i)))) {
			session->mode = i;
			return true;
		}
	return false;
}

/* Keep what was chosen; false: the client was told that it could not be. */
static bool keep(const struct request *r, struct session *session, bool is_chosen)
{
	struct failure f;

	failure_init(&f, r->arena);
	if (!is_chosen)
		refuse(r, RPC_INVALID_PARAMS, "There is no such value");
	else if (script_session_save(session, &f) != 0)
		refuse(r, RPC_INTERNAL, str_z(r->arena, f.message));
	else
		return true;
	return false;
}

static void set_mode(const struct request *r, struct session *session)
{
	if (keep(r, session, choose_mode(session, json_member_str(r->params, "modeId"))))
		answer_nothing(r);
}

static void set_model(const struct request *r, struct session *session)
{
	if (keep(r, session, choose_model(session, json_member_str(r->params, "modelId"))))
		answer_nothing(r);
}

static void set_option(const struct request *r, struct session *session)
{
	struct str id = json_member_str(r->params, "configId"), value = json_member_str(r->params, "value");
	bool is_model = str_eq(id, STR("model")) && has(r->agent, WITHOUT_MODELS);
	bool is_mode = str_eq(id, STR("mode")) && has(r->agent, WITHOUT_MODES);
	struct json_writer w;
	struct buf out;

	if (!keep(r, session, (is_model && choose_model(session, value)) || (is_mode && choose_mode(session, value))))
		return;
	begin_result(r, &out, &w);
	write_options(session, &w);
	end_result(r, &out, &w);
}

/* ---- the rest ---- */

static struct prompt *find_prompt(struct script_agent *agent, const json_t *id, struct session **out)
{
	for (struct session *session = agent->sessions; session != NULL; session = session->next)
		for (struct prompt *p = session->prompts; p != NULL; p = p->next)
			if (id != NULL && json_equal(p->id, id)) {
				*out = session;
				return p;
			}
	return NULL;
}

static void withdraw(const struct request *r)
{
	struct session *session;
	struct prompt *found;

	(void)pthread_mutex_lock(&r->agent->lock);
	found = find_prompt(r->agent, json_object_get(r->params, "requestId"), &session);
	if (found != NULL) {
		found->is_withdrawn = true;
		if (found == session->prompts)
			script_session_stir(session);
	}
	(void)pthread_mutex_unlock(&r->agent->lock);
}

static void take_answer(struct script_agent *agent, const json_t *message)
{
	const json_t *id = json_object_get(message, "id");

	(void)pthread_mutex_lock(&agent->lock);
	for (struct session *session = agent->sessions; session != NULL; session = session->next)
		if (session->asked != NULL && session->asked->answer == NULL && json_is_integer(id) &&
			json_integer_value(id) == session->asked->id) {
			/* a copy: what two threads count the references of belongs to neither */
			session->asked->answer = json_deep_copy(message);
			(void)pthread_cond_broadcast(&session->changed);
		}
	(void)pthread_mutex_unlock(&agent->lock);
}

static const struct {
	const char *name;
	unsigned without; /* hidden by one of these: there is no such method */
	void (*run)(const struct request *r);
	void (*run_in)(const struct request *r, struct session *session); /* lock held */
} methods[] = {
	{"initialize", 0, initialize, NULL},
	{"authenticate", 0, authenticate, NULL},
	{"session/new", 0, script_session_new, NULL},
	{"session/load", WITHOUT_LOAD, script_session_load, NULL},
	{"session/resume", WITHOUT_RESUME, script_session_resume, NULL},
	{"session/close", WITHOUT_CLOSE, NULL, close_session},
	{"session/prompt", 0, NULL, prompt},
	{"session/cancel", 0, NULL, cancel},
	{"session/set_mode", WITHOUT_MODES, NULL, set_mode},
	{"session/set_model", WITHOUT_MODELS, NULL, set_model},
	{"session/set_config_option", 0, NULL, set_option},
	{"_session/steering", WITHOUT_STEERING, NULL, steer},
	{"$/cancel_request", 0, withdraw, NULL},
};

static void run_in_session(const struct request *r, void (*run)(const struct request *r, struct session *session))
{
	struct session *session;

	(void)pthread_mutex_lock(&r->agent->lock);
	session = script_session_find(r->agent, json_member_str(r->params, "sessionId"));
	if (session == NULL)
		refuse(r, RPC_NOT_FOUND, "Session not found");
	else
		run(r, session);
	(void)pthread_mutex_unlock(&r->agent->lock);
}

static void dispatch(const struct request *r, struct str method)
{
	size_t i = 0, count = sizeof(methods) / sizeof(methods[0]);

	while (i < count && !str_eq(method, str_of(methods[i].name)))
		i++;
	if (i == count || (r->agent->scenario->without & methods[i].without) != 0)
		refuse(r, RPC_METHOD_NOT_FOUND, "Method not found");
	else if (!r->agent->is_initialized && methods[i].run != initialize)
		refuse(r, RPC_INVALID_REQUEST, "initialize comes first");
	else if (methods[i].run != NULL)
		methods[i].run(r);
	else
		run_in_session(r, methods[i].run_in);
}

void script_take_line(struct script_agent *agent, struct str line)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct json_error error;
	json_auto_t *message = json_read(line, &error);
	struct request r = {.agent = agent, .arena = arena};
	struct str method = json_member_str(message, "method");

	if (message == NULL) {
		script_refuse_text(agent, NULL, RPC_PARSE, error.text);
		return;
	}
	r.id = json_object_get(message, "id");
	r.params = json_object_get(message, "params");
	if (method.p != NULL)
		dispatch(&r, method);
	else if (r.id != NULL &&
		 (json_object_get(message, "result") != NULL || json_object_get(message, "error") != NULL))
		take_answer(agent, message);
	else
		script_refuse_text(agent, r.id, RPC_INVALID_REQUEST, "Neither a method nor an answer");
}
