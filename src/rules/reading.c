/* How every section is read: messages with path and place, and the shapes that fields may have. */
#include "rules/document.h"

#include "base/limits.h"

#define SHOWN_CHARS 80 /* of a key or word in a message; the rest tells nobody anything */

static void add_path(struct buf *out, const struct path *path)
{
	if (path == NULL)
		return;
	add_path(out, path->up);
	if (path->key.p == NULL)
		buf_printf(out, "[%zu]", path->index);
	else
		buf_printf(out, "%s%.*s", out->n > 0 ? "." : "", (int)utf8_offset(path->key, SHOWN_CHARS), path->key.p);
}

struct str path_text(struct arena *arena, const struct path *path)
{
	struct buf out;

	buf_init(&out, arena, SIZE_MAX);
	add_path(&out, path);
	return buf_str(&out);
}

void count_error(struct reading *r, struct yaml_place at)
{
	if (r->errors++ > 0)
		return;
	r->first_at = at;
	r->f->is_shape = false; /* what the caller's failure held before is not of this document */
}

void refuse(struct reading *r, const struct path *path, struct yaml_place at, const char *fmt, ...)
{
	const char *reason;
	va_list args;

	count_error(r, at);
	if (r->errors > LIMIT_FAILURE_FIELDS) {
		/* Counted only, so that a hostile text cannot make us format for ever. */
		(void)fail_field(r->f, STR_NONE, STR_NONE, "%s", "");
		return;
	}
	va_start(args, fmt);
	reason = arena_vprintf(r->scratch, fmt, args);
	va_end(args);
	(void)fail_field(r->f, path_text(r->scratch, path), STR_NONE, "%s at line %u, column %u", reason, at.line,
		at.column);
}

void remark(struct reading *r, const char *code, const struct path *path, struct yaml_place at, const char *fmt, ...)
{
	const char *message;
	va_list args;

	if (r->warnings == NULL)
		return;
	r->warning_count++;
	if (r->warning_count > LIMIT_CONFIG_WARNINGS)
		return;
	if (r->warning_count == LIMIT_CONFIG_WARNINGS) {
		warn(r->warnings, "more", STR(""), "There are more warnings; correct these first.");
		return;
	}
	va_start(args, fmt);
	message = arena_vprintf(r->scratch, fmt, args);
	va_end(args);
	if (at.line == 0)
		warn(r->warnings, code, path_text(r->scratch, path), "%s", message);
	else
		warn(r->warnings, code, path_text(r->scratch, path), "Line %u: %s", at.line, message);
}

bool is_one_of(struct str word, const char *const *names)
{
	for (; *names != NULL; names++)
		if (str_eq(word, str_of(*names)))
			return true;
	return false;
}

const char *near_name(struct reading *r, struct str word, const char *const *names)
{
	const char *best = NULL;
	size_t least = 3;

	for (; *names != NULL; names++) {
		size_t distance = str_distance(word, str_of(*names), 2);

		if (distance < least) {
			least = distance;
			best = *names;
		}
	}
	return best == NULL ? "" : arena_printf(r->scratch, "; did you mean \"%s\"?", best);
}

const struct yaml *want_map(struct reading *r, const struct path *path, const struct yaml *node)
{
	if (node == NULL || yaml_is_null(node))
		return NULL;
	if (node->kind == YAML_MAP)
		return node;
	refuse(r, path, node->at, "expected a mapping, found %s", yaml_kind_name(node));
	return NULL;
}

const struct yaml *want_list(struct reading *r, const struct path *path, const struct yaml *node, size_t max)
{
	if (node == NULL || yaml_is_null(node))
		return NULL;
	if (node->kind != YAML_LIST) {
		refuse(r, path, node->at, "expected a list, found %s", yaml_kind_name(node));
		return NULL;
	}
	if (node->count > max) {
		refuse(r, path, node->at, "%zu entries, at most %zu are allowed", node->count, max);
		return NULL;
	}
	return node;
}

struct str read_text(struct reading *r, const struct path *up, const struct yaml *map, const char *key)
{
	const struct yaml *node = yaml_get(map, str_of(key));

	if (node == NULL || yaml_is_null(node))
		return STR_NONE;
	if (node->kind == YAML_TEXT)
		return str_dup(r->doc->arena, node->text);
	remark(r, "field_invalid", PATH_KEY(up, str_of(key)), node->at, "expected text, found %s; ignored",
		yaml_kind_name(node));
	return STR_NONE;
}

bool read_bool(struct reading *r, const struct path *up, const struct yaml *map, const char *key, bool otherwise)
{
	const struct yaml *node = yaml_get(map, str_of(key));
	bool value = otherwise;

	if (node == NULL || yaml_is_null(node) || yaml_bool(node, &value))
		return value;
	if (node->kind == YAML_TEXT)
		refuse(r, PATH_KEY(up, str_of(key)), node->at, "a boolean is true or false (without quotes), not %s%.*s%s",
			node->is_plain ? "" : "\"", (int)utf8_offset(node->text, SHOWN_CHARS), node->text.p,
			node->is_plain ? "" : "\"");
	else
		refuse(r, PATH_KEY(up, str_of(key)), node->at, "a boolean is true or false, not %s", yaml_kind_name(node));
	return otherwise;
}

int64_t read_int(struct reading *r, const struct path *up, const struct yaml *map, const char *key, int64_t low,
	int64_t high, int64_t otherwise)
{
	const struct yaml *node = yaml_get(map, str_of(key));
	const struct path *path = PATH_KEY(up, str_of(key));
	int64_t value;

	if (node == NULL || yaml_is_null(node))
		return otherwise;
	if (!yaml_int(node, &value)) {
		remark(r, "field_invalid", path, node->at, "expected a whole number; ignored");
		return otherwise;
	}
	if (value >= low && value <= high)
		return value;
	remark(r, "field_invalid", path, node->at, "%lld is outside %lld to %lld; the nearest of these is used",
		(long long)value, (long long)low, (long long)high);
	return value < low ? low : high;
}

struct name_list read_names(struct reading *r, const struct path *path, const struct yaml *list, const char *code)
{
	struct name_list out = {NULL, 0};
	struct str *names;

	if (list == NULL || list->count == 0)
		return out;
	names = ARENA_ARRAY(r->doc->arena, struct str, list->count);
	out.names = names;
	for (size_t i = 0; i < list->count; i++) {
		const struct yaml *node = list->entries[i].value;

		if (node->kind != YAML_TEXT || yaml_is_null(node) || str_is_blank(node->text)) {
			remark(r, code, PATH_ITEM(path, i), node->at, "expected a name, found %s; ignored",
				node->kind == YAML_TEXT ? "nothing" : yaml_kind_name(node));
			continue;
		}
		if (!name_list_has(&out, node->text))
			names[out.count++] = str_dup(r->doc->arena, node->text);
	}
	return out;
}
