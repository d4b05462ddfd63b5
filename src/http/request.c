/* What the application may ask about a request. */
#include "http/server.h"

struct arena *http_arena(struct http_exchange *x)
{
	return x->arena;
}

struct str http_method(const struct http_exchange *x)
{
	return x->method;
}

struct str http_path(const struct http_exchange *x)
{
	return x->path;
}

struct str http_query(const struct http_exchange *x)
{
	return x->query;
}

struct str http_body(const struct http_exchange *x)
{
	return buf_str(&x->body);
}

struct str http_peer(const struct http_exchange *x)
{
	return x->peer;
}

bool http_peer_is_loopback(const struct http_exchange *x)
{
	return x->is_loopback;
}

void http_set_data(struct http_exchange *x, void *data)
{
	x->data = data;
}

void *http_data(const struct http_exchange *x)
{
	return x->data;
}

struct str http_header(const struct http_exchange *x, const char *name, size_t *count)
{
	struct str wanted = str_of(name), first = STR_NONE;
	size_t n = 0;

	for (size_t i = 0; i < x->field_count; i++)
		if (str_eq_nocase(x->fields[i].name, wanted) && n++ == 0)
			first = x->fields[i].value;
	if (count != NULL)
		*count = n;
	return first;
}

void http_each_header(const struct http_exchange *x,
	void (*each)(void *context, struct str name, struct str value), void *context)
{
	for (size_t i = 0; i < x->field_count; i++)
		each(context, x->fields[i].name, x->fields[i].value);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* A % that starts no escape stands for itself. */
static struct str decode(struct arena *arena, struct str text)
{
	char *out = arena_copy(arena, text.p, text.n);
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c == '%' && i + 2 < text.n && hex_digit(text.p[i + 1]) >= 0
			&& hex_digit(text.p[i + 2]) >= 0) {
			c = (char)(hex_digit(text.p[i + 1]) * 16 + hex_digit(text.p[i + 2]));
			i += 2;
		} else if (c == '+') {
			c = ' ';
		}
		out[n++] = c;
	}
	return (struct str){out, n};
}

struct str http_query_value(const struct http_exchange *x, const char *name)
{
	struct str rest = x->query, wanted = str_of(name);

	while (rest.n > 0) {
		const char *end = memchr(rest.p, '&', rest.n);
		struct str pair = {rest.p, end == NULL ? rest.n : (size_t)(end - rest.p)};
		const char *equals = memchr(pair.p, '=', pair.n);
		struct str key = {pair.p, equals == NULL ? pair.n : (size_t)(equals - pair.p)};

		if (pair.n > 0 && str_eq(decode(x->arena, key), wanted))
			return equals == NULL
				? STR("")
				: decode(x->arena, (struct str){equals + 1, pair.n - key.n - 1});
		rest.p += end == NULL ? pair.n : pair.n + 1;
		rest.n -= end == NULL ? pair.n : pair.n + 1;
	}
	return STR_NONE;
}
