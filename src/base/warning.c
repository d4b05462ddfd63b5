#include "base/warning.h"

#include <stdio.h>

void warnings_init(struct warnings *warnings, struct arena *arena, size_t max)
{
	*warnings = (struct warnings){.arena = arena, .max = max, .index = -1};
}

void warn(struct warnings *warnings, const char *code, struct str path, const char *fmt, ...)
{
	struct warning *one;
	va_list args;

	if (warnings == NULL)
		return;
	if (warnings->count == warnings->max) {
		warnings->omitted++;
		return;
	}
	one = ARENA_NEW(warnings->arena, struct warning);
	va_start(args, fmt);
	one->message = str_of(arena_vprintf(warnings->arena, fmt, args));
	va_end(args);
	one->code = code;
	one->path = str_dup(warnings->arena, path);
	one->index = warnings->index;
	if (warnings->last == NULL)
		warnings->first = one;
	else
		warnings->last->next = one;
	warnings->last = one;
	warnings->count++;
}

static void write_omitted(size_t omitted, struct json_writer *w)
{
	char message[80];

	(void)snprintf(message, sizeof(message), "There %s %zu more warning%s; correct these first.",
		omitted == 1 ? "is" : "are", omitted, plural((int64_t)omitted));
	jw_object_begin(w);
	jw_ktext(w, "code", "more");
	jw_ktext(w, "message", message);
	jw_object_end(w);
}

void warnings_write(const struct warnings *warnings, const char *key, struct json_writer *w)
{
	if (warnings->first == NULL)
		return;
	jw_karray(w, key);
	for (const struct warning *one = warnings->first; one != NULL; one = one->next) {
		jw_object_begin(w);
		jw_ktext(w, "code", one->code);
		jw_kstr(w, "message", one->message);
		jw_kstr_opt(w, "path", one->path);
		if (one->index >= 0)
			jw_kint(w, "index", one->index);
		jw_object_end(w);
	}
	if (warnings->omitted > 0)
		write_omitted(warnings->omitted, w);
	jw_array_end(w);
}
