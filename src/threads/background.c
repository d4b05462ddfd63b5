/* What the helper does for threads: folders for those that were launched, checkpoints before and after runs and their end
 * with their thread, and looks at folders that callers name.
 *
 * The effects in the store are the queue; what was handed to the helper stands in a list of the loop besides. When an effect
 * goes meanwhile, because its run was interrupted, the work is asked to stop. */
#include "threads/background.h"

#include "base/limits.h"
#include "base/log.h"
#include "threads/wait.h"
#include "threads/worktrees.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define RETRY_MS 200

enum work_state { AT_WORK, STORING, UNSTORED };

struct work {
	struct job job; /* first */
	struct work *next;
	struct threads *threads;
	struct arena *arena;
	struct cancel *cancel;
	int64_t effect_n;
	enum effect_type type;
	enum work_state state;
	int64_t retry_at; /* monotonic ms, of one that could not be stored */
	bool is_wanted;   /* its effect is still there */
	/* what is to be done */
	struct thread_row thread;
	int64_t run_n;
	struct str root, cwd, scope_id, base, branch, script, data;
	bool is_from_origin;
	int64_t now;
	struct kept_scope *scopes;
	size_t scope_count;
	/* what came of it */
	struct prepared prepared;
	struct captured captured;
};

/* ---- on a thread of the helper ---- */

static struct str wire_failure(struct arena *arena, const struct failure *f)
{
	struct agent_failure why = {.class = CLASS_VALIDATION,
		.code = fault_cause(f, arena),
		.message = f->message,
		.is_retryable = YES_UNKNOWN};

	return failure_json(arena, &why);
}

static int check_folder(struct arena *arena, struct str path, struct failure *f)
{
	struct stat info;

	return stat(str_z(arena, path), &info) == 0 && S_ISDIR(info.st_mode)
		? 0
		: fail(f, FAIL_NOT_FOUND, "The folder %.*s does not exist.", STRF(path));
}

static int make_worktree(struct work *work, const struct workspace_call *call, struct failure *f)
{
	struct worktree_order order = {.root = work->root,
		.dir = str_printf(work->arena, "%.*s/worktrees", STRF(work->data)),
		.thread_id = work->thread.id,
		.base = work->base,
		.branch = work->branch,
		.is_from_origin = work->is_from_origin};
	struct worktree made;

	if (worktree_create(call, &order, &made, f) != 0)
		return -1;
	work->prepared.path = made.path;
	work->prepared.branch = made.branch;
	return 0;
}

static int prepare_folder(struct work *work, const struct workspace_call *call, struct failure *f)
{
	switch ((enum workspace_kind)work->thread.workspace) {
	case WORKSPACE_WORKTREE:
		return make_worktree(work, call, f);
	case WORKSPACE_EXISTING:
		return worktree_check(call, work->root, work->thread.worktree_path, &work->prepared.path, f);
	case WORKSPACE_SCRATCH:
		return scratch_create(call, work->data, work->thread.title, work->thread.id, work->now, &work->prepared.path, f);
	case WORKSPACE_ROOT:
	case WORKSPACE_COUNT:
		break;
	}
	return check_folder(work->arena, work->root, f);
}

static int run_script(struct work *work, const struct workspace_call *call, struct failure *f)
{
	struct setup_order order = {.path = work->cwd, .script = work->script};
	struct setup_result result = {0};

	if (setup_run(call, &order, &result, f) == 0)
		return 0;
	if (result.tail.n > 0)
		f->message = str_printf(work->arena, "%.*s It said: %.*s", STRF(f->message), STRF(result.tail));
	return -1;
}

static void prepare(struct job *job)
{
	struct work *work = (struct work *)job;
	struct workspace_call call = {.arena = work->arena, .cancel = work->cancel};
	struct failure f;

	failure_init(&f, work->arena);
	work->prepared = (struct prepared){.effect_n = work->effect_n,
		.thread_n = work->thread.n,
		.run_n = work->run_n,
		.was_setup = work->type == EFFECT_SETUP};
	if ((work->prepared.was_setup ? run_script(work, &call, &f) : prepare_folder(work, &call, &f)) != 0)
		work->prepared.failure = wire_failure(work->arena, &f);
}

/* In a repository the tree of the checkpoint is the digest. Elsewhere it costs reading every file, so it is taken only where
 * something is to be proven. */
