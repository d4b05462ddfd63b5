/* base/warning.h - what a call did not refuse but its caller should know: {code, message, path?, index?}. */
#ifndef DAIS_BASE_WARNING_H
#define DAIS_BASE_WARNING_H

#include "base/json.h"

struct warning {
	const char *code;
	struct str message;
	struct str path; /* absent: none */
	int index;	 /* element of a batch, -1: none */
	struct warning *next;
};

struct warnings {
	struct arena *arena;
	struct warning *first, *last;
	size_t count; /* kept */
	size_t max;
	size_t omitted; /* came after `max` were kept */
	int index;	/* given to warnings that are added from now on */
};

/* At most `max` are kept, the first ones; of the others their number is told. */
void warnings_init(struct warnings *warnings, struct arena *arena, size_t max);
/* `warnings` may be NULL: then nothing is kept. */
void warn(struct warnings *warnings, const char *code, struct str path, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* [{…}] ; nothing is written when there is none. */
void warnings_write(const struct warnings *warnings, const char *key, struct json_writer *w);

#endif
