/* Delays: one thread and a list of what is to come. */
#include "base/clock.h"
#include "fixture.h"

#include <pthread.h>
#include <stdlib.h>

struct item {
	struct item *next;
	int64_t at;
	void (*run)(void *context);
	void *context;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static struct item *items;
static pthread_t thread;
static bool started;
static bool stopping;

static struct item *take_due(int64_t now, int64_t *next)
{
	*next = now + 60000;
	for (struct item **at = &items; *at != NULL; at = &(*at)->next) {
		struct item *item = *at;

		if (item->at <= now) {
			*at = item->next;
			return item;
		}
		if (item->at < *next)
			*next = item->at;
	}
	return NULL;
}

static void *main_loop(void *arg)
{
	(void)pthread_mutex_lock(&lock);
	while (!stopping) {
		int64_t next;
		struct item *item = take_due(clock_mono_ms(), &next);
		struct timespec until;

		if (item != NULL) {
			(void)pthread_mutex_unlock(&lock);
			item->run(item->context);
			free(item);
			(void)pthread_mutex_lock(&lock);
			continue;
		}
		until = (struct timespec){next / 1000, (next % 1000) * 1000000};
		(void)pthread_cond_timedwait(&wake, &lock, &until);
	}
	(void)pthread_mutex_unlock(&lock);
	return arg;
}

void later(int64_t ms, void (*run)(void *context), void *context)
{
	struct item *item = malloc(sizeof(*item));
	struct item **end = &items;

	if (item == NULL)
		abort();
	*item = (struct item){NULL, clock_mono_ms() + ms, run, context};
	(void)pthread_mutex_lock(&lock);
	if (!started) {
		pthread_condattr_t attr;

		(void)pthread_condattr_init(&attr);
		(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
		(void)pthread_cond_init(&wake, &attr);
		started = pthread_create(&thread, NULL, main_loop, NULL) == 0;
	}
	while (*end != NULL)
		end = &(*end)->next;
	*end = item;
	(void)pthread_cond_signal(&wake);
	(void)pthread_mutex_unlock(&lock);
}

/* What was still to come runs now, so that every request is finished. */
void later_stop(void)
{
	(void)pthread_mutex_lock(&lock);
	stopping = true;
	(void)pthread_cond_signal(&wake);
	(void)pthread_mutex_unlock(&lock);
	if (started)
		(void)pthread_join(thread, NULL);
	while (items != NULL) {
		struct item *item = items;

		items = item->next;
		item->run(item->context);
		free(item);
	}
}
