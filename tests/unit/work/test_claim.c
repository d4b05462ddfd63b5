/* Claims and selection. */
#include "engine.h"

#include <pthread.h>

static json_t *claim_next(struct engine *e, enum who who, const char *selector)
{
	return run_op(e, who, "claim", "{'selector':%s}", selector);
}

/* behaviour 6.1 */
static void a_claimed_item_is_refused_without_naming_the_holder(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item(e, 0, "A");
	json_t *answer;
	char *text;

	assert_ok(claim(e, P1, a, 60));
	answer = claim(e, P2, a, 60);
	assert_refused(answer, "claim_held");
	assert_int_equal(int_at(answer, "error.detail.retryAfterMs"), 60000);
	assert_string_equal(text_at(answer, "error.detail.expiresAt"), "2027-01-15T08:01:00.000Z");
	text = json_dumps(answer, JSON_COMPACT);
	assert_null(strstr(text, "p1"));
	free(text);
	assert_int_equal(events_of(e, a, EVENT_CLAIM_REJECTED), 1);
	assert_int_equal(load(e, a).claim_gen, 1);
}

/* behaviour 6.2 */
static void equality_is_expiry(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item(e, 0, "A");
	json_t *answer;

	assert_ok(claim(e, P1, a, 1));
	e->now += 999;
	assert_refused(claim(e, P2, a, 60), "claim_held");
	e->now += 1;
	answer = claim(e, P2, a, 60);
	assert_ok(answer);
	assert_int_equal(int_at(answer, "claimGen"), 2);
	assert_int_equal(events_of(e, a, EVENT_CLAIM_EXPIRED), 1);
}

/* behaviour 6.3 */
static void a_principal_holds_one_item(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item(e, 0, "A");
	int64_t b = make_item(e, 0, "B");
	int64_t c = make_item(e, 0, "C");
	json_t *answer;

	assert_ok(claim(e, P1, a, 60));
	assert_ok(claim(e, P2, c, 60));
	assert_refused(claim(e, P1, c, 60), "claim_held");
	assert_int_not_equal(load(e, a).claim_by, 0);
	answer = claim(e, P1, b, 60);
	assert_ok(answer);
	assert_string_equal(text_at(answer, "superseded.0"), id_of(e, a));
	assert_int_equal(load(e, a).claim_by, 0);
	assert_int_equal(count(e, "SELECT count(*) FROM event WHERE type = 12 AND data LIKE '%superseded%'"), 1);
}

/* behaviours 6.4, 6.5 */
static void claiming_again_prolongs(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item(e, 0, "A");
	json_t *answer;

	assert_ok(claim(e, LOCAL, a, 60));
	e->now += 5000;
	answer = run_op(e, LOCAL, "claim", "{'itemId':'%s','ttlSeconds':100,'claimRef':'w-7'}", id_of(e, a));
	assert_ok(answer);
	assert_true(json_is_true(at(answer, "refreshed")));
	assert_int_equal(int_at(answer, "claimGen"), 1);
	assert_int_equal(int_at(answer, "heartbeatEverySeconds"), 50);
	assert_string_equal(text_at(answer, "claimRef"), "w-7");
	assert_int_equal(load(e, a).claim_first_at, NOW);
	assert_int_equal(load(e, a).claim_at, NOW + 5000);
	assert_int_equal(load(e, a).claim_until, NOW + 105000);
}

static void a_lapsed_own_claim_is_taken_afresh(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item(e, 0, "A");
	json_t *answer;

	assert_ok(claim(e, P1, a, 1));
	e->now += 2000;
	answer = claim(e, P1, a, 60);
	assert_null(at(answer, "refreshed"));
	assert_int_equal(int_at(answer, "claimGen"), 2);
	assert_int_equal(load(e, a).claim_first_at, e->now);
}

