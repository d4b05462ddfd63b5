/* base/str.h - text: views that own nothing, buffers that grow to a limit, and UTF-8. */
#ifndef DAIS_BASE_STR_H
#define DAIS_BASE_STR_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A view; not NUL-terminated. p == NULL means absent, n == 0 with p != NULL means empty. */
struct str {
	const char *p;
	size_t n;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STRF(s) (int)(s).n, (s).p /* for "%.*s"; evaluates s twice */
#define STR_NONE ((struct str){NULL, 0})

static inline struct str str_of(const char *text)
{
	return (struct str){text, text == NULL ? 0 : strlen(text)};
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_eq_nocase(struct str a, struct str b); /* ASCII */
int str_cmp(struct str a, struct str b);	   /* byte order, shorter first */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
struct str str_trim(struct str s); /* ASCII white space at both ends */
bool str_is_blank(struct str s);   /* no character but Unicode white space */
struct str str_dup(struct arena *arena, struct str s);
char *str_z(struct arena *arena, struct str s); /* NUL-terminated copy, for the edge */
struct str str_lower(struct arena *arena, struct str s); /* ASCII */
struct str str_printf(struct arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Decimal digits with an optional sign that fit; nothing else. */
bool str_to_int(struct str s, int64_t *out);
/* Levenshtein distance, cut off at `max` + 1; to propose the near name. */
size_t str_distance(struct str a, struct str b, size_t max);

/* First byte that is not strict UTF-8 (no overlong form, no surrogate), or s.n when all is well. */
size_t utf8_check(struct str s);
size_t utf8_count(struct str s); /* code points of valid UTF-8 */
/* Byte offset of code point `chars`, or s.n when there are fewer. */
size_t utf8_offset(struct str s, size_t chars);
/* Largest n <= max at which s can be cut without splitting a code point. */
size_t utf8_cut(struct str s, size_t max);
/* Decode the code point at s.p[*at] and move *at behind it. */
uint32_t utf8_next(struct str s, size_t *at);

/* Grows up to `max` bytes; what does not fit sets `overflow` and is dropped whole. */
struct buf {
	char *p;
	size_t n;
	size_t cap;
	size_t max;
	struct arena *arena; /* NULL: heap, freed by buf_finish */
	bool overflow;
};

/* The ending of a counted noun: "%zu item%s". */
static inline const char *plural(int64_t n)
{
	return n == 1 ? "" : "s";
}

/* a and b, one after the other. */
struct str str_join(struct arena *arena, struct str a, struct str b);

void buf_init(struct buf *buf, struct arena *arena, size_t max);
void buf_finish(struct buf *buf);
void buf_add(struct buf *buf, const void *bytes, size_t n);
void buf_add_str(struct buf *buf, struct str s);
void buf_add_char(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Drop the first n bytes. */
void buf_consume(struct buf *buf, size_t n);

static inline struct str buf_str(const struct buf *buf)
{
	return (struct str){buf->p == NULL ? "" : buf->p, buf->n};
}

/* Bytes that must not be printed: there is no function that prints one, and it is wiped. */
struct secret {
	char bytes[128];
	size_t n;
};

int secret_set(struct secret *secret, struct str from); /* -1 when it is too long */
void secret_wipe(struct secret *secret);

#endif
