/* base/limits.h - LIMIT_… constants and the table they come from (base/limits.def). */
#ifndef DAIS_BASE_LIMITS_H
#define DAIS_BASE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

enum {
#define LIMIT(name, value, unit, why) LIMIT_##name = (value),
#include "base/limits.def"
#undef LIMIT
};

struct limit {
	const char *name;
	int64_t value;
	const char *unit;
	const char *why;
};

extern const struct limit limits[];
extern const size_t limit_count;

#endif
