/* Opening sessions: for threads with orders and no agent, and for agents that outlived the last server. */
#include "threads/loop.h"

#include "base/limits.h"
#include "base/log.h"
#include "threads/instructions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TMP_NAME "tmp"
#define FILES_NAME "files" /* no session: those have numbers */

struct opening {
	int64_t thread_n;
	struct provider_session_row row;
	struct thread_row thread;
	struct str resume; /* native id of the conversation */
	const struct provider_instance *instance;
};

/* ---- rows ---- */

static int find_resume(struct snapshot *s, struct opening *o, struct failure *f)
{
	struct provider_thread_row conversation;

	if (o->thread.provider_thread_n == 0)
		return 0;
	if (NEED(s, provider_thread, o->thread.provider_thread_n, &conversation, f) != 0)
		return -1;
	if (str_eq(conversation.instance_id, o->row.instance_id) && str_eq(conversation.cwd, o->row.cwd))
		o->resume = conversation.native_id;
	return 0;
}

SQL(SQL_STATE_NEW, "INSERT INTO session_state (session_n, spool_offset, line_seq, driver_state) VALUES ($1, 0, 0, '{}')");
SQL(SQL_THREAD_LIVE, "SELECT n FROM provider_session WHERE thread_n = $1 AND status < 4");

static int add_session(struct tx *tx, void *arg, struct failure *f)
{
	struct opening *o = arg;
	struct provider_session_row *row = &o->row;
	int64_t live;
	int rc = query_int(&tx->snapshot, &live, f, SQL_THREAD_LIVE, "i", o->thread_n);

	if (rc != 0)
		return rc < 0 ? -1 : fail(f, FAIL_DUPLICATE, "The thread has a session.");
	if (NEED(&tx->snapshot, thread, o->thread_n, &o->thread, f) != 0)
		return -1;
	*row = (struct provider_session_row){.id = ident_random(tx->snapshot.arena, "provider-session"),
		.thread_n = o->thread_n,
		.driver = str_of(o->instance->driver->kind),
		.instance_id = o->instance->id,
		.status = SESSION_STARTING,
		.model = o->thread.model,
		.options = o->thread.options,
		.runtime_mode = o->thread.runtime_mode,
		.interaction_mode = o->thread.interaction_mode,
		.capabilities = STR("{}"),
		.created_at = tx->snapshot.now,
		.updated_at = tx->snapshot.now};
	if (thread_cwd(&tx->snapshot, &o->thread, &row->cwd, f) != 0 || find_resume(&tx->snapshot, o, f) != 0
		|| PUT(tx, provider_session, row, o->thread_n, f) != 0)
		return -1;
	return tx_run(tx, f, SQL_STATE_NEW, "i", row->n) < 0 ? -1 : 0;
}

/* ---- the process ---- */

static int make_directory(const char *path, struct failure *f)
{
	return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : fail_errno(f, "cannot make %s", path);
}

static int check_cwd(struct arena *arena, struct str cwd, struct failure *f)
{
	struct stat info;

	if (stat(str_z(arena, cwd), &info) == 0 && S_ISDIR(info.st_mode))
		return 0;
	return fail(f, FAIL_INVALID_REQUEST, "The thread's folder is missing.");
}

/* The UUID in the session's own id: after a restart of the server it is the same. */
static struct str uuid_of(struct str session_id)
{
	const char *colon = memrchr(session_id.p, ':', session_id.n);

	return (struct str){colon + 1, (size_t)(session_id.p + session_id.n - colon - 1)};
}

static struct agent_config config_of(const struct session *session, struct str resume, struct str mcp_url)
{
	return (struct agent_config){.instance = session->instance,
		.cwd = session->row.cwd,
		.runtime = (enum runtime_mode)session->row.runtime_mode,
		.interaction = (enum interaction_mode)session->row.interaction_mode,
		.is_confined = session->row.runtime_mode == RUNTIME_READ_ONLY,
		.model = session->row.model,
		.mcp_url = mcp_url,
		.instructions = mcp_url.n == 0 ? STR_NONE : STR(THREADS_INSTRUCTIONS),
		.resume = resume,
		.fresh = uuid_of(session->row.id)};
}

