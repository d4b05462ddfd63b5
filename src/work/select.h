/* work/select.h - what is next: eligible items in order, for next and for the claim selector.
 *
 * Candidates come in order from streams: ranges of the ready indexes, one per project and role, or a list that
 * was collected because it is small. Each is then tested with point reads: claimed, below a claimed ancestor,
 * waiting for a blocker. Nothing is sorted that is not small, so the size of the store does not matter. */
#ifndef DAIS_WORK_SELECT_H
#define DAIS_WORK_SELECT_H

#include "work/advance.h"

struct wish {
	const struct filter_args *filter; /* roles default to queue */
	struct str path;		  /* of the filter in the request: "" or "selector." */
	enum select_order order;
	size_t limit;
	bool is_claim;	      /* must be writable; an own claimed ancestor is fine */
	bool include_claimed; /* claims do not matter at all */
};

struct selected {
	int64_t *v; /* items, in order */
	size_t n;
	/* meaningful when nothing was found */
	int64_t matched, claimed, ancestor_claimed, dependency_blocked;
	bool is_cut; /* LIMIT_SELECT_SCAN candidates were looked at, and there are more */
};

int select_items(struct snapshot *s, struct call *call, const struct wish *wish, struct selected *out,
	struct failure *f);
/* "reason", "excluded"?, "retryAfterMs"? of an empty selection */
void selected_write_none(struct json_writer *w, const struct selected *selected);

#endif
