/* How the statements of the engine reach their rows: no table that grows is walked, nothing is sorted without a bound. */
#include "stage.h"

#include "plans.h"

/* Tables that grow with the work kept. */
static const char *const large[] = {"thread", "message", "thread_run", "run_attempt", "node", "subagent", "context_transfer",
	"turn_item", "item_chunk", "runtime_request", "provider_session", "provider_thread", "provider_turn", "command_receipt",
	"event", NULL};

static const struct plan_sort sorts[] = {
	{"WHERE r.status = 1 AND r.status < 5", "runs that wait"},
	{NULL, NULL},
};

static const char *const none[] = {NULL};
static const struct plan_rules rules = {large, sorts, none};

static void ask(struct stage *st, int64_t run)
{
	struct agent_out *out = hear(st);
	struct agent_event *event;

	agent_out_event(out, EVENT_REQUEST)->request = (struct agent_request){.key = STR("q"), .prompt = STR("{}")};
	event = agent_out_event(out, EVENT_REQUEST_ENDED);
	event->key = STR("q");
	agent_out_event(out, EVENT_BACKGROUND)->body = STR("[]");
	add_item(out, ITEM_TEXT, "m", AGENT_RUNNING, "half", NULL);
	tell(st, session_of(st, run_row(st, run).thread_n), out);
}

/* Everything that happens to runs and tasks, once. */
static void live(struct stage *st)
{
	int64_t parent = make_thread(st);
	int64_t run = say(st, parent, "x");
	struct subagent_row tasks[3];
	struct dispatched sent;

	begin(st, run);
	for (int i = 0; i < 3; i++)
		tasks[i] = delegate_task(st, parent, "x", i == 0 ? WAKE_SETTLED_ONLY : WAKE_ALWAYS);
	ask(st, run);
	(void)say(st, parent, "later");
	assert_int_equal(try_dispatch(st, (struct dispatch){.thread_n = parent, .mode = DISPATCH_STEER, .text = STR("l")}, &sent), 0);
	assert_int_equal(try_dispatch(st, (struct dispatch){.thread_n = parent, .mode = DISPATCH_RESTART, .text = STR("r")}, &sent),
		0);
	finish(st, run, AGENT_INTERRUPTED, NULL);
	begin(st, run);
	for (int i = 0; i < 3; i++)
		work(st, tasks[i].child_run_n, "done");
	acknowledge(st, tasks[1].n, run);
	finish(st, run, AGENT_COMPLETED, "done");
	assert_int_equal(try_interrupt(st, blocking(st, parent)), 0);
	assert_int_equal(try_tell(st, (struct ingest){.session_n = session_of(st, parent), .is_over = true}, NULL), 0);
}

static void the_engine_reaches_its_rows_through_indexes(void **state)
{
	struct stage *st = *state;

	plans_forget();
	live(st);
	plans_dump();
	assert_int_equal(plans_judge(st->path, &rules, "engine"), 0);
	plans_forget();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_up, stage_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_engine_reaches_its_rows_through_indexes),
	};

	plans_watch();
	return cmocka_run_group_tests_name("threads plans", tests, NULL, NULL);
}
