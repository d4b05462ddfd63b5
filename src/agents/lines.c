/* The spool, line by line. Each byte is looked at once, and nothing is held while nothing is unread. */
#include "agents/private.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void lines_init(struct lines *lines, int64_t offset)
{
	*lines = (struct lines){.fd = -1, .at = offset};
}

static void release(struct lines *lines)
{
	free(lines->p);
	lines->p = NULL;
	lines->from = lines->n = lines->cap = lines->scanned = 0;
}

void lines_finish(struct lines *lines)
{
	release(lines);
	if (lines->fd >= 0)
		(void)close(lines->fd);
	lines->fd = -1;
}

static void make_room(struct lines *lines)
{
	size_t kept = lines->n - lines->from;

	if (lines->p != NULL && lines->from > 0) { /* at most once for each byte of a line: then it begins at 0 */
		memmove(lines->p, lines->p + lines->from, kept);
		lines->from = 0;
		lines->n = kept;
	}
	if (lines->n < lines->cap)
		return;
	lines->cap = lines->cap == 0 ? LIMIT_AGENT_READ_BYTES : lines->cap * 2;
	if ((int64_t)lines->cap > lines->line_bytes + LIMIT_AGENT_LINE_SLACK_BYTES)
		lines->cap = (size_t)(lines->line_bytes + LIMIT_AGENT_LINE_SLACK_BYTES);
	lines->p = realloc(lines->p, lines->cap);
	if (lines->p == NULL)
		abort();
}

/* False when nothing came. */
static bool read_on(struct lines *lines, int dir)
{
	ssize_t n;

	if (lines->fd < 0)
		lines->fd = openat(dir, FILE_SPOOL, O_RDONLY | O_CLOEXEC);
	if (lines->fd < 0 || (int64_t)(lines->n - lines->from) > lines->line_bytes + 1)
		return false; /* a line that is too long: the host ends its program for it */
	make_room(lines);
	do
		n = pread(lines->fd, lines->p + lines->n, lines->cap - lines->n, lines->at);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	lines->n += (size_t)n;
	lines->at += n;
	return true;
}

static int take(struct lines *lines, size_t n, size_t end_bytes, struct str *line, int64_t *end)
{
	*line = (struct str){lines->p + lines->from, n};
	lines->from += n + end_bytes;
	lines->scanned = 0;
	*end = lines->at - (int64_t)(lines->n - lines->from);
	return 1;
}

int lines_next(struct lines *lines, int dir, bool is_final, struct str *line, int64_t *end)
{
	for (;;) {
		const char *start = lines->p == NULL ? NULL : lines->p + lines->from;
		size_t have = lines->n - lines->from;
		const char *found = have == lines->scanned ? NULL : memchr(start + lines->scanned, '\n', have - lines->scanned);

		if (found != NULL)
			return take(lines, (size_t)(found - start), 1, line, end);
		lines->scanned = have;
		if (read_on(lines, dir))
			continue;
		if (is_final && have > 0 && (int64_t)have <= lines->line_bytes)
			return take(lines, have, 0, line, end);
		if (have == 0)
			release(lines);
		return 0;
	}
}
