/* Driver opencode: the table, lines, orders, time, and the end of the process. */
#include "providers/opencode/opencode.h"

#include "base/limits.h"
#include "providers/due.h"
#include "providers/exit.h"

#include <inttypes.h>
#include <stdlib.h>

/* Texts of the engine are kept as they are, when there is room for them in the state. */
static void keep(struct str *field, struct str text)
{
	if (text.n > 0 && state_cost(text) <= LIMIT_OPENCODE_INSTRUCTION_BYTES)
		state_text(field, text);
}

static struct agent *create(const struct agent_config *config)
{
	struct opencode *o = calloc(1, sizeof(*o));

	if (o == NULL)
		abort();
	opencode_state_init(o);
	o->agent.driver = &driver_opencode;
	o->instance = config->instance;
	keep(&o->url, config->mcp_url);
	keep(&o->instructions, config->instructions);
	SET(o, resume, config->resume);
	SET(o, model, config->model);
	SET(o, variant, json_member_str(config->model_options, "variant"));
	o->runtime = config->runtime;
	o->interaction = config->interaction;
	o->is_confined = config->is_confined;
	return &o->agent;
}

static void destroy(struct agent *agent)
{
	struct opencode *o = (struct opencode *)(void *)agent;

	if (o == NULL)
		return;
	opencode_state_finish(o);
	free(o);
}

/* The bridge speaks first. */
static void begin(struct agent *agent, int64_t now, struct agent_out *out)
{
	struct opencode *o = (struct opencode *)(void *)agent;

	(void)out;
	o->now = now;
	o->phase = PHASE_OPENING;
	o->open_by = now + LIMIT_OPENCODE_OPEN_MS;
}

/* ---- orders ---- */

static void write_part(struct json_writer *w, struct str text)
{
	jw_object_begin(w);
	jw_ktext(w, "type", "text");
	jw_kstr(w, "text", text);
	jw_object_end(w);
}

/* The server reads files that we name: it runs where they are. */
static void write_file(struct json_writer *w, struct arena *arena, const struct agent_attachment *file)
{
	jw_object_begin(w);
	jw_ktext(w, "type", "file");
	jw_kstr(w, "mime", file->mime);
	jw_kstr(w, "filename", file->name);
	jw_kstr(w, "url", str_printf(arena, "file://%.*s", STRF(file->path)));
	jw_object_end(w);
}

static bool prompt(struct opencode *o, const char *kind, const struct agent_order *order, struct agent_out *out)
{
	const char *slash = o->model.n == 0 ? NULL : memchr(o->model.p, '/', o->model.n);
	struct request r;

	if (!opencode_request_begin(o, &r, kind, "POST", str_printf(out->arena, "/session/%.*s/prompt_async", STRF(o->native)), out))
		return false;
	json_object_set_new(r.row, "order", json_stringn(order->key.p, order->key.n));
	if (slash != NULL) {
		size_t provider = (size_t)(slash - o->model.p);

		jw_kobject(&r.w, "model");
		jw_kstr(&r.w, "providerID", (struct str){o->model.p, provider});
		jw_kstr(&r.w, "modelID", (struct str){slash + 1, o->model.n - provider - 1});
		jw_object_end(&r.w);
	}
	jw_kstr_opt(&r.w, "variant", o->variant);
	jw_ktext(&r.w, "agent", o->interaction == INTERACTION_PLAN ? "plan" : "build");
	jw_kstr_opt(&r.w, "system", o->instructions);
	jw_karray(&r.w, "parts");
	write_part(&r.w, order->text);
	for (size_t i = 0; i < order->attachment_count; i++)
		write_file(&r.w, out->arena, &order->attachments[i]);
	jw_array_end(&r.w);
	opencode_request_end(&r, false);
	return true;
}