/* behaviour 6.7 */
static void the_selector_gets_past_500_that_are_blocked(void **state)
{
	struct engine *e = *state;
	int64_t root = make_item_as(e, 0, "root", (struct traits){.role = ROLE_WORK});
	int64_t blocker = make_item_as(e, root, "blocker", (struct traits){.role = ROLE_WORK});
	int64_t free_one;
	json_t *answer;

	for (int i = 0; i < 500; i++)
		make_dep(e, blocker, make_item_as(e, root, "high", (struct traits){.priority = PRIORITY_HIGH}),
			ROLE_TERMINAL);
	free_one = make_item_as(e, root, "low", (struct traits){.priority = PRIORITY_LOW});
	answer = claim_next(e, P1, "{}");
	assert_string_equal(text_at(answer, "itemId"), id_of(e, free_one));
	assert_string_equal(text_at(answer, "item.title"), "low");
}

/* behaviour 6.8 */
static void priority_then_complexity_then_age(void **state)
{
	struct engine *e = *state;
	int64_t root = make_item_as(e, 0, "root", (struct traits){.role = ROLE_WORK});
	json_t *answer;

	make_item_as(e, root, "high/5", (struct traits){.priority = PRIORITY_HIGH, .complexity = 5});
	e->now++;
	make_item_as(e, root, "high/null", (struct traits){.priority = PRIORITY_HIGH});
	e->now++;
	make_item_as(e, 0, "high/2", (struct traits){.priority = PRIORITY_HIGH, .complexity = 2});
	e->now++;
	make_item_as(e, root, "medium/1", (struct traits){.priority = PRIORITY_MEDIUM, .complexity = 1});
	answer = run_op(e, P1, "next", "{'limit':4}");
	assert_ok(answer);
	assert_string_equal(text_at(answer, "items.0.title"), "high/2");
	assert_string_equal(text_at(answer, "items.1.title"), "high/5");
	assert_string_equal(text_at(answer, "items.2.title"), "high/null");
	assert_string_equal(text_at(answer, "items.3.title"), "medium/1");
	answer = run_op(e, P1, "next", "{'limit':4,'orderBy':'newest'}");
	assert_string_equal(text_at(answer, "items.0.title"), "medium/1");
	assert_string_equal(text_at(answer, "items.1.title"), "high/2");
	assert_string_equal(text_at(answer, "items.3.title"), "high/5");
	answer = run_op(e, P1, "next", "{'limit':1,'orderBy':'oldest'}");
	assert_string_equal(text_at(answer, "items.0.title"), "high/5");
}

/* Whatever the order and wherever they are looked for: here, in a project and below a small parent. */
static void equal_keys_are_ordered_by_id(void **state)
{
	static const char *const orders[] = {"priority", "oldest", "newest"};
	struct engine *e = *state;
	int64_t root = make_item_as(e, 0, "root", (struct traits){.role = ROLE_WORK});
	int64_t parent = make_item_as(e, root, "parent", (struct traits){.role = ROLE_WORK});
	const char *places[] = {"{}", arena_printf(e->arena, "{'rootId':'%s'}", id_of(e, root)),
		arena_printf(e->arena, "{'ancestorId':'%s'}", id_of(e, parent))};

	for (int i = 0; i < 8; i++)
		make_item(e, parent, "same");
	for (size_t i = 0; i < 9; i++) {
		const char *place = places[i / 3];
		json_t *answer = run_op(e, P1, "next", "{'limit':8,'orderBy':'%s'%s%s", orders[i % 3],
			place[1] == '}' ? "" : ",", place + 1);

		assert_int_equal(json_array_size(at(answer, "items")), 8);
		for (int k = 0; k < 7; k++)
			assert_true(strcmp(text_at(answer, arena_printf(e->arena, "items.%d.id", k)),
					    text_at(answer, arena_printf(e->arena, "items.%d.id", k + 1))) < 0);
	}
}

