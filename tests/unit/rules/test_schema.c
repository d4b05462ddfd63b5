#include "story.h"

#include <stdlib.h>
#include <time.h>

#define N(key) "notes: [{key: " key ", role: work, required: true}]"

/* Every step of the order has its own note, so the note tells which schema was taken. */
#define PROJECT_STEPS "work_item_schemas: {pt: {" N("p-type") "}, tag: {" N("p-tag") "}, default: {" N("p-default") "}}\n"
#define GLOBAL_STEPS "work_item_schemas: {pt: {" N("g-same") "}, gt: {" N("g-type") "}, gtag: {" N("g-tag") "}, default: {" N("g-default") "}}\n"

static void takes(struct story *s, const char *type, const char *tag, const char *key)
{
	item(s, type, tag, NULL);
	has_notes(s, key);
}

static void legacy_stays_in_the_project_if_anything_matches_there(void **state)
{
	struct story *s = *state;

	project(s, PROJECT_STEPS);
	global(s, GLOBAL_STEPS);
	takes(s, "pt", "tag", "p-type");
	takes(s, "gt", "tag", "p-tag");
	takes(s, "gt", NULL, "p-default");
	takes(s, "gt", "gtag", "p-default");
	project(s, "work_item_schemas: {pt: {" N("p-type") "}}\n");
	takes(s, "gt", "gtag", "g-type");
	takes(s, "none", "gtag", "g-tag");
	takes(s, NULL, NULL, "g-default");
	assert_int_equal(s->schema.source, RULES_GLOBAL);
}

static void layered_asks_both_layers_at_each_step(void **state)
{
	struct story *s = *state;

	project(s, "schema_resolution: layered\n" PROJECT_STEPS);
	global(s, GLOBAL_STEPS);
	takes(s, "pt", "tag", "p-type");
	takes(s, "gt", "tag", "g-type");
	takes(s, "none", "tag", "p-tag");
	takes(s, "none", "gtag", "g-tag");
	takes(s, "none", "none", "p-default");
	project(s, "schema_resolution: layered\n");
	takes(s, "none", "none", "g-default");
}

static void isolated_never_reads_the_global_layer(void **state)
{
	struct story *s = *state;

	project(s, "schema_resolution: isolated\n" PROJECT_STEPS);
	global(s, GLOBAL_STEPS "traits: {g: {" N("g-trait") "}}\n");
	takes(s, "pt", "tag", "p-type");
	takes(s, "gt", "tag", "p-tag");
	takes(s, "gt", "gtag", "p-default");
	item(s, "pt", NULL, "g");
	has_notes(s, "p-type");
	assert_int_equal(s->schema.unknown_trait_count, 1);
	project(s, "schema_resolution: isolated\n");
	takes(s, "gt", "gtag", "");
	assert_int_equal(s->schema.source, RULES_NONE);
}

static void the_three_modes_differ_for_a_project_default_and_a_global_type(void **state)
{
	struct story *s = *state;
	const char *const modes[] = {"legacy", "layered", "isolated"};
	const char *const notes[] = {"mine", "theirs", "mine"};

	global(s, "work_item_schemas: {bug: {" N("theirs") "}}\n");
	for (int i = 0; i < 3; i++) {
		project(s, arena_printf(s->arena, "schema_resolution: %s\nwork_item_schemas: {default: {" N("mine") "}}\n", modes[i]));
		takes(s, "bug", NULL, notes[i]);
	}
}

static void the_global_mode_holds_where_the_project_is_silent(void **state)
{
	struct story *s = *state;

	global(s, "schema_resolution: layered\n" GLOBAL_STEPS);
	project(s, PROJECT_STEPS);
	takes(s, "gt", "tag", "g-type");
}

static void tags_look_into_schemas_then_into_legacy_ones_tag_by_tag(void **state)
{
	struct story *s = *state;
	const struct str tags[] = {STR("none"), STR("old"), STR("new")};

	project(s, "work_item_schemas: {new: {" N("n") "}, both: {" N("b") "}}\n"
		   "note_schemas: {old: [{key: o, role: review, required: true}], both: [{key: x, role: work}]}\n");
	takes(s, NULL, "both", "b");
	rules_schema(&s->view, STR_NONE, tags, 3, NULL, 0, s->arena, &s->schema);
	has_notes(s, "o");
	is(s->schema.type, "old");
	assert_true(s->schema.has_review);
	takes(s, "old", NULL, "");
}

