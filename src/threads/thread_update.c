/* t3_thread_update: the title of a thread, and its pull request. */
#include "threads/commands.h"

const char *const update_action_names[] = {"rename", "regenerate_title", "link_pull_request", "unlink_pull_request"};

static int check_member(enum update_action action, enum update_action of, const char *name, bool is_given, struct failure *f)
{
	if (action == of && !is_given)
		return fail_field(f, str_of(name), STR_NONE, "is needed for %s", update_action_names[of]);
	if (action != of && is_given)
		return fail_field(f, str_of(name), STR_NONE, "is only for %s, not for %s", update_action_names[of],
			update_action_names[action]);
	return 0;
}

static int check(const struct update_args *args, struct failure *f)
{
	if (args->action == UPDATE_REGENERATE_TITLE)
		return fail(f, FAIL_INVALID_REQUEST, "This server has no title generator: use rename, with a title.");
	if (check_member(args->action, UPDATE_RENAME, "title", args->title.p != NULL, f) != 0)
		return -1;
	return check_member(args->action, UPDATE_LINK_PULL_REQUEST, "pullRequest", args->repository.p != NULL, f);
}

static int pull_request(struct snapshot *s, const struct thread_row *thread, const struct update_args *args, struct str *out,
	struct failure *f)
{
	struct str project;
	struct json_writer w;
	struct buf text;

	if (project_id_of(s, thread->project_n, &project, f) != 0)
		return -1;
	buf_init(&text, s->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_object_begin(&w);
	jw_kstr(&w, "projectId", project);
	jw_kstr(&w, "repository", args->repository);
	jw_kint(&w, "number", args->number);
	jw_kstr(&w, "url", args->url);
	jw_object_end(&w);
	*out = buf_str(&text);
	return 0;
}

static int change(struct tx *tx, struct thread_row *thread, const struct update_args *args, struct failure *f)
{
	switch (args->action) {
	case UPDATE_RENAME:
		thread->title = args->title;
		thread->title_request = STR_NONE; /* what is being made would come too late */
		break;
	case UPDATE_LINK_PULL_REQUEST:
		if (pull_request(&tx->snapshot, thread, args, &thread->pull_request, f) != 0)
			return -1;
		break;
	case UPDATE_UNLINK_PULL_REQUEST:
		thread->pull_request = STR_NONE;
		break;
	case UPDATE_REGENERATE_TITLE:
		break;
	}
	return thread_touch(tx, thread, f);
}

SQL(SQL_NEWEST_EVENT, "SELECT seq FROM event WHERE thread_n = $1 ORDER BY seq DESC LIMIT 1");

/* As it was when it was done: a repetition is told the same, whatever became of the thread. */
static int answer(struct tx *tx, const struct thread_row *thread, const struct update_args *args, struct str command_id,
	struct str *out, struct failure *f)
{
	int64_t sequence = 0;
	struct json_writer w;
	struct buf text;

	if (query_int(&tx->snapshot, &sequence, f, SQL_NEWEST_EVENT, "i", thread->n) < 0)
		return -1;
	buf_init(&text, tx->snapshot.arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_kstr(&w, "threadId", thread->id);
	jw_ktext(&w, "action", update_action_names[args->action]);
	jw_kstr(&w, "commandId", command_id);
	jw_kint(&w, "sequence", sequence);
	jw_kstr(&w, "title", thread->title);
	jw_kraw(&w, "titleRegeneration", thread->title_request.n == 0 ? STR("null") : thread->title_request);
	jw_kraw(&w, "linkedPullRequest", thread->pull_request.n == 0 ? STR("null") : thread->pull_request);
	jw_ktime(&w, "updatedAt", thread->updated_at);
	*out = buf_str(&text);
	return 0;
}

int command_update(struct tx *tx, struct asked *asked, const struct update_args *args, struct json_writer *w,
	struct failure *f)
{
	struct asking asking;
	struct thread_row thread;
	struct command command;
	struct str members;
	int rc;

	if (asking_resolve(tx, asked->asker, &asking, f) != 0
		|| asking_thread(&tx->snapshot, &asking, args->thread_id.p == NULL ? asking.thread.id : args->thread_id, &thread, f) != 0
		|| check(args, f) != 0)
		return -1;
	command_name(&command, tx->snapshot.arena, &asking, "thread-update", asked->key, asked->fingerprint);
	command_narrow(&command, tx->snapshot.arena, thread.id, update_action_names[args->action]);
	rc = command_seen(tx, &command, f);
	if (rc < 0)
		return -1;
	members = command.result;
	if (rc == 0
		&& (change(tx, &thread, args, f) != 0 || answer(tx, &thread, args, command.id, &members, f) != 0
			|| command_accept(tx, &command, members, f) != 0))
		return -1;
	jw_members(w, members);
	return 0;
}
