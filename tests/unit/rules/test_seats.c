#include "story.h"

#define SCOPE(seats) "work_item_schemas: {a: {seats: [" seats "]}}\n"
#define AT "work_item_schemas.a.seats"

static void F3_a_seat_named_unowned_is_refused(void **state)
{
	refused(*state, SCOPE("{name: unowned, phase: work}"), AT, "F3");
}

static void F2_a_seat_declared_twice_is_refused(void **state)
{
	refused(*state, SCOPE("{name: dev, phase: work}, {name: dev, phase: review}"), AT, "F2: seat \"dev\"");
}

static void F1_two_seats_that_enter_one_phase_are_refused(void **state)
{
	refused(*state, SCOPE("{name: a, phase: work, enters: true}, {name: b, phase: work, enters: true}"), AT,
		"F1: seats \"a\" and \"b\" both enter phase work");
}

static void one_entering_seat_for_each_phase_is_fine(void **state)
{
	project(*state, SCOPE("{name: a, phase: work, enters: true}, {name: b, phase: review, enters: true}"));
}

static void F4_seats_that_wait_for_each_other_are_refused(void **state)
{
	struct story *s = *state;

	refused(s, SCOPE("{name: a, phase: work, after: [b]}, {name: b, phase: work, after: [c]},"
			 "{name: c, phase: work, after: [a]}"), AT, "F4");
	refused(s, SCOPE("{name: a, phase: work, after: [a]}"), AT, "F4");
	project(s, SCOPE("{name: a, phase: work, after: [b, c]}, {name: b, phase: work, after: [c]},"
			 "{name: c, phase: work, after: [elsewhere]}"));
}

static void the_first_hit_in_the_order_3_2_1_4_is_told(void **state)
{
	struct story *s = *state;

	refused(s, SCOPE("{name: x, phase: work, enters: true}, {name: unowned, phase: work, enters: true}"), AT, "F3");
	assert_int_equal(error_count(s), 1);
	refused(s, SCOPE("{name: x, phase: work, enters: true}, {name: x, phase: work, enters: true}"), AT, "F2");
	assert_int_equal(error_count(s), 1);
	refused(s, SCOPE("{name: x, phase: work, enters: true, after: [x]}, {name: y, phase: work, enters: true}"), AT, "F1");
	assert_int_equal(error_count(s), 1);
}

static void a_trait_is_a_scope_of_its_own(void **state)
{
	struct story *s = *state;

	refused(s, "traits: {t: {seats: [{name: a, phase: work}, {name: a, phase: work}]}}\n", "traits.t.seats", "F2");
}

static void a_schema_and_its_default_traits_are_one_scope(void **state)
{
	struct story *s = *state;

	refused(s, "traits: {t: {seats: [{name: b, phase: work, enters: true}]}}\n"
		   "work_item_schemas: {a: {default_traits: [t], seats: [{name: a, phase: work, enters: true}]}}\n", AT, "F1");
	refused(s, "traits: {t: {seats: [{name: b, phase: work, after: [a]}]}}\n"
		   "work_item_schemas: {a: {default_traits: [t], seats: [{name: a, phase: work, after: [b]}]}}\n", AT, "F4");
	refused(s, "traits: {t: {seats: [{name: a, phase: work}]}}\n"
		   "work_item_schemas: {a: {default_traits: [t], seats: [{name: a, phase: work}]}}\n", AT, "F2");
	project(s, "traits: {t: {seats: [{name: b, phase: work, enters: true}]}}\n"
		   "work_item_schemas: {a: {seats: [{name: a, phase: work, enters: true}]}}\n");
}

static void the_errors_of_all_scopes_are_collected(void **state)
{
	struct story *s = *state;

	refused(s, "traits: {t: {seats: [{name: unowned, phase: work}]}, u: {seats: [{name: a, phase: work, after: [a]}]}}\n"
		   "work_item_schemas:\n  a:\n    seats:\n      - {name: x, phase: queue}\n      - {name: x, phase: queue}\n",
		AT, "F2: seat \"x\" is declared twice in this scope at line 5, column 7");
	assert_int_equal(error_count(s), 3);
}

