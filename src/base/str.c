#include "base/str.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

bool str_eq_nocase(struct str a, struct str b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (tolower((unsigned char)a.p[i]) != tolower((unsigned char)b.p[i]))
			return false;
	return true;
}

int str_cmp(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n == 0 ? 0 : memcmp(a.p, b.p, n);

	if (order != 0)
		return order;
	return a.n < b.n ? -1 : a.n > b.n;
}

bool str_starts(struct str s, struct str prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n &&
		(suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
	while (s.n > 0 && is_space(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

/* White_Space of the Unicode character database. */
static bool is_unicode_space(uint32_t c)
{
	return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
		(c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
		c == 0x205f || c == 0x3000;
}

bool str_is_blank(struct str s)
{
	for (size_t at = 0; at < s.n;)
		if (!is_unicode_space(utf8_next(s, &at)))
			return false;
	return true;
}

struct str str_dup(struct arena *arena, struct str s)
{
	if (s.p == NULL)
		return s;
	return (struct str){arena_copy(arena, s.p, s.n), s.n};
}

char *str_z(struct arena *arena, struct str s)
{
	return arena_copy(arena, s.p, s.n);
}

struct str str_lower(struct arena *arena, struct str s)
{
	char *p = arena_copy(arena, s.p, s.n);

	for (size_t i = 0; i < s.n; i++)
		p[i] = (char)(p[i] >= 'A' && p[i] <= 'Z' ? p[i] + ('a' - 'A') : p[i]);
	return (struct str){p, s.n};
}

struct str str_join(struct arena *arena, struct str a, struct str b)
{
	char *p = arena_alloc(arena, a.n + b.n + 1);

	if (a.n > 0)
		memcpy(p, a.p, a.n);
	if (b.n > 0)
		memcpy(p + a.n, b.p, b.n);
	return (struct str){p, a.n + b.n};
}

struct str str_printf(struct arena *arena, const char *fmt, ...)
{
	va_list args;
	char *p;

	va_start(args, fmt);
	p = arena_vprintf(arena, fmt, args);
	va_end(args);
	return str_of(p);
}

bool str_to_int(struct str s, int64_t *out)
{
	bool negative = s.n > 0 && s.p[0] == '-';
	uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
	uint64_t value = 0;
	size_t i = s.n > 0 && (negative || s.p[0] == '+') ? 1 : 0;

	if (i == s.n)
		return false;
	for (; i < s.n; i++) {
		unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';

		if (digit > 9 || value > (limit - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*out = negative ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

size_t str_distance(struct str a, struct str b, size_t max)
{
	size_t row[65];

	if (a.n > 64 || b.n > 64)
		return max + 1;
	for (size_t j = 0; j <= b.n; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			size_t best = corner + (a.p[i - 1] != b.p[j - 1]);

			corner = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[b.n] > max ? max + 1 : row[b.n];
}

/* Length of the valid sequence at p, or 0. Table 3-7 of the Unicode standard. */
static size_t sequence_length(const unsigned char *p, size_t n)
{
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	size_t length;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		length = 2;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		length = 3;
		if (p[0] == 0xe0)
			low = 0xa0;
		if (p[0] == 0xed)
			high = 0x9f;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		length = 4;
		if (p[0] == 0xf0)
			low = 0x90;
		if (p[0] == 0xf4)
			high = 0x8f;
	} else {
		return 0;
	}
	if (n < length || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return length;
}

size_t utf8_check(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t at = 0;

	while (at < s.n) {
		size_t length = sequence_length(p + at, s.n - at);

		if (length == 0)
			return at;
		at += length;
	}
	return s.n;
}

size_t utf8_count(struct str s)
{
	size_t count = 0;

	for (size_t i = 0; i < s.n; i++)
		count += ((unsigned char)s.p[i] & 0xc0) != 0x80;
	return count;
}

size_t utf8_offset(struct str s, size_t chars)
{
	size_t at = 0;

	while (at < s.n) {
		if (((unsigned char)s.p[at] & 0xc0) != 0x80 && chars-- == 0)
			return at;
		at++;
	}
	return s.n;
}

size_t utf8_cut(struct str s, size_t max)
{
	if (s.n <= max)
		return s.n;
	while (max > 0 && ((unsigned char)s.p[max] & 0xc0) == 0x80)
		max--;
	return max;
}

uint32_t utf8_next(struct str s, size_t *at)
{
	const unsigned char *p = (const unsigned char *)s.p + *at;
	size_t length = sequence_length(p, s.n - *at);
	uint32_t c;

	if (length <= 1) {
		(*at)++;
		return length == 1 ? p[0] : 0xfffd;
	}
	c = p[0] & (0x7fU >> length);
	for (size_t i = 1; i < length; i++)
		c = c << 6 | (p[i] & 0x3f);
	*at += length;
	return c;
}

void buf_init(struct buf *buf, struct arena *arena, size_t max)
{
	*buf = (struct buf){.arena = arena, .max = max};
}

void buf_finish(struct buf *buf)
{
	if (buf->arena == NULL)
		free(buf->p);
	*buf = (struct buf){.arena = buf->arena, .max = buf->max};
}

static bool reserve(struct buf *buf, size_t more)
{
	size_t cap = buf->cap == 0 ? 256 : buf->cap;

	if (buf->overflow || more > buf->max || buf->n > buf->max - more) {
		buf->overflow = true;
		return false;
	}
	if (buf->n + more <= buf->cap)
		return true;
	while (cap < buf->n + more)
		cap *= 2;
	if (cap > buf->max)
		cap = buf->max; /* so that what fits into cap fits into max */
	if (buf->arena != NULL) {
		buf->p = arena_grow(buf->arena, buf->p, buf->cap, cap);
	} else {
		buf->p = realloc(buf->p, cap);
		if (buf->p == NULL)
			abort();
	}
	buf->cap = cap;
	return true;
}

void buf_add(struct buf *buf, const void *bytes, size_t n)
{
	if (n == 0)
		return;
	if ((buf->overflow || n > buf->cap - buf->n) && !reserve(buf, n))
		return;
	memcpy(buf->p + buf->n, bytes, n);
	buf->n += n;
}

void buf_add_str(struct buf *buf, struct str s)
{
	buf_add(buf, s.p, s.n);
}

void buf_add_char(struct buf *buf, char c)
{
	if ((buf->overflow || buf->n == buf->cap) && !reserve(buf, 1))
		return;
	buf->p[buf->n++] = c;
}

void buf_printf(struct buf *buf, const char *fmt, ...)
{
	va_list args;
	va_list again;
	int n;

	va_start(args, fmt);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, fmt, args);
	assert(n >= 0);
	if (reserve(buf, (size_t)n + 1)) {
		(void)vsnprintf(buf->p + buf->n, (size_t)n + 1, fmt, again);
		buf->n += (size_t)n;
	}
	va_end(again);
	va_end(args);
}

void buf_consume(struct buf *buf, size_t n)
{
	assert(n <= buf->n);
	if (n == 0)
		return;
	memmove(buf->p, buf->p + n, buf->n - n);
	buf->n -= n;
}

int secret_set(struct secret *secret, struct str from)
{
	if (from.n > sizeof(secret->bytes))
		return -1;
	memcpy(secret->bytes, from.p, from.n);
	secret->n = from.n;
	return 0;
}

void secret_wipe(struct secret *secret)
{
	explicit_bzero(secret, sizeof(*secret));
}
