#include "mcp/cursor.h"

#include "base/id.h"

#include <assert.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#define FORMAT 1
#define HEAD 9U
#define NONCE 8U /* so that two states of one question differ */

static void mac(
	const unsigned char key[32], struct str context, struct str body, unsigned char out[32])
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	unsigned n = 32;
	struct buf all;

	/* The length of the context keeps (context, body) apart from any other split of the same
	 * bytes. */
	buf_init(&all, arena, SIZE_MAX);
	buf_printf(&all, "%zu:", context.n);
	buf_add_str(&all, context);
	buf_add_str(&all, body);
	if (HMAC(EVP_sha256(), key, 32, (const unsigned char *)all.p, all.n, out, &n) == NULL)
		abort();
}

struct str seal_make(struct arena *arena, const struct seal_keys *keys, size_t mac_size,
	struct str context, int64_t expires_at_s, struct str payload)
{
	unsigned char head[HEAD + NONCE] = {FORMAT};
	unsigned char sum[32];
	struct buf out;

	assert(keys->n > 0 && mac_size <= sizeof(sum));
	for (size_t i = 0; i < 8; i++)
		head[1 + i] = (unsigned char)((uint64_t)expires_at_s >> (56 - 8 * i));
	if (expires_at_s != 0)
		random_bytes(head + HEAD, NONCE);
	buf_init(&out, arena, SIZE_MAX);
	buf_add(&out, head, expires_at_s != 0 ? HEAD + NONCE : HEAD);
	buf_add_str(&out, payload);
	mac(keys->key[0], context, buf_str(&out), sum);
	buf_add(&out, sum, mac_size);
	return base64url(arena, out.p, out.n);
}

static bool is_signed(const struct seal_keys *keys, size_t mac_size, struct str context,
	struct str body, const char *sum)
{
	bool fine = false;

	for (size_t i = 0; i < keys->n; i++) {
		unsigned char want[32];

		mac(keys->key[i], context, body, want);
		fine |= bytes_equal(want, sum, mac_size);
	}
	return fine;
}

bool seal_open(struct arena *arena, const struct seal_keys *keys, size_t mac_size,
	struct str context, int64_t now_s, struct str text, struct str *payload)
{
	struct str raw;
	struct str body;
	uint64_t expires = 0;
	size_t head = HEAD;

	if (text.n == 0 || !base64url_decode(arena, text, &raw) || raw.n < HEAD + mac_size ||
		raw.p[0] != FORMAT)
		return false;
	body = (struct str){raw.p, raw.n - mac_size};
	if (!is_signed(keys, mac_size, context, body, raw.p + body.n))
		return false;
	for (size_t i = 0; i < 8; i++)
		expires = expires << 8 | (unsigned char)raw.p[1 + i];
	if (expires != 0 && (int64_t)expires < now_s)
		return false;
	if (expires != 0)
		head += NONCE;
	if (body.n < head)
		return false;
	*payload = (struct str){body.p + head, body.n - head};
	return true;
}
