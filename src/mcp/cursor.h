/* mcp/cursor.h - what a client carries for us and gives back: signed, so that it is ours or
 * refused.
 *
 * A seal is base64url of: format byte, expiry (8 bytes, UTC seconds, 0: none), payload, first
 * `mac_size` bytes of HMAC-SHA-256 over all of it and a context that is not carried (who, which
 * list, …). */
#ifndef DAIS_MCP_CURSOR_H
#define DAIS_MCP_CURSOR_H

#include "base/str.h"

#include <stdint.h>

struct seal_keys {
	unsigned char key[2][32]; /* newest first */
	size_t n;
};

#define CURSOR_MAC_SIZE 8U
#define STATE_MAC_SIZE 32U

struct str seal_make(struct arena *arena, const struct seal_keys *keys, size_t mac_size,
	struct str context, int64_t expires_at_s, struct str payload);
/* False: not ours, of another context, or expired at `now_s`. */
bool seal_open(struct arena *arena, const struct seal_keys *keys, size_t mac_size,
	struct str context, int64_t now_s, struct str text, struct str *payload);

#endif
