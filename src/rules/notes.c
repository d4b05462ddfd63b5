/* Note entries, of a schema, a trait or a legacy tag. */
#include "rules/document.h"

#include "base/limits.h"

static const char *const note_keys[] = {
	"key", "role", "required", "description", "guidance", "skill", "maxLength", "seat", "independent_of", NULL,
};

static void check_keys(struct reading *r, const struct path *path, const struct yaml *node)
{
	for (size_t i = 0; i < node->count; i++) {
		const struct yaml_entry *entry = &node->entries[i];

		if (!is_one_of(entry->key, note_keys))
			remark(r, "W1", PATH_KEY(path, entry->key), entry->at, "unknown key of a note, ignored%s",
				near_name(r, entry->key, note_keys));
	}
}

/* Key and role decide whether there is a note at all. */
static bool read_identity(struct reading *r, const struct path *path, const struct yaml *node, struct rules_note *note)
{
	const struct yaml *key = yaml_get(node, STR("key"));
	const struct yaml *role = yaml_get(node, STR("role"));

	if (key == NULL || key->kind != YAML_TEXT || yaml_is_null(key) || str_is_blank(key->text)) {
		remark(r, "note_skipped", path, node->at, "a note without key is skipped");
		return false;
	}
	if (utf8_count(key->text) > LIMIT_NOTE_KEY_CHARS) {
		remark(r, "note_skipped", PATH_KEY(path, STR("key")), key->at,
			"a key has at most %d characters; the note is skipped", LIMIT_NOTE_KEY_CHARS);
		return false;
	}
	if (role == NULL || !phase_parse(role->text, &note->role)) {
		remark(r, "note_skipped", PATH_KEY(path, STR("role")), role == NULL ? node->at : role->at,
			"the role must be exactly queue, work or review; note \"%.*s\" is skipped",
			(int)utf8_offset(key->text, 80), key->text.p);
		return false;
	}
	note->key = str_dup(r->doc->arena, key->text);
	return true;
}

static bool is_repeated(struct reading *r, const struct path *path, const struct yaml *node,
	const struct note_list *before, struct str key)
{
	for (size_t i = 0; i < before->count; i++)
		if (str_eq(before->notes[i].key, key)) {
			remark(r, "note_duplicate", PATH_KEY(path, STR("key")), node->at,
				"note \"%.*s\" stands in this list already; the first one holds",
				(int)utf8_offset(key, 80), key.p);
			return true;
		}
	return false;
}

static int64_t read_max(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *max = yaml_get(node, STR("maxLength"));
	int64_t value = 0;

	if (max == NULL || yaml_is_null(max))
		return 0;
	if (yaml_int(max, &value) && value >= 1)
		return value;
	remark(r, "field_invalid", PATH_KEY(path, STR("maxLength")), max->at,
		"expected a whole number of at least 1; ignored");
	return 0;
}

/* One seat without a list is as clear as a list of one; dropping it would open a gate. */
static void read_independent_of(struct reading *r, const struct path *path, const struct yaml *node,
	struct rules_note *note)
{
	const struct yaml *list = yaml_get(node, STR("independent_of"));
	const struct path *at = PATH_KEY(path, STR("independent_of"));
	struct yaml_entry only = {.value = list};
	struct yaml wrapped = {.kind = YAML_LIST, .entries = &only, .count = 1};
	struct name_list names;

	if (list == NULL || yaml_is_null(list))
		return;
	if (list->kind == YAML_TEXT) {
		remark(r, "field_invalid", at, list->at, "expected a list of seat names; read as a list of one");
		list = &wrapped;
	}
	names = read_names(r, at, want_list(r, at, list, LIMIT_SCHEMA_SEATS), "field_invalid");
	note->independent_of = names.names;
	note->independent_count = names.count;
}

static struct str none_if_blank(struct str text)
{
	return text.p == NULL || str_is_blank(text) ? STR_NONE : text;
}

static void read_rest(struct reading *r, const struct path *path, const struct yaml *node, struct rules_note *note)
{
	if (yaml_get(node, STR("required")) == NULL)
		remark(r, "required_omitted", path, node->at,
			"note \"%.*s\" does not say whether it is required; it is not",
			(int)utf8_offset(note->key, 80), note->key.p);
	note->is_required = read_bool(r, path, node, "required", false);
	note->description = read_text(r, path, node, "description");
	if (note->description.p == NULL)
		note->description = STR("");
	note->guidance = none_if_blank(read_text(r, path, node, "guidance"));
	note->skill = none_if_blank(read_text(r, path, node, "skill"));
	note->seat = none_if_blank(read_text(r, path, node, "seat"));
	note->max_chars = read_max(r, path, node);
	read_independent_of(r, path, node, note);
}

struct note_list read_notes(struct reading *r, const struct path *path, const struct yaml *node, struct str trait)
{
	const struct yaml *list = want_list(r, path, node, LIMIT_SCHEMA_NOTES);
	struct note_list out = {NULL, 0};
	struct rules_note *notes;

	if (list == NULL || list->count == 0)
		return out;
	notes = ARENA_ARRAY(r->doc->arena, struct rules_note, list->count);
	out.notes = notes;
	for (size_t i = 0; i < list->count; i++) {
		const struct yaml *entry = list->entries[i].value;
		const struct path *at = PATH_ITEM(path, i);
		struct rules_note note = {.from_trait = trait};

		if (entry->kind != YAML_MAP) {
			remark(r, "note_skipped", at, entry->at, "expected a mapping, found %s; skipped",
				yaml_kind_name(entry));
			continue;
		}
		check_keys(r, at, entry);
		if (!read_identity(r, at, entry, &note) || is_repeated(r, at, entry, &out, note.key))
			continue;
		read_rest(r, at, entry, &note);
		notes[out.count++] = note;
	}
	return out;
}
