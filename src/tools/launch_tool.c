/* t3_thread_launch. */
#include "tools/thread_fields.h"

#define LOOK_MS 60000 /* for worktreePath: git has to start, on a disk that may be slow */

struct selection_arg {
	struct arg_str instance_id, model;
};

static const struct field selection_fields[] = {
	FIELD(struct selection_arg, instance_id, "instanceId", FIELD_STR, REQUIRED, .min = 1, .max = LIMIT_PROVIDER_ID_CHARS,
		.help = "a provider instance"),
	FIELD(struct selection_arg, model, "model", FIELD_STR, REQUIRED | TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_MODEL_CHARS,
		.help = "one that it offers"),
	FIELDS_END,
};

struct strategy_arg {
	struct arg_int type;
	struct arg_str base, branch, worktree_path;
	struct arg_bool is_from_origin;
};

static const struct word strategy_words[] = {
	{"root", WORKSPACE_ROOT},
	{"worktree", WORKSPACE_WORKTREE},
	{"existing_worktree", WORKSPACE_EXISTING},
	WORDS_END,
};

static const struct field strategy_fields[] = {
	FIELD(struct strategy_arg, type, "type", FIELD_WORD, REQUIRED, .words = strategy_words,
		.help = "root: the project's folder; worktree: a new one; existing_worktree: one that is there"),
	FIELD(struct strategy_arg, base, "baseRef", FIELD_STR, NOT_BLANK, .min = 1, .max = LIMIT_FOLDER_CHARS,
		.help = "worktree: the branch or commit that it starts from, commits that were not pushed included"),
	FIELD(struct strategy_arg, branch, "branch", FIELD_STR, NOT_BLANK, .min = 1, .max = LIMIT_FOLDER_CHARS,
		.help = "worktree: name of the new branch, made fit for git; default: one that dais makes up"),
	FIELD(struct strategy_arg, is_from_origin, "startFromOrigin", FIELD_BOOL, 0, .fallback = "false",
		.help = "worktree: fetch, and start from what origin has of baseRef"),
	FIELD(struct strategy_arg, worktree_path, "worktreePath", FIELD_STR, NOT_BLANK, .min = 1, .max = LIMIT_FOLDER_CHARS,
		.help = "existing_worktree: its absolute path"),
	FIELDS_END,
};

/* "inherit" is what leaving it out means. */
static const struct word own_runtime_words[] = {
	{"approval-required", RUNTIME_APPROVAL_REQUIRED},
	{"auto-accept-edits", RUNTIME_AUTO_ACCEPT_EDITS},
	{"full-access", RUNTIME_FULL_ACCESS},
	WORDS_END,
};
static const struct word own_interaction_words[] = {
	{"plan", INTERACTION_PLAN},
	{"default", INTERACTION_DEFAULT},
	WORDS_END,
};

struct launch_arg {
	struct arg_str title, message, project_id, client_request_id;
	struct arg_bool is_scratch;
	struct arg_object selection, strategy;
	struct arg_int runtime, interaction;
};

static const struct field launch_fields[] = {
	FIELD(struct launch_arg, title, "title", FIELD_STR, REQUIRED | TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_THREAD_TITLE_CHARS,
		.help = "a few words"),
	FIELD(struct launch_arg, message, "message", FIELD_STR, TRIMMED | NOT_BLANK, .min = 1, .max = LIMIT_PROMPT_CHARS,
		.help = "what its agent is told; without it the thread waits for t3_thread_send"),
	FIELD(struct launch_arg, project_id, "projectId", FIELD_STR, 0, .min = 1, .max = LIMIT_THREAD_ID_CHARS,
		.help = "default: the caller's project"),
	FIELD(struct launch_arg, is_scratch, "scratch", FIELD_BOOL, 0, .fallback = "false",
		.help = "a new empty folder, outside any project"),
	FIELD(struct launch_arg, selection, "modelSelection", FIELD_OBJECT, 0, .fields = selection_fields,
		.item_size = sizeof(struct selection_arg), .help = "who shall work; default: as the caller"),
	FIELD(struct launch_arg, runtime, "runtimeMode", FIELD_WORD, 0, .words = own_runtime_words,
		.help = "default: as the caller"),
	FIELD(struct launch_arg, interaction, "interactionMode", FIELD_WORD, 0, .words = own_interaction_words,
		.help = "default: as the caller"),
	FIELD(struct launch_arg, strategy, "workspaceStrategy", FIELD_OBJECT, 0, .fields = strategy_fields,
		.item_size = sizeof(struct strategy_arg),
		.help = "where it works; default: the project's folder, also when the caller sits in a work tree"),
	REQUEST_ID_FIELD(struct launch_arg, client_request_id),
	FIELDS_END,
};

