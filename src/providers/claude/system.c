/* Lines of type `system`: what the program says about itself. */
#include "providers/claude/claude.h"

#include "base/limits.h"

#include <inttypes.h>

static void check_servers(struct claude *c, const json_t *line, struct agent_out *out)
{
	const json_t *server;
	size_t i;

	json_array_foreach(json_object_get(line, "mcp_servers"), i, server) {
		struct str status = json_member_str(server, "status");

		if (str_eq(json_member_str(server, "name"), STR(CLAUDE_SERVER)) && !str_eq(status, STR("connected")))
			claude_notice(c, out, "error",
				str_printf(out->arena, "The tools of dais are not reachable for this agent: %.*s.",
					STRF(claude_id(out->arena, status))));
	}
}

static void on_init(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct str id = claude_id(out->arena, json_member_str(line, "session_id"));

	if (!str_eq(id, c->native)) {
		claude_broken(c, out,
			str_printf(out->arena, "expected the conversation %.*s, the program is in %.*s", STRF(c->native),
				STRF(id)));
		return;
	}
	c->is_confirmed = true;
	SET(c, mode, json_member_str(line, "permissionMode"));
	claude_turn_start(c, out);
	check_servers(c, line, out);
}

static void on_status(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct str mode = json_member_str(line, "permissionMode");
	struct body b;

	if (mode.p == NULL || str_eq(mode, c->mode))
		return;
	SET(c, mode, mode);
	body_begin(&b, out->arena);
	jw_kstr(&b.w, "mode", c->mode);
	agent_out_event(out, EVENT_MODE)->body = body_end(&b);
}

/* One notice for a row of tries. */
static void on_retry(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct str error = claude_id(out->arena, json_member_str(line, "error"));
	struct body b;

	if (c->retry_key.n == 0)
		SET(c, retry_key, str_printf(out->arena, "retry-%" PRId64, ++c->notices));
	body_begin(&b, out->arena);
	jw_ktext(&b.w, "severity", "warning");
	jw_kstr(&b.w, "message", str_printf(out->arena, "The model is asked again: %.*s.", STRF(error)));
	jw_kobject(&b.w, "retry");
	jw_kint(&b.w, "attempt", json_integer_value(json_object_get(line, "attempt")));
	jw_kint_opt(&b.w, "maxAttempts", json_integer_value(json_object_get(line, "max_retries")));
	jw_kint(&b.w, "retryDelayMs", (int64_t)json_number_value(json_object_get(line, "retry_delay_ms")));
	jw_object_end(&b.w);
	claude_item(out, ITEM_NOTICE, str_dup(out->arena, c->retry_key), STR_NONE, AGENT_COMPLETED)->body =
		body_end(&b);
}

static void on_compact(struct claude *c, const json_t *line, struct agent_out *out)
{
	const json_t *data = json_object_get(line, "compact_metadata");
	struct str key = str_printf(out->arena, "compaction-%" PRId64, ++c->notices);
	struct body b;

	body_begin(&b, out->arena);
	jw_kint_opt(&b.w, "beforeTokenCount", json_integer_value(json_object_get(data, "pre_tokens")));
	jw_kint_opt(&b.w, "afterTokenCount", json_integer_value(json_object_get(data, "post_tokens")));
	claude_item(out, ITEM_COMPACTION, key, STR_NONE, AGENT_COMPLETED)->body = body_end(&b);
}

static void on_informational(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct str content = json_member_str(line, "content");

	if (content.n > 0)
		claude_notice(c, out, "info", content);
}

static void on_denied(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct str tool = claude_id(out->arena, json_member_str(line, "tool_name"));
	struct str why = json_member_str(line, "message");

	claude_notice(c, out, "warning",
		str_printf(out->arena, "%.*s was denied%s%.*s", STRF(tool), why.n > 0 ? ": " : "", STRF(why)));
}

/* A sub-agent that outlives its call. */
static struct agent_item *task_item(struct claude *c, const json_t *line, enum agent_status status, struct agent_out *out)
{
	struct str task = claude_id(out->arena, json_member_str(line, "task_id"));
	struct str key = str_dup(out->arena, json_str(json_object_getn(c->tasks, task.p, task.n)));
	const json_t *row = json_object_getn(c->items, key.p, key.n);

	if (row == NULL)
		return NULL;
	return claude_item(out, ITEM_SUBAGENT, key, str_dup(out->arena, json_member_str(row, "parent")), status);
}

