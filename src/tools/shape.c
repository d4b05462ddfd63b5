/* The shape of a request: which operation, which arguments. Nothing runs when anything is wrong. */
#include "tools/frame.h"

#include "base/limits.h"

/* Some clients put their _meta among the arguments: it means nothing here. */
static const char *const read_common[] = {"describe", "select", "ids", "_meta", NULL};
static const char *const write_common[] = {"describe", "ops", "atomic", "idempotencyKey", "op", "select", "_meta", NULL};

const struct operation *tool_operation(const struct tool *tool, struct str name, bool *is_select)
{
	for (size_t i = 0; i < tool->select_count; i++) {
		if (str_eq(name, str_of(tool->selects[i].name))) {
			*is_select = true;
			return &tool->selects[i];
		}
	}
	for (size_t i = 0; i < tool->op_count; i++) {
		if (str_eq(name, str_of(tool->ops[i].name))) {
			*is_select = false;
			return &tool->ops[i];
		}
	}
	return NULL;
}

static struct str names_of(struct arena *arena, const struct operation *list, size_t n)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t i = 0; i < n; i++)
		buf_printf(&out, "%s%s", i == 0 ? "" : ", ", list[i].name);
	return buf_str(&out);
}

/* reparent is the older word for reroot. */
static struct str known_as(struct str name)
{
	return str_eq(name, STR("reparent")) ? STR("reroot") : name;
}

static const struct operation *find(struct frame *frame, const json_t *object, const char *member,
	const struct operation *list, size_t n, struct str path, struct failure *f)
{
	const json_t *value = json_object_get(object, member);
	struct str name = known_as(json_str(value));
	struct str at = str_printf(f->arena, "%.*s%s", STRF(path), member);

	for (size_t i = 0; i < n; i++)
		if (str_eq(name, str_of(list[i].name)))
			return &list[i];
	if (value == NULL || json_is_null(value))
		(void)fail_field(f, at, STR_NONE, "is required; one of %.*s",
			STRF(names_of(frame->call.arena, list, n)));
	else
		(void)fail_field(f, at, json_received(f->arena, value), "must be one of %.*s",
			STRF(names_of(frame->call.arena, list, n)));
	return NULL;
}

/* A shared parameter that is true or false. Taken for absent it would do the opposite of what was meant: whoever
 * sends describe wants nothing to happen. */
static int read_flag(struct frame *frame, const json_t *args, const char *name, bool *out, struct failure *f)
{
	const json_t *value = json_object_get(args, name);
	struct str text = json_str(value);
	bool is_true = json_is_true(value) || str_eq(text, STR("true"));

	if (value != NULL && !json_is_null(value) && !is_true && !json_is_false(value) && !str_eq(text, STR("false")))
		return fail_field(f, str_of(name), json_received(f->arena, value), "expected true or false, got %s",
			json_type_name(value));
	if (json_is_string(value))
		warn(&frame->call.warnings, "json_string_coerced", str_of(name), "A JSON string was read as a boolean.");
	*out = is_true;
	return 0;
}

static int read_ids(struct frame *frame, const json_t *args, struct failure *f)
{
	const json_t *value = json_object_get(args, "ids");
	struct str text = json_str(value);

	if (value != NULL && !json_is_null(value) && !str_eq(text, STR("full")) && !str_eq(text, STR("short")))
		return fail_field(f, STR("ids"), json_received(f->arena, value), "must be one of full, short");
	frame->call.short_ids = str_eq(text, STR("short"));
	return 0;
}

/* Digest of what a cursor is bound to: every argument but where to start and what to show. */
static struct str filters_of(struct arena *arena, const json_t *args)
{
	static const char *const free_names[] = {"cursor", "limit", "fields", "ids", "explain", "_meta"};
	json_auto_t *copy = json_copy((json_t *)(uintptr_t)args);
	struct str text;
	unsigned char digest[32];

	for (size_t i = 0; i < sizeof(free_names) / sizeof(free_names[0]); i++)
		(void)json_object_del(copy, free_names[i]);
	text = json_canonical(arena, copy);
	sha256(text.p, text.n, digest);
	return hex(arena, digest, 6);
}

