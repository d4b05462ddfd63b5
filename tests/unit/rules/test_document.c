#include "story.h"

#include "base/limits.h"

#define BUG \
	"work_item_schemas:\n" \
	"  bug:\n" \
	"    notes:\n" \
	"      - { key: cause, role: work, required: true }\n"

static void files_of_any_editor_give_the_same_rules(void **state)
{
	struct story *s = *state;
	const char *const texts[] = {
		BUG,
		("\xef\xbb\xbf" BUG),
		"work_item_schemas:\r\n  bug:\r\n    notes:\r\n      - { key: cause, role: work, required: true }\r\n",
		"work_item_schemas:\r  bug:\r    notes:\r      - { key: cause, role: work, required: true }\r",
		("work_item_schemas:\n  bug:\n# a comment at the margin\n    notes:\n"
		 "      - { key: cause, role: work, required: true }\n"),
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		project(s, texts[i]);
		item(s, "bug", NULL, NULL);
		has_notes(s, "cause");
		assert_true(note(s, "cause")->is_required);
		assert_int_equal(s->warnings.count, 0);
	}
}

static void a_BOM_and_CRLF_keep_the_fingerprint(void **state)
{
	struct story *s = *state;
	struct str plain = rules_fingerprint(s->arena, STR("a: b\nc: d\n"));

	assert_int_equal(plain.n, 64);
	assert_true(str_eq(plain, rules_fingerprint(s->arena, STR("\xef\xbb\xbf" "a: b\nc: d\n"))));
	assert_true(str_eq(plain, rules_fingerprint(s->arena, STR("a: b\r\nc: d\r\n"))));
	assert_true(str_eq(plain, rules_fingerprint(s->arena, STR("\xef\xbb\xbf" "a: b\r\nc: d\r\n"))));
	assert_false(str_eq(plain, rules_fingerprint(s->arena, STR("a: b\rc: d\r"))));
	assert_false(str_eq(plain, rules_fingerprint(s->arena, STR("a: b\nc: d"))));
	is(rules_fingerprint(s->arena, STR_NONE), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	project(s, "\xef\xbb\xbf" BUG);
	assert_true(str_eq(rules_doc_fingerprint(s->project), rules_fingerprint(s->arena, STR(BUG))));
}

static void an_empty_file_equals_an_empty_mapping(void **state)
{
	struct story *s = *state;
	const char *const texts[] = {"", "# only\n# comments\n", "{}"};

	for (size_t i = 0; i < 3; i++) {
		project(s, texts[i]);
		assert_int_equal(s->warnings.count, 0);
		item(s, "bug", NULL, NULL);
		assert_int_equal(s->schema.source, RULES_NONE);
	}
}

static void what_is_no_YAML_is_refused_with_its_place(void **state)
{
	struct story *s = *state;

	refused(s, "work_item_schemas:\n  bug:\n\tnotes:\n", "", "tab is used as indentation; use spaces at line 3, column 1");
	refused(s, BUG "---\nx: y\n", "", "more than one document");
	refused(s, "project: {name: caf\xe9}\n", "", "not UTF-8");
	refused(s, "\xff\xfe" "a", "", "not UTF-8");
	refused(s, "\"a\\0b\": 1\n", "", "NUL");
	refused(s, "project: {name: \"\\uD83D\"}\n", "", "bad escape");
	refused(s, "traits:\n  a: {}\n  a: {}\n", "traits.a", "first on line 2 and again on line 3");
	refused(s, "- a\n", "", "expected a mapping of sections, found a list");
	refused(s, "text\n", "", "expected a mapping of sections, found text");
}

static struct str padded(struct story *s, size_t n)
{
	char *text = arena_alloc(s->arena, n + 1);
	const char bug[] = BUG;

	memset(text, '#', n);
	memcpy(text, bug, sizeof(bug) - 1);
	return (struct str){text, n};
}

static void the_size_limit_is_exact(void **state)
{
	struct story *s = *state;
	struct rules_doc *doc = NULL;

	assert_int_equal(rules_parse(padded(s, LIMIT_CONFIG_BYTES), STR_NONE, false, NULL, &doc, &s->f), 0);
	rules_doc_unref(doc);
	doc = NULL;
	assert_int_equal(rules_parse(padded(s, LIMIT_CONFIG_BYTES + 1), STR_NONE, false, NULL, &doc, &s->f), -1);
	assert_null(doc);
	assert_int_equal(s->f.code, FAIL_PAYLOAD_TOO_LARGE);
	is(s->f.detail, "\"max\":131072,\"actual\":131073");
}

static void a_file_is_named_with_line_and_column(void **state)
{
	struct story *s = *state;
	struct rules_doc *doc = NULL;

	assert_int_equal(rules_parse(STR("a: 1\n\tb: 2\n"), STR("config.yaml"), true, NULL, &doc, &s->f), -1);
	assert_non_null(strstr(s->f.message.p, "config.yaml:2:1: a tab"));
	assert_int_equal(rules_parse(STR("traits: []\n"), STR("c.yaml"), true, NULL, &doc, &s->f), -1);
	assert_non_null(strstr(s->f.message.p, "c.yaml:1:9: traits: expected a mapping"));
}

static void sections_of_the_wrong_shape_are_refused_together(void **state)
{
	struct story *s = *state;

	refused(s, "traits: []\nwork_item_schemas: x\nresources: []\nproject: []\n", "traits", "expected a mapping, found a list");
	assert_int_equal(error_count(s), 4);
	is(s->f.message, "Configuration has 4 errors.");
	refused(s, "work_item_schemas: {a: {notes: {}}}\n", "work_item_schemas.a.notes", "expected a list, found a mapping");
	refused(s, "work_item_schemas: {a: {seats: x}}\n", "work_item_schemas.a.seats", "expected a list");
	refused(s, "work_item_schemas: {a: {default_traits: x}}\n", "work_item_schemas.a.default_traits", "expected a list");
	refused(s, "work_item_schemas: {a: []}\n", "work_item_schemas.a", "expected a mapping");
	refused(s, "traits: {a: {resources: {}}}\n", "traits.a.resources", "expected a list");
	refused(s, "traits: {a: {dispatch: []}}\n", "traits.a.dispatch", "expected a mapping");
	refused(s, "note_schemas: {a: {}}\n", "note_schemas.a", "expected a list");
	refused(s, "note_limits: reject\n", "note_limits", "expected a mapping, found text");
	refused(s, "independence: reject\n", "independence", "expected a mapping");
	refused(s, "schema_resolution: [a]\n", "schema_resolution", "expected legacy");
	refused(s, "note_ownership: {}\n", "note_ownership", "expected owner or open");
}

static void sections_with_nothing_in_them_are_empty(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas:\ntraits:\nresources: ~\nnote_limits:\nindependence: null\nstatus_labels:\n"
		   "schema_resolution:\nnote_ownership:\nproject:\n");
	assert_int_equal(s->warnings.count, 0);
	project(s, "work_item_schemas: {a: {notes: , seats: , default_traits: , lifecycle: }, b: }\ntraits: {t: }\n");
	assert_int_equal(s->warnings.count, 0);
}

