/* Modes, models and options: three mechanisms live side by side; all are read, and written with what the agent gave. */
#include "providers/acp/acp.h"

#include "providers/state.h"

/* ---- reading ---- */

/* Keeps an id, or nothing when it is too long or there is no room. */
static void keep(struct acp *a, struct str *owned, struct str id)
{
	if (id.n <= LIMIT_AGENT_ID_BYTES && acp_has_room(a, state_cost(id)))
		state_text(owned, id);
}

static json_t *json_text(struct str text)
{
	return json_stringn_nocheck(text.p, text.n);
}

static void keep_mode_id(struct acp *a, json_t *modes, struct str id)
{
	if (id.n > 0 && id.n <= LIMIT_AGENT_ID_BYTES && json_array_size(modes) < LIMIT_AGENT_MODES &&
		acp_has_room(a, json_dumpb(modes, NULL, 0, JSON_COMPACT) + state_cost(id)))
		json_array_append_new(modes, json_text(id));
}

static void read_modes(struct acp *a, const json_t *modes)
{
	json_t *ids;
	const json_t *mode;
	size_t i;

	if (!json_is_object(modes))
		return;
	ids = json_array();
	json_array_foreach (json_object_get(modes, "availableModes"), i, mode)
		keep_mode_id(a, ids, json_member_str(mode, "id"));
	state_json(&a->modes, ids);
	a->mode_place = PLACE_LEGACY;
	keep(a, &a->mode, json_member_str(modes, "currentModeId"));
}

/* The next value of a select option, whose choices may stand in groups. */
struct choice_walk {
	const json_t *list;
	size_t at, inner;
};

static const json_t *next_choice(struct choice_walk *walk)
{
	for (; walk->at < json_array_size(walk->list); walk->at++, walk->inner = 0) {
		const json_t *entry = json_array_get(walk->list, walk->at);
		const json_t *group = json_object_get(entry, "options");

		if (group == NULL) {
			walk->at++;
			return entry;
		}
		if (walk->inner < json_array_size(group))
			return json_array_get(group, walk->inner++);
	}
	return NULL;
}

static struct choice_walk choices_of(const json_t *option)
{
	return (struct choice_walk){.list = json_object_get(option, "options")};
}

static bool has_choice(const json_t *option, struct str value)
{
	struct choice_walk walk = choices_of(option);
	const json_t *choice;

	while ((choice = next_choice(&walk)) != NULL)
		if (str_eq(json_member_str(choice, "value"), value))
			return true;
	return false;
}

static void read_mode_option(struct acp *a, const json_t *option)
{
	struct choice_walk walk = choices_of(option);
	json_t *ids;
	const json_t *choice;

	keep(a, &a->mode, json_member_str(option, "currentValue"));
	if (a->mode_place == PLACE_LEGACY)
		return;
	ids = json_array();
	while ((choice = next_choice(&walk)) != NULL)
		keep_mode_id(a, ids, json_member_str(choice, "value"));
	state_json(&a->modes, ids);
	a->mode_place = PLACE_OPTION;
	keep(a, &a->mode_option, json_member_str(option, "id"));
}

/* The list of models, while it is made. */
struct models {
	struct agent_model *list;
	size_t count;
};

static void add_model(struct models *models, struct arena *arena, struct str id, struct str label, struct str current)
{
	if (id.n == 0 || models->count == LIMIT_AGENT_MODELS)
		return;
	if (models->list == NULL)
		models->list = ARENA_ARRAY(arena, struct agent_model, LIMIT_AGENT_MODELS);
	models->list[models->count++] = (struct agent_model){
		.id = str_dup(arena, id), .label = str_dup(arena, label), .is_default = str_eq(id, current)};
}

static void read_model_option(struct acp *a, const json_t *option, struct models *models, struct arena *arena)
{
	struct choice_walk walk = choices_of(option);
	struct str current = json_member_str(option, "currentValue");
	const json_t *choice;

	while ((choice = next_choice(&walk)) != NULL)
		add_model(models, arena, json_member_str(choice, "value"), json_member_str(choice, "name"), current);
	a->model_place = PLACE_OPTION;
	keep(a, &a->model_option, json_member_str(option, "id"));
	keep(a, &a->model, current);
}