/* behaviour 6.9 */
static void what_stands_below_a_foreign_claim_is_left_alone(void **state)
{
	struct engine *e = *state;
	int64_t root = make_item_as(e, 0, "root", (struct traits){.role = ROLE_WORK});
	int64_t f = make_item_as(e, root, "F", (struct traits){.role = ROLE_WORK});
	int64_t a = make_item(e, f, "A");
	json_t *answer;

	assert_ok(claim(e, P2, f, 60));
	answer = claim_next(e, P1, arena_printf(e->arena, "{'ancestorId':'%s'}", id_of(e, f)));
	assert_ok(answer);
	assert_true(json_is_false(at(answer, "claimed")));
	assert_string_equal(text_at(answer, "reason"), "none_eligible");
	assert_int_equal(int_at(answer, "excluded.ancestorClaimed"), 1);
	/* one's own ancestor is fine for a claim, not for a look */
	answer = run_op(e, P2, "next", "{}");
	assert_int_equal(int_at(answer, "none.excluded.ancestorClaimed"), 1);
	answer = run_op(e, P2, "next", "{'includeClaimed':true}");
	assert_string_equal(text_at(answer, "items.0.title"), "A");
	assert_ok(claim(e, P1, a, 60));
}

/* behaviour 6.10 */
static void two_kinds_of_nothing(void **state)
{
	struct engine *e = *state;
	int64_t root = make_item_as(e, 0, "root", (struct traits){.role = ROLE_WORK});
	json_t *answer = claim_next(e, P1, "{}");

	assert_true(json_is_false(at(answer, "claimed")));
	assert_string_equal(text_at(answer, "reason"), "queue_empty");
	assert_null(at(answer, "retryAfterMs"));
	make_dep(e, root, make_item(e, root, "waits"), ROLE_TERMINAL);
	answer = claim_next(e, P1, "{}");
	assert_string_equal(text_at(answer, "reason"), "none_eligible");
	assert_int_equal(int_at(answer, "retryAfterMs"), 30000);
	assert_int_equal(int_at(answer, "excluded.dependencyBlocked"), 1);
	assert_int_equal(events_of(e, root, EVENT_CLAIM_REJECTED), 0);
}

/* behaviours 6.11, 6.12 */
static void a_heartbeat_prolongs_and_never_revives(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item(e, 0, "A");
	json_t *answer;

	assert_ok(claim(e, P1, a, 60));
	e->now += 1000;
	answer = run_op(e, P1, "heartbeat", "{'itemId':'%s'}", id_of(e, a));
	assert_string_equal(text_at(answer, "expiresAt"), "2027-01-15T08:01:01.000Z");
	assert_refused(run_op(e, P2, "heartbeat", "{'itemId':'%s'}", id_of(e, a)), "not_claim_holder");
	assert_int_equal(load(e, a).version, 1);
	e->now += 60000;
	answer = run_op(e, P1, "heartbeat", "{'itemId':'%s'}", id_of(e, a));
	assert_refused(answer, "not_claim_holder");
	assert_non_null(strstr(text_at(answer, "error.message"), "lapsed"));
	assert_int_equal(events_of(e, a, EVENT_CLAIM_EXPIRED), 1);
	assert_int_equal(load(e, a).version, 1);
}

static void a_holders_transition_keeps_the_claim_alive(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item(e, 0, "A");

	assert_ok(claim(e, P1, a, 60));
	e->now += 50000;
	assert_ok(move(e, P1, a, "start"));
	assert_int_equal(load(e, a).claim_until, e->now + 60000);
}

/* behaviour 6.13 */
static void an_ended_item_cannot_be_claimed(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item_as(e, 0, "A", (struct traits){.role = ROLE_TERMINAL});
	json_t *answer = claim(e, P1, a, 60);

	assert_refused(answer, "invalid_transition");
	assert_string_equal(text_at(answer, "error.detail.trigger"), "claim");
	assert_string_equal(text_at(answer, "error.detail.allowed.0"), "reopen");
	assert_refused(claim_next(e, P1, "{'roles':['terminal']}"), "invalid_request");
}

