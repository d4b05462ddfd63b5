/* Files that a driver brings along for its program: kept beside the sessions, since agents outlive the server. */
#include "threads/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_whole(int fd, struct str text)
{
	while (text.n > 0) {
		ssize_t n = write(fd, text.p, text.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		text = (struct str){text.p + n, text.n - (size_t)n};
	}
	return fsync(fd);
}

/* Under its name it is whole: it is written under another one first. */
static int bring_one(const struct agent_file *file, struct failure *f)
{
	const char *unready = arena_printf(f->arena, "%s.new", file->path);
	int fd = open(unready, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return fail_errno(f, "cannot make %s", unready);
	rc = write_whole(fd, file->text);
	if (close(fd) != 0 || rc != 0 || rename(unready, file->path) != 0) {
		rc = fail_errno(f, "cannot write %s", file->path);
		(void)unlink(unready);
		return rc;
	}
	return 0;
}

int files_bring(const char *folder, const struct agent_file *files, size_t count, struct failure *f)
{
	struct stat info;

	if (count > 0 && mkdir(folder, 0700) != 0 && errno != EEXIST)
		return fail_errno(f, "cannot make %s", folder);
	for (size_t i = 0; i < count; i++) {
		/* The name stands for what is in it. */
		if (stat(files[i].path, &info) == 0 && (size_t)info.st_size == files[i].text.n)
			continue;
		if (bring_one(&files[i], f) != 0)
			return -1;
	}
	return 0;
}
