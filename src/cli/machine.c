/* What this machine offers: descriptors, kernel features, room on the disk. */
#include "cli/doctor.h"

#include "base/limits.h"
#include "agents/agents.h"
#include "store/store.h"

#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LOW_DISK_BYTES INT64_C(1000000000)
#define LOW_FILES 4096
#define FEW_FILES 256

static void check_engine(struct doctor *doctor)
{
	bool has_search;
	const char *engine = store_engine(doctor->cli->arena, &has_search);

	doctor_say(doctor, has_search ? FINDING_OK : FINDING_PROBLEM, "engine", "%s, full-text search %s", engine,
		has_search ? "with trigrams" : "without trigrams: install SQLite 3.40 or newer with FTS5");
}

static void check_files(struct doctor *doctor)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	/* The server raises the soft limit to the hard one. */
	doctor_say(doctor,
		limit.rlim_max < FEW_FILES	? FINDING_PROBLEM
			: limit.rlim_max < LOW_FILES ? FINDING_NOTE
						     : FINDING_OK,
		"descriptors", "up to %llu open files%s", (unsigned long long)limit.rlim_max,
		limit.rlim_max < LOW_FILES ? "; each client needs one or two (ulimit -n)" : "");
}

static void check_kernel(struct doctor *doctor)
{
	struct utsname name;
	struct statfs fs;
	int landlock = agents_can_confine();
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (uname(&name) == 0)
		doctor_say(doctor, FINDING_OK, "kernel", "%s %s", name.sysname, name.release);
	if (landlock > 0)
		doctor_say(doctor, FINDING_OK, "landlock", "version %d of its interface", landlock);
	else
		doctor_say(doctor, FINDING_NOTE, "landlock",
			"not offered: an agent cannot be held read-only by the kernel");
	doctor_say(doctor, pidfd >= 0 ? FINDING_OK : FINDING_NOTE, "pidfd", "%s",
		pidfd >= 0 ? "offered" : "not offered: processes are told apart by their numbers only");
	if (pidfd >= 0)
		(void)close(pidfd);
	if (statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
		doctor_say(doctor, FINDING_OK, "cgroup", "version 2");
	else
		doctor_say(doctor, FINDING_NOTE, "cgroup", "version 2 is not mounted at /sys/fs/cgroup");
}

/* The directory itself, or the nearest one above it that exists. */
static bool space_at(struct arena *arena, const char *path, struct statvfs *out)
{
	char *place = arena_copy(arena, path, strlen(path));

	for (;;) {
		char *slash;

		if (statvfs(place, out) == 0)
			return true;
		slash = strrchr(place, '/');
		if (slash == NULL || slash == place)
			return statvfs("/", out) == 0;
		*slash = '\0';
	}
}

static void check_disk(struct doctor *doctor)
{
	struct arena *arena = doctor->cli->arena;
	struct statvfs fs;
	int64_t free_bytes;

	if (!space_at(arena, doctor->cli->state_dir, &fs))
		return;
	free_bytes = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
	doctor_say(doctor,
		free_bytes < LIMIT_RESERVE_BYTES ? FINDING_PROBLEM
			: free_bytes < LOW_DISK_BYTES ? FINDING_NOTE
						      : FINDING_OK,
		"disk", "%s free%s", term_bytes(arena, free_bytes),
		(fs.f_flag & ST_RDONLY) != 0 ? ", read-only" : "");
}

void machine_check(struct doctor *doctor)
{
	check_engine(doctor);
	check_files(doctor);
	check_kernel(doctor);
	check_disk(doctor);
}
