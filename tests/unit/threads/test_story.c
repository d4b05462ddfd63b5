/* Parents and children dispatch, delegate, finish, stop and read results at random; after each step the invariants hold,
 * and in the end every task was told of, read or given up exactly once. */
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>

#define STEPS 20000
#define CHAPTER 500    /* steps on one store: what is kept makes the looking slow */
#define BATCH 100      /* steps of one transaction */
#define RUNS_MAX 40    /* unfinished at the same time */

struct story {
	struct stage *st;
	uint64_t chapter, seed;
	int64_t step;
	bool is_ending; /* nothing new is begun */
	int64_t ends[DELIVERY_COUNT]; /* of tasks, by the state of their delivery */
};

static uint64_t draw(struct story *story, uint64_t below)
{
	story->seed ^= story->seed << 13;
	story->seed ^= story->seed >> 7;
	story->seed ^= story->seed << 17;
	return story->seed % below;
}

static struct str name_of(struct story *story, struct arena *arena, const char *kind)
{
	return str_printf(arena, "%s:%lld:%llu", kind, (long long)story->step, (unsigned long long)draw(story, 1000000));
}

/* One of the rows of a query at random: 1, 0 none, -1. */
static int pick(struct story *story, struct tx *tx, const char *from, int64_t *out, struct failure *f)
{
	struct arena *arena = tx->snapshot.arena;
	int64_t n = 0;

	if (query_int(&tx->snapshot, &n, f, str_z(arena, str_printf(arena, "SELECT count(*) FROM %s", from)), "") < 0)
		return -1;
	if (n == 0)
		return 0;
	return query_int(&tx->snapshot, out, f,
		str_z(arena, str_printf(arena, "SELECT x.n FROM %s ORDER BY x.n LIMIT 1 OFFSET %llu", from,
				   (unsigned long long)draw(story, (uint64_t)n))), "");
}

/* ---- what an agent says ---- */

static int hear_one(struct story *story, struct tx *tx, int64_t session, const struct agent_out *out, int64_t effect,
	int64_t attempt, struct failure *f)
{
	struct ingest in = {.session_n = session, .events = out->events, .driver_state = STR("{}"), .spool_offset = story->step,
		.effect_n = effect, .begins_attempt_n = attempt};

	return ingest(tx, &in, f);
}

static int open_session(struct story *story, struct tx *tx, int64_t thread, int64_t *out, struct failure *f)
{
	struct agent_caps caps = {.supportsInterrupt = true, .supportsActiveSteering = draw(story, 2) == 0,
		.supportsSteeringByInterruptRestart = true};
	struct provider_session_row row = {.id = name_of(story, tx->snapshot.arena, "session"), .thread_n = thread,
		.driver = STR("codex"), .instance_id = STR("one"), .status = SESSION_STARTING, .cwd = STR("/"),
		.capabilities = STR("{}"), .created_at = tx->snapshot.now, .updated_at = tx->snapshot.now};
	struct agent_out heard;

	agent_out_init(&heard, tx->snapshot.arena);
	agent_out_event(&heard, EVENT_OPENED)->caps = &caps;
	if (PUT(tx, provider_session, &row, thread, f) != 0 || put_session_state(tx, row.n, f) != 0)
		return -1;
	*out = row.n;
	return hear_one(story, tx, row.n, &heard, 0, 0, f);
}

static int session(struct story *story, struct tx *tx, int64_t thread, int64_t *out, struct failure *f)
{
	int rc = query_int(&tx->snapshot, out, f, "SELECT n FROM provider_session WHERE thread_n = $1 AND status < 4", "i", thread);

	return rc == 0 ? open_session(story, tx, thread, out, f) : rc < 0 ? -1 : 0;
}

/* ---- steps ---- */

