#include "base/settings.h"

#include "base/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const struct setting_info setting_table[SETTING_COUNT] = {
#define SETTING(name, key, env, flag, type, fallback, bounds, help) \
	{key, env, flag, SETTING_##type, fallback, bounds, help},
#include "base/settings.def"
#undef SETTING
};

#define MAX_LIST 64
#define MAX_FILE_BYTES (1024 * 1024)

struct value {
	struct str text;
	struct str list[MAX_LIST];
	size_t count;
	int64_t number;
	struct str origin;
};

struct settings {
	const char *file;
	const struct yaml *providers; /* as written; NULL: no such section */
	struct value values[SETTING_COUNT];
};

struct loading {
	struct arena *arena;
	struct settings *settings;
	struct failure *f;
	const char *file;
	struct str dir; /* of the file */
};

static int bad(struct loading *l, struct str origin, enum setting setting, struct str value, const char *expected)
{
	return fail(l->f, FAIL_BAD_CONFIGURATION, "%.*s: %s must be %s, got \"%.*s\".", STRF(origin),
		setting_table[setting].key, expected, STRF(value));
}

static bool word_of(const char *words, struct str text)
{
	struct str rest = str_of(words);

	while (rest.n > 0) {
		const char *end = memchr(rest.p, ' ', rest.n);
		struct str word = {rest.p, end == NULL ? rest.n : (size_t)(end - rest.p)};

		if (str_eq(word, text))
			return true;
		rest.p += word.n + (end != NULL);
		rest.n -= word.n + (end != NULL);
	}
	return false;
}

/* ~ is the home directory; what is relative stands beside the file that holds it. */
static struct str path_of(struct loading *l, struct str text, bool from_file)
{
	const char *home = getenv("HOME");

	if (text.n == 0)
		return text;
	if (text.p[0] == '~' && (text.n == 1 || text.p[1] == '/') && home != NULL)
		return str_printf(l->arena, "%s%.*s", home, (int)text.n - 1, text.p + 1);
	if (text.p[0] != '/' && from_file && l->dir.n > 0)
		return str_printf(l->arena, "%.*s/%.*s", STRF(l->dir), STRF(text));
	return text;
}

static int check(struct loading *l, enum setting setting, struct value *value)
{
	const struct setting_info *info = &setting_table[setting];
	int64_t low = 0;
	int64_t high = 0;

	switch (info->type) {
	case SETTING_INT: {
		struct str bounds = str_of(info->bounds);
		const char *dots = strstr(info->bounds, "..");

		(void)str_to_int((struct str){bounds.p, (size_t)(dots - bounds.p)}, &low);
		(void)str_to_int(str_of(dots + 2), &high);
		if (!str_to_int(value->text, &value->number) || value->number < low || value->number > high)
			return bad(l, value->origin, setting, value->text,
				arena_printf(l->arena, "a number in %s", info->bounds));
		return 0;
	}
	case SETTING_BOOL:
		if (!str_eq(value->text, STR("true")) && !str_eq(value->text, STR("false")))
			return bad(l, value->origin, setting, value->text, "true or false");
		value->number = value->text.n == 4;
		return 0;
	case SETTING_WORD:
		if (!word_of(info->bounds, value->text))
			return bad(l, value->origin, setting, value->text,
				arena_printf(l->arena, "one of %s", info->bounds));
		return 0;
	default:
		return 0;
	}
}

static int add_entry(struct loading *l, enum setting setting, struct value *value, struct str entry)
{
	if (value->count == MAX_LIST)
		return fail(l->f, FAIL_BAD_CONFIGURATION, "%.*s: %s has more than %d entries.",
			STRF(value->origin), setting_table[setting].key, MAX_LIST);
	value->list[value->count++] = str_dup(l->arena, entry);
	return 0;
}

static int set_text(struct loading *l, enum setting setting, struct str text, struct str origin, bool from_file)
{
	struct value *value = &l->settings->values[setting];

	value->origin = origin;
	value->text = str_dup(l->arena, text);
	value->count = 0;
	if (setting_table[setting].type == SETTING_PATH)
		value->text = path_of(l, value->text, from_file);
	if (setting_table[setting].type != SETTING_LIST)
		return check(l, setting, value);
	for (struct str rest = text; rest.n > 0;) {
		const char *comma = memchr(rest.p, ',', rest.n);
		struct str entry = {rest.p, comma == NULL ? rest.n : (size_t)(comma - rest.p)};

		rest.p += entry.n + (comma != NULL);
		rest.n -= entry.n + (comma != NULL);
		entry = str_trim(entry);
		if (entry.n > 0 && add_entry(l, setting, value, entry) != 0)
			return -1;
	}
	return 0;
}

