/* The effective schema of an item. This runs in every transition: lists are short and compared as they
 * are, and only long ones (a limit of base/limits.def allows them) get a hash table. */
#include "rules/document.h"

#include <assert.h>
#include <stdlib.h>

#define DEFAULT_TTL_SECONDS 3600

/* ---- names of a growing array whose elements begin with their name ---- */

struct names {
	const char *items;
	size_t stride;
	size_t count;
	uint32_t *slots; /* NULL while few: number of the element + 1, 0 free */
	size_t mask;
};

static_assert(offsetof(struct rules_note, key) == 0, "a note begins with its name");
static_assert(offsetof(struct rules_seat, name) == 0, "a seat begins with its name");

static void names_init(struct names *names, struct arena *arena, const void *items, size_t stride, size_t max)
{
	size_t slots = 64;

	*names = (struct names){.items = items, .stride = stride};
	if (max <= 32)
		return;
	while (slots < 2 * max)
		slots *= 2;
	names->slots = ARENA_ARRAY(arena, uint32_t, slots);
	names->mask = slots - 1;
}

static const struct str *name_at(const struct names *names, size_t i)
{
	return (const struct str *)(const void *)(names->items + i * names->stride);
}

static size_t hash(struct str name) /* FNV-1a */
{
	uint64_t h = 14695981039346656037U;

	for (size_t i = 0; i < name.n; i++)
		h = (h ^ (unsigned char)name.p[i]) * 1099511628211U;
	return (size_t)(h ^ (h >> 32));
}

static size_t slot_of(const struct names *names, struct str name)
{
	size_t at = hash(name) & names->mask;

	while (names->slots[at] != 0 && !str_eq(*name_at(names, names->slots[at] - 1), name))
		at = (at + 1) & names->mask;
	return at;
}

/* Number of the element, or `count`. */
static size_t names_find(const struct names *names, struct str name)
{
	size_t at;

	if (names->slots != NULL) {
		at = slot_of(names, name);
		return names->slots[at] == 0 ? names->count : names->slots[at] - 1;
	}
	for (at = 0; at < names->count && !str_eq(*name_at(names, at), name);)
		at++;
	return at;
}

/* The element behind the last one has been written. */
static void names_added(struct names *names)
{
	if (names->slots != NULL)
		names->slots[slot_of(names, *name_at(names, names->count))] = (uint32_t)names->count + 1;
	names->count++;
}

/* ---- base ---- */

static const struct schema_entry *match_type(const struct rules_doc *doc, struct str type)
{
	if (doc == NULL || type.p == NULL || str_eq(type, STR("default")))
		return NULL;
	return find_type(doc, type);
}

static const struct schema_entry *match_tag(const struct rules_doc *doc, const struct str *tags, size_t count)
{
	for (size_t i = 0; doc != NULL && i < count; i++) {
		const struct schema_entry *found = match_type(doc, tags[i]);

		if (found == NULL && !str_eq(tags[i], STR("default")))
			found = find_tag(doc, tags[i]);
		if (found != NULL)
			return found;
	}
	return NULL;
}

static const struct schema_entry *match_default(const struct rules_doc *doc)
{
	return doc == NULL ? NULL : find_type(doc, STR("default"));
}

enum step { BY_TYPE, BY_TAG, BY_DEFAULT };

struct try {
	enum step step;
	bool is_global;
};

static const struct try legacy[] = {
	{BY_TYPE, false}, {BY_TAG, false}, {BY_DEFAULT, false}, {BY_TYPE, true}, {BY_TAG, true}, {BY_DEFAULT, true},
};
static const struct try layered[] = {
	{BY_TYPE, false}, {BY_TYPE, true}, {BY_TAG, false}, {BY_TAG, true}, {BY_DEFAULT, false}, {BY_DEFAULT, true},
};
static const struct {
	const struct try *tries;
	size_t count;
} orders[] = {
	[RESOLUTION_LEGACY] = {legacy, 6},
	[RESOLUTION_LAYERED] = {layered, 6},
	[RESOLUTION_ISOLATED] = {legacy, 3},
};

