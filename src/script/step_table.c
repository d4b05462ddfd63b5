/* Every step there is, in the order of the manual. */
#include "script/private.h"

#define HOUR_MS 3600000
#define DAY_MS (24 * (int64_t)HOUR_MS)
#define MEBIBYTE 1048576

static const char *const tool_statuses[] = {"completed", "failed", NULL};
static const char *const denials[] = {"end", "continue", NULL};
static const char *const streams[] = {"stdout", "stderr", NULL};

/* clang-format off */
const struct step_kind step_kinds[] = {
	{"text", false, {
		{"text", VALUE_TEXT, true},
		{"chunk", VALUE_INT, .min = 1, .max = MEBIBYTE, .fallback = 16},
		{"delay_ms", VALUE_INT, .max = HOUR_MS}},
		step_text, "stream text of the assistant, `chunk` characters at a time, `delay_ms` between them"},
	{"reasoning", false, {
		{"reasoning", VALUE_TEXT, true},
		{"chunk", VALUE_INT, .min = 1, .max = MEBIBYTE, .fallback = 16},
		{"delay_ms", VALUE_INT, .max = HOUR_MS}},
		step_reasoning, "stream a thought in the same way"},
	{"plan", false, {
		{"plan", VALUE_PLAN, true}},
		step_plan, "a plan; status is pending, in_progress or completed"},
	{"tool", true, {
		{"kind", VALUE_WORD, .words = tool_kinds, .fallback = TOOL_OTHER},
		{"title", VALUE_TEXT, true},
		{"output", VALUE_TEXT},
		{"output_bytes", VALUE_INT, .max = 64 * (int64_t)MEBIBYTE},
		{"status", VALUE_WORD, .words = tool_statuses},
		{"duration_ms", VALUE_INT, .max = HOUR_MS}},
		step_tool, "report a tool call and do nothing; `output_bytes` repeats the output up to that length"},
	{"run", false, {
		{"run", VALUE_TEXTS, true}},
		step_run, "run the program in the session's directory, wait, report output and exit code"},
	{"spawn", false, {
		{"spawn", VALUE_TEXTS, true}},
		step_spawn, "start the program in a session of its own and do not wait"},
	{"write_file", true, {
		{"path", VALUE_TEXT, true},
		{"text", VALUE_TEXT, true}},
		step_write_file, "write the file (and the folders it needs), report the change"},
	{"delete_file", false, {
		{"delete_file", VALUE_TEXT, true}},
		step_delete_file, "delete the file, report the change"},
	{"ask", true, {
		{"title", VALUE_TEXT, true},
		{"kind", VALUE_WORD, .words = tool_kinds, .fallback = TOOL_EXECUTE},
		{"on_deny", VALUE_WORD, .words = denials}},
		step_ask, "ask for permission and go on when it is given; a no ends the turn, or not"},
	{"question", true, {
		{"text", VALUE_TEXT, true},
		{"options", VALUE_TEXTS}},
		step_question, "ask a structured question; the answer is {{answer}}"},
	{"mcp", true, {
		{"tool", VALUE_TEXT, true},
		{"arguments", VALUE_JSON},
		{"save", VALUE_NAME},
		{"retry", VALUE_BOOL}},
		step_mcp, "call a tool of the MCP server that the session was given; its result is {{NAME.field}}"},
	{"sleep_ms", false, {
		{"sleep_ms", VALUE_INT, true, .max = DAY_MS}},
		step_sleep, "wait; cancelling ends it"},
	{"until_cancelled", false, {
		{"until_cancelled", VALUE_TRUE, true}},
		step_until_cancelled, "wait for session/cancel"},
	{"ignore_cancel", false, {
		{"ignore_cancel", VALUE_TRUE, true}},
		step_ignore_cancel, "from here to the end of the turn, cancelling has no effect"},
	{"until_steered", false, {
		{"until_steered", VALUE_TRUE, true}},
		step_until_steered, "wait for a steering message; it is {{steer}}"},
	{"usage", true, {
		{"input", VALUE_INT, .max = INT32_MAX},
		{"cached", VALUE_INT, .max = INT32_MAX},
		{"output", VALUE_INT, .max = INT32_MAX},
		{"reasoning", VALUE_INT, .max = INT32_MAX}},
		step_usage, "report tokens; several steps of a turn add up"},
	{"result", false, {
		{"result", VALUE_JSON, true}},
		step_result, "a message that is this value as JSON text"},
	{"result_text", false, {
		{"result_text", VALUE_TEXT, true}},
		step_result_text, "a message that is this text, in one piece"},
	{"fail", true, {
		{"code", VALUE_CODE, true, .min = INT32_MIN, .max = INT32_MAX, .words = fail_words},
		{"message", VALUE_TEXT},
		{"http", VALUE_INT, .min = 100, .max = 599}},
		step_fail, "end the prompt with an error; code is a JSON-RPC code or a word of the manual"},
	{"stop", false, {
		{"stop", VALUE_WORD, true, .words = stop_reasons}},
		step_stop, "end the turn: end_turn, max_tokens, max_turn_requests or refusal"},
	{"exit", false, {
		{"exit", VALUE_INT, true, .max = 255}},
		step_exit, "end the process now, with this code"},
	{"signal", false, {
		{"signal", VALUE_INT, true, .min = 1, .max = 64}},
		step_signal, "end the process now, by this signal"},
	{"hang", false, {
		{"hang", VALUE_TRUE, true}},
		step_hang, "neither read nor write any more, and stay alive"},
	{"raw", false, {
		{"raw", VALUE_BYTES, true}},
		step_raw, "write these bytes to stdout; \"\\xff\" is the byte FF"},
	{"flood", true, {
		{"lines", VALUE_INT, true, .min = 1, .max = 100000000},
		{"bytes", VALUE_INT, true, .min = 1, .max = 256 * (int64_t)MEBIBYTE},
		{"to", VALUE_WORD, .words = streams}},
		step_flood, "write so many lines of so many bytes: valid updates on stdout, plain text on stderr"},
	{"raw_flood", true, {
		{"lines", VALUE_INT, true, .min = 1, .max = 100000000},
		{"bytes", VALUE_INT, true, .min = 1, .max = 256 * (int64_t)MEBIBYTE},
		{"to", VALUE_WORD, .words = streams}},
		step_raw_flood, "the same with lines that are no JSON"},
	{"env", false, {
		{"env", VALUE_TEXT, true}},
		step_env, "say whether the variable is set, never its value"},
	{"cwd", false, {
		{"cwd", VALUE_TRUE, true}},
		step_cwd, "say the working directory"},
	{"remember", false, {
		{"remember", VALUE_PAIRS, true}},
		step_remember, "keep texts with the session, in its file"},
	{"recall", false, {
		{"recall", VALUE_TEXT, true}},
		step_recall, "say what is remembered under that key"},
};
/* clang-format on */
const size_t step_kind_count = sizeof(step_kinds) / sizeof(step_kinds[0]);

