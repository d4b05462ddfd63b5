/* tools/frame.h - inside the room: one call on its way from JSON to envelope. */
#ifndef DAIS_TOOLS_FRAME_H
#define DAIS_TOOLS_FRAME_H

#include "tools/tool.h"
#include "tools/tools.h"

struct tools {
	struct store *store;
	struct rules *rules;
	char *config_dir;
	struct threads *threads; /* NULL: no agents */
};

/* One op of a call, its arguments read. */
struct step {
	const struct operation *operation;
	const json_t *element; /* as sent */
	void *args;
	/* after it ran */
	bool is_ok, is_replayed;
	bool is_committed; /* something of it stands */
	struct str result; /* members, without ok and op */
	struct str once;   /* members of this answer alone, and … */
	struct str again;  /* … what a replay shows in their place */
	struct failure failure;
};

struct frame {
	struct tools *tools;
	struct tool_call *request;
	struct call call;
	const struct tool *tool;
	const char *describe; /* not NULL: only the manual is asked for */
	bool is_read;
	bool is_atomic;
	struct str key; /* idempotency, absent: none */
	struct step *steps;
	size_t step_count;
	int atomic_failed; /* index of the op that ended an atomic call, -1: none */
	bool atomic_replayed;
	struct store_job job;
	struct store_read read;
};

/* shape.c: -1 with every fault of the request in *f. */
int frame_read(struct frame *frame, struct failure *f);
/* Capability and profile of every op, before the first runs. */
int frame_permit(struct frame *frame, struct failure *f);
/* batch.c: on the writer thread. */
int frame_change(struct tx *tx, void *frame, struct failure *f);
/* envelope.c */
void frame_answer_change(struct frame *frame);
void frame_answer_read(struct frame *frame, struct str data);
void frame_answer_failure(struct frame *frame, struct failure *f);
void frame_answer_describe(struct frame *frame, struct failure *f);
/* idempotency.c: 1 replayed into step->result, 0 not known, -1 failure (mismatch). */
int remembered(struct tx *tx, struct frame *frame, struct step *step, size_t index, struct failure *f);
int remember(struct tx *tx, struct frame *frame, struct step *step, size_t index, struct failure *f);

#endif
