/* report: runs, their seats and reports, the board. */
#include "tools/tool.h"

#include "base/limits.h"
#include "work/report.h"

static const struct field board_fields[] = {
	FIELD(struct report_board_args, root, "rootId", FIELD_ID, 0),
	FIELD(struct report_board_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LIST_PAGE,
		.fallback = "20"),
	FIELD(struct report_board_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_END,
};
static const struct field run_fields[] = {
	FIELD(struct report_run_args, run, "runId", FIELD_ID, REQUIRED),
	FIELD(struct report_run_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LIST_PAGE,
		.fallback = "20", .help = "reports, newest first"),
	FIELD(struct report_run_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_END,
};
static const struct field decisions_fields[] = {
	FIELD(struct report_decisions_args, root, "rootId", FIELD_ID, 0),
	FIELD(struct report_decisions_args, run, "runId", FIELD_ID, 0),
	FIELD(struct report_decisions_args, open, "open", FIELD_BOOL, 0, .fallback = "true",
		.help = "false: decided ones too"),
	FIELD(struct report_decisions_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LIST_PAGE,
		.fallback = "20"),
	FIELD(struct report_decisions_args, cursor, "cursor", FIELD_STR, 0),
	FIELDS_END,
};
static const struct field rollup_fields[] = {
	FIELD(struct report_rollup_args, root, "rootId", FIELD_ID, 0, .group = "of"),
	FIELD(struct report_rollup_args, run, "runId", FIELD_ID, 0, .group = "of"),
	FIELD(struct report_rollup_args, since, "since", FIELD_TIME, 0),
	FIELDS_END,
};

static const struct field open_fields[] = {
	FIELD(struct run_open_args, root, "rootId", FIELD_ID, REQUIRED),
	FIELD(struct run_open_args, scope, "scopeItemId", FIELD_ID, 0, .help = "seats write below it only"),
	FIELD(struct run_open_args, title, "title", FIELD_STR, REQUIRED | NOT_BLANK | TRIMMED, .min = 1,
		.max = LIMIT_TITLE_CHARS),
	FIELD(struct run_open_args, kind, "kind", FIELD_WORD, FOLDED, .words = run_kind_words, .fallback = "wave"),
	FIELD(struct run_open_args, pin, "pinConfig", FIELD_BOOL, 0, .fallback = "false",
		.help = "seats keep the present rules"),
	FIELDS_END,
};
static const struct field close_fields[] = {
	FIELD(struct run_close_args, run, "runId", FIELD_ID, REQUIRED),
	FIELD(struct run_close_args, outcome, "outcome", FIELD_WORD, FOLDED, .words = run_outcome_words,
		.fallback = "done"),
	FIELD(struct run_close_args, summary, "summary", FIELD_STR, 0, .max = LIMIT_SUMMARY_CHARS),
	FIELDS_END,
};
static const struct field issue_fields[] = {
	FIELD(struct seat_issue_args, run, "runId", FIELD_ID, REQUIRED),
	FIELD(struct seat_issue_args, seat, "seat", FIELD_STR, REQUIRED | NOT_BLANK, .min = 1,
		.max = LIMIT_SEAT_CHARS),
	FIELD(struct seat_issue_args, label, "label", FIELD_STR, 0, .max = LIMIT_SEAT_CHARS),
	FIELD(struct seat_issue_args, ttl, "ttlSeconds", FIELD_INT, 0, .min = 60, .max = LIMIT_CLAIM_TTL_SECONDS,
		.fallback = "14400"),
	FIELDS_END,
};
static const struct field revoke_fields[] = {
	FIELD(struct seat_revoke_args, seat, "seatId", FIELD_ID, REQUIRED),
	FIELDS_END,
};
static const struct field post_fields[] = {
	FIELD(struct report_post_args, run, "runId", FIELD_ID, REQUIRED),
	FIELD(struct report_post_args, kind, "kind", FIELD_WORD, FOLDED, .words = report_kind_words,
		.fallback = "note"),
	FIELD(struct report_post_args, body, "body", FIELD_STR, REQUIRED | NOT_BLANK | IN_BYTES,
		.max = LIMIT_REPORT_BYTES),
	FIELD(struct report_post_args, needs_decision, "needsDecision", FIELD_BOOL, 0, .fallback = "false"),
	FIELDS_END,
};
static const struct field decide_fields[] = {
	FIELD(struct report_decide_args, report, "reportId", FIELD_ID, REQUIRED),
	FIELD(struct report_decide_args, decision, "decision", FIELD_STR, REQUIRED | NOT_BLANK, .min = 1,
		.max = LIMIT_DECISION_CHARS),
	FIELDS_END,
};

static int board(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return report_board(s, call, args, out, f);
}

static int run(struct snapshot *s, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return report_run(s, call, args, out, f);
}

static int decisions(struct snapshot *s, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return report_decisions(s, call, args, out, f);
}

static int rollup(struct snapshot *s, struct call *call, const void *args, struct json_writer *out,
	struct failure *f)
{
	return report_rollup(s, call, args, out, f);
}

static int open_run(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return run_open(tx, call, args, out, f);
}

static int close_run(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return run_close(tx, call, args, out, f);
}

static int issue_seat(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return seat_issue(tx, call, args, out, f);
}

static int revoke_seat(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return seat_revoke(tx, call, args, out, f);
}

static int post(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return report_post(tx, call, args, out, f);
}

static int decide(struct tx *tx, struct call *call, const void *args, struct json_writer *out, struct failure *f)
{
	return report_decide(tx, call, args, out, f);
}

#define DIRECTORS (PROFILE_WORK | PROFILE_DIRECTOR)

static const struct operation selects[] = {
	{
		.name = "board",
		.summary = "Open runs, the one quiet for longest first.",
		.fields = board_fields,
		.args_size = sizeof(struct report_board_args),
		.profiles = DIRECTORS,
		.capability = CAP_READ,
		.read = board,
		.returns = "{runs:[{runId,title,kind,scopeItemId?,state,openedAt,seats,childCounts,stalled,openDecisions,"
			   "lastActivityAt}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR, FAIL_FORBIDDEN),
		.example = "{\"select\":\"board\",\"rootId\":\"5b7d20c4\"}",
	},
	{
		.name = "run",
		.summary = "One run, its seats and reports.",
		.fields = run_fields,
		.args_size = sizeof(struct report_run_args),
		.profiles = DIRECTORS,
		.capability = CAP_READ,
		.read = run,
		.returns = "{run:{runId,state,…},seats:[{seatId,seat,label?,expiresAt,revokedAt?}],reports:[…]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR, FAIL_FORBIDDEN),
		.example = "{\"select\":\"run\",\"runId\":\"1f77e0a2\"}",
	},
	{
		.name = "decisions",
		.summary = "Reports that wait for a decision.",
		.fields = decisions_fields,
		.args_size = sizeof(struct report_decisions_args),
		.profiles = DIRECTORS,
		.capability = CAP_READ,
		.read = decisions,
		.returns = "{decisions:[{reportId,runId,body,createdAt,decidedAt?,decision?}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_INVALID_CURSOR, FAIL_FORBIDDEN),
		.example = "{\"select\":\"decisions\",\"rootId\":\"5b7d20c4\"}",
	},
	{
		.name = "rollup",
		.summary = "Counts of a project or a run.",
		.fields = rollup_fields,
		.args_size = sizeof(struct report_rollup_args),
		.profiles = DIRECTORS,
		.capability = CAP_READ,
		.read = rollup,
		.returns = "{totals,completed,cancelled,gateRefusals,claims,medianWorkMs?,byType?:[{type?,completed,cancelled}]}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN),
		.example = "{\"select\":\"rollup\",\"runId\":\"1f77e0a2\"}",
	},
};

static const struct operation ops[] = {
	{
		.name = "open_run",
		.summary = "Open a run on a project, or on a part of it.",
		.fields = open_fields,
		.args_size = sizeof(struct run_open_args),
		.profiles = DIRECTORS,
		.capability = CAP_MANAGE_RUNS,
		.change = open_run,
		.returns = "{runId,state,pinnedConfigVersion?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"open_run\",\"rootId\":\"5b7d20c4\",\"scopeItemId\":\"c41f9e02\","
			   "\"title\":\"Wave 3\"}]}",
	},
	{
		.name = "close_run",
		.summary = "Close a run: its tokens and claims end.",
		.fields = close_fields,
		.args_size = sizeof(struct run_close_args),
		.profiles = DIRECTORS,
		.capability = CAP_MANAGE_RUNS,
		.change = close_run,
		.ends_credentials = true,
		.returns = "{runId,state,revokedSeats,releasedClaims,retrospective:{runId,scopeItemId?,itemsTerminal,prompt}}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_DUPLICATE, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"close_run\",\"runId\":\"1f77e0a2\",\"outcome\":\"done\"}]}",
		.frees_space = true,
	},
	{
		.name = "issue_seat",
		.summary = "Give a seat of a run to an agent; the token is shown once.",
		.fields = issue_fields,
		.args_size = sizeof(struct seat_issue_args),
		.profiles = DIRECTORS,
		.capability = CAP_MANAGE_RUNS,
		.change = issue_seat,
		.returns = "{seatId,seat,token,expiresAt}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_PAYLOAD_TOO_LARGE, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"issue_seat\",\"runId\":\"1f77e0a2\",\"seat\":\"implementer\"}]}",
	},
	{
		.name = "revoke_seat",
		.summary = "End a seat's token and claim.",
		.fields = revoke_fields,
		.args_size = sizeof(struct seat_revoke_args),
		.profiles = DIRECTORS,
		.capability = CAP_MANAGE_RUNS,
		.change = revoke_seat,
		.ends_credentials = true,
		.returns = "{revoked,releasedClaims?}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"revoke_seat\",\"seatId\":\"aa03bc51\"}]}",
		.frees_space = true,
	},
	{
		.name = "post",
		.summary = "Report to a run; a seat reports to its own.",
		.fields = post_fields,
		.args_size = sizeof(struct report_post_args),
		.profiles = DIRECTORS,
		.capability = CAP_READ, /* a seat of the run, else manage-runs: who it is decides */
		.change = post,
		.returns = "{reportId}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_PAYLOAD_TOO_LARGE, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"post\",\"runId\":\"1f77e0a2\",\"kind\":\"decision\",\"needsDecision\":true,"
			   "\"body\":\"Keep the old import?\"}]}",
	},
	{
		.name = "decide",
		.summary = "Decide what a report asked; once.",
		.fields = decide_fields,
		.args_size = sizeof(struct report_decide_args),
		.profiles = DIRECTORS,
		.capability = CAP_MANAGE_RUNS,
		.change = decide,
		.returns = "{reportId,decidedAt}",
		ERRORS(FAIL_NOT_FOUND, FAIL_AMBIGUOUS_ID, FAIL_DUPLICATE, FAIL_FORBIDDEN),
		.example = "{\"ops\":[{\"op\":\"decide\",\"reportId\":\"4be07d92\",\"decision\":\"Drop it.\"}]}",
	},
};

const struct tool tool_report = {
	.name = "report",
	.title = "Runs and reports",
	.description = "Runs: board, run, decisions, rollup (select); open, close, seats, post, decide (ops).",
	.selects = selects,
	.select_count = sizeof(selects) / sizeof(selects[0]),
	.ops = ops,
	.op_count = sizeof(ops) / sizeof(ops[0]),
};
