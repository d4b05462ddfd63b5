/* The life of a session: what is ordered, what is heard, and how it ends. */
#include "providers/codex/private.h"

#include "providers/exit.h"

#include <stdlib.h>

void codex_refuse(struct str key, struct agent_failure failure, struct agent_out *out)
{
	struct agent_event *event = agent_out_event(out, EVENT_ORDER_REFUSED);

	event->key = str_dup(out->arena, key);
	event->failure = failure;
	event->failure.message = str_dup(out->arena, failure.message);
}

/* ---- from creation to the open conversation ---- */

static void select_options(struct codex *codex, const json_t *options)
{
	struct str effort = json_member_str(options, "reasoningEffort");
	struct str tier = json_member_str(options, "serviceTier");

	if (effort.p != NULL && effort.n <= LIMIT_CODEX_NAME_BYTES)
		state_text(&codex->selected.effort, effort);
	if (tier.p != NULL && tier.n <= LIMIT_CODEX_NAME_BYTES)
		state_text(&codex->selected.tier, tier);
}

static struct agent *create(const struct agent_config *config)
{
	struct codex *codex = calloc(1, sizeof(*codex));

	if (codex == NULL)
		abort();
	codex->agent.driver = &driver_codex;
	codex->instance = config->instance;
	codex->arena = arena_create();
	codex->cwd = str_dup(codex->arena, config->cwd);
	codex->mcp_url = str_dup(codex->arena, config->mcp_url);
	codex->instructions = str_dup(codex->arena, config->instructions);
	codex->resume = str_dup(codex->arena, config->resume);
	codex->is_confined = config->is_confined;
	codex->selected.runtime = config->runtime;
	codex->selected.interaction = config->interaction;
	state_text(&codex->selected.model, config->model);
	select_options(codex, config->model_options);
	codex->total = codex->turn_base = (struct codex_tokens){-1, -1, -1, -1};
	codex->context_used = codex->context_size = -1;
	return &codex->agent;
}

static void destroy(struct agent *agent)
{
	struct codex *codex;

	if (agent == NULL)
		return;
	codex = codex_of(agent);
	codex_forget(codex);
	arena_destroy(codex->arena);
	free(codex);
}

static void begin(struct agent *agent, int64_t now, struct agent_out *out)
{
	struct codex *codex = codex_of(agent);

	codex->phase = CODEX_OPENING;
	codex_call_send(codex, CALL_INITIALIZE, STR_NONE, NULL, now, out);
}

static void write_choice(struct json_writer *w, const char *id, const json_t *choices, const char *member)
{
	size_t i;
	const json_t *choice;

	if (json_array_size(choices) == 0)
		return;
	jw_object_begin(w);
	jw_ktext(w, "id", id);
	jw_ktext(w, "type", "select");
	jw_karray(w, "choices");
	json_array_foreach (choices, i, choice) {
		struct str name = json_member_str(choice, member);

		if (name.p != NULL && name.n <= LIMIT_CODEX_NAME_BYTES)
			jw_str(w, name);
	}
	jw_array_end(w);
	jw_object_end(w);
}

static struct str model_options(const json_t *model, struct arena *arena)
{
	struct buf text;
	struct json_writer w;

