/* Ids that are made from what they name. */
#include "threads/ident.h"

#include "base/id.h"
#include "base/limits.h"

#include <stdarg.h>

static bool is_unreserved(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')
		|| (c != '\0' && strchr("-_.!~*'()", c) != NULL);
}

static void add_part(struct buf *out, struct str part)
{
	size_t start = out->n;
	unsigned char digest[32];

	/* A digest begins with a tilde; nothing else may. */
	for (size_t i = 0; i < part.n; i++) {
		if (is_unreserved(part.p[i]) && !(i == 0 && part.p[i] == '~'))
			buf_add_char(out, part.p[i]);
		else
			buf_printf(out, "%%%02X", (unsigned char)part.p[i]);
	}
	if (out->n - start <= LIMIT_ID_PART_BYTES)
		return;
	out->n = start;
	sha256(part.p, part.n, digest);
	buf_add_char(out, '~');
	buf_add_str(out, hex(out->arena, digest, 16));
}

struct str ident_make(struct arena *arena, const char *kind, ...)
{
	struct buf out;
	va_list parts;

	buf_init(&out, arena, SIZE_MAX);
	buf_add_str(&out, str_of(kind));
	va_start(parts, kind);
	for (struct str part = va_arg(parts, struct str); part.p != NULL; part = va_arg(parts, struct str)) {
		buf_add_char(&out, ':');
		add_part(&out, part);
	}
	va_end(parts);
	return buf_str(&out);
}

struct str ident_random(struct arena *arena, const char *kind)
{
	char text[ID_TEXT_SIZE];
	struct id id;

	id_generate(&id);
	id_format(id, text);
	return IDENT(arena, kind, str_of(text));
}

struct str ident_number(struct arena *arena, int64_t number)
{
	return str_printf(arena, "%lld", (long long)number);
}

struct str ident_run(struct arena *arena, struct str thread_id, int64_t ordinal)
{
	struct str stem = IDENT(arena, "run:thread", thread_id);

	return str_printf(arena, "%.*s:ordinal:%lld", STRF(stem), (long long)ordinal);
}

int64_t ident_run_ordinal(struct arena *arena, struct str thread_id, struct str run_id)
{
	struct str stem = str_printf(arena, "%.*s:ordinal:", STRF(IDENT(arena, "run:thread", thread_id)));
	int64_t ordinal;

	if (!str_starts(run_id, stem) || !str_to_int((struct str){run_id.p + stem.n, run_id.n - stem.n}, &ordinal))
		return 0;
	return ordinal > 0 && str_eq(ident_run(arena, thread_id, ordinal), run_id) ? ordinal : 0;
}

struct str ident_namespace(struct arena *arena)
{
	unsigned char bytes[8];

	random_bytes(bytes, sizeof(bytes));
	return hex(arena, bytes, sizeof(bytes));
}