static const struct schema_entry *find_base(const struct rules_view *view, struct str type, const struct str *tags,
	size_t tag_count, enum rules_source *source)
{
	enum resolution mode = rules_resolution(view);

	for (size_t i = 0; i < orders[mode].count; i++) {
		const struct try *one = &orders[mode].tries[i];
		const struct rules_doc *doc = one->is_global ? view->global : view->project;
		const struct schema_entry *found = one->step == BY_TYPE ? match_type(doc, type)
			: one->step == BY_TAG				? match_tag(doc, tags, tag_count)
									: match_default(doc);

		if (found != NULL) {
			*source = one->is_global ? RULES_GLOBAL : RULES_PROJECT;
			return found;
		}
	}
	*source = RULES_NONE;
	return NULL;
}

/* ---- traits ---- */

/* A trait as the two layers give it: each facet from one of them. */
struct applied {
	struct str name;
	const struct trait_entry *shape; /* notes and seats */
	const struct trait_entry *dispatch;
	const struct trait_entry *resources;
};

struct merge {
	struct arena *arena;
	const struct rules_view *view;
	const struct rules_doc *traits_below; /* the global document unless isolated */
	const struct schema_entry *base;      /* NULL: schema-free */
	struct applied *applied;
	size_t count;
	struct schema *out;
};

static bool find_applied(const struct merge *m, struct str name, struct applied *out)
{
	const struct trait_entry *project = m->view->project == NULL ? NULL : find_trait(m->view->project, name);
	const struct trait_entry *global = m->traits_below == NULL ? NULL : find_trait(m->traits_below, name);

	if (project == NULL && global == NULL)
		return false;
	out->name = project != NULL ? project->name : global->name;
	out->shape = project != NULL ? project : global;
	out->dispatch = project != NULL && (project->has_dispatch || global == NULL) ? project : global;
	out->resources = project != NULL && (project->resource_count > 0 || global == NULL) ? project : global;
	return true;
}

static bool is_applied(const struct merge *m, struct str name)
{
	for (size_t i = 0; i < m->count; i++)
		if (str_eq(m->applied[i].name, name))
			return true;
	return false;
}

static void apply_traits(struct merge *m, const struct str *traits, size_t trait_count)
{
	size_t defaults = m->base == NULL ? 0 : m->base->default_traits.count;
	struct schema *out = m->out;
	struct str *unknown, *names;

	if (defaults + trait_count == 0)
		return;
	m->applied = ARENA_ARRAY(m->arena, struct applied, defaults + trait_count);
	for (size_t i = 0; i < defaults; i++)
		if (find_applied(m, m->base->default_traits.names[i], &m->applied[m->count]))
			m->count++;
	unknown = ARENA_ARRAY(m->arena, struct str, trait_count);
	for (size_t i = 0; i < trait_count; i++) {
		if (is_applied(m, traits[i]))
			continue;
		if (find_applied(m, traits[i], &m->applied[m->count]))
			m->count++;
		else
			unknown[out->unknown_trait_count++] = traits[i];
	}
	out->unknown_traits = unknown;
	names = ARENA_ARRAY(m->arena, struct str, m->count);
	for (size_t i = 0; i < m->count; i++)
		names[i] = m->applied[i].name;
	out->traits = names;
	out->trait_count = m->count;
}

/* ---- seats and notes ---- */

static size_t count_seats(const struct merge *m)
{
	size_t count = m->base->seats.count;

	for (size_t i = 0; i < m->count; i++)
		count += m->applied[i].shape->seats.count;
	return count;
}

static void demote(struct merge *m, struct rules_seat *seat, struct str *demoted)
{
	seat->enters = false;
	demoted[m->out->demoted_seat_count++] = seat->name;
}

static void merge_seats(struct merge *m, struct names *names)
{
	size_t max = count_seats(m);
	struct rules_seat *seats;
	struct str *demoted;
	bool entered[3] = {false, false, false};

	names_init(names, m->arena, NULL, sizeof(*seats), max);
	if (max == 0)
		return;
	seats = ARENA_ARRAY(m->arena, struct rules_seat, max);
	demoted = ARENA_ARRAY(m->arena, struct str, max);
	names->items = (const char *)seats;
	for (size_t i = 0; i <= m->count; i++) {
		const struct seat_list *list = i == 0 ? &m->base->seats : &m->applied[i - 1].shape->seats;

		for (size_t k = 0; k < list->count; k++) {
			struct rules_seat *seat = &seats[names->count];

			if (names_find(names, list->seats[k].name) < names->count)
				continue;
			*seat = list->seats[k];
			if (seat->enters && entered[seat->phase])
				demote(m, seat, demoted);
			entered[seat->phase] |= seat->enters;
			names_added(names);
		}
	}
	m->out->seats = seats;
	m->out->seat_count = names->count;
	m->out->demoted_seats = demoted;
}

