/* Directories of agents that nobody owns. */
#include "threads/rebuild.h"

#include <dirent.h>
#include <errno.h>

SQL(SQL_SESSION_LIVE, "SELECT n FROM provider_session WHERE n = $1 AND status < 4");

static int look_at(struct snapshot *s, const char *directory, const char *name,
	void (*found)(void *context, struct str line), void *context, struct failure *f)
{
	int64_t n;
	int rc = str_to_int(str_of(name), &n) ? query_int(s, &n, f, SQL_SESSION_LIVE, "i", n) : 0;

	if (rc == 0)
		found(context, str_printf(s->arena, "%s/%s belongs to no live session; the next start of the server ends and removes it", directory, name));
	return rc;
}

int threads_leftovers(struct snapshot *s, const char *directory, void (*found)(void *context, struct str line), void *context,
	struct failure *f)
{
	DIR *dir = opendir(directory);
	int findings = 0;
	int rc = 0;

	if (dir == NULL)
		return errno == ENOENT ? 0 : fail_errno(f, "open %s", directory);
	for (const struct dirent *entry; rc >= 0 && (entry = readdir(dir)) != NULL;) {
		if (entry->d_name[0] == '.')
			continue;
		rc = look_at(s, directory, entry->d_name, found, context, f);
		findings += rc == 0;
	}
	(void)closedir(dir);
	return rc < 0 ? -1 : findings;
}
