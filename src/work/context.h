/* work/context.h - inside the work room: finding what the context shows. */
#ifndef DAIS_WORK_CONTEXT_H
#define DAIS_WORK_CONTEXT_H

#include "work/gate.h"
#include "work/items.h"
#include "work/parts.h"

struct context {
	struct snapshot *s;
	struct call *call;
	const struct context_args *in;
	struct filter_args filter_in;
	struct filter filter;
	int64_t limit;	    /* rows of a bucket */
	struct root_counts {
		int64_t n;
		struct tally tally;
		bool is_known; /* the role of the root itself */
		enum role role;
	} *roots; /* projects in scope that hold work which has not ended */
	size_t root_count;
	struct member {
		int64_t n;
		enum role role;
	} *members; /* open items of a scope that is a small part of a project, in order */
	size_t member_count;
	struct sql *below[3][2]; /* by what is looked for, and whether bounded; made when first needed */
	bool has_tally; /* the scope is made of whole projects */
	struct tally tally; /* … of all of them */
	int64_t scan_left[3]; /* by what is looked for */
	bool is_bounded; /* a scan ended at its limit */
};

enum find {
	FIND_ALL,   /* just the role; as many as the bucket shows, and one */
	FIND_GATED, /* an incoming edge is unsatisfied */
	FIND_DONE,  /* children, all of them ended */
};

struct found {
	int64_t *v;
	size_t n, cap;
};

int context_open(struct snapshot *s, struct call *call, const struct context_args *in, int64_t limit_default,
	struct context *out, struct failure *f);
/* Add items of `role` in scope to `found`, at most `wanted`, those first that would be worked on first. */
int context_find(struct context *c, enum role role, enum find what, int64_t wanted, struct found *found,
	struct failure *f);
/* The same for what has children that have all ended, of every role that is open. */
int context_find_done(struct context *c, struct found *found, struct failure *f);
/* "claims":{mine:[{itemId,expiresAt}],active?,expired?} */
int context_write_claims(struct context *c, struct json_writer *out, struct failure *f);

#endif
