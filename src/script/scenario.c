/* YAML into turns and steps. The first fault ends the reading. */
#include "script/private.h"

#include "script/template.h"

const char *const without_words[] = {"mcp", "loadSession", "resume", "close", "steering", "models", "modes",
	"permissions", "questions", "usage", "cancel", NULL};

struct reader {
	struct arena *arena;
	struct yaml_error *error;
	struct str *saved; /* names that steps save */
	size_t saved_count;
	const struct yaml **texts; /* with {{…}}: checked when all names are known */
	size_t text_count;
	size_t json_values; /* of the value that is being looked at */
};

static int refuse(struct reader *r, struct yaml_place at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int refuse(struct reader *r, struct yaml_place at, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	*r->error =
		(struct yaml_error){.at = at, .path = STR(""), .reason = str_of(arena_vprintf(r->arena, fmt, args))};
	va_end(args);
	return -1;
}

/* "; did you mean text" for the nearest of the names, or "". */
static const char *suggestion(
	struct reader *r, struct str name, const char *(*nth)(const void *from, size_t i), const void *from)
{
	const char *best = NULL;
	size_t distance = 4, d;

	for (size_t i = 0; nth(from, i) != NULL; i++)
		if ((d = str_distance(name, str_of(nth(from, i)), distance)) < distance) {
			distance = d;
			best = nth(from, i);
		}
	return best == NULL ? "" : arena_printf(r->arena, "; did you mean %s?", best);
}

static const char *nth_word(const void *from, size_t i)
{
	const char *const *words = from;

	return words[i];
}

static const char *nth_field(const void *from, size_t i)
{
	const struct value_field *fields = from;

	return fields[i].name;
}

static const char *nth_step(const void *from, size_t i)
{
	(void)from;
	return i < step_kind_count ? step_kinds[i].name : NULL;
}

static const char *list_of(struct reader *r, const char *const *words)
{
	struct buf out;

	buf_init(&out, r->arena, SIZE_MAX);
	for (size_t i = 0; words[i] != NULL; i++)
		buf_printf(&out, "%s%s", i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ", words[i]);
	return str_z(r->arena, buf_str(&out));
}

/* ---- values ---- */

static int want_kind(struct reader *r, const struct yaml *node, enum yaml_kind kind, const char *name)
{
	static const char *const names[] = {"text", "a list", "a mapping"};

	if (node->kind == kind)
		return 0;
	return refuse(r, node->at, "%s must be %s, not %s", name, names[kind], yaml_kind_name(node));
}

/* Text with {{…}}; `null` without quotes is nothing, not the text. */
static int read_text(struct reader *r, const struct yaml *node, const char *name)
{
	size_t n = r->text_count;

	if (node->kind != YAML_TEXT || yaml_is_null(node))
		return refuse(r, node->at, "%s must be text, not %s", name, yaml_kind_name(node));
	if ((n & (n - 1)) == 0)
		r->texts = arena_grow(
			r->arena, r->texts, n * sizeof(struct yaml *), (n == 0 ? 1 : 2 * n) * sizeof(struct yaml *));
	r->texts[r->text_count++] = node;
	return 0;
}

static int read_int(struct reader *r, const struct yaml *node, const struct value_field *field, int64_t *out)
{
	if (!yaml_int(node, out) || *out < field->min || *out > field->max)
		return refuse(r, node->at, "%s must be a whole number from %lld to %lld", field->name,
			(long long)field->min, (long long)field->max);
	return 0;
}

static int read_word(
	struct reader *r, const struct yaml *node, const char *name, const char *const *words, int64_t *out)
{
	if (want_kind(r, node, YAML_TEXT, name) != 0)
		return -1;
	for (size_t i = 0; words[i] != NULL; i++)
		if (str_eq(node->text, str_of(words[i]))) {
			*out = (int64_t)i;
			return 0;
		}
	return refuse(r, node->at, "%s must be %s, not \"%.*s\"", name, list_of(r, words),
		(int)utf8_cut(node->text, 60), node->text.p);
}

static int read_code(struct reader *r, const struct yaml *node, const struct value_field *field, struct value *out)
{
	if (yaml_int(node, &out->number) && out->number >= field->min && out->number <= field->max)
		return 0;
	if (read_word(r, node, field->name, field->words, &out->number) != 0)
		return refuse(r, node->at, "%s must be a JSON-RPC code or %s", field->name, list_of(r, field->words));
	out->text = node->text;
	return 0;
}

static int read_name(struct reader *r, const struct yaml *node, const char *name)
{
	if (want_kind(r, node, YAML_TEXT, name) != 0)
		return -1;
	if (!template_is_name(node->text) || template_name_of(node->text) != NAME_OTHER)
		return refuse(r, node->at, "%s must be a name of letters, digits and _ that is not taken", name);
	r->saved = arena_grow(
		r->arena, r->saved, r->saved_count * sizeof(struct str), (r->saved_count + 1) * sizeof(struct str));
	r->saved[r->saved_count++] = node->text;
	return 0;
}

static int read_texts(struct reader *r, const struct yaml *node, const char *name)
{
	if (want_kind(r, node, YAML_LIST, name) != 0)
		return -1;
	if (node->count == 0)
		return refuse(r, node->at, "%s must not be empty", name);
	for (size_t i = 0; i < node->count; i++)
		if (read_text(r, node->entries[i].value, name) != 0)
			return -1;
	return 0;
}

static int read_pairs(struct reader *r, const struct yaml *node, const char *name)
{
	if (want_kind(r, node, YAML_MAP, name) != 0)
		return -1;
	for (size_t i = 0; i < node->count; i++)
		if (read_text(r, node->entries[i].value, name) != 0)
			return -1;
	return 0;
}

static int read_plan_entry(struct reader *r, const struct yaml *node)
{
	const struct yaml *content = yaml_get(node, STR("content")), *status = yaml_get(node, STR("status"));
	int64_t word;

	if (want_kind(r, node, YAML_MAP, "an entry of plan") != 0)
		return -1;
	if (content == NULL || status == NULL || node->count != 2)
		return refuse(r, node->at, "an entry of plan has content and status, nothing else");
	if (read_text(r, content, "content") != 0)
		return -1;
	return read_word(r, status, "status", plan_statuses, &word);
}

static int read_plan(struct reader *r, const struct yaml *node)
{
	if (want_kind(r, node, YAML_LIST, "plan") != 0)
		return -1;
	for (size_t i = 0; i < node->count; i++)
		if (read_plan_entry(r, node->entries[i].value) != 0)
			return -1;
	return 0;
}

/* Aliases share nodes, so what is short to write may be long to walk: the values are counted. */
static int read_json(struct reader *r, const struct yaml *node, const char *name)
{
	if (++r->json_values > SCENARIO_JSON_VALUES)
		return refuse(r, node->at, "%s has more than %d values", name, SCENARIO_JSON_VALUES);
	if (node->kind == YAML_TEXT)
		return yaml_is_null(node) ? 0 : read_text(r, node, name);
	for (size_t i = 0; i < node->count; i++)
		if (read_json(r, node->entries[i].value, name) != 0)
			return -1;
	return 0;
}

static int read_true(struct reader *r, const struct yaml *node, const char *name)
{
	bool is_true;

	if (!yaml_bool(node, &is_true) || !is_true)
		return refuse(r, node->at, "%s must be true; leave the step out when it is not wanted", name);
	return 0;
}

static int read_bool(struct reader *r, const struct yaml *node, const char *name, int64_t *out)
{
	bool is_true;

	if (!yaml_bool(node, &is_true))
		return refuse(r, node->at, "%s must be true or false", name);
	*out = is_true ? 1 : 0;
	return 0;
}

/* The bytes that the characters U+0080 to U+00FF stand for; others stay UTF-8. */
static struct str bytes_of(struct reader *r, struct str text)
{
	struct buf out;

	buf_init(&out, r->arena, SIZE_MAX);
	for (size_t at = 0; at < text.n;) {
		size_t start = at;
		uint32_t c = utf8_next(text, &at);

		if (c >= 0x80 && c <= 0xff)
			buf_add_char(&out, (char)c);
		else
			buf_add(&out, text.p + start, at - start);
	}
	return buf_str(&out);
}

static int read_value(struct reader *r, const struct yaml *node, const struct value_field *field, struct value *out)
{
	out->is_set = true;
	out->node = node;
	switch (field->kind) {
	case VALUE_TRUE:
		return read_true(r, node, field->name);
	case VALUE_BOOL:
		return read_bool(r, node, field->name, &out->number);
	case VALUE_INT:
		return read_int(r, node, field, &out->number);
	case VALUE_WORD:
		return read_word(r, node, field->name, field->words, &out->number);
	case VALUE_CODE:
		return read_code(r, node, field, out);
	case VALUE_TEXT:
		out->text = node->text;
		return read_text(r, node, field->name);
	case VALUE_BYTES:
		if (read_text(r, node, field->name) != 0)
			return -1;
		out->text = bytes_of(r, node->text);
		return 0;
	case VALUE_NAME:
		out->text = node->text;
		return read_name(r, node, field->name);
	case VALUE_TEXTS:
		return read_texts(r, node, field->name);
	case VALUE_PAIRS:
		return read_pairs(r, node, field->name);
	case VALUE_PLAN:
		return read_plan(r, node);
	case VALUE_JSON:
		r->json_values = 0;
		return read_json(r, node, field->name);
	case VALUE_END:
		break;
	}
	return 0;
}

/* ---- steps ---- */

static const struct step_kind *find_kind(struct str name)
{
	for (size_t i = 0; i < step_kind_count; i++)
		if (str_eq(name, str_of(step_kinds[i].name)))
			return &step_kinds[i];
	return NULL;
}

const struct value *step_value(const struct step *step, const char *field)
{
	size_t i = 0;

	while (strcmp(step->kind->fields[i].name, field) != 0)
		i++;
	return &step->values[i];
}

/* One key of the mapping that holds fields, or of the step itself for what stands beside its value. */
static int read_field(struct reader *r, const struct yaml_entry *entry, struct step *step)
{
	const struct value_field *fields = step->kind->fields;

	for (size_t i = 0; fields[i].kind != VALUE_END; i++)
		if (str_eq(entry->key, str_of(fields[i].name)))
			return read_value(r, entry->value, &fields[i], &step->values[i]);
	return refuse(r, entry->at, "%s has no \"%.*s\"%s", step->kind->name, (int)utf8_cut(entry->key, 60),
		entry->key.p, suggestion(r, entry->key, nth_field, fields));
}

static int read_fields(struct reader *r, const struct yaml *map, struct step *step)
{
	const struct value_field *fields = step->kind->fields;

	for (size_t i = 0; fields[i].kind != VALUE_END; i++)
		step->values[i].number = fields[i].fallback;
	if (want_kind(r, map, YAML_MAP, step->kind->name) != 0)
		return -1;
	for (size_t i = 0; i < map->count; i++)
		if (read_field(r, &map->entries[i], step) != 0)
			return -1;
	for (size_t i = 0; fields[i].kind != VALUE_END; i++)
		if (fields[i].is_required && !step->values[i].is_set)
			return refuse(r, map->at, "%s needs %s", step->kind->name, fields[i].name);
	return 0;
}

static int read_step(struct reader *r, const struct yaml *node, struct step *out)
{
	const struct yaml_entry *first;

	if (want_kind(r, node, YAML_MAP, "a step") != 0)
		return -1;
	if (node->count == 0)
		return refuse(r, node->at, "a step without a name");
	/* The name may stand behind its options: the first key that is a step is it. */
	first = &node->entries[0];
	for (size_t i = 0; i < node->count && out->kind == NULL; i++) {
		out->kind = find_kind(node->entries[i].key);
		if (out->kind != NULL)
			first = &node->entries[i];
	}
	out->at = first->at;
	if (out->kind == NULL)
		return refuse(r, first->at, "there is no step \"%.*s\"%s", (int)utf8_cut(first->key, 60), first->key.p,
			suggestion(r, first->key, nth_step, NULL));
	if (!out->kind->is_mapping)
		return read_fields(r, node, out);
	for (size_t i = 0; i < node->count; i++)
		if (&node->entries[i] != first)
			return refuse(r, node->entries[i].at,
				"\"%.*s\" stands beside %s; what belongs to it goes inside its {}",
				(int)utf8_cut(node->entries[i].key, 60), node->entries[i].key.p, out->kind->name);
	return read_fields(r, first->value, out);
}

static int read_steps(struct reader *r, const struct yaml *node, struct scene *out)
{
	struct step *steps;

	if (want_kind(r, node, YAML_LIST, "steps") != 0)
		return -1;
	steps = ARENA_ARRAY(r->arena, struct step, node->count);
	for (size_t i = 0; i < node->count; i++)
		if (read_step(r, node->entries[i].value, &steps[i]) != 0)
			return -1;
	out->steps = steps;
	out->step_count = node->count;
	return 0;
}

/* ---- turns and the rest ---- */

static void free_pattern(void *pattern)
{
	regfree(pattern);
}

static int read_pattern(struct reader *r, const struct yaml *node, struct scene *out)
{
	char reason[160];
	int rc;

	if (node->kind != YAML_TEXT || yaml_is_null(node))
		return refuse(r, node->at, "when must be text, not %s", yaml_kind_name(node));
	rc = regcomp(&out->pattern, node->text.p, REG_EXTENDED | REG_NOSUB);
	if (rc != 0) {
		(void)regerror(rc, &out->pattern, reason, sizeof(reason));
		return refuse(r, node->at, "when is no extended regular expression: %s", reason);
	}
	arena_at_end(r->arena, free_pattern, &out->pattern);
	out->has_pattern = true;
	return 0;
}

static int read_scene_key(struct reader *r, const struct yaml_entry *entry, struct scene *out)
{
	static const char *const keys[] = {"when", "times", "steps", NULL};
	static const struct value_field times = {"times", VALUE_INT, .min = 1, .max = INT32_MAX};

	if (str_eq(entry->key, STR("when")))
		return read_pattern(r, entry->value, out);
	if (str_eq(entry->key, STR("times")))
		return read_int(r, entry->value, &times, &out->times);
	if (str_eq(entry->key, STR("steps")))
		return read_steps(r, entry->value, out);
	return refuse(r, entry->at, "a turn has no \"%.*s\"%s", (int)utf8_cut(entry->key, 60), entry->key.p,
		suggestion(r, entry->key, nth_word, keys));
}

static int read_scene(struct reader *r, const struct yaml *node, struct scene *out)
{
	if (want_kind(r, node, YAML_MAP, "a turn") != 0)
		return -1;
	for (size_t i = 0; i < node->count; i++)
		if (read_scene_key(r, &node->entries[i], out) != 0)
			return -1;
	if (yaml_get(node, STR("steps")) == NULL)
		return refuse(r, node->at, "a turn needs steps");
	return 0;
}

static int read_scenes(struct reader *r, const struct yaml *node, struct scenario *out)
{
	if (want_kind(r, node, YAML_LIST, "turns") != 0)
		return -1;
	out->scenes = ARENA_ARRAY(r->arena, struct scene, node->count);
	for (size_t i = 0; i < node->count; i++)
		if (read_scene(r, node->entries[i].value, &out->scenes[i]) != 0)
			return -1;
	out->scene_count = node->count;
	return 0;
}

static int read_models(struct reader *r, const struct yaml *node, struct scenario *out)
{
	struct str *models;

	if (want_kind(r, node, YAML_LIST, "models") != 0)
		return -1;
	if (node->count == 0)
		return refuse(r, node->at, "models must not be empty; hide them with without: [models]");
	models = ARENA_ARRAY(r->arena, struct str, node->count);
	for (size_t i = 0; i < node->count; i++) {
		const struct yaml *model = node->entries[i].value;

		if (model->kind != YAML_TEXT || yaml_is_null(model) || model->text.n == 0)
			return refuse(r, model->at, "a model is text");
		models[i] = model->text;
	}
	out->models = models;
	out->model_count = node->count;
	return 0;
}

static int read_without(struct reader *r, const struct yaml *node, struct scenario *out)
{
	if (want_kind(r, node, YAML_LIST, "without") != 0)
		return -1;
	for (size_t i = 0; i < node->count; i++) {
		int64_t word = 0;

		if (read_word(r, node->entries[i].value, "an entry of without", without_words, &word) != 0)
			return -1;
		out->without |= 1U << word;
	}
	return 0;
}

static int read_key(struct reader *r, const struct yaml_entry *entry, struct scenario *out)
{
	static const char *const keys[] = {"models", "without", "init_delay_ms", "auth", "turns", NULL};
	static const char *const auth[] = {"ok", "required", NULL};
	static const struct value_field delay = {"init_delay_ms", VALUE_INT, .max = 3600000};
	int64_t word = 0;

	if (str_eq(entry->key, STR("models")))
		return read_models(r, entry->value, out);
	if (str_eq(entry->key, STR("without")))
		return read_without(r, entry->value, out);
	if (str_eq(entry->key, STR("init_delay_ms")))
		return read_int(r, entry->value, &delay, &out->init_delay_ms);
	if (str_eq(entry->key, STR("turns")))
		return read_scenes(r, entry->value, out);
	if (!str_eq(entry->key, STR("auth")))
		return refuse(r, entry->at, "a scenario has no \"%.*s\"%s", (int)utf8_cut(entry->key, 60), entry->key.p,
			suggestion(r, entry->key, nth_word, keys));
	if (read_word(r, entry->value, "auth", auth, &word) != 0)
		return -1;
	out->needs_auth = word == 1;
	return 0;
}

static int check_texts(struct reader *r)
{
	for (size_t i = 0; i < r->text_count; i++) {
		const char *wrong = template_check(r->arena, r->texts[i]->text, r->saved, r->saved_count);

		if (wrong != NULL)
			return refuse(r, r->texts[i]->at, "%s", wrong);
	}
	return 0;
}

int scenario_read(struct str text, struct arena *arena, const struct scenario **out, struct yaml_error *error)
{
	static const struct str default_models[] = {{"scripted", 8}};
	struct reader r = {.arena = arena, .error = error};
	struct scenario *scenario = ARENA_NEW(arena, struct scenario);
	const struct yaml *root;

	scenario->models = default_models;
	scenario->model_count = 1;
	if (yaml_read(text, arena, &root, error) != 0 || want_kind(&r, root, YAML_MAP, "a scenario") != 0)
		return -1;
	for (size_t i = 0; i < root->count; i++)
		if (read_key(&r, &root->entries[i], scenario) != 0)
			return -1;
	if (check_texts(&r) != 0)
		return -1;
	*out = scenario;
	return 0;
}
