/* What an agent is told of a conversation that it did not hear: the thread went on with another program, or the
 * program's own memory of it is lost. */
#include "threads/engine.h"

#include "base/limits.h"

#include <string.h>

SQL(SQL_HEARD, "SELECT first_run FROM provider_thread WHERE n = $1");
SQL(SQL_EARLIER,
	"SELECT i.n FROM turn_item i JOIN thread_run r ON r.n = i.run_n WHERE i.thread_n = $1 AND r.ordinal < $2"
	" AND i.type IN (0, 1, 7, 8) ORDER BY i.ordinal DESC LIMIT $3");

/* One line, cut to its limit. */
static struct str line_of(struct arena *arena, struct str text)
{
	char *copy;
	size_t chars = utf8_count(text);

	text = str_trim(text);
	if (chars > LIMIT_HANDOFF_LINE_CHARS)
		text.n = utf8_offset(text, LIMIT_HANDOFF_LINE_CHARS);
	copy = arena_copy(arena, text.p, text.n);
	for (size_t i = 0; i < text.n; i++)
		if (copy[i] == '\n' || copy[i] == '\r' || copy[i] == '\t')
			copy[i] = ' ';
	return str_printf(arena, "%.*s%s", (int)text.n, copy, chars > LIMIT_HANDOFF_LINE_CHARS ? "…" : "");
}

static struct str member_of(struct arena *arena, struct str body, const char *key)
{
	struct json_error error;
	json_auto_t *value = body.p == NULL ? NULL : json_read(body, &error);

	return str_dup(arena, json_member_str(value, key));
}

static int entry_of(struct snapshot *s, int64_t item_n, struct str *out, struct failure *f)
{
	struct turn_item_row item;
	struct message_row message;
	struct str text = STR_NONE;
	const char *who = "Agent";

	*out = STR_NONE;
	if (NEED(s, turn_item, item_n, &item, f) != 0)
		return -1;
	switch (item.type) {
	case TYPE_USER_MESSAGE:
		if (NEED(s, message, item.message_n, &message, f) != 0)
			return -1;
		text = message.text;
		who = "User";
		break;
	case TYPE_ASSISTANT_MESSAGE:
		if (item_text(s, &item, &text, f) != 0)
			return -1;
		break;
	case TYPE_COMMAND_EXECUTION:
		text = member_of(s->arena, item.body, "input");
		who = "Command";
		break;
	default:
		text = member_of(s->arena, item.body, "fileName");
		who = "Changed file";
		break;
	}
	if (text.n > 0)
		*out = str_printf(s->arena, "%s: %.*s\n", who, STRF(line_of(s->arena, text)));
	return 0;
}

struct entries {
	struct str lines[LIMIT_HANDOFF_ENTRIES];
	size_t count, chars;
	bool is_cut; /* older ones were left out */
};

static int collect(struct snapshot *s, const struct thread_run_row *run, struct entries *out, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	int rc;

	*out = (struct entries){0};
	if (query(s, &q, f, SQL_EARLIER, "iii", run->thread_n, run->ordinal, (int64_t)LIMIT_HANDOFF_ENTRIES) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		struct str line;

		if (entry_of(s, col_int(&q, 0), &line, f) != 0)
			return -1;
		if (line.n == 0)
			continue;
		out->chars += utf8_count(line);
		if (out->chars > LIMIT_HANDOFF_CHARS) {
			out->is_cut = true;
			return 0;
		}
		out->lines[out->count++] = line;
	}
	out->is_cut = rc == 0 && out->count == LIMIT_HANDOFF_ENTRIES;
	return rc;
}

static int has_heard(struct snapshot *s, const struct thread_row *thread, struct failure *f)
{
	int64_t first;

	return thread->provider_thread_n == 0 ? 0 : query_int(s, &first, f, SQL_HEARD, "i", thread->provider_thread_n);
}

int handoff_text(struct snapshot *s, const struct thread_row *thread, const struct thread_run_row *run, struct str message,
	struct str *out, struct failure *f)
{
	struct entries entries;
	struct buf text;
	int rc;

	*out = message;
	if (run->ordinal == 1)
		return 0;
	rc = has_heard(s, thread, f);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (collect(s, run, &entries, f) != 0)
		return -1;
	if (entries.count == 0)
		return 0;
	buf_init(&text, s->arena, SIZE_MAX);
	buf_add_str(&text, STR("This conversation began before you joined it. What was said and done, newest last, each shortened:\n\n"));
	if (entries.is_cut)
		buf_add_str(&text, STR("(older entries are left out; t3_thread_read shows them)\n"));
	for (size_t i = entries.count; i > 0; i--)
		buf_add_str(&text, entries.lines[i - 1]);
	buf_add_str(&text, STR("\nThe message that you are to answer now:\n\n"));
	buf_add_str(&text, message);
	*out = buf_str(&text);
	return 0;
}
