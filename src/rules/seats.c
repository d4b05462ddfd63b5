/* Seats: reading them, and the checks of whole scopes. A scope is a trait's own list, or a schema's
 * seats together with those of its default traits in the same document. */
#include "rules/document.h"

#include "base/limits.h"

static const char *const seat_keys[] = {"name", "phase", "enters", "after", "reads_exclude", NULL};

#define NO_PLACE ((struct yaml_place){0, 0})

/* `enters: yes` was meant as a boolean and is refused as everywhere; other nonsense is W4. */
static bool read_enters(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *enters = yaml_get(node, STR("enters"));

	if (enters == NULL || yaml_looks_boolean(enters))
		return read_bool(r, path, node, "enters", false);
	if (!yaml_is_null(enters))
		remark(r, "W4", PATH_KEY(path, STR("enters")), enters->at,
			"enters is true or false, not %s; taken as false", yaml_kind_name(enters));
	return false;
}

static struct name_list read_seat_names(struct reading *r, const struct path *path, const struct yaml *node,
	const char *key, size_t max)
{
	const struct yaml *list = yaml_get(node, str_of(key));
	const struct path *at = PATH_KEY(path, str_of(key));

	if (list == NULL || yaml_is_null(list))
		return (struct name_list){NULL, 0};
	if (list->kind != YAML_LIST) {
		remark(r, "W4", at, list->at, "%s is a list, not %s; taken as empty", key, yaml_kind_name(list));
		return (struct name_list){NULL, 0};
	}
	return read_names(r, at, want_list(r, at, list, max), "W4");
}

static bool read_seat(struct reading *r, const struct path *path, const struct yaml *node, struct rules_seat *seat)
{
	const struct yaml *name = yaml_get(node, STR("name"));
	const struct yaml *phase = yaml_get(node, STR("phase"));
	struct name_list names;

	if (node->kind != YAML_MAP) {
		remark(r, "W4", path, node->at, "expected a mapping, found %s; skipped", yaml_kind_name(node));
		return false;
	}
	for (size_t i = 0; i < node->count; i++)
		if (!is_one_of(node->entries[i].key, seat_keys))
			remark(r, "W4", PATH_KEY(path, node->entries[i].key), node->entries[i].at,
				"unknown key of a seat, ignored%s", near_name(r, node->entries[i].key, seat_keys));
	if (name == NULL || name->kind != YAML_TEXT || yaml_is_null(name) || str_is_blank(name->text)) {
		remark(r, "W4", path, node->at, "a seat without name is skipped");
		return false;
	}
	if (phase == NULL || !phase_parse(phase->text, &seat->phase)) {
		remark(r, "W4", PATH_KEY(path, STR("phase")), phase == NULL ? node->at : phase->at,
			"the phase must be queue, work or review; seat \"%.*s\" is skipped",
			(int)utf8_offset(name->text, 80), name->text.p);
		return false;
	}
	seat->name = str_dup(r->doc->arena, name->text);
	seat->enters = read_enters(r, path, node);
	names = read_seat_names(r, path, node, "after", LIMIT_SCHEMA_SEATS);
	seat->after = names.names;
	seat->after_count = names.count;
	names = read_seat_names(r, path, node, "reads_exclude", LIMIT_SCHEMA_NOTES);
	seat->reads_exclude = names.names;
	seat->reads_exclude_count = names.count;
	return true;
}

struct seat_list read_seats(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *list = want_list(r, path, node, LIMIT_SCHEMA_SEATS);
	struct seat_list out = {NULL, 0};
	struct rules_seat *seats;

	if (list == NULL || list->count == 0)
		return out;
	seats = ARENA_ARRAY(r->doc->arena, struct rules_seat, list->count);
	out.seats = seats;
	for (size_t i = 0; i < list->count; i++)
		if (read_seat(r, PATH_ITEM(path, i), list->entries[i].value, &seats[out.count]))
			out.count++;
		else
			seats[out.count] = (struct rules_seat){0};
	return out;
}

/* ---- scopes ---- */

/* The lists of a scope, one behind the other. */
static struct seat_list unite(struct reading *r, const struct schema_entry *schema)
{
	size_t count = schema->seats.count;
	struct rules_seat *seats;

