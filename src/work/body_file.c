/* bodyFromFile: a text of this machine for callers of this machine. Opened component by component, so that no
 * link, however it is swapped meanwhile, leads out of the directory. */
#include "work/body.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_COMPONENT 255

static void fd_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

/* The descriptor, which is the caller's now. */
static int take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static int refuse(struct failure *f, struct str name, const char *why)
{
	return fail_field(f, STR("bodyFromFile"), name, "%s", why);
}

/* Syntax alone: relative, without empty, "." and ".." components. */
static const char *wrong_name(struct str name)
{
	size_t start = 0;

	if (name.n == 0 || name.p[0] == '/')
		return "must be a path relative to the configuration directory";
	for (size_t i = 0; i <= name.n; i++) {
		size_t n = i - start;

		if (i < name.n && name.p[i] != '/')
			continue;
		if (n == 0 || n > MAX_COMPONENT || (n == 1 && name.p[start] == '.') ||
			(n == 2 && memcmp(name.p + start, "..", 2) == 0))
			return "must not have empty, '.', '..' or overlong components";
		start = i + 1;
	}
	return NULL;
}

static const char *open_problem(int error)
{
	switch (error) {
	case ELOOP:
	case EMLINK:
		return "must not lead over a symbolic link";
	case ENOENT:
		return "there is no such file in the configuration directory";
	case ENOTDIR:
		return "must not lead over a file or a symbolic link";
	default:
		return "cannot be opened";
	}
}

/* Opens the file; -1 with the reason in *why. */
static int open_beneath(const char *dir, struct str name, const char **why)
{
	AUTO(fd_close) int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t start = 0;

	*why = "the configuration directory cannot be opened";
	for (size_t i = 0; at >= 0 && i <= name.n; i++) {
		char component[MAX_COMPONENT + 1];
		bool is_last = i == name.n;
		int next;

		if (!is_last && name.p[i] != '/')
			continue;
		memcpy(component, name.p + start, i - start);
		component[i - start] = '\0';
		/* O_NONBLOCK: a FIFO must not hold up the thread that opens it. */
		next = openat(at, component,
			O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (is_last ? O_NONBLOCK : O_DIRECTORY));
		if (next < 0)
			*why = open_problem(errno);
		(void)close(at);
		at = next;
		start = i + 1;
	}
	return take(&at);
}

static int read_whole(int fd, size_t max, struct arena *arena, struct str *out)
{
	char *bytes = arena_alloc(arena, max + 1);
	size_t n = 0;

	while (n <= max) {
		ssize_t got = read(fd, bytes + n, max + 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*out = (struct str){bytes, n};
	return 0;
}

static int too_large(struct failure *f, int64_t max, int64_t actual)
{
	(void)fail(f, FAIL_PAYLOAD_TOO_LARGE, "The file is longer than %lld bytes.", (long long)max);
	fail_detail_str(f, "field", STR("bodyFromFile"));
	fail_detail_int(f, "max", max);
	fail_detail_int(f, "actual", actual);
	return -1;
}

int body_from_file(struct call *call, struct str name, int64_t max, struct str *out, struct failure *f)
{
	AUTO(fd_close) int fd = -1;
	const char *why = wrong_name(name);
	struct stat facts;
	struct str text;

	if (!call->caller->is_local) {
		(void)fail(f, FAIL_FORBIDDEN, "Only callers on the Unix socket may name files of this machine.");
		fail_detail_str(f, "scope", STR("capability"));
		fail_detail_str(f, "required", STR("local"));
		return -1;
	}
	if (why != NULL)
		return refuse(f, name, why);
	if (call->config_dir == NULL)
		return refuse(f, name, "the server has no configuration directory");
	fd = open_beneath(call->config_dir, name, &why);
	if (fd < 0)
		return refuse(f, name, why);
	if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode))
		return refuse(f, name, "must be a regular file");
	if (facts.st_size > max)
		return too_large(f, max, facts.st_size);
	if (read_whole(fd, (size_t)max, call->arena, &text) != 0)
		return refuse(f, name, "cannot be read");
	if ((int64_t)text.n > max)
		return too_large(f, max, (int64_t)text.n);
	if (utf8_check(text) < text.n || memchr(text.p, '\0', text.n) != NULL)
		return refuse(f, name, "must hold UTF-8 text without U+0000");
	*out = text;
	return 0;
}
