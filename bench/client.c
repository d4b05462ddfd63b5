#include "bench/client.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vfprintf(stderr, fmt, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(1);
}

size_t lines_read(const char *file, char ***out)
{
	FILE *in = fopen(file, "re");
	char **lines = NULL;
	char *line = NULL;
	size_t size = 0;
	size_t n = 0;
	size_t cap = 0;
	ssize_t got;

	if (in == NULL)
		die("%s: %m", file);
	while ((got = getline(&line, &size, in)) > 0) {
		if (line[got - 1] == '\n')
			line[got - 1] = '\0';
		if (n == cap) {
			cap = cap == 0 ? 1024 : 2 * cap;
			lines = realloc(lines, cap * sizeof(*lines));
		}
		if (lines == NULL)
			abort();
		lines[n++] = strdup(line);
	}
	free(line);
	(void)fclose(in);
	*out = lines;
	return n;
}

void target_parse(struct target *target, const char *url, const char *token_file)
{
	char **lines;

	memset(target, 0, sizeof(*target));
	if (sscanf(url, "http://%63[^:/]:%7[0-9]", target->host, target->port) != 2)
		die("%s: not of the form http://HOST:PORT", url);
	if (token_file != NULL && lines_read(token_file, &lines) > 0)
		(void)snprintf(target->authorization, sizeof(target->authorization), "Authorization: Bearer %s\r\n",
			lines[0]);
}

int target_connect(const struct target *target)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	int one = 1;
	int fd;

	if (getaddrinfo(target->host, target->port, &hints, &found) != 0)
		die("%s: no such address", target->host);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket: %m");
	if (connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
		(void)close(fd);
		fd = -1;
	} else {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	}
	freeaddrinfo(found);
	return fd;
}

void target_post(const struct target *target, struct buf *out, const char *path, struct str body)
{
	buf_printf(out,
		"POST %s HTTP/1.1\r\nHost: %s:%s\r\n%sContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		path, target->host, target->port, target->authorization, body.n);
	buf_add_str(out, body);
}

int response_parse(struct str bytes, struct response *out)
{
	const char *end = bytes.n == 0 ? NULL : memmem(bytes.p, bytes.n, "\r\n\r\n", 4);
	size_t head;
	long length = -1;

	if (end == NULL)
		return 0;
	head = (size_t)(end - bytes.p) + 4;
	if (bytes.n < 12 || memcmp(bytes.p, "HTTP/1.1 ", 9) != 0)
		return -1;
	for (const char *line = bytes.p; line < end && length < 0;) {
		const char *next = memchr(line, '\n', head - (size_t)(line - bytes.p));

		if (strncasecmp(line, "Content-Length:", 15) == 0)
			length = strtol(line + 15, NULL, 10);
		line = next + 1;
	}
	if (length < 0)
		return -1;
	if (bytes.n - head < (size_t)length)
		return 0;
	out->status = (int)strtol(bytes.p + 9, NULL, 10);
	out->body = (struct str){bytes.p + head, (size_t)length};
	out->bytes = head + (size_t)length;
	return 1;
}

void latencies_add(struct latencies *all, int64_t us)
{
	if (all->n == all->cap) {
		all->cap = all->cap == 0 ? 65536 : 2 * all->cap;
		all->us = realloc(all->us, all->cap * sizeof(*all->us));
		if (all->us == NULL)
			abort();
	}
	all->us[all->n++] = us < 0 ? 0 : us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a;
	const uint32_t *y = b;

	return (*x > *y) - (*x < *y);
}

static double at(const struct latencies *all, double part)
{
	size_t i = (size_t)(part * (double)(all->n - 1) + 0.5);

	return all->n == 0 ? 0 : all->us[i] / 1000.0;
}

void latencies_print(struct latencies *all)
{
	if (all->n > 0)
		qsort(all->us, all->n, sizeof(*all->us), by_value);
	(void)printf("{\"n\":%zu,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f}", all->n, at(all, 0.5),
		at(all, 0.9), at(all, 0.99), at(all, 1));
}
