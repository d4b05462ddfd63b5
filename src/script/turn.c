/* Playing one prompt: the scene that matches, its steps, the answer. */
#include "script/private.h"

#include "script/template.h"

/* ---- texts ---- */

static void add_json_text(struct buf *out, const json_t *value, struct arena *arena)
{
	if (json_is_string(value))
		buf_add_str(out, json_str(value));
	else if (value != NULL)
		buf_add_str(out, json_canonical(arena, value));
}

/* A member or, by number, an element; NULL when it is not there. */
static const json_t *walk(const json_t *value, struct str path)
{
	while (path.n > 0 && value != NULL) {
		const char *dot = memchr(path.p, '.', path.n);
		struct str step = {path.p, dot == NULL ? path.n : (size_t)(dot - path.p)};
		int64_t index;

		if (json_is_array(value))
			value = str_to_int(step, &index) && index >= 0 ? json_array_get(value, (size_t)index) : NULL;
		else
			value = json_object_getn(value, step.p, step.n);
		path = dot == NULL ? STR("") : (struct str){dot + 1, path.n - step.n - 1};
	}
	return value;
}

static const json_t *saved_value(const struct turn *turn, const struct template_part *part)
{
	return walk(json_object_getn(turn->session->saved, part->name.p, part->name.n), part->path);
}

static void add_name(struct turn *turn, const struct template_part *part, struct buf *out)
{
	const struct session *session = turn->session;

	switch (template_name_of(part->name)) {
	case NAME_PROMPT:
		buf_add_str(out, turn->prompt->text);
		break;
	case NAME_TURN:
		buf_printf(out, "%lld", (long long)turn->ordinal);
		break;
	case NAME_SESSION:
		buf_add_str(out, str_of(session->id));
		break;
	case NAME_MODEL:
		buf_add_str(out, turn->agent->scenario->models[session->model]);
		break;
	case NAME_MODE:
		buf_add_str(out, str_of(script_mode(session->mode)));
		break;
	case NAME_ANSWER:
		buf_add_str(out, turn->answer);
		break;
	case NAME_STEER:
		buf_add_str(out, turn->steer);
		break;
	case NAME_OPEN:
		buf_add_str(out, STR("{{"));
		break;
	case NAME_OTHER:
		add_json_text(out, saved_value(turn, part), turn->arena);
		break;
	}
}

struct str turn_text(struct turn *turn, struct str text)
{
	struct template_part part;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	(void)pthread_mutex_lock(&turn->agent->lock);
	for (size_t at = 0; template_next(text, &at, &part);) {
		buf_add_str(&out, part.text);
		if (part.name.p != NULL)
			add_name(turn, &part, &out);
	}
	(void)pthread_mutex_unlock(&turn->agent->lock);
	return buf_str(&out);
}

struct str step_text_of(struct turn *turn, const struct step *step, const char *field)
{
	const struct value *value = step_value(step, field);

	return value->is_set ? turn_text(turn, value->text) : STR_NONE;
}

int64_t step_number(const struct step *step, const char *field)
{
	return step_value(step, field)->number;
}

/* A number as JSON writes it, so that it can be copied. */
static bool is_json_number(struct str text)
{
	json_error_t error;
	json_t *value = json_loadb(text.p, text.n, JSON_DECODE_ANY, &error);
	bool is_number = json_is_number(value);

	json_decref(value);
	return is_number;
}

static void write_scalar(struct turn *turn, const struct yaml *node, struct json_writer *w)
{
	struct template_part part;
	bool is_true;

	if (yaml_is_null(node)) {
		jw_null(w);
	} else if (yaml_bool(node, &is_true)) {
		jw_bool(w, is_true);
	} else if (node->is_plain && is_json_number(node->text)) {
		jw_raw(w, node->text);
	} else if (template_is_whole(node->text, &part) && template_name_of(part.name) == NAME_OTHER) {
		const json_t *value;
		struct str copy = STR("null");

		(void)pthread_mutex_lock(&turn->agent->lock);
		value = saved_value(turn, &part);
		if (value != NULL)
			copy = json_canonical(turn->arena, value);
		(void)pthread_mutex_unlock(&turn->agent->lock);
		jw_raw(w, copy);
	} else {
		jw_str(w, turn_text(turn, node->text));
	}
}

static void write_value(struct turn *turn, const struct yaml *node, struct json_writer *w)
{
	if (node->kind == YAML_TEXT) {
		write_scalar(turn, node, w);
		return;
	}
	if (node->kind == YAML_LIST)
		jw_array_begin(w);
	else
		jw_object_begin(w);
	for (size_t i = 0; i < node->count; i++) {
		if (node->kind == YAML_MAP)
			jw_key_str(w, node->entries[i].key);
		write_value(turn, node->entries[i].value, w);
	}
	if (node->kind == YAML_LIST)
		jw_array_end(w);
	else
		jw_object_end(w);
}

