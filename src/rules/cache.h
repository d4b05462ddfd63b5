/* rules/cache.h - parsed documents of the store, shared by all calls.
 *
 * Each look compares the stored fingerprint with the cached parse, so a push is seen by the next call. A
 * row that cannot be read serves the last good parse and says so; with none there is UNAVAILABLE, never
 * "no gates". A stored text that this program's stricter grammar refuses: the last good parse, else the
 * global layer for that project, with a warning in the log. */
#ifndef DAIS_RULES_CACHE_H
#define DAIS_RULES_CACHE_H

#include "rules/rules.h"
#include "store/store.h"

struct rules;

struct rules *rules_create(void);
void rules_destroy(struct rules *rules);

/* Views resolved by one call; fixed size, the oldest is resolved again when a call touches more projects. */
#define RULES_VIEWS 8
struct rules_views {
	struct rules_held {
		int64_t root_n;
		int64_t pinned;
		struct rules_view view;
	} held[RULES_VIEWS];
	size_t count, next;
};
void rules_views_finish(struct rules_views *views);

/* `root_n` 0 is the global layer alone. `pinned` > 0 asks for that kept version of the project's document
 * (of the global one when the project has none); NOT_FOUND when it is gone. */
int rules_view(struct rules *rules, struct snapshot *s, struct rules_views *views, int64_t root_n,
	int64_t pinned, const struct rules_view **out, struct failure *f);

#endif
