/* work/history.h - inside the work room: transitions as the history and the context show them. */
#ifndef DAIS_WORK_HISTORY_H
#define DAIS_WORK_HISTORY_H

#include "work/items.h"
#include "work/parts.h"

/* At most one of item_n and ancestor_n; 0: no bound. */
struct history_scope {
	int64_t item_n, root_n;
	int64_t ancestor_n; /* it and all below it */
};

/* "recent":[…]: the newest `limit` transitions after `since`. */
int history_recent(struct snapshot *s, struct call *call, const struct history_scope *scope, int64_t since,
	int64_t limit, struct json_writer *out, struct failure *f);

#endif
