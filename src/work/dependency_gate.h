/* work/dependency_gate.h - whether the items that block an item have got far enough. */
#ifndef DAIS_WORK_DEPENDENCY_GATE_H
#define DAIS_WORK_DEPENDENCY_GATE_H

#include "work/work.h"

struct blocker {
	struct id id; /* zero: the caller may not read it */
	bool is_known; /* false: role unknown */
	enum role role;
};
struct blockers {
	struct blocker *v;
	size_t n;
};

/* The unsatisfied ones among the incoming BLOCKS edges, oldest edge first. */
int dependency_gate(struct snapshot *s, struct call *call, int64_t item_n, struct blockers *out,
	struct failure *f);
/* 1 when an incoming BLOCKS edge is unsatisfied, 0 when none is. */
int dependency_is_blocked(struct snapshot *s, int64_t item_n, struct failure *f);
/* "blockers":[{id,role}] */
void blockers_write(struct json_writer *w, struct call *call, const struct blockers *blockers);

/* Items that were gated by `item_n` and are not any more, now that its rank went from `from` to `to`. */
struct unblocked {
	int64_t *v; /* row numbers, each once, in the order found */
	size_t n;
	bool is_cut; /* more than LIMIT_UNBLOCKED_ITEMS */
};
int dependency_unblocked(struct snapshot *s, int64_t item_n, enum role from, enum role to,
	struct unblocked *add_to, struct failure *f);
/* "unblockedItems":[{itemId,title,role}] of the readable ones that are not terminal; nothing when there is none. */
int unblocked_write(struct json_writer *w, struct snapshot *s, struct call *call,
	const struct unblocked *unblocked, struct failure *f);

#endif