/* What the program does unasked takes the message at its next step. */
static void turn(struct opencode *o, const struct agent_order *order, struct agent_out *out)
{
	bool is_taken_over = o->in_turn && o->is_unasked;

	if (o->phase != PHASE_READY || o->closes || (o->in_turn && !is_taken_over) || !prompt(o, "turn", order, out)) {
		opencode_refuse(out, order->key, CODE_invalid_request, STR("a turn is for an open session between two turns"));
		return;
	}
	if (is_taken_over)
		opencode_end_turn(o, AGENT_COMPLETED, NULL, out);
	o->in_turn = true;
	if (is_taken_over)
		opencode_turn_start(o, out);
	else
		o->start_by = o->now + LIMIT_OPENCODE_START_MS;
}

static void steer(struct opencode *o, const struct agent_order *order, struct agent_out *out)
{
	if (!o->is_started || o->is_interrupted || o->settle_by != 0 || !prompt(o, "steer", order, out))
		opencode_refuse(out, order->key, CODE_invalid_request, STR("no turn runs that can be steered"));
}

static void interrupt(struct opencode *o, struct agent_out *out)
{
	if (!o->in_turn || o->is_interrupted)
		return;
	o->is_interrupted = true;
	o->interrupt_by = o->now + LIMIT_OPENCODE_INTERRUPT_MS;
	opencode_asks_close(o, out);
	if (o->is_started)
		(void)opencode_request(o, "abort", "POST", str_printf(out->arena, "/session/%.*s/abort", STRF(o->native)), out);
}

/* Model and variant are told with each message; the modes are rules of the session. */
static void choose(struct opencode *o, const struct agent_order *order, struct agent_out *out)
{
	struct request r;
	struct str variant = json_member_str(order->model_options, "variant");
	bool is_other = order->interaction != (enum interaction_mode)o->interaction;

	if (order->runtime != (enum runtime_mode)o->runtime || o->phase != PHASE_READY || o->in_turn) {
		opencode_refuse(out, order->key, CODE_invalid_request,
			STR("a selection is for the time between two turns, and another runtime mode for a new session"));
		return;
	}
	if (order->model.n > 0)
		SET(o, model, order->model);
	if (variant.p != NULL)
		SET(o, variant, variant);
	if (!is_other) {
		agent_out_event(out, EVENT_SELECTED)->key = str_dup(out->arena, order->key);
		return;
	}
	if (!opencode_request_begin(o, &r, "select", "PATCH", str_printf(out->arena, "/session/%.*s", STRF(o->native)), out)) {
		opencode_refuse(out, order->key, CODE_invalid_request, STR("the program has not answered earlier requests"));
		return;
	}
	json_object_set_new(r.row, "order", json_stringn(order->key.p, order->key.n));
	json_object_set_new(r.row, "interaction", json_integer(order->interaction));
	opencode_write_rules(o, order->interaction, &r.w);
	opencode_request_end(&r, false);
}

/* With its input closed the bridge ends, and the server with it: a turn is interrupted first. */
static void shut(struct opencode *o, struct agent_out *out)
{
	o->closes = true;
	o->close_by = o->now + LIMIT_OPENCODE_CLOSE_MS;
	if (o->in_turn) {
		interrupt(o, out);
		return;
	}
	o->is_shut = true;
	out->ends_stdin = true;
}

static void order(struct agent *agent, const struct agent_order *order, int64_t now, struct agent_out *out)
{
	struct opencode *o = (struct opencode *)(void *)agent;

	o->now = now;
	switch (order->kind) {
	case ORDER_TURN:
		turn(o, order, out);
		break;
	case ORDER_STEER:
		steer(o, order, out);
		break;
	case ORDER_INTERRUPT:
		interrupt(o, out);
		break;
	case ORDER_ANSWER:
		opencode_answer(o, order, out);
		break;
	case ORDER_SELECT:
		choose(o, order, out);
		break;
	case ORDER_CLOSE:
		shut(o, out);
		break;
	}
}

/* ---- lines ---- */

