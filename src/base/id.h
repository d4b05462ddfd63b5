/* base/id.h - random UUIDs (version 4) and their prefixes.
 *
 * Never version 7: its first digits are a clock, so what is made in one minute would share its
 * short prefix, and prefixes are what people type. */
#ifndef DAIS_BASE_ID_H
#define DAIS_BASE_ID_H

#include "base/str.h"

#include <stdint.h>

struct id {
	unsigned char b[16];
};

#define ID_TEXT_SIZE 37

void id_generate(struct id *out);
void id_format(struct id id, char out[ID_TEXT_SIZE]);
struct str id_str(struct arena *arena, struct id id);
bool id_is_zero(struct id id);
bool id_eq(struct id a, struct id b);
int id_cmp(struct id a, struct id b);

/* What a caller types: a whole UUID, or 8 to 31 hexadecimal digits of its start; hyphens, case and
 * outer blanks do not matter. All ids that match lie in [low, high]. */
struct id_prefix {
	struct id low;
	struct id high;
	size_t digits;
};

bool id_prefix_parse(struct str text, struct id_prefix *out);

/* `n` random bytes; aborts when the kernel gives none. */
void random_bytes(void *out, size_t n);
/* base64url without padding of `n` bytes. */
struct str random_token(struct arena *arena, size_t n);
/* 8 characters of lower-case Crockford base32: a request id. */
#define REQ_ID_SIZE 9
void req_id_generate(char out[REQ_ID_SIZE]);

struct str base64url(struct arena *arena, const void *bytes, size_t n);
/* Strict: only the alphabet, no padding. */
bool base64url_decode(struct arena *arena, struct str text, struct str *out);
struct str hex(struct arena *arena, const void *bytes, size_t n);

/* SHA-256; 32 bytes. */
void sha256(const void *bytes, size_t n, unsigned char out[32]);
struct str sha256_hex(struct arena *arena, struct str text);
/* Constant time. */
bool bytes_equal(const void *a, const void *b, size_t n);

#endif
