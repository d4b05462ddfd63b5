/* Events as outside readers see them: one table says which members of a row go out, under which name, and how. */
#include "threads/view.h"

#include "threads/engine.h"
#include "workspace/workspace.h"

enum how { AS_TEXT, AS_INT, AS_BOOL, AS_TIME, AS_JSON, AS_WORD, AS_ID };

struct member {
	int type;
	const char *key; /* of the row */
	const char *name;
	enum how how;
	const char *(*word)(int64_t value);
	const char *sql; /* AS_ID: the id of row $1; two columns: of a run */
};

SQL(SQL_THREAD_ID, "SELECT id FROM thread WHERE n = $1");
SQL(SQL_MESSAGE_ID, "SELECT id FROM message WHERE n = $1");
SQL(SQL_ITEM_ID, "SELECT id FROM turn_item WHERE n = $1");
SQL(SQL_SESSION_ID, "SELECT id FROM provider_session WHERE n = $1");
SQL(SQL_RUN_ID, "SELECT t.id, r.ordinal FROM thread_run r JOIN thread t ON t.n = r.thread_n WHERE r.n = $1");
SQL(SQL_RUN_ID_OF_ATTEMPT,
	"SELECT t.id, r.ordinal FROM run_attempt a JOIN thread_run r ON r.n = a.run_n JOIN thread t ON t.n = r.thread_n"
	" WHERE a.n = $1");

static const char *capture_status_name(int64_t value)
{
	return checkpoint_status_name((enum checkpoint_status)value);
}

#define TEXT(key, name) key, name, AS_TEXT, NULL, NULL
#define INT(key) key, key, AS_INT, NULL, NULL
#define BOOL(key) key, key, AS_BOOL, NULL, NULL
#define TIME(key) key, key, AS_TIME, NULL, NULL
#define RAW(key) key, key, AS_JSON, NULL, NULL
#define WORD(key, words) key, key, AS_WORD, words##_name, NULL
#define ID(key, name, sql) key, name, AS_ID, NULL, sql

