#include "threads/helper.h"

#include "base/limits.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

/* Launches wait for networks and scripts; captures for one disk. */
static const size_t lane_threads[] = {[LANE_CAPTURE] = 2, [LANE_PREPARE] = 4};
#define MOST_THREADS 6

struct line {
	struct job *first, **end;
	size_t count;
};

struct worker {
	struct helper *helper;
	enum helper_lane lane;
	pthread_t thread;
};

struct helper {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct line lanes[HELPER_LANES], done;
	bool is_stopping;
	struct worker workers[MOST_THREADS];
	size_t worker_count;
	void (*tell)(void *context);
	void *context;
};

static void line_init(struct line *line)
{
	*line = (struct line){.end = &line->first};
}

static void line_add(struct line *line, struct job *job)
{
	job->next = NULL;
	*line->end = job;
	line->end = &job->next;
	line->count++;
}

static struct job *line_take(struct line *line)
{
	struct job *job = line->first;

	if (job == NULL)
		return NULL;
	line->first = job->next;
	line->count--;
	if (line->first == NULL)
		line->end = &line->first;
	return job;
}

/* NULL: it is over. */
static struct job *next_job(struct helper *helper, enum helper_lane lane)
{
	struct job *job = NULL;

	pthread_mutex_lock(&helper->lock);
	while (!helper->is_stopping && (job = line_take(&helper->lanes[lane])) == NULL)
		pthread_cond_wait(&helper->more, &helper->lock);
	pthread_mutex_unlock(&helper->lock);
	return job;
}

static void *work_on(void *arg)
{
	struct worker *worker = arg;
	struct helper *helper = worker->helper;
	struct job *job;

	while ((job = next_job(helper, worker->lane)) != NULL) {
		job->work(job);
		pthread_mutex_lock(&helper->lock);
		line_add(&helper->done, job);
		pthread_mutex_unlock(&helper->lock);
		helper->tell(helper->context);
	}
	return NULL;
}

/* Signals are for the thread that waits for them. */
static void start_workers(struct helper *helper)
{
	sigset_t all, before;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	for (size_t lane = 0; lane < HELPER_LANES; lane++)
		for (size_t i = 0; i < lane_threads[lane]; i++) {
			struct worker *worker = &helper->workers[helper->worker_count++];

			*worker = (struct worker){.helper = helper, .lane = (enum helper_lane)lane};
			if (pthread_create(&worker->thread, NULL, work_on, worker) != 0)
				abort();
		}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct helper *helper_start(void (*done)(void *context), void *context)
{
	struct helper *helper = calloc(1, sizeof(*helper));

	if (helper == NULL)
		abort();
	helper->tell = done;
	helper->context = context;
	pthread_mutex_init(&helper->lock, NULL);
	pthread_cond_init(&helper->more, NULL);
	for (size_t lane = 0; lane < HELPER_LANES; lane++)
		line_init(&helper->lanes[lane]);
	line_init(&helper->done);
	start_workers(helper);
	return helper;
}

bool helper_give(struct helper *helper, enum helper_lane lane, struct job *job)
{
	bool has_room;

	pthread_mutex_lock(&helper->lock);
	has_room = helper->lanes[lane].count < LIMIT_HELPER_QUEUE;
	if (has_room) {
		line_add(&helper->lanes[lane], job);
		/* Workers of both lanes wait for it. */
		pthread_cond_broadcast(&helper->more);
	}
	pthread_mutex_unlock(&helper->lock);
	return has_room;
}

struct job *helper_take(struct helper *helper)
{
	struct job *job;

	pthread_mutex_lock(&helper->lock);
	job = line_take(&helper->done);
	pthread_mutex_unlock(&helper->lock);
	return job;
}

void helper_stop(struct helper *helper)
{
	if (helper == NULL)
		return;
	pthread_mutex_lock(&helper->lock);
	helper->is_stopping = true;
	pthread_cond_broadcast(&helper->more);
	pthread_mutex_unlock(&helper->lock);
	for (size_t i = 0; i < helper->worker_count; i++)
		pthread_join(helper->workers[i].thread, NULL);
	pthread_mutex_destroy(&helper->lock);
	pthread_cond_destroy(&helper->more);
	free(helper);
}