static void capture(struct job *job)
{
	struct work *work = (struct work *)job;
	struct workspace_call call = {.arena = work->arena, .cancel = work->cancel};
	struct captured *captured = &work->captured;
	struct failure f;

	failure_init(&f, work->arena);
	*captured = (struct captured){.effect_n = work->effect_n,
		.run_n = work->run_n,
		.ordinal = work->type == EFFECT_BASELINE ? 0 : 1,
		.cwd = work->cwd};
	checkpoint_capture(&call, work->cwd, work->scope_id, captured->ordinal, &captured->checkpoint);
	if (captured->checkpoint.status == CHECKPOINT_READY)
		captured->digest = captured->checkpoint.tree;
	else if (work->thread.runtime_mode == RUNTIME_READ_ONLY && captured->checkpoint.status == CHECKPOINT_MISSING
		&& digest_take(&call, work->cwd, &captured->digest, &f) != 0)
		captured->checkpoint.problem = f.message;
}

/* What cannot be forgotten takes some disk space and harms nobody: it is not tried for ever. */
static void forget(struct job *job)
{
	struct work *work = (struct work *)job;
	struct workspace_call call = {.arena = work->arena, .cancel = work->cancel};
	struct failure f;

	failure_init(&f, work->arena);
	if (kept_scopes_forget(&call, work->scopes, work->scope_count, &f) != 0)
		log_line(LOG_WARN, "threads", "checkpoints of a deleted thread are left", {"reason", LOG_STRV(f.message)});
}

/* ---- storing ---- */

SQL(SQL_FORGOTTEN, "DELETE FROM effect WHERE n = $1");

static int store(struct tx *tx, void *arg, struct failure *f)
{
	struct work *work = arg;

	if (work->type == EFFECT_FORGET)
		return tx_run(tx, f, SQL_FORGOTTEN, "i", work->effect_n) < 0 ? -1 : 0;
	return work->type == EFFECT_PREPARE || work->type == EFFECT_SETUP ? preparation_step(tx, &work->prepared, f)
									   : checkpoint_put(tx, &work->captured, f);
}

static void work_destroy(struct work *work)
{
	struct work **at = &work->threads->works;

	while (*at != work)
		at = &(*at)->next;
	*at = work->next;
	cancel_destroy(work->cancel);
	arena_destroy(work->arena);
}

static void stored(struct batch *batch)
{
	struct work *work = batch->arg;

	if (batch->rc == 0) {
		work_destroy(work);
	} else {
		log_line(LOG_WARN, "threads", "what was made for a thread cannot be stored", {"reason", LOG_STRV(batch->f.message)});
		work->state = UNSTORED;
		work->retry_at = loop_now(work->threads) + RETRY_MS;
		loop_due(work->threads, work->retry_at);
	}
	batch_destroy(batch);
}

static void submit(struct work *work)
{
	work->state = STORING;
	batch_submit(batch_create(work->threads, NULL), store, work, stored);
}

/* ---- taking up ---- */

static int read_order(struct work *work, struct str payload)
{
	struct json_error error;
	json_auto_t *order = json_read(payload, &error);

	work->base = str_dup(work->arena, json_member_str(order, "baseRef"));
	work->branch = str_dup(work->arena, json_member_str(order, "branch"));
	work->is_from_origin = json_is_true(json_object_get(order, "startFromOrigin"));
	return 0;
}

static int read_capture(struct work *work, struct snapshot *s, struct failure *f)
{
	struct thread_run_row run;

	if (NEED(s, thread_run, work->run_n, &run, f) != 0)
		return -1;
	work->scope_id = checkpoint_scope_id(s, &run, f);
	return work->scope_id.p == NULL ? -1 : thread_cwd(s, &work->thread, &work->cwd, f);
}

static int read_work(struct work *work, int64_t thread_n, struct str payload, struct failure *f)
{
	struct project_row project;
	struct snapshot s;
	int rc;

	if (snapshot_begin(work->threads->store, work->arena, &s, f) != 0)
		return -1;
	work->now = s.now;
	rc = NEED(&s, thread, thread_n, &work->thread, f) != 0 || NEED(&s, project, work->thread.project_n, &project, f) != 0 ? -1 : 0;
	if (rc == 0) {
		work->root = project.workspace_root;
		work->script = project.setup_script;
		rc = work->type == EFFECT_PREPARE ? read_order(work, payload)
			: work->type == EFFECT_SETUP ? thread_cwd(&s, &work->thread, &work->cwd, f)
			: work->type == EFFECT_FORGET
			? kept_scopes_list(&s, thread_n, &work->scopes, &work->scope_count, f)
			: read_capture(work, &s, f);
	}
	snapshot_end(&s);
	return rc;
}

