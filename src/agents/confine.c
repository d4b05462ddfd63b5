/* Read-only by the kernel: Landlock. The system calls have no wrappers in glibc, and the kernel's header may be older than
 * the kernel, so both are spelled here. */
#include "agents/private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRUNCATE (1ULL << 14) /* ABI 3 */

/* What of it applies to a file that is no directory. */
#define OF_FILES (LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE)

/* Rights to write, by the version of the interface that brought them. */
static const struct {
	int abi;
	uint64_t rights;
} write_rights[] = {
	{1, LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
			LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
			LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
			LANDLOCK_ACCESS_FS_MAKE_SYM},
	{2, LANDLOCK_ACCESS_FS_REFER},
	{3, TRUNCATE},
};

/* Writing to these changes nothing that lasts. Not all of /dev: it holds disks. */
static const char *const devices[] = {
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"};

int agents_can_confine(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

static uint64_t rights_of(int abi)
{
	uint64_t rights = 0;

	for (size_t i = 0; i < sizeof(write_rights) / sizeof(write_rights[0]); i++)
		if (write_rights[i].abi <= abi)
			rights |= write_rights[i].rights;
	return rights;
}

static int allow(int ruleset, const char *path, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
	struct stat st;
	long rc = -1;
	int error;

	if (rule.parent_fd < 0)
		return -1;
	if (fstat(rule.parent_fd, &st) == 0) {
		rule.allowed_access = S_ISDIR(st.st_mode) ? rights : rights & OF_FILES;
		rc = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	}
	error = errno;
	(void)close(rule.parent_fd);
	errno = error;
	return rc == 0 ? 0 : -1;
}

int confine_prepare(const char *const *writable, const char **where)
{
	int abi = agents_can_confine();
	/* Its later members stay zero, so the size of the first one is enough for every version. */
	struct landlock_ruleset_attr attr = {.handled_access_fs = rights_of(abi)};
	int ruleset;

	*where = "Landlock";
	if (abi == 0) {
		errno = EOPNOTSUPP;
		return -1;
	}
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
	if (ruleset < 0)
		return -1;
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (allow(ruleset, devices[i], attr.handled_access_fs) != 0 && errno != ENOENT && errno != ENXIO) {
			*where = devices[i];
			goto fail;
		}
	for (; writable != NULL && *writable != NULL; writable++)
		if (allow(ruleset, *writable, attr.handled_access_fs) != 0) {
			*where = *writable;
			goto fail;
		}
	(void)fcntl(ruleset, F_SETFD, FD_CLOEXEC); /* the kernel has set it already */
	return ruleset;
fail:
	(void)close(ruleset);
	return -1;
}

int confine_self(int ruleset)
{
	/* The kernel asks for it: a set-user-id program would not know that it is confined. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return syscall(SYS_landlock_restrict_self, ruleset, 0) == 0 ? 0 : -1;
}
