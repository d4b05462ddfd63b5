/* Lines from the program, by their type. */
#include "providers/pi/pi.h"

#include "base/limits.h"

#include <inttypes.h>

static void on_title(struct pi *p, const json_t *line, struct agent_out *out)
{
	struct str name = json_member_str(line, "name");

	(void)p;
	if (name.n > 0)
		agent_out_event(out, EVENT_TITLE)->text = str_dup(out->arena, name);
}

/* One of ours may have left the gate open; what others do wrong is only told. */
static void on_extension_error(struct pi *p, const json_t *line, struct agent_out *out)
{
	struct str path = json_member_str(line, "extensionPath");
	struct str error = json_member_str(line, "error");
	const char *slash = path.n == 0 ? NULL : memrchr(path.p, '/', path.n);
	struct str file = slash == NULL ? path : (struct str){slash + 1, path.n - (size_t)(slash + 1 - path.p)};

	if (str_starts(file, STR(PI_BRIDGE_PREFIX)) && str_ends(file, STR(PI_BRIDGE_SUFFIX)))
		pi_broken(p, out, CODE_protocol_violation, str_printf(out->arena, "the bridge inside Pi failed: %.*s", STRF(error)));
	else if (p->in_turn)
		pi_notice(p, out, "warning", str_printf(out->arena, "An extension failed: %.*s", STRF(error)));
}

static const struct {
	const char *type;
	void (*read)(struct pi *p, const json_t *line, struct agent_out *out);
} rows[] = {
	{"agent_settled", pi_settled},
	{"agent_start", pi_agent_start},
	{"auto_retry_end", pi_retry_end},
	{"auto_retry_start", pi_retry_start},
	{"compaction_end", pi_compaction_end},
	{"compaction_start", pi_compaction_start},
	{"extension_error", on_extension_error},
	{"extension_ui_request", pi_dialog},
	{"message_end", pi_message_end},
	{"message_start", pi_message_start},
	{"message_update", pi_message_update},
	{"response", pi_response},
	{"session_info_changed", on_title},
	{"tool_execution_end", pi_tool_end},
	{"tool_execution_start", pi_tool_start},
	{"tool_execution_update", pi_tool_update},
};

/* An extension may print what it likes; a row of such lines is no protocol. */
static void unreadable(struct pi *p, struct agent_out *out)
{
	if (++p->bad_lines >= LIMIT_PI_BAD_LINES)
		pi_broken(p, out, CODE_protocol_violation,
			str_printf(out->arena, "%" PRId64 " lines in a row that are no JSON objects", p->bad_lines));
	else if (p->bad_lines == 1 && p->in_turn)
		pi_notice(p, out, "warning", STR("The agent wrote a line that is not of its protocol; it was skipped."));
}

/* At the end of a run Pi repeats all its messages, in a line that may be longer than we read, and that we do not need. */
static void too_large(struct pi *p, struct str text, struct agent_out *out)
{
	if (!p->in_turn || str_starts(text, STR("{\"type\":\"agent_end\"")) || str_starts(text, STR("{\"type\":\"turn_end\"")))
		return;
	pi_notice(p, out, "warning", STR("The agent wrote a message that is too large to be read; it was skipped."));
}

void pi_line(struct agent *agent, struct str text, int64_t now, struct agent_out *out)
{
	struct pi *p = (struct pi *)(void *)agent;
	struct json_error error;
	json_t *line;
	struct str type;

	p->now = now;
	if (p->phase == PHASE_DEAD)
		return;
	line = json_read(text, &error);
	if (line == NULL && error.problem == JSON_OVER_LIMIT) {
		too_large(p, text, out);
		return;
	}
	if (!json_is_object(line)) {
		json_decref(line);
		unreadable(p, out);
		return;
	}
	p->bad_lines = 0;
	type = json_member_str(line, "type");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (str_eq(type, str_of(rows[i].type)))
			rows[i].read(p, line, out);
	json_decref(line);
}
