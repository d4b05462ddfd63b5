/* The handshake: three answers open a session, in whatever order they come. */
#include "providers/pi/pi.h"

#include "base/limits.h"

void pi_write_begin(struct pi *p, struct agent_out *out)
{
	static const char *const commands[] = {"get_state", "get_available_models"};
	struct command c;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (pi_command(p, &c, commands[i], out))
			pi_command_end(&c);
}

void pi_open_failed(struct pi *p, enum provider_failure_code code, struct str message, struct agent_out *out)
{
	agent_out_event(out, EVENT_OPEN_FAILED)->failure = pi_failure(out, code, message);
	p->phase = PHASE_DEAD;
	p->open_by = 0;
}

static void open_when_whole(struct pi *p, struct agent_out *out)
{
	struct agent_event *opened;

	if (p->phase != PHASE_OPENING || !p->has_state || !p->has_models || !p->is_bridged)
		return;
	opened = agent_out_event(out, EVENT_OPENED);
	opened->native = str_dup(out->arena, p->native);
	opened->is_resumed = p->is_resumed;
	opened->caps = &driver_pi.caps;
	if (p->version.n > 0)
		opened->program_version = str_dup(out->arena, p->version);
	CLEAR(p, instructions);
	p->phase = PHASE_READY;
	p->open_by = 0;
}

/* The bridge asks for its settings before Pi reads anything: an answer without that question means that it does not run. */
void pi_on_state(struct pi *p, const json_t *data, struct agent_out *out)
{
	const json_t *model = json_object_get(data, "model");

	if (p->phase != PHASE_OPENING)
		return;
	if (!p->is_asked) {
		pi_open_failed(p, CODE_spawn_failed, STR("the bridge of dais does not run inside Pi: nothing would hold its mode"), out);
		return;
	}
	if (!json_is_object(model)) {
		pi_open_failed(p, CODE_auth_required, STR("Pi has no model: no provider is configured with a key or a login"), out);
		return;
	}
	SET(p, native, json_member_str(data, "sessionId"));
	SET(p, model, str_printf(out->arena, "%.*s/%.*s", STRF(json_member_str(model, "provider")), STRF(json_member_str(model, "id"))));
	SET(p, thinking, json_member_str(data, "thinkingLevel"));
	p->context_size = json_integer_value(json_object_get(model, "contextWindow"));
	p->is_resumed = p->has_resume && json_integer_value(json_object_get(data, "messageCount")) > 0;
	p->has_state = true;
	open_when_whole(p, out);
}

static void configured_models(const struct provider_instance *instance, struct agent_event *event, struct arena *arena)
{
	struct agent_model *all = ARENA_ARRAY(arena, struct agent_model, instance->model_count);

	for (size_t i = 0; i < instance->model_count; i++)
		all[i] = (struct agent_model){.id = instance->models[i], .is_default = i == 0};
	event->models = all;
	event->model_count = instance->model_count;
}

static void advertised_models(const struct pi *p, const json_t *data, struct agent_event *event, struct arena *arena)
{
	const json_t *models = json_object_get(data, "models");
	struct agent_model *all = ARENA_ARRAY(arena, struct agent_model, json_array_size(models));
	const json_t *model;
	size_t i;

	json_array_foreach(models, i, model) {
		all[i].id = str_printf(arena, "%.*s/%.*s", STRF(json_member_str(model, "provider")), STRF(json_member_str(model, "id")));
		all[i].label = str_dup(arena, json_member_str(model, "name"));
		all[i].is_default = str_eq(all[i].id, p->model);
		if (json_is_true(json_object_get(model, "reasoning")))
			all[i].options = STR("[{\"id\":\"thinking\",\"type\":\"select\",\"choices\":[\"off\",\"minimal\",\"low\",\"medium\",\"high\","
					     "\"xhigh\",\"max\"]}]");
	}
	event->models = all;
	event->model_count = json_array_size(models);
}

void pi_on_models(struct pi *p, const json_t *data, struct agent_out *out)
{
	struct agent_event *event;

	if (p->phase != PHASE_OPENING)
		return;
	event = agent_out_event(out, EVENT_MODELS);
	if (p->instance->model_count > 0)
		configured_models(p->instance, event, out->arena);
	else
		advertised_models(p, data, event, out->arena);
	p->has_models = true;
	open_when_whole(p, out);
}

void pi_on_ready(struct pi *p, const json_t *told, struct agent_out *out)
{
	if (p->is_bridged) {
		pi_mode_taken(p, out);
		return;
	}
	SET(p, version, json_member_str(told, "version"));
	SET(p, problem, json_member_str(told, "problem"));
	p->is_bridged = true;
	open_when_whole(p, out);
}
