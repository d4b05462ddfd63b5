/* mcp/interest.h - which change notices somebody asked for, and when the last of each left.
 *
 * Coalescing: a notice that comes too soon after the previous one of its kind waits, and one leaves
 * for all that waited. Times are monotonic ms. Not thread-safe: the owner locks. */
#ifndef DAIS_MCP_INTEREST_H
#define DAIS_MCP_INTEREST_H

#include "base/str.h"

#include <stdatomic.h>
#include <stdint.h>

enum { INTEREST_TOOLS, INTEREST_RESOURCES, INTEREST_PROMPTS, INTEREST_LISTS };

struct notice_clock {
	bool sent_once;
	bool waiting;
	int64_t sent_at;
};

struct interest {
	bool lists[INTEREST_LISTS];
	struct notice_clock list_clock[INTEREST_LISTS];
	struct interest_uri {
		char *uri; /* heap */
		size_t n;
		struct notice_clock clock;
	} * uris;
	size_t uri_count;
	size_t uri_cap;
	atomic_size_t *total; /* of everybody's URIs together; NULL: nobody counts */
};

void interest_finish(struct interest *in);
/* False: one too many. Adding twice is adding once. */
bool interest_add(struct interest *in, struct str uri);
bool interest_remove(struct interest *in, struct str uri);
struct interest_uri *interest_find(struct interest *in, struct str uri);
/* May the notice leave now? If not, it waits until notice_due(). */
bool notice_now(struct notice_clock *clock, int64_t gap_ms, int64_t now);
/* When what waits may leave; INT64_MAX: nothing waits. */
int64_t interest_due(const struct interest *in);
/* Next list kind or URI that waited and may leave now: it counts as sent. -1 and NULL: none. */
int interest_take_list(struct interest *in, int64_t now);
struct interest_uri *interest_take_uri(struct interest *in, int64_t now);

#endif