static int set_node(struct loading *l, enum setting setting, const struct yaml *node)
{
	struct str origin = str_printf(l->arena, "%s:%u", l->file, node->at.line);
	struct value *value = &l->settings->values[setting];

	if (node->kind == YAML_TEXT)
		return set_text(l, setting, node->text, origin, true);
	if (node->kind == YAML_MAP || setting_table[setting].type != SETTING_LIST)
		return bad(l, origin, setting, str_of(yaml_kind_name(node)),
			setting_table[setting].type == SETTING_LIST ? "a list" : "text");
	value->origin = origin;
	value->count = 0;
	for (size_t i = 0; i < node->count; i++) {
		if (node->entries[i].value->kind != YAML_TEXT)
			return bad(l, origin, setting, str_of(yaml_kind_name(node->entries[i].value)),
				"a list of texts");
		if (add_entry(l, setting, value, node->entries[i].value->text) != 0)
			return -1;
	}
	return 0;
}

/* ---- the environment ---- */

/* Read, but no settings. DAIS_TOKEN is read by clients that were set up with the text of `dais init`. */
static const char *const other_variables[] = {"DAIS_CONFIG", "DAIS_SEAT_TOKEN", "DAIS_STATE_DIR", "DAIS_TOKEN"};

#define OTHER_COUNT (sizeof(other_variables) / sizeof(other_variables[0]))

static const char *variable_at(size_t i)
{
	return i < SETTING_COUNT ? setting_table[i].env : other_variables[i - SETTING_COUNT];
}

/* A name cut short, like DAIS_STATE, is nearer than one spelt otherwise. */
static size_t distance_of(struct str name, struct str known)
{
	return str_starts(known, name) ? known.n > name.n : 1 + str_distance(name, known, 64);
}

void settings_unknown_env(struct arena *arena,
	void (*found)(void *context, const char *name, const char *nearest), void *context)
{
	for (char **entry = environ; *entry != NULL; entry++) {
		struct str name = {*entry, strcspn(*entry, "=")};
		const char *near = variable_at(0);

		if (!str_starts(name, STR("DAIS_")))
			continue;
		for (size_t i = 1; i < SETTING_COUNT + OTHER_COUNT; i++)
			if (distance_of(name, str_of(variable_at(i))) < distance_of(name, str_of(near)))
				near = variable_at(i);
		if (distance_of(name, str_of(near)) > 0)
			found(context, arena_copy(arena, name.p, name.n), near);
	}
}

/* ---- the file ---- */

static const char *nearest(struct str key)
{
	const char *best = NULL;
	size_t best_distance = 5;

	for (size_t i = 0; i < SETTING_COUNT; i++) {
		size_t distance = str_distance(key, str_of(setting_table[i].key), best_distance);

		if (distance < best_distance) {
			best_distance = distance;
			best = setting_table[i].key;
		}
	}
	return best;
}

/* A known key, or a section whose name begins known keys. */
static int read_map(struct loading *l, const struct yaml *map, struct str prefix)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct yaml_entry *entry = &map->entries[i];
		struct str key = str_printf(l->arena, "%.*s%.*s", STRF(prefix), STRF(entry->key));
		struct str section = str_printf(l->arena, "%.*s.", STRF(key));
		bool is_section = false;
		int found = -1;

		if (prefix.n == 0 && str_eq(key, STR("providers"))) {
			l->settings->providers = entry->value;
			continue;
		}
		for (int s = 0; s < SETTING_COUNT; s++) {
			if (str_eq(key, str_of(setting_table[s].key)))
				found = s;
			is_section = is_section || str_starts(str_of(setting_table[s].key), section);
		}
		if (found >= 0) {
			if (!yaml_is_null(entry->value) && set_node(l, (enum setting)found, entry->value) != 0)
				return -1;
		} else if (is_section && entry->value->kind == YAML_MAP) {
			if (read_map(l, entry->value, section) != 0)
				return -1;
		} else if (!is_section || !yaml_is_null(entry->value)) {
			const char *near = nearest(key);

			return fail(l->f, FAIL_BAD_CONFIGURATION, "%s:%u:%u: unknown key %.*s%s%s.", l->file,
				entry->at.line, entry->at.column, STRF(key), near == NULL ? "" : "; did you mean ",
				near == NULL ? "" : near);
		}
	}
	return 0;
}

static int read_file(struct loading *l, bool required)
{
	int fd = open(l->file, O_RDONLY | O_CLOEXEC);
	struct yaml_error error;
	const struct yaml *root;
	struct stat st;
	ssize_t n = 0;
	char *text;

	if (fd < 0) {
		if (errno == ENOENT && !required)
			return 0;
		return fail(l->f, FAIL_BAD_CONFIGURATION, "%s cannot be read: %s.", l->file,
			errno == ENOENT ? "there is no such file" : errno == EACCES ? "not permitted" : "see the log");
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE_BYTES) {
		(void)close(fd);
		return fail(l->f, FAIL_BAD_CONFIGURATION, "%s is not a file of at most %d bytes.", l->file,
			MAX_FILE_BYTES);
	}
	text = arena_alloc(l->arena, (size_t)st.st_size + 1);
	n = read(fd, text, (size_t)st.st_size);
	(void)close(fd);
	if (n < 0)
		return fail(l->f, FAIL_BAD_CONFIGURATION, "%s cannot be read.", l->file);
	if (yaml_read((struct str){text, (size_t)n}, l->arena, &root, &error) != 0)
		return fail(l->f, FAIL_BAD_CONFIGURATION, "%s:%u:%u: %.*s.", l->file, error.at.line,
			error.at.column, STRF(error.reason));
	if (root->kind != YAML_MAP)
		return fail(l->f, FAIL_BAD_CONFIGURATION, "%s:1:1: expected a mapping of settings, got %s.",
			l->file, yaml_kind_name(root));
	return read_map(l, root, STR(""));
}

