/* work/report.h - runs: server-side records of orchestrated work, their seats and reports, and the board.
 *
 * A seat is a named function in a run, given to an agent as a token. The token is shown once; SHA-256 of it is
 * kept. Closing the run, or revoking the seat, ends the token and the claims made with it. */
#ifndef DAIS_WORK_REPORT_H
#define DAIS_WORK_REPORT_H

#include "base/field.h"
#include "work/work.h"

enum run_kind { RUN_WAVE, RUN_LOOP, RUN_MANUAL };
enum run_outcome { RUN_DONE, RUN_ABANDONED, RUN_FAILED };
enum report_kind { REPORT_NOTE, REPORT_DECISION, REPORT_RISK, REPORT_RETROSPECTIVE };
extern const struct word run_kind_words[];
extern const struct word run_outcome_words[];
extern const struct word report_kind_words[];

#define SEAT_TTL_DEFAULT 14400 /* seconds */

/* ---- report, ops ---- */
struct run_open_args {
	struct arg_str root;
	struct arg_str scope;
	struct arg_str title;
	struct arg_int kind;
	struct arg_bool pin;
};
struct run_close_args {
	struct arg_str run;
	struct arg_int outcome;
	struct arg_str summary;
};
struct seat_issue_args {
	struct arg_str run;
	struct arg_str seat;
	struct arg_str label;
	struct arg_int ttl; /* seconds */
};
struct seat_revoke_args {
	struct arg_str seat;
};
struct report_post_args {
	struct arg_str run;
	struct arg_int kind;
	struct arg_str body;
	struct arg_bool needs_decision;
};
struct report_decide_args {
	struct arg_str report;
	struct arg_str decision;
};
int run_open(struct tx *tx, struct call *call, const struct run_open_args *in, struct json_writer *out,
	struct failure *f);
int run_close(struct tx *tx, struct call *call, const struct run_close_args *in, struct json_writer *out,
	struct failure *f);
int seat_issue(struct tx *tx, struct call *call, const struct seat_issue_args *in, struct json_writer *out,
	struct failure *f);
int seat_revoke(struct tx *tx, struct call *call, const struct seat_revoke_args *in, struct json_writer *out,
	struct failure *f);
int report_post(struct tx *tx, struct call *call, const struct report_post_args *in, struct json_writer *out,
	struct failure *f);
int report_decide(struct tx *tx, struct call *call, const struct report_decide_args *in, struct json_writer *out,
	struct failure *f);

/* ---- report, selects ---- */
struct report_board_args {
	struct arg_str root;
	struct arg_int limit;
	struct arg_str cursor;
};
struct report_run_args {
	struct arg_str run;
	struct arg_int limit;
	struct arg_str cursor;
};
struct report_decisions_args {
	struct arg_str root;
	struct arg_str run;
	struct arg_bool open; /* unset: true */
	struct arg_int limit;
	struct arg_str cursor;
};
struct report_rollup_args {
	struct arg_str root;
	struct arg_str run;
	struct arg_int since;
};
int report_board(struct snapshot *s, struct call *call, const struct report_board_args *in,
	struct json_writer *out, struct failure *f);
int report_run(struct snapshot *s, struct call *call, const struct report_run_args *in, struct json_writer *out,
	struct failure *f);
int report_decisions(struct snapshot *s, struct call *call, const struct report_decisions_args *in,
	struct json_writer *out, struct failure *f);
int report_rollup(struct snapshot *s, struct call *call, const struct report_rollup_args *in,
	struct json_writer *out, struct failure *f);

/* ---- for others ---- */

struct run {
	int64_t n;
	struct id id;
	int64_t root_n;
	int64_t scope_n; /* 0: the whole root */
	enum run_kind kind;
	struct str title;
	bool is_open;
	int64_t pinned_version; /* 0: not pinned */
	int64_t opened_at, closed_at, last_activity_at;
	enum run_outcome outcome; /* when closed */
	struct str retrospective; /* absent: none */
};
int run_load(struct snapshot *s, int64_t n, struct run *out, struct failure *f); /* 1, 0, -1 */
int run_find(struct snapshot *s, struct call *call, struct str text, struct run *out, struct failure *f);
/* The caller's seat, if it has one, has just done something: its run is active. */
int run_touch(struct tx *tx, struct call *call, struct failure *f);

/* Counts by role of everything in a run's scope, the scope item itself left out; of a large scope the first
 * LIMIT_SCOPE_ITEMS, and then *out_is_cut. */
int scope_tally(struct snapshot *s, int64_t root_n, int64_t scope_n, struct tally *out, bool *out_is_cut,
	struct failure *f);

#endif
