/* How a session ended is told the same by every driver: the host's cause is never lost. */
#include "providers/provider.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct {
	const char *cause, *code;
} ends[] = {
	{"exited", "process_exit"},
	{"ended", "process_exit"},
	{"deadline", "timeout"},
	{"line_too_long", "protocol_violation"},
	{"lost", "connection_lost"},
	{"spawn_failed", "spawn_failed"},
	{"stalled", "stalled"},
	{"start_timeout", "start_timeout"},
	{"stdout_closed", "stdout_closed"},
};

/* The failure of a session of this driver that ends before it was open. */
static struct agent_failure told(const struct driver *driver, const char *cause, struct arena *arena)
{
	struct provider_instance instance = {.id = STR("one"), .driver = driver};
	struct agent_config config = {.instance = &instance,
		.cwd = STR("/repo"),
		.runtime = RUNTIME_FULL_ACCESS,
		.interaction = INTERACTION_DEFAULT,
		.fresh = STR("11111111-2222-4333-8444-555555555555")};
	struct agent_exit exit = {.code = 3, .cause = str_of(cause), .stderr_tail = STR("first\nlast words\n")};
	struct agent *agent = driver->create(&config);
	struct agent_failure failure = {.code = STR("nothing")};
	struct agent_out out;

	agent_out_init(&out, arena);
	driver->begin(agent, 1000, &out);
	driver->exited(agent, &exit, &out);
	for (const struct agent_event *event = out.events; event != NULL; event = event->next)
		if (event->kind == EVENT_OPEN_FAILED)
			failure = event->failure;
	failure.code = str_dup(arena, failure.code);
	failure.message = str_dup(arena, failure.message);
	driver->destroy(agent);
	return failure;
}

static void every_driver_tells_the_cause_of_an_end_and_the_last_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < driver_count; i++) {
		if (driver_table[i]->constraint != NULL)
			continue;
		for (size_t k = 0; k < sizeof(ends) / sizeof(ends[0]); k++) {
			struct arena *arena = arena_create();
			struct agent_failure failure = told(driver_table[i], ends[k].cause, arena);

			if (!str_eq(failure.code, str_of(ends[k].code)))
				print_error("%s, %s: %.*s\n", driver_table[i]->kind, ends[k].cause, STRF(failure.code));
			assert_true(str_eq(failure.code, str_of(ends[k].code)));
			assert_non_null(memmem(failure.message.p, failure.message.n, "last words", strlen("last words")));
			arena_destroy(arena);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_driver_tells_the_cause_of_an_end_and_the_last_words)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