static int launch(struct session *session, const struct agent_config *config, struct arena *arena, struct failure *f)
{
	struct agent_place place = {.config = config,
		.cwd = session->row.cwd,
		.tmp = str_printf(arena, "%s/" TMP_NAME, session->directory),
		.files = str_printf(arena, "%s/" FILES_NAME, session->threads->directory),
		.attempt = session->row.id,
		.base = session->threads->environment,
		.runtime = config->runtime,
		.interaction = config->interaction,
		.is_confined = config->is_confined};
	struct agent_launch how = {0};
	struct host_settings settings = {.directory = session->directory,
		.cwd = str_z(arena, session->row.cwd),
		.secret = session->token,
		.placeholder = STR(AGENT_SECRET),
		.start_ms = session->threads->bounds.start,
		.line_bytes = LIMIT_AGENT_LINE_BYTES,
		.is_read_only = place.is_confined};

	if (check_cwd(arena, session->row.cwd, f) != 0 || make_directory(session->directory, f) != 0
		|| make_directory(str_z(arena, place.tmp), f) != 0
		|| session->instance->driver->launch(session->instance, &place, arena, &how, f) != 0
		|| files_bring(str_z(arena, place.files), how.files, how.file_count, f) != 0)
		return -1;
	settings.argv = how.argv;
	settings.env = how.env;
	settings.writable = how.writable;
	settings.ends_with_stdin = how.ends_with_stdin;
	return host_start(&session->threads->loop, &settings, &session_handlers, session, &session->host, f);
}

static void grant(struct session *session)
{
	struct thread_scope scope = {.thread_n = session->thread_n, .session_n = session->n};

	(void)snprintf(scope.instance_id, sizeof(scope.instance_id), "%.*s", STRF(session->instance->id));
	session->token = credential_make(session->life);
	credential_grant(session->threads->credentials, session->token, &scope);
}

/* It could not even be started: said like the end of a program, so that one way leads out. */
static void not_started(struct session *session, const struct failure *f)
{
	session->has_exited = true;
	session->exit = (struct agent_exit){.code = -1,
		.cause = session->is_lost ? STR("lost") : STR("spawn_failed"),
		.stderr_tail = str_dup(session->life, f->message)};
	session_advance(session);
}

static char *copy_url(struct threads *threads, struct arena *arena)
{
	char *url;

	pthread_mutex_lock(&threads->lock);
	url = threads->mcp_url == NULL ? NULL : arena_printf(arena, "%s", threads->mcp_url);
	pthread_mutex_unlock(&threads->lock);
	return url;
}

static void session_added(struct batch *batch)
{
	struct opening *o = batch->arg;
	struct threads *threads = batch->threads;
	struct session *session;
	struct agent_config config;

	if (batch->rc != 0) {
		if (batch->f.code != FAIL_DUPLICATE)
			log_line(LOG_WARN, "threads", "a session cannot be opened", {"reason", LOG_STRV(batch->f.message)});
		batch_destroy(batch);
		return;
	}
	session = session_create(threads, &o->row, o->instance);
	grant(session);
	config = config_of(session, o->resume, str_of(copy_url(threads, batch->arena)));
	session->agent = o->instance->driver->create(&config);
	if (launch(session, &config, batch->arena, &batch->f) != 0)
		not_started(session, &batch->f);
	if (session->token.n > 0)
		explicit_bzero((char *)(uintptr_t)session->token.p, session->token.n);
	batch_destroy(batch);
}

/* ---- who needs one ---- */

SQL(SQL_THREADS_WITH_EFFECTS,
	"SELECT DISTINCT e.thread_n, t.instance_id FROM effect e JOIN thread t ON t.n = e.thread_n WHERE e.type < 5 ORDER BY e.thread_n");