	for (size_t i = 0; i < schema->default_traits.count; i++) {
		const struct trait_entry *trait = find_trait(r->doc, schema->default_traits.names[i]);

		count += trait == NULL ? 0 : trait->seats.count;
	}
	if (count == schema->seats.count)
		return schema->seats;
	seats = ARENA_ARRAY(r->scratch, struct rules_seat, count);
	count = schema->seats.count;
	if (count > 0)
		memcpy(seats, schema->seats.seats, count * sizeof(seats[0]));
	for (size_t i = 0; i < schema->default_traits.count; i++) {
		const struct trait_entry *trait = find_trait(r->doc, schema->default_traits.names[i]);

		if (trait == NULL || trait->seats.count == 0)
			continue;
		memcpy(seats + count, trait->seats.seats, trait->seats.count * sizeof(seats[0]));
		count += trait->seats.count;
	}
	return (struct seat_list){seats, count};
}

/* A scope with the names in order: documents may be large, and a schema's scope is checked with all notes. */
struct scope {
	struct seat_list list;
	struct index names;
};

static const struct rules_seat *find_seat(const struct scope *scope, struct str name)
{
	return index_find(&scope->names, name);
}

enum mark { UNSEEN, OPEN, DONE };

/* Depth-first over `after`: an edge to an open seat closes a cycle. Depth is at most the number of
 * seats of a scope, so recursion is short. */
static bool closes_cycle(const struct scope *scope, const struct rules_seat *seat, unsigned char *marks)
{
	unsigned char *mark = &marks[seat - scope->list.seats];

	*mark = OPEN;
	for (size_t i = 0; i < seat->after_count; i++) {
		const struct rules_seat *next = find_seat(scope, seat->after[i]);
		unsigned char met = next == NULL ? DONE : marks[next - scope->list.seats];

		if (met == OPEN || (met == UNSEEN && closes_cycle(scope, next, marks)))
			return true;
	}
	*mark = DONE;
	return false;
}

/* First, as it bounds what the others cost and how deep they go. */
static bool refuse_many(struct reading *r, const struct path *path, struct yaml_place at, const struct scope *scope)
{
	if (scope->list.count <= LIMIT_SCOPE_SEATS)
		return false;
	refuse(r, path, at, "%zu seats with those of the default traits, at most %d are allowed", scope->list.count,
		LIMIT_SCOPE_SEATS);
	return true;
}

static bool refuse_unowned(struct reading *r, const struct path *path, struct yaml_place at, const struct scope *scope)
{
	if (find_seat(scope, STR("unowned")) == NULL)
		return false;
	refuse(r, path, at, "F3: a seat may not be named unowned, which stands for notes without owner");
	return true;
}

static bool refuse_duplicate(struct reading *r, const struct path *path, struct yaml_place at,
	const struct scope *scope)
{
	const struct str **names = scope->names.sorted;

	for (size_t i = 1; i < scope->names.count; i++)
		if (str_eq(*names[i - 1], *names[i])) {
			refuse(r, path, at, "F2: seat \"%.*s\" is declared twice in this scope",
				(int)utf8_offset(*names[i], 80), names[i]->p);
			return true;
		}
	return false;
}

static bool refuse_two_entries(struct reading *r, const struct path *path, struct yaml_place at,
	const struct scope *scope)
{
	const struct rules_seat *entering[3] = {NULL, NULL, NULL};

	for (size_t i = 0; i < scope->list.count; i++) {
		const struct rules_seat *seat = &scope->list.seats[i];
		const struct rules_seat *first = entering[seat->phase];

		if (!seat->enters)
			continue;
		if (first != NULL) {
			refuse(r, path, at, "F1: seats \"%.*s\" and \"%.*s\" both enter phase %s; one may",
				(int)utf8_offset(first->name, 80), first->name.p, (int)utf8_offset(seat->name, 80),
				seat->name.p, role_name(seat->phase));
			return true;
		}
		entering[seat->phase] = seat;
	}
	return false;
}

