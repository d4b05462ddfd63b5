/* The tables as manual (describe) and as tools/list. */
#include "tools/frame.h"
#include "tools/plain.h"

#include "base/limits.h"
#include "threads/instructions.h"

static void write_operation(const struct operation *operation, struct json_writer *w)
{
	jw_kobject(w, operation->name);
	jw_ktext(w, "summary", operation->summary);
	jw_karray(w, "params");
	for (const struct field *field = operation->fields; field->name != NULL; field++)
		field_describe(field, w);
	jw_array_end(w);
	if (operation->returns != NULL)
		jw_ktext(w, "returns", operation->returns);
	jw_karray(w, "errors");
	for (size_t i = 0; i < operation->error_count; i++)
		jw_text(w, failure_info(operation->errors[i])->wire);
	jw_array_end(w);
	if (operation->example != NULL)
		jw_kraw(w, "example", str_of(operation->example));
	jw_object_end(w);
}

static void write_operations(const char *key, const struct operation *list, size_t n, enum profile profile,
	struct str narrow, struct json_writer *w)
{
	jw_kobject(w, key);
	for (size_t i = 0; i < n; i++)
		if ((list[i].profiles & (unsigned)profile) != 0 &&
			(narrow.n == 0 || str_eq(narrow, str_of(list[i].name))))
			write_operation(&list[i], w);
	jw_object_end(w);
}

static struct str operation_names(const struct tool *tool, enum profile profile, struct arena *arena)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	for (size_t i = 0; i < tool->select_count + tool->op_count; i++) {
		const struct operation *one = i < tool->select_count ? &tool->selects[i] : &tool->ops[i - tool->select_count];

		if ((one->profiles & (unsigned)profile) != 0)
			buf_printf(&out, "%s%s", out.n == 0 ? "" : ", ", one->name);
	}
	return buf_str(&out);
}

int tool_describe(const struct tool *tool, enum profile profile, struct str narrow, struct json_writer *w,
	struct failure *f)
{
	bool is_select;

	if (narrow.n > 0 && tool_operation(tool, narrow, &is_select) == NULL)
		return fail_field(f, tool->op_count > 0 ? STR("op") : STR("select"), narrow, "must be one of %.*s",
			STRF(operation_names(tool, profile, f->arena)));
	jw_object_begin(w);
	jw_ktext(w, "tool", tool->name);
	jw_ktext(w, "profile", profile_name(profile));
	jw_ktext(w, "version", DAIS_VERSION);
	if (tool->select_count > 0)
		write_operations("selects", tool->selects, tool->select_count, profile, narrow, w);
	if (tool->op_count > 0)
		write_operations("ops", tool->ops, tool->op_count, profile, narrow, w);
	jw_karray(w, "common");
	if (tool->select_count > 0) {
		jw_text(w, "select");
		jw_text(w, "ids");
	}
	if (tool->op_count > 0) {
		jw_text(w, "ops");
		jw_text(w, "atomic");
		jw_text(w, "idempotencyKey");
	}
	jw_array_end(w);
	jw_object_end(w);
	return 0;
}

static void write_names(const struct operation *list, size_t n, enum profile profile, struct json_writer *w)
{
	jw_array_begin(w);
	for (size_t i = 0; i < n; i++)
		if ((list[i].profiles & (unsigned)profile) != 0)
			jw_text(w, list[i].name);
	jw_array_end(w);
}

static void property(struct json_writer *w, const char *name, const char *type, const char *description)
{
	jw_kobject(w, name);
	jw_ktext(w, "type", type);
	jw_ktext(w, "description", description);
	jw_object_end(w);
}

/* A select's parameter that an earlier select of the profile already showed. */
static bool shown(const struct tool *tool, size_t select, const char *name, enum profile profile)
{
	for (size_t i = 0; i < select; i++) {
		if ((tool->selects[i].profiles & (unsigned)profile) == 0)
			continue;
		for (const struct field *field = tool->selects[i].fields; field->name != NULL; field++)
			if (strcmp(field->name, name) == 0)
				return true;
	}
	return false;
}

