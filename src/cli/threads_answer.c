/* Questions of agents: listed, answered by a command, or asked on the terminal. */
#include "cli/threads.h"

#include <unistd.h>

/* ---- showing ---- */

static void print_questions(struct cli *cli, FILE *to, const json_t *questions)
{
	for (size_t i = 0; i < json_array_size(questions); i++) {
		const json_t *question = json_array_get(questions, i);
		const json_t *options = json_object_get(question, "options");

		(void)fprintf(to, "         %s%.*s%s  %.*s\n", term_dim(cli), STRF(term_text(cli->arena, json_member_str(question, "id"), 0)),
			term_off(cli), STRF(term_text(cli->arena, json_member_str(question, "text"), 0)));
		for (size_t k = 0; k < json_array_size(options); k++) {
			const json_t *option = json_array_get(options, k);
			struct str label = json_member_str(option, "label");

			(void)fprintf(to, "           - %.*s\n",
				STRF(term_text(cli->arena, label.n > 0 ? label : json_member_str(option, "value"), 0)));
		}
	}
}

void print_request(struct cli *cli, FILE *to, const json_t *request)
{
	const json_t *prompt = json_object_get(request, "prompt");
	struct str detail = json_member_str(prompt, "detail");

	(void)fprintf(to, "%s%.*s%s  %.*s: %s%.*s%s\n", term_dim(cli), STRF(short_id(json_member_str(request, "id"))), term_off(cli),
		STRF(json_member_str(request, "kind")), term_bold(cli),
		STRF(term_text(cli->arena, json_member_str(prompt, "title"), 0)), term_off(cli));
	if (detail.n > 0)
		(void)fprintf(to, "         %.*s\n", STRF(term_text(cli->arena, detail, 0)));
	print_questions(cli, to, json_object_get(prompt, "questions"));
}

static int list_open(struct cli *cli, struct str id, bool json, struct failure *f)
{
	json_auto_t *answer = NULL;
	const json_t *requests;

	if (threads_ask(cli, "requests", id.n == 0 ? json_object() : json_pack("{s:s%}", "id", id.p, id.n), &answer, f) != 0)
		return -1;
	requests = json_object_get(answer, "requests");
	if (json) {
		json_auto_t *out = json_pack("{s:O}", "requests", requests);

		print_json(out);
		return 0;
	}
	if (json_array_size(requests) == 0)
		(void)printf("No open questions.\n");
	for (size_t i = 0; i < json_array_size(requests); i++) {
		const json_t *request = json_array_get(requests, i);

		print_request(cli, stdout, request);
		(void)printf("         %sof %.*s, %.*s%s\n", term_dim(cli), STRF(short_id(json_member_str(request, "threadId"))),
			STRF(term_text(cli->arena, json_member_str(request, "threadTitle"), 60)), term_off(cli));
	}
	return 0;
}

/* ---- answering ---- */

static int send_answer(struct cli *cli, json_t *request, struct failure *f)
{
	json_auto_t *answer = NULL;

	return threads_ask(cli, "respond", request, &answer, f);
}

static int say_answered(struct cli *cli, json_t *request, bool json, struct failure *f)
{
	json_auto_t *answer = NULL;

	if (threads_ask(cli, "respond", request, &answer, f) != 0)
		return -1;
	if (json)
		print_json(answer);
	else
		(void)printf("answered\n");
	return 0;
}

/* The question that an answer without a name is for: the only one. */
static int only_question(const json_t *questions, struct str *out, struct failure *f)
{
	if (json_array_size(questions) == 0)
		return fail(f, FAIL_USAGE, "It asks for permission: --accept, --accept-session, --decline or --cancel.");
	if (json_array_size(questions) != 1)
		return fail(f, FAIL_USAGE, "It asks %zu questions: answer each as ID=TEXT.", json_array_size(questions));
	*out = json_member_str(json_array_get(questions, 0), "id");
	return 0;
}

static bool is_question(const json_t *questions, struct str id)
{
	for (size_t i = 0; i < json_array_size(questions); i++)
		if (str_eq(json_member_str(json_array_get(questions, i), "id"), id))
			return true;
	return false;
}