static void default_is_never_an_exact_match(void **state)
{
	struct story *s = *state;

	project(s, "schema_resolution: layered\nwork_item_schemas: {default: {" N("mine") "}}\n");
	global(s, "work_item_schemas: {bug: {" N("theirs") "}}\n");
	takes(s, "default", "bug", "theirs");
	takes(s, "bug", "default", "theirs");
	takes(s, "default", NULL, "mine");
	is(s->schema.type, "default");
}

static void matching_is_case_sensitive(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {bug: {" N("x") "}}\n");
	takes(s, "Bug", NULL, "");
}

static void nothing_matched_is_schema_free(void **state)
{
	struct story *s = *state;

	project(s, "traits: {t: {" N("k") ", seats: [{name: a, phase: work}], resources: [db], dispatch: {work: {agent: x}}}}\n");
	item(s, "bug", "tag", "t");
	assert_int_equal(s->schema.source, RULES_NONE);
	is(s->schema.type, NULL);
	assert_int_equal(s->schema.lifecycle, LIFECYCLE_AUTO);
	assert_false(s->schema.has_review);
	has_notes(s, "");
	has_seats(s, "");
	has_traits(s, "t");
	assert_int_equal(s->schema.resource_count, 1);
	is(s->schema.dispatch[ROLE_WORK].profile.agent, "x");
	s->view.project = NULL;
	item(s, "bug", NULL, "t");
	assert_int_equal(s->schema.unknown_trait_count, 1);
}

static void traits_add_in_order_default_traits_first(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {default_traits: [d, ghost], " N("base") "}}\n"
		   "traits: {d: {" N("kd") "}, i: {" N("ki") "}, j: {" N("kj") "}}\n");
	item(s, "a", NULL, "j d i j nowhere");
	has_traits(s, "d j i");
	has_notes(s, "base kd kj ki");
	is(note(s, "base")->from_trait, NULL);
	is(note(s, "kj")->from_trait, "j");
	assert_int_equal(s->schema.unknown_trait_count, 1);
	is(s->schema.unknown_traits[0], "nowhere");
}

static void a_trait_never_relaxes_or_moves_a_base_note(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {default_traits: [t, u], " N("k") "}}\n"
		   "traits:\n  t: {notes: [{key: k, role: review, required: false}, {key: l, role: queue, required: true}]}\n"
		   "  u: {notes: [{key: l, role: review, required: false}]}\n");
	item(s, "a", NULL, NULL);
	has_notes(s, "k l");
	assert_true(note(s, "k")->is_required && note(s, "k")->role == ROLE_WORK);
	assert_true(note(s, "l")->is_required && note(s, "l")->role == ROLE_QUEUE);
	assert_false(s->schema.has_review);
}

static void a_review_note_of_a_trait_opens_the_review_phase(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {" N("k") "}}\ntraits: {t: {notes: [{key: r, role: review, required: false}]}}\n");
	item(s, "a", NULL, NULL);
	assert_false(s->schema.has_review);
	item(s, "a", NULL, "t");
	assert_true(s->schema.has_review);
}

static void seats_merge_by_name_and_a_second_entry_is_demoted(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {seats: [{name: dev, phase: work, enters: true}]}}\n"
		   "traits: {t: {seats: [{name: dev, phase: review}, {name: bot, phase: work, enters: true},\n"
		   "  {name: rev, phase: review, enters: true}]}}\n");
	item(s, "a", NULL, "t");
	has_seats(s, "dev bot rev");
	assert_int_equal(schema_seat(&s->schema, STR("dev"))->phase, ROLE_WORK);
	assert_true(schema_seat(&s->schema, STR("dev"))->enters);
	assert_false(schema_seat(&s->schema, STR("bot"))->enters);
	assert_true(schema_seat(&s->schema, STR("rev"))->enters);
	assert_int_equal(s->schema.demoted_seat_count, 1);
	is(s->schema.demoted_seats[0], "bot");
	assert_null(schema_seat(&s->schema, STR("ghost")));
}

