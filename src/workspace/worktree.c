/* Work trees for threads.
 *
 * 1. mkdir of the folder is the claim on the path, creating the ref (never moving one) the claim on
 * the branch. What was claimed here is ours, so undoing it never takes away what another launch
 * made.
 * 2. git checks the branch out into the empty folder only after both claims hold. */
#include "workspace/private.h"

#include "base/id.h"
#include "base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 5

static const char *ref_of(struct arena *arena, struct str branch)
{
	return arena_printf(arena, "refs/heads/%.*s", STRF(branch));
}

/* Another command of git holds the lock of a file for a moment. */
static bool must_wait(const struct program_end *end, int try)
{
	if (try + 1 == TRIES ||
		(!says(end, "could not lock config file") && !says(end, "cannot lock ref")))
		return false;
	(void)poll(NULL, 0, 20 << try);
	return true;
}

/* ---- where it starts ---- */

static int resolve(const struct workspace_call *call, const char *top, const char *rev,
	struct str *commit, bool *found, struct failure *f)
{
	struct program_end end;

	if (git_try(call, &(struct git){.path = top},
		    GIT_ARGS("rev-parse", "--verify", "--quiet", "--end-of-options",
			    arena_printf(call->arena, "%s^{commit}", rev)),
		    &end, f) != 0)
		return -1;
	*found = end.exit_code == 0;
	*commit = chomp(end.out);
	return 0;
}

static bool is_plain_ref(struct str base)
{
	for (size_t i = 0; i < base.n; i++)
		if ((unsigned char)base.p[i] <= ' ' || base.p[i] == 0x7f)
			return false;
	return base.n > 0 && base.p[0] != '-' && utf8_check(base) == base.n;
}

static int base_not_found(const struct worktree_order *order, struct failure *f)
{
	struct str shown = {order->base.p, utf8_cut(order->base, 100)};

	if (utf8_check(shown) != shown.n)
		shown = STR("(not UTF-8)");
	return fault(f, FAULT_BASE_NOT_FOUND,
		order->is_from_origin ? "origin has no branch %.*s."
				      : "There is no commit at %.*s.",
		STRF(shown));
}

static int fetch(const struct workspace_call *call, const char *top,
	const struct worktree_order *order, struct failure *f)
{
	struct git git = {.path = top, .timeout_ms = LIMIT_FETCH_MS, .is_remote = true};
	struct program_end end;
	const char *spec;

	if (git_try(call, &git, GIT_ARGS("check-ref-format", ref_of(call->arena, order->base)),
		    &end, f) != 0)
		return -1;
	if (end.exit_code != 0)
		return base_not_found(order, f);
	spec = arena_printf(call->arena, "+refs/heads/%.*s:refs/remotes/origin/%.*s",
		STRF(order->base), STRF(order->base));
	for (int try = 0;; try++) {
		if (git_try(call, &git,
			    GIT_ARGS("fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
				    "--no-recurse-submodules", "origin", spec),
			    &end, f) != 0)
			return -1;
		if (end.exit_code == 0)
			return 0;
		if (says(&end, "couldn't find remote ref"))
			return base_not_found(order, f);
		if (!must_wait(&end, try))
			return git_fault(&git, &end, f);
	}
}

static int find_base(const struct workspace_call *call, const char *top,
	const struct worktree_order *order, struct str *commit, struct failure *f)
{
	bool found = false;

	if (!is_plain_ref(order->base))
		return base_not_found(order, f);
	if (order->is_from_origin && fetch(call, top, order, f) != 0)
		return -1;
	/* A local branch goes before a tag of the same name. */
	if (resolve(call, top,
		    order->is_from_origin ? arena_printf(call->arena, "refs/remotes/origin/%.*s",
						    STRF(order->base))
					  : ref_of(call->arena, order->base),
		    commit, &found, f) != 0)
		return -1;
	if (!found && !order->is_from_origin &&
		resolve(call, top, str_z(call->arena, order->base), commit, &found, f) != 0)
		return -1;
	return found ? 0 : base_not_found(order, f);
}

/* ---- claims ---- */

static int claim_branch(const struct workspace_call *call, const char *top, struct str branch,
	struct str commit, struct failure *f)
{
	struct git git = {.path = top};
	struct program_end end;