static void read_strategy(const struct launch_arg *launch, struct launch_args *out)
{
	const struct strategy_arg *strategy = launch->strategy.v;

	out->has_strategy = launch->strategy.set && strategy != NULL;
	if (!out->has_strategy)
		return;
	out->strategy = (enum workspace_kind)strategy->type.v;
	out->base = given(&strategy->base);
	out->branch = given(&strategy->branch);
	out->worktree_path = given(&strategy->worktree_path);
	out->is_from_origin = strategy->is_from_origin.set && strategy->is_from_origin.v;
}

static int run_launch(struct tx *tx, struct asked *asked, const void *args, struct json_writer *w, struct failure *f)
{
	const struct launch_arg *launch = args;
	const struct selection_arg *selection = launch->selection.v;
	struct launch_args in = {.title = launch->title.v,
		.message = given(&launch->message),
		.project_id = given(&launch->project_id),
		.is_scratch = launch->is_scratch.set && launch->is_scratch.v,
		.runtime = mode_of(&launch->runtime),
		.interaction = mode_of(&launch->interaction)};

	if (launch->selection.set && selection != NULL)
		in.target = (struct target){.instance_id = selection->instance_id.v, .model = selection->model.v};
	read_strategy(launch, &in);
	return command_launch(tx, asked, &in, w, f);
}

static int64_t launch_wait_ms(const void *args)
{
	const struct launch_arg *launch = args;
	const struct strategy_arg *strategy = launch->strategy.v;

	return launch->strategy.set && strategy != NULL && strategy->type.v == WORKSPACE_EXISTING ? LOOK_MS : 0;
}

static const struct plain plain_launch = {
	.fields = launch_fields,
	.args_size = sizeof(struct launch_arg),
	.output = "{\"type\":\"object\",\"properties\":{\"threadId\":" TEXT_TYPE ",\"projectId\":" TEXT_TYPE
		  ",\"modelSelection\":{\"type\":\"object\"},\"runId\":" TEXT_OR_NULL ",\"status\":" TEXT_OR_NULL
		  "}}",
	ERRORS(FAIL_PARENT_NOT_ACTIVE, FAIL_PROVIDER_UNAVAILABLE, FAIL_MODEL_UNAVAILABLE, FAIL_RUNTIME_MODE_ESCALATION_DENIED,
		FAIL_INTERACTION_MODE_ESCALATION_DENIED),
	.run = run_launch,
	.example = "{\"title\":\"Split parser\",\"message\":\"Move the lexer to its own file.\",\"workspaceStrategy\":{\"type\":\"worktree\",\"baseRef\":\"main\"}}",
	.wait_ms = launch_wait_ms,
	.is_open_world = true,
};

const struct tool tool_thread_launch = {
	.name = "t3_thread_launch",
	.title = "Launch a thread",
	.description = "Starts a thread of its own, in the project's folder, a work tree or a scratch folder. Only when the user asked for "
		       "a separate conversation; delegate_task is for work whose result you need. Its folder is prepared while the run is "
		       "preparing; what goes wrong there is a failed run.",
	.plain = &plain_launch,
};
