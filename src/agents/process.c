/* Other processes, by /proc. A process is its number and its start time: numbers are given again. */
#include "agents/private.h"

#include "base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct process {
	struct process_id id;
	pid_t parent;
	bool is_zombie, is_meant;
};

/* The whole file, up to `size` bytes; -1 when it cannot be read. */
static ssize_t read_file(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64];
	size_t n = 0;
	ssize_t got;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while (n < size && (got = read(fd, out + n, size - n)) > 0)
		n += (size_t)got;
	(void)close(fd);
	return (ssize_t)n;
}

static bool process_look(pid_t pid, struct process *out)
{
	char text[1024];
	ssize_t n = read_file(pid, "stat", text, sizeof(text) - 1);
	const char *after;
	long long started;
	char state;
	int parent;

	if (n <= 0)
		return false;
	text[n] = '\0';
	after = strrchr(text, ')'); /* the name before it may hold anything */
	if (after == NULL || sscanf(after + 1,
				     " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lld", &state,
				     &parent, &started) != 3)
		return false;
	*out = (struct process){
		.id = {pid, started}, .parent = (pid_t)parent, .is_zombie = state == 'Z' || state == 'X' || state == 'x'};
	return true;
}

int64_t process_started(pid_t pid)
{
	struct process process;

	return pid > 0 && process_look(pid, &process) ? process.id.started : -1;
}

/* Is `marker` one of its variables? */
static bool has_marker(pid_t pid, struct str marker)
{
	size_t size = 16384;
	char *env = NULL;
	bool found = false;
	ssize_t n;

	do { /* one byte before it: every variable follows a NUL */
		size *= 2;
		free(env);
		env = malloc(size);
		if (env == NULL)
			abort();
		n = read_file(pid, "environ", env + 1, size - 2);
	} while (n == (ssize_t)size - 2);
	if (n > 0) {
		char *needle = malloc(marker.n + 2);

		if (needle == NULL)
			abort();
		needle[0] = '\0';
		memcpy(needle + 1, marker.p, marker.n);
		needle[marker.n + 1] = '\0';
		env[0] = '\0';
		env[n + 1] = '\0';
		found = memmem(env, (size_t)n + 2, needle, marker.n + 2) != NULL;
		free(needle);
	}
	explicit_bzero(env, size);
	free(env);
	return found;
}

static bool is_ours(int proc, const char *name)
{
	struct stat st;

	return fstatat(proc, name, &st, 0) == 0 && st.st_uid == geteuid();
}

struct list {
	struct process *p;
	size_t n, cap;
};

static void list_add(struct list *list, const struct process *process)
{
	if (list->n == list->cap) {
		list->cap = list->cap == 0 ? 256 : list->cap * 2;
		list->p = realloc(list->p, list->cap * sizeof(*list->p));
		if (list->p == NULL)
			abort();
	}
	list->p[list->n++] = *process;
}

static int list_read(struct list *list, const struct process_set *set)
{
	DIR *dir = opendir("/proc");
	pid_t self = getpid();

	if (dir == NULL)
		return -1;
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		struct process process;

		if (!isdigit((unsigned char)entry->d_name[0]) || !process_look((pid_t)atoi(entry->d_name), &process) ||
			process.id.pid == self)
			continue;
		process.is_meant = (process.id.pid == set->agent.pid && process.id.started == set->agent.started) ||
			(set->marker.n > 0 && is_ours(dirfd(dir), entry->d_name) &&
				has_marker(process.id.pid, set->marker));
		list_add(list, &process);
	}
	(void)closedir(dir);
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->id.pid > y->id.pid) - (x->id.pid < y->id.pid);
}

static bool parent_is_meant(const struct list *list, const struct process_set *set, const struct process *child)
{
	const struct process key = {.id.pid = child->parent};
	const struct process *parent;

	if (child->parent == set->ancestor && set->ancestor != 0)
		return true;
	parent = bsearch(&key, list->p, list->n, sizeof(key), by_pid);
	return parent != NULL && parent->is_meant;
}

/* Descendants of what is meant are meant; numbers wrap around, so a child may stand before its parent. */
static void spread(struct list *list, const struct process_set *set)
{
	bool is_new;

	qsort(list->p, list->n, sizeof(*list->p), by_pid);
	do {
		is_new = false;
		for (size_t i = 0; i < list->n; i++)
			if (!list->p[i].is_meant && parent_is_meant(list, set, &list->p[i]))
				list->p[i].is_meant = is_new = true;
	} while (is_new);
}

static void send_signal(struct process_id id, int sig)
{
	int fd = pidfd_open(id.pid, 0);

	/* The descriptor is of the process that has the number now; the signal goes to no other. */
	if (process_started(id.pid) == id.started) {
		if (fd >= 0)
			(void)pidfd_send_signal(fd, sig, NULL, 0); /* it may just have ended */
		else if (errno != ESRCH)
			(void)kill(id.pid, sig);
	}
	if (fd >= 0)
		(void)close(fd);
}

int processes_signal(const struct process_set *set, int sig)
{
	struct list list = {0};
	int n = 0;

	if (list_read(&list, set) != 0)
		return -1;
	if (list.n > 0)
		spread(&list, set);
	for (size_t i = 0; i < list.n; i++) {
		if (!list.p[i].is_meant || list.p[i].is_zombie)
			continue;
		n++;
		if (sig != 0)
			send_signal(list.p[i].id, sig);
	}
	free(list.p);
	return n;
}
