/* Objects by their tables: which members there may be and must be; field_value.c reads what stands in them. */
#include "base/field.h"

#include "base/field_value.h"

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

static void read_members(struct reading *r, const struct field *fields, const json_t *object, struct str path,
	const char *const *skip, void *out);

static void read_object(struct reading *r, const struct field *field, struct str path, const json_t *value,
	struct arg_object *out)
{
	const json_t *object = value_object(r, path, value);

	if (object == NULL)
		return;
	out->set = true;
	out->v = arena_alloc(r->arena, field->item_size);
	read_members(r, field->fields, object, str_printf(r->arena, "%.*s.", STRF(path)), NULL, out->v);
}

static void read_objects(struct reading *r, const struct field *field, struct str path, const json_t *value,
	struct arg_objects *out)
{
	json_t *array = value_array(r, field, path, value);
	size_t n = json_array_size(array);

	if (array == NULL)
		return;
	value_keep(r, array);
	out->set = true;
	out->n = n;
	out->v = arena_alloc(r->arena, field->item_size * (n == 0 ? 1 : n));
	for (size_t i = 0; i < n; i++) {
		const json_t *entry = json_array_get(array, i);
		struct str at = str_printf(r->arena, "%.*s[%zu]", STRF(path), i);
		const json_t *object = value_object(r, at, entry);

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
	if (field->kind == FIELD_OBJECT)
		read_object(r, field, path, value, member);
	else if (field->kind == FIELD_OBJECTS)
		read_objects(r, field, path, value, member);
	else
		value_read(r, field, path, value, member);
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