static int act_say(struct story *story, struct tx *tx, struct failure *f)
{
	struct thread_row row = {.id = name_of(story, tx->snapshot.arena, "thread"), .project_n = story->st->project,
		.title = STR("t"), .instance_id = STR("one"), .namespace = STR("n"), .created_at = tx->snapshot.now};
	struct dispatch in = {.mode = DISPATCH_QUEUE, .text = STR("go"), .created_by = BY_USER};
	struct dispatched out;
	int64_t busy = 0;

	if (query_int(&tx->snapshot, &busy, f, "SELECT count(*) FROM thread_run WHERE status < 5", "") < 0)
		return -1;
	if (busy > RUNS_MAX)
		return 0;
	if (draw(story, 3) == 0) {
		if (tx_next(tx, SEQ_thread, &row.n, f) != 0)
			return -1;
		row.root_n = row.n;
		in.thread_n = row.n;
		if (PUT(tx, thread, &row, row.n, f) != 0)
			return -1;
	} else {
		int rc = pick(story, tx, "thread x WHERE x.archived_at IS NULL", &in.thread_n, f);

		if (rc <= 0)
			return rc;
	}
	return message_dispatch(tx, &in, &out, f);
}

static int act_delegate(struct story *story, struct tx *tx, struct failure *f)
{
	struct thread_run_row run;
	struct thread_row parent;
	struct subagent_row task;
	struct delegation in = {.run = &run, .parent = &parent, .command_id = name_of(story, tx->snapshot.arena, "command"),
		.task = STR("do it"), .driver = STR("codex"), .instance_id = draw(story, 2) == 0 ? STR("one") : STR("two"),
		.wake = (enum completion_wake)draw(story, 2)};
	int64_t n;
	int rc = pick(story, tx,
		"thread_run x JOIN thread t ON t.n = x.thread_n WHERE x.status = 3 AND t.archived_at IS NULL AND t.depth < 6 AND"
		" (SELECT count(*) FROM subagent s WHERE s.thread_n = t.n AND s.status < 3) < 6", &n, f);

	if (rc <= 0)
		return rc;
	if (NEED(&tx->snapshot, thread_run, n, &run, f) != 0 || NEED(&tx->snapshot, thread, run.thread_n, &parent, f) != 0)
		return -1;
	return delegate(tx, &in, &task, f);
}

static int give_start(struct story *story, struct tx *tx, int64_t effect, int64_t run_n, int64_t on, struct failure *f)
{
	struct thread_run_row run;
	struct agent_out out;

	if (NEED(&tx->snapshot, thread_run, run_n, &run, f) != 0)
		return -1;
	agent_out_init(&out, tx->snapshot.arena);
	if (draw(story, 20) == 0)
		agent_out_event(&out, EVENT_OPEN_FAILED)->failure.message = STR("no");
	else if (draw(story, 10) != 0)
		(void)agent_out_event(&out, EVENT_TURN_STARTED);
	return hear_one(story, tx, on, &out, effect, run.attempt_n, f);
}

/* The first effect of a thread, as the loop of sessions gives them. */
static int act_effect(struct story *story, struct tx *tx, struct failure *f)
{
	struct ingest over = {.driver_state = STR("{}"), .is_over = true};
	struct snapshot *s = &tx->snapshot;
	struct agent_out out;
	int64_t effect, thread, type = 0, run = 0, turn;
	int rc = pick(story, tx, "effect x WHERE x.type < 5 AND NOT EXISTS (SELECT 1 FROM effect e WHERE e.thread_n = x.thread_n AND e.n < x.n AND e.type < 5)",
		&effect, f);

	if (rc <= 0)
		return rc;
	if (query_int(s, &thread, f, "SELECT thread_n FROM effect WHERE n = $1", "i", effect) < 0
		|| query_int(s, &run, f, "SELECT run_n FROM effect WHERE n = $1", "i", effect) < 0
		|| query_int(s, &type, f, "SELECT type FROM effect WHERE n = $1", "i", effect) < 0
		|| session(story, tx, thread, &over.session_n, f) != 0)
		return -1;
	rc = query_int(s, &turn, f, "SELECT n FROM provider_turn WHERE thread_n = $1 AND status < 3", "i", thread);
	if (rc < 0)
		return -1;
	if (type == EFFECT_START_TURN)
		return rc == 1 ? 0 : give_start(story, tx, effect, run, over.session_n, f);
	over.effect_n = effect;
	if (type == EFFECT_CLOSE_SESSION)
		return ingest(tx, &over, f);
	agent_out_init(&out, s->arena);
	if (type == EFFECT_INTERRUPT_TURN && rc == 1 && draw(story, 4) != 0)
		agent_out_event(&out, EVENT_TURN_ENDED)->status = AGENT_INTERRUPTED;
	return hear_one(story, tx, over.session_n, &out, effect, 0, f);
}

