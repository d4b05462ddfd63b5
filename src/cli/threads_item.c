/* Items of a timeline for people: text as it is, everything else on one line. */
#include "cli/threads.h"

void print_text(struct cli *cli, FILE *to, struct str text)
{
	while (text.n > 0) {
		const char *end = memchr(text.p, '\n', text.n);
		struct str line = {text.p, end == NULL ? text.n : (size_t)(end - text.p)};

		(void)fprintf(to, "%.*s", STRF(term_text(cli->arena, line, 0)));
		if (end == NULL)
			break;
		(void)fputc('\n', to);
		text = (struct str){end + 1, text.n - line.n - 1};
	}
}

/* What one line says of an item: the member of its body that tells most, unless it has a title. */
static struct str gist_of(struct cli *cli, const json_t *item)
{
	static const char *const members[] = {
		"input", "fileName", "pattern", "toolName", "message", "markdown", "explanation", "summary", "title", NULL};
	const json_t *body = json_object_get(item, "body");
	struct str title = json_member_str(item, "title");
	struct str failure = json_member_str(json_object_get(body, "failure"), "message");

	if (title.n > 0)
		return title;
	if (failure.n > 0)
		return failure;
	for (int i = 0; members[i] != NULL; i++) {
		const json_t *value = json_object_get(body, members[i]);

		if (json_is_string(value))
			return json_str(value);
		if (value != NULL)
			return json_canonical(cli->arena, value);
	}
	return STR("");
}

static const char *word_of(struct str type)
{
	static const struct {
		const char *type, *word;
	} words[] = {
		{"approval_request", "asks"},
		{"command_execution", "run"},
		{"compaction", "compacted"},
		{"dynamic_tool", "tool"},
		{"error", "error"},
		{"file_change", "edit"},
		{"file_search", "search"},
		{"proposed_plan", "plan"},
		{"run_interrupt_request", "stop"},
		{"run_interrupt_result", "stopped"},
		{"subagent", "task"},
		{"todo_list", "to do"},
		{"user_input_request", "asks"},
		{"web_search", "web"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_eq(type, str_of(words[i].type)))
			return words[i].word;
	return "note";
}

static void print_message(struct cli *cli, FILE *to, struct str text)
{
	(void)fprintf(to, "%s> ", term_bold(cli));
	print_text(cli, to, text);
	(void)fprintf(to, "%s\n", term_off(cli));
}

void print_item(struct cli *cli, FILE *to, const json_t *item)
{
	struct str type = json_member_str(item, "type");
	struct str status = json_member_str(item, "status");
	struct str text = json_member_str(item, "text");
	bool is_over = !str_eq(status, STR("pending")) && !str_eq(status, STR("running")) && !str_eq(status, STR("waiting"));

	if (str_eq(type, STR("user_message"))) {
		print_message(cli, to, text);
		return;
	}
	if (str_eq(type, STR("assistant_message")) || str_eq(type, STR("reasoning"))) {
		bool is_dim = str_eq(type, STR("reasoning"));

		(void)fputs(is_dim ? term_dim(cli) : "", to);
		print_text(cli, to, text);
		(void)fprintf(to, "%s%s", is_dim ? term_off(cli) : "", text.n > 0 && text.p[text.n - 1] == '\n' ? "" : "\n");
		return;
	}
	(void)fprintf(to, "%s%s%s %.*s", term_dim(cli), word_of(type), term_off(cli),
		STRF(term_text(cli->arena, gist_of(cli, item), term_width() > 30 ? term_width() - 24 : 20)));
	if (is_over && (!str_eq(status, STR("completed")) || str_eq(type, STR("subagent"))))
		(void)fprintf(to, "  %.*s", STRF(status));
	(void)fputc('\n', to);
}
