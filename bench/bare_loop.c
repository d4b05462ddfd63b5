#include "bench/bare.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define IN_BYTES 16384

struct peer {
	int fd;
	size_t n;
	char in[IN_BYTES];
};

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n"
			     "{\"ok\":true}";

/* Bytes of the first whole request, 0 when there is none yet. */
static size_t request_bytes(const char *p, size_t n)
{
	const char *end = memmem(p, n, "\r\n\r\n", 4);
	const char *length;
	size_t head;
	size_t body;

	if (end == NULL)
		return 0;
	head = (size_t)(end - p) + 4;
	length = memmem(p, head, "Content-Length: ", 16);
	body = length == NULL ? 0 : strtoul(length + 16, NULL, 10);
	return n >= head + body ? head + body : 0;
}

static void serve(struct peer *peer)
{
	ssize_t got = read(peer->fd, peer->in + peer->n, sizeof(peer->in) - peer->n);
	size_t n;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		(void)close(peer->fd);
		free(peer);
		return;
	}
	peer->n += (size_t)got;
	while ((n = request_bytes(peer->in, peer->n)) > 0) {
		memmove(peer->in, peer->in + n, peer->n - n);
		peer->n -= n;
		if (write(peer->fd, answer, sizeof(answer) - 1) < 0)
			return; /* the next read tells */
	}
}

static void accept_one(int epoll_fd, int listen_fd)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
	int one = 1;

	if (peer == NULL)
		abort();
	peer->fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (peer->fd < 0) {
		free(peer);
		return;
	}
	(void)setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)epoll_ctl(epoll_fd, EPOLL_CTL_ADD, peer->fd, &event);
}

int bare_loop(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	struct epoll_event events[256];

	if (bind(listen_fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listen_fd, 512) != 0 ||
		getsockname(listen_fd, (struct sockaddr *)&address, &size) != 0 ||
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &event) != 0) {
		perror("bare");
		return 1;
	}
	(void)printf("bare: ready http://127.0.0.1:%d\n", ntohs(address.sin_port));
	(void)fflush(stdout);
	for (;;) {
		int n = epoll_wait(epoll_fd, events, 256, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == NULL)
				accept_one(epoll_fd, listen_fd);
			else
				serve(events[i].data.ptr);
		}
	}
}