/* What the helper does, which may come late. */
static int act_capture(struct story *story, struct tx *tx, struct failure *f)
{
	struct captured in = {.cwd = STR("/"), .checkpoint = {.ref = STR("refs/x"), .status = (enum checkpoint_status)draw(story, 3)}};
	struct snapshot *s = &tx->snapshot;
	int64_t type;
	int rc = pick(story, tx, "effect x WHERE x.type IN (7, 8)", &in.effect_n, f);

	if (rc <= 0)
		return rc;
	if (query_int(s, &type, f, "SELECT type FROM effect WHERE n = $1", "i", in.effect_n) < 0
		|| query_int(s, &in.run_n, f, "SELECT run_n FROM effect WHERE n = $1", "i", in.effect_n) < 0)
		return -1;
	in.ordinal = type == EFFECT_CAPTURE;
	return checkpoint_put(tx, &in, f);
}

static int act_turn(struct story *story, struct tx *tx, struct failure *f)
{
	static const enum agent_status ends[] = {AGENT_COMPLETED, AGENT_COMPLETED, AGENT_COMPLETED, AGENT_FAILED, AGENT_INTERRUPTED,
		AGENT_CANCELLED};
	struct provider_turn_row turn;
	struct agent_out out;
	struct agent_event *event;
	int64_t n, on;
	int rc = pick(story, tx, "provider_turn x WHERE x.status < 3", &n, f);

	if (rc <= 0)
		return rc;
	if (NEED(&tx->snapshot, provider_turn, n, &turn, f) != 0 || session(story, tx, turn.thread_n, &on, f) != 0)
		return -1;
	agent_out_init(&out, tx->snapshot.arena);
	if (turn.status == WORK_PENDING)
		(void)agent_out_event(&out, EVENT_TURN_STARTED);
	if (draw(story, 3) == 0)
		agent_out_event(&out, EVENT_ITEM)->item = (struct agent_item){.kind = ITEM_TEXT,
			.key = name_of(story, tx->snapshot.arena, "item"), .status = draw(story, 2) == 0 ? AGENT_RUNNING : AGENT_COMPLETED,
			.delta = STR("words")};
	if (draw(story, 8) == 0)
		agent_out_event(&out, EVENT_BACKGROUND)->body = draw(story, 2) == 0 ? STR("[]") : STR("[{\"taskId\":\"t\"}]");
	if (draw(story, 6) == 0) {
		event = agent_out_event(&out, EVENT_REQUEST);
		event->request = (struct agent_request){.key = name_of(story, tx->snapshot.arena, "request"), .prompt = STR("{}")};
	}
	if (draw(story, 2) == 0) {
		event = agent_out_event(&out, EVENT_TURN_ENDED);
		event->status = ends[draw(story, 6)];
		event->failure.message = STR("no");
		event->is_broken = draw(story, 30) == 0;
	}
	return hear_one(story, tx, on, &out, 0, 0, f);
}