static int read_flags(struct loading *l, const struct settings_flag *flags, size_t n)
{
	bool seen[SETTING_COUNT] = {false};

	for (size_t i = 0; i < n; i++) {
		enum setting setting = flags[i].setting;
		struct str origin = str_printf(l->arena, "flag --%s", setting_table[setting].flag);

		if (seen[setting] && setting_table[setting].type == SETTING_LIST) {
			if (add_entry(l, setting, &l->settings->values[setting], flags[i].value) != 0)
				return -1;
		} else if (set_text(l, setting, flags[i].value, origin, false) != 0) {
			return -1;
		}
		seen[setting] = true;
	}
	return 0;
}

int settings_load(struct arena *arena, const char *file, bool file_required, const struct settings_flag *flags,
	size_t flag_count, struct settings **out, struct failure *f)
{
	struct loading l = {.arena = arena, .f = f, .file = file};
	const char *slash = file == NULL ? NULL : strrchr(file, '/');

	l.settings = ARENA_NEW(arena, struct settings);
	l.settings->file = file == NULL ? "" : arena_copy(arena, file, strlen(file));
	if (slash != NULL)
		l.dir = (struct str){file, (size_t)(slash - file)};
	for (int s = 0; s < SETTING_COUNT; s++)
		if (set_text(&l, (enum setting)s, str_of(setting_table[s].fallback), STR("default"), false) != 0)
			return -1;
	if (file != NULL && read_file(&l, file_required) != 0)
		return -1;
	for (int s = 0; s < SETTING_COUNT; s++) {
		const char *text = getenv(setting_table[s].env);

		if (text != NULL && text[0] != '\0' &&
			set_text(&l, (enum setting)s, str_of(text),
				str_printf(arena, "environment %s", setting_table[s].env), false) != 0)
			return -1;
	}
	if (read_flags(&l, flags, flag_count) != 0)
		return -1;
	*out = l.settings;
	return 0;
}

const struct yaml *settings_providers(const struct settings *settings)
{
	return settings->providers;
}

const char *settings_file(const struct settings *settings)
{
	return settings->file;
}

struct str settings_text(const struct settings *settings, enum setting setting)
{
	return settings->values[setting].text;
}

int64_t settings_int(const struct settings *settings, enum setting setting)
{
	return settings->values[setting].number;
}

bool settings_bool(const struct settings *settings, enum setting setting)
{
	return settings->values[setting].number != 0;
}

size_t settings_list(const struct settings *settings, enum setting setting, const struct str **out)
{
	*out = settings->values[setting].list;
	return settings->values[setting].count;
}

struct str settings_origin(const struct settings *settings, enum setting setting)
{
	return settings->values[setting].origin;
}

static void print_value(const struct value *value, enum setting_type type, struct buf *out)
{
	if (type == SETTING_INT || type == SETTING_BOOL || type == SETTING_WORD) {
		buf_add_str(out, value->text);
		return;
	}
	if (type != SETTING_LIST) {
		buf_add_char(out, '"');
		json_escape(out, value->text);
		buf_add_char(out, '"');
		return;
	}
	buf_add_char(out, '[');
	for (size_t i = 0; i < value->count; i++) {
		buf_printf(out, "%s\"", i == 0 ? "" : ", ");
		json_escape(out, value->list[i]);
		buf_add_char(out, '"');
	}
	buf_add_char(out, ']');
}

void settings_print(const struct settings *settings, struct buf *out)
{
	struct str section = STR_NONE;

	/* Rows of one section stand together in the table. */
	for (int s = 0; s < SETTING_COUNT; s++) {
		const struct value *value = &settings->values[s];
		const char *key = setting_table[s].key;
		const char *dot = strchr(key, '.');
		struct str own = {key, dot == NULL ? 0 : (size_t)(dot - key)};

		if (dot != NULL && !str_eq(own, section))
			buf_printf(out, "%.*s:\n", STRF(own));
		section = own;
		buf_printf(out, "%s%s: ", dot == NULL ? "" : "  ", dot == NULL ? key : dot + 1);
		print_value(value, setting_table[s].type, out);
		buf_printf(out, "  # %.*s\n", STRF(value->origin));
	}
}