static void prompt_failed(struct opencode *o, struct str kind, struct str order, int64_t status, struct agent_out *out)
{
	struct str why = str_printf(out->arena, "OpenCode did not take the message (status %" PRId64 ")", status);

	if (str_eq(kind, STR("turn")) && o->in_turn && !o->is_started) {
		opencode_refuse(out, order, CODE_invalid_request, why);
		o->in_turn = o->is_interrupted = false;
		o->start_by = o->interrupt_by = 0;
	} else if (str_eq(kind, STR("steer"))) {
		opencode_refuse(out, order, CODE_invalid_request, why);
	}
}

static void on_answer(struct opencode *o, struct str id, const json_t *line, struct agent_out *out)
{
	const json_t *row = json_object_getn(o->requested, id.p, id.n);
	struct str kind = str_dup(out->arena, json_member_str(row, "kind"));
	struct str order = str_dup(out->arena, json_member_str(row, "order"));
	bool is_planning = json_integer_value(json_object_get(row, "interaction")) == INTERACTION_PLAN;
	int64_t status = json_integer_value(json_object_get(line, "status"));
	bool is_fine = status >= 200 && status < 300;

	if (row == NULL)
		return;
	json_object_deln(o->requested, id.p, id.n);
	if (str_eq(kind, STR("turn")) || str_eq(kind, STR("steer"))) {
		if (!is_fine)
			prompt_failed(o, kind, order, status, out);
		else if (str_eq(kind, STR("steer")))
			agent_out_event(out, EVENT_STEERED)->key = order;
	} else if (str_eq(kind, STR("select"))) {
		if (is_fine) {
			o->interaction = is_planning ? INTERACTION_PLAN : INTERACTION_DEFAULT;
			agent_out_event(out, EVENT_SELECTED)->key = order;
		} else {
			opencode_refuse(out, order, CODE_invalid_request, STR("OpenCode did not take the rules of the mode"));
		}
	} else {
		opencode_opening(o, kind, status, json_object_get(line, "body"), out);
	}
}

/* Events were missed: whether the turn still runs nobody knows. */
static void on_lost(struct opencode *o, struct agent_out *out)
{
	struct agent_failure failure = agent_failure_of(CODE_connection_lost, STR("the stream of OpenCode's events broke"));

	if (!o->in_turn)
		return;
	(void)opencode_request(o, "abort", "POST", str_printf(out->arena, "/session/%.*s/abort", STRF(o->native)), out);
	opencode_end_turn(o, AGENT_FAILED, &failure, out);
}

static void unreadable(struct opencode *o, struct agent_out *out)
{
	if (++o->bad_lines >= LIMIT_OPENCODE_BAD_LINES)
		opencode_broken(o, out,
			str_printf(out->arena, "%" PRId64 " lines in a row that are no JSON objects", o->bad_lines));
	else if (o->bad_lines == 1 && o->in_turn)
		opencode_notice(o, out, "warning", STR("The agent wrote a line that cannot be read; it was skipped."));
}

static void line(struct agent *agent, struct str text, int64_t now, struct agent_out *out)
{
	struct opencode *o = (struct opencode *)(void *)agent;
	struct json_error error;
	json_auto_t *read = o->phase == PHASE_DEAD ? NULL : json_read(text, &error);
	struct str id = json_member_str(read, "id");

	o->now = now;
	if (o->phase == PHASE_DEAD)
		return;
	if (!json_is_object(read)) {
		unreadable(o, out);
		return;
	}
	o->bad_lines = 0;
	if (id.n > 0)
		on_answer(o, id, read, out);
	else if (json_is_true(json_object_get(read, "ready")))
		opencode_ready(o, out);
	else if (json_object_get(read, "lost") != NULL)
		on_lost(o, out);
	else
		opencode_event(o, json_object_get(read, "event"), out);
}

/* ---- the end of the process ---- */

