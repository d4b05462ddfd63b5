/* Driver pi: the table, orders, time, and the end of the process. */
#include "providers/pi/pi.h"

#include "base/limits.h"
#include "providers/due.h"
#include "providers/exit.h"

#include <stdlib.h>

/* Texts of the engine are kept as they are, when there is room for them in the state. */
static void keep(struct str *field, struct str text, size_t most)
{
	if (text.n > 0 && state_cost(text) <= most)
		state_text(field, text);
}

static struct agent *create(const struct agent_config *config)
{
	struct pi *p = calloc(1, sizeof(*p));

	if (p == NULL)
		abort();
	pi_state_init(p);
	p->agent.driver = &driver_pi;
	p->instance = config->instance;
	p->has_resume = config->resume.p != NULL;
	keep(&p->url, config->mcp_url, LIMIT_PI_INSTRUCTION_BYTES);
	keep(&p->instructions, config->instructions, LIMIT_PI_INSTRUCTION_BYTES);
	keep(&p->workspace, config->cwd, LIMIT_PI_INSTRUCTION_BYTES);
	p->runtime = config->runtime;
	p->interaction = config->interaction;
	p->is_confined = config->is_confined;
	return &p->agent;
}

static void destroy(struct agent *agent)
{
	struct pi *p = (struct pi *)(void *)agent;

	if (p == NULL)
		return;
	pi_state_finish(p);
	free(p);
}

static void begin(struct agent *agent, int64_t now, struct agent_out *out)
{
	struct pi *p = (struct pi *)(void *)agent;

	p->now = now;
	p->phase = PHASE_OPENING;
	p->open_by = now + LIMIT_PI_OPEN_MS;
	pi_write_begin(p, out);
}

/* ---- orders ---- */

/* Pi reads no files that a message names: the model is told where they are. */
static struct str text_of(struct arena *arena, const struct agent_order *order)
{
	struct str text = order->text;

	for (size_t i = 0; i < order->attachment_count; i++)
		text = str_printf(arena, "%.*s%sAttached file: %.*s", STRF(text), i == 0 ? "\n\n" : "\n",
			STRF(order->attachments[i].path));
	return text;
}

/* A run that an extension began takes the message as its next one. */
static void turn(struct pi *p, const struct agent_order *order, struct agent_out *out)
{
	bool is_taken_over = p->in_turn && p->is_unasked;
	struct command c;

	if (p->phase != PHASE_READY || p->closes || (p->in_turn && !is_taken_over)) {
		pi_refuse(out, order->key, CODE_invalid_request, STR("a turn is for an open session between two turns"));
		return;
	}
	if (!pi_command(p, &c, "prompt", out)) {
		pi_refuse(out, order->key, CODE_invalid_request, STR("the program has not answered earlier commands"));
		return;
	}
	jw_kstr(&c.w, "message", text_of(out->arena, order));
	jw_ktext(&c.w, "streamingBehavior", "followUp");
	pi_command_end(&c);
	if (is_taken_over)
		pi_end_turn(p, AGENT_COMPLETED, NULL, out);
	p->in_turn = true;
}

static void steer(struct pi *p, const struct agent_order *order, struct agent_out *out)
{
	struct command c;

	if (!p->in_turn || !p->is_started || p->is_interrupted || !pi_command(p, &c, "steer", out)) {
		pi_refuse(out, order->key, CODE_invalid_request, STR("no turn runs that can be steered"));
		return;
	}
	jw_kstr(&c.w, "message", text_of(out->arena, order));
	state_row_text(c.row, "order", order->key);
	pi_command_end(&c);
}

/* A dialog that stands open would hold the abort for ever: it goes first. */
static void interrupt(struct pi *p, struct agent_out *out)
{
	if (!p->in_turn || p->is_interrupted)
		return;
	p->is_interrupted = true;
	p->interrupt_by = p->now + LIMIT_PI_INTERRUPT_MS;
	pi_asks_close(p, true, out);
	if (p->is_started)
		pi_write_abort(p, out);
}

