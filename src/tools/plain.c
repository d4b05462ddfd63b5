/* One call of a plain tool, from JSON to its answer, however often it has to look again. */
#include "tools/plain.h"

#include "base/clock.h"
#include "base/limits.h"
#include "threads/places.h"
#include "threads/wait.h"
#include "tools/frame.h"

struct plain_frame {
	struct tools *tools;
	struct tool_call *request;
	const struct plain *plain;
	struct warnings warnings;
	void *args;
	struct asker asker;
	struct asked asked;
	struct str answer; /* members */
	struct store_job job;
	struct store_read read;
	struct waiter waiter;
	bool has_to_wait, is_lent;
};

static const char *const common[] = {"_meta", NULL};

const enum failure_code plain_errors[PLAIN_ERRORS_COUNT] = {
	FAIL_CAPABILITY_DENIED, FAIL_INVALID_REQUEST, FAIL_ORCHESTRATION_ERROR};

/* ---- answering ---- */

static void finish(struct plain_frame *frame)
{
	if (frame->is_lent)
		places_take_back(frame->asker.thread_n);
	frame->request->waiting = NULL;
	frame->request->done(frame->request); /* may free the arena, and the frame with it */
}

static void answer(struct plain_frame *frame)
{
	struct buf out;
	struct json_writer w;

	buf_init(&out, frame->request->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_members(&w, frame->answer);
	jw_object_end(&w);
	frame->request->envelope = buf_str(&out);
	frame->request->http_status = 200;
	finish(frame);
}

/* The catalogue of these tools has one word for all that is not their own. */
static enum failure_code code_of(enum failure_code code)
{
	switch (code) {
	case FAIL_UNKNOWN_PARAMETER:
	case FAIL_PAYLOAD_TOO_LARGE:
		return FAIL_INVALID_REQUEST;
	case FAIL_INTERNAL:
	case FAIL_UNAVAILABLE:
	case FAIL_STORAGE_FULL:
	case FAIL_DUPLICATE:
		return FAIL_ORCHESTRATION_ERROR;
	case FAIL_FORBIDDEN:
	case FAIL_UNAUTHENTICATED:
		return FAIL_CAPABILITY_DENIED;
	default:
		return code;
	}
}

/* "task: is required; mode: must be one of async, wait". Who sent a name that is not there is told which are. */
static struct str message_of(const struct plain_frame *frame, const struct failure *f)
{
	const char *between = "";
	struct buf out;

	buf_init(&out, frame->request->arena, SIZE_MAX);
	buf_add_str(&out, f->message);
	if (out.n > 0)
		between = " ";
	for (const struct failure_field *field = f->fields; field != NULL; field = field->next, between = "; ")
		buf_printf(&out, "%s%.*s: %.*s", between, STRF(field->path), STRF(field->reason));
	if (f->code != FAIL_UNKNOWN_PARAMETER || memchr(f->fields->path.p, '.', f->fields->path.n) != NULL)
		return buf_str(&out);
	buf_add_str(&out, STR(" (it takes"));
	between = " ";
	for (const struct field *field = frame->plain->fields; field->name != NULL; field++, between = ", ")
		buf_printf(&out, "%s%s", between, field->name);
	buf_printf(&out, "%s)", between[0] == ' ' ? " nothing" : "");
	return buf_str(&out);
}

static void refuse(struct plain_frame *frame, const struct failure *f)
{
	enum failure_code code = code_of(f->code);
	struct tool_call *request = frame->request;
	struct buf out;
	struct json_writer w;

	buf_init(&out, request->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_ktext(&w, "_tag", "OrchestratorMcpFailure");
	jw_ktext(&w, "code", failure_info(code)->wire);
	jw_kstr(&w, "message", message_of(frame, f));
	jw_kint_opt(&w, "retryAfterMs", f->retry_after_ms);
	jw_object_end(&w);
	request->envelope = buf_str(&out);
	request->is_error = true;
	request->http_status = failure_info(code)->http_status;
	request->error_code = failure_info(code)->wire;
	request->retry_after_ms = f->retry_after_ms;
	finish(frame);
}

/* ---- running ---- */

/* An agent that waits for what it has delegated lends its place: its tasks may have none to begin in. */
static int lend(struct tx *tx, struct plain_frame *frame, struct failure *f)
{
	if (frame->is_lent || frame->asker.thread_n == 0)
		return 0;
	frame->is_lent = true;
	places_lend(frame->asker.thread_n);
	return schedule(tx, f);
}

static int run(struct tx *tx, void *arg, struct failure *f)
{
	struct plain_frame *frame = arg;
	struct json_writer w;
	struct buf out;
	int rc;

	if (frame->plain->has_read != NULL)
		return frame->plain->has_read(tx, &frame->asked, f);
	buf_init(&out, frame->request->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	rc = frame->plain->run(tx, &frame->asked, frame->args, &w, f);
	if (rc < 0)
		return -1;
	frame->has_to_wait = rc == 1;
	frame->answer = buf_str(&out);
	if (!frame->has_to_wait)
		return 0;
	if (lend(tx, frame, f) != 0)
		return -1;
	frame->waiter.watched[0] = frame->asked.watched[0];
	frame->waiter.watched[1] = frame->asked.watched[1];
	waiter_add(&frame->waiter);
	return 0;
}

static void done(void *arg, int rc, struct failure *f)
{
	struct plain_frame *frame = arg;

	threads_wake(frame->tools->threads);
	if (rc != 0) {
		if (frame->has_to_wait)
			(void)waiter_remove(&frame->waiter);
		refuse(frame, f);
	} else if (frame->has_to_wait) {
		waiter_arm(frame->tools->threads, &frame->waiter);
	} else {
		answer(frame);
	}
}

static void submit(struct plain_frame *frame)
{
	struct failure *f = ARENA_NEW(frame->request->arena, struct failure);

	failure_init(f, frame->request->arena);
	frame->has_to_wait = false;
	frame->job = (struct store_job){
		.run = run, .done = done, .arg = frame, .actor = &frame->request->caller.actor, .arena = frame->request->arena};
	if (store_submit(frame->tools->store, &frame->job, f) != 0)
		refuse(frame, f);
}

/* ---- reading ---- */

static void read_on_reader(struct snapshot *s, void *arg)
{
	struct plain_frame *frame = arg;
	struct json_writer w;
	struct failure f;
	struct buf out;

	failure_init(&f, frame->request->arena);
	buf_init(&out, frame->request->arena, SIZE_MAX);
	json_writer_init(&w, &out);
	if (frame->plain->read(s, &frame->asked, frame->args, &w, &f) != 0) {
		refuse(frame, &f);
		return;
	}
	frame->answer = buf_str(&out);
	if (frame->asked.handle != 0)
		submit(frame);
	else
		answer(frame);
}

static void read_refused(void *arg, struct failure *f)
{
	refuse(arg, f);
}

static void submit_read(struct plain_frame *frame)
{
	struct failure *f = ARENA_NEW(frame->request->arena, struct failure);

	failure_init(f, frame->request->arena);
	frame->read = (struct store_read){
		.run = read_on_reader, .refuse = read_refused, .arg = frame, .arena = frame->request->arena};
	if (store_read_submit(frame->tools->store, &frame->read, f) != 0)
		refuse(frame, f);
}

static void woken(struct waiter *waiter, enum wait_reason reason)
{
	struct plain_frame *frame = (struct plain_frame *)(void *)((char *)waiter - offsetof(struct plain_frame, waiter));

	if (reason == WAIT_TIMED_OUT)
		frame->asked.may_wait = false;
	submit(frame);
}

static void tick(struct waiter *waiter)
{
	struct plain_frame *frame = (struct plain_frame *)(void *)((char *)waiter - offsetof(struct plain_frame, waiter));

	if (frame->request->progress != NULL)
		frame->request->progress(frame->request);
}

void tools_cancel(struct tool_call *request)
{
	struct plain_frame *frame = request->waiting;
	struct failure f;

	/* While its change is being stored, what it has in memory is needed: it answers right after that. */
	if (frame == NULL || !waiter_cancel(&frame->waiter))
		return;
	failure_init(&f, request->arena);
	(void)fail(&f, FAIL_ORCHESTRATION_ERROR, "The caller gave the call up; what it waited for goes on.");
	refuse(frame, &f);
}

/* ---- what was asked ---- */

/* What repetitions of a call must have in common: not how long they wait, nor what is only said twice. */
static struct str fingerprint(struct arena *arena, const json_t *args)
{
	static const char *const free_names[] = {"clientRequestId", "timeoutMs", "_meta"};
	json_auto_t *copy = args == NULL ? json_object() : json_copy((json_t *)(uintptr_t)args);
	const char *key;
	json_t *value;
	void *next;

	for (size_t i = 0; i < sizeof(free_names) / sizeof(free_names[0]); i++)
		(void)json_object_del(copy, free_names[i]);
	json_object_foreach_safe(copy, next, key, value)
	{
		if (json_is_null(value))
			(void)json_object_del(copy, key);
	}
	return json_canonical(arena, copy);
}

static int read_call(struct plain_frame *frame, struct failure *f)
{
	struct tool_call *request = frame->request;
	const struct caller *caller = &request->caller;
	struct str key = json_member_str(request->args, "clientRequestId");

	if (!caller_may(caller, CAP_ORCHESTRATION))
		return fail(f, FAIL_CAPABILITY_DENIED, "The credential does not grant orchestration.");
	if (frame->tools->threads == NULL)
		return fail(f, FAIL_UNAVAILABLE, "This server runs no agents.");
	frame->args = arena_alloc(request->arena, frame->plain->args_size + 1);
	if (field_read(frame->plain->fields, request->args, STR(""), common, request->arena, &frame->warnings, frame->args, f)
		!= 0)
		return -1;
	frame->asker = (struct asker){.threads = frame->tools->threads,
		.thread_n = caller->thread_n,
		.instance_id = caller->instance_id,
		.principal = caller->actor.id,
		.workspace = caller->workspace};
	frame->asked = (struct asked){.asker = &frame->asker,
		.key = key.p == NULL ? STR_NONE : str_trim(key),
		.fingerprint = fingerprint(request->arena, request->args)};
	return 0;
}

static void set_deadline(struct plain_frame *frame)
{
	int64_t ms = frame->plain->wait_ms == NULL ? 0 : frame->plain->wait_ms(frame->args);

	if (frame->request->max_wait_ms > 0 && ms > frame->request->max_wait_ms)
		ms = frame->request->max_wait_ms;
	frame->asked.may_wait = ms > 0;
	frame->waiter = (struct waiter){.deadline = clock_mono_ms() + ms, .wake = woken, .tick = tick};
}

void plain_call(struct tools *tools, struct tool_call *request)
{
	struct plain_frame *frame = ARENA_NEW(request->arena, struct plain_frame);
	struct failure *f = ARENA_NEW(request->arena, struct failure);

	failure_init(f, request->arena);
	*frame = (struct plain_frame){.tools = tools, .request = request, .plain = request->tool->plain};
	warnings_init(&frame->warnings, request->arena, LIMIT_WARNINGS);
	request->waiting = frame;
	if (read_call(frame, f) != 0) {
		refuse(frame, f);
		return;
	}
	set_deadline(frame);
	if (frame->plain->read != NULL)
		submit_read(frame);
	else
		submit(frame);
}

/* ---- tools/list ---- */

void plain_write_listing(const struct tool *tool, struct json_writer *w)
{
	const struct plain *plain = tool->plain;

	jw_object_begin(w);
	jw_ktext(w, "name", tool->name);
	jw_ktext(w, "title", tool->title);
	jw_ktext(w, "description", tool->description);
	jw_kobject(w, "inputSchema");
	jw_ktext(w, "type", "object");
	jw_kobject(w, "properties");
	for (const struct field *field = plain->fields; field->name != NULL; field++)
		field_schema(field, w);
	jw_object_end(w);
	jw_karray(w, "required");
	for (const struct field *field = plain->fields; field->name != NULL; field++)
		if (field->flags & REQUIRED)
			jw_text(w, field->name);
	jw_array_end(w);
	jw_kbool(w, "additionalProperties", false);
	jw_object_end(w);
	/* Nothing in it is required: some clients check refusals against it, too. */
	jw_kraw(w, "outputSchema", str_of(plain->output));
	jw_kobject(w, "annotations");
	jw_ktext(w, "title", tool->title);
	jw_kbool(w, "readOnlyHint", plain->is_read_only);
	jw_kbool(w, "destructiveHint", plain->is_destructive);
	jw_kbool(w, "idempotentHint", plain->is_idempotent);
	jw_kbool(w, "openWorldHint", plain->is_open_world);
	jw_object_end(w);
	if (plain->read != NULL) { /* may be long */
		jw_kobject(w, "_meta");
		jw_kint(w, "anthropic/maxResultSizeChars", 100000);
		jw_object_end(w);
	}
	jw_object_end(w);
}
