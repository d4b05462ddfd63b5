/* Provider instances: as configured, or, without configuration, every known program that is on PATH. */
#include "server/private.h"

#include "base/limits.h"
#include "base/yaml.h"
#include "server/providers.h"
#include "threads/places.h"

#include <stdlib.h>
#include <unistd.h>

struct reading {
	struct arena *arena;
	const char *file;
	struct str directory; /* what relative paths stand beside */
	struct failure *f;
};

static int bad(struct reading *r, const struct yaml_place *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int bad(struct reading *r, const struct yaml_place *at, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = arena_vprintf(r->arena, fmt, args);
	va_end(args);
	return fail(r->f, FAIL_BAD_CONFIGURATION, "%s:%u:%u: %s.", r->file, at->line, at->column, text);
}

/* ~ is the home directory; what is relative stands beside the file. */
static struct str path_of(struct reading *r, struct str text)
{
	const char *home = getenv("HOME");

	if (text.n > 0 && text.p[0] == '~' && (text.n == 1 || text.p[1] == '/') && home != NULL)
		return str_printf(r->arena, "%s%.*s", home, (int)text.n - 1, text.p + 1);
	if (text.n > 0 && text.p[0] != '/' && r->directory.n > 0)
		return str_printf(r->arena, "%.*s/%.*s", STRF(r->directory), STRF(text));
	return text;
}

static int read_text(struct reading *r, const struct yaml_entry *entry, struct str *out)
{
	if (entry->value->kind != YAML_TEXT)
		return bad(r, &entry->value->at, "%.*s must be text, not %s", STRF(entry->key), yaml_kind_name(entry->value));
	*out = entry->value->text;
	return 0;
}

static int read_list(struct reading *r, const struct yaml_entry *entry, const struct str **out, size_t *count)
{
	const struct yaml *list = entry->value;
	struct str *texts;

	if (list->kind != YAML_LIST)
		return bad(r, &list->at, "%.*s must be a list, not %s", STRF(entry->key), yaml_kind_name(list));
	texts = ARENA_ARRAY(r->arena, struct str, list->count + 1);
	for (size_t i = 0; i < list->count; i++) {
		if (list->entries[i].value->kind != YAML_TEXT)
			return bad(r, &list->entries[i].value->at, "%.*s must be a list of texts", STRF(entry->key));
		texts[i] = list->entries[i].value->text;
	}
	*out = texts;
	*count = list->count;
	return 0;
}

/* NAME: value pairs as NAME=value. */
static int read_env(struct reading *r, const struct yaml_entry *entry, struct provider_instance *out)
{
	const struct yaml *map = entry->value;
	struct str *texts;

	if (map->kind != YAML_MAP)
		return bad(r, &map->at, "env must be a mapping of names and values");
	texts = ARENA_ARRAY(r->arena, struct str, map->count + 1);
	for (size_t i = 0; i < map->count; i++) {
		if (map->entries[i].value->kind != YAML_TEXT)
			return bad(r, &map->entries[i].value->at, "env.%.*s must be text", STRF(map->entries[i].key));
		texts[i] = str_printf(r->arena, "%.*s=%.*s", STRF(map->entries[i].key), STRF(map->entries[i].value->text));
	}
	out->env = texts;
	out->env_count = map->count;
	return 0;
}

/* What is the driver's own is text, and checked by it. */
static int read_option(struct reading *r, const struct yaml_entry *entry, json_t *options)
{
	if (entry->value->kind != YAML_TEXT)
		return bad(r, &entry->value->at, "%.*s must be text", STRF(entry->key));
	(void)json_object_setn_new(options, entry->key.p, entry->key.n,
		json_stringn(entry->value->text.p, entry->value->text.n));
	return 0;
}

static int read_runs(struct reading *r, const struct yaml_entry *entry, struct str instance)
{
	int64_t runs;

	if (!yaml_int(entry->value, &runs) || runs < 1 || runs > 10000)
		return bad(r, &entry->value->at, "runs must be a number in 1..10000");
	places_set_instance(instance, runs);
	return 0;
}

static int read_key(struct reading *r, const struct yaml_entry *entry, struct provider_instance *out, json_t *options)
{
	struct str text = STR_NONE;

	if (str_eq(entry->key, STR("driver")))
		return 0;
	if (str_eq(entry->key, STR("command")))
		return read_list(r, entry, &out->command, &out->command_count);
	if (str_eq(entry->key, STR("models")))
		return read_list(r, entry, &out->models, &out->model_count);
	if (str_eq(entry->key, STR("env")))
		return read_env(r, entry, out);
	if (str_eq(entry->key, STR("runs")))
		return read_runs(r, entry, out->id);
	if (str_eq(entry->key, STR("display_name")))
		return read_text(r, entry, &out->display_name);
	if (str_eq(entry->key, STR("home"))) {
		if (read_text(r, entry, &text) != 0)
			return -1;
		out->home = path_of(r, text);
		return 0;
	}
	return read_option(r, entry, options);
}

static const struct yaml *node_of(const struct yaml *map, struct str path)
{
	const struct yaml *node = yaml_get(map, path);

	return node == NULL ? map : node;
}

/* A fault that the driver found is said with its place in the file. */
static int check_driver(struct reading *r, const struct yaml *map, const struct provider_instance *instance)
{
	struct failure f;
	const struct yaml *at;

	if (instance->driver->check == NULL)
		return json_object_size(instance->options) == 0
			? 0
			: bad(r, &map->at, "%s knows no key %s", instance->driver->kind,
				  json_object_iter_key(json_object_iter((json_t *)(uintptr_t)instance->options)));
	failure_init(&f, r->arena);
	if (instance->driver->check(instance, &f) == 0)
		return 0;
	at = f.fields == NULL ? map : node_of(map, f.fields->path);
	if (f.fields == NULL)
		return bad(r, &at->at, "%.*s", STRF(f.message));
	return bad(r, &at->at, "%.*s %.*s", STRF(f.fields->path), STRF(f.fields->reason));
}

static bool is_slug(struct str id)
{
	for (size_t i = 0; i < id.n; i++) {
		bool is_letter = (id.p[i] >= 'a' && id.p[i] <= 'z') || (id.p[i] >= 'A' && id.p[i] <= 'Z');

		if (!is_letter && (i == 0 || !((id.p[i] >= '0' && id.p[i] <= '9') || id.p[i] == '_' || id.p[i] == '-')))
			return false;
	}
	return id.n > 0 && id.n <= LIMIT_PROVIDER_ID_CHARS;
}

static void release_json(void *value)
{
	json_decref(value);
}

static int read_instance(struct reading *r, const struct yaml_entry *entry, struct provider_instance *out)
{
	const struct yaml *map = entry->value;
	const struct yaml *driver = yaml_get(map, STR("driver"));
	json_t *options = json_object();

	arena_at_end(r->arena, release_json, options);
	*out = (struct provider_instance){.id = entry->key, .options = options};
	if (!is_slug(entry->key))
		return bad(r, &entry->at, "%.*s is no id: a letter, then letters, digits, _ and -, at most %d", STRF(entry->key),
			LIMIT_PROVIDER_ID_CHARS);
	if (map->kind != YAML_MAP || driver == NULL || driver->kind != YAML_TEXT)
		return bad(r, &map->at, "providers.%.*s must be a mapping with a driver", STRF(entry->key));
	out->driver = driver_find(driver->text);
	/* An unknown driver is listed as one that cannot run: newer configurations must not stop an older server. */
	if (out->driver == NULL) {
		struct driver *unknown = ARENA_NEW(r->arena, struct driver);

		unknown->kind = str_z(r->arena, driver->text);
		unknown->title = unknown->kind;
		unknown->constraint = "This version of dais has no such driver.";
		out->driver = unknown;
		return 0;
	}
	for (size_t i = 0; i < map->count; i++)
		if (read_key(r, &map->entries[i], out, options) != 0)
			return -1;
	return check_driver(r, map, out);
}

static int read_section(struct reading *r, const struct yaml *section, struct providers *out)
{
	struct provider_instance *all;

	if (yaml_is_null(section))
		return 0;
	if (section->kind != YAML_MAP)
		return bad(r, &section->at, "providers must be a mapping, not %s", yaml_kind_name(section));
	if (section->count > LIMIT_PROVIDER_INSTANCES)
		return bad(r, &section->at, "more than %d providers", LIMIT_PROVIDER_INSTANCES);
	all = ARENA_ARRAY(r->arena, struct provider_instance, section->count + 1);
	for (size_t i = 0; i < section->count; i++)
		if (read_instance(r, &section->entries[i], &all[i]) != 0)
			return -1;
	*out = (struct providers){all, section->count};
	return 0;
}

/* ---- without configuration ---- */

static bool on_path(const char *program)
{
	const char *path = getenv("PATH");

	while (path != NULL && *path != '\0') {
		AUTO(arena_destroyp) struct arena *arena = arena_create();
		size_t n = strcspn(path, ":");

		if (access(arena_printf(arena, "%.*s/%s", (int)n, path, program), X_OK) == 0)
			return true;
		path += path[n] == ':' ? n + 1 : n;
	}
	return false;
}

static void find_programs(struct arena *arena, struct providers *out)
{
	struct provider_instance *all = ARENA_ARRAY(arena, struct provider_instance, driver_count + 1);
	size_t count = 0;

	for (size_t i = 0; i < driver_count; i++)
		if (driver_table[i]->program != NULL && driver_table[i]->constraint == NULL && on_path(driver_table[i]->program))
			all[count++] = (struct provider_instance){.id = str_of(driver_table[i]->kind), .driver = driver_table[i]};
	*out = (struct providers){all, count};
}

int providers_load(const struct settings *settings, struct arena *arena, struct providers *out, struct failure *f)
{
	const struct yaml *section = settings_providers(settings);
	struct reading r = {.arena = arena, .file = settings_file(settings), .f = f};
	const char *slash = strrchr(r.file, '/');

	*out = (struct providers){0};
	if (slash != NULL)
		r.directory = (struct str){r.file, (size_t)(slash - r.file)};
	if (section != NULL)
		return read_section(&r, section, out);
	find_programs(arena, out);
	return 0;
}