static void shapes_come_before_seats(void **state)
{
	struct story *s = *state;

	refused(s, "traits: {t: {seats: [{name: unowned, phase: work}]}}\nproject: []\n", "project", "mapping");
	assert_int_equal(error_count(s), 1);
}

static void unknown_sections_are_warned_and_listed(void **state)
{
	struct story *s = *state;
	const struct str *ignored;

	project(s, "trait: {}\nretrospective: {a: b}\nactor_attribution: x\norchestration: []\nactor_authentication: {bad: 1}\n");
	warned(s, "W2", "trait", "did you mean \"traits\"?");
	assert_int_equal(s->warnings.count, 1);
	assert_int_equal(rules_doc_ignored(s->project, &ignored), 2);
	is(ignored[0], "trait");
	is(ignored[1], "actor_authentication");
}

static void unknown_keys_are_warned(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {note: [], notes: [{key: k, role: work, requred: true, required: false}]}}\n"
		   "traits: {t: {evidence: []}}\nproject: {root: x}\nnote_limits: {modes: a}\n");
	warned(s, "W3", "work_item_schemas.a.note", "did you mean \"notes\"?");
	warned(s, "W1", "work_item_schemas.a.notes[0].requred", "did you mean \"required\"?");
	warned(s, "W3", "traits.t.evidence", NULL);
	warned(s, "W3", "project.root", NULL);
	warned(s, "W3", "note_limits.modes", "did you mean \"mode\"?");
}