/* clang-format off */
static const struct member members[] = {
	{EVENT_PROJECT_UPDATED, TEXT("title", "title")},
	{EVENT_PROJECT_UPDATED, TIME("deletedAt")},
	{EVENT_THREAD_UPDATED, TEXT("title", "title")},
	{EVENT_THREAD_UPDATED, WORD("kind", thread_kind)},
	{EVENT_THREAD_UPDATED, ID("parentN", "parentThreadId", SQL_THREAD_ID)},
	{EVENT_THREAD_UPDATED, WORD("relationship", relationship)},
	{EVENT_THREAD_UPDATED, TEXT("instanceId", "providerInstanceId")},
	{EVENT_THREAD_UPDATED, TEXT("model", "model")},
	{EVENT_THREAD_UPDATED, TEXT("branch", "branch")},
	{EVENT_THREAD_UPDATED, TIME("archivedAt")},
	{EVENT_THREAD_UPDATED, TIME("deletedAt")},
	{EVENT_MESSAGE_UPDATED, TEXT("id", "messageId")},
	{EVENT_MESSAGE_UPDATED, ID("runN", "runId", SQL_RUN_ID)},
	{EVENT_MESSAGE_UPDATED, WORD("role", message_role)},
	{EVENT_MESSAGE_UPDATED, WORD("createdBy", creator)},
	{EVENT_THREAD_RUN_UPDATED, ID("n", "runId", SQL_RUN_ID)},
	{EVENT_THREAD_RUN_UPDATED, INT("ordinal")},
	{EVENT_THREAD_RUN_UPDATED, WORD("status", run_status)},
	{EVENT_THREAD_RUN_UPDATED, TEXT("instanceId", "providerInstanceId")},
	{EVENT_THREAD_RUN_UPDATED, TEXT("model", "model")},
	{EVENT_THREAD_RUN_UPDATED, BOOL("isWake")},
	{EVENT_THREAD_RUN_UPDATED, INT("queuePosition")},
	{EVENT_THREAD_RUN_UPDATED, TIME("requestedAt")},
	{EVENT_THREAD_RUN_UPDATED, TIME("startedAt")},
	{EVENT_THREAD_RUN_UPDATED, TIME("completedAt")},
	{EVENT_THREAD_RUN_UPDATED, RAW("failure")},
	{EVENT_THREAD_RUN_UPDATED, RAW("usage")},
	{EVENT_RUN_ATTEMPT_UPDATED, ID("runN", "runId", SQL_RUN_ID)},
	{EVENT_RUN_ATTEMPT_UPDATED, INT("ordinal")},
	{EVENT_RUN_ATTEMPT_UPDATED, WORD("reason", attempt_reason)},
	{EVENT_RUN_ATTEMPT_UPDATED, WORD("status", work_status)},
	{EVENT_NODE_UPDATED, ID("runN", "runId", SQL_RUN_ID)},
	{EVENT_NODE_UPDATED, WORD("kind", node_kind)},
	{EVENT_NODE_UPDATED, WORD("status", work_status)},
	{EVENT_SUBAGENT_UPDATED, TEXT("id", "taskId")},
	{EVENT_SUBAGENT_UPDATED, ID("runN", "runId", SQL_RUN_ID)},
	{EVENT_SUBAGENT_UPDATED, ID("childN", "childThreadId", SQL_THREAD_ID)},
	{EVENT_SUBAGENT_UPDATED, WORD("origin", subagent_origin)},
	{EVENT_SUBAGENT_UPDATED, WORD("status", work_status)},
	{EVENT_SUBAGENT_UPDATED, WORD("delivery", delivery_state)},
	{EVENT_SUBAGENT_UPDATED, TEXT("title", "title")},
	{EVENT_SUBAGENT_UPDATED, TEXT("instanceId", "providerInstanceId")},
	{EVENT_SUBAGENT_UPDATED, TEXT("model", "model")},
	{EVENT_CONTEXT_TRANSFER_UPDATED, TEXT("id", "transferId")},
	{EVENT_CONTEXT_TRANSFER_UPDATED, WORD("type", transfer_type)},
	{EVENT_CONTEXT_TRANSFER_UPDATED, WORD("status", transfer_status)},
	{EVENT_CONTEXT_TRANSFER_UPDATED, ID("sourceN", "sourceThreadId", SQL_THREAD_ID)},
	{EVENT_CONTEXT_TRANSFER_UPDATED, ID("targetN", "targetThreadId", SQL_THREAD_ID)},
	{EVENT_CONTEXT_TRANSFER_UPDATED, ID("targetRunN", "targetRunId", SQL_RUN_ID)},
	{EVENT_TURN_ITEM_UPDATED, TEXT("id", "turnItemId")},
	{EVENT_TURN_ITEM_UPDATED, ID("runN", "runId", SQL_RUN_ID)},
	{EVENT_TURN_ITEM_UPDATED, INT("ordinal")},
	{EVENT_TURN_ITEM_UPDATED, WORD("type", item_type)},
	{EVENT_TURN_ITEM_UPDATED, WORD("status", work_status)},
	{EVENT_TURN_ITEM_UPDATED, TEXT("title", "title")},
	{EVENT_TURN_ITEM_UPDATED, ID("messageN", "messageId", SQL_MESSAGE_ID)},
	{EVENT_RUNTIME_REQUEST_UPDATED, TEXT("id", "requestId")},
	{EVENT_RUNTIME_REQUEST_UPDATED, ID("runN", "runId", SQL_RUN_ID)},
	{EVENT_RUNTIME_REQUEST_UPDATED, ID("itemN", "turnItemId", SQL_ITEM_ID)},
	{EVENT_RUNTIME_REQUEST_UPDATED, WORD("status", request_status)},
	{EVENT_RUNTIME_REQUEST_UPDATED, BOOL("isLive")},
	{EVENT_PROVIDER_SESSION_UPDATED, TEXT("id", "sessionId")},
	{EVENT_PROVIDER_SESSION_UPDATED, TEXT("driver", "driver")},
	{EVENT_PROVIDER_SESSION_UPDATED, TEXT("instanceId", "providerInstanceId")},
	{EVENT_PROVIDER_SESSION_UPDATED, TEXT("model", "model")},
	{EVENT_PROVIDER_SESSION_UPDATED, WORD("status", session_status)},
	{EVENT_PROVIDER_THREAD_UPDATED, ID("sessionN", "sessionId", SQL_SESSION_ID)},
	{EVENT_PROVIDER_THREAD_UPDATED, TEXT("driver", "driver")},
	{EVENT_PROVIDER_THREAD_UPDATED, TEXT("instanceId", "providerInstanceId")},
	{EVENT_PROVIDER_THREAD_UPDATED, WORD("status", provider_thread_status)},
	{EVENT_PROVIDER_TURN_UPDATED, ID("attemptN", "runId", SQL_RUN_ID_OF_ATTEMPT)},
	{EVENT_PROVIDER_TURN_UPDATED, INT("ordinal")},
	{EVENT_PROVIDER_TURN_UPDATED, WORD("status", work_status)},
	{EVENT_TEXT_APPENDED, ID("itemN", "turnItemId", SQL_ITEM_ID)},
	{EVENT_TEXT_APPENDED, INT("at")},
	{EVENT_TEXT_APPENDED, TEXT("text", "text")},
	{EVENT_CHECKPOINT_SCOPE_UPDATED, ID("runN", "runId", SQL_RUN_ID)},
	{EVENT_CHECKPOINT_UPDATED, TEXT("id", "checkpointId")},
	{EVENT_CHECKPOINT_UPDATED, ID("runN", "runId", SQL_RUN_ID)},
	{EVENT_CHECKPOINT_UPDATED, INT("ordinal")},
	{EVENT_CHECKPOINT_UPDATED, WORD("status", capture_status)},
	{EVENT_CHECKPOINT_UPDATED, INT("fileCount")},
	{EVENT_CHECKPOINT_UPDATED, TEXT("problem", "problem")},
};
/* clang-format on */

