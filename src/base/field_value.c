/* One value of a call: text, number, word, time, id, list of them, or free JSON. Every function reports what is
 * wrong and goes on. */
#include "base/field_value.h"

#include "base/clock.h"
#include "base/id.h"

json_t *json_from_text(const json_t *text, bool want_array, struct str path, struct warnings *warnings)
{
	struct json_error error;
	struct str trimmed = str_trim(json_str(text));
	json_t *value;

	if (trimmed.n < 2 || trimmed.p[0] != (want_array ? '[' : '{'))
		return NULL;
	value = json_read(trimmed, &error);
	if (value == NULL)
		return NULL;
	if (want_array ? !json_is_array(value) : !json_is_object(value)) {
		json_decref(value);
		return NULL;
	}
	warn(warnings, "json_string_coerced", path, "A JSON-encoded string was read as %s.",
		want_array ? "an array" : "an object");
	return value;
}

static const char *bad_text(struct str text)
{
	if (text.n > 0 && text.p[0] == '\0' &&
		str_eq((struct str){text.p + 1, text.n - 1}, STR(JSON_OUT_OF_RANGE)))
		return "is a number out of range";
	if (memchr(text.p, '\0', text.n) != NULL)
		return "must not contain U+0000 or half of a surrogate pair";
	return NULL;
}

/* Over a byte limit has a code of its own; other faults of the call win, they cost nothing to mend. */
static void too_large(struct reading *r, struct str path, int64_t max, size_t actual)
{
	if (r->f->is_shape)
		return;
	(void)fail(r->f, FAIL_PAYLOAD_TOO_LARGE, "%.*s is longer than %lld bytes.", STRF(path),
		(long long)max);
	fail_detail_str(r->f, "field", path);
	fail_detail_int(r->f, "max", max);
	fail_detail_int(r->f, "actual", (int64_t)actual);
	r->f->is_shape = true;
}

static void read_text(struct reading *r, const struct field *field, int64_t max, struct str path,
	struct str text, struct str *out)
{
	const char *bad = bad_text(text);
	struct str received = STR_NONE;
	size_t size;

	if (bad != NULL) {
		(void)fail_field(r->f, path, received, "%s", bad);
		return;
	}
	if (field->flags & TRIMMED)
		text = str_trim(text);
	size = field->flags & IN_BYTES ? text.n : utf8_count(text);
	if ((field->flags & IN_BYTES) && max > 0 && (int64_t)size > max) {
		too_large(r, path, max, size);
	} else if ((field->flags & NOT_BLANK) && str_is_blank(text)) {
		(void)fail_field(r->f, path, received, "must not be blank");
	} else if (max > 0 && (int64_t)size > max) {
		(void)fail_field(r->f, path, received, "is longer than %lld character%s (actual %zu)",
			(long long)max, plural(max), size);
	} else if ((int64_t)size < field->min && field->kind == FIELD_STR) {
		(void)fail_field(r->f, path, received, "is shorter than %lld character%s",
			(long long)field->min, plural(field->min));
	} else if (field->legal != NULL && !field->legal(text)) {
		(void)fail_field(r->f, path, STR_NONE, "must be %s",
			field->syntax != NULL ? field->syntax : "legal");
	} else {
		*out = text;
	}
}

static void note_coercion(struct reading *r, struct str path, const json_t *value, const char *as)
{
	warn(r->warnings, "json_string_coerced", path, "A JSON %s was read as %s.", json_type_name(value), as);
}

/* Numbers and booleans where text is due: models drop the quotes around ids. */
static bool text_of(struct reading *r, struct str path, const json_t *value, struct str *out)
{
	if (json_is_string(value)) {
		*out = json_str(value);
		return true;
	}
	if (json_is_integer(value))
		*out = str_printf(r->arena, "%lld", (long long)json_integer_value(value));
	else if (json_is_boolean(value))
		*out = json_is_true(value) ? STR("true") : STR("false");
	else
		return false;
	note_coercion(r, path, value, "a string");
	return true;
}

static void wrong_type(struct reading *r, struct str path, const json_t *value, const char *expected)
{
	if (json_is_string(value) && bad_text(json_str(value)) != NULL) {
		(void)fail_field(r->f, path, STR_NONE, "expected %s, but it %s", expected, bad_text(json_str(value)));
		return;
	}
	(void)fail_field(r->f, path, json_received(r->arena, value), "expected %s, got %s", expected,
		json_type_name(value));
}

static void read_str(struct reading *r, const struct field *field, struct str path, const json_t *value,
	struct arg_str *out)
{
	struct str text;

	if (!text_of(r, path, value, &text)) {
		wrong_type(r, path, value, "a string");
		return;
	}
	out->set = true;
	out->v = STR("");
	read_text(r, field, field->max, path, text, &out->v);
}