/* Type only, as lean as the rules of clients allow: bounds are in describe and in the server's check. */
static void lean_property(const struct field *field, struct json_writer *w)
{
	struct field lean = *field;

	lean.min = lean.max = 0;
	/* Clients want a description of each; a name that explains itself is its own. */
	if (lean.help == NULL)
		lean.help = field->kind == FIELD_ID    ? "an id, or its first 8 digits or more"
			: field->kind == FIELD_IDS  ? "ids, each cut to 8 digits or more at will"
			: field->kind == FIELD_TIME ? "RFC 3339, like 2026-03-02T08:15:30Z"
						    : field->name;
	field_schema(&lean, w);
}

static void write_select_properties(const struct tool *tool, enum profile profile, struct json_writer *w)
{
	jw_kobject(w, "select");
	jw_ktext(w, "type", "string");
	jw_key(w, "enum");
	write_names(tool->selects, tool->select_count, profile, w);
	jw_ktext(w, "description", "What to read.");
	jw_object_end(w);
	for (size_t i = 0; i < tool->select_count; i++) {
		if ((tool->selects[i].profiles & (unsigned)profile) == 0)
			continue;
		for (const struct field *field = tool->selects[i].fields; field->name != NULL; field++)
			if (!shown(tool, i, field->name, profile))
				lean_property(field, w);
	}
	property(w, "ids", "string", "full (default) or short");
}

/* "upsert(itemId, key, role?, body?)": what a model needs to write an op without asking first. */
static void write_op_help(const struct tool *tool, enum profile profile, struct buf *out)
{
	buf_add_str(out, STR("1 to 100 ops, run in order. "));
	for (size_t i = 0; i < tool->op_count; i++) {
		const char *comma = "";

		if ((tool->ops[i].profiles & (unsigned)profile) == 0)
			continue;
		buf_printf(out, "%s(", tool->ops[i].name);
		for (const struct field *field = tool->ops[i].fields; field->name != NULL; field++) {
			buf_printf(out, "%s%s%s", comma, field->name, field->flags & REQUIRED ? "" : "?");
			comma = ", ";
		}
		buf_add_str(out, STR(") "));
	}
}

static void write_op_properties(const struct tool *tool, enum profile profile, struct json_writer *w)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct buf help;

	buf_init(&help, arena, SIZE_MAX);
	write_op_help(tool, profile, &help);
	jw_kobject(w, "ops");
	jw_ktext(w, "type", "array");
	jw_kint(w, "minItems", 1);
	jw_kint(w, "maxItems", LIMIT_OPS_PER_CALL);
	jw_kstr(w, "description", str_trim(buf_str(&help)));
	jw_kobject(w, "items");
	jw_ktext(w, "type", "object");
	jw_kobject(w, "properties");
	jw_kobject(w, "op");
	jw_ktext(w, "type", "string");
	jw_key(w, "enum");
	write_names(tool->ops, tool->op_count, profile, w);
	jw_ktext(w, "description", "Which operation.");
	jw_object_end(w);
	jw_object_end(w);
	jw_karray(w, "required");
	jw_text(w, "op");
	jw_array_end(w);
	jw_object_end(w);
	jw_object_end(w);
	property(w, "atomic", "boolean", "true: all or nothing");
	property(w, "idempotencyKey", "string", "Repeats with this key within 24 h do nothing twice.");
}

static bool has_operations(const struct operation *list, size_t n, enum profile profile)
{
	for (size_t i = 0; i < n; i++)
		if ((list[i].profiles & (unsigned)profile) != 0)
			return true;
	return false;
}

