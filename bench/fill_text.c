#include "bench/fill_text.h"

#include <math.h>
#include <stdlib.h>

#define VOCABULARY 20000

static struct random_data state;
static char state_bytes[128];

void text_seed(unsigned seed)
{
	(void)initstate_r(seed, state_bytes, sizeof(state_bytes), &state);
}

static double chance(void)
{
	int32_t value;

	(void)random_r(&state, &value);
	return (double)value / ((double)RAND_MAX + 1);
}

/* Word number `rank` of the vocabulary, always the same. */
static void add_word(struct buf *out, unsigned rank)
{
	static const char *const heads[] = {"ka", "re", "mo", "ti", "lu", "sa", "ne", "bo", "di", "fe", "gu", "ha", "po",
		"ra", "se", "vo"};
	static const char *const tails[] = {"n", "r", "l", "st", "m", "", "s", "nd"};
	unsigned left = rank + 1;

	do {
		const char *head = heads[left % 16];

		buf_add(out, head, 2);
		left /= 16;
	} while (left > 0);
	buf_add_str(out, str_of(tails[rank % 8]));
}

/* Zipf: the logarithm of the rank is spread evenly. */
static unsigned rank(void)
{
	return (unsigned)pow(VOCABULARY, chance()) - 1;
}

void text_add(struct buf *out, int words)
{
	for (int i = 0; i < words; i++) {
		if (i > 0)
			buf_add_char(out, ' ');
		add_word(out, rank());
	}
}

void text_write_queries(FILE *out, int lines)
{
	for (int i = 0; i < lines; i++) {
		struct buf line;

		buf_init(&line, NULL, 256);
		switch (i % 3) {
		case 0:
			add_word(&line, (unsigned)(chance() * 50)); /* found in most of the notes */
			break;
		case 1:
			add_word(&line, 1000 + (unsigned)(chance() * (VOCABULARY - 1000)));
			break;
		default:
			text_add(&line, 2);
		}
		(void)fprintf(out, "%.*s\n", STRF(buf_str(&line)));
		buf_finish(&line);
	}
}
