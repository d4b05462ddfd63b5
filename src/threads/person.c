/* What a person changes: starting, sending, stopping, answering, putting away. */
#include "threads/person.h"

#include "base/limits.h"

/* ---- starting ---- */

static struct str title_of(struct arena *arena, const struct person_start *in)
{
	struct str text = in->title.n > 0 ? in->title : str_trim(in->text);
	const char *line = memchr(text.p, '\n', text.n);

	if (line != NULL)
		text.n = (size_t)(line - text.p);
	if (utf8_count(text) <= LIMIT_TASK_TITLE_CHARS)
		return text;
	text.n = utf8_offset(text, LIMIT_TASK_TITLE_CHARS - 3);
	return str_printf(arena, "%.*s...", STRF(text));
}

static int add_thread(struct tx *tx, const struct person_start *in, const struct chosen *chosen, struct thread_row *out,
	struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;

	*out = (struct thread_row){.id = ident_random(arena, "thread"),
		.kind = THREAD_AGENT,
		.title = title_of(arena, in),
		.instance_id = chosen->instance->id,
		.model = chosen->model,
		.runtime_mode = in->runtime < 0 ? RUNTIME_FULL_ACCESS : in->runtime,
		.interaction_mode = in->interaction < 0 ? INTERACTION_DEFAULT : in->interaction,
		.relationship = RELATION_NONE,
		.created_by = BY_USER,
		.creation_source = FROM_CLI,
		.namespace = ident_namespace(arena),
		.created_at = tx->snapshot.now,
		.updated_at = tx->snapshot.now};
	if (project_of(tx, in->place, &out->project_n, f) != 0 || tx_next(tx, SEQ_thread, &out->n, f) != 0)
		return -1;
	out->root_n = out->n;
	return PUT(tx, thread, out, out->n, f);
}

int person_start(struct tx *tx, const struct person_start *in, struct json_writer *w, struct failure *f)
{
	/* Who is no agent of ours has no instance to hand on: any that can run. */
	const struct asker asker = {.threads = in->threads};
	const struct asking asking = {.asker = &asker, .thread = {.kind = THREAD_EXTERNAL, .instance_id = STR("external")}};
	struct dispatch message = {.message_id = ident_random(tx->snapshot.arena, "message"),
		.text = in->text,
		.created_by = BY_USER,
		.source = FROM_CLI};
	struct thread_row thread;
	struct chosen chosen;

	if (target_choose(tx, &asking, &in->target, &chosen, f) != 0 || add_thread(tx, in, &chosen, &thread, f) != 0)
		return -1;
	message.thread_n = thread.n;
	jw_kstr(w, "providerInstanceId", thread.instance_id);
	return message_send(tx, &thread, &message, SEND_QUEUE, w, f);
}

/* ---- sending, stopping ---- */

int person_send(struct tx *tx, struct str id, struct str text, enum send_mode mode, struct json_writer *w,
	struct failure *f)
{
	struct dispatch message = {.message_id = ident_random(tx->snapshot.arena, "message"),
		.text = text,
		.created_by = BY_USER,
		.source = FROM_CLI};
	struct thread_row thread;

	if (person_thread(&tx->snapshot, id, &thread, f) != 0)
		return -1;
	message.thread_n = thread.n;
	return message_send(tx, &thread, &message, mode, w, f);
}

int person_interrupt(struct tx *tx, struct str id, struct json_writer *w, struct failure *f)
{
	struct thread_row thread;
	struct thread_run_row run;
	int rc;

	if (person_thread(&tx->snapshot, id, &thread, f) != 0)
		return -1;
	rc = thread_blocking_run(&tx->snapshot, thread.n, &run, f);
	if (rc < 0 || (rc == 1 && run_interrupt(tx, &run, STR("A person interrupted the run."), f) != 0))
		return -1;
	jw_kstr(w, "threadId", thread.id);
	jw_ktext(w, "status", rc == 1 ? "interrupt_requested" : "no_active_run");
	if (rc == 1)
		jw_kstr(w, "runId", ident_run(tx->snapshot.arena, thread.id, run.ordinal));
	return 0;
}

