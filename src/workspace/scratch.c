/* Scratch folders: for threads that belong to no project. */
#include "workspace/private.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"

#include <errno.h>
#include <sys/stat.h>

#define TRIES 8 /* the short name, the whole id, then random ones */

/* Words of ASCII letters and digits; a title in another script leaves "thread". */
static struct str slug_of(struct arena *arena, struct str title)
{
	struct str in = str_lower(arena, title);
	char *out = arena_alloc(arena, LIMIT_SCRATCH_CHARS + 1);
	size_t n = 0, words = 0;
	bool in_word = false;

	for (size_t i = 0; i < in.n && n < LIMIT_SCRATCH_CHARS; i++) {
		char c = in.p[i];
		bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

		if (is_word && !in_word) {
			if (++words > LIMIT_SCRATCH_WORDS)
				break;
			if (n > 0)
				out[n++] = '-';
		}
		if (is_word && n < LIMIT_SCRATCH_CHARS)
			out[n++] = c;
		in_word = is_word;
	}
	while (n > 0 && out[n - 1] == '-')
		n--;
	return n == 0 ? STR("thread") : (struct str){out, n};
}

/* Where git is not installed there is no repository that it could disturb. */
static int refuse_inside_repository(
	const struct workspace_call *call, const char *folder, struct failure *f)
{
	struct program_end end;

	if (git_try(call, &(struct git){.path = folder}, GIT_ARGS("rev-parse", "--git-dir"), &end,
		    f) != 0)
		return fault_is(f, FAULT_GIT_MISSING) ? 0 : -1;
	if (end.exit_code != 0 && says(&end, "not a git repository"))
		return 0;
	return fault(f, FAULT_INSIDE_REPOSITORY,
		"The data directory of the server lies inside a git repository, so there are no scratch folders.");
}

static int claim(const char *path, bool *taken, struct failure *f)
{
	*taken = false;
	if (mkdir(path, 0700) == 0)
		return 0;
	*taken = errno == EEXIST;
	return *taken ? 0 : fault_errno(f, "make the folder", path);
}

int scratch_create(const struct workspace_call *call, struct str data, struct str title,
	struct str thread_id, int64_t now, struct str *out, struct failure *f)
{
	const char *parent = arena_printf(call->arena, "%.*s/scratch", STRF(data));
	struct str slug = slug_of(call->arena, title);
	struct str tail = thread_suffix(call->arena, thread_id);
	char day[TIME_TEXT_SIZE];
	bool taken;

	if (refuse_inside_repository(call, str_z(call->arena, data), f) != 0 ||
		make_dirs(parent, f) != 0)
		return -1;
	time_format(now, day);
	for (int try = 0; try < TRIES; try++) {
		unsigned char random[4];
		struct str path = str_printf(
			call->arena, "%s/%.10s-%.*s-%.*s", parent, day, STRF(slug), STRF(tail));

		if (claim(path.p, &taken, f) != 0)
			return -1;
		if (!taken) {
			*out = path;
			return 0;
		}
		tail = name_part(call->arena, thread_id);
		random_bytes(random, sizeof(random));
		if (try > 0)
			tail = str_printf(call->arena, "%.*s-%.*s", STRF(tail),
				STRF(hex(call->arena, random, sizeof(random))));
	}
	return fault(f, FAULT_PATH_TAKEN, "No free name was found in %s.", parent);
}
