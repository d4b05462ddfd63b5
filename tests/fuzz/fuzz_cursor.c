/* Cursors: nothing but what we sealed opens, and what we sealed opens to what it was. */
#include "mcp/cursor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct seal_keys keys = {{{1, 2, 3}, {4, 5, 6}}, 2};
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str input = {(const char *)data, size};
	struct str text;
	struct str got;

	if (seal_open(arena, &keys, CURSOR_MAC_SIZE, STR("list"), 0, input, &got) && got.n > size)
		abort();
	text = seal_make(arena, &keys, CURSOR_MAC_SIZE, STR("list"), 0, input);
	if (!seal_open(arena, &keys, CURSOR_MAC_SIZE, STR("list"), INT64_MAX, text, &got) ||
		!str_eq(got, input))
		abort();
	return 0;
}