static int act_roster(struct story *story, struct tx *tx, struct failure *f)
{
	struct provider_thread_row conversation;
	struct agent_out out;
	int64_t n;
	int rc = pick(story, tx, "provider_thread x JOIN provider_session s ON s.n = x.session_n WHERE x.background <> '[]'"
		" AND s.status < 4", &n, f);

	if (rc <= 0)
		return rc;
	if (NEED(&tx->snapshot, provider_thread, n, &conversation, f) != 0)
		return -1;
	agent_out_init(&out, tx->snapshot.arena);
	agent_out_event(&out, EVENT_BACKGROUND)->body = STR("[]");
	return hear_one(story, tx, conversation.session_n, &out, 0, 0, f);
}

static int act_over(struct story *story, struct tx *tx, struct failure *f)
{
	struct ingest in = {.driver_state = STR("{}"), .is_over = true};
	int rc;

	if (draw(story, 4) != 0)
		return 0;
	rc = pick(story, tx, "provider_session x WHERE x.status < 4", &in.session_n, f);
	return rc <= 0 ? rc : ingest(tx, &in, f);
}

static int act_interrupt(struct story *story, struct tx *tx, struct failure *f)
{
	struct thread_run_row run;
	int64_t n;
	int rc;

	if (draw(story, 3) != 0)
		return 0;
	rc = pick(story, tx, "thread_run x WHERE x.status IN (2, 3) OR (x.status = 1 AND x.is_wake = 0)", &n, f);
	if (rc <= 0)
		return rc;
	return NEED(&tx->snapshot, thread_run, n, &run, f) != 0 ? -1 : run_interrupt(tx, &run, STR("stop"), f);
}

static int act_steer(struct story *story, struct tx *tx, struct failure *f)
{
	struct dispatch in = {.mode = draw(story, 2) == 0 ? DISPATCH_STEER : DISPATCH_RESTART, .text = STR("left")};
	struct thread_run_row run;
	struct dispatched out;
	int64_t n;
	int rc = pick(story, tx, "thread_run x JOIN thread t ON t.n = x.thread_n WHERE x.status = 3 AND t.archived_at IS NULL", &n, f);

	if (rc <= 0)
		return rc;
	if (NEED(&tx->snapshot, thread_run, n, &run, f) != 0)
		return -1;
	rc = run_is_steerable(&tx->snapshot, &run, f);
	in.thread_n = run.thread_n;
	return rc <= 0 ? rc : message_dispatch(tx, &in, &out, f);
}

static int act_read(struct story *story, struct tx *tx, struct failure *f)
{
	int64_t n;
	int rc;

	if (draw(story, 2) == 0)
		return 0;
	rc = pick(story, tx, "subagent x WHERE x.delivery < 3", &n, f);
	if (rc <= 0)
		return rc;
	return draw(story, 5) == 0 ? delivery_dispose(tx, n, f) : delivery_acknowledge(tx, n, 0, f);
}

static int act_archive(struct story *story, struct tx *tx, struct failure *f)
{
	struct thread_row row;
	int64_t n;
	int rc;

	if (draw(story, 40) != 0)
		return 0;
	rc = pick(story, tx, "thread x WHERE x.archived_at IS NULL AND NOT EXISTS (SELECT 1 FROM thread_run r"
		" WHERE r.thread_n = x.n AND r.status = 1)", &n, f);
	if (rc <= 0)
		return rc;
	if (NEED(&tx->snapshot, thread, n, &row, f) != 0)
		return -1;
	row.archived_at = tx->snapshot.now;
	return PUT(tx, thread, &row, n, f);
}

static int (*const acts[])(struct story *story, struct tx *tx, struct failure *f) = {act_say, act_delegate, act_effect,
	act_effect, act_effect, act_capture, act_capture, act_turn, act_turn, act_turn, act_turn, act_roster, act_over, act_interrupt, act_steer, act_read, act_archive};

#define ACTS (sizeof(acts) / sizeof(acts[0]))

static int act_towards_the_end(struct story *story, struct tx *tx, struct failure *f)
{
	if (act_effect(story, tx, f) != 0 || act_turn(story, tx, f) != 0 || act_capture(story, tx, f) != 0)
		return -1;
	return act_roster(story, tx, f);
}

