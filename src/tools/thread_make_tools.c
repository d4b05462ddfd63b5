/* create_threads, t3_thread_update. */
#include "tools/thread_fields.h"

/* ---- create_threads ---- */

struct entry_arg {
	struct arg_str prompt, title;
	struct arg_object target;
	struct arg_int runtime, interaction;
};

struct create_arg {
	struct arg_objects threads;
	struct arg_str client_request_id;
};

static const struct field entry_fields[] = {
	FIELD(struct entry_arg, prompt, "prompt", FIELD_STR, TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_PROMPT_CHARS,
		.help = "its first message; without one it waits for t3_thread_send"),
	FIELD(struct entry_arg, title, "title", FIELD_STR, TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_THREAD_TITLE_CHARS,
		.help = "default: how the prompt begins"),
	TARGET_FIELD(struct entry_arg, target),
	RUNTIME_FIELD(struct entry_arg, runtime),
	INTERACTION_FIELD(struct entry_arg, interaction),
	FIELDS_END,
};

static const struct field create_fields[] = {
	FIELD(struct create_arg, threads, "threads", FIELD_OBJECTS, REQUIRED, .min = 1, .max = LIMIT_BATCH_THREADS,
		.fields = entry_fields, .item_size = sizeof(struct entry_arg), .help = "one entry for each thread"),
	REQUEST_ID_FIELD(struct create_arg, client_request_id),
	FIELDS_END,
};

static int run_create(struct tx *tx, struct asked *asked, const void *args, struct json_writer *w, struct failure *f)
{
	const struct create_arg *create = args;
	const struct entry_arg *from = create->threads.v;
	struct create_entry *entries = arena_alloc(tx->snapshot.arena, create->threads.n * sizeof(*entries));

	for (size_t i = 0; i < create->threads.n; i++)
		entries[i] = (struct create_entry){.prompt = given(&from[i].prompt),
			.title = given(&from[i].title),
			.target = target_of(&from[i].target),
			.runtime = mode_of(&from[i].runtime),
			.interaction = mode_of(&from[i].interaction)};
	return command_create(tx, asked, entries, create->threads.n, w, f);
}

static const struct plain plain_create = {
	.fields = create_fields,
	.args_size = sizeof(struct create_arg),
	.output = "{\"type\":\"object\",\"properties\":{\"threads\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
		  "\"threadId\":" TEXT_TYPE ",\"runId\":" TEXT_OR_NULL ",\"status\":" TEXT_TYPE ",\"title\":" TEXT_TYPE
		  ",\"createdBy\":" TEXT_TYPE ",\"creationSource\":" TEXT_TYPE ",\"providerInstanceId\":" TEXT_TYPE
		  ",\"model\":" TEXT_OR_NULL "},\"required\":[\"threadId\",\"status\",\"title\"]}}},\"required\":[\"threads\"]}",
	.run = run_create,
	ERRORS(FAIL_PARENT_NOT_ACTIVE, FAIL_PROVIDER_UNAVAILABLE, FAIL_MODEL_UNAVAILABLE, FAIL_RUNTIME_MODE_ESCALATION_DENIED,
		FAIL_INTERACTION_MODE_ESCALATION_DENIED),
	.example = "{\"threads\":[{\"title\":\"Docs pass\",\"prompt\":\"Proof-read docs/*.md.\"},{\"title\":\"Later\"}],"
		   "\"clientRequestId\":\"wave-1\"}",
	.is_open_world = true,
};

const struct tool tool_create_threads = {
	.name = "create_threads",
	.title = "Create threads",
	.description = "Makes top-level threads in this project, all of them or none. They are conversations of their own and report "
		       "to nobody: use it when the user asked for separate conversations, and delegate_task for work whose result "
		       "you need.",
	.plain = &plain_create,
};

/* ---- update ---- */

struct pull_request_arg {
	struct arg_str repository, url;
	struct arg_int number;
};

struct update_arg {
	struct arg_str thread, title, client_request_id;
	struct arg_int action;
	struct arg_object pull_request;
};

static const struct word action_words[] = {
	{"rename", UPDATE_RENAME},
	{"regenerate_title", UPDATE_REGENERATE_TITLE},
	{"link_pull_request", UPDATE_LINK_PULL_REQUEST},
	{"unlink_pull_request", UPDATE_UNLINK_PULL_REQUEST},
	WORDS_END,
};

