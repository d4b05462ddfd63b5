/* t3_thread_list, t3_thread_read. */
#include "tools/thread_fields.h"

#define THREAD_MEMBERS \
	"\"threadId\":" TEXT_TYPE ",\"title\":" TEXT_TYPE ",\"createdBy\":" TEXT_TYPE ",\"creationSource\":" TEXT_TYPE \
	",\"status\":" TEXT_TYPE ",\"latestRunId\":" TEXT_OR_NULL ",\"providerInstanceId\":" TEXT_TYPE ",\"model\":" TEXT_OR_NULL \
	",\"runtimeMode\":" TEXT_TYPE ",\"interactionMode\":" TEXT_TYPE ",\"linkedPullRequest\":" OBJECT_OR_NULL \
	",\"parentThreadId\":" TEXT_OR_NULL ",\"relationshipToParent\":" TEXT_OR_NULL ",\"itemCount\":" INT_TYPE \
	",\"createdAt\":" TEXT_TYPE ",\"updatedAt\":" TEXT_TYPE

/* ---- list ---- */

struct list_arg {
	struct arg_ints statuses;
	struct arg_str title_part;
	struct arg_bool with_subagents;
	struct arg_int cursor, limit;
};

static const struct word status_words[] = {
	{"idle", THREAD_IS_IDLE},
	{"preparing", RUN_PREPARING},
	{"queued", RUN_QUEUED},
	{"starting", RUN_STARTING},
	{"running", RUN_RUNNING},
	{"waiting", RUN_WAITING},
	{"completed", RUN_COMPLETED},
	{"interrupted", RUN_INTERRUPTED},
	{"failed", RUN_FAILED},
	{"cancelled", RUN_CANCELLED},
	{"rolled_back", RUN_ROLLED_BACK},
	WORDS_END,
};

static const struct field list_fields[] = {
	FIELD(struct list_arg, statuses, "statuses", FIELD_WORDS, UNIQUE_ENTRIES, .max = LIMIT_LIST_STATUSES, .words = status_words,
		.help = "only threads whose status is one of these"),
	FIELD(struct list_arg, title_part, "titleContains", FIELD_STR, TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_TITLE_PART_CHARS,
		.help = "only threads whose title has this in it; case does not matter"),
	FIELD(struct list_arg, with_subagents, "includeSubagents", FIELD_BOOL, 0, .fallback = "true",
		.help = "false: no threads of delegated tasks"),
	FIELD(struct list_arg, cursor, "cursor", FIELD_INT, 0, .max = INT32_MAX, .fallback = "0", .help = "nextCursor of the page before"),
	FIELD(struct list_arg, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_LIST_THREADS, .fallback = "50",
		.help = "threads of one page"),
	FIELDS_END,
};

static int64_t int_or(const struct arg_int *arg, int64_t fallback)
{
	return arg->set && !arg->null ? arg->v : fallback;
}

static int read_list(struct snapshot *s, struct asked *asked, const void *args, struct json_writer *w, struct failure *f)
{
	const struct list_arg *list = args;
	struct list_args wanted = {.statuses = list->statuses.v,
		.status_count = list->statuses.n,
		.title_part = given(&list->title_part),
		.with_subagents = !list->with_subagents.set || list->with_subagents.v,
		.cursor = int_or(&list->cursor, 0),
		.limit = int_or(&list->limit, LIMIT_LIST_THREADS_DEFAULT)};

	return command_list(s, asked, &wanted, w, f);
}

static const struct plain plain_list = {
	.fields = list_fields,
	.args_size = sizeof(struct list_arg),
	.output = "{\"type\":\"object\",\"properties\":{\"projectId\":" TEXT_OR_NULL ",\"currentThreadId\":" TEXT_OR_NULL
		  ",\"threads\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{" THREAD_MEMBERS
		  "}}},\"nextCursor\":" INT_OR_NULL ",\"total\":" INT_TYPE
		  "}}",
	.read = read_list,
	.example = "{\"statuses\":[\"running\",\"waiting\"],\"includeSubagents\":false,\"limit\":20}",
	.is_read_only = true,
};

const struct tool tool_thread_list = {
	.name = "t3_thread_list",
	.title = "List threads",
	.description = "Lists the threads of this project that are not archived, the one that changed last first. Pages are counted "
		       "from the top: a thread that changes meanwhile may come twice or be passed over.",
	.plain = &plain_list,
};

/* ---- read ---- */

struct read_arg {
	struct arg_str thread;
	struct arg_int view, after, limit, run_limit, max_chars;
};

