/* work/versions.h - a page of the kept versions of a text, newest first; the versions are the positions. */
#ifndef DAIS_WORK_VERSIONS_H
#define DAIS_WORK_VERSIONS_H

#include "base/field.h"
#include "work/work.h"

struct versions {
	int64_t limit; /* of this page */
	int64_t below; /* rows wanted: of versions below this one */
	int64_t total; /* of all pages */
	/* One row as an object; column 0 is its version. */
	int (*write)(struct json_writer *w, struct snapshot *s, struct call *call, const struct query *q, struct failure *f);
};

/* Where the page begins: `below` by the cursor, when there is one. */
int versions_begin(struct versions *page, struct call *call, const struct arg_str *cursor, struct failure *f);
/* "versions":[…] of the rows of `q`, and the page's part of the answer. More rows than `limit` mean that there is
 * a next page. */
int versions_write(const struct versions *page, struct snapshot *s, struct call *call, struct query *q,
	struct json_writer *w, struct failure *f);

#endif