/* With its input closed the program ends at once, also in a turn: that is interrupted first. */
static void shut(struct pi *p, struct agent_out *out)
{
	p->closes = true;
	p->close_by = p->now + LIMIT_PI_CLOSE_MS;
	if (p->in_turn) {
		interrupt(p, out);
		return;
	}
	p->is_shut = true;
	out->ends_stdin = true;
}

static void order(struct agent *agent, const struct agent_order *order, int64_t now, struct agent_out *out)
{
	struct pi *p = (struct pi *)(void *)agent;

	p->now = now;
	switch (order->kind) {
	case ORDER_TURN:
		turn(p, order, out);
		break;
	case ORDER_STEER:
		steer(p, order, out);
		break;
	case ORDER_INTERRUPT:
		interrupt(p, out);
		break;
	case ORDER_ANSWER:
		pi_answer(p, order, out);
		break;
	case ORDER_SELECT:
		pi_select(p, order, out);
		break;
	case ORDER_CLOSE:
		shut(p, out);
		break;
	}
}

/* ---- the end of the process ---- */

static void exited(struct agent *agent, const struct agent_exit *exit, struct agent_out *out)
{
	struct pi *p = (struct pi *)(void *)agent;
	struct agent_failure failure = exit_failure(exit, out->arena);
	bool is_wanted = p->closes || p->is_interrupted;

	if (p->phase == PHASE_NEW || p->phase == PHASE_OPENING)
		agent_out_event(out, EVENT_OPEN_FAILED)->failure = failure;
	p->phase = PHASE_DEAD;
	p->open_by = p->close_by = p->interrupt_by = 0;
	p->is_shut = true;
	pi_controls_refuse(p, out);
	if (p->in_turn)
		pi_end_turn(p, is_wanted ? AGENT_INTERRUPTED : AGENT_FAILED, is_wanted ? NULL : &failure, out);
}

/* ---- time ---- */

static int64_t due(const struct agent *agent)
{
	const struct pi *p = (const struct pi *)(const void *)agent;

	if (p->phase == PHASE_DEAD)
		return 0;
	return due_earlier(due_earlier(p->open_by, p->interrupt_by), due_earlier(p->close_by, pi_controls_due(p)));
}

/* It does not listen: what is left to say is said when it is gone. */
static void give_up(struct pi *p, struct agent_out *out)
{
	p->open_by = p->interrupt_by = p->close_by = 0;
	out->kills = true;
}

static void tick(struct agent *agent, int64_t now, struct agent_out *out)
{
	struct pi *p = (struct pi *)(void *)agent;

	p->now = now;
	if (p->phase == PHASE_DEAD)
		return;
	pi_controls_expire(p, out);
	if (due_passed(&p->open_by, now)) {
		pi_open_failed(p, CODE_start_timeout, STR("the program or its bridge did not answer"), out);
		give_up(p, out);
	}
	if (due_passed(&p->interrupt_by, now))
		give_up(p, out);
	if (!due_passed(&p->close_by, now))
		return;
	if (p->is_shut) {
		give_up(p, out);
	} else {
		p->close_by = now + LIMIT_PI_CLOSE_MS;
		out->ends_stdin = p->is_shut = true;
	}
}

const struct driver driver_pi = {
	.kind = "pi",
	.title = "Pi",
	.program = "pi",
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
		.streamsToolOutput = true,
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
		.supportsStructuredQuestions = true,
		.acceptsSystemContext = true,
		.acceptsSyntheticUserContext = true,
		.canConsumeHandoffSummaries = true,
		.supportsFullThreadHandoff = true,
		.nativeThreadIds = QUALITY_STRONG,
		.nativeItemIds = QUALITY_STRONG,
		.nativeRequestIds = QUALITY_STRONG,
	},
	.check = pi_check,
	.launch = pi_launch,
	.create = create,
	.destroy = destroy,
	.save = pi_save,
	.load = pi_load,
	.begin = begin,
	.order = order,
	.line = pi_line,
	.exited = exited,
	.due = due,
	.tick = tick,
};