static const struct word view_words[] = {{"messages", 0}, {"activity", 1}, WORDS_END};

static const struct field read_fields[] = {
	THREAD_ID_FIELD(struct read_arg, thread),
	FIELD(struct read_arg, view, "view", FIELD_WORD, 0, .words = view_words, .fallback = "messages",
		.help = "messages: what was said and proposed; activity: everything"),
	FIELD(struct read_arg, after, "afterPosition", FIELD_INT, 0, .max = INT32_MAX,
		.help = "nextPosition of the page before, the same again while there is nothing new; default: from the beginning"),
	FIELD(struct read_arg, limit, "limit", FIELD_INT, 0, .min = 1, .max = LIMIT_READ_ITEMS, .fallback = "50",
		.help = "items of one page"),
	FIELD(struct read_arg, run_limit, "runLimit", FIELD_INT, 0, .min = 1, .max = LIMIT_READ_RUNS, .fallback = "10",
		.help = "of the newest runs"),
	FIELD(struct read_arg, max_chars, "maxCharsPerItem", FIELD_INT, 0, .min = 1, .max = LIMIT_READ_ITEM_CHARS, .fallback = "20000",
		.help = "a longer text is cut, and textTruncated says so"),
	FIELDS_END,
};

static int read_thread(struct snapshot *s, struct asked *asked, const void *args, struct json_writer *w, struct failure *f)
{
	const struct read_arg *read = args;
	struct read_args wanted = {.thread_id = read->thread.v,
		.is_activity = int_or(&read->view, 0) == 1,
		.after = int_or(&read->after, -1),
		.limit = int_or(&read->limit, LIMIT_READ_ITEMS_DEFAULT),
		.run_limit = int_or(&read->run_limit, LIMIT_READ_RUNS_DEFAULT),
		.max_chars = int_or(&read->max_chars, LIMIT_READ_ITEM_CHARS_DEFAULT)};

	return command_read(s, asked, &wanted, w, f);
}

static const struct plain plain_read = {
	.fields = read_fields,
	.args_size = sizeof(struct read_arg),
	.output = "{\"type\":\"object\",\"properties\":{\"thread\":{\"type\":\"object\",\"properties\":{" THREAD_MEMBERS
		  ",\"projectId\":" TEXT_TYPE ",\"activeRunId\":" TEXT_OR_NULL ",\"titleRegeneration\":" OBJECT_OR_NULL
		  ",\"branch\":" TEXT_OR_NULL ",\"worktreePath\":" TEXT_OR_NULL ",\"runCount\":" INT_TYPE
		  ",\"pendingRequestCount\":" INT_TYPE ",\"archived\":" BOOL_TYPE "}},"
		  "\"recentRuns\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"runId\":" TEXT_TYPE
		  ",\"ordinal\":" INT_TYPE ",\"status\":" TEXT_TYPE ",\"providerInstanceId\":" TEXT_TYPE ",\"model\":" TEXT_OR_NULL
		  ",\"requestedAt\":" TEXT_TYPE ",\"startedAt\":" TEXT_OR_NULL ",\"completedAt\":" TEXT_OR_NULL "}}},"
		  "\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"position\":" INT_TYPE
		  ",\"visibility\":" TEXT_TYPE ",\"sourceThreadId\":" TEXT_TYPE ",\"itemId\":" TEXT_TYPE ",\"runId\":" TEXT_OR_NULL
		  ",\"messageId\":" TEXT_OR_NULL ",\"createdBy\":" TEXT_OR_NULL ",\"creationSource\":" TEXT_OR_NULL
		  ",\"type\":" TEXT_TYPE ",\"status\":" TEXT_TYPE ",\"title\":" TEXT_OR_NULL ",\"text\":" TEXT_OR_NULL
		  ",\"textTruncated\":" BOOL_TYPE ",\"updatedAt\":" TEXT_TYPE "}}},"
		  "\"nextPosition\":" INT_OR_NULL ",\"hasMore\":" BOOL_TYPE
		  "}}",
	.read = read_thread,
	.has_read = command_has_read,
	ERRORS(FAIL_THREAD_NOT_FOUND),
	.example = "{\"threadId\":\"thread:mcp:9be04d12aa70c3f1:wave-1:0\",\"afterPosition\":12}",
	.is_idempotent = true,
};

const struct tool tool_thread_read = {
	.name = "t3_thread_read",
	.title = "Read a thread",
	.description = "Reads the timeline of a thread of this project, archived ones too, page by page. An item that is still written "
		       "may change after it was read. A task's result that was read whole here is not announced again.",
	.plain = &plain_read,
};