static int act(struct story *story, struct tx *tx, struct failure *f)
{
	return story->is_ending ? act_towards_the_end(story, tx, f) : acts[draw(story, ACTS)](story, tx, f);
}

/* One batch of steps in one transaction: broken invariants are looked for after each. */
static int play(struct tx *tx, void *arg, struct failure *f)
{
	struct story *story = arg;

	for (int i = 0; i < BATCH; i++) {
		AUTO(arena_destroyp) struct arena *arena = arena_create();
		struct arena *outer = tx->snapshot.arena;
		int faults;

		tx->snapshot.arena = arena;
		tx->snapshot.now = ++story->st->now;
		story->step++;
		if (act(story, tx, f) != 0) {
			(void)fprintf(stderr, "step %lld: %.*s\n", (long long)story->step, STRF(f->message));
			f->message = STR("a step failed");
			tx->snapshot.arena = outer;
			return -1;
		}
		faults = broken_invariants(&tx->snapshot);
		tx->snapshot.arena = outer;
		if (faults != 0)
			return (fail)(f, FAIL_INTERNAL, "step %lld broke %d invariants", (long long)story->step, faults);
	}
	return 0;
}

static void play_on(struct story *story)
{
	if (in_tx(story->st, play, story) != 0)
		fail_msg("chapter %llu: %.*s", (unsigned long long)story->chapter, STRF(story->st->why.message));
}

static bool is_unfinished(struct stage *st)
{
	return count(st, "SELECT count(*) FROM thread_run WHERE status < 5") != 0;
}

/* Told, read or given up: nothing is left in between, and nothing was told twice. */
static void assert_all_was_told_once(struct stage *st)
{
	assert_int_equal(count(st, "SELECT count(*) FROM subagent WHERE status >= 3 AND delivery < 3"), 0);
	assert_int_equal(count(st, "SELECT count(*) FROM subagent s WHERE s.delivery = 4 AND 1 <> (SELECT count(*) FROM message m"
		" JOIN thread_run r ON r.n = m.run_n JOIN json_each(m.completion, '$.taskNs') j WHERE m.thread_n = s.thread_n"
		" AND m.completion IS NOT NULL AND (r.status <> 8 OR r.started_at IS NOT NULL) AND j.value = s.n)"), 0);
}

static void tell_chapter(struct story *story)
{
	while (story->step < CHAPTER)
		play_on(story);
	story->is_ending = true;
	while (is_unfinished(story->st) && story->step < CHAPTER * 4)
		play_on(story);
	assert_false(is_unfinished(story->st));
	assert_all_was_told_once(story->st);
	for (int state = DELIVERY_ACKNOWLEDGED; state <= DELIVERY_DISPOSED; state++)
		story->ends[state] += count(story->st, "SELECT count(*) FROM subagent WHERE status >= 3 AND delivery = %d", state);
}

static void a_long_story_keeps_every_promise(void **state)
{
	const char *first = getenv("DAIS_STORY_CHAPTER");
	struct story story = {.chapter = first == NULL ? 0 : strtoull(first, NULL, 10)};

	for (int i = 0; i < STEPS / CHAPTER; i++, story.chapter++) {
		story.seed = (story.chapter + 1) * 0x9E3779B97F4A7C15ULL;
		story.step = 0;
		story.is_ending = false;
		assert_int_equal(stage_up(state), 0);
		story.st = *state;
		places_set(story.chapter % 3 == 0 ? 0 : 5, 0, story.chapter % 3 == 1 ? 3 : 0);
		tell_chapter(&story);
		assert_int_equal(stage_down(state), 0);
	}
	for (int end = DELIVERY_ACKNOWLEDGED; end <= DELIVERY_DISPOSED; end++)
		assert_true(story.ends[end] > STEPS / 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_story_keeps_every_promise),
	};

	return cmocka_run_group_tests_name("threads story", tests, NULL, NULL);
}
