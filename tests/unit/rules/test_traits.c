#include "story.h"

#include "base/limits.h"

static const struct rules_resource *resource(const struct story *s, const char *key)
{
	for (size_t i = 0; i < s->schema.resource_count; i++)
		if (str_eq(s->schema.resources[i].key, str_of(key)))
			return &s->schema.resources[i];
	fail_msg("no resource %s", key);
	return NULL;
}

static void a_resource_is_a_key_or_a_mapping(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {}}\nresources: {db: {}, port/80: {defaultTtlSeconds: 60}, gpu: {}}\n"
		   "traits: {t: {resources: [db, {key: port/80, mode: advisory}, {key: gpu, ttlSeconds: 5}]}}\n");
	assert_int_equal(s->warnings.count, 0);
	item(s, "a", NULL, "t");
	assert_int_equal(s->schema.resource_count, 3);
	is(s->schema.resources[0].key, "db");
	is(s->schema.resources[1].key, "gpu");
	is(s->schema.resources[2].key, "port/80");
	assert_true(resource(s, "db")->is_exclusive && resource(s, "db")->ttl_seconds == 3600);
	assert_true(resource(s, "gpu")->ttl_seconds == 5 && resource(s, "gpu")->is_declared);
	assert_true(!resource(s, "port/80")->is_exclusive && resource(s, "port/80")->ttl_seconds == 60);
}

static void bad_resources_are_skipped(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {}}\nresources: {Bad Key: {}}\n"
		   "traits: {t: {resources: [Db, {mode: advisory}, [], {key: ok, mode: shared, ttlSeconds: soon, size: 1}]}}\n");
	warned(s, "resource_invalid", "resources.Bad Key", NULL);
	warned(s, "resource_invalid", "traits.t.resources[0]", NULL);
	warned(s, "resource_invalid", "traits.t.resources[1]", NULL);
	warned(s, "resource_invalid", "traits.t.resources[2]", NULL);
	warned(s, "resource_invalid", "traits.t.resources[3].mode", "taken as exclusive");
	warned(s, "field_invalid", "traits.t.resources[3].ttlSeconds", NULL);
	warned(s, "W3", "traits.t.resources[3].size", NULL);
	item(s, "a", NULL, "t");
	assert_int_equal(s->schema.resource_count, 1);
	assert_true(resource(s, "ok")->is_exclusive);
}

static void times_are_clamped(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {}}\nresources: {x: {defaultTtlSeconds: 0}, y: {}, z: {defaultTtlSeconds: 90000}}\n"
		   "traits: {t: {resources: [x, {key: y, ttlSeconds: 86401}, z, {key: w, ttlSeconds: -1}]}}\n");
	warned(s, "field_invalid", "resources.x.defaultTtlSeconds", "outside 1 to 86400");
	warned(s, "field_invalid", "traits.t.resources[1].ttlSeconds", NULL);
	item(s, "a", NULL, "t");
	assert_int_equal(resource(s, "x")->ttl_seconds, 1);
	assert_int_equal(resource(s, "y")->ttl_seconds, 86400);
	assert_int_equal(resource(s, "z")->ttl_seconds, 86400);
	assert_int_equal(resource(s, "w")->ttl_seconds, 1);
}

static void exclusive_beats_advisory_and_the_first_ttl_stays(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {default_traits: [t]}}\n"
		   "traits:\n  t: {resources: [{key: k, mode: advisory}, {key: m, mode: advisory, ttlSeconds: 7}]}\n"
		   "  u: {resources: [{key: k, ttlSeconds: 5}, {key: m, mode: advisory, ttlSeconds: 9}]}\n"
		   "  v: {resources: [{key: k, ttlSeconds: 8}]}\n");
	item(s, "a", NULL, "v u");
	assert_int_equal(s->schema.resource_count, 2);
	assert_true(resource(s, "k")->is_exclusive && resource(s, "k")->ttl_seconds == 8);
	assert_true(!resource(s, "m")->is_exclusive && resource(s, "m")->ttl_seconds == 7);
}

static void resources_without_entry_are_told_and_hold_all_the_same(void **state)
{
	struct story *s = *state;

	global(s, "work_item_schemas: {a: {}}\nresources: {known: {}}\ntraits: {g: {resources: [known, unknown]}}\n");
	warned(s, "resource_undeclared", "traits.g.resources", "\"unknown\"");
	assert_int_equal(s->warnings.count, 1);
	project(s, "traits: {t: {resources: [known, other]}}\n");
	not_warned(s, "resource_undeclared");
	rules_check_layers(s->project, s->global, &s->warnings);
	warned(s, "resource_undeclared", "traits.t.resources", "\"other\"");
	assert_int_equal(s->warnings.count, 1);
	item(s, "a", NULL, "t");
	assert_true(resource(s, "other")->is_exclusive && !resource(s, "other")->is_declared);
}

