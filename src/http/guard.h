/* http/guard.h - who may talk to a listener from where: Host against DNS rebinding, Origin against
 * other pages, and the CORS answers of those that may. Immutable once made: any thread. */
#ifndef DAIS_HTTP_GUARD_H
#define DAIS_HTTP_GUARD_H

#include "http/http.h"

struct http_guard;

struct http_guard_options {
	/* `host`, `host:` (any port) or `host:port`, beside localhost, 127.0.0.1 and [::1], which
	 * always may. A single `*` turns the check off. Entries that are none of these are dropped
	 * with a warning. */
	const struct str *hosts;
	size_t host_count;
	/* `host[:port]` (http and https) or `scheme://host[:port]`. */
	const struct str *origins;
	size_t origin_count;
	bool loopback_origins; /* http(s) pages of the loopback host, any port, may too */
	bool refuses_origins;  /* an Origin that may not is refused; otherwise it just gets no CORS
	                          fields */
	const char *methods;   /* of a preflight, "GET, POST" */
	const char *request_headers;
	const char *request_header_prefix; /* or NULL: names with it are allowed as well,
	                                      "mcp-param-" */
	const char *exposed_headers;
	int max_age_s;
};

/* Copies what it needs. */
struct http_guard *http_guard_create(const struct http_guard_options *options);
void http_guard_destroy(struct http_guard *guard);

enum http_guard_verdict {
	HTTP_GUARD_PASS,
	HTTP_GUARD_HOST,      /* 403; never echo the value */
	HTTP_GUARD_ORIGIN,    /* 403 */
	HTTP_GUARD_PREFLIGHT, /* an OPTIONS that may: answer it with http_guard_preflight */
};
enum http_guard_verdict http_guard_check(
	const struct http_guard *guard, const struct http_exchange *x);
void http_guard_preflight(const struct http_guard *guard, struct http_exchange *x);

#define HTTP_GUARD_FIELDS 3
/* CORS fields that belong on every answer to this exchange, errors too; how many were written. */
size_t http_guard_fields(const struct http_guard *guard, const struct http_exchange *x,
	struct http_field out[HTTP_GUARD_FIELDS]);

/* The two comparisons by themselves. */
bool http_guard_host_fits(const struct http_guard *guard, struct str host);
bool http_guard_origin_fits(const struct http_guard *guard, struct str origin);

#endif
