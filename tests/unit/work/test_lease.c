/* Resource leases. */
#include "engine.h"

#include "work/lease.h"

static const char rules[] =
	"work_item_schemas:\n  t:\n    default_traits: [uses-x]\n    notes: []\n  xy:\n    default_traits: [uses-x, uses-y]\n    notes: []\n"
	"  watches:\n    default_traits: [looks]\n    notes: []\n"
	"traits:\n"
	"  uses-x:\n    resources:\n      - {key: x, mode: exclusive, ttlSeconds: 60}\n"
	"  uses-y:\n    resources:\n      - {key: y, mode: exclusive, ttlSeconds: 60}\n"
	"  looks:\n    resources:\n      - {key: z, mode: advisory}\n"
	"resources:\n  x: {description: X}\n  y: {description: Y}\n  z: {description: Z}\n";

static int64_t project(struct engine *e)
{
	int64_t root = make_item_as(e, 0, "root", (struct traits){.role = ROLE_WORK});

	push_rules(e, root, rules);
	return root;
}

static int64_t task(struct engine *e, int64_t parent, const char *type)
{
	return make_item_as(e, parent, "task", (struct traits){.type = type});
}

/* behaviour 6.17 */
static void all_resources_or_none(void **state)
{
	struct engine *e = *state;
	int64_t root = project(e);
	int64_t holder = task(e, root, "t");
	int64_t both = task(e, root, "xy");
	json_t *answer;

	assert_ok(move(e, LOCAL, holder, "start"));
	answer = move(e, LOCAL, both, "start");
	assert_refused(answer, "resource_unavailable");
	assert_int_equal(json_array_size(at(answer, "error.detail.resources")), 1);
	assert_string_equal(text_at(answer, "error.detail.resources.0.name"), "x");
	assert_string_equal(text_at(answer, "error.detail.resources.0.mode"), "exclusive");
	assert_int_equal(int_at(answer, "error.detail.retryAfterMs"), 60000);
	assert_int_equal(count(e, "SELECT count(*) FROM lease"), 1);
	answer = run_op(e, LOCAL, "gate", "{'itemId':'%s'}", id_of(e, both));
	assert_string_equal(text_at(answer, "blockedBy.0"), "lease");
	assert_string_equal(text_at(answer, "resources.0.name"), "x");
	answer = run_op(e, LOCAL, "gate", "{'itemId':'%s'}", id_of(e, holder));
	assert_string_equal(text_at(answer, "lease.0.key"), "x");
	assert_ok(move(e, LOCAL, holder, "complete"));
	assert_ok(move(e, LOCAL, both, "start"));
	assert_int_equal(count(e, "SELECT count(*) FROM lease"), 2);
}

/* behaviour 6.18 */
static void every_way_out_of_work_releases(void **state)
{
	static const char *const ways[] = {"block", "complete", "cancel"};
	struct engine *e = *state;
	int64_t root = project(e);
	int64_t parent;

	for (size_t i = 0; i < 3; i++) {
		int64_t item = task(e, root, "t");

		assert_ok(move(e, LOCAL, item, "start"));
		assert_ok(move(e, LOCAL, item, ways[i]));
		assert_int_equal(count(e, "SELECT count(*) FROM lease"), 0);
		assert_int_equal(count(e, "SELECT count(*) FROM lease_history WHERE reason = 0"), (int)i + 1);
	}
	parent = task(e, root, "t");
	assert_ok(move(e, LOCAL, parent, "start"));
	assert_ok(move(e, LOCAL, task(e, parent, NULL), "complete"));
	assert_string_equal(state_of(e, parent), "terminal done");
	assert_int_equal(count(e, "SELECT count(*) FROM lease"), 0);
	assert_int_equal(count(e, "SELECT count(*) FROM lease_history"), 4);
	assert_int_equal(count(e, "SELECT count(*) FROM event WHERE type = 15"), 4);
	assert_int_equal(count(e, "SELECT count(*) FROM event WHERE type = 16"), 4);
}

/* behaviour 3.10 */
static void resume_takes_the_resources_again(void **state)
{
	struct engine *e = *state;
	int64_t root = project(e);
	int64_t item = task(e, root, "t");
	int64_t other = task(e, root, "t");

	assert_ok(move(e, LOCAL, item, "start"));
	assert_ok(move(e, LOCAL, item, "block"));
	assert_ok(move(e, LOCAL, item, "resume"));
	assert_int_equal(count(e, "SELECT count(*) FROM lease"), 1);
	assert_ok(move(e, LOCAL, item, "block"));
	assert_ok(move(e, LOCAL, other, "start"));
	assert_refused(move(e, LOCAL, item, "resume"), "resource_unavailable");
}

