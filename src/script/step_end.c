/* Steps that wait, end a turn or a process, or misbehave. */
#include "script/private.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- waiting ---- */

STEP(sleep)
{
	return turn_wait(turn, step_number(step, "sleep_ms"), NULL);
}

STEP(until_cancelled)
{
	(void)step;
	return turn_wait(turn, -1, NULL);
}

STEP(ignore_cancel)
{
	uint64_t stale;

	(void)step;
	(void)pthread_mutex_lock(&turn->agent->lock);
	turn->prompt->ignores_cancel = true;
	(void)!read(turn->session->wake, &stale, sizeof(stale)); /* of a cancel that came a moment ago */
	(void)pthread_mutex_unlock(&turn->agent->lock);
	return GO_ON;
}

static bool is_steered(struct turn *turn)
{
	return turn->prompt->steer_taken < turn->prompt->steer_count;
}

STEP(until_steered)
{
	(void)step;
	if (turn_wait(turn, -1, is_steered) == ENDED)
		return ENDED;
	(void)pthread_mutex_lock(&turn->agent->lock);
	turn->steer = str_dup(turn->arena, turn->prompt->steers[turn->prompt->steer_taken++]);
	(void)pthread_mutex_unlock(&turn->agent->lock);
	return GO_ON;
}

/* ---- the end of a turn ---- */

static struct str error_data(struct turn *turn, struct str word, int64_t http)
{
	struct json_writer w;
	struct buf out;

	if (word.p == NULL && http == 0)
		return STR_NONE;
	buf_init(&out, turn->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	if (word.p != NULL)
		jw_kstr(&w, "errorKind", word);
	jw_kint_opt(&w, "http_status", http);
	jw_object_end(&w);
	return buf_str(&out);
}

STEP(fail)
{
	static const struct fail_word plain = {RPC_INTERNAL, 0, "Internal error"};
	const struct value *code = step_value(step, "code");
	const struct fail_word *word = code->text.p == NULL ? &plain : &fail_meanings[code->number];
	struct str message = step_text_of(turn, step, "message");
	int64_t http = step_value(step, "http")->is_set ? step_number(step, "http") : word->http;

	return turn_fail(turn, (struct rpc_error){
				       .code = code->text.p == NULL ? code->number : word->code,
				       .message = message.p == NULL ? str_of(word->message) : message,
				       .data = error_data(turn, code->text, http),
			       });
}

STEP(stop)
{
	return turn_stop(turn, stop_reasons[step_number(step, "stop")]);
}

/* ---- the end of the process ---- */

STEP(exit)
{
	(void)turn;
	_exit((int)step_number(step, "exit"));
}

STEP(signal)
{
	int number = (int)step_number(step, "signal");
	sigset_t set;

	(void)turn;
	(void)signal(number, SIG_DFL); /* SIGPIPE is ignored otherwise */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, number);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	(void)kill(getpid(), number);
	return GO_ON; /* a signal that does not kill */
}

/* With the output in its hands nobody writes, and the reader has been told to read no more. */
STEP(hang)
{
	const uint64_t one = 1;

	(void)step;
	(void)!write(turn->agent->stop_reading, &one, sizeof(one)); /* once in a process: it cannot be full */
	(void)pthread_mutex_lock(&turn->agent->output);
	for (;;)
		(void)pause();
}

/* ---- what no agent should write ---- */

STEP(raw)
{
	script_write_bytes(turn->agent, step_text_of(turn, step, "raw"));
	return GO_ON;
}

#define FLOOD_HEAD "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\""
#define FLOOD_MIDDLE                                                                                                   \
	"\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\""
#define FLOOD_TAIL "\"}}}}"

static void add_filler(struct buf *line, size_t bytes)
{
	static const char filler[] = "abcdefghijklmnopqrstuvwxyz0123456789 ";
	const size_t n = sizeof(filler) - 1;

	for (size_t left = bytes; left > 0;) {
		size_t piece = left < n ? left : n;

		buf_add(line, filler, piece);
		left -= piece;
	}
}

/* Of `bytes` bytes, without line end; an update is no shorter than its envelope. */
static void make_line(struct turn *turn, struct buf *line, size_t bytes, bool is_update)
{
	const size_t around = sizeof(FLOOD_HEAD) + sizeof(FLOOD_MIDDLE) + sizeof(FLOOD_TAIL) - 3 + ID_TEXT_SIZE - 1;

	if (!is_update) {
		add_filler(line, bytes);
		return;
	}
	buf_printf(line, "%s%s%s", FLOOD_HEAD, turn->session->id, FLOOD_MIDDLE);
	add_filler(line, bytes > around ? bytes - around : 0);
	buf_add_str(line, STR(FLOOD_TAIL));
}

static void write_stderr(struct str line)
{
	for (size_t at = 0; at < line.n;) {
		ssize_t n = write(STDERR_FILENO, line.p + at, line.n - at);

		if (n < 0)
			return; /* nobody reads it */
		at += (size_t)n;
	}
}

/* Not kept for load: nobody wants a flood twice. */
static enum outcome flood(struct turn *turn, const struct step *step, bool is_update)
{
	bool to_stderr = step_number(step, "to") == 1;
	enum outcome outcome = GO_ON;
	struct buf line;

	buf_init(&line, NULL, SIZE_MAX);
	make_line(turn, &line, (size_t)step_number(step, "bytes"), is_update && !to_stderr);
	if (to_stderr)
		buf_add_char(&line, '\n');
	for (int64_t i = 0; i < step_number(step, "lines") && outcome == GO_ON; i++) {
		if (to_stderr)
			write_stderr(buf_str(&line));
		else
			script_write(turn->agent, buf_str(&line));
		if (turn_is_cancelled(turn))
			outcome = turn_stop(turn, "cancelled");
	}
	buf_finish(&line);
	return outcome;
}

STEP(flood)
{
	return flood(turn, step, true);
}

STEP(raw_flood)
{
	return flood(turn, step, false);
}
