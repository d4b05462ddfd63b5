/* Any bytes as a configuration document: never a crash, a hang or a tree that breaks its promises; what
 * parses once parses again with the same fingerprint, and resolves. */
#include "base/limits.h"
#include "base/yaml.h"
#include "rules/rules.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void resolve(const struct rules_doc *project, const struct rules_doc *global, struct arena *arena)
{
	static const struct str tags[] = {{"bug", 3}, {"ui", 2}};
	struct rules_view view = {.project = project, .global = global};
	struct rules_type_row *types, *traits;
	size_t type_count = rules_types(&view, arena, &types);
	size_t trait_count = rules_traits(&view, arena, &traits);
	struct str names[8];
	struct schema schema;

	if (trait_count > 8)
		trait_count = 8;
	for (size_t i = 0; i < trait_count; i++)
		names[i] = traits[i].name;
	for (size_t i = 0; i <= type_count && i < 8; i++) {
		rules_schema(&view, i < type_count ? types[i].name : STR_NONE, tags, 2, names, trait_count, arena, &schema);
		for (size_t k = 0; k < schema.note_count; k++)
			assert(schema_note(&schema, schema.notes[k].key) == &schema.notes[k]);
		for (size_t k = 1; k < schema.resource_count; k++)
			assert(str_cmp(schema.resources[k - 1].key, schema.resources[k].key) < 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str text = {(const char *)data, size};
	struct rules_doc *project = NULL, *global = NULL;
	struct warnings warnings;
	struct failure f;
	int rc;

	failure_init(&f, arena);
	warnings_init(&warnings, arena, LIMIT_CONFIG_WARNINGS + 1);
	rc = rules_parse(text, STR_NONE, false, &warnings, &project, &f);
	assert((rc == 0) == (project != NULL));
	assert(rc == 0 || f.code == FAIL_CONFIG_INVALID || f.code == FAIL_PAYLOAD_TOO_LARGE);
	assert(rc == 0 || f.code != FAIL_CONFIG_INVALID || f.field_count > 0);
	(void)rules_parse(text, STR("config.yaml"), true, NULL, &global, &f);
	rules_check_layers(project, global, &warnings);
	if (project != NULL) {
		assert(str_eq(rules_doc_fingerprint(project), rules_fingerprint(arena, text)));
		resolve(project, global, arena);
		resolve(NULL, project, arena);
	}
	rules_doc_unref(project);
	rules_doc_unref(global);
	return 0;
}
