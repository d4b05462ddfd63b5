/* What a view shows as lists: types, traits, resources, in the order of the documents. */
#include "rules/document.h"

/* In legacy mode a project with a default schema never falls through to the global types. */
static bool sees_global_types(const struct rules_view *view)
{
	enum resolution mode = rules_resolution(view);

	if (view->global == NULL || mode == RESOLUTION_ISOLATED)
		return false;
	return mode == RESOLUTION_LAYERED || view->project == NULL || find_type(view->project, STR("default")) == NULL;
}

static bool sees_global_traits(const struct rules_view *view)
{
	return view->global != NULL && rules_resolution(view) != RESOLUTION_ISOLATED;
}

static size_t types_of(const struct rules_doc *doc)
{
	return doc == NULL ? 0 : doc->type_index.count;
}

size_t rules_types(const struct rules_view *view, struct arena *arena, struct rules_type_row **out)
{
	size_t below = sees_global_types(view) ? types_of(view->global) : 0;
	struct rules_type_row *rows = ARENA_ARRAY(arena, struct rules_type_row, types_of(view->project) + below);
	size_t count = 0;

	for (size_t i = 0; i < types_of(view->project); i++)
		rows[count++] = (struct rules_type_row){view->project->types[i].name, RULES_PROJECT};
	for (size_t i = 0; i < below; i++) {
		struct str name = view->global->types[i].name;

		if (view->project == NULL || find_type(view->project, name) == NULL)
			rows[count++] = (struct rules_type_row){name, RULES_GLOBAL};
	}
	*out = rows;
	return count;
}

size_t rules_traits(const struct rules_view *view, struct arena *arena, struct rules_type_row **out)
{
	size_t above = view->project == NULL ? 0 : view->project->trait_index.count;
	size_t below = sees_global_traits(view) ? view->global->trait_index.count : 0;
	struct rules_type_row *rows = ARENA_ARRAY(arena, struct rules_type_row, above + below);
	size_t count = 0;

	for (size_t i = 0; i < above; i++)
		rows[count++] = (struct rules_type_row){view->project->traits[i].name, RULES_PROJECT};
	for (size_t i = 0; i < below; i++) {
		struct str name = view->global->traits[i].name;

		if (view->project == NULL || find_trait(view->project, name) == NULL)
			rows[count++] = (struct rules_type_row){name, RULES_GLOBAL};
	}
	*out = rows;
	return count;
}

size_t rules_types_with_trait(const struct rules_view *view, struct str trait, struct arena *arena, struct str **out)
{
	struct rules_type_row *rows;
	size_t count = rules_types(view, arena, &rows);
	struct str *names = ARENA_ARRAY(arena, struct str, count);
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		const struct rules_doc *doc = rows[i].source == RULES_PROJECT ? view->project : view->global;

		if (name_list_has(&find_type(doc, rows[i].name)->default_traits, trait))
			names[found++] = rows[i].name;
	}
	*out = names;
	return found;
}

static size_t add_registry(const struct rules_doc *doc, const struct rules_doc *above, enum rules_source source,
	struct rules_registry_row *rows)
{
	size_t count = 0;

	for (size_t i = 0; doc != NULL && i < doc->registry_index.count; i++) {
		const struct registry_entry *entry = &doc->registry[i];

		if (above == NULL || find_registry(above, entry->name) == NULL)
			rows[count++] = (struct rules_registry_row){entry->name, entry->description, entry->ttl_seconds, source};
	}
	return count;
}

/* The other way round than types: the global entry wins, in every mode. */
size_t rules_registry(const struct rules_view *view, struct arena *arena, struct rules_registry_row **out)
{
	size_t max = (view->project == NULL ? 0 : view->project->registry_index.count) +
		(view->global == NULL ? 0 : view->global->registry_index.count);
	struct rules_registry_row *rows = ARENA_ARRAY(arena, struct rules_registry_row, max);
	size_t count = add_registry(view->global, NULL, RULES_GLOBAL, rows);

	count += add_registry(view->project, view->global, RULES_PROJECT, rows + count);
	*out = rows;
	return count;
}
