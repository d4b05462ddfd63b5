/* Matching of resource addresses: one pass over pattern and URI, no backtracking. */
#include "base/limits.h"
#include "mcp/mcp.h"

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

/* The byte that %XX at `at` means, or -1. */
static int escaped(struct str s, size_t at)
{
	int high;
	int low;

	if (s.n - at < 3 || s.p[at] != '%')
		return -1;
	high = hex_digit(s.p[at + 1]);
	low = hex_digit(s.p[at + 2]);
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static bool is_unreserved(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

/* Next unit of a URI in normal form: a byte, or an escape that must stay one (as 256 + byte). */
static int unit(struct str s, size_t *at)
{
	int byte = escaped(s, *at);

	if (byte < 0)
		return (unsigned char)s.p[(*at)++];
	*at += 3;
	return is_unreserved(byte) ? byte : 256 + byte;
}

bool mcp_uri_eq(struct str a, struct str b)
{
	size_t i = 0;
	size_t j = 0;

	while (i < a.n && j < b.n)
		if (unit(a, &i) != unit(b, &j))
			return false;
	return i == a.n && j == b.n;
}

static bool decode(struct arena *arena, struct str text, struct str *out)
{
	char *p = arena_alloc(arena, text.n + 1);
	size_t n = 0;

	for (size_t at = 0; at < text.n;) {
		int byte = (unsigned char)text.p[at];

		if (byte == '%') {
			byte = escaped(text, at);
			if (byte < 0)
				return false;
			at += 2;
		}
		at++;
		if (byte == 0)
			return false;
		p[n++] = (char)byte;
	}
	*out = (struct str){p, n};
	return utf8_check(*out) == n && !str_eq(*out, STR("..")) && !str_eq(*out, STR("."));
}

static bool add(struct arena *arena, struct mcp_uri_match *out, struct str name, struct str raw)
{
	if (out->n == MCP_URI_VARS)
		return false;
	out->name[out->n] = name;
	if (raw.p == NULL)
		out->value[out->n] = STR_NONE;
	else if (!decode(arena, raw, &out->value[out->n]))
		return false;
	out->n++;
	return true;
}

static struct str query_value(struct str query, struct str name)
{
	while (query.n > 0) {
		const char *end = memchr(query.p, '&', query.n);
		struct str pair = {query.p, end == NULL ? query.n : (size_t)(end - query.p)};
		size_t skip = pair.n + (end != NULL);

		if (pair.n > name.n && pair.p[name.n] == '=' && str_starts(pair, name))
			return (struct str){pair.p + name.n + 1, pair.n - name.n - 1};
		query = (struct str){query.p + skip, query.n - skip};
	}
	return STR_NONE;
}

/* {?a,b}: names that may be given; others in the query are ignored. */
static bool match_query(
	struct arena *arena, struct str names, struct str query, struct mcp_uri_match *out)
{
	while (names.n > 0) {
		const char *end = memchr(names.p, ',', names.n);
		struct str name = {names.p, end == NULL ? names.n : (size_t)(end - names.p)};
		size_t skip = name.n + (end != NULL);

		if (!add(arena, out, name, query_value(query, name)))
			return false;
		names = (struct str){names.p + skip, names.n - skip};
	}
	return true;
}

/* One variable takes everything up to the next slash, or to the byte that follows it in the
 * pattern. */
static size_t segment(struct str uri, size_t at, char stop)
{
	size_t end = at;

	while (end < uri.n && uri.p[end] != '/' && uri.p[end] != stop)
		end++;
	return end;
}

static struct str split(struct str *uri, char at)
{
	const char *mark = uri->n == 0 ? NULL : memchr(uri->p, at, uri->n);
	struct str rest = STR("");

	if (mark == NULL)
		return rest;
	rest = (struct str){mark + 1, uri->n - (size_t)(mark - uri->p) - 1};
	uri->n = (size_t)(mark - uri->p);
	return rest;
}

bool mcp_uri_match(
	struct arena *arena, struct str pattern, struct str uri, struct mcp_uri_match *out)
{
	struct str query;
	bool takes_query = false;
	size_t p = 0;
	size_t u = 0;

	*out = (struct mcp_uri_match){0};
	if (uri.n > LIMIT_MCP_URI_BYTES)
		return false;
	query = split(&uri, '?');
	while (p < pattern.n) {
		const char *close =
			pattern.p[p] == '{' ? memchr(pattern.p + p, '}', pattern.n - p) : NULL;

		if (close == NULL) {
			if (u >= uri.n || unit(uri, &u) != unit(pattern, &p))
				return false;
			continue;
		}
		struct str name = {pattern.p + p + 1, (size_t)(close - pattern.p) - p - 1};

		p += name.n + 2;
		if (name.n > 0 && name.p[0] == '?') {
			takes_query = true;
			if (!match_query(arena, (struct str){name.p + 1, name.n - 1}, query, out))
				return false;
			continue;
		}
		size_t end =
			segment(uri, u, p < pattern.n && pattern.p[p] != '{' ? pattern.p[p] : '/');

		if (end == u || !add(arena, out, name, (struct str){uri.p + u, end - u}))
			return false;
		u = end;
	}
	return u == uri.n && (takes_query || query.n == 0);
}
