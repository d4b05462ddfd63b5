/* items_read schema: the effective rules of an item or a type, with all their text. */
#include "work/items.h"

static void write_texts(struct json_writer *out, const char *key, const struct str *texts, size_t n)
{
	if (n == 0)
		return;
	jw_karray(out, key);
	for (size_t i = 0; i < n; i++)
		jw_str(out, texts[i]);
	jw_array_end(out);
}

static void write_notes(struct json_writer *out, const struct schema *schema)
{
	jw_karray(out, "notes");
	for (size_t i = 0; i < schema->note_count; i++) {
		const struct rules_note *note = &schema->notes[i];

		jw_object_begin(out);
		jw_kstr(out, "key", note->key);
		jw_ktext(out, "role", role_name(note->role));
		jw_kbool(out, "required", note->is_required);
		jw_kstr_opt(out, "description", note->description);
		jw_kstr_opt(out, "guidance", note->guidance);
		jw_kstr_opt(out, "skill", note->skill);
		jw_kint_opt(out, "maxLength", note->max_chars);
		jw_kstr_opt(out, "seat", note->seat);
		write_texts(out, "independentOf", note->independent_of, note->independent_count);
		jw_kstr_opt(out, "fromTrait", note->from_trait);
		jw_object_end(out);
	}
	jw_array_end(out);
}

static void write_seats(struct json_writer *out, const struct schema *schema)
{
	if (schema->seat_count == 0)
		return;
	jw_karray(out, "seats");
	for (size_t i = 0; i < schema->seat_count; i++) {
		const struct rules_seat *seat = &schema->seats[i];

		jw_object_begin(out);
		jw_kstr(out, "name", seat->name);
		jw_ktext(out, "phase", role_name(seat->phase));
		jw_kbool_opt(out, "enters", seat->enters);
		write_texts(out, "after", seat->after, seat->after_count);
		write_texts(out, "readsExclude", seat->reads_exclude, seat->reads_exclude_count);
		jw_object_end(out);
	}
	jw_array_end(out);
}

static void write_resources(struct json_writer *out, const struct schema *schema)
{
	if (schema->resource_count == 0)
		return;
	jw_karray(out, "resources");
	for (size_t i = 0; i < schema->resource_count; i++) {
		const struct rules_resource *resource = &schema->resources[i];

		jw_object_begin(out);
		jw_kstr(out, "key", resource->key);
		jw_ktext(out, "mode", resource->is_exclusive ? "exclusive" : "advisory");
		jw_kint(out, "ttlSeconds", resource->ttl_seconds);
		jw_object_end(out);
	}
	jw_array_end(out);
}

/* ---- dispatch ---- */

static void write_profile(struct json_writer *out, struct str key, const struct rules_dispatch *profile)
{
	jw_key_str(out, key);
	jw_object_begin(out);
	jw_kstr_opt(out, "agent", profile->agent);
	jw_kstr_opt(out, "model", profile->model);
	jw_kstr_opt(out, "effort", profile->effort);
	jw_object_end(out);
}

static bool has_profile(const struct rules_dispatch *profile)
{
	return profile->agent.n + profile->model.n + profile->effort.n > 0;
}

static void write_dispatch(struct json_writer *out, const struct schema *schema)
{
	bool is_open = false;

	for (enum role role = ROLE_QUEUE; role <= ROLE_REVIEW; role++) {
		const struct rules_phase_dispatch *phase = &schema->dispatch[role];

		if (!phase->is_set || !has_profile(&phase->profile))
			continue;
		if (!is_open)
			jw_kobject(out, "dispatch");
		is_open = true;
		write_profile(out, str_of(role_name(role)), &phase->profile);
	}
	if (is_open)
		jw_object_end(out);
}

static bool write_dispatch_by_seat(struct json_writer *out, const struct schema *schema)
{
	bool is_open = false;

	for (enum role role = ROLE_QUEUE; role <= ROLE_REVIEW; role++) {
		const struct rules_phase_dispatch *phase = &schema->dispatch[role];

		if (phase->seat_count == 0)
			continue;
		if (!is_open)
			jw_kobject(out, "dispatchBySeat");
		is_open = true;
		jw_kobject(out, role_name(role));
		for (size_t i = 0; i < phase->seat_count; i++)
			write_profile(out, phase->seats[i].seat, &phase->seats[i].profile);
		jw_object_end(out);
	}
	if (is_open)
		jw_object_end(out);
	return is_open;
}

