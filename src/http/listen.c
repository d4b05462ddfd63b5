#include "http/listen.h"

#include "http/http.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* With port 0 the kernel's choice for the first family may be taken in the other one. */
#define ANY_PORT_TRIES 16

static int bad(struct failure *f, struct str text, const char *why)
{
	return fail(f, FAIL_BAD_CONFIGURATION, "listen address \"%.*s\": %s.", (int)utf8_cut(text, 200),
		text.p, why);
}

static bool parse_port(struct str text, uint16_t *out)
{
	int64_t port;

	if (text.n == 0 || text.n > 5)
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (!isdigit((unsigned char)text.p[i]))
			return false;
	if (!str_to_int(text, &port) || port > 65535)
		return false;
	*out = (uint16_t)port;
	return true;
}

static bool is_host_name(struct str host)
{
	for (size_t i = 0; i < host.n; i++) {
		unsigned char c = (unsigned char)host.p[i];

		if (!isalnum(c) && c != '.' && c != '-' && c != '_')
			return false;
	}
	return host.n > 0;
}

int listen_parse(struct str text, struct listen_address *out, struct failure *f)
{
	const char *colon = text.n == 0 ? NULL : memrchr(text.p, ':', text.n);
	struct listen_address address = {0};
	struct in6_addr v6;
	struct str host;

	if (colon == NULL)
		return bad(f, text, "expected HOST:PORT or [IPv6]:PORT");
	host = (struct str){text.p, (size_t)(colon - text.p)};
	if (!parse_port((struct str){colon + 1, text.n - host.n - 1}, &address.port))
		return bad(f, text, "the port must be a number from 0 to 65535");
	if (host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']') {
		address.is_v6 = true;
		host = (struct str){host.p + 1, host.n - 2};
	}
	if (host.n == 0)
		return bad(f, text, "the host is missing; 127.0.0.1 is this machine only, 0.0.0.0 all networks");
	if (host.n >= sizeof(address.host))
		return bad(f, text, "the host is too long");
	memcpy(address.host, host.p, host.n);
	if (address.is_v6 && inet_pton(AF_INET6, address.host, &v6) != 1)
		return bad(f, text, "what stands in brackets is no IPv6 address");
	if (!address.is_v6 && !is_host_name(host))
		return bad(f, text, "the host is neither a name nor an address; an IPv6 address needs brackets");
	*out = address;
	return 0;
}

int http_check_listen(struct str address, struct failure *f)
{
	struct listen_address parsed;

	return listen_parse(address, &parsed, f);
}

void listen_close(struct listen_sockets *sockets)
{
	for (size_t i = 0; i < sockets->n; i++)
		(void)close(sockets->fds[i]); /* nothing was written to a listener */
	sockets->n = 0;
}

/* Inode of the listening socket on `port`, or 0. */
static unsigned long find_inode(const char *table, uint16_t port)
{
	FILE *file = fopen(table, "re");
	unsigned long inode = 0;
	char line[512];

	if (file == NULL)
		return 0;
	while (inode == 0 && fgets(line, sizeof(line), file) != NULL) {
		unsigned int local, state;
		unsigned long found;

		if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %lu",
			    &local, &state, &found) == 3
			&& local == port && state == 0x0a)
			inode = found;
	}
	(void)fclose(file); /* read only */
	return inode;
}

static bool holds_inode(const char *pid, unsigned long inode)
{
	char path[320], wanted[64], link[64];
	bool found = false;
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	(void)snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	dir = opendir(path);
	if (dir == NULL)
		return false;
	while (!found && (entry = readdir(dir)) != NULL) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

		if (n > 0) {
			link[n] = '\0';
			found = strcmp(link, wanted) == 0;
		}
	}
	(void)closedir(dir); /* read only */
	return found;
}