static bool is_id(struct str text)
{
	struct id_prefix prefix;

	return id_prefix_parse(text, &prefix);
}

static void read_one_id(struct reading *r, struct str path, const json_t *value, struct str *out)
{
	struct str text;

	if (!text_of(r, path, value, &text)) {
		wrong_type(r, path, value, "an id");
	} else if (!is_id(text)) {
		(void)fail_field(r->f, path, json_received(r->arena, value),
			"not a UUID or an 8–32 digit hex prefix");
	} else {
		*out = text;
	}
}

static bool integer_of(const json_t *value, int64_t *out)
{
	if (json_is_integer(value)) {
		*out = json_integer_value(value);
		return true;
	}
	if (json_is_real(value)) {
		double real = json_real_value(value);

		if (real < -9007199254740992.0 || real > 9007199254740992.0 || real != (double)(int64_t)real)
			return false;
		*out = (int64_t)real;
		return true;
	}
	return json_is_string(value) && str_to_int(json_str(value), out);
}

static void read_int(struct reading *r, const struct field *field, struct str path, const json_t *value,
	struct arg_int *out)
{
	int64_t number;

	if (!integer_of(value, &number)) {
		wrong_type(r, path, value, "an integer");
	} else if ((field->min != 0 || field->max != 0) && (number < field->min || number > field->max)) {
		(void)fail_field(r->f, path, json_received(r->arena, value),
			"must be from %lld to %lld", (long long)field->min, (long long)field->max);
	} else {
		if (json_is_string(value))
			note_coercion(r, path, value, "an integer");
		out->v = number;
		out->set = true;
	}
}

static void read_bool(struct reading *r, struct str path, const json_t *value, struct arg_bool *out)
{
	struct str text = json_str(value);

	if (json_is_boolean(value)) {
		out->v = json_is_true(value);
	} else if (str_eq(text, STR("true")) || str_eq(text, STR("false"))) {
		out->v = text.n == 4;
		note_coercion(r, path, value, "a boolean");
	} else {
		wrong_type(r, path, value, "true or false");
		return;
	}
	out->set = true;
}

static struct str word_list(struct reading *r, const struct word *words)
{
	struct buf out;

	buf_init(&out, r->arena, SIZE_MAX);
	for (const struct word *word = words; word->text != NULL; word++)
		buf_printf(&out, "%s%s", word == words ? "" : ", ", word->text);
	return buf_str(&out);
}

static bool read_word(struct reading *r, const struct field *field, struct str path, const json_t *value,
	int64_t *out)
{
	struct str text = json_str(value);

	if (!json_is_string(value)) {
		wrong_type(r, path, value, "a word");
		return false;
	}
	for (const struct word *word = field->words; word->text != NULL; word++) {
		if (field->flags & FOLDED ? str_eq_nocase(text, str_of(word->text))
					  : str_eq(text, str_of(word->text))) {
			*out = word->value;
			return true;
		}
	}
	(void)fail_field(r->f, path, json_received(r->arena, value), "must be one of %.*s",
		STRF(word_list(r, field->words)));
	return false;
}

static void read_time(struct reading *r, struct str path, const json_t *value, struct arg_int *out)
{
	if (!json_is_string(value)) {
		wrong_type(r, path, value, "a time");
	} else if (!time_parse(json_str(value), &out->v)) {
		(void)fail_field(r->f, path, json_received(r->arena, value),
			"must be RFC 3339 with a time and an offset, like 2026-03-02T08:15:30Z");
	} else {
		out->set = true;
	}
}

json_t *value_array(struct reading *r, const struct field *field, struct str path, const json_t *value)
{
	json_t *array = NULL;

	if (json_is_array(value))
		array = json_incref((json_t *)(uintptr_t)value);
	else if (json_is_string(value))
		array = json_from_text(value, true, path, r->warnings);
	if (array == NULL && field->kind == FIELD_IDS && (field->flags & ID_OR_IDS) && json_is_string(value)) {
		array = json_array();
		(void)json_array_append(array, (json_t *)(uintptr_t)value);
	}
	if (array == NULL) {
		(void)fail_field(r->f, path, json_received(r->arena, value),
			"expected an array, got %s; send it like [\"a\",\"b\"]", json_type_name(value));
		return NULL;
	}
	if ((int64_t)json_array_size(array) < field->min) {
		(void)fail_field(r->f, path, STR_NONE, "must have at least %lld %s, has %zu",
			(long long)field->min, field->min == 1 ? "entry" : "entries", json_array_size(array));
	} else if (field->max > 0 && (int64_t)json_array_size(array) > field->max) {
		(void)fail_field(r->f, path, STR_NONE, "must have at most %lld %s, has %zu",
			(long long)field->max, field->max == 1 ? "entry" : "entries", json_array_size(array));
	} else {
		return array;
	}
	json_decref(array);
	return NULL;
}

