/* A document: its sections, its life. Reading goes on after an error, so that the author sees all of
 * a kind at once: first what is no YAML, then wrong shapes, then seats that contradict each other. */
#include "rules/document.h"

#include "base/id.h"
#include "base/limits.h"

#include <stdlib.h>

static const char *const schema_keys[] = {"lifecycle", "default_traits", "seats", "notes", NULL};
static const char *const project_keys[] = {"rootId", "name", NULL};

/* ---- lookup ---- */

static int by_name(const void *left, const void *right)
{
	return str_cmp(**(const struct str *const *)left, **(const struct str *const *)right);
}

void index_build(struct index *index, struct arena *arena, const void *first, size_t stride, size_t count)
{
	index->count = count;
	if (count == 0)
		return;
	index->sorted = ARENA_ARRAY(arena, const struct str *, count);
	for (size_t i = 0; i < count; i++)
		index->sorted[i] = (const struct str *)(const void *)((const char *)first + i * stride);
	qsort(index->sorted, count, sizeof(index->sorted[0]), by_name);
}

const void *index_find(const struct index *index, struct str name)
{
	size_t low = 0, high = index->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = str_cmp(*index->sorted[middle], name);

		if (order == 0)
			return index->sorted[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct schema_entry *find_type(const struct rules_doc *doc, struct str name)
{
	return index_find(&doc->type_index, name);
}

const struct schema_entry *find_tag(const struct rules_doc *doc, struct str name)
{
	return index_find(&doc->tag_index, name);
}

const struct trait_entry *find_trait(const struct rules_doc *doc, struct str name)
{
	return index_find(&doc->trait_index, name);
}

const struct registry_entry *find_registry(const struct rules_doc *doc, struct str name)
{
	return index_find(&doc->registry_index, name);
}

bool name_list_has(const struct name_list *list, struct str name)
{
	for (size_t i = 0; i < list->count; i++)
		if (str_eq(list->names[i], name))
			return true;
	return false;
}

/* ---- sections ---- */

static void read_lifecycle(struct reading *r, const struct path *path, const struct yaml *map,
	struct schema_entry *schema)
{
	const struct yaml *node = yaml_get(map, STR("lifecycle"));

	if (node == NULL || yaml_is_null(node))
		return;
	for (int i = LIFECYCLE_AUTO; i <= LIFECYCLE_AUTO_REOPEN; i++)
		if (str_eq(node->text, str_of(lifecycle_name((enum lifecycle)i)))) {
			schema->lifecycle = (enum lifecycle)i;
			return;
		}
	remark(r, "lifecycle_unknown", PATH_KEY(path, STR("lifecycle")), node->at,
		"the lifecycle is auto, manual, permanent or auto-reopen; taken as auto");
}

static void read_schema(struct reading *r, const struct path *path, const struct yaml *node,
	struct schema_entry *schema)
{
	const struct yaml *map = want_map(r, path, node);
	const struct path *traits = PATH_KEY(path, STR("default_traits"));

	if (map == NULL)
		return;
	for (size_t i = 0; i < map->count; i++)
		if (!is_one_of(map->entries[i].key, schema_keys))
			remark(r, "W3", PATH_KEY(path, map->entries[i].key), map->entries[i].at,
				"unknown key of a schema, ignored%s", near_name(r, map->entries[i].key, schema_keys));
	read_lifecycle(r, path, map, schema);
	schema->default_traits = read_names(r, traits,
		want_list(r, traits, yaml_get(map, STR("default_traits")), LIMIT_SCHEMA_TRAITS), "field_invalid");
	schema->seats = read_seats(r, PATH_KEY(path, STR("seats")), yaml_get(map, STR("seats")));
	schema->notes = read_notes(r, PATH_KEY(path, STR("notes")), yaml_get(map, STR("notes")), STR_NONE);
}

static bool is_name(struct reading *r, const struct path *path, const struct yaml_entry *entry)
{
	if (!str_is_blank(entry->key) && utf8_count(entry->key) <= LIMIT_TYPE_CHARS)
		return true;
	refuse(r, PATH_KEY(path, entry->key), entry->at, "a name is not blank and has at most %d characters",
		LIMIT_TYPE_CHARS);
	return false;
}

static const struct yaml *want_schemas(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *map = want_map(r, path, node);

	if (map == NULL || map->count <= LIMIT_SCHEMAS)
		return map;
	refuse(r, path, node->at, "%zu schemas, at most %d are allowed", map->count, LIMIT_SCHEMAS);
	return NULL;
}

static void read_schemas(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *map = want_schemas(r, path, node);
	struct rules_doc *doc = r->doc;

	if (map == NULL || map->count == 0)
		return;
	doc->types = ARENA_ARRAY(doc->arena, struct schema_entry, map->count);
	for (size_t i = 0; i < map->count; i++) {
		struct schema_entry *schema = &doc->types[doc->type_index.count];

		if (!is_name(r, path, &map->entries[i]))
			continue;
		schema->name = str_dup(doc->arena, map->entries[i].key);
		read_schema(r, PATH_KEY(path, schema->name), map->entries[i].value, schema);
		doc->type_index.count++;
	}
}

static void read_tags(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *map = want_schemas(r, path, node);
	struct rules_doc *doc = r->doc;

	remark(r, "note_schemas_legacy", path, node->at, "note_schemas is the old form; use work_item_schemas");
	if (map == NULL || map->count == 0)
		return;
	doc->tags = ARENA_ARRAY(doc->arena, struct schema_entry, map->count);
	for (size_t i = 0; i < map->count; i++) {
		struct schema_entry *schema = &doc->tags[doc->tag_index.count];

		if (!is_name(r, path, &map->entries[i]))
			continue;
		schema->name = str_dup(doc->arena, map->entries[i].key);
		schema->notes = read_notes(r, PATH_KEY(path, schema->name), map->entries[i].value, STR_NONE);
		doc->tag_index.count++;
	}
}

static void read_project(struct reading *r, const struct path *path, const struct yaml *node)
{
	const struct yaml *map = want_map(r, path, node);

	if (map == NULL)
		return;
	for (size_t i = 0; i < map->count; i++)
		if (!is_one_of(map->entries[i].key, project_keys))
			remark(r, "W3", PATH_KEY(path, map->entries[i].key), map->entries[i].at,
				"unknown key of the project, ignored%s", near_name(r, map->entries[i].key, project_keys));
	r->doc->root_id = read_text(r, path, map, "rootId");
	r->doc->project_name = read_text(r, path, map, "name");
}

static const struct section {
	const char *name;
	void (*read)(struct reading *r, const struct path *path, const struct yaml *node); /* NULL: of clients */
	bool is_global_only;
} sections[] = {
	{"actor_attribution", NULL, false},
	{"actor_authentication", check_authentication, true},
	{"independence", read_independence, false},
	{"note_limits", read_note_limits, false},
	{"note_ownership", read_ownership, false},
	{"note_schemas", read_tags, false},
	{"orchestration", NULL, false},
	{"project", read_project, false},
	{"resources", read_registry, false},
	{"retrospective", NULL, false},
	{"schema_resolution", read_resolution, false},
	{"status_labels", read_labels, false},
	{"traits", read_traits, false},
	{"work_item_schemas", read_schemas, false},
};
#define SECTION_COUNT (sizeof(sections) / sizeof(sections[0]))

static const char *near_section(struct reading *r, struct str word)
{
	const char *names[SECTION_COUNT + 1] = {NULL};

	for (size_t i = 0; i < SECTION_COUNT; i++)
		names[i] = sections[i].name;
	return near_name(r, word, names);
}

static void ignore(struct rules_doc *doc, struct str *ignored, struct str name)
{
	ignored[doc->ignored.count++] = (struct str){arena_copy(doc->arena, name.p, name.n), name.n};
}

static void read_sections(struct reading *r, const struct yaml *root)
{
	struct str *ignored = ARENA_ARRAY(r->doc->arena, struct str, root->count);

	r->doc->ignored.names = ignored;
	for (size_t i = 0; i < root->count; i++) {
		const struct yaml_entry *entry = &root->entries[i];
		const struct path *path = PATH_KEY(NULL, entry->key);
		const struct section *section = sections;
		const struct section *end = sections + SECTION_COUNT;

		while (section < end && !str_eq(entry->key, str_of(section->name)))
			section++;
		if (section == end) {
			remark(r, "W2", path, entry->at, "unknown section, ignored%s", near_section(r, entry->key));
			ignore(r->doc, ignored, entry->key);
		} else if (section->is_global_only && !r->doc->is_global) {
			ignore(r->doc, ignored, entry->key);
		} else if (section->read != NULL) {
			section->read(r, path, entry->value);
		}
	}
}

/* ---- a document ---- */

#define INDEX(doc, index, entries) \
	index_build(&(doc)->index, (doc)->arena, (doc)->entries, sizeof((doc)->entries[0]), (doc)->index.count)

static void index_all(struct rules_doc *doc)
{
	INDEX(doc, type_index, types);
	INDEX(doc, tag_index, tags);
	INDEX(doc, trait_index, traits);
	INDEX(doc, registry_index, registry);
}

static void read_document(struct reading *r, struct str text)
{
	struct yaml_error error;
	const struct yaml *root;

	if (yaml_read(text, r->scratch, &root, &error) != 0) {
		count_error(r, error.at);
		(void)fail_field(r->f, error.path, STR_NONE, "%.*s at line %u, column %u", STRF(error.reason),
			error.at.line, error.at.column);
		return;
	}
	if (root->kind != YAML_MAP) {
		refuse(r, NULL, root->at, "expected a mapping of sections, found %s", yaml_kind_name(root));
		return;
	}
	read_sections(r, root);
	if (r->errors > 0)
		return;
	index_all(r->doc);
	check_seats(r, root);
	if (r->errors > 0)
		return;
	check_fanout(r);
	if (r->doc->is_global)
		check_layers(r, r->doc, NULL);
}

/* file:line:column: first error, for who starts a server; the count, for who pushed a text. */
static int refused(const struct reading *r)
{
	struct failure *f = r->f;
	const struct failure_field *first = f->fields;

	f->code = FAIL_CONFIG_INVALID;
	if (r->file.p == NULL)
		f->message = str_printf(f->arena, "Configuration has %zu error%s.", r->errors,
			plural((int64_t)r->errors));
	else
		f->message = str_printf(f->arena, "%.*s:%u:%u: %.*s%s%.*s%s", STRF(r->file), r->first_at.line,
			r->first_at.column, STRF(first->path), first->path.n > 0 ? ": " : "", STRF(first->reason),
			r->errors > 1 ? " (and more)" : "");
	return -1;
}

int rules_parse(struct str yaml, struct str name, bool is_global, struct warnings *warnings, struct rules_doc **out,
	struct failure *f)
{
	AUTO(arena_destroyp) struct arena *scratch = arena_create();
	struct arena *arena;
	struct reading r = {.scratch = scratch, .warnings = warnings, .f = f, .file = name};

	if (yaml.n > LIMIT_CONFIG_BYTES) {
		(void)fail(f, FAIL_PAYLOAD_TOO_LARGE, "The configuration has %zu bytes, at most %d are allowed.", yaml.n,
			LIMIT_CONFIG_BYTES);
		fail_detail_int(f, "max", LIMIT_CONFIG_BYTES);
		fail_detail_int(f, "actual", (int64_t)yaml.n);
		return -1;
	}
	arena = arena_create();
	r.doc = ARENA_NEW(arena, struct rules_doc);
	r.doc->arena = arena;
	r.doc->is_global = is_global;
	r.doc->note_limits = RULES_WARN;
	r.doc->independence = RULES_WARN;
	atomic_init(&r.doc->references, 1);
	read_document(&r, yaml);
	if (r.errors > 0) {
		rules_doc_unref(r.doc);
		return refused(&r);
	}
	r.doc->fingerprint = rules_fingerprint(arena, yaml);
	*out = r.doc;
	return 0;
}

void rules_check_layers(const struct rules_doc *project, const struct rules_doc *global, struct warnings *warnings)
{
	AUTO(arena_destroyp) struct arena *scratch = arena_create();
	struct reading r = {.scratch = scratch, .warnings = warnings};

	if (project != NULL)
		check_layers(&r, project, project->has_resolution && project->resolution == RESOLUTION_ISOLATED ? NULL : global);
}

struct rules_doc *rules_doc_ref(struct rules_doc *doc)
{
	atomic_fetch_add_explicit(&doc->references, 1, memory_order_relaxed);
	return doc;
}

void rules_doc_unref(struct rules_doc *doc)
{
	if (doc != NULL && atomic_fetch_sub_explicit(&doc->references, 1, memory_order_acq_rel) == 1)
		arena_destroy(doc->arena);
}

struct str rules_fingerprint(struct arena *arena, struct str yaml)
{
	AUTO(arena_destroyp) struct arena *scratch = arena_create();
	struct buf text;

	if (str_starts(yaml, STR("\xef\xbb\xbf")))
		yaml = (struct str){yaml.p + 3, yaml.n - 3};
	buf_init(&text, scratch, SIZE_MAX);
	for (size_t start = 0, i = 0; i <= yaml.n; i++) {
		bool is_crlf = i + 1 < yaml.n && yaml.p[i] == '\r' && yaml.p[i + 1] == '\n';

		if (!is_crlf && i < yaml.n)
			continue;
		buf_add(&text, yaml.n == 0 ? "" : yaml.p + start, i - start);
		start = i + 1; /* behind the CR */
	}
	return sha256_hex(arena, buf_str(&text));
}

struct str rules_doc_fingerprint(const struct rules_doc *doc)
{
	return doc->fingerprint;
}

size_t rules_doc_ignored(const struct rules_doc *doc, const struct str **out)
{
	*out = doc->ignored.names;
	return doc->ignored.count;
}

struct str rules_doc_root_id(const struct rules_doc *doc)
{
	return doc->root_id;
}

struct str rules_doc_project_name(const struct rules_doc *doc)
{
	return doc->project_name;
}