static void on_task_started(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct str task = claude_id(out->arena, json_member_str(line, "task_id"));
	struct str key = claude_id(out->arena, json_member_str(line, "tool_use_id"));
	struct agent_item *item;
	struct body b;

	if (!str_eq(json_member_str(line, "task_type"), STR("local_agent")) || task.p == NULL || key.p == NULL ||
		json_object_size(c->tasks) >= LIMIT_CLAUDE_OPEN_ITEMS)
		return;
	json_object_setn_new(c->tasks, task.p, task.n, json_stringn(key.p, key.n));
	item = task_item(c, line, AGENT_RUNNING, out);
	if (item == NULL)
		return;
	body_begin(&b, out->arena);
	jw_kstr(&b.w, "nativeThreadId", task);
	item->body = body_end(&b);
}

static void on_task_progress(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct agent_item *item = task_item(c, line, AGENT_RUNNING, out);
	struct body b;

	if (item == NULL)
		return;
	body_begin(&b, out->arena);
	jw_kstr(&b.w, "progress", json_member_str(line, "description"));
	item->body = body_end(&b);
}

static void on_task_notification(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct str task = claude_id(out->arena, json_member_str(line, "task_id"));
	struct str status = json_member_str(line, "status");
	struct agent_item *item = task_item(c, line,
		str_eq(status, STR("completed"))	? AGENT_COMPLETED
			: str_eq(status, STR("failed")) ? AGENT_FAILED
							: AGENT_INTERRUPTED,
		out);
	struct body b;

	if (item == NULL)
		return;
	body_begin(&b, out->arena);
	jw_kstr(&b.w, "result", json_member_str(line, "summary"));
	item->body = body_end(&b);
	json_object_deln(c->items, item->key.p, item->key.n);
	json_object_deln(c->tasks, task.p, task.n);
}

static void on_background(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct json_writer w;
	struct buf roster;
	const json_t *task;
	size_t i;

	(void)c;
	buf_init(&roster, out->arena, SIZE_MAX);
	json_writer_init(&w, &roster);
	jw_array_begin(&w);
	json_array_foreach(json_object_get(line, "tasks"), i, task) {
		jw_object_begin(&w);
		jw_kstr(&w, "taskId", claude_id(out->arena, json_member_str(task, "task_id")));
		jw_kstr_opt(&w, "description", json_member_str(task, "description"));
		jw_kstr_opt(&w, "taskType", json_member_str(task, "task_type"));
		jw_object_end(&w);
	}
	jw_array_end(&w);
	agent_out_event(out, EVENT_BACKGROUND)->body = buf_str(&roster);
}

/* Rest is the last word on a turn: a result that was lost, or a steering message that nobody read, must not keep it open.
 * A turn that has not begun is not meant: that is the rest after the one before. */
static void on_state(struct claude *c, const json_t *line, struct agent_out *out)
{
	struct agent_failure lost;

	if (!str_eq(json_member_str(line, "state"), STR("idle")) || !c->in_turn || !c->is_started)
		return;
	if (c->has_result) {
		claude_end_turn(c, c->is_interrupted ? AGENT_INTERRUPTED : AGENT_COMPLETED, NULL, STR_NONE, out);
		return;
	}
	lost = agent_failure_of(CODE_protocol_violation, STR("the program came to rest and gave no result"));
	claude_end_turn(c, AGENT_FAILED, &lost, STR_NONE, out);
}

void claude_rate_limit(struct claude *c, const json_t *line, struct agent_out *out)
{
	const json_t *info = json_object_get(line, "rate_limit_info");
	struct str status = json_member_str(info, "status");
	struct str kind = claude_id(out->arena, json_member_str(info, "rateLimitType"));

	if (status.p == NULL || str_eq(status, c->limit_status))
		return;
	SET(c, limit_status, status);
	if (str_eq(status, STR("allowed")))
		return;
	claude_notice(c, out, str_eq(status, STR("rejected")) ? "error" : "warning",
		str_printf(out->arena, "Limit of the account: %.*s%s%.*s.", STRF(c->limit_status), kind.n > 0 ? ", " : "",
			STRF(kind)));
}

void claude_system(struct claude *c, const json_t *line, struct agent_out *out)
{
	static const struct {
		const char *subtype;
		void (*read)(struct claude *c, const json_t *line, struct agent_out *out);
	} rows[] = {
		{"api_retry", on_retry},
		{"background_tasks_changed", on_background},
		{"compact_boundary", on_compact},
		{"informational", on_informational},
		{"init", on_init},
		{"permission_denied", on_denied},
		{"session_state_changed", on_state},
		{"status", on_status},
		{"task_notification", on_task_notification},
		{"task_progress", on_task_progress},
		{"task_started", on_task_started},
	};
	struct str subtype = json_member_str(line, "subtype");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (str_eq(subtype, str_of(rows[i].subtype)))
			rows[i].read(c, line, out);
}