bool event_is_of_threads(int64_t type)
{
	return type >= EVENT_PROJECT_UPDATED && type <= EVENT_CHECKPOINT_UPDATED;
}

/* What the row names may be gone: then it is left out. */
static int write_id(struct snapshot *s, const struct member *member, int64_t n, struct json_writer *w, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	bool is_run = member->sql == SQL_RUN_ID || member->sql == SQL_RUN_ID_OF_ATTEMPT;
	int rc;

	if (query(s, &q, f, member->sql, "i", n) != 0)
		return -1;
	rc = query_next(&q, f);
	if (rc == 1)
		jw_kstr(w, member->name, is_run ? ident_run(s->arena, col_str(&q, 0), col_int(&q, 1)) : col_str(&q, 0));
	return rc < 0 ? -1 : 0;
}

static int write_member(struct snapshot *s, const struct member *member, const json_t *value, struct json_writer *w,
	struct failure *f)
{
	switch (member->how) {
	case AS_TEXT:
		jw_kstr(w, member->name, json_str(value));
		return 0;
	case AS_INT:
		jw_kint(w, member->name, json_integer_value(value));
		return 0;
	case AS_BOOL:
		jw_kbool(w, member->name, json_integer_value(value) != 0);
		return 0;
	case AS_TIME:
		jw_ktime(w, member->name, json_integer_value(value));
		return 0;
	case AS_JSON:
		jw_key(w, member->name);
		jw_json(w, value);
		return 0;
	case AS_WORD:
		jw_ktext(w, member->name, member->word(json_integer_value(value)));
		return 0;
	case AS_ID:
		return write_id(s, member, json_integer_value(value), w, f);
	}
	return 0;
}

int event_view(struct snapshot *s, int64_t type, const json_t *data, struct json_writer *w, struct failure *f)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const json_t *value = members[i].type == type ? json_object_get(data, members[i].key) : NULL;

		if (value != NULL && write_member(s, &members[i], value, w, f) != 0)
			return -1;
	}
	return 0;
}