static void read_strs(struct reading *r, const struct field *field, struct str path, const json_t *value,
	struct arg_strs *out)
{
	json_t *array = value_array(r, field, path, value);
	size_t n = json_array_size(array);

	if (array == NULL)
		return;
	out->set = true;
	out->v = ARENA_ARRAY(r->arena, struct str, n);
	for (size_t i = 0; i < n; i++) {
		const json_t *entry = json_array_get(array, i);
		struct str at = str_printf(r->arena, "%.*s[%zu]", STRF(path), i);
		struct str text = STR_NONE;
		struct str one = STR_NONE;
		bool twice = false;

		if (field->kind == FIELD_IDS)
			read_one_id(r, at, entry, &one);
		else if (text_of(r, at, entry, &text))
			read_text(r, field, field->item_max, at, text, &one);
		else
			wrong_type(r, at, entry, "a string");
		for (size_t j = 0; j < out->n && (field->flags & UNIQUE_ENTRIES); j++)
			twice = twice || str_eq(out->v[j], one);
		/* Entries of a coerced text die with its array. */
		if (!twice && one.p != NULL)
			out->v[out->n++] = str_dup(r->arena, one);
	}
	json_decref(array);
}

static void read_words(struct reading *r, const struct field *field, struct str path, const json_t *value,
	struct arg_ints *out)
{
	json_t *array = value_array(r, field, path, value);
	size_t n = json_array_size(array);

	if (array == NULL)
		return;
	out->set = true;
	out->v = ARENA_ARRAY(r->arena, int64_t, n);
	for (size_t i = 0; i < n; i++)
		if (read_word(r, field, str_printf(r->arena, "%.*s[%zu]", STRF(path), i),
			    json_array_get(array, i), &out->v[out->n]))
			out->n++;
	json_decref(array);
}

static void json_release(void *value)
{
	json_decref(value);
}

void value_keep(struct reading *r, json_t *value)
{
	arena_at_end(r->arena, json_release, value);
}

const json_t *value_object(struct reading *r, struct str path, const json_t *value)
{
	json_t *spelled = NULL;

	if (json_is_object(value))
		return value;
	if (json_is_string(value))
		spelled = json_from_text(value, false, path, r->warnings);
	if (spelled == NULL)
		wrong_type(r, path, value, "an object");
	else
		value_keep(r, spelled);
	return spelled;
}

static bool has_bad_text(const json_t *value)
{
	const char *key;
	size_t index;
	json_t *child;

	if (json_is_string(value))
		return bad_text(json_str(value)) != NULL;
	if (json_is_array(value)) {
		json_array_foreach ((json_t *)(uintptr_t)value, index, child)
			if (has_bad_text(child))
				return true;
	}
	if (json_is_object(value)) {
		json_object_foreach ((json_t *)(uintptr_t)value, key, child)
			if (has_bad_text(child))
				return true;
	}
	return false;
}

static void read_json(struct reading *r, const struct field *field, struct str path, const json_t *value,
	struct arg_json *out)
{
	const json_t *object = value_object(r, path, value);

	if (object != NULL && has_bad_text(object)) {
		(void)fail_field(r->f, path, STR_NONE, "must not contain U+0000 or half of a surrogate pair");
	} else if (object != NULL) {
		struct str text = json_canonical(r->arena, object);

		if (field->max > 0 && (int64_t)text.n > field->max)
			too_large(r, path, field->max, text.n);
		out->v = object;
		out->set = true;
	}
}

void value_read(struct reading *r, const struct field *field, struct str path, const json_t *value,
	void *member)
{
	struct arg_str *text = member;
	struct arg_int *number = member;

	switch (field->kind) {
	case FIELD_STR:
		read_str(r, field, path, value, text);
		break;
	case FIELD_ID:
		text->set = true;
		text->v = STR("");
		read_one_id(r, path, value, &text->v);
		break;
	case FIELD_INT:
		read_int(r, field, path, value, number);
		break;
	case FIELD_BOOL:
		read_bool(r, path, value, member);
		break;
	case FIELD_WORD:
		number->set = read_word(r, field, path, value, &number->v);
		break;
	case FIELD_TIME:
		read_time(r, path, value, number);
		break;
	case FIELD_STRS:
	case FIELD_IDS:
		read_strs(r, field, path, value, member);
		break;
	case FIELD_WORDS:
		read_words(r, field, path, value, member);
		break;
	case FIELD_JSON:
		read_json(r, field, path, value, member);
		break;
	case FIELD_OBJECT:
	case FIELD_OBJECTS:
		break; /* has members of its own: see field.c */
	}
}
