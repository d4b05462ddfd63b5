/* Messages between server and host: the same ones come out whatever pieces they come in, and settings are read within
 * their body. The first byte is the size of a piece. */
#include "agents/private.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BODY 4096

/* Everything that the frames held, in one number; *rc is how it ended. */
static uint64_t digest(const uint8_t *data, size_t size, size_t piece, int *rc)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	uint64_t sum = 0;
	struct framer framer;
	struct frame frame;

	framer_init(&framer, MAX_BODY);
	*rc = 0;
	for (size_t at = 0; at < size && *rc == 0;) {
		size_t room;
		char *to = framer_room(&framer, &room);
		size_t n = size - at < piece ? size - at : piece;

		n = n < room ? n : room;
		memcpy(to, data + at, n);
		framer_filled(&framer, n);
		at += n;
		while ((*rc = framer_next(&framer, &frame)) > 0) {
			struct host_settings settings;

			sum = sum * 31 + frame.body.n + 1;
			for (size_t i = 0; i < frame.body.n; i++)
				sum = sum * 31 + (unsigned char)frame.body.p[i];
			if (frame.body.n > MAX_BODY)
				abort();
			if (settings_read(&frame, arena, &settings) == 0)
				sum += strlen(settings.argv[0]) + settings.secret.n + settings.note.n;
		}
	}
	framer_finish(&framer);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int rc_whole, rc_pieces;
	uint64_t whole, pieces;

	if (size < 2)
		return 0;
	whole = digest(data + 1, size - 1, SIZE_MAX, &rc_whole);
	pieces = digest(data + 1, size - 1, (size_t)data[0] + 1, &rc_pieces);
	if (whole != pieces || (rc_whole < 0) != (rc_pieces < 0))
		abort();
	return 0;
}