static void a_note_without_key_or_role_is_skipped(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {notes: [{role: work}, {key: '', role: work}, {key: x}, {key: y, role: Work},\n"
		   "  {key: [], role: work}, text, {key: z, role: [work]}, {key: ok, role: work, required: true}]}}\n");
	for (int i = 0; i < 7; i++) {
		const char *path = arena_printf(s->arena, "work_item_schemas.a.notes[%d]%s", i,
			i == 2 || i == 3 || i == 6 ? ".role" : "");

		warned(s, "note_skipped", path, NULL);
	}
	item(s, "a", NULL, NULL);
	has_notes(s, "ok");
}

static void a_note_key_has_at_most_200_characters(void **state)
{
	struct story *s = *state;
	char key[402];

	for (int i = 0; i < 200; i++)
		memcpy(key + 2 * i, "\xc3\xa9", 2);
	key[400] = '\0';
	project(s, arena_printf(s->arena, "work_item_schemas: {a: {notes: [{key: %s, role: work}]}}\n", key));
	not_warned(s, "note_skipped");
	project(s, arena_printf(s->arena, "work_item_schemas: {a: {notes: [{key: %sx, role: work}]}}\n", key));
	warned(s, "note_skipped", "work_item_schemas.a.notes[0].key", "200");
}

static void of_a_repeated_note_the_first_holds(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {notes: [{key: k, role: work, required: true}, {key: k, role: review}]}}\n");
	warned(s, "note_duplicate", "work_item_schemas.a.notes[1].key", "first");
	item(s, "a", NULL, NULL);
	has_notes(s, "k");
	assert_int_equal(note(s, "k")->role, ROLE_WORK);
}

static void the_fields_of_a_note_are_read(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas:\n  a:\n    seats: [{name: dev, phase: work}]\n    notes:\n"
		   "      - {key: 0123, role: work, required: true, description: yes, guidance: 1.10, skill: spec-quality,\n"
		   "         maxLength: 500, seat: dev, independent_of: [rev, rev, qa]}\n"
		   "      - {key: b, role: queue, required: false, guidance: '', skill: ~}\n");
	assert_int_equal(s->warnings.count, 0);
	item(s, "a", NULL, NULL);
	has_notes(s, "0123 b");
	is(note(s, "0123")->description, "yes");
	is(note(s, "0123")->guidance, "1.10");
	is(note(s, "0123")->skill, "spec-quality");
	is(note(s, "0123")->seat, "dev");
	assert_int_equal(note(s, "0123")->max_chars, 500);
	assert_int_equal(note(s, "0123")->independent_count, 2);
	is(note(s, "0123")->independent_of[1], "qa");
	is(note(s, "b")->description, "");
	is(note(s, "b")->guidance, NULL);
	is(note(s, "b")->skill, NULL);
	assert_int_equal(note(s, "b")->max_chars, 0);
}

static void required_must_be_a_boolean(void **state)
{
	struct story *s = *state;

	refused(s, "work_item_schemas: {a: {notes: [{key: k, role: work, required: yes}]}}\n",
		"work_item_schemas.a.notes[0].required", "a boolean is true or false (without quotes), not yes");
	refused(s, "work_item_schemas: {a: {notes: [{key: k, role: work, required: \"true\"}]}}\n",
		"work_item_schemas.a.notes[0].required", "not \"true\"");
	refused(s, "traits: {a: {notes: [{key: k, role: work, required: []}]}}\n", "traits.a.notes[0].required",
		"not a list");
}

static void leaving_required_out_is_warned(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {notes: [{key: k, role: work}]}}\n");
	warned(s, "required_omitted", "work_item_schemas.a.notes[0]", "\"k\"");
	item(s, "a", NULL, NULL);
	assert_false(note(s, "k")->is_required);
}

static void a_bad_maxLength_is_warned_and_ignored(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {notes: [{key: k, role: work, maxLength: 0}, {key: l, role: work, maxLength: x}]}}\n");
	warned(s, "field_invalid", "work_item_schemas.a.notes[0].maxLength", "at least 1");
	warned(s, "field_invalid", "work_item_schemas.a.notes[1].maxLength", NULL);
	item(s, "a", NULL, NULL);
	assert_int_equal(note(s, "k")->max_chars, 0);
}

