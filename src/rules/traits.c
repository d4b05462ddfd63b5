/* Traits with their resources, and the registry that describes resources. */
#include "rules/document.h"

#include "base/limits.h"

#include <stdlib.h>

static const char *const trait_keys[] = {"notes", "seats", "resources", "dispatch", NULL};
static const char *const requirement_keys[] = {"key", "mode", "ttlSeconds", "budgetLimit", "budgetWindowSeconds", NULL};
static const char *const registry_keys[] = {
	"description", "defaultTtlSeconds", "maxHolders", "budgetLimit", "budgetWindowSeconds", NULL,
};

static void check_resource_keys(struct reading *r, const struct path *path, const struct yaml *node,
	const char *const *known)
{
	for (size_t i = 0; i < node->count; i++) {
		const struct yaml_entry *entry = &node->entries[i];

		if (str_starts(entry->key, STR("budget")) && is_one_of(entry->key, known))
			remark(r, "resource_reserved", PATH_KEY(path, entry->key), entry->at,
				"reserved for later; it has no effect");
		else if (!is_one_of(entry->key, known))
			remark(r, "W3", PATH_KEY(path, entry->key), entry->at, "unknown key of a resource, ignored%s",
				near_name(r, entry->key, known));
	}
}

static bool is_valid_key(struct reading *r, const struct path *path, struct yaml_place at, struct str key)
{
	if (rules_is_resource_key(key))
		return true;
	remark(r, "resource_invalid", path, at,
		"a resource key begins with a-z or 0-9, goes on with these and - _ . / and has at most %d "
		"characters; skipped", LIMIT_RESOURCE_KEY_CHARS);
	return false;
}

/* What is not plainly advisory locks. */
static bool read_mode(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *mode = yaml_get(node, STR("mode"));

	if (mode == NULL || yaml_is_null(mode) || str_eq(mode->text, STR("exclusive")))
		return true;
	if (str_eq(mode->text, STR("advisory")))
		return false;
	remark(r, "resource_invalid", PATH_KEY(path, STR("mode")), mode->at,
		"the mode is exclusive or advisory; taken as exclusive");
	return true;
}

static bool read_requirement(struct reading *r, const struct path *path, const struct yaml *node,
	struct requirement *out)
{
	const struct yaml *key = node->kind == YAML_MAP ? yaml_get(node, STR("key")) : node;

	if (key == NULL || key->kind != YAML_TEXT) {
		remark(r, "resource_invalid", path, node->at, "a resource is a key, or a mapping with key; skipped");
		return false;
	}
	if (!is_valid_key(r, path, key->at, key->text))
		return false;
	*out = (struct requirement){.key = str_dup(r->doc->arena, key->text), .is_exclusive = true};
	if (node->kind != YAML_MAP)
		return true;
	check_resource_keys(r, path, node, requirement_keys);
	out->is_exclusive = read_mode(r, path, node);
	out->ttl_seconds = read_int(r, path, node, "ttlSeconds", 1, LIMIT_CLAIM_TTL_SECONDS, 0);
	return true;
}

/* The same key twice in one list meets as two traits would: exclusive wins, the first ttl stays. */
static void add_requirement(struct requirement *list, size_t *count, const struct requirement *one)
{
	for (size_t i = 0; i < *count; i++)
		if (str_eq(list[i].key, one->key)) {
			list[i].is_exclusive |= one->is_exclusive;
			if (list[i].ttl_seconds == 0)
				list[i].ttl_seconds = one->ttl_seconds;
			return;
		}
	list[(*count)++] = *one;
}

static void read_requirements(struct reading *r, const struct path *path, const struct yaml *node,
	struct trait_entry *trait)
{
	const struct yaml *list = want_list(r, path, node, LIMIT_TRAIT_RESOURCES);
	struct requirement *resources;

	if (list == NULL || list->count == 0)
		return;
	resources = ARENA_ARRAY(r->doc->arena, struct requirement, list->count);
	for (size_t i = 0; i < list->count; i++) {
		struct requirement one;

		if (read_requirement(r, PATH_ITEM(path, i), list->entries[i].value, &one))
			add_requirement(resources, &trait->resource_count, &one);
	}
	trait->resources = resources;
}

static void read_trait(struct reading *r, const struct path *path, const struct yaml *node, struct trait_entry *trait)
{
	const struct yaml *map = want_map(r, path, node);

	if (map == NULL)
		return;
	for (size_t i = 0; i < map->count; i++)
		if (!is_one_of(map->entries[i].key, trait_keys))
			remark(r, "W3", PATH_KEY(path, map->entries[i].key), map->entries[i].at,
				"unknown key of a trait, ignored%s", near_name(r, map->entries[i].key, trait_keys));
	trait->notes = read_notes(r, PATH_KEY(path, STR("notes")), yaml_get(map, STR("notes")), trait->name);
	trait->seats = read_seats(r, PATH_KEY(path, STR("seats")), yaml_get(map, STR("seats")));
	read_requirements(r, PATH_KEY(path, STR("resources")), yaml_get(map, STR("resources")), trait);
	read_dispatch(r, PATH_KEY(path, STR("dispatch")), yaml_get(map, STR("dispatch")), trait);
}

void read_traits(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *map = want_map(r, path, node);

	if (map == NULL || map->count == 0)
		return;
	r->doc->traits = ARENA_ARRAY(r->doc->arena, struct trait_entry, map->count);
	r->doc->trait_index.count = map->count;
	for (size_t i = 0; i < map->count; i++) {
		r->doc->traits[i].name = str_dup(r->doc->arena, map->entries[i].key);
		read_trait(r, PATH_KEY(path, map->entries[i].key), map->entries[i].value, &r->doc->traits[i]);
	}
}

