/* Agents that nobody knows of any more: the server died after it had stored an end and before it had removed the files, the
 * provider was taken out of the configuration, or the database is another one. They are ended, and their directories go. */
#include "threads/loop.h"

#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct stray {
	struct threads *threads;
	struct host *host;
	char *directory;
};

static void stray_destroy(struct stray *stray)
{
	struct threads *threads = stray->threads;

	host_release(stray->host);
	directory_remove(stray->directory);
	free(stray->directory);
	free(stray);
	if (--threads->recovering == 0)
		loop_recovered(threads);
}

static void on_ready(struct host *host, void *context, const struct host_state *state)
{
	(void)context;
	if (!state->has_exited)
		host_end(host);
}

static void on_readable(struct host *host, void *context)
{
	struct str line;
	int64_t end;

	(void)context;
	while (host_next_line(host, &line, &end) == 1)
		host_consumed(host, end);
}

static void on_confirmed(struct host *host, void *context, int64_t seq)
{
	(void)host;
	(void)context;
	(void)seq;
}

static void on_exited(struct host *host, void *context, const struct host_exit *exit)
{
	struct stray *stray = context;

	(void)host;
	log_line(LOG_INFO, "threads", "an agent of no session has ended", {"directory", LOG_TEXT(stray->directory)},
		{"cause", LOG_TEXT(exit->cause)});
	stray_destroy(stray);
}

static const struct host_handlers handlers = {
	.ready = on_ready,
	.readable = on_readable,
	.confirmed = on_confirmed,
	.exited = on_exited,
};

static void end_stray(struct threads *threads, const char *directory)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct stray *stray = calloc(1, sizeof(*stray));
	struct failure f;

	if (stray == NULL)
		abort();
	failure_init(&f, arena);
	*stray = (struct stray){.threads = threads, .directory = strdup(directory)};
	if (stray->directory == NULL)
		abort();
	threads->recovering++;
	if (host_connect(&threads->loop, directory, -1, &handlers, stray, &stray->host, &f) == 0)
		return;
	log_line(LOG_WARN, "threads", "an agent of no session cannot be ended", {"directory", LOG_TEXT(directory)},
		{"reason", LOG_STRV(f.message)});
	threads->recovering--; /* the caller looks at it afterwards */
	free(stray->directory);
	free(stray);
}

static bool is_owned(const struct threads *threads, int64_t n)
{
	for (const struct session *session = threads->sessions; session != NULL; session = session->next)
		if (session->n == n)
			return true;
	return false;
}

int strays_end(struct threads *threads, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	DIR *dir = opendir(threads->directory);

	if (dir == NULL)
		return fail_errno(f, "open %s", threads->directory);
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		int64_t n;

		if (str_to_int(str_of(entry->d_name), &n) && !is_owned(threads, n))
			end_stray(threads, arena_printf(arena, "%s/%s", threads->directory, entry->d_name));
	}
	(void)closedir(dir);
	return 0;
}