	buf_init(&text, arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	write_choice(&w, "reasoningEffort", json_object_get(model, "supportedReasoningEfforts"), "reasoningEffort");
	write_choice(&w, "serviceTier", json_object_get(model, "serviceTiers"), "id");
	jw_array_end(&w);
	return buf_str(&text);
}

static void list_models(const json_t *data, struct agent_event *event, struct arena *arena)
{
	struct agent_model *models = ARENA_ARRAY(arena, struct agent_model, json_array_size(data));
	size_t i;
	const json_t *model;

	json_array_foreach (data, i, model) {
		struct str id = json_member_str(model, "id");

		if (event->model_count == LIMIT_CODEX_MODELS)
			break;
		if (id.p == NULL || id.n == 0 || id.n > LIMIT_CODEX_NAME_BYTES ||
			json_is_true(json_object_get(model, "hidden")))
			continue;
		models[event->model_count++] = (struct agent_model){.id = str_dup(arena, id),
			.label = str_dup(arena, json_member_str(model, "displayName")),
			.is_default = json_is_true(json_object_get(model, "isDefault")),
			.options = model_options(model, arena)};
	}
	event->models = models;
}

static void configured_models(const struct provider_instance *instance, struct agent_event *event, struct arena *arena)
{
	struct agent_model *models = ARENA_ARRAY(arena, struct agent_model, instance->model_count);

	for (size_t i = 0; i < instance->model_count; i++)
		models[i].id = instance->models[i];
	event->models = models;
	event->model_count = instance->model_count;
}

void codex_opened(struct codex *codex, const json_t *models, struct agent_out *out)
{
	struct agent_event *event = agent_out_event(out, EVENT_MODELS);

	if (codex->instance->model_count > 0)
		configured_models(codex->instance, event, out->arena);
	else
		list_models(models, event, out->arena);
	event = agent_out_event(out, EVENT_OPENED);
	codex->phase = CODEX_OPEN;
	event->native = str_dup(out->arena, codex->thread);
	event->is_resumed = codex->is_resumed;
	event->caps = &driver_codex.caps;
	event->program_version = str_dup(out->arena, codex->program_version);
}

/* ---- the end ---- */

/* Everything that waits for the program ends: nothing more will be heard of it. */
static void end_all(struct codex *codex, enum agent_status turn_status, struct agent_failure failure,
	struct agent_out *out)
{
	struct rpc_call call;

	codex->phase = CODEX_DEAD;
	while (rpc_expire(&codex->rpc, INT64_MAX, out->arena, &call))
		if (call.method == CALL_STEER)
			codex_refuse(call.note, failure, out);
	if (codex->turn_phase != TURN_NONE)
		codex_turn_ended(codex, turn_status, &failure, STR_NONE, false, out);
	else
		codex_items_end(codex, AGENT_CANCELLED, false, out);
	codex_asks_end(codex, out);
}

static void failed(enum agent_event_kind kind, struct agent_failure failure, struct agent_out *out)
{
	struct agent_event *event = agent_out_event(out, kind);

	event->failure = failure;
}

static void break_off(struct codex *codex, enum agent_status turn_status, struct agent_failure failure,
	struct agent_out *out)
{
	bool was_opening = codex->phase == CODEX_OPENING;

