/* Administration of threads: requests of a person over the Unix socket, or over HTTP with the capability admin. */
#include "server/admin.h"

#include "base/field.h"
#include "base/limits.h"
#include "threads/person.h"

/* One set of fields: an operation reads those that it has. */
struct thread_args {
	struct arg_str op, id, text, title, place, provider, model, project, status;
	struct arg_int mode, runtime, interaction, decision, limit;
	struct arg_bool archived;
	struct arg_json answers;
	struct threads *threads;
};

static const struct word send_words[] = {
	{"auto", SEND_AUTO},
	{"queue", SEND_QUEUE},
	{"steer", SEND_STEER},
	{"restart", SEND_RESTART},
	WORDS_END,
};

static const struct word decision_words[] = {
	{"accept", DECISION_ACCEPT},
	{"accept-session", DECISION_ACCEPT_FOR_SESSION},
	{"decline", DECISION_DECLINE},
	{"cancel", DECISION_CANCEL},
	WORDS_END,
};

static const struct word runtime_words[] = {
	{"read-only", RUNTIME_READ_ONLY},
	{"approval-required", RUNTIME_APPROVAL_REQUIRED},
	{"auto-accept-edits", RUNTIME_AUTO_ACCEPT_EDITS},
	{"full-access", RUNTIME_FULL_ACCESS},
	WORDS_END,
};

static const struct word interaction_words[] = {
	{"plan", INTERACTION_PLAN},
	{"default", INTERACTION_DEFAULT},
	WORDS_END,
};

#define TEXT_FIELD(member, max_) FIELD(struct thread_args, member, #member, FIELD_STR, 0, .max = (max_))

static const struct field fields[] = {
	FIELD(struct thread_args, op, "op", FIELD_STR, REQUIRED, .max = 64),
	TEXT_FIELD(id, LIMIT_THREAD_ID_CHARS),
	TEXT_FIELD(text, LIMIT_PROMPT_CHARS),
	TEXT_FIELD(title, LIMIT_ITEM_TITLE_CHARS),
	TEXT_FIELD(place, 4096),
	TEXT_FIELD(provider, 64),
	TEXT_FIELD(model, 256),
	TEXT_FIELD(project, 4096),
	TEXT_FIELD(status, 64),
	FIELD(struct thread_args, mode, "mode", FIELD_WORD, 0, .words = send_words),
	FIELD(struct thread_args, runtime, "runtimeMode", FIELD_WORD, 0, .words = runtime_words),
	FIELD(struct thread_args, interaction, "interactionMode", FIELD_WORD, 0, .words = interaction_words),
	FIELD(struct thread_args, decision, "decision", FIELD_WORD, 0, .words = decision_words),
	FIELD(struct thread_args, limit, "limit", FIELD_INT, 0, .min = 1, .max = 10000),
	FIELD(struct thread_args, archived, "archived", FIELD_BOOL, 0),
	FIELD(struct thread_args, answers, "answers", FIELD_JSON, 0, .max = LIMIT_PROMPT_CHARS),
	FIELDS_END,
};

struct thread_op {
	const char *name;
	int (*read)(struct snapshot *s, const struct thread_args *args, struct json_writer *w, struct failure *f);
	int (*change)(struct tx *tx, const struct thread_args *args, struct json_writer *w, struct failure *f);
	bool needs_id, needs_text;
};

static int64_t word_or(const struct arg_int *arg, int64_t otherwise)
{
	return arg->set && !arg->null ? arg->v : otherwise;
}

/* ---- reading ---- */

#define LIST_DEFAULT 200
#define ITEMS_DEFAULT 100

static int list(struct snapshot *s, const struct thread_args *args, struct json_writer *w, struct failure *f)
{
	struct person_filter filter = {.project = args->project.v,
		.status = args->status.v,
		.has_archived = args->archived.v,
		.limit = word_or(&args->limit, LIST_DEFAULT)};

	return person_list(s, &filter, w, f);
}

static int show(struct snapshot *s, const struct thread_args *args, struct json_writer *w, struct failure *f)
{
	return person_show(s, args->id.v, word_or(&args->limit, ITEMS_DEFAULT), w, f);
}

static int requests(struct snapshot *s, const struct thread_args *args, struct json_writer *w, struct failure *f)
{
	return person_requests(s, args->id.v, w, f);
}

static int providers(struct snapshot *s, const struct thread_args *args, struct json_writer *w, struct failure *f)
{
	(void)f;
	person_providers(args->threads, s->arena, w);
	return 0;
}

/* ---- changing ---- */

