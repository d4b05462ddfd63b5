#include "providers/state.h"

#include <stdlib.h>

void state_text(struct str *owned, struct str text)
{
	char *copy = NULL;

	if (text.p != NULL) {
		copy = malloc(text.n + 1);
		if (copy == NULL)
			abort();
		memcpy(copy, text.p, text.n);
		copy[text.n] = '\0';
	}
	free((char *)(uintptr_t)owned->p); /* ours, though a view shows it as const */
	*owned = (struct str){copy, text.n};
}

void state_json(json_t **owned, json_t *json)
{
	json_decref(*owned);
	*owned = json;
}

size_t state_cost(struct str text)
{
	size_t cost = 2;

	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		cost += c < 0x20 || c == 0x7f ? 6 : c == '"' || c == '\\' ? 2 : 1;
	}
	return cost;
}

void state_save(const struct state_field *fields, const void *from, struct json_writer *w)
{
	jw_object_begin(w);
	for (const struct state_field *field = fields; field->name != NULL; field++) {
		const void *at = (const char *)from + field->at;
		const json_t *json;

		switch (field->type) {
		case STATE_BOOL:
			jw_kbool_opt(w, field->name, *(const bool *)at);
			break;
		case STATE_INT:
			jw_kint_opt(w, field->name, *(const int64_t *)at);
			break;
		case STATE_TEXT:
			jw_kstr_opt(w, field->name, *(const struct str *)at);
			break;
		case STATE_JSON:
			json = *(json_t *const *)at;
			if (json == NULL)
				break;
			jw_key(w, field->name);
			jw_json(w, json);
			break;
		}
	}
	jw_object_end(w);
}

static int load_field(const struct state_field *field, json_t *value, void *to, struct failure *f)
{
	char *at = (char *)to + field->at;
	bool fits = false;

	switch (field->type) {
	case STATE_BOOL:
		fits = json_is_boolean(value);
		*(bool *)(void *)at = json_is_true(value);
		break;
	case STATE_INT:
		fits = json_is_integer(value);
		*(int64_t *)(void *)at = json_integer_value(value);
		if (fits && (field->least != 0 || field->most != 0))
			fits = json_integer_value(value) >= field->least && json_integer_value(value) <= field->most;
		break;
	case STATE_TEXT:
		fits = json_is_string(value);
		state_text((struct str *)(void *)at, json_str(value));
		break;
	case STATE_JSON:
		fits = true;
		state_json((json_t **)(void *)at, json_incref(value));
		break;
	}
	return fits ? 0 : fail(f, FAIL_INTERNAL, "The stored state of a driver has a bad member \"%s\".", field->name);
}

int state_load(const struct state_field *fields, const json_t *from, void *to, struct failure *f)
{
	if (!json_is_object(from))
		return fail(f, FAIL_INTERNAL, "The stored state of a driver has no object where one belongs.");
	for (const struct state_field *field = fields; field->name != NULL; field++) {
		json_t *value = json_object_get(from, field->name);

		if (value != NULL && load_field(field, value, to, f) != 0) {
			state_free(fields, to);
			return -1;
		}
	}
	return 0;
}

void state_free(const struct state_field *fields, void *of)
{
	for (const struct state_field *field = fields; field->name != NULL; field++) {
		char *at = (char *)of + field->at;

		switch (field->type) {
		case STATE_BOOL:
			*(bool *)(void *)at = false;
			break;
		case STATE_INT:
			*(int64_t *)(void *)at = 0;
			break;
		case STATE_TEXT:
			state_text((struct str *)(void *)at, STR_NONE);
			break;
		case STATE_JSON:
			state_json((json_t **)(void *)at, NULL);
			break;
		}
	}
}

void state_make_tables(const struct state_field *fields, void *of)
{
	for (const struct state_field *field = fields; field->name != NULL; field++) {
		json_t **table = (json_t **)(void *)((char *)of + field->at);

		if (field->type == STATE_JSON && !json_is_object(*table))
			state_json(table, json_object());
	}
}

int state_reload(const struct state_field *fields, const json_t *from, void *to, struct failure *f)
{
	int rc;

	state_free(fields, to);
	rc = state_load(fields, from, to, f);
	state_make_tables(fields, to);
	return rc;
}

size_t state_plain(char *to, size_t most, struct str text)
{
	size_t n = text.n < most ? text.n : most;

	for (size_t i = 0; i < n; i++)
		to[i] = text.p[i] >= ' ' && text.p[i] <= '~' ? text.p[i] : '_';
	return n;
}

void state_row_text(json_t *row, const char *key, struct str value)
{
	if (value.p != NULL)
		(void)json_object_set_new(row, key, json_stringn(value.p, value.n));
}
