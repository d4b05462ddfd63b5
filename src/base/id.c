#include "base/id.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

void random_bytes(void *out, size_t n)
{
	unsigned char *p = out;

	while (n > 0) {
		ssize_t got = getrandom(p, n > 256 ? 256 : n, 0);

		if (got < 0)
			abort();
		p += got;
		n -= (size_t)got;
	}
}

void id_generate(struct id *out)
{
	/* One system call for 32 ids: a call costs more than the rest of the function. */
	static _Thread_local unsigned char pool[512];
	static _Thread_local size_t left;

	if (left == 0) {
		random_bytes(pool, sizeof(pool));
		left = sizeof(pool);
	}
	left -= sizeof(out->b);
	memcpy(out->b, pool + left, sizeof(out->b));
	out->b[6] = (unsigned char)((out->b[6] & 0x0f) | 0x40);
	out->b[8] = (unsigned char)((out->b[8] & 0x3f) | 0x80);
}

void id_format(struct id id, char out[ID_TEXT_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	char *p = out;

	for (size_t i = 0; i < sizeof(id.b); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		*p++ = digits[id.b[i] >> 4];
		*p++ = digits[id.b[i] & 15];
	}
	*p = '\0';
}

struct str id_str(struct arena *arena, struct id id)
{
	char text[ID_TEXT_SIZE];

	id_format(id, text);
	return str_dup(arena, str_of(text));
}

bool id_is_zero(struct id id)
{
	static const struct id zero;

	return id_eq(id, zero);
}

bool id_eq(struct id a, struct id b)
{
	return memcmp(a.b, b.b, sizeof(a.b)) == 0;
}

int id_cmp(struct id a, struct id b)
{
	return memcmp(a.b, b.b, sizeof(a.b));
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;
}

bool id_prefix_parse(struct str text, struct id_prefix *out)
{
	struct id_prefix prefix = {0};

	text = str_trim(text);
	memset(&prefix.high, 0xff, sizeof(prefix.high));
	for (size_t i = 0; i < text.n; i++) {
		int digit = hex_digit(text.p[i]);
		size_t byte = prefix.digits / 2;
		bool is_high = prefix.digits % 2 == 0;

		if (text.p[i] == '-')
			continue;
		if (digit < 0 || prefix.digits == 32)
			return false;
		prefix.low.b[byte] = (unsigned char)(prefix.low.b[byte] | (is_high ? digit << 4 : digit));
		prefix.high.b[byte] =
			(unsigned char)(is_high ? digit << 4 | 0x0f : (prefix.low.b[byte]));
		prefix.digits++;
	}
	if (prefix.digits < 8)
		return false;
	*out = prefix;
	return true;
}

static struct str encode64(struct arena *arena, const unsigned char *p, size_t n)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	char *out = arena_alloc(arena, (n + 2) / 3 * 4 + 1);
	size_t at = 0;

	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
			(left > 2 ? p[i + 2] : 0);

		out[at++] = alphabet[v >> 18];
		out[at++] = alphabet[v >> 12 & 63];
		if (left > 1)
			out[at++] = alphabet[v >> 6 & 63];
		if (left > 2)
			out[at++] = alphabet[v & 63];
	}
	return (struct str){out, at};
}

struct str base64url(struct arena *arena, const void *bytes, size_t n)
{
	return encode64(arena, bytes, n);
}

static int digit64(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A'
		: c >= 'a' && c <= 'z' ? c - 'a' + 26
		: c >= '0' && c <= '9' ? c - '0' + 52
		: c == '-'	       ? 62
		: c == '_'	       ? 63
				       : -1;
}

bool base64url_decode(struct arena *arena, struct str text, struct str *out)
{
	char *p = arena_alloc(arena, text.n / 4 * 3 + 3);
	uint32_t v = 0;
	unsigned bits = 0;
	size_t n = 0;

	if (text.n % 4 == 1)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		int digit = digit64(text.p[i]);

		if (digit < 0)
			return false;
		v = v << 6 | (uint32_t)digit;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			p[n++] = (char)(v >> bits & 0xff);
		}
	}
	if ((v & ((1U << bits) - 1)) != 0)
		return false;
	*out = (struct str){p, n};
	return true;
}

struct str random_token(struct arena *arena, size_t n)
{
	unsigned char bytes[64];

	if (n > sizeof(bytes))
		abort();
	random_bytes(bytes, n);
	return encode64(arena, bytes, n);
}

void req_id_generate(char out[REQ_ID_SIZE])
{
	static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
	struct id id;

	id_generate(&id);
	for (size_t i = 0; i < REQ_ID_SIZE - 1; i++)
		out[i] = alphabet[id.b[i < 6 ? i : i + 3] & 31];
	out[REQ_ID_SIZE - 1] = '\0';
}

struct str hex(struct arena *arena, const void *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = bytes;
	char *out = arena_alloc(arena, n * 2 + 1);

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[p[i] >> 4];
		out[2 * i + 1] = digits[p[i] & 15];
	}
	return (struct str){out, n * 2};
}

/* One per thread, made at first use: an implicit fetch costs four times the hash of a token. */
struct digester {
	EVP_MD_CTX *context;
	EVP_MD *md;
};

static pthread_key_t digester_key;
static pthread_once_t digester_once = PTHREAD_ONCE_INIT;

static void digester_destroy(void *arg)
{
	struct digester *digester = arg;

	EVP_MD_CTX_free(digester->context);
	EVP_MD_free(digester->md);
	free(digester);
}

static void digester_key_create(void)
{
	if (pthread_key_create(&digester_key, digester_destroy) != 0)
		abort();
}

static struct digester *digester_get(void)
{
	static _Thread_local struct digester *mine;

	if (mine != NULL)
		return mine;
	mine = calloc(1, sizeof(*mine));
	if (mine == NULL)
		abort();
	mine->context = EVP_MD_CTX_new();
	mine->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	/* The key is there for its destructor: threads end before the process does. */
	(void)pthread_once(&digester_once, digester_key_create);
	if (mine->context == NULL || mine->md == NULL || pthread_setspecific(digester_key, mine) != 0)
		abort();
	return mine;
}

void sha256(const void *bytes, size_t n, unsigned char out[32])
{
	const struct digester *digester = digester_get();
	unsigned size = 32;

	if (EVP_DigestInit_ex2(digester->context, digester->md, NULL) != 1 ||
		EVP_DigestUpdate(digester->context, bytes, n) != 1 ||
		EVP_DigestFinal_ex(digester->context, out, &size) != 1)
		abort();
}

struct str sha256_hex(struct arena *arena, struct str text)
{
	unsigned char digest[32];

	sha256(text.p, text.n, digest);
	return hex(arena, digest, sizeof(digest));
}

bool bytes_equal(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}