struct str turn_json(struct turn *turn, const struct yaml *node)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	write_value(turn, node, &w);
	return buf_str(&out);
}

/* ---- ends ---- */

enum outcome turn_stop(struct turn *turn, const char *stop)
{
	turn->end.stop = stop;
	return ENDED;
}

enum outcome turn_fail(struct turn *turn, struct rpc_error error)
{
	turn->end.stop = NULL;
	turn->end.error = error;
	return ENDED;
}

const char *turn_cwd(struct turn *turn)
{
	const char *cwd;

	(void)pthread_mutex_lock(&turn->agent->lock);
	cwd = arena_copy(turn->arena, turn->session->cwd, strlen(turn->session->cwd));
	(void)pthread_mutex_unlock(&turn->agent->lock);
	return cwd;
}

static bool is_cancelled(const struct prompt *prompt)
{
	return (prompt->is_cancelled || prompt->is_withdrawn) && !prompt->ignores_cancel;
}

bool turn_is_cancelled(struct turn *turn)
{
	bool is;

	(void)pthread_mutex_lock(&turn->agent->lock);
	is = is_cancelled(turn->prompt);
	(void)pthread_mutex_unlock(&turn->agent->lock);
	return is;
}

static struct timespec after(int64_t ms)
{
	struct timespec at;

	(void)clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += ms % 1000 * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

enum outcome turn_wait(struct turn *turn, int64_t ms, bool (*is_done)(struct turn *turn))
{
	struct session *session = turn->session;
	struct timespec until = after(ms < 0 ? 0 : ms);
	bool is_over = false, is_stopped;

	(void)pthread_mutex_lock(&turn->agent->lock);
	while (!(is_stopped = is_cancelled(turn->prompt)) && !is_over && (is_done == NULL || !is_done(turn))) {
		if (ms < 0)
			(void)pthread_cond_wait(&session->changed, &turn->agent->lock);
		else
			is_over = pthread_cond_timedwait(&session->changed, &turn->agent->lock, &until) != 0;
	}
	(void)pthread_mutex_unlock(&turn->agent->lock);
	return is_stopped ? turn_stop(turn, "cancelled") : GO_ON;
}

/* ---- asking the client ---- */

static bool is_answered(struct turn *turn)
{
	return turn->session->asked->answer != NULL;
}

enum outcome turn_request(struct turn *turn, const char *method, struct str params, json_t **answer)
{
	struct asked asked = {0};
	enum outcome outcome;

	(void)pthread_mutex_lock(&turn->agent->lock);
	asked.id = turn->agent->next_id++; /* from 0, as agents do */
	turn->session->asked = &asked;
	(void)pthread_mutex_unlock(&turn->agent->lock);
	script_request(turn->agent, asked.id, method, params);
	outcome = turn_wait(turn, -1, is_answered);
	(void)pthread_mutex_lock(&turn->agent->lock);
	turn->session->asked = NULL;
	(void)pthread_mutex_unlock(&turn->agent->lock);
	if (outcome == GO_ON)
		*answer = asked.answer;
	else
		json_decref(asked.answer);
	return outcome;
}

/* ---- reports ---- */

struct str turn_new_id(struct turn *turn, const char *prefix)
{
	return str_printf(turn->arena, "%s_%lld_%lld", prefix, (long long)turn->ordinal, (long long)++turn->parts);
}

struct str tool_head(struct turn *turn, struct str title, const char *kind)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_kstr(&w, "title", title);
	jw_ktext(&w, "kind", kind);
	return buf_str(&out);
}

struct str tool_content(struct turn *turn, struct str text)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_karray(&w, "content");
	jw_object_begin(&w);
	jw_ktext(&w, "type", "content");
	jw_kobject(&w, "content");
	jw_ktext(&w, "type", "text");
	jw_kstr(&w, "text", text);
	jw_object_end(&w);
	jw_object_end(&w);
	jw_array_end(&w);
	return buf_str(&out);
}

static struct str tool_members(
	struct turn *turn, const struct tool_call *call, const char *status, struct str head, struct str tail)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_kstr(&w, "toolCallId", call->id);
	jw_members(&w, head);
	jw_ktext(&w, "status", status);
	jw_members(&w, tail);
	return buf_str(&out);
}

void tool_begin(struct turn *turn, struct tool_call *call, const char *status, struct str head)
{
	call->id = turn_new_id(turn, "call");
	call->head = head;
	script_session_update_members(turn->session, "tool_call", tool_members(turn, call, status, head, STR("")));
}

void tool_end(struct turn *turn, struct tool_call *call, const char *status, struct str tail)
{
	script_session_update_members(
		turn->session, "tool_call_update", tool_members(turn, call, status, STR(""), tail));
	script_session_keep(turn->session, "tool_call", tool_members(turn, call, status, call->head, tail));
}

