/* Calls that wait. */
#include "threads/wait.h"

#include "base/clock.h"
#include "threads/loop.h"

#include <stdatomic.h>

static struct {
	pthread_mutex_t lock;
	struct waiter *first;
	atomic_int count; /* spares the writer the lock while nobody waits */
} up = {.lock = PTHREAD_MUTEX_INITIALIZER};

void waiter_add(struct waiter *waiter)
{
	pthread_mutex_lock(&up.lock);
	waiter->is_armed = waiter->is_dirty = false;
	waiter->next = up.first;
	waiter->tick_at = clock_mono_ms() + WAIT_TICK_MS;
	up.first = waiter;
	atomic_fetch_add(&up.count, 1);
	pthread_mutex_unlock(&up.lock);
}

void waiter_arm(struct threads *threads, struct waiter *waiter)
{
	pthread_mutex_lock(&up.lock);
	waiter->is_armed = true;
	pthread_mutex_unlock(&up.lock);
	threads_wake(threads);
}

/* With the lock held. */
static bool take_out(struct waiter *waiter)
{
	for (struct waiter **at = &up.first; *at != NULL; at = &(*at)->next)
		if (*at == waiter) {
			*at = waiter->next;
			atomic_fetch_sub(&up.count, 1);
			return true;
		}
	return false;
}

bool waiter_remove(struct waiter *waiter)
{
	bool was_up;

	pthread_mutex_lock(&up.lock);
	was_up = take_out(waiter);
	pthread_mutex_unlock(&up.lock);
	return was_up;
}

bool waiter_cancel(struct waiter *waiter)
{
	bool is_out = false;

	pthread_mutex_lock(&up.lock);
	if (waiter->is_armed)
		is_out = take_out(waiter);
	if (!is_out)
		waiter->deadline = 0;
	pthread_mutex_unlock(&up.lock);
	return is_out;
}

void waiters_expire(void)
{
	pthread_mutex_lock(&up.lock);
	for (struct waiter *waiter = up.first; waiter != NULL; waiter = waiter->next)
		waiter->deadline = 0;
	pthread_mutex_unlock(&up.lock);
}

void waiters_mark(int64_t thread_n)
{
	if (atomic_load(&up.count) == 0)
		return;
	pthread_mutex_lock(&up.lock);
	for (struct waiter *waiter = up.first; waiter != NULL; waiter = waiter->next)
		if (waiter->watched[0] == thread_n || waiter->watched[1] == thread_n)
			waiter->is_dirty = true;
	pthread_mutex_unlock(&up.lock);
}

bool waiters_are_due(void)
{
	bool are_due = false;

	if (atomic_load(&up.count) == 0)
		return false;
	pthread_mutex_lock(&up.lock);
	for (struct waiter *waiter = up.first; waiter != NULL && !are_due; waiter = waiter->next)
		are_due = waiter->is_armed && waiter->is_dirty;
	pthread_mutex_unlock(&up.lock);
	return are_due;
}

/* With the lock held: one that is to be woken, taken out. */
static struct waiter *next_to_wake(int64_t now)
{
	for (struct waiter *waiter = up.first; waiter != NULL; waiter = waiter->next)
		if (waiter->is_armed && (waiter->is_dirty || now >= waiter->deadline)) {
			(void)take_out(waiter);
			return waiter;
		}
	return NULL;
}

/* Under the lock, so that nobody's memory goes meanwhile: a tick may not block. */
static int64_t tick_all(int64_t now)
{
	int64_t next = 0;

	for (struct waiter *waiter = up.first; waiter != NULL; waiter = waiter->next) {
		int64_t at;

		if (waiter->is_armed && now >= waiter->tick_at) {
			waiter->tick_at = now + WAIT_TICK_MS;
			if (waiter->tick != NULL)
				waiter->tick(waiter);
		}
		at = waiter->deadline < waiter->tick_at ? waiter->deadline : waiter->tick_at;
		if (next == 0 || at < next)
			next = at;
	}
	return next;
}

int64_t waiters_serve(int64_t now)
{
	int64_t next;

	pthread_mutex_lock(&up.lock);
	for (;;) {
		struct waiter *waiter = next_to_wake(now);
		bool has_changed;

		if (waiter == NULL)
			break;
		has_changed = waiter->is_dirty;
		pthread_mutex_unlock(&up.lock);
		waiter->wake(waiter, has_changed ? WAIT_CHANGED : WAIT_TIMED_OUT);
		pthread_mutex_lock(&up.lock);
	}
	next = tick_all(now);
	pthread_mutex_unlock(&up.lock);
	return next;
}
