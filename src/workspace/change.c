/* Which files differ between two trees. */
#include "workspace/private.h"

#include "base/limits.h"

static const char *kind_of(char letter)
{
	return letter == 'A' ? "added" : letter == 'D' ? "deleted" : "modified";
}

/* "12", or "-" for a binary file; moves `rest` behind the tab. */
static int64_t next_count(struct str *rest)
{
	const char *tab = rest->n == 0 ? NULL : memchr(rest->p, '\t', rest->n);
	struct str word = {rest->p, tab == NULL ? rest->n : (size_t)(tab - rest->p)};
	int64_t count;

	rest->p += word.n + (tab != NULL);
	rest->n -= word.n + (tab != NULL);
	return str_to_int(word, &count) ? count : -1;
}

/* First every file as ":modes ids LETTER", path; then in the same order
 * "additions<tab>deletions<tab>path". */
static void read_changes(struct arena *arena, struct str text, struct file_changes *out)
{
	struct file_change *rows = ARENA_ARRAY(arena, struct file_change, LIMIT_CHECKPOINT_FILES);
	size_t counted = 0, listed = 0;
	struct str piece;

	while (next_piece(&text, &piece)) {
		if (piece.p[0] == ':') {
			const char *kind = kind_of(piece.p[piece.n - 1]);

			if (next_piece(&text, &piece) && listed < LIMIT_CHECKPOINT_FILES)
				rows[listed] = (struct file_change){.path = piece, .kind = kind};
			listed++;
		} else if (counted < listed && counted < LIMIT_CHECKPOINT_FILES) {
			rows[counted].additions = next_count(&piece);
			rows[counted++].deletions = next_count(&piece);
		}
	}
	*out = (struct file_changes){
		rows, listed < LIMIT_CHECKPOINT_FILES ? listed : LIMIT_CHECKPOINT_FILES, listed};
}

int tree_compare(const struct workspace_call *call, const char *path, struct str before,
	struct str after, struct file_changes *out, struct failure *f)
{
	struct str text;

	if (git_run(call, &(struct git){.path = path},
		    GIT_ARGS("diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames",
			    "--no-ext-diff", "--no-textconv", "--ignore-submodules=none",
			    "--end-of-options", str_z(call->arena, before),
			    str_z(call->arena, after)),
		    &text, f) != 0)
		return -1;
	read_changes(call->arena, text, out);
	return 0;
}

void file_changes_write(const struct file_changes *files, struct json_writer *w)
{
	jw_array_begin(w);
	for (size_t i = 0; i < files->n; i++) {
		AUTO(arena_destroyp) struct arena *arena = arena_create();

		jw_object_begin(w);
		jw_kstr(w, "path", show_bytes(arena, files->rows[i].path));
		jw_ktext(w, "kind", files->rows[i].kind);
		jw_key(w, "additions");
		files->rows[i].additions < 0 ? jw_null(w) : jw_int(w, files->rows[i].additions);
		jw_key(w, "deletions");
		files->rows[i].deletions < 0 ? jw_null(w) : jw_int(w, files->rows[i].deletions);
		jw_object_end(w);
	}
	jw_array_end(w);
}
