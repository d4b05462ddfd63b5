/* Dispatch profiles of a trait: which agent, model and effort a phase or a seat of it asks for. */
#include "rules/document.h"

static const char *const profile_keys[] = {"agent", "model", "effort", "seats", NULL};
static const char *const override_keys[] = {"agent", "model", "effort", NULL};
static const char *const efforts[] = {"low", "medium", "high", "xhigh", "max", NULL};

static bool is_effort(struct str text)
{
	return is_one_of(text, efforts);
}

static struct str read_field(struct reading *r, const struct path *path, const struct yaml *map, const char *key)
{
	const struct yaml *node = yaml_get(map, str_of(key));
	struct str text;

	if (node == NULL || yaml_is_null(node))
		return STR_NONE;
	text = node->kind == YAML_TEXT ? node->text : STR_NONE;
	if (text.p == NULL || str_is_blank(text)) {
		remark(r, "dispatch_invalid", PATH_KEY(path, str_of(key)), node->at, "expected text; dropped");
		return STR_NONE;
	}
	if (strcmp(key, "effort") == 0 && !is_effort(text)) {
		remark(r, "dispatch_invalid", PATH_KEY(path, str_of(key)), node->at,
			"the effort is low, medium, high, xhigh or max, in small letters; dropped");
		return STR_NONE;
	}
	return str_dup(r->doc->arena, text);
}

/* Null clears; a blank text does not, it is dropped like any other nonsense. */
static struct override read_override(struct reading *r, const struct path *path, const struct yaml *map, const char *key)
{
	const struct yaml *node = yaml_get(map, str_of(key));
	struct override out = {false, STR_NONE};

	if (node == NULL)
		return out;
	if (yaml_is_null(node)) {
		out.is_given = true;
	} else if (node->kind != YAML_TEXT || str_is_blank(node->text)) {
		remark(r, "W6", PATH_KEY(path, str_of(key)), node->at, "expected text or null; dropped");
	} else if (strcmp(key, "effort") == 0 && !is_effort(node->text)) {
		remark(r, "W6", PATH_KEY(path, str_of(key)), node->at,
			"the effort is low, medium, high, xhigh or max, in small letters; dropped");
	} else {
		out.is_given = true;
		out.value = str_dup(r->doc->arena, node->text);
	}
	return out;
}

static bool read_seat_override(struct reading *r, const struct path *path, const struct yaml_entry *entry,
	struct seat_override *out)
{
	const struct yaml *map = entry->value;

	if (map->kind != YAML_MAP) {
		remark(r, "W6", path, entry->at, "expected a mapping, found %s; dropped", yaml_kind_name(map));
		return false;
	}
	for (size_t i = 0; i < map->count; i++)
		if (!is_one_of(map->entries[i].key, override_keys))
			remark(r, "W6", PATH_KEY(path, map->entries[i].key), map->entries[i].at,
				"unknown key, ignored%s", near_name(r, map->entries[i].key, override_keys));
	out->agent = read_override(r, path, map, "agent");
	out->model = read_override(r, path, map, "model");
	out->effort = read_override(r, path, map, "effort");
	if (!out->agent.is_given && !out->model.is_given && !out->effort.is_given) {
		remark(r, "W6", path, entry->at, "nothing is left of this seat's profile; dropped");
		return false;
	}
	out->seat = str_dup(r->doc->arena, entry->key);
	return true;
}

static void read_seat_overrides(struct reading *r, const struct path *path, const struct yaml *node,
	struct phase_dispatch *phase)
{
	struct seat_override *overrides;

	if (node == NULL || yaml_is_null(node))
		return;
	if (node->kind != YAML_MAP) {
		remark(r, "W6", path, node->at, "expected a mapping of seats, found %s; dropped", yaml_kind_name(node));
		return;
	}
	overrides = ARENA_ARRAY(r->doc->arena, struct seat_override, node->count);
	for (size_t i = 0; i < node->count; i++) {
		struct seat_override one = {0};

		if (read_seat_override(r, PATH_KEY(path, node->entries[i].key), &node->entries[i], &one))
			overrides[phase->override_count++] = one;
	}
	phase->overrides = overrides;
}

static void read_phase(struct reading *r, const struct path *path, const struct yaml *node, struct trait_entry *trait,
	enum role role)
{
	const struct yaml *map = want_map(r, path, node);
	struct phase_dispatch *phase = &trait->dispatch[role];

	for (size_t i = 0; map != NULL && i < map->count; i++)
		if (!is_one_of(map->entries[i].key, profile_keys))
			remark(r, "W3", PATH_KEY(path, map->entries[i].key), map->entries[i].at,
				"unknown key of a dispatch profile, ignored%s",
				near_name(r, map->entries[i].key, profile_keys));
	phase->profile.agent = read_field(r, path, map, "agent");
	phase->profile.model = read_field(r, path, map, "model");
	phase->profile.effort = read_field(r, path, map, "effort");
	phase->has_profile =
		phase->profile.agent.p != NULL || phase->profile.model.p != NULL || phase->profile.effort.p != NULL;
	read_seat_overrides(r, PATH_KEY(path, STR("seats")), yaml_get(map, STR("seats")), phase);
	if (phase->has_profile || phase->override_count > 0)
		trait->has_dispatch = true;
	else
		remark(r, "dispatch_empty", path, node->at, "a profile needs agent, model, effort or seats; dropped");
}

void read_dispatch(struct reading *r, const struct path *path, const struct yaml *node, struct trait_entry *trait)
{
	const struct yaml *map = want_map(r, path, node);

	for (size_t i = 0; map != NULL && i < map->count; i++) {
		const struct yaml_entry *entry = &map->entries[i];
		enum role role;

		if (phase_parse(entry->key, &role))
			read_phase(r, PATH_KEY(path, entry->key), entry->value, trait, role);
		else
			remark(r, "W3", PATH_KEY(path, entry->key), entry->at,
				"a phase is queue, work or review; ignored%s", near_name(r, entry->key, phase_words));
	}
}
