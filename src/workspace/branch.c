/* Names of branches. */
#include "workspace/private.h"

#include "base/limits.h"

#define TEMPORARY "dais/"

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_separator(char c)
{
	return c == '/' || c == '-' || c == '_';
}

/* Separators stand between plain characters only; a run with a slash becomes one slash, so that no
 * part begins or ends with one. */
static size_t add_separators(char *out, size_t n, const char *run, size_t count)
{
	if (n == 0)
		return 0;
	if (memchr(run, '/', count) != NULL) {
		out[n] = '/';
		return n + 1;
	}
	memcpy(out + n, run, count);
	return n + count;
}

struct str branch_clean(struct arena *arena, struct str wanted)
{
	struct str in = str_lower(arena, wanted);
	char *out = arena_alloc(arena, in.n + 1), *run = arena_alloc(arena, in.n + 1);
	size_t n = 0, count = 0;
	bool was_other = false;

	for (size_t i = 0; i < in.n; i++) {
		char c = in.p[i];

		if (is_plain(c)) {
			n = add_separators(out, n, run, count);
			count = 0;
			out[n++] = c;
		} else if (is_separator(c)) {
			run[count++] = c;
		} else if (!was_other) {
			run[count++] = '-';
		}
		was_other = !is_plain(c) && !is_separator(c);
	}
	n = n > LIMIT_BRANCH_CHARS ? LIMIT_BRANCH_CHARS : n;
	while (n > 0 && is_separator(out[n - 1]))
		n--;
	return n == 0 ? STR("update") : (struct str){out, n};
}

bool branch_is_temporary(struct str branch)
{
	if (!str_starts(branch, STR(TEMPORARY)) || branch.n != sizeof(TEMPORARY) - 1 + 8)
		return false;
	for (size_t i = sizeof(TEMPORARY) - 1; i < branch.n; i++)
		if (!(branch.p[i] >= '0' && branch.p[i] <= '9') &&
			!(branch.p[i] >= 'a' && branch.p[i] <= 'f'))
			return false;
	return true;
}
