/* What an item of a timeline says, as text: one way for each type. */
#include "threads/command.h"

struct saying {
	struct snapshot *s;
	const struct turn_item_row *item;
	json_t *body; /* NULL: none */
	struct buf out;
	bool is_null;
};

static struct str member(const struct saying *say, const char *name)
{
	return json_member_str(say->body, name);
}

/* The first of these members that says something. */
static void say_first(struct saying *say, const char *const *names)
{
	for (; *names != NULL; names++) {
		struct str text = member(say, *names);

		if (text.n > 0) {
			buf_add_str(&say->out, text);
			return;
		}
	}
	say->is_null = true;
}

static int say_message(struct saying *say, struct failure *f)
{
	struct message_row message;

	if (NEED(say->s, message, say->item->message_n, &message, f) != 0)
		return -1;
	buf_add_str(&say->out, message.text);
	return 0;
}

static int say_streamed(struct saying *say, struct failure *f)
{
	struct str text;

	if (item_text(say->s, say->item, &text, f) != 0)
		return -1;
	buf_add_str(&say->out, text);
	return 0;
}

static void say_todo(struct saying *say)
{
	const json_t *step;
	size_t i;

	buf_add_str(&say->out, member(say, "explanation"));
	json_array_foreach(json_object_get(say->body, "steps"), i, step)
	{
		if (say->out.n > 0)
			buf_add_char(&say->out, '\n');
		buf_printf(&say->out, "[%.*s] %.*s", STRF(json_member_str(step, "status")), STRF(json_member_str(step, "text")));
	}
}

static void say_command(struct saying *say)
{
	struct str output = member(say, "output");

	buf_printf(&say->out, "$ %.*s", STRF(member(say, "input")));
	if (output.n > 0)
		buf_printf(&say->out, "\n%.*s", STRF(output));
}

static void say_count(struct saying *say, char sign, const char *name)
{
	const json_t *count = json_object_get(say->body, name);

	if (json_is_integer(count))
		buf_printf(&say->out, " %c%lld", sign, (long long)json_integer_value(count));
}

static void say_file_change(struct saying *say)
{
	struct str change = member(say, "diffStr");

	if (change.n == 0)
		change = member(say, "newStr");
	buf_add_str(&say->out, member(say, "fileName"));
	say_count(say, '+', "additions");
	say_count(say, '-', "deletions");
	if (change.n > 0)
		buf_printf(&say->out, "\n%.*s", STRF(change));
}

/* All of the body, or one member of it. */
static void say_json(struct saying *say, const char *name)
{
	const json_t *value = name == NULL ? say->body : json_object_get(say->body, name);

	if (value == NULL)
		say->is_null = true;
	else
		buf_add_str(&say->out, json_indented(say->s->arena, value));
}

static void say_failure(struct saying *say)
{
	buf_add_str(&say->out, json_member_str(json_object_get(say->body, "failure"), "message"));
}

static void say_line(struct saying *say, const char *line, const char *name)
{
	buf_printf(&say->out, "%s %.*s.", line, STRF(member(say, name)));
}

/* A task of ours by its row; a program's own by what it told. */
static int say_subagent(struct saying *say, struct failure *f)
{
	static const char *const told[] = {"result", "progress", "prompt", "title", NULL};
	struct subagent_row task;
	struct str id = member(say, "subagentId");
	int64_t n;
	int rc = id.n == 0 ? 0 : row_find(say->s, ROW_subagent, id, &n, f);

	if (rc < 0)
		return -1;
	if (rc == 0) {
		say_first(say, told);
		return 0;
	}
	if (NEED(say->s, subagent, n, &task, f) != 0)
		return -1;
	buf_add_str(&say->out, task.result.n > 0 ? task.result : task.progress.n > 0 ? task.progress : task.prompt);
	return 0;
}

static int say(struct saying *say, struct failure *f)
{
	static const char *const approval[] = {"title", "detail", NULL}, *const said[] = {"message", NULL},
				 *const markdown[] = {"markdown", NULL}, *const summary[] = {"summary", NULL},
				 *const handoff[] = {"summary", "strategy", NULL};

	switch ((enum item_type)say->item->type) {
	case TYPE_USER_MESSAGE:
		return say_message(say, f);
	case TYPE_ASSISTANT_MESSAGE:
	case TYPE_REASONING:
		return say_streamed(say, f);
	case TYPE_SUBAGENT:
		return say_subagent(say, f);
	case TYPE_PROPOSED_PLAN:
		say_first(say, markdown);
		return 0;
	case TYPE_TODO_LIST:
		say_todo(say);
		return 0;
	case TYPE_COMMAND_EXECUTION:
		say_command(say);
		return 0;
	case TYPE_FILE_CHANGE:
		say_file_change(say);
		return 0;
	case TYPE_USER_INPUT_REQUEST:
	case TYPE_FILE_SEARCH:
	case TYPE_WEB_SEARCH:
	case TYPE_DYNAMIC_TOOL:
		say_json(say, NULL);
		return 0;
	case TYPE_CHECKPOINT:
		say_json(say, "files");
		return 0;
	case TYPE_APPROVAL_REQUEST:
		say_first(say, approval);
		return 0;
	case TYPE_RUN_INTERRUPT_REQUEST:
	case TYPE_RUN_INTERRUPT_RESULT:
	case TYPE_NOTICE:
		say_first(say, said);
		return 0;
	case TYPE_ERROR:
		say_failure(say);
		return 0;
	case TYPE_COMPACTION:
		say_first(say, summary);
		return 0;
	case TYPE_HANDOFF:
		say_first(say, handoff);
		return 0;
	case TYPE_FORK:
		say_line(say, "Forked as", "targetThreadId");
		return 0;
	case TYPE_THREAD_CREATED:
		say_line(say, "Created the thread", "targetThreadId");
		return 0;
	case TYPE_COUNT:
		break;
	}
	say->is_null = true;
	return 0;
}

int item_words(struct snapshot *s, const struct turn_item_row *item, struct str *out, struct failure *f)
{
	struct json_error error;
	json_auto_t *body = item->body.p == NULL ? NULL : json_read(item->body, &error);
	struct saying saying = {.s = s, .item = item, .body = body};

	buf_init(&saying.out, s->arena, SIZE_MAX);
	if (say(&saying, f) != 0)
		return -1;
	*out = saying.is_null ? STR_NONE : buf_str(&saying.out);
	return 0;
}