static bool refuse_cycle(struct reading *r, const struct path *path, struct yaml_place at, const struct scope *scope)
{
	unsigned char *marks = ARENA_ARRAY(r->scratch, unsigned char, scope->list.count);

	for (size_t i = 0; i < scope->list.count; i++) {
		const struct rules_seat *seat = &scope->list.seats[i];

		if (marks[i] == UNSEEN && closes_cycle(scope, seat, marks)) {
			refuse(r, path, at, "F4: the seats wait for each other: there is a circle of after behind \"%.*s\"",
				(int)utf8_offset(seat->name, 80), seat->name.p);
			return true;
		}
	}
	return false;
}

/* In this order, and only the first that is found is told. false: nothing found. */
static bool check_scope(struct reading *r, const struct path *path, struct yaml_place at, const struct seat_list *list,
	struct scope *scope)
{
	*scope = (struct scope){.list = *list};
	index_build(&scope->names, r->scratch, list->seats, sizeof(list->seats[0]), list->count);
	return list->count > 0 && (refuse_many(r, path, at, scope) || refuse_unowned(r, path, at, scope) ||
		refuse_duplicate(r, path, at, scope) || refuse_two_entries(r, path, at, scope) ||
		refuse_cycle(r, path, at, scope));
}

/* ---- owners ---- */

static bool has_owner(const struct scope *scope, const struct rules_note *note)
{
	const struct rules_seat *seat = note->seat.p == NULL ? NULL : find_seat(scope, note->seat);

	return seat != NULL && seat->phase == note->role;
}

static void remark_unowned(struct reading *r, const struct path *path, const struct note_list *notes,
	const struct scope *scope)
{
	for (size_t i = 0; i < notes->count; i++) {
		const struct rules_note *note = &notes->notes[i];

		if (!note->is_required || has_owner(scope, note))
			continue;
		if (note->seat.p == NULL)
			remark(r, "W5", path, NO_PLACE, "required note \"%.*s\" names no seat; it is served as unowned",
				(int)utf8_offset(note->key, 80), note->key.p);
		else
			remark(r, "W5", path, NO_PLACE,
				"required note \"%.*s\": there is no seat \"%.*s\" in phase %s; it is served as unowned",
				(int)utf8_offset(note->key, 80), note->key.p, (int)utf8_offset(note->seat, 80),
				note->seat.p, role_name(note->role));
	}
}

static void check_owners(struct reading *r, const struct path *path, const struct schema_entry *schema,
	const struct scope *scope)
{
	if (scope->list.count == 0)
		return;
	remark_unowned(r, path, &schema->notes, scope);
	for (size_t i = 0; i < schema->default_traits.count; i++) {
		const struct trait_entry *trait = find_trait(r->doc, schema->default_traits.names[i]);

		if (trait != NULL)
			remark_unowned(r, path, &trait->notes, scope);
	}
}

static struct yaml_place place_in(const struct yaml *section, struct str name)
{
	const struct yaml *entry = yaml_get(section, name);
	const struct yaml *seats = yaml_get(entry, STR("seats"));

	return seats != NULL ? seats->at : entry != NULL ? entry->at : NO_PLACE;
}

void check_seats(struct reading *r, const struct yaml *root)
{
	const struct path *traits = PATH_KEY(NULL, STR("traits"));
	const struct path *types = PATH_KEY(NULL, STR("work_item_schemas"));
	const struct rules_doc *doc = r->doc;
	struct scope scope;

	for (size_t i = 0; i < doc->trait_index.count; i++) {
		const struct trait_entry *trait = &doc->traits[i];

		(void)check_scope(r, PATH_KEY(PATH_KEY(traits, trait->name), STR("seats")),
			place_in(yaml_get(root, STR("traits")), trait->name), &trait->seats, &scope);
	}
	for (size_t i = 0; i < doc->type_index.count; i++) {
		const struct schema_entry *schema = &doc->types[i];
		const struct path *at = PATH_KEY(types, schema->name);
		struct seat_list list = unite(r, schema);

		if (!check_scope(r, PATH_KEY(at, STR("seats")),
			    place_in(yaml_get(root, STR("work_item_schemas")), schema->name), &list, &scope))
			check_owners(r, PATH_KEY(at, STR("notes")), schema, &scope);
	}
}
