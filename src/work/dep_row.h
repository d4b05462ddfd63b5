/* work/dep_row.h - inside the work room: one edge as it is read and shown. */
#ifndef DAIS_WORK_DEP_ROW_H
#define DAIS_WORK_DEP_ROW_H

#include "work/deps.h"

struct dep_end {
	int64_t n;
	struct id id;
	enum role role;
	bool is_readable;
};
struct dep_row {
	int64_t n;
	struct id id;
	enum dep_type type;
	int64_t unblock_at; /* as given, DEP_NO_THRESHOLD: not */
	int64_t threshold;
	struct dep_end from, to;
};

#define DEP_ROW_COLUMNS \
	"SELECT d.n, d.id, d.type, d.unblock_at, d.threshold, f.n, f.id, f.role, f.root_n, t.n, t.id, t.role," \
	" t.root_n FROM dep d JOIN item f ON f.n = d.from_n JOIN item t ON t.n = d.to_n"
void dep_row_read(const struct query *q, const struct call *call, struct dep_row *out);
/* from, to, type, unblockAt?, satisfied? */
void dep_row_write(struct json_writer *w, struct call *call, const struct dep_row *row);

#endif
