/* Folders: making them, and undoing what we made. */
#include "workspace/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int make_dirs(const char *path, struct failure *f)
{
	char *part = arena_copy(f->arena, path, strlen(path));

	for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash != NULL)
			*slash = '\0';
		if (mkdir(part, 0777) != 0 && errno != EEXIST)
			return fault_errno(f, "make the folder", part);
		if (slash == NULL)
			return 0;
		*slash = '/';
	}
}

/* Recursion is as deep as the folders: a checkout that we made ourselves. */
static void remove_inside(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (dir == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, entry->d_name, 0) != 0 && (errno == EISDIR || errno == EPERM)) {
			remove_inside(fd, entry->d_name);
			(void)unlinkat(fd, entry->d_name, AT_REMOVEDIR); /* best effort */
		}
	}
	closedir(dir);
}

void remove_all(const char *path)
{
	remove_inside(AT_FDCWD, path);
	(void)rmdir(path); /* best effort: what stays is found by the next who looks */
}

struct str name_part(struct arena *arena, struct str id)
{
	char *p = arena_copy(arena, id.p, id.n);

	for (size_t i = 0; i < id.n; i++) {
		bool is_plain = (p[i] >= 'a' && p[i] <= 'z') || (p[i] >= 'A' && p[i] <= 'Z') ||
		                (p[i] >= '0' && p[i] <= '9');

		if (!is_plain && p[i] != '-')
			p[i] = '_';
	}
	return (struct str){p, id.n};
}

struct str thread_suffix(struct arena *arena, struct str thread_id)
{
	struct str part = name_part(arena, thread_id);

	return part.n > 8 ? (struct str){part.p + part.n - 8, 8} : part;
}
