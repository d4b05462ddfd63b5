/* A cgroup for one process tree: nothing that is in it can leave by a session or a second fork, and the kernel kills all of
 * it at once. Only version 2, and only where we may make one (a service with Delegate=yes, root); elsewhere the walk over
 * /proc has to do. */
#include "agents/private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include <unistd.h>

static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

static bool write_file(struct str cgroup, const char *name, const char *text)
{
	char path[4096];
	bool is_written;
	int fd;

	(void)snprintf(path, sizeof(path), "%.*s/%s", STRF(cgroup), name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	is_written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	(void)close(fd);
	return is_written;
}

/* Our own path in the hierarchy, or NULL. */
static char *own_path(struct arena *arena)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[4096], *path = NULL;

	if (file == NULL)
		return NULL;
	while (path == NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "0::/", 4) == 0)
			path = arena_copy(arena, line + 3, strcspn(line + 3, "\n"));
	(void)fclose(file);
	return path;
}

struct str cgroup_create(struct arena *arena)
{
	char *own = own_path(arena);
	struct statfs fs;

	for (size_t i = 0; own != NULL && i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		struct str path;

		if (statfs(mounts[i], &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
			continue;
		path = str_printf(arena, "%s%s/dais-%d-%lld", mounts[i], strcmp(own, "/") == 0 ? "" : own, (int)getpid(),
			(long long)process_started(getpid()));
		if (mkdir(str_z(arena, path), 0700) != 0)
			continue;
		/* Linux 5.14. Not tried out: some kernels then kill what is cloned into it later. */
		if (access(arena_printf(arena, "%.*s/cgroup.kill", STRF(path)), W_OK) == 0)
			return path;
		(void)rmdir(str_z(arena, path));
	}
	return STR_NONE;
}

int cgroup_open(struct str cgroup)
{
	char path[4096];

	if (cgroup.n == 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%.*s", STRF(cgroup));
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void cgroup_kill(struct str cgroup)
{
	if (cgroup.n > 0)
		(void)write_file(cgroup, "cgroup.kill", "1"); /* cgroup_remove tells what stayed */
}

bool cgroup_remove(struct str cgroup)
{
	char path[4096], events[256] = "";
	ssize_t n;
	int fd;

	if (cgroup.n == 0)
		return true;
	(void)snprintf(path, sizeof(path), "%.*s/cgroup.events", STRF(cgroup));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true; /* gone already */
	n = read(fd, events, sizeof(events) - 1);
	(void)close(fd);
	if (n > 0 && strstr(events, "populated 1") != NULL)
		return false;
	path[cgroup.n] = '\0';
	(void)rmdir(path); /* empty groups that the program made below it keep it; they hold nobody */
	return true;
}