/* An order for an agent that does not live: nothing but a start needs one to be made. */
SQL(SQL_ORPHANED, "DELETE FROM effect WHERE thread_n = $1 AND type <> 0 AND type < 5");
SQL(SQL_HAS_START, "SELECT n FROM effect WHERE thread_n = $1 AND type = 0 LIMIT 1");

static int drop_orphaned(struct tx *tx, void *arg, struct failure *f)
{
	return tx_run(tx, f, SQL_ORPHANED, "i", *(const int64_t *)arg) < 0 ? -1 : 0;
}

static int fail_run(struct tx *tx, void *arg, struct failure *f)
{
	int64_t thread_n = *(const int64_t *)arg;
	struct agent_failure why = {.class = CLASS_VALIDATION,
		.code = STR("provider_unavailable"),
		.message = STR("The provider instance of the thread is not configured."),
		.is_retryable = YES_NO};
	struct thread_run_row run;
	int rc = thread_blocking_run(&tx->snapshot, thread_n, &run, f);

	return rc == 1 ? run_end(tx, &run, RUN_FAILED, failure_json(tx->snapshot.arena, &why), f) : rc;
}

static void finished(struct batch *batch)
{
	batch_destroy(batch);
}

static void submit_for(struct threads *threads, int64_t n, int (*run)(struct tx *tx, void *arg, struct failure *f))
{
	struct batch *batch = batch_create(threads, NULL);
	int64_t *arg = ARENA_NEW(batch->arena, int64_t);

	*arg = n;
	batch_submit(batch, run, arg, finished);
}

static void open_for(struct threads *threads, int64_t thread_n, struct str instance_id)
{
	struct batch *batch;
	struct opening *o;
	const struct provider_instance *instance = threads_instance(threads, instance_id);

	if (instance == NULL || instance->driver->create == NULL) {
		submit_for(threads, thread_n, fail_run);
		return;
	}
	batch = batch_create(threads, NULL);
	o = ARENA_NEW(batch->arena, struct opening);
	o->thread_n = thread_n;
	o->instance = instance;
	batch_submit(batch, add_session, o, session_added);
}

struct wanting {
	int64_t thread_n;
	struct str instance_id;
	bool has_start;
};

static int read_wanting(struct snapshot *s, struct wanting **out, size_t *count, struct failure *f)
{
	struct query q;
	size_t room = 0;
	int rc;

	*out = NULL;
	*count = 0;
	if (query(s, &q, f, SQL_THREADS_WITH_EFFECTS, "") != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (*count == room) {
			*out = arena_grow(s->arena, *out, room * sizeof(**out), (room * 2 + 16) * sizeof(**out));
			room = room * 2 + 16;
		}
		(*out)[(*count)++] = (struct wanting){.thread_n = col_int(&q, 0), .instance_id = col_str(&q, 1)};
	}
	query_end(&q);
	for (size_t i = 0; rc == 0 && i < *count; i++) {
		int64_t n;
		int found = query_int(s, &n, f, SQL_HAS_START, "i", (*out)[i].thread_n);

		(*out)[i].has_start = found == 1;
		rc = found < 0 ? -1 : 0;
	}
	return rc;
}

void orders_look(struct threads *threads)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct wanting *wanting = NULL;
	size_t count = 0;
	struct snapshot s;
	struct failure f;
	int rc;

	failure_init(&f, arena);
	if (snapshot_begin(threads->store, arena, &s, &f) != 0)
		return;
	rc = snapshot_settle(&s, &f) != 0 ? -1 : read_wanting(&s, &wanting, &count, &f);
	snapshot_end(&s);
	if (rc != 0) {
		log_line(LOG_WARN, "threads", "orders could not be read", {"reason", LOG_STRV(f.message)});
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct session *session = session_of_thread(threads, wanting[i].thread_n);

		if (session != NULL)
			session_advance(session);
		else if (!wanting[i].has_start)
			submit_for(threads, wanting[i].thread_n, drop_orphaned);
		else if (copy_url(threads, arena) != NULL)
			open_for(threads, wanting[i].thread_n, wanting[i].instance_id);
	}
}