static void a_trait_of_the_item_may_bring_the_seat_of_a_base_note(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {notes: [{key: k, role: work, required: true, seat: dev}]}}\n"
		   "traits: {t: {seats: [{name: dev, phase: work}]}}\n");
	item(s, "a", NULL, NULL);
	is(note(s, "k")->seat, NULL);
	item(s, "a", NULL, "t");
	is(note(s, "k")->seat, "dev");
}

#define GLOBAL_TRAIT \
	"work_item_schemas: {a: {}}\n" \
	"traits: {t: {" N("g") ", seats: [{name: gs, phase: work}], resources: [gr],\n" \
	"  dispatch: {work: {agent: ga}, review: {agent: gb}}}}\n"

static void a_projects_trait_replaces_notes_and_seats_even_when_empty(void **state)
{
	struct story *s = *state;

	global(s, GLOBAL_TRAIT);
	item(s, "a", NULL, "t");
	has_notes(s, "g");
	project(s, "traits: {t: }\n");
	item(s, "a", NULL, "t");
	has_notes(s, "");
	has_seats(s, "");
	project(s, "traits: {t: {" N("p") "}}\n");
	item(s, "a", NULL, "t");
	has_notes(s, "p");
}

static void a_projects_trait_keeps_dispatch_and_resources_it_does_not_give(void **state)
{
	struct story *s = *state;

	global(s, GLOBAL_TRAIT);
	project(s, "traits: {t: {dispatch: {work: {model: pm}}}}\n");
	item(s, "a", NULL, "t");
	has_notes(s, "");
	is(s->schema.dispatch[ROLE_WORK].profile.model, "pm");
	is(s->schema.dispatch[ROLE_WORK].profile.agent, NULL);
	assert_false(s->schema.dispatch[ROLE_REVIEW].is_set);
	assert_int_equal(s->schema.resource_count, 1);
	is(s->schema.resources[0].key, "gr");
	project(s, "traits: {t: {resources: [pr], dispatch: {work: {effort: HUGE}}}}\n");
	item(s, "a", NULL, "t");
	is(s->schema.dispatch[ROLE_WORK].profile.agent, "ga");
	is(s->schema.resources[0].key, "pr");
	project(s, "traits: {t: {resources: [BAD], dispatch: }}\n");
	item(s, "a", NULL, "t");
	is(s->schema.dispatch[ROLE_REVIEW].profile.agent, "gb");
	is(s->schema.resources[0].key, "gr");
}

static void a_global_schema_takes_the_projects_trait(void **state)
{
	struct story *s = *state;

	global(s, "work_item_schemas: {a: {default_traits: [t]}}\ntraits: {t: {" N("g") "}}\n");
	project(s, "traits: {t: {" N("p") "}}\n");
	item(s, "a", NULL, NULL);
	has_notes(s, "p");
	assert_int_equal(s->schema.source, RULES_GLOBAL);
}

static void lists_show_what_the_mode_can_reach(void **state)
{
	struct story *s = *state;
	struct rules_type_row *rows;
	struct str *names;

	global(s, "work_item_schemas: {b: {default_traits: [t]}, a: {}, default: {}}\ntraits: {t: {}, u: {}}\n");
	project(s, "work_item_schemas: {z: {default_traits: [x, t]}, a: {default_traits: [t]}}\ntraits: {u: {}, x: {}}\n");
	assert_int_equal(rules_types(&s->view, s->arena, &rows), 4);
	is(rows[0].name, "z");
	is(rows[1].name, "a");
	assert_int_equal(rows[1].source, RULES_PROJECT);
	is(rows[2].name, "b");
	assert_int_equal(rows[2].source, RULES_GLOBAL);
	assert_int_equal(rules_traits(&s->view, s->arena, &rows), 3);
	is(rows[2].name, "t");
	assert_int_equal(rules_types_with_trait(&s->view, STR("t"), s->arena, &names), 3);
	is(names[0], "z");
	is(names[2], "b");
	project(s, "work_item_schemas: {default: {}}\n");
	assert_int_equal(rules_types(&s->view, s->arena, &rows), 1);
	project(s, "schema_resolution: layered\nwork_item_schemas: {default: {}}\n");
	assert_int_equal(rules_types(&s->view, s->arena, &rows), 3);
	project(s, "schema_resolution: isolated\n");
	assert_int_equal(rules_types(&s->view, s->arena, &rows), 0);
	assert_int_equal(rules_traits(&s->view, s->arena, &rows), 0);
}