static void a_single_independent_seat_is_not_dropped(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {notes: [{key: k, role: work, independent_of: dev}]}}\n");
	warned(s, "field_invalid", "work_item_schemas.a.notes[0].independent_of", "list of one");
	item(s, "a", NULL, NULL);
	assert_int_equal(note(s, "k")->independent_count, 1);
	is(note(s, "k")->independent_of[0], "dev");
}

static void an_unknown_lifecycle_is_auto(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {lifecycle: Manual}, b: {lifecycle: manual}, c: {lifecycle: auto-reopen}, d: {lifecycle: permanent}}\n");
	warned(s, "lifecycle_unknown", "work_item_schemas.a.lifecycle", NULL);
	assert_int_equal(s->warnings.count, 1);
	item(s, "a", NULL, NULL);
	assert_int_equal(s->schema.lifecycle, LIFECYCLE_AUTO);
	item(s, "b", NULL, NULL);
	assert_int_equal(s->schema.lifecycle, LIFECYCLE_MANUAL);
	item(s, "c", NULL, NULL);
	assert_int_equal(s->schema.lifecycle, LIFECYCLE_AUTO_REOPEN);
	item(s, "d", NULL, NULL);
	assert_int_equal(s->schema.lifecycle, LIFECYCLE_PERMANENT);
}

static void legacy_schemas_are_warned(void **state)
{
	struct story *s = *state;

	project(s, "note_schemas: {ui: [{key: k, role: work, required: true}]}\n");
	warned(s, "note_schemas_legacy", "note_schemas", NULL);
}

static void undefined_traits_are_told_when_both_layers_are_known(void **state)
{
	struct story *s = *state;

	global(s, "work_item_schemas: {a: {default_traits: [here, gone]}}\ntraits: {here: {}}\n");
	warned(s, "trait_undefined", "work_item_schemas.a.default_traits[1]", "\"gone\"");
	assert_int_equal(s->warnings.count, 1);
	project(s, "work_item_schemas: {b: {default_traits: [here, own, lost]}}\ntraits: {own: {}}\n");
	not_warned(s, "trait_undefined");
	rules_check_layers(s->project, s->global, &s->warnings);
	warned(s, "trait_undefined", "work_item_schemas.b.default_traits[2]", "\"lost\"");
	assert_int_equal(s->warnings.count, 1);
}

static void an_isolated_project_has_no_traits_of_the_global_layer(void **state)
{
	struct story *s = *state;

	global(s, "traits: {here: {}}\n");
	project(s, "schema_resolution: isolated\nwork_item_schemas: {b: {default_traits: [here]}}\n");
	rules_check_layers(s->project, s->global, &s->warnings);
	warned(s, "trait_undefined", "work_item_schemas.b.default_traits[0]", NULL);
}

static void the_project_block_is_read(void **state)
{
	struct story *s = *state;

	project(s, "project: {rootId: 5b7d20c4-0000-4000-8000-000000000000, name: no}\n");
	is(rules_doc_root_id(s->project), "5b7d20c4-0000-4000-8000-000000000000");
	is(rules_doc_project_name(s->project), "no");
	project(s, "{}");
	is(rules_doc_root_id(s->project), NULL);
}

static void names_and_lists_have_limits(void **state)
{
	struct story *s = *state;
	struct buf text;
	char *name = arena_alloc(s->arena, 102);

	memset(name, 'n', 101);
	refused(s, arena_printf(s->arena, "work_item_schemas: {%s: {}}\n", name),
		arena_printf(s->arena, "work_item_schemas.%.80s", name), "at most 100 characters");
	buf_init(&text, s->arena, SIZE_MAX);
	buf_add_str(&text, STR("work_item_schemas:\n  a:\n    notes:\n"));
	for (int i = 0; i <= LIMIT_SCHEMA_NOTES; i++)
		buf_printf(&text, "    - {key: n%d, role: work}\n", i);
	buf_add_char(&text, '\0');
	refused(s, text.p, "work_item_schemas.a.notes", "at most 200 are allowed");
}