static int read_select(struct frame *frame, const json_t *args, struct failure *f)
{
	const struct operation *operation =
		find(frame, args, "select", frame->tool->selects, frame->tool->select_count, STR(""), f);
	struct step *step;

	if (operation == NULL)
		return -1;
	frame->is_read = true;
	frame->step_count = 1;
	frame->steps = step = ARENA_NEW(frame->call.arena, struct step);
	step->operation = operation;
	step->element = args;
	step->args = arena_alloc(frame->call.arena, operation->args_size);
	(void)read_ids(frame, args, f);
	frame->call.select = str_printf(frame->call.arena, "%s.%s", frame->tool->name, operation->name);
	frame->call.filters = filters_of(frame->call.arena, args);
	if (field_read(operation->fields, args, STR(""), read_common, frame->call.arena, &frame->call.warnings,
		    step->args, f) != 0)
		return -1;
	if (operation->check != NULL && operation->check(step->args, STR(""), f) != 0)
		return -1;
	return f->is_shape ? -1 : 0;
}

/* The list that `ops` is, or spells, or the one op that was sent without its list. */
static const json_t *ops_of(struct frame *frame, const json_t *value, struct failure *f)
{
	struct arena *arena = frame->call.arena;
	json_t *read = NULL;

	if (json_is_array(value))
		return value;
	if (json_is_string(value)) {
		read = json_from_text(value, true, STR("ops"), &frame->call.warnings);
		if (read == NULL)
			read = json_from_text(value, false, STR("ops"), &frame->call.warnings);
	}
	if (read != NULL)
		arena_at_end(arena, (void (*)(void *))json_decref, read);
	if (json_is_array(read))
		return read;
	if (json_is_object(value) || json_is_object(read)) {
		json_t *list = json_array();

		arena_at_end(arena, (void (*)(void *))json_decref, list);
		(void)json_array_append(list, read != NULL ? read : (json_t *)(uintptr_t)value);
		warn(&frame->call.warnings, "ops_wrapped", STR("ops"), "A single op was read as a list of one.");
		return list;
	}
	(void)fail_field(f, STR("ops"), json_received(f->arena, value),
		"expected an array of ops, got %s; send it like [{\"op\":\"%s\"}]", json_type_name(value),
		frame->tool->ops[0].name);
	return NULL;
}

static int read_op(struct frame *frame, const json_t *element, size_t i, struct failure *f)
{
	static const char *const skip[] = {"op", NULL};
	struct arena *arena = frame->call.arena;
	struct str path = str_printf(arena, "ops[%zu].", i);
	struct step *step = &frame->steps[i];

	if (!json_is_object(element))
		return fail_field(f, str_printf(arena, "ops[%zu]", i), json_received(arena, element),
			"expected an object, got %s", json_type_name(element));
	step->element = element;
	step->operation = find(frame, element, "op", frame->tool->ops, frame->tool->op_count, path, f);
	if (step->operation == NULL)
		return -1;
	step->args = arena_alloc(arena, step->operation->args_size);
	if (field_read(step->operation->fields, element, path, skip, arena, &frame->call.warnings, step->args,
		    f) != 0)
		return -1;
	return step->operation->check == NULL ? 0 : step->operation->check(step->args, path, f);
}

static int read_shared(struct frame *frame, const json_t *args, struct failure *f)
{
	const json_t *key = json_object_get(args, "idempotencyKey");
	struct str text = json_str(key);

	(void)read_flag(frame, args, "atomic", &frame->is_atomic, f);
	if (key == NULL || json_is_null(key))
		return 0;
	if (text.n == 0 || utf8_count(text) > LIMIT_IDEMPOTENCY_KEY_CHARS || memchr(text.p, '\0', text.n) != NULL)
		return fail_field(f, STR("idempotencyKey"), json_received(f->arena, key),
			"must be a string of 1 to %d characters", LIMIT_IDEMPOTENCY_KEY_CHARS);
	frame->key = text;
	return 0;
}

