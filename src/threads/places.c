/* How many runs may work at once: what is configured, and places that are lent for the time of a wait. */
#include "threads/places.h"

#include "base/limits.h"

#include <pthread.h>
#include <stdlib.h>

struct instance_limit {
	char id[65];
	int64_t runs;
};

static struct {
	pthread_mutex_t lock;
	int64_t runs, project, batch;
	struct instance_limit instances[LIMIT_PROVIDER_INSTANCES];
	size_t instance_count;
	int64_t *lent; /* threads; one may stand in it several times */
	size_t lent_count, lent_room;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t read_locked(const int64_t *value)
{
	int64_t copy;

	pthread_mutex_lock(&state.lock);
	copy = *value;
	pthread_mutex_unlock(&state.lock);
	return copy;
}

int64_t places_runs(void)
{
	return read_locked(&state.runs);
}

int64_t places_of_project(void)
{
	return read_locked(&state.project);
}

int64_t places_of_batch(void)
{
	return read_locked(&state.batch);
}

void places_set(int64_t runs, int64_t project, int64_t batch)
{
	pthread_mutex_lock(&state.lock);
	state.runs = runs;
	state.project = project;
	state.batch = batch;
	state.instance_count = 0;
	pthread_mutex_unlock(&state.lock);
}

void places_set_instance(struct str instance, int64_t runs)
{
	pthread_mutex_lock(&state.lock);
	if (state.instance_count < LIMIT_PROVIDER_INSTANCES && instance.n < sizeof(state.instances[0].id)) {
		struct instance_limit *limit = &state.instances[state.instance_count++];

		memcpy(limit->id, instance.p, instance.n);
		limit->id[instance.n] = '\0';
		limit->runs = runs;
	}
	pthread_mutex_unlock(&state.lock);
}

int64_t places_of_instance(struct str instance)
{
	int64_t runs = 0;

	pthread_mutex_lock(&state.lock);
	for (size_t i = 0; i < state.instance_count; i++)
		if (str_eq(instance, str_of(state.instances[i].id)))
			runs = state.instances[i].runs;
	pthread_mutex_unlock(&state.lock);
	return runs;
}

void places_lend(int64_t thread_n)
{
	pthread_mutex_lock(&state.lock);
	if (state.lent_count == state.lent_room) {
		size_t room = state.lent_room * 2 + 16;
		int64_t *more = realloc(state.lent, room * sizeof(*more));

		if (more == NULL)
			abort();
		state.lent = more;
		state.lent_room = room;
	}
	state.lent[state.lent_count++] = thread_n;
	pthread_mutex_unlock(&state.lock);
}

void places_take_back(int64_t thread_n)
{
	pthread_mutex_lock(&state.lock);
	for (size_t i = 0; i < state.lent_count; i++)
		if (state.lent[i] == thread_n) {
			state.lent[i] = state.lent[--state.lent_count];
			break;
		}
	pthread_mutex_unlock(&state.lock);
}

bool places_is_lent(int64_t thread_n)
{
	bool is_lent = false;

	pthread_mutex_lock(&state.lock);
	for (size_t i = 0; i < state.lent_count && !is_lent; i++)
		is_lent = state.lent[i] == thread_n;
	pthread_mutex_unlock(&state.lock);
	return is_lent;
}