/* ---- putting away ---- */

SQL(SQL_OPEN_RUN, "SELECT n FROM thread_run WHERE thread_n = $1 AND status < 5 ORDER BY ordinal DESC LIMIT 1");
SQL(SQL_COHORTS, "SELECT n FROM thread_run WHERE thread_n = $1 AND cohort IN (1, 2) ORDER BY n LIMIT 1");

/* The newest first: none of a queue begins when another one ends. */
static int end_runs(struct tx *tx, int64_t thread_n, enum run_status active, struct failure *f)
{
	struct thread_run_row run;
	int64_t n;
	int rc;

	while ((rc = query_int(&tx->snapshot, &n, f, SQL_OPEN_RUN, "i", thread_n)) == 1) {
		if (NEED(&tx->snapshot, thread_run, n, &run, f) != 0
			|| run_end(tx, &run, run.status == RUN_QUEUED ? RUN_CANCELLED : active, STR_NONE, f) != 0)
			return -1;
	}
	return rc;
}

static int dispose_cohorts(struct tx *tx, int64_t thread_n, struct failure *f)
{
	struct thread_run_row run;
	int64_t n;
	int rc;

	while ((rc = query_int(&tx->snapshot, &n, f, SQL_COHORTS, "i", thread_n)) == 1) {
		if (NEED(&tx->snapshot, thread_run, n, &run, f) != 0 || cohort_stop(tx, &run, COHORT_DISPOSED, f) != 0
			|| NEED(&tx->snapshot, thread_run, n, &run, f) != 0)
			return -1;
		if (run.cohort != COHORT_DISPOSED) {
			run.cohort = COHORT_DISPOSED;
			if (PUT(tx, thread_run, &run, thread_n, f) != 0)
				return -1;
		}
	}
	return rc;
}

/* It stands as put away before its runs end, so that nothing that follows from their ends is sent to it. */
static int put_away(struct tx *tx, struct thread_row *thread, enum run_status active, struct failure *f)
{
	thread->title_request = STR_NONE;
	thread->external_key = STR_NONE; /* the next call of its agent begins another one */
	if (thread_touch(tx, thread, f) != 0 || dispose_cohorts(tx, thread->n, f) != 0 || end_runs(tx, thread->n, active, f) != 0)
		return -1;
	return effect_add(tx, thread->n, 0, EFFECT_CLOSE_SESSION, STR_NONE, f);
}

int person_archive(struct tx *tx, struct str id, struct json_writer *w, struct failure *f)
{
	struct thread_row thread;

	if (person_thread(&tx->snapshot, id, &thread, f) != 0)
		return -1;
	if (thread.archived_at != 0)
		return fail(f, FAIL_INVALID_REQUEST, "The thread is archived already.");
	thread.archived_at = tx->snapshot.now;
	if (put_away(tx, &thread, RUN_INTERRUPTED, f) != 0)
		return -1;
	jw_kstr(w, "threadId", thread.id);
	jw_ktext(w, "status", "archived");
	return 0;
}

int person_delete(struct tx *tx, struct str id, struct json_writer *w, struct failure *f)
{
	struct thread_row thread;

	if (person_thread(&tx->snapshot, id, &thread, f) != 0)
		return -1;
	if (thread.archived_at == 0)
		thread.archived_at = tx->snapshot.now;
	thread.deleted_at = tx->snapshot.now;
	if (put_away(tx, &thread, RUN_CANCELLED, f) != 0 || effect_add(tx, thread.n, 0, EFFECT_FORGET, STR_NONE, f) != 0)
		return -1;
	jw_kstr(w, "threadId", thread.id);
	jw_ktext(w, "status", "deleted");
	return 0;
}

/* ---- answering ---- */