static const char *shape_of(enum value_kind kind)
{
	static const char *const shapes[] = {
		[VALUE_TRUE] = "true",
		[VALUE_BOOL] = "true|false",
		[VALUE_INT] = "N",
		[VALUE_WORD] = "WORD",
		[VALUE_TEXT] = "TEXT",
		[VALUE_BYTES] = "BYTES",
		[VALUE_NAME] = "NAME",
		[VALUE_TEXTS] = "[TEXT…]",
		[VALUE_PAIRS] = "{KEY: TEXT}",
		[VALUE_PLAN] = "[{content, status}…]",
		[VALUE_JSON] = "VALUE",
		[VALUE_CODE] = "CODE",
	};

	return shapes[kind];
}

static void write_step(struct buf *out, const struct step_kind *kind)
{
	buf_printf(out, "  %s: ", kind->name);
	if (!kind->is_mapping)
		buf_printf(out, "%s", shape_of(kind->fields[0].kind));
	for (size_t i = kind->is_mapping ? 0 : 1; kind->fields[i].kind != VALUE_END; i++)
		buf_printf(out, "%s%s", kind->is_mapping && i == 0 ? "{" : ", ", kind->fields[i].name);
	buf_printf(out, "%s\n      %s\n", kind->is_mapping ? "}" : "", kind->summary);
}

void script_write_steps(struct buf *out)
{
	for (size_t i = 0; i < step_kind_count; i++)
		write_step(out, &step_kinds[i]);
}