/* ---- the rest ---- */

/* null says that a trigger clears the label, or keeps it where the item gets blocked. */
static void write_labels(struct json_writer *out, const struct rules_view *view)
{
	jw_kobject(out, "statusLabels");
	for (enum trigger trigger = TRIGGER_START; trigger < TRIGGER_COUNT; trigger++) {
		struct str label = rules_label(view, trigger);

		jw_key(out, trigger_name(trigger));
		if (label.n == 0)
			jw_null(out);
		else
			jw_str(out, label);
	}
	jw_object_end(out);
}

static void write_features(struct json_writer *out, const struct schema *schema, bool has_dispatch_by_seat)
{
	bool has_independence = false;

	for (size_t i = 0; i < schema->note_count; i++)
		has_independence = has_independence || schema->notes[i].independent_count > 0;
	jw_karray(out, "features");
	if (schema->seat_count > 0)
		jw_text(out, "seats");
	if (has_dispatch_by_seat)
		jw_text(out, "dispatchBySeat");
	if (has_independence)
		jw_text(out, "independent_of");
	jw_text(out, "rules");
	jw_array_end(out);
}

static void write_schema(struct json_writer *out, struct call *call, const struct rules_view *view,
	const struct schema *schema)
{
	if (schema->source != RULES_NONE)
		jw_kstr_opt(out, "type", schema->type);
	jw_ktext(out, "source", rules_source_name(schema->source));
	if (view->version > 0) {
		jw_kint(out, "configVersion", view->version);
		jw_kstr(out, "configFingerprint", view->fingerprint);
	}
	jw_ktext(out, "resolution", resolution_name(rules_resolution(view)));
	jw_ktext(out, "lifecycle", lifecycle_name(schema->lifecycle));
	write_notes(out, schema);
	jw_karray(out, "traits");
	for (size_t i = 0; i < schema->trait_count; i++)
		jw_str(out, schema->traits[i]);
	jw_array_end(out);
	write_seats(out, schema);
	write_resources(out, schema);
	write_dispatch(out, schema);
	write_features(out, schema, write_dispatch_by_seat(out, schema));
	if (view->version > 0)
		write_labels(out, view);
	if (view->is_degraded)
		warn(&call->warnings, "config_degraded", STR_NONE,
			"The stored rules cannot be read; an earlier reading is served.");
}

static void write_names(struct json_writer *out, struct snapshot *s, const struct rules_view *view)
{
	struct rules_type_row *rows;
	size_t n = rules_types(view, s->arena, &rows);

	jw_karray(out, "types");
	for (size_t i = 0; i < n; i++)
		jw_str(out, rows[i].name);
	jw_array_end(out);
	n = rules_traits(view, s->arena, &rows);
	jw_karray(out, "traits");
	for (size_t i = 0; i < n; i++)
		jw_str(out, rows[i].name);
	jw_array_end(out);
}

/* The project that is meant when none is named: the only one that the caller reaches, else the global layer. */
static int64_t default_root(const struct call *call)
{
	if (call->caller->seat.run_n != 0)
		return call->caller->seat.root_n;
	return call->caller->roots != NULL && call->caller->root_count == 1 ? call->caller->roots[0] : 0;
}

int items_schema(struct snapshot *s, struct call *call, const struct schema_args *in, struct json_writer *out,
	struct failure *f)
{
	const struct rules_view *view;
	struct schema schema;
	struct item item = {.root_n = default_root(call)};

	if (in->item.set && item_find(s, call, in->item.v, STR("itemId"), &item, f) != 0)
		return -1;
	if (in->root.set && item_find(s, call, in->root.v, STR("rootId"), &item, f) != 0)
		return -1;
	if (in->root.set && item.parent_n != 0)
		return fail_field(f, STR("rootId"), in->root.v, "is not a project root");
	if (call_view(s, call, item.root_n, &view, f) != 0)
		return -1;
	if (!in->item.set && !in->type.set) {
		write_names(out, s, view);
		return 0;
	}
	if (in->item.set) {
		if (item_schema(s, call, &item, &schema, f) != 0)
			return -1;
	} else {
		rules_schema(view, in->type.v, NULL, 0, NULL, 0, s->arena, &schema);
	}
	write_schema(out, call, view, &schema);
	return 0;
}