static void schemas_and_their_seats_have_limits(void **state)
{
	struct story *s = *state;
	struct buf text;

	buf_init(&text, s->arena, SIZE_MAX);
	buf_add_str(&text, STR("work_item_schemas:\n"));
	for (int i = 0; i <= LIMIT_SCHEMAS; i++)
		buf_printf(&text, "  t%d: {}\n", i);
	buf_add_char(&text, '\0');
	refused(s, text.p, "work_item_schemas", "501 schemas, at most 500");
	text.n = 0;
	buf_add_str(&text, STR("work_item_schemas: {a: {default_traits: [t0, t1, t2, t3, t4]}}\ntraits:\n"));
	for (int t = 0; t < 5; t++) {
		buf_printf(&text, "  t%d:\n    seats:\n", t);
		for (int i = 0; i < 41; i++)
			buf_printf(&text, "    - {name: s%d_%d, phase: work}\n", t, i);
	}
	buf_add_char(&text, '\0');
	refused(s, text.p, "work_item_schemas.a.seats", "205 seats");
}

static void warnings_have_a_limit(void **state)
{
	struct story *s = *state;
	struct buf text;

	buf_init(&text, s->arena, SIZE_MAX);
	for (int i = 0; i < 10000; i++)
		buf_printf(&text, "u%d: x\n", i);
	buf_add_char(&text, '\0');
	project(s, text.p);
	assert_int_equal(s->warnings.count, LIMIT_CONFIG_WARNINGS);
	warned(s, "more", NULL, NULL);
}

static void shared_lists_do_not_multiply_a_document(void **state)
{
	struct story *s = *state;
	struct buf text;

	buf_init(&text, s->arena, SIZE_MAX);
	buf_add_str(&text, STR("traits:\n  t: &t\n    notes: [{key: k, role: work, required: true}]\n"));
	for (int i = 0; i < 50; i++)
		buf_printf(&text, "  t%d: *t\n", i);
	buf_add_char(&text, '\0');
	project(s, text.p);
	global(s, "work_item_schemas: {default: {}}\n");
	item(s, "x", NULL, "t0 t49");
	has_notes(s, "k");
	is(note(s, "k")->from_trait, "t0");
}

static void a_document_lives_as_long_as_it_is_held(void **state)
{
	struct story *s = *state;
	struct rules_doc *held;

	project(s, BUG);
	held = rules_doc_ref(s->project);
	project(s, "{}");
	s->view.project = held;
	item(s, "bug", NULL, NULL);
	has_notes(s, "cause");
	rules_doc_unref(held);
	s->view.project = NULL;
	rules_doc_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(files_of_any_editor_give_the_same_rules),
		STORY(a_BOM_and_CRLF_keep_the_fingerprint),
		STORY(an_empty_file_equals_an_empty_mapping),
		STORY(what_is_no_YAML_is_refused_with_its_place),
		STORY(the_size_limit_is_exact),
		STORY(a_file_is_named_with_line_and_column),
		STORY(sections_of_the_wrong_shape_are_refused_together),
		STORY(sections_with_nothing_in_them_are_empty),
		STORY(shapes_come_before_seats),
		STORY(unknown_sections_are_warned_and_listed),
		STORY(unknown_keys_are_warned),
		STORY(a_note_without_key_or_role_is_skipped),
		STORY(a_note_key_has_at_most_200_characters),
		STORY(of_a_repeated_note_the_first_holds),
		STORY(the_fields_of_a_note_are_read),
		STORY(required_must_be_a_boolean),
		STORY(leaving_required_out_is_warned),
		STORY(a_bad_maxLength_is_warned_and_ignored),
		STORY(a_single_independent_seat_is_not_dropped),
		STORY(an_unknown_lifecycle_is_auto),
		STORY(legacy_schemas_are_warned),
		STORY(undefined_traits_are_told_when_both_layers_are_known),
		STORY(an_isolated_project_has_no_traits_of_the_global_layer),
		STORY(the_project_block_is_read),
		STORY(names_and_lists_have_limits),
		STORY(schemas_and_their_seats_have_limits),
		STORY(warnings_have_a_limit),
		STORY(shared_lists_do_not_multiply_a_document),
		STORY(a_document_lives_as_long_as_it_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