static void W4_malformed_seats_are_repaired_or_skipped(void **state)
{
	struct story *s = *state;

	project(s, SCOPE("{phase: work}, {name: '', phase: work}, {name: b}, {name: c, phase: Work}, text,"
			 "{name: d, phase: work, enters: 3}, {name: e, phase: work, after: d, reads_exclude: {}},"
			 "{name: f, phase: work, wants: x, after: [[], d]}"));
	warned(s, "W4", AT "[0]", "without name");
	warned(s, "W4", AT "[1]", "without name");
	warned(s, "W4", AT "[2].phase", "skipped");
	warned(s, "W4", AT "[3].phase", "skipped");
	warned(s, "W4", AT "[4]", "expected a mapping");
	warned(s, "W4", AT "[5].enters", "taken as false");
	warned(s, "W4", AT "[6].after", "taken as empty");
	warned(s, "W4", AT "[6].reads_exclude", "taken as empty");
	warned(s, "W4", AT "[7].wants", "unknown key");
	warned(s, "W4", AT "[7].after[0]", "expected a name");
	item(s, "a", NULL, NULL);
	has_seats(s, "d e f");
	assert_false(s->schema.seats[0].enters);
	assert_int_equal(s->schema.seats[2].after_count, 1);
}

static void enters_written_as_yes_is_refused(void **state)
{
	refused(*state, SCOPE("{name: a, phase: work, enters: yes}"), AT "[0].enters", "a boolean is true or false");
}

static void W5_required_notes_without_a_valid_seat_are_unowned(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas:\n  a:\n    seats: [{name: dev, phase: work}]\n    notes:\n"
		   "      - {key: none, role: work, required: true}\n"
		   "      - {key: unknown, role: work, required: true, seat: qa}\n"
		   "      - {key: elsewhere, role: review, required: true, seat: dev}\n"
		   "      - {key: good, role: work, required: true, seat: dev}\n"
		   "      - {key: free, role: work, required: false}\n");
	warned(s, "W5", "work_item_schemas.a.notes", "\"none\" names no seat");
	warned(s, "W5", "work_item_schemas.a.notes", "no seat \"qa\"");
	warned(s, "W5", "work_item_schemas.a.notes", "no seat \"dev\" in phase review");
	assert_int_equal(s->warnings.count, 3);
	item(s, "a", NULL, NULL);
	is(note(s, "unknown")->seat, NULL);
	is(note(s, "elsewhere")->seat, NULL);
	is(note(s, "good")->seat, "dev");
}

static void a_schema_without_seats_is_not_warned(void **state)
{
	struct story *s = *state;

	project(s, "work_item_schemas: {a: {notes: [{key: k, role: work, required: true, seat: dev}]}}\n");
	not_warned(s, "W5");
	item(s, "a", NULL, NULL);
	is(note(s, "k")->seat, NULL);
}

static void a_default_trait_may_bring_the_seat_of_a_note(void **state)
{
	struct story *s = *state;

	project(s, "traits: {t: {seats: [{name: dev, phase: work}]}}\n"
		   "work_item_schemas: {a: {default_traits: [t], notes: [{key: k, role: work, required: true, seat: dev}]}}\n");
	not_warned(s, "W5");
	item(s, "a", NULL, NULL);
	is(note(s, "k")->seat, "dev");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(F3_a_seat_named_unowned_is_refused),
		STORY(F2_a_seat_declared_twice_is_refused),
		STORY(F1_two_seats_that_enter_one_phase_are_refused),
		STORY(one_entering_seat_for_each_phase_is_fine),
		STORY(F4_seats_that_wait_for_each_other_are_refused),
		STORY(the_first_hit_in_the_order_3_2_1_4_is_told),
		STORY(a_trait_is_a_scope_of_its_own),
		STORY(a_schema_and_its_default_traits_are_one_scope),
		STORY(the_errors_of_all_scopes_are_collected),
		STORY(W4_malformed_seats_are_repaired_or_skipped),
		STORY(enters_written_as_yes_is_refused),
		STORY(W5_required_notes_without_a_valid_seat_are_unowned),
		STORY(a_schema_without_seats_is_not_warned),
		STORY(a_default_trait_may_bring_the_seat_of_a_note),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
