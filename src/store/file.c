/* What stands before SQL: the header of the file, the lock on it, the disk under it. */
#include "store/private.h"

#include "base/limits.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define PID_PAUSE_MS 10
#define PID_LOOKS 30

struct store_lock {
	int fd;
	int pid_fd;
};

/* Far behind SQLite's own lock bytes at 2^30, so that neither sees the other's. */
#define LOCK_BYTE INT64_C(0x4000000000000000)

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static uint32_t big_endian(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

int file_check(const char *path, bool may_create, bool *out_is_new, struct failure *f)
{
	unsigned char header[100];
	AUTO(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	ssize_t n;

	if (fd < 0 && errno == ENOENT) {
		if (!may_create)
			return fail(f, FAIL_NOT_REACHABLE, "There is no database at %s.", path);
		*out_is_new = true;
		return 0;
	}
	if (fd < 0)
		return errno == EACCES
			? fail(f, FAIL_NOT_PERMITTED, "The database %s may not be opened.", path)
			: fail(f, FAIL_CANNOT_CREATE, "The database %s cannot be opened: %s.", path,
				  errno == ELOOP ? "it is a symbolic link" : "see the log");
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return fail(f, FAIL_CANNOT_CREATE, "%s is not a regular file.", path);
	if (st.st_nlink > 1)
		return fail(f, FAIL_CANNOT_CREATE,
			"%s has %lu hard links; a database needs a name of its own.", path,
			(unsigned long)st.st_nlink);
	n = pread(fd, header, sizeof(header), 0);
	*out_is_new = n == 0;
	if (n == 0)
		return may_create ? 0 : fail(f, FAIL_NOT_REACHABLE, "The database %s is empty.", path);
	if (n < (ssize_t)sizeof(header) || memcmp(header, "SQLite format 3", 16) != 0)
		return fail(f, FAIL_SCHEMA_NEWER, "%s is not a database of dais; it was left untouched.", path);
	if (big_endian(header + 68) != APPLICATION_ID && big_endian(header + 60) != 0)
		return fail(f, FAIL_SCHEMA_NEWER,
			"%s is the database of another program; it was left untouched.", path);
	if (big_endian(header + 68) != APPLICATION_ID && st.st_size > 0 && big_endian(header + 60) == 0 &&
		big_endian(header + 28) > 1)
		return fail(f, FAIL_SCHEMA_NEWER,
			"%s is the database of another program; it was left untouched.", path);
	/* Both numbers are written by one transaction: one without the other was not made by us. */
	if (big_endian(header + 68) == APPLICATION_ID && (int)big_endian(header + 60) <= 0)
		return fail(f, FAIL_SCHEMA_NEWER, "%s has no schema version of dais; it was left untouched.", path);
	if ((int)big_endian(header + 60) > store_schema_version())
		return fail(f, FAIL_SCHEMA_NEWER,
			"%s has schema version %u, this dais knows %d; it was left untouched.", path,
			big_endian(header + 60), store_schema_version());
	return 0;
}

static bool on_network(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	return fs.f_type == NFS_SUPER_MAGIC || (unsigned long)fs.f_type == SMB2_SUPER_MAGIC ||
		(unsigned long)fs.f_type == CIFS_SUPER_MAGIC || fs.f_type == SMB_SUPER_MAGIC;
}

/* 0 when it is not written. */
static long read_pid(int pid_fd)
{
	char text[32] = "";
	ssize_t n = pread(pid_fd, text, sizeof(text) - 1, 0);

	return n > 0 ? strtol(text, NULL, 10) : 0;
}

/* Of two that start at once the other one has the lock a moment before its pid is in the file. */
static int refuse_owned(const char *path, int pid_fd, struct failure *f)
{
	const struct timespec pause = {.tv_nsec = PID_PAUSE_MS * 1000000L};
	long pid = read_pid(pid_fd);

	for (int i = 0; i < PID_LOOKS && pid <= 0; i++) {
		(void)nanosleep(&pause, NULL);
		pid = read_pid(pid_fd);
	}
	if (pid > 0)
		return fail(f, FAIL_STATE_OWNED, "Another server (pid %ld) owns %s.", pid, path);
	return fail(f, FAIL_STATE_OWNED, "Another server owns %s.", path);
}

int file_lock(const char *path, struct store_lock **out, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	char *pid_path = arena_printf(arena, "%s.pid", path);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};
	struct store_lock *held;
	AUTO(close_fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	AUTO(close_fd) int pid_fd = open(pid_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || pid_fd < 0)
		return fail(f, errno == EACCES || errno == EROFS ? FAIL_NOT_PERMITTED : FAIL_CANNOT_CREATE,
			"The database %s cannot be opened for writing: %s.", path,
			errno == EACCES	      ? "not permitted"
				: errno == EROFS  ? "the file system is read-only"
				: errno == ENOSPC ? "the disk is full"
						  : "see the log");
	if (on_network(fd))
		return fail(f, FAIL_CANNOT_CREATE,
			"%s is on a network file system, whose locks cannot be trusted.", path);
	/* An open-file lock: unlike a POSIX one it survives another close() of this file in the process. */
	if (fcntl(fd, F_OFD_SETLK, &lock) != 0)
		return refuse_owned(path, pid_fd, f);
	if (ftruncate(pid_fd, 0) == 0)
		(void)dprintf(pid_fd, "%ld\n", (long)getpid());
	held = calloc(1, sizeof(*held));
	if (held == NULL)
		abort();
	held->fd = fd;
	held->pid_fd = pid_fd;
	fd = -1;
	pid_fd = -1;
	*out = held;
	return 0;
}

void file_unlock(struct store_lock *lock)
{
	if (lock == NULL)
		return;
	if (ftruncate(lock->pid_fd, 0) != 0)
		log_line(LOG_WARN, "store", "the pid file keeps the pid of this server"); /* the lock counts */
	close_fd(&lock->pid_fd);
	close_fd(&lock->fd);
	free(lock);
}

int64_t file_free_bytes(const char *path)
{
	struct statvfs fs;

	if (statvfs(path, &fs) != 0)
		return -1;
	return (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
}

static char *reserve_path(struct arena *arena, const char *database)
{
	return arena_printf(arena, "%s.reserve", database);
}

int reserve_make(const char *database, struct failure *f)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	char *path = reserve_path(arena, database);
	AUTO(close_fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd < 0)
		return fail_errno(f, "make the reserve file");
	if (fstat(fd, &st) == 0 && st.st_size >= LIMIT_RESERVE_BYTES)
		return 0;
	if (posix_fallocate(fd, 0, LIMIT_RESERVE_BYTES) == 0)
		return 0;
	(void)unlink(path);
	return fail(f, FAIL_STORAGE_FULL, "There is no room for the reserve file (%d bytes).",
		LIMIT_RESERVE_BYTES);
}

void reserve_release(const char *database)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();

	if (unlink(reserve_path(arena, database)) == 0)
		log_line(LOG_WARN, "store", "the disk is full: reserve released");
}
