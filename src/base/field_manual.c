/* A field as the manual (describe) and as JSON Schema. */
#include "base/field.h"

static const char *const type_names[] = {
	[FIELD_STR] = "string",
	[FIELD_INT] = "integer",
	[FIELD_BOOL] = "boolean",
	[FIELD_WORD] = "enum",
	[FIELD_ID] = "id",
	[FIELD_TIME] = "time",
	[FIELD_STRS] = "string[]",
	[FIELD_WORDS] = "enum[]",
	[FIELD_IDS] = "id[]",
	[FIELD_JSON] = "object",
	[FIELD_OBJECT] = "object",
	[FIELD_OBJECTS] = "object[]",
};

static void write_words(const struct word *words, struct json_writer *w)
{
	jw_array_begin(w);
	for (; words->text != NULL; words++)
		jw_text(w, words->text);
	jw_array_end(w);
}

void field_describe(const struct field *field, struct json_writer *w)
{
	jw_object_begin(w);
	jw_ktext(w, "name", field->name);
	jw_ktext(w, "type", type_names[field->kind]);
	if (field->flags & REQUIRED)
		jw_kbool(w, "required", true);
	if (field->group != NULL) {
		jw_key(w, "required");
		buf_printf(w->out, "\"one-of:%s\"", field->group);
		w->comma = true;
	}
	jw_kbool_opt(w, "nullable", (field->flags & NULLABLE) != 0);
	if (field->words != NULL) {
		jw_key(w, "values");
		write_words(field->words, w);
	}
	jw_kint_opt(w, "min", field->min);
	jw_kint_opt(w, "max", field->max);
	if (field->flags & IN_BYTES)
		jw_ktext(w, "unit", "bytes");
	jw_kint_opt(w, "entryMax", field->item_max);
	if (field->fallback != NULL)
		jw_ktext(w, "default", field->fallback);
	if (field->syntax != NULL)
		jw_ktext(w, "syntax", field->syntax);
	if (field->help != NULL)
		jw_ktext(w, "description", field->help);
	if (field->fields != NULL) {
		jw_karray(w, "params");
		for (const struct field *one = field->fields; one->name != NULL; one++)
			field_describe(one, w);
		jw_array_end(w);
	}
	jw_object_end(w);
}

static void schema_string(const struct field *field, struct json_writer *w)
{
	jw_ktext(w, "type", "string");
	if (field->kind == FIELD_WORD || field->kind == FIELD_WORDS) {
		jw_key(w, "enum");
		write_words(field->words, w);
	}
}

static void schema_count(const struct field *field, const char *min, const char *max, struct json_writer *w)
{
	jw_kint_opt(w, min, field->min);
	jw_kint_opt(w, max, field->max);
}

/* Its members, where they are known: what a model is not told it has to guess. */
static void schema_object(const struct field *field, struct json_writer *w)
{
	jw_ktext(w, "type", "object");
	if (field->fields == NULL)
		return;
	jw_kobject(w, "properties");
	for (const struct field *one = field->fields; one->name != NULL; one++)
		field_schema(one, w);
	jw_object_end(w);
	jw_karray(w, "required");
	for (const struct field *one = field->fields; one->name != NULL; one++)
		if (one->flags & REQUIRED)
			jw_text(w, one->name);
	jw_array_end(w);
	jw_kbool(w, "additionalProperties", false);
}

void field_schema(const struct field *field, struct json_writer *w)
{
	jw_kobject(w, field->name);
	switch (field->kind) {
	case FIELD_STR:
	case FIELD_WORD:
	case FIELD_ID:
	case FIELD_TIME:
		schema_string(field, w);
		break;
	case FIELD_INT:
		jw_ktext(w, "type", "integer");
		if (field->min != 0 || field->max != 0) {
			jw_kint(w, "minimum", field->min);
			jw_kint(w, "maximum", field->max);
		}
		break;
	case FIELD_BOOL:
		jw_ktext(w, "type", "boolean");
		break;
	case FIELD_STRS:
	case FIELD_WORDS:
	case FIELD_IDS:
		jw_ktext(w, "type", "array");
		jw_kobject(w, "items");
		schema_string(field, w);
		jw_object_end(w);
		break;
	case FIELD_JSON:
	case FIELD_OBJECT:
		schema_object(field, w);
		break;
	case FIELD_OBJECTS:
		jw_ktext(w, "type", "array");
		schema_count(field, "minItems", "maxItems", w);
		jw_kobject(w, "items");
		schema_object(field, w);
		jw_object_end(w);
		break;
	}
	if (field->help != NULL)
		jw_ktext(w, "description", field->help);
	jw_object_end(w);
}