static void release_gives_back_and_tells_a_lapse(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item(e, 0, "A");
	json_t *answer;

	assert_ok(claim(e, P1, a, 60));
	answer = run_op(e, P1, "release", "{'itemId':'%s'}", id_of(e, a));
	assert_true(json_is_true(at(answer, "released")));
	assert_refused(run_op(e, P1, "release", "{'itemId':'%s'}", id_of(e, a)), "not_claim_holder");
	assert_ok(claim(e, P1, a, 1));
	e->now += 1000;
	answer = run_op(e, P1, "release", "{'itemId':'%s'}", id_of(e, a));
	assert_true(json_is_false(at(answer, "released")));
	assert_string_equal(text_at(answer, "reason"), "expired");
	assert_int_equal(load(e, a).version, 1);
	assert_refused(run_op(e, P2, "release", "{'itemId':'%s'}", id_of(e, a)), "not_claim_holder");
}

static int sweep(struct tx *tx, void *arg, struct failure *f)
{
	return sweep_expired(tx, arg, f);
}

/* behaviour 6.15 */
static void a_lapse_is_on_record_once(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item(e, 0, "A");
	struct failure f;

	assert_ok(claim(e, P1, a, 1));
	e->now += 5000;
	for (int i = 0; i < 2; i++)
		assert_int_equal(in_tx(e, LOCAL, sweep, NULL, &f), 0);
	assert_ok(move(e, P2, a, "start"));
	assert_ok(claim(e, P2, a, 60));
	assert_int_equal(events_of(e, a, EVENT_CLAIM_EXPIRED), 1);
}

/* behaviour 6.16, A01 (d) */
static void the_generation_fences_a_late_agent(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item(e, 0, "A");

	assert_ok(claim(e, P1, a, 1));
	e->now += 2000;
	assert_ok(claim(e, P1, a, 60));
	assert_refused(run_op(e, P1, "transition", "{'itemId':'%s','trigger':'start','claimGen':1}", id_of(e, a)),
		"not_claim_holder");
	assert_refused(
		run_op(e, P1, "heartbeat", "{'itemId':'%s','claimGen':1}", id_of(e, a)), "not_claim_holder");
	assert_ok(run_op(e, P1, "transition", "{'itemId':'%s','trigger':'start','claimGen':2}", id_of(e, a)));
}

/* ---- behaviour 6.14, A01 (c) ---- */

struct two_claims {
	struct call call;
	const char *first, *second;
	struct arena *arena;
	int second_rc;
	enum failure_code second_code;
};