/* behaviour 6.19 */
static void a_lease_dies_to_the_millisecond(void **state)
{
	struct engine *e = *state;
	int64_t root = project(e);
	int64_t item = task(e, root, "t");
	int64_t other = task(e, root, "t");

	assert_ok(move(e, LOCAL, item, "start"));
	e->now += 59999;
	assert_refused(move(e, LOCAL, other, "start"), "resource_unavailable");
	e->now += 1;
	assert_ok(move(e, LOCAL, other, "start"));
	assert_string_equal(state_of(e, item), "work in-progress");
	assert_int_equal(count(e, "SELECT count(*) FROM lease_history WHERE reason = 1"), 1);
	assert_int_equal(count(e, "SELECT count(*) FROM event WHERE type = 17"), 1);
}

/* behaviour 6.20 */
static void credentials_are_a_closed_set_where_resources_are_declared(void **state)
{
	struct engine *e = *state;
	int64_t root = project(e);
	int64_t item = task(e, root, "t");
	json_t *answer;

	answer = run_op(e, LOCAL, "transition",
		"{'itemId':'%s','trigger':'start','consumedCredentials':['z']}", id_of(e, item));
	assert_refused(answer, "invalid_request");
	assert_string_equal(text_at(answer, "error.detail.fields.0.field"), "consumedCredentials[0]");
	answer = run_op(e, LOCAL, "transition", "{'itemId':'%s','trigger':'start','consumedCredentials':[]}",
		id_of(e, item));
	assert_ok(answer);
	assert_string_equal(text_at(answer, "consumedCredentials.0"), "x");
	item = task(e, root, "watches");
	answer = move(e, LOCAL, item, "start");
	assert_string_equal(text_at(answer, "consumedCredentials.0"), "z");
	assert_int_equal(count(e, "SELECT count(*) FROM lease"), 1);
	answer = run_op(e, LOCAL, "transition",
		"{'itemId':'%s','trigger':'start','consumedCredentials':['anything']}", id_of(e, root));
	assert_ok(answer);
	assert_refused(run_op(e, LOCAL, "transition",
			       "{'itemId':'%s','trigger':'start','consumedCredentials':['Not Legal']}", id_of(e, root)),
		"invalid_request");
}

static void a_heartbeat_prolongs_the_leases_too(void **state)
{
	struct engine *e = *state;
	int64_t root = project(e);
	int64_t item = task(e, root, "t");

	assert_ok(claim(e, P1, item, 600));
	assert_ok(move(e, P1, item, "start"));
	e->now += 50000;
	assert_ok(run_op(e, P1, "heartbeat", "{'itemId':'%s'}", id_of(e, item)));
	assert_int_equal(count(e, "SELECT expires_at FROM lease"), e->now + 60000);
}

static int sweep(struct tx *tx, void *arg, struct failure *f)
{
	return sweep_expired(tx, arg, f);
}

static void the_sweep_moves_dead_leases_to_history(void **state)
{
	struct engine *e = *state;
	int64_t item = task(e, project(e), "t");
	struct failure f;

	assert_ok(move(e, LOCAL, item, "start"));
	e->now += 60000;
	assert_int_equal(in_tx(e, LOCAL, sweep, NULL, &f), 0);
	assert_int_equal(count(e, "SELECT count(*) FROM lease"), 0);
	assert_int_equal(count(e, "SELECT count(*) FROM lease_history WHERE reason = 1"), 1);
}

static void a_cascade_that_lacks_a_resource_is_told(void **state)
{
	struct engine *e = *state;
	int64_t root = project(e);
	int64_t holder = task(e, root, "t");
	int64_t parent = task(e, root, "t");
	json_t *answer;

	assert_ok(move(e, LOCAL, holder, "start"));
	answer = move(e, LOCAL, task(e, parent, NULL), "start");
	assert_ok(answer);
	assert_true(json_is_true(at(answer, "cascadeEvents.0.resourceBlocked")));
	assert_string_equal(text_at(answer, "cascadeEvents.0.resources.0.name"), "x");
	assert_string_equal(state_of(e, parent), "queue ");
}

static void the_kill_switch_records_without_locking(void **state)
{
	struct engine *e = *state;
	int64_t root = project(e);
	json_t *answer;

	lease_set_enforced(false);
	assert_ok(move(e, LOCAL, task(e, root, "t"), "start"));
	answer = move(e, LOCAL, task(e, root, "t"), "start");
	lease_set_enforced(true);
	assert_ok(answer);
	assert_string_equal(text_at(answer, "consumedCredentials.0"), "x");
	assert_int_equal(count(e, "SELECT count(*) FROM lease"), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, engine_up, engine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_resources_or_none),
		T(every_way_out_of_work_releases),
		T(resume_takes_the_resources_again),
		T(a_lease_dies_to_the_millisecond),
		T(credentials_are_a_closed_set_where_resources_are_declared),
		T(a_heartbeat_prolongs_the_leases_too),
		T(the_sweep_moves_dead_leases_to_history),
		T(a_cascade_that_lacks_a_resource_is_told),
		T(the_kill_switch_records_without_locking),
	};

	return cmocka_run_group_tests_name("work lease", tests, NULL, NULL);
}