/* owner/name */
static bool is_repository(struct str text)
{
	const char *slash = memchr(text.p, '/', text.n);

	if (slash == NULL || slash == text.p || slash + 1 == text.p + text.n)
		return false;
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] <= ' ' || (text.p[i] == '/' && text.p + i != slash))
			return false;
	return true;
}

static bool is_url(struct str text)
{
	struct str rest = text;

	if (str_starts(text, STR("https://")))
		rest = (struct str){text.p + strlen("https://"), text.n - strlen("https://")};
	else if (str_starts(text, STR("http://")))
		rest = (struct str){text.p + strlen("http://"), text.n - strlen("http://")};
	else
		return false;
	for (size_t i = 0; i < rest.n; i++)
		if ((unsigned char)rest.p[i] <= ' ')
			return false;
	return rest.n > 0 && rest.p[0] != '/';
}

static const struct field pull_request_fields[] = {
	FIELD(struct pull_request_arg, repository, "repository", FIELD_STR, REQUIRED | TRIMMED, .min = 1, .max = LIMIT_REPOSITORY_CHARS,
		.legal = is_repository, .syntax = "owner/name", .help = "owner/name"),
	FIELD(struct pull_request_arg, number, "number", FIELD_INT, REQUIRED, .min = 1, .max = INT32_MAX, .help = "its number there"),
	FIELD(struct pull_request_arg, url, "url", FIELD_STR, REQUIRED | TRIMMED, .min = 1, .max = LIMIT_URL_CHARS, .legal = is_url,
		.syntax = "an address that begins with http:// or https://", .help = "where people see it"),
	FIELDS_END,
};

static const struct field update_fields[] = {
	FIELD(struct update_arg, thread, "threadId", FIELD_STR, 0, .min = 1, .max = LIMIT_THREAD_ID_CHARS,
		.help = "a threadId of this project; default: the caller's own thread"),
	FIELD(struct update_arg, action, "action", FIELD_WORD, REQUIRED, .words = action_words,
		.help = "rename needs title, link_pull_request needs pullRequest"),
	FIELD(struct update_arg, title, "title", FIELD_STR, TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_THREAD_TITLE_CHARS,
		.help = "for rename alone"),
	FIELD(struct update_arg, pull_request, "pullRequest", FIELD_OBJECT, 0, .fields = pull_request_fields,
		.item_size = sizeof(struct pull_request_arg), .help = "for link_pull_request alone"),
	REQUEST_ID_FIELD(struct update_arg, client_request_id),
	FIELDS_END,
};

static int run_update(struct tx *tx, struct asked *asked, const void *args, struct json_writer *w, struct failure *f)
{
	const struct update_arg *update = args;
	const struct pull_request_arg *link = update->pull_request.set ? update->pull_request.v : NULL;
	struct update_args wanted = {.thread_id = given(&update->thread),
		.action = (enum update_action)update->action.v,
		.title = given(&update->title)};

	if (link != NULL) {
		wanted.repository = link->repository.v;
		wanted.url = link->url.v;
		wanted.number = link->number.v;
	}
	return command_update(tx, asked, &wanted, w, f);
}

static const struct plain plain_update = {
	.fields = update_fields,
	.args_size = sizeof(struct update_arg),
	.output = "{\"type\":\"object\",\"properties\":{\"threadId\":" TEXT_TYPE ",\"action\":" TEXT_TYPE ",\"commandId\":" TEXT_TYPE
		  ",\"sequence\":" INT_TYPE ",\"title\":" TEXT_TYPE ",\"titleRegeneration\":" OBJECT_OR_NULL
		  ",\"linkedPullRequest\":" OBJECT_OR_NULL ",\"updatedAt\":" TEXT_TYPE
		  "},\"required\":[\"threadId\",\"action\",\"commandId\",\"sequence\",\"title\",\"updatedAt\"]}",
	.run = run_update,
	ERRORS(FAIL_THREAD_NOT_FOUND),
	.example = "{\"action\":\"rename\",\"title\":\"Ring buffer\",\"clientRequestId\":\"title-2\"}",
};

const struct tool tool_thread_update = {
	.name = "t3_thread_update",
	.title = "Rename or link a thread",
	.description = "Renames a thread, or links it to a pull request. Its branch and its folder stay. A repetition with the same "
		       "clientRequestId is told what the first call was told.",
	.plain = &plain_update,
};