static void a_resource_of_three_traits_is_told(void **state)
{
	struct story *s = *state;

	project(s, "traits: {a: {resources: [k, l]}, b: {resources: [k, l]}, c: {resources: [k]}}\n");
	warned(s, "resource_fanout", "traits.a.resources", "\"k\" is used by 3 traits");
	assert_int_equal(s->warnings.count, 1);
}

static void more_holders_are_not_supported_yet(void **state)
{
	struct story *s = *state;
	struct rules_registry_row *rows;

	project(s, "resources: {a: {maxHolders: 2}, b: {maxHolders: 0, description: B}, c: {maxHolders: many}, d: {maxHolders: 1},\n"
		   "  e: {budgetLimit: 5, budgetWindowSeconds: 6}}\n");
	warned(s, "resource_invalid", "resources.a.maxHolders", "maxHolders > 1 not yet supported");
	warned(s, "resource_invalid", "resources.b.maxHolders", "taken as 1");
	warned(s, "resource_invalid", "resources.c.maxHolders", "taken as 1");
	warned(s, "resource_reserved", "resources.e.budgetLimit", NULL);
	warned(s, "resource_reserved", "resources.e.budgetWindowSeconds", NULL);
	assert_int_equal(rules_registry(&s->view, s->arena, &rows), 4);
	is(rows[0].key, "b");
	is(rows[0].description, "B");
	assert_int_equal(rows[0].default_ttl_seconds, 3600);
}

static void the_global_registry_wins(void **state)
{
	struct story *s = *state;
	struct rules_registry_row *rows;

	global(s, "resources: {k: {description: all, defaultTtlSeconds: 10}}\n");
	project(s, "work_item_schemas: {a: {}}\ntraits: {t: {resources: [k, l]}}\n"
		   "resources: {k: {description: mine, defaultTtlSeconds: 20}, l: {defaultTtlSeconds: 30}}\n");
	item(s, "a", NULL, "t");
	assert_int_equal(resource(s, "k")->ttl_seconds, 10);
	assert_int_equal(resource(s, "l")->ttl_seconds, 30);
	assert_int_equal(rules_registry(&s->view, s->arena, &rows), 2);
	is(rows[0].description, "all");
	assert_int_equal(rows[0].source, RULES_GLOBAL);
	assert_int_equal(rows[1].source, RULES_PROJECT);
}

/* ---- dispatch ---- */

static const struct rules_dispatch *seat_profile(const struct story *s, enum role phase, const char *seat)
{
	const struct rules_phase_dispatch *dispatch = &s->schema.dispatch[phase];

	for (size_t i = 0; i < dispatch->seat_count; i++)
		if (str_eq(dispatch->seats[i].seat, str_of(seat)))
			return &dispatch->seats[i].profile;
	return NULL;
}

static void a_profile_is_read_by_phase(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {default_traits: [t]}}\n"
		   "traits: {t: {dispatch: {work: {agent: claude, model: big, effort: xhigh}, review: {effort: low}}}}\n");
	assert_int_equal(s->warnings.count, 0);
	item(s, "a", NULL, NULL);
	is(s->schema.dispatch[ROLE_WORK].profile.agent, "claude");
	is(s->schema.dispatch[ROLE_WORK].profile.effort, "xhigh");
	is(s->schema.dispatch[ROLE_REVIEW].profile.agent, NULL);
	assert_true(s->schema.dispatch[ROLE_REVIEW].is_set);
	assert_false(s->schema.dispatch[ROLE_QUEUE].is_set);
}

static void the_first_trait_with_a_profile_wins_whole_items_before_defaults(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {default_traits: [d]}}\n"
		   "traits:\n  d: {dispatch: {work: {agent: d, model: d}, queue: {agent: d}}}\n"
		   "  i: {dispatch: {work: {model: i}}}\n  j: {dispatch: {work: {agent: j}}}\n  n: {notes: []}\n");
	item(s, "a", NULL, "n i j");
	is(s->schema.dispatch[ROLE_WORK].profile.model, "i");
	is(s->schema.dispatch[ROLE_WORK].profile.agent, NULL);
	is(s->schema.dispatch[ROLE_QUEUE].profile.agent, "d");
	item(s, "a", NULL, "d i");
	is(s->schema.dispatch[ROLE_WORK].profile.model, "d");
}

