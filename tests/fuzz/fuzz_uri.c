/* Input: a pattern, a newline, a URI. What matches decodes to UTF-8 without NUL and without dot
 * segments. */
#include "mcp/mcp.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	const uint8_t *end = size == 0 ? NULL : memchr(data, '\n', size);
	struct str pattern = {(const char *)data, end == NULL ? size : (size_t)(end - data)};
	struct str uri =
		end == NULL ? pattern : (struct str){(const char *)end + 1, size - pattern.n - 1};
	struct mcp_uri_match match;

	if (!mcp_uri_eq(uri, uri) || mcp_uri_eq(uri, pattern) != mcp_uri_eq(pattern, uri))
		abort();
	if (!mcp_uri_match(arena, pattern, uri, &match))
		return 0;
	for (size_t i = 0; i < match.n; i++) {
		struct str value = match.value[i];

		if (value.p != NULL &&
			(utf8_check(value) != value.n || memchr(value.p, '\0', value.n) != NULL ||
				str_eq(value, STR(".."))))
			abort();
	}
	return 0;
}