	for (int try = 0;; try++) {
		/* No old value: only if there is none. */
		if (git_try(call, &git,
			    GIT_ARGS("update-ref", "-m", "dais: work tree",
				    ref_of(call->arena, branch), str_z(call->arena, commit), ""),
			    &end, f) != 0)
			return -1;
		if (end.exit_code == 0)
			return 0;
		if (says(&end, "reference already exists") || says(&end, "exists; cannot create") ||
			says(&end, "Not a directory"))
			return fault(f, FAULT_BRANCH_TAKEN,
				"A branch %.*s, or one that excludes it, exists.", STRF(branch));
		if (!must_wait(&end, try))
			return git_fault(&git, &end, f);
	}
}

static struct str temporary_name(struct arena *arena)
{
	unsigned char bytes[4];

	random_bytes(bytes, sizeof(bytes));
	return str_join(arena, STR("dais/"), hex(arena, bytes, sizeof(bytes)));
}

static struct str path_of(const struct workspace_call *call, const struct repository *repository,
	const struct worktree_order *order, struct str branch)
{
	struct str folder = str_dup(call->arena, branch);
	char *p = arena_copy(call->arena, folder.p, folder.n);

	for (size_t i = 0; i < folder.n; i++)
		if (p[i] == '/')
			p[i] = '-';
	return str_printf(call->arena, "%.*s/%.*s/%s-%.*s", STRF(order->dir),
		STRF(repository->name), p, STRF(thread_suffix(call->arena, order->thread_id)));
}

static int claim_path(const struct workspace_call *call, struct str path, struct failure *f)
{
	const char *slash = memrchr(path.p, '/', path.n);

	if (make_dirs(arena_copy(call->arena, path.p, (size_t)(slash - path.p)), f) != 0)
		return -1;
	if (mkdir(str_z(call->arena, path), 0777) == 0)
		return 0;
	if (errno == EEXIST)
		return fault(f, FAULT_PATH_TAKEN, "%.*s exists.", STRF(path));
	return fault_errno(f, "make the folder", str_z(call->arena, path));
}

/* ---- making it ---- */

static int check_out(const struct workspace_call *call, const char *top,
	const struct worktree *tree, struct str base, struct failure *f)
{
	struct git git = {.path = top, .timeout_ms = LIMIT_CHECKOUT_MS};
	struct program_end end;
	const char *key =
		arena_printf(call->arena, "branch.%.*s.gh-merge-base", STRF(tree->branch));

	for (int try = 0;; try++) {
		if (git_try(call, &git,
			    GIT_ARGS("worktree", "add", "--quiet", "--",
				    str_z(call->arena, tree->path),
				    str_z(call->arena, tree->branch)),
			    &end, f) != 0)
			return -1;
		if (end.exit_code == 0)
			break;
		if (!must_wait(&end, try))
			return git_fault(&git, &end, f);
	}
	for (int try = 0;; try++) {
		if (git_try(call, &git,
			    GIT_ARGS("config", "--local", key, str_z(call->arena, base)), &end,
			    f) != 0)
			return -1;
		if (end.exit_code == 0)
			return 0;
		if (!must_wait(&end, try))
			return git_fault(&git, &end, f);
	}
}

/* A git that was killed leaves the entry of a work tree behind that it does not know how to remove.
 * Never prune: other entries may belong to a disk that is not mounted just now. */
static void drop_entry(struct arena *arena, const char *common_dir, const char *path)
{
	const char *parent = arena_printf(arena, "%s/worktrees", common_dir);
	DIR *dir = opendir(parent);
	const struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		const char *folder = arena_printf(arena, "%s/%s", parent, entry->d_name);
		char link[PATH_MAX];
		FILE *file = fopen(arena_printf(arena, "%s/gitdir", folder), "re");

		if (file == NULL)
			continue;
		if (fgets(link, sizeof(link), file) != NULL &&
			str_eq(chomp(str_of(link)), str_of(arena_printf(arena, "%s/.git", path))))
			remove_all(folder);
		fclose(file);
	}
	if (dir != NULL)
		closedir(dir);
}

/* Ours by (1): the folder, its entry, and the branch where it still is where we put it. Nobody can
 * stop this. */
