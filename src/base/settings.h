/* base/settings.h - every setting of the program in one table (base/settings.def), and its effective value.
 *
 * File (YAML), environment and flags are read from the same rows. An unknown key or a bad value stops the
 * start: BAD_CONFIGURATION with file, line and the right spelling. */
#ifndef DAIS_BASE_SETTINGS_H
#define DAIS_BASE_SETTINGS_H

#include "base/failure.h"

enum setting {
#define SETTING(name, key, env, flag, type, fallback, bounds, help) SETTING_##name,
#include "base/settings.def"
#undef SETTING
	SETTING_COUNT,
};

enum setting_type { SETTING_TEXT, SETTING_LIST, SETTING_INT, SETTING_BOOL, SETTING_WORD, SETTING_PATH };

struct setting_info {
	const char *key;
	const char *env;
	const char *flag; /* without dashes; NULL: none */
	enum setting_type type;
	const char *fallback;
	const char *bounds;
	const char *help;
};
extern const struct setting_info setting_table[SETTING_COUNT];

struct settings; /* immutable once loaded */

struct settings_flag {
	enum setting setting;
	struct str value; /* a list setting may come several times */
};

/* `file` NULL: none; a missing file is an error only when `file_required`. The result lives in `arena`. */
int settings_load(struct arena *arena, const char *file, bool file_required, const struct settings_flag *flags,
	size_t flag_count, struct settings **out, struct failure *f);

/* Calls `found` for each variable of the environment that begins with DAIS_ and that nothing reads. */
void settings_unknown_env(struct arena *arena,
	void (*found)(void *context, const char *name, const char *nearest), void *context);

/* The section `providers` as it is written, NULL when there is none; whoever knows the drivers reads it. And the file. */
struct yaml;
const struct yaml *settings_providers(const struct settings *settings);
const char *settings_file(const struct settings *settings);
struct str settings_text(const struct settings *settings, enum setting setting);
int64_t settings_int(const struct settings *settings, enum setting setting);
bool settings_bool(const struct settings *settings, enum setting setting);
size_t settings_list(const struct settings *settings, enum setting setting, const struct str **out);
/* "default", "file:LINE", "environment NAME" or "flag --NAME". */
struct str settings_origin(const struct settings *settings, enum setting setting);
/* `key: value  # origin`, one line each, as a file that could be loaded again. */
void settings_print(const struct settings *settings, struct buf *out);

#endif