int listen_holder(uint16_t port)
{
	unsigned long inode = find_inode("/proc/net/tcp", port);
	struct dirent *entry;
	int pid = 0;
	DIR *dir;

	if (inode == 0)
		inode = find_inode("/proc/net/tcp6", port);
	dir = inode == 0 ? NULL : opendir("/proc");
	if (dir == NULL)
		return 0;
	while (pid == 0 && (entry = readdir(dir)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]) && holds_inode(entry->d_name, inode))
			pid = atoi(entry->d_name);
	(void)closedir(dir); /* read only */
	return pid;
}

static int fail_bind(const struct listen_address *address, uint16_t port, int error, struct failure *f)
{
	const char *open = address->is_v6 ? "[" : "", *shut = address->is_v6 ? "]" : "";
	int pid = error == EADDRINUSE ? listen_holder(port) : 0;

	if (pid != 0)
		(void)fail(f, FAIL_CANNOT_CREATE,
			"cannot listen on %s%s%s:%u: it is in use by process %d. A free port is picked by --listen 127.0.0.1:0.", open,
			address->host, shut, port, pid);
	else if (error == EADDRINUSE)
		(void)fail(f, FAIL_CANNOT_CREATE,
			"cannot listen on %s%s%s:%u: it is in use by another process. A free port is picked by --listen 127.0.0.1:0.",
			open, address->host, shut, port);
	else
		(void)fail(f, FAIL_CANNOT_CREATE, "cannot listen on %s%s%s:%u: %s.", open, address->host, shut,
			port, strerrordesc_np(error));
	if (pid != 0)
		fail_detail_int(f, "pid", pid);
	return -1;
}

static void set_port(struct sockaddr *address, uint16_t port)
{
	if (address->sa_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
}

static uint16_t bound_port(int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return 0;
	if (address.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)(void *)&address)->sin6_port);
	return ntohs(((struct sockaddr_in *)(void *)&address)->sin_port);
}

/* The socket, or -1 with errno. Listening at once keeps the port ours: two sockets that are only bound
 * may share it under SO_REUSEADDR. Clients wait in the backlog until we accept. */
static int bind_one(const struct addrinfo *at, uint16_t port)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	int on = 1, error;

	if (fd < 0)
		return -1;
	set_port(at->ai_addr, port);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0
		&& (at->ai_family != AF_INET6
			|| setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0)
		&& bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	error = errno;
	(void)close(fd); /* it never listened */
	errno = error;
	return -1;
}

/* A family this machine does not have is no reason to refuse a name that has another one. */
static bool is_absent_family(int error)
{
	return error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
}

/* 0, or an errno with nothing bound. */
static int bind_all(const struct addrinfo *list, uint16_t port, struct listen_sockets *out)
{
	struct listen_sockets sockets = {.port = port};
	int error = EADDRNOTAVAIL;

	for (const struct addrinfo *at = list; at != NULL && sockets.n < LISTEN_SOCKETS; at = at->ai_next) {
		int fd = bind_one(at, sockets.port);

		if (fd >= 0) {
			sockets.fds[sockets.n++] = fd;
			sockets.port = bound_port(fd);
			continue;
		}
		error = errno;
		if (is_absent_family(error) && list->ai_next != NULL)
			continue;
		listen_close(&sockets);
		return error;
	}
	if (sockets.n == 0)
		return error;
	*out = sockets;
	return 0;
}

int listen_open(const struct listen_address *address, struct listen_sockets *out, struct failure *f)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	int tries = address->port == 0 ? ANY_PORT_TRIES : 1;
	struct addrinfo *list;
	int error = getaddrinfo(address->host, NULL, &hints, &list);

	if (error != 0)
		return fail(f, FAIL_BAD_CONFIGURATION, "listen address \"%s:%u\": the name has no address (%s)",
			address->host, (unsigned int)address->port, gai_strerror(error));
	do {
		error = bind_all(list, address->port, out);
	} while (error == EADDRINUSE && --tries > 0);
	freeaddrinfo(list);
	return error == 0 ? 0 : fail_bind(address, address->port, error, f);
}
