/* Driver claudeAgent: the table, orders, time, and the end of the process. */
#include "providers/claude/claude.h"

#include "base/limits.h"
#include "providers/due.h"
#include "providers/exit.h"

#include <stdlib.h>

static char *text_dup(struct str text)
{
	return text.p == NULL ? NULL : strndup(text.p, text.n);
}

static struct agent *claude_create(const struct agent_config *config)
{
	struct claude *c = calloc(1, sizeof(*c));

	if (c == NULL)
		abort();
	claude_state_init(c);
	c->agent.driver = &driver_claude;
	c->instance = config->instance;
	c->mcp_url = text_dup(config->mcp_url);
	c->instructions = text_dup(config->instructions);
	c->is_resumed = config->resume.p != NULL;
	c->has_total = !c->is_resumed;
	SET(c, native, c->is_resumed ? config->resume : config->fresh);
	SET(c, seed, config->fresh);
	SET(c, model, config->model);
	SET(c, effort, claude_effort(config->model_options));
	c->runtime = config->runtime;
	c->interaction = config->interaction;
	c->is_confined = config->is_confined;
	return &c->agent;
}

static void claude_destroy(struct agent *agent)
{
	struct claude *c = (struct claude *)(void *)agent;

	if (c == NULL)
		return;
	claude_state_finish(c);
	free(c->mcp_url);
	free(c->instructions);
	free(c);
}

static void claude_begin(struct agent *agent, int64_t now, struct agent_out *out)
{
	struct claude *c = (struct claude *)(void *)agent;

	c->now = now;
	c->phase = PHASE_OPENING;
	c->open_by = now + LIMIT_CLAUDE_OPEN_MS;
	claude_write_initialize(c, out);
}

/* ---- the handshake's answer ---- */

static struct str effort_options(struct arena *arena, const json_t *model)
{
	const json_t *levels = json_object_get(model, "supportedEffortLevels");

	if (json_array_size(levels) == 0)
		return STR_NONE;
	return str_printf(arena, "[{\"id\":\"effort\",\"type\":\"select\",\"choices\":%.*s}]",
		STRF(json_canonical(arena, levels)));
}

static void advertised_models(const json_t *response, struct agent_event *event, struct arena *arena)
{
	const json_t *models = json_object_get(response, "models");
	size_t count = json_array_size(models);
	struct agent_model *all = ARENA_ARRAY(arena, struct agent_model, count);
	const json_t *model;
	size_t i;

	json_array_foreach(models, i, model) {
		all[i].id = str_dup(arena, json_member_str(model, "value"));
		all[i].label = str_dup(arena, json_member_str(model, "displayName"));
		all[i].is_default = str_eq(all[i].id, STR("default"));
		all[i].options = effort_options(arena, model);
	}
	event->models = all;
	event->model_count = count;
}

static void configured_models(const struct provider_instance *instance, struct agent_event *event, struct arena *arena)
{
	struct agent_model *all = ARENA_ARRAY(arena, struct agent_model, instance->model_count);

	for (size_t i = 0; i < instance->model_count; i++)
		all[i] = (struct agent_model){.id = instance->models[i], .is_default = i == 0};
	event->models = all;
	event->model_count = instance->model_count;
}

void claude_opened(struct claude *c, const json_t *response, struct agent_out *out)
{
	struct agent_event *models = agent_out_event(out, EVENT_MODELS);
	struct agent_event *opened = agent_out_event(out, EVENT_OPENED);

	if (c->instance->model_count > 0)
		configured_models(c->instance, models, out->arena);
	else
		advertised_models(response, models, out->arena);
	opened->native = str_dup(out->arena, c->native);
	opened->is_resumed = c->is_resumed;
	opened->caps = &driver_claude.caps;
	opened->program_version = str_dup(out->arena, json_member_str(response, "claude_code_version"));
	c->phase = PHASE_READY;
	c->open_by = 0;
}

/* ---- orders ---- */

static void turn(struct claude *c, const struct agent_order *order, struct agent_out *out)
{
	bool is_taken_over = c->in_turn && c->turn.n == 0;

	if (c->phase != PHASE_READY || c->closes || (c->in_turn && !is_taken_over)) {
		claude_refuse(out, order->key, CODE_invalid_request, STR("a turn is for an open session between two turns"));
		return;
	}
	/* The program began a turn by itself in the same moment: it reads our message in that one, or in the next. */
	if (is_taken_over)
		claude_end_turn(c, AGENT_COMPLETED, NULL, STR_NONE, out);
	SET(c, turn, claude_write_message(c, out, order));
	c->in_turn = true;
	if (is_taken_over)
		claude_turn_start(c, out);
}

/* Read by the program after the call that runs; where no call follows, as a message of its own, and the turn goes on. */
static void steer(struct claude *c, const struct agent_order *order, struct agent_out *out)
{
	struct str id;

	if (!c->in_turn || c->is_interrupted || json_object_size(c->steers) >= LIMIT_CLAUDE_STEERS) {
		claude_refuse(out, order->key, CODE_invalid_request, STR("no turn runs that can be steered"));
		return;
	}
	id = claude_write_message(c, out, order);
	json_object_setn_new(c->steers, id.p, id.n, json_stringn(order->key.p, order->key.n));
}

static void interrupt(struct claude *c, struct agent_out *out)
{
	if (!c->in_turn || c->is_interrupted)
		return;
	c->is_interrupted = true;
	c->interrupt_by = c->now + LIMIT_CLAUDE_INTERRUPT_MS;
	claude_write_interrupt(c, out);
}