static void report_unknown(struct frame *frame, const json_t *args, struct failure *f)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)args, key, value) {
		const char *const *known = write_common;

		while (*known != NULL && strcmp(*known, key) != 0)
			known++;
		if (*known == NULL || strcmp(key, "op") == 0 || strcmp(key, "select") == 0)
			(void)fail_unknown(f, str_of(key), "%s",
				frame->tool->op_count > 0 ? "parameters of an op belong inside ops" : "no such parameter");
	}
}

static int read_ops(struct frame *frame, const json_t *args, struct failure *f)
{
	const json_t *ops;
	size_t n;

	report_unknown(frame, args, f);
	(void)read_shared(frame, args, f);
	if (json_object_get(args, "ops") == NULL)
		return fail_field(f, STR("ops"), STR_NONE, "is required: an array of 1 to %d ops",
			LIMIT_OPS_PER_CALL);
	ops = ops_of(frame, json_object_get(args, "ops"), f);
	if (ops == NULL)
		return -1;
	n = json_array_size(ops);
	if (n == 0)
		return fail_field(f, STR("ops"), STR_NONE, "must have at least one op");
	if (n > LIMIT_OPS_PER_CALL) {
		(void)fail(f, FAIL_PAYLOAD_TOO_LARGE, "A call may hold %d ops.", LIMIT_OPS_PER_CALL);
		fail_detail_int(f, "max", LIMIT_OPS_PER_CALL);
		fail_detail_int(f, "actual", (int64_t)n);
		return -1;
	}
	frame->step_count = n;
	frame->steps = ARENA_ARRAY(frame->call.arena, struct step, n);
	for (size_t i = 0; i < n; i++) {
		frame->call.warnings.index = n > 1 ? (int)i : -1;
		(void)read_op(frame, json_array_get(ops, i), i, f);
	}
	frame->call.warnings.index = -1;
	return f->is_shape ? -1 : 0;
}

int frame_read(struct frame *frame, struct failure *f)
{
	const json_t *args = frame->request->args;
	bool is_described;
	bool has_select;

	if (args == NULL) {
		json_t *empty = json_object();

		arena_at_end(frame->call.arena, (void (*)(void *))json_decref, empty);
		args = empty;
	}
	if (!json_is_object(args))
		return fail_field(f, STR("arguments"), json_received(f->arena, args), "expected an object");
	if (read_flag(frame, args, "describe", &is_described, f) != 0)
		return -1;
	if (is_described) {
		struct str narrow = json_member_str(args, json_object_get(args, "select") != NULL ? "select" : "op");

		frame->describe = narrow.p == NULL ? "" : str_z(frame->call.arena, narrow);
		return 0;
	}
	has_select = json_object_get(args, "select") != NULL;
	if (has_select && json_object_get(args, "ops") != NULL)
		return fail_field(f, STR("ops"), STR_NONE, "excludes select");
	if (frame->tool->select_count > 0 && (has_select || frame->tool->op_count == 0))
		return read_select(frame, args, f);
	if (frame->tool->select_count > 0 && json_object_get(args, "ops") == NULL)
		return fail_field(f, STR("select"), STR_NONE, "select or ops is required; select is one of %.*s",
			STRF(names_of(f->arena, frame->tool->selects, frame->tool->select_count)));
	return read_ops(frame, args, f);
}

static int permit_one(struct frame *frame, const struct step *step, size_t i, struct failure *f)
{
	const struct operation *operation = step->operation;
	const struct caller *caller = frame->call.caller;
	unsigned needed = operation->capability;

	if ((operation->profiles & (unsigned)caller->profile) == 0) {
		(void)fail(f, FAIL_FORBIDDEN, "The %s profile does not have %s.", profile_name(caller->profile),
			operation->name);
		fail_detail_str(f, "scope", STR("capability"));
		fail_detail_str(f, "required", STR("profile:full"));
	} else {
		if (operation->also_needs != NULL)
			needed |= operation->also_needs(step->args);
		if (caller_need(caller, needed, f) == 0)
			return 0;
	}
	if (frame->step_count > 1)
		f->index = (int)i;
	return -1;
}

int frame_permit(struct frame *frame, struct failure *f)
{
	for (size_t i = 0; i < frame->step_count; i++)
		if (permit_one(frame, &frame->steps[i], i, f) != 0)
			return -1;
	return 0;
}
