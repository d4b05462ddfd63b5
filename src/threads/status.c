/* Names of the words. */
#include "threads/status.h"

#include <assert.h>

#define WORDS(name) \
	const char *name##_name(int64_t value) \
	{ \
		static const char *const words[] = {
#define WORD(prefix, name, wire) [prefix##_##name] = (wire),
#define END_WORDS(prefix) \
		}; \
		assert(value >= 0 && value < prefix##_COUNT); \
		return words[value]; \
	}
#include "threads/status.def"
#undef WORDS
#undef WORD
#undef END_WORDS

int run_status_find(struct str word)
{
	for (int i = 0; i < RUN_COUNT; i++)
		if (str_eq(word, str_of(run_status_name(i))))
			return i;
	return -1;
}

enum work_status work_status_of(int64_t run_status)
{
	switch (run_status) {
	case RUN_COMPLETED:
		return WORK_COMPLETED;
	case RUN_INTERRUPTED:
		return WORK_INTERRUPTED;
	case RUN_FAILED:
		return WORK_FAILED;
	default:
		return WORK_CANCELLED;
	}
}