static void read_legacy_models(struct acp *a, const json_t *from, struct models *models, struct arena *arena)
{
	struct str current = json_member_str(from, "currentModelId");
	const json_t *model;
	size_t i;

	if (!json_is_object(from) || a->model_place == PLACE_OPTION)
		return;
	json_array_foreach (json_object_get(from, "availableModels"), i, model)
		add_model(models, arena, json_member_str(model, "modelId"), json_member_str(model, "name"), current);
	a->model_place = PLACE_LEGACY;
	keep(a, &a->model, current);
}

/* {"id","type","choices"?} into the list of options of the chosen model. */
static void write_option(struct json_writer *w, const json_t *option)
{
	struct choice_walk walk = choices_of(option);
	const json_t *choice;

	jw_object_begin(w);
	jw_kstr(w, "id", json_member_str(option, "id"));
	jw_kstr(w, "type", json_member_str(option, "type"));
	if (json_is_array(walk.list)) {
		jw_karray(w, "choices");
		while ((choice = next_choice(&walk)) != NULL)
			jw_str(w, json_member_str(choice, "value"));
		jw_array_end(w);
	}
	jw_object_end(w);
}

static bool is_about(const json_t *option, const char *what)
{
	struct str category = json_member_str(option, "category");

	return str_eq(category, str_of(what)) || (category.n == 0 && str_eq(json_member_str(option, "id"), str_of(what)));
}

static void read_other_option(struct acp *a, const json_t *option, json_t *known, struct json_writer *w)
{
	struct str id = json_member_str(option, "id");
	struct str type = json_member_str(option, "type");

	if (id.n == 0 || id.n > LIMIT_AGENT_ID_BYTES || json_object_size(known) >= LIMIT_AGENT_MODES ||
		!(str_eq(type, STR("select")) || str_eq(type, STR("boolean"))) ||
		!acp_has_room(a, json_dumpb(known, NULL, 0, JSON_COMPACT) + state_cost(id) + 12) || memchr(id.p, '\0', id.n) != NULL)
		return;
	json_object_set_new(known, id.p, json_text(type));
	write_option(w, option);
}

static struct str read_config_options(struct acp *a, const json_t *options, struct models *models, struct arena *arena)
{
	json_t *known = json_object();
	struct buf text;
	struct json_writer w;
	const json_t *option;
	size_t i;

	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	json_array_foreach (options, i, option) {
		if (is_about(option, "mode"))
			read_mode_option(a, option);
		else if (is_about(option, "model"))
			read_model_option(a, option, models, arena);
		else if (str_eq(json_member_str(option, "id"), STR("collaboration_mode"))) {
			a->has_plan_option = has_choice(option, STR("plan"));
			a->is_planning = str_eq(json_member_str(option, "currentValue"), STR("plan"));
		} else {
			read_other_option(a, option, known, &w);
		}
	}
	jw_array_end(&w);
	state_json(&a->options, known);
	return json_object_size(known) == 0 ? STR_NONE : buf_str(&text);
}

static void tell_models(struct acp *a, struct models *models, struct str options, struct agent_out *out)
{
	const struct provider_instance *instance = a->config.instance;
	struct agent_event *event;

	if (models->count == 0)
		return;
	if (instance->model_count > 0) {
		*models = (struct models){0};
		for (size_t i = 0; i < instance->model_count; i++)
			add_model(models, out->arena, instance->models[i], STR_NONE, a->model);
	}
	for (size_t i = 0; i < models->count; i++)
		if (models->list[i].is_default)
			models->list[i].options = options;
	event = agent_out_event(out, EVENT_MODELS);
	event->models = models->list;
	event->model_count = models->count;
}

void acp_read_options(struct acp *a, const json_t *from, struct agent_out *out)
{
	const json_t *config = json_object_get(from, "configOptions");
	struct models models = {0};
	struct str options = STR_NONE;

	read_modes(a, json_object_get(from, "modes"));
	if (json_is_array(config))
		options = read_config_options(a, config, &models, out->arena);
	read_legacy_models(a, json_object_get(from, "models"), &models, out->arena);
	tell_models(a, &models, options, out);
}

/* ---- writing ---- */