static int start(struct tx *tx, const struct thread_args *args, struct json_writer *w, struct failure *f)
{
	struct person_start in = {.threads = args->threads,
		.place = args->place.v,
		.text = args->text.v,
		.title = args->title.v,
		.target = {.instance_id = args->provider.v, .model = args->model.v},
		.runtime = word_or(&args->runtime, -1),
		.interaction = word_or(&args->interaction, -1)};

	if (in.place.n == 0 || in.place.p[0] != '/')
		return fail_field(f, STR("place"), in.place, "must be the absolute path of a folder");
	return person_start(tx, &in, w, f);
}

static int send_to(struct tx *tx, const struct thread_args *args, struct json_writer *w, struct failure *f)
{
	return person_send(tx, args->id.v, args->text.v, (enum send_mode)word_or(&args->mode, SEND_AUTO), w, f);
}

static int interrupt(struct tx *tx, const struct thread_args *args, struct json_writer *w, struct failure *f)
{
	return person_interrupt(tx, args->id.v, w, f);
}

static int respond(struct tx *tx, const struct thread_args *args, struct json_writer *w, struct failure *f)
{
	struct person_answer in = {
		.id = args->id.v, .decision = word_or(&args->decision, -1), .answers = args->answers.v};

	if ((in.answers == NULL) == (in.decision < 0))
		return fail_field(f, STR("decision"), STR_NONE, "is needed, or answers; one of them");
	return person_respond(tx, &in, w, f);
}

static int archive(struct tx *tx, const struct thread_args *args, struct json_writer *w, struct failure *f)
{
	return person_archive(tx, args->id.v, w, f);
}

static int delete_thread(struct tx *tx, const struct thread_args *args, struct json_writer *w, struct failure *f)
{
	return person_delete(tx, args->id.v, w, f);
}

static const struct thread_op ops[] = {
	{"threads.archive", NULL, archive, true, false},
	{"threads.delete", NULL, delete_thread, true, false},
	{"threads.interrupt", NULL, interrupt, true, false},
	{"threads.list", list, NULL, false, false},
	{"threads.providers", providers, NULL, false, false},
	{"threads.requests", requests, NULL, false, false},
	{"threads.respond", NULL, respond, true, false},
	{"threads.send", NULL, send_to, true, true},
	{"threads.show", show, NULL, true, false},
	{"threads.start", NULL, start, false, true},
};

/* ---- running ---- */

struct changing {
	const struct thread_op *op;
	const struct thread_args *args;
	struct json_writer *w;
};

static int change(struct tx *tx, void *arg, struct failure *f)
{
	const struct changing *changing = arg;

	return changing->op->change(tx, changing->args, changing->w, f);
}

static int read_op(struct store *store, const struct thread_op *op, const struct thread_args *args, struct arena *arena,
	struct json_writer *w, struct failure *f)
{
	struct snapshot s;
	int rc;

	/* Who follows the log from here on misses nothing of what the snapshot does not show. */
	jw_kint(w, "seq", store_newest(store));
	if (snapshot_begin(store, arena, &s, f) != 0)
		return -1;
	rc = snapshot_settle(&s, f) != 0 ? -1 : op->read(&s, args, w, f);
	snapshot_end(&s);
	return rc;
}

static const struct thread_op *find(struct str name)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (str_eq(name, str_of(ops[i].name)))
			return &ops[i];
	return NULL;
}

bool admin_is_of_threads(struct str op)
{
	return find(op) != NULL;
}

static int read_args(const struct thread_op *op, const json_t *request, struct arena *arena, struct thread_args *out,
	struct failure *f)
{
	if (field_read(fields, request, STR(""), NULL, arena, NULL, out, f) != 0)
		return -1;
	if (op->needs_id && out->id.v.n == 0)
		return fail_field(f, STR("id"), STR_NONE, "is needed");
	if (op->needs_text && str_trim(out->text.v).n == 0)
		return fail_field(f, STR("text"), STR_NONE, "is needed");
	return 0;
}

int admin_threads(const struct admin_desk *desk, const json_t *request, struct arena *arena, struct json_writer *out,
	struct failure *f)
{
	const struct thread_op *op = find(json_member_str(request, "op"));
	struct thread_args args = {.threads = desk->threads};
	struct changing changing = {op, &args, out};
	int rc;

	if (op == NULL)
		return fail(f, FAIL_INTERNAL, "It is no request about threads.");
	if (desk->threads == NULL)
		return fail(f, FAIL_UNAVAILABLE, "This server runs no agents.");
	if (read_args(op, request, arena, &args, f) != 0)
		return -1;
	if (op->read != NULL)
		return read_op(desk->store, op, &args, arena, out, f);
	rc = store_write(desk->store, change, &changing, desk->actor, arena, f);
	if (rc == 0)
		threads_wake(desk->threads);
	return rc;
}