	if (codex->phase == CODEX_DEAD)
		return;
	failure.message = str_dup(out->arena, failure.message);
	end_all(codex, turn_status, failure, out);
	failed(was_opening ? EVENT_OPEN_FAILED : EVENT_BROKEN, failure, out);
	out->kills = true;
}

void codex_break(struct codex *codex, struct agent_failure failure, struct agent_out *out)
{
	break_off(codex, AGENT_FAILED, failure, out);
}

static void exited(struct agent *agent, const struct agent_exit *exit, struct agent_out *out)
{
	struct codex *codex = codex_of(agent);
	struct agent_failure failure = exit_failure(exit, out->arena);
	int64_t phase = codex->phase;

	if (phase == CODEX_DEAD)
		return;
	end_all(codex, phase == CODEX_CLOSING ? AGENT_INTERRUPTED : AGENT_FAILED, failure, out);
	if (phase == CODEX_NEW || phase == CODEX_OPENING)
		failed(EVENT_OPEN_FAILED, failure, out);
	out->kills = exit->is_stdout_only;
}

void codex_close_stdin(struct codex *codex, int64_t now, struct agent_out *out)
{
	if (codex->has_closed_stdin)
		return;
	codex->has_closed_stdin = true;
	codex->close_due_at = now + LIMIT_CODEX_EXIT_MS;
	out->ends_stdin = true;
}

/* ---- orders ---- */

static void refuse(const struct agent_order *order, const char *why, struct agent_out *out)
{
	codex_refuse(order->key, agent_failure_of(CODE_invalid_request, str_of(why)), out);
}

static void order_turn(struct codex *codex, const struct agent_order *order, int64_t now, struct agent_out *out)
{
	if (codex->phase != CODEX_OPEN || codex->turn_phase != TURN_NONE) {
		/* The program would steer the turn that runs. */
		refuse(order, "a turn begins in an open session without a running turn", out);
		return;
	}
	codex->turn_phase = TURN_SENT;
	codex->turn_base = codex->total;
	codex_call_send(codex, CALL_TURN, order->key, order, now, out);
}

static void order_steer(struct codex *codex, const struct agent_order *order, int64_t now, struct agent_out *out)
{
	if (codex->phase != CODEX_OPEN || codex->turn_phase != TURN_RUNNING || codex->is_interrupt_sent)
		refuse(order, "there is no running turn to steer", out);
	else if (codex->rpc.call_count >= LIMIT_CODEX_CALLS)
		refuse(order, "too many messages wait for an answer of codex", out);
	else
		codex_call_send(codex, CALL_STEER, order->key, order, now, out);
}

/* A process that the operating system holds read-only stays so; the program's own sandbox cannot replace it. */
static void order_select(struct codex *codex, const struct agent_order *order, struct agent_out *out)
{
	bool is_reading = order->runtime == RUNTIME_READ_ONLY || order->interaction == INTERACTION_PLAN;

	if (codex->phase != CODEX_OPEN || codex->turn_phase != TURN_NONE) {
		refuse(order, "model and modes change between turns of an open session", out);
		return;
	}
	if (codex->is_confined && !is_reading) {
		refuse(order, "this session is held read-only: another mode needs a new one", out);
		return;
	}
	codex->selected.runtime = order->runtime;
	codex->selected.interaction = order->interaction;
	if (order->model.p != NULL)
		state_text(&codex->selected.model, order->model);
	select_options(codex, order->model_options);
	agent_out_event(out, EVENT_SELECTED)->key = str_dup(out->arena, order->key);
}

static void order_close(struct codex *codex, int64_t now, struct agent_out *out)
{
	if (codex->phase == CODEX_DEAD || codex->phase == CODEX_CLOSING)
		return;
	if (codex->turn_phase == TURN_NONE) {
		codex->phase = CODEX_CLOSING;
		codex_close_stdin(codex, now, out);
		return;
	}
	codex->phase = CODEX_CLOSING;
	codex->close_due_at = now + LIMIT_CODEX_CLOSE_TURN_MS;
	codex_interrupt(codex, now, out);
}

static void order(struct agent *agent, const struct agent_order *order, int64_t now, struct agent_out *out)
{
	struct codex *codex = codex_of(agent);

	switch (order->kind) {
	case ORDER_TURN:
		order_turn(codex, order, now, out);
		break;
	case ORDER_STEER:
		order_steer(codex, order, now, out);
		break;
	case ORDER_INTERRUPT:
		codex_interrupt(codex, now, out);
		break;
	case ORDER_ANSWER:
		if (codex_answer(codex, order, out) != 0)
			refuse(order, "codex does not wait for an answer to this request", out);
		break;
	case ORDER_SELECT:
		order_select(codex, order, out);
		break;
	case ORDER_CLOSE:
		order_close(codex, now, out);
		break;
	}
}

/* ---- what is heard ---- */

/* A message with more in it than is read. It may be the end of a command: whether one goes on in the background is not
 * known then. */
static void passed_over(struct codex *codex, struct agent_out *out)
{
	codex->has_passed_over = codex->turn_phase == TURN_RUNNING;
	codex_notice(codex, "warning", STR("Something that codex told was larger than what is read of it, and is missing here."),
		STR_NONE, out);
}

static void line(struct agent *agent, struct str text, int64_t now, struct agent_out *out)
{
	struct codex *codex = codex_of(agent);
	struct rpc_message message;

	if (codex->phase == CODEX_DEAD || codex->phase == CODEX_NEW)
		return;
	rpc_read(&codex->rpc, out->arena, text, &message);
	switch (message.kind) {
	case RPC_NOTHING:
		break;
	case RPC_OVERSIZE:
		passed_over(codex, out);
		break;
	case RPC_VIOLATION:
		codex_break(codex,
			agent_failure_of(CODE_protocol_violation, STR("codex wrote one line after the other that is no message")),
			out);
		break;
	case RPC_REQUEST:
		codex_asked(codex, &message, out);
		break;
	case RPC_NOTIFICATION:
		codex_notified(codex, message.method, message.params, now, out);
		break;
	case RPC_RESULT:
	case RPC_ERROR:
		codex_call_answered(codex, &message, now, out);
		break;
	}
}

/* ---- time ---- */

static int64_t due(const struct agent *agent)
{
	const struct codex *codex = (const struct codex *)agent;
	int64_t first = codex->close_due_at;
	int64_t answers = rpc_due(&codex->rpc);

	if (codex->phase == CODEX_DEAD)
		return 0;
	if (codex->has_closed_stdin) /* whoever cannot be written to need not answer */
		return first;
	if (codex->terminal_due_at != 0 && (first == 0 || codex->terminal_due_at < first))
		first = codex->terminal_due_at;
	if (answers != 0 && (first == 0 || answers < first))
		first = answers;
	return first;
}

static void close_later(struct codex *codex, int64_t now, struct agent_out *out)
{
	if (!codex->has_closed_stdin) {
		codex_close_stdin(codex, now, out);
		return;
	}
	codex->close_due_at = 0;
	out->kills = true;
}

static void tick(struct agent *agent, int64_t now, struct agent_out *out)
{
	struct codex *codex = codex_of(agent);
	int64_t first = due(agent);

	if (first == 0 || now < first)
		return;
	if (codex->close_due_at != 0 && now >= codex->close_due_at)
		close_later(codex, now, out);
	else if (codex->terminal_due_at != 0 && now >= codex->terminal_due_at)
		break_off(codex, AGENT_INTERRUPTED,
			agent_failure_of(CODE_stalled, STR("codex did not end the turn that was interrupted")), out);
	else if (codex->phase == CODEX_OPENING)
		codex_break(codex, agent_failure_of(CODE_start_timeout, STR("codex did not open the session in time")), out);
	else
		codex_break(codex, agent_failure_of(CODE_timeout, STR("codex did not answer a request in time")), out);
}

const struct driver driver_codex = {
	.kind = "codex",
	.title = "Codex",
	.program = "codex",
	.caps =
		{
			.supportsModelSwitchInSession = true,
			.supportsProviderSwitchingViaHandoff = true,
			.supportsRuntimeModeSwitchInSession = true,
			.canCreateEmptyThread = true,
			.exposesNativeThreadId = true,
			.canResumeThread = true,
			.exposesNativeTurnId = true,
			.emitsTurnStarted = true,
			.emitsTurnCompleted = true,
			.supportsInterrupt = true,
			.supportsActiveSteering = true,
			.supportsQueuedMessages = true,
			.terminalStatusQuality = QUALITY_STRONG,
			.streamsAssistantText = true,
			.streamsReasoning = true,
			.streamsToolOutput = true,
			.emitsMessageCompleted = true,
			.exposesToolItemIds = true,
			.emitsToolStarted = true,
			.emitsToolCompleted = true,
			.emitsToolOutput = true,
			.supportsMcpTools = true,
			.supportsCommandApproval = true,
			.supportsFileChangeApproval = true,
			.supportsApplyPatchApproval = true,
			.approvalsHaveNativeRequestIds = true,
			.approvalCallbacksAreLiveOnly = true,
			.emitsPlanUpdated = true,
			.emitsTodoList = true,
			.emitsProposedPlan = true,
			.supportsStructuredQuestions = true,
			.acceptsDeveloperContext = true,
			.acceptsSyntheticUserContext = true,
			.canConsumeHandoffSummaries = true,
			.supportsDeltaHandoff = true,
			.supportsFullThreadHandoff = true,
			.nativeThreadIds = QUALITY_STRONG,
			.nativeTurnIds = QUALITY_STRONG,
			.nativeItemIds = QUALITY_STRONG,
			.nativeRequestIds = QUALITY_STRONG,
		},
	.launch = codex_launch,
	.create = create,
	.destroy = destroy,
	.save = codex_save,
	.load = codex_load,
	.begin = begin,
	.order = order,
	.line = line,
	.exited = exited,
	.due = due,
	.tick = tick,
};
