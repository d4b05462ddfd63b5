/* What the removal of a work tree would lose, and the removal.
 *
 * 1. Whatever cannot be looked at is a failure, never "nothing".
 * 2. A force names what will go: it carries the token of the list that its giver saw, and the list
 * is made again right before the removal. */
#include "workspace/private.h"

#include "base/id.h"
#include "base/limits.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const kind_names[] = {
	[LOSS_MODIFIED] = "modified",
	[LOSS_UNTRACKED] = "untracked",
	[LOSS_IGNORED] = "ignored",
	[LOSS_COMMIT] = "commit",
	[LOSS_STASH] = "stash",
	[LOSS_OPERATION] = "operation",
	[LOSS_LOCK] = "lock",
	[LOSS_PROCESS] = "process",
};

const char *loss_kind_name(enum loss_kind kind)
{
	return kind_names[kind];
}

struct list {
	const struct workspace_call *call;
	struct loss *rows;
	size_t n, total;
	struct buf all; /* every row as text, for the token */
};

static void add(struct list *list, enum loss_kind kind, struct str prefix, struct str what)
{
	struct str whole = str_join(list->call->arena, prefix, what);

	list->total++;
	buf_printf(&list->all, "%s %zu ", kind_names[kind], whole.n);
	buf_add_str(&list->all, whole);
	if (list->n < LIMIT_LOSSES)
		list->rows[list->n++] = (struct loss){kind, whole};
}

/* ---- files ---- */

static int add_files(struct list *list, const char *top, struct str prefix, struct failure *f)
{
	struct str rest, entry;

	if (git_run(list->call, &(struct git){.path = top},
		    GIT_ARGS("status", "--porcelain=v1", "-z", "--untracked-files=normal",
			    "--ignored=traditional", "--no-renames", "--ignore-submodules=none"),
		    &rest, f) != 0)
		return -1;
	while (next_piece(&rest, &entry)) {
		enum loss_kind kind = entry.p[0] == '?'   ? LOSS_UNTRACKED
		                      : entry.p[0] == '!' ? LOSS_IGNORED
		                                          : LOSS_MODIFIED;

		if (entry.n > 3)
			add(list, kind, prefix, (struct str){entry.p + 3, entry.n - 3});
	}
	return 0;
}

/* Files that the index is told not to look at: status says nothing of them. Whether they differ is
 * not asked. */
static int add_hidden(struct list *list, const char *top, struct str prefix, struct failure *f)
{
	struct str rest, entry;

	if (git_run(list->call, &(struct git){.path = top}, GIT_ARGS("ls-files", "-v", "-z"), &rest,
		    f) != 0)
		return -1;
	while (next_piece(&rest, &entry)) {
		struct stat about;

		if (entry.n < 3 || !(entry.p[0] == 'S' || (entry.p[0] >= 'a' && entry.p[0] <= 'z')))
			continue;
		if (lstat(arena_printf(
				  list->call->arena, "%s/%.*s", top, (int)entry.n - 2, entry.p + 2),
			    &about) == 0)
			add(list, LOSS_MODIFIED, prefix, (struct str){entry.p + 2, entry.n - 2});
	}
	return 0;
}

/* ---- commits and stashes ---- */

static int add_lines(struct list *list, enum loss_kind kind, struct str prefix, const char *top,
	const char *const *args, struct failure *f)
{
	struct str rest, line;

	if (git_run(list->call, &(struct git){.path = top}, args, &rest, f) != 0)
		return -1;
	while (next_piece(&rest, &line))
		add(list, kind, prefix, line);
	return 0;
}

static int has_head(
	const struct workspace_call *call, const char *top, bool *out, struct failure *f)
{
	struct program_end end;

	if (git_try(call, &(struct git){.path = top},
		    GIT_ARGS("rev-parse", "--verify", "--quiet", "HEAD^{commit}"), &end, f) != 0)
		return -1;
	*out = end.exit_code == 0;
	return 0;
}

static int branch_now(
	const struct workspace_call *call, const char *top, struct str *out, struct failure *f)
{
	struct program_end end;

	if (git_try(call, &(struct git){.path = top}, GIT_ARGS("symbolic-ref", "--quiet", "HEAD"),
		    &end, f) != 0)
		return -1;
	*out = chomp(end.out);
	if (str_starts(*out, STR("refs/heads/")))
		*out = (struct str){out->p + 11, out->n - 11};
	return 0;
}

/* A stash is kept by the repository, but says only in its text what it belongs to. */
static int add_stashes(
	struct list *list, const char *top, struct str prefix, struct str branch, struct failure *f)
{
	struct str rest, line;
	struct str wip = str_printf(list->call->arena, "WIP on %.*s: ", STRF(branch));
	struct str on = str_printf(list->call->arena, "On %.*s: ", STRF(branch));