static void seats_overlay_the_profile_field_by_field(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {default_traits: [t], seats: [{name: dev, phase: work}, {name: qa, phase: work},\n"
		   "  {name: rev, phase: review}]}}\n"
		   "traits: {t: {dispatch: {work: {agent: claude, model: big, effort: high,\n"
		   "  seats: {dev: {model: null, effort: low}, ghost: {agent: x}}}}}}\n");
	item(s, "a", NULL, NULL);
	is(seat_profile(s, ROLE_WORK, "dev")->agent, "claude");
	is(seat_profile(s, ROLE_WORK, "dev")->model, NULL);
	is(seat_profile(s, ROLE_WORK, "dev")->effort, "low");
	is(seat_profile(s, ROLE_WORK, "qa")->model, "big");
	assert_null(seat_profile(s, ROLE_WORK, "ghost"));
	assert_null(seat_profile(s, ROLE_WORK, "rev"));
	assert_int_equal(s->schema.dispatch[ROLE_REVIEW].seat_count, 0);
}

static void seat_overrides_come_from_the_item_first(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {default_traits: [d], seats: [{name: dev, phase: work}]}}\n"
		   "traits:\n  d: {dispatch: {work: {agent: d, seats: {dev: {model: d}}}}}\n"
		   "  i: {dispatch: {work: {seats: {dev: {effort: max}}}}}\n");
	item(s, "a", NULL, "i");
	assert_true(s->schema.dispatch[ROLE_WORK].is_set);
	is(s->schema.dispatch[ROLE_WORK].profile.agent, "d");
	is(seat_profile(s, ROLE_WORK, "dev")->agent, "d");
	is(seat_profile(s, ROLE_WORK, "dev")->effort, "max");
	is(seat_profile(s, ROLE_WORK, "dev")->model, NULL);
}

static void bad_profiles_are_dropped_with_a_warning(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {default_traits: [t]}}\n"
		   "traits: {t: {dispatch: {work: {effort: HIGH, agnt: x}, queue: {agent: '', model: []}, done: {}, review: {}}}}\n");
	warned(s, "dispatch_invalid", "traits.t.dispatch.work.effort", "small letters");
	warned(s, "W3", "traits.t.dispatch.work.agnt", "did you mean \"agent\"?");
	warned(s, "dispatch_empty", "traits.t.dispatch.work", NULL);
	warned(s, "dispatch_invalid", "traits.t.dispatch.queue.agent", NULL);
	warned(s, "dispatch_invalid", "traits.t.dispatch.queue.model", NULL);
	warned(s, "W3", "traits.t.dispatch.done", NULL);
	warned(s, "dispatch_empty", "traits.t.dispatch.review", NULL);
	item(s, "a", NULL, NULL);
	assert_false(s->schema.dispatch[ROLE_WORK].is_set);
}

static void W6_malformed_seat_profiles_are_dropped_where_they_are(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {default_traits: [t], seats: [{name: dev, phase: work}]}}\n"
		   "traits: {t: {dispatch: {queue: {agent: x, seats: []}, work: {model: big, seats: {bad: x, none: {}, ext: {foo: 1},\n"
		   "  dev: {agent: me, model: '', effort: huge}}}}}}\n");
	warned(s, "W6", "traits.t.dispatch.queue.seats", "expected a mapping of seats");
	warned(s, "W6", "traits.t.dispatch.work.seats.bad", "expected a mapping");
	warned(s, "W6", "traits.t.dispatch.work.seats.none", "nothing is left");
	warned(s, "W6", "traits.t.dispatch.work.seats.ext.foo", "unknown key");
	warned(s, "W6", "traits.t.dispatch.work.seats.dev.model", "dropped");
	warned(s, "W6", "traits.t.dispatch.work.seats.dev.effort", "dropped");
	item(s, "a", NULL, NULL);
	is(seat_profile(s, ROLE_WORK, "dev")->agent, "me");
	is(seat_profile(s, ROLE_WORK, "dev")->model, "big");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_resource_is_a_key_or_a_mapping),
		STORY(bad_resources_are_skipped),
		STORY(times_are_clamped),
		STORY(exclusive_beats_advisory_and_the_first_ttl_stays),
		STORY(resources_without_entry_are_told_and_hold_all_the_same),
		STORY(a_resource_of_three_traits_is_told),
		STORY(more_holders_are_not_supported_yet),
		STORY(the_global_registry_wins),
		STORY(a_profile_is_read_by_phase),
		STORY(the_first_trait_with_a_profile_wins_whole_items_before_defaults),
		STORY(seats_overlay_the_profile_field_by_field),
		STORY(seat_overrides_come_from_the_item_first),
		STORY(bad_profiles_are_dropped_with_a_warning),
		STORY(W6_malformed_seat_profiles_are_dropped_where_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