/* ---- usage ---- */

/* A model counts tokens; four bytes for one is near enough, and never nothing: agents whose result shows no tokens
 * are taken for broken ones. */
static void settle_usage(struct turn *turn)
{
	struct turn_usage *usage = &turn->usage;

	if (usage->is_told)
		return;
	usage->input = (int64_t)turn->prompt->text.n / 4 + 1;
	usage->output = turn->output_bytes / 4 + 1;
}

static struct str result_of(struct turn *turn)
{
	struct turn_usage *usage = &turn->usage;
	struct json_writer w;
	struct buf out;

	settle_usage(turn);
	buf_init(&out, turn->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "stopReason", turn->end.stop);
	if ((turn->agent->scenario->without & WITHOUT_USAGE) == 0) {
		jw_kobject(&w, "usage");
		jw_kint(&w, "totalTokens", usage->input + usage->cached + usage->output + usage->reasoning);
		jw_kint(&w, "inputTokens", usage->input);
		jw_kint(&w, "outputTokens", usage->output);
		jw_kint(&w, "cachedReadTokens", usage->cached);
		jw_kint(&w, "thoughtTokens", usage->reasoning);
		jw_object_end(&w);
	}
	jw_object_end(&w);
	return buf_str(&out);
}

/* ---- the play ---- */

/* The first scene that matches and is not used up; NULL: none. Lock held. */
static const struct scene *choose(struct session *session, const struct prompt *prompt, struct arena *arena)
{
	const struct scenario *scenario = session->agent->scenario;
	const char *text = str_z(arena, prompt->text);

	for (size_t i = 0; i < scenario->scene_count; i++) {
		const struct scene *scene = &scenario->scenes[i];

		if (scene->times != 0 && session->scene_uses[i] >= scene->times)
			continue;
		if (scene->has_pattern && regexec(&scene->pattern, text, 0, NULL, 0) != 0)
			continue;
		session->scene_uses[i]++;
		return scene;
	}
	return NULL;
}

static void keep_prompt(struct turn *turn)
{
	struct json_writer w;
	struct buf out;

	buf_init(&out, turn->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_kobject(&w, "content");
	jw_ktext(&w, "type", "text");
	jw_kstr(&w, "text", turn->prompt->text);
	jw_object_end(&w);
	script_session_keep(turn->session, "user_message_chunk", buf_str(&out));
}

static void play_steps(struct turn *turn, const struct scene *scene)
{
	if (scene == NULL)
		turn_say(turn, str_join(turn->arena, STR("echo: "), turn->prompt->text));
	for (size_t i = 0; scene != NULL && i < scene->step_count; i++) {
		if (turn_is_cancelled(turn)) {
			(void)turn_stop(turn, "cancelled");
			return;
		}
		if (scene->steps[i].kind->run(turn, &scene->steps[i]) == ENDED)
			return;
	}
	(void)turn_stop(turn, "end_turn");
}

/* Out of the queue first: who knows of the end finds the session idle. */
static void answer(struct turn *turn)
{
	const struct prompt *prompt = turn->prompt;
	bool is_withdrawn;

	(void)pthread_mutex_lock(&turn->agent->lock);
	is_withdrawn = prompt->is_withdrawn && !prompt->ignores_cancel;
	(void)script_session_detach(turn->session);
	(void)pthread_mutex_unlock(&turn->agent->lock);
	if (prompt->id == NULL)
		return;
	if (is_withdrawn)
		script_refuse_text(turn->agent, prompt->id, RPC_CANCELLED, "Request cancelled");
	else if (turn->end.stop != NULL)
		script_answer(turn->agent, prompt->id, result_of(turn));
	else
		script_refuse(turn->agent, prompt->id, &turn->end.error);
}

static void play(struct turn *turn)
{
	struct session *session = turn->session;
	const struct scene *scene;
	struct failure f;

	failure_init(&f, turn->arena);
	(void)pthread_mutex_lock(&turn->agent->lock);
	turn->ordinal = ++session->turns;
	scene = choose(session, turn->prompt, turn->arena);
	(void)pthread_mutex_unlock(&turn->agent->lock);
	keep_prompt(turn);
	play_steps(turn, scene);
	(void)pthread_mutex_lock(&turn->agent->lock);
	if (script_session_save(session, &f) != 0)
		(void)turn_fail(turn, (struct rpc_error){RPC_INTERNAL, f.message, STR_NONE});
	(void)pthread_mutex_unlock(&turn->agent->lock);
}

void turn_play(struct session *session, struct prompt *prompt)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct turn turn = {.agent = session->agent, .session = session, .prompt = prompt, .arena = arena};

	turn.answer = turn.steer = STR("");
	if (turn_is_cancelled(&turn)) /* it waited behind another one */
		(void)turn_stop(&turn, "cancelled");
	else
		play(&turn);
	answer(&turn);
}