static int claim_both(struct tx *tx, void *arg, struct failure *f)
{
	struct two_claims *both = arg;
	struct claim_args first = {.item = {.v = str_of(both->first), .set = true}};
	struct claim_args second = {.item = {.v = str_of(both->second), .set = true}};
	struct json_writer w;
	struct failure why;
	struct buf text;

	buf_init(&text, both->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	failure_init(&why, both->arena);
	if (advance_claim(tx, &both->call, &first, &w, f) != 0)
		return -1;
	both->second_rc = advance_claim(tx, &both->call, &second, &w, &why);
	both->second_code = why.code;
	return 0;
}

static void a_call_makes_one_claim_and_keeps_it(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item(e, 0, "A");
	int64_t b = make_item(e, 0, "B");
	struct two_claims both = {.first = id_of(e, a), .second = id_of(e, b), .arena = e->arena};
	struct failure f;

	call_init(&both.call, e->arena, &e->callers[P1], e->rules);
	assert_int_equal(in_tx(e, P1, claim_both, &both, &f), 0);
	call_finish(&both.call);
	assert_int_equal(both.second_rc, -1);
	assert_int_equal(both.second_code, FAIL_INVALID_REQUEST);
	assert_int_not_equal(load(e, a).claim_by, 0);
	assert_int_equal(load(e, b).claim_by, 0);
}

static void a_lapsed_claim_on_an_item_that_ends_is_on_record(void **state)
{
	struct engine *e = *state;
	int64_t a = make_item(e, 0, "A");

	assert_ok(claim(e, P1, a, 1));
	e->now += 1000;
	assert_ok(move(e, P2, a, "complete"));
	assert_int_equal(events_of(e, a, EVENT_CLAIM_EXPIRED), 1);
	assert_int_equal(events_of(e, a, EVENT_CLAIM_RELEASED), 0);
	assert_int_equal(load(e, a).claim_by, 0);
}

/* ---- behaviour 6.6, A01 (b) ---- */

#define WORKERS 16
#define ITEMS 10

struct worker {
	struct engine *e;
	struct caller caller;
	struct arena *arena;
	char id[16];
	bool has_claimed, was_told_none;
	struct call call;
	struct buf text;
	struct selector_args selector;
};

static int claim_any(struct tx *tx, void *arg, struct failure *f)
{
	struct worker *worker = arg;
	struct claim_args in = {.selector = {.v = &worker->selector, .set = true}};
	struct json_writer w;

	json_writer_init(&w, &worker->text);
	return advance_claim(tx, &worker->call, &in, &w, f);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct failure f;

	worker->arena = arena_create();
	failure_init(&f, worker->arena);
	call_init(&worker->call, worker->arena, &worker->caller, worker->e->rules);
	buf_init(&worker->text, worker->arena, SIZE_MAX);
	if (store_write(worker->e->store, claim_any, worker, &worker->caller.actor, worker->arena, &f) == 0) {
		worker->has_claimed = worker->call.has_claimed;
		worker->was_told_none = str_starts(buf_str(&worker->text), STR("\"claimed\":false"));
	}
	call_finish(&worker->call);
	arena_destroy(worker->arena);
	return NULL;
}

static void racing_workers_never_share_an_item(void **state)
{
	struct engine *e = *state;
	static struct worker workers[WORKERS];
	pthread_t threads[WORKERS];
	int winners = 0;
	int losers = 0;

	for (int i = 0; i < ITEMS; i++)
		make_item(e, 0, "x");
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){.e = e, .caller = e->callers[P1]};
		(void)snprintf(workers[i].id, sizeof(workers[i].id), "api:w%d", i);
		workers[i].caller.actor.id = str_of(workers[i].id);
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < WORKERS; i++) {
		(void)pthread_join(threads[i], NULL);
		winners += workers[i].has_claimed;
		losers += workers[i].was_told_none;
	}
	assert_int_equal(winners, ITEMS);
	assert_int_equal(losers, WORKERS - ITEMS);
	assert_int_equal(count(e, "SELECT count(DISTINCT claim_by) FROM item"), ITEMS);
	assert_int_equal(count(e, "SELECT count(*) FROM event WHERE type = 11"), ITEMS);
}

/* ---- where selection looks ---- */

static void filters_and_places_are_respected(void **state)
{
	struct engine *e = *state;
	int64_t one = make_item_as(e, 0, "one", (struct traits){.role = ROLE_WORK});
	int64_t two = make_item(e, 0, "two");
	int64_t deep = make_item_as(e, make_item_as(e, one, "mid", (struct traits){.role = ROLE_WORK}), "deep",
		(struct traits){.type = "bug", .priority = PRIORITY_LOW});
	json_t *answer;

	answer = run_op(e, P1, "next", "{'rootId':'%s'}", id_of(e, two));
	assert_string_equal(text_at(answer, "items.0.title"), "two");
	answer = run_op(e, P1, "next", "{'rootId':'%s'}", id_of(e, one));
	assert_string_equal(text_at(answer, "items.0.title"), "deep");
	answer = run_op(e, P1, "next", "{'types':['bug']}");
	assert_string_equal(text_at(answer, "items.0.title"), "deep");
	assert_string_equal(text_at(answer, "items.0.parentId"), id_of(e, load(e, deep).parent_n));
	answer = run_op(e, P1, "next", "{'types':['feature']}");
	assert_string_equal(text_at(answer, "none.reason"), "queue_empty");
	answer = run_op(e, P1, "next", "{'priorities':['low'],'limit':5}");
	assert_int_equal(json_array_size(at(answer, "items")), 1);
	answer = run_op(e, P1, "next", "{'parentId':null,'limit':5}");
	assert_int_equal(json_array_size(at(answer, "items")), 1);
	assert_string_equal(text_at(answer, "items.0.title"), "two");
	answer = run_op(e, P1, "next", "{'parentId':'%s'}", id_of(e, load(e, deep).parent_n));
	assert_string_equal(text_at(answer, "items.0.title"), "deep");
	answer = run_op(e, P1, "next", "{'roles':['work'],'ancestorId':'%s','fields':['ancestors','noteProgress']}",
		id_of(e, one));
	assert_string_equal(text_at(answer, "items.0.title"), "mid");
	assert_string_equal(text_at(answer, "items.0.ancestors.0.title"), "one");
	assert_refused(run_op(e, P1, "next", "{'limit':21}"), "invalid_request");
	assert_refused(run_op(e, P1, "next", "{'fields':['secrets']}"), "invalid_request");
}

