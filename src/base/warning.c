#include "base/warning.h"

void warnings_init(struct warnings *warnings, struct arena *arena)
{
	*warnings = (struct warnings){.arena = arena, .index = -1};
}

void warn(struct warnings *warnings, const char *code, struct str path, const char *fmt, ...)
{
	struct warning **end;
	va_list args;

	if (warnings == NULL)
		return;
	for (end = &warnings->first; *end != NULL;)
		end = &(*end)->next;
	*end = ARENA_NEW(warnings->arena, struct warning);
	va_start(args, fmt);
	(*end)->message = str_of(arena_vprintf(warnings->arena, fmt, args));
	va_end(args);
	(*end)->code = code;
	(*end)->path = str_dup(warnings->arena, path);
	(*end)->index = warnings->index;
	warnings->count++;
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
	jw_array_end(w);
}
