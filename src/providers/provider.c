/* What every driver shares: collecting what comes of an input, and the names of the tables. */
#include "providers/provider.h"

#include "providers/failure_code.h"

void agent_out_init(struct agent_out *out, struct arena *arena)
{
	*out = (struct agent_out){.arena = arena};
	out->lines_end = &out->lines;
	out->events_end = &out->events;
}

void agent_out_line(struct agent_out *out, struct str json, bool has_secret)
{
	struct agent_line *line = ARENA_NEW(out->arena, struct agent_line);

	line->text = str_dup(out->arena, json);
	line->has_secret = has_secret;
	*out->lines_end = line;
	out->lines_end = &line->next;
}

struct agent_event *agent_out_event(struct agent_out *out, enum agent_event_kind kind)
{
	struct agent_event *event = ARENA_NEW(out->arena, struct agent_event);

	event->kind = kind;
	event->usage = (struct agent_usage){.input = -1, .cached = -1, .output = -1, .reasoning = -1,
		.cost_usd = -1, .context_used = -1, .context_size = -1};
	*out->events_end = event;
	out->events_end = &event->next;
	return event;
}

const char *failure_class_name(enum failure_class class)
{
	static const char *const names[] = {"provider_error", "transport_error", "permission_error", "validation_error",
		"unknown"};

	return names[class];
}

static const struct failure_code_info codes[] = {
#define FAILURE_CODE(name, class, retryable) {#name, class, retryable},
#include "providers/failure_code.def"
#undef FAILURE_CODE
};

struct agent_failure agent_failure_of(enum provider_failure_code code, struct str message)
{
	return (struct agent_failure){.class = codes[code].class,
		.code = str_of(codes[code].name),
		.message = message,
		.is_retryable = codes[code].is_retryable};
}

struct cap_row {
	const char *group;
	const char *name;
	size_t offset;
	bool is_quality;
};

static const struct cap_row cap_rows[] = {
#define CAP_FLAG(group, name) {#group, #name, offsetof(struct agent_caps, name), false},
#define CAP_QUALITY(group, name) {#group, #name, offsetof(struct agent_caps, name), true},
#include "providers/capability.def"
#undef CAP_FLAG
#undef CAP_QUALITY
};

static const char *const quality_names[] = {"none", "weak", "strong"};

void agent_caps_write(const struct agent_caps *caps, struct json_writer *w)
{
	const char *group = NULL;

	jw_object_begin(w);
	for (size_t i = 0; i < sizeof(cap_rows) / sizeof(cap_rows[0]); i++) {
		const struct cap_row *row = &cap_rows[i];
		const char *at = (const char *)caps + row->offset;

		if (group == NULL || strcmp(group, row->group) != 0) {
			if (group != NULL)
				jw_object_end(w);
			group = row->group;
			jw_kobject(w, group);
		}
		if (row->is_quality)
			jw_ktext(w, row->name, quality_names[*(const enum agent_quality *)(const void *)at]);
		else
			jw_kbool(w, row->name, *(const bool *)(const void *)at);
	}
	jw_object_end(w);
	jw_kint(w, "maxRecommendedHandoffChars", caps->max_handoff_chars);
	jw_object_end(w);
}

static enum agent_quality quality_of(struct str name)
{
	for (size_t i = 0; i < sizeof(quality_names) / sizeof(quality_names[0]); i++)
		if (str_eq(name, str_of(quality_names[i])))
			return (enum agent_quality)i;
	return QUALITY_NONE;
}

int agent_caps_read(struct agent_caps *out, const json_t *stored, struct failure *f)
{
	struct agent_caps caps = {0};

	if (!json_is_object(stored))
		return fail(f, FAIL_INTERNAL, "The stored capabilities of a session are no object.");
	for (size_t i = 0; i < sizeof(cap_rows) / sizeof(cap_rows[0]); i++) {
		const struct cap_row *row = &cap_rows[i];
		const json_t *value = json_object_get(json_object_get(stored, row->group), row->name);
		char *at = (char *)&caps + row->offset;

		if (row->is_quality)
			*(enum agent_quality *)(void *)at = quality_of(json_str(value));
		else
			*(bool *)(void *)at = json_is_true(value);
	}
	caps.max_handoff_chars = json_integer_value(json_object_get(stored, "maxRecommendedHandoffChars"));
	*out = caps;
	return 0;
}