static void a_large_subtree_is_found_through_its_project(void **state)
{
	struct engine *e = *state;
	int64_t root = make_item_as(e, 0, "root", (struct traits){.role = ROLE_WORK});
	int64_t left = make_item_as(e, root, "left", (struct traits){.role = ROLE_WORK});
	int64_t right = make_item_as(e, root, "right", (struct traits){.role = ROLE_WORK});
	json_t *answer;

	for (int i = 0; i <= LIMIT_SELECT_WALK; i++)
		make_item_as(e, left, "l", (struct traits){.priority = PRIORITY_HIGH});
	make_item(e, right, "first");
	e->now++;
	for (int i = 0; i < LIMIT_SELECT_WALK; i++)
		make_item(e, right, "r");
	answer = run_op(e, P1, "next", "{'ancestorId':'%s'}", id_of(e, right));
	assert_string_equal(text_at(answer, "items.0.title"), "first");
	answer = run_op(e, P1, "next", "{'parentId':'%s','orderBy':'newest'}", id_of(e, right));
	assert_string_equal(text_at(answer, "items.0.title"), "r");
}

static void a_caller_limited_to_projects_sees_nothing_else(void **state)
{
	struct engine *e = *state;
	int64_t mine[1];
	json_t *answer;

	make_item_as(e, make_item_as(e, 0, "theirs", (struct traits){.role = ROLE_WORK}), "hidden",
		(struct traits){.priority = PRIORITY_HIGH});
	mine[0] = make_item_as(e, 0, "mine", (struct traits){.role = ROLE_WORK});
	make_item(e, mine[0], "visible");
	e->callers[P1].roots = mine;
	e->callers[P1].root_count = 1;
	answer = run_op(e, P1, "next", "{'limit':5}");
	assert_int_equal(json_array_size(at(answer, "items")), 1);
	assert_string_equal(text_at(answer, "items.0.title"), "visible");
}

#define T(name) cmocka_unit_test_setup_teardown(name, engine_up, engine_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_claimed_item_is_refused_without_naming_the_holder),
		T(equality_is_expiry),
		T(a_principal_holds_one_item),
		T(claiming_again_prolongs),
		T(a_lapsed_own_claim_is_taken_afresh),
		T(the_selector_gets_past_500_that_are_blocked),
		T(priority_then_complexity_then_age),
		T(equal_keys_are_ordered_by_id),
		T(what_stands_below_a_foreign_claim_is_left_alone),
		T(two_kinds_of_nothing),
		T(a_heartbeat_prolongs_and_never_revives),
		T(a_holders_transition_keeps_the_claim_alive),
		T(an_ended_item_cannot_be_claimed),
		T(release_gives_back_and_tells_a_lapse),
		T(a_lapse_is_on_record_once),
		T(the_generation_fences_a_late_agent),
		T(a_call_makes_one_claim_and_keeps_it),
		T(a_lapsed_claim_on_an_item_that_ends_is_on_record),
		T(racing_workers_never_share_an_item),
		T(filters_and_places_are_respected),
		T(a_large_subtree_is_found_through_its_project),
		T(a_caller_limited_to_projects_sees_nothing_else),
	};

	return cmocka_run_group_tests_name("work claim", tests, NULL, NULL);
}
