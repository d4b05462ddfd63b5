/* The tree of what a work tree holds, by a private index.
 *
 * 1. The user's index, HEAD, stash and files never move: every command that writes an index has
 * GIT_INDEX_FILE.
 * 2. The tree depends on the files and on what the user's index tracks, not on what the private
 * index held before: in it is what is not ignored, and what is tracked although it is ignored.
 * 3. The private index stays in the git directory of the work tree, so that the next capture hashes
 * only what changed, and goes with the work tree. It is a cache: when it does not work it is made
 * anew.
 * 4. One at a time for each work tree, in this process and others: an flock() belongs to the open
 * file. */
#include "workspace/private.h"

#include "base/clock.h"
#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int take_lock(const struct workspace_call *call, int fd, struct failure *f)
{
	int64_t until = clock_mono_ms() + LIMIT_SNAPSHOT_WAIT_MS;
	struct pollfd cancelled = {.fd = cancel_fd(call->cancel), .events = POLLIN};

	for (int pause_ms = 1; flock(fd, LOCK_EX | LOCK_NB) != 0;
		pause_ms = pause_ms < 50 ? pause_ms * 2 : 50) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return fault_errno(f, "lock", "the private index of a work tree");
		if (clock_mono_ms() >= until)
			return fault(f, FAULT_BUSY,
				"Another checkpoint of this work tree has not ended for %d s.",
				LIMIT_SNAPSHOT_WAIT_MS / 1000);
		if (poll(&cancelled, 1, pause_ms) == 1)
			return fault(f, FAULT_CANCELLED,
				"It was asked to stop while it waited for another checkpoint.");
	}
	return 0;
}

int snapshot_open(
	const struct workspace_call *call, struct str path, struct snapshot *out, struct failure *f)
{
	struct snapshot made = {.call = call};
	const char *dir, *lock;

	if (repository_find(call, path, &made.repository, f) != 0)
		return -1;
	dir = arena_printf(call->arena, "%.*s/dais", STRF(made.repository.git_dir));
	lock = arena_printf(call->arena, "%s/lock", dir);
	made.top = str_z(call->arena, made.repository.top);
	made.index = arena_printf(call->arena, "%s/index", dir);
	if (mkdir(dir, 0777) != 0 && errno != EEXIST)
		return fault_errno(f, "make the folder", dir);
	made.lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (made.lock < 0)
		return fault_errno(f, "open", lock);
	if (take_lock(call, made.lock, f) != 0) {
		close(made.lock);
		return -1;
	}
	/* (4): nobody else is at work, so these were left by one that was killed. */
	(void)unlink(arena_printf(call->arena, "%s.lock", made.index));
	*out = made;
	return 0;
}

void snapshot_close(struct snapshot *snapshot)
{
	close(snapshot->lock);
}

/* ---- lists of paths ---- */

static int list_paths(const struct snapshot *s, bool of_user, const char *const *args,
	struct str *out, struct failure *f)
{
	return git_run(s->call, &(struct git){.path = s->top, .index = of_user ? NULL : s->index},
		args, out, f);
}

static void add_path(struct buf *list, struct str path)
{
	buf_add_str(list, path);
	buf_add_char(list, '\0');
}

/* Both sorted: what is in `held` and not in `kept`. */
static void subtract(struct str held, struct str kept, struct buf *out)
{
	struct str path, other;
	bool more = next_piece(&kept, &other);

	while (next_piece(&held, &path)) {
		while (more && str_cmp(other, path) < 0)
			more = next_piece(&kept, &other);
		if (!more || !str_eq(other, path))
			add_path(out, path);
	}
}

/* A repository below the work tree is no content of it, unless it is tracked as a submodule. */
static int is_submodule(const struct snapshot *s, struct str path, bool *out, struct failure *f)
{
	const char *pathspec = arena_printf(s->call->arena, ":(top,literal)%.*s", STRF(path));
	struct str found;

	if (list_paths(s, true, GIT_ARGS("ls-files", "-s", "-z", "--", pathspec), &found, f) != 0)
		return -1;
	*out = str_starts(found, STR("160000 "));
	return 0;
}

static int add_untracked(const struct snapshot *s, struct buf *wanted, struct failure *f)
{
	struct str others, path;

	if (list_paths(s, false, GIT_ARGS("ls-files", "-z", "-o", "--exclude-standard"), &others,
		    f) != 0)
		return -1;
	while (next_piece(&others, &path)) {
		bool tracked = true;

		if (path.n > 0 && path.p[path.n - 1] == '/') {
			path.n--;
			if (is_submodule(s, path, &tracked, f) != 0)
				return -1;
		}
		if (tracked)
			add_path(wanted, path);
	}
	return 0;
}

/* ---- the tree ---- */

static int update(
	const struct snapshot *s, struct buf *paths, const char *const *args, struct failure *f)
{
	if (paths->n == 0)
		return 0;
	return git_run(s->call,
		&(struct git){.path = s->top, .index = s->index, .input = buf_str(paths)}, args,
		NULL, f);
}

static int fill_index(const struct snapshot *s, struct failure *f)
{
	const char *const *ignored = GIT_ARGS("ls-files", "-z", "-c", "-i", "--exclude-standard");
	struct str kept, held;
	struct buf wanted, unwanted;

	buf_init(&wanted, s->call->arena, SIZE_MAX);
	buf_init(&unwanted, s->call->arena, SIZE_MAX);
	if (git_run(s->call, &(struct git){.path = s->top, .index = s->index},
		    GIT_ARGS("add", "--update"), NULL, f) != 0 ||
		add_untracked(s, &wanted, f) != 0 || list_paths(s, true, ignored, &kept, f) != 0 ||
		list_paths(s, false, ignored, &held, f) != 0)
		return -1;
	buf_add_str(&wanted, kept);
	subtract(held, kept, &unwanted); /* (2): ignored meanwhile */
	if (update(s, &unwanted, GIT_ARGS("update-index", "--force-remove", "-z", "--stdin"), f) !=
		0)
		return -1;
	/* What has gone since it was listed is no error. */
	return update(s, &wanted,
		GIT_ARGS("update-index", "--add", "--remove", "--replace", "-z", "--stdin"), f);
}

static int make_tree(const struct snapshot *s, struct str *out, struct failure *f)
{
	if (fill_index(s, f) != 0 ||
		git_run(s->call, &(struct git){.path = s->top, .index = s->index},
			GIT_ARGS("write-tree"), out, f) != 0)
		return -1;
	*out = chomp(*out);
	return 0;
}

int snapshot_tree(const struct snapshot *snapshot, struct str *out, struct failure *f)
{
	if (make_tree(snapshot, out, f) == 0)
		return 0;
	if (!fault_is(f, FAULT_GIT_FAILED) || access(snapshot->index, F_OK) != 0)
		return -1;
	(void)unlink(snapshot->index); /* (3): damaged, or of objects that are gone */
	return make_tree(snapshot, out, f);
}
