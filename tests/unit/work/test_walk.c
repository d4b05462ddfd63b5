/* A long random walk over a small graph: whatever is asked in whatever order, the invariants hold. */
#include "engine.h"

#include <stdlib.h>

#define ITEMS 40
#define STEPS 1500

static const char rules[] =
	"work_item_schemas:\n"
	"  gated:\n    default_traits: [uses-x]\n    notes:\n"
	"      - {key: why, role: queue, required: true, description: d}\n"
	"      - {key: verdict, role: review, required: false, description: d}\n"
	"  manual:\n    lifecycle: manual\n    notes: []\n"
	"traits:\n  uses-x:\n    resources:\n      - {key: x, mode: exclusive, ttlSeconds: 5}\n"
	"resources:\n  x: {description: X}\n";

SQL(SQL_WRONG_CHILD_COUNTS,
	"SELECT count(*) FROM child_tally t WHERE"
	" t.queue <> (SELECT count(*) FROM item i WHERE i.parent_n = t.item_n AND i.role = 0)"
	" OR t.work <> (SELECT count(*) FROM item i WHERE i.parent_n = t.item_n AND i.role = 1)"
	" OR t.review <> (SELECT count(*) FROM item i WHERE i.parent_n = t.item_n AND i.role = 2)"
	" OR t.blocked <> (SELECT count(*) FROM item i WHERE i.parent_n = t.item_n AND i.role = -1)"
	" OR t.terminal <> (SELECT count(*) FROM item i WHERE i.parent_n = t.item_n AND i.role = 3)");
SQL(SQL_WRONG_ROOT_COUNTS,
	"SELECT count(*) FROM root_tally t WHERE"
	" t.queue <> (SELECT count(*) FROM item i WHERE i.root_n = t.root_n AND i.role = 0)"
	" OR t.work <> (SELECT count(*) FROM item i WHERE i.root_n = t.root_n AND i.role = 1)"
	" OR t.terminal <> (SELECT count(*) FROM item i WHERE i.root_n = t.root_n AND i.role = 3)");
/* every role change is one version and one event */
SQL(SQL_CHANGES, "SELECT sum(version - 1) FROM item");
SQL(SQL_TRANSITIONS, "SELECT count(*) FROM event WHERE type = 5");
SQL(SQL_OPEN_LEASES, "SELECT count(*) FROM event WHERE type = 15");
SQL(SQL_LEASES, "SELECT (SELECT count(*) FROM lease) + (SELECT count(*) FROM lease_history)");

static int64_t pick(struct engine *e, const int64_t *items, unsigned *seed)
{
	(void)e;
	return items[(size_t)rand_r(seed) % ITEMS];
}

static void step(struct engine *e, const int64_t *items, unsigned *seed)
{
	static const char *const triggers[] = {
		"start", "start", "complete", "block", "hold", "resume", "cancel", "reopen"};
	enum who who = (enum who)((unsigned)rand_r(seed) % WHO_COUNT);
	int64_t item = pick(e, items, seed);

	switch (rand_r(seed) % 12) {
	case 0:
		(void)claim(e, who, item, 1 + rand_r(seed) % 5);
		break;
	case 1:
		(void)run_op(e, who, "claim", "{'selector':{'roles':['queue','work','blocked']},'ttlSeconds':3}");
		break;
	case 2:
		(void)run_op(e, who, "release", "{'itemId':'%s'}", id_of(e, item));
		break;
	case 3:
		(void)run_op(e, who, "heartbeat", "{'itemId':'%s'}", id_of(e, item));
		break;
	case 4:
		make_note(e, who, item, "why", ROLE_QUEUE, rand_r(seed) % 2 ? "because" : " ");
		break;
	case 5:
		if (rand_r(seed) % 8 == 0)
			(void)run_op(e, who, "complete_tree", "{'itemId':'%s'}", id_of(e, item));
		break;
	default:
		(void)move(e, who, item, triggers[(size_t)rand_r(seed) % 8]);
		break;
	}
	e->now += rand_r(seed) % 700;
}

static void invariants_hold_whatever_is_asked(void **state)
{
	static const char *const types[] = {NULL, NULL, "gated", "manual"};
	struct engine *e = *state;
	int64_t items[ITEMS];
	unsigned seed = 20260302;

	for (int i = 0; i < ITEMS; i++) {
		int64_t parent = i < 2 ? 0 : items[rand_r(&seed) % i];

		items[i] = make_item_as(e, parent, "x", (struct traits){.type = types[rand_r(&seed) % 4]});
		if (i > 2 && rand_r(&seed) % 3 == 0) /* edges lead from older to newer: no cycle */
			make_dep(e, items[rand_r(&seed) % i], items[i], rand_r(&seed) % 4);
	}
	push_rules(e, 0, rules);
	for (int i = 0; i < STEPS; i++)
		step(e, items, &seed);
	assert_int_equal(count(e, SQL_WRONG_CHILD_COUNTS), 0);
	assert_int_equal(count(e, SQL_WRONG_ROOT_COUNTS), 0);
	assert_true(count(e, SQL_TRANSITIONS) > STEPS / 10);
	assert_int_equal(count(e, SQL_CHANGES), count(e, SQL_TRANSITIONS));
	assert_int_equal(count(e, SQL_LEASES), count(e, SQL_OPEN_LEASES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(invariants_hold_whatever_is_asked, engine_up, engine_down),
	};

	return cmocka_run_group_tests_name("work walk", tests, NULL, NULL);
}
