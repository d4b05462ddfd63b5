/* base/log.h - one line per write(2) to stderr: JSON, or for people when stderr is a terminal.
 *
 * Values of keys that name secrets (token, authorization, secret, password, credential, cookie) are
 * replaced by "[redacted]" whatever they hold; control bytes are escaped. */
#ifndef DAIS_BASE_LOG_H
#define DAIS_BASE_LOG_H

#include "base/str.h"

enum log_level { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_NOTHING };

enum log_format { LOG_FORMAT_AUTO, LOG_FORMAT_JSON, LOG_FORMAT_HUMAN };

void log_setup(enum log_level level, enum log_format format, int fd);
bool log_level_parse(struct str text, enum log_level *out);
bool log_enabled(enum log_level level);

/* log_line(LOG_WARN, "store", "wal is large", "bytes", LOG_INT(n), "file", LOG_TEXT(name), NULL) */
struct log_value {
	enum { LOG_VALUE_INT, LOG_VALUE_STR } kind;
	int64_t number;
	struct str text;
};
struct log_pair {
	const char *key;
	struct log_value value;
};
#define LOG_INT(n) ((struct log_value){LOG_VALUE_INT, (n), STR_NONE})
#define LOG_TEXT(t) ((struct log_value){LOG_VALUE_STR, 0, str_of(t)})
#define LOG_STRV(s) ((struct log_value){LOG_VALUE_STR, 0, (s)})

void log_write(enum log_level level, const char *room, const char *message, const struct log_pair *pairs,
	size_t n);
#define log_line(level, room, message, ...) \
	do { \
		const struct log_pair pairs_[] = {{NULL, LOG_INT(0)}, __VA_ARGS__}; \
		log_write((level), (room), (message), pairs_ + 1, \
			sizeof(pairs_) / sizeof(pairs_[0]) - 1); \
	} while (0)

#endif