static void set_option(struct acp *a, struct str id, struct str value, struct str note, int64_t now, struct agent_out *out)
{
	struct rpc_line line;
	struct json_writer *w =
		rpc_call(&a->rpc, &line, out, "session/set_config_option", CALL_SET, now + LIMIT_AGENT_CALL_MS);

	jw_kstr(w, "sessionId", a->session);
	jw_kstr(w, "configId", id);
	jw_kstr(w, "value", value);
	rpc_end(&line);
	rpc_note(&a->rpc, note);
}

static void set_legacy(struct acp *a, const char *method, const char *member, struct str value, struct str note, int64_t now,
	struct agent_out *out)
{
	struct rpc_line line;
	struct json_writer *w = rpc_call(&a->rpc, &line, out, method, CALL_SET, now + LIMIT_AGENT_CALL_MS);

	jw_kstr(w, "sessionId", a->session);
	jw_kstr(w, member, value);
	rpc_end(&line);
	rpc_note(&a->rpc, note);
}

static const char *const *names_of(const struct acp *a, int64_t interaction)
{
	const struct acp_mode_names *names = &a->profile->modes;

	if (interaction == INTERACTION_PLAN && !a->has_plan_option)
		return names->plan;
	switch ((enum runtime_mode)a->runtime) {
	case RUNTIME_READ_ONLY:
		return names->read_only;
	case RUNTIME_APPROVAL_REQUIRED:
		return names->approval;
	case RUNTIME_AUTO_ACCEPT_EDITS:
		return names->edits;
	case RUNTIME_FULL_ACCESS:
		return names->full;
	}
	return names->approval;
}

static struct str find_mode(const struct acp *a, const char *const *names)
{
	const json_t *mode;
	size_t i;

	for (; *names != NULL; names++)
		json_array_foreach (a->modes, i, mode)
			if (str_eq(json_str(mode), str_of(*names)))
				return json_str(mode);
	return STR_NONE;
}

struct str acp_own_mode(const struct acp *a)
{
	return find_mode(a, names_of(a, INTERACTION_DEFAULT));
}

int acp_set_modes(struct acp *a, int64_t now, struct agent_out *out)
{
	const char *const *names = names_of(a, a->interaction);
	bool is_plan = a->interaction == INTERACTION_PLAN;
	struct str mode = find_mode(a, names);
	struct str note;

	if (a->has_plan_option && is_plan != a->is_planning && !rpc_is_full(&a->rpc))
		set_option(a, STR("collaboration_mode"), is_plan ? STR("plan") : STR("default"), STR("plan"), now, out);
	/* Such an agent begins in the first mode of its approvals. */
	if (mode.n == 0 && a->profile->has_hidden_modes && (a->mode.n > 0 || !str_eq(str_of(*names), STR("default"))))
		mode = str_of(*names);
	if (mode.n == 0 || str_eq(mode, a->mode))
		return 0;
	if (rpc_is_full(&a->rpc))
		return -1;
	note = str_printf(out->arena, "%s:%.*s", is_plan && !a->has_plan_option ? "plan" : "mode", STRF(mode));
	if (a->mode_place == PLACE_OPTION)
		set_option(a, a->mode_option, mode, note, now, out);
	else
		set_legacy(a, "session/set_mode", "modeId", mode, note, now, out);
	return 0;
}

static int set_values(struct acp *a, const json_t *values, int64_t now, struct agent_out *out)
{
	const char *id;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)values, id, value) {
		struct rpc_line line;
		struct json_writer *w;

		if (rpc_is_full(&a->rpc))
			return -1;
		w = rpc_call(&a->rpc, &line, out, "session/set_config_option", CALL_SET, now + LIMIT_AGENT_CALL_MS);
		jw_kstr(w, "sessionId", a->session);
		jw_ktext(w, "configId", id);
		if (json_is_boolean(value))
			jw_ktext(w, "type", "boolean");
		jw_key(w, "value");
		jw_json(w, value);
		rpc_end(&line);
		rpc_note(&a->rpc, STR("option"));
	}
	return 0;
}

