#include "http/guard.h"

#include "base/log.h"

#include <stdlib.h>

struct host {
	struct str name; /* lower case, without one trailing dot */
	struct str port; /* absent: any */
};

struct origin {
	struct str scheme; /* absent: http and https */
	struct str rest;   /* host[:port], lower case */
};

struct http_guard {
	struct arena *arena;
	struct host *hosts;
	size_t host_count;
	bool any_host;
	struct origin *origins;
	size_t origin_count;
	struct http_guard_options options;
};

static bool all_digits(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return true;
}

/* host, host:digits*, [literal] or [literal]:digits*. An empty port reads as none. */
static bool host_split(struct str text, struct str *name, struct str *port)
{
	const char *end;
	size_t at;

	*port = STR_NONE;
	if (text.n == 0)
		return false;
	if (text.p[0] == '[') {
		end = memchr(text.p, ']', text.n);
		if (end == NULL)
			return false;
		at = (size_t)(end - text.p) + 1;
	} else {
		end = memchr(text.p, ':', text.n);
		at = end == NULL ? text.n : (size_t)(end - text.p);
	}
	*name = (struct str){text.p, at};
	if (name->n > 0 && text.p[0] != '[' && name->p[name->n - 1] == '.')
		name->n--;
	if (name->n == 0)
		return false;
	if (at == text.n)
		return true;
	*port = (struct str){text.p + at + 1, text.n - at - 1};
	if (text.p[at] != ':' || !all_digits(*port))
		return false;
	if (port->n == 0)
		*port = STR_NONE;
	return true;
}

static bool is_loopback(struct str name)
{
	return str_eq_nocase(name, STR("localhost")) || str_eq(name, STR("127.0.0.1")) ||
	       str_eq(name, STR("[::1]"));
}

static bool is_plain(struct str entry)
{
	for (size_t i = 0; i < entry.n; i++)
		if (entry.p[i] <= ' ' || strchr("/@?#\\*,", entry.p[i]) != NULL)
			return false;
	return true;
}

static void add_host(struct http_guard *guard, struct str entry, bool only)
{
	struct host host;

	if (only && str_eq(entry, STR("*"))) {
		guard->any_host = true;
		log_line(LOG_WARN, "http",
			"the Host check is off: any web page may reach this server by DNS rebinding");
	} else if (is_plain(entry) && host_split(entry, &host.name, &host.port)) {
		host.name = str_lower(guard->arena, host.name);
		host.port = str_dup(guard->arena, host.port);
		guard->hosts[guard->host_count++] = host;
	} else {
		log_line(LOG_WARN, "http",
			"an allowed host was ignored: it is not host or host:port",
			{"entry", LOG_STRV(entry)});
	}
}

static void add_origin(struct http_guard *guard, struct str entry)
{
	struct origin origin = {STR_NONE, entry};
	struct str name;
	struct str port;

	for (size_t i = 0; i + 2 < entry.n; i++)
		if (memcmp(entry.p + i, "://", 3) == 0) {
			origin.scheme = str_lower(guard->arena, (struct str){entry.p, i});
			origin.rest = (struct str){entry.p + i + 3, entry.n - i - 3};
			break;
		}
	if (!is_plain(origin.rest) || !host_split(origin.rest, &name, &port)) {
		log_line(LOG_WARN, "http",
			"an allowed origin was ignored: it is not host or scheme://host",
			{"entry", LOG_STRV(entry)});
		return;
	}
	origin.rest = str_lower(guard->arena, origin.rest);
	guard->origins[guard->origin_count++] = origin;
}

struct http_guard *http_guard_create(const struct http_guard_options *options)
{
	struct arena *arena = arena_create();
	struct http_guard *guard = ARENA_NEW(arena, struct http_guard);

	guard->arena = arena;
	guard->options = *options;
	guard->hosts = ARENA_ARRAY(arena, struct host, options->host_count + 1);
	guard->origins = ARENA_ARRAY(arena, struct origin, options->origin_count + 1);
	for (size_t i = 0; i < options->host_count; i++)
		add_host(guard, str_trim(options->hosts[i]), options->host_count == 1);
	for (size_t i = 0; i < options->origin_count; i++)
		add_origin(guard, str_trim(options->origins[i]));
	guard->options.methods = str_z(arena, str_of(options->methods));
	guard->options.request_headers = str_z(arena, str_of(options->request_headers));
	guard->options.exposed_headers = str_z(arena, str_of(options->exposed_headers));
	if (options->request_header_prefix != NULL)
		guard->options.request_header_prefix =
			str_z(arena, str_of(options->request_header_prefix));
	guard->options.hosts = NULL;
	guard->options.origins = NULL;
	return guard;
}

