/* Which repository a path belongs to, and whether a path is one of its work trees. */
#include "workspace/private.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* A path may hold a newline: one question for each path, and only the last byte is dropped. */
static int ask(const struct workspace_call *call, const char *path, const char *const *args,
	struct str *out, struct failure *f)
{
	if (git_run(call, &(struct git){.path = path}, args, out, f) != 0)
		return -1;
	*out = chomp(*out);
	return 0;
}

static struct str last_part(struct str path)
{
	const char *slash = path.n == 0 ? NULL : memrchr(path.p, '/', path.n);

	return slash == NULL ? path
	                     : (struct str){slash + 1, path.n - (size_t)(slash + 1 - path.p)};
}

/* The folder of the main work tree; a bare repository is named by its own folder. */
static struct str name_of(struct str common_dir)
{
	struct str last = last_part(common_dir);

	if (str_eq(last, STR(".git")) && common_dir.n > 5)
		last = last_part((struct str){common_dir.p, common_dir.n - 5});
	else if (str_ends(last, STR(".git")) && last.n > 4)
		last.n -= 4;
	return last.n == 0 ? STR("repository") : last;
}

int repository_find(const struct workspace_call *call, struct str path, struct repository *out,
	struct failure *f)
{
	const char *at = str_z(call->arena, path);
	struct repository found;
	struct str inside;

	if (path.n == 0 || path.p[0] != '/' || strlen(at) != path.n)
		return fault(f, FAULT_REPOSITORY_MISSING,
			"An absolute path of a work tree is expected.");
	if (ask(call, at, GIT_ARGS("rev-parse", "--is-inside-work-tree", "--show-toplevel"),
		    &inside, f) != 0 ||
		ask(call, at, GIT_ARGS("rev-parse", "--absolute-git-dir"), &found.git_dir, f) !=
			0 ||
		ask(call, at, GIT_ARGS("rev-parse", "--path-format=absolute", "--git-common-dir"),
			&found.common_dir, f) != 0)
		return -1;
	/* "true", newline, top: outside of a work tree git has failed already. */
	found.top = (struct str){inside.p + 5, inside.n - 5};
	found.name = name_of(found.common_dir);
	*out = found;
	return 0;
}

static int is_listed(const struct workspace_call *call, const char *root, const char *path,
	bool *out, struct failure *f)
{
	struct str list, piece;

	if (git_run(call, &(struct git){.path = root},
		    GIT_ARGS("worktree", "list", "--porcelain", "-z"), &list, f) != 0)
		return -1;
	*out = false;
	while (next_piece(&list, &piece))
		if (str_starts(piece, STR("worktree ")) &&
			str_eq((struct str){piece.p + 9, piece.n - 9}, str_of(path)))
			*out = true;
	return 0;
}

int worktree_check(const struct workspace_call *call, struct str root, struct str path,
	struct str *out, struct failure *f)
{
	char real[PATH_MAX];
	struct repository ours, theirs;
	bool listed;

	if (repository_find(call, root, &ours, f) != 0)
		return -1;
	if (path.n == 0 || path.p[0] != '/' || realpath(str_z(call->arena, path), real) == NULL)
		return fault(
			f, FAULT_NOT_A_WORKTREE, "The work tree %.*s does not exist.", STRF(path));
	if (repository_find(call, str_of(real), &theirs, f) != 0) {
		if (!fault_is(f, FAULT_REPOSITORY_MISSING))
			return -1;
		return fault(f, FAULT_NOT_A_WORKTREE, "%s is not a work tree of git.", real);
	}
	/* A copied work tree points to the same repository, but only the original is on the list.
	 */
	if (!str_eq(ours.common_dir, theirs.common_dir) || !str_eq(theirs.top, str_of(real)))
		return fault(f, FAULT_NOT_A_WORKTREE, "%s is not the top of a work tree of %.*s.",
			real, STRF(ours.top));
	if (is_listed(call, str_z(call->arena, ours.top), real, &listed, f) != 0)
		return -1;
	if (!listed)
		return fault(f, FAULT_NOT_A_WORKTREE,
			"%s is not on the list of work trees of %.*s.", real, STRF(ours.top));
	*out = str_dup(call->arena, str_of(real));
	return 0;
}
