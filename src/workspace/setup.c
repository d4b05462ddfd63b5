/* The setup script of a project, run in a work tree. */
#include "workspace/private.h"

#include "base/limits.h"

#include <errno.h>

static int judge(const struct setup_order *order, const struct program_end *end, int64_t timeout_ms,
	struct failure *f)
{
	if (end->start_error == ENOSPC || end->start_error == EMFILE ||
		end->start_error == EAGAIN) {
		errno = end->start_error;
		return fault_errno(f, "start", "the setup script");
	}
	if (end->start_error != 0)
		return fault(f, FAULT_SETUP_FAILED,
			"The setup script could not be started in %.*s.", STRF(order->path));
	if (end->stop == STOP_CANCELLED)
		return fault(f, FAULT_CANCELLED, "It was asked to stop during the setup script.");
	if (end->stop == STOP_TIMED_OUT)
		return fault(f, FAULT_TIMED_OUT, "The setup script took longer than %lld ms.",
			(long long)timeout_ms);
	if (end->signal != 0)
		return fault(f, FAULT_SETUP_FAILED, "The setup script was ended by signal %d.",
			end->signal);
	if (end->exit_code != 0)
		return fault(f, FAULT_SETUP_FAILED, "The setup script ended with exit code %d.",
			end->exit_code);
	return 0;
}

int setup_run(const struct workspace_call *call, const struct setup_order *order,
	struct setup_result *out, struct failure *f)
{
	const char **argv = ARENA_ARRAY(call->arena, const char *, order->argc + 4);
	const char **env = ARENA_ARRAY(call->arena, const char *, order->env_count + 1);
	struct program program = {
		.argv = argv,
		.cwd = str_z(call->arena, order->path),
		.env = env,
		.input = -1,
		.timeout_ms = order->timeout_ms == 0 ? LIMIT_SETUP_MS : order->timeout_ms,
		.max_out = LIMIT_SETUP_TAIL_BYTES,
		.is_tail_only = true,
	};
	struct program_end end;

	for (size_t i = 0; i < order->argc; i++)
		argv[i] = str_z(call->arena, order->argv[i]);
	if (order->argc == 0) {
		argv[0] = "sh";
		argv[1] = "-c";
		argv[2] = str_z(call->arena, order->script);
	}
	for (size_t i = 0; i < order->env_count; i++)
		env[i] = str_z(call->arena, order->env[i]);
	program_run(call, &program, &end);
	*out = (struct setup_result){end.exit_code, end.signal, end.out};
	return judge(order, &end, program.timeout_ms, f);
}
