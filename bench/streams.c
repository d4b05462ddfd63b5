/* Many followers of the live events: streams --url URL --token-file F --streams N --pid PID --calls N --words FILE
 *
 * Opens N streams, notes what the server's memory grew by, then makes one transition at a time and takes the
 * time from sending the call until the last stream has its event, and until the call itself is answered.
 * Prints one JSON object. */
#include "bench/client.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

struct follower {
	int fd;
	bool is_open;	/* its head has come */
	size_t matched; /* of the marker, across reads */
};

static const char marker[] = "event: item.advanced";
static struct target target;
static struct follower *followers;
static size_t follower_count, arrived;
static int epoll_fd;

static long rss_kb(const char *pid)
{
	char path[64];
	char line[256];
	long kb = 0;
	FILE *in;

	(void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
	in = fopen(path, "re");
	while (in != NULL && fgets(line, sizeof(line), in) != NULL)
		if (strncmp(line, "VmRSS:", 6) == 0)
			kb = strtol(line + 6, NULL, 10);
	if (in != NULL)
		(void)fclose(in);
	return kb;
}

static void open_follower(struct follower *follower)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = follower};
	char request[512];
	int n = snprintf(request, sizeof(request), "GET /api/v1/events HTTP/1.1\r\nHost: %s:%s\r\n%s\r\n", target.host,
		target.port, target.authorization);

	follower->fd = target_connect(&target);
	if (follower->fd < 0 || write(follower->fd, request, (size_t)n) != n ||
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, follower->fd, &event) != 0)
		die("stream: %m");
}

/* Counts how often the marker has gone by, also across reads. */
static void scan(struct follower *follower, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == marker[follower->matched])
			follower->matched++;
		else
			follower->matched = p[i] == marker[0];
		if (follower->matched == sizeof(marker) - 1) {
			follower->matched = 0;
			arrived++;
		}
	}
}

static void receive(struct follower *follower)
{
	char bytes[16384];
	ssize_t n = read(follower->fd, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		die("a stream ended");
	if (!follower->is_open) {
		if (n < 12 || memcmp(bytes, "HTTP/1.1 200", 12) != 0)
			die("a stream was refused: %.*s", (int)n, bytes);
		follower->is_open = true;
		arrived++;
		return;
	}
	scan(follower, bytes, (size_t)n);
}

static void wait_for_arrivals(size_t count)
{
	struct epoll_event events[512];

	while (arrived < count) {
		int n = epoll_wait(epoll_fd, events, 512, 10000);

		if (n == 0)
			die("%zu of %zu came within 10 s", arrived, count);
		for (int i = 0; i < n; i++)
			receive(events[i].data.ptr);
	}
}

static void call(int fd, const char *word, const char *trigger, struct latencies *last, struct latencies *answered)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	struct response response;
	char bytes[65536];
	struct buf out;
	ssize_t n;
	int64_t began;

	buf_init(&out, arena, SIZE_MAX);
	target_post(&target, &out, "/api/v1/ops/advance",
		str_printf(arena, "{\"ops\":[{\"op\":\"transition\",\"itemId\":\"%s\",\"trigger\":\"%s\"}]}", word, trigger));
	arrived = 0;
	began = clock_mono_us();
	if (write(fd, out.p, out.n) != (ssize_t)out.n)
		die("call: %m");
	wait_for_arrivals(follower_count);
	latencies_add(last, clock_mono_us() - began);
	if (poll(&ready, 1, 10000) != 1 || (n = read(fd, bytes, sizeof(bytes))) <= 0 ||
		response_parse((struct str){bytes, (size_t)n}, &response) != 1 || response.status != 200)
		die("a call was not answered");
	latencies_add(answered, clock_mono_us() - began);
}

static const char *option(int argc, char **argv, const char *name)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	die("%s is missing", name);
}

int main(int argc, char **argv)
{
	static const char *const triggers[] = {"start", "complete", "reopen"};
	const char *pid = option(argc, argv, "--pid");
	size_t calls = strtoul(option(argc, argv, "--calls"), NULL, 10);
	struct rlimit files = {8192, 8192};
	struct latencies last = {NULL, 0, 0};
	struct latencies answered = {NULL, 0, 0};
	char **words;
	long before;
	long after;
	int fd;

	follower_count = strtoul(option(argc, argv, "--streams"), NULL, 10);
	target_parse(&target, option(argc, argv, "--url"), option(argc, argv, "--token-file"));
	if (lines_read(option(argc, argv, "--words"), &words) == 0)
		die("no words");
	(void)setrlimit(RLIMIT_NOFILE, &files);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	followers = calloc(follower_count, sizeof(*followers));
	if (followers == NULL || epoll_fd < 0)
		die("%m");
	before = rss_kb(pid);
	for (size_t i = 0; i < follower_count; i++) {
		open_follower(&followers[i]);
		wait_for_arrivals(i + 1);
	}
	(void)usleep(500000); /* the server trims what the requests took */
	after = rss_kb(pid);
	fd = target_connect(&target);
	for (size_t i = 0; i < calls; i++)
		call(fd, words[0], triggers[i % 3], &last, &answered);
	(void)printf("{\"streams\":%zu,\"rssBeforeKb\":%ld,\"rssAfterKb\":%ld,\"lastMs\":", follower_count, before, after);
	latencies_print(&last);
	(void)printf(",\"answerMs\":");
	latencies_print(&answered);
	(void)printf("}\n");
	return 0;
}
