/* providers/due.h - the times at which a driver wants to be woken; 0: never. */
#ifndef DAIS_PROVIDERS_DUE_H
#define DAIS_PROVIDERS_DUE_H

#include <stdbool.h>
#include <stdint.h>

static inline int64_t due_earlier(int64_t a, int64_t b)
{
	return a == 0 ? b : b == 0 || a < b ? a : b;
}

/* True once: the time is forgotten. */
static inline bool due_passed(int64_t *by, int64_t now)
{
	if (*by == 0 || *by > now)
		return false;
	*by = 0;
	return true;
}

#endif