/* With its input closed the program ends, but not before its turn does. */
static void shut(struct claude *c, struct agent_out *out)
{
	c->closes = true;
	c->close_by = c->now + LIMIT_CLAUDE_CLOSE_MS;
	if (c->in_turn) {
		interrupt(c, out);
		return;
	}
	c->is_shut = true;
	out->ends_stdin = true;
}

static void claude_order(struct agent *agent, const struct agent_order *order, int64_t now, struct agent_out *out)
{
	struct claude *c = (struct claude *)(void *)agent;

	c->now = now;
	switch (order->kind) {
	case ORDER_TURN:
		turn(c, order, out);
		break;
	case ORDER_STEER:
		steer(c, order, out);
		break;
	case ORDER_INTERRUPT:
		interrupt(c, out);
		break;
	case ORDER_ANSWER:
		claude_answer(c, order, out);
		break;
	case ORDER_SELECT:
		claude_select(c, order, out);
		break;
	case ORDER_CLOSE:
		shut(c, out);
		break;
	}
}

/* ---- the end of the process ---- */

/* Some reasons why it does not start are known by their words. */
static struct agent_failure end_failure(const struct agent_exit *exit, struct arena *arena)
{
	struct agent_failure known = claude_start_failure(exit_last_words(exit));

	return exit_code_of(exit) == CODE_process_exit && !str_eq(known.code, STR("process_exit")) ? known
												     : exit_failure(exit, arena);
}

static void claude_exited(struct agent *agent, const struct agent_exit *exit, struct agent_out *out)
{
	struct claude *c = (struct claude *)(void *)agent;
	struct agent_failure failure = end_failure(exit, out->arena);
	bool is_wanted = c->closes || c->is_interrupted;

	if (c->phase == PHASE_NEW || c->phase == PHASE_OPENING)
		agent_out_event(out, EVENT_OPEN_FAILED)->failure = failure;
	c->phase = PHASE_DEAD;
	c->open_by = c->close_by = c->interrupt_by = 0;
	c->is_shut = true;
	claude_controls_refuse(c, out);
	json_object_clear(c->tasks); /* nothing goes on in the background */
	if (c->in_turn)
		claude_end_turn(c, is_wanted ? AGENT_INTERRUPTED : AGENT_FAILED, is_wanted ? NULL : &failure, STR_NONE, out)
			->is_broken = str_eq(failure.code, STR("unknown_session"));
	claude_asks_close(c, out);
	claude_tools_close(c, AGENT_INTERRUPTED, out);
}

/* ---- time ---- */

static int64_t claude_due(const struct agent *agent)
{
	const struct claude *c = (const struct claude *)(const void *)agent;

	if (c->phase == PHASE_DEAD)
		return 0;
	return due_earlier(due_earlier(c->open_by, c->interrupt_by), due_earlier(c->close_by, claude_controls_due(c)));
}

/* It does not listen: what is left to say is said when it is gone. */
static void give_up(struct claude *c, struct agent_out *out)
{
	c->open_by = c->interrupt_by = c->close_by = 0;
	out->kills = true;
}

static void claude_tick(struct agent *agent, int64_t now, struct agent_out *out)
{
	struct claude *c = (struct claude *)(void *)agent;

	c->now = now;
	if (c->phase == PHASE_DEAD)
		return;
	claude_controls_expire(c, out);
	if (due_passed(&c->open_by, now)) {
		agent_out_event(out, EVENT_OPEN_FAILED)->failure =
			agent_failure_of(CODE_start_timeout, STR("the program did not answer its first line"));
		c->phase = PHASE_DEAD;
		give_up(c, out);
	}
	if (due_passed(&c->interrupt_by, now))
		give_up(c, out);
	if (!due_passed(&c->close_by, now))
		return;
	if (c->is_shut) {
		give_up(c, out);
	} else {
		c->close_by = now + LIMIT_CLAUDE_CLOSE_MS;
		out->ends_stdin = c->is_shut = true;
	}
}

const struct driver driver_claude = {
	.kind = "claudeAgent",
	.title = "Claude Code",
	.program = "claude",
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
		.supportsFileReadApproval = true,
		.supportsFileChangeApproval = true,
		.approvalsHaveNativeRequestIds = true,
		.approvalCallbacksAreLiveOnly = true,
		.approvalsCanOriginateFromSubagents = true,
		.emitsTodoList = true,
		.emitsProposedPlan = true,
		.supportsStructuredQuestions = true,
		.supportsSubagents = true,
		.emitsSubagentLifecycle = true,
		.acceptsSystemContext = true,
		.acceptsSyntheticUserContext = true,
		.canConsumeHandoffSummaries = true,
		.supportsFullThreadHandoff = true,
		.nativeThreadIds = QUALITY_STRONG,
		.nativeTurnIds = QUALITY_WEAK,
		.nativeItemIds = QUALITY_STRONG,
		.nativeRequestIds = QUALITY_STRONG,
	},
	.check = claude_check,
	.launch = claude_launch,
	.create = claude_create,
	.destroy = claude_destroy,
	.save = claude_save,
	.load = claude_load,
	.begin = claude_begin,
	.order = claude_order,
	.line = claude_line,
	.exited = claude_exited,
	.due = claude_due,
	.tick = claude_tick,
};
