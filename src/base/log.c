#include "base/log.h"

#include "base/clock.h"
#include "base/json.h"

#include <stdatomic.h>
#include <strings.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096

static atomic_int current_level = LOG_INFO;
static atomic_int current_fd = 2;
static atomic_int current_format = LOG_FORMAT_AUTO;

static const char *const level_names[] = {"trace", "debug", "info", "warn", "error", "off"};

void log_setup(enum log_level level, enum log_format format, int fd)
{
	atomic_store(&current_level, (int)level);
	atomic_store(&current_format, (int)format);
	atomic_store(&current_fd, fd);
}

bool log_level_parse(struct str text, enum log_level *out)
{
	for (int i = 0; i <= LOG_NOTHING; i++) {
		if (str_eq_nocase(text, str_of(level_names[i]))) {
			*out = (enum log_level)i;
			return true;
		}
	}
	return false;
}

bool log_enabled(enum log_level level)
{
	return (int)level >= atomic_load(&current_level);
}

static bool is_secret(const char *key)
{
	static const char *const words[] = {
		"token", "authorization", "secret", "password", "credential", "cookie", "bearer"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(key, words[i]) != NULL)
			return true;
	return false;
}

static struct str value_text(const struct log_pair *pair)
{
	struct str text = pair->value.text;

	if (is_secret(pair->key))
		return STR("[redacted]");
	if (text.p == NULL)
		return STR("-");
	return (struct str){text.p, utf8_cut(text, 1024)};
}

static void write_json(struct buf *line, enum log_level level, const char *room, const char *message,
	const struct log_pair *pairs, size_t n)
{
	struct json_writer w;

	json_writer_init(&w, line);
	jw_object_begin(&w);
	jw_ktime(&w, "timestamp", clock_wall_ms());
	jw_ktext(&w, "level", level_names[level]);
	jw_ktext(&w, "room", room);
	jw_ktext(&w, "message", message);
	for (size_t i = 0; i < n; i++) {
		if (pairs[i].value.kind == LOG_VALUE_INT && !is_secret(pairs[i].key))
			jw_kint(&w, pairs[i].key, pairs[i].value.number);
		else
			jw_kstr(&w, pairs[i].key, value_text(&pairs[i]));
	}
	jw_object_end(&w);
}

static void write_human(struct buf *line, enum log_level level, const char *room, const char *message,
	const struct log_pair *pairs, size_t n)
{
	char at[TIME_TEXT_SIZE];

	time_format(clock_wall_ms(), at);
	buf_printf(line, "%.12s %-5s %s: %s", at + 11, level_names[level], room, message);
	for (size_t i = 0; i < n; i++) {
		buf_printf(line, " %s=", pairs[i].key);
		if (pairs[i].value.kind == LOG_VALUE_INT && !is_secret(pairs[i].key))
			buf_printf(line, "%lld", (long long)pairs[i].value.number);
		else
			json_escape(line, value_text(&pairs[i]));
	}
}

void log_write(enum log_level level, const char *room, const char *message, const struct log_pair *pairs,
	size_t n)
{
	int fd = atomic_load(&current_fd);
	int format = atomic_load(&current_format);
	AUTO(arena_destroyp) struct arena *arena = NULL;
	struct buf line;

	if (!log_enabled(level))
		return;
	arena = arena_create();
	buf_init(&line, arena, LINE_MAX_BYTES * 4);
	if (format == LOG_FORMAT_JSON || (format == LOG_FORMAT_AUTO && isatty(fd) == 0))
		write_json(&line, level, room, message, pairs, n);
	else
		write_human(&line, level, room, message, pairs, n);
	buf_add_char(&line, '\n');
	/* A log that cannot be written must not stop the work. */
	if (write(fd, line.p, line.n) < 0)
		return;
}
