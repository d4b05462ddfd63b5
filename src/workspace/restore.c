/* Make a work tree what it was at a checkpoint.
 *
 * git goes from the tree of now to that of the checkpoint in the private index, and takes the files
 * along; it looks at every file before it touches the first. What is on the disk and in neither
 * tree is ignored: nobody has a copy of it, so where the checkpoint wants to put something there,
 * that part of the checkpoint is left out and told. */
#include "workspace/private.h"

#include "base/limits.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct plan {
	struct str *added, *deleted; /* paths between now and then; deleted ones sorted */
	size_t added_count, deleted_count;
	struct str *kept;
	size_t kept_count;
};

static int by_bytes(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static size_t count_pieces(struct str text)
{
	struct str piece;
	size_t n = 0;

	while (next_piece(&text, &piece))
		n++;
	return n;
}

static int list_changes(const struct snapshot *s, struct str now, struct str then,
	struct plan *plan, struct failure *f)
{
	struct arena *arena = s->call->arena;
	struct str text, letter, path;
	size_t n;

	if (git_run(s->call, &(struct git){.path = s->top},
		    GIT_ARGS("diff-tree", "-r", "-z", "--name-status", "--no-renames",
			    "--diff-filter=AD", "--ignore-submodules=none", str_z(arena, now),
			    str_z(arena, then)),
		    &text, f) != 0)
		return -1;
	n = count_pieces(text) / 2 + 1;
	plan->added = ARENA_ARRAY(arena, struct str, n);
	plan->deleted = ARENA_ARRAY(arena, struct str, n);
	plan->kept = ARENA_ARRAY(arena, struct str, n);
	while (next_piece(&text, &letter) && next_piece(&text, &path)) {
		if (letter.p[0] == 'A')
			plan->added[plan->added_count++] = path;
		else
			plan->deleted[plan->deleted_count++] = path;
	}
	qsort(plan->deleted, plan->deleted_count, sizeof(struct str), by_bytes);
	return 0;
}

/* Is `path`, or something below it, tracked now and not in the checkpoint? Then git makes room for
 * what comes. */
static bool makes_room(const struct plan *plan, struct str path)
{
	size_t low = 0, high = plan->deleted_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (str_cmp(plan->deleted[middle], path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	/* "a-b" stands between "a" and "a/b". */
	for (; low < plan->deleted_count && str_starts(plan->deleted[low], path); low++)
		if (plan->deleted[low].n == path.n || plan->deleted[low].p[path.n] == '/')
			return true;
	return false;
}

/* git would clear a folder that must become a file, with what is ignored in it. */
static int holds_untracked(const struct snapshot *s, struct str path, bool *out, struct failure *f)
{
	const char *pathspec = arena_printf(s->call->arena, ":(top,literal)%.*s", STRF(path));
	struct str found;

	if (git_run(s->call, &(struct git){.path = s->top, .index = s->index},
		    GIT_ARGS("ls-files", "-z", "-o", "--directory", "--", pathspec), &found,
		    f) != 0)
		return -1;
	*out = found.n > 0;
	return 0;
}

/* Does something that is in neither tree stand at `path`, above it or below it? */
static int is_in_the_way(const struct snapshot *s, const struct plan *plan, struct str path,
	bool *out, struct failure *f)
{
	*out = false;
	for (size_t i = 1; i <= path.n; i++) {
		struct str part = {path.p, i};
		struct stat about;

		if (i < path.n && path.p[i] != '/')
			continue;
		if (lstat(arena_printf(s->call->arena, "%s/%.*s", s->top, STRF(part)), &about) != 0)
			return 0;
		if (i < path.n && S_ISDIR(about.st_mode))
			continue;
		*out = !makes_room(plan, part);
		return *out || !S_ISDIR(about.st_mode) ? 0 : holds_untracked(s, part, out, f);
	}
	return 0;
}

static int find_kept(const struct snapshot *s, struct plan *plan, struct failure *f)
{
	for (size_t i = 0; i < plan->added_count; i++) {
		bool in_the_way;

		if (is_in_the_way(s, plan, plan->added[i], &in_the_way, f) != 0)
			return -1;
		if (in_the_way)
			plan->kept[plan->kept_count++] = plan->added[i];
	}
	return 0;
}

/* The tree `then` without the paths that are kept as they are. */
static int leave_out(
	const struct snapshot *s, const struct plan *plan, struct str *then, struct failure *f)
{
	const char *index = arena_printf(s->call->arena, "%s.restore", s->index);
	struct git git = {.path = s->top, .index = index};
	struct git fed = git;
	struct buf paths;
	int result = -1;

	buf_init(&paths, s->call->arena, SIZE_MAX);
	for (size_t i = 0; i < plan->kept_count; i++) {
		buf_add_str(&paths, plan->kept[i]);
		buf_add_char(&paths, '\0');
	}
	fed.input = buf_str(&paths);
	(void)unlink(index); /* of one that was killed */
	if (git_run(s->call, &git, GIT_ARGS("read-tree", str_z(s->call->arena, *then)), NULL, f) ==
			0 &&
		git_run(s->call, &fed, GIT_ARGS("update-index", "--force-remove", "-z", "--stdin"),
			NULL, f) == 0)
		result = git_run(s->call, &git, GIT_ARGS("write-tree"), then, f);
	*then = chomp(*then);
	(void)unlink(index);
	return result;
}

static int restore(
	const struct snapshot *s, struct str ref, struct restored *out, struct failure *f)
{
	struct arena *arena = s->call->arena;
	struct restored done = {0};
	struct plan plan = {0};
	struct str then;

	if (checkpoint_find(s->call, s->top, ref, &then, f) != 0 ||
		snapshot_tree(s, &done.before, f) != 0 ||
		list_changes(s, done.before, then, &plan, f) != 0 || find_kept(s, &plan, f) != 0)
		return -1;
	if (plan.kept_count > 0 && leave_out(s, &plan, &then, f) != 0)
		return -1;
	if (git_run(s->call,
		    &(struct git){
			    .path = s->top, .index = s->index, .timeout_ms = LIMIT_CHECKOUT_MS},
		    GIT_ARGS(
			    "read-tree", "-m", "-u", str_z(arena, done.before), str_z(arena, then)),
		    NULL, f) != 0 ||
		tree_compare(s->call, s->top, done.before, then, &done.files, f) != 0)
		return -1;
	done.kept = plan.kept;
	done.kept_count = plan.kept_count;
	*out = done;
	return 0;
}

int checkpoint_restore(const struct workspace_call *call, struct str cwd, struct str ref,
	struct restored *out, struct failure *f)
{
	struct snapshot snapshot;
	int result;

	if (snapshot_open(call, cwd, &snapshot, f) != 0)
		return -1;
	result = restore(&snapshot, ref, out, f);
	snapshot_close(&snapshot);
	return result;
}