static size_t count_notes(const struct merge *m)
{
	size_t count = m->base->notes.count;

	for (size_t i = 0; i < m->count; i++)
		count += m->applied[i].shape->notes.count;
	return count;
}

static void settle_owner(struct rules_note *note, const struct schema *out, const struct names *seats)
{
	size_t at;

	if (note->seat.p == NULL)
		return;
	at = names_find(seats, note->seat);
	if (at == seats->count || out->seats[at].phase != note->role)
		note->seat = STR_NONE;
}

static void merge_notes(struct merge *m, const struct names *seats)
{
	size_t max = count_notes(m);
	struct rules_note *notes;
	struct names names;

	if (max == 0)
		return;
	notes = ARENA_ARRAY(m->arena, struct rules_note, max);
	names_init(&names, m->arena, notes, sizeof(*notes), max);
	for (size_t i = 0; i <= m->count; i++) {
		const struct note_list *list = i == 0 ? &m->base->notes : &m->applied[i - 1].shape->notes;

		for (size_t k = 0; k < list->count; k++) {
			struct rules_note *note = &notes[names.count];

			/* Keys of one list differ: the base needs no look. */
			if (i > 0 && names_find(&names, list->notes[k].key) < names.count)
				continue;
			*note = list->notes[k];
			settle_owner(note, m->out, seats);
			m->out->has_review |= note->role == ROLE_REVIEW;
			names_added(&names);
		}
	}
	m->out->notes = notes;
	m->out->note_count = names.count;
}

/* ---- resources ---- */

struct need {
	const struct requirement *of;
	size_t order;
};

static int by_key(const void *left, const void *right)
{
	const struct need *a = left, *b = right;
	int order = str_cmp(a->of->key, b->of->key);

	return order != 0 ? order : a->order < b->order ? -1 : a->order > b->order;
}

/* The global registry wins: a resource is a lock that the whole server shares. */
static const struct registry_entry *describe(const struct rules_view *view, struct str key)
{
	const struct registry_entry *found = view->global == NULL ? NULL : find_registry(view->global, key);

	if (found == NULL && view->project != NULL)
		found = find_registry(view->project, key);
	return found;
}

static void add_need(struct merge *m, struct rules_resource *resources, const struct requirement *need)
{
	struct rules_resource *last = m->out->resource_count == 0 ? NULL : &resources[m->out->resource_count - 1];

	if (last == NULL || !str_eq(last->key, need->key)) {
		last = &resources[m->out->resource_count++];
		last->key = need->key;
	}
	last->is_exclusive |= need->is_exclusive;
	if (last->ttl_seconds == 0)
		last->ttl_seconds = need->ttl_seconds;
}

static void merge_resources(struct merge *m)
{
	struct rules_resource *resources;
	struct need *needs;
	size_t count = 0;

	for (size_t i = 0; i < m->count; i++)
		count += m->applied[i].resources->resource_count;
	if (count == 0)
		return;
	needs = ARENA_ARRAY(m->arena, struct need, count);
	resources = ARENA_ARRAY(m->arena, struct rules_resource, count);
	count = 0;
	for (size_t i = 0; i < m->count; i++)
		for (size_t k = 0; k < m->applied[i].resources->resource_count; k++, count++)
			needs[count] = (struct need){&m->applied[i].resources->resources[k], count};
	qsort(needs, count, sizeof(needs[0]), by_key);
	for (size_t i = 0; i < count; i++)
		add_need(m, resources, needs[i].of);
	m->out->resources = resources;
	for (size_t i = 0; i < m->out->resource_count; i++) {
		const struct registry_entry *entry = describe(m->view, resources[i].key);

		resources[i].is_declared = entry != NULL;
		if (resources[i].ttl_seconds == 0)
			resources[i].ttl_seconds = entry != NULL ? entry->ttl_seconds : DEFAULT_TTL_SECONDS;
	}
}

/* ---- dispatch ---- */