static int read_answers(const json_t *questions, const struct answering *answering, json_t *out, struct failure *f)
{
	for (size_t i = 0; i < answering->answer_count; i++) {
		struct str text = str_of(answering->answers[i]);
		const char *equals = memchr(text.p, '=', text.n);
		struct str id = {text.p, equals == NULL ? 0 : (size_t)(equals - text.p)};

		if (equals != NULL && is_question(questions, id))
			text = (struct str){equals + 1, text.n - id.n - 1};
		else if (only_question(questions, &id, f) != 0)
			return -1;
		if (json_object_setn_new(out, id.p, id.n, json_stringn(text.p, text.n)) != 0)
			return fail(f, FAIL_USAGE, "The answer is not UTF-8 text.");
	}
	return 0;
}

/* The one open question that the id means, to know what it asks. */
static int find_open(struct cli *cli, struct str id, json_t **out, struct failure *f)
{
	json_auto_t *answer = NULL;
	const json_t *requests;
	const json_t *found = NULL;

	if (threads_ask(cli, "requests", json_object(), &answer, f) != 0)
		return -1;
	requests = json_object_get(answer, "requests");
	for (size_t i = 0; i < json_array_size(requests); i++) {
		const json_t *request = json_array_get(requests, i);
		struct str own = json_member_str(request, "id");
		struct str thread = json_member_str(request, "threadId");

		if (!str_ends(own, id) && !str_starts(own, id) && !str_ends(thread, id) && !str_starts(thread, id))
			continue;
		if (found != NULL)
			return fail(f, FAIL_AMBIGUOUS_ID, "More than one open question is meant by %.*s.", STRF(id));
		found = request;
	}
	if (found == NULL)
		return fail(f, FAIL_NOT_FOUND, "There is no open question %.*s.", STRF(id));
	*out = json_deep_copy(found);
	return 0;
}

int threads_answer(struct cli *cli, struct str id, const struct answering *answering, struct failure *f)
{
	json_auto_t *open = NULL;
	json_auto_t *answers = NULL;
	struct str full;

	if (id.n == 0 || (answering->decision == NULL && answering->answer_count == 0))
		return list_open(cli, id, answering->json, f);
	if (answering->decision != NULL)
		return say_answered(cli, json_pack("{s:s%, s:s}", "id", id.p, id.n, "decision", answering->decision),
			answering->json, f);
	answers = json_object();
	if (find_open(cli, id, &open, f) != 0
		|| read_answers(json_object_get(json_object_get(open, "prompt"), "questions"), answering, answers, f) != 0)
		return -1;
	full = json_member_str(open, "id");
	return say_answered(cli, json_pack("{s:s%, s:O}", "id", full.p, full.n, "answers", answers), answering->json, f);
}

/* ---- on the terminal ---- */

/* 0 at the end of the input. */
static int ask(struct cli *cli, const char *prompt, struct str *out)
{
	char line[8192];

	(void)fprintf(stderr, "%s", prompt);
	(void)fflush(stderr);
	if (fgets(line, sizeof(line), stdin) == NULL)
		return 0;
	*out = str_dup(cli->arena, str_trim(str_of(line)));
	return 1;
}

static int ask_decision(struct cli *cli, struct str id, struct failure *f)
{
	static const struct {
		const char *key, *decision;
	} keys[] = {{"y", "accept"}, {"a", "accept-session"}, {"n", "decline"}, {"c", "cancel"}};
	struct str key;

	while (ask(cli, "allow? y yes, a always in this session, n no, c cancel the turn: ", &key) == 1)
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			if (str_eq_nocase(key, str_of(keys[i].key)))
				return send_answer(cli, json_pack("{s:s%, s:s}", "id", id.p, id.n, "decision", keys[i].decision), f)
						== 0
					? 1
					: -1;
	return 0;
}

int answer_on_terminal(struct cli *cli, const json_t *request, struct failure *f)
{
	const json_t *questions = json_object_get(json_object_get(request, "prompt"), "questions");
	json_auto_t *answers = json_object();
	struct str id = json_member_str(request, "id");

	if (!str_eq(json_member_str(request, "kind"), STR("user-input")))
		return ask_decision(cli, id, f);
	for (size_t i = 0; i < json_array_size(questions); i++) {
		struct str question = json_member_str(json_array_get(questions, i), "id");
		struct str text;

		if (ask(cli, arena_printf(cli->arena, "%.*s: ", STRF(term_text(cli->arena, question, 0))), &text) == 0)
			return 0;
		if (json_object_setn_new(answers, question.p, question.n, json_stringn(text.p, text.n)) != 0)
			return fail(f, FAIL_USAGE, "The answer is not UTF-8 text.");
	}
	return send_answer(cli, json_pack("{s:s%, s:O}", "id", id.p, id.n, "answers", answers), f) == 0 ? 1 : -1;
}