static void many_notes_merge_by_key_all_the_same(void **state)
{
	struct story *s = *state;
	struct buf text;

	buf_init(&text, s->arena, SIZE_MAX);
	buf_add_str(&text, STR("work_item_schemas: {a: {default_traits: [t0, t1, t2]}}\ntraits:\n"));
	for (int t = 0; t < 3; t++) {
		buf_printf(&text, "  t%d:\n    seats:\n", t);
		for (int i = 0; i < 20; i++)
			buf_printf(&text, "    - {name: s%d, phase: work}\n", t * 20 + i);
		buf_add_str(&text, STR("    notes:\n"));
		for (int i = 0; i < 60; i++)
			buf_printf(&text, "    - {key: k%d, role: work, required: false, seat: s%d}\n", t * 30 + i, i);
	}
	buf_add_char(&text, '\0');
	project(s, text.p);
	item(s, "a", NULL, NULL);
	assert_int_equal(s->schema.note_count, 120);
	assert_int_equal(s->schema.seat_count, 60);
	is(note(s, "k30")->from_trait, "t0");
	is(note(s, "k119")->from_trait, "t2");
	is(note(s, "k119")->seat, "s59");
}

/* A bound far above what it takes, so that only a change of its order of growth is seen; the figure is printed. */
static void resolving_is_cheap(void **state)
{
	struct story *s = *state;
	struct arena *arena;
	struct timespec from, to;
	int64_t ns;

	global(s, GLOBAL_STEPS "traits: {t: {" N("g") ", resources: [db]}}\nresources: {db: {}}\n");
	project(s, "schema_resolution: layered\ntraits: {u: {" N("u1") ", seats: [{name: qa, phase: review}]}}\n"
		   "work_item_schemas:\n  bug:\n    default_traits: [t, u]\n    seats: [{name: dev, phase: work, enters: true}]\n    notes:\n"
		   "    - {key: cause, role: queue, required: true}\n    - {key: plan, role: queue, required: true}\n"
		   "    - {key: work-log, role: work, required: true, seat: dev}\n    - {key: tests, role: work, required: true, seat: dev}\n"
		   "    - {key: review, role: review, required: true, seat: qa}\n");
	arena = arena_create();
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < 100000; i++) {
		if (i % 100 == 0) {
			arena_destroy(arena);
			arena = arena_create();
		}
		rules_schema(&s->view, STR("bug"), NULL, 0, NULL, 0, arena, &s->schema);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	has_notes(s, "cause plan work-log tests review g u1");
	arena_destroy(arena);
	ns = ((to.tv_sec - from.tv_sec) * INT64_C(1000000000) + to.tv_nsec - from.tv_nsec) / 100000;
	print_message("rules_schema: %lld ns\n", (long long)ns);
	assert_true(ns < 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(legacy_stays_in_the_project_if_anything_matches_there),
		STORY(layered_asks_both_layers_at_each_step),
		STORY(isolated_never_reads_the_global_layer),
		STORY(the_three_modes_differ_for_a_project_default_and_a_global_type),
		STORY(the_global_mode_holds_where_the_project_is_silent),
		STORY(tags_look_into_schemas_then_into_legacy_ones_tag_by_tag),
		STORY(default_is_never_an_exact_match),
		STORY(matching_is_case_sensitive),
		STORY(nothing_matched_is_schema_free),
		STORY(traits_add_in_order_default_traits_first),
		STORY(a_trait_never_relaxes_or_moves_a_base_note),
		STORY(a_review_note_of_a_trait_opens_the_review_phase),
		STORY(seats_merge_by_name_and_a_second_entry_is_demoted),
		STORY(a_trait_of_the_item_may_bring_the_seat_of_a_base_note),
		STORY(a_projects_trait_replaces_notes_and_seats_even_when_empty),
		STORY(a_projects_trait_keeps_dispatch_and_resources_it_does_not_give),
		STORY(a_global_schema_takes_the_projects_trait),
		STORY(lists_show_what_the_mode_can_reach),
		STORY(many_notes_merge_by_key_all_the_same),
		STORY(resolving_is_cheap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