int acp_set_model(struct acp *a, struct str model, const json_t *options, int64_t now, struct agent_out *out)
{
	struct str note = str_printf(out->arena, "model:%.*s", STRF(model));

	if (model.n > 0 && !str_eq(model, a->model)) {
		if (a->model_place == PLACE_NONE || rpc_is_full(&a->rpc))
			return -1;
		if (a->model_place == PLACE_OPTION)
			set_option(a, a->model_option, model, note, now, out);
		else
			set_legacy(a, "session/set_model", "modelId", model, note, now, out);
	}
	return set_values(a, options, now, out);
}

/* ---- what came of it ---- */

static void say_selected(struct acp *a, struct agent_out *out)
{
	if (a->select_key.p == NULL || rpc_waiting(&a->rpc, CALL_SET) > 0)
		return;
	agent_out_event(out, EVENT_SELECTED)->key = str_dup(out->arena, a->select_key);
	state_text(&a->select_key, STR_NONE);
}

static struct str behind_colon(struct str note)
{
	const char *colon = note.n == 0 ? NULL : memchr(note.p, ':', note.n);

	return colon == NULL ? STR_NONE : (struct str){colon + 1, (size_t)(note.p + note.n - colon - 1)};
}

static void now_holds(struct acp *a, struct str note)
{
	struct str value = behind_colon(note);

	if (value.n > 0 && str_starts(note, STR("model:")))
		keep(a, &a->model, value);
	else if (value.n > 0)
		keep(a, &a->mode, value);
	else if (str_eq(note, STR("plan")))
		a->is_planning = !a->is_planning;
}

void acp_set_done(struct acp *a, const struct rpc_message *m, int64_t now, struct agent_out *out)
{
	now_holds(a, m->call.note);
	if (json_is_array(json_object_get(m->result, "configOptions")))
		acp_read_options(a, m->result, out);
	say_selected(a, out);
	acp_settle(a, now, out);
}

static void refuse_select(struct acp *a, struct agent_failure failure, struct agent_out *out)
{
	struct agent_event *event;

	if (a->select_key.p == NULL)
		return;
	a->runtime = a->runtime_before;
	a->interaction = a->interaction_before;
	event = agent_out_event(out, EVENT_ORDER_REFUSED);
	event->key = str_dup(out->arena, a->select_key);
	event->failure = failure;
	state_text(&a->select_key, STR_NONE);
}

void acp_set_failed(struct acp *a, struct str what, struct agent_failure failure, int64_t now, struct agent_out *out)
{
	/* The permission requests are answered by runtime mode whatever the native mode is (Claude as root has no
	 * bypassPermissions); a plan, a model or an option that is not had is no small matter. */
	if (str_starts(what, STR("mode:"))) {
		a->has_refused_mode = true;
		say_selected(a, out);
		acp_settle(a, now, out);
		return;
	}
	if (failure.class != CLASS_TRANSPORT && failure.class != CLASS_PERMISSION)
		failure = agent_failure_of(str_starts(what, STR("model")) ? CODE_unknown_model
				: str_starts(what, STR("plan"))		   ? CODE_unknown_mode
									   : CODE_invalid_request,
			failure.message);
	if (a->phase == ACP_SETTLING)
		acp_open_failed(a, failure, out);
	else
		refuse_select(a, failure, out);
}

void acp_order_select(struct acp *a, const struct agent_order *order, int64_t now, struct agent_out *out)
{
	if (a->phase != ACP_READY || a->select_key.p != NULL || rpc_waiting(&a->rpc, CALL_SET) > 0 || order->key.n == 0 ||
		order->key.n > LIMIT_AGENT_ID_BYTES) {
		acp_refuse_order(out, order->key, CODE_invalid_request,
			"A turn runs, or another selection waits for the agent, or the order has no key.");
		return;
	}
	a->runtime_before = a->runtime;
	a->interaction_before = a->interaction;
	a->runtime = order->runtime;
	a->interaction = order->interaction;
	state_text(&a->select_key, order->key);
	if (acp_set_modes(a, now, out) != 0 || acp_set_model(a, order->model, order->model_options, now, out) != 0) {
		refuse_select(a,
			agent_failure_of(CODE_unknown_model, STR("The agent has no such model, or lets nobody choose one.")), out);
		return;
	}
	say_selected(a, out);
}