/* ---- registry ---- */

/* false: the entry is dropped. */
static bool check_holders(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *holders = yaml_get(node, STR("maxHolders"));
	const struct path *at = PATH_KEY(path, STR("maxHolders"));
	int64_t value;

	if (holders == NULL || yaml_is_null(holders))
		return true;
	if (!yaml_int(holders, &value)) {
		remark(r, "resource_invalid", at, holders->at, "expected a whole number; taken as 1");
		return true;
	}
	if (value > 1) {
		remark(r, "resource_invalid", at, holders->at, "maxHolders > 1 not yet supported; the entry is dropped");
		return false;
	}
	if (value < 1)
		remark(r, "resource_invalid", at, holders->at, "%lld is below 1; taken as 1", (long long)value);
	return true;
}

static bool read_entry(struct reading *r, const struct path *path, const struct yaml_entry *entry,
	struct registry_entry *out)
{
	const struct yaml *map = want_map(r, path, entry->value);
	static const struct yaml nothing = {.kind = YAML_MAP};

	if (!is_valid_key(r, path, entry->at, entry->key))
		return false;
	if (map == NULL)
		map = &nothing;
	check_resource_keys(r, path, map, registry_keys);
	if (!check_holders(r, path, map))
		return false;
	out->name = str_dup(r->doc->arena, entry->key);
	out->description = read_text(r, path, map, "description");
	if (out->description.p == NULL)
		out->description = STR("");
	out->ttl_seconds = read_int(r, path, map, "defaultTtlSeconds", 1, LIMIT_CLAIM_TTL_SECONDS, 3600);
	return true;
}

void read_registry(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *map = want_map(r, path, node);
	struct rules_doc *doc = r->doc;

	if (map == NULL || map->count == 0)
		return;
	doc->registry = ARENA_ARRAY(doc->arena, struct registry_entry, map->count);
	for (size_t i = 0; i < map->count; i++)
		if (read_entry(r, PATH_KEY(path, map->entries[i].key), &map->entries[i],
			    &doc->registry[doc->registry_index.count]))
			doc->registry_index.count++;
}

/* ---- references between sections ---- */

struct use {
	struct str key;
	size_t trait;
};

static int by_use(const void *left, const void *right)
{
	const struct use *a = left, *b = right;
	int order = str_cmp(a->key, b->key);

	return order != 0 ? order : a->trait < b->trait ? -1 : a->trait > b->trait;
}

/* Every use of a resource, those of one key together. */
static size_t collect_uses(struct reading *r, const struct rules_doc *doc, struct use **out)
{
	struct use *uses;
	size_t count = 0;

	for (size_t i = 0; i < doc->trait_index.count; i++)
		count += doc->traits[i].resource_count;
	uses = ARENA_ARRAY(r->scratch, struct use, count);
	*out = uses;
	for (size_t i = 0; i < doc->trait_index.count; i++)
		for (size_t k = 0; k < doc->traits[i].resource_count; k++)
			*uses++ = (struct use){doc->traits[i].resources[k].key, i};
	if (count > 1)
		qsort(*out, count, sizeof(**out), by_use);
	return count;
}

static size_t run_length(const struct use *uses, size_t count)
{
	size_t n = 1;

	while (n < count && str_eq(uses[0].key, uses[n].key))
		n++;
	return n;
}

#define NO_PLACE ((struct yaml_place){0, 0})
#define PATH_RESOURCES(trait) \
	PATH_KEY(PATH_KEY(PATH_KEY(NULL, STR("traits")), (trait)), STR("resources"))

void check_fanout(struct reading *r)
{
	struct use *uses;
	size_t count = collect_uses(r, r->doc, &uses);

	for (size_t i = 0, n; i < count; i += n) {
		n = run_length(&uses[i], count - i);
		if (n >= 3)
			remark(r, "resource_fanout", PATH_RESOURCES(r->doc->traits[uses[i].trait].name), NO_PLACE,
				"resource \"%.*s\" is used by %zu traits; all their items wait for each other",
				STRF(uses[i].key), n);
	}
}

static void check_undeclared(struct reading *r, const struct rules_doc *doc, const struct rules_doc *global)
{
	struct use *uses;
	size_t count = collect_uses(r, doc, &uses);

	for (size_t i = 0; i < count; i += run_length(&uses[i], count - i)) {
		if (find_registry(doc, uses[i].key) != NULL ||
			(global != NULL && find_registry(global, uses[i].key) != NULL))
			continue;
		remark(r, "resource_undeclared", PATH_RESOURCES(doc->traits[uses[i].trait].name), NO_PLACE,
			"resource \"%.*s\" has no entry under resources; it is enforced with defaults",
			STRF(uses[i].key));
	}
}

void check_layers(struct reading *r, const struct rules_doc *doc, const struct rules_doc *global)
{
	const struct path *types = PATH_KEY(NULL, STR("work_item_schemas"));

	for (size_t i = 0; i < doc->type_index.count; i++) {
		const struct schema_entry *schema = &doc->types[i];
		const struct path *at = PATH_KEY(PATH_KEY(types, schema->name), STR("default_traits"));

		for (size_t k = 0; k < schema->default_traits.count; k++) {
			struct str name = schema->default_traits.names[k];

			if (find_trait(doc, name) == NULL && (global == NULL || find_trait(global, name) == NULL))
				remark(r, "trait_undefined", PATH_ITEM(at, k), NO_PLACE,
					"trait \"%.*s\" is defined nowhere; it adds nothing",
					(int)utf8_offset(name, 80), name.p);
		}
	}
	check_undeclared(r, doc, global);
}
