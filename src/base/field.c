#include "base/field.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"

struct reading {
	struct arena *arena;
	struct warnings *warnings;
	struct failure *f;
};

static struct str under(struct reading *r, struct str path, struct str name)
{
	return str_join(r->arena, path, name);
}

const char *word_text(const struct word *words, int64_t value)
{
	for (; words->text != NULL; words++)
		if (words->value == value)
			return words->text;
	return "";
}

const char *field_nearest(const struct field *fields, struct str name)
{
	const char *nearest = NULL;
	size_t best = name.n <= 4 ? 2 : 3;

	for (; fields->name != NULL; fields++) {
		size_t distance = str_distance(name, str_of(fields->name), best);

		/* Half of the letters must be right: "tags" is no hint to whoever wrote "status". */
		if (distance * 2 >= name.n)
			continue;
		if (distance < best || (distance == best && nearest == NULL && best == 3)) {
			best = distance;
			nearest = fields->name;
		}
	}
	return nearest;
}

static const struct field *find(const struct field *fields, struct str name)
{
	for (; fields->name != NULL; fields++)
		if (str_eq(name, str_of(fields->name)))
			return fields;
	return NULL;
}

static bool skipped(const char *const *skip, const char *name)
{
	for (; skip != NULL && *skip != NULL; skip++)
		if (strcmp(*skip, name) == 0)
			return true;
	return false;
}

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

/* ---- one value of each kind; every function reports and goes on ---- */

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
		(void)fail_field(r->f, path, received, "is longer than %lld characters (actual %zu)",
			(long long)max, size);
	} else if ((int64_t)size < field->min && field->kind == FIELD_STR) {
		(void)fail_field(r->f, path, received, "is shorter than %lld characters",
			(long long)field->min);
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

/* The array that `value` is, or spells; NULL after a report. The caller drops the reference. */
static json_t *array_of(struct reading *r, const struct field *field, struct str path, const json_t *value)
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
		(void)fail_field(r->f, path, STR_NONE, "must have at least %lld entries, has %zu",
			(long long)field->min, json_array_size(array));
	} else if (field->max > 0 && (int64_t)json_array_size(array) > field->max) {
		(void)fail_field(r->f, path, STR_NONE, "must have at most %lld entries, has %zu",
			(long long)field->max, json_array_size(array));
	} else {
		return array;
	}
	json_decref(array);
	return NULL;
}

static void read_strs(struct reading *r, const struct field *field, struct str path, const json_t *value,
	struct arg_strs *out)
{
	json_t *array = array_of(r, field, path, value);
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
	json_t *array = array_of(r, field, path, value);
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

/* The object that `value` is, or spells; in the latter case *owned is to be released with the arena. */
static const json_t *object_of(struct reading *r, struct str path, const json_t *value, json_t **owned)
{
	*owned = NULL;
	if (json_is_object(value))
		return value;
	if (json_is_string(value))
		*owned = json_from_text(value, false, path, r->warnings);
	if (*owned == NULL)
		wrong_type(r, path, value, "an object");
	return *owned;
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
	json_t *owned;
	const json_t *object = object_of(r, path, value, &owned);

	if (object != NULL && has_bad_text(object)) {
		(void)fail_field(r->f, path, STR_NONE, "must not contain U+0000 or half of a surrogate pair");
	} else if (object != NULL) {
		struct str text = json_canonical(r->arena, object);

		if (field->max > 0 && (int64_t)text.n > field->max)
			too_large(r, path, field->max, text.n);
		out->v = object;
		out->set = true;
	}
	if (owned != NULL)
		arena_at_end(r->arena, json_release, owned);
}

static void read_members(struct reading *r, const struct field *fields, const json_t *object, struct str path,
	const char *const *skip, void *out);

static void read_object(struct reading *r, const struct field *field, struct str path, const json_t *value,
	struct arg_object *out)
{
	json_t *owned;
	const json_t *object = object_of(r, path, value, &owned);

	if (object == NULL)
		return;
	if (owned != NULL)
		arena_at_end(r->arena, json_release, owned);
	out->set = true;
	out->v = arena_alloc(r->arena, field->item_size);
	read_members(r, field->fields, object, str_printf(r->arena, "%.*s.", STRF(path)), NULL, out->v);
}

static void read_objects(struct reading *r, const struct field *field, struct str path, const json_t *value,
	struct arg_objects *out)
{
	json_t *array = array_of(r, field, path, value);
	size_t n = json_array_size(array);