struct found {
	int64_t n, thread_n, run_n;
	enum effect_type type;
	struct str payload;
};

static void take_up(struct threads *threads, const struct found *found)
{
	struct arena *arena = arena_create();
	struct work *work = ARENA_NEW(arena, struct work);
	bool is_preparing = found->type == EFFECT_PREPARE || found->type == EFFECT_SETUP;
	struct failure f;

	failure_init(&f, arena);
	*work = (struct work){.job = {.work = is_preparing ? prepare : found->type == EFFECT_FORGET ? forget : capture},
		.next = threads->works,
		.threads = threads,
		.arena = arena,
		.cancel = cancel_create(),
		.effect_n = found->n,
		.type = found->type,
		.run_n = found->run_n,
		.data = str_of(threads->data),
		.is_wanted = true};
	threads->works = work;
	if (read_work(work, found->thread_n, found->payload, &f) != 0)
		log_line(LOG_WARN, "threads", "work for a thread could not be read", {"reason", LOG_STRV(f.message)});
	else if (helper_give(threads->helper, is_preparing ? LANE_PREPARE : LANE_CAPTURE, &work->job))
		return;
	/* It is found again when something is done. */
	work_destroy(work);
}

static struct work *work_of(struct threads *threads, int64_t effect_n)
{
	for (struct work *work = threads->works; work != NULL; work = work->next)
		if (work->effect_n == effect_n)
			return work;
	return NULL;
}

SQL(SQL_WORK, "SELECT n, thread_n, run_n, type, payload FROM effect WHERE type IN (5, 6, 7, 8, 9) ORDER BY n");

/* What is still being captured would come back after it was forgotten. */
static bool must_wait(const struct threads *threads, const struct found *found)
{
	if (found->type != EFFECT_FORGET)
		return false;
	for (const struct work *work = threads->works; work != NULL; work = work->next)
		if (work->thread.n == found->thread_n)
			return true;
	return false;
}

static int read_found(struct threads *threads, struct arena *arena, struct found **out, size_t *count, struct failure *f)
{
	struct snapshot s;
	struct query q;
	size_t room = 0;
	int rc;

	if (snapshot_begin(threads->store, arena, &s, f) != 0)
		return -1;
	rc = snapshot_settle(&s, f) != 0 ? -1 : query(&s, &q, f, SQL_WORK, "");
	if (rc == 0) {
		while ((rc = query_next(&q, f)) == 1) {
			if (*count == room) {
				*out = arena_grow(arena, *out, room * sizeof(**out), (room * 2 + 16) * sizeof(**out));
				room = room * 2 + 16;
			}
			(*out)[(*count)++] = (struct found){col_int(&q, 0), col_int(&q, 1), col_int(&q, 2),
				(enum effect_type)col_int(&q, 3), col_str(&q, 4)};
		}
		query_end(&q);
	}
	snapshot_end(&s);
	return rc;
}

static void look_for_work(struct threads *threads)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct found *found = NULL;
	size_t count = 0;
	struct failure f;

	failure_init(&f, arena);
	if (read_found(threads, arena, &found, &count, &f) != 0) {
		log_line(LOG_WARN, "threads", "work for threads could not be read", {"reason", LOG_STRV(f.message)});
		return;
	}
	for (struct work *work = threads->works; work != NULL; work = work->next)
		work->is_wanted = false;
	for (size_t i = 0; i < count; i++) {
		struct work *work = work_of(threads, found[i].n);

		if (work != NULL)
			work->is_wanted = true;
		else if (!must_wait(threads, &found[i]))
			take_up(threads, &found[i]);
	}
	for (struct work *work = threads->works; work != NULL; work = work->next)
		if (!work->is_wanted)
			cancel_request(work->cancel);
}

static void store_again(struct threads *threads)
{
	int64_t now = loop_now(threads);

	for (struct work *work = threads->works; work != NULL; work = work->next)
		if (work->state == UNSTORED && now >= work->retry_at)
			submit(work);
}

/* ---- folders that callers name ---- */

/* A job of its own: nothing of it is in the store. Owned by the list in struct threads, under its lock. */
struct look {
	struct job job; /* first */
	struct look *next;
	struct arena *arena;
	struct cancel *cancel;
	struct str root, path;
	int64_t ticket, thread_n;
	bool is_done;
	int rc;
	struct failure f;
};