static void undo(const struct workspace_call *call, const char *top, const char *common_dir,
	const struct worktree *tree)
{
	struct workspace_call calm = {.arena = call->arena};
	struct git git = {.path = top};
	struct program_end end;
	struct failure ignored;

	failure_init(&ignored, call->arena);
	/* Best effort, each of them: the failure that led here is the one to be told. */
	(void)git_try(&calm, &git,
		GIT_ARGS("worktree", "remove", "--force", "--force", "--",
			str_z(call->arena, tree->path)),
		&end, &ignored);
	remove_all(str_z(call->arena, tree->path));
	drop_entry(call->arena, common_dir, str_z(call->arena, tree->path));
	(void)git_try(&calm, &git,
		GIT_ARGS("update-ref", "-d", ref_of(call->arena, tree->branch),
			str_z(call->arena, tree->commit)),
		&end, &ignored);
	(void)git_try(&calm, &git,
		GIT_ARGS("config", "--local", "--unset",
			arena_printf(call->arena, "branch.%.*s.gh-merge-base", STRF(tree->branch))),
		&end, &ignored);
}

static int make(const struct workspace_call *call, const struct repository *repository,
	const struct worktree_order *order, const struct worktree *tree, struct failure *f)
{
	const char *top = str_z(call->arena, repository->top);

	if (claim_path(call, tree->path, f) != 0)
		return -1;
	if (claim_branch(call, top, tree->branch, tree->commit, f) != 0) {
		(void)rmdir(str_z(call->arena, tree->path)); /* empty and ours */
		return -1;
	}
	if (check_out(call, top, tree, order->base, f) != 0) {
		undo(call, top, str_z(call->arena, repository->common_dir), tree);
		return -1;
	}
	return 0;
}

int worktree_create(const struct workspace_call *call, const struct worktree_order *order,
	struct worktree *out, struct failure *f)
{
	struct repository repository;
	struct worktree tree = {.is_temporary = order->branch.p == NULL};

	if (order->dir.n == 0 || order->dir.p[0] != '/' ||
		memchr(order->dir.p, '\0', order->dir.n) != NULL)
		return fault(f, FAULT_NOT_PERMITTED,
			"The folder for work trees must be an absolute path.");
	if (repository_find(call, order->root, &repository, f) != 0)
		return -1;
	if (find_base(call, str_z(call->arena, repository.top), order, &tree.commit, f) != 0)
		return -1;
	for (int try = 0;; try++) {
		tree.branch = tree.is_temporary ? temporary_name(call->arena)
		                                : branch_clean(call->arena, order->branch);
		tree.path = path_of(call, &repository, order, tree.branch);
		if (make(call, &repository, order, &tree, f) == 0)
			break;
		if (!tree.is_temporary || try + 1 == TRIES || !fault_is(f, FAULT_BRANCH_TAKEN))
			return -1;
	}
	*out = tree;
	return 0;
}

int worktree_rename_branch(const struct workspace_call *call, struct str path, struct str branch,
	struct str wanted, struct str *out, struct failure *f)
{
	struct git git = {.path = str_z(call->arena, path)};
	struct str name = branch_clean(call->arena, wanted), now;
	struct program_end end;

	if (git_try(call, &git, GIT_ARGS("symbolic-ref", "--quiet", "--short", "HEAD"), &end, f) !=
		0)
		return -1;
	now = chomp(end.out);
	if (end.exit_code > 1)
		return git_fault(&git, &end, f);
	if (!branch_is_temporary(branch) || !str_eq(now, branch))
		return fault(f, FAULT_BRANCH_TAKEN,
			"The work tree is not on a temporary branch %.*s any more.", STRF(branch));
	for (int try = 0;; try++) {
		if (git_try(call, &git,
			    GIT_ARGS("branch", "-m", str_z(call->arena, branch),
				    str_z(call->arena, name)),
			    &end, f) != 0)
			return -1;
		if (end.exit_code == 0)
			break;
		if (says(&end, "already exists") || says(&end, "exists; cannot create"))
			return fault(f, FAULT_BRANCH_TAKEN,
				"A branch %.*s, or one that excludes it, exists.", STRF(name));
		if (!must_wait(&end, try))
			return git_fault(&git, &end, f);
	}
	*out = name;
	return 0;
}