	if (git_run(list->call, &(struct git){.path = top},
		    GIT_ARGS("stash", "list", "-z", "--format=%gs"), &rest, f) != 0)
		return -1;
	while (next_piece(&rest, &line))
		if (str_starts(line, wip) || str_starts(line, on))
			add(list, LOSS_STASH, prefix, line);
	return 0;
}

static int add_commits(struct list *list, const char *top, struct str prefix, struct str branch,
	bool is_submodule, struct failure *f)
{
	/* Without a branch: a name that no branch has. */
	const char *exclude = arena_printf(
		list->call->arena, "--exclude=%.*s", STRF(branch.n > 0 ? branch : STR("/")));

	/* The repository of a submodule goes with the work tree, so its own branches save nothing.
	 */
	if (is_submodule)
		return add_lines(list, LOSS_COMMIT, prefix, top,
			GIT_ARGS("log", "-z", "--no-show-signature", "--format=%h %s", "--branches",
				"HEAD", "--not", "--remotes"),
			f);
	return add_lines(list, LOSS_COMMIT, prefix, top,
		GIT_ARGS("log", "-z", "--no-show-signature", "--format=%h %s", "HEAD", "--not",
			exclude, "--branches", "--tags", "--remotes"),
		f);
}

/* ---- state of the work tree ---- */

static void add_states(struct list *list, const char *git_dir, struct str prefix)
{
	static const struct {
		const char *file;
		enum loss_kind kind;
		const char *what;
	} states[] = {
		{"MERGE_HEAD", LOSS_OPERATION, "a merge that is not finished"},
		{"CHERRY_PICK_HEAD", LOSS_OPERATION, "a cherry-pick that is not finished"},
		{"REVERT_HEAD", LOSS_OPERATION, "a revert that is not finished"},
		{"BISECT_LOG", LOSS_OPERATION, "a bisection that is not finished"},
		{"rebase-merge", LOSS_OPERATION, "a rebase that is not finished"},
		{"rebase-apply", LOSS_OPERATION, "a rebase or am that is not finished"},
		{"locked", LOSS_LOCK, "it is locked by git worktree lock"},
	};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct stat about;

		if (lstat(arena_printf(list->call->arena, "%s/%s", git_dir, states[i].file),
			    &about) == 0)
			add(list, states[i].kind, prefix, str_of(states[i].what));
	}
}

static bool lies_in(struct str path, struct str folder)
{
	return str_starts(path, folder) && (path.n == folder.n || path.p[folder.n] == '/');
}

static bool process_is_in(struct arena *arena, const char *pid, const char *what, struct str top)
{
	char target[PATH_MAX];
	ssize_t n = readlink(arena_printf(arena, "/proc/%s/%s", pid, what), target, sizeof(target));

	return n > 0 && lies_in((struct str){target, (size_t)n}, top);
}

/* By working directory and program. Those of other users cannot be seen. */
static int add_processes(struct list *list, struct str top, struct failure *f)
{
	struct arena *arena = list->call->arena;
	DIR *dir = opendir("/proc");
	const struct dirent *entry;

	if (dir == NULL)
		return fail_errno(f, "open /proc");
	while ((entry = readdir(dir)) != NULL) {
		char name[64] = "?";
		FILE *file;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
			atoi(entry->d_name) == getpid())
			continue;
		if (!process_is_in(arena, entry->d_name, "cwd", top) &&
			!process_is_in(arena, entry->d_name, "exe", top))
			continue;
		file = fopen(arena_printf(arena, "/proc/%s/comm", entry->d_name), "re");
		if (file != NULL) {
			if (fgets(name, sizeof(name), file) == NULL)
				name[0] = '\0';
			fclose(file);
		}
		add(list, LOSS_PROCESS, STR(""),
			str_printf(arena, "%s (%.*s)", entry->d_name, STRF(chomp(str_of(name)))));
	}
	closedir(dir);
	return 0;
}

/* ---- all of it ---- */

static int look(struct list *list, struct str top, struct str prefix, int level, struct failure *f);

static int look_into_submodules(
	struct list *list, const char *top, struct str prefix, int level, struct failure *f)
{
	struct arena *arena = list->call->arena;
	struct str rest, entry;

