/* Lines from the program, by their type. */
#include "providers/claude/claude.h"

#include "base/limits.h"

#include <inttypes.h>

static void on_lifecycle(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct str state = json_member_str(line, "state");

	if (str_eq(state, STR("started")) || str_eq(state, STR("completed")))
		claude_steered(c, json_member_str(line, "command_uuid"), out);
}

static const struct {
	const char *type;
	void (*read)(struct claude *c, const json_t *line, struct agent_out *out);
} rows[] = {
	{"assistant", claude_assistant},
	{"command_lifecycle", on_lifecycle},
	{"control_cancel_request", claude_control_cancel},
	{"control_request", claude_control_request},
	{"control_response", claude_control_response},
	{"rate_limit_event", claude_rate_limit},
	{"result", claude_result},
	{"stream_event", claude_stream},
	{"system", claude_system},
	{"user", claude_user},
};

/* Nothing but JSON was ever seen on stdout; a line of something else may be a library's, a row of them is no protocol. */
static void unreadable(struct claude *c, struct agent_out *out)
{
	if (++c->bad_lines >= LIMIT_CLAUDE_BAD_LINES)
		claude_broken(c, out,
			str_printf(out->arena, "%" PRId64 " lines in a row that are no JSON objects", c->bad_lines));
	else if (c->bad_lines == 1)
		claude_notice(c, out, "warning", STR("The agent wrote a line that is not of its protocol; it was skipped."));
}

void claude_line(struct agent *agent, struct str text, int64_t now, struct agent_out *out)
{
	struct claude *c = (struct claude *)(void *)agent;
	struct json_error error;
	json_t *line;
	struct str type;

	c->now = now;
	if (c->phase == PHASE_DEAD)
		return;
	line = json_read(text, &error);
	if (line == NULL && error.problem == JSON_OVER_LIMIT) {
		/* Well-formed as far as it goes: the output of a tool. Its end is told at the end of the turn. */
		claude_notice(c, out, "warning", STR("The agent wrote a message that is too large to be read; it was skipped."));
		return;
	}
	if (!json_is_object(line)) {
		json_decref(line);
		unreadable(c, out);
		return;
	}
	c->bad_lines = 0;
	type = json_member_str(line, "type");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (str_eq(type, str_of(rows[i].type)))
			rows[i].read(c, line, out);
	json_decref(line);
}
