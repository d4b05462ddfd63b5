/* The alarms of a host, on the monotonic clock. When the host itself was stopped or suspended, every alarm moves by as
 * long as that took: the program was not given that time, and an end of everything at once helps nobody. */
#include "agents/attempt.h"

#include "base/clock.h"
#include "base/limits.h"

static void rearm(struct attempt *a);

static void notice_pause(struct attempt *a, int64_t now)
{
	int64_t late = now - a->expected;

	if (a->expected == 0 || late <= LIMIT_AGENT_PAUSED_MS)
		return;
	a->expected = now;
	for (int i = 0; i < ALARMS; i++)
		if (a->due[i] != 0)
			a->due[i] += late;
}

static void on_timer(uv_timer_t *timer)
{
	struct attempt *a = timer->data;
	int64_t now = clock_mono_ms();

	notice_pause(a, now);
	for (int i = 0; i < ALARMS; i++) {
		if (a->due[i] == 0 || a->due[i] > now)
			continue;
		a->due[i] = 0;
		attempt_alarm(a, (enum alarm)i);
	}
	rearm(a);
}

static void rearm(struct attempt *a)
{
	int64_t now = clock_mono_ms();
	int64_t next = 0;

	for (int i = 0; i < ALARMS; i++)
		if (a->due[i] != 0 && (next == 0 || a->due[i] < next))
			next = a->due[i];
	a->expected = 0;
	if (uv_is_closing((const uv_handle_t *)&a->timer))
		return;
	if (next == 0) {
		(void)uv_timer_stop(&a->timer);
		return;
	}
	/* Not later than this, so that a pause shows. */
	if (next > now + LIMIT_AGENT_PAUSED_MS)
		next = now + LIMIT_AGENT_PAUSED_MS;
	a->expected = next;
	uv_update_time(&a->loop);
	(void)uv_timer_start(&a->timer, on_timer, next > now ? (uint64_t)(next - now) : 0, 0);
}

void clock_open(struct attempt *a)
{
	(void)uv_timer_init(&a->loop, &a->timer);
	a->timer.data = a;
}

void alarm_set(struct attempt *a, enum alarm alarm, int64_t ms)
{
	int64_t now = clock_mono_ms();

	notice_pause(a, now);
	a->due[alarm] = now + ms;
	rearm(a);
}

void alarm_clear(struct attempt *a, enum alarm alarm)
{
	a->due[alarm] = 0;
}
