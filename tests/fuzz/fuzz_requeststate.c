/* requestState: a guess never opens, a sealed one only in its context and time. */
#include "mcp/cursor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct seal_keys keys = {{{1, 2, 3}}, 1};
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str input = {(const char *)data, size};
	struct str text;
	struct str got;

	if (seal_open(arena, &keys, STATE_MAC_SIZE, STR("who"), 0, input, &got))
		abort(); /* 256 bits were guessed */
	text = seal_make(arena, &keys, STATE_MAC_SIZE, input, 100, STR("answer"));
	if (!seal_open(arena, &keys, STATE_MAC_SIZE, input, 100, text, &got) ||
		!str_eq(got, STR("answer")))
		abort();
	if (seal_open(arena, &keys, STATE_MAC_SIZE, input, 101, text, &got) ||
		seal_open(arena, &keys, STATE_MAC_SIZE, STR("another"), 100, text, &got))
		abort();
	return 0;
}