	if (git_run(list->call, &(struct git){.path = top}, GIT_ARGS("ls-files", "-s", "-z"), &rest,
		    f) != 0)
		return -1;
	while (next_piece(&rest, &entry)) {
		const char *tab = memchr(entry.p, '\t', entry.n);
		struct str path, inside;
		struct stat about;

		if (!str_starts(entry, STR("160000 ")) || tab == NULL)
			continue;
		path = (struct str){tab + 1, entry.n - (size_t)(tab + 1 - entry.p)};
		inside = str_printf(arena, "%s/%.*s", top, STRF(path));
		if (lstat(arena_printf(arena, "%s/.git", inside.p), &about) != 0)
			continue; /* not checked out: empty */
		if (level == LIMIT_SUBMODULE_LEVELS)
			return fault(f, FAULT_TOO_LARGE,
				"Submodules are nested more than %d levels.",
				LIMIT_SUBMODULE_LEVELS);
		if (look(list, inside, str_printf(arena, "%.*s%.*s/", STRF(prefix), STRF(path)),
			    level + 1, f) != 0)
			return -1;
	}
	return 0;
}

static int look(struct list *list, struct str path, struct str prefix, int level, struct failure *f)
{
	struct repository repository;
	struct str branch;
	const char *top;
	bool commits;

	if (repository_find(list->call, path, &repository, f) != 0)
		return -1;
	top = str_z(list->call->arena, repository.top);
	add_states(list, str_z(list->call->arena, repository.git_dir), prefix);
	if (add_files(list, top, prefix, f) != 0 || add_hidden(list, top, prefix, f) != 0 ||
		has_head(list->call, top, &commits, f) != 0 ||
		branch_now(list->call, top, &branch, f) != 0)
		return -1;
	if (commits && add_commits(list, top, prefix, branch, level > 0, f) != 0)
		return -1;
	if (branch.n > 0 && commits && add_stashes(list, top, prefix, branch, f) != 0)
		return -1;
	return look_into_submodules(list, top, prefix, level, f);
}

int worktree_losses(
	const struct workspace_call *call, struct str path, struct losses *out, struct failure *f)
{
	struct list list = {.call = call};
	struct repository repository;

	if (repository_find(call, path, &repository, f) != 0)
		return -1;
	list.rows = ARENA_ARRAY(call->arena, struct loss, LIMIT_LOSSES);
	buf_init(&list.all, call->arena, SIZE_MAX);
	if (add_processes(&list, repository.top, f) != 0 ||
		look(&list, repository.top, STR(""), 0, f) != 0)
		return -1;
	*out = (struct losses){list.rows, list.n, list.total, STR_NONE};
	if (list.total > 0)
		out->token = (struct str){sha256_hex(call->arena, buf_str(&list.all)).p, 16};
	return 0;
}

/* ---- removal ---- */

static int refuse(struct failure *f, struct str path, const struct losses *losses)
{
	struct buf text;
	struct json_writer w;

	buf_init(&text, f->arena, SIZE_MAX);
	json_writer_init(&w, &text);
	jw_array_begin(&w);
	for (size_t i = 0; i < losses->n; i++) {
		jw_object_begin(&w);
		jw_ktext(&w, "kind", kind_names[losses->rows[i].kind]);
		jw_kstr(&w, "what", show_bytes(f->arena, losses->rows[i].what));
		jw_object_end(&w);
	}
	jw_array_end(&w);
	(void)fault(f, FAULT_WOULD_LOSE, "%.*s holds what exists nowhere else: %zu %s.", STRF(path),
		losses->total, losses->total == 1 ? "thing" : "things");
	fail_detail_raw(f, "losses", buf_str(&text));
	fail_detail_int(f, "total", (int64_t)losses->total);
	fail_detail_str(f, "token", losses->token);
	return -1;
}

/* Without a force git looks once more itself. It removes no submodules without one, though these
 * were looked into. */
static int take_away(const struct workspace_call *call, const char *common_dir, const char *path,
	bool by_force, struct failure *f)
{
	struct git git = {.path = common_dir};
	struct program_end end;

	if (!by_force) {
		if (git_try(call, &git, GIT_ARGS("worktree", "remove", "--", path), &end, f) != 0)
			return -1;
		if (end.exit_code == 0)
			return 0;
		if (!says(&end, "containing submodules"))
			return git_fault(&git, &end, f);
	}
	return git_run(call, &git, GIT_ARGS("worktree", "remove", "--force", "--force", "--", path),
		NULL, f);
}

int worktree_remove(const struct workspace_call *call, struct str root, struct str path,
	struct str force, struct failure *f)
{
	struct str real;
	struct losses losses;
	struct repository repository;

	if (worktree_check(call, root, path, &real, f) != 0 ||
		repository_find(call, real, &repository, f) != 0)
		return -1;
	if (str_eq(repository.git_dir, repository.common_dir))
		return fault(f, FAULT_MAIN_WORKTREE, "%.*s is the main work tree.", STRF(real));
	if (worktree_losses(call, real, &losses, f) != 0)
		return -1;
	if (losses.total > 0 && !str_eq(force, losses.token))
		return refuse(f, real, &losses); /* (2) */
	return take_away(call, str_z(call->arena, repository.common_dir), str_z(call->arena, real),
		losses.total > 0, f);
}
