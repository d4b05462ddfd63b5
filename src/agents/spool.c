/* What a program says: its stdout is appended to the spool, byte for byte, and the newest part of its stderr is kept. */
#include "agents/private.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int spool_open(struct spool *spool, int dir, int64_t line_bytes)
{
	int64_t longest = line_bytes + LIMIT_AGENT_LINE_SLACK_BYTES;

	*spool = (struct spool){
		.fd = openat(dir, FILE_SPOOL, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600),
		.line_bytes = line_bytes,
		/* The server can store whole lines only, so one line must fit whatever the limit is. */
		.max_unread = longest > LIMIT_AGENT_SPOOL_BYTES ? longest : LIMIT_AGENT_SPOOL_BYTES,
	};
	return spool->fd < 0 ? -1 : 0;
}

bool spool_is_full(const struct spool *spool)
{
	return spool->waiting_n > 0 || spool->written - spool->consumed >= spool->max_unread;
}

bool spool_flush(struct spool *spool)
{
	size_t done = 0;

	while (done < spool->waiting_n) {
		ssize_t n = write(spool->fd, spool->waiting + done, spool->waiting_n - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		done += (size_t)n;
	}
	spool->written += (int64_t)done;
	spool->waiting_n -= done;
	if (done > 0 && spool->waiting_n > 0)
		memmove(spool->waiting, spool->waiting + done, spool->waiting_n);
	return spool->waiting_n == 0;
}

/* How many of the bytes stand before the first one that makes a line too long. */
static size_t measure_lines(struct spool *spool, const char *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		const char *end = memchr(bytes + at, '\n', n - at);
		size_t part = end == NULL ? n - at : (size_t)(end - bytes) - at;

		if (spool->line_at + (int64_t)part > spool->line_bytes) {
			spool->is_too_long = true;
			return at;
		}
		spool->line_at = end == NULL ? spool->line_at + (int64_t)part : 0;
		spool->has_line |= end != NULL;
		at += part + (end != NULL);
	}
	return n;
}

void spool_add(struct spool *spool, const char *bytes, size_t n)
{
	if (spool->is_too_long)
		return;
	n = measure_lines(spool, bytes, n);
	/* Nobody reads on while something waits, and one read is what `waiting` holds. */
	while (n > 0) {
		size_t part = sizeof(spool->waiting) - spool->waiting_n;

		if (part > n)
			part = n;
		memcpy(spool->waiting + spool->waiting_n, bytes, part);
		spool->waiting_n += part;
		bytes += part;
		n -= part;
		if (!spool_flush(spool) && part == 0)
			return;
	}
}

void spool_consumed(struct spool *spool, int64_t offset)
{
	int64_t end;

	if (offset > spool->written)
		offset = spool->written;
	if (offset > spool->consumed)
		spool->consumed = offset;
	end = spool->consumed - spool->consumed % LIMIT_AGENT_READ_BYTES;
	if (end - spool->punched < LIMIT_AGENT_PUNCH_BYTES)
		return;
	/* Not every file system can; then the space comes back with the directory. */
	(void)fallocate(spool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, spool->punched, end - spool->punched);
	spool->punched = end;
}

/* ---- stderr ---- */

int errlog_open(struct errlog *log, int dir)
{
	/* It may hold a word of our own already, see attempt_host_main. */
	log->fd = openat(dir, FILE_STDERR, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	log->n = log->fd < 0 ? 0 : lseek(log->fd, 0, SEEK_END);
	return log->fd < 0 || log->n < 0 ? -1 : 0;
}

void errlog_add(struct errlog *log, const char *bytes, size_t n)
{
	ssize_t done = pwrite(log->fd, bytes, n, log->n);

	/* On a full disk it is lost: it is free text for people, and the program must not wait for it. */
	if (done > 0)
		log->n += done;
	if (log->n >= 2 * (int64_t)LIMIT_AGENT_STDERR_BYTES)
		errlog_trim(log);
}

void errlog_trim(struct errlog *log)
{
	char *newest;
	ssize_t n;

	if (log->n <= LIMIT_AGENT_STDERR_BYTES)
		return;
	newest = malloc(LIMIT_AGENT_STDERR_BYTES);
	if (newest == NULL)
		abort();
	n = pread(log->fd, newest, LIMIT_AGENT_STDERR_BYTES, log->n - LIMIT_AGENT_STDERR_BYTES);
	if (n > 0 && pwrite(log->fd, newest, (size_t)n, 0) == n && ftruncate(log->fd, n) == 0)
		log->n = n;
	free(newest);
}