static void exited(struct agent *agent, const struct agent_exit *exit, struct agent_out *out)
{
	struct opencode *o = (struct opencode *)(void *)agent;
	struct agent_failure failure = exit_failure(exit, out->arena);
	bool is_wanted = o->closes || o->is_interrupted;

	if (o->phase == PHASE_NEW || o->phase == PHASE_OPENING)
		agent_out_event(out, EVENT_OPEN_FAILED)->failure = failure;
	o->phase = PHASE_DEAD;
	o->open_by = o->close_by = o->interrupt_by = o->start_by = o->settle_by = 0;
	o->is_shut = true;
	if (o->in_turn)
		opencode_end_turn(o, is_wanted ? AGENT_INTERRUPTED : AGENT_FAILED, is_wanted ? NULL : &failure, out);
}

/* ---- time ---- */

static int64_t due(const struct agent *agent)
{
	const struct opencode *o = (const struct opencode *)(const void *)agent;

	if (o->phase == PHASE_DEAD)
		return 0;
	return due_earlier(due_earlier(o->open_by, o->interrupt_by), due_earlier(o->close_by, due_earlier(o->start_by, o->settle_by)));
}

/* It does not listen: what is left to say is said when it is gone. */
static void give_up(struct opencode *o, struct agent_out *out)
{
	o->open_by = o->interrupt_by = o->close_by = 0;
	out->kills = true;
}

static void tick(struct agent *agent, int64_t now, struct agent_out *out)
{
	struct opencode *o = (struct opencode *)(void *)agent;

	o->now = now;
	if (o->phase == PHASE_DEAD)
		return;
	if (due_passed(&o->open_by, now)) {
		opencode_open_failed(o, CODE_start_timeout, STR("OpenCode's server did not get ready"), out);
		give_up(o, out);
	}
	if (due_passed(&o->settle_by, now))
		opencode_settle(o, out);
	if (due_passed(&o->start_by, now)) {
		struct agent_failure failure = agent_failure_of(CODE_timeout, STR("OpenCode did not begin the turn"));

		opencode_end_turn(o, AGENT_FAILED, &failure, out);
	}
	if (due_passed(&o->interrupt_by, now))
		give_up(o, out);
	if (!due_passed(&o->close_by, now))
		return;
	if (o->is_shut) {
		give_up(o, out);
	} else {
		o->close_by = now + LIMIT_OPENCODE_CLOSE_MS;
		out->ends_stdin = o->is_shut = true;
	}
}

const struct driver driver_opencode = {
	.kind = "opencode",
	.title = "OpenCode",
	.program = "opencode",
	.caps = {
		.supportsModelSwitchInSession = true,
		.supportsProviderSwitchingViaHandoff = true,
		.canCreateEmptyThread = true,
		.exposesNativeThreadId = true,
		.canResumeThread = true,
		.emitsTurnStarted = true,
		.emitsTurnCompleted = true,
		.supportsInterrupt = true,
		.supportsActiveSteering = true,
		.terminalStatusQuality = QUALITY_STRONG,
		.streamsAssistantText = true,
		.streamsReasoning = true,
		.emitsMessageCompleted = true,
		.exposesToolItemIds = true,
		.emitsToolStarted = true,
		.emitsToolCompleted = true,
		.emitsToolOutput = true,
		.supportsMcpTools = true,
		.supportsCommandApproval = true,
		.supportsFileChangeApproval = true,
		.approvalsHaveNativeRequestIds = true,
		.approvalCallbacksAreLiveOnly = true,
		.approvalsCanOriginateFromSubagents = true,
		.emitsTodoList = true,
		.supportsStructuredQuestions = true,
		.supportsSubagents = true,
		.acceptsSystemContext = true,
		.acceptsSyntheticUserContext = true,
		.canConsumeHandoffSummaries = true,
		.supportsFullThreadHandoff = true,
		.nativeThreadIds = QUALITY_STRONG,
		.nativeItemIds = QUALITY_STRONG,
		.nativeRequestIds = QUALITY_STRONG,
	},
	.check = opencode_check,
	.launch = opencode_launch,
	.create = create,
	.destroy = destroy,
	.save = opencode_save,
	.load = opencode_load,
	.begin = begin,
	.order = order,
	.line = line,
	.exited = exited,
	.due = due,
	.tick = tick,
};