static void write_input_schema(const struct tool *tool, enum profile profile, struct json_writer *w)
{
	bool selects = has_operations(tool->selects, tool->select_count, profile);
	bool ops = has_operations(tool->ops, tool->op_count, profile);

	jw_kobject(w, "inputSchema");
	jw_ktext(w, "type", "object");
	jw_kobject(w, "properties");
	property(w, "describe", "boolean", "true: explain this tool and do nothing");
	if (selects)
		write_select_properties(tool, profile, w);
	if (ops)
		write_op_properties(tool, profile, w);
	jw_object_end(w);
	jw_karray(w, "required");
	jw_array_end(w);
	jw_kbool(w, "additionalProperties", false);
	jw_object_end(w);
}

static void write_output_schema(struct json_writer *w)
{
	/* Only `ok` is in every answer; a stricter schema would turn our errors into client exceptions. */
	jw_kraw(w, "outputSchema",
		STR("{\"type\":\"object\",\"properties\":{\"ok\":{\"type\":\"boolean\"},"
		    "\"data\":{\"type\":\"object\"},\"results\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
		    "\"error\":{\"type\":\"object\"}},\"required\":[\"ok\"]}"));
}

void tool_write_listing(const struct tool *tool, enum profile profile, struct json_writer *w)
{
	bool writes = has_operations(tool->ops, tool->op_count, profile);

	if (tool->plain != NULL) {
		plain_write_listing(tool, w);
		return;
	}
	jw_object_begin(w);
	jw_ktext(w, "name", tool->name);
	jw_ktext(w, "title", tool->title);
	jw_ktext(w, "description", tool->description);
	write_input_schema(tool, profile, w);
	write_output_schema(w);
	jw_kobject(w, "annotations");
	jw_ktext(w, "title", tool->title);
	jw_kbool(w, "readOnlyHint", !writes);
	jw_kbool(w, "destructiveHint", writes && tool->is_destructive);
	jw_kbool(w, "idempotentHint", !writes || tool->is_idempotent);
	jw_kbool(w, "openWorldHint", false);
	jw_object_end(w);
	if (!writes) {
		jw_kobject(w, "_meta");
		jw_kint(w, "anthropic/maxResultSizeChars", 100000);
		jw_object_end(w);
	}
	jw_object_end(w);
}

#define WORK_INSTRUCTIONS \
	"dais keeps the work of this project as a graph of items that a server guards. An item moves " \
	"queue -> work -> review -> terminal by the tool advance; the server refuses a step while a required " \
	"note is missing or a blocker is unfinished and names what is missing. " \
	"1. Resume with items_read {\"select\":\"context\"}; find work with items_read {\"select\":\"next\"} or " \
	"claim it with advance {\"ops\":[{\"op\":\"claim\",\"selector\":{}}]}. " \
	"2. Before a step ask items_read {\"select\":\"gate\",\"itemId\":...}: it lists every missing note. " \
	"3. Write notes with notes_write, then advance {\"ops\":[{\"op\":\"transition\",\"itemId\":...," \
	"\"trigger\":\"start\"}]}. Finishing the last child closes its parent and unblocks what waited. " \
	"4. Ids may be shortened to 8 or more leading hex digits. Pass expectedVersion to detect changes by " \
	"others and idempotencyKey to repeat a call safely. " \
	"Every tool explains itself with {\"describe\":true}; an error says in fix what to do next."

struct str tools_instructions(enum profile profile)
{
	if (profile == PROFILE_DIRECTOR)
		return STR("dais keeps the work of this project as a graph of items that a server guards. You see the "
			   "director's profile: read items and dependencies with items_read and deps_read; run, decide and "
			   "report with report. Start with report {\"select\":\"board\"} or items_read "
			   "{\"select\":\"overview\"}. Every tool explains itself with {\"describe\":true}.");
	if (profile == PROFILE_THREADS)
		return STR(THREADS_INSTRUCTIONS);
	if (profile == PROFILE_FULL)
		return STR(WORK_INSTRUCTIONS " " THREADS_INSTRUCTIONS);
	return STR(WORK_INSTRUCTIONS);
}