void http_guard_destroy(struct http_guard *guard)
{
	if (guard != NULL)
		arena_destroy(guard->arena);
}

bool http_guard_host_fits(const struct http_guard *guard, struct str host)
{
	struct str name;
	struct str port;

	if (!host_split(host, &name, &port))
		return false;
	if (is_loopback(name) || guard->any_host)
		return true;
	for (size_t i = 0; i < guard->host_count; i++)
		if (str_eq_nocase(name, guard->hosts[i].name) &&
			(guard->hosts[i].port.p == NULL || str_eq(port, guard->hosts[i].port)))
			return true;
	return false;
}

bool http_guard_origin_fits(const struct http_guard *guard, struct str origin)
{
	bool secure = str_starts(origin, STR("https://"));
	struct str scheme = secure ? STR("https") : STR("http");
	struct str name;
	struct str port;
	struct str rest;

	if (!secure && !str_starts(origin, STR("http://")))
		return false;
	rest = (struct str){origin.p + scheme.n + 3, origin.n - scheme.n - 3};
	if (!is_plain(rest) || !host_split(rest, &name, &port))
		return false;
	if (guard->options.loopback_origins && is_loopback(name))
		return true;
	for (size_t i = 0; i < guard->origin_count; i++)
		if (str_eq_nocase(rest, guard->origins[i].rest) &&
			(guard->origins[i].scheme.p == NULL ||
				str_eq(guard->origins[i].scheme, scheme)))
			return true;
	return false;
}

enum http_guard_verdict http_guard_check(
	const struct http_guard *guard, const struct http_exchange *x)
{
	bool is_options = str_eq(http_method(x), STR("OPTIONS"));
	size_t count;
	struct str host = http_header(x, "Host", &count);
	struct str origin;

	/* A missing Host is no browser; two of them are somebody trying. */
	if (count > 1 || (count == 1 && !http_guard_host_fits(guard, host)))
		return HTTP_GUARD_HOST;
	origin = http_header(x, "Origin", &count);
	if (count == 0)
		return HTTP_GUARD_PASS;
	if (count > 1 || !http_guard_origin_fits(guard, origin))
		return guard->options.refuses_origins || is_options ? HTTP_GUARD_ORIGIN
		                                                    : HTTP_GUARD_PASS;
	return is_options && http_header(x, "Access-Control-Request-Method", NULL).p != NULL
	               ? HTTP_GUARD_PREFLIGHT
	               : HTTP_GUARD_PASS;
}

size_t http_guard_fields(const struct http_guard *guard, const struct http_exchange *x,
	struct http_field out[HTTP_GUARD_FIELDS])
{
	size_t count;
	struct str origin = http_header(x, "Origin", &count);

	if (count != 1 || !http_guard_origin_fits(guard, origin))
		return 0;
	out[0] = (struct http_field){"Access-Control-Allow-Origin", origin};
	out[1] = (struct http_field){"Vary", STR("Origin")};
	out[2] = (struct http_field){
		"Access-Control-Expose-Headers", str_of(guard->options.exposed_headers)};
	return 3;
}

/* The configured names, and those asked for that begin with the prefix. */
static struct str allowed_headers(const struct http_guard *guard, struct http_exchange *x)
{
	const char *prefix = guard->options.request_header_prefix;
	struct str asked = http_header(x, "Access-Control-Request-Headers", NULL);
	struct buf out;

	buf_init(&out, http_arena(x), SIZE_MAX);
	buf_add_str(&out, str_of(guard->options.request_headers));
	while (prefix != NULL && asked.n > 0) {
		const char *comma = memchr(asked.p, ',', asked.n);
		struct str name = {asked.p, comma == NULL ? asked.n : (size_t)(comma - asked.p)};
		size_t skip = name.n + (comma != NULL);

		name = str_trim(name);
		if (name.n > strlen(prefix) &&
			str_eq_nocase((struct str){name.p, strlen(prefix)}, str_of(prefix)))
			buf_printf(&out, ", %.*s", STRF(name));
		asked = (struct str){asked.p + skip, asked.n - skip};
	}
	return buf_str(&out);
}

void http_guard_preflight(const struct http_guard *guard, struct http_exchange *x)
{
	struct http_field fields[HTTP_GUARD_FIELDS + 3];
	size_t n = http_guard_fields(guard, x, fields);

	fields[n++] =
		(struct http_field){"Access-Control-Allow-Methods", str_of(guard->options.methods)};
	fields[n++] =
		(struct http_field){"Access-Control-Allow-Headers", allowed_headers(guard, x)};
	fields[n++] = (struct http_field){"Access-Control-Max-Age",
		str_printf(http_arena(x), "%d", guard->options.max_age_s)};
	http_reply(x, 204, fields, n, STR(""));
}