/* The item's traits first, as it names them, then the default traits. */
static size_t order_dispatch(const struct merge *m, const struct str *traits, size_t trait_count,
	const struct trait_entry **order)
{
	size_t count = 0;
	bool *taken = ARENA_ARRAY(m->arena, bool, m->count);

	for (size_t i = 0; i < trait_count + m->count; i++) {
		size_t at = i < trait_count ? 0 : i - trait_count;

		while (i < trait_count && at < m->count && !str_eq(m->applied[at].name, traits[i]))
			at++;
		if (at == m->count || taken[at])
			continue;
		taken[at] = true;
		if (m->applied[at].dispatch->has_dispatch)
			order[count++] = m->applied[at].dispatch;
	}
	return count;
}

static const struct seat_override *find_override(const struct trait_entry *const *order, size_t count, enum role phase,
	struct str seat)
{
	for (size_t i = 0; i < count; i++) {
		const struct phase_dispatch *dispatch = &order[i]->dispatch[phase];

		for (size_t k = 0; k < dispatch->override_count; k++)
			if (str_eq(dispatch->overrides[k].seat, seat))
				return &dispatch->overrides[k];
	}
	return NULL;
}

static struct str overlay(const struct override *field, struct str below)
{
	return field->is_given ? field->value : below;
}

static void dispatch_seats(struct merge *m, const struct trait_entry *const *order, size_t count, enum role phase)
{
	struct rules_phase_dispatch *out = &m->out->dispatch[phase];
	struct rules_seat_dispatch *seats = ARENA_ARRAY(m->arena, struct rules_seat_dispatch, m->out->seat_count);

	for (size_t i = 0; i < m->out->seat_count; i++) {
		const struct rules_seat *seat = &m->out->seats[i];
		const struct seat_override *over = find_override(order, count, phase, seat->name);
		struct rules_dispatch profile = out->profile;

		if (over != NULL) {
			profile.agent = overlay(&over->agent, profile.agent);
			profile.model = overlay(&over->model, profile.model);
			profile.effort = overlay(&over->effort, profile.effort);
		} else if (!out->is_set || seat->phase != phase) {
			continue;
		}
		seats[out->seat_count++] = (struct rules_seat_dispatch){seat->name, profile};
	}
	out->seats = seats;
}

static void merge_dispatch(struct merge *m, const struct str *traits, size_t trait_count)
{
	const struct trait_entry **order;
	size_t count = 0;

	for (size_t i = 0; i < m->count; i++)
		count += m->applied[i].dispatch->has_dispatch;
	if (count == 0)
		return;
	order = ARENA_ARRAY(m->arena, const struct trait_entry *, m->count);
	count = order_dispatch(m, traits, trait_count, order);
	for (int phase = ROLE_QUEUE; phase <= ROLE_REVIEW; phase++) {
		struct rules_phase_dispatch *out = &m->out->dispatch[phase];

		for (size_t i = 0; i < count && !out->is_set; i++)
			if (order[i]->dispatch[phase].has_profile) {
				out->is_set = true;
				out->profile = order[i]->dispatch[phase].profile;
			}
		if (m->out->seat_count > 0)
			dispatch_seats(m, order, count, (enum role)phase);
	}
}

/* ---- the whole ---- */

void rules_schema(const struct rules_view *view, struct str type, const struct str *tags, size_t tag_count,
	const struct str *traits, size_t trait_count, struct arena *arena, struct schema *out)
{
	struct merge m = {.arena = arena, .view = view, .out = out};
	struct names seats;

	*out = (struct schema){.lifecycle = LIFECYCLE_AUTO};
	m.base = find_base(view, type, tags, tag_count, &out->source);
	m.traits_below = rules_resolution(view) == RESOLUTION_ISOLATED ? NULL : view->global;
	if (m.base != NULL) {
		out->type = m.base->name;
		out->lifecycle = m.base->lifecycle;
	}
	apply_traits(&m, traits, trait_count);
	if (m.base != NULL) {
		merge_seats(&m, &seats);
		merge_notes(&m, &seats);
	}
	merge_resources(&m);
	merge_dispatch(&m, traits, trait_count);
}

const struct rules_note *schema_note(const struct schema *schema, struct str key)
{
	for (size_t i = 0; i < schema->note_count; i++)
		if (str_eq(schema->notes[i].key, key))
			return &schema->notes[i];
	return NULL;
}

const struct rules_seat *schema_seat(const struct schema *schema, struct str name)
{
	for (size_t i = 0; i < schema->seat_count; i++)
		if (str_eq(schema->seats[i].name, name))
			return &schema->seats[i];
	return NULL;
}
