/* What people type for an id. Whatever is taken is a range that holds every id with that start and no other, and an id
 * reads back from its text, however it is cut, spaced and spelt. */
#include "work/work.h"

#include <ctype.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static bool within(const struct id_prefix *prefix, struct id id)
{
	return id_cmp(prefix->low, id) <= 0 && id_cmp(id, prefix->high) <= 0;
}

/* The digits of the input are those of the range, and nothing but blanks and hyphens lies between them. */
static void check_range(struct str text, const struct id_prefix *prefix)
{
	char low[ID_TEXT_SIZE], high[ID_TEXT_SIZE];
	size_t at = 0, digits = 0;

	check(prefix->digits >= 8 && prefix->digits <= 32 && id_cmp(prefix->low, prefix->high) <= 0);
	check(id_eq(prefix->low, prefix->high) == (prefix->digits == 32));
	id_format(prefix->low, low);
	id_format(prefix->high, high);
	for (size_t i = 0; i < text.n; i++) {
		if (!isxdigit((unsigned char)text.p[i]))
			continue;
		at += low[at] == '-';
		check(low[at] == tolower((unsigned char)text.p[i]) && high[at] == low[at]);
		at++;
		digits++;
	}
	check(digits == prefix->digits);
	for (; low[at] != '\0'; at++)
		check(low[at] == '-' || (low[at] == '0' && high[at] == 'f'));
}

/* An id with that start is found by any start of its own text. */
static void check_member(struct id id, size_t keep, bool is_upper)
{
	char text[ID_TEXT_SIZE + 2];
	struct id_prefix prefix;
	struct str typed;

	id_format(id, text + 1);
	text[0] = ' ';
	text[ID_TEXT_SIZE] = '\t';
	for (size_t i = 1; is_upper && i < ID_TEXT_SIZE; i++)
		text[i] = (char)toupper((unsigned char)text[i]);
	check(id_prefix_parse((struct str){text, ID_TEXT_SIZE + 1}, &prefix) && id_eq(prefix.low, id) &&
		id_eq(prefix.high, id));
	typed = (struct str){text, 1 + 8 + keep % 28};
	check(id_prefix_parse(typed, &prefix) && within(&prefix, id));
}

/* As answers show it; without a store to ask nothing is known to be unique, so also where short ids were wanted it is
 * whole. fuzz_search has the short ones. */
static void check_shown(struct arena *arena, struct id id, bool is_short)
{
	struct call call = {.arena = arena, .short_ids = is_short};
	struct id_prefix prefix;
	struct json_error error;
	struct json_writer w;
	struct buf out;
	json_t *json;

	buf_init(&out, arena, SIZE_MAX);
	json_writer_init(&w, &out);
	jw_object_begin(&w);
	jw_id(&w, &call, "id", id);
	jw_object_end(&w);
	json = json_read(buf_str(&out), &error);
	check(json != NULL);
	check(id_prefix_parse(json_member_str(json, "id"), &prefix) && id_eq(prefix.low, id) &&
		id_eq(prefix.high, id));
	json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(arena_destroyp) struct arena *arena = arena_create();
	struct str text = {(const char *)data, size};
	struct id_prefix prefix;
	struct id id;

	if (size >= sizeof(id.b)) {
		memcpy(id.b, data, sizeof(id.b));
		check_member(id, size, size % 2 == 1);
		check_shown(arena, id, size % 3 == 1);
	}
	if (!id_prefix_parse(text, &prefix))
		return 0;
	check_range(text, &prefix);
	check_member(prefix.low, size, true);
	check_member(prefix.high, size, false);
	check_shown(arena, prefix.low, true);
	return 0;
}