static void check_path(struct job *job)
{
	struct look *look = (struct look *)job;
	struct workspace_call call = {.arena = look->arena, .cancel = look->cancel};

	look->rc = worktree_check(&call, look->root, look->path, &look->path, &look->f);
}

static void look_destroy(struct look *look)
{
	cancel_destroy(look->cancel);
	arena_destroy(look->arena);
}

/* Who gave up waiting leaves a finished one behind: the oldest go. */
static void drop_abandoned(struct threads *threads)
{
	struct look **at = &threads->looks;

	for (size_t n = 0; *at != NULL; n++) {
		struct look *look = *at;

		if (n < LIMIT_HELPER_QUEUE || !look->is_done) {
			at = &look->next;
			continue;
		}
		*at = look->next;
		look_destroy(look);
	}
}

int64_t worktree_look(struct threads *threads, int64_t thread_n, struct str root, struct str path)
{
	struct arena *arena = arena_create();
	struct look *look = ARENA_NEW(arena, struct look);
	int64_t ticket = 0;

	*look = (struct look){.job = {.work = check_path}, .arena = arena, .cancel = cancel_create(), .thread_n = thread_n};
	look->root = str_dup(arena, root);
	look->path = str_dup(arena, path);
	failure_init(&look->f, arena);
	pthread_mutex_lock(&threads->lock);
	look->ticket = threads->last_ticket + 1;
	if (helper_give(threads->helper, LANE_CAPTURE, &look->job)) {
		ticket = ++threads->last_ticket;
		look->next = threads->looks;
		threads->looks = look;
		drop_abandoned(threads);
	}
	pthread_mutex_unlock(&threads->lock);
	if (ticket == 0)
		look_destroy(look);
	return ticket;
}

int worktree_looked(struct threads *threads, int64_t ticket, struct arena *arena, struct str *out, struct failure *f)
{
	struct look **at, *look;
	int rc = 0;

	pthread_mutex_lock(&threads->lock);
	for (at = &threads->looks; *at != NULL && (*at)->ticket != ticket;)
		at = &(*at)->next;
	look = *at;
	if (look == NULL) {
		rc = fail(f, FAIL_UNAVAILABLE, "It is not known any more what the folder is.");
	} else if (look->is_done) {
		*at = look->next;
		rc = look->rc == 0 ? 1 : -1;
		if (rc == 1)
			*out = str_dup(arena, look->path);
		else
			failure_copy(f, arena, &look->f);
	}
	pthread_mutex_unlock(&threads->lock);
	if (rc != 0 && look != NULL)
		look_destroy(look);
	return rc;
}

static int mark(struct tx *tx, void *arg, struct failure *f)
{
	(void)tx;
	(void)f;
	waiters_mark(*(const int64_t *)arg);
	return 0;
}

static void marked(struct batch *batch)
{
	batch_destroy(batch);
}

/* Whoever waits for it is woken as by any change of its thread. */
static void tell(struct threads *threads, struct look *look)
{
	struct batch *batch = batch_create(threads, NULL);
	int64_t *thread_n = ARENA_NEW(batch->arena, int64_t);

	pthread_mutex_lock(&threads->lock);
	*thread_n = look->thread_n;
	look->is_done = true;
	pthread_mutex_unlock(&threads->lock);
	batch_submit(batch, mark, thread_n, marked);
}

/* ---- the loop's part ---- */

void background_look(struct threads *threads)
{
	struct job *job;

	while ((job = helper_take(threads->helper)) != NULL) {
		if (job->work == check_path)
			tell(threads, (struct look *)job);
		else
			submit((struct work *)job);
	}
	store_again(threads);
	look_for_work(threads);
}

static void tell_loop(void *context)
{
	threads_wake(context);
}

void background_start(struct threads *threads)
{
	threads->helper = helper_start(tell_loop, threads);
}

void background_stop(struct threads *threads)
{
	for (struct work *work = threads->works; work != NULL; work = work->next)
		cancel_request(work->cancel);
	for (struct look *look = threads->looks; look != NULL; look = look->next)
		cancel_request(look->cancel);
	helper_stop(threads->helper);
	while (threads->works != NULL)
		work_destroy(threads->works);
	while (threads->looks != NULL) {
		struct look *look = threads->looks;

		threads->looks = look->next;
		look_destroy(look);
	}
}
