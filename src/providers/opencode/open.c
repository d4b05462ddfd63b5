/* The handshake: what can be selected, our tools, the conversation; one step after the other. */
#include "providers/opencode/opencode.h"

#include "base/limits.h"

void opencode_open_failed(struct opencode *o, enum provider_failure_code code, struct str message, struct agent_out *out)
{
	agent_out_event(out, EVENT_OPEN_FAILED)->failure = opencode_failure(out, code, message);
	o->phase = PHASE_DEAD;
	o->open_by = 0;
	out->ends_stdin = true;
}

static void create_session(struct opencode *o, struct agent_out *out)
{
	struct request r;

	if (!opencode_request_begin(o, &r, "create", "POST", STR("/session"), out))
		return;
	opencode_write_rules(o, (enum interaction_mode)o->interaction, &r.w);
	opencode_request_end(&r, false);
}

/* A conversation keeps the rules of its last session: they are written anew. */
static void choose_session(struct opencode *o, struct agent_out *out)
{
	struct request r;

	if (o->resume.n == 0) {
		create_session(o, out);
		return;
	}
	if (!opencode_request_begin(o, &r, "resume", "PATCH", str_printf(out->arena, "/session/%.*s", STRF(o->resume)), out))
		return;
	opencode_write_rules(o, (enum interaction_mode)o->interaction, &r.w);
	opencode_request_end(&r, false);
}

static void add_server(struct opencode *o, struct agent_out *out)
{
	struct request r;

	if (o->url.n == 0) {
		choose_session(o, out);
		return;
	}
	if (!opencode_request_begin(o, &r, "mcp", "POST", STR("/mcp"), out))
		return;
	jw_ktext(&r.w, "name", "dais");
	jw_kobject(&r.w, "config");
	jw_ktext(&r.w, "type", "remote");
	jw_kstr(&r.w, "url", o->url);
	jw_kobject(&r.w, "headers");
	jw_ktext(&r.w, "Authorization", "Bearer " AGENT_SECRET);
	jw_object_end(&r.w);
	jw_kbool(&r.w, "oauth", false);
	jw_kint(&r.w, "timeout", LIMIT_OPENCODE_TOOL_MS);
	jw_object_end(&r.w);
	opencode_request_end(&r, true);
}

void opencode_ready(struct opencode *o, struct agent_out *out)
{
	if (o->phase == PHASE_OPENING && !o->is_streaming)
		(void)opencode_request(o, "providers", "GET", STR("/config/providers"), out);
	o->is_streaming = true;
}

/* ---- models ---- */

static struct str variants_of(struct arena *arena, const json_t *model)
{
	const json_t *variants = json_object_get(model, "variants");
	struct json_writer w;
	struct buf text;
	const char *name;
	const json_t *variant;

	if (json_object_size(variants) == 0)
		return STR_NONE;
	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	jw_object_begin(&w);
	jw_ktext(&w, "id", "variant");
	jw_ktext(&w, "type", "select");
	jw_karray(&w, "choices");
	json_object_foreach((json_t *)(uintptr_t)variants, name, variant)
		jw_text(&w, name);
	jw_array_end(&w);
	jw_object_end(&w);
	jw_array_end(&w);
	return buf_str(&text);
}

static size_t add_models(const json_t *provider, const json_t *defaults, struct agent_model *all, size_t n, struct arena *arena)
{
	struct str id = json_member_str(provider, "id");
	const char *name;
	json_t *model;

	json_object_foreach(json_object_get(provider, "models"), name, model) {
		if (n == LIMIT_OPENCODE_MODELS)
			break;
		all[n].id = str_printf(arena, "%.*s/%s", STRF(id), name);
		all[n].label = str_dup(arena, json_member_str(model, "name"));
		all[n].is_default = id.p != NULL && str_eq(json_str(json_object_getn(defaults, id.p, id.n)), str_of(name));
		all[n].options = variants_of(arena, model);
		n++;
	}
	return n;
}

static void tell_models(const struct opencode *o, const json_t *body, struct agent_out *out)
{
	struct agent_event *event = agent_out_event(out, EVENT_MODELS);
	struct agent_model *all = ARENA_ARRAY(out->arena, struct agent_model, LIMIT_OPENCODE_MODELS + o->instance->model_count);
	const json_t *provider;
	size_t i, n = 0;

	for (; n < o->instance->model_count; n++)
		all[n] = (struct agent_model){.id = o->instance->models[n], .is_default = n == 0};
	if (n == 0)
		json_array_foreach(json_object_get(body, "providers"), i, provider)
			n = add_models(provider, json_object_get(body, "default"), all, n, out->arena);
	event->models = all;
	event->model_count = n;
}

/* ---- answers ---- */

static void on_providers(struct opencode *o, int64_t status, const json_t *body, struct agent_out *out)
{
	const json_t *providers = json_object_get(body, "providers");

	if (status != 200) {
		opencode_open_failed(o, CODE_connection_lost, STR("OpenCode's server does not answer"), out);
		return;
	}
	if (providers != NULL && json_array_size(providers) == 0) {
		opencode_open_failed(o, CODE_auth_required, STR("OpenCode knows no provider: none is configured with a key or a login"), out);
		return;
	}
	tell_models(o, body, out);
	add_server(o, out);
}

/* Without our tools it can still work: the first turn says so. */
static void on_mcp(struct opencode *o, int64_t status, const json_t *body, struct agent_out *out)
{
	const json_t *server = json_object_get(body, "dais");
	struct str state = json_member_str(server, "status");
	struct str error = json_member_str(server, "error");

	if (status != 200 || !str_eq(state, STR("connected")))
		SET(o, problem, error.n > 0 ? error : state.n > 0 ? state : STR("OpenCode did not take our server"));
	choose_session(o, out);
}

static void on_session(struct opencode *o, bool is_resumed, int64_t status, const json_t *body, struct agent_out *out)
{
	struct agent_event *opened;

	if (is_resumed && (status == 404 || status == 400)) {
		create_session(o, out); /* it is gone */
		return;
	}
	if (status != 200 || json_member_str(body, "id").n == 0) {
		opencode_open_failed(o, CODE_protocol_violation, STR("OpenCode did not begin a session"), out);
		return;
	}
	SET(o, native, json_member_str(body, "id"));
	SET(o, version, json_member_str(body, "version"));
	o->is_resumed = is_resumed;
	opened = agent_out_event(out, EVENT_OPENED);
	opened->native = str_dup(out->arena, o->native);
	opened->is_resumed = is_resumed;
	opened->caps = &driver_opencode.caps;
	/* Of a resumed one it is the version that began it. */
	if (!is_resumed && o->version.n > 0)
		opened->program_version = str_dup(out->arena, o->version);
	o->phase = PHASE_READY;
	o->open_by = 0;
}

void opencode_opening(struct opencode *o, struct str kind, int64_t status, const json_t *body, struct agent_out *out)
{
	if (o->phase != PHASE_OPENING)
		return;
	if (str_eq(kind, STR("providers")))
		on_providers(o, status, body, out);
	else if (str_eq(kind, STR("mcp")))
		on_mcp(o, status, body, out);
	else if (str_eq(kind, STR("create")) || str_eq(kind, STR("resume")))
		on_session(o, str_eq(kind, STR("resume")), status, body, out);
}
