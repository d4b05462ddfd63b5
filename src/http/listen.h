/* http/listen.h - listen addresses: from HOST:PORT to bound sockets. */
#ifndef DAIS_HTTP_LISTEN_H
#define DAIS_HTTP_LISTEN_H

#include "base/failure.h"

struct listen_address {
	char host[256]; /* without brackets */
	uint16_t port;	/* 0: any */
	bool is_v6;	/* was written in brackets */
};

/* A name such as localhost stands for several sockets, one for each address family. */
#define LISTEN_SOCKETS 4

struct listen_sockets {
	int fds[LISTEN_SOCKETS];
	size_t n;
	uint16_t port; /* the real one */
};

/* HOST:PORT or [v6]:PORT. FAIL_BAD_CONFIGURATION names the value and what is wrong with it. */
int listen_parse(struct str text, struct listen_address *out, struct failure *f);
/* Bind and listen on all of the address or nothing. FAIL_CANNOT_CREATE names address, reason and, when
 * /proc tells, the process that holds it; FAIL_BAD_CONFIGURATION: the name has no address. */
int listen_open(const struct listen_address *address, struct listen_sockets *out, struct failure *f);
void listen_close(struct listen_sockets *sockets);
/* The process that listens on `port`, or 0 when /proc does not tell. */
int listen_holder(uint16_t port);

#endif
