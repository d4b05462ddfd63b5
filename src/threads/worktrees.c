#include "threads/worktrees.h"

#include "threads/engine.h"

#include <sys/stat.h>

SQL(SQL_WORKTREES,
	"SELECT t.n, t.id, t.title, t.worktree_path, t.branch, p.workspace_root, EXISTS (SELECT 1 FROM thread o JOIN thread_run r"
	" ON r.thread_n = o.n AND r.status < 5 WHERE o.worktree_path = t.worktree_path) FROM thread t JOIN project p ON p.n ="
	" t.project_n WHERE t.workspace = 1 AND t.worktree_path IS NOT NULL ORDER BY t.n");

static bool is_there(struct arena *arena, struct str path)
{
	struct stat info;

	return stat(str_z(arena, path), &info) == 0;
}

int worktrees_list(struct snapshot *s, struct kept_worktree **out, size_t *count, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	size_t room = 0;
	int rc;

	*out = NULL;
	*count = 0;
	if (query(s, &q, f, SQL_WORKTREES, "") != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (!is_there(s->arena, col_str(&q, 3)))
			continue;
		if (*count == room) {
			*out = arena_grow(s->arena, *out, room * sizeof(**out), (room * 2 + 8) * sizeof(**out));
			room = room * 2 + 8;
		}
		(*out)[(*count)++] = (struct kept_worktree){.thread_n = col_int(&q, 0),
			.thread_id = col_str(&q, 1),
			.title = col_str(&q, 2),
			.path = col_str(&q, 3),
			.branch = col_str(&q, 4),
			.root = col_str(&q, 5),
			.is_busy = col_int(&q, 6) != 0};
	}
	return rc;
}

int kept_worktree_remove(const struct workspace_call *call, const struct kept_worktree *tree, struct str force, struct failure *f)
{
	if (tree->is_busy)
		return fail(f, FAIL_INVALID_REQUEST, "A run of %.*s works in the work tree: interrupt it first.", STRF(tree->thread_id));
	return worktree_remove(call, tree->root, tree->path, force, f);
}

SQL(SQL_SCOPES, "SELECT id, cwd FROM checkpoint_scope WHERE thread_n = $1");

int kept_scopes_list(struct snapshot *s, int64_t thread_n, struct kept_scope **out, size_t *count, struct failure *f)
{
	AUTO(query_endp) struct query q = {0};
	size_t room = 0;
	int rc;

	*out = NULL;
	*count = 0;
	if (query(s, &q, f, SQL_SCOPES, "i", thread_n) != 0)
		return -1;
	while ((rc = query_next(&q, f)) == 1) {
		if (*count == room) {
			*out = arena_grow(s->arena, *out, room * sizeof(**out), (room * 2 + 8) * sizeof(**out));
			room = room * 2 + 8;
		}
		(*out)[(*count)++] = (struct kept_scope){.id = col_str(&q, 0), .cwd = col_str(&q, 1)};
	}
	return rc;
}

int kept_scopes_forget(const struct workspace_call *call, const struct kept_scope *scopes, size_t count, struct failure *f)
{
	for (size_t i = 0; i < count; i++) {
		struct repository repository;
		struct failure gone;

		failure_init(&gone, call->arena);
		if (repository_find(call, scopes[i].cwd, &repository, &gone) == 0
			&& checkpoint_forget(call, repository.top, scopes[i].id, f) != 0)
			return -1;
	}
	return 0;
}
