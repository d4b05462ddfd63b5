#include "providers/exit.h"

#include "base/limits.h"

/* Ends that are not the program's own. */
static const struct {
	const char *cause;
	enum provider_failure_code code;
	const char *message;
} causes[] = {
	{"deadline", CODE_timeout, "the session reached the end of its time"},
	{"line_too_long", CODE_protocol_violation, "the program wrote a line that is too long"},
	{"lost", CODE_connection_lost, "nobody knows how the program ended"},
	{"spawn_failed", CODE_spawn_failed, "the program could not be started"},
	{"stalled", CODE_stalled, "the program was silent for too long in the middle of its turn"},
	{"start_timeout", CODE_start_timeout, "the program wrote nothing"},
	{"stdout_closed", CODE_stdout_closed, "the program closed its output"},
};

#define CAUSES (sizeof(causes) / sizeof(causes[0]))

static size_t find_cause(const struct agent_exit *exit)
{
	struct str cause = exit->is_stdout_only ? STR("stdout_closed") : exit->cause;
	size_t i = 0;

	while (i < CAUSES && !str_eq(cause, str_of(causes[i].cause)))
		i++;
	return i;
}

enum provider_failure_code exit_code_of(const struct agent_exit *exit)
{
	size_t i = find_cause(exit);

	return i < CAUSES ? causes[i].code : CODE_process_exit;
}

struct str exit_last_words(const struct agent_exit *exit)
{
	struct str text = str_trim(exit->stderr_tail);
	const char *end = text.n > 0 ? memrchr(text.p, '\n', text.n) : NULL;

	if (end != NULL)
		text = (struct str){end + 1, text.n - (size_t)(end + 1 - text.p)};
	return (struct str){text.p == NULL ? "" : text.p, utf8_cut(text, LIMIT_AGENT_LAST_WORDS_BYTES)};
}

struct agent_failure exit_failure(const struct agent_exit *exit, struct arena *arena)
{
	struct str words = exit_last_words(exit);
	const char *colon = words.n > 0 ? ": " : "";
	size_t i = find_cause(exit);

	if (i < CAUSES)
		return agent_failure_of(causes[i].code, str_printf(arena, "%s%s%.*s", causes[i].message, colon, STRF(words)));
	if (exit->code < 0)
		return agent_failure_of(CODE_process_exit,
			str_printf(arena, "the program was ended by signal %d%s%.*s", exit->signal, colon, STRF(words)));
	return agent_failure_of(CODE_process_exit,
		str_printf(arena, "the program ended with code %d%s%.*s", exit->code, colon, STRF(words)));
}
