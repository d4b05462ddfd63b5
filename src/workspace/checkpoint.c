/* Checkpoints: hidden refs to commits of what a work tree held. */
#include "workspace/private.h"

#include "base/id.h"

#include <assert.h>

#define PREFIX "refs/dais/checkpoints/"

static const char *const status_names[] = {
	[CHECKPOINT_READY] = "ready",
	[CHECKPOINT_MISSING] = "missing",
	[CHECKPOINT_ERROR] = "error",
};

const char *checkpoint_status_name(enum checkpoint_status status)
{
	return status_names[status];
}

static struct str scope_prefix(struct arena *arena, struct str scope_id)
{
	struct str digest = sha256_hex(arena, scope_id);

	return str_printf(arena, PREFIX "%.*s/", STRF(base64url(arena, digest.p, 32)));
}

struct str checkpoint_ref(struct arena *arena, struct str scope_id, int64_t ordinal)
{
	return str_printf(
		arena, "%.*sordinal/%lld", STRF(scope_prefix(arena, scope_id)), (long long)ordinal);
}

/* The tree of a ref; absent when there is none. */
static int find_tree(const struct workspace_call *call, const char *path, struct str ref,
	struct str *out, struct failure *f)
{
	struct program_end end;

	if (git_try(call, &(struct git){.path = path},
		    GIT_ARGS("rev-parse", "--verify", "--quiet", "--end-of-options",
			    arena_printf(call->arena, "%.*s^{tree}", STRF(ref))),
		    &end, f) != 0)
		return -1;
	*out = end.exit_code == 0 ? chomp(end.out) : STR_NONE;
	return 0;
}

static int keep(const struct snapshot *s, struct checkpoint *made, struct failure *f)
{
	struct git git = {.path = s->top};
	struct str commit;

	if (git_run(s->call, &git,
		    GIT_ARGS("commit-tree", "-m", "dais checkpoint",
			    str_z(s->call->arena, made->tree)),
		    &commit, f) != 0)
		return -1;
	return git_run(s->call, &git,
		GIT_ARGS("update-ref", str_z(s->call->arena, made->ref),
			str_z(s->call->arena, chomp(commit))),
		NULL, f);
}

static int compare_with_previous(const struct snapshot *s, struct str scope_id, int64_t ordinal,
	struct checkpoint *made, struct failure *f)
{
	struct str before;

	if (ordinal == 0)
		return 0;
	if (find_tree(s->call, s->top, checkpoint_ref(s->call->arena, scope_id, ordinal - 1),
		    &before, f) != 0)
		return -1;
	return before.p == NULL
	               ? 0
	               : tree_compare(s->call, s->top, before, made->tree, &made->files, f);
}

static int capture(const struct workspace_call *call, struct str cwd, struct str scope_id,
	int64_t ordinal, struct checkpoint *made, struct failure *f)
{
	struct snapshot snapshot;
	int result = -1;

	if (snapshot_open(call, cwd, &snapshot, f) != 0)
		return -1;
	if (snapshot_tree(&snapshot, &made->tree, f) == 0 && keep(&snapshot, made, f) == 0)
		result = compare_with_previous(&snapshot, scope_id, ordinal, made, f);
	snapshot_close(&snapshot);
	return result;
}

void checkpoint_capture(const struct workspace_call *call, struct str cwd, struct str scope_id,
	int64_t ordinal, struct checkpoint *out)
{
	struct failure f;

	assert(ordinal >= 0);
	failure_init(&f, call->arena);
	*out = (struct checkpoint){
		.status = CHECKPOINT_READY, .ref = checkpoint_ref(call->arena, scope_id, ordinal)};
	if (capture(call, cwd, scope_id, ordinal, out, &f) == 0)
		return;
	out->files = (struct file_changes){NULL, 0, 0};
	out->status =
		fault_is(&f, FAULT_REPOSITORY_MISSING) ? CHECKPOINT_MISSING : CHECKPOINT_ERROR;
	out->problem = f.message;
}

int checkpoint_forget(
	const struct workspace_call *call, struct str root, struct str scope_id, struct failure *f)
{
	struct git git = {.path = str_z(call->arena, root)};
	struct str prefix = scope_prefix(call->arena, scope_id), list;
	struct buf commands;

	if (git_run(call, &git, GIT_ARGS("for-each-ref", "--format=%(refname)", prefix.p), &list,
		    f) != 0)
		return -1;
	buf_init(&commands, call->arena, SIZE_MAX);
	while (list.n > 0) {
		const char *end = memchr(list.p, '\n', list.n);
		struct str ref = {list.p, end == NULL ? list.n : (size_t)(end - list.p)};

		buf_printf(&commands, "delete %.*s\n", STRF(ref));
		list = (struct str){list.p + ref.n + (end != NULL), list.n - ref.n - (end != NULL)};
	}
	if (commands.n == 0)
		return 0;
	git.input = buf_str(&commands);
	return git_run(call, &git, GIT_ARGS("update-ref", "--stdin"), NULL, f);
}

/* ---- for restore.c ---- */

int checkpoint_find(const struct workspace_call *call, const char *path, struct str ref,
	struct str *tree, struct failure *f)
{
	if (!str_starts(ref, STR(PREFIX)))
		return fault(f, FAULT_CHECKPOINT_NOT_FOUND,
			"The name of a checkpoint begins with " PREFIX ".");
	if (find_tree(call, path, ref, tree, f) != 0)
		return -1;
	return tree->p != NULL ? 0
	                       : fault(f, FAULT_CHECKPOINT_NOT_FOUND,
					 "The repository has no checkpoint %.*s.", STRF(ref));
}