/* ---- after a restart ---- */

SQL(SQL_LIVE,
	"SELECT p.n, s.spool_offset, s.driver_state FROM provider_session p JOIN session_state s ON s.session_n = p.n"
	" WHERE p.status < 4 ORDER BY p.n");

static int load_agent(struct session *session, struct str driver_state, struct failure *f)
{
	struct agent_config config = config_of(session, STR_NONE, STR_NONE);
	struct json_error error;
	json_auto_t *state = json_read(driver_state, &error);

	session->agent = session->instance->driver->create(&config);
	if (json_object_size(state) == 0)
		return 0;
	session->is_begun = true;
	return session->agent->driver->load(session->agent, state, f);
}

/* Nobody can speak to the agent any more: what it did ends with it. */
static int end_lost(struct tx *tx, void *arg, struct failure *f)
{
	struct ingest in = {.session_n = *(const int64_t *)arg, .spool_offset = -1, .is_over = true, .is_lost = true};

	return ingest(tx, &in, f);
}

/* An instance that is not configured any more is what its driver is without configuration, for as long as its agent takes
 * to end. NULL: not even the driver is known. */
static const struct provider_instance *instance_of(struct session *session, bool *is_gone)
{
	const struct provider_instance *instance = threads_instance(session->threads, session->row.instance_id);
	struct provider_instance *made;

	*is_gone = instance == NULL;
	if (instance != NULL)
		return instance;
	made = ARENA_NEW(session->life, struct provider_instance);
	made->id = str_dup(session->life, session->row.instance_id);
	made->driver = driver_find(session->row.driver);
	return made->driver == NULL ? NULL : made;
}

static void recover_one(struct threads *threads, struct snapshot *s, int64_t n, int64_t offset, struct str state,
	struct failure *f)
{
	struct provider_session_row row;
	struct hearing hearing;
	struct session *session;
	bool is_gone;

	if (NEED(s, provider_session, n, &row, f) != 0 || hearing_read(s, n, &hearing, f) != 0)
		return;
	session = session_create(threads, &row, NULL);
	session->instance = instance_of(session, &is_gone);
	if (session->instance == NULL || session->instance->driver->create == NULL) {
		log_line(LOG_ERROR, "threads", "an agent's driver is unknown", {"driver", LOG_STRV(row.driver)});
		session_destroy(session);
		submit_for(threads, n, end_lost);
		return;
	}
	session->is_recovering = true;
	threads->recovering++;
	session->offset = offset;
	session->is_opened = row.status != SESSION_STARTING && row.status != SESSION_ERROR;
	/* Nobody knows any more what it was to be opened with, and it has been told nothing yet. */
	session->starts_over = !session->is_opened;
	session->has_turn = hearing.turn.n != 0 && !work_is_terminal(hearing.turn.status);
	/* The bounds begin anew: how long nobody was there to listen is not the agent's fault. */
	if (session->has_turn && hearing.run.interrupt_at != 0)
		session->interrupt_due = session->created_at + threads->bounds.interrupt;
	if (load_agent(session, state, f) != 0
		|| host_connect(&threads->loop, session->directory, offset, &session_handlers, session, &session->host, f) != 0) {
		/* Its host is not on this machine: the database came from elsewhere, or from an earlier day. */
		session->is_lost = true;
		not_started(session, f);
	} else if (is_gone) {
		session_end(session);
	}
}

int sessions_recover(struct threads *threads, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct snapshot s;
	struct query q;
	int rc;

	if (snapshot_begin(threads->store, arena, &s, f) != 0)
		return -1;
	rc = query(&s, &q, f, SQL_LIVE, "");
	if (rc == 0) {
		while ((rc = query_next(&q, f)) == 1)
			recover_one(threads, &s, col_int(&q, 0), col_int(&q, 1), col_str(&q, 2), f);
		query_end(&q);
	}
	snapshot_end(&s);
	return rc;
}