	if (array == NULL)
		return;
	arena_at_end(r->arena, json_release, array);
	out->set = true;
	out->n = n;
	out->v = arena_alloc(r->arena, field->item_size * (n == 0 ? 1 : n));
	for (size_t i = 0; i < n; i++) {
		const json_t *entry = json_array_get(array, i);
		struct str at = str_printf(r->arena, "%.*s[%zu]", STRF(path), i);
		json_t *owned;
		const json_t *object = object_of(r, at, entry, &owned);

		if (owned != NULL)
			arena_at_end(r->arena, json_release, owned);
		if (object != NULL)
			read_members(r, field->fields, object, str_printf(r->arena, "%.*s.", STRF(at)), NULL,
				(char *)out->v + i * field->item_size);
	}
}

/* `null` where the field takes it as a value. */
static void set_null(const struct field *field, void *member)
{
	switch (field->kind) {
	case FIELD_STR:
	case FIELD_ID:
		((struct arg_str *)member)->set = ((struct arg_str *)member)->null = true;
		break;
	case FIELD_INT:
	case FIELD_WORD:
	case FIELD_TIME:
		((struct arg_int *)member)->set = ((struct arg_int *)member)->null = true;
		break;
	case FIELD_JSON:
		((struct arg_json *)member)->set = ((struct arg_json *)member)->null = true;
		break;
	default:
		break;
	}
}

static void read_value(struct reading *r, const struct field *field, struct str path, const json_t *value,
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
		read_object(r, field, path, value, member);
		break;
	case FIELD_OBJECTS:
		read_objects(r, field, path, value, member);
		break;
	}
}

static const json_t *member_of(const struct field *field, const json_t *object)
{
	const json_t *value = json_object_get(object, field->name);

	return json_is_null(value) && !(field->flags & NULLABLE) ? NULL : value;
}

/* Exactly one field of the group that `first` opens. */
static void check_group(struct reading *r, const struct field *fields, const struct field *first,
	const json_t *object, struct str path)
{
	struct buf names;
	int given = 0;

	for (const struct field *field = fields; field != first; field++)
		if (field->group != NULL && strcmp(field->group, first->group) == 0)
			return; /* checked at its first member */
	buf_init(&names, r->arena, SIZE_MAX);
	for (const struct field *field = first; field->name != NULL; field++) {
		if (field->group == NULL || strcmp(field->group, first->group) != 0)
			continue;
		buf_printf(&names, "%s%s", names.n == 0 ? "" : ", ", field->name);
		given += member_of(field, object) != NULL;
	}
	if (given != 1)
		(void)fail_field(r->f, under(r, path, str_of(first->name)), STR_NONE,
			"exactly one of %.*s is required", STRF(buf_str(&names)));
}

/* Where a name that this table must not have belongs, or NULL. */
static const char *elsewhere(const struct field *fields, struct str name)
{
	const struct field *found;

	while (fields->name != NULL)
		fields++;
	found = fields->fields == NULL ? NULL : find(fields->fields, name);
	return found == NULL ? NULL : found->help;
}

static void report_unknown(struct reading *r, const struct field *fields, const json_t *object,
	struct str path, const char *const *skip)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
		const char *nearest;

		if (find(fields, str_of(key)) != NULL || skipped(skip, key))
			continue;
		nearest = field_nearest(fields, str_of(key));
		if (elsewhere(fields, str_of(key)) != NULL)
			(void)fail_unknown(r->f, under(r, path, str_of(key)), "%s", elsewhere(fields, str_of(key)));
		else if (nearest != NULL)
			(void)fail_unknown(r->f, under(r, path, str_of(key)), "did you mean %s?", nearest);
		else
			(void)fail_unknown(r->f, under(r, path, str_of(key)), "%s", "no such parameter");
	}
}

static void read_members(struct reading *r, const struct field *fields, const json_t *object, struct str path,
	const char *const *skip, void *out)
{
	report_unknown(r, fields, object, path, skip);
	for (const struct field *field = fields; field->name != NULL; field++) {
		const json_t *value = member_of(field, object);
		struct str at = under(r, path, str_of(field->name));
		void *member = (char *)out + field->offset;

		if (field->group != NULL)
			check_group(r, fields, field, object, path);
		if ((field->flags & NOT_NULL) && json_is_null(json_object_get(object, field->name)))
			(void)fail_field(r->f, at, STR_NONE, "must not be null");
		if (value == NULL) {
			if (field->flags & REQUIRED)
				(void)fail_field(r->f, at, STR_NONE, "is required");
			continue;
		}
		if (json_is_null(value))
			set_null(field, member);
		else
			read_value(r, field, at, value, member);
	}
}

int field_read(const struct field *fields, const json_t *object, struct str path, const char *const *skip,
	struct arena *arena, struct warnings *warnings, void *out, struct failure *f)
{
	struct reading r = {.arena = arena, .warnings = warnings, .f = f};
	size_t before = f->field_count;

	read_members(&r, fields, object, path, skip, out);
	return f->field_count > before || f->is_shape ? -1 : 0;
}