static const json_t *question_of(const json_t *questions, const char *id)
{
	for (size_t i = 0; i < json_array_size(questions); i++) {
		const json_t *question = json_array_get(questions, i);

		if (str_eq(json_member_str(question, "id"), str_of(id)))
			return question;
	}
	return NULL;
}

static bool is_text_or_texts(const json_t *value)
{
	for (size_t i = 0; json_is_array(value) && i < json_array_size(value); i++)
		if (!json_is_string(json_array_get(value, i)))
			return false;
	return json_is_string(value) || json_array_size(value) > 0;
}

/* Every question has its answer, and there are no others. */
static int check_answers(const struct runtime_request_row *request, const json_t *answers, struct failure *f)
{
	struct json_error error;
	json_auto_t *prompt = json_read(request->prompt.p == NULL ? STR("{}") : request->prompt, &error);
	const json_t *questions = json_object_get(prompt, "questions");
	const char *key;
	const json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)answers, key, value) {
		if (question_of(questions, key) == NULL)
			return fail_field(f, STR("answers"), str_of(key), "is no question of this request");
		if (!is_text_or_texts(value))
			return fail_field(f, STR("answers"), str_of(key), "takes a text, or a list of texts");
	}
	for (size_t i = 0; i < json_array_size(questions); i++) {
		struct str id = json_member_str(json_array_get(questions, i), "id");

		if (json_object_getn(answers, id.p, id.n) == NULL)
			return fail_field(f, STR("answers"), id, "has no answer");
	}
	return 0;
}

static int check_answer(const struct runtime_request_row *request, const struct person_answer *in, struct failure *f)
{
	bool asks = request->kind == REQUEST_USER_INPUT;

	if (request->status != REQUEST_IS_PENDING || !request->is_live)
		return fail(f, FAIL_INVALID_REQUEST, "The question is not open any more: it is %s.",
			request_status_name(request->status));
	if (in->answers != NULL && !asks)
		return fail_field(f, STR("answers"), STR_NONE, "are for questions; this is a request for permission: it takes a decision");
	if (in->answers == NULL && asks && (in->decision == DECISION_ACCEPT || in->decision == DECISION_ACCEPT_FOR_SESSION))
		return fail_field(f, STR("answers"), STR_NONE, "are what this question takes; or it is declined or cancelled");
	return in->answers == NULL ? 0 : check_answers(request, in->answers, f);
}

static int end_item(struct tx *tx, const struct runtime_request_row *request, struct failure *f)
{
	struct turn_item_row item;

	if (request->item_n == 0)
		return 0;
	if (NEED(&tx->snapshot, turn_item, request->item_n, &item, f) != 0)
		return -1;
	return work_is_terminal(item.status) ? 0 : item_end(tx, &item, WORK_COMPLETED, f);
}

int person_respond(struct tx *tx, const struct person_answer *in, struct json_writer *w, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	struct runtime_request_row request;

	if (person_request(&tx->snapshot, in->id, &request, f) != 0 || check_answer(&request, in, f) != 0
		|| tx_actor(tx, &request.answered_by, f) != 0)
		return -1;
	request.status = REQUEST_IS_RESOLVED;
	request.is_live = 0;
	request.resolved_at = tx->snapshot.now;
	if (in->answers != NULL)
		request.answers = json_compact(arena, in->answers);
	request.decision = 1 + (in->answers != NULL ? (int64_t)DECISION_ACCEPT : in->decision);
	if (PUT(tx, runtime_request, &request, request.thread_n, f) != 0 || end_item(tx, &request, f) != 0
		|| effect_add(tx, request.thread_n, request.run_n, EFFECT_ANSWER_REQUEST,
			   str_printf(arena, "{\"requestN\":%lld}", (long long)request.n), f)
			!= 0)
		return -1;
	jw_kstr(w, "requestId", request.id);
	jw_ktext(w, "status", request_status_name(request.status));
	return 0;
}
